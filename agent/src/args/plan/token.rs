//! Compares names with JSON text, eight bytes at a time.
#![expect(clippy::inline_always, reason = "a few instructions")]

use serde_json::Value;

/// A name as it usually appears in JSON text: a key with its colon, `"name":`, or a value, `"name"`.
#[derive(Debug)]
pub(crate) struct NameToken {
    /// A comma, followed by the token.
    text: Box<str>,
    head: TokenHead,
    after_comma: TokenHead,
    /// The last eight bytes of the token; 0 if the token has fewer.
    tail: u64,
}

/// The first bytes of a token, at most eight.
#[derive(Debug)]
struct TokenHead {
    bytes: u64,
    mask: u64,
}

impl TokenHead {
    fn of(text: &[u8]) -> TokenHead {
        let mask = if text.len() >= WORD { u64::MAX } else { (1 << (8 * text.len())) - 1 };
        TokenHead { bytes: word_at(text, 0), mask }
    }

    #[inline(always)]
    fn is_in(&self, word: u64) -> bool {
        // Past the end of the text, `word` has zero bytes, which no token contains.
        (word ^ self.bytes) & self.mask == 0
    }
}

pub(super) const WORD: usize = size_of::<u64>();

impl NameToken {
    pub(crate) fn key(name: &str) -> NameToken {
        NameToken::new(&format!("{}:", Value::from(name)))
    }

    pub(crate) fn value(name: &str) -> NameToken {
        NameToken::new(&Value::from(name).to_string())
    }

    fn new(token: &str) -> NameToken {
        let text = format!(",{token}");
        let tail = token.as_bytes().last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
        let (head, after_comma) = (TokenHead::of(token.as_bytes()), TokenHead::of(text.as_bytes()));
        NameToken { head, after_comma, tail, text: text.into() }
    }

    /// Returns the token without the comma.
    pub(crate) fn text(&self) -> &str {
        self.text.get(1..).unwrap_or_default()
    }

    /// Returns the position after the token, if the text has the token at `at`.
    #[inline]
    pub(crate) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        self.end_after(word_at(text, at), text, at)
    }

    /// Like [`end`](Self::end), for a caller that has already read `word`, the eight bytes of the text at `at`.
    #[inline(always)]
    pub(crate) fn end_after(&self, word: u64, text: &[u8], at: usize) -> Option<usize> {
        if self.head.is_in(word) { self.end_at(at + self.text.len() - 1, text) } else { None }
    }

    /// Returns the position after the token, if the text has a comma at `at`, directly followed by the token.
    #[inline(always)]
    pub(crate) fn end_after_comma(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.after_comma.is_in(word_at(text, at)) { self.end_at(at + self.text.len(), text) } else { None }
    }

    /// Compares the rest of the token, and returns `end` if it matches. The caller has already compared the first seven bytes.
    #[inline(always)]
    fn end_at(&self, end: usize, text: &[u8]) -> Option<usize> {
        if self.text.len() <= WORD {
            return Some(end);
        }
        let is_same = word_at(text, end - WORD) == self.tail
            && (self.text.len() <= 2 * WORD || text.get(..end)?.ends_with(self.text().as_bytes()));
        is_same.then_some(end)
    }
}

#[inline(always)]
pub(crate) fn first_byte(word: u64) -> u8 {
    let [first, ..] = word.to_le_bytes();
    first
}

#[inline(always)]
pub(crate) fn byte_of(word: u64, index: usize) -> u8 {
    first_byte(word >> (8 * index))
}

