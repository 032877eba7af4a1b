//! Conversions between the JSON of providers and [`Part`]s, for all protocols.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use serde_json::{Map, Value};

use crate::message::{
    Content, Cost, Media, MediaSource, Message, MessageList, Part, ProviderData, Resource, ResourceLink,
};

pub(super) type JsonObject = Map<String, Value>;

/// The text of the user message that is sent before a conversation that begins with the assistant. Some protocols require it.
pub(super) const OPENING: &str = "[The conversation shown here begins with the assistant.]";

/// Creates an object. Unlike `json!`, moves the values instead of copying them, because schemas, arguments and encoded media are long.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> JsonObject {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

pub(super) fn take_text(object: &mut JsonObject, key: &str) -> Option<String> {
    match object.get_mut(key) {
        Some(Value::String(text)) => {
            let text = std::mem::take(text);
            object.shift_remove(key);
            Some(text)
        }
        _ => None,
    }
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

pub(super) fn some_text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    text(value, key).filter(|text| !text.is_empty())
}

/// Parses a number of tokens. Some servers write the number as a float, or as a text.
pub(super) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => {
            number.as_u64().or_else(|| number.to_string().strip_suffix(".0")?.parse().ok())
        }
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

pub(super) fn count_at(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value, |value, key| value.get(key)).and_then(count)
}

/// Returns the cost that a server reports with its usage. `cost` is a number of dollars (`OpenRouter`), or an object with the number of
/// dollars in `total_cost` (Perplexity). `cost_in_usd_ticks` (xAI) is in units of a ten-billionth of a dollar.
pub(super) fn cost(usage: &Value) -> Option<Cost> {
    const TICKS: f64 = 1e10;
    let number = |value: Option<&Value>| value?.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
    let given = usage.get("cost");
    let total = number(given)
        .or_else(|| number(given?.get("total_cost")))
        .or_else(|| Some(number(usage.get("cost_in_usd_ticks"))? / TICKS))?;
    Some(Cost { total, ..Cost::default() })
}

/// The origin of parsed JSON. A part of a request that was not a plain string gets provider data, even if the data is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonSource {
    Reply,
    Request,
}

/// Adds the unread fields to a part, as provider data. Without unread fields, only a part of a request gets provider data.
pub(super) fn with_rest(part: Part, provider: &str, rest: JsonObject, source: JsonSource) -> Part {
    if rest.is_empty() && source == JsonSource::Reply {
        part
    } else {
        part.with_provider_data(ProviderData::new(provider, rest))
    }
}

