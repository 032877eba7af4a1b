//! Approvals: a function of the application decides on calls while the run waits, or decisions arrive later, also from another process.

mod again;
mod ask;
mod keys;
mod resume;
mod sign;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::loop_core::{ApprovalRequest, PendingCall, RunPath};
use crate::tool::BoxFuture;
use crate::tool::outcome::ToolOutcome;
use crate::tool::question::{Question, QuestionInput, RecordedInput};

#[cfg(feature = "durable-restate")]
pub(crate) use again::CheckedAgain;
pub(super) use keys::ApprovalKeys;
pub(super) use resume::{Resumption, can_resume_in, check, verify};
pub(super) use sign::Signer;

/// A decision on a call that needs approval.
///
/// ```
/// use agent::model::reply;
/// use agent::{Assistant, Decision, ScriptedModel, json, tool, tools};
///
/// /// Sends money.
/// #[tool(approval = "always")]
/// async fn send(amount: u64) -> String {
///     format!("{amount} sent")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("send", r#"{"amount": 500}"#), reply().text("Done.")]);
/// let assistant = Assistant::builder(model)
///     .tools(tools![send])
///     .on_approval(|request| async move {
///         println!("{} {}", request.call.name, request.call.args.text());
///         Decision::AllowWith(json!({"amount": 100}))
///     })
///     .build()?;
/// assistant.prompt("Send 500.").await?;
/// let result = assistant.messages().get(2).unwrap().text();
/// assert!(result.contains("100 sent"), "{result}");
/// # Ok(()) }
/// ```
///
/// The `Debug` text of a decision shows no arguments. The JSON of a decision contains changed arguments with their secrets, because the
/// call needs the secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// The call runs, unless its tool has changed since the request was made.
    Allow,
    /// The call runs with these arguments, which are validated and passed to the hooks
    /// ([`Hooks::before_tool_call`](super::Hooks::before_tool_call)). The result shows the model that the arguments were changed.
    ///
    /// The request shows each secret as the marker `"[secret]"`. If the new arguments keep a marker, the marker is replaced by the secret
    /// that the model sent. In a list, a marker is replaced only if its item is unchanged, and the list has as many items as before. If a
    /// marker cannot be replaced, the call is refused, because the secret is unknown.
    AllowWith(Value),
    /// The call does not run. The model receives the reason.
    Deny(String),
    /// The decision follows later. The run is suspended, and all calls for which a decision was requested at the same time wait.
    Later,
}

/// Shows no arguments, because they may contain secrets.
impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("Allow"),
            Self::AllowWith(_) => f.write_str("AllowWith(..)"),
            Self::Deny(reason) => f.debug_tuple("Deny").field(reason).finish(),
            Self::Later => f.write_str("Later"),
        }
    }
}

pub(super) type Approver = Arc<dyn Fn(ApprovalRequest) -> BoxFuture<'static, Decision> + Send + Sync>;

/// The decisions on calls, the answers to questions, and the results from outside, for [`Assistant::resume`](super::Assistant::resume).
///
/// The JSON of this type contains the secrets of changed arguments and delivered results, because the resumed run needs them. The requests
/// and the `Debug` text contain no secrets.
///
/// Each decision contains its request, so it counts only for the call and the arguments of this request. A decision can be stored and sent
/// like its request.
///
/// ```
/// use agent::model::reply;
/// use agent::{Assistant, Decisions, RunStop, ScriptedModel, tool, tools};
///
/// /// Pays an invoice.
/// #[tool(inline, approval = when(|amount: &u64| *amount > 100))]
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
/// assert_eq!(output.stop, RunStop::Suspended);
///
/// let suspended = output.snapshot.expect("it is suspended");
/// let requests = suspended.requests();
/// assert_eq!(requests[0].call.name, "pay");
/// let output = assistant.resume(&suspended, Decisions::new().allow(&requests[0])).await?;
/// assert_eq!(output.text(), "Paid.");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[must_use = "decisions are for `Assistant::resume`"]
pub struct Decisions {
    made: Vec<MadeDecision>,
    arrived: Vec<DeliveredOutcome>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<RecordedInput>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MadeDecision {
    request: ApprovalRequest,
    decision: Decision,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct DeliveredOutcome {
    call_id: String,
    /// The path of the run that waits, or `None` if the call may be in any run of the tree of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<RunPath>,
    outcome: ToolOutcome,
}

/// Shows no outcome, because it may contain secrets.
impl fmt::Debug for DeliveredOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call_id, path, outcome: _ } = self;
        let mut shown = f.debug_struct("DeliveredOutcome");
        shown.field("call_id", call_id).field("path", path).finish_non_exhaustive()
    }
}

