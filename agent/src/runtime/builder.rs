//! Putting an assistant together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Assistant;
use super::Event;
use super::assistant::Config;
use super::listener::Listener;
use crate::model::{Model, ModelRequest};
use crate::tool::context::CANCEL_GRACE;
use crate::tool::set::IntoTools;
use crate::tool::state::StateMap;
use crate::{Registry, RegistryError, RegistryProblem, StateKey, ToolContext, ToolSet};

/// How long a tool may take that does not say so itself.
const TOOL_TIMEOUT: Duration = Duration::from_secs(300);

/// Why an assistant cannot be built.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Tools of one name, state that is missing or given twice: everything at once.
    #[error(transparent)]
    Tools(#[from] RegistryError),
}

/// Builds an [`Assistant`].
#[must_use = "call `build`"]
pub struct AssistantBuilder {
    model: Arc<dyn Model>,
    request: ModelRequest,
    tools: ToolSet,
    state: StateMap,
    state_per_prompt: Vec<StateKey>,
    /// What was wrong on the way here.
    problems: Vec<RegistryProblem>,
    listeners: Vec<Listener>,
    max_turns: u32,
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
            listeners: Vec::new(),
            max_turns: 50,
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

    /// Adds tools: a [`tools!`](crate::tools) list, a tool, or whatever turns into tools.
    pub fn tools(mut self, tools: impl IntoTools) -> Self {
        self.tools.add(tools);
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
        self.max_turns = turns.max(1);
        self
    }

    /// How many calls of one reply run at the same time; 16 by default, at least 1. Results keep the order of
    /// the calls.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// How long a tool may take that does not say so itself; 300 s by default. A tool that says
    /// `timeout = "…"` keeps to that.
    pub fn tool_timeout(mut self, after: Duration) -> Self {
        self.tool_timeout = after;
        self
    }

    /// How long a tool may go on after its run was cancelled, before it is dropped; 5 s by default. A tool that
    /// awaits [`ToolContext::cancelled`] ends at once by itself.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Adds a function that is told of every event, in order. The run waits for it, so it should not block; when it
    /// panics it is not called again, and the run goes on.
    pub fn on_event(mut self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.listeners.push(Listener::new(on_event));
        self
    }

    /// The assistant.
    ///
    /// # Errors
    /// Lists everything that is wrong: tools of one name, state that a tool needs and nobody gives, two values of
    /// one type.
    pub fn build(self) -> Result<Assistant, BuildError> {
        let (registry, mut problems) = Registry::assemble(self.tools, self.state);
        problems.extend(self.problems);
        if let Err(error) = registry.check_state(&ToolContext::new()) {
            let is_promised = |problem: &&RegistryProblem| matches!(problem, RegistryProblem::MissingState { state, .. } if self.state_per_prompt.contains(state));
            problems.extend(error.problems().iter().filter(|problem| !is_promised(problem)).cloned());
        }
        RegistryError::none_of(problems)?;
        let mut request = self.request;
        request.tools = registry.definitions();
        Ok(Assistant::new(Config {
            model: self.model,
            request,
            registry,
            listeners: self.listeners.into(),
            max_turns: self.max_turns,
            max_concurrency: self.max_concurrency,
            tool_timeout: self.tool_timeout,
            cancel_grace: self.cancel_grace,
        }))
    }
}

impl fmt::Debug for AssistantBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssistantBuilder")
            .field("model", self.model.info())
            .field("request", &self.request)
            .field("tools", &self.tools)
            .field("max_turns", &self.max_turns)
            .finish_non_exhaustive()
    }
}
