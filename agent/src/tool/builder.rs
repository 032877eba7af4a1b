//! Tools that are declared step by step at run time.

use super::call_record::CallRecord;
use super::definition::{DefinitionError, ToolAnnotations, ToolDefinition};
use super::dynamic::DynamicTool;
use super::error::ToolError;
use super::outcome::IntoOutcome;
use super::parameters::{Parameters, kinds};
use super::policy::ToolPolicy;
use super::source::Source;
use super::{context::ToolContext, dynamic};
use crate::args::{Plan, PlanOptions, UnknownKeys};
use crate::message::Part;
use serde_json::{Map, Value, json};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// Builds a tool from parameters that are declared one by one, where the macros cannot be used: names from a configuration, or
/// schemas that depend on the caller. [`build`](Self::build) checks everything.
///
/// ```
/// use agent::{Registry, ToolBuilder, ToolContext, Value, message::ToolCall, tools};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let get_weather = ToolBuilder::new("get_weather")
///     .description("The weather in a city.")
///     .required_string("city", "Name of the city.")
///     .with_keyword("maxLength", 80)
///     .optional_enum("unit", "Unit of the answer.", ["celsius", "fahrenheit"])
///     .optional_integer("days", "How many days.")
///     .with_keyword("minimum", 1)
///     .build(|arguments: Value, _cx: ToolContext| async move { format!("sunny in {}", arguments["city"]) })?;
///
/// let registry = Registry::new(tools![{ get_weather }])?;
/// let call = ToolCall::new("1", "get_weather", r#"{"city": "Rome", "days": "3"}"#);
/// assert_eq!(registry.call(&call, &ToolContext::new()).await.outcome.text(), "sunny in \"Rome\"");
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/tool_builder.md")]
#[doc = include_str!("../docs/parameter_kinds.md")]
#[must_use = "call `build`"]
pub struct ToolBuilder {
    name: String,
    description: String,
    title: Option<String>,
    annotations: ToolAnnotations,
    policy: ToolPolicy,
    options: PlanOptions,
    examples: Vec<Value>,
    parameters: Parameters,
    hooks: dynamic::Hooks,
}

