//! Interprets Anthropic's errors.

use serde_json::Value;

use crate::model::ModelErrorKind as K;
use crate::provider::failure::{self, ErrorReport};
use crate::provider::parts::some_text;

/// Reads the report in a body of the form `{"type": "error", "error": {"type", "message"}, "request_id"}`.
pub(super) fn read_report(body: &Value) -> ErrorReport {
    let error = failure::find_error(body).unwrap_or(body);
    let code = some_text(error, "type").filter(|word| *word != "error");
    let message = failure::find_message(body);
    let message = message.as_deref();
    let kind = match code {
        Some("authentication_error" | "permission_error" | "billing_error") => Some(K::Auth),
        Some("rate_limit_error") => Some(K::RateLimit),
        Some("overloaded_error") => Some(K::Overloaded),
        Some("api_error") => Some(K::Server),
        Some("timeout_error") => Some(K::Timeout),
        Some("invalid_request_error") if message.is_some_and(is_too_long) => Some(K::ContextTooLong),
        Some("invalid_request_error" | "not_found_error" | "request_too_large" | "conflict_error") => {
            Some(K::InvalidRequest)
        }
        _ => None,
    };
    let retryable = (code == Some("conflict_error")).then_some(true);
    ErrorReport {
        message: message.map(str::to_owned),
        code: code.map(str::to_owned),
        kind,
        retryable,
        request_id: some_text(body, "request_id").map(str::to_owned),
        ..ErrorReport::default()
    }
}

/// Returns whether the message reports a prompt that is too long. Anthropic has no code for this error.
fn is_too_long(message: &str) -> bool {
    message.contains("prompt is too long") || message.contains("exceed context limit")
}
