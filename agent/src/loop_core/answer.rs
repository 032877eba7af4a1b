//! What a driver tells the loop.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{LimitReached, Signature};
use crate::args::Coercions;
use crate::message::{AssistantMessage, Message, ToolArguments};
use crate::model::ModelEvent;
use crate::{Control, ToolOutcome, ToolReply};

/// The answer to the effect that names it.
///
/// ```
/// use agent::loop_core::{Answer, Effect, Reply, Verdict};
/// use agent::message::AssistantMessage;
///
/// /// A driver without tools, that always says the same.
/// fn answer(effect: &Effect) -> Option<Answer> {
///     Some(match effect {
///         Effect::Poll { .. } => Answer::Messages(Vec::new()),
///         Effect::CallModel { .. } => Answer::Reply(Reply::new(AssistantMessage::from("Hello!"))),
///         Effect::TurnEnd { .. } => Answer::Verdict(Verdict::default()),
///         _ => return None,
///     })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a short-lived answer; boxing a reply would make every driver unwrap it"
)]
pub enum Answer {
    /// What the queue had; nothing when it was empty.
    Messages(Vec<Arc<Message>>),
    /// What the model said.
    Reply(Reply),
    /// What each call of the segment came to before it runs, in call order.
    Prepared(Vec<Prepared>),
    /// Whether each call may run, in the order of the requests.
    Decisions(Vec<Decided>),
    /// How each call ended, in the order of the effect, whatever finished first.
    Outcomes(Vec<CallEnd>),
    /// Whether to go on.
    Verdict(Verdict),
}

/// What the model said: whole, or as far as it came when it failed.
///
/// ```
/// use agent::loop_core::Reply;
/// use agent::message::{AssistantMessage, StopReason};
///
/// // A reply that failed is an answer, too: it ends the run.
/// let mut message = AssistantMessage::from("One mom");
/// (message.stop_reason, message.error) = (StopReason::Error, Some("the connection broke".into()));
/// assert!(Reply::new(message).message.stop_reason.is_failure());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reply {
    /// The message. A stop reason of `error` or `aborted` ends the run; the message's `error` says why.
    pub message: AssistantMessage,
    /// Whether the token limit of the request cut it although the stop reason does not say so.
    #[serde(default)]
    pub is_cut: bool,
    /// The limit for which the driver ended a reply that is `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitReached>,
}

impl Reply {
    /// A reply.
    pub fn new(message: AssistantMessage) -> Self {
        Self { message, is_cut: false, limit: None }
    }
}

/// What a call came to before it runs.
///
/// ```
/// use agent::loop_core::{CallEnd, Prepared, Ready};
/// use agent::{ToolError, message::ToolCall};
///
/// let prepare = |call: &ToolCall| match call.name.as_str() {
///     "add" => Prepared::Ready(Ready::default()),
///     _ => Prepared::Ended(CallEnd::new(ToolError::new("there is no such tool"))),
/// };
/// assert!(matches!(prepare(&ToolCall::new("c1", "add", "{}")), Prepared::Ready(_)));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepared {
    /// It may run.
    Ready(Ready),
    /// It does not: refused, blocked, or answered from the cache.
    Ended(CallEnd),
}

/// A call that may run.
///
/// ```
/// use agent::loop_core::{Ready, Signature};
///
/// let args = agent::json!({"to": "Ann", "amount": 500});
/// let mut ready = Ready::default();
/// ready.signature = Some(Signature::of("send", &args));
/// ready.approval = Some(args.to_string().into());      // somebody has to decide on it
/// assert!(ready.cached.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Ready {
    /// The arguments to run with, where they are not those of the model: replaced by a hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<ToolArguments>,
    /// What it is compared by with earlier calls; none where repeating is fine.
    pub signature: Option<Signature>,
    /// The checked arguments, where somebody has to decide on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ToolArguments>,
    /// A signature of the call, for a driver that wants to know it again after the run was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The result of an equal call: then this one does not run, unless the loop guard says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<CallEnd>,
}

/// How a call ended.
///
/// ```
/// use agent::loop_core::CallEnd;
/// use agent::{ToolError, ToolOutput};
///
/// let ran = CallEnd::ran(ToolOutput::text("3"), 12);
/// assert_eq!((ran.ran, ran.duration_ms, ran.attempt), (true, 12, 1));
/// let blocked = CallEnd::new(ToolError::denied("not on Sundays"));
/// assert!(!blocked.ran && blocked.outcome.is_error());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallEnd {
    /// How. `Deferred` is no end yet: the result comes from outside.
    pub outcome: ToolOutcome,
    /// What was changed in the arguments so that they fit.
    #[serde(default)]
    pub coercions: Coercions,
    /// Whether the run goes on.
    #[serde(default)]
    pub control: Control,
    /// Whether the body had its turn.
    #[serde(default)]
    pub ran: bool,
    /// Whether the result is that of an earlier call.
    #[serde(default)]
    pub cached: bool,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: u64,
    /// What all of a long result is read by, where the driver keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The arguments that it ran with, where a person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_args: Option<ToolArguments>,
    /// What a call that was refused after its check is compared by with earlier calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

