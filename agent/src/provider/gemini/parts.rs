//! Converts between Gemini's parts and [`Part`].
//!
//! Fields that a `Part` does not have, such as `thoughtSignature`, become its provider data and are sent back. A call or a result of a
//! tool that Gemini runs is kept whole.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::message::{
    Content, Media, MediaSource, Part, ProviderData, ProviderTool, ToolArguments, ToolCall,
};
use crate::provider::body::{write_json, write_text};
use crate::provider::media_types::{UnsupportedPart, check_media, document_text, media_type};
use crate::provider::parts::{
    JsonObject, JsonSource, add_rest, arguments_object, link_text, object, resource_text, some_text,
    take_text, text, with_rest,
};

/// Reads a part. `args` is the JSON text of a call's arguments, if the caller has it. A part of a reply has no fields that are null.
pub(super) fn read(provider: &str, part: Value, args: Option<String>, source: JsonSource) -> Part {
    let whole = |content: ProviderTool| {
        Part::new(Content::ProviderTool(Box::new(content)))
            .with_provider_data(ProviderData::new(provider, part.clone()))
    };
    if let Some(tool) = provider_tool(&part) {
        return whole(tool);
    }
    let Value::Object(mut fields) = part.clone() else { return Part::opaque(provider, part) };
    let Some(content) = content(&mut fields, args, source) else { return Part::opaque(provider, part) };
    with_rest(Part::new(content), provider, fields, source)
}

/// Moves the content of a part out of its fields. Returns `None` for an unknown kind of part.
fn content(fields: &mut JsonObject, args: Option<String>, source: JsonSource) -> Option<Content> {
    if let Some(Value::Object(call)) = fields.get_mut("functionCall") {
        let name = take_text(call, "name")?;
        let value = call.shift_remove("args").filter(|value| !value.is_null());
        if value.is_none() && source == JsonSource::Request {
            call.insert("args".to_owned(), Value::Null);
        }
        let arguments = match (args, value) {
            (Some(text), _) => ToolArguments::from(text),
            (None, Some(value)) => ToolArguments::from(value),
            (None, None) => ToolArguments::default(),
        };
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if call.is_empty() {
            fields.shift_remove("functionCall");
        }
        return Some(Content::ToolCall(ToolCall::new(id, name, arguments)));
    }
    if fields.contains_key("text") {
        let text = take_text(fields, "text")?;
        return Some(if fields.get("thought") == Some(&Value::Bool(true)) {
            fields.shift_remove("thought");
            Content::Thinking { text, redacted: false }
        } else {
            Content::Text(text)
        });
    }
    let media = media(fields)?;
    fields.shift_remove("inlineData");
    fields.shift_remove("fileData");
    Some(match media.mime_type.as_deref().and_then(|mime| mime.split('/').next()) {
        Some("image") => Content::Image(media),
        Some("audio") => Content::Audio(media),
        _ => Content::Document(media),
    })
}

/// Reads an image, audio or document. Returns `None` if the media would not be written back unchanged.
fn media(fields: &JsonObject) -> Option<Media> {
    let media = if let Some(data) = fields.get("inlineData") {
        Media::from_base64(text(data, "data")?, text(data, "mimeType")?).ok()?
    } else {
        let file = fields.get("fileData")?;
        let media = Media::url(text(file, "fileUri")?);
        match text(file, "mimeType") {
            Some(mime) => media.with_mime_type(mime),
            None => media,
        }
    };
    let (key, written) = write_media(&media);
    (fields.get(key) == Some(&written)).then_some(media)
}

/// The media types that Gemini accepts. Videos are sent as documents.
///
/// Source: Google's pages on [images](https://ai.google.dev/gemini-api/docs/image-understanding),
/// [audio](https://ai.google.dev/gemini-api/docs/audio), [documents](https://ai.google.dev/gemini-api/docs/document-processing)
/// and [input files](https://firebase.google.com/docs/ai-logic/input-file-requirements).
const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
const AUDIO: &[&str] = &[
    "audio/wav",
    "audio/mpeg",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/mp4",
    "audio/pcm",
    "audio/l16",
    "audio/webm",
    "audio/opus",
];
const DOCUMENTS: &[&str] = &["application/pdf", "text/*", "video/*"];

