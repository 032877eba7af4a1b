//! Task: an assistant in a web page, with axum. `useChat` (AI SDK) and `HttpAgent` (AG-UI) speak to it, and `page.html` without either.
//!
//! ```sh
//! cargo run --example web_handler --features web               # sends itself one request, prints the response and exits
//! cargo run --example web_handler --features web -- 8080       # then open http://127.0.0.1:8080
//! ```
//!
//! An application has users: its handlers find out who is asking, and call `ui.scoped(&user.id)` in the place of `single_user`.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::error::Error;
use std::time::Duration;

use agent::ScriptedModel;
use agent::model::reply;
use agent::ui::{UiOptions, UiProtocol, UiServer};
use agent::{Assistant, tool, tools};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How warm it is in a city, in degrees.
#[tool(read_only)]
fn temperature(city: String) -> Result<f64, String> {
    if city == "Rome" { Ok(21.5) } else { Err(format!("there is no thermometer in {city}")) }
}

/// Books a table for dinner.
#[tool(approval = "always")]
fn book_table(city: String, #[arg(range(1..=8))] people: u8) -> String {
    format!("a table for {people} in {city}")
}

/// Only JSON is accepted. A form on another site cannot send this content type, so it cannot post in the name of the user.
fn is_json(headers: &HeaderMap) -> bool {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|sent| sent.to_str().ok());
    sent.is_some_and(|sent| sent.starts_with("application/json"))
}

async fn answer(ui: &UiServer, protocol: UiProtocol, headers: &HeaderMap, body: &Bytes) -> Response {
    if !is_json(headers) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    ui.post(protocol, body).await.map(Body::new)
}

fn app(ui: UiServer) -> Router {
    type Ui = State<UiServer>;
    let chat = async |State(ui): Ui, headers: HeaderMap, body: Bytes| {
        answer(&ui, UiProtocol::AiSdk, &headers, &body).await
    };
    let ag_ui = async |State(ui): Ui, headers: HeaderMap, body: Bytes| {
        answer(&ui, UiProtocol::AgUi, &headers, &body).await
    };
    let resume = async |State(ui): Ui, Path(id): Path<String>| {
        ui.attach(UiProtocol::AiSdk, &id, None).await.map(Body::new)
    };
    let history = async |State(ui): Ui, Path(id): Path<String>| {
        let json = [(header::CONTENT_TYPE, "application/json")];
        let messages = ui.messages(UiProtocol::AiSdk, &id).await;
        messages.map(|list| (json, list.to_string())).map_err(|_| StatusCode::NOT_FOUND)
    };
    let cancel = async |State(ui): Ui, Path(id): Path<String>| {
        ui.run(&id).into_iter().for_each(|run| run.cancel("stopped by the user"));
    };
    Router::new()
        .route("/", get(async || Html(include_str!("page.html"))))
        .route("/api/chat", post(chat))
        .route("/api/chat/{id}", get(history))
        .route("/api/chat/{id}/stream", get(resume))
        .route("/api/chat/{id}/cancel", post(cancel))
        .route("/api/ag-ui", post(ag_ui))
        .with_state(ui)
}

/// A scripted model. An application uses `agent::model("anthropic/…")` instead.
fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request| {
        let calls = request.messages.iter().rev().take_while(|message| message.role() != "user");
        match calls.filter(|message| message.role() == "tool_result").count() {
            0 => reply().text("I look.").tool_call("temperature", r#"{"city": "Rome"}"#),
            1 => reply().text("Warm!").tool_call("book_table", r#"{"city": "Rome", "people": 2}"#),
            _ => reply().text("It is 21.5 degrees, and that is all I can do."),
        }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let assistant = Assistant::builder(model()).tools(tools![temperature, book_table]).build()?;
    let ui = UiServer::new(assistant)
        .options(UiOptions::default().show_results())
        .reconnect_time(Duration::from_secs(600))
        .single_user();

    let port = std::env::args().nth(1).map(|port| port.parse()).transpose()?;
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
    let address = listener.local_addr()?;
    if port.is_some() {
        println!("listening at http://{address}");
        return Ok(axum::serve(listener, app(ui)).await?);
    }
    let server = tokio::spawn(async move { axum::serve(listener, app(ui)).await });
    let mut stream = TcpStream::connect(address).await?;
    let parts = r#"[{"type": "text", "text": "Dinner outside?"}]"#;
    let body = format!(r#"{{"id": "1", "messages": [{{"id": "m", "role": "user", "parts": {parts}}}]}}"#);
    let head = "POST /api/chat HTTP/1.0\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let request = format!("{head}host: {address}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("{answer}");
    server.abort();
    Ok(())
}
