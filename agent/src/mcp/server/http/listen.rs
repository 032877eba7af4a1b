//! The built-in listener.

use super::super::error::McpServerError;
use super::super::handle::ServerHandle;
use super::layer::HttpLayer;
use super::message::{ServerResponse, plain};
use crate::serve::{ShutdownPhase, StallLimit, accept, drive};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer;

/// Maximum time to send the last responses when a server ends.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// A server that is bound to an address. Connections wait until it [runs](Self::run).
///
/// ```
/// use agent::mcp::McpServer;
/// use agent::{tool, tools};
/// use std::time::Duration;
///
/// /// Doubles a number.
/// #[tool(read_only)]
/// fn double(n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = McpServer::new(tools![double]).bind(([127, 0, 0, 1], 0)).await?;      // any free port
/// assert!(server.url().ends_with("/mcp"));
/// let handle = server.handle();
/// let running = tokio::spawn(server.run());
/// handle.shutdown(Duration::from_secs(5)).await;
/// running.await??;
/// # Ok(()) }
/// ```
#[must_use = "a bound server answers nothing until `run` is called"]
pub struct BoundServer {
    listener: TcpListener,
    layer: HttpLayer,
}

pub(in super::super) async fn bind(layer: HttpLayer, address: SocketAddr) -> std::io::Result<BoundServer> {
    Ok(BoundServer { listener: TcpListener::bind(address).await?, layer })
}

impl BoundServer {
    /// Returns the URL for clients, such as `http://127.0.0.1:8080/mcp`.
    pub fn url(&self) -> String {
        self.listener.local_addr().map_or_else(|_| String::new(), |address| format!("http://{address}/mcp"))
    }

    /// Returns a handle that notifies the running server of changed tools, and ends it.
    pub fn handle(&self) -> ServerHandle {
        self.layer.handle()
    }

    /// Serves requests until the [handle](Self::handle) ends the server.
    ///
    /// # Errors
    /// Currently returns none: errors of single connections are logged.
    pub async fn run(self) -> Result<(), McpServerError> {
        tracing::info!(url = self.url(), "the MCP server accepts connections");
        let Self { listener, layer } = self;
        let (handle, connections) = (layer.handle(), layer.connections());
        let serving = |stream| serve(stream, layer.clone(), handle.clone());
        let open = accept(listener, connections, handle.reached(ShutdownPhase::Draining), serving).await;
        handle.reached(ShutdownPhase::Stopped).await;
        // Limited, because a client that does not read its last response would keep the connection open.
        open.finish(LAST_RESPONSES).await;
        Ok(())
    }
}

async fn serve(stream: TcpStream, layer: HttpLayer, handle: ServerHandle) {
    // Responses are small, and must not be delayed to collect more data.
    let _ = stream.set_nodelay(true);
    let (receive, stream) = (layer.receive(), StallLimit::new(stream, layer.send()));
    let service = TowerToHyperService::new(layer.layer(NotFoundService));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(receive)
        .serve_connection(TokioIo::new(stream), service);
    let ending = handle.reached(ShutdownPhase::Draining);
    drive(connection, http1::Connection::graceful_shutdown, ending).await;
}

/// The application around the built-in listener. It responds with 404 to every path.
#[derive(Clone, Copy)]
struct NotFoundService;

impl tower_service::Service<Request<Incoming>> for NotFoundService {
    type Response = ServerResponse;
    type Error = Infallible;
    type Future = std::future::Ready<Result<ServerResponse, Infallible>>;

    fn poll_ready(&mut self, _task: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Incoming>) -> Self::Future {
        std::future::ready(Ok(plain(StatusCode::NOT_FOUND, "There is nothing here.")))
    }
}

impl fmt::Debug for BoundServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundServer").field("url", &self.url()).finish_non_exhaustive()
    }
}
