//! The assistant: what it is made of, its conversation, its queues.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::approval::{Approver, Signer};
use super::begin::Begin;
use super::cache::ResultCache;
use super::growing::Growing;
use super::hooks::Hooks;
use super::listener::{EventStream, Listener, Listeners, Subscription};
use super::observe::Meter;
use super::queue::{MessageQueue, QueueMode, Receipt};
use super::records::{Debts, Keeper, SessionState};
use super::spill::{Spill, SpilledFile};
use super::turn_tools::Preparer;
use super::{AssistantBuilder, Decisions, Prompt, Run, RunError, RunHandle};
use crate::loop_core::{AgentLoop, Event, LoopConfig, Queue};
use crate::message::{AssistantMessage, Conversation, HandOff, Message, UserMessage};
use crate::model::{Model, ModelRequest};
use crate::tool::trace::Capture;
use crate::{Argument, CancelToken, Registry, ToolDefinition};

/// A model with tools and a conversation.
///
/// A clone is the same assistant, with the same conversation; [`fork`](Self::fork) makes another one. An assistant answers one
/// prompt at a time, and the conversation goes on from prompt to prompt. It needs a tokio runtime with its clock.
///
/// ```
/// use agent::Assistant;
/// use agent::model::{ScriptedModel, reply};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!", "You said hi."])).system("Be brief.").build()?;
/// assert_eq!(assistant.prompt("Hi").await?.text(), "Hello!");
/// assert_eq!(assistant.prompt("What did I say?").await?.text(), "You said hi.");
/// assert_eq!(assistant.messages().len(), 4);
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/assistant.md")]
#[derive(Clone)]
pub struct Assistant {
    shared: Arc<Shared>,
}

/// What never changes.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) model: Arc<dyn Model>,
    /// What every request has in common.
    pub(super) request: ModelRequest,
    pub(super) registry: Registry,
    pub(super) rules: Arc<LoopConfig>,
    pub(super) hooks: Vec<Arc<dyn Hooks>>,
    pub(super) approver: Option<Approver>,
    pub(super) signer: Option<Arc<Signer>>,
    /// Those of the builder; an assistant begins with them.
    pub(super) listeners: Listeners,
    pub(super) steering_mode: QueueMode,
    pub(super) follow_up_mode: QueueMode,
    pub(super) max_concurrency: usize,
    pub(super) tool_timeout: Duration,
    pub(super) cancel_grace: Duration,
    /// Whether results are cached that do not say so themselves.
    pub(super) cache: bool,
    pub(super) spill: Option<Spill>,
    /// Where calls and sessions are recorded.
    pub(super) keeper: Option<Arc<Keeper>>,
    /// Whether a tool shows its stored results in a form of its own.
    pub(super) formats_results: bool,
    /// Who chooses the tools of a turn.
    pub(super) preparers: Vec<Preparer>,
    pub(super) meters: Vec<Meter>,
    /// Where traces say what is said.
    pub(super) capture: Option<Arc<Capture>>,
}

struct Shared {
    config: Arc<Config>,
    state: Mutex<State>,
    idle: Notify,
    /// Wakes the run when a message steers.
    steered: Notify,
}

/// What changes. During a run the conversation is in the loop.
pub(super) struct State {
    pub(super) conversation: Conversation,
    /// Whether the conversation is to be looked at before the next run.
    pub(super) is_suspect: bool,
    /// Whether the last run waits for decisions: its open calls were not begun.
    pub(super) is_undecided: bool,
    pub(super) active: Option<Active>,
    pub(super) steering: MessageQueue,
    pub(super) follow_ups: MessageQueue,
    pub(super) listeners: Listeners,
    /// What the model is sent of the conversation, kept from request to request.
    pub(super) hand_off: HandOff,
    pub(super) last_error: Option<String>,
    pub(super) cache: ResultCache,
    /// The files that results in the conversation name.
    spilled: Vec<Arc<SpilledFile>>,
    /// Where the conversation is written down.
    pub(super) session: Option<SessionState>,
    /// What the store was not told of runs that are over.
    pub(super) debts: Debts,
}

pub(super) struct Active {
    pub(super) core: AgentLoop,
    pub(super) cancel: CancelToken,
    /// The reply while it streams.
    pub(super) growing: Option<Box<Growing>>,
}

