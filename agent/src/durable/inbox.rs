//! The inbox of a run: messages, cancellation, and answers from outside.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::PendingAsk;
use super::journal::{InboxBatch, InboxRequest, QueueLengths};
use crate::loop_core::{Queue, ReservedPart, Spent, TreeReservation};
use crate::message::{Message, Usage};
use crate::step_key::{StepKey, StepKind};

/// Maximum number of messages in both queues together.
const MAX_MESSAGES: usize = 1000;

/// The inbox of one run: its queued messages and pending requests. The engine (Restate) makes one change to an inbox at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Inbox {
    is_stopped: bool,
    steering: Vec<Arc<Message>>,
    follow_ups: Vec<Arc<Message>>,
    asks: Vec<PendingQuestion>,
    /// The names of the sub-agents' runs that this run started last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<String>,
    /// The amounts that the root run and its sub-agents have used. Only the inbox of the root run counts them.
    #[serde(skip_serializing_if = "is_unused")]
    spent: Spent,
    #[serde(rename = "told")]
    notices: u32,
    /// Whether the run was notified of messages since the inbox was last drained.
    #[serde(rename = "is_told")]
    is_notified: bool,
}

fn is_unused(spent: &Spent) -> bool {
    *spent == Spent::default()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PendingQuestion {
    ask: PendingAsk,
    /// The id of the engine's promise (an awakeable of Restate) that the answer resolves.
    promise: String,
}

/// Returns the name of the run that made the approval request or question `id`, or `None` if `id` is the handle that a tool returned for a
/// deferred result.
pub(super) fn run_of(id: &str) -> Option<Arc<str>> {
    let kind_of = |key: &StepKey| matches!(key.kind, StepKind::Approval | StepKind::Tool);
    // The id of a question is `KEY/ask/…`. The id of an approval request is `KEY`, or `KEY/2` for the second request of the same call.
    let call = id.rsplit_once("/ask/").map_or(id, |(call, _)| call);
    let first = call.rsplit_once('/').map_or(call, |(first, _)| first);
    [call, first].iter().find_map(|text| text.parse().ok().filter(kind_of)).map(|key| key.run)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PushOutcome {
    Taken,
    Over,
    Full,
}

impl Inbox {
    /// Returns the number of the notice that tells the run about new messages. Returns `None` if there are no messages, or if the run was
    /// already notified.
    pub(super) fn message_notice(&mut self) -> Option<u32> {
        if self.is_notified || self.lengths().is_empty() {
            return None;
        }
        self.is_notified = true;
        Some(self.next_notice())
    }

    /// Returns the number of the next notice. The run waits for all numbers in order, so there are no gaps.
    fn next_notice(&mut self) -> u32 {
        let number = self.notices;
        self.notices = self.notices.wrapping_add(1);
        number
    }

    fn lengths(&self) -> QueueLengths {
        QueueLengths { steering: self.steering.len(), follow_ups: self.follow_ups.len() }
    }

    /// Adds a message, unless the queue has a message with the same id.
    pub(super) fn push(&mut self, queue: Queue, message: Arc<Message>) -> PushOutcome {
        let is_full = self.steering.len() + self.follow_ups.len() >= MAX_MESSAGES;
        let waiting = self.queue(queue);
        let id = |message: &Message| match message {
            Message::User(message) => message.id.clone(),
            _ => None,
        };
        let own = id(&message);
        // A message that is sent again is in the queue, so it needs no room.
        if own.is_some() && waiting.iter().any(|other| id(other) == own) {
            return PushOutcome::Taken;
        }
        if is_full {
            return PushOutcome::Full;
        }
        waiting.push(message);
        PushOutcome::Taken
    }

    pub(super) fn drain(&mut self, request: InboxRequest) -> InboxBatch {
        self.is_notified = false;
        let waiting = self.queue(request.queue);
        let count = request.most.min(waiting.len());
        let messages: Vec<_> = waiting.drain(..count).collect();
        InboxBatch { messages, left: self.lengths() }
    }

    /// Returns the number of the notice to send, or `None` if the run was cancelled before: the first reason is kept.
    pub(super) fn cancel(&mut self) -> Option<u32> {
        let is_first = !std::mem::replace(&mut self.is_stopped, true);
        is_first.then(|| self.next_notice())
    }

    pub(super) fn ask(&mut self, asks: Vec<(PendingAsk, String)>) {
        self.asks = asks.into_iter().map(|(ask, promise)| PendingQuestion { ask, promise }).collect();
    }

    pub(super) fn pending(&self) -> Vec<PendingAsk> {
        self.asks.iter().map(|question| question.ask.clone()).collect()
    }

    pub(super) fn set_children(&mut self, children: Vec<String>) {
        self.children = children;
    }

    pub(super) fn reserve(&mut self, wanted: TreeReservation) -> ReservedPart {
        // The last report of a run may arrive when the root run is over, and must not create the inbox again.
        let is_report = Spent { usage: Usage::default(), ..wanted.wanted.clone() } == Spent::default();
        if is_report && *self == Self::default() {
            return ReservedPart::default();
        }
        self.spent.reserve(wanted)
    }

    pub(super) fn children(&self) -> &[String] {
        &self.children
    }

    pub(super) fn answer(&mut self, id: &str) -> Option<String> {
        let at = self.asks.iter().position(|question| question.ask.id() == id)?;
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

    fn message(text: &str, id: Option<&str>) -> Arc<Message> {
        let mut message = UserMessage::from(text);
        message.id = id.map(str::to_owned);
        Arc::new(message.into())
    }

    fn texts(drained: &InboxBatch) -> Vec<String> {
        drained.messages.iter().map(|message| message.text()).collect()
    }

    fn at_most(most: usize, queue: Queue) -> InboxRequest {
        InboxRequest { queue, most }
    }

    #[test]
    fn messages_are_drained_once_and_in_order() {
        let mut inbox = Inbox::default();
        for (text, id) in [("a", Some("1")), ("b", None), ("a again", Some("1")), ("c", None)] {
            assert_eq!(inbox.push(Queue::Steering, message(text, id)), PushOutcome::Taken);
        }
        inbox.push(Queue::FollowUp, message("later", None));
        let one = inbox.drain(at_most(1, Queue::Steering));
        assert_eq!(
            (texts(&one), one.left),
            (vec!["a".to_owned()], QueueLengths { steering: 2, follow_ups: 1 })
        );
        let rest = inbox.drain(at_most(usize::MAX, Queue::Steering));
        assert_eq!(texts(&rest), ["b", "c"]);
        assert_eq!(rest.left, QueueLengths { steering: 0, follow_ups: 1 });
        assert!(inbox.drain(at_most(1, Queue::FollowUp)).left.is_empty());
    }

    #[test]
    fn a_stored_inbox_keeps_its_form() {
        let json = r#"{"is_stopped":true,"steering":[],"follow_ups":[],"asks":[],"told":2,"is_told":true}"#;
        let inbox: Inbox = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&inbox).unwrap(), json);
    }

    #[test]
    fn the_run_is_notified_once_until_it_drains_the_inbox() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.message_notice(), None, "the inbox is empty");
        inbox.push(Queue::FollowUp, message("early", None));
        assert_eq!(inbox.message_notice(), Some(0));
        inbox.push(Queue::Steering, message("a", None));
        assert_eq!(inbox.message_notice(), None, "the run was notified and has not drained the inbox");
        inbox.drain(at_most(1, Queue::Steering));
        inbox.push(Queue::Steering, message("b", None));
        assert_eq!(inbox.message_notice(), Some(1));
    }

    #[test]
    fn the_run_is_notified_once_of_a_cancellation_with_a_separate_number() {
        let mut inbox = Inbox::default();
        inbox.push(Queue::Steering, message("a", None));
        assert_eq!(inbox.message_notice(), Some(0));
        assert_eq!((inbox.cancel(), inbox.cancel()), (Some(1), None));
        inbox.drain(at_most(1, Queue::Steering));
        inbox.push(Queue::Steering, message("b", None));
        assert_eq!(inbox.message_notice(), Some(2));
    }

    #[test]
    fn a_full_inbox_takes_no_message() {
        let mut inbox = Inbox::default();
        for at in 0..MAX_MESSAGES {
            let id = at.to_string();
            assert_eq!(inbox.push(Queue::FollowUp, message(&id, Some(&id))), PushOutcome::Taken);
        }
        assert_eq!(inbox.push(Queue::Steering, message("more", None)), PushOutcome::Full);
        let sent_again = message("7", Some("7"));
        assert_eq!(inbox.push(Queue::FollowUp, sent_again), PushOutcome::Taken, "it is in the queue");
        assert_eq!(inbox.lengths().follow_ups, MAX_MESSAGES);
    }

    #[test]
    fn a_report_to_a_run_that_is_over_does_not_create_its_inbox() {
        let usage = Usage { input: 7, ..Usage::default() };
        let report = |requests| TreeReservation {
            wanted: Spent { requests, usage: usage.clone(), ..Spent::default() },
            ..TreeReservation::default()
        };
        let mut inbox = Inbox::default();
        inbox.reserve(report(0));
        assert_eq!(inbox, Inbox::default());
        inbox.reserve(report(1));
        inbox.reserve(report(0));
        assert_eq!(inbox.spent.usage.input, 14);
    }

    #[test]
    fn an_id_names_its_run() {
        for (id, run) in [
            ("r/1/approval/0", Some("r")),
            ("r/1/approval/0/2", Some("r")),
            ("r/1/tool/0/2/approval/3", Some("r/1/tool/0")),
            ("r/1/tool/0/2/tool/1/ask/0", Some("r/1/tool/0")),
            ("r/1/tool/0/ask/0/2", Some("r")),
            ("job-7", None),
            ("a/b", None),
            ("", None),
        ] {
            assert_eq!(run_of(id).as_deref(), run, "{id}");
        }
    }

    #[test]
    fn a_request_is_answered_once() {
        let mut inbox = Inbox::default();
        let step = StepKey::new("r", 1, StepKind::Tool, 0);
        let ask = PendingAsk::Deferred { step, handle: "h".to_owned() };
        inbox.ask(vec![(ask.clone(), "promise".to_owned())]);
        assert_eq!(inbox.pending(), [ask]);
        assert_eq!(inbox.answer("other"), None);
        assert_eq!(inbox.answer("h").as_deref(), Some("promise"));
        assert_eq!(inbox.answer("h"), None);
    }
}
