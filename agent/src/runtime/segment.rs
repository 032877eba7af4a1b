//! Runs the calls of a segment concurrently. A segment contains calls of one reply that may run at the same time.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use super::assistant::Assistant;
use super::body::CallBody;
use super::cache::CallKey;
#[cfg(feature = "durable-restate")]
use super::checked::CheckedArguments;
use super::config::Config;
use super::in_process::InProcessSteps;
#[cfg(feature = "durable-restate")]
use super::parent::EngineChild;
use super::parent::{CHILD_GRACE, ChildCall, ChildHandle, lock_children};
#[cfg(feature = "durable-restate")]
use super::perform::Performer;
use super::progress::CallReport;
use super::records::RunRecords;
use super::spill::READ_RESULT;
use crate::loop_core::{CallEnd, RecordError, SteeringPolicy, steered};
use crate::message::{Message, ToolCall};
#[cfg(feature = "durable-restate")]
use crate::run_path::RunPath;
use crate::step_key::StepKey;
use crate::steps::StepError;
#[cfg(feature = "durable-restate")]
use crate::tool::question::RecordedInput;
use crate::tool::{
    BoxFuture,
    asking::{AskNotice, AskRules},
    cancel::CancelToken,
    outcome::{OutcomeCode, ToolOutcome},
    value::Tool,
};

/// The reason of the cancel token if a steering message cancels running calls.
pub(crate) const NEW_MESSAGE: &str = "a new message came";

struct SegmentCall {
    ord: u32,
    body: BoxFuture<'static, CallEnd>,
    /// The sub-agent's run, if the tool is an assistant.
    child: Option<Arc<ChildCall>>,
    is_begun: bool,
    end: Option<CallEnd>,
}

enum WakeReason {
    Ended,
    Reports(VecDeque<CallReport>),
    Steered,
    Stopped,
}

impl InProcessSteps {
    /// Runs the calls concurrently, at most `max_concurrency` at a time, started in call order. Records each end as it arrives.
    pub(super) async fn run_calls(&mut self, calls: Vec<(StepKey, Arc<ToolCall>)>) -> Result<(), StepError> {
        let ords: HashMap<String, u32> = match &self.updates {
            Some(_) => calls.iter().map(|(key, call)| (call.id.clone(), key.ord)).collect(),
            None => HashMap::new(),
        };
        let mut waiting: VecDeque<_> = calls.into();
        let max_concurrency = self.performer.config.max_concurrency;
        let mut running: Vec<SegmentCall> = Vec::with_capacity(waiting.len().min(max_concurrency));
        // Under `CancelRunning`, a new steering message cancels this token without cancelling the run.
        let policy = self.performer.config.rules.steering;
        let token = if policy == SteeringPolicy::CancelRunning {
            self.stop.cancel.child()
        } else {
            self.stop.cancel.clone()
        };
        let (mut is_stopped, mut is_steered, mut is_cancelled) = (false, false, false);
        loop {
            if !is_stopped && self.stop.is_set() {
                is_stopped = true;
                let aborted = ToolOutcome::aborted(&self.performer.stop_reason());
                Box::pin(self.end_waiting(&mut waiting, &aborted)).await?;
            }
            if !is_stopped && !is_steered && self.look_for_steering() {
                is_steered = true;
                Box::pin(self.end_waiting(&mut waiting, &steered())).await?;
                if policy == SteeringPolicy::CancelRunning {
                    // If the run was cancelled before, the token is already cancelled, and the running calls end as aborted. Otherwise the
                    // new message cancels the calls. The calls then end as steered, even if the run is cancelled later.
                    is_cancelled = !token.is_cancelled();
                    token.cancel(NEW_MESSAGE);
                }
            }
            while running.len() < max_concurrency
                && let Some((key, call)) = waiting.pop_front()
            {
                let begun = self.begin_call(&key, call, &token);
                running.push(begun);
            }
            if running.is_empty() {
                return Ok(());
            }
            match self.wait(&mut running, is_stopped, is_steered).await {
                WakeReason::Stopped | WakeReason::Steered => {}
                WakeReason::Reports(reports) => {
                    for report in reports {
                        self.record_report(report, &ords)?;
                        self.emit().await;
                    }
                }
                WakeReason::Ended => {
                    self.record_first_end(&mut running, is_cancelled)?;
                    self.emit().await;
                }
            }
        }
    }

