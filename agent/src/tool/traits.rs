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
/// use agent::{BoxFuture, Json, Registry, Tool, ToolContext, ToolDefinition, ToolReply, tools};
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
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let plan = Plan::compile("echo", &schema, PlanOptions::default())?;
/// let echo = Echo(ToolDefinition::new(plan, "Says it again.")?);
/// assert_eq!(echo.definition().name(), "echo");
/// assert_eq!(echo.call(r#"{"n": "1"}"#, &ToolContext::new()).await.outcome.text(), r#"{"n":1}"#);
/// assert!(echo.validate(r#"{"n": "many"}"#).is_err());
/// let registry = Registry::new(tools![{ echo }])?;
/// # assert!(registry.contains("echo"));
/// # Ok(()) }
/// ```
///
/// A tool around another one hands on all that it does not change. Where it leaves out a method, the default stands, which
/// knows nothing of the inner tool.
///
/// ```
/// use agent::args::{Coercions, InvalidArguments, PlanOptions};
/// use agent::message::{Part, ToolCall};
/// use agent::{BoxFuture, CallRecord, DefinitionError, Registry, Source, StateKey, Tool, ToolBuilder, ToolContext};
/// use agent::{ToolDefinition, ToolError, ToolPolicy, ToolReply, Value, tools};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// /// Counts the calls of a tool.
/// struct Counted {
///     tool: Arc<dyn Tool>,
///     calls: Arc<AtomicU32>,
/// }
///
/// impl Tool for Counted {
///     fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> BoxFuture<'a, ToolReply> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.tool.call(arguments, cx)
///     }
///     fn with_defaults(&self, defaults: PlanOptions) -> Result<Option<Arc<dyn Tool>>, DefinitionError> {
///         let changed = self.tool.with_defaults(defaults)?;
///         Ok(changed.map(|tool| Arc::new(Self { tool, calls: self.calls.clone() }) as Arc<dyn Tool>))
///     }
///     fn definition(&self) -> &ToolDefinition {
///         self.tool.definition()
///     }
///     fn definition_for(&self, source: &Source) -> Result<Option<ToolDefinition>, DefinitionError> {
///         self.tool.definition_for(source)
///     }
///     fn policy(&self) -> &ToolPolicy {
///         self.tool.policy()
///     }
///     fn requires(&self) -> &[StateKey] {
///         self.tool.requires()
///     }
///     fn prepare(&self, arguments: &str) -> Result<Option<String>, ToolError> {
///         self.tool.prepare(arguments)
///     }
///     fn validate(&self, arguments: &str) -> Result<Coercions, InvalidArguments> {
///         self.tool.validate(arguments)
///     }
///     fn formats_results(&self) -> bool {
///         self.tool.formats_results()
///     }
///     fn format_result(&self, record: &CallRecord<'_>) -> Option<Vec<Part>> {
///         self.tool.format_result(record)
///     }
///     fn triggers_follow_up(&self, record: &CallRecord<'_>) -> bool {
///         self.tool.triggers_follow_up(record)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let open = ToolBuilder::new("open")
///     .description("Opens a file.")
///     .required_string("path", "Where it is.")
///     .policy(ToolPolicy::default().with_repeats())
///     .prepare(|arguments| {
///         // An older prompt says `file`.
///         if let Some(path) = arguments.remove("file") {
///             arguments.insert("path".into(), path);
///         }
///         Ok(())
///     })
///     .build(|arguments: Value, _cx: ToolContext| async move { format!("opened {}", arguments["path"]) })?;
/// let calls = Arc::new(AtomicU32::new(0));
/// let registry = Registry::new(tools![{ Counted { tool: Arc::new(open), calls: calls.clone() } }])?;
///
/// let call = ToolCall::new("1", "open", r#"{"file": "a.txt"}"#);
/// assert_eq!(registry.call(&call, &ToolContext::new()).await.outcome.text(), r#"opened "a.txt""#);
/// assert_eq!(calls.load(Ordering::Relaxed), 1);
/// assert!(registry.fetch("open")?.policy().allow_repeat);
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

    /// The same tool, whose arguments are checked by these options where it says nothing itself. `None`, the default, leaves
    /// the tool as it is.
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

    /// What a model is shown of a stored result. It is asked each time a request is built, so it may tell what is the case by
    /// then. `None`, the default, and blank text stand for the stored content.
    fn format_result(&self, record: &CallRecord<'_>) -> Option<Vec<Part>> {
        let _ = record;
        None
    }

    /// Whether the model is asked at once when this call, which was made outside of a run, is recorded
    /// (`Assistant::record`). The default is what the [policy](crate::ToolPolicy::follow_up) says. In a run the model is told of
    /// every result anyway.
    fn triggers_follow_up(&self, record: &CallRecord<'_>) -> bool {
        let _ = record;
        self.policy().follow_up
    }

    /// Whether [`format_result`](Self::format_result) may give anything else than `None`; true by default. A tool for which it
    /// is false is not asked about each of its results for each request.
    fn formats_results(&self) -> bool {
        true
    }

    /// How it may be run; [`ToolPolicy::DEFAULT`] by default.
    fn policy(&self) -> &ToolPolicy {
        &DEFAULT_POLICY
    }

    /// The state that its body takes from the context, so that what is missing is found before a call; none by default.
    fn requires(&self) -> &[StateKey] {
        &[]
    }
}
