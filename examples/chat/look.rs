//! Colors, and text made safe for a terminal.

use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal as _};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Paints, or does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) has_colours: bool,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What the model says.
    Said,
    /// What it thinks, and whatever is beside the point.
    Dim,
    /// What the user says.
    User,
    /// A heading, a name.
    Bold,
    Good,
    Bad,
    /// Something was changed, or somebody is asked.
    Notice,
}

impl Look {
    /// For standard output, or standard error: colours only where somebody sees them and did not ask for none.
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

/// Terminals that can do nothing but print; the line editor reads whole lines from them.
const DUMB: [&str; 3] = ["dumb", "cons25", "emacs"];

/// Whether the terminal can do nothing but print, or nothing is known of terminals on this system.
pub(crate) fn is_dumb() -> bool {
    let is_named = |term: String| DUMB.iter().any(|dumb| dumb.eq_ignore_ascii_case(&term));
    !cfg!(unix) || std::env::var("TERM").is_ok_and(is_named)
}

/// Whether somebody sits at both ends.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Text of models and tools as a terminal may have it: what moves the cursor, changes colours or the direction of writing
/// is left out.
pub(crate) fn harmless(text: &str) -> String {
    let is_fine = |c: &char| *c == '\n' || !(c.is_control() || is_direction(*c));
    text.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(is_fine).collect()
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    harmless(&text.replace(['\n', '\r'], " "))
}

/// Characters that make text read otherwise than it is.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}')
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

pub(crate) fn width_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// As much of a text as fits, with a sign where something is missing.
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

/// The end of a text, as much as fits.
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
