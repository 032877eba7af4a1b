//! Prompts, runs and their output.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::assistant::Assistant;
use super::begin::RunStart;
use super::drive::BegunRun;
use super::error::RunError;
use super::handle::RunHandle;
use super::listener::EventSlot;
use super::output::ExpectedOutput;
use super::run_output::RunOutput;
use crate::loop_core::Event;
use crate::message::Message;
use crate::{BoxFuture, CancelToken, Source, ToolContext, ToolContextBuilder};
use futures_core::Stream;
use tokio::runtime::Handle;

/// A prompt that has not been sent yet. Await it, or read it as a [stream](Self::stream). Created by [`Assistant::prompt`].
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
/// Awaiting it returns only the output. It can also be read as a stream of events, or driven by a separate task:
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
pub struct Prompt {
    assistant: Assistant,
    start: RunStart,
    context: ToolContextBuilder,
    /// The caller's token: cancelling it ends the run.
    cancel: Option<CancelToken>,
    run_id: Arc<str>,
    wanted: Option<Arc<ExpectedOutput>>,
}

impl Prompt {
    pub(super) fn new(assistant: Assistant, start: RunStart) -> Self {
        let run_id = match &start {
            RunStart::Resume { run, .. } => run.0.run_id().clone(),
            RunStart::Continue => assistant.unfinished_run().unwrap_or_else(|| super::new_id("run").into()),
            RunStart::Prompts(_) | RunStart::Recorded { .. } => super::new_id("run").into(),
        };
        let mut context = ToolContext::builder();
        if let Some(session) = assistant.session() {
            context = context.session_id(session);
        }
        Self { assistant, start, context, cancel: None, run_id, wanted: None }
    }

    pub(super) fn wanting(mut self, wanted: Arc<ExpectedOutput>) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// Adds another message, of the user or of the application, to those that the run begins with. A resumed run reads it before its next
    /// request.
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
            RunStart::Prompts(messages)
            | RunStart::Recorded { messages, .. }
            | RunStart::Resume { messages, .. } => {
                messages.push(message.into());
            }
            RunStart::Continue => self.start = RunStart::Prompts(vec![message.into()]),
        }
        self
    }

    /// Adds a state value for this prompt only. It takes precedence over the assistant's value of the same type.
    ///
    /// ```
    /// # use agent::{Assistant, RunError};
    /// # struct User(u32);
    /// # async fn example(assistant: Assistant) -> Result<(), RunError> {
    /// let output = assistant.prompt("Which orders are late?").with_state(User(7)).await?;
    /// # Ok(()) }
    /// ```
    pub fn with_state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.with_shared_state(Arc::new(value))
    }

    /// Adds a shared state value for this prompt only. `T` may be a trait object.
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
    pub fn with_shared_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        self.context = self.context.shared_state(value);
        self
    }

    /// Sets the session id that tools find in their context.
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
        self.context = self.context.session_id(id);
        self
    }

    /// Sets the source on whose behalf the run acts. The model sees the tools as that source may see them, and calls are validated against
    /// the same parameters.
    ///
    /// ```
    /// use agent::model::{ScriptedModel, reply};
    /// use agent::{Assistant, Parameters, Source, ToolBuilder, ToolContext, Value, tools};
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
        self.context = self.context.source(source);
        self
    }

    /// Ends the run when this token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Returns the run as a stream of events. Reading the stream drives the run.
    pub fn stream(mut self) -> Run {
        let handle = self.handle();
        let slot = EventSlot::default();
        let run = self.execute(handle.cancel.clone(), Some(slot.clone()));
        Run { running: Some(run), slot, handle, result: None }
    }

    /// Drives the run in a separate task, as [`Assistant::start`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Assistant::start`].
    pub fn start(mut self) -> Result<RunHandle, RunError> {
        let runtime = Handle::try_current().map_err(|_| RunError::NoRuntime)?;
        let handle = self.handle();
        let run = self.begin(handle.cancel.clone(), None)?;
        // Listeners receive the result, and the assistant keeps the conversation.
        let assistant = handle.assistant.clone();
        runtime.spawn(async move { drop(assistant.within(run.run()).await) });
        Ok(handle)
    }

    fn handle(&mut self) -> RunHandle {
        RunHandle { assistant: self.assistant.clone(), run_id: self.run_id.clone(), cancel: self.token() }
    }

    /// The run's own token: ending this run must not end others that share the prompt's token.
    fn token(&mut self) -> CancelToken {
        self.cancel.take().map_or_else(CancelToken::new, |token| token.child())
    }

    fn execute(
        self,
        cancel: CancelToken,
        slot: Option<EventSlot>,
    ) -> BoxFuture<'static, Result<RunOutput, RunError>> {
        // Nothing happens until the future is polled. From then on, only the run is kept.
        let prompt = Box::new(self);
        Box::pin(async move {
            let assistant = prompt.assistant.clone();
            let run = prompt.begin(cancel, slot)?;
            assistant.within(run.run()).await
        })
    }

    /// Begins the run. From here on, the assistant is busy until the run is dropped.
    fn begin(self, cancel: CancelToken, slot: Option<EventSlot>) -> Result<BegunRun, RunError> {
        let Self { assistant, start, context, run_id, wanted, .. } = self;
        let config = assistant.config();
        let mut context =
            context.run_id(run_id.clone()).cancel(cancel.clone()).cancel_grace(config.cancel_grace);
        if crate::default_executor().sleep(Duration::ZERO).is_some() {
            context = context.default_timeout(config.tool_timeout);
        } else {
            tracing::warn!(%run_id, "outside of a tokio runtime with a clock, tools have no time limit");
        }
        BegunRun::new(assistant, start, run_id, cancel, context, slot, wanted)
    }
}

