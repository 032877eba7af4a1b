//! The one tool trait.

use super::BoxFuture;
use super::call_record::CallRecord;
use super::context::ToolContext;
use super::definition::{DefinitionError, ToolDefinition};
use super::error::ToolError;
use super::outcome::ToolReply;
use super::policy::ToolPolicy;
use super::source::Source;
use super::state::StateKey;
use crate::args::{Coercions, InvalidArguments, PlanOptions};
use crate::message::Part;
use serde_json::Value;
use std::sync::Arc;

static DEFAULT_POLICY: ToolPolicy = ToolPolicy::DEFAULT;

/// Something that a model can call. `#[tool]` writes this; by hand it is a definition and a call:
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::{BoxFuture, Json, Tool, ToolContext, ToolDefinition, ToolReply};
/// use serde_json::{Value, json};
///
/// struct Echo(ToolDefinition);
///
/// impl Tool for Echo {
///     fn definition(&self) -> &ToolDefinition {
///         &self.0
///     }
///     fn call<'a>(&'a self, arguments: &'a str, _cx: &'a ToolContext) -> BoxFuture<'a, ToolReply> {
///         Box::pin(async move {
///             match self.0.plan().parse::<Value>(arguments) {
///                 Ok(checked) => ToolReply::from(Json(checked.value)).with_coercions(checked.coercions),
///                 Err(refusal) => refusal.into(),
///             }
///         })
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let plan = Plan::compile("echo", &schema, PlanOptions::default())?;
/// let registry = agent::Registry::new(agent::tools![Echo(ToolDefinition::new(plan, "Says it again.")?)])?;
/// # Ok(()) }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// What a model is shown. The same value at each call.
    fn definition(&self) -> &ToolDefinition;

    /// Checks the arguments, which are the text as the model sent it, and runs the body.
    ///
    /// It is called through a [`Registry`](crate::Registry), which finds the tool, catches panics, and keeps
    /// time and cancellation. `cx` is that of this call. Dropping the future stops the call.
    fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> BoxFuture<'a, ToolReply>;

    /// Checks the arguments without running anything.
    ///
    /// # Errors
    /// When they are refused: the full report.
    fn validate(&self, arguments: &str) -> Result<Coercions, InvalidArguments> {
        self.definition().plan().parse::<Value>(arguments).map(|parsed| parsed.coercions)
    }

    /// The same tool, whose arguments are checked by these options where it says nothing itself; none for a tool
    /// that decides alone, which is what one written by hand does.
    ///
    /// # Errors
    /// When its schema cannot be compiled with them.
    fn with_defaults(&self, defaults: PlanOptions) -> Result<Option<Arc<dyn Tool>>, DefinitionError> {
        let _ = defaults;
        Ok(None)
    }

    /// Changes arguments before they are checked: an old name, a missing default. `None`, the default, leaves them as they
    /// are. It is called before every check and every run, so doing it again changes nothing more.
    ///
    /// # Errors
    /// When the call cannot go on; it ends with the code `prepare_error`.
    fn prepare(&self, arguments: &str) -> Result<Option<String>, ToolError> {
        let _ = arguments;
        Ok(None)
    }

    /// What a model is shown on behalf of `source`; `None`, the default, is [`definition`](Self::definition). A tool that
    /// says something else here also checks the arguments of such a call by it.
    ///
    /// # Errors
    /// When its schema cannot be compiled.
    fn definition_for(&self, source: &Source) -> Result<Option<ToolDefinition>, DefinitionError> {
        let _ = source;
        Ok(None)
    }

    /// What a model is shown of a stored result, asked each time a request is built, so it may be live; `None`, the default,
    /// and blank text are the stored content.
    fn format_result(&self, record: &CallRecord<'_>) -> Option<Vec<Part>> {
        let _ = record;
        None
    }

    /// Whether the model is asked at once when this call is recorded that was made outside of a run
    /// (`Assistant::record`). By default what its [policy](crate::ToolPolicy::follow_up) says, which is no. In a run the model is told
    /// of every result anyway.
    fn triggers_follow_up(&self, record: &CallRecord<'_>) -> bool {
        let _ = record;
        self.policy().follow_up
    }

    /// Whether [`format_result`](Self::format_result) may say anything. A tool that says no is not asked about each of its
    /// results for each request.
    fn formats_results(&self) -> bool {
        true
    }

    /// How it may be run.
    fn policy(&self) -> &ToolPolicy {
        &DEFAULT_POLICY
    }

    /// The state that its body takes from the context.
    fn requires(&self) -> &[StateKey] {
        &[]
    }
}
