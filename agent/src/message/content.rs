//! The kinds of content of a part.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arguments::ToolCall;
use super::json;
use super::media::{Media, Resource, ResourceLink};

/// The content of a [`Part`](super::Part).
///
/// ```
/// use agent::message::{Content, Message};
///
/// let message = Message::user("Good morning.");
/// for part in message.content() {
///     match &part.content {
///         Content::Text(text) => assert_eq!(text, "Good morning."),
///         Content::Image(image) => println!("a picture: {:?}", image.mime_type),
///         _ => {}                                      // there will be more
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// The thinking of the model. The text is often empty, because some providers send only a signature, as provider data.
    #[non_exhaustive]
    Thinking {
        /// The thinking, or a summary of it.
        text: String,
        /// Whether the provider hides the thinking. In that case only the provider can read it, from the provider data.
        redacted: bool,
    },
    /// The text of a refusal, which the model writes instead of an answer.
    Refusal(String),
    /// An image.
    Image(Media),
    /// A document, for example a PDF.
    Document(Media),
    /// An audio recording.
    Audio(Media),
    /// A resource with its content.
    Resource(Resource),
    /// A resource without its content.
    ResourceLink(ResourceLink),
    /// A tool call of the model.
    ToolCall(ToolCall),
    /// A tool that the provider runs itself: its call, its result, or both.
    ProviderTool(Box<ProviderTool>),
    /// Data that only one provider understands. The data is sent back to that provider unchanged.
    Opaque(ProviderData),
    /// A part that this version cannot read: an unknown type, or a known type with missing fields. It is preserved, and never sent to a
    /// model.
    Unknown(Value),
}

/// The call of a tool that the provider runs (web search, code execution, …), its result, or both.
///
/// These fields are for people and programs to read. The data that the provider needs back is the part's provider data.
///
/// ```
/// use agent::message::{Content, Part, ProviderTool};
///
/// let mut search = ProviderTool::new("web_search");
/// search.input = Some(agent::json!({"query": "rust 2024"}));
/// let part = Part::new(Content::ProviderTool(Box::new(search)));
/// assert!(matches!(&part.content, Content::ProviderTool(tool) if tool.output.is_none() && !tool.is_error));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderTool {
    /// The provider's id of the call. A call and its result share the id if they are separate parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The provider's name of the tool: `web_search`, `code_execution`, …
    pub name: String,
    /// The input of the tool.
    #[serde(default, with = "json::option", skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The output of the tool.
    #[serde(default, with = "json::option", skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Whether the provider marked the output as an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ProviderTool {
    /// Creates a call or result with only a name. Set the other fields directly.
    pub fn new(name: impl Into<String>) -> Self {
        Self { id: None, name: name.into(), input: None, output: None, is_error: false }
    }

    pub(super) const FIELDS: &[&str] = &["id", "name", "input", "output", "is_error"];

    /// Returns a description for models that cannot read the provider data.
    pub(crate) fn description(&self) -> String {
        let name = &self.name;
        let mut words = match (&self.input, &self.output) {
            (Some(input), _) => format!("[`{name}` was run at the provider with {}", shorten(input)),
            (None, Some(_)) => format!("[`{name}` was run at the provider"),
            (None, None) => format!("[`{name}` was asked for at the provider"),
        };
        if let Some(output) = &self.output {
            words.push_str(if self.is_error { "; it failed: " } else { "; it answered: " });
            words.push_str(&shorten(output));
        }
        words.push(']');
        words
    }
}

/// The maximum length of a shortened value, in bytes. The results of web searches are long.
const MAX_VALUE: usize = 4000;

/// The maximum length of a string without spaces that counts as readable, in bytes.
const MAX_WORD: usize = 500;

/// Returns a value as shortened text, without the keys that only its provider can read.
fn shorten(value: &Value) -> String {
    fn readable(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let is_readable = |key: &str| !key.starts_with("encrypted") && !key.contains("signature");
                let kept = map.iter().filter(|(key, _)| is_readable(key));
                kept.map(|(key, value)| (key.clone(), readable(value))).collect()
            }
            Value::Array(list) => list.iter().map(readable).collect(),
            // A long string without spaces is probably an image or encoded state, so only its length is shown.
            Value::String(text) if text.len() > MAX_WORD && !text.contains(char::is_whitespace) => {
                format!("({} characters)", text.chars().count()).into()
            }
            other => other.clone(),
        }
    }
    // The recursion is bounded, because the value was read from JSON, for which `serde_json` allows at most 128 levels, or from a store,
    // which allows at most 256.
    let mut text = match readable(value) {
        Value::String(text) => text,
        value => value.to_string(),
    };
    if text.len() > MAX_VALUE {
        let cut = (0..=MAX_VALUE).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// Data that only one provider understands: signatures, encrypted reasoning and item ids of a part or a message, or a whole item as
/// [`Content::Opaque`].
///
/// The data is sent back unchanged, and only to this provider.
///
/// ```
/// use agent::message::{Content, Part, ProviderData};
///
/// let part = Part::thinking("Let me see.")
///     .with_provider_data(ProviderData::new("anthropic", agent::json!({"signature": "c2ln"})));
/// assert_eq!(part.provider_data_of("anthropic").unwrap()["signature"], "c2ln");
/// assert!(part.provider_data_of("openai").is_none());
///
/// let note = ProviderData::new("anthropic", agent::json!({"type": "server_note"}));
/// assert_eq!(Part::new(Content::Opaque(note)), Part::opaque("anthropic", agent::json!({"type": "server_note"})));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderData {
    /// The name of the provider.
    pub provider: String,
    /// The data, in the provider's own form.
    #[serde(with = "json")]
    pub data: Value,
    /// The protocol of the data, if it is known. The data is not sent over another protocol of the provider. Data in a reply needs no
    /// protocol, because the reply names its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
}

impl ProviderData {
    /// Creates data of a provider.
    ///
    /// ```
    /// use agent::message::{Part, ProviderData};
    /// use serde_json::json;
    ///
    /// let part = Part::thinking("17 is prime.")
    ///     .with_provider_data(ProviderData::new("anthropic", json!({"signature": "EqQB…"})));
    /// assert_eq!(part.provider_data_of("anthropic").unwrap()["signature"], "EqQB…");
    /// assert!(part.provider_data_of("openai").is_none());
    /// ```
    pub fn new(provider: impl Into<String>, data: impl Into<Value>) -> Self {
        Self { provider: provider.into(), data: data.into(), api: None }
    }
}

/// The time for which a provider's prompt cache keeps the marked content.
///
/// The values are those of `cache_control.ttl` in Anthropic's Messages API.
///
/// ```
/// use agent::message::{CacheMark, Message, Part, UserMessage};
///
/// // Many requests start with this manual.
/// let manual = Part::text("The manual: …").with_cache(CacheMark::Hour);
/// let message = Message::user(UserMessage::new([manual, Part::text("How do I start?")]));
/// assert_eq!(message.content()[0].cache, Some(CacheMark::Hour));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CacheMark {
    /// The content is kept for the provider's default time: some minutes after its last use.
    #[default]
    #[serde(rename = "default")]
    Usual,
    /// The content is kept until five minutes after its last use.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// The content is kept until one hour after its last use.
    #[serde(rename = "1h")]
    Hour,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_unreadable_string_is_counted_in_characters() {
        let mut tool = ProviderTool::new("draw");
        tool.output = Some("é".repeat(300).into());
        assert_eq!(tool.description(), "[`draw` was run at the provider; it answered: (300 characters)]");
    }
}
