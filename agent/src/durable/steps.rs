//! The steps of a run, which the journal of an engine records.

mod asking;
mod calls;
mod children;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::PendingAsk;
use super::deadline::{SharedDeadline, WorkTime, measured};
use super::journal::{
    Answers, ChildWait, InboxRequest, QueueLengths, Recordable, RetryPolicy, RunJournal, StepResult,
    Transient, Work,
};
use super::play::SharedService;
use super::tree_limits::TreeLimits;
use crate::loop_core::{
    ApprovalRequest, CallDecision, CallEnd, Event, LimitReached, ModelReply, Prepared, Queue, RecordError,
    ReservedPart, Spent, Step, TreeReservation, TurnSummary,
};
use crate::message::{Message, MessageList, ToolCall};
use crate::run_path::RunPath;
use crate::runtime::Decision;
use crate::runtime::{
    CheckedAgain, CheckedArguments, ContextState, Performer, TurnChoices, TurnSteps as _, end_turn,
    next_reply,
};
use crate::step_key::StepKey;
use crate::steps::{SharedLoop, StepError, Steps};
use crate::tool::{
    definition::ToolDefinition,
    outcome::{OutcomeCode, ToolOutcome},
};

type CheckedCalls = Arc<Mutex<BTreeMap<u32, Arc<CheckedArguments>>>>;

/// Performs the steps of a run through the journal of an engine. All fields but `checked` follow from the results of steps, so they are
/// the same on every replay.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each set by one kind of step")]
pub(super) struct JournalSteps<'r, J> {
    served: &'r Arc<SharedService>,
    journal: &'r J,
    performer: Performer,
    run: SharedLoop,
    children: Vec<(StepKey, Arc<ToolCall>)>,
    /// The reason of the cancellation, if the run was cancelled.
    stop: Option<Arc<str>>,
    time_limit: Option<SharedDeadline>,
    /// The working time of this run. The time is limited if a call with a time limit started this run or a run above it.
    pub(super) work: WorkTime,
    limits: TreeLimits,
    /// The time at the end of the last step, for runs with a time limit.
    now: Option<u64>,
    /// Whether the run has waited since its last step, so that `now` is too early.
    has_waited: bool,
    reply: Option<Arc<Message>>,
    /// The checked arguments of prepared calls. After a replay, they are missing, and the arguments are checked again.
    checked: CheckedCalls,
    choices: TurnChoices,
    /// The messages that the model sees, if the assistant manages its context.
    context: ContextState,
    /// The number of messages in each queue after the inbox was last drained.
    left: QueueLengths,
    left_to_next_turn: usize,
    /// Whether messages have arrived since the inbox was last drained.
    has_mail: bool,
    /// Whether the decision at the end of the turn asks for another turn, even without messages.
    continues: bool,
    report: Option<Arc<Message>>,
    is_closed: bool,
    /// Whether calls are checked again before they run, because calls waited for decisions.
    checks_again: bool,
    rounds: u32,
}

impl<'r, J: RunJournal> JournalSteps<'r, J> {
    pub(super) fn new(
        served: &'r Arc<SharedService>,
        journal: &'r J,
        performer: Performer,
        time_limit: Option<SharedDeadline>,
        run: SharedLoop,
        path: RunPath,
    ) -> Self {
        let limits = TreeLimits::new(&served.assistant);
        run.lock().set_tree(path, limits.calls.clone());
        Self {
            served,
            journal,
            performer,
            run,
            children: Vec::new(),
            stop: None,
            time_limit,
            work: WorkTime::default(),
            limits,
            now: None,
            has_waited: false,
            reply: None,
            checked: CheckedCalls::default(),
            choices: TurnChoices::default(),
            context: ContextState::default(),
            left: QueueLengths::default(),
            left_to_next_turn: 0,
            has_mail: false,
            continues: false,
            report: None,
            is_closed: false,
            checks_again: false,
            rounds: 0,
        }
    }

