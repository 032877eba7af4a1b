//! Reads one answer of a provider, from bytes to events.

use serde::de::IgnoredAny;

use super::protocol::{Answer, Decoder, Protocol};
use super::sse::{SseEvent, SseParser};
use super::{failure, sse};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelInfo};

/// Reads an answer in chunks of any size: a stream, a JSON body, or an error, which it detects.
///
/// It uses no network: the transport feeds it, and so can a program that inspects a recording.
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
    form: Form,
    /// The bytes received so far of a body that is not a stream.
    body: Vec<u8>,
    limits: ReplyLimits,
    read: usize,
}

/// Limits on how much of an answer is read.
///
/// ```
/// use agent::provider::ReplyLimits;
/// # #[cfg(feature = "http")] {
/// use agent::provider::http::HttpOptions;
///
/// let mut limits = ReplyLimits::default();
/// limits.body = 1 << 20;
/// let options = HttpOptions::default().with_limits(limits);
/// assert_eq!((options.limits.body, options.limits.event), (1 << 20, 16 << 20));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyLimits {
    /// Maximum length of the body, streamed or not, in bytes. Default: 256 MiB.
    pub body: usize,
    /// Maximum length of one event of a stream, in bytes. Default: 16 MiB.
    pub event: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self { body: 256 << 20, event: sse::MAX_EVENT }
    }
}

enum Form {
    /// No byte that decides it was received yet.
    Unknown,
    Stream(SseParser),
    Body,
}

/// The byte order mark.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Maximum number of bytes kept of an error's body; far more than is shown.
const MAX_ERROR_BODY: usize = 1 << 20;

impl ReplyReader {
    /// Creates a reader for an answer with this status and these headers.
    pub fn new(
        protocol: &dyn Protocol,
        model: &ModelInfo,
        status: u16,
        headers: Vec<(String, String)>,
    ) -> Self {
        let decoder = protocol.decoder(model);
        let limits = ReplyLimits::default();
        let form = if is_success(status) { Form::Unknown } else { Form::Body };
        Self { decoder, status, headers, form, body: Vec::new(), limits, read: 0 }
    }

