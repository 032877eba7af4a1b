//! Merges two schemas into one that accepts the values that both accept.

use super::keywords::{MergeRule, SchemaMap, modelled, push_check};
use crate::args::scalar::same_json;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::cmp::Ordering;

pub(super) struct Conflict {
    pub(super) keyword: String,
    pub(super) reason: String,
}

fn conflict<T>(keyword: &str, reason: &str) -> Result<T, Conflict> {
    Err(Conflict { keyword: keyword.into(), reason: reason.into() })
}

/// Merges the outer schema `a` with `b`. Returns `None` if no value can fit both. If `foreign`, `additionalProperties: false` in one
/// schema also refuses properties of the other.
pub(super) fn merge(a: &SchemaMap, b: &SchemaMap, foreign: bool) -> Result<Option<SchemaMap>, Conflict> {
    let (mut a, mut b) = (Cow::Borrowed(a), Cow::Borrowed(b));
    let mut apart = Vec::new();
    if foreign {
        let (closes_b, closes_a) = (closes_over(&a, &b), closes_over(&b, &a));
        if closes_b {
            apart.push(taken_out(&mut a, &NAMES, &CLOSING));
        }
        if closes_a {
            apart.push(taken_out(&mut b, &NAMES, &CLOSING));
        }
        if mixes_items(&a, &b) {
            apart.extend([taken_out(&mut a, &[], &ITEMS), taken_out(&mut b, &[], &ITEMS)]);
        }
    }
    let mut out = a.into_owned();
    for (keyword, new) in &*b {
        if keyword == "$defs" || keyword == "definitions" {
            continue;
        }
        let Some(old) = out.get_mut(keyword) else {
            out.insert(keyword.clone(), new.clone());
            continue;
        };
        if old == new {
            continue;
        }
        match modelled(keyword).map_or(MergeRule::Outer, |known| known.merge) {
            MergeRule::Larger => keep(old, new, Ordering::Greater),
            MergeRule::Smaller => keep(old, new, Ordering::Less),
            MergeRule::Fixed(flag) => *old = json!(flag),
            MergeRule::Entries => {
                if let (Value::Array(old), Value::Array(new)) = (old, new) {
                    let missing: Vec<Value> = new.iter().filter(|n| !old.contains(n)).cloned().collect();
                    old.extend(missing);
                }
            }
            MergeRule::Check if foreign => {
                apart.push(SchemaMap::from_iter([(keyword.clone(), new.clone())]));
            }
            MergeRule::Check | MergeRule::Conflict => return conflict(keyword, SAME_PLACE),
            MergeRule::Own => match merge_own(keyword, old, new, foreign)? {
                Merged::Kept => {}
                Merged::Part => push_part(&mut out, json!({ keyword.as_str(): new })),
                Merged::Nothing => return Ok(None),
            },
            // The annotations of `a` are kept, because the outer schema describes the value more specifically.
            MergeRule::Outer => {}
        }
    }
    for schema in apart {
        push_check(&mut out, schema);
    }
    Ok(Some(out))
}

const SAME_PLACE: &str = "cannot be merged with another of the same place";

enum Merged {
    /// The merged value has replaced the first value.
    Kept,
    /// The values cannot be merged into one, so the caller adds the second value as a part of `allOf`.
    Part,
    /// No value can fit both schemas.
    Nothing,
}

fn merge_own(keyword: &str, old: &mut Value, new: &Value, foreign: bool) -> Result<Merged, Conflict> {
    match keyword {
        "properties" | "patternProperties" => merge_properties(old, new),
        "items" if old.is_array() || new.is_array() => {
            return conflict(keyword, "cannot be merged with another");
        }
        "items" => *old = json!({"allOf": [old.take(), new]}),
        "additionalProperties" if foreign => *old = json!({"allOf": [old.take(), new]}),
        "additionalProperties" => {
            *old = if *old == json!(false) { new.clone() } else { old.take() };
        }
        "type" => match common_types(old, new) {
            Some(types) => *old = types,
            None if foreign => return Ok(Merged::Nothing),
            None => return conflict(keyword, "has nothing in common with that of another part"),
        },
        "enum" => {
            if let (Value::Array(old), Value::Array(new)) = (old, new) {
                old.retain(|o| new.iter().any(|n| same_json(o, n)));
                if old.is_empty() {
                    return Ok(Merged::Nothing);
                }
            }
        }
        "const" if !same_json(old, new) => return Ok(Merged::Nothing),
        "anyOf" | "oneOf" | "$ref" => return Ok(Merged::Part),
        "allOf" => {
            if let (Value::Array(old), Value::Array(new)) = (old, new) {
                old.extend(new.iter().cloned());
            }
        }
        // If `foreign`, a format is only an annotation, so two formats do not conflict.
        "format" if !foreign => return conflict(keyword, SAME_PLACE),
        "format" | "const" => {}
        _ => return conflict(keyword, SAME_PLACE),
    }
    Ok(Merged::Kept)
}

