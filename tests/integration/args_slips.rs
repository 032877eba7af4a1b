//! What is told of arguments that are no JSON, of numbers that are too large, and of a call inside a wrapper.

use super::plan;
use agent::ToolArgs;
use agent::args::{InvalidArguments, PlanOptions};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Trip {
    name: String,
    seats: Option<f64>,
    stops: Option<Vec<Stop>>,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Stop {
    at: f64,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Login {
    user: String,
    #[arg(secret)]
    password: String,
}

#[derive(ToolArgs)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Action {
    Add { text: String },
    Remove { id: u32 },
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Notes {
    action: Action,
}

fn refused<T: DeserializeOwned + JsonSchema>(text: &str) -> InvalidArguments {
    match plan::<T>(PlanOptions::default()).parse::<T>(text) {
        Ok(_) => panic!("{text} was taken"),
        Err(report) => report,
    }
}

#[track_caller]
fn line<T: DeserializeOwned + JsonSchema>(text: &str, want: &str) {
    let report = refused::<T>(text);
    let lines: Vec<String> = report.issues().iter().map(ToString::to_string).collect();
    assert_eq!(lines, [want], "{text}");
}

#[test]
fn a_fault_of_syntax_shows_its_place() {
    let end = "; expected one complete JSON object";
    for (text, want) in [
        (
            r#"{"name": "Ann", }"#,
            "not valid JSON: trailing comma at line 1 column 17, near `e\": \"Ann\", }`",
        ),
        ("no", "plain text, not JSON, beginning with `no`"),
        ("Sure! Here it is: {}", "plain text, not JSON, beginning with `Sure! Here it is: {}`"),
        ("```json\n{\"name\": \"Ann\"}\n```", "a code fence around the JSON; leave the fence out"),
        (
            r#"{"name": "Ann"} thanks"#,
            "not valid JSON: trailing characters at line 1 column 17, near `e\": \"Ann\"} thanks`",
        ),
        (
            "{'name': 1}",
            "not valid JSON: key must be a string at line 1 column 2, near `{'name': 1}`; use double quotes around names and texts",
        ),
        (r#"{"name": "A"#, "not valid JSON: EOF while parsing a string at line 1 column 11"),
    ] {
        line::<Trip>(text, &format!("(arguments): {want}{end}"));
    }
    let deep = format!(r#"{{"name": {}{}}}"#, "[".repeat(200), "]".repeat(200));
    line::<Trip>(
        &deep,
        &format!("(arguments): nested too deeply: at most 127 levels of objects and lists{end}"),
    );
}

#[test]
fn a_fault_of_syntax_shows_nothing_of_secrets() {
    for text in [
        r#"{"user": "ann", "password": "tulip", }"#,
        "tulip is it",
        "```\ntulip\n```",
        r#"{"password": "tulip"} tulip"#,
    ] {
        let report = refused::<Login>(text);
        assert!(!format!("{report:?} {}", report.to_json()).contains("tulip"), "{report}");
    }
    line::<Login>(
        r#"{"user": "ann", "password": 1e999}"#,
        "/password: too large a number; got number (hidden)",
    );
}

#[test]
fn too_large_a_number_is_told_at_its_place() {
    line::<Trip>(r#"{"name": "Ann", "seats": 1e400}"#, "/seats: too large a number; got number 1e400");
    line::<Trip>(
        "{\"name\": \"a \\\" [{,\", \"stops\": [{\"at\": 1}, {\"at\": 2},\n {\"at\": -1e999 }]}",
        "/stops/2/at: too large a number; got number -1e999",
    );
    line::<Trip>(
        r#"{"name": "Ann", "seats": "1e400"}"#,
        "/seats: too large a number; got string \"1e400\"; expected number",
    );
}

#[test]
fn a_call_inside_a_wrapper_is_offered_without_it() {
    let offer = |report: InvalidArguments| report.corrected().map(str::to_owned);
    let ann = Some(r#"{"name":"Ann"}"#.to_owned());
    for key in ["args", "input", "arguments", "trip"] {
        assert_eq!(offer(refused::<Trip>(&format!(r#"{{"{key}": {{"name": "Ann"}}}}"#))), ann, "{key}");
    }
    assert_eq!(offer(refused::<Trip>(r#"{"args": {"nme": "Ann"}}"#)), ann);
    assert_eq!(offer(refused::<Trip>(r#"{"args": {"name": 5}}"#)).as_deref(), Some(r#"{"name":"5"}"#));
    // Both readings of this lead to the same call.
    assert_eq!(offer(refused::<Trip>(r#"{"name": {"name": "Ann"}}"#)), ann);
    assert_eq!(offer(refused::<Trip>(r#"{"names": {"name": "Ann"}}"#)), ann);
    for none in [
        r#"{"args": {"name": "Ann"}, "more": 1}"#,
        r#"{"args": {}}"#,
        r#"{"args": {"name": "Ann", "name": "Bob"}}"#,
        r#"{"args": [{"name": "Ann"}]}"#,
    ] {
        assert_eq!(offer(refused::<Trip>(none)), None, "{none}");
    }
    assert_eq!(offer(refused::<Login>(r#"{"args": {"user": "a", "password": "b"}}"#)), None);
}

#[test]
fn the_name_of_a_variant_as_a_key_is_mended() {
    let report = refused::<Notes>(r#"{"action": {"add": {"text": "t"}}}"#);
    let lines: Vec<String> = report.issues().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "/action/add: unknown parameter; `add` is a value of `kind`",
            "/action/kind: required, but missing; expected \"add\" | \"remove\"",
        ]
    );
    assert_eq!(report.corrected(), Some(r#"{"action":{"kind":"add","text":"t"}}"#));
    assert_eq!(
        refused::<Action>(r#"{"remove": {"id": 3}}"#).corrected(),
        Some(r#"{"kind":"remove","id":3}"#)
    );
    assert_eq!(
        refused::<Action>(r#"{"args": {"kind": "remove", "id": 3}}"#).corrected(),
        Some(r#"{"kind":"remove","id":3}"#)
    );
    assert_eq!(refused::<Action>(r#"{"remove": {"id": "all"}}"#).corrected(), None);
    assert_eq!(refused::<Action>(r#"{"remove": {"id": 3}, "text": "t"}"#).corrected(), None);
}

#[test]
fn null_is_told_once() {
    line::<Trip>(r#"{"name": null}"#, "/name: must not be null; expected string");
}
