//! Answers well-formed tool calls without `rmcp`, because `rmcp` is slower: it reads each message several times. `rmcp` answers all other
//! messages that [`Envelope`] can read.

use super::super::call::fault;
use super::super::catalogue::ToolCatalogue;
use super::super::request_info::{DirectRequest, RequestInfo, RequestOrigin};
use super::message::{Envelope, ResponseBody, ServerResponse, UsualCall, document};
use super::{AdmittedRequest, HttpService, ProtocolHandler};
use crate::tool::cancel::CancelToken;
use bytes::Bytes;
use http::header::{ACCEPT, AsHeaderName, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame};
use rmcp::model::{
    CallToolResponse, ErrorCode, ErrorData, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, Interval};
use tracing::{Instrument as _, Span};

/// Maximum number of progress messages that wait in the stream. Further messages wait in the queue of the call, which drops the oldest
/// message when it is full.
const MAX_EVENTS: usize = 16;
/// The time without an event after which a comment is sent, so that proxies keep the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const VERSION_HEADER: &str = "mcp-protocol-version";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

type CallResult = Result<CallToolResponse, ErrorData>;

pub(super) struct DirectCall {
    call: UsualCall,
    version: ProtocolVersion,
}

/// Returns the call if it can be answered without `rmcp`. Calls that are less usual, such as calls with parameters in headers, are left to
/// `rmcp`.
pub(super) fn call(
    envelope: &Envelope<'_>,
    headers: &HeaderMap,
    catalogue: &ToolCatalogue,
) -> Option<DirectCall> {
    let call = envelope.call().filter(|_| takes_and_sends_json(headers))?;
    let version = version(headers)?;
    let is_usual = if version == ProtocolVersion::V_2026_07_28 {
        // A name that is not ASCII or starts with `=?` is sent in Base64, which only `rmcp` decodes.
        let is_plain = call.tool.is_ascii() && !call.tool.starts_with("=?");
        is_plain
            && is_only(headers, "mcp-method", "tools/call")
            && is_only(headers, "mcp-name", &call.tool)
            && !catalogue.has_header_parameters()
            && call.meta.protocol_version().as_ref() == Some(&version)
            && call.meta.client_capabilities().is_some()
    } else {
        version < ProtocolVersion::V_2026_07_28 && !call.meta.contains_key(VERSION_KEY)
    };
    is_usual.then_some(DirectCall { call, version })
}

/// Returns the protocol version in the header, or `None` if the version is unknown or the header is repeated. A request without the header
/// has the version 2025-03-26, the first version with this transport.
fn version(headers: &HeaderMap) -> Option<ProtocolVersion> {
    if !headers.contains_key(VERSION_HEADER) {
        return Some(ProtocolVersion::V_2025_03_26);
    }
    ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .find(|version| is_only(headers, VERSION_HEADER, version.as_str()))
        .cloned()
}

fn is_only(headers: &HeaderMap, name: impl AsHeaderName, value: &str) -> bool {
    only(headers, name).is_some_and(|sent| sent.as_bytes() == value.as_bytes())
}

fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Returns whether the client sends JSON, and accepts both JSON and an event stream. Returns `false` if `Accept` has parameters such as
/// `q`, which only `rmcp` reads.
fn takes_and_sends_json(headers: &HeaderMap) -> bool {
    let text = |name| only(headers, name).and_then(|value| value.to_str().ok());
    let (Some(sent), Some(accepted)) = (text(CONTENT_TYPE), text(ACCEPT)) else { return false };
    let accepts = |kind: &str| accepted.split(',').any(|one| one.trim() == kind);
    sent.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
        && !accepted.contains(['"', ';'])
        && accepts("application/json")
        && accepts("text/event-stream")
}

/// A guard whose drop cancels the call. The guard is part of the request's future, and later of a streamed response body. Both are
/// dropped when the client disconnects.
struct GoneClient(CancelToken);

impl Drop for GoneClient {
    fn drop(&mut self) {
        self.0.cancel("the client cancelled the call");
    }
}

