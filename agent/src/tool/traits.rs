//! The tool trait.

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

/// A tool that a model can call. `#[tool]` implements it; a manual implementation consists of a definition and a call:
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
/// A tool that wraps another one has to forward every method that it does not change: the default implementation knows nothing
/// about the inner tool.
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
///     fn reads_context(&self) -> bool {
///         self.tool.reads_context()
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
    /// Returns what a model sees. The value must not change.
    fn definition(&self) -> &ToolDefinition;

    /// Checks the arguments, which are the text as the model sent it, and runs the body.
    ///
    /// It is called through a [`Registry`](crate::Registry), which finds the tool, catches panics, and enforces timeout and
    /// cancellation. `cx` is the context of this call. Dropping the future stops the call.
    fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> BoxFuture<'a, ToolReply>;

    /// Checks the arguments without running the body.
    ///
    /// # Errors
    /// Returns the full report when they are refused.
    fn validate(&self, arguments: &str) -> Result<Coercions, InvalidArguments> {
        self.definition().plan().parse::<Value>(arguments).map(|parsed| parsed.coercions)
    }

    /// Returns the same tool with these options for checking arguments, where it sets nothing itself. `None`, the default, leaves
    /// the tool unchanged.
    ///
    /// # Errors
    /// Fails when its schema cannot be compiled with them.
    fn with_defaults(&self, defaults: PlanOptions) -> Result<Option<Arc<dyn Tool>>, DefinitionError> {
        let _ = defaults;
        Ok(None)
    }

    /// Changes arguments before they are checked, for example to rename an old key or add a default. `None`, the default, leaves
    /// them unchanged. It is called before every check and every run, so running it twice must have the same result as once.
    ///
    /// # Errors
    /// Returns an error to end the call with the code `prepare_error`.
    fn prepare(&self, arguments: &str) -> Result<Option<String>, ToolError> {
        let _ = arguments;
        Ok(None)
    }

    /// Returns what a model sees on behalf of `source`. `None`, the default, means [`definition`](Self::definition). A tool that
    /// returns another definition also checks the arguments of such a call against it.
    ///
    /// # Errors
    /// Fails when its schema cannot be compiled.
    fn definition_for(&self, source: &Source) -> Result<Option<ToolDefinition>, DefinitionError> {
        let _ = source;
        Ok(None)
    }

    /// Returns what a model sees of a stored result. It is called each time a request is built, so the text may change with time.
    /// For `None`, the default, and for blank text, the model sees the stored content.
    fn format_result(&self, record: &CallRecord<'_>) -> Option<Vec<Part>> {
        let _ = record;
        None
    }

    /// Whether the model is asked at once when this call, which was made outside of a run, is recorded (`Assistant::record`). By
    /// default the [policy](crate::ToolPolicy::follow_up) decides. In a run the model sees every result anyway.
    fn triggers_follow_up(&self, record: &CallRecord<'_>) -> bool {
        let _ = record;
        self.policy().follow_up
    }

    /// Whether [`format_result`](Self::format_result) may return anything but `None`. Default: `true`. If it is `false`, the tool
    /// is not asked about each of its results for each request.
    fn formats_results(&self) -> bool {
        true
    }

    /// Returns how the tool may be run. Default: [`ToolPolicy::DEFAULT`].
    fn policy(&self) -> &ToolPolicy {
        &DEFAULT_POLICY
    }

    /// Returns the state that the body takes from the context, so that missing state is detected before a call. Default: none.
    fn requires(&self) -> &[StateKey] {
        &[]
    }

    /// Whether the body may read more of the context than the state that it [requires](Self::requires). Default: `true`. In a prompt
    /// with state of its own, results of such a tool are not [cached](crate::ToolPolicy::cache).
    fn reads_context(&self) -> bool {
        true
    }
}
