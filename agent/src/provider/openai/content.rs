//! Writes the messages and tool choices that both protocols of OpenAI share.

use serde_json::{Value, json};

use crate::message::{Part, ToolResultMessage};
use crate::model::{ModelError, ModelErrorKind, ToolChoice};
use crate::provider::media_types::UnsupportedPart;
use crate::provider::parts::{JsonObject, add_rest};
use crate::provider::turns::{WireRules, plain_text, write_parts};

pub(super) fn invalid(what: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, what)
}

/// Writes a single plain text as a string, and any other content as a list.
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

/// The prefix of a failed result's text.
const FAILED: &str = "Error: ";
/// The text of a failed result whose own text is empty.
const NO_REASON: &str = "Error: the tool gave no reason";

/// Returns the text to put before the texts of a result. The returned text is empty if the result is not an error.
pub(super) fn failure_prefix(result: &ToolResultMessage, texts: &[&str]) -> &'static str {
    match texts {
        _ if !result.is_error => "",
        [""] => NO_REASON,
        _ => FAILED,
    }
}

/// Puts `Error:` before the content of a failed result, because these APIs have no field for failures. An empty text becomes
/// [`NO_REASON`]. `text_kind` is the type of a text in a list. The caller has checked that the result failed.
pub(super) fn mark_failed(content: &mut Value, text_kind: &str) {
    match content {
        Value::String(text) if text.is_empty() => text.push_str(NO_REASON),
        Value::String(text) => text.insert_str(0, FAILED),
        Value::Array(parts) => parts.insert(0, json!({"type": text_kind, "text": "Error:"})),
        _ => {}
    }
}

/// Creates a message with this content and the other fields from its provider data. Returns `None` for a message without content, unless
/// the message had no content in a request from which it was read.
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

/// Checks the name of a schema for the reply.
///
/// Source: `name` in OpenAI's [reference](https://platform.openai.com/docs/api-reference/chat/create): letters, digits, `_` and
/// `-`, at most 64.
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

/// Creates the error for a request with more than `max` stop sequences.
pub(super) fn too_many_stops(max: usize) -> ModelError {
    invalid(format!("OpenAI takes at most {max} stop sequences")).with_code("too_many_stop_sequences")
}

/// Writes the tool choice. `named` writes the choice of one tool.
pub(super) fn tool_choice(choice: &ToolChoice, named: impl Fn(&str) -> Value) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => named(name),
    }
}
