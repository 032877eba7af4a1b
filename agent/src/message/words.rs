//! Open word lists: words that this version does not know are kept.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a reply ended.
///
/// ```
/// use agent::message::StopReason;
///
/// assert_eq!(StopReason::from("tool_use"), StopReason::ToolUse);
/// assert_eq!(StopReason::from("sunset").as_str(), "sunset");
/// assert!(StopReason::Aborted.is_failure() && !StopReason::MaxTokens.is_failure());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The model was done.
    #[default]
    Stop,
    /// The model asks for tools.
    ToolUse,
    /// The token limit cut the reply.
    MaxTokens,
    /// The provider withheld the reply, or the model refused.
    ContentFilter,
    /// The provider wants to be asked again with the reply as it is.
    Pause,
    /// The provider failed; the message's `error` says how.
    Error,
    /// The request was cancelled.
    Aborted,
    /// Any other word of a provider, as it came. Read it with [`StopReason::from`], which knows the words above.
    Other(String),
}

impl StopReason {
    /// The word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::ContentFilter => "content_filter",
            Self::Pause => "pause",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Other(word) => word,
        }
    }

    /// Whether the reply was broken off: [`Error`](Self::Error) or [`Aborted`](Self::Aborted). Such a
    /// message stays in the conversation and is left out of later requests.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Error | Self::Aborted)
    }
}

impl From<&str> for StopReason {
    fn from(word: &str) -> Self {
        match word {
            "stop" => Self::Stop,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            "content_filter" => Self::ContentFilter,
            "pause" => Self::Pause,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// How a tool call ended, as the result message states it.
///
/// ```
/// use agent::message::OutcomeKind;
///
/// assert_eq!(OutcomeKind::Denied.as_str(), "denied");
/// assert!(OutcomeKind::Denied.is_error());
/// assert_eq!(OutcomeKind::from("completed"), OutcomeKind::Completed);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// The tool returned a value.
    Completed,
    /// The tool asks the model for a better call.
    Retry,
    /// The call failed; the message's `code` says how.
    Failed,
    /// A rule or a person did not let it run.
    Denied,
    /// It was stopped, or nobody knows how it ended.
    Interrupted,
    /// Any other word, as it was stored.
    Other(String),
}

impl OutcomeKind {
    /// The word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Completed => "completed",
            Self::Retry => "retry",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
            Self::Other(word) => word,
        }
    }

    /// Whether the model is told that this is an error: everything but [`Completed`](Self::Completed).
    pub fn is_error(&self) -> bool {
        *self != Self::Completed
    }
}

impl From<&str> for OutcomeKind {
    fn from(word: &str) -> Self {
        match word {
            "completed" => Self::Completed,
            "retry" => Self::Retry,
            "failed" => Self::Failed,
            "denied" => Self::Denied,
            "interrupted" => Self::Interrupted,
            other => Self::Other(other.to_owned()),
        }
    }
}

macro_rules! as_word {
    ($($word:ty),*) => {$(
        impl fmt::Display for $word {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $word {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $word {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(String::deserialize(deserializer)?.as_str()))
            }
        }
    )*};
}

as_word!(StopReason, OutcomeKind);
