//! The steps of a run on an engine that records them.

mod again;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::journal::{
    InboxRequest, Journal, QueueLengths, Recordable, RetryPolicy, RunJournal, StepResult, ToolRequest,
    Transient,
};
use super::running::ActiveRuns;
use super::{Outcome, PendingAsk, RunRequest};
use crate::loop_core::{
    ApprovalRequest, CallEnd, Decided, Event, Prepared, Queue, Reply, TurnSummary, Verdict,
};
use crate::message::{LOST, Message, MessageList, ToolCall};
use crate::runtime::{StepCall, Stepwise};
use crate::steps::{StepError, Steps, drive};
use crate::{BoxFuture, CancelToken, Decision, FailureCode, InterruptionCode, StepKey, ToolOutcome};

/// What is served, the same for every run.
pub(super) struct Served {
    pub(super) steps: Stepwise,
    pub(super) running: ActiveRuns,
    /// How often a model is asked for one reply.
    pub(super) model_tries: RetryPolicy,
    /// How long a run waits for a decision or a result from outside.
    pub(super) patience: Duration,
}

/// Drives one run from its beginning to its end.
pub(super) async fn play<J: RunJournal>(
    served: &Arc<Served>,
    journal: &J,
    mut request: RunRequest,
    cancel: CancelToken,
) -> Result<Outcome, StepError> {
    let run: Arc<str> = std::mem::take(&mut request.run).into();
    let prompts = request.prompts();
    let mut core = served.steps.begin(&run, request.history, prompts);
    if let Some(turn) = request.recorded {
        // Recorded, because the tool's answer may change from one moment to the next.
        let asks = served.steps.follows_up(&turn);
        let says = Box::pin(std::future::ready(Ok(asks)));
        let asks: bool = journal.run(format!("{run}/recorded"), RetryPolicy::ONE_ATTEMPT, says).await?;
        core.record(turn, asks)?;
    }
    let steps = RunSteps { served, journal, cancel, state: Mutex::default() };
    let driven = drive(&mut core, &steps).await;
    // An engine that failed temporarily replays all of this.
    if !matches!(driven, Err(StepError::Engine { .. })) {
        steps.close().await?;
    }
    match driven {
        Ok(()) => {}
        Err(StepError::Cancelled { reason }) => core.abort(&reason),
        Err(error) => {
            // A hook of the application failed, which ends the run.
            let Some(failure) = steps.state().failure.take() else { return Err(error) };
            core.fail(&failure);
        }
    }
    while let Some(event) = core.take_event() {
        steps.event(event);
    }
    Ok(Outcome::of(&core))
}

/// Runs one call. If the tool is `once`, the call begins at most once: its begin is recorded first, under a name unique to this attempt. An
/// attempt that finds another name knows that the body may have begun before.
pub(super) async fn call_tool<J: Journal>(
    served: &Arc<Served>,
    journal: &J,
    request: ToolRequest,
    reply: Option<Arc<Message>>,
    cancel: CancelToken,
) -> Result<StepResult<CallEnd>, StepError> {
    let ToolRequest { key, call, text } = request;
    let name = key.to_string();
    let mut is_lost = false;
    if served.steps.is_once(&call) {
        let mine = crate::runtime::new_id("attempt");
        let own = mine.clone();
        let begins = Box::pin(async move { Ok(own) });
        let begun: String = journal.run(format!("{name}/begin"), RetryPolicy::ONE_ATTEMPT, begins).await?;
        is_lost = begun != mine;
    }
    let (same, token) = (served.clone(), cancel.clone());
    let work = Box::pin(async move {
        let value = same.steps.call(StepCall { key, call, reply, text, is_lost }, &token).await;
        Ok(StepResult { value, stop: token.reason() })
    });
    journal.run(name, RetryPolicy::ONE_ATTEMPT, work).await
}

struct RunSteps<'r, J> {
    served: &'r Arc<Served>,
    journal: &'r J,
    cancel: CancelToken,
    state: Mutex<State>,
}

/// The results of earlier steps, the same on every replay.
#[derive(Default)]
struct State {
    stop: Option<Arc<str>>,
    /// The reply whose calls are being run.
    reply: Option<Arc<Message>>,
    failure: Option<String>,
    /// How many messages the inbox had left when it was last read, and whether more have arrived since.
    left: QueueLengths,
    has_mail: bool,
    /// Whether the hooks want another turn, whatever the queues hold.
    goes_on: bool,
    /// Whether the inbox is closed.
    is_closed: bool,
    /// Set if the calls of the segment waited for decisions: what was decided on each, by its position.
    waited: Option<HashMap<u32, Decided>>,
}

