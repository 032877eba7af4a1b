//! Anthropic's [Messages API](https://platform.claude.com/docs/en/api/messages).
//! ```no_run
//! # #[cfg(feature = "runtime")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use agent::Assistant;
//!
//! let assistant = Assistant::builder(agent::model("anthropic/claude-sonnet-5")?).build()?;        // reads ANTHROPIC_API_KEY
//! println!("{}", assistant.prompt("Say hello.").await?.text());
//! # Ok(()) }
//! ```

mod blocks;
mod decode;
mod encode;
mod errors;
mod managed;
mod models;
#[cfg(any(test, feature = "testing"))]
mod parse;

use super::failure;
use super::protocol::{Decoder, HttpRequest, HttpResponse, Protocol};
use crate::message::AssistantMessage;
use crate::model::{Capabilities, ManagedResult, ModelError, ModelInfo, ModelRequest, ToolChoice};
use crate::schema::Dialect;
use std::borrow::Cow;

pub(super) use decode::requests;

#[cfg(test)]
mod tests;

/// The Messages API of Anthropic: `POST /v1/messages`.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest, Thinking};
/// use agent::provider::{Protocol, anthropic::AnthropicMessages};
///
/// let model = ModelInfo::new("anthropic", "anthropic-messages", "claude-sonnet-4-5");
/// let request = ModelRequest::new([Message::user("Is 91 prime?")]).with_thinking(Thinking::Medium);
/// let http = AnthropicMessages::default().encode(&model, &request)?;
/// assert_eq!(http.json()["thinking"]["budget_tokens"], 8000);
/// assert_eq!(http.json()["max_tokens"], 12096);   // room for the response too, unless the caller sets a limit
/// # Ok::<(), agent::model::ModelError>(())
/// ```
///
/// With the newer version of the API, a beta feature, and a token instead of a key:
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest};
/// use agent::provider::{Protocol, anthropic::AnthropicMessages};
///
/// let protocol = AnthropicMessages::default()
///     .with_version("2026-10-21")
///     .with_beta("context-1m-2025-08-07")
///     .with_bearer();
/// let model = ModelInfo::new("anthropic", "anthropic-messages", "claude-sonnet-4-5");
/// let http = protocol.encode(&model, &ModelRequest::new([Message::user("Is 91 prime?")]))?;
/// assert!(http.headers.contains(&("anthropic-version".into(), "2026-10-21".into())));
/// assert!(http.headers.contains(&("anthropic-beta".into(), "context-1m-2025-08-07".into())));
/// assert_eq!(protocol.auth("token-7"), ("authorization", "Bearer token-7".into()));
/// # Ok::<(), agent::model::ModelError>(())
/// ```
///
/// `temperature` and `top_p` are left out, with a warning, where Anthropic refuses them: together with thinking, with API versions from
/// `2026-10-21` on, and with models from version 4.7 on. With models 4.5 and 4.6, `top_p` is left out if both are set.
///
/// A forced choice of tools turns thinking off, with a warning. Models that always think, and Sonnet from version 5.5 on, refuse a forced
/// choice. The request then leaves the choice to the model, also with a warning.
///
/// Texts of only whitespace are left out if they have no provider data, because Anthropic refuses such texts. Messages that become empty
/// are left out, too. A conversation that becomes empty is an error. Whitespace at the end of an assistant message that the model
/// continues is removed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnthropicMessages {
    /// The version of the API, sent as the header `anthropic-version`. Since `2026-10-21` the API refuses sampling settings, documents in
    /// assistant messages, and citations in user texts.
    pub version: Cow<'static, str>,
    /// Whether the key is sent as `Authorization: Bearer` instead of as `x-api-key`.
    pub bearer: bool,
    /// Values for the header `anthropic-beta`.
    pub betas: Vec<String>,
}

/// The first API version that refuses sampling settings, documents in assistant messages and citations in user texts.
const STRICTER_SINCE: &str = "2026-10-21";

impl Default for AnthropicMessages {
    fn default() -> Self {
        Self { version: "2023-06-01".into(), bearer: false, betas: Vec::new() }
    }
}

impl AnthropicMessages {
    /// The name of the protocol.
    pub const API: &str = "anthropic-messages";

    /// Sets the version of the API. Default: `2023-06-01`.
    pub fn with_version(mut self, version: impl Into<Cow<'static, str>>) -> Self {
        self.version = version.into();
        self
    }

    /// Returns whether the version, a date, is at least [`STRICTER_SINCE`].
    fn is_stricter(&self) -> bool {
        *self.version >= *STRICTER_SINCE
    }

    /// Sends the key as `Authorization: Bearer` instead of as `x-api-key`.
    pub fn with_bearer(mut self) -> Self {
        self.bearer = true;
        self
    }

    /// Adds a value to the header `anthropic-beta`.
    pub fn with_beta(mut self, name: impl Into<String>) -> Self {
        self.betas.push(name.into());
        self
    }
}

/// The fields of a request body that the endpoint for counting tokens accepts.
///
/// Source: Anthropic's page on [counting tokens](https://platform.claude.com/docs/en/api/messages-count-tokens).
const COUNTED: &[&str] =
    &["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"];

impl Protocol for AnthropicMessages {
    fn api(&self) -> &'static str {
        Self::API
    }

    fn base_url(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        encode::request(self, model, request)
    }

    /// Leaves out the tools that Anthropic runs, because the endpoint for counting tokens refuses some of them.
    fn encode_count(
        &self,
        model: &ModelInfo,
        request: &ModelRequest,
    ) -> Result<Option<(HttpRequest, &'static str)>, ModelError> {
        let mut request = ModelRequest { managed_tools: Vec::new(), ..request.clone() };
        if let ToolChoice::Tool(name) = &request.tool_choice
            && !request.tools.iter().any(|tool| tool.name() == name)
        {
            request.tool_choice = ToolChoice::Required;
        }
        let http = self.encode(model, &request)?;
        Ok(Some((http.about_input("/v1/messages/count_tokens", COUNTED), "/input_tokens")))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let native_output = models::has_structured_output(model);
        // Schemas beyond this dialect are rejected with status 400. Source:
        // https://platform.claude.com/docs/en/build-with-claude/structured-outputs
        let output_dialect = native_output.then_some(Dialect::AnthropicStrict);
        let known = Capabilities { native_output, output_dialect, audio: false, ..Capabilities::default() };
        managed::capabilities(model, known)
    }

    fn decoder(&self, model: &ModelInfo) -> Box<dyn Decoder> {
        Box::new(decode::AnthropicDecoder::new(&model.provider))
    }

    fn strict_dialect(&self) -> Dialect {
        Dialect::AnthropicStrict
    }

    fn error(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
        let response = HttpResponse::new(status, headers, body);
        failure::response_error(&response, errors::read_report)
    }

    fn auth(&self, key: &str) -> (&'static str, String) {
        if self.bearer { ("authorization", format!("Bearer {key}")) } else { ("x-api-key", key.to_owned()) }
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
