//! The bodies of requests: JSON text in segments that the requests of one conversation share.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::parts::{JsonObject, add_options, is_null, merge_options};
use crate::message::kept::TextSegment;
use crate::model::{ModelError, ModelErrorKind};

/// The body of a request. Requests of one conversation share the segments that contain the messages sent before.
///
/// `Debug` shows only the length of the text, because arguments may contain secrets.
#[derive(Clone)]
pub(super) struct RequestBody {
    segments: Vec<TextSegment>,
}

impl RequestBody {
    pub(super) fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.as_str().len()).sum()
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(self.len());
        self.segments.iter().for_each(|segment| text.push_str(segment.as_str()));
        text
    }

    /// Returns the parsed text, to inspect it, or null if the text is not JSON.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_default()
    }
}

impl From<Value> for RequestBody {
    fn from(value: Value) -> Self {
        Self { segments: vec![value.to_string().into()] }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestBody({} bytes)", self.len())
    }
}

impl PartialEq for RequestBody {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.text() == other.text()
    }
}

/// The fields of a body while it is encoded. Long lists are text in segments; all other fields are values.
#[derive(Default)]
pub(super) struct BodyFields {
    fields: JsonObject,
    /// The lists, by their keys. In `fields`, a null marks the position of each list.
    lists: Vec<(&'static str, Vec<TextSegment>)>,
}

impl BodyFields {
    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.fields.insert(key.to_owned(), value);
    }

    /// Sets a list, from the text between its brackets.
    pub(super) fn set_list(&mut self, key: &'static str, items: Vec<TextSegment>) {
        self.fields.insert(key.to_owned(), Value::Null);
        self.lists.push((key, items));
    }

    /// Adds values to a list that [`set`](Self::set) or the options have set, unless the list contains them.
    pub(super) fn extend_list(&mut self, key: &str, texts: &[&str]) {
        let Some(Value::Array(list)) = self.fields.get_mut(key) else { return };
        for text in texts {
            if !list.iter().any(|known| known == text) {
                list.push((*text).into());
            }
        }
    }

    pub(super) fn add_options(&mut self, options: Option<&Value>) -> Result<(), ModelError> {
        self.remove_replaced(options)?;
        add_options(&mut self.fields, options);
        Ok(())
    }

    pub(super) fn merge_options(&mut self, options: Option<&Value>) -> Result<(), ModelError> {
        self.remove_replaced(options)?;
        merge_options(&mut self.fields, options);
        Ok(())
    }

    fn remove_replaced(&mut self, options: Option<&Value>) -> Result<(), ModelError> {
        let Some(options) = options else { return Ok(()) };
        if !options.is_object() {
            let text = "the provider options are not an object";
            return Err(ModelError::new(ModelErrorKind::InvalidRequest, text));
        }
        self.lists.retain(|(key, _)| options.get(*key).is_none() && !is_null(options, key));
        Ok(())
    }

    pub(super) fn into_body(self) -> RequestBody {
        let (mut segments, mut text) = (Vec::new(), String::from("{"));
        for (key, value) in &self.fields {
            if text.len() > 1 || !segments.is_empty() {
                text.push(',');
            }
            write_text(&mut text, key);
            text.push(':');
            match self.lists.iter().find(|(list, _)| list == key) {
                Some((_, items)) => {
                    text.push('[');
                    segments.push(std::mem::take(&mut text).into());
                    segments.extend(items.iter().cloned());
                    text.push(']');
                }
                None => write_json(&mut text, value),
            }
        }
        text.push('}');
        segments.push(text.into());
        RequestBody { segments }
    }
}

pub(super) fn write_json(out: &mut String, value: &Value) {
    // Serializing fails only for maps whose keys are not texts, which a `Value` cannot contain.
    out.push_str(&serde_json::to_string(value).unwrap_or_default());
}