impl ToolBuilder {
    /// Starts a tool with this name and without parameters.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            title: None,
            annotations: ToolAnnotations::NONE,
            policy: ToolPolicy::DEFAULT,
            options: PlanOptions::default(),
            examples: Vec::new(),
            parameters: Parameters::new(),
            hooks: dynamic::Hooks::default(),
        }
    }

    /// Sets what the tool does, for the model. A description is required.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    kinds!(declare);

    fn declare(mut self, change: impl FnOnce(&mut Parameters)) -> Self {
        change(&mut self.parameters);
        self
    }

    /// Sets a human-readable name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the hints for clients. Default: none.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Sets how the tool may be run.
    pub fn policy(mut self, policy: ToolPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how arguments are checked: what is coerced, and what happens to unknown keys.
    pub fn options(mut self, options: PlanOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds an example of valid arguments. [`Registry::check_examples`](crate::Registry::check_examples) checks them.
    pub fn example(mut self, arguments: Value) -> Self {
        self.examples.push(arguments);
        self
    }

    /// Changes the sent arguments before they are checked, for example to rename an old key or add a default. The function runs
    /// before every check, so running it twice must have the same result as once. Arguments that are not an object are not passed
    /// to it. An error ends the call with the code `prepare_error`.
    ///
    /// ```
    /// use agent::{Registry, ToolBuilder, ToolContext, ToolError, Value, message::ToolCall, tools};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let open = ToolBuilder::new("open")
    ///     .description("Opens a file.")
    ///     .required_string("path", "Where it is.")
    ///     .prepare(|arguments| {
    ///         if let Some(path) = arguments.remove("file_path") {
    ///             arguments.insert("path".into(), path);
    ///         }
    ///         Ok(())
    ///     })
    ///     .build(|arguments: Value, _cx: ToolContext| async move { arguments["path"].to_string() })?;
    /// let registry = Registry::new(tools![{ open }])?;
    /// let call = ToolCall::new("1", "open", r#"{"file_path": "a.txt"}"#);
    /// assert_eq!(registry.call(&call, &ToolContext::new()).await.outcome.text(), "\"a.txt\"");
    /// # Ok(()) }
    /// ```
    pub fn prepare(
        mut self,
        prepare: impl Fn(&mut Map<String, Value>) -> Result<(), ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.prepare = Some(Arc::new(prepare));
        self
    }

    /// Makes the parameters depend on the source of a call. Without a source, and where the function returns `None`, the
    /// parameters declared here apply: they should offer the least. The same source is used for showing and for checking.
    ///
    /// ```
    /// use agent::{Parameters, Registry, Source, ToolBuilder, ToolContext, Value, message::ToolCall, tools};
    ///
    /// struct Admin;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let list = ToolBuilder::new("list_users")
    ///     .description("Lists users.")
    ///     .parameters_for(|source| {
    ///         source.get::<Admin>().map(|_| Parameters::new().optional_boolean("deleted", "Those, too."))
    ///     })
    ///     .build(|arguments: Value, _cx: ToolContext| async move { arguments.to_string() })?;
    /// let registry = Registry::new(tools![{ list }])?;
    ///
    /// let call = ToolCall::new("1", "list_users", r#"{"deleted": true}"#);
    /// assert!(registry.call(&call, &ToolContext::new()).await.outcome.is_error());
    /// let admin = Source::new(Admin);
    /// let cx = ToolContext::builder().source(admin.clone()).build()?;
    /// assert!(!registry.call(&call, &cx).await.outcome.is_error());
    /// assert_eq!(registry.definitions_for(Some(&admin))?[0].plan().parameter_names().count(), 1);
    /// assert_eq!(registry.definitions_for(None)?[0].plan().parameter_names().count(), 0);
    /// # Ok(()) }
    /// ```
    pub fn parameters_for(
        mut self,
        parameters: impl Fn(&Source) -> Option<Parameters> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.parameters_for = Some(Arc::new(parameters));
        self
    }

    /// Shows a stored result in another form, each time a request is built. For `None`, or only blank text, the stored content is
    /// shown. See [`Registry::shown_content`](crate::Registry::shown_content).
    ///
    /// ```
    /// use agent::message::{OutcomeKind, Part, ToolCall, ToolResultMessage};
    /// use agent::{CallRecord, Registry, ToolBuilder, ToolContext, Value, tools};
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let done = Arc::new(AtomicU32::new(0));
    /// let now = done.clone();
    /// let export = ToolBuilder::new("export")
    ///     .description("Exports a table; goes on in the background.")
    ///     .required_string("table", "Which.")
    ///     .format_result(move |record| {
    ///         let table = record.args().value()?["table"].as_str()?.to_owned();
    ///         Some(vec![Part::text(format!("{table}: {} %", now.load(Ordering::Relaxed)))])
    ///     })
    ///     .build(|_: Value, _cx: ToolContext| async { "started" })?;
    /// let registry = Registry::new(tools![{ export }])?;
    ///
    /// let call = ToolCall::new("1", "export", r#"{"table": "orders"}"#);
    /// let result = ToolResultMessage::new("1", "export", OutcomeKind::Completed).with_content("started");
    /// done.store(40, Ordering::Relaxed);
    /// assert_eq!(registry.shown_content(&CallRecord::new(&call, &result))[0].as_text(), Some("orders: 40 %"));
    /// # Ok(()) }
    /// ```
    pub fn format_result(
        mut self,
        format: impl Fn(&CallRecord<'_>) -> Option<Vec<Part>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.format = Some(Arc::new(format));
        self
    }

    /// Sets for which recorded calls the model is asked at once. Default: as the [policy](crate::ToolPolicy::follow_up) says. See
    /// [`Tool::triggers_follow_up`](crate::Tool::triggers_follow_up).
    ///
    /// ```
    /// use agent::message::{OutcomeKind, ToolCall, ToolResultMessage};
    /// use agent::{CallRecord, Registry, ToolBuilder, ToolContext, Value, tools};
    ///
    /// // The application records each reading of a sensor; the model hears of an alarm at once.
    /// let sensor = ToolBuilder::new("read_sensor")
    ///     .description("Reads the sensor.")
    ///     .triggers_follow_up(|record| record.result.text().contains("alarm"))
    ///     .build(|_: Value, _cx: ToolContext| async { "21 degrees" })?;
    /// let registry = Registry::new(tools![{ sensor }])?;
    ///
    /// let call = ToolCall::new("1", "read_sensor", "{}");
    /// let read = |text: &str| ToolResultMessage::new("1", "read_sensor", OutcomeKind::Completed).with_content(text);
    /// assert!(registry.triggers_follow_up(&CallRecord::new(&call, &read("alarm: 90 degrees"))));
    /// assert!(!registry.triggers_follow_up(&CallRecord::new(&call, &read("21 degrees"))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn triggers_follow_up(
        mut self,
        triggers: impl Fn(&CallRecord<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.hooks.triggers = Some(Arc::new(triggers));
        self
    }

    /// Builds the tool. Its body gets the checked and coerced arguments, as with [`DynamicTool::new`].
    ///
    /// # Errors
    /// Fails when the name is not `[A-Za-z0-9_-]{1,64}`, the description is missing, a parameter is invalid, or a keyword is not
    /// supported.
    pub fn build<F, Fut>(self, body: F) -> Result<DynamicTool, DefinitionError>
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        let schema = opened(self.parameters.schema()?, self.options);
        let mut definition =
            ToolDefinition::new(Plan::compile(&self.name, &schema, self.options)?, self.description)?;
        definition = definition.with_annotations(self.annotations);
        if let Some(title) = self.title {
            definition = definition.with_title(title);
        }
        definition = self.examples.into_iter().fold(definition, ToolDefinition::with_example);
        Ok(DynamicTool::of(definition, self.policy, self.hooks, body))
    }
}

/// Closes an object, unless unknown keys are kept.
pub(super) fn opened(mut schema: Value, options: PlanOptions) -> Value {
    if options.unknown_keys() == UnknownKeys::Keep {
        schema["additionalProperties"] = json!(true);
    }
    schema
}

impl fmt::Debug for ToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder")
            .field("name", &self.name)
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}
