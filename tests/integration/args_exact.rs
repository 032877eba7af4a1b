//! Numbers that floats would mix up, and keys that are there twice.

use super::{W, bad, ok, options, plan, w};
use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions, UnknownKeys};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

const POLICIES: [CoercionPolicy; 3] =
    [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()];
/// 2^53, and what floats round to it.
const EDGE: u64 = 9_007_199_254_740_992;
const BEYOND: u64 = EDGE + 1;

/// One property `v`.
#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn foreign(schema: Value, policy: CoercionPolicy) -> Plan {
    let schema = json!({"type": "object", "properties": {"v": schema}});
    Plan::compile("t", &schema, PlanOptions::default().coercion(policy)).unwrap_or_else(|e| panic!("{e}"))
}

fn sent(plan: &Plan, v: impl std::fmt::Display) -> Result<Value, InvalidArguments> {
    plan.parse::<Value>(&format!("{{\"v\":{v}}}")).map(|parsed| parsed.value["v"].clone())
}

fn issues(error: &InvalidArguments) -> Vec<(&str, &str)> {
    error.issues().iter().map(|i| (i.path.as_str(), i.code.as_str())).collect()
}

#[test]
fn two_integers_are_compared_by_their_digits() {
    for policy in POLICIES {
        for schema in [json!({"enum": [BEYOND]}), json!({"const": BEYOND}), json!({"enum": ["a", BEYOND]})] {
            let plan = foreign(schema, policy);
            assert!(sent(&plan, EDGE).is_err());
            assert!(sent(&plan, format!("\"{EDGE}\"")).is_err());
            assert!(sent(&plan, format!("{EDGE}.0")).is_err());
            assert_eq!(sent(&plan, BEYOND).expect("the member"), json!(BEYOND));
        }
        let set = foreign(json!({"type": "array", "uniqueItems": true}), policy);
        assert!(sent(&set, format!("[{EDGE},{BEYOND}]")).is_ok());
        assert!(sent(&set, format!("[{BEYOND},{BEYOND}]")).is_err());
        // A float of that size may stand for several integers.
        assert!(sent(&foreign(json!({"type": "integer"}), policy), format!("{EDGE}.0")).is_err());
        assert!(sent(&foreign(json!({"type": "integer"}), policy), format!("{}.0", EDGE - 1)).is_ok());
        let rounded = foreign(json!({"enum": [9_007_199_254_740_992.0]}), policy);
        assert!(sent(&rounded, format!("\"{BEYOND}\"")).is_err());
    }
    bad::<W<i64>>(&format!("{{\"v\":{BEYOND}.0}}"), &[("/v", "type")]);
}

#[test]
fn bounds_and_multiples_of_numbers_are_exact() {
    for policy in POLICIES {
        let top = foreign(json!({"type": "number", "maximum": EDGE}), policy);
        assert!(sent(&top, EDGE).is_ok());
        assert!(sent(&top, BEYOND).is_err());
        let odd = foreign(json!({"type": "number", "minimum": BEYOND, "maximum": BEYOND}), policy);
        assert!(sent(&odd, BEYOND).is_ok());
        assert!(sent(&odd, EDGE).is_err());
        let above = foreign(json!({"type": "number", "exclusiveMinimum": 1e17}), policy);
        assert!(sent(&above, 100_000_000_000_000_001_u64).is_ok());
        assert!(sent(&above, 100_000_000_000_000_000_u64).is_err());
        let tenth = foreign(json!({"type": "number", "multipleOf": 0.1}), policy);
        for fits in ["0.3", "1", "-0.7", "123456789012.3", "0", "1e300"] {
            assert!(sent(&tenth, fits).is_ok(), "{fits}");
        }
        for wrong in ["0.35", "0.30000000001", "123456789012.35"] {
            assert!(sent(&tenth, wrong).is_err(), "{wrong}");
        }
        let three = foreign(json!({"type": "number", "multipleOf": 3}), policy);
        assert!(sent(&three, 9_007_199_254_740_993_u64).is_ok());
        assert!(sent(&three, 9_007_199_254_740_994_u64).is_err());
    }
}

