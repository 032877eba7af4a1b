//! Counts the tries of a tool, and distinguishes progress from repetition.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Maximum number of retries even if each makes progress, as a multiple of `max_retries`.
const WITH_PROGRESS: u32 = 3;

/// The tries of one tool in a run: calls that were refused, and calls after which the tool asked for another call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolRetries {
    all: u32,
    /// The issues of the first try, or of the last try that was progress.
    best: BTreeSet<String>,
    seen: BTreeSet<String>,
}

impl ToolRetries {
    /// Registers a try. Returns whether the try is progress: it has only some of the issues of the best try, or only new issues.
    pub(super) fn register(&mut self, report: &str) -> bool {
        let now = issues(report);
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

    pub(super) fn count(&self) -> u32 {
        self.all
    }

    /// Returns whether no further try is allowed, even after progress. `max` is the number of retries that are allowed without progress.
    pub(super) fn is_exhausted(&self, max: u32) -> bool {
        self.all > max.saturating_mul(WITH_PROGRESS)
    }
}

/// Parses the issues of a report from its text, because stored messages keep nothing else of a refused call.
fn issues(report: &str) -> BTreeSet<String> {
    let lines = report.lines().skip(1).map_while(|line| {
        let (number, issue) = line.split_once(". ")?;
        number.bytes().all(|b| b.is_ascii_digit()).then_some(issue)
    });
    lines.map(without_values).collect()
}

/// Removes values and counts from an issue, because another wrong value for the same parameter is the same issue.
fn without_values(line: &str) -> String {
    let ends = ["; got ", "; expected ", "; did you mean "];
    let end = ends.iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
    let line = line.get(..end).unwrap_or(line);
    let (path, words) = line.split_once(": ").unwrap_or((line, ""));
    let mut out = format!("{path}: ");
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
    fn fewer_issues_or_only_new_ones_are_progress() {
        let mut tries = ToolRetries::default();
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
    fn a_report_without_issues_is_progress_once() {
        let mut tries = ToolRetries::default();
        assert!(!tries.register("try a smaller number"));
        assert!(!tries.register("try a smaller number"));
        let mut tries = ToolRetries::default();
        assert!(!tries.register(&report(&["/a: wrong type"])));
        assert!(tries.register("try a smaller number"));
        assert!(!tries.register("try a smaller number"));
    }

    #[test]
    fn tries_are_limited_even_with_progress() {
        let mut tries = ToolRetries::default();
        for n in 0..6 {
            tries.register(&report(&[&format!("/{n}: wrong type")]));
            assert!(!tries.is_exhausted(2));
        }
        tries.register(&report(&["/x: wrong type"]));
        assert!(tries.is_exhausted(2) && ToolRetries { all: 1, ..ToolRetries::default() }.is_exhausted(0));
    }
}
