//! The definition of a tool, as models see it.

use super::annotations::ToolAnnotations;
use super::definition_error::DefinitionError;
use super::options::ToolOptions;
#[cfg(feature = "http")]
use super::written::WrittenTools;
use crate::args::{Plan, PlanOptions};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The definition of a tool: its name, its description, its parameters, and further data for models and clients. A clone costs one
/// reference count.
///
/// A [`Plan`] provides the parameters and checks the arguments, so the shown schema and the accepted arguments cannot differ. A definition
/// serializes to `{"name", "description", "parameters"}`, with `title`, `output_schema`, `annotations`, `examples` and `_meta` if they are
/// set. An empty description is left out.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::ToolDefinition;
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let plan = Plan::compile("get_weather", &schema, PlanOptions::default())?;
/// let definition = ToolDefinition::new(plan, "The weather in a city.")?;
/// assert_eq!((definition.name(), definition.description()), ("get_weather", "The weather in a city."));
/// assert_eq!(definition.parameters(), &schema);
/// assert!(definition.plan().parse::<agent::Value>(r#"{"town": "Rome"}"#).is_err());
/// assert_eq!(serde_json::to_value(&definition)?["parameters"], schema);
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/tool_definition.md")]
#[derive(Clone)]
pub struct ToolDefinition {
    inner: Arc<Inner>,
}

struct Inner {
    plan: Plan,
    options: ToolOptions,
    #[cfg_attr(
        not(any(feature = "anthropic", feature = "gemini", feature = "openai")),
        allow(dead_code, reason = "only the protocols of providers write definitions")
    )]
    #[cfg(feature = "http")]
    written: WrittenTools,
}

impl ToolDefinition {
    /// Creates the definition of a tool whose arguments are checked by `plan`; the plan's name is the tool's name.
    ///
    /// # Errors
    /// Fails when the description is blank, or when the name is not `[A-Za-z0-9_-]{1,64}`, the form that every provider accepts.
    pub fn new(plan: Plan, description: impl Into<Arc<str>>) -> Result<Self, DefinitionError> {
        let options = ToolOptions::new(plan.name()).description(description);
        Self::with_options(plan, options)
    }

    /// Creates the definition of a tool with these options. The name comes from `options`, not from `plan`. The options for checking
    /// arguments come from `plan`, not from `options`.
    ///
    /// # Errors
    /// Fails when the name is not `[A-Za-z0-9_-]{1,64}`, or the description is blank and the tool is not
    /// [undescribed](ToolOptions::undescribed).
    pub fn with_options(plan: Plan, mut options: ToolOptions) -> Result<Self, DefinitionError> {
        options.check()?;
        options.arguments = *plan.options();
        let plan = if plan.name() == &*options.name { plan } else { plan.with_name(&options.name) };
        let inner = Inner {
            plan,
            options,
            #[cfg(feature = "http")]
            written: WrittenTools::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the name that the model calls.
    pub fn name(&self) -> &str {
        &self.inner.options.name
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.inner.options.name
    }

    #[cfg(feature = "http")]
    #[cfg_attr(
        not(any(feature = "anthropic", feature = "gemini", feature = "openai")),
        allow(dead_code, reason = "only the protocols of providers write definitions")
    )]
    pub(super) fn written(&self) -> &WrittenTools {
        &self.inner.written
    }

    pub(super) fn options(&self) -> &ToolOptions {
        &self.inner.options
    }

    pub(crate) fn policy(&self) -> &super::policy::ToolPolicy {
        &self.options().policy
    }

    /// Returns the description for the model. It is empty for an undescribed tool.
    pub fn description(&self) -> &str {
        &self.inner.options.description
    }

    /// Returns the JSON Schema of the arguments, as the model sees it.
    pub fn parameters(&self) -> &Value {
        self.inner.plan.schema()
    }

