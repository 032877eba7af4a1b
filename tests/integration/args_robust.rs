//! Whatever is sent: an answer, bounded, soon.

use super::shapes::{Outer, Tree};
use super::{W, plan};
use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Generous: these run unoptimised on shared machines; what must not happen would take minutes.
const SOON: Duration = Duration::from_secs(20);

#[track_caller]
fn bounded<T: DeserializeOwned + JsonSchema>(text: &str) {
    for policy in [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()] {
        let plan = plan::<T>(super::options(policy));
        answer::<T>(&plan, text);
    }
}

#[track_caller]
fn answer<T: DeserializeOwned>(plan: &Plan, text: &str) {
    let start = Instant::now();
    if let Err(error) = plan.parse::<T>(text) {
        assert!(error.count() > 0);
        assert!(error.to_text().chars().count() <= 6_000);
        assert!(error.to_json().to_string().len() < 40_000);
    }
    assert!(start.elapsed() < SOON, "{:?} for {} bytes", start.elapsed(), text.len());
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Either {
    Left { a: Box<Either> },
    Right { a: Box<Either>, b: i64 },
    List(Vec<Either>),
    Leaf(i64),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "op")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Tagged {
    Add { left: Box<Tagged>, right: Box<Tagged> },
    Leaf { n: i64 },
}

#[test]
fn texts_that_are_no_arguments() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "nul",
        "\u{feff}{}",
        "{\"v\":\"\\ud800\"}",
        "{\"v\":1e999}",
        "\"\\\"",
        "{\"v\":1}x",
        "\0",
    ] {
        bounded::<W<i64>>(text);
        bounded::<W<Either>>(text);
    }
}

