//! Combinations in schemas from elsewhere: `exact` takes what JSON Schema takes, or the schema is refused at once.

use agent::args::{CoercionPolicy, Plan, PlanOptions, SchemaError, UnknownKeys};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn compile(schema: &Value) -> Result<Plan, SchemaError> {
    let options = PlanOptions::default().coercion(CoercionPolicy::exact()).unknown(UnknownKeys::Keep);
    Plan::compile("t", schema, options)
}

fn inside(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"v": schema}})
}

/// Where the schema of one property is not refused, both read these values alike.
fn difference(schema: &Value, values: &[Value]) -> Option<String> {
    let schema = inside(schema);
    let plan = compile(&schema).ok()?;
    let oracle = jsonschema::validator_for(&schema).expect("a schema");
    values.iter().find_map(|value| {
        let sent = json!({"v": value});
        let (want, got) = (oracle.is_valid(&sent), plan.parse::<Value>(&sent.to_string()));
        // A float that is whole may arrive as the integer it is, and the other way about.
        let same = match &got {
            Ok(parsed) => {
                want && parsed.value.to_string().replace(".0", "") == sent.to_string().replace(".0", "")
            }
            Err(_) => !want,
        };
        (!same).then(|| format!("{sent}: valid {want}, got {got:?}\n{schema}"))
    })
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "literals at every call")]
fn agrees(schema: Value, values: Value) {
    let values = values.as_array().expect("a list");
    compile(&inside(&schema)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(difference(&schema, values), None);
}

#[test]
fn what_only_looks_like_an_enum_keeps_its_other_keywords() {
    for (keyword, value) in [
        ("minProperties", json!(2)),
        ("maxProperties", json!(0)),
        ("patternProperties", json!({"^x": {"type": "integer"}})),
        ("allOf", json!([{"minProperties": 2}])),
        ("type", json!(["object", "null"])),
    ] {
        let mut a = json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false});
        let mut b = a.clone();
        b["properties"] = json!({"b": {}});
        b["required"] = json!(["b"]);
        a[keyword] = value;
        agrees(
            json!({"anyOf": [a, b]}),
            json!([{"a": 1}, {"b": 1}, {"a": 1, "x1": 2}, {"a": 1, "x1": ""}, null, 1]),
        );
    }
    agrees(
        json!({"anyOf": [
            {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false, "enum": [{"a": 1}, {"b": 2}]},
            {"type": "object", "properties": {"b": {}}, "required": ["b"], "additionalProperties": false}
        ]}),
        json!([{"a": 1}, {"a": 2}, {"b": 2}, {"b": 3}, {"a": 1, "b": 2}, {}, 1]),
    );
    let tagged = |name: &str, types: Value| json!({"type": types, "properties": {"t": {"const": name}}, "required": ["t"]});
    agrees(
        json!({"anyOf": [tagged("a", json!(["object", "null"])), tagged("b", json!("object"))]}),
        json!([null, {"t": "a"}, {"t": "b"}, {"t": "c"}, {}]),
    );
    agrees(
        json!({"oneOf": [{"enum": ["a", "ab"]}, {"enum": ["ab", "abc"]}]}),
        json!(["a", "ab", "abc", "b"]),
    );
    agrees(
        json!({"anyOf": [{"enum": ["a", "ab"]}, {"enum": ["ab", "abc"]}]}),
        json!(["a", "ab", "abc", "b"]),
    );
    agrees(json!({"oneOf": [{"const": "a"}, {"enum": ["a"]}]}), json!(["a", "b"]));
}

