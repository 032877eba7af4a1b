//! Metrics of runs, and the content that traces may record.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::AssistantBuilder;
use super::listener::Listener;
use super::perform::Performer;
use crate::loop_core::{Event, EventKind};
use crate::message::{AssistantMessage, OutcomeKind, StopReason, Usage};
use crate::model::{ModelError, ModelInfo};
use crate::panics::catch;
use crate::tool::trace::Capture;

/// A measurement of a run, of one model request or one tool call.
///
/// It contains only names, numbers and words from closed sets, and no content of the conversation. The ids of runs and calls are for
/// correlation with logs. Do not use them as metric labels, because they have too many distinct values.
///
/// ```
/// use agent::{Assistant, Metric, ScriptedModel};
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .on_metric(|metric| match metric {
///         Metric::Request(request) => println!("{}: {} tokens", request.model, request.usage.total),
///         Metric::ToolCall(call) => println!("{}: {}", call.tool, call.outcome),
///         _ => {}
///     })
///     .build()?;
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "metrics are created one at a time and passed by reference")]
pub enum Metric {
    /// A request to a model, whether it succeeded or failed.
    Request(RequestMetric),
    /// A tool call that ended, whether its body ran or not.
    ToolCall(ToolCallMetric),
}

/// The measurement of a request to a model.
///
/// ```
/// use agent::RequestMetric;
///
/// /// One line of a log.
/// fn line(request: &RequestMetric) -> String {
///     let first = request.first_piece.map_or(0, |waited| waited.as_millis());
///     format!("{}/{} {first} ms {}", request.provider, request.model, request.error.unwrap_or("ok"))
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RequestMetric {
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The turn of the run, counted from 1.
    pub turn: u32,
    /// The provider, for example `anthropic`.
    pub provider: String,
    /// The requested model.
    pub model: String,
    /// The model that answered, if the provider reports it.
    pub response_model: Option<String>,
    /// The tokens, and the cost if prices are known. Zero for a request that failed before any usage was reported.
    pub usage: Usage,
    /// Why the reply ended.
    pub stop_reason: StopReason,
    /// The kind of error if the request failed, the same as `error.type` of its span.
    pub error: Option<&'static str>,
    /// The time from the request to the end of the reply.
    pub duration: Duration,
    /// The time from the request to the first piece of the reply, or `None` if there was none.
    pub first_piece: Option<Duration>,
}

/// The measurement of a tool call.
///
/// ```
/// use agent::ToolCallMetric;
///
/// /// Whether the model had the arguments right at once.
/// fn is_clean(call: &ToolCallMetric) -> bool {
///     call.coercions == 0 && call.code.as_deref() != Some("invalid_arguments")
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCallMetric {
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The turn of the run, counted from 1.
    pub turn: u32,
    /// The id of the call.
    pub call_id: String,
    /// The name that the model called. For an unknown tool ([`code`](Self::code) is `unknown_tool`) it can be any text.
    pub tool: String,
    /// How the call ended.
    pub outcome: OutcomeKind,
    /// The code of a failure, denial or interruption.
    pub code: Option<String>,
    /// The number of coercions in its arguments.
    pub coercions: usize,
    /// Whether its body ran.
    pub ran: bool,
    /// Whether the result was reused from an earlier call.
    pub cached: bool,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The duration of the body, all attempts together, in whole milliseconds.
    pub duration: Duration,
}

/// A function that receives measurements.
pub(super) type Meter = Arc<dyn Fn(&Metric) + Send + Sync>;

/// When a request was sent, and how long the first piece of its reply took.
#[derive(Clone, Copy)]
pub(super) struct RequestTiming {
    sent_at: Instant,
    first_piece: Option<Duration>,
}

impl RequestTiming {
    pub(super) fn now() -> Self {
        Self { sent_at: Instant::now(), first_piece: None }
    }

    /// Records that a piece arrived.
    pub(super) fn record_piece(&mut self) {
        let sent_at = self.sent_at;
        self.first_piece.get_or_insert_with(|| sent_at.elapsed());
    }

    /// Returns the time from the request to the first piece, if there was one.
    pub(super) fn first_piece(&self) -> Option<Duration> {
        self.first_piece
    }
}

impl Performer {
    /// Passes the measurement of a request that ended to the application's functions.
    pub(super) fn measure(
        &self,
        turn: u32,
        timing: RequestTiming,
        reply: &AssistantMessage,
        error: Option<&ModelError>,
    ) {
        if self.config.meters.is_empty() {
            return;
        }
        let ModelInfo { provider, model, .. } = self.config.model.info();
        let metric = Metric::Request(RequestMetric {
            run_id: self.run_id.clone(),
            turn,
            provider: provider.clone(),
            model: model.clone(),
            response_model: reply.response_model.clone(),
            usage: reply.usage.clone(),
            stop_reason: reply.stop_reason.clone(),
            error: error.map(|error| error.kind().as_str()),
            duration: timing.sent_at.elapsed(),
            first_piece: timing.first_piece,
        });
        for meter in &self.config.meters {
            if let Err(panic) = catch(|| meter(&metric)) {
                tracing::error!(%panic, "a function that measures requests panicked");
            }
        }
    }
}

