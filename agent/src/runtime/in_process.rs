//! The steps of a run in this process. Listeners are notified while a step works, and messages come from the assistant's queues.

mod asking;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tracing::{Instrument as _, Span};

use super::approval::Resumption;
use super::ask::ReplyStream;
use super::assistant::Assistant;
use super::checked::CheckedArguments;
use super::error::RunError;
use super::listener::EventSlot;
use super::parent::{ParentRun, RunningChildren};
use super::perform::Performer;
use super::progress::Updates;
use super::queue::{Delivery, QueuedMessage};
use super::records::{InterruptedCall, RunRecords};
use super::stop::StopSignal;
use super::telemetry;
use super::turn::{TurnChoices, TurnSteps as _, end_turn, next_reply, turn_tools};
use crate::loop_core::{
    AgentLoop, ApprovalRequest, CallDecision, Event, ModelReply, Prepared, Queue, Ready, TurnSummary,
};
use crate::message::{Message, MessageList, ToolCall};
use crate::model::ModelError;
use crate::steps::{SharedLoop, StepError, StepKey, Steps};
use crate::tool::combine::shown_after;

/// Performs the steps of one run of an assistant. Dropping this value ends unfinished calls and replies, so that each call in the
/// conversation has a result.
pub(super) struct InProcessSteps {
    pub(super) performer: Performer,
    pub(super) assistant: Assistant,
    pub(super) run: SharedLoop,
    pub(super) stop: StopSignal,
    /// The progress and the questions that running tools report, if listeners read them.
    pub(super) updates: Option<Arc<Updates>>,
    pub(super) reader: Option<EventSlot>,
    reply: Option<ReplyStream>,
    choices: TurnChoices,
    turn: Option<(u32, Span)>,
    /// The messages that were taken from a queue and not yet reported as delivered.
    pub(super) delivering: Vec<QueuedMessage>,
    /// The error that ended the run. The loop keeps only its text.
    pub(super) error: Option<RunError>,
    /// The number of steps and of events of replies since the run last yielded to other tasks.
    steps: u32,
    pub(super) resumption: Option<Resumption>,
    /// Whether calls that were checked before the run was resumed must be checked again.
    pub(super) checks_again: bool,
    pub(super) records: Option<Arc<RunRecords>>,
    /// The recorded states of calls that a crash interrupted, by the position of the call.
    pub(super) found: BTreeMap<u32, InterruptedCall>,
    pub(super) checked: BTreeMap<u32, Arc<CheckedArguments>>,
    pub(super) parent: Option<Arc<ParentRun>>,
    /// This run as its children see it. `None` until the run has a child.
    pub(super) as_parent: Option<Arc<ParentRun>>,
    pub(super) continued: BTreeMap<u32, (Box<AgentLoop>, Resumption)>,
    /// The calls that start a child and have not ended. `None` until a call starts a child.
    pub(super) children: Option<RunningChildren>,
    /// Whether the run has neither ended nor been suspended. Dropping the steps of such a run cancels it.
    pub(super) is_running: bool,
}

/// Number of steps and reply events between two yields to other tasks.
const MAX_STEPS: u32 = 128;

pub(super) const DROPPED: &str = "the prompt was dropped";

impl Steps for InProcessSteps {
    async fn before_step(&mut self, _: &SharedLoop) -> Result<(), StepError> {
        self.deliver();
        if self.has_to_yield() {
            tokio::task::yield_now().await;
        }
        self.check_stop()?;
        match self.resumption.take() {
            Some(resumption) => Box::pin(self.continue_with(resumption)).await,
            None => Ok(()),
        }
    }

    async fn poll(
        &mut self,
        _: StepKey,
        queue: Queue,
        _: &SharedLoop,
    ) -> Result<Vec<Arc<Message>>, StepError> {
        let config = &self.performer.config;
        let mut state = self.assistant.state();
        let taken = match queue {
            Queue::Steering => state.steering.take(config.takes_all(queue)),
            Queue::FollowUp => state.follow_ups.take(config.takes_all(queue)),
        };
        drop(state);
        let messages = taken.iter().map(|queued| queued.message.clone()).collect();
        self.delivering.extend(taken);
        Ok(messages)
    }

