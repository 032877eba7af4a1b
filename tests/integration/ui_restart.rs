//! Threads whose server is started again, logs that are too long, tools that a page declares.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::CustomMessage;
use agent::model::{ScriptedReply, reply};
use agent::store::MemoryStore;
use agent::ui::{UiOptions, UiProtocol, UiRequest, UiServer};
use agent::{Assistant, ToolContext, json, tool, tools};
use proptest::prelude::*;
use serde_json::Value;

use crate::ui_readers::{AgUiReader, AiSdkReader};
use crate::ui_server::{ag_messages, ai_message, all, assert_rejected, chunks, runs, says, until};

/// Sends money.
#[tool(approval = "always")]
fn send(amount: u64, #[arg(secret)] pin: Option<String>) -> String {
    let _ = pin;
    format!("{amount} sent")
}

/// Counts its calls.
#[tool]
fn count(calls: &AtomicUsize) -> String {
    format!("call {}", calls.fetch_add(1, Ordering::SeqCst) + 1)
}

/// Returns many words.
#[tool]
fn words(n: usize) -> String {
    "word ".repeat(n)
}

/// Waits until it is cancelled.
#[tool]
async fn wait(cx: &ToolContext) {
    cx.cancelled().await;
}

/// A reply to each number of results since the message of the user.
fn model(answer: impl Fn(usize) -> ScriptedReply + Send + 'static) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| {
        let since = request.messages.iter().rev().take_while(|message| message.role() != "user");
        answer(since.filter(|message| message.role() == "tool_result").count())
    })
}

/// A server of its own on a store, as after a restart.
fn server(store: &MemoryStore, calls: &Arc<AtomicUsize>, model: &ScriptedModel) -> UiServer {
    let builder = {
        let (store, calls, model) = (store.clone(), calls.clone(), model.clone());
        move || {
            let builder = Assistant::builder(model.clone()).tools(tools![send, count, words, wait]);
            builder.shared_state(calls.clone()).store(store.clone())
        }
    };
    let options = UiOptions::default().show_results().client_tools().custom_messages();
    UiServer::new(builder().build().unwrap())
        .options(options)
        .reconnect_time(Duration::from_secs(60))
        .threads(move |scope, thread| {
            let builder = builder();
            async move { Ok(builder.session(format!("{scope}/{thread}")).await?) }
        })
        .continue_runs()
        .single_user()
}

fn approves(message: &[Value]) -> Vec<u8> {
    let part = message.iter().find(|part| part["state"] == "approval-requested").unwrap();
    let mut part = part.clone();
    (part["state"], part["approval"]["approved"]) = (json!("approval-responded"), json!(true));
    let message = json!({"id": "r", "role": "assistant", "parts": [part]});
    json!({"id": "c", "messages": [message]}).to_string().into_bytes()
}

