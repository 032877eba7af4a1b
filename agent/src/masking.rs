//! Masks secrets in texts: keys in HTTP traffic, and the secrets of a configuration in messages and errors.

use crate::quoted::quoted_forms;

const REDACTED: &str = "[redacted]";

/// Minimum length, in bytes, of an incomplete secret that is masked at the end of a text. A secret may be incomplete there, because long
/// texts are cut.
const MIN_PARTIAL_SECRET: usize = 4;

#[derive(Default)]
pub(crate) struct SecretMask {
    /// Each secret in all [forms](quoted_forms) that JSON gives it, with its replacement. Longer texts come first, so that a secret that
    /// begins with another secret is masked as a whole.
    secrets: Vec<(String, String)>,
    /// The end of the input, if it may be the start of a secret or of a UTF-8 character.
    #[cfg(any(feature = "http", test))]
    held_back: Vec<u8>,
}

impl SecretMask {
    #[cfg(any(feature = "http", test))]
    pub(crate) fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut mask = Self::default();
        secrets.into_iter().for_each(|secret| mask.add(secret));
        mask
    }

    pub(crate) fn add(&mut self, secret: &str) {
        self.replace(secret, REDACTED);
    }

    pub(crate) fn replace(&mut self, secret: &str, replacement: &str) {
        if secret == replacement {
            return;
        }
        for text in quoted_forms(secret) {
            if !text.trim().is_empty() && !self.secrets.iter().any(|(known, _)| *known == text) {
                self.secrets.push((text, replacement.to_owned()));
            }
        }
        self.secrets.sort_unstable_by(|(one, _), (other, _)| {
            other.len().cmp(&one.len()).then_with(|| one.cmp(other))
        });
    }

    /// Masks the secrets in a complete text. A secret that the end of the text cuts off is also masked, if its replacement is [`REDACTED`]
    /// and at least [`MIN_PARTIAL_SECRET`] bytes are left.
    pub(crate) fn mask(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.scan(text.as_bytes(), true).0).into_owned()
    }

    #[cfg(any(feature = "http", test))]
    pub(crate) fn push(&mut self, bytes: &[u8], is_last: bool) -> String {
        self.held_back.extend_from_slice(bytes);
        let (mut shown, read) = self.scan(&self.held_back, is_last);
        self.held_back.drain(..read);
        // An incomplete UTF-8 character at the end is held back for the next piece.
        if !is_last && self.held_back.is_empty() {
            let cut = unfinished_length(&shown);
            self.held_back = shown.split_off(shown.len() - cut);
        }
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Returns the masked input, and the number of bytes that were read. Unless `is_last` is set, the end of the input is not read if a
    /// secret may begin there.
    fn scan(&self, input: &[u8], is_last: bool) -> (Vec<u8>, usize) {
        let mut begins = [false; 256];
        for (secret, _) in &self.secrets {
            secret.bytes().take(1).for_each(|byte| begins[usize::from(byte)] = true);
        }
        let (mut shown, mut at) = (Vec::with_capacity(input.len()), 0);
        while let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest.iter().position(|byte| begins[usize::from(*byte)]).unwrap_or(rest.len());
            let (plain, rest) = rest.split_at(plain);
            shown.extend_from_slice(plain);
            at += plain.len();
            let [first, ..] = rest else { break };
            let found = self.secrets.iter().find(|(secret, replacement)| {
                rest.starts_with(secret.as_bytes())
                    || (secret.as_bytes().starts_with(rest)
                        && (!is_last || (rest.len() >= MIN_PARTIAL_SECRET && replacement == REDACTED)))
            });
            match found {
                Some((secret, replacement)) if rest.starts_with(secret.as_bytes()) => {
                    shown.extend_from_slice(replacement.as_bytes());
                    at += secret.len();
                }
                Some(_) if !is_last => break,
                Some(_) => {
                    shown.extend_from_slice(REDACTED.as_bytes());
                    at = input.len();
                }
                None => {
                    shown.push(*first);
                    at += 1;
                }
            }
        }
        (shown, at)
    }
}

/// Returns the number of bytes at the end that belong to an incomplete UTF-8 character.
#[cfg(any(feature = "http", test))]
fn unfinished_length(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let begins = tail.iter().rposition(|byte| *byte >= 0xC0);
    begins.map_or(0, |at| {
        let (have, first) = (tail.len() - at, tail[at]);
        let wanted = if first >= 0xF0 {
            4
        } else if first >= 0xE0 {
            3
        } else {
            2
        };
        if have < wanted { have } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(secrets: &[&str], text: &str, size: usize) -> String {
        let mut mask = SecretMask::of(secrets.iter().copied());
        let mut shown: String = text.as_bytes().chunks(size).map(|piece| mask.push(piece, false)).collect();
        shown.push_str(&mask.push(&[], true));
        shown
    }

    #[test]
    fn secrets_are_taken_out_wherever_pieces_end() {
        let secrets = ["abab", "Bearer sk-1", "sk-1", "sk-123", "q\"x"];
        for (text, expected) in [
            ("xababab", "x[redacted]ab"),
            ("Bearer sk-1!", "[redacted]!"),
            ("Bearer sk-x", "Bearer sk-x"),
            ("sk-123 sk-12 sk-1", "[redacted] [redacted]2 [redacted]"),
            (r#"{"k":"q\"x"}"#, r#"{"k":"[redacted]"}"#),
            (r#"{"k":"{\"k\":\"q\\\"x\"}"}"#, r#"{"k":"{\"k\":\"[redacted]\"}"}"#),
            (r#"{"k":"q\u0022x"}"#, r#"{"k":"[redacted]"}"#),
            ("größer – 🦀", "größer – 🦀"),
            ("cut at Bearer s", "cut at [redacted]"),
            ("cut at Be", "cut at Be"),
        ] {
            for size in 1..=text.len() {
                assert_eq!(in_pieces(&secrets, text, size), expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn invalid_text_is_replaced() {
        let mut mask = SecretMask::default();
        assert_eq!(mask.push(b"a\xff\xe2\x82", false), "a\u{fffd}");
        assert_eq!(mask.push(b"\xac", false), "€");
        assert_eq!(mask.push(b"\xf0\x9f", true), "\u{fffd}");
    }
}
