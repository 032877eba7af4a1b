//! Runs that are written down, played as `cargo run --example scenario` plays them.

use std::path::Path;

use serde_json::Value;

#[path = "../../examples/scenario/given.rs"]
pub(crate) mod given;
#[path = "../../examples/scenario/model.rs"]
pub(crate) mod model;
#[path = "../../examples/scenario/play.rs"]
pub(crate) mod play;
#[path = "../../examples/scenario/setup.rs"]
pub(crate) mod setup;
#[path = "../../examples/scenario/shown.rs"]
pub(crate) mod shown;
#[path = "../../examples/scenario/tools.rs"]
mod tools;

fn played(scenario: &Value) -> Value {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play::play(given::Given::read(&scenario["given"].to_string()).unwrap())).unwrap()
}

/// Whether an event is what was written down. Where wording is free, `mentions` says what it contains.
fn fits(shown: &Value, expected: &Value) -> bool {
    expected.as_object().unwrap().iter().all(|(key, value)| match key.as_str() {
        "mentions" => {
            let text = shown["text"].as_str().unwrap_or_default();
            value.as_array().unwrap().iter().all(|word| text.contains(word.as_str().unwrap()))
        }
        _ => shown[key] == *value,
    })
}

fn assert_plays(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let scenarios = file["scenarios"].as_array().unwrap();
    for scenario in scenarios {
        let (id, line, expected) = (&scenario["id"], played(scenario), &scenario["expect"]);
        for (key, value) in expected.as_object().unwrap().iter().filter(|(key, _)| *key != "events") {
            assert_eq!(line[key], *value, "{id}: {key}");
        }
        for (key, value) in line.as_object().unwrap().iter().filter(|(key, _)| *key != "events") {
            assert_eq!(expected[key], *value, "{id}: {key} is not expected");
        }
        let (shown, wanted) = (line["events"].as_array().unwrap(), expected["events"].as_array().unwrap());
        for (shown, wanted) in shown.iter().zip(wanted) {
            assert!(fits(shown, wanted), "{id}:\nwanted {wanted}\n   got {shown}");
        }
        assert_eq!(shown.len(), wanted.len(), "{id}");
    }
    scenarios.len()
}

#[test]
fn written_down_runs_play_as_they_say() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/runs.json");
    assert!(assert_plays(&file) >= 20);
}

/// For developers who have recordings of other systems.
#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn recorded_runs_play_as_recorded() {
    let count = assert_plays(&crate::recorded::vectors("runtime/events.json"));
    println!("{count} recorded runs");
}

