//! Messages that are queued for a run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::error::RunError;
use crate::message::{Message, UserMessage};

/// Maximum number of messages in a queue. Further messages get the status [`Delivery::Full`].
const MAX_QUEUED: usize = 1024;

/// The delivery status of a queued message.
///
/// ```
/// use agent::{Assistant, ScriptedModel, run::Delivery};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Bonjour !"])).build()?;
/// let receipt = assistant.steer("Answer in French.");
/// assistant.prompt("Hi").await?;
/// assert!(matches!(receipt.delivered().await, Delivery::Delivered { turn: 1, .. }));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// The message is in the conversation.
    #[non_exhaustive]
    Delivered {
        /// The run whose conversation contains the message.
        run_id: Arc<str>,
        /// The turn that began with the message.
        turn: u32,
    },
    /// The message was removed from its queue.
    Cleared,
    /// The assistant was dropped.
    Closed,
    /// The queue was full.
    Full,
}

impl Delivery {
    /// Returns whether the message was delivered. With any other status, the message will never be delivered.
    ///
    /// ```
    /// use agent::run::{Delivery, Queue};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let receipt = assistant.follow_up("And in French?");
    /// assistant.clear_queue(Queue::FollowUp);
    /// assert_eq!(receipt.status(), Some(Delivery::Cleared));
    /// assert!(receipt.status().is_some_and(|delivery| !delivery.is_delivered()));
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn is_delivered(&self) -> bool {
        matches!(self, Self::Delivered { .. })
    }
}

/// A receipt for a queued message, which reports its delivery status.
///
/// A receipt stays valid across runs until the message is delivered, or can no longer be delivered. Dropping a receipt has no effect on the
/// message.
///
/// ```
/// use agent::run::Queue;
/// use agent::message::Message;
/// use agent::{Assistant, ScriptedModel, run::Delivery};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let receipt = assistant.steer("Be brief.");
/// assert_eq!(receipt.status(), None);                      // it waits
/// let waiting = assistant.queued(Queue::Steering);
/// assert!(matches!(&*waiting[0], Message::User(user) if user.id.as_deref() == Some(receipt.id())));
///
/// assistant.prompt("Hi").await?;
/// assert!(matches!(receipt.delivered().await, Delivery::Delivered { turn: 1, .. }));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Receipt {
    id: Arc<str>,
    state: watch::Receiver<Option<Delivery>>,
}

impl Receipt {
    /// Returns the id of the message: its own id, or an id that was generated when the message was queued.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the delivery status, or `None` while the message is still queued.
    pub fn status(&self) -> Option<Delivery> {
        let known = self.state.borrow().clone();
        let closed = || self.state.has_changed().is_err();
        known.or_else(|| closed().then_some(Delivery::Closed))
    }

