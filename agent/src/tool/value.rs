//! The type `Tool`, which combines a definition and a body.

use super::BoxFuture;
use super::body::{AcceptedArguments, ClosureBody, ToolBody, WrappedBody};
use super::call_error::CallError;
use super::context::ToolContext;
use super::definition::ToolDefinition;
use super::definition_error::DefinitionError;
use super::error::ToolError;
use super::hidden::{HiddenArgument, HiddenArguments, join, without};
use super::options::ToolOptions;
use super::outcome::{IntoOutcome, ToolOutcome};
use super::output::ToolOutput;
use super::policy::ToolPolicy;
use super::prepared::SentNumbers;
use super::source::Source;
use super::state::StateKey;
use super::untrusted;
use crate::args::{Coercion, InvalidArguments, Plan, PlanOptions};
use crate::message::{Part, ToolArguments, ToolResultMessage};
use crate::panics::catch;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A tool that a model can call: its definition, its policy and the code that a call runs (its body). A clone costs a few reference
/// counts.
///
/// [`#[tool]`](macro@crate::tool) makes a tool from a function or a struct, and `tools![…]` lists it. At run time, [`Tool::new`] makes a
/// tool from a JSON Schema and a closure. A [`ToolBuilder`](crate::ToolBuilder) makes a tool from declared parameters, and
/// [`Tool::from_body`] makes a tool from a [body](crate::tool::ToolBody) that is written by hand.
///
/// ```
/// use agent::{Registry, Tool, ToolContext, ToolError, message::ToolCall, tools};
/// use serde_json::{Value, json};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let double = Tool::new("double", "Doubles a number.", schema, |args: Value, _cx: ToolContext| async move {
///     let n = args["n"].as_i64().ok_or_else(|| ToolError::retry("n must fit in 64 bits"))?;
///     Ok::<_, ToolError>((n * 2).to_string())
/// })?;
/// assert!(double.validate(r#"{"n": "many"}"#).is_err());
/// let registry = Registry::new(tools![{ double }])?;
/// let result = registry.call(&ToolCall::new("1", "double", r#"{"n": "21"}"#), &ToolContext::new()).await;
/// assert_eq!(result.outcome.text(), "42");
/// # Ok(()) }
/// ```
///
/// The options can be replaced by [`configure`](Self::configure), the schema by [`with_schema`](Self::with_schema), and the body by
/// [`with_body`](Self::with_body). A closure around the body receives each call ([`wrap`](Self::wrap)):
///
/// ```
/// use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// /// Opens a file.
/// #[tool(allow_repeat)]
/// fn open(path: String) -> String {
///     format!("opened {path}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let calls = Arc::new(AtomicU32::new(0));
/// let counter = calls.clone();
/// let counted = tools![open].map(move |tool| {
///     let counter = counter.clone();
///     Ok(tool.wrap(move |body, arguments, cx| {
///         counter.fetch_add(1, Ordering::Relaxed);
///         body.call(arguments, cx)
///     }))
/// });
/// let registry = Registry::new(counted)?;
///
/// let call = ToolCall::new("1", "open", r#"{"path": "a.txt"}"#);
/// assert_eq!(registry.call(&call, &ToolContext::new()).await.outcome.text(), "opened a.txt");
/// assert_eq!(calls.load(Ordering::Relaxed), 1);
/// assert!(registry.fetch("open")?.policy().allow_repeat);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Tool {
    definition: ToolDefinition,
    body: Arc<dyn ToolBody>,
    hidden: Option<Arc<HiddenArguments>>,
}

/// The definitions of one call: `shown` is the definition that the model saw, and `whole` also has the hidden arguments.
struct CallDefinitions<'t> {
    shown: Cow<'t, ToolDefinition>,
    whole: Cow<'t, ToolDefinition>,
}

