//! Plays runs that are written down: scripted replies, tools with delays and faults, steering, cancelling, decisions.
//! A way to reproduce a bug report.
//!
//! ```sh
//! cargo run --example scenario -- FILE…
//! ```
//!
//! A file is an object with `scenarios`, each `{"id", "given"}`; README.md beside this file says what `given` can hold.
//! Time is virtual. One JSON line for each scenario, in order; the exit code is 0 unless a file cannot be read.
#![expect(clippy::print_stderr, reason = "a program for the command line")]

mod given;
mod model;
mod play;
mod shown;
mod tools;

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: scenario FILE…");
        return ExitCode::from(2);
    }
    let mut scenarios = Vec::new();
    for file in files {
        match read(&file) {
            Ok(read) => scenarios.extend(read),
            Err(error) => {
                eprintln!("{}: {error}", file.to_string_lossy());
                return ExitCode::from(2);
            }
        }
    }
    // A tool of a scenario that panics is part of it.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout().lock();
    for scenario in &scenarios {
        let line = play(scenario);
        if writeln!(out, "{line}").is_err() {
            // Nobody reads any more.
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::SUCCESS
}

fn read(file: &std::ffi::OsStr) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    match file.get("scenarios") {
        Some(Value::Array(scenarios)) => Ok(scenarios.clone()),
        _ => Err("not an object with a list of `scenarios`".into()),
    }
}

/// One scenario, on a runtime of its own whose clock moves only when everything waits.
fn play(scenario: &Value) -> Value {
    let id = &scenario["id"];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let played = match (given::Given::read(&scenario["given"]), runtime) {
        (Ok(given), Ok(runtime)) => runtime.block_on(play::play(given)),
        (Err(error), _) => Err(error),
        (_, Err(error)) => Err(error.into()),
    };
    match played {
        Ok(Value::Object(mut line)) => {
            line.shift_insert(0, "id".to_owned(), id.clone());
            Value::Object(line)
        }
        Ok(other) => other,
        Err(error) => json!({"id": id, "error": error.to_string()}),
    }
}
