//! Stops a run that was cancelled, or whose time limit was reached.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::{Instant, Sleep};

use crate::loop_core::{Limit, LimitReached};
use crate::tool::cancel::CancelToken;

/// Signals that a run has to stop: by its token, or by its time limit, which cancels the token.
pub(super) struct StopSignal {
    pub(super) cancel: CancelToken,
    deadline: Option<(Pin<Box<Sleep>>, Duration)>,
    begun: Instant,
    /// The time limit, if it was reached.
    pub(super) limit: Option<LimitReached>,
}

impl StopSignal {
    pub(super) fn new(cancel: CancelToken, allowed: Option<Duration>) -> Self {
        let deadline = allowed.map(|allowed| (Box::pin(tokio::time::sleep(allowed)), allowed));
        Self { cancel, deadline, begun: Instant::now(), limit: None }
    }

    /// Returns when the time limit is reached, if there is one.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline.as_ref().map(|(sleep, _)| sleep.deadline())
    }

    /// Returns whether the run has to stop.
    pub(super) fn is_set(&mut self) -> bool {
        // Compares with the clock, because a timer does not elapse until it is polled.
        if self.deadline().is_some_and(|at| at <= Instant::now()) {
            self.reach_time_limit();
        }
        self.cancel.is_cancelled()
    }

    /// Waits until the run has to stop.
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
        self.reach_time_limit();
    }

    /// Cancels the token, with the text of the limit as the reason.
    fn reach_time_limit(&mut self) {
        let Some((_, allowed)) = &self.deadline else { return };
        if !self.cancel.is_cancelled() {
            let used = self.begun.elapsed().as_secs_f64();
            let reached = LimitReached::new(Limit::WallTime, allowed.as_secs_f64(), used);
            self.limit = Some(reached);
            self.cancel.cancel(reached.to_string());
        }
    }

    /// Returns the reason of the cancellation.
    pub(super) fn reason(&self) -> Arc<str> {
        self.cancel.reason().unwrap_or_else(|| "cancelled".into())
    }
}
