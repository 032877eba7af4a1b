//! Reads scalars: checks them, and coerces them where the `Rules` of their schema node allow it.

use super::context::{ValuePosition, refused};
use super::object::KeyText;
use super::{Hint, PlanDe};
use crate::args::coercion::{CoercedValue, CoercionRule};
use crate::args::plan::{IntSpec, NodeKind, NumSpec, PickedWord};
use crate::args::policy::Rules;
use crate::args::rounding;
use crate::args::scalar::{
    CoercedScalar, Int, Num, coerced_bool, coerced_float, coerced_int, coerced_num, int_from_text,
    number_text,
};
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};
use std::fmt;

/// A scalar after coercion. Scalars are read into this enum first, so that the code is compiled once, not for each type.
pub(super) enum Scalar<'de> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Wide(i128),
    WideUnsigned(u128),
    Float(f64),
    Borrowed(&'de str),
    Text(String),
}

impl<'de> Scalar<'de> {
    #[inline]
    pub(super) fn give<V: Visitor<'de>, E: Error>(self, visitor: V) -> Result<V::Value, E> {
        match self {
            Scalar::Null => visitor.visit_unit(),
            Scalar::Bool(b) => visitor.visit_bool(b),
            Scalar::Signed(v) => visitor.visit_i64(v),
            Scalar::Unsigned(v) => visitor.visit_u64(v),
            Scalar::Wide(v) => visitor.visit_i128(v),
            Scalar::WideUnsigned(v) => visitor.visit_u128(v),
            Scalar::Float(f) => visitor.visit_f64(f),
            Scalar::Borrowed(text) => visitor.visit_borrowed_str(text),
            Scalar::Text(text) => visitor.visit_string(text),
        }
    }

    #[inline]
    pub(super) fn give_name<V: Visitor<'de>, E: Error>(self, visitor: V) -> Result<V::Value, E> {
        match self {
            Scalar::Borrowed(name) => visitor.visit_enum(BorrowedStrDeserializer::new(name)),
            Scalar::Text(name) => visitor.visit_enum(StrDeserializer::new(&name)),
            _ => Err(refused("type")),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct ScalarVisitor<'c> {
    pub(super) at: &'c ValuePosition<'c>,
    pub(super) hint: Hint,
}

type ScalarResult<'de, E> = Result<Scalar<'de>, E>;

