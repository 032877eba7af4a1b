//! One prompt and its answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::run::Run;
use super::{Assistant, RunError};
use crate::message::{Message, Usage, UserMessage};
use crate::{BoxFuture, CancelToken, ToolContext, ToolContextBuilder};

/// A prompt that waits to be awaited. Made by [`Assistant::prompt`].
#[must_use = "a prompt does nothing until it is awaited"]
pub struct Prompt {
    assistant: Assistant,
    input: UserMessage,
    context: ToolContextBuilder,
    cancel: CancelToken,
}

impl Prompt {
    pub(super) fn new(assistant: Assistant, input: UserMessage) -> Self {
        Self { assistant, input, context: ToolContext::builder(), cancel: CancelToken::new() }
    }

    /// Gives tools a value for this prompt alone; it shadows the assistant's of that type.
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

    /// Gives tools a shared value for this prompt alone; `T` may be a trait.
    pub fn with_shared_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        self.context = self.context.shared_state(value);
        self
    }

    /// Says to what the tools' work belongs; they find it in their context.
    pub fn session_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.context = self.context.session_id(id);
        self
    }

    /// Ends the run when this token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = token;
        self
    }

    async fn run(self) -> Result<RunOutput, RunError> {
        let run_id = new_run_id();
        // A child: ending this run must not end others that share the token.
        let cancel = self.cancel.child();
        let config = self.assistant.config();
        let mut context =
            self.context.run_id(run_id.clone()).cancel(cancel.clone()).cancel_grace(config.cancel_grace);
        if crate::default_executor().sleep(Duration::ZERO).is_some() {
            context = context.default_timeout(config.tool_timeout);
        } else {
            tracing::warn!(%run_id, "outside of a tokio runtime with a clock, tools have no time limit");
        }
        let context = context.build()?;
        config.registry.check_state(&context).map_err(RunError::MissingState)?;
        self.assistant.begin_run(cancel.clone())?;
        Run::new(self.assistant, run_id, cancel, context).execute(vec![Message::User(self.input)]).await
    }
}

impl IntoFuture for Prompt {
    type Output = Result<RunOutput, RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("input", &self.input).finish_non_exhaustive()
    }
}

/// Unlike any other: 128 bits from the standard library's source of hash keys.
fn new_run_id() -> Arc<str> {
    use std::hash::{BuildHasher as _, RandomState};
    let random = || RandomState::new().hash_one(std::time::SystemTime::now());
    format!("run_{:016x}{:016x}", random(), random()).into()
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStop {
    /// The model was done.
    Completed,
    /// A tool ended it.
    Terminated,
    /// A limit was reached.
    Limit,
    /// It was cancelled.
    Aborted,
    /// The model failed.
    Error,
}

/// What a prompt came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunOutput {
    /// The id of the run, as in its events.
    pub run_id: Arc<str>,
    /// Every message that the run added, the prompt first.
    pub messages: Vec<Arc<Message>>,
    /// What it took.
    pub usage: Usage,
    /// How many replies it took.
    pub turns: u32,
    /// How it ended.
    pub stop: RunStop,
}

impl RunOutput {
    /// The text of the last reply.
    pub fn text(&self) -> String {
        let reply = self.messages.iter().rev().find_map(|message| message.as_assistant());
        reply.map(crate::message::AssistantMessage::text).unwrap_or_default()
    }
}
