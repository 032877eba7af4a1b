//! The assistant: what it is made of, and its conversation.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::listener::Listener;
use super::{AssistantBuilder, Prompt, RunError};
use crate::message::{Conversation, Message, UserMessage};
use crate::model::{Model, ModelRequest};
use crate::{CancelToken, Registry, ToolDefinition};

/// A model with tools and a conversation.
///
/// Clones are the same assistant. One prompt is answered at a time; the conversation goes on from prompt to prompt.
/// It needs a tokio runtime with its clock.
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
#[derive(Clone)]
pub struct Assistant {
    shared: Arc<Shared>,
}

/// What never changes.
pub(super) struct Config {
    pub(super) model: Arc<dyn Model>,
    /// What every request has in common.
    pub(super) request: ModelRequest,
    pub(super) registry: Registry,
    pub(super) listeners: Arc<[Listener]>,
    pub(super) max_turns: u32,
    pub(super) max_concurrency: usize,
    pub(super) tool_timeout: Duration,
    pub(super) cancel_grace: Duration,
}

struct Shared {
    config: Config,
    state: Mutex<State>,
    idle: Notify,
}

#[derive(Default)]
struct State {
    conversation: Conversation,
    /// The token of the run that is going on.
    active: Option<CancelToken>,
}

impl Assistant {
    /// Starts an assistant of this model.
    pub fn builder(model: impl Model + 'static) -> AssistantBuilder {
        AssistantBuilder::new(Arc::new(model))
    }

    pub(super) fn new(config: Config) -> Self {
        Self { shared: Arc::new(Shared { config, state: Mutex::default(), idle: Notify::new() }) }
    }

    /// Asks: text, parts, or a message. Nothing happens until the prompt is awaited.
    ///
    /// Dropping the future cancels the run; the conversation stays sound.
    pub fn prompt(&self, input: impl Into<UserMessage>) -> Prompt {
        Prompt::new(self.clone(), input.into())
    }

    /// The conversation so far. The messages are shared, not copied.
    pub fn messages(&self) -> Conversation {
        self.state().conversation.clone()
    }

    /// What the model is shown of the tools, in its order.
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.registry().definitions()
    }

    /// The tools.
    pub fn registry(&self) -> &Registry {
        &self.shared.config.registry
    }

    /// Whether a prompt is being answered.
    pub fn is_busy(&self) -> bool {
        self.state().active.is_some()
    }

    /// Cancels the run that is going on, if there is one. Its prompt ends with [`RunError::Aborted`].
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        let active = self.state().active.clone();
        if let Some(run) = active {
            run.cancel(reason);
        }
    }

    /// Waits until no prompt is being answered.
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

    /// Begins a new conversation: cancels the run that is going on, waits for its end, and forgets all messages.
    pub async fn reset(&self) {
        loop {
            let idle = self.shared.idle.notified();
            {
                let mut state = self.state();
                if state.active.is_none() {
                    state.conversation.clear();
                    return;
                }
            }
            self.cancel("reset");
            idle.await;
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.shared.config
    }

    /// # Errors
    /// A run is going on.
    pub(super) fn begin_run(&self, cancel: CancelToken) -> Result<(), RunError> {
        let mut state = self.state();
        if state.active.is_some() {
            return Err(RunError::Busy);
        }
        state.active = Some(cancel);
        Ok(())
    }

    pub(super) fn end_run(&self) {
        self.state().active = None;
        self.shared.idle.notify_waiters();
    }

    pub(super) fn push(&self, message: Arc<Message>) {
        self.state().conversation.push(message);
    }

    /// The next request.
    pub(super) fn request(&self) -> ModelRequest {
        let recipient = crate::message::Recipient::default();
        let messages = crate::message::HandOff::of(&self.state().conversation, recipient).messages().clone();
        ModelRequest { messages, ..self.config().request.clone() }
    }

    /// Never held while anything of the application runs, so nothing can panic under it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Assistant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.config();
        f.debug_struct("Assistant")
            .field("model", config.model.info())
            .field("tools", &config.registry)
            .field("messages", &self.state().conversation.len())
            .finish_non_exhaustive()
    }
}
