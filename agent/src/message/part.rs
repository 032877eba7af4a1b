//! Parts of messages, and their serde form.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, to_value};

use super::arguments::{ToolArguments, ToolCall};
use super::content::{CacheMark, Content, ProviderData, ProviderTool};
use super::json;
use super::media::{Media, Resource, ResourceLink};

/// A part of a message: its content, and the data that its provider needs back.
///
/// In JSON a part is an object with a `type`. A plain string is read as a text part.
///
/// ```
/// use agent::message::Part;
///
/// let part = Part::tool_call("call_1", "get_weather", r#"{"city":"Paris"}"#);
/// assert_eq!(
///     serde_json::to_string(&part)?,
///     r#"{"type":"tool_call","id":"call_1","name":"get_weather","args":{"city":"Paris"}}"#,
/// );
/// assert_eq!(serde_json::from_str::<Part>(r#""hello""#)?, Part::text("hello"));
/// assert_eq!(part.as_tool_call().unwrap().name, "get_weather");
/// assert_eq!((Part::text("hello").as_text(), part.as_text()), (Some("hello"), None));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// A user message with content that is not text:
///
/// ```
/// use agent::message::{Content, Message, Part};
///
/// let message = Message::user([
///     Part::text("What is on the picture, and what is said?"),
///     Part::image(vec![0x89, 0x50, 0x4e, 0x47], "image/png"),
///     Part::image_url("https://example.com/cat.png"),         // the provider fetches it
///     Part::document(b"%PDF-1.7", "application/pdf"),
///     Part::audio(b"RIFF", "audio/wav"),
/// ]);
/// let types: Vec<_> = message.content().iter().map(|part| agent::json!(part)["type"].clone()).collect();
/// assert_eq!(types, ["text", "image", "image", "document", "audio"]);
/// let Content::Audio(sound) = &message.content()[4].content else { unreachable!() };
/// assert_eq!(sound.mime_type.as_deref(), Some("audio/wav"));
/// ```
///
/// A reply with content that is neither text nor a call:
///
/// ```
/// use agent::message::{AssistantMessage, Content, Part, ProviderData};
///
/// let reply = AssistantMessage::new([
///     Part::thinking("They want me to break in."),
///     Part::redacted_thinking(ProviderData::new("anthropic", "EmwKAh…")),
///     Part::opaque("anthropic", agent::json!({"type": "server_note"})),
///     Part::refusal("I cannot help with that.")
///         .with_provider_data(ProviderData::new("anthropic", agent::json!({"category": "cyber"}))),
/// ]);
/// let [_, hidden, note, refusal] = &reply.content[..] else { unreachable!() };
/// assert_eq!(reply.thinking(), "They want me to break in.");
/// assert!(matches!(hidden.content, Content::Thinking { redacted: true, .. }));
/// assert!(matches!(note.content, Content::Opaque(_)));
/// assert_eq!(reply.refusal().as_deref(), Some("I cannot help with that."));
/// // Each provider gets back what is its own.
/// assert_eq!(hidden.provider_data_of("anthropic"), Some(&"EmwKAh…".into()));
/// assert_eq!(refusal.provider_data_of("openai"), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// The content.
    pub content: Content,
    /// The data that the provider needs back with this part.
    pub provider_data: Option<Box<ProviderData>>,
    /// The cache mark, if the provider's prompt cache should keep the request up to the end of this part.
    pub cache: Option<CacheMark>,
    /// Fields that this version does not know. They are preserved.
    pub extra: Map<String, Value>,
}

