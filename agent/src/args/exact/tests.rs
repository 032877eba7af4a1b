use super::{Fit, fit, value_fits};
use crate::args::plan::Plan;
use crate::args::policy::{PlanOptions, UnknownKeys};
use crate::args::read;
use serde_json::{Value, json};

fn schemas() -> Vec<Value> {
    let circle = json!({
        "type": "object",
        "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
        "required": ["kind", "r"]
    });
    let rect = json!({
        "type": "object",
        "properties": {"kind": {"const": "rect"}, "w": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
        "required": ["kind", "w"]
    });
    let point = json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"]});
    vec![
        json!({"type": "string"}),
        json!({"type": "string", "minLength": 2, "maxLength": 5}),
        json!({"type": "string", "pattern": "^[a-z]+$"}),
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": -5, "maximum": 120}),
        json!({"type": "integer", "multipleOf": 3}),
        json!({"type": "number"}),
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 10}),
        json!({"type": "boolean"}),
        json!({"type": "null"}),
        json!({"type": ["string", "null"]}),
        json!({"enum": ["red", "dark blue", "a\"b"]}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}),
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false}),
        point.clone(),
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}),
        json!({"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false}),
        json!({"anyOf": [circle, rect]}),
        json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": true}, "not": {"required": ["x", "y"]}}),
        json!({"type": ["integer", "string"], "not": {"enum": [7, "abc"]}}),
        json!({"not": {"type": "integer"}}),
        json!({"properties": {"a": true}, "not": {"properties": {"a": {"const": 1}}, "required": ["a"]}}),
        json!({
            "type": "object", "properties": {"kind": {"type": "string"}, "r": true, "w": {"type": "number"}},
            "if": {"properties": {"kind": {"const": "circle"}}}, "then": {"required": ["r"]}, "else": {"required": ["w"], "properties": {"w": {"minimum": 1}}}
        }),
        json!({"type": "array", "items": {"type": "number"}, "if": {"minItems": 2}, "then": {"items": {"type": "integer"}}}),
        json!({"anyOf": [point, {"type": "array", "items": {"type": "string"}}, {"type": "integer"}]}),
        json!({"anyOf": [{"anyOf": [{"type": "boolean"}, {"type": "null"}]}, {"type": "string", "maxLength": 3}]}),
        json!(true),
    ]
}

const VALUES: [&str; 62] = [
    r#""""#,
    r#""a""#,
    r#""abc""#,
    r#""ab\"c""#,
    r#""\u00e9\n""#,
    r#""red""#,
    r#""Red""#,
    r#""dark blue""#,
    r#""a\"b""#,
    r#""7""#,
    "0",
    "-0",
    "7",
    "-7",
    "119",
    "121",
    "999999999",
    "123456789012345678",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1.0",
    "1.5",
    "-2.25",
    "1e2",
    "0.1",
    "10.5",
    "123456.789",
    "0.12345678901234567",
    "true",
    "false",
    "null",
    "[]",
    "[1]",
    "[1, 2]",
    "[1,2,3,4]",
    r#"["a",true]"#,
    r#"["a"]"#,
    r#"["a","b"]"#,
    "[1.0]",
    "[[]]",
    "{}",
    r#"{"x":1}"#,
    r#"{ "x" : 1 , "y" : 2 }"#,
    r#"{"y":2,"x":1}"#,
    r#"{"y":2}"#,
    r#"{"x":1,"x":2}"#,
    r#"{"x":"1"}"#,
    r#"{"x":null}"#,
    r#"{"x":1,"y":null}"#,
    r#"{"x":1,"z":2}"#,
    r#"{"\u0078":1}"#,
    r#"{"a":1,"b":2,"c":3}"#,
    r#"{"kind":"circle","r":2.5}"#,
    r#"{"r":2.5,"kind":"circle"}"#,
    r#"{"kind":"Circle","r":2.5}"#,
    r#"{"kind":"rect","w":3,"note":"x"}"#,
    r#"{"kind":"rect","w":0}"#,
    r#"{"kind":"rect","w":3,"kind":"rect"}"#,
    r#"{"kind":"line"}"#,
    r#"{"kind":7,"r":1}"#,
];

fn plan(schema: &Value, options: PlanOptions) -> Plan {
    let schema = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
    Plan::compile("scan", &schema, options).unwrap()
}

