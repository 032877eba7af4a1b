//! A fast path for the most frequent events of streams: small pieces of text, thinking or arguments. It reads an event into a type that
//! borrows from the event, without building a [`Value`](serde_json::Value).
//!
//! Such a type refuses an event with unknown fields. The decoder then reads the event as a `Value`, so nothing is lost. The type does not
//! skip unknown fields, because `serde_json` checks skipped values less strictly than values that it reads.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::sse::SseEvent;

/// A text, borrowed from the event if it has no escapes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

/// A structure that is read only from a JSON object. The derived `Deserialize` of a structure also accepts a list.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// The type of a field that must be null or absent.
pub(super) type Nothing = ();

pub(super) fn has_text(text: Option<&Text<'_>>) -> bool {
    text.is_some_and(|text| !text.as_str().is_empty())
}

/// Reads an event as `T`. If this returns `None`, the caller has to read the event as a `Value`.
pub(super) fn read<'a, T: Deserialize<'a>>(event: &SseEvent<'a>) -> Option<T> {
    if event.is_lossy || event.event == "error" || generalizes() {
        return None;
    }
    serde_json::from_str::<Object<T>>(event.data).ok().map(|object| object.0)
}

/// Returns whether a [`RawValue`](serde_json::value::RawValue) with this text certainly parses later. In a raw value, `serde_json` does
/// not check the depth, the size of numbers, or all escapes.
pub(super) fn is_simple_json(text: &str) -> bool {
    const MAX_DEPTH: usize = 8;
    const MAX_DIGITS: usize = 15;
    let bytes = text.as_bytes();
    if memchr::memchr(b'\\', bytes).is_some() {
        return false;
    }
    let (mut depth, mut begin, mut in_text) = (0_usize, 0, false);
    for end in memchr::memchr_iter(b'"', bytes).chain([bytes.len()]) {
        let mut digits = 0;
        // The text has no escaped quotes, so every second piece between two quotes is the content of a string.
        for byte in bytes.get(begin..end).filter(|_| !in_text).unwrap_or_default() {
            match byte {
                b'0'..=b'9' => {
                    digits += 1;
                    if digits > MAX_DIGITS {
                        return false;
                    }
                    continue;
                }
                b'{' | b'[' => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return false;
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'-' | b'+' | b'.' | b'E' => return false,
                b'e' if digits > 0 => return false,
                _ => {}
            }
            digits = 0;
        }
        (begin, in_text) = (end + 1, !in_text);
    }
    true
}

#[cfg(test)]
thread_local! {
    /// Whether all events are read as `Value`. Tests set this to compare both ways of reading an event.
    pub(super) static GENERAL_ONLY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn generalizes() -> bool {
    #[cfg(test)]
    return GENERAL_ONLY.get();
    #[cfg(not(test))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_json_has_few_levels_small_whole_numbers_and_no_escapes() {
        for simple in [
            "{}",
            r#"{"a":[1,22,true,null],"b":{"1e5 -1.5":"[[[[[[[[[["}}"#,
            r#"{"a":123456789012345,"b":123456789012345}"#,
            "[[[[[[[[1]]]]]]]]",
        ] {
            assert!(is_simple_json(simple), "{simple}");
        }
        for other in [
            r#"{"a":"\n"}"#,
            r#"{"a":-1}"#,
            r#"{"a":1.5}"#,
            r#"{"a":1e5}"#,
            r#"{"a":1E5}"#,
            r#"{"a":1234567890123456}"#,
            "[[[[[[[[[1]]]]]]]]]",
        ] {
            assert!(!is_simple_json(other), "{other}");
        }
    }
}
