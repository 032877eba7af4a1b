//! Recognizes short, frequent values in JSON text by comparing a few bytes at once.
#![expect(clippy::inline_always, reason = "a few instructions for most of the values in arguments")]

use super::token::{
    WORD, before_quote, byte_of, first_byte, leading_digits, leading_number, number_of, word_at,
};
use crate::args::rounding::SAFE_DIGITS;

/// The values of a parameter that a fast path accepts. The fast path reads at most 24 bytes of JSON text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FrequentValues {
    Nothing,
    /// Texts of up to 22 bytes without escapes.
    Texts,
    /// Integers of up to 15 digits without a sign.
    Integers(IntegerRange),
    /// Numbers of up to 15 bytes without an exponent.
    Numbers,
    Bools,
}

/// A range of 64-bit integers, all of which are accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntegerRange {
    min: i64,
    max: i64,
    /// Every integer without a sign and with at most this many digits is in the range. At most 18.
    free_digits: usize,
}

impl IntegerRange {
    /// Creates the range. It is empty if `min` is greater than `max`.
    pub(super) fn new(min: i64, max: i64) -> IntegerRange {
        let is_free =
            |digits: &u32| min <= 0 && 10_i64.checked_pow(*digits).is_some_and(|next| next - 1 <= max);
        IntegerRange { min, max, free_digits: (1..=18).take_while(is_free).count() }
    }

    #[inline]
    pub(crate) fn contains(&self, int: i64) -> bool {
        self.min <= int && int <= self.max
    }
}

impl FrequentValues {
    /// Returns the position after the value at `at`, or 0 if the value is not recognized. `head` is the eight bytes from `at` on.
    #[inline(always)]
    pub(crate) fn end(self, text: &[u8], at: usize, head: u64) -> usize {
        match self {
            FrequentValues::Nothing => 0,
            FrequentValues::Texts => text_end(text, at, head),
            FrequentValues::Integers(range) => range.end(text, at, head),
            FrequentValues::Numbers => number_end(text, at, head),
            FrequentValues::Bools => bool_end(at, head),
        }
    }
}

#[inline(always)]
fn text_end(text: &[u8], at: usize, head: u64) -> usize {
    if first_byte(head) != b'"' {
        return 0;
    }
    // Searches the seven bytes of `head` after the quote, and then up to 16 more bytes, eight at a time.
    let (mut start, mut word) = (at + 1, head >> 8);
    let mut length = before_quote(word);
    if length == WORD {
        (start, word) = (at + WORD, word_at(text, at + WORD));
        length = before_quote(word);
    }
    if length == WORD {
        (start, word) = (at + 2 * WORD, word_at(text, at + 2 * WORD));
        length = before_quote(word);
    }
    if length < WORD && byte_of(word, length) == b'"' { start + length + 1 } else { 0 }
}

impl IntegerRange {
    #[inline(always)]
    pub(crate) fn end(self, text: &[u8], at: usize, head: u64) -> usize {
        let length = leading_digits(head);
        if length == WORD {
            return self.long_end(text, at);
        }
        let ends = matches!(byte_of(head, length), b',' | b'}' | b']');
        let is_in_range =
            |length| length <= self.free_digits || self.contains(number_of(head, length).cast_signed());
        if ends && length > 0 && is_in_range(length) { at + length } else { 0 }
    }

    /// Returns the length of the integer at the start of `head`. Returns 0 if the integer may be out of range, or if no comma follows.
    #[inline(always)]
    pub(crate) fn short_length(self, head: u64) -> usize {
        let length = leading_digits(head);
        let is_short = length.wrapping_sub(1) < self.free_digits.min(WORD - 1);
        if is_short && byte_of(head, length) == b',' { length } else { 0 }
    }

    #[inline(never)]
    fn long_end(self, text: &[u8], at: usize) -> usize {
        let word = word_at(text, at + WORD);
        let length = leading_digits(word);
        let ends = length < WORD && matches!(byte_of(word, length), b',' | b'}' | b']');
        if ends && WORD + length <= self.free_digits { at + WORD + length } else { 0 }
    }
}

/// Returns the length of the number at the start of `head`, or 0 if no comma follows. `head` is the next eight bytes of the text.
#[inline(always)]
pub(crate) fn short_number(head: u64) -> usize {
    let length = leading_number(head);
    if length.wrapping_sub(1) < WORD - 1 && byte_of(head, length) == b',' { length } else { 0 }
}

/// Returns the position after the number at `at`, or 0 if it has an exponent or more than [`SAFE_DIGITS`] bytes. Also accepts a text such
/// as `1-2`, which `serde_json` refuses later.
#[inline(always)]
fn number_end(text: &[u8], at: usize, head: u64) -> usize {
    let (mut length, mut after) = (leading_number(head), head);
    let mut last = length;
    if length == WORD {
        after = word_at(text, at + WORD);
        last = leading_number(after);
        length += last;
    }
    let ends = last < WORD && !matches!(byte_of(after, last), b'e' | b'E');
    if ends && length > 0 && length <= SAFE_DIGITS { at + length } else { 0 }
}

#[inline(always)]
fn bool_end(at: usize, head: u64) -> usize {
    const TRUE: u64 = u64::from_le_bytes(*b"\0\0\0\0true");
    const FALSE: u64 = u64::from_le_bytes(*b"\0\0\0false");
    match head {
        _ if head << 32 == TRUE => at + 4,
        _ if head << 24 == FALSE => at + 5,
        _ => 0,
    }
}
