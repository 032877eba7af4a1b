//! Objects: known keys, map entries, duplicates, nulls that mean absent.

use super::PlanSeed;
use super::context::{Context, Path, nested, refused};
use crate::args::coercion::{CoercionRule, Noted};
use crate::args::plan::{Child, NodeId, ObjectSpec, Rest};
use crate::args::policy::{Rules, UnknownKeys};
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::HashSet, fmt, marker::PhantomData};

pub(super) struct ObjectVisitor<'c, V> {
    pub(super) visitor: V,
    pub(super) cx: &'c Context<'c>,
    pub(super) path: &'c Path<'c>,
    pub(super) object: &'c ObjectSpec,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let mut given = Given::default();
        let object = self.object;
        let out = self.visitor.visit_map(Entries {
            access,
            cx: self.cx,
            path: self.path,
            object,
            hint: 0,
            next: Next { node: self.cx.graph.any, secret: false, key: Cow::Borrowed(""), raw: None },
            given: &mut given,
        })?;
        if given.are_complete(object) {
            Ok(out)
        } else {
            Err(refused("missing, or too few or too many entries"))
        }
    }
}

/// The keys that an object had.
#[derive(Default)]
struct Given<'de> {
    /// The first 64 properties.
    first: u64,
    /// The properties after those.
    more: Vec<u64>,
    /// Map entries and unknown keys.
    others: Option<HashSet<Cow<'de, str>>>,
    count: u64,
}

impl<'de> Given<'de> {
    /// Returns `false` if it was given before.
    #[inline]
    fn add(&mut self, index: usize) -> bool {
        let word = if index < 64 {
            &mut self.first
        } else {
            let at = index / 64 - 1;
            if self.more.len() <= at {
                self.more.resize(at + 1, 0);
            }
            &mut self.more[at]
        };
        let bit = 1 << (index % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn has(&self, index: usize) -> bool {
        let word = if index < 64 { Some(&self.first) } else { self.more.get(index / 64 - 1) };
        word.is_some_and(|w| w & 1 << (index % 64) != 0)
    }

    fn add_other(&mut self, key: Cow<'de, str>) -> bool {
        self.others.get_or_insert_default().insert(key)
    }

    #[inline]
    fn are_complete(&self, object: &ObjectSpec) -> bool {
        self.first & object.required == object.required
            && (object.props.len() <= 64
                || object.props.iter().enumerate().skip(64).all(|(i, p)| !p.required || self.has(i)))
            && object.min <= self.count
            && self.count <= object.max
    }
}

/// The entry whose key was passed on and whose value is still to be read.
struct Next<'de> {
    node: NodeId,
    secret: bool,
    key: Cow<'de, str>,
    /// The value, where it had to be read before the key was passed on.
    raw: Option<&'de RawValue>,
}

struct Entries<'de, 'c, 'g, A> {
    access: A,
    cx: &'c Context<'c>,
    path: &'c Path<'c>,
    object: &'c ObjectSpec,
    /// The index after that of the previous property.
    hint: usize,
    next: Next<'de>,
    given: &'g mut Given<'de>,
}

