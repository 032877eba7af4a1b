//! A suspended run as a value.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::approval::{Decision, Decisions};
use crate::loop_core::{AgentLoop, ApprovalRequest, PendingCall};
use crate::message::Conversation;
use crate::tool::question::Question;

/// A run as a value that can be stored and [resumed](super::Assistant::resume). The run waits for decisions, inputs or results, or the
/// value is a [snapshot](super::RunHandle::snapshot) of an active run.
///
/// [`RunOutput::snapshot`](super::RunOutput::snapshot) contains this value after a run was suspended. Store the value as JSON, show its
/// requests to a person, and resume the run with the decisions. In another process, approvals count only if they are signed: see
/// [`approval_key`](super::AssistantBuilder::approval_key). Later versions of the library read the JSON, but do not resume a signed run of
/// an [old version](super::ResumeError::OldVersion).
///
/// ```
/// use agent::model::reply;
/// use agent::{Assistant, Decision, ScriptedModel, tool, tools};
///
/// /// Pays an invoice.
/// #[tool(approval = "always")]
/// fn pay(invoice: String, amount: u64) -> String {
///     format!("{amount} for {invoice}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([
///     reply().tool_call("pay", r#"{"invoice": "A-7", "amount": 500}"#),
///     reply().text("Paid."),
/// ]);
/// let assistant = Assistant::builder(model).tools(tools![pay]).build()?;
/// let output = assistant.prompt("Pay A-7").await?;
///
/// let suspended = output.snapshot.expect("it waits");
/// assert_eq!(suspended.requests()[0].call.name, "pay");
/// let decisions = suspended.decide(|request| match request.arg::<u64>("amount") {
///     Ok(amount) if amount <= 1000 => Decision::Allow,
///     _ => Decision::Deny("too much".into()),
/// });
/// assert_eq!(assistant.resume(&suspended, decisions).await?.text(), "Paid.");
/// # Ok(()) }
/// ```
///
/// A suspended run contains the secret arguments of its calls, because the calls need them to run. Its requests and its `Debug` text
/// contain no secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SuspendedRun {
    run: Box<AgentLoop>,
}

impl SuspendedRun {
    pub(super) fn new(run: AgentLoop) -> Self {
        Self { run: Box::new(run) }
    }

    /// Returns the id of the run, the same as in its events.
    pub fn run_id(&self) -> &str {
        self.run.run_id()
    }

    /// Returns the messages of the conversation so far.
    pub fn conversation(&self) -> &Conversation {
        self.run.conversation()
    }

    /// Returns the calls of the run and its sub-agents that need a decision, in call order. A request can be serialized and shown to a
    /// person: it contains no secrets.
    pub fn requests(&self) -> Vec<ApprovalRequest> {
        self.run.approval_requests()
    }

    /// Returns the questions that tools of the run and its sub-agents ask a person, in call order. [`Decisions::accept`] answers a
    /// question.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, ToolContext, ToolError, model::reply, tool, tools};
    ///
    /// /// Orders tea.
    /// #[tool(asks)]
    /// async fn order_tea(cx: &ToolContext) -> Result<String, ToolError> {
    ///     Ok(format!("{} cups", cx.ask::<u8>("How many cups?").await?))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("order_tea", "{}")]);
    /// let assistant = Assistant::builder(model).tools(tools![order_tea]).build()?;
    /// let suspended = assistant.prompt("Tea!").await?.snapshot.expect("it waits");
    /// assert_eq!(suspended.questions()[0].message, "How many cups?");
    /// # Ok(()) }
    /// ```
    pub fn questions(&self) -> Vec<Question> {
        self.run.questions()
    }

    /// Returns everything that the run waits for: decisions, answers to questions, and the results of deferred calls, each with the handle
    /// that its tool gave.
    ///
    /// ```
    /// use agent::run::PendingCall;
    /// use agent::model::reply;
    /// use agent::{
    ///     Assistant, Decisions, ScriptedModel, SuspendedRun, ToolOutcome, ToolOutput, tool, tools,
    /// };
    ///
    /// /// Orders a translation; it comes tomorrow.
    /// #[tool]
    /// fn translate(text: String) -> ToolOutcome {
    ///     ToolOutcome::Deferred { handle: format!("order of {text:?}") }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("translate", r#"{"text": "tea"}"#), reply().text("Thé.")]);
    /// let assistant = Assistant::builder(model).tools(tools![translate]).build()?;
    /// let stored = serde_json::to_string(&assistant.prompt("Translate tea.").await?.snapshot)?;
    ///
    /// let suspended: SuspendedRun = serde_json::from_str(&stored)?;
    /// assert_eq!((suspended.run_id().is_empty(), suspended.conversation().len()), (false, 2));
    /// let [PendingCall::Deferred { call_id, handle, .. }] = &suspended.pending()[..] else { unreachable!() };
    /// assert_eq!(handle, "order of \"tea\"");
    /// let arrived = Decisions::new().deliver(call_id, ToolOutput::text("thé"));
    /// assert_eq!(assistant.resume(&suspended, arrived).await?.text(), "Thé.");
    /// # Ok(()) }
    /// ```
    pub fn pending(&self) -> Vec<PendingCall> {
        self.run.pending()
    }

    /// Calls a function for every [request](Self::requests), and returns the decisions of the function.
    pub fn decide(&self, mut decide: impl FnMut(&ApprovalRequest) -> Decision) -> Decisions {
        self.requests().iter().fold(Decisions::new(), |decisions, request| {
            let decision = decide(request);
            decisions.decide(request, decision)
        })
    }

    pub(super) fn as_loop(&self) -> &AgentLoop {
        &self.run
    }

    pub(super) fn into_loop(self) -> AgentLoop {
        *self.run
    }
}

impl fmt::Debug for SuspendedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedRun")
            .field("run_id", &self.run_id())
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}
