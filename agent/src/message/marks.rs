//! Data that the library stores in the `extra` fields of messages.

use serde_json::Value;

use super::roles::{AssistantMessage, UserMessage};

const PINNED: &str = "pinned";
/// The field that marks a message as a summary. Only a `ConversationView` has summaries, a conversation never has any.
const SUMMARY: &str = "summary";
/// The field of a reply that holds the estimated tokens of the system prompt and the tools in the request.
const FRAME: &str = "request_frame";

impl UserMessage {
    /// Pins the message, so that no [summary](crate::message::Conversation::compact) replaces it. The mark is stored with the message.
    ///
    /// ```
    /// use agent::message::{Message, UserMessage};
    ///
    /// let contract = UserMessage::from("The contract is …").pinned();
    /// assert!(contract.is_pinned());
    /// let stored = serde_json::to_string(&Message::from(contract))?;
    /// assert_eq!(serde_json::from_str::<serde_json::Value>(&stored)?["pinned"], true);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn pinned(mut self) -> Self {
        self.extra.insert(PINNED.to_owned(), Value::Bool(true));
        self
    }

    /// Returns whether the message is [pinned](Self::pinned).
    ///
    /// ```
    /// assert!(!agent::message::UserMessage::from("Hi").is_pinned());
    /// ```
    pub fn is_pinned(&self) -> bool {
        self.extra.get(PINNED) == Some(&Value::Bool(true))
    }

    pub(super) fn mark_as_summary(&mut self) {
        self.extra.insert(SUMMARY.to_owned(), Value::Bool(true));
    }

    pub(crate) fn is_summary(&self) -> bool {
        self.extra.get(SUMMARY) == Some(&Value::Bool(true))
    }
}

impl AssistantMessage {
    #[cfg(feature = "runtime")]
    pub(crate) fn set_request_frame(&mut self, tokens: u64) {
        self.extra.insert(FRAME.to_owned(), tokens.into());
    }

    pub(crate) fn request_frame(&self) -> Option<u64> {
        self.extra.get(FRAME)?.as_u64()
    }
}
