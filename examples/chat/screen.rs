//! The output of a run: text that grows row by row, complete lines, and temporary rows below them.
//!
//! Finished output is printed once and scrolls away. The rows below it (the growing row, a spinner for each call, the input line) are
//! redrawn each time. Each is truncated to the width, so that their number is known.

use crate::look::{Kind, Look, fit, fit_end, harmless, width, width_of};
use crate::wrap::{self, Fences, first_row, wrapped};
use std::io::{self, Write};

/// The place where a run is shown.
pub(crate) trait Show {
    /// Appends text of this kind directly after the last piece.
    fn text(&mut self, kind: Kind, text: &str);
    /// Ends the text.
    fn end_text(&mut self);
    /// Shows a separate line, which is painted already.
    fn line(&mut self, line: &str);
}

/// A line of code is printed as one line up to this number of columns. The terminal wraps it, so it can be copied as one line.
const CODE: usize = 4096;

/// Precedes each row of a model's thinking, which is then recognizable without colors too.
const MARGIN: &str = "┆ ";

/// The terminal during a run.
pub(crate) struct Screen<W> {
    out: W,
    pub(crate) look: Look,
    columns: usize,
    rows: usize,
    /// Finished rows that are not printed yet.
    finished: String,
    /// The row that grows.
    row: String,
    row_width: usize,
    /// Whether the line that the row belongs to has rows above it.
    is_continued: bool,
    fences: Fences,
    kind: Kind,
    /// Whether a text has begun.
    is_open: bool,
    /// The rows below the growing row.
    below: Vec<String>,
    /// How many drawn rows the next drawing replaces.
    drawn: usize,
    is_stale: bool,
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(out: W, look: Look, (columns, rows): (u16, u16)) -> Self {
        let mut screen = Self {
            out,
            look,
            columns: 80,
            rows: 24,
            finished: String::new(),
            row: String::new(),
            row_width: 0,
            is_continued: false,
            fences: Fences::default(),
            kind: Kind::Said,
            is_open: false,
            below: Vec::new(),
            drawn: 0,
            is_stale: false,
        };
        screen.resize(columns, rows);
        screen
    }

    /// Sets the size of the terminal. A size of 0 is unknown: 80 columns or 24 rows are assumed.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = if columns == 0 { 80 } else { columns.into() };
        self.rows = if rows == 0 { 24 } else { rows.into() };
        self.is_stale = true;
    }

    /// How many columns a row may fill. The last column stays free: terminals differ in where the cursor is after it.
    pub(crate) fn columns(&self) -> usize {
        self.columns.saturating_sub(1).max(1)
    }

    /// Sets the rows below the growing row. They are painted already and at most [`columns`](Self::columns) wide.
    pub(crate) fn below(&mut self, rows: Vec<String>) {
        if self.below != rows {
            self.below = rows;
            self.is_stale = true;
        }
    }

    /// Draws the changes. Writes nothing if nothing changed.
    pub(crate) fn draw(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_stale) {
            return Ok(());
        }
        let mut frame = String::new();
        if self.drawn > 0 {
            frame.push('\r');
            if self.drawn > 1 {
                frame = format!("\r\x1b[{}A", self.drawn - 1);
            }
            frame.push_str("\x1b[J");
        }
        frame.push_str(&std::mem::take(&mut self.finished));
        let most = self.rows.saturating_sub(1).max(1);
        let growing = if self.row.is_empty() {
            Vec::new()
        } else if self.fences.is_open() {
            // While a line of code grows, only its end is shown if the line is longer than a row.
            vec![fit_end(&self.row, self.room())]
        } else {
            // While the last word grows and no longer fits, it is drawn in the next row.
            wrap::rows(&self.row, self.room())
        };
        let growing = growing.iter().map(|row| self.painted(row));
        let rows: Vec<String> = growing.chain(self.below.iter().cloned()).collect();
        // If not all rows fit, the last ones are shown: the input line is there.
        let shown = &rows[rows.len().saturating_sub(most)..];
        frame.push_str(&shown.join("\r\n"));
        self.drawn = shown.len();
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    /// Prints everything and removes the rows below. The cursor is then at the beginning of an empty row.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.end_text();
        self.below.clear();
        self.is_stale = true;
        self.draw()?;
        self.drawn = 0;
        Ok(())
    }

    fn painted(&self, row: &str) -> String {
        let margin = if self.kind == Kind::Dim { MARGIN } else { "" };
        self.look.paint(self.kind, &format!("{margin}{row}"))
    }

    fn room(&self) -> usize {
        let margin = if self.kind == Kind::Dim { width(MARGIN) } else { 0 };
        self.columns().saturating_sub(margin).max(1)
    }

    fn finish_row(&mut self) {
        let row = self.painted(&self.row);
        self.finished.push_str(&row);
        self.finished.push_str("\r\n");
        self.row.clear();
        self.row_width = 0;
    }

    /// Ends the current line: breaks it into rows and finishes the last one.
    fn finish_line(&mut self) {
        let is_code = self.fences.is_open();
        // A fence usually fits into one row, so a line of several rows is not checked.
        if !std::mem::take(&mut self.is_continued) {
            self.fences.is_code(&self.row);
        }
        if !is_code {
            self.break_rows(true);
        }
        self.finish_row();
    }

    /// Finishes the rows that are full. A word that does not fit moves to the next row.
    /// `is_whole`: the last word does not grow any more.
    fn break_rows(&mut self, is_whole: bool) {
        while let Some(end) = first_row(&self.row, self.room(), is_whole) {
            let rest = self.row.split_off(end).trim_start_matches(' ').to_owned();
            self.row.truncate(self.row.trim_end().len());
            self.finish_row();
            self.is_continued = true;
            self.row_width = width(&rest);
            self.row = rest;
        }
    }

    fn push(&mut self, c: char) {
        if c == '\n' {
            return self.finish_line();
        }
        // The line was broken between two words, so the space between them is left out.
        if c == ' ' && self.row.is_empty() && self.is_continued {
            return;
        }
        self.row.push(c);
        self.row_width += width_of(c);
        if self.fences.is_open() {
            if self.row_width > CODE {
                self.finish_row();
                self.is_continued = true;
            }
        } else if self.row_width > self.room() {
            self.break_rows(false);
        }
    }
}

