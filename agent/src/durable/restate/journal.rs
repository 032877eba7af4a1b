//! The journal of an invocation.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use restate_sdk::context::{
    Context, ContextAwakeables as _, ContextClient as _, ContextSideEffects as _, ContextSignals as _,
    ContextTimers as _, DurableFuture, DurableFuturesUnordered, RequestTarget, RunFuture as _,
    RunRetryPolicy,
};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use serde_json::Value;

use super::super::journal::{
    Again, Drained, Heard, Journal, Kept, Stepped, Take, ToolRequest, ToolsEnd, Tries, Waited, Work,
};
use super::super::steps::Served;
use super::{CANCEL, INBOX, REFUSED, TOOLS, mail};
use crate::BoxFuture;
use crate::durable::PendingAsk;
use crate::loop_core::CallEnd;
use crate::steps::StepError;

/// One invocation of a run, or of one of its calls.
pub(super) struct Invocation<'c> {
    context: Context<'c>,
    served: Arc<Served>,
    run: Arc<str>,
    /// Those of a run; taken while they are at work.
    ears: Mutex<Option<Ears<'c>>>,
}

/// Something that the engine waits for.
type Waiting<'c, T> = Pin<Box<dyn DurableFuture<Output = Result<T, TerminalError>> + Send + 'c>>;

/// What is said to a run comes as signals. The engine hands them over in the order of the journal: those that stand before the end of
/// a step are there when the step is, and those behind it are not, in this process as in any that replays it. So to hear is to
/// look which of them are there, and it ends with `opened`, which is there from the beginning and never taken.
struct Ears<'c> {
    refused: Waiting<'c, ()>,
    cancel: Waiting<'c, Arc<str>>,
    mail: Waiting<'c, ()>,
    /// How many of those were taken.
    mails: u32,
    opened: Waiting<'c, ()>,
    heard: Heard,
}

/// What is there.
enum Said {
    Refused,
    Cancel,
    Mail,
    Nothing,
}

/// A future of the engine that is looked at and not taken: `select!` awaits the one that is there, and this one is done then.
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

impl Ears<'_> {
    async fn next(&mut self) -> Result<Said, TerminalError> {
        Ok(restate_sdk::select! {
            () = Look(&mut self.refused) => Said::Refused,
            () = Look(&mut self.cancel) => Said::Cancel,
            () = Look(&mut self.mail) => Said::Mail,
            () = Look(&mut self.opened) => Said::Nothing,
        })
    }
}

impl<'c> Invocation<'c> {
    pub(super) fn new(context: Context<'c>, served: Arc<Served>, run: &str) -> Self {
        Self { context, served, run: run.into(), ears: Mutex::default() }
    }

    /// The run begins, with this owner; false when there is another one of its name.
    pub(super) async fn open(&self, owner: String) -> Result<bool, TerminalError> {
        let target = RequestTarget::object(INBOX, &*self.run, "open");
        let opened = self.context.request::<_, Json<()>>(target, Json(owner)).call();
        let mut ears = Ears {
            refused: self.signal(REFUSED),
            cancel: self.cancelled(|reason| reason),
            mail: self.signal(&mail(0)),
            mails: 0,
            opened: Box::pin(opened.map_ok(|Json(())| ())),
            heard: Heard::default(),
        };
        let is_refused = self.listen(&mut ears).await?;
        *self.ears() = Some(ears);
        Ok(!is_refused)
    }

    /// Hears what is there; whether the run is refused.
    async fn listen(&self, ears: &mut Ears<'c>) -> Result<bool, TerminalError> {
        loop {
            match ears.next().await? {
                Said::Nothing => return Ok(false),
                Said::Refused => return Ok(true),
                Said::Cancel => {
                    let reason = (&mut ears.cancel).await?;
                    ears.cancel = self.cancelled(|reason| reason);
                    ears.heard.stop.get_or_insert(reason);
                }
                Said::Mail => {
                    (&mut ears.mail).await?;
                    ears.mails = ears.mails.wrapping_add(1);
                    ears.mail = self.signal(&mail(ears.mails));
                    ears.heard.has_mail = true;
                }
            }
        }
    }