#[test]
fn text_becomes_the_number_that_its_digits_say() {
    let plan = foreign(json!({"type": "number"}), CoercionPolicy::strict());
    for digits in ["12345678901234567890", "18446744073709551615", "-9223372036854775808", "9007199254740993"]
    {
        let from_text = plan.parse::<Value>(&format!("{{\"v\":\"{digits}\"}}")).expect("a number");
        assert_eq!(from_text.value["v"].to_string(), digits);
        assert_eq!(from_text.coercions()[0].to.to_string(), digits);
        assert_eq!(sent(&plan, digits).expect("a number").to_string(), digits);
    }
    ok(r#"{"v":"12345678901234567890"}"#, w(12_345_678_901_234_567_890.0f64));
}

#[test]
fn a_multiple_beyond_the_greatest_i128_is_one() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its plan is used")]
    struct Even {
        #[schemars(extend("multipleOf" = 2))]
        v: u128,
    }
    let plan = plan::<Even>(PlanOptions::default());
    let even = 1_u128 << 127;
    assert!(plan.parse::<Value>(&format!("{{\"v\":{even}}}")).is_ok());
    assert!(plan.parse::<Value>(&format!("{{\"v\":{}}}", even + 1)).is_err());
}

#[test]
fn a_plan_of_128_bits_gives_a_value_what_it_gives_the_type() {
    let widest = u128::MAX.to_string();
    for policy in [CoercionPolicy::strict(), CoercionPolicy::lenient()] {
        let plan = plan::<W<u128>>(options(policy));
        for text in [widest.clone(), format!("\"{widest}\"")] {
            let text = format!("{{\"v\":{text}}}");
            assert_eq!(plan.parse::<W<u128>>(&text).expect("u128").value, w(u128::MAX));
            assert_eq!(plan.parse::<Value>(&text).expect("a value").value, json!({"v": widest}));
        }
        assert_eq!(plan.parse::<Value>(r#"{"v":5}"#).expect("a value").value, json!({"v": 5}));
        assert!(plan.parse::<Value>(r#"{"v":-1}"#).is_err());
    }
    let least = i128::MIN.to_string();
    let value = plan::<W<Option<i128>>>(PlanOptions::default()).parse::<Value>(&format!("{{\"v\":{least}}}"));
    assert_eq!(value.expect("a value").value, json!({"v": least}));
    ok(&format!("{{\"v\":[{widest},1]}}"), w(HashSet::from([u128::MAX, 1])));
    bad::<W<HashSet<u128>>>(&format!("{{\"v\":[{widest},{widest}]}}"), &[("/v/1", "unique")]);
}

#[test]
fn minus_zero_is_no_text() {
    bad::<W<Vec<String>>>(r#"{"v":[-0]}"#, &[("/v/0", "type")]);
    bad::<W<Vec<String>>>(r#"{"v":[-0.0]}"#, &[("/v/0", "type")]);
    ok(r#"{"v":[0,-1.5]}"#, w(vec!["0".to_string(), "-1.5".into()]));
}

#[test]
fn keys_twice_inside_a_constant() {
    for policy in POLICIES {
        let plan = foreign(json!({"const": {"a": 1, "b": [{"c": 2}]}}), policy);
        assert!(sent(&plan, r#"{"b":[{"c":2}],"a":1}"#).is_ok());
        let error = sent(&plan, r#"{"a":2,"a":1,"b":[{"c":2}]}"#).expect_err("twice");
        assert_eq!(issues(&error), [("/v/a", "duplicate")]);
        let error = sent(&plan, r#"{"a":1,"b":[{"c":3,"c":2}]}"#).expect_err("twice");
        assert_eq!(issues(&error), [("/v/b/0/c", "duplicate")]);
        let union = foreign(json!({"anyOf": [{"enum": [{"a": 1}]}, {"type": "integer"}]}), policy);
        assert!(sent(&union, r#"{"a":2,"a":1}"#).is_err());
    }
}

#[test]
fn one_integer_key_in_two_spellings() {
    type Map<K> = W<BTreeMap<K, i32>>;
    ok(r#"{"v":{"1":1,"02":2}}"#, w(BTreeMap::from([(1u8, 1), (2, 2)])));
    bad::<Map<u8>>(r#"{"v":{"1":1,"01":2}}"#, &[("/v/01", "duplicate")]);
    bad::<Map<u8>>(r#"{"v":{"001":1,"2":"x","01":2,"1":3}}"#, &[("/v/01", "duplicate"), ("/v/2", "type")]);
    bad::<Map<u8>>(r#"{"v":{"0":1,"000":2}}"#, &[("/v/000", "duplicate")]);
    bad::<Map<i64>>(r#"{"v":{"-1":1,"-01":2}}"#, &[("/v/-01", "duplicate")]);
    bad::<Map<i64>>(r#"{"v":{"0":1,"-0":2}}"#, &[("/v/-0", "duplicate")]);
    ok(r#"{"v":{"-1":1,"1":2}}"#, w(BTreeMap::from([(-1i64, 1), (1, 2)])));
    ok(r#"{"v":{"1":1,"01":2}}"#, w(BTreeMap::from([("1".to_string(), 1), ("01".to_string(), 2)])));
    // To JSON Schema they are two keys, and so they are in a `Value`.
    let plan =
        foreign(json!({"type": "object", "patternProperties": {r"^\d+$": {}}}), CoercionPolicy::exact());
    assert_eq!(sent(&plan, r#"{"1":1,"01":2}"#).expect("two keys"), json!({"1": 1, "01": 2}));
}

#[test]
fn a_key_that_is_dropped_is_there_once() {
    for policy in POLICIES {
        let options = PlanOptions::default().coercion(policy).unknown(UnknownKeys::Strip);
        let plan = plan::<W<i32>>(options);
        assert_eq!(plan.parse::<W<i32>>(r#"{"v":1,"zz":1,"y":2}"#).expect("dropped").coercions().len(), 2);
        let error = plan.parse::<W<i32>>(r#"{"zz":1,"v":1,"zz":2,"y":1,"zz":3}"#).expect_err("twice");
        assert_eq!(issues(&error), [("/zz", "duplicate")]);
        let mut stream = agent::args::ArgumentStream::new(&plan);
        let pushed = stream.push(r#"{"zz":1,"zz":2,"v":1}"#, &mut |_| {});
        assert!(pushed.is_ok());
        assert_eq!(stream.issues().iter().map(|i| i.path.as_str()).collect::<Vec<_>>(), ["/zz"]);
    }
}

#[test]
fn exactly_one_counts_as_json_schema_does() {
    for policy in POLICIES {
        let plan = foreign(json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), policy);
        assert!(sent(&plan, "5").is_err());
        assert!(sent(&plan, "5.0").is_err());
        assert_eq!(sent(&plan, "5.5").expect("a number"), json!(5.5));
        let plan = foreign(json!({"oneOf": [{"enum": [5, 6]}, {"type": "number", "maximum": 5.5}]}), policy);
        assert!(sent(&plan, "5.0").is_err());
        assert_eq!(sent(&plan, "6.0").expect("a member"), json!(6));
        assert!(sent(&plan, "4").is_ok());
    }
    let plan = foreign(json!({"oneOf": [{"type": "integer"}, {"type": "string"}]}), CoercionPolicy::strict());
    assert_eq!(sent(&plan, "\"5\"").expect("text as it is"), json!("5"));
}

/// A property is no keyword.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Odd {
    #[serde(rename = "unevaluatedProperties")]
    unevaluated: i32,
    #[serde(rename = "enum")]
    list: Vec<i32>,
}

#[test]
fn properties_may_be_called_like_keywords() {
    ok(r#"{"unevaluatedProperties":"1","enum":["2"]}"#, Odd { unevaluated: 1, list: vec![2] });
    bad::<Odd>(
        r#"{"unevaluatedProperties":"x","enum":["y"]}"#,
        &[("/unevaluatedProperties", "type"), ("/enum/0", "type")],
    );
}

#[test]
fn before_2019_what_stands_beside_a_reference_is_ignored() {
    let schema = |dialect: &str| {
        json!({"$schema": dialect, "type": "object",
        "properties": {"v": {"$ref": "#/definitions/n", "maximum": 5, "not": {}}}, "definitions": {"n": {"type": "integer"}}})
    };
    let old = schema("http://json-schema.org/draft-07/schema#");
    let plan = Plan::compile("t", &old, PlanOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(jsonschema::is_valid(&old, &json!({"v": 7})) && sent(&plan, 7).is_ok());
    assert!(sent(&plan, "[]").is_err());
    let new = schema("https://json-schema.org/draft/2020-12/schema");
    let new = Plan::compile("t", &new, PlanOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(sent(&new, 7).is_err() && sent(&new, 3).is_err());
}
