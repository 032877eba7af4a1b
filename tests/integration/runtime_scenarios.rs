//! Runs that are written down, played as `cargo run --example scenario` plays them.

use std::path::{Path, PathBuf};

use serde_json::Value;

#[path = "../../examples/scenario/given.rs"]
mod given;
#[path = "../../examples/scenario/model.rs"]
mod model;
#[path = "../../examples/scenario/play.rs"]
mod play;
#[path = "../../examples/scenario/shown.rs"]
mod shown;
#[path = "../../examples/scenario/tools.rs"]
mod tools;

fn played(scenario: &Value) -> Value {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play::play(given::Given::read(&scenario["given"]).unwrap())).unwrap()
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

/// For developers who have recordings of other systems: a folder with `vectors/runtime/events.json`.
#[test]
fn recorded_runs_play_as_recorded() {
    let Some(shared) = std::env::var_os("AGENT_SHARED") else {
        println!("skipped: AGENT_SHARED does not say where the recordings are");
        return;
    };
    let count = assert_plays(&PathBuf::from(shared).join("vectors/runtime/events.json"));
    println!("{count} recorded runs");
}
