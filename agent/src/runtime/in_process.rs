//! The steps of a run in this process: listeners are notified while a step works, messages come from the assistant's queues.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tracing::{Instrument as _, Span};

use super::approval::Resumption;
use super::ask::{ReplyStream, is_update};
use super::assistant::{Assistant, AssistantState};
use super::checked::CheckedArguments;
use super::context::{FitRequest, SummaryOutcome, ViewKeeper};
use super::error::RunError;
use super::hooks::{HookError, hook_error};
use super::listener::EventSlot;
use super::perform::Performer;
use super::progress::Updates;
use super::queue::{Delivery, QueuedMessage};
use super::records::{InterruptedCall, RunRecords};
use super::stop::StopSignal;
use super::telemetry;
use super::turn_tools::before_reply;
use crate::loop_core::{
    ApprovalRequest, CallDecision, CallEnd, Event, ModelReply, Prepared, Queue, Ready, RecordError,
    SteeringPolicy, TurnDecision, TurnSummary, steered,
};
use crate::message::{AssistantMessage, Message, MessageList, StopReason, ToolCall};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, StepCx};
use crate::steps::{SharedLoop, StepError, StepKey, Steps};
use crate::tool::BoxFuture;
use crate::tool::combine::shown_after;
use crate::tool::definition::ToolDefinition;

/// Performs the steps of one run of an assistant. Closes open calls and replies when it is dropped, so the conversation is sound at any time.
pub(super) struct InProcessSteps {
    pub(super) performer: Performer,
    pub(super) assistant: Assistant,
    pub(super) run: SharedLoop,
    pub(super) stop: StopSignal,
    /// The progress that running bodies report, if listeners read it.
    pub(super) updates: Option<Arc<Updates>>,
    /// Where the reader of the run's stream takes its events.
    pub(super) reader: Option<EventSlot>,
    /// The reply that streams now.
    reply: Option<Box<ReplyStream>>,
    /// Makes the requests of a turn, if another model than the assistant's was chosen.
    asking: Option<(u32, Performer)>,
    /// The tools of a turn, if the application chooses them.
    chosen: Option<(u32, Arc<[ToolDefinition]>)>,
    /// The span of a turn.
    turn: Option<(u32, Span)>,
    /// Queued messages that were taken, and whose events are not emitted yet.
    pub(super) delivering: Vec<QueuedMessage>,
    /// The error that ended the run, if it has more than a message.
    pub(super) error: Option<RunError>,
    /// The number of answers that were refused so far.
    refused_answers: u32,
    /// The number of steps since other tasks had their turn.
    steps: u32,
    /// The decisions and results with which a suspended run continues.
    pub(super) resumption: Option<Resumption>,
    /// Whether calls may run that were checked before the run was resumed.
    pub(super) checks_again: bool,
    /// The records of calls, if the assistant has a store.
    pub(super) records: Option<Arc<RunRecords>>,
    /// The calls of this segment that the store has records of, by their position.
    pub(super) found: HashMap<u32, InterruptedCall>,
    /// The calls of this segment that may run, by their position.
    pub(super) checked: HashMap<u32, Arc<CheckedArguments>>,
    /// Whether the run is the assistant's.
    pub(super) is_running: bool,
}

/// What an event of a reply has changed.
enum ReplyProgress {
    /// The reply has another piece, of which listeners are notified.
    Grown,
    Unchanged,
    /// The reply has ended, with an error if it is not whole.
    Ended(Option<ModelError>),
}

/// The number of steps that a run takes before it yields to other tasks.
const MAX_STEPS: u32 = 128;

pub(super) const DROPPED: &str = "the prompt was dropped";

