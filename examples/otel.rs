//! Exports the trace of a run to a collector, by OTLP over HTTP.
//!
//! ```sh
//! cargo run -p agent-examples --example otel --features otel -- http://localhost:4318
//! ```
//!
//! The library emits `tracing` spans and events, named by the OpenTelemetry conventions for generative AI. [`exporting_to`] and
//! [`spans`] are all that is needed to export them; the rest of the application does not change.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// A collector that hands on the bodies of what it is sent.
    fn collector() -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, bodies) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if take(stream, &sender).is_err() {
                    return;
                }
            }
        });
        (url, bodies)
    }

    fn take(mut stream: TcpStream, bodies: &Sender<String>) -> Result<(), Box<dyn Error>> {
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let text = String::from_utf8_lossy(&got);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| {
                    line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
                });
                if body.len() >= length.unwrap_or_default() {
                    assert!(head.starts_with("POST /v1/traces "), "{head}");
                    bodies.send(body.to_owned())?;
                    break;
                }
            }
            match stream.read(&mut buffer)? {
                0 => return Err("the request ended early".into()),
                read => got.extend_from_slice(&buffer[..read]),
            }
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        stream.write_all(answer.as_bytes())?;
        Ok(())
    }

    /// What a span or an event says, each value as its text.
    fn attributes(of: &Value) -> BTreeMap<String, String> {
        let all = of["attributes"].as_array().into_iter().flatten();
        let text = |value: &Value| {
            let value =
                value.as_object().and_then(|value| value.values().next()).unwrap_or(&Value::Null).clone();
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        };
        all.map(|one| (one["key"].as_str().unwrap_or_default().to_owned(), text(&one["value"]))).collect()
    }

    #[test]
    fn the_trace_of_a_run_arrives_at_a_collector_with_nothing_secret_in_it() {
        let (url, bodies) = collector();
        let provider = exporting_to(&url).expect("an exporter");
        let hearing = tracing_subscriber::registry().with(spans(&provider)).set_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let answer = runtime.block_on(book()).expect("an answer");
        assert!(answer.contains("Astoria"));
        drop(hearing);
        provider.shutdown().expect("everything is sent");

        let bodies: Vec<String> = bodies.try_iter().collect();
        let text = bodies.concat();
        for secret in ["tulip", "4111", "Astoria"] {
            assert!(!text.contains(secret), "{secret} is in the trace: {text}");
        }
        let mut spans: Vec<Value> = Vec::new();
        for body in &bodies {
            let body: Value = serde_json::from_str(body).expect("JSON");
            let resource = &body["resourceSpans"][0];
            assert_eq!(attributes(&resource["resource"])["service.name"], "hotel-desk");
            for scope in resource["scopeSpans"].as_array().into_iter().flatten() {
                spans.extend(scope["spans"].as_array().into_iter().flatten().cloned());
            }
        }
        let start =
            |span: &Value| span["startTimeUnixNano"].as_str().and_then(|nanos| nanos.parse::<u128>().ok());
        spans.sort_by_key(start);

        // Who is whose child.
        let name = |span: &Value| span["name"].as_str().unwrap_or_default().to_owned();
        let parent = |span: &Value| {
            let of = spans.iter().find(|other| other["spanId"] == span["parentSpanId"]);
            of.map_or_else(|| "nobody".to_owned(), name)
        };
        let tree: Vec<String> =
            spans.iter().map(|span| format!("{} of {}", name(span), parent(span))).collect();
        let wanted = [
            "invoke_agent of nobody",
            "turn 1 of invoke_agent",
            "chat acme-large of turn 1",
            "execute_tool book_room of turn 1",
            "turn 2 of invoke_agent",
            "chat acme-large of turn 2",
            "execute_tool book_room of turn 2",
            "turn 3 of invoke_agent",
            "chat acme-large of turn 3",
        ];
        assert_eq!(tree, wanted);
        assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]), "one trace");

        let says = |at: usize, wanted: &[(&str, &str)]| {
            let said = attributes(&spans[at]);
            for (key, value) in wanted {
                assert_eq!(
                    said.get(*key).map(String::as_str),
                    Some(*value),
                    "{key} of {}: {said:?}",
                    tree[at]
                );
            }
        };
        says(
            0,
            &[
                ("gen_ai.operation.name", "invoke_agent"),
                ("gen_ai.provider.name", "acme"),
                ("gen_ai.request.model", "acme-large"),
                ("gen_ai.conversation.id", "desk-7"),
                ("agent.run.stop", "completed"),
            ],
        );
        says(2, &[("gen_ai.operation.name", "chat"), ("gen_ai.response.finish_reasons", "tool_use")]);
        says(3, &[("gen_ai.tool.name", "book_room"), ("error.type", "invalid_arguments")]);
        says(6, &[("gen_ai.tool.call.id", "call_2"), ("gen_ai.tool.type", "function")]);
        // A client's span is that of the request; what failed is marked.
        assert_eq!((&spans[2]["kind"], &spans[3]["status"]["code"]), (&Value::from(3), &Value::from(2)));

        let events = |at: usize| -> Vec<String> {
            let all = spans[at]["events"].as_array().into_iter().flatten();
            let line = |event: &Value| {
                let said = attributes(event);
                let get = |key: &str| said.get(&format!("agent.argument.{key}")).cloned().unwrap_or_default();
                format!("{} {} {}{}", name(event), get("path"), get("code"), get("rule"))
            };
            all.map(line).collect()
        };
        let mut refused = events(3);
        refused.sort();
        assert_eq!(refused, ["agent.argument.refused /* unknown", "agent.argument.refused /nights missing"]);
        assert_eq!(events(6), ["agent.argument.coerced /nights text_to_integer"]);
    }
}
