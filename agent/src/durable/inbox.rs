//! What others say to a run: messages, that it is to end, answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::PendingAsk;
use super::journal::{Drained, Take};
use crate::loop_core::Queue;
use crate::message::Message;

/// How many messages wait at most.
const MAX_WAITING: usize = 1000;

/// The inbox of one run. Whoever keeps it lets one at a time at it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Inbox {
    /// Who runs the run, as the engine calls it.
    owner: Option<String>,
    is_over: bool,
    stop: Option<Arc<str>>,
    steering: Vec<Arc<Message>>,
    follow_ups: Vec<Arc<Message>>,
    asks: Vec<Asked>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    ask: PendingAsk,
    /// What the engine waits for.
    promise: String,
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pushed {
    Taken,
    /// The run is over.
    Over,
    /// Too many wait.
    Full,
}

impl Inbox {
    /// The run begins. False when another one of this name did.
    pub(super) fn open(&mut self, owner: &str) -> bool {
        self.owner.get_or_insert_with(|| owner.to_owned()) == owner
    }

    /// A message comes. One that waits with the same id is the same.
    pub(super) fn push(&mut self, queue: Queue, message: Arc<Message>) -> Pushed {
        if self.is_over {
            return Pushed::Over;
        }
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

    pub(super) fn drain(&mut self, take: Take) -> Drained {
        let waiting = self.queue(take.queue);
        let most = take.most.min(waiting.len());
        let messages = waiting.drain(..most).collect();
        let left = self.steering.len() + self.follow_ups.len();
        Drained { messages, left, stop: self.stop.clone() }
    }

    /// The run is to end; the first reason counts. Who runs it, where that has begun and is not over.
    pub(super) fn cancel(&mut self, reason: Arc<str>) -> Option<String> {
        if self.is_over {
            return None;
        }
        self.stop.get_or_insert(reason);
        self.owner.clone()
    }

    /// The run waits for these, under these promises of the engine.
    pub(super) fn ask(&mut self, asks: Vec<(PendingAsk, String)>) {
        self.asks = asks.into_iter().map(|(ask, promise)| Asked { ask, promise }).collect();
    }

    /// What the run waits for.
    pub(super) fn asks(&self) -> Vec<PendingAsk> {
        self.asks.iter().map(|asked| asked.ask.clone()).collect()
    }

    /// Somebody answers: the promise that is to be kept, once.
    pub(super) fn answer(&mut self, id: &str) -> Option<String> {
        let at = self.asks.iter().position(|asked| asked.ask.id() == id)?;
        Some(self.asks.remove(at).promise)
    }

    /// The run is over.
    pub(super) fn close(&mut self) {
        self.is_over = true;
        self.steering.clear();
        self.follow_ups.clear();
        self.asks.clear();
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

    #[test]
    fn messages_come_out_once_and_in_order() {
        let mut inbox = Inbox::default();
        for (text, id) in [("a", Some("1")), ("b", None), ("a again", Some("1")), ("c", None)] {
            assert_eq!(inbox.push(Queue::Steering, said(text, id)), Pushed::Taken);
        }
        inbox.push(Queue::FollowUp, said("later", None));
        let one = inbox.drain(Take { queue: Queue::Steering, most: 1 });
        assert_eq!((texts(&one), one.left), (vec!["a".to_owned()], 3));
        let rest = inbox.drain(Take { queue: Queue::Steering, most: usize::MAX });
        assert_eq!((texts(&rest), rest.left), (vec!["b".to_owned(), "c".to_owned()], 1));
        inbox.close();
        assert_eq!(inbox.push(Queue::Steering, said("d", None)), Pushed::Over);
        assert_eq!(inbox.drain(Take { queue: Queue::FollowUp, most: 1 }).left, 0);
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
    fn the_first_owner_and_the_first_reason_count() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.cancel("before it began".into()), None);
        assert!(inbox.open("one") && inbox.open("one") && !inbox.open("two"));
        assert_eq!(inbox.cancel("later".into()).as_deref(), Some("one"));
        let drained = inbox.drain(Take { queue: Queue::Steering, most: 0 });
        assert_eq!(drained.stop.as_deref(), Some("before it began"));
        inbox.close();
        assert_eq!(inbox.cancel("too late".into()), None);
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
