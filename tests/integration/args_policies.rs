//! Exact, strict, lenient; policies of single fields; records; secrets.

use super::shapes::Inner;
use super::{W, bad, ok, options, parse, plan};
use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

const EXACT: CoercionPolicy = CoercionPolicy::exact();
const STRICT: CoercionPolicy = CoercionPolicy::strict();
const LENIENT: CoercionPolicy = CoercionPolicy::lenient();

fn owned<const N: usize>(records: [(&str, &'static str); N]) -> Vec<(String, &'static str)> {
    records.into_iter().map(|(path, rule)| (path.to_string(), rule)).collect()
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Defaults {
    #[serde(default)]
    n: u32,
    #[serde(default)]
    tags: Vec<String>,
    o: Option<i64>,
    r: bool,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct FlatDefaults {
    #[serde(flatten)]
    d: Defaults,
}

#[test]
fn null_is_absent_for_optional_parameters() {
    let text = r#"{"n":null,"tags":null,"o":null,"r":true}"#;
    let want = || Defaults { n: 0, tags: vec![], o: None, r: true };
    ok(text, want());
    ok(text, FlatDefaults { d: want() });
    let absent = owned([("/n", "null_as_absent"), ("/tags", "null_as_absent"), ("/o", "null_as_absent")]);
    assert_eq!(parse::<Defaults>(STRICT, text).expect("absent").1, absent);
    assert_eq!(parse::<Defaults>(EXACT, text).expect_err("null").len(), 3);
    bad::<Defaults>(r#"{"r":null}"#, &[("/r", "type")]);
    bad::<Defaults>(r#"{"n":1,"n":null,"r":true}"#, &[("/n", "duplicate")]);
    bad::<Defaults>(r#"{"n":null,"n":1,"r":true}"#, &[("/n", "duplicate")]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Deep {
    a: Vec<W<i64>>,
    b: BTreeMap<String, bool>,
}

#[test]
fn coercions_are_recorded_with_paths() {
    let (_, got) =
        parse::<Deep>(STRICT, r#"{"a":[{"v":1},{"v":"2"},{"v":3.0}],"b":{"x/y":"true"}}"#).expect("fits");
    let want =
        [("/a/1/v", "text_to_integer"), ("/a/2/v", "float_to_integer"), ("/b/x~1y", "text_to_boolean")];
    assert_eq!(got, owned(want));
    assert!(parse::<Deep>(STRICT, r#"{"a":[],"b":{}}"#).expect("fits").1.is_empty());
    assert_eq!(parse::<W<Option<i32>>>(STRICT, "null").expect("empty").1, owned([("", "null_as_empty")]));
    assert!(parse::<W<Option<i32>>>(EXACT, "null").is_err());
    assert_eq!(
        parse::<W<i32>>(STRICT, r#""{\"v\":\"1\"}""#).expect("decoded").1,
        owned([("", "json_text_decoded"), ("/v", "text_to_integer")])
    );
    assert!(parse::<W<i32>>(EXACT, r#""{\"v\":1}""#).is_err());
    // Decoded once, not twice.
    assert!(parse::<W<i32>>(STRICT, r#""\"{\\\"v\\\":1}\"""#).is_err());
}

#[test]
fn long_values_are_cut_in_records() {
    let long = "k".repeat(10_000);
    let parsed = plan::<W<Vec<String>>>(options(LENIENT).unknown(UnknownKeys::Strip))
        .parse::<W<Vec<String>>>(&format!("{{\"v\":\"{long}\",\"zz\":\"{long}\"}}"))
        .expect("wrapped");
    assert_eq!(parsed.value.v.concat(), long);
    assert_eq!(parsed.coercions().len(), 2);
    assert!(format!("{:?}", parsed.coercions()).len() < 2_000);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Priority {
    #[serde(rename = "in_progress")]
    InProgress,
    High,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Loose {
    p: Priority,
    l: Vec<i64>,
    o: Inner,
    s: String,
    b: bool,
}

#[test]
fn lenient_repairs() {
    let text = r#"{"p":"In Progress","l":"[1,\"2\"]","o":"{\"n\":1,\"tags\":\"a\"}","s":7,"b":"TRUE"}"#;
    let (value, mut got) = parse::<Loose>(LENIENT, text).expect("repaired");
    let o = Inner { n: 1, tags: vec!["a".into()] };
    assert_eq!(value, Loose { p: Priority::InProgress, l: vec![1, 2], o, s: "7".into(), b: true });
    got.sort();
    let want = [
        ("/b", "text_to_boolean"),
        ("/l", "json_text_decoded"),
        ("/l/1", "text_to_integer"),
        ("/o", "json_text_decoded"),
        ("/o/tags", "one_value_wrapped"),
        ("/p", "fold_enum"),
        ("/s", "number_to_text"),
    ];
    assert_eq!(got, owned(want));
    assert_eq!(parse::<Loose>(STRICT, text).expect_err("not repaired").len(), 5);
    // It would become "1.1".
    assert!(parse::<W<String>>(LENIENT, r#"{"v":1.10}"#).is_err());
    assert!(parse::<W<i64>>(EXACT, r#"{"v":"1"}"#).is_err());
    // JSON Schema says that this is an integer.
    assert!(parse::<W<i64>>(EXACT, r#"{"v":1.0}"#).is_ok());
    assert!(parse::<W<Vec<String>>>(EXACT, r#"{"v":[1]}"#).is_err());
    assert!(parse::<W<Vec<i64>>>(LENIENT, r#"{"v":null}"#).is_err());
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Many(Inner),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Wrapped {
    Inner(Inner),
    Wide(Vec<u64>),
}

#[test]
fn repairs_reach_into_enums_and_keep_digits() {
    let (value, _) = parse::<W<Wrapped>>(LENIENT, r#"{"v":{"Inner":"{\"n\":\"1\"}"}}"#).expect("repaired");
    assert_eq!(value.v, Wrapped::Inner(Inner { n: 1, tags: vec![] }));
    let (value, records) =
        parse::<W<Either>>(LENIENT, r#"{"v":"{\"n\":2,\"tags\":\"a\"}"}"#).expect("repaired");
    assert_eq!(value.v, Either::Many(Inner { n: 2, tags: vec!["a".into()] }));
    assert_eq!(records, owned([("/v", "json_text_decoded"), ("/v/tags", "one_value_wrapped")]));
    let (value, _) =
        parse::<W<Vec<u128>>>(LENIENT, &format!("{{\"v\":\"[{}]\"}}", u128::MAX)).expect("repaired");
    assert_eq!(value.v, [u128::MAX]);
    let (value, _) = parse::<W<Wrapped>>(LENIENT, r#"{"v":{"Wide":18446744073709551615}}"#).expect("wrapped");
    assert_eq!(value.v, Wrapped::Wide(vec![u64::MAX]));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct PerField {
    #[schemars(extend("x-coerce" = "exact"))]
    id: i64,
    n: i64,
    #[schemars(extend("x-coerce" = "lenient"))]
    list: Option<Vec<Vec<i64>>>,
    #[serde(default)]
    #[schemars(extend("x-secret" = true))]
    key: i64,
}

#[test]
fn policies_of_single_fields() {
    let issues = parse::<PerField>(STRICT, r#"{"id":"1","n":"2","list":["[1]"],"key":"x9secret"}"#)
        .expect_err("exact");
    assert_eq!(issues.iter().map(|i| i.path.as_str()).collect::<Vec<_>>(), ["/id", "/key"]);
    let (value, records) =
        parse::<PerField>(EXACT, r#"{"id":1,"n":2,"list":["[1]",2]}"#).expect("lenient below");
    assert_eq!(value.list, Some(vec![vec![1], vec![2]]));
    assert_eq!(records, owned([("/list/0", "json_text_decoded"), ("/list/1", "one_value_wrapped")]));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Login {
    user: String,
    #[schemars(extend("x-secret" = true))]
    password: Option<Password>,
    #[serde(default)]
    nested: Option<Nested>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Password {
    text: String,
    #[serde(default)]
    tries: u8,
    #[serde(default)]
    mode: Option<Priority>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Nested {
    #[schemars(extend("x-secret" = true))]
    pin: u16,
}

#[test]
fn secrets_are_never_shown() {
    let refused = [
        r#"{"user":"u","password":{"text":41414,"tries":"41414","mode":"41414"}}"#,
        r#"{"user":"u","password":"41414"}"#,
        r#"{"user":"u","password":{"text":"41414","tries":"41414"}}"#,
        r#"{"user":"u","nested":{"pin":"x41414"}}"#,
        // The secret is inside text that stands for its parent.
        r#"{"user":"u","nested":"{\"pin\":41414}"}"#,
        r#"{"user":"u","nested":"{\"pin\":\"x41414\"}"}"#,
        r#""{\"user\":\"u\",\"nested\":{\"pin\":\"x41414\"}}""#,
        r#""{\"user\":\"u\",\"nested\":41414""#,
        r#"{"user":"u","nested":{"pin":41414,"#,
        // A misspelled key.
        r#"{"user":"u","pasword":"41414"}"#,
        // serde's own words quote the input.
        r#"{"user":"u","password":{"text":"a","tries":1.5e1,"mode":{"High":41414}}}"#,
    ];
    for policy in [EXACT, STRICT, LENIENT] {
        for unknown in [UnknownKeys::Deny, UnknownKeys::Strip, UnknownKeys::Keep] {
            let plan = plan::<Login>(options(policy).unknown(unknown));
            for text in refused {
                let shown = match plan.parse::<Login>(text) {
                    Ok(parsed) => format!("{:?}", parsed.coercions()),
                    Err(error) => format!("{error} {error:?} {}", error.to_json()),
                };
                assert!(!shown.contains("41414"), "{policy:?} {unknown:?} {text}\n{shown}");
            }
        }
    }
    let parsed = plan::<Login>(PlanOptions::default())
        .parse::<Login>(r#"{"user":"u","nested":{"pin":"41414"}}"#)
        .expect("fits");
    assert_eq!(parsed.value.nested, Some(Nested { pin: 41414 }));
    assert_eq!(parsed.coercions()[0].from, "(hidden)");
}

/// A number that its type checks.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
#[schemars(with = "u8")]
struct Even(u8);

impl TryFrom<u8> for Even {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Even, &'static str> {
        if number.is_multiple_of(2) { Ok(Even(number)) } else { Err("must be even") }
    }
}

/// The model sent no list: a path with an index would lead nowhere.
#[test]
fn what_is_wrong_with_a_single_value_is_reported_where_it_was_sent() {
    let parsed = parse::<W<Vec<Even>>>(LENIENT, r#"{"v":4}"#).expect("wrapped");
    assert_eq!(parsed, (W { v: vec![Even(4)] }, owned([("/v", "one_value_wrapped")])));
    let faults = |text| {
        let issues = parse::<W<Vec<Even>>>(LENIENT, text).expect_err("odd");
        issues.into_iter().map(|issue| (issue.path, issue.code.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(faults(r#"{"v":3}"#), owned([("/v", "value")]));
    assert_eq!(faults(r#"{"v":3,"w":1}"#), owned([("/w", "unknown"), ("/v", "value")]));
    assert_eq!(faults(r#"{"v":[4,3]}"#), owned([("/v/1", "value")]));
    let schema = agent::json!({
        "type": "object",
        "properties": {"days": {"type": "array", "items": {"type": "string", "format": "date"}}, "count": {"type": "integer"}},
    });
    let plan = Plan::compile("t", &schema, options(LENIENT)).expect("a plan");
    for (text, path) in
        [(r#"{"days":"soon","count":"many"}"#, "/days"), (r#"{"days":["soon"],"count":"many"}"#, "/days/0")]
    {
        let refused = plan.parse::<agent::Value>(text).expect_err("no integer");
        let paths: Vec<&str> = refused.issues().iter().map(|issue| issue.path.as_str()).collect();
        assert_eq!(paths, ["/count", path], "{refused}");
    }
}
