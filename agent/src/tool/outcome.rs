//! The outcomes of tool calls. Every outcome except a deferred result becomes a result message for the model.

use super::error::ToolError;
use super::output::{Control, ToolOutput};
use crate::args::{Coercion, InvalidArguments};
use crate::message::{OutcomeKind, Part, ToolResultMessage, json};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// The outcome of a tool call: how the call ended.
///
/// A call never fails a run. An unknown name, bad arguments, an error, a panic and a timeout are all outcomes, and the model
/// reads a text about each.
///
/// ```
/// use agent::{Registry, ToolContext, ToolOutcome, message::ToolCall, tool, tools};
///
/// /// Reads a file.
/// #[tool(read_only)]
/// fn read(path: String) -> Result<String, String> {
///     Err(format!("there is no {path}"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::new(tools![read])?;
/// let result = registry.call(&ToolCall::new("call_1", "read", r#"{"path": "a.txt"}"#), &ToolContext::new()).await;
/// match &result.outcome {
///     ToolOutcome::Completed(output) => println!("{}", output.text_content()),
///     ToolOutcome::Failed { code, message, .. } => assert_eq!((code.as_str(), &**message), ("tool_error", "there is no a.txt")),
///     other => println!("{}", other.text()),
/// }
/// # Ok(()) }
/// ```
///
/// An application reads the code and the output, a model reads the text, and a message stores the kind:
///
/// ```
/// use agent::message::OutcomeKind;
/// use agent::{ToolOutcome, ToolOutput, tool::OutcomeCode};
///
/// let failed = ToolOutcome::failed(OutcomeCode::TIMEOUT, "The tool did not finish within 10 s.");
/// assert!(failed.is_error());
/// assert_eq!((failed.code(), failed.kind(), failed.output()), (Some("timeout"), Some(OutcomeKind::Failed), None));
///
/// let stopped = ToolOutcome::aborted("the user pressed stop");
/// assert_eq!((stopped.code(), stopped.kind()), (Some("aborted"), Some(OutcomeKind::Interrupted)));
/// assert_eq!(stopped.text(), "The call was stopped: the user pressed stop.");
///
/// let completed = ToolOutcome::from(ToolOutput::text("42"));
/// assert_eq!((completed.code(), completed.output().unwrap().text_content().as_ref()), (None, "42"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutcome {
    /// The tool returned a value.
    Completed(ToolOutput),
    /// The tool asks the model for a better call.
    Retry {
        /// The advice for a better call, for the model.
        message: String,
        /// Data for the application and the loop, never for a model.
        #[serde(default, with = "json::map", skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    /// The call failed, for the reason that the code names.
    Failed {
        /// The reason, for the application.
        code: OutcomeCode,
        /// The reason, for the model.
        message: String,
        /// Data for the application and the loop, never for a model.
        #[serde(default, with = "json::map", skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    /// The call was not allowed.
    Denied {
        /// The code of the denial, for the application, such as [`OutcomeCode::BLOCKED`].
        code: OutcomeCode,
        /// The reason, for the model.
        message: String,
        /// Data for the application and the loop, never for a model.
        #[serde(default, with = "json::map", skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    /// The call was stopped, was never started, or has no recorded result.
    Interrupted {
        /// The cause, for the application, such as [`OutcomeCode::ABORTED`].
        code: OutcomeCode,
        /// The reason, for the model.
        reason: String,
    },
    /// There is no result yet: the application delivers it later, or the call waits for a person or for a sub-agent.
    Deferred {
        /// An id that the tool chooses for the result. For a call that waits for a person or a sub-agent, the library chooses an id that
        /// begins with `agent:`.
        handle: String,
    },
    /// A stored outcome of a kind that this version does not know, unchanged. The model reads it as an error, with the stored message or
    /// reason if there is one.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// Reads an outcome of an unknown kind as [`ToolOutcome::Unknown`], because a later version of the library may have stored it.
impl<'de> Deserialize<'de> for ToolOutcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(tag = "outcome", rename_all = "snake_case")]
        enum KnownOutcome {
            Completed(ToolOutput),
            Retry {
                message: String,
                #[serde(default, with = "json::map")]
                metadata: Map<String, Value>,
            },
            Failed {
                code: OutcomeCode,
                message: String,
                #[serde(default, with = "json::map")]
                metadata: Map<String, Value>,
            },
            Denied {
                code: OutcomeCode,
                message: String,
                #[serde(default, with = "json::map")]
                metadata: Map<String, Value>,
            },
            Interrupted {
                code: OutcomeCode,
                reason: String,
            },
            Deferred {
                handle: String,
            },
        }
        const KNOWN: [&str; 6] = ["completed", "retry", "failed", "denied", "interrupted", "deferred"];
        let stored = Map::<String, Value>::deserialize(deserializer)?;
        match stored.get("outcome").and_then(Value::as_str) {
            Some(word) if !KNOWN.contains(&word) => return Ok(Self::Unknown(stored)),
            _ => {}
        }
        Ok(match KnownOutcome::deserialize(Value::Object(stored)).map_err(D::Error::custom)? {
            KnownOutcome::Completed(output) => Self::Completed(output),
            KnownOutcome::Retry { message, metadata } => Self::Retry { message, metadata },
            KnownOutcome::Failed { code, message, metadata } => Self::Failed { code, message, metadata },
            KnownOutcome::Denied { code, message, metadata } => Self::Denied { code, message, metadata },
            KnownOutcome::Interrupted { code, reason } => Self::Interrupted { code, reason },
            KnownOutcome::Deferred { handle } => Self::Deferred { handle },
        })
    }
}