impl Decisions {
    /// Creates an empty list of decisions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows the call with the arguments of the request.
    pub fn allow(self, request: &ApprovalRequest) -> Self {
        self.decide(request, Decision::Allow)
    }

    /// Allows the call with these arguments, which are validated and passed to the hooks. The result tells the model with which arguments
    /// the call ran.
    ///
    /// ```
    /// use agent::{Assistant, Decisions, ScriptedModel, json, model::reply, tool, tools};
    ///
    /// /// Sends money.
    /// #[tool(approval = "always")]
    /// fn send(to: String, amount: u64) -> String {
    ///     format!("{amount} sent to {to}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann", "amount": 500}"#), reply().text("Done.")]);
    /// let assistant = Assistant::builder(model).tools(tools![send]).build()?;
    /// let suspended = assistant.prompt("Send Ann 500.").await?.snapshot.expect("it waits");
    /// let request = &suspended.requests()[0];
    /// let less = Decisions::new().allow_with(request, json!({"to": "Ann", "amount": 5}));
    /// assistant.resume(&suspended, less).await?;
    /// assert!(assistant.messages().get(2).unwrap().text().contains("5 sent to Ann"));
    /// # Ok(()) }
    /// ```
    pub fn allow_with(self, request: &ApprovalRequest, args: impl Into<Value>) -> Self {
        self.decide(request, Decision::AllowWith(args.into()))
    }

    /// Denies the call. The model receives the reason.
    ///
    /// ```
    /// use agent::{Assistant, Decision, Decisions, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Sends a letter.
    /// #[tool(approval = "always")]
    /// fn send(to: String) -> String {
    ///     format!("sent to {to}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("send", r#"{"to": "Ann"}"#).tool_call("send", r#"{"to": "Bob"}"#),
    ///     reply().text("Ann has it, Bob does not."),
    /// ]);
    /// let assistant = Assistant::builder(model).tools(tools![send]).build()?;
    /// let suspended = assistant.prompt("Write to both.").await?.snapshot.expect("it waits");
    /// let [ann, bob] = &suspended.requests()[..] else { unreachable!() };
    /// let decisions = Decisions::new().decide(ann, Decision::Allow).deny(bob, "he has moved");
    /// assistant.resume(&suspended, decisions).await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "sent to Ann");
    /// assert!(assistant.messages().get(3).unwrap().text().contains("he has moved"));
    /// # Ok(()) }
    /// ```
    pub fn deny(self, request: &ApprovalRequest, reason: impl Into<String>) -> Self {
        self.decide(request, Decision::Deny(reason.into()))
    }

    /// Adds a [`Decision`] on a call. With [`Decision::Later`] the run keeps waiting.
    pub fn decide(mut self, request: &ApprovalRequest, decision: Decision) -> Self {
        self.made.push(MadeDecision { request: request.clone(), decision });
        self
    }

    /// Answers a [question](super::SuspendedRun::questions) of a tool. If the input does not fit the question, resuming the run fails.
    /// [`Question::check`] checks an input beforehand.
    ///
    /// ```
    /// use agent::{Assistant, Decisions, ScriptedModel, ToolContext, ToolError, model::reply, tool, tools};
    ///
    /// /// Orders tea.
    /// #[tool(asks)]
    /// async fn order_tea(cx: &ToolContext) -> Result<String, ToolError> {
    ///     let cups: u8 = cx.ask("How many cups?").await?;
    ///     Ok(format!("{cups} cups"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("order_tea", "{}"), reply().text("It comes.")]);
    /// let assistant = Assistant::builder(model).tools(tools![order_tea]).build()?;
    /// let suspended = assistant.prompt("Tea!").await?.snapshot.expect("it waits");
    /// let question = &suspended.questions()[0];
    /// let output = assistant.resume(&suspended, Decisions::new().accept(question, 2)).await?;
    /// assert_eq!((output.text(), assistant.messages().get(2).unwrap().text()), ("It comes.".into(), "2 cups".into()));
    /// # Ok(()) }
    /// ```
    pub fn accept(self, question: &Question, input: impl Into<Value>) -> Self {
        self.input(question, QuestionInput::Accept(input.into()))
    }

