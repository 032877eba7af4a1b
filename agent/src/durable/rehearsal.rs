//! An in-memory durable execution engine that crashes on purpose.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use super::inbox::{Inbox, PushOutcome};
use super::journal::{
    Answers, BatchEnd, ChildSteering, ChildWait, InboxBatch, InboxRequest, Journal, ReceivedNotices,
    Recordable, RetryPolicy, RunJournal, ToolRequest, Transient, Work,
};
use super::play::{SharedService, call_tool, play};
use super::{Outcome, PendingAsk, RunRequest, Service};
use crate::loop_core::{Queue, ReservedPart, SteeringPolicy, TreeReservation};
use crate::message::{Message, UserMessage};
use crate::runtime::{ChildReport, Decision, NEW_MESSAGE};
use crate::steps::StepError;
use crate::tool::{BoxFuture, outcome::ToolOutcome, question::QuestionInput};

/// A durable run whose steps are recorded in memory, without an engine such as Restate. Tests use a rehearsal to check that a run recovers
/// when its process dies.
///
/// ```
/// use agent::durable::{Rehearsal, RunRequest, Service};
/// use agent::model::reply;
/// use agent::{Assistant, ScriptedModel, tool, tools};
///
/// /// Sends an invoice.
/// #[tool(effect = "once")]
/// fn send(order: u32) -> String {
///     format!("sent {order}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("send", r#"{"order": 7}"#), reply().text("Done.")]);
/// let service = Service::new(&Assistant::builder(model).tools(tools![send]).build()?)?;
/// let rehearsal = Rehearsal::new(service, RunRequest::new("order-7", "Send the invoice."));
/// // The process dies after the tool has run, before its result is recorded.
/// assert!(rehearsal.crash_after("order-7/1/tool/0").await?.is_none());
/// let outcome = rehearsal.play().await?;
/// assert_eq!(outcome.text(), "Done.");
/// // The tool did not run again, and the model reads that the result is unknown.
/// assert!(outcome.messages[2].text().starts_with("No result of this call was recorded."));
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/rehearsal.md")]
pub struct Rehearsal {
    served: Arc<SharedService>,
    request: RunRequest,
    shared: Arc<RehearsalState>,
    root: Arc<RehearsalRun>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum CrashPoint {
    /// After the process has recorded this many steps, before the next step begins.
    BeforeStep(usize),
    /// After the work of this step, before its result is recorded.
    AfterWork(String),
}

#[derive(Clone, Debug)]
enum JournalEntry {
    Step {
        name: String,
        value: Result<Value, String>,
    },
    /// Messages were sent to the run. The run receives this notice at the end of the next step.
    Mail,
    Stop(Arc<str>),
}

/// The state of the simulated engine, which survives the crashes of the process.
#[derive(Default)]
struct RehearsalState {
    children: Mutex<HashMap<String, Arc<RehearsalRun>>>,
    /// The inbox that counts what all runs use of their shared limits. A real engine uses the inbox of the root run.
    counts: Mutex<Inbox>,
    calls: Mutex<HashMap<String, Arc<Mutex<VecDeque<JournalEntry>>>>>,
    answers: Mutex<HashMap<String, Value>>,
    crash: Mutex<Option<CrashPoint>>,
    recorded_steps: AtomicUsize,
    /// The names of the recorded steps, in order.
    names: Mutex<Vec<String>>,
}

#[derive(Default)]
struct RehearsalRun {
    entries: Arc<Mutex<VecDeque<JournalEntry>>>,
    inbox: Mutex<Inbox>,
    is_closed: AtomicBool,
    stop: Mutex<Option<Arc<str>>>,
    /// Whether a steering message cancels the children that the run waits for.
    is_interruptible: AtomicBool,
    is_interrupted: AtomicBool,
}

impl RehearsalRun {
    fn cancel(&self, reason: &Arc<str>) {
        if !self.is_closed.load(Ordering::Relaxed) && lock(&self.inbox).cancel().is_some() {
            *lock(&self.stop) = Some(reason.clone());
            lock(&self.entries).push_back(JournalEntry::Stop(reason.clone()));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs while a lock is held, so no lock is ever poisoned.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The message of the error that simulates the death of the process.
const CRASH: &str = "the process died";

fn unless_crashed(played: Result<Outcome, StepError>) -> Result<Option<Outcome>, StepError> {
    match played {
        Ok(outcome) => Ok(Some(outcome)),
        Err(StepError::Engine { message }) if message == CRASH => Ok(None),
        Err(error) => Err(error),
    }
}

impl Rehearsal {
    /// Creates a rehearsal of a run that has not begun.
    pub fn new(service: Service, request: RunRequest) -> Self {
        Self { served: service.into_served(), request, shared: Arc::default(), root: Arc::default() }
    }

    /// Queues a message for the next turn of the run, unless the run is over. A message that is queued before the run begins is delivered
    /// after the first step of the run. An inbox takes 1,000 messages; further messages are dropped.
    pub fn steer(&self, message: impl Into<UserMessage>) {
        self.push(Queue::Steering, Message::User(message.into()));
    }

    /// Queues a message that is delivered when the run would otherwise end.
    pub fn follow_up(&self, message: impl Into<UserMessage>) {
        self.push(Queue::FollowUp, Message::User(message.into()));
    }

    fn push(&self, queue: Queue, message: Message) {
        if self.root.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut inbox = lock(&self.root.inbox);
        let pushed = inbox.push(queue, Arc::new(message));
        if pushed != PushOutcome::Taken {
            tracing::error!(run = %self.request.run, "the inbox is full: the message was dropped");
            return;
        }
        if inbox.message_notice().is_some() {
            lock(&self.root.entries).push_back(JournalEntry::Mail);
        }
        drop(inbox);
        self.served.pushed(&self.request.run, queue);
        if queue == Queue::Steering && self.root.is_interruptible.load(Ordering::Relaxed) {
            self.root.is_interrupted.store(true, Ordering::Relaxed);
            self.shared.cancel_children(&self.served, NEW_MESSAGE, |_| true);
        }
    }

    /// Cancels the run and the runs below it, as [`DurableClient::cancel`](super::DurableClient::cancel) does. A run that has not begun
    /// ends after its first step.
    pub fn cancel(&self, reason: &str) {
        self.served.running.cancel(&self.request.run, reason);
        self.root.cancel(&reason.into());
        self.shared.cancel_children(&self.served, reason, |_| true);
    }

    /// Sets the decision for an approval request (`RUN/TURN/approval/ORD`). Requests without a decision time out at once.
    pub fn decide(&self, request: impl Into<String>, decision: Decision) {
        let decision = serde_json::to_value(decision).unwrap_or_default();
        lock(&self.shared.answers).insert(request.into(), decision);
    }

    /// Sets the result of the deferred call whose tool returned this handle. Calls without a result time out at once.
    pub fn deliver(&self, handle: impl Into<String>, outcome: impl Into<ToolOutcome>) {
        let outcome = serde_json::to_value(outcome.into()).unwrap_or_default();
        lock(&self.shared.answers).insert(handle.into(), outcome);
    }

    /// Sets the input to a question of a tool, by the id of the question (`RUN/TURN/tool/ORD/ask/NUMBER`). Questions without an input are
    /// dismissed.
    ///
    /// ```
    /// use agent::durable::{Rehearsal, RunRequest, Service};
    /// use agent::tool::QuestionInput;
    /// use agent::{Assistant, ScriptedModel, ToolContext, ToolError, json, model::reply, tool, tools};
    ///
    /// /// Orders tea.
    /// #[tool(asks)]
    /// async fn order_tea(cx: &ToolContext) -> Result<String, ToolError> {
    ///     Ok(format!("{} cups", cx.ask::<u8>("How many cups?").await?))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("order_tea", "{}"), reply().text("It comes.")]);
    /// let service = Service::new(&Assistant::builder(model).tools(tools![order_tea]).build()?)?;
    /// let rehearsal = Rehearsal::new(service, RunRequest::new("tea", "Tea, please."));
    /// rehearsal.answer("tea/1/tool/0/ask/0", QuestionInput::Accept(json!(2)));
    /// let outcome = rehearsal.play().await?;
    /// assert_eq!(outcome.messages[2].text(), "2 cups");
    /// # Ok(()) }
    /// ```
    pub fn answer(&self, question: impl Into<String>, input: QuestionInput) {
        let input = serde_json::to_value(input).unwrap_or_default();
        lock(&self.shared.answers).insert(question.into(), input);
    }

    /// Begins or continues the run as a new process would, until its end.
    ///
    /// # Errors
    /// Returns an error if the request is refused, if the run fails without an outcome, or if the run takes other steps than those in its
    /// journal (the recorded steps) because the code between steps has changed.
    pub async fn play(&self) -> Result<Outcome, StepError> {
        self.play_until(None).await
    }

    /// Like [`play`](Self::play), but the process dies after it has recorded this many steps, before the next step begins. Returns `None`
    /// if the process died, or the outcome if the run ended before.
    ///
    /// # Errors
    /// Returns the errors of [`play`](Self::play).
    pub async fn crash_before_step(&self, count: usize) -> Result<Option<Outcome>, StepError> {
        unless_crashed(self.play_until(Some(CrashPoint::BeforeStep(count))).await)
    }

    /// Like [`play`](Self::play), but the process dies after the work of `step`, before the result is recorded. `step` is a
    /// [`StepKey`](crate::steps::StepKey) as text, or this text with `/begin` for the begin of a `once` tool. Returns `None` if the
    /// process died, or the outcome if the step did not run.
    ///
    /// ```
    /// use agent::durable::{Rehearsal, RunRequest, Service};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Hello!", "Hello again!"]);
    /// let service = Service::new(&Assistant::builder(model.clone()).build()?)?;
    /// let rehearsal = Rehearsal::new(service, RunRequest::new("greeting", "Hi"));
    /// assert!(rehearsal.crash_after("greeting/1/model/0").await?.is_none());       // the first reply is lost
    /// assert!(rehearsal.crash_before_step(1).await?.is_none());
    /// assert_eq!(rehearsal.play().await?.text(), "Hello again!");
    /// assert_eq!(model.requests().len(), 2);               // the recorded reply is not requested again
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`play`](Self::play).
    pub async fn crash_after(&self, step: impl Into<String>) -> Result<Option<Outcome>, StepError> {
        unless_crashed(self.play_until(Some(CrashPoint::AfterWork(step.into()))).await)
    }

    async fn play_until(&self, crash: Option<CrashPoint>) -> Result<Outcome, StepError> {
        let request = self.request.clone().named(&self.request.run).map_err(StepError::terminal)?;
        *lock(&self.shared.crash) = crash;
        self.shared.recorded_steps.store(0, Ordering::Relaxed);
        lock(&self.shared.names).clear();
        let journal = MemoryJournal::new(&self.served, &self.shared, &self.root, self.root.entries.clone());
        let active = self.served.enter(&request.run);
        play(&self.served, &journal, request, active.token.clone()).await
    }

    /// Returns the names of the steps that the last play recorded, in order.
    pub fn steps(&self) -> Vec<String> {
        lock(&self.shared.names).clone()
    }
}

impl RehearsalState {
    fn cancel_children(&self, served: &SharedService, reason: &str, is_chosen: impl Fn(&str) -> bool) {
        let children = lock(&self.children).clone();
        for (name, child) in children.iter().filter(|(name, _)| is_chosen(name)) {
            served.running.cancel(name, reason);
            child.cancel(&reason.into());
        }
    }
}

impl fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rehearsal").field("request", &self.request).finish_non_exhaustive()
    }
}

/// The values for [`Answers::children`] and [`Answers::steered`].
type EndedChildren = (Vec<Option<ChildReport>>, Option<usize>);

struct MemoryJournal {
    served: Arc<SharedService>,
    shared: Arc<RehearsalState>,
    run: Arc<RehearsalRun>,
    entries: Arc<Mutex<VecDeque<JournalEntry>>>,
    children: Mutex<Vec<RunRequest>>,
    at: AtomicUsize,
    /// The notices that arrived by the end of the last step. They are kept here until the run takes them with `receive`.
    received: Mutex<ReceivedNotices>,
}

impl MemoryJournal {
    fn new(
        served: &Arc<SharedService>,
        shared: &Arc<RehearsalState>,
        run: &Arc<RehearsalRun>,
        entries: Arc<Mutex<VecDeque<JournalEntry>>>,
    ) -> Self {
        Self {
            served: served.clone(),
            shared: shared.clone(),
            run: run.clone(),
            entries,
            children: Mutex::default(),
            at: AtomicUsize::new(0),
            received: Mutex::default(),
        }
    }

