//! Metrics of runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::message::{AssistantMessage, OutcomeKind, StopReason, Usage};
use crate::model::{ModelAttempt, ModelError, ModelErrorKind, ModelInfo};
use crate::panics::catch;

/// A measurement of one model request or of one tool call in a run.
///
/// A measurement contains only ids, names, numbers and short codes such as `completed`, and no content of the conversation. The ids of
/// runs and calls are for correlation with logs. Do not use them as metric labels, because they have too many distinct values.
///
/// ```
/// use agent::{Assistant, ScriptedModel, run::Metric};
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .on_metric(|metric| match metric {
///         Metric::Request { model, usage, .. } => println!("{model}: {} tokens", usage.total),
///         Metric::ToolCall { tool, outcome, .. } => println!("{tool}: {outcome}"),
///         _ => {}
///     })
///     .build()?;
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "metrics are created one at a time and passed by reference")]
pub enum Metric {
    /// A request to a model, whether it succeeded or failed. Requests for summaries are measured, too.
    #[non_exhaustive]
    Request {
        /// The id of the run. Each [compaction](super::Assistant::compact) by the application has an id of its own.
        run_id: Arc<str>,
        /// The turn of the run, counted from 1; 0 for a compaction by the application.
        turn: u32,
        /// The provider, for example `anthropic`.
        provider: String,
        /// The requested model. A [`Fallback`](crate::model::Fallback) has a metric for each model asked.
        model: String,
        /// The model that answered, if the provider reports it.
        response_model: Option<String>,
        /// The tokens, and the cost if prices are known. Zero for a request that failed before any usage was reported.
        usage: Usage,
        /// The reason why the reply ended.
        stop_reason: StopReason,
        /// The kind of error if the request failed, the same as `error.type` of its span.
        error: Option<&'static str>,
        /// The time from the request to the end of the reply.
        duration: Duration,
        /// The time from the request to the first piece of the reply, or `None` if no piece arrived.
        first_piece: Option<Duration>,
    },
    /// A tool call that ended, whether the tool ran or not.
    #[non_exhaustive]
    ToolCall {
        /// The id of the run.
        run_id: Arc<str>,
        /// The turn of the run, counted from 1.
        turn: u32,
        /// The id of the call.
        call_id: String,
        /// The name that the model called. For an unknown tool (`code` is `unknown_tool`) it can be any text.
        tool: String,
        /// The kind of the outcome.
        outcome: OutcomeKind,
        /// The code of a failure, denial or interruption.
        code: Option<String>,
        /// The number of coercions in the arguments of the call.
        coercions: usize,
        /// Whether the tool ran.
        ran: bool,
        /// Whether the result was reused from an earlier call.
        cached: bool,
        /// The number of the last attempt, counted from 1.
        attempt: u32,
        /// The time from the start of the call to the end of the tool's function, all attempts together, in whole milliseconds.
        duration: Duration,
    },
}

pub(super) type Meter = Arc<dyn Fn(&Metric) + Send + Sync>;

/// A function that receives the time between two chunks of a reply, with the reply so far.
pub(super) type ChunkMeter = Arc<dyn Fn(&AssistantMessage, Duration) + Send + Sync>;

#[derive(Clone, Copy)]
pub(super) struct RequestTiming {
    sent_at: Instant,
    first_piece: Option<Duration>,
    last_chunk: Option<Instant>,
}

impl RequestTiming {
    pub(super) fn now() -> Self {
        Self { sent_at: Instant::now(), first_piece: None, last_chunk: None }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.sent_at.elapsed()
    }

    /// Records that a chunk with content arrived. Returns the time since the previous chunk, or `None` for the first chunk.
    pub(super) fn record_chunk(&mut self) -> Option<Duration> {
        let now = Instant::now();
        self.last_chunk.replace(now).map(|last| now - last)
    }

    pub(super) fn record_piece(&mut self) {
        let sent_at = self.sent_at;
        self.first_piece.get_or_insert_with(|| sent_at.elapsed());
    }

    /// Returns the time from the request to the first piece of the reply, or `None` if no piece has arrived.
    pub(super) fn first_piece(&self) -> Option<Duration> {
        self.first_piece
    }
}

/// Reports an ended request to the application's meters. Each failed attempt at another model is reported first, on its own.
pub(super) fn measure_request(
    meters: &[Meter],
    (run_id, turn): (&Arc<str>, u32),
    info: &ModelInfo,
    timing: &RequestTiming,
    reply: &AssistantMessage,
    error: Option<&ModelError>,
) {
    if meters.is_empty() {
        return;
    }
    let attempts = ModelAttempt::before(reply).into_iter().filter(ModelAttempt::was_sent);
    let attempts = attempts.map(|attempt| Metric::Request {
        run_id: run_id.clone(),
        turn,
        provider: attempt.provider,
        model: attempt.model,
        response_model: None,
        usage: Usage::default(),
        stop_reason: StopReason::Error,
        error: Some(ModelErrorKind::from(&*attempt.kind).as_str()),
        duration: Duration::from_millis(attempt.ms),
        first_piece: None,
    });
    // With several models, the reply names the model that answered. A reply without a model belongs to the model of the request.
    let (provider, model) = match &*reply.model {
        "" => (&info.provider, &info.model),
        _ => (&reply.provider, &reply.model),
    };
    let request = Metric::Request {
        run_id: run_id.clone(),
        turn,
        provider: provider.clone(),
        model: model.clone(),
        response_model: reply.response_model.clone(),
        usage: reply.usage.clone(),
        stop_reason: reply.stop_reason.clone(),
        error: error.map(|error| error.kind().as_str()),
        duration: timing.elapsed(),
        first_piece: timing.first_piece(),
    };
    for metric in attempts.chain([request]) {
        for meter in meters {
            if let Err(panic) = catch(|| meter(&metric)) {
                tracing::error!(%panic, "a function that measures requests panicked");
            }
        }
    }
}
