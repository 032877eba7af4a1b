//! Tools that are made at run time, from a JSON Schema and a closure.

use super::BoxFuture;
use super::builder::opened;
use super::call_record::CallRecord;
use super::context::ToolContext;
use super::definition::{DefinitionError, ToolDefinition};
use super::error::ToolError;
use super::outcome::{FailureCode, IntoOutcome, ToolOutcome, ToolReply};
use super::parameters::Parameters;
use super::policy::ToolPolicy;
use super::source::Source;
use super::traits::Tool;
use crate::args::{Plan, PlanOptions};
use crate::message::Part;
use crate::panics::catch;
use serde_json::{Map, Value};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A tool whose schema is known only at run time. Its arguments are checked and coerced by the same engine as those of a
/// `#[tool]` function; the schema is sent to the model unchanged.
///
/// ```
/// use agent::{DynamicTool, Registry, ToolContext, ToolError, message::ToolCall, tools};
/// use serde_json::{Value, json};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let double = DynamicTool::new("double", "Doubles a number.", schema, |args: Value, _cx: ToolContext| async move {
///     let n = args["n"].as_i64().ok_or_else(|| ToolError::retry("n must fit in 64 bits"))?;
///     Ok::<_, ToolError>((n * 2).to_string())
/// })?;
/// let registry = Registry::new(tools![{ double }])?;
/// let result = registry.call(&ToolCall::new("1", "double", r#"{"n": "21"}"#), &ToolContext::new()).await;
/// assert_eq!(result.outcome.text(), "42");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct DynamicTool {
    definition: ToolDefinition,
    policy: ToolPolicy,
    hooks: Hooks,
    body: Arc<Body>,
}

type Body = dyn Fn(Value, ToolContext) -> BoxFuture<'static, ToolReply> + Send + Sync;
type Prepare = dyn Fn(&mut Map<String, Value>) -> Result<(), ToolError> + Send + Sync;
type ParametersFor = dyn Fn(&Source) -> Option<Parameters> + Send + Sync;
type Format = dyn Fn(&CallRecord<'_>) -> Option<Vec<Part>> + Send + Sync;
type Triggers = dyn Fn(&CallRecord<'_>) -> bool + Send + Sync;

/// The behaviour of a tool beside its body, as set by [`ToolBuilder`](crate::ToolBuilder).
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) prepare: Option<Arc<Prepare>>,
    pub(super) parameters_for: Option<Arc<ParametersFor>>,
    pub(super) format: Option<Arc<Format>>,
    pub(super) triggers: Option<Arc<Triggers>>,
}

impl DynamicTool {
    /// Creates a tool that checks its arguments against `schema` and passes them to `body`.
    ///
    /// # Errors
    /// Fails when the name or the description is invalid, or the schema has a keyword that is not supported; the error names the
    /// keyword and its place.
    pub fn new<F, Fut>(
        name: &str,
        description: impl Into<Arc<str>>,
        schema: Value,
        body: F,
    ) -> Result<Self, DefinitionError>
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        Self::with_options(name, description, schema, PlanOptions::default(), body)
    }

    /// Creates a tool with the coercions and the handling of unknown keys that `options` set.
    ///
    /// ```
    /// use agent::args::{PlanOptions, UnknownKeys};
    /// use agent::{DynamicTool, Tool, ToolContext, ToolPolicy, Value, json};
    ///
    /// let schema = json!({"type": "object", "properties": {"sides": {"type": "integer"}}});
    /// let options = PlanOptions::default().unknown(UnknownKeys::Strip);
    /// let roll = DynamicTool::with_options("roll", "Rolls a die.", schema, options, |_: Value, _: ToolContext| async { "4" })?
    ///     .with_policy(ToolPolicy::default().with_repeats())
    ///     .map_definition(|definition| definition.with_title("Die"));
    /// assert!(roll.validate(r#"{"sides": 6, "why": "for fun"}"#).is_ok());
    /// assert!(roll.policy().allow_repeat);
    /// assert_eq!(roll.definition().title(), Some("Die"));
    /// # Ok::<(), agent::DefinitionError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a schema is made for its tool; users would have to write `&`"
    )]
    pub fn with_options<F, Fut>(
        name: &str,
        description: impl Into<Arc<str>>,
        schema: Value,
        options: PlanOptions,
        body: F,
    ) -> Result<Self, DefinitionError>
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        let definition = ToolDefinition::new(Plan::compile(name, &schema, options)?, description)?;
        Ok(Self::of(definition, ToolPolicy::default(), Hooks::default(), body))
    }

    pub(super) fn of<F, Fut>(definition: ToolDefinition, policy: ToolPolicy, hooks: Hooks, body: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        let body = move |args, cx| -> BoxFuture<'static, ToolReply> {
            let running = body(args, cx);
            Box::pin(async move { running.await.into_outcome().into() })
        };
        Self { definition, policy, hooks, body: Arc::new(body) }
    }

    /// Sets how the tool may be run.
    pub fn with_policy(mut self, policy: ToolPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Changes the definition, for example to set a title, annotations or an output schema.
    pub fn map_definition(mut self, change: impl FnOnce(ToolDefinition) -> ToolDefinition) -> Self {
        self.definition = change(self.definition);
        self
    }
}

