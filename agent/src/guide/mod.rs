//! The guide: one page per topic. Every example runs as a test and asserts its result.
//!
//! New here? Read [tools](mod@tools), [what the model sees](what_the_model_sees) and [runtime], in this order. Each takes five minutes.
//!
//! | page | contents |
//! | --- | --- |
//! | [tools](mod@tools) | how a function, a struct, an enum or an impl block becomes a tool |
//! | [arguments] | what is accepted, coerced and rejected; your own checks; secrets |
//! | [schemas] | where the schema comes from, what each provider receives, your own JSON Schemas |
//! | [what the model sees](what_the_model_sees) | the exact text: descriptions, schemas, reports, results |
//! | [runtime] | prompts, events, steering, cancellation, limits, hooks, approvals, structured output |
//! | [sub-agents](sub_agents) | assistants as tools: what is shared, how they wait, hand-off |
//! | [questions] | tools that ask a person: in place, or by a run that waits |
//! | [providers] | models by name, keys, timeouts, retries, other servers, your own providers |
//! | [context] | another model after a failure, your own rate limits, what fills the context window |
//! | [testing] | testing tools and agents without a key or a network |
//! | [screens] | runs in a web page: the AI SDK, AG-UI, and what each of them loses |
//! | [studio] | trying tools and following runs in a browser, on your own machine |
//! | [mcp] | serving your tools over MCP, and using the tools of MCP servers |
//! | [durable] | records of calls, sessions, crash recovery, what may run twice |
//! | [observability] | traces, metrics, events, and how much of a conversation they contain |
//! | [migration] | coming from rig, the macros of rmcp, the Vercel AI SDK or Pydantic AI: side by side |
//! | [troubleshooting] | error messages, at compile time and at run time, and what to do about them |
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
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::tool::RegistryError> {
//! let registry = Registry::new(tools![double])?;
//! let (right, wrong) = (
//!     ToolCall::new("call_1", "double", r#"{"n": "21"}"#),
//!     ToolCall::new("call_2", "double", r#"{"m": 21}"#),
//! );
//! assert_eq!(registry.call(&right, &ToolContext::new()).await.outcome.text(), "42");
//! let report = registry.call(&wrong, &ToolContext::new()).await;  // what the model reads
//! assert!(report.outcome.text().starts_with("Invalid arguments for `double`"));
//! # Ok(()) }
//! ```
//!
//! The folder `examples` of the repository has a program for each task; the repository's README lists them with their commands.

#![cfg_attr(
    not(all(
        feature = "anthropic",
        feature = "gemini",
        feature = "openai",
        feature = "mcp-client",
        feature = "mcp-server",
        feature = "runtime",
        feature = "store-sql",
        feature = "studio",
        feature = "testing",
        feature = "ui-ag-ui",
        feature = "ui-ai-sdk"
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

#[doc = include_str!("sub_agents.md")]
pub mod sub_agents {}

#[doc = include_str!("questions.md")]
pub mod questions {}

#[cfg(any(not(doctest), all(feature = "anthropic", feature = "gemini", feature = "openai")))]
#[doc = include_str!("providers.md")]
pub mod providers {}

#[doc = include_str!("context.md")]
pub mod context {}

#[cfg(any(not(doctest), feature = "testing"))]
#[doc = include_str!("testing.md")]
pub mod testing {}

#[cfg(any(not(doctest), all(feature = "ui-ag-ui", feature = "ui-ai-sdk")))]
#[doc = include_str!("screens.md")]
pub mod screens {}

#[cfg(any(not(doctest), all(feature = "http", feature = "studio")))]
#[doc = include_str!("studio.md")]
pub mod studio {}

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
