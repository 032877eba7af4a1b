//! Typed tool definitions for language models: put `#[tool]` on a plain function and any model can call it safely.
//!
//! ```
//! use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
//!
//! /// Adds two numbers.
//! #[tool]
//! fn add(
//!     /// First term.
//!     a: i64,
//!     /// Second term.
//!     b: i64,
//! ) -> i64 {
//!     a + b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A scripted model, as in a test. Like real models it sends text in place of a number, which
//! // is coerced and recorded.
//! let model = ScriptedModel::new([
//!     reply().tool_call("add", r#"{"a": "40", "b": 2}"#),
//!     reply().text("It is 42."),
//! ]);
//! let assistant = Assistant::builder(model).tools(tools![add]).build()?;
//! assert_eq!(assistant.prompt("What is 40 plus 2?").await?.text(), "It is 42.");
//! # Ok(()) }
//! ```
//!
//! The [guide] has a page for each task, from [the first tool](guide::tools) to [crash recovery](guide::durable). It shows the exact text
//! of [what the model sees](guide::what_the_model_sees), explains [error messages](guide::troubleshooting), and maps the terms of
//! [other libraries](guide::migration).
//!
//! # Dependencies
//!
//! The crate is not published yet. Depend on a clone by path, or on the repository by git. A program that has a `main` with
//! `#[tokio::main]` also needs tokio.
//!
//! ```toml
//! [dependencies]
//! agent = { path = "../agent/agent", features = ["anthropic"] }    # the folder `agent` inside the clone
//! # agent = { git = "https://…", features = ["anthropic"] }        # or the URL you cloned from
//! tokio = { version = "1", features = ["macros", "rt"] }
//!
//! [dev-dependencies]
//! agent = { path = "../agent/agent", features = ["testing"] }
//! ```
//!
//! # Overview
//!
//! The root of the crate has the names that most programs use. Everything else is in the module of its topic:
//!
//! | to | see |
//! | --- | --- |
//! | define tools | [`tool`](macro@tool), [`ToolArgs`](macro@ToolArgs), [`ToolOutput`](macro@ToolOutput), [`RunTool`]; at run time [`Tool`], [`ToolBuilder`]; by hand [`tool`](mod@tool) |
//! | combine tools and run calls | [`tools!`], [`ToolSet`], [`Registry`], [`ToolContext`], [`ToolResult`], [`ToolOutcome`] |
//! | check tools in a test | [`lint`] |
//! | talk to a model | [`Assistant`] (feature `runtime`), [`model`](mod@model), [`ScriptedModel`] |
//! | watch, steer and resume a run | [`run`] |
//! | change what a run does | `hooks` (feature `runtime`) |
//! | read or store a conversation | [`message`] |
//! | record calls, recover after a crash | [`store`] |
//! | learn what is accepted, coerced and reported | [`args`] |
//!
//! Each of these modules is the page of one extension:
//!
//! | your own | module |
//! | --- | --- |
//! | provider, or server of a known protocol | [`provider`] |
//! | store | [`store`] |
//! | driver or engine | [`steps`], on the loop of [`loop_core`] |
//! | schemas in the dialect of a provider | [`schema`] |
//!
//! # Features
//!
//! * `macros` (default): `#[tool]`, the derives and `tools![]`.
//! * `runtime` (default): the [`Assistant`], a thread pool for synchronous tools, and timeouts, on tokio. Without this feature, a
//!   synchronous tool runs where its call is awaited, and building a [`Registry`] fails if a tool has a timeout.
//! * `approvals-signed`: runs that wait for approval can be stored and resumed in another process.
//! * `anthropic`, `gemini`, `openai`: models of these providers, by `agent::model("anthropic/…")`; see `provider`.
//! * `http`, `sse`: the transport of these models, also usable alone.
//! * `store-sql`: records and sessions in SQLite or Postgres; see [`store`]. Needs Rust 1.94.
//! * `durable-restate`: runs on the durable execution engine Restate; see `durable`. Needs Rust 1.90.
//! * `chrono`, `jiff`, `rust_decimal`, `url`, `uuid`: types of these crates as arguments.
//! * `full-schema`: JSON Schema keywords that the library does not model are validated after coercion, instead of rejected.
//! * `mcp-server`, `mcp-client`: your tools served over the Model Context Protocol, and the tools of other servers; see `mcp`.
//! * `ui-ai-sdk`, `ui-ag-ui`: streams for front ends that use the AI SDK (`useChat`) or AG-UI; see `ui`.
//! * `studio`: a page to try tools and follow runs; see `studio`.
//! * `testing`: the module `testing`, with recorded models, event logs and property tests for your tools. For dev-dependencies.

