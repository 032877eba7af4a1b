//! Traits and functions by which generated code runs the checks of `#[arg(validate = …)]` and collects their findings.

#![cfg_attr(
    not(feature = "macros"),
    allow(dead_code, unreachable_pub, reason = "only generated code calls it")
)]
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "for generated code only; what is there is explained where it is not plain"
)]

use super::violations::Violations;
use super::{CHECKED, put_aside};
use crate::args::text::cut;
use serde::de::{Deserializer, Error, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;

/// Maximum length of the message of a validation function, in characters; longer messages are cut.
const MAX_PROBLEM: usize = 250;

/// A type with `#[arg(validate = …)]`. `read` parses a value without its own checks, and `check` runs these checks.
pub trait CheckedType<'de>: Sized {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
    fn check(&self, findings: &mut FindingList);
}

/// Reads a value and runs its checks. Findings are an error, unless `collect` gathers them.
pub fn checked<'de, T: CheckedType<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_newtype_struct(CHECKED, CheckedVisitor(PhantomData))
}

struct CheckedVisitor<T>(PhantomData<T>);

impl<'de, T: CheckedType<'de>> Visitor<'de> for CheckedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that passes its checks")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        read_and_check(deserializer, false)
    }

    /// Reads a value that serde has not buffered. Only `PlanDe` calls this method, and only within `collect`.
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        read_and_check(deserializer, true)
    }
}

/// Reads a value and runs its checks. `certain` means that serde has not buffered the value. The function is not inlined, because its code
/// is large and has two callers.
#[inline(never)]
fn read_and_check<'de, T: CheckedType<'de>, D: Deserializer<'de>>(
    deserializer: D,
    certain: bool,
) -> Result<T, D::Error> {
    let value = T::read(deserializer)?;
    let mut findings = FindingList::default();
    value.check(&mut findings);
    if findings.found.is_empty() {
        return Ok(value);
    }
    match put_aside(findings.found, certain) {
        Ok(()) => Ok(value),
        Err(found) => Err(refusal(&found)),
    }
}

/// Joins all findings to one error, because serde returns a single error.
#[cold]
fn refusal<E: Error>(found: &[CheckFinding]) -> E {
    let words: Vec<String> = found.iter().map(|found| found.in_words(0)).collect();
    E::custom(words.join("; "))
}

#[derive(Debug, Default)]
pub struct FindingList {
    found: Vec<CheckFinding>,
}

impl FindingList {
    /// Runs the check of a field. `steps` is the path from the value to the field.
    #[expect(clippy::needless_pass_by_value, reason = "generated code hands over a path")]
    pub fn field<V, M, F>(&mut self, steps: &[FindingStep], value: &V, check: F)
    where
        F: FieldCheck<V, M>,
        F::CheckReturn: CheckOutcome,
        V: CheckFor<F::CheckedPart> + ?Sized,
    {
        value.checked(&mut |part| {
            if let Err(violations) = check.check(part).verdict() {
                self.found.extend(violations.into_findings().map(|found| found.below(steps)));
            }
        });
    }

    #[expect(clippy::needless_pass_by_value, reason = "generated code hands over a path")]
    pub fn whole<V, M, F>(&mut self, value: &V, check: F)
    where
        F: WholeCheck<V, M>,
        F::CheckReturn: CheckOutcome,
    {
        if let Err(violations) = check.check_whole(value).verdict() {
            self.found.extend(violations.into_findings().map(|found| CheckFinding { whole: true, ..found }));
        }
    }
}

/// A segment of the path to a wrong value. The path starts at the value whose type has the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingStep {
    /// The name of a field in Rust, or the index of an item.
    Name(&'static str),
    /// The payload of an externally tagged enum, such as `3` in `{"Rows": 3}`.
    Payload,
    /// A name or an index that the check function reported.
    Made(Box<str>),
}

#[derive(Debug)]
pub(super) struct CheckFinding {
    pub(super) steps: Vec<FindingStep>,
    pub(super) problem: String,
    /// Whether the check received the whole value, not only one field.
    pub(super) whole: bool,
}

impl CheckFinding {
    pub(super) fn named(path: &str, problem: &str) -> CheckFinding {
        let steps =
            path.split('/').filter(|name| !name.is_empty()).map(|name| FindingStep::Made(name.into()));
        let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        let problem = if line.is_empty() { "refused".to_owned() } else { cut(&line, MAX_PROBLEM) };
        CheckFinding { steps: steps.collect(), problem, whole: false }
    }

    fn below(mut self, steps: &[FindingStep]) -> CheckFinding {
        self.steps.splice(..0, steps.iter().cloned());
        self
    }

    /// Returns the path to the wrong value, without its first `known` steps, followed by the message.
    pub(super) fn in_words(&self, known: usize) -> String {
        let names: Vec<&str> = self.steps.iter().skip(known).filter_map(FindingStep::name).collect();
        if names.is_empty() {
            self.problem.clone()
        } else {
            format!("`{}`: {}", names.join("/"), self.problem)
        }
    }
}

impl FindingStep {
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            FindingStep::Name(name) => Some(name),
            FindingStep::Made(name) => Some(name),
            FindingStep::Payload => None,
        }
    }
}

