//! Task: stream a reply to the terminal, with dimmed thinking, and show when calls start and end.
//!
//! ```sh
//! cargo run --example stream_to_terminal             # colors, if this is a terminal
//! cargo run --example stream_to_terminal | cat
//! ```
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::model::{ModelEvent, reply};
use agent::{Assistant, Event, EventKind, ScriptedModel, tool, tools};
use std::error::Error;
use std::io::{self, IsTerminal as _, Write};

/// Looks up the height of a mountain, in metres.
#[tool(read_only)]
fn height(mountain: String) -> Result<u32, String> {
    match mountain.as_str() {
        "Zugspitze" => Ok(2962),
        "Mont Blanc" => Ok(4806),
        _ => Err(format!("{mountain:?} is on no map")),
    }
}

/// Escape sequences for colors. They are empty if the output is not a terminal.
struct Style {
    dim: &'static str,
    red: &'static str,
    off: &'static str,
}

/// Writes one event. The `_` arms skip all other events. They are needed, because later versions may add events.
fn show(out: &mut impl Write, event: &Event, style: &Style) -> io::Result<()> {
    let Style { dim, red, off } = style;
    match &event.kind {
        EventKind::MessageUpdate { update, .. } => match update {
            ModelEvent::TextDelta { delta, .. } => write!(out, "{delta}")?,
            ModelEvent::ThinkingDelta { delta, .. } => write!(out, "{dim}{delta}{off}")?,
            ModelEvent::TextEnd { .. } | ModelEvent::ThinkingEnd { .. } => writeln!(out)?,
            _ => {}
        },
        EventKind::ToolExecutionStart { call, .. } => {
            writeln!(out, "{dim}> {} {}{off}", call.name, call.args.text())?;
        }
        EventKind::ToolExecutionEnd { result, duration_ms, .. } => {
            let colour = if result.outcome.is_error() { red } else { dim };
            writeln!(out, "{colour}< {} ({duration_ms} ms){off}", result.outcome.text())?;
            for c in &result.coercions {
                writeln!(out, "{dim}  {}: {} was read as {}{off}", c.path, c.from, c.to)?;
            }
        }
        _ => {}
    }
    // A delta is only a part of a line. Without a flush it would wait for the end of the line.
    out.flush()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        reply()
            .thinking("Two mountains, two calls.")
            .tool_call("height", r#"{"mountain": "Zugspitze"}"#)
            .tool_call("height", r#"{"mountain": "Mount Doom"}"#),
        reply().text("The Zugspitze is 2962 m high. Of Mount Doom nothing is known."),
    ]);
    let assistant = Assistant::builder(model).tools(tools![height]).build()?;

    let mut out = io::stdout();
    let style = if out.is_terminal() {
        Style { dim: "\x1b[2m", red: "\x1b[31m", off: "\x1b[0m" }
    } else {
        Style { dim: "", red: "", off: "" }
    };
    let mut run = assistant.prompt("How high are the Zugspitze and Mount Doom?").stream();
    while let Some(event) = run.next().await {
        show(&mut out, &event, &style)?;
    }
    let output = run.output().await?;
    println!("{} replies, {}", output.turns, output.stop);
    Ok(())
}
