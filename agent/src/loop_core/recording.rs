//! The loop: one method for each kind of result that a driver records, and the transitions that follow.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::batch::{Slot, SlotState};
use super::{
    AgentLoop, CallDecision, CallEnd, End, EventKind, ModelReply, Prepared, RecordError, Step, TurnDecision,
};
use crate::message::{Message, continued::continuation};
use crate::model::ModelEvent;
use crate::tool::progress::Progress;

/// # Recording
///
/// Each [effect](super::Step) names the method that records its result. A result that does not fit is refused, and changes nothing.
impl AgentLoop {
    /// Records the messages that a queue had; none if it was empty. For [`Step::Poll`](super::Step::Poll).
    ///
    /// # Errors
    /// Returns an error if the run does not wait for messages, or if one of them is a reply or a result of a call.
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

    /// Records that the reply has begun, with the message in its initial, empty state. Optional: the events follow from the reply.
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

    /// Records the reply of the model. For [`Step::CallModel`](super::Step::CallModel).
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

    /// Records that the call at this position is being prepared. Optional: the event follows from the result.
    ///
    /// # Errors
    /// Returns an error if the call is not the next one of a segment that is being prepared.
    pub fn record_call_start(&mut self, ord: u32) -> Result<(), RecordError> {
        let at = self.next_to_prepare(ord)?;
        self.start_call(at);
        Ok(())
    }

    /// Records the result of preparing the call at this position. For [`Step::Prepare`](super::Step::Prepare), once for each call, in
    /// call order.
    ///
    /// # Errors
    /// Returns an error if the call is not the next one of a segment that is being prepared.
    pub fn record_prepared(&mut self, ord: u32, prepared: Prepared) -> Result<(), RecordError> {
        let at = self.next_to_prepare(ord)?;
        self.prepare_call(at, prepared);
        self.settle();
        Ok(())
    }

    /// Records the decision on each call that waits for one, in the order of the requests. For [`Step::Approve`](super::Step::Approve).
    /// With a [`Later`](CallDecision::Later) among them, all calls keep waiting.
    ///
    /// # Errors
    /// Returns an error if the run does not wait for as many decisions.
    pub fn record_decisions(&mut self, decided: Vec<CallDecision>) -> Result<(), RecordError> {
        if self.phase != Phase::Approve {
            return Err(self.unexpected());
        }
        let asked = self.batch.positions(|state| matches!(state, SlotState::Undecided(_)));
        if asked.len() != decided.len() {
            return Err(RecordError::WrongCount { wanted: asked.len(), got: decided.len() });
        }
        if decided.contains(&CallDecision::Later) {
            return Ok(());
        }
        for (at, decided) in asked.into_iter().zip(decided) {
            self.decide(at, decided);
        }
        self.settle();
        Ok(())
    }

    /// Records progress that the call at this position reports. Ignored after its end.
    ///
    /// # Errors
    /// Returns an error if the call is not in the segment that runs.
    pub fn record_call_update(&mut self, ord: u32, partial: Progress) -> Result<(), RecordError> {
        let at = self.running(ord)?;
        if let Some(slot) = self.batch.slots.get(at).filter(|slot| slot.state == SlotState::Ready) {
            let (call_id, tool) = (slot.call.id.clone(), slot.call.name.clone());
            self.emit(|_| EventKind::ToolExecutionUpdate { call_id, tool, partial });
        }
        Ok(())
    }

    /// Records how the call at this position ended, or its result from outside. For [`Step::CallTools`](super::Step::CallTools) and
    /// [`Step::Await`](super::Step::Await), once for each call, in any order. Later ends of the same call are ignored.
    ///
    /// # Errors
    /// Returns an error if the call is not in the segment that runs, or not one whose result is awaited.
    pub fn record_call_end(&mut self, ord: u32, end: CallEnd) -> Result<(), RecordError> {
        if !end.asked.is_empty() {
            return self.record_questions(ord, end.asked);
        }
        let at = self.running(ord)?;
        self.end_call(at, end);
        self.settle();
        Ok(())
    }