#[tokio::test]
async fn an_approval_is_answered_after_a_restart() {
    for attaches in [true, false] {
        let (store, calls) = (MemoryStore::new(), Arc::default());
        let model = model(|results| match results {
            0 => reply().text("First. ").tool_call("count", "{}"),
            1 => reply().text("Then. ").tool_call("send", r#"{"amount": 5}"#),
            _ => reply().text("done"),
        });
        let before = server(&store, &calls, &model);
        let first = all(before.post(UiProtocol::AiSdk, &says("go")).await).await;
        let page = ai_message(&first);
        drop(before);

        let after = server(&store, &calls, &model);
        if attaches {
            // The page is loaded again: the history, then the run as it waits, under the same ids.
            let history = after.messages(UiProtocol::AiSdk, "c").await.unwrap();
            assert_eq!(history[1]["id"], json!(page.message_id));
            let again = ai_message(&all(after.attach(UiProtocol::AiSdk, "c", None).await).await);
            again.assert_ended();
            assert_eq!((&again.message_id, &again.message), (&page.message_id, &page.message));
        }
        let mut page = page;
        page.next_response();
        let second = all(after.post(UiProtocol::AiSdk, &approves(&page.message)).await).await;
        page.read_all(&chunks(&second));
        page.assert_ended();
        assert!(second.contains("5 sent") && second.contains("done"), "{second}");
        assert_eq!((calls.load(Ordering::SeqCst), model.requests().len()), (1, 3), "nothing runs twice");
        let whole = ai_message(&all(after.attach(UiProtocol::AiSdk, "c", None).await).await);
        assert_eq!(whole.message, page.message);
        let part = page.message.iter().find(|part| part["type"] == "tool-send").unwrap();
        assert_eq!(
            (&part["state"], &part["approval"]["approved"]),
            (&json!("output-available"), &json!(true))
        );
    }
}

#[tokio::test]
async fn an_interrupt_is_answered_after_a_restart() {
    let (store, calls) = (MemoryStore::new(), Arc::default());
    let model = model(|results| match results {
        0 => reply().tool_call("send", r#"{"amount": 5}"#),
        _ => reply().text("done"),
    });
    let before = server(&store, &calls, &model);
    let first = ag_messages(&all(before.post(UiProtocol::AgUi, &runs("go", "r1")).await).await);
    drop(before);
    let after = server(&store, &calls, &model);
    let resume = json!([{"interruptId": first.outcome["interrupts"][0]["id"], "status": "resolved", "payload": {"approved": true}}]);
    let answer = |resume: &Value| {
        json!({"threadId": "c", "runId": "r2", "protocolVersion": "1.0", "messages": [], "resume": resume})
            .to_string()
            .into_bytes()
    };
    let forged = json!([{"interruptId": "forged", "status": "resolved", "payload": {"approved": true}}]);
    assert_rejected(after.post(UiProtocol::AgUi, &answer(&forged)).await, 400, "unanswered").await;
    let second = all(after.post(UiProtocol::AgUi, &answer(&resume)).await).await;
    assert!(second.contains("5 sent") && second.contains(r#""outcome":{"type":"success"}"#), "{second}");
    assert_rejected(after.post(UiProtocol::AgUi, &answer(&resume)).await, 409, "not_pending").await;

    // Without the option the run stays as it is.
    let store = MemoryStore::new();
    let before = server(&store, &calls, &model);
    all(before.post(UiProtocol::AgUi, &runs("go", "r1")).await).await;
    let template = Assistant::builder(model.clone()).build().unwrap();
    let other = UiServer::new(template).single_user();
    assert_rejected(other.post(UiProtocol::AgUi, &answer(&resume)).await, 409, "not_pending").await;
    assert_eq!(other.attach(UiProtocol::AgUi, "c", None).await.status(), 204);
}

#[test]
fn a_run_that_was_killed_continues_when_its_page_comes_back() {
    let (store, calls) = (MemoryStore::new(), Arc::<AtomicUsize>::default());
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let hangs = model(|results| match results {
        0 => reply().text("First. ").tool_call("count", "{}"),
        _ => reply().text("half").hang(),
    });
    let before = runtime();
    let ui = server(&store, &calls, &hangs);
    before.block_on(async {
        let mut body = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
        until(&mut body, "half").await;
        std::mem::forget(body);
    });
    // Every task stops where it is.
    before.shutdown_background();
    std::mem::forget(ui);

    runtime().block_on(async {
        let works = model(|results| if results == 1 { reply().text("whole") } else { reply().text("again") });
        let ui = server(&store, &calls, &works);
        let page = ai_message(&all(ui.attach(UiProtocol::AiSdk, "c", None).await).await);
        page.assert_ended();
        let texts: Vec<&Value> = page.message.iter().filter(|part| part["type"] == "text").collect();
        assert_eq!((&texts[0]["text"], &texts[1]["text"]), (&json!("First. "), &json!("whole")));
        let call = page.message.iter().find(|part| part["type"] == "tool-count").unwrap();
        assert_eq!((&call["output"], calls.load(Ordering::SeqCst)), (&json!("call 1"), 1));
        let history = ui.messages(UiProtocol::AiSdk, "c").await.unwrap();
        assert_eq!(history[1]["id"], json!(page.message_id));
        // It is over: the next message begins another run.
        let next = all(ui.post(UiProtocol::AiSdk, &says("more")).await).await;
        assert!(next.contains("again"), "{next}");
    });
}

/// A run with a tool that its page declares.
fn declares(tools: &Value, text: &str) -> Vec<u8> {
    let messages = json!([{"id": "m", "role": "user", "content": text}]);
    json!({"threadId": "c", "runId": "r", "protocolVersion": "1.0", "messages": messages, "tools": tools})
        .to_string()
        .into_bytes()
}

fn picks() -> ScriptedModel {
    model(|results| match results {
        0 => reply().tool_call("pick", r#"{"color": 7}"#),
        1 => reply().tool_call("pick", r#"{"color": "red", "n": "2"}"#),
        _ => reply().text("done"),
    })
}

fn pick() -> Value {
    let properties = json!({"color": {"enum": ["red", "blue"]}, "n": {"type": "integer"}});
    let parameters = json!({"type": "object", "properties": properties, "required": ["color"]});
    json!([{"name": "pick", "description": "Picks a color.", "parameters": parameters}])
}

#[tokio::test]
async fn a_page_declares_tools_and_runs_them_also_after_a_restart() {
    for restarts in [false, true] {
        let (store, calls, model) = (MemoryStore::new(), Arc::default(), picks());
        let mut ui = server(&store, &calls, &model);
        let mut page = AgUiReader::default();
        page.read_all(&chunks(&all(ui.post(UiProtocol::AgUi, &declares(&pick(), "go")).await).await));
        page.assert_ended();
        // The arguments are checked by the schema of the page.
        let results = |page: &AgUiReader| -> Vec<Value> {
            page.messages.iter().filter(|message| message["role"] == "tool").cloned().collect()
        };
        assert!(results(&page)[0]["content"].as_str().unwrap().contains("color"), "{:?}", page.messages);
        let pending = page.outcome["pendingToolCallIds"].as_array().unwrap().clone();
        assert_eq!(pending.len(), 1);
        // Its arguments are shown, though a tool of the application has secrets.
        let text = serde_json::to_string(&page.messages).unwrap();
        assert!(text.contains("red"), "{text}");
        if restarts {
            drop(ui);
            ui = server(&store, &calls, &model);
        }
        let answer = |call: &Value| {
            let messages = json!([{"id": "a", "role": "assistant"}, {"id": "t", "role": "tool", "toolCallId": call, "content": "ok"}]);
            json!({"threadId": "c", "runId": "r2", "messages": messages, "tools": pick()}).to_string()
        };
        let forged = ui.post(UiProtocol::AgUi, answer(&json!("call_9")).as_bytes()).await;
        assert_rejected(forged, 409, "not_pending").await;
        let second = all(ui.post(UiProtocol::AgUi, answer(&pending[0]).as_bytes()).await).await;
        page.read_all(&chunks(&second));
        page.assert_ended();
        assert!(second.contains("done"), "{second}");
        assert_eq!(results(&page).last().unwrap()["content"], "ok");
    }
}

#[tokio::test]
async fn a_page_that_attaches_does_not_continue_a_run_without_its_tools() {
    let (store, calls, model) = (MemoryStore::new(), Arc::default(), picks());
    let before = server(&store, &calls, &model);
    let first = ag_messages(&all(before.post(UiProtocol::AgUi, &declares(&pick(), "go")).await).await);
    let pending = first.outcome["pendingToolCallIds"][0].clone();
    drop(before);
    let after = server(&store, &calls, &model);
    assert_eq!(after.attach(UiProtocol::AgUi, "c", None).await.status(), 204);
    let history = after.messages(UiProtocol::AgUi, "c").await.unwrap();
    let ids =
        |messages: &[Value]| -> Vec<Value> { messages.iter().map(|message| message["id"].clone()).collect() };
    assert_eq!(ids(&history.as_array().unwrap()[1..]), ids(&first.messages), "as the page has them");
    let answer = |tools: &Value| {
        let messages = json!([{"id": "a", "role": "assistant"}, {"id": "t", "role": "tool", "toolCallId": pending, "content": "ok"}]);
        let mut body =
            json!({"threadId": "c", "runId": "r2", "protocolVersion": "1.0", "messages": messages});
        if tools.is_array() {
            body["tools"] = tools.clone();
        }
        body.to_string()
    };
    let without = after.post(UiProtocol::AgUi, answer(&Value::Null).as_bytes()).await;
    assert_rejected(without, 409, "not_pending").await;
    assert_eq!(model.requests().len(), 2, "nothing ran");
    let second = all(after.post(UiProtocol::AgUi, answer(&pick()).as_bytes()).await).await;
    assert!(second.contains("done") && !second.contains("unknown_tool"), "{second}");
}

#[tokio::test]
async fn messages_keep_their_ids_after_a_restart() {
    let (store, calls) = (MemoryStore::new(), Arc::default());
    let model = model(|results| match results {
        0 => reply().text("First. ").tool_call("count", "{}"),
        _ => reply().text("done"),
    });
    let before = server(&store, &calls, &model);
    for text in ["go", "again"] {
        all(before.post(UiProtocol::AiSdk, &says(text)).await).await;
    }
    let after = server(&store, &calls, &model);
    for protocol in [UiProtocol::AiSdk, UiProtocol::AgUi] {
        let known = before.messages(protocol, "c").await.unwrap();
        assert_eq!(after.messages(protocol, "c").await.unwrap(), known);
    }
    let known = after.messages(UiProtocol::AiSdk, "c").await.unwrap();
    all(after.post(UiProtocol::AiSdk, &says("more")).await).await;
    let longer = after.messages(UiProtocol::AiSdk, "c").await.unwrap();
    assert_eq!(longer.as_array().unwrap()[..4], known.as_array().unwrap()[..]);
}

#[tokio::test]
async fn declared_tools_that_cannot_be_used_are_rejected_and_nothing_runs() {
    let (store, calls, model) = (MemoryStore::new(), Arc::default(), picks());
    let ui = server(&store, &calls, &model);
    let many: Vec<Value> = (0..65).map(|n| json!({"name": format!("t{n}")})).collect();
    let deep = (0..200).fold(json!({}), |schema, _| json!({"type": "array", "items": schema}));
    for (tools, field) in [
        (json!([{"name": "send"}]), "tools/send/name"),
        (json!([{"name": "a"}, {"name": "a"}]), "tools/1/name"),
        (json!([{"name": "with space"}]), "tools/0/name"),
        (json!([{"name": "a", "parameters": {"type": "nothing"}}]), "tools/a/parameters"),
        (
            json!([{"name": "a", "parameters": {"properties": {"x": {"$ref": "http://example.com"}}}}]),
            "tools/a/parameters",
        ),
        (json!([{"name": "a", "parameters": {"type": "object", "properties": {"x": deep}}}]), ""),
        (json!([{"name": "a", "description": "x".repeat(40_000)}]), "tools"),
        (json!(many), "tools"),
    ] {
        let response = ui.post(UiProtocol::AgUi, &declares(&tools, "go")).await;
        assert_eq!(response.status(), 400, "{tools}");
        let body = all(response).await;
        assert!(body.contains(field), "{body}");
    }
    assert_eq!(model.requests().len(), 0);

    // Without the option they are not used: the call is one of an unknown tool.
    let assistant = Assistant::builder(picks()).build().unwrap();
    let ui = UiServer::new(assistant).single_user();
    let text = all(ui.post(UiProtocol::AgUi, &declares(&pick(), "go")).await).await;
    assert!(text.contains("unknown_tool") && text.contains("done"), "{text}");

    // As assistant-ui sends them.
    let ui = server(&MemoryStore::new(), &calls, &picks());
    let mut body: Value = serde_json::from_slice(&says("go")).unwrap();
    body["tools"] = json!({"pick": pick()[0]});
    let page = ai_message(&all(ui.post(UiProtocol::AiSdk, body.to_string().as_bytes()).await).await);
    page.assert_ended();
    assert_eq!(page.message.last().unwrap()["state"], "input-available", "{:?}", page.message);
}

#[tokio::test]
async fn a_log_that_is_too_long_keeps_messages() {
    let turns = 12;
    let model = |waits: bool| {
        model(move |results| match results {
            n if n < turns => {
                reply().text(format!("Turn {n}. ")).tool_call("words", format!(r#"{{"n": "{}"}}"#, 400 + n))
            }
            n if n == turns && waits => reply().tool_call("wait", "{}"),
            _ => reply().text("done"),
        })
    };
    let stable = |reader: &AiSdkReader| -> Vec<Value> {
        let is_kept = |part: &&Value| part["type"] != "data-agent-coercions";
        reader.message.iter().filter(is_kept).cloned().collect()
    };
    let (store, calls) = (MemoryStore::new(), Arc::default());
    let ui = server(&store, &calls, &model(false)).max_log(10_000);
    let live = all(ui.post(UiProtocol::AiSdk, &says("go")).await).await;
    let first = live.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let live = ai_message(&live);
    let replayed = ai_message(&all(ui.attach(UiProtocol::AiSdk, "c", None).await).await);
    replayed.assert_ended();
    assert_eq!((stable(&replayed), &replayed.message_id), (stable(&live), &live.message_id));
    assert!(replayed.message.len() < live.message.len(), "the coercions of earlier calls are gone");
    let ag = ag_messages(&all(ui.attach(UiProtocol::AgUi, "c", None).await).await);
    assert_eq!(ag.messages.iter().filter(|message| message["role"] == "tool").count(), turns);
    // What follows an event that is gone begins with the start.
    let rest = all(ui.attach(UiProtocol::AiSdk, "c", Some(&first)).await).await;
    assert!(chunks(&rest)[0]["type"] == "start", "{}", &rest[..200]);

    // The same while it runs.
    let ui = server(&MemoryStore::new(), &calls, &model(true)).max_log(10_000);
    let mut body = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
    until(&mut body, r#""toolName":"wait","input""#).await;
    let tab = tokio::spawn(all(ui.attach(UiProtocol::AiSdk, "c", None).await));
    ui.run("c").unwrap().cancel("enough");
    let (tab, whole) = (ai_message(&tab.await.unwrap()), ui.attach(UiProtocol::AiSdk, "c", None).await);
    assert_eq!(stable(&tab), stable(&ai_message(&all(whole).await)));
    assert_eq!(tab.message.iter().filter(|part| part["type"] == "tool-words").count(), turns);
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_gets_comments() {
    let waits = || model(|_| reply().tool_call("wait", "{}"));
    let (store, calls) = (MemoryStore::new(), Arc::default());
    let ui = server(&store, &calls, &waits()).keep_alive(Duration::from_secs(5));
    let mut body = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
    until(&mut body, "tool-input-available").await;
    for _ in 0..3 {
        let before = tokio::time::Instant::now();
        assert_eq!(&body.next().await.unwrap()[..], b": keep-alive\n\n");
        assert_eq!(before.elapsed().as_secs(), 5);
    }
    ui.run("c").unwrap().cancel("enough");
    let rest = until(&mut body, "[DONE]").await;
    assert!(!rest.contains("keep-alive") && body.next().await.is_none());

    let ui = server(&MemoryStore::new(), &calls, &waits()).keep_alive(None);
    let mut body = ui.post(UiProtocol::AgUi, &runs("go", "r")).await.into_body();
    until(&mut body, "TOOL_CALL_END").await;
    assert!(tokio::time::timeout(Duration::from_secs(20), body.next()).await.is_err());
}

#[tokio::test]
async fn messages_of_the_application_are_sent_if_it_says_so() {
    let assistant = Assistant::builder(ScriptedModel::new(["Hi."])).build().unwrap();
    let custom = CustomMessage::new("opened", json!({"path": "a.rs"}));
    let log = agent::testing::EventLog::new();
    assistant.subscribe(log.listener()).forever();
    assistant.prompt("go").with_message(agent::message::Message::from(custom)).await.unwrap();
    for (options, count) in [(UiOptions::default(), 0), (UiOptions::default().custom_messages(), 1)] {
        for protocol in [UiProtocol::AiSdk, UiProtocol::AgUi] {
            let request = UiRequest::new("c");
            let mut encoder = agent::ui::UiEncoder::new(protocol, assistant.registry(), &options, &request);
            let mut chunks = Vec::new();
            for event in log.events() {
                encoder.encode(&event, &mut chunks);
            }
            let text: String = chunks.iter().map(|chunk| chunk.json.clone() + "\n").collect();
            assert_eq!(text.matches(r#"{"kind":"opened","data":{"path":"a.rs"}}"#).count(), count, "{text}");
            assert_eq!(
                text.matches("agent.message").count() + text.matches("data-agent-message").count(),
                count
            );
        }
    }
}

/// JSON that has the fields of requests, with anything in them.
fn hostile() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "",
        "user",
        "assistant",
        "tool",
        "text",
        "file",
        "tool-send",
        "approval-responded",
        "output-available",
        "resolved",
        "cancelled",
        "call_1",
        "c",
        "data:,",
        "https://x",
        "\u{0}",
        "../..",
        "system",
        "data:image/png;base64,!!",
        "submit-message",
    ]);
    let key = prop::sample::select(vec![
        "id",
        "messages",
        "message",
        "role",
        "parts",
        "type",
        "text",
        "url",
        "state",
        "approval",
        "approved",
        "toolCallId",
        "output",
        "threadId",
        "runId",
        "content",
        "resume",
        "interruptId",
        "status",
        "payload",
        "editedArgs",
        "tools",
        "name",
        "parameters",
        "context",
        "description",
        "value",
        "edits",
        "trigger",
        "error",
        "errorText",
        "source",
        "mimeType",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Whatever is sent is answered; what is rejected runs nothing, and a run that waits still waits.
    #[test]
    fn any_request_is_answered(fields in hostile(), with_ids in any::<bool>(), ag_ui in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let protocol = if ag_ui { UiProtocol::AgUi } else { UiProtocol::AiSdk };
        let mut body = fields;
        if with_ids && let Value::Object(map) = &mut body {
            map.extend([("id", "c"), ("threadId", "c"), ("runId", "r")].map(|(key, id)| (key.to_owned(), json!(id))));
        }
        runtime.block_on(async {
            let model = model(|results| match results {
                0 => reply().tool_call("send", r#"{"amount": 5}"#),
                _ => reply().text("done"),
            });
            let ui = server(&MemoryStore::new(), &Arc::default(), &model);
            all(ui.post(UiProtocol::AiSdk, &says("go")).await).await;
            let response = ui.post(protocol, body.to_string().as_bytes()).await;
            let status = response.status();
            let text = all(response).await;
            assert!([200, 400, 409].contains(&status.as_u16()), "{status} {text}");
            if status != 200 {
                assert_eq!(model.requests().len(), 1, "{body}");
                let waits = all(ui.attach(UiProtocol::AiSdk, "c", None).await).await;
                assert!(waits.contains("tool-approval-request"), "{body} {waits}");
            }
        });
    }
}
