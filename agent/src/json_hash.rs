//! Hashes of JSON values that do not depend on the order of keys. The hash of a JSON text is computed without building a `Value`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Number, Value};

/// The hash of a JSON value, which is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonHash(pub(crate) u128);

impl JsonHash {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::null(),
            Value::Bool(truth) => Self::bool(*truth),
            Value::Number(number) => Self::number(number),
            Value::String(text) => Self::text(text),
            Value::Array(items) => {
                let mut list = ListHash::new();
                for item in items {
                    list.add(Self::of(item));
                }
                list.end()
            }
            Value::Object(entries) => {
                let mut object = ObjectHash::default();
                for (key, value) in entries {
                    object.add(key, Self::of(value));
                }
                object.end()
            }
        }
    }

    fn null() -> Self {
        Fnv128::of(b"n").end()
    }

    fn bool(truth: bool) -> Self {
        Fnv128::of(if truth { b"t" } else { b"f" }).end()
    }

    fn whole(number: i64) -> Self {
        Fnv128::of(b"#").with(&number.to_le_bytes()).end()
    }

    fn float(number: f64) -> Self {
        Fnv128::of(b"#").with(&number.to_bits().to_le_bytes()).end()
    }

    fn number(number: &Number) -> Self {
        match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Self::whole(whole),
            // As floats, neighboring integers of this size would be equal.
            (None, Some(large), _) => Fnv128::of(b"u").with(&large.to_le_bytes()).end(),
            (None, None, Some(float)) => Self::float(float),
            (None, None, None) => Fnv128::of(b"#").with_text(&number.to_string()).end(),
        }
    }

    fn text(text: &str) -> Self {
        Fnv128::of(b"s").with_text(text).end()
    }
}

/// Returns a hash that stored runs contain, so the algorithm must never change.
#[expect(clippy::cast_possible_truncation, reason = "only the lower half is returned")]
pub(crate) fn stored_hash(name: &str, value: &Value) -> u64 {
    let mut hash = Fnv128::new();
    hash.text(name);
    hash.sorted(value);
    hash.end().0 as u64
}

struct ListHash(Fnv128);

impl ListHash {
    fn new() -> Self {
        Self(Fnv128::of(b"["))
    }

    fn add(&mut self, item: JsonHash) {
        self.0.bytes(&item.0.to_le_bytes());
    }

    fn end(mut self) -> JsonHash {
        self.0.bytes(b"]");
        self.0.end()
    }
}

/// Adds up the hashes of the entries, because a sum does not depend on their order.
#[derive(Default)]
struct ObjectHash {
    sum: u128,
    count: u64,
}

impl ObjectHash {
    fn add(&mut self, key: &str, value: JsonHash) {
        let entry = Fnv128::of(b":").with_text(key).with(&value.0.to_le_bytes()).end();
        self.sum = self.sum.wrapping_add(entry.0);
        self.count += 1;
    }

    fn end(self) -> JsonHash {
        Fnv128::of(b"{").with(&self.sum.to_le_bytes()).with(&self.count.to_le_bytes()).end()
    }
}

/// A variant of 128-bit FNV-1a. It hashes eight bytes at a time, because the results of calls can be long.
pub(crate) struct Fnv128(u128);

impl Fnv128 {
    pub(crate) fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn of(bytes: &[u8]) -> Self {
        Self::new().with(bytes)
    }

    fn with(mut self, bytes: &[u8]) -> Self {
        self.bytes(bytes);
        self
    }

