//! What a provider's protocol is: a pure encoder and a pure decoder.

use std::fmt;

use serde_json::Value;

use super::failure;
use super::sse::SseEvent;
use crate::message::AssistantMessage;
use crate::model::{
    Capabilities, ManagedResult, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest,
};
use crate::schema::Dialect;

/// How a provider is asked and how its answer is read, without a network.
///
/// What a provider sends beyond the protocol (fields, events, kinds of content, words) is skipped or kept, never an
/// error.
///
#[doc = include_str!("../docs/protocol.md")]
pub trait Protocol: Send + Sync + fmt::Debug {
    /// Its name, for example `anthropic-messages`.
    fn api(&self) -> &'static str;

    /// Where the provider listens when nobody says otherwise.
    fn base_url(&self) -> &str;

    /// The request, without the key.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::model::ModelErrorKind::InvalidRequest) for what the protocol cannot say.
    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError>;

    /// What a model of this name can do, as far as the name tells. The default is that of [`Capabilities`].
    ///
    /// ```
    /// # #[cfg(feature = "anthropic")] {
    /// use agent::provider::{Protocol, anthropic::AnthropicMessages};
    ///
    /// let known = AnthropicMessages::default().capabilities("claude-sonnet-4-5");
    /// assert!(known.images && known.native_output && !known.audio);
    /// # }
    /// ```
    fn capabilities(&self, model: &str) -> Capabilities {
        let _ = model;
        Capabilities::default()
    }

    /// What reads one answer: a new one for each.
    fn decoder(&self, model: &ModelInfo) -> Box<dyn Decoder>;

    /// The dialect of the schemas of strict tools. The default leaves schemas as they are.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::provider::{Protocol, openai::{Compat, OpenAiChat}};
    /// use agent::schema::Dialect;
    ///
    /// let (openai, other) = (OpenAiChat::default(), OpenAiChat::default().with_compat(Compat::plain()));
    /// assert_eq!((openai.strict_dialect(), other.strict_dialect()), (Dialect::OpenAiStrict, Dialect::Plain));
    /// # }
    /// ```
    fn strict_dialect(&self) -> Dialect {
        Dialect::Plain
    }

    /// What an answer with an error status says. The default goes by the status and the usual headers, and keeps the body.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::provider::{Answer, Protocol, openai::OpenAiChat};
    ///
    /// let body = br#"{"error": {"message": "You have no quota left.", "code": "insufficient_quota"}}"#;
    /// let error = OpenAiChat::default().error(&Answer::new(429, &[], body));
    /// assert_eq!(error.message(), "You have no quota left.");
    /// assert!(error.is_rate_limit() && !error.is_retryable());
    /// # }
    /// ```
    fn error(&self, answer: &Answer<'_>) -> ModelError {
        failure::of_answer(answer, failure::Said::default())
    }

