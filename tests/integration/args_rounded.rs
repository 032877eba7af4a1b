//! Numbers that lose digits: each is recorded, or refused where a whole number or a text is expected.

use super::{W, options, plan};
use agent::args::{CoercionPolicy, CoercionRule, Plan, PlanOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The records of one value `v`: from, to. The engine gives the type and a `Value` the same records.
#[track_caller]
fn records<T: DeserializeOwned + JsonSchema + Debug>(v: &str) -> Vec<(String, Value, Value)> {
    let text = format!("{{\"v\":{v}}}");
    let mut all = Vec::new();
    for policy in [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()] {
        let plan = plan::<W<T>>(options(policy));
        let typed = plan.parse::<W<T>>(&text).unwrap_or_else(|e| panic!("{v}: {e}")).coercions().to_vec();
        let value = plan.parse::<Value>(&text).unwrap_or_else(|e| panic!("{v}: {e}"));
        assert_eq!(typed, value.coercions(), "{v}");
        // What arrived is not rounded again.
        let again = plan.parse::<Value>(&value.value.to_string()).unwrap_or_else(|e| panic!("{v}: {e}"));
        assert!(again.coercions().is_empty(), "{v}: {:?}", again.coercions());
        all.push(typed.iter().map(|c| (c.path.clone(), c.from.clone(), c.to.clone())).collect::<Vec<_>>());
        assert!(typed.iter().all(|c| c.rule == CoercionRule::NumberRounded), "{v}: {typed:?}");
    }
    assert!(all.iter().all(|records| *records == all[0]), "{v}");
    all.swap_remove(0)
}

#[track_caller]
fn rounded<T: DeserializeOwned + JsonSchema + Debug>(v: &str, from: &Value, to: f64) {
    assert_eq!(records::<T>(v), [("/v".to_owned(), from.clone(), json!(to))], "{v}");
}

#[test]
fn floats_that_lose_digits_are_recorded() {
    rounded::<f32>("16777217", &json!(16_777_217), 16_777_216.0);
    rounded::<f32>("2.14159265", &json!("2.14159265"), 2.141_592_7);
    rounded::<f32>("1e-50", &json!("1e-50"), 0.0);
    rounded::<f64>("9007199254740993", &json!(9_007_199_254_740_993_u64), 9_007_199_254_740_992.0);
    rounded::<f64>("-9007199254740993", &json!(-9_007_199_254_740_993_i64), -9_007_199_254_740_992.0);
    rounded::<f64>("1e-400", &json!("1e-400"), 0.0);
    rounded::<f64>("12345678901234567890123", &json!("12345678901234567890123"), 1.234_567_890_123_456_8e22);
    rounded::<f64>("18446744073709551617", &json!("18446744073709551617"), 18_446_744_073_709_551_616.0);
    rounded::<f64>("0.10000000000000000555", &json!("0.10000000000000000555"), 0.1);
    rounded::<Option<f64>>("3.141592653589793238", &json!("3.141592653589793238"), std::f64::consts::PI);
}

#[test]
fn numbers_that_keep_their_digits_are_not_recorded() {
    for v in [
        "0",
        "0.0",
        "-0.0",
        "0e0",
        "1",
        "0.1",
        "1.10",
        "1e3",
        "1e-7",
        "2.5e-9",
        "1e300",
        "123456.789",
        "0.30000000000000004",
        "1180591620717411303424",
        "9007199254740992",
        "100000000000000000000000",
    ] {
        assert_eq!(records::<f64>(v), [], "{v}");
    }
    for v in ["0.1", "16777216", "52.52", "3.1415927", "1e10", "1e-10"] {
        assert_eq!(records::<f32>(v), [], "{v}");
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Size {
    Exact(f64),
    Named { pixels: f64 },
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Undescribed {
    #[schemars(with = "Value")]
    size: Length,
    #[schemars(with = "Value")]
    depth: Meters,
}

#[derive(Debug, Deserialize, Serialize)]
enum Length {
    Exact(f64),
}

#[derive(Debug, Deserialize, Serialize)]
struct Meters(f64);

#[test]
fn in_types_that_the_schema_does_not_describe() {
    for (size, depth) in [("1e-400", "1"), ("1", "0.10000000000000000555")] {
        let records = records::<Undescribed>(&format!(r#"{{"size":{{"Exact":{size}}},"depth":{depth}}}"#));
        let paths: Vec<&str> = records.iter().map(|record| record.0.as_str()).collect();
        assert_eq!(paths, [if depth == "1" { "/v/size/Exact" } else { "/v/depth" }]);
    }
}

#[test]
fn in_lists_maps_and_unions() {
    let records = records::<Vec<BTreeMap<String, f64>>>(
        r#"[{"a":0.5,"b":0.1},{"a~/":1.5,"c":9007199254740993.0},{"d":1e-400,"e":0.0}]"#,
    );
    let paths: Vec<&str> = records.iter().map(|record| record.0.as_str()).collect();
    assert_eq!(paths, ["/v/1/c", "/v/2/d"]);
    rounded::<Size>("12345678901234567890123", &json!("12345678901234567890123"), 1.234_567_890_123_456_8e22);
    rounded::<Size>("9007199254740993", &json!(9_007_199_254_740_993_u64), 9_007_199_254_740_992.0);
    let inner = self::records::<Size>(r#"{"pixels":1e-400}"#);
    assert_eq!(inner, [("/v/pixels".to_owned(), json!("1e-400"), json!(0.0))]);
}

#[test]
fn anywhere_in_any_value() {
    let text = r#"{"a":[1,{"b":18446744073709551617}],"c":0.1,"d":1e-400,"e":"18446744073709551617","f":18446744073709551615}"#;
    let paths: Vec<String> = records::<Value>(text).into_iter().map(|record| record.0).collect();
    assert_eq!(paths, ["/v/a/1/b", "/v/d"]);
    rounded::<Value>("18446744073709551617", &json!("18446744073709551617"), 18_446_744_073_709_551_616.0);
    assert_eq!(records::<Value>(r#""18446744073709551617""#), []);

    // A foreign schema: what is sent on is what was sent, or recorded.
    let schema = json!({"type": "object", "additionalProperties": {}, "properties": {"any": {}, "n": {"type": "number"}, "u": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}}});
    let plan = Plan::compile("t", &schema, PlanOptions::default()).unwrap();
    let text =
        r#"{"any":18446744073709551617,"n":12345678901234567890123,"u":9007199254740993.5,"x":[1e-400]}"#;
    let parsed = plan.parse::<Value>(text).unwrap();
    let paths: Vec<&str> = parsed.coercions().iter().map(|c| c.path.as_str()).collect();
    assert_eq!(paths, ["/any", "/n", "/u", "/x/0"]);
    let parsed = plan.parse::<Value>(r#"{"n":9007199254740993,"any":9007199254740993}"#).unwrap();
    assert_eq!(parsed.value.to_string(), r#"{"n":9007199254740993,"any":9007199254740993}"#);
    assert!(parsed.coercions().is_empty());
}

#[test]
fn text_says_what_it_became_and_what_was_lost() {
    let coercions = |v: &str| {
        let plan = plan::<W<f64>>(PlanOptions::default());
        let parsed = plan.parse::<W<f64>>(&format!("{{\"v\":{v}}}")).unwrap();
        parsed.coercions().iter().map(|c| (c.rule.as_str(), c.to.to_string())).collect::<Vec<_>>()
    };
    let exact = |to: &str| ("text_to_number", to.to_owned());
    let rounded = |to: &str| ("number_rounded", to.to_owned());
    assert_eq!(coercions(r#""0.1""#), [exact("0.1")]);
    assert_eq!(coercions(r#""1e-400""#), [exact("0.0"), rounded("0.0")]);
    assert_eq!(
        coercions(r#""9007199254740993""#),
        [exact("9007199254740993"), rounded("9007199254740992.0")]
    );
}

#[test]
fn where_a_whole_number_or_text_is_expected_nothing_is_lost() {
    let refused = |schema: Value, v: &str| {
        let schema = json!({"type": "object", "properties": {"v": schema}});
        let plan = Plan::compile("t", &schema, PlanOptions::default()).unwrap();
        let report =
            plan.parse::<Value>(&format!("{{\"v\":{v}}}")).err().map(|report| report.issues()[0].to_string());
        report.unwrap_or_else(|| panic!("{v} was accepted"))
    };
    let integer = || json!({"type": "integer"});
    for v in ["1.0000000000000000001", "1e-400", "9007199254740991.0000000001"] {
        assert!(refused(integer(), v).starts_with("/v: must be a whole number; got number"), "{v}");
    }
    assert!(refused(integer(), "9007199254740993.0").contains("write the whole number in digits"));
    assert!(refused(integer(), "1e400").contains("too large a number"));
    let texts = json!({"type": "array", "items": {"type": "string"}});
    assert!(refused(texts.clone(), "[0.1000000000000000055]").contains("must be text in quotes"));
    let plan = Plan::compile("t", &json!({"properties": {"v": texts}}), PlanOptions::default()).unwrap();
    assert_eq!(plan.parse::<Value>(r#"{"v":[0.5,1.25]}"#).unwrap().value, json!({"v": ["0.5", "1.25"]}));
    assert!(
        super::plan::<W<i128>>(PlanOptions::default())
            .parse::<W<i128>>(r#"{"v":1.0000000000000000001}"#)
            .is_err()
    );
}

#[test]
fn hostile_digits_are_read_in_linear_time() {
    let values = plan::<W<Vec<Value>>>(PlanOptions::default());
    let numbers = plan::<W<Vec<f64>>>(PlanOptions::default());
    for v in [
        format!("[0.{}]", "1".repeat(1_000_000)),
        format!("[{}1e-{}]", "0.", "9".repeat(1_000)),
        format!("[{}]", vec!["0.10000000000000000555"; 20_000].join(",")),
    ] {
        let text = format!("{{\"v\":{v}}}");
        let start = std::time::Instant::now();
        assert!(!values.parse::<W<Vec<Value>>>(&text).unwrap().coercions().is_empty());
        assert!(!numbers.parse::<W<Vec<f64>>>(&text).unwrap().coercions().is_empty());
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }
    for v in ["1e999999999", "-1e999999999"] {
        assert!(numbers.parse::<W<Vec<f64>>>(&format!("{{\"v\":[{v}]}}")).is_err());
    }
}

#[test]
fn a_secret_number_is_hidden() {
    #[derive(agent::ToolArgs)]
    #[expect(dead_code, reason = "only the record matters")]
    struct Secret {
        #[arg(secret)]
        amount: f64,
    }
    let plan = Plan::for_type::<Secret>("t", PlanOptions::default()).unwrap();
    let parsed = plan.parse::<Secret>(r#"{"amount":9007199254740993}"#).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((parsed.coercions()[0].from.clone(), parsed.coercions().len()), (json!("(hidden)"), 1));
    let parsed = plan.parse::<Secret>(r#"{"amount":1e-400}"#).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(parsed.coercions()[0].from, json!("(hidden)"));
}

#[test]
fn a_rounded_number_is_no_member_of_a_set_of_integers() {
    for (member, sent) in [(2, "2.0000000000000000001"), (9_007_199_254_740_992_u64, "9007199254740993.0")] {
        for set in [json!({"enum": [member, 7]}), json!({"const": member})] {
            let schema = json!({"type": "object", "properties": {"v": set}});
            let plan = Plan::compile("t", &schema, PlanOptions::default()).unwrap();
            let error = plan.parse::<Value>(&format!(r#"{{"v":{sent}}}"#)).expect_err(sent);
            assert!(error.to_string().contains("not an allowed value"), "{error}");
            assert!(plan.parse::<Value>(&format!(r#"{{"v":{member}.0}}"#)).is_ok(), "{set}");
        }
    }
}
