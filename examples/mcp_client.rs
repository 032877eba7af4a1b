//! An assistant with the tools of an MCP server.
//!
//! ```sh
//! cargo build --example mcp_server --features mcp-server
//! cargo run --example mcp_client --features mcp-client                                  # starts the server itself
//! cargo run --example mcp_client --features mcp-client -- http://127.0.0.1:8080/mcp     # uses a running server
//! cargo run --example mcp_client --features mcp-client -- npx -y some-mcp-server        # starts another server
//! ```
//!
//! A scripted model takes the model's place, so no key and no network are needed.
#![expect(clippy::print_stdout, reason = "the trace is what this example is for")]

use agent::mcp::{Client, client::ClientConfig};
use agent::model::{ScriptedModel, reply};
use agent::{Assistant, EventKind};
use std::error::Error;

/// What is to be connected to: a URL, a command, or the example beside this one.
fn config() -> Result<ClientConfig, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    match args.next() {
        Some(url) if url.starts_with("http") => Ok(ClientConfig::http(url)),
        Some(program) => Ok(ClientConfig::command(program).args(args)),
        None => Ok(ClientConfig::command(std::env::current_exe()?.with_file_name("mcp_server"))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::connect(config()?).await?;
    println!("{}\n", client.report().await);

    // The model errs as models do: text for a number is coerced, a guest too few is told.
    let model = ScriptedModel::new([
        reply().tool_call("hotels__find_hotels", r#"{"city": "Paris", "stars": "4"}"#),
        reply().tool_call("hotels__book_room", r#"{"hotel": "Lutetia", "nights": 2, "guests": []}"#),
        reply().tool_call("hotels__book_room", r#"{"hotel": "Lutetia", "nights": 2, "guests": ["Ann"]}"#),
        reply().text("Two nights at the Lutetia are booked."),
    ]);
    let assistant = Assistant::builder(model)
        .mcp("hotels", &client)
        .on_event(|event| {
            if let EventKind::ToolExecutionEnd { result, .. } = &event.kind {
                println!("{}: {}\n", result.tool, result.outcome.text());
            }
        })
        .build()?;
    println!("{}", assistant.prompt("Book me a good hotel in Paris.").await?.text());
    client.close().await;
    Ok(())
}
