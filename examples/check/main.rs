//! Validates the arguments of a tool call, and prints the coerced value or the report.
//!
//! ```sh
//! cargo run --example check -- '{"hotel": "Astoria", "nights": "2", "guests": [{"name": "Ann", "age": 31}]}'
//! echo '{"hotel": 5}' | cargo run --example check -- -
//! cargo run --example check -- --schema tool.json --policy lenient '{"n": "1"}'
//! cargo run --example check -- --schema tool.json --dialect openai-strict
//! cargo run --release --example check -- --batch < calls.jsonl > answers.jsonl
//! ```
//!
//! The exit code is 0 if the call is accepted, 1 if it is rejected, and 2 if the input cannot be used. A batch answers every line and exits
//! with 0, unless its input cannot be read.
#![expect(clippy::print_stderr, reason = "a command-line program talks on its standard streams")]

mod batch;
mod options;
mod sample;

use agent::args::Plan;
use agent::schema::{Dialect, render, restore_nulls};
use agent::{Registry, Value, json, tools};
use options::{Input, Options, Report, USAGE};
use sample::book_room;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::process::ExitCode;

/// More than any model sends as the arguments of one call, and more than any schema has.
const MOST: u64 = 4 * 1024 * 1024;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("check: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::from_args(std::env::args_os().skip(1))?;
    let arguments = match &options.input {
        Input::Batch => {
            until_closed(batch::run(io::stdin().lock(), io::stdout().lock(), options.plan))?;
            return Ok(ExitCode::SUCCESS);
        }
        Input::Schema => return show(&options),
        Input::Help => {
            until_closed(writeln!(io::stdout().lock(), "{USAGE}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        Input::Text(text) => text.clone(),
        Input::Stdin => read(io::stdin().lock(), "standard input")?,
    };
    if arguments.len() as u64 > MOST {
        return Err(format!("the input is larger than {MOST} bytes").into());
    }
    let (report, code) = check(&options, &arguments)?;
    until_closed(writeln!(io::stdout().lock(), "{report}"))?;
    Ok(ExitCode::from(code))
}

/// The schema as a provider is sent it, and what it does not say; 1 if the dialect cannot express it.
fn show(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let plan = plan(options)?;
    let rendered = render(&plan, options.dialect.unwrap_or(Dialect::Canonical));
    let report = match options.report {
        Report::Json => {
            let changes = serde_json::to_value(&rendered.changes)?;
            format!(
                "{:#}",
                json!({"dialect": rendered.dialect.as_str(), "schema": rendered.schema, "changes": changes})
            )
        }
        Report::Text => {
            let changes = rendered.changes.iter().map(|change| format!("\n{change}"));
            format!("{:#}{}", rendered.schema, changes.collect::<String>())
        }
    };
    until_closed(writeln!(io::stdout().lock(), "{report}"))?;
    Ok(ExitCode::from(u8::from(!rendered.is_expressible())))
}

/// Whoever closes the pipe has seen enough.
fn until_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// What to print, and what to end with.
fn check(options: &Options, arguments: &str) -> Result<(String, u8), Box<dyn Error>> {
    let plan = plan(options)?;
    let arguments = match options.dialect {
        Some(dialect) => restore_nulls(&plan, dialect, arguments),
        None => arguments.into(),
    };
    match (plan.parse::<Value>(&arguments), options.report) {
        (Ok(parsed), Report::Text) => {
            let mut report = format!("{:#}", parsed.value);
            for c in parsed.coercions() {
                write!(report, "\ncoerced {}: {} -> {} ({})", c.path, c.from, c.to, c.rule)?;
            }
            Ok((report, 0))
        }
        (Ok(parsed), Report::Json) => {
            let coercions = serde_json::to_value(parsed.coercions())?;
            Ok((format!("{:#}", json!({"value": parsed.value, "coercions": coercions})), 0))
        }
        (Err(refusal), Report::Text) => Ok((refusal.to_text(), 1)),
        (Err(refusal), Report::Json) => Ok((format!("{:#}", refusal.to_json()), 1)),
    }
}

/// The plan of the schema file, else that of the sample tool.
fn plan(options: &Options) -> Result<Plan, Box<dyn Error>> {
    let Some(path) = &options.schema else {
        let sample = Registry::new(tools![book_room].with_options(options.plan))?;
        return Ok(sample.fetch("book_room")?.definition().plan().clone());
    };
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(|e| named(&e))?;
    let schema: Value =
        serde_json::from_str(&read(file, &path.display().to_string())?).map_err(|e| named(&e))?;
    Ok(Plan::compile("tool", &schema, options.plan).map_err(|e| named(&e))?)
}

/// All of it, unless it is too much.
fn read(from: impl Read, name: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MOST + 1).read_to_end(&mut bytes).map_err(|e| format!("{name} cannot be read: {e}"))?;
    if bytes.len() as u64 > MOST {
        return Err(format!("{name} is larger than {MOST} bytes"));
    }
    String::from_utf8(bytes).map_err(|e| format!("{name} is not UTF-8: {e}"))
}
