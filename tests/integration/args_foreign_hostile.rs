//! Schemas and values that are made to cost much: bounded time and memory, on the stack of a plain thread.

use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions, SchemaError, UnknownKeys};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Far above what each takes, because machines are busy.
const LIMIT: Duration = Duration::from_secs(30);
/// Ten times as many where the code is optimised.
const TIMES: usize = if cfg!(debug_assertions) { 1 } else { 10 };

fn compile(schema: &Value) -> Result<Plan, SchemaError> {
    let options = PlanOptions::default().coercion(CoercionPolicy::lenient()).unknown(UnknownKeys::Keep);
    Plan::compile("t", schema, options)
}

#[track_caller]
fn in_time<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let out = run();
    let taken = started.elapsed();
    println!("{what}: {taken:?}");
    assert!(taken < LIMIT, "{what} took {taken:?}");
    out
}

fn call(plan: &Plan, v: &Value) -> Result<Value, InvalidArguments> {
    plan.parse::<Value>(&json!({"v": v}).to_string()).map(|parsed| parsed.value)
}

type Rung = fn(&Value) -> Value;

/// `L0` to `L{levels}`, each made of the name of the next; the last is `end`.
fn ladder(levels: usize, end: &Value, rung: impl Fn(&Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
        definitions.insert(format!("L{level}"), rung(&next));
    }
    definitions.insert(format!("L{levels}"), end.clone());
    json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/L0"}}, "$defs": definitions})
}

#[test]
fn references_that_double() {
    let rungs: [(&str, Rung); 13] = [
        ("allOf", |n| json!({"allOf": [n, n, {"minProperties": 1}]})),
        ("anyOf", |n| json!({"anyOf": [n, {"allOf": [n, {"type": "object"}]}]})),
        ("oneOf", |n| json!({"oneOf": [n, {"allOf": [n, {"minProperties": 2}]}]})),
        ("not", |n| json!({"allOf": [{"not": n}, {"not": {"allOf": [n]}}]})),
        ("if", |n| json!({"if": n, "then": n, "else": n})),
        ("dependentSchemas", |n| json!({"dependentSchemas": {"a": n, "b": n}})),
        ("properties", |n| json!({"properties": {"a": n, "b": {"allOf": [n, {"minProperties": 1}]}}})),
        ("contains", |n| json!({"contains": n, "items": n})),
        ("propertyNames", |n| json!({"propertyNames": n, "not": n})),
        ("patternProperties", |n| json!({"patternProperties": {"^a": n, "a$": n, "b": n}})),
        (
            "unevaluatedProperties",
            |n| json!({"anyOf": [n, {"properties": {"b": n}}], "unevaluatedProperties": n}),
        ),
        ("unevaluatedItems", |n| json!({"anyOf": [n, {"prefixItems": [n]}], "unevaluatedItems": n})),
        (
            "closed",
            |n| json!({"allOf": [n, {"properties": {"b": n}, "anyOf": [n, n], "unevaluatedProperties": false}]}),
        ),
    ];
    let mut nested = json!({"a": 1});
    let mut list = json!([1]);
    for _ in 0..60 {
        nested = json!({"a": nested, "b": {"a": 1}});
        list = json!([list]);
    }
    for (name, rung) in rungs {
        for end in [json!({"type": "object"}), json!({"type": "string"}), json!({"$ref": "#/$defs/L0"})] {
            let schema = ladder(if cfg!(debug_assertions) { 14 } else { 30 }, &end, rung);
            let Ok(plan) = in_time(name, || compile(&schema)) else { continue };
            for value in [&nested, &list, &json!({"a": 1, "b": 2}), &json!("a")] {
                let refused = in_time(name, || call(&plan, value)).err();
                assert!(refused.is_none_or(|e| e.to_text().len() < 7_000));
            }
        }
    }
}

