//! An in-memory engine that crashes on purpose.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use super::inbox::{Inbox, Pushed};
use super::journal::{
    Again, Drained, Heard, Journal, Kept, RunJournal, Take, ToolRequest, ToolsEnd, Tries, Waited, Work,
};
use super::steps::{Served, call_tool, play};
use super::{Outcome, PendingAsk, RunRequest, Service};
use crate::loop_core::Queue;
use crate::message::{Message, UserMessage};
use crate::steps::StepError;
use crate::{BoxFuture, Decision, StepKey, ToolOutcome};

/// A durable run without an engine, on an in-memory journal that can be interrupted. Tests use it to check that a run recovers when its
/// process dies.
///
/// ```
/// use agent::durable::{Crash, Rehearsal, RunRequest, Service};
/// use agent::model::{ScriptedModel, reply};
/// use agent::{Assistant, tool, tools};
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
/// // The process dies when the tool has run and nobody was told of it.
/// assert!(rehearsal.play(Some(Crash::after("order-7/1/tool/0"))).await?.is_none());
/// let outcome = rehearsal.play(None).await?.expect("nothing fails this time");
/// assert_eq!(outcome.text(), "Done.");
/// // What must not happen twice did not; the model was told that nobody knows.
/// assert!(outcome.messages[2].text().starts_with("No result of this call was recorded."));
/// # Ok(()) }
/// ```
#[doc = include_str!("../docs/rehearsal.md")]
pub struct Rehearsal {
    served: Arc<Served>,
    request: RunRequest,
    shared: Arc<Shared>,
    root: Arc<Mutex<VecDeque<Entry>>>,
}

/// The point at which the process dies.
///
/// ```
/// use agent::durable::{Crash, Rehearsal, RunRequest, Service};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new(["Hello!", "Hello again!"]);
/// let service = Service::new(&Assistant::builder(model.clone()).build()?)?;
/// let rehearsal = Rehearsal::new(service, RunRequest::new("greeting", "Hi"));
/// assert!(rehearsal.play(Some(Crash::after("greeting/1/model/0"))).await?.is_none());     // the first reply is lost
/// assert!(rehearsal.play(Some(Crash::before_step(1))).await?.is_none());
/// assert_eq!(rehearsal.play(None).await?.unwrap().text(), "Hello again!");
/// assert_eq!(model.requests().len(), 2);               // what was remembered is not asked again
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// After this many recorded steps of the play, before the next one.
    Count(usize),
    /// After the work of this step, before it is recorded.
    After(String),
}

impl Crash {
    /// Crashes when this many steps were recorded in the play, before the next one begins.
    pub fn before_step(count: usize) -> Self {
        Self { place: Place::Count(count) }
    }

    /// Crashes when the work of this step is done and not yet recorded. A step is named by the text of its [`StepKey`]. The begin of a
    /// `once` tool is a separate step, `…/begin`.
    pub fn after(step: impl Into<String>) -> Self {
        Self { place: Place::After(step.into()) }
    }
}

/// The recorded entries, in order.
#[derive(Clone, Debug)]
enum Entry {
    Step {
        name: String,
        value: Result<Value, String>,
    },
    /// Messages were sent to the run. The run receives them with the end of the next step.
    Mail,
    Stop(Arc<str>),
}

#[derive(Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    /// Whether the run no longer takes messages.
    is_closed: AtomicBool,
    stop: Mutex<Option<Arc<str>>>,
    /// The journals of calls that have one of their own.
    calls: Mutex<HashMap<StepKey, Arc<Mutex<VecDeque<Entry>>>>>,
    /// The answers for when the run waits, by the id of what it waits for.
    answers: Mutex<HashMap<String, Value>>,
    crash: Mutex<Option<Place>>,
    taken: AtomicUsize,
    names: Mutex<Vec<String>>,
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic runs while these locks are held.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a journal that was interrupted.
const CRASH: &str = "the process died";

impl Rehearsal {
    /// Creates a run of this service that has not begun.
    pub fn new(service: Service, request: RunRequest) -> Self {
        Self { served: service.into_served(), request, shared: Arc::default(), root: Arc::default() }
    }

    /// Queues a message for the next turn of the run. A run that is over ignores it. Messages that are sent before the run begins are
    /// delivered after its first step.
    pub fn steer(&self, message: impl Into<UserMessage>) {
        self.push(Queue::Steering, Message::User(message.into()));
    }

    /// Queues a message that is delivered when the run would otherwise end.
    pub fn follow_up(&self, message: impl Into<UserMessage>) {
        self.push(Queue::FollowUp, Message::User(message.into()));
    }

