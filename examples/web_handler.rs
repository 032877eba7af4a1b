//! Task: stream the events of a run from a web handler (server-sent events, with axum).
//!
//! ```sh
//! cargo run --example web_handler --features web               # sends itself one request, prints the response and exits
//! cargo run --example web_handler --features web -- 8080       # then: curl -N -d 'Is it warm in Rome?' localhost:8080/chat
//! ```
//!
//! The response drives the run: when the browser disconnects, the run is cancelled, and the conversation stays valid.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::model::{ScriptedModel, reply};
use agent::{Assistant, EventKind, tool, tools};
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::{Router, routing::post};
use futures_util::{Stream, StreamExt as _};
use std::convert::Infallible;
use std::error::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How warm it is in a city, in degrees.
#[tool(read_only)]
fn temperature(city: String) -> Result<f64, String> {
    if city == "Rome" { Ok(21.5) } else { Err(format!("there is no thermometer in {city}")) }
}

/// One question, one stream of events. Each request has a conversation of its own; keep the fork to go on with it.
async fn chat(
    State(assistant): State<Assistant>,
    question: String,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let run = assistant.fork().run(question);
    let shown = run.filter_map(|event| async move { show(&event.kind) }).map(Ok);
    Sse::new(shown).keep_alive(KeepAlive::default())
}

/// What a browser is told. What is in here is public: results of tools and errors in full are not.
fn show(event: &EventKind) -> Option<Event> {
    match event {
        EventKind::MessageUpdate { update, .. } => {
            Some(Event::default().event("text").data(update.text_delta()?))
        }
        EventKind::ToolExecutionStart { call, .. } => Some(Event::default().event("tool").data(&call.name)),
        EventKind::AgentEnd { stop, .. } => Some(Event::default().event("end").data(stop.as_str())),
        _ => None,
    }
}

/// The same two replies for everybody; `agent::model("anthropic/…")` stands here in an application.
fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request| match request.messages.last().map(|message| message.role()) {
        Some("user") => reply().tool_call("temperature", r#"{"city": "Rome"}"#),
        _ => reply().text("It is 21.5 degrees, so yes."),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let assistant = Assistant::builder(model()).tools(tools![temperature]).build()?;
    let app = Router::new().route("/chat", post(chat)).with_state(assistant);

    let port = std::env::args().nth(1).map(|port| port.parse()).transpose()?;
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
    let address = listener.local_addr()?;
    if port.is_some() {
        println!("listening at http://{address}/chat");
        return Ok(axum::serve(listener, app).await?);
    }
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut stream = TcpStream::connect(address).await?;
    let question = "Is it warm in Rome?";
    let request = format!(
        "POST /chat HTTP/1.0\r\nhost: {address}\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{question}",
        question.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("{answer}");
    server.abort();
    Ok(())
}
