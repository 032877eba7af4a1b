//! Runs that survive their process: the same loop on a durable execution engine.
//!
//! Feature `durable-restate`: the engine is [Restate](https://restate.dev), its SDK needs Rust 1.90. Each model reply and each tool
//! call is a step that the engine remembers; a process that dies is followed by another that goes on behind the last of them.
//! The SDK is MIT; the server, which is installed apart, is under the Business Source License 1.1 (free to run for one's own
//! agents, Apache-2.0 four years after each release). Without any of it, a [store](crate::store) carries a conversation over a crash
//! on one machine.
//!
//! A service, with the [`Assistant`](crate::Assistant) that you have:
//!
//! ```no_run
//! use agent::durable::Service;
//! use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
//!
//! /// Cancels an order.
//! #[tool(effect = "idempotent", timeout = "30s")]
//! fn cancel_order(order: u32) -> String {
//!     format!("order {order} is cancelled")
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new([reply().tool_call("cancel_order", r#"{"order": 7}"#), reply().text("Done.")]);
//! let assistant = Assistant::builder(model).tools(tools![cancel_order]).build()?;
//! Service::new(&assistant)?.serve("127.0.0.1:9080".parse()?).await?;
//! # Ok(()) }
//! ```
//!
//! and whoever starts runs and talks to them: [`Client`]. `examples/durable` is both; the README says how to install the server.
//!
//! # What holds
//!
//! * A step that was remembered is never done again. One that was under way when the process died is done again, with the same
//!   [key](crate::ToolContext::idempotency_key): at least once. A tool with the effect `once` (the default) is not: its call ends as
//!   interrupted, and the model is told that nobody knows whether it took effect. That holds too where the process died between the
//!   begin of the step and the body's first line.
//! * One call of a reply is a step of the run; several are invocations of their own, side by side. Results are in call order.
//! * Attempts are the engine's: a model that fails for a moment is asked again, so often at most as [`Service::model_attempts`] says,
//!   and its client does not try again by itself. What a tool does wrong is its result.
//! * Every step has a time limit: that of its tool, or the assistant's for all, or [`Service::model_timeout`]. The engine is told to wait
//!   longer than that, so that a long step is not thrown away at its end.
//! * Each run is a workflow of the engine whose key is its name: it runs once, and starting it again finds it.
//! * A message that was taken is heard, however late: the engine tells the run that messages came, and decides which came first, the
//!   message or the run's end. A run that fails, is cancelled or reaches a limit hears nothing more. What is said before a run begins is
//!   heard behind its first step.
//! * [`DurableRun::cancel`] fires the token of tools that run in the process that is asked, and ends the run after their step, or when it
//!   waits, at once. Where several processes serve, tools in the others come to their end.
//! * What happens between steps has to be the same on every replay: approval rules (`approval = when(…)`), the tools and their
//!   policies. Hooks are steps of their own, and may do what they like. New code that would take another way is served at an
//!   address of its own.
//! * Listeners hear of events again on a replay. Results are not cached between calls, requests are not told to `on_metric`, and an
//!   approval key is not used: who may decide is the engine's to guard.
//!
//! Unlike on one machine there is no steering into a running batch, no choice of tools for each turn, no spilling of results, no
//! limit of wall time: an assistant that has them is refused.

mod client;
mod error;
mod inbox;
mod journal;
#[cfg(any(test, feature = "testing"))]
mod rehearsal;
mod restate;
mod run;
mod running;
mod service;
mod steps;

pub use client::{Client, DurableRun};
pub use error::{ClientError, ServeError, ServiceError};
#[cfg(any(test, feature = "testing"))]
pub use rehearsal::{Crash, Rehearsal};
pub use run::{Outcome, PendingAsk, RunRequest};
pub use service::Service;
