//! The runs that are active in this process. The engine cannot interrupt a tool's body, so that a cancellation cancels its token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::CancelToken;

/// The cancel tokens of active runs, by name.
#[derive(Clone, Default)]
pub(super) struct ActiveRuns {
    runs: Arc<Mutex<HashMap<Arc<str>, ActiveRun>>>,
}

struct ActiveRun {
    token: CancelToken,
    /// The number of active invocations: that of the run, and those of its calls.
    invocations: usize,
}

/// Keeps a run active until it is dropped.
pub(super) struct ActiveGuard {
    runs: ActiveRuns,
    run: Arc<str>,
    pub(super) token: CancelToken,
}

impl ActiveRuns {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, ActiveRun>> {
        // Nothing that can panic runs while the lock is held.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an invocation of a run.
    pub(super) fn enter(&self, run: &str) -> ActiveGuard {
        let run: Arc<str> = run.into();
        let mut runs = self.lock();
        let active = ActiveRun { token: CancelToken::new(), invocations: 0 };
        let active = runs.entry(run.clone()).or_insert(active);
        active.invocations += 1;
        ActiveGuard { runs: self.clone(), run, token: active.token.clone() }
    }

    /// Cancels the token of a run, and returns whether the run is active in this process.
    pub(super) fn cancel(&self, run: &str, reason: &str) -> bool {
        // Cancels outside of the lock, because code that observes the token may call back.
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
        let (run, call) = (runs.enter("r"), runs.enter("r"));
        drop(run);
        assert!(!runs.cancel("other", "no"));
        assert!(!call.token.is_cancelled());
        assert!(runs.cancel("r", "enough"));
        assert_eq!(call.token.reason().as_deref(), Some("enough"));
        drop(call);
        assert!(runs.lock().is_empty());
        // The registry does not remember the cancellation for later invocations; the engine does.
        assert!(!runs.enter("r").token.is_cancelled());
    }
}
