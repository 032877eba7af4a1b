//! Cassettes of providers' own adapters: recorded once over loopback, played without anybody to ask.

use std::path::PathBuf;

use agent::message::Message;
use agent::model::Model;
use agent::provider::http::HttpModelBuilder;
use agent::testing::{Cassette, EventLog};
use agent::{Assistant, tool, tools};
use serde_json::Value;

use crate::provider_support::{Server, answer};

/// Doubles a number.
#[tool]
fn double(n: i64) -> i64 {
    n * 2
}

const CHAT_CALL: &str = r#"data: {"id":"c1","model":"gpt-4o-1","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_9","type":"function","function":{"name":"double","arguments":"{\"n\":"}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"21\"}"}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}

data: [DONE]

"#;

const CHAT_TEXT: &str = r#"data: {"id":"c2","model":"gpt-4o-1","choices":[{"index":0,"delta":{"role":"assistant","content":"It is "},"finish_reason":null}]}

data: {"id":"c2","choices":[{"index":0,"delta":{"content":"42."},"finish_reason":"stop"}]}

data: [DONE]

"#;

const MESSAGES_CALL: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","model":"claude-test-1","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Twice 21."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_9","name":"double","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\": \"21\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

"#;

const MESSAGES_TEXT: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_2","model":"claude-test-1","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is 42."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// A file that is gone in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("agent-tests-{}-{name}.json", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An assistant of this model, with what happens in its runs.
fn assistant(model: impl Model + 'static, system: &str) -> (Assistant, EventLog) {
    let log = EventLog::new();
    let builder = Assistant::builder(model).system(system).tools(tools![double]).on_event(log.listener());
    (builder.build().unwrap(), log)
}

const SYSTEM: &str = "Use the tool.";
const EVENTS: [&str; 3] =
    ["end double completed \"42\"", "message assistant \"It is 42.\"", "run ends: completed"];

fn messages(assistant: &Assistant) -> Value {
    serde_json::to_value(assistant.messages()).unwrap()
}

/// Records a run with the adapter, and plays it without a server.
async fn recorded_and_played(
    name: &str,
    bodies: [&str; 2],
    builder: impl FnOnce(&Server) -> HttpModelBuilder,
) {
    let file = File::new(name);
    let server =
        Server::new(bodies.map(|body| answer(200, &["content-type: text/event-stream"], body))).await;
    let real = builder(&server).build().unwrap();
    let (recording, log) = assistant(Cassette::record(&file.0, real), SYSTEM);
    assert_eq!(recording.prompt("Double 21.").await.unwrap().text(), "It is 42.");
    log.assert_sequence(&EVENTS);
    let asked = server.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].contains("sk-secret-key"), "the adapter has a key");

    let text = std::fs::read_to_string(&file.0).unwrap();
    assert!(!text.contains("sk-secret") && !text.contains("127.0.0.1"), "no key, no address: {text}");
    let cassette = Cassette::play(&file.0).unwrap();
    let (played, log) = assistant(cassette.clone(), SYSTEM);
    assert_eq!(played.prompt("Double 21.").await.unwrap().text(), "It is 42.");
    cassette.assert_played();
    log.assert_sequence(&EVENTS);
    assert_eq!(messages(&played), messages(&recording), "down to what only the provider understands");

    // Something in the prompt has changed: the test fails, and says what.
    let (changed, _) = assistant(Cassette::play(&file.0).unwrap(), "Use the tools.");
    let error = changed.prompt("Double 21.").await.unwrap_err().to_string();
    let wanted = "number 1 is the nearest; it differs in\n  /system\n    recorded: \"Use the tool.\"\n    asked:    \"Use the tools.\"\n";
    assert!(error.contains(wanted), "{error}");
    assert_eq!(server.requests().len(), 2, "nobody was asked again");
}

#[tokio::test]
async fn chat_completions_are_recorded_once_and_played() {
    recorded_and_played("chat", [CHAT_CALL, CHAT_TEXT], Server::openai).await;
}

#[tokio::test]
async fn messages_of_anthropic_are_recorded_once_and_played_with_their_signatures() {
    recorded_and_played("anthropic", [MESSAGES_CALL, MESSAGES_TEXT], Server::anthropic).await;
}

#[tokio::test]
async fn what_a_tool_answers_is_part_of_what_was_recorded() {
    /// Doubles a number.
    #[tool(type = Wrong)]
    fn double(n: i64) -> i64 {
        n + n + 1
    }

    let file = File::new("result");
    let bodies = [CHAT_CALL, CHAT_TEXT].map(|body| answer(200, &["content-type: text/event-stream"], body));
    let server = Server::new(bodies).await;
    let (recording, _) = assistant(Cassette::record(&file.0, server.openai().build().unwrap()), SYSTEM);
    recording.prompt("Double 21.").await.unwrap();

    let cassette = Cassette::play(&file.0).unwrap();
    let changed = Assistant::builder(cassette).system(SYSTEM).tools(tools![Wrong]).build().unwrap();
    let error = changed.prompt("Double 21.").await.unwrap_err().to_string();
    assert!(error.contains("number 2 is the nearest"), "{error}");
    assert!(error.contains("recorded: \"42\"\n    asked:    \"43\""), "{error}");
    assert!(matches!(changed.messages().get(2), Some(Message::ToolResult(result)) if result.text() == "43"));
}
