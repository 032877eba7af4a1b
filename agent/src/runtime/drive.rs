//! Drives the loop of one run on tokio: the only place that waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use tracing::{Instrument as _, Span};

use super::approval::Resumption;
use super::assistant::Config;
use super::begin::{Begin, Rest};
use super::builder::fingerprint;
use super::hooks::{HookError, Hooks, call_hook};
use super::listener::{LISTENER_TIMEOUT, Listener};
use super::observe::RequestTiming;
use super::output::{AnswerReader, ExpectedOutput};
use super::progress::Updates;
use super::queue::{Delivery, QueueMode, QueuedMessage};
use super::records::{Left, RunRecords};
use super::stop::StopSignal;
use super::{Assistant, RunError, RunOutput, telemetry};
use crate::loop_core::{
    AgentLoop, Answer, Effect, End, Event, Note, Queue, Reply, RunStop, TurnSummary, Verdict,
};
use crate::message::{AssistantMessage, Message, StopReason, Usage, UserMessage};
use crate::model::{ModelError, ModelStream};
use crate::panics::{catch, catch_future};
use crate::store::StoreError;
use crate::{
    BoxFuture, CancelToken, Source, StepKey, ToolContext, ToolContextBuilder, ToolDefinition, Value,
};

/// One run. Whatever it leaves open is closed when it is dropped, so the conversation is sound at any time.
pub(super) struct Driver {
    pub(super) assistant: Assistant,
    pub(super) config: Arc<Config>,
    pub(super) run_id: Arc<str>,
    pub(super) stop: StopSignal,
    pub(super) context: ToolContext,
    pub(super) updates: Option<Arc<Updates>>,
    watcher: Option<Watcher>,
    pub(super) stream: Option<Box<Reading>>,
    /// The tools of a turn, where somebody chooses them.
    pub(super) chosen: Option<(u32, Arc<[ToolDefinition]>)>,
    /// The span of a turn.
    turn: Option<(u32, Span)>,
    /// Queued messages that are in the loop, and not told yet.
    delivering: Vec<QueuedMessage>,
    pub(super) error: Option<RunError>,
    /// What it has to come to, and how often an answer was sent back.
    wanted: Option<Arc<ExpectedOutput>>,
    /// Reads the answer, if the schema is the assistant's.
    answer: Option<Arc<AnswerReader<Value>>>,
    asked_again: u32,
    /// How many steps were taken since others had their turn.
    steps: u32,
    /// How a run goes on that was suspended.
    resumption: Option<Resumption>,
    /// Whether calls may run that were checked before the run was resumed.
    pub(super) checks_again: bool,
    /// What of the run is written down, where there is a store, and what went wrong with that.
    pub(super) records: Option<Arc<RunRecords>>,
    pub(super) store_error: Option<StoreError>,
    /// How many messages of the conversation have been looked at for that.
    pub(super) seen: usize,
    /// Where the run was left by a process that is gone.
    pub(super) left: Option<Left>,
    /// Whether the run is the assistant's.
    is_running: bool,
}

/// A reply while it streams.
pub(super) struct Reading {
    pub(super) stream: ModelStream,
    /// Whether its start was told.
    pub(super) is_started: bool,
    pub(super) asked: RequestTiming,
}

/// Where the events of a run go that is read as a stream: one at a time.
#[derive(Clone, Default)]
pub(super) struct Watcher {
    slot: Arc<Mutex<Option<Arc<Event>>>>,
}

