//! The stream of a fallback: the events of the first model that gives a reply.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tracing::Span;

use super::{Admission, Fallback, FallbackRecord, ModelAttempt};
use crate::message::{AssistantMessage, HandOff, HandOffLosses, Message, MessageList, StopReason};
use crate::model::limits::LOCAL_LIMIT;
use crate::model::wrapped::{NextEvent, WrappedReply};
use crate::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, RequestNotice,
    StepCx,
};
use crate::tool::BoxFuture;

/// Maximum number of events that are held back before the content of a reply begins. With more events, the reply counts as begun.
const MAX_HELD: usize = 64;

pub(super) struct FallbackEvents {
    fallback: Fallback,
    cx: StepCx,
    request: ModelRequest,
    /// The provider and model of the reply, with the record of attempts. Set when a reply begins, or when the request ends without one.
    author: Arc<OnceLock<AssistantMessage>>,
    /// The indices of the models that were not tried yet, in the order in which they are asked.
    order: VecDeque<usize>,
    attempts: Vec<ModelAttempt>,
    /// The errors of the models that failed, each with the index of its attempt.
    errors: Vec<(usize, ModelError)>,
    phase: FallbackPhase,
}

enum FallbackPhase {
    Choose,
    /// The pause before a rate limited model is asked once more.
    Wait(BoxFuture<'static, ()>, Admission),
    /// A reply without content so far. Its events are held back.
    Open(Box<OpenReply>),
    /// A reply that has begun. Its events are emitted.
    Deliver(Box<OpenReply>),
    Over,
}

struct OpenReply {
    reply: WrappedReply,
    admission: Admission,
    started: Duration,
    sent: MessageList,
    /// Whether a rate limit does not lead to another try, because the model makes its own retries or because this is the second try.
    is_final: bool,
}

impl FallbackEvents {
    pub(super) fn new(
        fallback: Fallback,
        cx: &StepCx,
        request: &ModelRequest,
        author: Arc<OnceLock<AssistantMessage>>,
    ) -> Self {
        let mut order: VecDeque<usize> = (0..fallback.models.len()).collect();
        // Only the model that paused understands the state of its unfinished reply, so this model is asked first.
        let paused = last_reply(&request.messages).filter(|reply| reply.stop_reason == StopReason::Pause);
        let is_author = |index: &usize| {
            let model = fallback.models.get(*index);
            model.is_some_and(|model| paused.is_some_and(|reply| gave(&model.candidates(), reply)))
        };
        if let Some(at) = order.iter().position(is_author)
            && let Some(first) = order.remove(at)
        {
            order.push_front(first);
        }
        Self {
            cx: cx.clone(),
            request: request.clone(),
            author,
            order,
            attempts: Vec::new(),
            errors: Vec::new(),
            phase: FallbackPhase::Choose,
            fallback,
        }
    }

    /// Asks the next model whose breaker admits a request. If all breakers are open, asks the model whose pause ends first.
    fn choose(&mut self) -> Result<OpenReply, ModelError> {
        let now = self.fallback.clock.now();
        let (mut admission, mut skipped) = (None, Vec::new());
        while let Some(index) = self.order.pop_front() {
            admission = self.fallback.breakers.admit(index, now, false);
            if admission.is_some() {
                break;
            }
            skipped.push(index);
        }
        if admission.is_none()
            && self.errors.is_empty()
            && let Some(first) = self.fallback.breakers.first_to_reopen()
        {
            admission = self.fallback.breakers.admit(first, now, true);
            skipped.retain(|index| *index != first);
        }
        let skipped = skipped.iter().filter_map(|index| self.fallback.models.get(*index));
        self.attempts.extend(skipped.map(|model| ModelAttempt::skipped(model.info())));
        admission.map(|admission| self.ask(admission, false)).ok_or_else(|| self.all_failed())
    }

    fn ask(&self, admission: Admission, was_waited_for: bool) -> OpenReply {
        let now = self.fallback.clock.now();
        let is_last = !self.order.iter().any(|next| self.fallback.breakers.is_admitting(*next, now));
        let mut cx = if is_last { self.cx.clone() } else { self.cx.clone().retried_by_caller() };
        // The quota that a provider reports does not apply to the other models.
        cx.quota = None;
        let mut request = self.request.clone();
        // The outer stream adds the argument events, so the inner model must not add them, too.
        request.argument_events = false;
        let mut trace = None;
        let stream = match self.fallback.models.get(admission.index) {
            Some(model) => {
                // A model that chooses among several candidates hands off the messages itself.
                if let [info] = &*model.candidates() {
                    let mut hand_off = HandOff::new(info.recipient());
                    hand_off.update(&self.request.messages);
                    request.messages =
                        hand_off.messages().clone().with_slot(self.request.messages.slot().clone());
                }
                // A fallback within this fallback traces its own attempts.
                if !model.info().is_fallback {
                    trace = cx.tracer.take().map(|tracer| (tracer.0)(model.info(), &request));
                }
                let span = trace.as_ref().map_or_else(Span::none, |trace| trace.span().clone());
                span.in_scope(|| model.stream(&cx, &request))
            }
            None => ModelStream::from_events(&cx, &self.fallback.info, []),
        };
        let (sent, is_final) = (request.messages, is_last || was_waited_for);
        OpenReply {
            reply: WrappedReply::new(stream).with_trace(trace),
            admission,
            started: now,
            sent,
            is_final,
        }
    }

