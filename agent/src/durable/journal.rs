//! The interface of an engine that records the steps of a run.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PendingAsk, RunRequest};
use crate::loop_core::{CallEnd, Queue, ReservedPart, RunState, SteeringPolicy, TreeReservation};
use crate::message::{Message, ToolCall};
use crate::run_path::RunPath;
use crate::runtime::ChildReport;
use crate::step_key::StepKey;
use crate::steps::StepError;
use crate::tool::BoxFuture;
use crate::tool::question::RecordedInput;

/// The journal of a run, or of one call: the steps that the engine (Restate) has recorded. Steps must be taken one after the other, so
/// that their order never depends on timing.
pub(super) trait Journal: Send + Sync {
    /// Does the work and records its result. On a replay, returns the recorded result and does not do the work. Every replay must take the
    /// same steps in the same order.
    fn run<T: Recordable>(
        &self,
        name: String,
        retry: RetryPolicy,
        work: Work<T>,
    ) -> BoxFuture<'_, Result<T, StepError>>;
}

/// The journal of a run. In contrast to a call, a run receives messages from outside.
pub(super) trait RunJournal: Journal {
    /// Runs calls concurrently, each with its own journal under the [name of its step](ToolRequest::step_name).
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<BatchEnd, StepError>>;

    /// Returns the new notices (of messages or cancellation) that arrived before the end of the last step. A replay gets the same notices
    /// after the same step.
    fn receive(&self) -> BoxFuture<'_, Result<ReceivedNotices, StepError>>;

    fn drain(&self, request: InboxRequest) -> BoxFuture<'_, Result<InboxBatch, StepError>>;

    /// Refuses further notices, and returns true. If another notice arrived first, returns false, and the run receives that notice.
    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>>;

    /// Reserves requests, calls or runs within the limits that the run `root` shares with its sub-agents. The counts are in the inbox of
    /// `root`.
    fn reserve(
        &self,
        root: Arc<str>,
        wanted: TreeReservation,
    ) -> BoxFuture<'_, Result<ReservedPart, StepError>>;

    /// Starts the runs of sub-agents. At the assistant's maximum concurrency, the next run starts when another ends or waits for answers.
    fn start_children(&self, children: Vec<RunRequest>) -> BoxFuture<'_, Result<(), StepError>>;

    /// Waits at most `timeout` for the answers to `asks`, and treats the started runs as `children` says. A cancellation of this run
    /// cancels the awaited runs and ends the wait for answers.
    fn wait(
        &self,
        asks: Vec<PendingAsk>,
        timeout: Duration,
        children: ChildWait,
    ) -> BoxFuture<'_, Result<Answers, StepError>>;
}

pub(super) trait Recordable: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Recordable for T {}

pub(super) type Work<T> = BoxFuture<'static, Result<T, Transient>>;

/// The message of a failure after which another attempt may succeed.
#[derive(Debug)]
pub(super) struct Transient(pub(super) String);

/// The number of attempts at one step, and the pauses between them. Each pause is twice as long as the previous one, up to 30 s.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryPolicy {
    /// Maximum number of attempts, at least 1.
    pub(super) max_attempts: u32,
    /// The pause after the first attempt.
    pub(super) pause: Duration,
}

impl RetryPolicy {
    /// The policy for work that does not fail.
    pub(super) const ONE_ATTEMPT: Self = Self { max_attempts: 1, pause: Duration::from_millis(100) };
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StepResult<T> {
    pub(super) value: T,
    /// The reason of the cancellation, if the run was cancelled before the end of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<Arc<str>>,
    /// The time at the end of the step in milliseconds since 1970, for runs with a time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<u64>,
    /// The duration of the step in milliseconds, if the run belongs to a call whose tool has a time limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) took: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ToolRequest {
    pub(super) key: StepKey,
    pub(super) call: Arc<ToolCall>,
    /// The text of the reply that contains the call. Empty unless the call is the first one of its reply.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "RunState::is_empty")]
    pub(super) state: RunState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) inputs: Vec<RecordedInput>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) restart: u32,
    #[serde(default, skip_serializing_if = "RunPath::is_root")]
    pub(super) path: RunPath,
    /// The time that the run may still work, if its working time is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<Duration>,
}

fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

impl ToolRequest {
    pub(super) fn step_name(&self) -> String {
        match self.restart {
            0 => self.key.to_string(),
            restart => format!("{}/restart/{restart}", self.key),
        }
    }
}

#[derive(Debug)]
pub(super) struct BatchEnd {
    /// The ends of the calls in call order. `None` if the engine lost the call, or if the run was cancelled before the call began or ended.
    pub(super) ends: Vec<Option<StepResult<CallEnd>>>,
    /// The reason of the cancellation, if the run was cancelled.
    pub(super) stop: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(super) struct ReceivedNotices {
    pub(super) has_mail: bool,
    /// The reason of the cancellation, if the run was cancelled.
    pub(super) stop: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct InboxRequest {
    pub(super) queue: Queue,
    /// Maximum number of messages. With 0, only the lengths of the queues are read.
    pub(super) most: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct InboxBatch {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) left: QueueLengths,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueLengths {
    pub(super) steering: usize,
    pub(super) follow_ups: usize,
}

impl QueueLengths {
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

/// The treatment of the started runs of sub-agents while their parent waits.
#[derive(Clone, Debug)]
pub(super) enum ChildWait {
    Apart,
    /// The runs are awaited without a time limit. Depending on the `SteeringPolicy`, a steering message may skip or cancel them.
    Ended(ChildSteering),
    Stopped(Arc<str>),
}

impl ChildWait {
    /// Returns the reason to cancel the runs at once, and the effect of steering messages. At least one of the two is `None`.
    pub(super) fn into_causes(self) -> (Option<Arc<str>>, Option<ChildSteering>) {
        match self {
            Self::Apart => (None, None),
            Self::Stopped(reason) => (Some(reason), None),
            Self::Ended(steering) => {
                (None, Some(steering).filter(|steering| steering.policy != SteeringPolicy::AfterBatch))
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChildSteering {
    pub(super) policy: SteeringPolicy,
    /// The number of queued steering messages that this turn did not take.
    pub(super) left: usize,
    pub(super) is_steered: bool,
}

impl ChildSteering {
    pub(super) fn cancels(self) -> bool {
        self.is_steered && self.policy == SteeringPolicy::CancelRunning
    }
}

#[derive(Debug)]
pub(super) struct Answers {
    /// The answers in the order of their requests. `None` for a request without an answer.
    pub(super) from_outside: Vec<Option<Value>>,
    /// The report of each run, in call order. `None` if the run was lost, was not started, or did not end in time.
    pub(super) children: Vec<Option<ChildReport>>,
    /// The number of runs that had begun, if a steering message skipped the other runs.
    pub(super) steered: Option<usize>,
    /// The reason of the cancellation, if the run was cancelled.
    pub(super) stop: Option<Arc<str>>,
}