    /// Performs the run of a sub-agent. Returns `None` if the run fails, as if the engine had lost the run.
    fn play_child(&self, request: RunRequest) -> BoxFuture<'_, Result<Option<ChildReport>, StepError>> {
        let run = lock(&self.shared.children).entry(request.run.clone()).or_default().clone();
        Box::pin(async move {
            let served = self.served.at(&request.path())?;
            let journal = Self::new(&served, &self.shared, &run, run.entries.clone());
            let active = served.enter(&request.run);
            match play(&served, &journal, request, active.token.clone()).await {
                Ok(outcome) => Ok(outcome.report.map(|report| *report)),
                Err(error @ StepError::Engine { .. }) => Err(error),
                Err(error) => {
                    tracing::error!(%error, "the run of a call failed");
                    Ok(None)
                }
            }
        })
    }

    async fn end_children(&self, children: ChildWait) -> Result<EndedChildren, StepError> {
        if matches!(children, ChildWait::Apart) {
            return Ok(EndedChildren::default());
        }
        let started = std::mem::take(&mut *lock(&self.children));
        if started.is_empty() {
            return Ok(EndedChildren::default());
        }
        if let Some(ended) = self.replay("ended")? {
            return decode(ended);
        }
        self.check_crash()?;
        let (mut stopped, steering) = children.into_causes();
        let is_steered = steering.is_some_and(ChildSteering::cancels);
        if is_steered {
            stopped = Some(NEW_MESSAGE.into());
        }
        let mut begun = started.len();
        if let Some(reason) = &stopped {
            // As on Restate, runs beyond the maximum concurrency are not started.
            begun = begun.min(self.served.assistant.max_concurrency());
            let is_started = |name: &str| started.iter().any(|child| child.run == name);
            self.shared.cancel_children(&self.served, reason, is_started);
        }
        let is_interruptible =
            steering.is_some_and(|steering| steering.policy == SteeringPolicy::CancelRunning);
        self.run.is_interruptible.store(is_interruptible, Ordering::Relaxed);
        let all = started.len();
        let ended = join_all(started.into_iter().take(begun).map(|child| self.play_child(child))).await;
        self.run.is_interruptible.store(false, Ordering::Relaxed);
        let mut ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
        ended.resize_with(all, || None);
        let is_interrupted = self.run.is_interrupted.swap(false, Ordering::Relaxed) || is_steered;
        let steered = is_interrupted.then_some(begun);
        let ended: EndedChildren = (ended, steered);
        let value = serde_json::to_value(ended).map_err(|error| error.to_string());
        self.record("ended".to_owned(), value.clone())?;
        decode(value)
    }

