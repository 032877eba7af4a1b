//! The clock of models. It uses tokio's timer, so that a test can pause the clock.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

use super::TokioExecutor;
use crate::tool::BoxFuture;
use crate::tool::executor::Executor;

/// A clock that measures the time since its first use.
#[derive(Debug, Default)]
pub(crate) struct TokioClock {
    start: OnceLock<Instant>,
}

impl Executor for TokioClock {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        TokioExecutor.run_blocking(work)
    }

    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>> {
        TokioExecutor.sleep(duration)
    }

    fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(*self.start.get_or_init(Instant::now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_follows_a_paused_clock() {
        let clock = TokioClock::default();
        assert_eq!(clock.now(), Duration::ZERO);
        clock.sleep(Duration::from_secs(3600)).unwrap().await;
        assert_eq!(clock.now().as_secs(), 3600);
    }
}
