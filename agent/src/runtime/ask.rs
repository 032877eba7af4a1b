//! The driver: one request to the model.

use std::borrow::Cow;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream as _;
use tracing::Instrument as _;

use super::assistant::Config;
use super::drive::{Driver, Reading, failed, fold};
use super::growing::Growing;
use super::observe::RequestTiming;
use super::{RunError, telemetry};
use crate::loop_core::{Answer, Note, Reply};
use crate::message::{
    AssistantMessage, Conversation, HandOff, Message, MessageList, StopReason, ToolResultMessage,
};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, StepCx};
use crate::tool::combine::shown_after;
use crate::tool::invoke::panic_text;
use crate::{CallRecord, StepKey, Tool, ToolDefinition};

impl Driver {
    /// One reply of the model.
    pub(super) async fn ask(&mut self, key: StepKey, messages: MessageList) {
        // Nobody but the loop and the hand-off: their lists grow in place.
        drop(messages);
        let request = match self.turn_tools(false).await {
            None => return,
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(tools)) => match self.request(&tools) {
                Some(request) => Some(Ok(request)),
                None => Box::pin(self.hooked_request(&tools)).await,
            },
        };
        let request = match request {
            None => return,
            Some(Ok(request)) => request,
            Some(Err(error)) => {
                let text = error.to_string();
                self.error = Some(RunError::Request { message: text.clone() });
                let info = self.config.model.info();
                let mut message = AssistantMessage::default();
                (message.provider, message.api, message.model) =
                    (info.provider.clone(), info.api.clone(), info.model.clone());
                let error = ModelError::new(ModelErrorKind::InvalidRequest, text);
                return self.answer(Answer::Reply(Reply::new(failed(message, &error))));
            }
        };
        let max_tokens = request.max_tokens;
        let step = StepCx::new().with_key(key).with_cancel(self.stop.cancel.clone());
        let model = &self.config.model;
        let span = telemetry::request_span(model.info(), &request, self.context.session_id());
        telemetry::record_input(&span, &self.config, &request);
        let asked = RequestTiming::now();
        match span.in_scope(|| catch_unwind(AssertUnwindSafe(|| model.stream(&step, &request)))) {
            Ok(stream) => self.stream = Some(Box::new(Reading { stream, is_started: false, asked })),
            Err(payload) => {
                let error = panicked(&panic_text(payload));
                let message = failed(AssistantMessage::default(), &error);
                telemetry::end_request(&span, &message, Some(error.kind().as_str()), None);
                self.measure(asked, &message, Some(&error));
                self.error = Some(RunError::Model(error));
                return self.answer(Answer::Reply(Reply::new(message)));
            }
        }
        // Nobody but the model needs it any more: the list can grow in place.
        drop(request);
        let failure = self.read().instrument(span.clone()).await;
        self.core(|_, rest| *rest.growing = None);
        let Some(reply) = self.stream.take() else { return };
        let Reading { stream, asked, .. } = *reply;
        let mut message = match &failure {
            Some(error) => failed(stream.into_partial(), error),
            None => stream.into_message(),
        };
        if failure.is_none() && message.stop_reason.is_failure() && message.error.is_none() {
            message.error = Some("the model gave no reason".to_owned());
        }
        let kind = failure.as_ref().map(|error| error.kind().as_str());
        telemetry::end_request(&span, &message, kind, asked.first_piece());
        self.measure(asked, &message, failure.as_ref());
        telemetry::record_output(&span, &self.config, &message);
        if message.stop_reason == StopReason::Error {
            let text = message.error.clone().unwrap_or_default();
            let error = failure.unwrap_or_else(|| ModelError::new(ModelErrorKind::Other, text));
            self.error = Some(RunError::Model(error));
        }
        let mut reply = Reply::new(message);
        reply.is_cut = max_tokens.is_some_and(|limit| limit == reply.message.usage.output);
        reply.limit = self.stop.limit;
        self.answer(Answer::Reply(reply));
    }

    /// Reads the reply to its end, and tells how it grows.
    async fn read(&mut self) -> Option<ModelError> {
        loop {
            let Self { stream, stop, .. } = self;
            let Reading { stream, is_started, asked } = &mut **stream.as_mut()?;
            let next = {
                let mut stopped = std::pin::pin!(stop.wait());
                let mut poll = |cx: &mut Context<'_>| {
                    catch_unwind(AssertUnwindSafe(|| Pin::new(&mut *stream).poll_next(cx)))
                        .unwrap_or_else(|payload| Poll::Ready(Some(Err(panicked(&panic_text(payload))))))
                };
                poll_fn(|cx| {
                    if let Poll::Ready(next) = poll(cx) {
                        return Poll::Ready(next);
                    }
                    std::task::ready!(stopped.as_mut().poll(cx));
                    // A cancelled stream ends by itself, unless its model did not hand the token on.
                    match poll(cx) {
                        Poll::Ready(next) => Poll::Ready(next),
                        Poll::Pending => Poll::Ready(Some(Err(ModelError::aborted("cancelled")))),
                    }
                })
                .await
            };
            let event = match next {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Some(error),
                None => return None,
            };
            let is_update = is_update(&event);
            if is_update {
                asked.record_piece();
            }
            let begins = is_update && !std::mem::replace(is_started, true);
            let started = begins.then(|| {
                let mut message = stream.partial().clone();
                message.content.clear();
                Arc::new(Message::Assistant(message))
            });
            if let Some(message) = &started {
                self.note(Note::ReplyStarted(message.clone()));
            }
            self.core(|_, rest| {
                if let Some(message) = started {
                    *rest.growing = Some(Box::new(Growing::new(message)));
                }
                if let Some(growing) = rest.growing {
                    growing.grow(&event);
                }
            });
            if is_update {
                self.note(Note::ReplyUpdated(event));
                self.emit().await;
            }
            self.let_others().await;
        }
    }

    /// The request, where no hook has a say.
    fn request(&self, tools: &Arc<[ToolDefinition]>) -> Option<ModelRequest> {
        if !self.config.hooks.is_empty() {
            return None;
        }
        let messages = self.core(|core, rest| {
            rest.hand_off.update(core.conversation().shared());
            rest.hand_off.messages().clone()
        })?;
        let tools = self.tools_shown(tools)?;
        Some(ModelRequest { messages: self.config.shown(messages), tools, ..self.config.request.clone() })
    }

    /// The tools that a model sees now. As the conversation has it, whatever hooks make of it: what was found stays found.
    fn tools_shown(&self, tools: &Arc<[ToolDefinition]>) -> Option<Arc<[ToolDefinition]>> {
        self.core(|core, _| shown_after(tools, core.conversation().iter()))
    }

    /// The request, changed by every hook; none when the run was stopped meanwhile.
    async fn hooked_request(
        &mut self,
        tools: &Arc<[ToolDefinition]>,
    ) -> Option<Result<ModelRequest, super::HookError>> {
        let config = self.config.clone();
        let messages = self.core(|core, _| core.conversation().list())?;
        let cancel = self.stop.cancel.clone();
        let messages =
            match fold(self, messages, |hook, messages| hook.transform_context(messages, cancel.clone()))
                .await?
            {
                Ok(messages) => messages,
                Err(error) => return Some(Err(error)),
            };
        let mut changed: Conversation = messages.iter().map(|message| config.convert(message)).collect();
        for repair in changed.repair() {
            tracing::warn!(%repair, "what a hook made of the conversation was repaired");
        }
        let messages = HandOff::of(&changed, config.model.info().recipient()).messages().clone();
        let tools = self.tools_shown(tools)?;
        let request = ModelRequest { messages: self.config.shown(messages), tools, ..config.request.clone() };
        let context = self.config.registry.context(&self.context);
        fold(self, request, |hook, request| hook.before_request_in(request, context.clone())).await
    }
}

