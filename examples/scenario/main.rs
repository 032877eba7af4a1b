//! Plays scripted runs from a file: model replies, tools with delays and failures, steering, cancellation, approvals. Use it to
//! reproduce a bug report.
//!
//! ```sh
//! cargo run --example scenario -- FILE…
//! ```
//!
//! A file is an object with `scenarios`, each `{"id", "given"}`; README.md in this folder documents `given`. Time is virtual. The output
//! is one JSON line per scenario, in order. The line of an invalid scenario has an `error` with the problem and its location. The exit
//! code is 0, or 2 if a file cannot be read; the other files are still played.
#![expect(clippy::print_stderr, reason = "a program for the command line")]

mod given;
mod model;
mod play;
mod setup;
mod shown;
mod tools;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// An object whose values are kept as raw JSON text.
type Object = BTreeMap<String, Box<RawValue>>;

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: scenario FILE…");
        return ExitCode::from(2);
    }
    // Scenarios may have tools and listeners that panic on purpose, so panic messages are not printed.
    std::panic::set_hook(Box::new(|_| {}));
    let mut code = ExitCode::SUCCESS;
    let mut out = std::io::stdout().lock();
    for file in files {
        let scenarios = match read(&file) {
            Ok(scenarios) => scenarios,
            Err(error) => {
                eprintln!("{}: {error}", file.to_string_lossy());
                code = ExitCode::from(2);
                continue;
            }
        };
        for scenario in &scenarios {
            if writeln!(out, "{}", play(scenario)).is_err() {
                // The reader has closed the pipe, as `head` does.
                return code;
            }
        }
    }
    code
}

fn read(file: &std::ffi::OsStr) -> Result<Vec<Box<RawValue>>, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file)?;
    let mut file: Object = serde_json::from_str(&text)?;
    let scenarios = file.remove("scenarios").ok_or("an object with a list of `scenarios` is wanted")?;
    Ok(serde_json::from_str(scenarios.get())?)
}

/// Plays one scenario on its own runtime. The clock advances only when all tasks wait.
fn play(scenario: &RawValue) -> Value {
    let mut scenario: Object = match serde_json::from_str(scenario.get()) {
        Ok(scenario) => scenario,
        Err(error) => return json!({"id": null, "error": format!("a scenario is an object: {error}")}),
    };
    let id = scenario.remove("id").and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or(Value::Null);
    let given = scenario.remove("given").ok_or_else(|| "a scenario has its setup in `given`".into());
    let given = given.and_then(|given| given::Given::read(given.get()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let played = match (given, runtime) {
        (Ok(given), Ok(runtime)) => runtime.block_on(play::play(given)),
        (Err(error), _) => Err(error),
        (_, Err(error)) => Err(error.into()),
    };
    match played {
        Ok(Value::Object(mut line)) => {
            line.shift_insert(0, "id".to_owned(), id);
            Value::Object(line)
        }
        Ok(other) => other,
        Err(error) => json!({"id": id, "error": error.to_string()}),
    }
}
