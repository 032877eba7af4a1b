//! Single hooks, given to the builder as closures.

use std::sync::Arc;

use super::AssistantBuilder;
use crate::loop_core::TurnSummary;
use crate::message::MessageList;
use crate::model::ModelRequest;
use crate::runtime::hooks::{AfterCall, BeforeCall, HookError, Hooks, ToolCallInfo};
use crate::runtime::turn_start::TurnStart;
use crate::tool::BoxFuture;
use crate::tool::cancel::CancelToken;
use crate::tool::context::ToolContext;
use crate::tool::outcome::ToolOutcome;

macro_rules! closures {
    ($($name:ident: $method:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {$(
        struct $name<F>(F);

        impl<F, Fut> Hooks for $name<F>
        where
            F: Fn($($type),*) -> Fut + Send + Sync,
            Fut: Future<Output = Result<$out, HookError>> + Send + 'static,
        {
            fn $method(&self, $($arg: $type),*) -> BoxFuture<'_, Result<$out, HookError>> {
                Box::pin((self.0)($($arg),*))
            }
        }
    )*};
}

closures! {
    TransformContext: transform_context(messages: MessageList, cancel: CancelToken) -> MessageList;
    BeforeRequest: before_request(request: ModelRequest, context: ToolContext) -> ModelRequest;
    BeforeToolCall: before_tool_call(call: ToolCallInfo) -> BeforeCall;
    AfterToolCall: after_tool_call(call: ToolCallInfo, outcome: ToolOutcome) -> AfterCall;
    OnTurnEnd: on_turn_end(summary: TurnSummary) -> Option<bool>;
}

struct SelectModel<F>(F);

impl<F, Fut> Hooks for SelectModel<F>
where
    F: Fn(TurnStart) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Option<String>, HookError>> + Send + 'static,
{
    fn select_model(&self, turn: &TurnStart) -> Option<BoxFuture<'_, Result<Option<String>, HookError>>> {
        let turn = turn.clone();
        Some(Box::pin(async move { (self.0)(turn).await }))
    }
}

struct PrepareTools<F>(F);

impl<F, Fut> Hooks for PrepareTools<F>
where
    F: Fn(TurnStart) -> Fut + Send + Sync,
    Fut: Future<Output = Result<TurnStart, HookError>> + Send + 'static,
{
    fn prepare_tools(&self, turn: &TurnStart) -> Option<BoxFuture<'_, Result<TurnStart, HookError>>> {
        let turn = turn.clone();
        Some(Box::pin(async move { (self.0)(turn).await }))
    }
}

impl AssistantBuilder {
    /// Adds a hook that chooses the model of each turn, before its request: [`Hooks::select_model`]. `None` makes no choice. If no model
    /// has the returned name, the run fails.
    ///
    /// Each model gets the conversation in a form that it accepts: thinking and other state of a provider are not sent to another
    /// provider. An event [`ModelSwitched`](crate::EventKind::ModelSwitched) reports each switch, with the parts that are not sent. The
    /// assistant's own model decides whether a typed answer is requested with a schema or with a tool, even if another model is chosen.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (strong, cheap) = (ScriptedModel::new(["I think."]), ScriptedModel::new(["Sure."]));
    /// let assistant = Assistant::builder(strong.clone())
    ///     .named_model("cheap", cheap.clone())
    ///     .select_model(|turn| async move {
    ///         let is_short = turn.messages().last().is_some_and(|message| message.text().len() < 20);
    ///         Ok(is_short.then(|| "cheap".into()))
    ///     })
    ///     .build()?;
    /// assert_eq!(assistant.prompt("Prove that it is sound.").await?.text(), "I think.");
    /// assert_eq!(assistant.prompt("Thanks!").await?.text(), "Sure.");
    /// assert_eq!((strong.requests().len(), cheap.requests()[0].messages.len()), (1, 3));
    /// # Ok(()) }
    /// ```
    pub fn select_model<F, Fut>(mut self, select: F) -> Self
    where
        F: Fn(TurnStart) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, HookError>> + Send + 'static,
    {
        self.choosers.push(Arc::new(SelectModel(select)));
        self
    }