    fn begin(&self, reply: &OpenReply) {
        let message = reply.reply.partial();
        let mut author = reply.reply.author();
        let mut record = FallbackRecord { attempts: self.attempts.clone(), ..FallbackRecord::default() };
        if let Some(before) = last_reply(&self.request.messages)
            && !before.model.is_empty()
            && (&before.provider, &before.api, &before.model)
                != (&author.provider, &author.api, &author.model)
        {
            record.switched_from = Some(format!("{}/{}", before.provider, before.model));
            record.losses = HandOffLosses::between(&self.request.messages, &reply.sent);
        }
        if let Some(inner) = FallbackRecord::of(message) {
            record.attempts.extend(inner.attempts);
            record.switched_from = inner.switched_from.or(record.switched_from);
            // A nested fallback with one candidate receives messages that were handed off already, so its record does not contain the
            // losses.
            if record.losses.is_empty() {
                record.losses = inner.losses;
            }
        }
        record.write(&mut author);
        // Only one reply begins, so `author` is set only once.
        let _ = self.author.set(author);
    }

    /// Decides what follows an error that occurs before any content: a pause, the next model, or the end of the request.
    fn record_failure(
        &mut self,
        mut reply: Box<OpenReply>,
        error: ModelError,
    ) -> Result<FallbackPhase, ModelError> {
        if error.is_aborted() {
            self.phase = FallbackPhase::Open(reply);
            self.abandon();
            return Err(error);
        }
        self.attempts.push(self.attempt(&reply, &error));
        let own = self.attempts.len() - 1;
        // If the failed model is a fallback, too, its own attempts are added.
        self.attempts.extend(ModelAttempt::before(reply.reply.partial()));
        if !self.fallback.kinds.contains(&error.kind()) {
            return Err(self.failed(error, own));
        }
        // Limits in this program have their own maximum wait, so their refusals cause no pause here.
        if error.is_rate_limit()
            && error.code() != Some(LOCAL_LIMIT)
            && !reply.is_final
            && let Some(pause) = error.retry_after().filter(|pause| *pause <= self.fallback.max_wait)
            && let Some(sleep) = self.fallback.clock.sleep(pause)
        {
            let waited_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            self.cx.notices.add(RequestNotice::Delayed { waited_ms, limit: "provider".to_owned() });
            return Ok(FallbackPhase::Wait(sleep, reply.admission));
        }
        reply.admission.record_failure(self.fallback.clock.now(), &error);
        self.errors.push((own, error));
        Ok(FallbackPhase::Choose)
    }

    /// Records the attempts of a request that is cancelled before the content of a reply arrives.
    fn abandon(&mut self) {
        if self.author.get().is_some() {
            return;
        }
        let phase = std::mem::replace(&mut self.phase, FallbackPhase::Over);
        let mut author = match phase {
            FallbackPhase::Open(mut reply) => reply.reply.abandon(),
            _ => self.no_author(),
        };
        let mut attempts = std::mem::take(&mut self.attempts);
        attempts.extend(ModelAttempt::before(&author));
        FallbackRecord { attempts, ..FallbackRecord::default() }.write(&mut author);
        let _ = self.author.set(author);
    }

    /// Returns an empty message that names the fallback itself as its model, for a request that no model answered.
    fn no_author(&self) -> AssistantMessage {
        let ModelInfo { provider, api, model, .. } = &self.fallback.info;
        let (provider, api, model) = (provider.clone(), api.clone(), model.clone());
        AssistantMessage { provider, api, model, ..AssistantMessage::default() }
    }

    fn attempt(&self, reply: &OpenReply, error: &ModelError) -> ModelAttempt {
        let info = self.fallback.models.get(reply.admission.index).map(Model::info);
        let ms = self.fallback.clock.now().saturating_sub(reply.started).as_millis();
        let ms = u64::try_from(ms).unwrap_or(u64::MAX);
        ModelAttempt::failed(info.unwrap_or(&self.fallback.info), error, ms)
    }

