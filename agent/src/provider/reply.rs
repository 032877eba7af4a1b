//! Reads one response of a provider, from bytes to events.

use serde::de::IgnoredAny;

use super::protocol::{Decoder, HttpResponse, Protocol};
use super::sse::{SseEvent, SseParser};
use super::{failure, sse, weight};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelInfo};
use crate::parse_error::ParseError;

/// A reader of one response, which arrives in chunks of any size. The reader detects whether the response is a stream, a JSON body or an
/// error.
///
/// The reader uses no network: it gets its bytes from the transport, or from a program that inspects a recording.
///
/// ```
/// # #[cfg(feature = "openai")] {
/// use agent::model::{ModelEvent, ModelInfo};
/// use agent::provider::{ReplyReader, openai::OpenAiChat};
///
/// let model = ModelInfo::new("openai", "openai-chat", "gpt-5");
/// let mut reader = ReplyReader::new(&OpenAiChat::default(), &model, 200, Vec::new());
/// let mut events = Vec::new();
/// reader.push(br#"data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#, &mut events).unwrap();
/// reader.finish(&OpenAiChat::default(), &mut events).unwrap();
/// assert!(events.iter().any(|event| event.text_delta() == Some("Hi")));
/// assert!(matches!(events.last(), Some(ModelEvent::Stop { .. })));
/// # }
/// ```
pub struct ReplyReader {
    decoder: Box<dyn Decoder>,
    status: u16,
    headers: Vec<(String, String)>,
    form: BodyForm,
    /// The bytes received so far, while the form is unknown or if the response is not a stream.
    body: Vec<u8>,
    /// The number of bytes at the start of `body` that are known to be blank or a byte order mark.
    blanks: usize,
    limits: ReplyLimits,
    read: usize,
}

/// Limits of a response, in bytes: of the whole response, of one event of a stream, and of a JSON body. See `HttpOptions`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyLimits {
    pub(super) body: usize,
    pub(super) event: usize,
    pub(super) document: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self { body: 256 << 20, event: sse::MAX_EVENT, document: 32 << 20 }
    }
}

enum BodyForm {
    /// Only blank bytes were received so far.
    Unknown,
    Stream(SseParser),
    Body,
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Maximum number of blank bytes before a response, including its byte order mark. Some proxies send blank bytes to keep a connection open.
const MAX_BLANKS: usize = 64 << 10;

/// Maximum number of bytes of an error's body that are kept. The text of an error shows far fewer bytes.
const MAX_ERROR_BODY: usize = 1 << 20;

impl ReplyReader {
    /// Creates a reader for a response with this status and these headers.
    pub fn new(
        protocol: &dyn Protocol,
        model: &ModelInfo,
        status: u16,
        mut headers: Vec<(String, String)>,
    ) -> Self {
        for (name, _) in &mut headers {
            name.make_ascii_lowercase();
        }
        let decoder = protocol.decoder(model);
        let limits = ReplyLimits::default();
        let form = if is_success(status) { BodyForm::Unknown } else { BodyForm::Body };
        Self { decoder, status, headers, form, body: Vec::new(), blanks: 0, limits, read: 0 }
    }

