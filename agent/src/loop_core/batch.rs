//! The calls of one reply, each in a `Slot` with its state and its result.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::config::is_zero;
use super::{AgentLoop, LoopConfig, Signature};
use crate::args::Coercion;
use crate::message::{Conversation, Message, ToolArguments, ToolCall, ToolResultMessage};
use crate::tool::output::Control;
use crate::tool::question::{Question, RecordedInput, serialize_inputs};

/// The calls of one reply, divided into segments: groups of calls that run concurrently. Segments run one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    pub(super) slots: Vec<Slot>,
    pub(super) segment: Range<usize>,
    /// Whether the reply was cut, so that none of its calls runs.
    pub(super) is_cut: bool,
    /// Whether the calls were made outside of the run and need no reply of the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_settled: bool,
    pub(super) is_steered: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) call: Arc<ToolCall>,
    pub(super) state: SlotState,
    /// The arguments that the call runs with, if they differ from the arguments that the model sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) args: Option<ToolArguments>,
    /// The arguments without secrets, as a request for a decision shows them. `None` if nothing is withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shown: Option<ToolArguments>,
    #[serde(default)]
    pub(super) is_edited: bool,
    /// Whether the call needs no further decision, because its arguments were allowed or its tool has begun to run before.
    #[serde(default)]
    pub(super) is_approved: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_inputs")]
    pub(super) inputs: Vec<RecordedInput>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) asked_again: u32,
    /// The signature of the call, if the application signs stored runs. Removed when the state of the call changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mac: Option<String>,
    pub(super) signature: Option<Signature>,
    /// The coercions of a deferred call. The result of such a call comes from outside, and does not contain the coercions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) coercions: Vec<Coercion>,
    pub(super) control: Control,
    /// The result, until it is moved into the conversation.
    pub(super) result: Option<ToolResultMessage>,
}

/// The state of a call. A call can return to an earlier state: it becomes `Ready` again after it waited for inputs or a sub-agent, and a
/// resumed run may prepare it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SlotState {
    /// The start event of the call has not been emitted yet.
    Planned,
    Started,
    Undecided(ToolArguments),
    /// The call may run, or is running.
    Ready,
    /// The result of the call comes from outside, under this handle (an id).
    Deferred(String),
    Asked(Vec<Question>),
    /// The call's sub-agent, whose run is in the box, waits for decisions, inputs or results.
    Child(Box<AgentLoop>),
    Ended,
}

impl Slot {
    pub(super) fn new(call: Arc<ToolCall>) -> Self {
        Self {
            call,
            state: SlotState::Planned,
            args: None,
            shown: None,
            is_edited: false,
            is_approved: false,
            inputs: Vec::new(),
            asked_again: 0,
            mac: None,
            signature: None,
            coercions: Vec::new(),
            control: Control::Continue,
            result: None,
        }
    }

    pub(super) fn effective(&self) -> Arc<ToolCall> {
        match &self.args {
            None => self.call.clone(),
            Some(args) => Arc::new(ToolCall { args: args.clone(), ..(*self.call).clone() }),
        }
    }
}

impl Batch {
    pub(super) fn new<'c>(
        calls: impl Iterator<Item = &'c ToolCall> + Clone,
        is_cut: bool,
        config: &LoopConfig,
    ) -> Self {
        // The capacity is exact, because a run keeps the slots in memory while its tools work.
        let mut slots = Vec::with_capacity(calls.clone().count());
        slots.extend(calls.cloned().map(Arc::new).map(Slot::new));
        let mut batch = Self { slots, is_cut, ..Self::default() };
        batch.next_segment(config);
        batch
    }

    /// Moves to the next segment, a group of concurrent calls. Returns whether there is one.
    pub(super) fn next_segment(&mut self, config: &LoopConfig) -> bool {
        let start = self.segment.end;
        let alone = |slot: &Slot| {
            config.sequential || config.tools.get(&slot.call.name).is_some_and(|tool| tool.exclusive)
        };
        let rest = self.slots.get(start..).unwrap_or_default();
        let len = match rest.first() {
            None => 0,
            Some(first) if alone(first) => 1,
            Some(_) => rest.iter().take_while(|slot| !alone(slot)).count(),
        };
        self.segment = start..start + len;
        len > 0
    }

    pub(super) fn current(&self) -> &[Slot] {
        self.slots.get(self.segment.clone()).unwrap_or_default()
    }

    pub(super) fn any(&self, is: impl Fn(&SlotState) -> bool) -> bool {
        self.current().iter().any(|slot| is(&slot.state))
    }

    pub(super) fn positions(&self, is: impl Fn(&SlotState) -> bool) -> Vec<usize> {
        self.segment
            .clone()
            .zip(self.current())
            .filter(|(_, slot)| is(&slot.state))
            .map(|(at, _)| at)
            .collect()
    }

    /// Combines the controls of all results. One `EndNow` ends the run. `EndIfAll` ends it only if no result has `Continue`.
    pub(super) fn control(&self) -> Control {
        if self.slots.iter().any(|slot| slot.control == Control::EndNow) {
            Control::EndNow
        } else if !self.slots.is_empty() && self.slots.iter().all(|slot| slot.control != Control::Continue) {
            Control::EndIfAll
        } else {
            Control::Continue
        }
    }
}

/// Gives a new id to each call that has the same id as an earlier call of the reply. A failed reply is unchanged, because its calls do not
/// run.
pub(super) fn with_unique_ids(message: Message) -> Arc<Message> {
    let message = Arc::new(message);
    let calls = message.as_assistant().map_or(0, |reply| reply.tool_calls().take(2).count());
    if calls < 2 {
        return message;
    }
    let mut one = Conversation::from_iter([message.clone()]);
    one.repair();
    one.shared().first().cloned().unwrap_or(message)
}
