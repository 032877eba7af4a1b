//! The typed pass: a serde `Deserializer` in which the plan decides what a value may be.
//!
//! The plan node, and not the request of the `Deserialize` impl, decides what a scalar may be. So coercion also happens where serde
//! buffers (flatten, untagged, tags). The inner deserializer is always `&mut serde_json::Deserializer<StrRead>`: with a second type of
//! deserializer, a build in release mode would take several times as long.
//!
//! The errors of this pass only say that the arguments are refused; [`judge`](super::judge) determines why.

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

/// Maximum number of nested containers, as in `serde_json`. The count of `serde_json` restarts when a subtree is read again, so positions
/// count their depth, too.
const MAX_DEPTH: u32 = 127;

pub(crate) struct PlanDe<'c, D> {
    pub(crate) de: D,
    pub(crate) at: &'c ValuePosition<'c>,
}

/// A seed that reads its value through a [`PlanDe`].
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

/// The kind of value that the `Deserialize` impl asked for, as far as reading depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Any,
    Ignored,
    Enum,
    Signed128,
    Unsigned128,
}