pub(super) fn add_rest(object: &mut JsonObject, rest: Option<&Value>) {
    let Some(rest) = rest.and_then(Value::as_object) else { return };
    for (key, value) in rest {
        match (object.get_mut(key), value) {
            (Some(Value::Object(inner)), Value::Object(_)) => add_rest(inner, Some(value)),
            _ => {
                object.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Merges a piece into an object, at every depth. The texts of the fields `joined` are appended.
pub(super) fn merge_pieces(known: &mut JsonObject, more: &JsonObject, joined: &[&str]) {
    for (key, value) in more.iter().filter(|(_, value)| !value.is_null() && *value != "") {
        match (known.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if joined.contains(&key.as_str()) => {
                text.push_str(more);
            }
            (Some(Value::Object(known)), Value::Object(more)) => merge_pieces(known, more, joined),
            _ => {
                known.insert(key.clone(), value.clone());
            }
        }
    }
}

const FIRST: &str = "first";

/// Marks a request that begins with the assistant, so that the encoder does not add [`OPENING`].
pub(super) fn mark_assistant_first(messages: &mut [Message], provider: &str) {
    if let Some(Message::Assistant(reply)) = messages.first_mut() {
        let data = reply
            .provider_data
            .get_or_insert_with(|| Box::new(ProviderData::new(provider, JsonObject::new())));
        if let Value::Object(data) = &mut data.data {
            data.insert(FIRST.to_owned(), true.into());
        }
    }
}

pub(super) fn is_assistant_first(messages: &MessageList, provider: &str) -> bool {
    let reply = messages.first().and_then(|message| message.as_assistant());
    let data = reply.and_then(|reply| own_data(provider, reply.provider_data.as_deref()));
    data.is_some_and(|data| data.get(FIRST).is_some())
}

/// Sets the protocol in all provider data of messages from a request. Provider data with a protocol is sent only over this protocol. Also
/// sets the provider, the protocol and the model of each reply.
pub(super) fn name_protocol(messages: &mut [Message], provider: &str, api: &str, model: &str) {
    fn data(data: &mut Option<Box<ProviderData>>, api: &str) {
        if let Some(data) = data {
            data.api = Some(api.to_owned());
        }
    }
    let parts = |parts: &mut [Part]| {
        for part in parts {
            data(&mut part.provider_data, api);
            if let Content::Opaque(opaque) = &mut part.content {
                opaque.api = Some(api.to_owned());
            }
        }
    };
    for message in messages {
        match message {
            Message::User(user) => {
                parts(&mut user.content);
                data(&mut user.provider_data, api);
            }
            Message::Assistant(reply) => {
                parts(&mut reply.content);
                data(&mut reply.provider_data, api);
                (reply.provider, reply.api, reply.model) =
                    (provider.to_owned(), api.to_owned(), model.to_owned());
            }
            Message::ToolResult(result) => {
                parts(&mut result.content);
                data(&mut result.provider_data, api);
            }
            Message::Custom(custom) => {
                parts(custom.for_model.as_deref_mut().unwrap_or_default());
                data(&mut custom.provider_data, api);
            }
            Message::Unknown(_) => {}
        }
    }
}

pub(super) fn own_data<'d>(provider: &str, data: Option<&'d ProviderData>) -> Option<&'d Value> {
    data.filter(|data| data.provider == provider).map(|data| &data.data)
}

pub(super) fn resource_text(resource: &Resource) -> Option<String> {
    resource.as_text().map(str::to_owned)
}

pub(super) fn link_text(link: &ResourceLink) -> String {
    match link.title.as_deref().or(link.name.as_deref()) {
        Some(name) => format!("[{name}]({})", link.uri),
        None => link.uri.clone(),
    }
}

/// Returns `data:image/png;base64,…` for media in memory, the URL for other media, and `None` for a file id.
pub(super) fn data_url(media: &Media, default_mime: &str) -> Option<String> {
    match &media.source {
        MediaSource::Data(bytes) => {
            let mime = media.mime_type.as_deref().unwrap_or(default_mime);
            Some(format!("data:{mime};base64,{}", bytes.to_base64()))
        }
        MediaSource::Url(url) => Some(url.clone()),
        MediaSource::FileId(_) => None,
    }
}

pub(super) fn media_from_url(url: &str) -> Media {
    let data = url.strip_prefix("data:").and_then(|rest| {
        let (mime, data) = rest.split_once(";base64,")?;
        Media::from_base64(data, mime).ok()
    });
    data.unwrap_or_else(|| Media::url(url))
}

/// The provider option that lists the keys whose value in the request body is null.
const NULLS: &str = "$null";

/// Adds the caller's options for this provider to a request body. An option replaces the field of the same name. A null option removes the
/// field. If the body lacks the field, the null is sent. A field that `$null` lists is always sent as null.
pub(super) fn add_options(body: &mut JsonObject, options: Option<&Value>) {
    let Some(options) = options.and_then(Value::as_object) else { return };
    for (key, value) in options.iter().filter(|(key, _)| *key != NULLS) {
        if !(value.is_null() && body.shift_remove(key).is_some()) {
            body.insert(key.clone(), value.clone());
        }
    }
    set_nulls(body, options);
}

pub(super) fn is_null(options: &Value, key: &str) -> bool {
    options.get(NULLS).and_then(Value::as_array).is_some_and(|nulls| nulls.iter().any(|null| null == key))
}

fn set_nulls(body: &mut JsonObject, options: &JsonObject) {
    let nulls = options.get(NULLS).and_then(Value::as_array).into_iter().flatten();
    for key in nulls.filter_map(Value::as_str) {
        body.insert(key.to_owned(), Value::Null);
    }
}

/// Adds a key to `$null`, the list of keys that are sent as null.
fn record_null(options: &mut JsonObject, key: &str) {
    match options.get_mut(NULLS) {
        Some(Value::Array(nulls)) => nulls.push(key.into()),
        _ => {
            options.insert(NULLS.to_owned(), Value::Array(vec![key.into()]));
        }
    }
}

/// Returns the options with which [`add_options`] turns `encoded` into `given`, or `None` if no options are needed. `messages` is the key
/// of the list of messages, for example `contents`. This list is not compared, because the request keeps it as [`Message`]s.
pub(super) fn options_for(given: &JsonObject, encoded: &JsonObject, messages: &str) -> Option<Value> {
    let mut options = JsonObject::new();
    for (key, value) in given {
        match encoded.get(key) {
            Some(known) if known == value => {}
            Some(_) if value.is_null() => record_null(&mut options, key),
            _ if key == messages => {}
            _ => {
                options.insert(key.clone(), value.clone());
            }
        }
    }
    for key in encoded.keys().filter(|key| !given.contains_key(*key)) {
        options.insert(key.clone(), Value::Null);
    }
    (!options.is_empty()).then_some(Value::Object(options))
}

/// Like [`add_options`], but objects are merged key by key, at every depth.
pub(super) fn merge_options(body: &mut JsonObject, options: Option<&Value>) {
    let Some(options) = options.and_then(Value::as_object) else { return };
    for (key, value) in options.iter().filter(|(key, _)| *key != NULLS) {
        match (body.get_mut(key), value) {
            (Some(_), Value::Null) => {
                body.shift_remove(key);
            }
            (Some(Value::Object(inner)), Value::Object(_)) => merge_options(inner, Some(value)),
            _ => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
    set_nulls(body, options);
}

pub(super) fn merge_options_for(given: &JsonObject, encoded: &JsonObject, messages: &str) -> Option<Value> {
    differences(given, encoded, Some(messages))
}

fn differences(given: &JsonObject, encoded: &JsonObject, messages: Option<&str>) -> Option<Value> {
    let mut options = JsonObject::new();
    for (key, value) in given.iter().filter(|(key, _)| Some(key.as_str()) != messages) {
        match (encoded.get(key), value) {
            (Some(known), value) if known == value => {}
            (Some(_), Value::Null) => record_null(&mut options, key),
            (Some(Value::Object(known)), Value::Object(inner)) => {
                options.extend(differences(inner, known, None).map(|inner| (key.clone(), inner)));
            }
            _ => {
                options.insert(key.clone(), value.clone());
            }
        }
    }
    for key in encoded.keys().filter(|key| !given.contains_key(*key)) {
        options.insert(key.clone(), Value::Null);
    }
    (!options.is_empty()).then_some(Value::Object(options))
}

/// Returns the arguments of a call as an object, which some protocols require. Other arguments are sent as text under `invalid_json`.
pub(super) fn arguments_object(arguments: &crate::message::ToolArguments) -> Value {
    match arguments.value() {
        Some(value @ Value::Object(_)) => value,
        _ => serde_json::json!({ "invalid_json": arguments.text() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_contain_the_differences_without_messages() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let given = object(json!({"a": 1, "b": {"c": 2}, "e": null, "f": null, "messages": [1]}));
        let encoded = object(json!({"a": 1, "b": 3, "d": 4, "e": 5, "messages": []}));
        let options = options_for(&given, &encoded, "messages").unwrap();
        assert_eq!(options, json!({"b": {"c": 2}, "$null": ["e"], "f": null, "d": null}));
        let mut again = encoded.clone();
        add_options(&mut again, Some(&options));
        assert_eq!(
            Value::Object(again),
            json!({"a": 1, "b": {"c": 2}, "e": null, "f": null, "messages": []})
        );

        let (given, encoded) = (json!({"x": given, "y": {"": 1}}), json!({"x": encoded, "y": {}}));
        let options = merge_options_for(&object(given.clone()), &object(encoded.clone()), "").unwrap();
        let mut again = object(encoded);
        merge_options(&mut again, Some(&options));
        assert_eq!(Value::Object(again), given);
    }

    #[test]
    fn data_urls_are_read_and_written() {
        let media = media_from_url("data:image/png;base64,AQI=");
        assert_eq!(media, Media::data([1, 2].as_slice(), "image/png"));
        assert_eq!(data_url(&media, "x/y").unwrap(), "data:image/png;base64,AQI=");
        assert_eq!(media_from_url("data:text/plain,hi"), Media::url("data:text/plain,hi"));
    }
}
