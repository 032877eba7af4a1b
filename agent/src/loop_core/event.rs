//! What happens in a run.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{PendingCall, RunStop};
use crate::args::Coercion;
use crate::message::{Message, StopReason, ToolArguments, ToolCall, ToolResultMessage, Usage};
use crate::model::ModelEvent;
use crate::{Control, Progress, ToolResult};

/// One thing that happens in a run.
///
/// As JSON it is one flat object: `{"run_id", "turn", "seq", "type", …}`.
///
/// ```
/// use agent::{Assistant, ScriptedModel, Value};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let mut run = assistant.run("Hi");
/// let event = run.next().await.expect("a run has events");
/// let json: Value = serde_json::to_value(&*event)?;
/// assert_eq!((json["type"].as_str(), json["turn"].as_u64()), (Some("agent_start"), Some(0)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// New for each run.
    #[serde(serialize_with = "shared")]
    pub run_id: Arc<str>,
    /// Counted from 1; 0 for `agent_start`.
    pub turn: u32,
    /// Counted from 1 in steps of 1.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happens in a run. A run is
///
/// ```text
/// stream    := agent_start turn+ agent_end
/// turn      := turn_start inject* ( assistant segment* )? turn_end
/// inject    := message_start message_end                               of a user or custom message
/// assistant := message_start message_update* message_end
/// segment   := preflight+ approvals? running results
/// preflight := tool_execution_start tool_execution_end?                an end here: the call does not run
/// approvals := approval_required+ ( run_suspended run_resumed )* ( approval_resolved tool_execution_end? )*
/// running   := ( tool_execution_update | tool_execution_end )*
///            | running run_suspended run_resumed running               deferred calls
/// results   := ( message_start message_end )+                          one for each call of the segment
/// ```
///
/// Each call has one start, in call order, then updates, one end (in the order they finish), and one result (in call
/// order, at the end of its segment). `agent_end` is the last event.
///
/// ```
/// use agent::{Assistant, EventKind, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let mut run = assistant.run("Hi");
/// let mut said = String::new();
/// while let Some(event) = run.next().await {
///     match &event.kind {
///         EventKind::MessageUpdate { update, .. } => said += update.text_delta().unwrap_or_default(),
///         EventKind::ToolExecutionStart { call, .. } => println!("{} is called", call.name),
///         _ => {}
///     }
/// }
/// assert_eq!(said, "Hello!");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The run begins.
    AgentStart,
    /// A turn begins: one reply of the model and the calls it asks for.
    TurnStart,
    /// A message begins.
    #[non_exhaustive]
    MessageStart {
        /// The message; of a streamed reply its first, empty state.
        #[serde(serialize_with = "shared")]
        message: Arc<Message>,
    },
    /// A reply grows: piece by piece, or by a part that comes whole, such as a picture or a source
    /// ([`ModelEvent::Part`]).
    #[non_exhaustive]
    MessageUpdate {
        /// By what.
        #[serde(flatten)]
        update: ModelEvent,
    },
    /// A message is whole, and in the conversation.
    #[non_exhaustive]
    MessageEnd {
        /// The message.
        #[serde(serialize_with = "shared")]
        message: Arc<Message>,
        /// Its id in the queue that it came through.
        #[serde(skip_serializing_if = "Option::is_none")]
        queued_id: Option<String>,
    },
    /// A call begins. As JSON: `call_id`, `tool`, `args`.
    #[non_exhaustive]
    ToolExecutionStart {
        /// The call, as the model sent it.
        #[serde(flatten, serialize_with = "call_fields")]
        call: ToolCall,
    },
    /// A call is so far, as its body tells.
    #[non_exhaustive]
    ToolExecutionUpdate {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// How far.
        partial: Progress,
    },
    /// A call waits for a decision.
    #[non_exhaustive]
    ApprovalRequired {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The checked arguments.
        args: ToolArguments,
        /// Names the request.
        request_id: String,
    },
    /// It was decided.
    #[non_exhaustive]
    ApprovalResolved {
        /// The call's id.
        call_id: String,
        /// How.
        decision: ApprovalDecision,
        /// Whether it runs with changed arguments.
        edited: bool,
    },
    /// A call ended. As JSON: the fields of the result message, `coercions`, and `control` where it says anything.
    #[non_exhaustive]
    ToolExecutionEnd {
        /// How, and what was changed in the arguments so that they fit.
        #[serde(flatten, serialize_with = "result_fields")]
        result: ToolResult,
        /// Whether the run goes on.
        #[serde(skip_serializing_if = "goes_on")]
        control: Control,
        /// Whether the tool's body had its turn; false when the call was refused before.
        ran: bool,
        /// Whether the result is that of an earlier call.
        cached: bool,
        /// Which attempt it was, from 1.
        attempt: u32,
        /// How long it took.
        duration_ms: u64,
    },
    /// A turn is over.
    #[non_exhaustive]
    TurnEnd {
        /// Why the reply ended; none when there was no reply.
        assistant: Option<StopReason>,
        /// The ids of the calls, in call order.
        tool_results: Vec<String>,
        /// What the turn took.
        usage: Usage,
    },
    /// The run waits for decisions or results from outside.
    #[non_exhaustive]
    RunSuspended {
        /// Which.
        pending: Vec<PendingCall>,
    },
    /// It goes on.
    RunResumed,
    /// The run is over.
    #[non_exhaustive]
    AgentEnd {
        /// How.
        stop: RunStop,
        /// More exactly: the error, the reason, the limit.
        detail: Option<String>,
        /// Every message that the run added.
        #[serde(serialize_with = "all_shared")]
        messages: Vec<Arc<Message>>,
        /// What the run took.
        usage: Usage,
    },
}

/// What was decided on a call.
///
/// ```
/// # /// Sends money.
/// # #[agent::tool(approval = "always")] async fn send(to: String) {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use agent::model::{ScriptedModel, reply};
/// # let model = ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann"}"#), reply().text("I may not.")]);
/// use agent::loop_core::ApprovalDecision;
/// use agent::{Assistant, Decision, EventKind};
///
/// let assistant = Assistant::builder(model)
///     .tools(agent::tools![send])
///     .on_approval(|_request| async { Decision::Deny("not today".into()) })
///     .on_event(|event| {
///         if let EventKind::ApprovalResolved { decision, .. } = &event.kind {
///             assert_eq!(*decision, ApprovalDecision::Deny);
///         }
///     })
///     .build()?;
/// assert_eq!(assistant.prompt("Send it to Ann.").await?.text(), "I may not.");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
}

fn shared<T: Serialize + ?Sized, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(serializer)
}

fn all_shared<S: Serializer>(messages: &[Arc<Message>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(Arc::as_ref))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn goes_on(control: &Control) -> bool {
    *control == Control::Continue
}

fn call_fields<S: Serializer>(call: &ToolCall, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        call_id: &'a str,
        tool: &'a str,
        args: &'a ToolArguments,
    }
    Fields { call_id: &call.id, tool: &call.name, args: &call.args }.serialize(serializer)
}

fn result_fields<S: Serializer>(result: &ToolResult, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        #[serde(flatten)]
        message: Option<ToolResultMessage>,
        coercions: &'a [Coercion],
    }
    Fields { message: result.to_message(), coercions: &result.coercions }.serialize(serializer)
}
