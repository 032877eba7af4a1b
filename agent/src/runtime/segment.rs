//! The calls of a segment, side by side.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tokio::time::Instant;

use super::assistant::Assistant;
use super::checked::CheckedArguments;
use super::config::Config;
use super::hooks::{AfterCall, ToolCallInfo, call_hook, hook_error};
use super::in_process::InProcessSteps;
use super::records::{CallStart, RunRecords};
use super::spill::READ_RESULT;
use crate::loop_core::{CallEnd, SteeringPolicy, steered};
use crate::message::{Message, Part, ToolCall};
use crate::steps::StepError;
use crate::{
    BoxFuture, CancelToken, Control, Effect, FailureCode, InterruptionCode, StepKey, ToolContext,
    ToolOutcome, ToolOutput, ToolReply, ToolResult,
};

/// One call whose body runs.
struct Running {
    ord: u32,
    body: BoxFuture<'static, CallEnd>,
    /// Whether the body was polled.
    is_begun: bool,
    end: Option<CallEnd>,
}

/// Why the segment is looked at.
enum Wake {
    Ended,
    Updates(VecDeque<crate::ToolUpdate>),
    Steered,
    Stopped,
}

impl InProcessSteps {
    /// Runs the calls of a segment: up to the limit at a time, started in call order, and each end recorded as it comes.
    pub(super) async fn run_calls(&mut self, calls: Vec<(StepKey, ToolCall)>) -> Result<(), StepError> {
        let ords: HashMap<String, u32> = match &self.updates {
            Some(_) => calls.iter().map(|(key, call)| (call.id.clone(), key.ord)).collect(),
            None => HashMap::new(),
        };
        let mut waiting: VecDeque<_> = calls.into();
        let mut running: Vec<Running> = Vec::new();
        // Cancelled by a new message, without the run.
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
            if !is_stopped && !is_steered && self.is_steered() {
                is_steered = true;
                Box::pin(self.end_waiting(&mut waiting, &steered())).await?;
                if policy == SteeringPolicy::CancelRunning {
                    // The calls that it stops were not aborted, whatever happens until they end.
                    is_cancelled = !token.is_cancelled();
                    token.cancel("a new message came");
                }
            }
            while running.len() < self.performer.config.max_concurrency
                && let Some((key, call)) = waiting.pop_front()
            {
                let begun = self.begin_call(&key, call, &token);
                running.push(begun);
            }
            if running.is_empty() {
                return Ok(());
            }
            match self.wait(&mut running, is_stopped, is_steered).await {
                Wake::Stopped | Wake::Steered => {}
                Wake::Updates(updates) => {
                    for update in updates {
                        if let Some(ord) = ords.get(&*update.call_id) {
                            self.run.lock().record_call_update(*ord, update.progress)?;
                            self.emit().await;
                        }
                    }
                }
                Wake::Ended => {
                    let Some(at) = running.iter().position(|running| running.end.is_some()) else { continue };
                    let ended = running.remove(at);
                    if let Some(mut end) = ended.end {
                        if is_cancelled {
                            mark_steered(&mut end.outcome);
                        }
                        self.run.lock().record_call_end(ended.ord, end)?;
                        self.emit().await;
                    }
                }
            }
        }
    }

    /// Ends the calls that have not begun.
    async fn end_waiting(
        &mut self,
        waiting: &mut VecDeque<(StepKey, ToolCall)>,
        outcome: &ToolOutcome,
    ) -> Result<(), StepError> {
        while let Some((key, _)) = waiting.pop_front() {
            self.run.lock().record_call_end(key.ord, CallEnd::new(outcome.clone()))?;
            self.emit().await;
        }
        Ok(())
    }

    async fn wait(&mut self, running: &mut [Running], is_stopped: bool, is_steered: bool) -> Wake {
        let watches = !is_steered && self.performer.config.rules.steering != SteeringPolicy::AfterBatch;
        let (updates, assistant) = (self.updates.clone(), self.assistant.clone());
        let mut stopped = std::pin::pin!(self.stop.cancel.cancelled());
        let mut message = std::pin::pin!(assistant.steered());
        poll_fn(|cx| {
            // Polled in call order, so that bodies which end at the same instant end in that order. A body that has ended is recorded before
            // the others continue, but all that have a place begin.
            let mut has_ended = false;
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
            let news = updates.as_ref().map(|updates| updates.take(cx)).unwrap_or_default();
            if !news.is_empty() {
                return Poll::Ready(Wake::Updates(news));
            }
            if has_ended {
                return Poll::Ready(Wake::Ended);
            }
            if watches && message.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Wake::Steered);
            }
            if !is_stopped && stopped.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Wake::Stopped);
            }
            Poll::Pending
        })
        .await
    }

    fn begin_call(&mut self, key: &StepKey, call: ToolCall, token: &CancelToken) -> Running {
        let checked = self.checked.remove(&key.ord);
        let config = &self.performer.config;
        let tool = config.registry.get(&call.name);
        let policy = tool.map(|tool| tool.policy());
        let max = policy.map_or(1, |policy| match policy.effect {
            Effect::Once => 1,
            Effect::Pure | Effect::Idempotent => policy.max_attempts.unwrap_or(1).max(1),
        });
        let run_context = &self.performer.context;
        let context = run_context.to_builder().idempotency_key(key.to_string()).cancel(token.clone());
        let reads_results = config.spill.is_some() && call.name == READ_RESULT;
        let context = if reads_results { context.state(self.assistant.spilled_results()) } else { context };
        let context = context.attempt(1, max).build().unwrap_or_else(|_| run_context.clone());
        let reply = self.last_reply();
        let caches = tool.is_some_and(|tool| config.can_cache(&**tool, run_context));
        let keeper = (caches || config.spill.is_some()).then(|| (self.assistant.clone(), caches));
        let text = || reply.as_deref().filter(|_| key.ord == 0).map(Message::text).unwrap_or_default();
        let records = self.records.clone().map(|records| (records, text()));
        let reply = reply.filter(|_| !config.hooks.is_empty());
        let body = run(config.clone(), key.clone(), call, context, max, reply, keeper, records, checked);
        Running { ord: key.ord, body: Box::pin(body), is_begun: false, end: None }
    }

    /// Returns the reply whose calls run.
    fn last_reply(&self) -> Option<Arc<Message>> {
        let run = self.run.lock();
        let mut messages = run.conversation().shared().iter().rev();
        messages.find(|message| matches!(***message, Message::Assistant(_))).cloned()
    }
}

