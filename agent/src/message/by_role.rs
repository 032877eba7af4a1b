//! A message of any role, and its open serde form.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::part::Part;
use super::roles::{AssistantMessage, CustomMessage, ToolResultMessage, UserMessage, join_text};

/// One message of a conversation.
///
/// In JSON it is an object with a `role`. The system prompt and the tool list are no messages: they are
/// configuration, added to each request.
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

    /// The role as it is stored: `user`, `assistant`, `tool_result`, `custom`, or the word of an unknown message.
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

    /// The message of the model, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// The result of a call, if it is one.
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
