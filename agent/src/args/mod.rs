//! The argument engine: converts what a model sends to what a tool takes.
//!
//! A [`Plan`] is compiled once from a type or a JSON Schema. [`Plan::parse`] reads argument text directly into the type, coerces
//! what the [`CoercionPolicy`] allows, and records every [`Coercion`]. If the arguments do not fit, [`InvalidArguments`] lists
//! *everything* that is wrong with them, so that the model can fix it all at once. [`ArgumentStream`] reports values and mistakes
//! while the text is still being received.
//! ```
//! use agent::{ToolArgs, args::{Plan, PlanOptions}};
//!
//! #[derive(ToolArgs)]
//! struct Booking { hotel: String, #[arg(range(1..=30))] nights: u32 }
//!
//! let plan = Plan::for_type::<Booking>("book_room", PlanOptions::default())?;
//! let parsed = plan.parse::<Booking>(r#"{"hotel": "Astoria", "nights": "2"}"#)?;
//! assert_eq!((parsed.value.hotel.as_str(), parsed.value.nights), ("Astoria", 2));
//! assert_eq!(parsed.coercions[0].path, "/nights");
//!
//! let refused = plan.parse::<Booking>(r#"{"hotl": "Astoria", "nights": 99}"#).err().unwrap();
//! assert_eq!(refused.count(), 3);                     // `hotel` is missing, `hotl` is no parameter, 99 is too many
//! println!("{refused}");                               // the report, as the model reads it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod coercion;
mod de;
mod diagnose;
mod formats;
pub(crate) mod hooks;
mod issue;
mod plan;
mod policy;
#[cfg(feature = "testing")]
pub(crate) mod proof;
mod report;
mod scalar;
mod stream;
mod suggest;
mod text;
mod types;

pub use coercion::{Coercion, CoercionRule, Coercions};
pub use hooks::Violations;
pub use issue::{Issue, IssueCode};
pub use plan::{Plan, SchemaError};
pub(crate) use plan::{all_texts, hidden, secret_texts, withheld};
pub use policy::{CoercionPolicy, PlanOptions, UnknownKeys, UnknownPolicy};
pub use report::InvalidArguments;
pub use stream::{
    ArgumentEvent, ArgumentKind, ArgumentPath, ArgumentSegment, ArgumentStream, ArgumentStreamError,
    ArgumentValue,
};
pub use suggest::did_you_mean;
pub use types::{Base64, HumanDuration, InvalidDuration};

// For the rendering of schemas.
pub(crate) use diagnose::{Doc, Document, Shape, fits};
pub(crate) use plan::{
    ArraySpec, Bound, Check, Child, ExternalSpec, Graph, IntSpec, Kind, NodeId, NotTakenOut, NumSpec,
    ObjectSpec, Prop, Rest, StrSpec,
};
#[cfg(feature = "runtime")]
pub(crate) use report::Subject;
pub(crate) use report::signature;
pub(crate) use text::{cut, push_index, push_segment};

use de::{Context, Path, PlanDe};
use diagnose::{Refusal, diagnose};
use plan::Asked;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parsed arguments, with the changes that made them fit.
///
/// ```
/// # #[derive(agent::ToolArgs)] struct Move { steps: i32 }
/// use agent::args::{Parsed, Plan, PlanOptions};
///
/// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
/// let parsed: Parsed<Move> = plan.parse(r#"{"steps": "3"}"#)?;
/// assert_eq!((parsed.value.steps, parsed.coercions.len()), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parsed<T> {
    /// The arguments.
    pub value: T,
    /// The changes that made the arguments fit; usually empty.
    pub coercions: Coercions,
}

impl Plan {
    /// Parses arguments in one pass over their JSON text. Blank text means no arguments.
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
    /// assert_eq!(parsed.coercions[0].rule, CoercionRule::TextToInteger);
    /// assert_eq!(parsed.coercions[1].path, "/tags/1");
    ///
    /// let error = plan.parse::<Move>(r#"{"step": 1.5}"#).err().unwrap();
    /// assert_eq!(error.issues().len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArguments`] with every mistake if the text is not a JSON object or does not fit the plan.
    pub fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<Parsed<T>, InvalidArguments> {
        let text = if text.trim_start().is_empty() { "{}" } else { text };
        let cx = Context::new(self.graph(), text);
        match read(&cx, text) {
            Ok(value) => {
                self.pass_as_a_whole(text)?;
                Ok(Parsed { value, coercions: cx.into_coercions() })
            }
            Err(error) => {
                let again: Reread<'_> = &|cx, text| read::<T>(cx, text).map(drop);
                let Again { text, coercions } = self.explain(text, error, cx.into_failed_at(), again)?;
                // Its structure was mended, as the policy allows.
                let cx = Context::after(self.graph(), &text, coercions);
                match read(&cx, &text) {
                    Ok(value) => {
                        self.pass_as_a_whole(&text)?;
                        Ok(Parsed { value, coercions: cx.into_coercions() })
                    }
                    Err(error) => Err(self.refused_by_type(&text, error, cx.into_failed_at(), again)),
                }
            }
        }
    }

