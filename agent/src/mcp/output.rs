//! The structured results of tools: their check against the announced output schema, and the wrapping of values that are not objects.
//!
//! In the older versions of the protocol, a structured result is an object. So FastMCP wraps every other value in an object with the member
//! `result`, and marks the schema and the result. This module writes and reads wrapped results in that form.

use crate::args::{CoercionPolicy, Plan, PlanOptions, SchemaError, UnknownKeys};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The keyword with which FastMCP marks the schema of a wrapping object.
const MARK: &str = "x-fastmcp-wrap-result";
const RESULT: &str = "result";
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// A check of structured results against the output schema of a tool, without coercion.
#[derive(Clone)]
pub(super) struct OutputCheck {
    plan: Plan,
    is_wrapped: bool,
}

impl OutputCheck {
    pub(super) fn new(tool: &str, schema: &Value) -> Result<Self, SchemaError> {
        let exact = PlanOptions::default().coercion(CoercionPolicy::exact()).unknown(UnknownKeys::Keep);
        let wrapper = wrapped_schema(schema).map(Value::Object);
        let plan = Plan::compile(tool, wrapper.as_ref().unwrap_or(schema), exact)?;
        Ok(Self { plan, is_wrapped: wrapper.is_some() })
    }

    /// Returns whether the results are wrapped, because the schema allows values that are not objects.
    #[cfg(feature = "mcp-server")]
    pub(super) fn is_wrapped(&self) -> bool {
        self.is_wrapped
    }

    /// Returns why the result does not fit the schema, or `None` if the result fits. The returned text may quote the result, so it must
    /// only be used in logs.
    pub(super) fn fault(&self, structured: &Value) -> Option<String> {
        let text = if self.is_wrapped { wrapped(structured).to_string() } else { structured.to_string() };
        self.plan.parse::<Value>(&text).err().map(|report| report.to_text())
    }
}

/// Returns the schema of an object whose member `result` contains a value that fits `schema`. Returns `None` unless `schema` explicitly
/// allows values other than objects.
pub(super) fn wrapped_schema(schema: &Value) -> Option<Map<String, Value>> {
    if !has_other_values(schema) {
        return None;
    }
    let mut inner = schema.clone();
    let mut wrapper = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!({})),
        ("required".to_owned(), json!([RESULT])),
        (MARK.to_owned(), json!(true)),
    ]);
    if let Value::Object(inner) = &mut inner
        && !has_own_base(inner)
    {
        for key in DEFINITIONS.into_iter().chain(["$schema"]) {
            wrapper.extend(inner.remove(key).map(|value| (key.to_owned(), value)));
        }
    }
    let from_root = |at: &str| {
        let first = at.strip_prefix("#/").and_then(|at| at.split('/').next());
        let is_kept = first.is_some_and(|key| DEFINITIONS.contains(&key));
        let at = at.strip_prefix('#').filter(|at| !is_kept && (at.is_empty() || at.starts_with('/')))?;
        Some(format!("#/properties/{RESULT}{at}"))
    };
    move_references(&mut inner, &from_root);
    for key in DEFINITIONS {
        wrapper.get_mut(key).into_iter().for_each(|all| move_references_of_each(all, &from_root));
    }
    wrapper.insert("properties".to_owned(), json!({RESULT: inner}));
    Some(wrapper)
}

pub(super) fn wrapped(value: &Value) -> Value {
    json!({RESULT: value})
}

/// Returns the metadata that marks a wrapped result, as FastMCP does.
#[cfg(feature = "mcp-server")]
pub(super) fn mark() -> (String, Value) {
    ("fastmcp".to_owned(), json!({"wrap_result": true}))
}

/// Returns the schema of the value within a wrapping object, or `None` if the schema has no keyword [`MARK`] or no property `result`.
#[cfg(feature = "mcp-client")]
pub(super) fn unwrapped_schema(schema: &Value) -> Option<Value> {
    schema.get(MARK).filter(|mark| **mark == true)?;
    let mut inner = schema.get("properties")?.get(RESULT)?.clone();
    if let Value::Object(inner) = &mut inner {
        for key in DEFINITIONS {
            inner.extend(schema.get(key).map(|all| (key.to_owned(), all.clone())));
        }
    }
    let wrapper = format!("#/properties/{RESULT}");
    move_references(&mut inner, &|at: &str| Some(format!("#{}", at.strip_prefix(&wrapper)?)));
    Some(inner)
}

#[cfg(feature = "mcp-client")]
pub(super) fn unwrapped(structured: Value) -> Value {
    match structured {
        Value::Object(mut members) if members.len() == 1 && members.contains_key(RESULT) => {
            members.remove(RESULT).unwrap_or_default()
        }
        other => other,
    }
}

#[cfg(feature = "mcp-client")]
pub(super) fn is_marked(meta: &Map<String, Value>) -> bool {
    meta.get("fastmcp").and_then(|marks| marks.get("wrap_result")) == Some(&Value::Bool(true))
}

/// Returns whether the schema explicitly allows values that are not objects.
fn has_other_values(root: &Value) -> bool {
    let is_other = |value: &Value| !value.is_object();
    let (mut seen, mut left) = (HashSet::new(), vec![root]);
    while let Some(schema) = left.pop() {
        // References may form cycles, and may lead to one schema many times.
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        let allows_others = match schema.get("type") {
            Some(Value::String(kind)) => Some(kind != "object"),
            Some(Value::Array(kinds)) => Some(kinds.iter().any(|kind| kind != "object")),
            _ => None,
        };
        match allows_others {
            Some(true) => return true,
            Some(false) => continue,
            None => {}
        }
        let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        if schema.get("const").is_some_and(is_other) || list("enum").any(is_other) {
            return true;
        }
        let referred = schema.get("$ref").and_then(Value::as_str);
        left.extend(referred.and_then(|at| root.pointer(at.strip_prefix('#')?)));
        left.extend(["anyOf", "oneOf", "allOf"].into_iter().flat_map(list));
    }
    false
}