    pub(super) fn with_limits(mut self, limits: ReplyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads the next bytes. If the bytes cause an error, `out` contains the events before the error.
    ///
    /// # Errors
    /// Fails when the provider reports a failure in the middle of its response, and when the response violates the protocol or exceeds a
    /// limit.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if chunk.is_empty() {
            return Ok(());
        }
        self.read = self.read.saturating_add(chunk.len());
        if self.read > self.limits.body && is_success(self.status) {
            return Err(self.fail_too_long(self.limits.body, out));
        }
        let chunk = if matches!(self.form, BodyForm::Unknown) {
            self.body.extend_from_slice(chunk);
            if BOM.starts_with(&self.body) {
                return Ok(());
            }
            let begin = if self.body.starts_with(BOM) { BOM.len() } else { 0 };
            // The content type can be wrong, so the first byte that is not blank decides the form of the response.
            self.blanks = self.blanks.max(begin);
            let new = self.body.get(self.blanks..).unwrap_or_default();
            self.blanks += new.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if self.blanks > MAX_BLANKS {
                let error = format!("the response begins with more than {MAX_BLANKS} blank bytes");
                return Err(self.fail(ModelError::protocol(error), out));
            }
            match self.body.get(self.blanks) {
                None => return Ok(()),
                Some(b'{' | b'[' | b'<') => {
                    self.body.drain(..begin);
                    self.form = BodyForm::Body;
                    &[]
                }
                Some(_) => {
                    let parser = SseParser::new().with_max_event(self.limits.event).with_stray_json();
                    self.form = BodyForm::Stream(parser);
                    &*std::mem::take(&mut self.body)
                }
            }
        } else {
            chunk
        };
        match &mut self.form {
            BodyForm::Stream(parser) => {
                let mut outcome = Ok(());
                let (decoder, max) = (&mut self.decoder, self.limits.event);
                let parsed =
                    parser.push(chunk, |event| decode_event(decoder, max, &mut outcome, &event, out));
                outcome.and(parsed.map_err(over_limit)).map_err(|error| self.fail(error, out))
            }
            _ if is_success(self.status) => {
                if self.body.len().saturating_add(chunk.len()) > self.limits.document {
                    return Err(self.fail_too_long(self.limits.document, out));
                }
                self.body.extend_from_slice(chunk);
                Ok(())
            }
            _ => {
                let room = self.max_error_body().saturating_sub(self.body.len()).min(chunk.len());
                self.body.extend_from_slice(chunk.get(..room).unwrap_or_default());
                Ok(())
            }
        }
    }

    /// Returns whether the stream is complete, so that [`finish`](Self::finish) may be called before the response ends. An error response
    /// counts as complete when its body has reached the maximum length. Returns `false` for a successful response with a JSON body.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::model::ModelInfo;
    /// use agent::provider::{ReplyReader, openai::OpenAiChat};
    ///
    /// let model = ModelInfo::new("openai", "openai-chat", "gpt-5");
    /// let mut reader = ReplyReader::new(&OpenAiChat::default(), &model, 200, Vec::new());
    /// reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n", &mut Vec::new()).unwrap();
    /// assert!(!reader.is_complete());
    /// reader.push(b"data: [DONE]\n\n", &mut Vec::new()).unwrap();
    /// assert!(reader.is_complete());
    /// # }
    /// ```
    pub fn is_complete(&self) -> bool {
        match self.form {
            BodyForm::Stream(_) => self.decoder.is_complete(),
            _ => !is_success(self.status) && self.body.len() >= self.max_error_body(),
        }
    }

    fn max_error_body(&self) -> usize {
        MAX_ERROR_BODY.min(self.limits.body)
    }

    /// Handles the end of the response.
    ///
    /// # Errors
    /// Fails when the response is an error, ended too early, or is not a reply.
    pub fn finish(mut self, protocol: &dyn Protocol, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !is_success(self.status) {
            return Err(protocol.error(self.status, &self.headers, &self.body));
        }
        let last = self.decode_last_event(out);
        let result = match (&self.form, last) {
            // A last event that cannot be parsed was cut. If the reply is incomplete without it, a retry may help.
            (BodyForm::Stream(_), Err(error)) if may_be_cut(&error) => {
                self.decoder.finish(out).map_err(|_| error.with_retryable(true))
            }
            (BodyForm::Stream(_), last) => last.and_then(|()| self.decoder.finish(out)),
            _ => self.decode_document(out),
        };
        result.map_err(|error| self.fail(error, out))
    }

    /// Handles a response that broke off: the connection was reset, or nothing arrived for too long. Emits the events that the decoder held
    /// back.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::model::{ModelError, ModelErrorKind, ModelEvent, ModelInfo};
    /// use agent::provider::{ReplyReader, openai::OpenAiChat};
    ///
    /// let (api, model) = (OpenAiChat::default(), ModelInfo::new("openai", "openai-chat", "gpt-5"));
    /// let mut reader = ReplyReader::new(&api, &model, 200, Vec::new());
    /// let chunk = br#"data: {"choices":[{"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":3}}"#;
    /// let mut events = Vec::new();
    /// reader.push(&[&chunk[..], b"\n\n"].concat(), &mut events).unwrap();
    /// let reset = ModelError::new(ModelErrorKind::Connection, "the connection broke");
    /// let error = reader.break_off(&api, reset, &mut events).unwrap_err();
    /// assert!(error.is_connection());
    /// assert!(matches!(events.last(), Some(ModelEvent::Usage { usage }) if usage.input == 3));
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the error that the provider reported, or else `reason`, unless the reply is complete. For an error status, returns the
    /// error that the status and the start of the body describe, with `reason` as its source.
    pub fn break_off(
        mut self,
        protocol: &dyn Protocol,
        reason: ModelError,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if !is_success(self.status) {
            return self.finish(protocol, out).map_err(|error| error.with_source(reason));
        }
        // A parse error of the last event is ignored, because the event was probably cut. An error that the provider reported is returned
        // instead of `reason`.
        let reported = self.decode_last_event(out).err().filter(|error| !may_be_cut(error));
        let result = match (&self.form, reported) {
            (_, Some(error)) => Err(error),
            (BodyForm::Stream(_), None) if self.decoder.has_ended() => self.decoder.finish(out),
            (BodyForm::Body, None) if serde_json::from_slice::<IgnoredAny>(&self.body).is_ok() => {
                self.decode_document(out)
            }
            _ => Err(reason),
        };
        result.map_err(|error| self.fail(error, out))
    }

