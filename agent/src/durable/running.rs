//! The runs that are active in this process. A durable engine, such as Restate, cannot interrupt the function of a tool, so a cancelled
//! run cancels a token that the function can watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::loop_core::SteeringPolicy;
use crate::runtime::NEW_MESSAGE;
use crate::tool::cancel::CancelToken;

#[derive(Clone, Default)]
pub(super) struct ActiveRuns {
    runs: Arc<Mutex<HashMap<Arc<str>, ActiveRun>>>,
}

struct ActiveRun {
    token: CancelToken,
    /// The token of the running calls, a child of `token`. After a steering message has cancelled these calls, later calls get a new
    /// token.
    calls: CancelToken,
    /// The number of invocations that use the two tokens: one for the run, and one for each call with its own invocation.
    invocations: usize,
    steering: SteeringPolicy,
}

pub(super) struct ActiveGuard {
    runs: ActiveRuns,
    run: Arc<str>,
    pub(super) token: CancelToken,
}

impl ActiveRuns {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, ActiveRun>> {
        // No code that can panic runs while the lock is held, so the lock is never poisoned.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, run: &str, steering: SteeringPolicy) -> ActiveGuard {
        let run: Arc<str> = run.into();
        let mut runs = self.lock();
        let active = runs.entry(run.clone()).or_insert_with(|| {
            let token = CancelToken::new();
            ActiveRun { calls: token.child(), token, invocations: 0, steering }
        });
        active.invocations += 1;
        ActiveGuard { runs: self.clone(), run, token: active.token.clone() }
    }

    /// Returns the token for a call that begins now, or `None` if the run is not active in this process. The token is cancelled with the
    /// run, and by [`steer`](Self::steer).
    pub(super) fn call_token(&self, run: &str) -> Option<CancelToken> {
        self.lock().get(run).map(|active| active.calls.clone())
    }

    /// Cancels the calls of a run in this process, because a steering message arrived. Does nothing unless the steering policy of the run
    /// is [`SteeringPolicy::CancelRunning`].
    pub(super) fn steer(&self, run: &str) {
        let mut runs = self.lock();
        let active = runs.get_mut(run).filter(|active| active.steering == SteeringPolicy::CancelRunning);
        let stopped = active.map(|active| {
            let next = active.token.child();
            std::mem::replace(&mut active.calls, next)
        });
        drop(runs);
        if let Some(calls) = stopped {
            calls.cancel(NEW_MESSAGE);
        }
    }

    /// Cancels the run if it is active in this process. Returns whether it was active.
    pub(super) fn cancel(&self, run: &str, reason: &str) -> bool {
        // The token is cancelled outside of the lock, because code that observes the token may take the lock.
        let token = self.lock().get(run).map(|active| active.token.clone());
        if let Some(token) = &token {
            token.cancel(reason);
        }
        token.is_some()
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        let mut runs = self.runs.lock();
        if let Some(active) = runs.get_mut(&self.run) {
            active.invocations -= 1;
            if active.invocations == 0 {
                runs.remove(&self.run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cancelled_while_one_of_its_invocations_is_active() {
        let runs = ActiveRuns::default();
        let enter = |run| runs.enter(run, SteeringPolicy::CancelRunning);
        let (run, call) = (enter("r"), enter("r"));
        drop(run);
        assert!(!runs.cancel("other", "no"));
        assert!(!call.token.is_cancelled());
        assert!(runs.cancel("r", "enough"));
        assert_eq!(call.token.reason().as_deref(), Some("enough"));
        drop(call);
        assert!(runs.lock().is_empty());

        let run = enter("r");
        let first = runs.call_token("r").unwrap();
        runs.steer("r");
        assert_eq!(first.reason().as_deref(), Some(NEW_MESSAGE));
        assert!(!run.token.is_cancelled() && !runs.call_token("r").unwrap().is_cancelled());
        runs.cancel("r", "enough");
        assert!(runs.call_token("r").unwrap().is_cancelled());
        drop(run);
        // The registry does not remember the cancellation for later invocations; the engine does.
        assert!(!enter("r").token.is_cancelled());
    }

    #[test]
    fn a_steering_message_stops_the_calls_of_a_run_whose_own_policy_says_so() {
        let runs = ActiveRuns::default();
        let _root = runs.enter("r", SteeringPolicy::CancelRunning);
        let _child = runs.enter("r/1/tool/0", SteeringPolicy::AfterBatch);
        let calls = ["r", "r/1/tool/0"].map(|run| runs.call_token(run).unwrap());
        runs.steer("r");
        runs.steer("r/1/tool/0");
        assert_eq!(calls.map(|token| token.is_cancelled()), [true, false]);
    }
}
