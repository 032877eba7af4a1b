//! Keeps the schema of an application unchanged where possible, and lists the restrictions that a rendered schema lacks.

use super::change::{Change, ChangeKind};
use crate::args::{push_index, push_segment};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Keywords that restrict values in the application's schema, but are left out of the rendered schema.
const UNRENDERED: [&str; 14] = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
];
const REFUSED_AT_ROOT: [&str; 3] = ["not", "enum", "const"];
const ALTERNATIVES: [&str; 5] = ["anyOf", "oneOf", "allOf", "$ref", "$dynamicRef"];

/// Returns the schema with a root that every provider accepts. Returns `None` if the schema is `true` or `false`, or if its root has
/// alternatives or a reference, so that the schema has to be rendered.
pub(super) fn as_plain_object(schema: &Value) -> Option<(Value, Vec<Change>)> {
    let map = schema.as_object()?;
    if ALTERNATIVES.iter().any(|keyword| map.contains_key(*keyword)) {
        return None;
    }
    let mut changes = Vec::new();
    let mut record =
        |keyword: &str, kind| changes.push(Change { path: String::new(), keyword: keyword.into(), kind });
    let mut out = Cow::Borrowed(map);
    if map.get("type") != Some(&json!("object")) {
        record("type", ChangeKind::Rewritten);
        let mut typed = Map::new();
        typed.insert("type".into(), "object".into());
        typed.extend(map.iter().filter(|(k, _)| *k != "type").map(|(k, v)| (k.clone(), v.clone())));
        out = Cow::Owned(typed);
    }
    for keyword in REFUSED_AT_ROOT {
        if map.contains_key(keyword) {
            record(keyword, ChangeKind::Dropped);
            out.to_mut().shift_remove(keyword);
        }
    }
    Some((Value::Object(out.into_owned()), changes))
}

pub(super) fn unrendered_restrictions(schema: &Value, unmodelled: &[&str]) -> Vec<Change> {
    let mut out = Vec::new();
    let mut open = vec![(schema, String::new())];
    while let Some((schema, path)) = open.pop() {
        let Value::Object(map) = schema else { continue };
        let from = open.len();
        for (keyword, value) in map {
            if UNRENDERED.contains(&keyword.as_str()) || unmodelled.contains(&keyword.as_str()) {
                let kind = ChangeKind::Unsaid;
                out.push(Change { path: path.clone(), keyword: keyword.clone(), kind });
                continue;
            }
            let mut path = path.clone();
            push_segment(&mut path, keyword);
            match (keyword.as_str(), value) {
                // The keys of these objects are names, not keywords.
                ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
                    open.extend(named.iter().map(|(name, schema)| {
                        let mut path = path.clone();
                        push_segment(&mut path, name);
                        (schema, path)
                    }));
                }
                ("allOf" | "anyOf" | "oneOf" | "items" | "prefixItems", Value::Array(list)) => {
                    open.extend(list.iter().enumerate().map(|(i, schema)| {
                        let mut path = path.clone();
                        push_index(&mut path, i);
                        (schema, path)
                    }));
                }
                ("items" | "additionalItems" | "additionalProperties" | "unevaluatedProperties", value) => {
                    open.push((value, path));
                }
                _ => {}
            }
        }
        open[from..].reverse();
    }
    out
}