#[test]
fn references_in_circles() {
    for v in [
        json!({"not": {"$ref": "#/properties/v"}}),
        json!({"if": {"$ref": "#/properties/v"}, "then": true, "else": false}),
        json!({"if": true, "then": {"$ref": "#/properties/v"}}),
        json!({"allOf": [{"$ref": "#/properties/v"}]}),
        json!({"anyOf": [{"$ref": "#/properties/v"}, {"type": "null"}]}),
        json!({"dependentSchemas": {"a": {"$ref": "#/properties/v"}}}),
        json!({"type": "string", "$ref": "#/properties/v"}),
        json!({"allOf": [{"not": {"allOf": [{"$ref": "#/properties/v"}, {"minProperties": 1}]}}]}),
        json!({"not": {"unevaluatedProperties": false, "anyOf": [{"$ref": "#/properties/v"}, {"properties": {"a": {}}}]}}),
    ] {
        let error = in_time("circle", || compile(&json!({"type": "object", "properties": {"v": v}})));
        assert!(error.is_err(), "{v}");
    }
    // These go down with the value, and end with it.
    let mut deep = json!({});
    for _ in 0..80 {
        deep = json!({"a": deep});
    }
    for v in [
        json!({"propertyNames": {"$ref": "#/properties/v"}}),
        json!({"contains": {"$ref": "#/properties/v"}}),
        json!({"not": {"required": ["b"]}, "properties": {"a": {"$ref": "#/properties/v"}}}),
        json!({"if": {"required": ["a"]}, "then": {"properties": {"a": {"$ref": "#/properties/v"}}}}),
        json!({"anyOf": [{"properties": {"a": {"$ref": "#/properties/v"}}, "required": ["a"]}, {"maxProperties": 0}], "unevaluatedProperties": false}),
        json!({"oneOf": [{"properties": {"a": {"$ref": "#/properties/v"}}, "required": ["a"]}, {"maxProperties": 0}], "unevaluatedProperties": {"$ref": "#/properties/v"}}),
        json!({"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}}),
    ] {
        let plan =
            compile(&json!({"type": "object", "properties": {"v": v}})).unwrap_or_else(|e| panic!("{e}"));
        in_time("down", || call(&plan, &deep)).unwrap_or_else(|e| panic!("{v}: {e}"));
    }
    for reference in ["$dynamicRef", "$recursiveRef"] {
        let schema = json!({"type": "object", "properties": {"v": {"$dynamicAnchor": "n", "allOf": [{reference: "#n"}]}},
            "$defs": {"other": {"$dynamicAnchor": "n"}}});
        if let Ok(plan) = in_time(reference, || compile(&schema)) {
            let _ = in_time(reference, || call(&plan, &deep));
        }
    }
}

#[test]
fn deep_schemas_and_values() {
    for keyword in
        ["not", "anyOf", "allOf", "oneOf", "items", "if", "contains", "properties", "unevaluatedProperties"]
    {
        for depth in [60, 120, 250, 400] {
            let mut schema = json!({"type": "integer"});
            for _ in 0..depth {
                schema = match keyword {
                    "anyOf" | "allOf" | "oneOf" => json!({keyword: [schema, {"minProperties": 1}]}),
                    "properties" => json!({keyword: {"a": schema}}),
                    "if" => json!({"if": schema, "then": {"maxProperties": 3}}),
                    "unevaluatedProperties" => {
                        json!({"anyOf": [{"properties": {"b": {}}}, {}], keyword: schema})
                    }
                    _ => json!({keyword: schema}),
                };
            }
            let schema = json!({"type": "object", "properties": {"v": schema}});
            if let Ok(plan) = in_time(keyword, || compile(&schema)) {
                for value in [json!(1), json!({"a": {"a": 1}, "b": {"a": 1}}), json!([[[1]]])] {
                    let _ = in_time(keyword, || call(&plan, &value));
                }
            }
        }
    }
    // Long chains of schemas for one value, at every level of a deep value.
    let step = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}});
    let chains: [Rung; 3] = [
        |n| json!({"anyOf": [{"not": n}, {"type": "boolean"}]}),
        |n| json!({"anyOf": [n, {"type": "boolean"}]}),
        |n| json!({"if": {"required": ["a"]}, "then": n}),
    ];
    let text = format!("{{\"v\":{}{}}}", "{\"a\":".repeat(124) + "1", "}".repeat(124));
    for chain in chains {
        if let Ok(plan) = compile(&ladder(28, &step, chain)) {
            let _ = in_time("chain", || plan.parse::<Value>(&text).map(|p| p.value));
        }
    }
}

