//! The error type of a validation function that finds several mistakes, or that names the field of a mistake.

use super::findings::CheckFinding;
use std::fmt::Display;

/// The findings of a check, a function of `#[arg(validate = …)]`: one entry for each mistake, with the name of the field.
///
/// Use this list as the error of a check that reports several mistakes or names a field. The error of any other check can
/// be any type with [`Display`].
///
/// ```
/// use agent::{ToolArgs, args::{Plan, PlanOptions, Violations}};
///
/// #[derive(ToolArgs)]
/// #[arg(validate = in_order)]
/// #[serde(rename_all = "camelCase")]
/// struct Stay {
///     first_night: u32,
///     last_night: u32,
/// }
///
/// fn in_order(stay: &Stay) -> Result<(), Violations> {
///     let mut found = Violations::new();
///     if stay.last_night < stay.first_night {
///         found.add("last_night", "must not be before `firstNight`");
///     }
///     found.into_result()
/// }
///
/// let plan = Plan::for_type::<Stay>("book", PlanOptions::default())?;
/// let refused = plan.parse::<Stay>(r#"{"firstNight": 9, "lastNight": 2}"#).err().unwrap();
/// assert_eq!(refused.issues()[0].path, "/lastNight");
/// assert_eq!(refused.issues()[0].problem, "must not be before `firstNight`");
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Violations {
    found: Vec<(String, String)>,
}

impl Violations {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mistake in a field. `field` is the name of the field in Rust or its name for the model. Nested names and
    /// indices are separated by `/` (`"guests/0/age"`). An empty name means the value as a whole.
    pub fn add(&mut self, field: impl Into<String>, problem: impl Display) {
        self.found.push((field.into(), problem.to_string()));
    }

    /// Adds a mistake in a field, as [`add`](Self::add) does, and returns the list.
    ///
    /// ```
    /// use agent::args::Violations;
    ///
    /// let found = Violations::new().at("end", "must be after `start`").at("guests/0/age", "must be at least 18");
    /// assert_eq!(found.len(), 2);
    /// assert_eq!(found.iter().next(), Some(("end", "must be after `start`")));
    /// assert!(Violations::new().is_empty() && !found.is_empty());
    /// assert!(found.into_result().is_err());
    /// ```
    pub fn at(mut self, field: impl Into<String>, problem: impl Display) -> Self {
        self.add(field, problem);
        self
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the number of mistakes.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Returns each field with its mistake, in the order in which the mistakes were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.found.iter().map(|(field, problem)| (field.as_str(), problem.as_str()))
    }

    /// Returns `Ok` if nothing was added.
    ///
    /// # Errors
    /// Returns the list itself if something was added.
    pub fn into_result(self) -> Result<(), Violations> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    pub(super) fn into_findings(self) -> impl Iterator<Item = CheckFinding> {
        self.found.into_iter().map(|(field, problem)| CheckFinding::named(&field, &problem))
    }
}
