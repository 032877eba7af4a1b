//! The code that a tool runs (its body), and the arguments that this code gets.

use super::BoxFuture;
use super::approval::RuleArguments;
use super::arguments::Argument;
use super::context::ToolContext;
use super::definition::ToolDefinition;
use super::outcome::ToolOutcome;
use super::state::StateKey;
use crate::args::{BoxReader, Coercion, InvalidArguments, Plan, read_boxed};
#[cfg(feature = "runtime")]
use crate::json_hash::JsonHash;
use serde_json::Value;
use std::any::{Any, TypeId};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The code that a [`Tool`](crate::Tool) runs for each call. Most tools do not implement this trait by hand: a closure
/// ([`Tool::new`](crate::Tool::new)) or a `#[tool]` function is shorter. An implementation can declare the state that it requires, and
/// parse the arguments as its own type.
///
/// ```
/// use agent::tool::{AcceptedArguments, ToolBody};
/// use agent::tool::IntoOutcome;
/// use agent::{
///     BoxFuture, Json, Registry, Tool, ToolContext, ToolDefinition, ToolOutcome, Value, json,
/// };
/// use agent::args::{Plan, PlanOptions};
/// use agent::{message::ToolCall, tools};
///
/// /// Returns its arguments.
/// struct Echo;
///
/// impl ToolBody for Echo {
///     fn call<'a>(&'a self, arguments: &'a AcceptedArguments, _cx: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
///         Box::pin(async move { Json(arguments.value()).into_outcome() })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let plan = Plan::compile("echo", &schema, PlanOptions::default())?;
/// let echo = Tool::from_body(ToolDefinition::new(plan, "Returns its arguments.")?, Echo);
/// let registry = Registry::new(tools![{ echo }])?;
/// let result = registry.call(&ToolCall::new("1", "echo", r#"{"n": "1"}"#), &ToolContext::new()).await;
/// assert_eq!(result.outcome.text(), r#"{"n":1}"#);
/// # Ok(()) }
/// ```
///
/// A body that takes arguments of its own type parses them once, in `check`:
///
/// ```
/// use agent::args::InvalidArguments;
/// use agent::tool::{AcceptedArguments, ToolBody};
/// use agent::args::{Plan, PlanOptions};
/// use agent::{BoxFuture, ToolArgs, ToolContext, ToolDefinition, ToolOutcome, tool::IntoOutcome};
///
/// #[derive(ToolArgs)]
/// struct Days { first: u8, last: u8 }
///
/// struct Count;
///
/// impl ToolBody for Count {
///     fn call<'a>(&'a self, arguments: &'a AcceptedArguments, _cx: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
///         Box::pin(async move { arguments.take::<Days>().map(|days| days.last.abs_diff(days.first).to_string()).into_outcome() })
///     }
///     fn check(&self, definition: &ToolDefinition, text: &str) -> Result<AcceptedArguments, InvalidArguments> {
///         AcceptedArguments::parse::<Days>(definition, text)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let definition = ToolDefinition::new(Plan::for_type::<Days>("count", PlanOptions::default())?, "Counts days.")?;
/// let accepted = Count.check(&definition, r#"{"first": 3, "last": 7}"#)?;
/// assert!(Count.requires().is_empty() && Count.reads_context());
/// assert_eq!(Count.call(&accepted, &ToolContext::new()).await.text(), "4");
/// # Ok(()) }
/// ```
pub trait ToolBody: Send + Sync + 'static {
    /// Runs one call with arguments that [`check`](Self::check) accepted. Dropping the future stops the call.
    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome>;

    /// Checks the arguments in `text` by the definition, and parses them as a [`Value`]. An implementation that takes another type
    /// overrides this method with [`AcceptedArguments::parse`] for that type, so that the text is parsed only once.
    ///
    /// # Errors
    /// Fails with the full report when the arguments are refused.
    fn check(&self, definition: &ToolDefinition, text: &str) -> Result<AcceptedArguments, InvalidArguments> {
        AcceptedArguments::parse::<Value>(definition, text)
    }

    /// Returns the state that the tool takes from the context, so that missing state is found before a call. Default: none.
    fn requires(&self) -> &[StateKey] {
        &[]
    }

    /// Returns whether the tool may read anything from the context besides the state in [`requires`](Self::requires). Default: `true`. The
    /// results of such a tool are not [cached](crate::tool::ToolPolicy::cache) in a run whose prompt has state of its own.
    fn reads_context(&self) -> bool {
        true
    }
}

