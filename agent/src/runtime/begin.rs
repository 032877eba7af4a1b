//! Moves the conversation from an assistant to its run, and copies it back.

use std::sync::Arc;

use super::approval::{self, Decisions, Resumption};
use super::assistant::{Assistant, AssistantRun, AssistantState};
use super::config::Config;
use super::error::{ResumeError, RunError};
use super::growing::GrowingReply;
use super::queue::QueuedMessage;
use super::records::{InterruptedTurn, RestoredRun, SessionState};
use super::suspended::SuspendedRun;
use crate::loop_core::{AgentLoop, Queue, RecordedTurn, RunState};
use crate::message::{Conversation, Message};
use crate::model::{ModelEvent, ModelRequest};
use crate::steps::SharedLoop;
use crate::tool::cancel::CancelToken;
use crate::tool::context::ToolContext;

pub(super) enum RunStart {
    Prompts(Vec<Message>),
    /// Calls that were made outside of a run, and messages that come before the calls.
    Recorded {
        turn: RecordedTurn,
        messages: Vec<Message>,
    },
    /// The run continues the conversation without a prompt, or is the unfinished run of the session.
    Continue {
        /// The unfinished run that the session had when the prompt was made.
        unfinished: Option<Arc<str>>,
        messages: Vec<Message>,
    },
    Resume {
        run: Box<(SuspendedRun, Decisions)>,
        messages: Vec<Message>,
    },
    Child {
        run: Box<AgentLoop>,
        resumption: Box<Resumption>,
    },
}

impl RunStart {
    /// Continues the unfinished run of an assistant or, if there is none, its conversation.
    pub(super) fn continuing(assistant: &Assistant) -> Self {
        Self::Continue { unfinished: assistant.unfinished_run(), messages: Vec::new() }
    }

    /// Takes the recorded calls out of `Recorded`, whose messages remain as prompts. Returns `None` for any other input.
    pub(super) fn take_recorded(&mut self) -> Option<RecordedTurn> {
        let Self::Recorded { turn, messages } = self else { return None };
        let (turn, messages) = (std::mem::take(turn), std::mem::take(messages));
        *self = Self::Prompts(messages);
        Some(turn)
    }

    /// Adds the serialized state of the run to the context. A value of the prompt replaces the stored value of the same type.
    pub(super) fn add_state(
        &self,
        given: RunState,
        config: &Config,
        context: ToolContext,
    ) -> Result<(RunState, ToolContext), RunError> {
        let types = &config.state_types;
        let context = types.rebuild(&given, context)?;
        let Self::Resume { run, .. } = self else { return Ok((given, context)) };
        let suspended = run.0.as_loop();
        if suspended.state().is_empty() {
            return Ok((given, context));
        }
        if suspended.was_stored() {
            // The signatures are verified first, so that no state of a changed run is read.
            approval::verify(suspended, config.signer.as_deref()).map_err(RunError::Resume)?;
        }
        let refused = |error| RunError::Resume(ResumeError::State(error));
        let (mut state, mut context) = (given, context);
        for (name, text) in suspended.state().iter() {
            let known = types.of_name(name).map_err(refused)?;
            if !context.has(&known.key) {
                context = known.rebuild(text, context).map_err(refused)?;
                state.insert(name.clone(), text.to_owned());
            }
        }
        state.check_size().map_err(refused)?;
        Ok((state, context))
    }
}

pub(super) struct StartedRun {
    pub(super) run: SharedLoop,
    pub(super) taken: Vec<QueuedMessage>,
    /// The decisions and results with which the run resumes. `None` if the run is new.
    pub(super) resumption: Option<Resumption>,
    /// Whether calls that were checked before the run was suspended must be checked again.
    pub(super) checks_again: bool,
    /// The number of messages from before this run began or was resumed. Their calls are not recorded again.
    pub(super) seen: usize,
    /// The turn that a crash of the process interrupted, if there is one.
    pub(super) interrupted: Option<InterruptedTurn>,
}