/// Runs one call: the body, once more where that is allowed and something outside of it went wrong, and the hooks.
#[expect(
    clippy::manual_async_fn,
    reason = "an `async fn` holds its arguments twice, and this is the future of which most are alive"
)]
#[expect(clippy::too_many_arguments, reason = "what a call needs of its run, which it cannot borrow")]
pub(super) fn run(
    config: Arc<Config>,
    key: StepKey,
    call: ToolCall,
    context: ToolContext,
    max_attempts: u32,
    assistant: Option<Arc<Message>>,
    keeper: Option<(Assistant, bool)>,
    records: Option<(Arc<RunRecords>, String)>,
    checked: Option<Arc<CheckedArguments>>,
) -> impl Future<Output = CallEnd> + Send {
    async move {
        let begun = Instant::now();
        let mut attempt = 1;
        let mut cx = context.clone();
        let is_read = keeper.as_ref().is_some_and(|(_, caches)| *caches) || records.is_some();
        let checked = match checked.filter(|checked| checked.is_of(&call)) {
            Some(checked) => Some(checked),
            None if is_read || !config.hooks.is_empty() => config.checked(&call, &context),
            None => None,
        };
        let cache_key = match (&keeper, &checked) {
            (Some((assistant, true)), Some(checked)) => {
                let key = config.cache_key(&call.name, checked, &context);
                if let Some(known) = assistant.cache().get(&key) {
                    let coercions = checked.coercions().clone();
                    let mut end = CallEnd::new(ToolReply::new(known).with_coercions(coercions));
                    end.cached = true;
                    return end;
                }
                Some(key)
            }
            _ => None,
        };
        if let Some((records, text)) = &records {
            match Box::pin(records.begin(&config, &key, &call, checked.as_deref(), text)).await {
                CallStart::Runs { attempt } if context.is_cancelled() => {
                    let reason = context.cancel_token().reason();
                    let reason = reason.as_deref().unwrap_or("cancelled");
                    return Box::pin(records.end_unstarted(&key, attempt, reason)).await;
                }
                CallStart::Runs { attempt: 1 } => {}
                CallStart::Runs { attempt: again } => {
                    attempt = again;
                    cx = context.to_builder().attempt(again, max_attempts.max(again)).build().unwrap_or(cx);
                }
                CallStart::Ended(end) => return *end,
            }
        }
        let result = loop {
            let result = config.registry.call(&call, &cx).await;
            if attempt >= max_attempts || context.is_cancelled() || !went_wrong_outside(&result.outcome) {
                break result;
            }
            attempt += 1;
            tracing::warn!(tool = %call.name, attempt, "a tool is run again");
            cx = context.to_builder().attempt(attempt, max_attempts).build().unwrap_or(cx);
        };
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ToolResult { outcome, coercions, .. } = result;
        let mut end = CallEnd::ran(ToolReply::new(outcome).with_coercions(coercions), millis);
        end.attempt = attempt;
        if !config.hooks.is_empty() && ended_by_itself(&end.outcome) {
            after(&config, &call, &context, assistant, checked, &mut end).await;
        }
        if let Some((records, _)) = &records {
            Box::pin(records.finish(&key, &end)).await;
        }
        let Some((assistant, _)) = keeper else { return end };
        let own = config.rules.tools.get(&call.name).and_then(|tool| tool.max_result_bytes);
        keep_whole(&config, &assistant, &key, own, &mut end).await;
        if let (ToolOutcome::Completed(output), Some(key)) = (&end.outcome, cache_key) {
            assistant.cache().insert(key, output);
        }
        end
    }
}