impl CallEnd {
    /// A call that did not run. The control is that of the output, when it has one.
    pub fn new(reply: impl Into<ToolReply>) -> Self {
        let ToolReply { outcome, coercions } = reply.into();
        let control = outcome.output().map_or(Control::Continue, |output| output.control);
        Self {
            outcome,
            coercions,
            control,
            ran: false,
            cached: false,
            attempt: 1,
            duration_ms: 0,
            handle: None,
            edited_args: None,
            signature: None,
        }
    }

    /// A call that ran.
    pub fn ran(reply: impl Into<ToolReply>, duration_ms: u64) -> Self {
        Self { ran: true, duration_ms, ..Self::new(reply) }
    }
}

/// What was changed in the arguments of one call so that they fit.
///
/// ```
/// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("double", r#"{"n": "21"}"#), reply().text("42")]);
/// let output = Assistant::builder(model).tools(tools![double]).build()?.prompt("Double 21.").await?;
/// let call = &output.coercions[0];
/// assert_eq!((call.tool.as_str(), call.coercions[0].path.as_str()), ("double", "/n"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallCoercions {
    /// The call's id.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// What, in order.
    pub coercions: Coercions,
}

impl CallCoercions {
    pub(super) fn new(call_id: String, tool: String, coercions: Coercions) -> Self {
        Self { call_id, tool, coercions }
    }
}

/// What was decided on a call.
///
/// ```
/// use agent::loop_core::{ApprovalRequest, Decided};
///
/// /// For a driver whose rule is a limit.
/// fn decide(request: &ApprovalRequest) -> Decided {
///     let args = request.call.args.value().unwrap_or_default();
///     match args["amount"].as_u64() {
///         Some(0..=100) => Decided::Allow(None),
///         Some(_) => Decided::Later,
///         None => Decided::Deny("say how much".into()),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a short-lived answer, one for each call")]
pub enum Decided {
    /// It runs, with these arguments where somebody changed them (checked by the driver).
    Allow(Option<ToolArguments>),
    /// It was allowed and does not run all the same: changed arguments that were refused, or a tool that is another
    /// one by now.
    AllowEnded(CallEnd),
    /// It does not run, for this reason.
    Deny(String),
    /// Nobody knows yet: then all calls of the segment go on waiting.
    Later,
}

/// What the hook at the end of a turn says, and whether messages wait.
///
/// ```
/// use agent::loop_core::Verdict;
///
/// let stop = Verdict { go_on: Some(false), ..Verdict::default() };
/// assert!(!stop.is_queued);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    /// Whether the run ends (`Some(false)`), goes on (`Some(true)`), or the hook does not mind.
    pub go_on: Option<bool>,
    /// Whether a queue holds messages.
    pub is_queued: bool,
}

/// What a live driver tells while it works on an effect, so that events come when things happen. All of it is
/// optional: what was not told follows from the answer.
///
/// ```
/// use agent::loop_core::{AgentLoop, Answer, LoopConfig, Note};
/// use agent::message::{AssistantMessage, Conversation, Message};
/// use std::sync::Arc;
///
/// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// run.answer(Answer::Messages(Vec::new()))?;           // nothing was queued; the model is asked
/// run.note(Note::ReplyStarted(Arc::new(Message::assistant(AssistantMessage::default()))))?;
/// while let Some(event) = run.take_event() {
///     println!("{event:?}");                           // `MessageStart` last, before the reply is there
/// }
/// # Ok::<(), agent::loop_core::AnswerError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// The reply begins; the message in its first, empty state.
    ReplyStarted(Arc<Message>),
    /// The reply grows.
    ReplyUpdated(ModelEvent),
    /// The call at this position of its message is looked at.
    CallStarted(u32),
    /// What the call at this position came to before it runs.
    CallPrepared(u32, Prepared),
    /// The call at this position is so far. After its end it is ignored.
    CallUpdated(u32, crate::Progress),
    /// The call at this position ended, or its result arrived from outside.
    CallEnded(u32, CallEnd),
}

/// An answer or a note that does not fit. The loop is unchanged.
///
/// ```
/// use agent::loop_core::{AgentLoop, Answer, LoopConfig, AnswerError, Verdict};
/// use agent::message::{Conversation, Message};
///
/// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// let error = run.answer(Answer::Verdict(Verdict::default())).unwrap_err();
/// assert!(matches!(error, AnswerError::WrongKind { .. }));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Another answer is wanted.
    #[error("the pending effect wants {wanted}")]
    #[non_exhaustive]
    WrongKind {
        /// Which.
        wanted: &'static str,
    },
    /// One for each call is wanted.
    #[error("{wanted} answers are wanted, {got} were given")]
    #[non_exhaustive]
    WrongCount {
        /// How many calls there are.
        wanted: usize,
        /// How many answers.
        got: usize,
    },
    /// The note is about a call that the pending effect does not ask for.
    #[error("no call {ord} is worked on")]
    #[non_exhaustive]
    NoSuchCall {
        /// The position.
        ord: u32,
    },
    /// The run is over.
    #[error("the run is over")]
    Over,
}

crate::error_text::debug_is_the_sentence!(AnswerError);
