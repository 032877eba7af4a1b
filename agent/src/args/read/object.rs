//! Objects: properties, entries of maps, duplicate keys, and nulls that mean absent.

use super::PlanSeed;
use super::context::{Context, ValuePosition, nested, refused, text_reader};
use crate::args::coercion::{CoercedValue, CoercionRule};
use crate::args::object_keys::{KeyRole, NullMeaning, ObjectRules, SeenKeys, null_meaning};
use crate::args::plan::{NodeId, NodeKind, ObjectSpec, Prop, VariantNames};
use crate::args::policy::Rules;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, fmt, marker::PhantomData};

pub(super) struct ObjectVisitor<'c, V> {
    pub(super) visitor: V,
    pub(super) at: &'c ValuePosition<'c>,
}

#[derive(Clone, Copy)]
pub(super) enum ObjectNode<'c> {
    Known(&'c ObjectSpec),
    /// The tag of the object selects the `ObjectSpec`. All variants are objects.
    Tagged {
        tag: &'c str,
        variants: &'c [(String, NodeId)],
        names: &'c VariantNames,
        rules: Rules,
    },
}

impl<'c> ObjectNode<'c> {
    /// Returns `None` if the node is not for objects, or if only the whole text shows which alternative fits.
    #[inline]
    pub(super) fn of(at: &ValuePosition<'c>) -> Option<ObjectNode<'c>> {
        let node = at.node;
        match &node.kind {
            NodeKind::Object(object) => Some(ObjectNode::Known(object)),
            NodeKind::Tagged { tag, variants, names } if names.are_objects(variants, at.cx.graph) => {
                Some(ObjectNode::Tagged { tag, variants, names, rules: node.rules })
            }
            _ => None,
        }
    }
}

/// The entries of a tagged object that were read to find its tag.
enum ReadAhead<'de> {
    /// The tag was the first key. Its value has not been read.
    Tag(Cow<'de, str>),
    /// The entries are in reverse order, so that `pop` returns the first entry of the object.
    EntryReader(Box<EntriesAhead<'de>>),
}

struct EntriesAhead<'de> {
    entries: Vec<(Cow<'de, str>, &'de RawValue)>,
    /// The key of the tag, if its value has not been read.
    tag: Option<Cow<'de, str>>,
}

/// Reads an object up to its tag. Returns the schema of the variant that the tag names, and the entries that were read.
#[inline(never)]
fn variant<'de, 'c, A: MapAccess<'de>>(
    access: &mut A,
    cx: &Context<'c>,
    (tag, variants, names, rules): (&str, &'c [(String, NodeId)], &'c VariantNames, Rules),
) -> Result<(&'c ObjectSpec, ReadAhead<'de>), A::Error> {
    let mut entries = Vec::new();
    let (picked, key) = loop {
        let Some(key) = access.next_key_seed(KeyText)? else { return Err(refused("no tag")) };
        if key != tag {
            entries.push((key, access.next_value()?));
            continue;
        }
        let plain = match &key {
            Cow::Borrowed(key) => cx.plain_text_follows(key),
            Cow::Owned(_) => None,
        };
        if let Some(name) = plain {
            break (names.pick(variants, name, rules).map(|(_, node)| node), Some(key));
        }
        let raw: &'de RawValue = access.next_value()?;
        entries.push((key, raw));
        let name: String = serde_json::from_str(raw.get()).map_err(nested)?;
        break (names.pick(variants, &name, rules).map(|(_, node)| node), None);
    };
    let Some(NodeKind::Object(object)) = picked.map(|node| &cx.graph.node(node).kind) else {
        return Err(refused("variant"));
    };
    let ahead = match key {
        Some(key) if entries.is_empty() => ReadAhead::Tag(key),
        tag => {
            entries.reverse();
            ReadAhead::EntryReader(Box::new(EntriesAhead { entries, tag }))
        }
    };
    Ok((object, ahead))
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<V::Value, A::Error> {
        let mut keys = None;
        if !self.at.is_exact() {
            keys = Some(KeyReader::new(&mut access, self.at)?);
        }
        let out = self.visitor.visit_map(EntryReader { access, at: self.at, keys: &mut keys });
        if keys.is_none() {
            // Skips the destructor, which is a call even if there is nothing to drop.
            std::mem::forget(keys);
        }
        out
    }
}

struct EntryReader<'de, 'c, 'g, A> {
    access: A,
    at: &'c ValuePosition<'c>,
    /// `None` if the arguments fit exactly: the keys then need no check.
    keys: &'g mut Option<KeyReader<'de, 'c>>,
}

