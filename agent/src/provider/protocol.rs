//! The interface of a provider's protocol: a pure encoder and a pure decoder.

use std::fmt;

use serde_json::Value;

use super::body::RequestBody;
use super::failure;
use super::sse::SseEvent;
use crate::message::AssistantMessage;
use crate::model::{Capabilities, ManagedResult, ModelError, ModelEvent, ModelInfo, ModelRequest};
use crate::schema::Dialect;

/// A provider's protocol: encodes requests and decodes responses, without a network.
///
/// Fields, events, kinds of content and values that the protocol does not define never cause an error. A protocol skips or keeps them.
///
#[doc = include_str!("../docs/protocol.md")]
pub trait Protocol: Send + Sync + fmt::Debug {
    /// Returns the name of the protocol, for example `anthropic-messages`.
    fn api(&self) -> &'static str;

    /// Returns the default base URL of the provider.
    fn base_url(&self) -> &str;

    /// Encodes a request, without the key.
    ///
    /// # Errors
    /// Fails with [`InvalidRequest`](crate::model::ModelErrorKind::InvalidRequest) when the protocol cannot express the request.
    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError>;

    /// Returns the capabilities that the name of a model implies. By default, returns the default [`Capabilities`].
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

    /// Encodes the HTTP request that counts the input tokens of `request`. Returns the HTTP request, and the JSON Pointer to the number in
    /// the response. Returns `None` if the provider has no endpoint for counting, which is the default.
    ///
    /// ```
    /// # #[cfg(feature = "anthropic")] {
    /// use agent::message::Message;
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol, anthropic::AnthropicMessages};
    ///
    /// let model = ModelInfo::new("anthropic", "anthropic-messages", "claude-sonnet-5");
    /// let request = ModelRequest::new([Message::user("Hi")]);
    /// let (http, number) = AnthropicMessages::default().encode_count(&model, &request).unwrap().unwrap();
    /// assert_eq!((http.path.as_str(), number), ("/v1/messages/count_tokens", "/input_tokens"));
    /// assert_eq!(http.json().get("max_tokens"), None);
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails when [`encode`](Self::encode) does.
    fn encode_count(
        &self,
        model: &ModelInfo,
        request: &ModelRequest,
    ) -> Result<Option<(HttpRequest, &'static str)>, ModelError> {
        let _ = (model, request);
        Ok(None)
    }

    /// Returns a new decoder for one response.
    fn decoder(&self, model: &ModelInfo) -> Box<dyn Decoder>;

    /// Returns the dialect of the schemas of strict tools. By default this is [`Plain`](Dialect::Plain), in which no schema is strict.
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

    /// Converts a response with an error status to an error. The names in `headers` are in lower case. By default, the error is made from
    /// the status and the usual headers, and keeps the body.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::provider::{Protocol, openai::OpenAiChat};
    ///
    /// let body = br#"{"error": {"message": "You have no quota left.", "code": "insufficient_quota"}}"#;
    /// let error = OpenAiChat::default().error(429, &[], body);
    /// assert_eq!(error.message(), "You have no quota left.");
    /// assert!(error.is_rate_limit() && !error.is_retryable());
    /// # }
    /// ```
    fn error(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
        failure::from_response(&HttpResponse::new(status, headers, body), failure::ErrorReport::default())
    }

    /// Returns the name and the value of the header that carries a key. By default the header is `Authorization` with a bearer token.
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

    /// Returns the results of the tools that the provider ran for this reply, in order. The results are read from the parts and the
    /// provider data of the reply. By default, returns none.
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
    /// let parts = [Part::new(Content::ProviderTool(Box::new(run))), Part::text("It is 42.")];
    /// let reply = AssistantMessage::new(parts);
    /// let results = AnthropicMessages::default().managed_results(&reply);
    /// assert!(matches!(&results[..], [ManagedResult::CodeExecution { stdout, exit_code: Some(0), .. }] if stdout == "42\n"));
    /// # }
    /// ```
    fn managed_results(&self, reply: &AssistantMessage) -> Vec<ManagedResult> {
        let _ = reply;
        Vec::new()
    }

    /// Parses a request body of this protocol into the model's name and a [`ModelRequest`]. Other keys of the body become provider
    /// options, under `provider`, so that [`encode`](Self::encode) produces the same body again. The method is for the inspection of
    /// recorded requests (feature `testing`); runs do not use it.
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
    /// Fails when the body is not a request of this protocol; by default, always.
    #[cfg(any(test, feature = "testing"))]
    fn parse_request(&self, provider: &str, body: &Value) -> Result<(String, ModelRequest), ModelError> {
        let _ = (provider, body);
        let text = format!("requests of `{}` cannot be parsed", self.api());
        Err(ModelError::new(crate::model::ModelErrorKind::InvalidRequest, text))
    }
}

