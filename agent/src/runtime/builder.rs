//! Putting an assistant together.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::approval::{Approver, Decision, Signer};
use super::assistant::Config;
use super::hooks::{AfterToolCall, BeforeRequest, BeforeToolCall, Convert, OnTurnEnd, TransformContext};
use super::listener::{Listener, Listeners};
use super::observe::Meter;
use super::records::Keeper;
use super::spill::{READ_RESULT, Spill};
use super::turn_tools::Preparer;
use super::{AfterCall, Assistant, BeforeCall, HookError, Hooks, QueueMode, ToolCallInfo};
use crate::loop_core::{
    ApprovalRequest, Event, LoopConfig, LoopGuard, Signature, SteeringPolicy, ToolEntry, TurnSummary,
    UsageLimits,
};
use crate::message::{Conversation, CustomMessage, MessageList, Part};
use crate::model::{ManagedTool, Model, ModelRequest};
use crate::tool::context::CANCEL_GRACE;
use crate::tool::set::IntoTools;
use crate::tool::state::StateMap;
use crate::tool::trace::Capture;
use crate::{
    CancelToken, Registry, RegistryError, RegistryProblem, StateKey, Tool, ToolContext, ToolDefinition,
    ToolOutcome, ToolSet,
};

/// How long a tool may take that does not say so itself.
const TOOL_TIMEOUT: Duration = Duration::from_secs(300);

/// Why an assistant cannot be built.
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
    /// Tools of one name, state that is missing or given twice: everything at once.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// The key for approvals can be guessed.
    #[error("the approval key has {length} bytes; it needs 32 or more, from a source of randomness")]
    #[non_exhaustive]
    ShortApprovalKey {
        /// How many it has.
        length: usize,
    },
}

crate::error_text::debug_is_the_sentence!(BuildError);

/// Builds an [`Assistant`].
///
/// ```
/// use agent::{Assistant, ScriptedModel, UsageLimits};
/// use std::time::Duration;
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .system("Answer briefly.")
///     .max_turns(10)
///     .tool_timeout(Duration::from_secs(30))
///     .limits(UsageLimits { total_tokens: Some(50_000), ..UsageLimits::default() })
///     .on_event(|event| println!("{event:?}"))
///     .build()?;
/// assert!(!assistant.is_busy());
/// # Ok::<(), agent::BuildError>(())
/// ```
#[doc = include_str!("../docs/assistant_builder.md")]
#[must_use = "call `build`"]
pub struct AssistantBuilder {
    model: Arc<dyn Model>,
    request: ModelRequest,
    tools: ToolSet,
    state: StateMap,
    state_per_prompt: Vec<StateKey>,
    /// What was wrong on the way here.
    problems: Vec<RegistryProblem>,
    pub(super) listeners: Listeners,
    conversation: Conversation,
    rules: LoopConfig,
    hooks: Vec<Arc<dyn Hooks>>,
    approver: Option<Approver>,
    signer: Option<Arc<Signer>>,
    /// A key that is too short, by its length.
    short_key: Option<usize>,
    steering_mode: QueueMode,
    follow_up_mode: QueueMode,
    cache: bool,
    spill: Option<Spill>,
    pub(super) preparers: Vec<Preparer>,
    pub(super) meters: Vec<Meter>,
    pub(super) capture: Option<Arc<Capture>>,
    pub(super) keeper: Option<Keeper>,
    max_concurrency: usize,
    tool_timeout: Duration,
    cancel_grace: Duration,
}

