//! The Model Context Protocol: the same tools for other programs, and other programs' tools as one's own.
//!
//! * [`Server`] (feature `mcp-server`) serves a [`ToolSet`](crate::ToolSet) over Streamable HTTP and over
//!   standard input and output.
//! * `Client` (feature `mcp-client`) is one server of others; its tools are ordinary tools.
//!
//! Both speak 2026-07-28, which has no sessions, and 2025-11-25 and older, which begin with `initialize`. The wire format is
//! that of the official `rmcp` crate, whose types appear in no signature. Where a server is mounted in an application,
//! types of `http`, `http-body`, `bytes`, `tower-service` and `tower-layer` do: that is what such applications are made of.

#[cfg(feature = "mcp-client")]
pub mod client;
mod content;
mod output;
#[cfg(feature = "mcp-server")]
pub mod server;

#[cfg(feature = "mcp-client")]
pub use client::Client;
#[cfg(feature = "mcp-server")]
pub use server::Server;