impl Config {
    /// The messages with results as their tools want them shown now.
    pub(super) fn shown(&self, messages: MessageList) -> MessageList {
        if !self.formats_results {
            return messages;
        }
        let mut shown = Vec::with_capacity(messages.len());
        // Results are behind the reply that they answer.
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
        shown.into_iter().collect()
    }

    /// A result as its tool wants it shown now, where that is not how it was stored.
    fn shown_result(
        &self,
        reply: &AssistantMessage,
        result: &ToolResultMessage,
    ) -> Option<ToolResultMessage> {
        let is_asked = |tool: &Arc<dyn Tool>| tool.formats_results();
        self.registry.get(&result.tool).filter(|tool| is_asked(tool))?;
        let call = reply.tool_calls().find(|call| call.id == result.call_id)?;
        let Cow::Owned(content) = self.registry.shown_content(&CallRecord::new(call, result)) else {
            return None;
        };
        let mut shown = result.clone();
        shown.content = self.model.info().recipient().fitting(&content).unwrap_or(content);
        Some(shown)
    }

    /// What a model is sent of the application's own message.
    pub(super) fn convert(&self, message: &Arc<Message>) -> Arc<Message> {
        let Message::Custom(custom) = &**message else { return message.clone() };
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

/// Whether listeners are told of it: what parts there are, and what makes them grow.
pub(super) fn is_update(event: &ModelEvent) -> bool {
    event.content_index().is_some() && !matches!(event, ModelEvent::PartData { .. })
}
