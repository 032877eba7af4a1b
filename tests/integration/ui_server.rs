//! Threads behind HTTP: responses, readers that come and go, limits.

use std::time::Duration;

use agent::ScriptedModel;
use agent::message::{Content, Part, ProviderTool, ResourceLink};
use agent::model::{ScriptedReply, reply};
use agent::ui::{UiBody, UiOptions, UiProtocol, UiServer};
use agent::{Assistant, ToolContext, ToolOutcome, json, tool, tools};
use axum::http::Response;
use serde_json::Value;

use crate::trace_support::{EveryLine, hear};
use crate::ui_readers::{AgUiReader, AiSdkReader};

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Sends money.
#[tool(approval = "always")]
fn send(amount: u64) -> String {
    format!("{amount} sent")
}

/// Waits until it is cancelled.
#[tool]
async fn wait(cx: &ToolContext) -> String {
    cx.cancelled().await;
    "cancelled".to_owned()
}

/// Scrolls the page.
#[tool]
fn scroll() -> ToolOutcome {
    ToolOutcome::Deferred { handle: "h".into() }
}

fn server(model: ScriptedModel) -> UiServer {
    let assistant = Assistant::builder(model).tools(tools![add, send, wait, scroll]).build().unwrap();
    let options = UiOptions::default().show_results().run_in_browser(["scroll"]);
    UiServer::new(assistant).options(options).single_user()
}

pub(crate) fn says(text: &str) -> Vec<u8> {
    let parts = json!([{"type": "text", "text": text}]);
    json!({"id": "c", "messages": [{"id": "m", "role": "user", "parts": parts}]}).to_string().into_bytes()
}

pub(crate) fn runs(text: &str, run: &str) -> Vec<u8> {
    let messages = json!([{"id": "m", "role": "user", "content": text}]);
    json!({"threadId": "c", "runId": run, "protocolVersion": "1.0", "messages": messages})
        .to_string()
        .into_bytes()
}

pub(crate) async fn all(response: Response<UiBody>) -> String {
    rest(response.into_body()).await
}

async fn rest(mut body: UiBody) -> String {
    let mut text = String::new();
    while let Some(bytes) = tokio::time::timeout(Duration::from_secs(20), body.next()).await.unwrap() {
        text += std::str::from_utf8(&bytes).unwrap();
    }
    text
}

/// Reads until the text is there.
pub(crate) async fn until(body: &mut UiBody, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let bytes = tokio::time::timeout(Duration::from_secs(20), body.next()).await.unwrap();
        text += std::str::from_utf8(&bytes.expect("more")).unwrap();
    }
    text
}

