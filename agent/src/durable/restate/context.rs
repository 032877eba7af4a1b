//! The journals (recorded steps) of a run and of a call, which Restate keeps. The context of a Restate invocation gives access to them.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use restate_sdk::context::{
    Context, ContextAwakeables as _, ContextClient as _, ContextPromises as _, ContextSideEffects as _,
    ContextTimers as _, DurableFuture, DurableFuturesUnordered, RequestTarget, RunFuture as _,
    RunRetryPolicy, WorkflowContext,
};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use serde_json::Value;

use super::super::journal::{
    Answers, BatchEnd, ChildWait, InboxBatch, InboxRequest, Journal, ReceivedNotices, Recordable,
    RetryPolicy, RunJournal, StepResult, ToolRequest, Transient, Work,
};
use super::super::play::SharedService;
use super::handlers::{CancelRequest, inbox};
use super::slots::{Notice, NoticeKind, NoticeSlot};
use super::{AGENT, TOOLS, countable};
use crate::durable::{Outcome, PendingAsk, RunRequest};
use crate::loop_core::{CallEnd, Queue, ReservedPart, SteeringPolicy, TreeReservation};
use crate::runtime::{CHILD_GRACE, ChildReport, NEW_MESSAGE};
use crate::steps::StepError;
use crate::tool::BoxFuture;

/// The journal of one tool call that has its own invocation, outside the invocation of the run.
pub(super) struct CallInvocation<'c> {
    pub(super) context: Context<'c>,
}

pub(super) struct RunInvocation<'c> {
    context: &'c WorkflowContext<'c>,
    served: Arc<SharedService>,
    run: Arc<str>,
    /// `None` while a future uses the receiver.
    receiver: Mutex<Option<NoticeReceiver<'c>>>,
    children: Mutex<ChildRuns<'c>>,
    /// The id of the promise by which the parent learns that this run waits.
    waits: Mutex<Option<String>>,
}

#[derive(Default)]
struct ChildRuns<'c> {
    names: Vec<String>,
    running: Vec<EngineFuture<'c, FirstReady<WaitEnd>>>,
    next: VecDeque<(usize, RunRequest)>,
}

enum WaitEnd {
    /// A child began to wait, for example for an answer, so another child may start.
    Waits,
    Answer(Value),
    Late,
    Child(Box<ChildReport>),
}

type EngineFuture<'c, T> = Pin<Box<dyn DurableFuture<Output = Result<T, TerminalError>> + Send + 'c>>;

type Waiting<'c, T> = DurableFuturesUnordered<EngineFuture<'c, FirstReady<T>>>;

/// The receiver of a run's notices (of messages or cancellation).
///
/// At the end of a step, all notices that the engine recorded before this step ended are ready. Each replay has the same notices ready at
/// this point. Therefore a race between `notice` and `always_ready` tells whether there is a notice: the race never waits, and has the
/// same winner in each replay.
struct NoticeReceiver<'c> {
    slot: &'c NoticeSlot,
    notice: EngineFuture<'c, Notice>,
    always_ready: EngineFuture<'c, ()>,
    received: ReceivedNotices,
    /// Whether the run has taken a step. Before that, `always_ready` is not complete, so [`is_filled`](Self::is_filled) would wait.
    has_stepped: bool,
    /// Whether the run has an inbox, which the run must clear at its end.
    has_inbox: bool,
}

/// A wrapper with which `select!` finds out that a future is ready, but does not take its value. The value can be awaited later.
struct UnmovedFuture<'f, F>(&'f mut F);

impl<F> Deref for UnmovedFuture<'_, F> {
    type Target = F;

    fn deref(&self) -> &F {
        self.0
    }
}

impl<F> Future for UnmovedFuture<'_, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl<'c> NoticeReceiver<'c> {
    /// Returns whether a notice is in the current [`NoticeSlot`], without waiting.
    async fn is_filled(&mut self) -> Result<bool, TerminalError> {
        Ok(restate_sdk::select! {
            () = UnmovedFuture(&mut self.notice) => true,
            () = UnmovedFuture(&mut self.always_ready) => false,
        })
    }

    async fn receive(&mut self, context: &'c WorkflowContext<'c>) -> Result<(), TerminalError> {
        if self.has_stepped {
            while self.is_filled().await? {
                self.receive_next(context).await?;
            }
        }
        Ok(())
    }

    /// Waits for the next notice. Returns true if it is [`NoticeKind::Closed`], which the run itself sends.
    async fn receive_next(&mut self, context: &'c WorkflowContext<'c>) -> Result<bool, TerminalError> {
        let notice = (&mut self.notice).await?;
        match notice.kind {
            NoticeKind::Closed => return Ok(true),
            NoticeKind::Mail => self.received.has_mail = true,
            NoticeKind::Stop(reason) => {
                self.received.stop.get_or_insert(reason);
            }
        }
        self.has_inbox = true;
        self.slot = self.slot.next();
        self.notice = notice_in(context, self.slot);
        Ok(false)
    }
}