impl Assistant {
    /// Starts an assistant of this model.
    pub fn builder(model: impl Model + 'static) -> AssistantBuilder {
        AssistantBuilder::new(Arc::new(model))
    }

    pub(super) fn new(config: Arc<Config>, conversation: Conversation) -> Self {
        let recipient = config.model.info().recipient();
        let state = State {
            conversation,
            is_suspect: true,
            is_undecided: false,
            active: None,
            steering: MessageQueue::default(),
            follow_ups: MessageQueue::default(),
            listeners: config.listeners.clone(),
            hand_off: HandOff::new(recipient),
            last_error: None,
            cache: ResultCache::default(),
            spilled: Vec::new(),
            session: None,
            debts: Debts::default(),
        };
        let state = Mutex::new(state);
        Self { shared: Arc::new(Shared { config, state, idle: Notify::new(), steered: Notify::new() }) }
    }

    #[doc = include_str!("../docs/fork.md")]
    pub fn fork(&self) -> Self {
        let fork = Self::new(self.shared.config.clone(), self.messages());
        let spilled = self.state().spilled.clone();
        fork.state().spilled = spilled;
        fork
    }

    /// Asks: text, parts, or a message. Nothing happens until the prompt is awaited.
    ///
    /// Dropping the future cancels the run; the conversation stays sound.
    pub fn prompt(&self, input: impl Into<UserMessage>) -> Prompt {
        Prompt::new(self.clone(), Begin::Prompts(vec![Message::User(input.into())]))
    }

    /// Asks, and tells what happens: a stream of events that drives the run as it is read. Short for
    /// `prompt(input).stream()`.
    ///
    /// ```
    /// # use agent::{Assistant, EventKind, RunError};
    /// # async fn example(assistant: Assistant) -> Result<(), RunError> {
    /// let mut run = assistant.run("Tell me a story");
    /// while let Some(event) = run.next().await {
    ///     if let EventKind::MessageUpdate { update, .. } = &event.kind {
    ///         print!("{}", update.text_delta().unwrap_or_default());
    ///     }
    /// }
    /// println!("{} tokens", run.output().await?.usage.total);
    /// # Ok(()) }
    /// ```
    pub fn run(&self, input: impl Into<UserMessage>) -> Run {
        self.prompt(input).stream()
    }

    /// Asks for a value. Short for `prompt(input).output::<T>()` without the run.
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    /// use agent::Assistant;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new([r#"{"result": [2, 3, 5]}"#])).build()?;
    /// assert_eq!(assistant.extract::<Vec<u32>>("Three primes?").await?, [2, 3, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As those of an awaited prompt, and [`RunError::Output`] for an answer that does not fit after all tries.
    pub async fn extract<T: Argument>(&self, input: impl Into<UserMessage>) -> Result<T, RunError> {
        let prompt = self.prompt(input);
        Ok(prompt.output::<T>().await?.value)
    }

    /// Goes on from the conversation as it is. Where its last message is the assistant's, a queued message is taken
    /// first: from the steering queue, else from the follow-ups.
    ///
    /// The prompt fails, before any event, with [`RunError::NothingToContinue`] or
    /// [`RunError::LastMessageIsAssistant`].
    pub fn continue_run(&self) -> Prompt {
        Prompt::new(self.clone(), Begin::Continue)
    }

    /// Goes on with a run that was suspended: its calls are allowed or denied, results that were outstanding arrive.
    ///
    /// The snapshot may come from another process. Then its approvals count only when they are signed: see
    /// [`approval_key`](AssistantBuilder::approval_key). Its conversation must be that of this assistant, or this one has
    /// none. What waits is checked against the decisions before anything happens; when they do not fit, the prompt fails
    /// with [`RunError::Resume`] and everything still waits. A call whose tool has other parameters by now is not run:
    /// its result is a failure with the code `approval_stale`. The run keeps its id and its limits, but time starts
    /// again.
    ///
    /// A snapshot that was taken in the middle of a run ([`RunHandle::snapshot`](super::RunHandle::snapshot)) goes on from
    /// there: what was asked is asked again, calls that had begun run again with the same idempotency key, or, where
    /// that must not happen (effect `once`), end as interrupted. Resume a snapshot once: a store has to see to that.
    ///
    /// ```
    /// use agent::{Assistant, Decisions, RunError};
    /// use agent::loop_core::AgentLoop;
    ///
    /// # async fn example(assistant: Assistant, stored: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let suspended: AgentLoop = serde_json::from_str(stored)?;
    /// let decisions = suspended
    ///     .approval_requests()
    ///     .iter()
    ///     .fold(Decisions::new(), |decisions, request| decisions.deny(request, "not today"));
    /// println!("{}", assistant.resume(&suspended, decisions).await?.text());
    /// # Ok(()) }
    /// ```
    pub fn resume(&self, suspended: &AgentLoop, decisions: Decisions) -> Prompt {
        let run = Box::new((suspended.clone(), decisions));
        Prompt::new(self.clone(), Begin::Resume { run, messages: Vec::new() })
    }

