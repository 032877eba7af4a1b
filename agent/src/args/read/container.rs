//! Types that ask for an object or a list. They accept no scalar, so no code is compiled for scalars, which would be most of what
//! each of a user's structs adds to a release build (`benches/build-time.sh`).

use super::buffered::MAX_AGAIN;
use super::context::{nested, refused};
use super::object::{ObjectNode, ObjectVisitor};
use super::sequence::SequenceVisitor;
use super::{MAX_DEPTH, PlanDe, ValuePosition};
use crate::args::plan::{NodeKind, PlanNode};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    /// Reads for a type that asked for a map or a struct.
    #[inline]
    pub(super) fn read_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        let object = match &at.node.kind {
            // Not read without the plan: that would compile every type for a second kind of map.
            NodeKind::Any => Some(ObjectNode::Known(&at.cx.graph.any_object)),
            _ => ObjectNode::of(at),
        };
        match object {
            Some(object) if at.depth < MAX_DEPTH => de.deserialize_map(ObjectVisitor { visitor, at, object }),
            _ => PlanDe { de, at }.read_other_map(visitor),
        }
    }

    #[inline(never)]
    fn read_other_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        let (node, raw) = ahead(at, de)?;
        let mut de = serde_json::Deserializer::from_str(raw);
        let out = PlanDe { de: &mut de, at: &at.along(node) }.read_map(visitor);
        at.cx.again.set(at.cx.again.get() - 1);
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
        let PlanDe { de, at } = self;
        match &at.node.kind {
            NodeKind::Array(array) if at.depth < MAX_DEPTH => {
                return PlanDe { de, at }.unique(visitor, array);
            }
            _ => {}
        }
        let (node, raw) = ahead(at, de)?;
        let mut de = serde_json::Deserializer::from_str(raw);
        let out = PlanDe { de: &mut de, at: &at.along(node) }.read_seq(visitor);
        at.cx.again.set(at.cx.again.get() - 1);
        out.map_err(nested)
    }
}

/// Returns the text of a value that needs look-ahead, and the node to read it along. It increases the depth of re-reading, which
/// the caller decreases again.
fn ahead<'de, 'c, D: Deserializer<'de>>(
    at: &ValuePosition<'c>,
    de: D,
) -> Result<(&'c PlanNode, &'de str), D::Error> {
    if !matches!(
        at.node.kind,
        NodeKind::Nullable(_)
            | NodeKind::Const(_)
            | NodeKind::Tagged { .. }
            | NodeKind::External(_)
            | NodeKind::Union { .. }
            | NodeKind::Checked(_)
    ) {
        return Err(refused("type, or too deep"));
    }
    let again = at.cx.again.get();
    if at.depth >= MAX_DEPTH || again >= MAX_AGAIN {
        return Err(refused("too deep"));
    }
    let raw: &'de RawValue = Deserialize::deserialize(de)?;
    let node = at.cx.look_ahead(at, raw.get()).map_err(nested)?;
    at.cx.again.set(again + 1);
    Ok((node, raw.get()))
}
