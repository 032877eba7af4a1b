//! Detects a model that repeats the same call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LoopGuard;
use crate::tool::outcome::ToolOutcome;

/// A hash that identifies equal calls: the same tool with the same validated arguments, whatever the order of their keys.
///
/// It has 128 bits and is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Signature(u128);

impl Signature {
    /// Returns the signature of a call of `tool` with these arguments.
    pub(crate) fn of(tool: &str, args: &Value) -> Self {
        let mut hash = Fnv128::new();
        hash.text(tool);
        hash.value(args);
        Self(hash.0)
    }

    /// Returns the lower half of the hash, for uses where 64 bits suffice.
    #[expect(clippy::cast_possible_truncation, reason = "only the lower half is returned")]
    pub(crate) fn short(self) -> u64 {
        self.0 as u64
    }

    /// Returns the signature of an outcome.
    pub(super) fn of_outcome(outcome: &ToolOutcome) -> Self {
        let mut hash = Fnv128::new();
        match outcome {
            // Hashed without a copy, because results can be long.
            ToolOutcome::Completed(output) if output.content.iter().all(|part| part.as_text().is_some()) => {
                output.content.iter().filter_map(|part| part.as_text()).for_each(|text| hash.text(text));
            }
            other => {
                let mut value = serde_json::to_value(other).unwrap_or_default();
                // Results are compared by what the model reads, which excludes metadata.
                if let Some(fields) = value.as_object_mut() {
                    fields.shift_remove("metadata");
                }
                hash.value(&value);
            }
        }
        Self(hash.0)
    }
}

impl Serialize for Signature {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// FNV-1a with 128 bits. Hashes eight bytes at a time, because results can be long.
struct Fnv128(u128);

impl Fnv128 {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        for word in words.chain(rest.iter().map(|byte| u64::from(*byte))) {
            self.0 = (self.0 ^ u128::from(word)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }

    /// Hashes a text with its length, so that the boundaries between texts count.
    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
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
                    self.value(item);
                }
                self.bytes(b"]");
            }
            Value::Object(map) => {
                self.bytes(b"{");
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in entries {
                    self.text(key);
                    self.value(value);
                }
                self.bytes(b"}");
            }
        }
    }
}

/// The number of times that each call was made since the last user message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Repeats {
    seen: BTreeMap<Signature, RepeatCount>,
}

/// The number of equal calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct RepeatCount {
    /// Calls that ended with the same result, or without running.
    count: u32,
    /// Calls that have begun and not ended.
    #[serde(default)]
    open: u32,
    result: Option<Signature>,
}

/// The decision of the guard on a call.
pub(super) enum RepeatCheck {
    /// The call may run.
    Allowed,
    /// The call does not run. The number counts the equal calls, including this one.
    Refuse(u32),
    /// The call does not run, and the run ends after the batch.
    End(u32),
}

impl Repeats {
    pub(super) fn clear(&mut self) {
        self.seen.clear();
    }

    /// Registers a call that is about to run. Calls that have begun count too, because one reply may make the same call many times.
    pub(super) fn begin(&mut self, guard: LoopGuard, signature: Signature) -> RepeatCheck {
        let seen = self.seen.entry(signature).or_default();
        let number = seen.count.saturating_add(seen.open).saturating_add(1);
        if number < guard.refuse_at.min(guard.end_at) {
            seen.open = seen.open.saturating_add(1);
            return RepeatCheck::Allowed;
        }
        // A call that has not ended may still have another result, so only calls that ended can end the run.
        seen.count = seen.count.saturating_add(1);
        if seen.count >= guard.end_at { RepeatCheck::End(number) } else { RepeatCheck::Refuse(number) }
    }

    /// Removes a call that [began](Self::begin), because it will begin again.
    #[cfg(feature = "runtime")]
    pub(super) fn undo(&mut self, signature: Signature) {
        if let Some(seen) = self.seen.get_mut(&signature) {
            seen.open = seen.open.saturating_sub(1);
        }
    }

    /// Registers the end of a call that [began](Self::begin), with its result if it ran. Returns the number of equal calls if it ends the
    /// run.
    pub(super) fn end(
        &mut self,
        guard: LoopGuard,
        signature: Signature,
        result: Option<Signature>,
    ) -> Option<u32> {
        let seen = self.seen.get_mut(&signature)?;
        seen.open = seen.open.saturating_sub(1);
        if let Some(result) = result
            && seen.result.replace(result).is_some_and(|last| last != result)
        {
            seen.count = 0;
        }
        seen.count = seen.count.saturating_add(1);
        Some(seen.count).filter(|count| *count >= guard.end_at)
    }
}
