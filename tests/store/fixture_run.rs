//! A program that is killed: one run of a session in a file of SQLite, which goes on wherever the last process left it.
//!
//! `store-fixture DATABASE LOG` notes in LOG when a model or a tool begins and ends; `store-fixture full DATABASE` writes
//! until there is no room, and says how the store calls that.
#![allow(missing_docs, clippy::print_stdout, reason = "a program of the test suite")]

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::ScriptedModel;
use agent::model::{ModelRequest, reply};
use agent::store::{NewInvocation, SqlStore, Store as _};
use agent::{
    Assistant, RunError, ToolContext, json,
    steps::{StepKey, StepKind},
    tool, tools,
};
use tokio::time::sleep;

/// Where things are noted, line by line.
struct Log(PathBuf);

impl Log {
    fn note(&self, line: &str) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&self.0);
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.expect("the log can be written");
    }
}

async fn work(log: &Log, cx: &ToolContext) {
    log.note(&format!("start {} {} {}", cx.tool(), cx.idempotency_key(), cx.attempt()));
    sleep(Duration::from_millis(20)).await;
    log.note(&format!("done {} {} {}", cx.tool(), cx.idempotency_key(), cx.attempt()));
}

/// Looks.
#[tool(effect = "pure")]
async fn look(turn: u32, log: &Log, cx: &ToolContext) -> String {
    work(log, cx).await;
    format!("seen {turn}")
}

/// Puts.
#[tool(effect = "idempotent")]
async fn put(turn: u32, log: &Log, cx: &ToolContext) -> String {
    work(log, cx).await;
    format!("put {turn}")
}

/// Sends.
#[tool(effect = "once")]
async fn send(turn: u32, log: &Log, cx: &ToolContext) -> String {
    work(log, cx).await;
    format!("sent {turn}")
}

async fn run(database: &str, log: PathBuf) -> Result<(), Box<dyn Error>> {
    let log = Arc::new(Log(log));
    let notes = log.clone();
    let model = ScriptedModel::from_async_fn(move |request: ModelRequest| {
        let log = notes.clone();
        async move {
            let turn = 1 + request.messages.iter().filter(|message| message.as_assistant().is_some()).count();
            log.note(&format!("start model {turn}"));
            sleep(Duration::from_millis(10)).await;
            log.note(&format!("done model {turn}"));
            if turn > 3 {
                return reply().text("all done");
            }
            let args = json!({"turn": turn}).to_string();
            ["look", "put", "send"]
                .iter()
                .fold(reply().text("Well."), |reply, tool| reply.tool_call(*tool, &*args))
        }
    });
    let assistant = Assistant::builder(model)
        .tools(tools![look, put, send])
        .shared_state(log)
        .store(SqlStore::sqlite(database).await?)
        .session("kept")
        .await?;
    let output = if assistant.messages().is_empty() {
        assistant.prompt("go").await
    } else {
        assistant.continue_run().await
    };
    match output {
        // It had ended, and only its process did not.
        Ok(_) | Err(RunError::LastMessageIsAssistant) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn fill(database: &str) -> Result<(), Box<dyn Error>> {
    let store = SqlStore::sqlite(database).await?;
    for ord in 0..100_000 {
        let key = StepKey::new("run", 1, StepKind::Tool, ord);
        let text = "x".repeat(10_000);
        if let Err(error) = store.begin(NewInvocation::new(key, "c", "t", json!({"text": text}))).await {
            println!(
                "{} {}",
                error.kind().as_str(),
                store.get(&StepKey::new("run", 1, StepKind::Tool, 0)).await?.is_some()
            );
            return Ok(());
        }
    }
    Err("there was room for everything".into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [word, database] if word == "full" => fill(database).await,
        [database, log] => run(database, log.into()).await,
        _ => Err("store-fixture DATABASE LOG | store-fixture full DATABASE".into()),
    }
}
