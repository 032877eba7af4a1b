//! The messages of each role.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::arguments::{ToolArguments, ToolCall};
use super::content::{Content, ProviderData};
use super::json;
use super::part::{Part, read_parts, read_some_parts};
use super::usage::Usage;
use super::words::{OutcomeKind, StopReason};

pub(super) fn join_text(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}

/// A message from the user.
///
/// ```
/// use agent::message::{Part, UserMessage};
///
/// // A message can combine text with pictures and documents.
/// let question = UserMessage::new([Part::text("What is this?"), Part::image(vec![0x89, 0x50], "image/png")]);
/// assert_eq!(question.text(), "What is this?");
/// assert_eq!(UserMessage::from("Hello").text(), "Hello");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UserMessage {
    /// The content of the message.
    #[serde(deserialize_with = "read_parts")]
    pub content: Vec<Part>,
    /// The id of a message that came through a queue. A queue does not add a message while it has another one with the same id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Data of one provider about the message. It is sent only to that provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Box<ProviderData>>,
    /// Fields that this version does not know. They are preserved.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl UserMessage {
    /// Creates a message with these parts.
    pub fn new(content: impl IntoIterator<Item = Part>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// Returns the texts of the text parts, joined without a separator.
    pub fn text(&self) -> String {
        join_text(&self.content)
    }
}

/// A message from the model.
///
/// ```
/// use agent::message::{AssistantMessage, Part};
///
/// let reply = AssistantMessage::new([
///     Part::thinking("They want the weather."),
///     Part::text("One moment."),
///     Part::tool_call("call_1", "get_weather", r#"{"city": "Paris"}"#),
/// ]);
/// assert_eq!((reply.text().as_str(), reply.thinking().as_str()), ("One moment.", "They want the weather."));
/// assert_eq!(reply.tool_calls().next().unwrap().name, "get_weather");
/// assert_eq!(reply.refusal(), None);
///
/// let refused = AssistantMessage::new([Part::refusal("I cannot help with that.")]);
/// assert_eq!((refused.text(), refused.refusal()), (String::new(), Some("I cannot help with that.".into())));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AssistantMessage {
    /// The text, thinking and calls of the model, in order.
    #[serde(deserialize_with = "read_parts")]
    pub content: Vec<Part>,
    /// The provider that answered, for example `anthropic`. Empty if no provider answered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The protocol of the request, for example `anthropic-messages`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api: String,
    /// The name of the requested model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The name of the model that answered, if the provider reports another name than `model`, for example a version for an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The tokens and cost of the reply.
    #[serde(skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// The reason why the reply ended.
    pub stop_reason: StopReason,
    /// The reason why the reply ended, in the provider's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_stop_reason: Option<String>,
    /// Details of the end, for example the error, the reason for a cancellation, or the explanation of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The provider's id of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Data of the provider about the whole message. The provider gets back the fields that it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Box<ProviderData>>,
    /// Fields that this version does not know. They are preserved.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl AssistantMessage {
    /// Creates a message with these parts. Its stop reason is [`StopReason::ToolUse`] if the parts include a call, or else
    /// [`StopReason::Stop`].
    pub fn new(content: impl IntoIterator<Item = Part>) -> Self {
        let content: Vec<Part> = content.into_iter().collect();
        let asks = content.iter().any(|part| part.as_tool_call().is_some());
        let stop_reason = if asks { StopReason::ToolUse } else { StopReason::Stop };
        Self { content, stop_reason, ..Self::default() }
    }

    /// Returns the texts of the text parts, joined without a separator.
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// Returns the texts of the thinking parts, joined without a separator.
    pub fn thinking(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match &part.content {
            Content::Thinking { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the texts of the refusal parts, joined without a separator, or `None` if the model did not refuse.
    pub fn refusal(&self) -> Option<String> {
        let texts = self.content.iter().filter_map(|part| match &part.content {
            Content::Refusal(text) => Some(text.as_str()),
            _ => None,
        });
        Some(texts.collect::<String>()).filter(|text| !text.is_empty())
    }

    /// Returns the calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> + Clone {
        self.content.iter().filter_map(Part::as_tool_call)
    }
}

/// The result of a tool call, as the model reads it.
///
/// ```
/// use agent::message::{OutcomeKind, ToolResultMessage};
///
/// let result = ToolResultMessage::new("call_1", "get_weather", OutcomeKind::Completed).with_content("21 degrees");
/// assert_eq!(result.text(), "21 degrees");
/// assert!(!result.is_error);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResultMessage {
    /// The call's id.
    pub call_id: String,
    /// The tool's name, as in the call.
    pub tool: String,
    /// The content for the model. The content of an error is the plain text of the error.
    pub content: Vec<Part>,
    /// The result as structured data, a JSON object or list, if the tool returns such data.
    #[serde(with = "json::option", skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The outcome of the call.
    pub outcome: OutcomeKind,
    /// The code of the outcome, for example `invalid_arguments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether the result is marked as an error for the model.
    pub is_error: bool,
    /// The changed arguments, if a person changed the arguments of the call. Adapters show them to the model with
    /// [`content_for_model`](Self::content_for_model). The adapters of this library leave out arguments that the tool marks as secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_args: Option<ToolArguments>,
    /// Data for the application. It is never sent to a model.
    #[serde(with = "json::map", skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Data of one provider about the result. It is sent only to that provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Box<ProviderData>>,
    /// Fields that this version does not know. They are preserved.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolResultMessage {
    /// Creates a result without content. `is_error` is derived from the outcome.
    ///
    /// ```
    /// use agent::message::{OutcomeKind, ToolResultMessage};
    ///
    /// let result = ToolResultMessage::new("call_1", "add", OutcomeKind::Failed)
    ///     .with_code(Some("unknown_tool".to_owned()))
    ///     .with_content("There is no tool `add`.");
    /// assert!(result.is_error);
    ///
    /// let forecast = agent::json!({"degrees": 21});
    /// let metadata = [("cache".to_owned(), "hit".into())].into_iter().collect();
    /// let result = ToolResultMessage::new("call_2", "get_weather", OutcomeKind::Completed)
    ///     .with_content(forecast.to_string())
    ///     .with_structured(Some(forecast))
    ///     .with_metadata(metadata);
    /// assert_eq!(result.structured.unwrap()["degrees"], 21);      // the same as data, for programs
    /// assert_eq!(result.metadata["cache"], "hit");                // for the application, never for a model
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
            edited_args: None,
            metadata: Map::new(),
            provider_data: None,
            extra: Map::new(),
        }
    }

    /// Sets the content: text, a part or several parts.
    pub fn with_content(mut self, content: impl Into<UserMessage>) -> Self {
        self.content = content.into().content;
        self
    }

    /// Sets the result as structured data: a JSON object or list.
    pub fn with_structured(mut self, structured: Option<Value>) -> Self {
        self.structured = structured;
        self
    }

    /// Sets the code of the outcome.
    pub fn with_code(mut self, code: Option<String>) -> Self {
        self.code = code;
        self
    }

    /// Sets the data that only the application sees.
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Returns the texts of the text parts, joined without a separator.
    pub fn text(&self) -> String {
        join_text(&self.content)
    }
}

