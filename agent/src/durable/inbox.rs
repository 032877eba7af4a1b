//! What others say to a run: messages, that it is to end, answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::PendingAsk;
use super::journal::{Drained, Left, Take};
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
    /// How often the owner was told that messages came, and whether it has not looked since.
    told: u32,
    is_told: bool,
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

/// The owner of a run is to be told that messages wait: under a name of its own each time, so that none is taken for another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) owner: String,
    pub(super) number: u32,
}

impl Inbox {
    /// The run begins. False when another one of this name did.
    pub(super) fn open(&mut self, owner: &str) -> bool {
        self.owner.get_or_insert_with(|| owner.to_owned()) == owner
    }

    /// What its owner has to be told, once until it looks.
    pub(super) fn news(&mut self) -> Option<News> {
        let owner = self.owner.clone().filter(|_| !self.is_told && !self.left().is_empty())?;
        let number = self.told;
        (self.told, self.is_told) = (self.told.wrapping_add(1), true);
        Some(News { owner, number })
    }

    /// Why the run is to end.
    pub(super) fn stop(&self) -> Option<Arc<str>> {
        self.stop.clone()
    }

    fn left(&self) -> Left {
        Left { steering: self.steering.len(), follow_ups: self.follow_ups.len() }
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

    /// The run takes messages, or ends where there are none.
    pub(super) fn drain(&mut self, take: Take) -> Drained {
        self.is_told = false;
        let waiting = self.queue(take.queue);
        let most = take.most.min(waiting.len());
        let messages: Vec<_> = waiting.drain(..most).collect();
        let left = self.left();
        let is_closed = take.or_close && messages.is_empty() && left.is_empty();
        if is_closed {
            self.close();
        }
        Drained { messages, left, stop: self.stop(), is_closed }
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

    fn take(queue: Queue, most: usize) -> Take {
        Take { queue, most, or_close: false }
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
        inbox.close();
        assert_eq!(inbox.push(Queue::Steering, said("d", None)), Pushed::Over);
        assert!(inbox.drain(take(Queue::FollowUp, 1)).left.is_empty());
    }

    #[test]
    fn its_owner_is_told_once_until_it_looks() {
        let mut inbox = Inbox::default();
        inbox.push(Queue::FollowUp, said("early", None));
        assert_eq!(inbox.news(), None, "nobody is there to be told");
        assert!(inbox.open("inv_1") && !inbox.open("inv_2"));
        let news = |number| Some(News { owner: "inv_1".to_owned(), number });
        assert_eq!(inbox.news(), news(0));
        inbox.push(Queue::Steering, said("a", None));
        assert_eq!(inbox.news(), None, "it was told, and has not looked");
        inbox.drain(take(Queue::Steering, 1));
        inbox.push(Queue::Steering, said("b", None));
        assert_eq!(inbox.news(), news(1));
    }

    #[test]
    fn it_closes_only_when_nothing_is_left() {
        let last = |queue| Take { queue, most: 1, or_close: true };
        let mut inbox = Inbox::default();
        inbox.push(Queue::Steering, said("late", None));
        let drained = inbox.drain(last(Queue::FollowUp));
        assert!(drained.messages.is_empty() && !drained.is_closed && drained.left.steering == 1);
        assert!(!inbox.drain(last(Queue::Steering)).is_closed, "what it gives is answered first");
        assert!(inbox.drain(last(Queue::FollowUp)).is_closed);
        assert_eq!(inbox.push(Queue::FollowUp, said("too late", None)), Pushed::Over);
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
        let drained = inbox.drain(take(Queue::Steering, 0));
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