    /// Records whether the run continues after a turn. For [`Step::TurnEnd`](super::Step::TurnEnd).
    ///
    /// # Errors
    /// Returns an error if the run is not at the end of a turn.
    pub fn record_turn_end(&mut self, verdict: TurnDecision) -> Result<(), RecordError> {
        if self.phase != Phase::TurnEnd {
            return Err(self.unexpected());
        }
        self.take_turn_decision(verdict);
        self.settle();
        Ok(())
    }

    /// Records that a steering message arrived. Depending on the [policy](super::SteeringPolicy), it takes precedence over calls that have
    /// not begun: they are skipped, and no decision on them is waited for.
    pub fn steered(&mut self) {
        if self.config.steering == super::SteeringPolicy::AfterBatch {
            return;
        }
        self.batch.is_steered = true;
        if self.phase == Phase::Approve {
            self.advance();
            self.settle();
        }
    }

    /// Checks that a step has recorded the result of each call that it was given.
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

    /// Whether the run waits for decisions.
    pub(crate) fn is_asking(&self) -> bool {
        self.phase == Phase::Approve
    }

    /// Returns a copy that any driver can continue.
    #[cfg(feature = "runtime")]
    pub(crate) fn snapshot(&self) -> Self {
        let mut copy = self.clone();
        copy.is_driven = false;
        while matches!(copy.phase, Phase::Skip | Phase::Ending(_)) && copy.step() {}
        copy
    }

    /// Decides whether each transition waits until the events before it are [taken](Self::take_event).
    pub(crate) fn set_driven(&mut self, is_driven: bool) {
        self.is_driven = is_driven;
        self.settle();
    }

    /// Returns what has to happen next, or `None` if a transition has to be taken before.
    pub(crate) fn next_if_settled(&self) -> Option<Step> {
        self.transition().is_none().then(|| self.next())
    }

    /// Takes all transitions that need no waiting, unless they wait for their events.
    pub(super) fn settle(&mut self) {
        while !self.is_driven && self.step() {}
    }

    /// Takes one transition that needs no waiting. Returns false if there is none.
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

    /// Returns the position of the call, if it may be prepared now. The end of a call that does not run follows directly after its start, so
    /// calls are prepared in call order.
    fn next_to_prepare(&self, ord: u32) -> Result<usize, RecordError> {
        if self.phase != Phase::Prepare {
            return Err(self.unexpected());
        }
        let at = usize::try_from(ord).unwrap_or(usize::MAX);
        let is_open = |slot: &Slot| matches!(slot.state, SlotState::Planned | SlotState::Started);
        let mut calls = self.batch.segment.clone().zip(self.batch.current());
        let is_next = calls.find(|(_, slot)| is_open(slot)).is_some_and(|(first, _)| at == first);
        if is_next && self.batch.segment.contains(&at) {
            Ok(at)
        } else {
            Err(RecordError::NoSuchCall { ord })
        }
    }

    /// Returns the position of the call, if it may end now.
    pub(super) fn running(&self, ord: u32) -> Result<usize, RecordError> {
        let at = usize::try_from(ord).unwrap_or(usize::MAX);
        let is_deferred = || {
            let slot = self.batch.slots.get(at);
            slot.is_some_and(|slot| matches!(slot.state, SlotState::Deferred(_)))
        };
        let is_awaited = match self.phase {
            Phase::CallTools => true,
            Phase::Await => is_deferred(),
            _ => return Err(self.unexpected()),
        };
        if is_awaited && self.batch.segment.contains(&at) {
            Ok(at)
        } else {
            Err(RecordError::NoSuchCall { ord })
        }
    }

    pub(super) fn unexpected(&self) -> RecordError {
        match &self.phase {
            Phase::Ending(_) | Phase::Done(_) => RecordError::Over,
            phase => RecordError::WrongKind { wanted: phase.expected() },
        }
    }
}

/// A change that needs no waiting.
enum Transition {
    /// The next call of a segment of which no call runs ends.
    Skip,
    /// Nothing is open in this phase.
    Leave,
    /// The run ends like this, which is announced.
    End(End),
}
