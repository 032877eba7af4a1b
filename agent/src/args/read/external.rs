//! Externally tagged enums: the name of a unit variant, or an object with exactly one entry.
//!
//! `serde_json`'s own `deserialize_enum` is not used, because it would also accept `{"Unit": null}`, which the schema does not offer.

use super::PlanSeed;
use super::context::{ValuePosition, refused};
use super::object::KeyText;
use crate::args::coercion::{CoercedValue, CoercionRule};
use crate::args::plan::{ExternalSpec, PlanNode};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, VariantAccess, Visitor,
};
use std::borrow::Cow;
use std::fmt;

pub(super) struct ExternalVisitor<'c, V> {
    pub(super) visitor: V,
    pub(super) at: &'c ValuePosition<'c>,
    pub(super) external: &'c ExternalSpec,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ExternalVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<V::Value, E> {
        let Some(unit) = self.external.units.pick(name, self.at.node.rules) else {
            return Err(refused("variant"));
        };
        if unit.is_coerced {
            self.at.cx.record(
                self.at,
                CoercedValue::Text(name),
                CoercedValue::Text(unit.word),
                CoercionRule::FoldEnum,
            );
        }
        self.visitor.visit_enum(StrDeserializer::new(unit.word))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<V::Value, A::Error> {
        let out = self.visitor.visit_enum(VariantEntry {
            access: &mut access,
            at: self.at,
            external: self.external,
        })?;
        match access.next_key::<IgnoredAny>()? {
            None => Ok(out),
            Some(_) => Err(refused("more than one variant")),
        }
    }
}

struct VariantEntry<'c, 'a, A> {
    access: &'a mut A,
    at: &'c ValuePosition<'c>,
    external: &'c ExternalSpec,
}

impl<'de, 'c, 'a, A: MapAccess<'de>> EnumAccess<'de> for VariantEntry<'c, 'a, A> {
    type Error = A::Error;
    type Variant = Payload<'de, 'c, 'a, A>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let Some(key) = self.access.next_key_seed(KeyText)? else { return Err(refused("no variant")) };
        let Some(variant) = self.external.variant(&key) else { return Err(refused("variant")) };
        let name = StrDeserializer::new(variant.name.as_str());
        let payload =
            Payload { access: self.access, at: self.at, key, node: self.at.cx.graph.node(variant.node) };
        Ok((seed.deserialize(name)?, payload))
    }
}

pub(super) struct Payload<'de, 'c, 'a, A> {
    access: &'a mut A,
    at: &'c ValuePosition<'c>,
    key: Cow<'de, str>,
    node: &'c PlanNode,
}

impl<'de, A: MapAccess<'de>> Payload<'de, '_, '_, A> {
    fn value<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let at = self.at.key(&self.key, false, self.node);
        self.access.next_value_seed(PlanSeed { seed, at: &at })
    }
}

struct ObjectSeed<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for ObjectSeed<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<V::Value, D::Error> {
        de.deserialize_map(self.0)
    }
}

struct ListSeed<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for ListSeed<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<V::Value, D::Error> {
        de.deserialize_seq(self.0)
    }
}

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Payload<'de, '_, '_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        Err(refused("a payload for a unit variant"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.value(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.value(ListSeed(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.value(ObjectSeed(visitor))
    }
}
