//! Encodes requests to Gemini.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::decode::TOKEN;
use super::{Gemini, managed, models, parts};
use crate::message::continued::is_piece;
use crate::message::kept::TextSegment;
use crate::message::{AssistantMessage, Content, Message, Part, StopReason, ToolResultMessage};
use crate::model::{ManagedTool, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ToolChoice};
use crate::provider::body::{BodyFields, tool_list, write_json, write_lines, write_text};
use crate::provider::call_ids::CallIds;
use crate::provider::parts::{JsonObject, OPENING, add_rest, is_assistant_first, some_text, text};
use crate::provider::turns::{
    ForeignMedia, ResultMedia, TurnContent, TurnJoining, TurnShaper, WireResult, WireRules, WireTurn,
    is_plain_reply, plain_texts, write_parts,
};
use crate::provider::wire::WireList;
use crate::provider::{HttpRequest, metadata, schema, tools};
use crate::tool::dialect::written_tools;

/// The placeholder that is sent as the signature of a call that Gemini did not make.
///
/// Source: <https://ai.google.dev/gemini-api/docs/thought-signatures>, on calls of other models.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

const MAX_STOPS: usize = 5;

pub(super) fn request(
    protocol: &Gemini,
    model: &ModelInfo,
    request: &ModelRequest,
) -> Result<HttpRequest, ModelError> {
    let body = Encoder { protocol, model, request }.body()?;
    let version = match &*protocol.version {
        "" => String::new(),
        version => format!("/{version}"),
    };
    // Names such as `models/…` and `tunedModels/…` already contain the folder.
    let folder = if model.model.contains('/') { "" } else { "models/" };
    let name = encode_path(&model.model)?;
    let path = format!("{version}/{folder}{name}:streamGenerateContent?alt=sse");
    Ok(HttpRequest::with_body(path, body.into_body()).with_header("accept", "text/event-stream"))
}

/// Encodes the name of a model for the path of a URL, so that a name from a user cannot change the rest of the path. An empty name is
/// accepted, because a parsed request has no name of a model.
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
}

/// Maps the call ids of the conversation to the ids that Gemini sent.
struct GeminiIds<'a> {
    provider: &'a str,
    /// Messages whose JSON text is reused from an earlier request. Their calls are added at the first id that later messages do not
    /// contain.
    before: &'a [Arc<Message>],
    ids: HashMap<&'a str, Option<&'a str>>,
    has_read_before: bool,
}

impl<'a> GeminiIds<'a> {
    fn new(provider: &'a str, before: &'a [Arc<Message>]) -> Self {
        Self { provider, before, ids: HashMap::new(), has_read_before: false }
    }

    /// Adds the calls of a reply. An id replaces an equal id of another reply without harm: only ids that this library generated can be
    /// equal, and all of them map to `None`.
    fn add(&mut self, reply: &'a AssistantMessage) {
        for part in &reply.content {
            let Content::ToolCall(call) = &part.content else { continue };
            let data = part.provider_data_of(self.provider);
            self.ids.insert(&call.id, data.and_then(|data| text(data.get("functionCall")?, "id")));
        }
    }

    fn get(&mut self, call_id: &str) -> Option<&'a str> {
        if !self.has_read_before && !self.ids.contains_key(call_id) {
            self.has_read_before = true;
            let newer = std::mem::take(&mut self.ids);
            self.before.iter().filter_map(|message| message.as_assistant()).for_each(|reply| self.add(reply));
            self.ids.extend(newer);
        }
        self.ids.get(call_id).copied().flatten()
    }
}

fn invalid(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, message)
}

