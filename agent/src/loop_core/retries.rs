//! Counts the tries of a tool, and tells progress from repetition.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// All further tries, those with progress included, are at most this many times the allowed ones.
const WITH_PROGRESS: u32 = 3;

/// The tries of one tool in a run that were sent back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tries {
    /// How many there were.
    all: u32,
    /// The problems of the best try.
    best: BTreeSet<String>,
    /// All problems so far.
    seen: BTreeSet<String>,
}

impl Tries {
    /// Registers a try with its report. Returns whether it is progress: its problems are some of those of the best earlier try, or
    /// none of the earlier ones.
    pub(super) fn register(&mut self, report: &str) -> bool {
        let now = problems(report);
        let is_first = self.all == 0;
        self.all = self.all.saturating_add(1);
        let is_part = now.len() < self.best.len() && now.is_subset(&self.best);
        let is_progress = !is_first && !self.best.is_empty() && (is_part || now.is_disjoint(&self.seen));
        if is_first || is_progress {
            self.best.clone_from(&now);
        }
        self.seen.extend(now);
        is_progress
    }

    /// Returns how many tries there were.
    pub(super) fn all(&self) -> u32 {
        self.all
    }

    /// Whether no further try is left, however good the last one was.
    pub(super) fn are_spent(&self, max: u32) -> bool {
        self.all > max.saturating_mul(WITH_PROGRESS)
    }
}

/// Reads the problems of a report back: each as its place and its kind, without what was sent. The text is all that messages,
/// records and journals keep of a refusal, so every driver and every replay counts the same.
fn problems(report: &str) -> BTreeSet<String> {
    let lines = report.lines().skip(1).map_while(|line| {
        let (number, problem) = line.split_once(". ")?;
        number.bytes().all(|b| b.is_ascii_digit()).then_some(problem)
    });
    lines.map(kind).collect()
}

/// Leaves out values and counts: two wrong values are the same problem.
fn kind(line: &str) -> String {
    let ends = ["; got ", "; expected ", "; did you mean "];
    let end = ends.iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
    let line = line.get(..end).unwrap_or(line);
    let (place, words) = line.split_once(": ").unwrap_or((line, ""));
    let mut out = format!("{place}: ");
    let mut quote: Option<char> = None;
    for c in words.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '`' => quote = Some(c),
            None if c.is_ascii_digit() => {}
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lines: &[&str]) -> String {
        let numbered = lines.iter().enumerate().map(|(i, line)| format!("{}. {line}", i + 1));
        let head = "Invalid arguments for `t`: the problems. The tool was not run.".to_owned();
        let lines: Vec<String> = std::iter::once(head).chain(numbered).collect();
        lines.join("\n")
            + "\nParameters (? = optional):\n  a: integer\nCall `t` again with all of these fixed."
    }

    #[test]
    fn fewer_of_the_same_or_only_new_ones_are_progress() {
        let mut tries = Tries::default();
        assert!(
            !tries.register(&report(&["/a: wrong type; got string \"x\"", "/b: out of range; got number 9"]))
        );
        assert!(
            !tries.register(&report(&["/a: wrong type; got string \"y\"", "/b: out of range; got number 8"]))
        );
        assert!(tries.register(&report(&["/b: out of range; got number 7"])));
        assert!(!tries.register(&report(&["/b: out of range; got number 7", "/c: required, but missing"])));
        assert!(tries.register(&report(&["/d: too short (3 characters)"])));
        assert!(!tries.register(&report(&["/d: too short (4 characters)"])));
        assert!(!tries.register(&report(&["/a: wrong type; got string \"z\""])));
    }

    #[test]
    fn a_request_without_problems_is_progress_once() {
        let mut tries = Tries::default();
        assert!(!tries.register("try a smaller number"));
        assert!(!tries.register("try a smaller number"));
        let mut tries = Tries::default();
        assert!(!tries.register(&report(&["/a: wrong type"])));
        assert!(tries.register("try a smaller number"));
        assert!(!tries.register("try a smaller number"));
    }

    #[test]
    fn tries_end() {
        let mut tries = Tries::default();
        for n in 0..6 {
            tries.register(&report(&[&format!("/{n}: wrong type")]));
            assert!(!tries.are_spent(2));
        }
        tries.register(&report(&["/x: wrong type"]));
        assert!(tries.are_spent(2) && Tries { all: 1, ..Tries::default() }.are_spent(0));
    }
}
