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

    /// Returns the position after the token, if the text has it at this position. `None` says nothing within the last eight bytes of
    /// the text.
    #[inline]
    pub(crate) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        if (word_at(text, at)? ^ self.head) & self.mask != 0 {
            return None;
        }
        let end = at + self.text.len();
        if self.text.len() > WORD {
            let is_same = word_at(text, end - WORD)? == self.tail
                && (self.text.len() <= 2 * WORD || text.get(at..end)? == &*self.text);
            if !is_same {
                return None;
            }
        }
        Some(end)
    }
}

#[inline]
fn word_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::KeyToken;

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
