//! The signal that stops a run: cancellation or its time limit.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::Instant;

use crate::loop_core::{Limit, LimitReached};
use crate::tool::cancel::CancelToken;

/// The token that cancels a run, and the time limit that cancels this token.
#[derive(Clone)]
pub(super) struct StopSignal {
    pub(super) cancel: CancelToken,
    time_limit: Option<Arc<TimeLimit>>,
}

struct TimeLimit {
    begun: Instant,
    allowed: Duration,
    /// The time limit, if it stopped the run. Not set if the run was cancelled before the time was up.
    reached: OnceLock<LimitReached>,
}

impl StopSignal {
    pub(super) fn new(cancel: CancelToken, allowed: Option<Duration>) -> Self {
        let limit =
            |allowed| Arc::new(TimeLimit { begun: Instant::now(), allowed, reached: OnceLock::new() });
        Self { cancel, time_limit: allowed.map(limit) }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.time_limit.as_ref().and_then(|limit| limit.begun.checked_add(limit.allowed))
    }

    pub(super) fn limit(&self) -> Option<LimitReached> {
        self.time_limit.as_ref()?.reached.get().cloned()
    }

    /// Returns whether the run has to stop now. Reads the clock, because the timer of [`watch`](Self::watch) cannot fire while the task
    /// does not yield.
    pub(super) fn is_set(&self) -> bool {
        if self.deadline().is_some_and(|at| at <= Instant::now()) {
            self.time_is_up();
        }
        self.cancel.is_cancelled()
    }

    /// Drives a future to its end. If the time is up first, cancels the run, and then waits for the future.
    pub(super) async fn watch<T>(&self, work: impl Future<Output = T> + Unpin) -> T {
        let Some(at) = self.deadline() else { return work.await };
        match select(work, Box::pin(tokio::time::sleep_until(at))).await {
            Either::Left((done, _)) => done,
            Either::Right(((), work)) => {
                self.time_is_up();
                work.await
            }
        }
    }

    fn time_is_up(&self) {
        let Some(limit) = &self.time_limit else { return };
        if !self.cancel.is_cancelled() {
            let used = limit.begun.elapsed().as_secs_f64();
            let reached = LimitReached::new(Limit::WallTime, limit.allowed.as_secs_f64(), used);
            // The limit is set before the token is cancelled, because tasks that wait for the token read the limit.
            let reason = reached.to_string();
            if limit.reached.set(reached).is_ok() {
                self.cancel.cancel(reason);
            }
        }
    }
}
