//! The assistant: its configuration, its conversation and its queues.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use super::cache::ResultCache;
use super::config::Config;
use super::context::ContextState;
use super::growing::GrowingReply;
use super::listener::{Listener, Listeners, Subscription};
use super::queue::{MessageQueue, QueuedMessage, Receipt};
use super::records::{SessionState, UnrecordedEnds};
use super::spill::{SpilledFile, SpilledResults};
use crate::loop_core::{AgentLoop, Event, Queue};
use crate::message::{AssistantMessage, Conversation, HandOff, Message, UserMessage};
use crate::steps::SharedLoop;
use crate::tool::cancel::CancelToken;
use crate::tool::definition::ToolDefinition;
use crate::tool::registry::Registry;

/// A model with tools and a conversation.
///
/// An assistant answers one prompt at a time, and each prompt continues the same conversation. Cloning is cheap, and all clones share one
/// conversation. [`fork`](Self::fork) creates an independent assistant. Prompts need a tokio runtime with its timer enabled.
///
/// ```
/// use agent::Assistant;
/// use agent::model::reply;
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!", "You said hi."]))
///     .system("Be brief.")
///     .build()?;
/// assert_eq!(assistant.prompt("Hi").await?.text(), "Hello!");
/// assert_eq!(assistant.prompt("What did I say?").await?.text(), "You said hi.");
/// assert_eq!(assistant.messages().len(), 4);
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/assistant.md")]
#[derive(Clone)]
pub struct Assistant {
    shared: Arc<SharedAssistant>,
}

tokio::task_local! {
    /// The ids of the assistants in whose runs the current code executes.
    static RUNS: Vec<usize>;
}

struct SharedAssistant {
    config: Arc<Config>,
    cache: OnceLock<ResultCache>,
    state: Mutex<AssistantState>,
    idle: Notify,
    steered: Notify,
}

/// The mutable state of an assistant. During a run, the conversation is in `active`.
pub(super) struct AssistantState {
    pub(super) conversation: Conversation,
    /// Whether the conversation must be checked and repaired before the next run.
    pub(super) is_suspect: bool,
    /// Whether the last run was suspended for decisions. If so, the calls without results have not begun.
    pub(super) is_undecided: bool,
    pub(super) active: Option<AssistantRun>,
    pub(super) steering: MessageQueue,
    pub(super) follow_ups: MessageQueue,
    pub(super) listeners: Listeners,
    /// The conversation in the form that the model receives, kept for the next request.
    pub(super) hand_off: HandOff,
    /// The part of the conversation that the model sees, if the context is managed.
    pub(super) context: ContextState,
    pub(super) last_error: Option<String>,
    /// The files of long results that were written by this assistant, or by the assistants that it was forked from.
    spilled: Vec<Arc<SpilledFile>>,
    pub(super) session: Option<Box<SessionState>>,
    pub(super) debts: UnrecordedEnds,
}

pub(super) struct AssistantRun {
    pub(super) run: SharedLoop,
    pub(super) cancel: CancelToken,
    pub(super) growing: Option<GrowingReply>,
    /// Copies the run with its sub-agents. `None` until the run has had a sub-agent.
    pub(super) copy_tree: Option<Arc<dyn Fn() -> AgentLoop + Send + Sync>>,
}

impl Assistant {
    pub(super) fn new(config: Arc<Config>, conversation: Conversation) -> Self {
        let hand_off = HandOff::new(config.model.info().recipient());
        Self::with_hand_off(config, conversation, hand_off)
    }

    fn with_hand_off(config: Arc<Config>, conversation: Conversation, hand_off: HandOff) -> Self {
        let state = AssistantState {
            conversation,
            is_suspect: true,
            is_undecided: false,
            active: None,
            steering: MessageQueue::default(),
            follow_ups: MessageQueue::default(),
            listeners: config.listeners.clone(),
            hand_off,
            context: ContextState::default(),
            last_error: None,
            spilled: Vec::new(),
            session: None,
            debts: UnrecordedEnds::default(),
        };
        let state = Mutex::new(state);
        Self {
            shared: Arc::new(SharedAssistant {
                config,
                cache: OnceLock::new(),
                state,
                idle: Notify::new(),
                steered: Notify::new(),
            }),
        }
    }

    #[doc = include_str!("../docs/fork.md")]
    pub fn fork(&self) -> Self {
        let state = self.state();
        let fork = Self::with_hand_off(self.shared.config.clone(), state.messages(), state.hand_off.fork());
        let mut begun = fork.state();
        begun.spilled.clone_from(&state.spilled);
        // An active run, or one that waits for decisions, has calls without results, so the conversation must be checked.
        begun.is_suspect = state.is_suspect || state.is_undecided || state.active.is_some();
        drop((begun, state));
        fork
    }

