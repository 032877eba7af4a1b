//! Secrets in arguments that a person changed without having seen them.

use serde_json::Value;

use crate::loop_core::ApprovalRequest;
use crate::message::ToolArguments;
use crate::tool::secrets::SecretArguments;

/// Puts the secrets that were sent where a person left the marker for them.
///
/// # Errors
/// Returns the path of a marker for which no value is known.
pub(super) fn with_sent_secrets(
    secrets: &SecretArguments,
    request: &ApprovalRequest,
    mut edited: Value,
) -> Result<Value, String> {
    let tool = &request.call.name;
    let sent = request.args_with_secrets().and_then(ToolArguments::value);
    if let (Some(shown), Some(sent)) = (request.call.args.value(), sent) {
        fill(&mut edited, &shown, &sent);
    }
    let left = secrets.value(tool, &edited).and_then(|hidden| marker(&edited, &hidden, String::new()));
    left.map_or(Ok(edited), Err)
}

/// Replaces what is as it was shown by what was sent.
fn fill(edited: &mut Value, shown: &Value, sent: &Value) {
    if edited == shown {
        edited.clone_from(sent);
        return;
    }
    match (edited, shown, sent) {
        (Value::Object(edited), Value::Object(shown), Value::Object(sent)) => {
            for (key, value) in edited {
                if let (Some(shown), Some(sent)) = (shown.get(key), sent.get(key)) {
                    fill(value, shown, sent);
                }
            }
        }
        // Items have no names: of one that was changed or moved, it is not known which secret it had.
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

/// Finds a marker in the place of a secret.
fn marker(edited: &Value, hidden: &Value, path: String) -> Option<String> {
    match (edited, hidden) {
        (Value::Object(edited), Value::Object(hidden)) => {
            edited.iter().find_map(|(key, value)| marker(value, hidden.get(key)?, format!("{path}/{key}")))
        }
        (Value::Array(edited), Value::Array(hidden)) => {
            let mut items = edited.iter().zip(hidden).enumerate();
            items.find_map(|(at, (value, hidden))| marker(value, hidden, format!("{path}/{at}")))
        }
        _ => (*edited == crate::args::hidden() && edited == hidden).then_some(path),
    }
}
