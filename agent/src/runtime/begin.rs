//! What a run begins with, what is beside its loop, and how it takes the conversation and gives it back.

use std::sync::Arc;

use super::approval::{self, Resumption};
use super::assistant::{Active, Assistant, Config, State};
use super::growing::Growing;
use super::listener::Listeners;
use super::queue::{MessageQueue, QueuedMessage};
use super::records::Restored;
use super::{Decisions, ResumeError, RunError};
use crate::CancelToken;
use crate::loop_core::{AgentLoop, PendingCall, RecordedTurn};
use crate::message::{Conversation, HandOff, Message};

/// What a run begins with.
pub(super) enum Begin {
    Prompts(Vec<Message>),
    /// Calls that were made elsewhere, behind what was said to the model before.
    Recorded {
        turn: RecordedTurn,
        messages: Vec<Message>,
    },
    /// The conversation as it is.
    Continue,
    Resume {
        run: Box<(AgentLoop, Decisions)>,
        /// What is said to it before its next request.
        messages: Vec<Message>,
    },
}

impl Begin {
    /// The calls that were made elsewhere; what is left are prompts.
    pub(super) fn take_recorded(&mut self) -> Option<RecordedTurn> {
        let Self::Recorded { turn, messages } = self else { return None };
        let (turn, messages) = (std::mem::take(turn), std::mem::take(messages));
        *self = Self::Prompts(messages);
        Some(turn)
    }
}

/// The state of an assistant beside its loop.
pub(super) struct Rest<'a> {
    pub(super) steering: &'a mut MessageQueue,
    pub(super) follow_ups: &'a mut MessageQueue,
    pub(super) listeners: &'a Listeners,
    pub(super) hand_off: &'a mut HandOff,
    pub(super) growing: &'a mut Option<Box<Growing>>,
}

impl Assistant {
    /// Begins a run; gives the queued messages that it began with.
    ///
    /// # Errors
    /// A run is going on, or there is nothing to continue.
    pub(super) fn begin_run(
        &self,
        run_id: Arc<str>,
        mut begin: Begin,
        cancel: CancelToken,
        is_watched: bool,
        config: &Config,
    ) -> Result<(Vec<QueuedMessage>, Option<Resumption>), RunError> {
        let mut state = self.state();
        if state.active.is_some() {
            return Err(RunError::Busy);
        }
        let is_muted = !is_watched && state.listeners.is_empty();
        if let Begin::Resume { run, messages } = begin {
            let (mut core, decisions) = *run;
            let resumption = approval::check(&core, decisions, config).map_err(RunError::Resume)?;
            let left = state.session.as_ref().and_then(|session| session.left_by(core.run_id()));
            if !approval::goes_on(left.as_ref().unwrap_or(&state.conversation), core.conversation()) {
                return Err(RunError::Resume(ResumeError::ConversationMovedOn));
            }
            if let Some(session) = &mut state.session {
                session.goes_on_with(core.run_id());
            }
            core.unsign();
            core.set_config(&config.rules);
            core.set_secrets(config.secrets());
            core.mute(is_muted);
            core.live();
            state.conversation = Conversation::new();
            for message in messages {
                state.steering.push_message(message);
            }
            // They are heard before the next request; what was decided on runs.
            state.steering.defer_current();
            state.last_error = None;
            state.active = Some(Active { core, cancel, growing: None });
            return Ok((Vec::new(), Some(resumption)));
        }
        if matches!(begin, Begin::Continue)
            && let Some(Restored { mut core, resumption }) = state.restore()
        {
            core.unsign();
            core.set_config(&config.rules);
            core.set_secrets(config.secrets());
            core.mute(is_muted);
            core.live();
            state.conversation = Conversation::new();
            state.last_error = None;
            state.active = Some(Active { core, cancel, growing: None });
            return Ok((Vec::new(), Some(resumption)));
        }
        let is_undecided = std::mem::take(&mut state.is_undecided);
        if std::mem::take(&mut state.is_suspect) {
            let conversation = &mut state.conversation;
            let repairs = if is_undecided { conversation.repair_undecided() } else { conversation.repair() };
            for repair in repairs {
                tracing::warn!(%run_id, %repair, "the conversation was repaired");
            }
        }
        let (mut taken, mut polls, recorded) = (Vec::new(), true, begin.take_recorded());
        let prompts = match begin {
            Begin::Prompts(prompts) => prompts.into_iter().map(Arc::new).collect(),
            _ => match state.conversation.last() {
                None => return Err(RunError::NothingToContinue),
                Some(Message::Assistant(_)) => {
                    taken = state.steering.take(config.steering_mode);
                    polls = taken.is_empty();
                    if taken.is_empty() {
                        taken = state.follow_ups.take(config.follow_up_mode);
                    }
                    if taken.is_empty() {
                        return Err(RunError::LastMessageIsAssistant);
                    }
                    taken.iter().map(|queued| queued.message.clone()).collect()
                }
                Some(_) => Vec::new(),
            },
        };
        if let Some(session) = &mut state.session {
            session.leaves_run();
        }
        let conversation = std::mem::take(&mut state.conversation);
        let mut core = AgentLoop::begin(run_id, config.rules.clone(), conversation, prompts, is_muted);
        core.live();
        core.set_secrets(config.secrets());
        if let Some(turn) = recorded {
            config.record(&mut core, turn);
        } else if !polls {
            core = core.without_first_poll();
        }
        state.last_error = None;
        state.active = Some(Active { core, cancel, growing: None });
        Ok((taken, None))
    }

    /// The loop of the run that goes on, with the rest of the state.
    pub(super) fn with_run<T>(&self, then: impl FnOnce(&mut AgentLoop, &mut Rest<'_>) -> T) -> Option<T> {
        let mut state = self.state();
        let State { active, steering, follow_ups, listeners, hand_off, .. } = &mut *state;
        let Active { core, growing, .. } = active.as_mut()?;
        let mut rest = Rest { steering, follow_ups, listeners, hand_off, growing };
        Some(then(core, &mut rest))
    }

    /// The run is over: its conversation is the assistant's.
    pub(super) fn end_run(&self, error: Option<String>) -> Option<AgentLoop> {
        let mut state = self.state();
        let core = state.active.take()?.core;
        state.conversation = core.conversation().clone();
        state.is_suspect = core.end().is_none();
        state.is_undecided = core.pending().iter().any(|call| matches!(call, PendingCall::Approval { .. }));
        state.last_error = error;
        drop(state);
        self.tell_idle();
        Some(core)
    }
}
