//! Hooks: functions of the application that can change a run.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::checked::CheckedArguments;
use super::turn_start::TurnStart;
use crate::args::ArgumentError;
use crate::loop_core::TurnSummary;
use crate::message::{CustomMessage, Message, MessageList, Part, ToolCall};
use crate::model::ModelRequest;
use crate::panics::{DropsQuietly, catch, catch_future};
use crate::tool::BoxFuture;
use crate::tool::cancel::CancelToken;
use crate::tool::context::ToolContext;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::Control;

/// The error type of hooks.
///
/// ```
/// use agent::{Assistant, ScriptedModel, hooks::HookError};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::run::BuildError> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .before_request(|_request, _context| async { Err(HookError::from("the budget is spent")) })
///     .build()?;
/// assert!(assistant.prompt("Hi").await.unwrap_err().to_string().contains("the budget is spent"));
/// # Ok(()) }
/// ```
pub type HookError = Box<dyn Error + Send + Sync>;

/// Functions of the application that can change a run.
///
/// Every method has a default that changes nothing. To set a single hook, pass a closure to the [builder](super::AssistantBuilder).
///
/// Hooks run in the order in which they were added. A hook that changes a value receives the value from the previous hook. In each turn,
/// the methods are called in this order: [`prepare_tools`](Self::prepare_tools), [`select_model`](Self::select_model),
/// [`transform_context`](Self::transform_context), [`convert`](Self::convert), [`before_request`](Self::before_request), then
/// [`before_tool_call`](Self::before_tool_call) and [`after_tool_call`](Self::after_tool_call) for each call, and
/// [`on_turn_end`](Self::on_turn_end) if the run could continue. When the run is cancelled, a pending hook is dropped.
///
/// ```
/// use agent::model::reply;
/// use agent::hooks::{HookError, Hooks, ToolCallInfo};
/// use agent::{Assistant, BeforeCall, BoxFuture, ScriptedModel, tool, tools};
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
    /// Chooses the model of a turn, after its [tools](Self::prepare_tools) and before its request. The future returns the name of a [named
    /// model](super::AssistantBuilder::named_model), or `None` for no choice. The last hook that names a model decides. If no model has the
    /// name, the run fails.
    ///
    /// Hooks that never choose a model return `None` instead of a future, like the default. On a durable engine, such as Restate, each
    /// choice is a recorded step. So only `turn` may decide whether the function returns a future. The function itself must have no
    /// effects, because its future is not always awaited.
    fn select_model(&self, turn: &TurnStart) -> Option<BoxFuture<'_, Result<Option<String>, HookError>>> {
        None
    }

    /// Chooses the tools of a turn. The future returns the turn [without](TurnStart::filter) some of its tools. Hooks that never choose
    /// tools return `None` instead of a future, as in [`select_model`](Self::select_model).
    ///
    /// A tool that is removed from a turn is an unknown tool in that turn, even if the conversation mentions it.
    ///
    /// ```
    /// use agent::hooks::{HookError, Hooks, TurnStart};
    /// use agent::{Assistant, BoxFuture, ScriptedModel, tool, tools};
    ///
    /// /// Reads the plan.
    /// #[tool(read_only)]
    /// fn read_plan() {}
    ///
    /// /// Carries it out.
    /// #[tool]
    /// fn carry_out() {}
    ///
    /// struct LookFirst;
    /// impl Hooks for LookFirst {
    ///     fn prepare_tools(&self, turn: &TurnStart) -> Option<BoxFuture<'_, Result<TurnStart, HookError>>> {
    ///         let turn = turn.clone();
    ///         Some(Box::pin(async move {
    ///             let is_first = turn.turn() == 1;
    ///             Ok(turn.filter(|tool| !is_first || tool.read_only() == Some(true)))
    ///         }))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Read."]);
    /// let assistant = Assistant::builder(model.clone()).tools(tools![read_plan, carry_out]).hooks(LookFirst).build()?;
    /// assistant.prompt("Go on.").await?;
    /// assert_eq!(model.requests()[0].tools.len(), 1);
    /// # Ok(()) }
    /// ```
    fn prepare_tools(&self, turn: &TurnStart) -> Option<BoxFuture<'_, Result<TurnStart, HookError>>> {
        None
    }

    /// Returns the messages of a request, made from the messages of the conversation. If the context is
    /// [managed](super::AssistantBuilder::manage_context), the hook receives the messages after clearing and summarizing. The conversation
    /// itself does not change. The returned messages are [repaired](crate::message::Conversation::repair) before they are sent.
    fn transform_context(
        &self,
        messages: MessageList,
        cancel: CancelToken,
    ) -> BoxFuture<'_, Result<MessageList, HookError>> {
        Box::pin(std::future::ready(Ok(messages)))
    }

    /// Returns the parts that the model receives for a custom message of the application, or `None` to leave the message out.
    ///
    /// The default is [`for_model`](CustomMessage::for_model) of the message.
    fn convert(&self, message: &CustomMessage) -> Option<Vec<Part>> {
        message.for_model.clone()
    }

    /// Changes the settings, tools or messages of a request before it is sent. The hook receives the context of the run: the state of the
    /// prompt and of the assistant, the source and the ids.
    fn before_request(
        &self,
        request: ModelRequest,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ModelRequest, HookError>> {
        Box::pin(std::future::ready(Ok(request)))
    }

    /// Decides whether a validated call may run, and with which arguments. An error becomes the result of the call, with the code
    /// `hook_error`.
    ///
    /// The hook is called before a person is asked for approval. If the person changes the arguments, the hook is called again with the
    /// changed arguments. The person approved exactly these arguments, so [`BeforeCall::RequireApproval`] and [`BeforeCall::Replace`] are
    /// ignored in the second call. To enforce a rule in every case, use [`BeforeCall::Block`] or an error.
    ///
    /// When a suspended run is resumed, the hook is called again for each call that is about to run. The hook receives the arguments of
    /// the model, or of the person who changed them. [`BeforeCall::Block`] and errors take effect. [`BeforeCall::RequireApproval`] accepts
    /// an earlier decision for the same arguments. Otherwise, a new decision is requested under a new request id: the run is suspended
    /// again, or its approver is called. Until the new decision, none of the waiting calls runs.
    fn before_tool_call(&self, call: ToolCallInfo) -> BoxFuture<'_, Result<BeforeCall, HookError>> {
        Box::pin(std::future::ready(Ok(BeforeCall::Continue)))
    }

    /// Changes the result of a call whose tool returned or panicked.
    ///
    /// The hook is not called for calls that did not run, were deferred, were interrupted or timed out. An error replaces the result, with
    /// the code `hook_error`.
    fn after_tool_call(
        &self,
        call: ToolCallInfo,
        outcome: ToolOutcome,
    ) -> BoxFuture<'_, Result<AfterCall, HookError>> {
        Box::pin(std::future::ready(Ok(AfterCall::default())))
    }

    /// Decides whether the run continues after this turn: `Some(false)` ends the run, `Some(true)` asks the model again, and `None` leaves
    /// the decision to the run.
    fn on_turn_end(&self, summary: TurnSummary) -> BoxFuture<'_, Result<Option<bool>, HookError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// A tool call that is passed to hooks. Cloning it only increments a reference count.
