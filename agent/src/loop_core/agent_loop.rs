//! The loop: its data and phases, and methods that create, inspect and end it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::batch::Batch;
use super::budget::{SharedBudget, Spent};
use super::config::is_zero;
use super::guard::Repeats;
use super::inputs::CallCoercions;
use super::retries::ToolRetries;
use super::secrets::{RunSecrets, StreamedCalls};
use super::state::RunState;
use super::{End, Event, EventKind, LimitReached, LoopConfig};
use crate::args::Coercion;
use crate::message::{Conversation, Message, StopReason, Usage};
#[cfg(feature = "runtime")]
use crate::message::{OutcomeKind, ToolArguments, ToolResultMessage};
use crate::run_path::RunPath;

/// The agent loop as a value. See the [module](super) documentation. The stored form of a loop contains the whole conversation. It includes
/// the secret arguments of calls, because the run needs them to continue. Keep the stored form where you keep passwords.
///
/// The conversation of a loop is always [sound](Conversation::is_sound), except that calls of the current turn may lack their results;
/// [`abort`](Self::abort) adds the missing results. Take the [events](Self::take_event) before you store the loop, because events are not
/// part of the stored form.
#[doc = include_str!("../docs/agent_loop.md")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct AgentLoop {
    #[serde(deserialize_with = "deserialize_version")]
    pub(super) version: u32,
    pub(super) run: Arc<str>,
    pub(super) config: Arc<LoopConfig>,
    pub(super) conversation: Conversation,
    /// The position in `conversation` at which the messages of this run begin.
    pub(super) added_from: usize,
    pub(super) turn: u32,
    pub(super) seq: u64,
    pub(super) phase: Phase,
    /// The calls of the current turn. Empty until the reply of the turn is recorded.
    pub(super) batch: Batch,
    pub(super) stop_reason: Option<StopReason>,
    pub(super) turn_usage: Usage,
    pub(super) usage: Usage,
    pub(super) requests: u64,
    pub(super) tool_calls: u64,
    /// The limit that was reached in this turn. It ends the run after the calls of the turn, unless the result of a call ends the run.
    pub(super) reached: Option<LimitReached>,
    pub(super) repeats: Repeats,
    /// The number of retries of each tool. Retries that made progress do not count.
    pub(super) retries: BTreeMap<String, u32>,
    /// The failed tries of each tool. Their issues show whether the model makes progress.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tries: BTreeMap<String, ToolRetries>,
    pub(super) coercions: Vec<CallCoercions>,
    /// Whether the driver (which performs the steps) [reported](Self::expect_messages) queued messages at the end of the turn.
    #[serde(skip)]
    pub(super) expects_messages: bool,
    /// The number of requests that continue a cut reply of the current answer, including the next request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) continued: u32,
    /// The number of requests that continue a paused reply of the current answer, including the next request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) paused: u32,
    /// The requests and calls of ended sub-agents, at all depths, and the number of their runs. `usage` has their tokens and cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) children: Option<Box<Spent>>,
    /// The initial, empty message of the reply that is being streamed.
    pub(super) streaming: Option<Arc<Message>>,
    pub(super) is_suspended: bool,
    #[serde(default, skip_serializing_if = "RunState::is_empty")]
    pub(super) state: RunState,
    /// The signature of the run, if the run was signed before it was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mac: Option<String>,
    #[serde(skip)]
    pub(super) secrets: RunSecrets,
    #[serde(skip)]
    pub(super) streamed_calls: StreamedCalls,
    /// The path from the root run to this run. Not stored, because it follows from the stored parent that contains this run.
    #[serde(skip)]
    pub(super) path: RunPath,
    #[serde(skip)]
    pub(super) budget: SharedBudget,
    #[serde(skip)]
    pub(super) events: VecDeque<Event>,
    #[serde(skip)]
    pub(super) is_muted: bool,
    /// Whether a transition waits until the earlier events are [taken](Self::take_event).
    #[serde(skip)]
    pub(super) is_driven: bool,
    #[serde(skip)]
    pub(super) origin: Origin,
}

