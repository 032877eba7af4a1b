//! The reasons why a request of a front end is rejected.

use serde_json::{Value, json};

#[cfg(feature = "runtime")]
use crate::tool::question::AskError;

/// The reason why a request of a front end is rejected. No run has begun, and a suspended run is still suspended.
///
/// ```
/// use agent::ui::{UiProtocol, UiRequest};
///
/// let error = UiRequest::decode(UiProtocol::AgUi, b"{").unwrap_err();
/// assert_eq!((error.status(), error.code()), (400, "not_json"));
/// assert_eq!(error.to_json()["error"]["message"], "the body is not JSON");
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UiRequestError {
    /// The request's body is not JSON.
    #[error("the body is not JSON")]
    NotJson,
    /// The request's body is too long.
    #[error("the body has more than {max} bytes")]
    #[non_exhaustive]
    TooLarge {
        /// The limit, in bytes.
        max: usize,
    },
    /// A field is missing, or does not have the form of the protocol.
    #[error("`{field}` is not {expected}")]
    #[non_exhaustive]
    Invalid {
        /// The path of the field.
        field: String,
        /// The value that the protocol expects.
        expected: &'static str,
    },
    /// The last message has a role that a front end may not use.
    #[error("messages of the role `{role}` are not accepted")]
    #[non_exhaustive]
    Role {
        /// The role.
        role: String,
    },
    /// A file has an address that is not accepted.
    #[error("`{field}` is not a `data:` or `https:` address")]
    #[non_exhaustive]
    Address {
        /// The path of the field.
        field: String,
    },
    /// The request neither begins a run nor answers a suspended run.
    #[error("the request has no message, decision or result")]
    Empty,
    /// The request does not answer all calls that wait for a decision or an input.
    #[error("these calls have no answer: {}", ids.join(", "))]
    #[non_exhaustive]
    Unanswered {
        /// The ids of the approval requests and the questions.
        ids: Vec<String>,
    },
    /// An input to a question does not fit. The question is still open.
    #[error("the input does not fit: {report}")]
    #[non_exhaustive]
    InputRefused {
        /// The id of the question.
        id: String,
        /// The issues, without secrets.
        report: String,
    },
    /// Nothing waits for the answers in the request: the decision was made before, its id is unknown, or the run can no longer be resumed.
    #[error("nothing waits for this answer")]
    NotPending,
    /// The request contains two answers to the same approval request, question or call.
    #[error("`{id}` is answered twice")]
    #[non_exhaustive]
    AnsweredTwice {
        /// The id of the approval request, of the question or of the call.
        id: String,
    },
    /// A run of the thread is active.
    #[error("run `{run_id}` of this thread is active")]
    #[non_exhaustive]
    Busy {
        /// The id of the run, or an empty text if it is not known.
        run_id: String,
    },
    /// The last reply cannot be replaced by another reply.
    #[error("a reply of this thread cannot be made again")]
    Regenerate,
    /// The caller has too many active runs.
    #[error("{max} runs are active, which is the limit")]
    #[non_exhaustive]
    TooManyRuns {
        /// The limit.
        max: usize,
    },
    /// Too many readers are connected to a run.
    #[error("{max} readers are connected to this run, which is the limit")]
    #[non_exhaustive]
    TooManyReaders {
        /// The limit.
        max: usize,
    },
    /// `UiServer::scoped` was not called, so the caller is unknown.
    #[error("the server has no scope: call `scoped`, or allow a single user")]
    NotScoped,
    /// The conversation cannot be opened, or its run cannot begin. The log contains the reason.
    #[error("the thread cannot be used now")]
    Unavailable,
}

crate::error_text::debug_is_the_sentence!(UiRequestError);

impl UiRequestError {
    /// Returns the status of the HTTP response.
    pub fn status(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::NotPending | Self::Busy { .. } | Self::Regenerate => 409,
            Self::TooManyRuns { .. } | Self::TooManyReaders { .. } => 429,
            Self::NotScoped => 403,
            Self::Unavailable => 503,
            _ => 400,
        }
    }

    /// Returns the kind of error as a word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::TooLarge { .. } => "too_large",
            Self::Invalid { .. } => "invalid",
            Self::Role { .. } => "role",
            Self::Address { .. } => "address",
            Self::Empty => "empty",
            Self::Unanswered { .. } => "unanswered",
            Self::InputRefused { .. } => "input_refused",
            Self::NotPending => "not_pending",
            Self::AnsweredTwice { .. } => "answered_twice",
            Self::Busy { .. } => "busy",
            Self::Regenerate => "regenerate",
            Self::TooManyRuns { .. } => "too_many_runs",
            Self::TooManyReaders { .. } => "too_many_readers",
            Self::NotScoped => "not_scoped",
            Self::Unavailable => "unavailable",
        }
    }

    /// Returns the body of the HTTP response: `{"error": {"code", "message"}}`. For a refused input, the error also has the `id` of the
    /// question and the `report`.
    pub fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code(), "message": self.to_string()});
        if let Self::InputRefused { id, report } = self {
            (error["id"], error["report"]) = (json!(id), json!(report));
        }
        json!({"error": error})
    }

    #[cfg(feature = "runtime")]
    pub(in crate::ui) fn refused_input(id: &str, error: &AskError) -> Self {
        let report = match error {
            AskError::Refused { report } => report.clone(),
            error => error.to_string(),
        };
        Self::InputRefused { id: id.to_owned(), report }
    }

    pub(in crate::ui) fn invalid(field: impl Into<String>, expected: &'static str) -> Self {
        Self::Invalid { field: field.into(), expected }
    }
}
