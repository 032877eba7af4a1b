//! Schemas as servers and generators write them: their habits, their slips, and what the model is told.

use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions, UnknownKeys};
use serde_json::{Value, json};

fn compile(schema: &Value) -> Plan {
    Plan::compile("t", schema, PlanOptions::default()).unwrap_or_else(|e| panic!("{e}\n{schema}"))
}

fn told(result: Result<agent::args::Parsed<Value>, InvalidArguments>) -> Vec<String> {
    result.map(|p| p.value).expect_err("refused").issues().iter().map(ToString::to_string).collect()
}

#[test]
fn generators_that_write_null_beside_a_type() {
    // zod and pydantic: a root reference, titles, nullable by `anyOf`, a constant as the tag.
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/Args",
        "definitions": {
            "Args": {"type": "object", "title": "Args", "additionalProperties": false, "required": ["path"], "properties": {
                "path": {"type": "string", "title": "Path", "minLength": 1},
                "head": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}], "default": null, "title": "Head"},
                "filter": {"anyOf": [{"$ref": "#/definitions/ByName"}, {"$ref": "#/definitions/BySize"}, {"type": "null"}], "default": null}
            }},
            "ByName": {"type": "object", "properties": {"kind": {"const": "name"}, "glob": {"type": "string"}}, "required": ["kind", "glob"]},
            "BySize": {"type": "object", "properties": {"kind": {"const": "size"}, "most": {"type": "number"}}, "required": ["kind", "most"]}
        }
    });
    let plan = compile(&schema);
    let sent = r#"{"path": "a", "head": null, "filter": {"most": "1.5", "kind": "size"}}"#;
    let parsed = plan.parse::<Value>(sent).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(parsed.value, json!({"path": "a", "head": null, "filter": {"most": 1.5, "kind": "size"}}));
    assert_eq!(
        told(plan.parse(r#"{"path": "", "haed": 1, "head": 0, "filter": {"kind": "date"}}"#)),
        [
            "/haed: unknown parameter",
            r#"/path: too short (0 characters); got string ""; expected string, >= 1 characters"#,
            "/head: out of range; got number 0; expected integer >= 1",
            r#"/filter/kind: not an allowed value; got string "date"; expected "name" | "size""#,
        ]
    );
}

#[test]
fn slips_that_mean_no_harm() {
    let schema = json!({
        "type": "object", "required": ["a", "absent", "a"], "properties": {
            "a": {"type": ["string", "null"], "default": 5, "nullable": true, "format": "no-such-format"},
            "b": {"enum": ["x", "x", 1, 1.0, null], "examples": ["y"], "example": 3},
            "c": {"type": "object"},
            "d": {"type": "array"},
            "e": {"items": {}, "uniqueItems": false},
            "f": {"type": "object", "additionalProperties": {}},
            "g": {},
            "h": {"description": "no type", "default": "x"},
            "i": {"enum": []},
            "j": {"type": ["integer", "integer"], "$comment": "twice"},
            "k": {"type": "string", "minimum": 3, "items": {"type": "string"}}
        }
    });
    let plan = compile(&schema);
    assert_eq!(plan.schema(), &schema);
    let sent = r#"{"a": null, "absent": 1, "b": 1.0, "c": {"x": [1]}, "d": [1, "a"], "e": [1, 1], "f": {"y": 1}, "g": 1, "h": [], "j": "2", "k": "x"}"#;
    plan.parse::<Value>(sent).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        told(plan.parse(r#"{"a": "x", "b": "z", "i": 1, "zz": 1}"#)),
        [
            "/zz: unknown parameter",
            r#"/b: not an allowed value; got string "z"; expected "x" | 1"#,
            "/i: no value is allowed here; got number 1",
            "/absent: required, but missing; expected any JSON value",
        ]
    );
}

#[test]
fn slips_that_cannot_be_honoured() {
    for (place, value, word) in [
        ("type", json!("any"), "type"),
        ("type", json!("float"), "type"),
        ("type", json!("dict"), "type"),
        ("type", json!("String"), "type"),
        ("required", json!(true), "required"),
        ("exclusiveMinimum", json!(true), "exclusiveMinimum"),
        ("minimum", json!("0"), "minimum"),
        ("properties", json!(["a"]), "properties"),
        ("enum", json!({"a": 1}), "enum"),
    ] {
        let schema = json!({"type": "object", "properties": {"v": {place: value}}});
        let error = Plan::compile("find", &schema, PlanOptions::default()).map(|_| ()).expect_err(word);
        assert_eq!((error.keyword(), error.pointer(), error.tool()), (word, "/properties/v", "find"));
    }
}

#[test]
fn conditions_are_told_in_words() {
    let plan = compile(&json!({
        "type": "object", "required": ["kind"],
        "properties": {
            "kind": {"enum": ["mail", "call"]}, "to": {"type": "string"}, "minutes": {"type": "integer"}, "id": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}, "contains": {"type": "string", "pattern": "^#"}, "maxContains": 2},
            "labels": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": {"type": "string"}}
        },
        "allOf": [
            {"if": {"properties": {"kind": {"const": "mail"}}, "required": ["kind"]}, "then": {"required": ["to"], "properties": {"subject": {"type": "string"}}}},
            {"if": {"properties": {"kind": {"const": "call"}}, "required": ["kind"]}, "then": {"properties": {"minutes": {"minimum": 5}}}}
        ],
        "dependentRequired": {"minutes": ["id"]},
        "not": {"required": ["to", "minutes"]}
    }));
    // `subject` is known, though only a condition speaks about it.
    let mail = r##"{"kind": "mail", "to": "a", "subject": "s", "tags": ["#x"]}"##;
    assert!(plan.parse::<Value>(mail).is_ok());
    assert_eq!(
        told(plan.parse(r#"{"kind": "mail"}"#)),
        [r#"/to: required, but missing (when `kind` is "mail"); expected string"#]
    );
    // Without `required`, the condition also holds for an absent property.
    let open = compile(&json!({
        "properties": {"kind": {"type": "string"}, "to": {"type": "string"}},
        "if": {"properties": {"kind": {"const": "mail"}}}, "then": {"required": ["to"]}
    }));
    for (sent, when) in [("{}", r#""mail" or absent"#), (r#"{"kind": "mail"}"#, r#""mail""#)] {
        let missing = format!("/to: required, but missing (when `kind` is {when}); expected string");
        assert_eq!(told(open.parse(sent)), [missing]);
    }
    let all = r#"{"kind": "call", "to": "a", "minutes": 3, "tags": ["x"], "labels": {"A1": "b"}}"#;
    let told_all = told(plan.parse(all));
    for words in [
        "/tags: too few items that are string matching ^#",
        "/labels/A1: as a key: does not match the pattern",
        r#"/minutes: out of range (when `kind` is "call"); got number 3"#,
        "/id: required, but missing (when `minutes` is given)",
        "must not have `to` and `minutes` together",
    ] {
        assert!(told_all.iter().any(|line| line.contains(words)), "{words}: {told_all:#?}");
    }
    // What was coerced is what is checked.
    let call = plan
        .parse::<Value>(r#"{"kind": "call", "minutes": "7", "id": "1"}"#)
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(call.value, json!({"kind": "call", "minutes": 7, "id": 1}));
    assert!(
        told(plan.parse(r#"{"kind": "call", "minutes": "4", "id": "1"}"#))[0]
            .starts_with("/minutes: out of range")
    );
}

#[test]
fn what_the_whole_has_against_a_value_joins_the_report() {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}},
        "anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}],
        "unevaluatedProperties": false
    });
    let keep = PlanOptions::default().unknown(UnknownKeys::Keep);
    let plan = Plan::compile("t", &schema, keep).unwrap_or_else(|e| panic!("{e}"));
    assert!(plan.parse::<Value>(r#"{"n": "1", "a": "x", "b": "y"}"#).is_ok());
    assert_eq!(told(plan.parse(r#"{"n": "1", "a": "x", "c": 1}"#)), ["/c: unknown parameter"]);
    let told_both = told(plan.parse(r#"{"n": "x", "a": "x", "c": 1}"#));
    assert_eq!(told_both, [r#"/n: wrong type; got string "x"; expected integer"#, "/c: unknown parameter"]);
    // However much else is wrong.
    let mut listed = schema.clone();
    listed["properties"]["n"] = json!({"type": "array", "items": {"type": "integer"}});
    let plan = Plan::compile("t", &listed, keep).unwrap_or_else(|e| panic!("{e}"));
    let told_all = told(plan.parse(&json!({"n": vec!["x"; 1_500], "a": "x", "c": 1}).to_string()));
    assert_eq!(told_all.last().map(String::as_str), Some("/c: unknown parameter"));
    let exact = keep.coercion(CoercionPolicy::exact());
    let plan = Plan::compile("t", &schema, exact).unwrap_or_else(|e| panic!("{e}"));
    assert!(plan.parse::<Value>(r#"{"n": "1", "a": "x"}"#).is_err());
}

#[test]
fn what_must_be_given_is_told_beside_other_faults() {
    // `"5"` is coerced, which does not keep the model from being told what is missing.
    let schema = json!({"type": "object", "dependentRequired": {"card": ["cvc"]}, "not": {"required": ["iban", "card"]},
        "properties": {"card": {"type": "string"}, "cvc": {"type": "string"}, "iban": {"type": "string"},
            "nights": {"type": "integer"}, "guests": {"type": "integer"}}});
    let sent = r#"{"card": "4711", "nights": "5", "guests": "many", "iban": "DE"}"#;
    assert_eq!(
        told(compile(&schema).parse(sent)),
        [
            r#"/guests: wrong type; got string "many"; expected integer"#,
            "(arguments): must not have `iban` and `card` together",
            "/cvc: required, but missing (when `card` is given); expected string",
        ]
    );
    // A null may be absent when it arrives.
    let sent = r#"{"card": null, "nights": "5", "guests": "many"}"#;
    assert_eq!(
        told(compile(&schema).parse(sent)),
        [r#"/guests: wrong type; got string "many"; expected integer"#]
    );
}

#[test]
fn what_is_coerced_has_to_fit_one_alternative_as_it_arrives() {
    // A number is text to the first alternative only; the text that comes of it fits both.
    let word = |schema: Value| json!({"type": "object", "properties": {"v": {"oneOf": schema}}});
    let lenient = |schema: &Value| {
        Plan::compile("t", schema, PlanOptions::default().coercion(CoercionPolicy::lenient())).unwrap()
    };
    let both = word(json!([{"type": "string", "maxLength": 2}, {"type": "string", "format": "date"}]));
    assert_eq!(
        told(lenient(&both).parse(r#"{"v": 7}"#)),
        [
            "/v: fits more than one alternative; got number 7; expected string, <= 2 characters | string (date, like 2026-11-21)"
        ]
    );
    let one = word(
        json!([{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^[a-z]+$", "format": "x"}]),
    );
    assert_eq!(lenient(&one).parse::<Value>(r#"{"v": 7}"#).unwrap().value, json!({"v": "7"}));
}

/// What `lenient` lets fit as well is no second alternative beside what fits under `strict`.
#[test]
fn a_wider_policy_takes_what_a_narrower_one_takes() {
    let schema = json!({"type": "object", "properties": {"v": {"oneOf": [
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ]}}});
    for policy in [CoercionPolicy::strict(), CoercionPolicy::lenient()] {
        let options = PlanOptions::default().coercion(policy).unknown(UnknownKeys::Keep);
        let plan = Plan::compile("t", &schema, options).expect("a schema");
        let read = plan.parse::<Value>(r#"{"v": {"a": -1, "b": null}}"#).expect("the first alternative");
        assert_eq!(read.value, json!({"v": {"a": -1}}));
    }
}

/// To JSON Schema `1e300` is an integer, whether or not something can carry it.
#[test]
fn an_integer_of_any_width_fits_what_takes_integers() {
    let plan = compile(
        &json!({"type": "object", "properties": {"v": {"oneOf": [{"type": "number"}, {"type": "integer"}]}}}),
    );
    assert_eq!(plan.parse::<Value>(r#"{"v": 0.5}"#).expect("one fits").value, json!({"v": 0.5}));
    for both in [r#"{"v": 1}"#, r#"{"v": 1e300}"#, r#"{"v": -9007199254740992.0}"#] {
        let told = told(plan.parse(both));
        assert!(told[0].contains("fits more than one alternative"), "{told:?}");
    }
}
