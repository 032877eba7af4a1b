//! The report on whether a schema, its plan and serde agree.

use super::super::law::LawViolation;
use std::fmt;

#[derive(Clone, Debug)]
pub(super) struct AgreementReport {
    pub(super) name: String,
    pub(super) fitting: usize,
    pub(super) faulty: usize,
    /// The number of texts that the exact, the strict and the lenient policy accepted.
    pub(super) accepted: [usize; 3],
    /// The number of values that fit the schema, but that the type refuses, for example by a `TryFrom`. Serde refuses these values also
    /// without the plan.
    pub(super) refused_by_type: usize,
    /// The number of verdicts that were not compared. One reason is a number beyond 2^53, on which validators of JSON Schema differ. The
    /// other is an enum with `#[serde(other)]`, which accepts strings that its schema does not list.
    pub(super) not_compared: usize,
    /// The shortest call for each law that does not hold.
    pub(super) violations: Vec<LawViolation>,
    pub(super) count: usize,
}

impl AgreementReport {
    pub(super) fn holds(&self) -> bool {
        self.count == 0
    }

    pub(super) fn add(&mut self, found: LawViolation) {
        self.count += 1;
        match self.violations.iter_mut().find(|known| known.law == found.law) {
            Some(known) if known.arguments.len() > found.arguments.len() => *known = found,
            Some(_) => {}
            None => self.violations.push(found),
        }
    }
}

impl fmt::Display for AgreementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, fitting, faulty, accepted: [exact, strict, lenient], .. } = self;
        write!(f, "`{name}`: {fitting} fitting values and {faulty} with a fault; accepted: ")?;
        write!(f, "{exact} by exact, {strict} by strict, {lenient} by lenient")?;
        if self.refused_by_type > 0 {
            write!(f, "; {} refused by the type itself", self.refused_by_type)?;
        }
        if self.not_compared > 0 {
            write!(
                f,
                "; {} not compared (numbers beyond 2^53, or variants for every other word)",
                self.not_compared
            )?;
        }
        match self.count {
            0 => write!(f, "; every law holds"),
            1 => write!(f, "; a law does not hold"),
            count => write!(f, "; laws do not hold {count} times"),
        }?;
        for violation in &self.violations {
            write!(f, "\n\n{violation}")?;
        }
        Ok(())
    }
}
