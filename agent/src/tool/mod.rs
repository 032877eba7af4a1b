//! Tools as values: their options, implementations that are written by hand, the outcomes of calls, and the errors of a set of tools.
//!
//! A [`Tool`](crate::Tool) consists of a [definition](crate::ToolDefinition) and a [body](ToolBody). The definition includes a
//! [policy](ToolPolicy). The body is the code that a call runs. Most tools need nothing from this module: `#[tool]` has all
//! [options](ToolOptions), and makes a body from a function.
//!
//! ```
//! use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
//!
//! /// Reads a note.
//! #[tool]
//! fn read_note(name: String) -> String {
//!     format!("the note {name}")
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::tool::RegistryError> {
//! // Every call of every tool runs the closure.
//! let shouted = tools![read_note].map(|tool| {
//!     Ok(tool.wrap(|body, arguments, cx| {
//!         Box::pin(async { agent::ToolOutput::text(body.call(arguments, cx).await.text().to_uppercase()).into() })
//!     }))
//! });
//! let call = ToolCall::new("1", "read_note", r#"{"name": "tea"}"#);
//! let result = Registry::new(shouted)?.call(&call, &ToolContext::new()).await;
//! assert_eq!(result.outcome.text(), "THE NOTE TEA");
//! # Ok(()) }
//! ```

// The modules of this folder:
// - a tool: `value`
// - the body of a tool (its function): `body`
// - the settings of a tool: `definition`, `options`, `policy`, `approval` and `annotations`
// - changed arguments: `hidden` adds the arguments that the model does not see, and `prepared` writes the JSON text of the arguments after
//   the function `prepare` of the tool changed them
// - for the code of tools: `context`, `state`, `source`, `cancel`, `executor` and `progress`
// - questions to a person: `asking`, `question` and `forms`
// - results: `output`, `outcome` and `error`
// - errors before a tool runs: `call_error`, `definition_error` and `problem`
// - one call: `registry` and `invoke` run the call, `current` names the tool that runs on a thread, `trace` and `capture` record the call,
//   `secrets` withholds its secrets, `finite` finds numbers that JSON cannot express, and `untrusted` marks the result
// - texts of definitions in requests: `written`
// - sets: `set` lists tools, and `combine` derives sets and searches for tools
// - tools made at run time: `builder` and `parameters`
// - for tests: `lint`, `examples`, `dialect` and `manifest`
// - for the macros: `arguments`, `glue`, `set`, `listing`, `probe`, `composed`, `constraint`, `convert`, `debug_secrets`, `schemas` and
//   `result_schema`
//
// Only `executor` uses a clock. No module of this folder uses a thread pool or a network. The trait `Executor` provides timers and threads
// for blocking work.

pub(crate) mod annotations;
pub(crate) mod approval;
pub(crate) mod arguments;
pub(crate) mod asking;
pub(crate) mod body;
pub(crate) mod builder;
pub(crate) mod call_error;
pub(crate) mod cancel;
pub(crate) mod capture;
pub(crate) mod combine;
#[cfg(feature = "macros")]
pub(crate) mod composed;
#[cfg(feature = "macros")]
pub(crate) mod constraint;
pub(crate) mod context;
#[cfg(feature = "macros")]
pub(crate) mod convert;
#[cfg(feature = "runtime")]
pub(crate) mod current;
#[cfg(feature = "macros")]
pub(crate) mod debug_secrets;
pub(crate) mod definition;
pub(crate) mod definition_error;
pub(crate) mod dialect;
pub(crate) mod error;
pub(crate) mod examples;
pub(crate) mod executor;
mod finite;
#[cfg(feature = "mcp-client")]
pub(crate) mod forms;
#[cfg(feature = "macros")]
pub(crate) mod glue;
mod hidden;
pub(crate) mod invoke;
pub(crate) mod lint;
#[cfg(feature = "macros")]
pub(crate) mod listing;
pub(crate) mod manifest;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod output;
pub(crate) mod parameters;
pub(crate) mod policy;
mod prepared;
#[cfg(feature = "macros")]
pub(crate) mod probe;
pub(crate) mod problem;
pub(crate) mod progress;
pub(crate) mod question;
pub(crate) mod registry;
#[cfg(feature = "macros")]
pub(crate) mod result_schema;
#[cfg(feature = "macros")]
pub(crate) mod schemas;
pub(crate) mod secrets;
pub(crate) mod set;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod trace;
pub(crate) mod untrusted;
pub(crate) mod value;
#[cfg(feature = "http")]
mod written;

pub use arguments::Argument;
pub use body::{AcceptedArguments, ToolBody};
pub use call_error::CallError;
pub use definition_error::DefinitionError;
pub use executor::Executor;
pub use options::ToolOptions;
pub use outcome::{IntoOutcome, OutcomeCode};
pub use policy::{Effect, ToolPolicy};
pub use problem::{RegistryError, RegistryProblem};
pub use question::{AskError, Question, QuestionInput};
pub use set::IntoTools;
pub use source::Source;
pub use state::StateKey;

/// Sent arguments by name, as the function for [`prepare`](crate::tool::ToolOptions::prepare) gets and changes them.
///
/// ```
/// use agent::tool::ArgumentMap;
///
/// let mut arguments = ArgumentMap::new();
/// arguments.insert("path".to_owned(), agent::json!("a.txt"));
/// assert_eq!(arguments["path"], "a.txt");
/// ```
pub type ArgumentMap = serde_json::Map<String, serde_json::Value>;

use std::future::Future;
use std::pin::Pin;

/// A boxed future that may be sent to another thread. Object-safe asynchronous methods return it.
///
/// ```
/// use agent::BoxFuture;
///
/// fn greet(name: &str) -> BoxFuture<'_, String> {
///     Box::pin(async move { format!("Hello, {name}!") })
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(greet("Ann").await, "Hello, Ann!");
/// # }
/// ```
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
