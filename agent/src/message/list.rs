//! Shared lists of messages.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::by_role::Message;

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
#[derive(Clone, Default, PartialEq)]
pub struct MessageList(Arc<Vec<Arc<Message>>>);

impl MessageList {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        Arc::make_mut(&mut self.0).push(message.into());
    }

    /// Removes all messages from this list. Lists that share the messages keep them.
    pub fn clear(&mut self) {
        self.0 = Arc::default();
    }
}

impl Deref for MessageList {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for MessageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for MessageList {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self(Arc::new(messages.into_iter().map(Into::into).collect()))
    }
}

impl<M: Into<Arc<Message>>> Extend<M> for MessageList {
    fn extend<I: IntoIterator<Item = M>>(&mut self, messages: I) {
        Arc::make_mut(&mut self.0).extend(messages.into_iter().map(Into::into));
    }
}

impl From<Vec<Arc<Message>>> for MessageList {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self(Arc::new(messages))
    }
}

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