/// The arguments that a tool accepted, after coercion.
///
/// The arguments are parsed once, when they are checked. An approval rule can read the parsed value, and the tool takes the value. Stored
/// records, the cache and hooks read the arguments as a [`Value`].
///
/// ```
/// use agent::tool::AcceptedArguments;
/// use agent::{ToolArgs, ToolDefinition, args::{Plan, PlanOptions}, json};
///
/// #[derive(ToolArgs)]
/// struct Walk { steps: u32 }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let definition = ToolDefinition::new(Plan::for_type::<Walk>("walk", PlanOptions::default())?, "Walks.")?;
/// let accepted = AcceptedArguments::parse::<Walk>(&definition, r#"{"steps": "3"}"#)?;
/// assert_eq!((accepted.value(), accepted.coercions()[0].path.as_str()), (&json!({"steps": 3}), "/steps"));
/// assert_eq!((accepted.definition().name(), accepted.text()), ("walk", r#"{"steps": "3"}"#));
/// assert_eq!(accepted.take::<Walk>()?.steps, 3);
/// # Ok(()) }
/// ```
pub struct AcceptedArguments {
    definition: ToolDefinition,
    text: String,
    coercions: Vec<Coercion>,
    /// If `true`, `text` contains no alias and needs no coercion, so it can be parsed without the plan.
    is_exact: bool,
    value: OnceLock<Value>,
    /// The parsed value, until the tool takes it.
    parsed: Mutex<Option<Box<dyn Any + Send>>>,
    /// The arguments that the tool gets instead of these. Set if the application hid arguments from the model, or replaced the schema.
    whole: Option<Box<AcceptedArguments>>,
}

impl AcceptedArguments {
    /// Parses arguments as an `A`.
    ///
    /// # Errors
    /// Fails with the full report when the plan of the definition refuses the arguments.
    pub fn parse<A: Argument>(definition: &ToolDefinition, text: &str) -> Result<Self, InvalidArguments> {
        Self::parse_by(ArgumentReader::of::<A>(), definition, text)
    }

    pub(super) fn parse_by(
        reader: ArgumentReader,
        definition: &ToolDefinition,
        text: &str,
    ) -> Result<Self, InvalidArguments> {
        let parsed = definition.plan().parse_boxed(text, reader.read)?;
        let mut accepted = Self::with(definition, text, parsed.coercions);
        (accepted.is_exact, accepted.parsed) = (parsed.is_exact, Mutex::new(Some(parsed.value)));
        Ok(accepted)
    }

    /// Creates accepted arguments from a text that the caller has checked against `definition`.
    pub fn new(definition: &ToolDefinition, text: impl Into<String>, coercions: Vec<Coercion>) -> Self {
        Self::with(definition, text, coercions)
    }

    pub(super) fn with(
        definition: &ToolDefinition,
        text: impl Into<String>,
        coercions: Vec<Coercion>,
    ) -> Self {
        Self {
            definition: definition.clone(),
            text: text.into(),
            coercions,
            is_exact: false,
            value: OnceLock::new(),
            parsed: Mutex::new(None),
            whole: None,
        }
    }

    pub(super) fn with_whole(mut self, value: Value, whole: Self) -> Self {
        self.value = value.into();
        self.whole = Some(Box::new(whole));
        self
    }

    pub(super) fn for_body(&self) -> &Self {
        self.whole.as_deref().map_or(self, Self::for_body)
    }

    /// Returns the definition that the arguments were checked against, usually the one that the model saw. Inside a tool with hidden
    /// arguments or a replaced schema, it is the original definition.
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Returns the checked text: the text of the model, or the text that the tool's `prepare` made of it. A tool with hidden arguments or
    /// a replaced schema gets a text that fits its original definition instead.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the coercions that made the arguments fit, in the order in which they were made.
    pub fn coercions(&self) -> &[Coercion] {
        &self.coercions
    }

    /// Returns the arguments after coercion, under the names in the schema. Integers of up to 64 bits are exact; all other numbers are
    /// rounded to `f64`. Returns `null` if the arguments were created by [`new`](Self::new) and do not fit the definition.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
            let value = parsed.as_ref().and_then(|parsed| parsed.downcast_ref::<Value>().cloned());
            drop(parsed);
            value.unwrap_or_else(|| {
                let parsed = self.definition.plan().parse::<Value>(&self.text);
                parsed.map(|parsed| parsed.value).unwrap_or_default()
            })
        })
    }

    /// Returns the hash of the [value](Self::value) without creating the value.
    #[cfg(feature = "runtime")]
    pub(crate) fn hash(&self) -> JsonHash {
        if let Some(value) = self.value.get() {
            return JsonHash::of(value);
        }
        let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = parsed.as_ref().and_then(|parsed| parsed.downcast_ref::<Value>()) {
            return JsonHash::of(value);
        }
        drop(parsed);
        let hash = if self.is_exact {
            serde_json::from_str(&self.text).ok()
        } else {
            self.definition.plan().parse::<JsonHash>(&self.text).ok().map(|parsed| parsed.value)
        };
        hash.unwrap_or_else(|| JsonHash::of(&Value::Null))
    }

    /// Takes the arguments as an `A`. The first call returns the value that was parsed when the arguments were checked, if this value is
    /// an `A`. Later calls parse the text again, for example when the tool is restarted.
    ///
    /// # Errors
    /// Fails when the text cannot be parsed as an `A`. This is possible only if the arguments were checked as another type, or by the
    /// caller ([`new`](Self::new)).
    pub fn take<A: Argument>(&self) -> Result<A, InvalidArguments> {
        match self.take_by(ArgumentReader::of::<A>())?.downcast::<A>() {
            Ok(value) => Ok(*value),
            Err(_) => Err(self.definition.plan().refused()),
        }
    }

    pub(super) fn take_by(&self, reader: ArgumentReader) -> Result<Box<dyn Any + Send>, InvalidArguments> {
        let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).take();
        match parsed {
            Some(parsed) if (*parsed).type_id() == reader.id => Ok(parsed),
            _ => self.definition.plan().parse_boxed(&self.text, reader.read).map(|parsed| parsed.value),
        }
    }
}

