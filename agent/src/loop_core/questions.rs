//! The loop: questions of tools to a person. A call that asked waits until each of its questions has an input, and then runs again.

use super::agent_loop::Phase;
use super::batch::{Slot, SlotState};
use super::{AgentLoop, EventKind, RecordError, RunPath};
use crate::tool::question::Question;
#[cfg(feature = "runtime")]
use crate::tool::question::{QuestionInput, RecordedInput};

impl AgentLoop {
    /// Returns the questions that the run and its sub-agents wait for: first those of the run, in call order, and then those of the
    /// sub-agents.
    ///
    /// ```
    /// use agent::loop_core::{AgentLoop, LoopConfig};
    /// use agent::message::{Conversation, Message};
    ///
    /// let run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
    /// assert!(run.questions().is_empty());                 // no tool asked
    /// ```
    pub fn questions(&self) -> Vec<Question> {
        let mut questions = Vec::new();
        self.visit(&self.path, &mut |run, path| questions.extend(run.questions_at(path)));
        questions
    }

    /// Returns the questions of this run, without those of its children. There are none before the phase `Await`.
    pub(super) fn questions_at(&self, path: &RunPath) -> impl Iterator<Item = Question> {
        let is_awaited = self.phase == Phase::Await;
        let slots = self.batch.slots.iter().filter(move |_| is_awaited);
        slots.flat_map(questions_of).map(|question| Question { path: path.clone(), ..question.clone() })
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn asking_calls(&self) -> impl Iterator<Item = (u32, &[Question])> {
        let slots = self.batch.slots.iter().enumerate().filter(|(_, slot)| is_asking(slot));
        slots.map(|(at, slot)| (u32::try_from(at).unwrap_or(u32::MAX), questions_of(slot)))
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn inputs_of(&self, ord: u32) -> &[RecordedInput] {
        let slot = usize::try_from(ord).ok().and_then(|at| self.batch.slots.get(at));
        slot.map(|slot| &*slot.inputs).unwrap_or_default()
    }

    pub(crate) fn record_questions(
        &mut self,
        ord: u32,
        mut questions: Vec<Question>,
    ) -> Result<(), RecordError> {
        let at = self.running(ord)?;
        if self.batch.slots.get(at).is_none_or(|slot| slot.state == SlotState::Ended) {
            return Ok(());
        }
        let given = questions.iter_mut().flat_map(|question| std::mem::take(&mut question.given));
        let given: Vec<_> = given.collect();
        for question in questions.iter().filter(|question| !question.is_announced) {
            let question = Box::new(Question { path: self.path.clone(), ..question.clone() });
            self.emit(|_| EventKind::QuestionAsked { question });
        }
        if let Some(slot) = self.batch.slots.get_mut(at) {
            slot.mac = None;
            for recorded in given {
                slot.inputs.retain(|earlier| earlier.question.number != recorded.question.number);
                slot.inputs.push(recorded);
            }
            slot.state = SlotState::Asked(questions);
        }
        self.version = Self::VERSION;
        self.settle();
        Ok(())
    }

    /// Records the inputs to the questions of a call, one for each question, so that the call runs again.
    #[cfg(feature = "runtime")]
    pub(crate) fn record_inputs(&mut self, ord: u32, inputs: Vec<QuestionInput>) {
        let at = usize::try_from(ord).unwrap_or(usize::MAX);
        let Some(slot) = self.batch.slots.get_mut(at).filter(|slot| is_asking(slot)) else { return };
        let SlotState::Asked(questions) = std::mem::replace(&mut slot.state, SlotState::Ready) else {
            return;
        };
        slot.is_approved = true;
        let call_id = slot.call.id.clone();
        let mut resolved = Vec::with_capacity(questions.len());
        for (question, input) in questions.into_iter().zip(inputs) {
            resolved.push((question.request_id.clone(), matches!(input, QuestionInput::Accept(_))));
            // A question whose input was refused is asked again with the same number. The new input replaces the old one.
            slot.inputs.retain(|earlier| earlier.question.number != question.number);
            slot.inputs.push(RecordedInput { question, input });
        }
        for (request_id, accepted) in resolved {
            self.record_resolved(request_id, call_id.clone(), accepted);
        }
    }

    /// Emits `question_asked` for a tool that waits for the input while it runs.
    #[cfg(feature = "runtime")]
    pub(crate) fn record_asked(&mut self, question: Question) {
        self.emit(|this| EventKind::QuestionAsked {
            question: Box::new(Question { path: this.path.clone(), ..question }),
        });
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn record_resolved(&mut self, request_id: String, call_id: String, accepted: bool) {
        self.emit(|_| EventKind::QuestionResolved { request_id, call_id, accepted });
    }
}

#[cfg(feature = "runtime")]
fn is_asking(slot: &Slot) -> bool {
    matches!(slot.state, SlotState::Asked(_))
}

fn questions_of(slot: &Slot) -> &[Question] {
    match &slot.state {
        SlotState::Asked(questions) => questions,
        _ => &[],
    }
}