pub(crate) fn chunks(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

pub(crate) fn ai_message(text: &str) -> AiSdkReader {
    let mut reader = AiSdkReader::default();
    reader.read_all(&chunks(text));
    reader
}

pub(crate) fn ag_messages(text: &str) -> AgUiReader {
    let mut reader = AgUiReader::default();
    reader.read_all(&chunks(text));
    reader
}

pub(crate) async fn assert_rejected(response: Response<UiBody>, status: u16, code: &str) {
    assert_eq!(response.status(), status);
    let body: Value = serde_json::from_str(&all(response).await).unwrap();
    assert_eq!(body["error"]["code"], code);
}

#[tokio::test]
async fn a_conversation_in_both_protocols() {
    let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().role() {
        "user" => reply().text("I add.").tool_call("add", r#"{"a": 1, "b": 2}"#),
        _ => reply().text("3"),
    });
    let ui = server(model);
    let response = ui.post(UiProtocol::AiSdk, &says("go")).await;
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"] == "text/event-stream");
    let text = all(response).await;
    assert!(text.ends_with("data: [DONE]\n\n") && !text.contains('\r'));
    let live = ai_message(&text);
    live.assert_ended();

    // The history is what was streamed.
    let history = ui.messages(UiProtocol::AiSdk, "c").await.unwrap();
    assert_eq!(history[1]["id"], json!(live.message_id));
    let texts = |parts: &Value| {
        let parts = parts.as_array().unwrap();
        parts.iter().map(|part| json!([part["type"], part["text"], part["output"]])).collect::<Vec<_>>()
    };
    assert_eq!(texts(&history[1]["parts"]), texts(&json!(live.message)));

    let text = all(ui.post(UiProtocol::AgUi, &runs("again", "r2")).await).await;
    assert!(!text.contains("[DONE]"));
    let live = ag_messages(&text);
    live.assert_ended();
    let history = ui.messages(UiProtocol::AgUi, "c").await.unwrap();
    let ids = |list: &[Value]| list.iter().map(|message| message["id"].clone()).collect::<Vec<_>>();
    let history = history.as_array().unwrap();
    assert_eq!(ids(&history[history.len() - live.messages.len()..]), ids(&live.messages));
}

#[tokio::test]
async fn an_approval_over_three_requests() {
    let model = ScriptedModel::new([
        reply().tool_call("add", r#"{"a": 1, "b": 2}"#).tool_call("send", r#"{"amount": 5}"#),
        reply().text("done"),
    ]);
    let ui = server(model);
    let first = all(ui.post(UiProtocol::AiSdk, &says("go")).await).await;
    let mut page = ai_message(&first);
    page.assert_ended();
    assert_eq!(page.finish.as_deref(), Some("tool-calls"));

    let part = page.message.iter().find(|part| part["type"] == "tool-send").unwrap();
    let id = part["approval"]["id"].clone();
    let decision = |id: &Value| {
        let part = json!({"type": "tool-send", "toolCallId": "call_2", "state": "approval-responded",
            "approval": {"id": id, "approved": true}});
        json!({"id": "c", "messages": [{"id": "r", "role": "assistant", "parts": [part]}]})
            .to_string()
            .into_bytes()
    };
    assert_rejected(ui.post(UiProtocol::AiSdk, &decision(&json!("forged"))).await, 400, "unanswered").await;
    // The run still waits, and a page that loads sees it.
    let again = ai_message(&all(ui.attach(UiProtocol::AiSdk, "c", None).await).await);
    assert_eq!(again.message, page.message);

    let second = all(ui.post(UiProtocol::AiSdk, &decision(&id)).await).await;
    page.next_response();
    page.read_all(&chunks(&second));
    page.assert_ended();
    assert!(second.contains("5 sent") && second.contains("done"));
    assert_rejected(ui.post(UiProtocol::AiSdk, &decision(&id)).await, 409, "not_pending").await;
    // A replay of both parts is the same message.
    let replay = ai_message(&all(ui.attach(UiProtocol::AiSdk, "c", None).await).await);
    assert_eq!(replay.message, page.message);
}

#[tokio::test]
async fn an_interrupt_and_a_tool_of_the_browser() {
    let model = ScriptedModel::new([
        reply().tool_call("send", r#"{"amount": 5}"#),
        reply().tool_call("scroll", "{}"),
        reply().text("done"),
    ]);
    let ui = server(model);
    let mut page = AgUiReader::default();
    let mut read = |text: &str| {
        page.read_all(&chunks(text));
        page.assert_ended();
        page.outcome.clone()
    };
    let outcome = read(&all(ui.post(UiProtocol::AgUi, &runs("go", "r1")).await).await);
    let id = &outcome["interrupts"][0]["id"];
    let resume = json!({"threadId": "c", "runId": "r2", "protocolVersion": "1.0", "messages": [],
        "resume": [{"interruptId": id, "status": "resolved", "payload": {"approved": true, "editedArgs": {"amount": 4}}}]});
    let text = all(ui.post(UiProtocol::AgUi, resume.to_string().as_bytes()).await).await;
    let outcome = read(&text);
    assert!(text.contains("4 sent"), "{text}");
    let call = &outcome["pendingToolCallIds"][0];
    let result = json!({"threadId": "c", "runId": "r3", "messages": [
        {"id": "a", "role": "assistant"}, {"id": "t", "role": "tool", "toolCallId": call, "content": "scrolled"}]});
    let text = all(ui.post(UiProtocol::AgUi, result.to_string().as_bytes()).await).await;
    read(&text);
    assert!(text.contains("scrolled") && text.contains("done"));
}

#[tokio::test]
async fn a_call_that_waits_for_others_can_be_asked_about_and_given_up() {
    let model = ScriptedModel::new([reply().tool_call("scroll", "{}"), reply().text("done")]);
    let assistant = Assistant::builder(model).tools(tools![scroll]).build().unwrap();
    let ui = UiServer::new(assistant).single_user();
    let first = ag_messages(&all(ui.post(UiProtocol::AgUi, &runs("go", "r1")).await).await);
    let id = &first.outcome["interrupts"][0]["id"];
    assert_eq!(first.outcome["interrupts"][0]["reason"], "waiting");
    let answer = |run: &str, status: &str| {
        let resume = json!([{"interruptId": id, "status": status}]);
        json!({"threadId": "c", "runId": run, "protocolVersion": "1.0", "messages": [], "resume": resume})
            .to_string()
    };
    let again = all(ui.post(UiProtocol::AgUi, answer("r2", "resolved").as_bytes()).await).await;
    let again = ag_messages(&again);
    assert_eq!((&again.outcome, again.messages.len()), (&first.outcome, 2));
    let last = all(ui.post(UiProtocol::AgUi, answer("r3", "cancelled").as_bytes()).await).await;
    assert!(last.contains("done") && last.contains(r#""outcome":{"type":"success"}"#), "{last}");
}

#[tokio::test]
async fn two_tabs_and_a_replay_from_any_cut_show_the_same() {
    let model = || {
        ScriptedModel::new([
            reply().thinking("Hm.").text("I add this.").tool_call("add", r#"{"a": 1, "b": 2}"#),
            reply().text("It is three."),
        ])
        .with_chunk_size(3)
    };
    let ui = server(model());
    let whole = all(ui.post(UiProtocol::AiSdk, &says("go")).await).await;
    let (whole, count) = (ai_message(&whole).message, whole.matches("data: ").count());
    let normal = |message: &[Value], id: &str| json!(message).to_string().replace(id, "RUN");
    for cut in 0..count {
        let policy = Duration::from_secs(60);
        let ui = server(model()).reconnect_time(policy);
        let mut body = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
        let mut seen = String::new();
        while seen.matches("data: ").count() < cut {
            match body.next().await {
                Some(bytes) => seen += std::str::from_utf8(&bytes).unwrap(),
                None => break,
            }
        }
        // The first tab leaves, another one comes, or comes before.
        let other = ui.attach(UiProtocol::AiSdk, "c", None).await;
        assert_eq!(other.status(), 200);
        let rest_after =
            seen.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().map(str::to_owned);
        drop(body);
        let ag = ui.attach(UiProtocol::AgUi, "c", None).await;
        let replay = ai_message(&all(other).await);
        replay.assert_ended();
        let id = replay.message_id.clone().unwrap();
        assert_eq!(normal(&replay.message, &id), normal(&whole, &id), "cut {cut}");
        let ag = ag_messages(&all(ag).await);
        assert_eq!(ag.messages.last().unwrap()["content"], "It is three.", "cut {cut}");
        // A client of our own that asks for the rest.
        if let Some(after) = rest_after {
            let rest = all(ui.attach(UiProtocol::AiSdk, "c", Some(&after)).await).await;
            assert!(rest.ends_with("[DONE]\n\n"));
        }
    }
}

#[tokio::test]
async fn who_leaves_cancels_unless_the_application_says_otherwise() {
    let model = || ScriptedModel::new([reply().tool_call("wait", "{}"), reply().text("late")]);
    for (policy, is_cancelled) in
        [(Duration::ZERO, true), (Duration::from_millis(10), true), (Duration::from_secs(600), false)]
    {
        let ui = server(model()).reconnect_time(policy);
        let mut body = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
        until(&mut body, "tool-input-available").await;
        let run = ui.run("c").unwrap();
        drop(body);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(ui.run("c").is_none(), is_cancelled, "{policy:?}");
        run.cancel("enough");
        let replay = ai_message(&all(ui.attach(UiProtocol::AiSdk, "c", None).await).await);
        replay.assert_ended();
        assert_eq!(replay.finish.as_deref(), Some("other"));
    }
}

#[tokio::test]
async fn limits_and_scopes() {
    let model = ScriptedModel::from_fn(|_| reply().tool_call("wait", "{}"));
    let all_runs = server(model).reconnect_time(Duration::from_secs(600));
    let ui = all_runs.clone().max_runs(1).max_readers(2).max_body(500);
    assert_rejected(ui.post(UiProtocol::AiSdk, &says(&"x".repeat(600))).await, 413, "too_large").await;
    let ann = ui.scoped("ann");
    let mut body = ann.post(UiProtocol::AiSdk, &says("go")).await.into_body();
    until(&mut body, "tool-input-available").await;
    assert_rejected(ann.post(UiProtocol::AiSdk, &says("more")).await, 409, "busy").await;
    let other = String::from_utf8(says("go")).unwrap().replace("\"c\"", "\"d\"");
    assert_rejected(ann.post(UiProtocol::AiSdk, other.as_bytes()).await, 429, "too_many_runs").await;
    // The limits are those of the clone; the threads are shared.
    let more = all_runs.scoped("ann").post(UiProtocol::AiSdk, other.as_bytes()).await;
    assert_eq!(more.status(), 200);
    ann.run("d").unwrap().cancel("enough");
    let second = ann.attach(UiProtocol::AgUi, "c", None).await;
    assert_rejected(ann.attach(UiProtocol::AgUi, "c", None).await, 429, "too_many_readers").await;
    // Others have neither the run nor its messages.
    let bob = ui.scoped("bob");
    assert_eq!(bob.attach(UiProtocol::AiSdk, "c", None).await.status(), 204);
    assert!(bob.run("c").is_none() && bob.messages(UiProtocol::AiSdk, "c").await.unwrap() == json!([]));
    assert_eq!(ui.attach(UiProtocol::AiSdk, "c", None).await.status(), 204);
    // A server that stops tells its readers.
    ui.disconnect();
    assert!(rest(body).await.contains("restarting"));
    assert!(all(second).await.contains(r#""code":"restart""#));
    ann.run("c").unwrap().cancel("enough");

    let assistant = Assistant::builder(ScriptedModel::new(["x"])).build().unwrap();
    let closed = UiServer::new(assistant);
    assert_rejected(closed.post(UiProtocol::AiSdk, &says("go")).await, 403, "not_scoped").await;
    let again = json!({"id": "c", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}], "trigger": "regenerate-message"});
    let response = closed.scoped("a").post(UiProtocol::AiSdk, again.to_string().as_bytes()).await;
    assert_rejected(response, 409, "regenerate").await;
}

#[tokio::test]
async fn threads_that_cannot_be_opened_displace_no_others() {
    let template = Assistant::builder(ScriptedModel::new(["Hi."])).build().unwrap();
    let for_all = template.clone();
    let ui = UiServer::new(template).single_user().max_threads(2).threads(move |_, thread| {
        let opened = if thread == "c" { Ok(for_all.fork()) } else { Err("no such thread".into()) };
        async move { opened }
    });
    all(ui.post(UiProtocol::AiSdk, &says("go")).await).await;
    for n in 0..5 {
        let error = ui.messages(UiProtocol::AiSdk, &format!("bad {n}")).await.unwrap_err();
        assert_eq!(error.code(), "unavailable");
    }
    assert_eq!(ui.messages(UiProtocol::AiSdk, "c").await.unwrap().as_array().unwrap().len(), 2);
    let error = ui.messages(UiProtocol::AiSdk, &"x".repeat(600)).await.unwrap_err();
    assert_eq!(error.code(), "invalid");
}

#[tokio::test]
async fn a_message_whose_reader_is_rejected_is_not_queued() {
    let assistant = Assistant::builder(ScriptedModel::new([reply().hang()])).build().unwrap();
    let shared = assistant.clone();
    let options = UiOptions::default().steer_while_busy();
    let ui = UiServer::new(assistant.clone()).options(options).single_user().max_readers(1);
    let ui = ui.threads(move |_, _| {
        let assistant = shared.clone();
        async move { Ok(assistant) }
    });
    let _reader = ui.post(UiProtocol::AiSdk, &says("go")).await;
    assert_rejected(ui.post(UiProtocol::AiSdk, &says("more")).await, 429, "too_many_readers").await;
    assert!(assistant.queued(agent::run::Queue::Steering).is_empty());
}

#[tokio::test]
async fn the_history_has_files_refusals_sources_and_tools_of_the_provider() {
    let (mut asks, mut finds) = (ProviderTool::new("web_search"), ProviderTool::new("web_search"));
    (asks.id, asks.input) = (Some("w".into()), Some(json!({"q": "tea"})));
    (finds.id, finds.output) = (Some("w".into()), Some(json!("found")));
    let parts = [
        Part::refusal("I will not."),
        Part::new(Content::ResourceLink(ResourceLink::new("https://example.com/a"))),
        Part::new(Content::ProviderTool(Box::new(asks))),
        Part::new(Content::ProviderTool(Box::new(finds))),
    ];
    let ui = server(ScriptedModel::new([parts.into_iter().fold(reply(), ScriptedReply::part)]));
    let file = json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AQID", "filename": "a.png"});
    let sent = json!([{"type": "text", "text": "go"}, file]);
    let body = json!({"id": "c", "messages": [{"id": "m", "role": "user", "parts": sent}]});
    all(ui.post(UiProtocol::AiSdk, body.to_string().as_bytes()).await).await;

    let ai = ui.messages(UiProtocol::AiSdk, "c").await.unwrap();
    assert_eq!(ai[0]["parts"], sent);
    assert_eq!(
        ai[1]["parts"].as_array().unwrap()[2..],
        [
            json!({"type": "source-url", "sourceId": "1.1", "url": "https://example.com/a"}),
            json!({"type": "dynamic-tool", "toolName": "web_search", "toolCallId": "w", "providerExecuted": true,
                "state": "output-available", "input": {"q": "tea"}, "output": "found"}),
        ]
    );
    let ag = ui.messages(UiProtocol::AgUi, "c").await.unwrap();
    let source = json!({"type": "data", "value": "AQID", "mimeType": "image/png"});
    let content = json!([{"type": "text", "text": "go"}, {"type": "image", "source": source}]);
    assert_eq!((&ag[0]["content"], &ag[1]["content"]), (&content, &json!("I will not.")));
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_cut_and_the_run_ends() {
    let model = ScriptedModel::new([reply().text("word ".repeat(4000))]).with_chunk_size(5);
    let ui = server(model);
    let body = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
    let stuck = body;
    let mut tries = 0;
    while ui.run("c").is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        tries += 1;
        assert!(tries < 500, "the run waits for its reader");
    }
    let text = rest(stuck).await;
    assert!(text.contains("too slow") && !text.contains("[DONE]"), "{}", text.len());
    assert!(text.matches("data: ").count() < 400);
    // Whoever comes back has all of it.
    let replay = ai_message(&all(ui.attach(UiProtocol::AiSdk, "c", None).await).await);
    assert_eq!(replay.message[1]["text"].as_str().unwrap().len(), 20_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_that_come_at_any_moment_see_the_same() {
    for _ in 0..30 {
        let model = ScriptedModel::new([
            reply().text("I add this. ".repeat(8)).tool_call("add", r#"{"a": 1, "b": 2}"#),
            reply().text("It is three. ".repeat(8)),
        ]);
        let policy = Duration::from_secs(60);
        let ui = server(model.with_chunk_size(2)).reconnect_time(policy);
        let first = ui.post(UiProtocol::AiSdk, &says("go")).await;
        let mut readers = vec![tokio::spawn(all(first))];
        for _ in 0..6 {
            readers.push(tokio::spawn(all(ui.attach(UiProtocol::AiSdk, "c", None).await)));
            tokio::task::yield_now().await;
        }
        let other = all(ui.attach(UiProtocol::AgUi, "c", None).await).await;
        let mut messages = Vec::new();
        for reader in readers {
            let message = ai_message(&reader.await.unwrap());
            message.assert_ended();
            messages.push(message.message);
        }
        assert!(messages.windows(2).all(|two| two[0] == two[1]));
        let page = ag_messages(&other);
        assert_eq!(page.messages.last().unwrap()["content"], "It is three. ".repeat(8));
        page.assert_ended();
    }
}

#[tokio::test]
async fn functions_of_the_application_may_ask_the_server() {
    let model = ScriptedModel::new([reply().tool_call("add", r#"{"a": 1, "b": 2}"#), reply().text("3")]);
    let assistant = Assistant::builder(model).tools(tools![add]).build().unwrap();
    let cell: std::sync::Arc<std::sync::OnceLock<UiServer>> = std::sync::Arc::default();
    let (asked, scopes) = (cell.clone(), std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
    let options = UiOptions::default().show_results_as(move |_| {
        let is_active = asked.get().is_some_and(|ui| ui.scoped("ann").run("c").is_some());
        json!({"is_active": is_active})
    });
    let (template, seen) = (assistant.clone(), scopes.clone());
    let ui = UiServer::new(assistant).options(options).threads(move |scope, thread| {
        seen.lock().unwrap().push((scope, thread));
        let fork = template.fork();
        async move { Ok(fork) }
    });
    assert!(cell.set(ui.clone()).is_ok());
    let ui = ui.scoped("ann");
    let text = all(ui.post(UiProtocol::AiSdk, &says("go")).await).await;
    assert!(text.contains(r#""output":{"is_active":true}"#), "{text}");
    assert!(all(ui.attach(UiProtocol::AgUi, "c", None).await).await.contains("is_active"));
    assert_eq!(*scopes.lock().unwrap(), [("ann".to_owned(), "c".to_owned())]);
}

#[tokio::test]
async fn a_message_during_a_run_can_steer_it() {
    let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().text().as_str() {
        "quick" => reply().text("Quickly."),
        _ => reply().tool_call("wait", "{}"),
    });
    let assistant = Assistant::builder(model).tools(tools![wait]).tool_timeout(Duration::from_millis(300));
    let options = UiOptions::default().steer_while_busy();
    let ui = UiServer::new(assistant.build().unwrap()).options(options).single_user();
    let mut first = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
    until(&mut first, "tool-input-available").await;
    let second = ui.post(UiProtocol::AiSdk, &says("quick")).await;
    assert_eq!(second.status(), 200);
    let message = ai_message(&all(second).await);
    message.assert_ended();
    assert!(message.message.iter().any(|part| part["text"] == "Quickly."));
}

#[tokio::test]
async fn facts_of_the_page_come_with_a_message_that_steers() {
    let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().text().as_str() {
        "page: orders\n\nquick" => reply().text("Quickly."),
        "quick" => reply().text("Where?"),
        _ => reply().tool_call("wait", "{}"),
    });
    let assistant = Assistant::builder(model).tools(tools![wait]).tool_timeout(Duration::from_millis(300));
    let options = UiOptions::default().steer_while_busy();
    let ui = UiServer::new(assistant.build().unwrap()).options(options).single_user();
    let mut first = ui.post(UiProtocol::AgUi, &runs("go", "r1")).await.into_body();
    until(&mut first, "TOOL_CALL_END").await;
    let mut body: Value = serde_json::from_slice(&runs("quick", "r2")).unwrap();
    body["context"] = json!([{"description": "page", "value": "orders"}]);
    let second = all(ui.post(UiProtocol::AgUi, body.to_string().as_bytes()).await).await;
    assert!(second.contains("Quickly."), "{second}");
}

#[tokio::test]
async fn a_run_that_does_not_begin_leaves_the_last_run_as_it_was() {
    let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().text().as_str() {
        "fail" => {
            reply().error(agent::model::ModelError::new(agent::model::ModelErrorKind::RateLimit, "slowly"))
        }
        _ => reply().hang(),
    });
    let assistant = Assistant::builder(model).build().unwrap();
    let shared = assistant.clone();
    let ui = UiServer::new(assistant.clone()).single_user().threads(move |_, _| {
        let assistant = shared.clone();
        async move { Ok(assistant) }
    });
    let failed = all(ui.post(UiProtocol::AgUi, &runs("fail", "r1")).await).await;
    let end = chunks(&failed).pop().unwrap();
    assert_eq!(end["code"], "rate_limit");
    // The application uses the assistant itself, so the next run of the thread does not begin.
    let mut own = assistant.prompt("hang").stream();
    own.next().await.unwrap();
    assert_rejected(ui.post(UiProtocol::AgUi, &runs("go", "r2")).await, 409, "busy").await;
    let id = failed.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let rest = all(ui.attach(UiProtocol::AgUi, "c", Some(id)).await).await;
    assert_eq!(chunks(&rest).pop().unwrap(), end);
    assert!(!rest.contains("RUN_STARTED"), "the client continues after the chunk that it has");
}

#[tokio::test]
async fn a_thread_that_cannot_be_opened_and_a_run_that_fails() {
    let assistant = Assistant::builder(ScriptedModel::new(["x"])).build().unwrap();
    let ui = UiServer::new(assistant)
        .single_user()
        .threads(|_, _| async { Err("postgres://user:pass@db is down".into()) });
    let response = ui.post(UiProtocol::AiSdk, &says("go")).await;
    assert_eq!(response.status(), 503);
    assert!(!all(response).await.contains("pass"));

    let log = EveryLine::default();
    let _guard = hear(log.clone());
    let error = agent::model::ModelError::new(agent::model::ModelErrorKind::RateLimit, "key sk-1");
    let ui = server(ScriptedModel::new([reply().error(error)]));
    let text = all(ui.post(UiProtocol::AgUi, &runs("go", "r1")).await).await;
    assert!(!text.contains("sk-1"), "{text}");
    let page = ag_messages(&text);
    assert!(page.error.unwrap().contains("Reference: "));
    let log = log.text();
    let line = log.lines().find(|line| line.contains("a run of a front end failed")).unwrap();
    assert!(line.contains("key sk-1"), "the log has the reason: {line}");
}
