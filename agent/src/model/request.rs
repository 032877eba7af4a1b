//! Requests to a model.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ManagedTool, Thinking};
use crate::message::{CacheMark, Message, MessageList};
use crate::tool::definition::ToolDefinition;

/// A request to a model. If a setting is absent, the default of the provider applies.
///
/// Messages and tools are shared with the conversation and the registry, so a request is cheap to create, clone and keep.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ModelRequest, Thinking, ToolChoice};
///
/// let request = ModelRequest::new([Message::user("How warm is it in Paris?")])
///     .with_system("Answer briefly.")
///     .with_tool_choice(ToolChoice::Required)
///     .with_thinking(Thinking::Low)
///     .with_max_tokens(500);
/// assert_eq!(request.messages[0].text(), "How warm is it in Paris?");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The conversation, oldest first.
    pub messages: MessageList,
    /// The tools that the model may call, in the order in which it sees them.
    pub tools: Arc<[ToolDefinition]>,
    /// Tools that the provider runs.
    pub managed_tools: Vec<ManagedTool>,
    /// Whether providers should guarantee that calls fit the schemas of tools, where a schema allows this. The
    /// [`strict`](crate::tool::ToolOptions::strict) of a tool takes precedence. Arguments are checked in any case.
    pub strict_tools: bool,
    /// Whether the examples of tools are added to their descriptions, for providers that have no field for examples.
    pub examples_in_descriptions: bool,
    /// Whether the model may, must or must not call tools, or which tool it must call.
    pub tool_choice: ToolChoice,
    /// Whether the model may call several tools at once. If `None`, the provider decides.
    pub parallel_tool_calls: Option<bool>,
    /// Maximum length of the reply, in tokens.
    pub max_tokens: Option<u64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The sampling threshold, described at [`with_top_p`](Self::with_top_p).
    pub top_p: Option<f64>,
    /// Stop sequences: texts that end the reply.
    pub stop: Vec<String>,
    /// The level of thinking.
    pub thinking: Option<Thinking>,
    /// Whether the reply has events for the values in arguments while the arguments arrive
    /// ([`ToolCallArgument`](super::ModelEvent::ToolCallArgument)).
    pub argument_events: bool,
    /// The schema that the reply has to match. A provider client sends the schema even to a model that cannot follow schemas. An assistant
    /// offers such a model a tool with the schema instead, and checks all answers: see `Prompt::output_schema`.
    pub output: Option<OutputSchema>,
    /// Whether the provider's prompt cache should keep the system prompt, and for how long. Each part of a message has a setting of its
    /// own: [`Part::cache`](crate::message::Part::cache).
    pub cached_system: Option<CacheMark>,
    /// Whether the prompt cache should keep the tools, and for how long.
    pub cached_tools: Option<CacheMark>,
    /// Whether the prompt cache should keep the conversation, as far as the provider allows, and for how long. Later messages are kept,
    /// too.
    pub cached_conversation: Option<CacheMark>,
    /// The key of the prompt cache. Requests with the same key share a cache, at providers that route requests by the key.
    pub cache_key: Option<String>,
    /// The number of input tokens at which the provider replaces earlier messages by its own summary. The summary becomes a part of the
    /// reply. Only Anthropic and the Responses API support this setting. Other providers ignore it. See
    /// `ContextRules::compact_by_provider`.
    pub compact_at: Option<u64>,
    /// Data about the request for the provider's own reports: `user_id`, and tags of the application. If the provider has no field for
    /// some of the data, the request fails before it is sent, with the code `unsupported_metadata`.
    pub metadata: Map<String, Value>,
    /// Settings that only one provider knows, by the name of the provider. They are added to the request body, and replace the library's
    /// values of the same keys. A null removes the library's value. If the library has no value for the key, the null is sent. The option
    /// `$null` lists keys that are always sent as null.
    pub provider_options: Map<String, Value>,
}