/// Writes a text as a JSON string, as `serde_json` does. Most of a request consists of texts, so the characters up to the next escape are
/// copied at once.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    while let Some(at) = find_escaped(rest.as_bytes()) {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        let byte = tail.as_bytes().first().copied().unwrap_or_default();
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => {
                let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
                out.push_str("\\u00");
                out.extend([digit(byte >> 4), digit(byte & 15)]);
            }
        }
        rest = tail.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
}

fn find_escaped(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 16;
    let is_escaped = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    // The closure compares all bytes of a block without stopping early, so that the compiler can vectorize the comparison.
    let has_none = |block: &&[u8]| !block.iter().fold(false, |found, byte| found | is_escaped(byte));
    let plain = bytes.chunks_exact(BLOCK).take_while(has_none).count() * BLOCK;
    let rest = bytes.get(plain..).unwrap_or_default();
    rest.iter().position(is_escaped).map(|at| plain + at)
}

pub(super) fn write_lines(out: &mut String, prefix: &str, lines: &[&str]) {
    match lines {
        [line] if prefix.is_empty() => write_text(out, line),
        lines => write_text(out, &(prefix.to_owned() + &lines.join("\n"))),
    }
}

/// Writes the items of a list of tools, without the brackets of the list.
pub(super) fn tool_list(texts: &[Arc<str>], values: &[Value]) -> Vec<TextSegment> {
    let length: usize = texts.iter().map(|text| text.len() + 1).sum();
    let mut list = String::with_capacity(length);
    for text in texts {
        separate(&mut list);
        list.push_str(text);
    }
    for value in values {
        separate(&mut list);
        write_json(&mut list, value);
    }
    vec![list.into()]
}

fn separate(list: &mut String) {
    if !list.is_empty() {
        list.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_written_as_serde_json_writes_them() {
        let every: String = (0..0x800).filter_map(char::from_u32).chain(['\u{2028}', '\u{1f980}']).collect();
        for length in 0..40 {
            let plain = "x".repeat(length);
            for text in [&plain, &format!("{plain}\"\\\n{plain}"), &format!("{plain}{every}{plain}")] {
                let mut written = String::new();
                write_text(&mut written, text);
                assert_eq!(written, serde_json::to_string(text).unwrap());
            }
        }
    }

    #[test]
    fn options_replace_lists_as_they_replace_values() {
        for options in [
            json!({}),
            json!({"list": null}),
            json!({"list": [3], "x": 1}),
            json!({"list": {"a": 1}}),
            json!({"$null": ["list"]}),
            json!({"list": 1, "$null": ["list"]}),
            json!({"other": {"b": 2}, "list": null, "$null": ["other"]}),
        ] {
            let mut whole = JsonObject::new();
            let mut fields = BodyFields::default();
            for (key, value) in [("first", json!(1)), ("other", json!({"a": "\n"}))] {
                whole.insert(key.to_owned(), value.clone());
                fields.set(key, value);
            }
            whole.insert("list".to_owned(), json!([1, {"a": 2}]));
            fields.set_list("list", vec![String::from("1,").into(), String::from(r#"{"a":2}"#).into()]);
            let mut merged = BodyFields { fields: fields.fields.clone(), lists: fields.lists.clone() };
            let mut whole_merged = whole.clone();
            add_options(&mut whole, Some(&options));
            fields.add_options(Some(&options)).unwrap();
            assert_eq!(fields.into_body().text(), Value::Object(whole).to_string(), "{options}");
            merge_options(&mut whole_merged, Some(&options));
            merged.merge_options(Some(&options)).unwrap();
            assert_eq!(merged.into_body().text(), Value::Object(whole_merged).to_string(), "{options}");
        }
        assert_eq!(BodyFields::default().into_body().text(), "{}");
        for refused in [json!("flex"), json!([1]), Value::Null] {
            let add = BodyFields::default().add_options(Some(&refused));
            let merge = BodyFields::default().merge_options(Some(&refused));
            assert!(add.is_err() && merge.is_err(), "{refused}");
        }
    }
}
