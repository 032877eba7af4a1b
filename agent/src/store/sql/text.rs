//! Texts as values of columns.

/// The character before an escaped one.
const ESCAPE: char = '\u{1a}';

/// Returns a text as a column keeps it. NUL, which Postgres does not accept in a text, is escaped in both databases, so that
/// the same texts are the same rows in every store.
pub(super) fn column(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for char in text.chars() {
        match char {
            '\0' => out.extend([ESCAPE, '0']),
            ESCAPE => out.extend([ESCAPE, ESCAPE]),
            char => out.push(char),
        }
    }
    out
}

/// Returns the text that a column keeps.
pub(super) fn text(column: String) -> String {
    if !column.contains(ESCAPE) {
        return column;
    }
    let mut out = String::with_capacity(column.len());
    let mut chars = column.chars();
    while let Some(char) = chars.next() {
        match char {
            ESCAPE => match chars.next() {
                Some('0') => out.push('\0'),
                other => out.extend(other),
            },
            char => out.push(char),
        }
    }
    out
}

/// Returns an optional text as a column keeps it. `None` is the empty column; an empty text is an escape alone.
pub(super) fn optional_column(text: Option<&str>) -> String {
    match text {
        None => String::new(),
        Some("") => ESCAPE.to_string(),
        Some(text) => column(text),
    }
}

/// Returns the optional text that a column keeps.
pub(super) fn optional_text(column: String) -> Option<String> {
    (!column.is_empty()).then(|| text(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_goes_both_ways_and_no_two_become_one() {
        let texts = ["", "a", "\0", "\u{1a}", "\u{1a}0", "\0\u{1a}", "a\0b", "\u{1a}\u{1a}", "é\0"];
        let mut columns: Vec<String> = Vec::new();
        for own in texts {
            let kept = column(own);
            assert!(!kept.contains('\0'));
            assert_eq!(text(kept.clone()), own);
            columns.push(kept);
            let kept = optional_column(Some(own));
            assert_eq!(optional_text(kept.clone()).as_deref(), Some(own));
            assert_ne!(kept, "");
        }
        columns.sort_unstable();
        columns.dedup();
        assert_eq!(columns.len(), texts.len());
        assert_eq!(optional_text(optional_column(None)), None);
        assert_eq!(column("plain"), "plain");
    }
}
