//! Google's [Gemini API](https://ai.google.dev/api/generate-content).
//! ```no_run
//! # #[cfg(feature = "runtime")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use agent::Assistant;
//!
//! let assistant = Assistant::builder(agent::model("gemini/gemini-2.5-flash")?).build()?;          // reads GEMINI_API_KEY
//! println!("{}", assistant.prompt("Say hello.").await?.text());
//! # Ok(()) }
//! ```

mod decode;
mod encode;
mod errors;
mod managed;
mod models;
#[cfg(any(test, feature = "testing"))]
mod parse;
mod partial;
mod parts;

use std::borrow::Cow;

use super::failure;
use super::protocol::{Decoder, HttpRequest, HttpResponse, Protocol};
use crate::message::AssistantMessage;
use crate::model::{Capabilities, ManagedResult, ModelError, ModelInfo, ModelRequest};
use crate::schema::Dialect;

#[cfg(test)]
mod tests;

/// `generateContent` of Google's Gemini API: `POST /v1beta/models/{model}:streamGenerateContent`.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest, Thinking};
/// use agent::provider::{Protocol, gemini::Gemini};
/// use agent::schema::Dialect;
///
/// let model = ModelInfo::new("gemini", "gemini-generate-content", "gemini-3-flash-preview");
/// let request = ModelRequest::new([Message::user("Is 91 prime?")]).with_thinking(Thinking::Low);
/// let http = Gemini::default().encode(&model, &request)?;
/// assert_eq!(http.path, "/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse");
/// assert_eq!(http.json()["generationConfig"]["thinkingConfig"]["thinkingLevel"], "LOW");
///
/// // The protocol can also use version `v1` of the API and send schemas for older models.
/// let older = Gemini::default().with_version("v1").with_open_api_schemas();
/// assert!(older.encode(&model, &request)?.path.starts_with("/v1/models/"));
/// assert_eq!(older.strict_dialect(), Dialect::GeminiLegacy);
/// # Ok::<(), agent::model::ModelError>(())
/// ```
///
/// Objects among the [provider options](ModelRequest::provider_options) are merged into the objects of the request key by key, so
/// `{"generationConfig": {"seed": 7}}` leaves the rest of `generationConfig` unchanged.
///
/// Gemini 3 and later require a signature for the first call of a reply, and calls of other models have none. The first call is then sent
/// with the placeholder from Gemini's [documentation](https://ai.google.dev/gemini-api/docs/thought-signatures).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gemini {
    /// The version of the API, the first segment of the path; empty if the base URL contains it.
    pub version: Cow<'static, str>,
    /// Whether schemas have the form for older models: a subset of `OpenAPI` 3.0, in `parameters` and `responseSchema`. The default form
    /// is JSON Schema, in `parametersJsonSchema` and `responseJsonSchema`.
    pub open_api_schemas: bool,
    /// Whether a stream may end without `finishReason`, for proxies that leave it out. A stream that ends early, without an error of the
    /// connection, then looks complete.
    pub lenient_end: bool,
}

impl Default for Gemini {
    fn default() -> Self {
        Self { version: Cow::Borrowed("v1beta"), open_api_schemas: false, lenient_end: false }
    }
}

impl Gemini {
    /// The name of the protocol.
    pub const API: &str = "gemini-generate-content";