impl Steps for InProcessSteps {
    async fn before_step(&mut self, _: &SharedLoop) -> Result<(), StepError> {
        self.deliver();
        self.yield_at_times().await;
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
            Queue::Steering => state.steering.take(config.steering_mode),
            Queue::FollowUp => state.follow_ups.take(config.follow_up_mode),
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
        _: &SharedLoop,
    ) -> Result<ModelReply, StepError> {
        // Dropped, so that the lists have one owner and grow in place.
        drop(messages);
        let span = self.turn_span();
        if !self.performer.config.prepares_requests() {
            return self.ask(key).instrument(span).await;
        }
        let asking = async {
            self.select_model(&key).await?;
            self.fit_context(&key, None).await?;
            match self.ask_or_overflow(key.clone()).await? {
                Ok(reply) => Ok(reply),
                Err(overflow) => {
                    self.fit_context(&key, Some(overflow)).await?;
                    self.ask_again(key).await
                }
            }
        };
        Box::pin(asking).instrument(span).await
    }

    async fn prepare(&mut self, key: StepKey, calls: Vec<ToolCall>, _: &SharedLoop) -> Result<(), StepError> {
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

    async fn tools(&mut self, calls: Vec<(StepKey, ToolCall)>, _: &SharedLoop) -> Result<(), StepError> {
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
        _: StepKey,
        summary: TurnSummary,
        _: &SharedLoop,
    ) -> Result<TurnDecision, StepError> {
        let mut go_on = None;
        if !self.performer.config.hooks.is_empty() {
            go_on = match Box::pin(self.performer.turn_end(summary.clone())).await {
                Some(Ok(decision)) => decision,
                Some(Err(error)) => return Err(self.failed(&error)),
                None => return Err(self.stopped()),
            };
        }
        let refused = self.performer.refused_answer(&summary, &self.run.lock(), &mut self.refused_answers);
        if let Some(report) = refused {
            self.assistant.state().steering.push_front(report);
            return Ok(TurnDecision { go_on: Some(true), is_queued: true });
        }
        let state = self.assistant.state();
        Ok(TurnDecision { go_on, is_queued: !state.steering.is_empty() || !state.follow_ups.is_empty() })
    }

    fn event(&mut self, event: Event, _: &SharedLoop) -> impl Future<Output = Result<(), StepError>> + Send {
        // The future holds a pointer, because an event is large.
        let event = Arc::new(event);
        async move {
            self.notify(event).await;
            self.is_steered();
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
            asking: None,
            chosen: None,
            turn: None,
            delivering: Vec::new(),
            error: None,
            refused_answers: 0,
            steps: 0,
            resumption: None,
            checks_again: false,
            records: None,
            found: HashMap::new(),
            checked: HashMap::new(),
            is_running: true,
        }
    }

    /// Returns the error that stops the run, or `Ok` if it is not stopped or has ended.
    pub(super) fn check_stop(&mut self) -> Result<(), StepError> {
        if self.stop.is_set() && self.run.lock().end().is_none() { Err(self.stopped()) } else { Ok(()) }
    }

    /// Returns the error for a step that was stopped.
    pub(super) fn stopped(&self) -> StepError {
        match self.stop.limit() {
            Some(reached) => StepError::Limit(reached),
            None => StepError::cancelled(&*self.performer.stop_reason()),
        }
    }

    /// Returns the error for a hook that failed and ends the run.
    fn failed(&mut self, error: &HookError) -> StepError {
        let message = error.to_string();
        self.error = Some(RunError::Request { message: message.clone() });
        StepError::failed(message)
    }

    /// Whether a steering message arrived in this turn, which takes precedence over calls that have not begun. One that was queued
    /// before the turn began does not count: it gets a turn of its own.
    pub(super) fn is_steered(&self) -> bool {
        let is_steered = self.performer.config.rules.steering != SteeringPolicy::AfterBatch
            && self.assistant.state().steering.has_new_messages();
        if is_steered {
            self.run.lock().steered();
        }
        is_steered
    }

    /// Returns the span of the turn, which ends when the next one begins.
    pub(super) fn turn_span(&mut self) -> Span {
        let turn = self.run.lock().turn();
        match &self.turn {
            Some((same, span)) if *same == turn => span.clone(),
            _ => {
                // Ended first: a turn is not a part of the one before it.
                self.turn = None;
                self.turn.insert((turn, telemetry::turn_span(turn))).1.clone()
            }
        }
    }

    /// The run is over or suspended: nothing is left to be closed.
    pub(super) fn close(&mut self) {
        self.deliver();
        self.turn = None;
        self.is_running = false;
    }

    /// Yields to the other tasks of the thread from time to time, because a model whose events have all arrived, and tools that need no time,
    /// never wait. Counted for each run: tokio counts for each task, which may contain many runs.
    pub(super) async fn yield_at_times(&mut self) {
        self.steps += 1;
        if self.steps >= MAX_STEPS {
            self.steps = 0;
            tokio::task::yield_now().await;
        }
    }

    /// Notifies all listeners of the events so far, while a step works.
    pub(super) async fn emit(&mut self) {
        let run = self.run.clone();
        let next = || run.lock().pop_event().map(Arc::new);
        while let Some(event) = next() {
            self.notify(event).await;
        }
        self.deliver();
    }

    /// Notifies the listeners and the reader of an event, one after the other.
    async fn notify(&mut self, event: Arc<Event>) {
        let listeners = self.assistant.state().listeners.clone();
        for listener in listeners.iter() {
            if let Some(wait) = listener.notify_async(&event) {
                let grace = self.performer.config.cancel_grace;
                Box::pin(listener.wait(wait, &self.stop.cancel, grace)).await;
            }
        }
        if let Some(reader) = &self.reader {
            reader.hand_over(event).await;
        }
    }

    /// Reports that the taken messages are in the conversation.
    fn deliver(&mut self) {
        if self.delivering.is_empty() {
            return;
        }
        let turn = self.run.lock().turn();
        for queued in self.delivering.drain(..) {
            queued.resolve(Delivery::Delivered { run_id: self.performer.run_id.clone(), turn });
        }
    }

    /// Returns one reply of the model.
    async fn ask(&mut self, key: StepKey) -> Result<ModelReply, StepError> {
        let request = match self.turn_tools(false).await.ok_or_else(|| self.stopped())? {
            Ok(tools) => self.next_request(&tools).await.ok_or_else(|| self.stopped())?,
            Err(error) => Err(error),
        };
        let span = match self.send(key, request) {
            Ok(span) => span,
            Err(reply) => return Ok(*reply),
        };
        let failure = self.read().instrument(span).await;
        self.end_reply(failure)
    }

    /// Sends a request, and returns the span of its reply. Not asynchronous, because the future of a request would hold what is only moved
    /// here.
    ///
    /// # Errors
    /// Returns a failed reply if a hook refused the request, or if the client of the model panics.
    fn send(
        &mut self,
        key: StepKey,
        request: Result<ModelRequest, HookError>,
    ) -> Result<Span, Box<ModelReply>> {
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                self.error = Some(RunError::Request { message: error.to_string() });
                return Err(Box::new(self.asking().refused_request(&error).0));
            }
        };
        let step = StepCx::new().with_cancel(self.stop.cancel.clone());
        // The request is dropped here: the list of messages can then grow in place.
        match self.asking().send(key, step, &request) {
            Ok(reply) => {
                let span = reply.span.clone();
                self.reply = Some(Box::new(reply));
                Ok(span)
            }
            Err(failed) => {
                let (reply, error) = *failed;
                self.error = Some(RunError::Model(error));
                Err(Box::new(reply))
            }
        }
    }

    /// Returns the reply at its end, complete or as far as it arrived.
    fn end_reply(&mut self, failure: Option<ModelError>) -> Result<ModelReply, StepError> {
        self.assistant.end_growth();
        let Some(reply) = self.reply.take() else { return Err(self.stopped()) };
        let is_started = reply.is_started;
        let mut reply = self.asking().finish(*reply, failure.as_ref());
        if !is_started {
            self.announce_switch(&reply.message);
        }
        if reply.message.stop_reason == StopReason::Error {
            let text = || reply.message.error.clone().unwrap_or_default();
            let error = failure.unwrap_or_else(|| ModelError::new(ModelErrorKind::Other, text()));
            self.error = Some(RunError::Model(error));
        }
        reply.limit = self.stop.limit();
        Ok(reply)
    }

    /// Reads the reply to its end, while listeners are notified of its pieces.
    async fn read(&mut self) -> Option<ModelError> {
        loop {
            match poll_fn(|cx| self.poll_reply(cx)).await {
                ReplyProgress::Grown => self.emit().await,
                ReplyProgress::Unchanged => {}
                ReplyProgress::Ended(failure) => return failure,
            }
            self.yield_at_times().await;
        }
    }

    /// Adds the next event to the reply, when it arrives.
    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<ReplyProgress> {
        let Some(reply) = &mut self.reply else { return Poll::Ready(ReplyProgress::Ended(None)) };
        Poll::Ready(match ready!(reply.poll_event(cx)) {
            Some(Ok(event)) => self.take_event(event),
            Some(Err(error)) => ReplyProgress::Ended(Some(error)),
            None => ReplyProgress::Ended(None),
        })
    }

    /// Adds an event to the reply, if it is a piece of it.
    fn take_event(&mut self, event: ModelEvent) -> ReplyProgress {
        let Some(reply) = self.reply.as_mut().filter(|_| is_update(&event)) else {
            return ReplyProgress::Unchanged;
        };
        let begins = !std::mem::replace(&mut reply.is_started, true);
        let started = begins.then(|| Arc::new(Message::Assistant(reply.stream.without_parts())));
        if let Some(Message::Assistant(started)) = started.as_deref() {
            self.announce_switch(started);
        }
        self.assistant.grow(started.as_ref(), &event);
        if let Err(error) = record_piece(&self.run, started, event) {
            tracing::error!(%error, "a piece of a reply was not recorded");
        }
        ReplyProgress::Grown
    }

    /// Returns the next request. Returns `None` if the run is stopped first.
    async fn next_request(
        &mut self,
        tools: &Arc<[ToolDefinition]>,
    ) -> Option<Result<ModelRequest, HookError>> {
        if !self.performer.config.hooks.is_empty() {
            // Computed before hooks change the messages, so that a tool that was found stays available.
            let tools = shown_after(tools, self.run.lock().conversation().iter());
            let messages = self.view();
            let request = self.asking().request(messages, tools);
            return Some(Box::pin(request).await?.map(|request| self.assistant.share_kept_text(request)));
        }
        let recipient = self.asking.as_ref().map(|(_, performer)| performer.recipient());
        let is_managed = self.performer.config.context.is_some();
        let mut state = self.assistant.state();
        let AssistantState { hand_off, context, .. } = &mut *state;
        let run = self.run.lock();
        if let Some(recipient) = recipient {
            hand_off.set_recipient(recipient);
        }
        if is_managed {
            // Another change of the view may have left the last message as it is.
            if std::mem::replace(&mut context.handed, context.view.generation()) != context.view.generation()
            {
                hand_off.restart();
            }
            hand_off.update(context.view.messages());
        } else {
            hand_off.update(run.conversation().shared());
        }
        let messages = hand_off.messages().clone();
        let tools = shown_after(tools, run.conversation().iter());
        drop(run);
        drop(state);
        Some(Ok(self.asking().config.request_of(messages, tools)))
    }

    /// Returns what of the conversation is sent.
    fn view(&self) -> MessageList {
        if self.performer.config.context.is_some() {
            self.assistant.state().context.view.messages().clone()
        } else {
            self.run.lock().conversation().list()
        }
    }

    /// Returns the performer of the requests of this turn.
    fn asking(&self) -> &Performer {
        self.asking.as_ref().map_or(&self.performer, |(_, performer)| performer)
    }

    /// Has the application choose the model of the turn.
    pub(super) async fn select_model(&mut self, key: &StepKey) -> Result<(), StepError> {
        if self.performer.config.selector.is_none()
            || self.asking.as_ref().is_some_and(|(turn, _)| *turn == key.turn)
        {
            return Ok(());
        }
        let (messages, usage) = {
            let run = self.run.lock();
            (run.conversation().list(), run.usage().clone())
        };
        let chosen = self.performer.select_model(key.turn, messages, usage).await;
        let chosen = chosen.ok_or_else(|| self.stopped())?;
        match chosen.and_then(|choice| self.performer.with_model(choice.as_deref())) {
            Ok(performer) => self.asking = Some((key.turn, performer)),
            Err(error) => return Err(self.failed(&error)),
        }
        Ok(())
    }

    /// Changes the view of the conversation until the next request fits. `overflow` is the error with which the provider refused it.
    pub(super) async fn fit_context(
        &mut self,
        key: &StepKey,
        overflow: Option<ModelError>,
    ) -> Result<(), StepError> {
        if self.performer.config.context.is_none() {
            return Ok(());
        }
        let (performer, run) = (self.asking().clone(), self.run.clone());
        let mut context = std::mem::take(&mut self.assistant.state().context);
        let request = FitRequest { key: key.clone(), overflow };
        let fitted = performer.fit_context(&mut context, &run, request, self).await;
        self.assistant.state().context = context;
        fitted?.map_err(|error| {
            let message = error.to_string();
            self.error = Some(RunError::Context(error));
            StepError::failed(message)
        })
    }

    /// Asks the model. The inner error is that of a provider that refused the request as too long, which is sent again once the view was
    /// changed.
    pub(super) async fn ask_or_overflow(
        &mut self,
        key: StepKey,
    ) -> Result<Result<ModelReply, ModelError>, StepError> {
        let reply = self.ask(key).await?;
        let is_managed = self.performer.config.context.is_some();
        match self.error.take() {
            Some(RunError::Model(error))
                if is_managed && error.is_context_too_long() && reply.message.content.is_empty() =>
            {
                Ok(Err(error))
            }
            other => {
                self.error = other;
                Ok(Ok(reply))
            }
        }
    }

    /// Asks the model once more. A request that is refused as too long again is an error of the context.
    pub(super) async fn ask_again(&mut self, key: StepKey) -> Result<ModelReply, StepError> {
        match self.ask_or_overflow(key).await? {
            Ok(reply) => Ok(reply),
            Err(overflow) => {
                let error = self.asking().still_too_long(&self.assistant.state().context, overflow);
                let message = error.to_string();
                self.error = Some(RunError::Context(error));
                Err(StepError::failed(message))
            }
        }
    }

    /// Emits an event if another model answers than that of the last reply.
    fn announce_switch(&mut self, reply: &AssistantMessage) {
        if !self.performer.config.may_switch {
            return;
        }
        let view = self.view();
        let mut run = self.run.lock();
        if let Some(event) = self.asking().switch_event(run.conversation(), &view, reply) {
            run.record_event(event);
        }
    }

    /// Returns the tools that the model has in this turn. Returns `None` if the run is stopped first.
    async fn turn_tools(&mut self, has_replied: bool) -> Option<Result<Arc<[ToolDefinition]>, HookError>> {
        if !self.performer.chooses_tools() {
            return Some(Ok(self.performer.config.request.tools.clone()));
        }
        let (turn, messages) = {
            let run = self.run.lock();
            (run.turn(), run.conversation().list())
        };
        if let Some((_, tools)) = self.chosen.as_ref().filter(|(chosen, _)| *chosen == turn) {
            return Some(Ok(tools.clone()));
        }
        let messages = if has_replied { before_reply(&messages) } else { messages };
        let tools = match Box::pin(self.performer.choose_tools(turn, messages)).await? {
            Ok(tools) => tools,
            Err(error) => return Some(Err(error)),
        };
        self.chosen = Some((turn, tools.clone()));
        Some(Ok(tools))
    }

    /// Prepares each call of a segment, in call order.
    async fn prepare_calls(&mut self, first: u32, calls: Vec<ToolCall>) -> Result<(), StepError> {
        for (ord, call) in (first..).zip(calls) {
            self.run.lock().record_call_start(ord)?;
            self.emit().await;
            self.check_stop()?;
            let (prepared, has_begun) = if self.is_steered() {
                (Prepared::Ended(CallEnd::new(steered())), false)
            } else {
                let found = self.found.remove(&ord);
                let prepared =
                    self.found_or_prepared(found, ord, &call).await.ok_or_else(|| self.stopped())?;
                if let (Prepared::Ended(end), _) = &prepared
                    && end.outcome.is_error()
                {
                    let tool = self.performer.config.registry.get(&call.name);
                    telemetry::record_refusal(tool, &call, &end.outcome, &self.performer.context);
                }
                prepared
            };
            {
                let mut run = self.run.lock();
                run.record_prepared(ord, prepared)?;
                if has_begun {
                    run.approve(ord);
                }
            }
            self.is_steered();
            self.emit().await;
            self.check_stop()?;
        }
        self.is_steered();
        Ok(())
    }

    /// Prepares a call, and returns whether it had begun before: a run that resumes after its process died finds its calls in the store.
    /// Returns `None` if the run is stopped first.
    async fn found_or_prepared(
        &mut self,
        found: Option<InterruptedCall>,
        ord: u32,
        call: &ToolCall,
    ) -> Option<(Prepared, bool)> {
        let has_begun = match found {
            Some(InterruptedCall::Ended(end)) => return Some((Prepared::Ended(*end), false)),
            Some(InterruptedCall::Begun) => true,
            None => false,
        };
        Some(match self.prepare_call(ord, call).await? {
            // It was allowed before it began.
            Prepared::Ready(ready) if has_begun => (Prepared::Ready(Ready { approval: None, ..ready }), true),
            prepared => (prepared, false),
        })
    }

    /// Prepares a call. Returns `None` if the run is stopped first.
    pub(super) async fn prepare_call(&mut self, ord: u32, call: &ToolCall) -> Option<Prepared> {
        let chosen = if self.performer.chooses_tools() {
            match self.turn_tools(true).await? {
                Ok(tools) => Some(tools),
                Err(error) => {
                    let failed = hook_error(&error.to_string());
                    return Some(Prepared::Ended(CallEnd::new(failed)));
                }
            }
        } else {
            None
        };
        let reply = self.run.lock().conversation().shared().last().cloned();
        let reply = reply.filter(|message| matches!(**message, Message::Assistant(_)));
        let cache = self.assistant.cache();
        let prepared = self.performer.prepare_call(call, reply.as_ref(), chosen.as_deref(), Some(cache));
        let (prepared, checked) = prepared.await?;
        if let Some(checked) = checked {
            self.checked.insert(ord, checked);
        }
        Some(prepared)
    }

    /// Records the reply as far as it arrived, when the run is dropped.
    fn close_reply(&mut self) {
        let Some(reply) = self.reply.take() else { return };
        let is_started = reply.is_started;
        let reply = self.asking().finish(*reply, Some(&ModelError::aborted(DROPPED)));
        if is_started && let Err(error) = self.run.lock().record_reply(reply) {
            tracing::error!(%error, "the reply of a dropped run was not recorded");
        }
    }
}

