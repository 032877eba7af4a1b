//! Recorded changes of the view of a conversation. The view is the list of messages that a model gets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::by_role::Message;
use super::super::roles::UserMessage;
use super::super::usage::Usage;

/// A recorded change of the [view](crate::message::Conversation::view) of a conversation, to be stored as JSON. A view is its conversation
/// with its changes applied, so stored changes restore the same view.
///
/// ```
/// use agent::message::{Conversation, Message};
///
/// let mut conversation = Conversation::from_iter([Message::user("Hi"), Message::assistant("Hello!"), Message::user("Bye")]);
/// conversation.compact(2, "The user greeted.")?;
/// let stored = serde_json::to_string(conversation.view_changes())?;
/// assert!(stored.contains(r#""change":"summary","text":"The user greeted.""#));
///
/// // The messages are stored elsewhere.
/// let mut again: Conversation = conversation.shared().iter().cloned().collect();
/// for change in serde_json::from_str::<Vec<_>>(&stored)? {
///     again.record_view_change(change);
/// }
/// assert_eq!(again.view(), conversation.view());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewChange {
    /// The number of the change, counted from 1.
    pub(super) generation: u32,
    /// The change covers the messages before this index.
    pub(super) at: usize,
    /// A hash of the first `at` messages. The change is ignored in a conversation that begins with other messages.
    pub(super) covers: String,
    /// The length of the conversation when the change was made. The requests for replies before this index did not include the change.
    pub(crate) made_at: usize,
    #[serde(flatten)]
    pub(super) kind: ViewChangeKind,
}

impl ViewChange {
    #[cfg(feature = "runtime")]
    pub(crate) fn usage(&self) -> Option<&Usage> {
        match &self.kind {
            ViewChangeKind::Summary { usage, .. } => Some(usage),
            _ => None,
        }
    }

    pub(super) fn summary(&self) -> Option<(usize, Arc<Message>)> {
        let ViewChangeKind::Summary { text, .. } = &self.kind else { return None };
        let mut summary = UserMessage::from(framed(text));
        summary.mark_as_summary();
        Some((self.at, Arc::new(summary.into())))
    }
}

/// Returns the summary in `<summary>` tags, so that a model does not take it for a request.
fn framed(summary: &str) -> String {
    // A model writes the summary, and may quote the tags. A quoted `</summary>` must not end the summary.
    let summary = summary.replace("</summary>", "</ summary>");
    format!(
        "<summary>\nThis is a record of the earlier conversation, not a request. Later messages take precedence.\n\n{summary}\n</summary>"
    )
}

#[expect(clippy::borrowed_box, reason = "serde passes a reference to the field")]
fn is_unused(usage: &Box<Usage>) -> bool {
    usage.is_empty()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(super) enum ViewChangeKind {
    /// The content of each of these results is replaced by a line.
    Clear {
        /// If one of the results cannot be replaced, the whole change is refused.
        results: Vec<ClearedResult>,
    },
    /// A summary replaces the messages before `at`, except pinned messages. If `at` is within a turn, the user message of the turn also
    /// stays.
    Summary {
        text: String,
        #[serde(default, skip_serializing_if = "is_unused")]
        usage: Box<Usage>,
    },
    /// The text of one result is shortened to its beginning and its end. Other parts of the result, such as images, are removed.
    Shorten {
        index: usize,
        /// Maximum number of bytes of the text that are kept.
        bytes: usize,
    },
    /// The context window is smaller than assumed, because the provider refused a request as too long.
    Window {
        /// Maximum number of tokens of a request and its reply together.
        tokens: u64,
        /// The model, as `provider/model`. `None` in changes of older versions, which hold for every model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClearedResult {
    pub(crate) index: usize,
    pub(crate) line: String,
}

impl ClearedResult {
    pub(crate) fn new(index: usize, line: impl Into<String>) -> Self {
        Self { index, line: line.into() }
    }
}

/// The reason why the [view](crate::message::Conversation::view) of a conversation cannot be changed, by a method of the conversation or
/// by [`ContextRules`](crate::model::ContextRules).
///
/// ```
/// use agent::ScriptedModel;
/// use agent::message::{Conversation, Message, ViewError};
/// use agent::model::{ContextRules, ModelRequest};
///
/// let mut conversation = Conversation::from_iter([Message::user("Hi")]);
/// assert_eq!(conversation.clear_result(0, "").unwrap_err().to_string(), "message 0 is not a result in the view that can be replaced");
/// assert!(matches!(conversation.compact(1, "…"), Err(ViewError::OutOfRange { at: 1, .. })));
///
/// let mut fit = |rules: ContextRules| {
///     rules.fit(&mut conversation, &ModelRequest::default(), &ScriptedModel::new(["Hello!"])).unwrap_err().to_string()
/// };
/// assert_eq!(fit(ContextRules::new()), "the context window of the model is unknown; set it with `window`");
/// let error = fit(ContextRules::new().window(8_000).clear_at(0.9));
/// assert!(error.contains("0 < target (0.4) < clear_at (0.9) <= compact_at (0.8) < 1"));
/// ```
#[derive(Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The view cannot be cut before this message, so a summary cannot replace the earlier messages. A cut is possible only before a
    /// message of the user or a reply. It must not separate a call from its result, or a reply from its continuation.
    #[error(
        "the view cannot be cut before message {at}: cut before a message of the user or a reply, neither between a call and its result nor within a continued reply"
    )]
    #[non_exhaustive]
    Split {
        /// The index of the message.
        at: usize,
    },
    /// No message before the cut is left to summarize, or no message would be left after the cut. Or the last recorded change has the
    /// highest number, so that the view cannot be changed again.
    #[error("the view cannot be changed before message {at}: {reason}")]
    #[non_exhaustive]
    OutOfRange {
        /// The index of the message.
        at: usize,
        /// The reason.
        reason: &'static str,
    },
    /// The message is not a result, or is replaced by a summary, or is to be shortened though it is cleared.
    #[error("message {index} is not a result in the view that can be replaced")]
    #[non_exhaustive]
    NotAResult {
        /// The index of the message.
        index: usize,
    },
    /// The rules do not set the context window, and the window of the model is unknown.
    #[error("the context window of the model is unknown; set it with `window`")]
    UnknownWindow,
    /// The window has no room for a request.
    #[error(
        "the context window of {window} tokens has no room for a request; set a larger one with `window`"
    )]
    #[non_exhaustive]
    NoRoom {
        /// The context window, in tokens.
        window: u64,
    },
    /// The request is probably too long, and no part of the conversation can be replaced.
    #[error(
        "the request needs about {needed} tokens of {usable}, and nothing of the conversation can be replaced"
    )]
    #[non_exhaustive]
    Full {
        /// The tokens that the request probably needs.
        needed: u64,
        /// The tokens that a request may use.
        usable: u64,
    },
    /// The shares of the rules are out of range or in the wrong order.
    #[error(
        "the shares of the window do not fit: 0 < target ({target}) < clear_at ({clear_at}) <= compact_at ({compact_at}) < 1 must hold"
    )]
    #[non_exhaustive]
    Shares {
        /// The target of a compaction.
        target: f64,
        /// The share at which results are cleared.
        clear_at: f64,
        /// The share at which messages are compacted.
        compact_at: f64,
    },
}

crate::error_text::debug_is_the_sentence!(ViewError);