    /// Takes a step. The journal also records the reason of a cancellation that arrived before the end of the step.
    async fn step<T: Recordable>(
        &mut self,
        name: impl fmt::Display,
        retry: RetryPolicy,
        work: Work<T>,
    ) -> Result<T, StepError> {
        let (served, cancel) = (self.served.clone(), self.performer.cancel_token().clone());
        let (run, limit) = (self.performer.run_id().clone(), self.work.remaining());
        let work = Box::pin(async move {
            let (value, took) = measured(limit, (&served.clock, &served.running), &run, work).await;
            Ok(StepResult { value: value?, stop: cancel.reason(), at: served.time_of_step(), took })
        });
        let StepResult { value, stop, at, took } = self.journal.run(name.to_string(), retry, work).await?;
        self.work.add(took);
        self.end_step(stop, at);
        // A cancellation is received now, so that the run takes no further step.
        self.receive().await?;
        Ok(value)
    }

    fn end_step(&mut self, stop: Option<Arc<str>>, at: Option<u64>) {
        if let Some(reason) = stop {
            self.stop.get_or_insert(reason);
        }
        self.now = self.now.max(at);
        self.has_waited &= at.is_none();
    }

    /// Returns the limit on working time or wall-clock time that was reached by the end of the last step, if any.
    fn reached_limit(&self) -> Option<LimitReached> {
        let by_clock = || self.time_limit?.reached(self.now?);
        self.work.reached().or_else(by_clock)
    }

    /// Returns an error if the run was cancelled or reached a time limit. Stops the children first.
    async fn check_stop(&mut self) -> Result<(), StepError> {
        let (reason, error) = match (self.reached_limit(), self.stop.clone()) {
            (Some(reached), _) => (reached.to_string().into(), StepError::Limit(reached)),
            (None, Some(reason)) => (reason.clone(), StepError::cancelled(&*reason)),
            (None, None) => return Ok(()),
        };
        self.stop_children(reason).await?;
        Err(error)
    }

    /// Waits for answers from outside. Returns `None` for each answer that did not arrive in time, and an error if the run was cancelled
    /// or reached its time limit.
    async fn wait(&mut self, asks: Vec<PendingAsk>) -> Result<Vec<Option<Value>>, StepError> {
        Ok(self.wait_for(asks, ChildWait::Apart).await?.from_outside)
    }

    /// Waits like [`wait`](Self::wait). `children` says whether the started runs are awaited, cancelled or ignored.
    async fn wait_for(&mut self, asks: Vec<PendingAsk>, children: ChildWait) -> Result<Answers, StepError> {
        if self.has_waited && self.time_limit.is_some() {
            // A wait records no time, so an empty step records the current time. The rest of the time limit follows from this time.
            let work: Work<()> = Box::pin(std::future::ready(Ok(())));
            self.step(format!("{}/time", self.performer.run_id()), RetryPolicy::ONE_ATTEMPT, work).await?;
            self.check_stop().await?;
        }
        let patience = self.served.patience;
        let remaining = self.time_limit.map(|limit| limit.remaining(self.now.unwrap_or(limit.begun)));
        let timeout = remaining.map_or(patience, |remaining| remaining.min(patience));
        let has_children = !matches!(children, ChildWait::Apart);
        let waited = self.journal.wait(asks, timeout, children).await?;
        self.has_waited = true;
        let is_late = timeout < patience && waited.steered.is_none() && waited.from_outside.contains(&None);
        let (reason, error) = match (&waited.stop, self.time_limit.filter(|_| is_late)) {
            (Some(reason), _) => (reason.clone(), StepError::cancelled(&**reason)),
            (None, Some(limit)) => {
                let reached = limit.after(limit.allowed);
                (reached.to_string().into(), StepError::Limit(reached))
            }
            (None, None) => return Ok(waited),
        };
        if has_children {
            self.record_stopped(waited.children)?;
        }
        self.stop_children(reason).await?;
        Err(error)
    }

    async fn receive(&mut self) -> Result<(), StepError> {
        let notices = self.journal.receive().await?;
        self.end_step(notices.stop, None);
        self.has_mail |= notices.has_mail;
        Ok(())
    }

    async fn drain(&mut self, request: InboxRequest) -> Result<Vec<Arc<Message>>, StepError> {
        let drained = self.journal.drain(request).await?;
        (self.left, self.has_mail) = (drained.left, false);
        Ok(drained.messages)
    }

