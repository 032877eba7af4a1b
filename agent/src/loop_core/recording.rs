//! The transitions of the loop. `next` returns the next step, and a method for each kind of step records the result.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::batch::{Batch, SlotState, with_unique_ids};
use super::calls::steered;
use super::secrets::EventSecrets;
use super::{
    AgentLoop, CallEnd, End, Event, EventKind, Limit, LimitReached, ModelReply, Queue, RecordError, Step,
    TurnSummary,
};
use crate::message::{Message, StopReason, Usage, continued::continuation};
use crate::model::ModelEvent;
use crate::step_key::{StepKey, StepKind};
use crate::tool::output::Control;

/// # Steps and events
impl AgentLoop {
    /// Returns the next step without changing the loop. The next step changes when a result is recorded, the run is ended or calls are
    /// skipped. While [`drive`](crate::steps::drive) performs the run, [`take_event`](Self::take_event) may change the next step, too.
    pub fn next(&self) -> Step {
        match &self.phase {
            Phase::PollFirst => Step::Poll { key: self.key(StepKind::Poll, 0), queue: Queue::Steering },
            Phase::PollSteering(_) => Step::Poll { key: self.key(StepKind::Poll, 1), queue: Queue::Steering },
            Phase::PollFollowUps(_) => {
                Step::Poll { key: self.key(StepKind::Poll, 2), queue: Queue::FollowUp }
            }
            Phase::CallModel => {
                Step::CallModel { key: self.key(StepKind::Model, 0), messages: self.conversation.list() }
            }
            Phase::Prepare => self.prepare_effect(),
            // This phase ends without a result, so the step has no calls.
            Phase::Skip => Step::Prepare {
                key: self.key(StepKind::Prepare, self.batch.segment.start),
                calls: Vec::new(),
            },
            Phase::Approve => self.approve_effect(),
            Phase::CallTools => self.call_effect(),
            Phase::Await => self.await_effect(),
            Phase::TurnEnd => Step::TurnEnd {
                key: self.key(StepKind::TurnEnd, 0),
                summary: TurnSummary {
                    run_id: self.run.clone(),
                    turn: self.turn,
                    stop_reason: self.stop_reason.clone(),
                    tool_results: self.call_ids(),
                    usage: self.usage.clone(),
                },
            },
            Phase::Ending(end) | Phase::Done(end) => Step::Done(end.clone()),
        }
    }

    /// Removes and returns the oldest pending event. While [`drive`](crate::steps::drive) drives the run, the run moves on only after all
    /// events are taken, so that a listener can stop or steer the run first.
    pub fn take_event(&mut self) -> Option<Event> {
        while self.events.is_empty() && self.is_driven && self.step() {}
        self.events.pop_front()
    }

    /// Removes and returns the oldest pending event. Unlike [`take_event`](Self::take_event), adds no new events.
    #[cfg(feature = "runtime")]
    pub(crate) fn pop_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(super) fn key(&self, kind: StepKind, ord: usize) -> StepKey {
        StepKey::new(self.run.clone(), self.turn, kind, u32::try_from(ord).unwrap_or(u32::MAX))
    }

    pub(super) fn emit(&mut self, kind: impl FnOnce(&Self) -> EventKind) {
        self.emit_streamed(false, kind);
    }

    /// Counts an event that a muted run does not build.
    pub(super) fn skip_event(&mut self) {
        self.seq += 1;
    }

    /// Emits an event. `hides_update` is true for an update that may show secret arguments.
    pub(super) fn emit_streamed(&mut self, hides_update: bool, kind: impl FnOnce(&Self) -> EventKind) {
        self.seq += 1;
        if !self.is_muted {
            let shown = EventSecrets { secrets: self.secrets.for_events(), hides_update };
            let kind = kind(self);
            self.events.push_back(Event {
                run_id: self.run.clone(),
                turn: self.turn,
                seq: self.seq,
                path: self.path.clone(),
                kind,
                shown,
            });
        }
    }
}