    /// Returns the recorded result of the next step, or `None` if it was not recorded.
    fn replay(&self, name: &str) -> Result<Option<Result<Value, String>>, StepError> {
        let entries = lock(&self.entries);
        loop {
            let at = self.at.fetch_add(1, Ordering::Relaxed);
            let (found, value) = match entries.get(at) {
                None => {
                    self.at.store(at, Ordering::Relaxed);
                    return Ok(None);
                }
                Some(JournalEntry::Step { name, value }) => (name, value),
                Some(notice) => {
                    self.receive_entry(notice);
                    continue;
                }
            };
            if found == name {
                return Ok(Some(value.clone()));
            }
            return Err(StepError::terminal(format!(
                "step {at} of the replay is `{name}`, but the journal has `{found}` there: code between steps must do the same on every replay"
            )));
        }
    }

    fn receive_entry(&self, entry: &JournalEntry) {
        let mut received = lock(&self.received);
        match entry {
            JournalEntry::Step { .. } => {}
            JournalEntry::Mail => received.has_mail = true,
            JournalEntry::Stop(reason) => {
                received.stop.get_or_insert_with(|| reason.clone());
            }
        }
    }

    fn check_crash(&self) -> Result<(), StepError> {
        let recorded = self.shared.recorded_steps.load(Ordering::Relaxed);
        match &*lock(&self.shared.crash) {
            Some(CrashPoint::BeforeStep(count)) if recorded >= *count => Err(StepError::engine(CRASH)),
            _ => Ok(()),
        }
    }

