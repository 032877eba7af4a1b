//! The Responses protocol.

mod decode;
mod encode;
mod frequent;
mod items;
#[cfg(any(test, feature = "testing"))]
mod parse;

use std::borrow::Cow;

use super::errors;
use crate::message::AssistantMessage;
use crate::model::{Capabilities, ManagedResult, ModelError, ModelInfo, ModelRequest};
use crate::provider::failure;
use crate::provider::protocol::{Decoder, HttpRequest, HttpResponse, Protocol};
use crate::schema::Dialect;

#[cfg(test)]
mod tests;

/// The [Responses API](https://platform.openai.com/docs/api-reference/responses) of OpenAI and of compatible servers: `POST …/responses`.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest, Thinking};
/// use agent::provider::{Protocol, openai::OpenAiResponses};
/// use agent::schema::Dialect;
///
/// let model = ModelInfo::new("openai", "openai-responses", "gpt-5");
/// let request = ModelRequest::new([Message::user("Hi")]).with_system("Be brief.").with_thinking(Thinking::Low);
/// let http = OpenAiResponses::default().encode(&model, &request)?;
/// assert_eq!(http.url("https://api.openai.com/v1"), "https://api.openai.com/v1/responses");
/// assert_eq!(http.json()["instructions"], "Be brief.");
/// assert_eq!(http.json()["reasoning"]["effort"], "low");
/// assert_eq!(http.json()["include"][0], "reasoning.encrypted_content");
///
/// // With replies kept at the provider, and summaries of what the model thought.
/// let kept = OpenAiResponses::default().with_store().with_summary("auto").encode(&model, &request)?;
/// assert_eq!((&kept.json()["store"], &kept.json()["reasoning"]["summary"]), (&true.into(), &"auto".into()));
///
/// // For a server that supports neither encrypted reasoning nor strict schemas.
/// let plain = OpenAiResponses::default().without_encrypted_reasoning().without_strict();
/// assert_eq!(plain.encode(&model, &request)?.json().get("include"), None);
/// assert_eq!(plain.strict_dialect(), Dialect::Plain);
/// # Ok::<(), agent::model::ModelError>(())
/// ```
///
/// The whole conversation is sent. By default, the provider keeps nothing (`store: false`), and reasoning is sent back encrypted, with the
/// item that followed it. Settings that the API refuses are left out, with a warning: `temperature` and `top_p` while the model reasons,
/// and `stop` always. If the [provider options](ModelRequest::provider_options) contain a list `include`, the values for the data that the
/// library reads are added to the list: encrypted reasoning, the pages of a web search, and the output of executed code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenAiResponses {
    /// Whether the provider stores the reply.
    pub store: bool,
    /// Whether to request encrypted reasoning from reasoning models. Has no effect if `store` is set. If neither this field nor `store` is
    /// set, reasoning is sent back only if the provider shows its text.
    pub encrypted_reasoning: bool,
    /// The kind of reasoning summary that is requested, such as `auto`. OpenAI refuses requests for summaries from organizations that are
    /// not verified, so the default is `None`.
    pub summary: Option<Cow<'static, str>>,
    /// Whether the server supports strict schemas.
    pub strict: bool,
}

impl Default for OpenAiResponses {
    fn default() -> Self {
        Self { store: false, encrypted_reasoning: true, summary: None, strict: true }
    }
}

impl OpenAiResponses {
    /// The name of the protocol.
    pub const API: &str = "openai-responses";

    /// Lets the provider store replies. Encrypted reasoning is not requested with this setting.
    pub fn with_store(mut self) -> Self {
        self.store = true;
        self
    }

    /// Requests summaries of the model's reasoning. `summary` is the kind of summary, such as `auto`. Summaries are requested only if the
    /// request sets a level of thinking other than `none`.
    pub fn with_summary(mut self, summary: impl Into<Cow<'static, str>>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Does not request encrypted reasoning, for servers that do not support it.
    pub fn without_encrypted_reasoning(mut self) -> Self {
        self.encrypted_reasoning = false;
        self
    }

    /// Sends no strict schemas, for servers that do not support them.
    pub fn without_strict(mut self) -> Self {
        self.strict = false;
        self
    }
}

/// The fields of a request body that the endpoint for counting tokens accepts.
///
/// Source: OpenAI's page on [input token counts](https://platform.openai.com/docs/api-reference/responses/input-tokens).
const COUNTED: &[&str] = &[
    "conversation",
    "input",
    "instructions",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "text",
    "tool_choice",
    "tools",
    "truncation",
];

impl Protocol for OpenAiResponses {
    fn api(&self) -> &'static str {
        Self::API
    }

    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        encode::request(self, model, request)
    }

    fn encode_count(
        &self,
        model: &ModelInfo,
        request: &ModelRequest,
    ) -> Result<Option<(HttpRequest, &'static str)>, ModelError> {
        let http = self.encode(model, request)?;
        Ok(Some((http.about_input("/responses/input_tokens", COUNTED), "/input_tokens")))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let native_output = self.strict && super::models::has_structured_output(model);
        let known = Capabilities { native_output, audio: false, ..super::models::media(model) };
        super::managed::capabilities(model, known)
    }

    fn decoder(&self, model: &ModelInfo) -> Box<dyn Decoder> {
        Box::new(decode::ResponsesDecoder::new(&model.provider))
    }

    fn strict_dialect(&self) -> Dialect {
        if self.strict { Dialect::OpenAiStrict } else { Dialect::Plain }
    }

    fn error(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
        let response = HttpResponse::new(status, headers, body);
        failure::response_error(&response, errors::read_report)
    }

    fn auth(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn managed_results(&self, reply: &AssistantMessage) -> Vec<ManagedResult> {
        super::managed::results(reply)
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
