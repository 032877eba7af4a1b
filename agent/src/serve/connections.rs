//! Accepts the connections of a server, up to a maximum number, and ends them.

use std::fmt::Display;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Pause after an error of the operating system, such as too many open files, before the next connection is accepted.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct OpenConnections(JoinSet<()>);

/// Accepts and serves connections, at most `max` at once, until `ending` completes. Then closes the listener, and
/// returns the connections that are still open.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    max: usize,
    ending: impl Future<Output = ()>,
    serve: impl Fn(TcpStream) -> F,
) -> OpenConnections
where
    F: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let mut ending = pin!(ending);
    loop {
        let permit = tokio::select! {
            () = &mut ending => break,
            Some(_) = connections.join_next() => continue,
            permit = permits.clone().acquire_owned() => permit,
        };
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            () = &mut ending => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let serving = serve(stream);
                connections.spawn(async move {
                    let _permit = permit;
                    serving.await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    OpenConnections(connections)
}

impl OpenConnections {
    /// Waits until all connections have ended, for at most `time`. Then closes the connections that are still open.
    /// Returns whether all connections ended in time.
    pub(crate) async fn finish(mut self, time: Duration) -> bool {
        let finishing = async { while self.0.join_next().await.is_some() {} };
        let is_finished = tokio::time::timeout(time, finishing).await.is_ok();
        if !is_finished {
            self.0.shutdown().await;
        }
        is_finished
    }
}

/// Serves a connection of hyper until it ends. When `ending` completes, calls `shut_down`, so that the connection
/// accepts no further requests and ends after the current ones.
pub(crate) async fn drive<C, E>(connection: C, shut_down: fn(Pin<&mut C>), ending: impl Future<Output = ()>)
where
    C: Future<Output = Result<(), E>>,
    E: Display,
{
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = ending => {
            shut_down(connection.as_mut());
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