    /// The header that carries a key, and its value: a bearer token by default.
    ///
    /// ```
    /// # #[cfg(feature = "gemini")] {
    /// use agent::provider::{Protocol, gemini::Gemini};
    ///
    /// assert_eq!(Gemini::default().auth("AIza-123"), ("x-goog-api-key", "AIza-123".to_owned()));
    /// # }
    /// ```
    fn auth(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    /// What the tools came to that the provider ran for this reply, in order: read from its parts and from what they keep of
    /// the provider.
    ///
    /// ```
    /// # #[cfg(feature = "anthropic")] {
    /// use agent::message::{AssistantMessage, Content, Part, ProviderTool};
    /// use agent::model::ManagedResult;
    /// use agent::provider::{Protocol, anthropic::AnthropicMessages};
    ///
    /// let mut run = ProviderTool::new("code_execution");
    /// run.input = Some(agent::json!({"code": "print(6 * 7)"}));
    /// run.output = Some(agent::json!({"stdout": "42\n", "return_code": 0}));
    /// let reply = AssistantMessage::new([Part::new(Content::ProviderTool(run)), Part::text("It is 42.")]);
    /// let results = AnthropicMessages::default().managed_results(&reply);
    /// assert!(matches!(&results[..], [ManagedResult::CodeExecution(run)] if run.stdout == "42\n" && run.exit_code == Some(0)));
    /// # }
    /// ```
    fn managed_results(&self, reply: &AssistantMessage) -> Vec<ManagedResult> {
        let _ = reply;
        Vec::new()
    }

    /// Reads a request body of this protocol: the model's name, and the request in neutral words.
    /// [`encode`](Self::encode) gives the same body again; what has no neutral words is in the provider options, under
    /// `provider`. It is for who looks into recorded requests: no run needs it.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::provider::{Protocol, openai::OpenAiChat};
    ///
    /// let recorded = agent::json!({
    ///     "model": "gpt-4.1", "temperature": 0.5, "messages": [{"role": "user", "content": "Is it warm?"}],
    /// });
    /// let (model, request) = OpenAiChat::default().parse_request("openai", &recorded).unwrap();
    /// assert_eq!((model.as_str(), request.messages[0].text().as_str()), ("gpt-4.1", "Is it warm?"));
    /// assert_eq!(request.temperature, Some(0.5));
    /// # }
    /// ```
    ///
    /// # Errors
    /// The body is no request of this protocol; by default, always.
    fn parse_request(&self, provider: &str, body: &Value) -> Result<(String, ModelRequest), ModelError> {
        let _ = (provider, body);
        Err(ModelError::new(
            ModelErrorKind::InvalidRequest,
            format!("requests of `{}` are not read", self.api()),
        ))
    }
}

/// Reads one answer of a provider. Only [`event`](Self::event) and [`has_ended`](Self::has_ended) have to be there: the
/// defaults of the others are those of a protocol that streams and tells everything at once.
///
/// ```
/// use agent::model::{ModelError, ModelEvent};
/// use agent::provider::{Decoder, sse::{SseEvent, SseParser}};
///
/// /// Every event is a piece of text, and `[DONE]` the last.
/// #[derive(Default)]
/// struct Plain { has_ended: bool }
///
/// impl Decoder for Plain {
///     fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
///         match event.data {
///             "[DONE]" => self.has_ended = true,
///             text => out.push(ModelEvent::TextDelta { content_index: 0, delta: text.to_owned() }),
///         }
///         Ok(())
///     }
///
///     fn has_ended(&self) -> bool {
///         self.has_ended
///     }
/// }
///
/// let (mut decoder, mut events) = (Plain::default(), Vec::new());
/// SseParser::new().push(b"data: Hello!\n\n", |event| decoder.event(&event, &mut events).unwrap()).unwrap();
/// assert_eq!(events[0].text_delta(), Some("Hello!"));
/// // A stream that breaks off is an error without a word in the decoder.
/// assert!(!decoder.has_ended());
/// assert!(decoder.finish(&mut events).unwrap_err().is_retryable());
/// ```
pub trait Decoder: Send {
    /// Takes an event of a stream in.
    ///
    /// # Errors
    /// The event says that the provider failed, or is not what the protocol says.
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// The stream has ended as streams do.
    ///
    /// # Errors
    /// It ended too early: by default, when the reply has not [said how it ended](Self::has_ended).
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let _ = out;
        if self.has_ended() {
            Ok(())
        } else {
            Err(ModelError::protocol("the reply broke off before its end").with_retryable(true))
        }
    }