///
/// ```
/// use agent::message::Message;
/// use agent::hooks::ToolCallInfo;
/// use agent::{Assistant, BeforeCall, ScriptedModel, json, model::reply, tool, tools};
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
///             && *call.args() == json!({"a": 1, "b": 2})                          // as they will run
///             && call.arg::<i64>("a")? == 1;                                      // one of them, by its type
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
    /// The checked arguments; `None` if they were refused.
    checked: Option<Arc<CheckedArguments>>,
    context: ToolContext,
}

impl ToolCallInfo {
    pub(super) fn new(
        assistant: Option<Arc<Message>>,
        call: ToolCall,
        checked: Option<Arc<CheckedArguments>>,
        context: ToolContext,
    ) -> Self {
        Self { inner: Arc::new(CallInner { assistant, call, checked, context }) }
    }

    /// Returns the reply that made the call, or `None` if the call was not made by a model.
    pub fn assistant(&self) -> Option<&Message> {
        self.inner.assistant.as_deref()
    }

    /// Returns the call. The call runs with its arguments, unless a later hook replaces them.
    pub fn call(&self) -> &ToolCall {
        &self.inner.call
    }

    /// Returns the validated and coerced arguments. Returns `null` if the arguments were refused, or if only the tool itself can parse
    /// them. To base a decision on one argument, use [`arg`](Self::arg), which reports a misspelled name.
    pub fn args(&self) -> &Value {
        self.inner.checked.as_ref().map_or(&Value::Null, |checked| checked.value())
    }

    /// Returns one top-level argument as the tool receives it. A number keeps all its digits, even if [`args`](Self::args) rounds the
    /// number. `name` is the name of the parameter, even if the model used an alias.
    ///
    /// If the call omits the parameter, returns its default, or `None` for an `Option` without a default. The name of a parameter that the
    /// tool does not have is an error, so check the [tool](ToolCall::name) first. The schema of the tool decides how the argument is
    /// coerced before the conversion to `T`. A tool that parses its arguments by hand may read the same argument differently.
    ///
    /// ```
    /// use agent::{Assistant, BeforeCall, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Sends money.
    /// #[tool]
    /// fn send(to: String, #[arg(alias = "sum")] amount: u128) -> String {
    ///     format!("{amount} sent to {to}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann", "sum": "500"}"#), reply().text("I may not.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![send])
    ///     .before_tool_call(|call| async move {
    ///         if call.call().name == "send" && call.arg::<u128>("amount")? > 100 {
    ///             return Ok(BeforeCall::block("100 at most"));
    ///         }
    ///         Ok(BeforeCall::Continue)
    ///     })
    ///     .build()?;
    /// assistant.prompt("Send Ann 500.").await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "100 at most");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the arguments were refused, if the tool has no such parameter, or if the value does not fit `T`. Also fails if the call
    /// omits a parameter without a default, unless `T` is an `Option`. A [hook](Hooks::before_tool_call) that returns the error with `?`
    /// ends the call.
    pub fn arg<T: DeserializeOwned>(&self, name: &str) -> Result<T, ArgumentError> {
        let inner = &*self.inner;
        match &inner.checked {
            Some(checked) => checked.plan().argument(checked.text(), name),
            None => Err(ArgumentError::unreadable(&inner.call.name)),
        }
    }