impl Encoder<'_> {
    fn body(&self) -> Result<BodyFields, ModelError> {
        let request = self.request;
        let options = request.provider_options.get(&self.model.provider);
        metadata::refuse_all(request, "Gemini")?;
        // Cached content contains the system prompt and the tools, so a request with cached content has neither.
        let is_cached =
            options.and_then(|options| options.get("cachedContent")).is_some_and(Value::is_string);
        let mut body = BodyFields::default();
        body.set_list("contents", self.contents(is_cached)?);
        if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty() && !is_cached) {
            body.set("systemInstruction", json!({"parts": [{"text": system}]}));
        }
        if let Some(tools) = self.tools()?.filter(|_| !is_cached) {
            body.set_list("tools", tools);
            if let Some(config) = self.tool_config() {
                body.set("toolConfig", config);
            }
        }
        if let Some(token) = self.token() {
            body.set(TOKEN, token.into());
        }
        let config = self.generation_config()?;
        if !config.is_empty() {
            body.set("generationConfig", config.into());
        }
        body.merge_options(options)?;
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

    fn tools(&self) -> Result<Option<Vec<TextSegment>>, ModelError> {
        let request = self.request;
        let (key, _, dialect) = self.protocol.schema_fields();
        let form = if request.examples_in_descriptions { "gemini, examples" } else { "gemini" };
        let is_asked = request.strict_tools;
        let texts = written_tools(&request.tools, dialect, is_asked, form, |definition, rendered| {
            let mut tool = String::from(r#"{"name":"#);
            write_text(&mut tool, definition.name());
            tool.push_str(r#","description":"#);
            write_text(&mut tool, &tools::description(definition, request));
            tool.push(',');
            write_text(&mut tool, key);
            tool.push(':');
            write_json(&mut tool, &rendered.schema);
            tool.push('}');
            tool
        });
        let mut managed_tools = Vec::new();
        for tool in request.managed_tools.iter().map(ManagedTool::as_requested) {
            managed_tools.extend(managed::tool(tool, &self.model.provider, &self.model.model)?);
        }
        if texts.is_empty() {
            return Ok((!managed_tools.is_empty()).then(|| tool_list(&[], &managed_tools)));
        }
        let mut declarations = vec![String::from(r#"{"functionDeclarations":["#).into()];
        declarations.extend(tool_list(&texts, &[]));
        declarations.push(String::from("]}").into());
        for tool in managed_tools {
            declarations.push(format!(",{tool}").into());
        }
        Ok(Some(declarations))
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
        // Gemini refuses a configuration of function calls without functions.
        if request.tools.is_empty() {
            return None;
        }
        let mode = match &request.tool_choice {
            // A request has one mode for all its tools, so a single strict tool sets the mode `VALIDATED` for all of them.
            ToolChoice::Auto if tools::has_strict_tools(request) => Some(json!({"mode": "VALIDATED"})),
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({"mode": "NONE"})),
            ToolChoice::Required => Some(json!({"mode": "ANY"})),
            ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
        };
        let mut config = JsonObject::new();
        config.extend(mode.map(|mode| ("functionCallingConfig".to_owned(), mode)));
        // The Gemini API requires this field in requests with both functions and tools that Gemini runs. Vertex AI, for which the version
        // is empty, does not have the field (https://ai.google.dev/gemini-api/docs/tool-combination).
        let mut managed = request.managed_tools.iter().map(ManagedTool::as_requested);
        if !self.protocol.version.is_empty() && managed.any(|tool| *tool != ManagedTool::ImageGeneration) {
            config.insert("includeServerSideToolInvocations".to_owned(), true.into());
        }
        (!config.is_empty()).then(|| config.into())
    }

    /// Returns the continuation token, if the conversation ends with a paused reply.
    fn token(&self) -> Option<&str> {
        let last = self.request.messages.last()?.as_assistant()?;
        if last.stop_reason != StopReason::Pause {
            return None;
        }
        let data = last.provider_data.as_ref().filter(|data| data.provider == self.model.provider)?;
        some_text(&data.data, TOKEN)
    }

    /// Returns the number of messages to send. If there is a continuation token, the pieces of the paused reply, which are the last
    /// messages, are not sent, because the token replaces these pieces.
    fn sent(&self) -> usize {
        let messages = &self.request.messages;
        if self.token().is_none() {
            return messages.len();
        }
        let is_other = |message: &Arc<Message>| !message.as_assistant().is_some_and(is_piece);
        messages.iter().rposition(is_other).map_or(0, |last| last + 1)
    }

    fn contents(&self, is_cached: bool) -> Result<Vec<TextSegment>, ModelError> {
        let (messages, sent) = (&self.request.messages, self.sent());
        let mut list = WireList::new(messages, "parts", (self.model.clone(), is_cached), sent);
        while !self.push_turns(is_cached, &mut list)? {
            list.rewind();
        }
        Ok(list.finish())
    }

    /// Writes the turns that the reused text of an earlier request does not contain. Returns `false` if the reused text has to change. The
    /// caller then rewinds the list and calls this function again.
    fn push_turns(&self, is_cached: bool, list: &mut WireList<'_>) -> Result<bool, ModelError> {
        let (messages, provider) = (&self.request.messages, self.model.provider.as_str());
        // Gemini refuses a conversation that begins with the model, except after cached content. A parsed request that begins with the
        // model gets no opening, so that it is written back unchanged. Source: an error for a history that begins with a call,
        // https://github.com/google-gemini/gemini-cli/issues/11814.
        let needs_user = !is_cached && !is_assistant_first(messages, provider);
        let (from, unchanged) = (list.start(), CallIds::unchanged());
        let mut ids = GeminiIds::new(provider, messages.get(..from.messages).unwrap_or_default());
        let write = |part: &Part| parts::write(part, provider);
        let shaper = TurnShaper { rules: &RULES, model: self.model, ids: &unchanged, write: &write };
        let sent = self.sent();
        for mut turn in shaper.turns(messages, from)? {
            if turn.start.is_some_and(|start| start.messages >= sent) {
                break;
            }
            // The pieces of a paused reply are joined into one turn.
            let is_reply = matches!(turn.content, TurnContent::Reply { .. });
            let before = turn.start.filter(|_| is_reply).and_then(|start| start.messages.checked_sub(1));
            let before = before.and_then(|before| messages.get(before)?.as_assistant());
            let continues = match before.filter(|before| is_piece(before)) {
                Some(piece) => !list.is_empty() && !self.assistant(piece)?.is_empty(),
                None => false,
            };
            if continues {
                (turn.joins, turn.start) = (true, None);
            }
            if turn.joins && list.ends_kept() {
                return Ok(false);
            }
            if let TurnContent::Reply { message, .. } = &turn.content {
                ids.add(message);
            }
            let is_general = continues || (needs_user && list.is_empty());
            if !is_general && self.push_plain(&turn, &mut ids, list) {
                continue;
            }
            let (role, written) = match turn.content {
                TurnContent::Input { parts, .. } => ("user", self.parts(parts)?),
                TurnContent::Reply { message, .. } => ("model", self.assistant(message)?),
                TurnContent::Result(result) => ("user", self.tool_result(result, turn.data, &mut ids)),
                TurnContent::Media(media) => ("user", media),
            };
            let rest = turn.data.and_then(|data| data.get("content"));
            if written.is_empty() && rest.is_none_or(|rest| rest.get("parts").is_none()) {
                continue;
            }
            let is_open = list.last_mut().is_none_or(|content| (content["role"] == "model") == continues);
            let written = if turn.joins && is_open {
                match list.join(written) {
                    Ok(()) => continue,
                    Err(written) => written,
                }
            } else {
                written
            };
            let item = content(role, written, rest);
            let mut start = turn.start;
            if needs_user && list.is_empty() && item["role"] == "model" {
                list.push(start.take(), content("user", vec![json!({"text": OPENING})], None));
            }
            list.push(start, item);
        }
        Ok(true)
    }

    /// Writes a turn directly as text, without building a [`Value`], in the frequent cases. Returns `false`, and writes nothing, in all
    /// other cases.
    fn push_plain<'m>(&self, turn: &WireTurn<'m>, ids: &mut GeminiIds<'m>, list: &mut WireList<'_>) -> bool {
        let provider = self.model.provider.as_str();
        if turn.data.is_some() {
            return false;
        }
        match &turn.content {
            TurnContent::Input { parts, .. } if !turn.joins => {
                let texts = plain_texts(parts, provider);
                let Some(&[text]) = texts.as_deref() else { return false };
                if !text.is_empty() {
                    list.push_text(turn.start, true, |out| {
                        out.push_str(r#"{"role":"user","parts":[{"text":"#);
                        write_text(out, text);
                        out.push_str("}]}");
                    });
                }
            }
            TurnContent::Reply { message, .. }
                if is_plain_reply(message, None, provider) && !is_piece(message) =>
            {
                let is_sent = |part: &&Part| {
                    part.as_tool_call().is_some() || part.as_text().is_some_and(|t| !t.is_empty())
                };
                let mut sent = message.content.iter().filter(is_sent).peekable();
                if sent.peek().is_none() {
                    return true;
                }
                let mut needs_signature = models::is_gemini_3(&self.model.model);
                list.push_text(turn.start, false, |out| {
                    out.push_str(r#"{"role":"model","parts":["#);
                    for (at, part) in sent.enumerate() {
                        out.push_str(if at == 0 { "{" } else { ",{" });
                        if let Some(call) = part.as_tool_call() {
                            parts::write_call(out, call);
                            // From Gemini 3 on, the first call of a turn needs a signature. A call without provider data has none, so it
                            // gets the placeholder.
                            if std::mem::take(&mut needs_signature) {
                                out.push_str(r#","thoughtSignature":"#);
                                write_text(out, NO_SIGNATURE);
                            }
                        } else {
                            out.push_str(r#""text":"#);
                            write_text(out, part.as_text().unwrap_or_default());
                        }
                        out.push('}');
                    }
                    out.push_str("]}");
                });
            }
            TurnContent::Result(result) if result.media.is_empty() => {
                let Some(texts) = plain_texts(&result.parts, provider) else { return false };
                let id = ids.get(&result.message.call_id);
                let write = |out: &mut String| {
                    out.push_str(r#"{"functionResponse":{"name":"#);
                    write_text(out, &result.message.tool);
                    out.push_str(r#","response":{"#);
                    out.push_str(if result.message.is_error { r#""error":"# } else { r#""output":"# });
                    write_lines(out, "", &texts);
                    out.push('}');
                    if let Some(id) = id {
                        out.push_str(r#","id":"#);
                        write_text(out, id);
                    }
                    out.push_str("}}");
                };
                if !(turn.joins && list.join_text(write)) {
                    if turn.joins && list.last_mut().is_some() {
                        return false;
                    }
                    list.push_text(turn.start, true, |out| {
                        out.push_str(r#"{"role":"user","parts":["#);
                        write(out);
                        out.push_str("]}");
                    });
                }
            }
            _ => return false,
        }
        true
    }

    fn parts(&self, parts: &[Part]) -> Result<Vec<Value>, ModelError> {
        write_parts(parts, &RULES, |part| parts::write(part, &self.model.provider))
    }

    fn assistant(&self, message: &AssistantMessage) -> Result<Vec<Value>, ModelError> {
        let mut written = self.parts(&message.content)?;
        // From Gemini 3 on, the first call of a turn needs a signature. If no call has one, because another model made the calls, the first
        // call gets the placeholder.
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

    fn tool_result(
        &self,
        mut result: WireResult<'_>,
        data: Option<&Value>,
        ids: &mut GeminiIds<'_>,
    ) -> Vec<Value> {
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
            None => ids.get(&message.call_id),
        };
        response.extend(id.map(|id| ("id".to_owned(), id.into())));
        add_rest(&mut response, given("functionResponse"));
        // From Gemini 3 on, a result contains its media. For earlier models, the media are separate parts after the result.
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

/// Creates a `Content` object. The fields in `rest` take precedence over `role` and `parts`. If `rest` contains `no_role`, the object has
/// no role.
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

/// Writes the result of a function as an object with the key `output`, or `error` if the call failed, by Gemini's convention.
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