    /// Returns the estimated number of tokens that name, description and parameters cost in each request. The estimate is made from bytes,
    /// as in a [`ContextReport`](crate::model::ContextReport).
    ///
    /// ```
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Moves money.
    /// #[tool]
    /// fn transfer(/** The account. */ account: String) {}
    ///
    /// for tool in &*Registry::new(tools![transfer])?.definitions() {
    ///     println!("{} costs about {} tokens", tool.name(), tool.estimated_tokens());
    ///     assert!((20..60).contains(&tool.estimated_tokens()));
    /// }
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn estimated_tokens(&self) -> u64 {
        let bytes = |text: &str, each: u64| (text.len() as u64).div_ceil(each);
        let texts = bytes(self.name(), 4) + bytes(self.description(), 4);
        12 + texts + bytes(&self.parameters().to_string(), 5)
    }

    /// Returns the plan that checks the arguments.
    pub fn plan(&self) -> &Plan {
        &self.inner.plan
    }

    /// Returns the human-readable name, if there is one.
    pub fn title(&self) -> Option<&str> {
        self.inner.options.title.as_deref()
    }

    /// Returns the hint that the tool changes nothing, or `None` if it was not set. Hints are the annotations of MCP, for clients and
    /// people. The library does not enforce them.
    ///
    /// ```
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Throws a file away.
    /// #[tool(destructive, open_world = false)]
    /// fn remove(path: String) {}
    ///
    /// let registry = Registry::new(tools![remove])?;
    /// let remove = registry.definitions()[0].clone();
    /// assert_eq!((remove.destructive(), remove.open_world()), (Some(true), Some(false)));
    /// assert_eq!((remove.read_only(), remove.idempotent()), (None, None));
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn read_only(&self) -> Option<bool> {
        self.hints().read_only
    }

    /// Returns the [hint](Self::read_only) that the tool may delete or overwrite data, or `None` if it was not set.
    pub fn destructive(&self) -> Option<bool> {
        self.hints().destructive
    }

    /// Returns the [hint](Self::read_only) that repeating a call with the same arguments has no further effect, or `None` if it was not
    /// set.
    pub fn idempotent(&self) -> Option<bool> {
        self.hints().idempotent
    }

    /// Returns the [hint](Self::read_only) that the tool interacts with systems outside of the application, or `None` if it was not set.
    pub fn open_world(&self) -> Option<bool> {
        self.hints().open_world
    }

    pub(crate) fn hints(&self) -> &ToolAnnotations {
        &self.inner.options.annotations
    }

    /// Returns the JSON Schema of the structured result; `None` if it is unknown.
    pub fn output_schema(&self) -> Option<&Value> {
        self.inner.options.output_schema.as_ref()
    }

    /// Returns examples of arguments. [`Registry::check_examples`](crate::Registry::check_examples) checks whether they are valid.
    pub fn examples(&self) -> &[Value] {
        &self.inner.options.examples
    }

    /// Returns whether providers are asked to enforce the schema while the model writes; `None` if the
    /// [request](crate::model::ModelRequest::with_strict_tools) decides.
    pub fn strict(&self) -> Option<bool> {
        self.inner.options.strict
    }

    /// Returns whether a model sees the tool only after finding it with the [tool search](crate::ToolSet::with_tool_search).
    pub fn is_deferred(&self) -> bool {
        self.inner.options.deferred
    }

    /// Returns further data for clients, by key: `_meta` of the Model Context Protocol. Models never see it.
    pub fn meta(&self) -> &Map<String, Value> {
        &self.inner.options.meta
    }

    /// Returns the definition as text for a prompt: name, description, parameters as JSON, and the first example if there is one.
    ///
    /// ```
    /// use agent::{Registry, tool, tools};
    ///
    /// /// The weather in a city.
    /// #[tool(examples({"city": "Paris"}))]
    /// fn get_weather(city: String) -> String {
    ///     city
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::new(tools![get_weather])?;
    /// let text = registry.definitions()[0].describe_for_llm();
    /// assert!(text.starts_with("Name: get_weather\nDescription: The weather in a city.\nArguments Schema:\n{\n"));
    /// assert!(text.ends_with("Example Usage:\n{\n  \"name\": \"get_weather\",\n  \"arguments\": {\n    \"city\": \"Paris\"\n  }\n}"));
    /// # Ok(()) }
    /// ```
    pub fn describe_for_llm(&self) -> String {
        let (name, description) = (self.name(), self.description());
        let described =
            if description.is_empty() { String::new() } else { format!("Description: {description}\n") };
        let text = format!("Name: {name}\n{described}Arguments Schema:\n{:#}", self.parameters());
        let Some(example) = self.examples().first() else { return text };
        let call = serde_json::json!({"name": name, "arguments": example});
        format!("{text}\nExample Usage:\n{call:#}")
    }