    fn ears(&self) -> MutexGuard<'_, Option<Ears<'c>>> {
        // Nothing that can panic runs under it.
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, name: &str) -> Waiting<'c, ()> {
        Box::pin(self.context.signal::<Json<()>>(name).map_ok(|Json(())| ()))
    }

    /// Asks the run's inbox.
    async fn inbox<Q, A>(&self, handler: &str, question: Q) -> Result<A, TerminalError>
    where
        Q: Kept,
        A: Kept,
    {
        ask_inbox(&self.context, &self.run, handler, question).await
    }

    fn cancelled<T: 'c>(&self, then: impl FnOnce(Arc<str>) -> T + Send + 'c) -> Waiting<'c, T> {
        Box::pin(self.context.signal::<Json<Arc<str>>>(CANCEL).map_ok(move |Json(reason)| then(reason)))
    }

    fn call(&self, at: usize, request: ToolRequest) -> Waiting<'c, Came<Stepped<CallEnd>>> {
        let (target, key) = (RequestTarget::service(TOOLS, "call"), request.key.to_string());
        let called = self.context.request::<_, Json<Stepped<CallEnd>>>(target, Json(request));
        let called = called.idempotency_key(key).call();
        // Whatever became of it, its siblings go on.
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

/// Asks the inbox of a run.
pub(super) async fn ask_inbox<Q: Kept, A: Kept>(
    context: &Context<'_>,
    run: &str,
    handler: &str,
    question: Q,
) -> Result<A, TerminalError> {
    let target = RequestTarget::object(INBOX, run, handler);
    let asked = context.request::<_, Json<A>>(target, Json(question)).call();
    asked.await.map(|Json(answer)| answer)
}

/// What comes first of what is waited for.
enum Came<T> {
    Here(usize, Option<T>),
    TimeIsUp,
    Stop(Arc<str>),
}

impl Journal for Invocation<'_> {
    fn run<T: Kept>(&self, name: String, tries: Tries, work: Work<T>) -> BoxFuture<'_, Result<T, StepError>> {
        let policy = RunRetryPolicy::new()
            .initial_delay(tries.pause)
            .exponentiation_factor(2.0)
            .max_delay(Duration::from_secs(30))
            .max_attempts(tries.most);
        let running = self
            .context
            .run(move || async move { work.await.map(Json).map_err(|Again(text)| HandlerError::from(text)) });
        let running = running.name(name).retry_policy(policy);
        Box::pin(async move { running.await.map(|Json(value)| value).map_err(step_error) })
    }

    fn call_tools(&self, calls: Vec<ToolRequest>) -> BoxFuture<'_, Result<ToolsEnd, StepError>> {
        Box::pin(async move {
            let mut ends: Vec<_> = calls.iter().map(|_| None).collect();
            let mut left = calls.len();
            let mut calls = calls.into_iter().enumerate();
            let mut waiting = DurableFuturesUnordered::new();
            waiting.push(self.cancelled(Came::Stop));
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
                    // Those that run are told by their token, and get a while to end by themselves.
                    Came::Stop(reason) => {
                        stop = Some(reason);
                        left -= calls.len();
                        let grace = self.served.steps.cancel_grace() + Duration::from_secs(1);
                        waiting.push(Box::pin(self.context.sleep(grace).map_ok(|()| Came::TimeIsUp)));
                    }
                    Came::TimeIsUp => break,
                }
            }
            Ok(ToolsEnd { ends, stop })
        })
    }

    fn hear(&self) -> BoxFuture<'_, Result<Heard, StepError>> {
        Box::pin(async move {
            // One call of a run hears nothing: the run does.
            let Some(mut ears) = self.ears().take() else { return Ok(Heard::default()) };
            let is_refused = self.listen(&mut ears).await.map_err(step_error)?;
            let heard = std::mem::take(&mut ears.heard);
            *self.ears() = Some(ears);
            if is_refused { Err(StepError::terminal("there is another run of this name")) } else { Ok(heard) }
        })
    }

    fn close(&self) {
        let target = RequestTarget::object(INBOX, &*self.run, "close");
        drop(self.context.request::<_, ()>(target, ()).send());
    }

    fn drain(&self, take: Take) -> BoxFuture<'_, Result<Drained, StepError>> {
        Box::pin(async move { self.inbox("drain", take).await.map_err(step_error) })
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
            let () = self.inbox("ask", promised).await.map_err(step_error)?;
            waiting.push(self.cancelled(Came::Stop));
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
                    Came::TimeIsUp => break,
                }
            }
            // Nobody is asked any more.
            let nothing: Vec<(PendingAsk, String)> = Vec::new();
            let () = self.inbox("ask", nothing).await.map_err(step_error)?;
            Ok(Waited { answers, stop })
        })
    }
}

/// The status that the engine gives to what it cancelled.
const CANCELLED: u16 = 409;

/// What the engine says for good. What it says for now does not get here: the invocation ends, and comes back.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn step_error(error: TerminalError) -> StepError {
    if error.code() == CANCELLED {
        StepError::cancelled("cancelled by the engine")
    } else {
        StepError::terminal(error.message())
    }
}
