//! The agent loop as a value: the loop decides on each step, and a driver (the calling code) performs the step.
//!
//! [`AgentLoop`] uses no clock, no randomness, no IO and no asynchronous runtime. Ask the loop for the next step
//! ([`next`](AgentLoop::next)), perform the step, and record the result with the method for this kind of step. Take the events of the run
//! from [`take_event`](AgentLoop::take_event). The events are the same under every driver. The loop holds only names and plain data, so a
//! run can be stored between any two steps and continued elsewhere.
//!
//! [`steps::drive`](crate::steps::drive) drives the run of an [`Assistant`](crate::Assistant), and any run with your own
//! [`Steps`](crate::steps::Steps). To drive a run yourself, match on [`Step`]:
//!
//! ```
//! use agent::loop_core::{AgentLoop, LoopConfig, ModelReply, Step};
//! use agent::message::{AssistantMessage, Conversation, Message};
//!
//! let prompt = Message::user("Hi");
//! let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [prompt]);
//! let end = loop {
//!     match run.next() {
//!         Step::Poll { .. } => run.record_messages(Vec::new())?,
//!         Step::CallModel { messages, .. } => {
//!             assert_eq!(messages.len(), 1);
//!             run.record_reply(ModelReply::new(AssistantMessage::from("Hello!")))?;
//!         }
//!         Step::TurnEnd { .. } => run.record_turn_end(None)?,
//!         Step::Done(end) => break end,
//!         other => unreachable!("no tool was called: {other:?}"),
//!     }
//! };
//! assert!(end.is_completed());
//! assert_eq!(run.conversation().last().unwrap().text(), "Hello!");
//! # Ok::<(), agent::loop_core::RecordError>(())
//! ```

#[cfg(feature = "runtime")]
mod again;
mod agent_loop;
mod batch;
mod budget;
mod calls;
mod child;
pub(crate) mod config;
#[cfg(feature = "runtime")]
mod context;
mod continued;
pub(crate) mod end;
pub(crate) mod event;
mod event_json;
mod guard;
pub(crate) mod inputs;
mod large;

mod questions;
pub(crate) mod record;
mod recording;
#[cfg(feature = "runtime")]
mod restore;
mod retries;
mod run_state;
mod secrets;
#[cfg(feature = "runtime")]
mod signed;
pub(crate) mod state;
pub(crate) mod step;
mod waiting;

#[cfg(feature = "runtime")]
pub(crate) use again::ReadyCall;
pub use agent_loop::AgentLoop;
#[cfg(feature = "runtime")]
pub(crate) use calls::steered;
// Types that users of an assistant see are public in `agent` and `agent::run`, so they are only `pub(crate)` here.
pub(crate) use crate::run_path::RunPath;
#[cfg(feature = "durable-restate")]
pub(crate) use budget::{ReservedPart, TreeReservation};
#[cfg(feature = "runtime")]
pub(crate) use budget::{Spent, TreeBudget};
#[cfg(feature = "runtime")]
pub(crate) use child::{CHILD_HANDLE, ChildState, MAX_DEPTH, SPENT, gone_child};
pub use config::LoopConfig;
pub(crate) use config::LoopGuard;
#[cfg(feature = "runtime")]
pub(crate) use config::{SteeringPolicy, UsageLimits};
#[cfg(feature = "runtime")]
pub(crate) use config::{ToolEntry, fingerprint};
pub use end::End;
pub(crate) use end::{Limit, LimitReached, RunStop};
pub(crate) use event::{Event, EventKind};
pub(crate) use guard::Signature;
#[cfg(feature = "runtime")]
pub(crate) use inputs::Prepared;
pub use inputs::{CallDecision, CallEnd, ModelReply, Ready, RecordError};
#[cfg(feature = "runtime")]
pub(crate) use large::{cut, hint, text_bytes};
#[cfg(feature = "runtime")]
pub(crate) use record::RecordedTurn;
#[cfg(feature = "runtime")]
pub(crate) use restore::{StoredMessage, outcome_of};
pub(crate) use state::StateError;
#[cfg(feature = "runtime")]
pub(crate) use state::{RunState, read_state};
pub use step::Step;
pub(crate) use step::{ApprovalRequest, PendingCall, Queue, TurnSummary};
#[cfg(feature = "runtime")]
pub(crate) use waiting::SignedCall;

#[cfg(test)]
mod tests;
