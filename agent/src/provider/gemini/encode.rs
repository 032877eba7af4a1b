//! Encodes requests to Gemini.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Gemini, managed, models, parts};
use crate::message::{AssistantMessage, Content, Part, ToolResultMessage};
use crate::model::{ManagedTool, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ToolChoice};
use crate::provider::call_ids::CallIds;
use crate::provider::parts::{
    JsonObject, OPENING, add_rest, is_assistant_first, merge_options, object, text,
};
use crate::provider::turns::{
    ForeignMedia, ResultMedia, TurnContent, TurnJoining, TurnShaper, WireResult, WireRules, write_parts,
};
use crate::provider::{HttpRequest, metadata, schema, tools};
use crate::tool::dialect::tools_in_dialect;

/// The signature of a call that Gemini did not make.
///
/// Source: <https://ai.google.dev/gemini-api/docs/thought-signatures>, on calls of other models.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The maximum number of stop sequences that Gemini accepts.
const MAX_STOPS: usize = 5;

pub(super) fn request(
    protocol: &Gemini,
    model: &ModelInfo,
    request: &ModelRequest,
) -> Result<HttpRequest, ModelError> {
    let encoder = Encoder { protocol, model, request, ids: HashMap::new() };
    let body = encoder.body()?;
    let version = match &*protocol.version {
        "" => String::new(),
        version => format!("/{version}"),
    };
    // `models/…` and `tunedModels/…` are complete names.
    let folder = if model.model.contains('/') { "" } else { "models/" };
    let name = encode_path(&model.model)?;
    let path = format!("{version}/{folder}{name}:streamGenerateContent?alt=sse");
    Ok(HttpRequest::post(path, Value::Object(body)).with_header("accept", "text/event-stream"))
}

/// Encodes the name of a model as a part of the path. It cannot change the rest of the path, because applications may take names from
/// their users.
fn encode_path(name: &str) -> Result<String, ModelError> {
    if name.split('/').any(|part| matches!(part, "." | "..") || (part.is_empty() && !name.is_empty())) {
        let text = format!("{name:?} is not the name of a model: its parts are empty, `.` or `..`");
        return Err(ModelError::new(ModelErrorKind::InvalidRequest, text));
    }
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_./@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let digit =
                |value: u8| char::from_digit(value.into(), 16).unwrap_or_default().to_ascii_uppercase();
            path.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    Ok(path)
}

struct Encoder<'a> {
    protocol: &'a Gemini,
    model: &'a ModelInfo,
    request: &'a ModelRequest,
    /// Gemini's ids of calls, by the ids of the conversation.
    ids: HashMap<String, String>,
}

fn invalid(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, message)
}