    /// Returns messages for a run that would otherwise end. If there are none, closes the inbox. If the run was cancelled, returns no
    /// messages and leaves the inbox open.
    async fn drain_or_close(&mut self) -> Result<Vec<Arc<Message>>, StepError> {
        loop {
            if self.stop.is_some() {
                return Ok(Vec::new());
            }
            if !self.has_mail && self.left.is_empty() {
                if self.journal.close().await? {
                    self.is_closed = true;
                    return Ok(Vec::new());
                }
                self.receive().await?;
                continue;
            }
            for queue in [Queue::FollowUp, Queue::Steering] {
                let messages = self.drain(self.request(queue)).await?;
                if !messages.is_empty() {
                    return Ok(messages);
                }
            }
        }
    }

    /// Reserves requests, calls or runs within the limits that a root run shares with its sub-agents. Also reports the tokens that this
    /// run used and the reserved calls that it did not use.
    async fn reserve(&mut self, wanted: Spent) -> Result<ReservedPart, StepError> {
        let root = {
            let run = self.run.lock();
            let first = run.path().calls().first().and_then(|call| call.run_id.parse::<StepKey>().ok());
            first.map_or_else(|| run.run_id().clone(), |key| key.run)
        };
        let (returned, usage) = self.limits.calls.take_rest();
        let limits = self.limits.shared.clone().unwrap_or_default();
        let wanted = TreeReservation {
            limits,
            max_runs: self.limits.max_runs,
            wanted: Spent { usage, ..wanted },
            returned,
        };
        self.journal.reserve(root, wanted).await
    }

    /// Closes the inbox at the end of the run, however the run ended. A sub-agent with shared limits first reports its used tokens and its
    /// unused calls.
    pub(super) async fn close(&mut self) -> Result<(), StepError> {
        let is_child = !self.run.lock().path().is_root();
        if is_child && self.limits.shared.is_some() {
            self.reserve(Spent::default()).await?;
        }
        while !self.is_closed {
            // The inbox stays open if a notice arrived first. The run is over, so the notice is ignored and closing is tried again.
            self.is_closed = self.journal.close().await?;
        }
        Ok(())
    }

    fn request(&self, queue: Queue) -> InboxRequest {
        let most = if self.served.assistant.takes_all(queue) { usize::MAX } else { 1 };
        InboxRequest { queue, most }
    }

    async fn count_messages(&mut self) -> Result<(), StepError> {
        self.receive().await?;
        if self.has_mail {
            self.drain(InboxRequest { most: 0, ..self.request(Queue::Steering) }).await?;
        }
        Ok(())
    }

    fn take_checked(&self, ord: u32) -> Option<Arc<CheckedArguments>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).remove(&ord)
    }

    fn chosen_tools(&self) -> Option<Arc<[ToolDefinition]>> {
        self.choices.tools(self.run.lock().turn())
    }

    /// Returns the decisions of the application's approver. Without an approver, each decision is `Later`.
    async fn decisions(&mut self, requests: &[ApprovalRequest]) -> Result<Vec<Decision>, StepError> {
        let Some(first) = requests.first().filter(|_| self.served.assistant.has_approver()) else {
            return Ok(vec![Decision::Later; requests.len()]);
        };
        let (name, requests) = (first.request_id.clone(), requests.to_vec());
        let performer = self.performer.clone();
        let work = Box::pin(async move { Ok(performer.decisions(requests).await) });
        self.step(name, RetryPolicy::ONE_ATTEMPT, work).await
    }

    /// Checks calls again after the run has waited for decisions. The run waits once more if a call now needs a decision, or if a decision
    /// does not cover the arguments of its call.
    async fn check_again(
        &mut self,
        calls: &[(StepKey, Arc<ToolCall>)],
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        let Some((first, _)) = calls.first() else { return Ok(()) };
        let ready = |(key, call): &(StepKey, Arc<ToolCall>)| {
            let ready = run.lock().ready_call(key.ord)?;
            Some((key.ord, (ready, call.clone())))
        };
        let (ords, ready): (Vec<u32>, Vec<_>) = calls.iter().filter_map(ready).unzip();
        self.rounds += 1;
        let name = match self.rounds {
            1 => format!("{first}/again"),
            round => format!("{first}/again/{round}"),
        };
        let (performer, reply, tools) = (self.performer.clone(), self.reply.clone(), self.chosen_tools());
        let work =
            Box::pin(async move { Ok(performer.check_all_again(ready, reply, tools.as_deref()).await) });
        let checked: Vec<CheckedAgain> = self.step(name, RetryPolicy::ONE_ATTEMPT, work).await?;
        if checked.len() != ords.len() {
            let (wanted, got) = (ords.len(), checked.len());
            return Err(RecordError::WrongCount { wanted, got }.into());
        }
        let (asks, others): (Vec<_>, Vec<_>) = ords
            .into_iter()
            .zip(checked)
            .partition(|(_, checked)| matches!(checked, CheckedAgain::Asks { .. }));
        let mut run = run.lock();
        others.into_iter().chain(asks).try_for_each(|(ord, checked)| checked.apply(&mut run, ord))?;
        Ok(())
    }

    /// Ends the calls of the tool `read_result`, which need the conversation in this process, and returns the other calls. The ends are
    /// not recorded, because a replay has the same conversation.
    fn read_results(
        &self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<Vec<(StepKey, Arc<ToolCall>)>, StepError> {
        let mut run = run.lock();
        let mut others = Vec::with_capacity(calls.len());
        for (key, call) in calls {
            match self.served.assistant.read_result(&call, run.conversation()) {
                Some(end) => run.record_call_end(key.ord, end)?,
                None => others.push((key, call)),
            }
        }
        Ok(others)
    }
}

