//! The functions that generated code calls. They make a typed tool from its attributes and the function that runs it.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "for generated code only; what is there is explained where it is not plain"
)]

use super::BoxFuture;
use super::arguments::{Argument, ToolArgs};
use super::body::{AcceptedArguments, ArgumentReader, ToolBody};
use super::context::ToolContext;
use super::definition::ToolDefinition;
use super::definition_error::DefinitionError;
use super::options::ToolOptions;
use super::outcome::{OutcomeCode, ToolOutcome};
use super::set::Entry;
use super::state::StateKey;
use super::value::Tool;
use crate::args::{InvalidArguments, Plan, schema_of};
use crate::panics::catch;
use schemars::Schema;
use serde_json::Value;
use std::any::Any;
use std::future::{Future, ready};
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The definition of a tool, or the tool's name and the reason why the definition is invalid.
pub type Compiled = Result<ToolDefinition, (String, DefinitionError)>;

impl ToolOptions {
    #[doc(hidden)]
    pub fn compile<A: Argument>(self) -> Compiled {
        self.compiled(false, schema_of::<A>)
    }

    /// Compiles the definition of a tool that is itself a struct or enum, with the type `A`.
    #[doc(hidden)]
    pub fn compile_type<A: Argument>(self) -> Compiled {
        self.compiled(true, schema_of::<A>)
    }

    fn compiled(mut self, is_type: bool, schema: fn() -> Value) -> Compiled {
        let name = self.name.to_string();
        self.is_in_code = true;
        let plan = Plan::for_tool(&name, &self.description, schema(), is_type, self.arguments);
        let plan = plan.and_then(|plan| plan.check_defaults().map(|()| plan));
        let definition =
            plan.map_err(DefinitionError::from).and_then(|plan| ToolDefinition::with_options(plan, self));
        definition.map_err(|error| (name, error))
    }
}

/// A closure that runs a tool's function. It returns `None` if the boxed arguments have another type than the function takes.
type RunBoxed = Box<
    dyn for<'a> Fn(Box<dyn Any + Send>, &'a ToolContext) -> Option<BoxFuture<'a, ToolOutcome>> + Send + Sync,
>;

/// The [`ToolBody`] of a function, method or struct with `#[tool]`. The type of its arguments is erased, so that this code is compiled
/// once instead of once for each tool.
struct TypedBody {
    own: &'static ToolDefinition,
    injected: InjectedState,
    reader: ArgumentReader,
    run: RunBoxed,
}

pub fn typed<A, F>(definition: &'static LazyLock<Compiled>, injected: InjectedState, run: F) -> Entry
where
    A: Argument,
    F: for<'a> Fn(A, &'a ToolContext) -> BoxFuture<'a, ToolOutcome> + Send + Sync + 'static,
{
    let run: RunBoxed = Box::new(move |arguments, cx| match arguments.downcast::<A>() {
        Ok(arguments) => Some(run(*arguments, cx)),
        Err(_) => None,
    });
    entry(definition, injected, ArgumentReader::of::<A>(), run)
}

fn entry(
    definition: &'static LazyLock<Compiled>,
    injected: InjectedState,
    reader: ArgumentReader,
    run: RunBoxed,
) -> Entry {
    match &**definition {
        Ok(own) => Ok(Tool::from_body(own.clone(), TypedBody { own, injected, reader, run })),
        Err(error) => Err(error.clone()),
    }
}

impl ToolBody for TypedBody {
    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        match arguments.take_by(self.reader) {
            Ok(value) => {
                (self.run)(value, cx).unwrap_or_else(|| Box::pin(ready(self.own.plan().refused().into())))
            }
            Err(refusal) => Box::pin(ready(refusal.into())),
        }
    }

    fn check(&self, definition: &ToolDefinition, text: &str) -> Result<AcceptedArguments, InvalidArguments> {
        if definition.plan().source().is_some() {
            return AcceptedArguments::parse_by(self.reader, definition, text);
        }
        // The application replaced the schema of the parameters, so the arguments must fit the new schema and the function.
        let accepted = AcceptedArguments::parse::<Value>(definition, text)?;
        let own = AcceptedArguments::parse_by(self.reader, self.own, &accepted.value().to_string())
            .map_err(|report| report.under(definition.plan()))?;
        let (value, coercions) = (accepted.value().clone(), accepted.coercions().to_vec());
        Ok(AcceptedArguments::new(definition, text, coercions).with_whole(value, own))
    }

    fn requires(&self) -> &[StateKey] {
        &self.injected.state
    }

    fn reads_context(&self) -> bool {
        self.injected.context
    }
}

