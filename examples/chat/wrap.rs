//! Breaks lines between words, so that the terminal does not break them inside words. Code stays as it is.

use crate::look::{width, width_of};

/// Returns whether a row may end after `at` bytes: after a space, or after a character that is two columns wide, because such scripts
/// are written without spaces. A mark without width stays in the row of the wide character before it.
fn may_break(row: &str, at: usize) -> bool {
    let follows_mark = || row[at..].chars().next().is_some_and(|c| width_of(c) == 0);
    row[..at].chars().next_back().is_some_and(|c| c == ' ' || width_of(c) == 2 && !follows_mark())
}

/// Returns where the last word of a full row begins. The result is the length of the row if the row may end before `next`, or if it is a
/// single word.
fn last_word(row: &str, next: char) -> usize {
    // A wide character begins a new word, unless a zero-width joiner connects it to the character before.
    let is_joined = row.ends_with('\u{200d}');
    if next == ' ' || width_of(next) == 2 && !is_joined {
        return row.len();
    }
    let at = (1..=row.len()).rev().find(|at| row.is_char_boundary(*at) && may_break(row, *at)).unwrap_or(0);
    if row[..at].trim().is_empty() { row.len() } else { at }
}

/// Returns where the first row of a text ends if the text is too long for one row. The row ends before a word that fits into the next
/// row, and inside a word that is longer than a row. Returns `None` if the text fits into one row, or if the word at the end of the row
/// may still grow (`is_whole` is false).
pub(crate) fn first_row(text: &str, columns: usize, is_whole: bool) -> Option<usize> {
    let mut used = 0;
    let mut cells = text.char_indices();
    let (full, next) = cells.find(|(at, c)| {
        used += width_of(*c);
        used > columns && *at > 0
    })?;
    let word = last_word(&text[..full], next);
    let end = (full..text.len())
        .find(|at| text.is_char_boundary(*at) && (text[*at..].starts_with(' ') || may_break(text, *at)));
    let is_long = width(&text[word..end.unwrap_or(text.len())]) > columns;
    match end {
        _ if is_long => Some(full),
        None if !is_whole && word < full => None,
        _ => Some(word),
    }
}

/// Knows which lines are code: those between two fences, and the fences themselves.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    /// The marks that opened the current code block, if there is one.
    open: Option<&'static str>,
}

