//! Conversations and their stored form.

use std::sync::{Arc, LazyLock};

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::by_role::Message;
use super::json;
use super::list::MessageList;
use super::view::ViewChange;

/// The messages of a conversation, oldest first. A conversation outlives runs. The messages contain secret arguments of calls, also in the
/// serde form, because models get the arguments again.
///
/// Messages are shared: clones of a conversation, requests and events hold the same messages.
///
/// The serde form is `{"version": 1, "messages": […]}`, with `view` if [changes of the view](Self::record_view_change) (the messages that
/// models receive) are recorded. A bare list of messages is read too. Unknown fields, part types and roles are preserved, so new ones do
/// not raise the version. Reading a higher version is an error.
///
/// ```
/// use agent::message::{Conversation, Message};
///
/// let conversation = Conversation::from_iter([Message::user("Hi"), Message::assistant("Hello!")]);
/// assert_eq!(conversation.len(), 2);
/// assert_eq!(conversation.last().unwrap().text(), "Hello!");
///
/// let stored = serde_json::to_string(&conversation)?;
/// assert_eq!(serde_json::from_str::<Conversation>(&stored)?, conversation);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// A conversation can be read and changed like a list:
///
/// ```
/// use agent::message::{Conversation, Message};
///
/// let mut conversation = Conversation::new();
/// conversation.push(Message::user("Hi"));
/// conversation.push(Message::assistant("Hello!"));
/// assert_eq!(conversation.iter().map(Message::role).collect::<Vec<_>>(), ["user", "assistant"]);
/// assert_eq!(conversation.get(0).map(Message::text).as_deref(), Some("Hi"));
///
/// let kept = conversation.list();                             // shares the messages, copies none
/// assert!(std::sync::Arc::ptr_eq(&kept[1], &conversation.shared()[1]));
/// conversation.clear();
/// assert!(conversation.is_empty());
/// assert_eq!(kept.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    messages: MessageList,
    view: Arc<Vec<ViewChange>>,
    extra: Map<String, Value>,
}

/// The empty list that new conversations share, so that they need no allocation.
static UNCHANGED: LazyLock<Arc<Vec<ViewChange>>> = LazyLock::new(Arc::default);

impl Default for Conversation {
    fn default() -> Self {
        Self { messages: MessageList::default(), view: UNCHANGED.clone(), extra: Map::new() }
    }
}

impl Conversation {
    /// The version that this library writes, and the highest version that it reads.
    pub const VERSION: u32 = 1;

    /// Creates an empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        self.messages.push(message.into());
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns an iterator over the messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.messages.iter().map(Arc::as_ref)
    }

    /// Returns the message at this index, counted from 0.
    pub fn get(&self, index: usize) -> Option<&Message> {
        self.messages.get(index).map(Arc::as_ref)
    }

    /// Returns the newest message.
    pub fn last(&self) -> Option<&Message> {
        self.messages.last().map(Arc::as_ref)
    }

    /// Returns the messages, oldest first, each in its shared `Arc`.
    pub fn shared(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Removes all messages and all changes of the [view](Self::view). Stored fields that this version does not know stay.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.view = Arc::default();
        self.extra.shift_remove("view");
    }

    /// Records a change of the [view](Self::view), for example one that was stored apart from the messages. The messages do not change.
    /// Stored changes that this version cannot read are removed. [`ViewChange`] has an example.
    pub fn record_view_change(&mut self, change: ViewChange) {
        self.extra.shift_remove("view");
        Arc::make_mut(&mut self.view).push(change);
    }

    /// Returns the recorded changes of the [view](Self::view), oldest first.
    ///
    /// ```
    /// use agent::message::{Conversation, Message};
    ///
    /// let mut conversation = Conversation::from_iter([Message::user("Hi"), Message::assistant("Hello!"), Message::user("Bye")]);
    /// conversation.compact(2, "The user greeted.")?;
    /// let mut copy: Conversation = conversation.shared().iter().cloned().collect();       // without the changes
    /// assert_eq!(copy.view().len(), 3);
    /// for change in conversation.view_changes() {
    ///     copy.record_view_change(change.clone());
    /// }
    /// assert_eq!(copy.view(), conversation.view());
    /// # Ok::<(), agent::message::ViewError>(())
    /// ```
    pub fn view_changes(&self) -> &[ViewChange] {
        &self.view
    }

    /// Returns the messages as an owned list. This increments a reference count and copies nothing.
    pub fn list(&self) -> MessageList {
        self.messages.clone()
    }

    pub(super) fn set_messages(&mut self, messages: Vec<Arc<Message>>) {
        self.messages = messages.into();
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Conversation {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }
}

impl<M: Into<Arc<Message>>> Extend<M> for Conversation {
    fn extend<I: IntoIterator<Item = M>>(&mut self, messages: I) {
        self.messages.extend(messages);
    }
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &Self::VERSION)?;
        map.serialize_entry("messages", &self.iter().collect::<Vec<_>>())?;
        if !self.view.is_empty() {
            map.serialize_entry("view", &*self.view)?;
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut extra = match Value::deserialize(deserializer)? {
            Value::Object(map) => map,
            list @ Value::Array(_) => Map::from_iter([("messages".to_owned(), list)]),
            other => {
                let found = json::kind(&other);
                return Err(D::Error::custom(format_args!("a conversation is an object, found {found}")));
            }
        };
        // The version is checked first: data of a higher version may be unreadable, and an error about this data would hide the reason.
        let version = extra.shift_remove("version").unwrap_or_else(|| Self::VERSION.into());
        if version.as_u64().is_none_or(|version| version > Self::VERSION.into()) {
            let kind = || format!("{} as version", json::kind(&version));
            let found = version.as_u64().map_or_else(kind, |number| format!("version {number}"));
            return Err(D::Error::custom(format_args!(
                "the conversation has {found}; this library reads versions up to {}",
                Self::VERSION
            )));
        }
        let messages = extra.shift_remove("messages").ok_or_else(|| D::Error::missing_field("messages"))?;
        let messages = Vec::<Message>::deserialize(messages).map_err(D::Error::custom)?;
        // If a change cannot be read, for example because a later version wrote it, all changes stay among the unknown fields.
        let changes = extra.get("view").map(Vec::<ViewChange>::deserialize);
        let view = match changes {
            Some(Ok(changes)) => {
                extra.shift_remove("view");
                changes
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "the changes of a view cannot be read");
                Vec::new()
            }
            None => Vec::new(),
        };
        Ok(Self { messages: messages.into_iter().collect(), view: Arc::new(view), extra })
    }
}
