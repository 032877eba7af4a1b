//! Checks how a tool's arguments are validated when they contain the mistakes of careless models.

use super::call::{MAX_TEXT, lines};
use super::law::{Law, LawViolation};
use super::sample::samples;
use super::slips::{SLIPS, Slip, SlippedCall};
use crate::args::{Coercion, CoercionRule, InvalidArguments, IssueCode};
use crate::panics::catch;
use crate::tool::{definition_error::DefinitionError, set::ToolSet, value::Tool};
use serde_json::Value;
use std::fmt;

/// Maximum number of correct calls in which mistakes are made.
const MAX_SAMPLES: usize = 6;
/// Maximum number of calls with one kind of mistake.
const MAX_CALLS: usize = 60;
const MAX_KEPT: usize = 20;
/// Maximum length of the arguments in a violation, in characters.
const MAX_SHOWN: usize = 300;

/// Sends a tool the mistakes that real models make, and reports the results. The mistakes are numbers as text, keys in camelCase, `null`
/// for required values, lists as text, truncated JSON, and about fifty more.
///
/// The tool is not run. Its arguments are checked with [`Tool::validate`].
///
/// ```
/// use agent::testing::fuzz_tool;
/// use agent::{Registry, tool, tools};
///
/// /// Books a room.
/// #[tool]
/// fn book(city: String, nights: u32, guests: Vec<String>, breakfast: Option<bool>) -> String {
///     format!("{nights} nights in {city} for {}, {breakfast:?}", guests.join(" and "))
/// }
///
/// let registry = Registry::new(tools![book])?;
/// let report = fuzz_tool(registry.fetch("book")?);
/// println!("{report}");
/// report.assert_safe();
///
/// // A line for each kind of mistake, with what was accepted, coerced and refused.
/// assert!(report.to_string().contains("a number as text"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fuzz_tool(tool: &Tool) -> FuzzReport {
    let schema = tool.definition().parameters();
    let is_right = |value: &Value| matches!(validate(tool, &value.to_string()), ValidationResult::Accepted(coercions) if coercions.is_empty());
    let right: Vec<Value> =
        samples(schema, 60, 0).into_iter().filter(Value::is_object).filter(is_right).collect();
    // The first value has all parameters. Neighboring values differ little, so the other values are taken at regular distances.
    let apart = right.len().div_ceil(MAX_SAMPLES).max(1);
    let right: Vec<Value> = right.into_iter().step_by(apart).collect();
    let mut report = FuzzReport {
        tool: tool.definition().name().to_owned(),
        samples: right.len(),
        slips: Vec::new(),
        longest_report: 0,
        violations: Vec::new(),
    };
    for slip in SLIPS {
        let mut calls: Vec<SlippedCall> = right.iter().flat_map(|value| slip.of(value, schema)).collect();
        let mut known = std::collections::HashSet::new();
        calls.retain(|call| known.insert(call.text.clone()));
        calls.truncate(MAX_CALLS);
        if !calls.is_empty() {
            report.send(tool, slip, &calls);
        }
    }
    report
}

/// Runs [`fuzz_tool`] for each tool of a set. Create the set with [`tools!`](crate::tools).
///
/// ```
/// use agent::testing::fuzz_tools;
/// use agent::{tool, tools};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// for report in fuzz_tools(tools![add])? {
///     report.assert_safe();
/// }
/// # Ok::<(), agent::tool::DefinitionError>(())
/// ```
///
/// # Errors
/// Returns a [`DefinitionError`] if the definition of a tool is not valid.
pub fn fuzz_tools(tools: ToolSet) -> Result<Vec<FuzzReport>, DefinitionError> {
    tools.into_entries().into_iter().map(|entry| Ok(fuzz_tool(&entry.map_err(|(_, error)| error)?))).collect()
}

enum ValidationResult {
    Accepted(Vec<Coercion>),
    Refused(InvalidArguments),
    Panicked(String),
}