    /// Asks, and goes on in a task of its own: the run is driven by the tokio runtime, whoever listens. What comes of it
    /// is told to [subscribers](Self::subscribe); [`wait_until_idle`](Self::wait_until_idle) waits for its end.
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    /// use agent::Assistant;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let run = assistant.start("Hi")?;
    /// assert!(assistant.start("Me too").unwrap_err().is_busy());
    /// assistant.wait_until_idle().await;
    /// assert_eq!(assistant.messages().last().unwrap().text(), "Hello!");
    /// # drop(run); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A run is going on; or what an awaited prompt fails with before its first event. Outside of a tokio runtime,
    /// [`RunError::NoRuntime`].
    pub fn start(&self, input: impl Into<UserMessage>) -> Result<RunHandle, RunError> {
        self.prompt(input).start()
    }

    /// Says something to the run that goes on: it is heard before the next request. While idle it waits for the first
    /// turn of the next run.
    pub fn steer(&self, message: impl Into<UserMessage>) -> Receipt {
        let receipt = self.state().steering.push(message.into());
        self.shared.steered.notify_one();
        receipt
    }

    /// Says something that is heard when the run would end. While idle it waits for the end of the next run.
    pub fn follow_up(&self, message: impl Into<UserMessage>) -> Receipt {
        self.state().follow_ups.push(message.into())
    }

    /// The messages that wait in a queue, oldest first.
    pub fn queued(&self, queue: Queue) -> Vec<Arc<Message>> {
        self.state().queue(queue).messages()
    }

    /// Takes all messages out of a queue; their receipts say so.
    pub fn clear_queue(&self, queue: Queue) {
        self.state().queue(queue).clear();
    }

    /// Takes the message of this [id](Receipt::id) out of its queue, and its receipt says so. False when it waits in neither.
    pub fn remove_queued(&self, id: &str) -> bool {
        let mut state = self.state();
        state.steering.remove(id) || state.follow_ups.remove(id)
    }

    /// The conversation so far, that of the run that goes on included. The messages are shared, not copied.
    pub fn messages(&self) -> Conversation {
        let state = self.state();
        match &state.active {
            Some(active) => active.core.conversation().clone(),
            None => state.conversation.clone(),
        }
    }

    /// The reply as far as it has come, while one streams: a copy. Calls in it may not be whole.
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    /// use agent::{Assistant, EventKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["A long story."]).with_chunk_size(7)).build()?;
    /// let mut run = assistant.run("Tell me");
    /// let mut seen = Vec::new();
    /// while run.next().await.is_some() {
    ///     seen.extend(assistant.streaming_message().map(|message| message.text()));
    /// }
    /// assert!(seen.contains(&"A long ".to_owned()) && seen.contains(&"A long story.".to_owned()));
    /// assert!(assistant.streaming_message().is_none());
    /// # Ok(()) }
    /// ```
    pub fn streaming_message(&self) -> Option<AssistantMessage> {
        self.state().active.as_ref()?.growing.as_deref().map(Growing::message)
    }

    /// The calls of the run that have begun and not ended, each as id and tool, in call order.
    pub fn pending_calls(&self) -> Vec<(String, String)> {
        let state = self.state();
        let calls = state.active.iter().flat_map(|active| active.core.running_calls());
        calls.map(|(id, tool)| (id.to_owned(), tool.to_owned())).collect()
    }

