//! The context of a running call: its ids, its state, and its cancellation.

use super::asking::{Answerer, AskRules, BodyInProgress};
use super::cancel::CancelToken;
use super::capture::Capture;
use super::definition::ToolDefinition;
use super::executor::Executor;
use super::problem::RegistryError;
use super::progress::Progress;
use super::question::{Question, QuestionInput};
use super::source::Source;
use super::state::{StateKey, StateMap};
use crate::panics::catch;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The default of [`ToolContext::with_cancel_grace`].
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// The context of a call: everything that a tool gets in addition to its arguments, such as state, the ids of the call and its run,
/// progress and cancellation. A parameter `cx: &ToolContext` of a `#[tool]` function receives the context. A parameter `db: &Database`
/// receives the state that [`cx.get::<Database>()`](Self::get) returns. A clone costs one reference count.
///
/// ```
/// use agent::ToolContext;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cx = ToolContext::new().with_state(7_u32)?.with_call_id("call_1").with_run_id("run-1");
/// assert_eq!(cx.get::<u32>(), Some(&7));
/// assert_eq!((cx.call_id(), cx.run_id()), ("call_1", Some("run-1")));
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/tool_context.md")]
///
#[doc = include_str!("../docs/tool_context_setters.md")]
#[derive(Clone, Debug)]
pub struct ToolContext {
    inner: Arc<Inner>,
}

type ProgressReceiver = dyn Fn(&ToolContext, Progress) + Send + Sync;

#[derive(Clone)]
struct Inner {
    call_id: Arc<str>,
    tool: Arc<str>,
    idempotency_key: Option<Arc<str>>,
    run_id: Option<Arc<str>>,
    session_id: Option<Arc<str>>,
    source: Option<Source>,
    attempt: u32,
    max_attempts: u32,
    cancel: CancelToken,
    cancel_grace: Duration,
    default_timeout: Option<Duration>,
    executor: Arc<dyn Executor>,
    progress: Option<Arc<ProgressReceiver>>,
    /// `None` if traces do not contain the content of calls.
    capture: Option<Arc<Capture>>,
    running: Arc<BodyInProgress>,
    /// `None` if no person can be asked.
    ask: Option<AskRules>,
    /// The tools of the registry that runs the call.
    registered: Arc<[ToolDefinition]>,
    /// The state of the run. It takes precedence over `shared`.
    state: StateMap,
    /// The first type for which the prompt set two state values.
    #[cfg(feature = "runtime")]
    duplicate: Option<StateKey>,
    shared: StateMap,
}

impl ToolContext {
    /// Creates a context without state. Add the state that the tools need, for example in a test.
    pub fn new() -> Self {
        Self { inner: Arc::new(Inner::default()) }
    }