    fn all_failed(&self) -> ModelError {
        match self.errors.first() {
            Some((own, first)) => self.failed(first.clone(), *own),
            None => ModelError::new(ModelErrorKind::Other, "there is no model to ask"),
        }
    }

    /// Returns `error` with notes about the other models that failed or were skipped. The result is retryable if the error of any model
    /// is. `own` is the index of the attempt with `error`.
    fn failed(&self, error: ModelError, own: usize) -> ModelError {
        let others = self.attempts.iter().enumerate().filter(|(at, _)| *at != own);
        let attempts = others.map(|(_, attempt)| attempt.clone()).collect();
        let mut author = self.no_author();
        FallbackRecord { attempts, ..FallbackRecord::default() }.write(&mut author);
        let _ = self.author.set(author);
        let others = self.errors.iter().filter(|(at, _)| *at != own);
        let mut notes: Vec<String> = others
            .filter_map(|(at, error)| Some((self.attempts.get(*at)?, error)))
            .map(|(of, error)| format!("; `{}/{}` failed, too: {error}", of.provider, of.model))
            .collect();
        let skipped = self.attempts.iter().filter(|attempt| attempt.kind == super::record::BREAKER_OPEN);
        notes.extend(skipped.map(|attempt| {
            format!("; `{}/{}` was not asked, because its breaker is open", attempt.provider, attempt.model)
        }));
        let retryable = error.is_retryable() || self.errors.iter().any(|(_, error)| error.is_retryable());
        if notes.is_empty() { error } else { error.with_notes(&notes.concat()).with_retryable(retryable) }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<NextEvent> {
        loop {
            match std::mem::replace(&mut self.phase, FallbackPhase::Over) {
                FallbackPhase::Over => return Poll::Ready(None),
                FallbackPhase::Choose => match self.choose() {
                    Ok(reply) => self.phase = FallbackPhase::Open(Box::new(reply)),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                FallbackPhase::Wait(mut sleep, admission) => {
                    if sleep.as_mut().poll(cx).is_pending() {
                        self.phase = FallbackPhase::Wait(sleep, admission);
                        return Poll::Pending;
                    }
                    self.phase = FallbackPhase::Open(Box::new(self.ask(admission, true)));
                }
                FallbackPhase::Open(mut reply) => {
                    let Poll::Ready(next) = reply.reply.poll_stream(cx) else {
                        self.phase = FallbackPhase::Open(reply);
                        return Poll::Pending;
                    };
                    match next {
                        Some(Ok(event)) => {
                            let begins = event.content_index().is_some()
                                || matches!(event, ModelEvent::Stop { .. })
                                || reply.reply.held() >= MAX_HELD;
                            reply.reply.push(event);
                            self.phase = if begins {
                                self.begin(&reply);
                                FallbackPhase::Deliver(reply)
                            } else {
                                FallbackPhase::Open(reply)
                            };
                        }
                        Some(Err(error)) => match self.record_failure(reply, error) {
                            Ok(phase) => self.phase = phase,
                            Err(error) => return Poll::Ready(Some(Err(error))),
                        },
                        None => return Poll::Ready(None),
                    }
                }
                FallbackPhase::Deliver(mut reply) => {
                    let next = self.deliver(&mut reply, cx);
                    if matches!(next, Poll::Pending | Poll::Ready(Some(Ok(_)))) {
                        self.phase = FallbackPhase::Deliver(reply);
                    }
                    return next;
                }
            }
        }
    }

    fn deliver(&self, reply: &mut OpenReply, cx: &mut Context<'_>) -> Poll<NextEvent> {
        loop {
            if let Some(event) = reply.reply.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            match ready!(reply.reply.poll_stream(cx)) {
                Some(Ok(event)) => reply.reply.push(event),
                Some(Err(error)) => {
                    if self.fallback.kinds.contains(&error.kind()) {
                        reply.admission.record_failure(self.fallback.clock.now(), &error);
                    }
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    reply.admission.record_success();
                    return Poll::Ready(None);
                }
            }
        }
    }
}

impl Drop for FallbackEvents {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Stream for FallbackEvents {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

/// Returns the newest reply that is sent to models. Failed and aborted replies are not sent.
fn last_reply(messages: &[Arc<Message>]) -> Option<&AssistantMessage> {
    let mut replies = messages.iter().rev().filter_map(|message| message.as_assistant());
    replies.find(|reply| !reply.stop_reason.is_failure())
}

fn gave(models: &[ModelInfo], reply: &AssistantMessage) -> bool {
    let is_author = |info: &ModelInfo| {
        (&info.provider, &info.api, &info.model) == (&reply.provider, &reply.api, &reply.model)
    };
    models.iter().any(is_author)
}
