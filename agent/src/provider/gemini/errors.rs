//! Interprets Gemini's errors.

use std::time::Duration;

use serde_json::Value;

use crate::model::ModelErrorKind as K;
use crate::provider::failure::{self, ErrorReport};
use crate::provider::parts::{some_text, text};

/// Reads an error of the form `{"error": {"code", "message", "status", "details"}}`, or the first error of a list.
pub(super) fn read_report(body: &Value) -> ErrorReport {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let error = failure::find_error(body).unwrap_or(body);
    let details = || error.get("details").and_then(Value::as_array).into_iter().flatten();
    let message = failure::find_message(body);
    let message = message.as_deref();
    let word = some_text(error, "status");
    let bad_key = details().any(|detail| text(detail, "reason") == Some("API_KEY_INVALID"));
    let kind = match word {
        _ if bad_key => Some(K::Auth),
        Some("UNAUTHENTICATED" | "PERMISSION_DENIED") => Some(K::Auth),
        Some("RESOURCE_EXHAUSTED") => Some(K::RateLimit),
        Some("UNAVAILABLE") => Some(K::Overloaded),
        Some("INTERNAL" | "UNKNOWN" | "DATA_LOSS" | "ABORTED") => Some(K::Server),
        Some("DEADLINE_EXCEEDED") => Some(K::Timeout),
        Some("CANCELLED") => Some(K::Other),
        Some("INVALID_ARGUMENT") if message.is_some_and(is_too_long) => Some(K::ContextTooLong),
        Some("INVALID_ARGUMENT" | "NOT_FOUND" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" | "UNIMPLEMENTED") => {
            Some(K::InvalidRequest)
        }
        _ => None,
    };
    let number = error.get("code").filter(|code| code.is_number());
    let status = number.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    ErrorReport {
        message: message.map(str::to_owned),
        code: word
            .or_else(|| text(error, "code"))
            .map(str::to_owned)
            .or_else(|| number.map(Value::to_string)),
        status: status.filter(|status| (300..=599).contains(status)),
        kind,
        retry_after: details().find_map(retry_delay),
        ..ErrorReport::default()
    }
}

/// Reads the delay of `google.rpc.RetryInfo`: `{"retryDelay": "34.4s"}`.
fn retry_delay(detail: &Value) -> Option<Duration> {
    let seconds: f64 = text(detail, "retryDelay")?.trim().strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns whether the message reports a prompt that is too long. Gemini has no code for this error.
fn is_too_long(message: &str) -> bool {
    message.contains("exceeds the maximum number of tokens")
        || message.contains("input token count") && message.contains("only supports")
}
