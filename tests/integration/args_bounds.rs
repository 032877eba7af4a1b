//! A report states no bound that the schema lacks; and what becomes of JSON in a text where lists and objects are decoded.

use super::properties::{POLICIES, arguments, compile, object, schema};
use super::{W, plan};
use agent::args::{CoercionPolicy, CoercionRule, InvalidArguments, PlanOptions, UnknownKeys};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The numbers in a text that are bounds: what signatures write in words and with signs.
fn bounds(signature: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '.' | 'e' | '+');
    let unquoted: Vec<&str> = signature.split('"').step_by(2).collect();
    let tokens = unquoted.iter().flat_map(|text| text.split(|c| !is_part(c)));
    tokens
        .flat_map(|token| token.split(".."))
        .filter_map(|token| token.trim_end_matches('.').parse().ok())
        .collect()
}

/// All numbers of a schema, and those next to the exclusive bounds of integers.
fn numbers(schema: &Value, out: &mut Vec<f64>) {
    match schema {
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            out.extend([number, number - 1.0, number + 1.0]);
        }
        Value::Array(items) => {
            out.push(1.0);
            for item in items {
                numbers(item, out);
            }
        }
        Value::Object(map) => map.values().for_each(|item| numbers(item, out)),
        _ => {}
    }
}

/// A bound that a report states and the schema lacks.
fn invented(report: &InvalidArguments, schema: &Value) -> Option<(f64, String)> {
    let mut known = vec![0.0];
    numbers(schema, &mut known);
    let json = report.to_json();
    let parameters =
        json["parameters"].as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned);
    let expected = report.issues().iter().filter_map(|issue| issue.expected.clone());
    let mut signatures = parameters.chain(expected);
    signatures.find_map(|signature| {
        let bound = bounds(&signature).into_iter().find(|bound| !known.contains(bound))?;
        Some((bound, signature))
    })
}

proptest! {
    #[test]
    fn a_report_states_only_bounds_of_the_schema(schema in object(schema()), value in arguments()) {
        for policy in POLICIES {
            let plan = compile(&schema, policy, UnknownKeys::Deny);
            if let Err(report) = plan.parse::<Value>(&value.to_string()) {
                let invented = invented(&report, &schema);
                prop_assert!(invented.is_none(), "{:?}: {} {}\n{}", invented, schema, value, report);
            }
        }
    }
}

/// Reports of a type about several wrong values.
fn told<T: DeserializeOwned + JsonSchema + Debug>() {
    let plan = plan::<W<T>>(PlanOptions::default());
    let schema = plan.schema().clone();
    for sent in ["\"x\"", "-129", "70000", "1.5", "[]", "[1,2,3,4,5]", "{}", "null", "true", "4294967296"] {
        let Err(report) = plan.parse::<W<T>>(&format!("{{\"v\":{sent}}}")) else { continue };
        assert_eq!(invented(&report, &schema), None, "{schema} {sent}: {report}");
    }
}

#[test]
fn the_greatest_number_that_is_no_multiple_is_not_told_a_bound() {
    let schema = json!({"type": "object", "properties": {"v": {"type": "integer", "multipleOf": 2}}});
    for number in ["18446744073709551615", "-9223372036854775807", "3"] {
        let report = compile(&schema, POLICIES[0], UnknownKeys::Deny)
            .parse::<Value>(&format!("{{\"v\":{number}}}"))
            .unwrap_err();
        assert_eq!(invented(&report, &schema), None, "{report}");
    }
}

