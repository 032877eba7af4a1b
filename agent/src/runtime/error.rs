//! Why a run did not end well.

use crate::model::ModelError;
use crate::{DuplicateState, RegistryError};

/// Why a prompt did not come to an answer.
///
/// In every case the conversation is sound: each call in it has its result, and the next prompt goes on from there.
/// A tool that fails is no error: the model is told.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Another prompt is being answered. It is not touched.
    #[error("the assistant is busy with another prompt")]
    Busy,
    /// Tools need state that neither the assistant nor the prompt has.
    #[error("the prompt lacks state: {0}")]
    MissingState(#[source] RegistryError),
    /// The prompt was given two values of one type.
    #[error(transparent)]
    DuplicateState(#[from] DuplicateState),
    /// The model did not answer.
    #[error("the model failed: {0}")]
    Model(#[source] ModelError),
    /// The model still asked for tools in the last allowed turn.
    #[error(
        "the limit of {max_turns} turns is reached ({turns} used) and the model has not finished; \
         prompt again to go on from here"
    )]
    MaxTurns {
        /// The limit.
        max_turns: u32,
        /// How many were used.
        turns: u32,
    },
    /// The run was cancelled.
    #[error("the run was aborted: {reason}")]
    Aborted {
        /// Why.
        reason: String,
    },
}

impl RunError {
    /// Whether another prompt is being answered.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// Whether the run was cancelled.
    pub fn is_aborted(&self) -> bool {
        matches!(self, Self::Aborted { .. })
    }

    /// Whether a limit ended the run.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::MaxTurns { .. })
    }

    /// The error of the model, if it was one.
    pub fn as_model_error(&self) -> Option<&ModelError> {
        match self {
            Self::Model(error) => Some(error),
            _ => None,
        }
    }
}
