//! Converts between Anthropic's content blocks and parts.
//!
//! Fields of a block that have no place in [`Content`] stay with the part as provider data and are written back unchanged: signatures,
//! citations, `caller` fields, and fields that are added to the API in the future.

use serde_json::{Value, json};

use crate::message::{CacheMark, Content, Media, MediaSource, Part, ProviderTool, ToolArguments, ToolCall};
use crate::provider::body::{write_json, write_text};
use crate::provider::call_ids::{CallIds, digest};
use crate::provider::media_types::{IMAGES, UnsupportedPart, check_media, document_text};
use crate::provider::parts::{
    JsonObject, JsonSource, add_rest, arguments_object, link_text, object, resource_text, take_text,
    with_rest,
};
use crate::provider::turns::WireResult;

/// Reads a block as a part. `input` is the text of a call's input as the provider sent it, if the decoder has this text.
pub(super) fn read(provider: &str, block: Value, input: Option<String>, source: JsonSource) -> Part {
    let Value::Object(mut fields) = block else { return Part::opaque(provider, block) };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match content(&kind, &mut fields, input) {
        Some(content) => {
            if !matches!(content, Content::ProviderTool(_)) {
                fields.shift_remove("type");
            }
            if source == JsonSource::Reply {
                // Null fields and empty lists are dropped, because they carry no state to send back.
                fields.retain(|_, value| {
                    !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
                });
            }
            with_rest(Part::new(content), provider, fields, source)
        }
        None => Part::opaque(provider, fields),
    }
}

/// Moves the content of a block out of its fields. If no variant of [`Content`] fits the block, returns `None` and changes no field.
fn content(kind: &str, fields: &mut JsonObject, input: Option<String>) -> Option<Content> {
    Some(match kind {
        "text" => Content::Text(take_text(fields, "text")?),
        "thinking" => {
            Content::Thinking { text: take_text(fields, "thinking").unwrap_or_default(), redacted: false }
        }
        "redacted_thinking" => Content::Thinking { text: String::new(), redacted: true },
        "tool_use" => {
            let arguments = match (input, fields.get("input")) {
                (Some(text), _) => ToolArguments::from(text),
                (None, None | Some(Value::Null)) => ToolArguments::default(),
                (None, Some(value)) => ToolArguments::from(value.clone()),
            };
            fields.get("name").and_then(Value::as_str)?;
            let (id, name) = (take_text(fields, "id").unwrap_or_default(), take_text(fields, "name")?);
            fields.shift_remove("input");
            Content::ToolCall(ToolCall::new(id, name, arguments))
        }
        "image" | "document" => {
            let media = read_source(fields.get("source")?)?;
            fields.shift_remove("source");
            if kind == "image" {
                Content::Image(media)
            } else {
                let name = take_text(fields, "title");
                Content::Document(Media { name, ..media })
            }
        }
        "server_tool_use" | "mcp_tool_use" => {
            let mut tool = ProviderTool::new(take_text(fields, "name")?);
            tool.id = take_text(fields, "id");
            let streamed = input.and_then(|text| serde_json::from_str(&text).ok());
            tool.input = streamed.or_else(|| fields.get("input").cloned());
            fields.shift_remove("input");
            Content::ProviderTool(Box::new(tool))
        }
        kind if kind != "tool_result" && kind.ends_with("_tool_result") => {
            let mut tool = ProviderTool::new(kind.trim_end_matches("_tool_result"));
            tool.id = take_text(fields, "tool_use_id");
            tool.output = fields.shift_remove("content");
            let failed = tool.output.as_ref().and_then(|output| output.get("type")).and_then(Value::as_str);
            tool.is_error = fields.get("is_error") == Some(&Value::Bool(true))
                || failed.is_some_and(|kind| kind.ends_with("_error"));
            Content::ProviderTool(Box::new(tool))
        }
        _ => return None,
    })
}

