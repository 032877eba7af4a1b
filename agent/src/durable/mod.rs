//! Runs that survive their process: the same agent loop on a durable execution engine. The engine's journal, its list of recorded steps,
//! contains the whole run, including the secret arguments of calls, because the run continues from the journal. Protect the engine like a
//! store of passwords.
//!
//! With the feature `durable-restate`, the engine is [Restate](https://restate.dev); its SDK needs Rust 1.90. Each model reply and each
//! tool call is a step that the engine records. If a process dies, another process continues after the last recorded step. The SDK has the
//! MIT license. The server is installed separately and has the Business Source License 1.1: it is free to run for your own agents, and
//! becomes Apache-2.0 four years after each release. Without an engine, a [store](crate::store) restores a conversation after a crash.
//!
//! Serve an [`Assistant`](crate::Assistant) as a service:
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
//! Every program that reaches the address of a service can run the tools directly, past approval rules and hooks. Therefore a service
//! listens on loopback only, with two exceptions. A service with an [identity key](Service::identity_key) accepts only requests that the
//! engine signed, so it can listen anywhere. A service that [allows anonymous requests](Service::allow_anonymous) can listen anywhere, too.
//!
//! Every program that reaches the ingress of the engine can start, read and control all runs, and decide on their calls. It can also start
//! runs of sub-agents, under reserved names. Protect the ingress as you protect the application.
//!
//! Start and control runs with a [`DurableClient`]. `examples/durable` contains a service and a client; the README shows how to install the
//! server.
//!
//! # Guarantees
//!
//! * A recorded step is never repeated. A step that was running when the process died runs again, with the same
//!   [key](crate::ToolContext::idempotency_key). Calls of tools with the effect `once` (the default without hints) are the exception: such
//!   a call ends as interrupted, and the model reads that it is unknown whether the call took effect. The call ends as interrupted even if
//!   the process died between the start of the step and the first line of the tool's function.
//! * If a reply has one call, the call is a step of the run. If a reply has several calls, each call has its own invocation, and the
//!   calls run concurrently. Results are in call order.
//! * The engine makes the retries, and the client of the model makes none. A model that fails temporarily is asked at most
//!   [`Service::model_attempts`] times for a reply. An error of a tool is the result of the call.
//! * Every call and every reply has a time limit: the limit of its tool, the assistant's default, or [`Service::model_timeout`]. The
//!   service tells the engine to wait longer than the longest of them may take, so that the engine does not discard a step that is still
//!   running. Functions of the application, such as hooks, have no time limit: see [`Service::model_timeout`].
//! * Each run is a workflow of the engine, and the name of the run is the key of the workflow. A run executes once; a second start finds
//!   the existing run.
//! * An accepted message is delivered, even if it arrives just before the end of the run, because the engine decides whether the message or
//!   the end was first. The exception is a run that fails, is cancelled or reaches a limit: it receives no further messages. Messages that
//!   are sent before a run begins are delivered after its first step.
//! * [`DurableClient::cancel`] cancels the token of running tools in the process that receives the request. The run ends after its current
//!   step, or at once if it is waiting. If several processes serve runs, tools in the other processes are not interrupted.
//! * Code between steps must do the same on every replay: approval rules (`approval = when(…)`), the tools and their policies. This does
//!   not apply to hooks, because their results are recorded as separate steps. Hooks run again after a run has waited for decisions. If a
//!   call would then run with arguments that the decision does not cover, the run asks for another decision, under a new id. Serve new
//!   code that takes different steps at a new address.
//! * A call of an [assistant as a tool](crate::Assistant::as_tool) is a run of its own, under the name of the call's key. If this run
//!   waits for a decision, an input or a result, its request is also pending in the runs above it, and can be answered through them. See
//!   [the guide](crate::guide::sub_agents).
//! * Listeners receive events again on a replay; `on_metric` receives each request once. Results are not cached between calls. The
//!   `approval_key` of an assistant is not used, because the engine controls who may decide.
//! * A steering message does not end a wait for a decision. The calls are skipped after the decision. Without an engine, the message ends
//!   the wait.
//! * A run and the runs of its sub-agents count their model requests together. A request is counted when it is made, after the turn has
//!   begun and has taken the waiting messages. If a shared limit forbids the request, the run ends in this turn.
//! * The time limit of a run ([`wall_time`](crate::UsageLimits::wall_time)) counts from the first step of the run. The limit ends waits,
//!   and stops steps in the process that performs the run.
//!
//! A durable run has the features of a run in one process: hooks, approvals, [the tools of each
//! turn](crate::AssistantBuilder::prepare_tools), steering policies, [a schema for answers](crate::model::ModelRequest::output)
//! ([`Outcome::answer`]) and limits, including the time limit. A steering message, like a cancellation, stops running calls only in the
//! process that receives the message. After a batch of calls has begun, a steering message skips only calls of assistants as tools, and
//! only if their runs have not begun. The request contains the state of a prompt as JSON, under the name that the assistant
//! [registered](crate::AssistantBuilder::serialized_state) for the type of the state. Every process rebuilds the state from this JSON. An
//! assistant is refused if it uses features that no engine can provide. These are files of one machine
//! ([`spill_results`](crate::AssistantBuilder::spill_results)), a session in a store in addition to the engine's conversation, and a
//! source or state that exists in one process only ([`source`](crate::AssistantBuilder::source), and
//! [`state_per_prompt`](crate::AssistantBuilder::state_per_prompt) of a type that is not registered).

mod client;
mod deadline;
mod error;
mod inbox;
mod journal;
mod play;
#[cfg(any(test, feature = "testing"))]
mod rehearsal;
mod restate;
mod run;
mod running;
mod service;
mod steps;
mod tree_limits;

pub use client::DurableClient;
pub use error::{DurableClientError, ServiceError};
#[cfg(any(test, feature = "testing"))]
pub use rehearsal::Rehearsal;
pub use run::{Outcome, PendingAsk, RunRequest};
pub use service::Service;
