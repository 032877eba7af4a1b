//! The journal of an invocation.

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
    Again, Drained, Heard, Journal, Kept, RunJournal, Stepped, Take, ToolRequest, ToolsEnd, Tries, Waited,
    Work,
};
use super::super::steps::Served;
use super::TOOLS;
use super::handlers::inbox;
use super::slots::{News, Slot, What};
use crate::BoxFuture;
use crate::durable::PendingAsk;
use crate::loop_core::CallEnd;
use crate::steps::StepError;

/// The invocation of one call.
pub(super) struct CallInvocation<'c> {
    pub(super) context: Context<'c>,
}

/// The invocation of a run.
pub(super) struct RunInvocation<'c> {
    context: &'c WorkflowContext<'c>,
    served: Arc<Served>,
    run: Arc<str>,
    /// What the run listens with. Taken out while it is in use.
    ears: Mutex<Option<Ears<'c>>>,
}

/// A future that the engine completes.
type Waiting<'c, T> = Pin<Box<dyn DurableFuture<Output = Result<T, TerminalError>> + Send + 'c>>;

/// Receives what is sent to the run.
///
/// The engine delivers what was sent in the order of the journal: what was recorded before the end of a step is ready once the step is
/// done, and what was recorded after it is not, in this process and in any that replays it. To receive is therefore to check whether `news`
/// is ready, in a race with `begun`, which is ready from the beginning and never taken.
struct Ears<'c> {
    slot: &'c Slot,
    news: Waiting<'c, News>,
    begun: Waiting<'c, ()>,
    heard: Heard,
    /// Whether the run has taken a step. Before that nothing is ready, and checking would wait.
    has_stepped: bool,
    /// Whether the run has an inbox.
    has_inbox: bool,
}

/// Whether something was sent.
enum Said {
    News,
    Nothing,
}

/// A future of the engine that is checked and not taken: `select!` awaits whichever is ready, and this wrapper is done then.
struct Look<'f, F>(&'f mut F);

impl<F> Deref for Look<'_, F> {
    type Target = F;

    fn deref(&self) -> &F {
        self.0
    }
}

impl<F> Future for Look<'_, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl<'c> Ears<'c> {
    async fn next(&mut self) -> Result<Said, TerminalError> {
        Ok(restate_sdk::select! {
            () = Look(&mut self.news) => Said::News,
            () = Look(&mut self.begun) => Said::Nothing,
        })
    }

    /// Receives everything that is ready.
    async fn listen(&mut self, context: &'c WorkflowContext<'c>) -> Result<(), TerminalError> {
        if self.has_stepped {
            while let Said::News = self.next().await? {
                self.take(context).await?;
            }
        }
        Ok(())
    }

    /// Takes what the slot holds, waiting for it if necessary. Returns true if the run closed the slot.
    async fn take(&mut self, context: &'c WorkflowContext<'c>) -> Result<bool, TerminalError> {
        let news = (&mut self.news).await?;
        match news.what {
            What::Closed => return Ok(true),
            What::Mail => self.heard.has_mail = true,
            What::Stop(reason) => {
                self.heard.stop.get_or_insert(reason);
            }
        }
        self.has_inbox = true;
        self.slot = self.slot.next();
        self.news = news_of(context, self.slot);
        Ok(false)
    }
}

fn news_of<'c>(context: &'c WorkflowContext<'c>, slot: &'c Slot) -> Waiting<'c, News> {
    Box::pin(context.promise::<Json<News>>(slot.name()).map_ok(|Json(news)| news))
}

impl<'c> RunInvocation<'c> {
    pub(super) fn new(
        context: &'c WorkflowContext<'c>,
        slot: &'c Slot,
        served: Arc<Served>,
        run: Arc<str>,
    ) -> Self {
        let ears = Ears {
            slot,
            news: news_of(context, slot),
            // The cheapest future that the engine offers.
            begun: Box::pin(context.sleep(Duration::ZERO)),
            heard: Heard::default(),
            has_stepped: false,
            has_inbox: false,
        };
        Self { context, served, run, ears: Mutex::new(Some(ears)) }
    }

    fn ears(&self) -> MutexGuard<'_, Option<Ears<'c>>> {
        lock(&self.ears)
    }

    /// Notes that a step is taken.
    fn steps(&self, asks_inbox: bool) {
        if let Some(ears) = &mut *self.ears() {
            ears.has_stepped = true;
            ears.has_inbox |= asks_inbox;
        }
    }

