//! One request to the model, and its reply.

use std::borrow::Cow;
#[cfg(feature = "durable-restate")]
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
#[cfg(feature = "durable-restate")]
use std::time::Duration;

use futures_core::Stream as _;
#[cfg(feature = "durable-restate")]
use tracing::Instrument as _;
use tracing::Span;

use super::budget::{BudgetGate, budget_limit};
use super::config::Config;
use super::context::window_full;
use super::hooks::HookError;
use super::observe::{ChunkMeter, RequestTiming, measure_request};
use super::perform::Performer;
use super::telemetry;
use crate::loop_core::ModelReply;
use crate::message::continued::is_continuation;
use crate::message::{
    AssistantMessage, Conversation, HandOff, Message, MessageList, StopReason, ToolResultMessage,
};
use crate::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, RequestNotices, StepCx,
};
use crate::panics::panic_text;
use crate::step_key::StepKey;
use crate::tool::cancel::Cancelled;
use crate::tool::{definition::ToolDefinition, value::Tool};

pub(super) struct ReplyStream {
    pub(super) stream: ModelStream,
    pub(super) is_started: bool,
    timing: RequestTiming,
    chunk_meters: Vec<ChunkMeter>,
    turn: u32,
    pub(super) span: Span,
    max_tokens: Option<u64>,
    cancelled: Cancelled,
    pub(super) notices: RequestNotices,
    /// The state of the budgets, or `None` if the assistant has no budgets.
    budgeted: Option<Box<BudgetedReply>>,
}

/// The state of a reply whose request waits until its cost is reserved.
struct BudgetedReply {
    gate: BudgetGate,
    model: Arc<dyn Model>,
    step: StepCx,
    has_ended: bool,
    error: Option<ModelError>,
}

