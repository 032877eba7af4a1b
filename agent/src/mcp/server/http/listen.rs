//! The built-in listener.

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
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer;

/// Maximum time to send the last responses after the server was stopped.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

pub(crate) async fn bind(
    layer: HttpLayer,
    address: SocketAddr,
) -> std::io::Result<(String, impl Future<Output = ()> + Send + 'static)> {
    let listener = TcpListener::bind(address).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let serving = run(listener, layer, url.clone());
    Ok((url, serving))
}

async fn run(listener: TcpListener, layer: HttpLayer, url: String) {
    tracing::info!(url, "the MCP server accepts connections");
    let (handle, connections) = (layer.handle(), layer.connections());
    let serving = |stream| serve(stream, layer.clone(), handle.clone());
    let open = accept(listener, connections, handle.reached(ShutdownPhase::Draining), serving).await;
    handle.reached(ShutdownPhase::Stopped).await;
    // The wait is limited, because a client that does not read its last response would keep the connection open.
    open.finish(LAST_RESPONSES).await;
}

async fn serve(stream: TcpStream, layer: HttpLayer, handle: ServerHandle) {
    // Responses are small. Without `TCP_NODELAY`, a response could wait in the buffer for more data.
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
