//! Encodes texts as values of columns.

const ESCAPE: char = '\u{1a}';

/// Escapes NUL, which Postgres does not accept in a text. SQLite accepts it, but both databases contain the same escaped text.
pub(super) fn encode(text: &str) -> String {
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

pub(super) fn decode(column: String) -> String {
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

/// Encodes `None` as an empty text, and an empty text as a single escape character.
pub(super) fn encode_optional(text: Option<&str>) -> String {
    match text {
        None => String::new(),
        Some("") => ESCAPE.to_string(),
        Some(text) => encode(text),
    }
}

pub(super) fn decode_optional(column: String) -> Option<String> {
    (!column.is_empty()).then(|| decode(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_goes_both_ways_and_no_two_become_one() {
        let texts = ["", "a", "\0", "\u{1a}", "\u{1a}0", "\0\u{1a}", "a\0b", "\u{1a}\u{1a}", "é\0"];
        let mut columns: Vec<String> = Vec::new();
        for own in texts {
            let stored = encode(own);
            assert!(!stored.contains('\0'));
            assert_eq!(decode(stored.clone()), own);
            columns.push(stored);
            let stored = encode_optional(Some(own));
            assert_eq!(decode_optional(stored.clone()).as_deref(), Some(own));
            assert_ne!(stored, "");
        }
        columns.sort_unstable();
        columns.dedup();
        assert_eq!(columns.len(), texts.len());
        assert_eq!(decode_optional(encode_optional(None)), None);
        assert_eq!(encode("plain"), "plain");
    }
}
