//! Schemas from elsewhere.

use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions, UnknownKeys};
use agent::schema::{Dialect, render};
use serde_json::{Value, json};

fn compile(schema: &Value) -> Plan {
    Plan::compile("t", schema, PlanOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// One required property `v`.
#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn one(schema: Value) -> Plan {
    compile(&json!({"type": "object", "properties": {"v": schema}, "required": ["v"]}))
}

fn issues(error: &InvalidArguments) -> Vec<(&str, &str)> {
    error.issues().iter().map(|i| (i.path.as_str(), i.code.as_str())).collect()
}

#[track_caller]
fn takes(plan: &Plan, sent: &Value, got: &Value) {
    let parsed = plan.parse::<Value>(&json!({"v": sent}).to_string());
    assert_eq!(parsed.unwrap_or_else(|e| panic!("{e}")).value["v"], *got);
}

#[track_caller]
fn refuses(plan: &Plan, sent: &Value, want: &[(&str, &str)]) {
    let error = plan.parse::<Value>(&json!({"v": sent}).to_string()).map(|p| p.value).expect_err("refused");
    assert_eq!(issues(&error), want, "{error}");
}

#[test]
fn goes_out_as_it_came() {
    let schema = json!({"title": "T", "properties": {"v": {"type": "integer", "nullable": true, "x-secret": true, "x-coerce": "exact"}}});
    let plan = compile(&schema);
    assert_eq!(plan.schema(), &schema);
    // The settings of the macros mean nothing here.
    takes(&plan, &json!("5"), &json!(5));
    refuses(&plan, &json!("x"), &[("/v", "type")]);
    assert!(plan.parse::<Value>(r#"{"v":"x"}"#).expect_err("refused").to_text().contains("got string \"x\""));
}

#[test]
fn references_to_any_place_of_the_document() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/n"},
            "b": {"$ref": "#/definitions/old"},
            "c": {"$ref": "#/properties/a"},
            "d": {"$ref": "#/$defs/with~1slash%20and~0tilde"},
            "e": {"$ref": "#"},
            "f": {"$ref": "#/$defs/list/items"}
        },
        "$defs": {
            "n": {"type": "integer"},
            "with/slash and~tilde": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "string"}}
        },
        "definitions": {"old": {"type": "number"}}
    });
    let plan = compile(&schema);
    let text = r#"{"a":"1","b":"2.5","c":3.0,"d":"true","e":{"a":"4","e":{"c":"5"}},"f":"x"}"#;
    let parsed = plan.parse::<Value>(text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(parsed.value, json!({"a":1,"b":2.5,"c":3,"d":true,"e":{"a":4,"e":{"c":5}},"f":"x"}));
    let error = plan.parse::<Value>(r#"{"e":{"e":{"a":"x"}}}"#).expect_err("refused");
    assert_eq!(issues(&error), [("/e/e/a", "type")]);
}

#[test]
fn references_that_lead_nowhere() {
    for (reference, word) in [
        ("#/$defs/missing", "nowhere"),
        ("https://example.com/schema", "out of the document"),
        ("other.json#/a", "out of the document"),
        ("#/properties/v", "itself"),
        ("#anchor", "nowhere"),
    ] {
        let schema = json!({"type": "object", "properties": {"v": {"$ref": reference}}});
        let error = Plan::compile("t", &schema, PlanOptions::default()).expect_err(reference);
        assert_eq!((error.keyword(), error.tool()), ("$ref", "t"));
        assert!(error.to_string().contains(word), "{error}");
    }
    let turns = json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "integer"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}});
    assert_eq!(
        Plan::compile("t", &turns, PlanOptions::default()).expect_err("turns in place").keyword(),
        "$ref"
    );
    // What an unknown keyword holds matters only if a schema leads to it.
    let mut shared = json!({"properties": {"v": {"type": "integer", "x-from": [{"$ref": "#anchor"}]}},
        "x-shared": {"n": {"$ref": "other.json"}}});
    takes(&compile(&shared), &json!(3), &json!(3));
    shared["properties"]["v"] = json!({"$ref": "#/x-shared/n"});
    let error = Plan::compile("t", &shared, PlanOptions::default()).expect_err("leads there");
    assert!(error.to_string().contains("out of the document"), "{error}");
}

