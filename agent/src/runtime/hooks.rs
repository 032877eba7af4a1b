//! What an application may change in a run.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::loop_core::TurnSummary;
use crate::message::{CustomMessage, Message, MessageList, Part, ToolCall};
use crate::model::ModelRequest;
use crate::{BoxFuture, CancelToken, Control, ToolContext, ToolOutcome};

/// What a hook returns when it fails.
///
/// ```
/// use agent::{Assistant, HookError, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::BuildError> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .before_request(|_request| async { Err(HookError::from("the budget is spent")) })
///     .build()?;
/// assert!(assistant.prompt("Hi").await.unwrap_err().to_string().contains("the budget is spent"));
/// # Ok(()) }
/// ```
pub type HookError = Box<dyn Error + Send + Sync>;

/// What an application may change in a run. Every method has a default that changes nothing; single ones can be
/// given as closures to the [builder](super::AssistantBuilder).
///
/// Hooks are asked in the order they were added, each sees what the one before it left. A turn asks them in this
/// order, after the tools of the turn are [chosen](super::AssistantBuilder::prepare_tools): [`transform_context`](Self::transform_context), [`convert`](Self::convert),
/// [`before_request`](Self::before_request), then for each call [`before_tool_call`](Self::before_tool_call) and
/// [`after_tool_call`](Self::after_tool_call), and [`on_turn_end`](Self::on_turn_end) when the run could go on. Cancelling
/// the run drops a hook that waits.
///
/// ```
/// use agent::model::{ScriptedModel, reply};
/// use agent::{Assistant, BeforeCall, BoxFuture, HookError, Hooks, ToolCallInfo, tool, tools};
///
/// /// Deletes a file.
/// #[tool]
/// fn delete(path: String) -> String {
///     format!("{path} is gone")
/// }
///
/// struct Guard;
/// impl Hooks for Guard {
///     fn before_tool_call(&self, call: ToolCallInfo) -> BoxFuture<'_, Result<BeforeCall, HookError>> {
///         Box::pin(async move {
///             Ok(if call.call().name == "delete" { BeforeCall::block("ask the owner first") } else { BeforeCall::Continue })
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("delete", r#"{"path": "a"}"#), reply().text("I may not.")]);
/// let assistant = Assistant::builder(model).tools(tools![delete]).hooks(Guard).build()?;
/// assistant.prompt("Delete a").await?;
/// assert_eq!(assistant.messages().get(2).unwrap().text(), "ask the owner first");
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/hooks.md")]
#[expect(unused_variables, reason = "the defaults change nothing")]
pub trait Hooks: Send + Sync {
    /// Other messages for this request; the conversation is not changed. What it gives is made
    /// [sound](crate::message::Conversation::repair) before it is sent.
    fn transform_context(
        &self,
        messages: MessageList,
        cancel: CancelToken,
    ) -> BoxFuture<'_, Result<MessageList, HookError>> {
        Box::pin(std::future::ready(Ok(messages)))
    }

    /// What a model is sent of an application's own message; none leaves it out. The default is what the message
    /// says itself.
    fn convert(&self, message: &CustomMessage) -> Option<Vec<Part>> {
        message.for_model.clone()
    }

    /// Another model's settings, tools or messages for this request.
    fn before_request(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelRequest, HookError>> {
        Box::pin(std::future::ready(Ok(request)))
    }

    /// The same, with the context of the run: the state of the prompt and of the assistant, its source, its ids. This is what
    /// a run asks; by default it asks [`before_request`](Self::before_request).
    fn before_request_in(
        &self,
        request: ModelRequest,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ModelRequest, HookError>> {
        self.before_request(request)
    }

    /// Whether a checked call may run, and with which arguments. An error is the result of the call, with the code
    /// `hook_error`.
    ///
    /// Hooks are asked before a person is asked for approval. Where that person changed the arguments, they are asked once
    /// more, about the changed ones. Then only [`BeforeCall::Block`] and an error count: the person's decision is the
    /// approval, and it is for exactly these arguments, so [`BeforeCall::RequireApproval`] and [`BeforeCall::Replace`]
    /// change nothing. What must hold in any case is blocked, not replaced.
    fn before_tool_call(&self, call: ToolCallInfo) -> BoxFuture<'_, Result<BeforeCall, HookError>> {
        Box::pin(std::future::ready(Ok(BeforeCall::Continue)))
    }

    /// Changes a result. Asked about bodies that ended by themselves; not about calls that never ran, were
    /// interrupted or timed out. An error replaces the result, with the code `hook_error`.
    fn after_tool_call(
        &self,
        call: ToolCallInfo,
        outcome: ToolOutcome,
    ) -> BoxFuture<'_, Result<AfterCall, HookError>> {
        Box::pin(std::future::ready(Ok(AfterCall::default())))
    }

    /// Whether the run goes on after this turn: `Some(false)` ends it, `Some(true)` asks the model again, `None` is
    /// no opinion.
    fn on_turn_end(&self, summary: TurnSummary) -> BoxFuture<'_, Result<Option<bool>, HookError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// One call, as hooks see it. Cloning is one reference count.
///
/// ```
/// use agent::message::Message;
/// use agent::{Assistant, BeforeCall, ScriptedModel, ToolCallInfo, json, model::reply, tool, tools};
///
/// /// Adds two numbers.
/// #[tool(inline)]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().text("I add.").tool_call("add", r#"{"a": "1", "b": 2}"#), reply().text("3")]);
/// let assistant = Assistant::builder(model)
///     .tools(tools![add])
///     .before_tool_call(|call: ToolCallInfo| async move {
///         let is_known = call.context().run_id().is_some()
///             && call.assistant().map(Message::text).as_deref() == Some("I add.")
///             && call.call().args.text() == r#"{"a": "1", "b": 2}"#                // as the model sent them
///             && *call.args() == json!({"a": 1, "b": 2});                         // as they will run
///         Ok(if is_known { BeforeCall::Continue } else { BeforeCall::block("unknown") })
///     })
///     .build()?;
/// assistant.prompt("1 + 2?").await?;
/// assert_eq!(assistant.messages().get(2).unwrap().text(), "3");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ToolCallInfo {
    inner: Arc<CallInner>,
}