/// A code that says why a call failed, was denied or was interrupted.
///
/// The set is open: a tool may have codes of its own, and a stored code that this version does not know is kept.
///
/// ```
/// use agent::ToolError;
/// use agent::tool::OutcomeCode;
///
/// assert_eq!(OutcomeCode::TIMEOUT.as_str(), "timeout");
/// let own = OutcomeCode::new("no_room");
/// assert_eq!(own.as_str(), "no_room");
/// let error = ToolError::new("There is no room left.").with_code(own);
/// assert_eq!(error.message(), "There is no room left.");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutcomeCode(Cow<'static, str>);

impl OutcomeCode {
    /// Code of a failure: no tool has the called name.
    pub const UNKNOWN_TOOL: Self = Self(Cow::Borrowed("unknown_tool"));
    /// Code of a failure: the arguments were refused. The text for the model is the full report.
    pub const INVALID_ARGUMENTS: Self = Self(Cow::Borrowed("invalid_arguments"));
    /// Code of a failure: the tool's `prepare` returned an error, or its `prepare` or the check of its arguments panicked. The tool
    /// was not started.
    pub const PREPARE_ERROR: Self = Self(Cow::Borrowed("prepare_error"));
    /// Code of a failure: the tool returned an error without a code of its own, or could not run, for example because state is missing.
    pub const TOOL_ERROR: Self = Self(Cow::Borrowed("tool_error"));
    /// Code of a failure: the tool panicked, while it ran or while it was asked for the state that it requires.
    pub const PANIC: Self = Self(Cow::Borrowed("panic"));
    /// Code of a failure: the call exceeded its time limit, or a result that was to be delivered later did not arrive in time.
    pub const TIMEOUT: Self = Self(Cow::Borrowed("timeout"));
    /// Code of a failure: the model's reply was cut by the request's token limit or by a full context window, so the call was not run.
    pub const TRUNCATED: Self = Self(Cow::Borrowed("truncated"));
    /// Code of a denial: a hook of the application did not allow the call.
    pub const BLOCKED: Self = Self(Cow::Borrowed("blocked"));
    /// Code of a denial: a person, a policy, or the tool itself did not allow the call, or no decision arrived in time.
    pub const DENIED: Self = Self(Cow::Borrowed("denied"));
    /// Code of an interruption: the run or the call was cancelled, the caller stopped waiting, or the call was not run because its
    /// beginning could not be recorded.
    pub const ABORTED: Self = Self(Cow::Borrowed("aborted"));
    /// Code of an interruption: a steering message took precedence, so the call was not run, or was stopped.
    pub const STEERED: Self = Self(Cow::Borrowed("steered"));
    /// Code of an interruption: no result was recorded, and whether the call took effect is unknown.
    pub const LOST: Self = Self(Cow::Borrowed("lost"));