#[test]
fn a_tool_may_take_a_schema() {
    for (address, definitions) in [
        ("http://json-schema.org/draft-07/schema", "definitions"),
        ("https://json-schema.org/draft/2020-12/schema", "$defs"),
    ] {
        for reference in [address.to_owned(), format!("{address}#")] {
            let plan = one(json!({"$ref": reference}));
            takes(&plan, &json!(true), &json!(true));
            let schema = json!({"type": ["object"], "properties": {"a": {"minLength": 1, "x-own": [1]}}, "$id": "urn:a"});
            takes(&plan, &schema, &schema);
            let wrong = json!({"type": "strng", "properties": {"a": {"minLength": -1, "items": 5}}});
            let want = [
                ("/v/properties/a/items", "type"),
                ("/v/properties/a/minLength", "range"),
                ("/v/type", "enum"),
            ];
            let error = plan.parse::<Value>(&json!({"v": wrong}).to_string()).expect_err("refused");
            let mut got = issues(&error);
            got.sort_unstable();
            assert_eq!(got, want, "{error}");
            assert!(error.to_text().contains("did you mean \"string\"?"), "{error}");
        }
        let part = one(json!({"$ref": format!("{address}#/{definitions}/nonNegativeInteger")}));
        takes(&part, &json!(3), &json!(3));
        refuses(&part, &json!(-3), &[("/v", "range")]);
        // What the document says of that address itself counts.
        let own = json!({"type": "object", "properties": {"v": {"$ref": address}},
            "$defs": {"own": {"$id": address, "type": "integer"}}});
        takes(&compile(&own), &json!(3), &json!(3));
        let everything = json!({"$ref": address});
        let root = compile(&everything);
        assert_eq!(root.schema(), &everything);
        assert!(
            root.parse::<Value>(r#"{"type": "array"}"#).is_ok()
                && root.parse::<Value>(r#"{"type": 5}"#).is_err()
        );
        for dialect in Dialect::ALL {
            let shown = render(&root, dialect).schema.to_string();
            assert!(!shown.contains("\\u0000"), "{dialect:?}: {shown}");
        }
    }
}

#[test]
fn keywords_that_are_not_modelled_are_refused_by_name_and_place() {
    for (keyword, value) in [
        ("not", json!(1)),
        ("if", json!("x")),
        ("contains", json!([])),
        ("dependentRequired", json!({"a": "b"})),
        ("dependentSchemas", json!({"a": ["b"]})),
        ("dependencies", json!({"a": 1})),
        ("propertyNames", json!("^a")),
        ("unevaluatedItems", json!(0)),
        ("disallow", json!(["string"])),
        ("extends", json!({})),
        ("divisibleBy", json!(2)),
        ("required", json!(true)),
        ("type", json!("any")),
        ("type", json!("float")),
        ("type", json!("dict")),
        ("pattern", json!("(")),
        ("pattern", json!("(?=lookahead)a")),
        ("minLength", json!(-1)),
        ("minimum", json!("1")),
        ("exclusiveMinimum", json!(true)),
        ("multipleOf", json!(0)),
        ("type", json!("text")),
        ("type", json!([])),
        ("enum", json!("a")),
        ("anyOf", json!([])),
        ("required", json!(["a", 1])),
        ("items", json!(1)),
    ] {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {keyword: value}}}});
        let error = Plan::compile("find", &schema, PlanOptions::default()).map(|_| ()).expect_err(keyword);
        assert_eq!(error.keyword(), keyword, "{error}");
        assert_eq!(error.pointer(), "/properties/a/items", "{error}");
        assert!(error.to_string().contains("`find`"), "{error}");
    }
    let bad = json!({"type": "object", "properties": {"v": {"type": "string", "pattern": "("}}});
    let error = Plan::compile("t", &bad, PlanOptions::default()).expect_err("no regex");
    assert!(std::error::Error::source(&error).is_some());
    // Not under properties: there it is a name.
    let names =
        json!({"type": "object", "properties": {"not": {"type": "integer"}, "if": {"type": "integer"}}});
    assert_eq!(compile(&names).parameter_names().collect::<Vec<_>>(), ["not", "if"]);
}

