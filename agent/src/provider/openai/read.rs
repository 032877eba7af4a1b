//! Parses message content and tool choices of recorded requests, for both protocols of OpenAI.

use serde_json::{Map, Value};

use crate::message::{Part, ProviderData};
use crate::model::ToolChoice;
use crate::provider::parts::JsonObject;

/// Takes the content out of a message's fields. `null` and an empty list stay in the fields, so that they are written back unchanged.
pub(super) fn take_content(fields: &mut JsonObject, key: &str) -> Option<Value> {
    let has_content = match fields.get(key) {
        Some(Value::Null) => false,
        Some(Value::Array(parts)) => !parts.is_empty(),
        content => content.is_some(),
    };
    if has_content { fields.shift_remove(key) } else { None }
}

/// Reads content as parts. An item stays unread, as an opaque part, if `write` would change it.
pub(super) fn read_content(
    content: Option<Value>,
    provider: &str,
    read: impl Fn(&Value) -> Option<Part>,
    write: impl Fn(&Part) -> Option<Value>,
) -> Vec<Part> {
    let part = |value: Value| match read(&value) {
        Some(part) if write(&part).as_ref() == Some(&value) => part,
        _ => Part::opaque(provider, value),
    };
    match content {
        Some(Value::String(text)) => vec![Part::text(text)],
        Some(Value::Array(parts)) => parts.into_iter().map(part).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn rest_data(provider: &str, fields: JsonObject) -> Option<ProviderData> {
    (!fields.is_empty())
        .then(|| ProviderData::new(provider, Map::from_iter([("message".to_owned(), fields.into())])))
}

/// Reads a tool choice. `named` returns the tool's name if the value chooses one tool.
pub(super) fn read_tool_choice<'v>(
    choice: Option<&'v Value>,
    named: impl Fn(&'v Value) -> Option<&'v str>,
) -> ToolChoice {
    match choice {
        Some(Value::String(word)) if word == "none" => ToolChoice::None,
        Some(Value::String(word)) if word == "required" => ToolChoice::Required,
        Some(choice) => named(choice).map_or(ToolChoice::Auto, |name| ToolChoice::Tool(name.to_owned())),
        None => ToolChoice::Auto,
    }
}
