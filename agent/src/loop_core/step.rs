//! The steps that the loop asks its caller to perform.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{End, RunPath};
use crate::args::{ArgumentError, Plan, argument_without_plan};
use crate::message::{MessageList, StopReason, ToolArguments, ToolCall, Usage, whole};
use crate::step_key::StepKey;
use crate::tool::question::Question;

/// The next step of a run. Perform the step, and record its result with the method that the docs of the variant name.
///
/// ```
/// use agent::loop_core::{AgentLoop, LoopConfig, Step};
/// use agent::message::{Conversation, Message};
///
/// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// run.record_messages(Vec::new())?;                    // nothing is queued
/// let Step::CallModel { key, messages, .. } = run.next() else { unreachable!() };
/// assert_eq!((key.to_string().as_str(), messages.len()), ("run-1/1/model/0", 1));
/// # Ok::<(), agent::loop_core::RecordError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a short-lived value; boxing a summary would make every driver unwrap it"
)]
pub enum Step {
    /// Take messages from a queue. Record: [`record_messages`](super::AgentLoop::record_messages).
    #[non_exhaustive]
    Poll {
        /// The key of the step.
        key: StepKey,
        /// The queue to take the messages from.
        queue: Queue,
    },
    /// Ask the model. Record: [`record_reply`](super::AgentLoop::record_reply).
    #[non_exhaustive]
    CallModel {
        /// The key of the step.
        key: StepKey,
        /// The conversation. It is [sound](crate::message::Conversation::is_sound): no call in it waits for a result.
        /// [`ModelInfo::hand_off`](crate::model::ModelInfo::hand_off) converts the conversation to the messages that are sent to the
        /// model.
        messages: MessageList,
    },
    /// Find the tools of these calls, validate the arguments and ask the hooks. Record:
    /// [`record_prepared`](super::AgentLoop::record_prepared), once for each call.
    #[non_exhaustive]
    Prepare {
        /// The key of the step. The `ord` of the key is the position of the first call.
        key: StepKey,
        /// The calls that will run concurrently, without those that are already prepared.
        calls: Vec<Arc<ToolCall>>,
    },
    /// Ask whether these calls may run. Record: [`record_decisions`](super::AgentLoop::record_decisions).
    #[non_exhaustive]
    Approve {
        /// The requests for decisions, each with the key of its step.
        requests: Vec<(StepKey, ApprovalRequest)>,
    },
    /// Run these calls concurrently. Record: [`record_call_end`](super::AgentLoop::record_call_end), once for each call.
    #[non_exhaustive]
    CallTools {
        /// The calls with the arguments that they run with, each with the key of its step.
        calls: Vec<(StepKey, Arc<ToolCall>)>,
    },
    /// Wait for results from outside. Record: [`record_call_end`](super::AgentLoop::record_call_end), once for each call.
    #[non_exhaustive]
    Await {
        /// The handle that the tool of each call returned, with the key of the call's step. Calls that wait for questions or sub-agents
        /// are not listed.
        deferred: Vec<(StepKey, String)>,
    },
    /// Decide whether the run continues, and [report](super::AgentLoop::expect_messages) whether messages are queued. Record:
    /// [`record_turn_end`](super::AgentLoop::record_turn_end).
    #[non_exhaustive]
    TurnEnd {
        /// The key of the step.
        key: StepKey,
        /// A summary of the turn.
        summary: TurnSummary,
    },
    /// Do nothing: the run is over.
    Done(End),
}

impl Step {
    /// Returns whether the step prepares, decides on or runs calls. The tools of these calls have not begun to run.
    pub(crate) fn has_unstarted_calls(&self) -> bool {
        matches!(self, Self::Prepare { .. } | Self::Approve { .. } | Self::CallTools { .. })
    }
}

/// One of the two queues of messages for a run.
///
/// ```
/// use agent::run::Queue;
/// use agent::{Assistant, ScriptedModel};
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// assistant.follow_up("And in French?");
/// assert_eq!((assistant.queued(Queue::Steering).len(), assistant.queued(Queue::FollowUp).len()), (0, 1));
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// The queue of messages for the next request.
    Steering,
    /// The queue of messages that are added when the run would otherwise end.
    FollowUp,
}

