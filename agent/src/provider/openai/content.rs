//! Writes the messages and tool choices that both protocols of OpenAI share.

use serde_json::{Value, json};

use crate::message::{Part, ToolResultMessage};
use crate::model::{ModelError, ModelErrorKind, ToolChoice};
use crate::provider::media_types::UnsupportedPart;
use crate::provider::parts::{JsonObject, add_rest, some_text, text};
use crate::provider::turns::{WireRules, plain_text, write_parts};

pub(super) fn invalid(what: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, what)
}

pub(super) fn content(
    parts: &[Part],
    provider: &str,
    rules: &WireRules,
    write: impl Fn(&Part) -> Result<Option<Value>, UnsupportedPart>,
) -> Result<Value, ModelError> {
    match plain_text(parts, provider) {
        Some(text) => Ok(text.into()),
        None => Ok(write_parts(parts, rules, write)?.into()),
    }
}

const FAILED: &str = "Error: ";
const NO_REASON: &str = "Error: the tool gave no reason";

pub(super) fn failure_prefix(result: &ToolResultMessage, texts: &[&str]) -> &'static str {
    match texts {
        _ if !result.is_error => "",
        [""] => NO_REASON,
        _ => FAILED,
    }
}

/// Puts `Error:` before the content of a failed result, because OpenAI's APIs have no field for failures. `text_kind` is the type of a
/// text in a list.
pub(super) fn mark_failed(content: &mut Value, text_kind: &str) {
    match content {
        Value::String(text) if text.is_empty() => text.push_str(NO_REASON),
        Value::String(text) => text.insert_str(0, FAILED),
        Value::Array(parts) => parts.insert(0, json!({"type": text_kind, "text": "Error:"})),
        _ => {}
    }
}

/// Creates a message. Returns `None` if the content is empty, unless `data` records that the original message also had empty content.
pub(super) fn message(role: &str, content: Value, data: Option<&Value>) -> Option<Value> {
    let rest = data.and_then(|data| data.get("message"));
    let keeps_content = rest.is_some_and(|rest| rest.get("content").is_some());
    if content.as_array().is_some_and(Vec::is_empty) && !keeps_content {
        return None;
    }
    let mut message = JsonObject::new();
    message.insert("role".into(), role.into());
    message.insert("content".into(), content);
    add_rest(&mut message, rest);
    Some(message.into())
}

/// Returns the id of a call of another kind than a function, such as `{"id": "c", "type": "custom", "custom": {…}}`.
pub(super) fn call_id_of(item: &Value) -> Option<&str> {
    let is_call = item.get(text(item, "type")?)?.is_object();
    some_text(item, "id").filter(|_| is_call)
}

/// Checks the name of a reply's schema against OpenAI's rules for
/// [`name`](https://platform.openai.com/docs/api-reference/chat/create): letters, digits, `_` and `-`, at most 64.
pub(super) fn check_output_name(name: &str) -> Result<(), ModelError> {
    const MAX: usize = 64;
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=MAX).contains(&name.len()) && name.bytes().all(is_valid) {
        return Ok(());
    }
    let text = format!(
        "{name:?} is not a name for the schema of a reply: OpenAI takes 1 to {MAX} letters, digits, `_` and `-`"
    );
    Err(invalid(text).with_code("invalid_output_name"))
}

pub(super) fn too_many_stops(max: usize) -> ModelError {
    invalid(format!("OpenAI takes at most {max} stop sequences")).with_code("too_many_stop_sequences")
}

pub(super) fn tool_choice(choice: &ToolChoice, named: impl Fn(&str) -> Value) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => named(name),
    }
}