impl Tool {
    /// Creates a tool from a definition and a body.
    ///
    /// ```
    /// use agent::args::{Plan, PlanOptions};
    /// use agent::tool::{AcceptedArguments, ToolBody};
    /// use agent::tool::{IntoOutcome, Source, StateKey};
    /// use agent::{BoxFuture, Tool, ToolContext, ToolDefinition, ToolOutcome, json};
    ///
    /// struct Shop(&'static str);
    ///
    /// /// Says what the shop sells.
    /// struct Ask([StateKey; 1]);
    ///
    /// impl ToolBody for Ask {
    ///     fn call<'a>(&'a self, _: &'a AcceptedArguments, cx: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
    ///         Box::pin(async move { cx.get::<Shop>().map_or("closed", |shop| shop.0).into_outcome() })
    ///     }
    ///     fn requires(&self) -> &[StateKey] {
    ///         &self.0
    ///     }
    ///     fn reads_context(&self) -> bool {
    ///         false
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plan = Plan::compile("ask", &json!({"type": "object"}), PlanOptions::default())?;
    /// let ask = Tool::from_body(ToolDefinition::new(plan, "Says what the shop sells.")?, Ask([StateKey::of::<Shop>()]));
    /// assert!(ask.requires() == [StateKey::of::<Shop>()] && !ask.reads_context());
    /// assert!(ask.definition_for(&Source::new("a customer"))?.is_none());
    /// let strict = ask.with_schema(json!({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}))?;
    /// assert!(strict.validate("{}").is_err());
    /// let cx = ToolContext::new().with_state(Shop("tea"))?;
    /// assert_eq!(strict.call(r#"{"what": "?"}"#, &cx).await.outcome.text(), "tea");
    /// # Ok(()) }
    /// ```
    pub fn from_body(definition: ToolDefinition, body: impl ToolBody) -> Self {
        Self { definition, body: Arc::new(body), hidden: None }
    }

    /// Returns the definition that a model sees.
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Returns the policy of the tool: how its calls may be run.
    pub fn policy(&self) -> &ToolPolicy {
        &self.options().policy
    }

    /// Returns whether each call of the tool is a run of an assistant.
    pub(crate) fn is_of_assistant(&self) -> bool {
        self.options().of_assistant.is_some()
    }

    #[cfg(feature = "durable-restate")]
    pub(crate) fn assistant_spec(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        self.options().of_assistant.as_deref()
    }

    pub(super) fn options(&self) -> &ToolOptions {
        self.definition.options()
    }

    /// Returns the state that the tool takes from the context.
    pub fn requires(&self) -> &[StateKey] {
        self.body.requires()
    }

    /// Returns whether the tool may also read other parts of the context, such as the session id.
    pub fn reads_context(&self) -> bool {
        self.body.reads_context()
    }

    /// Returns the definition that a model sees for this `source`. Returns `None` if the source changes neither parameters nor examples.
    ///
    /// # Errors
    /// Fails when the parameters for the source are invalid, or when the function for the parameters or for the examples panics.
    pub fn definition_for(&self, source: &Source) -> Result<Option<ToolDefinition>, DefinitionError> {
        Ok(self.definitions_for(source)?.map(|definitions| definitions.shown.into_owned()))
    }

