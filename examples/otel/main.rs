//! Exports the trace of a run to a collector, by OTLP over HTTP.
//!
//! ```sh
//! cargo run -p agent-examples --example otel --features otel -- http://localhost:4318
//! ```
//!
//! The library emits `tracing` spans and events, named by the OpenTelemetry conventions for generative AI. [`exporting_to`] and
//! [`spans`] are all that is needed to export them; the rest of the application does not change.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the command line")]

#[cfg(test)]
mod measured;
#[cfg(test)]
mod tests;

use agent::model::{ModelInfo, reply};
use agent::{Assistant, ScriptedModel, tool, tools};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, StringValue};
use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

/// Where the usual collectors listen.
const USUAL: &str = "http://localhost:4318";

/// The attributes that are lists. Fields of `tracing` cannot be, so the library records them as JSON.
const LISTS: [&str; 2] = ["gen_ai.request.stop_sequences", "gen_ai.response.finish_reasons"];

/// An export of spans: the provider of their tracer, and the first failure.
struct Export {
    provider: SdkTracerProvider,
    failure: Arc<Mutex<Option<String>>>,
}

/// Sends spans to the collector at this address, in batches, on a thread of its own.
fn exporting_to(collector: &str) -> Result<Export, Box<dyn Error>> {
    let inner = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(format!("{}/v1/traces", collector.trim_end_matches('/')))
        .build()?;
    let failure = Arc::default();
    let exporter = Exporter { inner, failure: Arc::clone(&failure) };
    let service = Resource::builder().with_service_name("hotel-desk").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(service).build();
    Ok(Export { provider, failure })
}

impl Export {
    /// Sends what is left. Fails if anything could not be sent: `shutdown` itself does not report that.
    fn finish(self) -> Result<(), Box<dyn Error>> {
        self.provider.shutdown()?;
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), |failure| Err(failure.into()))
    }
}

/// Exports lists as lists, and remembers the first failure.
#[derive(Debug)]
struct Exporter {
    inner: opentelemetry_otlp::SpanExporter,
    failure: Arc<Mutex<Option<String>>>,
}

impl SpanExporter for Exporter {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().flat_map(|span| &mut span.attributes).for_each(to_list);
        let sent = self.inner.export(batch).await;
        if let Err(error) = &sent {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| error.to_string());
        }
        sent
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.inner.shutdown()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

fn to_list(attribute: &mut KeyValue) {
    if LISTS.contains(&attribute.key.as_str())
        && let Ok(list) = serde_json::from_str::<Vec<String>>(&attribute.value.as_str())
    {
        let list: Vec<StringValue> = list.into_iter().map(Into::into).collect();
        attribute.value = opentelemetry::Value::Array(list.into());
    }
}

/// Makes spans of what the library tells. What its HTTP client tells stays out.
fn spans<S>(provider: &SdkTracerProvider) -> impl tracing_subscriber::Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let ours = Targets::new().with_target("agent", LevelFilter::INFO);
    tracing_opentelemetry::layer().with_tracer(provider.tracer("agent")).with_filter(ours)
}

/// Books a room.
#[tool(inline)]
fn book_room(
    /// Name of the hotel.
    hotel: String,
    /// How many nights.
    #[arg(range(1..=30))]
    nights: u32,
) -> String {
    format!("{nights} nights at the {hotel}, on card 4111-1111")
}

/// A run with a call that is refused, and one that is mended.
async fn book() -> Result<String, Box<dyn Error>> {
    let model = ScriptedModel::new([
        reply().tool_call("book_room", r#"{"hotel": "Astoria", "night": 2}"#),
        reply().tool_call("book_room", r#"{"hotel": "Astoria", "nights": "2"}"#),
        reply().text("Two nights at the Astoria, on card 4111-1111."),
    ]);
    let model = model
        .with_info(ModelInfo::new("acme", "acme-chat", "acme-large").with_server("api.acme.example", 443));
    let assistant = Assistant::builder(model).tools(tools![book_room]).build()?;
    let prompt = assistant.prompt("Two nights at the Astoria, my password is tulip.").session_id("desk-7");
    Ok(prompt.await?.text())
}

/// Plays the run, and sends its trace. Returns the answer.
fn traced(collector: &str) -> Result<String, Box<dyn Error>> {
    let export = exporting_to(collector)?;
    let subscriber = tracing_subscriber::registry().with(spans(&export.provider));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = {
        let _guard = subscriber.set_default();
        runtime.block_on(book())?
    };
    let failed = |error| format!("no trace arrived at {collector}: {error}; is a collector listening there?");
    export.finish().map_err(failed)?;
    Ok(answer)
}

fn main() -> ExitCode {
    let collector = std::env::args().nth(1).unwrap_or_else(|| USUAL.to_owned());
    match traced(&collector) {
        Ok(answer) => {
            println!("{answer}\nThe trace was sent to {collector}.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
