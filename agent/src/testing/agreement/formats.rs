//! The independent reader of schemas, which knows the formats of types too.

use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// No type reads this as text of a format.
const NO_FORMAT: &str = "\u{1}";

/// A schema, read by the crate `jsonschema`.
pub(super) struct Schema {
    strict: Validator,
    /// To this one formats say nothing.
    without_formats: Validator,
}

impl Schema {
    /// `has_formats`: whether a format refuses what is not of it.
    pub(super) fn new(schema: &Value, has_formats: bool) -> Option<Schema> {
        let (day, time) = (reader("date")?, Arc::new(reader("time")?));
        let partial_time = move |text: &str| is_partial_time(&time, text);
        let (alone, partial_time) = (partial_time.clone(), partial_time);
        let strict = jsonschema::options()
            .should_validate_formats(has_formats)
            .with_format("ip", |text: &str| text.parse::<std::net::IpAddr>().is_ok())
            .with_format("partial-time", alone)
            .with_format("partial-date-time", move |text: &str| {
                let parts = text.split_once('T');
                parts.is_some_and(|(date, time)| day.is_valid(&json!(date)) && partial_time(time))
            });
        let without_formats = jsonschema::options().should_validate_formats(false);
        Some(Schema {
            strict: strict.build(schema).ok()?,
            without_formats: without_formats.build(schema).ok()?,
        })
    }

    pub(super) fn is_valid(&self, value: &Value) -> bool {
        self.strict.is_valid(value)
    }

    /// Has the schema nothing against the value but formats, and is each of these read by the type itself, which may take
    /// more spellings? A type that takes any text there does not know the format.
    pub(super) fn is_own_spelling(&self, value: &Value, reads: impl Fn(&Value) -> bool) -> bool {
        let mut places = Vec::new();
        for error in self.strict.iter_errors(value) {
            misformatted(&error, &mut places);
        }
        let knows_format = |place: &String| {
            let mut other = value.clone();
            other.pointer_mut(place).is_some_and(|text| {
                *text = NO_FORMAT.into();
                true
            }) && !reads(&other)
        };
        !places.is_empty()
            && self.without_formats.is_valid(value)
            && reads(value)
            && places.iter().all(knows_format)
    }
}

fn misformatted(error: &ValidationError<'_>, places: &mut Vec<String>) {
    match error.kind() {
        ValidationErrorKind::Format { .. } => places.push(error.instance_path().as_str().to_owned()),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().for_each(|error| misformatted(error, places));
        }
        _ => {}
    }
}

/// Of text that has a format which JSON Schema defines.
fn reader(format: &str) -> Option<Validator> {
    jsonschema::options().should_validate_formats(true).build(&json!({"format": format})).ok()
}

/// `10:30:00`, `10:30:00.25`: the time of RFC 3339 without an offset.
fn is_partial_time(time: &Validator, text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
        && !text.contains(['+', '-'])
        && time.is_valid(&json!(format!("{text}Z")))
}
