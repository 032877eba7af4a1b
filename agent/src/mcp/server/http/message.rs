//! Reads messages before `rmcp` receives them, and makes responses.

use super::super::built::SentAnswers;
use super::super::call::is_deeper;
use crate::mcp::ErrorCode;
use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, JsonObject, RequestId, RequestMetaObject,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Maximum depth of JSON. Recursive parsers could exceed the stack with deeper JSON.
const MAX_DEPTH: usize = 120;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response: of this server, or of the application that the server wraps as a layer.
pub(crate) struct ResponseBody(UnsyncBoxBody<Bytes, AnyError>);

impl ResponseBody {
    pub(super) fn wrap<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<AnyError>,
    {
        Self(body.map_err(Into::into).boxed_unsync())
    }

    fn text(text: impl Into<Bytes>) -> Self {
        Self::wrap(Full::new(text.into()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        Pin::new(&mut self.0).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseBody")
    }
}

pub(super) type ServerResponse = Response<ResponseBody>;

pub(super) fn plain(status: StatusCode, text: &'static str) -> ServerResponse {
    response(status, "text/plain; charset=utf-8", text)
}

pub(super) fn document(status: StatusCode, value: &impl serde::Serialize) -> ServerResponse {
    response(status, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

/// Returns a response with a JSON-RPC error. Without an `id`, the id of the error is `null`.
pub(super) fn rpc_error(
    status: StatusCode,
    id: Option<&RawValue>,
    code: ErrorCode,
    message: &str,
    data: Option<Value>,
) -> ServerResponse {
    let mut error = json!({"code": code.code(), "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    let id = id.and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or(Value::Null);
    document(status, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn response(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> ServerResponse {
    let mut response = Response::new(ResponseBody::text(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// The members of a message that this server reads before `rmcp` receives the message.
#[derive(Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<EnvelopeParams<'a>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Reads a member that counts as present even if its value is `null`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(member: D) -> Result<Option<T>, D::Error> {
    T::deserialize(member).map(Some)
}

#[derive(Deserialize)]
struct EnvelopeParams<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputResponses")]
    answers: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestState")]
    state: Option<&'a RawValue>,
}

/// A well-formed `tools/call` request, without its arguments.
pub(crate) struct UsualCall {
    pub(crate) id: RequestId,
    pub(crate) tool: String,
    pub(crate) meta: RequestMetaObject,
}

impl From<UsualCall> for ClientJsonRpcMessage {
    fn from(call: UsualCall) -> Self {
        let mut request = CallToolRequest::new(CallToolRequestParams::new(call.tool));
        request.extensions.insert(call.meta);
        Self::request(request.into(), call.id)
    }
}

pub(crate) struct MalformedMessage(pub(crate) ErrorCode, pub(crate) &'static str);

impl<'a> Envelope<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, MalformedMessage> {
        if is_deeper(body, MAX_DEPTH) {
            return Err(MalformedMessage(ErrorCode::ParseError, "Parse error: nested too deep"));
        }
        if let Ok(envelope) = serde_json::from_slice::<Self>(body) {
            let is_id = envelope.id.is_none_or(|id| match id.get().as_bytes().first() {
                Some(b'"' | b'0'..=b'9' | b'-') => true,
                // Only an error may have the id `null`: the error that answers a message that could not be read.
                Some(b'n') => envelope.error.is_some(),
                _ => false,
            });
            let kinds = [envelope.method.is_some(), envelope.result.is_some(), envelope.error.is_some()];
            let is_message = kinds.into_iter().filter(|is_kind| *is_kind).count() == 1;
            return if is_id && is_message { Ok(envelope) } else { Err(NOT_A_MESSAGE) };
        }
        match serde_json::from_slice::<IgnoredAny>(body) {
            Ok(_) => Err(NOT_A_MESSAGE),
            Err(_) => Err(MalformedMessage(ErrorCode::ParseError, "Parse error")),
        }
    }

    pub(crate) fn arguments(&self) -> Option<&'a str> {
        self.params.as_ref().filter(|_| self.is_call())?.arguments.map(RawValue::get)
    }

    pub(crate) fn answers(&self) -> Result<Option<SentAnswers>, MalformedMessage> {
        let Some(params) = self.params.as_ref().filter(|_| self.is_call()) else { return Ok(None) };
        if params.answers.is_none() && params.state.is_none() {
            return Ok(None);
        }
        let malformed =
            |_| MalformedMessage(ErrorCode::InvalidParams, "Invalid params: inputResponses or requestState");
        let answers = params.answers.map(|answers| serde_json::from_str(answers.get()));
        let state = params.state.map(|state| serde_json::from_str(state.get()));
        Ok(Some(SentAnswers {
            answers: answers.transpose().map_err(malformed)?.unwrap_or_default(),
            state: state.transpose().map_err(malformed)?,
        }))
    }

    /// Returns the call, if the message is a well-formed call. `rmcp` reads all other messages, including malformed calls.
    pub(crate) fn call(&self) -> Option<UsualCall> {
        let params = self.params.as_ref().filter(|_| self.is_call())?;
        let is_usual = self.jsonrpc?.get() == "\"2.0\""
            && params.arguments.is_none_or(|arguments| arguments.get().starts_with(['{', 'n']));
        let meta = params.meta.map_or(Some(JsonObject::new()), |meta| serde_json::from_str(meta.get()).ok());
        Some(UsualCall {
            id: serde_json::from_str(self.id?.get()).ok().filter(|_| is_usual)?,
            tool: serde_json::from_str(params.name?.get()).ok()?,
            meta: meta?.into(),
        })
    }

    /// Returns the id of an error response: the id of the malformed request, or `null` if the message is itself a response.
    pub(crate) fn error_id(&self) -> Value {
        let id = self.id.filter(|_| self.method.is_some());
        id.and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or_default()
    }

    fn is_call(&self) -> bool {
        self.method.as_deref() == Some(CALL)
    }

    pub(super) fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize") && self.id.is_some()
    }

    pub(super) fn cancelled_request(&self) -> Option<RequestId> {
        let is_notification = self.method.as_deref() == Some("notifications/cancelled") && self.id.is_none();
        let params = self.params.as_ref().filter(|_| is_notification)?;
        serde_json::from_str(params.request_id?.get()).ok()
    }

    /// Returns the message without the arguments of a call, because `rmcp` logs whole messages. Returns `None` if the message cannot
    /// contain arguments. `kept` gets the tool's name and its arguments, and returns the arguments to keep, which `rmcp` compares with
    /// headers.
    pub(crate) fn without_arguments(&self, kept: impl FnOnce(&str, &str) -> Option<Value>) -> Option<String> {
        let method = self.method.as_deref()?;
        let is_known = |known: &&str| {
            method.strip_prefix(known).is_some_and(|rest| rest.is_empty() || known.ends_with('/'))
        };
        if KNOWN.iter().any(is_known) {
            return None;
        }
        let quoted = if self.is_call() { QUOTED_CALL.into() } else { Value::from(method).to_string() };
        let mut out = String::from("{");
        push_member(&mut out, "method", Some(&quoted));
        push_member(&mut out, "jsonrpc", self.jsonrpc.map(RawValue::get));
        push_member(&mut out, "id", self.id.map(RawValue::get));
        if let Some(sent) = &self.params {
            out.push_str(",\"params\":{");
            push_member(&mut out, "_meta", sent.meta.map(RawValue::get));
            let name = sent.name.map(RawValue::get).filter(|name| self.is_call() && name.starts_with('"'));
            if let (Some(name), Some(arguments)) = (name, self.arguments()) {
                // Arguments that are neither an object nor `null` are replaced by an empty list, which `rmcp` reports as invalid.
                let shown = match arguments.as_bytes().first() {
                    Some(b'{') => {
                        let name = serde_json::from_str::<Cow<'_, str>>(name).unwrap_or_default();
                        kept(&name, arguments).map(|kept| kept.to_string())
                    }
                    Some(b'n') => None,
                    _ => Some("[]".to_owned()),
                };
                push_member(&mut out, "arguments", Some(shown.as_deref().unwrap_or("null")));
            }
            push_member(&mut out, "name", name);
            out.push('}');
        }
        out.push('}');
        Some(out)
    }

    pub(super) fn version(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct RequestMeta<'a> {
            #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
            version: Option<Cow<'a, str>>,
        }
        self.id?;
        let meta: RequestMeta<'_> = serde_json::from_str(self.params.as_ref()?.meta?.get()).ok()?;
        meta.version.map(Cow::into_owned)
    }
}

fn push_member(out: &mut String, key: &str, json: Option<&str>) {
    let Some(json) = json else { return };
    let separator = if out.ends_with('{') { "\"" } else { ",\"" };
    out.extend([separator, key, "\":", json]);
}

const CALL: &str = "tools/call";
const QUOTED_CALL: &str = "\"tools/call\"";

/// The methods of the protocol that do not call a tool. Entries with a slash at the end are prefixes of methods.
const KNOWN: [&str; 11] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "notifications/",
    "ping",
    "prompts/",
    "resources/",
    "server/discover",
    "subscriptions/listen",
    "tasks/",
    "tools/list",
];

const NOT_A_MESSAGE: MalformedMessage =
    MalformedMessage(ErrorCode::InvalidRequest, "Invalid request: not a message of JSON-RPC 2.0");

#[cfg(test)]
mod tests {
    use super::*;

    fn code(body: &str) -> i32 {
        Envelope::read(body.as_bytes()).map_or_else(|malformed| malformed.0.code(), |_| 0)
    }

    #[test]
    fn invalid_json_and_invalid_messages_have_different_codes() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 0),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 0),
            (r#"{"jsonrpc":"2.0","id":"a","result":{}}"#, 0),
            ("{", -32700),
            ("", -32700),
            ("\u{feff}{}", -32700),
            ("[]", -32600),
            ("1", -32600),
            (r#"{"id":1}"#, -32600),
            (r#"{"id":{},"method":"ping"}"#, -32600),
            (r#"{"id":null,"method":"ping"}"#, -32600),
            (r#"{"id":null,"result":{}}"#, -32600),
            (r#"{"id":null,"error":{}}"#, 0),
            (r#"{"id":1,"method":"tools/call","result":{}}"#, -32600),
            (r#"{"id":1,"method":"tools/call","result":null}"#, -32600),
            (r#"{"id":1,"method":"tools/call","error":{}}"#, -32600),
            (r#"{"id":1,"method":5}"#, -32600),
            (r#"{"id":1,"method":"a","method":"b"}"#, -32600),
            (r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#, 0),
            (r#"{"id":1,"method":"tools/call","params":"x"}"#, -32600),
            // Duplicate arguments are ambiguous, so the message is malformed.
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"x","arguments":{},"arguments":{"a":1}}}"#,
                -32600,
            ),
        ] {
            assert_eq!(code(body), expected, "{body}");
        }
        assert_eq!(code(&"[".repeat(100_000)), -32700);
    }

    #[test]
    fn arguments_keep_their_text() {
        let body = br#"{"id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1.0,"a":2}}}"#;
        let Ok(envelope) = Envelope::read(body) else { panic!() };
        assert_eq!(envelope.arguments(), Some(r#"{"a":1.0,"a":2}"#));
        assert_eq!(envelope.version(), None);
    }

    #[test]
    fn arguments_are_removed_from_every_message_that_may_be_a_call() {
        let passed_on = |body: &Value| {
            let body = body.to_string();
            let Ok(envelope) = Envelope::read(body.as_bytes()) else { panic!("{body}") };
            let passed = envelope.without_arguments(|_, _| None);
            passed.map_or_else(
                || serde_json::from_str::<Value>(&body).unwrap(),
                |passed| serde_json::from_str(&passed).unwrap(),
            )
        };
        let call =
            |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let secret = || json!({"pin": "hunter2"});
        for (sent, passed) in [
            (
                call(json!({"name": "x", "arguments": secret(), "_meta": {"a": 1}})),
                call(json!({"name": "x", "arguments": null, "_meta": {"a": 1}})),
            ),
            (call(json!({"name": "x", "arguments": "hunter2"})), call(json!({"name": "x", "arguments": []}))),
            (
                call(json!({"name": "x", "arguments": ["hunter2"]})),
                call(json!({"name": "x", "arguments": []})),
            ),
            (call(json!({"name": "x", "arguments": null})), call(json!({"name": "x"}))),
            (call(json!({"name": "x", "args": secret()})), call(json!({"name": "x"}))),
            (call(json!({"tool": "x", "input": secret()})), call(json!({}))),
            (call(json!({"name": secret(), "arguments": secret()})), call(json!({}))),
        ] {
            assert_eq!(passed_on(&sent), passed, "{sent}");
        }
        for method in ["tools/cal", "notifications", "", "tools/call/x"] {
            let sent = json!({"jsonrpc": "2.0", "method": method, "params": {"arguments": secret()}});
            assert_eq!(passed_on(&sent), json!({"jsonrpc": "2.0", "method": method, "params": {}}));
        }
        for method in ["ping", "notifications/cancelled", "tools/list", "resources/read"] {
            let sent = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"cursor": "x"}});
            assert_eq!(passed_on(&sent), sent);
        }
    }
}