#[test]
fn bounds_of_types_are_in_their_schemas() {
    told::<u8>();
    told::<i8>();
    told::<u16>();
    told::<i16>();
    told::<u32>();
    told::<i32>();
    told::<u64>();
    told::<i64>();
    told::<usize>();
    told::<u128>();
    told::<f32>();
    told::<f64>();
    told::<std::num::NonZeroU8>();
    told::<std::num::NonZeroI32>();
    told::<Option<u8>>();
    told::<Vec<i8>>();
    told::<[u16; 3]>();
    told::<(u8, i16)>();
    told::<BTreeMap<String, u8>>();
    told::<char>();
    // A value beyond all 64 bits is told what the type holds: without it, the model could only guess.
    let plan = plan::<W<u64>>(PlanOptions::default());
    let report = plan.parse::<W<u64>>(r#"{"v":99999999999999999999999}"#).unwrap_err();
    let signature = "integer 0..18446744073709551615".to_owned();
    assert_eq!(invented(&report, plan.schema()), Some((18_446_744_073_709_551_615.0, signature)));
}

/// The policy of the MCP server.
fn decoding() -> PlanOptions {
    PlanOptions::default().coercion(CoercionPolicy::strict().allow(CoercionRule::JsonTextDecoded))
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Pay {
    Cash { amount: u32 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Move {
    Go { steps: u32 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Text {
    Many(Vec<u32>),
    One(String),
}

#[track_caller]
fn decoded<T: DeserializeOwned + JsonSchema + Debug + PartialEq>(inner: &Value, text: &str) {
    let plan = plan::<W<T>>(decoding());
    let parsed =
        plan.parse::<W<T>>(&json!({"v": text}).to_string()).unwrap_or_else(|e| panic!("{text}: {e}"));
    let own: T = serde_json::from_value(inner.clone()).unwrap();
    assert_eq!(parsed.value, W { v: own }, "{text}");
    let records: Vec<_> =
        parsed.coercions().iter().map(|c| (c.path.as_str(), c.rule, c.from.clone())).collect();
    assert_eq!(records[0], ("/v", CoercionRule::JsonTextDecoded, json!(text)), "{text}");
    let strict = self::plan::<W<T>>(PlanOptions::default());
    assert!(strict.parse::<W<T>>(&json!({"v": text}).to_string()).is_err(), "{text}");
}

#[test]
fn json_text_is_decoded_and_recorded_where_no_text_is_taken() {
    decoded::<Vec<u32>>(&json!([1, 2]), "[1, 2]");
    decoded::<Vec<Vec<u32>>>(&json!([[1], []]), " [[1],[]] ");
    decoded::<Option<Vec<u32>>>(&json!([1]), "[1]");
    decoded::<BTreeMap<String, u32>>(&json!({"a": 1}), "{\"a\":1}");
    decoded::<W<u32>>(&json!({"v": 1}), "{\"v\":1}");
    decoded::<Pay>(&json!({"kind": "cash", "amount": 1}), "{\"kind\":\"cash\",\"amount\":1}");
    decoded::<Move>(&json!({"Go": {"steps": 1}}), "{\"Go\":{\"steps\":1}}");
    decoded::<Vec<String>>(&json!(["[1]"]), r#"["[1]"]"#);
}

#[track_caller]
fn kept<T: DeserializeOwned + JsonSchema + Debug + PartialEq>(text: &str, value: &T) {
    for options in
        [PlanOptions::default(), decoding(), PlanOptions::default().coercion(CoercionPolicy::lenient())]
    {
        let parsed = plan::<W<T>>(options).parse::<W<T>>(&json!({"v": text}).to_string());
        let parsed = parsed.unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(&parsed.value.v, value);
        assert!(parsed.coercions().is_empty(), "{:?}", parsed.coercions());
    }
}

#[test]
fn a_place_that_also_takes_text_keeps_the_text() {
    for text in ["[1]", "{\"a\":1}", "[]", "{}"] {
        kept::<String>(text, &text.into());
        kept::<Option<String>>(text, &Some(text.into()));
        kept::<Value>(text, &json!(text));
        kept::<Text>(text, &Text::One(text.into()));
    }
    let schema = json!({"type": "object", "properties": {"v": {"type": ["array", "string", "object"]}}});
    let plan = agent::args::Plan::compile("t", &schema, decoding()).unwrap();
    for text in ["[1]", "{\"a\":1}"] {
        let parsed = plan.parse::<Value>(&json!({"v": text}).to_string()).unwrap();
        assert_eq!((&parsed.value, parsed.coercions().len()), (&json!({"v": text}), 0));
    }
}
