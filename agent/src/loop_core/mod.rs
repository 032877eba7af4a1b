//! The agent loop as a value: the loop decides, and a driver acts.
//!
//! [`AgentLoop`] uses no clock, no randomness, no IO and no asynchronous runtime. Ask it what has to happen next
//! ([`next`](AgentLoop::next)), do that, and record the result with the method for this kind of step. Take the events of the run from
//! [`take_event`](AgentLoop::take_event); they are the same under every driver. The loop holds only names and plain data, so a run can be
//! stored between any two steps and continued elsewhere.
//!
//! [`steps::drive`](crate::steps::drive) drives a run, that of an [`Assistant`](crate::Assistant) and that of your own
//! [`Steps`](crate::steps::Steps). Without it, match on [`Effect`]:
//!
//! ```
//! use agent::loop_core::{AgentLoop, Effect, LoopConfig, Reply, Verdict};
//! use agent::message::{AssistantMessage, Conversation, Message};
//!
//! let prompt = Message::user("Hi");
//! let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [prompt]);
//! let end = loop {
//!     match run.next() {
//!         Effect::Poll { .. } => run.record_messages(Vec::new())?,
//!         Effect::CallModel { messages, .. } => {
//!             assert_eq!(messages.len(), 1);
//!             run.record_reply(Reply::new(AssistantMessage::from("Hello!")))?;
//!         }
//!         Effect::TurnEnd { .. } => run.record_turn_end(Verdict::default())?,
//!         Effect::Done(end) => break end,
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
mod calls;
mod config;
mod effect;
mod end;
mod event;
mod event_json;
mod guard;
mod inputs;
mod large;
mod record;
mod recording;
#[cfg(feature = "runtime")]
mod restore;
mod retries;
mod run_state;
mod secrets;
#[cfg(feature = "runtime")]
mod signed;
mod state;
mod waiting;

#[cfg(feature = "runtime")]
pub(crate) use again::ReadyCall;
pub use agent_loop::AgentLoop;
#[cfg(feature = "runtime")]
pub(crate) use calls::steered;
pub use config::{LoopConfig, LoopGuard, SteeringPolicy, ToolEntry, UsageLimits};
pub use effect::{ApprovalRequest, Effect, PendingCall, Queue, TurnSummary};
pub use end::{End, Limit, LimitReached, RunStop};
pub use event::{ApprovalDecision, Event, EventKind};
pub use guard::Signature;
pub use inputs::{CallCoercions, CallEnd, Decided, Prepared, Ready, RecordError, Reply, Verdict};
#[cfg(feature = "runtime")]
pub(crate) use large::{cut, hint, text_bytes};
pub use record::RecordedTurn;
#[cfg(feature = "runtime")]
pub(crate) use restore::{StoredMessage, outcome_of};
pub use state::StateError;
#[cfg(feature = "runtime")]
pub(crate) use state::{RunState, read_state};
#[cfg(feature = "runtime")]
pub(crate) use waiting::SignedCall;

#[cfg(test)]
mod tests;
