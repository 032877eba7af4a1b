//! Interprets the errors of OpenAI and of compatible servers.

use serde_json::Value;

use crate::model::ModelErrorKind as K;
use crate::provider::failure::{self, ErrorReport};
use crate::provider::parts::some_text;

/// Reads an error body of the form `{"error": {"message", "type", "param", "code"}}`. Also reads the forms of compatible servers, such as
/// this object in a list, or a text as the error.
pub(super) fn read_report(body: &Value) -> ErrorReport {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let error = failure::find_error(body).unwrap_or(body);
    let message = failure::find_message(body);
    let number = |key| error.get(key).and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let status = number("status_code").or_else(|| number("code")).or_else(|| number("status"));
    let status =
        status.and_then(|status| u16::try_from(status).ok()).filter(|status| (300..=599).contains(status));
    let code = match error.get("code").or_else(|| body.get("code")) {
        Some(Value::String(code)) if !code.is_empty() => Some(code.clone()),
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => some_text(error, "type").map(str::to_owned),
    };
    let words = [some_text(error, "code"), some_text(error, "type")];
    let kind = words.iter().flatten().find_map(|word| kind_of_word(word));
    let kind = match (kind, message.as_deref()) {
        (None | Some(K::InvalidRequest), Some(message)) if is_too_long(message) => Some(K::ContextTooLong),
        _ => kind,
    };
    // The account has no credit left, so a retry does not help.
    let is_out = words.iter().flatten().any(|word| *word == "insufficient_quota");
    ErrorReport { message, code, status, kind, retryable: is_out.then_some(false), ..ErrorReport::default() }
}

fn kind_of_word(word: &str) -> Option<K> {
    Some(match word {
        "context_length_exceeded" => K::ContextTooLong,
        "content_filter" | "content_policy_violation" | "ResponsibleAIPolicyViolation" => K::ContentFilter,
        "invalid_api_key" | "authentication_error" | "permission_error" | "account_deactivated" => K::Auth,
        "rate_limit_exceeded" | "rate_limit_error" | "insufficient_quota" | "tokens" | "requests" => {
            K::RateLimit
        }
        "overloaded_error" | "engine_overloaded_error" | "engine_overloaded" | "overloaded" => K::Overloaded,
        "server_error" | "internal_server_error" | "api_error" | "internal_error" => K::Server,
        "timeout" | "timeout_error" | "vector_store_timeout" => K::Timeout,
        "invalid_request_error"
        | "model_not_found"
        | "tool_use_failed"
        | "string_above_max_length"
        | "invalid_prompt"
        | "invalid_image" => K::InvalidRequest,
        _ => return None,
    })
}

/// Returns whether the message reports a prompt that is too long, for servers without a code for this error.
fn is_too_long(message: &str) -> bool {
    [
        "maximum context length",
        "context length exceeded",
        "exceeds the available context size",
        "exceed context limit",
        "exceeds the context window of this model",
        "Input is too long for requested model",
        "tokens + `max_new_tokens` must be <=",
        "is greater than the context length",
    ]
    .iter()
    .any(|words| message.contains(words))
}
