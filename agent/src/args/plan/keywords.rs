//! The keywords that a schema may use.

use super::error::SchemaError;
use super::node::Notes;
use serde_json::{Map, Value, json};

/// A schema as a map of its keywords.
pub(super) type SchemaMap = Map<String, Value>;

/// The key of the list of checks in a schema. Keywords of foreign schemas do not start with a null character.
pub(super) const CHECKS: &str = "\0checks";
/// The keyword of a check that is a schema. A value must also fit this schema.
pub(super) const ALSO: &str = "\0also";
/// The key of a list of properties that only checks refer to. These properties are not unknown keys.
pub(super) const KNOWN: &str = "\0known";

/// Keywords of older drafts that no current draft has. They are refused, because an author who uses them expects them to be checked.
const REFUSED: [&str; 3] = ["disallow", "extends", "divisibleBy"];

/// Keywords that are modelled only in foreign schemas. In the schemas of types they are refused, except for values that restrict
/// nothing, and for `not` with a closed set.
const OF_FOREIGN: [&str; 10] = [
    "not",
    "if",
    "contains",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
];

/// Keywords that are only annotations.
const NOTES: [&str; 4] = ["description", "default", "examples", "deprecated"];

/// Settings that the macros write for the plan.
const SETTINGS: [&str; 11] = [
    "x-aliases",
    "x-buffered",
    "x-checked",
    "x-coerce",
    "x-debug",
    "x-field",
    "x-format",
    "x-other",
    "x-secret",
    "x-variants",
    "x-word",
];

/// Returns whether a keyword is only an annotation: one of JSON Schema, or an extension.
pub(super) fn is_note(keyword: &str) -> bool {
    NOTES.contains(&keyword) || (keyword.starts_with("x-") && !SETTINGS.contains(&keyword))
}

