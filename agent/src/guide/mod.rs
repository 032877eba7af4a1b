//! The guide: a page for each thing that one wants to do. Every example runs as a test, and says what comes of it.
//!
//! New here? Read [tools](mod@tools), then [what the model sees](what_the_model_sees), then [runtime]. Each takes five minutes.
//!
//! | page | tells |
//! | --- | --- |
//! | [tools](mod@tools) | how a function, a struct, an enum or a value with methods becomes something that a model can call |
//! | [arguments] | what is accepted, what is coerced, what is refused; checks of your own; secrets |
//! | [schemas] | where the schema comes from, what each provider is sent of it, schemas from elsewhere |
//! | [what the model sees](what_the_model_sees) | the exact text: descriptions, schemas, reports, results |
//! | [runtime] | prompts, events, steering, cancelling, limits, approvals, answers of a type |
//! | [providers] | models by name, keys, patience, other servers, providers of your own |
//! | [testing] | tests of tools and of agents, without a key and without a network |
//! | [mcp] | your tools for other programs, and other programs' tools for you |
//! | [durable] | records of calls, sessions that survive a crash, what runs twice and what never does |
//! | [observability] | traces, measurements, and what of a conversation may stand in them |
//! | [migration] | coming from rig, the macros of rmcp, the Vercel AI SDK or Pydantic AI: side by side |
//! | [troubleshooting] | error messages of the compiler and of runs, word by word, and what to do |
//!
//! ```
//! use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
//!
//! /// Doubles a number.
//! #[tool]
//! fn double(n: i64) -> i64 {
//!     n * 2
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::RegistryError> {
//! let registry = Registry::new(tools![double])?;
//! let (right, wrong) = (ToolCall::new("call_1", "double", r#"{"n": "21"}"#), ToolCall::new("call_2", "double", r#"{"m": 21}"#));
//! assert_eq!(registry.call(&right, &ToolContext::new()).await.outcome.text(), "42");
//! let report = registry.call(&wrong, &ToolContext::new()).await;                          // what the model reads
//! assert!(report.outcome.text().starts_with("Invalid arguments for `double`"));
//! # Ok(()) }
//! ```
//!
//! Programs to copy, one for each task, are in the folder `examples` of the repository; its README has their commands.

#![cfg_attr(
    not(all(
        feature = "anthropic",
        feature = "gemini",
        feature = "openai",
        feature = "mcp-client",
        feature = "mcp-server",
        feature = "runtime",
        feature = "store-sql",
        feature = "testing"
    )),
    allow(rustdoc::broken_intra_doc_links, reason = "pages link to what other features bring")
)]

#[doc = include_str!("tools.md")]
pub mod tools {}

#[doc = include_str!("arguments.md")]
pub mod arguments {}

#[doc = include_str!("schemas.md")]
pub mod schemas {}

#[doc = include_str!("what_the_model_sees.md")]
pub mod what_the_model_sees {}

#[doc = include_str!("runtime.md")]
pub mod runtime {}

#[cfg(any(not(doctest), all(feature = "anthropic", feature = "gemini", feature = "openai")))]
#[doc = include_str!("providers.md")]
pub mod providers {}

#[cfg(any(not(doctest), feature = "testing"))]
#[doc = include_str!("testing.md")]
pub mod testing {}

#[cfg(any(not(doctest), all(feature = "mcp-client", feature = "mcp-server")))]
#[doc = include_str!("mcp.md")]
pub mod mcp {}

#[doc = include_str!("durable.md")]
pub mod durable {}

#[doc = include_str!("observability.md")]
pub mod observability {}

#[cfg(any(not(doctest), all(feature = "anthropic", feature = "mcp-server")))]
#[doc = include_str!("migration.md")]
pub mod migration {}

#[doc = include_str!("troubleshooting.md")]
pub mod troubleshooting {}
