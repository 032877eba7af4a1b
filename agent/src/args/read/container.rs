//! Reads values for types that ask for an object or a list. The code for scalars is elsewhere, so that each struct of a user adds less
//! code to a release build (`benches/build-time.sh`).

use super::buffered::{MAX_AGAIN, is_set};
use super::context::{list, nested, refused, text_reader};
use super::object::{ObjectNode, ObjectVisitor};
use super::sequence::SequenceVisitor;
use super::{MAX_DEPTH, PlanDe, ValuePosition};
use crate::args::plan::{NodeKind, PlanNode};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::value::RawValue;

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    #[inline]
    pub(super) fn read_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        if at.depth < MAX_DEPTH && takes_object(at) {
            return de.deserialize_map(ObjectVisitor { visitor, at });
        }
        PlanDe { de, at }.read_other_map(visitor)
    }

    #[inline(never)]
    fn read_other_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let again = ahead_to(self, takes_object)?;
        let mut de = text_reader(again.text);
        let out = de.deserialize_map(ObjectVisitor { visitor, at: &again.at });
        again.end(out)
    }

    #[inline]
    pub(super) fn read_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        if at.depth < MAX_DEPTH && takes_list(at) {
            return de.deserialize_seq(SequenceVisitor { visitor, at });
        }
        PlanDe { de, at }.read_other_seq(visitor)
    }

    #[inline(never)]
    fn read_other_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let again = ahead_to_list(self)?;
        let mut de = text_reader(again.text);
        let out = de.deserialize_seq(SequenceVisitor { visitor, at: &again.at });
        again.end(out)
    }
}

/// Returns whether a value can be read as an object without looking at its text.
#[inline]
fn takes_object(at: &ValuePosition<'_>) -> bool {
    matches!(at.node.kind, NodeKind::Any) || ObjectNode::of(at).is_some()
}

/// Returns whether a list can be read item by item. With `uniqueItems`, the text of the list is first searched for repeated items.
#[inline]
fn takes_list(at: &ValuePosition<'_>) -> bool {
    list(at).is_some_and(|array| !array.unique || at.cx.is_silent())
}

struct ValueAgain<'de, 'c> {
    at: ValuePosition<'c>,
    text: &'de str,
    /// The value of `Context::again` before this value, which `end` restores.
    again: u32,
}

impl ValueAgain<'_, '_> {
    #[inline]
    fn end<T, E: Error>(&self, out: Result<T, serde_json::Error>) -> Result<T, E> {
        self.at.cx.again.set(self.again);
        out.map_err(nested)
    }
}

/// Descends from a union to the alternative that fits a value, until `is_found` accepts the schema node. The caller reads the returned
/// text again, and then calls `ValueAgain::end`.
#[inline(never)]
fn ahead_to<'de, 'c, D: Deserializer<'de>>(
    PlanDe { de, at }: PlanDe<'c, D>,
    is_found: fn(&ValuePosition<'_>) -> bool,
) -> Result<ValueAgain<'de, 'c>, D::Error> {
    let again = at.cx.again.get();
    if at.depth >= MAX_DEPTH {
        return Err(refused("too deep"));
    }
    let raw: &'de RawValue = Deserialize::deserialize(de)?;
    let mut along = at.along(at.node);
    while !is_found(&along) {
        if at.cx.again.get() >= MAX_AGAIN {
            at.cx.again.set(again);
            return Err(refused("too deep"));
        }
        match at.cx.look_ahead(&along, raw.get()) {
            Ok(node) => along = at.along(node),
            Err(error) => {
                at.cx.again.set(again);
                return Err(nested(error));
            }
        }
        at.cx.read_again(1);
    }
    Ok(ValueAgain { at: along, text: raw.get(), again })
}

/// Follows unions to a list, like [`ahead_to`]. Refuses repeated items if the list has `uniqueItems`.
#[inline(never)]
fn ahead_to_list<'de, 'c, D: Deserializer<'de>>(de: PlanDe<'c, D>) -> Result<ValueAgain<'de, 'c>, D::Error> {
    let found = ahead_to(de, |at| list(at).is_some())?;
    if takes_list(&found.at) || is_set(&found.at, found.text) {
        return Ok(found);
    }
    found.at.cx.again.set(found.again);
    Err(refused("type, or repeated items"))
}

/// Reads the raw text of a value. Returns the schema node that fits the text, and the text.
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
