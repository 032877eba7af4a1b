//! A circuit breaker, which pauses requests to a model after repeated failures. It has no clock: the time is an argument of its methods.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::{ModelError, ModelErrorKind};

/// Number of failures within [`WINDOW`] that open the breaker.
const FAILURES: usize = 3;
const WINDOW: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const MAX_PAUSE: Duration = Duration::from_secs(600);
const AUTH_PAUSE: Duration = Duration::from_secs(300);

/// The breaker of one model: closed, open until a point in time, or open while one request probes the model.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// The times of the newest failures, at most [`FAILURES`].
    failures: VecDeque<Duration>,
    open: Option<OpenBreaker>,
}

#[derive(Clone, Copy, Debug)]
struct OpenBreaker {
    until: Duration,
    pause: Duration,
    is_probing: bool,
}

impl Breaker {
    pub(super) fn is_admitting(&self, now: Duration) -> bool {
        self.open.is_none_or(|open| now >= open.until && !open.is_probing)
    }

    /// Returns the time from which the breaker admits a probe, or zero if the breaker is closed.
    pub(super) fn reopens_at(&self) -> Duration {
        self.open.map_or(Duration::ZERO, |open| open.until)
    }

    /// Admits a request in any state. Returns whether the request is a probe of an open breaker. The result of a probe closes the breaker
    /// or opens it again.
    pub(super) fn admit(&mut self) -> bool {
        if let Some(open) = &mut self.open {
            open.is_probing = true;
        }
        self.open.is_some()
    }

    pub(super) fn record_success(&mut self) {
        *self = Self::default();
    }

    /// Ends a probe that had no result, so that another probe may follow.
    pub(super) fn release_probe(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = false;
        }
    }

    /// Counts a failure. The breaker opens after [`FAILURES`] failures within [`WINDOW`], after an authentication error, and after a
    /// failed probe.
    pub(super) fn record_failure(&mut self, now: Duration, error: &ModelError, is_probe: bool) {
        let pause = match self.open {
            // The request had begun before the breaker opened, so its failure does not count.
            Some(_) if !is_probe => return,
            Some(open) => open.pause.saturating_mul(2).min(MAX_PAUSE),
            None => FIRST_PAUSE,
        };
        let is_auth = error.kind() == ModelErrorKind::Auth;
        if self.open.is_none() && !is_auth {
            self.failures.retain(|at| now.saturating_sub(*at) < WINDOW);
            self.failures.push_back(now);
            if self.failures.len() < FAILURES {
                return;
            }
        }
        self.failures.clear();
        let closed_for = if is_auth { AUTH_PAUSE } else { error.retry_after().unwrap_or(pause) };
        self.open = Some(OpenBreaker { until: now.saturating_add(closed_for), pause, is_probing: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn overloaded() -> ModelError {
        ModelError::new(ModelErrorKind::Overloaded, "busy")
    }

    #[test]
    fn three_failures_within_a_minute_open_it() {
        for (times, opens) in [([0, 1, 59], true), ([0, 30, 60], false), ([0, 61, 100], false)] {
            let mut breaker = Breaker::default();
            for second in times {
                assert!(breaker.is_admitting(at(second)));
                breaker.record_failure(at(second), &overloaded(), false);
            }
            assert_eq!(!breaker.is_admitting(at(times[2])), opens, "{times:?}");
        }
        let mut breaker = Breaker::default();
        for second in [0, 1] {
            breaker.record_failure(at(second), &overloaded(), false);
        }
        breaker.record_success();
        breaker.record_failure(at(2), &overloaded(), false);
        assert!(breaker.is_admitting(at(2)), "a reply forgets earlier failures");
    }

    #[test]
    fn pauses_double_up_to_ten_minutes_and_one_probe_is_admitted_at_a_time() {
        let mut breaker = Breaker::default();
        (0..3).for_each(|_| breaker.record_failure(at(0), &overloaded(), false));
        let mut now = 0;
        for pause in [30, 60, 120, 240, 480, 600, 600] {
            assert!(!breaker.is_admitting(at(now + pause - 1)), "{pause}");
            now += pause;
            assert!(breaker.is_admitting(at(now)), "{pause}");
            assert!(breaker.admit());
            assert!(!breaker.is_admitting(at(now)), "a second probe");
            breaker.record_failure(at(now), &overloaded(), true);
        }
        assert!(breaker.admit());
        breaker.release_probe();
        assert!(breaker.is_admitting(breaker.reopens_at()), "an abandoned probe frees its place");
        breaker.record_success();
        assert!(!breaker.admit(), "closed: no probe");
    }

    #[test]
    fn a_bad_key_opens_it_at_once_and_retry_after_sets_the_time() {
        let mut breaker = Breaker::default();
        breaker.record_failure(at(0), &ModelError::new(ModelErrorKind::Auth, "no"), false);
        assert_eq!(breaker.reopens_at(), at(300));
        let mut breaker = Breaker::default();
        let limited = ModelError::new(ModelErrorKind::RateLimit, "no").with_retry_after(at(7));
        (0..3).for_each(|_| breaker.record_failure(at(1), &limited, false));
        assert_eq!(breaker.reopens_at(), at(8));
        breaker.record_failure(at(2), &limited, false);
        assert_eq!(breaker.reopens_at(), at(8), "a request from before does not extend the pause");
        let endless = ModelError::new(ModelErrorKind::RateLimit, "no").with_retry_after(Duration::MAX);
        breaker.record_failure(at(8), &endless, true);
        assert_eq!(breaker.reopens_at(), Duration::MAX);
    }
}
