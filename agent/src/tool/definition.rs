//! The definition of a tool, as models see it.

use crate::args::{Plan, PlanOptions, SchemaError};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Maximum length of a name that every provider accepts.
pub(crate) const MAX_NAME: usize = 64;

/// Name, description and parameters of a tool: all that a model knows about it. A clone costs one reference count.
///
/// The parameters are those of its [`Plan`], which also checks the arguments, so what a model sees and what is accepted cannot
/// differ. It serializes to `{"name", "description", "parameters"}`, with `title`, `output_schema`, `annotations`, `examples` and
/// `_meta` where they were set.
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

#[derive(Clone)]
struct Inner {
    /// The plan, which also has the tool's name.
    plan: Plan,
    name: Arc<str>,
    description: Arc<str>,
    title: Option<Arc<str>>,
    annotations: ToolAnnotations,
    output_schema: Option<Value>,
    examples: Vec<Value>,
    strict: Option<bool>,
    deferred: bool,
    meta: Map<String, Value>,
    /// Whether its texts are doc comments of this program. Only hints of the lint depend on it.
    is_in_code: bool,
}

impl ToolDefinition {
    /// Creates the definition of a tool whose arguments are checked by `plan`; the plan's name is the tool's name.
    ///
    /// # Errors
    /// Fails when the name is not `[A-Za-z0-9_-]{1,64}`, the form that every provider accepts, or the description is blank.
    pub fn new(plan: Plan, description: impl Into<Arc<str>>) -> Result<Self, DefinitionError> {
        let (name, description): (Arc<str>, Arc<str>) = (plan.name().into(), description.into());
        // The worse mistake first.
        if description.trim().is_empty() && is_valid_name(&name) {
            return Err(DefinitionError::NoDescription);
        }
        Self::of(plan, name, description)
    }

    /// Creates the definition of a tool without a description, which models choose by its name alone.
    ///
    /// # Errors
    /// Fails when the name is not `[A-Za-z0-9_-]{1,64}`.
    pub fn without_description(plan: Plan) -> Result<Self, DefinitionError> {
        let name = plan.name().into();
        Self::of(plan, name, "".into())
    }

    fn of(plan: Plan, name: Arc<str>, description: Arc<str>) -> Result<Self, DefinitionError> {
        if !is_valid_name(&name) {
            return Err(DefinitionError::Name { name: name.to_string() });
        }
        let inner = Inner {
            plan,
            name,
            description,
            title: None,
            annotations: ToolAnnotations::default(),
            output_schema: None,
            examples: Vec::new(),
            strict: None,
            deferred: false,
            meta: Map::new(),
            is_in_code: false,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the name that the model calls.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.inner.name
    }

    /// Returns the description for the model; empty for a tool that was defined [without one](Self::without_description).
    pub fn description(&self) -> &str {
        &self.inner.description
    }

    /// Returns the JSON Schema of the arguments, as the model sees it.
    pub fn parameters(&self) -> &Value {
        self.inner.plan.schema()
    }

    /// Returns the plan that checks the arguments.
    pub fn plan(&self) -> &Plan {
        &self.inner.plan
    }

    /// Returns the human-readable name, if there is one.
    pub fn title(&self) -> Option<&str> {
        self.inner.title.as_deref()
    }

    /// Returns the hints for clients about the effects of the tool.
    pub fn annotations(&self) -> &ToolAnnotations {
        &self.inner.annotations
    }

    /// Returns the JSON Schema of the structured result, if it is known.
    pub fn output_schema(&self) -> Option<&Value> {
        self.inner.output_schema.as_ref()
    }

    /// Returns examples of arguments. [`Registry::check_examples`](crate::Registry::check_examples) tells whether they are valid.
    pub fn examples(&self) -> &[Value] {
        &self.inner.examples
    }

    /// Whether providers are asked to enforce the schema while the model writes; `None`: the application decides.
    pub fn strict(&self) -> Option<bool> {
        self.inner.strict
    }

    /// Whether models see the tool only after they searched for it.
    pub fn is_deferred(&self) -> bool {
        self.inner.deferred
    }

    /// Returns further data for clients, by key: `_meta` of the Model Context Protocol. Models never see it.
    pub fn meta(&self) -> &Map<String, Value> {
        &self.inner.meta
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

    /// Whether its texts are doc comments of this program, rather than texts of a schema that is read at run time.
    pub(crate) fn is_in_code(&self) -> bool {
        self.inner.is_in_code
    }

    #[cfg(feature = "macros")]
    pub(super) fn in_code(mut self) -> Self {
        Arc::make_mut(&mut self.inner).is_in_code = true;
        self
    }

    /// Returns the definition with another description.
    pub(super) fn described(mut self, description: &str) -> Result<Self, DefinitionError> {
        if description.trim().is_empty() {
            return Err(DefinitionError::NoDescription);
        }
        Arc::make_mut(&mut self.inner).description = description.into();
        Ok(self)
    }

    /// Returns the definition with other parameters.
    pub(super) fn with_plan(mut self, plan: Plan) -> Self {
        Arc::make_mut(&mut self.inner).plan = plan;
        self
    }

    /// Returns the definition under another name.
    pub(super) fn renamed(mut self, name: &str) -> Result<Self, DefinitionError> {
        if !is_valid_name(name) {
            return Err(DefinitionError::Name { name: name.to_owned() });
        }
        let inner = Arc::make_mut(&mut self.inner);
        (inner.plan, inner.name) = (inner.plan.with_name(name), name.into());
        Ok(self)
    }

    /// Returns the definition with changed examples.
    pub(super) fn map_examples(mut self, change: impl Fn(&mut Map<String, Value>)) -> Self {
        let inner = Arc::make_mut(&mut self.inner);
        inner.examples.iter_mut().filter_map(Value::as_object_mut).for_each(change);
        self
    }

    /// Sets how arguments are checked where the options of the plan set nothing themselves.
    ///
    /// # Errors
    /// Fails when the schema cannot be compiled with them.
    pub fn with_plan_defaults(mut self, defaults: PlanOptions) -> Result<Self, DefinitionError> {
        let plan = self.plan().with_defaults(defaults)?;
        Arc::make_mut(&mut self.inner).plan = plan;
        Ok(self)
    }

    /// Sets the human-readable name.
    pub fn with_title(mut self, title: impl Into<Arc<str>>) -> Self {
        Arc::make_mut(&mut self.inner).title = Some(title.into());
        self
    }

    /// Sets the hints for clients.
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        Arc::make_mut(&mut self.inner).annotations = annotations;
        self
    }

    /// Adds an example of valid arguments.
    ///
    /// ```
    /// use agent::ToolDefinition;
    /// use agent::args::{Plan, PlanOptions};
    ///
    /// #[derive(agent::ToolArgs)]
    /// struct Search { query: String }
    ///
    /// let plan = Plan::for_type::<Search>("search", PlanOptions::default())?;
    /// let definition = ToolDefinition::new(plan, "Searches the notes.")?
    ///     .with_title("Search")
    ///     .with_strict(true)
    ///     .with_example(agent::json!({"query": "tea"}));
    /// assert_eq!((definition.title(), definition.examples().len()), (Some("Search"), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_example(mut self, arguments: Value) -> Self {
        Arc::make_mut(&mut self.inner).examples.push(arguments);
        self
    }

