//! What a model is asked.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ManagedTool, PromptCache, Thinking};
use crate::ToolDefinition;
use crate::message::{Message, MessageList};

/// What a model is asked. Absent settings are the provider's to decide.
///
/// Messages and tools are shared with the conversation and the registry, so a request is cheap to make, clone
/// and keep.
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
    /// The tools the model may ask for, in the order it is shown them.
    pub tools: Arc<[ToolDefinition]>,
    /// Tools that the provider runs itself.
    pub managed_tools: Vec<ManagedTool>,
    /// Whether providers should promise that calls fit their schemas, for the tools whose schemas they can promise.
    /// Arguments are checked all the same.
    pub strict_tools: bool,
    /// Whether it must.
    pub tool_choice: ToolChoice,
    /// Whether it may ask for several at once.
    pub parallel_tool_calls: Option<bool>,
    /// The longest reply, in tokens.
    pub max_tokens: Option<u64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The sampling threshold.
    pub top_p: Option<f64>,
    /// Texts that end the reply.
    pub stop: Vec<String>,
    /// How much the model should think.
    pub thinking: Option<Thinking>,
    /// Whether the reply tells the arguments of calls while they arrive, value by value
    /// ([`ToolCallArgument`](super::ModelEvent::ToolCallArgument)).
    pub argument_events: bool,
    /// The schema the reply has to match.
    pub output: Option<OutputSchema>,
    /// What the provider's prompt cache should keep.
    pub cache: PromptCache,
    /// What the provider is told about the request, for its own reports: a user id, tags.
    pub metadata: Map<String, Value>,
    /// Settings that only one provider knows, by provider; its adapter adds them to the request body. A
    /// key replaces what the adapter wrote there; null removes it, and is sent where the adapter wrote nothing, or where
    /// the list `$null` names the key.
    pub provider_options: Map<String, Value>,
}

impl ModelRequest {
    /// A request of these messages.
    pub fn new<M: Into<Arc<Message>>>(messages: impl IntoIterator<Item = M>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// Sets the system prompt.
    pub fn with_system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Sets the tools that the model may ask for, in the order it is shown them; none by default.
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

    /// Sets the tools that the provider runs itself.
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

    /// Sets whether providers should promise that calls fit their schemas; they are not asked to by default.
    pub fn with_strict_tools(mut self, strict: bool) -> Self {
        self.strict_tools = strict;
        self
    }

    /// Sets what the provider's prompt cache should keep.
    ///
    /// ```
    /// use agent::message::CacheMark;
    /// use agent::model::{ModelRequest, PromptCache};
    ///
    /// let mut cache = PromptCache::default();
    /// cache.system = Some(CacheMark::Hour);
    /// assert_eq!(ModelRequest::default().with_cache(cache.clone()).cache, cache);
    /// ```
    pub fn with_cache(mut self, cache: PromptCache) -> Self {
        self.cache = cache;
        self
    }

    /// Sets whether the model must ask for a tool.
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Sets whether the model may ask for several tools at once.
    pub fn with_parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.parallel_tool_calls = Some(parallel);
        self
    }

    /// Sets the longest reply, in tokens.
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the sampling temperature, as the provider counts it: 0 to 2 for most, 0 to 1 for Anthropic.
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

    /// Sets the sampling threshold, from 0 to 1: tokens are drawn from the likeliest that have this probability together.
    pub fn with_top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Sets the texts that end the reply where the model writes one of them.
    pub fn with_stop<S: Into<String>>(mut self, stop: impl IntoIterator<Item = S>) -> Self {
        self.stop = stop.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how much the model should think.
    pub fn with_thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = Some(thinking);
        self
    }

    /// Has the arguments of calls told while they arrive, value by value.
    ///
    /// ```
    /// use agent::model::{ArgumentChange, Model, ModelEvent, ModelRequest, ScriptedModel, StepCx, reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agent::model::ModelError> {
    /// let model = ScriptedModel::new([reply().tool_call("write", r#"{"path": "a.txt", "text": "Dear all"}"#)]);
    /// let mut stream = model.stream(&StepCx::new(), &ModelRequest::default().with_argument_events());
    /// let mut shown = String::new();
    /// while let Some(event) = stream.next().await {
    ///     if let ModelEvent::ToolCallArgument { argument, .. } = event?
    ///         && let ArgumentChange::Appended { fragment } = argument.change
    ///         && argument.path == "/text"
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

    /// Sets the schema the reply has to match.
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

    /// Tells the provider something about the request, beside what was told before. It is for the provider's own reports; the
    /// model does not see it.
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

    /// Sets what only this provider knows: an object whose keys are added to the body of its requests. It replaces what was set
    /// for the provider before.
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
    /// assert_eq!(http.body["service_tier"], "flex");
    /// assert_eq!(http.body.get("inference_geo"), None);    // those of another provider
    /// # }
    /// ```
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: impl Into<Value>) -> Self {
        self.provider_options.insert(provider.into(), options.into());
        self
    }
}

/// Whether the model must ask for a tool.
///
/// ```
/// use agent::model::{ScriptedModel, ToolChoice};
/// use agent::Assistant;
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .request(|request| request.with_tool_choice(ToolChoice::Required))
///     .build()?;
/// # drop(assistant);
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must ask for one, whichever.
    Required,
    /// It must ask for this one.
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
    /// A short name; some providers want one.
    pub name: String,
    /// The JSON Schema.
    pub schema: Arc<Value>,
    /// What the reply is, for the model.
    pub description: Option<String>,
}

impl OutputSchema {
    /// A schema by this name.
    pub fn new(name: impl Into<String>, schema: impl Into<Arc<Value>>) -> Self {
        Self { name: name.into(), schema: schema.into(), description: None }
    }

    /// Says what the reply is.
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}
