//! Combinations in schemas from elsewhere: `exact` takes what JSON Schema takes, or the schema is refused at once.

use agent::args::{CoercionPolicy, Plan, PlanOptions, SchemaError, UnknownKeys};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn compile(schema: &Value) -> Result<Plan, SchemaError> {
    let options = PlanOptions::default().coercion(CoercionPolicy::Exact).unknown(UnknownKeys::Keep);
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

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn refused(schema: Value, keyword: &str) {
    let error = compile(&inside(&schema)).expect_err("a schema that is not modelled");
    assert_eq!(error.keyword(), keyword, "{error}");
    assert!(error.pointer().starts_with("/properties/v"), "{error}");
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
    refused(
        json!({"anyOf": [
            {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false, "enum": [{"a": 1}]},
            {"type": "object", "properties": {"b": {}}, "required": ["b"], "additionalProperties": false}
        ]}),
        "properties",
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
    refused(
        json!({"allOf": [{"type": "array", "prefixItems": [{}]}, {"items": {"type": "integer"}}]}),
        "prefixItems",
    );
    refused(json!({"type": "array", "items": [{}], "allOf": [{"items": {"type": "integer"}}]}), "items");
    agrees(
        json!({"allOf": [{"type": "array", "items": {"type": "integer"}}, {"items": {"minimum": 2}}]}),
        json!([[], [1], [2], ["a"]]),
    );
    agrees(
        json!({"type": "array", "prefixItems": [{"type": "string"}], "allOf": [{"minItems": 1}]}),
        json!([[], [1], ["a"], ["a", 1]]),
    );
    let x = json!({"^x": {}});
    refused(
        json!({"allOf": [{"type": "object", "properties": {"a": {}}, "additionalProperties": false}, {"patternProperties": x}]}),
        "additionalProperties",
    );
    refused(
        json!({"type": "object", "allOf": [{"patternProperties": x, "additionalProperties": {"type": "integer"}}, {"additionalProperties": {"type": "integer"}}]}),
        "additionalProperties",
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
        refused(json!({"type": "object", "allOf": [closed, other]}), "unevaluatedProperties");
        refused(json!({"type": "object", "allOf": [other, closed]}), "unevaluatedProperties");
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
        refused(
            json!({"type": "object", keyword: [a, b], "unevaluatedProperties": false}),
            "unevaluatedProperties",
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
    for policy in [CoercionPolicy::Exact, CoercionPolicy::Strict, CoercionPolicy::Lenient] {
        let plan = Plan::compile("t", &schema, PlanOptions::default().coercion(policy)).expect("a plan");
        assert_eq!(plan.parse::<Value>(r#"{"v":null}"#).expect("a value").value, json!({"v": null}));
        assert_eq!(plan.parse::<Value>(r#"{"w":null}"#).is_ok(), policy != CoercionPolicy::Exact);
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
fn a_reference_below_another_identifier_is_refused() {
    let schema = |id: &str| {
        json!({"type": "object", "properties": {"v": {"$id": id, "$defs": {"x": {"type": "string"}},
        "properties": {"enum": {"items": [{"$ref": "#/$defs/x"}]}}}}, "$defs": {"x": {"type": "integer"}}})
    };
    let error = compile(&schema("https://example.com/v")).expect_err("relative to another place");
    assert_eq!((error.keyword(), error.pointer()), ("$ref", "/properties/v/properties/enum/items/0"));
    assert!(compile(&schema("#v")).is_ok());
    let mut harmless = json!({"$id": "https://example.com/", "type": "object", "properties": {"v": {"$ref": "#/$defs/x"},
        "w": {"$id": "w", "const": {"$ref": "x"}}, "$id": {"type": "integer"}}, "$defs": {"x": {}}});
    assert!(compile(&harmless).is_ok());
    harmless["properties"]["w"]["allOf"] = json!([{"$ref": "#"}]);
    assert!(compile(&harmless).is_err());
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
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn exact_agrees_or_the_schema_is_refused(part in part()) {
        let values = json!([
            null, 1, 2, 1.5, "a", "bc", [], [1], ["a"], {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"b": null}, {"a": 1, "b": 2},
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