/// A request for a decision on a call.
///
/// A request can be stored, and sent to the person who decides. The application passes the decision back together with the request. A
/// request shows [secret arguments](crate::guide::arguments#secrets) as `"[secret]"`, but the decision covers the real values.
/// [`args_with_secrets`](Self::args_with_secrets) returns the real values in the process that has the run. The `Debug` text shows no
/// arguments.
///
/// ```
/// # /// Sends money.
/// # #[agent::tool(approval = "always")] async fn send(to: String, amount: u64) {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = agent::ScriptedModel::new([agent::model::reply().tool_call("send", r#"{"to": "Ann", "amount": "5"}"#)]);
/// # let assistant = agent::Assistant::builder(model).tools(agent::tools![send]).build()?;
/// use agent::run::ApprovalRequest;
///
/// let suspended = assistant.prompt("Send Ann 5.").await?.snapshot.expect("it waits");
/// let request: &ApprovalRequest = &suspended.requests()[0];
/// assert_eq!(request.call.name, "send");
/// assert_eq!(request.call.args.value().unwrap()["amount"], 5);                // as the tool would read it
/// println!("{}", serde_json::to_string(request)?);     // for the person who decides
/// # Ok(()) }
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The id of the request: the text of the step's key. Later requests for the same call end in `/2`, `/3`, ….
    pub request_id: String,
    /// The path from the root to the run that asks. Empty unless a sub-agent asks.
    #[serde(default, skip_serializing_if = "RunPath::is_root")]
    pub path: RunPath,
    /// The call, with the validated arguments. Secret arguments are withheld.
    pub call: ToolCall,
    /// The fingerprint of the tool's name and parameters at the time of the request.
    #[serde(with = "whole")]
    pub fingerprint: u64,
    /// The signature that binds the request to its call, if the assistant has an approval key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// All validated arguments, including secret ones. `None` if the request was read from JSON.
    #[serde(skip)]
    args: Option<ToolArguments>,
    /// The [`Plan`] that reads the arguments. `None` if the request was read from JSON, or if the loop does not have the tool.
    #[serde(skip)]
    plan: Option<Plan>,
}

impl ApprovalRequest {
    pub(crate) fn new(
        request_id: String,
        path: RunPath,
        call: ToolCall,
        fingerprint: u64,
        mac: Option<String>,
    ) -> Self {
        Self { request_id, path, call, fingerprint, mac, args: None, plan: None }
    }

    pub(crate) fn with_args(mut self, args: ToolArguments) -> Self {
        self.args = Some(args);
        self
    }

    pub(crate) fn with_plan(mut self, plan: Option<Plan>) -> Self {
        self.plan = plan.or(self.plan);
        self
    }

    /// Returns one top-level argument as the tool reads it. Numbers keep all digits. `name` is the name of the parameter, even if the
    /// model used an alias.
    ///
    /// A missing argument has the default of its parameter, or is `None` for an `Option` without a default. A request that was read from
    /// JSON has no defaults: a missing argument is an error, and so is a withheld secret.
    ///
    /// ```
    /// use agent::{Assistant, Decision, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Sends money.
    /// #[tool(approval = "always")]
    /// fn send(#[arg(alias = "sum")] amount: u128) -> String {
    ///     format!("{amount} sent")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("send", r#"{"sum": "500"}"#), reply().text("I may not.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![send])
    ///     .on_approval(|request| async move {
    ///         match request.arg::<u128>("amount") {
    ///             Ok(0..=100) => Decision::Allow,
    ///             Ok(_) => Decision::Deny("100 at most".into()),
    ///             Err(error) => Decision::Deny(error.to_string()),
    ///         }
    ///     })
    ///     .build()?;
    /// assistant.prompt("Send 500.").await?;
    /// assert!(assistant.messages().get(2).unwrap().text().contains("100 at most"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the tool has no parameter of this name, if the call lacks the argument and there is no default, or if the value does not
    /// fit `T`.
    pub fn arg<T: DeserializeOwned>(&self, name: &str) -> Result<T, ArgumentError> {
        let args = self.args.as_ref().unwrap_or(&self.call.args);
        match &self.plan {
            Some(plan) if self.args.is_some() => plan.checked_argument(args.text(), name),
            _ => argument_without_plan(&self.call.name, args.text(), name),
        }
    }

