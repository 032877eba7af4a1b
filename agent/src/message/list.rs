//! Shared lists of messages.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use super::by_role::Message;
use super::kept::KeptSlot;

/// A list of messages, oldest first, that a conversation, a request and a snapshot can share.
///
/// A list dereferences to a slice of `Arc<Message>`, and cloning it only increments a reference count. Appending to a shared list copies
/// its pointers first; a list that is not shared grows in place. Appending to a long conversation therefore stays cheap as long as requests
/// are not kept.
///
/// ```
/// use agent::message::{Message, MessageList};
///
/// let mut list: MessageList = [Message::user("Hi")].into_iter().collect();
/// let kept = list.clone();
/// list.push(Message::assistant("Hello!"));
/// assert_eq!((kept.len(), list.len()), (1, 2));
///
/// list.clear();
/// assert_eq!(list, MessageList::new());
/// assert_eq!(kept[0].text(), "Hi");
/// ```
#[derive(Clone)]
pub struct MessageList {
    messages: Arc<NumberedMessages>,
    kept: KeptSlot,
}

/// A list with a unique number. Messages are only appended, so the number identifies the beginning of the list.
struct NumberedMessages {
    #[cfg_attr(
        not(any(feature = "anthropic", feature = "gemini", feature = "openai")),
        allow(dead_code, reason = "only the protocols of providers keep texts")
    )]
    number: u64,
    messages: Vec<Arc<Message>>,
}

impl NumberedMessages {
    fn new(messages: Vec<Arc<Message>>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { number: LAST.fetch_add(1, Ordering::Relaxed), messages }
    }
}

/// A copy gets a new number, because it grows separately.
impl Clone for NumberedMessages {
    fn clone(&self) -> Self {
        Self::new(self.messages.clone())
    }
}

/// The empty list that new and cleared lists share, so that they need no allocation.
static EMPTY: LazyLock<Arc<NumberedMessages>> = LazyLock::new(|| Arc::new(NumberedMessages::new(Vec::new())));

impl Default for MessageList {
    fn default() -> Self {
        Self { messages: EMPTY.clone(), kept: KeptSlot::default() }
    }
}

impl MessageList {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        self.list_mut().push(message.into());
    }

    /// Returns the messages for appending. The caller must not remove or replace messages, because lists with the same
    /// [`number`](Self::number) must begin with the same messages.
    pub(super) fn list_mut(&mut self) -> &mut Vec<Arc<Message>> {
        &mut Arc::make_mut(&mut self.messages).messages
    }

    /// Returns a number that stays the same while messages are appended. Two lists with the same number begin with the same messages.
    #[cfg_attr(
        not(any(feature = "anthropic", feature = "gemini", feature = "openai")),
        allow(dead_code, reason = "only the protocols of providers keep texts")
    )]
    pub(crate) fn number(&self) -> u64 {
        self.messages.number
    }

    /// Removes all messages from this list. Lists that share the messages keep them.
    pub fn clear(&mut self) {
        self.messages = EMPTY.clone();
    }

    pub(crate) fn with_slot(mut self, kept: KeptSlot) -> Self {
        self.kept = kept;
        self
    }

    pub(crate) fn slot(&self) -> &KeptSlot {
        &self.kept
    }
}

impl Deref for MessageList {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.messages.messages
    }
}

/// Compares only the messages of the lists, not their numbers and kept texts.
impl PartialEq for MessageList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.messages, &other.messages) || **self == **other
    }
}

impl fmt::Debug for MessageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for MessageList {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self::from(messages.into_iter().map(Into::into).collect::<Vec<_>>())
    }
}

impl<M: Into<Arc<Message>>> Extend<M> for MessageList {
    fn extend<I: IntoIterator<Item = M>>(&mut self, messages: I) {
        self.list_mut().extend(messages.into_iter().map(Into::into));
    }
}

impl From<Vec<Arc<Message>>> for MessageList {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self { messages: Arc::new(NumberedMessages::new(messages)), kept: KeptSlot::default() }
    }
}

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_with_one_number_begin_with_the_same_messages() {
        let mut list = MessageList::new();
        list.push(Message::user("1"));
        let number = list.number();
        assert_ne!(number, MessageList::new().number());
        list.push(Message::user("2"));
        assert_eq!(list.number(), number, "it grew in place");
        let before = list.clone();
        assert_eq!(before.number(), number);
        list.push(Message::user("3"));
        assert_ne!(list.number(), number, "it was shared, so it grows apart");
        let mut before = before;
        before.push(Message::user("another 3"));
        assert_eq!(before.number(), number);
        before.clear();
        before.push(Message::user("another 1"));
        assert_ne!(before.number(), number);
    }
}
