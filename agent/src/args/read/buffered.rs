//! Values whose whole text is needed before they are read: for example, to find a tag, to choose an alternative of a union, or to search
//! for repeated items. Their text is kept and read a second time.

use super::context::{nested, refused};
use super::scalar::Scalar;
use super::{Context, MAX_DEPTH, PlanDe, ValuePosition};
use crate::args::coercion::{CoercedValue, CoercionRule};
use crate::args::document::Document;
use crate::args::plan::{NodeKind, PlanNode};
use crate::args::rounding;
use crate::args::scalar::{PickedMember, const_of};
use crate::args::unique::repeated;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, fmt};

/// Maximum nesting of repeated readings. A value has at most 127 levels, and a level usually adds at most two: for example, one for a
/// union, and one for an alternative that has a check such as `not`.
pub(super) const MAX_AGAIN: u32 = 260;

pub(super) enum Ahead<'de, 'c> {
    Scalar(Scalar<'de>),
    /// The text is read without the schema.
    AsIs(&'de str),
    Value {
        text: &'de str,
        node: &'c PlanNode,
    },
}

impl<'de, 'c, D: Deserializer<'de>> PlanDe<'c, D> {
    /// Decides by the text of a value how to read the value. Used for types that ask serde for a scalar or for any value.
    #[inline(never)]
    pub(super) fn look_ahead(self) -> Result<Ahead<'de, 'c>, D::Error> {
        let PlanDe { de, at } = self;
        let (cx, node) = (at.cx, at.node);
        if at.depth >= MAX_DEPTH || cx.again.get() >= MAX_AGAIN {
            return Err(refused("too deep"));
        }
        let raw: &'de RawValue = Deserialize::deserialize(de)?;
        let text = raw.get();
        match &node.kind {
            NodeKind::Const(members) => {
                let coerced = constant(at, members, text).map_err(nested)?;
                return Ok(coerced.map_or(Ahead::AsIs(text), Ahead::Scalar));
            }
            NodeKind::External(external) if text.starts_with('"') => {
                // The type is not an enum to serde. It is, for example, a `Value`, or serde's buffer for an untagged enum.
                let name: String = serde_json::from_str(text).map_err(nested)?;
                let Some(unit) = external.units.pick(&name, node.rules) else {
                    return Err(refused("variant"));
                };
                if unit.is_coerced {
                    cx.record(
                        at,
                        CoercedValue::Text(&name),
                        CoercedValue::Text(unit.word),
                        CoercionRule::FoldEnum,
                    );
                }
                return Ok(Ahead::Scalar(Scalar::Text(unit.word.to_owned())));
            }
            _ => {}
        }
        Ok(Ahead::Value { text, node: cx.look_ahead(at, text).map_err(nested)? })
    }
}

impl<'c> Context<'c> {
    /// Returns the schema node for reading a value, chosen by its text. Fails if the schema refuses the value.
    pub(in crate::args) fn look_ahead(
        &self,
        at: &ValuePosition<'c>,
        text: &str,
    ) -> Result<&'c PlanNode, serde_json::Error> {
        let node = at.node;
        match &node.kind {
            NodeKind::Const(members) => member(members, text, node).map(|_| self.graph.node(self.graph.any)),
            NodeKind::Checked(_) if !self.is_silent() && !self.passes(at, text) => Err(refused("check")),
            kind => {
                let chosen = match kind {
                    NodeKind::Union { .. } => self.branch(at, text),
                    _ => node.referred(|tag| text_at(text, tag).map(Cow::Owned)),
                };
                chosen.map(|node| self.graph.node(node)).ok_or_else(|| refused("no alternative fits"))
            }
        }
    }
}

fn text_at(text: &str, key: &str) -> Option<String> {
    let mut de = serde_json::Deserializer::from_str(text);
    let mut found = None;
    // `serde_json` returns an error if the finder stops before the end of the object.
    let _ = de.deserialize_map(TextFinder { key, found: &mut found });
    found
}

/// Returns whether a text is a list whose items are distinct after coercion.
pub(super) fn is_set(at: &ValuePosition<'_>, text: &str) -> bool {
    coerced(at, text).is_some_and(|items| repeated(&items).is_none())
}

fn coerced(at: &ValuePosition<'_>, text: &str) -> Option<Vec<Value>> {
    let silent = at.cx.silent_part();
    let mut de = serde_json::Deserializer::from_str(text);
    let value =
        Value::deserialize(PlanDe { de: &mut de, at: &ValuePosition::root(&silent, at.node) }).ok()?;
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// Coerces a value to a member of an `enum` or `const`. Returns `None` if the value needs no coercion. Fails if there is no such member.
fn constant<'de>(
    at: &ValuePosition<'_>,
    members: &[Value],
    text: &str,
) -> Result<Option<Scalar<'de>>, serde_json::Error> {
    let ((member, rule), sent) = member(members, text, at.node)?;
    if let (Value::Number(number), true) = (&sent, member.is_f64())
        && let Some(float) = number.as_f64()
        && !rounding::is_safe(text)
        && rounding::is_rounded(text, float)
    {
        at.cx.record(at, CoercedValue::Text(text), CoercedValue::Float(float), CoercionRule::NumberRounded);
    }
    if let Some(rule) = rule {
        at.cx.record(at, CoercedValue::Value(sent.into()), CoercedValue::Value(member.clone().into()), rule);
    }
    match member {
        Value::Bool(b) if rule.is_some() => Ok(Some(Scalar::Bool(*b))),
        Value::Number(n) if rule.is_some() => match (n.as_u64(), n.as_i64(), n.as_f64()) {
            (Some(v), ..) => Ok(Some(Scalar::Unsigned(v))),
            (_, Some(v), _) => Ok(Some(Scalar::Signed(v))),
            (.., Some(f)) => Ok(Some(Scalar::Float(f))),
            _ => Err(refused("const")),
        },
        _ => Ok(None),
    }
}

/// Finds the member that equals the sent value, possibly after coercion. Returns the member and the value. Fails if there is no such
/// member, or if an object in the value repeats a key.
fn member<'v>(
    members: &'v [Value],
    text: &str,
    node: &PlanNode,
) -> Result<(PickedMember<'v>, Value), serde_json::Error> {
    let sent: Value = serde_json::from_str(text)?;
    let Some(picked) = const_of(members, &sent, text, node.rules) else { return Err(refused("const")) };
    if matches!(picked.0, Value::Array(_) | Value::Object(_))
        && Document::parse(text).is_ok_and(|document| document.root.repeated_key().is_some())
    {
        return Err(refused("duplicate"));
    }
    Ok((picked, sent))
}

/// Finds the string under a key of an object, and stops reading after it.
struct TextFinder<'k, 'f> {
    key: &'k str,
    found: &'f mut Option<String>,
}

impl<'de> Visitor<'de> for TextFinder<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(is_here) = access.next_key_seed(IsKey(self.key))? {
            if is_here {
                let raw: &'de RawValue = access.next_value()?;
                *self.found = serde_json::from_str(raw.get()).ok();
                break;
            }
            access.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

pub(crate) struct IsKey<'k>(pub(crate) &'k str);

impl<'de> DeserializeSeed<'de> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<bool, D::Error> {
        de.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
