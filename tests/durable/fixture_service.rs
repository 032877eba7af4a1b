//! A service that is killed: runs whose prompt says what their model does. `.ci/restate` starts it, kills it and reads its log.
//!
//! `durable-fixture serve ADDRESS LOG`, with `cancel_running` behind it for another steering policy; `durable-fixture run INGRESS NAME PROMPT` prints the outcome;
//! `durable-fixture {steer,follow_up,cancel} INGRESS NAME TEXT`; `durable-fixture allow INGRESS NAME` and `deny INGRESS NAME REASON`
//! decide on all that waits.
//!
//! A prompt is JSON: `{"turns", "calls", "tool", "model_ms", "ms", "fails", "tasks"}`. With `tasks`, each call is a run of the assistant
//! itself, and they are the prompts of these. LOG has a line for each begin and end: milliseconds, process, what,
//! key, `start`, `done` or `cancelled`. Everything is in the prompt and the conversation: the process remembers nothing.
#![allow(missing_docs, clippy::print_stdout, reason = "a program of the test suite")]

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent::ScriptedModel;
use agent::durable::{DurableClient, PendingAsk, Service};
use agent::message::Message;
use agent::model::{ModelError, ModelErrorKind, ModelRequest, reply};
use agent::tool::QuestionInput;
use agent::{
    Assistant, Decision, ToolContext, ToolError, Value, json, run::Queue, run::SteeringPolicy, tool, tools,
};
use tokio::time::sleep;

/// Where things are noted, line by line.
struct Log(PathBuf);

impl Log {
    fn note(&self, what: &str, key: &str, how: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
        let line = format!("{now} {} {what} {key} {how}\n", std::process::id());
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&self.0);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the log can be written");
    }
}

impl Log {
    /// How often that was noted.
    fn count(&self, what: &str, key: &str, how: &str) -> u64 {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let end = format!(" {what} {key} {how}");
        text.lines().filter(|line| line.ends_with(&end)).count() as u64
    }
}

async fn work(ms: u64, log: &Log, cx: &ToolContext) -> Result<String, ToolError> {
    log.note(cx.tool(), cx.idempotency_key(), "start");
    tokio::select! {
        () = sleep(Duration::from_millis(ms)) => {}
        () = cx.cancelled() => {
            log.note(cx.tool(), cx.idempotency_key(), "cancelled");
            return Err(ToolError::new("cancelled"));
        }
    }
    log.note(cx.tool(), cx.idempotency_key(), "done");
    Ok(format!("{} is done", cx.call_id()))
}

/// May be done twice.
#[tool(effect = "idempotent", timeout = "20s")]
async fn put(ms: u64, log: &Log, cx: &ToolContext) -> Result<String, ToolError> {
    work(ms, log, cx).await
}

/// Must not be done twice.
#[tool(effect = "once", timeout = "20s")]
async fn send(ms: u64, log: &Log, cx: &ToolContext) -> Result<String, ToolError> {
    work(ms, log, cx).await
}

/// Somebody has to allow it.
#[tool(effect = "idempotent", timeout = "20s", approval = "always")]
async fn pay(ms: u64, log: &Log, cx: &ToolContext) -> Result<String, ToolError> {
    work(ms, log, cx).await
}

/// Somebody has to say how often.
#[tool(effect = "idempotent", timeout = "20s")]
async fn choose(ms: u64, log: &Log, cx: &ToolContext) -> Result<String, ToolError> {
    let times: u8 = cx.ask("How often?").await?;
    Ok(format!("{times} times: {}", work(ms, log, cx).await?))
}

