//! The structured results of tools: their check against the announced output schema, and the wrapping of values that are not objects.
//!
//! In the older versions of the protocol, a structured result is an object. So FastMCP wraps every other value in an object with the member
//! `result`, and marks the schema and the result. This module writes and reads wrapped results in that form.

use crate::args::{CoercionPolicy, Plan, PlanOptions, SchemaError, UnknownKeys};
use serde_json::{Map, Value, json};

/// The keyword with which FastMCP marks the schema of a wrapping object.
const MARK: &str = "x-fastmcp-wrap-result";
const RESULT: &str = "result";
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Maximum depth of nested schemas in the search for values that are not objects.
const MAX_DEPTH: usize = 16;

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
    if !has_other_values(schema, schema, MAX_DEPTH) {
        return None;
    }
    let mut inner = schema.clone();
    let mut wrapper = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!({})),
        ("required".to_owned(), json!([RESULT])),
        (MARK.to_owned(), json!(true)),
    ]);
    if let Value::Object(inner) = &mut inner {
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
        if let Some(all) = wrapper.get_mut(key) {
            move_references(all, &from_root);
        }
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

/// Returns whether the schema explicitly allows values that are not objects. Searches at most `deepest` levels.
fn has_other_values(schema: &Value, root: &Value, deepest: usize) -> bool {
    let Some(deeper) = deepest.checked_sub(1) else { return false };
    let any = |key: &str| {
        let schemas = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        schemas.into_iter().any(|schema| has_other_values(schema, root, deeper))
    };
    match schema.get("type") {
        Some(Value::String(kind)) => return kind != "object",
        Some(Value::Array(kinds)) => return kinds.iter().any(|kind| kind != "object"),
        _ => {}
    }
    let referred =
        schema.get("$ref").and_then(Value::as_str).and_then(|at| root.pointer(at.strip_prefix('#')?));
    let is_other = |value: &Value| !value.is_object();
    referred.is_some_and(|schema| has_other_values(schema, root, deeper))
        || any("anyOf")
        || any("oneOf")
        || any("allOf")
        || schema.get("const").is_some_and(is_other)
        || schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().any(is_other))
}

/// Replaces each `$ref` for which `moved` returns a new reference.
fn move_references(schema: &mut Value, moved: &dyn Fn(&str) -> Option<String>) {
    match schema {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(at) if key == "$ref" => {
                        if let Some(now) = moved(at) {
                            *at = now;
                        }
                    }
                    other => move_references(other, moved),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, moved)),
        _ => {}
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