impl ModelRequest {
    /// Creates a request with these messages.
    pub fn new<M: Into<Arc<Message>>>(messages: impl IntoIterator<Item = M>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// Sets the system prompt.
    pub fn with_system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Sets the tools that the model may call, in the order in which it sees them. Default: none.
    ///
    /// ```
    /// use agent::model::ModelRequest;
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Says how warm it is in a city.
    /// #[tool]
    /// fn temperature(city: String) -> f64 {
    ///     city.len() as f64
    /// }
    ///
    /// let registry = Registry::new(tools![temperature])?;
    /// let request = ModelRequest::default()
    ///     .with_tools(registry.definitions())
    ///     .with_strict_tools(true)
    ///     .with_parallel_tool_calls(false);
    /// assert_eq!(request.tools[0].name(), "temperature");
    /// assert_eq!((request.strict_tools, request.parallel_tool_calls), (true, Some(false)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_tools(mut self, tools: impl Into<Arc<[ToolDefinition]>>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Sets the tools that the provider runs.
    ///
    /// ```
    /// use agent::model::{ManagedTool, ModelRequest};
    ///
    /// let request = ModelRequest::default().with_managed_tools([ManagedTool::web_search(), ManagedTool::CodeExecution]);
    /// assert_eq!(request.managed_tools, [ManagedTool::web_search(), ManagedTool::CodeExecution]);
    /// ```
    pub fn with_managed_tools(mut self, tools: impl IntoIterator<Item = ManagedTool>) -> Self {
        self.managed_tools = tools.into_iter().collect();
        self
    }

    /// Sets whether providers should guarantee that calls fit their schemas, except for tools that set
    /// [`strict`](crate::tool::ToolOptions::strict) themselves. Default: no.
    pub fn with_strict_tools(mut self, strict: bool) -> Self {
        self.strict_tools = strict;
        self
    }

    /// Adds the examples of tools to their descriptions, for providers that have no field for examples. Anthropic has such a field, which
    /// always gets the examples. Values of secret parameters are left out.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol as _, openai::OpenAiChat};
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Finds trains.
    /// #[tool(examples({"route": "Bern-Rome"}))]
    /// fn find_trains(route: String) -> String {
    ///     route
    /// }
    ///
    /// let registry = Registry::new(tools![find_trains]).unwrap();
    /// let request = ModelRequest::default().with_tools(registry.definitions()).with_examples_in_descriptions();
    /// let body = OpenAiChat::default().encode(&ModelInfo::new("openai", "openai-chat", "gpt-5"), &request).unwrap().json();
    /// let description = &body["tools"][0]["function"]["description"];
    /// assert_eq!(description, "Finds trains.\n\nExample of arguments:\n{\"route\":\"Bern-Rome\"}");
    /// # }
    /// ```
    pub fn with_examples_in_descriptions(mut self) -> Self {
        self.examples_in_descriptions = true;
        self
    }

    /// Makes the provider's prompt cache keep the system prompt. Providers that cache automatically ignore each [`CacheMark`], and use the
    /// [key](Self::with_cache_key).
    ///
    /// ```
    /// use agent::message::CacheMark;
    /// use agent::model::ModelRequest;
    ///
    /// let request = ModelRequest::default()
    ///     .with_cached_system(CacheMark::Hour)
    ///     .with_cached_tools(CacheMark::Hour)
    ///     .with_cached_conversation(CacheMark::Usual)
    ///     .with_cache_key("team-7");
    /// assert_eq!((request.cached_tools, request.cache_key.as_deref()), (Some(CacheMark::Hour), Some("team-7")));
    /// ```
    pub fn with_cached_system(mut self, mark: CacheMark) -> Self {
        self.cached_system = Some(mark);
        self
    }

    /// Makes the provider's prompt cache keep the tools.
    pub fn with_cached_tools(mut self, mark: CacheMark) -> Self {
        self.cached_tools = Some(mark);
        self
    }

    /// Makes the provider's prompt cache keep as much of the conversation as it can, also when the conversation grows.
    pub fn with_cached_conversation(mut self, mark: CacheMark) -> Self {
        self.cached_conversation = Some(mark);
        self
    }

    /// Sets the key of the prompt cache, for providers that route requests by the key.
    pub fn with_cache_key(mut self, key: impl Into<String>) -> Self {
        self.cache_key = Some(key.into());
        self
    }

    /// Sets the number of input tokens at which the provider summarizes earlier messages.
    ///
    /// ```
    /// # #[cfg(feature = "anthropic")] {
    /// use agent::message::Message;
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol, anthropic::AnthropicMessages};
    ///
    /// let request = ModelRequest::new([Message::user("Hi")]).with_compact_at(120_000);
    /// let model = ModelInfo::new("anthropic", "anthropic-messages", "claude-opus-5");
    /// let http = AnthropicMessages::default().encode(&model, &request).unwrap();
    /// let edit = &http.json()["context_management"]["edits"][0];
    /// assert_eq!((&edit["type"], &edit["trigger"]["value"]), (&"compact_20260112".into(), &120_000.into()));
    /// # }
    /// ```
    pub fn with_compact_at(mut self, tokens: u64) -> Self {
        self.compact_at = Some(tokens);
        self
    }