struct CallInner {
    assistant: Option<Arc<Message>>,
    call: ToolCall,
    args: Value,
    context: ToolContext,
}

impl ToolCallInfo {
    pub(super) fn new(
        assistant: Option<Arc<Message>>,
        call: ToolCall,
        args: Value,
        context: ToolContext,
    ) -> Self {
        Self { inner: Arc::new(CallInner { assistant, call, args, context }) }
    }

    /// The reply that asks for it; none where the call was not made by a model.
    pub fn assistant(&self) -> Option<&Message> {
        self.inner.assistant.as_deref()
    }

    /// The call, as it would run.
    pub fn call(&self) -> &ToolCall {
        &self.inner.call
    }

    /// Its arguments, checked and coerced.
    pub fn args(&self) -> &Value {
        &self.inner.args
    }

    /// The context of the run: its state, its ids.
    pub fn context(&self) -> &ToolContext {
        &self.inner.context
    }
}

/// Without the arguments: they may hold secrets, and this text goes into logs.
impl fmt::Debug for ToolCallInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCallInfo").field("call", self.call()).finish_non_exhaustive()
    }
}

/// What a hook says to a call.
///
/// ```
/// use agent::{Assistant, BeforeCall, ScriptedModel, json, model::reply, tool, tools};
///
/// /// Sends money.
/// #[tool]
/// fn send(to: String, amount: u64) -> String {
///     format!("{amount} sent to {to}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann", "amount": 500}"#), reply().text("Done.")]);
/// let assistant = Assistant::builder(model)
///     .tools(tools![send])
///     .before_tool_call(|call| async move {
///         let args = call.args();
///         Ok(match args["amount"].as_u64() {
///             Some(0..=100) => BeforeCall::Continue,
///             _ => BeforeCall::Replace(json!({"to": args["to"], "amount": 100})),
///         })
///     })
///     .build()?;
/// assistant.prompt("Send Ann 500.").await?;
/// assert!(assistant.messages().get(2).unwrap().text().contains("100 sent to Ann"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BeforeCall {
    /// It runs.
    Continue,
    /// It runs with these arguments, which are checked again.
    Replace(Value),
    /// It does not run: the result is `denied`, code `blocked`.
    #[non_exhaustive]
    Block {
        /// What the model is told.
        reason: String,
        /// Whether the run goes on.
        control: Control,
    },
    /// Somebody has to say whether it runs.
    RequireApproval,
}

impl BeforeCall {
    /// It does not run, for this reason.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block { reason: reason.into(), control: Control::Continue }
    }

    /// It does not run, and the run goes on or ends as `control` says: at once, or if every result of the turn says so.
    ///
    /// ```
    /// use agent::{Assistant, BeforeCall, Control, RunStop, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Deletes a file.
    /// #[tool]
    /// fn delete(path: String) -> String {
    ///     format!("{path} is gone")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("delete", r#"{"path": "notes.txt"}"#),
    ///     reply().tool_call("delete", r#"{"path": "/etc/passwd"}"#),
    /// ]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![delete])
    ///     .before_tool_call(|call| async move {
    ///         Ok(match call.args()["path"].as_str() {
    ///             Some(path) if path.starts_with('/') => BeforeCall::block_and("only relative paths", Control::EndNow),
    ///             _ => BeforeCall::block("ask the owner first"),
    ///         })
    ///     })
    ///     .build()?;
    /// let output = assistant.prompt("Clean up.").await?;
    /// assert_eq!((output.turns, output.stop), (2, RunStop::Terminated));
    /// assert_eq!(output.messages[2].text(), "ask the owner first");
    /// assert_eq!(output.messages[4].text(), "only relative paths");
    /// # Ok(()) }
    /// ```
    pub fn block_and(reason: impl Into<String>, control: Control) -> Self {
        Self::Block { reason: reason.into(), control }
    }
}

/// What a hook changes in a result, field by field.
///
/// ```
/// use agent::model::{ScriptedModel, reply};
/// use agent::{AfterCall, Assistant, message::Part, tool, tools};
///
/// /// Reads a page.
/// #[tool(read_only)]
/// fn read_page() -> &'static str {
///     "call 555-0100 now"
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("read_page", "{}"), reply().text("Done.")]);
/// let assistant = Assistant::builder(model)
///     .tools(tools![read_page])
///     .after_tool_call(|_call, outcome| async move {
///         let text = outcome.text().replace("555-0100", "[number]");
///         Ok(AfterCall { content: Some(vec![Part::text(text)]), ..AfterCall::default() })
///     })
///     .build()?;
/// assistant.prompt("Read it.").await?;
/// assert_eq!(assistant.messages().get(2).unwrap().text(), "call [number] now");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AfterCall {
    /// Other content for the model.
    pub content: Option<Vec<Part>>,
    /// Other metadata.
    pub metadata: Option<Map<String, Value>>,
    /// True makes it a failure (code `hook_set_error`, unless it has one); false makes it complete.
    pub is_error: Option<bool>,
    /// Whether the run goes on.
    pub control: Option<Control>,
}
