//! Tests for tools and for agents (feature `testing`, for dev-dependencies).
//!
//! | to | use |
//! | --- | --- |
//! | prove that a type's schema, the engine and serde agree about it | [`assert_agrees`], [`Agreement`] |
//! | see what a tool does with the slips that real models make | [`fuzz_tool`], [`fuzz_tools`] |
//! | hold the engine's own laws against a call, for logs and fuzzers | [`verify_call`] |
//! | drive an agent by replies that are known | [`ScriptedModel`](crate::ScriptedModel) |
//! | drive it by a closure | [`FunctionModel`] |
//! | try every tool of it, rightly and wrongly | [`SchemaModel`] |
//! | record what a real model says, and play it ever after | [`Cassette`] |
//! | read and assert what happened in a run | [`EventLog`] |
//! | hold a store of yours against its contract | [`assert_store`] |
//! | let time pass | [`FakeClock`], and `#[tokio::test(start_paused = true)]` for whole runs |
//! | know what a model would miss, or is shown otherwise | [`Registry::lint`](crate::Registry::lint), [`ToolManifest::drift`](crate::ToolManifest::drift), [`Registry::check_examples`](crate::Registry::check_examples), [`Registry::check_dialect`](crate::Registry::check_dialect) |
//!
//! # Testing an agent
//!
//! Four tests say most of what there is to know, none of them needs a key or a network:
//!
//! 1. **What the code does when the model does this**: a scripted model, real tools, and the sequence of events.
//! 2. **What a real model makes of the prompt**: recorded once in a [`Cassette`], played ever after. It fails when the prompt, a
//!    tool or a result has changed, and shows where.
//! 3. **What the tools do with what models send**: a [`SchemaModel`] calls each rightly, at its edges, and carelessly.
//! 4. **What a model would miss**: [`Registry::lint`](crate::Registry::lint).
//!
//! ## Sequences of events
//!
//! The model is played, the tools are real, and every event can be looked at. [`EventLog`] keeps the events of all runs, and says
//! them in lines; [`assert_sequence`](EventLog::assert_sequence) names the beginnings of lines that have to come in this
//! order, whatever stands between:
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
//! What is asserted is what happened, not how it is worded: `completed`, codes such as `invalid_arguments`, `unknown_tool`, `denied`
//! or `timeout`, and texts that are the test's own. Time is virtual where it matters: `#[tokio::test(start_paused = true)]`
//! lets a tool that sleeps an hour end at once, in the right order.
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
//! # let recording = Cassette::new(&path).record(script());
//! # Assistant::builder(recording).tools(tools![price]).build()?.prompt("What is tea?").await?;
//! // In your repository, beside the test. `AGENT_CASSETTES=record cargo test` asks the model, and writes it anew.
//! let cassette = Cassette::new(&path).open(|| Ok::<_, std::io::Error>(script()))?; // || agent::model("anthropic/…")
//! let assistant = Assistant::builder(cassette.clone()).tools(tools![price]).build()?;
//! assert_eq!(assistant.prompt("What is tea?").await?.text(), "3.50");
//! cassette.assert_played();
//!
//! // Every tool, whatever the model: none panics, and no right call is refused.
//! let model = SchemaModel::new();
//! Assistant::builder(model.clone()).tools(tools![price]).build()?.prompt("Try everything.").await?;
//! model.report().assert_safe();
//!
//! Registry::new(tools![price])?.lint().into_result()?;
//! # std::fs::remove_file(&path)?;
//! # Ok(()) }
//! # #[cfg(not(feature = "runtime"))]
//! # fn main() {}
//! ```
//!
//! Everything here is deterministic: a test that uses it fails always or never. The independent opinion about schemas is
//! that of the crate [`jsonschema`](https://docs.rs/jsonschema).

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

pub use agreement::{Agreement, AgreementReport, assert_agrees};
pub use call::verify_call;
pub use cassette::{Cassette, CassetteError, CassetteModel};
pub use clock::FakeClock;
pub use events::EventLog;
pub use fuzz::{Finding, FindingKind, FuzzReport, SlipReport, fuzz_tool, fuzz_tools};
pub use law::{Disagreement, Law};
pub use models::{CallKind, FunctionModel, SchemaCall, SchemaModel, SchemaReport};
pub use store::assert_store;