/// Returns a document as it is sent. A text whose media type Gemini does not accept, such as JSON, is sent as plain text.
fn document(media: &Media) -> Result<Cow<'_, Media>, UnsupportedPart> {
    let is_other = media_type(media).is_some_and(|mime| !mime.starts_with("text/"));
    if is_other && document_text(media).is_some() {
        return Ok(Cow::Owned(Media { mime_type: Some("text/plain".to_owned()), ..media.clone() }));
    }
    check_media(media, "a document", DOCUMENTS)
}

fn write_media(media: &Media) -> (&'static str, Value) {
    let mime = media.mime_type.as_deref();
    match &media.source {
        MediaSource::Data(bytes) => ("inlineData", json!({"mimeType": mime, "data": bytes.to_base64()})),
        MediaSource::Url(uri) | MediaSource::FileId(uri) => {
            let mut file = json!({"fileUri": uri});
            if let Some(mime) = mime {
                file["mimeType"] = mime.into();
            }
            ("fileData", file)
        }
    }
}

fn provider_tool(part: &Value) -> Option<ProviderTool> {
    let field = |value: &Value, key: &str| value.get(key).filter(|value| !value.is_null()).cloned();
    let (mut tool, inner) = if let Some(code) = part.get("executableCode") {
        let mut tool = ProviderTool::new("code_execution");
        tool.input = Some(code.clone());
        (tool, code)
    } else if let Some(result) = part.get("codeExecutionResult") {
        let mut tool = ProviderTool::new("code_execution");
        tool.output = Some(result.clone());
        tool.is_error = text(result, "outcome").is_some_and(|outcome| outcome != "OUTCOME_OK");
        (tool, result)
    } else if let Some(call) = part.get("toolCall") {
        let mut tool = ProviderTool::new(text(call, "toolType").unwrap_or("tool").to_lowercase());
        tool.input = Some(field(call, "args").unwrap_or_else(|| json!({})));
        (tool, call)
    } else {
        let response = part.get("toolResponse")?;
        let mut tool = ProviderTool::new(text(response, "toolType").unwrap_or("tool").to_lowercase());
        tool.output = Some(field(response, "response").unwrap_or_else(|| json!({})));
        (tool, response)
    };
    tool.id = some_text(inner, "id").map(str::to_owned);
    Some(tool)
}

/// Writes the `functionCall` of a call without provider data, exactly as [`write`] does.
pub(super) fn write_call(out: &mut String, call: &ToolCall) {
    out.push_str(r#""functionCall":{"name":"#);
    write_text(out, &call.name);
    out.push_str(r#","args":"#);
    write_json(out, &arguments_object(&call.args));
    out.push('}');
}

/// Writes a part. Returns `None` for parts that must not or need not be sent, such as empty texts and the thinking of other providers.
///
/// # Errors
/// Fails when Gemini does not accept the kind or the media type of the part.
pub(super) fn write(part: &Part, provider: &str) -> Result<Option<Value>, UnsupportedPart> {
    let rest = part.provider_data_of(provider);
    let media = |media: Cow<'_, Media>| {
        let (key, value) = write_media(&media);
        Value::Object(object([(key, value)]))
    };
    let written = match &part.content {
        Content::Text(text) | Content::Refusal(text) => {
            if text.is_empty() && rest.is_none() {
                return Ok(None);
            }
            json!({"text": text})
        }
        Content::Thinking { text, .. } => {
            if rest.is_none() {
                return Ok(None);
            }
            json!({"text": text, "thought": true})
        }
        Content::ToolCall(call) => {
            let call = object([("name", call.name.as_str().into()), ("args", arguments_object(&call.args))]);
            object([("functionCall", call.into())]).into()
        }
        Content::Image(image) => media(check_media(image, "an image", IMAGES)?),
        Content::Audio(sound) => media(check_media(sound, "sound", AUDIO)?),
        Content::Document(file) => media(document(file)?),
        Content::Resource(resource) => {
            let text = resource_text(resource).ok_or("a resource that is not text")?;
            json!({"text": text})
        }
        Content::ResourceLink(link) => json!({"text": link_text(link)}),
        Content::ProviderTool(_) => return Ok(rest.cloned()),
        Content::Opaque(opaque) => return Ok((opaque.provider == provider).then(|| opaque.data.clone())),
        Content::Unknown(_) => return Ok(None),
    };
    let Value::Object(mut written) = written else { return Ok(None) };
    add_rest(&mut written, rest);
    if let Some(Value::Object(call)) = written.get_mut("functionCall") {
        call.retain(|_, value| !value.is_null());
    }
    Ok(Some(written.into()))
}