    fn record_report(&self, report: CallReport, ords: &HashMap<String, u32>) -> Result<(), RecordError> {
        let mut run = self.run.lock();
        match report {
            CallReport::Progress { call_id, progress } => {
                if let Some(ord) = ords.get(&*call_id) {
                    run.record_call_update(*ord, progress)?;
                }
            }
            CallReport::Question(AskNotice::Asked(question)) => run.record_asked(*question),
            CallReport::Question(AskNotice::Resolved { request_id, call_id, accepted }) => {
                run.record_resolved(request_id, call_id, accepted);
            }
        }
        Ok(())
    }

    fn record_first_end(
        &self,
        running: &mut Vec<SegmentCall>,
        is_cancelled: bool,
    ) -> Result<(), RecordError> {
        let Some(at) = running.iter().position(|running| running.end.is_some()) else { return Ok(()) };
        let SegmentCall { ord, end: Some(mut end), child, .. } = running.remove(at) else { return Ok(()) };
        if is_cancelled {
            mark_steered(&mut end.outcome);
        }
        let mut run = self.run.lock();
        if let Some(children) = self.children.as_ref().filter(|_| child.is_some()) {
            lock_children(children).retain(|(other, _)| *other != ord);
        }
        if let Some(state) = child.and_then(|child| child.take_state())
            && run.record_child(ord, state)?
        {
            return Ok(());
        }
        run.record_call_end(ord, end)
    }

    async fn end_waiting(
        &mut self,
        waiting: &mut VecDeque<(StepKey, Arc<ToolCall>)>,
        outcome: &ToolOutcome,
    ) -> Result<(), StepError> {
        while let Some((key, _)) = waiting.pop_front() {
            self.run.lock().record_call_end(key.ord, CallEnd::new(outcome.clone()))?;
            self.emit().await;
        }
        Ok(())
    }

    async fn wait(&mut self, running: &mut [SegmentCall], is_stopped: bool, is_steered: bool) -> WakeReason {
        let watches = !is_steered && self.performer.config.rules.may_be_steered();
        let (updates, assistant) = (self.updates.clone(), self.assistant.clone());
        let mut stopped = std::pin::pin!(self.stop.cancel.cancelled());
        let mut message = std::pin::pin!(assistant.steered());
        poll_fn(|cx| {
            // Bodies are polled in call order. Once a body has ended, the other bodies that have begun are not polled until this end is
            // recorded. Otherwise the body of an earlier call could end meanwhile, and the end of the earlier call would be recorded
            // first. A body that has not begun is still polled once, so that its call begins.
            let mut has_ended = running.iter().any(|running| running.end.is_some());
            for running in &mut *running {
                if running.end.is_none()
                    && !(has_ended && std::mem::replace(&mut running.is_begun, true))
                    && let Poll::Ready(end) = running.body.as_mut().poll(cx)
                {
                    running.end = Some(end);
                }
                running.is_begun = true;
                has_ended |= running.end.is_some();
            }
            let reports = updates.as_ref().map(|updates| updates.take(cx)).unwrap_or_default();
            if !reports.is_empty() {
                return Poll::Ready(WakeReason::Reports(reports));
            }
            if has_ended {
                return Poll::Ready(WakeReason::Ended);
            }
            if watches && message.as_mut().poll(cx).is_ready() {
                return Poll::Ready(WakeReason::Steered);
            }
            if !is_stopped && stopped.as_mut().poll(cx).is_ready() {
                return Poll::Ready(WakeReason::Stopped);
            }
            Poll::Pending
        })
        .await
    }

