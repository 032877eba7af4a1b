//! Secret arguments are in no cassette, and the recorded run is played all the same.

use std::path::PathBuf;

use agent::ScriptedModel;
use agent::message::Message;
use agent::model::{Model, reply};
use agent::testing::{Cassette, EventLog};
use agent::{Assistant, Value, json, tool, tools};

use crate::provider_support::{Server, answer};

const PASSWORD: &str = "hunter2 \"SECRET\"";
const PIN: u32 = 4711;

/// Signs in.
#[tool(inline)]
fn log_in(
    user: String,
    #[arg(secret, alias = "pass", length(4..))] password: String,
    #[arg(secret, range(1000..=9999))] pin: Option<u32>,
) -> String {
    format!("{user} signed in as {password}, {pin:?}")
}

/// Looks something up.
#[tool(inline)]
fn look(what: String) -> String {
    format!("seen {what}")
}

/// Finds an account.
#[tool(inline)]
fn find(name: String) -> Value {
    json!({"id": name, "accounts": [{"code": name}]})
}

/// A file that is gone in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("agent-tests-{}-{name}.json", std::process::id())))
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }

    fn play(&self) -> Cassette {
        Cassette::play(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn assistant(model: impl Model + 'static) -> (Assistant, EventLog) {
    let log = EventLog::new();
    let built = Assistant::builder(model).tools(tools![look, log_in, find]).on_event(log.listener()).build();
    (built.unwrap(), log)
}

fn assert_hidden(text: &str, name: &str) {
    let escaped = json!(PASSWORD).to_string();
    for secret in ["hunter2", "SECRET", PASSWORD, &escaped, "4711", "471"] {
        assert!(!text.contains(secret), "{name}: `{secret}` in {text}");
    }
}

/// How the calls ended, as the run has it.
fn outcomes(assistant: &Assistant) -> Vec<(String, Option<String>)> {
    let result = |message: &Message| {
        message.as_tool_result().map(|result| (result.outcome.as_str().to_owned(), result.code.clone()))
    };
    assistant.messages().iter().filter_map(result).collect()
}

const PROMPT: &str = "Sign ann in with hunter2 \"SECRET\" and pin 4711.";

/// Records a run and plays it.
async fn recorded_and_played(name: &str, prompt: &str, model: impl Model + 'static) -> String {
    let file = File::new(name);
    let (recording, _) = assistant(Cassette::record(&file.0, model));
    assert_eq!(recording.prompt(prompt).await.unwrap().text(), "Done.", "{name}");
    let text = file.text();
    assert_hidden(&text, name);
    let cassette = file.play();
    let (played, _) = assistant(cassette.clone());
    let outcome = played.prompt(prompt).await;
    assert_eq!(outcome.unwrap_or_else(|error| panic!("{name}: {error}\n{text}")).text(), "Done.");
    cassette.assert_played();
    assert_eq!(outcomes(&played), outcomes(&recording), "{name}");
    let replayed: Vec<_> = played.messages().iter().skip(1).cloned().collect();
    assert_hidden(&serde_json::to_string(&replayed).unwrap(), name);
    text
}

/// A model that calls the tool, and repeats these texts where nobody marks them.
fn scripted(tool: &str, args: &str, repeated: &str) -> ScriptedModel {
    ScriptedModel::new([
        reply().text("I sign ann in.").tool_call("look", r#"{"what": "ann"}"#).tool_call(tool, args),
        reply().text(format!("Again: {repeated}")).tool_call("look", json!({"what": repeated}).to_string()),
        reply().text("Done."),
    ])
    .with_chunk_size(3)
}

#[tokio::test]
async fn secrets_of_calls_are_not_in_the_file() {
    let both = json!({"user": "ann", "password": PASSWORD, "pin": PIN}).to_string();
    let cases: [(&str, &str, Value); 13] = [
        ("whole", "log_in", json!(both)),
        ("coerced", "log_in", json!({"user": "ann", "password": PASSWORD, "pin": "4711"}).to_string().into()),
        ("alias", "log_in", json!({"user": "ann", "pass": PASSWORD}).to_string().into()),
        ("misspelled_tool", "log_inn", json!(both)),
        ("misspelled_key", "log_in", json!({"user": "ann", "pasword": PASSWORD}).to_string().into()),
        ("wrong_type", "log_in", json!({"user": "ann", "password": [PASSWORD]}).to_string().into()),
        ("number_for_text", "log_in", json!({"user": "ann", "password": PIN}).to_string().into()),
        (
            "out_of_range",
            "log_in",
            json!({"user": "ann", "password": PASSWORD, "pin": 47111}).to_string().into(),
        ),
        ("cut", "log_in", both[..both.len() - 9].into()),
        ("wrapped", "log_in", json!({"arguments": {"user": "ann", "password": PASSWORD}}).to_string().into()),
        ("json_text", "log_in", json!(both).to_string().into()),
        ("in_another", "log_in", json!({"user": both, "password": PASSWORD}).to_string().into()),
        ("missing", "log_in", json!({"password": PASSWORD}).to_string().into()),
    ];
    for (name, tool, args) in cases {
        let args = args.as_str().unwrap();
        // Of arguments that cannot be read it is not known what else repeats them.
        let (prompt, repeated) = match name {
            "cut" | "out_of_range" => ("Sign ann in.", "it"),
            "number_for_text" => ("Sign ann in with pin 4711.", "4711"),
            _ if args.contains("4711") => (PROMPT, "hunter2 \"SECRET\" and 4711"),
            _ => ("Sign ann in with hunter2 \"SECRET\".", PASSWORD),
        };
        recorded_and_played(name, prompt, scripted(tool, args, repeated)).await;
    }
}

#[tokio::test]
async fn values_that_stand_for_secrets_are_of_their_kind() {
    let call = json!({"user": "ann", "password": PASSWORD, "pin": PIN}).to_string();
    let text = recorded_and_played("kinds", PROMPT, scripted("log_in", &call, PASSWORD)).await;
    let file: Value = serde_json::from_str(&text).unwrap();
    let args = &file["exchanges"][0]["reply"]["content"][2]["args"];
    assert_eq!((&args["user"], &args["password"]), (&json!("ann"), &json!("[secret]")));
    assert!((1000..=9999).contains(&args["pin"].as_u64().unwrap()), "{args}");
    assert!(text.contains("Sign ann in with [secret] and pin [secret]."), "{text}");
}

#[tokio::test]
async fn keys_of_messages_hide_no_secrets_in_arguments_and_results() {
    let call = json!({"user": "ann", "password": PASSWORD}).to_string();
    let model = ScriptedModel::new([
        reply().tool_call("log_in", call),
        reply().tool_call("find", json!({"name": PASSWORD}).to_string()),
        reply().text("Done."),
    ]);
    recorded_and_played("keys", "Sign ann in.", model).await;
}

#[tokio::test]
async fn what_else_changed_is_still_a_difference() {
    let file = File::new("changed");
    let call = json!({"user": "ann", "password": PASSWORD, "pin": PIN}).to_string();
    let (recording, _) = assistant(Cassette::record(&file.0, scripted("log_in", &call, PASSWORD)));
    recording.prompt(PROMPT).await.unwrap();
    let (changed, _) = assistant(file.play());
    let error =
        changed.prompt("Sign bob in with hunter2 \"SECRET\" and pin 4711.").await.unwrap_err().to_string();
    assert!(error.contains("number 1 is the nearest"), "{error}");
    let other = "Sign ann in with the other words and pin 4711.";
    let (other_secret, _) = assistant(file.play());
    assert_eq!(
        other_secret.prompt(other).await.unwrap().text(),
        "Done.",
        "another secret is the same prompt"
    );
}

/// Server-sent events of one reply that calls `log_in`, its arguments in pieces, in each protocol, and of one that says `Done.`.
fn bodies() -> [(&'static str, String, String); 4] {
    let args = json!({"user": "ann", "password": PASSWORD, "pin": PIN}).to_string();
    let pieces: Vec<String> =
        args.chars().collect::<Vec<_>>().chunks(4).map(|piece| piece.iter().collect()).collect();
    let events = |events: Vec<Value>| {
        events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat()
    };
    let named = |events: Vec<Value>| {
        events
            .iter()
            .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
            .collect::<Vec<_>>()
            .concat()
    };
    let delta = |delta: Value, end: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let mut chat = vec![delta(
        json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "call_9", "type": "function", "function": {"name": "log_in", "arguments": ""}}]}),
        Value::Null,
    )];
    chat.extend(pieces.iter().map(|piece| {
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}), Value::Null)
    }));
    chat.push(delta(json!({}), json!("tool_calls")));
    let chat_done = vec![delta(json!({"role": "assistant", "content": "Done."}), json!("stop"))];

    let start = json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let stop = |why: &str| {
        [
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": why}, "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ]
    };
    let mut messages = vec![
        start.clone(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "toolu_9", "name": "log_in", "input": {}}}),
    ];
    messages.extend(pieces.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}})
    }));
    messages.extend(stop("tool_use"));
    let mut messages_done = vec![
        start,
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}}),
    ];
    messages_done.extend(stop("end_turn"));

    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": "log_in", "arguments": args, "status": "completed"});
    let mut started = call.clone();
    started["arguments"] = "".into();
    let mut responses = vec![
        json!({"type": "response.created", "response": {"id": "r1", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": started}),
    ];
    responses.extend(pieces.iter().map(|piece| {
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": piece})
    }));
    responses.push(json!({"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1", "arguments": args}));
    responses.push(json!({"type": "response.output_item.done", "output_index": 0, "item": call}));
    responses.push(json!({"type": "response.completed", "response": {"id": "r1", "status": "completed", "output": [call]}}));
    let said = json!({"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]});
    let responses_done = vec![
        json!({"type": "response.created", "response": {"id": "r2", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m1", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m1", "delta": "Done."}),
        json!({"type": "response.completed", "response": {"id": "r2", "status": "completed", "output": [said]}}),
    ];

    let part = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let value: Value = serde_json::from_str(&args).unwrap();
    let end = json!({"candidates": [{"finishReason": "STOP"}]});
    let gemini = vec![
        part(json!({"functionCall": {"name": "log_in", "args": value}, "thoughtSignature": "c2ln"})),
        end.clone(),
    ];
    let gemini_done = vec![part(json!({"text": "Done."})), end];
    [
        ("openai/gpt-4o", events(chat) + "data: [DONE]\n\n", events(chat_done) + "data: [DONE]\n\n"),
        ("openai-responses/gpt-5", events(responses), events(responses_done)),
        ("anthropic/claude-test", named(messages), named(messages_done)),
        ("gemini/gemini-3-flash", events(gemini), events(gemini_done)),
    ]
}

#[tokio::test]
async fn streamed_calls_of_every_protocol_leave_no_secret() {
    for (name, call, done) in bodies() {
        let bodies = [call, done].map(|body| answer(200, &["content-type: text/event-stream"], body));
        let server = Server::new(bodies).await;
        let url = if name.starts_with("openai") { format!("{}/v1", server.url) } else { server.url.clone() };
        let model = agent::provider::http::HttpModel::builder(name).base_url(url).key("sk-secret-key");
        let model = model.options(crate::provider_support::quick()).build().unwrap();
        recorded_and_played(&name.replace('/', "-"), PROMPT, model).await;
        assert!(server.requests()[1].contains("4711"), "{name}: the provider gets what it sent");
    }
}
