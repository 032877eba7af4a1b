//! Reads arguments a second time, to find the numbers that lost digits as floats.

use super::context::{nested, refused};
use super::scalar::{Scalar, ScalarVisitor};
use super::{Hint, PlanDe, ValuePosition};
use crate::args::coercion::{CoercedValue, CoercionRule};
use crate::args::document::{Doc, Document, Shape};
use crate::args::plan::NodeKind;
use crate::args::rounding;
use crate::args::scalar::Num;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

impl<'de, D: Deserializer<'de>> PlanDe<'_, D> {
    /// Reads a scalar. A number that loses digits as a float is recorded if the schema accepts any number, and is refused if the schema
    /// demands an integer or a text.
    #[cold]
    pub(super) fn carefully(self, hint: Hint) -> Result<Scalar<'de>, D::Error> {
        let PlanDe { de, at } = self;
        let raw: &'de RawValue = Deserialize::deserialize(de)?;
        let token = raw.get();
        let scalar = ScalarVisitor { at, hint };
        let is_number = token.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if let Some(Num::Float(float)) = Num::of_token(token).filter(|_| is_number) {
            match &at.node.kind {
                NodeKind::Num(spec) if spec.takes(Num::Float(float)) => {
                    return Ok(scalar.give_float(spec, token, float));
                }
                NodeKind::Int(_) | NodeKind::Str(_) if rounding::is_rounded(token, float) => {
                    return Err(refused("rounded"));
                }
                _ => return scalar.visit_f64(float),
            }
        }
        serde_json::Deserializer::from_str(token).deserialize_any(scalar).map_err(nested)
    }

    #[cold]
    pub(super) fn any_carefully(self) -> Result<&'de str, D::Error> {
        let PlanDe { de, at } = self;
        let raw: &'de RawValue = Deserialize::deserialize(de)?;
        let document = Document::parse(raw.get()).map_err(nested)?;
        note_rounded(at, &document.root);
        Ok(raw.get())
    }
}

fn note_rounded(at: &ValuePosition<'_>, doc: &Doc<'_>) {
    match &doc.shape {
        Shape::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                note_rounded(&at.index(index, at.node), item);
            }
        }
        Shape::Object(entries) => {
            for (key, item) in entries {
                note_rounded(&at.key(key, false, at.node), item);
            }
        }
        Shape::Number => {
            // The float that `serde_json` reads is not always the nearest to the digits, so it is compared with the digits.
            if let serde_json::Value::Number(number) = doc.to_value()
                && number.is_f64()
                && let Some(float) = number.as_f64()
                && rounding::is_rounded(doc.raw, float)
            {
                at.cx.record(
                    at,
                    CoercedValue::Text(doc.raw),
                    CoercedValue::Float(float),
                    CoercionRule::NumberRounded,
                );
            }
        }
        _ => {}
    }
}
