//! The Chat Completions protocol.

mod decode;
mod encode;
mod frequent;
#[cfg(any(test, feature = "testing"))]
mod parse;

use std::borrow::Cow;

use crate::message::AssistantMessage;
use crate::model::{Capabilities, ManagedResult, ModelError, ModelInfo, ModelRequest};
use crate::provider::failure;
use crate::provider::openai::{errors, managed, models};
use crate::provider::protocol::{Decoder, HttpRequest, HttpResponse, Protocol};
use crate::schema::Dialect;

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;

/// The [Chat Completions API](https://platform.openai.com/docs/api-reference/chat) of OpenAI and of many compatible servers:
/// `POST …/chat/completions`.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest, Thinking};
/// use agent::provider::{Protocol, openai::{Compat, OpenAiChat}};
///
/// let model = ModelInfo::new("openai", "openai-chat", "gpt-5");
/// let request = ModelRequest::new([Message::user("Hi")]).with_thinking(Thinking::Low).with_max_tokens(500);
/// let http = OpenAiChat::default().encode(&model, &request)?;
/// assert_eq!(http.url("https://api.openai.com/v1"), "https://api.openai.com/v1/chat/completions");
/// assert_eq!(http.json()["reasoning_effort"], "low");
/// assert_eq!(http.json()["max_completion_tokens"], 500);
///
/// // The same for a server that knows the old field.
/// let old = OpenAiChat::default().with_compat(Compat::plain());
/// assert_eq!(old.encode(&model, &request)?.json()["max_tokens"], 500);
/// # Ok::<(), agent::model::ModelError>(())
/// ```
///
/// Settings that the model refuses are left out, with a warning: `temperature` and `top_p` while the model reasons, and `stop`
/// for all reasoning models.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenAiChat {
    /// The server's differences from OpenAI.
    pub compat: Compat,
}

/// The differences of a server from OpenAI. The default has none.
///
/// ```
/// use agent::provider::openai::{Compat, OpenAiChat};
///
/// let compat = Compat::plain().with_max_tokens_field("max_tokens").with_system_role("system");
/// let protocol = OpenAiChat::default().with_compat(compat);
/// assert_eq!(protocol.compat.system_role.as_deref(), Some("system"));
/// ```
///
#[doc = include_str!("../../../docs/openai_compat.md")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent fact about a server")]
pub struct Compat {
    /// The field of the token limit: `max_completion_tokens`, the current name, or `max_tokens`, which most compatible servers support.
    pub max_tokens_field: Cow<'static, str>,
    /// The role of the system prompt. The role `user` suits models that support neither `system` nor `developer`. `None` means `developer`
    /// for reasoning models, and `system` for other models.
    pub system_role: Option<Cow<'static, str>>,
    /// Whether the server reports usage in a stream on request (`stream_options`).
    pub stream_usage: bool,
    /// Whether the server supports `parallel_tool_calls`.
    pub parallel_tool_calls: bool,
    /// Whether the server supports strict schemas.
    pub strict: bool,
    /// Whether the result of a tool contains the tool's name.
    pub tool_result_name: bool,
    /// The field for the thinking level. `reasoning` gets `{"effort"}` or `{"max_tokens"}`, `thinking` gets `{"type"}` (on or off), and
    /// `enable_thinking` gets `true` or `false`. Any other field, such as `reasoning_effort`, gets the level as a word. If `None`, the
    /// level is left out, with a warning.
    pub thinking: Option<Cow<'static, str>>,
    /// Whether the server supports a schema for the reply (`response_format` of type `json_schema`).
    pub json_schema: bool,
    pub(super) echo_thinking: EchoThinking,
    /// The exact length of call ids, in letters and digits. Other ids are replaced. Equal ids have equal replacements.
    pub call_id_length: Option<usize>,
    /// The maximum length of call ids, in characters. Longer ids are replaced, unless the same provider and protocol made them. Equal ids
    /// have equal replacements. Ignored if `call_id_length` is set.
    pub max_call_id: Option<usize>,
    /// The field that requests a web search: `web_search_options`, which OpenAI accepts only for its search models, `plugins`
    /// (`[{"id": "web"}]`), or a field that is set to `true`, such as `enable_search`. If `None`, a request for a search is refused.
    pub web_search: Option<Cow<'static, str>>,
    /// Whether the server has OpenAI's limits: images as JPEG, PNG, GIF or WebP, documents as PDF, audio as WAV or MP3, four stop
    /// sequences, metadata only for stored replies. A request beyond these limits is refused before it is sent. The limits of other servers
    /// are unknown, so these servers get every request.
    pub openai_limits: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::provider) enum EchoThinking {
    #[default]
    Always,
    /// Sends thinking back only in the replies after the user's last message.
    WithinTurn,
    Never,
}

