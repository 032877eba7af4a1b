//! Encodes requests to the Responses API.

use serde_json::{Value, json};

use super::{OpenAiResponses, items};
use crate::message::{Content, Media, MediaSource, Message, Part};
use crate::model::{ManagedTool, ModelError, ModelInfo, ModelRequest, Thinking};
use crate::provider::call_ids::CallIds;
use crate::provider::media_types::{IMAGES, UnsupportedPart, check_media, file_name};
use crate::provider::openai::{content, managed, models};
use crate::provider::parts::{
    JsonObject, add_options, add_rest, data_url, is_null, link_text, object, own_data, resource_text,
};
use crate::provider::turns::{
    ForeignMedia, ResultMedia, TurnContent, TurnJoining, TurnShaper, WireResult, WireRules,
};
use crate::provider::{HttpRequest, metadata, schema, tools};
use crate::schema::Dialect;
use crate::tool::dialect::tools_in_dialect;

pub(super) fn request(
    protocol: &OpenAiResponses,
    model: &ModelInfo,
    request: &ModelRequest,
) -> Result<HttpRequest, ModelError> {
    let body = Encoder { protocol, model, request }.body()?;
    Ok(HttpRequest::post("/responses", Value::Object(body)).with_header("accept", "text/event-stream"))
}

struct Encoder<'a> {
    protocol: &'a OpenAiResponses,
    model: &'a ModelInfo,
    request: &'a ModelRequest,
}

const RULES: WireRules = WireRules {
    protocol: "the Responses API",
    roles: &["system", "developer"],
    joining: TurnJoining::Never,
    result_media: ResultMedia::Inside,
    foreign_media: ForeignMedia::AfterReply,
};

impl Encoder<'_> {
    fn body(&self) -> Result<JsonObject, ModelError> {
        let (protocol, request, name) = (self.protocol, self.request, self.model.model.as_str());
        let options = request.provider_options.get(&self.model.provider);
        let mut body = JsonObject::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        set("model", name.into());
        set("input", self.input(options)?);
        if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty()) {
            set("instructions", system.into());
        }
        set("stream", true.into());
        set("store", protocol.store.into());
        if models::is_reasoning_model(name) && protocol.encrypted_reasoning && !protocol.store {
            set("include", json!(["reasoning.encrypted_content"]));
        }
        if let Some(tokens) = request.max_tokens {
            set("max_output_tokens", tokens.into());
        }
        let tools = self.tools()?;
        if !tools.is_empty() {
            set("tools", tools.into());
            set(
                "tool_choice",
                content::tool_choice(&request.tool_choice, |name| json!({"type": "function", "name": name})),
            );
            if let Some(parallel) = request.parallel_tool_calls {
                set("parallel_tool_calls", parallel.into());
            }
        }
        if let Some(output) = &request.output {
            content::check_output_name(&output.name)?;
            let (schema, strict) = schema::render_output(output, Dialect::OpenAiStrict);
            let strict = strict && protocol.strict;
            let mut format =
                json!({"type": "json_schema", "name": output.name, "schema": schema, "strict": strict});
            if let Some(description) = &output.description {
                format["description"] = description.as_str().into();
            }
            set("text", json!({"format": format}));
        }
        let level = request.thinking.filter(|_| !models::is_non_reasoning(name));
        if let Some(level) = level {
            let mut reasoning = json!({"effort": models::effort(name, level)});
            if let Some(summary) = protocol.summary.as_deref().filter(|_| level != Thinking::None) {
                reasoning["summary"] = summary.into();
            }
            set("reasoning", reasoning);
        }
        let is_reasoning = models::is_reasoning_at(name, level);
        let left_out = |setting: &str, why: &str| tracing::warn!(setting, model = name, "{why}: left out");
        for (key, value) in [("temperature", request.temperature), ("top_p", request.top_p)] {
            match value {
                Some(_) if is_reasoning => left_out(key, "a reasoning model does not take this setting"),
                Some(value) => {
                    set(key, value.into());
                }
                None => {}
            }
        }
        if !request.stop.is_empty() {
            left_out("stop", "the Responses API does not take this setting");
        }
        if let Some(key) = &request.cache.key {
            set("prompt_cache_key", key.as_str().into());
        }
        if let Some(user) = metadata::user_id(request)? {
            set("safety_identifier", user.into());
        }
        let tags = metadata::tags(request)?;
        if !tags.is_empty() {
            set("metadata", tags.into());
        }
        add_options(&mut body, options);
        Ok(body)
    }

    fn tools(&self) -> Result<Vec<Value>, ModelError> {
        let request = self.request;
        let is_strict = request.strict_tools && self.protocol.strict;
        let dialect = if is_strict { Dialect::OpenAiStrict } else { Dialect::Plain };
        let mut tools: Vec<Value> = Vec::new();
        for (definition, rendered) in request.tools.iter().zip(tools_in_dialect(&request.tools, dialect)) {
            // `strict` is always sent: without it the server may try to be strict.
            tools.push(Value::Object(object([
                ("type", "function".into()),
                ("name", definition.name().into()),
                ("description", tools::description(definition, request).into()),
                ("parameters", rendered.rendered.schema),
                ("strict", rendered.strict.into()),
            ])));
        }
        for tool in request.managed_tools.iter().map(ManagedTool::as_requested) {
            tools.push(managed::tool(tool, &self.model.provider)?);
        }
        Ok(tools)
    }

    fn input(&self, options: Option<&Value>) -> Result<Value, ModelError> {
        let provider = self.model.provider.as_str();
        // A null `store` selects the provider's default, which is to store.
        let stored = match options.and_then(|options| options.get("store")) {
            Some(store) => store.as_bool().unwrap_or(true),
            None => options.is_some_and(|options| is_null(options, "store")) || self.protocol.store,
        };
        // A single text that was read from a request stays one.
        if let [message] = &*self.request.messages
            && let Message::User(user) = &**message
            && own_data(provider, user.provider_data.as_ref()).is_some_and(|data| data.get("input").is_some())
        {
            return Ok(user.text().into());
        }
        let mut input = Vec::new();
        let unchanged = CallIds::unchanged();
        let write = |part: &Part| write(part, provider);
        let shaper = TurnShaper { rules: &RULES, model: self.model, ids: &unchanged, write: &write };
        for turn in shaper.turns(&self.request.messages)? {
            match turn.content {
                TurnContent::Input { role, parts } => {
                    input.extend(content::message(role, self.content(parts)?, turn.data));
                }
                TurnContent::Reply { message, .. } => {
                    let is_own = message.model.is_empty() || message.model == self.model.model;
                    input.extend(items::write(&message.content, provider, stored, is_own));
                }
                TurnContent::Result(result) => input.push(self.tool_result(&result, turn.data)?),
                TurnContent::Media(media) => {
                    input.push(object([("role", "user".into()), ("content", media.into())]).into());
                }
            }
        }
        Ok(input.into())
    }

    fn content(&self, parts: &[Part]) -> Result<Value, ModelError> {
        let provider = self.model.provider.as_str();
        content::content(parts, provider, &RULES, |part| write(part, provider))
    }

    fn tool_result(&self, result: &WireResult<'_>, data: Option<&Value>) -> Result<Value, ModelError> {
        let mut output = self.content(&result.parts)?;
        if output.as_array().is_some_and(Vec::is_empty) {
            output = "".into();
        }
        if result.message.is_error {
            content::mark_failed(&mut output, "input_text");
        }
        let mut item = JsonObject::new();
        item.insert("type".into(), "function_call_output".into());
        item.insert("call_id".into(), result.call_id.into());
        item.insert("output".into(), output);
        add_rest(&mut item, data.and_then(|data| data.get("message")));
        Ok(item.into())
    }
}