    fn record(&self, name: String, value: Result<Value, String>) -> Result<(), StepError> {
        let is_crash =
            matches!(&*lock(&self.shared.crash), Some(CrashPoint::AfterWork(step)) if *step == name);
        if is_crash {
            return Err(StepError::engine(CRASH));
        }
        self.shared.recorded_steps.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.names).push(name.clone());
        self.append(name, value);
        Ok(())
    }

    /// Appends the result of a step, and receives the notices that were sent while it ran.
    fn append(&self, name: String, value: Result<Value, String>) {
        let mut entries = lock(&self.entries);
        entries.iter().skip(self.at.load(Ordering::Relaxed)).for_each(|notice| self.receive_entry(notice));
        entries.push_back(JournalEntry::Step { name, value });
        self.at.store(entries.len(), Ordering::Relaxed);
    }

    fn run_now<T: Recordable>(&self, name: String, work: impl FnOnce() -> T) -> Result<T, StepError> {
        if let Some(value) = self.replay(&name)? {
            return decode(value);
        }
        self.check_crash()?;
        let value = serde_json::to_value(work()).map_err(|error| error.to_string());
        self.record(name, value.clone())?;
        decode(value)
    }
}

fn decode<T: Recordable>(value: Result<Value, String>) -> Result<T, StepError> {
    let decoded = value.and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()));
    decoded.map_err(StepError::terminal)
}

