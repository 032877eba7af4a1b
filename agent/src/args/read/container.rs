//! Types that ask for an object or a list. They accept no scalar, so no code is compiled for scalars, which would be most of what
//! each of a user's structs adds to a release build (`benches/build-time.sh`).

use super::buffered::{MAX_AGAIN, is_set};
use super::context::{nested, refused};
use super::object::{ObjectNode, ObjectVisitor};
use super::sequence::SequenceVisitor;
use super::{MAX_DEPTH, PlanDe, ValuePosition};
use crate::args::plan::{ArraySpec, NodeKind, PlanNode};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    /// Reads for a type that asked for a map or a struct.
    #[inline]
    pub(super) fn read_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        match ObjectNode::of_type(at) {
            Some(object) if at.depth < MAX_DEPTH => de.deserialize_map(ObjectVisitor { visitor, at, object }),
            _ => PlanDe { de, at }.read_other_map(visitor),
        }
    }

    #[inline(never)]
    fn read_other_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (at, object, text, again) = ahead_to(self, ObjectNode::of_type)?;
        let mut de = serde_json::Deserializer::from_str(text);
        let out = de.deserialize_map(ObjectVisitor { visitor, at: &at, object });
        at.cx.again.set(again);
        out.map_err(nested)
    }

    /// Reads for a type that asked for a list or a tuple.
    #[inline]
    pub(super) fn read_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        let array = match &at.node.kind {
            NodeKind::Any => Some(&at.cx.graph.any_array),
            NodeKind::Array(array) if !array.unique || at.cx.is_silent() => Some(array),
            _ => None,
        };
        match array {
            Some(array) if at.depth < MAX_DEPTH => de.deserialize_seq(SequenceVisitor { visitor, at, array }),
            _ => PlanDe { de, at }.read_other_seq(visitor),
        }
    }

    #[inline(never)]
    fn read_other_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (at, array, text, again) = ahead_to(self, list_of_type)?;
        if array.unique && !at.cx.is_silent() && !is_set(&at, text) {
            return Err(refused("type, or repeated items"));
        }
        let mut de = serde_json::Deserializer::from_str(text);
        let out = de.deserialize_seq(SequenceVisitor { visitor, at: &at, array });
        at.cx.again.set(again);
        out.map_err(nested)
    }
}

/// Returns what a list is read along, if the node is one.
fn list_of_type<'c>(at: &ValuePosition<'c>) -> Option<&'c ArraySpec> {
    match &at.node.kind {
        NodeKind::Any => Some(&at.cx.graph.any_array),
        NodeKind::Array(array) => Some(array),
        _ => None,
    }
}

/// A value that is read again: its position along the node that was found, what it is read along, its text, and the depth of
/// re-reading before.
type AgainAlong<'de, 'c, N> = (ValuePosition<'c>, N, &'de str, u32);

/// Looks ahead into a value until it is known what it is read along. Increases the depth of re-reading.
#[inline(never)]
fn ahead_to<'de, 'c, D: Deserializer<'de>, N>(
    PlanDe { de, at }: PlanDe<'c, D>,
    find: impl Fn(&ValuePosition<'c>) -> Option<N>,
) -> Result<AgainAlong<'de, 'c, N>, D::Error> {
    let again = at.cx.again.get();
    if at.depth >= MAX_DEPTH {
        return Err(refused("too deep"));
    }
    let raw: &'de RawValue = Deserialize::deserialize(de)?;
    let mut along = at.along(at.node);
    for step in 0.. {
        if let Some(found) = find(&along) {
            at.cx.again.set(again + step);
            return Ok((along, found, raw.get(), again));
        }
        if again + step >= MAX_AGAIN {
            break;
        }
        along = at.along(at.cx.look_ahead(&along, raw.get()).map_err(nested)?);
    }
    Err(refused("too deep"))
}

/// Returns the text of a value that needs look-ahead, and the node to read it along.
pub(super) fn ahead<'de, 'c, D: Deserializer<'de>>(
    at: &ValuePosition<'c>,
    de: D,
) -> Result<(&'c PlanNode, &'de str), D::Error> {
    if at.depth >= MAX_DEPTH || at.cx.again.get() >= MAX_AGAIN {
        return Err(refused("too deep"));
    }
    let raw: &'de RawValue = Deserialize::deserialize(de)?;
    let node = at.cx.look_ahead(at, raw.get()).map_err(nested)?;
    Ok((node, raw.get()))
}