    fn begin_call(&mut self, key: &StepKey, call: Arc<ToolCall>, token: &CancelToken) -> SegmentCall {
        let checked = self.checked.remove(&key.ord);
        let is_child = self.performer.config.registry.get(&call.name).is_some_and(Tool::is_of_assistant);
        let child = is_child.then(|| self.child_call(key, &call));
        let config = &self.performer.config;
        let tool = config.registry.get(&call.name);
        let run_context = &self.performer.context;
        let context = run_context.clone().with_cancel(token.clone());
        let keeps_results = config.spill.is_some() || config.context.is_some();
        let reads_results = keeps_results && call.name == READ_RESULT;
        let context = if reads_results {
            context.adding_state(Arc::new(self.assistant.spilled_results()))
        } else {
            context
        };
        let context = match &child {
            Some(child) => {
                let grace = config.cancel_grace.saturating_add(CHILD_GRACE);
                context.adding_state(Arc::new(ChildHandle(child.clone()))).with_cancel_grace(grace)
            }
            None => context,
        };
        let context = context.with_ask_rules(self.ask_rules(key.ord));
        let reply = self.last_reply();
        let caches = tool.is_some_and(|tool| !is_child && config.can_cache(tool, run_context));
        let keeper = (caches || config.spill.is_some()).then(|| (self.assistant.clone(), caches));
        let text = || reply.as_deref().filter(|_| key.ord == 0).map(Message::text).unwrap_or_default();
        let records = self.records.clone().map(|records| (records, text()));
        let mut body = CallBody::new(config, key.clone(), call, context, reply, checked);
        body.continues_child = child.as_ref().is_some_and(|child| child.is_continued());
        let ord = key.ord;
        SegmentCall { ord, body: Box::pin(run(body, keeper, records)), child, is_begun: false, end: None }
    }

    fn ask_rules(&self, ord: u32) -> AskRules {
        let notify = self.updates.clone().map(|updates| {
            let notify = move |notice| updates.push(CallReport::Question(notice));
            Arc::new(notify) as Arc<dyn Fn(AskNotice) + Send + Sync>
        });
        let answerer = self.performer.config.answerer.clone();
        let notify = notify.filter(|_| answerer.is_some());
        let run = self.run.lock();
        AskRules {
            answerer,
            suspends: true,
            inputs: match run.inputs_of(ord) {
                [] => Arc::default(),
                inputs => inputs.into(),
            },
            path: run.path().clone(),
            notify,
        }
    }

    /// Returns the reply whose calls are prepared, decided on, or run. Results of earlier calls may follow the reply.
    pub(super) fn last_reply(&self) -> Option<Arc<Message>> {
        let run = self.run.lock();
        let mut messages = run.conversation().shared().iter().rev();
        messages.find(|message| matches!(***message, Message::Assistant(_))).cloned()
    }
}

/// A tool call on a durable engine, such as Restate. If a reply has several calls, the engine records the steps of each call separately.
#[cfg(feature = "durable-restate")]
pub(crate) struct JournaledCall {
    pub(crate) key: StepKey,
    pub(crate) call: Arc<ToolCall>,
    pub(crate) reply: Option<Arc<Message>>,
    /// The text of the reply, if the call is the first call of the reply. Empty for any other call.
    pub(crate) text: String,
    /// The arguments of the call, if they were checked in this process.
    pub(crate) checked: Option<Arc<CheckedArguments>>,
    pub(crate) inputs: Vec<RecordedInput>,
    /// Whether the call may have begun before, so that it must not begin again.
    pub(crate) is_lost: bool,
    pub(crate) path: RunPath,
    /// The outcome of the run that the call started, if its tool is an assistant.
    pub(crate) child: Option<ToolOutcome>,
}