const NAMES: [&str; 2] = ["properties", "patternProperties"];
const CLOSING: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
const ITEMS: [&str; 3] = ["prefixItems", "items", "additionalItems"];

/// Moves `keywords` to a new schema. `names` are keywords such as `properties`: the new schema also gets their property names and
/// patterns, each with the schema `true`, so that its `additionalProperties` does not apply to these properties.
fn taken_out(schema: &mut Cow<'_, SchemaMap>, names: &[&str], keywords: &[&str]) -> SchemaMap {
    let mut out = SchemaMap::new();
    for keyword in names {
        if let Some(Value::Object(named)) = schema.get(*keyword) {
            let any: SchemaMap = named.keys().map(|name| (name.clone(), json!(true))).collect();
            out.insert((*keyword).into(), any.into());
        }
    }
    let schema = schema.to_mut();
    for keyword in keywords {
        out.extend(schema.shift_remove(*keyword).map(|value| ((*keyword).to_owned(), value)));
    }
    out
}

pub(super) fn push_part(out: &mut SchemaMap, part: Value) {
    match out.get_mut("allOf") {
        Some(Value::Array(parts)) => parts.push(part),
        _ => {
            out.insert("allOf".into(), Value::Array(vec![part]));
        }
    }
}

fn merge_properties(old: &mut Value, new: &Value) {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return };
    for (name, schema) in new {
        match old.get_mut(name) {
            None => {
                old.insert(name.clone(), schema.clone());
            }
            Some(first) if first == schema => {}
            Some(first) => *first = json!({"allOf": [first.take(), schema]}),
        }
    }
}

/// Replaces the old bound if the new bound is stricter.
fn keep(old: &mut Value, new: &Value, stricter: Ordering) {
    let whole = |bound: &Value| bound.as_i64().map(i128::from).or_else(|| bound.as_u64().map(i128::from));
    let order = match (whole(new), whole(old)) {
        (Some(new), Some(old)) => Some(new.cmp(&old)),
        _ => new.as_f64().partial_cmp(&old.as_f64()),
    };
    if order == Some(stricter) {
        *old = new.clone();
    }
}

/// Returns whether a merge would change the meaning of `additionalProperties`. The keyword refers only to the properties of its own schema
/// (JSON Schema 2020-12, core, 10.3.2.3), and a merge would add properties of `other` to that schema.
fn closes_over(closed: &SchemaMap, other: &SchemaMap) -> bool {
    let lacks = |keyword: &str| {
        let own = closed.get(keyword);
        let others = other.get(keyword).and_then(Value::as_object);
        others.is_some_and(|o| o.keys().any(|name| own.and_then(|own| own.get(name)).is_none()))
    };
    let more = lacks("properties") || lacks("patternProperties");
    let open = closed.get("additionalProperties").is_none_or(|a| *a == json!(true) || *a == json!({}));
    !open && more
}

/// Returns whether a merge would change the meaning of `items`: the `items` of one schema would also skip the `prefixItems` of the other.
fn mixes_items(a: &SchemaMap, b: &SchemaMap) -> bool {
    let silent = |schema: &SchemaMap| !ITEMS.iter().any(|k| schema.contains_key(*k));
    let list = |schema: &SchemaMap| {
        !schema.contains_key("prefixItems") && schema.get("items").is_none_or(|items| !items.is_array())
    };
    let same = ITEMS.iter().all(|k| a.get(*k) == b.get(*k));
    !(silent(a) || silent(b) || same || list(a) && list(b))
}

/// Returns the types that both `type` keywords allow: a single type as a string, several types as a list.
fn common_types(a: &Value, b: &Value) -> Option<Value> {
    let list = |v: &Value| -> Vec<String> {
        match v {
            Value::Array(names) => names.iter().filter_map(Value::as_str).map(String::from).collect(),
            value => value.as_str().map(String::from).into_iter().collect(),
        }
    };
    let (a, b) = (list(a), list(b));
    let has = |list: &[String], name: &str| list.iter().any(|n| n == name);
    let mut common: Vec<String> = a.iter().filter(|n| has(&b, n)).cloned().collect();
    // Every integer is a number, so `integer` is the common type of these two.
    let integer = has(&a, "integer") && has(&b, "number") || has(&a, "number") && has(&b, "integer");
    if integer && !has(&common, "integer") && !has(&common, "number") {
        common.push("integer".into());
    }
    match &common[..] {
        [] => None,
        [only] => Some(json!(only)),
        _ => Some(json!(common)),
    }
}
