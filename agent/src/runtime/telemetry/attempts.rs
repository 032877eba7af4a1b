//! The spans of the requests of a fallback, which tries several models.

use std::sync::Arc;

use tracing::Span;

use super::{end_request, record_input, record_output, request_span};
use crate::message::AssistantMessage;
use crate::model::{AttemptTrace, AttemptTracer, ModelErrorKind, ModelEvent, ModelInfo, StepCx};
use crate::runtime::ask::is_update;
use crate::runtime::config::Config;
use crate::runtime::observe::RequestTiming;

/// Traces each request of a fallback in a `chat` span within `span`. If `content` is `None`, the spans do not contain the content of
/// requests.
pub(in crate::runtime) fn trace_attempts(
    step: &mut StepCx,
    info: &ModelInfo,
    span: &Span,
    session_id: Option<&str>,
    content: Option<&Arc<Config>>,
) {
    if !info.is_fallback || span.is_disabled() {
        return;
    }
    let (parent, session_id, content) = (span.clone(), session_id.map(str::to_owned), content.cloned());
    step.tracer = Some(AttemptTracer(Arc::new(move |info, request| {
        let span = parent.in_scope(|| request_span(info, request, session_id.as_deref()));
        if let Some(config) = &content {
            record_input(&span, config, request);
        }
        Box::new(ChatTrace { span, timing: RequestTiming::now(), content: content.clone() })
    })));
}

struct ChatTrace {
    span: Span,
    timing: RequestTiming,
    content: Option<Arc<Config>>,
}

impl AttemptTrace for ChatTrace {
    fn span(&self) -> &Span {
        &self.span
    }

    fn record_event(&mut self, event: &ModelEvent) {
        if is_update(event) {
            self.timing.record_piece();
        }
    }

    fn end(self: Box<Self>, reply: &AssistantMessage, error: Option<ModelErrorKind>) {
        let error = error.map(ModelErrorKind::as_str);
        end_request(&self.span, reply, error, self.timing.first_piece());
        if let Some(config) = &self.content {
            record_output(&self.span, config, reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::{NoSubscriber, with_default};

    use super::*;
    use crate::model::scripted::ScriptedModel;
    use crate::model::{Fallback, Model as _, ModelRequest};

    #[test]
    fn nothing_is_made_where_nothing_listens() {
        let fallback = Fallback::new([ScriptedModel::new(["Hello!"])]);
        let mut step = StepCx::new();
        with_default(NoSubscriber::default(), || {
            let span = request_span(fallback.info(), &ModelRequest::default(), None);
            trace_attempts(&mut step, fallback.info(), &span, None, None);
        });
        assert!(step.tracer.is_none());
    }
}
