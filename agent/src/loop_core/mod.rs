//! The agent loop as a value: the loop decides, and a driver acts.
//!
//! [`AgentLoop`] uses no clock, no randomness, no IO and no asynchronous runtime. Ask it what has to happen next
//! ([`next`](AgentLoop::next)), do that, and hand the answer back ([`answer`](AgentLoop::answer)). Take the events of the run from
//! [`take_event`](AgentLoop::take_event); they are the same under every driver. The loop holds only names and plain data, so a run can be
//! stored between any two answers and continued elsewhere.
//!
//! [`Assistant`](crate::Assistant) is the driver on tokio. A driver of your own matches on [`Effect`]:
//!
//! ```
//! use agent::loop_core::{AgentLoop, Answer, Effect, LoopConfig, Reply, Verdict};
//! use agent::message::{AssistantMessage, Conversation, Message};
//!
//! let prompt = Message::user("Hi");
//! let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [prompt]);
//! let end = loop {
//!     let answer = match run.next() {
//!         Effect::Poll { .. } => Answer::Messages(Vec::new()),
//!         Effect::CallModel { messages, .. } => {
//!             assert_eq!(messages.len(), 1);
//!             Answer::Reply(Reply::new(AssistantMessage::from("Hello!")))
//!         }
//!         Effect::TurnEnd { .. } => Answer::Verdict(Verdict::default()),
//!         Effect::Done(end) => break end,
//!         other => unreachable!("no tool was called: {other:?}"),
//!     };
//!     run.answer(answer)?;
//! };
//! assert!(end.is_completed());
//! assert_eq!(run.conversation().last().unwrap().text(), "Hello!");
//! # Ok::<(), agent::loop_core::AnswerError>(())
//! ```

#[cfg(feature = "runtime")]
mod again;
mod agent_loop;
mod answer;
mod batch;
mod calls;
mod config;
mod effect;
mod end;
mod event;
mod event_json;
mod guard;
mod large;
mod live;
mod record;
#[cfg(feature = "runtime")]
mod restore;
mod retries;
mod secrets;
#[cfg(feature = "runtime")]
mod signed;
mod waiting;

#[cfg(feature = "runtime")]
pub(crate) use again::ReadyCall;
pub use agent_loop::AgentLoop;
pub use answer::{
    Answer, AnswerError, CallCoercions, CallEnd, Decided, Note, Prepared, Ready, Reply, Verdict,
};
pub use config::{LoopConfig, LoopGuard, SteeringPolicy, ToolEntry, UsageLimits};
pub use effect::{ApprovalRequest, Effect, PendingCall, Queue, TurnSummary};
pub use end::{End, Limit, LimitReached, RunStop};
pub use event::{ApprovalDecision, Event, EventKind};
pub use guard::Signature;
#[cfg(feature = "runtime")]
pub(crate) use large::{cut, hint, text_bytes};
pub use record::RecordedTurn;
#[cfg(feature = "runtime")]
pub(crate) use restore::{StoredMessage, outcome_of};
#[cfg(feature = "runtime")]
pub(crate) use waiting::CheckedCall;
#[cfg(feature = "durable-restate")]
pub(crate) use waiting::request_id;

#[cfg(test)]
mod tests;