/// # Recording
///
/// Each [step](super::Step) names the method that records its result. A result that does not fit is refused, and changes nothing.
impl AgentLoop {
    /// Records the messages that were taken from a queue, or an empty list. Completes [`Step::Poll`](super::Step::Poll).
    ///
    /// # Errors
    /// Returns an error if the run does not wait for messages, or if a message is a reply or the result of a call.
    pub fn record_messages(&mut self, messages: Vec<Arc<Message>>) -> Result<(), RecordError> {
        for message in &messages {
            match **message {
                Message::Assistant(_) => return Err(RecordError::WrongRole { role: "assistant" }),
                Message::ToolResult(_) => return Err(RecordError::WrongRole { role: "tool_result" }),
                Message::User(_) | Message::Custom(_) | Message::Unknown(_) => {}
            }
        }
        match self.phase {
            Phase::PollFirst => {
                self.inject(messages);
                self.enter_request();
            }
            Phase::PollSteering(_) if messages.is_empty() && self.continues_text() => {
                self.next_turn(vec![Arc::new(continuation())]);
                self.emit(|run| EventKind::ReplyContinued { count: run.continued });
            }
            Phase::PollSteering(_) if !messages.is_empty() || self.is_reply_needed() => {
                self.next_turn(messages);
            }
            Phase::PollSteering(continues) => self.phase = Phase::PollFollowUps(continues),
            Phase::PollFollowUps(continues) if continues || !messages.is_empty() => self.next_turn(messages),
            Phase::PollFollowUps(_) => self.finish(End::Completed),
            _ => return Err(self.unexpected()),
        }
        self.settle();
        Ok(())
    }

    /// Records that the reply has begun, with the message in its initial, empty state. Optional: without it, the start event is emitted
    /// when the reply is recorded.
    ///
    /// # Errors
    /// Returns an error if the run does not wait for a reply.
    pub fn record_reply_start(&mut self, message: Arc<Message>) -> Result<(), RecordError> {
        if self.phase != Phase::CallModel {
            return Err(self.unexpected());
        }
        if self.streaming.is_none() {
            self.streamed_calls.clear();
            self.emit(|_| EventKind::MessageStart { message: message.clone() });
            self.streaming = Some(message);
        }
        Ok(())
    }

    /// Records that the reply has grown.
    ///
    /// # Errors
    /// Returns an error if no reply has [begun](Self::record_reply_start).
    pub fn record_reply_update(&mut self, update: ModelEvent) -> Result<(), RecordError> {
        if self.streaming.is_none() {
            return Err(self.unexpected());
        }
        let hides_update = self.streamed_calls.hides(&self.secrets, &update);
        self.emit_streamed(hides_update, |_| EventKind::MessageUpdate { update });
        Ok(())
    }

    /// Records the reply of the model. Completes [`Step::CallModel`](super::Step::CallModel).
    ///
    /// # Errors
    /// Returns an error if the run does not wait for a reply.
    pub fn record_reply(&mut self, reply: ModelReply) -> Result<(), RecordError> {
        if self.phase != Phase::CallModel {
            return Err(self.unexpected());
        }
        self.take_reply(reply);
        self.settle();
        Ok(())
    }

    /// Records whether the run continues after a turn: `Some(true)` asks the model again unless a limit is reached, `Some(false)` ends the
    /// run, and `None` lets the loop decide. Completes [`Step::TurnEnd`](super::Step::TurnEnd).
    ///
    /// # Errors
    /// Returns an error if the run is not at the end of a turn.
    pub fn record_turn_end(&mut self, continues: Option<bool>) -> Result<(), RecordError> {
        if self.phase != Phase::TurnEnd {
            return Err(self.unexpected());
        }
        self.take_turn_decision(continues);
        self.settle();
        Ok(())
    }

    /// Records that messages are queued at the end of a turn. If the decision of the turn or a limit still ends the run, the end is
    /// [`End::Terminated`] or [`End::Limit`] instead of [`End::Completed`].
    ///
    /// ```
    /// use agent::loop_core::{AgentLoop, End, LoopConfig, ModelReply, Step};
    /// use agent::message::{AssistantMessage, Conversation, Message, Part};
    ///
    /// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
    /// run.record_messages(Vec::new())?;
    /// run.record_reply(ModelReply::new(AssistantMessage::new([Part::text("Hello!")])))?;
    /// while run.take_event().is_some() {}
    /// run.expect_messages();
    /// run.record_turn_end(Some(false))?;
    /// assert_eq!(run.end(), Some(&End::Terminated));
    /// # Ok::<(), agent::loop_core::RecordError>(())
    /// ```
    pub fn expect_messages(&mut self) {
        self.expects_messages = true;
    }

    /// Records that a steering message arrived. Depending on the [policy](super::SteeringPolicy), calls that have not begun are skipped,
    /// even if they wait for a decision.
    pub fn steered(&mut self) {
        if !self.config.may_be_steered() {
            return;
        }
        self.batch.is_steered = true;
        if self.phase == Phase::Approve {
            self.advance();
            self.settle();
        }
    }

    pub(crate) fn may_be_steered(&self) -> bool {
        self.config.may_be_steered()
    }

