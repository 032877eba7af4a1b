//! Prompts: the input with which a run begins.

use std::fmt;
use std::sync::Arc;

use super::answer::{PartialAnswer, TypedAnswer};
use super::assistant::Assistant;
use super::begin::RunStart;
use super::drive::BegunRun;
use super::error::RunError;
use super::handle::RunHandle;
use super::listener::EventSlot;
use super::output::ExpectedOutput;
use super::parent::{ChildCall, ChildHandle};
use super::run_output::RunOutput;
use super::streamed::Run;
use crate::loop_core::{RunState, StateError};
use crate::message::Message;
use crate::tool::set::{IntoTools, ToolSet};
use crate::tool::{BoxFuture, cancel::CancelToken, context::ToolContext, source::Source};
use serde::Serialize;
use tokio::runtime::Handle;

/// A prompt that has not been sent yet. Await it, or read it as a [stream](Self::stream). Created by [`Assistant::prompt`],
/// [`continue_run`](Assistant::continue_run), [`resume`](Assistant::resume) and [`record`](Assistant::record).
///
/// ```
/// use agent::{Assistant, CancelToken, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let hang_up = CancelToken::new();
/// let prompt = assistant.prompt("Hi").cancel(hang_up.clone());
/// assert_eq!(prompt.await?.text(), "Hello!");
/// # Ok(()) }
/// ```
///
/// Awaiting a prompt returns only the output. A prompt can also be read as a stream of events, or driven by a separate task:
///
/// ```
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!", "Bye!"])).build()?;
/// let mut run = assistant.prompt("Hi").session_id("ann").stream();
/// assert!(run.next().await.is_some());
/// assert_eq!(run.output().await?.text(), "Hello!");
///
/// assistant.prompt("Bye").session_id("ann").start()?;
/// assistant.wait_until_idle().await;
/// assert_eq!(assistant.messages().last().unwrap().text(), "Bye!");
/// # Ok(()) }
/// ```
#[must_use = "a prompt does nothing until it is awaited"]
pub struct Prompt<T = ()> {
    assistant: Assistant,
    start: RunStart,
    context: ToolContext,
    /// The serialized state that this prompt adds to its run, or the error of the first value that could not be added.
    state: Result<RunState, StateError>,
    cancel: Option<CancelToken>,
    run_id: Arc<str>,
    answer: Result<TypedAnswer<T>, RunError>,
    tools: ToolSet,
    /// The call that starts this run, if the assistant is called as a tool.
    within: Option<Arc<ChildCall>>,
    /// The tool whose function makes the prompt. A suspended run is then an error, because nothing would resume it. `None` for a detached
    /// prompt, and for an assistant as a tool.
    in_tool: Option<Arc<str>>,
}

impl Prompt {
    pub(super) fn new(assistant: Assistant, start: RunStart) -> Self {
        let run_id = match &start {
            RunStart::Resume { run, .. } => run.0.as_loop().run_id().clone(),
            RunStart::Child { run, .. } => run.run_id().clone(),
            RunStart::Continue { unfinished: Some(run), .. } => run.clone(),
            RunStart::Continue { .. } | RunStart::Prompts(_) | RunStart::Recorded { .. } => {
                super::new_id("run").into()
            }
        };
        let mut context = ToolContext::new();
        if let Some(session) = assistant.session() {
            context = context.with_session_id(session);
        }
        if let Some(source) = assistant.config().source.clone() {
            context = context.with_source(source);
        }
        let (state, tools) = (Ok(RunState::default()), ToolSet::new());
        let (answer, in_tool) = (Ok(TypedAnswer::any()), crate::tool::current::tool());
        Self { assistant, start, context, state, cancel: None, run_id, answer, tools, within: None, in_tool }
    }

    /// Takes the cancel token, the source, the session id and the state from the tool call that makes this prompt. State of the assistant
    /// takes precedence. Clears `in_tool`, because the caller handles a suspended run.
    pub(super) fn of_call(mut self, cx: &ToolContext) -> Self {
        let state = cx.all_state().without(self.assistant.config().registry.state());
        self.context = self.context.with_states(&state.without_type::<ChildHandle>());
        if let Some(source) = cx.source() {
            self.context = self.context.with_source(source.clone());
        }
        if let Some(session) = cx.session_id() {
            self.context = self.context.with_session_id(session);
        }
        (self.cancel, self.in_tool) = (Some(cx.cancel_token().clone()), None);
        self
    }

