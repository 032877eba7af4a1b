//! Parses server-sent events by the [WHATWG
//! rules](https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation), without a network.
//!
//! ```
//! use agent::provider::sse::SseParser;
//!
//! let mut parser = SseParser::new();
//! let mut seen = Vec::new();
//! for chunk in [&b"event: ping\nda"[..], b"ta: {}\r\n\r", b"\n: comment\ndata: one\ndata: two\n\ndata: th", b"ree\n"] {
//!     parser.push(chunk, |event| seen.push((event.event.to_owned(), event.data.to_owned())))?;
//! }
//! parser.finish(|event| seen.push((event.event.to_owned(), event.data.to_owned())));
//! let seen: Vec<_> = seen.iter().map(|(event, data)| (event.as_str(), data.as_str())).collect();
//! assert_eq!(seen, [("ping", "{}"), ("message", "one\ntwo"), ("message", "three")]);
//! # Ok::<(), agent::args::ParseError>(())
//! ```

use std::borrow::Cow;

use memchr::memchr2;

use crate::parse_error::ParseError;

#[cfg(test)]
mod tests;

/// The default maximum length of an event: 16 MiB. See [`SseParser::with_max_event`].
///
/// ```
/// use agent::provider::sse::{MAX_EVENT, SseParser};
///
/// let mut small = SseParser::new().with_max_event(MAX_EVENT / 16);
/// assert!(small.push(&vec![b'x'; MAX_EVENT / 8], |_| {}).is_err());
/// ```
pub const MAX_EVENT: usize = 16 << 20;

/// A parser of event streams. The chunks may have any size and end anywhere.
///
/// The work is linear in the number of bytes, whatever the size of the chunks. An event in a single chunk with one `data` line is passed on
/// without a copy. Only events that are split, have several `data` lines or are not UTF-8 are copied.
///
/// One rule differs from the standard. If the stream ends in an event without a blank line, [`finish`](Self::finish) passes the event on,
/// because servers omit the blank line after their last event.
///
/// ```
/// use agent::provider::sse::SseParser;
///
/// let mut parser = SseParser::new();
/// let mut seen = Vec::new();
/// parser.push(b"id: 7\nretry: 3000\nda", |_| unreachable!("nothing is whole yet"))?;
/// parser.push(b"ta: one\n\n", |event| seen.push((event.id.to_owned(), event.data.to_owned())))?;
/// assert_eq!(seen, [("7".to_owned(), "one".to_owned())]);
/// assert_eq!(parser.retry(), Some(3_000));             // milliseconds
///
/// parser.push(b"data: two\n", |_| unreachable!("no blank line came"))?;
/// parser.finish(|event| seen.push((event.id.to_owned(), event.data.to_owned())));
/// assert_eq!(seen[1], ("7".to_owned(), "two".to_owned()));
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Debug)]
pub struct SseParser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    last_id: String,
    retry: Option<u64>,
    /// Whether the next line is the first of the stream, which may start with a byte order mark.
    at_start: bool,
    /// Whether the last byte was a CR: an LF that follows belongs to the same line end.
    after_cr: bool,
    max_event: usize,
    /// The JSON of lines without `data:`, or `None` if these lines are ignored.
    stray: Option<StrayJson>,
}

/// JSON outside of events, in lines without `data:`. Brackets and strings are counted to find the end of the JSON, so that it is parsed
/// only once.
#[derive(Debug, Default)]
struct StrayJson {
    text: Vec<u8>,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl StrayJson {
    fn push(&mut self, line: &[u8]) {
        for byte in line {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
    }

    fn is_closed(&self) -> bool {
        self.depth == 0 && !self.in_string
    }

    fn clear(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        *self = Self { text, ..Self::default() };
    }
}

/// Maximum length of JSON outside of events, in bytes. Longer JSON is ignored.
const MAX_STRAY: usize = 64 << 10;

/// One event.
///
/// ```
/// use agent::provider::sse::{SseEvent, SseParser};
///
/// SseParser::new().push(b"event: ping\ndata: one\ndata: two\n\n", |event: SseEvent<'_>| {
///     assert_eq!((event.event, event.data, event.id), ("ping", "one\ntwo", ""));
/// })?;
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'a> {
    /// The type of the event; `message` if the event names none.
    pub event: &'a str,
    /// The data lines of the event, joined by LF.
    pub data: &'a str,
    /// The last id that the stream sent, in this event or before; empty if it sent none.
    pub id: &'a str,
    /// Whether bytes that are not UTF-8 were replaced by U+FFFD in `event` or `data`.
    pub is_lossy: bool,
}

#[cold]
fn too_long(max: usize) -> ParseError {
    ParseError::new(format!("an event of the stream is longer than {max} bytes"))
}

#[derive(Default)]
struct ChunkFields<'c> {
    data: Option<&'c [u8]>,
    event: Option<&'c [u8]>,
}

