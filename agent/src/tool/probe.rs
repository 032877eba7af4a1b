//! Questions about types, which generated code asks at compile time.
//!
//! The answer is a constant of [`Probe<T>`]. If `T` meets the bounds of an inherent `impl` block, the constant of that block is the
//! answer. For any other `T`, the constant of a trait is the answer. This works through aliases, and the code that asks needs no bound on
//! `T`.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "for generated code only; what is there is explained where it is not plain"
)]

use super::arguments::{Argument, ToolArgs};
use super::body::RunTool;
use super::context::ToolContext;
use super::debug_secrets::{AskDebug, shows_secrets};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};
use std::time::SystemTime;

/// A marker for the type `T`. Generated code reads a constant, such as `Probe::<T>::ARGUMENT`, to find out at compile time whether `T` has
/// a trait.
#[derive(Debug)]
pub struct Probe<T: ?Sized>(PhantomData<T>);

/// Provides `OBJECT` for types that are not [`ToolArgs`]. `OBJECT` tells whether the fields of a type can be the arguments of a tool.
pub trait ObjectUnknown {
    const OBJECT: bool = false;
}

impl<T: ?Sized> ObjectUnknown for Probe<T> {}

impl<T: ToolArgs> Probe<T> {
    pub const OBJECT: bool = T::OBJECT;
}

pub trait ArgumentUnknown {
    const ARGUMENT: bool = false;
}

impl<T: ?Sized> ArgumentUnknown for Probe<T> {}

impl<T: Argument> Probe<T> {
    pub const ARGUMENT: bool = true;
}

pub trait RunUnknown {
    const RUNS: bool = false;
}

impl<T: ?Sized> RunUnknown for Probe<T> {}

impl<T: RunTool> Probe<T> {
    pub const RUNS: bool = true;
}

/// Provides `DEBUG` for types that lack one of the traits below.
pub trait DebugUnknown {
    const DEBUG: Option<AskDebug> = None;
}

impl<T: ?Sized> DebugUnknown for Probe<T> {}

impl<T: std::fmt::Debug + DeserializeOwned + JsonSchema> Probe<T> {
    pub const DEBUG: Option<AskDebug> = Some((std::any::type_name::<T>, shows_secrets::<T>));
}

pub const fn runs<T: RunTool>() {}

pub trait AdviceUnknown {
    const BY_VALUE: Option<&'static str> = None;
    const BY_REFERENCE: Option<&'static str> = None;
}

impl<T: ?Sized> AdviceUnknown for Probe<T> {}

impl<T: Advised + ?Sized> Probe<T> {
    pub const BY_VALUE: Option<&'static str> = T::BY_VALUE;
    pub const BY_REFERENCE: Option<&'static str> = T::BY_REFERENCE;
}

/// A type that is often used in a signature by mistake, with advice for a parameter of this type and for a reference to it.
pub trait Advised {
    const BY_VALUE: Option<&'static str> = None;
    const BY_REFERENCE: Option<&'static str>;
}

macro_rules! advise_by_reference {
    ($($ty:ty => $advice:literal;)*) => {
        $(impl Advised for $ty { const BY_REFERENCE: Option<&'static str> = Some($advice); })*
    };
}

advise_by_reference! {
    String => "`&T` is state from the context, and this would be a `String` of the application: for an argument write `&str` or `String`";
    str => "behind an alias, text counts as state: for an argument write `&str`";
    char => "`&T` is state from the context: for an argument write `char`";
    bool => "`&T` is state from the context: for an argument write `bool`";
    f32 => "`&T` is state from the context: for an argument write `f32`";
    f64 => "`&T` is state from the context: for an argument write `f64`";
    i8 => "`&T` is state from the context: for an argument write `i8`";
    i16 => "`&T` is state from the context: for an argument write `i16`";
    i32 => "`&T` is state from the context: for an argument write `i32`";
    i64 => "`&T` is state from the context: for an argument write `i64`";
    i128 => "`&T` is state from the context: for an argument write `i128`";
    isize => "`&T` is state from the context: for an argument write `isize`";
    u8 => "`&T` is state from the context: for an argument write `u8`";
    u16 => "`&T` is state from the context: for an argument write `u16`";
    u32 => "`&T` is state from the context: for an argument write `u32`";
    u64 => "`&T` is state from the context: for an argument write `u64`";
    u128 => "`&T` is state from the context: for an argument write `u128`";
    usize => "`&T` is state from the context: for an argument write `usize`";
    Path => "`&T` is state from the context: for an argument write `PathBuf`, or `&str`";
    PathBuf => "`&T` is state from the context: for an argument write `PathBuf`, or `&str`";
    OsStr => "`&T` is state from the context: for an argument write `&str`";
    OsString => "`&T` is state from the context: for an argument write `&str`";
}

impl<T> Advised for [T] {
    const BY_REFERENCE: Option<&'static str> =
        Some("behind an alias, a list counts as state: for an argument write `&[T]`");
}

impl<T> Advised for Vec<T> {
    const BY_REFERENCE: Option<&'static str> =
        Some("`&T` is state from the context: for an argument write `&[T]` or `Vec<T>`");
}

impl<T> Advised for Option<T> {
    const BY_REFERENCE: Option<&'static str> =
        Some("`&T` is state from the context: for an argument write `Option<T>`");
}

impl<T: ?Sized> Advised for Arc<T> {
    const BY_VALUE: Option<&'static str> =
        Some("state is injected by reference: write `&T` and give `.shared_state(arc)`");
    const BY_REFERENCE: Option<&'static str> =
        Some("state is found by the type inside of the `Arc`: write `&T` and give `.shared_state(arc)`");
}

impl<T: ?Sized> Advised for Rc<T> {
    const BY_VALUE: Option<&'static str> = Some(
        "state is injected by reference and shared between threads: write `&T` and give `.state(value)`",
    );
    const BY_REFERENCE: Option<&'static str> =
        Some("state is shared between threads: write `&T` and give `.state(value)`");
}

impl<T: ?Sized> Advised for &T {
    const BY_VALUE: Option<&'static str> = Some(
        "this is an alias of a reference: write `&str` or `&[T]` where it stands, `&T` for state, or a type that owns its data",
    );
    const BY_REFERENCE: Option<&'static str> =
        Some("this is an alias of a reference: write one reference, spelled as `&str`, `&[T]` or `&T`");
}