#[test]
fn a_lone_surrogate_in_an_ignored_value_is_refused() {
    let plan = plan::<W<i64>>(PlanOptions::default().unknown(UnknownKeys::Keep));
    for (value, is_taken) in [
        (r#""\ude00x""#, false),
        (r#"{"a": ["\ud83d"]}"#, false),
        (r#""\ud83d\ude00""#, true),
        (r#"{"a": ["\u00e9"]}"#, true),
    ] {
        for v in ["1", "\"1\""] {
            let text = format!(r#"{{"v":{v},"x":{value}}}"#);
            assert_eq!(plan.parse::<W<i64>>(&text).is_ok(), is_taken, "{text}");
            assert_eq!(plan.parse::<Value>(&text).is_ok(), is_taken, "{text}");
        }
    }
}

#[test]
fn deep_nesting() {
    for open in ["[", "{\"v\":", "{\"a\":", "{\"op\":\"Add\",\"left\":", "{\"v\":{\"op\":\"Add\",\"right\":"]
    {
        let text = open.repeat(50_000);
        bounded::<W<i64>>(&text);
        bounded::<Tree>(&text);
        bounded::<W<Either>>(&text);
        bounded::<W<Tagged>>(&text);
        bounded::<Tagged>(&text);
        bounded::<W<Value>>(&text);
    }
    let balanced = format!("{{\"v\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    bounded::<W<Either>>(&balanced);
    bounded::<W<Value>>(&balanced);
    let leaf = r#"{"op":"Leaf","n":1}"#;
    let nested = |depth: usize| {
        let open = format!(r#"{{"op":"Add","left":{leaf},"right":"#).repeat(depth);
        format!("{{\"v\":{open}{leaf}{}}}", "}".repeat(depth))
    };
    bounded::<W<Tagged>>(&nested(5_000));
    assert!(plan::<W<Tagged>>(PlanOptions::default()).parse::<W<Tagged>>(&nested(100)).is_ok());
    let error =
        plan::<W<Tagged>>(PlanOptions::default()).parse::<W<Tagged>>(&nested(130)).expect_err("too deep");
    assert_eq!(error.issues()[0].code.as_str(), "json");
}

#[test]
fn nested_unions_do_not_multiply() {
    for (leaf, fits) in [("1", true), ("\"1\"", true), ("\"x\"", false)] {
        for depth in [20, 60, 120] {
            let text = format!("{{\"v\":{}{leaf}{}}}", "{\"a\":".repeat(depth), "}".repeat(depth));
            bounded::<W<Either>>(&text);
            let plan = plan::<W<Either>>(PlanOptions::default());
            assert_eq!(plan.parse::<W<Either>>(&text).is_ok(), fits, "{leaf} {depth}");
        }
    }
    let text = format!("{{\"v\":{}\"x\"{}}}", "[1,".repeat(120), "]".repeat(120));
    bounded::<W<Either>>(&text);
}

#[test]
fn megabytes() {
    let size = if cfg!(debug_assertions) { 500_000 } else { 10_000_000 };
    let text = "x".repeat(size);
    bounded::<W<String>>(&format!("{{\"v\":\"{text}\"}}"));
    bounded::<W<i64>>(&format!("{{\"v\":\"{text}\"}}"));
    bounded::<W<i64>>(&format!("{{\"{text}\":1}}"));
    bounded::<W<i64>>(&text);
    bounded::<W<i64>>(&format!("{{\"v\":{}}}", "1".repeat(size)));
    let many = "1,".repeat(size / 10);
    bounded::<W<Vec<bool>>>(&format!("{{\"v\":[{many}1]}}"));
    bounded::<W<Vec<i64>>>(&format!("{{\"v\":[{many}1]}}"));
}

#[test]
fn many_issues() {
    let long = "k".repeat(if cfg!(debug_assertions) { 1_000 } else { 10_000 });
    let many: Vec<String> = (0..1_000).map(|i| format!("\"{long}{i}\":\"{long}\",")).collect();
    let many = many.concat();
    let text = format!("{{{many}\"id\":\"{long}\",\"name\":[],\"inner\":null,\"list\":{{}}}}");
    bounded::<Outer>(&text);
    let error = plan::<Outer>(PlanOptions::default()).parse::<Outer>(&text).expect_err("refused");
    assert_eq!((error.count(), error.issues().len()), (1_004, 1_004));
    assert!(error.to_text().contains("… and 984 more problems."));
    let text = format!("{{\"v\":[{}]}}", "true,".repeat(50_000) + "1");
    let error = plan::<W<Vec<i64>>>(PlanOptions::default()).parse::<W<Vec<i64>>>(&text).expect_err("refused");
    assert_eq!((error.count(), error.issues().len()), (50_000, 10_000));
    // An issue that is only counted does not change the last one that is kept.
    let schema = json!({"properties": {"v": {"type": "array", "items": {"enum": ["a", "b"]}}}});
    let text = format!("{{\"v\":[{}{{\"a\":{{}}}}]}}", "\"x\",".repeat(10_000));
    let plan = Plan::compile("t", &schema, PlanOptions::default()).expect("a plan");
    let error = plan.parse::<Value>(&text).expect_err("refused");
    assert_eq!((error.count(), error.issues()[9_999].problem.as_str()), (10_001, "not an allowed value"));
    // A long key above many issues is not repeated in full for each.
    let text = format!("{{\"v\":{{\"{}\":[{}]}}}}", "k".repeat(1_000_000), "true,".repeat(10_000) + "1");
    bounded::<W<std::collections::BTreeMap<String, Vec<i64>>>>(&text);
}

#[test]
fn suggestions_are_bounded() {
    let properties: serde_json::Map<String, Value> = (0..100)
        .map(|i| (format!("{}{i}", "parameter_name_".repeat(4)), json!({"type": "string"})))
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    let plan = Plan::compile("t", &schema, PlanOptions::default()).expect("a plan");
    let many: Vec<String> =
        (0..10_000).map(|i| format!("\"{}{i}\":1", "parameter_nane_".repeat(4))).collect();
    answer::<Value>(&plan, &format!("{{{}}}", many.join(",")));
    let error = plan.parse::<Value>(&format!("{{{}}}", many.join(","))).expect_err("unknown");
    assert_eq!(error.count(), 10_000);
    assert!(!error.issues()[0].suggestions.is_empty());
}

#[test]
fn sets_are_compared_in_one_pass() {
    let items: Vec<String> = (0..100_000).map(|i| format!("\"{i}\"")).collect();
    let text = format!("{{\"v\":[{}]}}", items.join(","));
    bounded::<W<BTreeSet<String>>>(&text);
    let text = format!("{{\"v\":[{},99999]}}", items.join(","));
    let plan = plan::<W<BTreeSet<String>>>(PlanOptions::default());
    answer::<W<BTreeSet<String>>>(&plan, &text);
    let error = plan.parse::<W<BTreeSet<String>>>(&text).expect_err("repeats");
    assert_eq!(error.issues()[0].path, "/v/100000");
}

/// Sets of sets of sets: each level is looked at twice, and that must not double at every level.
#[test]
fn nested_sets_do_not_multiply() {
    let schema = json!({
        "type": "object", "properties": {"v": {"$ref": "#/$defs/set"}},
        "$defs": {"set": {"type": "array", "uniqueItems": true, "items": {"anyOf": [{"$ref": "#/$defs/set"}, {"type": "integer"}]}}}
    });
    let plan = Plan::compile("t", &schema, PlanOptions::default()).expect("a plan");
    for leaf in ["1", "\"1\"", "\"x\"", "1,1"] {
        let text = format!("{{\"v\":{}{leaf}{}}}", "[".repeat(110), "]".repeat(110));
        answer::<Value>(&plan, &text);
    }
}

#[test]
fn schemas_are_bounded_too() {
    // Each definition uses the one before it twice.
    let mut definitions = serde_json::Map::new();
    definitions.insert("d0".into(), json!({"type": "integer"}));
    for i in 1..60 {
        let below = json!({"$ref": format!("#/$defs/d{}", i - 1)});
        definitions
            .insert(format!("d{i}"), json!({"type": "object", "properties": {"a": below, "b": below}}));
    }
    let schema =
        json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/d59"}}, "$defs": definitions});
    let start = Instant::now();
    let plan = Plan::compile("t", &schema, PlanOptions::default()).expect("shared nodes");
    answer::<Value>(&plan, r#"{"v":{"a":1}}"#);
    assert!(start.elapsed() < SOON);
    let mut deep = json!({"type": "integer"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let error = Plan::compile("t", &deep, PlanOptions::default()).expect_err("too deep");
    assert!(error.to_string().contains("deep"), "{error}");
}

#[test]
fn many_words_are_folded_once() {
    let words: Vec<String> = (0..2_000).map(|i| format!("Some Long Member Of A Set {i}")).collect();
    let variants: Vec<Value> = words
        .iter()
        .map(|word| json!({"type": "object", "properties": {"t": {"const": word}}, "required": ["t"]}))
        .collect();
    let schema = json!({"type": "object", "properties": {
        "words": {"type": "array", "items": {"enum": words}}, "tagged": {"type": "array", "items": {"anyOf": variants}}}});
    let plan = Plan::compile("t", &schema, PlanOptions::default().coercion(CoercionPolicy::lenient()))
        .expect("a plan");
    let started = Instant::now();
    let wrong: Vec<String> = (0..600).map(|i| format!("no member {i}")).collect();
    let tags: Vec<Value> = wrong.iter().map(|word| json!({"t": word})).collect();
    let error = plan.parse::<Value>(&json!({"words": wrong, "tagged": tags}).to_string()).expect_err("wrong");
    assert_eq!(error.count(), 1_200);
    let other: Vec<String> =
        words.iter().take(600).map(|word| word.to_lowercase().replace(' ', "_")).collect();
    let parsed = plan.parse::<Value>(&json!({"words": other}).to_string()).expect("folded");
    assert_eq!((parsed.coercions().len(), &parsed.value["words"][599]), (600, &json!(words[599])));
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
}

#[test]
fn patterns_cost_little() {
    let compile = |patterns: Vec<String>| {
        let properties: serde_json::Map<String, Value> = patterns
            .into_iter()
            .enumerate()
            .map(|(i, pattern)| (format!("p{i}"), json!({"type": "string", "pattern": pattern})))
            .collect();
        Plan::compile("t", &json!({"type": "object", "properties": properties}), PlanOptions::default())
    };
    for patterns in [
        (0..300).map(|i| format!("^\\p{{L}}{{{}}}$", 20 + i % 200)).collect(),
        (0..2_000).map(|i| format!("^a{i}$")).collect(),
        (0..10).map(|i| format!("^{}{i}$", "long".repeat(3_000))).collect(),
        vec!["(a{1000}){1000}".to_owned()],
    ] {
        let started = Instant::now();
        assert_eq!(compile(patterns).expect_err("too much").keyword(), "pattern");
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    }
    assert!(compile(vec!["^[\\w.-]{1,64}@[\\w-]{1,64}$".to_owned(); 3_000]).is_ok());
    assert!(compile((0..4).map(|i| format!("^\\p{{L}}{{1,100}}{i}$")).collect()).is_ok());
}