impl Encoder<'_> {
    fn body(mut self) -> Result<JsonObject, ModelError> {
        let request = self.request;
        let options = request.provider_options.get(&self.model.provider);
        metadata::refuse_all(request, "Gemini")?;
        // Cached content has its own system prompt and tools.
        let is_cached =
            options.and_then(|options| options.get("cachedContent")).is_some_and(Value::is_string);
        let mut body = JsonObject::new();
        let mut contents = self.contents()?;
        // Source: https://github.com/google-gemini/gemini-cli/issues/11814 on a history that begins with a call. Cached content is
        // the beginning of its conversation.
        let needs_user = !is_cached && !is_assistant_first(&request.messages, &self.model.provider);
        if needs_user && contents.first().is_some_and(|first| first["role"] == "model") {
            contents.insert(0, content("user", vec![json!({"text": OPENING})], None));
        }
        body.insert("contents".into(), contents.into());
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty() && !is_cached) {
            set("systemInstruction", json!({"parts": [{"text": system}]}));
        }
        let tools = self.tools()?;
        if !tools.is_empty() && !is_cached {
            set("tools", tools.into());
            if let Some(config) = self.tool_config() {
                set("toolConfig", config);
            }
        }
        let config = self.generation_config()?;
        if !config.is_empty() {
            set("generationConfig", config.into());
        }
        merge_options(&mut body, options);
        Ok(body)
    }

    fn generation_config(&self) -> Result<JsonObject, ModelError> {
        let (request, name) = (self.request, self.model.model.as_str());
        let mut config = JsonObject::new();
        let mut set = |key: &str, value: Value| config.insert(key.to_owned(), value);
        if let Some(tokens) = request.max_tokens {
            set("maxOutputTokens", tokens.into());
        }
        if let Some(temperature) = request.temperature {
            set("temperature", temperature.into());
        }
        if let Some(top_p) = request.top_p {
            set("topP", top_p.into());
        }
        if request.stop.len() > MAX_STOPS {
            let text = format!("Gemini takes at most {MAX_STOPS} stop sequences");
            return Err(invalid(text).with_code("too_many_stop_sequences"));
        }
        if !request.stop.is_empty() {
            set("stopSequences", request.stop.clone().into());
        }
        if let Some(output) = &request.output {
            let (_, key, dialect) = self.protocol.schema_fields();
            let (schema, _) = schema::render_output(output, dialect);
            set("responseMimeType", "application/json".into());
            set(key, schema);
        }
        if let Some(thinking) = request.thinking.and_then(|level| models::thinking(name, level)) {
            set("thinkingConfig", thinking);
        }
        let mut managed = request.managed_tools.iter().map(ManagedTool::as_requested);
        if managed.any(|tool| *tool == ManagedTool::ImageGeneration) {
            set("responseModalities", json!(["TEXT", "IMAGE"]));
        }
        Ok(config)
    }

    fn tools(&self) -> Result<Vec<Value>, ModelError> {
        let request = self.request;
        let (key, _, dialect) = self.protocol.schema_fields();
        let mut declarations: Vec<Value> = Vec::new();
        for (definition, rendered) in request.tools.iter().zip(tools_in_dialect(&request.tools, dialect)) {
            let description = tools::description(definition, request);
            let mut tool = json!({"name": definition.name(), "description": description});
            tool[key] = rendered.rendered.schema;
            declarations.push(tool);
        }
        let mut tools = Vec::new();
        if !declarations.is_empty() {
            tools.push(object([("functionDeclarations", declarations.into())]).into());
        }
        for tool in request.managed_tools.iter().map(ManagedTool::as_requested) {
            tools.extend(managed::tool(tool, &self.model.provider, &self.model.model)?);
        }
        Ok(tools)
    }

    fn tool_config(&self) -> Option<Value> {
        let request = self.request;
        if request.parallel_tool_calls == Some(false) {
            tracing::warn!(
                setting = "parallel_tool_calls",
                model = self.model.model,
                "Gemini cannot be told to ask for one tool at a time: left out"
            );
        }
        let config = match &request.tool_choice {
            ToolChoice::Auto if request.strict_tools => json!({"mode": "VALIDATED"}),
            ToolChoice::Auto => return None,
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        };
        Some(json!({"functionCallingConfig": config}))
    }

    fn contents(&mut self) -> Result<Vec<Value>, ModelError> {
        let mut contents: Vec<Value> = Vec::new();
        let (provider, unchanged) = (self.model.provider.as_str(), CallIds::unchanged());
        let write = |part: &Part| parts::write(part, provider);
        let shaper = TurnShaper { rules: &RULES, model: self.model, ids: &unchanged, write: &write };
        for turn in shaper.turns(&self.request.messages)? {
            let (role, written) = match turn.content {
                TurnContent::Input { parts, .. } => ("user", self.parts(parts)?),
                TurnContent::Reply { message, .. } => ("model", self.assistant(message)?),
                TurnContent::Result(result) => ("user", self.tool_result(result, turn.data)),
                TurnContent::Media(media) => ("user", media),
            };
            let rest = turn.data.and_then(|data| data.get("content"));
            if written.is_empty() && rest.is_none_or(|rest| rest.get("parts").is_none()) {
                continue;
            }
            let last = contents.last_mut().filter(|content| turn.joins && content["role"] != "model");
            match last.and_then(|content| content["parts"].as_array_mut()) {
                Some(parts) => parts.extend(written),
                None => contents.push(content(role, written, rest)),
            }
        }
        Ok(contents)
    }

    fn parts(&self, parts: &[Part]) -> Result<Vec<Value>, ModelError> {
        write_parts(parts, &RULES, |part| parts::write(part, &self.model.provider))
    }

    fn assistant(&mut self, message: &AssistantMessage) -> Result<Vec<Value>, ModelError> {
        let provider = self.model.provider.as_str();
        for part in &message.content {
            let Content::ToolCall(call) = &part.content else { continue };
            let data = part.provider_data_of(provider);
            match data.and_then(|data| text(data.get("functionCall")?, "id")) {
                Some(id) => self.ids.insert(call.id.clone(), id.to_owned()),
                // Ids that were generated by this library may occur again.
                None => self.ids.remove(&call.id),
            };
        }
        let mut written = self.parts(&message.content)?;
        // The first call of a turn needs a signature, and a call of another model has none.
        let is_signed =
            |part: &Value| part.get("functionCall").is_some() && part.get("thoughtSignature").is_some();
        if models::is_gemini_3(&self.model.model) && !written.iter().any(is_signed) {
            let first = written.iter_mut().find(|part| part.get("functionCall").is_some());
            if let Some(call) = first {
                call["thoughtSignature"] = NO_SIGNATURE.into();
            }
        }
        Ok(written)
    }

    fn tool_result(&self, mut result: WireResult<'_>, data: Option<&Value>) -> Vec<Value> {
        let message = result.message;
        let given = |key: &str| data.and_then(|data| data.get(key));
        let mut response = JsonObject::new();
        response.insert("name".into(), message.tool.as_str().into());
        if given("no_response").is_none() {
            let content =
                given("response").cloned().unwrap_or_else(|| encode_response(&result.parts, message));
            response.insert("response".into(), content);
        }
        let id = match given("id") {
            Some(id) => id.as_str(),
            None => self.ids.get(&message.call_id).map(String::as_str),
        };
        response.extend(id.map(|id| ("id".to_owned(), id.into())));
        add_rest(&mut response, given("functionResponse"));
        // From Gemini 3 a result contains its media; before, they are separate parts.
        let holds_media = models::version(&self.model.model).is_none_or(|version| version >= (3, 0));
        if holds_media && !result.media.is_empty() {
            response.insert("parts".into(), std::mem::take(&mut result.media).into());
        }
        let mut part = JsonObject::new();
        part.insert("functionResponse".into(), response.into());
        add_rest(&mut part, given("part"));
        let mut written = vec![Value::Object(part)];
        written.extend(result.media);
        written
    }
}

