//! Names as they are usually written in JSON, compared with a text in a few instructions.
#![expect(clippy::inline_always, reason = "a few instructions")]

use serde_json::Value;

/// A name as JSON: a key with its colon and without blanks, `"name":`, or a value, `"name"`.
#[derive(Debug)]
pub(crate) struct NameToken {
    text: Box<str>,
    /// The first bytes, at most eight of them.
    head: u64,
    /// The bits of `head` that belong to the token.
    mask: u64,
    /// The last eight bytes; zero for a shorter token.
    tail: u64,
}

pub(super) const WORD: usize = size_of::<u64>();

impl NameToken {
    pub(crate) fn key(name: &str) -> NameToken {
        NameToken::new(format!("{}:", Value::from(name)))
    }

    pub(crate) fn value(name: &str) -> NameToken {
        NameToken::new(Value::from(name).to_string())
    }

    fn new(text: String) -> NameToken {
        let bytes = text.as_bytes();
        let mut padded = [0; WORD];
        let length = bytes.len().min(WORD);
        padded[..length].copy_from_slice(&bytes[..length]);
        let mask = if length == WORD { u64::MAX } else { (1 << (8 * length)) - 1 };
        let tail = bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
        NameToken { head: u64::from_le_bytes(padded), mask, tail, text: text.into() }
    }

    /// Returns the token as it is written: a key with its colon, or a value.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the position after the token, if the text has it at this position.
    #[inline]
    pub(crate) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        self.end_after(word_at(text, at), text, at)
    }

    /// Returns the position after the token, if the text has it at this position. `word` is the word at the position, which
    /// callers read once for several tokens.
    #[inline(always)]
    pub(crate) fn end_after(&self, word: u64, text: &[u8], at: usize) -> Option<usize> {
        // Words have zero bytes after the end of the text. No token has a zero byte, so it does not match there.
        if (word ^ self.head) & self.mask != 0 {
            return None;
        }
        let end = at + self.text.len();
        if self.text.len() > WORD {
            let is_same = word_at(text, end - WORD) == self.tail
                && (self.text.len() <= 2 * WORD || text.get(at..end)? == self.text.as_bytes());
            if !is_same {
                return None;
            }
        }
        Some(end)
    }
}

/// Returns eight bytes of a text from a position. Bytes after the end of the text are zero.
#[inline(always)]
pub(crate) fn word_at(text: &[u8], at: usize) -> u64 {
    match text.get(at..).and_then(<[u8]>::first_chunk) {
        Some(word) => u64::from_le_bytes(*word),
        None => last_word(text, at),
    }
}

#[inline(never)]
fn last_word(text: &[u8], at: usize) -> u64 {
    let left = text.len().saturating_sub(at);
    match text.last_chunk() {
        // Removes the bytes before the position from the last eight bytes.
        Some(word) if left > 0 => u64::from_le_bytes(*word) >> (8 * (WORD - left)),
        _ => text.iter().skip(at).rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

const LOW: u64 = u64::from_le_bytes([0x01; WORD]);
const HIGH: u64 = u64::from_le_bytes([0x80; WORD]);

/// Returns the number of bytes before the first quote or escape; eight if there is none.
#[inline(always)]
pub(crate) fn before_quote(word: u64) -> usize {
    before_mark(quote_or_escape(word) & HIGH)
}

/// Returns the number of bytes before the first quote; eight if there is none.
#[inline(always)]
pub(super) fn before_bare_quote(word: u64) -> usize {
    const QUOTES: u64 = u64::from_le_bytes([b'"'; WORD]);
    let quote = word ^ QUOTES;
    before_mark(quote.wrapping_sub(LOW) & !quote & HIGH)
}

/// Returns the number of bytes before the first quote, escape or control character; eight if there is none. The zero bytes
/// after the end of a text are control characters.
#[inline(always)]
pub(crate) fn before_special(word: u64) -> usize {
    const SPACES: u64 = u64::from_le_bytes([b' '; WORD]);
    let control = word.wrapping_sub(SPACES) & !word;
    before_mark((control | quote_or_escape(word)) & HIGH)
}

/// Marks the bytes of a word that are a quote or an escape. Only the lowest mark is exact.
#[inline(always)]
fn quote_or_escape(word: u64) -> u64 {
    const QUOTES: u64 = u64::from_le_bytes([b'"'; WORD]);
    const ESCAPES: u64 = u64::from_le_bytes([b'\\'; WORD]);
    let (quote, escape) = (word ^ QUOTES, word ^ ESCAPES);
    quote.wrapping_sub(LOW) & !quote | escape.wrapping_sub(LOW) & !escape
}

/// Returns the number of digits before the first other byte.
#[inline(always)]
pub(crate) fn leading_digits(word: u64) -> usize {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; WORD]);
    const ABOVE_NINE: u64 = u64::from_le_bytes([0x76; WORD]);
    let word = word ^ ZEROS;
    before_mark((word.wrapping_add(ABOVE_NINE) | word) & HIGH)
}