impl ReplyStream {
    /// Polls for the next event. Returns `None` at the end of the reply, and an error if the model ignores a cancellation. An `async`
    /// function would move the large event once more.
    pub(super) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        if let Poll::Ready(next) = self.poll_stream(cx) {
            return Poll::Ready(next);
        }
        ready!(Pin::new(&mut self.cancelled).poll(cx));
        match self.poll_stream(cx) {
            Poll::Ready(next) => Poll::Ready(next),
            Poll::Pending => Poll::Ready(Some(Err(ModelError::aborted("cancelled")))),
        }
    }

    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        if self.budgeted.as_ref().is_some_and(|budgeted| budgeted.has_ended) {
            return self.poll_end(cx);
        }
        if let Err(error) = ready!(self.poll_budgets(cx)) {
            return Poll::Ready(Some(Err(error)));
        }
        let Self { stream, timing, .. } = self;
        let next = catch_unwind(AssertUnwindSafe(|| Pin::new(stream).poll_next(cx)))
            .unwrap_or_else(|payload| Poll::Ready(Some(Err(panicked(&panic_text(payload))))));
        if let Poll::Ready(Some(Ok(event))) = &next
            && is_update(event)
        {
            timing.record_piece();
            self.measure_chunk(event);
        }
        if let (Some(budgeted), Poll::Ready(end @ (None | Some(Err(_))))) = (&mut self.budgeted, &next) {
            let error = end.as_ref().and_then(|end| end.as_ref().err()).cloned();
            budgeted.gate.end(self.stream.partial(), error.as_ref());
            budgeted.error = error;
            budgeted.has_ended = true;
            return self.poll_end(cx);
        }
        next
    }

    /// Measures the time between two chunks with content. Events that only begin or end a part do not count.
    fn measure_chunk(&mut self, event: &ModelEvent) {
        let is_chunk = event.delta().is_some() || matches!(event, ModelEvent::Part { .. });
        if self.chunk_meters.is_empty() || !is_chunk {
            return;
        }
        if let Some(took) = self.timing.record_chunk() {
            let reply = self.stream.partial();
            self.chunk_meters.iter().for_each(|meter| meter(reply, took));
        }
    }

    /// Waits until the used amounts are recorded in the budgets, and then ends the reply, with its error if it failed.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        let Some(budgeted) = &mut self.budgeted else { return Poll::Ready(None) };
        ready!(budgeted.gate.poll_settled(cx));
        Poll::Ready(budgeted.error.take().map(Err))
    }

    /// Waits until the budgets admit the request, and then sends it. Does nothing if the request was sent before, or if there are no
    /// budgets.
    fn poll_budgets(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        let Some(budgeted) = &mut self.budgeted else { return Poll::Ready(Ok(())) };
        let BudgetedReply { gate, model, step, .. } = &mut **budgeted;
        if let Some(request) = ready!(gate.poll_request(cx))? {
            self.max_tokens = request.max_tokens;
            match catch_unwind(AssertUnwindSafe(|| model.stream(step, &request))) {
                Ok(stream) => self.stream = stream,
                Err(payload) => {
                    let error = panicked(&panic_text(payload));
                    gate.end(&AssistantMessage::default(), Some(&error));
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Performer {
    /// Returns the request for these messages, after the changes of every hook, or `None` if the run was stopped before all hooks had run.
    pub(super) async fn request(
        &self,
        messages: MessageList,
        tools: Arc<[ToolDefinition]>,
    ) -> Option<Result<ModelRequest, HookError>> {
        let cancel = self.cancel_token();
        let messages = self.fold(messages, |hook, messages| hook.transform_context(messages, cancel.clone()));
        let messages = match messages.await? {
            Ok(messages) => messages,
            Err(error) => return Some(Err(error)),
        };
        let mut changed: Conversation = messages.iter().map(|message| self.config.convert(message)).collect();
        for repair in changed.repair() {
            tracing::warn!(%repair, "the conversation was repaired after a hook had changed it");
        }
        let messages = HandOff::of(&changed, self.config.model.info().recipient()).messages().clone();
        let request = self.config.request_of(messages, tools);
        let context = self.config.registry.context(&self.context);
        self.fold(request, |hook, request| hook.before_request(request, context.clone())).await
    }

    /// Sends a request, and returns the stream of its reply. A request with budgets is sent later, when the stream is polled.
    ///
    /// # Errors
    /// Returns a failed reply if the client of the model panics.
    pub(super) fn send(
        &self,
        key: StepKey,
        step: StepCx,
        request: &ModelRequest,
    ) -> Result<ReplyStream, Box<FailedReply>> {
        let (turn, max_tokens) = (key.turn, request.max_tokens);
        let mut step = step.with_key(key);
        let model = &self.config.model;
        let span = telemetry::request_span(model.info(), request, self.context.session_id());
        telemetry::trace_attempts(
            &mut step,
            model.info(),
            &span,
            self.context.session_id(),
            Some(&self.config),
        );
        telemetry::record_input(&span, &self.config, request);
        let timing = RequestTiming::now();
        let (first, budgeted) = match self.budgeted(&step, request) {
            Ok(None) => (None, None),
            Ok(Some(budgeted)) => (Some(Vec::new()), Some(budgeted)),
            Err(error) => (Some(vec![Err(error)]), None),
        };
        let start = || match first {
            // With budgets, `poll_budgets` sends the request later. Until then, the stream is empty, or contains only the error of the
            // budgets.
            Some(events) => ModelStream::from_events(&step, model.info(), events),
            None => model.stream(&step, request),
        };
        match span.in_scope(|| catch_unwind(AssertUnwindSafe(start))) {
            Ok(stream) => {
                let cancelled = self.context.cancel_token().cancellation();
                let is_started = false;
                let notices = step.notices.clone();
                Ok(ReplyStream {
                    stream,
                    is_started,
                    timing,
                    chunk_meters: self.config.chunk_meters.clone(),
                    turn,
                    span,
                    max_tokens,
                    cancelled,
                    notices,
                    budgeted,
                })
            }
            Err(payload) => {
                let error = panicked(&panic_text(payload));
                let message = failed(self.no_message(), &error);
                telemetry::end_request(&span, &message, Some(error.kind().as_str()), None);
                self.measure(turn, timing, &message, Some(&error));
                Err(Box::new((ModelReply::new(message), error)))
            }
        }
    }

    fn budgeted(
        &self,
        step: &StepCx,
        request: &ModelRequest,
    ) -> Result<Option<Box<BudgetedReply>>, ModelError> {
        let Some(bound) = self.bound_budgets() else { return Ok(None) };
        let model = self.config.model.clone();
        let gate = BudgetGate::new(bound?, step, model.clone(), request.clone());
        let (step, has_ended, error) = (step.clone(), false, None);
        Ok(Some(Box::new(BudgetedReply { gate, model, step, has_ended, error })))
    }

    /// Returns the complete reply, or after a `failure` the parts that arrived. Also records the used amounts in the budgets, and ends the
    /// measurement and the span.
    pub(super) fn finish(&self, reply: ReplyStream, failure: Option<&ModelError>) -> ModelReply {
        let ReplyStream { stream, timing, turn, span, max_tokens, notices, budgeted, .. } = reply;
        // Calls that are not complete are left out of the message, but cost tokens.
        let arrived = budgeted.as_ref().zip(failure).map(|_| stream.partial().content.clone());
        let mut message = match failure {
            Some(error) => failed(stream.into_partial_message(), error),
            None => stream.into_message(),
        };
        if let Some((budgeted, content)) = budgeted.zip(arrived) {
            budgeted.gate.settle_later(&AssistantMessage { content, ..(*message).clone() });
        }
        if failure.is_none() && message.stop_reason.is_failure() && message.error.is_none() {
            message.error = Some("the model gave no reason".to_owned());
        }
        let kind = failure.map(|error| error.kind().as_str());
        telemetry::end_request(&span, &message, kind, timing.first_piece());
        self.measure(turn, timing, &message, failure);
        telemetry::record_output(&span, &self.config, &message);
        let mut reply = ModelReply::new(message);
        reply.limit = failure.and_then(budget_limit);
        reply.notices = notices.take();
        reply.is_cut = max_tokens.is_some_and(|limit| limit == reply.message.usage.output);
        reply
    }

    fn measure(
        &self,
        turn: u32,
        timing: RequestTiming,
        reply: &AssistantMessage,
        error: Option<&ModelError>,
    ) {
        let (run, info) = ((&self.run_id, turn), self.config.model.info());
        measure_request(&self.config.meters, run, info, &timing, reply, error);
    }

    /// Makes one request, and returns its whole reply.
    ///
    /// # Errors
    /// Returns an error if another attempt may succeed. Any other failure is returned as a failed reply.
    #[cfg(feature = "durable-restate")]
    pub(crate) async fn whole_reply(
        &self,
        key: StepKey,
        messages: MessageList,
        tools: Arc<[ToolDefinition]>,
        timeout: Duration,
    ) -> Result<ModelReply, ModelError> {
        let request = match self.request(messages, tools).await {
            Some(Ok(request)) => request,
            Some(Err(error)) => return Ok(self.refused_request(&error).0),
            None => return Ok(self.no_reply(&ModelError::aborted(&*self.stop_reason()))),
        };
        let token = self.cancel_token().child();
        let step = StepCx::new().with_cancel(token.clone()).retried_by_caller();
        let sent = self.send(key, step, &request);
        drop(request);
        let mut reply = match sent {
            Ok(reply) => reply,
            Err(failed) => return Ok(failed.0),
        };
        let span = reply.span.clone();
        let read = async {
            while let Some(next) = poll_fn(|cx| reply.poll_event(cx)).await {
                if let Err(error) = next {
                    return Some(error);
                }
            }
            None
        };
        let failure = tokio::time::timeout(timeout, read.instrument(span)).await.unwrap_or_else(|_| {
            token.cancel("out of time");
            let text = format!("no whole reply within {} s", timeout.as_secs());
            Some(ModelError::new(ModelErrorKind::Timeout, text))
        });
        let mut reply = self.finish(reply, failure.as_ref());
        reply.too_long =
            self.overflow(&reply.message, failure.as_ref()).map(|error| error.message().to_owned());
        match failure {
            Some(error) if error.is_retryable() && !self.context.is_cancelled() => Err(error),
            _ => Ok(reply),
        }
    }

    /// Returns the error if the request was too long: the provider refused the request, or the context window was full before the reply
    /// ended. Returns `None` if the context is not managed.
    pub(super) fn overflow(
        &self,
        reply: &AssistantMessage,
        failure: Option<&ModelError>,
    ) -> Option<ModelError> {
        self.config.context.as_ref()?;
        if reply.stop_reason == StopReason::ContextFull {
            return Some(window_full());
        }
        failure.filter(|error| reply.content.is_empty() && error.is_context_too_long()).cloned()
    }

    pub(super) fn refused_request(&self, error: &HookError) -> FailedReply {
        let error = ModelError::new(ModelErrorKind::InvalidRequest, error.to_string());
        (self.no_reply(&error), error)
    }

    /// Returns the failed reply of a request that was not sent, or that failed before the first event of its reply.
    pub(crate) fn no_reply(&self, error: &ModelError) -> ModelReply {
        ModelReply::new(failed(self.no_message(), error))
    }

    fn no_message(&self) -> Box<AssistantMessage> {
        let info = self.config.model.info();
        let mut message = Box::<AssistantMessage>::default();
        (message.provider, message.api, message.model) =
            (info.provider.clone(), info.api.clone(), info.model.clone());
        message
    }
}

pub(super) type FailedReply = (ModelReply, ModelError);

pub(super) fn failed(mut message: Box<AssistantMessage>, error: &ModelError) -> Box<AssistantMessage> {
    message.stop_reason = if error.is_aborted() { StopReason::Aborted } else { StopReason::Error };
    message.error = Some(error.message().to_owned());
    message
}

impl Config {
    pub(super) fn request_of(&self, messages: MessageList, tools: Arc<[ToolDefinition]>) -> ModelRequest {
        let mut request =
            ModelRequest { messages: self.with_formatted_results(messages), tools, ..self.request.clone() };
        if let Some(limits) = &self.context {
            request.compact_at = limits.by_provider.or(request.compact_at);
        }
        request
    }

    /// Formats each stored result again with the current `format_result` of its tool.
    fn with_formatted_results(&self, messages: MessageList) -> MessageList {
        if !self.formats_results {
            return messages;
        }
        let mut shown = Vec::with_capacity(messages.len());
        let mut reply = None;
        for message in &messages {
            let own = match &**message {
                Message::ToolResult(result) => reply.and_then(|reply| self.shown_result(reply, result)),
                other => {
                    reply = other.as_assistant().or(reply);
                    None
                }
            };
            shown.push(own.map_or_else(|| message.clone(), |own| Arc::new(own.into())));
        }
        MessageList::from(shown).with_slot(messages.slot().clone())
    }

    /// Returns the result as its tool formats it now, or `None` if the stored result is sent.
    fn shown_result(
        &self,
        reply: &AssistantMessage,
        result: &ToolResultMessage,
    ) -> Option<ToolResultMessage> {
        let is_asked = |tool: &Tool| tool.formats_results();
        self.registry.get(&result.tool).filter(|tool| is_asked(tool))?;
        let call = reply.tool_calls().find(|call| call.id == result.call_id)?;
        let Cow::Owned(content) = self.registry.shown_content(call, result) else {
            return None;
        };
        let mut shown = result.clone();
        shown.content = self.model.info().recipient().fitting(&content).unwrap_or(content);
        Some(shown)
    }

    fn convert(&self, message: &Arc<Message>) -> Arc<Message> {
        let Message::Custom(custom) = &**message else { return message.clone() };
        if is_continuation(custom) {
            return message.clone();
        }
        let mut custom = custom.clone();
        for hook in &self.hooks {
            match catch_unwind(AssertUnwindSafe(|| hook.convert(&custom))) {
                Ok(parts) => custom.for_model = parts,
                Err(payload) => {
                    tracing::error!(panic = %panic_text(payload), "a hook panicked; its message is left out");
                    custom.for_model = None;
                }
            }
        }
        Arc::new(custom.into())
    }
}

fn panicked(text: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Other, format!("the model's client panicked: {text}"))
}

/// Returns whether listeners receive the event. They receive each event of a part of the reply, except provider data.
pub(super) fn is_update(event: &ModelEvent) -> bool {
    event.content_index().is_some() && !matches!(event, ModelEvent::PartData { .. })
}
