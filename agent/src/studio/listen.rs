//! The listener of the studio.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::route::respond;
use super::shared::StudioShared;
use crate::serve::{Lifecycle, ShutdownPhase, StallLimit, accept, drive};

/// Maximum number of connections; a page uses one for each run that it follows.
const CONNECTIONS: usize = 64;
/// Time limit for the head of a request.
const RECEIVE: Duration = Duration::from_secs(15);
/// Time limit for a client that does not read.
const SEND: Duration = Duration::from_secs(30);
/// Maximum time to send the last responses when the studio ends.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// A studio that is bound to an address. Connections wait until it [runs](Self::run).
///
/// ```
/// use agent::studio::Studio;
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let studio = Studio::new(assistant).bind(([127, 0, 0, 1], 0)).await?;
/// println!("open {}", studio.url());
/// let (handle, running) = (studio.handle(), tokio::spawn(studio.run()));
/// handle.shutdown(std::time::Duration::ZERO).await;
/// running.await?;
/// # Ok(()) }
/// ```
#[must_use = "a bound studio answers nothing until `run` is called"]
pub struct BoundStudio {
    listener: TcpListener,
    shared: Arc<StudioShared>,
}

pub(super) async fn bind(shared: StudioShared, address: SocketAddr) -> std::io::Result<BoundStudio> {
    Ok(BoundStudio { listener: TcpListener::bind(address).await?, shared: Arc::new(shared) })
}

impl BoundStudio {
    /// Returns the URL to open in a browser. It contains the token, in the part that a browser sends to no server.
    pub fn url(&self) -> String {
        let address = self.listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
        format!("http://{address}/#token={}", self.shared.token)
    }

    /// Returns a handle that ends the studio.
    pub fn handle(&self) -> StudioHandle {
        StudioHandle { lifecycle: self.shared.lifecycle.clone() }
    }

    /// Serves the page until the [handle](Self::handle) ends it.
    pub async fn run(self) {
        let Self { listener, shared } = self;
        let ending = shared.lifecycle.reached(ShutdownPhase::Draining);
        let open = accept(listener, CONNECTIONS, ending, |stream| serve(stream, shared.clone())).await;
        shared.lifecycle.reached(ShutdownPhase::Stopped).await;
        shared.cancel_runs("the studio ends");
        open.finish(LAST_RESPONSES).await;
    }
}

/// Ends a running studio.
///
/// ```
/// use agent::studio::Studio;
/// use agent::{Assistant, ScriptedModel};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let studio = Studio::new(assistant).bind(([127, 0, 0, 1], 0)).await?;
/// let handle = studio.handle();
/// let (running, ()) = tokio::join!(tokio::spawn(studio.run()), handle.shutdown(Duration::from_secs(1)));
/// running?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct StudioHandle {
    lifecycle: Lifecycle,
}

impl StudioHandle {
    /// Ends the studio: calls from the form have `grace` to finish, and runs are then cancelled.
    pub async fn shutdown(&self, grace: Duration) {
        self.lifecycle.shutdown(grace).await;
    }
}

async fn serve(stream: TcpStream, shared: Arc<StudioShared>) {
    // Responses are small, and must not be delayed to collect more data.
    let _ = stream.set_nodelay(true);
    let ending = shared.lifecycle.clone();
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(respond(shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(RECEIVE)
        .serve_connection(TokioIo::new(StallLimit::new(stream, SEND)), service);
    drive(connection, http1::Connection::graceful_shutdown, ending.reached(ShutdownPhase::Draining)).await;
}

impl fmt::Debug for BoundStudio {
    /// Shows no token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundStudio")
            .field("address", &self.listener.local_addr().ok())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StudioHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StudioHandle").finish_non_exhaustive()
    }
}
