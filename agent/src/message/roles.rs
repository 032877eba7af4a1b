//! Messages by role.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::arguments::ToolCall;
use super::content::{Content, ProviderData};
use super::json;
use super::part::{Part, read_parts, read_some_parts};
use super::usage::Usage;
use super::words::{OutcomeKind, StopReason};

/// One message of a conversation.
///
/// In JSON it is an object with a `role`. The system prompt and the tool list are no messages: they are
/// configuration, added to each request.
///
/// ```
/// use agent::message::Message;
///
/// let message: Message = serde_json::from_str(r#"{"role": "user", "content": "Hello"}"#)?;
/// assert_eq!(message, Message::user("Hello"));
/// assert_eq!(message.text(), "Hello");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// From the user.
    User(UserMessage),
    /// From the model.
    Assistant(AssistantMessage),
    /// What a tool call came to.
    ToolResult(ToolResultMessage),
    /// From the application.
    Custom(CustomMessage),
    /// A role this version does not know. Kept as it was, and never sent to a model.
    Unknown(Value),
}

impl Message {
    /// From the user: text, a part, or several.
    pub fn user(content: impl Into<UserMessage>) -> Self {
        Self::User(content.into())
    }

    /// From the model: text, a part, or several.
    pub fn assistant(content: impl Into<AssistantMessage>) -> Self {
        Self::Assistant(content.into())
    }

    /// The word of the serde form.
    pub fn role(&self) -> &str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "tool_result",
            Self::Custom(_) => "custom",
            Self::Unknown(value) => value.get("role").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// The parts; of a custom message those for the model.
    pub fn content(&self) -> &[Part] {
        match self {
            Self::User(message) => &message.content,
            Self::Assistant(message) => &message.content,
            Self::ToolResult(message) => &message.content,
            Self::Custom(message) => message.for_model.as_deref().unwrap_or_default(),
            Self::Unknown(_) => &[],
        }
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        join_text(self.content())
    }

    /// The message of the model.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// The result of a call.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        match self {
            Self::ToolResult(message) => Some(message),
            _ => None,
        }
    }
}

fn join_text(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}

/// A message from the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UserMessage {
    /// What the user says and shows.
    #[serde(deserialize_with = "read_parts")]
    pub content: Vec<Part>,
    /// Set when it came through a queue; a message sent twice with one id is queued once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Fields this version does not know, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl UserMessage {
    /// A message of these parts.
    pub fn new(content: impl IntoIterator<Item = Part>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        join_text(&self.content)
    }
}

/// A message from the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AssistantMessage {
    /// What the model says, thinks and asks for, in its order.
    #[serde(deserialize_with = "read_parts")]
    pub content: Vec<Part>,
    /// The provider that answered, for example `anthropic`. Empty when nobody did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The protocol it was asked by, for example `anthropic-messages`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api: String,
    /// The model that answered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// What it took.
    #[serde(skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// What went wrong, for [`StopReason::Error`] and [`StopReason::Aborted`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The provider's id of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// What the provider wants back with the message as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
    /// Fields this version does not know, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl AssistantMessage {
    /// A message of these parts that ended by itself.
    pub fn new(content: impl IntoIterator<Item = Part>) -> Self {
        let content: Vec<Part> = content.into_iter().collect();
        let asks = content.iter().any(|part| part.as_tool_call().is_some());
        let stop_reason = if asks { StopReason::ToolUse } else { StopReason::Stop };
        Self { content, stop_reason, ..Self::default() }
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// The thinking parts, joined.
    pub fn thinking(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match &part.content {
            Content::Thinking { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The calls, in their order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Part::as_tool_call)
    }
}

/// What a tool call came to, as the model is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResultMessage {
    /// The call's id.
    pub call_id: String,
    /// The tool's name, as the call had it.
    pub tool: String,
    /// The result for the model; for an error its text, bare.
    pub content: Vec<Part>,
    /// The result as a JSON object, where the tool gives one.
    #[serde(with = "json::option", skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// How the call ended.
    pub outcome: OutcomeKind,
    /// More exactly, for example `invalid_arguments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether the model is told that this is an error.
    pub is_error: bool,
    /// For the application; never sent to a model.
    #[serde(with = "json::map", skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Fields this version does not know, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolResultMessage {
    /// A result without content. `is_error` follows the outcome.
    ///
    /// ```
    /// use agent::message::{OutcomeKind, ToolResultMessage};
    ///
    /// let result = ToolResultMessage::new("call_1", "add", OutcomeKind::Failed)
    ///     .with_code(Some("unknown_tool".to_owned()))
    ///     .with_content("There is no tool `add`.");
    /// assert!(result.is_error);
    /// ```
    pub fn new(call_id: impl Into<String>, tool: impl Into<String>, outcome: OutcomeKind) -> Self {
        Self {
            call_id: call_id.into(),
            tool: tool.into(),
            content: Vec::new(),
            structured: None,
            is_error: outcome.is_error(),
            outcome,
            code: None,
            metadata: Map::new(),
            extra: Map::new(),
        }
    }

    /// Sets the content: text, a part, or several.
    pub fn with_content(mut self, content: impl Into<UserMessage>) -> Self {
        self.content = content.into().content;
        self
    }

    /// Sets the structured result.
    pub fn with_structured(mut self, structured: Option<Value>) -> Self {
        self.structured = structured;
        self
    }

    /// Sets the code.
    pub fn with_code(mut self, code: Option<String>) -> Self {
        self.code = code;
        self
    }

    /// Sets the metadata.
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        join_text(&self.content)
    }
}