    /// Creates another assistant like [`fork`](Self::fork), with this conversation instead of a copy: for example a conversation that
    /// another assistant hands over. A conversation that is not sound is repaired with the next prompt.
    ///
    /// ```
    /// use agent::message::{Conversation, Message};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let billing = Assistant::builder(ScriptedModel::new(["It is paid."])).build()?;
    /// let next = billing.fork_with(Conversation::from_iter([Message::user("I am Ann.")]));
    /// assert_eq!(next.prompt("Is my invoice paid?").await?.text(), "It is paid.");
    /// assert_eq!((next.messages().len(), billing.messages().len()), (3, 0));
    /// # Ok(()) }
    /// ```
    pub fn fork_with(&self, conversation: Conversation) -> Self {
        Self::new(self.shared.config.clone(), conversation)
    }

    /// Queues a message for the current run, which reads the oldest message before each request, or [all
    /// messages](super::AssistantBuilder::deliver_all) at once. While the assistant is idle, the message waits for the next run.
    pub fn steer(&self, message: impl Into<UserMessage>) -> Receipt {
        let message = message.into();
        let receipt = self.state().steering.push(message);
        self.shared.steered.notify_one();
        receipt
    }

    /// Queues a message that is read when the run would otherwise end. While the assistant is idle, the message waits for the end of the
    /// next run.
    pub fn follow_up(&self, message: impl Into<UserMessage>) -> Receipt {
        let message = message.into();
        self.state().follow_ups.push(message)
    }

    /// Returns the messages that wait in a queue, oldest first.
    pub fn queued(&self, queue: Queue) -> Vec<Arc<Message>> {
        self.state().queue(queue).messages()
    }

    /// Removes all messages from a queue. Their receipts report [`Delivery::Cleared`](super::Delivery::Cleared).
    pub fn clear_queue(&self, queue: Queue) {
        let cleared = self.state().queue(queue).clear();
        cleared.iter().for_each(QueuedMessage::clear);
    }

    /// Removes the message with this [id](Receipt::id) from its queue, and reports this to its receipt. Returns false if neither queue has
    /// the message.
    pub fn remove_queued(&self, id: &str) -> bool {
        let mut state = self.state();
        let removed = state.steering.remove(id).or_else(|| state.follow_ups.remove(id));
        drop(state);
        removed.inspect(QueuedMessage::clear).is_some()
    }

    /// Returns the conversation so far, including the messages of the current run. The messages are shared, not copied.
    pub fn messages(&self) -> Conversation {
        self.state().messages()
    }

    /// Returns a copy of the reply that is being streamed, as far as it has arrived. Calls in it may be incomplete.
    ///
    /// ```
    /// use agent::{Assistant, EventKind, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant =
    ///     Assistant::builder(ScriptedModel::new(["A long story."]).with_chunk_size(7)).build()?;
    /// let mut run = assistant.prompt("Tell me").stream();
    /// let mut seen = Vec::new();
    /// while run.next().await.is_some() {
    ///     seen.extend(assistant.streaming_message().map(|message| message.text()));
    /// }
    /// assert!(seen.contains(&"A long ".to_owned()) && seen.contains(&"A long story.".to_owned()));
    /// assert!(assistant.streaming_message().is_none());
    /// # Ok(()) }
    /// ```
    pub fn streaming_message(&self) -> Option<AssistantMessage> {
        self.state().active.as_ref()?.growing.as_ref().map(GrowingReply::message)
    }

    /// Returns the calls of the current run that were announced and have not ended, each as id and tool name, in call order. Calls that are
    /// being checked, or wait for a decision, are among them.
    pub fn pending_calls(&self) -> Vec<(String, String)> {
        let state = self.state();
        let Some(active) = &state.active else { return Vec::new() };
        let run = active.run.lock();
        run.running_calls().map(|(id, tool)| (id.to_owned(), tool.to_owned())).collect()
    }

    /// Returns the error or the limit that ended the last run, until the next run begins or the assistant is reset. A cancelled run has no
    /// error.
    pub fn last_error(&self) -> Option<String> {
        self.state().last_error.clone()
    }

