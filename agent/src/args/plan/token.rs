//! Keys as they are usually written, compared with a text in a few instructions.

use serde_json::Value;

/// The name of a parameter as JSON, with its colon and without blanks: `"name":`.
#[derive(Debug)]
pub(crate) struct KeyToken {
    text: Box<[u8]>,
    /// The first bytes, at most eight of them.
    head: u64,
    /// The bits of `head` that count.
    mask: u64,
    /// The last eight bytes, of a token that has as many.
    tail: u64,
}

const WORD: usize = size_of::<u64>();

impl KeyToken {
    pub(crate) fn new(name: &str) -> KeyToken {
        let text: Box<[u8]> = format!("{}:", Value::from(name)).into_bytes().into();
        let mut padded = [0; WORD];
        let length = text.len().min(WORD);
        padded[..length].copy_from_slice(&text[..length]);
        let mask = if length == WORD { u64::MAX } else { (1 << (8 * length)) - 1 };
        let tail = text.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
        KeyToken { text, head: u64::from_le_bytes(padded), mask, tail }
    }

    /// Returns the position after the token, if the text has it at this position.
    #[inline]
    pub(crate) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        // No token has a byte that is zero, as words have after the end of the text.
        if (word_at(text, at) ^ self.head) & self.mask != 0 {
            return None;
        }
        let end = at + self.text.len();
        if self.text.len() > WORD {
            let is_same = word_at(text, end - WORD) == self.tail
                && (self.text.len() <= 2 * WORD || text.get(at..end)? == &*self.text);
            if !is_same {
                return None;
            }
        }
        Some(end)
    }
}

/// Returns eight bytes of a text from a position; those after its end are zero.
#[inline(always)]
#[expect(clippy::inline_always, reason = "one load")]
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
        // The last eight bytes, without those before the position.
        Some(word) if left > 0 => u64::from_le_bytes(*word) >> (8 * (WORD - left)),
        _ => text.iter().skip(at).rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyToken, word_at};

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
    fn a_token_is_found_where_it_is_written() {
        for name in ["", "a", "four", "seven77", "eight888", "fourteen letters", "é\"x", &"long ".repeat(9)] {
            let token = format!("{}:", serde_json::Value::from(name));
            let text = format!("{{{token} 123456789}}");
            let (found, end) = (KeyToken::new(name), 1 + token.len());
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
