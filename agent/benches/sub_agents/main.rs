//! The memory of sub-agents. `sub_agents <how> <number>` lets a run start so many of them in one reply and prints the bytes of each, by the
//! growth of the process: `running` while each waits for its model, `waiting` when all are suspended for a decision. Their messages are a
//! prompt of one word, and a call. Without arguments a few are started, to show that it still works.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::model::reply;
use agent::{Approval, Assistant, ScriptedModel, ToolBuilder, ToolContext, Value, json, tools};
use tokio::sync::Notify;

/// The resident memory of this process, in bytes; 0 where the system does not say.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.unwrap_or_default() * 1024
}

fn run(how: &str, number: usize) -> Result<usize, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let (begun, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (waits, counter, last) = (how == "running", begun.clone(), all.clone());
    let model = ScriptedModel::from_async_fn(move |_| {
        let (counter, last) = (counter.clone(), last.clone());
        async move {
            if waits {
                if counter.fetch_add(1, Ordering::SeqCst) + 1 == number {
                    last.notify_one();
                }
                std::future::pending::<()>().await;
            }
            reply().tool_call("book", "{}")
        }
    });
    let book = ToolBuilder::new("book")
        .description("Books a place.")
        .approval(Approval::when(|_: &Value| true))
        .build(|_: Value, _: ToolContext| async { "booked" })
        .map_err(|error| text(&error))?;
    let expert = Assistant::builder(model).tools(tools![{ book }]).build().map_err(|error| text(&error))?;
    let model = ScriptedModel::from_fn(move |_| {
        (0..number).fold(reply(), |said, _| said.tool_call("ask", json!({"task": "go"}).to_string()))
    });
    let root = Assistant::builder(model).tools(expert.as_tool("ask", "Books.")).without_loop_guard();
    let many = u32::try_from(number).map_err(|error| text(&error))?;
    let root = root.max_children(many).max_concurrency(number).max_requests_in_flight(number);
    let root = root.build().map_err(|error| text(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.map_err(|error| text(&error))?.block_on(async move {
        let before = resident();
        let run = async { root.prompt("go").await };
        let bytes = if waits {
            tokio::select! {
                _ = run => return Err("the run ended".to_owned()),
                () = all.notified() => resident() - before,
            }
        } else {
            let suspended = run.await.map_err(|error| text(&error))?.snapshot.ok_or("the run ended")?;
            if suspended.requests().len() != number {
                return Err("not all of them wait".to_owned());
            }
            resident() - before
        };
        Ok(bytes / number)
    })
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [how, number] = &args[..] {
        println!("{}", run(how, number.parse().map_err(|_| "the number is not one")?)?);
        return Ok(());
    }
    run("running", 3)?;
    run("waiting", 3)?;
    Ok(())
}
