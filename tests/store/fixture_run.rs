//! A program that is killed: one run of a session in a file of SQLite, which goes on wherever the last process left it.
//!
//! `store-fixture DATABASE LOG` notes in LOG when a model or a tool begins and ends; `store-fixture tree DATABASE LOG SESSION` does so in runs within
//! runs, which wait for decisions and answers; `store-fixture long DATABASE LOG` does so in a conversation that is compacted;
//! `store-fixture budget DATABASE LOG NAME` notes each request that a budget admits and each reply; `store-fixture full DATABASE` writes until
//! there is no room, and says how the store calls that.
#![allow(missing_docs, clippy::print_stdout, reason = "a program of the test suite")]

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::Usage;
use agent::model::{ContextRules, ModelRequest, reply};
use agent::run::Budget;
use agent::store::{InvocationRecord, SqlStore, Store as _, StoreError};
use agent::{
    Assistant, Decision, RunError, RunOutput, SuspendedRun, ToolContext, ToolError, json,
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

/// Pays.
#[tool(approval = "always")]
async fn pay(log: &Log, cx: &ToolContext) -> &'static str {
    work(log, cx).await;
    "paid"
}

/// Confirms, if a person is sure.
#[tool(asks)]
async fn confirm(log: &Log, cx: &ToolContext) -> Result<&'static str, ToolError> {
    let is_sure: bool = cx.ask("Are you sure?").await?;
    assert!(is_sure, "the fixture is sure");
    work(log, cx).await;
    Ok("confirmed")
}

/// A model that makes these calls, reply by reply, and then says that it is done.
fn planned(
    name: &'static str,
    log: &Arc<Log>,
    plan: &'static [&'static [(&'static str, &'static str)]],
) -> ScriptedModel {
    let log = log.clone();
    ScriptedModel::from_async_fn(move |request: ModelRequest| {
        let log = log.clone();
        async move {
            let turn = request.messages.iter().filter(|message| message.as_assistant().is_some()).count();
            log.note(&format!("start model {name} {turn}"));
            sleep(Duration::from_millis(5)).await;
            match plan.get(turn) {
                Some(calls) => calls
                    .iter()
                    .fold(reply().text("Well."), |reply, (tool, args)| reply.tool_call(*tool, *args)),
                None => reply().text(format!("{name} done")),
            }
        }
    })
}

