//! The state of an assistant's session: its interrupted run, and how much of its conversation is stored.

use std::collections::HashSet;
use std::sync::Arc;

use crate::loop_core::AgentLoop;
use crate::message::Conversation;
use crate::step_key::StepKey;

pub(in crate::runtime) struct SessionState {
    pub(super) id: Arc<str>,
    /// The writer id of all entries that this process adds. Each opening of the session creates a new id.
    pub(super) writer: String,
    /// The number of the last stored entry.
    pub(super) seq: u64,
    /// The number of messages of the conversation that are stored.
    pub(super) stored: usize,
    pub(super) stored_changes: usize,
    /// Whether the stored messages differ from the conversation, so that the whole conversation is stored again.
    pub(super) is_rewritten: bool,
    /// The last run with a stored end.
    pub(super) ended: Option<EndedRun>,
    /// The id of the last run with stored entries but without a stored end.
    pub(super) run: Option<Arc<str>>,
    pub(super) is_begin_stored: bool,
    pub(super) interrupted: Option<InterruptedRun>,
    /// The calls of abandoned runs. The next run records that their outcomes are unknown.
    pub(super) lost: Vec<StepKey>,
    /// The run and turn of each message that the session had when it was opened.
    #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
    pub(super) places: Vec<(Arc<str>, u32)>,
}

pub(super) struct InterruptedRun {
    pub(super) core: AgentLoop,
    pub(super) withheld: HashSet<String>,
    pub(super) pending: Vec<StepKey>,
}

#[derive(Default)]
pub(in crate::runtime) struct InterruptedTurn {
    pub(super) turn: u32,
    pub(super) withheld: HashSet<String>,
}

pub(in crate::runtime) struct RestoredRun {
    pub(in crate::runtime) core: AgentLoop,
    pub(in crate::runtime) interrupted: InterruptedTurn,
}

/// The stored state of a sub-agent's run, which is the only run of its session.
pub(in crate::runtime) enum StoredRun {
    New,
    /// The beginning of the run is stored, but not its end, and the run can be continued.
    Unfinished,
    /// The beginning of the run is stored, but the run cannot be continued with the current configuration.
    Lost,
    Ended(EndedRun),
}

#[derive(Clone, Default)]
pub(in crate::runtime) struct EndedRun {
    /// The position of the run's first message in the conversation.
    pub(in crate::runtime) from: usize,
    pub(in crate::runtime) stop: String,
    /// The reached limit, the reason of the cancellation, or the error, if the run ended for one of these reasons.
    pub(in crate::runtime) detail: Option<String>,
}

impl SessionState {
    pub(super) fn only_run(&self) -> StoredRun {
        match (&self.interrupted, &self.run) {
            _ if self.seq == 0 => StoredRun::New,
            (Some(_), _) => StoredRun::Unfinished,
            (None, Some(_)) => StoredRun::Lost,
            (None, None) => StoredRun::Ended(self.ended.clone().unwrap_or_default()),
        }
    }

    pub(in crate::runtime) fn stored(&self) -> usize {
        self.stored
    }

    /// Returns the number of stored `ViewChange`s, or 0 if the whole conversation is stored again.
    pub(in crate::runtime) fn stored_changes(&self) -> usize {
        if self.is_rewritten { 0 } else { self.stored_changes }
    }

    /// Abandons the interrupted run, if there is one, because another run begins or the session is reset.
    pub(in crate::runtime) fn abandon_interrupted_run(&mut self) {
        self.is_begin_stored = false;
        if let Some(interrupted) = self.interrupted.take() {
            self.lost.extend(interrupted.pending);
        }
    }

    pub(in crate::runtime) fn interrupted_conversation(&self, run: &Arc<str>) -> Option<Conversation> {
        let interrupted = self.interrupted.as_ref().filter(|interrupted| interrupted.core.run_id() == run);
        interrupted.map(|interrupted| interrupted.core.conversation().clone())
    }

    /// Prepares to resume the run with the id `run` from a snapshot. If another run was interrupted, it is abandoned.
    pub(in crate::runtime) fn prepare_resume(&mut self, run: &Arc<str>) {
        if let Some(interrupted) =
            self.interrupted.take().filter(|interrupted| interrupted.core.run_id() != run)
        {
            self.lost.extend(interrupted.pending);
        }
        self.is_begin_stored = false;
    }

    pub(in crate::runtime) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    pub(in crate::runtime) fn restore(&mut self) -> Option<RestoredRun> {
        let InterruptedRun { core, withheld, .. } = self.interrupted.take()?;
        self.is_begin_stored = false;
        let interrupted = InterruptedTurn { turn: core.turn(), withheld };
        Some(RestoredRun { core, interrupted })
    }
}