    /// Returns the definitions of the tools as the model sees them, in the order of registration. Iterate over them with `.iter()`.
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.registry().definitions()
    }

    /// Returns the registry: the tools and their shared state. Use it to call tools without a model.
    pub fn registry(&self) -> &Registry {
        &self.shared.config.registry
    }

    /// Returns whether a prompt is being answered.
    pub fn is_busy(&self) -> bool {
        self.state().active.is_some()
    }

    /// Cancels the current run, if there is one. Its prompt fails with [`RunError::Aborted`](super::RunError::Aborted). Queued messages
    /// stay in their queues.
    ///
    /// A [stream](super::Prompt::stream) becomes the current run when it is first polled. Before its first poll, only the
    /// [handle](super::Run::handle) of the stream can cancel it.
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        let active = self.state().active.as_ref().map(|active| active.cancel.clone());
        if let Some(run) = active {
            run.cancel(reason);
        }
    }

    /// Waits until no prompt is being answered and every listener has returned.
    ///
    /// A run waits for its listeners, hooks and tools, so none of them can wait for the end of the run. If one of them calls this function
    /// in the same task, the function returns at once and logs a warning. Code that a listener only starts, with `tokio::spawn`, may wait.
    pub async fn wait_until_idle(&self) {
        if RUNS.try_with(|runs| runs.contains(&self.id())).unwrap_or_default() {
            tracing::warn!("code that a run waits for called `wait_until_idle` on its assistant");
            return;
        }
        loop {
            // The future is created before the check. If it were created later, it would miss the end of a run that ends after the check.
            let idle = self.shared.idle.notified();
            if !self.is_busy() {
                return;
            }
            idle.await;
        }
    }

    /// Starts over: cancels the current run, waits for its end, and discards all messages, queued messages, cached results and [files of
    /// results](super::AssistantBuilder::spill_results). A [cache that assistants share](super::AssistantBuilder::cache_results_in) keeps
    /// its results. Do not await this function in a listener, hook or tool of the same assistant, because the run waits for all of them.
    ///
    /// The reset is recorded in the session, if there is one. If the store fails, the reset is recorded with the next prompt.
    pub async fn reset(&self) {
        loop {
            let idle = self.shared.idle.notified();
            if self.clear_if_idle() {
                return self.record_reset().await;
            }
            self.cancel("reset");
            idle.await;
        }
    }

    fn clear_if_idle(&self) -> bool {
        let mut state = self.state();
        if state.active.is_some() {
            return false;
        }
        state.conversation.clear();
        state.context = ContextState::default();
        let cleared = [state.steering.clear(), state.follow_ups.clear()];
        state.last_error = None;
        let spilled = std::mem::take(&mut state.spilled);
        drop(state);
        drop(spilled);
        if let (None, Some(cache)) = (&self.config().shared_cache, self.shared.cache.get()) {
            cache.clear();
        }
        cleared.iter().flatten().for_each(QueuedMessage::clear);
        true
    }

    /// Calls a function with every event, in order, until the returned subscription is dropped.
    ///
    /// The run waits for the function, so the function should not block. To let a run wait, use a [hook](crate::hooks::Hooks); to read
    /// events at your own pace, [stream](super::Prompt::stream) the run. If the function panics, it is not called again, and the run
    /// continues.
    pub fn subscribe(&self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Subscription {
        let mut state = self.state();
        let listener = state.listeners.add(Listener::new(on_event));
        if let Some(active) = &mut state.active {
            active.run.lock().mute(false);
        }
        let shared = Arc::downgrade(&self.shared);
        Subscription::new(move || {
            if let Some(shared) = shared.upgrade() {
                let assistant = Assistant { shared };
                let before = assistant.state().listeners.remove(&listener);
                drop(before);
            }
        })
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.shared.config
    }

    pub(super) fn cache(&self) -> &ResultCache {
        self.shared.cache.get_or_init(|| self.config().shared_cache.clone().unwrap_or_default())
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.state().listeners.is_empty()
    }

    /// Wraps the future of a run, so that `wait_until_idle` recognizes calls from inside the run. This function is not `async`, because
    /// its future would contain `run` twice.
    pub(super) fn within<F: Future>(&self, run: F) -> impl Future<Output = F::Output> + use<F> {
        let mut runs = RUNS.try_with(Vec::clone).unwrap_or_default();
        runs.push(self.id());
        RUNS.scope(runs, run)
    }

    fn id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// Waits for the notification that a steering message arrived. The message may have left the queue already, so check
    /// [`is_steered`](Self::is_steered).
    pub(super) async fn steered(&self) {
        self.shared.steered.notified().await;
    }

    pub(super) fn is_steered(&self) -> bool {
        self.state().steering.has_new_messages()
    }

    pub(super) fn notify_idle(&self) {
        self.shared.idle.notify_waiters();
    }

    pub(super) fn keep_file(&self, file: SpilledFile) {
        self.state().spilled.push(Arc::new(file));
    }

    pub(super) fn spilled_results(&self) -> SpilledResults {
        let files = self.state().spilled.clone();
        SpilledResults::new(files, self.messages())
    }

    /// Locks the state. No code of the application runs while the lock is held, so no panic can poison it.
    pub(super) fn state(&self) -> MutexGuard<'_, AssistantState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AssistantState {
    fn messages(&self) -> Conversation {
        match &self.active {
            Some(active) => active.run.lock().conversation().clone(),
            None => self.conversation.clone(),
        }
    }

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