/// Three runs within one another, two of them twice at once.
async fn tree(database: &str, log: PathBuf, session: &str) -> Result<(), Box<dyn Error>> {
    const TASK: &str = r#"{"task": "go"}"#;
    const TURN: &str = r#"{"turn": 1}"#;
    let log = Arc::new(Log(log));
    let leaf = planned(
        "leaf",
        &log,
        &[&[("look", TURN), ("put", TURN), ("send", TURN)], &[("pay", "{}"), ("confirm", "{}")]],
    );
    let leaf = Assistant::builder(leaf).tools(tools![look, put, send, pay, confirm]);
    let leaf = leaf.shared_state(log.clone()).build()?;
    let middle = planned("middle", &log, &[&[("leaf", TASK)]]);
    let middle = Assistant::builder(middle).tools(leaf.as_tool("leaf", "Works.")).build()?;
    let root = planned("root", &log, &[&[("middle", TASK), ("middle", TASK)]]);
    let root = Assistant::builder(root)
        .tools(middle.as_tool("middle", "Delegates."))
        .approval_key([7; 32])
        .store(open(database).await?)
        .session(session)
        .await?;
    let mut output =
        if root.messages().is_empty() { root.prompt("go").await } else { root.continue_run().await };
    loop {
        let suspended = match output {
            Ok(RunOutput { snapshot: Some(suspended), .. }) => suspended,
            Ok(_) | Err(RunError::LastMessageIsAssistant) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        log.note("suspended");
        let stored: SuspendedRun = serde_json::from_str(&serde_json::to_string(&suspended)?)?;
        let decisions = stored.decide(|_| Decision::Allow);
        let decisions = stored.questions().iter().fold(decisions, |all, question| all.accept(question, true));
        output = root.resume(&stored, decisions).await;
    }
}

/// Reads a page of the book.
#[tool(inline, read_only)]
fn read_page(number: u32) -> String {
    format!("page {number}: {}", "word ".repeat(400))
}

/// A conversation in a small window. What the model does follows from the last message alone.
async fn long(database: &str, log: PathBuf) -> Result<(), Box<dyn Error>> {
    const PAGES: u32 = 45;
    const RECORD: &str = r#"{"goal": "Read the book", "open": ["The last page"]}"#;
    let notes = Arc::new(Log(log));
    let model = ScriptedModel::from_async_fn(move |request: ModelRequest| {
        let log = notes.clone();
        async move {
            let tokens = request.messages.iter().map(|message| message.text().len() as u64 / 4 + 10).sum();
            let usage = Usage::new(tokens, 20);
            if request.tools.is_empty() {
                log.note("start summary");
                sleep(Duration::from_millis(30)).await;
                log.note("done summary");
                return reply().text(RECORD).usage(usage);
            }
            let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
            let page = last.strip_prefix("page ").and_then(|rest| rest.split_once(':')?.0.parse().ok());
            let next = page.unwrap_or(0_u32) + 1;
            log.note(&format!("start page {next}"));
            if next > PAGES {
                return reply().text("I read it.").usage(usage);
            }
            let text = format!("I go on with page {next}. ").repeat(12);
            let call = reply().text(text).usage(usage);
            call.tool_call_with_id(format!("call_{next}"), "read_page", json!({"number": next}))
        }
    });
    let assistant = Assistant::builder(model)
        .tools(tools![read_page])
        .max_turns(500)
        .request(|request| request.with_max_tokens(2_000))
        .manage_context(ContextRules::new().window(12_000))
        .store(SqlStore::sqlite(database).await?)
        .session("kept")
        .await?;
    let output = if assistant.messages().is_empty() {
        assistant.prompt("Read.").await
    } else {
        assistant.continue_run().await
    };
    match output {
        Ok(_) | Err(RunError::LastMessageIsAssistant) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file of SQLite, or Postgres by its URL.
async fn open(database: &str) -> Result<SqlStore, StoreError> {
    if database.starts_with("postgres") {
        SqlStore::connect(database).await
    } else {
        SqlStore::sqlite(database).await
    }
}

/// Eight runs at a time take of one budget, until it is spent.
async fn spend(database: &str, log: PathBuf, name: &str) -> Result<(), Box<dyn Error>> {
    let log = Arc::new(Log(log));
    let notes = log.clone();
    let model = ScriptedModel::from_async_fn(move |_| {
        let log = notes.clone();
        async move {
            log.note("sent");
            sleep(Duration::from_millis(15)).await;
            reply().text("Hello!").usage(Usage::new(10, 40))
        }
    });
    let store = open(database).await?;
    let assistant = Assistant::builder(model)
        .request(|request| request.with_max_tokens(50))
        .store(store)
        .budget(Budget::tokens(3_000).named(name).in_total())
        .build()?;
    let runs = (0..8).map(|_| {
        let (assistant, log) = (assistant.clone(), log.clone());
        tokio::spawn(async move {
            // One that was refused may fit once another is settled.
            let mut refused = 0;
            while refused < 5 {
                match assistant.fork().prompt("Hi").await {
                    Ok(_) => log.note("answered"),
                    Err(error) if error.is_limit() => {
                        refused += 1;
                        sleep(Duration::from_millis(20)).await;
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            Ok(())
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await??;
    }
    Ok(())
}

async fn fill(database: &str) -> Result<(), Box<dyn Error>> {
    let store = SqlStore::sqlite(database).await?;
    for ord in 0..100_000 {
        let key = StepKey::new("run", 1, StepKind::Tool, ord);
        let text = "x".repeat(10_000);
        if let Err(error) = store.begin(InvocationRecord::new(key, "c", "t", json!({"text": text}))).await {
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
        [word, database, log, session] if word == "tree" => tree(database, log.into(), session).await,
        [word, database, log] if word == "long" => long(database, log.into()).await,
        [word, database, log, name] if word == "budget" => spend(database, log.into(), name).await,
        [database, log] => run(database, log.into()).await,
        _ => Err("store-fixture DATABASE LOG | store-fixture full DATABASE".into()),
    }
}
