//! A value of any kind: which visitor reads it, by the node and by what the type asks for.

use super::context::refused;
use super::external::ExternalVisitor;
use super::object::{ObjectNode, ObjectVisitor};
use super::scalar::ScalarVisitor;
use super::sequence::SequenceVisitor;
use super::{Hint, MAX_DEPTH, PlanDe, ValuePosition};
use crate::args::hooks::CHECKED;
use crate::args::plan::{IntSpec, NodeKind};
use serde::de::{Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    #[inline]
    pub(super) fn read<V: Visitor<'de>>(self, visitor: V, hint: Hint) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        match &at.node.kind {
            // Arguments that fit exactly are read so.
            NodeKind::Any if hint == Hint::Any && !at.cx.reads_digits() => {
                if !at.cx.is_exact() {
                    at.cx.note_any(at);
                }
                de.deserialize_any(visitor)
            }
            // Apart from the rest, whose large frame would cost each scalar.
            NodeKind::Int(IntSpec { wide: false, .. })
            | NodeKind::Bool
            | NodeKind::Num(_)
            | NodeKind::Str(_)
            | NodeKind::Enum(_) => {
                if at.cx.reads_digits() {
                    return PlanDe { de, at }.carefully(visitor, hint);
                }
                de.deserialize_any(ScalarVisitor { visitor, at, hint })
            }
            _ => PlanDe { de, at }.read_other(visitor, hint),
        }
    }

    #[inline(never)]
    fn read_other<V: Visitor<'de>>(self, visitor: V, hint: Hint) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        match &at.node.kind {
            NodeKind::Any => match hint {
                Hint::Any => PlanDe { de, at }.any_carefully(visitor),
                Hint::Ignored => de.deserialize_ignored_any(visitor),
                // serde_json asks neither for the name nor for the variants.
                Hint::Enum => de.deserialize_enum("", &[], visitor),
                Hint::Signed128 => de.deserialize_i128(visitor),
                Hint::Unsigned128 => de.deserialize_u128(visitor),
            },
            NodeKind::Int(spec) if spec.wide => PlanDe { de, at }.wide(visitor, spec, hint),
            NodeKind::Null
            | NodeKind::Bool
            | NodeKind::Int(_)
            | NodeKind::Num(_)
            | NodeKind::Str(_)
            | NodeKind::Enum(_) => de.deserialize_any(ScalarVisitor { visitor, at, hint }),
            NodeKind::Object(_) | NodeKind::Array(_) if at.depth >= MAX_DEPTH => Err(refused("too deep")),
            NodeKind::Object(object) => {
                let object = ObjectNode::Known(object);
                de.deserialize_map(ObjectVisitor { visitor, at, object })
            }
            NodeKind::Tagged { .. } if at.depth < MAX_DEPTH => match ObjectNode::of(at) {
                Some(object) => de.deserialize_map(ObjectVisitor { visitor, at, object }),
                None => PlanDe { de, at }.buffered(visitor, hint),
            },
            NodeKind::Array(array) if array.unique && !at.cx.is_silent() => {
                PlanDe { de, at }.unique(visitor, array)
            }
            NodeKind::Array(array) => de.deserialize_seq(SequenceVisitor { visitor, at, array }),
            NodeKind::Nullable(inner) => {
                let at = &at.along(at.cx.graph.node(*inner));
                de.deserialize_option(NullableVisitor { visitor, at, hint })
            }
            NodeKind::External(external) if hint == Hint::Enum => {
                de.deserialize_any(ExternalVisitor { visitor, at, external })
            }
            NodeKind::Checked(checked) => PlanDe { de, at }.checked(visitor, checked, hint),
            NodeKind::Never => Err(refused("no value is allowed here")),
            NodeKind::Const(_) | NodeKind::Tagged { .. } | NodeKind::External(_) | NodeKind::Union { .. } => {
                PlanDe { de, at }.buffered(visitor, hint)
            }
        }
    }
}

/// Passes a request on as it is, where it is known that the arguments fit exactly: `serde_json` then does not have to find out what it
/// reads. A type for which that makes a difference refuses, and is read along the plan.
macro_rules! requests {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            if self.at.cx.is_exact() { self.de.$method(visitor) } else { self.read(visitor, Hint::Any) }
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
        self.read(visitor, Hint::Enum)
    }

    #[inline]
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(visitor, Hint::Signed128)
    }

    #[inline]
    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(visitor, Hint::Unsigned128)
    }

    /// The type ignores the value, but the plan still checks it.
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
            // A null that means absent was cut out with its key; any other is refused below.
            _ => visitor.visit_some(PlanDe { de, at }),
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        if self.at.cx.collects() && name == CHECKED {
            return visitor.visit_some(self);
        }
        match &self.at.node.kind {
            // serde_json's RawValue is a newtype with a name of its own.
            NodeKind::Any => self.de.deserialize_newtype_struct(name, visitor),
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

    forward_to_deserialize_any! {
        f32 char bytes byte_buf unit unit_struct identifier
    }
}

/// Visits a nullable node for a type that asked for an option.
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

/// Visits a nullable node for a type that did not ask for an option: serde's buffer, a `Value`.
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
