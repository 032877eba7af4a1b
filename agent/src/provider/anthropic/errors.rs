//! Interprets Anthropic's errors.

use serde_json::Value;

use crate::model::{ModelError, ModelErrorKind as K};
use crate::provider::Answer;
use crate::provider::failure::{self, Said};
use crate::provider::parts::some_text;

/// Converts an answer with an error status.
pub(super) fn of_answer(answer: &Answer<'_>) -> ModelError {
    let body = failure::error_body(answer.body);
    let error = failure::of_answer(answer, said(&body));
    match some_text(&body, "request_id") {
        Some(id) if error.request_id().is_none() => error.with_request_id(id),
        _ => error,
    }
}

/// Converts an error event, or a body that is an error though its status was a success.
pub(super) fn of_event(event: &Value) -> ModelError {
    let error = failure::of_event(said(event), event);
    match some_text(event, "request_id") {
        Some(id) => error.with_request_id(id),
        None => error,
    }
}

/// `{"type": "error", "error": {"type", "message"}, "request_id"}`.
fn said(body: &Value) -> Said {
    let error = failure::error_in(body).unwrap_or(body);
    let code = some_text(error, "type").filter(|word| *word != "error");
    let message = failure::message_of(body);
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
    Said {
        message: message.map(str::to_owned),
        code: code.map(str::to_owned),
        status: None,
        kind,
        retryable,
        retry_after: None,
    }
}

/// Anthropic has no code for this error, only this message.
fn is_too_long(message: &str) -> bool {
    message.contains("prompt is too long") || message.contains("exceed context limit")
}
