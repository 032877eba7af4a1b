//! Shared lists of messages.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use super::by_role::Message;
use super::kept::KeptSlot;

/// A list of messages, oldest first, that a conversation, a request and a snapshot can share.
///
/// It dereferences to a slice of `Arc<Message>`, and cloning it only increments a reference count. Appending to a list that is shared
/// copies its pointers first; a list that is not shared grows in place. Appending to a long conversation therefore stays cheap as long as
/// requests are not kept.
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
    messages: Arc<Vec<Arc<Message>>>,
    /// The text that encoders keep of the conversation.
    kept: KeptSlot,
}

/// What all empty lists share, so that they cost nothing.
static EMPTY: LazyLock<Arc<Vec<Arc<Message>>>> = LazyLock::new(Arc::default);

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
        Arc::make_mut(&mut self.messages).push(message.into());
    }

    /// Returns the messages to append to.
    pub(crate) fn list_mut(&mut self) -> &mut Vec<Arc<Message>> {
        Arc::make_mut(&mut self.messages)
    }

    /// Removes all messages from this list. Lists that share the messages keep them.
    pub fn clear(&mut self) {
        self.messages = EMPTY.clone();
    }

    /// Returns the list with a slot for its encoded text.
    pub(crate) fn with_slot(mut self, kept: KeptSlot) -> Self {
        self.kept = kept;
        self
    }

    /// Returns the slot for the encoded text.
    pub(crate) fn slot(&self) -> &KeptSlot {
        &self.kept
    }
}

impl Deref for MessageList {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.messages
    }
}

/// Compares the messages.
impl PartialEq for MessageList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.messages, &other.messages) || self.messages == other.messages
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
        Arc::make_mut(&mut self.messages).extend(messages.into_iter().map(Into::into));
    }
}

impl From<Vec<Arc<Message>>> for MessageList {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self { messages: Arc::new(messages), kept: KeptSlot::default() }
    }
}

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
