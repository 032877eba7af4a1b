//! The limits that the runs of a tree share. They are counted in one place of the engine, before a request is made or a call runs.

use super::JournalSteps;
use crate::durable::journal::RunJournal;
use crate::loop_core::{Prepared, ReservedPart, Spent, TreeReservation};
use crate::step_key::StepKey;
use crate::steps::StepError;

impl<J: RunJournal> JournalSteps<'_, J> {
    async fn reserve(&mut self, wanted: Spent) -> Result<ReservedPart, StepError> {
        let root = {
            let run = self.run.lock();
            let first = run.path().calls().first().and_then(|call| call.run_id.parse::<StepKey>().ok());
            first.map_or_else(|| run.run_id().clone(), |key| key.run)
        };
        let (returned, usage) = self.limits.calls.take_rest();
        let limits = self.limits.shared.clone().unwrap_or_default();
        let wanted = TreeReservation {
            limits,
            max_runs: self.limits.max_runs,
            wanted: Spent { usage, ..wanted },
            returned,
        };
        self.journal.reserve(root, wanted).await
    }

    /// Counts a request, or ends the run, because a limit of its tree is reached.
    pub(super) async fn reserve_request(&mut self) -> Result<(), StepError> {
        if self.limits.shared.is_none() {
            return Ok(());
        }
        let reserved = self.reserve(Spent { requests: 1, ..Spent::default() }).await?;
        reserved.reached.map_or(Ok(()), |reached| Err(StepError::Limit(reached)))
    }

    /// Counts the calls that would run. Those for which nothing is left are refused when they are recorded.
    pub(super) async fn reserve_calls(&mut self, prepared: &[Prepared]) -> Result<(), StepError> {
        if self.limits.shared.as_ref().is_none_or(|limits| limits.tool_calls.is_none()) {
            return Ok(());
        }
        let runs =
            |prepared: &&Prepared| matches!(prepared, Prepared::Ready(ready) if ready.cached.is_none());
        let tool_calls = u64::try_from(prepared.iter().filter(runs).count()).unwrap_or(u64::MAX);
        let reserved = self.reserve(Spent { tool_calls, ..Spent::default() }).await?;
        self.limits.calls.set_calls(reserved.tool_calls);
        Ok(())
    }

    /// Counts runs that are started for calls. Returns how many of them may begin.
    pub(super) async fn reserve_runs(&mut self, number: usize) -> Result<usize, StepError> {
        let runs = u32::try_from(number).unwrap_or(u32::MAX);
        let reserved = self.reserve(Spent { runs, ..Spent::default() }).await?;
        Ok(usize::try_from(reserved.runs).unwrap_or(number).min(number))
    }

    /// Returns what the run has taken and not used, and counts its last tokens.
    pub(super) async fn return_rest(&mut self) -> Result<(), StepError> {
        let is_child = !self.run.lock().path().is_root();
        if is_child && self.limits.shared.is_some() {
            self.reserve(Spent::default()).await?;
        }
        Ok(())
    }
}