impl HttpService {
    /// Answers a call with one message. If the call reports progress before it ends, the answer is a stream of events instead.
    pub(super) async fn answer_directly(
        &self,
        call: DirectCall,
        admitted: AdmittedRequest,
    ) -> ServerResponse {
        let DirectCall { call: UsualCall { id, tool, meta }, version } = call;
        let client = GoneClient(CancelToken::new());
        let (progress, events) = meta.get_progress_token().map(|_| mpsc::channel(MAX_EVENTS)).unzip();
        let request = DirectRequest {
            id: id.clone(),
            version: version.clone(),
            meta,
            gone: client.0.clone(),
            progress,
        };
        let handler = ProtocolHandler { shared: self.shared.clone(), admitted: Some(Arc::new(admitted)) };
        let own_id = id.clone();
        let answer = async move {
            let info = Arc::new(RequestInfo::of(RequestOrigin::Direct(request)));
            answer_to(own_id, &version, handler.answer(&tool, info, None).await)
        };
        // The call runs in a separate task, so that the call can end by itself after its client has disconnected.
        let mut answer = tokio::spawn(answer.instrument(Span::current()));
        let ended = match events {
            None => answer.await,
            Some(mut events) => tokio::select! {
                biased;
                Some(first) = events.recv() => return streamed(id, &first, events, answer, client),
                ended = &mut answer => ended,
            },
        };
        let (status, message) = ended.unwrap_or_else(|end| failed(id, &end));
        document(status, &message)
    }
}

/// Returns the answer to a call that panicked outside of its tool.
fn failed(id: RequestId, end: &JoinError) -> (StatusCode, ServerJsonRpcMessage) {
    (StatusCode::INTERNAL_SERVER_ERROR, ServerJsonRpcMessage::error(fault("call", end), Some(id)))
}