#[test]
fn what_one_part_forbids_stays_forbidden() {
    agrees(
        json!({"allOf": [{"type": "array", "prefixItems": [{"minimum": 3}]}, {"items": {"type": "integer"}}]}),
        json!([[], [1], [3], [3, 1], [3, "a"], ["a"], {}]),
    );
    agrees(
        json!({"allOf": [{"prefixItems": [{}], "items": false}, {"prefixItems": [{}, {}], "items": {"type": "integer"}}]}),
        json!([[], [1], [3, 1], [3, "a"], ["a"], {}]),
    );
    agrees(
        json!({"allOf": [{"type": "array", "items": {"type": "integer"}}, {"items": {"minimum": 2}}]}),
        json!([[], [1], [2], ["a"]]),
    );
    agrees(
        json!({"type": "array", "prefixItems": [{"type": "string"}], "allOf": [{"minItems": 1}]}),
        json!([[], [1], ["a"], ["a", 1]]),
    );
    let x = json!({"^x": {}});
    let closed_over = json!([{}, {"a": 1}, {"x": 1}, {"a": 1, "x": 1}, {"x": ""}, {"y": 1}, {"y": ""}, 1]);
    agrees(
        json!({"allOf": [{"type": "object", "properties": {"a": {}}, "additionalProperties": false}, {"patternProperties": x}]}),
        closed_over.clone(),
    );
    agrees(
        json!({"type": "object", "allOf": [{"patternProperties": x, "additionalProperties": {"type": "integer"}}, {"additionalProperties": {"type": "integer"}}]}),
        closed_over,
    );
    agrees(
        json!({"type": "object", "allOf": [{"patternProperties": x, "additionalProperties": false}, {"patternProperties": {"^x": {"type": "integer"}}}]}),
        json!([{"x": 1}, {"x": ""}, {"y": 1}]),
    );
    for other in [
        json!({"properties": {"b": {}}}),
        json!({"patternProperties": x}),
        json!({"additionalProperties": true}),
        json!({"allOf": [{"properties": {"b": {}}}]}),
        json!({"anyOf": [{"properties": {"b": {}}}, {"properties": {"c": {}}}]}),
    ] {
        let closed = json!({"properties": {"a": {}}, "unevaluatedProperties": false});
        let values = json!([{}, {"a": 1}, {"b": 1}, {"x": 1}, {"a": 1, "b": 1}, {"c": 1}]);
        agrees(json!({"type": "object", "allOf": [closed, other]}), values.clone());
        agrees(json!({"type": "object", "allOf": [other, closed]}), values);
    }
    agrees(
        json!({"type": "object", "allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": false}),
        json!([{}, {"a": 1, "b": 1}, {"c": 1}]),
    );
}