/// Reads the source of an image or a document. Returns `None` if [`write_source`] would write it back differently.
fn read_source(source: &Value) -> Option<Media> {
    let field = |key: &str| source.get(key).and_then(Value::as_str);
    let media = match field("type")? {
        "base64" => Media::from_base64(field("data")?, field("media_type")?).ok()?,
        "text" => Media::data(field("data")?.as_bytes(), field("media_type")?),
        "url" => Media::url(field("url")?),
        "file" => Media::file_id(field("file_id")?),
        _ => return None,
    };
    (write_source(&media) == *source).then_some(media)
}

/// The document types that Anthropic accepts. Documents at a URL must be PDFs.
///
/// Source: Anthropic's pages on [PDF support](https://platform.claude.com/docs/en/build-with-claude/pdf-support) and on
/// [files](https://platform.claude.com/docs/en/build-with-claude/files), and the types of its SDK.
const DOCUMENTS: &[&str] = &["application/pdf", "text/plain"];

/// Writes the source of a document. Text in memory becomes `text/plain`, because Anthropic accepts no other text type.
fn document_source(media: &Media) -> Result<Value, UnsupportedPart> {
    if let Some(text) = document_text(media) {
        return Ok(json!({"type": "text", "media_type": "text/plain", "data": text}));
    }
    let media = match media.source {
        MediaSource::FileId(_) => check_media(media, "a document", DOCUMENTS)?,
        _ => check_media(media, "a document", &["application/pdf", "text in memory"])?,
    };
    Ok(write_source(&media))
}

fn write_source(media: &Media) -> Value {
    let mime = media.mime_type.as_deref().unwrap_or_default();
    match &media.source {
        MediaSource::Data(bytes) => match str::from_utf8(bytes) {
            Ok(text) if mime == "text/plain" => json!({"type": "text", "media_type": mime, "data": text}),
            _ => Value::Object(object([
                ("type", "base64".into()),
                ("media_type", mime.into()),
                ("data", bytes.to_base64().into()),
            ])),
        },
        MediaSource::Url(url) => json!({"type": "url", "url": url}),
        MediaSource::FileId(id) => json!({"type": "file", "file_id": id}),
    }
}

/// The message and the API version for which a block is written. They decide which blocks are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockTarget {
    pub(super) is_assistant: bool,
    /// Whether the API version is `2026-10-21` or later, which allows no documents in assistant messages and no citations in user texts.
    pub(super) is_2026: bool,
}

