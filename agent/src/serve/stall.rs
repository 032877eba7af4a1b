//! Time limits for connections whose other side neither reads nor sends.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream whose writes fail if they make no progress within a time limit. Reads can have a time limit, too.
pub(crate) struct StallLimit<S> {
    stream: S,
    write: StallTimer,
    read: Option<StallTimer>,
}

/// The time limit for the operations of one direction: reads or writes.
struct StallTimer {
    limit: Duration,
    /// The timer that makes the pending operation fail. Created for the first pending operation.
    sleep: Option<Pin<Box<Sleep>>>,
    is_pending: bool,
}

impl StallTimer {
    fn new(limit: Duration) -> Self {
        Self { limit, sleep: None, is_pending: false }
    }

    /// Returns the result of an operation, or an error if the operation has been pending for too long.
    fn limit<T>(&mut self, task: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.is_pending = false;
            return result;
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        if !std::mem::replace(&mut self.is_pending, true) {
            let now = Instant::now();
            // A limit beyond the range of the clock is replaced by a day.
            sleep.as_mut().reset(now.checked_add(self.limit).unwrap_or(now + Duration::from_secs(86_400)));
        }
        ready!(sleep.as_mut().poll(task));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the other side neither read nor sent anything in time",
        )))
    }
}

impl<S> StallLimit<S> {
    pub(crate) fn new(stream: S, write: Duration) -> Self {
        Self { stream, write: StallTimer::new(write), read: None }
    }

    /// Sets a time limit for reads, for connections whose other side must send data from time to time.
    #[cfg(feature = "durable-restate")]
    pub(crate) fn with_read(mut self, limit: Duration) -> Self {
        self.read = Some(StallTimer::new(limit));
        self
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(task, buffer);
        match &mut self.read {
            Some(timer) => timer.limit(task, read),
            None => read,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallLimit<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.write.limit(task, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(task);
        self.write.limit(task, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(task);
        self.write.limit(task, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(task, slices);
        self.write.limit(task, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn a_write_fails_if_nothing_is_read_but_not_if_little_is() {
        let limit = Duration::from_secs(10);
        let (client, mut reader) = tokio::io::duplex(8);
        let mut stream = StallLimit::new(client, limit);
        stream.write_all(b"12345678").await.unwrap();
        // Idle time does not count, because no operation is pending.
        tokio::time::sleep(limit * 3).await;
        let reading = tokio::spawn(async move {
            let mut byte = [0];
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_secs(9)).await;
                reader.read_exact(&mut byte).await.unwrap();
            }
            reader
        });
        stream.write_all(&[b'x'; 20]).await.unwrap();
        let reader = reading.await.unwrap();
        let begun = Instant::now();
        let failed =
            timeout(limit * 2, stream.write_all(b"more")).await.expect("within the limit").unwrap_err();
        assert_eq!((failed.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, limit));
        drop(reader);
    }

    #[cfg(feature = "durable-restate")]
    #[tokio::test(start_paused = true)]
    async fn a_read_fails_if_nothing_is_sent() {
        let limit = Duration::from_secs(10);
        let (mut client, stream) = tokio::io::duplex(8);
        let mut stream = StallLimit::new(stream, limit).with_read(limit);
        let sending = tokio::spawn(async move {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(9)).await;
                client.write_all(b"x").await.unwrap();
            }
            client
        });
        let mut bytes = [0; 4];
        let failed = stream.read_exact(&mut bytes).await.unwrap_err();
        assert_eq!((failed.kind(), &bytes), (io::ErrorKind::TimedOut, b"xxx\0"));
        drop(sending.await.unwrap());
    }
}