    fn push(&self, queue: Queue, message: Message) {
        if self.shared.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut inbox = lock(&self.shared.inbox);
        let pushed = inbox.push(queue, Arc::new(message));
        debug_assert_eq!(pushed, Pushed::Taken, "the inbox of a rehearsal takes what a test puts in");
        if inbox.news().is_some() {
            lock(&self.root).push_back(Entry::Mail);
        }
    }

    /// Cancels the run, as [`DurableRun::cancel`](super::DurableRun::cancel) does. A run that has not begun ends after its first step.
    pub fn cancel(&self, reason: &str) {
        self.served.running.cancel(&self.request.run, reason);
        let reason: Arc<str> = reason.into();
        if !self.shared.is_closed.load(Ordering::Relaxed) && lock(&self.shared.inbox).cancel().is_some() {
            *lock(&self.shared.stop) = Some(reason.clone());
            lock(&self.root).push_back(Entry::Stop(reason));
        }
    }

    /// Sets the decision for an approval request (`RUN/TURN/approval/ORD`). Requests without a decision time out at once.
    pub fn decide(&self, request: impl Into<String>, decision: Decision) {
        let decision = serde_json::to_value(decision).unwrap_or_default();
        lock(&self.shared.answers).insert(request.into(), decision);
    }

    /// Sets the result of a deferred call, by the tool's handle. Calls without a result time out at once.
    pub fn deliver(&self, handle: impl Into<String>, outcome: impl Into<ToolOutcome>) {
        let outcome = serde_json::to_value(outcome.into()).unwrap_or_default();
        lock(&self.shared.answers).insert(handle.into(), outcome);
    }

    /// Begins or continues the run as a new process would, until its end or the crash. Returns `None` if it crashed.
    ///
    /// # Errors
    /// Returns an error if the run took other steps than before because what it did between steps has changed, or if an engine would not
    /// continue it.
    pub async fn play(&self, crash: Option<Crash>) -> Result<Option<Outcome>, StepError> {
        *lock(&self.shared.crash) = crash.map(|crash| crash.place);
        self.shared.taken.store(0, Ordering::Relaxed);
        lock(&self.shared.names).clear();
        let journal = self.journal(&self.root);
        let part = self.served.running.enter(&self.request.run);
        match play(&self.served, &journal, self.request.clone(), part.token.clone()).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(StepError::Engine { message }) if message == CRASH => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the names of the steps that the last play recorded, in order.
    pub fn steps(&self) -> Vec<String> {
        lock(&self.shared.names).clone()
    }

    fn journal(&self, kept: &Arc<Mutex<VecDeque<Entry>>>) -> Memory {
        Memory {
            served: self.served.clone(),
            shared: self.shared.clone(),
            kept: kept.clone(),
            at: AtomicUsize::new(0),
            heard: Mutex::default(),
        }
    }
}

impl fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rehearsal").field("request", &self.request).finish_non_exhaustive()
    }
}

/// A journal as one process reads it.
struct Memory {
    served: Arc<Served>,
    shared: Arc<Shared>,
    kept: Arc<Mutex<VecDeque<Entry>>>,
    at: AtomicUsize,
    /// What was sent before the end of the last step and not yet received.
    heard: Mutex<Heard>,
}

impl Memory {
    /// Returns the recorded result of the next step. A different name means that the run takes other steps than before.
    fn known(&self, name: &str) -> Result<Option<Result<Value, String>>, StepError> {
        let kept = lock(&self.kept);
        loop {
            let at = self.at.fetch_add(1, Ordering::Relaxed);
            let (found, value) = match kept.get(at) {
                None => {
                    // The next step will be recorded here.
                    self.at.store(at, Ordering::Relaxed);
                    return Ok(None);
                }
                Some(Entry::Step { name, value }) => (name, value),
                Some(said) => {
                    self.note(said);
                    continue;
                }
            };
            if found == name {
                return Ok(Some(value.clone()));
            }
            return Err(StepError::terminal(format!("on a replay step {at} is {name}; it was {found}")));
        }
    }

    fn note(&self, said: &Entry) {
        let mut heard = lock(&self.heard);
        match said {
            Entry::Step { .. } => {}
            Entry::Mail => heard.has_mail = true,
            Entry::Stop(reason) => {
                heard.stop.get_or_insert_with(|| reason.clone());
            }
        }
    }

    fn dies_before(&self) -> Result<(), StepError> {
        let taken = self.shared.taken.load(Ordering::Relaxed);
        match &*lock(&self.shared.crash) {
            Some(Place::Count(count)) if taken >= *count => Err(StepError::engine(CRASH)),
            _ => Ok(()),
        }
    }