/// Returns the annotations of a schema.
pub(super) fn notes(schema: &Value) -> Notes {
    let Some(map) = schema.as_object() else { return Notes::new() };
    map.iter().filter(|(k, _)| is_note(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Adds a check, so that a value must also fit this schema.
pub(super) fn push_check(map: &mut SchemaMap, schema: SchemaMap) {
    add_check(map, Value::Object(SchemaMap::from_iter([(ALSO.to_owned(), Value::Object(schema))])));
}

/// Adds a check to a schema, unless the schema already has it.
pub(super) fn add_check(map: &mut SchemaMap, check: Value) {
    match map.get_mut(CHECKS) {
        Some(Value::Array(checks)) if checks.contains(&check) => {}
        Some(Value::Array(checks)) => checks.push(check),
        _ => {
            map.insert(CHECKS.into(), json!([check]));
        }
    }
}

/// Keywords that restrict only values of one type.
pub(super) const OF_TYPE: [(&str, &[&str]); 4] = [
    (
        "object",
        &[
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "minProperties",
            "maxProperties",
            "unevaluatedProperties",
        ],
    ),
    ("array", &["items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"]),
    ("string", &["minLength", "maxLength", "pattern"]),
    ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
];

/// Returns the type whose values a keyword restricts, or `None` for a keyword of all types.
pub(super) fn type_of(keyword: &str) -> Option<&'static str> {
    OF_TYPE.iter().find(|(_, keywords)| keywords.contains(&keyword)).map(|(name, _)| *name)
}

/// The keywords outside of [`OF_TYPE`] that restrict values and that the plan models.
const MODELLED: [&str; 20] = [
    CHECKS,
    KNOWN,
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "enum",
    "format",
    "if",
    "not",
    "oneOf",
    "propertyNames",
    "type",
    "unevaluatedItems",
];

/// Returns whether a keyword can change what is accepted. Any other keyword, known or not, is an annotation (JSON Schema 2020-12, core,
/// section 6.5).
pub(super) fn restricts(keyword: &str) -> bool {
    type_of(keyword).is_some() || MODELLED.contains(&keyword) || REFUSED.contains(&keyword)
}

/// Refuses keywords that the plan would otherwise silently ignore, and invalid values of keywords.
pub(super) fn check(schema: &Map<String, Value>, pointer: &str, foreign: bool) -> Result<(), SchemaError> {
    for (keyword, value) in schema {
        let modelled = is_harmless(keyword, value) || keyword == "not" && is_closed_set(value);
        let derived = !foreign && OF_FOREIGN.contains(&keyword.as_str()) && !modelled;
        if derived || REFUSED.contains(&keyword.as_str()) {
            return Err(SchemaError::new(keyword, pointer, "is not checked by the argument engine"));
        }
    }
    for (keyword, value) in schema {
        let (ok, wanted) = match keyword.as_str() {
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                (whole(value).is_some(), "must be a whole number that is not negative")
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                (value.is_number(), "must be a number")
            }
            "multipleOf" => (value.as_f64().is_some_and(|m| m > 0.0), "must be a number above 0"),
            "pattern" | "$ref" => (value.is_string(), "must be a string"),
            "uniqueItems" => (value.is_boolean(), "must be true or false"),
            "enum" | "prefixItems" => (value.is_array(), "must be a list"),
            "anyOf" | "oneOf" | "allOf" => {
                (value.as_array().is_some_and(|a| !a.is_empty()), "must be a list of at least one schema")
            }
            "properties" | "patternProperties" => (value.is_object(), "must be an object"),
            "required" => (is_names(value), "must be a list of names"),
            "items" => (is_schema(value) || value.is_array(), "must be a schema or a list of schemas"),
            "additionalProperties" | "additionalItems" => (is_schema(value), "must be a schema"),
            "type" => (is_type(value), "must be one of JSON's types or a list of them"),
            "unevaluatedProperties" | "unevaluatedItems" | "not" | "if" | "contains" | "propertyNames" => {
                (is_schema(value), "must be a schema")
            }
            "then" | "else" if schema.contains_key("if") => (is_schema(value), "must be a schema"),
            "minContains" | "maxContains" if schema.contains_key("contains") => {
                (whole(value).is_some(), "must be a whole number that is not negative")
            }
            "dependentRequired" => (each(value, is_names), "must be an object of lists of names"),
            "dependentSchemas" => (each(value, is_schema), "must be an object of schemas"),
            "dependencies" => (
                each(value, |v| is_names(v) || is_schema(v)),
                "must be an object of schemas or lists of names",
            ),
            _ => (true, ""),
        };
        if !ok {
            return Err(SchemaError::new(keyword, pointer, wanted));
        }
    }
    Ok(())
}

fn is_harmless(keyword: &str, value: &Value) -> bool {
    let nothing = value.as_object().is_some_and(Map::is_empty);
    match keyword {
        "not" => *value == Value::Bool(false),
        "propertyNames" | "unevaluatedItems" => nothing || *value == Value::Bool(true),
        "dependentRequired" | "dependentSchemas" | "dependencies" => nothing,
        _ => false,
    }
}

/// Returns whether a schema only lists values, as the schema under `not` lists the zero that `NonZero<i32>` excludes.
fn is_closed_set(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|map| map.len() == 1 && (map.contains_key("const") || map.contains_key("enum")))
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

fn each(value: &Value, is: impl Fn(&Value) -> bool) -> bool {
    value.as_object().is_some_and(|map| map.values().all(is))
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn is_type(value: &Value) -> bool {
    let known = |v: &Value| {
        matches!(v.as_str(), Some("null" | "boolean" | "integer" | "number" | "string" | "array" | "object"))
    };
    match value {
        Value::Array(types) => !types.is_empty() && types.iter().all(known),
        value => known(value),
    }
}

/// Parses a count. JSON Schema allows `2.0` for 2.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, not negative, within 2^53"
)]
pub(super) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        value
            .as_f64()
            .filter(|f| f.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(f))
            .map(|f| f as u64)
    })
}