impl Default for Compat {
    fn default() -> Self {
        Self {
            max_tokens_field: Cow::Borrowed("max_completion_tokens"),
            system_role: None,
            stream_usage: true,
            parallel_tool_calls: true,
            strict: true,
            tool_result_name: false,
            thinking: Some(Cow::Borrowed("reasoning_effort")),
            json_schema: true,
            echo_thinking: EchoThinking::default(),
            call_id_length: None,
            max_call_id: Some(40),
            web_search: Some(Cow::Borrowed("web_search_options")),
            openai_limits: true,
        }
    }
}

impl Compat {
    /// Returns the settings for a compatible server of which nothing else is known: `max_tokens`, the role `system`, no strict schemas, no
    /// schema for the reply, no maximum length of call ids, no web search, and none of OpenAI's limits.
    pub fn plain() -> Self {
        Self {
            max_tokens_field: Cow::Borrowed("max_tokens"),
            system_role: Some(Cow::Borrowed("system")),
            strict: false,
            json_schema: false,
            max_call_id: None,
            web_search: None,
            openai_limits: false,
            ..Self::default()
        }
    }

    /// Sets the field of the token limit.
    ///
    /// ```
    /// use agent::message::Message;
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol, openai::{Compat, OpenAiChat}};
    ///
    /// let protocol = OpenAiChat::default().with_compat(Compat::default().with_max_tokens_field("max_tokens"));
    /// let request = ModelRequest::new([Message::user("Hi")]).with_max_tokens(500);
    /// let http = protocol.encode(&ModelInfo::new("acme", "openai-chat", "large-1"), &request)?;
    /// assert_eq!(http.json()["max_tokens"], 500);
    /// # Ok::<(), agent::model::ModelError>(())
    /// ```
    pub fn with_max_tokens_field(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.max_tokens_field = field.into();
        self
    }

    /// Sets the role of the system prompt.
    ///
    /// ```
    /// use agent::message::Message;
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol, openai::{Compat, OpenAiChat}};
    ///
    /// let protocol = OpenAiChat::default().with_compat(Compat::default().with_system_role("developer"));
    /// let request = ModelRequest::new([Message::user("Hi")]).with_system("Be brief.");
    /// let http = protocol.encode(&ModelInfo::new("acme", "openai-chat", "large-1"), &request)?;
    /// assert_eq!(http.json()["messages"][0]["role"], "developer");
    /// # Ok::<(), agent::model::ModelError>(())
    /// ```
    pub fn with_system_role(mut self, role: impl Into<Cow<'static, str>>) -> Self {
        self.system_role = Some(role.into());
        self
    }

    /// Sets the [field](Self::thinking) for the thinking level.
    ///
    /// ```
    /// use agent::message::Message;
    /// use agent::model::{ModelInfo, ModelRequest, Thinking};
    /// use agent::provider::{Protocol, openai::{Compat, OpenAiChat}};
    ///
    /// let protocol = OpenAiChat::default().with_compat(Compat::plain().with_thinking("reasoning"));
    /// let request = ModelRequest::new([Message::user("Hi")]).with_thinking(Thinking::Low);
    /// let http = protocol.encode(&ModelInfo::new("acme", "openai-chat", "large-1"), &request)?;
    /// assert_eq!(http.json()["reasoning"]["effort"], "low");
    /// # Ok::<(), agent::model::ModelError>(())
    /// ```
    pub fn with_thinking(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.thinking = Some(field.into());
        self
    }

    /// Declares that the server has no field for the thinking level.
    ///
    /// ```
    /// assert_eq!(agent::provider::openai::Compat::plain().without_thinking().thinking, None);
    /// ```
    pub fn without_thinking(mut self) -> Self {
        self.thinking = None;
        self
    }

    /// Sends thinking back only in the replies after the user's last message, so thinking of earlier turns is not sent. By default,
    /// thinking is sent back in all replies, in the field in which it arrived.
    ///
    /// ```
    /// use agent::message::{Message, Part, ProviderData};
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol, openai::{Compat, OpenAiChat}};
    ///
    /// let field = ProviderData::new("acme", agent::json!({"field": "reasoning"}));
    /// let thinking = Part::thinking("a greeting").with_provider_data(field);
    /// let request = ModelRequest::new([
    ///     Message::user("Hi"),
    ///     Message::assistant([thinking, Part::text("Hello!")]),
    ///     Message::user("How are you?"),                           // so the thinking is of an earlier turn
    /// ]);
    /// let model = ModelInfo::new("acme", "openai-chat", "large-1");
    /// for (compat, is_sent) in [(Compat::plain(), true), (Compat::plain().with_echo_within_turn(), false)] {
    ///     let http = OpenAiChat::default().with_compat(compat).encode(&model, &request)?;
    ///     assert_eq!(http.text().contains("a greeting"), is_sent);
    /// }
    /// # Ok::<(), agent::model::ModelError>(())
    /// ```
    pub fn with_echo_within_turn(mut self) -> Self {
        self.echo_thinking = EchoThinking::WithinTurn;
        self
    }

    /// Never sends the model's thinking back.
    pub fn without_echo(mut self) -> Self {
        self.echo_thinking = EchoThinking::Never;
        self
    }

    /// Sets whether the server supports a schema for the reply. If not, a request with such a schema is refused before it is sent.
    pub fn with_json_schema(mut self, known: bool) -> Self {
        self.json_schema = known;
        self
    }

    /// Sets whether the server reports usage in a stream on request (`stream_options`).
    pub fn with_stream_usage(mut self, known: bool) -> Self {
        self.stream_usage = known;
        self
    }

    /// Sets whether the server supports `parallel_tool_calls`. If not, the field is left out.
    pub fn with_parallel_tool_calls(mut self, known: bool) -> Self {
        self.parallel_tool_calls = known;
        self
    }

    /// Sets whether the result of a tool contains the tool's name.
    pub fn with_tool_result_name(mut self, wanted: bool) -> Self {
        self.tool_result_name = wanted;
        self
    }

    /// Sets the exact length of call ids, in letters and digits. Other ids are replaced. Equal ids have equal replacements.
    pub fn with_call_id_length(mut self, length: usize) -> Self {
        self.call_id_length = Some(length);
        self
    }

    /// Sets the maximum length of call ids, in characters. Longer ids are replaced, unless the same provider and protocol made them. Equal
    /// ids have equal replacements. Ignored if `call_id_length` is set.
    pub fn with_max_call_id(mut self, length: usize) -> Self {
        self.max_call_id = Some(length);
        self
    }

    /// Sets whether the server has OpenAI's [limits](Self::openai_limits) on media types, stop sequences and metadata.
    pub fn with_openai_limits(mut self, limited: bool) -> Self {
        self.openai_limits = limited;
        self
    }

    /// Sets the [field](Self::web_search) that requests a web search.
    pub fn with_web_search(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.web_search = Some(field.into());
        self
    }
}

