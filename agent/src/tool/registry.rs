//! The tools of an application by name, and the methods that run calls to them.

use super::body::AcceptedArguments;
use super::call_error::CallError;
use super::context::ToolContext;
use super::definition::ToolDefinition;
use super::invoke::{InvokedArguments, InvokedCall, invoke};
use super::outcome::ToolResult;
use super::problem::{RegistryError, RegistryProblem, UnknownTool};
#[cfg(feature = "runtime")]
use super::secrets::SecretArguments;
use super::set::{IntoTools, ToolSet};
use super::source::Source;
use super::state::StateMap;
#[cfg(feature = "runtime")]
use super::state::StateValue;
use super::value::Tool;
#[cfg(feature = "mcp-server")]
use crate::args::PlanOptions;
use crate::args::did_you_mean;
use crate::message::{Part, ToolArguments, ToolCall, ToolResultMessage};
use crate::name_hash::NameHash;
use crate::panics::catch;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The tools of an application. Build a registry once and share it: a clone costs one reference count.
///
#[doc = include_str!("../docs/registry.md")]
#[derive(Clone, Default)]
pub struct Registry {
    inner: Arc<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    tools: Vec<Tool>,
    by_name: HashMap<Arc<str>, usize, NameHash>,
    definitions: Arc<[ToolDefinition]>,
    #[cfg(feature = "runtime")]
    secrets: Arc<SecretArguments>,
    state: StateMap,
}

impl Registry {
    /// Creates a registry of the tools of a [`tools!`](crate::tools) list, or of any other value that contains tools.
    ///
    /// # Errors
    /// Lists all problems of the tools. Examples are two tools with the same name, a schema that cannot be compiled, two parameters of one
    /// name, and a default that breaks the constraints of its own parameter. A timeout is a problem if there is no clock, which the feature
    /// `runtime` provides.
    pub fn new(tools: impl IntoTools) -> Result<Self, RegistryError> {
        let (registry, problems) = Self::assemble(tools.into_tools(), StateMap::default());
        RegistryError::none_of(problems)?;
        Ok(registry)
    }

    pub(crate) fn assemble(set: ToolSet, state: StateMap) -> (Self, Vec<RegistryProblem>) {
        let (mut registry, mut problems) = (Inner { state, ..Inner::default() }, Vec::new());
        registry.add_all(set, &mut problems);
        (Self { inner: Arc::new(registry) }, problems)
    }

    /// Adds tools at the end.
    ///
    /// ```
    /// use agent::{Registry, Tool, ToolContext, Value, json, tools};
    ///
    /// let mut registry = Registry::new(tools![])?;
    /// let ping = Tool::new("ping", "Answers.", json!({"type": "object"}), |_: Value, _: ToolContext| async { "pong" })?;
    /// registry.register(ping.clone())?;
    /// // The same tool again, with another name, description, schema and body.
    /// let echo = ping
    ///     .configure(|options| options.name("echo").description("Returns its text."))?
    ///     .with_schema(json!({"type": "object", "properties": {"text": {"type": "string"}}}))?
    ///     .with_body(|arguments: Value, _: ToolContext| async move { arguments["text"].to_string() });
    /// registry.register(echo)?;
    /// assert_eq!(registry.names().collect::<Vec<_>>(), ["ping", "echo"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails for the same problems as [`new`](Self::new), and when the registry already has a tool with one of the names. After an error,
    /// none of the tools is added.
    pub fn register(&mut self, tools: impl IntoTools) -> Result<&mut Self, RegistryError> {
        let (mut changed, mut problems) = (Inner::clone(&self.inner), Vec::new());
        changed.add_all(tools.into_tools(), &mut problems);
        RegistryError::none_of(problems)?;
        self.inner = Arc::new(changed);
        Ok(self)
    }