// The macros refer to this crate by its name, also in tests of this crate.
extern crate self as agent;

#[cfg(any(feature = "http", feature = "mcp-client", feature = "durable-restate"))]
mod address;
pub mod args;
#[cfg(feature = "runtime")]
mod canonical;
#[cfg(feature = "durable-restate")]
pub mod durable;
mod error_text;
mod former;
// The guide has only documentation and doctests, so only rustdoc compiles it. The doctests need the features `macros` and `runtime`.
#[cfg(all(doc, any(not(doctest), all(feature = "macros", feature = "runtime"))))]
pub mod guide;
#[cfg(feature = "runtime")]
pub mod hooks;
mod json_hash;
pub mod lint;
pub mod loop_core;
#[cfg(any(feature = "http", feature = "mcp-client"))]
mod masking;
#[cfg(any(feature = "mcp-server", feature = "mcp-client"))]
pub mod mcp;
pub mod message;
pub mod model;
mod name_hash;
mod panics;
mod parse_error;
#[cfg(any(feature = "runtime", feature = "store-sql", feature = "testing"))]
mod private_files;
pub mod provider;
#[cfg(any(feature = "http", feature = "mcp-client", feature = "testing"))]
mod quoted;
pub mod run;
mod run_path;
#[cfg(feature = "runtime")]
mod runtime;
pub mod schema;
#[cfg(any(feature = "mcp-server", feature = "durable-restate", feature = "studio"))]
mod serve;
mod step_key;
pub mod steps;
pub mod store;
#[cfg(feature = "studio")]
pub mod studio;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tool;
#[cfg(any(feature = "http", feature = "mcp-client"))]
pub mod traffic;
#[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
pub mod ui;

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;

/// Derives the [`ToolArgs`](trait@ToolArgs) trait, with serde's `Deserialize` and schemars' `JsonSchema`.
///
#[cfg(feature = "macros")]
#[doc = include_str!("docs/tool_args.md")]
// The search of rustdoc lists these macros after all fields of the same name. The aliases match the text that users write.
#[doc(alias = "#[derive(ToolArgs)]", alias = "derive(ToolArgs)")]
pub use agent_macros::ToolArgs;
#[cfg(feature = "macros")]
#[doc = include_str!("docs/tool_output.md")]
#[doc(alias = "#[derive(ToolOutput)]", alias = "derive(ToolOutput)")]
pub use agent_macros::ToolOutput;
#[cfg(feature = "macros")]
#[doc = include_str!("docs/tool.md")]
#[doc(alias = "#[tool]")]
pub use agent_macros::tool;

/// Any JSON value: the `Value` of `serde_json`. It is used for metadata, for stored messages, and by tools made at run time.
///
/// (This is an alias rather than a re-export. With a re-export, the compiler would write the type `String` with its full path in users'
/// errors, because the re-exported enum has a variant that is also called `String`.)
///
/// ```
/// let place: agent::Value = agent::json!({"city": "Paris", "districts": 20});
/// assert_eq!(place["districts"].as_u64(), Some(20));
/// ```
pub type Value = serde_json::Value;
pub use serde_json::json;