impl<'de, A: MapAccess<'de>> Entries<'de, '_, '_, A> {
    /// Returns the node for a key that is not a property; `None` if the key was dropped.
    #[inline(never)]
    fn other(&mut self, key: &Cow<'de, str>, child: Option<NodeId>) -> Result<Option<NodeId>, A::Error> {
        let unknown = self.cx.graph.options.unknown_keys();
        let identity = match self.cx.graph.identity(self.object, key) {
            Cow::Borrowed(same) if same.len() == key.len() => key.clone(),
            other => Cow::Owned(other.into_owned()),
        };
        // In a value of any type nobody looks for keys that are there twice.
        if !self.given.add_other(identity) && !std::ptr::eq(self.object, &raw const self.cx.graph.any_object)
        {
            return Err(refused("duplicate"));
        }
        let node = match child {
            Some(node) => node,
            None if unknown == UnknownKeys::Keep && self.object.rest == Rest::Unsaid => self.cx.graph.any,
            None if unknown == UnknownKeys::Strip && self.path.is_root() => {
                let raw: &'de RawValue = self.access.next_value()?;
                if !self.cx.silent {
                    let value: Value = serde_json::from_str(raw.get()).map_err(nested)?;
                    self.cx.record_dropped(&self.path.key(key, false), value);
                }
                return Ok(None);
            }
            None => return Err(refused("unknown key")),
        };
        self.given.count += 1;
        Ok(Some(node))
    }

    /// Removes a null that means absent; serde must not see its key. Returns `true` if it was one.
    #[inline]
    fn null_as_absent(&mut self, key: &Cow<'de, str>, index: usize) -> Result<bool, A::Error> {
        let follows = match key {
            Cow::Borrowed(key) => self.cx.null_follows(key),
            Cow::Owned(_) => None,
        };
        match follows {
            Some(false) => return Ok(false),
            Some(true) => {
                self.access.next_value::<IgnoredAny>()?;
            }
            None => {
                let raw: &'de RawValue = self.access.next_value()?;
                if raw.get() != "null" {
                    self.next.raw = Some(raw);
                    return Ok(false);
                }
            }
        }
        let prop = &self.object.props[index];
        if !self.cx.graph.node(prop.node).rules.has(Rules::NULL_ABSENT) {
            return Err(refused("null"));
        }
        self.cx.record(
            &self.path.key(key, prop.secret),
            Noted::Null,
            Noted::Null,
            CoercionRule::NullAsAbsent,
        );
        self.given.count -= 1;
        Ok(true)
    }

    /// schemars describes integer map keys by a pattern of digits; a type that accepts anything gets a number for them.
    fn is_integer_key(&self, key: &str) -> bool {
        !self.object.patterns.is_empty()
            && key.parse::<i64>().is_ok()
            && self.object.patterns.iter().any(|(p, _)| p.is_integer_key())
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'de, '_, '_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(key) = self.access.next_key_seed(KeyText)? else { return Ok(None) };
            // What serde sees: the name of the parameter, however it was spelled, and one spelling of each key of a map.
            let mut name = None;
            let mut integer = false;
            match self.object.child(&key, self.hint) {
                Some(Child::Prop(index, node)) => {
                    self.hint = index + 1;
                    if !self.given.add(index) {
                        return Err(refused("duplicate"));
                    }
                    self.given.count += 1;
                    let prop = &self.object.props[index];
                    if prop.null_absent && self.null_as_absent(&key, index)? {
                        continue;
                    }
                    if !prop.aliases.is_empty() && prop.name != key {
                        name = Some(Cow::Borrowed(prop.name.as_str()));
                    }
                    (self.next.node, self.next.secret) = (node, prop.secret);
                }
                other => {
                    let child = match other {
                        Some(Child::Entry(node)) => Some(node),
                        _ => None,
                    };
                    let Some(node) = self.other(&key, child)? else { continue };
                    (self.next.node, self.next.secret) = (node, false);
                    integer = self.is_integer_key(&key);
                    let one = self.cx.graph.identity(self.object, &key);
                    if one.len() != key.len() {
                        name = Some(Cow::Owned(one.into_owned()));
                    }
                }
            }
            self.next.key = key;
            let borrowed = match (&name, &self.next.key) {
                (None, Cow::Borrowed(key)) => Some(*key),
                _ => None,
            };
            let text = name.as_deref().unwrap_or(&self.next.key);
            let out = seed.deserialize(Key { text, borrowed, integer, error: PhantomData });
            if out.is_err() {
                self.cx.failed_key(&self.path.key(&self.next.key, self.next.secret));
            }
            return out.map(Some);
        }
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let path = self.path.key(&self.next.key, self.next.secret);
        let seed = PlanSeed { seed, cx: self.cx, path: &path, node: self.cx.graph.node(self.next.node) };
        let out = match self.next.raw.take() {
            None => self.access.next_value_seed(seed),
            Some(raw) => seed.deserialize(&mut serde_json::Deserializer::from_str(raw.get())).map_err(nested),
        };
        if out.is_err() {
            self.cx.failed(&path);
        }
        out
    }
}

/// Reads a key as text, borrowed if it has no escapes.
pub(super) struct KeyText;

impl<'de> DeserializeSeed<'de> for KeyText {
    type Value = Cow<'de, str>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<Cow<'de, str>, D::Error> {
        de.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyText {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.into()))
    }
}

/// A key as a field name, or as the key type of a map: text, integer, bool, enum, or a newtype of those.
struct Key<'k, 'de, E> {
    text: &'k str,
    borrowed: Option<&'de str>,
    integer: bool,
    error: PhantomData<E>,
}

impl<'de, E: Error> Key<'_, 'de, E> {
    #[inline]
    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.borrowed {
            Some(key) => visitor.visit_borrowed_str(key),
            None => visitor.visit_str(self.text),
        }
    }
}

macro_rules! parsed_keys {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            match self.text.parse::<$type>() {
                Ok(key) => visitor.$visit(key),
                Err(error) => Err(E::custom(error)),
            }
        })*
    };
}

impl<'de, E: Error> Deserializer<'de> for Key<'_, 'de, E> {
    type Error = E;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        if self.integer {
            return self.deserialize_i64(visitor);
        }
        self.text(visitor)
    }

    parsed_keys! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_i128 visit_i128 i128;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_u128 visit_u128 u128;
        deserialize_bool visit_bool bool;
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_enum(StrDeserializer::new(self.text))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.text(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.text(visitor)
    }

    forward_to_deserialize_any! {
        f32 f64 char bytes byte_buf unit unit_struct seq tuple tuple_struct map struct ignored_any
    }
}
