//! Stores arbitrary JSON values inside messages and session records.
//!
//! `serde_json` reads at most 128 levels. A session record with a deep value in it could exceed this limit and then not be read. Deep
//! values are therefore stored as text: `{"$json": "…"}`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Maximum number of levels of a value that is stored directly. 64 levels remain for the JSON around it.
const MAX_DEPTH: usize = 64;

const ESCAPE: &str = "$json";

pub(crate) fn is_deep(value: &Value) -> bool {
    fn deeper_than(value: &Value, levels: usize) -> bool {
        match value {
            Value::Array(items) => {
                levels == 0 || items.iter().any(|item| deeper_than(item, levels.saturating_sub(1)))
            }
            Value::Object(map) => {
                levels == 0 || map.values().any(|item| deeper_than(item, levels.saturating_sub(1)))
            }
            _ => false,
        }
    }
    deeper_than(value, MAX_DEPTH)
}

pub(crate) fn serialize<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    // An object that looks like an escaped value is escaped, too, so that reading is the exact inverse.
    if !is_deep(value) && escaped(value).is_none() {
        return value.serialize(serializer);
    }
    let text = serde_json::to_string(value).map_err(serde::ser::Error::custom)?;
    Map::from_iter([(ESCAPE.to_owned(), Value::String(text))]).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let value = Value::deserialize(deserializer)?;
    // If the text under `$json` cannot be parsed, the object is kept unchanged.
    Ok(match escaped(&value).map(serde_json::from_str) {
        Some(Ok(inner)) => inner,
        _ => value,
    })
}

fn escaped(value: &Value) -> Option<&str> {
    let map = value.as_object()?;
    (map.len() == 1).then(|| map.get(ESCAPE))??.as_str()
}

pub(crate) mod option {
    use std::borrow::Borrow;

    use super::{Deserializer, Serializer, Value};

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(crate) fn serialize<V: Borrow<Value>, S: Serializer>(
        value: &Option<V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value.borrow(), serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads null as a value, too. Only an absent field is `None`.
    pub(crate) fn deserialize<'de, V: From<Value>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<V>, D::Error> {
        super::deserialize(deserializer).map(|value| Some(value.into()))
    }
}

pub(crate) mod map {
    use super::{Deserializer, Map, Serialize, Serializer, Value};

    pub(crate) fn serialize<S: Serializer>(
        map: &Map<String, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if map.len() != 1 && !map.values().any(super::is_deep) {
            return map.serialize(serializer);
        }
        super::serialize(&Value::Object(map.clone()), serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Map<String, Value>, D::Error> {
        match super::deserialize(deserializer)? {
            Value::Object(map) => Ok(map),
            Value::Null => Ok(Map::new()),
            other => Err(serde::de::Error::custom(format_args!("an object was expected, found {other}"))),
        }
    }
}
