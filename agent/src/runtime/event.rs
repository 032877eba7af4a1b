//! What happens in a run.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::RunStop;
use crate::args::Coercion;
use crate::message::{Message, StopReason, ToolArguments, ToolCall, ToolResultMessage, Usage};
use crate::model::ModelEvent;
use crate::{Control, ToolResult};

/// One thing that happens in a run.
///
/// As JSON it is one flat object: `{"run_id", "turn", "seq", "type", …}`.
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
/// agent_start turn+ agent_end
/// turn    := turn_start prompts? reply? calls? turn_end
/// prompts := (message_start message_end)+
/// reply   := message_start message_update* message_end
/// calls   := (tool_execution_start tool_execution_end?)+ tool_execution_end* (message_start message_end)+
/// ```
///
/// Each call has one start, in call order, and one end, in the order they finish; an end right after its start
/// is that of a call that does not run. The results follow in call order.
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
    /// A reply grows.
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
    },
    /// A call begins. As JSON: `call_id`, `tool`, `args`.
    #[non_exhaustive]
    ToolExecutionStart {
        /// The call, as the model sent it.
        #[serde(flatten, serialize_with = "call_fields")]
        call: ToolCall,
    },
    /// A call ended. As JSON: the fields of the result message, `coercions`, and `control` where it says anything.
    #[non_exhaustive]
    ToolExecutionEnd {
        /// How, and what was changed in the arguments so that they fit.
        #[serde(flatten, serialize_with = "result_fields")]
        result: ToolResult,
        /// Whether the tool's body had its turn; false when the call was refused before.
        ran: bool,
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

fn shared<T: Serialize + ?Sized, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(serializer)
}

fn all_shared<S: Serializer>(messages: &[Arc<Message>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(Arc::as_ref))
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
        #[serde(skip_serializing_if = "Option::is_none")]
        control: Option<Control>,
    }
    let control = result.outcome.output().map(|output| output.control);
    let control = control.filter(|control| *control != Control::Continue);
    Fields { message: result.to_message(), coercions: &result.coercions, control }.serialize(serializer)
}
