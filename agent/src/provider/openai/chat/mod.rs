//! Chat Completions.

mod decode;
mod encode;
mod parse;

use serde_json::Value;

use crate::message::AssistantMessage;
use crate::model::{Capabilities, ManagedResult, ModelError, ModelInfo, ModelRequest};
use crate::provider::openai::{managed, models};
use crate::provider::protocol::{Answer, Decoder, HttpRequest, Protocol};
use crate::schema::Dialect;

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;

/// The [Chat Completions API](https://platform.openai.com/docs/api-reference/chat) of OpenAI, and of the many servers
/// that speak it: `POST …/chat/completions`.
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
/// assert_eq!(http.body["reasoning_effort"], "low");
/// assert_eq!(http.body["max_completion_tokens"], 500);
///
/// // The same for a server that knows the old field.
/// let old = OpenAiChat::default().with_compat(Compat::plain());
/// assert_eq!(old.encode(&model, &request)?.body["max_tokens"], 500);
/// # Ok::<(), agent::model::ModelError>(())
/// ```
///
/// `temperature` and `top_p` are left out, with a warning, where the model refuses them: while it reasons; and `stop`, which the
/// models that reason never take.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenAiChat {
    /// In what the server departs from OpenAI.
    pub compat: Compat,
}

/// In what a server departs from OpenAI. The default is OpenAI itself.
///
/// ```
/// use agent::provider::openai::{Compat, MaxTokensField, OpenAiChat, SystemRole};
///
/// let compat = Compat::plain().with_max_tokens_field(MaxTokensField::MaxTokens).with_system_role(SystemRole::System);
/// let protocol = OpenAiChat::default().with_compat(compat);
/// assert_eq!(protocol.compat.system_role, SystemRole::System);
/// ```
///
#[doc = include_str!("../../../docs/openai_compat.md")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent fact about a server")]
pub struct Compat {
    /// The field of the token limit.
    pub max_tokens_field: MaxTokensField,
    /// The role of the system prompt.
    pub system_role: SystemRole,
    /// Whether usage in a stream has to be, and can be, asked for.
    pub stream_usage: bool,
    /// Whether `parallel_tool_calls` is known.
    pub parallel_tool_calls: bool,
    /// Whether strict schemas are known.
    pub strict: bool,
    /// Whether a tool's result names the tool.
    pub tool_result_name: bool,
    /// How the model is told how much to think.
    pub thinking: ThinkingField,
    /// Whether a schema for the reply is known (`response_format` of type `json_schema`).
    pub json_schema: bool,
    /// When what the model thought goes back to it, in the field it came in.
    pub echo_thinking: EchoThinking,
    /// Call ids have to be exactly so many letters and digits: others are mapped, the same one always to the same.
    pub call_id_length: Option<usize>,
    /// The longest call id, in characters: longer ones that others made are mapped, the same one always to the same.
    pub max_call_id: Option<usize>,
    /// How a search of the web is asked for.
    pub web_search: WebSearchField,
}

/// How a server is asked to search the web.
///
/// ```
/// use agent::provider::openai::{Compat, WebSearchField};
///
/// assert_eq!(Compat::default().with_web_search(WebSearchField::Plugin).web_search, WebSearchField::Plugin);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WebSearchField {
    /// `web_search_options`, which OpenAI takes for its search models alone.
    #[default]
    Options,
    /// `plugins: [{"id": "web"}]`.
    Plugin,
    /// `enable_search`.
    EnableSearch,
    /// Not at all; a request that asks for it is refused.
    None,
}

/// How a server is told how much its model should think.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest, Thinking};
/// use agent::provider::{Protocol, openai::{Compat, OpenAiChat, ThinkingField}};
///
/// let protocol = OpenAiChat::default().with_compat(Compat::plain().with_thinking(ThinkingField::Reasoning));
/// let request = ModelRequest::new([Message::user("Hi")]).with_thinking(Thinking::Low);
/// let http = protocol.encode(&ModelInfo::new("acme", "openai-chat", "large-1"), &request)?;
/// assert_eq!(http.body["reasoning"]["effort"], "low");
/// # Ok::<(), agent::model::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingField {
    /// `reasoning_effort`.
    #[default]
    ReasoningEffort,
    /// `reasoning: {"effort"}` or `{"max_tokens"}`.
    Reasoning,
    /// `thinking: {"type"}`: on or off.
    ThinkingType,
    /// `enable_thinking`, and `thinking_budget`.
    EnableThinking,
    /// Not at all; asking for it is left out, with a warning.
    None,
}

/// When what a model thought goes back to it.
///
/// ```
/// use agent::provider::openai::{Compat, EchoThinking};
///
/// assert_eq!(Compat::default().with_echo_thinking(EchoThinking::Never).echo_thinking, EchoThinking::Never);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EchoThinking {
    /// With each of its messages.
    #[default]
    Always,
    /// While its calls are answered: since the last message of the user.
    WithinTurn,
    /// Never.
    Never,
}

impl Default for Compat {
    fn default() -> Self {
        Self {
            max_tokens_field: MaxTokensField::default(),
            system_role: SystemRole::default(),
            stream_usage: true,
            parallel_tool_calls: true,
            strict: true,
            tool_result_name: false,
            thinking: ThinkingField::default(),
            json_schema: true,
            echo_thinking: EchoThinking::default(),
            call_id_length: None,
            max_call_id: Some(40),
            web_search: WebSearchField::default(),
        }
    }
}