/// A result that is too long for the conversation goes into a file, where the application has a folder for that.
pub(super) async fn keep_whole(
    config: &Config,
    assistant: &Assistant,
    key: &StepKey,
    max: Option<usize>,
    end: &mut CallEnd,
) {
    let Some(spill) = &config.spill else { return };
    let max = max.unwrap_or(config.rules.max_result_bytes);
    if let Some((handle, file)) = spill.save(key, &end.outcome, max).await {
        assistant.keep_file(file);
        end.handle = Some(handle);
    }
}

/// Whether another try may go better.
fn went_wrong_outside(outcome: &ToolOutcome) -> bool {
    matches!(outcome, ToolOutcome::Failed { code, .. } if *code == FailureCode::PANIC || *code == FailureCode::TIMEOUT)
}

/// Whether hooks see it.
fn ended_by_itself(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Completed(_) | ToolOutcome::Retry { .. } | ToolOutcome::Denied { .. } => true,
        ToolOutcome::Failed { code, .. } => {
            *code != FailureCode::TIMEOUT && *code != FailureCode::INVALID_ARGUMENTS
        }
        _ => false,
    }
}

async fn after(
    config: &Config,
    call: &ToolCall,
    context: &ToolContext,
    assistant: Option<Arc<Message>>,
    checked: Option<Arc<CheckedArguments>>,
    end: &mut CallEnd,
) {
    let info = ToolCallInfo::new(assistant, call.clone(), checked, context.clone());
    for hook in &config.hooks {
        let error = match call_hook(|| hook.after_tool_call(info.clone(), end.outcome.clone())).await {
            Ok(change) => {
                apply(change, end);
                continue;
            }
            Err(error) => error,
        };
        end.outcome = hook_error(&error.to_string());
        end.control = Control::Continue;
        return;
    }
}

fn apply(change: AfterCall, end: &mut CallEnd) {
    let AfterCall { content, metadata, is_error, control } = change;
    end.control = control.unwrap_or(end.control);
    if content.is_none() && metadata.is_none() && is_error.is_none() {
        return;
    }
    let is_error = is_error.unwrap_or(end.outcome.is_error());
    let metadata = metadata.unwrap_or_else(|| end.outcome.metadata().cloned().unwrap_or_default());
    if is_error {
        let text = match &content {
            Some(parts) => parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n"),
            None => end.outcome.text().into_owned(),
        };
        match &mut end.outcome {
            ToolOutcome::Retry { message, metadata: own }
            | ToolOutcome::Failed { message, metadata: own, .. }
            | ToolOutcome::Denied { message, metadata: own, .. } => (*message, *own) = (text, metadata),
            outcome => {
                let code = FailureCode::new("hook_set_error");
                *outcome = ToolOutcome::Failed { code, message: text, metadata };
            }
        }
        return;
    }
    let mut output = match std::mem::replace(&mut end.outcome, ToolOutcome::Completed(ToolOutput::empty())) {
        ToolOutcome::Completed(output) => output,
        other => ToolOutput::text(other.text()),
    };
    if let Some(content) = content {
        output.content = content;
        // It would say something else than the text.
        output.structured = None;
    }
    output.metadata = metadata;
    end.outcome = ToolOutcome::Completed(output);
}

/// Changes the outcome of a body that a steering message stopped: it was not aborted.
pub(crate) fn mark_steered(outcome: &mut ToolOutcome) {
    if matches!(outcome, ToolOutcome::Interrupted { code, .. } if *code == InterruptionCode::ABORTED) {
        *outcome = steered();
    }
}
