//! Stores arbitrary JSON values inside messages and session records.
//!
//! `serde_json` reads at most 128 levels. A session record with a deep value in it could exceed this limit and then not be read. Deep
//! values are therefore stored as text: `{"$json": "…"}`.

use std::fmt;

use serde::de::{Error as DeserializeError, MapAccess, SeqAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Maximum number of levels of a value that is stored directly. 64 levels remain for the JSON around it.
const MAX_DEPTH: usize = 64;

/// Maximum number of levels of a value that is stored as text.
const MAX_STORED: usize = 256;

const ESCAPE: &str = "$json";

pub(crate) fn is_deep(value: &Value) -> bool {
    is_deeper(value, MAX_DEPTH)
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => {
            levels == 0 || items.iter().any(|item| is_deeper(item, levels.saturating_sub(1)))
        }
        Value::Object(map) => {
            levels == 0 || map.values().any(|item| is_deeper(item, levels.saturating_sub(1)))
        }
        _ => false,
    }
}

/// Returns the kind of a value, for errors. They do not contain the value, which may be secret and long.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

pub(crate) fn serialize<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    // An object that looks like an escaped value is escaped, too, so that reading is the exact inverse.
    if !is_deep(value) && escaped(value).is_none() {
        return value.serialize(serializer);
    }
    if is_deeper(value, MAX_STORED) {
        return Err(S::Error::custom(format_args!("a value has more than {MAX_STORED} levels")));
    }
    let text = serde_json::to_string(value).map_err(S::Error::custom)?;
    Map::from_iter([(ESCAPE.to_owned(), Value::String(text))]).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let value = Value::deserialize(deserializer)?;
    // If the text under `$json` is not JSON, `serialize` did not write it, so the object is kept unchanged.
    Ok(match escaped(&value).map(|text| read(text, MAX_STORED)) {
        Some(Ok(inner)) => inner,
        _ => value,
    })
}

/// Reads a value. If `serde_json` refuses the whole text, for example because of its depth, up to `levels` levels are read one by one.
fn read(text: &str, levels: usize) -> serde_json::Result<Value> {
    let whole = serde_json::from_str(text);
    let (Err(_), Some(levels)) = (&whole, levels.checked_sub(1)) else { return whole };
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = reader.deserialize_any(Level(levels))?;
    reader.end()?;
    Ok(value)
}

/// Reads a list or an object. The field is the number of levels of each member that may be read one by one.
struct Level(usize);

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<&RawValue>()? {
            list.push(read(item.get(), self.0).map_err(A::Error::custom)?);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, item)) = items.next_entry::<String, &RawValue>()? {
            map.insert(key, read(item.get(), self.0).map_err(A::Error::custom)?);
        }
        Ok(map.into())
    }
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
    use super::{DeserializeError as _, Deserializer, Map, Serialize, Serializer, Value, kind};

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
            other => Err(D::Error::custom(format_args!("an object was expected, found {}", kind(&other)))),
        }
    }
}
