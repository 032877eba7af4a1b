//! The interface of an engine: it records the steps of a run.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PendingAsk;
use crate::loop_core::{CallEnd, Queue};
use crate::message::{Message, ToolCall};
use crate::steps::StepError;
use crate::{BoxFuture, StepKey};

/// The journal of a run, or of one call, in an engine. Steps are taken one at a time: the interface cannot ask for two at once, so the
/// order of steps never depends on chance.
pub(super) trait Journal: Send + Sync {
    /// Does the work and records its result. On a replay, the recorded result is returned and the work is not done. Every replay must take
    /// the same steps in the same order.
    fn run<T: Kept>(&self, name: String, tries: Tries, work: Work<T>) -> BoxFuture<'_, Result<T, StepError>>;
}

/// The journal of a run, which receives messages from outside.
pub(super) trait RunJournal: Journal {
    /// Runs calls concurrently, each with a journal of its own under the key of the call. Returns the ends in call order, with `None` for a
    /// call that the engine lost.
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<ToolsEnd, StepError>>;

    /// Returns what was sent to the run by the end of its last step, as far as that is known without a request; each item once. At the same
    /// place of a replay, it returns the same. Before the first step, it returns nothing.
    fn hear(&self) -> BoxFuture<'_, Result<Heard, StepError>>;

    /// Takes messages for the run.
    fn drain(&self, take: Take) -> BoxFuture<'_, Result<Drained, StepError>>;

    /// Closes the run to messages and returns true. If something was sent before, the run stays open to receive it, and this returns false.
    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>>;

    /// Waits for answers from outside.
    fn wait(&self, asks: Vec<PendingAsk>, within: Duration) -> BoxFuture<'_, Result<Waited, StepError>>;
}

/// Data that can be recorded.
pub(super) trait Kept: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Kept for T {}

/// The work of a step, which owns what it needs.
pub(super) type Work<T> = BoxFuture<'static, Result<T, Again>>;

/// A failure of the work that another attempt may overcome.
#[derive(Debug)]
pub(super) struct Again(pub(super) String);

/// How often the engine tries, and the pause after the first attempt. Each pause is twice as long as the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    pub(super) most: u32,
    pub(super) pause: Duration,
}

impl Tries {
    /// For work that returns an answer whatever happens.
    pub(super) const ONE: Self = Self { most: 1, pause: Duration::from_millis(100) };
}

/// The result of a step.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stepped<T> {
    pub(super) value: T,
    /// The reason, if the run was cancelled by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<Arc<str>>,
}

/// One call, for a journal of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ToolRequest {
    pub(super) key: StepKey,
    pub(super) call: ToolCall,
    /// The model's text beside the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
}

/// The ends of calls.
#[derive(Debug)]
pub(super) struct ToolsEnd {
    pub(super) ends: Vec<Option<Stepped<CallEnd>>>,
    pub(super) stop: Option<Arc<str>>,
}

/// What was sent to a run.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Whether messages arrived since the inbox was last read.
    pub(super) has_mail: bool,
    /// The reason, if the run was cancelled.
    pub(super) stop: Option<Arc<str>>,
}

/// A request for messages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Take {
    pub(super) queue: Queue,
    pub(super) most: usize,
}

/// The messages of a queue, and what is left.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Drained {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) left: Left,
}

/// The number of messages that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    pub(super) steering: usize,
    pub(super) follow_ups: usize,
}

impl Left {
    pub(super) fn of(self, queue: Queue) -> usize {
        match queue {
            Queue::Steering => self.steering,
            Queue::FollowUp => self.follow_ups,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Answers from outside, in the order of the questions, with `None` for those that timed out.
#[derive(Debug)]
pub(super) struct Waited {
    pub(super) answers: Vec<Option<Value>>,
    pub(super) stop: Option<Arc<str>>,
}
