//! The ends of calls that could not be recorded because the store failed. The next run records them.

use std::collections::VecDeque;

use super::keeper::{StoreAccess, now};
use crate::loop_core::CallEnd;
use crate::step_key::StepKey;
use crate::store::{InvocationEnd, InvocationRecord, StoreError};
use crate::tool::outcome::ToolOutcome;

/// Maximum number of calls whose end an assistant keeps because the store failed. Each failure ends a run, so only many runs reach this
/// number.
const MAX_UNRECORDED: usize = 1_000;

#[derive(Clone)]
pub(in crate::runtime) enum UnrecordedEnd {
    /// A call that did not run: its record and its outcome. The store may already have the record, without an end.
    NotRun(Box<InvocationRecord>, ToolOutcome),
    Ended(StepKey, InvocationEnd),
    /// A call that had begun and is deferred, so that its result arrives later.
    Deferred(StepKey, String),
}

impl UnrecordedEnd {
    pub(super) fn of_end(key: &StepKey, end: &CallEnd) -> Self {
        match &end.outcome {
            ToolOutcome::Deferred { handle } => Self::Deferred(key.clone(), handle.clone()),
            outcome => {
                let mut stored = InvocationEnd::new(outcome.clone(), now());
                stored.control = end.control;
                Self::Ended(key.clone(), stored)
            }
        }
    }

    pub(super) fn lost(key: StepKey) -> Self {
        Self::Ended(key, InvocationEnd::new(ToolOutcome::lost(), now()))
    }

    pub(super) fn key(&self) -> &StepKey {
        match self {
            Self::NotRun(new, _) => &new.key,
            Self::Ended(key, _) | Self::Deferred(key, _) => key,
        }
    }
}

/// The ends that an assistant could not record, oldest first.
#[derive(Default)]
pub(in crate::runtime) struct UnrecordedEnds(VecDeque<UnrecordedEnd>);

impl UnrecordedEnds {
    pub(super) fn first(&self) -> Option<UnrecordedEnd> {
        self.0.front().cloned()
    }

    pub(super) fn remove_first(&mut self) {
        self.0.pop_front();
    }

    pub(in crate::runtime) fn add(&mut self, ends: impl IntoIterator<Item = UnrecordedEnd>) {
        self.0.extend(ends);
        while self.0.len() > MAX_UNRECORDED {
            if let Some(oldest) = self.0.pop_front() {
                tracing::error!(key = %oldest.key(), "the end of a call will not be recorded, because too many are waiting");
            }
        }
    }
}

impl StoreAccess {
    /// Records the end of a call. A record that already has another end is not changed.
    pub(super) async fn record(&self, end: UnrecordedEnd) -> Result<(), StoreError> {
        let (key, is_recorded) = match end {
            UnrecordedEnd::NotRun(new, outcome) => return self.record_ended(*new, outcome).await,
            UnrecordedEnd::Ended(key, end) => {
                let is_recorded = self.finish(&key, end).await?;
                (key, is_recorded)
            }
            UnrecordedEnd::Deferred(key, handle) => {
                let is_recorded = self.defer(&key, &handle).await?;
                (key, is_recorded)
            }
        };
        if !is_recorded {
            tracing::warn!(%key, "the record of this call already has another end");
        }
        Ok(())
    }
}
