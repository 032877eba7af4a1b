//! An assistant with the tools of an MCP server; or a look at any server: its tools, and one call.
//!
//! ```sh
//! cargo build --example mcp_server --features mcp-server
//! cargo run --example mcp_client --features mcp-client                                  # starts the server itself
//! cargo run --example mcp_client --features mcp-client -- http://127.0.0.1:8080/mcp     # uses a running server
//! cargo run --example mcp_client --features mcp-client -- npx -y some-mcp-server        # lists the tools of another server
//! cargo run --example mcp_client --features mcp-client -- --call add '{"a": 1, "b": 2}' npx -y some-mcp-server
//! ```
//!
//! A scripted model takes the model's place, so no key and no network are needed.

use agent::mcp::{ClientConfig, McpClient};
use agent::message::ToolCall;
use agent::model::reply;
use agent::{Assistant, EventKind, Registry, ScriptedModel, ToolContext};
use std::error::Error;
use std::io::{self, Write as _};

/// Reads what to connect to: a URL or a command. Without arguments, the example `mcp_server` is started.
fn config(mut args: impl Iterator<Item = String>) -> Result<ClientConfig, Box<dyn Error>> {
    match args.next() {
        Some(url) if url.starts_with("http") => Ok(ClientConfig::http(url)),
        Some(program) => Ok(ClientConfig::command(program).args(args)),
        None => Ok(ClientConfig::command(std::env::current_exe()?.with_file_name("mcp_server"))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).peekable();
    let call = match args.next_if(|arg| arg == "--call") {
        Some(_) => Some(args.next().zip(args.next()).ok_or("--call wants a tool and its arguments as JSON")?),
        None => None,
    };
    let client = McpClient::connect(config(args)?).await?;
    let report = client.report().await;
    let is_hotels =
        ["find_hotels", "book_room"].iter().all(|own| report.tools.iter().any(|(tool, _)| tool == own));
    let done = match call {
        Some((tool, arguments)) => call_once(&client, &tool, &arguments).await,
        None if is_hotels => book(&client).await,
        None => list(&client),
    };
    client.close().await;
    match done {
        // The reader has closed the pipe, as `head` does. This is not an error.
        Err(error)
            if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// Prints the name, the summary and the parameters of each tool.
fn list(client: &McpClient) -> Result<(), Box<dyn Error>> {
    for tool in Registry::new(client)?.definitions().iter() {
        let summary = tool.description().lines().next().unwrap_or_default();
        writeln!(io::stdout(), "{}: {summary}\n  {}", tool.name(), tool.parameters())?;
    }
    Ok(())
}

/// Calls one tool, by its name with or without the name of the server. The arguments are checked here, before anything is sent.
async fn call_once(client: &McpClient, tool: &str, arguments: &str) -> Result<(), Box<dyn Error>> {
    let shown = client.report().await.tools.into_iter().find(|(own, _)| own == tool);
    let call = ToolCall::new("call_1", shown.map_or(tool.to_owned(), |(_, shown)| shown), arguments);
    let outcome = Registry::new(client)?.call(&call, &ToolContext::default()).await.outcome;
    if outcome.is_error() {
        return Err(outcome.text().into());
    }
    Ok(writeln!(io::stdout(), "{}", outcome.text())?)
}

/// Books a hotel. The scripted model makes two mistakes: it sends a number as text, which is coerced, and an empty guest list, which is
/// reported to the model.
async fn book(client: &McpClient) -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{}\n", client.report().await)?;
    let model = ScriptedModel::new([
        reply().tool_call("hotels__find_hotels", r#"{"city": "Paris", "stars": "4"}"#),
        reply().tool_call("hotels__book_room", r#"{"hotel": "Lutetia", "nights": 2, "guests": []}"#),
        reply().tool_call("hotels__book_room", r#"{"hotel": "Lutetia", "nights": 2, "guests": ["Ann"]}"#),
        reply().text("Two nights at the Lutetia are booked."),
    ]);
    let assistant = Assistant::builder(model)
        .mcp("hotels", client)
        .on_event(|event| {
            if let EventKind::ToolExecutionEnd { result, .. } = &event.kind {
                let _ = writeln!(io::stdout(), "{}: {}\n", result.tool, result.outcome.text());
            }
        })
        .build()?;
    Ok(writeln!(io::stdout(), "{}", assistant.prompt("Book me a good hotel in Paris.").await?.text())?)
}
