//! What has to happen next.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::End;
use crate::StepKey;
use crate::message::{MessageList, StopReason, ToolCall, Usage, whole};

/// What has to happen next. Each is answered by the [`Answer`](super::Answer) that its variant names.
///
/// ```
/// use agent::loop_core::{AgentLoop, Answer, Effect, LoopConfig};
/// use agent::message::{Conversation, Message};
///
/// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// run.answer(Answer::Messages(Vec::new()))?;           // nothing is queued
/// let Effect::CallModel { key, messages, .. } = run.next() else { unreachable!() };
/// assert_eq!((key.to_string().as_str(), messages.len()), ("run-1/1/model/0", 1));
/// # Ok::<(), agent::loop_core::AnswerError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a short-lived effect; boxing a summary would make every driver unwrap it"
)]
pub enum Effect {
    /// Take messages from a queue. Answer: [`Messages`](super::Answer::Messages).
    #[non_exhaustive]
    Poll {
        /// The step.
        key: StepKey,
        /// Which queue.
        queue: Queue,
    },
    /// Ask the model. Answer: [`Reply`](super::Answer::Reply).
    #[non_exhaustive]
    CallModel {
        /// The step.
        key: StepKey,
        /// The conversation, sound. What goes to the model is made of it: see
        /// [`HandOff`](crate::message::HandOff).
        messages: MessageList,
    },
    /// Find the tools of these calls, check the arguments, ask the hooks. Answer: [`Prepared`](super::Answer::Prepared), one for each call.
    #[non_exhaustive]
    Prepare {
        /// The step; its `ord` is the position of the first call.
        key: StepKey,
        /// The calls of one segment.
        calls: Vec<ToolCall>,
    },
    /// Ask whether these calls may run. Answer: [`Decisions`](super::Answer::Decisions), one for each.
    #[non_exhaustive]
    Approve {
        /// What is asked.
        requests: Vec<(StepKey, ApprovalRequest)>,
    },
    /// Run these calls, side by side. Answer: [`Outcomes`](super::Answer::Outcomes), one for each.
    #[non_exhaustive]
    CallTools {
        /// The calls, with the arguments that they run with.
        calls: Vec<(StepKey, ToolCall)>,
    },
    /// Wait for results from outside. Answer: [`Outcomes`](super::Answer::Outcomes), one for each.
    #[non_exhaustive]
    Await {
        /// The handles that the tools gave.
        deferred: Vec<(StepKey, String)>,
    },
    /// Ask whether to go on, and whether messages wait. Answer: [`Verdict`](super::Answer::Verdict).
    #[non_exhaustive]
    TurnEnd {
        /// The step.
        key: StepKey,
        /// What the turn was.
        summary: TurnSummary,
    },
    /// Nothing: the run is over.
    Done(End),
}

/// The two queues of a run.
///
/// ```
/// use agent::loop_core::Queue;
/// use agent::{Assistant, ScriptedModel};
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// assistant.follow_up("And in French?");
/// assert_eq!((assistant.queued(Queue::Steering).len(), assistant.queued(Queue::FollowUp).len()), (0, 1));
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// Messages for the next turn.
    Steering,
    /// Messages for when the run would end.
    FollowUp,
}

/// A call that waits for a decision. It can be stored and sent: who decides sees this, and gives it back with the
/// decision.
///
/// ```
/// # /// Sends money.
/// # #[agent::tool(approval = "always")] async fn send(to: String, amount: u64) {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = agent::ScriptedModel::new([agent::model::reply().tool_call("send", r#"{"to": "Ann", "amount": "5"}"#)]);
/// # let assistant = agent::Assistant::builder(model).tools(agent::tools![send]).build()?;
/// use agent::loop_core::ApprovalRequest;
///
/// let suspended = assistant.prompt("Send Ann 5.").await?.snapshot.expect("it waits");
/// let request: &ApprovalRequest = &suspended.approval_requests()[0];
/// assert_eq!(request.call.name, "send");
/// assert_eq!(request.call.args.value().unwrap()["amount"], 5);                // as it would run
/// println!("{}", serde_json::to_string(request)?);     // for whoever decides
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Names the request: the text of its step's key.
    pub request_id: String,
    /// The call, with the checked arguments.
    pub call: ToolCall,
    /// The fingerprint of the tool's schema when it was asked.
    #[serde(with = "whole")]
    pub fingerprint: u64,
    /// Binds the request to its call, where the assistant has a key for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

impl ApprovalRequest {
    pub(super) fn new(request_id: String, call: ToolCall, fingerprint: u64, mac: Option<String>) -> Self {
        Self { request_id, call, fingerprint, mac }
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
/// use agent::loop_core::PendingCall;
///
/// let suspended = assistant.prompt("Send it to Ann.").await?.snapshot.expect("it waits");
/// assert!(matches!(&suspended.pending()[0], PendingCall::Approval { tool, .. } if tool == "send"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wants", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingCall {
    /// A decision.
    #[non_exhaustive]
    Approval {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// Names the request.
        request_id: String,
    },
    /// A result.
    #[non_exhaustive]
    Deferred {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// What the result will be delivered under.
        handle: String,
    },
}

/// What a turn was, for the hook at its end.
///
/// ```
/// use agent::loop_core::TurnSummary;
/// use agent::{Assistant, ScriptedModel};
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .on_turn_end(|turn: TurnSummary| async move { Ok((turn.usage.total > 100_000).then_some(false)) })
///     .build()?;
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnSummary {
    /// The run.
    pub run_id: Arc<str>,
    /// Counted from 1.
    pub turn: u32,
    /// Why the reply ended.
    pub stop_reason: Option<StopReason>,
    /// The ids of the calls, in call order.
    pub tool_results: Vec<String>,
    /// What the run took so far.
    pub usage: Usage,
}
