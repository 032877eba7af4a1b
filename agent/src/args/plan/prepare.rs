//! Prepares schemas from schemars and the macros for the compiler.

use super::keywords::{SchemaMap, restricts};
use serde_json::{Value, json};

/// Removes `unevaluatedProperties`, because the compiler itself closes merged objects. Restores the `oneOf` of an enum from `x-variants`.
/// The macros moved it there, because schemars drops a `oneOf` from the keys of a map.
pub(super) fn prepare(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove("unevaluatedProperties");
            map.remove("x-checked");
            if let Some(variants) = map.remove("x-variants") {
                map.remove("type");
                map.remove("enum");
                map.insert("oneOf".into(), variants);
            }
            for (keyword, value) in map {
                match (keyword.as_str(), value) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    // The keys are names, not keywords.
                    ("properties" | "patternProperties" | "$defs", Value::Object(named)) => {
                        named.values_mut().for_each(prepare);
                    }
                    ("oneOf" | "anyOf", Value::Array(variants)) => {
                        variants.iter_mut().for_each(place_settings);
                        variants.iter_mut().for_each(prepare);
                    }
                    (_, value) => prepare(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(prepare),
        _ => {}
    }
}

/// An internal keyword: the aliases of a variant.
const WORD_ALIASES: &str = "\0aliases";
/// An internal keyword: the variant has `#[serde(other)]`.
const OTHER_WORDS: &str = "\0other";

/// Moves `x-aliases` and `x-other` to the schema that has the variant's name: the tag, the only property, or the variant itself.
fn place_settings(variant: &mut Value) {
    let Some(variant) = variant.as_object_mut() else { return };
    let (aliases, other) = (variant.shift_remove("x-aliases"), variant.shift_remove("x-other"));
    let other = other.filter(|other| *other == json!(true));
    if aliases.is_none() && other.is_none() {
        return;
    }
    let required = variant.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    // serde and schemars write the tag first.
    let first =
        variant.get_mut("properties").and_then(Value::as_object_mut).and_then(|p| p.iter_mut().next());
    let tag = first.filter(|(name, _)| required.contains(&json!(name))).map(|(_, schema)| schema);
    let tag = tag.filter(|tag| tag.get("const").is_some_and(Value::is_string)).and_then(Value::as_object_mut);
    let is_tagged = tag.is_some();
    let named = match tag {
        Some(tag) => tag,
        None => &mut *variant,
    };
    if !is_tagged && single_entry(named).is_some() {
        // The name of this variant is a key, so the aliases become aliases of the property.
        let payload =
            named.get_mut("properties").and_then(Value::as_object_mut).and_then(|p| p.values_mut().next());
        if let (Some(payload), Some(aliases)) = (payload, aliases) {
            if !payload.is_object() {
                *payload = json!({});
            }
            payload["x-aliases"] = aliases;
        }
        return;
    }
    named.extend(aliases.map(|aliases| (WORD_ALIASES.to_owned(), aliases)));
    let is_other = other.is_some();
    named.extend(other.map(|other| (OTHER_WORDS.to_owned(), other)));
    if is_tagged && is_other {
        // An object with an unknown tag may have any other keys.
        variant.insert("additionalProperties".to_owned(), json!(true));
    }
}

pub(super) fn aliases_of(named: &SchemaMap) -> impl Iterator<Item = &str> {
    let aliases = named.get(WORD_ALIASES).and_then(Value::as_array);
    aliases.into_iter().flatten().filter_map(Value::as_str)
}

pub(super) fn is_other(named: &SchemaMap) -> bool {
    named.contains_key(OTHER_WORDS)
}

/// Returns the name and the schema of the only property, as in `{"Circle": {…}}`, if the object requires it and allows no other.
pub(super) fn single_entry(schema: &SchemaMap) -> Option<(&str, &Value)> {
    let modelled = |k: &String| {
        !restricts(k) || matches!(k.as_str(), "type" | "properties" | "required" | "additionalProperties")
    };
    if !schema.keys().all(modelled) || schema.get("type").is_some_and(|t| t != "object") {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    let required = schema.get("required")?.as_array()?;
    let (name, payload) = properties.iter().next()?;
    let closed = schema.get("additionalProperties") == Some(&json!(false));
    (properties.len() == 1 && required.len() == 1 && required[0] == name.as_str() && closed)
        .then_some((name.as_str(), payload))
}