#[test]
fn many_members_items_and_patterns() {
    let words: Vec<Value> = (0..10_000 * TIMES).map(|i| json!(format!("word-{i}"))).collect();
    let mixed: Vec<Value> =
        (0..3_000 * TIMES).map(|i| if i % 2 == 0 { json!(i) } else { json!({"n": i}) }).collect();
    let schema = json!({"type": "object", "properties": {
        "v": {"type": "array", "items": {"enum": words}}, "w": {"enum": mixed}, "s": {"uniqueItems": true}}});
    let plan = in_time("sets", || compile(&schema)).unwrap_or_else(|e| panic!("{e}"));
    assert!(in_time("last word", || call(&plan, &json!([format!("word-{}", 10_000 * TIMES - 1)]))).is_ok());
    assert!(in_time("no word", || call(&plan, &json!(vec!["word"; 100]))).is_err());
    assert!(
        plan.parse::<Value>(r#"{"w":{"n":2999}}"#).is_ok()
            && plan.parse::<Value>(r#"{"w":{"n":2}}"#).is_err()
    );
    let items: Vec<Value> = (0..10_000 * TIMES).map(|i| json!({"n": i, "t": [format!("{i}")]})).collect();
    let all = json!({"s": items}).to_string();
    assert!(in_time("all different", || plan.parse::<Value>(&all)).is_ok());
    let end = 10_000 * TIMES - 1;
    let last = all.replace(&end.to_string(), &(end - 1).to_string());
    let error = in_time("the last repeats", || plan.parse::<Value>(&last)).expect_err("repeats");
    assert_eq!((error.issues()[0].path.clone(), error.count()), (format!("/s/{end}"), 1));

    let patterns: Map<String, Value> =
        (0..400).map(|i| (format!("^k{i}_.*x$"), json!({"type": "integer"}))).collect();
    let schema = json!({"type": "object", "properties": {"v": {"type": "object", "patternProperties": patterns, "additionalProperties": false}}});
    let plan = in_time("patterns", || compile(&schema)).unwrap_or_else(|e| panic!("{e}"));
    let entries: Map<String, Value> =
        (0..2_000).map(|i| (format!("k{}_{i}x", i % 400), json!("1"))).collect();
    assert!(in_time("keys", || call(&plan, &entries.clone().into())).is_ok());

    // Conditions on every item, with something to coerce in each.
    let item = json!({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer"}},
        "if": {"properties": {"kind": {"const": "a"}}}, "then": {"properties": {"n": {"minimum": 5}}}, "else": {"not": {"required": ["n"]}}});
    let schema = json!({"type": "object", "properties": {"v": {"type": "array", "items": item,
        "contains": {"required": ["n"]}, "maxContains": 100_000}}});
    let plan = compile(&schema).unwrap_or_else(|e| panic!("{e}"));
    let mut items: Vec<Value> =
        (0..2_000 * TIMES).map(|i| json!({"kind": "a", "n": format!("{}", i + 5)})).collect();
    assert!(in_time("conditions", || call(&plan, &items.clone().into())).is_ok());
    let end = items.len() - 1;
    items[end]["n"] = json!("4");
    let error = in_time("one fails", || call(&plan, &items.into())).expect_err("too small");
    assert_eq!((error.issues()[0].path.clone(), error.count()), (format!("/v/{end}/n"), 1));
}

#[test]
fn what_is_left_to_the_whole_is_bounded_too() {
    // Every level looks at all levels below once more to know what is unevaluated.
    let mut schema = json!({"properties": {"a": {"type": "integer"}}});
    for i in 0..40 {
        let name = format!("p{i}");
        schema = json!({"anyOf": [schema, {"properties": {name: {}}}], "unevaluatedProperties": false});
    }
    let schema = json!({"type": "object", "properties": {"v": schema}});
    if let Ok(plan) = in_time("nested", || compile(&schema)) {
        let entries: Map<String, Value> = (0..40).map(|i| (format!("p{i}"), json!(1))).collect();
        let _ = in_time("nested", || call(&plan, &entries.into()));
    }
    // A real one is checked in full.
    let schema = json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {}}}],
        "unevaluatedProperties": false, "properties": {"list": {"items": {"type": "string"}}}});
    let plan = compile(&schema).unwrap_or_else(|e| panic!("{e}"));
    let list: Vec<String> = (0..2_000 * TIMES).map(|i| i.to_string()).collect();
    let text = json!({"a": 1, "list": list}).to_string();
    assert!(in_time("long list", || plan.parse::<Value>(&text)).is_ok());
}

/// A list of lists of lists …: one value could be wrapped for ever.
#[test]
fn endless_lists_are_not_wrapped_for_ever() {
    let list = json!({"type": "array", "items": {"$ref": "#/$defs/list"}});
    let schema =
        json!({"type": "object", "properties": {"list": {"$ref": "#/$defs/list"}}, "$defs": {"list": list}});
    for policy in [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()] {
        let plan = Plan::compile("t", &schema, PlanOptions::default().coercion(policy)).unwrap();
        for text in [r#"{"list": [1, [2.5, []]]}"#, r#"{"list": "a"}"#, r#"{"list": {"list": 1}}"#] {
            let refusal = plan.parse::<Value>(text).unwrap_err();
            assert_eq!(refusal.corrected(), None, "{text}");
        }
    }
}

/// In a foreign schema, each of several patterns becomes a check, and each merge of `allOf` looks at all of them.
#[test]
fn patterns_of_many_parts() {
    for (parts, patterns) in [(2_000, 1), (1_000, 2), (100, 100), (20, 1_000), (1, 20_000)] {
        let part = |part: usize| {
            let names = (0..patterns).map(|name| (format!("^p{part}x{name}$"), json!({"type": "integer"})));
            json!({"patternProperties": names.collect::<Map<_, _>>()})
        };
        let all: Vec<Value> = (0..parts).map(part).collect();
        for v in [
            json!({"allOf": all}),
            json!({"allOf": all, "patternProperties": {"^a": {}, "^b": {"type": "string"}}}),
        ] {
            let schema = json!({"type": "object", "properties": {"v": v}});
            let plan = in_time(&format!("{parts} parts of {patterns} patterns"), || compile(&schema));
            if let Ok(plan) = plan {
                let _ = in_time("call", || call(&plan, &json!({"p0x0": "7", "p1x0": "a", "q": 1})));
            }
        }
    }
    for parts in [1_000, 20_000] {
        let all: Vec<Value> = (0..parts).map(|part| json!({"not": {"const": part}})).collect();
        let schema = json!({"type": "object", "properties": {"v": {"allOf": all}}});
        let _ = in_time(&format!("{parts} parts of `not`"), || compile(&schema));
    }
}