    fn edit(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.inner)
    }

    /// Returns the state of type `T`; `None` if there is none. State of the run takes precedence over state of the registry.
    pub fn get<T: ?Sized + 'static>(&self) -> Option<&T> {
        self.inner.state.get().or_else(|| self.inner.shared.get())
    }

    /// Returns whether the run or the registry has state of this type.
    pub fn has(&self, key: &StateKey) -> bool {
        self.inner.state.contains(key) || self.inner.shared.contains(key)
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn all_state(&self) -> StateMap {
        self.inner.state.over(&self.inner.shared)
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn has_own_state(&self) -> bool {
        !self.inner.state.is_empty()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn has_own(&self, key: &StateKey) -> bool {
        self.inner.state.contains(key)
    }

    pub(crate) fn has_arc_of(&self, key: &StateKey) -> bool {
        self.inner.state.contains_arc_of(key) || self.inner.shared.contains_arc_of(key)
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn shared_call_id(&self) -> &Arc<str> {
        &self.inner.call_id
    }

    /// Returns the id that the model's provider gave this call; empty outside of a call. In an MCP server, it is an id that the server
    /// gives the call, because clients choose the ids of their requests.
    pub fn call_id(&self) -> &str {
        &self.inner.call_id
    }

    /// Returns the name under which the tool was called; empty outside of a call.
    pub fn tool(&self) -> &str {
        &self.inner.tool
    }

    #[cfg(feature = "runtime")]
    pub(super) fn shared_tool(&self) -> &Arc<str> {
        &self.inner.tool
    }

    /// Returns a key that is unique to the call and the same for every attempt at the call. Pass the key to services that detect
    /// duplicates. In a run, it is the [`StepKey`](crate::steps::StepKey) of the call. A call within another call appends its own id to
    /// the key of the outer call. If no key is set, the id of the call is the key.
    pub fn idempotency_key(&self) -> &str {
        self.inner.idempotency_key.as_deref().unwrap_or(&self.inner.call_id)
    }

    /// Returns the id of the run that this call belongs to, if any.
    pub fn run_id(&self) -> Option<&str> {
        self.inner.run_id.as_deref()
    }

    /// Returns the id of the session that the run belongs to, if any.
    pub fn session_id(&self) -> Option<&str> {
        self.inner.session_id.as_deref()
    }

    /// Returns the source on whose behalf the call is made; `None` if no source was set.
    pub fn source(&self) -> Option<&Source> {
        self.inner.source.as_ref()
    }

    /// Returns the number of this attempt at running the tool, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// Returns the maximum number of attempts, including this one.
    pub fn max_attempts(&self) -> u32 {
        self.inner.max_attempts
    }

    /// Reports progress to the listener of the call. Does nothing if there is no listener, or if the call is over.
    ///
    /// ```
    /// use agent::{Progress, ToolContext};
    /// use std::sync::{Arc, Mutex};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let sink = seen.clone();
    /// let cx = ToolContext::new().on_progress(move |_, progress| sink.lock().unwrap().push(progress));
    /// cx.progress(Progress::new("reading").of(3, 10));
    /// cx.progress("half way");
    /// assert_eq!(seen.lock().unwrap()[0].message, "reading");
    /// assert_eq!(seen.lock().unwrap()[1].message, "half way");
    /// # Ok(()) }
    /// ```
    pub fn progress(&self, progress: impl Into<Progress>) {
        let Some(sink) = &self.inner.progress else { return };
        if self.inner.running.is_over() {
            return;
        }
        let progress = progress.into();
        // A panic of the listener must not make the call fail.
        if let Err(panic) = catch(|| sink(self, progress)) {
            tracing::error!(tool = self.tool(), %panic, "the function that receives the progress of tools panicked");
        }
    }

    /// Marks the call as over. Progress that the tool's function reports later is dropped.
    pub(super) fn close(&self) {
        self.inner.running.close();
    }

    pub(super) fn running_call(&self) -> &BodyInProgress {
        &self.inner.running
    }

    pub(crate) fn ask_rules(&self) -> Option<&AskRules> {
        self.inner.ask.as_ref()
    }

    pub(super) fn take_questions(&self) -> Vec<Question> {
        self.inner.running.take_questions()
    }

    /// Returns whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancel.is_cancelled()
    }

    /// Returns a future that completes when the call is cancelled. A value or a denial that the tool returns within the grace period still
    /// counts as the result; any other error counts as an interruption.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + Sync + Unpin + use<> {
        self.inner.cancel.cancelled()
    }

    /// Returns the cancel token of this call. Pass the token to work that the tool starts.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.inner.cancel
    }

    /// Returns the executor, which runs blocking work and provides timers.
    pub fn executor(&self) -> &dyn Executor {
        &*self.inner.executor
    }

    pub(crate) fn cancel_grace(&self) -> Duration {
        self.inner.cancel_grace
    }

    pub(crate) fn default_timeout(&self) -> Option<Duration> {
        self.inner.default_timeout
    }

    pub(crate) fn capture(&self) -> Option<&Capture> {
        self.inner.capture.as_deref()
    }

    /// Returns the context of one call. `shared` is the state of the registry.
    pub(crate) fn for_call(&self, call_id: &str, tool: &Arc<str>, shared: &StateMap) -> Self {
        let mut inner = (*self.inner).clone();
        // A context with a call id but without a tool name may belong to a call that is about to run. A running call has both.
        let is_within = !inner.call_id.is_empty() && !inner.tool.is_empty();
        // A call within another call appends its id to the key of the outer call, so that the keys differ.
        if is_within {
            inner.idempotency_key = Some(format!("{}/{call_id}", self.idempotency_key()).into());
        }
        inner.running = Arc::new(BodyInProgress::within(is_within.then_some(inner.running)));
        inner.call_id = call_id.into();
        inner.tool = tool.clone();
        inner.cancel = inner.cancel.child();
        inner.shared = shared.clone();
        Self { inner: Arc::new(inner) }
    }

    pub(super) fn with_registered(mut self, tools: &Arc<[ToolDefinition]>) -> Self {
        self.edit().registered = tools.clone();
        self
    }

    /// Returns the tools of the registry that runs the call. Empty for a call without a registry.
    pub(super) fn registered(&self) -> &[ToolDefinition] {
        &self.inner.registered
    }

    #[cfg(feature = "runtime")]
    pub(super) fn over(&self, shared: &StateMap) -> Self {
        let inner = Inner { shared: shared.clone(), ..(*self.inner).clone() };
        Self { inner: Arc::new(inner) }
    }
}