impl ToolResultMessage {
    /// Returns the content for the model. If a person changed the arguments, the content begins with a line with these arguments.
    ///
    /// ```
    /// use agent::message::{OutcomeKind, Part, ToolResultMessage};
    ///
    /// let mut result = ToolResultMessage::new("call_1", "pay", OutcomeKind::Completed).with_content("Paid.");
    /// assert_eq!(result.content_for_model().len(), 1);
    /// result.edited_args = Some(r#"{"amount": 5}"#.into());
    /// assert_eq!(
    ///     result.content_for_model()[0],
    ///     Part::text(r#"[a person changed the arguments of this call; it ran with {"amount": 5}]"#),
    /// );
    /// ```
    pub fn content_for_model(&self) -> Cow<'_, [Part]> {
        let Some(args) = &self.edited_args else { return Cow::Borrowed(&self.content) };
        let what = match (self.code.as_deref(), &self.outcome) {
            (Some("invalid_arguments" | "blocked"), _) => "was refused",
            // In each of these cases, it is unknown whether the call had begun.
            (Some("hook_error" | "retries_exhausted"), _) | (_, OutcomeKind::Interrupted) => "was to run",
            _ => "ran",
        };
        let text = args.text();
        let line =
            Part::text(format!("[a person changed the arguments of this call; it {what} with {text}]"));
        std::iter::once(line).chain(self.content.iter().cloned()).collect()
    }
}

impl<'de> Deserialize<'de> for ToolResultMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct StoredToolResult {
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
            edited_args: Option<ToolArguments>,
            #[serde(default, with = "json::map")]
            metadata: Map<String, Value>,
            provider_data: Option<Box<ProviderData>>,
            #[serde(flatten)]
            extra: Map<String, Value>,
        }
        let stored = StoredToolResult::deserialize(deserializer)?;
        let outcome = stored.outcome.unwrap_or(match stored.is_error {
            Some(true) => OutcomeKind::Failed,
            _ => OutcomeKind::Completed,
        });
        Ok(Self {
            call_id: stored.call_id,
            tool: stored.tool,
            content: stored.content,
            structured: stored.structured,
            is_error: stored.is_error.unwrap_or_else(|| outcome.is_error()),
            outcome,
            code: stored.code,
            edited_args: stored.edited_args,
            metadata: stored.metadata,
            provider_data: stored.provider_data,
            extra: stored.extra,
        })
    }
}

/// A message of the application. It is part of the conversation, and is sent to a model only if it has content for models.
///
/// ```
/// use agent::message::{Conversation, CustomMessage, Message};
///
/// let opened = CustomMessage::new("file_opened", agent::json!({"path": "a.rs"})).with_for_model("The user opened a.rs.");
/// let conversation = Conversation::from_iter([Message::from(opened)]);
/// assert!(matches!(conversation.last(), Some(Message::Custom(message)) if message.kind == "file_opened"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CustomMessage {
    /// The kind of message, chosen by the application.
    pub kind: String,
    /// The application's data. It is never sent to a model.
    #[serde(default, with = "json", skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// The content for the model. If `kind` is a role that the provider accepts for instructions, such as `system`, the content is sent
    /// with this role. Otherwise, it is sent as a user message. `None` sends nothing.
    #[serde(default, deserialize_with = "read_some_parts", skip_serializing_if = "Option::is_none")]
    pub for_model: Option<Vec<Part>>,
    /// Data of one provider about the message. It is sent only to that provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Box<ProviderData>>,
    /// Fields that this version does not know. They are preserved.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CustomMessage {
    /// Creates a message that no model sees.
    pub fn new(kind: impl Into<String>, data: impl Into<Value>) -> Self {
        let (kind, data) = (kind.into(), data.into());
        Self { kind, data, for_model: None, provider_data: None, extra: Map::new() }
    }

    /// Sets the content for the model.
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