    /// The stream broke off, or said that the provider failed: tells what was read and not told yet, such as usage, and no
    /// end. By default nothing was held back.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::model::{ModelEvent, ModelInfo};
    /// use agent::provider::{Protocol, openai::OpenAiChat, sse::SseParser};
    ///
    /// let mut decoder = OpenAiChat::default().decoder(&ModelInfo::new("openai", "openai-chat", "gpt-5"));
    /// let mut events = Vec::new();
    /// let stream = br#"data: {"choices": [{"delta": {"content": "Hi"}}], "usage": {"prompt_tokens": 3}}"#;
    /// let mut parser = SseParser::new();
    /// parser.push(stream, |_| {}).unwrap();
    /// parser.finish(|event| decoder.event(&event, &mut events).unwrap());
    /// decoder.abandon(&mut events);
    /// assert!(matches!(events.last(), Some(ModelEvent::Usage { usage }) if usage.input == 3));
    /// # }
    /// ```
    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        let _ = out;
    }

    /// Whether the reply said how it ended: usage alone may be missing, so that a connection that breaks now takes nothing
    /// of it.
    fn has_ended(&self) -> bool;

    /// Whether the stream said its last word: nothing that follows is waited for. By default, its end is.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::model::ModelInfo;
    /// use agent::provider::{Protocol, openai::OpenAiChat, sse::SseParser};
    ///
    /// let mut decoder = OpenAiChat::default().decoder(&ModelInfo::new("openai", "openai-chat", "gpt-5"));
    /// let (mut parser, mut events) = (SseParser::new(), Vec::new());
    /// let end = br#"data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}"#;
    /// let end = [&end[..], b"\n\n"].concat();
    /// parser.push(&end, |event| decoder.event(&event, &mut events).unwrap()).unwrap();
    /// assert!(decoder.has_ended() && !decoder.is_complete());       // usage may follow
    /// parser.push(b"data: [DONE]\n\n", |event| decoder.event(&event, &mut events).unwrap()).unwrap();
    /// assert!(decoder.is_complete());
    /// # }
    /// ```
    fn is_complete(&self) -> bool {
        false
    }

    /// Takes an answer in that is one JSON body.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::model::{ModelEvent, ModelInfo};
    /// use agent::provider::{Protocol, openai::OpenAiChat};
    ///
    /// let mut decoder = OpenAiChat::default().decoder(&ModelInfo::new("openai", "openai-chat", "gpt-5"));
    /// let mut events = Vec::new();
    /// decoder.body(br#"{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}"#, &mut events).unwrap();
    /// assert!(events.iter().any(|event| event.text_delta() == Some("Hi")));
    /// assert!(matches!(events.last(), Some(ModelEvent::Stop { .. })));
    /// assert!(decoder.body(b"<html>", &mut events).is_err());
    /// # }
    /// ```
    ///
    /// # Errors
    /// The body says that the provider failed, or is no reply; by default, always.
    fn body(&mut self, body: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let _ = (body, out);
        Err(ModelError::protocol("the answer is one body, and no stream of events"))
    }
}

/// A request as it goes out, but for the key.
///
/// ```
/// use agent::provider::HttpRequest;
///
/// let request = HttpRequest::post("/v1/messages", agent::json!({"model": "m"})).with_header("x-beta", "tools");
/// assert_eq!(request.method, "POST");
/// assert_eq!(request.url("https://api.example"), "https://api.example/v1/messages");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HttpRequest {
    /// `POST`.
    pub method: &'static str,
    /// Path and query, to be put after the base URL.
    pub path: String,
    /// Headers of the protocol.
    pub headers: Vec<(String, String)>,
    /// The body, sent as JSON.
    pub body: Value,
}

impl HttpRequest {
    /// A POST of this body.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: "POST", path: path.into(), headers: Vec::new(), body }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The whole URL. What base and path have in common at their border is written once, so a base URL may end in the
    /// version, or be the endpoint itself.
    ///
    /// ```
    /// use agent::provider::HttpRequest;
    ///
    /// let request = HttpRequest::post("/v1/messages", serde_json::json!({}));
    /// for base in ["https://a.example", "https://a.example/v1/", "https://a.example/v1/messages"] {
    ///     assert_eq!(request.url(base), "https://a.example/v1/messages");
    /// }
    /// ```
    pub fn url(&self, base: &str) -> String {
        let (base, query) = base.split_once('?').map_or((base, None), |(base, query)| (base, Some(query)));
        let base = base.trim_end_matches('/');
        let overlap = (0..=self.path.len()).rev().filter(|&at| self.path.is_char_boundary(at)).find(|&at| {
            let (head, tail) = self.path.split_at(at);
            base.ends_with(head) && (tail.is_empty() || tail.starts_with('/'))
        });
        let rest = self.path.get(overlap.unwrap_or(0)..).unwrap_or_default();
        match query {
            None => format!("{base}{rest}"),
            Some(query) if rest.contains('?') => format!("{base}{rest}&{query}"),
            Some(query) => format!("{base}{rest}?{query}"),
        }
    }
}

/// An answer that came as a whole.
///
/// ```
/// use agent::provider::Answer;
///
/// let headers = [("retry-after".to_owned(), "3".to_owned())];
/// let answer = Answer::new(429, &headers, b"slow down");
/// assert_eq!((answer.status, answer.header("retry-after")), (429, Some("3")));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// An answer of this status.
    pub fn new(status: u16, headers: &'a [(String, String)], body: &'a [u8]) -> Self {
        Self { status, headers, body }
    }

    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}