/// Creates a provider's model by its name, with the key from the provider's environment variable.
///
/// `anthropic/…` reads `ANTHROPIC_API_KEY`, `openai/…` reads `OPENAI_API_KEY`, and `gemini/…` reads `GEMINI_API_KEY` or `GOOGLE_API_KEY`.
/// Each provider needs a feature; if the feature is off, the error names it. The name of a provider alone (`anthropic`) means the model in
/// `ANTHROPIC_DEFAULT_MODEL`. To set the key, the address or the timeout, use [`HttpModel::builder`](provider::http::HttpModel::builder).
///
/// ```no_run
/// use agent::Assistant;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(agent::model("anthropic/claude-sonnet-5")?).build()?;
/// println!("{}", assistant.prompt("Say hello.").await?.text());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns an error if the provider is unknown or its feature is off, or if no model is named. Also returns an error if the key is missing,
/// if the address is missing or invalid, or if the HTTP client cannot be set up.
#[cfg(feature = "http")]
pub fn model(name: &str) -> Result<provider::http::HttpModel, provider::BuildModelError> {
    provider::http::HttpModel::builder(name).build()
}

/// Returns an error that names the feature of the provider, because no feature of a provider is on.
///
/// With one of the features `anthropic`, `gemini` and `openai`, this function creates a `provider::http::HttpModel` by its name.
///
/// ```
/// let error = agent::model("openai/gpt-5").map(drop).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "there is no provider `openai`: switch on the feature `openai` of `agent`"
/// );
/// ```
///
/// # Errors
/// Always returns an error, because no provider is compiled in.
#[cfg(not(feature = "http"))]
pub fn model(
    name: &str,
) -> Result<impl model::Model + Clone + std::fmt::Debug + use<>, provider::BuildModelError> {
    provider::absent::model(name)
}

#[doc(hidden)]
pub use former::*;
pub use loop_core::config::UsageLimits;
pub use loop_core::end::RunStop;
pub use loop_core::event::{Event, EventKind};
pub use model::scripted::ScriptedModel;
#[cfg(feature = "runtime")]
pub use runtime::{
    Assistant, AssistantBuilder, BeforeCall, Decision, Decisions, RunError, RunOutput, SuspendedRun,
};
pub use tool::BoxFuture;
pub use tool::approval::Approval;
pub use tool::arguments::ToolArgs;
pub use tool::body::RunTool;
pub use tool::builder::ToolBuilder;
pub use tool::cancel::CancelToken;
pub use tool::context::ToolContext;
pub use tool::definition::ToolDefinition;
pub use tool::error::ToolError;
pub use tool::outcome::{ToolOutcome, ToolResult};
pub use tool::output::{Control, Json, ToolOutput};
pub use tool::parameters::Parameters;
pub use tool::progress::Progress;
pub use tool::registry::Registry;
pub use tool::set::ToolSet;
pub use tool::value::Tool;

#[cfg(feature = "runtime")]
fn default_executor() -> std::sync::Arc<dyn tool::Executor> {
    static EXECUTOR: std::sync::LazyLock<std::sync::Arc<dyn tool::Executor>> =
        std::sync::LazyLock::new(|| std::sync::Arc::new(runtime::TokioExecutor));
    EXECUTOR.clone()
}

#[cfg(not(feature = "runtime"))]
fn default_executor() -> std::sync::Arc<dyn tool::Executor> {
    std::sync::Arc::new(tool::executor::InlineExecutor)
}

fn default_clock() -> std::sync::Arc<dyn tool::Executor> {
    #[cfg(feature = "runtime")]
    let clock = std::sync::Arc::new(runtime::TokioClock::default());
    #[cfg(not(feature = "runtime"))]
    let clock = default_executor();
    clock
}

/// Turns the code blocks of the README into doctests, if all features that they use are on.
#[cfg(all(
    doctest,
    feature = "anthropic",
    feature = "durable-restate",
    feature = "macros",
    feature = "mcp-client",
    feature = "mcp-server",
    feature = "openai",
    feature = "runtime"
))]
#[doc = include_str!("../README.md")]
struct Readme;

/// Turns the code blocks of `AGENTS.md`, the page for coding agents, into doctests, if all features that they use are on.
#[cfg(all(
    doctest,
    feature = "approvals-signed",
    feature = "macros",
    feature = "mcp-client",
    feature = "mcp-server",
    feature = "runtime"
))]
#[doc = include_str!("../AGENTS.md")]
struct AgentsPage;