/// A function that can check a field of type `V`. The second impl only improves compiler errors: see [`NoFunction`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a check of a `{V}`",
    label = "write `fn(&{V}) -> Result<(), E>`",
    note = "a check takes a reference, and its error has a text (`Display`); for an `Option<T>` it may also take `&T`, for a `String` also `&str`"
)]
pub trait FieldCheck<V: ?Sized, M> {
    type CheckedPart: ?Sized;
    type CheckReturn;
    fn check(&self, value: &Self::CheckedPart) -> Self::CheckReturn;
}

impl<V: ?Sized, A: ?Sized, R, F: Fn(&A) -> R> FieldCheck<V, CheckSignature<A, R>> for F {
    type CheckedPart = A;
    type CheckReturn = R;
    fn check(&self, value: &A) -> R {
        self(value)
    }
}

impl<V: ?Sized, F: NoFunction> FieldCheck<V, ()> for F {
    type CheckedPart = V;
    type CheckReturn = Result<(), Violations>;
    fn check(&self, _: &V) -> Self::CheckReturn {
        Ok(())
    }
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a check of a `{V}`",
    label = "write `fn(&{V}) -> Result<(), E>`",
    note = "a check takes a reference, and its error has a text (`Display`), or is `agent::args::Violations` to name fields"
)]
pub trait WholeCheck<V, M> {
    type CheckReturn;
    fn check_whole(&self, value: &V) -> Self::CheckReturn;
}

impl<V, R, F: Fn(&V) -> R> WholeCheck<V, CheckSignature<V, R>> for F {
    type CheckReturn = R;
    fn check_whole(&self, value: &V) -> R {
        self(value)
    }
}

impl<V, F: NoFunction> WholeCheck<V, ()> for F {
    type CheckReturn = Result<(), Violations>;
    fn check_whole(&self, _: &V) -> Self::CheckReturn {
        Ok(())
    }
}

/// The type parameter `M` of [`FieldCheck`] and [`WholeCheck`] for functions `Fn(&A) -> R`. Without `M`, the two impls of each trait would
/// overlap.
#[derive(Debug)]
pub struct CheckSignature<A: ?Sized, R>(PhantomData<(R, A)>);

/// A trait that no type implements. [`FieldCheck`] and [`WholeCheck`] each have a second impl that requires this trait. Because of this
/// impl, the compiler prints the messages of the two traits.
pub trait NoFunction {}

/// A field to which a check of an `A` applies: an `A`, a `String` if `A` is `str`, or a `Vec<T>` if `A` is `[T]`. The field may also be an
/// `Option` of these types; a `None` is not checked.
#[diagnostic::on_unimplemented(
    message = "this check is for a `{A}`, but it stands at a `{Self}`",
    label = "takes a `&{A}`",
    note = "write `fn check(value: &{Self}) -> Result<(), impl Display>`; for an `Option<T>` also `&T`, for a `String` also `&str`"
)]
pub trait CheckFor<A: ?Sized> {
    fn checked(&self, check: &mut dyn FnMut(&A));
}

#[diagnostic::do_not_recommend]
impl<A> CheckFor<A> for A {
    fn checked(&self, check: &mut dyn FnMut(&A)) {
        check(self);
    }
}

#[diagnostic::do_not_recommend]
impl<A> CheckFor<A> for Option<A> {
    fn checked(&self, check: &mut dyn FnMut(&A)) {
        if let Some(value) = self {
            check(value);
        }
    }
}

#[diagnostic::do_not_recommend]
impl CheckFor<str> for String {
    fn checked(&self, check: &mut dyn FnMut(&str)) {
        check(self);
    }
}

#[diagnostic::do_not_recommend]
impl CheckFor<str> for Option<String> {
    fn checked(&self, check: &mut dyn FnMut(&str)) {
        if let Some(value) = self {
            check(value);
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T> CheckFor<[T]> for Vec<T> {
    fn checked(&self, check: &mut dyn FnMut(&[T])) {
        check(self);
    }
}

#[diagnostic::do_not_recommend]
impl<T> CheckFor<[T]> for Option<Vec<T>> {
    fn checked(&self, check: &mut dyn FnMut(&[T])) {
        if let Some(value) = self {
            check(value);
        }
    }
}

#[diagnostic::on_unimplemented(
    message = "a check returns a `Result<(), E>`, not a `{Self}`",
    label = "returns a `{Self}`",
    note = "`Ok(())` lets the value pass; the error says what is wrong with it"
)]
pub trait CheckOutcome {
    fn verdict(self) -> Result<(), Violations>;
}

impl<E: CheckError> CheckOutcome for Result<(), E> {
    fn verdict(self) -> Result<(), Violations> {
        self.map_err(CheckError::into_violations)
    }
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a check",
    label = "no text that a model could read",
    note = "return what has a text (`Display`), for example a `String`, or `agent::args::Violations` to name fields"
)]
pub trait CheckError {
    fn into_violations(self) -> Violations;
}

#[diagnostic::do_not_recommend]
impl<E: Display> CheckError for E {
    fn into_violations(self) -> Violations {
        Violations::new().at("", self)
    }
}

impl CheckError for Violations {
    fn into_violations(self) -> Violations {
        if self.is_empty() { self.at("", "refused") } else { self }
    }
}