    /// Returns the validated arguments including the secret ones. Returns `None` if the request was read from JSON, which does not contain
    /// secret arguments.
    ///
    /// ```
    /// use agent::run::ApprovalRequest;
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, json, tool, tools};
    ///
    /// /// Pays with a card.
    /// #[tool(approval = "always")]
    /// fn pay(amount: u64, #[arg(secret)] card: String) -> String {
    ///     format!("{amount} paid with a card of {} digits", card.len())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("pay", r#"{"amount": 5, "card": "4111"}"#)]);
    /// let assistant = Assistant::builder(model).tools(tools![pay]).build()?;
    /// let suspended = assistant.prompt("Pay 5.").await?.snapshot.expect("it waits");
    /// let request = &suspended.requests()[0];
    /// assert_eq!(request.call.args.value(), Some(json!({"amount": 5, "card": "[secret]"})));
    /// assert_eq!(request.args_with_secrets().unwrap().value(), Some(json!({"amount": 5, "card": "4111"})));
    ///
    /// let sent = serde_json::to_string(request)?;
    /// assert!(!sent.contains("4111"));
    /// assert!(serde_json::from_str::<ApprovalRequest>(&sent)?.args_with_secrets().is_none());
    /// # Ok(()) }
    /// ```
    pub fn args_with_secrets(&self) -> Option<&ToolArguments> {
        self.args.as_ref()
    }
}

/// Compares the fields that the JSON of a request contains. Secret arguments are ignored.
impl PartialEq for ApprovalRequest {
    fn eq(&self, other: &Self) -> bool {
        self.request_id == other.request_id
            && self.path == other.path
            && self.call == other.call
            && self.fingerprint == other.fingerprint
            && self.mac == other.mac
    }
}

/// Omits the arguments, because they may contain secrets. The `Debug` text of the call shows only the length of its arguments.
impl fmt::Debug for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalRequest")
            .field("request_id", &self.request_id)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

/// A call that a suspended run waits for.
///
/// ```
/// # /// Sends money.
/// # #[agent::tool(approval = "always")] async fn send(to: String) {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = agent::ScriptedModel::new([agent::model::reply().tool_call("send", r#"{"to": "Ann"}"#)]);
/// # let assistant = agent::Assistant::builder(model).tools(agent::tools![send]).build()?;
/// use agent::run::PendingCall;
///
/// let suspended = assistant.prompt("Send it to Ann.").await?.snapshot.expect("it waits");
/// assert!(matches!(&suspended.pending()[0], PendingCall::Approval { tool, .. } if tool == "send"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "wants", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingCall {
    /// The call waits for a decision.
    #[non_exhaustive]
    Approval {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The id of the request.
        request_id: String,
        /// The arguments without secrets, if the call belongs to a sub-agent. The arguments of a call of the root run are in its earlier
        /// [event](crate::EventKind::ApprovalRequired).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<ToolArguments>,
        /// The path from the root to the run that waits. Empty unless a sub-agent waits.
        #[serde(default, skip_serializing_if = "RunPath::is_root")]
        path: RunPath,
    },
    /// The call waits for a person's input to a question of its tool.
    #[non_exhaustive]
    Question {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The question.
        question: Box<Question>,
        /// The path from the root to the run that waits. Empty unless a sub-agent waits.
        #[serde(default, skip_serializing_if = "RunPath::is_root")]
        path: RunPath,
    },
    /// The call waits for a result from outside.
    #[non_exhaustive]
    Deferred {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The handle (an id) under which the result will be delivered.
        handle: String,
        /// The path from the root to the run that waits. Empty unless a sub-agent waits.
        #[serde(default, skip_serializing_if = "RunPath::is_root")]
        path: RunPath,
    },
}

/// A summary of a turn, for the hook at the end of the turn.
///
/// ```
/// use agent::run::TurnSummary;
/// use agent::{Assistant, ScriptedModel};
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .on_turn_end(|turn: TurnSummary| async move { Ok((turn.usage.total > 100_000).then_some(false)) })
///     .build()?;
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnSummary {
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The turn, counted from 1.
    pub turn: u32,
    /// The reason why the reply ended.
    pub stop_reason: Option<StopReason>,
    /// The ids of the calls, in call order.
    pub tool_results: Vec<String>,
    /// The tokens and cost of the run so far.
    pub usage: Usage,
}
