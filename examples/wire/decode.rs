//! Decodes a recorded response into provider-neutral messages.

use std::error::Error;

use agent::message::{AssistantMessage, Content, Part};
use agent::model::{ModelError, ModelStream, StepCx};
use agent::provider::ReplyReader;
use agent::{Value, json};

use crate::Options;

/// Decodes the body of a response. Returns the line to print.
pub(crate) fn decode(options: &Options, file: &str, body: &[u8]) -> Result<Value, Box<dyn Error>> {
    let info = options.info("");
    let protocol = &*options.protocol;
    let mut reader = ReplyReader::new(protocol, &info, options.status, Vec::new());
    let mut events = Vec::new();
    let pushed = body
        .chunks(options.chunk.min(body.len().max(1)))
        .try_for_each(|chunk| reader.push(chunk, &mut events));
    let error = pushed.and_then(|()| reader.finish(protocol, &mut events)).err();
    let events: Vec<_> = events.into_iter().map(Ok).chain(error.map(Err)).collect();
    let mut stream = ModelStream::from_events(&StepCx::new(), &info, events);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut error = None;
    while let Some(event) = runtime.block_on(stream.next()) {
        error = error.or(event.err());
    }
    Ok(line(file, &stream.into_partial(), error.as_ref()))
}

fn line(file: &str, message: &AssistantMessage, error: Option<&ModelError>) -> Value {
    let some = |text: String| if text.is_empty() { Value::Null } else { text.into() };
    let has_usage = message.usage.raw.is_some() || !message.usage.is_empty();
    let mut usage = serde_json::to_value(&message.usage).unwrap_or_default();
    let provider_usage = usage.as_object_mut().and_then(|usage| usage.shift_remove("raw"));
    let stopped = error.is_none();
    let withheld = message.stop_reason.as_str() == "content_filter";
    json!({
        "file": file,
        "text": some(message.text()),
        "thinking": some(message.thinking()),
        "refusal": message.refusal().or_else(|| message.error.clone().filter(|_| withheld && stopped)),
        "tool_calls": message.tool_calls().map(|call| {
            let args = call.args.value().filter(Value::is_object);
            let args = args.unwrap_or_else(|| json!({"__unparseable__": call.args.text()}));
            json!({"id": call.id, "name": call.name, "args": args})
        }).collect::<Vec<_>>(),
        "stop_reason": stopped.then(|| message.stop_reason.as_str()),
        "provider_stop_reason": message.provider_stop_reason,
        "usage": if has_usage { usage } else { Value::Null },
        "provider_usage": provider_usage,
        "opaque": opaque(message),
        "other_parts": message.content.iter().filter_map(other).collect::<Vec<_>>(),
        "error": error.map(|error| json!({
            "kind": error.kind().as_str(),
            "status": error.status(),
            "code": error.code(),
            "message": error.message(),
            "retryable": error.is_retryable(),
        })),
        "partial": error.is_some() && !message.content.is_empty(),
    })
}

/// Lists the opaque data of the provider, such as signatures, each with the kind of its part in `on`. If the data of a part has one of the
/// keys in `state`, only the value of this key is shown.
fn opaque(message: &AssistantMessage) -> Vec<Value> {
    let mut found = Vec::new();
    for part in &message.content {
        let on = match &part.content {
            Content::Text(_) => "text",
            Content::Thinking { redacted: true, .. } => "redacted_thinking",
            Content::Thinking { .. } => "thinking",
            Content::ToolCall(_) => "tool_call",
            Content::ProviderTool(_) => "provider_tool",
            _ => "other",
        };
        let Some(data) = part.provider_data.as_ref().map(|data| &data.data) else { continue };
        let state = ["signature", "data", "encrypted_content", "thoughtSignature"];
        match state.iter().find_map(|key| data.get(*key).filter(|value| !value.is_null())) {
            Some(value) => found.push(json!({"on": on, "value": value})),
            None => found.push(json!({"on": on, "value": data})),
        }
    }
    for (key, value) in message.provider_data.iter().filter_map(|data| data.data.as_object()).flatten() {
        match (key.as_str(), value) {
            ("reasoning_details", Value::Array(details)) => {
                found.extend(details.iter().map(|detail| json!({"on": "thinking", "value": detail})));
            }
            _ => found.push(json!({"on": "message", "value": {key: value}})),
        }
    }
    found
}

/// Returns the first key of a part in snake case, for example `executable_code`. Parts of Gemini have no `type`: a key names their kind.
fn field(value: &Value) -> Option<String> {
    let key = value.as_object()?.keys().find(|key| *key != "thoughtSignature")?;
    Some(key.chars().fold(String::new(), |mut word, c| {
        if c.is_ascii_uppercase() {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
        word
    }))
}

/// Returns the provider's name for a part that is not a text, refusal, thinking or call.
fn other(part: &Part) -> Option<String> {
    let word = |value: &Value| value.get("type").and_then(Value::as_str).map(str::to_owned);
    match &part.content {
        Content::Text(_) | Content::Refusal(_) | Content::Thinking { .. } | Content::ToolCall(_) => None,
        Content::Opaque(opaque) => {
            let found = word(&opaque.data).or_else(|| field(&opaque.data));
            Some(found.unwrap_or_else(|| "unknown".to_owned()))
        }
        Content::ProviderTool(tool) => {
            let data = part.provider_data.as_ref().map(|data| &data.data);
            let by_data = data.and_then(|data| word(data).or_else(|| field(data)));
            Some(by_data.unwrap_or_else(|| tool.name.clone()))
        }
        Content::Image(_) => Some("image".to_owned()),
        Content::Document(_) => Some("document".to_owned()),
        Content::Audio(_) => Some("audio".to_owned()),
        _ => Some("other".to_owned()),
    }
}