impl<J: RunJournal> RunSteps<'_, J> {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, stop: Option<Arc<str>>) {
        if let Some(reason) = stop {
            self.state().stop.get_or_insert(reason);
        }
    }

    /// Notes whether the inbox may hold more than it had left. The engine reports it, without a request.
    async fn listen(&self) -> Result<(), StepError> {
        let heard = self.journal.receive().await?;
        self.stop(heard.stop);
        self.state().has_mail |= heard.has_mail;
        Ok(())
    }

    /// Takes messages from the inbox.
    async fn drain(&self, take: InboxRequest) -> Result<Vec<Arc<Message>>, StepError> {
        let drained = self.journal.drain(take).await?;
        let mut state = self.state();
        (state.left, state.has_mail) = (drained.left, false);
        Ok(drained.messages)
    }

    /// The run would end: returns the messages that have arrived by now, or closes the inbox.
    async fn drain_or_close(&self) -> Result<Vec<Arc<Message>>, StepError> {
        loop {
            let (may_wait, is_stopped) = {
                let state = self.state();
                (state.has_mail || !state.left.is_empty(), state.stop.is_some())
            };
            if is_stopped {
                return Ok(Vec::new());
            }
            if !may_wait {
                if self.journal.close().await? {
                    self.state().is_closed = true;
                    return Ok(Vec::new());
                }
                self.listen().await?;
                continue;
            }
            for queue in [Queue::FollowUp, Queue::Steering] {
                let messages = self.drain(self.take(queue)).await?;
                if !messages.is_empty() {
                    return Ok(messages);
                }
            }
        }
    }

    /// Closes the inbox at the end of the run, however it ended.
    async fn close(&self) -> Result<(), StepError> {
        while !self.state().is_closed {
            // Messages that arrived too late are dropped.
            self.state().is_closed = self.journal.close().await?;
        }
        Ok(())
    }

    fn take(&self, queue: Queue) -> InboxRequest {
        let most = if self.served.steps.takes_all(queue) { usize::MAX } else { 1 };
        InboxRequest { queue, most }
    }

    /// Takes a step in this process. Whether the run was cancelled by then is recorded with it.
    async fn step<T: Recordable>(
        &self,
        name: impl fmt::Display,
        tries: RetryPolicy,
        work: impl Future<Output = Result<T, Transient>> + Send + 'static,
    ) -> Result<T, StepError> {
        let cancel = self.cancel.clone();
        let work = Box::pin(async move {
            let value = work.await?;
            Ok(StepResult { value, stop: cancel.reason() })
        });
        let StepResult { value, stop } = self.journal.run(name.to_string(), tries, work).await?;
        self.stop(stop);
        // A cancelled run takes no further step.
        self.listen().await?;
        Ok(value)
    }

    /// Returns the decisions of the application's function, or `Later` for each request if there is none.
    async fn decisions(&self, requests: &[ApprovalRequest]) -> Result<Vec<Decision>, StepError> {
        let Some(first) = requests.first().filter(|_| self.served.steps.has_approver()) else {
            return Ok(vec![Decision::Later; requests.len()]);
        };
        let (name, asked) = (first.request_id.clone(), requests.to_vec());
        let (served, cancel) = (self.served.clone(), self.cancel.clone());
        self.step(name, RetryPolicy::ONE_ATTEMPT, async move {
            let mut decisions = Vec::with_capacity(asked.len());
            for request in asked {
                decisions.push(served.steps.approve(request, &cancel).await);
            }
            Ok(decisions)
        })
        .await
    }

    /// Returns what was decided on each request, and whether somebody outside was waited for. If not, hooks are asked here about arguments
    /// that the application's function changed.
    async fn decide(
        &self,
        run: Arc<str>,
        requests: Vec<ApprovalRequest>,
    ) -> Result<(Vec<(ApprovalRequest, Decided)>, bool), StepError> {
        let mut decisions = self.decisions(&requests).await?;
        let open: Vec<_> = requests
            .iter()
            .zip(&decisions)
            .filter(|(_, decision)| **decision == Decision::Later)
            .map(|(request, _)| PendingAsk::Approval { request: request.clone() })
            .collect();
        let has_waited = !open.is_empty();
        if has_waited {
            let waited = self.journal.wait(open, self.served.patience).await?;
            if let Some(reason) = waited.stop {
                return Err(StepError::cancelled(&*reason));
            }
            let mut answers = waited.answers.into_iter().map(decision);
            for decision in decisions.iter_mut().filter(|decision| **decision == Decision::Later) {
                *decision = answers.next().unwrap_or_else(decision_of_nobody);
            }
        }
        let first = requests.first().map(|request| request.request_id.clone()).unwrap_or_default();
        let decided = requests.into_iter().zip(decisions).map(|(request, decision)| {
            let decided = self.served.steps.decided(&request, decision);
            (request, decided)
        });
        let decided: Vec<_> = decided.collect();
        let is_edited = decided.iter().any(|(_, one)| matches!(one, Decided::Allow(Some(_))));
        if has_waited || !is_edited || !self.served.steps.has_hooks() {
            return Ok((decided, has_waited));
        }
        let (served, reply, cancel) = (self.served.clone(), self.state().reply.clone(), self.cancel.clone());
        let asked = decided.clone();
        let work = async move { Ok(served.steps.guarded(&run, asked, reply, cancel).await) };
        let guarded: Vec<Decided> =
            self.step(format!("{first}/edited"), RetryPolicy::ONE_ATTEMPT, work).await?;
        let requests = decided.into_iter().map(|(request, _)| request);
        Ok((requests.zip(guarded).collect(), false))
    }
}