    fn with_text(mut self, text: &str) -> Self {
        self.text(text);
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        for word in words.chain(rest.iter().map(|byte| u64::from(*byte))) {
            self.0 = (self.0 ^ u128::from(word)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }

    /// Hashes a text with its length, so that the boundaries between texts count.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn sorted(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(true) => self.bytes(b"t"),
            Value::Bool(false) => self.bytes(b"f"),
            Value::Number(number) => {
                self.bytes(b"#");
                match (number.as_i64(), number.as_f64()) {
                    (Some(whole), _) => self.bytes(&whole.to_le_bytes()),
                    (None, Some(float)) => self.bytes(&float.to_bits().to_le_bytes()),
                    (None, None) => self.text(&number.to_string()),
                }
            }
            Value::String(text) => {
                self.bytes(b"s");
                self.text(text);
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.sorted(item);
                }
                self.bytes(b"]");
            }
            Value::Object(map) => {
                self.bytes(b"{");
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in entries {
                    self.text(key);
                    self.sorted(value);
                }
                self.bytes(b"}");
            }
        }
    }

    pub(crate) fn end(self) -> JsonHash {
        JsonHash(self.0)
    }
}

/// Computes the hash of a value while the value is read, without keeping the value. If no key is repeated, the result
/// is the hash that [`of`](JsonHash::of) returns.
impl<'de> Deserialize<'de> for JsonHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HashVisitor)
    }
}

struct HashVisitor;

/// The key under which `serde_json` keeps the digits of a number, in programs that use its feature
/// `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

impl<'de> Visitor<'de> for HashVisitor {
    type Value = JsonHash;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<JsonHash, E> {
        Ok(JsonHash::null())
    }

    fn visit_none<E: de::Error>(self) -> Result<JsonHash, E> {
        Ok(JsonHash::null())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonHash, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<JsonHash, E> {
        Ok(JsonHash::bool(truth))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<JsonHash, E> {
        Ok(JsonHash::whole(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<JsonHash, E> {
        Ok(JsonHash::number(&number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<JsonHash, E> {
        Ok(Number::from_f64(number).map_or_else(JsonHash::null, |number| JsonHash::number(&number)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<JsonHash, E> {
        Ok(JsonHash::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonHash, A::Error> {
        let mut list = ListHash::new();
        while let Some(item) = items.next_element()? {
            list.add(item);
        }
        Ok(list.end())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<JsonHash, A::Error> {
        let mut object = ObjectHash::default();
        while let Some(key) = entries.next_key_seed(KeySeed)? {
            if key == NUMBER {
                let digits: Cow<'_, str> = entries.next_value()?;
                let number: Number = digits.parse().map_err(de::Error::custom)?;
                return Ok(JsonHash::number(&number));
            }
            object.add(&key, entries.next_value()?);
        }
        Ok(object.end())
    }
}

/// A visitor that reads a key, without a copy if the key has no escapes.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 17] = [
        "null",
        "true",
        "false",
        "0",
        "-3",
        "3.0",
        "1e300",
        "18446744073709551614",
        "18446744073709551615",
        r#""text""#,
        r#""t\u0065xt, \"more\"""#,
        "[]",
        "[1, [2], 3]",
        "[1, 2, 3]",
        "{}",
        r#"{"a": 1, "b": {"c": [], "d": null}}"#,
        r#"{"a": {"b": 1, "c": [], "d": null}}"#,
    ];

    #[test]
    fn a_text_has_the_hash_of_its_value() {
        for text in TEXTS {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::from_str::<JsonHash>(text).unwrap(), JsonHash::of(&value), "{text}");
        }
    }

    #[test]
    fn other_values_have_other_hashes() {
        for (at, text) in TEXTS.iter().enumerate() {
            for other in &TEXTS[..at] {
                let hash = |text: &str| serde_json::from_str::<JsonHash>(text).unwrap();
                assert_ne!(hash(text), hash(other), "{text} and {other}");
            }
        }
        let hash = |value: Value| JsonHash::of(&value);
        assert_ne!(hash(serde_json::json!({"a": 1, "b": 2})), hash(serde_json::json!({"a": 2, "b": 1})));
        assert_ne!(hash(serde_json::json!(1)), hash(serde_json::json!(1.0)));
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let hash = |text: &str| serde_json::from_str::<JsonHash>(text).unwrap();
        assert_eq!(hash(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), hash(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#));
    }
}
