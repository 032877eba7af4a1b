//! Reads strings. Escapes and surrogate pairs may be split between deltas.

use super::error::Fault;
use super::event::ArgumentEvent;
use super::machine::{Machine, StreamListeners};

/// Length of unescaped text, in bytes, above which the text is emitted at once instead of at the end of the delta.
const ENOUGH: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct OpenString {
    place: StringState,
    /// The position of an incomplete escape, or of the first escape of an incomplete surrogate pair.
    escape: usize,
    fragment: String,
}

#[derive(Clone, Copy, Debug, Default)]
enum StringState {
    #[default]
    Plain,
    /// After `\`.
    Escape,
    /// After `\u` and up to three digits. `high` is the first half of a surrogate pair, if these digits are the second half.
    Digits { high: Option<u32>, unit: u32, left: u8 },
    /// After the first half of a surrogate pair; `\` must follow.
    High(u32),
    /// After the first half of a surrogate pair and `\`; `u` must follow.
    HighEscape(u32),
}

impl OpenString {
    pub(super) fn whole_until(&self, at: usize) -> usize {
        if matches!(self.place, StringState::Plain) { at } else { self.escape }
    }
}

impl Machine {
    /// Emits the delta if it has no escape, quote or control character, and returns whether it did. This is a fast path for long strings.
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

    /// Returns whether the string or key ended.
    pub(super) fn in_string(
        &mut self,
        text: &str,
        key: bool,
        to: &mut StreamListeners<'_>,
    ) -> Result<bool, Fault> {
        let bytes = text.as_bytes();
        let mut at = self.at();
        // The text before `run` was already emitted or stored.
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

#[inline]
fn is_plain(byte: u8) -> bool {
    PLAIN[usize::from(byte)]
}

/// Whether each byte stands for itself in a string: all but control characters, the quote and the backslash.
static PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < b' ' as usize {
        plain[control] = false;
        control += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

fn whole(code: u32) -> Result<(StringState, Option<char>), Fault> {
    let decoded = char::from_u32(code).ok_or(Fault::LoneSurrogate)?;
    Ok((StringState::Plain, Some(decoded)))
}