fn notice_in<'c>(context: &'c WorkflowContext<'c>, slot: &'c NoticeSlot) -> EngineFuture<'c, Notice> {
    Box::pin(context.promise::<Json<Notice>>(slot.name()).map_ok(|Json(notice)| notice))
}

impl<'c> RunInvocation<'c> {
    pub(super) fn new(
        context: &'c WorkflowContext<'c>,
        slot: &'c NoticeSlot,
        served: Arc<SharedService>,
        run: Arc<str>,
        waits: Option<String>,
    ) -> Self {
        let receiver = NoticeReceiver {
            slot,
            notice: notice_in(context, slot),
            // A timer of zero is the cheapest future that needs no event from outside.
            always_ready: Box::pin(context.sleep(Duration::ZERO)),
            received: ReceivedNotices::default(),
            has_stepped: false,
            has_inbox: false,
        };
        let receiver = Mutex::new(Some(receiver));
        Self { context, served, run, receiver, children: Mutex::default(), waits: Mutex::new(waits) }
    }

    fn receiver(&self) -> MutexGuard<'_, Option<NoticeReceiver<'c>>> {
        lock(&self.receiver)
    }

    fn record_step(&self, uses_inbox: bool) {
        if let Some(receiver) = &mut *self.receiver() {
            receiver.has_stepped = true;
            receiver.has_inbox |= uses_inbox;
        }
    }

    async fn call_inbox<Q: Recordable, A: Recordable>(
        &self,
        handler: &str,
        request: Q,
    ) -> Result<A, StepError> {
        self.record_step(true);
        let response = self.context.request::<_, Json<A>>(inbox(&self.run, handler), Json(request)).call();
        response.await.map(|Json(response)| response).map_err(step_error)
    }

    /// Adds the wait for one notice to `waiting`, and returns the slot of the notice. This is the slot that follows `after`. If `after` is
    /// `None`, it is the current slot of the receiver, or `None` while another future uses the receiver.
    fn watch_slot<T: 'c>(
        &self,
        after: Option<&'c NoticeSlot>,
        waiting: &mut Waiting<'c, T>,
    ) -> Option<&'c NoticeSlot> {
        let slot = match after {
            Some(slot) => slot.next(),
            None => self.receiver().as_ref()?.slot,
        };
        let notice = notice_in(self.context, slot).map_ok(|notice| match notice.kind {
            NoticeKind::Stop(reason) => FirstReady::Stop(reason),
            NoticeKind::Mail | NoticeKind::Closed => FirstReady::Mail,
        });
        waiting.push(Box::pin(notice));
        Some(slot)
    }

    fn start_child(&self, at: usize, request: RunRequest) -> EngineFuture<'c, FirstReady<WaitEnd>> {
        let target = RequestTarget::workflow(AGENT, &request.run, "run");
        let called = self.context.request::<_, Json<Outcome>>(target, Json(request)).call();
        Box::pin(called.map(move |ended| {
            let report = match ended {
                Ok(Json(outcome)) => outcome.report,
                Err(error) => {
                    tracing::error!(%error, "the engine lost the run of a call");
                    None
                }
            };
            Ok(FirstReady::Done(at, report.map(WaitEnd::Child)))
        }))
    }

    /// Publishes requests in the inbox, and adds their answers to `waiting`. Returns the number of requests.
    async fn publish(
        &self,
        asks: Vec<PendingAsk>,
        waiting: &mut Waiting<'c, WaitEnd>,
    ) -> Result<usize, StepError> {
        let mut requests = Vec::with_capacity(asks.len());
        for (at, ask) in asks.into_iter().enumerate() {
            let (promise, answer) = self.context.awakeable::<Json<Value>>();
            requests.push((ask, promise));
            let answered = move |Json(value)| FirstReady::Done(at, Some(WaitEnd::Answer(value)));
            waiting.push(Box::pin(answer.map_ok(answered)));
        }
        let asked = requests.len();
        if asked > 0 {
            let () = self.call_inbox("ask", requests).await?;
        }
        Ok(asked)
    }

    /// Tells the parent that this run only waits, so that the parent can start another run.
    fn give_up_place(&self) {
        if let Some(promise) = lock(&self.waits).take() {
            self.context.resolve_awakeable(&promise, Json(Value::Null));
        }
    }

    fn cancel_children<'n>(&self, names: impl Iterator<Item = &'n String>, reason: &Arc<str>) {
        for name in names {
            let target = RequestTarget::workflow(AGENT, name, "cancel");
            let request = Json(CancelRequest { reason: Some(reason.clone()) });
            drop(self.context.request::<_, Json<bool>>(target, request).send());
        }
    }

    fn start_call(
        &self,
        at: usize,
        request: ToolRequest,
    ) -> EngineFuture<'c, FirstReady<StepResult<CallEnd>>> {
        let (target, key) = (RequestTarget::service(TOOLS, "call"), request.step_name());
        let called = self.context.request::<_, Json<StepResult<CallEnd>>>(target, Json(request));
        let called = called.idempotency_key(key).call();
        // An error ends this call only: the other calls of the batch continue.
        Box::pin(called.map(move |ended| {
            let end = match ended {
                Ok(Json(end)) => Some(end),
                Err(error) => {
                    tracing::error!(%error, "the engine lost a call");
                    None
                }
            };
            Ok(FirstReady::Done(at, end))
        }))
    }
}

