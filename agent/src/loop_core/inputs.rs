//! The results of the steps of an `AgentLoop`, and the error of recording them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LimitReached, Signature};
use crate::args::Coercion;
use crate::message::{AssistantMessage, ToolArguments};
use crate::model::RequestNotice;
use crate::tool::outcome::{IntoOutcome, ToolOutcome};
use crate::tool::output::Control;
use crate::tool::question::Question;

/// A reply of the model: a complete one, or the beginning of a reply that failed.
///
/// ```
/// use agent::loop_core::ModelReply;
/// use agent::message::{AssistantMessage, StopReason};
///
/// // A reply that failed is recorded, too: it ends the run.
/// let mut message = AssistantMessage::from("One mom");
/// (message.stop_reason, message.error) = (StopReason::Error, Some("the connection broke".into()));
/// assert!(ModelReply::new(message).message.stop_reason.is_failure());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelReply {
    /// The message. A stop reason of `error` or `aborted` ends the run, and the message's `error` gives the reason.
    pub message: Box<AssistantMessage>,
    /// Whether the token limit of the request cut the reply, although the reply has another stop reason.
    #[serde(default)]
    pub is_cut: bool,
    /// The limit because of which the driver (which performs the steps) ended an `aborted` reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitReached>,
    /// The error message if the request was too long: the provider refused it, or the context window was full before the reply ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) too_long: Option<String>,
    /// The notices of the model about the request, for example that the request was delayed. They are stored with the reply, because the
    /// run emits events for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<RequestNotice>,
}

impl ModelReply {
    /// Creates a reply that counts as cut only if its stop reason says so.
    pub fn new(message: impl Into<Box<AssistantMessage>>) -> Self {
        Self { message: message.into(), is_cut: false, limit: None, too_long: None, notices: Vec::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Prepared {
    Ready(Ready),
    /// The call does not run, for example because its arguments were refused or a hook blocked it.
    Ended(Box<CallEnd>),
}

impl From<Prepared> for Result<Ready, CallEnd> {
    fn from(prepared: Prepared) -> Self {
        match prepared {
            Prepared::Ready(ready) => Ok(ready),
            Prepared::Ended(end) => Err(*end),
        }
    }
}

/// The result of preparing a call that may run.
///
/// ```
/// use agent::loop_core::Ready;
///
/// let args = agent::json!({"to": "Ann", "amount": 500});
/// let mut ready = Ready::default().guarded("send", &args);
/// ready.approval = Some(args.to_string().into());      // needs a decision
/// assert!(ready.cached.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Ready {
    /// The arguments to run with, if a hook replaced the arguments of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<ToolArguments>,
    /// The signature to compare with earlier calls, or `None` if the call may be repeated.
    pub(crate) signature: Option<Signature>,
    /// The validated arguments, if the call needs a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ToolArguments>,
    /// A keyed signature of the call. When a stored run is resumed, the signature shows that the stored call was not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The result of an equal earlier call. If set, this call ends with the result and does not run. A refusal by the loop guard takes
    /// precedence over the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Box<CallEnd>>,
}

impl Ready {
    /// Lets the loop guard compare the call with earlier calls, by the tool and the validated arguments. The order of the arguments' keys
    /// does not matter. The loop guard ignores calls for which this method was not used.
    pub fn guarded(mut self, tool: &str, args: &Value) -> Self {
        self.signature = Some(Signature::of(tool, args));
        self
    }
}

/// The end of a call: its outcome, and how the outcome came about.
///
/// ```
/// use agent::loop_core::CallEnd;
/// use agent::{ToolError, ToolOutput};
///
/// let ran = CallEnd::ran(ToolOutput::text("3"), 12);
/// assert_eq!((ran.ran, ran.duration_ms, ran.attempt), (true, 12, 1));
/// let blocked = CallEnd::new(ToolError::denied("not on Sundays"));
/// assert!(!blocked.ran && blocked.outcome.is_error());
/// assert_eq!(ran.clone().with_coercions(blocked.coercions), ran);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallEnd {
    /// The outcome. `Deferred` is not an end yet: the result comes from outside.
    pub outcome: ToolOutcome,
    /// The coercions in the arguments.
    #[serde(default)]
    pub coercions: Vec<Coercion>,
    /// The effect of the call on the run.
    #[serde(default)]
    pub control: Control,
    /// Whether the tool ran.
    #[serde(default)]
    pub ran: bool,
    /// Whether the result was reused from an earlier call.
    #[serde(default)]
    pub cached: bool,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The duration in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// The handle (an id) under which the driver keeps the full text of a long result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The arguments that the call ran with, if a decision changed the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_args: Option<ToolArguments>,
    /// The signature of a call that was refused after validation. The loop guard compares this signature with earlier calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<Signature>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<Question>,
}

impl CallEnd {
    /// Creates the end of a call that did not run. Takes the control from the outcome.
    pub fn new(outcome: impl IntoOutcome) -> Self {
        let outcome = outcome.into_outcome();
        let control = outcome.control();
        Self {
            outcome,
            coercions: Vec::new(),
            control,
            ran: false,
            cached: false,
            attempt: 1,
            duration_ms: 0,
            handle: None,
            edited_args: None,
            signature: None,
            asked: Vec::new(),
        }
    }