    /// Sets whether providers are asked to enforce the schema while the model writes. By default the application decides.
    pub fn with_strict(mut self, strict: bool) -> Self {
        Arc::make_mut(&mut self.inner).strict = Some(strict);
        self
    }

    /// Sets whether models see the tool only after they [searched](crate::ToolSet::with_tool_search) for it.
    pub fn with_deferred(mut self, deferred: bool) -> Self {
        Arc::make_mut(&mut self.inner).deferred = deferred;
        self
    }

    /// Sets the data for clients under a key of [`meta`](Self::meta).
    pub fn with_meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.inner).meta.insert(key.into(), value.into());
        self
    }

    /// Sets the JSON Schema of the structured result.
    pub fn with_output_schema(mut self, schema: Value) -> Self {
        Arc::make_mut(&mut self.inner).output_schema = Some(schema);
        self
    }
}

/// Whether every provider accepts this name: `[A-Za-z0-9_-]{1,64}`.
pub(crate) fn is_valid_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

impl PartialEq for ToolDefinition {
    /// Whether models see the same.
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.inner, &*other.inner);
        Arc::ptr_eq(&self.inner, &other.inner)
            || (a.name == b.name
                && a.description == b.description
                && a.title == b.title
                && a.annotations == b.annotations
                && a.output_schema == b.output_schema
                && a.examples == b.examples
                && a.meta == b.meta
                && (a.strict, a.deferred) == (b.strict, b.deferred)
                && a.plan.schema() == b.plan.schema())
    }
}

impl fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDefinition")
            .field("name", &self.inner.name)
            .field("description", &self.inner.description)
            .field("parameters", self.parameters())
            .finish_non_exhaustive()
    }
}

impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = &*self.inner;
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

/// Hints about a tool for clients and people, in MCP's terms. They are only hints: nothing enforces them.
///
/// Source: `ToolAnnotations` of the Model Context Protocol's schema.
///
/// ```
/// use agent::{Registry, tool, tools};
///
/// /// Throws a file away.
/// #[tool(destructive, open_world = false)]
/// fn remove(path: String) {}
///
/// let registry = Registry::new(tools![remove])?;
/// let definitions = registry.definitions();
/// let hints = definitions[0].annotations();
/// assert_eq!((hints.destructive, hints.open_world, hints.read_only), (Some(true), Some(false), None));
/// # Ok::<(), agent::RegistryError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The tool changes nothing.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may delete or overwrite data.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Repeating a call with the same arguments has no further effect.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool interacts with systems outside of the application.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// No hints.
    pub const NONE: Self = Self { read_only: None, destructive: None, idempotent: None, open_world: None };
}

/// The error for an invalid tool definition.
///
/// ```
/// use agent::{DefinitionError, ToolBuilder, ToolContext, Value};
///
/// let error = ToolBuilder::new("get weather").description("The weather.").build(|_: Value, _: ToolContext| async {});
/// assert!(matches!(error, Err(DefinitionError::Name { name }) if name == "get weather"));
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// Some provider would refuse the name.
    #[error("a tool cannot be named {name:?}: use 1 to 64 letters, digits, `_` or `-`")]
    Name {
        /// The name.
        name: String,
    },
    /// The description is missing; models choose tools by it.
    #[error("the description is empty: say what the tool does")]
    NoDescription,
    /// A parameter that was declared at run time is invalid.
    #[error("parameter {name:?}: {reason}")]
    Parameter {
        /// The name of the parameter.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The function that gives the parameters for a source panicked.
    #[error("the function that gives the parameters panicked: {panic}")]
    Panicked {
        /// The message of the panic.
        panic: String,
    },
    /// The set does not have the requested tool.
    #[error("there is no such tool in the set{}", meant(suggestions))]
    NotInSet {
        /// Names of similar tools, best first.
        suggestions: Vec<String>,
    },
    /// The schema cannot be compiled; the error says where and why.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

crate::error_text::debug_is_the_sentence!(DefinitionError);

fn meant(suggestions: &[String]) -> String {
    match suggestions {
        [] => String::new(),
        all => format!("; did you mean `{}`?", all.join("` or `")),
    }
}
