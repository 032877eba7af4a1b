//! Creates a [`ModelError`] from the response of any provider: from the error in the body, the status and the headers.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::protocol::HttpResponse;
use crate::model::{ModelError, ModelErrorKind};

#[derive(Debug, Default)]
pub(super) struct ErrorReport {
    pub(super) message: Option<String>,
    pub(super) code: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) kind: Option<ModelErrorKind>,
    pub(super) retryable: Option<bool>,
    /// The delay that the body asks for before a retry. A delay in a header takes precedence.
    pub(super) retry_after: Option<Duration>,
    /// The request id in the body. An id in a header takes precedence.
    pub(super) request_id: Option<String>,
}

/// A function that reads the error in a body. Error handling differs between providers only in this function.
pub(super) type ReadReport = fn(&Value) -> ErrorReport;

pub(super) fn response_error(response: &HttpResponse<'_>, read: ReadReport) -> ModelError {
    from_response(response, read(&parse_error_body(response.body)))
}

/// Creates the error of an error event in a stream, or of a body that is an error despite a success status.
pub(super) fn event_error(event: &Value, read: ReadReport) -> ModelError {
    from_event(read(event), event)
}

pub(super) fn kind_of_status(status: u16) -> ModelErrorKind {
    use ModelErrorKind as K;
    match status {
        401..=403 => K::Auth,
        408 | 504 | 524 => K::Timeout,
        429 => K::RateLimit,
        503 | 529 => K::Overloaded,
        409 | 500..=599 => K::Server,
        300..=499 => K::InvalidRequest,
        _ => K::Protocol,
    }
}

/// Chooses between the kind that the server reported and the kind that the status indicates. The reported kind usually takes precedence,
/// but some servers report `Server` or `InvalidRequest` for every error.
fn combine_kinds(status: u16, report: Option<ModelErrorKind>) -> ModelErrorKind {
    use ModelErrorKind as K;
    let by_status = kind_of_status(status);
    match (report, by_status) {
        (Some(K::Server), _) if status < 500 => by_status,
        (Some(K::InvalidRequest), K::Auth | K::RateLimit) => by_status,
        (report, _) => report.unwrap_or(by_status),
    }
}

pub(super) fn from_response(response: &HttpResponse<'_>, report: ErrorReport) -> ModelError {
    let status = response.status;
    let kind = combine_kinds(status, report.kind);
    let text = String::from_utf8_lossy(response.body);
    let message = report.message.filter(|message| !message.trim().is_empty()).unwrap_or_else(|| {
        let looks_like = if text.trim_start().starts_with('<') { "an HTML page" } else { "no error object" };
        format!("the provider answered with status {status} and {looks_like}")
    });
    let mut error = ModelError::new(kind, message).with_status(status);
    if !text.trim().is_empty() {
        error = error.with_body(text.trim());
    }
    if let Some(code) = report.code {
        error = error.with_code(code);
    }
    error = with_request_id(error, response);
    if let Some(id) = report.request_id.filter(|_| error.request_id().is_none()) {
        error = error.with_request_id(id);
    }
    if let Some(delay) = retry_after(response, SystemTime::now()).or(report.retry_after) {
        error = error.with_retry_after(delay);
    }
    let by_header = match response.header("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    // Timeouts, conflicts, rate limits and server errors may be retried, whatever the kind of the error.
    let by_status = (matches!(status, 408 | 409 | 429) || status >= 500).then_some(true);
    match by_header.or(report.retryable).or(by_status) {
        Some(retryable) => error.with_retryable(retryable),
        None => error.with_retryable(false),
    }
}

/// Parses the body of an error: as JSON, as the first JSON in an event stream, or as plain text. An empty body, an HTML page and malformed
/// JSON become null.
pub(super) fn parse_error_body(body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    if let Some(value) = data.find_map(|data| serde_json::from_str(data.trim()).ok()) {
        return value;
    }
    let is_words = !text.is_empty() && !text.starts_with(['<', '{', '[']);
    if is_words { Value::String(text.chars().take(MAX_WORDS).collect()) } else { Value::Null }
}

/// Maximum length of an error in plain text, in characters.
const MAX_WORDS: usize = 1000;

/// Returns the value of `error` in an object, if the value reports an error. Servers also write `null`, `false`, `""`, `[]` and `{}` for no
/// error.
pub(super) fn find_error(value: &Value) -> Option<&Value> {
    value.get("error").filter(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    })
}

