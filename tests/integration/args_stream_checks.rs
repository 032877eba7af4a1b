//! What a plan refuses is told while the arguments still arrive, in the words of the report.

use super::properties::{POLICIES, arguments, compile, object, schema, unknown};
use super::{options, plan};
use agent::args::{
    ArgumentEvent, ArgumentStream, CoercionPolicy, InvalidArguments, Issue, IssueCode, Plan, PlanOptions,
    UnknownKeys,
};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;

/// Everything refused, each with the text up to where it was told, character by character.
#[track_caller]
fn refused(plan: &Plan, text: &str) -> Vec<(String, String)> {
    let mut stream = ArgumentStream::new(plan);
    let mut out = Vec::new();
    for (at, c) in text.char_indices() {
        let told = &text[..at + c.len_utf8()];
        stream
            .push(&text[at..at + c.len_utf8()], &mut |event| {
                if let ArgumentEvent::Refused { path, issues } = event {
                    assert_eq!(path.depth(), 1);
                    for issue in issues {
                        assert!(issue.path.starts_with(&path.to_string()), "{issue} at {path}");
                        out.push((told.to_owned(), issue.to_string()));
                    }
                }
            })
            .unwrap();
    }
    assert_eq!(stream.issues().iter().map(ToString::to_string).collect::<Vec<_>>(), {
        out.iter().map(|(_, issue)| issue.clone()).collect::<Vec<_>>()
    });
    out
}

