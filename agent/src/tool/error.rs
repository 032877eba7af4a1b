//! Errors that tools return: a message for the model, with a source for the operator.

use super::outcome::{OutcomeCode, ToolOutcome};
use super::question::AskError;
use serde_json::{Map, Value};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

pub(super) const REDACTED: &str = "The tool failed. Its error is not shown here.";

/// The error that a tool returns. The model reads the message; a source, if there is one, is only logged.
///
/// Any error type can be a tool's error. A `ToolError` can also say that the model should [try a better call](Self::retry), or that the
/// call is [not allowed](Self::denied). It can have a [code](Self::with_code) of your own.
///
/// ```
/// use agent::{ToolError, ToolOutcome};
/// use std::error::Error;
///
/// let error = ToolError::retry("there is no city `Pariss`; use its English name");
/// assert!(matches!(ToolOutcome::from(error), ToolOutcome::Retry { .. }));
///
/// let error = ToolError::denied("only administrators may delete accounts");
/// assert!(matches!(ToolOutcome::from(error), ToolOutcome::Denied { .. }));
///
/// let cause = std::io::Error::other("10.0.0.7:5432 does not answer");
/// let error = ToolError::new("the database cannot be reached").with_code("no_database").with_source(cause);
/// assert_eq!(error.message(), "the database cannot be reached");                       // for the model
/// assert_eq!(error.source().unwrap().to_string(), "10.0.0.7:5432 does not answer");    // for the log
/// assert_eq!(ToolOutcome::from(error).code(), Some("no_database"));                    // for the application
/// ```
#[derive(Clone)]
pub struct ToolError {
    outcome: Kind,
    message: String,
    /// Boxed, so that a `Result` with this error stays small.
    metadata: Option<Box<Map<String, Value>>>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

crate::error_text::debug_is_the_sentence!(ToolError);

#[derive(Clone, Debug)]
enum Kind {
    Failed(OutcomeCode),
    Retry,
    Denied,
}

impl ToolError {
    /// Creates the error of a call that failed, and that would fail again with the same arguments.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            outcome: Kind::Failed(OutcomeCode::TOOL_ERROR),
            message: message.into(),
            metadata: None,
            source: None,
        }
    }

    /// Creates an error that asks the model to call again with better arguments; the message says how.
    pub fn retry(message: impl Into<String>) -> Self {
        Self { outcome: Kind::Retry, ..Self::new(message) }
    }

    /// Creates the error of a call that the tool does not allow.
    pub fn denied(message: impl Into<String>) -> Self {
        Self { outcome: Kind::Denied, ..Self::new(message) }
    }

    /// Makes the error a failure with this code, which the application reads. Default: `tool_error`.
    pub fn with_code(mut self, code: impl Into<OutcomeCode>) -> Self {
        self.outcome = Kind::Failed(code.into());
        self
    }

    /// Adds the source, for the operator. The model never sees it.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Adds a value that only the application sees: it is in events, messages and records, and is never sent to a model. `stop_loop: true`
    /// ends the run, as in [`ToolOutput::with_metadata`](crate::ToolOutput::with_metadata).
    ///
    /// ```
    /// use agent::{ToolError, ToolOutcome, json};
    ///
    /// let error = ToolError::retry("there is no city `Pariss`").with_metadata("nearest", json!(["Paris"]));
    /// assert_eq!(ToolOutcome::from(error).metadata().unwrap()["nearest"], json!(["Paris"]));
    /// ```
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Hides the message of an error without a code of its own, and logs it.
    pub(super) fn redacted(mut self) -> Self {
        if matches!(&self.outcome, Kind::Failed(code) if *code == OutcomeCode::TOOL_ERROR) {
            tracing::warn!(error = %self.message, "a tool failed");
            REDACTED.clone_into(&mut self.message);
        }
        self
    }

    /// Returns the message for the model.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        let code = error.code();
        Self::new(error.to_string()).with_code(code).with_source(error)
    }
}

impl From<ToolError> for ToolOutcome {
    fn from(error: ToolError) -> Self {
        if let Some(source) = &error.source {
            tracing::warn!(error = %error.message, source = &**source as &dyn Error, "a tool failed");
        }
        let ToolError { outcome, message, metadata, .. } = error;
        let metadata = metadata.map(|metadata| *metadata).unwrap_or_default();
        match outcome {
            Kind::Failed(code) => Self::Failed { code, message, metadata },
            Kind::Retry => Self::Retry { message, metadata },
            Kind::Denied => Self::Denied { code: OutcomeCode::DENIED, message, metadata },
        }
    }
}
