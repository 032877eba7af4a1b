//! Checks the metadata of a request. A request with metadata that the protocol cannot send is refused, so no metadata is dropped silently.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use serde_json::{Map, Value};

use crate::model::{ModelError, ModelErrorKind, ModelRequest};

/// The key of the user's id in the metadata. Every provider except Gemini has a field for the id.
const USER_ID: &str = "user_id";

/// OpenAI's limits of metadata: entries, characters of a key, and characters of a value.
///
/// Source: `metadata` in OpenAI's [reference](https://platform.openai.com/docs/api-reference/responses/create).
const MAX_TAGS: usize = 16;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;

fn invalid(text: String) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, text).with_code("unsupported_metadata")
}

pub(super) fn user_id(request: &ModelRequest) -> Result<Option<&str>, ModelError> {
    match request.metadata.get(USER_ID) {
        None => Ok(None),
        Some(Value::String(id)) => Ok(Some(id)),
        Some(_) => Err(invalid("the metadata `user_id` is not a text".to_owned())),
    }
}

pub(super) fn tags(request: &ModelRequest) -> Result<Map<String, Value>, ModelError> {
    let tags: Map<String, Value> = others(request).map(|(key, value)| (key.clone(), value.clone())).collect();
    if tags.len() > MAX_TAGS {
        return Err(invalid(format!("a request has at most {MAX_TAGS} metadata, found {}", tags.len())));
    }
    for (key, value) in &tags {
        if key.chars().count() > MAX_KEY {
            return Err(invalid(format!("the key of a metadata has at most {MAX_KEY} characters: `{key}`")));
        }
        match value {
            Value::String(text) if text.chars().count() <= MAX_VALUE => {}
            Value::String(_) => {
                return Err(invalid(format!("the metadata `{key}` has more than {MAX_VALUE} characters")));
            }
            _ => return Err(invalid(format!("the metadata `{key}` is not a text"))),
        }
    }
    Ok(tags)
}

fn others(request: &ModelRequest) -> impl Iterator<Item = (&String, &Value)> {
    request.metadata.iter().filter(|(key, _)| *key != USER_ID)
}

pub(super) fn refusal(tags: &Map<String, Value>, protocol: &str, why: &str) -> ModelError {
    let keys: Vec<String> = tags.keys().map(|key| format!("`{key}`")).collect();
    invalid(format!("{protocol} does not take the metadata {}: {why}", keys.join(", ")))
}

pub(super) fn refuse_others(request: &ModelRequest, protocol: &str) -> Result<(), ModelError> {
    let others: Map<String, Value> =
        others(request).map(|(key, value)| (key.clone(), value.clone())).collect();
    if others.is_empty() { Ok(()) } else { Err(refusal(&others, protocol, "it takes only `user_id`")) }
}

pub(super) fn refuse_all(request: &ModelRequest, protocol: &str) -> Result<(), ModelError> {
    if request.metadata.is_empty() {
        return Ok(());
    }
    Err(refusal(&request.metadata, protocol, "it takes none; Vertex AI has the provider option `labels`"))
}
