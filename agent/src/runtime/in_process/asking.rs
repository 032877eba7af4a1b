//! The requests of a run in this process. Listeners are notified while a reply arrives.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tracing::{Instrument as _, Span};

use super::InProcessSteps;
use crate::loop_core::{ModelReply, RecordError};
use crate::message::{AssistantMessage, Message, MessageList, StopReason, UserMessage};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, StepCx};
use crate::runtime::ask::is_update;
use crate::runtime::assistant::AssistantState;
use crate::runtime::context::ContextState;
use crate::runtime::error::RunError;
use crate::runtime::hooks::HookError;
use crate::runtime::perform::Performer;
use crate::runtime::turn::{TurnChoices, TurnSteps};
use crate::steps::{SharedLoop, StepError, StepKey};
use crate::tool::BoxFuture;
use crate::tool::definition::ToolDefinition;

enum ReplyProgress {
    /// The reply has another piece, and listeners must be notified.
    Grown,
    Unchanged,
    /// The reply has ended, with an error if it is incomplete.
    Ended(Option<ModelError>),
}

impl InProcessSteps {
    /// Makes one request. Returns the reply and, if the request was too long for the model, the error.
    pub(super) async fn ask_model(
        &mut self,
        key: StepKey,
        tools: &Arc<[ToolDefinition]>,
    ) -> Result<(ModelReply, Option<ModelError>), StepError> {
        let request = self.next_request(tools).await.ok_or_else(|| self.stopped())?;
        let span = match self.send(key, request) {
            Ok(span) => span,
            Err(reply) => return Ok((*reply, None)),
        };
        let failure = self.read().instrument(span).await;
        self.end_reply(failure)
    }