    /// Sets the limits. Default: [`ReplyLimits::default`].
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::model::ModelInfo;
    /// use agent::provider::{ReplyLimits, ReplyReader, openai::OpenAiChat};
    ///
    /// let mut limits = ReplyLimits::default();
    /// limits.body = 1 << 10;
    /// let model = ModelInfo::new("openai", "openai-chat", "gpt-5");
    /// let mut reader = ReplyReader::new(&OpenAiChat::default(), &model, 200, Vec::new()).with_limits(limits);
    /// let error = reader.push(&[b' '; 2 << 10], &mut Vec::new()).unwrap_err();
    /// assert_eq!(error.message(), "the answer is longer than 1024 bytes");
    /// # }
    /// ```
    pub fn with_limits(mut self, limits: ReplyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads the next bytes. Events from before an error are in `out`, too.
    ///
    /// # Errors
    /// Fails when the provider failed in the middle of its answer, or when the answer violates the protocol.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if chunk.is_empty() {
            return Ok(());
        }
        self.read = self.read.saturating_add(chunk.len());
        if self.read > self.limits.body {
            let max = self.limits.body;
            return Err(
                self.failed(ModelError::protocol(format!("the answer is longer than {max} bytes")), out)
            );
        }
        let chunk = if matches!(self.form, Form::Unknown) {
            self.body.extend_from_slice(chunk);
            if BOM.starts_with(&self.body) {
                return Ok(());
            }
            let begin = if self.body.starts_with(BOM) { BOM.len() } else { 0 };
            // Content types can be wrong; the first non-blank byte decides.
            let Some(first) = self.body.iter().skip(begin).find(|byte| !byte.is_ascii_whitespace()) else {
                return Ok(());
            };
            if matches!(first, b'{' | b'[' | b'<') {
                self.body.drain(..begin);
                self.form = Form::Body;
                return Ok(());
            }
            self.form = Form::Stream(SseParser::new().with_max_event(self.limits.event).with_stray_json());
            &std::mem::take(&mut self.body)
        } else {
            chunk
        };
        match &mut self.form {
            Form::Stream(parser) => {
                let mut outcome = Ok(());
                let decoder = &mut self.decoder;
                let parsed = parser.push(chunk, |event| decode(decoder, &mut outcome, &event, out));
                outcome
                    .and(parsed.map_err(|error| ModelError::protocol(error.to_string()).with_source(error)))
                    .map_err(|error| self.failed(error, out))
            }
            _ if is_success(self.status) || self.body.len() < MAX_ERROR_BODY => {
                self.body.extend_from_slice(chunk);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the answer is complete: [`finish`](Self::finish) may be called now, whatever happens to the connection.
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
        matches!(self.form, Form::Stream(_)) && self.decoder.is_complete()
    }

    /// Handles the end of the answer.
    ///
    /// # Errors
    /// Fails when the answer is an error, ended too early, or is not a reply.
    pub fn finish(mut self, protocol: &dyn Protocol, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !is_success(self.status) {
            return Err(protocol.error(&Answer::new(self.status, &self.headers, &self.body)));
        }
        let last = self.last_event(out);
        let result = match (&self.form, last) {
            // An event at the end of the stream that cannot be parsed was cut: a retry may receive it whole.
            (Form::Stream(_), Err(error)) if error.kind() == ModelErrorKind::Protocol => {
                self.decoder.finish(out).map_err(|_| error.with_retryable(true))
            }
            (Form::Stream(_), last) => last.and_then(|()| self.decoder.finish(out)),
            _ => self.decoder.body(&self.body, out),
        };
        result.map_err(|error| self.failed(error, out))
    }

    /// Handles an answer that broke off: the connection was reset, or nothing arrived for too long. What was read and held back
    /// is emitted.
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
    /// Returns `reason`, unless the reply had said how it ended, which makes it complete. For an answer with an error status the
    /// error is what the status and the start of the body say.
    pub fn break_off(
        mut self,
        protocol: &dyn Protocol,
        reason: ModelError,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if !is_success(self.status) {
            return self.finish(protocol, out).map_err(|error| error.with_source(reason));
        }
        // An event that was cut cannot be parsed; an error reported by the provider is more important than how the connection ended.
        let said = self.last_event(out).err().filter(|error| error.kind() != ModelErrorKind::Protocol);
        let result = match (&self.form, said) {
            (_, Some(error)) => Err(error),
            (Form::Stream(_), None) if self.decoder.has_ended() => self.decoder.finish(out),
            (Form::Body, None) if serde_json::from_slice::<IgnoredAny>(&self.body).is_ok() => {
                self.decoder.body(&self.body, out)
            }
            _ => Err(reason),
        };
        result.map_err(|error| self.failed(error, out))
    }

    /// The last event of a stream that ended without a blank line.
    fn last_event(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let mut outcome = Ok(());
        if let Form::Stream(parser) = &mut self.form {
            let decoder = &mut self.decoder;
            parser.finish(|event| decode(decoder, &mut outcome, &event, out));
        }
        outcome
    }

    /// Adds the provider's request id to the error if it has none, after emitting what the decoder held back.
    fn failed(&mut self, error: ModelError, out: &mut Vec<ModelEvent>) -> ModelError {
        self.decoder.abandon(out);
        failure::with_request_id(error, &Answer::new(self.status, &self.headers, b""))
    }
}

/// Decodes one event, unless an earlier one failed.
fn decode(
    decoder: &mut Box<dyn Decoder>,
    outcome: &mut Result<(), ModelError>,
    event: &SseEvent<'_>,
    out: &mut Vec<ModelEvent>,
) {
    let text = event.data.trim();
    if outcome.is_err() || (text.is_empty() && event.event != "error") {
        return;
    }
    *outcome = decoder.event(event, out);
    // An error event that is plain text is an error, too.
    if event.event == "error"
        && !decoder.is_complete()
        && !text.is_empty()
        && let Err(error) = outcome
        && error.kind() == ModelErrorKind::Protocol
        && serde_json::from_str::<IgnoredAny>(text).is_err()
    {
        *outcome = Err(failure::of_text(text));
    }
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