impl<W: Write> Show for Screen<W> {
    fn text(&mut self, kind: Kind, text: &str) {
        if kind != self.kind {
            self.end_text();
            self.kind = kind;
        }
        let text = harmless(text);
        // A reply often begins with empty lines, which are left out.
        let text = if self.is_open { &*text } else { text.trim_start() };
        if text.is_empty() {
            return;
        }
        self.is_open = true;
        text.chars().for_each(|c| self.push(c));
        self.is_stale = true;
    }

    fn end_text(&mut self) {
        if !self.row.is_empty() {
            self.finish_line();
            self.is_stale = true;
        }
        self.is_open = false;
        // A fence that this text leaves open does not make the next text code.
        (self.is_continued, self.fences) = (false, Fences::default());
    }

    fn line(&mut self, line: &str) {
        self.end_text();
        for row in wrapped(&[line.to_owned()], self.columns()) {
            self.finished.push_str(&row);
            self.finished.push_str("\r\n");
        }
        self.is_stale = true;
    }
}

/// Output without redrawing: the answer is written to `answer` as it arrives, everything else to `notes`.
pub(crate) struct Plain<A, N> {
    answer: A,
    notes: N,
    /// Whether the answer is written to a terminal, so that control characters are removed from it.
    is_seen: bool,
    /// Whether a text has begun that has not ended yet.
    is_open: bool,
    thinks: bool,
    /// The first error while writing text, such as a closed pipe.
    pub(crate) failed: Option<io::Error>,
}

impl<A: Write, N: Write> Plain<A, N> {
    pub(crate) fn new(answer: A, notes: N, is_seen: bool) -> Self {
        Self { answer, notes, is_seen, is_open: false, thinks: false, failed: None }
    }