    /// Records that a steering message arrived, and skips the calls that have not ended. The caller must have checked that none of them
    /// has begun.
    pub(crate) fn skip_calls(&mut self) {
        self.steered();
        match self.phase {
            Phase::Prepare => self.phase = Phase::Skip,
            Phase::CallTools => {
                for at in self.batch.positions(|state| *state == SlotState::Ready) {
                    self.end_call(at, CallEnd::new(steered()));
                }
            }
            _ => {}
        }
        self.settle();
    }

    /// Returns an error if a call of the last step has no recorded result.
    pub(crate) fn check_recorded(&self) -> Result<(), RecordError> {
        let is_open = |state: &SlotState| match self.phase {
            Phase::Prepare => matches!(state, SlotState::Planned | SlotState::Started),
            Phase::CallTools => *state == SlotState::Ready,
            _ => false,
        };
        match self.batch.positions(is_open).first() {
            None => Ok(()),
            Some(at) => Err(RecordError::Missing { ord: u32::try_from(*at).unwrap_or(u32::MAX) }),
        }
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.phase == Phase::Approve
    }

    /// Returns a copy with which the run can be continued. Skipped calls, and a run that is ending, have already ended in the copy.
    #[cfg(feature = "runtime")]
    pub(crate) fn snapshot(&self) -> Self {
        let mut copy = self.clone();
        copy.is_driven = false;
        while matches!(copy.phase, Phase::Skip | Phase::Ending(_)) && copy.step() {}
        // The copy does not share the budget of this run. A run that continues from the copy may have other limits.
        copy.budget = super::budget::SharedBudget::default();
        copy
    }

    /// Sets whether a transition waits until all earlier events are [taken](Self::take_event).
    pub(crate) fn set_driven(&mut self, is_driven: bool) {
        self.is_driven = is_driven;
        self.settle();
    }

    /// Returns the next step, or `None` while a `Transition` is pending.
    pub(crate) fn next_if_settled(&self) -> Option<Step> {
        self.transition().is_none().then(|| self.next())
    }

    /// Takes all pending transitions. In a [driven](Self::set_driven) run, [`take_event`](Self::take_event) takes them.
    pub(super) fn settle(&mut self) {
        while !self.is_driven && self.step() {}
    }

    pub(super) fn step(&mut self) -> bool {
        match self.transition() {
            None => return false,
            Some(Transition::Skip) => self.skip_call(),
            Some(Transition::Leave) => self.advance(),
            Some(Transition::End(end)) => self.finish(end),
        }
        true
    }

    fn transition(&self) -> Option<Transition> {
        let is_over =
            |is_open: fn(&SlotState) -> bool| (!self.batch.any(is_open)).then_some(Transition::Leave);
        match &self.phase {
            Phase::Skip => Some(Transition::Skip),
            Phase::Ending(end) => Some(Transition::End(end.clone())),
            Phase::Prepare => is_over(|state| matches!(state, SlotState::Planned | SlotState::Started)),
            Phase::Approve => is_over(|state| matches!(state, SlotState::Undecided(_))),
            Phase::CallTools => is_over(|state| *state == SlotState::Ready),
            Phase::Await => is_over(|state| {
                matches!(state, SlotState::Deferred(_) | SlotState::Asked(_) | SlotState::Child(_))
            }),
            _ => None,
        }
    }

    pub(super) fn begin_turn(&mut self, messages: Vec<Arc<Message>>) {
        self.turn = self.turn.saturating_add(1);
        self.batch = Batch::default();
        self.stop_reason = None;
        self.turn_usage = Usage::default();
        self.emit(|_| EventKind::TurnStart);
        self.inject(messages);
    }

    pub(super) fn next_turn(&mut self, messages: Vec<Arc<Message>>) {
        self.begin_turn(messages);
        self.enter_request();
    }

    pub(super) fn inject(&mut self, messages: Vec<Arc<Message>>) {
        for message in messages {
            if matches!(*message, Message::User(_)) {
                self.repeats.clear();
            }
            self.begin_answer(&message);
            self.add(message);
        }
    }

    pub(super) fn add(&mut self, message: Arc<Message>) {
        self.emit(|_| EventKind::MessageStart { message: message.clone() });
        self.keep(message);
    }

    fn keep(&mut self, message: Arc<Message>) {
        self.conversation.push(message.clone());
        self.emit(|_| {
            let queued_id = match &*message {
                Message::User(user) => user.id.clone(),
                _ => None,
            };
            EventKind::MessageEnd { message, queued_id }
        });
    }

    pub(super) fn keep_reply(&mut self, message: Arc<Message>) {
        if self.streaming.take().is_none() {
            self.emit(|_| EventKind::MessageStart { message: message.clone() });
        }
        if let Some(reply) = message.as_assistant() {
            self.stop_reason = Some(reply.stop_reason.clone());
        }
        self.keep(message);
    }