#[test]
fn the_scan_agrees_with_the_reader_along_the_plan() {
    let mut decided = [0; 3];
    for options in [PlanOptions::default(), PlanOptions::default().unknown(UnknownKeys::Keep)] {
        for schema in schemas() {
            let plan = plan(&schema, options);
            for value in VALUES {
                for text in [format!(r#"{{"v":{value}}}"#), format!("\n {{ \"v\" :\t{value} }} ")] {
                    let along = plan.parse_otherwise(&text, Fit::Unknown, read::<Value>);
                    let found = fit(plan.graph(), &text);
                    decided[found as usize] += 1;
                    match (found, along) {
                        (Fit::Exact, Ok(parsed)) => {
                            assert!(
                                parsed.coercions().is_empty(),
                                "{schema} {text} {:?}",
                                parsed.coercions()
                            );
                            assert_eq!(parsed.value, serde_json::from_str::<Value>(&text).unwrap(), "{text}");
                        }
                        (Fit::Refused, Err(_)) | (Fit::Unknown, _) => {}
                        (found, along) => panic!("{schema} {text}: {found:?}, but {along:?}"),
                    }
                }
            }
        }
    }
    let [exact, refused, unknown] = decided;
    assert!(exact > 600 && refused > 50 && unknown > 2_000, "{decided:?}");
}

#[test]
fn what_needs_no_change_is_exact() {
    let schema = json!({"anyOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
        {"type": "object", "properties": {"kind": {"const": "rect"}, "w": {"type": "integer"}}, "required": ["kind", "w"]}
    ]});
    let plan = plan(&schema, PlanOptions::default());
    for value in
        [r#"{"kind":"circle","r":2.5}"#, r#"{ "r" : 2.5 , "kind" : "circle" }"#, r#"{"kind":"rect","w":3}"#]
    {
        assert_eq!(fit(plan.graph(), &format!(r#"{{"v":{value}}}"#)), Fit::Exact, "{value}");
    }
    // A coercion, a duplicate, text that is not JSON, and text after the end.
    for value in [
        r#"{"kind":"rect","w":"3"}"#,
        r#"{"kind":"rect","w":3,"w":3}"#,
        r#"{"kind":"rect","w":3"#,
        r#"{"kind":"rect","w":3}} "#,
    ] {
        assert_eq!(fit(plan.graph(), &format!(r#"{{"v":{value}}}"#)), Fit::Unknown, "{value}");
    }
}

#[test]
fn nested_alternatives_do_not_multiply() {
    let schema = json!({
        "type": "object",
        "properties": {"v": {"$ref": "#/$defs/tree"}},
        "required": ["v"],
        "$defs": {"tree": {"anyOf": [
            {"type": "object", "properties": {"of": {"$ref": "#/$defs/tree"}, "a": {"type": "integer"}}, "required": ["of", "a"]},
            {"type": "object", "properties": {"of": {"$ref": "#/$defs/tree"}, "b": {"type": "integer"}}, "required": ["of", "b"]},
            {"type": "integer"}
        ]}}
    });
    let plan = Plan::compile("tree", &schema, PlanOptions::default()).unwrap();
    let nested =
        |depth: usize| format!(r#"{{"v":{}1{}}}"#, r#"{"of":"#.repeat(depth), r#","b":1}"#.repeat(depth));
    assert_eq!(fit(plan.graph(), &nested(3)), Fit::Exact);
    // Without a limit, the scan would try 2^100 combinations of alternatives.
    assert_eq!(fit(plan.graph(), &nested(100)), Fit::Unknown);
}

#[test]
fn a_long_text_is_scanned_only_in_alternatives() {
    let long = format!("{:?}", "x".repeat(2_000));
    let text = plan(&json!({"type": "string"}), PlanOptions::default());
    assert_eq!(fit(text.graph(), &format!(r#"{{"v":{long}}}"#)), Fit::Unknown);
    let either = plan(&json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), PlanOptions::default());
    assert_eq!(fit(either.graph(), &format!(r#"{{"v":{long}}}"#)), Fit::Exact);
    let root = either.graph().root;
    assert!(!value_fits(either.graph(), root, "{}") && value_fits(either.graph(), root, r#"{"v":7}"#));
}

/// The fast path for the first 64 properties must also refuse an object that lacks a later property, or has a wrong number of entries.
#[test]
fn the_last_of_many_properties_and_their_number_count() {
    let names: Vec<String> = (0..65).map(|n| format!("p{n}")).collect();
    let properties: Value = names.iter().map(|name| (name.clone(), json!({"type": "integer"}))).collect();
    let many =
        plan(&json!({"type": "object", "properties": properties, "required": names}), PlanOptions::default());
    let point = json!({"type": "integer"});
    let two = json!({"type": "object", "properties": {"x": point, "y": point, "z": point}, "minProperties": 2, "maxProperties": 2});
    let two = plan(&two, PlanOptions::default());
    let of = |count: usize| {
        let entries: Vec<String> = names.iter().take(count).map(|name| format!(r#""{name}":1"#)).collect();
        format!("{{{}}}", entries.join(","))
    };
    for (plan, value, expected) in [
        (&many, of(64), Fit::Refused),
        (&many, of(65), Fit::Exact),
        (&two, "{}".to_owned(), Fit::Refused),
        (&two, r#"{"x":1}"#.to_owned(), Fit::Refused),
        (&two, r#"{"x":1,"z":1}"#.to_owned(), Fit::Exact),
        (&two, r#"{"x":1,"y":1,"z":1}"#.to_owned(), Fit::Refused),
    ] {
        let text = format!(r#"{{"v":{value}}}"#);
        assert_eq!(fit(plan.graph(), &text), expected, "{text}");
        assert_eq!(plan.parse::<Value>(&text).is_ok(), expected == Fit::Exact, "{text}");
    }
}
