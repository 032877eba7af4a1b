//! Captured content in the JSON form of the conventions: messages with `role` and `parts`, system instructions, and definitions of tools.
//!
//! Source: the JSON schemas in the repository <https://github.com/open-telemetry/semantic-conventions-genai>. A part for which the
//! conventions have no type keeps the library's own type, which the schemas allow. The provider data of parts is left
//! out. An opaque part is recorded whole.

use serde_json::{Map, Value, json};

use crate::message::{Content, Media, MediaSource, Message, Part, ProviderTool, StopReason};
use crate::model::ModelRequest;

pub(super) fn input<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Value {
    messages.into_iter().filter_map(message).collect()
}

pub(super) fn output(reply: &Message) -> Value {
    let mut all = message(reply);
    if let (Some(message), Some(reply)) = (&mut all, reply.as_assistant()) {
        // Earlier versions of the conventions require the reason in the message. The newest version has it only in
        // `gen_ai.response.finish_reasons`.
        message["finish_reason"] = finish_reason(&reply.stop_reason).into();
    }
    all.into_iter().collect()
}

pub(super) fn instructions(system: &str) -> Value {
    json!([text(system)])
}

/// Returns the type and the name of each tool of a request. Descriptions and schemas are long, so they are left out, as the conventions
/// advise.
pub(super) fn definitions(request: &ModelRequest) -> Value {
    let functions = request.tools.iter().map(|tool| json!({"type": "function", "name": tool.name()}));
    let managed = request.managed_tools.iter().map(|tool| {
        let name = tool.name().replace(' ', "_");
        json!({"type": name, "name": name})
    });
    functions.chain(managed).collect()
}

/// Returns the name that the conventions of OpenTelemetry have for the reason why a reply ended.
pub(super) fn finish_reason(reason: &StopReason) -> &str {
    match reason {
        StopReason::ToolUse => "tool_call",
        StopReason::MaxTokens | StopReason::ContextFull => "length",
        StopReason::Error | StopReason::Aborted => "error",
        StopReason::Stop | StopReason::ContentFilter | StopReason::Pause | StopReason::Other(_) => {
            reason.as_str()
        }
    }
}

/// Returns the JSON form of a message, or `None` if the message is not sent to a model.
fn message(message: &Message) -> Option<Value> {
    let of = |role: &str, content: &[Part]| json!({"role": role, "parts": parts(content)});
    Some(match message {
        Message::User(user) => of("user", &user.content),
        Message::Assistant(reply) => of("assistant", &reply.content),
        Message::ToolResult(result) => {
            let response = json!({
                "type": "tool_call_response",
                "id": result.call_id,
                "response": response(&result.content_for_model()),
            });
            json!({"role": "tool", "parts": [response]})
        }
        Message::Custom(custom) => {
            let role = if matches!(&*custom.kind, "system" | "developer") { "system" } else { "user" };
            of(role, custom.for_model.as_deref()?)
        }
        Message::Unknown(_) => return None,
    })
}

fn response(content: &[Part]) -> Value {
    match content.iter().map(Part::as_text).collect::<Option<String>>() {
        Some(text) => text.into(),
        None => parts(content),
    }
}

fn parts(content: &[Part]) -> Value {
    content.iter().flat_map(part).collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "content": text})
}

/// Returns the JSON forms of a part. The call of a tool that the provider ran becomes two parts, the call and its result.
fn part(part: &Part) -> Vec<Value> {
    vec![match &part.content {
        Content::Text(content) => text(content),
        Content::Thinking { text, .. } => json!({"type": "reasoning", "content": text}),
        Content::Refusal(content) => json!({"type": "refusal", "content": content}),
        Content::Image(media) => media_part("image", media),
        Content::Document(media) => media_part("document", media),
        Content::Audio(media) => media_part("audio", media),
        Content::ToolCall(call) => {
            json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args})
        }
        Content::ProviderTool(tool) => return provider_tool_parts(tool),
        Content::Unknown(value) => json!({"type": "unknown", "content": value}),
        Content::Resource(_) | Content::ResourceLink(_) | Content::Opaque(_) => {
            // These parts serialize as objects with a `type`, as the conventions require.
            json!(Part::new(part.content.clone()))
        }
    }]
}

fn media_part(modality: &str, media: &Media) -> Value {
    let mut part = Map::new();
    let (kind, field, value) = match &media.source {
        MediaSource::Data(bytes) => ("blob", "content", bytes.to_base64()),
        MediaSource::Url(url) => ("uri", "uri", url.clone()),
        MediaSource::FileId(id) => ("file", "file_id", id.clone()),
    };
    part.insert("type".to_owned(), kind.into());
    part.insert("modality".to_owned(), modality.into());
    if let Some(mime_type) = &media.mime_type {
        part.insert("mime_type".to_owned(), mime_type.as_str().into());
    }
    part.insert(field.to_owned(), value.into());
    Value::Object(part)
}

fn provider_tool_parts(tool: &ProviderTool) -> Vec<Value> {
    let ProviderTool { id, name, input, output, is_error } = tool;
    let mut parts = Vec::new();
    if input.is_some() || output.is_none() {
        let call = json!({"type": name, "input": input});
        parts.push(json!({"type": "server_tool_call", "id": id, "name": name, "server_tool_call": call}));
    }
    if let Some(output) = output {
        let response = json!({"type": name, "output": output, "is_error": is_error});
        parts.push(
            json!({"type": "server_tool_call_response", "id": id, "server_tool_call_response": response}),
        );
    }
    parts
}