#[track_caller]
fn check(plan: &Plan, text: &str, want: &[(&str, &str)]) {
    let got = refused(plan, text);
    let got: Vec<(&str, &str)> = got.iter().map(|(told, issue)| (told.as_str(), issue.as_str())).collect();
    assert_eq!(got, want);
    assert_eq!(plan.parse::<Value>(text).is_err(), !want.is_empty(), "{text}");
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its plan is used")]
struct Book {
    #[serde(alias = "town")]
    #[schemars(extend("x-aliases" = ["town"]))]
    city: String,
    nights: u32,
    guests: Option<Vec<Guest>>,
    #[schemars(extend("x-secret" = true))]
    card: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its plan is used")]
struct Guest {
    name: String,
    age: u32,
}

#[test]
fn at_once() {
    let plan = plan::<Book>(PlanOptions::default());
    check(&plan, r#"{"city":"Rome","nights":" 3 ","guests":null,"card":"1"}"#, &[]);
    check(
        &plan,
        r#"{"nigths":3,"city":5,"nights":2.5,"guests":[{"name":"Ann","age":-1,"kid":true},{"age":2}]}"#,
        &[
            (r#"{"nigths""#, r#"/nigths: unknown parameter; did you mean "nights"?"#),
            (r#"{"nigths":3,"city":5,"#, "/city: must be text in quotes; got number 5; expected string"),
            (
                r#"{"nigths":3,"city":5,"nights":2.5,"#,
                "/nights: must be a whole number; got number 2.5; expected integer >= 0",
            ),
            (
                r#"{"nigths":3,"city":5,"nights":2.5,"guests":[{"name":"Ann","age":-1,"kid":true},{"age":2}]"#,
                r#"/guests/0/kid: unknown parameter; expected "name" | "age""#,
            ),
            (
                r#"{"nigths":3,"city":5,"nights":2.5,"guests":[{"name":"Ann","age":-1,"kid":true},{"age":2}]"#,
                "/guests/0/age: out of range; got number -1; expected integer >= 0",
            ),
            (
                r#"{"nigths":3,"city":5,"nights":2.5,"guests":[{"name":"Ann","age":-1,"kid":true},{"age":2}]"#,
                "/guests/1/name: required, but missing; expected string",
            ),
        ],
    );
}

#[test]
fn repeated_keys() {
    let plan = plan::<Book>(PlanOptions::default());
    check(
        &plan,
        r#"{"city":"a","nights":1,"town":5,"x":1,"x":2,"city":"b"}"#,
        &[
            (r#"{"city":"a","nights":1,"town""#, r#"/town: given twice (also as "city")"#),
            (r#"{"city":"a","nights":1,"town":5,"x""#, "/x: unknown parameter"),
        ],
    );
    let map = Plan::compile(
        "t",
        &json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        options(CoercionPolicy::strict()),
    )
    .unwrap();
    check(
        &map,
        r#"{"a":1,"b":"x","a":2,"a":3}"#,
        &[
            (r#"{"a":1,"b":"x""#, r#"/b: wrong type; got string "x"; expected integer"#),
            (r#"{"a":1,"b":"x","a""#, "/a: given twice"),
        ],
    );
}

#[test]
fn policies_are_honoured() {
    let lenient = plan::<Book>(options(CoercionPolicy::lenient()));
    check(&lenient, r#"{"city":7,"nights":"3","guests":"[{\"name\":\"Ann\",\"age\":\"31\"}]"}"#, &[]);
    check(&lenient, r#"{"city":"a","nights":1,"guests":{"name":"Ann","age":1}}"#, &[]);
    let exact = plan::<Book>(options(CoercionPolicy::exact()));
    check(
        &exact,
        r#"{"city":"a","nights":1,"card":null}"#,
        &[(
            r#"{"city":"a","nights":1,"card":null"#,
            "/card: must not be null; leave it out instead; expected string",
        )],
    );
    let strip = plan::<Book>(PlanOptions::default().unknown(UnknownKeys::Strip));
    check(&strip, r#"{"city":"a","nights":1,"x":{"y":2},"z":3}"#, &[]);
    // Dropped or not, a key is there once.
    check(
        &strip,
        r#"{"city":"a","nights":1,"x":{"y":2},"x":3}"#,
        &[(r#"{"city":"a","nights":1,"x":{"y":2},"x""#, "/x: given twice")],
    );
}

#[test]
fn secrets_are_not_told() {
    let plan = plan::<Book>(PlanOptions::default());
    let mut stream = ArgumentStream::new(&plan);
    let mut log = String::new();
    let mut secret = Vec::new();
    let text = r#"{"city":"Rome","card":4111,"crad":"4111","nights":"many"}"#;
    stream
        .push(text, &mut |event| {
            writeln!(log, "{event:?}").unwrap();
            if event.path().is_secret() && matches!(event, ArgumentEvent::Finished { .. }) {
                secret.push(event.path().to_string());
            }
        })
        .unwrap();
    assert_eq!(secret, ["/card", "/crad", ""]);
    write!(log, "{stream:?}").unwrap();
    let issues = format!("{:?}", stream.issues());
    assert!(issues.contains("number (hidden)") && !issues.contains("4111"), "{issues}");
    // `Debug` of events and of the stream shows no values at all.
    assert!(log.contains(r#"("/nights", Type)"#), "{log}");
    assert!(["4111", "Rome", "many"].iter().all(|value| !log.contains(value)), "{log}");
}

/// An issue without what more of the text can change: parameters that come later are no candidates.
fn essence(issue: &Issue) -> Value {
    let suggestions = if issue.code == IssueCode::Unknown && issue.path.matches('/').count() == 1 {
        json!(null)
    } else {
        json!(issue.suggestions)
    };
    json!([
        issue.path,
        issue.code.as_str(),
        issue.problem,
        issue.expected,
        issue.received,
        issue.allowed,
        suggestions
    ])
}

proptest! {
    /// The stream finds what the parse finds, but for what only the whole can tell.
    #[test]
    fn as_the_parse_says(schema in object(schema()), value in arguments(), unknown in unknown()) {
        let text = value.to_string();
        for policy in POLICIES {
            let plan = compile(&schema, policy, unknown);
            let mut stream = ArgumentStream::new(&plan);
            stream.push(&text, &mut |_| {}).map_err(|e| TestCaseError::fail(e.to_string()))?;
            let mut got: Vec<String> = stream.issues().iter().map(|i| essence(i).to_string()).collect();
            let want = plan.parse::<Value>(&text).err();
            // That the arguments are inside of something else only the whole can tell; then its places are the same.
            if let Some(report) = want.as_ref().filter(|report| report.issues().iter().any(|i| i.problem.contains(" what is inside"))) {
                let is_told = |early: &Issue| report.issues().iter().any(|issue| issue.path == early.path);
                prop_assert!(stream.issues().iter().all(is_told), "{:?} {} {}", policy, schema, text);
                continue;
            }
            let top = |i: &&Issue| i.code == IssueCode::Missing && i.path.matches('/').count() == 1;
            let mut want: Vec<String> = want.iter().flat_map(InvalidArguments::issues).filter(|i| !top(i)).map(|i| essence(i).to_string()).collect();
            got.sort();
            want.sort();
            prop_assert_eq!(got, want, "{:?} {} {}", policy, schema, text);
        }
    }
}

/// What is missing in a parameter beside a wrapper is reported there, and not inside the wrapper.
#[test]
fn a_parameter_beside_a_wrapper_keeps_its_path() {
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false},
        },
    });
    let plan = compile(&schema, CoercionPolicy::exact(), UnknownKeys::Deny);
    let report = plan.parse::<Value>(r#"{"Cd":{"a":null},"b":{"c":false}}"#).unwrap_err();
    let paths: Vec<&str> = report.issues().iter().map(|issue| issue.path.as_str()).collect();
    assert_eq!(paths, ["/Cd", "/Cd/a", "/b/c", "/b/a"]);
    let report = plan.parse::<Value>(r#"{"calls":[{"a":1},{"a":2}],"b":5}"#).unwrap_err();
    let paths: Vec<&str> = report.issues().iter().map(|issue| issue.path.as_str()).collect();
    assert_eq!(paths, ["/calls", "/b"]);
}

/// Unions at the root, and arguments that are no object, are left to the parse.
#[test]
fn what_only_the_whole_can_tell() {
    let root = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"], "additionalProperties": false},
        {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"], "additionalProperties": false},
    ]});
    let plan = compile(&root, CoercionPolicy::strict(), UnknownKeys::Deny);
    assert_eq!(refused(&plan, r#"{"kind":"c","n":"x","n":1}"#), []);
    let plan = super::plan::<Book>(PlanOptions::default());
    for text in ["[1]", "null", r#""{\"city\":5}""#, "{}"] {
        assert_eq!(refused(&plan, text), []);
    }
}

/// Many unknown keys, entries and mistakes: bounded, and soon.
#[test]
fn hostile_keys() {
    let names: Vec<String> = (0..200).map(|i| format!("parameter_{i}")).collect();
    let properties: Value = names.iter().map(|n| (n.clone(), json!({"type": "integer"}))).collect();
    let plan = compile(
        &json!({"type": "object", "properties": properties}),
        CoercionPolicy::lenient(),
        UnknownKeys::Deny,
    );
    let mut stream = ArgumentStream::new(&plan);
    let start = std::time::Instant::now();
    stream.push("{", &mut |_| {}).unwrap();
    for i in 0..50_000 {
        stream.push(&format!("\"paramater_{i}\":[],"), &mut |_| {}).unwrap();
    }
    assert_eq!(stream.issues().len(), 10_000);
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}
