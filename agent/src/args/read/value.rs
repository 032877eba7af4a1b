//! Reads a value by its schema node, and by the type that the `Deserialize` impl asks for.

use super::buffered::Ahead;
use super::container::ahead;
use super::context::{nested, refused, text_reader};
use super::external::ExternalVisitor;
use super::object::ObjectNode;
use super::scalar::{Scalar, ScalarVisitor};
use super::{Hint, MAX_DEPTH, PlanDe, ValuePosition};
use crate::args::document::Document;
use crate::args::hooks::CHECKED;
use crate::args::plan::NodeKind;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;
use std::fmt;

/// The name by which `serde_json` recognizes the newtype `RawValue`.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    #[inline]
    pub(super) fn read<V: Visitor<'de>>(self, visitor: V, hint: Hint) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        match &at.node.kind {
            // In arguments that fit exactly, each value has the kind `Any`, so the schema is not used.
            NodeKind::Any if hint == Hint::Any && !at.cx.reads_digits() => {
                if !at.is_exact() {
                    at.cx.note_any(at);
                }
                de.deserialize_any(visitor)
            }
            // Scalars are read separately, because the other kinds need a large stack frame.
            kind if kind.is_scalar() => PlanDe { de, at }.read_scalar(hint)?.give(visitor),
            _ => PlanDe { de, at }.read_other(visitor, hint),
        }
    }

    #[inline(never)]
    fn read_other<V: Visitor<'de>>(self, visitor: V, hint: Hint) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        match &at.node.kind {
            NodeKind::Any if hint == Hint::Ignored && at.is_exact() => de.deserialize_ignored_any(visitor),
            NodeKind::Any if hint == Hint::Ignored => {
                PlanDe { de, at }.ignore()?;
                visitor.visit_unit()
            }
            NodeKind::Any => {
                let text = PlanDe { de, at }.any_carefully()?;
                text_reader(text).deserialize_any(visitor).map_err(nested)
            }
            NodeKind::Object(_) | NodeKind::Array(_) if at.depth >= MAX_DEPTH => Err(refused("too deep")),
            NodeKind::Object(_) => PlanDe { de, at }.read_map(visitor),
            NodeKind::Tagged { .. } if at.depth < MAX_DEPTH && ObjectNode::of(at).is_some() => {
                PlanDe { de, at }.read_map(visitor)
            }
            NodeKind::Array(_) => PlanDe { de, at }.read_seq(visitor),
            NodeKind::Nullable(inner) => {
                let at = &at.along(at.cx.graph.node(*inner));
                de.deserialize_option(NullableVisitor { visitor, at, hint })
            }
            NodeKind::Checked(checked) if at.cx.is_silent() => {
                PlanDe { de, at: &at.along(at.cx.graph.node(checked.base)) }.read(visitor, hint)
            }
            NodeKind::Never => Err(refused("no value is allowed here")),
            _ => match (PlanDe { de, at }).look_ahead()? {
                Ahead::Scalar(scalar) => scalar.give(visitor),
                Ahead::AsIs(text) => text_reader(text).deserialize_any(visitor).map_err(nested),
                Ahead::Value { text, node } => {
                    let again = at.cx.read_again(1);
                    let mut de = text_reader(text);
                    let out = PlanDe { de: &mut de, at: &at.along(node) }.read(visitor, hint);
                    at.cx.again.set(again);
                    out.map_err(nested)
                }
            },
        }
    }

    /// Reads a value for a type that asked for a scalar. This code is compiled once, not for each type.
    #[inline(never)]
    pub(super) fn read_scalar(self, hint: Hint) -> Result<Scalar<'de>, D::Error> {
        let PlanDe { de, at } = self;
        match &at.node.kind {
            NodeKind::Int(spec) if spec.wide => PlanDe { de, at }.wide(spec, hint),
            NodeKind::Null => de.deserialize_any(ScalarVisitor { at, hint }),
            kind if kind.is_scalar() && at.cx.reads_digits() => PlanDe { de, at }.carefully(hint),
            kind if kind.is_scalar() => de.deserialize_any(ScalarVisitor { at, hint }),
            _ => PlanDe { de, at }.other_scalar(hint),
        }
    }

    #[inline(never)]
    fn other_scalar(self, hint: Hint) -> Result<Scalar<'de>, D::Error> {
        let PlanDe { de, at } = self;
        let scalar = ScalarVisitor { at, hint };
        match &at.node.kind {
            NodeKind::Any if hint == Hint::Signed128 => de.deserialize_i128(scalar),
            NodeKind::Any if hint == Hint::Unsigned128 => de.deserialize_u128(scalar),
            NodeKind::Any if at.cx.reads_digits() => {
                let text = PlanDe { de, at }.any_carefully()?;
                text_reader(text).deserialize_any(scalar).map_err(nested)
            }
            NodeKind::Any => {
                if !at.is_exact() {
                    at.cx.note_any(at);
                }
                de.deserialize_any(scalar)
            }
            NodeKind::Nullable(inner) => {
                let at = &at.along(at.cx.graph.node(*inner));
                de.deserialize_option(NullableScalar { at, hint })
            }
            NodeKind::Checked(checked) if at.cx.is_silent() => {
                PlanDe { de, at: &at.along(at.cx.graph.node(checked.base)) }.read_scalar(hint)
            }
            NodeKind::Never | NodeKind::Array(_) | NodeKind::Object(_) => Err(refused("type")),
            _ => match (PlanDe { de, at }).look_ahead()? {
                Ahead::Scalar(scalar) => Ok(scalar),
                Ahead::AsIs(text) => {
                    let at = &at.along(at.cx.graph.node(at.cx.graph.any));
                    let scalar = ScalarVisitor { at, hint };
                    text_reader(text).deserialize_any(scalar).map_err(nested)
                }
                Ahead::Value { text, node } => {
                    let again = at.cx.read_again(1);
                    let mut de = text_reader(text);
                    let out = PlanDe { de: &mut de, at: &at.along(node) }.read_scalar(hint);
                    at.cx.again.set(again);
                    out.map_err(nested)
                }
            },
        }
    }

    /// Reads a value that the type ignores. `serde_json` skips such a value without pairing its surrogates, but all other readers refuse a
    /// lone surrogate.
    #[inline(never)]
    fn ignore(self) -> Result<(), D::Error> {
        let raw: &'de RawValue = Deserialize::deserialize(self.de)?;
        if raw.get().contains("\\u") {
            Document::parse(raw.get()).map_err(nested)?;
        }
        Ok(())
    }

    #[inline]
    fn read_enum<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        match &at.node.kind {
            // `serde_json` uses neither the name nor the variants of the enum, so both are left empty.
            NodeKind::Any if at.is_exact() => de.deserialize_enum("", &[], visitor),
            NodeKind::Any => PlanDe { de, at }.read_any_enum(visitor),
            NodeKind::External(external) => de.deserialize_any(ExternalVisitor { visitor, at, external }),
            NodeKind::Enum(_) | NodeKind::Str(_) => {
                PlanDe { de, at }.read_scalar(Hint::Enum)?.give_name(visitor)
            }
            _ => PlanDe { de, at }.read_other_enum(visitor),
        }
    }

    #[inline(never)]
    fn read_any_enum<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        if at.cx.reads_digits() {
            let text = PlanDe { de, at }.any_carefully()?;
            return text_reader(text).deserialize_enum("", &[], visitor).map_err(nested);
        }
        at.cx.note_any(at);
        de.deserialize_enum("", &[], visitor)
    }

    #[inline(never)]
    fn read_other_enum<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let at = self.at;
        let (node, text) = ahead(at, self.de)?;
        let again = at.cx.read_again(1);
        let mut de = text_reader(text);
        let out = PlanDe { de: &mut de, at: &at.along(node) }.read_enum(visitor);
        at.cx.again.set(again);
        out.map_err(nested)
    }
}