impl Watcher {
    pub(super) fn take(&self) -> Option<Arc<Event>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, event: Arc<Event>) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
    }

    /// Until the reader has it. Nobody is woken: who reads polls the run again.
    async fn taken(&self) {
        std::future::poll_fn(|_| {
            let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_none() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// How many steps a run takes before others have their turn.
const MAX_STEPS: u32 = 128;

const DROPPED: &str = "the prompt was dropped";

impl Driver {
    pub(super) fn new(
        assistant: Assistant,
        run_id: Arc<str>,
        cancel: CancelToken,
        mut context: ToolContextBuilder,
        watcher: Option<Watcher>,
        wanted: Option<Arc<ExpectedOutput>>,
    ) -> Result<Box<Self>, RunError> {
        let mut config = assistant.config().clone();
        let answer = config.answer.clone().filter(|_| wanted.is_none());
        let wanted = wanted.or_else(|| answer.as_ref().map(|reader| Arc::new(reader.expected_output())));
        if let Some(wanted) = &wanted {
            config = Arc::new(wanted.configure(&config)?);
        }
        let updates = (watcher.is_some() || assistant.is_watched()).then(Arc::<Updates>::default);
        if let Some(updates) = updates.clone() {
            context = context.on_progress(move |update| updates.push(update));
        }
        let context = context.capture(config.capture.clone()).build()?;
        config.registry.check_state(&context).map_err(RunError::MissingState)?;
        if let Some(source) = context.source() {
            config = showing(config, source)?;
        }
        let records =
            config.keeper.as_ref().map(|keeper| RunRecords::new(keeper, &context, assistant.session()));
        Ok(Box::new(Self {
            assistant,
            config,
            records,
            store_error: None,
            seen: 0,
            left: None,
            run_id,
            stop: StopSignal::new(cancel, None),
            context,
            updates,
            watcher,
            stream: None,
            chosen: None,
            turn: None,
            delivering: Vec::new(),
            error: None,
            wanted,
            answer,
            asked_again: 0,
            steps: 0,
            resumption: None,
            checks_again: false,
            is_running: false,
        }))
    }

    /// Makes the run the assistant's.
    pub(super) fn begin(&mut self, begin: Begin) -> Result<(), RunError> {
        let (run_id, cancel) = (self.run_id.clone(), self.stop.cancel.clone());
        let is_watched = self.watcher.is_some();
        (self.delivering, self.resumption) =
            self.assistant.begin_run(run_id, begin, cancel, is_watched, &self.config)?;
        self.is_running = true;
        // What a run that goes on has said was seen by whoever had it before.
        let (all, added) =
            self.core(|core, _| (core.conversation().len(), core.added().len())).unwrap_or_default();
        self.seen = match &self.resumption {
            None => all - added,
            Some(resumption) if resumption.left.is_some() => self.assistant.stored().unwrap_or(all),
            Some(_) => all,
        };
        Ok(())
    }

    // Futures hold what they wait for by value: a box keeps the run's small, of which there may be many.
    pub(super) async fn run(mut self: Box<Self>) -> Result<RunOutput, RunError> {
        self.stop = StopSignal::new(self.stop.cancel.clone(), self.config.rules.limits.wall_time);
        if let (Some(records), Some(at)) = (&self.records, self.stop.deadline()) {
            records.ends_at(at);
        }
        let span = telemetry::run_span(self.config.model.info(), &self.run_id, self.context.session_id());
        if let Some(resumption) = self.resumption.take() {
            Box::pin(self.go_on(resumption)).instrument(span.clone()).await;
        }
        let is_suspended = self.drive().instrument(span.clone()).await;
        self.turn = None;
        let (usage, stop) = self
            .core(|core, _| (core.usage().clone(), core.end().map_or(RunStop::Suspended, End::stop)))
            .unwrap_or((Usage::default(), RunStop::Suspended));
        telemetry::end_run(&span, &usage, stop.as_str(), stop == RunStop::Error);
        self.output(is_suspended)
    }

    /// Goes on until the run is over; true when it is suspended.
    async fn drive(&mut self) -> bool {
        loop {
            self.emit().await;
            self.let_others().await;
            if self.records.is_some() && Box::pin(self.write_down()).await {
                continue;
            }
            if self.stop.is_set() && self.core(|core, _| core.end().is_none()).unwrap_or_default() {
                self.abort();
                continue;
            }
            let Some(effect) = self.core(|core, _| core.next()) else { return false };
            match effect {
                Effect::Poll { key, queue } => self.poll(key, queue).await,
                Effect::CallModel { key, messages } => {
                    let span = self.turn_span();
                    Box::pin(self.ask(key, messages)).instrument(span).await;
                }
                Effect::Prepare { calls, key } => {
                    self.checks_again = false;
                    let span = self.turn_span();
                    self.prepare(key.ord, calls).instrument(span).await;
                }
                Effect::Approve { requests } => {
                    let span = self.turn_span();
                    if Box::pin(self.approve(requests)).instrument(span).await {
                        return true;
                    }
                }
                Effect::CallTools { calls } if std::mem::take(&mut self.checks_again) => {
                    let span = self.turn_span();
                    Box::pin(self.check_again(calls)).instrument(span).await;
                }
                Effect::CallTools { calls } => {
                    let span = self.turn_span();
                    self.call_tools(calls).instrument(span).await;
                }
                Effect::Await { .. } => return self.suspend().await,
                Effect::TurnEnd { summary, .. } if self.config.hooks.is_empty() => {
                    self.end_turn(&summary, None);
                }
                Effect::TurnEnd { summary, .. } => Box::pin(self.turn_end(summary)).await,
                Effect::Done(_) => return false,
            }
        }
    }

    /// The span of the turn, which ends with the next one's beginning.
    fn turn_span(&mut self) -> Span {
        let turn = self.core(|core, _| core.turn()).unwrap_or_default();
        match &self.turn {
            Some((same, span)) if *same == turn => span.clone(),
            _ => {
                // Ended first: a turn is no part of the one before it.
                self.turn = None;
                self.turn.insert((turn, telemetry::turn_span(turn))).1.clone()
            }
        }
    }

    /// A model whose events are all there, or tools that need no time, never wait: from time to time the others on this
    /// thread have their turn. Counted for each run alone: tokio's own count is one for a whole task, and many runs may
    /// be in one.
    pub(super) async fn let_others(&mut self) {
        self.steps += 1;
        if self.steps >= MAX_STEPS {
            self.steps = 0;
            tokio::task::yield_now().await;
        }
    }

    /// The loop, and what the assistant has beside it. It is there as long as the run is.
    pub(super) fn core<T>(&self, then: impl FnOnce(&mut AgentLoop, &mut Rest<'_>) -> T) -> Option<T> {
        self.assistant.with_run(then)
    }

    /// Answers the pending effect. What the driver answers fits; where it does not, the run ends and says so.
    pub(super) fn answer(&self, answer: Answer) {
        let refused =
            self.core(|core, _| core.answer(answer).err().inspect(|error| core.fail(&error.to_string())));
        if let Some(error) = refused.flatten() {
            tracing::error!(run_id = %self.run_id, %error, "the driver gave a wrong answer");
        }
    }

    pub(super) fn note(&self, note: Note) {
        if let Some(Err(error)) = self.core(|core, _| core.note(note)) {
            tracing::error!(run_id = %self.run_id, %error, "the driver gave a wrong note");
        }
    }

    async fn poll(&mut self, key: StepKey, queue: Queue) {
        let config = self.config.clone();
        let inbox = match (&self.records, queue) {
            (Some(records), Queue::Steering) => {
                let nobody_waits = self.assistant.state().steering.is_empty();
                let room = match config.steering_mode {
                    QueueMode::OneAtATime => usize::from(nobody_waits),
                    QueueMode::All => usize::MAX,
                };
                Box::pin(records.clone().inbox(key, room)).await
            }
            _ => Vec::new(),
        };
        let taken = self.core(|core, rest| {
            let taken = match queue {
                Queue::Steering => rest.steering.take(config.steering_mode),
                Queue::FollowUp => rest.follow_ups.take(config.follow_up_mode),
            };
            let new = inbox.into_iter().filter(|message| !is_said(core, message));
            let messages = taken.iter().map(|queued| queued.message.clone());
            let messages = messages.chain(new.map(|message| Arc::new(message.into()))).collect();
            (core.answer(Answer::Messages(messages)), taken)
        });
        if let Some((_, taken)) = taken {
            self.delivering.extend(taken);
        }
    }

    async fn turn_end(&mut self, summary: TurnSummary) {
        let mut go_on = None;
        for hook in self.config.hooks.clone() {
            let asked = self.hook(|| hook.on_turn_end(summary.clone())).await;
            match asked {
                Some(Ok(opinion)) => go_on = opinion.or(go_on),
                Some(Err(error)) => {
                    self.error = Some(RunError::Request { message: error.to_string() });
                    self.core(|core, _| core.fail(&error.to_string()));
                    return;
                }
                None => return,
            }
        }
        self.end_turn(&summary, go_on);
    }

    fn end_turn(&mut self, summary: &TurnSummary, go_on: Option<bool>) {
        if self.ask_again(summary) {
            return self.answer(Answer::Verdict(Verdict { go_on: Some(true), is_queued: true }));
        }
        let is_queued = self.core(|_, rest| !rest.steering.is_empty() || !rest.follow_ups.is_empty());
        self.answer(Answer::Verdict(Verdict { go_on, is_queued: is_queued.unwrap_or_default() }));
    }

    /// An answer that does not fit goes back with the report, as a message that is heard first.
    fn ask_again(&mut self, summary: &TurnSummary) -> bool {
        let Some(wanted) = self.wanted.clone().filter(|_| summary.tool_results.is_empty()) else {
            return false;
        };
        if summary.stop_reason == Some(StopReason::Pause) || self.asked_again >= self.config.rules.max_retries
        {
            return false;
        }
        let text = self.core(|core, _| core.conversation().last().map(Message::text)).flatten();
        let has_schema = wanted.is_native(self.config.model.info());
        // A check of the application that panics is left to the caller, who is told of it.
        let Ok(Err(report)) = catch(|| wanted.check(&text.unwrap_or_default(), has_schema)) else {
            return false;
        };
        self.asked_again += 1;
        let tries = self.config.rules.max_retries.saturating_add(1);
        let report = report.on_attempt(self.asked_again, tries).to_text();
        self.core(|_, rest| rest.steering.push_front(report.into()));
        true
    }

    /// Tells everybody what has happened, and what follows from it without a wait.
    pub(super) async fn emit(&mut self) {
        loop {
            let next = self.core(|core, rest| Some((core.take_event()?, rest.listeners.clone())));
            let Some(Some((event, listeners))) = next else {
                // Somebody who was told may have stopped the run or sent a message: that counts more.
                let has_step = self.core(|core, _| core.has_step()).unwrap_or_default();
                if !has_step || self.stop.is_set() {
                    break;
                }
                self.is_steered();
                self.core(|core, _| core.step());
                continue;
            };
            let event = Arc::new(event);
            for listener in listeners.iter() {
                if let Some(wait) = listener.notify_async(&event) {
                    let grace = self.config.cancel_grace;
                    Box::pin(wait_for(listener, wait, &self.stop.cancel, grace)).await;
                }
            }
            if let Some(watcher) = &self.watcher {
                watcher.put(event);
                watcher.taken().await;
            }
        }
        self.deliver();
    }

    fn deliver(&mut self) {
        if self.delivering.is_empty() {
            return;
        }
        let turn = self.core(|core, _| core.turn()).unwrap_or_default();
        for queued in self.delivering.drain(..) {
            queued.resolve(Delivery::Delivered { run_id: self.run_id.clone(), turn });
        }
    }

    pub(super) fn abort(&mut self) {
        let (reason, limit) = (self.stop.reason(), self.stop.limit);
        self.core(|core, _| match limit {
            Some(reached) => core.abort_by_limit(reached),
            None => core.abort(&reason),
        });
    }

    /// Waits for something of the application that may fail, panic, or be left when the run is stopped: then none.
    pub(super) async fn hook<'h, T>(
        &mut self,
        ask: impl FnOnce() -> BoxFuture<'h, Result<T, HookError>>,
    ) -> Option<Result<T, HookError>> {
        let asked = std::pin::pin!(call_hook(ask));
        let stopped = std::pin::pin!(self.stop.wait());
        match select(asked, stopped).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }

    pub(super) async fn suspend(&mut self) -> bool {
        self.core(|core, _| core.suspend());
        self.emit().await;
        true
    }

    fn output(&mut self, is_suspended: bool) -> Result<RunOutput, RunError> {
        self.is_running = false;
        if self.store_error.is_some() {
            self.keep_unrecorded();
        }
        let end = self.core(|core, _| core.end().cloned()).flatten();
        let error = match &end {
            Some(End::Error { message }) => Some(message.clone()),
            Some(End::Limit(reached)) => Some(reached.to_string()),
            _ => None,
        };
        let Some(mut core) = self.assistant.end_run(error) else { return Err(RunError::Busy) };
        if is_suspended {
            self.config.sign(&mut core);
        }
        let output = |core: AgentLoop, stop| RunOutput {
            run_id: self.run_id.clone(),
            messages: core.added().to_vec(),
            usage: core.usage().clone(),
            turns: core.turn(),
            stop,
            coercions: core.coercions().to_vec(),
            answer: None,
            snapshot: is_suspended.then(|| Box::new(core)),
        };
        if let Some(error) = self.store_error.take() {
            let stop = end.as_ref().map_or(RunStop::Suspended, End::stop);
            return Err(RunError::Store { error, output: Box::new(output(core, stop)) });
        }
        let stop = match end {
            Some(End::Limit(reached)) => return Err(RunError::Limit(reached)),
            Some(End::Aborted { reason }) => return Err(RunError::Aborted { reason }),
            Some(End::Error { message }) => {
                return Err(self.error.take().unwrap_or(RunError::Request { message }));
            }
            Some(end) => end.stop(),
            None => RunStop::Suspended,
        };
        let mut output = output(core, stop);
        if let (Some(reader), Some(wanted)) = (&self.answer, &self.wanted) {
            output.answer = reader.answer_if_any(wanted, &output)?;
        }
        Ok(output)
    }

    /// The reply as far as it came, when the run is dropped.
    fn close_stream(&mut self) {
        let Some(reply) = self.stream.take() else { return };
        let Reading { stream, is_started, asked } = *reply;
        let error = ModelError::aborted(DROPPED);
        let message = failed(stream.into_partial(), &error);
        self.measure(asked, &message, Some(&error));
        if is_started {
            self.answer(Answer::Reply(Reply::new(message)));
        }
    }
}

/// The same with the tools as this source is shown them.
fn showing(config: Arc<Config>, source: &Source) -> Result<Arc<Config>, RunError> {
    let tools = config.registry.definitions_for(Some(source)).map_err(RunError::Tools)?;
    if Arc::ptr_eq(&tools, &config.registry.definitions()) {
        return Ok(config);
    }
    let (mut config, mut rules) = ((*config).clone(), (*config.rules).clone());
    for definition in tools.iter() {
        if let Some(entry) = rules.tools.get_mut(definition.name()) {
            entry.fingerprint = fingerprint(definition);
        }
    }
    (config.request.tools, config.rules) = (tools, Arc::new(rules));
    Ok(Arc::new(config))
}

/// Waits for a listener, within limits: its own, and that of a tool when the run is cancelled.
async fn wait_for(listener: &Listener, wait: BoxFuture<'_, ()>, cancel: &CancelToken, grace: Duration) {
    let cancelled = std::pin::pin!(async {
        cancel.cancelled().await;
        tokio::time::sleep(grace).await;
    });
    let waited = std::pin::pin!(catch_future(|| wait));
    let patience = match crate::default_executor().sleep(LISTENER_TIMEOUT) {
        Some(sleep) => sleep,
        // Without a clock nothing has a time limit.
        None => Box::pin(std::future::pending()),
    };
    match select(waited, select(cancelled, patience)).await {
        Either::Left((Ok(()), _)) => {}
        Either::Left((Err(panic), _)) => listener.remove_panicked(&panic),
        Either::Right((Either::Left(_), _)) => tracing::warn!("a listener is not waited for any longer"),
        Either::Right((Either::Right(_), _)) => listener.remove_late(),
    }
}

/// The message of a reply that did not come to its end.
pub(super) fn failed(mut message: AssistantMessage, error: &ModelError) -> AssistantMessage {
    message.stop_reason = if error.is_aborted() { StopReason::Aborted } else { StopReason::Error };
    message.error = Some(error.message().to_owned());
    message
}

impl Drop for Driver {
    /// Dropped before its end: whatever is open is closed as if it had been cancelled.
    fn drop(&mut self) {
        if !self.is_running {
            return;
        }
        self.stop.cancel.cancel(DROPPED);
        self.close_stream();
        self.abort();
        // Listeners are notified, and not waited for.
        while let Some(Some((event, listeners))) =
            self.core(|core, rest| Some((core.take_event()?, rest.listeners.clone())))
        {
            let event = Arc::new(event);
            for listener in listeners.iter() {
                listener.notify(&event);
            }
        }
        self.deliver();
        self.assistant.end_run(None);
        if let Some(records) = &self.records {
            records.clone().abandon(DROPPED);
        }
    }
}

/// Whether a message with this id is in what the run added: it was taken before, by a process that is gone.
fn is_said(core: &AgentLoop, message: &UserMessage) -> bool {
    core.added()
        .iter()
        .any(|said| matches!(&**said, Message::User(said) if said.id.is_some() && said.id == message.id))
}

/// Changes a value by each hook in turn; none when the run was stopped.
pub(super) async fn fold<T: Send>(
    driver: &mut Driver,
    mut value: T,
    ask: impl for<'h> Fn(&'h dyn Hooks, T) -> BoxFuture<'h, Result<T, HookError>>,
) -> Option<Result<T, HookError>> {
    for hook in driver.config.hooks.clone() {
        value = match driver.hook(|| ask(&*hook, value)).await? {
            Ok(value) => value,
            Err(error) => return Some(Err(error)),
        };
    }
    Some(Ok(value))
}
