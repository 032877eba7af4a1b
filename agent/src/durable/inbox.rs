//! The inbox of a run: messages, cancellation, and answers from outside.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::PendingAsk;
use super::journal::{Drained, Left, Take};
use crate::loop_core::Queue;
use crate::message::Message;

/// The maximum number of waiting messages.
const MAX_WAITING: usize = 1000;

/// The inbox of one run. Its owner lets one caller at a time change it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Inbox {
    /// Whether the run was cancelled.
    is_stopped: bool,
    steering: Vec<Arc<Message>>,
    follow_ups: Vec<Arc<Message>>,
    asks: Vec<Asked>,
    /// How many notices the run was sent, and whether it has not looked for messages since the last one.
    told: u32,
    is_told: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    ask: PendingAsk,
    /// The promise of the engine that the run waits for.
    promise: String,
}

/// The result of pushing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pushed {
    Taken,
    /// The run is over.
    Over,
    /// Too many messages wait.
    Full,
}

impl Inbox {
    /// Returns the number of the notice that tells the run about waiting messages: one notice until the run looks.
    pub(super) fn news(&mut self) -> Option<u32> {
        if self.is_told || self.left().is_empty() {
            return None;
        }
        self.is_told = true;
        Some(self.number())
    }

    /// Each number is used once and none is skipped, because the run waits for them in order.
    fn number(&mut self) -> u32 {
        let number = self.told;
        self.told = self.told.wrapping_add(1);
        number
    }

    fn left(&self) -> Left {
        Left { steering: self.steering.len(), follow_ups: self.follow_ups.len() }
    }

    /// Adds a message. A waiting message with the same id counts as the same message.
    pub(super) fn push(&mut self, queue: Queue, message: Arc<Message>) -> Pushed {
        if self.steering.len() + self.follow_ups.len() >= MAX_WAITING {
            return Pushed::Full;
        }
        let waiting = self.queue(queue);
        let id = |message: &Message| match message {
            Message::User(message) => message.id.clone(),
            _ => None,
        };
        let own = id(&message);
        if own.is_none() || !waiting.iter().any(|other| id(other) == own) {
            waiting.push(message);
        }
        Pushed::Taken
    }

    /// Takes messages for the run.
    pub(super) fn drain(&mut self, take: Take) -> Drained {
        self.is_told = false;
        let waiting = self.queue(take.queue);
        let most = take.most.min(waiting.len());
        let messages: Vec<_> = waiting.drain(..most).collect();
        Drained { messages, left: self.left() }
    }

    /// Returns the number of the notice that cancels the run, or `None` if it was cancelled before. The first reason counts.
    pub(super) fn cancel(&mut self) -> Option<u32> {
        let is_first = !std::mem::replace(&mut self.is_stopped, true);
        is_first.then(|| self.number())
    }

    /// Sets what the run waits for, each with the promise of the engine.
    pub(super) fn ask(&mut self, asks: Vec<(PendingAsk, String)>) {
        self.asks = asks.into_iter().map(|(ask, promise)| Asked { ask, promise }).collect();
    }

    /// Returns what the run waits for.
    pub(super) fn asks(&self) -> Vec<PendingAsk> {
        self.asks.iter().map(|asked| asked.ask.clone()).collect()
    }

    /// Returns the promise to resolve with the answer, once.
    pub(super) fn answer(&mut self, id: &str) -> Option<String> {
        let at = self.asks.iter().position(|asked| asked.ask.id() == id)?;
        Some(self.asks.remove(at).promise)
    }

    fn queue(&mut self, queue: Queue) -> &mut Vec<Arc<Message>> {
        match queue {
            Queue::Steering => &mut self.steering,
            Queue::FollowUp => &mut self.follow_ups,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::UserMessage;
    use crate::{StepKey, StepKind};

    fn said(text: &str, id: Option<&str>) -> Arc<Message> {
        let mut message = UserMessage::from(text);
        message.id = id.map(str::to_owned);
        Arc::new(message.into())
    }

    fn texts(drained: &Drained) -> Vec<String> {
        drained.messages.iter().map(|message| message.text()).collect()
    }

    fn take(queue: Queue, most: usize) -> Take {
        Take { queue, most }
    }

    #[test]
    fn messages_come_out_once_and_in_order() {
        let mut inbox = Inbox::default();
        for (text, id) in [("a", Some("1")), ("b", None), ("a again", Some("1")), ("c", None)] {
            assert_eq!(inbox.push(Queue::Steering, said(text, id)), Pushed::Taken);
        }
        inbox.push(Queue::FollowUp, said("later", None));
        let one = inbox.drain(take(Queue::Steering, 1));
        assert_eq!((texts(&one), one.left), (vec!["a".to_owned()], Left { steering: 2, follow_ups: 1 }));
        let rest = inbox.drain(take(Queue::Steering, usize::MAX));
        assert_eq!(texts(&rest), ["b", "c"]);
        assert_eq!(rest.left, Left { steering: 0, follow_ups: 1 });
        assert!(inbox.drain(take(Queue::FollowUp, 1)).left.is_empty());
    }

    #[test]
    fn the_run_is_told_once_until_it_looks() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.news(), None, "there is nothing");
        inbox.push(Queue::FollowUp, said("early", None));
        assert_eq!(inbox.news(), Some(0));
        inbox.push(Queue::Steering, said("a", None));
        assert_eq!(inbox.news(), None, "it was told, and has not looked");
        inbox.drain(take(Queue::Steering, 1));
        inbox.push(Queue::Steering, said("b", None));
        assert_eq!(inbox.news(), Some(1));
    }

    #[test]
    fn it_is_told_once_that_it_is_to_end_with_a_number_of_its_own() {
        let mut inbox = Inbox::default();
        inbox.push(Queue::Steering, said("a", None));
        assert_eq!(inbox.news(), Some(0));
        assert_eq!((inbox.cancel(), inbox.cancel()), (Some(1), None));
        inbox.drain(take(Queue::Steering, 1));
        inbox.push(Queue::Steering, said("b", None));
        assert_eq!(inbox.news(), Some(2));
    }

    #[test]
    fn a_full_inbox_says_so() {
        let mut inbox = Inbox::default();
        for at in 0..MAX_WAITING {
            assert_eq!(inbox.push(Queue::FollowUp, said(&at.to_string(), None)), Pushed::Taken);
        }
        assert_eq!(inbox.push(Queue::Steering, said("more", None)), Pushed::Full);
    }

    #[test]
    fn an_answer_is_given_once() {
        let mut inbox = Inbox::default();
        let step = StepKey::new("r", 1, StepKind::Tool, 0);
        let ask = PendingAsk::Deferred { step, handle: "h".to_owned() };
        inbox.ask(vec![(ask.clone(), "promise".to_owned())]);
        assert_eq!(inbox.asks(), [ask]);
        assert_eq!(inbox.answer("other"), None);
        assert_eq!(inbox.answer("h").as_deref(), Some("promise"));
        assert_eq!(inbox.answer("h"), None);
    }
}
