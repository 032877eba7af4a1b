//! Strings: escapes and surrogate pairs, cut anywhere.

use super::error::Fault;
use super::event::ArgumentEvent;
use super::machine::{Machine, StreamListeners};

/// Unescaped text above this many bytes is emitted at once.
const ENOUGH: usize = 4_096;

/// An open string.
#[derive(Debug, Default)]
pub(super) struct OpenString {
    place: StringState,
    /// The start of the open escape.
    escape: usize,
    /// Unescaped, but not emitted yet.
    fragment: String,
}

#[derive(Clone, Copy, Debug, Default)]
enum StringState {
    #[default]
    Plain,
    /// After `\`.
    Escape,
    /// After `\u` and some digits; `high` is the first half of a pair.
    Digits { high: Option<u32>, unit: u32, left: u8 },
    /// After the first half of a pair: `\` must follow,
    High(u32),
    /// and then `u`.
    HighEscape(u32),
}

impl OpenString {
    /// How far the open string has only complete characters; it was read up to `at`.
    pub(super) fn whole_until(&self, at: usize) -> usize {
        if matches!(self.place, StringState::Plain) { at } else { self.escape }
    }
}

impl Machine {
    /// A fast path: most deltas of a long string are only a part of it, which is emitted directly.
    #[inline]
    pub(super) fn emit_plain(&mut self, text: &str, to: &mut StreamListeners<'_>) -> bool {
        let delta = text.get(self.at()..).unwrap_or_default();
        let plain = matches!(self.string.place, StringState::Plain) && delta.bytes().all(is_plain);
        if plain {
            self.emit(delta, to);
            self.advance(text.len());
        }
        plain
    }

    /// Continues in a string; returns `true` if it ended.
    pub(super) fn in_string(
        &mut self,
        text: &str,
        key: bool,
        to: &mut StreamListeners<'_>,
    ) -> Result<bool, Fault> {
        let bytes = text.as_bytes();
        let mut at = self.at();
        // Plain text from here on is not emitted yet.
        let mut run = at;
        let outcome = loop {
            if matches!(self.string.place, StringState::Plain) {
                let rest = bytes.get(at..).unwrap_or_default();
                at += rest.iter().position(|byte| !is_plain(*byte)).unwrap_or(rest.len());
            }
            let Some(&byte) = bytes.get(at) else { break Ok(false) };
            match self.string.place {
                StringState::Plain => match byte {
                    b'"' => break Ok(true),
                    b'\\' => {
                        self.keep(text.get(run..at).unwrap_or_default(), key, to);
                        self.string.escape = at;
                        self.string.place = StringState::Escape;
                    }
                    _ => break Err(Fault::ControlCharacter),
                },
                place => match place.next(byte) {
                    Ok((place, decoded)) => {
                        self.string.place = place;
                        if let Some(decoded) = decoded {
                            let out = if key { &mut self.keys } else { &mut self.string.fragment };
                            out.push(decoded);
                        }
                        run = at + 1;
                    }
                    Err(fault) => break Err(fault),
                },
            }
            at += 1;
        };
        let plain = match self.string.place {
            StringState::Plain => text.get(run..at).unwrap_or_default(),
            _ => "",
        };
        if key {
            self.keys.push_str(plain);
        } else if self.string.fragment.is_empty() {
            self.emit(plain, to);
        } else {
            self.string.fragment.push_str(plain);
            self.emit_kept(to);
        }
        let ended = outcome.as_ref().is_ok_and(|ended| *ended);
        self.advance(at + usize::from(ended));
        outcome
    }

    /// Keeps plain text before an escape.
    fn keep(&mut self, plain: &str, key: bool, to: &mut StreamListeners<'_>) {
        if key {
            return self.keys.push_str(plain);
        }
        self.string.fragment.push_str(plain);
        if self.string.fragment.len() > ENOUGH {
            self.emit_kept(to);
        }
    }

    fn emit(&self, fragment: &str, to: &mut StreamListeners<'_>) {
        if !fragment.is_empty() {
            (to.on)(ArgumentEvent::Appended { path: self.path(), fragment });
        }
    }

    fn emit_kept(&mut self, to: &mut StreamListeners<'_>) {
        self.emit(&self.string.fragment, to);
        self.string.fragment.clear();
    }
}

impl StringState {
    /// Returns the next place, and the character that this byte completes.
    fn next(self, byte: u8) -> Result<(StringState, Option<char>), Fault> {
        match self {
            StringState::Plain => Ok((StringState::Plain, None)),
            StringState::Escape => {
                let decoded = match byte {
                    b'"' | b'\\' | b'/' => char::from(byte),
                    b'b' => '\u{8}',
                    b'f' => '\u{c}',
                    b'n' => '\n',
                    b'r' => '\r',
                    b't' => '\t',
                    b'u' => return Ok((StringState::Digits { high: None, unit: 0, left: 4 }, None)),
                    _ => return Err(Fault::BadEscape),
                };
                Ok((StringState::Plain, Some(decoded)))
            }
            StringState::Digits { high, unit, left } => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::BadEscape)?;
                let unit = unit << 4 | digit;
                if left > 1 {
                    return Ok((StringState::Digits { high, unit, left: left - 1 }, None));
                }
                match (high, unit) {
                    (None, 0xD800..=0xDBFF) => Ok((StringState::High(unit), None)),
                    (None, _) => whole(unit),
                    (Some(high), 0xDC00..=0xDFFF) => {
                        whole(0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00))
                    }
                    (Some(_), _) => Err(Fault::LoneSurrogate),
                }
            }
            StringState::High(high) if byte == b'\\' => Ok((StringState::HighEscape(high), None)),
            StringState::HighEscape(high) if byte == b'u' => {
                Ok((StringState::Digits { high: Some(high), unit: 0, left: 4 }, None))
            }
            StringState::High(_) | StringState::HighEscape(_) => Err(Fault::LoneSurrogate),
        }
    }
}

/// Whether the byte represents itself in a string.
fn is_plain(byte: u8) -> bool {
    byte != b'"' && byte != b'\\' && byte > 0x1f
}

/// A code point is a character, unless it is half of a pair.
fn whole(code: u32) -> Result<(StringState, Option<char>), Fault> {
    let decoded = char::from_u32(code).ok_or(Fault::LoneSurrogate)?;
    Ok((StringState::Plain, Some(decoded)))
}