    async fn model(
        &mut self,
        key: StepKey,
        messages: MessageList,
        run: &SharedLoop,
    ) -> Result<ModelReply, StepError> {
        // `messages` shares its list with the conversation. Once `messages` is dropped, the conversation can extend the list in place.
        drop(messages);
        let (_place, span) = self.enter_request().await?;
        if !self.performer.config.prepares_requests() {
            let tools = &self.performer.config.request.tools;
            let tools = shown_after(tools, run.lock().conversation().iter());
            return Ok(self.ask_model(key, &tools).instrument(span).await?.0);
        }
        Box::pin(next_reply(self, key, run)).instrument(span).await
    }

    async fn prepare(
        &mut self,
        key: StepKey,
        calls: Vec<Arc<ToolCall>>,
        _: &SharedLoop,
    ) -> Result<(), StepError> {
        self.checks_again = false;
        self.checked.clear();
        let span = self.turn_span();
        self.prepare_calls(key.ord, calls).instrument(span).await
    }

    async fn approvals(
        &mut self,
        requests: Vec<(StepKey, ApprovalRequest)>,
        _: &SharedLoop,
    ) -> Result<Vec<CallDecision>, StepError> {
        let span = self.turn_span();
        Box::pin(self.decide(requests)).instrument(span).await
    }

    async fn tools(&mut self, calls: Vec<(StepKey, Arc<ToolCall>)>, _: &SharedLoop) -> Result<(), StepError> {
        let span = self.turn_span();
        let calls = if std::mem::take(&mut self.checks_again) {
            match Box::pin(self.check_again(calls)).instrument(span.clone()).await? {
                Some(calls) => calls,
                None => return Ok(()),
            }
        } else {
            calls
        };
        self.run_calls(calls).instrument(span).await
    }

    async fn turn_end(
        &mut self,
        key: StepKey,
        summary: TurnSummary,
        run: &SharedLoop,
    ) -> Result<Option<bool>, StepError> {
        end_turn(self, key, summary, run).await
    }

    fn is_steered(&mut self, _: &SharedLoop) -> impl Future<Output = Result<bool, StepError>> + Send {
        std::future::ready(Ok(self.assistant.is_steered()))
    }

    fn event(&mut self, event: Event, _: &SharedLoop) -> impl Future<Output = Result<(), StepError>> + Send {
        // The future holds a pointer, because an event is large.
        let event = Arc::new(event);
        async move {
            self.notify(event).await;
            self.look_for_steering();
            self.check_stop()
        }
    }
}

impl InProcessSteps {
    pub(super) fn new(performer: Performer, assistant: Assistant, run: SharedLoop, stop: StopSignal) -> Self {
        Self {
            performer,
            assistant,
            run,
            stop,
            updates: None,
            reader: None,
            reply: None,
            choices: TurnChoices::default(),
            turn: None,
            delivering: Vec::new(),
            error: None,
            steps: 0,
            resumption: None,
            checks_again: false,
            records: None,
            found: BTreeMap::new(),
            checked: BTreeMap::new(),
            parent: None,
            as_parent: None,
            continued: BTreeMap::new(),
            children: None,
            is_running: true,
        }
    }

    pub(super) fn check_stop(&mut self) -> Result<(), StepError> {
        if self.stop.is_set() && self.run.lock().end().is_none() { Err(self.stopped()) } else { Ok(()) }
    }

    pub(super) fn stopped(&self) -> StepError {
        match self.stop.limit() {
            Some(reached) => StepError::Limit(reached),
            None => StepError::cancelled(&*self.performer.stop_reason()),
        }
    }

    /// Returns whether a steering message has arrived, and marks the run as steered if so. Returns `false` if the steering policy lets all
    /// calls of a turn run.
    pub(super) fn look_for_steering(&self) -> bool {
        let is_steered = self.performer.config.rules.may_be_steered() && self.assistant.is_steered();
        if is_steered {
            self.run.lock().steered();
        }
        is_steered
    }

