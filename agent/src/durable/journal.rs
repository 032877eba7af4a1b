//! What an engine has to do for the steps of a run: remember.

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

/// One run, or one call of it, in an engine. Steps are taken one after the other: there is no way to ask for two at once, so
/// whoever writes steps cannot make their order depend on chance.
pub(super) trait Journal: Send + Sync {
    /// Does something and remembers what came of it: on a replay the work is not done. The same steps in the same order
    /// on every replay.
    fn run<T: Kept>(&self, name: String, tries: Tries, work: Work<T>) -> BoxFuture<'_, Result<T, StepError>>;
}

/// That of a run: others talk to it.
pub(super) trait RunJournal: Journal {
    /// Runs calls side by side, each with a journal of its own that is known by the call's key; what they came to, in call order. None
    /// for a call of which the engine lost sight.
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<ToolsEnd, StepError>>;

    /// What was said to the run by the end of its last step, as far as that is known without asking anybody; each thing is heard
    /// once. At the same place of a replay, the same. Before the first step, nothing.
    fn hear(&self) -> BoxFuture<'_, Result<Heard, StepError>>;

    /// Takes messages for the run.
    fn drain(&self, take: Take) -> BoxFuture<'_, Result<Drained, StepError>>;

    /// From here on nothing is said to the run, and whoever tries is told so; true. Where something was said before, the run stays
    /// open, and hears it; false.
    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>>;

    /// Waits for answers from outside.
    fn wait(&self, asks: Vec<PendingAsk>, within: Duration) -> BoxFuture<'_, Result<Waited, StepError>>;
}

/// What can be remembered.
pub(super) trait Kept: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Kept for T {}

/// The work of a step, which owns what it needs.
pub(super) type Work<T> = BoxFuture<'static, Result<T, Again>>;

/// The work failed in a way that another attempt may mend.
#[derive(Debug)]
pub(super) struct Again(pub(super) String);

/// How often the engine tries, with which pause after the first attempt; each pause is twice as long as the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    pub(super) most: u32,
    pub(super) pause: Duration,
}

impl Tries {
    /// Work that gives an answer whatever happens.
    pub(super) const ONE: Self = Self { most: 1, pause: Duration::from_millis(100) };
}

/// What a step came to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stepped<T> {
    pub(super) value: T,
    /// Why the run was to end by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<Arc<str>>,
}

/// One call for a journal of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ToolRequest {
    pub(super) key: StepKey,
    pub(super) call: ToolCall,
    /// What the model said beside it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
}

/// What calls came to.
#[derive(Debug)]
pub(super) struct ToolsEnd {
    pub(super) ends: Vec<Option<Stepped<CallEnd>>>,
    pub(super) stop: Option<Arc<str>>,
}

/// What was said to a run.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Messages came since the inbox was looked into.
    pub(super) has_mail: bool,
    /// Why the run is to end.
    pub(super) stop: Option<Arc<str>>,
}

/// Which messages are wanted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Take {
    pub(super) queue: Queue,
    pub(super) most: usize,
}

/// The messages of a queue.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Drained {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) left: Left,
}

/// How many messages are left.
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

/// Answers from outside, in the order of what was asked; none where the time was up.
#[derive(Debug)]
pub(super) struct Waited {
    pub(super) answers: Vec<Option<Value>>,
    pub(super) stop: Option<Arc<str>>,
}