    /// Answers a question with a [`QuestionInput`], for example [`QuestionInput::Decline`]. With [`QuestionInput::Later`] the call keeps
    /// waiting.
    ///
    /// ```
    /// use agent::tool::QuestionInput;
    /// use agent::{Assistant, Decisions, ScriptedModel, ToolContext, ToolError, model::reply, tool, tools};
    ///
    /// /// Orders tea.
    /// #[tool(asks)]
    /// async fn order_tea(cx: &ToolContext) -> Result<String, ToolError> {
    ///     let cups: u8 = cx.ask("How many cups?").await?;
    ///     Ok(format!("{cups} cups"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("order_tea", "{}"), reply().text("No tea then.")]);
    /// let assistant = Assistant::builder(model).tools(tools![order_tea]).build()?;
    /// let suspended = assistant.prompt("Tea!").await?.snapshot.expect("it waits");
    /// let declined = Decisions::new().input(&suspended.questions()[0], QuestionInput::Decline);
    /// assistant.resume(&suspended, declined).await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "the person declined to answer");
    /// # Ok(()) }
    /// ```
    pub fn input(mut self, question: &Question, input: QuestionInput) -> Self {
        self.inputs.push(RecordedInput { question: question.clone(), input });
        self
    }

    /// Delivers the result of a call that its tool deferred ([`ToolOutcome::Deferred`]): a [`ToolOutput`](struct@crate::ToolOutput), or any
    /// other outcome that is not deferred.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{
    ///     Assistant, Decisions, RunStop, ScriptedModel, ToolOutcome, ToolOutput, tool, tools,
    /// };
    ///
    /// /// Orders a translation; it comes tomorrow.
    /// #[tool]
    /// fn translate(text: String) -> ToolOutcome {
    ///     ToolOutcome::Deferred { handle: format!("order of {text:?}") }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call_with_id("call_1", "translate", r#"{"text": "tea"}"#), reply().text("Thé.")]);
    /// let assistant = Assistant::builder(model).tools(tools![translate]).build()?;
    /// let output = assistant.prompt("Translate tea.").await?;
    /// assert_eq!(output.stop, RunStop::Suspended);
    /// let arrived = Decisions::new().deliver("call_1", ToolOutput::text("thé"));
    /// assert_eq!(assistant.resume(&output.snapshot.unwrap(), arrived).await?.text(), "Thé.");
    /// # Ok(()) }
    /// ```
    pub fn deliver(mut self, call_id: impl Into<String>, outcome: impl Into<ToolOutcome>) -> Self {
        self.arrived.push(DeliveredOutcome { call_id: call_id.into(), path: None, outcome: outcome.into() });
        self
    }

    /// Delivers the result of one of the calls that a [suspended run](super::SuspendedRun::pending) waits for. Use this method if calls of
    /// several sub-agents have the same id. Only a deferred call takes a result, not a call that waits for a decision or an input.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, Decisions, ScriptedModel, ToolOutcome, ToolOutput, tool, tools};
    ///
    /// /// Orders a translation; it comes tomorrow.
    /// #[tool]
    /// fn translate(text: String) -> ToolOutcome {
    ///     ToolOutcome::Deferred { handle: format!("order of {text:?}") }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("translate", r#"{"text": "tea"}"#), reply().text("Thé.")]);
    /// let translator = Assistant::builder(model).tools(tools![translate]).build()?;
    /// let model = ScriptedModel::new([reply().tool_call("ask_translator", r#"{"task": "Tea?"}"#), reply().text("It is thé.")]);
    /// let assistant = Assistant::builder(model).tools(translator.as_tool("ask_translator", "Translates.")).build()?;
    ///
    /// let suspended = assistant.prompt("Tea in French?").await?.snapshot.expect("it waits");
    /// let arrived = Decisions::new().deliver_to(&suspended.pending()[0], ToolOutput::text("thé"));
    /// assert_eq!(assistant.resume(&suspended, arrived).await?.text(), "It is thé.");
    /// # Ok(()) }
    /// ```
    pub fn deliver_to(mut self, call: &PendingCall, outcome: impl Into<ToolOutcome>) -> Self {
        let (PendingCall::Deferred { call_id, path, .. }
        | PendingCall::Approval { call_id, path, .. }
        | PendingCall::Question { call_id, path, .. }) = call;
        let (call_id, path) = (call_id.clone(), Some(path.clone()));
        self.arrived.push(DeliveredOutcome { call_id, path, outcome: outcome.into() });
        self
    }
}
