//! Types that ask for an object or a list. They accept no scalar, so no code is compiled for scalars, which would be most of what
//! each of a user's structs adds to a release build (`benches/build-time.sh`).

use super::buffered::MAX_AGAIN;
use super::context::{nested, refused};
use super::object::{ObjectNode, ObjectVisitor};
use super::sequence::SequenceVisitor;
use super::{Context, MAX_DEPTH, Path, PlanDe};
use crate::args::plan::{Kind, Node};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    /// Reads for a type that asked for a map or a struct.
    #[inline]
    pub(super) fn read_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, cx, path, node } = self;
        let object = match &node.kind {
            // Not read without the plan: that would compile every type for a second kind of map.
            Kind::Any => Some(ObjectNode::Known(&cx.graph.any_object)),
            _ => ObjectNode::of(cx, node),
        };
        match object {
            Some(object) if path.depth < MAX_DEPTH => {
                de.deserialize_map(ObjectVisitor { visitor, cx, path, object })
            }
            _ => PlanDe { de, cx, path, node }.read_other_map(visitor),
        }
    }

    #[inline(never)]
    fn read_other_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, cx, path, node } = self;
        let (node, raw) = ahead(cx, path, node, de)?;
        let mut de = serde_json::Deserializer::from_str(raw);
        let out = PlanDe { de: &mut de, cx, path, node }.read_map(visitor);
        cx.again.set(cx.again.get() - 1);
        out.map_err(nested)
    }

    /// Reads for a type that asked for a list or a tuple.
    #[inline]
    pub(super) fn read_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, cx, path, node } = self;
        let array = match &node.kind {
            Kind::Any => Some(&cx.graph.any_array),
            Kind::Array(array) if !array.unique || cx.silent => Some(array),
            _ => None,
        };
        match array {
            Some(array) if path.depth < MAX_DEPTH => {
                de.deserialize_seq(SequenceVisitor { visitor, cx, path, array })
            }
            _ => PlanDe { de, cx, path, node }.read_other_seq(visitor),
        }
    }

    #[inline(never)]
    fn read_other_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, cx, path, node } = self;
        match &node.kind {
            Kind::Array(array) if path.depth < MAX_DEPTH => {
                return PlanDe { de, cx, path, node }.unique(visitor, array);
            }
            _ => {}
        }
        let (node, raw) = ahead(cx, path, node, de)?;
        let mut de = serde_json::Deserializer::from_str(raw);
        let out = PlanDe { de: &mut de, cx, path, node }.read_seq(visitor);
        cx.again.set(cx.again.get() - 1);
        out.map_err(nested)
    }
}

/// Returns the text of a value that needs look-ahead, and the node to read it along. It increases the depth of re-reading, which
/// the caller decreases again.
fn ahead<'de, 'c, D: Deserializer<'de>>(
    cx: &Context<'c>,
    path: &Path<'_>,
    node: &'c Node,
    de: D,
) -> Result<(&'c Node, &'de str), D::Error> {
    if !matches!(
        node.kind,
        Kind::Nullable(_)
            | Kind::Const(_)
            | Kind::Tagged { .. }
            | Kind::External(_)
            | Kind::Union { .. }
            | Kind::Checked(_)
    ) {
        return Err(refused("type, or too deep"));
    }
    let again = cx.again.get();
    if path.depth >= MAX_DEPTH || again >= MAX_AGAIN {
        return Err(refused("too deep"));
    }
    let raw: &'de RawValue = Deserialize::deserialize(de)?;
    let node = cx.look_ahead(path, node, raw.get()).map_err(nested)?;
    cx.again.set(again + 1);
    Ok((node, raw.get()))
}