const RULES: WireRules = WireRules {
    protocol: "Gemini",
    roles: &[],
    joining: TurnJoining::Results,
    result_media: ResultMedia::Beside(is_no_text),
    foreign_media: ForeignMedia::Inside,
};

fn is_no_text(part: &Part, _provider: &str) -> bool {
    matches!(part.content, Content::Image(_) | Content::Document(_) | Content::Audio(_) | Content::Opaque(_))
}

/// Creates a content. `rest` has its fields other than role and parts.
fn content(role: &str, parts: Vec<Value>, rest: Option<&Value>) -> Value {
    let mut content = JsonObject::new();
    content.insert("role".into(), role.into());
    content.insert("parts".into(), parts.into());
    add_rest(&mut content, rest);
    if content.shift_remove("no_role").is_some() {
        content.shift_remove("role");
    }
    content.into()
}

/// Writes a function's result by Gemini's convention: `output`, or `error`.
pub(super) fn encode_response(content: &[Part], result: &ToolResultMessage) -> Value {
    let words = content.iter().map(|part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Resource(resource) => crate::provider::parts::resource_text(resource).unwrap_or_default(),
        Content::ResourceLink(link) => crate::provider::parts::link_text(link),
        _ => String::new(),
    });
    let key = if result.is_error { "error" } else { "output" };
    json!({ key: words.collect::<Vec<_>>().join("\n") })
}