/// Calls a tool so many times in so many turns, and then says what it heard.
async fn answer(log: Arc<Log>, request: ModelRequest) -> agent::model::ScriptedReply {
    let mut said = request.messages.iter().filter(|message| matches!(***message, Message::User(_)));
    let prompt = said.next().map(|message| message.text()).unwrap_or_default();
    let heard: Vec<String> = said.map(|message| message.text()).collect();
    let script: Value = serde_json::from_str(&prompt).unwrap_or_default();
    let number = |name: &str, otherwise: u64| script[name].as_u64().unwrap_or(otherwise);
    let turn = request.messages.iter().filter(|message| message.as_assistant().is_some()).count() as u64 + 1;
    let name = format!("{}/{turn}", script["name"].as_str().unwrap_or_default());
    log.note("model", &name, "start");
    if log.count("model", &name, "start") <= number("fails", 0) {
        return reply().error(ModelError::new(ModelErrorKind::Overloaded, "busy"));
    }
    sleep(Duration::from_millis(number("model_ms", 60))).await;
    log.note("model", &name, "done");
    if turn > number("turns", 1) {
        return reply().text(format!("all done; heard {}", json!(heard)));
    }
    if let Some(tasks) = script["tasks"].as_array() {
        return tasks.iter().enumerate().fold(reply(), |reply, (at, task)| {
            let mut task = task.clone();
            task["name"] = script["name"].clone();
            let args = json!({"task": task.to_string()}).to_string();
            reply.tool_call_with_id(format!("c{turn}-{at}"), "delegate", args)
        });
    }
    let (tool, ms) = (script["tool"].as_str().unwrap_or("put"), number("ms", 120));
    (0..number("calls", 1)).fold(reply().text(format!("heard {}", json!(heard))), |reply, at| {
        // Each takes a little longer than the one before.
        reply.tool_call_with_id(format!("c{turn}-{at}"), tool, json!({"ms": ms + 40 * at}).to_string())
    })
}

fn assistant(log: PathBuf, policy: SteeringPolicy) -> Result<Assistant, Box<dyn Error>> {
    let log = Arc::new(Log(log));
    let notes = log.clone();
    let model = ScriptedModel::from_async_fn(move |request| answer(notes.clone(), request));
    let builder = Assistant::builder(model).tools(tools![put, send, pay, choose]).shared_state(log);
    // Calls say the same in every turn.
    let builder = builder.deliver_all(Queue::Steering).without_loop_guard().steering_policy(policy);
    Ok(builder.self_as_tool("delegate", "Does a part of the work.").build()?)
}

async fn decide(ingress: &str, name: &str, decision: &Decision) -> Result<(), Box<dyn Error>> {
    let engine = DurableClient::new(ingress)?;
    let asks = engine.pending(name).await?;
    for ask in &asks {
        match ask {
            PendingAsk::Approval { request, .. } => engine.decide(name, request, decision.clone()).await?,
            PendingAsk::Question { question, .. } => {
                engine.answer(name, question, QuestionInput::Accept(json!(2))).await?;
            }
            _ => {}
        }
    }
    println!("{}", asks.len());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(|arg| &**arg).collect();
    match &args[..] {
        ["serve", address, log, policy @ ..] => {
            let cancels = policy == ["cancel_running"];
            let policy = if cancels { SteeringPolicy::CancelRunning } else { SteeringPolicy::AfterBatch };
            Service::new(&assistant(log.into(), policy)?)?.serve(address.parse()?).await?;
        }
        ["run", ingress, name, prompt] => {
            let engine = DurableClient::new(ingress)?;
            engine.start(*name, *prompt).await?;
            println!("{}", serde_json::to_string(&engine.outcome(name).await?)?);
        }
        ["steer", ingress, name, text] => DurableClient::new(ingress)?.steer(name, *text).await?,
        ["follow_up", ingress, name, text] => {
            DurableClient::new(ingress)?.follow_up(name, *text).await?;
        }
        ["cancel", ingress, name, reason] => {
            println!("{}", DurableClient::new(ingress)?.cancel(name, reason).await?);
        }
        ["allow", ingress, name] => decide(ingress, name, &Decision::Allow).await?,
        ["deny", ingress, name, reason] => {
            decide(ingress, name, &Decision::Deny((*reason).to_owned())).await?;
        }
        _ => return Err("durable-fixture serve|run|steer|follow_up|cancel|allow|deny …".into()),
    }
    Ok(())
}
