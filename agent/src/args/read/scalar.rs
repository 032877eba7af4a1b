//! Scalars: checked, coerced where the rules of the node allow.

use super::context::{ValuePosition, refused};
use super::object::KeyText;
use super::{Hint, PlanDe};
use crate::args::coercion::{CoercedValue, CoercionRule};
use crate::args::plan::{IntSpec, NodeKind, NumSpec, PickedWord};
use crate::args::policy::Rules;
use crate::args::rounding;
use crate::args::scalar::{Int, Num, bool_from_text, few_digits, int_from_f64, int_from_text, number_text};
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};
use std::fmt;

pub(super) struct ScalarVisitor<'c, V> {
    pub(super) visitor: V,
    pub(super) at: &'c ValuePosition<'c>,
    pub(super) hint: Hint,
}

impl<'de, V: Visitor<'de>> ScalarVisitor<'_, V> {
    #[inline]
    fn give_int<E: Error>(self, int: Int) -> Result<V::Value, E> {
        match int {
            Int::Signed(v) => match u64::try_from(v) {
                Ok(v) => self.visitor.visit_u64(v),
                Err(_) => self.visitor.visit_i64(v),
            },
            Int::Unsigned(v) => self.visitor.visit_u64(v),
            // A type that accepts anything, such as `Value`, may not hold so many digits: it gets them as text.
            wide if matches!(self.hint, Hint::Any | Hint::Ignored) => {
                self.visitor.visit_string(wide.to_string())
            }
            Int::Wide(v) => self.visitor.visit_i128(v),
            Int::WideUnsigned(v) => self.visitor.visit_u128(v),
        }
    }

    fn coerced_int<E: Error>(
        self,
        spec: &IntSpec,
        int: Int,
        from: CoercedValue<'_>,
        rule: CoercionRule,
    ) -> Result<V::Value, E> {
        if !matches!(int, Int::Signed(v) if spec.surely_takes(v)) && !spec.takes(int) {
            return Err(refused("range"));
        }
        self.at.cx.record(self.at, from, int.into(), rule);
        self.give_int(int)
    }

    /// Reads text where an integer is expected.
    fn text_as_int<E: Error>(self, spec: &IntSpec, text: &str) -> Result<V::Value, E> {
        if !self.at.node.rules.has(Rules::TEXT_INTEGER) && !self.at.cx.is_canonical() {
            return Err(refused("type"));
        }
        let rule = CoercionRule::TextToInteger;
        if let Some(few) = few_digits(text).filter(|v| spec.surely_takes(*v)) {
            self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Signed(few), rule);
            return self.visitor.visit_i64(few);
        }
        match int_from_text(text).int() {
            Some(int) => self.coerced_int(spec, int, CoercedValue::Text(text), rule),
            None => Err(refused("type")),
        }
    }

    fn text_as_num<E: Error>(self, spec: &NumSpec, text: &str) -> Result<V::Value, E> {
        let Some(number) = Num::of_text(text).filter(|n| spec.takes(*n)) else {
            return Err(refused("number"));
        };
        let rule = CoercionRule::TextToNumber;
        match number {
            Num::Signed(v) => {
                self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Signed(v), rule);
                match spec.rounded_whole(v.into()) {
                    Some(float) => self.give_rounded(CoercedValue::Signed(v), float),
                    None => self.visitor.visit_i64(v),
                }
            }
            Num::Unsigned(v) => {
                self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Unsigned(v), rule);
                match spec.rounded_whole(v.into()) {
                    Some(float) => self.give_rounded(CoercedValue::Unsigned(v), float),
                    None => self.visitor.visit_u64(v),
                }
            }
            Num::Float(f) => {
                self.at.cx.record(self.at, CoercedValue::Text(text), CoercedValue::Float(f), rule);
                self.give_float(spec, text, f)
            }
        }
    }

    /// Passes a number on that lost digits, and records it.
    #[cold]
    fn give_rounded<E: Error>(self, from: CoercedValue<'_>, to: f64) -> Result<V::Value, E> {
        self.at.cx.record(self.at, from, CoercedValue::Float(to), CoercionRule::NumberRounded);
        self.visitor.visit_f64(to)
    }

    /// Passes a float on that was read from these digits.
    pub(super) fn give_float<E: Error>(
        self,
        spec: &NumSpec,
        digits: &str,
        float: f64,
    ) -> Result<V::Value, E> {
        match spec.rounded(digits, float) {
            Some(to) => self.give_rounded(CoercedValue::Text(digits), to),
            None => self.visitor.visit_f64(float),
        }
    }

    /// Reads a number where text is expected.
    #[cold]
    fn num_as_text<E: Error>(self, from: Value) -> Result<V::Value, E> {
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
        self.visitor.visit_string(text)
    }

    /// Reads text that is not simply passed on.
    #[inline(never)]
    fn coerce_text<E: Error>(self, text: &str) -> Result<V::Value, E> {
        let rules = self.at.node.rules;
        match &self.at.node.kind {
            NodeKind::Int(spec) => self.text_as_int(spec, text),
            NodeKind::Num(spec) if rules.has(Rules::TEXT_NUMBER) => self.text_as_num(spec, text),
            NodeKind::Bool => match bool_from_text(text, rules) {
                Some(b) => {
                    self.at.cx.record(
                        self.at,
                        CoercedValue::Text(text),
                        CoercedValue::Bool(b),
                        CoercionRule::TextToBoolean,
                    );
                    self.visitor.visit_bool(b)
                }
                None => Err(refused("boolean")),
            },
            NodeKind::Enum(words) => match words.pick(text, rules) {
                Some(PickedWord { word, is_coerced }) => {
                    if is_coerced {
                        let (from, to) = (CoercedValue::Text(text), CoercedValue::Text(word));
                        self.at.cx.record(self.at, from, to, CoercionRule::FoldEnum);
                    }
                    match self.hint {
                        Hint::Enum => self.visitor.visit_enum(StrDeserializer::new(word)),
                        _ => self.visitor.visit_str(word),
                    }
                }
                None => Err(refused("enum")),
            },
            _ => Err(refused("type")),
        }
    }

    /// Whether this text is accepted unchanged.
    #[inline]
    fn takes_text(&self, text: &str) -> bool {
        match &self.at.node.kind {
            NodeKind::Str(spec) => spec.takes(text) || self.at.cx.collects() && spec.is_for_the_type(text),
            NodeKind::Enum(words) => words.iter().any(|w| w == text),
            _ => false,
        }
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ScalarVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        match self.at.node.kind {
            NodeKind::Null => self.visitor.visit_unit(),
            _ => Err(refused("null")),
        }
    }

    fn visit_bool<E: Error>(self, b: bool) -> Result<V::Value, E> {
        match self.at.node.kind {
            NodeKind::Bool => self.visitor.visit_bool(b),
            _ => Err(refused("type")),
        }
    }

    #[inline]
    fn visit_i64<E: Error>(self, v: i64) -> Result<V::Value, E> {
        match &self.at.node.kind {
            NodeKind::Int(spec) => {
                if spec.surely_takes(v) || spec.takes(Int::Signed(v)) {
                    self.visitor.visit_i64(v)
                } else {
                    Err(refused("range"))
                }
            }
            NodeKind::Num(spec) => {
                if spec.takes(Num::Signed(v)) {
                    match spec.rounded_whole(v.into()) {
                        Some(float) => self.give_rounded(CoercedValue::Signed(v), float),
                        None => self.visitor.visit_i64(v),
                    }
                } else {
                    Err(refused("range"))
                }
            }
            _ => self.num_as_text(v.into()),
        }
    }

    #[inline]
    fn visit_u64<E: Error>(self, v: u64) -> Result<V::Value, E> {
        match &self.at.node.kind {
            NodeKind::Int(spec) => {
                if i64::try_from(v).is_ok_and(|v| spec.surely_takes(v)) || spec.takes(Int::Unsigned(v)) {
                    self.visitor.visit_u64(v)
                } else {
                    Err(refused("range"))
                }
            }
            NodeKind::Num(spec) => {
                if spec.takes(Num::Unsigned(v)) {
                    match spec.rounded_whole(v.into()) {
                        Some(float) => self.give_rounded(CoercedValue::Unsigned(v), float),
                        None => self.visitor.visit_u64(v),
                    }
                } else {
                    Err(refused("range"))
                }
            }
            _ => self.num_as_text(v.into()),
        }
    }

    fn visit_f64<E: Error>(self, f: f64) -> Result<V::Value, E> {
        match &self.at.node.kind {
            NodeKind::Num(spec) if spec.takes(Num::Float(f)) => {
                self.at.cx.note_float(f, spec.single);
                self.visitor.visit_f64(f)
            }
            NodeKind::Num(_) => Err(refused("range")),
            NodeKind::Int(spec) => match int_from_f64(f) {
                Some(int) if self.at.node.rules.has(Rules::FLOAT_INTEGER) => {
                    self.at.cx.note_float(f, false);
                    self.coerced_int(spec, int, CoercedValue::Float(f), CoercionRule::FloatToInteger)
                }
                _ => Err(refused("type")),
            },
            _ => {
                self.at.cx.note_float(f, false);
                self.num_as_text(f.into())
            }
        }
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        if !self.takes_text(text) {
            return self.coerce_text(text);
        }
        match self.hint {
            Hint::Enum => self.visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            _ => self.visitor.visit_borrowed_str(text),
        }
    }

    #[inline]
    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        if !self.takes_text(text) {
            return self.coerce_text(text);
        }
        match self.hint {
            Hint::Enum => self.visitor.visit_enum(StrDeserializer::new(text)),
            _ => self.visitor.visit_str(text),
        }
    }

    fn visit_string<E: Error>(self, text: String) -> Result<V::Value, E> {
        self.visit_str(&text)
    }

    /// With its feature `arbitrary_precision`, which any crate of a program can enable, `serde_json` represents a number as a map
    /// with one entry: its digits under a name that only `serde_json` can write.
    #[cold]
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<V::Value, A::Error> {
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
    /// Reads 128-bit integers from the token, because `serde_json`'s numbers end at 64 bits.
    #[inline(never)]
    pub(super) fn wide<V: Visitor<'de>>(
        self,
        visitor: V,
        spec: &IntSpec,
        hint: Hint,
    ) -> Result<V::Value, D::Error> {
        let PlanDe { de, at } = self;
        let raw: &'de RawValue = Deserialize::deserialize(de)?;
        let scalar = ScalarVisitor { visitor, at, hint };
        let token = raw.get();
        if token.starts_with('"') {
            let text: String = serde_json::from_str(token).map_err(super::context::nested)?;
            return scalar.text_as_int(spec, &text);
        }
        if token.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
            return match int_from_text(token).int() {
                Some(int) if spec.takes(int) => scalar.give_int(int),
                _ => Err(refused("range")),
            };
        }
        match token.parse::<f64>() {
            Ok(f) if rounding::is_safe(token) || !rounding::is_rounded(token, f) => scalar.visit_f64(f),
            _ => Err(refused("type")),
        }
    }
}