    pub(super) fn within(mut self, call: Arc<ChildCall>) -> Self {
        self.run_id = call.run_id.clone();
        self.within = Some(call);
        self
    }

    pub(super) fn asking<T>(self, answer: Result<TypedAnswer<T>, RunError>) -> Prompt<T> {
        let Self { assistant, start, context, state, cancel, run_id, tools, within, in_tool, .. } = self;
        Prompt { assistant, start, context, state, cancel, run_id, answer, tools, within, in_tool }
    }
}

impl<T> Prompt<T> {
    /// Adds a message of the user or of the application to the first messages of the run. A resumed or
    /// [continued](Assistant::continue_run) run reads the message with its next request. The prompt of such a run fails with
    /// [`RunError::Request`] if the steering queue has no room for the message.
    ///
    /// ```
    /// use agent::message::CustomMessage;
    /// use agent::{Assistant, ScriptedModel, json};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["It is a list of prices."]);
    /// let assistant = Assistant::builder(model).build()?;
    /// let open = CustomMessage::new("open_file", json!({"path": "prices.csv"}))
    ///     .with_for_model("prices.csv is open.");
    /// assistant.prompt("What is this?").with_message(open).await?;
    /// assert_eq!(assistant.messages().len(), 3);
    /// # Ok(()) }
    /// ```
    pub fn with_message(mut self, message: impl Into<Message>) -> Self {
        match &mut self.start {
            RunStart::Child { .. } => {}
            RunStart::Prompts(messages)
            | RunStart::Recorded { messages, .. }
            | RunStart::Continue { messages, .. }
            | RunStart::Resume { messages, .. } => {
                messages.push(message.into());
            }
        }
        self
    }

