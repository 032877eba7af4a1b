//! Encodes requests to Chat Completions.

use serde_json::{Value, json};

use super::{Compat, EchoThinking};
use crate::message::kept::TextSegment;
use crate::message::{AssistantMessage, Content, Media, MediaSource, Part};
use crate::model::{ManagedTool, ModelError, ModelInfo, ModelRequest, Thinking};
use crate::provider::body::{BodyFields, tool_list, write_json, write_lines, write_text};
use crate::provider::call_ids::{CallIds, digest};
use crate::provider::media_types::{IMAGES, UnsupportedPart, check_media, document_text, file_name};
use crate::provider::openai::content::{self, invalid};
use crate::provider::openai::{managed, models};
use crate::provider::parts::{JsonObject, add_rest, data_url, link_text, object, resource_text, text};
use crate::provider::turns::{
    ForeignMedia, ResultMedia, TurnContent, TurnJoining, TurnShaper, WireResult, WireRules, WireTurn,
    is_plain_reply, last_user, plain_texts,
};
use crate::provider::wire::WireList;
use crate::provider::{HttpRequest, metadata, schema, tools};
use crate::schema::Dialect;
use crate::tool::dialect::written_tools;

/// Fields of a reply that hold the server's state and are sent back unchanged. Annotations and audio are not sent back.
const ECHOED: [&str; 3] = ["reasoning_details", "extra_content", "thought_signature"];

/// Maximum number of stop sequences that OpenAI accepts.
///
/// Source: <https://help.openai.com/en/articles/5072263-how-do-i-use-stop-sequences-in-the-openai-api>.
const MAX_STOPS: usize = 4;

pub(super) fn request(
    compat: &Compat,
    model: &ModelInfo,
    request: &ModelRequest,
) -> Result<HttpRequest, ModelError> {
    let body = Encoder { compat, model, request }.body()?;
    Ok(HttpRequest::with_body("/chat/completions", body.into_body())
        .with_header("accept", "text/event-stream"))
}

struct Encoder<'a> {
    compat: &'a Compat,
    model: &'a ModelInfo,
    request: &'a ModelRequest,
}

pub(super) fn system_role<'a>(compat: &'a Compat, model: &str) -> &'a str {
    match compat.system_role.as_deref() {
        Some(role) => role,
        None if models::is_reasoning_model(model) => "developer",
        None => "system",
    }
}