/// What is said of a setup that is not understood, line by line.
fn refused(given: &str) -> String {
    match given::Given::read(given) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_not_understood_is_told_by_its_place() {
    // The setup, and the place and the word that its line is to name.
    let cases = [
        (r#"{"decisions": {"c1": {"decision": "maybe"}}}"#, "/decisions/c1/decision", "maybe"),
        (r#"{"prompt": 5}"#, "/prompt", "number 5"),
        (r#"{"prompt": ["a", {"text": "b"}]}"#, "/prompt/1", "object"),
        (r#"{"max_turns": -1}"#, "/max_turns", "-1"),
        (r#"{"max_turns": 0}"#, "/max_turns", "0"),
        (r#"{"max_turns": "2"}"#, "/max_turns", "\"2\""),
        (r#"{"max_concurrency": 1.5}"#, "/max_concurrency", "1.5"),
        (r#"{"mode": "weird"}"#, "/mode", "weird"),
        (r#"{"steering_mode": "some"}"#, "/steering_mode", "some"),
        (r#"{"steering_policy": "skip"}"#, "/steering_policy", "skip_unstarted"),
        (r#"{"loop_guard": "on"}"#, "/loop_guard", "on"),
        (r#"{"loop_guard": {"refuse_at": 2, "ends_at": 3}}"#, "/loop_guard/ends_at", "end_at"),
        (r#"{"limits": {"token": 5}}"#, "/limits/token", "total_tokens"),
        (r#"{"limits": {"requests": "two"}}"#, "/limits/requests", "two"),
        (r#"{"model": [{"txt": "hi"}]}"#, "/model/0/txt", "text"),
        (r#"{"model": [{"text": "a"}, {"calls": [{"id": "1"}]}]}"#, "/model/1/calls/0/name", "missing"),
        (r#"{"model": [{"text": "a", "template": "b"}]}"#, "/model/0/template", "`text`"),
        (r#"{"model": [{"text": "a", "throws": "b"}]}"#, "/model/0/throws", "alone"),
        (r#"{"model": [{"usage": {"inputs": 1}}]}"#, "/model/0/usage/inputs", "input"),
        (r#"{"history": [{"user": "a", "assistant": "b"}]}"#, "/history/0", "one of"),
        (r#"{"history": [{}]}"#, "/history/0", "one of"),
        (r#"{"history": [{"user": "a", "text": "b"}]}"#, "/history/0/text", "tool_result"),
        (r#"{"hooks": {"before_tool_call": {"blok": true}}}"#, "/hooks/before_tool_call/blok", "block"),
        (r#"{"hooks": {"before_tool_call": {"reason": "no"}}}"#, "/hooks/before_tool_call/reason", "`block`"),
        (
            r#"{"hooks": {"before_tool_call": {"block": true, "error": "e"}}}"#,
            "/hooks/before_tool_call",
            "one of",
        ),
        (
            r#"{"hooks": {"after_tool_call": {"control": "stop"}}}"#,
            "/hooks/after_tool_call/control",
            "end_now",
        ),
        (
            r#"{"hooks": {"after_tool_call": {"error": "e", "text": "t"}}}"#,
            "/hooks/after_tool_call/error",
            "alone",
        ),
        (r#"{"decisions": {"c": {"decision": "deny", "args": {}}}}"#, "/decisions/c/args", "`allow`"),
        (r#"{"decisions": {"c": {"message": "no"}}}"#, "/decisions/c/message", "`deny`"),
        (r#"{"listener_panics_on": "tool_start"}"#, "/listener_panics_on", "tool_start"),
        (r#"{"actions": [{"do": "explode", "when": {"event": "turn_end"}}]}"#, "/actions/0/do", "explode"),
        (r#"{"actions": [{"do": "abort"}]}"#, "/actions/0/when", "missing"),
        (
            r#"{"actions": [{"do": "abort", "when": {"event": "turn_stop"}}]}"#,
            "/actions/0/when/event",
            "turn_stop",
        ),
        (
            r#"{"actions": [{"do": "abort", "when": {"event": "turn_end", "nth": 0}}]}"#,
            "/actions/0/when/nth",
            "0",
        ),
        (
            r#"{"actions": [{"do": "abort", "when": {"event": "turn_end"}, "after": 5}]}"#,
            "/actions/0/after",
            "after_ms",
        ),
        (
            r#"{"actions": [{"do": "steer", "when": {"event": "turn_end"}}]}"#,
            "/actions/0/messages",
            "missing",
        ),
        (
            r#"{"actions": [{"do": "reset", "when": {"event": "turn_end"}, "reason": "x"}]}"#,
            "/actions/0/reason",
            "unknown",
        ),
        (r#"{"promt": "hi"}"#, "/promt", "prompt"),
        (r#"{"max_turns": 1, "max_turns": 2}"#, "/max_turns", "twice"),
        (r#"["go"]"#, "(arguments)", "object"),
    ];
    let mut wrong = Vec::new();
    for (given, path, word) in cases {
        let told = refused(given);
        if !told.lines().any(|line| line.starts_with(path) && line.contains(word)) {
            wrong.push(format!("{given}\n  wanted {path} … {word}\n  got    {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every fault of a setup, not the first.
    assert_eq!(refused(r#"{"mode": "weird", "prompt": 5, "max_turns": -1}"#).lines().count(), 3);
}

#[test]
fn what_may_be_left_out_may_be_null() {
    let given = r#"{"prompt": null, "limits": null, "loop_guard": null, "tools": "double", "model": {"text": "hi"},
        "history": [{"assistant": "", "calls": [{"id": "a", "name": "double", "args": null}]}, {"tool_result": "a", "text": "2"}]}"#;
    assert_eq!(refused(given), "");
}

#[test]
fn a_tool_that_is_none_is_told_too() {
    let scenario = r#"{"tools": ["double", "dubble"]}"#;
    let given = given::Given::read(scenario).unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let error = runtime.block_on(play::play(given)).unwrap_err().to_string();
    assert!(error.starts_with("/tools/1: ") && error.contains("dubble"), "{error}");
}
