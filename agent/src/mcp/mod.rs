//! The Model Context Protocol: serve your tools to other programs, and use the tools of other programs as your own.
//!
//! * [`McpServer`] (feature `mcp-server`) serves a [`ToolSet`](crate::ToolSet) over Streamable HTTP and over standard input and output.
//! * `McpClient` (feature `mcp-client`) connects to an MCP server, whose tools become ordinary tools.
//!
//! Server and client support the version 2026-07-28, which has no sessions, and the versions up to 2025-11-25, in which a connection
//! begins with `initialize`. The types of the official `rmcp` crate define the wire format, and appear in no public signature. The
//! functions that mount a server in a web framework use types of `http`, `http-body`, `bytes`, `tower-service` and `tower-layer`.
//!
//! ```no_run
//! # #[cfg(all(feature = "mcp-server", feature = "mcp-client"))]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use agent::mcp::{McpClient, McpServer, ClientConfig};
//! use agent::{Registry, tool, tools};
//!
//! /// Doubles a number.
//! #[tool(read_only)]
//! fn double(n: i64) -> i64 {
//!     n * 2
//! }
//!
//! McpServer::new(tools![double]).serve(([127, 0, 0, 1], 8080)).await?;       // in one program
//! let calculator = McpClient::connect(ClientConfig::http("http://127.0.0.1:8080/mcp").name("calc")).await?;
//! let registry = Registry::new(&calculator)?;                             // in another: `calc__double`
//! # Ok(()) }
//! ```
#![cfg_attr(feature = "mcp-server", doc = "\n", doc = include_str!("../docs/mcp_serving.md"))]
#![cfg_attr(feature = "mcp-client", doc = "\n", doc = include_str!("../docs/mcp_using.md"))]

#[cfg(feature = "mcp-client")]
mod client;
mod content;
mod error_code;
mod output;
#[cfg(feature = "mcp-server")]
mod server;
mod trace_context;

#[cfg(feature = "mcp-client")]
pub use client::{ClientConfig, ConnectErrorKind, ConnectReport, McpClient, McpClientError};
pub use error_code::ErrorCode;
#[cfg(feature = "mcp-server")]
pub use server::{
    AuthRefusal, Authenticator, Bearer, Caller, McpServer, McpServerError, RequestInfo, ServerHandle,
};