impl Assistant {
    /// Begins a run with the conversation of the assistant.
    ///
    /// # Errors
    /// Returns an error if another run is active, if there is nothing to continue, or if the suspended run cannot be resumed.
    pub(super) fn begin_run(
        &self,
        run_id: Arc<str>,
        mut start: RunStart,
        given: RunState,
        cancel: CancelToken,
        is_watched: bool,
        config: &Config,
    ) -> Result<StartedRun, RunError> {
        let mut state = self.state();
        if state.active.is_some() {
            return Err(RunError::Busy);
        }
        let is_muted = !is_watched && state.listeners.is_empty();
        if let RunStart::Resume { run, messages } = start {
            let (suspended, decisions) = *run;
            let mut core = suspended.into_loop();
            let resumption = approval::check(&core, decisions, config).map_err(RunError::Resume)?;
            let interrupted =
                state.session.as_ref().and_then(|session| session.interrupted_conversation(core.run_id()));
            if !approval::can_resume_in(
                interrupted.as_ref().unwrap_or(&state.conversation),
                core.conversation(),
            ) {
                return Err(RunError::Resume(ResumeError::ConversationMovedOn));
            }
            state.steering.push_messages(messages)?;
            // The model reads these messages with its next request, after the calls that were decided on have run.
            state.steering.defer_current();
            if let Some(session) = &mut state.session {
                session.prepare_resume(core.run_id());
            }
            let seen = core.conversation().len();
            core.set_state(given);
            return Ok(state.resume_run(core, cancel, is_muted, config, resumption, seen, None));
        }
        if let RunStart::Child { run, resumption } = start {
            if let Some(session) = &mut state.session {
                session.prepare_resume(run.run_id());
            }
            let seen = run.conversation().len();
            return Ok(state.resume_run(*run, cancel, is_muted, config, *resumption, seen, None));
        }
        if let RunStart::Continue { unfinished: Some(unfinished), messages } = &mut start {
            let state = &mut *state;
            let is_gone = || RunError::Request {
                message: format!(
                    "the unfinished run `{unfinished}` was continued or abandoned by another prompt; call `continue_run` again"
                ),
            };
            let session = state.session.as_deref_mut().filter(|session| session.is_interrupted());
            let session = session.ok_or_else(is_gone)?;
            if !messages.is_empty() {
                state.steering.push_messages(std::mem::take(messages))?;
                // The unfinished calls of the interrupted turn run before the model reads these messages.
                state.steering.defer_current();
            }
            let RestoredRun { mut core, interrupted } = session.restore().ok_or_else(is_gone)?;
            core.set_state(given);
            let seen = state.session.as_deref().map_or(core.conversation().len(), SessionState::stored);
            let resumption = Resumption::default();
            return Ok(state.resume_run(core, cancel, is_muted, config, resumption, seen, Some(interrupted)));
        }
        let is_undecided = std::mem::take(&mut state.is_undecided);
        if std::mem::take(&mut state.is_suspect) {
            let conversation = &mut state.conversation;
            let repairs = if is_undecided { conversation.repair_undecided() } else { conversation.repair() };
            for repair in repairs {
                tracing::warn!(%run_id, %repair, "the conversation was repaired");
            }
        }
        let (mut taken, mut polls, recorded) = (Vec::new(), true, start.take_recorded());
        let prompts = match start {
            RunStart::Prompts(prompts) => prompts.into_iter().map(Arc::new).collect(),
            RunStart::Continue { messages, .. } if !messages.is_empty() => {
                messages.into_iter().map(Arc::new).collect()
            }
            _ => match state.conversation.last() {
                None => return Err(RunError::NothingToContinue),
                Some(Message::Assistant(_)) => {
                    taken = state.steering.take(config.takes_all(Queue::Steering));
                    polls = taken.is_empty();
                    if taken.is_empty() {
                        taken = state.follow_ups.take(config.takes_all(Queue::FollowUp));
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
            session.abandon_interrupted_run();
        }
        let conversation = std::mem::take(&mut state.conversation);
        let seen = conversation.len();
        let mut core = AgentLoop::begin(run_id, config.rules.clone(), conversation, prompts, is_muted);
        core.set_secrets(config.secrets());
        core.set_state(given);
        if let Some(turn) = recorded {
            config.record(&mut core, turn);
        } else if !polls {
            core = core.without_first_poll();
        }
        let run = state.activate(core, cancel);
        Ok(StartedRun { run, taken, resumption: None, checks_again: false, seen, interrupted: None })
    }

    pub(super) fn end_run(&self, error: Option<String>) {
        let mut state = self.state();
        let Some(active) = state.active.take() else { return };
        let run = active.run.lock();
        state.conversation = run.conversation().clone();
        state.is_suspect = run.end().is_none();
        state.is_undecided = run.end().is_none() && run.is_asking();
        state.last_error = error;
        drop(run);
        drop(state);
        self.notify_idle();
    }

    /// Adds an event to the reply that streams. `started` is the initial message, if the reply begins with this event.
    pub(super) fn grow(&self, started: Option<&Arc<Message>>, event: &ModelEvent) {
        let mut state = self.state();
        let Some(active) = &mut state.active else { return };
        if let Some(message) = started {
            active.growing = Some(GrowingReply::new(message.clone()));
        }
        if let Some(growing) = &mut active.growing {
            growing.grow(event);
        }
    }

    /// Attaches the kept encoded text of the conversation to a request that hooks may have changed, so that unchanged messages are not
    /// encoded again.
    pub(super) fn share_kept_text(&self, mut request: ModelRequest) -> ModelRequest {
        let kept = self.state().hand_off.messages().slot().clone();
        request.messages = std::mem::take(&mut request.messages).with_slot(kept);
        request
    }

    pub(super) fn end_growth(&self) {
        if let Some(active) = &mut self.state().active {
            active.growing = None;
        }
    }
}

impl AssistantState {
    #[expect(clippy::too_many_arguments, reason = "the parts of a started run")]
    fn resume_run(
        &mut self,
        mut core: AgentLoop,
        cancel: CancelToken,
        is_muted: bool,
        config: &Config,
        resumption: Resumption,
        seen: usize,
        interrupted: Option<InterruptedTurn>,
    ) -> StartedRun {
        core.unsign();
        core.set_config(&config.rules);
        core.set_secrets(config.secrets());
        core.mute(is_muted);
        let checks_again = core.prepare_recheck();
        self.conversation = Conversation::new();
        let run = self.activate(core, cancel);
        let resumption = Some(resumption);
        StartedRun { run, taken: Vec::new(), resumption, checks_again, seen, interrupted }
    }

    fn activate(&mut self, core: AgentLoop, cancel: CancelToken) -> SharedLoop {
        let run = SharedLoop::new(core);
        self.last_error = None;
        self.active = Some(AssistantRun { run: run.clone(), cancel, growing: None, copy_tree: None });
        run
    }
}

impl Config {
    pub(super) fn needs_follow_up(&self, turn: &RecordedTurn) -> bool {
        let asks = |(call, result): (_, _)| self.registry.triggers_follow_up(call, &result);
        turn.results().any(asks)
    }

    /// Records these calls as the first turn of a run that has not taken a step. If they cannot be recorded, the run ends with the error.
    pub(super) fn record(&self, core: &mut AgentLoop, turn: RecordedTurn) {
        let asks = self.needs_follow_up(&turn);
        if let Err(error) = core.record(turn, asks) {
            core.fail(&error.to_string());
        }
    }
}
