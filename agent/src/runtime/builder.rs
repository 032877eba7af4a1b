//! The builder of an assistant. Each submodule adds the methods of one subject.

mod approvals;
mod closures;
mod context;
mod observe;
mod rules;
mod serialized_state;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::approval::{ApprovalKeys, Approver};
use super::assistant::Assistant;
use super::budget::{BudgetOptions, Budgets};
use super::cache::{ResultCache, uncached};
use super::config::{Config, shown_tools};
use super::context::{ContextLimits, NamedModel};
use super::error::BuildError;
use super::hooks::Hooks;
use super::listener::{Listener, Listeners};
use super::observe::{ChunkMeter, Meter};
use super::output::AnswerReader;
use super::records::{StoreAccess, StoreOptions};
use super::spill::{READ_RESULT, SpillFolder, read_result};
use super::state_types::StateType;
use crate::loop_core::{Event, LoopConfig, Queue, StateError};
use crate::message::Conversation;
use crate::model::{ContextRules, ManagedTool, Model, ModelRequest, TokenCounter, TokenEstimator};
use crate::store::Store;
use crate::tool::asking::Answerer;
use crate::tool::capture::Capture;
use crate::tool::context::CANCEL_GRACE;
use crate::tool::context::ToolContext;
use crate::tool::problem::{RegistryError, RegistryProblem};
use crate::tool::registry::Registry;
use crate::tool::set::IntoTools;
use crate::tool::set::ToolSet;
use crate::tool::source::Source;
use crate::tool::state::StateKey;
use crate::tool::state::StateMap;
use crate::tool::value::Tool;

const TOOL_TIMEOUT: Duration = Duration::from_secs(300);

/// A builder of an [`Assistant`].
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
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[doc = include_str!("../docs/assistant_builder.md")]
#[must_use = "call `build`"]
pub struct AssistantBuilder {
    model: Arc<dyn Model>,
    request: ModelRequest,
    tools: ToolSet,
    state: StateMap,
    state_per_prompt: Vec<StateKey>,
    state_types: Vec<StateType>,
    /// The first name under which two types of serialized state were registered.
    state_names_twice: Option<Arc<str>>,
    /// The problems so far. `build` reports all of them.
    problems: Vec<RegistryProblem>,
    listeners: Listeners,
    conversation: Conversation,
    rules: LoopConfig,
    hooks: Vec<Arc<dyn Hooks>>,
    approver: Option<Approver>,
    answerer: Option<Answerer>,
    approval_keys: ApprovalKeys,
    delivers_all: Vec<Queue>,
    cache: bool,
    shared_cache: Option<ResultCache>,
    spill: Option<SpillFolder>,
    context: Option<Arc<ContextRules>>,
    counter: Arc<dyn TokenCounter>,
    models: Vec<NamedModel>,
    choosers: Vec<Arc<dyn Hooks>>,
    meters: Vec<Meter>,
    chunk_meters: Vec<ChunkMeter>,
    agent_name: Option<Arc<str>>,
    agent_description: Option<Arc<str>>,
    capture: Option<Arc<Capture>>,
    source: Option<Source>,
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) store_options: StoreOptions,
    budgets: BudgetOptions,
    max_concurrency: usize,
    max_depth: u8,
    max_children: u32,
    max_requests_in_flight: usize,
    tool_timeout: Duration,
    cancel_grace: Duration,
}

impl Assistant {
    /// Returns a builder for an assistant that uses this model.
    pub fn builder(model: impl Model + 'static) -> AssistantBuilder {
        AssistantBuilder::new(Arc::new(model))
    }
}