    /// Decodes the last event of a stream, if no blank line follows the event.
    fn decode_last_event(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if let BodyForm::Stream(parser) = &mut self.form {
            let mut outcome = Ok(());
            let (decoder, max) = (&mut self.decoder, self.limits.event);
            let parsed = parser.finish(|event| decode_event(decoder, max, &mut outcome, &event, out));
            return outcome.and(parsed.map_err(over_limit));
        }
        Ok(())
    }

    fn decode_document(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !weight::fits(&self.body, self.limits.document) {
            return Err(ModelError::protocol("the response consists of too many small values"));
        }
        self.decoder.body(&self.body, out)
    }

    fn fail_too_long(&mut self, max: usize, out: &mut Vec<ModelEvent>) -> ModelError {
        self.fail(ModelError::protocol(format!("the response is longer than {max} bytes")), out)
    }

    /// Emits the events that the decoder held back, and adds the provider's request id to the error.
    fn fail(&mut self, error: ModelError, out: &mut Vec<ModelEvent>) -> ModelError {
        self.decoder.abandon(out);
        failure::with_request_id(error, &HttpResponse::new(self.status, &self.headers, b""))
    }
}

/// Decodes one event and records an error in `outcome`. Events after an error are ignored.
fn decode_event(
    decoder: &mut Box<dyn Decoder>,
    max: usize,
    outcome: &mut Result<(), ModelError>,
    event: &SseEvent<'_>,
    out: &mut Vec<ModelEvent>,
) {
    let text = event.data.trim();
    if outcome.is_err() || (text.is_empty() && event.event != "error") {
        return;
    }
    if !weight::fits(event.data.as_bytes(), max) {
        let dense = ParseError::new("an event of the stream consists of too many small values");
        *outcome = Err(over_limit(dense));
        return;
    }
    *outcome = decoder.event(event, out);
    // An event named `error` whose data is plain text becomes an error with this text, in place of the parse error.
    if event.event == "error"
        && !decoder.is_complete()
        && !text.is_empty()
        && let Err(error) = outcome
        && error.kind() == ModelErrorKind::Protocol
        && serde_json::from_str::<IgnoredAny>(text).is_err()
    {
        *outcome = Err(failure::from_text(text));
    }
}

/// Creates the error for an event that exceeds a limit. [`may_be_cut`] recognizes the error by its source.
fn over_limit(error: ParseError) -> ModelError {
    ModelError::protocol(error.to_string()).with_source(error)
}

fn may_be_cut(error: &ModelError) -> bool {
    let is_over_limit =
        std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<ParseError>);
    error.kind() == ModelErrorKind::Protocol && !is_over_limit
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