/// Whether the loop was created in this process or read from its stored form. `PartialEq` ignores the origin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Origin {
    Here,
    #[default]
    Stored,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The phase of a run: the result that the loop waits for, a pending transition, or the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Waits for steering messages before the first request.
    PollFirst,
    CallModel,
    Prepare,
    /// Skips the calls that would run next, because the reply was cut or a steering message arrived.
    Skip,
    Approve,
    CallTools,
    Await,
    TurnEnd,
    /// Waits for steering messages after a turn. If the value is true, the model is asked again even without messages.
    PollSteering(bool),
    /// Waits for follow-up messages after a turn. The value means the same as in `PollSteering`.
    PollFollowUps(bool),
    /// The run is about to end, but `agent_end` has not been emitted yet.
    Ending(End),
    Done(End),
}

fn deserialize_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version > AgentLoop::VERSION {
        return Err(serde::de::Error::custom(format_args!(
            "the run has version {version}; this library reads versions up to {}",
            AgentLoop::VERSION
        )));
    }
    Ok(version)
}

impl AgentLoop {
    /// The highest version of the stored form that this library reads. A run that has asked questions or has sub-agents is written in this
    /// version. A run with [state](Self::with_serialized_state) is written in version 2, and any other run in version 1. Some signed runs
    /// of the versions 3 to 5 are [refused](crate::run::ResumeError::OldVersion), because their signatures had another form.
    pub const VERSION: u32 = 6;
    /// Minimum version of the stored form of a run with state.
    pub(super) const STATE_VERSION: u32 = 2;

    /// Creates a run that adds `prompts` to a conversation. A conversation that is not sound is [repaired](Conversation::repair) first.
    pub fn new(
        run: impl Into<Arc<str>>,
        config: impl Into<Arc<LoopConfig>>,
        mut conversation: Conversation,
        prompts: impl IntoIterator<Item = Message>,
    ) -> Self {
        conversation.repair();
        let prompts: Vec<_> = prompts.into_iter().map(Arc::new).collect();
        Self::begin(run.into(), config.into(), conversation, prompts, false)
    }

    /// Like [`new`](Self::new), but without a repair: the conversation must be sound.
    pub(crate) fn begin(
        run: Arc<str>,
        config: Arc<LoopConfig>,
        conversation: Conversation,
        prompts: Vec<Arc<Message>>,
        is_muted: bool,
    ) -> Self {
        let mut this = Self {
            version: 1,
            run,
            config,
            added_from: conversation.len(),
            conversation,
            turn: 0,
            seq: 0,
            phase: Phase::PollFirst,
            batch: Batch::default(),
            stop_reason: None,
            turn_usage: Usage::default(),
            usage: Usage::default(),
            requests: 0,
            tool_calls: 0,
            reached: None,
            repeats: Repeats::default(),
            retries: BTreeMap::new(),
            tries: BTreeMap::new(),
            expects_messages: false,
            coercions: Vec::new(),
            continued: 0,
            paused: 0,
            children: None,
            streaming: None,
            is_suspended: false,
            state: RunState::default(),
            mac: None,
            secrets: RunSecrets::default(),
            streamed_calls: StreamedCalls::default(),
            path: RunPath::default(),
            budget: SharedBudget::default(),
            events: VecDeque::new(),
            is_muted,
            is_driven: false,
            origin: Origin::Here,
        };
        this.emit(|_| EventKind::AgentStart);
        this.begin_turn(prompts);
        this
    }

    /// Skips the poll of the steering queue before the first request. Use this if the messages that begin the run were taken from that
    /// queue. Has no effect after the first poll.
    pub fn without_first_poll(mut self) -> Self {
        if self.phase == Phase::PollFirst {
            self.enter_request();
            self.settle();
        }
        self
    }

    /// Ends the run. Each call without a result gets a result with the reason, a reply that is being streamed is recorded as aborted, and
    /// no further request is made.
    ///
    /// This can be called at any time. Only the first end of a run counts.
    pub fn abort(&mut self, reason: &str) {
        self.stop(End::aborted(reason), reason);
    }

    /// Ends the run like [`abort`](Self::abort), because of a limit that the driver (which performs the steps) measures, such as time.
    pub fn abort_by_limit(&mut self, reached: LimitReached) {
        let reason = reached.to_string();
        self.stop(End::Limit(reached), &reason);
    }

