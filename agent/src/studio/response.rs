//! Responses, and the headers that all of them have.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

pub(super) type StudioResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The content security policy: the page may load only files of this server, and may not insert texts as markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

#[derive(Debug)]
pub(super) struct Rejection {
    status: StatusCode,
    code: &'static str,
    message: String,
    data: Option<Value>,
}

impl Rejection {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("There is no such {what}."))
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(super) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub(super) fn store(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", message)
    }

    pub(super) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(super) fn into_response(self) -> StudioResponse {
        let Self { status, code, message, data } = self;
        let error = json!({"error": {"code": code, "message": message, "data": data}});
        let mut response = json_response(&error);
        *response.status_mut() = status;
        response
    }
}

pub(super) fn json_response(value: &Value) -> StudioResponse {
    bytes_response("application/json", value.to_string().into())
}

pub(super) fn bytes_response(media_type: &'static str, bytes: Bytes) -> StudioResponse {
    with_headers(media_type, Full::new(bytes).boxed_unsync())
}

pub(super) fn with_headers(
    media_type: &'static str,
    body: UnsyncBoxBody<Bytes, Infallible>,
) -> StudioResponse {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
    response
}
