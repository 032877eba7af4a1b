//! The lines of a program's error output that most likely contain the reason for its end.

use std::collections::VecDeque;

/// Maximum number of lines that are kept from the end of the output.
const LAST: usize = 3;
/// Maximum number of lines that are kept because they describe an error.
const ERRORS: usize = 3;
/// Maximum length of a kept line, in characters. Longer lines are cut.
const LENGTH: usize = 200;

/// Words that indicate an error, in lower case.
const ERROR_WORDS: [&str; 14] = [
    "cannot",
    "can't",
    "could not",
    "denied",
    "error",
    "exception",
    "fail",
    "fatal",
    "invalid",
    "missing",
    "no such",
    "not found",
    "panic",
    "unable",
];

/// The first lines that describe an error, and the last lines. Programs such as npm write the reason first, followed by instructions.
#[derive(Default)]
pub(super) struct LastWords {
    lines: usize,
    /// The first lines that describe an error, with their line numbers.
    errors: Vec<(usize, String)>,
    last: VecDeque<(usize, String)>,
}

impl LastWords {
    pub(super) fn push(&mut self, line: &str) {
        let line = line.trim_end();
        if line.trim_start().is_empty() {
            return;
        }
        let kept: String = line.chars().take(LENGTH).collect();
        if self.errors.len() < ERRORS && names_error(&kept) {
            self.errors.push((self.lines, kept.clone()));
        }
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back((self.lines, kept));
        self.lines += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Returns the lines in order, with `…` for omitted lines.
    pub(super) fn text(&self) -> String {
        let first_of_last = self.last.front().map_or(0, |(number, _)| *number);
        let errors = self.errors.iter().filter(|(number, _)| *number < first_of_last);
        let mut words: Vec<&str> = Vec::new();
        let mut next = None;
        for (number, line) in errors.chain(&self.last) {
            if next.is_some_and(|next| next != *number) {
                words.push("…");
            }
            words.push(line);
            next = Some(number + 1);
        }
        words.join(" / ")
    }
}

/// Returns whether the line describes an error. A line of at most three words, such as `npm error 404`, describes nothing.
fn names_error(line: &str) -> bool {
    let line = line.to_lowercase();
    ERROR_WORDS.iter().any(|word| line.contains(word)) && line.split_whitespace().count() > 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(lines: &[&str]) -> String {
        let mut words = LastWords::default();
        assert!(words.is_empty());
        for line in lines {
            words.push(line);
        }
        words.text()
    }

    #[test]
    fn the_reason_is_kept_before_many_other_lines() {
        let npm = words(&[
            "npm warn config",
            "npm error code E404",
            "npm error 404 Not Found - GET https://registry.example/some-server - Not found",
            "npm error 404",
            "npm error 404  'some-server@*' is not in this registry.",
            "npm error 404",
            "npm error 404 Note that you can also install from a",
            "npm error 404 tarball, folder, http url, or git folder.",
            "npm error A complete log of this run can be found in: /x.log",
        ]);
        assert_eq!(
            npm,
            "npm error code E404 / npm error 404 Not Found - GET https://registry.example/some-server - Not found / … / \
             npm error 404  'some-server@*' is not in this registry. / … / \
             npm error 404 Note that you can also install from a / npm error 404 tarball, folder, http url, or git folder. / \
             npm error A complete log of this run can be found in: /x.log"
        );
        let node =
            words(&["loader:1", "", "Error: Cannot find module 'x'", "  at a", "  at b", "}", "Node.js v22"]);
        assert_eq!(node, "Error: Cannot find module 'x' / … /   at b / } / Node.js v22");
    }

    #[test]
    fn few_lines_are_complete_and_many_are_bounded() {
        assert_eq!(words(&["starting", "no database"]), "starting / no database");
        assert_eq!(
            words(&["one", "Error: no such file there", "three"]),
            "one / Error: no such file there / three"
        );
        let many: Vec<String> =
            (0..10_000).map(|n| format!("error number {n}: {}", "x".repeat(5_000))).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(words(&many).chars().count() <= (LAST + ERRORS) * (LENGTH + 10));
    }
}
