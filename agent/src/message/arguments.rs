//! Tool calls, with their arguments as the model sent them.

use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::json;

/// A tool call that a model asks for.
///
/// ```
/// use agent::message::ToolCall;
///
/// let call = ToolCall::new("call_1", "get_weather", r#"{"city": "Paris"}"#);
/// assert_eq!(call.args.text(), r#"{"city": "Paris"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id of the call in its message. The result has the same id.
    pub id: String,
    /// The tool's name, as the model sent it.
    pub name: String,
    /// The arguments, as the model sent them.
    #[serde(default)]
    pub args: ToolArguments,
}

impl ToolCall {
    /// Creates a call. Arguments given as text are raw text of the model, which need not be JSON.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: impl Into<ToolArguments>) -> Self {
        Self { id: id.into(), name: name.into(), args: args.into() }
    }

    pub(super) const FIELDS: &[&str] = &["id", "name", "args"];
}

/// The arguments of a call, as the raw text of the model.
///
/// The arguments are kept as text, because parsing loses details that validation needs: repeated keys, `42` as opposed to `42.0`, and the
/// position at which JSON is broken. Blank text means no arguments and reads as `{}`.
///
/// The serde form is the JSON value, or a string with the raw text. A string is used for text that is not JSON, for details that parsing
/// loses, such as a repeated key, and for null, strings and very deep values:
///
/// ```
/// use agent::message::ToolArguments;
///
/// let stored = |text: &str| serde_json::to_string(&ToolArguments::from(text));
/// assert_eq!(stored(r#"{"city": "Paris"}"#)?, r#"{"city":"Paris"}"#);
/// assert_eq!(stored(r#"{"a":1,"a":2}"#)?, r#""{\"a\":1,\"a\":2}""#);
/// assert_eq!(stored("{\"city\":")?, r#""{\"city\":""#);
///
/// assert_eq!(ToolArguments::from(r#"{"city": "Paris"}"#).value(), Some(serde_json::json!({"city": "Paris"})));
/// assert_eq!(ToolArguments::from("{\"city\":").value(), None);
/// assert_eq!(ToolArguments::from("").text(), "{}");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolArguments {
    text: String,
    /// Whether the text has a [value](Self::value). Empty until the text is checked.
    is_json: OnceLock<bool>,
}

/// Shows only the length, because arguments may hold secrets and the `Debug` text is written to logs.
impl fmt::Debug for ToolArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolArguments({} bytes)", self.text.len())
    }
}

impl ToolArguments {
    /// Returns the text, or `{}` if the text is blank.
    pub fn text(&self) -> &str {
        if self.text.bytes().all(is_space) { "{}" } else { &self.text }
    }

    /// Returns the parsed text, or `None` if `serde_json` cannot parse the text: for example, text that is not JSON, or JSON with more
    /// than 127 nested levels.
    ///
    /// If a key is repeated, the last value is kept, and numbers beyond 64 bits are rounded. Validate arguments by their text, not by this
    /// value.
    pub fn value(&self) -> Option<Value> {
        serde_json::from_str(self.text()).ok()
    }

    pub(super) fn is_json(&self) -> bool {
        *self.is_json.get_or_init(|| self.value().is_some())
    }

    pub(crate) fn push_str(&mut self, delta: &str) {
        self.text.push_str(delta);
        self.is_json = OnceLock::new();
    }

    /// Returns the value to store in place of the text, or `None` if reading the value would give other arguments.
    fn lossless_value(&self) -> Option<Value> {
        let value = self.value()?;
        // These values stay text: a stored string is read as raw text, a stored null as no arguments, and a deep value cannot be read
        // inside of a session record.
        if value.is_string() || value.is_null() || json::is_deep(&value) {
            return None;
        }
        let compact = serde_json::to_string(&value).ok()?;
        is_equal_except_space(self.text(), &compact).then_some(value)
    }
}

