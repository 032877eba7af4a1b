//! Reads JSON byte by byte, and keeps the whole state of the parser between deltas.

use super::error::{Fault, MAX_NUMBER};
use super::event::{ArgumentEvent, ArgumentKind, ArgumentPath, Frame};
use super::string::OpenString;
use crate::args::judge::EarlyCheck;

/// Maximum number of nested containers, as in `serde_json`.
const MAX_DEPTH: usize = 127;

#[derive(Clone, Copy, Debug)]
enum ParserState {
    /// A value must follow. If `first` is set, the array may also end.
    Value {
        first: bool,
    },
    /// A key must follow. If `first` is set, the object may also end.
    Key {
        first: bool,
    },
    Colon,
    /// A value is complete, but the container around it is not.
    After,
    String {
        key: bool,
    },
    Number,
    /// Within `true`, `false` or `null`; these bytes must follow.
    Literal(&'static [u8]),
    End,
}

pub(super) struct StreamListeners<'l> {
    pub(super) on: &'l mut dyn FnMut(ArgumentEvent<'_>),
    pub(super) early: Option<&'l mut EarlyCheck>,
}

pub(super) struct Machine {
    state: ParserState,
    frames: Vec<Frame>,
    pub(super) keys: String,
    pub(super) string: OpenString,
    at: usize,
    token: usize,
    /// The end of the last complete value or opening bracket. `closed_text` cuts the text here.
    closed: usize,
    secret: bool,
    /// Whether the argument of the latest top-level key may contain a secret.
    key_secret: bool,
}

impl Machine {
    pub(super) fn new(secret: bool) -> Machine {
        Machine {
            state: ParserState::Value { first: false },
            frames: Vec::new(),
            keys: String::new(),
            string: OpenString::default(),
            at: 0,
            token: 0,
            closed: 0,
            secret,
            key_secret: secret,
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn path(&self) -> ArgumentPath<'_> {
        let secret = if self.frames.is_empty() { self.secret } else { self.key_secret };
        ArgumentPath { frames: &self.frames, keys: &self.keys, secret }
    }

    /// Reads to the end of `text`, which is the whole text so far.
    pub(super) fn run(&mut self, text: &str, to: &mut StreamListeners<'_>) -> Result<(), Fault> {
        if matches!(self.state, ParserState::String { key: false }) && self.emit_plain(text, to) {
            return Ok(());
        }
        let bytes = text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match self.state {
                ParserState::String { key } => {
                    if self.in_string(text, key, to)? {
                        self.close_string(text, key, to);
                    }
                }
                ParserState::Number => {
                    // Reads at most one byte beyond the limit, so that the reported position does not depend on how the text was split.
                    let end = bytes.len().min(self.token + MAX_NUMBER + 1);
                    let rest = bytes.get(self.at..end).unwrap_or_default();
                    self.at += rest.iter().take_while(|byte| is_of_number(**byte)).count();
                    if self.at - self.token > MAX_NUMBER {
                        return Err(Fault::LongNumber);
                    }
                    if self.at < bytes.len() {
                        self.close_number(text, false, to)?;
                    }
                }
                ParserState::Literal(rest) => match rest.split_first() {
                    Some((first, rest)) if *first == byte => {
                        self.at += 1;
                        self.state = ParserState::Literal(rest);
                        if rest.is_empty() {
                            self.close_value(text, self.token, to);
                        }
                    }
                    _ => return Err(Fault::NotALiteral),
                },
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                ParserState::Value { first } => self.value(text, byte, first, to)?,
                ParserState::Key { first } => match byte {
                    b'"' => self.open_key(),
                    b'}' if first => self.close_container(text, to),
                    _ => return Err(Fault::NotAKey),
                },
                ParserState::Colon if byte == b':' => {
                    self.at += 1;
                    self.state = ParserState::Value { first: false };
                }
                ParserState::Colon => return Err(Fault::NoColon),
                ParserState::After => self.after(text, byte, to)?,
                ParserState::End => return Err(Fault::Trailing),
            }
        }
        Ok(())
    }

    pub(super) fn end(&mut self, text: &str, to: &mut StreamListeners<'_>) -> Result<(), Fault> {
        if matches!(self.state, ParserState::Number) && self.frames.is_empty() {
            self.close_number(text, true, to)?;
        }
        match self.state {
            ParserState::End => Ok(()),
            _ => Err(Fault::Incomplete),
        }
    }

    /// Returns the text so far as valid JSON: closes brackets and an unfinished string, and leaves out all other unfinished values and
    /// keys. Returns `None` if nothing remains.
    pub(super) fn closed_text(&self, text: &str) -> Option<String> {
        let string = matches!(self.state, ParserState::String { key: false });
        let end = if string { self.string.whole_until(self.at) } else { self.closed };
        if end == 0 {
            return None;
        }
        let mut out = String::with_capacity(end + 1 + self.frames.len());
        out.push_str(text.get(..end)?);
        if string {
            out.push('"');
        }
        let closing = |frame: &Frame| if frame.index.is_some() { ']' } else { '}' };
        out.extend(self.frames.iter().rev().map(closing));
        Some(out)
    }