/// Reads the keys of an object and checks them against the schema. Its code is compiled once, not for each type.
struct KeyReader<'de, 'c> {
    at: &'c ValuePosition<'c>,
    rules: ObjectRules<'c>,
    /// The index of the property that is expected next.
    hint: usize,
    /// Whether keys that were read to find the tag must still be passed to serde. These keys are in `ahead`. If the tag was the first key,
    /// `ahead` is `None`, and the tag is in `next`.
    is_ahead: bool,
    ahead: Option<Box<EntriesAhead<'de>>>,
    next: Next<'de, 'c>,
    seen: SeenKeys<'de>,
}

struct Next<'de, 'c> {
    node: NodeId,
    secret: bool,
    key: Cow<'de, str>,
    /// The name that is passed to serde, if it differs from the key.
    name: Option<Cow<'c, str>>,
    /// The text of the value, if it was read before the key was passed to serde.
    raw: Option<&'de RawValue>,
}

impl<'de, 'c> KeyReader<'de, 'c> {
    #[inline(never)]
    fn new<A: MapAccess<'de>>(
        access: &mut A,
        at: &'c ValuePosition<'c>,
    ) -> Result<KeyReader<'de, 'c>, A::Error> {
        let (object, is_ahead, key, ahead) = match ObjectNode::of(at) {
            None => (&at.cx.graph.any_object, false, Cow::Borrowed(""), None),
            Some(ObjectNode::Known(object)) => (object, false, Cow::Borrowed(""), None),
            Some(ObjectNode::Tagged { tag, variants, names, rules }) => {
                match variant(access, at.cx, (tag, variants, names, rules))? {
                    (object, ReadAhead::Tag(key)) => (object, true, key, None),
                    (object, ReadAhead::EntryReader(ahead)) => (object, true, Cow::Borrowed(""), Some(ahead)),
                }
            }
        };
        let next = Next { node: at.cx.graph.any, secret: false, key, name: None, raw: None };
        let rules = ObjectRules::new(at.cx.graph, object, at.is_root());
        Ok(KeyReader { at, rules, hint: 0, is_ahead, ahead, next, seen: SeenKeys::default() })
    }

    /// Returns the next key for serde, or `None` at the end of the object. Skips dropped entries and nulls that mean absent. An alias
    /// becomes the name of its property, and an integer key of a map is written without leading zeros.
    #[inline(never)]
    fn next<A: MapAccess<'de>>(
        &mut self,
        access: &mut A,
    ) -> Result<Option<ObjectKey<'_, 'de, A::Error>>, A::Error> {
        loop {
            let ahead = if self.is_ahead { self.key_ahead() } else { None };
            let key = match ahead {
                Some(key) => key,
                None => match access.next_key_seed(KeyText)? {
                    Some(key) => key,
                    None if self.seen.are_complete(self.rules.object) => return Ok(None),
                    None => return Err(refused("missing, or too few or too many entries")),
                },
            };
            let rules = self.rules;
            let mut integer = false;
            self.next.name = None;
            match rules.role(&key, &mut self.hint) {
                KeyRole::Property(index) => {
                    let Some(prop) = rules.object.props.get(index) else { return Err(refused("property")) };
                    if !self.seen.add(index) {
                        return Err(refused("duplicate"));
                    }
                    let is_value = || matches!(&key, Cow::Borrowed(key) if self.at.cx.value_follows(key));
                    if prop.null_absent && !is_value() && self.null_as_absent(access, &key, prop)? {
                        continue;
                    }
                    if !prop.aliases.is_empty() && prop.name != key {
                        self.next.name = Some(Cow::Borrowed(prop.name.as_str()));
                    }
                    (self.next.node, self.next.secret) = (prop.node, prop.secret);
                }
                KeyRole::Entry(node) => {
                    let one = self.other(&key)?;
                    if one.len() != key.len() {
                        self.next.name = Some(Cow::Owned(one.into_owned()));
                    }
                    (self.next.node, self.next.secret) = (node, false);
                    integer = is_integer_key(rules.object, &key);
                }
                KeyRole::Dropped => {
                    self.other(&key)?;
                    self.drop_entry(access, &key)?;
                    continue;
                }
                KeyRole::Unknown => return Err(refused("unknown key")),
            }
            self.next.key = key;
            let borrowed = match (&self.next.name, &self.next.key) {
                (None, Cow::Borrowed(key)) => Some(*key),
                _ => None,
            };
            let text = self.next.name.as_deref().unwrap_or(&self.next.key);
            return Ok(Some(ObjectKey { text, borrowed, integer, error: PhantomData }));
        }
    }

    #[cold]
    #[inline(never)]
    fn failed_key(&self) {
        self.at.cx.failed_key(&self.position());
    }

    #[inline(never)]
    fn position(&self) -> ValuePosition<'_> {
        self.at.key(&self.next.key, self.next.secret, self.at.cx.graph.node(self.next.node))
    }

    /// Records a key that is not a property, and returns its canonical spelling. Refuses a repeated key, unless the schema accepts any
    /// value.
    fn other<E: Error>(&mut self, key: &Cow<'de, str>) -> Result<Cow<'de, str>, E> {
        let identity = self.rules.identity(key.clone());
        if !self.seen.add_other(identity.clone(), ()) && !self.rules.may_repeat() {
            return Err(refused("duplicate"));
        }
        Ok(identity)
    }

    fn drop_entry<A: MapAccess<'de>>(&mut self, access: &mut A, key: &str) -> Result<(), A::Error> {
        let (cx, raw) = (self.at.cx, self.raw_value(access)?);
        if !cx.is_silent() {
            let value: Value = serde_json::from_str(raw.get()).map_err(nested)?;
            cx.record_dropped(&self.at.key(key, false, self.at.node), value);
        }
        self.seen.add_absent();
        Ok(())
    }

    fn raw_value<A: MapAccess<'de>>(&mut self, access: &mut A) -> Result<&'de RawValue, A::Error> {
        match self.next.raw.take() {
            Some(raw) => Ok(raw),
            None => access.next_value(),
        }
    }

    /// Returns the next key that was read while looking for the tag.
    fn key_ahead(&mut self) -> Option<Cow<'de, str>> {
        let Some(ahead) = &mut self.ahead else {
            self.is_ahead = false;
            return Some(std::mem::take(&mut self.next.key));
        };
        if let Some((key, raw)) = ahead.entries.pop() {
            self.next.raw = Some(raw);
            return Some(key);
        }
        let tag = ahead.tag.take();
        (self.ahead, self.is_ahead) = (None, false);
        tag
    }

    /// Skips a null that means an absent property. Returns true if the value was skipped; serde must then not see the key. Fails if the
    /// policy does not allow the null.
    fn null_as_absent<A: MapAccess<'de>>(
        &mut self,
        access: &mut A,
        key: &Cow<'de, str>,
        prop: &Prop,
    ) -> Result<bool, A::Error> {
        let cx = self.at.cx;
        let follows = match key {
            Cow::Borrowed(key) => cx.null_follows(key),
            Cow::Owned(_) => None,
        };
        match follows {
            Some(false) => return Ok(false),
            Some(true) if self.next.raw.is_none() => {
                access.next_value::<IgnoredAny>()?;
            }
            _ => {
                let raw = self.raw_value(access)?;
                if raw.get() != "null" {
                    self.next.raw = Some(raw);
                    return Ok(false);
                }
            }
        }
        if null_meaning(cx.graph, prop) == NullMeaning::Refused {
            return Err(refused("null"));
        }
        cx.record(
            &self.at.key(key, prop.secret, self.at.node),
            CoercedValue::Null,
            CoercedValue::Null,
            CoercionRule::NullAsAbsent,
        );
        self.seen.add_absent();
        Ok(true)
    }
}

