//! Traces of the requests of a `Fallback`, one for each model that it asks. The run that uses the fallback records the traces.

use std::fmt;
use std::sync::Arc;

use tracing::Span;

use super::{ModelErrorKind, ModelEvent, ModelInfo, ModelRequest};
use crate::message::AssistantMessage;

pub(crate) trait AttemptTrace: Send {
    fn span(&self) -> &Span;

    fn record_event(&mut self, event: &ModelEvent);

    /// Ends the trace with the reply so far. `error` is set if the request failed or was cancelled.
    fn end(self: Box<Self>, reply: &AssistantMessage, error: Option<ModelErrorKind>);
}

type BeginTrace = dyn Fn(&ModelInfo, &ModelRequest) -> Box<dyn AttemptTrace> + Send + Sync;

#[derive(Clone)]
pub(crate) struct AttemptTracer(pub(crate) Arc<BeginTrace>);

impl fmt::Debug for AttemptTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttemptTracer")
    }
}