impl Encoder<'_> {
    fn body(&self) -> Result<BodyFields, ModelError> {
        let (request, compat, name) = (self.request, self.compat, self.model.model.as_str());
        let mut body = BodyFields::default();
        body.set("model", name.into());
        body.set_list("messages", self.messages()?);
        body.set("stream", true.into());
        if compat.stream_usage {
            body.set("stream_options", json!({"include_usage": true}));
        }
        if let Some(tokens) = request.max_tokens {
            body.set(&compat.max_tokens_field, tokens.into());
        }
        if let Some(tools) = self.tools()? {
            body.set_list("tools", tools);
            body.set(
                "tool_choice",
                content::tool_choice(
                    &request.tool_choice,
                    |name| json!({"type": "function", "function": {"name": name}}),
                ),
            );
            if let Some(parallel) = request.parallel_tool_calls.filter(|_| compat.parallel_tool_calls) {
                body.set("parallel_tool_calls", parallel.into());
            }
        }
        if let Some(output) = &request.output {
            if !compat.json_schema {
                let own = &self.model.provider;
                return Err(invalid(format!(
                    "`{own}` is known to take no schema for its reply: ask by a tool"
                )));
            }
            content::check_output_name(&output.name)?;
            let (schema, strict) = schema::render_output(output, Dialect::OpenAiStrict);
            let mut format = json!({"name": output.name, "schema": schema});
            if compat.strict {
                format["strict"] = strict.into();
            }
            if let Some(description) = &output.description {
                format["description"] = description.as_str().into();
            }
            body.set("response_format", json!({"type": "json_schema", "json_schema": format}));
        }
        let level = request.thinking.filter(|_| !models::is_non_reasoning(name));
        if let Some(level) = level {
            self.thinking(level, &mut body);
        }
        let requested = level.filter(|_| compat.thinking.is_some());
        let is_reasoning = models::is_reasoning_at(name, requested);
        let left_out = |setting: &str| {
            tracing::warn!(setting, model = name, "a reasoning model does not take this setting: left out");
        };
        for (key, value) in [("temperature", request.temperature), ("top_p", request.top_p)] {
            match value {
                Some(_) if is_reasoning => left_out(key),
                Some(value) => {
                    body.set(key, value.into());
                }
                None => {}
            }
        }
        if !request.stop.is_empty() && !models::has_stop_sequences(name) {
            left_out("stop");
        } else if compat.openai_limits && request.stop.len() > MAX_STOPS {
            return Err(content::too_many_stops(MAX_STOPS));
        } else if !request.stop.is_empty() {
            body.set("stop", request.stop.clone().into());
        }
        if let Some(key) = &request.cache_key {
            body.set("prompt_cache_key", key.as_str().into());
        }
        let options = request.provider_options.get(&self.model.provider);
        if let Some(user) = metadata::user_id(request)? {
            body.set("user", user.into());
        }
        let tags = metadata::tags(request)?;
        if !tags.is_empty() {
            // OpenAI accepts metadata only for stored replies. Source: the error `The 'metadata' parameter is only allowed when 'store' is
            // enabled` (https://github.com/tmc/langchaingo/issues/1484).
            let is_stored = options.is_some_and(|options| options.get("store") == Some(&Value::Bool(true)));
            if compat.openai_limits && !is_stored {
                return Err(metadata::refusal(
                    &tags,
                    "Chat Completions",
                    "it takes others than `user_id` only for stored replies: set the provider option `store`",
                ));
            }
            body.set("metadata", tags.into());
        }
        for tool in request.managed_tools.iter().map(ManagedTool::as_requested) {
            let own = &self.model.provider;
            if let Some((field, value)) = managed::chat_search(tool, compat.web_search.as_deref(), own, name)?
            {
                body.set(field, value);
            }
        }
        body.add_options(options)?;
        Ok(body)
    }

    fn thinking(&self, level: Thinking, body: &mut BodyFields) {
        let name = self.model.model.as_str();
        match self.compat.thinking.as_deref() {
            Some("reasoning") => {
                let reasoning = match level {
                    Thinking::Budget(tokens) => json!({"max_tokens": tokens}),
                    level => json!({"effort": models::effort(name, level)}),
                };
                body.set("reasoning", reasoning);
            }
            Some("thinking") => {
                let word = if level == Thinking::None { "disabled" } else { "enabled" };
                body.set("thinking", json!({"type": word}));
            }
            Some("enable_thinking") => {
                body.set("enable_thinking", (level != Thinking::None).into());
                if let Thinking::Budget(tokens) = level {
                    body.set("thinking_budget", tokens.into());
                }
            }
            Some(field) => body.set(field, models::effort(name, level).into()),
            None => {
                tracing::warn!(
                    setting = "thinking",
                    model = name,
                    "the server cannot be told how much to think: left out"
                );
            }
        }
    }

    fn tools(&self) -> Result<Option<Vec<TextSegment>>, ModelError> {
        let request = self.request;
        let dialect = if self.compat.strict { Dialect::OpenAiStrict } else { Dialect::Plain };
        let form = if request.examples_in_descriptions { "chat, examples" } else { "chat" };
        let is_asked = request.strict_tools;
        let texts = written_tools(&request.tools, dialect, is_asked, form, |definition, rendered| {
            let mut tool = String::from(r#"{"type":"function","function":{"name":"#);
            write_text(&mut tool, definition.name());
            tool.push_str(r#","description":"#);
            write_text(&mut tool, &tools::description(definition, request));
            tool.push_str(r#","parameters":"#);
            write_json(&mut tool, &rendered.schema);
            tool.push_str(if rendered.dialect.is_strict() { r#","strict":true}}"# } else { "}}" });
            tool
        });
        let mut managed = Vec::new();
        for tool in request.managed_tools.iter().map(ManagedTool::as_requested) {
            match tool {
                ManagedTool::WebSearch { .. } => {}
                ManagedTool::Other { provider, definition } if *provider == self.model.provider => {
                    managed.push(definition.clone());
                }
                other => return Err(other.refused_by(&self.model.provider)),
            }
        }
        Ok((!texts.is_empty() || !managed.is_empty()).then(|| tool_list(&texts, &managed)))
    }

    fn messages(&self) -> Result<Vec<TextSegment>, ModelError> {
        let (messages, model) = (&self.request.messages, self.model);
        let stable = match self.compat.echo_thinking {
            // The next user message removes thinking from the replies after the last user message. So only the messages before the
            // last user message have the same text in later requests.
            EchoThinking::WithinTurn => last_user(messages).unwrap_or_default(),
            EchoThinking::Always | EchoThinking::Never => messages.len(),
        };
        let mut list = WireList::new(messages, "content", (model.clone(), self.compat.clone()), stable);
        let is_own = |maker: Option<&AssistantMessage>| {
            maker.map_or(model.provider.is_empty(), |reply| {
                reply.provider == model.provider && (reply.api.is_empty() || reply.api == model.api)
            })
        };
        let ids = list.call_ids(
            |id, maker| has_fine_id(self.compat, id, is_own(maker)),
            |id, maker, number| call_id(self.compat, id, is_own(maker), number),
        );
        let write = |part: &Part| write(part, &model.provider, self.compat);
        let shaper = TurnShaper { rules: &RULES, model, ids: &ids, write: &write };
        for turn in shaper.turns(messages, list.start())? {
            if self.push_plain(&turn, &ids, &mut list) {
                continue;
            }
            let item = match turn.content {
                TurnContent::Input { role, parts } => content::message(role, self.content(parts)?, turn.data),
                TurnContent::Reply { message, is_current } => {
                    self.assistant(message, turn.data, self.echoes(is_current), &ids)?
                }
                TurnContent::Result(result) => Some(self.tool_result(&result, turn.data)?),
                TurnContent::Media(media) => {
                    Some(object([("role", "user".into()), ("content", media.into())]).into())
                }
            };
            if let Some(item) = item {
                list.push(turn.start, item);
            }
        }
        let is_empty = list.is_empty();
        let mut segments = list.finish();
        if let Some(system) = self.request.system.as_deref().filter(|system| !system.is_empty()) {
            let role = system_role(self.compat, &model.model);
            let mut first = json!({"role": role, "content": system}).to_string();
            if !is_empty {
                first.push(',');
            }
            segments.insert(0, first.into());
        }
        Ok(segments)
    }

    fn echoes(&self, is_current: bool) -> bool {
        match self.compat.echo_thinking {
            EchoThinking::Always => true,
            EchoThinking::WithinTurn => is_current,
            EchoThinking::Never => false,
        }
    }

    /// Writes a frequent turn, such as a single text, directly. This is faster than building a JSON value. Returns `false`, and writes
    /// nothing, for any other turn.
    fn push_plain(&self, turn: &WireTurn<'_>, ids: &CallIds, list: &mut WireList<'_>) -> bool {
        let provider = self.model.provider.as_str();
        match &turn.content {
            TurnContent::Input { role, parts } => {
                let Some(texts) = plain_texts(parts, provider).filter(|_| turn.data.is_none()) else {
                    return false;
                };
                list.push_text(turn.start, false, |out| {
                    out.push_str(r#"{"role":"#);
                    write_text(out, role);
                    out.push_str(r#","content":"#);
                    write_lines(out, "", &texts);
                    out.push('}');
                });
            }
            TurnContent::Reply { message, .. } if is_plain_reply(message, turn.data, provider) => {
                let mut texts = message.content.iter().filter_map(Part::as_text).peekable();
                let mut calls = message.tool_calls().peekable();
                if texts.peek().is_none() && calls.peek().is_none() {
                    return false;
                }
                list.push_text(turn.start, false, |out| {
                    out.push_str(r#"{"role":"assistant","content":"#);
                    match texts.next() {
                        None => out.push_str("null"),
                        Some(text) if texts.peek().is_none() => write_text(out, text),
                        Some(text) => write_text(out, &(text.to_owned() + &texts.collect::<String>())),
                    }
                    for (at, call) in calls.enumerate() {
                        out.push_str(if at == 0 { r#","tool_calls":["# } else { "," });
                        out.push_str(r#"{"id":"#);
                        write_text(out, ids.get(&call.id));
                        out.push_str(r#","type":"function","function":{"name":"#);
                        write_text(out, &call.name);
                        out.push_str(r#","arguments":"#);
                        write_text(out, call.args.text());
                        out.push_str("}}");
                    }
                    out.push_str(if message.tool_calls().next().is_some() { "]}" } else { "}" });
                });
            }
            TurnContent::Result(result) if turn.data.is_none() && !result.has_media_after => {
                let Some(texts) = plain_texts(&result.parts, provider) else { return false };
                list.push_text(turn.start, false, |out| {
                    out.push_str(r#"{"role":"tool","tool_call_id":"#);
                    write_text(out, result.call_id);
                    if self.compat.tool_result_name {
                        out.push_str(r#","name":"#);
                        write_text(out, &result.message.tool);
                    }
                    out.push_str(r#","content":"#);
                    write_lines(out, content::failure_prefix(result.message, &texts), &texts);
                    out.push('}');
                });
            }
            _ => return false,
        }
        true
    }

    /// Writes plain texts as one text, joined by line breaks, because not every server accepts a list. Other content, and a list from a
    /// recorded request, is written as a list.
    fn content(&self, parts: &[Part]) -> Result<Value, ModelError> {
        let provider = self.model.provider.as_str();
        let content = content::content(parts, provider, &RULES, |part| write(part, provider, self.compat))?;
        let is_own = |part: &Part| {
            part.provider_data_of(provider).is_some() || matches!(part.content, Content::Opaque(_))
        };
        let plain = |part: &Value| match part.as_object() {
            Some(part) if part.len() == 2 && part.get("type").is_some_and(|kind| kind == "text") => {
                part.get("text").and_then(Value::as_str).map(str::to_owned)
            }
            _ => None,
        };
        let lines = content.as_array().filter(|list| !list.is_empty() && !parts.iter().any(is_own));
        let lines = lines.and_then(|list| list.iter().map(plain).collect::<Option<Vec<String>>>());
        Ok(lines.map_or(content, |lines| lines.join("\n").into()))
    }

    fn assistant(
        &self,
        message: &AssistantMessage,
        data: Option<&Value>,
        echoes: bool,
        ids: &CallIds,
    ) -> Result<Option<Value>, ModelError> {
        let provider = self.model.provider.as_str();
        let (mut spoken, mut calls, mut thoughts) = (Vec::new(), Vec::new(), JsonObject::new());
        let mut images = Vec::new();
        let mut refusal = String::new();
        for part in &message.content {
            let rest = part.provider_data_of(provider);
            match &part.content {
                Content::Text(_) => spoken.push(part.clone()),
                // A refusal from the content list of a recorded request has provider data, and is written into the list again.
                Content::Refusal(_) if rest.is_some() => spoken.push(part.clone()),
                Content::Refusal(text) => refusal.push_str(text),
                Content::ToolCall(call) => {
                    let function = json!({"name": call.name, "arguments": call.args.text()});
                    let mut wire = JsonObject::new();
                    wire.insert("id".into(), ids.get(&call.id).into());
                    wire.insert("type".into(), "function".into());
                    wire.insert("function".into(), function);
                    add_rest(&mut wire, rest);
                    calls.push(Value::Object(wire));
                }
                // Thinking is sent back only to the provider that sent it, in the field in which it arrived.
                Content::Thinking { text, .. } => {
                    let field = rest.and_then(|rest| rest.get("field")).and_then(Value::as_str);
                    if let Some(field) = field.filter(|_| echoes) {
                        thoughts.insert(field.to_owned(), text.as_str().into());
                    }
                }
                Content::Opaque(item) if rest.is_none() => match content::call_id_of(&item.data) {
                    Some(id) if item.provider == provider => {
                        let mut results = self.request.messages.iter().filter_map(|m| m.as_tool_result());
                        // Servers refuse a call without a result.
                        if results.any(|result| result.call_id == id) {
                            let mut call = item.data.clone();
                            call["id"] = ids.get(id).into();
                            calls.push(call);
                        }
                    }
                    _ => spoken.push(part.clone()),
                },
                // An image without a URL is sent as it was received.
                Content::Opaque(image) => images.push(image.data.clone()),
                Content::Image(media) => {
                    let image = rest.and_then(|rest| rest.get("image")).zip(data_url(media, "image/png"));
                    images.extend(image.map(|(rest, url)| {
                        let mut image = JsonObject::new();
                        image.insert("image_url".into(), json!({"url": url}));
                        add_rest(&mut image, Some(rest));
                        Value::Object(image)
                    }));
                }
                _ => {}
            }
        }
        let is_list =
            spoken.iter().any(|part| part.provider_data_of(provider).is_some() || part.as_text().is_none());
        let content = if spoken.is_empty() {
            Value::Null
        } else if is_list {
            self.content(&spoken)?
        } else {
            spoken.iter().filter_map(Part::as_text).collect::<String>().into()
        };
        let mut wire = JsonObject::new();
        wire.insert("role".into(), "assistant".into());
        wire.insert("content".into(), content);
        if !refusal.is_empty() {
            wire.insert("refusal".into(), refusal.into());
        }
        if !images.is_empty() {
            wire.insert("images".into(), images.into());
        }
        let is_bare = calls.is_empty() && wire.len() == 2;
        if !calls.is_empty() {
            wire.insert("tool_calls".into(), calls.into());
        }
        wire.extend(thoughts);
        let kept = data.and_then(|data| data.get("message"));
        if let Some(data) = data {
            for key in ECHOED.into_iter().filter(|key| echoes || *key != "reasoning_details") {
                if let Some(value) = data.get(key) {
                    wire.insert(key.to_owned(), value.clone());
                }
            }
            add_rest(&mut wire, kept);
            if data.get("no_content").is_some() && wire["content"].is_null() {
                wire.shift_remove("content");
            }
        }
        if is_bare && kept.is_none() && wire.get("content").is_some_and(Value::is_null) {
            if wire.len() == 2 {
                // The message has nothing for this server, for example only the thinking that another model wrote.
                return Ok(None);
            }
            // Servers refuse null in a message without calls.
            wire.insert("content".into(), "".into());
        }
        Ok(Some(wire.into()))
    }

    fn tool_result(&self, result: &WireResult<'_>, data: Option<&Value>) -> Result<Value, ModelError> {
        let mut content = self.content(&result.parts)?;
        if content.as_array().is_some_and(Vec::is_empty) {
            content = String::new().into();
        }
        if result.has_media_after && content.as_str() == Some("") {
            content = "See the next message of the user for what the tool shows.".into();
        }
        if result.message.is_error {
            content::mark_failed(&mut content, "text");
        }
        let mut wire = JsonObject::new();
        wire.insert("role".into(), "tool".into());
        wire.insert("tool_call_id".into(), result.call_id.into());
        if self.compat.tool_result_name {
            wire.insert("name".into(), result.message.tool.as_str().into());
        }
        wire.insert("content".into(), content);
        let rest = data.and_then(|data| data.get("message"));
        // Results for the older `function_call` have the role `function` and no call id.
        if rest.and_then(|rest| text(rest, "role")) == Some("function") {
            wire.shift_remove("tool_call_id");
        }
        add_rest(&mut wire, rest);
        Ok(wire.into())
    }
}

/// Returns whether the server accepts a call id unchanged. If this provider created the id (`is_own`), `max_call_id` does not apply.
fn has_fine_id(compat: &Compat, id: &str, is_own: bool) -> bool {
    match compat.call_id_length {
        Some(length) => id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        None => compat.max_call_id.is_none_or(|max| id.chars().count() <= max || is_own),
    }
}

/// Returns a call id that the server accepts. `number` is 0 at first, and increases while the returned id is in use.
fn call_id(compat: &Compat, id: &str, is_own: bool, number: u32) -> String {
    if number == 0 && has_fine_id(compat, id, is_own) {
        return id.to_owned();
    }
    if let Some(length) = compat.call_id_length {
        return digest(id, number, length);
    }
    let max = compat.max_call_id.unwrap_or(usize::MAX);
    let Some(room) = max.checked_sub(DIGEST + 1) else { return digest(id, number, max) };
    // The id keeps as much of the original id as fits, so that people can recognize it.
    let head: String = id.chars().take(room).collect();
    format!("{head}_{}", digest(id, number, DIGEST))
}

const DIGEST: usize = 12;

const RULES: WireRules = WireRules {
    protocol: "Chat Completions",
    roles: &["system", "developer"],
    joining: TurnJoining::Never,
    result_media: ResultMedia::After(is_media),
    foreign_media: ForeignMedia::AfterResults,
};

/// Returns whether a part of a result is media, which is sent after the result. Media with provider data of this server stay in the
/// result.
fn is_media(part: &Part, provider: &str) -> bool {
    matches!(part.content, Content::Image(_) | Content::Document(_) | Content::Audio(_))
        && part.provider_data_of(provider).is_none()
}

/// Writes a part of a content list. Returns `None` for opaque parts of other providers, and for parts that are not content, such as
/// thinking.
pub(super) fn write(part: &Part, provider: &str, compat: &Compat) -> Result<Option<Value>, UnsupportedPart> {
    let rest = part.provider_data_of(provider);
    let written = match &part.content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Refusal(text) => json!({"type": "refusal", "refusal": text}),
        Content::Image(media) => {
            let media = if compat.openai_limits {
                check_media(media, "an image", IMAGES)?
            } else {
                check_media(media, "an image", &["image/*"])?
            };
            let url = data_url(&media, "").ok_or("an uploaded image, only its URL or data")?;
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        Content::Document(media) => match document_text(media) {
            // Files must be PDFs, so text is sent as text. Source: https://developers.openai.com/api/docs/guides/file-inputs
            Some(text) if rest.is_none() => {
                let name = media.name.as_ref().map(|name| format!("{name}:\n")).unwrap_or_default();
                json!({"type": "text", "text": format!("{name}{text}")})
            }
            _ => json!({"type": "file", "file": file(media, compat)?}),
        },
        Content::Audio(media) => audio(media, compat)?,
        Content::Resource(resource) => {
            let text = resource_text(resource).ok_or("a resource that is not text")?;
            json!({"type": "text", "text": text})
        }
        Content::ResourceLink(link) => json!({"type": "text", "text": link_text(link)}),
        Content::Opaque(opaque) => return Ok((opaque.provider == provider).then(|| opaque.data.clone())),
        _ => return Ok(None),
    };
    let Value::Object(mut written) = written else { return Ok(None) };
    add_rest(&mut written, rest);
    Ok(Some(written.into()))
}

fn file(media: &Media, compat: &Compat) -> Result<Value, UnsupportedPart> {
    match &media.source {
        MediaSource::FileId(id) => Ok(json!({"file_id": id})),
        MediaSource::Url(_) => {
            Err("a document behind a URL, only its data or the id of an uploaded one".into())
        }
        MediaSource::Data(_) => {
            let media = if compat.openai_limits {
                check_media(media, "a document", &["application/pdf", "text in UTF-8"])?
            } else {
                check_media(media, "a document", &["application/*", "text/*"])?
            };
            let data = data_url(&media, "").unwrap_or_default();
            Ok(json!({"filename": file_name(&media), "file_data": data}))
        }
    }
}

fn audio(media: &Media, compat: &Compat) -> Result<Value, UnsupportedPart> {
    let MediaSource::Data(bytes) = &media.source else {
        return Err("sound behind a URL or uploaded sound, only its data".into());
    };
    let allowed: &[&str] = if compat.openai_limits { &["audio/wav", "audio/mpeg"] } else { &["audio/*"] };
    let media = check_media(media, "sound", allowed)?;
    let format = match media.mime_type.as_deref().unwrap_or_default() {
        "audio/mpeg" => "mp3",
        "audio/mp4" => "m4a",
        mime => mime.strip_prefix("audio/").unwrap_or(mime),
    };
    Ok(json!({"type": "input_audio", "input_audio": {"data": bytes.to_base64(), "format": format}}))
}
