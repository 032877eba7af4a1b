//! Errors of runs, of building assistants, and of suspended runs that cannot be resumed.

use super::context::sentence;
use super::run_output::RunOutput;
use super::suspended::SuspendedRun;
use crate::args::SchemaError;
use crate::loop_core::{LimitReached, StateError};
use crate::message::ViewError;
use crate::model::ModelError;
use crate::store::StoreError;
use crate::tool::problem::RegistryError;
use crate::tool::question::AskError;

/// The error of a prompt.
///
/// The conversation stays sound: each call in it has a result, and the next prompt continues from there. Only the calls of a suspended run
/// lack results, and a new prompt adds them. A tool that fails is not an error of the run, because the model reads the failure.
///
/// Variants with fields may get more fields, so a pattern ends in `..`, as in `RunError::Aborted { reason, .. }`.
///
/// ```
/// use agent::model::{ModelError, ModelErrorKind, reply};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::run::BuildError> {
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
    /// Another prompt is being answered. That prompt is not affected.
    #[error("the assistant is busy with another prompt")]
    Busy,
    /// The conversation has no message to continue from.
    #[error("there is nothing to continue: the conversation is empty")]
    NothingToContinue,
    /// The last message is the assistant's, and no message is queued.
    #[error("there is nothing to continue: the last message is the assistant's and no message is queued")]
    LastMessageIsAssistant,
    /// Tools need state that neither the assistant nor the prompt provides.
    #[error("the prompt lacks state: {}", .0.of_a_prompt())]
    MissingState(#[source] RegistryError),
    /// The prompt was given two state values of the same type.
    #[error(transparent)]
    DuplicateState(RegistryError),
    /// The [serialized state](super::Prompt::with_serialized_state) of the prompt cannot be used. Nothing ran.
    #[error(transparent)]
    State(#[from] StateError),
    /// The model failed to answer.
    #[error("the model failed: {0}")]
    Model(#[source] ModelError),
    /// A hook failed, or the run cannot continue for another reason, for example because the chosen model does not exist.
    #[error("the request could not be made: {message}")]
    #[non_exhaustive]
    Request {
        /// The reason why the run cannot continue, for example the error of the hook.
        message: String,
    },
    /// A limit ended the run before the model had finished.
    #[error("{0} and the model has not finished; prompt again to continue from here")]
    Limit(LimitReached),
    /// The run was cancelled.
    #[error("the run was aborted: {reason}")]
    #[non_exhaustive]
    Aborted {
        /// The reason of the cancellation.
        reason: String,
    },
    /// The suspended run cannot be resumed, for example because the decisions do not fit. Nothing has changed.
    #[error("the run cannot be resumed: {0}")]
    Resume(#[source] ResumeError),
    /// A typed answer was requested, but the run waits for decisions, for answers to questions or for results from outside. Resume the run,
    /// and ask for the answer with [`output`](super::Prompt::output) again.
    #[error("the run is suspended: it waits for {}", decisions_or_results(.0.pending().len()))]
    Suspended(SuspendedRun),
    /// The function of a tool made a prompt, and the run of this prompt was suspended. Nothing would resume this run.
    #[error(
        "the sub-agent's run is suspended, and the body of the tool `{tool}` cannot keep it: make the assistant a tool with `Assistant::as_tool`, or keep the suspended run yourself, with `Prompt::detached`"
    )]
    #[non_exhaustive]
    SuspendedInTool {
        /// The name of the tool.
        tool: String,
    },
    /// The tools cannot be shown to the [source](super::Prompt::source) on whose behalf the run acts.
    #[error("the tools cannot be shown: {0}")]
    Tools(#[source] RegistryError),
    /// A tool of the [prompt](super::Prompt::with_tools) has the name of another tool, or cannot be used.
    #[error("the tools of the prompt cannot be used: {0}")]
    PromptTools(#[source] RegistryError),
    /// The run was to be started in a separate task, but there is no tokio runtime.
    #[error("there is no tokio runtime to start the run in")]
    NoRuntime,
    /// The store failed, or another process continued the session (a conflict). The conversation is complete in memory, but its session in
    /// the store may be incomplete. The next prompt stores the missing messages, except after a conflict.
    #[error("{error}{}", after_conflict(error))]
    #[non_exhaustive]
    Store {
        /// The error of the store.
        #[source]
        error: StoreError,
        /// The output of the run, which is available despite the error.
        output: Box<RunOutput>,
    },
    /// The answer does not fit the requested type or schema. Also the error if the schema or the answer tool cannot be used.
    #[error("the answer does not fit: {message}")]
    #[non_exhaustive]
    Output {
        /// The issues of the last answer, or another reason, such as an error of the schema.
        message: String,
    },
    /// The conversation does not fit into the model's window, and no further part can be
    /// [replaced](super::AssistantBuilder::manage_context). The conversation keeps every message.
    /// [`Assistant::compact`](super::Assistant::compact) also returns this error if its summary fails.
    ///
    /// ```
    /// use agent::model::ContextRules;
    /// use agent::{Assistant, RunError, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rules = ContextRules::new().window(1_000);
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).manage_context(rules).build()?;
    /// let error = assistant.prompt("word ".repeat(4_000)).await.unwrap_err();
    /// assert!(error.to_string().starts_with("the conversation needs about 5,112 of 500 tokens"), "{error}");
    /// assert!(matches!(error, RunError::Context { usable: 500, pins_are_too_large: false, .. }));
    /// # Ok(()) }
    /// ```
    #[error("{}", sentence(*pins_are_too_large, *needed, *usable, summary.as_deref(), provider.as_ref()))]
    #[non_exhaustive]
    Context {
        /// Whether the pinned messages alone need more than half of `usable`.
        pins_are_too_large: bool,
        /// The estimated tokens of the request.
        needed: u64,
        /// The maximum number of tokens of a request.
        usable: u64,
        /// The number of changes so far to the messages that are sent to the model.
        generation: u32,
        /// The reason why the last summary failed, if one failed.
        summary: Option<String>,
        /// The error of the provider, if it refused the request as too long.
        #[source]
        provider: Option<ModelError>,
    },
}

crate::error_text::debug_is_the_sentence!(RunError);

fn decisions_or_results(count: usize) -> String {
    if count == 1 { "1 decision or result".to_owned() } else { format!("{count} decisions or results") }
}

fn after_conflict(error: &StoreError) -> &'static str {
    if error.is_conflict() {
        "; open the session again with `session`, and send the prompt again"
    } else {
        ""
    }
}

impl RunError {
    /// Returns whether another prompt is being answered.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new([reply().hang()])).build()?;
    /// let run = assistant.prompt("Hi").start()?;
    /// let error = assistant.prompt("Me too").await.unwrap_err();
    /// assert!(error.is_busy());
    /// assert_eq!(error.code(), "busy");
    /// # drop(run);
    /// # Ok(()) }
    /// ```
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// Returns whether the run was cancelled.
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

    /// Returns whether a limit ended the run.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit(_))
    }

    /// Returns the limit that ended the run, if one did.
    ///
    /// ```
    /// use agent::run::Limit;
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

    /// Returns the [`ResumeError`] if a suspended run could not be resumed.
    ///
    /// ```
    /// use agent::{Assistant, Decisions, ScriptedModel, model::reply, run::ResumeError, tool, tools};
    ///
    /// /// Sends money.
    /// #[tool(approval = "always")]
    /// fn send(amount: u64) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("send", r#"{"amount": 5}"#)]);
    /// let assistant = Assistant::builder(model).tools(tools![send]).build()?;
    /// let suspended = assistant.prompt("Send 5.").await?.snapshot.expect("it waits");
    /// let error = assistant.resume(&suspended, Decisions::new()).await.unwrap_err();
    /// assert!(matches!(error.as_resume_error(), Some(ResumeError::Undecided { .. })));
    /// # Ok(()) }
    /// ```
    pub fn as_resume_error(&self) -> Option<&ResumeError> {
        match self {
            Self::Resume(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the [`StateError`] if the serialized state of the prompt or of the suspended run cannot be used.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, run::StateError};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).serialized_state::<String>("plan").build()?;
    /// let long = "x".repeat(100_000);
    /// let error = assistant.prompt("Hi").with_serialized_state(long).await.unwrap_err();
    /// assert!(matches!(error.as_state_error(), Some(StateError::TooLarge { allowed: 65_536, .. })));
    /// # Ok(()) }
    /// ```
    pub fn as_state_error(&self) -> Option<&StateError> {
        match self {
            Self::State(error) | Self::Resume(ResumeError::State(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the [`ModelError`] if this is [`RunError::Model`].
    pub fn as_model_error(&self) -> Option<&ModelError> {
        match self {
            Self::Model(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the [`StoreError`] if this is [`RunError::Store`].
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

    /// Returns the name of the variant in snake case, for logs and metrics. Each variant has one fixed code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::NothingToContinue => "nothing_to_continue",
            Self::LastMessageIsAssistant => "last_message_is_assistant",
            Self::MissingState(_) => "missing_state",
            Self::DuplicateState(_) => "duplicate_state",
            Self::State(_) => "state",
            Self::Model(_) => "model",
            Self::Request { .. } => "request",
            Self::Limit(_) => "limit",
            Self::Aborted { .. } => "aborted",
            Self::Output { .. } => "output",
            Self::Resume(_) => "resume",
            Self::Suspended(_) => "suspended",
            Self::SuspendedInTool { .. } => "suspended_in_tool",
            Self::Tools(_) => "tools",
            Self::PromptTools(_) => "prompt_tools",
            Self::NoRuntime => "no_runtime",
            Self::Store { .. } => "store",
            Self::Context { .. } => "context",
        }
    }
}

/// The error of building an assistant, or of opening its session.
///
/// ```
/// use agent::{Assistant, ScriptedModel, tool, tools};
///
/// struct Database;
///
/// /// Counts the customers.
/// #[tool(read_only)]
/// fn count(_db: &Database) -> u32 {
///     3
/// }
///
/// let error = Assistant::builder(ScriptedModel::new(["Hello!"])).tools(tools![count, { tools![count] }]).build().unwrap_err();
/// // Everything at once.
/// assert!(error.to_string().contains("two tools are named `count`"));
/// assert!(error.to_string().contains("add it with `.state(…)`"));
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The tools and their state have problems, for example two tools with the same name or missing state. The error lists all of them.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// The key for approvals is too short, so it can be guessed.
    #[error("the approval key has {length} bytes; it needs 32 or more, from a source of randomness")]
    #[non_exhaustive]
    ShortApprovalKey {
        /// The number of bytes of the key.
        length: usize,
    },
    /// Two types of [serialized state](super::AssistantBuilder::serialized_state) have the same name.
    #[error(transparent)]
    State(StateError),
    /// The schema for answers cannot be compiled.
    #[error("the answers cannot be checked: {0}")]
    Output(#[source] SchemaError),
    /// There are former approval keys, which only verify signatures, but no current key, which signs.
    #[error("there is a former approval key and no current one; set the key that signs with `approval_key`")]
    NoApprovalKey,
    /// A [session](super::AssistantBuilder::session) was requested, but there is no store.
    #[error("a session needs a store: set one with `AssistantBuilder::store`")]
    NoStore,
    /// The [session](super::AssistantBuilder::session) has a reserved name: only sub-agents use `RUN/TURN/tool/POSITION`.
    #[error("{message}")]
    #[non_exhaustive]
    ReservedName {
        /// The error message, which contains the name.
        message: String,
    },
    /// The session could not be read.
    #[error("the session cannot be read: {0}")]
    Store(#[from] StoreError),
    /// The [rules for the context window](super::AssistantBuilder::manage_context) cannot be used.
    #[error("the context cannot be managed: {0}")]
    Context(#[source] ViewError),
    /// A [budget](super::AssistantBuilder::budget) cannot be used.
    #[error("the budget `{budget}` cannot be used: {reason}")]
    #[non_exhaustive]
    Budget {
        /// The name of the budget.
        budget: String,
        /// The reason why the budget cannot be used.
        reason: String,
    },
    /// Two [models](super::AssistantBuilder::named_model) have the same name.
    #[error("two models are named `{name}`")]
    #[non_exhaustive]
    DuplicateModel {
        /// The name that both models have.
        name: String,
    },
    /// The [`ContextRules`](crate::model::ContextRules) name a [model](super::AssistantBuilder::named_model) that does not exist.
    #[error("there is no model named `{name}`; add it with `AssistantBuilder::named_model`")]
    #[non_exhaustive]
    UnknownModel {
        /// The name that no model has.
        name: String,
    },
}

crate::error_text::debug_is_the_sentence!(BuildError);

/// The error of a suspended run that cannot be resumed. Nothing ran, and nothing has changed.
///
/// ```
/// # /// Sends money.
/// # #[agent::tool(approval = "always")] async fn send(to: String) {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = agent::ScriptedModel::new([agent::model::reply().tool_call("send", r#"{"to": "Ann"}"#)]);
/// # let assistant = agent::Assistant::builder(model).tools(agent::tools![send]).build()?;
/// use agent::{Decisions, run::ResumeError};
///
/// let suspended = assistant.prompt("Send it to Ann.").await?.snapshot.expect("it waits");
/// let error = assistant.resume(&suspended, Decisions::new()).await.unwrap_err();
/// assert!(matches!(error.as_resume_error(), Some(ResumeError::Undecided { .. })));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The run has ended, so it cannot be resumed.
    #[error("the run is over")]
    Over,
    /// The assistant has a conversation, but not that of the suspended run.
    #[error(
        "the conversation went on without the suspended run; resume it with an assistant of that conversation, or of none"
    )]
    ConversationMovedOn,
    /// No approval request or question with this id waits: it was decided or answered before, or it belongs to another run.
    #[error(
        "request `{request_id}` is not waiting for a decision: it was decided before, or belongs to another run"
    )]
    #[non_exhaustive]
    NotPending {
        /// The id of the request.
        request_id: String,
    },
    /// The decided request or the answered question differs from the one that waits. The signature also differs if the run was suspended
    /// without an approval key, or with another key.
    #[error(
        "the decision on `{request_id}` does not count: its {what} is not what waits for approval{}",
        if *what == "signature" { ". The run was suspended without an approval key or with another one, or it was changed since" } else { "" }
    )]
    #[non_exhaustive]
    ApprovalMismatch {
        /// The id of the request.
        request_id: String,
        /// The property that differs, for example `signature`.
        what: &'static str,
    },
    /// A decision or an input is missing. The approval requests of one reply must be decided together, and the questions of one call must
    /// be answered together.
    #[error("no decision on `{request_id}`: the calls of a reply that need approval are decided together")]
    #[non_exhaustive]
    Undecided {
        /// The id of the undecided request or of the open question.
        request_id: String,
    },
    /// The run was stored, and the assistant has no approval key to verify that it was not changed.
    #[error(
        "the suspended run was stored, and a stored run is resumed only where its calls and its state are signed: the assistant has no approval key. Give the same one to the assistant that suspends and to the one that resumes (`AssistantBuilder::approval_key`, feature `approvals-signed`); a run that was suspended without a key is resumed in its own process, or prompted anew"
    )]
    NotSigned,
    /// A call that would run without a decision does not have the assistant's signature.
    #[error(
        "call `{call_id}` of the stored run does not have this assistant's signature: the run was suspended without an approval key or with another one, or it was changed since. Compare the approval keys of both assistants, or prompt anew"
    )]
    #[non_exhaustive]
    Tampered {
        /// The id of the call.
        call_id: String,
    },
    /// The state of the stored run does not have the assistant's signature.
    #[error(
        "the stored run does not have this assistant's signature: it was suspended without an approval key or with another one, or it was changed since. Compare the approval keys of both assistants, or prompt anew"
    )]
    Changed,
    /// An earlier release signed the run in another form, or the run was changed after it was stored.
    #[error(
        "the stored run has version {version}, whose signature this library does not verify: let the release that stored it end the run, or prompt anew"
    )]
    #[non_exhaustive]
    OldVersion {
        /// The version of the stored run.
        version: u32,
    },
    /// A stored value of the run's state does not fit its registered type, or the values of the prompt make the state too large.
    #[error("{0}")]
    State(#[source] StateError),
    /// The call does not wait for a result from outside, or already has its result.
    #[error("call `{call_id}` is not waiting for a result")]
    #[non_exhaustive]
    NoSuchCall {
        /// The id of the call.
        call_id: String,
    },
    /// An input does not fit its question. The run still waits.
    #[error("the input for `{request_id}` was refused: {error}")]
    #[non_exhaustive]
    InputRefused {
        /// The id of the question.
        request_id: String,
        /// The report on the input.
        #[source]
        error: AskError,
    },
    /// A call has two decisions or two results, or a question has two inputs.
    #[error("`{id}` has two decisions, inputs or results; give one for each request, question and call")]
    #[non_exhaustive]
    AnsweredTwice {
        /// The id of the request, the call or the question.
        id: String,
    },
    /// The run began with tools of its prompt, and the resumed prompt lacks some of them.
    #[error(
        "the run began with tools of its prompt; give them to its resumption, too, with `Prompt::with_tools`: {}",
        tools.join(", ")
    )]
    #[non_exhaustive]
    MissingTools {
        /// The names of the missing tools.
        tools: Vec<String>,
    },
    /// Several waiting calls have this id, in the run and its sub-agents. Name the run of the call with `Decisions::deliver_to`.
    #[error(
        "several calls that wait are named `{call_id}`, in the run and its sub-agents: name the one that is meant with `Decisions::deliver_to`"
    )]
    #[non_exhaustive]
    Ambiguous {
        /// The id of the call.
        call_id: String,
    },
    /// The stored run has more levels of nested runs than this library resumes.
    #[error("the stored run has {depth} runs within one another; at most {max} are resumed")]
    #[non_exhaustive]
    TooDeep {
        /// The number of levels.
        depth: usize,
        /// The maximum number of levels.
        max: usize,
    },
    /// The delivered outcome is deferred again, so it is not a result.
    #[error("the outcome delivered for call `{call_id}` is not a result: it is deferred itself")]
    #[non_exhaustive]
    StillDeferred {
        /// The id of the call.
        call_id: String,
    },
}

crate::error_text::debug_is_the_sentence!(ResumeError);