    /// Why the last run failed, or the limit that ended it, until the next one begins. A run that was cancelled did not fail.
    pub fn last_error(&self) -> Option<String> {
        self.state().last_error.clone()
    }

    /// What the model is shown of the tools, in the order of registration. Iterate over it with `.iter()`.
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.registry().definitions()
    }

    /// The tools with the state that they share, to call them without a model.
    pub fn registry(&self) -> &Registry {
        &self.shared.config.registry
    }

    /// Whether a prompt is being answered.
    pub fn is_busy(&self) -> bool {
        self.state().active.is_some()
    }

    /// Cancels the run that is going on, if there is one. Its prompt ends with [`RunError::Aborted`]. Messages in
    /// queues stay there.
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        let active = self.state().active.as_ref().map(|active| active.cancel.clone());
        if let Some(run) = active {
            run.cancel(reason);
        }
    }

    /// Waits until no prompt is being answered, and every listener has returned.
    pub async fn wait_until_idle(&self) {
        loop {
            // Made before the look, so that a run which ends in between is not missed.
            let idle = self.shared.idle.notified();
            if !self.is_busy() {
                return;
            }
            idle.await;
        }
    }

    /// Begins anew: cancels the run that is going on, waits for its end, and forgets all messages, queued ones and
    /// cached results included. A session is told so; where its store fails, with the next prompt.
    pub async fn reset(&self) {
        loop {
            let idle = self.shared.idle.notified();
            if self.forget() {
                return self.forget_session().await;
            }
            self.cancel("reset");
            idle.await;
        }
    }

    fn forget(&self) -> bool {
        let mut state = self.state();
        if state.active.is_some() {
            return false;
        }
        state.conversation.clear();
        state.steering.clear();
        state.follow_ups.clear();
        state.cache.clear();
        state.last_error = None;
        let spilled = std::mem::take(&mut state.spilled);
        drop(state);
        drop(spilled);
        true
    }

    /// Tells a function of every event, in order, until the subscription is dropped. The run waits for it, so it should
    /// not block; when it panics it is not called again, and the run goes on.
    pub fn subscribe(&self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Subscription {
        self.subscribe_listener(Listener::new(on_event))
    }

    /// The same for an asynchronous function: the run waits until it is done.
    pub fn subscribe_async<F>(
        &self,
        on_event: impl Fn(Arc<Event>) -> F + Send + Sync + 'static,
    ) -> Subscription
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.subscribe_listener(Listener::asynchronous(on_event))
    }

    /// A stream of the events from now on, to be read elsewhere; it ends after the next `agent_end`.
    pub fn events(&self) -> EventStream {
        EventStream::pair(|listener| self.subscribe_listener(listener))
    }

    fn subscribe_listener(&self, listener: Listener) -> Subscription {
        let mut state = self.state();
        let listener = state.listeners.add(listener);
        if let Some(active) = &mut state.active {
            active.core.mute(false);
        }
        let shared = Arc::downgrade(&self.shared);
        Subscription::new(move || {
            if let Some(shared) = shared.upgrade() {
                Assistant { shared }.state().listeners.remove(&listener);
            }
        })
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.shared.config
    }

    /// Whether anybody is told of events.
    pub(super) fn is_watched(&self) -> bool {
        !self.state().listeners.is_empty()
    }

    pub(super) async fn steered(&self) {
        self.shared.steered.notified().await;
    }

    /// Whether a message came in this turn that steers.
    pub(super) fn is_steered(&self) -> bool {
        self.state().steering.has_news()
    }

    /// Whoever waits for the end of the run goes on.
    pub(super) fn tell_idle(&self) {
        self.shared.idle.notify_waiters();
    }

    /// Keeps a file as long as the conversation may name it.
    pub(super) fn keep_file(&self, file: SpilledFile) {
        self.state().spilled.push(Arc::new(file));
    }

    /// Never held while anything of the application runs, so nothing can panic under it.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue(&mut self, queue: Queue) -> &mut MessageQueue {
        match queue {
            Queue::Steering => &mut self.steering,
            Queue::FollowUp => &mut self.follow_ups,
        }
    }
}

impl fmt::Debug for Assistant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.config();
        f.debug_struct("Assistant")
            .field("model", config.model.info())
            .field("tools", &config.registry)
            .field("messages", &self.messages().len())
            .finish_non_exhaustive()
    }
}