    /// Returns the span of the turn. For the run of a sub-agent, first waits for a permit to make a request, and returns the permit, too.
    pub(super) async fn enter_request(&mut self) -> Result<(Option<OwnedSemaphorePermit>, Span), StepError> {
        let place = self.request_place().await?;
        Ok((place, self.turn_span()))
    }

    pub(super) fn turn_span(&mut self) -> Span {
        let turn = self.run.lock().turn();
        match &self.turn {
            Some((same, span)) if *same == turn => span.clone(),
            _ => {
                // The span of the previous turn ends before the new span starts, so that the two spans do not overlap.
                self.turn = None;
                self.turn.insert((turn, telemetry::turn_span(turn))).1.clone()
            }
        }
    }

    /// Marks the run as over or suspended, so that dropping `self` does not cancel it.
    pub(super) fn close(&mut self) {
        self.deliver();
        self.turn = None;
        self.is_running = false;
    }

    /// Counts a step or an event of a reply, and returns whether the run must now yield to other tasks. Without this count, a run whose
    /// model and tools are always ready would never yield. Tokio's cooperative budget is not enough: all runs that one task polls share
    /// one budget, so one run could use all of it.
    pub(super) fn has_to_yield(&mut self) -> bool {
        self.steps = (self.steps + 1) % MAX_STEPS;
        self.steps == 0
    }

    pub(super) async fn emit(&mut self) {
        let run = self.run.clone();
        let next = || run.lock().pop_event().map(Arc::new);
        while let Some(event) = next() {
            self.notify(event).await;
        }
        self.deliver();
    }

    /// Notifies this run's listeners, then the parent runs, and last this run's stream reader.
    async fn notify(&mut self, event: Arc<Event>) {
        let listeners = self.assistant.state().listeners.clone();
        listeners.notify(&event);
        if let Some(parent) = &self.parent {
            Box::pin(parent.notify(&event, self.performer.config.is_measured())).await;
        }
        if let Some(reader) = &self.reader {
            reader.hand_over(event).await;
        }
    }

    /// Sets the `Receipt` of each message in `delivering` to delivered. The messages are in the conversation now.
    fn deliver(&mut self) {
        if self.delivering.is_empty() {
            return;
        }
        let turn = self.run.lock().turn();
        for queued in self.delivering.drain(..) {
            queued.resolve(Delivery::Delivered { run_id: self.performer.run_id.clone(), turn });
        }
    }

    async fn prepare_calls(&mut self, first: u32, calls: Vec<Arc<ToolCall>>) -> Result<(), StepError> {
        for (ord, call) in (first..).zip(calls) {
            self.run.lock().record_call_start(ord)?;
            self.emit().await;
            self.check_stop()?;
            if self.look_for_steering() {
                self.run.lock().skip_calls();
                return Ok(());
            }
            let found = self.found.remove(&ord);
            let (prepared, has_begun) = self.found_or_prepared(found, ord, &call).await?;
            self.performer.record_refusal(&call, &prepared);
            {
                let mut run = self.run.lock();
                run.record_prepared(ord, prepared.into())?;
                if has_begun {
                    run.approve(ord);
                }
            }
            self.look_for_steering();
            self.emit().await;
            self.check_stop()?;
        }
        self.look_for_steering();
        Ok(())
    }

    /// Prepares a call. The second value is true if the call is ready, and `found` says that the call had begun in a process that died.
    async fn found_or_prepared(
        &mut self,
        found: Option<InterruptedCall>,
        ord: u32,
        call: &ToolCall,
    ) -> Result<(Prepared, bool), StepError> {
        let has_begun = match found {
            Some(InterruptedCall::Ended(end)) => return Ok((Prepared::Ended(end), false)),
            Some(InterruptedCall::Begun) => true,
            None => false,
        };
        Ok(match self.prepare_call(ord, call).await? {
            // A call that had begun was allowed before, so it needs no new decision.
            Prepared::Ready(ready) if has_begun => (Prepared::Ready(Ready { approval: None, ..ready }), true),
            prepared => (prepared, false),
        })
    }

