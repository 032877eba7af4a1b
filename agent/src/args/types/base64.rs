//! Bytes as base64.

use super::{ParsedText, read, text_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Bytes as base64 text, as a model sends and reads them: the alphabet with `+` and `/`, padded with `=` ([RFC 4648, section
/// 4](https://www.rfc-editor.org/rfc/rfc4648#section-4)). Other forms are refused. Therefore a truncated text is
/// detected, unless the cut is after a whole group of four characters.
///
/// As a `Vec<u8>`, the bytes would be a list of numbers. `#[arg(length(…))]` counts the characters of the text: four for every
/// three bytes.
///
/// ```
/// use agent::{ToolArgs, args::{Base64, Plan, PlanOptions}};
///
/// #[derive(ToolArgs)]
/// struct Upload {
///     name: String,
///     data: Base64,
/// }
///
/// let plan = Plan::for_type::<Upload>("upload", PlanOptions::default())?;
/// let upload = plan.parse::<Upload>(r#"{"name": "a.txt", "data": "aGVsbG8="}"#)?.value;
/// assert_eq!(*upload.data, *b"hello");                 // a slice of the bytes
/// assert_eq!(upload.data.to_string(), "aGVsbG8=");     // the text again
/// let bytes: Vec<u8> = upload.data.into_vec();         // the bytes themselves, without a copy
/// assert_eq!(bytes, b"hello");
///
/// // To return bytes, or to call the function yourself.
/// assert_eq!(Base64::from(bytes).to_string(), "aGVsbG8=");
///
/// let refused = plan.parse::<Upload>(r#"{"name": "a.txt", "data": "aGVsbG8"}"#).err().unwrap();
/// assert_eq!(refused.issues()[0].path, "/data");
/// assert_eq!(refused.issues()[0].problem, "is not base64: the padding (`=`) at its end is missing or wrong");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base64(Vec<u8>);

impl Base64 {
    /// Returns the bytes, without a copy.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

impl Deref for Base64 {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Base64 {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Base64 {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<Base64> for Vec<u8> {
    fn from(bytes: Base64) -> Self {
        bytes.0
    }
}

/// Writes the base64 text.
impl fmt::Display for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

/// Writes only the number of bytes, because there may be many bytes.
impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({} bytes)", self.0.len())
    }
}

impl ParsedText for Base64 {
    const WANTED: &'static str = "bytes as base64 text";
    type Error = String;

    fn from_text(text: &str) -> Result<Self, String> {
        STANDARD.decode(text).map(Self).map_err(|error| what_is_wrong(text, &error))
    }

    fn nothing() -> Self {
        Self::default()
    }
}

fn what_is_wrong(text: &str, error: &base64::DecodeError) -> String {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    if text.starts_with("data:") {
        return "is not base64: send what comes after the comma of the `data:` URL".into();
    }
    match *error {
        InvalidByte(_, b'-' | b'_') => {
            "is not base64: use the alphabet with `+` and `/`, not the one for URLs".into()
        }
        InvalidByte(_, byte) if byte.is_ascii_whitespace() => {
            "is not base64: remove spaces and line breaks".into()
        }
        // A letter, digit, `+` or `/` is refused only after padding, and `=` only at a wrong position.
        InvalidByte(at, byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=') => {
            format!("is not base64: wrong padding (`=`) at character {}", at + 1)
        }
        InvalidByte(at, _) => {
            let before = text.get(..at).map_or(at, |before| before.chars().count());
            let sign = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('?');
            format!("is not base64: `{}` at character {}", sign.escape_debug(), before + 1)
        }
        InvalidPadding => "is not base64: the padding (`=`) at its end is missing or wrong".into(),
        InvalidLength(_) | InvalidLastSymbol { .. } => "is not base64: it seems to be cut short".into(),
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Base64 {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }

    fn schema_id() -> Cow<'static, str> {
        "agent::args::Base64".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        text_of("base64", "contentEncoding")
    }
}