impl<T, E> Advised for Result<T, E> {
    const BY_VALUE: Option<&'static str> =
        Some("a model sends values, not errors: write the type of the value, or an enum of your own");
    const BY_REFERENCE: Option<&'static str> =
        Some("`&T` is state from the context: for an argument write the type of the value");
}

impl Advised for SystemTime {
    const BY_VALUE: Option<&'static str> = Some(
        "a model does not send a `SystemTime`, which is read as two numbers: take text, or a type of `chrono` or `jiff` with the \
         feature of that name",
    );
    const BY_REFERENCE: Option<&'static str> =
        Some("`&T` is state from the context: for an argument write text");
}

macro_rules! advise_by_value {
    ($($ty:ident),*) => {
        $(impl<T: ?Sized> Advised for $ty<T> {
            const BY_VALUE: Option<&'static str> =
                Some("a lock is state, which is injected by reference: write `&T`, and for an argument the type inside of it");
            const BY_REFERENCE: Option<&'static str> = None;
        })*
    };
}

advise_by_value!(Mutex, RwLock);

impl Advised for ToolContext {
    const BY_VALUE: Option<&'static str> = Some("the context is passed by reference: write `&ToolContext`");
    const BY_REFERENCE: Option<&'static str> = None;
}

/// Panics with the advice, if there is one. Generated code calls this at compile time, so the panic is a compile error.
#[track_caller]
pub const fn advise(advice: Option<&'static str>) {
    if let Some(advice) = advice {
        panic!("{}", advice);
    }
}

#[track_caller]
pub const fn own_argument(whole: bool) {
    assert!(
        !whole,
        "this parameter is the whole argument object: write the option on a field of its type, or add \
         `#[arg(nested)]` to keep it under its own name"
    );
}

/// Panics at compile time with `advice` if a parameter without a name is not the whole argument object.
#[track_caller]
pub const fn needs_name(whole: bool, advice: &'static str) {
    assert!(whole, "{}", advice);
}

#[track_caller]
pub const fn whole_object(object: bool) {
    assert!(
        object,
        "the fields of a struct tool are its arguments: `transparent`, `from` and the like hide them"
    );
}

/// Asserts that a type is an [`Argument`]. The compiler's advice names the type `L`, which is the innermost type of a list, a map or an
/// `Option`. `Send` is a separate bound, so that the compiler names the part of the type that is not `Send`.
pub const fn argument<T: ParameterOf<L> + Send + 'static, L: ?Sized>() {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not a type that a model can send",
    note = "a type of your own: write `#[derive(ToolArgs)]` above `{L}` (or serde's `Deserialize` and schemars' `JsonSchema`)",
    note = "a type of another crate: those of `chrono`, `jiff`, `rust_decimal`, `url` and `uuid` need the feature of that name; for others take what a model can send, for example text, and convert it in the body",
    note = "state of the application is taken by reference: write `&{L}`"
)]
pub trait ParameterOf<L: ?Sized> {}

#[diagnostic::do_not_recommend]
impl<T: FieldType, L: ?Sized> ParameterOf<L> for T {}

pub const fn field<T: FieldOf<L>, L: ?Sized>() {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of arguments",
    label = "not a type that a model can send",
    note = "a type of your own: write `#[derive(ToolArgs)]` above `{L}` (or serde's `Deserialize` and schemars' `JsonSchema`)",
    note = "a type of another crate: those of `chrono`, `jiff`, `rust_decimal`, `url` and `uuid` need the feature of that name; for others take what a model can send, for example text, and convert it"
)]
pub trait FieldOf<L: ?Sized> {}

#[diagnostic::do_not_recommend]
impl<T: FieldType, L: ?Sized> FieldOf<L> for T {}

