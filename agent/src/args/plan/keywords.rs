//! The keywords of JSON Schema: their allowed values, and how two schemas with the same keyword are merged.

use super::error::SchemaError;
use super::node::Notes;
use serde_json::{Map, Value, json};

pub(super) type SchemaMap = Map<String, Value>;

/// An internal keyword: the list of assertions that become `NodeCheck`s. Keywords of users cannot begin with a null character.
pub(super) const CHECKS: &str = "\0checks";
/// An internal keyword inside of [`CHECKS`]: a schema that a value must also fit.
pub(super) const ALSO: &str = "\0also";
/// An internal keyword: names that only assertions such as `not` mention. They are not unknown keys.
pub(super) const KNOWN: &str = "\0known";

/// Keywords of older drafts that no current draft has. They are refused, because the author of the schema expects them to be checked.
const REFUSED: [&str; 3] = ["disallow", "extends", "divisibleBy"];

const NOTES: [&str; 4] = ["description", "default", "examples", "deprecated"];

/// Extensions by which the macros configure parameters and variants.
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

/// Returns whether a keyword is only an annotation: one of JSON Schema, or an extension (`x-…`) that is not in [`SETTINGS`].
pub(super) fn is_note(keyword: &str) -> bool {
    NOTES.contains(&keyword) || (keyword.starts_with("x-") && !SETTINGS.contains(&keyword))
}

