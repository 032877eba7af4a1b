//! The session of an assistant: the run that was interrupted in it, and how much of the conversation is stored.

use std::collections::HashSet;
use std::sync::Arc;

use super::now;
use crate::loop_core::AgentLoop;
use crate::message::Conversation;
#[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
use crate::message::Message;
#[cfg(doc)]
use crate::runtime::AssistantBuilder;
use crate::runtime::assistant::{Assistant, AssistantState};
use crate::step_key::StepKey;
use crate::store::{EntryKind, SessionEntry};

/// The stored part of a session.
pub(in crate::runtime) struct SessionState {
    pub(super) id: Arc<str>,
    /// Identifies the entries that this opening of the session adds.
    pub(super) writer: String,
    /// The number of the last entry.
    pub(super) seq: u64,
    /// The number of messages of the conversation that are stored.
    pub(super) stored: usize,
    /// Whether the stored messages differ from the conversation, so that all of it is stored again.
    pub(super) is_rewritten: bool,
    /// The last run with stored entries but without a stored end.
    pub(super) run: Option<Arc<str>>,
    /// Whether the entry for the begin of the current run, or for its resumption, is stored.
    pub(super) is_begin_stored: bool,
    /// The unfinished run of an earlier process.
    pub(super) interrupted: Option<InterruptedRun>,
    /// The calls of abandoned runs. The next run records that their outcomes are unknown.
    pub(super) lost: Vec<StepKey>,
}

/// An unfinished run of an earlier process.
pub(super) struct InterruptedRun {
    pub(super) core: AgentLoop,
    /// The calls whose secret arguments were not stored.
    pub(super) withheld: HashSet<String>,
    /// Its calls that have begun and not ended.
    pub(super) pending: Vec<StepKey>,
}

/// The turn in which a run was interrupted.
#[derive(Default)]
pub(in crate::runtime) struct InterruptedTurn {
    /// The number of the turn.
    pub(super) turn: u32,
    /// The calls whose secret arguments were not stored.
    pub(super) withheld: HashSet<String>,
}

/// An interrupted run that continues.
pub(in crate::runtime) struct RestoredRun {
    pub(in crate::runtime) core: AgentLoop,
    pub(in crate::runtime) interrupted: InterruptedTurn,
}

impl SessionState {
    /// Returns the number of messages that are stored.
    pub(in crate::runtime) fn stored(&self) -> usize {
        self.stored
    }

    /// Abandons the interrupted run, because a new one begins.
    pub(in crate::runtime) fn abandon_interrupted_run(&mut self) {
        self.is_begin_stored = false;
        if let Some(interrupted) = self.interrupted.take() {
            self.lost.extend(interrupted.pending);
        }
    }

    /// Returns the conversation of the interrupted run, if it is this one.
    pub(in crate::runtime) fn interrupted_conversation(&self, run: &Arc<str>) -> Option<Conversation> {
        let interrupted = self.interrupted.as_ref().filter(|interrupted| interrupted.core.run_id() == run);
        interrupted.map(|interrupted| interrupted.core.conversation().clone())
    }

    /// Prepares to resume this run from a snapshot. Another run that was interrupted is abandoned.
    pub(in crate::runtime) fn prepare_resume(&mut self, run: &Arc<str>) {
        if let Some(interrupted) =
            self.interrupted.take().filter(|interrupted| interrupted.core.run_id() != run)
        {
            self.lost.extend(interrupted.pending);
        }
        self.is_begin_stored = false;
    }
}

impl AssistantState {
    /// Takes the interrupted run, to continue it.
    pub(in crate::runtime) fn restore(&mut self) -> Option<RestoredRun> {
        let session = self.session.as_mut()?;
        let InterruptedRun { core, withheld, .. } = session.interrupted.take()?;
        session.is_begin_stored = false;
        let interrupted = InterruptedTurn { turn: core.turn(), withheld };
        Some(RestoredRun { core, interrupted })
    }
}

impl Assistant {
    /// Returns the unfinished run that another process left in this [session](AssistantBuilder::session), until
    /// [`continue_run`](Self::continue_run) continues it or a prompt abandons it.
    ///
    /// ```
    /// # use agent::{Assistant, RunError, RunOutput};
    /// # async fn example(assistant: Assistant) -> Result<(), RunError> {
    /// if assistant.unfinished_run().is_some() {
    ///     println!("{}", assistant.continue_run().await?.text());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn unfinished_run(&self) -> Option<Arc<str>> {
        let state = self.state();
        Some(state.session.as_ref()?.interrupted.as_ref()?.core.run_id().clone())
    }

    /// Returns the unfinished run of another process, and the messages that it added.
    #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
    pub(crate) fn unfinished_messages(&self) -> Option<(Arc<str>, Vec<Arc<Message>>)> {
        let state = self.state();
        let core = &state.session.as_ref()?.interrupted.as_ref()?.core;
        Some((core.run_id().clone(), core.added().to_vec()))
    }

    /// Returns the id of the session.
    pub(in crate::runtime) fn session(&self) -> Option<Arc<str>> {
        Some(self.state().session.as_ref()?.id.clone())
    }

    /// Records in the session that the conversation was reset.
    pub(in crate::runtime) async fn record_reset(&self) {
        let Some(keeper) = self.config().keeper.clone() else { return };
        let reset = {
            let mut state = self.state();
            let Some(session) = &mut state.session else { return };
            session.abandon_interrupted_run();
            (session.stored, session.run, session.is_rewritten) = (0, None, true);
            let entry = SessionEntry::new(EntryKind::Reset).written_by(&*session.writer, now());
            (session.id.clone(), session.seq, entry)
        };
        let (id, seq, entry) = reset;
        match keeper.append(&id, seq, vec![entry]).await {
            Ok(seq) => {
                if let Some(session) = &mut self.state().session {
                    (session.seq, session.is_rewritten) = (seq, false);
                }
            }
            Err(error) => tracing::error!(%error, "the reset of the session was not recorded"),
        }
    }
}
