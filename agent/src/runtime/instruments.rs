//! The measurements of runs, as instruments of OpenTelemetry that follow its conventions for generative AI.
//!
//! Source: `docs/gen-ai/gen-ai-metrics.md` of <https://github.com/open-telemetry/semantic-conventions-genai>.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use tokio::time::Instant;

use super::observe::Metric;
use super::telemetry::{ModalityTokens, divided, operation_name, provider_name};
use crate::loop_core::{Event, EventKind};
use crate::message::{AssistantMessage, OutcomeKind, Usage};
use crate::model::ModelInfo;

/// The schema URL of the OpenTelemetry conventions that define the names of the instruments.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev";

/// Maximum number of runs that are measured at the same time. Further runs are not measured.
const MAX_RUNS: usize = 10_000;

pub(super) struct Instruments {
    request_duration: Histogram<f64>,
    first_chunk: Histogram<f64>,
    output_chunk: Histogram<f64>,
    request_input: Histogram<u64>,
    request_output: Histogram<u64>,
    /// The counters of tokens: input, output, cache reads, cache writes and reasoning, in this order.
    tokens: [Counter<u64>; 5],
    run_duration: Histogram<f64>,
    run_requests: Histogram<u64>,
    run_calls: Histogram<u64>,
    call_duration: Histogram<f64>,
    runs: Mutex<HashMap<Arc<str>, MeasuredRun>>,
}

struct MeasuredRun {
    started: Instant,
    requests: u64,
    calls: u64,
}

fn steps(first: f64, factor: f64, count: i32) -> Vec<f64> {
    (0..count).map(|step| first * factor.powi(step)).collect()
}

