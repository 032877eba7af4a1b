//! The independent validator of JSON Schema, with the formats of the library's types.

use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// A text that is invalid in every format.
const NO_FORMAT: &str = "\u{1}";

pub(super) struct Schema {
    strict: Validator,
    without_formats: Validator,
}

impl Schema {
    pub(super) fn new(schema: &Value, has_formats: bool) -> Option<Schema> {
        let (day, time) = (format_validator("date")?, Arc::new(format_validator("time")?));
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

    /// Returns whether only formats make the value invalid, and the type parses the value because it knows more spellings of these
    /// formats. Returns `false` for a type that accepts any text.
    pub(super) fn is_own_spelling(&self, value: &Value, reads: impl Fn(&Value) -> bool) -> bool {
        let mut paths = Vec::new();
        for error in self.strict.iter_errors(value) {
            collect_misformatted(&error, &mut paths);
        }
        let knows_format = |path: &String| {
            let mut other = value.clone();
            other.pointer_mut(path).is_some_and(|text| {
                *text = NO_FORMAT.into();
                true
            }) && !reads(&other)
        };
        !paths.is_empty()
            && self.without_formats.is_valid(value)
            && reads(value)
            && paths.iter().all(knows_format)
    }
}

fn collect_misformatted(error: &ValidationError<'_>, paths: &mut Vec<String>) {
    match error.kind() {
        ValidationErrorKind::Format { .. } => paths.push(error.instance_path().as_str().to_owned()),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().for_each(|error| collect_misformatted(error, paths));
        }
        _ => {}
    }
}

fn format_validator(format: &str) -> Option<Validator> {
    jsonschema::options().should_validate_formats(true).build(&json!({"format": format})).ok()
}

/// Returns whether the text is a time of RFC 3339 without an offset, such as `10:30:00` or `10:30:00.25`.
fn is_partial_time(time: &Validator, text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
        && !text.contains(['+', '-'])
        && time.is_valid(&json!(format!("{text}Z")))
}