impl std::fmt::Debug for ReplyReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyReader")
            .field("status", &self.status)
            .field("read", &self.read)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelRequest;
    use crate::provider::HttpRequest;

    #[derive(Debug)]
    struct Anything;

    impl Protocol for Anything {
        fn api(&self) -> &'static str {
            "anything"
        }

        fn base_url(&self) -> &'static str {
            "http://127.0.0.1:9"
        }

        fn encode(&self, _: &ModelInfo, _: &ModelRequest) -> Result<HttpRequest, ModelError> {
            Ok(HttpRequest::post("/", serde_json::Value::Null))
        }

        fn decoder(&self, _: &ModelInfo) -> Box<dyn Decoder> {
            Box::new(Self)
        }

        fn error(&self, _: u16, headers: &[(String, String)], _: &[u8]) -> ModelError {
            let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
            ModelError::protocol(names.join(", "))
        }
    }

    impl Decoder for Anything {
        fn event(&mut self, _: &SseEvent<'_>, _: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
            Ok(())
        }

        fn has_ended(&self) -> bool {
            true
        }

        fn body(&mut self, body: &[u8], _: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
            serde_json::from_slice::<IgnoredAny>(body).map(drop).map_err(|_| ModelError::protocol("no JSON"))
        }
    }

    fn reader(status: u16) -> ReplyReader {
        ReplyReader::new(&Anything, &ModelInfo::new("x", "anything", "x"), status, Vec::new())
    }

    #[test]
    fn each_blank_byte_before_a_response_is_examined_once() {
        let mut out = Vec::new();
        for (answer, is_stream) in [("{}", false), ("data: {}\n\n", true)] {
            for bom in ["", "\u{feff}"] {
                let mut reader = reader(200);
                reader.push(bom.as_bytes(), &mut out).unwrap();
                for count in 1..=1_000 {
                    reader.push(b"\n", &mut out).unwrap();
                    assert_eq!(reader.blanks, bom.len() + count, "the next piece is examined from here");
                }
                reader.push(answer.as_bytes(), &mut out).unwrap();
                assert_eq!(matches!(reader.form, BodyForm::Stream(_)), is_stream, "{answer}");
                reader.finish(&Anything, &mut out).unwrap();
            }
        }
        let mut reader = reader(200);
        reader.push(&vec![b' '; MAX_BLANKS], &mut out).unwrap();
        let error = reader.push(b" ", &mut out).unwrap_err();
        assert_eq!(error.message(), "the response begins with more than 65536 blank bytes");
    }

    #[test]
    fn documents_have_limits_of_length_and_memory() {
        let (mut out, mut limits) = (Vec::new(), ReplyLimits::default());
        (limits.document, limits.event) = (1 << 20, 1 << 20);
        let read = |text: &str, out: &mut Vec<ModelEvent>| {
            let mut reader = reader(200).with_limits(limits);
            text.as_bytes().chunks(1 << 16).try_for_each(|piece| reader.push(piece, out))?;
            reader.finish(&Anything, out)
        };
        let words = |result: Result<(), ModelError>| result.map_err(|error| error.message().to_owned());
        let long = |length: usize| format!("[\"{}\"]", "x".repeat(length - 4));
        assert_eq!(words(read(&long(1 << 20), &mut out)), Ok(()));
        let too_long = words(read(&long((1 << 20) + 1), &mut out));
        assert_eq!(too_long, Err("the response is longer than 1048576 bytes".to_owned()));
        let dense = format!("[{}0]", "{\"\":[]},".repeat(100_000));
        let too_many = words(read(&dense, &mut out));
        assert_eq!(too_many, Err("the response consists of too many small values".to_owned()));
        let too_many = words(read(&format!("data: {dense}\n\n"), &mut out));
        assert_eq!(too_many, Err("an event of the stream consists of too many small values".to_owned()));
        // Without a blank line, the event is not taken for one that was cut.
        assert_eq!(words(read(&format!("data: {dense}"), &mut out)), too_many);
        // The number of values in a whole stream is not limited.
        let events = format!("data: {}\n\n", long(1_000)).repeat(2_000);
        assert_eq!(words(read(&events, &mut out)), Ok(()));
    }

    #[test]
    fn a_protocol_sees_the_names_of_headers_in_lower_case() {
        let headers = vec![("Retry-After".to_owned(), "Soon".to_owned())];
        let reader = ReplyReader::new(&Anything, &ModelInfo::new("x", "anything", "x"), 500, headers);
        assert_eq!(reader.finish(&Anything, &mut Vec::new()).unwrap_err().message(), "retry-after");
    }

    #[test]
    fn error_bodies_are_cut_at_their_limit() {
        let mut reader = reader(500);
        for _ in 0..3 {
            reader.push(&vec![b'x'; MAX_ERROR_BODY - 1], &mut Vec::new()).unwrap();
        }
        assert_eq!(reader.body.len(), MAX_ERROR_BODY);
        // A body beyond the limit of a response does not hide the error.
        let mut reader = self::reader(503).with_limits(ReplyLimits { body: 10, ..ReplyLimits::default() });
        reader.push(&[b'x'; 100], &mut Vec::new()).unwrap();
        assert!(reader.is_complete());
        assert_eq!(reader.body.len(), 10);
    }
}