impl IntoFuture for Prompt {
    type Output = Result<RunOutput, RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(mut self) -> Self::IntoFuture {
        let cancel = self.token();
        self.execute(cancel, None)
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// A stream of the events of a run, which ends with its [output](Self::output).
///
/// Reading the stream drives the run: the run never gets ahead of its reader. Dropping it cancels the run and leaves the conversation
/// sound.
///
/// ```
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let mut run = assistant.run("Hi");
/// let first = run.next().await.expect("a run has events");
/// assert_eq!((first.seq, first.turn), (1, 0));
/// assert_eq!(run.handle().run_id(), &*first.run_id);
/// assert_eq!(run.output().await?.text(), "Hello!");            // reads the rest
/// # Ok(()) }
/// ```
#[must_use = "a run does nothing until it is read"]
pub struct Run {
    running: Option<BoxFuture<'static, Result<RunOutput, RunError>>>,
    slot: EventSlot,
    handle: RunHandle,
    result: Option<Result<RunOutput, RunError>>,
}

impl Run {
    /// Returns the next event, or `None` if the run is over or could not begin.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns a handle that controls the run from elsewhere while it is read here. See [`RunHandle::snapshot`] for an example.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// Returns the output of the run, after reading all remaining events.
    ///
    /// # Errors
    /// Returns the errors of an awaited [`Prompt`].
    pub async fn output(mut self) -> Result<RunOutput, RunError> {
        while self.next().await.is_some() {}
        // The result is set once the events are over.
        self.result.take().unwrap_or_else(|| Err(RunError::Aborted { reason: "the run is gone".to_owned() }))
    }
}

impl Stream for Run {
    type Item = Arc<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(event) = this.slot.take() {
            return Poll::Ready(Some(event));
        }
        let Some(running) = &mut this.running else { return Poll::Ready(None) };
        if let Poll::Ready(result) = running.as_mut().poll(cx) {
            this.running = None;
            this.result = Some(result);
            return Poll::Ready(this.slot.take());
        }
        match this.slot.take() {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("run_id", &self.handle.run_id).finish_non_exhaustive()
    }
}