impl Part {
    /// Creates a part with this content.
    pub fn new(content: Content) -> Self {
        Self { content, provider_data: None, cache: None, extra: Map::new() }
    }

    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }

    /// Creates a part with the thinking of a model.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::new(Content::Thinking { text: text.into(), redacted: false })
    }

    /// Creates a part with thinking that the provider hides.
    pub fn redacted_thinking(data: ProviderData) -> Self {
        Self::new(Content::Thinking { text: String::new(), redacted: true }).with_provider_data(data)
    }

    /// Creates a refusal, in the model's words.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self::new(Content::Refusal(text.into()))
    }

    /// Creates an image in memory, with its media type.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::new(Content::Image(Media::data(bytes, mime_type)))
    }

    /// Creates an image at a URL, which the provider fetches.
    pub fn image_url(url: impl Into<String>) -> Self {
        Self::new(Content::Image(Media::url(url)))
    }

    /// Creates a document in memory, with its media type, for example `application/pdf`.
    pub fn document(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::new(Content::Document(Media::data(bytes, mime_type)))
    }

    /// Creates audio in memory, with its media type.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::new(Content::Audio(Media::data(bytes, mime_type)))
    }

    /// Creates a tool call. Arguments given as text are raw text of the model, which need not be JSON.
    pub fn tool_call(id: impl Into<String>, name: impl Into<String>, args: impl Into<ToolArguments>) -> Self {
        Self::new(Content::ToolCall(ToolCall::new(id, name, args)))
    }

    /// Creates a part with data that only this provider understands.
    pub fn opaque(provider: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Content::Opaque(ProviderData::new(provider, value)))
    }

    /// Sets the data that the provider needs back with this part.
    pub fn with_provider_data(mut self, data: ProviderData) -> Self {
        self.provider_data = Some(Box::new(data));
        self
    }

    /// Makes this part the end of the content that the provider's prompt cache should keep. Providers that cache automatically ignore the
    /// mark.
    ///
    /// ```
    /// use agent::message::{CacheMark, Message, Part};
    ///
    /// let manual = Part::text("… two hundred pages …").with_cache(CacheMark::Hour);
    /// let message = Message::user([manual, Part::text("Where is the fuse box?")]);
    /// assert_eq!(message.content()[0].cache, Some(CacheMark::Hour));
    /// ```
    pub fn with_cache(mut self, mark: CacheMark) -> Self {
        self.cache = Some(mark);
        self
    }

    /// Returns the text of a text part, or `None` for other parts.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the call of a call part, or `None` for other parts.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match &self.content {
            Content::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the provider data of the part, or `None` if the part has no data of this provider.
    pub fn provider_data_of(&self, provider: &str) -> Option<&Value> {
        self.provider_data.as_ref().filter(|data| data.provider == provider).map(|data| &data.data)
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self::new(content)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ToolCall> for Part {
    fn from(call: ToolCall) -> Self {
        Self::new(Content::ToolCall(call))
    }
}

/// The fields of each kind of part in the serde form, next to `type`.
#[derive(Serialize)]
#[serde(untagged)]
enum PartFields<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        redacted: bool,
    },
    Media(&'a Media),
    Resource(&'a Resource),
    ResourceLink(&'a ResourceLink),
    ToolCall(&'a ToolCall),
    ProviderTool(&'a ProviderTool),
    Opaque {
        provider: &'a str,
        #[serde(with = "json")]
        value: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        api: Option<&'a str>,
    },
}

impl Content {
    /// Returns the `type` and the fields of the serde form. For an unknown part, returns its JSON value as the error.
    fn stored_fields(&self) -> Result<(&'static str, PartFields<'_>), &Value> {
        Ok(match self {
            Self::Text(text) => ("text", PartFields::Text { text }),
            Self::Thinking { text, redacted } => {
                ("thinking", PartFields::Thinking { text, redacted: *redacted })
            }
            Self::Refusal(text) => ("refusal", PartFields::Text { text }),
            Self::Image(media) => ("image", PartFields::Media(media)),
            Self::Document(media) => ("document", PartFields::Media(media)),
            Self::Audio(media) => ("audio", PartFields::Media(media)),
            Self::Resource(resource) => ("resource", PartFields::Resource(resource)),
            Self::ResourceLink(link) => ("resource_link", PartFields::ResourceLink(link)),
            Self::ToolCall(call) => ("tool_call", PartFields::ToolCall(call)),
            Self::ProviderTool(tool) => ("provider_tool", PartFields::ProviderTool(tool)),
            Self::Opaque(ProviderData { provider, data, api }) => {
                ("opaque", PartFields::Opaque { provider, value: data, api: api.as_deref() })
            }
            Self::Unknown(value) => return Err(value),
        })
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct StoredPart<'a> {
            r#type: &'static str,
            #[serde(flatten)]
            fields: PartFields<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            provider_data: &'a Option<Box<ProviderData>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            cache: &'a Option<CacheMark>,
            #[serde(flatten)]
            extra: Cow<'a, Map<String, Value>>,
        }
        let Self { content, provider_data, cache, extra } = self;
        let mut extra = Cow::Borrowed(extra);
        for (key, is_set) in [("provider_data", provider_data.is_some()), ("cache", cache.is_some())] {
            // `extra` contains the stored value of this field if that value could not be read. A value that is set later replaces the
            // stored one.
            if is_set && extra.contains_key(key) {
                extra.to_mut().shift_remove(key);
            }
        }
        match content.stored_fields() {
            Ok((r#type, fields)) => {
                StoredPart { r#type, fields, provider_data, cache, extra }.serialize(serializer)
            }
            Err(Value::Object(fields)) => {
                let mut whole = fields.clone();
                let set = [("provider_data", to_value(provider_data)), ("cache", to_value(cache))];
                for (key, value) in set {
                    let value = Some(value.map_err(S::Error::custom)?).filter(|value| !value.is_null());
                    whole.extend(value.map(|value| (key.to_owned(), value)));
                }
                whole.extend(extra.into_owned());
                whole.serialize(serializer)
            }
            Err(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(read_part(Value::deserialize(deserializer)?))
    }
}

fn read_part(value: Value) -> Part {
    match value {
        Value::String(text) => Part::text(text),
        value => read_known(&value).unwrap_or_else(|| Part::new(Content::Unknown(value))),
    }
}

fn read_known(value: &Value) -> Option<Part> {
    let map = value.as_object()?;
    let (content, known) = read_content(map.get("type")?.as_str()?, value)?;
    // The content is readable even if one of these two fields is not. A field that a later version wrote in another form stays in `extra`.
    let provider_data = map.get("provider_data").and_then(|data| ProviderData::deserialize(data).ok());
    let cache = map.get("cache").and_then(|mark| CacheMark::deserialize(mark).ok());
    let is_known = |key: &str, value: &Value| match key {
        "type" => true,
        "provider_data" => provider_data.is_some() || value.is_null(),
        "cache" => cache.is_some() || value.is_null(),
        key => known.contains(&key),
    };
    let unknown = map.iter().filter(|(key, value)| !is_known(key, value));
    let extra = unknown.map(|(key, value)| (key.clone(), value.clone())).collect();
    Some(Part { content, provider_data: provider_data.map(Box::new), cache, extra })
}

/// Returns the content of a part, and the names of the fields from which it was read. The caller puts all other fields into `extra`.
/// Returns `None` if the type is unknown, or if a field is missing or has another type.
fn read_content(kind: &str, value: &Value) -> Option<(Content, &'static [&'static str])> {
    fn fields<T: DeserializeOwned>(value: &Value) -> Option<T> {
        T::deserialize(value).ok()
    }
    #[derive(Deserialize)]
    struct StoredText {
        text: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct StoredThinking {
        text: String,
        redacted: bool,
    }
    #[derive(Deserialize)]
    struct StoredOpaque {
        provider: String,
        #[serde(with = "json")]
        value: Value,
        #[serde(default)]
        api: Option<String>,
    }
    Some(match kind {
        "text" => (Content::Text(fields::<StoredText>(value)?.text), &["text"]),
        "refusal" => (Content::Refusal(fields::<StoredText>(value)?.text), &["text"]),
        "thinking" => {
            let StoredThinking { text, redacted } = fields(value)?;
            (Content::Thinking { text, redacted }, &["text", "redacted"])
        }
        "image" | "document" | "audio" => {
            let media: Media = fields(value)?;
            let known = media.fields();
            let content = match kind {
                "image" => Content::Image(media),
                "document" => Content::Document(media),
                _ => Content::Audio(media),
            };
            (content, known)
        }
        "resource" => {
            let resource: Resource = fields(value)?;
            let known = resource.fields();
            (Content::Resource(resource), known)
        }
        "resource_link" => (Content::ResourceLink(fields(value)?), ResourceLink::FIELDS),
        "tool_call" => (Content::ToolCall(fields(value)?), ToolCall::FIELDS),
        "provider_tool" => (Content::ProviderTool(fields(value)?), ProviderTool::FIELDS),
        "opaque" => {
            let StoredOpaque { provider, value, api } = fields(value)?;
            (Content::Opaque(ProviderData { provider, data: value, api }), &["provider", "value", "api"])
        }
        _ => return None,
    })
}

/// Reads a list of parts. A string is read as a text part, a single part as a list of one, and null as an empty list. Nulls in a list are
/// skipped.
pub(super) fn read_parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => Vec::new(),
        Value::Array(items) => items.into_iter().filter(|item| !item.is_null()).map(read_part).collect(),
        single => vec![read_part(single)],
    })
}

/// Reads an optional list of parts: null is `None`, and an empty list is `Some`.
pub(super) fn read_some_parts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Part>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        value => read_parts(value).map(Some).map_err(serde::de::Error::custom),
    }
}
