//! Replies to a lowered schema, read by the plan: null for what is optional is absent, silently, under every policy.

use agent::args::{CoercionPolicy, IssueCode, Plan, PlanOptions};
use agent::schema::{Dialect, restore_nulls};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fmt::Debug;

const POLICIES: [CoercionPolicy; 3] =
    [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()];

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn reads<T: DeserializeOwned + JsonSchema + PartialEq + Debug>(text: &str, want: T) {
    for policy in POLICIES {
        let plan = Plan::for_type::<T>("t", PlanOptions::default().coercion(policy)).unwrap();
        let text = restore_nulls(&plan, Dialect::OpenAiStrict, text);
        let parsed = plan.parse::<T>(&text).unwrap_or_else(|e| panic!("{policy:?} {text}: {e}"));
        assert_eq!(parsed.value, want, "{policy:?} {text}");
        assert!(parsed.coercions().is_empty(), "{policy:?} {text}");
    }
}

#[track_caller]
fn refuses<T: DeserializeOwned + JsonSchema + Debug>(text: &str, path: &str, code: IssueCode) {
    for policy in POLICIES {
        let plan = Plan::for_type::<T>("t", PlanOptions::default().coercion(policy)).unwrap();
        let error = plan.parse::<T>(&restore_nulls(&plan, Dialect::OpenAiStrict, text)).unwrap_err();
        assert!(
            error.issues().iter().any(|i| i.path == path && i.code == code),
            "{policy:?} {text}: {error}"
        );
    }
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Inner {
    a: i32,
    b: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Tagged {
    One { x: Option<i32>, y: i32 },
    Two { z: Option<Vec<Inner>> },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Inner(Inner),
    Other { c: Option<bool>, d: bool },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum External {
    Unit,
    Wrapped(Inner),
}

fn seven() -> u32 {
    7
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct All {
    n: Option<i32>,
    #[serde(default = "seven")]
    defaulted: u32,
    inner: Option<Inner>,
    list: Option<Vec<Inner>>,
    holes: Vec<Option<i32>>,
    tagged: Option<Tagged>,
    untagged: Option<Untagged>,
    external: Option<External>,
    any: Option<Value>,
}

#[test]
fn null_is_absent_at_every_depth() {
    let all = All {
        n: None,
        defaulted: 7,
        inner: Some(Inner { a: 1, b: None }),
        list: Some(vec![Inner { a: 2, b: None }, Inner { a: 3, b: Some("x".into()) }]),
        holes: vec![None, Some(1)],
        tagged: Some(Tagged::Two { z: Some(vec![Inner { a: 4, b: None }]) }),
        untagged: Some(Untagged::Other { c: None, d: true }),
        external: Some(External::Wrapped(Inner { a: 5, b: None })),
        any: None,
    };
    let text = json!({
        "n": null, "defaulted": null,
        "inner": {"a": 1, "b": null},
        "list": [{"a": 2, "b": null}, {"a": 3, "b": "x"}],
        "holes": [null, 1],
        "tagged": {"kind": "Two", "z": [{"a": 4, "b": null}]},
        "untagged": {"c": null, "d": true},
        "external": {"Wrapped": {"a": 5, "b": null}},
        "any": null,
    });
    reads(&text.to_string(), all);
    let none = All {
        n: None,
        defaulted: 7,
        inner: None,
        list: None,
        holes: vec![],
        tagged: Some(Tagged::One { x: None, y: 1 }),
        untagged: Some(Untagged::Inner(Inner { a: 1, b: None })),
        external: Some(External::Unit),
        any: None,
    };
    let text = json!({
        "n": null, "defaulted": null, "inner": null, "list": null, "holes": [],
        "tagged": {"kind": "One", "x": null, "y": 1},
        "untagged": {"a": 1, "b": null}, "external": "Unit", "any": null,
    });
    reads(&text.to_string(), none);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "action")]
enum Root {
    Create { text: String, inner: Option<Inner> },
    Find { text: String, limit: Option<u32> },
    Clear,
}

#[test]
fn null_for_another_variants_parameter_is_absent() {
    let inner = Some(Inner { a: 1, b: None });
    reads(
        r#"{"action": "Create", "text": "t", "inner": {"a": 1, "b": null}, "limit": null}"#,
        Root::Create { text: "t".into(), inner },
    );
    reads(
        r#"{"action": "Find", "text": "t", "inner": null, "limit": null}"#,
        Root::Find { text: "t".into(), limit: None },
    );
    reads(r#"{"action": "Clear", "text": null, "inner": null, "limit": null}"#, Root::Clear);
    refuses::<Root>(r#"{"action": "Clear", "text": "t", "inner": null}"#, "/text", IssueCode::Unknown);
    refuses::<Root>(r#"{"action": "Clear", "nobodys": null}"#, "/nobodys", IssueCode::Unknown);
    refuses::<Root>(r#"{"action": "Find", "text": null}"#, "/text", IssueCode::Type);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum RootUntagged {
    ById { id: u64, deep: Option<bool> },
    ByName { name: String, city: Option<String> },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum RootExternal {
    Number(i64),
    Inner(Inner),
    Maybe(Option<i64>),
}

#[test]
fn other_roots() {
    let by_name = RootUntagged::ByName { name: "n".into(), city: None };
    reads(r#"{"id": null, "deep": null, "name": "n", "city": null}"#, by_name);
    reads(
        r#"{"id": 5, "deep": true, "name": null, "city": null}"#,
        RootUntagged::ById { id: 5, deep: Some(true) },
    );
    reads(r#"{"Number": 5, "Inner": null, "Maybe": null}"#, RootExternal::Number(5));
    let inner = RootExternal::Inner(Inner { a: 1, b: None });
    reads(r#"{"Number": null, "Inner": {"a": 1, "b": null}, "Maybe": null}"#, inner);
    reads(r#"{"Number": null, "Inner": null, "Maybe": null}"#, RootExternal::Maybe(None));
    reads(r#"{"Maybe": 5, "Number": null, "Inner": null}"#, RootExternal::Maybe(Some(5)));
}

#[test]
fn what_is_wrong_stays_wrong() {
    refuses::<Inner>(r#"{"a": null, "b": null}"#, "/a", IssueCode::Type);
    refuses::<Inner>(r#"{"a": 1, "b": null, "b": "x"}"#, "/b", IssueCode::Duplicate);
    refuses::<Inner>(r#"{"a": 1, "c": null}"#, "/c", IssueCode::Unknown);
    refuses::<Inner>(r#"{"a": 1, "b": null"#, "", IssueCode::Json);
}

#[test]
fn other_dialects_and_texts_are_left_alone() {
    let plan = Plan::for_type::<Inner>("t", PlanOptions::default()).unwrap();
    for dialect in Dialect::ALL {
        for text in [r#"{"a": 1}"#, r#"{"a": 1, "b": "null"}"#, "", "null", "[null]", r#"{"b": null"#] {
            assert!(
                matches!(restore_nulls(&plan, dialect, text), std::borrow::Cow::Borrowed(same) if same == text)
            );
        }
        let strict = dialect == Dialect::OpenAiStrict;
        let restored = restore_nulls(&plan, dialect, r#"{"a": 1, "b": null}"#);
        assert_eq!(restored == r#"{"a":1}"#, strict, "{dialect}");
    }
}

#[test]
fn hostile_text_costs_little() {
    let schema = json!({"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {
        "next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "z": {"type": "integer"}}}]},
        "x": {"type": "integer"},
    }}}});
    let plan = Plan::compile("t", &schema, PlanOptions::default()).unwrap();
    let deep = format!("{}{}{}", r#"{"x": null, "next": "#.repeat(100), r#"{"w": 1}"#, "}".repeat(100));
    let before = std::time::Instant::now();
    let restored = restore_nulls(&plan, Dialect::OpenAiStrict, &deep);
    assert!(plan.parse::<Value>(&restored).is_err());
    let bottomless = format!("{{\"next\": {}null", "[".repeat(1_000_000));
    assert_eq!(restore_nulls(&plan, Dialect::OpenAiStrict, &bottomless), bottomless);
    assert!(before.elapsed() < std::time::Duration::from_secs(20));
}