/// Returns the measurement of a call, if the event is its end.
fn tool_call_metric(event: &Event) -> Option<Metric> {
    let EventKind::ToolExecutionEnd { result, ran, cached, attempt, duration_ms, .. } = &event.kind else {
        return None;
    };
    Some(Metric::ToolCall(ToolCallMetric {
        run_id: event.run_id.clone(),
        turn: event.turn,
        call_id: result.call_id.clone(),
        tool: result.tool.clone(),
        outcome: result.outcome.kind()?,
        code: result.outcome.code().map(str::to_owned),
        coercions: result.coercions.len(),
        ran: *ran,
        cached: *cached,
        attempt: *attempt,
        duration: Duration::from_millis(*duration_ms),
    }))
}

impl AssistantBuilder {
    /// Adds a function that receives a measurement of each model request and each tool call, for example for counters and histograms.
    ///
    /// The run waits for the function, so it should not block. If it panics, the panic is logged.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, Metric, ScriptedModel, tool, tools};
    /// use std::sync::{Arc, Mutex};
    ///
    /// /// Doubles a number.
    /// #[tool]
    /// fn double(n: i64) -> i64 {
    ///     n * 2
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let lines = Arc::new(Mutex::new(Vec::new()));
    /// let sink = lines.clone();
    /// let model = ScriptedModel::new([reply().tool_call("double", r#"{"n": "21"}"#), reply().text("42")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![double])
    ///     .on_metric(move |metric| {
    ///         sink.lock().unwrap().push(match metric {
    ///             Metric::Request(request) => format!("{} {} tokens", request.model, request.usage.total),
    ///             Metric::ToolCall(call) => format!("{} {} ms, {} coerced", call.tool, call.duration.as_millis(), call.coercions),
    ///             _ => return,
    ///         });
    ///     })
    ///     .build()?;
    /// assistant.prompt("Double 21").await?;
    /// assert_eq!(lines.lock().unwrap().len(), 3);
    /// # Ok(()) }
    /// ```
    pub fn on_metric(mut self, measure: impl Fn(&Metric) + Send + Sync + 'static) -> Self {
        let meter: Meter = Arc::new(measure);
        self.meters.push(meter.clone());
        self.listeners.add(Listener::new(move |event| {
            if let Some(metric) = tool_call_metric(event) {
                meter(&metric);
            }
        }));
        self
    }

    /// Records content in traces: messages (`gen_ai.input.messages`, `gen_ai.output.messages`), the arguments and results of calls, and the
    /// values of coercions. By default, traces contain only names and numbers.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    /// # use std::sync::{Arc, Mutex};
    /// # use tracing::field::{Field, Visit};
    /// # use tracing::span::{Attributes, Id, Record};
    /// # #[derive(Clone, Default)]
    /// # struct Traces(Arc<Mutex<String>>);
    /// # impl Traces {
    /// #     fn text(&self) -> String {
    /// #         self.0.lock().unwrap().clone()
    /// #     }
    /// # }
    /// # impl Visit for Traces {
    /// #     fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
    /// #         *self.0.lock().unwrap() += &format!("{field}={value:?} ");
    /// #     }
    /// # }
    /// # impl tracing::Subscriber for Traces {
    /// #     fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
    /// #         true
    /// #     }
    /// #     fn new_span(&self, span: &Attributes<'_>) -> Id {
    /// #         span.record(&mut self.clone());
    /// #         Id::from_u64(1)
    /// #     }
    /// #     fn record(&self, _: &Id, values: &Record<'_>) {
    /// #         values.record(&mut self.clone());
    /// #     }
    /// #     fn event(&self, event: &tracing::Event<'_>) {
    /// #         event.record(&mut self.clone());
    /// #     }
    /// #     fn record_follows_from(&self, _: &Id, _: &Id) {}
    /// #     fn enter(&self, _: &Id) {}
    /// #     fn exit(&self, _: &Id) {}
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let traces = Traces::default();                              // a subscriber of `tracing` that keeps all of it
    /// let _guard = tracing::subscriber::set_default(traces.clone());
    /// let plain = Assistant::builder(ScriptedModel::new(["Hello Ann."])).build()?;
    /// plain.prompt("I am Ann.").await?;
    /// assert!(traces.text().contains("gen_ai.request.model") && !traces.text().contains("Ann"));
    ///
    /// let captured = Assistant::builder(ScriptedModel::new(["Hello Bob."])).capture_content().build()?;
    /// captured.prompt("I am Bob.").await?;
    /// assert!(traces.text().contains("I am Bob.") && traces.text().contains("Hello Bob."));
    /// # Ok(()) }
    /// ```
    pub fn capture_content(mut self) -> Self {
        self.capture.get_or_insert_default();
        self
    }

    /// Like [`capture_content`](Self::capture_content), but passes the content through `redact` first.
    ///
    /// `redact` is called with every string, number and boolean of the captured content, and with its path as a JSON Pointer. The keys of
    /// objects are not passed to it. If it panics, nothing is captured.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, Value};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .capture_content_with(|path, value| {
    ///         if path.ends_with("/card_number") {
    ///             *value = "[card]".into();
    ///         } else if let Value::String(text) = value {
    ///             *text = text.replace("hunter2", "[password]");
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn capture_content_with(mut self, redact: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> Self {
        self.capture = Some(Arc::new(Capture::redacting(Arc::new(redact))));
        self
    }
}
