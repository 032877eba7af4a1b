//! Calls in the usual form of the newest version, which are answered without `rmcp`: it reads each message several times, and runs each
//! request as a connection of its own. It answers every other message, and reports what is wrong with it.

use super::super::catalogue::ToolCatalogue;
use super::super::request_info::{RequestInfo, RequestOrigin};
use super::message::{Envelope, ServerResponse, UsualCall, document};
use super::{AdmittedRequest, HttpService, ProtocolHandler, ServiceFailure};
use crate::tool::cancel::CancelToken;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode, header::AsHeaderName};
use rmcp::model::{ErrorCode, ProtocolVersion, ServerJsonRpcMessage, ServerResult};
use std::sync::Arc;
use tracing::{Instrument as _, Span};

/// Returns the call, if its message and its headers have the usual form, and its answer is one message.
pub(super) fn call(
    envelope: &Envelope<'_>,
    headers: &HeaderMap,
    catalogue: &ToolCatalogue,
) -> Option<UsualCall> {
    let version = ProtocolVersion::V_2026_07_28;
    let is_usual = is_only(headers, "mcp-protocol-version", version.as_str())
        && is_only(headers, "mcp-method", "tools/call")
        && is_only(headers, CONTENT_TYPE, "application/json")
        && accepts_both(headers)
        && !catalogue.has_header_parameters();
    let call = envelope.call().filter(|_| is_usual)?;
    // A name may also be sent in Base64.
    let is_named = is_only(headers, "mcp-name", &call.tool) && call.tool.is_ascii() && !call.tool.starts_with("=?");
    let is_complete = call.meta.protocol_version() == Some(version) && call.meta.client_capabilities().is_some();
    // A client that receives progress receives a stream of messages.
    (is_named && is_complete && call.meta.get_progress_token().is_none()).then_some(call)
}

/// Returns whether the header is sent once, with this value.
fn is_only(headers: &HeaderMap, name: impl AsHeaderName, value: &str) -> bool {
    only(headers, name).is_some_and(|sent| sent.as_bytes() == value.as_bytes())
}

fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Returns whether the client accepts both forms of an answer, without parameters.
fn accepts_both(headers: &HeaderMap) -> bool {
    let Some(accepted) = only(headers, ACCEPT).and_then(|accepted| accepted.to_str().ok()) else { return false };
    let names = |kind: &str| accepted.split(',').any(|one| one.trim() == kind);
    !accepted.contains(['"', ';']) && names("application/json") && names("text/event-stream")
}

/// Cancels the token when the request is dropped, because its client is gone.
struct GoneClient(CancelToken);

impl Drop for GoneClient {
    fn drop(&mut self) {
        self.0.cancel("the client cancelled the call");
    }
}

impl HttpService {
    pub(super) async fn answer_directly(&self, call: UsualCall, admitted: AdmittedRequest) -> ServerResponse {
        let UsualCall { id, tool, meta } = call;
        let client = GoneClient(CancelToken::new());
        let origin = RequestOrigin::Direct { id: id.clone(), meta, gone: client.0.clone() };
        let handler = ProtocolHandler { shared: self.shared.clone(), admitted: Some(Arc::new(admitted)) };
        let answer = async move { handler.answer(&tool, Arc::new(RequestInfo::of(origin)), None).await };
        // In a separate task, because a call whose client is gone ends by itself.
        let answer = tokio::spawn(answer.instrument(Span::current())).await;
        drop(client);
        let (status, message) = match answer {
            Ok(Ok(response)) => {
                (StatusCode::OK, ServerJsonRpcMessage::response(ServerResult::from(response), id))
            }
            Ok(Err(error)) => {
                let is_missing = error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
                let status = if is_missing { StatusCode::BAD_REQUEST } else { StatusCode::OK };
                (status, ServerJsonRpcMessage::error(error, Some(id)))
            }
            Err(end) => return self.failure_response(&ServiceFailure::Panicked(format!("a call ended: {end}"))),
        };
        document(status, &message)
    }
}