impl OpenAiChat {
    /// The name of the protocol.
    pub const API: &str = "openai-chat";

    /// Sets how the server differs from OpenAI. By default, it does not differ.
    pub fn with_compat(mut self, compat: Compat) -> Self {
        self.compat = compat;
        self
    }
}

impl Protocol for OpenAiChat {
    fn api(&self) -> &'static str {
        Self::API
    }

    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        encode::request(&self.compat, model, request)
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let native_output = self.compat.json_schema && models::has_structured_output(model);
        let web_search = match self.compat.web_search.as_deref() {
            Some("web_search_options") => models::is_search_model(model),
            field => field.is_some(),
        };
        Capabilities { native_output, web_search, ..models::media(model) }
    }

    fn decoder(&self, model: &ModelInfo) -> Box<dyn Decoder> {
        Box::new(decode::ChatDecoder::new(&model.provider))
    }

    fn strict_dialect(&self) -> Dialect {
        if self.compat.strict { Dialect::OpenAiStrict } else { Dialect::Plain }
    }

    fn error(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
        let response = HttpResponse::new(status, headers, body);
        failure::response_error(&response, errors::read_report)
    }

    fn auth(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn managed_results(&self, reply: &AssistantMessage) -> Vec<ManagedResult> {
        managed::chat_results(reply)
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