/// Runs `body`, a synchronous function of a tool, on the context's executor.
///
/// A running function cannot be stopped and may outlive the call, so it gets a clone of the context. If the returned future is dropped
/// before the function begins, the function never begins. The future resumes a panic of the function.
pub fn blocking<B>(cx: &ToolContext, body: B) -> BoxFuture<'_, ToolOutcome>
where
    B: FnOnce(&ToolContext) -> ToolOutcome + Send + 'static,
{
    // The slot has the message of a panic instead of its payload, because the slot may be dropped unread, and dropping a payload may panic.
    type Slot = Mutex<Option<Result<ToolOutcome, String>>>;
    let (own, span) = (cx.clone(), tracing::Span::current());
    Box::pin(async move {
        let slot: Arc<Slot> = Arc::default();
        let given_up = Arc::downgrade(&slot);
        let work = move || {
            let Some(slot) = given_up.upgrade() else { return };
            let end = span.in_scope(|| catch(|| body(&own)));
            // No code that can panic runs while this lock is held, so the lock is never poisoned.
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
                    OutcomeCode::TOOL_ERROR,
                    "The tool was not run: the application is stopping.",
                )
            }
        }
    })
}

/// Asserts that a future is `Send`, so that the compiler reports an error at this call.
pub fn sendable<'a, F: Future + Send + 'a>(future: F) -> F {
    future
}

/// The type of a `&T` parameter. [`InjectState`] looks up application state. For `&ToolContext`, the inherent functions below take
/// precedence.
#[derive(Debug)]
pub struct Inject<T: ?Sized>(PhantomData<T>);

impl Inject<ToolContext> {
    pub fn key() -> Option<StateKey> {
        None
    }

    pub fn get(cx: &ToolContext) -> Result<&ToolContext, Box<ToolOutcome>> {
        Ok(cx)
    }
}

/// A type that can be application state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be state of an application",
    label = "`&T` is injected state: `T` must be `Send`, `Sync` and `'static`",
    note = "text and lists are arguments when they are spelled `&str` and `&[T]`"
)]
pub trait AppState: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: ?Sized + Send + Sync + 'static> AppState for T {}

/// Access to application state of type `T`. Only `key` requires [`AppState`], so a wrong `T` causes only one compiler error.
pub trait InjectState<T: ?Sized + 'static> {
    fn key() -> Option<StateKey>
    where
        T: AppState;
    fn get(cx: &ToolContext) -> Result<&T, Box<ToolOutcome>>;
}

impl<T: ?Sized + 'static> InjectState<T> for Inject<T> {
    fn key() -> Option<StateKey>
    where
        T: AppState,
    {
        Some(StateKey::of::<T>())
    }

    fn get(cx: &ToolContext) -> Result<&T, Box<ToolOutcome>> {
        // `invoke` checks the state before each call. This error is for a `ToolBody` that is called directly.
        cx.get::<T>().ok_or_else(|| {
            tracing::error!(
                tool = cx.tool(),
                state = StateKey::of::<T>().name(),
                "the call was not run: no `.state(…)` or `.with_state(…)` gives the state that the tool takes"
            );
            let text = "The tool cannot run: the application did not set it up.";
            Box::new(ToolOutcome::failed(OutcomeCode::TOOL_ERROR, text))
        })
    }
}

#[derive(Clone, Debug)]
pub struct InjectedState {
    state: Arc<[StateKey]>,
    context: bool,
}

/// Collects the state that the injected parameters take, without repetitions. `None` is a parameter that takes the context itself.
pub fn keys(injected: &[Option<StateKey>]) -> InjectedState {
    let mut keys: Vec<StateKey> = Vec::new();
    for key in injected.iter().copied().flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    InjectedState { state: keys.into(), context: injected.contains(&None) }
}

/// A type whose default can be written as a text literal.
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

/// Returns the value of `#[arg(default = "…")]`.
pub fn from_text<T: FromText>(text: &'static str) -> T {
    T::from_text(text)
}

/// A type that implements `Default`, for `#[arg(default)]` without a value.
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

/// Returns the value of a parameter with a bare `#[arg(default)]`: the `Default` of its type.
pub fn default<T: OwnDefault>() -> T {
    T::own_default()
}

/// A type that a skipped parameter can have. The model never sends such a parameter, so the type needs a default.
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

/// Returns the value of a parameter with `#[arg(skip)]`.
pub fn skipped<T: Skippable>() -> T {
    T::when_skipped()
}

/// A default value. `json` returns the JSON of a [`ToolArgs`] value. For other types, schemars writes the JSON.
#[derive(Debug)]
pub struct DefaultValue<T>(pub T);

/// A replacement for the `json` that only [`ToolArgs`] types have.
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

/// Adds `value` as the default of a schema that has no default.
pub fn show_default(schema: &mut Schema, value: Option<Value>) {
    if let Some(value) = value
        && schema.get("default").is_none()
    {
        schema.insert("default".to_owned(), value);
    }
}

/// Applies `#[arg(length(…))]`. The schema's `type` decides which keywords limit the length. A schema without a `type` gets the keywords
/// of strings, arrays and objects.
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

/// Reads an argument with `#[arg(with(read as Sent))]`: deserializes the sent value, and converts it with `read` to the type that the tool
/// takes.
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