/// Arguments are equal if their texts are equal. Blank text equals `{}`.
impl PartialEq for ToolArguments {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for ToolArguments {}

/// Keeps the text unchanged, as the model sent it.
impl From<String> for ToolArguments {
    fn from(text: String) -> Self {
        Self { text, is_json: OnceLock::new() }
    }
}

/// Keeps the text unchanged, as the model sent it.
impl From<&str> for ToolArguments {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// Keeps the value as JSON text.
impl From<Value> for ToolArguments {
    fn from(value: Value) -> Self {
        // The text of a deep value may be too deep to be read again.
        let is_json = if json::is_deep(&value) { OnceLock::new() } else { true.into() };
        Self { text: value.to_string(), is_json }
    }
}

impl Serialize for ToolArguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.lossless_value() {
            Some(value) => value.serialize(serializer),
            None => serializer.serialize_str(self.text()),
        }
    }
}

impl<'de> Deserialize<'de> for ToolArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self::from(text),
            Value::Null => Self::default(),
            value => Self::from(value),
        })
    }
}

/// Returns whether JSON defines this character as insignificant whitespace.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns whether `text`, which is JSON, equals `compact` except for whitespace between tokens.
fn is_equal_except_space(text: &str, compact: &str) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    let mut significant = text.bytes().filter(|&byte| {
        if !in_string {
            in_string = byte == b'"';
            return !is_space(byte);
        }
        if escaped {
            escaped = false;
        } else {
            escaped = byte == b'\\';
            in_string = byte != b'"';
        }
        true
    });
    compact.bytes().all(|byte| significant.next() == Some(byte)) && significant.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> String {
        serde_json::to_string(&ToolArguments::from(text)).unwrap()
    }

    #[test]
    fn values_are_stored_as_values_when_nothing_is_lost() {
        for (text, form) in [
            ("", "{}"),
            (" \n", "{}"),
            ("{ \"a b\" : [1, 2.5, null] }", r#"{"a b":[1,2.5,null]}"#),
            (r#"{"q":"say \"hi\" \\"}"#, r#"{"q":"say \"hi\" \\"}"#),
            ("[1]", "[1]"),
            ("42.0", "42.0"),
        ] {
            assert_eq!(stored(text), form, "{text}");
        }
    }

    #[test]
    fn text_is_stored_where_a_value_would_lose_content() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1e2}"#,
            r#"{"a":123456789012345678901234567890}"#,
            r#"{"a":"\u0041"}"#,
            "null",
            r#""text""#,
            r#"{"city":"#,
            "get_weather(city='Paris')",
            deep.as_str(),
        ] {
            let form = stored(text);
            assert!(form.starts_with('"'), "{text} is stored as {form}");
            assert_eq!(serde_json::from_str::<ToolArguments>(&form).unwrap().text(), text);
        }
    }

    #[test]
    fn a_text_that_grows_is_checked_again() {
        let mut args = ToolArguments::from("");
        for (piece, is_json) in [("", true), ("{", false), ("}", true), ("]", false)] {
            args.push_str(piece);
            assert_eq!((args.is_json(), args.clone().is_json()), (is_json, is_json), "{}", args.text());
        }
        assert!(ToolArguments::from(serde_json::json!({"a": 1})).is_json());
    }

    #[test]
    fn arguments_are_json_if_they_have_a_value() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for text in [r#"{"a":"\ud800"}"#, r#"{"a":1e999}"#, &deep] {
            let args = ToolArguments::from(text);
            assert_eq!((args.is_json(), args.value()), (false, None), "{text}");
        }
        let deep = (0..200).fold(Value::Null, |inner, _| serde_json::json!([inner]));
        assert!(!ToolArguments::from(deep).is_json());
    }

    #[test]
    fn absent_arguments_read_as_none() {
        let call: ToolCall = serde_json::from_str(r#"{"id":"1","name":"now"}"#).unwrap();
        assert_eq!(call.args, ToolArguments::default());
        assert_eq!(serde_json::from_str::<ToolArguments>("null").unwrap().text(), "{}");
        assert_eq!(ToolArguments::default().value(), Some(serde_json::json!({})));
    }
}