impl ScalarVisitor<'_> {
    #[inline]
    fn give_int<'de>(self, int: Int) -> Scalar<'de> {
        match int {
            Int::Signed(v) => match u64::try_from(v) {
                Ok(v) => Scalar::Unsigned(v),
                Err(_) => Scalar::Signed(v),
            },
            Int::Unsigned(v) => Scalar::Unsigned(v),
            // Types that accept any value, such as `Value`, often cannot hold integers beyond 64 bits. So they get the digits as text.
            wide if matches!(self.hint, Hint::Any | Hint::Ignored) => Scalar::Text(wide.to_string()),
            Int::Wide(v) => Scalar::Wide(v),
            Int::WideUnsigned(v) => Scalar::WideUnsigned(v),
        }
    }

    fn give_coerced<'de, E: Error>(
        self,
        spec: &IntSpec,
        from: CoercedValue<'_>,
        CoercedScalar { value, rule }: CoercedScalar<Int>,
    ) -> ScalarResult<'de, E> {
        if !matches!(value, Int::Signed(v) if spec.surely_takes(v)) && !spec.takes(value) {
            return Err(refused("range"));
        }
        self.at.cx.record(self.at, from, value.into(), rule);
        Ok(self.give_int(value))
    }

    fn text_as_int<'de, E: Error>(self, spec: &IntSpec, text: &str) -> ScalarResult<'de, E> {
        let rules = self.at.node.rules;
        let rules = if self.at.cx.is_canonical() { rules.with(Rules::TEXT_INTEGER) } else { rules };
        let Some(CoercedScalar { value, rule }) = coerced_int(text, rules) else {
            return Err(refused("type"));
        };
        let Some(value) = value.int() else { return Err(refused("type")) };
        self.give_coerced(spec, CoercedValue::Text(text), CoercedScalar { value, rule })
    }

    fn text_as_num<'de, E: Error>(self, spec: &NumSpec, text: &str) -> ScalarResult<'de, E> {
        let coerced = coerced_num(text, self.at.node.rules);
        let Some(CoercedScalar { value: Some((number, digits)), rule }) = coerced else {
            return Err(refused("type"));
        };
        if !spec.takes(number) {
            return Err(refused("number"));
        }
        match number {
            Num::Signed(v) => {
                self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Signed(v), rule);
                match spec.rounded_whole(v.into()) {
                    Some(float) => Ok(self.give_rounded(CoercedValue::Signed(v), float)),
                    None => Ok(Scalar::Signed(v)),
                }
            }
            Num::Unsigned(v) => {
                self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Unsigned(v), rule);
                match spec.rounded_whole(v.into()) {
                    Some(float) => Ok(self.give_rounded(CoercedValue::Unsigned(v), float)),
                    None => Ok(Scalar::Unsigned(v)),
                }
            }
            Num::Float(f) => {
                self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Float(f), rule);
                Ok(self.give_float(spec, digits, f))
            }
        }
    }

    #[cold]
    fn give_rounded<'de>(self, from: CoercedValue<'_>, to: f64) -> Scalar<'de> {
        self.at.cx.record(self.at, from, CoercedValue::Float(to), CoercionRule::NumberRounded);
        Scalar::Float(to)
    }

    pub(super) fn give_float<'de>(self, spec: &NumSpec, digits: &str, float: f64) -> Scalar<'de> {
        match spec.rounded(digits, float) {
            Some(to) => self.give_rounded(CoercedValue::Text(digits), to),
            None => Scalar::Float(float),
        }
    }

    #[cold]
    fn num_as_text<'de, E: Error>(self, from: Value) -> ScalarResult<'de, E> {
        let NodeKind::Str(spec) = &self.at.node.kind else { return Err(refused("type")) };
        if !spec.takes_number(&from, self.at.node.rules) {
            return Err(refused("type"));
        }
        let Some(text) = number_text(&from) else { return Err(refused("type")) };
        if !spec.takes(&text) {
            return Err(refused("text"));
        }
        self.at.cx.record(
            self.at,
            CoercedValue::Value(from.into()),
            CoercedValue::Text(&text),
            CoercionRule::NumberToText,
        );
        Ok(Scalar::Text(text))
    }

    #[inline(never)]
    fn coerce_text<'de, E: Error>(self, text: &str) -> ScalarResult<'de, E> {
        let rules = self.at.node.rules;
        match &self.at.node.kind {
            NodeKind::Int(spec) => self.text_as_int(spec, text),
            NodeKind::Num(spec) => self.text_as_num(spec, text),
            NodeKind::Bool => match coerced_bool(text, rules) {
                Some(CoercedScalar { value, rule }) => {
                    self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Bool(value), rule);
                    Ok(Scalar::Bool(value))
                }
                None => Err(refused("boolean")),
            },
            NodeKind::Enum(words) => match words.pick(text, rules) {
                Some(PickedWord { word, is_coerced }) => {
                    if is_coerced {
                        let (from, to) = (CoercedValue::Text(text), CoercedValue::Text(word));
                        self.at.cx.record(self.at, from, to, CoercionRule::FoldEnum);
                    }
                    Ok(Scalar::Text(word.to_owned()))
                }
                None => Err(refused("enum")),
            },
            _ => Err(refused("type")),
        }
    }

    /// Returns whether this text is accepted unchanged. While findings are collected, the Rust type reports wrong formats, because its
    /// errors are more precise.
    #[inline]
    fn takes_text(&self, text: &str) -> bool {
        match &self.at.node.kind {
            NodeKind::Str(spec) => spec.takes(text) || self.at.collects() && spec.is_for_the_type(text),
            NodeKind::Enum(words) => words.iter().any(|w| w == text),
            NodeKind::Any => true,
            _ => false,
        }
    }
}