/// Writes a part as a block, or returns `None` if the part is not sent. A text of only whitespace without provider data is not sent,
/// because Anthropic does not accept such texts in requests, although its replies contain them.
///
/// # Errors
/// Fails when Anthropic does not accept the kind or the media type of the part.
pub(super) fn write(
    part: &Part,
    provider: &str,
    target: BlockTarget,
    ids: &CallIds,
) -> Result<Option<Value>, UnsupportedPart> {
    let rest = part.provider_data_of(provider);
    let mut block = match &part.content {
        Content::Text(text) | Content::Refusal(text) => {
            if text.trim().is_empty() && rest.is_none() {
                return Ok(None);
            }
            object([("type", "text".into()), ("text", text.as_str().into())])
        }
        Content::Thinking { text, redacted } => {
            if rest.is_none() {
                return Ok(None);
            }
            if *redacted {
                object([("type", "redacted_thinking".into())])
            } else {
                object([("type", "thinking".into()), ("thinking", text.as_str().into())])
            }
        }
        Content::ToolCall(call) => {
            let (id, input) = (ids.get(&call.id), arguments_object(&call.args));
            object([
                ("type", "tool_use".into()),
                ("id", id.into()),
                ("name", call.name.as_str().into()),
                ("input", input),
            ])
        }
        Content::Image(media) => {
            let media = check_media(media, "an image", IMAGES)?;
            object([("type", "image".into()), ("source", write_source(&media))])
        }
        Content::Document(media) => {
            if target.is_assistant && target.is_2026 {
                let what = "a document in a message of the assistant, which version 2026-10-21 refuses";
                return Err(what.into());
            }
            let mut block = object([("type", "document".into()), ("source", document_source(media)?)]);
            if let Some(name) = &media.name {
                block.insert("title".into(), name.clone().into());
            }
            block
        }
        Content::Audio(_) => return Err("sound".into()),
        Content::Resource(resource) => {
            let text = resource_text(resource).ok_or("a resource that is not text")?;
            if text.trim().is_empty() {
                return Ok(None);
            }
            object([("type", "text".into()), ("text", text.into())])
        }
        Content::ResourceLink(link) => object([("type", "text".into()), ("text", link_text(link).into())]),
        Content::ProviderTool(tool) => {
            if rest.is_none() {
                return Ok(None);
            }
            let mut block = JsonObject::new();
            let kind = rest.and_then(|rest| rest.get("type")?.as_str());
            let is_result = tool.output.is_some() || kind.is_some_and(|kind| kind.ends_with("_tool_result"));
            let (id, key) = if is_result { ("tool_use_id", "content") } else { ("id", "input") };
            block.extend(tool.id.clone().map(|value| (id.to_owned(), value.into())));
            if !is_result {
                block.insert("name".into(), tool.name.clone().into());
            }
            block.extend(tool.output.clone().or(tool.input.clone()).map(|value| (key.to_owned(), value)));
            block
        }
        Content::Opaque(opaque) => {
            return Ok((opaque.provider == provider).then(|| opaque.data.clone()));
        }
        Content::Unknown(_) => return Ok(None),
    };
    add_rest(&mut block, rest);
    if target.is_2026 && !target.is_assistant && block.get("type").and_then(Value::as_str) == Some("text") {
        block.shift_remove("citations");
    }
    if let Some(mark) = part.cache {
        block.insert("cache_control".into(), cache_control(mark));
    }
    Ok(Some(Value::Object(block)))
}

/// Writes a call that has no provider data, in the same form as [`write`].
pub(super) fn write_call(out: &mut String, call: &ToolCall, ids: &CallIds) {
    out.push_str(r#"{"type":"tool_use","id":"#);
    write_text(out, ids.get(&call.id));
    out.push_str(r#","name":"#);
    write_text(out, &call.name);
    out.push_str(r#","input":"#);
    write_json(out, &arguments_object(&call.args));
    out.push('}');
}

pub(super) fn write_text_block(out: &mut String, text: &str) {
    out.push_str(r#"{"type":"text","text":"#);
    write_text(out, text);
    out.push('}');
}

/// Writes the block of a result whose content is a single text without provider data.
pub(super) fn write_result(out: &mut String, result: &WireResult<'_>, text: &str) {
    out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
    write_text(out, result.call_id);
    if !text.trim().is_empty() {
        out.push_str(r#","content":"#);
        write_text(out, text);
    }
    if result.message.is_error {
        out.push_str(r#","is_error":true"#);
    }
    out.push('}');
}

pub(super) fn cache_control(mark: CacheMark) -> Value {
    match mark {
        CacheMark::FiveMinutes => json!({"type": "ephemeral", "ttl": "5m"}),
        CacheMark::Hour => json!({"type": "ephemeral", "ttl": "1h"}),
        CacheMark::Usual => json!({"type": "ephemeral"}),
    }
}

pub(super) fn is_safe_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns the id with `_` for all characters but `[a-zA-Z0-9_-]`, or `call` for an empty id. A `number` above 0 adds a digest of the id
/// and the number.
pub(super) fn safe_id(id: &str, number: u32) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let safe: String = id.chars().map(safe).collect();
    match (safe.is_empty(), number) {
        (false, 0) => safe,
        (true, 0) => "call".to_owned(),
        (_, number) => format!("{safe}_{}", digest(id, number, 6)),
    }
}
