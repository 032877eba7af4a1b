//! Responses, whose bodies are read as the run continues.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use serde_json::json;
use tokio::sync::mpsc::Receiver;

use super::super::{UiProtocol, UiRequestError};

/// A response, for any HTTP library.
///
/// ```
/// use agent::ui::{UiProtocol, UiServer};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let ui = UiServer::builder(assistant).single_user().build();
/// let response = ui.post(UiProtocol::AiSdk, b"{}").await;
/// assert_eq!(response.status, 400);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct UiResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The body.
    pub body: UiBody,
}

impl UiResponse {
    pub(super) fn stream(protocol: UiProtocol, body: UiBody) -> Self {
        Self { status: 200, headers: protocol.headers().to_vec(), body }
    }

    pub(super) fn empty() -> Self {
        Self { status: 204, headers: vec![("cache-control", "no-store")], body: UiBody::default() }
    }
}

impl From<UiRequestError> for UiResponse {
    fn from(error: UiRequestError) -> Self {
        let mut body = UiBody::default();
        body.ready.push_back(error.to_json().to_string().into());
        let headers = vec![("content-type", "application/json"), ("cache-control", "no-store")];
        Self { status: error.status(), headers, body }
    }
}

/// The body of a response: a stream of bytes. Dropping it disconnects the reader.
///
/// ```
/// use agent::ui::{UiProtocol, UiServer};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let ui = UiServer::builder(assistant).single_user().build();
/// let mut body = ui.post(UiProtocol::AiSdk, b"{}").await.body;
/// let bytes = body.next().await.expect("an error has a body");
/// assert!(bytes.starts_with(br#"{"error":{"code":"invalid""#));
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct UiBody {
    ready: VecDeque<Bytes>,
    live: Option<Receiver<Bytes>>,
    /// Set if the reader was too slow.
    is_cut: Arc<AtomicBool>,
    protocol: Option<UiProtocol>,
    on_drop: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl UiBody {
    pub(super) fn new(
        protocol: UiProtocol,
        ready: VecDeque<Bytes>,
        live: Option<Receiver<Bytes>>,
        is_cut: Arc<AtomicBool>,
        on_drop: impl FnOnce() + Send + Sync + 'static,
    ) -> Self {
        Self { ready, live, is_cut, protocol: Some(protocol), on_drop: Some(Box::new(on_drop)) }
    }

    /// Waits for the next bytes; `None` is the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
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
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(bytes)) => Poll::Ready(Some(bytes)),
            Poll::Ready(None) => {
                self.live = None;
                // A stream that only ends would look complete.
                let cut = self.is_cut.swap(false, Ordering::AcqRel);
                Poll::Ready(self.protocol.filter(|_| cut).map(cut_chunk))
            }
        }
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

/// Returns the last chunk for a reader that was too slow.
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
