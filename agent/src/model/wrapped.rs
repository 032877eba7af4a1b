//! The reply of an inner model. The outer model, such as a fallback, passes the events on.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream as _;

use super::{AttemptTrace, ModelError, ModelErrorKind, ModelEvent, ModelStream};
use crate::message::AssistantMessage;

/// Forwards methods of [`Model`](super::Model) to the inner model in the field `model`.
macro_rules! answered_by_model {
    () => {
        fn info(&self) -> &$crate::model::ModelInfo {
            self.model.info()
        }

        fn candidates(&self) -> Vec<$crate::model::ModelInfo> {
            self.model.candidates()
        }

        fn context_window(&self) -> Option<u64> {
            self.model.context_window()
        }

        fn max_output(&self) -> Option<u64> {
            self.model.max_output()
        }

        fn request_body(&self, request: &$crate::model::ModelRequest) -> Option<String> {
            self.model.request_body(request)
        }

        fn count_tokens(
            &self,
            cx: &$crate::model::StepCx,
            request: &$crate::model::ModelRequest,
        ) -> $crate::tool::BoxFuture<'static, Result<Option<u64>, $crate::model::ModelError>> {
            self.model.count_tokens(cx, request)
        }
    };
}
pub(crate) use answered_by_model;

pub(super) type NextEvent = Option<Result<ModelEvent, ModelError>>;

/// A reply of an inner model. An outer [`ModelStream`] gets the events of this reply, and builds the same message from them.
pub(super) struct WrappedReply {
    stream: ModelStream,
    ready: VecDeque<ModelEvent>,
    trace: Option<Box<dyn AttemptTrace>>,
}

impl WrappedReply {
    pub(super) fn new(stream: ModelStream) -> Self {
        Self { stream, ready: VecDeque::new(), trace: None }
    }

    pub(super) fn with_trace(mut self, trace: Option<Box<dyn AttemptTrace>>) -> Self {
        self.trace = trace;
        self
    }

    pub(super) fn partial(&self) -> &AssistantMessage {
        self.stream.partial()
    }

    /// Returns the provider, protocol, model and additional fields of the reply, as a message without content.
    pub(super) fn author(&self) -> AssistantMessage {
        let AssistantMessage { provider, api, model, extra, .. } = self.stream.partial();
        let (provider, api, model, extra) = (provider.clone(), api.clone(), model.clone(), extra.clone());
        AssistantMessage { provider, api, model, extra, ..AssistantMessage::default() }
    }

    /// Drops the rest of the reply, and returns the [`author`](Self::author) of the reply.
    pub(super) fn abandon(&mut self) -> AssistantMessage {
        self.stream.drop_events();
        self.author()
    }

    pub(super) fn held(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn pop(&mut self) -> Option<ModelEvent> {
        self.ready.pop_front()
    }

    pub(super) fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<NextEvent> {
        let Self { stream, trace: Some(trace), .. } = self else {
            return Pin::new(&mut self.stream).poll_next(cx);
        };
        let next = trace.span().in_scope(|| Pin::new(stream).poll_next(cx));
        match &next {
            Poll::Ready(Some(Ok(event))) => trace.record_event(event),
            Poll::Ready(Some(Err(error))) => self.end_trace(Some(error.kind())),
            Poll::Ready(None) => self.end_trace(None),
            Poll::Pending => {}
        }
        next
    }

    fn end_trace(&mut self, error: Option<ModelErrorKind>) {
        if let Some(trace) = self.trace.take() {
            trace.end(self.stream.partial(), error);
        }
    }

    /// Queues an event for the reader. Deltas lack some fields of a part, so an event with the whole part replaces the part's end event.
    /// All parts are queued once more before the stop event.
    pub(super) fn push(&mut self, event: ModelEvent) {
        let content = &self.stream.partial().content;
        match &event {
            ModelEvent::TextEnd { content_index }
            | ModelEvent::ThinkingEnd { content_index }
            | ModelEvent::ToolCallEnd { content_index } => {
                let (content_index, part) = (*content_index, content.get(*content_index).cloned());
                let whole = part.map(|part| ModelEvent::Part { content_index, part: Box::new(part) });
                self.ready.push_back(whole.unwrap_or(event));
            }
            ModelEvent::Stop { .. } => {
                let parts = content.iter().cloned().enumerate();
                let whole = parts
                    .map(|(content_index, part)| ModelEvent::Part { content_index, part: Box::new(part) });
                self.ready.extend(whole);
                self.ready.push_back(event);
            }
            _ => self.ready.push_back(event),
        }
    }
}

/// Ends the trace as cancelled if the reply was not read to its end.
impl Drop for WrappedReply {
    fn drop(&mut self) {
        self.end_trace(Some(ModelErrorKind::Aborted));
    }
}