    /// Adds a hook that chooses the messages of a request: [`Hooks::transform_context`].
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["One.", "Two.", "Three."]);
    /// let assistant = Assistant::builder(model.clone())
    ///     .transform_context(|messages, _cancel| async move {
    ///         let forgotten = messages.len().saturating_sub(3);        // the model sees the last three
    ///         Ok(messages.iter().skip(forgotten).cloned().collect())
    ///     })
    ///     .build()?;
    /// for question in ["One?", "Two?", "Three?"] {
    ///     assistant.prompt(question).await?;
    /// }
    /// let shown: Vec<_> = model.requests().iter().map(|request| request.messages.len()).collect();
    /// assert_eq!((shown, assistant.messages().len()), (vec![1, 3, 3], 6));
    /// # Ok(()) }
    /// ```
    pub fn transform_context<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(MessageList, CancelToken) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<MessageList, HookError>> + Send + 'static,
    {
        self.hooks(TransformContext(hook))
    }

    /// Adds a hook that changes a request: [`Hooks::before_request`]. The hook receives the context of the run, so instructions can depend
    /// on the state of a prompt.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// struct Bank(&'static str);
    /// struct Customer(&'static str);
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Hello, Ann!"]);
    /// let assistant = Assistant::builder(model.clone())
    ///     .state(Bank("Lutetia"))
    ///     .before_request(|request, context| async move {
    ///         let bank = context.get::<Bank>().ok_or("there is no bank")?;
    ///         let customer = context.get::<Customer>().ok_or("there is no customer")?;
    ///         Ok(request.with_system(format!("You work for {}. The customer is {}.", bank.0, customer.0)))
    ///     })
    ///     .build()?;
    /// assistant.prompt("Hi").with_state(Customer("Ann")).await?;
    /// assert_eq!(model.requests()[0].system.as_deref(), Some("You work for Lutetia. The customer is Ann."));
    /// # Ok(()) }
    /// ```
    pub fn before_request<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ModelRequest, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ModelRequest, HookError>> + Send + 'static,
    {
        self.hooks(BeforeRequest(hook))
    }

    /// Adds a hook that decides whether a call may run: [`Hooks::before_tool_call`].
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, BeforeCall, ScriptedModel, tool, tools};
    ///
    /// /// Reads a file.
    /// #[tool(read_only)]
    /// fn read(path: String) -> String {
    ///     format!("content of {path}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("read", r#"{"path": "/etc/passwd"}"#), reply().text("I may not.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![read])
    ///     .before_tool_call(|call| async move {
    ///         if call.call().name == "read" && call.arg::<String>("path")?.starts_with('/') {
    ///             return Ok(BeforeCall::block("only relative paths"));
    ///         }
    ///         Ok(BeforeCall::Continue)
    ///     })
    ///     .build()?;
    /// assistant.prompt("Read it.").await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "only relative paths");
    /// # Ok(()) }
    /// ```
    pub fn before_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallInfo) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BeforeCall, HookError>> + Send + 'static,
    {
        self.hooks(BeforeToolCall(hook))
    }

    /// Adds a hook that changes results: [`Hooks::after_tool_call`].
    ///
    /// ```
    /// use agent::message::OutcomeKind;
    /// use agent::{Assistant, ScriptedModel, hooks::AfterCall, model::reply, tool, tools};
    ///
    /// /// Runs a command.
    /// #[tool]
    /// fn run(command: String) -> String {
    ///     format!("{command}: command not found")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("run", r#"{"command": "sl"}"#), reply().text("There is no sl.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![run])
    ///     .after_tool_call(|_call, outcome| async move {
    ///         let has_failed = outcome.text().ends_with("command not found");
    ///         Ok(AfterCall { is_error: has_failed.then_some(true), ..AfterCall::default() })
    ///     })
    ///     .build()?;
    /// assistant.prompt("Run sl.").await?;
    /// let messages = assistant.messages();
    /// assert_eq!(messages.get(2).and_then(|message| message.as_tool_result()).unwrap().outcome, OutcomeKind::Failed);
    /// # Ok(()) }
    /// ```
    pub fn after_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallInfo, ToolOutcome) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<AfterCall, HookError>> + Send + 'static,
    {
        self.hooks(AfterToolCall(hook))
    }

    /// Adds a hook that decides whether a run continues after a turn: [`Hooks::on_turn_end`].
    ///
    /// ```
    /// use agent::{Assistant, RunStop, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Turns the page.
    /// #[tool]
    /// fn next_page() -> &'static str {
    ///     "another page"
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::from_fn(|_| reply().tool_call("next_page", "{}"));
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![next_page])
    ///     .on_turn_end(|turn| async move { Ok((turn.turn == 2).then_some(false)) })
    ///     .build()?;
    /// let output = assistant.prompt("Read on.").await?;
    /// assert_eq!((output.turns, output.stop), (2, RunStop::Terminated));
    /// # Ok(()) }
    /// ```
    pub fn on_turn_end<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(TurnSummary) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<bool>, HookError>> + Send + 'static,
    {
        self.hooks(OnTurnEnd(hook))
    }

    /// Adds a hook that chooses the tools of each turn, based on the conversation so far: [`Hooks::prepare_tools`].
    ///
    /// A tool that is removed from a turn is an unknown tool in that turn, even if the conversation mentions it. The order of the tools
    /// and the checks of their arguments do not change. The hook is called once for each turn, and once more if the run is resumed within
    /// the turn. If several hooks choose tools, each receives the result of the previous hook. An error ends the run, like an error of
    /// [`before_request`](Self::before_request).
    ///
    /// If the list changes, a provider cannot reuse its cache of the conversation, so change the list rarely. For differences between
    /// users, use [`Registry::filter`](crate::Registry::filter) or a [`Source`](crate::tool::Source) instead.
    ///
    /// ```
    /// use agent::message::Message;
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    ///
    /// /// Shows the contract.
    /// #[tool(read_only)]
    /// fn show_contract() -> String {
    ///     "…".into()
    /// }
    ///
    /// /// Signs it.
    /// #[tool]
    /// fn sign_contract() -> String {
    ///     "signed".into()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("sign_contract", "{}"),      // too early: there is no such tool yet
    ///     reply().tool_call("show_contract", "{}"),
    ///     reply().tool_call("sign_contract", "{}"),
    ///     reply().text("Signed."),
    /// ]);
    /// let assistant = Assistant::builder(model.clone())
    ///     .tools(tools![show_contract, sign_contract])
    ///     .prepare_tools(|turn| async move {
    ///         let was_shown = turn.messages().iter().any(|message| {
    ///             matches!(&**message, Message::ToolResult(result) if result.tool == "show_contract")
    ///         });
    ///         Ok(turn.filter(|tool| was_shown || tool.name() != "sign_contract"))
    ///     })
    ///     .build()?;
    /// assert_eq!(assistant.prompt("Sign it").await?.text(), "Signed.");
    /// let shown: Vec<_> = model.requests().iter().map(|request| request.tools.len()).collect();
    /// assert_eq!(shown, [1, 1, 2, 2]);
    /// assert!(assistant.messages().get(2).unwrap().text().starts_with("There is no tool \"sign_contract\""));
    /// # Ok(()) }
    /// ```
    pub fn prepare_tools<F, Fut>(mut self, choose: F) -> Self
    where
        F: Fn(TurnStart) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<TurnStart, HookError>> + Send + 'static,
    {
        self.choosers.push(Arc::new(PrepareTools(choose)));
        self
    }
}