    /// Adds a value as state. Parameters `&T` receive this value, unless the context of a call has a value of that type.
    ///
    /// # Errors
    /// Fails when there already is state of that type.
    pub fn with_state<T: Send + Sync + 'static>(self, value: T) -> Result<Self, RegistryError> {
        self.with_shared_state(Arc::new(value))
    }

    /// Adds a shared value as state. `T` may be a trait: `Arc<dyn Clock>` is injected as `&dyn Clock`.
    ///
    /// ```
    /// use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
    /// use std::sync::Arc;
    ///
    /// trait Clock: Send + Sync {
    ///     fn hour(&self) -> u8;
    /// }
    ///
    /// struct Noon;
    ///
    /// impl Clock for Noon {
    ///     fn hour(&self) -> u8 {
    ///         12
    ///     }
    /// }
    ///
    /// /// What hour it is.
    /// #[tool(inline)]
    /// fn hour(clock: &dyn Clock) -> u8 {
    ///     clock.hour()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::tool::RegistryError> {
    /// let clock: Arc<dyn Clock> = Arc::new(Noon);
    /// let registry = Registry::new(tools![hour])?.with_shared_state(clock)?;
    /// let result = registry.call(&ToolCall::new("1", "hour", "{}"), &ToolContext::new()).await;
    /// assert_eq!(result.outcome.text(), "12");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails when there already is state of that type.
    pub fn with_shared_state<T: ?Sized + Send + Sync + 'static>(
        mut self,
        value: Arc<T>,
    ) -> Result<Self, RegistryError> {
        let inner = Arc::make_mut(&mut self.inner);
        inner.state.insert(value).map_err(RegistryError::duplicate_state)?;
        Ok(self)
    }

    /// Returns the tool with this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.inner.tools.get(*self.inner.by_name.get(name)?)
    }

    /// Returns the tool with this name.
    ///
    /// # Errors
    /// Fails when no tool has this name. The text of the error suggests tools with a similar name and lists up to 40 tools.
    ///
    /// ```
    /// use agent::{Registry, tool, tool::RegistryProblem, tools};
    ///
    /// /// Adds two numbers.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// let registry = Registry::new(tools![add])?;
    /// let error = registry.fetch("ad").err().expect("there is no such tool");
    /// let RegistryProblem::Unknown { name, suggestions, .. } = &error.problems()[0] else { unreachable!() };
    /// assert_eq!((name.as_str(), suggestions), ("ad", &vec!["add".to_owned()]));
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn fetch(&self, name: &str) -> Result<&Tool, RegistryError> {
        self.find(name).map_err(RegistryError::one)
    }

    fn find(&self, name: &str) -> Result<&Tool, UnknownTool> {
        self.get(name).ok_or_else(|| unknown_among(&self.inner.definitions, name))
    }

    /// Returns whether there is a tool with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.inner.by_name.contains_key(name)
    }

    /// Returns the names, in the order of registration.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inner.definitions.iter().map(ToolDefinition::name)
    }

    /// Returns the definitions that models see, in the order of registration. The list is shared, not copied. Iterate over it with
    /// `.iter()`.
    ///
    /// ```
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Adds.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// let registry = Registry::new(tools![add])?;
    /// let mut lines = Vec::new();
    /// for tool in registry.definitions().iter() {
    ///     lines.push(format!("{}: {}", tool.name(), tool.description()));
    /// }
    /// assert_eq!(lines, ["add: Adds."]);
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.inner.definitions.clone()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn secrets(&self) -> &Arc<SecretArguments> {
        &self.inner.secrets
    }

    /// Returns the definitions that a model sees if its calls are made on behalf of `source`. Without a source, or if no tool depends on
    /// the source, this is the shared list of [`definitions`](Self::definitions).
    ///
    /// # Errors
    /// Lists every tool whose parameters for this source are invalid, or whose function for the parameters or for the examples panics.
    pub fn definitions_for(&self, source: Option<&Source>) -> Result<Arc<[ToolDefinition]>, RegistryError> {
        let Some(source) = source else { return Ok(self.definitions()) };
        let (mut problems, mut own) = (Vec::new(), Vec::new());
        for (at, tool) in self.inner.tools.iter().enumerate() {
            match tool.definition_for(source) {
                Ok(None) => {}
                Ok(Some(definition)) => own.push((at, definition)),
                Err(error) => problems.push(RegistryProblem::Definition {
                    tool: tool.definition().name().to_owned(),
                    source: error,
                }),
            }
        }
        RegistryError::none_of(problems)?;
        if own.is_empty() {
            return Ok(self.definitions());
        }
        let mut definitions = self.inner.definitions.to_vec();
        for (at, definition) in own {
            definitions[at] = definition;
        }
        Ok(definitions.into())
    }

    /// Returns the content of a stored result that a model sees: the parts that the tool's
    /// [`format_result`](crate::tool::ToolOptions::format_result) function returns. If the function is missing or panics, or returns
    /// `None` or only blank text, the model sees the stored content.
    pub fn shown_content<'m>(&self, call: &ToolCall, result: &'m ToolResultMessage) -> Cow<'m, [Part]> {
        let shown = self.ask_tool(call, result, None, Tool::format_result);
        let is_blank = |part: &Part| part.as_text().is_some_and(|text| text.trim().is_empty());
        match shown {
            Some(parts) if !parts.iter().all(is_blank) => Cow::Owned(parts),
            _ => Cow::Borrowed(&result.content[..]),
        }
    }

    /// Returns whether the model is asked at once about a [recorded](crate::tool::ToolOptions::triggers_follow_up) result. Returns `false`
    /// if the tool no longer exists, or if its function panics.
    pub fn triggers_follow_up(&self, call: &ToolCall, result: &ToolResultMessage) -> bool {
        self.ask_tool(call, result, false, Tool::triggers_follow_up)
    }

    /// Calls `ask` with the arguments that the call ran with: those that a person changed, or else those of the model. Returns `otherwise`
    /// if the tool no longer exists, or if `ask` panics.
    fn ask_tool<T>(
        &self,
        call: &ToolCall,
        result: &ToolResultMessage,
        otherwise: T,
        ask: fn(&Tool, &ToolArguments, &ToolResultMessage) -> T,
    ) -> T {
        let Some(tool) = self.get(&result.tool) else { return otherwise };
        let args = result.edited_args.as_ref().unwrap_or(&call.args);
        catch(|| ask(tool, args, result)).unwrap_or_else(|panic| {
            tracing::error!(tool = %result.tool, %panic, "a tool panicked over its result");
            otherwise
        })
    }

    /// Returns a registry of the tools with these names, in the given order, with the state of this registry.
    ///
    /// ```
    /// # /// Reads.
    /// # #[agent::tool] fn read() {}
    /// # /// Writes.
    /// # #[agent::tool] fn write() {}
    /// use agent::{Registry, tools};
    ///
    /// let all = Registry::new(tools![read, write])?;
    /// assert_eq!(all.subset(["write"])?.names().collect::<Vec<_>>(), ["write"]);
    /// assert!(all.subset(["wirte"]).unwrap_err().to_string().contains("write"));
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    ///
    /// # Errors
    /// Fails when a name belongs to no tool, or is given twice.
    pub fn subset<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, RegistryError> {
        let (mut subset, mut problems) =
            (Inner { state: self.inner.state.clone(), ..Inner::default() }, Vec::new());
        for name in names {
            match self.find(name) {
                Ok(tool) => problems.extend(subset.add(tool.clone()).err()),
                Err(unknown) => problems.push(unknown.into()),
            }
        }
        subset.publish();
        RegistryError::none_of(problems)?;
        Ok(Self { inner: Arc::new(subset) })
    }

    pub(super) fn keep(&self, mut keep: impl FnMut(&Tool) -> bool) -> Self {
        let mut kept = Inner { state: self.inner.state.clone(), ..Inner::default() };
        for tool in self.tools().filter(|tool| keep(tool)) {
            kept.by_name.insert(tool.definition().shared_name().clone(), kept.tools.len());
            kept.tools.push(tool.clone());
        }
        kept.publish();
        Self { inner: Arc::new(kept) }
    }

    /// Returns a registry of the same tools, without state. `options` are the defaults for checking arguments; options of a tool take
    /// precedence.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn with_options(&self, options: PlanOptions) -> Result<Self, RegistryError> {
        let tools: ToolSet = self.tools().cloned().collect();
        Self::new(tools.with_options(options))
    }

    #[cfg(feature = "mcp-server")]
    pub(crate) fn with_state_of(&self, other: &Self) -> Self {
        let mut inner = Inner::clone(&self.inner);
        inner.state = other.inner.state.clone();
        Self { inner: Arc::new(inner) }
    }

    pub(super) fn tools(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.inner.tools.iter()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn state(&self) -> &StateMap {
        &self.inner.state
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.inner.tools.len()
    }

    /// Returns whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.inner.tools.is_empty()
    }

    /// Checks that the context or the registry has all state that the tools require.
    ///
    /// # Errors
    /// Lists every tool that lacks state, with the type of the missing state.
    pub fn check_state(&self, cx: &ToolContext) -> Result<(), RegistryError> {
        let missing = self.inner.tools.iter().flat_map(|tool| {
            let wanted = tool.requires().iter().filter(|key| !cx.has(key) && !self.inner.state.contains(key));
            wanted.map(|key| RegistryProblem::MissingState {
                tool: tool.definition().name().to_owned(),
                state: *key,
                given_as_arc: cx.has_arc_of(key) || self.inner.state.contains_arc_of(key),
            })
        });
        RegistryError::none_of(missing.collect())
    }

    /// Checks a call without running it, and returns the arguments that the tool would get. [`call_accepted`](Self::call_accepted) runs the
    /// call with these arguments.
    ///
    /// # Errors
    /// Fails with the full report when the arguments are refused. Also fails when there is no such tool, when its
    /// [`prepare`](crate::tool::ToolOptions::prepare) fails, or when the validation of the arguments panics.
    ///
    /// ```
    /// # use agent::{Registry, message::ToolCall, tool, tools};
    /// # /// Adds.
    /// # #[tool] fn add(a: i64, b: i64) -> i64 { a + b }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::new(tools![add])?;
    /// let error = registry.validate(&ToolCall::new("c", "add", r#"{"a": "many"}"#)).unwrap_err();
    /// assert!(error.to_string().contains("2 problems"));
    ///
    /// let accepted = registry.validate(&ToolCall::new("c", "add", r#"{"a": "40", "b": 2}"#))?;
    /// assert_eq!(*accepted.value(), agent::json!({"a": 40, "b": 2}));
    /// assert_eq!(accepted.coercions().len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn validate(&self, call: &ToolCall) -> Result<AcceptedArguments, CallError> {
        self.validate_for(call, None)
    }

    /// Checks a call as [`validate`](Self::validate) does, against the parameters that the tool has for `source`.
    ///
    /// # Errors
    /// Fails as [`validate`](Self::validate) does. Also fails when the tool's parameters for this source are invalid, or when the tool's
    /// function for the parameters or for the examples panics.
    pub fn validate_for(
        &self,
        call: &ToolCall,
        source: Option<&Source>,
    ) -> Result<AcceptedArguments, CallError> {
        self.find(&call.name)?.check(call.args.text(), source)
    }

    /// Runs a call. This never fails and never panics: an unknown tool, refused arguments, an error and a panic are outcomes, too.
    ///
    /// Dropping the future stops the call.
    pub async fn call(&self, call: &ToolCall, cx: &ToolContext) -> ToolResult {
        let sent = InvokedArguments::Sent(call.args.text());
        self.run_call(call, sent, cx).await.into_result(call)
    }

    /// Runs a call whose arguments were [checked](Tool::check) before. The arguments are not checked again.
    ///
    /// ```
    /// use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
    ///
    /// /// Doubles a number.
    /// #[tool]
    /// fn double(n: u32) -> u32 {
    ///     2 * n
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::new(tools![double])?;
    /// let call = ToolCall::new("1", "double", r#"{"n": "4"}"#);
    /// let accepted = registry.fetch("double")?.check(call.args.text(), None)?;
    /// assert_eq!(accepted.value()["n"], 4);
    /// assert_eq!(registry.call_accepted(&call, &accepted, &ToolContext::new()).await.outcome.text(), "8");
    /// # Ok(()) }
    /// ```
    pub async fn call_accepted(
        &self,
        call: &ToolCall,
        arguments: &AcceptedArguments,
        cx: &ToolContext,
    ) -> ToolResult {
        self.run_call(call, InvokedArguments::Accepted(arguments), cx).await.into_result(call)
    }

    pub(crate) async fn run_call(
        &self,
        call: &ToolCall,
        arguments: InvokedArguments<'_>,
        cx: &ToolContext,
    ) -> InvokedCall {
        match self.find(&call.name) {
            Ok(tool) => {
                let cx = cx.for_call(&call.id, tool.definition().shared_name(), &self.inner.state);
                let cx = cx.with_registered(&self.inner.definitions);
                let (outcome, coercions) = invoke(tool, arguments, &cx).await;
                InvokedCall { outcome, coercions, asked: cx.take_questions() }
            }
            Err(unknown) => {
                let outcome = CallError::from(unknown).into_outcome(&call.name);
                InvokedCall { outcome, coercions: Vec::new(), asked: Vec::new() }
            }
        }
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn state_read_by(&self, tool: &Tool) -> Vec<StateValue> {
        if tool.reads_context() {
            return self.inner.state.all().cloned().collect();
        }
        tool.requires().iter().filter_map(|key| self.inner.state.value(key).cloned()).collect()
    }

    /// Adds the state of this registry. State that the context already has takes precedence.
    #[cfg(feature = "runtime")]
    pub(crate) fn context(&self, cx: &ToolContext) -> ToolContext {
        cx.over(&self.inner.state)
    }
}

