//! Exports the trace of a run to a collector, by OTLP over HTTP.
//!
//! ```sh
//! cargo run -p agent-examples --example otel --features otel -- http://localhost:4318
//! ```
//!
//! The library emits `tracing` spans and events, named by the OpenTelemetry conventions for generative AI. [`exporting_to`] and
//! [`spans`] are all that is needed to export them; the rest of the application does not change.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

#[cfg(test)]
mod tests;

use agent::model::{ModelInfo, ScriptedModel, reply};
use agent::{Assistant, tool, tools};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::error::Error;
use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

/// Where the usual collectors listen.
const USUAL: &str = "http://localhost:4318";

/// Sends spans to the collector at this address, in batches, on a thread of its own.
fn exporting_to(collector: &str) -> Result<SdkTracerProvider, Box<dyn Error>> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(format!("{}/v1/traces", collector.trim_end_matches('/')))
        .build()?;
    let service = Resource::builder().with_service_name("hotel-desk").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(service).build())
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
    let model = model.with_info(ModelInfo::new("acme", "acme-chat", "acme-large"));
    let assistant = Assistant::builder(model).tools(tools![book_room]).build()?;
    let prompt = assistant.prompt("Two nights at the Astoria, my password is tulip.").session_id("desk-7");
    Ok(prompt.await?.text())
}

fn main() -> Result<(), Box<dyn Error>> {
    let collector = std::env::args().nth(1).unwrap_or_else(|| USUAL.to_owned());
    let provider = exporting_to(&collector)?;
    tracing_subscriber::registry().with(spans(&provider)).try_init()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}", runtime.block_on(book())?);
    // Sends what is left; an error when the collector cannot be reached.
    provider.shutdown()?;
    println!("The trace is at {collector}.");
    Ok(())
}