/// Defines methods such as `deserialize_u64`. For arguments that fit exactly, these methods call `serde_json` directly, which is faster.
macro_rules! requests {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            if self.at.is_exact() { self.de.$method(visitor) } else { self.read_scalar(Hint::Any)?.give(visitor) }
        }
    )*};
}

/// Defines methods that always read a scalar by its schema node.
macro_rules! scalars {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.read_scalar(Hint::Any)?.give(visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for PlanDe<'_, D> {
    type Error = D::Error;

    requests! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f64 deserialize_str deserialize_string
    }

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(visitor, Hint::Any)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.read_enum(visitor)
    }

    #[inline]
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read_scalar(Hint::Signed128)?.give(visitor)
    }

    #[inline]
    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read_scalar(Hint::Unsigned128)?.give(visitor)
    }

    /// Checks the value against the schema, although the type ignores the value.
    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(visitor, Hint::Ignored)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        match &at.node.kind {
            NodeKind::Any | NodeKind::Null => de.deserialize_option(OptionVisitor { visitor, at }),
            NodeKind::Nullable(inner) => {
                let at = &at.along(at.cx.graph.node(*inner));
                de.deserialize_option(OptionVisitor { visitor, at })
            }
            // Each null that stands for an absent key was removed earlier. Any other null is read as a value of the type inside the
            // `Option`.
            _ => visitor.visit_some(PlanDe { de, at }),
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        if self.at.collects() && name == CHECKED {
            return visitor.visit_some(self);
        }
        match &self.at.node.kind {
            NodeKind::Any if self.at.is_exact() || name == RAW_VALUE => {
                self.de.deserialize_newtype_struct(name, visitor)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read_map(visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.read_map(visitor)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.read_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.read_seq(visitor)
    }

    scalars! { deserialize_f32 deserialize_char deserialize_unit }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.deserialize_unit(visitor)
    }

    forward_to_deserialize_any! {
        bytes byte_buf identifier
    }
}

/// Visits a value that may be null, for `deserialize_option`.
struct OptionVisitor<'c, V> {
    visitor: V,
    at: &'c ValuePosition<'c>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for OptionVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(PlanDe { de, at: self.at })
    }
}

/// Visits a value that may be null, for a type that did not call `deserialize_option`.
struct NullableVisitor<'c, V> {
    visitor: V,
    at: &'c ValuePosition<'c>,
    hint: Hint,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for NullableVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<V::Value, D::Error> {
        PlanDe { de, at: self.at }.read(self.visitor, self.hint)
    }
}

/// Visits a value that may be null, for a type that asked for a scalar.
struct NullableScalar<'c> {
    at: &'c ValuePosition<'c>,
    hint: Hint,
}

impl<'de> Visitor<'de> for NullableScalar<'_> {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar or null")
    }

    fn visit_none<E: Error>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<Scalar<'de>, D::Error> {
        PlanDe { de, at: self.at }.read_scalar(self.hint)
    }
}
