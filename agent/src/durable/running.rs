//! The runs of this process. A cancellation by the engine does not reach a running body, but a token does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::CancelToken;

/// The tokens of runs that are active in this process.
#[derive(Clone, Default)]
pub(super) struct Running {
    runs: Arc<Mutex<HashMap<Arc<str>, Entry>>>,
}

struct Entry {
    token: CancelToken,
    /// How many parts of the run are active here: the run itself, and calls.
    parts: usize,
}

/// A part of a run, for as long as it is active here.
pub(super) struct Part {
    running: Running,
    run: Arc<str>,
    pub(super) token: CancelToken,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Entry>> {
        // Nothing that can panic runs while the lock is held.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, run: &str) -> Part {
        let run: Arc<str> = run.into();
        let mut runs = self.lock();
        let entry = runs.entry(run.clone()).or_insert_with(|| Entry { token: CancelToken::new(), parts: 0 });
        entry.parts += 1;
        Part { running: self.clone(), run, token: entry.token.clone() }
    }

    /// Cancels what runs here, and returns whether anything does.
    pub(super) fn cancel(&self, run: &str, reason: &str) -> bool {
        // Outside of the lock: code that observes the token may call back.
        let token = self.lock().get(run).map(|entry| entry.token.clone());
        if let Some(token) = &token {
            token.cancel(reason);
        }
        token.is_some()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut runs = self.running.lock();
        if let Some(entry) = runs.get_mut(&self.run) {
            entry.parts -= 1;
            if entry.parts == 0 {
                runs.remove(&self.run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_as_long_as_a_part_of_it_is_here() {
        let running = Running::default();
        let (run, call) = (running.enter("r"), running.enter("r"));
        drop(run);
        assert!(!running.cancel("other", "no"));
        assert!(!call.token.is_cancelled());
        assert!(running.cancel("r", "enough"));
        assert_eq!(call.token.reason().as_deref(), Some("enough"));
        drop(call);
        assert!(running.lock().is_empty());
        // Not kept for a run that enters again: the engine remembers the cancellation.
        assert!(!running.enter("r").token.is_cancelled());
    }
}
