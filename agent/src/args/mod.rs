//! The argument engine: converts the argument text that a model sends to the type that a tool takes.
//!
//! A [`Plan`] is compiled once from a type or a JSON Schema. [`Plan::parse`] reads argument text directly into the type, coerces
//! what the [`CoercionPolicy`] allows, and records every [`Coercion`]. If the arguments do not fit, [`InvalidArguments`] lists
//! *every* mistake, so that the model can fix all of them at once. [`ArgumentStream`] reports values and mistakes while the text
//! is still being received.
//! ```
//! use agent::{ToolArgs, args::{Plan, PlanOptions}};
//!
//! #[derive(ToolArgs)]
//! struct Booking { hotel: String, #[arg(range(1..=30))] nights: u32 }
//!
//! let plan = Plan::for_type::<Booking>("book_room", PlanOptions::default())?;
//! let parsed = plan.parse::<Booking>(r#"{"hotel": "Astoria", "nights": "2"}"#)?;
//! assert_eq!((parsed.value.hotel.as_str(), parsed.value.nights), ("Astoria", 2));
//! assert_eq!(parsed.coercions()[0].path, "/nights");
//!
//! let refused = plan.parse::<Booking>(r#"{"hotl": "Astoria", "nights": 99}"#).err().unwrap();
//! assert_eq!(refused.count(), 3);                     // `hotel` is missing, `hotl` is not a parameter, 99 is too many
//! println!("{refused}");                               // the report, as the model reads it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod argument;
mod coercion;
#[cfg(feature = "macros")]
mod defaults;
mod document;
mod exact;
mod formats;
pub(crate) mod hooks;
mod issue;
mod judge;
mod object_keys;
mod plan;
mod policy;
#[cfg(feature = "testing")]
pub(crate) mod proof;
mod read;
mod refused;
mod report;
mod rounding;
mod scalar;
mod signature;
mod stream;
mod suggest;
mod text;
mod types;
mod unique;
mod wrapped;

pub use crate::parse_error::ParseError;
pub use argument::ArgumentError;
pub(crate) use argument::argument_without_plan;
pub use coercion::{Coercion, CoercionRule};
pub use hooks::Violations;
pub use issue::{Issue, IssueCode};
pub use plan::{Plan, SchemaError};
pub(crate) use plan::{all_texts, hidden, secret_names, secret_texts, withheld};
pub use policy::{CoercionPolicy, PlanOptions, UnknownKeys};
pub use report::InvalidArguments;
pub(crate) use stream::read_literally;
pub use stream::{ArgumentEvent, ArgumentKind, ArgumentPath, ArgumentStream};
pub use suggest::did_you_mean;
pub use types::{Base64, HumanDuration};

pub(crate) use document::{Doc, Document, Shape};
pub(crate) use judge::fits;
#[cfg(feature = "macros")]
pub(crate) use plan::schema_of;
pub(crate) use plan::{
    AdditionalProperties, ArraySpec, ExternalSpec, Graph, IntSpec, NodeCheck, NodeId, NodeKind, NotTakenOut,
    NumSpec, NumberBound, ObjectSpec, Prop, StrSpec,
};
#[cfg(feature = "macros")]
pub(crate) use refused::secret_samples;
#[cfg(any(feature = "runtime", feature = "testing"))]
pub(crate) use report::REFUSAL;
#[cfg(feature = "runtime")]
pub(crate) use report::Subject;
pub(crate) use signature::signature;
pub(crate) use text::{cut, push_index, push_segment};

use exact::Fit;
use judge::{RefusedArguments, TextJudge, diagnose};
use plan::IssueLimit;
pub(crate) use read::PlanDe;
use read::{Context, ValuePosition};
use refused::Reread;
use report::Offer;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::cell::Cell;
use wrapped::WrappedValues;

/// Parsed arguments, with the coercions that made them fit.
///
/// ```
/// # #[derive(agent::ToolArgs)] struct Move { steps: i32 }
/// use agent::args::{Parsed, Plan, PlanOptions};
///
/// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
/// let parsed: Parsed<Move> = plan.parse(r#"{"steps": "3"}"#)?;
/// assert_eq!((parsed.value.steps, parsed.coercions().len()), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parsed<T> {
    /// The arguments.
    pub value: T,
    pub(crate) coercions: Vec<Coercion>,
    /// Whether the sent text needs no change: each key is the name of its parameter, and nothing was coerced. `false` if this is not
    /// known.
    pub(crate) is_exact: bool,
}