/// Returns the number whose digits are the first `count` bytes of `word`. `count` is from 1 to 8.
#[inline(always)]
pub(crate) fn number_of(word: u64, count: usize) -> u64 {
    // The shift puts zeros before the first digit. Each further line joins pairs of neighboring numbers, so the numbers have two, then
    // four, then eight digits.
    let digits = (word ^ ZEROS) << (8 * (WORD - count));
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// Returns the eight bytes of a text from `at` on, in little-endian order. Bytes past the end of the text are zero.
#[inline(always)]
pub(crate) fn word_at(text: &[u8], at: usize) -> u64 {
    let Some(rest) = text.get(at..) else { return 0 };
    match rest.first_chunk() {
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
const ZEROS: u64 = u64::from_le_bytes([b'0'; WORD]);

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

/// Sets the highest bit of the first byte that is a quote or a backslash. The highest bits of later bytes are unreliable, and all other
/// bits are meaningless.
#[inline(always)]
fn quote_or_escape(word: u64) -> u64 {
    const QUOTES: u64 = u64::from_le_bytes([b'"'; WORD]);
    const ESCAPES: u64 = u64::from_le_bytes([b'\\'; WORD]);
    let (quote, escape) = (word ^ QUOTES, word ^ ESCAPES);
    quote.wrapping_sub(LOW) & !quote | escape.wrapping_sub(LOW) & !escape
}

#[inline(always)]
pub(crate) fn leading_digits(word: u64) -> usize {
    const ABOVE_NINE: u64 = u64::from_le_bytes([0x76; WORD]);
    let word = word ^ ZEROS;
    before_mark((word.wrapping_add(ABOVE_NINE) | word) & HIGH)
}

/// Returns the number of bytes at the start of `word` that can belong to a number without an exponent: digits, `-` and `.`. Also counts
/// `/`, which JSON never has in or after a number.
#[inline(always)]
pub(crate) fn leading_number(word: u64) -> usize {
    const FIRST: u64 = u64::from_le_bytes([b'-'; WORD]);
    const ABOVE_NINE: u64 = u64::from_le_bytes([0x7f - b'9'; WORD]);
    let below = word.wrapping_sub(FIRST) & !word;
    before_mark((below | word.wrapping_add(ABOVE_NINE) | word) & HIGH)
}

/// Returns the number of bytes before the first one whose highest bit is set; eight if there is none.
#[inline(always)]
fn before_mark(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::{
        NameToken, before_bare_quote, before_quote, before_special, byte_of, leading_digits, leading_number,
        number_of, word_at,
    };

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
                assert_eq!(leading_number(word), length, "{length} {end}");
                let is_special = is_end || end < b' ';
                assert_eq!(before_special(word), if is_special { length } else { 8 }, "{length} {end}");
            }
        }
        for byte in 0..=u8::MAX {
            let word = u64::from_le_bytes([byte; 8]);
            let is_special = byte < b' ' || matches!(byte, b'"' | b'\\');
            assert_eq!(before_special(word), if is_special { 0 } else { 8 }, "{byte}");
            assert_eq!(leading_digits(word) == 8, byte.is_ascii_digit(), "{byte}");
            let is_number = matches!(byte, b'-'..=b'9');
            assert_eq!(leading_number(word), if is_number { 8 } else { 0 }, "{byte}");
            assert_eq!((0..8).map(|index| byte_of(word, index)).max(), Some(byte));
        }
    }

    #[test]
    fn digits_spell_a_number() {
        for (text, count, number) in [
            ("7,", 1, 7),
            ("00", 2, 0),
            ("12345678", 8, 12_345_678),
            ("9999999]", 7, 9_999_999),
            ("120}", 3, 120),
        ] {
            assert_eq!(number_of(word_at(text.as_bytes(), 0), count), number, "{text}");
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
            let text_after = text.replacen('{', ",", 1);
            assert_eq!(found.end_after_comma(text_after.as_bytes(), 0), Some(end), "{text_after}");
            assert_eq!(found.end_after_comma(text_after.as_bytes(), 1), None, "{text_after}");
            assert_eq!(found.end_after_comma(text.as_bytes(), 0), None, "{text}");
            for at in 1..end {
                let mut other = text.clone().into_bytes();
                other[at] ^= 1;
                assert_eq!(found.end(&other, 1), None, "{text} {at}");
                other[0] = b',';
                assert_eq!(found.end_after_comma(&other, 0), None, "{text} {at}");
            }
            // The text ends before the token does.
            assert_eq!(found.end(&text.as_bytes()[..end - 1], 1), None, "{text}");
            assert_eq!(found.end_after_comma(&text_after.as_bytes()[..end - 1], 0), None, "{text}");
        }
    }
}