    fn stop(&mut self, end: End, reason: &str) {
        match self.phase {
            Phase::Done(_) => return,
            Phase::PollFirst => self.end_turn(),
            Phase::CallModel => {
                if let Some(Message::Assistant(message)) = self.streaming.as_deref() {
                    let mut message = message.clone();
                    message.stop_reason = StopReason::Aborted;
                    message.error = Some(reason.to_owned());
                    self.keep_reply(Arc::new(message.into()));
                }
                self.end_turn();
            }
            Phase::Prepare | Phase::Skip | Phase::Approve | Phase::CallTools | Phase::Await => {
                self.abort_calls(reason);
            }
            Phase::TurnEnd | Phase::PollSteering(_) | Phase::PollFollowUps(_) | Phase::Ending(_) => {}
        }
        self.finish(end);
    }

    /// Ends the run like [`abort`](Self::abort), because the driver (which performs the steps) cannot continue, for example after a hook
    /// failed.
    pub fn fail(&mut self, message: &str) {
        self.stop(End::error(message), message);
    }

    /// Turns events off (`true`) or on. Missing events still use up sequence numbers.
    pub fn mute(&mut self, is_muted: bool) {
        self.is_muted = is_muted;
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn prompt_tools(&self) -> impl Iterator<Item = &str> {
        self.config.tools.iter().filter(|(_, entry)| entry.of_prompt).map(|(name, _)| name.as_str())
    }

    /// Returns the id of the run.
    pub fn run_id(&self) -> &Arc<str> {
        &self.run
    }

    /// Returns the number of the current turn, counted from 1.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns the tokens and cost of the run so far, including the tokens and cost of sub-agents that ended.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the conversation, including the messages that this run added.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the conversation and consumes the loop.
    pub fn into_conversation(self) -> Conversation {
        self.conversation
    }

    /// Returns the messages that this run added to the conversation.
    pub fn added(&self) -> &[Arc<Message>] {
        self.conversation.shared().get(self.added_from..).unwrap_or_default()
    }

    /// Returns the arguments of the last successful call of `tool` in this run. They lack changes by hooks if the call is in an earlier
    /// reply, because messages do not contain such changes.
    #[cfg(feature = "runtime")]
    pub(crate) fn accepted_arguments(&self, tool: &str) -> Option<ToolArguments> {
        let is_accepted =
            |result: &ToolResultMessage| result.tool == tool && result.outcome == OutcomeKind::Completed;
        let added = self.added();
        let (at, result) = added.iter().enumerate().rev().find_map(|(at, message)| match &**message {
            Message::ToolResult(result) if is_accepted(result) => Some((at, result)),
            _ => None,
        })?;
        if let Some(edited) = &result.edited_args {
            return Some(edited.clone());
        }
        let is_last = !added.iter().skip(at).any(|message| message.as_assistant().is_some());
        let slot = self.batch.slots.iter().find(|slot| is_last && slot.call.id == result.call_id);
        if let Some(slot) = slot {
            return Some(slot.args.as_ref().unwrap_or(&slot.call.args).clone());
        }
        let reply = added.iter().take(at).rev().find_map(|message| message.as_assistant())?;
        reply.tool_calls().find(|call| call.id == result.call_id).map(|call| call.args.clone())
    }

    /// Returns the id of each call whose arguments were coerced, with the coercions.
    pub fn coercions(&self) -> impl ExactSizeIterator<Item = (&str, &[Coercion])> {
        self.coercions.iter().map(|call| (&*call.call_id, &*call.coercions))
    }

    /// Returns how the run ended, or `None` if it has not ended.
    pub fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Done(end) => Some(end),
            _ => None,
        }
    }
}

impl Phase {
    pub(super) fn expected(&self) -> &'static str {
        match self {
            Self::PollFirst | Self::PollSteering(_) | Self::PollFollowUps(_) => "messages",
            Self::CallModel => "a reply",
            Self::Prepare | Self::Skip => "prepared calls",
            Self::Approve => "decisions",
            Self::CallTools | Self::Await => "outcomes",
            Self::TurnEnd => "a decision",
            Self::Ending(_) | Self::Done(_) => "nothing",
        }
    }
}
