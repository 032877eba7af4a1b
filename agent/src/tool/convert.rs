//! Converts the return value of a `#[tool]` function to an outcome.
//!
//! One generic conversion is not possible, because `Result` implements `Serialize`, too. Generated code calls `Returned::peel`, `kind` and
//! `outcome` instead. The compiler selects an inherent method if the type meets its bounds, or else the trait method of the same name.
//! `peel` and `kind` compile for every type. Only `outcome` does not compile for a wrong type, and this compiler error names the type.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::unused_self,
    clippy::needless_pass_by_value,
    reason = "for generated code only; what is there is explained where it is not plain"
)]

use super::error::ToolError;
use super::outcome::{IntoOutcome, ToolOutcome};
use super::output::ToolOutput;
use serde::Serialize;
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;

/// A type that a `#[tool]` function may return, alone or as the value of a `Result`.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "return `()`, text, a number, `ToolOutput`, anything `Serialize`, or a `Result` of one of these",
    note = "for a type of your own write `#[derive(ToolOutput)]` (or serde's `Serialize`) above it"
)]
pub trait ReturnValue {
    fn outcome(&self) -> ToolOutcome;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ReturnValue for T {
    fn outcome(&self) -> ToolOutcome {
        ToolOutput::json(self).into_outcome()
    }
}

/// A type that may be in the `Err` of a tool's `Result`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool",
    label = "the model reads the error's text: implement `std::fmt::Display`"
)]
pub trait ReturnError {
    fn text(&self) -> String;
}

#[diagnostic::do_not_recommend]
impl<E: Display> ReturnError for E {
    fn text(&self) -> String {
        self.to_string()
    }
}

/// A value that a tool returned. The method `peel` converts the value to a `Result`.
#[derive(Debug)]
pub struct Returned<T>(pub T);

impl<T, E> Returned<Result<T, E>> {
    pub fn peel(self) -> Result<T, E> {
        self.0
    }
}

/// Provides `peel` for a returned value that is not a `Result`: the value becomes `Ok`.
pub trait PlainValue {
    type Value;
    fn peel(self) -> Result<Self::Value, Infallible>;
}

impl<T> PlainValue for Returned<T> {
    type Value = T;
    fn peel(self) -> Result<T, Infallible> {
        Ok(self.0)
    }
}

/// The value of an `Ok`. `kind` selects how the value becomes an outcome.
#[derive(Debug)]
pub struct OfValue<'a, T>(pub &'a T);

/// The kind of a value that implements [`IntoOutcome`], and of an error of the type `ToolError` or `ToolOutcome`.
#[derive(Debug)]
pub struct OwnOutcome;

/// The kind of any other value, which becomes JSON.
#[derive(Debug)]
pub struct AsJson;

impl OfValue<'_, Vec<u8>> {
    #[deprecated(
        note = "a model reads `Vec<u8>` as a list of numbers: return `Base64` for bytes, `ToolOutput::image` and the like for \
                files, or `Json(list)` if numbers are meant"
    )]
    pub fn kind(&self) -> AsJson {
        AsJson
    }
}

impl<T: IntoOutcome> OfValue<'_, T> {
    pub fn kind(&self) -> OwnOutcome {
        OwnOutcome
    }
}

/// Provides `kind` for a value whose type does not implement [`IntoOutcome`].
pub trait ValueUnknown {
    fn kind(&self) -> AsJson {
        AsJson
    }
}

impl<T> ValueUnknown for OfValue<'_, T> {}

impl OwnOutcome {
    pub fn outcome<T: IntoOutcome>(self, value: T) -> ToolOutcome {
        value.into_outcome()
    }

    pub fn outcome_or<T: IntoOutcome + PerhapsNone>(self, value: T, none: &'static str) -> ToolOutcome {
        if value.is_absent() { ToolOutput::text(none).into() } else { value.into_outcome() }
    }
}

impl AsJson {
    pub fn outcome<T: ReturnValue>(self, value: T) -> ToolOutcome {
        value.outcome()
    }

    pub fn outcome_or<T: ReturnValue + PerhapsNone>(self, value: T, none: &'static str) -> ToolOutcome {
        if value.is_absent() { ToolOutput::text(none).into() } else { value.outcome() }
    }
}

/// A type of values that may be absent. `#[tool(none = "…")]` sets the text for an absent value.
#[diagnostic::on_unimplemented(
    message = "the option `none` is for a result that may be `None`, and `{Self}` always has a value",
    label = "return an `Option`, or remove the option `none`"
)]
pub trait PerhapsNone {
    fn is_absent(&self) -> bool;
}

#[diagnostic::do_not_recommend]
impl<T> PerhapsNone for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// The error that a tool returned. `kind` selects how it becomes an outcome.
#[derive(Debug)]
pub struct OfError<'a, E>(pub &'a E);

/// The kind of an error whose type implements `Error`. The error is logged as the source, for the operator.
#[derive(Debug)]
pub struct WithSource;

/// The kind of all other errors. Only the text of the error is kept.
#[derive(Debug)]
pub struct TextOnly;

impl OfError<'_, ToolError> {
    pub fn kind(&self) -> OwnOutcome {
        OwnOutcome
    }
}

impl OfError<'_, ToolOutcome> {
    pub fn kind(&self) -> OwnOutcome {
        OwnOutcome
    }
}

/// Provides `kind` for an error whose type implements `Error`.
pub trait ErrorWithSource {
    fn kind(&self) -> WithSource {
        WithSource
    }
}

impl<E: Error + Send + Sync + 'static> ErrorWithSource for OfError<'_, E> {}

/// Provides `kind` for an error whose type does not implement `Error`. The impl is for a reference, so the compiler tries this `kind`
/// last.
pub trait ErrorUnknown {
    fn kind(&self) -> TextOnly {
        TextOnly
    }
}

impl<E> ErrorUnknown for &OfError<'_, E> {}

impl WithSource {
    pub fn outcome<E: Error + Send + Sync + 'static>(self, error: E) -> ToolOutcome {
        ToolError::new(error.to_string()).with_source(error).into()
    }
}

impl TextOnly {
    pub fn outcome<E: ReturnError>(self, error: E) -> ToolOutcome {
        ToolError::new(error.text()).into()
    }
}
