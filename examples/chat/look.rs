//! Colors, and text made safe for a terminal.

use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal as _};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Paints text, if the output has colors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) has_colours: bool,
}

/// The kind of a piece of text, which selects its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text of the model.
    Said,
    /// Thinking, and side notes.
    Dim,
    /// Input of the user.
    User,
    /// A heading or a name.
    Bold,
    Good,
    Bad,
    /// A change, or a question to the user.
    Notice,
}

impl Look {
    /// The look of standard output or standard error: colors only on a terminal that can show them, and only if `NO_COLOR` is not set.
    pub(crate) fn of(stream: &impl io::IsTerminal) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value: std::ffi::OsString| !value.is_empty());
        Self { has_colours: stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb() }
    }

    pub(crate) fn paint(self, kind: Kind, text: &str) -> String {
        let style = match kind {
            Kind::Said => Style::new(),
            Kind::Dim => Style::new().dimmed(),
            Kind::User => AnsiColor::Cyan.on_default(),
            Kind::Bold => Style::new().bold(),
            Kind::Good => AnsiColor::Green.on_default(),
            Kind::Bad => AnsiColor::Red.on_default(),
            Kind::Notice => AnsiColor::Yellow.on_default(),
        };
        if !self.has_colours || style == Style::new() || text.is_empty() {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }
}

/// Values of `TERM` for terminals that can only print. On these, the line editor reads whole lines.
const DUMB: [&str; 3] = ["dumb", "cons25", "emacs"];

/// Whether the terminal can only print. Off Unix, every terminal counts as one that can only print.
pub(crate) fn is_dumb() -> bool {
    let is_named = |term: String| DUMB.iter().any(|dumb| dumb.eq_ignore_ascii_case(&term));
    !cfg!(unix) || std::env::var("TERM").is_ok_and(is_named)
}

/// Whether standard input and standard output are both terminals.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Makes text of models and tools safe for a terminal: removes control characters, which move the cursor or change colors, and characters
/// that change the direction of text.
pub(crate) fn harmless(text: &str) -> String {
    let is_fine = |c: &char| *c == '\n' || !(c.is_control() || is_direction(*c));
    text.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(is_fine).collect()
}

/// Makes text safe like [`harmless`], and puts it on one line.
pub(crate) fn one_line(text: &str) -> String {
    harmless(&text.replace(['\n', '\r'], " "))
}

/// Whether a character changes the direction of text, so that the text looks different from what it is.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}')
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

pub(crate) fn width_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The beginning of a text, as much as fits, with `…` if the rest is cut off.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut cut, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += width_of(c);
        if used > columns {
            break;
        }
        cut.push(c);
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// The end of a text, as much as fits, with `…` if the beginning is cut off.
pub(crate) fn fit_end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let kept = text.chars().rev().take_while(|c| {
        used += width_of(*c);
        used <= columns
    });
    let mut cut: Vec<char> = kept.collect();
    if columns > 0 {
        cut.push('…');
    }
    cut.into_iter().rev().collect()
}

/// A number with a unit in words: `1 turn`, `2 turns`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_does_no_harm() {
        assert_eq!(harmless("a\x1b[2J\tb\r\n\u{202e}c\u{9b}1m"), "a[2J b\nc1m");
        assert_eq!(one_line("a\r\nb"), "a  b");
    }

    #[test]
    fn text_is_cut_to_what_fits() {
        for (text, columns, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 4, "日…"), ("ab", 1, "…"), ("ab", 0, "")]
        {
            assert_eq!(fit(text, columns), expected, "{text} in {columns}");
            assert!(width(&fit(text, columns)) <= columns);
        }
        assert_eq!(fit_end("abcd", 3), "…cd");
        assert_eq!(fit_end("日本語", 4), "…語");
        assert_eq!(fit_end("ab", 0), "");
    }

    #[test]
    fn colours_are_left_out() {
        assert_eq!(Look { has_colours: false }.paint(Kind::Bad, "x"), "x");
        assert_eq!(Look { has_colours: true }.paint(Kind::Said, "x"), "x");
        assert_eq!(Look { has_colours: true }.paint(Kind::Dim, "x"), "\u{1b}[2mx\u{1b}[0m");
    }
}
