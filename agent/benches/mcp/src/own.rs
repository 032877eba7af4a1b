//! Our server, with its checks and limits. Usage: `mcp-own direct FORM CALLS|http|stdio`.

mod served;

use agent::mcp::McpServer;
use agent::{tool, tools};

/// Does nothing.
#[tool(inline)]
fn noop(text: String, times: u32) -> String {
    let _ = times;
    text
}

/// Returns what the process has used.
#[tool(inline)]
fn usage() -> String {
    served::usage()
}

fn main() -> served::Outcome<()> {
    let server = McpServer::new(tools![noop, usage]);
    match served::mode()? {
        served::Mode::Direct(calls, form) => served::direct(|| Ok(server.into_service()?), calls, &form),
        served::Mode::Http => {
            served::http(|| Ok(axum::Router::new().nest_service("/mcp", server.into_service()?)))
        }
        served::Mode::Stdio => served::runtime()?.block_on(async { Ok(server.serve_stdio().await?) }),
    }
}
