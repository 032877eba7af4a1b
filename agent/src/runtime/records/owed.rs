//! What could not be recorded when it happened: it is recorded when the store is well again.

use std::collections::VecDeque;

use super::begin::RunRecords;
use super::{Keeper, now};
use crate::loop_core::CallEnd;
use crate::message::LOST;
use crate::runtime::assistant::Assistant;
use crate::store::{InvocationEnd, NewInvocation, StoreError, StoreErrorKind};
use crate::{InterruptionCode, StepKey, ToolOutcome};

/// How many ends an assistant keeps for its store. A run that cannot record ends at once, so these are many runs.
const MAX_OWED: usize = 1_000;

/// What a record has not been told.
#[derive(Clone)]
pub(in crate::runtime) enum Owed {
    /// The end of a call that did not run; there may be a record of its begin.
    Note(Box<NewInvocation>, ToolOutcome),
    /// The end of a call that had begun.
    End(StepKey, InvocationEnd),
    /// The result of a call that had begun comes from outside.
    Defer(StepKey, String),
}

impl Owed {
    /// How a call ended that had begun.
    pub(super) fn end_of(key: &StepKey, end: &CallEnd) -> Self {
        match &end.outcome {
            ToolOutcome::Deferred { handle } => Self::Defer(key.clone(), handle.clone()),
            outcome => {
                let mut stored = InvocationEnd::new(outcome.clone(), now());
                stored.control = end.control;
                Self::End(key.clone(), stored)
            }
        }
    }

    /// Nobody knows what became of a call that had begun.
    pub(super) fn lost(key: StepKey) -> Self {
        let outcome = ToolOutcome::Interrupted { code: InterruptionCode::LOST, reason: LOST.to_owned() };
        Self::End(key, InvocationEnd::new(outcome, now()))
    }

    fn key(&self) -> &StepKey {
        match self {
            Self::Note(new, _) => &new.key,
            Self::End(key, _) | Self::Defer(key, _) => key,
        }
    }
}

/// What an assistant owes its store, oldest first.
#[derive(Default)]
pub(in crate::runtime) struct Debts(VecDeque<Owed>);

impl Debts {
    pub(super) fn add(&mut self, owed: impl IntoIterator<Item = Owed>) {
        self.0.extend(owed);
        while self.0.len() > MAX_OWED {
            if let Some(owed) = self.0.pop_front() {
                tracing::error!(key = %owed.key(), "the end of a call will not be recorded: there are too many");
            }
        }
    }
}

impl Keeper {
    pub(super) async fn settle(&self, owed: Owed) -> Result<(), StoreError> {
        let (key, is_told) = match owed {
            Owed::Note(new, outcome) => return self.note(*new, outcome).await,
            Owed::End(key, end) => {
                let is_told = self.finish(&key, end).await?;
                (key, is_told)
            }
            Owed::Defer(key, handle) => {
                let is_told = self.defer(&key, &handle).await?;
                (key, is_told)
            }
        };
        if !is_told {
            tracing::warn!(%key, "somebody else ended the record of this call");
        }
        Ok(())
    }
}

impl RunRecords {
    /// Records what could not be recorded before.
    pub(super) async fn settle(&self, assistant: &Assistant) -> Result<(), StoreError> {
        let next = || assistant.state().debts.0.front().cloned();
        while let Some(owed) = next() {
            let key = owed.key().clone();
            match self.keeper.settle(owed).await {
                Ok(()) => {}
                Err(error) if may_be_told_later(error.kind()) => return Err(error),
                // It would be in the way of all that comes.
                Err(error) => tracing::error!(%key, %error, "the end of a call was not recorded"),
            }
            assistant.state().debts.0.pop_front();
        }
        Ok(())
    }
}

fn may_be_told_later(kind: StoreErrorKind) -> bool {
    !matches!(kind, StoreErrorKind::Corrupt | StoreErrorKind::Conflict | StoreErrorKind::Other)
}
