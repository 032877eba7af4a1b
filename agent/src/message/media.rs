//! Binary content and resources.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::parse_error::ParseError;

/// Bytes in memory, shared by all clones. The serde form is base64.
///
/// Reading accepts the standard and the URL-safe alphabet, with or without padding. Writing uses the standard alphabet with padding.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Blob(Arc<[u8]>);

const CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);

impl Blob {
    pub(crate) fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }

    pub(crate) fn from_base64(text: &str) -> Result<Self, ParseError> {
        let engine = if text.contains(['-', '_']) { &BASE64_URL } else { &BASE64 };
        engine
            .decode(text)
            .map(Self::from)
            .map_err(|error| ParseError::new(format!("the text is not base64: {error}")))
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<B: AsRef<[u8]>> From<B> for Blob {
    fn from(bytes: B) -> Self {
        Self(bytes.as_ref().into())
    }
}

/// Shows only the length, because the bytes are of no use in a log.
impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(serde::de::Error::custom)
    }
}

/// An image, a document or audio.
///
/// ```
/// use agent::message::Media;
///
/// let photo = Media::data(vec![0xff, 0xd8], "image/jpeg").with_name("cat.jpg");
/// let drawing = Media::url("https://example.com/cat.png").with_mime_type("image/png");
/// assert_eq!((photo.name.as_deref(), drawing.mime_type.as_deref()), (Some("cat.jpg"), Some("image/png")));
///
/// // An id names a file that was uploaded before.
/// let scan = Media::file_id("file-123");
/// assert_eq!(serde_json::to_string(&scan)?, r#"{"file_id":"file-123"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    #[serde(flatten)]
    pub(crate) source: MediaSource,
    /// The media type, for example `image/png`. The constructors set it for content in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The file name or title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Media {
    /// Creates media with content in memory. Clones share the bytes.
    pub fn data(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::blob(bytes.into(), mime_type)
    }

    pub(crate) fn blob(bytes: Blob, mime_type: impl Into<String>) -> Self {
        Self { source: MediaSource::Data(bytes), mime_type: Some(mime_type.into()), name: None }
    }

    /// Creates media with content in memory from base64, in the standard or the URL-safe alphabet, with or without padding.
    ///
    /// ```
    /// use agent::message::Media;
    ///
    /// let image = Media::from_base64("iVA=", "image/png")?;
    /// assert_eq!((image.as_data(), image.to_base64().as_deref()), (Some([0x89, b'P'].as_slice()), Some("iVA=")));
    /// # Ok::<(), agent::args::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the text is not base64.
    pub fn from_base64(text: &str, mime_type: impl Into<String>) -> Result<Self, ParseError> {
        Blob::from_base64(text).map(|bytes| Self::blob(bytes, mime_type))
    }

    /// Creates media with content at a URL, which the provider fetches.
    pub fn url(url: impl Into<String>) -> Self {
        Self { source: MediaSource::Url(url.into()), mime_type: None, name: None }
    }

    /// Creates media with a file that was already uploaded to the provider.
    pub fn file_id(id: impl Into<String>) -> Self {
        Self { source: MediaSource::FileId(id.into()), mime_type: None, name: None }
    }

    /// Returns the content, or `None` if it is not in memory.
    ///
    /// ```
    /// use agent::message::Media;
    ///
    /// let media = [Media::data(b"II*", "image/tiff"), Media::url("https://example.com/cat.png"), Media::file_id("file-123")];
    /// assert_eq!(media[0].as_data(), Some(b"II*".as_slice()));
    /// assert_eq!((media[1].as_data(), media[1].as_url()), (None, Some("https://example.com/cat.png")));
    /// assert_eq!(media[2].as_file_id(), Some("file-123"));
    /// ```
    pub fn as_data(&self) -> Option<&[u8]> {
        match &self.source {
            MediaSource::Data(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the content as base64, or `None` if it is not in memory.
    pub fn to_base64(&self) -> Option<String> {
        match &self.source {
            MediaSource::Data(bytes) => Some(bytes.to_base64()),
            _ => None,
        }
    }

    /// Returns the URL of the content, or `None` if the content is not at a URL.
    pub fn as_url(&self) -> Option<&str> {
        match &self.source {
            MediaSource::Url(url) => Some(url),
            _ => None,
        }
    }

    /// Returns the id of the content, or `None` if the content is not a file at the provider.
    pub fn as_file_id(&self) -> Option<&str> {
        match &self.source {
            MediaSource::FileId(id) => Some(id),
            _ => None,
        }
    }

    /// Sets the media type.
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the file name or title.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(super) fn fields(&self) -> &'static [&'static str] {
        match self.source {
            MediaSource::Data(_) => &["data", "mime_type", "name"],
            MediaSource::Url(_) => &["url", "mime_type", "name"],
            MediaSource::FileId(_) => &["file_id", "mime_type", "name"],
        }
    }
}

/// The content of a [`Media`], or its location. The serde form is one field with the name of the variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MediaSource {
    Data(Blob),
    Url(String),
    FileId(String),
}