impl AssistantBuilder {
    pub(super) fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            request: ModelRequest::default(),
            tools: ToolSet::default(),
            state: StateMap::default(),
            state_per_prompt: Vec::new(),
            problems: Vec::new(),
            listeners: Listeners::default(),
            conversation: Conversation::new(),
            rules: LoopConfig::default(),
            hooks: Vec::new(),
            approver: None,
            signer: None,
            short_key: None,
            steering_mode: QueueMode::default(),
            follow_up_mode: QueueMode::default(),
            cache: false,
            spill: None,
            preparers: Vec::new(),
            meters: Vec::new(),
            capture: None,
            keeper: None,
            max_concurrency: 16,
            tool_timeout: TOOL_TIMEOUT,
            cancel_grace: CANCEL_GRACE,
        }
    }

    /// Sets the system prompt.
    pub fn system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.request.system = Some(system.into());
        self
    }

    /// Changes what every request has in common: thinking, limits, sampling, tool choice.
    ///
    /// ```
    /// use agent::model::{ScriptedModel, Thinking};
    /// use agent::Assistant;
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .request(|request| request.with_thinking(Thinking::High).with_max_tokens(2000))
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn request(mut self, change: impl FnOnce(ModelRequest) -> ModelRequest) -> Self {
        self.request = change(self.request);
        self
    }

    /// Adds tools: a [`tools!`](crate::tools) list, a single tool, a registry, or the tools of an MCP client.
    pub fn tools(mut self, tools: impl IntoTools) -> Self {
        self.tools.add(tools);
        self
    }

    /// Lets the provider run a tool itself: a search of the web, code, pictures. A provider that has no such tool refuses the
    /// requests.
    pub fn managed_tool(mut self, tool: ManagedTool) -> Self {
        self.request.managed_tools.push(tool);
        self
    }

    /// Lets the provider run a tool itself where it is [known to have it](crate::model::ModelInfo::runs), and gives the model
    /// these tools where it is not.
    ///
    /// ```
    /// use agent::model::{ManagedTool, ScriptedModel, reply};
    /// use agent::{Assistant, tool, tools};
    ///
    /// /// Searches the web.
    /// #[tool(read_only)]
    /// fn search(query: String) -> String {
    ///     format!("nothing about {query}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A model that nobody searches for.
    /// let model = ScriptedModel::new([reply().tool_call("search", r#"{"query": "tea"}"#), reply().text("Nothing.")]);
    /// let assistant = Assistant::builder(model.clone())
    ///     .managed_tool_or(ManagedTool::web_search(), tools![search])
    ///     .build()?;
    /// assert_eq!(assistant.prompt("Search for tea.").await?.text(), "Nothing.");
    /// assert_eq!((model.requests()[0].tools.len(), model.requests()[0].managed_tools.len()), (1, 0));
    /// # Ok(()) }
    /// ```
    pub fn managed_tool_or(self, tool: ManagedTool, otherwise: impl IntoTools) -> Self {
        if self.model.info().runs(&tool) { self.managed_tool(tool) } else { self.tools(otherwise) }
    }

    /// Adds the tools of an MCP server: models see them as `NAME__TOOL`.
    ///
    /// ```no_run
    /// use agent::mcp::{Client, client::ClientConfig};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let docs = Client::connect(ClientConfig::http("https://docs.example/mcp")).await?;
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).mcp("docs", &docs).build()?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "mcp-client")]
    pub fn mcp(mut self, name: &str, client: impl std::borrow::Borrow<crate::mcp::Client>) -> Self {
        self.tools.add(client.borrow().tools_as(name));
        self
    }

    /// Adds a value that `&T` parameters of tools receive.
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.shared_state(Arc::new(value))
    }

    /// Adds a shared value that `&T` parameters of tools receive; `T` may be a trait.
    pub fn shared_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        self.problems.extend(self.state.insert(value).err().map(RegistryProblem::State));
        self
    }

    /// Promises that every prompt brings a `T` of its own, by [`with_state`](super::Prompt::with_state): then
    /// [`build`](Self::build) does not ask for one. A prompt that does not is an error.
    pub fn state_per_prompt<T: ?Sized + 'static>(mut self) -> Self {
        self.state_per_prompt.push(StateKey::of::<T>());
        self
    }

    /// How many replies a prompt may take; 50 by default, at least 1.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.rules.max_turns = turns.max(1);
        self
    }

    /// How many calls of one reply run at the same time; 16 by default, at least 1. Results keep the order of
    /// the calls.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// The time limit of a call, 300 s by default. A tool with `timeout = "…"` has its own instead.
    pub fn tool_timeout(mut self, after: Duration) -> Self {
        self.tool_timeout = after;
        self
    }

    /// How long a tool may go on after its run was cancelled; 5 s by default. Then it is dropped. A tool that
    /// awaits [`ToolContext::cancelled`] can end at once by itself.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Adds a function that is called with every event, in order. The run waits for it, so it should not block. After a
    /// panic it is not called again, and the run goes on.
    pub fn on_event(mut self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.listeners.add(Listener::new(on_event));
        self
    }

    /// Begins with this conversation. A broken one, such as one with a call without its result, is
    /// [repaired](Conversation::repair) at the first prompt.
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = conversation;
        self
    }

    /// What a run may use: requests, tool calls, tokens, time, money. Nothing is limited by default.
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    /// use agent::{Assistant, UsageLimits};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = UsageLimits { requests: Some(0), ..UsageLimits::default() };
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).limits(limits).build()?;
    /// let error = assistant.prompt("Hi").await.unwrap_err();
    /// assert!(error.to_string().starts_with("the limit of 0 requests is reached"));
    /// # Ok(()) }
    /// ```
    pub fn limits(mut self, limits: UsageLimits) -> Self {
        self.rules.limits = limits;
        self
    }

    /// Stops a model that repeats the same call; `None` switches this off. By default the third equal call with an equal
    /// result is refused, and the fifth ends the run.
    pub fn loop_guard(mut self, guard: Option<LoopGuard>) -> Self {
        self.rules.loop_guard = guard;
        self
    }

    /// How many further tries the model has after bad arguments for a tool; 2 by default. A tool with `max_retries = …` has
    /// its own number.
    pub fn max_retries(mut self, tries: u32) -> Self {
        self.rules.max_retries = tries;
        self
    }

    /// Runs the calls of a reply one after the other.
    pub fn sequential(mut self) -> Self {
        self.rules.sequential = true;
        self
    }

    /// What a steering message does to the calls of the turn it arrives in.
    pub fn steering_policy(mut self, policy: SteeringPolicy) -> Self {
        self.rules.steering = policy;
        self
    }

    /// How many steering messages a turn begins with; one by default.
    pub fn steering_mode(mut self, mode: QueueMode) -> Self {
        self.steering_mode = mode;
        self
    }

    /// How many follow-ups a turn begins with; one by default.
    pub fn follow_up_mode(mut self, mode: QueueMode) -> Self {
        self.follow_up_mode = mode;
        self
    }

    /// Keeps completed results for calls of the same tool with the same arguments, until the assistant is
    /// [reset](Assistant::reset). A tool that says `cache` decides for itself; one that must not run twice has to say it.
    pub fn cache_results(mut self) -> Self {
        self.cache = true;
        self
    }

    /// How many bytes of text a result has in the conversation, where its tool says nothing itself; 64 KiB by default. Of
    /// longer ones the middle is left out, and a line says so.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.rules.max_result_bytes = bytes;
        self
    }

    /// Keeps results that are too long for the conversation in files of this folder, and gives the model a tool
    /// `read_result` to read them part by part. A file is deleted when the assistant that wrote it and all
    /// [forks](Assistant::fork) made since are gone or were [reset](Assistant::reset); a conversation that is loaded
    /// elsewhere names results that cannot be read any more, and the tool says so.
    pub fn spill_results(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spill = Some(Spill::new(folder.into()));
        self
    }

    /// Adds hooks. Hooks are called in the order in which they were added.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }

    /// Adds a hook that chooses the messages of a request: [`Hooks::transform_context`].
    pub fn transform_context<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(MessageList, CancelToken) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<MessageList, HookError>> + Send + 'static,
    {
        self.hooks(TransformContext(hook))
    }

    /// Adds a hook that says what a model is sent of the application's own messages: [`Hooks::convert`].
    pub fn convert(self, hook: impl Fn(&CustomMessage) -> Option<Vec<Part>> + Send + Sync + 'static) -> Self {
        self.hooks(Convert(hook))
    }

    /// Adds a hook that changes a request: [`Hooks::before_request`].
    pub fn before_request<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ModelRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ModelRequest, HookError>> + Send + 'static,
    {
        self.hooks(BeforeRequest(hook))
    }

    /// Adds a hook that is asked before a call runs: [`Hooks::before_tool_call`].
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    /// use agent::{Assistant, BeforeCall};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .before_tool_call(|call| async move {
    ///         let is_fine = call.args()["path"].as_str().is_none_or(|path| !path.starts_with('/'));
    ///         Ok(if is_fine { BeforeCall::Continue } else { BeforeCall::block("only relative paths") })
    ///     })
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn before_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallInfo) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BeforeCall, HookError>> + Send + 'static,
    {
        self.hooks(BeforeToolCall(hook))
    }

    /// Adds a hook that changes results: [`Hooks::after_tool_call`].
    pub fn after_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallInfo, ToolOutcome) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<AfterCall, HookError>> + Send + 'static,
    {
        self.hooks(AfterToolCall(hook))
    }

    /// Adds a hook that says whether a run goes on: [`Hooks::on_turn_end`].
    pub fn on_turn_end<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(TurnSummary) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<bool>, HookError>> + Send + 'static,
    {
        self.hooks(OnTurnEnd(hook))
    }

    /// Adds the function that decides on calls that need approval. Calls that would run at the same time are all decided on
    /// before one of them runs. Without this function, such calls suspend the run.
    pub fn on_approval<F, Fut>(mut self, decide: F) -> Self
    where
        F: Fn(ApprovalRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Decision> + Send + 'static,
    {
        self.approver = Some(Arc::new(move |request| Box::pin(decide(request))));
        self
    }

    /// Signs calls that wait for approval, so that a suspended run can be stored and resumed in another process. At least
    /// 32 bytes, from a secret store; the key is in no snapshot.
    ///
    /// The signature (HMAC-SHA256) binds run, turn, position, call id, tool, schema and arguments together. A stored run
    /// where any of them is another one does not go on, and a decision counts for the call it was made on alone. What is
    /// not bound is the conversation: keep snapshots where you keep conversations.
    ///
    /// ```
    /// use agent::loop_core::AgentLoop;
    /// use agent::model::{ScriptedModel, reply};
    /// use agent::{Assistant, Decisions, tool, tools};
    ///
    /// /// Closes an account.
    /// #[tool(approval = "always")]
    /// fn close_account(number: u32) -> String {
    ///     format!("{number} is closed")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = [7; 32]; // of your secret store
    /// # let model = ScriptedModel::new([reply().tool_call("close_account", r#"{"number": 5}"#)]);
    /// let assistant = Assistant::builder(model).tools(tools![close_account]).approval_key(key).build()?;
    /// let output = assistant.prompt("Close account 5.").await?;
    /// let stored: String = serde_json::to_string(&output.snapshot.expect("it waits"))?;
    ///
    /// // Another process, tomorrow.
    /// # let model = ScriptedModel::new([reply().text("It is closed.")]);
    /// let suspended: AgentLoop = serde_json::from_str(&stored)?;
    /// let requests = suspended.approval_requests();
    /// assert_eq!(requests[0].call.args.text(), r#"{"number":5}"#);
    /// let assistant = Assistant::builder(model).tools(tools![close_account]).approval_key(key).build()?;
    /// let output = assistant.resume(&suspended, Decisions::new().allow(&requests[0])).await?;
    /// assert_eq!(output.text(), "It is closed.");
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "approvals-signed")]
    pub fn approval_key(mut self, key: impl AsRef<[u8]>) -> Self {
        let key = key.as_ref();
        self.signer = Signer::new(key).map(Arc::new);
        self.short_key = self.signer.is_none().then_some(key.len());
        self
    }

    /// The assistant.
    ///
    /// # Errors
    /// Lists everything that is wrong: tools of one name, state that a tool needs and nobody gives, two values of
    /// one type.
    pub fn build(mut self) -> Result<Assistant, BuildError> {
        if let Some(length) = self.short_key {
            return Err(BuildError::ShortApprovalKey { length });
        }
        if let Some(tool) = self.spill.as_ref().map(Spill::tool) {
            let tool = tool.map(|tool| ToolSet::new().with(tool));
            match tool {
                Ok(tool) => {
                    self.tools.add(tool);
                }
                Err(source) => {
                    self.problems.push(RegistryProblem::Definition { tool: READ_RESULT.to_owned(), source });
                }
            }
        }
        let (registry, mut problems) = Registry::assemble(self.tools.with_tool_search(), self.state);
        problems.extend(self.problems);
        if let Err(error) = registry.check_state(&ToolContext::new()) {
            let is_promised = |problem: &&RegistryProblem| matches!(problem, RegistryProblem::MissingState { state, .. } if self.state_per_prompt.contains(state));
            problems.extend(error.problems().iter().filter(|problem| !is_promised(problem)).cloned());
        }
        RegistryError::none_of(problems)?;
        let mut request = self.request;
        request.tools = registry.definitions();
        let mut rules = self.rules;
        rules.tools =
            request.tools.iter().filter_map(|tool| Some(entry(&**registry.get(tool.name())?))).collect();
        let tools = request.tools.iter().filter_map(|tool| registry.get(tool.name()));
        let formats_results = tools.into_iter().any(|tool| tool.formats_results());
        let config = Config {
            formats_results,
            model: self.model,
            request,
            registry,
            rules: Arc::new(rules),
            hooks: self.hooks,
            approver: self.approver,
            signer: self.signer,
            listeners: self.listeners,
            steering_mode: self.steering_mode,
            follow_up_mode: self.follow_up_mode,
            cache: self.cache,
            spill: self.spill,
            preparers: self.preparers,
            meters: self.meters,
            capture: self.capture,
            keeper: self.keeper.map(Arc::new),
            max_concurrency: self.max_concurrency,
            tool_timeout: self.tool_timeout,
            cancel_grace: self.cancel_grace,
        };
        Ok(Assistant::new(Arc::new(config), self.conversation))
    }
}

impl fmt::Debug for AssistantBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssistantBuilder")
            .field("model", self.model.info())
            .field("request", &self.request)
            .field("tools", &self.tools)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// Changes when the tool's parameters do.
pub(super) fn fingerprint(definition: &ToolDefinition) -> u64 {
    Signature::of(definition.name(), definition.parameters()).short()
}

/// What the loop knows of a tool.
fn entry(tool: &dyn Tool) -> (String, ToolEntry) {
    let (definition, policy) = (tool.definition(), tool.policy());
    let entry = ToolEntry {
        exclusive: policy.exclusive,
        max_retries: policy.max_retries,
        allow_repeat: policy.allow_repeat,
        max_result_bytes: policy.max_result_bytes,
        fingerprint: fingerprint(definition),
    };
    (definition.name().to_owned(), entry)
}
