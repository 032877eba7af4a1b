//! What a running tool knows: its call, its state, when to stop.

use super::cancel::{CancelToken, Cancelled};
use super::executor::Executor;
use super::progress::{Progress, ToolUpdate};
use super::source::Source;
use super::state::{DuplicateState, StateKey, StateMap};
use super::trace::Capture;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a cancelled body may go on before it is dropped, unless
/// [`cancel_grace`](ToolContextBuilder::cancel_grace) says otherwise.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// What a tool gets beside its arguments: state, the ids of the call and its run, progress, cancelling. A parameter
/// `cx: &ToolContext` of a `#[tool]` function receives it. A parameter `db: &Database` is the same as
/// [`cx.get::<Database>()`](Self::get). A clone costs one reference count.
///
/// ```
/// use agent::ToolContext;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cx = ToolContext::builder().state(7_u32).call_id("call_1").build()?;
/// assert_eq!(cx.get::<u32>(), Some(&7));
/// assert_eq!(cx.call_id(), "call_1");
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/tool_context.md")]
#[derive(Clone, Debug)]
pub struct ToolContext {
    inner: Arc<Inner>,
}

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
    progress: Option<Arc<dyn Fn(ToolUpdate) + Send + Sync>>,
    /// What is said goes into traces.
    capture: Option<Arc<Capture>>,
    /// Set when the call is over: what is told later is dropped.
    is_over: Arc<AtomicBool>,
    /// Of the run; shadows `shared`.
    state: StateMap,
    /// Of the registry.
    shared: StateMap,
}

impl ToolContext {
    /// A context without state, for tools that need none.
    pub fn new() -> Self {
        Self { inner: Arc::new(Inner::default()) }
    }

    /// Starts a context, for a test or for a driver of one's own.
    pub fn builder() -> ToolContextBuilder {
        ToolContextBuilder { inner: Inner::default(), duplicate: None }
    }