    /// Adds a state value for this prompt only. The value takes precedence over the assistant's value of the same type.
    ///
    /// ```
    /// # use agent::{Assistant, RunError};
    /// # struct User(u32);
    /// # async fn example(assistant: Assistant) -> Result<(), RunError> {
    /// let output = assistant.prompt("Which orders are late?").with_state(User(7)).await?;
    /// # Ok(()) }
    /// ```
    pub fn with_state<S: Send + Sync + 'static>(self, value: S) -> Self {
        self.with_shared_state(Arc::new(value))
    }

    /// Adds a shared state value for this prompt only. `S` may be a trait object.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
    /// use std::sync::Arc;
    ///
    /// trait Mailer: Send + Sync {
    ///     fn send(&self, to: &str) -> String;
    /// }
    ///
    /// struct DryRun;
    ///
    /// impl Mailer for DryRun {
    ///     fn send(&self, to: &str) -> String {
    ///         format!("would be sent to {to}")
    ///     }
    /// }
    ///
    /// /// Sends the invoice.
    /// #[tool]
    /// fn send_invoice(to: String, mailer: &dyn Mailer) -> String {
    ///     mailer.send(&to)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("send_invoice", r#"{"to": "Ann"}"#),
    ///     reply().text("Done."),
    /// ]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![send_invoice])
    ///     .state_per_prompt::<dyn Mailer>()
    ///     .build()?;
    /// assistant.prompt("Send it to Ann.").with_shared_state::<dyn Mailer>(Arc::new(DryRun)).await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "would be sent to Ann");
    /// # Ok(()) }
    /// ```
    pub fn with_shared_state<S: ?Sized + Send + Sync + 'static>(mut self, value: Arc<S>) -> Self {
        self.context = self.context.adding_state(value);
        self
    }

    /// Adds a state value for this prompt only, like [`with_state`](Self::with_state), and stores the value with the run. A stored run
    /// still has the value when it is resumed, also in another process. The type must be
    /// [registered](super::AssistantBuilder::serialized_state) with the assistant.
    ///
    /// The value is serialized to JSON at once. Tools always receive a value that is deserialized from this JSON, so they receive the same
    /// value in every process. All values of a run together have at most 64 KiB. No event, trace or record contains these values, but a
    /// stored run does. A stored run with state is resumed only if it is signed, see
    /// [`approval_key`](super::AssistantBuilder::approval_key).
    ///
    /// If a resumed run has a stored value of the same type, the value of this prompt replaces it. A run that is continued from a
    /// [session](super::AssistantBuilder::session) after a crash has no stored state, so give the values again.
    ///
    /// A prompt whose state cannot be used fails before anything runs. It fails with [`RunError::State`] if the type is not registered, or
    /// if the value is too large or cannot be serialized and read back. It fails with [`RunError::DuplicateState`] if
    /// [`with_state`](Self::with_state) gave a value of the same type. It fails with [`ResumeError::State`](super::ResumeError::State) if
    /// stored state does not fit a registered type, or is too large together with the state of the prompt.
    ///
    /// ```
    /// # #[cfg(feature = "approvals-signed")] mod example {
    /// use agent::model::reply;
    /// use agent::{Assistant, Decision, ScriptedModel, SuspendedRun, run::BuildError, tool, tools};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Customer {
    ///     id: u64,
    /// }
    ///
    /// /// Closes the account of the customer.
    /// #[tool(approval = "always")]
    /// fn close_account(customer: &Customer) -> String {
    ///     format!("account {} is closed", customer.id)
    /// }
    ///
    /// fn assistant() -> Result<Assistant, BuildError> {
    ///     let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().as_tool_result() {
    ///         Some(result) => reply().text(result.text()),
    ///         None => reply().tool_call("close_account", "{}"),
    ///     });
    ///     Assistant::builder(model)
    ///         .tools(tools![close_account])
    ///         .serialized_state::<Customer>("customer")
    ///         .approval_key([7; 32]) // 32 secret bytes
    ///         .build()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let prompt = assistant()?.prompt("Close it.").with_serialized_state(Customer { id: 7 });
    /// let stored = serde_json::to_string(&prompt.await?.snapshot.expect("it waits"))?;
    ///
    /// // Tomorrow, in another process:
    /// let suspended: SuspendedRun = serde_json::from_str(&stored)?;
    /// let decisions = suspended.decide(|_request| Decision::Allow);
    /// let output = assistant()?.resume(&suspended, decisions).await?;
    /// assert_eq!(output.text(), "account 7 is closed");
    /// # Ok(()) }
    /// # }
    /// # #[cfg(feature = "approvals-signed")] example::main().unwrap();
    /// ```
    pub fn with_serialized_state<S: Serialize + 'static>(mut self, value: S) -> Self {
        if let Ok(state) = &mut self.state {
            let name = self.assistant.config().state_types.name_of::<S>();
            if let Err(error) = name.and_then(|name| state.add(name, &value)) {
                self.state = Err(error);
            }
        }
        self
    }

    /// Sets the session id of the run, which tools find in their context. Cached results, [budgets](super::Budget::per_session) and traces
    /// use it, too. By default, it is the name of the assistant's [session](super::AssistantBuilder::session), if there is one.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, ToolContext, model::reply, tool, tools};
    ///
    /// /// Says where it is.
    /// #[tool]
    /// fn whereabouts(cx: &ToolContext) -> String {
    ///     cx.session_id().unwrap_or("nowhere").to_owned()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model =
    ///     ScriptedModel::new([reply().tool_call("whereabouts", "{}"), reply().text("Done.")]);
    /// let assistant = Assistant::builder(model).tools(tools![whereabouts]).build()?;
    /// assistant.prompt("Where are you?").session_id("ann").await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "ann");
    /// # Ok(()) }
    /// ```
    pub fn session_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.context = self.context.with_session_id(id);
        self
    }

    /// Sets the source on whose behalf the run acts. The model sees the tools and parameters that this source may see, and calls are
    /// validated against these parameters.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::tool::Source;
    /// use agent::{Assistant, Parameters, ScriptedModel, ToolBuilder, ToolContext, Value, tools};
    ///
    /// struct Admin;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let list = ToolBuilder::new("list_users")
    ///     .description("Lists users.")
    ///     .parameters_for(|source| {
    ///         source
    ///             .get::<Admin>()
    ///             .map(|_| Parameters::new().optional_boolean("deleted", "Those, too."))
    ///     })
    ///     .build(|arguments: Value, _cx: ToolContext| async move { arguments.to_string() })?;
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("list_users", r#"{"deleted": true}"#),
    ///     reply().text("Done."),
    /// ]);
    /// let assistant = Assistant::builder(model.clone()).tools(tools![{ list }]).build()?;
    /// assistant.prompt("List them all.").source(Source::new(Admin)).await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), r#"{"deleted":true}"#);
    /// assert_eq!(model.requests()[0].tools[0].plan().parameter_names().count(), 1);
    /// # Ok(()) }
    /// ```
    pub fn source(mut self, source: Source) -> Self {
        self.context = self.context.with_source(source);
        self
    }

    /// Ends the run when this token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Adds tools for this run only, for example tools that a client declares, after the tools of the assistant. These tools are called,
    /// checked and recorded like other tools, but their results are never cached.
    ///
    /// A suspended run that resumes needs these tools again, and so does a run that continues after a crash. A run on a durable engine,
    /// such as Restate, has only the tools of its assistant, because any process may continue the run.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{
    ///     Assistant, Decisions, RunError, ScriptedModel, ToolOutcome, ToolOutput, tool, tools,
    /// };
    ///
    /// /// Scrolls the page.
    /// #[tool]
    /// fn scroll(to: u32) -> ToolOutcome {
    ///     println!("the browser scrolls to {to}");
    ///     ToolOutcome::Deferred { handle: "browser".into() }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("scroll", r#"{"to": 5}"#), reply().text("There.")]);
    /// let assistant = Assistant::builder(model).build()?;
    /// let waits = assistant.prompt("Scroll to 5.").with_tools(tools![scroll]).await?.snapshot.expect("it waits");
    ///
    /// let scrolled = || Decisions::new().deliver("call_1", ToolOutput::text("done"));
    /// let error = assistant.resume(&waits, scrolled()).await.unwrap_err();
    /// assert!(matches!(error, RunError::Resume(_)));                          // without the tool it cannot go on
    /// assert_eq!(assistant.resume(&waits, scrolled()).with_tools(tools![scroll]).await?.text(), "There.");
    /// # Ok(()) }
    /// ```
    ///
    /// The prompt fails with [`RunError::PromptTools`] if a tool has the name of another tool, or cannot be used, and with
    /// [`ResumeError::MissingTools`](super::ResumeError::MissingTools) if a resumed run lacks its tools.
    pub fn with_tools(mut self, tools: impl IntoTools) -> Self {
        self.tools.add(tools);
        self
    }

    /// Allows the run to be suspended although the function of a tool makes the prompt. The function must keep the [suspended
    /// run](super::RunOutput::snapshot), because nothing else resumes it. Without this option, the prompt fails with
    /// [`RunError::SuspendedInTool`]. A tool that was made with [`Assistant::as_tool`] keeps its suspended runs itself.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, RunError, ScriptedModel, SuspendedRun, tool, tools};
    /// use std::sync::Mutex;
    ///
    /// /// Sends a letter.
    /// #[tool(approval = "always")]
    /// fn send(to: String) {}
    ///
    /// /// Asks the secretary, who may need a signature.
    /// #[tool]
    /// async fn ask_secretary(secretary: &Assistant, desk: &Mutex<Vec<SuspendedRun>>) -> Result<&'static str, RunError> {
    ///     let output = secretary.fork().prompt("Write to Ann.").detached().await?;
    ///     desk.lock().unwrap().extend(output.snapshot);
    ///     Ok("The letter is on your desk.")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let secretary = ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann"}"#)]);
    /// let secretary = Assistant::builder(secretary).tools(tools![send]).build()?;
    /// let model = ScriptedModel::new([reply().tool_call("ask_secretary", "{}"), reply().text("Sign it.")]);
    /// let desk = std::sync::Arc::new(Mutex::new(Vec::<SuspendedRun>::new()));
    /// let assistant =
    ///     Assistant::builder(model).tools(tools![ask_secretary]).state(secretary).shared_state(desk.clone()).build()?;
    /// assert_eq!(assistant.prompt("Write to Ann.").await?.text(), "Sign it.");
    /// assert_eq!(desk.lock().unwrap().len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn detached(mut self) -> Self {
        self.in_tool = None;
        self
    }

    /// Returns the run as a stream of events. Reading the stream drives the run.
    ///
    /// ```
    /// # use agent::{Assistant, EventKind, RunError};
    /// # async fn example(assistant: Assistant) -> Result<(), RunError> {
    /// let mut run = assistant.prompt("Tell me a story").stream();
    /// while let Some(event) = run.next().await {
    ///     if let EventKind::MessageUpdate { update, .. } = &event.kind {
    ///         print!("{}", update.text_delta().unwrap_or_default());
    ///     }
    /// }
    /// println!("{} tokens", run.output().await?.usage.total);
    /// # Ok(()) }
    /// ```
    pub fn stream(mut self) -> Run<T> {
        let (handle, slot) = (self.handle(), EventSlot::default());
        let (prompt, answer) = self.split();
        let (running, partial) = match &answer {
            Ok(answer) => {
                let (cancel, expected) = (handle.cancel.clone(), answer.expected.clone());
                let partial = answer.expected.as_ref().map(|expected| PartialAnswer::new(&expected.plan));
                (Some(prompt.execute(cancel, Some(slot.clone()), expected)), partial)
            }
            Err(_) => (None, None),
        };
        Run { running, slot, handle, result: None, answer, partial }
    }

    /// Drives the run in a separate tokio task, even if nothing listens to its events.
    ///
    /// [Subscribers](Assistant::subscribe) receive the events; [`wait_until_idle`](Assistant::wait_until_idle) waits for the end of the
    /// run.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let run = assistant.prompt("Hi").start()?;
    /// assert!(assistant.prompt("Me too").start().unwrap_err().is_busy());
    /// assistant.wait_until_idle().await;
    /// assert_eq!(assistant.messages().last().unwrap().text(), "Hello!");
    /// # drop(run); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`RunError::NoRuntime`] outside of a tokio runtime, [`RunError::Busy`] if another run is active, and any error with which an
    /// awaited prompt fails before its first event.
    pub fn start(mut self) -> Result<RunHandle, RunError> {
        let runtime = Handle::try_current().map_err(|_| RunError::NoRuntime)?;
        let handle = self.handle();
        let (prompt, answer) = self.split();
        let run = prompt.begin(handle.cancel.clone(), None, answer?.expected)?;
        // The result is dropped, because listeners are notified of the end of the run, and the assistant keeps the conversation.
        let assistant = handle.assistant.clone();
        runtime.spawn(async move { drop(assistant.within(run.run()).await) });
        Ok(handle)
    }

    /// Separates the prompt and the type of its answer. The prompt is boxed to keep the futures of a run small.
    fn split(self) -> (Box<Prompt>, Result<TypedAnswer<T>, RunError>) {
        let Self { assistant, start, context, state, cancel, run_id, answer, tools, within, in_tool } = self;
        let prompt = Prompt {
            assistant,
            start,
            context,
            state,
            cancel,
            run_id,
            answer: Ok(TypedAnswer::any()),
            tools,
            within,
            in_tool,
        };
        (Box::new(prompt), answer)
    }

    fn handle(&mut self) -> RunHandle {
        RunHandle { assistant: self.assistant.clone(), run_id: self.run_id.clone(), cancel: self.token() }
    }

    /// Returns the token of this run. It is a child of the caller's token, so that ending the run does not end other runs with the same
    /// token.
    fn token(&mut self) -> CancelToken {
        match self.cancel.take() {
            Some(token) => token.child(),
            None => self.context.cancel_token().clone(),
        }
    }
}