fn answer_to(
    id: RequestId,
    version: &ProtocolVersion,
    result: CallResult,
) -> (StatusCode, ServerJsonRpcMessage) {
    let is_modern = *version >= ProtocolVersion::V_2026_07_28;
    match result {
        Ok(response) => {
            let mut result = ServerResult::from(response);
            if !is_modern {
                result.strip_result_type_for_legacy_peer();
                result.strip_non_object_output_for_legacy_peer();
            }
            (StatusCode::OK, ServerJsonRpcMessage::response(result, id))
        }
        Err(error) => {
            let is_missing = error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
            let status = if is_modern && is_missing { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            (status, ServerJsonRpcMessage::error(error, Some(id)))
        }
    }
}

fn streamed(
    id: RequestId,
    first: &ServerJsonRpcMessage,
    events: mpsc::Receiver<ServerJsonRpcMessage>,
    answer: JoinHandle<(StatusCode, ServerJsonRpcMessage)>,
    client: GoneClient,
) -> ServerResponse {
    let keep_alive = tokio::time::interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    let next = Some(event(first));
    let events = CallEvents { id, next, events, answer: Some(answer), keep_alive, _client: client };
    let mut response = Response::new(ResponseBody::wrap(events));
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("x-accel-buffering", "no")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn event(message: &ServerJsonRpcMessage) -> Bytes {
    format!("data: {}\n\n", serde_json::to_string(message).unwrap_or_default()).into()
}

/// The body of an event stream: the progress of a call, followed by its answer.
struct CallEvents {
    id: RequestId,
    /// The first progress until it is sent, and later the answer.
    next: Option<Bytes>,
    events: mpsc::Receiver<ServerJsonRpcMessage>,
    /// The task of the call; `None` once the call has ended.
    answer: Option<JoinHandle<(StatusCode, ServerJsonRpcMessage)>>,
    keep_alive: Interval,
    _client: GoneClient,
}

impl Body for CallEvents {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |event| Some(Ok(Frame::data(event)));
        if self.answer.is_some()
            && let Some(first) = self.next.take()
        {
            return Poll::Ready(frame(first));
        }
        if let Some(answer) = &mut self.answer
            && let Poll::Ready(ended) = Pin::new(answer).poll(task)
        {
            self.answer = None;
            let (_, message) = ended.unwrap_or_else(|end| failed(self.id.clone(), &end));
            self.next = Some(event(&message));
        }
        if let Poll::Ready(Some(progress)) = self.events.poll_recv(task) {
            self.keep_alive.reset();
            return Poll::Ready(frame(event(&progress)));
        }
        if self.answer.is_none() {
            return Poll::Ready(self.next.take().and_then(frame));
        }
        ready!(self.keep_alive.poll_tick(task));
        Poll::Ready(frame(Bytes::from_static(b":\n\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    const NO_META: &str =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}"#;
    const HEADERS: [(&str, &str); 5] = [
        ("content-type", "application/json; charset=utf-8"),
        ("accept", "text/event-stream, application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "x"),
    ];

    fn is_direct(body: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let Ok(envelope) = Envelope::read(body.as_bytes()) else { panic!("{body}") };
        call(&envelope, &map, &ToolCatalogue::new(&[]).unwrap()).is_some()
    }

    #[test]
    fn only_calls_in_the_usual_form_are_answered_directly() {
        assert!(is_direct(BODY, &HEADERS) && is_direct(NO_META, &HEADERS[..2]));
        for (from, to) in [
            ("\"2.0\"", "\"2.1\""),
            ("\"id\":1,", ""),
            ("\"id\":1,", "\"id\":1.5,"),
            ("tools/call", "tools/list"),
            ("\"name\":\"x\",", ""),
            ("\"name\":\"x\",", "\"name\":\"y\","),
            ("\"arguments\":{}", "\"arguments\":[]"),
            ("2026-07-28", "2025-11-25"),
            ("protocolVersion", "version"),
            ("clientCapabilities", "capabilities"),
            ("clientCapabilities\":{}", "clientCapabilities\":1"),
            ("\"_meta\"", "\"meta\""),
        ] {
            assert!(!is_direct(&BODY.replacen(from, to, 1), &HEADERS), "{from} {to}");
        }
        // A request without a version in the header must not have one in the message.
        assert!(!is_direct(BODY, &HEADERS[..2]));
    }

    #[tokio::test]
    async fn a_call_that_panics_in_the_stream_has_an_answer() {
        let answer = tokio::spawn(async { panic!("the password is hunter2") });
        let first = ServerJsonRpcMessage::error(ErrorData::internal_error("first", None), None);
        let client = GoneClient(CancelToken::new());
        let stream = streamed(RequestId::Number(7), &first, mpsc::channel(1).1, answer, client);
        let sent = stream.into_body().collect().await.unwrap().to_bytes();
        let sent = String::from_utf8_lossy(&sent);
        let last = sent.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!((&last["id"], &last["error"]["code"]), (&7.into(), &(-32603).into()), "{sent}");
        assert!(!sent.contains("hunter2"), "{sent}");
    }

    #[test]
    fn only_calls_with_the_usual_headers_are_answered_directly() {
        for (at, (name, value)) in HEADERS.into_iter().enumerate() {
            let mut changed = HEADERS.to_vec();
            changed.push((name, value));
            assert!(!is_direct(BODY, &changed), "{name} twice");
            changed.pop();
            changed.remove(at);
            assert!(!is_direct(BODY, &changed), "no {name}");
            changed.push((name, "other"));
            assert!(!is_direct(BODY, &changed), "{name} other");
        }
        for accepted in [
            "application/json",
            "*/*",
            "application/json;q=0, text/event-stream",
            "\",\", application/json,text/event-stream",
        ] {
            assert!(!is_direct(NO_META, &[HEADERS[0], ("accept", accepted)]), "{accepted}");
        }
        for version in ["2025-11-25", "2025-03-26", "2024-11-05"] {
            assert!(
                is_direct(NO_META, &[HEADERS[0], HEADERS[1], ("mcp-protocol-version", version)]),
                "{version}"
            );
        }
        for version in ["2026-07-28", "2027-01-01", "1"] {
            assert!(
                !is_direct(NO_META, &[HEADERS[0], HEADERS[1], ("mcp-protocol-version", version)]),
                "{version}"
            );
        }
        for name in ["=?base64?eA==?=", "é"] {
            let mut headers = HEADERS.to_vec();
            headers[4].1 = name;
            assert!(!is_direct(&BODY.replace("\"x\"", &format!("\"{name}\"")), &headers), "{name}");
        }
    }
}