    /// Returns the context of the run, with its state and ids.
    pub fn context(&self) -> &ToolContext {
        &self.inner.context
    }
}

/// Omits the arguments, because they may contain secrets, and `Debug` texts are written to logs.
impl fmt::Debug for ToolCallInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCallInfo").field("call", self.call()).finish_non_exhaustive()
    }
}

/// The decision of a hook on a call.
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
///         Ok(match call.arg::<u64>("amount")? {
///             0..=100 => BeforeCall::Continue,
///             _ => BeforeCall::Replace(json!({"to": call.arg::<String>("to")?, "amount": 100})),
///         })
///     })
///     .build()?;
/// assistant.prompt("Send Ann 500.").await?;
/// assert!(assistant.messages().get(2).unwrap().text().contains("100 sent to Ann"));
/// # Ok(()) }
/// ```
///
/// The `Debug` text omits the arguments.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum BeforeCall {
    /// The call runs, if later hooks and the approval rules allow it.
    Continue,
    /// The call runs with these arguments, which are validated again.
    Replace(Value),
    /// The call does not run. Its result is `denied` with the code `blocked`.
    #[non_exhaustive]
    Block {
        /// The reason that the model reads.
        reason: String,
        /// Whether the run continues, ends after the calls of the turn, or ends if every result of the turn has [`Control::EndIfAll`].
        control: Control,
    },
    /// The call waits for an approval.
    RequireApproval,
}

/// Omits the arguments, because they may contain secrets.
impl fmt::Debug for BeforeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue => f.write_str("Continue"),
            Self::Replace(_) => f.write_str("Replace(..)"),
            Self::Block { reason, control } => {
                f.debug_struct("Block").field("reason", reason).field("control", control).finish()
            }
            Self::RequireApproval => f.write_str("RequireApproval"),
        }
    }
}

impl BeforeCall {
    /// Returns a decision that blocks the call for this reason.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block { reason: reason.into(), control: Control::Continue }
    }

    /// Returns a decision that blocks the call for this reason. `control` says whether the run continues after the calls of the turn.
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
    ///         Ok(if call.arg::<String>("path")?.starts_with('/') {
    ///             BeforeCall::block_and("only relative paths", Control::EndNow)
    ///         } else {
    ///             BeforeCall::block("ask the owner first")
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

/// The changes of a hook to a result, field by field. A field that is `None` changes nothing.
///
/// ```
/// use agent::model::reply;
/// use agent::{Assistant, ScriptedModel, hooks::AfterCall, message::Part, tool, tools};
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
    /// The new content for the model. Structured data of the result is dropped; for an error, only the text parts are used.
    pub content: Option<Vec<Part>>,
    /// The new metadata, which replaces all metadata of the tool. `None` keeps the metadata, even if `is_error` changes.
    pub metadata: Option<Map<String, Value>>,
    /// Whether the result is an error. `Some(true)` turns a completed result into a failure with the code `hook_set_error`. `Some(false)`
    /// turns an error into a completed result. `None` changes nothing.
    pub is_error: Option<bool>,
    /// Whether the run continues, ends after the calls of the turn, or ends if every result of the turn has [`Control::EndIfAll`]. `None`
    /// keeps the choice of the tool.
    pub control: Option<Control>,
}

/// Calls a hook. A panic becomes an error. An error is replaced by its text, because the methods of the application's error may panic, too.
pub(super) async fn call_hook<'h, T>(
    call: impl FnOnce() -> BoxFuture<'h, Result<T, HookError>>,
) -> Result<T, HookError> {
    match catch_future(call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let error = DropsQuietly(Some(error));
            let text = catch(|| error.0.as_ref().map(ToString::to_string));
            Err(text
                .ok()
                .flatten()
                .unwrap_or_else(|| "a hook failed, and its error panicked when it was displayed".to_owned())
                .into())
        }
        Err(panic) => Err(format!("a hook panicked: {panic}").into()),
    }
}

pub(super) fn hook_error(text: &str) -> ToolOutcome {
    ToolOutcome::failed(OutcomeCode::new("hook_error"), format!("A hook of the application failed: {text}"))
}