impl Journal for MemoryJournal {
    fn run<T: Recordable>(
        &self,
        name: String,
        _retry: RetryPolicy,
        mut work: Work<T>,
    ) -> BoxFuture<'_, Result<T, StepError>> {
        Box::pin(async move {
            if let Some(value) = self.replay(&name)? {
                return decode(value);
            }
            self.check_crash()?;
            let value = match (&mut work).await {
                Ok(value) => serde_json::to_value(value).map_err(|error| error.to_string()),
                Err(Transient(text)) => Err(text),
            };
            self.record(name, value.clone())?;
            decode(value)
        })
    }
}

impl RunJournal for MemoryJournal {
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<BatchEnd, StepError>> {
        Box::pin(async move {
            let calls =
                calls.into_iter().map(|call| {
                    let entries = lock(&self.shared.calls).entry(call.step_name()).or_default().clone();
                    let journal = Self::new(&self.served, &self.shared, &self.run, entries);
                    let active = self.served.enter(&call.key.run);
                    async move {
                        call_tool(&journal.served, &journal, call, (None, None), active.token.clone()).await
                    }
                });
            // Each call has its own journal, so the order of the calls does not matter.
            let ends = join_all(calls).await;
            // The entry records the end of the batch, because a replay must receive the messages to the run at this point.
            if self.replay("tools")?.is_none() && ends.iter().all(Result::is_ok) {
                self.append("tools".to_owned(), Ok(Value::Null));
            }
            let mut stop = None;
            let mut results = Vec::with_capacity(ends.len());
            for end in ends {
                let end = end?;
                stop = stop.or_else(|| end.stop.clone());
                results.push(Some(end));
            }
            Ok(BatchEnd { ends: results, stop })
        })
    }

    fn receive(&self) -> BoxFuture<'_, Result<ReceivedNotices, StepError>> {
        Box::pin(std::future::ready(Ok(std::mem::take(&mut *lock(&self.received)))))
    }

    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>> {
        Box::pin(async move {
            self.run_now("close".to_owned(), || {
                let entries = lock(&self.entries);
                let is_last = self.at.load(Ordering::Relaxed) >= entries.len();
                self.run.is_closed.store(is_last, Ordering::Relaxed);
                is_last
            })
        })
    }

    fn drain(&self, request: InboxRequest) -> BoxFuture<'_, Result<InboxBatch, StepError>> {
        Box::pin(async move { self.run_now("drain".to_owned(), || lock(&self.run.inbox).drain(request)) })
    }

    fn reserve(
        &self,
        _root: Arc<str>,
        wanted: TreeReservation,
    ) -> BoxFuture<'_, Result<ReservedPart, StepError>> {
        Box::pin(
            async move { self.run_now("reserve".to_owned(), || lock(&self.shared.counts).reserve(wanted)) },
        )
    }

    fn start_children(&self, children: Vec<RunRequest>) -> BoxFuture<'_, Result<(), StepError>> {
        Box::pin(async move {
            self.run_now("children".to_owned(), || ())?;
            *lock(&self.children) = children;
            Ok(())
        })
    }

    fn wait(
        &self,
        asks: Vec<PendingAsk>,
        _timeout: Duration,
        children: ChildWait,
    ) -> BoxFuture<'_, Result<Answers, StepError>> {
        Box::pin(async move {
            let answers = self.run_now("wait".to_owned(), || {
                let prepared = lock(&self.shared.answers);
                asks.iter().map(|ask| prepared.get(ask.id()).cloned()).collect::<Vec<_>>()
            })?;
            let (children, steered) = self.end_children(children).await?;
            let stop = self.run_now("waited".to_owned(), || lock(&self.run.stop).clone())?;
            Ok(Answers { from_outside: answers, children, steered, stop })
        })
    }
}