/// The bounds of `FieldOf`. Derived impls require `FieldType`, so that only `FieldOf` reports an unsuitable type.
pub trait FieldType: DeserializeOwned + JsonSchema {}

impl<T: DeserializeOwned + JsonSchema> FieldType for T {}

pub const fn output<T: OutputOf<L>, L: ?Sized>() {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of what a tool returns",
    label = "cannot be written as JSON",
    note = "a type of your own: write `#[derive(ToolOutput)]` (or serde's `Serialize`) above `{L}`",
    note = "a type of another crate: return what can be written as JSON, for example text"
)]
pub trait OutputOf<L: ?Sized> {}

#[diagnostic::do_not_recommend]
impl<T: OutputType, L: ?Sized> OutputOf<L> for T {}

/// The requirements of `OutputOf`. Derived `Serialize` impls have this bound, so that only `OutputOf` reports an unsuitable type.
pub trait OutputType: Serialize {}

impl<T: Serialize> OutputType for T {}

pub trait SchemaUnknown {
    const DESCRIBED: bool = false;
}

impl<T: ?Sized> SchemaUnknown for Probe<T> {}

impl<T: JsonSchema> Probe<T> {
    pub const DESCRIBED: bool = true;
}

/// Replaces a failed `Deserialize` derive on the hidden copy of a user's type, so that the compiler reports only the error of [`field`].
pub trait NotRead<U> {
    fn deserialize<'de, D: Deserializer<'de>>(_: D) -> Result<U, D::Error> {
        unreachable!("arguments with such a field do not compile")
    }
}

impl<M, U> NotRead<U> for M {}

/// Replaces a failed `Serialize` derive on the hidden copy of a user's type, so that the compiler reports only the error of [`output`].
pub trait NotWritten<U> {
    fn serialize<S: Serializer>(_: &U, _: S) -> Result<S::Ok, S::Error> {
        unreachable!("a result with such a field does not compile")
    }
}

impl<M, U> NotWritten<U> for M {}

#[diagnostic::on_unimplemented(
    message = "the tools of `{Self}` are called from several threads",
    label = "must be `Send`, `Sync` and `'static`"
)]
pub trait SharedReceiver: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Send + Sync + 'static> SharedReceiver for T {}

pub const fn shared<T: SharedReceiver>() {}

/// A boolean as a type: `true` selects the user's type, and `false` selects a replacement, such as `StandIn`.
#[derive(Debug)]
pub struct OwnType<const IS: bool>;

/// A boolean as a type: `true` selects `StandIn` in place of a type that is a mistake; see `Advised`.
#[derive(Debug)]
pub struct ReplacedType<const IS: bool>;

/// Replaces a type that cannot be an argument. Derives and assertions accept it, so that one mistake causes one message.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct StandIn {}

/// Selects a field's type: `T` if it can be an argument, or else `StandIn`.
pub trait OrStandIn<T> {
    type Field;
    fn take(value: T) -> Self::Field;
    fn give(field: Self::Field) -> T;
    fn lend(field: &Self::Field) -> &T;
}

impl<T> OrStandIn<T> for OwnType<true> {
    type Field = T;
    fn take(value: T) -> T {
        value
    }
    fn give(field: T) -> T {
        field
    }
    fn lend(field: &T) -> &T {
        field
    }
}

impl<T> OrStandIn<T> for OwnType<false> {
    type Field = StandIn;
    fn take(_: T) -> StandIn {
        StandIn {}
    }
    fn give(_: StandIn) -> T {
        unreachable!("a tool with a stand-in does not compile")
    }
    fn lend(_: &StandIn) -> &T {
        unreachable!("a tool with a stand-in does not compile")
    }
}

impl<T> OrStandIn<T> for ReplacedType<false> {
    type Field = T;
    fn take(value: T) -> T {
        value
    }
    fn give(field: T) -> T {
        field
    }
    fn lend(field: &T) -> &T {
        field
    }
}

impl<T> OrStandIn<T> for ReplacedType<true> {
    type Field = StandIn;
    fn take(_: T) -> StandIn {
        StandIn {}
    }
    fn give(_: StandIn) -> T {
        unreachable!("a tool with a stand-in does not compile")
    }
    fn lend(_: &StandIn) -> &T {
        unreachable!("a tool with a stand-in does not compile")
    }
}

/// Selects the code of a struct with `#[tool]`: its [`RunTool`], or a function that does nothing if the struct does not implement
/// `RunTool`.
pub trait OrIdle<T> {
    type Output: Send;
    fn run(value: T, cx: &ToolContext) -> impl Future<Output = Self::Output> + Send;
}

impl<T: RunTool> OrIdle<T> for OwnType<true> {
    type Output = T::Output;
    fn run(value: T, cx: &ToolContext) -> impl Future<Output = T::Output> + Send {
        value.run(cx)
    }
}

impl<T> OrIdle<T> for OwnType<false> {
    type Output = ();
    fn run(_: T, _: &ToolContext) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}