impl<T> Parsed<T> {
    /// Returns the coercions that made the arguments fit, in the order in which they were made. Usually there are none.
    pub fn coercions(&self) -> &[Coercion] {
        &self.coercions
    }
}

impl Plan {
    /// Parses JSON text into typed arguments. Blank text means no arguments.
    ///
    /// `T` is the type of the plan, or [`Value`](serde_json::Value) if the plan was compiled from a schema.
    ///
    /// ```
    /// use agent::args::{CoercionRule, Plan, PlanOptions};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Move { steps: i32, tags: Vec<String> }
    ///
    /// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
    /// let parsed = plan.parse::<Move>(r#"{"steps": " 3 ", "tags": ["a", 7]}"#)?;
    /// assert_eq!(parsed.value.steps, 3);
    /// assert_eq!(parsed.coercions()[0].rule, CoercionRule::TextToInteger);
    /// assert_eq!(parsed.coercions()[1].path, "/tags/1");
    ///
    /// let error = plan.parse::<Move>(r#"{"step": 1.5}"#).err().unwrap();
    /// assert_eq!(error.issues().len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArguments`] with every mistake if the text is not a JSON object and cannot be coerced to one, if it does not fit
    /// the plan, or if the type refuses it.
    pub fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<Parsed<T>, InvalidArguments> {
        self.parse_by(text, read::<T>)
    }

    /// Parses arguments into a box. The code around `read` is compiled once, rather than for each type.
    pub(crate) fn parse_boxed(
        &self,
        text: &str,
        read: BoxReader,
    ) -> Result<BoxedArguments, InvalidArguments> {
        self.parse_by(text, |cx, text| read_by(cx, text, read))
    }