/// Writes a part of a content list. Returns `None` for parts that must not or need not be sent.
///
/// # Errors
/// Returns the kind of the part, if the API does not accept it.
pub(super) fn write(part: &Part, provider: &str) -> Result<Option<Value>, UnsupportedPart> {
    let written = match &part.content {
        Content::Text(text) | Content::Refusal(text) => json!({"type": "input_text", "text": text}),
        Content::Image(media) => {
            let media = check_media(media, "an image", IMAGES)?;
            if let MediaSource::FileId(id) = &media.source {
                json!({"type": "input_image", "file_id": id, "detail": "auto"})
            } else {
                let url = data_url(&media, "").unwrap_or_default();
                json!({"type": "input_image", "image_url": url, "detail": "auto"})
            }
        }
        Content::Document(media) => file(&*check_media(media, "a document", DOCUMENTS)?),
        Content::Audio(_) => return Err("sound".into()),
        Content::Resource(resource) => {
            let text = resource_text(resource).ok_or("a resource that is not text")?;
            json!({"type": "input_text", "text": text})
        }
        Content::ResourceLink(link) => json!({"type": "input_text", "text": link_text(link)}),
        Content::Opaque(opaque) => return Ok((opaque.provider == provider).then(|| opaque.data.clone())),
        _ => return Ok(None),
    };
    let Value::Object(mut written) = written else { return Ok(None) };
    add_rest(&mut written, part.provider_data_of(provider));
    Ok(Some(written.into()))
}

/// The document types that the Responses API accepts.
///
/// Source: OpenAI's guide to [file inputs](https://developers.openai.com/api/docs/guides/file-inputs?api-mode=responses).
const DOCUMENTS: &[&str] = &[
    "application/pdf",
    "text/*",
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/typescript",
    "application/sql",
    "application/rtf",
    "application/epub+zip",
    "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.ms-powerpoint",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
];

fn file(media: &Media) -> Value {
    let mut file = match &media.source {
        MediaSource::FileId(id) => json!({"type": "input_file", "file_id": id}),
        MediaSource::Url(url) => json!({"type": "input_file", "file_url": url}),
        MediaSource::Data(_) => {
            let data = data_url(media, "").unwrap_or_default();
            json!({"type": "input_file", "filename": file_name(media), "file_data": data})
        }
    };
    if let Some(name) = &media.name {
        file["filename"] = name.as_str().into();
    }
    file
}
