//! The session of an assistant: the run that another process left, and how far the conversation is stored.

use std::collections::HashSet;
use std::sync::Arc;

use super::now;
use crate::StepKey;
use crate::loop_core::AgentLoop;
use crate::message::Conversation;
#[cfg(doc)]
use crate::runtime::AssistantBuilder;
use crate::runtime::assistant::{Assistant, State};
use crate::store::{EntryKind, SessionEntry};

/// Where a session is written down, and how far.
pub(in crate::runtime) struct SessionState {
    pub(super) id: Arc<str>,
    /// Names this opening of it.
    pub(super) writer: String,
    /// The last entry.
    pub(super) seq: u64,
    /// How many messages of the conversation are stored.
    pub(super) stored: usize,
    /// Whether what is stored is not the beginning of the conversation: then all of it is written again.
    pub(super) is_rewritten: bool,
    /// The last run of which anything is stored, and not its end.
    pub(super) run: Option<Arc<str>>,
    /// Whether the run that goes on was told of.
    pub(super) is_told: bool,
    /// What a process that is gone left.
    pub(super) left: Option<InterruptedRun>,
    /// Calls that nobody will go on with.
    pub(super) lost: Vec<StepKey>,
}

/// A run that was left in the middle.
pub(super) struct InterruptedRun {
    pub(super) core: AgentLoop,
    pub(super) withheld: HashSet<String>,
    /// Its calls that have begun and not ended.
    pub(super) pending: Vec<StepKey>,
}

/// Where a run was left.
#[derive(Default)]
pub(in crate::runtime) struct InterruptedTurn {
    /// In this turn.
    pub(super) turn: u32,
    /// The calls whose secret arguments were not stored.
    pub(super) withheld: HashSet<String>,
}

/// A run that goes on.
pub(in crate::runtime) struct Restored {
    pub(in crate::runtime) core: AgentLoop,
    pub(in crate::runtime) interrupted: InterruptedTurn,
}

impl SessionState {
    /// Returns the number of messages that are stored.
    pub(in crate::runtime) fn stored(&self) -> usize {
        self.stored
    }

    /// A new run begins: what was left stays as it is.
    pub(in crate::runtime) fn leaves_run(&mut self) {
        self.is_told = false;
        if let Some(left) = self.left.take() {
            self.lost.extend(left.pending);
        }
    }

    /// The conversation as this run left it.
    pub(in crate::runtime) fn left_by(&self, run: &Arc<str>) -> Option<Conversation> {
        let left = self.left.as_ref().filter(|left| left.core.run_id() == run);
        left.map(|left| left.core.conversation().clone())
    }

    /// This run goes on, from wherever it was kept.
    pub(in crate::runtime) fn goes_on_with(&mut self, run: &Arc<str>) {
        match self.left.take() {
            Some(left) if left.core.run_id() != run => self.lost.extend(left.pending),
            _ => {}
        }
        self.is_told = false;
    }
}

impl State {
    /// The run that was left, to go on.
    pub(in crate::runtime) fn restore(&mut self) -> Option<Restored> {
        let session = self.session.as_mut()?;
        let InterruptedRun { core, withheld, .. } = session.left.take()?;
        session.is_told = false;
        let interrupted = InterruptedTurn { turn: core.turn(), withheld };
        Some(Restored { core, interrupted })
    }
}

impl Assistant {
    /// The run that another process left in the middle of this [session](AssistantBuilder::session), until it goes on with
    /// [`continue_run`](Self::continue_run) or a prompt leaves it.
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
        Some(state.session.as_ref()?.left.as_ref()?.core.run_id().clone())
    }

    /// The id of the session.
    pub(in crate::runtime) fn session(&self) -> Option<Arc<str>> {
        Some(self.state().session.as_ref()?.id.clone())
    }

    /// Everything is forgotten: the session is told.
    pub(in crate::runtime) async fn forget_session(&self) {
        let Some(keeper) = self.config().keeper.clone() else { return };
        let told = {
            let mut state = self.state();
            let Some(session) = &mut state.session else { return };
            session.leaves_run();
            (session.stored, session.run, session.is_rewritten) = (0, None, true);
            let entry = SessionEntry::new(EntryKind::Reset).written_by(&*session.writer, now());
            (session.id.clone(), session.seq, entry)
        };
        let (id, seq, entry) = told;
        match keeper.append(&id, seq, vec![entry]).await {
            Ok(seq) => {
                if let Some(session) = &mut self.state().session {
                    (session.seq, session.is_rewritten) = (seq, false);
                }
            }
            Err(error) => tracing::error!(%error, "the session was not told that everything is forgotten"),
        }
    }
}
