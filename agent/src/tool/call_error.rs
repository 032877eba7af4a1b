//! The error for a call that may not run.

use super::definition_error::DefinitionError;
use super::error::ToolError;
use super::outcome::{OutcomeCode, ToolOutcome};
use crate::args::InvalidArguments;

/// The error for a call that may not run. Its text is written for the model.
///
/// ```
/// use agent::{Registry, message::ToolCall, tool, tool::CallError, tools};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// let registry = Registry::new(tools![add])?;
/// match registry.validate(&ToolCall::new("call_1", "add", r#"{"a": "many", "b": 2}"#)) {
///     Err(CallError::InvalidArguments(report)) => assert_eq!(report.issues()[0].path, "/a"),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), agent::tool::RegistryError>(())
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No tool has the requested name.
    #[error("{text}")]
    #[non_exhaustive]
    UnknownTool {
        /// The requested name, cut if it is long.
        name: String,
        /// The names of similar tools, best first.
        suggestions: Vec<String>,
        /// The sentence for the model, which suggests names and lists up to 40 tools.
        text: String,
    },
    /// The tool's [`prepare`](crate::tool::ToolOptions::prepare) returned an error or panicked, or the validation of the arguments
    /// panicked.
    #[error(transparent)]
    Prepare(ToolError),
    /// The arguments are refused.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The parameters of the tool are invalid for the [`Source`](crate::tool::Source) of the call, or the function that returns parameters
    /// or examples for the source panicked.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
}

crate::error_text::debug_is_the_sentence!(CallError);

impl CallError {
    pub(crate) fn into_outcome(self, tool: &str) -> ToolOutcome {
        let text = self.to_string();
        match self {
            Self::UnknownTool { .. } => ToolOutcome::failed(OutcomeCode::UNKNOWN_TOOL, text),
            Self::Prepare(error) => {
                let metadata = ToolOutcome::from(error).metadata().cloned().unwrap_or_default();
                ToolOutcome::Failed { code: OutcomeCode::PREPARE_ERROR, message: text, metadata }
            }
            Self::InvalidArguments(report) => report.into(),
            Self::Definition(error) => {
                tracing::error!(tool, %error, "the parameters for this source are invalid");
                let text = "The tool cannot run: the application did not set it up.";
                ToolOutcome::failed(OutcomeCode::TOOL_ERROR, text)
            }
        }
    }
}