impl Instruments {
    pub(super) fn new(provider: &(impl MeterProvider + ?Sized)) -> Self {
        let scope = InstrumentationScope::builder("agent")
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(SCHEMA_URL);
        let meter = provider.meter_with_scope(scope.build());
        let seconds = |name: &'static str, first: f64, count: i32| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(steps(first, 2.0, count)).build()
        };
        let sizes = |name: &'static str| {
            meter.u64_histogram(name).with_unit("{token}").with_boundaries(steps(1.0, 4.0, 14)).build()
        };
        let numbers = |name: &'static str, unit: &'static str| {
            meter.u64_histogram(name).with_unit(unit).with_boundaries(steps(1.0, 2.0, 8)).build()
        };
        let tokens = |name: &'static str| meter.u64_counter(name).with_unit("{token}").build();
        Self {
            request_duration: seconds("gen_ai.client.inference.duration", 0.01, 14),
            first_chunk: seconds("gen_ai.client.inference.time_to_first_chunk", 0.01, 14),
            output_chunk: seconds("gen_ai.client.inference.time_per_output_chunk", 0.01, 14),
            request_input: sizes("gen_ai.client.inference.operation.input_tokens"),
            request_output: sizes("gen_ai.client.inference.operation.output_tokens"),
            tokens: [
                tokens("gen_ai.client.inference.usage.input_tokens"),
                tokens("gen_ai.client.inference.usage.output_tokens"),
                tokens("gen_ai.client.inference.usage.cache_read.input_tokens"),
                tokens("gen_ai.client.inference.usage.cache_write.input_tokens"),
                tokens("gen_ai.client.inference.usage.reasoning.output_tokens"),
            ],
            run_duration: seconds("gen_ai.invoke_agent.duration", 0.1, 13),
            run_requests: numbers("gen_ai.invoke_agent.inference_calls", "{call}"),
            run_calls: numbers("gen_ai.invoke_agent.tool_calls", "{call}"),
            call_duration: seconds("gen_ai.execute_tool.duration", 0.01, 14),
            runs: Mutex::default(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<Arc<str>, MeasuredRun>> {
        // Nothing can panic while the lock is held, so it is never poisoned.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record(&self, metric: &Metric) {
        match metric {
            Metric::Request {
                run_id,
                provider,
                model,
                response_model,
                usage,
                error,
                duration,
                first_piece,
                ..
            } => {
                if let Some(run) = self.runs().get_mut(run_id) {
                    run.requests += 1;
                }
                let mut attributes = request_attributes(provider, model, response_model.as_deref());
                self.record_usage(usage, &attributes);
                if let Some(first) = first_piece {
                    self.first_chunk.record(first.as_secs_f64(), &attributes);
                }
                attributes.extend(error.map(|error| KeyValue::new("error.type", error)));
                self.request_duration.record(duration.as_secs_f64(), &attributes);
            }
            Metric::ToolCall { run_id, tool, outcome, code, ran, duration, .. } => {
                if !ran {
                    return;
                }
                if let Some(run) = self.runs().get_mut(run_id) {
                    run.calls += 1;
                }
                // The tool ran, so the tool exists: a name that the model invented never becomes a value of the attribute.
                let mut attributes = vec![
                    KeyValue::new("gen_ai.operation.name", "execute_tool"),
                    KeyValue::new("gen_ai.tool.name", tool.clone()),
                ];
                if *outcome != OutcomeKind::Completed {
                    let kind = code.clone().unwrap_or_else(|| outcome.as_str().to_owned());
                    attributes.push(KeyValue::new("error.type", kind));
                }
                self.call_duration.record(duration.as_secs_f64(), &attributes);
            }
        }
    }

    pub(super) fn record_chunk(&self, reply: &AssistantMessage, took: Duration) {
        let attributes = request_attributes(&reply.provider, &reply.model, reply.response_model.as_deref());
        self.output_chunk.record(took.as_secs_f64(), &attributes);
    }

    fn record_usage(&self, usage: &Usage, attributes: &[KeyValue]) {
        if usage.input == 0 && usage.output == 0 {
            return;
        }
        self.request_input.record(usage.input, attributes);
        self.request_output.record(usage.output, attributes);
        let ModalityTokens { input, output, cache_read } = ModalityTokens::of(usage);
        let counts = [
            (usage.input, input),
            (usage.output, output),
            (usage.cache_read, cache_read),
            (usage.cache_write, [0; 3]),
            (usage.reasoning, [0; 3]),
        ];
        for (counter, (count, parts)) in self.tokens.iter().zip(counts) {
            for (modality, count) in divided(count, parts) {
                let modality = KeyValue::new("gen_ai.token.modality", modality);
                counter.add(count, &[attributes, &[modality]].concat());
            }
        }
    }

    /// Measures runs from their start to their end. Events of sub-agents are ignored. A suspended run is not measured, because its duration
    /// would include the time in which it waited.
    pub(super) fn record_event(&self, event: &Event) {
        if !event.is_own() {
            return;
        }
        match &event.kind {
            EventKind::AgentStart => {
                let mut runs = self.runs();
                if runs.len() < MAX_RUNS {
                    let run = MeasuredRun { started: Instant::now(), requests: 0, calls: 0 };
                    runs.insert(event.run_id.clone(), run);
                }
            }
            EventKind::RunSuspended { .. } => {
                self.runs().remove(&event.run_id);
            }
            EventKind::AgentEnd { stop, .. } => {
                let Some(run) = self.runs().remove(&event.run_id) else { return };
                let mut attributes = vec![KeyValue::new("gen_ai.operation.name", "invoke_agent")];
                self.run_requests.record(run.requests, &attributes);
                self.run_calls.record(run.calls, &attributes);
                if !matches!(stop.as_str(), "completed" | "terminated") {
                    attributes.push(KeyValue::new("error.type", stop.as_str()));
                }
                self.run_duration.record(run.started.elapsed().as_secs_f64(), &attributes);
            }
            _ => {}
        }
    }
}

fn request_attributes(provider: &str, model: &str, response_model: Option<&str>) -> Vec<KeyValue> {
    let info = ModelInfo::new(provider, "", model);
    let provider = provider_name(&info);
    let mut attributes = vec![
        KeyValue::new("gen_ai.operation.name", operation_name(provider)),
        KeyValue::new("gen_ai.provider.name", provider.to_owned()),
        KeyValue::new("gen_ai.request.model", model.to_owned()),
    ];
    attributes.extend(response_model.map(|model| KeyValue::new("gen_ai.response.model", model.to_owned())));
    attributes
}
