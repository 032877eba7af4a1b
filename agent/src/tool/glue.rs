//! The functions that generated code calls: they make a typed tool from its attributes and the function that runs it.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::result_large_err,
    reason = "for generated code only; what is there is explained where it is not plain"
)]

use super::BoxFuture;
use super::arguments::{Argument, ToolArgs};
use super::context::ToolContext;
use super::definition::{DefinitionError, ToolDefinition};
use super::invoke::crashed_check;
use super::outcome::{FailureCode, ToolOutcome, ToolReply};
use super::policy::ToolPolicy;
use super::set::Entry;
use super::spec::{Blueprint, Compiled};
use super::state::StateKey;
use super::traits::Tool;
use crate::args::{Coercions, InvalidArguments, Parsed, PlanOptions};
use crate::panics::catch;
use schemars::Schema;
use serde_json::Value;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A tool whose arguments are an `A`.
struct TypedTool<A, F> {
    definition: ToolDefinition,
    policy: &'static ToolPolicy,
    injected: Injected,
    run: Arc<F>,
    arguments: PhantomData<fn() -> A>,
}

/// Returns the entry of a tool that checks its arguments by the blueprint and passes them to `run`.
pub fn typed<A, F>(blueprint: &'static LazyLock<Compiled>, injected: Injected, run: F) -> Entry
where
    A: Argument,
    F: for<'a> Fn(A, &'a ToolContext) -> BoxFuture<'a, ToolOutcome> + Send + Sync + 'static,
{
    match &**blueprint {
        Ok(Blueprint { definition, policy }) => Ok(Arc::new(TypedTool {
            definition: definition.clone(),
            policy,
            injected,
            run: Arc::new(run),
            arguments: PhantomData,
        })),
        Err(error) => Err(error.clone()),
    }
}

/// Parses and checks arguments. A check that panics is no panic of the body, which has not started.
fn check<A>(
    parse: impl FnOnce() -> Result<Parsed<A>, InvalidArguments>,
    cx: &ToolContext,
) -> Result<Parsed<A>, ToolReply> {
    match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(parsed) => parsed.map_err(ToolReply::from),
        Err(payload) => {
            let words = crashed_check(cx.tool(), payload);
            Err(ToolReply::new(ToolOutcome::failed(FailureCode::PREPARE_ERROR, words)))
        }
    }
}

impl<A, F> Tool for TypedTool<A, F>
where
    A: Argument,
    F: for<'a> Fn(A, &'a ToolContext) -> BoxFuture<'a, ToolOutcome> + Send + Sync + 'static,
{
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> BoxFuture<'a, ToolReply> {
        let parsed = match check(|| self.definition().plan().parse::<A>(arguments), cx) {
            Ok(parsed) => parsed,
            Err(reply) => return Box::pin(std::future::ready(reply)),
        };
        let (running, coercions) = ((self.run)(parsed.value, cx), parsed.coercions);
        Box::pin(async move { ToolReply::new(running.await).with_coercions(coercions) })
    }

    fn validate(&self, arguments: &str) -> Result<Coercions, InvalidArguments> {
        self.definition().plan().parse::<A>(arguments).map(|parsed| parsed.coercions)
    }

    fn with_defaults(&self, defaults: PlanOptions) -> Result<Option<Arc<dyn Tool>>, DefinitionError> {
        Ok(Some(Arc::new(TypedTool {
            definition: self.definition.clone().with_plan_defaults(defaults)?,
            policy: self.policy,
            injected: self.injected.clone(),
            run: self.run.clone(),
            arguments: PhantomData,
        })))
    }

    fn formats_results(&self) -> bool {
        false
    }

    fn policy(&self) -> &ToolPolicy {
        self.policy
    }

    fn requires(&self) -> &[StateKey] {
        &self.injected.state
    }

    fn reads_context(&self) -> bool {
        self.injected.context
    }
}

/// Runs a synchronous body on the context's executor.
///
/// The body gets its own context, because it may outlive the caller's wait: a running body cannot be stopped, but one that has
/// not begun when the call is given up does not begin. A panic is resumed at the caller.
pub fn blocking<B>(cx: &ToolContext, body: B) -> BoxFuture<'_, ToolOutcome>
where
    B: FnOnce(&ToolContext) -> ToolOutcome + Send + 'static,
{
    // The message of a panic, not its payload: the slot may be dropped unread, and a payload's drop may panic.
    type Slot = Mutex<Option<Result<ToolOutcome, String>>>;
    let (own, span) = (cx.clone(), tracing::Span::current());
    Box::pin(async move {
        let slot: Arc<Slot> = Arc::default();
        let given_up = Arc::downgrade(&slot);
        let work = move || {
            let Some(slot) = given_up.upgrade() else { return };
            let end = span.in_scope(|| catch(|| body(&own)));
            // Nothing that can panic runs under this lock.
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        };
        cx.executor().run_blocking(Box::new(work)).await;
        let end = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match end {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => resume_unwind(Box::new(panic)),
            None => {
                tracing::error!(tool = cx.tool(), "the executor dropped a tool's body without running it");
                ToolOutcome::failed(
                    FailureCode::TOOL_ERROR,
                    "The tool was not run: the application is stopping.",
                )
            }
        }
    })
}

/// Asserts that a future can be sent to another thread, at the place where it is named.
pub fn sendable<'a, F: Future + Send + 'a>(future: F) -> F {
    future
}

/// The type of a `&T` parameter. `&ToolContext` is the context itself: its inherent functions take precedence over those of
/// [`InjectState`], which look up application state.
#[derive(Debug)]
pub struct Inject<T: ?Sized>(PhantomData<T>);