    pub(crate) fn is_in_code(&self) -> bool {
        self.inner.options.is_in_code
    }

    /// Returns the definition with changed options.
    ///
    /// ```
    /// use agent::args::{Plan, PlanOptions, UnknownKeys};
    /// use agent::{ToolDefinition, json};
    ///
    /// let plan = Plan::compile("roll", &json!({"type": "object"}), PlanOptions::default())?;
    /// let roll = ToolDefinition::new(plan, "Rolls a die.")?;
    /// let roll = roll.configure(|options| options.title("Die").unknown(UnknownKeys::Strip))?;
    /// assert_eq!((roll.title(), roll.plan().options().unknown_keys()), (Some("Die"), UnknownKeys::Strip));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails when the new name or description is invalid, and when the schema cannot be compiled with the new options for arguments.
    pub fn configure(self, change: impl FnOnce(ToolOptions) -> ToolOptions) -> Result<Self, DefinitionError> {
        let (plan, options) = match Arc::try_unwrap(self.inner) {
            Ok(Inner { plan, options, .. }) => (plan, options),
            Err(shared) => (shared.plan.clone(), shared.options.clone()),
        };
        let options = change(options);
        let plan = plan.with_options(options.arguments)?;
        Self::with_options(plan, options)
    }

    pub(super) fn with_plan(self, plan: Plan) -> Result<Self, DefinitionError> {
        Self::with_options(plan, self.inner.options.clone())
    }

    /// Sets defaults for the options that decide how arguments are checked. Options that are already set stay.
    ///
    /// # Errors
    /// Fails when the schema cannot be compiled with the defaults.
    pub fn with_plan_defaults(self, defaults: PlanOptions) -> Result<Self, DefinitionError> {
        let plan = self.plan().with_defaults(defaults)?;
        self.with_plan(plan)
    }
}

impl PartialEq for ToolDefinition {
    /// Returns whether both definitions look the same to models and clients.
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.options(), other.options());
        Arc::ptr_eq(&self.inner, &other.inner)
            || (a.name == b.name
                && a.description == b.description
                && a.title == b.title
                && a.annotations == b.annotations
                && a.output_schema == b.output_schema
                && a.examples == b.examples
                && a.meta == b.meta
                && (a.strict, a.deferred) == (b.strict, b.deferred)
                && self.parameters() == other.parameters())
    }
}

impl fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDefinition")
            .field("name", &self.inner.options.name)
            .field("description", &self.inner.options.description)
            .field("parameters", self.parameters())
            .finish_non_exhaustive()
    }
}

impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = self.options();
        let annotated = inner.annotations != ToolAnnotations::default();
        let optional = [
            !inner.description.is_empty(),
            inner.title.is_some(),
            inner.output_schema.is_some(),
            annotated,
            !inner.examples.is_empty(),
            !inner.meta.is_empty(),
        ];
        let extra = optional.iter().filter(|is_there| **is_there).count();
        let mut s = serializer.serialize_struct("ToolDefinition", 2 + extra)?;
        s.serialize_field("name", &*inner.name)?;
        if !inner.description.is_empty() {
            s.serialize_field("description", &*inner.description)?;
        }
        s.serialize_field("parameters", self.parameters())?;
        if let Some(title) = &inner.title {
            s.serialize_field("title", &**title)?;
        }
        if let Some(schema) = &inner.output_schema {
            s.serialize_field("output_schema", schema)?;
        }
        if annotated {
            s.serialize_field("annotations", &inner.annotations)?;
        }
        if !inner.examples.is_empty() {
            s.serialize_field("examples", &inner.examples)?;
        }
        if !inner.meta.is_empty() {
            s.serialize_field("_meta", &inner.meta)?;
        }
        s.end()
    }
}
