//! Builder options for metrics, and for the content that traces may record.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::AssistantBuilder;
use crate::loop_core::{Event, EventKind};
#[cfg(feature = "otel")]
use crate::runtime::instruments::Instruments;
use crate::runtime::listener::Listener;
use crate::runtime::observe::{Meter, Metric};
use crate::tool::capture::Capture;

impl AssistantBuilder {
    /// Adds a function that receives a measurement of each model request and each tool call, for example for counters and histograms. For
    /// a sub-agent, the function receives only the measurements of the tool calls. If the sub-agent has such a function of its own, only
    /// that function receives the measurements of its tool calls.
    ///
    /// The run waits for the function, so the function should not block. A panic of the function is logged. After a panic on a tool call,
    /// the function receives no more tool calls.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, run::Metric, tool, tools};
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
    ///             Metric::Request { model, usage, .. } => format!("{model} {} tokens", usage.total),
    ///             Metric::ToolCall { tool, duration, coercions, .. } => format!("{tool} {} ms, {coercions} coerced", duration.as_millis()),
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
        self.listeners.add(Listener::meter(move |event| {
            if let Some(metric) = tool_call_metric(event) {
                meter(&metric);
            }
        }));
        self
    }

    /// Records the measurements of requests, calls and runs with instruments of OpenTelemetry (feature `otel`). The names of the
    /// instruments follow the conventions for generative AI: `gen_ai.client.inference.…`, `gen_ai.invoke_agent.…` and
    /// `gen_ai.execute_tool.duration`. The measurements contain only names and numbers. The application sets up the exporter. The run of a
    /// sub-agent is measured as a call. The requests of a sub-agent are measured only if the sub-agent has a meter of its own. That meter
    /// then also measures the calls of the sub-agent, in place of this meter.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let provider = opentelemetry::global::meter_provider();          // or that of the application's SDK
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).meter(&*provider).build()?;
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    #[cfg(feature = "otel")]
    pub fn meter(mut self, provider: &(impl opentelemetry::metrics::MeterProvider + ?Sized)) -> Self {
        let instruments = Arc::new(Instruments::new(provider));
        let (runs, chunks) = (instruments.clone(), instruments.clone());
        self.listeners.add(Listener::new(move |event| runs.record_event(event)));
        self.chunk_meters.push(Arc::new(move |reply, took| chunks.record_chunk(reply, took)));
        self.on_metric(move |metric| instruments.record(metric))
    }

    /// Sets the name of the agent in traces: `gen_ai.agent.name`, and a part of the name of each run's span. Default: none.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).agent_name("support").build()?;
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn agent_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.agent_name = Some(name.into());
        self
    }

    /// Sets the description of the agent in traces: `gen_ai.agent.description` of each run. Default: none.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .agent_name("support")
    ///     .agent_description("Answers questions about orders.")
    ///     .build()?;
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn agent_description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.agent_description = Some(description.into());
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

    /// Records content in traces like [`capture_content`](Self::capture_content), but passes the content through `redact` first.
    ///
    /// `redact` is called with every string, number and boolean of the captured content, and with its path as a JSON Pointer. The keys of
    /// objects are not passed to `redact`. If `redact` panics, nothing is captured.
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
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn capture_content_with(mut self, redact: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> Self {
        self.capture = Some(Arc::new(Capture::redacting(Arc::new(redact))));
        self
    }
}

/// Returns the measurement of a call. Returns `None` for other events, and for a call whose result is still pending.
fn tool_call_metric(event: &Event) -> Option<Metric> {
    let EventKind::ToolExecutionEnd { result, ran, cached, attempt, duration_ms, .. } = &event.kind else {
        return None;
    };
    Some(Metric::ToolCall {
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
    })
}