    pub(super) fn enter_request(&mut self) {
        match self.take_request() {
            Ok(()) => self.phase = Phase::CallModel,
            Err(reached) => {
                self.end_turn();
                self.phase = Phase::Ending(End::Limit(reached));
            }
        }
    }

    pub(super) fn take_reply(&mut self, ModelReply { message, is_cut, limit, .. }: ModelReply) {
        self.count_request(&message.usage);
        let is_cut = is_cut || message.stop_reason.is_cut();
        let message = with_unique_ids((*message).into());
        let Some(reply) = message.as_assistant() else { return };
        let end = match reply.stop_reason {
            StopReason::Error => {
                Some(End::error(reply.error.as_deref().unwrap_or("the model gave no reason")))
            }
            StopReason::Aborted if limit.is_some() => limit.map(End::Limit),
            StopReason::Aborted => Some(End::aborted(reply.error.as_deref().unwrap_or("cancelled"))),
            _ => None,
        };
        if let Some(end) = end {
            self.keep_reply(message);
            self.end_turn();
            self.finish(end);
            return;
        }
        self.batch = Batch::new(reply.tool_calls(), is_cut, &self.config);
        self.count_continuation(reply);
        self.keep_reply(message);
        if self.batch.slots.is_empty() {
            self.close_turn();
        } else {
            self.enter_segment();
        }
    }

    pub(super) fn count_request(&mut self, usage: &Usage) {
        self.requests += 1;
        self.turn_usage += usage;
        self.usage += usage;
        if let Some(budget) = &self.budget.0 {
            budget.add_usage(usage);
        }
    }

    pub(super) fn close_turn(&mut self) {
        self.end_turn();
        #[expect(clippy::cast_precision_loss, reason = "for a text")]
        let reached = self.reached.take().map(|reached| match reached.limit {
            // A call that ends without running is subtracted from the count, so the current count is reported.
            Limit::ToolCalls => LimitReached { used: self.tool_calls as f64, ..reached },
            _ => reached,
        });
        // The run ends in a later transition: a listener of the turn's end may still abort the run, and the abort takes precedence.
        self.phase = match (self.batch.control(), reached) {
            (Control::EndIfAll | Control::EndNow, _) => Phase::Ending(End::Terminated),
            (Control::Continue, Some(reached)) => Phase::Ending(End::Limit(reached)),
            (Control::Continue, None) => Phase::TurnEnd,
        };
    }

    pub(super) fn end_turn(&mut self) {
        self.emit(|this| EventKind::TurnEnd {
            assistant: this.stop_reason.clone(),
            tool_results: this.call_ids(),
            usage: this.turn_usage.clone(),
        });
    }

    pub(super) fn take_turn_decision(&mut self, decision: Option<bool>) {
        let is_expected = std::mem::take(&mut self.expects_messages);
        let continues = self.is_reply_needed() || is_expected || decision == Some(true);
        if decision == Some(false) {
            let end = if continues { End::Terminated } else { End::Completed };
            return self.finish(end);
        }
        match self.limit_of_next_turn() {
            Some(reached) if continues => self.finish(End::Limit(reached)),
            // A message that is queued now is not delivered, because the limit allows no request that would answer it.
            Some(_) => self.finish(End::Completed),
            None => self.phase = Phase::PollSteering(decision == Some(true)),
        }
    }

    /// Returns whether the model must reply again even if both queues are empty.
    pub(super) fn is_reply_needed(&self) -> bool {
        !self.batch.is_settled
            && (!self.batch.slots.is_empty()
                || self.stop_reason == Some(StopReason::Pause)
                || self.continues_text())
    }

    pub(super) fn finish(&mut self, end: End) {
        self.emit(|this| EventKind::AgentEnd {
            stop: end.stop(),
            detail: end.detail().map(str::to_owned),
            messages: this.added().to_vec(),
            usage: this.usage.clone(),
        });
        self.phase = Phase::Done(end);
    }

    pub(super) fn call_ids(&self) -> Vec<String> {
        self.batch.slots.iter().map(|slot| slot.call.id.clone()).collect()
    }

    pub(super) fn unexpected(&self) -> RecordError {
        match &self.phase {
            Phase::Ending(_) | Phase::Done(_) => RecordError::Over,
            phase => RecordError::WrongKind { wanted: phase.expected() },
        }
    }
}

/// A change of the phase that needs no result of a step.
enum Transition {
    /// Starts or ends the next skipped call. Leaves `Phase::Skip` after the last call.
    Skip,
    /// Leaves the phase, because none of its calls is left.
    Leave,
    End(End),
}
