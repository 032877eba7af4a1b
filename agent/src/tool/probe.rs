//! Questions about types that generated code asks at compile time.
//!
//! An inherent associated constant wins over a trait's, but only where its bounds hold. So a constant of
//! [`Probe<T>`] is the answer for types that meet a bound, and the trait's is the answer for the others: through
//! aliases, and without a bound on `T` where it is asked.

#![expect(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "for generated code only; what is there is explained where it is not plain"
)]

use super::arguments::{Argument, RunTool, ToolArgs};
use super::context::ToolContext;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The type that a question is about.
#[derive(Debug)]
pub struct Probe<T: ?Sized>(PhantomData<T>);

/// Is it a whole argument object? `OBJECT`
pub trait ObjectUnknown {
    const OBJECT: bool = false;
}

impl<T: ?Sized> ObjectUnknown for Probe<T> {}

impl<T: ToolArgs> Probe<T> {
    pub const OBJECT: bool = T::OBJECT;
}

/// Can it be an argument? `ARGUMENT`
pub trait ArgumentUnknown {
    const ARGUMENT: bool = false;
}

impl<T: ?Sized> ArgumentUnknown for Probe<T> {}

impl<T: Argument> Probe<T> {
    pub const ARGUMENT: bool = true;
}

/// Does it say how to run? `RUNS`
pub trait RunUnknown {
    const RUNS: bool = false;
}

impl<T: ?Sized> RunUnknown for Probe<T> {}

impl<T: RunTool> Probe<T> {
    pub const RUNS: bool = true;
}

/// States that a struct says how to run.
pub const fn runs<T: RunTool>() {}

/// Is there something better to write? `BY_VALUE`, `BY_REFERENCE`
pub trait AdviceUnknown {
    const BY_VALUE: Option<&'static str> = None;
    const BY_REFERENCE: Option<&'static str> = None;
}

impl<T: ?Sized> AdviceUnknown for Probe<T> {}

impl<T: Advised + ?Sized> Probe<T> {
    pub const BY_VALUE: Option<&'static str> = T::BY_VALUE;
    pub const BY_REFERENCE: Option<&'static str> = T::BY_REFERENCE;
}

/// Types that a signature often names by mistake.
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
    str => "text is lent when it is spelled `&str`; behind an alias it counts as state: write `&str`";
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
        Some("a list is lent when it is spelled `&[T]`; behind an alias it counts as state: write `&[T]`");
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

impl Advised for ToolContext {
    const BY_VALUE: Option<&'static str> = Some("the context is lent to the tool: write `&ToolContext`");
    const BY_REFERENCE: Option<&'static str> = None;
}

/// Does not compile when there is an advice.
#[track_caller]
pub const fn advise(advice: Option<&'static str>) {
    if let Some(advice) = advice {
        panic!("{}", advice);
    }
}

/// What a constraint can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Sort {
    Number,
    Text,
    List,
    Other,
    /// Not known here: the schema will tell.
    Unknown,
}

/// What do constraints mean for it? `SORT`
pub trait SortUnknown {
    const SORT: Sort = Sort::Unknown;
}

impl<T: ?Sized> SortUnknown for Probe<T> {}

impl<T: Sorted> Probe<T> {
    pub const SORT: Sort = T::SORT;
}

/// Types whose schemas are known.
pub trait Sorted {
    const SORT: Sort;
}

macro_rules! sorted {
    ($($sort:ident: [$($generics:tt)*] $($ty:ty),*;)*) => {
        $(sorted!(@each $sort [$($generics)*] $($ty),*);)*
    };
    (@each $sort:ident $generics:tt $($ty:ty),*) => {
        $(sorted!(@one $sort $generics $ty);)*
    };
    (@one $sort:ident [$($generics:tt)*] $ty:ty) => {
        impl<$($generics)*> Sorted for $ty {
            const SORT: Sort = Sort::$sort;
        }
    };
}