impl<'de> Visitor<'de> for ScalarVisitor<'_> {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar")
    }

    fn visit_unit<E: Error>(self) -> ScalarResult<'de, E> {
        match self.at.node.kind {
            NodeKind::Null | NodeKind::Any => Ok(Scalar::Null),
            _ => Err(refused("null")),
        }
    }

    fn visit_bool<E: Error>(self, b: bool) -> ScalarResult<'de, E> {
        match self.at.node.kind {
            NodeKind::Bool | NodeKind::Any => Ok(Scalar::Bool(b)),
            _ => Err(refused("type")),
        }
    }

    #[inline]
    fn visit_i64<E: Error>(self, v: i64) -> ScalarResult<'de, E> {
        match &self.at.node.kind {
            NodeKind::Int(spec) => {
                if spec.surely_takes(v) || spec.takes(Int::Signed(v)) {
                    Ok(Scalar::Signed(v))
                } else {
                    Err(refused("range"))
                }
            }
            NodeKind::Num(spec) => {
                if spec.takes(Num::Signed(v)) {
                    match spec.rounded_whole(v.into()) {
                        Some(float) => Ok(self.give_rounded(CoercedValue::Signed(v), float)),
                        None => Ok(Scalar::Signed(v)),
                    }
                } else {
                    Err(refused("range"))
                }
            }
            NodeKind::Any => Ok(Scalar::Signed(v)),
            _ => self.num_as_text(v.into()),
        }
    }

    #[inline]
    fn visit_u64<E: Error>(self, v: u64) -> ScalarResult<'de, E> {
        match &self.at.node.kind {
            NodeKind::Int(spec) => {
                if i64::try_from(v).is_ok_and(|v| spec.surely_takes(v)) || spec.takes(Int::Unsigned(v)) {
                    Ok(Scalar::Unsigned(v))
                } else {
                    Err(refused("range"))
                }
            }
            NodeKind::Num(spec) => {
                if spec.takes(Num::Unsigned(v)) {
                    match spec.rounded_whole(v.into()) {
                        Some(float) => Ok(self.give_rounded(CoercedValue::Unsigned(v), float)),
                        None => Ok(Scalar::Unsigned(v)),
                    }
                } else {
                    Err(refused("range"))
                }
            }
            NodeKind::Any => Ok(Scalar::Unsigned(v)),
            _ => self.num_as_text(v.into()),
        }
    }

    /// Checks no range: integers of 128 bits arrive only where the schema accepts any value.
    fn visit_i128<E: Error>(self, v: i128) -> ScalarResult<'de, E> {
        Ok(Scalar::Wide(v))
    }

    fn visit_u128<E: Error>(self, v: u128) -> ScalarResult<'de, E> {
        Ok(Scalar::WideUnsigned(v))
    }

    fn visit_f64<E: Error>(self, f: f64) -> ScalarResult<'de, E> {
        match &self.at.node.kind {
            NodeKind::Num(spec) if spec.takes(Num::Float(f)) => {
                self.at.cx.note_float(f, spec.single);
                Ok(Scalar::Float(f))
            }
            NodeKind::Num(_) => Err(refused("range")),
            NodeKind::Any => Ok(Scalar::Float(f)),
            NodeKind::Int(spec) => match coerced_float(f, self.at.node.rules) {
                Some(int) => {
                    self.at.cx.note_float(f, false);
                    self.give_coerced(spec, CoercedValue::Float(f), int)
                }
                None => Err(refused("type")),
            },
            _ => {
                self.at.cx.note_float(f, false);
                self.num_as_text(f.into())
            }
        }
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> ScalarResult<'de, E> {
        if !self.takes_text(text) {
            return self.coerce_text(text);
        }
        Ok(Scalar::Borrowed(text))
    }

    #[inline]
    fn visit_str<E: Error>(self, text: &str) -> ScalarResult<'de, E> {
        if !self.takes_text(text) {
            return self.coerce_text(text);
        }
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> ScalarResult<'de, E> {
        self.visit_str(&text)
    }

    /// Reads a number in the form that `serde_json` uses with the feature `arbitrary_precision`: a map from a private name to the digits.
    /// Any crate of a program can enable this feature.
    #[cold]
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> ScalarResult<'de, A::Error> {
        const NUMBER: &str = "$serde_json::private::Number";
        if access.next_key_seed(KeyText)?.as_deref() != Some(NUMBER) {
            return Err(refused("type"));
        }
        let digits = access.next_value_seed(KeyText)?;
        match (digits.parse::<u64>(), digits.parse::<i64>(), digits.parse::<f64>()) {
            (Ok(v), ..) => self.visit_u64(v),
            (_, Ok(v), _) => self.visit_i64(v),
            (.., Ok(f)) if f.is_finite() => self.visit_f64(f),
            _ => Err(refused("range")),
        }
    }
}

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    /// Reads an integer of up to 128 bits from its text, because the numbers of `serde_json` end at 64 bits.
    #[inline(never)]
    pub(super) fn wide(self, spec: &IntSpec, hint: Hint) -> ScalarResult<'de, D::Error> {
        let PlanDe { de, at } = self;
        let raw: &'de RawValue = Deserialize::deserialize(de)?;
        let scalar = ScalarVisitor { at, hint };
        let token = raw.get();
        if token.starts_with('"') {
            let text: String = serde_json::from_str(token).map_err(super::context::nested)?;
            return scalar.text_as_int(spec, &text);
        }
        if token.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
            return match int_from_text(token).int() {
                Some(int) if spec.takes(int) => Ok(scalar.give_int(int)),
                _ => Err(refused("range")),
            };
        }
        match token.parse::<f64>() {
            Ok(f) if rounding::is_safe(token) || !rounding::is_rounded(token, f) => scalar.visit_f64(f),
            _ => Err(refused("type")),
        }
    }
}
