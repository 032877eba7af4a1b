//! The events of a run.

use std::sync::Arc;

use super::secrets::EventSecrets;
use super::{PendingCall, RunPath, RunStop};
use crate::message::{HandOffLosses, Message, StopReason, ToolArguments, ToolCall, Usage};
use crate::model::ModelEvent;
use crate::tool::outcome::ToolResult;
use crate::tool::output::Control;
use crate::tool::progress::Progress;
use crate::tool::question::Question;

/// An event of a run.
///
/// As JSON, an event is one flat object for user interfaces and logs: `{"run_id", "turn", "seq", "type", …}`. The JSON hides [secret
/// arguments](crate::guide::arguments#secrets): each is written as `"[secret]"`. While a reply streams, all arguments of a tool with
/// secret arguments are left out. If any tool has secret arguments, the arguments of calls to unknown tools are left out, too.
/// [`with_secrets`](Self::with_secrets) writes all arguments.
///
/// ```
/// use agent::{Assistant, ScriptedModel, Value};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let mut run = assistant.prompt("Hi").stream();
/// let event = run.next().await.expect("a run has events");
/// let json: Value = serde_json::to_value(&*event)?;
/// assert_eq!((json["type"].as_str(), json["turn"].as_u64()), (Some("agent_start"), Some(0)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The turn, counted from 1; 0 for `agent_start`.
    pub turn: u32,
    /// The sequence number in the run, counted from 1 without gaps.
    pub seq: u64,
    /// The path from the root to the run. Empty unless the event belongs to a sub-agent. The JSON leaves out an empty path.
    pub path: RunPath,
    /// The kind of the event, with its data.
    pub kind: EventKind,
    pub(super) shown: EventSecrets,
}

impl Event {
    /// Returns whether the event belongs to the root run, and not to a [sub-agent](RunPath). A listener that prints text usually prints
    /// only the events of the root run.
    ///
    /// ```
    /// use agent::{Assistant, EventKind, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let expert = Assistant::builder(ScriptedModel::new(["At 8:15."])).build()?;
    /// let model = ScriptedModel::new([reply().tool_call("ask", r#"{"task": "When?"}"#), reply().text("Early.")]);
    /// let assistant = Assistant::builder(model).tools(expert.as_tool("ask", "Knows trains.")).build()?;
    /// let mut run = assistant.prompt("When?").stream();
    /// let (mut said, mut of_experts) = (String::new(), String::new());
    /// while let Some(event) = run.next().await {
    ///     said += event.text_delta().unwrap_or_default();
    ///     if let (false, EventKind::MessageUpdate { update, .. }) = (event.is_own(), &event.kind) {
    ///         of_experts += update.text_delta().unwrap_or_default();
    ///     }
    /// }
    /// assert_eq!((said.as_str(), of_experts.as_str()), ("Early.", "At 8:15."));
    /// # Ok(()) }
    /// ```
    pub fn is_own(&self) -> bool {
        self.path.is_root()
    }

    /// Returns the text that the event adds to the reply of the root run. Returns `None` for any other event, and for events of sub-agents.
    pub fn text_delta(&self) -> Option<&str> {
        match &self.kind {
            EventKind::MessageUpdate { update } if self.is_own() => update.text_delta(),
            _ => None,
        }
    }
}

#[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
impl Event {
    pub(crate) fn without_secrets(&self, tool: &str, args: &ToolArguments) -> ToolArguments {
        self.shown.secrets.arguments(tool, args).unwrap_or_else(|| args.clone())
    }
}

#[cfg(all(feature = "runtime", any(feature = "ui-ai-sdk", feature = "ui-ag-ui")))]
impl Event {
    /// Creates an event from which the caller has already removed secrets.
    pub(crate) fn new(run_id: Arc<str>, turn: u32, seq: u64, kind: EventKind) -> Self {
        Self { run_id, turn, seq, path: RunPath::default(), kind, shown: EventSecrets::default() }
    }
}