    /// Creates the end of a call that ran.
    pub fn ran(outcome: impl IntoOutcome, duration_ms: u64) -> Self {
        Self { ran: true, duration_ms, ..Self::new(outcome) }
    }

    /// Sets the coercions in the arguments.
    pub fn with_coercions(mut self, coercions: Vec<Coercion>) -> Self {
        self.coercions = coercions;
        self
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CallCoercions {
    pub(super) call_id: String,
    pub(super) tool: String,
    pub(super) coercions: Vec<Coercion>,
}

/// The decision on a call.
///
/// ```
/// use agent::loop_core::CallDecision;
/// use agent::run::ApprovalRequest;
///
/// /// Allows amounts up to 100, and leaves the decision on larger amounts for later.
/// fn decide(request: &ApprovalRequest) -> CallDecision {
///     match request.arg::<u64>("amount") {
///         Ok(0..=100) => CallDecision::Allow(None),
///         Ok(_) => CallDecision::Later,
///         Err(error) => CallDecision::Deny(error.to_string()),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a short-lived value, one for each call")]
pub enum CallDecision {
    /// The call runs. Contains the arguments if the decision changed them. These arguments must be validated before the decision is
    /// recorded.
    Allow(Option<ToolArguments>),
    /// The call was allowed but does not run, because the changed arguments were refused, or the tool has changed since the request.
    AllowEnded(CallEnd),
    /// The call does not run, for this reason.
    Deny(String),
    /// The decision follows later. All calls that wait for a decision keep waiting.
    Later,
}

/// The error for a wrong or missing result of a step. The loop stays unchanged.
///
/// ```
/// use agent::loop_core::{AgentLoop, LoopConfig, RecordError};
/// use agent::message::{Conversation, Message};
///
/// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// let error = run.record_turn_end(None).unwrap_err();
/// assert!(matches!(error, RecordError::WrongKind { wanted: "messages", .. }));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The run waits for another kind of result.
    #[error("the run waits for {wanted}")]
    #[non_exhaustive]
    WrongKind {
        /// The kind of result that the run waits for.
        wanted: &'static str,
    },
    /// The number of results differs from the number of calls that wait for a result.
    #[error("the run waits for {wanted} results, {got} were recorded")]
    #[non_exhaustive]
    WrongCount {
        /// The number of calls that wait for a result.
        wanted: usize,
        /// The number of results that were passed.
        got: usize,
    },
    /// The run does not wait for a result of this call.
    #[error("the run does not wait for a result of call {ord}")]
    #[non_exhaustive]
    NoSuchCall {
        /// The position of the call.
        ord: u32,
    },
    /// The step is over, and no result of this call was recorded.
    #[error("no result of call {ord} was recorded")]
    #[non_exhaustive]
    Missing {
        /// The position of the call.
        ord: u32,
    },
    /// The outcome of a call that already waits for a result from outside is deferred again.
    #[error("the result of call {ord} is awaited, and cannot be deferred again")]
    #[non_exhaustive]
    DeferredAgain {
        /// The position of the call.
        ord: u32,
    },
    /// A queued message has the role of a reply or of a result.
    #[error("a queue cannot have a message of the role {role}")]
    #[non_exhaustive]
    WrongRole {
        /// The role of the message.
        role: &'static str,
    },
    /// The run is over.
    #[error("the run is over")]
    Over,
}

crate::error_text::debug_is_the_sentence!(RecordError);
