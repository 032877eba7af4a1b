//! Encodes requests to the Responses API.

use serde_json::{Value, json};

use super::{OpenAiResponses, items};
use crate::message::kept::TextSegment;
use crate::message::{Content, Media, MediaSource, Message, Part};
use crate::model::{ManagedTool, ModelError, ModelInfo, ModelRequest, Thinking};
use crate::provider::body::{BodyFields, tool_list, write_json, write_lines, write_text};
use crate::provider::call_ids::CallIds;
use crate::provider::media_types::{IMAGES, UnsupportedPart, check_media, file_name};
use crate::provider::openai::{content, managed, models};
use crate::provider::parts::{
    JsonObject, add_rest, data_url, is_null, link_text, object, own_data, resource_text,
};
use crate::provider::turns::{
    ForeignMedia, ResultMedia, TurnContent, TurnJoining, TurnShaper, WireResult, WireRules, WireTurn,
    is_plain_reply, plain_texts,
};
use crate::provider::wire::WireList;
use crate::provider::{HttpRequest, metadata, schema, tools};
use crate::schema::Dialect;
use crate::tool::dialect::written_tools;

pub(super) fn request(
    protocol: &OpenAiResponses,
    model: &ModelInfo,
    request: &ModelRequest,
) -> Result<HttpRequest, ModelError> {
    let body = Encoder { protocol, model, request }.body()?;
    Ok(HttpRequest::with_body("/responses", body.into_body()).with_header("accept", "text/event-stream"))
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
    fn body(&self) -> Result<BodyFields, ModelError> {
        let (protocol, request, name) = (self.protocol, self.request, self.model.model.as_str());
        let options = request.provider_options.get(&self.model.provider);
        let stored = self.is_stored(options);
        let mut body = BodyFields::default();
        body.set("model", name.into());
        match self.single_text() {
            Some(text) => body.set("input", text.into()),
            None => body.set_list("input", self.input(stored)?),
        }
        if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty()) {
            body.set("instructions", system.into());
        }
        body.set("stream", true.into());
        body.set("store", protocol.store.into());
        let encrypted = models::is_reasoning_model(name) && protocol.encrypted_reasoning && !stored;
        let tools = request.managed_tools.iter().map(ManagedTool::as_requested);
        let included: Vec<&str> = encrypted
            .then_some("reasoning.encrypted_content")
            .into_iter()
            .chain(tools.filter_map(managed::included))
            .collect();
        if !included.is_empty() {
            body.set("include", json!([]));
        }
        if let Some(tokens) = request.max_tokens {
            body.set("max_output_tokens", tokens.into());
        }
        if let Some(tokens) = request.compact_at {
            let compaction = json!({"type": "compaction", "compact_threshold": tokens});
            body.set("context_management", json!([compaction]));
        }
        if let Some(tools) = self.tools()? {
            body.set_list("tools", tools);
            body.set(
                "tool_choice",
                content::tool_choice(&request.tool_choice, |name| json!({"type": "function", "name": name})),
            );
            if let Some(parallel) = request.parallel_tool_calls {
                body.set("parallel_tool_calls", parallel.into());
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
            body.set("text", json!({"format": format}));
        }
        let level = request.thinking.filter(|_| !models::is_non_reasoning(name));
        if let Some(level) = level {
            let mut reasoning = json!({"effort": models::effort(name, level)});
            if let Some(summary) = protocol.summary.as_deref().filter(|_| level != Thinking::None) {
                reasoning["summary"] = summary.into();
            }
            body.set("reasoning", reasoning);
        }
        let is_reasoning = models::is_reasoning_at(name, level);
        let left_out = |setting: &str, why: &str| tracing::warn!(setting, model = name, "{why}: left out");
        for (key, value) in [("temperature", request.temperature), ("top_p", request.top_p)] {
            match value {
                Some(_) if is_reasoning => left_out(key, "a reasoning model does not take this setting"),
                Some(value) => {
                    body.set(key, value.into());
                }
                None => {}
            }
        }
        if !request.stop.is_empty() {
            left_out("stop", "the Responses API does not take this setting");
        }
        if let Some(key) = &request.cache_key {
            body.set("prompt_cache_key", key.as_str().into());
        }
        if let Some(user) = metadata::user_id(request)? {
            body.set("safety_identifier", user.into());
        }
        let tags = metadata::tags(request)?;
        if !tags.is_empty() {
            body.set("metadata", tags.into());
        }
        body.add_options(options)?;
        body.extend_list("include", &included);
        Ok(body)
    }

    /// Returns whether the provider stores the reply. A null `store` selects the provider's default, which is to store.
    fn is_stored(&self, options: Option<&Value>) -> bool {
        match options.and_then(|options| options.get("store")) {
            Some(store) => store.as_bool().unwrap_or(true),
            None => options.is_some_and(|options| is_null(options, "store")) || self.protocol.store,
        }
    }

    fn tools(&self) -> Result<Option<Vec<TextSegment>>, ModelError> {
        let request = self.request;
        let dialect = if self.protocol.strict { Dialect::OpenAiStrict } else { Dialect::Plain };
        let form = if request.examples_in_descriptions { "responses, examples" } else { "responses" };
        let is_asked = request.strict_tools;
        let texts = written_tools(&request.tools, dialect, is_asked, form, |definition, rendered| {
            let mut tool = String::from(r#"{"type":"function","name":"#);
            write_text(&mut tool, definition.name());
            tool.push_str(r#","description":"#);
            write_text(&mut tool, &tools::description(definition, request));
            tool.push_str(r#","parameters":"#);
            write_json(&mut tool, &rendered.schema);
            // `strict` is always sent, because without the field the server may apply strict mode.
            tool.push_str(r#","strict":"#);
            tool.push_str(if rendered.dialect.is_strict() { "true}" } else { "false}" });
            tool
        });
        let mut managed_tools = Vec::new();
        for tool in request.managed_tools.iter().map(ManagedTool::as_requested) {
            managed_tools.push(managed::tool(tool, &self.model.provider)?);
        }
        Ok((!texts.is_empty() || !managed_tools.is_empty()).then(|| tool_list(&texts, &managed_tools)))
    }

    /// Returns the text of a recorded request whose `input` was a string, so that it is written back as a string.
    fn single_text(&self) -> Option<String> {
        let [message] = &*self.request.messages else { return None };
        let Message::User(user) = &**message else { return None };
        let data = own_data(&self.model.provider, user.provider_data.as_deref())?;
        data.get("input").map(|_| user.text())
    }

    fn input(&self, stored: bool) -> Result<Vec<TextSegment>, ModelError> {
        let (messages, provider) = (&self.request.messages, self.model.provider.as_str());
        let mut list = WireList::new(messages, "content", (self.model.clone(), stored), messages.len());
        let unchanged = CallIds::unchanged();
        let write = |part: &Part| write(part, provider);
        let shaper = TurnShaper { rules: &RULES, model: self.model, ids: &unchanged, write: &write };
        for turn in shaper.turns(messages, list.start())? {
            if push_plain(&turn, provider, &mut list) {
                continue;
            }
            let mut start = turn.start;
            match turn.content {
                TurnContent::Input { role, parts } => {
                    if let Some(item) = content::message(role, self.content(parts)?, turn.data) {
                        list.push(start, item);
                    }
                }
                TurnContent::Reply { message, .. } => {
                    let is_own = message.model.is_empty() || message.model == self.model.model;
                    for item in items::write(&message.content, provider, stored, is_own) {
                        list.push(start.take(), item);
                    }
                }
                TurnContent::Result(result) => list.push(start, self.tool_result(&result, turn.data)?),
                TurnContent::Media(media) => {
                    list.push(start, object([("role", "user".into()), ("content", media.into())]).into());
                }
            }
        }
        Ok(list.finish())
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

/// Writes a frequent turn directly as text, which is faster than building JSON values. Frequent turns are inputs and results with one
/// text, and replies with calls and at most one text. Returns `false`, and writes nothing, for any other turn.
fn push_plain(turn: &WireTurn<'_>, provider: &str, list: &mut WireList<'_>) -> bool {
    match &turn.content {
        TurnContent::Input { role, parts } => {
            let texts = plain_texts(parts, provider).filter(|texts| texts.len() == 1 && turn.data.is_none());
            let Some(texts) = texts else { return false };
            list.push_text(turn.start, false, |out| {
                out.push_str(r#"{"role":"#);
                write_text(out, role);
                out.push_str(r#","content":"#);
                write_lines(out, "", &texts);
                out.push('}');
            });
        }
        TurnContent::Reply { message, .. } if is_plain_reply(message, None, provider) => {
            let mut texts = message.content.iter().filter(|part| part.as_text().is_some());
            // Several texts may belong to one item, which only `items::write` handles.
            if texts.next().is_some() && texts.next().is_some() {
                return false;
            }
            let mut start = turn.start;
            for part in &message.content {
                if let Some(text) = part.as_text().filter(|text| !text.is_empty()) {
                    list.push_text(start.take(), false, |out| {
                        out.push_str(r#"{"role":"assistant","content":"#);
                        write_text(out, text);
                        out.push('}');
                    });
                } else if let Some(call) = part.as_tool_call() {
                    list.push_text(start.take(), false, |out| {
                        out.push_str(r#"{"type":"function_call","call_id":"#);
                        write_text(out, &call.id);
                        out.push_str(r#","name":"#);
                        write_text(out, &call.name);
                        out.push_str(r#","arguments":"#);
                        write_text(out, call.args.text());
                        out.push('}');
                    });
                }
            }
        }
        TurnContent::Result(result) => {
            let texts = plain_texts(&result.parts, provider).filter(|texts| texts.len() == 1);
            let Some(texts) = texts.filter(|_| turn.data.is_none()) else { return false };
            list.push_text(turn.start, false, |out| {
                out.push_str(r#"{"type":"function_call_output","call_id":"#);
                write_text(out, result.call_id);
                out.push_str(r#","output":"#);
                write_lines(out, content::failure_prefix(result.message, &texts), &texts);
                out.push('}');
            });
        }
        TurnContent::Reply { .. } | TurnContent::Media(_) => return false,
    }
    true
}

/// Writes a part of a content list. Returns `None` for opaque parts of other providers, and for parts that are not content, such as
/// thinking.
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