sorted! {
    Number: [] i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64;
    Text: [] String, char, PathBuf, Box<str>, Cow<'static, str>;
    Other: [] bool;
    List: [T] Vec<T>, VecDeque<T>, BTreeSet<T>;
    List: [T, S] HashSet<T, S>;
    List: [K, V] BTreeMap<K, V>;
    List: [K, V, S] HashMap<K, V, S>;
}

impl<T: Sorted> Sorted for Option<T> {
    const SORT: Sort = T::SORT;
}

impl<T: Sorted> Sorted for Box<T> {
    const SORT: Sort = T::SORT;
}

impl Sort {
    #[track_caller]
    pub const fn range(self) {
        assert!(
            matches!(self, Self::Number | Self::Unknown),
            "`range` bounds a number; for text and lists write `length(…)`"
        );
    }

    #[track_caller]
    pub const fn length(self) {
        assert!(
            matches!(self, Self::Text | Self::List | Self::Unknown),
            "`length` bounds text, lists and maps; for a number write `range(…)`"
        );
    }

    #[track_caller]
    pub const fn pattern(self) {
        assert!(matches!(self, Self::Text | Self::Unknown), "`pattern` is for text");
    }
}

/// Does not compile when the parameter is the whole argument object.
#[track_caller]
pub const fn own_argument(whole: bool) {
    assert!(
        !whole,
        "this parameter is the whole argument object: write the option on a field of its type, or add \
         `#[arg(nested)]` to keep it under its own name"
    );
}

/// Does not compile when the struct is no argument object.
#[track_caller]
pub const fn whole_object(object: bool) {
    assert!(
        object,
        "the fields of a struct tool are its arguments: `transparent`, `from` and the like hide them"
    );
}

/// A numeric end of a range.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be an end of a `range`", label = "not a number")]
pub trait Bound: serde::Serialize {}

macro_rules! bounds {
    ($($ty:ty),*) => { $(impl Bound for $ty {})* };
}

bounds!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);

/// A number, unchanged.
pub const fn bound<T: Bound + Copy>(end: T) -> T {
    end
}

/// States that a type is an argument.
pub const fn argument<T: Argument>() {}

/// States that a value can be shared between calls.
#[diagnostic::on_unimplemented(
    message = "the tools of `{Self}` are called from several threads",
    label = "must be `Send`, `Sync` and `'static`"
)]
pub trait Shared: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Send + Sync + 'static> Shared for T {}

/// States that a value can be shared between calls.
pub const fn shared<T: Shared>() {}

/// The answer to [`ArgumentUnknown::ARGUMENT`], as a type.
#[derive(Debug)]
pub struct Pick<const IS: bool>;

/// The opposite answer to "is there an advice": a type that has one is replaced.
#[derive(Debug)]
pub struct Known<const IS: bool>;

/// What stands in the place of a parameter that is no argument, so that one mistake is one message: derives and
/// assertions are content with it.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct StandIn {}

/// The field for a parameter of type `T`.
pub trait OrStandIn<T> {
    type Field;
    fn give(field: Self::Field) -> T;
}

impl<T> OrStandIn<T> for Pick<true> {
    type Field = T;
    fn give(field: T) -> T {
        field
    }
}

impl<T> OrStandIn<T> for Pick<false> {
    type Field = StandIn;
    fn give(_: StandIn) -> T {
        unreachable!("a tool with a stand-in does not compile")
    }
}

impl<T> OrStandIn<T> for Known<false> {
    type Field = T;
    fn give(field: T) -> T {
        field
    }
}

impl<T> OrStandIn<T> for Known<true> {
    type Field = StandIn;
    fn give(_: StandIn) -> T {
        unreachable!("a tool with a stand-in does not compile")
    }
}

/// The body of a struct that is a tool.
pub trait OrIdle<T> {
    type Output: Send;
    fn run(value: T, cx: &ToolContext) -> impl Future<Output = Self::Output> + Send;
}

impl<T: RunTool> OrIdle<T> for Pick<true> {
    type Output = T::Output;
    fn run(value: T, cx: &ToolContext) -> impl Future<Output = T::Output> + Send {
        value.run(cx)
    }
}

impl<T> OrIdle<T> for Pick<false> {
    type Output = ();
    fn run(_: T, _: &ToolContext) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}
