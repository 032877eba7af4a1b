//! Task: add a provider that the library does not know.
//!
//! ```sh
//! cargo run --example custom_provider --features http     # a local server takes the provider's place: no key, no network
//! ```
//!
//! A provider is a `Protocol`, a pure function that encodes requests, and a `Decoder` that decodes replies. The library does retries,
//! timeouts, cancellation, keys and event streams. (A server that is compatible with OpenAI, Anthropic or Gemini needs none of this, only a
//! `ProviderEntry` with its address. A model that runs in this process is an `impl Model` of a few lines.)
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::message::{Message, StopReason};
use agent::model::{ModelError, ModelEvent, ModelInfo, ModelRequest};
use agent::provider::sse::SseEvent;
use agent::provider::{Catalogue, Decoder, HttpRequest, Protocol, ProviderEntry};
use agent::{Assistant, Value, json, tool, tools};
use agent_examples::loopback::Loopback;
use std::error::Error;

/// The protocol of Acme: lines in, events `say` and `call` out.
#[derive(Debug)]
struct Acme;

impl Protocol for Acme {
    fn api(&self) -> &'static str {
        "acme-lines"
    }

    fn base_url(&self) -> &'static str {
        "https://api.acme.example"
    }

    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        let line = |message: &Message| json!({"who": message.role(), "text": message.text()});
        let lines: Vec<Value> = request.messages.iter().map(|message| line(message)).collect();
        let tools = request.tools.iter().map(|tool| json!({"name": tool.name(), "takes": tool.parameters()}));
        let body = json!({"model": model.model, "lines": lines, "tools": tools.collect::<Vec<_>>()});
        Ok(HttpRequest::post("/v1/talk", body))
    }

    fn decoder(&self, _: &ModelInfo) -> Box<dyn Decoder> {
        Box::new(Lines::default())
    }
}

#[derive(Default)]
struct Lines {
    parts: usize,
    is_over: bool,
}

impl Decoder for Lines {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let content_index = self.parts;
        match event.event {
            "say" => out.push(ModelEvent::TextDelta { content_index, delta: event.data.to_owned() }),
            "call" => {
                let (name, arguments) = event.data.split_once(' ').unwrap_or((event.data, ""));
                out.push(ModelEvent::ToolCallStart {
                    content_index,
                    id: String::new(),
                    name: name.to_owned(),
                });
                out.push(ModelEvent::ToolCallDelta { content_index, delta: arguments.to_owned() });
            }
            "end" => {
                out.push(ModelEvent::Stop { reason: StopReason::Stop, detail: None, raw: None });
                self.is_over = true;
            }
            _ => return Ok(()), // what comes some day is no error
        }
        self.parts += 1;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.is_over
    }
}

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let called = "event: say\ndata: Let me see.\n\nevent: call\ndata: add {\"a\": 40, \"b\": \"2\"}\n\nevent: end\ndata: .\n\n";
    let server = Loopback::new(
        "text/event-stream",
        [called, "event: say\ndata: It is 42.\n\nevent: end\ndata: .\n\n"],
    )?;
    let entry = ProviderEntry::new("acme", Acme).with_base_url(server.url()).with_key("secret");
    let model = Catalogue::default().with_provider(entry).model("acme/large")?;
    let assistant = Assistant::builder(model).tools(tools![add]).build()?;
    println!("{}", assistant.prompt("What is 40 plus 2?").await?.text());
    Ok(())
}