fn validate(tool: &Tool, text: &str) -> ValidationResult {
    match catch(|| tool.validate(text)) {
        Ok(Ok(coercions)) => ValidationResult::Accepted(coercions),
        Ok(Err(refusal)) => ValidationResult::Refused(refusal),
        Err(panic) => ValidationResult::Panicked(panic),
    }
}

/// The result of fuzzing a tool. `Display` shows a table.
///
/// ```
/// # /// Doubles a number.
/// # #[agent::tool] fn double(n: i64) -> i64 { n * 2 }
/// use agent::testing::{FuzzReport, fuzz_tools};
///
/// let report: FuzzReport = fuzz_tools(agent::tools![double])?.remove(0);
/// assert_eq!(report.tool, "double");
/// assert!(report.samples > 0 && report.longest_report < 1_000);
/// report.assert_safe();
/// # Ok::<(), agent::tool::DefinitionError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use = "a test fails by `assert_safe`"]
pub struct FuzzReport {
    /// The name of the tool.
    pub tool: String,
    /// The number of correct calls, generated from the schema, in which mistakes were made.
    pub samples: usize,
    /// The result for each kind of mistake that is possible for this tool.
    slips: Vec<SlipReport>,
    /// The length of the longest report, in characters.
    pub longest_report: usize,
    /// The calls for which a law does not hold, at most 20.
    violations: Vec<LawViolation>,
}

#[derive(Clone, Debug)]
struct SlipReport {
    slip: &'static str,
    sent: usize,
    /// The number of calls that were accepted without a coercion.
    as_is: usize,
    coerced: usize,
    refused: usize,
    /// The coercion rules, each with the number of its uses.
    rules: Vec<(CoercionRule, usize)>,
    corrected: usize,
}

impl FuzzReport {
    /// Asserts that the tool is safe: validation never panics, and refuses every text that is not JSON or repeats a key. Each refusal
    /// names the path of the mistake in a report of limited length, and each corrected call in a report is accepted.
    ///
    /// # Panics
    /// Panics with the text of this report if the tool is not safe. Panics if no correct call could be generated from the schema.
    #[track_caller]
    pub fn assert_safe(&self) {
        assert!(self.samples > 0, "no right call of `{}` could be made from its schema", self.tool);
        assert!(self.violations.is_empty(), "{self}");
    }

    fn send(&mut self, tool: &Tool, slip: &Slip, calls: &[SlippedCall]) {
        let mut report = SlipReport {
            slip: slip.name,
            sent: calls.len(),
            as_is: 0,
            coerced: 0,
            refused: 0,
            rules: Vec::new(),
            corrected: 0,
        };
        for call in calls {
            match validate(tool, &call.text) {
                ValidationResult::Panicked(words) => {
                    self.add(Law::ChecksDoNotPanic, tool, slip, call, &words);
                }
                ValidationResult::Accepted(_) if slip.never => {
                    self.add(Law::BrokenTextIsRefused, tool, slip, call, "accepted");
                }
                ValidationResult::Accepted(coercions) if coercions.is_empty() => report.as_is += 1,
                ValidationResult::Accepted(coercions) => {
                    report.coerced += 1;
                    for coercion in coercions {
                        match report.rules.iter_mut().find(|(rule, _)| *rule == coercion.rule) {
                            Some((_, count)) => *count += 1,
                            None => report.rules.push((coercion.rule, 1)),
                        }
                    }
                }
                ValidationResult::Refused(refusal) => {
                    report.refused += 1;
                    report.corrected += usize::from(refusal.corrected().is_some());
                    self.check_refusal(tool, slip, call, &refusal);
                }
            }
        }
        self.slips.push(report);
    }