    /// Creates a code of your own.
    pub fn new(word: impl Into<Cow<'static, str>>) -> Self {
        Self(word.into())
    }

    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for OutcomeCode {
    fn from(word: &'static str) -> Self {
        Self::new(word)
    }
}

impl From<String> for OutcomeCode {
    fn from(word: String) -> Self {
        Self::new(word)
    }
}

impl fmt::Display for OutcomeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ToolOutcome {
    /// Creates a failure with a code and a text for the model.
    pub fn failed(code: OutcomeCode, message: impl Into<String>) -> Self {
        Self::Failed { code, message: message.into(), metadata: Map::new() }
    }

    pub(crate) fn denied(code: OutcomeCode, message: impl Into<String>) -> Self {
        Self::Denied { code, message: message.into(), metadata: Map::new() }
    }

    /// Returns the outcome of a call that was stopped for `reason`.
    pub fn aborted(reason: &str) -> Self {
        Self::Interrupted { code: OutcomeCode::ABORTED, reason: format!("The call was stopped: {reason}.") }
    }

    /// Returns the outcome of a call that was started but has no recorded result, for example because its process ended.
    #[cfg(feature = "runtime")]
    pub(crate) fn lost() -> Self {
        Self::Interrupted { code: OutcomeCode::LOST, reason: crate::message::LOST.to_owned() }
    }

    /// Returns whether the model sees an error.
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Completed(_) | Self::Deferred { .. })
    }

    /// Returns the output of a completed call; `None` for other outcomes.
    pub fn output(&self) -> Option<&ToolOutput> {
        match self {
            Self::Completed(output) => Some(output),
            _ => None,
        }
    }

    /// Returns the code of a failure, a denial or an interruption, or the stored code of an unknown outcome; `None` for other outcomes.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Failed { code, .. } | Self::Denied { code, .. } | Self::Interrupted { code, .. } => {
                Some(code.as_str())
            }
            Self::Unknown(stored) => stored.get("code").and_then(Value::as_str),
            _ => None,
        }
    }

    /// Returns the text that the model reads. For a completed call, this is the text of its content. While the result is pending, the text
    /// is empty.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Completed(output) => output.text_content(),
            Self::Retry { message, .. } | Self::Failed { message, .. } | Self::Denied { message, .. } => {
                message.into()
            }
            Self::Interrupted { reason, .. } => reason.into(),
            Self::Deferred { .. } => "".into(),
            Self::Unknown(stored) => {
                let words = ["message", "reason"].iter().find_map(|key| stored.get(*key)?.as_str());
                words.unwrap_or("It is not known how the call ended.").into()
            }
        }
    }

    /// Returns the data that the tool gave to the application. `None` if the call was interrupted, if its result is pending, or if an
    /// unknown outcome has no metadata.
    ///
    /// ```
    /// use agent::{ToolError, ToolOutcome, json};
    ///
    /// let failed = ToolOutcome::from(ToolError::new("the hotel is full").with_metadata("hotel", 7));
    /// assert_eq!(failed.metadata().unwrap()["hotel"], json!(7));
    /// assert_eq!(failed.text(), "the hotel is full");                     // all that the model reads
    /// ```
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Completed(output) => Some(&output.metadata),
            Self::Retry { metadata, .. } | Self::Failed { metadata, .. } | Self::Denied { metadata, .. } => {
                Some(metadata)
            }
            Self::Unknown(stored) => stored.get("metadata").and_then(Value::as_object),
            Self::Interrupted { .. } | Self::Deferred { .. } => None,
        }
    }

    pub(crate) fn control(&self) -> Control {
        match self {
            Self::Completed(output) => output.control,
            other
                if other
                    .metadata()
                    .is_some_and(|metadata| metadata.get("stop_loop") == Some(&Value::Bool(true))) =>
            {
                Control::EndNow
            }
            _ => Control::Continue,
        }
    }

    /// Returns the kind of outcome for a result message; `None` while the result is pending.
    pub fn kind(&self) -> Option<OutcomeKind> {
        match self {
            Self::Completed(_) => Some(OutcomeKind::Completed),
            Self::Retry { .. } => Some(OutcomeKind::Retry),
            Self::Failed { .. } => Some(OutcomeKind::Failed),
            Self::Denied { .. } => Some(OutcomeKind::Denied),
            Self::Interrupted { .. } => Some(OutcomeKind::Interrupted),
            Self::Deferred { .. } => None,
            Self::Unknown(stored) => {
                Some(stored.get("outcome").and_then(Value::as_str).unwrap_or_default().into())
            }
        }
    }
}

