//! Wraps the schema of an answer in an object if the answer is not an object itself: tools and most providers require objects.

use serde_json::{Map, Value, json};

/// Maximum depth at which references are rewritten. The compiler refuses deeper schemas.
const MAX_DEPTH: usize = 300;

/// Keywords that belong to the document rather than to the schema at its root.
const DOCUMENT_KEYWORDS: [&str; 3] = ["$schema", "$defs", "definitions"];

/// Returns the schema of an object whose field `result` fits `schema`, or `None` if `schema` describes objects itself.
pub(super) fn wrapped(schema: &Value) -> Option<Value> {
    if describes_object(schema, schema, 0) {
        return None;
    }
    let (mut root, mut result) = (Map::new(), schema.clone());
    if let Value::Object(map) = &mut result
        // References within a schema with its own `$id` are relative to that schema, so they stay valid.
        && !has_own_base(map)
    {
        for keyword in DOCUMENT_KEYWORDS {
            root.extend(map.shift_remove(keyword).map(|value| (keyword.to_owned(), value)));
        }
        root.values_mut().for_each(|definitions| rebase_values(definitions, 0));
        rebase(&mut result, 0);
    }
    let object = json!({"type": "object", "properties": {"result": result}, "required": ["result"], "additionalProperties": false});
    if let Value::Object(object) = object {
        root.extend(object);
    }
    Some(root.into())
}

/// Returns whether references in this schema are relative to its own `$id`. An `$id` of the form `#…` is only an anchor.
fn has_own_base(schema: &Map<String, Value>) -> bool {
    schema.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'))
}

fn describes_object(schema: &Value, root: &Value, hops: usize) -> bool {
    if let Some(kind) = schema.get("type") {
        return kind == "object" || *kind == json!(["object"]);
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    match target.and_then(|pointer| root.pointer(pointer)) {
        Some(target) => hops < 64 && describes_object(target, root, hops + 1),
        None => schema.get("properties").is_some_and(Value::is_object),
    }
}

/// Rewrites references to the root schema, or to a path in it, because the root moves to `/properties/result`. References to definitions
/// stay unchanged, because definitions stay at the root.
fn rebase(schema: &mut Value, depth: usize) {
    match schema {
        _ if depth > MAX_DEPTH => {}
        Value::Object(map) if has_own_base(map) => {}
        Value::Object(map) => {
            for (keyword, value) in map {
                match (keyword.as_str(), value) {
                    ("$ref" | "$dynamicRef", Value::String(reference)) => {
                        let pointer = reference.strip_prefix('#');
                        let is_moved = pointer.is_some_and(|pointer| {
                            (pointer.is_empty() || pointer.starts_with('/'))
                                && !["/$defs/", "/definitions/"].iter().any(|kept| pointer.starts_with(kept))
                        });
                        if is_moved {
                            reference.insert_str(1, "/properties/result");
                        }
                    }
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                        | "dependencies",
                        named,
                    ) => {
                        rebase_values(named, depth + 1);
                    }
                    (_, value) => rebase(value, depth + 1),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| rebase(item, depth + 1)),
        _ => {}
    }
}

fn rebase_values(named: &mut Value, depth: usize) {
    if let Value::Object(named) = named {
        named.values_mut().for_each(|schema| rebase(schema, depth + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Plan, PlanOptions};

    #[test]
    fn objects_stay_as_they_are() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": ["object"]}),
            json!({"properties": {"a": true}}),
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "object"}}}),
        ] {
            assert_eq!(wrapped(&schema), None, "{schema}");
        }
    }

    #[test]
    fn other_values_become_a_field_and_their_references_stay_valid() {
        let tree = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/definitions/Leaf"}]},
            "definitions": {"Leaf": {"type": "object", "properties": {"$ref": {"type": "string"}, "more": {"$ref": "#"}},
                "required": ["$ref"], "default": {"$ref": "#"}}}
        });
        let anchored = json!({"$id": "https://example.com/list", "type": "array", "items": {"$ref": "#/$defs/N"},
            "$defs": {"N": {"type": "integer"}}});
        let inner = json!({"type": "array", "items": {"$id": "https://example.com/inner", "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}});
        let fragment = json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "#list", "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}});
        let dependent = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
            "items": {"anyOf": [{"type": "object", "dependencies": {"default": {"properties": {"more": {"$ref": "#"}}}}},
                {"type": "array", "items": {"type": "integer"}}]}});
        for (schema, fits, does_not) in [
            (inner, r#"{"result": [[1, [2]]]}"#, r#"{"result": [["x"]]}"#),
            (fragment, r#"{"result": [1, [2]]}"#, r#"{"result": [["x"]]}"#),
            (
                dependent,
                r#"{"result": [{"default": 1, "more": [[1]]}]}"#,
                r#"{"result": [{"default": 1, "more": ["x"]}]}"#,
            ),
            (
                tree.clone(),
                r#"{"result": [[], [{"$ref": "x", "more": [[]]}]]}"#,
                r#"{"result": [{"$ref": "x", "more": [1]}]}"#,
            ),
            (anchored, r#"{"result": [1]}"#, r#"{"result": ["x"]}"#),
            (json!({"type": "string", "minLength": 2}), r#"{"result": "ab"}"#, r#"{"result": "a"}"#),
            (json!({"enum": ["a", {"$ref": "#"}]}), r##"{"result": {"$ref": "#"}}"##, r#"{"result": "b"}"#),
            (json!({"type": ["object", "null"]}), r#"{"result": null}"#, r#"{"result": 1}"#),
        ] {
            let schema = wrapped(&schema).unwrap();
            let plan = Plan::compile("answer", &schema, PlanOptions::default()).unwrap();
            assert!(plan.parse::<Value>(fits).is_ok(), "{schema}");
            assert!(plan.parse::<Value>(does_not).is_err(), "{schema}");
        }
        let leaf = &wrapped(&tree).unwrap()["definitions"]["Leaf"];
        assert_eq!(
            (&leaf["default"]["$ref"], &leaf["properties"]["more"]["$ref"]),
            (&json!("#"), &json!("#/properties/result"))
        );
    }
}