impl Prompt {
    fn execute(
        self: Box<Self>,
        cancel: CancelToken,
        slot: Option<EventSlot>,
        expected: Option<Arc<ExpectedOutput>>,
    ) -> BoxFuture<'static, Result<RunOutput, RunError>> {
        // The run begins when the future is first polled.
        Box::pin(async move {
            let assistant = self.assistant.clone();
            let run = self.begin(cancel, slot, expected)?;
            assistant.within(run.run()).await
        })
    }

    /// Begins the run. The assistant is busy until the run has ended or is dropped.
    fn begin(
        self: Box<Self>,
        cancel: CancelToken,
        slot: Option<EventSlot>,
        expected: Option<Arc<ExpectedOutput>>,
    ) -> Result<BegunRun, RunError> {
        let Self { assistant, start, context, state, run_id, tools, within, in_tool, .. } = *self;
        let config = assistant.config();
        let (state, context) = start.add_state(state?, config, context)?;
        let mut context = context
            .with_run_id(run_id.clone())
            .with_cancel(cancel.clone())
            .with_cancel_grace(config.cancel_grace);
        if crate::default_executor().has_clock() {
            context = context.with_default_timeout(config.tool_timeout);
        } else {
            tracing::warn!(%run_id, "outside of a tokio runtime with a clock, tools have no time limit");
        }
        let begun =
            BegunRun::new(assistant, start, state, run_id, cancel, context, slot, expected, tools, within)?;
        Ok(begun.in_tool(in_tool))
    }
}

impl<T: Send + 'static> IntoFuture for Prompt<T> {
    type Output = Result<RunOutput<T>, RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(mut self) -> Self::IntoFuture {
        let cancel = self.token();
        let (prompt, answer) = self.split();
        Box::pin(async move {
            let answer = answer?;
            let run = prompt.execute(cancel, None, answer.expected.clone()).await?;
            answer.read(run)
        })
    }
}

impl<T> fmt::Debug for Prompt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}