    #[inline]
    fn parse_by<T>(
        &self,
        text: &str,
        read: impl Fn(&Context<'_>, &str) -> Result<T, serde_json::Error>,
    ) -> Result<Parsed<T>, InvalidArguments> {
        let is_blank = !text.starts_with('{') && text.trim_start().is_empty();
        let text = if is_blank { "{}" } else { text };
        let fit = exact::fit(self.graph(), text);
        if fit == Fit::Exact {
            // The match returns the value directly, so that a large value is moved only once.
            match read(&Context::exact(self.graph(), text), text) {
                Ok(value) if self.pass_as_a_whole(text).is_ok() => {
                    return Ok(Parsed { value, coercions: Vec::new(), is_exact: !is_blank });
                }
                // The type or the JSON Schema validator refuses the value. The second reading finds the reasons.
                _ => {}
            }
        }
        self.parse_otherwise(text, fit, read)
    }

    fn parse_otherwise<T>(
        &self,
        text: &str,
        fit: Fit,
        read: impl Fn(&Context<'_>, &str) -> Result<T, serde_json::Error>,
    ) -> Result<Parsed<T>, InvalidArguments> {
        let kept = Cell::new(None);
        let coercions = self.parse_along(text, fit, &|cx, text, is_kept| {
            let value = read(cx, text)?;
            if is_kept {
                kept.set(Some(value));
            }
            Ok(())
        })?;
        match kept.into_inner() {
            Some(value) => Ok(Parsed { value, coercions, is_exact: false }),
            None => Err(self.refused()),
        }
    }

    #[cold]
    pub(crate) fn refused(&self) -> InvalidArguments {
        InvalidArguments::new(self, Vec::new(), 0, None)
    }

    /// Parses and coerces arguments. Returns the coercions. If `reader` is called again, the last value counts.
    #[inline(never)]
    fn parse_along(
        &self,
        text: &str,
        fit: Fit,
        reader: TypeReader<'_>,
    ) -> Result<Vec<Coercion>, InvalidArguments> {
        if fit == Fit::Refused {
            return self.parse_again(text, reader);
        }
        let judge = TextJudge::new(self.graph(), text);
        let cx = Context::new(self.graph(), text, &judge);
        match reader(&cx, text, true) {
            Ok(()) if !cx.may_have_rounded() => {
                self.pass_as_a_whole(text)?;
                Ok(cx.into_coercions())
            }
            Ok(()) => match read_carefully(cx, text, reader) {
                Ok(coercions) => {
                    self.pass_as_a_whole(text)?;
                    Ok(coercions)
                }
                Err(_) => self.parse_again(text, reader),
            },
            Err(_) => self.parse_again(text, reader),
        }
    }

    /// Repairs the structure of arguments that do not fit, and reads the repaired text. The error lists every issue.
    #[cold]
    fn parse_again(&self, text: &str, reader: TypeReader<'_>) -> Result<Vec<Coercion>, InvalidArguments> {
        let again: Reread<'_> = &|cx, text| reader(cx, text, false);
        let RepairedArguments { text, coercions } = self.explain(text, again)?;
        let wrapped = WrappedValues::of(&coercions);
        // `text` is the repaired text from here on, and `coercions` already contains the repairs.
        let judge = TextJudge::new(self.graph(), &text);
        let cx = Context::after(self.graph(), &text, &judge, coercions);
        let Ok(coercions) = read_exactly(cx, &text, reader) else {
            return Err(self.refused_by_type(&text, again).moved(|at| wrapped.move_pointer_back(at)));
        };
        self.pass_as_a_whole(&text).map_err(|refusal| refusal.moved(|at| wrapped.move_pointer_back(at)))?;
        Ok(coercions)
    }

    #[cold]
    fn explain(&self, text: &str, again: Reread<'_>) -> Result<RepairedArguments, InvalidArguments> {
        match diagnose(self.graph(), text) {
            Err(refusal) => Err(self.report(refusal, again)),
            Ok(mended) => match mended.text {
                Some(text) => Ok(RepairedArguments { text, coercions: mended.coercions }),
                None => Err(self.refused_by_type(text, again)),
            },
        }
    }

    /// Completes a refusal: adds the issues that `Deserialize` impls and `#[arg(validate = …)]` find, and the corrected call.
    fn report(&self, mut refusal: RefusedArguments<'_>, again: Reread<'_>) -> InvalidArguments {
        let (graph, mut count) = (self.graph(), refusal.count);
        let mut issues = std::mem::take(&mut refusal.issues);
        let mut corrected = refusal
            .with_sent(|sent| {
                if graph.foreign {
                    let walked = issues.len();
                    refused::add_probable(graph, sent, &mut issues);
                    count += issues.len() - walked;
                }
                report::corrected(graph, self.name(), sent, &issues)
            })
            .flatten();
        if let Some(meant) = &refusal.respelled {
            corrected = report::corrected_spelling(graph, self.name(), meant);
        }
        // A corrected call is offered only if the whole schema, the type and its `#[arg(validate = …)]` functions accept it.
        let is_accepted = |Offer { text, fit }: &Offer| {
            let judge = TextJudge::new(graph, text);
            let cx = match fit {
                Fit::Exact => Context::exact(graph, text),
                _ => Context::new(graph, text, &judge),
            };
            self.pass_as_a_whole(text).is_ok() && again(&cx, text).is_ok()
        };
        let corrected = corrected.filter(is_accepted).map(|offer| offer.text);
        let mut unchecked = None;
        // A corrected call keeps all correct values and was accepted as a whole, so there are no further issues.
        if corrected.is_none() {
            let walked = issues.len();
            let looked = refusal.with_sent(|sent| refused::add_refusals(graph, sent, again, &mut issues));
            unchecked = looked.flatten();
            if let Some(at) = &mut unchecked {
                refusal.wrapped.move_pointer_back(at);
            }
            count = (count + issues.len()).saturating_sub(walked);
        }
        if let Some(sent) = refusal.sent.as_deref() {
            if let Some(whole) = &graph.whole {
                count += whole.add_to(&mut issues, &self.arrived(sent));
            }
            refusal.wrapped.move_back(&mut issues);
            if corrected.is_none()
                && let Some(inside) = refusal
                    .with_sent(|sent| report::issues_inside(graph, self.name(), sent, &issues))
                    .flatten()
            {
                (issues, count) = inside;
            }
        }
        InvalidArguments::new(self, issues, count, corrected).unchecked_after(unchecked)
    }

    /// Checks the coerced arguments against the schema keywords that are not compiled into the `Plan`.
    #[inline]
    fn pass_as_a_whole(&self, text: &str) -> Result<(), InvalidArguments> {
        match &self.graph().whole {
            None => Ok(()),
            Some(whole) => match whole.issues(&self.arrived(text), IssueLimit::All) {
                issues if issues.is_empty() => Ok(()),
                issues => {
                    let count = issues.len();
                    Err(InvalidArguments::new(self, issues, count, None))
                }
            },
        }
    }

    /// Returns the arguments after coercion, or the sent arguments if they do not fit. Returns null if they are not JSON.
    fn arrived(&self, text: &str) -> Value {
        let judge = TextJudge::new(self.graph(), text);
        let cx = Context::silent(self.graph(), text, &judge);
        read(&cx, text).or_else(|_| serde_json::from_str(text)).unwrap_or_default()
    }

    /// Explains why a type or `#[arg(validate = …)]` refuses arguments that fit the `Plan`. For example, the type may have a `Deserialize`
    /// written by hand.
    #[cold]
    fn refused_by_type(&self, text: &str, again: Reread<'_>) -> InvalidArguments {
        let mut issues = Vec::new();
        let document = Document::parse(text).ok();
        let unchecked = document
            .and_then(|document| refused::add_refusals(self.graph(), &document.root, again, &mut issues));
        if issues.is_empty() {
            issues.push(Issue::new(String::new(), IssueCode::Value, "refused by the type"));
        }
        InvalidArguments::new(self, issues, 0, None).unchecked_after(unchecked)
    }
}

struct RepairedArguments {
    text: String,
    coercions: Vec<Coercion>,
}

/// A function that reads a text as the type of the arguments. The `bool` says whether the function keeps the value. The type is hidden, so
/// that the callers of the function are compiled only once.
type TypeReader<'r> = &'r dyn Fn(&Context<'_>, &str, bool) -> Result<(), serde_json::Error>;

fn read_exactly(
    cx: Context<'_>,
    text: &str,
    reader: TypeReader<'_>,
) -> Result<Vec<Coercion>, serde_json::Error> {
    reader(&cx, text, true)?;
    if cx.may_have_rounded() {
        return read_carefully(cx, text, reader);
    }
    Ok(cx.into_coercions())
}

/// Reads arguments a second time, with the digits of each number, and records the numbers that were rounded.
#[cold]
fn read_carefully(
    cx: Context<'_>,
    text: &str,
    reader: TypeReader<'_>,
) -> Result<Vec<Coercion>, serde_json::Error> {
    let cx = cx.into_careful();
    reader(&cx, text, true)?;
    Ok(cx.into_coercions())
}

type TextReader<'t> = serde_json::Deserializer<serde_json::de::StrRead<'t>>;

pub(crate) type BoxReader =
    fn(PlanDe<'_, &mut TextReader<'_>>) -> Result<Box<dyn Any + Send>, serde_json::Error>;

pub(crate) type BoxedArguments = Parsed<Box<dyn Any + Send>>;

pub(crate) fn read_boxed<T: DeserializeOwned + Send + 'static>(
    de: PlanDe<'_, &mut TextReader<'_>>,
) -> Result<Box<dyn Any + Send>, serde_json::Error> {
    match T::deserialize(de) {
        Ok(value) => Ok(Box::new(value)),
        Err(error) => Err(error),
    }
}

#[inline]
fn read<T: DeserializeOwned>(cx: &Context<'_>, text: &str) -> Result<T, serde_json::Error> {
    read_by(cx, text, |de| T::deserialize(de))
}

#[inline]
fn read_by<'t, T>(
    cx: &Context<'_>,
    text: &'t str,
    read: impl FnOnce(PlanDe<'_, &mut TextReader<'t>>) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let mut de = serde_json::Deserializer::from_str(text);
    let value = read(PlanDe { de: &mut de, at: &ValuePosition::root(cx, cx.root()) });
    if value.is_ok() {
        de.end()?;
    }
    value
}
