//! The time limit of a run, which counts across all processes that perform the run.

use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::running::ActiveRuns;
use crate::loop_core::{Limit, LimitReached};

/// The time limit of a run. `begun` is in milliseconds since 1970, because the run may continue in another process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SharedDeadline {
    pub(super) begun: u64,
    pub(super) allowed: Duration,
}

impl SharedDeadline {
    fn elapsed(self, now: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(self.begun))
    }

    pub(super) fn nearer(self, other: Option<Self>) -> Self {
        let end = |limit: Self| u128::from(limit.begun) + limit.allowed.as_millis();
        other.filter(|other| end(*other) < end(self)).unwrap_or(self)
    }

    pub(super) fn remaining(self, now: u64) -> Duration {
        self.allowed.saturating_sub(self.elapsed(now))
    }

    pub(super) fn reached(self, now: u64) -> Option<LimitReached> {
        let elapsed = self.elapsed(now);
        (elapsed >= self.allowed).then(|| self.after(elapsed))
    }

    pub(super) fn after(self, elapsed: Duration) -> LimitReached {
        LimitReached::new(Limit::WallTime, self.allowed.as_secs_f64(), elapsed.as_secs_f64())
    }
}

/// The allowed and the used working time of a run. Waiting for answers from outside does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkTime {
    pub(super) allowed: Option<Duration>,
    pub(super) worked: Duration,
    /// The time that the run itself worked since it last started children. `worked` contains this time.
    pub(super) beside_children: Duration,
}

impl WorkTime {
    pub(super) fn add(&mut self, took: u64) {
        self.worked += Duration::from_millis(took);
        self.beside_children += Duration::from_millis(took);
    }

    /// Adds the longest working time of the concurrent children. The time that the run itself worked meanwhile is already counted.
    pub(super) fn add_children(&mut self, longest: Duration) {
        self.worked += longest.saturating_sub(std::mem::take(&mut self.beside_children));
    }

    pub(super) fn remaining(self) -> Option<Duration> {
        self.allowed.map(|allowed| allowed.saturating_sub(self.worked))
    }

    pub(super) fn reached(self) -> Option<LimitReached> {
        let allowed = self.allowed.filter(|allowed| self.worked >= *allowed)?;
        Some(LimitReached::new(Limit::WallTime, allowed.as_secs_f64(), self.worked.as_secs_f64()))
    }
}

/// Does the work of a step. Cancels the run in this process after `limit`. Returns the result and the duration in milliseconds. Without a
/// limit, the duration is 0.
pub(super) async fn measured<T>(
    limit: Option<Duration>,
    (clock, running): (&Clock, &ActiveRuns),
    run: &str,
    work: impl Future<Output = T> + Unpin,
) -> (T, u64) {
    let begun = clock.now();
    let time_limit = limit.map(|allowed| SharedDeadline { begun, allowed });
    let done = cancel_at(time_limit, clock, running, run, work).await;
    (done, if limit.is_some() { clock.now().saturating_sub(begun) } else { 0 })
}

pub(super) async fn cancel_at<T>(
    time_limit: Option<SharedDeadline>,
    clock: &Clock,
    running: &ActiveRuns,
    run: &str,
    driven: impl Future<Output = T> + Unpin,
) -> T {
    let Some(limit) = time_limit else { return driven.await };
    let time = tokio::time::sleep(limit.remaining(clock.now()));
    match select(driven, Box::pin(time)).await {
        Either::Left((done, _)) => done,
        Either::Right(((), driven)) => {
            running.cancel(run, &limit.after(limit.allowed).to_string());
            driven.await
        }
    }
}

/// A clock for the time since 1970. The time never goes back while this process runs.
#[derive(Clone)]
pub(super) struct Clock {
    /// The system time when the clock was created, in milliseconds since 1970.
    start: u64,
    started: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let start = since.ok().and_then(|since| u64::try_from(since.as_millis()).ok());
        Self { start: start.unwrap_or_default(), started: Instant::now() }
    }
}

impl Clock {
    /// Returns the time in milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.start.saturating_add(elapsed)
    }
}