/// Decodes one response of a provider. Only [`event`](Self::event) and [`has_ended`](Self::has_ended) are required. The defaults of the
/// other methods suit a protocol that always streams, and a decoder that holds no events back.
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
/// // The default `finish` returns an error if the stream broke off.
/// assert!(!decoder.has_ended());
/// assert!(decoder.finish(&mut events).unwrap_err().is_retryable());
/// ```
pub trait Decoder: Send {
    /// Decodes one event of a stream.
    ///
    /// # Errors
    /// Fails when the event reports a failure of the provider, or violates the protocol.
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Handles the regular end of the stream.
    ///
    /// # Errors
    /// Fails when the stream ended too early: by default, when the reply has not [reported how it ended](Self::has_ended).
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let _ = out;
        if self.has_ended() {
            Ok(())
        } else {
            Err(ModelError::protocol("the reply broke off before its end").with_retryable(true))
        }
    }

    /// Handles a stream that broke off or reported a failure: emits events that were held back, such as usage, but not the end of the
    /// reply. By default, no event is held back.
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
    /// parser.finish(|event| decoder.event(&event, &mut events).unwrap()).unwrap();
    /// decoder.abandon(&mut events);
    /// assert!(matches!(events.last(), Some(ModelEvent::Usage { usage }) if usage.input == 3));
    /// # }
    /// ```
    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        let _ = out;
    }

    /// Returns whether the reply reported how it ended. A connection that breaks after this report is not an error, because at most the
    /// usage is missing.
    fn has_ended(&self) -> bool;

    /// Returns whether the stream is complete, so that the rest of the response is not awaited. By default, returns `false`: the response
    /// is read to its end.
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

    /// Decodes a response that is one JSON body.
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
    /// Fails when the body reports a failure of the provider, or is not a reply; by default, always.
    fn body(&mut self, body: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let _ = (body, out);
        Err(ModelError::protocol("the response is one body, not a stream of events"))
    }
}

/// An encoded request with its JSON body, without the key.
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
    /// The HTTP method: `POST`.
    pub method: &'static str,
    /// Path and query, appended to the base URL.
    pub path: String,
    /// The headers that the protocol needs, without the key.
    pub headers: Vec<(String, String)>,
    pub(super) body: RequestBody,
}

impl HttpRequest {
    /// Creates a POST request with this body.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self::with_body(path, body.into())
    }

    pub(super) fn with_body(path: impl Into<String>, body: RequestBody) -> Self {
        Self { method: "POST", path: path.into(), headers: Vec::new(), body }
    }

    /// Returns the text of the body, as it is sent.
    ///
    /// ```
    /// use agent::provider::HttpRequest;
    ///
    /// let request = HttpRequest::post("/v1/messages", agent::json!({"model": "m"}));
    /// assert_eq!(request.text(), r#"{"model":"m"}"#);
    /// assert_eq!(request.json()["model"], "m");
    /// assert!(!format!("{request:?}").contains("model"));              // arguments may hold secrets
    /// ```
    pub fn text(&self) -> String {
        self.body.text()
    }

    /// Returns the parsed body, to inspect it. Sending a request does not parse its body.
    pub fn json(&self) -> Value {
        self.body.value()
    }

    /// Returns a request about the input of this request, for example to count its tokens. The new request has another path, and only
    /// `fields` of the body. Its response is not a stream, so the header `accept` is removed.
    #[cfg(any(feature = "anthropic", feature = "openai", feature = "gemini"))]
    pub(super) fn about_input(mut self, path: impl Into<String>, fields: &[&str]) -> Self {
        let mut body = self.json();
        if let Some(object) = body.as_object_mut() {
            object.retain(|key, _| fields.contains(&key.as_str()));
        }
        self.headers.retain(|(name, _)| name != "accept");
        Self { path: path.into(), body: body.into(), ..self }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the whole URL. The base URL may already contain the first segments of the path, such as the version, or the whole path. A
    /// query of the base URL is moved to the end of the whole URL, without the parameters that the query of the path already contains.
    ///
    /// ```
    /// use agent::provider::HttpRequest;
    ///
    /// let request = HttpRequest::post("/v1/messages", serde_json::json!({}));
    /// for base in ["https://a.example", "https://a.example/v1/", "https://a.example/v1/messages"] {
    ///     assert_eq!(request.url(base), "https://a.example/v1/messages");
    /// }
    /// let request = HttpRequest::post("/v1/m:stream?alt=sse", serde_json::json!({}));
    /// for base in ["https://a.example?x=1", "https://a.example/v1/m:stream?alt=sse&x=1"] {
    ///     assert_eq!(request.url(base), "https://a.example/v1/m:stream?alt=sse&x=1");
    /// }
    /// ```
    pub fn url(&self, base: &str) -> String {
        fn split(url: &str) -> (&str, Option<&str>) {
            url.split_once('?').map_or((url, None), |(url, query)| (url, Some(query)))
        }
        let ((base, query), (path, own)) = (split(base), split(&self.path));
        let base = base.trim_end_matches('/');
        let overlap = (0..=path.len()).rev().filter(|&at| path.is_char_boundary(at)).find(|&at| {
            let (head, tail) = path.split_at(at);
            base.ends_with(head) && (tail.is_empty() || tail.starts_with('/'))
        });
        let mut url = format!("{base}{}", path.get(overlap.unwrap_or(0)..).unwrap_or_default());
        let own: Vec<&str> = own.into_iter().flat_map(|own| own.split('&')).collect();
        let more = query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !own.contains(pair));
        for (at, pair) in own.iter().copied().chain(more).enumerate() {
            url.push(if at == 0 { '?' } else { '&' });
            url.push_str(pair);
        }
        url
    }
}

/// A response. The body of an error response may be incomplete.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpResponse<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a [(String, String)],
    pub(super) body: &'a [u8],
}

impl<'a> HttpResponse<'a> {
    pub(super) fn new(status: u16, headers: &'a [(String, String)], body: &'a [u8]) -> Self {
        Self { status, headers, body }
    }

    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}
