//! Task: report the progress of a long-running tool, and cancel it.
//!
//! ```sh
//! cargo run --example long_job     # a progress bar, a job that is cancelled halfway, and a job that outlives the run
//! ```
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::message::ToolCall;
use agent::model::reply;
use agent::{Assistant, EventKind, Progress, ScriptedModel, ToolContext, run::RecordedTurn, tool, tools};
use std::error::Error;
use std::time::Duration;

/// Imports photos from a camera.
#[tool(timeout = "10m")]
async fn import_photos(
    /// How many there are.
    #[arg(range(1..=1000))]
    photos: u32,
    cx: &ToolContext,
) -> String {
    for done in 0..photos {
        // It goes to whoever watches the run, never to the model.
        cx.progress(Progress::new("importing").of(done, photos));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
            // What is said within the grace period (5 s) is the result of the call.
            () = cx.cancelled() => return format!("stopped after {done} of {photos} photos; they are kept"),
        }
    }
    format!("{photos} photos imported")
}

/// Prints photos; the printer goes on by itself.
#[tool(follow_up)]
fn print_photos(photos: u32) -> String {
    format!("{photos} photos are being printed")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        reply().tool_call("import_photos", r#"{"photos": 10}"#),
        reply().text("All ten are here."),
        reply().tool_call("import_photos", r#"{"photos": 1000}"#),
        reply().text("The printer is done."),
    ]);
    let assistant = Assistant::builder(model).tools(tools![import_photos, print_photos]).build()?;

    let mut run = assistant.prompt("Import the photos.").stream();
    while let Some(event) = run.next().await {
        if let EventKind::ToolExecutionUpdate { tool, partial, .. } = &event.kind {
            let share = partial.fraction().unwrap_or_default();
            println!("{tool}: {} {:3.0} %", partial.message, share * 100.0);
        }
    }
    println!("{}\n", run.output().await?.text());

    let mut run = assistant.prompt("And those of last year.").stream();
    let handle = run.handle();
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::ToolExecutionUpdate { partial, .. } if partial.done == Some(5) => {
                handle.cancel("the user changed their mind");
            }
            EventKind::ToolExecutionEnd { result, .. } => println!("{}", result.outcome.text()),
            _ => {}
        }
    }
    if let Err(error) = run.output().await {
        println!("{error}");
    }

    // What happens outside of a run is recorded; `follow_up` says that the model is asked at once.
    let printed = ToolCall::new("printer-1", "print_photos", r#"{"photos": 10}"#);
    let output = assistant.record(RecordedTurn::new().with_call(printed, "all ten are printed")).await?;
    println!("{}", output.text());
    Ok(())
}