impl Inject<ToolContext> {
    pub fn key() -> Option<StateKey> {
        None
    }

    pub fn get(cx: &ToolContext) -> Result<&ToolContext, ToolOutcome> {
        Ok(cx)
    }
}

/// A type that can be application state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be state of an application",
    label = "`&T` is injected state: `T` must be `Send`, `Sync` and `'static`",
    note = "text and lists are arguments when they are spelled `&str` and `&[T]`"
)]
pub trait State: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: ?Sized + Send + Sync + 'static> State for T {}

/// Looks up state of type `T`. The bound is stated in one place, so that one mistake causes one message.
pub trait InjectState<T: ?Sized + 'static> {
    fn key() -> Option<StateKey>
    where
        T: State;
    fn get(cx: &ToolContext) -> Result<&T, ToolOutcome>;
}

impl<T: ?Sized + 'static> InjectState<T> for Inject<T> {
    fn key() -> Option<StateKey>
    where
        T: State,
    {
        Some(StateKey::of::<T>())
    }

    fn get(cx: &ToolContext) -> Result<&T, ToolOutcome> {
        // A registry has looked for it before the call; this is for tools that are called by hand.
        cx.get::<T>().ok_or_else(|| {
            tracing::error!(
                tool = cx.tool(),
                state = StateKey::of::<T>().name(),
                "the call was not run: no `.state(…)` or `.with_state(…)` gives the state that the tool takes"
            );
            ToolOutcome::failed(
                FailureCode::TOOL_ERROR,
                "The tool cannot run: the application did not set it up.",
            )
        })
    }
}

/// What a tool takes from its context.
#[derive(Clone, Debug)]
pub struct Injected {
    state: Arc<[StateKey]>,
    /// Whether it takes the context itself.
    context: bool,
}

/// Sums up the injected parameters. The one without a key is the context itself.
pub fn keys(injected: &[Option<StateKey>]) -> Injected {
    let mut keys: Vec<StateKey> = Vec::new();
    for key in injected.iter().copied().flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Injected { state: keys.into(), context: injected.contains(&None) }
}

/// A type that can be the default from a text literal.
#[diagnostic::on_unimplemented(
    message = "a default of type `{Self}` is not text",
    label = "write a value of the type, without quotes",
    note = "for example `default = 5`, or `default = Unit::Celsius` for an enum"
)]
pub trait FromText: Sized {
    fn from_text(text: &'static str) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: From<&'static str>> FromText for T {
    fn from_text(text: &'static str) -> Self {
        text.into()
    }
}

/// `default = "…"`
pub fn from_text<T: FromText>(text: &'static str) -> T {
    T::from_text(text)
}

/// A type with a default of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no default of its own",
    label = "write the value: `default = VALUE`",
    note = "or write `#[derive(Default)]` above `{Self}`, or take an `Option<{Self}>`"
)]
pub trait OwnDefault: Sized {
    fn own_default() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> OwnDefault for T {
    fn own_default() -> Self {
        T::default()
    }
}

/// `default`
pub fn default<T: OwnDefault>() -> T {
    T::own_default()
}

/// A type that can be skipped: a value that the model never sends needs a default.
#[diagnostic::on_unimplemented(
    message = "a skipped field of type `{Self}` needs a default",
    label = "write the value too: `skip, default = VALUE`",
    note = "or write `#[derive(Default)]` above `{Self}`"
)]
pub trait Skippable: Sized {
    fn when_skipped() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> Skippable for T {
    fn when_skipped() -> Self {
        T::default()
    }
}

/// `skip`
pub fn skipped<T: Skippable>() -> T {
    T::when_skipped()
}

/// A default whose JSON may be known through [`ToolArgs`]; schemars finds that of a `Serialize` type.
#[derive(Debug)]
pub struct DefaultValue<T>(pub T);

/// For every other type.
pub trait JsonUnknown {
    fn json(&self) -> Option<Value> {
        None
    }
}

impl<T> JsonUnknown for DefaultValue<T> {}

impl<T: ToolArgs> DefaultValue<T> {
    pub fn json(&self) -> Option<Value> {
        self.0.__json()
    }
}

/// Adds a default to the schema where schemars could not.
pub fn show_default(schema: &mut Schema, value: Option<Value>) {
    if let Some(value) = value
        && schema.get("default").is_none()
    {
        schema.insert("default".to_owned(), value);
    }
}

/// `#[arg(length(…))]`: writes the keywords for the type in the schema, or all of them if the schema has no type.
pub fn limit_length(schema: &mut Schema, min: Option<u64>, max: Option<u64>) {
    let is = |kind: &str| match schema.get("type") {
        None => true,
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(own)) => own.iter().any(|own| own == kind),
        Some(_) => false,
    };
    let kinds = [
        (is("string"), "minLength", "maxLength"),
        (is("array"), "minItems", "maxItems"),
        (is("object"), "minProperties", "maxProperties"),
    ];
    for (applies, at_least, at_most) in kinds {
        for (keyword, end) in [(at_least, min), (at_most, max)] {
            if let (true, Some(end)) = (applies, end) {
                schema.insert(keyword.to_owned(), end.into());
            }
        }
    }
}

/// `#[arg(with(read as Sent))]`: reads the sent value as any argument, then converts it to what the tool takes.
pub fn read_with<'de, D, S, T, E>(
    deserializer: D,
    read: impl FnOnce(S) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    S: serde::Deserialize<'de>,
    E: std::fmt::Display,
{
    read(S::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
