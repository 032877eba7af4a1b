//! Enums that are stored as text, such as `tool_use`. Texts that this version does not know are preserved.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The reason why a reply ended.
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
    /// The model finished.
    #[default]
    Stop,
    /// The model asks for tool calls.
    ToolUse,
    /// The reply was cut by the token limit.
    MaxTokens,
    /// The reply was cut because the context window was full.
    ContextFull,
    /// The provider withheld the reply, or the model refused.
    ContentFilter,
    /// The provider paused and expects another request with the reply so far.
    Pause,
    /// The request failed, or the provider ended the reply with an error. The message's `error` gives the reason, if it is known.
    Error,
    /// The request was cancelled.
    Aborted,
    /// Any other reason that a provider gave, unchanged. Convert texts with [`StopReason::from`], which recognizes the reasons above.
    Other(String),
}

impl StopReason {
    /// Returns the reason as text, for example `tool_use`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "context_full",
            Self::ContentFilter => "content_filter",
            Self::Pause => "pause",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Other(word) => word,
        }
    }

    /// Returns whether the reply was cut by a limit, so that its calls may be incomplete.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Self::MaxTokens | Self::ContextFull)
    }

    /// Returns whether the reply was broken off: [`Error`](Self::Error) or [`Aborted`](Self::Aborted). Such a reply stays in the
    /// conversation and is left out of later requests.
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
            "context_full" => Self::ContextFull,
            "content_filter" => Self::ContentFilter,
            "pause" => Self::Pause,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The outcome of a tool call, as recorded in its result message.
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
    /// The tool asked the model for a better call.
    Retry,
    /// The call failed. The message's `code` gives the kind of failure.
    Failed,
    /// A rule, a hook, a person or the tool itself did not allow the call.
    Denied,
    /// The call was stopped or never started, or it is unknown how it ended.
    Interrupted,
    /// Any other text, as it was stored.
    Other(String),
}

impl OutcomeKind {
    /// Returns the kind as text, for example `completed`.
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

    /// Returns whether the result is marked as an error for the model. True for all but [`Completed`](Self::Completed).
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
