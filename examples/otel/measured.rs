//! The measurements of a run, as an SDK exports them.

use agent::message::Usage;
use agent::model::{Fallback, ModelError, ModelErrorKind, ModelInfo, reply};
use agent::{Assistant, ScriptedModel, tool, tools};
use opentelemetry::KeyValue;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// By name and attributes: how often something was recorded, and the sum.
type Measured = BTreeMap<String, (u64, f64)>;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Measured>>);

impl Kept {
    fn keep<'a>(&self, name: &str, attributes: impl Iterator<Item = &'a KeyValue>, count: u64, sum: f64) {
        let mut shown: Vec<String> =
            attributes.map(|attribute| format!("{}={}", attribute.key, attribute.value)).collect();
        shown.sort();
        self.0.lock().unwrap().insert(format!("{name} {}", shown.join(" ")), (count, sum));
    }
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
impl PushMetricExporter for Kept {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        for scope in metrics.scope_metrics() {
            self.keep(scope.scope().schema_url().unwrap_or_default(), [].into_iter(), 1, 0.0);
        }
        for metric in metrics.scope_metrics().flat_map(ScopeMetrics::metrics) {
            match metric.data() {
                AggregatedMetrics::F64(MetricData::Histogram(data)) => data.data_points().for_each(|point| {
                    self.keep(metric.name(), point.attributes(), point.count(), point.sum());
                }),
                AggregatedMetrics::U64(MetricData::Histogram(data)) => data.data_points().for_each(|point| {
                    self.keep(metric.name(), point.attributes(), point.count(), point.sum() as f64);
                }),
                AggregatedMetrics::U64(MetricData::Sum(data)) => data
                    .data_points()
                    .for_each(|point| self.keep(metric.name(), point.attributes(), 1, point.value() as f64)),
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// Finds a room.
#[tool]
fn find(nights: u8) -> Result<String, String> {
    if nights > 3 { Err("there is none".into()) } else { Ok("room 7".into()) }
}

fn provider_of(kept: &Kept) -> SdkMeterProvider {
    let reader = PeriodicReader::builder(kept.clone()).with_interval(Duration::from_secs(3_600)).build();
    SdkMeterProvider::builder().with_reader(reader).build()
}

#[tokio::test]
async fn times_between_chunks_and_attempts_of_a_fallback_are_measured() {
    let kept = Kept::default();
    let provider = provider_of(&kept);
    let busy = ModelError::new(ModelErrorKind::Overloaded, "tulip");
    let first = ScriptedModel::from_fn(move |_| busy.clone().into());
    let first = first.with_info(ModelInfo::new("gemini", "gemini", "gemini-3-pro"));
    let second = ScriptedModel::new([reply().thinking("Hm.").text("Room 7.")]).with_chunk_size(3);
    let second = second.with_info(ModelInfo::new("anthropic", "anthropic-messages", "claude-sonnet-5"));
    let assistant = Assistant::builder(Fallback::new([first, second])).meter(&provider).build().unwrap();
    assistant.prompt("A room.").await.unwrap();
    provider.force_flush().unwrap();

    let measured = kept.0.lock().unwrap().clone();
    let count = |name: &str| measured.get(name).unwrap_or_else(|| panic!("{name} of {measured:#?}")).0;
    let answered =
        "gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=claude-sonnet-5";
    let failed = "error.type=overloaded gen_ai.operation.name=generate_content gen_ai.provider.name=gcp.gemini \
        gen_ai.request.model=gemini-3-pro";
    // `Hm.`, `Roo`, `m 7` and `.` are four chunks.
    assert_eq!(count(&format!("gen_ai.client.inference.time_per_output_chunk {answered}")), 3);
    assert_eq!(count(&format!("gen_ai.client.inference.time_to_first_chunk {answered}")), 1);
    assert_eq!(count(&format!("gen_ai.client.inference.duration {answered}")), 1);
    assert_eq!(count(&format!("gen_ai.client.inference.duration {failed}")), 1);
}

#[tokio::test]
async fn requests_calls_and_runs_are_measured_by_the_names_of_the_conventions() {
    let kept = Kept::default();
    let provider = provider_of(&kept);
    let mut usage = Usage::new(100, 20);
    (usage.cache_read, usage.reasoning) = (60, 5);
    let model = ScriptedModel::new([
        reply()
            .tool_call("find", r#"{"nights": 2}"#)
            .tool_call("find", r#"{"nights": 5}"#)
            .tool_call("find", r#"{"nights": "tulip"}"#)
            .tool_call("tulip", "{}")
            .usage(usage),
        reply().text("Room 7."),
        reply().error(ModelError::new(ModelErrorKind::Overloaded, "tulip")),
    ]);
    let model = model.with_info(ModelInfo::new("openai-responses", "openai-responses", "gpt-5.4"));
    let assistant = Assistant::builder(model).tools(tools![find]).meter(&provider).build().unwrap();
    assistant.prompt("A room for the tulip.").await.unwrap();
    assistant.prompt("And tomorrow?").await.unwrap_err();
    provider.force_flush().unwrap();

    let measured = kept.0.lock().unwrap().clone();
    let request = "gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=gpt-5.4";
    let find = |name: &str| measured.iter().find(|(key, _)| **key == name).map(|(_, values)| *values);
    let count = |name: &str| find(name).unwrap_or_else(|| panic!("{name} of {measured:#?}")).0;
    let sum = |name: &str| format!("{}", find(name).unwrap_or_else(|| panic!("{name} of {measured:#?}")).1);
    assert_eq!(count(&format!("gen_ai.client.inference.duration {request}")), 2);
    assert_eq!(count(&format!("gen_ai.client.inference.duration error.type=overloaded {request}")), 1);
    assert_eq!(sum(&format!("gen_ai.client.inference.operation.input_tokens {request}")), "100");
    assert_eq!(sum(&format!("gen_ai.client.inference.operation.output_tokens {request}")), "20");
    let with_modality = format!("{request} gen_ai.token.modality=unknown");
    for (name, tokens) in
        [("input", "100"), ("output", "20"), ("cache_read.input", "60"), ("reasoning.output", "5")]
    {
        assert_eq!(sum(&format!("gen_ai.client.inference.usage.{name}_tokens {with_modality}")), tokens);
    }
    let calls = "gen_ai.operation.name=execute_tool gen_ai.tool.name=find";
    assert_eq!(count(&format!("gen_ai.execute_tool.duration {calls}")), 1);
    assert_eq!(count(&format!("gen_ai.execute_tool.duration error.type=tool_error {calls}")), 1);
    let run = "gen_ai.operation.name=invoke_agent";
    assert_eq!(count(&format!("gen_ai.invoke_agent.duration {run}")), 1);
    assert_eq!(count(&format!("gen_ai.invoke_agent.duration error.type=error {run}")), 1);
    assert_eq!(find(&format!("gen_ai.invoke_agent.inference_calls {run}")), Some((2, 3.0)));
    assert_eq!(find(&format!("gen_ai.invoke_agent.tool_calls {run}")), Some((2, 2.0)));
    assert!(!format!("{measured:?}").contains("tulip"), "only names of closed sets: {measured:#?}");
}

#[tokio::test]
async fn tokens_are_counted_by_modality_where_the_provider_reports_them() {
    let kept = Kept::default();
    let provider = provider_of(&kept);
    let mut usage = Usage::new(100, 20);
    usage.raw = Some(Box::new(serde_json::json!({
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 30}, {"modality": "IMAGE", "tokenCount": 60}],
        "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 20}],
    })));
    let model = ScriptedModel::new([reply().text("Room 7.").usage(usage)]);
    let model = model.with_info(ModelInfo::new("gemini", "gemini", "gemini-3-pro"));
    let assistant = Assistant::builder(model).meter(&provider).build().unwrap();
    assistant.prompt("A room.").await.unwrap();
    provider.force_flush().unwrap();

    let measured = kept.0.lock().unwrap().clone();
    let request = "gen_ai.operation.name=generate_content gen_ai.provider.name=gcp.gemini gen_ai.request.model=gemini-3-pro";
    let tokens = |name: &str, modality: &str| {
        let key =
            format!("gen_ai.client.inference.usage.{name}_tokens {request} gen_ai.token.modality={modality}");
        measured.get(&key).map(|(_, sum)| format!("{sum}"))
    };
    let inputs = ["text", "image", "audio", "unknown"].map(|modality| tokens("input", modality));
    assert_eq!(inputs, [Some("30".into()), Some("60".into()), None, Some("10".into())], "{measured:#?}");
    assert_eq!((tokens("output", "text"), tokens("output", "unknown")), (Some("20".into()), None));
    assert!(
        measured.keys().any(|key| key.starts_with("https://opentelemetry.io/schemas/gen-ai")),
        "{measured:#?}"
    );
}