impl Fences {
    /// Returns whether this line is code. Call it for each line, in order.
    pub(crate) fn is_code(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(fence) = self.open {
            if line.starts_with(fence) && line.trim_start_matches(&fence[..1]).is_empty() {
                self.open = None;
            }
            return true;
        }
        // A line with another backtick after its marks contains inline code, and is not a fence.
        let is_fence = |fence: &&str| line.strip_prefix(*fence).is_some_and(|info| !info.contains('`'));
        self.open = ["```", "~~~"].into_iter().find(is_fence);
        self.open.is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// Breaks a line into rows of at most `columns`. The line may contain color codes. Further rows are indented like the first. A word that
/// is longer than a row is broken.
pub(crate) fn rows(line: &str, columns: usize) -> Vec<String> {
    if line.len() <= columns || width(&unpainted(line)) <= columns {
        return vec![line.to_owned()];
    }
    let (cells, last_paint) = cells(line);
    let indent = cells.iter().take_while(|(_, c)| *c == ' ').count();
    let mut start = indent;
    // At most a third of a narrow terminal is indentation.
    let indent = " ".repeat(indent.min(columns / 3));
    let mut rows = Vec::new();
    let mut row: String = cells[..start].iter().map(|(paint, _)| *paint).collect();
    while start < cells.len() {
        // One row needs only the next few characters, and the line may be very long.
        let text: String = cells[start..].iter().take(4 * columns + 16).map(|(_, c)| c).collect();
        let kept = first_row(&text, columns - indent.len(), true).map_or(&*text, |end| &text[..end]);
        let shown = start + kept.trim_end().chars().count();
        let end = start + kept.chars().count();
        // Spaces between two rows are left out, but their color codes are kept.
        let next = end + cells[end..].iter().take_while(|(_, c)| *c == ' ').count();
        row.push_str(&indent);
        for (at, (paint, c)) in (start..next).zip(&cells[start..next]) {
            row.push_str(paint);
            if at < shown {
                row.push(*c);
            }
        }
        rows.push(std::mem::take(&mut row));
        start = next;
    }
    // A line of spaces has no rows so far: only its color codes are left.
    row.push_str(last_paint);
    match rows.last_mut() {
        Some(last) => last.push_str(&row),
        None => rows.push(row),
    }
    rows
}

/// Splits a line into its characters, each with the escape sequences before it, and the escape sequences at the end of the line.
fn cells(line: &str) -> (Vec<(&str, char)>, &str) {
    let (mut cells, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(c) = line[at..].chars().next() {
        if let Some(paint) = painted(&line[at..]) {
            at += paint.len();
            continue;
        }
        cells.push((&line[from..at], c));
        at += c.len_utf8();
        from = at;
    }
    (cells, &line[from..])
}

/// Returns the color code that a text begins with.
fn painted(text: &str) -> Option<&str> {
    let end = text.strip_prefix("\x1b[")?.find('m')?;
    text.get(..end + 3)
}

/// Returns a line without its color codes.
pub(crate) fn unpainted(line: &str) -> String {
    cells(line).0.into_iter().map(|(_, c)| c).collect()
}

/// Splits texts at line ends, and breaks the lines into rows of at most `columns`. Lines of code stay whole.
pub(crate) fn wrapped(lines: &[String], columns: usize) -> Vec<String> {
    let mut fences = Fences::default();
    let mut wrap = |line: &str| {
        if fences.is_code(&unpainted(line)) { vec![line.to_owned()] } else { rows(line, columns) }
    };
    lines
        .iter()
        .flat_map(|line| if line.is_empty() { vec![""] } else { line.split('\n').collect::<Vec<_>>() })
        .flat_map(&mut wrap)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::{Kind, Look};

    #[test]
    fn lines_are_broken_between_words() {
        for (line, columns, expected) in [
            ("one two three four", 10, &["one two", "three four"][..]),
            ("  one two three", 9, &["  one two", "  three"]),
            ("bound-less things", 12, &["bound-less", "things"]),
            ("one two", 7, &["one two"]),
            ("", 5, &[""]),
            ("see abcdefghijkl end", 8, &["see abcd", "efghijkl", "end"]),
            ("see abcdefgh end", 8, &["see", "abcdefgh", "end"]),
            ("a  b", 1, &["a", "b"]),
            ("          ", 4, &[""]),
            ("          deep", 9, &["   deep"]),
            ("日本語 is wide", 8, &["日本語", "is wide"]),
            ("see 日本語日本語", 8, &["see 日本", "語日本語"]),
            ("ab 日", 1, &["a", "b", "日"]),
            ("👩\u{200d}👩\u{200d}👧 and more", 8, &["👩\u{200d}👩\u{200d}👧", "and more"]),
            ("cafe\u{301} noir", 5, &["cafe\u{301}", "noir"]),
        ] {
            assert_eq!(rows(line, columns), expected, "{line:?} in {columns}");
        }
    }

    #[test]
    fn no_row_is_wider_than_the_terminal_and_nothing_is_lost() {
        let line = "  Words, 日本語, a-very-long-word-that-fits-nowhere-at-all, \u{1f600}\u{1f600} and cafe\u{301}s.";
        let all = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
        for columns in 2..60 {
            for painted in [line.to_owned(), Look { has_colours: true }.paint(Kind::Bad, line)] {
                let rows = rows(&painted, columns);
                for row in &rows {
                    assert!(width(&unpainted(row)) <= columns, "{row:?} in {columns}");
                }
                assert_eq!(all(&rows.concat()), all(&painted), "{columns}");
            }
        }
    }

    #[test]
    fn colours_have_no_width_and_go_on_in_the_next_row() {
        let look = Look { has_colours: true };
        let painted = look.paint(Kind::Bad, "red");
        assert_eq!(unpainted(&format!("a {painted} b")), "a red b");
        assert_eq!(rows(&format!("a {painted} b"), 7), [format!("a {painted} b")]);
        assert_eq!(
            rows(&look.paint(Kind::Dim, "one two three"), 8),
            ["\u{1b}[2mone two".to_owned(), "three\u{1b}[0m".to_owned()]
        );
        assert_eq!(
            rows(&format!("one {} end", look.paint(Kind::Bold, "bolder")), 8),
            [
                "one".to_owned(),
                format!("{} end", look.paint(Kind::Bold, "bolder")).replace(" end", ""),
                "end".to_owned()
            ]
        );
    }

    #[test]
    fn a_very_long_line_takes_no_longer_than_it_is() {
        let long = rows(&"word ".repeat(200_000), 50);
        assert_eq!((long.len(), long[0].len()), (20_000, 49));
        assert_eq!(rows(&"x".repeat(200_000), 50).len(), 4_000);
    }

    #[test]
    fn a_word_that_grows_is_waited_for() {
        for (text, whole, growing) in [
            ("one two", None, None),
            ("one two th", Some(8), None),
            ("one two three", Some(8), None),
            ("one two three ", Some(8), Some(8)),
            ("one two threeandfour", Some(9), Some(9)),
            ("one two   ", Some(9), Some(9)),
            ("日本 日本日", Some(13), Some(13)),
        ] {
            assert_eq!((first_row(text, 9, true), first_row(text, 9, false)), (whole, growing), "{text}");
        }
    }

    #[test]
    fn code_stays_as_it_is() {
        let text = "so long a line\n```a``` and b\n```rust\nlet a = 1 + 2 + 3;\n``\n~~~\n```\nand one more";
        let lines = wrapped(&[text.to_owned(), "  two words".to_owned()], 8);
        let expected = [
            "so long",
            "a line",
            "```a```",
            "and b",
            "```rust",
            "let a = 1 + 2 + 3;",
            "``",
            "~~~",
            "```",
            "and one",
            "more",
            "  two",
            "  words",
        ];
        assert_eq!(lines, expected);
    }
}