/// The first event that ends or interrupts a wait of the run.
enum FirstReady<T> {
    /// The position of a call, request or child, and its result. `None` if the engine lost the call or child.
    Done(usize, Option<T>),
    TimedOut,
    Stop(Arc<str>),
    /// A notice about new messages arrived. The wait continues.
    Mail,
}

/// Performs a step. This is a macro, because the contexts of a run and of a call share no trait. The recorded value is decoded only if
/// this process did not compute the value itself.
macro_rules! step {
    ($context:expr, $name:expr, $retry:expr, $work:expr) => {{
        let (name, retry, work) = ($name, $retry, $work);
        let policy = RunRetryPolicy::new()
            .initial_delay(retry.pause)
            .exponentiation_factor(2.0)
            .max_delay(Duration::from_secs(30))
            .max_attempts(retry.max_attempts);
        let made = Arc::new(Mutex::new(None));
        let writer = made.clone();
        let running = $context.run(move || async move {
            let value = work.await.map_err(|Transient(text)| HandlerError::from(text))?;
            let recorded = serde_json::to_vec(&value)?;
            *lock(&writer) = Some(value);
            Ok(recorded)
        });
        let running = running.name(&name).retry_policy(policy);
        Box::pin(async move {
            let recorded: Vec<u8> = running.await.map_err(step_error)?;
            let made = lock(&made).take();
            made.map_or_else(|| decode(&name, &recorded), Ok)
        })
    }};
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs while a lock is held, so no lock is ever poisoned.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Decodes the recorded value of a step. Another version of the program may have written the value, so the error is temporary: the engine
/// retries until the running version can read the value.
fn decode<T: Recordable>(name: &str, recorded: &[u8]) -> Result<T, StepError> {
    serde_json::from_slice(recorded).map_err(|error| {
        StepError::engine(format!(
            "the recorded result of step `{name}` cannot be read ({error}); serve the version that wrote it"
        ))
    })
}

impl Journal for CallInvocation<'_> {
    fn run<T: Recordable>(
        &self,
        name: String,
        retry: RetryPolicy,
        work: Work<T>,
    ) -> BoxFuture<'_, Result<T, StepError>> {
        step!(self.context, name, retry, work)
    }
}

impl Journal for RunInvocation<'_> {
    fn run<T: Recordable>(
        &self,
        name: String,
        retry: RetryPolicy,
        work: Work<T>,
    ) -> BoxFuture<'_, Result<T, StepError>> {
        self.record_step(false);
        step!(self.context, name, retry, work)
    }
}