    fn keep(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl<A: Write, N: Write> Show for Plain<A, N> {
    fn text(&mut self, kind: Kind, text: &str) {
        let thinks = kind == Kind::Dim;
        if thinks != self.thinks {
            self.end_text();
            self.thinks = thinks;
        }
        let harmless = if self.is_seen || thinks { harmless(text) } else { text.to_owned() };
        let text = if self.is_open { &*harmless } else { harmless.trim_start() };
        if text.is_empty() {
            return;
        }
        let written = if thinks {
            let begin = if self.is_open { "" } else { MARGIN };
            let text = text.replace('\n', &format!("\n{MARGIN}"));
            write!(self.notes, "{begin}{text}").and_then(|()| self.notes.flush())
        } else {
            write!(self.answer, "{text}").and_then(|()| self.answer.flush())
        };
        self.is_open = true;
        self.keep(written);
    }

    fn end_text(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let written = if self.thinks {
                writeln!(self.notes)
            } else {
                writeln!(self.answer).and_then(|()| self.answer.flush())
            };
            self.keep(written);
        }
    }

    fn line(&mut self, line: &str) {
        self.end_text();
        // A failure to write a note does not end the run.
        let _ = writeln!(self.notes, "{line}");
    }
}

/// Returns how many rows this text takes on a terminal that is `columns` wide.
pub(crate) fn rows_of(line: &str, columns: usize) -> usize {
    line.lines().map(|line| width(line).div_ceil(columns.max(1)).max(1)).sum::<usize>().max(1)
}

/// A row for [`Screen::below`]: the text, cut to fit.
pub(crate) fn below(look: Look, kind: Kind, text: &str, columns: usize) -> String {
    look.paint(kind, &fit(text, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: u16, pieces: &[(Kind, &str)]) -> String {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out, Look { has_colours: false }, (columns, 5));
        for (kind, text) in pieces {
            screen.text(*kind, text);
        }
        screen.close().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_go_to_the_next_row() {
        let said = |text| shown(11, &[(Kind::Said, text)]);
        assert_eq!(said("one two three four"), "one two\r\nthree four\r\n");
        assert_eq!(said("abcdefghijklmnop q"), "abcdefghij\r\nklmnop q\r\n");
        assert_eq!(said("\n\na\n\n  b"), "a\r\n\r\n  b\r\n");
        assert_eq!(said("日本語日本語"), "日本語日本\r\n語\r\n");
        assert_eq!(shown(1, &[(Kind::Said, "ab 日")]), "a\r\nb\r\n日\r\n");
        assert_eq!(said("one twoandthree"), "one twoand\r\nthree\r\n");
        assert_eq!(said("a verylong b"), "a verylong\r\nb\r\n");
        assert_eq!(said("日 verylong b"), "日\r\nverylong b\r\n");
        assert_eq!(shown(11, &[(Kind::Said, "one two th"), (Kind::Said, "ree")]), "one two\r\nthree\r\n");
    }

    #[test]
    fn lines_and_code_are_broken_as_they_may_be() {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out, Look { has_colours: false }, (11, 5));
        screen.line("✗ an error of words\nof two lines");
        // A stream arrives in pieces.
        for c in "```\nlet sum = one + two;\n```\nthat was the code".chars() {
            screen.text(Kind::Said, c.encode_utf8(&mut [0; 4]));
        }
        screen.text(Kind::Said, "\n```\nopen and too long");
        screen.draw().unwrap();
        // The open fence does not make the next text code.
        screen.end_text();
        screen.text(Kind::Said, "another text");
        screen.close().unwrap();
        let text = String::from_utf8(out).unwrap().replace("…and too long", "").replace("\r\x1b[J", "");
        let rows: Vec<&str> = text.split("\r\n").collect();
        let expected = [
            "✗ an error",
            "of words",
            "of two",
            "lines",
            "```",
            "let sum = one + two;",
            "```",
            "that was",
            "the code",
            "```",
            "… too longopen and too long",
            "another",
            "text",
            "",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn thinking_has_a_margin_and_ends_where_speech_begins() {
        let text = shown(12, &[(Kind::Dim, "I should look it up"), (Kind::Said, "Hi\x1b[2J")]);
        assert_eq!(text, "┆ I should\r\n┆ look it\r\n┆ up\r\nHi[2J\r\n");
    }

    #[test]
    fn rows_below_are_drawn_anew_and_taken_away() {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out, Look { has_colours: false }, (20, 3));
        screen.text(Kind::Said, "growing");
        screen.below(vec!["one".into(), "two".into()]);
        screen.draw().unwrap();
        screen.draw().unwrap();
        screen.line("a line");
        screen.close().unwrap();
        let text = String::from_utf8(out).unwrap();
        // The terminal has three rows. Two of them are used, so that the cursor never leaves the screen.
        assert_eq!(text, "one\r\ntwo\r\x1b[1A\x1b[Jgrowing\r\na line\r\n");
    }

    #[test]
    fn without_a_terminal_the_answer_stands_alone() {
        let (mut answer, mut notes) = (Vec::new(), Vec::new());
        let mut plain = Plain::new(&mut answer, &mut notes, false);
        plain.text(Kind::Dim, "hm\nhm");
        plain.text(Kind::Said, "It is \x1b[1m");
        plain.text(Kind::Said, "warm.");
        plain.line("a note");
        assert!(plain.failed.is_none());
        assert_eq!(String::from_utf8(answer).unwrap(), "It is \x1b[1mwarm.\n");
        assert_eq!(String::from_utf8(notes).unwrap(), "┆ hm\n┆ hm\na note\n");
    }
}