impl Default for ToolContext {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            call_id: Arc::default(),
            tool: Arc::default(),
            idempotency_key: None,
            run_id: None,
            session_id: None,
            source: None,
            attempt: 1,
            max_attempts: 1,
            cancel: CancelToken::new(),
            cancel_grace: CANCEL_GRACE,
            default_timeout: None,
            executor: crate::default_executor(),
            progress: None,
            capture: None,
            running: Arc::default(),
            ask: None,
            registered: Arc::default(),
            state: StateMap::default(),
            #[cfg(feature = "runtime")]
            duplicate: None,
            shared: StateMap::default(),
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.call_id)
            .field("tool", &self.tool)
            .field("run_id", &self.run_id)
            .field("attempt", &self.attempt)
            .field("cancel", &self.cancel)
            .field("state", &self.state)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

/// The properties of a call, for tests and for code that runs tools without an assistant. Each method returns the context with one
/// property changed.
impl ToolContext {
    /// Adds a value that `&T` parameters receive.
    ///
    /// # Errors
    /// Fails when there already is a value of that type.
    pub fn with_state<T: Send + Sync + 'static>(self, value: T) -> Result<Self, RegistryError> {
        self.with_shared_state(Arc::new(value))
    }

    /// Adds a shared value that `&T` parameters receive. `T` may be a trait: `Arc<dyn Clock>` is injected as `&dyn Clock`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// # use agent::ToolContext;
    /// trait Clock: Send + Sync { fn now(&self) -> u64; }
    /// struct Fixed(u64);
    /// impl Clock for Fixed { fn now(&self) -> u64 { self.0 } }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock: Arc<dyn Clock> = Arc::new(Fixed(5));
    /// let cx = ToolContext::new().with_shared_state(clock)?;
    /// assert_eq!(cx.get::<dyn Clock>().map(|c| c.now()), Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails when there already is a value of that type.
    pub fn with_shared_state<T: ?Sized + Send + Sync + 'static>(
        mut self,
        value: Arc<T>,
    ) -> Result<Self, RegistryError> {
        self.edit().state.insert(value).map_err(RegistryError::duplicate_state)?;
        Ok(self)
    }

    /// Adds a value as state. If there already is a value of its type, that value stays, and `duplicate` records the type.
    #[cfg(feature = "runtime")]
    pub(crate) fn adding_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        let inner = self.edit();
        if let Err(twice) = inner.state.insert(value) {
            inner.duplicate.get_or_insert(twice);
        }
        self
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn duplicate_state(&self) -> Option<StateKey> {
        self.inner.duplicate
    }

    /// Adds all values of a map. Values that are already set take precedence.
    #[cfg(any(feature = "runtime", feature = "mcp-server"))]
    pub(crate) fn with_states(mut self, states: &StateMap) -> Self {
        let inner = self.edit();
        inner.state = inner.state.over(states);
        self
    }

    /// Sets the id of the call. A [`Registry`](crate::Registry) sets it for each call that it runs.
    pub fn with_call_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.edit().call_id = id.into();
        self
    }

    /// Sets the key that is the same for every attempt at this call. Default: the id of the call.
    pub fn with_idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.edit().idempotency_key = Some(key.into());
        self
    }

    /// Sets the id of the run that calls belong to.
    pub fn with_run_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.edit().run_id = Some(id.into());
        self
    }

    /// Sets the id of the session that the run belongs to.
    pub fn with_session_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.edit().session_id = Some(id.into());
        self
    }

    /// Sets the source on whose behalf calls are made.
    pub fn with_source(mut self, source: Source) -> Self {
        self.edit().source = Some(source);
        self
    }

    /// Sets the number of the attempt, counted from 1, and the maximum number of attempts. Default: 1 of 1.
    pub fn with_attempt(mut self, attempt: u32, max_attempts: u32) -> Self {
        let inner = self.edit();
        inner.attempt = attempt;
        inner.max_attempts = max_attempts;
        self
    }

    /// Sets the token that stops calls made with this context.
    pub fn with_cancel(mut self, token: CancelToken) -> Self {
        self.edit().cancel = token;
        self
    }

    /// Sets how long a cancelled tool may continue before its future is dropped. Default: 5 s.
    pub fn with_cancel_grace(mut self, grace: Duration) -> Self {
        self.edit().cancel_grace = grace;
        self
    }

    /// Sets the timeout of tools that have no timeout of their own. Default: no limit.
    pub fn with_default_timeout(mut self, after: Duration) -> Self {
        self.edit().default_timeout = Some(after);
        self
    }

    /// Sets the executor, which runs blocking work and provides timers. With the feature `runtime`, the default executor uses tokio.
    /// Without this feature, the default executor has no clock, and runs blocking work on the thread that polls the call.
    pub fn with_executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.edit().executor = executor;
        self
    }

    /// Sets the listener for [`ToolContext::progress`]. The listener also gets the context of the call. It runs within the tool's call of
    /// `progress`, so it must not block.
    pub fn on_progress(mut self, receive: impl Fn(&ToolContext, Progress) + Send + Sync + 'static) -> Self {
        self.edit().progress = Some(Arc::new(receive));
        self
    }

    /// Sets the function that answers [questions](ToolContext::ask). By default, no person can be asked.
    ///
    /// ```
    /// use agent::{ToolContext, json, tool::QuestionInput};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cx = ToolContext::new().on_question(|_| async { QuestionInput::Accept(json!("7")) });
    /// assert_eq!(cx.ask::<u8>("How many?").await, Ok(7));
    /// # Ok(()) }
    /// ```
    pub fn on_question<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = QuestionInput> + Send + 'static,
    {
        let answerer: Answerer = Arc::new(move |question| Box::pin(answer(question)));
        self.edit().ask.get_or_insert_default().answerer = Some(answerer);
        self
    }

    #[cfg(any(feature = "runtime", feature = "mcp-server"))]
    pub(crate) fn with_ask_rules(mut self, rules: AskRules) -> Self {
        self.edit().ask = Some(rules);
        self
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn with_capture(mut self, capture: Option<Arc<Capture>>) -> Self {
        self.edit().capture = capture;
        self
    }
}
