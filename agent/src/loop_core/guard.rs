//! Detects a model that repeats the same call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LoopGuard;
use crate::json_hash::{Fnv128, JsonHash};
use crate::tool::outcome::ToolOutcome;

/// A 128-bit hash of a call or an outcome. Calls are equal if they have the same tool and the same validated arguments, in any order of
/// keys.
///
/// The hash is the same on every machine. The type is packed, because an alignment of 16 bytes would add padding to each signature that a
/// run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(Rust, packed(8))]
pub(crate) struct Signature(u128);

impl Signature {
    pub(crate) fn of(tool: &str, args: &Value) -> Self {
        Self::of_hash(tool, JsonHash::of(args))
    }

    pub(crate) fn of_hash(tool: &str, args: JsonHash) -> Self {
        let mut hash = Fnv128::new();
        hash.text(tool);
        hash.bytes(&args.0.to_le_bytes());
        Self(hash.end().0)
    }

    pub(super) fn of_outcome(outcome: &ToolOutcome) -> Self {
        match outcome {
            // The texts are hashed without a copy, because results can be long.
            ToolOutcome::Completed(output) if output.content.iter().all(|part| part.as_text().is_some()) => {
                let mut hash = Fnv128::new();
                output.content.iter().filter_map(|part| part.as_text()).for_each(|text| hash.text(text));
                Self(hash.end().0)
            }
            other => {
                let mut value = serde_json::to_value(other).unwrap_or_default();
                // Results are compared as the model reads them, so metadata is removed.
                if let Some(fields) = value.as_object_mut() {
                    fields.shift_remove("metadata");
                }
                Self(JsonHash::of(&value).0)
            }
        }
    }
}

impl Serialize for Signature {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", { self.0 }))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// The counts of equal calls since the last user message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Repeats {
    seen: BTreeMap<Signature, RepeatCount>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct RepeatCount {
    /// The number of ended calls since the result last changed, including calls that did not run.
    count: u32,
    #[serde(default)]
    open: u32,
    result: Option<Signature>,
}

pub(super) enum RepeatCheck {
    Allowed,
    /// The call does not run. Contains the number of equal calls, including this one.
    Refuse(u32),
    /// The call does not run, and the run ends after the turn. Contains the number of equal calls, including this one.
    End(u32),
}

impl Repeats {
    pub(super) fn clear(&mut self) {
        self.seen.clear();
    }

    /// Registers a call that is about to run, and decides whether it may run. Equal calls that still run count, too, because one reply may
    /// contain the same call many times.
    pub(super) fn begin(&mut self, guard: LoopGuard, signature: Signature) -> RepeatCheck {
        let seen = self.seen.entry(signature).or_default();
        let number = seen.count.saturating_add(seen.open).saturating_add(1);
        if number < guard.refuse_at.min(guard.end_at) {
            seen.open = seen.open.saturating_add(1);
            return RepeatCheck::Allowed;
        }
        // A refused call counts like an ended call. Running calls do not count toward `end_at`, because their results may reset the count.
        seen.count = seen.count.saturating_add(1);
        if seen.count >= guard.end_at { RepeatCheck::End(number) } else { RepeatCheck::Refuse(number) }
    }

    /// Removes a call that [began](Self::begin) from the count of running calls, because the call will be prepared again.
    #[cfg(feature = "runtime")]
    pub(super) fn undo(&mut self, signature: Signature) {
        if let Some(seen) = self.seen.get_mut(&signature) {
            seen.open = seen.open.saturating_sub(1);
        }
    }

    /// Registers the end of a call that [began](Self::begin), with the result if the call ran. Returns the number of equal calls if this
    /// number ends the run.
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