impl SseParser {
    /// Creates a parser at the start of a stream.
    pub fn new() -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            last_id: String::new(),
            retry: None,
            at_start: true,
            after_cr: false,
            max_event: MAX_EVENT,
            stray: None,
        }
    }

    /// Passes on JSON outside of events, too. Some servers report errors in this form.
    #[cfg(feature = "http")]
    pub(super) fn with_stray_json(mut self) -> Self {
        self.stray = Some(StrayJson::default());
        self
    }

    /// Sets the maximum length, in bytes, of the data of an event, and of a line that spans several chunks. Default: [`MAX_EVENT`].
    ///
    /// ```
    /// use agent::provider::sse::SseParser;
    ///
    /// let mut parser = SseParser::new().with_max_event(1 << 10);
    /// let error = parser.push(&[b'x'; 2 << 10], |_| {}).unwrap_err();
    /// assert_eq!(error.to_string(), "an event of the stream is longer than 1024 bytes");
    /// ```
    pub fn with_max_event(mut self, bytes: usize) -> Self {
        self.max_event = bytes;
        self
    }

    /// Returns the reconnection time that the stream asked for, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Parses the next bytes and calls `on` for each event that they complete.
    ///
    /// # Errors
    /// Fails when the data of an event, or a line that spans several chunks, exceeds the maximum length. The parser cannot be used after
    /// that.
    pub fn push(&mut self, chunk: &[u8], mut on: impl FnMut(SseEvent<'_>)) -> Result<(), ParseError> {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        if !self.line.is_empty() {
            let Some((head, tail)) = self.split_line(rest) else { return self.keep_line(rest) };
            self.keep_line(head)?;
            let line = std::mem::take(&mut self.line);
            let mut fields = ChunkFields::default();
            self.read_line(&line, &mut fields, &mut on)?;
            self.copy_fields(&mut fields)?;
            self.line = line;
            self.line.clear();
            rest = tail;
        }
        let mut fields = ChunkFields::default();
        while let Some((line, tail)) = self.split_line(rest) {
            rest = tail;
            self.read_line(line, &mut fields, &mut on)?;
        }
        self.copy_fields(&mut fields)?;
        self.keep_line(rest)
    }

    /// Handles the end of the stream: passes on an unfinished event. The parser can be used for a new stream afterwards.
    pub fn finish(&mut self, mut on: impl FnMut(SseEvent<'_>)) {
        let line = std::mem::take(&mut self.line);
        let mut fields = ChunkFields::default();
        if !line.is_empty() {
            // `push` has already checked the length of a line with `data:`. Only a line `data` without a colon, which adds just a line
            // break, can fail here.
            let _ = self.read_line(&line, &mut fields, &mut on);
        }
        self.dispatch(&mut fields, &mut on);
        let stray = self.stray.take().map(|_| StrayJson::default());
        *self = Self { max_event: self.max_event, stray, ..Self::new() };
    }

    fn split_line<'c>(&mut self, bytes: &'c [u8]) -> Option<(&'c [u8], &'c [u8])> {
        let at = memchr2(b'\n', b'\r', bytes)?;
        let (line, end) = bytes.split_at(at);
        let rest = match end {
            [b'\r'] => {
                self.after_cr = true;
                &[]
            }
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => return None,
        };
        Some((line, rest))
    }

    fn keep_line(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        self.check_length(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        match self.line.strip_prefix(b"data:") {
            Some(value) if self.has_data => self.check_length(self.data.len() + 1 + strip_space(value).len()),
            _ => Ok(()),
        }
    }

    fn check_length(&self, length: usize) -> Result<(), ParseError> {
        if length <= self.max_event { Ok(()) } else { Err(too_long(self.max_event)) }
    }

    #[inline]
    fn read_line<'c>(
        &mut self,
        line: &'c [u8],
        fields: &mut ChunkFields<'c>,
        on: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), ParseError> {
        let line = if self.at_start {
            self.at_start = false;
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            self.dispatch(fields, on);
        } else if let Some(value) = line.strip_prefix(b"data:") {
            self.add_data(strip_space(value), fields)?;
        } else if let Some(value) = line.strip_prefix(b"event:") {
            fields.event = Some(strip_space(value));
        } else {
            self.read_field(line, fields, on)?;
        }
        Ok(())
    }

    /// Reads the lines that `read_line` does not read itself: the rare fields, fields without a colon, comments, and JSON without `data:`.
    #[cold]
    fn read_field<'c>(
        &mut self,
        line: &'c [u8],
        fields: &mut ChunkFields<'c>,
        on: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), ParseError> {
        if self
            .stray
            .as_ref()
            .is_some_and(|stray| !stray.text.is_empty() || line.starts_with(b"{") || line.starts_with(b"["))
        {
            self.keep_stray(line, fields, on);
            return Ok(());
        }
        let (name, value) = match line.iter().position(|&byte| byte == b':') {
            Some(0) => return Ok(()), // a comment
            Some(at) => (&line[..at], strip_space(&line[at + 1..])),
            None => (line, &line[..0]),
        };
        match name {
            b"data" => self.add_data(value, fields)?,
            b"event" => fields.event = Some(value),
            b"id" if !value.contains(&0) => self.last_id = String::from_utf8_lossy(value).into_owned(),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).or(self.retry);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a line of JSON that belongs to no event. Complete JSON becomes an event of its own, after the current event. JSON that is
    /// malformed or longer than [`MAX_STRAY`] is ignored.
    fn keep_stray(&mut self, line: &[u8], fields: &mut ChunkFields<'_>, on: &mut impl FnMut(SseEvent<'_>)) {
        let Some(mut stray) = self.stray.take() else { return };
        stray.push(line);
        if stray.is_closed() && stray.text.len() <= MAX_STRAY {
            let text = str::from_utf8(&stray.text).unwrap_or_default().trim();
            if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
                self.dispatch(fields, on);
                on(SseEvent { event: "message", data: text, id: &self.last_id, is_lossy: false });
            }
        }
        if stray.is_closed() || stray.text.len() > MAX_STRAY {
            stray.clear();
        }
        self.stray = Some(stray);
    }

    #[inline]
    fn add_data<'c>(&mut self, value: &'c [u8], fields: &mut ChunkFields<'c>) -> Result<(), ParseError> {
        if !self.has_data && fields.data.is_none() {
            fields.data = Some(value);
            return self.check_length(value.len());
        }
        self.copy_fields(fields)?;
        self.check_length(self.data.len() + 1 + value.len())?;
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
        Ok(())
    }

    /// Copies the fields out of the chunk, which is gone when the next chunk arrives.
    fn copy_fields(&mut self, fields: &mut ChunkFields<'_>) -> Result<(), ParseError> {
        if let Some(data) = fields.data.take() {
            self.check_length(data.len())?;
            self.data.extend_from_slice(data);
            self.has_data = true;
        }
        if let Some(event) = fields.event.take() {
            self.event.clear();
            self.event.extend_from_slice(event);
        }
        Ok(())
    }

    #[inline]
    fn dispatch(&mut self, fields: &mut ChunkFields<'_>, on: &mut impl FnMut(SseEvent<'_>)) {
        let event = fields.event.take().unwrap_or(&self.event);
        let data = fields.data.take().or(self.has_data.then_some(&self.data[..]));
        if let Some(data) = data {
            let event = if event.is_empty() { Cow::Borrowed("message") } else { decode_text(event) };
            let data = decode_text(data);
            let is_lossy = matches!(event, Cow::Owned(_)) || matches!(data, Cow::Owned(_));
            on(SseEvent { event: &event, data: &data, id: &self.last_id, is_lossy });
        }
        self.data.clear();
        self.has_data = false;
        self.event.clear();
        self.stray.iter_mut().for_each(StrayJson::clear);
    }
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new()
    }
}

/// Decodes bytes as text. `from_utf8_lossy` alone is several times slower, even for valid UTF-8.
#[inline]
fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[inline]
fn strip_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}