impl<'de> Deserialize<'de> for ToolResultMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            call_id: String,
            #[serde(default)]
            tool: String,
            #[serde(default, deserialize_with = "read_parts")]
            content: Vec<Part>,
            #[serde(default, with = "json::option")]
            structured: Option<Value>,
            outcome: Option<OutcomeKind>,
            code: Option<String>,
            is_error: Option<bool>,
            #[serde(default, with = "json::map")]
            metadata: Map<String, Value>,
            #[serde(flatten)]
            extra: Map<String, Value>,
        }
        let wire = Wire::deserialize(deserializer)?;
        // Of the two, each tells the other.
        let outcome = wire.outcome.unwrap_or(match wire.is_error {
            Some(true) => OutcomeKind::Failed,
            _ => OutcomeKind::Completed,
        });
        Ok(Self {
            call_id: wire.call_id,
            tool: wire.tool,
            content: wire.content,
            structured: wire.structured,
            is_error: wire.is_error.unwrap_or_else(|| outcome.is_error()),
            outcome,
            code: wire.code,
            metadata: wire.metadata,
            extra: wire.extra,
        })
    }
}

/// A message from the application: kept in the conversation, sent only where it has something for the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CustomMessage {
    /// The application's word for it.
    pub kind: String,
    /// The application's data; never sent to a model.
    #[serde(default, with = "json", skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// What the model is told, as if the user had said it; nothing when none.
    #[serde(default, deserialize_with = "read_some_parts", skip_serializing_if = "Option::is_none")]
    pub for_model: Option<Vec<Part>>,
    /// Fields this version does not know, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CustomMessage {
    /// A message that no model sees.
    pub fn new(kind: impl Into<String>, data: impl Into<Value>) -> Self {
        Self { kind: kind.into(), data: data.into(), for_model: None, extra: Map::new() }
    }

    /// Says what the model is told.
    pub fn with_for_model(mut self, content: impl Into<UserMessage>) -> Self {
        self.for_model = Some(content.into().content);
        self
    }
}

macro_rules! from_content {
    ($($message:ident),*) => {$(
        impl From<&str> for $message {
            fn from(text: &str) -> Self {
                Self::new([Part::text(text)])
            }
        }

        impl From<String> for $message {
            fn from(text: String) -> Self {
                Self::new([Part::text(text)])
            }
        }

        impl From<Part> for $message {
            fn from(part: Part) -> Self {
                Self::new([part])
            }
        }

        impl From<Vec<Part>> for $message {
            fn from(parts: Vec<Part>) -> Self {
                Self::new(parts)
            }
        }

        impl<const N: usize> From<[Part; N]> for $message {
            fn from(parts: [Part; N]) -> Self {
                Self::new(parts)
            }
        }
    )*};
}

from_content!(UserMessage, AssistantMessage);

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

impl From<AssistantMessage> for Message {
    fn from(message: AssistantMessage) -> Self {
        Self::Assistant(message)
    }
}

impl From<ToolResultMessage> for Message {
    fn from(message: ToolResultMessage) -> Self {
        Self::ToolResult(message)
    }
}

impl From<CustomMessage> for Message {
    fn from(message: CustomMessage) -> Self {
        Self::Custom(message)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "role", rename_all = "snake_case")]
        enum Wire<'a> {
            User(&'a UserMessage),
            Assistant(&'a AssistantMessage),
            ToolResult(&'a ToolResultMessage),
            Custom(&'a CustomMessage),
        }
        match self {
            Self::User(message) => Wire::User(message).serialize(serializer),
            Self::Assistant(message) => Wire::Assistant(message).serialize(serializer),
            Self::ToolResult(message) => Wire::ToolResult(message).serialize(serializer),
            Self::Custom(message) => Wire::Custom(message).serialize(serializer),
            Self::Unknown(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Message {
    /// An unknown role is kept; a known role without its fields is an error that names the role and the field.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn read<T: for<'de> Deserialize<'de> + Into<Message>>(
            role: &str,
            value: Value,
        ) -> Result<Message, String> {
            let message =
                T::deserialize(value).map_err(|error| format!("in a message of role `{role}`: {error}"))?;
            Ok(message.into())
        }
        let mut value = Value::deserialize(deserializer)?;
        let role = value.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut take = || {
            // Not a field of the message itself, so it must not end among those it does not know.
            if let Some(map) = value.as_object_mut() {
                map.shift_remove("role");
            }
            std::mem::take(&mut value)
        };
        match role.as_str() {
            "user" => read::<UserMessage>(&role, take()),
            "assistant" => read::<AssistantMessage>(&role, take()),
            "tool_result" => read::<ToolResultMessage>(&role, take()),
            "custom" => read::<CustomMessage>(&role, take()),
            _ if value.is_object() => return Ok(Self::Unknown(value)),
            _ => Err(format!("a message is an object with a `role`, found {value}")),
        }
        .map_err(serde::de::Error::custom)
    }
}