/// Returns the index of the byte with the lowest mark, which is the only exact mark; eight if there is no mark.
#[inline(always)]
fn before_mark(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::{NameToken, before_bare_quote, before_quote, before_special, leading_digits, word_at};

    #[test]
    fn words_end_with_the_text() {
        let text = b"0123456789abcdef";
        for length in 0..=text.len() {
            let text = &text[..length];
            for at in 0..length + 3 {
                let mut expected = [0; 8];
                for (to, from) in expected.iter_mut().zip(text.iter().skip(at)) {
                    *to = *from;
                }
                assert_eq!(word_at(text, at), u64::from_le_bytes(expected), "{length} {at}");
            }
        }
    }

    #[test]
    fn bytes_before_the_first_of_a_kind_are_counted() {
        for length in 0..=8 {
            for end in [b'"', b'\\', b'!', b'#', b'[', b']', 0xa2, 0xdc, 0x00] {
                let mut word = [b'5'; 8];
                word[length..].fill(end);
                let word = u64::from_le_bytes(word);
                let is_end = matches!(end, b'"' | b'\\');
                assert_eq!(before_quote(word), if is_end { length } else { 8 }, "{length} {end}");
                assert_eq!(before_bare_quote(word), if end == b'"' { length } else { 8 }, "{length} {end}");
                assert_eq!(leading_digits(word), length, "{length} {end}");
                let is_special = is_end || end < b' ';
                assert_eq!(before_special(word), if is_special { length } else { 8 }, "{length} {end}");
            }
        }
        for byte in 0..=u8::MAX {
            let word = u64::from_le_bytes([byte; 8]);
            let is_special = byte < b' ' || matches!(byte, b'"' | b'\\');
            assert_eq!(before_special(word), if is_special { 0 } else { 8 }, "{byte}");
            assert_eq!(leading_digits(word) == 8, byte.is_ascii_digit(), "{byte}");
        }
    }

    #[test]
    fn a_token_is_found_where_it_is_written() {
        for name in ["", "a", "four", "seven77", "eight888", "fourteen letters", "é\"x", &"long ".repeat(9)]
        {
            let token = format!("{}:", serde_json::Value::from(name));
            let text = format!("{{{token} 123456789}}");
            let (found, end) = (NameToken::key(name), 1 + token.len());
            assert_eq!(found.end(text.as_bytes(), 1), Some(end), "{text}");
            assert_eq!(found.end(text.as_bytes(), 0), None, "{text}");
            assert_eq!(found.end(text.as_bytes(), 2), None, "{text}");
            // Every other byte is another token.
            for at in 1..end {
                let mut other = text.clone().into_bytes();
                other[at] ^= 1;
                assert_eq!(found.end(&other, 1), None, "{text} {at}");
            }
            // Not enough text to compare.
            assert_eq!(found.end(&text.as_bytes()[..end - 1], 1), None, "{text}");
        }
    }
}