pub(crate) fn unknown_among(tools: &[ToolDefinition], name: &str) -> UnknownTool {
    let names = || tools.iter().map(ToolDefinition::name);
    let mut suggestions = did_you_mean(name, names());
    // Some models put a namespace in front of the name, as in `functions.book_room`. If no tool has a name similar to the full name, the
    // name without the namespace is compared.
    let own = name.rsplit(['.', ':', '/']).next().filter(|own| own.len() < name.len());
    if let Some(own) = own.filter(|_| suggestions.is_empty()) {
        suggestions = names().filter(|name| *name == own).collect();
        if suggestions.is_empty() {
            suggestions = did_you_mean(own, names());
        }
    }
    // Some models put a prefix in front of the name, as in `mcp_notes_search_notes`. The longest tool name with which `name` ends is added
    // as the first suggestion.
    let is_end = |tool: &&str| {
        let before = name.strip_suffix(*tool).unwrap_or_default();
        !tool.is_empty() && before.ends_with(|c: char| !c.is_alphanumeric())
    };
    if let Some(own) = names().filter(is_end).max_by_key(|tool| tool.len())
        && !suggestions.contains(&own)
    {
        suggestions.insert(0, own);
        suggestions.truncate(3);
    }
    UnknownTool::new(name, &suggestions, tools.iter().map(ToolDefinition::name))
}

impl Inner {
    fn add_all(&mut self, set: ToolSet, problems: &mut Vec<RegistryProblem>) {
        for entry in set.into_entries() {
            match entry {
                Ok(tool) => problems.extend(self.add(tool).err()),
                Err((tool, source)) => problems.push(RegistryProblem::Definition { tool, source }),
            }
        }
        self.publish();
    }

    fn add(&mut self, tool: Tool) -> Result<(), RegistryProblem> {
        let name = tool.definition().shared_name().clone();
        if self.by_name.contains_key(&name) {
            return Err(RegistryProblem::Duplicate { name: name.to_string() });
        }
        if cfg!(not(feature = "runtime")) && tool.policy().has_time_limit() {
            return Err(RegistryProblem::NoClock { tool: name.to_string() });
        }
        self.by_name.insert(name, self.tools.len());
        self.tools.push(tool);
        Ok(())
    }

    fn publish(&mut self) {
        self.definitions = self.tools.iter().map(|tool| tool.definition().clone()).collect();
        #[cfg(feature = "runtime")]
        {
            self.secrets = Arc::new(SecretArguments::new([self.definitions.clone()]));
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("tools", &self.names().collect::<Vec<_>>())
            .field("state", &self.inner.state)
            .finish()
    }
}
