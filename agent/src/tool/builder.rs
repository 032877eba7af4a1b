//! Tools that are made at run time from a closure, and from declared parameters or a JSON Schema.

use super::approval::Approval;
use super::body::ClosureBody;
use super::context::ToolContext;
use super::definition::ToolDefinition;
use super::definition_error::DefinitionError;
use super::error::ToolError;
use super::options::{ToolOptions, setters};
use super::outcome::IntoOutcome;
use super::parameters::{Parameters, kinds};
use super::policy::Effect;
use super::source::Source;
use super::value::Tool;
use crate::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use crate::message::{Part, ToolArguments, ToolResultMessage};
use serde_json::{Map, Value, json};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A builder for tools that the macros cannot make: for example with a name from a configuration, or with parameters that depend on the
/// caller. Parameters are declared one by one, or by a JSON Schema. The builder has all [options of a tool](ToolOptions).
/// [`build`](Self::build) reports an invalid name, description, parameter or schema.
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
    options: ToolOptions,
    parameters: Parameters,
    schema: Option<Value>,
}

impl ToolBuilder {
    /// Creates the builder of a tool with this name and without parameters.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { options: ToolOptions::new(name), parameters: Parameters::new(), schema: None }
    }

    setters!(options_mut);

    fn options_mut(&mut self) -> &mut ToolOptions {
        &mut self.options
    }

    kinds!(declare);

    fn declare(mut self, change: impl FnOnce(&mut Parameters)) -> Self {
        change(&mut self.parameters);
        self
    }

    /// Sets the JSON Schema of all arguments. It replaces the declared parameters. A model sees the schema unchanged, unless its provider
    /// needs another [dialect](crate::schema).
    ///
    /// ```
    /// use agent::{ToolBuilder, ToolContext, Value, args::UnknownKeys, json};
    ///
    /// let roll = ToolBuilder::new("roll")
    ///     .description("Rolls a die.")
    ///     .schema(json!({"type": "object", "properties": {"sides": {"type": "integer"}}}))
    ///     .unknown(UnknownKeys::Strip)
    ///     .build(|_: Value, _: ToolContext| async { "4" })?;
    /// assert!(roll.validate(r#"{"sides": "6", "why": "for fun"}"#).is_ok());
    /// # Ok::<(), agent::tool::DefinitionError>(())
    /// ```
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Builds the tool from a closure. The closure gets the checked and coerced arguments, as with [`Tool::new`].
    ///
    /// # Errors
    /// Fails when the name is not `[A-Za-z0-9_-]{1,64}`, the description is missing, or a parameter is invalid. Also fails when the schema
    /// cannot be compiled, for example because a keyword is not supported.
    pub fn build<F, Fut>(self, body: F) -> Result<Tool, DefinitionError>
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        let (name, arguments) = (&*self.options.name, self.options.arguments);
        let plan = match &self.schema {
            Some(schema) => Plan::compile(name, schema, arguments)?,
            None => self.parameters.plan(name, arguments)?,
        };
        let definition = ToolDefinition::with_options(plan, self.options)?;
        Ok(Tool::from_body(definition, ClosureBody(body)))
    }
}

impl fmt::Debug for ToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder")
            .field("name", &self.options.name)
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

impl Tool {
    /// Creates a tool that checks its arguments against a JSON Schema and passes them to `body`, the tool's function. A model sees the
    /// schema unchanged, unless its provider needs another [dialect](crate::schema).
    ///
    /// # Errors
    /// Fails when the name or the description is invalid, or when the schema cannot be compiled, for example because a keyword is not
    /// supported. The error of a schema names the keyword and its path.
    pub fn new<F, Fut>(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        schema: Value,
        body: F,
    ) -> Result<Self, DefinitionError>
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        ToolBuilder::new(name).description(description).schema(schema).build(body)
    }
}
