//! Two schemas as one that accepts what both accept.

use super::compile::Object;
use serde_json::{Value, json};

/// Why two schemas cannot be merged.
pub(super) struct Conflict {
    pub(super) keyword: String,
    pub(super) reason: String,
}

fn conflict<T>(keyword: &str, reason: &str) -> Result<T, Conflict> {
    Err(Conflict { keyword: keyword.into(), reason: reason.into() })
}

/// `a` and `b`. Closedness of derived schemas is decided by the merged whole: a flattened struct is not closed
/// against the fields of the struct around it. For foreign schemas `additionalProperties` means what JSON Schema says.
pub(super) fn merge(a: &Object, b: &Object, foreign: bool) -> Result<Object, Conflict> {
    if foreign {
        check_closed(a, b)?;
        check_closed(b, a)?;
    }
    let mut out = a.clone();
    for (keyword, new) in b {
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
        match keyword.as_str() {
            "properties" | "patternProperties" => merge_properties(old, new),
            "required" => {
                if let (Value::Array(old), Value::Array(new)) = (old, new) {
                    let missing: Vec<Value> = new.iter().filter(|n| !old.contains(n)).cloned().collect();
                    old.extend(missing);
                }
            }
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                *old = if new.as_f64() > old.as_f64() { new.clone() } else { old.take() };
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                *old = if new.as_f64() < old.as_f64() { new.clone() } else { old.take() };
            }
            "uniqueItems" => *old = json!(true),
            "unevaluatedProperties" => *old = json!(false),
            "items" if old.is_array() || new.is_array() => {
                return conflict(keyword, "cannot be merged with another");
            }
            "items" => *old = json!({"allOf": [old.take(), new]}),
            "additionalProperties" if foreign => *old = json!({"allOf": [old.take(), new]}),
            "additionalProperties" => {
                *old = if *old == json!(false) { new.clone() } else { old.take() };
            }
            "type" => *old = common_types(old, new),
            "enum" => {
                if let (Value::Array(old), Value::Array(new)) = (old, new) {
                    old.retain(|o| new.contains(o));
                }
            }
            "const" => {
                out.remove("const");
                out.insert("enum".into(), json!([]));
            }
            "anyOf" | "oneOf" => {
                let part = json!({ keyword.as_str(): new });
                push_part(&mut out, part);
            }
            "allOf" => {
                if let (Value::Array(old), Value::Array(new)) = (old, new) {
                    old.extend(new.iter().cloned());
                }
            }
            "$ref" => {
                let part = json!({"$ref": new});
                push_part(&mut out, part);
            }
            "pattern" | "multipleOf" | "prefixItems" | "additionalItems" => {
                return conflict(keyword, "cannot be merged with another of the same place");
            }
            // Annotations: the outer ones are nearer to the reader.
            _ => {}
        }
    }
    Ok(out)
}

fn push_part(out: &mut Object, part: Value) {
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

/// In JSON Schema `additionalProperties` sees only the properties beside it, so it would speak about the properties
/// of the other schema. That is not modelled; it is refused unless it makes no difference.
fn check_closed(closed: &Object, other: &Object) -> Result<(), Conflict> {
    let open = closed.get("additionalProperties").is_none_or(|a| *a == json!(true) || *a == json!({}));
    let known = |name: &String| closed.get("properties").is_some_and(|p| p.get(name).is_some());
    let others = other.get("properties").and_then(Value::as_object);
    if open || others.is_none_or(|o| o.keys().all(known)) {
        return Ok(());
    }
    conflict("additionalProperties", "inside a combination forbids the properties of the other parts")
}

fn common_types(a: &Value, b: &Value) -> Value {
    let list = |v: &Value| -> Vec<String> {
        match v {
            Value::Array(names) => names.iter().filter_map(Value::as_str).map(String::from).collect(),
            value => value.as_str().map(String::from).into_iter().collect(),
        }
    };
    let (a, b) = (list(a), list(b));
    let has = |list: &[String], name: &str| list.iter().any(|n| n == name);
    let mut common: Vec<String> = a.iter().filter(|n| has(&b, n)).cloned().collect();
    // Every integer is a number.
    let integer = has(&a, "integer") && has(&b, "number") || has(&a, "number") && has(&b, "integer");
    if integer && !has(&common, "integer") && !has(&common, "number") {
        common.push("integer".into());
    }
    if common.len() == 1 { json!(common[0]) } else { json!(common) }
}