#[test]
fn the_root_is_an_object() {
    for schema in [
        json!({"type": "string"}),
        json!({"type": ["array", "null"]}),
        json!(false),
        json!({"const": [1]}),
        json!({"enum": [1]}),
        json!(5),
    ] {
        assert!(Plan::compile("t", &schema, PlanOptions::default()).is_err(), "{schema}");
    }
    for schema in [
        json!({}),
        json!(true),
        json!({"type": "object"}),
        json!({"anyOf": [{"type": "object"}, {"properties": {"a": {}}}]}),
        json!({"type": ["object", "array", "null"]}),
        json!({"anyOf": [{"type": "array"}, {"type": "object"}, true]}),
        json!({"enum": [1, {"a": 1}]}),
        json!({"not": {"required": ["b"]}}),
    ] {
        let plan = compile(&schema);
        assert!(plan.parse::<Value>(r#"{"a":1}"#).is_ok(), "{schema}");
        for other in ["[]", "null", "1"] {
            assert!(plan.parse::<Value>(other).is_err() || other == "null", "{schema}");
        }
    }
}

#[test]
fn arrays_of_both_drafts() {
    let open = one(json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}));
    takes(&open, &json!(["1"]), &json!([1]));
    takes(&open, &json!([1, "a", {"b": null}]), &json!([1, "a", {"b": null}]));
    refuses(&open, &json!([1, 2]), &[("/v/1", "type")]);
    let closed = one(json!({"type": "array", "items": [{"type": "integer"}], "additionalItems": false}));
    refuses(&closed, &json!([1, 2]), &[("/v", "length")]);
    let rest = one(
        json!({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}, "minItems": 2}),
    );
    takes(&rest, &json!([1, "true", false]), &json!([1, true, false]));
    refuses(&rest, &json!([1]), &[("/v", "length")]);
    refuses(&rest, &json!([1, 2]), &[("/v/1", "type")]);
    let none = one(json!({"type": "array", "items": false}));
    takes(&none, &json!([]), &json!([]));
    refuses(&none, &json!([1]), &[("/v", "length")]);
}

