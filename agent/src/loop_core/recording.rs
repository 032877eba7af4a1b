//! The loop: one method for each kind of result that a driver records, and the transitions that follow.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::batch::SlotState;
use super::{AgentLoop, End, EventKind, ModelReply, RecordError, Step};
use crate::message::{Message, continued::continuation};
use crate::model::ModelEvent;

/// # Recording
///
/// Each [step](super::Step) names the method that records its result. A result that does not fit is refused, and changes nothing.
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

    /// Records whether the run continues after a turn: `Some(true)` asks the model again, `Some(false)` ends the run, and `None` leaves this to
    /// the loop. For [`Step::TurnEnd`](super::Step::TurnEnd).
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

    /// Says that messages wait for the run while its turn ends. If a limit or the decision ends the run now, it was not complete.
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