impl ViewKeeper for InProcessSteps {
    async fn summarize(
        &mut self,
        _: StepKey,
        work: BoxFuture<'static, SummaryOutcome>,
    ) -> Result<SummaryOutcome, StepError> {
        let done = self.performer.clone().until_stopped(work).await;
        done.ok_or_else(|| self.stopped())
    }

    async fn notify(&mut self) -> Result<(), StepError> {
        self.emit().await;
        self.check_stop()
    }
}

/// Records a piece of a reply, and before the first one that the reply has started.
fn record_piece(
    run: &SharedLoop,
    started: Option<Arc<Message>>,
    event: ModelEvent,
) -> Result<(), RecordError> {
    let mut run = run.lock();
    if let Some(started) = started {
        run.record_reply_start(started)?;
    }
    run.record_reply_update(event)
}

impl Drop for InProcessSteps {
    /// Closes what is open, as if the run had been cancelled.
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
        // Listeners are notified, and not waited for.
        let run = self.run.clone();
        let next = || run.lock().take_event();
        while let Some(event) = next() {
            let event = Arc::new(event);
            let listeners = self.assistant.state().listeners.clone();
            listeners.iter().for_each(|listener| listener.notify(&event));
        }
        self.deliver();
        self.assistant.end_run(None);
        self.records.iter().for_each(|records| records.clone().abandon(DROPPED));
    }
}