    /// Sends a request, and returns the span of its reply. The function is not `async`, because a future would also contain `request`.
    ///
    /// # Errors
    /// Returns a failed reply if `request` is the error of a hook, or if the client of the model panics.
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
        let step = StepCx { notices: self.performer.notices.clone(), ..StepCx::of(self.stop.cancel.clone()) };
        // The request is dropped at the end of this function, so that the conversation alone owns the list of messages and extends it in
        // place.
        match self.asking().send(key, step, &request) {
            Ok(reply) => {
                let span = reply.span.clone();
                self.reply = Some(reply);
                Ok(span)
            }
            Err(failed) => {
                let (reply, error) = *failed;
                self.error = Some(RunError::Model(error));
                Err(Box::new(reply))
            }
        }
    }

    /// Finishes the reply. A failed reply keeps the parts that arrived. The second value is an error if the request was too long for the
    /// model.
    fn end_reply(
        &mut self,
        failure: Option<ModelError>,
    ) -> Result<(ModelReply, Option<ModelError>), StepError> {
        self.assistant.end_growth();
        let Some(reply) = self.reply.take() else { return Err(self.stopped()) };
        let is_started = reply.is_started;
        let mut reply = self.asking().finish(reply, failure.as_ref());
        self.performer.record_notices(std::mem::take(&mut reply.notices), &self.run);
        if !is_started {
            self.announce_switch(&reply.message);
        }
        let overflow = self.asking().overflow(&reply.message, failure.as_ref());
        if reply.message.stop_reason == StopReason::Error && overflow.is_none() {
            let text = || reply.message.error.clone().unwrap_or_default();
            let error = failure.unwrap_or_else(|| ModelError::new(ModelErrorKind::Other, text()));
            self.error = Some(RunError::Model(error));
        }
        reply.limit = reply.limit.or_else(|| self.stop.limit());
        Ok((reply, overflow))
    }

    async fn read(&mut self) -> Option<ModelError> {
        loop {
            match poll_fn(|cx| self.poll_reply(cx)).await {
                ReplyProgress::Grown => self.emit().await,
                ReplyProgress::Unchanged => {}
                ReplyProgress::Ended(failure) => return failure,
            }
            if self.has_to_yield() {
                tokio::task::yield_now().await;
            }
        }
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<ReplyProgress> {
        let Some(reply) = &mut self.reply else { return Poll::Ready(ReplyProgress::Ended(None)) };
        Poll::Ready(match ready!(reply.poll_event(cx)) {
            Some(Ok(event)) => self.take_event(event),
            Some(Err(error)) => ReplyProgress::Ended(Some(error)),
            None => ReplyProgress::Ended(None),
        })
    }

    fn take_event(&mut self, event: ModelEvent) -> ReplyProgress {
        let Some(reply) = self.reply.as_mut().filter(|_| is_update(&event)) else {
            return ReplyProgress::Unchanged;
        };
        let begins = !std::mem::replace(&mut reply.is_started, true);
        let started = begins.then(|| Arc::new(Message::Assistant(reply.stream.without_parts())));
        if begins {
            let notices = reply.notices.take();
            self.performer.record_notices(notices, &self.run);
        }
        if let Some(Message::Assistant(started)) = started.as_deref() {
            self.announce_switch(started);
        }
        self.assistant.grow(started.as_ref(), &event);
        if let Err(error) = record_piece(&self.run, started, event) {
            tracing::error!(%error, "a piece of a reply was not recorded");
        }
        ReplyProgress::Grown
    }

    /// Returns the next request, or `None` if the run is stopped before the hooks have changed the request.
    async fn next_request(
        &mut self,
        tools: &Arc<[ToolDefinition]>,
    ) -> Option<Result<ModelRequest, HookError>> {
        if !self.performer.config.hooks.is_empty() {
            let request = self.asking().request(self.view(), tools.clone());
            return Some(Box::pin(request).await?.map(|request| self.assistant.share_kept_text(request)));
        }
        let recipient = self.performer.config.selects_model().then(|| self.asking().recipient());
        let is_managed = self.performer.config.context.is_some();
        let mut state = self.assistant.state();
        let AssistantState { hand_off, context, .. } = &mut *state;
        let run = self.run.lock();
        if let Some(recipient) = recipient {
            hand_off.set_recipient(recipient);
        }
        if is_managed {
            // `hand_off.update` compares only the last message that it read, and misses other changes of the view.
            if std::mem::replace(&mut context.handed, context.view.generation()) != context.view.generation()
            {
                hand_off.restart();
            }
            hand_off.update(context.view.messages());
        } else {
            hand_off.update(run.conversation().shared());
        }
        let messages = hand_off.messages().clone();
        drop(run);
        drop(state);
        Some(Ok(self.asking().config.request_of(messages, tools.clone())))
    }

    fn view(&self) -> MessageList {
        if self.performer.config.context.is_some() {
            self.assistant.state().context.view.messages().clone()
        } else {
            self.run.lock().conversation().list()
        }
    }

    pub(super) fn asking(&self) -> &Performer {
        self.choices.performer(&self.performer)
    }

    /// Records an event if the model of this reply differs from the model of the last reply.
    fn announce_switch(&mut self, reply: &AssistantMessage) {
        if !self.performer.config.may_switch {
            return;
        }
        self.asking().record_switch(&self.view(), reply, &self.run);
    }
}

impl TurnSteps for InProcessSteps {
    const REMEMBERS: bool = false;

    fn parts(&mut self) -> (&Performer, &mut TurnChoices) {
        (&self.performer, &mut self.choices)
    }

    fn replace_context(&mut self, context: ContextState) -> ContextState {
        std::mem::replace(&mut self.assistant.state().context, context)
    }

    async fn perform<T: Send + 'static>(
        &mut self,
        _: impl fmt::Display + Send,
        work: BoxFuture<'static, T>,
    ) -> Result<T, StepError> {
        let done = self.performer.clone().until_stopped(work).await;
        done.ok_or_else(|| self.stopped())
    }

    async fn ask(
        &mut self,
        key: &StepKey,
        _: &'static str,
        tools: Arc<[ToolDefinition]>,
    ) -> Result<(ModelReply, Option<ModelError>), StepError> {
        self.ask_model(key.clone(), &tools).await
    }

    async fn check_run(&mut self) -> Result<(), StepError> {
        self.check_stop()
    }

    fn push_first(&mut self, report: UserMessage) {
        self.assistant.state().steering.push_front(report);
    }

    async fn has_messages(&mut self) -> Result<bool, StepError> {
        let state = self.assistant.state();
        Ok(!state.steering.is_empty() || !state.follow_ups.is_empty())
    }

    async fn notify(&mut self) -> Result<(), StepError> {
        self.emit().await;
        self.check_stop()
    }

    fn failed(&mut self, error: RunError) -> StepError {
        let message = error.to_string();
        self.error = Some(error);
        StepError::failed(message)
    }
}

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