    /// Sends a request to the run's inbox.
    async fn inbox<Q: Kept, A: Kept>(&self, handler: &str, question: Q) -> Result<A, StepError> {
        self.steps(true);
        let asked = self.context.request::<_, Json<A>>(inbox(&self.run, handler), Json(question)).call();
        asked.await.map(|Json(answer)| answer).map_err(step_error)
    }

    /// Waits for the next news, without taking it from the ears, which receive it later.
    fn said<T: 'c>(&self, after: Option<&'c Slot>) -> Option<(&'c Slot, Waiting<'c, Came<T>>)> {
        let slot = match after {
            Some(slot) => slot.next(),
            None => self.ears().as_ref()?.slot,
        };
        let news = news_of(self.context, slot).map_ok(|news| match news.what {
            What::Stop(reason) => Came::Stop(reason),
            What::Mail | What::Closed => Came::Mail,
        });
        Some((slot, Box::pin(news)))
    }

    fn call(&self, at: usize, request: ToolRequest) -> Waiting<'c, Came<Stepped<CallEnd>>> {
        let (target, key) = (RequestTarget::service(TOOLS, "call"), request.key.to_string());
        let called = self.context.request::<_, Json<Stepped<CallEnd>>>(target, Json(request));
        let called = called.idempotency_key(key).call();
        // Whatever happens to this call, the other calls of the batch continue.
        Box::pin(called.map(move |ended| {
            Ok(Came::Here(
                at,
                match ended {
                    Ok(Json(end)) => Some(end),
                    Err(error) => {
                        tracing::error!(%error, "the engine lost a call");
                        None
                    }
                },
            ))
        }))
    }
}

/// What happened first, of everything that is waited for.
enum Came<T> {
    Here(usize, Option<T>),
    TimeIsUp,
    Stop(Arc<str>),
    /// Something arrived that does not end the wait.
    Mail,
}

/// A step of either kind of invocation. A value made by this process is used directly, not decoded from what the engine recorded.
macro_rules! step {
    ($context:expr, $name:expr, $tries:expr, $work:expr) => {{
        let (name, tries, work) = ($name, $tries, $work);
        let policy = RunRetryPolicy::new()
            .initial_delay(tries.pause)
            .exponentiation_factor(2.0)
            .max_delay(Duration::from_secs(30))
            .max_attempts(tries.most);
        let made = Arc::new(Mutex::new(None));
        let making = made.clone();
        let running = $context.run(move || async move {
            let value = work.await.map_err(|Again(text)| HandlerError::from(text))?;
            let remembered = serde_json::to_vec(&value)?;
            *lock(&making) = Some(value);
            Ok(remembered)
        });
        let running = running.name(&name).retry_policy(policy);
        Box::pin(async move {
            let remembered: Vec<u8> = running.await.map_err(step_error)?;
            let made = lock(&made).take();
            made.map_or_else(|| read(&name, &remembered), Ok)
        })
    }};
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic runs while these locks are held.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another version of the program may have written it. The engine retries, until a version that can read it takes over.
fn read<T: Kept>(name: &str, remembered: &[u8]) -> Result<T, StepError> {
    let read = serde_json::from_slice(remembered);
    read.map_err(|error| StepError::engine(format!("what is remembered of {name} cannot be read: {error}")))
}

impl Journal for CallInvocation<'_> {
    fn run<T: Kept>(&self, name: String, tries: Tries, work: Work<T>) -> BoxFuture<'_, Result<T, StepError>> {
        step!(self.context, name, tries, work)
    }
}

impl Journal for RunInvocation<'_> {
    fn run<T: Kept>(&self, name: String, tries: Tries, work: Work<T>) -> BoxFuture<'_, Result<T, StepError>> {
        self.steps(false);
        step!(self.context, name, tries, work)
    }
}