impl<J: RunJournal> Steps for JournalSteps<'_, J> {
    async fn before_step(&mut self, _: &SharedLoop) -> Result<(), StepError> {
        self.check_stop().await
    }

    async fn model(
        &mut self,
        key: StepKey,
        _: MessageList,
        run: &SharedLoop,
    ) -> Result<ModelReply, StepError> {
        self.count_request().await?;
        let reply = next_reply(self, key, run).await?;
        self.reply = Some(Arc::new((*reply.message).clone().into()));
        Ok(reply)
    }

    async fn tools(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        if !std::mem::take(&mut self.checks_again) {
            return self.run_calls(calls, run).await;
        }
        self.check_again(&calls, run).await?;
        let next = run.lock().next_if_settled();
        match next {
            Some(Step::CallTools { calls }) if self.stop.is_none() => self.run_calls(calls, run).await,
            _ => self.before_step(run).await,
        }
    }

    async fn poll(
        &mut self,
        _: StepKey,
        queue: Queue,
        _: &SharedLoop,
    ) -> Result<Vec<Arc<Message>>, StepError> {
        self.receive().await?;
        if queue == Queue::FollowUp && !self.continues && self.stop.is_none() {
            return self.drain_or_close().await;
        }
        let mut messages: Vec<_> = self.report.take().into_iter().collect();
        // The report counts as a message. An assistant that takes one message at a time takes only the report.
        let may_take = messages.is_empty() || self.served.assistant.takes_all(queue);
        if may_take && (self.has_mail || self.left.of(queue) > 0) {
            messages.extend(self.drain(self.request(queue)).await?);
        }
        self.left_to_next_turn = self.left.steering;
        Ok(messages)
    }

    async fn prepare(
        &mut self,
        key: StepKey,
        calls: Vec<Arc<ToolCall>>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        (self.checks_again, self.rounds) = (false, 0);
        let first = key.ord;
        let (performer, reply, tools) = (self.performer.clone(), self.reply.clone(), self.chosen_tools());
        self.checked = CheckedCalls::default();
        let checked = self.checked.clone();
        let work: Work<Vec<Prepared>> = Box::pin(async move {
            let all = performer.prepare_all(calls, reply, tools.as_deref()).await;
            let (prepared, known): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let known = (first..).zip(known).filter_map(|(ord, known)| Some((ord, known?)));
            *checked.lock().unwrap_or_else(PoisonError::into_inner) = known.collect();
            Ok(prepared)
        });
        let prepared = if self.served.assistant.has_hooks() {
            self.step(key, RetryPolicy::ONE_ATTEMPT, work).await?
        } else {
            // Without hooks, the calls are only validated, with the same result on every replay, so this is not a step.
            work.await.map_err(|Transient(text)| StepError::terminal(text))?
        };
        self.reserve_calls(&prepared).await?;
        let mut run = run.lock();
        (first..).zip(prepared).try_for_each(|(ord, prepared)| run.record_prepared(ord, prepared.into()))?;
        Ok(())
    }

    async fn approvals(
        &mut self,
        requests: Vec<(StepKey, ApprovalRequest)>,
        _: &SharedLoop,
    ) -> Result<Vec<CallDecision>, StepError> {
        let requests: Vec<_> = requests.into_iter().map(|(_, request)| request).collect();
        let mut decisions = self.decisions(&requests).await?;
        let open: Vec<_> = requests
            .iter()
            .zip(&decisions)
            .filter(|(_, decision)| **decision == Decision::Later)
            .map(|(request, _)| PendingAsk::Approval { request: request.clone() })
            .collect();
        let has_waited = !open.is_empty();
        if has_waited {
            let mut answers = self.wait(open).await?.into_iter().map(decision);
            for decision in decisions.iter_mut().filter(|decision| **decision == Decision::Later) {
                *decision = answers.next().unwrap_or_else(missing_decision);
            }
            // The rules of the application may have changed during the wait.
            self.checks_again = true;
        }
        let name =
            requests.first().map(|request| format!("{}/edited", request.request_id)).unwrap_or_default();
        let decided = requests.into_iter().zip(decisions).map(|(request, decision)| {
            let decided = self.performer.decided(&request, decision);
            (request, decided)
        });
        let decided: Vec<_> = decided.collect();
        let is_edited = decided.iter().any(|(_, decided)| matches!(decided, CallDecision::Allow(Some(_))));
        if !is_edited || has_waited || !self.served.assistant.has_hooks() {
            return Ok(decided.into_iter().map(|(_, decided)| decided).collect());
        }
        let (performer, reply) = (self.performer.clone(), self.reply.clone());
        let work = Box::pin(async move { Ok(performer.ask_about_edits(decided, reply).await) });
        self.step(name, RetryPolicy::ONE_ATTEMPT, work).await
    }

    async fn await_deferred(
        &mut self,
        deferred: Vec<(StepKey, String)>,
    ) -> Result<Option<Vec<CallEnd>>, StepError> {
        Ok(Some(self.await_calls(deferred).await?))
    }

    async fn turn_end(
        &mut self,
        key: StepKey,
        summary: TurnSummary,
        run: &SharedLoop,
    ) -> Result<Option<bool>, StepError> {
        let continues = end_turn(self, key, summary, run).await?;
        self.continues = continues == Some(true);
        Ok(continues)
    }

    async fn is_steered(&mut self, _: &SharedLoop) -> Result<bool, StepError> {
        self.count_messages().await?;
        Ok(self.left.steering > self.left_to_next_turn)
    }

    async fn event(&mut self, event: Event, _: &SharedLoop) -> Result<(), StepError> {
        self.served.assistant.notify(&event);
        Ok(())
    }
}

/// Reads a decision. A missing, postponed or unreadable decision denies the call.
fn decision(answer: Option<Value>) -> Decision {
    match answer.map(serde_json::from_value) {
        Some(Ok(Decision::Later)) | None => missing_decision(),
        Some(Ok(decision)) => decision,
        Some(Err(error)) => Decision::Deny(format!("The decision could not be read: {error}")),
    }
}

fn missing_decision() -> Decision {
    Decision::Deny("No decision on this call arrived in time.".to_owned())
}

/// Reads a result from outside. A missing, deferred or unreadable result is a failure of the call.
fn delivered(answer: Option<Value>) -> CallEnd {
    let outcome = match answer.map(serde_json::from_value) {
        Some(Ok(ToolOutcome::Deferred { .. })) | None => {
            ToolOutcome::failed(OutcomeCode::TIMEOUT, "The result did not arrive in time.")
        }
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => ToolOutcome::failed(
            OutcomeCode::new("unreadable_result"),
            format!("The result could not be read: {error}"),
        ),
    };
    CallEnd::ran(outcome, 0)
}
