//! Between provider JSON and parts, as all protocols need it.

#![cfg_attr(
    not(all(feature = "anthropic", feature = "gemini", feature = "openai")),
    allow(dead_code, reason = "not every protocol needs all of it")
)]

use serde_json::{Map, Value};

use crate::message::{Blob, Media, MediaSource, Part, ProviderData, Resource, ResourceBody, ResourceLink};

pub(super) type Object = Map<String, Value>;

/// Removes a string field; a field that is no string stays.
pub(super) fn take_text(object: &mut Object, key: &str) -> Option<String> {
    match object.get_mut(key) {
        Some(Value::String(text)) => {
            let text = std::mem::take(text);
            object.shift_remove(key);
            Some(text)
        }
        _ => None,
    }
}

/// A string field.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// A string field that is not empty.
pub(super) fn some_text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    text(value, key).filter(|text| !text.is_empty())
}

/// What a request is made again from, beyond the neutral words; what a reply is answered with. In a request also
/// nothing is something: it says that the part stood in a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Reply,
    Request,
}

/// The part with what is left of the object it was read from.
pub(super) fn with_rest(part: Part, provider: &str, rest: Object, source: Source) -> Part {
    if rest.is_empty() && source == Source::Reply {
        part
    } else {
        part.with_provider_data(ProviderData::new(provider, rest))
    }
}

/// Adds what a provider gave with a part to what goes back to it.
pub(super) fn add_rest(object: &mut Object, rest: Option<&Value>) {
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

/// Text that a part comes to for a model which takes nothing but text.
pub(super) fn resource_text(resource: &Resource) -> Option<String> {
    match &resource.body {
        ResourceBody::Text(text) => Some(text.clone()),
        ResourceBody::Data(_) => None,
    }
}

/// A link, in words.
pub(super) fn link_text(link: &ResourceLink) -> String {
    match link.title.as_deref().or(link.name.as_deref()) {
        Some(name) => format!("[{name}]({})", link.uri),
        None => link.uri.clone(),
    }
}

/// `data:image/png;base64,…` of media in memory, the URL of others; none for a file id.
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

/// Media from a URL; one with the data in it becomes the data.
pub(super) fn media_from_url(url: &str) -> Media {
    let data = url.strip_prefix("data:").and_then(|rest| {
        let (mime, data) = rest.split_once(";base64,")?;
        Some(Media::data(Blob::from_base64(data).ok()?, mime))
    });
    data.unwrap_or_else(|| Media::url(url))
}

/// A body with what the caller added for this provider: its keys replace ours. Null removes one; where there is none it is
/// sent.
pub(super) fn add_options(body: &mut Object, options: Option<&Value>) {
    let Some(options) = options.and_then(Value::as_object) else { return };
    for (key, value) in options {
        if !(value.is_null() && body.shift_remove(key).is_some()) {
            body.insert(key.clone(), value.clone());
        }
    }
}

/// What must be said beside `encoded` to get `given` again, key by key. What holds the messages is never said so: they are
/// neutral or lost.
pub(super) fn options_for(given: &Object, encoded: &Object, messages: &str) -> Option<Value> {
    let mut options = Object::new();
    for (key, value) in given {
        if key != messages && encoded.get(key) != Some(value) {
            options.insert(key.clone(), value.clone());
        }
    }
    for key in encoded.keys().filter(|key| !given.contains_key(*key)) {
        options.insert(key.clone(), Value::Null);
    }
    (!options.is_empty()).then_some(Value::Object(options))
}

/// Like [`add_options`], but objects are merged key by key, at every depth.
pub(super) fn merge_options(body: &mut Object, options: Option<&Value>) {
    let Some(options) = options.and_then(Value::as_object) else { return };
    for (key, value) in options {
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
}

/// Like [`options_for`], for [`merge_options`].
pub(super) fn merge_options_for(given: &Object, encoded: &Object, messages: &str) -> Option<Value> {
    let mut options = Object::new();
    for (key, value) in given.iter().filter(|(key, _)| *key != messages) {
        match (encoded.get(key), value) {
            (Some(known), value) if known == value => {}
            (Some(Value::Object(known)), Value::Object(inner)) => {
                options.extend(merge_options_for(inner, known, "").map(|inner| (key.clone(), inner)));
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

/// The arguments of a call as the object that a protocol wants. Text that is none goes back as the model wrote it,
/// under a name that says so.
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
    fn options_say_what_differs_and_nothing_of_messages() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let given = object(json!({"a": 1, "b": {"c": 2}, "messages": [1]}));
        let encoded = object(json!({"a": 1, "b": 3, "d": 4, "messages": []}));
        let options = options_for(&given, &encoded, "messages").unwrap();
        assert_eq!(options, json!({"b": {"c": 2}, "d": null}));
        let mut again = encoded;
        add_options(&mut again, Some(&options));
        assert_eq!(Value::Object(again), json!({"a": 1, "b": {"c": 2}, "messages": []}));
    }

    #[test]
    fn data_urls_are_read_and_written() {
        let media = media_from_url("data:image/png;base64,AQI=");
        assert_eq!(media, Media::data([1, 2].as_slice(), "image/png"));
        assert_eq!(data_url(&media, "x/y").unwrap(), "data:image/png;base64,AQI=");
        assert_eq!(media_from_url("data:text/plain,hi"), Media::url("data:text/plain,hi"));
    }
}
