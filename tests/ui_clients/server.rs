//! What the clients of npm are run against by `.ci/ui`: an assistant that does what the message of the user names.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::error::Error;
use std::time::Duration;

use agent::ScriptedModel;
use agent::model::{ModelError, ModelErrorKind, ScriptedReply, reply};
use agent::ui::{UiOptions, UiProtocol, UiServer};
use agent::{Assistant, Progress, ToolArgs, ToolContext, ToolError, ToolOutcome, tool, tools};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::Html;
use axum::routing::{get, post};

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Sends money.
#[tool(approval = "always")]
fn send(to: String, amount: u64) -> String {
    format!("{amount} to {to}")
}

#[derive(ToolArgs)]
struct Seat {
    #[arg(range(1..=20))]
    coach: u8,
    window: bool,
}

/// Books a seat.
#[tool(asks)]
async fn book(cx: &ToolContext) -> Result<String, ToolError> {
    let seat: Seat = cx.ask("Which seat?").await?;
    let is_sure: bool = cx.ask("Are you sure?").await?;
    Ok(format!("coach {}, {}, {is_sure}", seat.coach, seat.window))
}

/// Signs in.
#[tool]
fn log_in(user: String, #[arg(secret)] password: String) -> String {
    let _ = password;
    format!("{user} is in")
}

/// Scrolls the page.
#[tool]
fn scroll(to: u32) -> ToolOutcome {
    let _ = to;
    ToolOutcome::Deferred { handle: "h".into() }
}

/// Reads pages.
#[tool(inline)]
fn read(cx: &ToolContext) -> String {
    cx.progress(Progress::new("reading").of(1, 2));
    "both".to_owned()
}

/// Returns much.
#[tool]
fn much() -> String {
    "x".repeat(10 << 20)
}

/// Waits until it is cancelled.
#[tool]
async fn wait(cx: &ToolContext) -> String {
    cx.cancelled().await;
    "cancelled".to_owned()
}

/// Sleeps.
#[tool]
async fn nap() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

const HOSTILE: &str =
    "</script><img src=x onerror=alert(1)>\r\n\r\ndata: [DONE]\n\n\u{2028}\u{0}\u{1b}[31m\u{202e}";

fn answer(asked: &str, results: usize) -> ScriptedReply {
    match (asked, results) {
        ("call", 0) => reply().thinking("I add.").text("Adding. ").tool_call("add", r#"{"a": "1", "b": 2}"#),
        ("refused", 0) => {
            reply().tool_call("add", r#"{"a": "x", "c": 1}"#).tool_call("nothing", r#"{"x": 1}"#)
        }
        ("approve", 0) => {
            reply().tool_call("add", r#"{"a": 1, "b": 2}"#).tool_call("send", r#"{"to": "Ann", "amount": 5}"#)
        }
        ("two", 0) => reply()
            .tool_call("send", r#"{"to": "Ann", "amount": 5}"#)
            .tool_call("send", r#"{"to": "Bo", "amount": 6}"#),
        ("question", 0) => reply().tool_call("add", r#"{"a": 1, "b": 2}"#).tool_call("book", "{}"),
        ("browser", 0) => reply().text("Look. ").tool_call("scroll", r#"{"to": 5}"#),
        ("secret", 0) => reply().tool_call("log_in", r#"{"user": "ann", "password": "hunter2"}"#),
        ("progress", 0) => reply().tool_call("read", "{}"),
        ("big", 0) => reply().tool_call("much", "{}"),
        ("sub", 0) => reply().text("I ask. ").tool_call("ask", r#"{"task": "call"}"#),
        ("sub approve", 0) => reply().tool_call("ask", r#"{"task": "approve"}"#),
        ("wait", 0) => reply().text("Waiting. ").tool_call("wait", "{}"),
        ("same ids", 0 | 1) => reply().tool_call_with_id("c", "add", r#"{"a": 1, "b": 2}"#),
        ("hostile", 0) => {
            reply().text(HOSTILE).tool_call("add", serde_json::json!({"a": HOSTILE}).to_string())
        }
        ("slow", 0) => reply().text("one").tool_call("nap", "{}"),
        ("slow", 1) => reply().text(" two").tool_call("nap", "{}"),
        ("slow", _) => reply().text(" three"),
        ("error", _) => {
            reply().text("half").error(ModelError::new(ModelErrorKind::RateLimit, "key sk-1 is spent"))
        }
        _ => reply().text(format!("done: {asked}")),
    }
}

fn model() -> ScriptedModel {
    let model = ScriptedModel::from_fn(|request| {
        let since = request.messages.iter().rev().take_while(|message| message.role() != "user");
        let results = since.filter(|message| message.role() == "tool_result").count();
        let user = request.messages.iter().rev().find(|message| message.role() == "user");
        answer(&user.map(|message| message.text()).unwrap_or_default(), results)
    });
    model.with_chunk_size(4)
}

const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><title>Chat</title><link rel="icon" href="data:,">
<div id="page"></div><script type="module" src="/page.js"></script>"#;

type Ui = State<UiServer>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tools = tools![add, send, book, log_in, scroll, read, much, wait, nap];
    let expert = Assistant::builder(model()).tools(tools![add, send]).build()?;
    let assistant = Assistant::builder(model())
        .tools(tools)
        .tools(expert.as_tool("ask", "Asks an expert."))
        .max_result_bytes(20 << 20)
        .build()?;
    let ui = UiServer::new(assistant)
        .options(UiOptions::default().show_results().run_in_browser(["scroll"]))
        .reconnect_time(Duration::from_secs(60))
        .max_runs(100)
        .single_user();
    let chat = async |State(ui): Ui, body: Bytes| ui.post(UiProtocol::AiSdk, &body).await.map(Body::new);
    let ag_ui = async |State(ui): Ui, body: Bytes| ui.post(UiProtocol::AgUi, &body).await.map(Body::new);
    let resume = async |State(ui): Ui, Path(id): Path<String>| {
        ui.attach(UiProtocol::AiSdk, &id, None).await.map(Body::new)
    };
    let follow = async |State(ui): Ui, Path(id): Path<String>| {
        ui.attach(UiProtocol::AgUi, &id, None).await.map(Body::new)
    };
    let history = async |State(ui): Ui, Path(id): Path<String>| {
        ui.messages(UiProtocol::AiSdk, &id).await.map(|list| list.to_string()).unwrap_or_default()
    };
    let cancel = async |State(ui): Ui, Path(id): Path<String>| {
        ui.run(&id).into_iter().for_each(|run| run.cancel("stopped by the user"));
    };
    // The page with `useChat`, where `.ci/ui` bundles it.
    let script = async || {
        let file = std::env::args().nth(1).ok_or(StatusCode::NOT_FOUND)?;
        let text = std::fs::read(file).map_err(|_| StatusCode::NOT_FOUND)?;
        Ok::<_, StatusCode>(([(CONTENT_TYPE, "text/javascript")], text))
    };
    let app = Router::new()
        .route("/api/chat", post(chat))
        .route("/api/chat/{id}", get(history))
        .route("/api/chat/{id}/stream", get(resume))
        .route("/api/chat/{id}/cancel", post(cancel))
        .route("/api/ag-ui", post(ag_ui))
        .route("/api/ag-ui/{id}", post(follow))
        .route("/", get(async || Html(PAGE)))
        .route("/page.js", get(script))
        .with_state(ui);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