    fn value(
        &mut self,
        text: &str,
        byte: u8,
        first: bool,
        to: &mut StreamListeners<'_>,
    ) -> Result<(), Fault> {
        let (state, kind) = match byte {
            b'"' => (ParserState::String { key: false }, ArgumentKind::Text),
            b'{' => (ParserState::Key { first: true }, ArgumentKind::Object),
            b'[' => (ParserState::Value { first: true }, ArgumentKind::Array),
            b'-' | b'0'..=b'9' => (ParserState::Number, ArgumentKind::Number),
            b't' => (ParserState::Literal(b"rue"), ArgumentKind::Boolean),
            b'f' => (ParserState::Literal(b"alse"), ArgumentKind::Boolean),
            b'n' => (ParserState::Literal(b"ull"), ArgumentKind::Null),
            b']' if first => {
                self.close_container(text, to);
                return Ok(());
            }
            _ => return Err(Fault::NotAValue),
        };
        let opens = matches!(kind, ArgumentKind::Object | ArgumentKind::Array);
        if opens && self.frames.len() >= MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        (to.on)(ArgumentEvent::Started { path: self.path(), kind });
        self.token = self.at;
        self.at += 1;
        self.state = state;
        if opens {
            let key = self.keys.len();
            let index = (kind == ArgumentKind::Array).then_some(0);
            self.frames.push(Frame { start: self.token, index, key_start: key, key_end: key });
            self.closed = self.at;
        }
        Ok(())
    }

    fn after(&mut self, text: &str, byte: u8, to: &mut StreamListeners<'_>) -> Result<(), Fault> {
        let Some(frame) = self.frames.last_mut() else { return Err(Fault::Trailing) };
        match (byte, &mut frame.index) {
            (b',', Some(index)) => {
                *index += 1;
                self.at += 1;
                self.state = ParserState::Value { first: false };
            }
            (b',', None) => {
                self.at += 1;
                self.state = ParserState::Key { first: false };
            }
            (b']', Some(_)) | (b'}', None) => self.close_container(text, to),
            _ => return Err(Fault::NoSeparator),
        }
        Ok(())
    }

    fn open_key(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            self.keys.truncate(frame.key_start);
            frame.key_end = frame.key_start;
        }
        self.at += 1;
        self.state = ParserState::String { key: true };
    }

    fn close_string(&mut self, text: &str, key: bool, to: &mut StreamListeners<'_>) {
        if !key {
            return self.close_value(text, self.token, to);
        }
        self.state = ParserState::Colon;
        if let Some(frame) = self.frames.last_mut() {
            frame.key_end = self.keys.len();
        }
        if self.frames.len() == 1
            && let Some(early) = to.early.as_deref_mut()
        {
            let before = early.key(&self.keys);
            self.key_secret = early.is_secret();
            self.refuse(early.issues(), before, &mut to.on);
        }
    }

    fn close_number(&mut self, text: &str, last: bool, to: &mut StreamListeners<'_>) -> Result<(), Fault> {
        let token = text.get(self.token..self.at).unwrap_or_default();
        match serde_json::from_str::<serde_json::Number>(token) {
            Ok(_) => {
                self.close_value(text, self.token, to);
                Ok(())
            }
            // The text ends within the number, which is incomplete rather than wrong.
            Err(error) if last && error.is_eof() => Err(Fault::Incomplete),
            Err(_) => {
                self.at = self.token;
                Err(Fault::NotANumber)
            }
        }
    }

    fn close_container(&mut self, text: &str, to: &mut StreamListeners<'_>) {
        self.at += 1;
        if let Some(frame) = self.frames.pop() {
            self.keys.truncate(frame.key_start);
            self.close_value(text, frame.start, to);
        }
    }

    fn close_value(&mut self, text: &str, start: usize, to: &mut StreamListeners<'_>) {
        let text = text.get(start..self.at).unwrap_or_default();
        self.closed = self.at;
        (to.on)(ArgumentEvent::Finished { path: self.path(), json: text });
        let [frame, deeper @ ..] = self.frames.as_slice() else {
            self.state = ParserState::End;
            return;
        };
        self.state = ParserState::After;
        if frame.index.is_none()
            && deeper.is_empty()
            && let Some(early) = to.early.as_deref_mut()
        {
            let before = early.value(&self.keys, text);
            self.refuse(early.issues(), before, &mut to.on);
        }
    }

    fn refuse(&self, issues: &[crate::args::Issue], before: usize, on: &mut dyn FnMut(ArgumentEvent<'_>)) {
        match issues.get(before..) {
            None | Some([]) => {}
            Some(issues) => on(ArgumentEvent::Refused { path: self.path(), issues }),
        }
    }

    pub(super) fn advance(&mut self, at: usize) {
        self.at = at;
    }
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}
