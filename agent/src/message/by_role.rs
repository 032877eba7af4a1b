//! Messages of any role, and their serde form.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::json;
use super::part::Part;
use super::roles::{AssistantMessage, CustomMessage, ToolResultMessage, UserMessage, join_text};

/// A message of a conversation.
///
/// In JSON, a message is an object with a `role`. The system prompt and the list of tools are not messages, but configuration that is added
/// to each request.
///
/// ```
/// use agent::message::{Message, Part};
///
/// let message: Message = serde_json::from_str(r#"{"role": "user", "content": "Hello"}"#)?;
/// assert_eq!(message, Message::user("Hello"));
/// assert_eq!((message.role(), message.text().as_str()), ("user", "Hello"));
///
/// let reply = Message::assistant([Part::thinking("A greeting."), Part::text("Hi!")]);
/// assert_eq!((reply.content().len(), reply.text().as_str()), (2, "Hi!"));
/// assert_eq!(reply.as_assistant().unwrap().thinking(), "A greeting.");
/// assert!(reply.as_tool_result().is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// A message of the user.
    User(UserMessage),
    /// A message of the model.
    Assistant(AssistantMessage),
    /// The result of a tool call.
    ToolResult(ToolResultMessage),
    /// A message of the application.
    Custom(CustomMessage),
    /// A message with a role that this version does not know. It is preserved, and never sent to a model.
    Unknown(Value),
}

impl Message {
    /// Creates a message of the user from text, a part or several parts.
    pub fn user(content: impl Into<UserMessage>) -> Self {
        Self::User(content.into())
    }

    /// Creates a message of the model from text, a part or several parts.
    pub fn assistant(content: impl Into<AssistantMessage>) -> Self {
        Self::Assistant(content.into())
    }

    /// Returns the role in the stored form: `user`, `assistant`, `tool_result`, `custom`, or the role of an unknown message, which is empty
    /// if the message has none.
    pub fn role(&self) -> &str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "tool_result",
            Self::Custom(_) => "custom",
            Self::Unknown(value) => value.get("role").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Returns the parts of the message. The parts of a custom message are those for the model.
    pub fn content(&self) -> &[Part] {
        match self {
            Self::User(message) => &message.content,
            Self::Assistant(message) => &message.content,
            Self::ToolResult(message) => &message.content,
            Self::Custom(message) => message.for_model.as_deref().unwrap_or_default(),
            Self::Unknown(_) => &[],
        }
    }

    /// Returns the texts of the text parts, joined without a separator.
    pub fn text(&self) -> String {
        join_text(self.content())
    }

    /// Returns the message of the model, or `None` if this message has another role.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the result of a call, or `None` if this message has another role.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        match self {
            Self::ToolResult(message) => Some(message),
            _ => None,
        }
    }
}

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
        enum TaggedMessage<'a> {
            User(&'a UserMessage),
            Assistant(&'a AssistantMessage),
            ToolResult(&'a ToolResultMessage),
            Custom(&'a CustomMessage),
        }
        match self {
            Self::User(message) => TaggedMessage::User(message).serialize(serializer),
            Self::Assistant(message) => TaggedMessage::Assistant(message).serialize(serializer),
            Self::ToolResult(message) => TaggedMessage::ToolResult(message).serialize(serializer),
            Self::Custom(message) => TaggedMessage::Custom(message).serialize(serializer),
            Self::Unknown(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Message {
    /// Preserves a message with an unknown role. If the role is known but a field is missing or malformed, the error names the role and
    /// the fault.
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
            // The role is not a field of the message types, which would keep it as an unknown field.
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
            _ => Err(format!("a message is an object with a `role`, found {}", json::kind(&value))),
        }
        .map_err(serde::de::Error::custom)
    }
}