    fn keep(&self, name: String, value: Result<Value, String>) -> Result<(), StepError> {
        let is_hit = matches!(&*lock(&self.shared.crash), Some(Place::After(place)) if *place == name);
        if is_hit {
            return Err(StepError::engine(CRASH));
        }
        self.shared.taken.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.names).push(name.clone());
        self.end_of(name, value);
        Ok(())
    }

    /// Records the result of a step, after everything that was sent meanwhile.
    fn end_of(&self, name: String, value: Result<Value, String>) {
        let mut kept = lock(&self.kept);
        kept.iter().skip(self.at.load(Ordering::Relaxed)).for_each(|said| self.note(said));
        kept.push_back(Entry::Step { name, value });
        self.at.store(kept.len(), Ordering::Relaxed);
    }

    /// Takes a step whose work is done at once.
    fn at_once<T: Kept>(&self, name: String, work: impl FnOnce() -> T) -> Result<T, StepError> {
        if let Some(value) = self.known(&name)? {
            return read(value);
        }
        self.dies_before()?;
        let value = serde_json::to_value(work()).map_err(|error| error.to_string());
        self.keep(name, value.clone())?;
        read(value)
    }
}

fn read<T: Kept>(value: Result<Value, String>) -> Result<T, StepError> {
    let read = value.and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()));
    read.map_err(StepError::terminal)
}

impl Journal for Memory {
    fn run<T: Kept>(
        &self,
        name: String,
        tries: Tries,
        mut work: Work<T>,
    ) -> BoxFuture<'_, Result<T, StepError>> {
        let _ = tries;
        Box::pin(async move {
            if let Some(value) = self.known(&name)? {
                return read(value);
            }
            self.dies_before()?;
            let done = (&mut work).await;
            let value = match done {
                Ok(value) => serde_json::to_value(value).map_err(|error| error.to_string()),
                Err(Again(text)) => Err(text),
            };
            self.keep(name, value.clone())?;
            read(value)
        })
    }
}

impl RunJournal for Memory {
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<ToolsEnd, StepError>> {
        Box::pin(async move {
            let calls = calls.into_iter().map(|call| {
                let kept = lock(&self.shared.calls).entry(call.key.clone()).or_default().clone();
                let journal = Memory {
                    served: self.served.clone(),
                    shared: self.shared.clone(),
                    kept,
                    at: AtomicUsize::new(0),
                    heard: Mutex::default(),
                };
                let part = self.served.running.enter(&call.key.run);
                async move { call_tool(&journal.served, &journal, call, None, part.token.clone()).await }
            });
            // Each call has a journal of its own, so their order does not matter.
            let ends = join_all(calls).await;
            // What was sent meanwhile was sent before the last call returned.
            if self.known("tools")?.is_none() && ends.iter().all(Result::is_ok) {
                self.end_of("tools".to_owned(), Ok(Value::Null));
            }
            let mut stop = None;
            let mut some = Vec::with_capacity(ends.len());
            for end in ends {
                let end = end?;
                stop = stop.or_else(|| end.stop.clone());
                some.push(Some(end));
            }
            Ok(ToolsEnd { ends: some, stop })
        })
    }

    fn hear(&self) -> BoxFuture<'_, Result<Heard, StepError>> {
        Box::pin(std::future::ready(Ok(std::mem::take(&mut *lock(&self.heard)))))
    }

    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>> {
        Box::pin(async move {
            self.at_once("close".to_owned(), || {
                let kept = lock(&self.kept);
                let is_last = self.at.load(Ordering::Relaxed) >= kept.len();
                self.shared.is_closed.store(is_last, Ordering::Relaxed);
                is_last
            })
        })
    }

    fn drain(&self, take: Take) -> BoxFuture<'_, Result<Drained, StepError>> {
        Box::pin(async move { self.at_once("drain".to_owned(), || lock(&self.shared.inbox).drain(take)) })
    }

    fn wait(&self, asks: Vec<PendingAsk>, _within: Duration) -> BoxFuture<'_, Result<Waited, StepError>> {
        Box::pin(async move {
            let answers = self.at_once("wait".to_owned(), || {
                let known = lock(&self.shared.answers);
                asks.iter().map(|ask| known.get(ask.id()).cloned()).collect::<Vec<_>>()
            })?;
            let stop = self.at_once("waited".to_owned(), || lock(&self.shared.stop).clone())?;
            Ok(Waited { answers, stop })
        })
    }
}