    fn definitions_for(&self, source: &Source) -> Result<Option<CallDefinitions<'_>>, DefinitionError> {
        let options = self.options();
        let caught = |panic| DefinitionError::Panicked { panic };
        let of_source = options.parameters_for.as_ref().map(|of| catch(|| of(source)).map_err(caught));
        let parameters = of_source.transpose()?.flatten();
        let of_source = options.examples_for.as_ref().map(|of| catch(|| of(source)).map_err(caught));
        let examples = of_source.transpose()?.flatten();
        if parameters.is_none() && examples.is_none() {
            return Ok(None);
        }
        let mut whole = self.whole().clone();
        if let Some(parameters) = parameters {
            whole = whole.with_plan(parameters.plan(self.definition.name(), options.arguments)?)?;
        }
        let of_source = examples.is_some();
        if let Some(examples) = examples {
            whole = whole.configure(|options| ToolOptions { examples, ..options })?;
        }
        let shown = match &self.hidden {
            Some(hidden) => {
                let changed = hidden.hide(&whole)?;
                let shown = self.definition.clone().with_plan(changed.plan().clone())?;
                if of_source {
                    shown.configure(|own| ToolOptions { examples: changed.examples().to_vec(), ..own })?
                } else {
                    shown
                }
            }
            None => whole.clone(),
        };
        Ok(Some(CallDefinitions { shown: Cow::Owned(shown), whole: Cow::Owned(whole) }))
    }

    fn whole(&self) -> &ToolDefinition {
        self.hidden.as_ref().map_or(&self.definition, |hidden| &hidden.whole)
    }

    /// Prepares and checks arguments, on behalf of a source if there is one, without running the tool.
    /// [`Registry::call_accepted`](crate::Registry::call_accepted) runs the call with the accepted arguments, which are not parsed again.
    ///
    /// ```
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Adds two numbers.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// let registry = Registry::new(tools![add])?;
    /// let accepted = registry.fetch("add")?.check(r#"{"a": "40", "b": 2}"#, None)?;
    /// assert_eq!((accepted.value()["a"].as_i64(), accepted.coercions().len()), (Some(40), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the full report when the arguments are refused. Also fails when the tool's `prepare` fails, when a check panics, or when
    /// the definition for the source is invalid ([`definition_for`](Self::definition_for)).
    pub fn check(&self, arguments: &str, source: Option<&Source>) -> Result<AcceptedArguments, CallError> {
        let definitions = match source {
            Some(source) => self.definitions_for(source)?,
            None => None,
        };
        let definitions = definitions.unwrap_or_else(|| self.definitions());
        let prepared = self.prepare(arguments).map_err(CallError::Prepare)?;
        let text = prepared.as_deref().unwrap_or(arguments);
        match catch(|| self.accept(&definitions, text)) {
            Ok(accepted) => Ok(accepted?),
            Err(panic) => {
                tracing::error!(tool = self.definition.name(), %panic, "a check of a tool's arguments panicked");
                let text = "The check of the tool's arguments crashed. The tool was not run.";
                Err(CallError::Prepare(ToolError::new(text)))
            }
        }
    }

    /// Checks arguments without running the tool or its `prepare`, and returns the coercions that made the arguments fit.
    ///
    /// # Errors
    /// Fails with the full report when the arguments are refused.
    pub fn validate(&self, arguments: &str) -> Result<Vec<Coercion>, InvalidArguments> {
        self.accept(&self.definitions(), arguments).map(|accepted| accepted.coercions().to_vec())
    }

    fn definitions(&self) -> CallDefinitions<'_> {
        CallDefinitions { shown: Cow::Borrowed(&self.definition), whole: Cow::Borrowed(self.whole()) }
    }

    fn accept(
        &self,
        definitions: &CallDefinitions<'_>,
        text: &str,
    ) -> Result<AcceptedArguments, InvalidArguments> {
        let (shown, whole) = (&*definitions.shown, &*definitions.whole);
        let Some(hidden) = &self.hidden else { return self.body.check(shown, text) };
        let joined = join(shown.plan(), whole.plan(), &hidden.arguments, text).map_err(|report| *report)?;
        let checked = self.body.check(whole, &joined.text).map_err(|report| hidden.rewrite(report, shown))?;
        Ok(AcceptedArguments::new(shown, text, joined.coercions).with_whole(joined.value, checked))
    }

    /// Returns the text of the arguments that the tool's `prepare` changed; `None` if nothing changed.
    fn prepare(&self, arguments: &str) -> Result<Option<String>, ToolError> {
        let Some(prepare) = &self.options().prepare else { return Ok(None) };
        let text = if arguments.trim_start().is_empty() { "{}" } else { arguments };
        // An object may be sent as a JSON string, which the later validation decodes.
        let quoted: Option<String> = serde_json::from_str(text).ok();
        let text = quoted.as_deref().unwrap_or(text);
        let failed = |message: &str| Err(ToolError::new(message));
        let Some(numbers) = SentNumbers::of(text) else {
            return failed("The arguments have several numbers that are too large to be told apart.");
        };
        // Text that is not a JSON object is not prepared. The later validation reports it.
        let Ok(Value::Object(sent)) = serde_json::from_str(&numbers.with_stand_ins(text)) else {
            return Ok(None);
        };
        let mut prepared = sent.clone();
        match catch(|| prepare(&mut prepared)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) if self.policy().redact_errors => return Err(error.redacted()),
            Ok(Err(error)) => return Err(error),
            Err(panic) => {
                tracing::error!(tool = self.definition.name(), %panic, "a tool panicked while it prepared arguments");
                return failed("The tool could not prepare the arguments.");
            }
        }
        if let Some(hidden) = &self.hidden {
            hidden.remove_added(&mut prepared, &sent);
        }
        let changed = (prepared != sent).then(|| numbers.restored(prepared));
        Ok(changed.map(|text| if quoted.is_some() { Value::from(text).to_string() } else { text }))
    }

    pub(super) fn start<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        self.body.call(arguments.for_body(), cx)
    }

    /// Returns the tool's own form of a stored result (`format_result`). Blank content gets no `<untrusted>` tags, because the stored
    /// content is shown instead.
    pub(crate) fn format_result(
        &self,
        args: &ToolArguments,
        result: &ToolResultMessage,
    ) -> Option<Vec<Part>> {
        let options = self.options();
        let mut shown = options.format_result.as_ref().and_then(|format| format(args, result))?;
        if options.neutralizes {
            untrusted::neutralize_parts(&mut shown);
        }
        let is_blank = |part: &Part| part.as_text().is_some_and(|text| text.trim().is_empty());
        if options.untrusted && !shown.iter().all(is_blank) {
            shown = untrusted::envelop_as(&result.content, shown);
        }
        Some(shown)
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn formats_results(&self) -> bool {
        self.options().format_result.is_some()
    }

    pub(crate) fn triggers_follow_up(&self, args: &ToolArguments, result: &ToolResultMessage) -> bool {
        let options = self.options();
        options
            .triggers_follow_up
            .as_ref()
            .map_or(options.policy.follow_up, |triggers| triggers(args, result))
    }

    /// Returns the tool with changed options. The options include the name and the description.
    ///
    /// ```
    /// use agent::{Tool, ToolContext, Value, args::UnknownKeys, json};
    ///
    /// let schema = json!({"type": "object", "properties": {"sides": {"type": "integer"}}});
    /// let roll = Tool::new("roll", "Rolls a die.", schema, |_: Value, _: ToolContext| async { "4" })?
    ///     .configure(|options| options.unknown(UnknownKeys::Strip).allow_repeat().title("Die"))?;
    /// assert!(roll.validate(r#"{"sides": 6, "why": "for fun"}"#).is_ok());
    /// assert!(roll.policy().allow_repeat);
    /// assert_eq!(roll.definition().title(), Some("Die"));
    /// # Ok::<(), agent::tool::DefinitionError>(())
    /// ```
    ///
    /// # Errors
    /// Fails when the new name or description is invalid, and when the schema cannot be compiled with the new options for arguments.
    pub fn configure(self, change: impl FnOnce(ToolOptions) -> ToolOptions) -> Result<Self, DefinitionError> {
        let arguments = self.options().arguments;
        let changed = Self { definition: self.definition.configure(change)?, ..self };
        match changed.options().arguments {
            same if same == arguments => Ok(changed),
            options => {
                changed.over_whole(|whole| whole.configure(|own| ToolOptions { arguments: options, ..own }))
            }
        }
    }

    pub(super) fn with_plan_defaults(self, defaults: PlanOptions) -> Result<Self, DefinitionError> {
        let definition = self.definition.clone().with_plan_defaults(defaults)?;
        Self { definition, ..self }.over_whole(|whole| whole.with_plan_defaults(defaults))
    }

    /// Applies `change` to the definition with the hidden arguments, and hides these arguments again. Does nothing if none are hidden.
    fn over_whole(
        mut self,
        change: impl FnOnce(ToolDefinition) -> Result<ToolDefinition, DefinitionError>,
    ) -> Result<Self, DefinitionError> {
        if let Some(hidden) = &self.hidden {
            let (whole, arguments) = (change(hidden.whole.clone())?, hidden.arguments.clone());
            let hidden = HiddenArguments { whole, arguments };
            let plan = hidden.hide(&hidden.whole)?.plan().clone();
            (self.definition, self.hidden) = (self.definition.with_plan(plan)?, Some(Arc::new(hidden)));
        }
        Ok(self)
    }

    /// Replaces the schema of the arguments. A `#[tool]` function still parses the arguments as its own types, so the arguments must fit
    /// the schema and these types. Hide and fix arguments after this call, because this call undoes earlier hiding and fixing.
    ///
    /// # Errors
    /// Fails when the schema cannot be compiled, for example because it has a keyword that is not supported.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a schema is made for its tool; users would have to write `&`"
    )]
    pub fn with_schema(self, schema: Value) -> Result<Self, DefinitionError> {
        let plan = Plan::compile(self.definition.name(), &schema, self.options().arguments)?;
        let approval = self.policy().approval.as_sent();
        let definition = self.definition.with_plan(plan)?.configure(|options| options.approval(approval))?;
        Ok(Self { definition, hidden: None, ..self })
    }

    /// Returns the tool with another body, which gets the checked and coerced arguments.
    ///
    /// ```
    /// use agent::{Registry, ToolContext, Value, message::ToolCall, tool, tools};
    ///
    /// /// Charges a card.
    /// #[tool]
    /// fn charge(cents: u64) -> String {
    ///     format!("charged {cents}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // In a demonstration nothing is charged, but the model sees the same tool.
    /// let demo = tools![charge].map(|tool| Ok(tool.with_body(|_: Value, _: ToolContext| async { "charged nothing" })));
    /// let result = Registry::new(demo)?.call(&ToolCall::new("1", "charge", r#"{"cents": 500}"#), &ToolContext::new()).await;
    /// assert_eq!(result.outcome.text(), "charged nothing");
    /// # Ok(()) }
    /// ```
    pub fn with_body<F, Fut>(self, body: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        Self { body: Arc::new(ClosureBody(body)), ..self }
    }

    /// Returns the tool with a closure around its body. The closure receives each call with its checked arguments, and decides whether and
    /// when to [call](ToolBody::call) the body.
    ///
    /// ```
    /// use agent::{Tool, ToolContext, ToolError, Value, json, tool::IntoOutcome};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::tool::DefinitionError> {
    /// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    /// let read = Tool::new("read", "Reads a file.", schema, |_: Value, _cx: ToolContext| async { "text" })?;
    /// let inside = read.wrap(|body, arguments, cx| {
    ///     Box::pin(async move {
    ///         if arguments.value()["path"].as_str().is_some_and(|path| path.contains("..")) {
    ///             return ToolError::denied(format!("call {:?}: only files of the project", cx.call_id())).into_outcome();
    ///         }
    ///         body.call(arguments, cx).await
    ///     })
    /// });
    /// assert!(inside.call(r#"{"path": "../key"}"#, &ToolContext::new()).await.outcome.is_error());
    /// assert_eq!(inside.call(r#"{"path": "a.txt"}"#, &ToolContext::new()).await.outcome.text(), "text");
    /// # Ok(()) }
    /// ```
    pub fn wrap<F>(self, around: F) -> Self
    where
        F: for<'a> Fn(&'a dyn ToolBody, &'a AcceptedArguments, &'a ToolContext) -> BoxFuture<'a, ToolOutcome>
            + Send
            + Sync
            + 'static,
    {
        self.wrapped(around, true)
    }

    fn wrapped<F>(self, around: F, reads_context: bool) -> Self
    where
        F: for<'a> Fn(&'a dyn ToolBody, &'a AcceptedArguments, &'a ToolContext) -> BoxFuture<'a, ToolOutcome>
            + Send
            + Sync
            + 'static,
    {
        Self { body: Arc::new(WrappedBody { inner: self.body, around, reads_context }), ..self }
    }

    pub(super) fn map_output(
        self,
        change: impl Fn(ToolOutput) -> ToolOutput + Clone + Send + Sync + 'static,
    ) -> Self {
        self.wrapped(
            move |body, arguments, cx| {
                let (running, change) = (body.call(arguments, cx), change.clone());
                Box::pin(async move {
                    match running.await {
                        ToolOutcome::Completed(output) => change(output).into(),
                        other => other,
                    }
                })
            },
            false,
        )
    }

    pub(super) fn hide(self, argument: HiddenArgument) -> Result<Self, DefinitionError> {
        let before = self.definition.plan().clone();
        let alone = [argument.clone()];
        let definition = without(&self.definition, &alone)?;
        argument.check(&before, |text| self.validate(text))?;
        // The approval rule was written for all arguments, so it also gets the hidden ones.
        let approval = self.policy().approval.clone().over(before.clone(), move |shown, text| {
            join(shown, &before, &alone, text).ok().map(|joined| joined.text)
        });
        let mut arguments = self.hidden.as_ref().map(|hidden| hidden.arguments.clone()).unwrap_or_default();
        arguments.push(argument);
        let hidden = HiddenArguments { whole: self.whole().clone(), arguments };
        let definition = definition.configure(|options| options.approval(approval))?;
        Ok(Self { definition, hidden: Some(Arc::new(hidden)), ..self })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("definition", &self.definition).finish_non_exhaustive()
    }
}
