//! Reads arguments into their type. `PlanDe` is a serde `Deserializer` that checks and coerces each value by its `PlanNode`, the compiled
//! schema of the value. The `PlanNode` decides what a scalar may be, not the method that a `Deserialize` impl calls. Therefore values that
//! serde buffers (for `flatten`, untagged and tagged enums) are coerced, too. Errors contain no reason: see [`judge`](super::judge).

mod buffered;
mod careful;
mod container;
mod context;
mod external;
mod object;
mod scalar;
mod sequence;
mod value;

pub(crate) use buffered::IsKey;
pub(crate) use context::{Context, Failure, ValueJudge, ValuePosition};

use serde::de::{DeserializeSeed, Deserializer};

/// Maximum number of nested objects and arrays, as in `serde_json`. `ValuePosition` counts the depth, too, because `serde_json` starts at
/// 0 again when an inner value is read separately.
const MAX_DEPTH: u32 = 127;

pub(crate) struct PlanDe<'c, D> {
    /// Always a `&mut serde_json::Deserializer<StrRead>`, because a second type would multiply the time of a release build.
    pub(crate) de: D,
    pub(crate) at: &'c ValuePosition<'c>,
}

struct PlanSeed<'c, S> {
    seed: S,
    at: &'c ValuePosition<'c>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for PlanSeed<'_, S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<S::Value, D::Error> {
        let PlanSeed { seed, at } = self;
        if !at.collects() {
            return seed.deserialize(PlanDe { de, at });
        }
        let is_tried = at.cx.enter(at.node);
        let out = seed.deserialize(PlanDe { de, at });
        at.cx.leave(at, is_tried, out.is_ok());
        out
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Any,
    Ignored,
    Enum,
    Signed128,
    Unsigned128,
}