pub(super) fn notes(schema: &Value) -> Notes {
    let Some(map) = schema.as_object() else { return Notes::new() };
    map.iter().filter(|(k, _)| is_note(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Adds a check: a value must also fit `schema`.
pub(super) fn push_check(map: &mut SchemaMap, schema: SchemaMap) {
    add_check(map, Value::Object(SchemaMap::from_iter([(ALSO.to_owned(), Value::Object(schema))])));
}

pub(super) fn add_check(map: &mut SchemaMap, check: Value) {
    match map.get_mut(CHECKS) {
        Some(Value::Array(checks)) if checks.contains(&check) => {}
        Some(Value::Array(checks)) => checks.push(check),
        _ => {
            map.insert(CHECKS.into(), json!([check]));
        }
    }
}

/// A keyword that can change which values a schema accepts.
pub(super) struct Keyword {
    name: &'static str,
    restricted: Option<&'static str>,
    value: ValueForm,
    pub(super) merge: MergeRule,
    /// Whether the keyword is usually refused in the schema of a Rust type.
    only_foreign: bool,
}

#[derive(Clone, Copy)]
enum ValueForm {
    Any,
    Count,
    Number,
    Divisor,
    Text,
    Flag,
    List,
    Names,
    Object,
    Types,
    Schema,
    SchemaOrList,
    Schemas,
    NamesByKey,
    SchemasByKey,
    DependenciesByKey,
}

#[derive(Clone, Copy)]
pub(super) enum MergeRule {
    Larger,
    Smaller,
    /// The entries of both lists, without repeats.
    Entries,
    /// Always this flag, whatever the two values are.
    Fixed(bool),
    /// The second value becomes a separate check, or a conflict in the schema of a Rust type.
    Check,
    Conflict,
    /// The rule is in `merge_own`.
    Own,
    Outer,
}

const fn of(restricted: &'static str, name: &'static str, value: ValueForm, merge: MergeRule) -> Keyword {
    Keyword { name, restricted: Some(restricted), value, merge, only_foreign: false }
}

const fn of_all(name: &'static str, value: ValueForm, merge: MergeRule) -> Keyword {
    Keyword { name, restricted: None, value, merge, only_foreign: false }
}

const fn foreign(name: &'static str, value: ValueForm, merge: MergeRule) -> Keyword {
    Keyword { name, restricted: None, value, merge, only_foreign: true }
}

const KEYWORDS: [Keyword; 41] = [
    of("object", "properties", ValueForm::Object, MergeRule::Own),
    of("object", "required", ValueForm::Names, MergeRule::Entries),
    of("object", "additionalProperties", ValueForm::Schema, MergeRule::Own),
    of("object", "patternProperties", ValueForm::Object, MergeRule::Own),
    of("object", "minProperties", ValueForm::Count, MergeRule::Larger),
    of("object", "maxProperties", ValueForm::Count, MergeRule::Smaller),
    of("object", "unevaluatedProperties", ValueForm::Schema, MergeRule::Fixed(false)),
    of("array", "items", ValueForm::SchemaOrList, MergeRule::Own),
    of("array", "prefixItems", ValueForm::List, MergeRule::Conflict),
    of("array", "additionalItems", ValueForm::Schema, MergeRule::Conflict),
    of("array", "minItems", ValueForm::Count, MergeRule::Larger),
    of("array", "maxItems", ValueForm::Count, MergeRule::Smaller),
    of("array", "uniqueItems", ValueForm::Flag, MergeRule::Fixed(true)),
    of("string", "minLength", ValueForm::Count, MergeRule::Larger),
    of("string", "maxLength", ValueForm::Count, MergeRule::Smaller),
    of("string", "pattern", ValueForm::Text, MergeRule::Check),
    of("number", "minimum", ValueForm::Number, MergeRule::Larger),
    of("number", "maximum", ValueForm::Number, MergeRule::Smaller),
    of("number", "exclusiveMinimum", ValueForm::Number, MergeRule::Larger),
    of("number", "exclusiveMaximum", ValueForm::Number, MergeRule::Smaller),
    of("number", "multipleOf", ValueForm::Divisor, MergeRule::Check),
    of_all(CHECKS, ValueForm::Any, MergeRule::Entries),
    of_all(KNOWN, ValueForm::Any, MergeRule::Entries),
    of_all("$ref", ValueForm::Text, MergeRule::Own),
    of_all("allOf", ValueForm::Schemas, MergeRule::Own),
    of_all("anyOf", ValueForm::Schemas, MergeRule::Own),
    of_all("oneOf", ValueForm::Schemas, MergeRule::Own),
    of_all("const", ValueForm::Any, MergeRule::Own),
    of_all("enum", ValueForm::List, MergeRule::Own),
    of_all("type", ValueForm::Types, MergeRule::Own),
    of_all("format", ValueForm::Any, MergeRule::Own),
    foreign("not", ValueForm::Schema, MergeRule::Outer),
    foreign("if", ValueForm::Schema, MergeRule::Outer),
    foreign("contains", ValueForm::Schema, MergeRule::Outer),
    foreign("propertyNames", ValueForm::Schema, MergeRule::Outer),
    foreign("unevaluatedItems", ValueForm::Schema, MergeRule::Outer),
    foreign("dependentRequired", ValueForm::NamesByKey, MergeRule::Outer),
    foreign("dependentSchemas", ValueForm::SchemasByKey, MergeRule::Outer),
    foreign("dependencies", ValueForm::DependenciesByKey, MergeRule::Outer),
    foreign("$dynamicRef", ValueForm::Any, MergeRule::Outer),
    foreign("$recursiveRef", ValueForm::Any, MergeRule::Outer),
];

pub(super) const TYPES: [&str; 4] = ["object", "array", "string", "number"];

pub(super) fn modelled(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// Returns the type whose values a keyword restricts, or `None` for a keyword of all types.
pub(super) fn type_of(keyword: &str) -> Option<&'static str> {
    modelled(keyword)?.restricted
}

/// Returns whether a keyword can change what is accepted. Any other keyword, known or not, is an annotation (JSON Schema 2020-12, core,
/// section 6.5).
pub(super) fn restricts(keyword: &str) -> bool {
    modelled(keyword).is_some() || REFUSED.contains(&keyword)
}

/// Refuses keywords that the plan would otherwise silently ignore, and invalid values of keywords.
pub(super) fn check(schema: &Map<String, Value>, pointer: &str, foreign: bool) -> Result<(), SchemaError> {
    for (keyword, value) in schema {
        let only_foreign = !foreign && modelled(keyword).is_some_and(|known| known.only_foreign);
        let allowed = is_harmless(keyword, value) || keyword == "not" && is_closed_set(value);
        if only_foreign && !allowed || REFUSED.contains(&keyword.as_str()) {
            return Err(SchemaError::new(keyword, pointer, "is not checked by the argument engine"));
        }
    }
    for (keyword, value) in schema {
        let form = match keyword.as_str() {
            // Keywords that have a meaning only next to another.
            "then" | "else" if schema.contains_key("if") => ValueForm::Schema,
            "minContains" | "maxContains" if schema.contains_key("contains") => ValueForm::Count,
            name => modelled(name).map_or(ValueForm::Any, |known| known.value),
        };
        if !form.has(value) {
            return Err(SchemaError::new(keyword, pointer, form.words()));
        }
    }
    Ok(())
}

impl ValueForm {
    fn has(self, value: &Value) -> bool {
        match self {
            ValueForm::Any => true,
            ValueForm::Count => whole(value).is_some(),
            ValueForm::Number => value.is_number(),
            ValueForm::Divisor => value.as_f64().is_some_and(|divisor| divisor > 0.0),
            ValueForm::Text => value.is_string(),
            ValueForm::Flag => value.is_boolean(),
            ValueForm::List => value.is_array(),
            ValueForm::Names => is_names(value),
            ValueForm::Object => value.is_object(),
            ValueForm::Types => is_type(value),
            ValueForm::Schema => is_schema(value),
            ValueForm::SchemaOrList => is_schema(value) || value.is_array(),
            ValueForm::Schemas => value.as_array().is_some_and(|list| !list.is_empty()),
            ValueForm::NamesByKey => each(value, is_names),
            ValueForm::SchemasByKey => each(value, is_schema),
            ValueForm::DependenciesByKey => each(value, |v| is_names(v) || is_schema(v)),
        }
    }

    fn words(self) -> &'static str {
        match self {
            ValueForm::Any => "may have any value",
            ValueForm::Count => "must be a whole number that is not negative",
            ValueForm::Number => "must be a number",
            ValueForm::Divisor => "must be a number above 0",
            ValueForm::Text => "must be a string",
            ValueForm::Flag => "must be true or false",
            ValueForm::List => "must be a list",
            ValueForm::Names => "must be a list of names",
            ValueForm::Object => "must be an object",
            ValueForm::Types => "must be one of JSON's types or a list of them",
            ValueForm::Schema => "must be a schema",
            ValueForm::SchemaOrList => "must be a schema or a list of schemas",
            ValueForm::Schemas => "must be a list of at least one schema",
            ValueForm::NamesByKey => "must be an object of lists of names",
            ValueForm::SchemasByKey => "must be an object of schemas",
            ValueForm::DependenciesByKey => "must be an object of schemas or lists of names",
        }
    }
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

/// Returns whether a schema only lists values, such as `{"const": 0}` in the `not` of `NonZero<i32>`.
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