/// A resource with its content, text or bytes, as MCP tools return it.
///
/// ```
/// use agent::message::Resource;
///
/// let page = Resource::text("file:///notes.md", "# Notes").with_mime_type("text/markdown");
/// assert_eq!((page.uri.as_str(), page.mime_type.as_deref()), ("file:///notes.md", Some("text/markdown")));
/// assert_eq!(page.as_text(), Some("# Notes"));
///
/// let icon = Resource::data("file:///icon.png", vec![1, 2, 3]);
/// assert_eq!(icon.as_data().map(|bytes| bytes.len()), Some(3));
/// assert_eq!(serde_json::to_string(&icon)?, r#"{"uri":"file:///icon.png","data":"AQID"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resource {
    /// The URI of the resource.
    pub uri: String,
    #[serde(flatten)]
    body: ResourceBody,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl Resource {
    /// Creates a text resource.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), body: ResourceBody::Text(text.into()), mime_type: None }
    }

    /// Creates a binary resource.
    pub fn data(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self { uri: uri.into(), body: ResourceBody::Data(bytes.into()), mime_type: None }
    }

    /// Creates a binary resource from base64, in the standard or the URL-safe alphabet, with or without padding.
    ///
    /// ```
    /// use agent::message::Resource;
    ///
    /// let icon = Resource::from_base64("file:///icon.png", "AQID")?;
    /// assert_eq!((icon.as_data(), icon.to_base64().as_deref()), (Some([1, 2, 3].as_slice()), Some("AQID")));
    /// # Ok::<(), agent::args::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the text is not base64.
    pub fn from_base64(uri: impl Into<String>, text: &str) -> Result<Self, ParseError> {
        let bytes = Blob::from_base64(text)?;
        Ok(Self { uri: uri.into(), body: ResourceBody::Data(bytes), mime_type: None })
    }

    /// Sets the media type.
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Returns the text, or `None` if the resource is binary.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Data(_) => None,
        }
    }

    /// Returns the bytes, or `None` if the resource is a text.
    pub fn as_data(&self) -> Option<&[u8]> {
        match &self.body {
            ResourceBody::Text(_) => None,
            ResourceBody::Data(bytes) => Some(bytes),
        }
    }

    /// Returns the bytes as base64, or `None` if the resource is a text.
    pub fn to_base64(&self) -> Option<String> {
        match &self.body {
            ResourceBody::Text(_) => None,
            ResourceBody::Data(bytes) => Some(bytes.to_base64()),
        }
    }

    pub(super) fn fields(&self) -> &'static [&'static str] {
        match self.body {
            ResourceBody::Text(_) => &["uri", "text", "mime_type"],
            ResourceBody::Data(_) => &["uri", "data", "mime_type"],
        }
    }
}

/// The content of a resource. The serde form is one field with the name of the variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResourceBody {
    Text(String),
    Data(Blob),
}

/// A resource without its content, as MCP tools return it.
///
/// ```
/// use agent::message::{Content, Part, ResourceLink};
///
/// let mut link = ResourceLink::new("https://example.com/report.pdf");
/// link.title = Some("The report".into());
/// let part = Part::new(Content::ResourceLink(link));
/// assert!(matches!(part.content, Content::ResourceLink(link) if link.size.is_none()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceLink {
    /// The URI of the resource.
    pub uri: String,
    /// A short name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A name to show to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl ResourceLink {
    /// Creates a link with only a URI. Set the other fields directly.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, title: None, description: None, mime_type: None, size: None }
    }

    pub(super) const FIELDS: &[&str] = &["uri", "name", "title", "description", "mime_type", "size"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_in_every_common_spelling() {
        let bytes: &[u8] = &[0xfb, 0xff, 0xfe, 0x00];
        for text in ["+//+AA==", "+//+AA", "-__-AA==", "-__-AA"] {
            assert_eq!(&*Blob::from_base64(text).unwrap(), bytes, "{text}");
        }
        assert_eq!(Blob::from(bytes).to_base64(), "+//+AA==");
        for text in ["+//+A", "a b", "+/-_", "é"] {
            assert!(Blob::from_base64(text).is_err(), "{text}");
        }
    }

    #[test]
    fn clones_share_their_bytes_and_debug_shows_none() {
        let blob = Blob::from(vec![7; 1000]);
        assert_eq!(blob.as_ptr(), blob.clone().as_ptr());
        assert_eq!(format!("{blob:?}"), "Blob(1000 bytes)");
    }
}