    /// Waits until the message is delivered, or can no longer be delivered.
    pub async fn delivered(&self) -> Delivery {
        let mut state = self.state.clone();
        let known = state.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        known.unwrap_or(Delivery::Closed)
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("id", &self.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

pub(super) struct QueuedMessage {
    id: Arc<str>,
    pub(super) message: Arc<Message>,
    state: watch::Sender<Option<Delivery>>,
}

impl QueuedMessage {
    fn new(mut message: UserMessage) -> Self {
        let id = message.id.get_or_insert_with(|| super::new_id("msg"));
        let id: Arc<str> = id.as_str().into();
        Self::with_id(id, message.into())
    }

    fn with_id(id: Arc<str>, message: Message) -> Self {
        Self { id, message: Arc::new(message), state: watch::Sender::new(None) }
    }

    fn receipt(&self) -> Receipt {
        Receipt { id: self.id.clone(), state: self.state.subscribe() }
    }

    pub(super) fn clear(&self) {
        self.resolve(Delivery::Cleared);
    }

    pub(super) fn resolve(&self, delivery: Delivery) {
        self.state.send_replace(Some(delivery));
    }
}

#[derive(Default)]
pub(super) struct MessageQueue {
    waiting: VecDeque<QueuedMessage>,
    /// The number of messages, from the front, that were queued when the current turn began. These messages do not steer the turn.
    deferred: usize,
}

impl MessageQueue {
    /// Queues a message. If a message with the same id is queued already, returns the receipt of that message. If the queue is full,
    /// refuses the message, and the receipt reports [`Delivery::Full`].
    pub(super) fn push(&mut self, message: UserMessage) -> Receipt {
        let twin = message.id.as_deref().and_then(|id| self.waiting.iter().find(|queued| *queued.id == *id));
        if let Some(twin) = twin {
            return twin.receipt();
        }
        let queued = QueuedMessage::new(message);
        let receipt = queued.receipt();
        if self.waiting.len() < MAX_QUEUED {
            self.waiting.push_back(queued);
        } else {
            queued.resolve(Delivery::Full);
        }
        receipt
    }

    /// Queues messages of any kind, without receipts. Fails without queuing any of them if the queue has no room for all.
    pub(super) fn push_messages(&mut self, messages: Vec<Message>) -> Result<(), RunError> {
        if self.waiting.len().saturating_add(messages.len()) > MAX_QUEUED && !messages.is_empty() {
            return Err(RunError::Request {
                message: "the steering queue has no room for the messages of the prompt; clear it first"
                    .to_owned(),
            });
        }
        for message in messages {
            match message {
                Message::User(message) => drop(self.push(message)),
                message => {
                    self.waiting.push_back(QueuedMessage::with_id(super::new_id("msg").into(), message));
                }
            }
        }
        Ok(())
    }

    /// Puts a message of the run itself before all other messages. The next turn takes it, so the queue exceeds its capacity by at most
    /// one message.
    pub(super) fn push_front(&mut self, message: UserMessage) {
        self.waiting.push_front(QueuedMessage::new(message));
        self.deferred += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn has_new_messages(&self) -> bool {
        self.waiting.len() > self.deferred
    }

    /// Defers the queued messages to a later turn, so that they do not steer the current turn.
    pub(super) fn defer_current(&mut self) {
        self.deferred = self.waiting.len();
    }

    /// Takes the messages with which a turn begins: all messages, or only the first. The others wait for a later turn.
    pub(super) fn take(&mut self, takes_all: bool) -> Vec<QueuedMessage> {
        let count = self.waiting.len().min(if takes_all { usize::MAX } else { 1 });
        let taken = self.waiting.drain(..count).collect();
        self.defer_current();
        taken
    }

    /// Removes all messages, and returns them. Call [`clear`](QueuedMessage::clear) on each while no lock is held, because resolving a
    /// receipt wakes tasks.
    #[must_use = "the receipts of removed messages have to be resolved"]
    pub(super) fn clear(&mut self) -> VecDeque<QueuedMessage> {
        self.deferred = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Removes a message, and returns it. Call [`clear`](QueuedMessage::clear) on the message while no lock is held.
    #[must_use = "the receipt of the removed message has to be resolved"]
    pub(super) fn remove(&mut self, id: &str) -> Option<QueuedMessage> {
        let at = self.waiting.iter().position(|queued| *queued.id == *id)?;
        self.deferred -= usize::from(at < self.deferred);
        self.waiting.remove(at)
    }

    pub(super) fn messages(&self) -> Vec<Arc<Message>> {
        self.waiting.iter().map(|queued| queued.message.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::loop_core::Queue;
    use crate::message::CustomMessage;
    use crate::model::scripted::{ScriptedModel, reply};
    use crate::runtime::{Assistant, Decision, RunError};
    use crate::tool::approval::Approval;
    use crate::tool::value::Tool;
    use crate::tools;

    #[tokio::test]
    async fn messages_of_a_resumed_run_need_room_in_the_queue() {
        let pay = Tool::new("pay", "Pays.", json!({"type": "object"}), |_args, _cx| async { "paid" });
        let pay = pay.unwrap().configure(|options| options.approval(Approval::ALWAYS)).unwrap();
        let model = ScriptedModel::new([reply().tool_call("pay", "{}"), reply().text("Done.")]);
        let assistant = Assistant::builder(model).tools(tools![{ pay }]).build().unwrap();
        let suspended = assistant.prompt("go").await.unwrap().snapshot.unwrap();
        for number in 1..MAX_QUEUED {
            assert_eq!(assistant.steer(format!("{number}")).status(), None);
        }
        let decisions = || suspended.decide(|_| Decision::Allow);
        for message in [CustomMessage::new("note", json!(1)).into(), Message::user("more")] {
            let last = assistant.steer("last");
            let resumed = assistant.resume(&suspended, decisions()).with_message(message).await;
            assert!(matches!(resumed, Err(RunError::Request { .. })), "{resumed:?}");
            assert!(assistant.remove_queued(last.id()));
        }
        // The refused prompts changed nothing, so the run can still be resumed.
        assistant.clear_queue(Queue::Steering);
        let output = assistant.resume(&suspended, decisions()).with_message(Message::user("more")).await;
        assert!(output.unwrap().messages.iter().any(|message| message.text() == "more"));
    }
}