impl Compat {
    /// What a server can be trusted to know that says no more than that it speaks like OpenAI: `max_tokens`, the role `system`,
    /// nothing strict, no schema for the reply, no search of the web.
    pub fn plain() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxTokens,
            system_role: SystemRole::System,
            strict: false,
            json_schema: false,
            max_call_id: None,
            web_search: WebSearchField::None,
            ..Self::default()
        }
    }

    /// Sets the field of the token limit.
    pub fn with_max_tokens_field(mut self, field: MaxTokensField) -> Self {
        self.max_tokens_field = field;
        self
    }

    /// Sets the role of the system prompt.
    pub fn with_system_role(mut self, role: SystemRole) -> Self {
        self.system_role = role;
        self
    }

    /// Sets how the model is told how much to think.
    pub fn with_thinking(mut self, field: ThinkingField) -> Self {
        self.thinking = field;
        self
    }

    /// Sets when what the model thought goes back to it.
    pub fn with_echo_thinking(mut self, echo: EchoThinking) -> Self {
        self.echo_thinking = echo;
        self
    }

    /// Sets whether a schema for the reply is known. Where it is not, a request with one is refused before it is sent.
    pub fn with_json_schema(mut self, known: bool) -> Self {
        self.json_schema = known;
        self
    }

    /// Sets whether usage in a stream has to be, and can be, asked for.
    pub fn with_stream_usage(mut self, known: bool) -> Self {
        self.stream_usage = known;
        self
    }

    /// Sets whether `parallel_tool_calls` is known. Where it is not, it is left out.
    pub fn with_parallel_tool_calls(mut self, known: bool) -> Self {
        self.parallel_tool_calls = known;
        self
    }

    /// Sets whether a tool's result names the tool.
    pub fn with_tool_result_name(mut self, wanted: bool) -> Self {
        self.tool_result_name = wanted;
        self
    }

    /// Sets how long call ids have to be, in letters and digits: others are mapped, the same one always to the same.
    pub fn with_call_id_length(mut self, length: usize) -> Self {
        self.call_id_length = Some(length);
        self
    }

    /// Sets how long call ids may be, in characters: longer ones that others made are mapped, the same one always to the same.
    pub fn with_max_call_id(mut self, length: usize) -> Self {
        self.max_call_id = Some(length);
        self
    }

    /// Sets how a search of the web is asked for.
    pub fn with_web_search(mut self, field: WebSearchField) -> Self {
        self.web_search = field;
        self
    }
}

/// The field of the token limit.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest};
/// use agent::provider::{Protocol, openai::{Compat, MaxTokensField, OpenAiChat}};
///
/// let protocol = OpenAiChat::default().with_compat(Compat::default().with_max_tokens_field(MaxTokensField::MaxTokens));
/// let request = ModelRequest::new([Message::user("Hi")]).with_max_tokens(500);
/// let http = protocol.encode(&ModelInfo::new("acme", "openai-chat", "large-1"), &request)?;
/// assert_eq!(http.body["max_tokens"], 500);
/// # Ok::<(), agent::model::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_completion_tokens`, the name of today.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, the name that most compatible servers know.
    MaxTokens,
}

impl MaxTokensField {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxTokens => "max_tokens",
        }
    }
}

/// The role of the system prompt.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelInfo, ModelRequest};
/// use agent::provider::{Protocol, openai::{Compat, OpenAiChat, SystemRole}};
///
/// let protocol = OpenAiChat::default().with_compat(Compat::default().with_system_role(SystemRole::Developer));
/// let request = ModelRequest::new([Message::user("Hi")]).with_system("Be brief.");
/// let http = protocol.encode(&ModelInfo::new("acme", "openai-chat", "large-1"), &request)?;
/// assert_eq!(http.body["messages"][0]["role"], "developer");
/// # Ok::<(), agent::model::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemRole {
    /// `developer` for reasoning models, `system` for others.
    #[default]
    ByModel,
    /// `system`.
    System,
    /// `developer`.
    Developer,
    /// `user`, for models that know neither.
    User,
}

impl OpenAiChat {
    /// The name of the protocol.
    pub const API: &str = "openai-chat";

    /// Sets in what the server departs from OpenAI; in nothing by default.
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
        let native_output = self.compat.json_schema && models::keeps_to_schemas(model);
        let web_search = match self.compat.web_search {
            WebSearchField::Options => models::is_search_model(model),
            WebSearchField::Plugin | WebSearchField::EnableSearch => true,
            WebSearchField::None => false,
        };
        Capabilities { native_output, web_search, ..models::media(model) }
    }

    fn decoder(&self, model: &ModelInfo) -> Box<dyn Decoder> {
        Box::new(decode::ChatDecoder::new(&model.provider))
    }

    fn strict_dialect(&self) -> Dialect {
        if self.compat.strict { Dialect::OpenAiStrict } else { Dialect::Plain }
    }

    fn error(&self, answer: &Answer<'_>) -> ModelError {
        crate::provider::openai::errors::of_answer(answer)
    }

    fn auth(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn managed_results(&self, reply: &AssistantMessage) -> Vec<ManagedResult> {
        managed::chat_results(reply)
    }

    fn parse_request(&self, provider: &str, body: &Value) -> Result<(String, ModelRequest), ModelError> {
        parse::request(self, provider, body)
    }
}
