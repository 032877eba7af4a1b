//! Why a run did not end well.

use super::{BuildError, ResumeError, RunOutput};
use crate::loop_core::{AgentLoop, LimitReached};
use crate::model::ModelError;
use crate::store::StoreError;
use crate::{DuplicateState, RegistryError};

/// Why a prompt did not come to an answer.
///
/// In every case the conversation is sound: each call in it has its result, and the next prompt goes on from there.
/// A tool that fails is no error: the model is told.
///
/// Variants with fields may get more fields, so a pattern ends in `..`, as in `RunError::Aborted { reason, .. }`.
///
/// ```
/// use agent::model::{ModelError, ModelErrorKind, reply};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::BuildError> {
/// let failing = reply().error(ModelError::new(ModelErrorKind::Auth, "the key is not valid"));
/// let assistant = Assistant::builder(ScriptedModel::new([failing, reply().text("Hello!")])).build()?;
/// let error = assistant.prompt("Hi").await.unwrap_err();
/// assert!(error.as_model_error().is_some_and(ModelError::is_auth));
/// assert!(assistant.prompt("Again?").await.is_ok());   // the conversation is sound
/// # Ok(()) }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Another prompt is being answered. It is not touched.
    #[error("the assistant is busy with another prompt")]
    Busy,
    /// There is no message to go on from.
    #[error("there is nothing to continue: the conversation is empty")]
    NothingToContinue,
    /// The model has answered, and no message waits for it.
    #[error("there is nothing to continue: the last message is the assistant's and no message is queued")]
    LastMessageIsAssistant,
    /// Tools need state that neither the assistant nor the prompt has.
    #[error("the prompt lacks state: {}", .0.of_a_prompt())]
    MissingState(#[source] RegistryError),
    /// The prompt was given two values of one type.
    #[error(transparent)]
    DuplicateState(#[from] DuplicateState),
    /// The model did not answer.
    #[error("the model failed: {0}")]
    Model(#[source] ModelError),
    /// The request could not be made: a hook failed.
    #[error("the request could not be made: {message}")]
    #[non_exhaustive]
    Request {
        /// How it failed.
        message: String,
    },
    /// A limit was reached.
    #[error("{0} and the model has not finished; prompt again to go on from here")]
    Limit(LimitReached),
    /// The run was cancelled.
    #[error("the run was aborted: {reason}")]
    #[non_exhaustive]
    Aborted {
        /// Why.
        reason: String,
    },
    /// The decisions do not fit the run that waits for them; it still waits.
    #[error("the run cannot go on: {0}")]
    Resume(#[source] ResumeError),
    /// An answer of a type was asked for, and the run waits for decisions or results from outside. Resume it with
    /// [`output`](super::Prompt::output) again.
    #[error("the run is suspended: it waits for {} decisions or results", .0.pending().len())]
    Suspended(Box<AgentLoop>),
    /// The tools cannot be shown to the source that the prompt names.
    #[error("the tools cannot be shown: {0}")]
    Tools(#[source] RegistryError),
    /// A run in a task of its own needs a tokio runtime.
    #[error("there is no tokio runtime to start the run in")]
    NoRuntime,
    /// The store failed, or somebody else went on with the session. The conversation is whole in memory, not in the store; the
    /// next prompt writes down what is missing, unless it is a conflict.
    #[error("{error}")]
    #[non_exhaustive]
    Store {
        /// How.
        #[source]
        error: StoreError,
        /// What the run came to all the same.
        output: Box<RunOutput>,
    },
    /// The answer does not fit the type that was asked for.
    #[error("the answer does not fit: {message}")]
    #[non_exhaustive]
    Output {
        /// The report of the last try.
        message: String,
    },
}

crate::error_text::debug_is_the_sentence!(RunError);

impl RunError {
    /// Whether another prompt is being answered.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new([reply().hang()])).build()?;
    /// let run = assistant.start("Hi")?;
    /// let error = assistant.prompt("Me too").await.unwrap_err();
    /// assert!(error.is_busy());
    /// assert_eq!(error.code(), "busy");
    /// # drop(run);
    /// # Ok(()) }
    /// ```
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// Whether the run was cancelled.
    ///
    /// ```
    /// use agent::{Assistant, CancelToken, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let hang_up = CancelToken::new();
    /// hang_up.cancel("the user left");
    /// let error = assistant.prompt("Hi").cancel(hang_up).await.unwrap_err();
    /// assert!(error.is_aborted() && !error.is_limit());
    /// assert_eq!(error.to_string(), "the run was aborted: the user left");
    /// # Ok(()) }
    /// ```
    pub fn is_aborted(&self) -> bool {
        matches!(self, Self::Aborted { .. })
    }

    /// Whether a limit ended the run.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit(_))
    }

    /// The limit that ended the run, if one did.
    ///
    /// ```
    /// use agent::loop_core::Limit;
    /// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Looks once more.
    /// #[tool(read_only)]
    /// fn look() -> &'static str {
    ///     "nothing yet"
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::from_fn(|_| reply().tool_call("look", "{}"));
    /// let assistant = Assistant::builder(model).tools(tools![look]).max_turns(2).build()?;
    /// let error = assistant.prompt("Wait for it.").await.unwrap_err();
    /// assert!(error.is_limit());
    /// assert_eq!(error.as_limit().map(|reached| (reached.limit, reached.allowed)), Some((Limit::Turns, 2.0)));
    /// # Ok(()) }
    /// ```
    pub fn as_limit(&self) -> Option<&LimitReached> {
        match self {
            Self::Limit(reached) => Some(reached),
            _ => None,
        }
    }

    /// Why a suspended run could not go on, if that was it.
    ///
    /// ```
    /// use agent::loop_core::{AgentLoop, LoopConfig};
    /// use agent::message::{Conversation, Message};
    /// use agent::{Assistant, Decisions, ResumeError, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
    /// run.abort("the user left");
    /// let error = assistant.resume(&run, Decisions::new()).await.unwrap_err();
    /// assert_eq!(error.as_resume_error(), Some(&ResumeError::Over));
    /// # Ok(()) }
    /// ```
    pub fn as_resume_error(&self) -> Option<&ResumeError> {
        match self {
            Self::Resume(error) => Some(error),
            _ => None,
        }
    }

    /// The error of the model, if it was one.
    pub fn as_model_error(&self) -> Option<&ModelError> {
        match self {
            Self::Model(error) => Some(error),
            _ => None,
        }
    }

    /// The error of the store, if it was one.
    ///
    /// ```
    /// use agent::store::{MemoryStore, StoreError, StoreErrorKind};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryStore::with_room_for(1);
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).store(store).session("ann").await?;
    /// let error = assistant.prompt("Hi").await.unwrap_err();
    /// assert_eq!(error.as_store_error().map(StoreError::kind), Some(StoreErrorKind::Full));
    /// # Ok(()) }
    /// ```
    pub fn as_store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The error in a word of a closed set, for logs and measurements: that of its variant, in snake case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::NothingToContinue => "nothing_to_continue",
            Self::LastMessageIsAssistant => "last_message_is_assistant",
            Self::MissingState(_) => "missing_state",
            Self::DuplicateState(_) => "duplicate_state",
            Self::Model(_) => "model",
            Self::Request { .. } => "request",
            Self::Limit(_) => "limit",
            Self::Aborted { .. } => "aborted",
            Self::Output { .. } => "output",
            Self::Resume(_) => "resume",
            Self::Suspended(_) => "suspended",
            Self::Tools(_) => "tools",
            Self::NoRuntime => "no_runtime",
            Self::Store { .. } => "store",
        }
    }
}

/// Why a session cannot be opened.
///
/// ```
/// use agent::{Assistant, OpenError, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let opened = Assistant::builder(ScriptedModel::new(["Hello!"])).session("ann").await;
/// assert!(matches!(opened, Err(OpenError::NoStore)));
/// # }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The assistant cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The builder was given no store.
    #[error("a session needs a store: give one by `AssistantBuilder::store`")]
    NoStore,
    /// The session cannot be read.
    #[error("the session cannot be read: {0}")]
    Store(#[from] StoreError),
}

crate::error_text::debug_is_the_sentence!(OpenError);