/// Returns whether references in this schema are relative to its own `$id`. An `$id` of the form `#…` is only an anchor.
fn has_own_base(schema: &Map<String, Value>) -> bool {
    schema.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'))
}

/// Replaces each `$ref` for which `moved` returns a new reference, except in schemas with their own base and in data.
fn move_references(schema: &mut Value, moved: &dyn Fn(&str) -> Option<String>) {
    match schema {
        Value::Object(members) if has_own_base(members) => {}
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("$ref", Value::String(at)) => {
                        if let Some(now) = moved(at) {
                            *at = now;
                        }
                    }
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                        | "dependencies",
                        named,
                    ) => move_references_of_each(named, moved),
                    (_, other) => move_references(other, moved),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, moved)),
        _ => {}
    }
}

/// Calls [`move_references`] for the schemas of an object whose keys are names, not keywords.
fn move_references_of_each(named: &mut Value, moved: &dyn Fn(&str) -> Option<String>) {
    if let Value::Object(named) = named {
        named.values_mut().for_each(|schema| move_references(schema, moved));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_checked_without_coercion() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let check = OutputCheck::new("count", &schema).unwrap();
        assert_eq!(check.fault(&json!({"n": 1, "more": true})), None);
        for wrong in [json!({"n": "1"}), json!({}), json!([1]), json!(null)] {
            assert!(check.fault(&wrong).is_some(), "{wrong}");
        }
    }

    #[cfg(all(feature = "mcp-server", feature = "mcp-client"))]
    #[test]
    fn other_values_are_wrapped_and_unwrapped() {
        let tree = json!({"$ref": "#/$defs/T"});
        let list = json!({"type": "array", "items": tree, "$defs": {"T": {"type": "object", "properties": {"all": {"$ref": "#"}}}}});
        let wrapper = Value::Object(wrapped_schema(&list).unwrap());
        assert_eq!(
            wrapper,
            json!({
                "type": "object",
                "properties": {"result": {"type": "array", "items": tree}},
                "required": ["result"],
                "x-fastmcp-wrap-result": true,
                "$defs": {"T": {"type": "object", "properties": {"all": {"$ref": "#/properties/result"}}}},
            })
        );
        for (check, value) in
            [(&list, json!([{"all": [{}]}])), (&wrapper, json!({"result": [{"all": [{}]}]}))]
        {
            assert_eq!(OutputCheck::new("trees", check).unwrap().fault(&value), None, "{check}");
        }
        let check = OutputCheck::new("trees", &list).unwrap();
        assert!(check.is_wrapped() && check.fault(&json!([{"all": 1}])).is_some());
        assert_eq!(unwrapped_schema(&wrapper), Some(list));
        let other =
            json!({"type": "array", "items": {"$ref": "#/$defs2/T"}, "$defs2": {"T": {"type": "object"}}});
        let items = &wrapped_schema(&other).unwrap()["properties"]["result"]["items"];
        assert_eq!(items["$ref"], "#/properties/result/$defs2/T");
        let based = json!({"$id": "https://a.example/b", "type": "array", "items": {"$ref": "#/$defs/T"}, "$defs": {"T": {}}});
        assert_eq!(wrapped_schema(&based).unwrap()["properties"]["result"], based);
        let data = json!({"$ref": "#/x"});
        let mixed = json!({"type": "array", "prefixItems": [based, {"default": data, "enum": [data]}],
            "items": {"properties": {"default": {"$ref": "#"}}}});
        let wrapper = Value::Object(wrapped_schema(&mixed).unwrap());
        let inner = &wrapper["properties"]["result"];
        assert_eq!(inner["prefixItems"], mixed["prefixItems"]);
        assert_eq!(inner["items"]["properties"]["default"]["$ref"], "#/properties/result");
        assert_eq!(unwrapped_schema(&wrapper), Some(mixed));
        assert_eq!(unwrapped_schema(&json!({"type": "object", "properties": {"result": {}}})), None);
        assert_eq!(unwrapped(wrapped(&json!([1]))), json!([1]));
        for other in [json!({"result": 1, "more": 2}), json!([1]), json!(null)] {
            assert_eq!(unwrapped(other.clone()), other);
        }
        assert!(is_marked(&Map::from_iter([mark()])) && !is_marked(&Map::new()));
    }

    #[cfg(feature = "mcp-server")]
    #[test]
    fn schemas_of_objects_are_not_wrapped() {
        for (schema, is_wrapped) in [
            (json!({"type": "object"}), false),
            (json!({"properties": {"n": {"type": "integer"}}}), false),
            (json!({}), false),
            (
                json!({"oneOf": [{"type": "object"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "object"}}}),
                false,
            ),
            (json!({"$ref": "#"}), false),
            (json!({"anyOf": vec![json!({"$ref": "#"}); 40]}), false),
            (
                json!({"oneOf": [{"type": "object"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"enum": ["x"]}}}),
                true,
            ),
            (json!({"type": ["object", "null"]}), true),
            (json!({"type": "integer"}), true),
            (json!({"const": 1}), true),
        ] {
            assert_eq!(wrapped_schema(&schema).is_some(), is_wrapped, "{schema}");
        }
    }
}