#[cfg(feature = "durable-restate")]
impl Performer {
    /// Runs a call, unless it is lost, and records it in the store, if the assistant has one.
    pub(crate) async fn call(&self, served: JournaledCall) -> CallEnd {
        let JournaledCall { key, call, reply, text, checked, inputs, is_lost, path, child } = served;
        let config = &self.config;
        let records = config.keeper.as_ref().map(|keeper| RunRecords::new(keeper, &self.context, None, true));
        if is_lost {
            return match records {
                Some(records) => records.end_lost(config, &key, &call, &self.context, &text).await,
                None => CallEnd::new(ToolOutcome::lost()),
            };
        }
        let answerer = config.answerer.clone();
        let rules = AskRules { answerer, suspends: true, inputs: inputs.into(), path, notify: None };
        let context = self.context.clone().with_ask_rules(rules);
        let context = match child {
            Some(outcome) => context.adding_state(Arc::new(EngineChild::Ended(outcome))),
            None => context,
        };
        let body = CallBody::new(config, key, call, context, reply, checked);
        run(body, None, records.map(|records| (records, text))).await
    }
}

/// Runs a call, records its start and end, and keeps its result. Returns a cached result at once, without a record.
#[expect(
    clippy::manual_async_fn,
    reason = "an `async fn` holds its arguments twice, and this is the future of which most are alive"
)]
fn run(
    mut body: CallBody,
    keeper: Option<(Assistant, bool)>,
    records: Option<(Arc<RunRecords>, String)>,
) -> impl Future<Output = CallEnd> + Send {
    async move {
        let caches = keeper.as_ref().is_some_and(|(_, caches)| *caches);
        body.check(caches || records.is_some());
        let mut cache_key = None;
        if let (Some((assistant, true)), Some(checked)) = (&keeper, &body.checked) {
            let key = body.config.cache_key(&body.call.name, checked, &body.context);
            if let Some(known) = assistant.cache().get(&key) {
                let coercions = checked.coercions().to_vec();
                let mut end = CallEnd::new(known).with_coercions(coercions);
                end.cached = true;
                return end;
            }
            cache_key = Some(Box::new(key));
        }
        let performed = match &records {
            None => Ok(body.perform(1).await),
            Some((records, text)) => Box::pin(records.around(&body, text)).await,
        };
        match (performed, keeper) {
            (Ok(end), Some((assistant, _))) => Box::pin(keep(&body, &assistant, cache_key, end)).await,
            (Ok(end), None) => end,
            (Err(not_run), _) => *not_run,
        }
    }
}

/// Keeps the result of a call: in a file if the result is too long, and in the cache if there is a key.
async fn keep(
    body: &CallBody,
    assistant: &Assistant,
    cache_key: Option<Box<CallKey>>,
    mut end: CallEnd,
) -> CallEnd {
    let CallBody { config, key, call, .. } = body;
    keep_whole(config, assistant, key, &call.name, &mut end).await;
    if let (ToolOutcome::Completed(output), Some(key)) = (&end.outcome, cache_key) {
        assistant.cache().insert(*key, output);
    }
    end
}

/// Writes a result to a file if it exceeds the maximum result length of its tool, or of the assistant if the tool has none. Does nothing
/// if the application has set no folder for files.
pub(super) async fn keep_whole(
    config: &Config,
    assistant: &Assistant,
    key: &StepKey,
    tool: &str,
    end: &mut CallEnd,
) {
    let Some(spill) = &config.spill else { return };
    let own = config.rules.tools.get(tool).and_then(|tool| tool.max_result_bytes);
    let max = own.unwrap_or(config.rules.max_result_bytes);
    if let Some((handle, file)) = spill.save(key, &end.outcome, max).await {
        assistant.keep_file(file);
        end.handle = Some(handle);
    }
}

pub(crate) fn mark_steered(outcome: &mut ToolOutcome) {
    if matches!(outcome, ToolOutcome::Interrupted { code, .. } if *code == OutcomeCode::ABORTED) {
        *outcome = steered();
    }
}
