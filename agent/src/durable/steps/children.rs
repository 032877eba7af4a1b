//! Calls of assistants that are tools. Each call is a run of its own on the engine, which the calling run starts and waits for.

use std::sync::Arc;

use super::JournalSteps;
use crate::durable::RunRequest;
use crate::durable::journal::{ChildSteering, ChildWait, RetryPolicy, RunJournal};
use crate::durable::run::ChildLink;
use crate::loop_core::{CallEnd, ChildState, Spent, SteeringPolicy, steered};
use crate::message::{ToolCall, UserMessage};
use crate::runtime::{ChildReport, JournaledCall, mark_steered, too_many_children, waiting_child};
use crate::step_key::StepKey;
use crate::steps::{SharedLoop, StepError, Steps as _};
use crate::tool::{invoke::timed_out, outcome::ToolOutcome};

impl<J: RunJournal> JournalSteps<'_, J> {
    /// Starts a run for each call whose tool is an assistant. If the first message of the run cannot be made, or if a limit forbids the
    /// run, ends the call instead. Returns the calls of all other tools.
    pub(super) async fn start_children(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<Vec<(StepKey, Arc<ToolCall>)>, StepError> {
        let is_child = |(_, call): &(StepKey, Arc<ToolCall>)| self.performer.is_child(&call.name);
        let (children, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_child);
        let (path, state) = {
            let run = run.lock();
            (run.path().clone(), run.state().clone())
        };
        let mut requests = Vec::with_capacity(children.len());
        for (key, call) in children {
            let message = self.child_message(key.clone(), call.clone(), path.calls().len()).await?;
            match message {
                Ok(message) => {
                    let name: Arc<str> = key.to_string().into();
                    let path = path.with(&call.id, &call.name, &name);
                    let mut request = RunRequest::new(&*name, "").with_message(message);
                    request.state = state.clone();
                    request.child = Some(ChildLink {
                        path,
                        time_limit: self.time_limit,
                        work_limit: self
                            .performer
                            .time_limit_of(&call.name)
                            .into_iter()
                            .chain(self.work.remaining())
                            .min(),
                        waits: None,
                    });
                    requests.push(request);
                    self.children.push((key, call));
                }
                Err(end) => run.lock().record_call_end(key.ord, *end)?,
            }
        }
        if !requests.is_empty() {
            // If the run was cancelled while the first messages of its children were made, it starts no children.
            if let Some(reason) = &self.stop {
                self.children.clear();
                return Err(StepError::cancelled(&**reason));
            }
            self.work.beside_children = std::time::Duration::ZERO;
            let may_begin = self.reserve_runs(requests.len()).await?;
            requests.truncate(may_begin);
            let refused = self.children.split_off(may_begin);
            if may_begin > 0 {
                self.journal.start_children(requests).await?;
            }
            let mut run = run.lock();
            for (key, _) in refused {
                run.record_call_end(key.ord, too_many_children(self.limits.max_runs))?;
            }
            for (key, _) in &self.children {
                run.record_call_end(key.ord, waiting_child())?;
            }
        }
        Ok(others)
    }

    async fn reserve_runs(&mut self, number: usize) -> Result<usize, StepError> {
        let runs = u32::try_from(number).unwrap_or(u32::MAX);
        let reserved = self.reserve(Spent { runs, ..Spent::default() }).await?;
        Ok(usize::try_from(reserved.runs).unwrap_or(number).min(number))
    }

    /// Returns the first message of the run that a call starts, or the end of a call that starts no run. The journal records the result,
    /// because code of the application creates the message.
    async fn child_message(
        &mut self,
        key: StepKey,
        call: Arc<ToolCall>,
        depth: usize,
    ) -> Result<Result<UserMessage, Box<CallEnd>>, StepError> {
        let (performer, name) = (self.performer.clone(), format!("{key}/message"));
        let work = Box::pin(async move { Ok(performer.child_message(&key, &call, depth).await) });
        self.step(name, RetryPolicy::ONE_ATTEMPT, work).await
    }

    /// Returns the ends of the calls that started runs. If a steering message skipped runs, `begun` is the position of the first skipped
    /// run. Any other run without a report was lost.
    async fn end_children(
        &mut self,
        reports: Vec<Option<ChildReport>>,
        begun: Option<usize>,
    ) -> Result<Vec<CallEnd>, StepError> {
        let longest = reports.iter().flatten().map(|report| report.worked).max();
        self.work.add_children(longest.unwrap_or_default());
        let mut ends = Vec::with_capacity(reports.len());
        for (at, ((key, call), report)) in
            std::mem::take(&mut self.children).into_iter().zip(reports).enumerate()
        {
            let Some(ChildReport { mut outcome, spent, worked }) = report else {
                let is_skipped = begun.is_some_and(|begun| at >= begun);
                ends.push(CallEnd::new(if is_skipped { steered() } else { ToolOutcome::lost() }));
                continue;
            };
            if begun.is_some() {
                mark_steered(&mut outcome);
            }
            let limit = self.performer.time_limit_of(&call.name).filter(|limit| worked >= *limit);
            if let (Some(limit), ToolOutcome::Failed { .. }) = (limit, &outcome) {
                outcome = timed_out(limit);
            }
            self.run.lock().record_child(key.ord, ChildState::Ended(Box::new(spent)))?;
            let (performer, reply, name) = (self.performer.clone(), self.reply.clone(), key.to_string());
            let text = reply.as_ref().filter(|_| key.ord == 0).map(|reply| reply.text()).unwrap_or_default();
            let path = self.run.lock().path().clone();
            let (checked, inputs, child) = (self.take_checked(key.ord), Vec::new(), Some(outcome));
            let ended =
                JournaledCall { key, call, reply, text, checked, inputs, is_lost: false, path, child };
            let work = Box::pin(async move { Ok(performer.call(ended).await) });
            ends.push(self.step(name, RetryPolicy::ONE_ATTEMPT, work).await?);
        }
        Ok(ends)
    }

    pub(super) async fn stop_children(&mut self, reason: Arc<str>) -> Result<(), StepError> {
        if self.children.is_empty() {
            return Ok(());
        }
        let stopped = ChildWait::Stopped(reason);
        let waited = self.journal.wait(Vec::new(), std::time::Duration::ZERO, stopped).await?;
        self.record_stopped(waited.children)
    }

    pub(super) fn record_stopped(&mut self, reports: Vec<Option<ChildReport>>) -> Result<(), StepError> {
        let mut run = self.run.lock();
        for ((key, _), report) in std::mem::take(&mut self.children).into_iter().zip(reports) {
            if let Some(ChildReport { outcome, spent, .. }) = report {
                run.record_child(key.ord, ChildState::Ended(Box::new(spent)))?;
                run.record_call_end(key.ord, CallEnd::ran(outcome, 0))?;
            }
        }
        Ok(())
    }

    /// Waits for the results of deferred calls. The handle of a call says whether its result comes from outside or from a started run.
    pub(super) async fn await_calls(
        &mut self,
        deferred: Vec<(StepKey, String)>,
    ) -> Result<Vec<CallEnd>, StepError> {
        let is_child = |handle: &str| crate::runtime::is_child_handle(handle);
        let from_outside = deferred.iter().filter(|(_, handle)| !is_child(handle));
        let asks = from_outside.map(|(step, handle)| crate::durable::PendingAsk::Deferred {
            step: step.clone(),
            handle: handle.clone(),
        });
        let asks = asks.collect();
        let run = self.run.clone();
        let policy = self.served.assistant.steering_policy();
        let may_be_steered = !self.children.is_empty() && run.lock().may_be_steered();
        let is_steered = may_be_steered && self.is_steered(&run).await?;
        let steering = ChildSteering { policy, left: self.left_to_next_turn, is_steered };
        let asks = if steering.cancels() { Vec::new() } else { asks };
        let waited = self.wait_for(asks, ChildWait::Ended(steering)).await?;
        if waited.steered.is_some() {
            run.lock().steered();
        }
        let mut children = self.end_children(waited.children, waited.steered).await?.into_iter();
        let is_cancelled = waited.steered.is_some() && policy == SteeringPolicy::CancelRunning;
        let delivered = |answer| match answer {
            None if is_cancelled => CallEnd::new(steered()),
            answer => super::delivered(answer),
        };
        let mut answers = waited.from_outside.into_iter().map(delivered);
        let end = |(_, handle): (StepKey, String)| {
            let next = if is_child(&handle) { children.next() } else { answers.next() };
            let otherwise = if is_cancelled { steered() } else { ToolOutcome::lost() };
            next.unwrap_or_else(|| CallEnd::new(otherwise))
        };
        Ok(deferred.into_iter().map(end).collect())
    }
}
