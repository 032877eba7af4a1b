//! Tests for tools and agents. Requires the feature `testing`, which is meant for dev-dependencies.
//!
//! | to | use |
//! | --- | --- |
//! | prove that the schema of a type, argument validation and serde agree | [`assert_agrees`], [`verify_plan`] |
//! | see how a tool handles the mistakes that real models make | [`fuzz_tool`], [`fuzz_tools`] |
//! | check that the validation of one call is consistent, for logs and fuzzers | [`verify_call`] |
//! | drive an agent with known replies | [`ScriptedModel`](crate::ScriptedModel) |
//! | drive an agent with a function | [`ScriptedModel::from_fn`](crate::ScriptedModel::from_fn), [`from_async_fn`](crate::ScriptedModel::from_async_fn) |
//! | call each tool of an agent with correct and incorrect arguments | [`SchemaModel`] |
//! | record the replies of a real model and replay them | [`Cassette`] |
//! | read and assert the events of a run | [`EventLog`] |
//! | check your own store against its contract | [`assert_store`] |
//! | control time | [`FakeClock`], and `#[tokio::test(start_paused = true)]` for whole runs |
//! | find unclear definitions, and changes to what a model sees | [`Registry::lint`](crate::Registry::lint), [`ToolManifest::drift`](crate::lint::ToolManifest::drift), [`Registry::check_examples`](crate::Registry::check_examples), [`Registry::check_dialect`](crate::Registry::check_dialect) |
//!
//! # Testing an agent
//!
//! Four kinds of tests cover most of an agent. None of them needs a key or a network:
//!
//! 1. **How the code reacts to the model**: a scripted model, real tools, and the sequence of events.
//! 2. **How a real model reacts to the prompt**: recorded once in a [`Cassette`] and replayed afterwards. The test fails when the prompt,
//!    a tool or a result has changed, and shows where.
//! 3. **How the tools react to the calls of models**: a [`SchemaModel`] makes correct calls, calls at the limits of the schema, and
//!    calls with typical mistakes.
//! 4. **What a model would misunderstand**: [`Registry::lint`](crate::Registry::lint).
//!
//! ## Sequences of events
//!
//! The model is scripted, the tools are real, and every event can be inspected. [`EventLog`] keeps the events of all runs and shows them as
//! lines. [`assert_sequence`](EventLog::assert_sequence) takes the beginnings of lines that must occur in this order, with any lines
//! between:
//!
//! ```
//! use agent::testing::EventLog;
//! use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
//!
//! /// Looks up the price of an article, in cents.
//! #[tool(read_only)]
//! fn price(article: String) -> Result<u32, String> {
//!     if article == "tea" { Ok(350) } else { Err(format!("there is no {article}")) }
//! }
//!
//! # #[cfg(feature = "runtime")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new([
//!     reply().tool_call("price", r#"{"artcle": "tea"}"#),         // a slip, as models make them
//!     reply().tool_call("price", r#"{"article": "tea"}"#),
//!     reply().text("Tea is 3.50."),
//! ]);
//! let log = EventLog::new();
//! let assistant = Assistant::builder(model.clone()).tools(tools![price]).on_event(log.listener()).build()?;
//!
//! assert_eq!(assistant.prompt("What is tea?").await?.text(), "Tea is 3.50.");
//! log.assert_sequence(&["end price failed invalid_arguments", "end price completed \"350\"", "run ends: completed"]);
//! assert!(model.requests()[1].messages.last().unwrap().text().contains("did you mean \"article\"?"));
//! # Ok(()) }
//! # #[cfg(not(feature = "runtime"))]
//! # fn main() {}
//! ```
//!
//! Assert outcomes and not their wording: `completed`, codes such as `invalid_arguments`, `unknown_tool`, `denied` or `timeout`, and texts
//! of the test itself. Use virtual time where time matters: with `#[tokio::test(start_paused = true)]`, a tool that sleeps for an hour ends
//! at once, in the right order.
//!
//! ## Recorded models, and all tools at once
//!
//! ```
//! use agent::testing::{Cassette, SchemaModel};
//! use agent::{Assistant, Registry, ScriptedModel, model::reply, tool, tools};
//!
//! /// Looks up the price of an article, in cents.
//! #[tool(read_only)]
//! fn price(/** What it is called. */ article: String) -> Result<u32, String> {
//!     if article == "tea" { Ok(350) } else { Err(format!("there is no {article}")) }
//! }
//!
//! # #[cfg(feature = "runtime")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::env::temp_dir().join(format!("agent-page-{}.json", std::process::id()));
//! # let script = || ScriptedModel::new([reply().tool_call("price", r#"{"article": "tea"}"#), reply().text("3.50")]);
//! # let recording = Cassette::record(&path, script());
//! # Assistant::builder(recording).tools(tools![price]).build()?.prompt("What is tea?").await?;
//! // The cassette is a file in your repository, beside the test. `AGENT_CASSETTES=record cargo test` records the file again.
//! let cassette = Cassette::open(&path, || Ok::<_, std::io::Error>(script()))?; // || agent::model("anthropic/…")
//! let assistant = Assistant::builder(cassette.clone()).tools(tools![price]).build()?;
//! assert_eq!(assistant.prompt("What is tea?").await?.text(), "3.50");
//! cassette.assert_played();
//!
//! // `SchemaModel` calls every tool. `assert_safe` fails if a tool panics or refuses a correct call.
//! let model = SchemaModel::new();
//! Assistant::builder(model.clone()).tools(tools![price]).build()?.prompt("Try everything.").await?;
//! model.assert_safe();
//!
//! assert_eq!(Registry::new(tools![price])?.lint(), []);
//! # std::fs::remove_file(&path)?;
//! # Ok(()) }
//! # #[cfg(not(feature = "runtime"))]
//! # fn main() {}
//! ```
//!
//! Everything in this module is deterministic: a test always fails or always passes. The proofs compare argument validation with an
//! independent validator of schemas, the crate [`jsonschema`](https://docs.rs/jsonschema).

mod agreement;
mod call;
mod cassette;
mod choices;
mod clock;
mod events;
mod fuzz;
mod law;
mod models;
mod mutate;
mod pattern;
mod sample;
mod slips;
mod store;

pub use agreement::{assert_agrees, verify_plan};
pub use call::verify_call;
pub use cassette::Cassette;
pub use clock::FakeClock;
pub use events::EventLog;
pub use fuzz::{FuzzReport, fuzz_tool, fuzz_tools};
pub use models::{SchemaCall, SchemaModel};
pub use store::assert_store;
