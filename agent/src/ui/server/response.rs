//! Responses of the server. Their bodies are read while the run continues.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame};
use serde_json::json;
use tokio::sync::mpsc::Receiver;

use super::super::{UiProtocol, UiRequestError};
use crate::tool::BoxFuture;

pub(super) fn stream(protocol: UiProtocol, body: UiBody) -> Response<UiBody> {
    response(StatusCode::OK, protocol.headers(), body)
}

pub(super) fn empty() -> Response<UiBody> {
    response(StatusCode::NO_CONTENT, &[("cache-control", "no-store")], UiBody::default())
}

fn response(status: StatusCode, headers: &[(&'static str, &'static str)], body: UiBody) -> Response<UiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers =
        headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    response.headers_mut().extend(headers);
    response
}

impl UiRequestError {
    /// Returns the response to the request, with its [status](Self::status) and its [JSON](Self::to_json).
    ///
    /// ```
    /// use agent::ui::{UiProtocol, UiRequest};
    ///
    /// let response = UiRequest::decode(UiProtocol::AiSdk, b"Hi").unwrap_err().into_response();
    /// assert_eq!(response.status(), 400);
    /// assert_eq!(response.headers()["content-type"], "application/json");
    /// ```
    pub fn into_response(self) -> Response<UiBody> {
        let mut body = UiBody::default();
        body.ready.push_back(self.to_json().to_string().into());
        let headers = [("content-type", "application/json"), ("cache-control", "no-store")];
        response(StatusCode::from_u16(self.status()).unwrap_or(StatusCode::BAD_REQUEST), &headers, body)
    }
}

/// The body of a response: a stream of bytes that never fails. Dropping the body disconnects the reader.
///
/// ```
/// use agent::ui::{UiProtocol, UiServer};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let ui = UiServer::new(assistant).single_user();
/// let mut body = ui.post(UiProtocol::AiSdk, b"{}").await.into_body();
/// let bytes = body.next().await.expect("an error has a body");
/// assert!(bytes.starts_with(br#"{"error":{"code":"invalid""#));
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct UiBody {
    ready: VecDeque<Bytes>,
    live: Option<Receiver<Bytes>>,
    /// Whether the reader was cut off because it was too slow.
    is_cut: Arc<AtomicBool>,
    protocol: Option<UiProtocol>,
    /// The time after which an idle stream receives a comment, and the timer of the next comment.
    keep_alive: Option<(Duration, KeepAliveWait)>,
    on_drop: Option<Box<dyn FnOnce() + Send + Sync>>,
}

/// The timer of the next keep-alive comment. The mutex is never locked, and only makes the body `Sync`.
type KeepAliveWait = Mutex<Option<BoxFuture<'static, ()>>>;

impl UiBody {
    pub(super) fn new(
        protocol: UiProtocol,
        ready: VecDeque<Bytes>,
        live: Option<Receiver<Bytes>>,
        is_cut: Arc<AtomicBool>,
        keep_alive: Option<Duration>,
        on_drop: impl FnOnce() + Send + Sync + 'static,
    ) -> Self {
        let keep_alive = keep_alive.map(|after| (after, KeepAliveWait::default()));
        let on_drop: Option<Box<dyn FnOnce() + Send + Sync>> = Some(Box::new(on_drop));
        Self { ready, live, is_cut, protocol: Some(protocol), keep_alive, on_drop }
    }

    /// Waits for the next bytes. Returns `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let Some((after, wait)) = &mut self.keep_alive else { return Poll::Pending };
        let wait = wait.get_mut().unwrap_or_else(PoisonError::into_inner);
        if wait.is_none() {
            *wait = crate::default_executor().sleep(*after);
        }
        match wait {
            // Without a clock, an idle stream receives no comments.
            None => Poll::Pending,
            Some(waiting) => waiting.as_mut().poll(cx).map(|()| {
                *wait = None;
                Bytes::from_static(b": keep-alive\n\n")
            }),
        }
    }
}

impl Stream for UiBody {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(bytes) = self.ready.pop_front() {
            return Poll::Ready(Some(bytes));
        }
        let Some(live) = &mut self.live else { return Poll::Ready(None) };
        match live.poll_recv(cx) {
            Poll::Pending => self.poll_keep_alive(cx).map(Some),
            Poll::Ready(Some(bytes)) => {
                if let Some((_, wait)) = &mut self.keep_alive {
                    *wait = KeepAliveWait::default();
                }
                Poll::Ready(Some(bytes))
            }
            Poll::Ready(None) => {
                self.live = None;
                // A reader that was cut off gets an error, because a stream that just ends would look complete.
                let cut = self.is_cut.swap(false, Ordering::AcqRel);
                Poll::Ready(self.protocol.filter(|_| cut).map(cut_chunk))
            }
        }
    }
}

impl Body for UiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_next(cx).map(|bytes| Some(Ok(Frame::data(bytes?))))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.live.is_none()
    }
}

impl Drop for UiBody {
    fn drop(&mut self) {
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}

impl fmt::Debug for UiBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiBody").field("is_live", &self.live.is_some()).finish_non_exhaustive()
    }
}

fn cut_chunk(protocol: UiProtocol) -> Bytes {
    const TEXT: &str = "The connection was too slow. Reconnect to read the rest.";
    let chunk = match protocol {
        #[cfg(feature = "ui-ai-sdk")]
        UiProtocol::AiSdk => json!({"type": "error", "errorText": TEXT}),
        #[cfg(feature = "ui-ag-ui")]
        UiProtocol::AgUi => json!({"type": "RUN_ERROR", "message": TEXT, "code": "slow_reader"}),
    };
    format!("data: {chunk}\n\n").into()
}
