//! The laws of argument validation, and the report of a violation.

use crate::args::{CoercionPolicy, Plan, UnknownKeys};
use std::fmt;

/// A law: a property of argument validation that must hold for every call of every tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Law {
    /// Arguments that fit the schema are accepted, unless the type itself refuses them. The policy `exact` accepts them without a
    /// coercion.
    FittingIsAccepted,
    /// Arguments that are accepted without a coercion fit the schema.
    AcceptedFits,
    /// Coerced arguments fit the schema, and `exact` accepts them without a coercion.
    CoercedFits,
    /// serde parses arguments that fit the schema, unless the type itself refuses them.
    SerdeReads,
    /// Coerced arguments are accepted again, without a coercion and with the same result.
    CoercionEnds,
    /// `strict` accepts all arguments that `exact` accepts, and `lenient` all that `strict` accepts.
    PoliciesWiden,
    /// The pass that parses the arguments and the pass that explains mistakes agree.
    PathsAgree,
    /// A refusal has at least one issue.
    RefusalsAreExplained,
    /// Every issue points to a sent value or to a missing key. An issue from a function of `#[arg(validate)]` may also point into an
    /// absent parameter.
    IssuesPointIntoTheCall,
    /// A report has at most 6,000 characters.
    ReportsAreBounded,
    CorrectionsAreAccepted,
    /// If an `ArgumentStream` refuses a parameter early, the complete arguments are refused at the same path. A stream fails if its text
    /// is not JSON, and only then.
    StreamsAgree,
    ChecksDoNotPanic,
    /// Text that is not JSON, or that repeats a key, is refused.
    BrokenTextIsRefused,
    RefusalsNameTheMistake,
    /// The schema and the type accept at least one sample. Without a sample, no other law is tested.
    SamplesExist,
}

impl Law {
    fn in_words(self) -> &'static str {
        match self {
            Self::FittingIsAccepted => "what the schema accepts must be accepted as it is",
            Self::AcceptedFits => "what is accepted as it is must fit the schema",
            Self::CoercedFits => "what was coerced must fit the schema",
            Self::SerdeReads => "what the schema accepts serde must read",
            Self::CoercionEnds => "what was coerced must be accepted again as it is",
            Self::PoliciesWiden => "a wider policy must accept more",
            Self::PathsAgree => "reading and explaining must agree",
            Self::RefusalsAreExplained => "a refusal must have an issue",
            Self::IssuesPointIntoTheCall => "an issue must point into the call",
            Self::ReportsAreBounded => "a report must be short",
            Self::CorrectionsAreAccepted => "a corrected call must be accepted",
            Self::StreamsAgree => "a stream and the whole must agree",
            Self::ChecksDoNotPanic => "checking arguments must not panic",
            Self::BrokenTextIsRefused => "text without a right reading must be refused",
            Self::RefusalsNameTheMistake => "a refusal must name the place of the mistake",
            Self::SamplesExist => "some value must fit the schema",
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_words())
    }
}

#[derive(Clone, PartialEq)]
pub(super) struct LawViolation {
    pub(super) law: Law,
    name: String,
    coercion: CoercionPolicy,
    unknown: UnknownKeys,
    /// The arguments as they were sent. A fuzz report has only their beginning.
    pub(super) arguments: String,
    verdicts: String,
}

impl LawViolation {
    pub(super) fn new(law: Law, plan: &Plan, arguments: &str, verdicts: impl Into<String>) -> LawViolation {
        let options = plan.options();
        LawViolation {
            law,
            name: plan.name().to_owned(),
            coercion: options.policy(),
            unknown: options.unknown_keys(),
            arguments: arguments.to_owned(),
            verdicts: verdicts.into(),
        }
    }
}

impl fmt::Display for LawViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { law, name, coercion, unknown, arguments, verdicts } = self;
        let (coercion, unknown) = (coercion, unknown.as_str());
        writeln!(f, "`{name}`, {coercion}, unknown keys {unknown}: {law}")?;
        write!(f, "  sent: {arguments}")?;
        for line in verdicts.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

crate::error_text::debug_is_the_sentence!(LawViolation);

impl std::error::Error for LawViolation {}