/// Returns whether the key is an integer, and the map has the pattern that schemars writes for integer keys. `deserialize_any` reads such
/// a key as a number.
fn is_integer_key(object: &ObjectSpec, key: &str) -> bool {
    let has_pattern =
        || object.patterns.iter().any(|(pattern, _)| pattern.is_integer_key() && pattern.is_match(key));
    !object.patterns.is_empty() && (key.parse::<i64>().is_ok() || key.parse::<u64>().is_ok()) && has_pattern()
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for EntryReader<'de, '_, '_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(keys) = self.keys else { return self.access.next_key_seed(seed) };
        let Some(key) = keys.next(&mut self.access)? else { return Ok(None) };
        let out = seed.deserialize(key);
        if out.is_err() {
            keys.failed_key();
        }
        out.map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let along;
        let at = match self.keys {
            None => self.at,
            Some(keys) => {
                let raw = keys.next.raw.take();
                along = keys.position();
                if let Some(raw) = raw {
                    let mut de = text_reader(raw.get());
                    return PlanSeed { seed, at: &along }.deserialize(&mut de).map_err(nested);
                }
                &along
            }
        };
        self.access.next_value_seed(PlanSeed { seed, at })
    }
}

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

/// A key that is read as a field name or as the key type of a map: a text, an integer, a boolean, an enum, or a newtype or `Option` of
/// these.
struct ObjectKey<'k, 'de, E> {
    text: &'k str,
    borrowed: Option<&'de str>,
    integer: bool,
    error: PhantomData<E>,
}

impl<'de, E: Error> ObjectKey<'_, 'de, E> {
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

impl<'de, E: Error> Deserializer<'de> for ObjectKey<'_, 'de, E> {
    type Error = E;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        if !self.integer {
            return self.text(visitor);
        }
        match self.text.parse() {
            Ok(key) => visitor.visit_i64(key),
            Err(_) => self.deserialize_u64(visitor),
        }
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
