//! Restores secrets in arguments that a person changed without seeing them.

use serde_json::Value;

use crate::loop_core::ApprovalRequest;
use crate::message::ToolArguments;
use crate::tool::secrets::SecretArguments;

/// Returns the changed arguments, with the secrets that the model sent wherever the person left their markers.
///
/// # Errors
/// Returns the path of a marker whose secret is unknown.
pub(super) fn with_sent_secrets(
    secrets: &SecretArguments,
    request: &ApprovalRequest,
    mut edited: Value,
) -> Result<Value, String> {
    let tool = &request.call.name;
    let sent = request.args_with_secrets().and_then(ToolArguments::value);
    if let (Some(shown), Some(sent)) = (request.call.args.value(), sent) {
        restore_unchanged(&mut edited, &shown, &sent);
    }
    let remaining =
        secrets.value(tool, &edited).and_then(|hidden| find_marker(&edited, &hidden, String::new()));
    remaining.map_or(Ok(edited), Err)
}

/// Replaces values that are unchanged since they were shown with those that were sent.
fn restore_unchanged(edited: &mut Value, shown: &Value, sent: &Value) {
    if edited == shown {
        edited.clone_from(sent);
        return;
    }
    match (edited, shown, sent) {
        (Value::Object(edited), Value::Object(shown), Value::Object(sent)) => {
            for (key, value) in edited {
                if let (Some(shown), Some(sent)) = (shown.get(key), sent.get(key)) {
                    restore_unchanged(value, shown, sent);
                }
            }
        }
        // Items have no names, so the secret of an item that was changed or moved is unknown.
        (Value::Array(edited), Value::Array(shown), Value::Array(sent)) if edited.len() == shown.len() => {
            for ((value, shown), sent) in edited.iter_mut().zip(shown).zip(sent) {
                if value == shown {
                    value.clone_from(sent);
                }
            }
        }
        _ => {}
    }
}

/// Returns the path of the first marker that is in the position of a secret. `hidden` is `edited` with all secrets replaced by markers.
fn find_marker(edited: &Value, hidden: &Value, path: String) -> Option<String> {
    match (edited, hidden) {
        (Value::Object(edited), Value::Object(hidden)) => edited
            .iter()
            .find_map(|(key, value)| find_marker(value, hidden.get(key)?, format!("{path}/{key}"))),
        (Value::Array(edited), Value::Array(hidden)) => {
            let mut items = edited.iter().zip(hidden).enumerate();
            items.find_map(|(at, (value, hidden))| find_marker(value, hidden, format!("{path}/{at}")))
        }
        _ => (*edited == crate::args::hidden() && edited == hidden).then_some(path),
    }
}