impl AssistantBuilder {
    fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            request: ModelRequest::default(),
            tools: ToolSet::default(),
            state: StateMap::default(),
            state_per_prompt: Vec::new(),
            state_types: Vec::new(),
            state_names_twice: None,
            problems: Vec::new(),
            listeners: Listeners::default(),
            conversation: Conversation::new(),
            rules: LoopConfig::default(),
            hooks: Vec::new(),
            approver: None,
            answerer: None,
            approval_keys: ApprovalKeys::default(),
            delivers_all: Vec::new(),
            cache: false,
            shared_cache: None,
            spill: None,
            context: None,
            counter: Arc::new(TokenEstimator),
            models: Vec::new(),
            choosers: Vec::new(),
            meters: Vec::new(),
            chunk_meters: Vec::new(),
            agent_name: None,
            agent_description: None,
            capture: None,
            source: None,
            store: None,
            store_options: StoreOptions::default(),
            budgets: BudgetOptions::default(),
            max_concurrency: 16,
            max_depth: 3,
            max_children: 200,
            max_requests_in_flight: 16,
            tool_timeout: TOOL_TIMEOUT,
            cancel_grace: CANCEL_GRACE,
        }
    }

    /// Sets the system prompt.
    pub fn system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.request.system = Some(system.into());
        self
    }

    /// Changes the settings of every request, for example thinking, limits, sampling, tool choice or the schema of answers.
    ///
    /// With a [schema for answers](ModelRequest::output), each run validates its answer, and asks the model again if the answer does not
    /// fit. The answer is in [`RunOutput::answer`](super::RunOutput::answer).
    ///
    /// ```
    /// use agent::model::Thinking;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .request(|request| request.with_thinking(Thinking::High).with_max_tokens(2000))
    ///     .build()?;
    /// # Ok::<(), agent::run::BuildError>(())
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

    /// Adds a tool that the provider runs, such as web search or code execution. A request to a provider without this tool fails.
    ///
    /// ```
    /// use agent::model::ManagedTool;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Nothing new."]);
    /// let assistant = Assistant::builder(model.clone()).managed_tool(ManagedTool::web_search()).build()?;
    /// assistant.prompt("What is new?").await?;
    /// assert_eq!(model.requests()[0].managed_tools, [ManagedTool::web_search()]);
    /// # Ok(()) }
    /// ```
    pub fn managed_tool(mut self, tool: ManagedTool) -> Self {
        self.request.managed_tools.push(tool);
        self
    }

    /// Adds a tool that the provider runs if the model is [known to have it](crate::model::ModelInfo::runs). For any other model, adds the
    /// tools `otherwise`.
    ///
    /// ```
    /// use agent::model::{ManagedTool, reply};
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    ///
    /// /// Searches the web.
    /// #[tool(read_only)]
    /// fn search(query: String) -> String {
    ///     format!("nothing about {query}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The provider of this model has no web search.
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

    /// Adds the tools of an MCP server. Models see them as `NAME__TOOL`.
    ///
    /// ```no_run
    /// use agent::mcp::{McpClient, ClientConfig};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let docs = McpClient::connect(ClientConfig::http("https://docs.example/mcp")).await?;
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).mcp("docs", &docs).build()?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "mcp-client")]
    pub fn mcp(mut self, name: &str, client: impl std::borrow::Borrow<crate::mcp::McpClient>) -> Self {
        self.tools.add(client.borrow().tools_as(name));
        self
    }

    /// Adds a value that `&T` parameters of tools receive. [`state_per_prompt`](Self::state_per_prompt) has an example.
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.shared_state(Arc::new(value))
    }

    /// Sets the source of calls, such as a user. The [source of a prompt](crate::run::Prompt::source) takes precedence.
    ///
    /// ```
    /// use agent::tool::Source;
    /// use agent::{Assistant, Parameters, ScriptedModel, ToolBuilder, ToolContext, Value, tools};
    ///
    /// struct Admin;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let list = ToolBuilder::new("list_users")
    ///     .description("Lists users.")
    ///     .parameters_for(|source| source.get::<Admin>().map(|_| Parameters::new().optional_boolean("deleted", "Those, too.")))
    ///     .build(|_: Value, _: ToolContext| async { "Ann" })?;
    /// let model = ScriptedModel::new(["Which ones?", "Which ones?"]);
    /// let assistant = Assistant::builder(model.clone()).tools(tools![{ list }]).source(Source::new(Admin)).build()?;
    /// assistant.prompt("List them.").await?;
    /// assistant.prompt("List them.").source(Source::new("a guest")).await?;
    /// let parameters = |request: usize| model.requests()[request].tools[0].plan().parameter_names().count();
    /// assert_eq!((parameters(0), parameters(1)), (1, 0));
    /// # Ok(()) }
    /// ```
    pub fn source(mut self, source: Source) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds a shared value that `&T` parameters of tools receive; `T` may be a trait object.
    pub fn shared_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        let twice = self.state.insert(value).err();
        self.problems.extend(twice.map(|state| RegistryProblem::DuplicateState { state }));
        self
    }

    /// Declares that every prompt brings its own `T` with [`with_state`](super::Prompt::with_state), so [`build`](Self::build) does not
    /// require a `T`. If a tool needs a `T`, a prompt without a `T` fails with [`RunError::MissingState`](super::RunError::MissingState).
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
    /// use std::sync::Arc;
    ///
    /// trait Clock: Send + Sync {
    ///     fn weekday(&self) -> &'static str;
    /// }
    ///
    /// struct Fixed;
    ///
    /// impl Clock for Fixed {
    ///     fn weekday(&self) -> &'static str {
    ///         "Monday"
    ///     }
    /// }
    ///
    /// struct Prices {
    ///     tea: u32,
    /// }
    ///
    /// struct Customer(&'static str);
    ///
    /// /// Says what tea costs today.
    /// #[tool(read_only)]
    /// fn price_of_tea(prices: &Prices, clock: &dyn Clock, customer: &Customer) -> String {
    ///     format!("{} for {} on a {}", prices.tea, customer.0, clock.weekday())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("price_of_tea", "{}"), reply().text("Four.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![price_of_tea])
    ///     .state(Prices { tea: 4 })                                // the assistant's own
    ///     .shared_state::<dyn Clock>(Arc::new(Fixed))              // shared, known by a trait
    ///     .state_per_prompt::<Customer>()                          // brought by each prompt
    ///     .build()?;
    /// assert_eq!(assistant.prompt("Tea?").await.unwrap_err().code(), "missing_state");
    /// assistant.prompt("Tea?").with_state(Customer("Ann")).await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "4 for Ann on a Monday");
    /// # Ok(()) }
    /// ```
    pub fn state_per_prompt<T: ?Sized + 'static>(mut self) -> Self {
        self.state_per_prompt.push(StateKey::of::<T>());
        self
    }

    /// Sets how many calls of one reply may run at the same time: 16 by default, at least 1. Results keep the order of the calls.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// Sets the time limit of a call; 300 s by default. A tool with `timeout = "…"` has its own limit.
    pub fn tool_timeout(mut self, after: Duration) -> Self {
        self.tool_timeout = after;
        self
    }

    /// Sets how long a tool may continue after its run was cancelled, before the tool is dropped; 5 s by default. A tool that awaits
    /// [`ToolContext::cancelled`] can end earlier.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Adds a listener: a function that is called with every event, in order. The run waits for the function, so the function should not
    /// block. After a panic, the function is not called again, and the run continues.
    pub fn on_event(mut self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.listeners.add(Listener::new(on_event));
        self
    }

    /// Sets the conversation to begin with. A broken conversation, for example one that has a call without a result, is
    /// [repaired](Conversation::repair) at the first prompt.
    ///
    /// ```
    /// use agent::message::{Conversation, Message};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let before = Conversation::from_iter([Message::user("I am Ann."), Message::assistant("Hello Ann.")]);
    /// let model = ScriptedModel::new(["You are Ann."]);
    /// let assistant = Assistant::builder(model.clone()).conversation(before).build()?;
    /// assistant.prompt("Who am I?").await?;
    /// assert_eq!(model.requests()[0].messages[0].text(), "I am Ann.");
    /// assert_eq!(assistant.messages().len(), 4);
    /// # Ok(()) }
    /// ```
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = conversation;
        self
    }

    /// Caches up to 1,024 completed results until the assistant is [reset](Assistant::reset). A call reuses the result of an earlier call
    /// if tool, arguments, session and [source](crate::tool::Source) are the same. By default, only results of `read_only` and
    /// `idempotent` tools are cached. The option `cache` of a tool takes precedence.
    ///
    /// A cached result is used only after hooks and approvals let the call run. A prompt with its own [state](super::Prompt::with_state)
    /// uses the cache only for tools that cannot read that state, and only if there are no hooks. Durable runs cache no results.
    /// [`Assistant::uncached_tools`] lists the tools whose results are not cached, and [`build`](Self::build) logs them.
    pub fn cache_results(mut self) -> Self {
        self.cache = true;
        self
    }

    /// Caches results like [`cache_results`](Self::cache_results), in a [cache](ResultCache) that several assistants can share.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, run::ResultCache};
    ///
    /// let cache = ResultCache::new();
    /// let first = Assistant::builder(ScriptedModel::new(["Hello!"])).cache_results_in(&cache).build()?;
    /// let second = Assistant::builder(ScriptedModel::new(["Hello!"])).cache_results_in(&cache).build()?;
    /// # drop((first, second));
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn cache_results_in(mut self, cache: &ResultCache) -> Self {
        self.shared_cache = Some(cache.clone());
        self.cache_results()
    }

    /// Writes results that are too long for the conversation to files in this folder. The model reads the files in parts with the tool
    /// `read_result`, which this method adds. A file is deleted when the assistant that wrote it and all its later
    /// [forks](Assistant::fork) were dropped or [reset](Assistant::reset). The files of a killed process stay.
    ///
    /// Only the owner can access the files (mode 0600), and a newly created folder (mode 0700). The tool reads only the results of this
    /// assistant, the results of the assistants from which this assistant was forked, and the results that the conversation names. The
    /// tool follows no symbolic links.
    pub fn spill_results(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spill = Some(SpillFolder::new(folder.into()));
        self
    }

    /// Adds hooks. Hooks are called in the order in which they were added.
    ///
    /// ```
    /// use agent::message::{CustomMessage, Part};
    /// use agent::{Assistant, ScriptedModel, hooks::Hooks, json};
    ///
    /// /// Tells the model which page the user looks at.
    /// struct Pages;
    ///
    /// impl Hooks for Pages {
    ///     fn convert(&self, message: &CustomMessage) -> Option<Vec<Part>> {
    ///         let is_page = message.kind == "page";
    ///         is_page.then(|| vec![Part::text(format!("The user looks at {}.", message.data["name"]))])
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["It is the list of orders."]);
    /// let assistant = Assistant::builder(model.clone()).hooks(Pages).build()?;
    /// let page = CustomMessage::new("page", json!({"name": "orders"}));
    /// assistant.prompt("What is this?").with_message(page).await?;
    /// assert_eq!(model.requests()[0].messages.last().unwrap().text(), r#"The user looks at "orders"."#);
    /// # Ok(()) }
    /// ```
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        let hooks = Arc::new(hooks);
        self.choosers.push(hooks.clone());
        self.hooks.push(hooks);
        self
    }

    /// Builds the assistant.
    ///
    /// # Errors
    /// Fails with all problems of the tools and their state, for example two tools with the same name, missing state, or two state values
    /// of one type. Fails if two types of serialized state, or two models, have the same name. Fails if the schema for answers cannot be
    /// compiled, or if the approval keys, a [budget](Self::budget) or the [rules of the context window](Self::manage_context) cannot be
    /// used.
    pub fn build(mut self) -> Result<Assistant, BuildError> {
        let signer = self.approval_keys.signer()?;
        if let Some(name) = self.state_names_twice {
            return Err(BuildError::State(StateError::Duplicate { name: name.to_string() }));
        }
        if self.spill.is_some() || self.context.is_some() {
            match read_result(self.spill.clone()).map(|tool| ToolSet::new().with(tool)) {
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
        let answer = self.request.output.clone().map(AnswerReader::of_schema).transpose();
        let answer = answer.map_err(BuildError::Output)?.map(Arc::new);
        let mut request = self.request;
        request.tools = registry.definitions();
        let mut rules = self.rules;
        let continue_length = rules.continue_length;
        if request.output.is_some() {
            // A structured answer that was cut off cannot be continued as text, so it is requested again with more room.
            rules.continue_length = 0;
        }
        rules = rules.with_tools(&registry);
        let tools = request.tools.iter().filter_map(|tool| registry.get(tool.name()));
        let uncached = if self.cache {
            let tools = tools.clone();
            uncached(tools, !self.hooks.is_empty(), &self.state_per_prompt)
        } else {
            Vec::new()
        };
        let formats_results = tools.into_iter().any(Tool::formats_results);
        request.tools = shown_tools(&registry, self.max_depth, request.tools);
        if let Some(name) = twice(&self.models) {
            return Err(BuildError::DuplicateModel { name: name.to_string() });
        }
        let chosen = self.models.get(..).filter(|_| !self.choosers.is_empty()).unwrap_or_default();
        let context = match &self.context {
            Some(rules) => Some(limits(rules, &self.model, chosen, &self.models, &request)?),
            None => None,
        };
        let keeper = self.store.map(|store| Arc::new(StoreAccess::new(store, self.store_options)));
        let models = std::iter::once(&self.model).chain(self.models.iter().map(|(_, model)| model));
        let models: Vec<_> = models.collect();
        let store = keeper.as_deref().cloned();
        let budgets = Budgets::new(self.budgets, store, self.counter.clone(), &models)?;
        let selects = !self.choosers.is_empty() && !self.models.is_empty();
        let may_switch = selects || self.model.candidates().len() > 1;
        let config = Config {
            formats_results,
            model: self.model,
            request,
            registry,
            state_types: self.state_types.into(),
            rules: Arc::new(rules),
            continue_length,
            hooks: self.hooks,
            approver: self.approver,
            answerer: self.answerer,
            signer,
            listeners: self.listeners,
            delivers_all: self.delivers_all,
            cache: self.cache,
            shared_cache: self.shared_cache,
            uncached: uncached.into(),
            spill: self.spill,
            context,
            counter: self.counter,
            may_switch,
            models: self.models.into(),
            choosers: self.choosers,
            meters: self.meters,
            chunk_meters: self.chunk_meters,
            agent_name: self.agent_name,
            agent_description: self.agent_description,
            answer,
            expected: None,
            output_tool: Arc::from(""),
            capture: self.capture,
            source: self.source,
            #[cfg(feature = "studio")]
            wrap_model: None,
            keeper,
            budgets,
            max_concurrency: self.max_concurrency,
            max_depth: self.max_depth,
            max_children: self.max_children,
            max_requests_in_flight: self.max_requests_in_flight,
            tool_timeout: self.tool_timeout,
            cancel_grace: self.cancel_grace,
        };
        Ok(Assistant::new(Arc::new(config), self.conversation))
    }
}

fn limits(
    rules: &Arc<ContextRules>,
    model: &Arc<dyn Model>,
    chosen: &[NamedModel],
    all: &[NamedModel],
    request: &ModelRequest,
) -> Result<ContextLimits, BuildError> {
    // The limits of the models in `chosen` are computed here only to find errors. A turn that chooses a model computes them again.
    chosen.iter().try_for_each(|(_, model)| ContextLimits::new(rules, model, all, request).map(drop))?;
    ContextLimits::new(rules, model, all, request)
}

fn twice(models: &[NamedModel]) -> Option<&str> {
    let is_twice = |at: usize, name: &str| models.iter().skip(at + 1).any(|(other, _)| **other == *name);
    models.iter().enumerate().find_map(|(at, (name, _))| is_twice(at, name).then_some(&**name))
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