/// The kinds of events, with their data.
///
/// The events of a run come in this order:
///
/// ```text
/// stream    := agent_start turn+ agent_end
/// turn      := turn_start inject* reply_continued? view* ( cut view* )* ( assistant segment* )? turn_end
/// cut       := assistant                                               a cut reply, after which the request is made again
/// inject    := message_start message_end                               of a user or custom message
/// view      := context_near | context_cleared | compaction_start compaction_end | request_delayed | budget_near | model_switched
/// assistant := message_start message_update* message_end
/// segment   := preflight+ approvals? running results
/// preflight := tool_execution_start tool_execution_end?                an end here: the call does not run
/// approvals := approval_required+ ( run_suspended run_resumed )* ( approval_resolved tool_execution_end? )*
/// running   := ( tool_execution_update | question_asked | question_resolved | tool_execution_end )*
///            | running run_suspended run_resumed running               deferred calls, questions
/// results   := ( message_start message_end )+                          one for each call of the segment
/// ```
///
/// Each call has exactly one start event, one end event and one result message, and any number of updates between start and end. Start
/// events are in call order, and end events are in the order in which calls finish. A segment is a group of calls that run concurrently;
/// result messages are in call order, at the end of the segment. If a resumed run needs further decisions on calls, `approval_required`
/// and `approval_resolved` follow once more before these calls run. `agent_end` is always the last event.
///
/// As JSON, the `type` field of an event has the name of the kind in snake case: [`AgentStart`](Self::AgentStart) is `agent_start`.
///
/// ```
/// use agent::{Assistant, EventKind, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let mut run = assistant.prompt("Hi").stream();
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
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// The run starts.
    AgentStart,
    /// A turn starts. A turn is one reply of the model and the calls in it.
    TurnStart,
    /// A message starts.
    #[non_exhaustive]
    MessageStart {
        /// The message. For a streamed reply, this is the initial, empty message.
        message: Arc<Message>,
    },
    /// A streamed reply changes. Either a part starts, grows or ends, or a whole part arrives, such as an image or a citation source
    /// ([`ModelEvent::Part`]), or data of the provider arrives.
    ///
    /// A streamed answer [of a type](crate::run::Prompt::output) is checked when the answer is complete. If the answer is refused, its
    /// updates have already been emitted. The next `turn_start` of the run means that these updates are void, because the model then
    /// answers once more. For an answer by a call, the `tool_execution_end` of this call has the refusal.
    #[non_exhaustive]
    MessageUpdate {
        /// The change. [`text_delta`](ModelEvent::text_delta) returns the added text.
        update: ModelEvent,
    },
    /// A message is complete and part of the conversation.
    #[non_exhaustive]
    MessageEnd {
        /// The message.
        message: Arc<Message>,
        /// The id of the message, if the message was queued for steering or as a follow-up.
        queued_id: Option<String>,
    },
    /// A call starts. The JSON has the fields `call_id`, `tool` and `args` of the call.
    #[non_exhaustive]
    ToolExecutionStart {
        /// The call, as the model sent it.
        call: ToolCall,
    },
    /// A tool reported the progress of a call.
    #[non_exhaustive]
    ToolExecutionUpdate {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The progress that the tool reported.
        partial: Progress,
    },
    /// A call waits for a decision.
    #[non_exhaustive]
    ApprovalRequired {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The validated arguments.
        args: ToolArguments,
        /// The id of the approval request.
        request_id: String,
    },
    /// A decision was made on a call.
    #[non_exhaustive]
    ApprovalResolved {
        /// The call's id.
        call_id: String,
        /// Whether the decision allowed the call. As JSON: `decision`, which is `allow` or `deny`.
        allowed: bool,
        /// Whether the decision changed the arguments.
        edited: bool,
    },
    /// The tool of a call asks a person. The JSON has the `request_id`, `call_id`, `tool` and `message` of the question, and its `report`
    /// if there is one.
    #[non_exhaustive]
    QuestionAsked {
        /// The question.
        question: Box<Question>,
    },
    /// A question is resolved.
    #[non_exhaustive]
    QuestionResolved {
        /// The id of the question.
        request_id: String,
        /// The call's id.
        call_id: String,
        /// Whether the question has an input. Without an input, the person declined or dismissed the question, or could not be asked.
        accepted: bool,
    },
    /// A call ended. In the JSON, the field `result` is replaced by the fields of the result message and by `coercions`. A `control` of
    /// [`Continue`](Control::Continue) is left out.
    #[non_exhaustive]
    ToolExecutionEnd {
        /// The result, including the coercions of the arguments.
        result: ToolResult,
        /// The effect of the call on the run.
        control: Control,
        /// Whether the tool ran. False if the call ended earlier, for example because its arguments were refused. Also false if the run
        /// ended before the end of the call was recorded.
        ran: bool,
        /// Whether the result was reused from an earlier call.
        cached: bool,
        /// The attempt, counted from 1.
        attempt: u32,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// A turn is over.
    #[non_exhaustive]
    TurnEnd {
        /// The reason why the reply ended. `None` if the turn has no reply.
        assistant: Option<StopReason>,
        /// The ids of the calls of the turn, in call order.
        tool_results: Vec<String>,
        /// The usage of the replies of the turn, and of the sub-agents that ended in it. The usage of summaries is not included.
        usage: Usage,
    },
    /// The run waits for decisions, inputs or results from outside.
    #[non_exhaustive]
    RunSuspended {
        /// The calls that the run waits for.
        pending: Vec<PendingCall>,
    },
    /// A suspended run continues.
    RunResumed,
    /// The run is over.
    #[non_exhaustive]
    AgentEnd {
        /// How the run ended. A run whose last answer does not fit the [requested type](crate::run::Prompt::output) is `completed`, too:
        /// the answer is read after this event, and the caller gets [`RunError::Output`](crate::RunError::Output).
        stop: RunStop,
        /// The error message, the reason of the cancellation, or the name of the limit. `None` for any other end.
        detail: Option<String>,
        /// Every message that the run added.
        messages: Vec<Arc<Message>>,
        /// The usage of the run.
        usage: Usage,
    },
    /// The next request uses more than 90 % of its allowed tokens. Emitted again only after a request used 90 % or less.
    #[non_exhaustive]
    ContextNear {
        /// The estimated tokens of the request.
        used: u64,
        /// The tokens that the request may have.
        usable: u64,
    },
    /// From the next request on, some results are sent to the model as one line each. The conversation keeps the whole results.
    #[non_exhaustive]
    ContextCleared {
        /// The number of results that are sent as one line each.
        results: usize,
        /// The estimated tokens of the next request before the change.
        tokens_before: u64,
        /// The estimated tokens of the next request after the change.
        tokens_after: u64,
        /// The number of the change in the conversation, counted from 1.
        generation: u32,
    },
    /// A model is asked for a summary. The summary will be sent to the model of the run in place of the earlier messages.
    #[non_exhaustive]
    CompactionStart {
        /// The reason: `size`, or `too_long` after the provider refused the request.
        reason: &'static str,
        /// The number of messages that the summary will replace.
        messages: usize,
        /// The estimated tokens of the next request.
        tokens: u64,
    },
    /// A compaction ended. The summary replaces the earlier messages, or, if the summary failed, the model still gets the same messages.
    #[non_exhaustive]
    CompactionEnd {
        /// The estimated tokens of the next request before the change.
        tokens_before: u64,
        /// The estimated tokens of the next request after the change.
        tokens_after: u64,
        /// The usage of the requests for the summary. The usage of the run includes this usage.
        usage: Usage,
        /// The model that was asked for the summary.
        model: String,
        /// The reason why there is no summary. `None` if the summary replaces the messages.
        error: Option<String>,
    },
    /// The token limit cut the answer, and the model is asked to [continue](crate::AssistantBuilder::continue_length) it.
    #[non_exhaustive]
    ReplyContinued {
        /// The number of continuations in a row, counted from 1.
        count: u32,
    },
    /// A request waited before it was sent, because of [limits](crate::model::RateLimits), or because the provider of a model in a
    /// [`Fallback`](crate::model::Fallback) rejected an earlier attempt with a rate limit.
    #[non_exhaustive]
    RequestDelayed {
        /// The time that the request waited, in milliseconds.
        waited_ms: u64,
        /// The limit: `requests`, `tokens`, `concurrency`, or `provider` after a rate limit of the provider.
        limit: String,
    },
    /// At least 80 % of a [budget](crate::run::Budget) are spent. Emitted before a request, once in a run for each budget.
    #[non_exhaustive]
    BudgetNear {
        /// The name of the budget.
        budget: String,
        /// The share that is spent, as a number between 0 and 1.
        share: f64,
    },
    /// A reply comes from another model than the previous reply.
    #[non_exhaustive]
    ModelSwitched {
        /// The model of the previous reply, as `PROVIDER/MODEL`.
        from: String,
        /// The model of the new reply, as `PROVIDER/MODEL`.
        to: String,
        /// Counts of the parts of the conversation that are not sent to the new model.
        losses: HandOffLosses,
    },
}