impl RunJournal for RunInvocation<'_> {
    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<ToolsEnd, StepError>> {
        Box::pin(async move {
            self.steps(false);
            let mut ends: Vec<_> = calls.iter().map(|_| None).collect();
            let mut left = calls.len();
            let mut calls = calls.into_iter().enumerate();
            let mut waiting = DurableFuturesUnordered::new();
            let mut at_slot = self.said(None).map(|(slot, news)| {
                waiting.push(news);
                slot
            });
            for (at, call) in calls.by_ref().take(self.served.steps.max_concurrency()) {
                waiting.push(self.call(at, call));
            }
            let mut stop = None;
            while left > 0 {
                let Some((_, came)) = waiting.next().await.map_err(step_error)? else { break };
                match came.map_err(step_error)? {
                    Came::Here(at, end) => {
                        left -= 1;
                        if let Some(place) = ends.get_mut(at) {
                            *place = end;
                        }
                        if stop.is_none()
                            && let Some((at, call)) = calls.next()
                        {
                            waiting.push(self.call(at, call));
                        }
                    }
                    // Running calls are cancelled by their token, and get some time to end by themselves.
                    Came::Stop(reason) => {
                        stop = Some(reason);
                        left -= calls.len();
                        let grace = self.served.steps.cancel_grace() + Duration::from_secs(1);
                        waiting.push(Box::pin(self.context.sleep(grace).map_ok(|()| Came::TimeIsUp)));
                    }
                    Came::Mail => {
                        at_slot = self.said(at_slot).map(|(slot, news)| {
                            waiting.push(news);
                            slot
                        });
                    }
                    Came::TimeIsUp => break,
                }
            }
            Ok(ToolsEnd { ends, stop })
        })
    }

    fn hear(&self) -> BoxFuture<'_, Result<Heard, StepError>> {
        Box::pin(async move {
            let Some(mut ears) = self.ears().take() else { return Ok(Heard::default()) };
            let listened = ears.listen(self.context).await;
            let heard = if listened.is_ok() { std::mem::take(&mut ears.heard) } else { Heard::default() };
            // Put back in any case: the run closes the slot at its end.
            *self.ears() = Some(ears);
            listened.map(|()| heard).map_err(step_error)
        })
    }

    fn drain(&self, take: Take) -> BoxFuture<'_, Result<Drained, StepError>> {
        Box::pin(async move { self.inbox("drain", take).await })
    }

    fn close(&self) -> BoxFuture<'_, Result<bool, StepError>> {
        Box::pin(async move {
            let Some(mut ears) = self.ears().take() else { return Ok(true) };
            let closed = News { what: What::Closed, by: self.context.invocation_id().to_owned() };
            self.context.resolve_promise(ears.slot.name(), Json(closed));
            let is_closed = ears.take(self.context).await;
            if matches!(is_closed, Ok(true)) && ears.has_inbox {
                drop(self.context.request::<_, ()>(inbox(&self.run, "forget"), ()).send());
            }
            *self.ears() = Some(ears);
            is_closed.map_err(step_error)
        })
    }

    fn wait(&self, asks: Vec<PendingAsk>, within: Duration) -> BoxFuture<'_, Result<Waited, StepError>> {
        Box::pin(async move {
            let mut answers: Vec<Option<Value>> = asks.iter().map(|_| None).collect();
            let mut waiting: DurableFuturesUnordered<Waiting<'_, Came<Value>>> =
                DurableFuturesUnordered::new();
            let mut promised = Vec::with_capacity(asks.len());
            for (at, ask) in asks.into_iter().enumerate() {
                let (promise, answer) = self.context.awakeable::<Json<Value>>();
                promised.push((ask, promise));
                waiting.push(Box::pin(answer.map_ok(move |Json(value)| Came::Here(at, Some(value)))));
            }
            let mut left = promised.len();
            let () = self.inbox("ask", promised).await?;
            let mut at_slot = self.said(None).map(|(slot, news)| {
                waiting.push(news);
                slot
            });
            waiting.push(Box::pin(self.context.sleep(within).map_ok(|()| Came::TimeIsUp)));
            let mut stop = None;
            while left > 0 {
                let Some((_, came)) = waiting.next().await.map_err(step_error)? else { break };
                match came.map_err(step_error)? {
                    Came::Here(at, answer) => {
                        left -= 1;
                        if let Some(place) = answers.get_mut(at) {
                            *place = answer;
                        }
                    }
                    Came::Stop(reason) => {
                        stop = Some(reason);
                        break;
                    }
                    Came::Mail => {
                        at_slot = self.said(at_slot).map(|(slot, news)| {
                            waiting.push(news);
                            slot
                        });
                    }
                    Came::TimeIsUp => break,
                }
            }
            // Nothing is asked any more.
            let nothing: Vec<(PendingAsk, String)> = Vec::new();
            let () = self.inbox("ask", nothing).await?;
            Ok(Waited { answers, stop })
        })
    }
}

/// The status of invocations that the engine cancelled.
const CANCELLED: u16 = 409;

/// Converts a permanent error of the engine. Temporary errors do not get here: the invocation ends and is retried.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn step_error(error: TerminalError) -> StepError {
    if error.code() == CANCELLED {
        StepError::cancelled("cancelled by the engine")
    } else {
        StepError::terminal(error.message())
    }
}