    /// Returns what is wrong, or the text to read instead.
    #[cold]
    fn explain(
        &self,
        text: &str,
        error: serde_json::Error,
        failed_at: Option<String>,
        again: Reread<'_>,
    ) -> Result<Again, InvalidArguments> {
        match diagnose(self.graph(), text) {
            Err(Refusal { mut issues, mut count, sent }) => {
                let mut corrected =
                    sent.as_deref().and_then(|sent| report::corrected(self.graph(), sent, &issues));
                corrected.take_if(|call| self.pass_as_a_whole(call).is_err());
                // What is no JSON has that one fault.
                if self.graph().checked
                    && let Some(sent) = sent.as_deref()
                {
                    // An offer that the tool's own checks would refuse is none.
                    corrected.take_if(|text| again(&Context::new(self.graph(), text), text).is_err());
                    let walked = issues.len();
                    // That it ends where a type does not fit was to be expected.
                    let _ = self.add_checked(sent, again, &mut issues);
                    count += issues.len() - walked;
                }
                if let (Some(whole), Some(sent)) = (&self.graph().whole, &sent) {
                    count += whole.add_to(&mut issues, &self.arrived(sent));
                }
                Err(InvalidArguments::new(self, issues, count, corrected))
            }
            Ok(mended) => match mended.text {
                Some(text) => Ok(Again { text, coercions: mended.coercions }),
                None => Err(self.refused_by_type(text, error, failed_at, again)),
            },
        }
    }

    /// Checks what the plan does not model of its schema, after the value has arrived.
    #[inline]
    fn pass_as_a_whole(&self, text: &str) -> Result<(), InvalidArguments> {
        match &self.graph().whole {
            None => Ok(()),
            Some(whole) => match whole.issues(&self.arrived(text), Asked::All) {
                issues if issues.is_empty() => Ok(()),
                issues => {
                    let count = issues.len();
                    Err(InvalidArguments::new(self, issues, count, None))
                }
            },
        }
    }

    /// Returns the arguments as they will arrive, or as they were sent if they do not fit.
    fn arrived(&self, text: &str) -> Value {
        let cx = Context::silent(self.graph(), text);
        read(&cx, text).or_else(|_| serde_json::from_str(text)).unwrap_or_default()
    }

    /// Handles arguments that fit the plan but that the type refuses: a `Deserialize` or `TryFrom` written by hand.
    #[cold]
    fn refused_by_type(
        &self,
        text: &str,
        error: serde_json::Error,
        failed_at: Option<String>,
        again: Reread<'_>,
    ) -> InvalidArguments {
        let mut issues = Vec::new();
        let (mut error, mut failed_at) = (error, failed_at);
        if self.graph().checked {
            match self.add_checked(text, again, &mut issues) {
                Ok(()) if !issues.is_empty() => return InvalidArguments::new(self, issues, 0, None),
                Ok(()) => {}
                Err(other) => (error, failed_at) = other,
            }
        }
        let words = error.to_string();
        // serde_json adds a position, which says less than the path.
        let position = format!(" at line {} column {}", error.line(), error.column());
        let words = words.strip_suffix(&position).unwrap_or(&words);
        let problem = if self.graph().has_secrets() { "refused by the type".into() } else { cut(words, 250) };
        let issue = Issue::new(failed_at.unwrap_or_default(), IssueCode::Value, problem);
        issues.push(issue);
        InvalidArguments::new(self, issues, 0, None)
    }

    /// Reads the arguments once more to collect all findings of checks on values whose types fit. The error is what ended the
    /// reading nevertheless, and where.
    #[cold]
    fn add_checked(
        &self,
        text: &str,
        again: Reread<'_>,
        issues: &mut Vec<Issue>,
    ) -> Result<(), (serde_json::Error, Option<String>)> {
        let cx = Context::collecting(self.graph(), text);
        let root = self.graph().node(self.graph().root);
        let end = hooks::collect(|| {
            let _tried = cx.is_tried(root).then(hooks::suspend);
            let end = again(&cx, text);
            cx.place(&Path::ROOT, root);
            end
        });
        let (placed, failed_at) = cx.into_placed();
        hooks::report(self.graph(), text, placed, issues);
        end.map_err(|error| (error, failed_at))
    }
}

/// The arguments to read once more.
struct Again {
    text: String,
    coercions: Vec<Coercion>,
}

/// Reads arguments only for the findings on the way.
type Reread<'a> = &'a dyn Fn(&Context<'_>, &str) -> Result<(), serde_json::Error>;

fn read<T: DeserializeOwned>(cx: &Context<'_>, text: &str) -> Result<T, serde_json::Error> {
    let mut de = serde_json::Deserializer::from_str(text);
    let root = cx.graph.node(cx.graph.root);
    let value = T::deserialize(PlanDe { de: &mut de, cx, path: &Path::ROOT, node: root })?;
    de.end()?;
    Ok(value)
}