impl From<ToolOutput> for ToolOutcome {
    fn from(output: ToolOutput) -> Self {
        Self::Completed(output)
    }
}

impl From<InvalidArguments> for ToolOutcome {
    fn from(refusal: InvalidArguments) -> Self {
        Self::failed(OutcomeCode::INVALID_ARGUMENTS, refusal.to_text())
    }
}

/// A type that the closure of a tool may return. Functions with `#[tool]` may also return any `Serialize` type; the macro selects the
/// conversion.
///
/// ```
/// use agent::{Json, ToolError, tool::IntoOutcome};
///
/// assert_eq!("booked".into_outcome().text(), "booked");
/// assert_eq!(Json(vec![1, 2]).into_outcome().text(), "[1,2]");
/// assert_eq!(None::<String>.into_outcome().text(), "There is none.");
/// assert!(ToolError::new("the hotel is full").into_outcome().is_error());
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool made at run time cannot return `{Self}`",
    label = "return `ToolOutput`, `Json<T>`, text, `()`, `ToolOutcome`, an `Option` of one of them, or a `Result` of one of them with `ToolError`"
)]
pub trait IntoOutcome {
    /// Converts the value to an outcome.
    fn into_outcome(self) -> ToolOutcome;
}

impl IntoOutcome for ToolOutcome {
    fn into_outcome(self) -> ToolOutcome {
        self
    }
}

impl IntoOutcome for ToolOutput {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::Completed(self)
    }
}

impl IntoOutcome for ToolError {
    fn into_outcome(self) -> ToolOutcome {
        self.into()
    }
}

impl IntoOutcome for InvalidArguments {
    fn into_outcome(self) -> ToolOutcome {
        self.into()
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutput::empty().into()
    }
}

impl IntoOutcome for String {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutput::text(self).into()
    }
}

impl IntoOutcome for &str {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutput::text(self).into()
    }
}

/// Converts `None` to the text `There is none.`
impl<T: IntoOutcome> IntoOutcome for Option<T> {
    fn into_outcome(self) -> ToolOutcome {
        self.map_or_else(|| ToolOutput::absent().into(), IntoOutcome::into_outcome)
    }
}

impl<T: IntoOutcome, E: IntoOutcome> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> ToolOutcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => error.into_outcome(),
        }
    }
}

/// The result of one call, which can be converted to the message that answers the call.
///
/// ```
/// use agent::{ToolOutput, ToolResult};
///
/// let result = ToolResult::new("call_1", "add", ToolOutput::text("42"));
/// let message = result.to_message().expect("it has ended");
/// assert_eq!((message.call_id.as_str(), message.text().as_str()), ("call_1", "42"));
/// assert_eq!(result.clone().with_coercions(result.coercions.clone()), result);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool: String,
    /// How the call ended.
    pub outcome: ToolOutcome,
    /// The coercions that made the arguments fit, in the order in which they were made.
    pub coercions: Vec<Coercion>,
}

impl ToolResult {
    /// Creates the result of the call `call_id` of `tool`, without coercions.
    pub fn new(call_id: impl Into<String>, tool: impl Into<String>, outcome: impl IntoOutcome) -> Self {
        let outcome = outcome.into_outcome();
        Self { call_id: call_id.into(), tool: tool.into(), outcome, coercions: Vec::new() }
    }

    /// Sets the coercions that made the arguments fit.
    pub fn with_coercions(mut self, coercions: Vec<Coercion>) -> Self {
        self.coercions = coercions;
        self
    }

    /// Returns the message that answers the call; `None` while the result is pending.
    pub fn to_message(&self) -> Option<ToolResultMessage> {
        self.clone().into_message()
    }

    pub(crate) fn into_message(self) -> Option<ToolResultMessage> {
        let kind = self.outcome.kind()?;
        let message = ToolResultMessage::new(self.call_id, self.tool, kind);
        Some(match self.outcome {
            ToolOutcome::Completed(output) => message
                .with_content(output.content)
                .with_structured(output.structured)
                .with_metadata(output.metadata),
            other => message
                .with_content(vec![Part::text(other.text())])
                .with_metadata(other.metadata().cloned().unwrap_or_default())
                .with_code(other.code().map(str::to_owned)),
        })
    }
}
