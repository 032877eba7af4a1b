//! Tools made at run time, from a JSON Schema and a closure.

use super::BoxFuture;
use super::context::ToolContext;
use super::definition::{DefinitionError, ToolDefinition};
use super::outcome::{IntoOutcome, ToolReply};
use super::policy::ToolPolicy;
use super::traits::Tool;
use crate::args::{Plan, PlanOptions};
use serde_json::Value;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A tool whose schema is known only at run time. Its arguments are checked and coerced by the same engine as
/// those of a `#[tool]` function; the schema goes to the model exactly as it was given.
///
/// ```
/// use agent::{DynamicTool, Registry, ToolContext, ToolError, tools};
/// use serde_json::{Value, json};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let double = DynamicTool::new("double", "Doubles a number.", schema, |args: Value, _cx: ToolContext| async move {
///     let n = args["n"].as_i64().ok_or_else(|| ToolError::retry("n must fit in 64 bits"))?;
///     Ok::<_, ToolError>((n * 2).to_string())
/// })?;
/// let registry = Registry::new(tools![{ double }])?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct DynamicTool {
    definition: ToolDefinition,
    policy: ToolPolicy,
    body: Arc<Body>,
}

type Body = dyn Fn(Value, ToolContext) -> BoxFuture<'static, ToolReply> + Send + Sync;

impl DynamicTool {
    /// A tool that checks its arguments by `schema` and hands them to `body`.
    ///
    /// # Errors
    /// When the name or description will not do, or the schema has a keyword that cannot be honoured; the
    /// error names the keyword and where it stands.
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

    /// The same, with the coercions and the treatment of unknown keys that `options` say.
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
        let body = move |args, cx| -> BoxFuture<'static, ToolReply> {
            let running = body(args, cx);
            Box::pin(async move { running.await.into_outcome().into() })
        };
        Ok(Self { definition, policy: ToolPolicy::default(), body: Arc::new(body) })
    }

    /// Sets how it may be run.
    pub fn with_policy(mut self, policy: ToolPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Changes the definition: a title, annotations, an output schema.
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
            match self.definition.plan().parse::<Value>(arguments) {
                Ok(checked) => (self.body)(checked.value, cx.clone()).await.with_coercions(checked.coercions),
                Err(refusal) => refusal.into(),
            }
        })
    }

    fn with_defaults(&self, defaults: PlanOptions) -> Result<Option<Arc<dyn Tool>>, DefinitionError> {
        let definition = self.definition.clone().with_plan_defaults(defaults)?;
        Ok(Some(Arc::new(Self { definition, policy: self.policy.clone(), body: self.body.clone() })))
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