#[test]
fn unevaluated_properties() {
    agrees(json!({"unevaluatedProperties": false}), json!([{}, {"a": 1}, 1, "a", null, []]));
    let a = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let b = json!({"properties": {"b": {"type": "integer"}}, "required": ["b"]});
    for keyword in ["anyOf", "oneOf"] {
        agrees(
            json!({"type": "object", keyword: [a, b], "unevaluatedProperties": false}),
            json!([{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": "x"}, {"a": 1, "c": 1}]),
        );
        agrees(
            json!({"type": "object", "properties": {"a": {}, "b": {}}, keyword: [a, b], "unevaluatedProperties": false}),
            json!([{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 1}]),
        );
        let tagged = |name: &str, more: &str| json!({"properties": {"t": {"const": name}, more: {}}, "required": ["t"]});
        agrees(
            json!({"type": "object", keyword: [tagged("a", "x"), tagged("b", "y")], "unevaluatedProperties": false}),
            json!([{"t": "a"}, {"t": "a", "x": 1}, {"t": "a", "y": 1}, {"t": "b", "y": 1}, {"t": "c"}]),
        );
    }
}

#[test]
fn exactly_one_is_not_multiplied_out() {
    agrees(
        json!({"oneOf": [{"type": "integer"}, {"type": "number"}], "allOf": [{"type": ["integer", "number", "string"]}]}),
        json!([1, 1.5, "a", null]),
    );
    let objects = json!([{}, {"a": 1}, {"b": 1}, {"x1": 1}, {"a": 1, "b": 1}, {"a": 1, "x1": 1}, {"a": 1, "b": 1, "x1": 1},
        {"a": 1, "b": 1, "c": 1, "x1": 1}]);
    let either = |keyword: &str| json!({keyword: [{"required": ["a"]}, {"required": ["b"]}]});
    for (outer, inner) in [("anyOf", "oneOf"), ("oneOf", "anyOf"), ("oneOf", "oneOf"), ("anyOf", "anyOf")] {
        agrees(json!({"type": "object", outer: [either(inner), {"required": ["x1"]}]}), objects.clone());
        agrees(
            json!({"type": "object", "allOf": [either(outer), {inner: [{"minProperties": 1}, {"maxProperties": 3}]}]}),
            objects.clone(),
        );
        agrees(
            json!({"type": "object", outer: [{"minProperties": 2}, {"required": ["a"]}], "allOf": [either(inner), either("anyOf")]}),
            objects.clone(),
        );
    }
    // Null is a value like any other.
    agrees(json!({"oneOf": [{"type": "null"}, {"type": ["string", "null"]}]}), json!([null, "a", 1]));
    agrees(json!({"oneOf": [{"type": "null"}, {"type": "string"}]}), json!([null, "a", 1]));
    agrees(json!({"oneOf": [{"type": "null"}, {"const": null}, {"type": "string"}]}), json!([null, "a", 1]));
    agrees(json!({"anyOf": [{"type": "null", "enum": ["a"]}, {"type": "string"}]}), json!([null, "a", 1]));
}

#[test]
fn alternatives_that_nothing_fits_are_left_out() {
    agrees(
        json!({"type": ["string", "integer"], "anyOf": [{"type": "boolean"}, {"type": "string"}, {"const": 5}]}),
        json!([true, "a", 5, 6]),
    );
    agrees(json!({"allOf": [{"type": "string"}, {"type": "integer"}]}), json!(["a", 1, null]));
    agrees(json!({"allOf": [{"const": 5}, {"const": 5.0}]}), json!([5, 6]));
    agrees(json!({"allOf": [{"enum": [1, 2.0, "a"]}, {"enum": [2, 1.0, "b"]}]}), json!([1, 2, "a", "b"]));
    agrees(json!({"allOf": [{"enum": [1]}, {"enum": [2]}]}), json!([1, 2]));
    agrees(
        json!({"allOf": [{"minimum": 9_007_199_254_740_992_u64, "type": "integer"}, {"minimum": 9_007_199_254_740_993_u64}]}),
        json!([9_007_199_254_740_992_u64, 9_007_199_254_740_993_u64]),
    );
}

#[test]
fn null_is_a_value_wherever_an_alternative_takes_it() {
    agrees(
        json!({"anyOf": [{"type": ["string", "null"]}, {"type": "integer"}]}),
        json!([null, "a", 1, true]),
    );
    let union =
        json!({"anyOf": [{"anyOf": [{"$ref": "#/$defs/n"}, {"type": "boolean"}]}, {"type": "integer"}]});
    let schema = json!({"type": "object", "properties": {"v": union, "w": {"type": "integer"}},
        "$defs": {"n": {"anyOf": [{"type": "string"}, {"enum": [1.5, null]}]}}});
    for policy in [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()] {
        let plan = Plan::compile("t", &schema, PlanOptions::default().coercion(policy)).expect("a plan");
        assert_eq!(plan.parse::<Value>(r#"{"v":null}"#).expect("a value").value, json!({"v": null}));
        assert_eq!(plan.parse::<Value>(r#"{"w":null}"#).is_ok(), policy != CoercionPolicy::exact());
    }
}

#[test]
fn long_chains_of_alternatives_are_refused() {
    let (mut definitions, mut properties) = (serde_json::Map::new(), serde_json::Map::new());
    definitions.insert("D0".into(), json!({"type": "integer"}));
    for i in 1..5_000 {
        let before = json!({"$ref": format!("#/$defs/D{}", i - 1)});
        definitions.insert(format!("D{i}"), json!({"anyOf": [before, {"type": "boolean"}]}));
        properties.insert(format!("p{i}"), json!({"$ref": format!("#/$defs/D{i}")}));
    }
    let schema = json!({"type": "object", "properties": properties, "$defs": definitions});
    assert_eq!(compile(&schema).expect_err("too long").keyword(), "$ref");
}

#[test]
fn recursion_through_a_single_part() {
    for node in [
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "next": {"allOf": [{"$ref": "#/$defs/node"}], "description": "the next"}}}),
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "next": {"type": "object", "$ref": "#/$defs/node"}}}),
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "next": {"type": "object", "allOf": [{"$ref": "#/$defs/node"}]}}}),
    ] {
        let schema =
            json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}});
        let plan = compile(&schema).unwrap_or_else(|e| panic!("{e}"));
        assert!(plan.parse::<Value>(r#"{"v":{"n":1,"next":{"next":{"n":2}}}}"#).is_ok());
        let error =
            plan.parse::<Value>(r#"{"v":{"n":1,"next":{"next":{"n":"x"}}}}"#).expect_err("no integer");
        assert_eq!(error.issues()[0].path, "/v/next/next/n");
    }
}

#[test]
fn registration_does_not_multiply() {
    let mut definitions = serde_json::Map::new();
    for level in 0..18 {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
        definitions.insert(format!("L{level}"), json!({"type": "object", "anyOf": [next, next]}));
    }
    definitions.insert("L18".into(), json!(false));
    let deep = json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/L0"}}, "$defs": definitions});
    // Many alternatives, and a large base that each of them would copy.
    let options: Vec<Value> = (0..3_000).map(|i| json!({"required": [format!("p{i}")]})).collect();
    let properties: serde_json::Map<String, Value> =
        (0..3_000).map(|i| (format!("p{i}"), json!({}))).collect();
    let wide = inside(&json!({"type": "object", "properties": properties, "anyOf": options}));
    // Every alternative is a large definition.
    let options: Vec<Value> = (0..2_000).map(|_| json!({"$ref": "#/$defs/large"})).collect();
    let large = json!({"type": "object", "properties": {"v": {"anyOf": options}},
        "$defs": {"large": {"type": "object", "properties": properties}}});
    for schema in [deep, wide, large] {
        let started = Instant::now();
        let error = compile(&schema).expect_err("too much");
        assert_eq!(error.keyword(), "$ref", "{error}");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}

#[test]
fn references_are_told_apart_by_where_they_lead() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x~1properties~1b"}, "c": {"$ref": "#/$defs/x/properties/b"}},
        "$defs": {"x/properties/b": {"type": "integer"}, "x": {"properties": {"b": {"type": "string"}}}}
    });
    let plan = compile(&schema).unwrap_or_else(|e| panic!("{e}"));
    assert!(plan.parse::<Value>(r#"{"a":1,"c":"x"}"#).is_ok());
    assert!(plan.parse::<Value>(r#"{"c":1}"#).is_err());
}

#[test]
fn identifiers_move_what_references_mean() {
    let schema = json!({
        "$id": "https://example.com/root.json", "type": "object",
        "properties": {
            "v": {"$id": "inner/v.json", "$defs": {"x": {"type": "string"}}, "items": {"$ref": "#/$defs/x"}},
            "w": {"$ref": "inner/v.json#/$defs/x"},
            "a": {"$ref": "#named"},
            "b": {"$ref": "https://example.com/other"},
            "$id": {"type": "integer"},
            "c": {"const": {"$ref": "nowhere", "$id": "x"}}
        },
        "$defs": {
            "x": {"type": "integer"}, "y": {"$anchor": "named", "type": "boolean"}, "50%/~": {"$id": "/other", "type": "null"}
        }
    });
    let (plan, oracle) =
        (compile(&schema).unwrap_or_else(|e| panic!("{e}")), jsonschema::validator_for(&schema).unwrap());
    for (key, value) in [
        ("v", json!(["a"])),
        ("v", json!([1])),
        ("w", json!("a")),
        ("w", json!(1)),
        ("a", json!(true)),
        ("a", json!(1)),
        ("b", json!(null)),
        ("b", json!(1)),
        ("$id", json!(1)),
        ("$id", json!("1")),
        ("c", json!({"$id": "x", "$ref": "nowhere"})),
        ("c", json!({"$ref": "#"})),
    ] {
        let sent = json!({key: value});
        assert_eq!(plan.parse::<Value>(&sent.to_string()).is_ok(), oracle.is_valid(&sent), "{sent}");
    }
    for (reference, word) in
        [("inner/w.json", "out of the document"), ("#nobody", "nowhere"), ("//example.com/root.json#", "")]
    {
        let schema = json!({"$id": "https://example.com/root.json", "type": "object", "properties": {"v": {"$ref": reference}}});
        match compile(&schema) {
            Ok(plan) => assert!(word.is_empty() && plan.parse::<Value>(r#"{"v":{"v":{}}}"#).is_ok()),
            Err(error) => {
                assert!(error.to_string().contains(word), "{error}");
                assert_eq!((error.keyword(), error.pointer()), ("$ref", "/properties/v"));
            }
        }
    }
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"v": {"$ref": "#item"}}, "definitions": {"a": {"$id": "#item", "type": "integer"}}});
    let plan = compile(&old).unwrap_or_else(|e| panic!("{e}"));
    assert!(plan.parse::<Value>(r#"{"v":1}"#).is_ok() && plan.parse::<Value>(r#"{"v":"1"}"#).is_err());
}

/// Keywords that combinations mix up easily.
fn part() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        json!({"type": "object"}),
        json!({"type": ["object", "null"]}),
        json!({"type": "string"}),
        json!({"type": ["integer", "string", "null"]}),
        json!({"type": "number"}),
        json!({"type": "null"}),
        json!({"const": 1}),
        json!({"const": "a"}),
        json!({"enum": ["a", "b", 1, null]}),
        json!({"enum": ["a"]}),
        json!({"properties": {"a": {"type": "integer"}}, "type": "object"}),
        json!({"properties": {"b": {"type": ["integer", "null"]}}, "type": "object"}),
        json!({"properties": {"t": {"const": "a"}}, "required": ["t"], "type": "object"}),
        json!({"properties": {"t": {"const": "b"}}, "required": ["t"], "type": "object"}),
        json!({"properties": {"a": {}}, "required": ["a"], "type": "object", "additionalProperties": false}),
        json!({"properties": {"b": {}}, "required": ["b"], "type": "object", "additionalProperties": false}),
        json!({"required": ["a"]}),
        json!({"required": ["b"], "type": "object"}),
        json!({"minProperties": 2}),
        json!({"maxProperties": 1, "type": "object"}),
        json!({"patternProperties": {"^a": {"type": "integer"}}, "type": "object"}),
        json!({"additionalProperties": {"type": "integer"}, "type": "object"}),
        json!({"additionalProperties": false}),
        json!({"unevaluatedProperties": false}),
        json!({"unevaluatedProperties": {"type": "integer"}}),
        json!({"unevaluatedProperties": true, "type": "object"}),
        json!({"unevaluatedItems": false}),
        json!({"unevaluatedItems": {"type": "integer"}, "prefixItems": [{}]}),
        json!({"not": {"required": ["a"]}}),
        json!({"not": {"type": "integer"}}),
        json!({"not": {"enum": ["a", 1]}}),
        json!({"not": {"not": {"minProperties": 1, "type": "object"}}}),
        json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
        json!({"if": {"properties": {"t": {"const": "a"}}, "required": ["t"]}, "then": {"properties": {"b": {"type": "integer"}}}, "else": {"maxProperties": 1}}),
        json!({"if": {"type": "integer"}, "then": {"minimum": 2}}),
        json!({"contains": {"type": "integer"}}),
        json!({"contains": {"type": "string"}, "minContains": 0, "maxContains": 1, "type": "array"}),
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"propertyNames": {"enum": ["a", "t"]}, "type": "object"}),
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}, "minProperties": 2}}}),
        json!({"dependencies": {"a": ["b"], "t": {"maxProperties": 1}}}),
        json!({"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "integer", "minimum": 2}}}),
        json!({"patternProperties": {"^a": {}, "z": {"type": "string"}}, "additionalProperties": false}),
        json!({"properties": {"a": {"minimum": 1}}, "patternProperties": {"^a$": {"type": "integer"}, "b": {}}, "additionalProperties": {"type": "string"}}),
        json!({"prefixItems": [{"type": "integer"}], "items": false}),
        json!({"pattern": "^a"}),
        json!({"pattern": "b"}),
        json!({"multipleOf": 1.5}),
        json!({"enum": [[1], {"a": 1}, {}]}),
        json!({"unevaluatedProperties": false, "type": "object", "properties": {"a": {}}}),
        json!({"type": "array"}),
        json!({"type": "array", "prefixItems": [{"type": "integer"}]}),
        json!({"items": {"type": "integer"}}),
        json!({"minItems": 1}),
        json!({"minLength": 2}),
        json!({"minimum": 1}),
        json!({"multipleOf": 2, "type": "integer"}),
        json!({"$ref": "#/$defs/a"}),
        json!({"$ref": "#/$defs/closed"}),
        json!(true),
        json!(false),
        json!({}),
    ]);
    keyword.prop_recursive(3, 12, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 1..4);
        let beside = |keyword: &'static str| {
            (several(), inner.clone()).prop_map(move |(parts, own)| {
                let mut own = own;
                if let Value::Object(own) = &mut own
                    && !own.contains_key("$ref")
                {
                    own.insert(keyword.into(), parts.into());
                    return Value::Object(own.clone());
                }
                json!({keyword: parts})
            })
        };
        prop_oneof![beside("allOf"), beside("anyOf"), beside("oneOf")]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(512)))]

    #[test]
    fn exact_agrees_or_the_schema_is_refused(part in part()) {
        let values = json!([
            null, 1, 2, 3.0, 1.5, "a", "bc", "ab", [], [1], ["a"], [1, "a"], [[1], 2], {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"b": null}, {"a": 1, "b": 2},
            {"t": "a"}, {"t": "b", "a": 1}, {"t": "a", "b": 1}, {"ab": 1}, {"ab": "x", "c": 1}, {"z": "x"}, {"z": 1}
        ]);
        let schema = json!({
            "type": "object", "properties": {"v": part},
            "$defs": {
                "a": {"type": "object", "properties": {"a": {"type": "integer"}}},
                "closed": {"type": "object", "properties": {"b": {}}, "additionalProperties": false}
            }
        });
        let Ok(plan) = compile(&schema) else { return Ok(()) };
        let oracle = jsonschema::validator_for(&schema).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for value in values.as_array().into_iter().flatten() {
            let sent = json!({"v": value});
            let (want, got) = (oracle.is_valid(&sent), plan.parse::<Value>(&sent.to_string()));
            prop_assert_eq!(got.is_ok(), want, "{} {}: {:?}", schema, sent, got);
        }
    }
}
