//! The scripted replies of a scenario.

use agent::ScriptedModel;
use agent::message::{StopReason, ToolArguments, Usage};
use agent::model::{ModelError, ModelErrorKind, ModelRequest, Reply, reply, reply_with};
use serde_json::Value;

/// A model that gives these replies, each part in one piece.
pub(crate) fn scripted(replies: &Value) -> ScriptedModel {
    ScriptedModel::new(replies.as_array().into_iter().flatten().map(one))
        .with_chunk_size(usize::MAX)
        .with_whole_arguments()
}

fn one(given: &Value) -> Reply {
    match given["template"].as_str() {
        None => parts(given, given["text"].as_str()),
        Some(template) => {
            let (template, given) = (template.to_owned(), given.clone());
            reply_with(move |request: &ModelRequest| {
                let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
                parts(&given, Some(&template.replace("{last}", &last)))
            })
        }
    }
}

/// In the order thinking, text, calls; then how it ends.
fn parts(given: &Value, text: Option<&str>) -> Reply {
    let mut parts = reply();
    if let Some(thinking) = given["thinking"].as_str() {
        parts = parts.thinking(thinking);
    }
    if let Some(text) = text {
        parts = parts.text(text);
    }
    for call in given["calls"].as_array().into_iter().flatten() {
        let args = match &call["args"] {
            Value::String(text) => ToolArguments::from(text.as_str()),
            // Not streamed, like no arguments.
            Value::Null => ToolArguments::default(),
            value => ToolArguments::from(value.clone()),
        };
        let word = |key: &str| call[key].as_str().unwrap_or_default();
        parts = parts.tool_call_with_id(word("id"), word("name"), args);
    }
    if let Ok(usage) = serde_json::from_value::<Usage>(given["usage"].clone()) {
        parts = parts.usage(usage);
    }
    if let Some(reason) = given["stop_reason"].as_str() {
        parts = parts.stop_reason(StopReason::from(reason));
    }
    if let Some(error) = given["error"].as_str().or(given["throws"].as_str()) {
        parts = parts.error(ModelError::new(ModelErrorKind::Other, error));
    }
    match given["aborted"].as_str() {
        Some(reason) => parts.error(ModelError::aborted(reason)),
        None => parts,
    }
}
