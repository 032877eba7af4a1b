//! The TCP listener for connections of Restate. The SDK's own listener has no limits, and stops accepting connections after the first
//! error of the operating system.

use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use tokio::net::{TcpListener, TcpStream};

use crate::serve::{StallLimit, accept, drive};
use crate::tool::cancel::CancelToken;

/// Limits on connections. The age of a connection is not limited, because the engine uses one connection for many runs, which may all wait
/// for days.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    connections: usize,
    ping: Duration,
    /// Maximum time in which the other side sends nothing, reads nothing, or does not respond to a ping.
    stall: Duration,
}

pub(super) const LIMITS: ConnectionLimits =
    ConnectionLimits { connections: 1_024, ping: Duration::from_secs(20), stall: Duration::from_secs(60) };

/// Time for active steps to end after the service was stopped.
const GRACE: Duration = Duration::from_secs(10);

/// Serves connections until the token is cancelled. Then waits at most [`GRACE`] for the connections to end, and closes the others.
pub(super) async fn run(
    endpoint: Endpoint,
    listener: TcpListener,
    stop: &CancelToken,
    limits: ConnectionLimits,
) {
    let endpoint = HyperEndpoint::new(endpoint);
    let serving = |stream| serve(stream, endpoint.clone(), stop.clone(), limits);
    let open = accept(listener, limits.connections, stop.cancelled(), serving).await;
    if !open.finish(GRACE).await {
        tracing::warn!(
            "connections of the engine were still open 10 s after the service was stopped, and are closed"
        );
    }
}

async fn serve(stream: TcpStream, endpoint: HyperEndpoint, stop: CancelToken, limits: ConnectionLimits) {
    let stream = StallLimit::new(stream, limits.stall).with_read(limits.stall);
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.ping)
        .keep_alive_timeout(limits.stall)
        .serve_connection(TokioIo::new(stream), endpoint);
    drive(connection, http2::Connection::graceful_shutdown, stop.cancelled()).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    /// The preface of HTTP/2 and an empty `SETTINGS` frame.
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

    async fn is_closed(address: std::net::SocketAddr, sent: &[u8]) -> bool {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut rest = Vec::new();
        timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await.is_ok()
    }

    #[tokio::test]
    async fn silent_connections_are_closed() {
        let limits = ConnectionLimits {
            connections: 2,
            ping: Duration::from_millis(50),
            stall: Duration::from_millis(200),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancelToken::new());
        let token = stop.clone();
        let serving =
            tokio::spawn(async move { run(Endpoint::builder().build(), listener, &token, limits).await });
        // Clients send nothing, a part of the preface or all of it, and then stay silent. More clients connect than the limit allows at
        // once.
        for sent in [&b""[..], &PREFACE[..10], PREFACE] {
            for _ in 0..2 * limits.connections {
                assert!(is_closed(address, sent).await, "after {} bytes", sent.len());
            }
        }
        stop.cancel("the test ends");
        timeout(Duration::from_secs(30), serving).await.unwrap().unwrap();
    }
}
