//! The handle of a running server.

use crate::serve::{Lifecycle, RunningGuard, ShutdownPhase};
use crate::tool::cancel::CancelToken;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A handle that tells the clients of a running server that its tools have changed, and that shuts down the server. Cloning is cheap.
///
/// ```no_run
/// use agent::{mcp::McpServer, tools};
/// use std::time::Duration;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = McpServer::new(tools![]);
/// let handle = server.handle();
/// tokio::spawn(async move {
///     tokio::time::sleep(Duration::from_secs(3600)).await;  // or until a signal arrives
///     handle.shutdown(Duration::from_secs(10)).await;
/// });
/// server.serve(([127, 0, 0, 1], 8080)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ServerHandle {
    lifecycle: Lifecycle,
    changed: Arc<watch::Sender<u64>>,
}

impl ServerHandle {
    pub(super) fn new() -> Self {
        Self { lifecycle: Lifecycle::new(), changed: Arc::new(watch::Sender::new(0)) }
    }

    /// Tells the clients that the list of tools has changed. Over HTTP, only clients that listen for changes are told.
    ///
    /// ```
    /// # #[cfg(feature = "mcp-client")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::mcp::{McpClient, McpServer, ClientConfig};
    /// use agent::message::ToolCall;
    /// use agent::{Registry, ToolContext, tool, tools};
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    ///
    /// /// Searches the notes.
    /// #[tool(read_only)]
    /// fn search(query: String) -> String {
    ///     query
    /// }
    ///
    /// /// Deletes a note.
    /// #[tool]
    /// fn delete(name: String) -> String {
    ///     name
    /// }
    ///
    /// let offered = Arc::new(Mutex::new(Registry::new(tools![search, delete])?));
    /// let shared = offered.clone();
    /// let server = McpServer::with_loader(move |_| std::future::ready(Ok(shared.lock().unwrap().clone())));
    /// let handle = server.handle();
    /// let (url, serving) = server.bind(([127, 0, 0, 1], 0)).await?;
    /// tokio::spawn(serving);
    /// let notes = McpClient::connect(ClientConfig::http(url).name("notes")).await?;
    /// let registry = Registry::new(&notes)?;
    ///
    /// *offered.lock().unwrap() = Registry::new(tools![search])?;
    /// // A client that listens lists the tools again before its next call.
    /// let call = ToolCall::new("call_1", "notes__search", r#"{"query": "tea"}"#);
    /// for _ in 0..1_000 {
    ///     handle.tools_changed();
    ///     tokio::time::sleep(Duration::from_millis(10)).await;
    ///     registry.call(&call, &ToolContext::default()).await;
    ///     if notes.tools().len() == 1 {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(notes.tools().len(), 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "mcp-client"))] fn main() {}
    /// ```
    pub fn tools_changed(&self) {
        self.changed.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Shuts down the server. New calls are rejected, and running calls are cancelled if they do not finish within the time `grace`.
    /// Completes when the last call has ended, at the latest a few seconds after the grace period.
    pub async fn shutdown(&self, grace: Duration) {
        self.lifecycle.shutdown(grace).await;
    }

    pub(super) fn is_open(&self) -> bool {
        self.lifecycle.is_open()
    }

    pub(super) async fn reached(&self, target: ShutdownPhase) {
        self.lifecycle.reached(target).await;
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(super) fn stop(&self) -> &CancelToken {
        self.lifecycle.stop()
    }

    /// Counts a request as running until the guard is dropped.
    pub(super) fn begin(&self) -> RunningGuard {
        self.lifecycle.begin()
    }
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle")
            .field("phase", &self.lifecycle.phase())
            .field("busy", &self.lifecycle.busy())
            .finish_non_exhaustive()
    }
}