    /// Sets the version of the API, the first segment of the path. Default: `v1beta`, which has all features. An empty version leaves
    /// the segment out: the base URL of Vertex AI contains it.
    ///
    /// ```
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol, gemini::Gemini};
    ///
    /// let model = ModelInfo::new("gemini", "gemini-generate-content", "gemini-3-flash-preview");
    /// let path = |version: &'static str| {
    ///     Gemini::default().with_version(version).encode(&model, &ModelRequest::default()).map(|http| http.path)
    /// };
    /// assert_eq!(path("v1")?, "/v1/models/gemini-3-flash-preview:streamGenerateContent?alt=sse");
    /// assert!(path("")?.starts_with("/models/"));
    /// # Ok::<(), agent::model::ModelError>(())
    /// ```
    pub fn with_version(mut self, version: impl Into<Cow<'static, str>>) -> Self {
        self.version = version.into();
        self
    }

    /// Sends schemas for older models: as `parameters` and `responseSchema`, in a subset of `OpenAPI` 3.0.
    pub fn with_open_api_schemas(mut self) -> Self {
        self.open_api_schemas = true;
        self
    }

    const fn schema_fields(&self) -> (&'static str, &'static str, Dialect) {
        if self.open_api_schemas {
            ("parameters", "responseSchema", Dialect::GeminiLegacy)
        } else {
            ("parametersJsonSchema", "responseJsonSchema", Dialect::GeminiJsonSchema)
        }
    }

    /// Accepts streams that end without `finishReason` as complete, if they contain a candidate.
    ///
    /// ```
    /// use agent::model::ModelInfo;
    /// use agent::provider::{ReplyReader, gemini::Gemini};
    ///
    /// let model = ModelInfo::new("gemini", "gemini-generate-content", "gemini-3-flash-preview");
    /// let read = |protocol: Gemini| {
    ///     let (mut reader, mut events) = (ReplyReader::new(&protocol, &model, 200, Vec::new()), Vec::new());
    ///     reader.push(br#"data: {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}"#, &mut events)?;
    ///     reader.finish(&protocol, &mut events)
    /// };
    /// assert!(read(Gemini::default()).unwrap_err().is_retryable());
    /// assert!(read(Gemini::default().with_lenient_end()).is_ok());
    /// ```
    pub fn with_lenient_end(mut self) -> Self {
        self.lenient_end = true;
        self
    }
}

impl Protocol for Gemini {
    fn api(&self) -> &'static str {
        Self::API
    }

    fn base_url(&self) -> &'static str {
        "https://generativelanguage.googleapis.com"
    }

    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        encode::request(self, model, request)
    }

    /// Encodes the request for a token count. The Gemini API gets the whole request in one field. Vertex AI (empty `version`) gets only
    /// some fields of the request.
    fn encode_count(
        &self,
        model: &ModelInfo,
        request: &ModelRequest,
    ) -> Result<Option<(HttpRequest, &'static str)>, ModelError> {
        let http = self.encode(model, request)?;
        let name = http.path.split(":streamGenerateContent").next().unwrap_or_default();
        let path = format!("{name}:countTokens");
        if self.version.is_empty() {
            let fields = ["contents", "systemInstruction", "tools", "generationConfig"];
            return Ok(Some((http.about_input(path, &fields), "/totalTokens")));
        }
        let mut whole = http.json();
        if let Some(whole) = whole.as_object_mut() {
            let folder = if model.model.contains('/') { "" } else { "models/" };
            whole.insert("model".to_owned(), format!("{folder}{}", model.model).into());
        }
        let body = serde_json::json!({"generateContentRequest": whole});
        Ok(Some((HttpRequest::post(path, body), "/totalTokens")))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        // Before Gemini 3, a request has either tools or a schema for the reply, so the schema does not count as a capability.
        let native_output = models::version(model).is_none_or(|version| version >= (3, 0));
        managed::capabilities(model, Capabilities { native_output, ..Capabilities::default() })
    }

    fn decoder(&self, model: &ModelInfo) -> Box<dyn Decoder> {
        Box::new(decode::GeminiDecoder::new(&model.provider, self.lenient_end))
    }

    fn strict_dialect(&self) -> Dialect {
        self.schema_fields().2
    }

    fn error(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
        let response = HttpResponse::new(status, headers, body);
        failure::response_error(&response, errors::read_report)
    }

    fn auth(&self, key: &str) -> (&'static str, String) {
        ("x-goog-api-key", key.to_owned())
    }

    fn managed_results(&self, reply: &AssistantMessage) -> Vec<ManagedResult> {
        managed::results(reply)
    }

    #[cfg(any(test, feature = "testing"))]
    fn parse_request(
        &self,
        provider: &str,
        body: &serde_json::Value,
    ) -> Result<(String, ModelRequest), ModelError> {
        parse::request(self, provider, body)
    }
}
