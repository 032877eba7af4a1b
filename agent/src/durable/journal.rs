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

/// The journal of a run, or of one call, in an engine. Steps must be taken one after the other, so that the order of steps never depends on
/// timing.
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
    /// Runs calls concurrently, each with its own journal under the [name of its step](ToolRequest::step_name). Returns the ends of the
    /// calls in call order. An end is `None` if the engine lost the call, or if the run was cancelled before the call began or ended.
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<BatchEnd, StepError>>;

    /// Returns the notices that reached the run by the end of its last step and were not returned before. Makes no request to the engine. A
    /// replay receives the same notices between the same steps. Before the first step, no notices are returned.
    fn receive(&self) -> BoxFuture<'_, Result<ReceivedNotices, StepError>>;

    /// Removes messages from the run's inbox, and returns them with the lengths of both queues afterwards.
    fn drain(&self, request: InboxRequest) -> BoxFuture<'_, Result<InboxBatch, StepError>>;

    /// Closes the run to notices, and returns true. If a notice was sent before, the run stays open to receive it, and false is returned.
    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>>;

    /// Reserves amounts within the limits that the runs of a tree share. `root` is the name of the root run, whose inbox keeps the counts
    /// for the whole tree.
    fn reserve(
        &self,
        root: Arc<str>,
        wanted: TreeReservation,
    ) -> BoxFuture<'_, Result<ReservedPart, StepError>>;

    /// Starts runs for calls, each as a workflow under the name of the run. Runs beyond the assistant's maximum concurrency start when
    /// earlier runs end, or when earlier runs wait for answers from outside.
    fn start_children(&self, children: Vec<RunRequest>) -> BoxFuture<'_, Result<(), StepError>>;

    /// Waits for answers from outside, at most for `timeout`. The started runs are awaited, cancelled or left alone as `children` says. If
    /// this run is cancelled meanwhile, the awaited runs are cancelled, and answers are no longer awaited.
    fn wait(
        &self,
        asks: Vec<PendingAsk>,
        timeout: Duration,
        children: ChildWait,
    ) -> BoxFuture<'_, Result<Answers, StepError>>;
}

/// Data that a journal can record.
pub(super) trait Recordable: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Recordable for T {}

/// The work of a step, as a future that owns its data.
pub(super) type Work<T> = BoxFuture<'static, Result<T, Transient>>;

/// The message of a failure that another attempt at the work may avoid.
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

/// The recorded result of a step.
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

/// A request to run one call with its own journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ToolRequest {
    pub(super) key: StepKey,
    pub(super) call: Arc<ToolCall>,
    /// The text of the reply that contains the call. Only the request for the first call of a reply has the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "RunState::is_empty")]
    pub(super) state: RunState,
    /// The inputs to the questions of the call's tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) inputs: Vec<RecordedInput>,
    /// The number of restarts of the call's body after a question.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) restart: u32,
    /// The path from the root to the run.
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
    /// Returns the name of the step that runs the body.
    pub(super) fn step_name(&self) -> String {
        match self.restart {
            0 => self.key.to_string(),
            restart => format!("{}/restart/{restart}", self.key),
        }
    }
}

/// The ends of the calls of a batch.
#[derive(Debug)]
pub(super) struct BatchEnd {
    /// The ends of the calls in call order. `None` if the engine lost the call, or if the run was cancelled before the call began or ended.
    pub(super) ends: Vec<Option<StepResult<CallEnd>>>,
    /// The reason of the cancellation, if the run was cancelled.
    pub(super) stop: Option<Arc<str>>,
}

/// The notices that a run has received.
#[derive(Debug, Default)]
pub(super) struct ReceivedNotices {
    /// Whether a notice about messages was received.
    pub(super) has_mail: bool,
    /// The reason of the cancellation, if the run was cancelled.
    pub(super) stop: Option<Arc<str>>,
}

/// A request for the messages of one queue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct InboxRequest {
    pub(super) queue: Queue,
    /// Maximum number of messages. With 0, only the lengths of the queues are read.
    pub(super) most: usize,
}

/// Messages that were removed from a queue, and the lengths of both queues afterwards.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct InboxBatch {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) left: QueueLengths,
}

/// The number of messages in each queue of an inbox.
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

/// The treatment of the started runs while their parent waits.
#[derive(Clone, Debug)]
pub(super) enum ChildWait {
    /// The runs continue, and are not awaited.
    Apart,
    /// The runs are awaited without a time limit. Depending on the policy, a steering message may take precedence over the runs.
    Ended(ChildSteering),
    /// The runs are cancelled for this reason, and awaited for a grace period.
    Stopped(Arc<str>),
}

impl ChildWait {
    /// Returns the reason for cancelling the runs, and the effect of steering messages if these may take precedence over the runs. At most
    /// one of the two is set.
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

/// The effect of steering messages on the started runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildSteering {
    pub(super) policy: SteeringPolicy,
    /// The number of queued steering messages that this turn did not take.
    pub(super) left: usize,
    /// Whether a further steering message has arrived.
    pub(super) is_steered: bool,
}

/// The result of a wait for answers from outside and for started runs.
#[derive(Debug)]
pub(super) struct Answers {
    /// The answers from outside, in the order of the requests, with `None` for each request without an answer.
    pub(super) from_outside: Vec<Option<Value>>,
    /// The reports of the started runs in call order. `None` for a run that the engine lost, that was not started, or that did not end in
    /// time.
    pub(super) children: Vec<Option<ChildReport>>,
    /// Set if a steering message took precedence over the runs: the number of runs that had begun before. The other runs are skipped.
    pub(super) steered: Option<usize>,
    /// The reason of the cancellation, if the run was cancelled.
    pub(super) stop: Option<Arc<str>>,
}