impl<J: RunJournal> Steps for RunSteps<'_, J> {
    fn model(&self, key: StepKey, messages: MessageList) -> BoxFuture<'_, Result<Reply, StepError>> {
        Box::pin(async move {
            let (served, cancel, same) = (self.served.clone(), self.cancel.clone(), key.clone());
            let work = async move {
                let asked = served.steps.ask(same, messages, cancel).await;
                asked.map_err(|error| Transient(error.to_string()))
            };
            let reply = match self.step(&key, self.served.model_tries, work).await {
                Ok(reply) => reply,
                // The last attempt failed.
                Err(StepError::Terminal { message }) => self.served.steps.no_reply(&message),
                Err(error) => return Err(error),
            };
            self.state().reply = Some(Arc::new(reply.message.clone().into()));
            Ok(reply)
        })
    }

    fn tools(&self, calls: Vec<(StepKey, ToolCall)>) -> BoxFuture<'_, Result<Vec<CallEnd>, StepError>> {
        Box::pin(async move {
            let reply = self.state().reply.clone();
            let waited = self.state().waited.take().filter(|_| self.served.steps.has_hooks());
            if let Some(waited) = waited {
                return self.tools_that_waited(calls, waited).await;
            }
            let text = reply.as_ref().map(|reply| reply.text()).unwrap_or_default();
            let mut requests: Vec<_> = calls
                .into_iter()
                .map(|(key, call)| {
                    let text = if key.ord == 0 { text.clone() } else { String::new() };
                    ToolRequest { key, call, text }
                })
                .collect();
            if requests.len() == 1
                && let Some(request) = requests.pop()
            {
                let ended = call_tool(self.served, self.journal, request, reply, self.cancel.clone()).await?;
                self.stop(ended.stop);
                return Ok(vec![ended.value]);
            }
            let ended = self.journal.call_tools(requests).await?;
            let stop = ended.stop;
            self.stop(stop.clone());
            let one = |end: Option<StepResult<CallEnd>>| match (end, &stop) {
                (Some(end), _) => {
                    self.stop(end.stop);
                    end.value
                }
                (None, Some(reason)) => CallEnd::new(ToolOutcome::aborted(reason)),
                (None, None) => CallEnd::new(lost()),
            };
            Ok(ended.ends.into_iter().map(one).collect())
        })
    }

    fn poll(&self, _key: StepKey, queue: Queue) -> BoxFuture<'_, Result<Vec<Arc<Message>>, StepError>> {
        Box::pin(async move {
            self.listen().await?;
            let (may_wait, is_stopped, goes_on) = {
                let state = self.state();
                (state.has_mail || state.left.of(queue) > 0, state.stop.is_some(), state.goes_on)
            };
            if queue == Queue::FollowUp && !goes_on && !is_stopped {
                return self.drain_or_close().await;
            }
            if !may_wait {
                return Ok(Vec::new());
            }
            self.drain(self.take(queue)).await
        })
    }

    fn prepare(&self, key: StepKey, calls: Vec<ToolCall>) -> BoxFuture<'_, Result<Vec<Prepared>, StepError>> {
        Box::pin(async move {
            self.state().waited = None;
            let (served, reply) = (self.served.clone(), self.state().reply.clone());
            if !served.steps.has_hooks() {
                // Only validation, which is the same on every replay.
                return Ok(served.steps.prepare(&key, calls, reply, CancelToken::new()).await);
            }
            let (cancel, same) = (self.cancel.clone(), key.clone());
            let work = async move { Ok(served.steps.prepare(&same, calls, reply, cancel).await) };
            self.step(&key, RetryPolicy::ONE_ATTEMPT, work).await
        })
    }

    fn approvals(
        &self,
        requests: Vec<(StepKey, ApprovalRequest)>,
    ) -> BoxFuture<'_, Result<Vec<Decided>, StepError>> {
        Box::pin(async move {
            let Some(run) = requests.first().map(|(key, _)| key.run.clone()) else { return Ok(Vec::new()) };
            let ords: Vec<_> = requests.iter().map(|(key, _)| key.ord).collect();
            let requests = requests.into_iter().map(|(_, request)| request).collect();
            let (decided, has_waited) = self.decide(run, requests).await?;
            let decided: Vec<_> = decided.into_iter().map(|(_, one)| one).collect();
            if has_waited {
                // They are checked again before they run.
                self.state().waited = Some(ords.into_iter().zip(decided.iter().cloned()).collect());
            }
            Ok(decided)
        })
    }

    fn await_deferred(
        &self,
        deferred: Vec<(StepKey, String)>,
    ) -> BoxFuture<'_, Result<Option<Vec<CallEnd>>, StepError>> {
        Box::pin(async move {
            let asks = deferred.into_iter().map(|(step, handle)| PendingAsk::Deferred { step, handle });
            let waited = self.journal.wait(asks.collect(), self.served.patience).await?;
            if let Some(reason) = waited.stop {
                return Err(StepError::cancelled(&*reason));
            }
            Ok(Some(waited.answers.into_iter().map(delivered).collect()))
        })
    }

    fn turn_end(&self, key: StepKey, summary: TurnSummary) -> BoxFuture<'_, Result<Verdict, StepError>> {
        Box::pin(async move {
            let is_last = summary.turn >= self.served.steps.max_turns();
            let mut verdict = Verdict::default();
            if self.served.steps.has_hooks() {
                let (served, cancel) = (self.served.clone(), self.cancel.clone());
                let work = async move { Ok(served.steps.turn_end(summary, &cancel).await) };
                verdict.go_on = self.step(&key, RetryPolicy::ONE_ATTEMPT, work).await?.map_err(|text| {
                    self.state().failure = Some(text.clone());
                    StepError::terminal(text)
                })?;
            }
            if is_last {
                self.listen().await?;
                if self.state().has_mail {
                    self.drain(InboxRequest { most: 0, ..self.take(Queue::Steering) }).await?;
                }
                verdict.is_queued = !self.state().left.is_empty();
            }
            self.state().goes_on = verdict.go_on == Some(true);
            Ok(verdict)
        })
    }

    fn cancelled(&self) -> Option<Arc<str>> {
        self.state().stop.clone()
    }

    fn event(&self, event: Event) {
        self.served.steps.tell(event);
    }
}

/// Reads a decision. One that cannot be read is a denial.
fn decision(answer: Option<Value>) -> Decision {
    match answer.map(serde_json::from_value) {
        Some(Ok(Decision::Later)) | None => decision_of_nobody(),
        Some(Ok(decision)) => decision,
        Some(Err(error)) => Decision::Deny(format!("The decision could not be read: {error}")),
    }
}

fn decision_of_nobody() -> Decision {
    Decision::Deny("Nobody decided on this call in time.".to_owned())
}

/// Reads a result from outside.
fn delivered(answer: Option<Value>) -> CallEnd {
    let outcome = match answer.map(serde_json::from_value) {
        Some(Ok(ToolOutcome::Deferred { .. })) | None => {
            ToolOutcome::failed(FailureCode::TIMEOUT, "The result did not come in time.")
        }
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => {
            ToolOutcome::failed(FailureCode::new("unreadable_result"), format!("The result is none: {error}"))
        }
    };
    CallEnd::ran(outcome, 0)
}

/// The end of a call that the engine lost.
fn lost() -> ToolOutcome {
    ToolOutcome::Interrupted { code: InterruptionCode::LOST, reason: LOST.to_owned() }
}