/// The type of a tool's arguments, as a value at run time. Code that takes this value instead of a type parameter is compiled only once.
#[derive(Clone, Copy)]
pub(super) struct ArgumentReader {
    id: TypeId,
    read: BoxReader,
}

impl ArgumentReader {
    pub(super) fn of<A: Argument>() -> Self {
        Self { id: TypeId::of::<A>(), read: read_boxed::<A> }
    }
}

impl RuleArguments for AcceptedArguments {
    fn plan(&self) -> &Plan {
        self.definition.plan()
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn offer(&self, take: &mut dyn FnMut(&dyn Any) -> bool) {
        // The value is moved out, so that the lock is not held while the rule runs. A rule is code of the application.
        let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_taken = parsed.as_deref().is_some_and(|parsed| take(parsed));
        *self.parsed.lock().unwrap_or_else(PoisonError::into_inner) = parsed;
        if !is_taken && let Some(value) = self.value.get() {
            take(value);
        }
    }
}

/// Leaves out the text and the value of the arguments, because they may contain secrets and the output is logged. The coercions show the
/// values that were coerced.
impl fmt::Debug for AcceptedArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coercions = self.coercions.iter().map(|coercion| (&coercion.path, coercion.rule));
        f.debug_struct("AcceptedArguments")
            .field("tool", &self.definition.name())
            .field("coercions", &coercions.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

pub(super) struct WrappedBody<F> {
    pub(super) inner: Arc<dyn ToolBody>,
    pub(super) around: F,
    pub(super) reads_context: bool,
}

impl<F> ToolBody for WrappedBody<F>
where
    F: for<'a> Fn(&'a dyn ToolBody, &'a AcceptedArguments, &'a ToolContext) -> BoxFuture<'a, ToolOutcome>
        + Send
        + Sync
        + 'static,
{
    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        (self.around)(&*self.inner, arguments, context)
    }

    fn check(&self, definition: &ToolDefinition, text: &str) -> Result<AcceptedArguments, InvalidArguments> {
        self.inner.check(definition, text)
    }

    fn requires(&self) -> &[StateKey] {
        self.inner.requires()
    }

    fn reads_context(&self) -> bool {
        self.reads_context || self.inner.reads_context()
    }
}

pub(super) struct ClosureBody<F>(pub(super) F);

impl<F, Fut> ToolBody for ClosureBody<F>
where
    F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: super::outcome::IntoOutcome> + Send + 'static,
{
    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        use super::outcome::IntoOutcome as _;
        Box::pin(async move {
            match arguments.take::<Value>() {
                Ok(value) => (self.0)(value, cx.clone()).await.into_outcome(),
                Err(refusal) => refusal.into(),
            }
        })
    }
}

/// The code that a struct with `#[tool]` runs for each call. The fields are the arguments, and each call creates one value of the struct.
///
/// ```
/// use agent::{RunTool, ToolContext, tool};
///
/// /// Adds two numbers.
/// #[tool(read_only)]
/// struct AddNumbers {
///     /// First term.
///     a: i64,
///     /// Second term.
///     b: i64,
/// }
///
/// impl RunTool for AddNumbers {
///     type Output = i64;
///     async fn run(self, _cx: &ToolContext) -> i64 {
///         self.a + self.b
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::tool::RegistryError> {
/// let registry = agent::Registry::new(agent::tools![AddNumbers])?;
/// assert!(registry.contains("add_numbers"));
/// assert_eq!(AddNumbers { a: 40, b: 2 }.run(&ToolContext::new()).await, 42);      // `run` alone, in a test
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a `#[tool]`, but it does not say how to run",
    note = "write `impl RunTool for {Self} {{ type Output = …; async fn run(self, cx: &ToolContext) -> Self::Output {{ … }} }}`"
)]
pub trait RunTool: Sized + Send {
    /// The return type: anything that a `#[tool]` function may return.
    type Output: Send;

    /// Runs one call. Application state is in the context: `cx.get::<Database>()`.
    fn run(self, cx: &ToolContext) -> impl Future<Output = Self::Output> + Send;
}