    pub(super) async fn prepare_call(&mut self, ord: u32, call: &ToolCall) -> Result<Prepared, StepError> {
        let chosen = if self.performer.config.choosers.is_empty() {
            None
        } else {
            let run = self.run.clone();
            let turn = run.lock().turn();
            let tools = Box::pin(turn_tools(self, turn, true, &run)).await?;
            tools.map_err(|message| self.failed(RunError::Request { message }))?
        };
        let reply = self.last_reply();
        let kept = Some(&self.assistant);
        let prepared = self.performer.prepare_call(call, reply.as_ref(), chosen.as_deref(), kept);
        let (prepared, checked) = prepared.await.ok_or_else(|| self.stopped())?;
        if let Some(checked) = checked {
            self.checked.insert(ord, checked);
        }
        Ok(prepared)
    }

    fn close_reply(&mut self) {
        let Some(reply) = self.reply.take() else { return };
        let is_started = reply.is_started;
        let reply = self.asking().finish(reply, Some(&ModelError::aborted(DROPPED)));
        if is_started && let Err(error) = self.run.lock().record_reply(reply) {
            tracing::error!(%error, "the reply of a dropped run was not recorded");
        }
    }
}

impl Drop for InProcessSteps {
    /// Ends a run that is still running, as cancelled or by the limit that it has reached.
    fn drop(&mut self) {
        if !self.is_running {
            return;
        }
        self.stop.cancel.cancel(DROPPED);
        self.close_reply();
        match self.stopped() {
            StepError::Limit(reached) => self.run.lock().abort_by_limit(reached),
            _ => self.run.lock().abort(&self.performer.stop_reason()),
        }
        // A drop cannot wait for the reader of the run's stream, so only the listeners are notified.
        let (run, is_measured) = (self.run.clone(), self.performer.config.is_measured());
        let next = || run.lock().take_event();
        while let Some(event) = next() {
            let event = Arc::new(event);
            let listeners = self.assistant.state().listeners.clone();
            listeners.notify(&event);
            self.parent.iter().for_each(|parent| parent.notify_at_once(&event, is_measured));
        }
        self.deliver();
        self.assistant.end_run(None);
        self.records.iter().for_each(|records| records.abandon(DROPPED, &self.assistant));
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{reply, scripted::ScriptedModel};
    use crate::runtime::{Assistant, Decisions, RunError};
    use crate::tool::approval::Approval;
    use crate::tool::builder::ToolBuilder;

    #[tokio::test]
    async fn a_choice_of_tools_that_fails_after_a_resume_ends_the_run() {
        let builder = |model: &ScriptedModel| {
            let pay = ToolBuilder::new("pay").description("Pays.").approval(Approval::ALWAYS);
            let pay = pay.build(|_args: serde_json::Value, _cx| async { "paid" }).unwrap();
            Assistant::builder(model.clone()).tools(pay)
        };
        let model = ScriptedModel::new([reply().tool_call("pay", "{}").tool_call("pay", "{}")]);
        let suspended = builder(&model).build().unwrap().prompt("Pay").await.unwrap().snapshot.unwrap();
        let model = ScriptedModel::new(["never"]);
        let next = builder(&model).prepare_tools(|_| async { Err("no list".into()) }).build().unwrap();
        let allowed = suspended.requests().iter().fold(Decisions::new(), Decisions::allow);
        let error = next.resume(&suspended, allowed).await.unwrap_err();
        assert!(matches!(&error, RunError::Request { message } if message.contains("no list")), "{error}");
        assert_eq!(model.requests().len(), 0);
        let results: Vec<_> =
            next.messages().iter().filter_map(|m| m.as_tool_result()?.code.clone()).collect();
        assert_eq!(results, ["aborted", "aborted"]);
    }
}
