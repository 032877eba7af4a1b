//! A provider that this library does not know: one implementation of `Protocol`, one row in a catalogue, and everything else is
//! there.

use agent::message::{Content, Message, StopReason};
use agent::model::{
    Model as _, ModelError, ModelErrorKind as K, ModelEvent, ModelInfo, ModelRequest, StepCx,
};
use agent::provider::sse::SseEvent;
use agent::provider::{Catalogue, Decoder, HttpRequest, Protocol, ProviderEntry};
use agent::schema::Dialect;
use agent::{Assistant, json, tool, tools};

use crate::provider_support::*;

/// The protocol of a provider that speaks in lines: `say`, `call`, `bye`.
#[derive(Debug)]
struct Lines;

impl Protocol for Lines {
    fn api(&self) -> &'static str {
        "lines"
    }

    fn base_url(&self) -> &'static str {
        "https://lines.example"
    }

    fn encode(&self, model: &ModelInfo, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        let said = request.messages.iter().map(|message| match &**message {
            Message::ToolResult(result) => format!("result {}: {}", result.call_id, result.text()),
            message => format!("said: {}", message.text()),
        });
        let tools: Vec<&str> = request.tools.iter().map(agent::ToolDefinition::name).collect();
        let body = json!({"model": model.model, "lines": said.collect::<Vec<_>>(), "tools": tools});
        Ok(HttpRequest::post("/talk", body))
    }

    fn decoder(&self, _: &ModelInfo) -> Box<dyn Decoder> {
        Box::new(LinesDecoder::default())
    }

    fn strict_dialect(&self) -> Dialect {
        Dialect::Plain
    }

    fn error(&self, status: u16, _headers: &[(String, String)], body: &[u8]) -> ModelError {
        let words = String::from_utf8_lossy(body).into_owned();
        ModelError::new(K::Overloaded, words).with_status(status)
    }

    fn auth(&self, key: &str) -> (&'static str, String) {
        ("x-lines-key", key.to_owned())
    }
}

#[derive(Default)]
struct LinesDecoder {
    parts: usize,
    is_over: bool,
}

impl Decoder for LinesDecoder {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let content_index = self.parts;
        match event.event {
            "say" => out.push(ModelEvent::TextDelta { content_index, delta: event.data.to_owned() }),
            "call" => {
                let (name, args) = event.data.split_once(' ').unwrap_or((event.data, ""));
                let (id, name) = (String::new(), name.to_owned());
                out.push(ModelEvent::ToolCallStart { content_index, id, name });
                out.push(ModelEvent::ToolCallDelta { content_index, delta: args.to_owned() });
            }
            "bye" => self.is_over = true,
            _ => return Ok(()),
        }
        self.parts += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !self.is_over {
            return Err(ModelError::protocol("no `bye`"));
        }
        out.push(ModelEvent::Stop { reason: StopReason::Stop, detail: None, raw: None });
        Ok(())
    }

    fn abandon(&mut self, _: &mut Vec<ModelEvent>) {}

    fn has_ended(&self) -> bool {
        self.is_over
    }

    fn is_complete(&self) -> bool {
        self.is_over
    }

    fn body(&mut self, _: &[u8], _: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        Err(ModelError::protocol("a body is no stream"))
    }
}

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::test]
async fn a_provider_is_one_protocol_and_one_row() {
    let called = "event: say\ndata: I add.\n\nevent: call\ndata: add {\"a\": 2, \"b\": \"3\"}\n\nevent: bye\ndata: .\n\n";
    let said = "event: say\ndata: It is 5.\n\nevent: new\ndata: x\n\nevent: bye\ndata: .\n\n";
    let server = Server::new([
        answer(503, &["retry-after-ms: 1"], "busy"),
        answer(200, &[], called),
        answer(200, &[], said),
    ])
    .await;
    let row = ProviderEntry::new("lines", Lines).with_base_url(&server.url).with_key("sk-secret-key");
    let catalogue = Catalogue::default().with_provider(row).with_options(quick());
    let model = catalogue.model("lines/one").unwrap();
    let assistant = Assistant::builder(model).tools(tools![add]).build().unwrap();
    assert_eq!(assistant.prompt("What is 2 and 3?").await.unwrap().text(), "It is 5.");
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "tried again, then asked with the result");
    assert!(requests[0].contains("POST /talk") && requests[0].contains("x-lines-key: sk-secret-key"));
    assert!(requests[2].contains("\"result call_2: 5\""), "{}", requests[2]);

    // What came before the connection broke is kept.
    let cut = vec![head(None), send("event: say\ndata: I ad\n\nevent: call\ndata: add {\"a\"")];
    let server = Server::new([cut]).await;
    let row = ProviderEntry::new("lines", Lines).with_base_url(&server.url).without_key();
    let model = Catalogue::empty().with_provider(row).with_options(quick()).model("lines/one").unwrap();
    let mut stream = model.stream(&StepCx::new(), &hi());
    while stream.next().await.is_some() {}
    let partial = stream.into_partial();
    assert!(
        matches!(&partial.content[..], [part] if matches!(&part.content, Content::Text(text) if text == "I ad"))
    );
}
