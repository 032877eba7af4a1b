//! The HTTP server of the studio.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::route::respond;
use super::shared::StudioShared;
use crate::serve::{ShutdownPhase, StallLimit, accept, drive};
use crate::tool::cancel::CancelToken;

/// Maximum number of connections. A browser uses one connection for each run whose events it receives.
const CONNECTIONS: usize = 64;
/// Time limit for receiving the head of a request.
const RECEIVE: Duration = Duration::from_secs(15);
/// Time after which a connection ends if the client does not read.
const SEND: Duration = Duration::from_secs(30);
/// Maximum time to send the last responses when the studio ends.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// Time in which tools that a user called directly must finish when the studio ends.
const GRACE: Duration = Duration::from_secs(1);

/// Binds the address. Returns the URL of the studio's web page, and the future that serves the page. The URL contains the token in its
/// fragment, which browsers do not send to servers. The URL begins with `origin`, or with the origin of the address if `origin` is `None`.
pub(super) async fn bind(
    shared: StudioShared,
    address: SocketAddr,
    origin: Option<String>,
    stop: CancelToken,
) -> std::io::Result<(String, impl Future<Output = ()> + Send + 'static)> {
    let listener = TcpListener::bind(address).await?;
    let own = listener.local_addr()?;
    let url = format!("{}/#token={}", origin.unwrap_or_else(|| format!("http://{own}")), shared.token);
    Ok((url, run(listener, Arc::new(shared), stop)))
}

async fn run(listener: TcpListener, shared: Arc<StudioShared>, stop: CancelToken) {
    let serving = async {
        let ending = shared.lifecycle.reached(ShutdownPhase::Draining);
        let open = accept(listener, CONNECTIONS, ending, |stream| serve(stream, shared.clone())).await;
        shared.lifecycle.reached(ShutdownPhase::Stopped).await;
        shared.cancel_runs("the studio ends");
        open.finish(LAST_RESPONSES).await;
    };
    let stopping = async {
        stop.cancelled().await;
        shared.lifecycle.shutdown(GRACE).await;
    };
    tokio::join!(serving, stopping);
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