/// Finds the message in the body of an error. Servers put the message in different fields, at different depths.
pub(super) fn find_message(body: &Value) -> Option<String> {
    fn find(value: &Value, depth: usize) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            _ if depth == 0 => None,
            Value::Array(list) => list.iter().find_map(|value| find(value, depth - 1)),
            Value::Object(map) => {
                ["error_description", "error", "message", "detail", "errors", "msg", "Message"]
                    .iter()
                    .find_map(|key| find(map.get(*key)?, depth - 1))
            }
            _ => None,
        }
    }
    find(body, 6)
}

/// Creates the error for an event named `error` whose data is not JSON.
pub(super) fn from_text(text: &str) -> ModelError {
    let report = ErrorReport {
        message: Some(text.trim().chars().take(MAX_WORDS).collect()),
        ..ErrorReport::default()
    };
    from_event(report, &Value::String(text.to_owned()))
}

/// The headers that identify a request, in order of precedence.
const REQUEST_IDS: [&str; 5] =
    ["request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "cf-ray"];

pub(super) fn with_request_id(error: ModelError, response: &HttpResponse<'_>) -> ModelError {
    let id = REQUEST_IDS.iter().find_map(|name| response.header(name));
    match id {
        Some(id) if error.request_id().is_none() => error.with_request_id(id),
        _ => error,
    }
}

fn from_event(report: ErrorReport, raw: &Value) -> ModelError {
    let kind = report.kind.or(report.status.map(kind_of_status)).unwrap_or(ModelErrorKind::Other);
    let message =
        report.message.unwrap_or_else(|| "the provider reported an error without a message".to_owned());
    let mut error = ModelError::new(kind, message).with_body(&raw.to_string());
    if let Some(code) = report.code {
        error = error.with_code(code);
    }
    if let Some(status) = report.status {
        error = error.with_status(status);
    }
    if let Some(delay) = report.retry_after {
        error = error.with_retry_after(delay);
    }
    if let Some(id) = report.request_id {
        error = error.with_request_id(id);
    }
    match report.retryable {
        Some(retryable) => error.with_retryable(retryable),
        None => error,
    }
}

/// Reads `retry-after-ms` in milliseconds, or else `retry-after` in seconds or as a date.
fn retry_after(response: &HttpResponse<'_>, now: SystemTime) -> Option<Duration> {
    let number = |text: &str, unit: f64| {
        let number: f64 = text.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * unit).ok()
    };
    let by_ms = response.header("retry-after-ms").and_then(|text| number(text, 0.001));
    by_ms.or_else(|| {
        let text = response.header("retry-after")?;
        number(text, 1.0).or_else(|| {
            let date = httpdate::parse_http_date(text.trim()).ok()?;
            Some(date.duration_since(now).unwrap_or(Duration::ZERO))
        })
    })
}

pub(super) fn not_a_reply(body: &[u8], why: &str) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let message = match text.chars().next() {
        None => "the response is empty".to_owned(),
        Some('<') => "the response is an HTML page, not a reply of a model".to_owned(),
        Some(_) => format!("the response is not a reply of a model: {why}"),
    };
    let error = ModelError::protocol(message).with_body(text);
    // An empty body usually means that the connection ended too early, so a retry may help.
    if text.is_empty() { error.with_retryable(true) } else { error }
}

pub(super) fn parse_event(event: &super::sse::SseEvent<'_>) -> Result<Value, ModelError> {
    if event.is_lossy {
        return Err(ModelError::protocol("an event of the stream is not UTF-8").with_body(event.data));
    }
    serde_json::from_str(event.data).map_err(|error| {
        ModelError::protocol("an event of the stream is not JSON").with_body(event.data).with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)]) -> Option<Duration> {
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        retry_after(&HttpResponse::new(429, &headers, b""), now)
    }

    #[test]
    fn every_form_of_retry_after_is_read() {
        let ms = Duration::from_millis;
        assert_eq!(asked(&[("retry-after", "2")]), Some(ms(2000)));
        assert_eq!(asked(&[("Retry-After", "0.25")]), Some(ms(250)));
        assert_eq!(asked(&[("retry-after-ms", "125.5")]), Some(Duration::from_micros(125_500)));
        assert_eq!(asked(&[("retry-after", "9"), ("retry-after-ms", "10")]), Some(ms(10)));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")]), Some(ms(3000)));
        assert_eq!(asked(&[("retry-after", "Sunday, 06-Nov-94 08:49:40 GMT")]), Some(ms(3000)));
        assert_eq!(asked(&[("retry-after", "Sun Nov  6 08:49:40 1994")]), Some(ms(3000)));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")]), Some(ms(0)));
        for nonsense in ["", "soon", "-1", "NaN", "inf", "1e400"] {
            assert_eq!(asked(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
    }
}