    /// Sets whether the model may, must or must not call tools, or which tool it must call.
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Sets whether the model may call several tools at once.
    pub fn with_parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.parallel_tool_calls = Some(parallel);
        self
    }

    /// Sets the maximum length of the reply, in tokens.
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the sampling temperature, in the provider's range: 0 to 2 for most, 0 to 1 for Anthropic.
    ///
    /// ```
    /// use agent::model::ModelRequest;
    ///
    /// let request = ModelRequest::default().with_temperature(0.2).with_top_p(0.9).with_stop(["END", "\n\n"]);
    /// assert_eq!((request.temperature, request.top_p), (Some(0.2), Some(0.9)));
    /// assert_eq!(request.stop, ["END", "\n\n"]);
    /// ```
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the sampling threshold, from 0 to 1: tokens are drawn from the most likely tokens whose total probability reaches the
    /// threshold.
    pub fn with_top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Sets stop sequences: the reply ends where the model writes one of these texts.
    pub fn with_stop<S: Into<String>>(mut self, stop: impl IntoIterator<Item = S>) -> Self {
        self.stop = stop.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the level of thinking.
    pub fn with_thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = Some(thinking);
        self
    }

    /// Requests events for the values in arguments while the arguments arrive. Each event has the path of a value and its change, for
    /// example an added piece of a text.
    ///
    /// ```
    /// use agent::model::{ArgumentChange, Model, ModelEvent, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agent::model::ModelError> {
    /// let model = ScriptedModel::new([reply().tool_call("write", r#"{"path": "a.txt", "text": "Dear all"}"#)]);
    /// let mut stream = model.stream(&StepCx::new(), &ModelRequest::default().with_argument_events());
    /// let mut shown = String::new();
    /// while let Some(event) = stream.next().await {
    ///     if let ModelEvent::ToolCallArgument { path, change: ArgumentChange::Appended { fragment }, .. } = event?
    ///         && path == "/text"
    ///     {
    ///         shown.push_str(&fragment);
    ///     }
    /// }
    /// assert_eq!(shown, "Dear all");
    /// # Ok(()) }
    /// ```
    pub fn with_argument_events(mut self) -> Self {
        self.argument_events = true;
        self
    }

    /// Sets the schema that the reply has to match.
    ///
    /// ```
    /// use agent::model::{ModelRequest, OutputSchema};
    ///
    /// let stars = agent::json!({"type": "object", "properties": {"stars": {"type": "integer"}}, "required": ["stars"]});
    /// let request = ModelRequest::default().with_output(OutputSchema::new("verdict", stars));
    /// assert_eq!(request.output.unwrap().schema["required"][0], "stars");
    /// ```
    pub fn with_output(mut self, output: OutputSchema) -> Self {
        self.output = Some(output);
        self
    }

    /// Adds data about the request for the provider's own reports. The model does not see it.
    ///
    /// ```
    /// use agent::model::ModelRequest;
    ///
    /// let request = ModelRequest::default().with_metadata("user_id", "u-7").with_metadata("team", "search");
    /// assert_eq!(request.metadata["user_id"], "u-7");
    /// assert_eq!(request.metadata.len(), 2);
    /// ```
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Sets options that only this provider knows. The keys of the object are added to the body of requests to this provider, or replace
    /// keys in the body (see [`provider_options`](Self::provider_options)). Replaces earlier options for the provider.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::message::Message;
    /// use agent::model::{ModelInfo, ModelRequest};
    /// use agent::provider::{Protocol as _, openai::OpenAiChat};
    ///
    /// let request = ModelRequest::new([Message::user("Hi")])
    ///     .with_provider_options("openai", agent::json!({"service_tier": "flex"}))
    ///     .with_provider_options("anthropic", agent::json!({"inference_geo": "eu"}));
    /// let http = OpenAiChat::default().encode(&ModelInfo::new("openai", "openai-chat", "gpt-5"), &request).unwrap();
    /// assert_eq!(http.json()["service_tier"], "flex");
    /// assert_eq!(http.json().get("inference_geo"), None);    // an option of another provider
    /// # }
    /// ```
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: impl Into<Value>) -> Self {
        self.provider_options.insert(provider.into(), options.into());
        self
    }
}

/// The rule that says whether the model may, must or must not call tools, or which tool it must call.
///
/// ```
/// use agent::model::ToolChoice;
/// use agent::{Assistant, ScriptedModel};
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .request(|request| request.with_tool_choice(ToolChoice::Required))
///     .build()?;
/// # drop(assistant);
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call some tool.
    Required,
    /// The model must call this tool.
    Tool(String),
}

/// A schema for the reply.
///
/// ```
/// use agent::model::{ModelRequest, OutputSchema};
///
/// let schema = agent::json!({"type": "object", "properties": {"stars": {"type": "integer"}}, "required": ["stars"]});
/// let request = ModelRequest::default().with_output(OutputSchema::new("verdict", schema).with_description("A verdict."));
/// assert_eq!(request.output.unwrap().name, "verdict");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutputSchema {
    /// A short name, which some providers require.
    pub name: String,
    /// The JSON Schema.
    pub schema: Arc<Value>,
    /// A description of the reply, for the model.
    pub description: Option<String>,
}

impl OutputSchema {
    /// Creates a schema with this name.
    pub fn new(name: impl Into<String>, schema: impl Into<Arc<Value>>) -> Self {
        Self { name: name.into(), schema: schema.into(), description: None }
    }

    /// Sets the description of the reply.
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}