impl RunJournal for RunInvocation<'_> {
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<BatchEnd, StepError>> {
        Box::pin(async move {
            self.record_step(false);
            let mut ends: Vec<_> = calls.iter().map(|_| None).collect();
            let mut outstanding = calls.len();
            let mut calls = calls.into_iter().enumerate();
            let mut waiting = DurableFuturesUnordered::new();
            let mut watched = self.watch_slot(None, &mut waiting);
            for (at, call) in calls.by_ref().take(self.served.assistant.max_concurrency()) {
                waiting.push(self.start_call(at, call));
            }
            let mut stop = None;
            while outstanding > 0 {
                let Some((_, first)) = waiting.next().await.map_err(step_error)? else { break };
                match first.map_err(step_error)? {
                    FirstReady::Done(at, end) => {
                        outstanding -= 1;
                        if let Some(slot) = ends.get_mut(at) {
                            *slot = end;
                        }
                        if stop.is_none()
                            && let Some((at, call)) = calls.next()
                        {
                            waiting.push(self.start_call(at, call));
                        }
                    }
                    // The running calls are already cancelled, and may end within the grace period. The remaining calls do not start.
                    FirstReady::Stop(reason) => {
                        stop = Some(reason);
                        outstanding -= calls.len();
                        let grace =
                            self.served.assistant.cancel_grace().saturating_add(Duration::from_secs(1));
                        waiting.push(Box::pin(
                            self.context.sleep(countable(grace)).map_ok(|()| FirstReady::TimedOut),
                        ));
                    }
                    FirstReady::Mail => {
                        watched = self.watch_slot(watched, &mut waiting);
                    }
                    FirstReady::TimedOut => break,
                }
            }
            Ok(BatchEnd { ends, stop })
        })
    }

    fn receive(&self) -> BoxFuture<'_, Result<ReceivedNotices, StepError>> {
        Box::pin(async move {
            let Some(mut receiver) = self.receiver().take() else { return Ok(ReceivedNotices::default()) };
            let result = receiver.receive(self.context).await;
            let notices = result.map(|()| std::mem::take(&mut receiver.received));
            // The receiver is put back even after an error, because the run needs it to refuse further notices at its end.
            *self.receiver() = Some(receiver);
            notices.map_err(step_error)
        })
    }

    fn drain(&self, request: InboxRequest) -> BoxFuture<'_, Result<InboxBatch, StepError>> {
        Box::pin(async move { self.call_inbox("drain", request).await })
    }

    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>> {
        Box::pin(async move {
            let Some(mut receiver) = self.receiver().take() else { return Ok(true) };
            let closed = Notice { kind: NoticeKind::Closed, sender: self.context.invocation_id().to_owned() };
            self.context.resolve_promise(receiver.slot.name(), Json(closed));
            let is_closed = receiver.receive_next(self.context).await;
            if matches!(is_closed, Ok(true)) && receiver.has_inbox {
                drop(self.context.request::<_, ()>(inbox(&self.run, "forget"), ()).send());
            }
            *self.receiver() = Some(receiver);
            is_closed.map_err(step_error)
        })
    }

    fn reserve(
        &self,
        root: Arc<str>,
        wanted: TreeReservation,
    ) -> BoxFuture<'_, Result<ReservedPart, StepError>> {
        Box::pin(async move {
            self.record_step(root == self.run);
            let reserved =
                self.context.request::<_, Json<ReservedPart>>(inbox(&root, "reserve"), Json(wanted));
            reserved.call().await.map(|Json(reserved)| reserved).map_err(step_error)
        })
    }

    fn start_children(&self, children: Vec<RunRequest>) -> BoxFuture<'_, Result<(), StepError>> {
        Box::pin(async move {
            let names: Vec<String> = children.iter().map(|child| child.run.clone()).collect();
            let () = self.call_inbox("children", names.clone()).await?;
            let mut next: VecDeque<_> = children.into_iter().enumerate().collect();
            let most = self.served.assistant.max_concurrency();
            let mut running = Vec::new();
            if next.len() > most || lock(&self.waits).is_some() {
                for (at, request) in &mut next {
                    let (promise, waits) = self.context.awakeable::<Json<Value>>();
                    let (at, link) = (*at, request.child.as_mut());
                    if let Some(link) = link {
                        link.waits = Some(promise);
                    }
                    running.push(
                        Box::pin(waits.map_ok(move |_| FirstReady::Done(at, Some(WaitEnd::Waits)))) as _
                    );
                }
            }
            let first = next.len().min(most);
            running.extend(next.drain(..first).map(|(at, request)| self.start_child(at, request)));
            *lock(&self.children) = ChildRuns { names, running, next };
            Ok(())
        })
    }

    fn wait(
        &self,
        asks: Vec<PendingAsk>,
        timeout: Duration,
        children: ChildWait,
    ) -> BoxFuture<'_, Result<Answers, StepError>> {
        Box::pin(async move {
            let ChildRuns { names, running, mut next } = match children {
                ChildWait::Apart => ChildRuns::default(),
                ChildWait::Ended(_) | ChildWait::Stopped(_) => std::mem::take(&mut *lock(&self.children)),
            };
            let mut reports: Vec<Option<ChildReport>> = names.iter().map(|_| None).collect();
            let mut answers: Vec<Option<Value>> = asks.iter().map(|_| None).collect();
            let mut waiting: Waiting<'_, _> = DurableFuturesUnordered::new();
            let asked = self.publish(asks, &mut waiting).await?;
            let mut unanswered = asked;
            let mut watched = self.watch_slot(None, &mut waiting);
            if asked > 0 {
                let late = |()| FirstReady::Done(0, Some(WaitEnd::Late));
                waiting.push(Box::pin(self.context.sleep(countable(timeout)).map_ok(late)));
            }
            let most = self.served.assistant.max_concurrency();
            let mut open: BTreeSet<usize> = (0..names.len() - next.len()).collect();
            // The started runs that have never waited. Only these count against `max_concurrency`.
            let mut working = open.clone();
            for child in running {
                waiting.push(child);
            }
            let mut stop = None;
            let (mut stopping, mut steering) = children.into_causes();
            steering = steering.filter(|_| !open.is_empty());
            let mut steered = None;
            loop {
                if let Some(steering) = steering.take_if(|steering| steering.is_steered) {
                    steered = Some(names.len() - next.len());
                    next.clear();
                    if steering.policy == SteeringPolicy::CancelRunning {
                        stopping = Some(NEW_MESSAGE.into());
                    }
                }
                if let Some(reason) = stopping.take().filter(|_| stop.is_none()) {
                    // The wait ends early: the remaining runs are not started, and answers no longer count.
                    (unanswered, stop) = (0, Some(reason.clone()));
                    next.clear();
                    self.cancel_children(open.iter().filter_map(|at| names.get(*at)), &reason);
                    let grace = self.served.assistant.cancel_grace().saturating_add(CHILD_GRACE);
                    waiting.push(Box::pin(
                        self.context.sleep(countable(grace)).map_ok(|()| FirstReady::TimedOut),
                    ));
                }
                if unanswered == 0 && open.is_empty() {
                    break;
                }
                while working.len() < most
                    && let Some((at, request)) = next.pop_front()
                {
                    open.insert(at);
                    working.insert(at);
                    waiting.push(self.start_child(at, request));
                }
                if working.is_empty() && lock(&self.children).names.is_empty() {
                    self.give_up_place();
                }
                let Some((_, first)) = waiting.next().await.map_err(step_error)? else { break };
                match first.map_err(step_error)? {
                    FirstReady::Done(at, Some(WaitEnd::Answer(answer))) => {
                        unanswered = unanswered.saturating_sub(1);
                        if let Some(slot) = answers.get_mut(at) {
                            *slot = Some(answer);
                        }
                    }
                    FirstReady::Done(_, Some(WaitEnd::Late)) => unanswered = 0,
                    FirstReady::Done(at, Some(WaitEnd::Waits)) => {
                        working.remove(&at);
                    }
                    FirstReady::Done(at, child) => {
                        open.remove(&at);
                        working.remove(&at);
                        if let (Some(slot), Some(WaitEnd::Child(report))) = (reports.get_mut(at), child) {
                            *slot = Some(*report);
                        }
                    }
                    FirstReady::Stop(reason) => stopping = Some(reason),
                    FirstReady::Mail => {
                        watched = self.watch_slot(watched, &mut waiting);
                        if let Some(steering) = &mut steering {
                            let look = InboxRequest { queue: Queue::Steering, most: 0 };
                            let waits: InboxBatch = self.call_inbox("drain", look).await?;
                            steering.is_steered = waits.left.steering > steering.left;
                        }
                    }
                    FirstReady::TimedOut => break,
                }
            }
            if steered.is_some() {
                // A steering message stops only the children. Its reason, `NEW_MESSAGE`, must not cancel this run.
                stop = stop.filter(|reason: &Arc<str>| **reason != *NEW_MESSAGE);
            }
            if asked > 0 {
                // The pending requests are removed from the inbox, so that late answers are refused.
                let none: Vec<(PendingAsk, String)> = Vec::new();
                let () = self.call_inbox("ask", none).await?;
            }
            Ok(Answers { from_outside: answers, children: reports, steered, stop })
        })
    }
}

/// The error code of invocations that Restate cancelled.
const CANCELLED: u16 = 409;

/// Converts a permanent error of the engine. After a temporary error, the SDK ends the invocation and the engine retries it.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
fn step_error(error: TerminalError) -> StepError {
    if error.code() == CANCELLED {
        StepError::cancelled("cancelled by the engine")
    } else {
        StepError::terminal(error.message())
    }
}
