//! When a run has to stop: it was cancelled, or its time is up.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::{Instant, Sleep};

use crate::CancelToken;
use crate::loop_core::{Limit, LimitReached};

/// When a run has to stop.
pub(super) struct Stop {
    pub(super) cancel: CancelToken,
    deadline: Option<(Pin<Box<Sleep>>, Duration)>,
    begun: Instant,
    /// The limit that was reached.
    pub(super) limit: Option<LimitReached>,
}

impl Stop {
    pub(super) fn new(cancel: CancelToken, allowed: Option<Duration>) -> Self {
        let deadline = allowed.map(|allowed| (Box::pin(tokio::time::sleep(allowed)), allowed));
        Self { cancel, deadline, begun: Instant::now(), limit: None }
    }

    /// When its time is up.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.deadline.as_ref().map(|(sleep, _)| sleep.deadline())
    }

    pub(super) fn is_now(&mut self) -> bool {
        // By the clock: a timer that nobody polled knows nothing.
        if self.ends_at().is_some_and(|at| at <= Instant::now()) {
            self.time_is_up();
        }
        self.cancel.is_cancelled()
    }

    /// Waits until it has to.
    pub(super) async fn wait(&mut self) {
        let cancelled = self.cancel.cancelled();
        match &mut self.deadline {
            None => return cancelled.await,
            Some((sleep, _)) => {
                if let Either::Left(_) = select(cancelled, sleep.as_mut()).await {
                    return;
                }
            }
        }
        self.time_is_up();
    }

    /// Everything that hangs on the token is told, in the words of the limit.
    fn time_is_up(&mut self) {
        let Some((_, allowed)) = &self.deadline else { return };
        if !self.cancel.is_cancelled() {
            let used = self.begun.elapsed().as_secs_f64();
            let reached = LimitReached::new(Limit::WallTime, allowed.as_secs_f64(), used);
            self.limit = Some(reached);
            self.cancel.cancel(reached.to_string());
        }
    }

    pub(super) fn reason(&self) -> Arc<str> {
        self.cancel.reason().unwrap_or_else(|| "cancelled".into())
    }
}