    /// The state of type `T`, if there is any: that of the run, else that of the registry.
    pub fn get<T: ?Sized + 'static>(&self) -> Option<&T> {
        self.inner.state.get().or_else(|| self.inner.shared.get())
    }

    /// Whether there is state of this type, in the run or in the registry.
    pub fn has(&self, key: &StateKey) -> bool {
        self.inner.state.contains(key) || self.inner.shared.contains(key)
    }

    pub(crate) fn has_arc_of(&self, key: &StateKey) -> bool {
        self.inner.state.contains_arc_of(key) || self.inner.shared.contains_arc_of(key)
    }

    /// The id that the model's provider gave this call; empty outside of a call.
    pub fn call_id(&self) -> &str {
        &self.inner.call_id
    }

    /// The name under which the tool was called; empty outside of a call.
    pub fn tool(&self) -> &str {
        &self.inner.tool
    }

    /// A key that is the same for every attempt at this call, and that no other call has: hand it to services that remove
    /// duplicates. In a run it is the key of the step, otherwise the id of the call.
    pub fn idempotency_key(&self) -> &str {
        self.inner.idempotency_key.as_deref().unwrap_or(&self.inner.call_id)
    }

    /// The id of the run that this call belongs to, if it belongs to one.
    pub fn run_id(&self) -> Option<&str> {
        self.inner.run_id.as_deref()
    }

    /// The id of the session that the run belongs to, if it belongs to one.
    pub fn session_id(&self) -> Option<&str> {
        self.inner.session_id.as_deref()
    }

    /// On whose behalf the call is made, if somebody said so.
    pub fn source(&self) -> Option<&Source> {
        self.inner.source.as_ref()
    }

    /// Which attempt at running the body this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// How many attempts there are at most, this one included.
    pub fn max_attempts(&self) -> u32 {
        self.inner.max_attempts
    }

    /// Tells whoever watches the call how far it is. Without anybody who watches, and after the end of the call, it
    /// does nothing.
    ///
    /// ```
    /// use agent::{Progress, ToolContext};
    /// use std::sync::{Arc, Mutex};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let sink = seen.clone();
    /// let cx = ToolContext::builder().on_progress(move |update| sink.lock().unwrap().push(update.progress)).build()?;
    /// cx.progress(Progress::new("reading").of(3, 10));
    /// assert_eq!(seen.lock().unwrap()[0].message, "reading");
    /// # Ok(()) }
    /// ```
    pub fn progress(&self, progress: Progress) {
        let Some(sink) = &self.inner.progress else { return };
        if self.inner.is_over.load(Ordering::Acquire) {
            return;
        }
        let update = ToolUpdate::new(&self.inner.call_id, &self.inner.tool, progress);
        // Who watches a tool cannot make it fail.
        if catch_unwind(AssertUnwindSafe(|| sink(update))).is_err() {
            tracing::error!(tool = self.tool(), "what receives the progress of tools panicked");
        }
    }

    /// The call is over: what its body tells from now on is dropped.
    pub(super) fn close(&self) {
        self.inner.is_over.store(true, Ordering::Release);
    }

    /// Whether the call was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancel.is_cancelled()
    }

    /// Completes when the call is told to stop. A body that then returns a result within the grace period keeps it.
    pub fn cancelled(&self) -> Cancelled {
        self.inner.cancel.cancelled()
    }

    /// The token of this call, to hand on to work that it starts.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.inner.cancel
    }

    /// What blocking work and waiting are handed to.
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

    /// The context of one call: its own token, its names, and the registry's state below the run's.
    pub(crate) fn for_call(&self, call_id: &str, tool: &Arc<str>, shared: &StateMap) -> Self {
        let mut inner = (*self.inner).clone();
        // A call made from within a call is another one.
        if let (false, Some(outer)) = (inner.call_id.is_empty(), &inner.idempotency_key) {
            inner.idempotency_key = Some(format!("{outer}/{call_id}").into());
        }
        inner.call_id = call_id.into();
        inner.tool = tool.clone();
        inner.cancel = inner.cancel.child();
        inner.is_over = Arc::default();
        inner.shared = shared.clone();
        Self { inner: Arc::new(inner) }
    }

    /// The same with this state below the run's.
    #[cfg(feature = "runtime")]
    pub(super) fn over(&self, shared: &StateMap) -> Self {
        let inner = Inner { shared: shared.clone(), ..(*self.inner).clone() };
        Self { inner: Arc::new(inner) }
    }

    /// Starts from this context, to change some of it.
    ///
    /// ```
    /// use agent::ToolContext;
    ///
    /// let cx = ToolContext::builder().run_id("run-1").state(7_u8).build()?;
    /// let call = cx.to_builder().call_id("call_2").build()?;
    /// assert_eq!((call.run_id(), call.call_id(), call.get::<u8>()), (Some("run-1"), "call_2", Some(&7)));
    /// # Ok::<(), agent::DuplicateState>(())
    /// ```
    pub fn to_builder(&self) -> ToolContextBuilder {
        ToolContextBuilder { inner: (*self.inner).clone(), duplicate: None }
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
            call_id: "".into(),
            tool: "".into(),
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
            is_over: Arc::default(),
            state: StateMap::default(),
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

/// Builds a [`ToolContext`].
///
/// ```
/// use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
///
/// struct Greeting(&'static str);
///
/// /// Greets.
/// #[tool]
/// fn greet(name: String, greeting: &Greeting, cx: &ToolContext) -> String {
///     format!("{}, {name}! ({})", greeting.0, cx.run_id().unwrap_or("no run"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cx = ToolContext::builder().state(Greeting("Hello")).run_id("run-1").build()?;
/// let result = Registry::new(tools![greet])?.call(&ToolCall::new("1", "greet", r#"{"name": "Ann"}"#), &cx).await;
/// assert_eq!(result.outcome.text(), "Hello, Ann! (run-1)");
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/tool_context_builder.md")]
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct ToolContextBuilder {
    inner: Inner,
    duplicate: Option<DuplicateState>,
}

impl ToolContextBuilder {
    /// Adds a value that `&T` parameters receive.
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.shared_state(Arc::new(value))
    }

    /// Adds a value that is shared with others; `T` may be a trait: `Arc<dyn Clock>` is injected as `&dyn Clock`.
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
    /// let cx = ToolContext::builder().shared_state(clock).build()?;
    /// assert_eq!(cx.get::<dyn Clock>().map(|c| c.now()), Some(5));
    /// # Ok(()) }
    /// ```
    pub fn shared_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        if let Err(twice) = self.inner.state.insert(value) {
            self.duplicate.get_or_insert(twice);
        }
        self
    }

    /// Adds all of a map; what was given before stays.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn states(mut self, states: &StateMap) -> Self {
        self.inner.state = self.inner.state.over(states);
        self
    }

    /// Sets the id of the call. A [`Registry`](crate::Registry) sets it for each call that it runs.
    pub fn call_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.inner.call_id = id.into();
        self
    }

    /// Sets the key that is the same for every attempt at this call; without it, it is the id of the call.
    pub fn idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.inner.idempotency_key = Some(key.into());
        self
    }

    /// Sets the id of the run that calls belong to.
    pub fn run_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.inner.run_id = Some(id.into());
        self
    }

    /// Sets the id of the session that the run belongs to.
    pub fn session_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.inner.session_id = Some(id.into());
        self
    }

    /// Says on whose behalf calls are made.
    pub fn source(mut self, source: Source) -> Self {
        self.inner.source = Some(source);
        self
    }

    /// Says which attempt this is, from 1, and how many there are at most; without it, 1 of 1.
    pub fn attempt(mut self, attempt: u32, max_attempts: u32) -> Self {
        self.inner.attempt = attempt;
        self.inner.max_attempts = max_attempts;
        self
    }

    /// Sets the token that stops calls made with this context.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.inner.cancel = token;
        self
    }

    /// Sets how long a cancelled body may go on before it is dropped; 5 s by default.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.inner.cancel_grace = grace;
        self
    }

    /// Sets the timeout of tools that have none of their own; by default they may take as long as they like.
    pub fn default_timeout(mut self, after: Duration) -> Self {
        self.inner.default_timeout = Some(after);
        self
    }

    /// Sets what blocking work and waiting are handed to; by default that of tokio with the feature `runtime`, else one that
    /// blocks in place and has no clock.
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.inner.executor = executor;
        self
    }

    /// Receives what bodies tell by [`ToolContext::progress`]. It runs in the body, so it hands on and does not wait.
    pub fn on_progress(mut self, receive: impl Fn(ToolUpdate) + Send + Sync + 'static) -> Self {
        self.inner.progress = Some(Arc::new(receive));
        self
    }

    /// What is said goes into traces.
    #[cfg(feature = "runtime")]
    pub(crate) fn capture(mut self, capture: Option<Arc<Capture>>) -> Self {
        self.inner.capture = capture;
        self
    }

    /// The context.
    ///
    /// # Errors
    /// When two values of one type were given.
    pub fn build(self) -> Result<ToolContext, DuplicateState> {
        match self.duplicate {
            None => Ok(ToolContext { inner: Arc::new(self.inner) }),
            Some(twice) => Err(twice),
        }
    }
}