#[test]
fn type_lists_enums_and_booleans() {
    let list = one(json!({"type": ["string", "integer", "null"], "minLength": 2, "minimum": 5}));
    takes(&list, &json!("12"), &json!("12"));
    takes(&list, &json!(12), &json!(12));
    takes(&list, &json!(null), &json!(null));
    assert!(list.parse::<Value>(r#"{"v":1}"#).is_err());
    // "7" is too short for text, but is an integer.
    takes(&list, &json!("7"), &json!(7));
    let set = one(json!({"type": ["string", "null"], "enum": ["a", "bb", null, 3], "minLength": 2}));
    takes(&set, &json!("bb"), &json!("bb"));
    takes(&set, &json!(null), &json!(null));
    refuses(&set, &json!("a"), &[("/v", "enum")]);
    refuses(&set, &json!(3), &[("/v", "enum")]);
    let numbers = one(json!({"enum": [1, 2.5, "x", {"a": 1}]}));
    takes(&numbers, &json!("1"), &json!(1));
    takes(&numbers, &json!(1.0), &json!(1));
    takes(&numbers, &json!({"a": 1}), &json!({"a": 1}));
    refuses(&numbers, &json!({"a": 2}), &[("/v", "enum")]);
    let anything = one(json!(true));
    takes(&anything, &json!([1, {"a": null}]), &json!([1, {"a": null}]));
    refuses(&one(json!(false)), &json!(1), &[("/v", "type")]);
    let untyped = one(json!({"minLength": 2}));
    takes(&untyped, &json!(1), &json!(1));
    takes(&untyped, &json!({"a": 1}), &json!({"a": 1}));
    assert!(untyped.parse::<Value>(r#"{"v":"a"}"#).is_err());
}

#[test]
fn combinations() {
    let large = one(json!({"type": "integer", "allOf": [{"maximum": u64::MAX}, {"maximum": u64::MAX - 1}]}));
    assert!(large.parse::<Value>(&format!(r#"{{"v":{}}}"#, u64::MAX)).is_err());
    assert!(large.parse::<Value>(&format!(r#"{{"v":{}}}"#, u64::MAX - 1)).is_ok());
    let all = one(json!({"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 5}, {"type": "number"}]}));
    takes(&all, &json!("5"), &json!(5));
    refuses(&all, &json!(6), &[("/v", "range")]);
    refuses(&all, &json!(2.5), &[("/v", "type")]);
    let both = one(json!({
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"minimum": 3}, "b": {"type": "string"}}, "unevaluatedProperties": false}
        ]
    }));
    takes(&both, &json!({"a": "3", "b": "x"}), &json!({"a": 3, "b": "x"}));
    refuses(&both, &json!({"a": 2, "c": 1}), &[("/v/c", "unknown"), ("/v/a", "range")]);
    let closed = json!({"type": "object", "allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]});
    let closed = compile(&closed);
    assert!(closed.parse::<Value>(r#"{"a":1}"#).is_ok());
    assert_eq!(
        issues(&closed.parse::<Value>(r#"{"a":1,"b":1}"#).expect_err("forbidden")),
        [("/b", "unknown")]
    );
    // oneOf is exactly one.
    let one_of =
        one(json!({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 10}, {"type": "string"}]}));
    takes(&one_of, &json!(5), &json!(5));
    takes(&one_of, &json!(10.5), &json!(10.5));
    refuses(&one_of, &json!(12), &[("/v", "value")]);
    let any_of = one(json!({"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 10}]}));
    takes(&any_of, &json!(12), &json!(12));
}

#[test]
fn objects() {
    let counted = one(json!({"type": "object", "minProperties": 1, "maxProperties": 2}));
    refuses(&counted, &json!({}), &[("/v", "length")]);
    refuses(&counted, &json!({"a": 1, "b": 2, "c": 3}), &[("/v", "length")]);
    let twice = counted.parse::<Value>(r#"{"v":{"a":1,"a":2,"b":3}}"#).map(|p| p.value).expect_err("twice");
    assert_eq!(issues(&twice), [("/v/a", "duplicate")]);
    let patterns = one(
        json!({"type": "object", "properties": {"x1": {"minimum": 3}}, "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}}),
    );
    takes(&patterns, &json!({"x1": "3", "x2": "1", "y": "true"}), &json!({"x1": 3, "x2": 1, "y": true}));
    refuses(
        &patterns,
        &json!({"x1": 1, "x2": "a", "y": 1}),
        &[("/v/x1", "range"), ("/v/x2", "type"), ("/v/y", "type")],
    );
    // Required, but described nowhere.
    let required = one(json!({"type": "object", "required": ["a"], "properties": {"b": {}}}));
    takes(&required, &json!({"a": [1]}), &json!({"a": [1]}));
    refuses(&required, &json!({"b": 1}), &[("/v/a", "missing")]);
    // Null is a value where the schema says so, and absent elsewhere.
    let nulls = compile(
        &json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "string"}}}),
    );
    assert_eq!(nulls.parse::<Value>(r#"{"a":null,"b":null}"#).expect("fits").value, json!({"a": null}));
}

#[test]
fn many_properties_are_found_by_hash() {
    let properties: serde_json::Map<String, Value> =
        (0..200).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
    let required: Vec<String> = (0..200).map(|i| format!("p{i}")).collect();
    let plan = compile(&json!({"type": "object", "properties": properties, "required": required}));
    let mut all: Vec<String> = (0..200).rev().map(|i| format!("\"p{i}\":\"{i}\"")).collect();
    let parsed = plan.parse::<Value>(&format!("{{{}}}", all.join(","))).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((parsed.coercions().len(), &parsed.value["p150"]), (200, &json!(150)));
    all.remove(50);
    let error = plan.parse::<Value>(&format!("{{{}}}", all.join(","))).expect_err("missing");
    assert_eq!(issues(&error), [("/p149", "missing")]);
    let twice = format!("{{{},\"p3\":1}}", all.join(","));
    assert_eq!(
        issues(&plan.parse::<Value>(&twice).expect_err("twice")),
        [("/p3", "duplicate"), ("/p149", "missing")]
    );
}

#[test]
fn each_pattern_that_matches_a_key_holds_after_a_merge() {
    let patterns = |schema: Value| json!({"type": "object", "patternProperties": schema});
    let wide = json!({"^a": {"type": "string"}, "^q": {"type": "string"}});
    let short = patterns(json!({"b$": {"maxLength": 2}}));
    for mut schema in [
        patterns(wide.clone()),
        json!({"type": "object", "allOf": [{"patternProperties": wide}, {"not": {"required": ["x"]}}]}),
        json!({"type": "object", "allOf": [{"patternProperties": {"^a": {"type": "string"}}, "not": {"required": ["x"]}}]}),
    ] {
        let parts = schema.as_object_mut().unwrap().entry("allOf").or_insert_with(|| json!([]));
        parts.as_array_mut().unwrap().push(short.clone());
        let plan = compile(&schema);
        assert!(plan.parse::<Value>(r#"{"ab": "ok", "a": "long"}"#).is_ok(), "{schema}");
        let error = plan.parse::<Value>(r#"{"ab": "long"}"#).expect_err("refused");
        assert_eq!(issues(&error), [("/ab", "length")], "{schema}");
    }
}

#[test]
fn an_integer_that_no_branch_can_hold_makes_a_choice_ambiguous_at_any_depth() {
    let number = json!({"type": "number"});
    let integer = json!({"type": "integer"});
    let nested = json!({"anyOf": [integer, {"type": "boolean"}]});
    for first in [integer.clone(), nested.clone(), json!({"anyOf": [{"type": "string"}, nested]})] {
        let branch = |x: &Value| json!({"type": "object", "properties": {"x": x}, "required": ["x"]});
        let plan = one(json!({"oneOf": [branch(&first), branch(&number)]}));
        takes(&plan, &json!({"x": 0.5}), &json!({"x": 0.5}));
        // It is an integer to JSON Schema, so both branches accept it.
        let huge = plan.parse::<Value>(r#"{"v": {"x": 100000000000000000000}}"#);
        assert_eq!(issues(&huge.expect_err("refused")), [("/v", "value")], "{first}");
    }
}

#[test]
fn formats_only_describe() {
    let day = one(json!({"type": "string", "format": "date"}));
    takes(&day, &json!("tomorrow"), &json!("tomorrow"));
    refuses(&day, &json!(20_260_101), &[("/v", "type")]);
    let lenient = Plan::compile(
        "t",
        &json!({"type": "object", "properties": {"v": {"type": "string", "format": "date"}}}),
        PlanOptions::default().coercion(CoercionPolicy::lenient()).unknown(UnknownKeys::Keep),
    );
    refuses(&lenient.expect("a plan"), &json!(20_260_101), &[("/v", "type")]);
}

/// What its own type allows is not bent into another.
#[test]
fn a_value_of_any_type_is_not_repaired() {
    for schema in [
        json!({"properties": {"n": {"type": "integer"}}}),
        json!({"type": ["object", "array"], "properties": {"n": {"type": "integer"}}}),
    ] {
        let schema = json!({"type": "object", "properties": {"v": schema}});
        let lenient = PlanOptions::default().coercion(CoercionPolicy::lenient());
        let plan = Plan::compile("t", &schema, lenient).unwrap_or_else(|e| panic!("{e}"));
        takes(&plan, &json!({"n": "1"}), &json!({"n": 1}));
        refuses(&plan, &json!({"n": "x"}), &[("/v/n", "type")]);
    }
    let untyped = one(json!({"minimum": 3, "minLength": 3}));
    refuses(&untyped, &json!("7"), &[("/v", "length")]);
    takes(&untyped, &json!("777"), &json!("777"));
}

/// Where a value passes because something does not fit, a key that is there twice must not be what does not fit.
#[test]
fn keys_given_twice_decide_nothing() {
    let closed = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    for (schema, clean) in [
        (json!({"oneOf": [closed, {"type": "object", "required": ["k"]}]}), r#"{"v": {"k": "x"}}"#),
        (json!({"not": closed}), r#"{"v": {"k": "x"}}"#),
        (json!({"if": closed, "then": {"required": ["j"]}}), r#"{"v": {"k": "x"}}"#),
        (json!({"contains": closed, "maxContains": 1}), r#"{"v": [{"k": 1}, {"k": "x"}]}"#),
    ] {
        let plan = compile(&json!({"type": "object", "properties": {"v": schema}}));
        assert!(plan.parse::<Value>(clean).is_ok(), "{schema}");
        let twice = clean.replace(r#""k": "x""#, r#""k": 1, "k": 1"#);
        assert!(plan.parse::<Value>(&twice).is_err(), "{schema}");
        let twice = clean.replace(r#""k": "x""#, r#""k": [{"a": 1, "a": 1}]"#);
        let error = plan.parse::<Value>(&twice).expect_err("a key is there twice");
        assert!(
            issues(&error).iter().any(|(path, code)| path.ends_with("/k/0/a") && *code == "duplicate"),
            "{error}"
        );
    }
}