impl Tool for DynamicTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move {
            let own = match cx.source().map(|source| self.definition_for(source)) {
                None | Some(Ok(None)) => None,
                Some(Ok(own)) => own,
                Some(Err(error)) => {
                    tracing::error!(tool = self.definition.name(), %error, "the parameters for this source cannot be");
                    return ToolOutcome::failed(
                        FailureCode::TOOL_ERROR,
                        "The tool cannot run: the application did not set it up.",
                    )
                    .into();
                }
            };
            match own.as_ref().unwrap_or(&self.definition).plan().parse::<Value>(arguments) {
                Ok(checked) => (self.body)(checked.value, cx.clone()).await.with_coercions(checked.coercions),
                Err(refusal) => refusal.into(),
            }
        })
    }

    fn with_defaults(&self, defaults: PlanOptions) -> Result<Option<Arc<dyn Tool>>, DefinitionError> {
        let definition = self.definition.clone().with_plan_defaults(defaults)?;
        Ok(Some(Arc::new(Self { definition, ..self.clone() })))
    }

    fn prepare(&self, arguments: &str) -> Result<Option<String>, ToolError> {
        let Some(prepare) = &self.hooks.prepare else { return Ok(None) };
        // What is no object is told by the check.
        let text = if arguments.trim_start().is_empty() { "{}" } else { arguments };
        let Ok(Value::Object(mut arguments)) = serde_json::from_str(text) else { return Ok(None) };
        let before = arguments.clone();
        prepare(&mut arguments)?;
        Ok((arguments != before).then(|| Value::Object(arguments).to_string()))
    }

    fn definition_for(&self, source: &Source) -> Result<Option<ToolDefinition>, DefinitionError> {
        let own = self.hooks.parameters_for.as_ref().map(|of| catch(|| of(source)));
        let parameters = match own {
            Some(Ok(Some(parameters))) => parameters,
            None | Some(Ok(None)) => return Ok(None),
            Some(Err(panic)) => return Err(DefinitionError::Panicked { panic }),
        };
        let options = *self.definition.plan().options();
        let schema = opened(parameters.schema()?, options);
        let plan = Plan::compile(self.definition.name(), &schema, options)?;
        Ok(Some(self.definition.clone().with_plan(plan)))
    }

    fn format_result(&self, record: &CallRecord<'_>) -> Option<Vec<Part>> {
        self.hooks.format.as_ref().and_then(|format| format(record))
    }

    fn triggers_follow_up(&self, record: &CallRecord<'_>) -> bool {
        self.hooks.triggers.as_ref().map_or(self.policy.follow_up, |triggers| triggers(record))
    }

    fn formats_results(&self) -> bool {
        self.hooks.format.is_some()
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }
}

impl fmt::Debug for DynamicTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicTool").field("definition", &self.definition).finish_non_exhaustive()
    }
}