    fn check_refusal(&mut self, tool: &Tool, slip: &Slip, call: &SlippedCall, refusal: &InvalidArguments) {
        let length = refusal.to_text().chars().count();
        self.longest_report = self.longest_report.max(length);
        if length > MAX_TEXT {
            self.add(Law::ReportsAreBounded, tool, slip, call, &format!("{length} characters"));
        }
        if !names(refusal, &call.place) {
            let verdicts =
                format!("the mistake is at `{}`\nthe tool {}", call.place, lines(refusal.issues()));
            self.add(Law::RefusalsNameTheMistake, tool, slip, call, &verdicts);
        }
        if let Some(corrected) = refusal.corrected() {
            match validate(tool, corrected) {
                ValidationResult::Accepted(_) => {}
                ValidationResult::Refused(_) => {
                    self.add(Law::CorrectionsAreAccepted, tool, slip, call, &format!("refused: {corrected}"));
                }
                ValidationResult::Panicked(words) => {
                    self.add(Law::ChecksDoNotPanic, tool, slip, call, &words);
                }
            }
        }
    }

    fn add(&mut self, law: Law, tool: &Tool, slip: &Slip, call: &SlippedCall, verdicts: &str) {
        if self.violations.len() < MAX_KEPT {
            let arguments: String = call.text.chars().take(MAX_SHOWN).collect();
            let verdicts = format!("{}: {verdicts}", slip.name);
            self.violations.push(LawViolation::new(law, tool.definition().plan(), &arguments, verdicts));
        }
    }
}

/// Returns whether the refusal has an issue that may report the mistake at `place`. The path of such an issue is `place`, a parent of
/// `place`, or within `place`. The path of a missing key may also be beside `place`. Returns `true` if the refusal omits issues.
fn names(refusal: &InvalidArguments, place: &str) -> bool {
    let inside = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    refusal.issues().len() < refusal.count()
        || refusal.issues().iter().any(|issue| match issue.code {
            // An issue about broken JSON has no path, and an issue that a Rust type reports may have none.
            IssueCode::Json | IssueCode::Value if issue.path.is_empty() => true,
            IssueCode::Missing if parent(&issue.path) == parent(place) => true,
            _ => inside(place, &issue.path) || (!issue.path.is_empty() && inside(&issue.path, place)),
        })
}

fn parent(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl fmt::Display for FuzzReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |part: fn(&SlipReport) -> usize| self.slips.iter().map(part).sum::<usize>();
        let Self { tool, samples, longest_report, .. } = self;
        writeln!(
            f,
            "`{tool}`: {} calls with {} kinds of slips, made in {samples} right calls",
            sum(|s| s.sent),
            self.slips.len()
        )?;
        writeln!(
            f,
            "{} were accepted as sent, {} coerced, {} refused ({} with a corrected call); longest report {longest_report} characters",
            sum(|s| s.as_is),
            sum(|s| s.coerced),
            sum(|s| s.refused),
            sum(|s| s.corrected),
        )?;
        writeln!(f)?;
        let width = self.slips.iter().map(|s| s.slip.len()).max().unwrap_or(0).max(4);
        writeln!(f, "{:width$}  sent  as is  coerced  refused  how", "slip")?;
        let or_dot = |n: usize| if n == 0 { "·".to_owned() } else { n.to_string() };
        for s in &self.slips {
            let mut how: Vec<String> = s.rules.iter().map(|(rule, n)| format!("{rule} {n}")).collect();
            if s.corrected > 0 {
                how.push(format!("corrected call offered {}", s.corrected));
            }
            let (sent, as_is, coerced, refused) =
                (s.sent, or_dot(s.as_is), or_dot(s.coerced), or_dot(s.refused));
            let line = format!(
                "{:width$}  {sent:>4}  {as_is:>5}  {coerced:>7}  {refused:>7}  {}",
                s.slip,
                how.join(", ")
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        match self.violations.len() {
            0 => write!(f, "\nSafe: nothing panicked, nothing was guessed, every refusal names the place."),
            1 => write!(f, "\nNot safe, a law does not hold:"),
            n => write!(f, "\nNot safe, laws do not hold {n} times:"),
        }?;
        for violation in &self.violations {
            write!(f, "\n- {violation}")?;
        }
        Ok(())
    }
}
