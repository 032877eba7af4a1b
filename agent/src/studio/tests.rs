//! The studio over HTTP.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Studio;
use crate::message::Message;
use crate::model::{ModelError, ModelErrorKind, reply};
use crate::store::{EntryKind, MemoryStore, SessionEntry, Store as _};
use crate::{Assistant, CancelToken, ScriptedModel, ToolArgs, ToolContext, ToolError, tool, tools};

/// Adds two numbers.
#[tool(read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Pays an invoice.
#[tool(approval = "always")]
fn pay(amount: u64, #[arg(secret)] pin: String) -> String {
    format!("{amount} paid, {} digits", pin.len())
}

struct Client {
    address: SocketAddr,
    token: String,
    stop: CancelToken,
}

impl Client {
    async fn of(assistant: Assistant) -> Self {
        Self::at([127, 0, 0, 1], assistant).await
    }

    async fn at(address: [u8; 4], assistant: Assistant) -> Self {
        let stop = CancelToken::new();
        let (url, serving) = Studio::new(assistant).until(stop.clone()).bind((address, 0)).await.unwrap();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
        let (address, token) = (address.parse().unwrap(), token.to_owned());
        tokio::spawn(serving);
        Self { address, token, stop }
    }

    async fn new() -> Self {
        let model = ScriptedModel::new([
            reply().tool_call("pay", r#"{"amount": "5", "pin": "hunter2"}"#),
            reply().text("Paid."),
        ]);
        Self::of(Assistant::builder(model).tools(tools![add, pay]).build().unwrap()).await
    }

    async fn send(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let text = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    fn head(&self, line: &str) -> String {
        let (address, token) = (self.address, &self.token);
        format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json"
        )
    }

    async fn get(&self, path: &str) -> String {
        self.send(&self.head(&format!("GET {path}")), "").await
    }

    async fn post(&self, path: &str, body: &Value) -> String {
        self.send(&self.head(&format!("POST {path}")), &body.to_string()).await
    }
}

fn json_of(response: &str) -> Value {
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {response}"))
}

fn has_status(response: &str, status: u16) -> bool {
    response.starts_with(&format!("HTTP/1.1 {status} "))
}

#[tokio::test(flavor = "current_thread")]
async fn requests_of_others_are_rejected() {
    let studio = Client::new().await;
    let (address, good) = (studio.address, studio.head("GET /api/info"));
    assert!(has_status(&studio.send(&good, "").await, 200));
    for (head, status) in [
        (good.replace(&format!("Host: {address}"), "Host: evil.example"), 403),
        (format!("{good}\r\nOrigin: http://evil.example"), 403),
        (format!("{good}\r\nOrigin: null"), 403),
        (format!("{good}\r\nOrigin: http://{address}"), 200),
        (good.replace(&studio.token, "0123"), 401),
        (format!("GET /api/info HTTP/1.1\r\nHost: {address}"), 401),
        (studio.head("DELETE /api/info"), 405),
        (studio.head("GET /api/%ff"), 400),
        (studio.head("POST /api/tools/add/check").replace("application/json", "text/plain"), 415),
    ] {
        let response = studio.send(&head, "").await;
        assert!(has_status(&response, status), "{head}: {response}");
    }
    // A body that is too long is rejected by its length alone, before it is sent.
    let long =
        format!("{}\r\nContent-Length: 9999999\r\nConnection: close\r\n\r\n", studio.head("POST /api/runs"));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(long.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(has_status(&response, 413), "{response}");
    // The studio's HTML page contains no secret, so it needs no token.
    let page = studio.send(&format!("GET / HTTP/1.1\r\nHost: {address}"), "").await;
    assert!(
        has_status(&page, 200) && page.contains("default-src 'none'") && page.contains("nosniff"),
        "{page}"
    );
    studio.stop.cancel("the test ends");
}

// Some systems other than Linux, such as macOS, do not have the address 127.0.0.2 by default.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "current_thread")]
async fn a_studio_is_open_at_every_loopback_address() {
    let assistant = Assistant::builder(ScriptedModel::new(["Hello."])).build().unwrap();
    let studio = Client::at([127, 0, 0, 2], assistant).await;
    assert!(has_status(&studio.get("/api/info").await, 200));
}

#[tokio::test(flavor = "current_thread")]
async fn the_url_of_a_remote_studio_has_its_first_host() {
    let assistant = Assistant::builder(ScriptedModel::new(["Hello."])).build().unwrap();
    for (host, origin) in
        [("studio.example:4000", "https://studio.example:4000"), ("2001:db8::1", "https://[2001:db8::1]")]
    {
        let studio = Studio::new(assistant.clone()).allow_remote([host, "other.example"], "0123456789abcdef");
        let (url, _) = studio.bind(([127, 0, 0, 1], 0)).await.unwrap();
        assert_eq!(url, format!("{origin}/#token=0123456789abcdef"));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn tools_are_listed_checked_and_called() {
    let studio = Client::new().await;
    let list = json_of(&studio.get("/api/tools").await);
    assert_eq!(list["tools"][0]["name"], "add");
    assert!(list["tools"][0]["tokens"].as_u64().unwrap() > 0, "{list}");
    assert_eq!(list["tools"][0]["findings"][0]["lint"], "undocumented_parameter");
    let schemas = json_of(&studio.get("/api/tools/add").await);
    assert_eq!(schemas["dialects"].as_array().unwrap().len(), 7);
    assert_eq!(json_of(&studio.get("/api/tools/pay").await)["secrets"], json!(["pin"]));
    let text = |text: &str| json!({"text": text});
    let checked = json_of(&studio.post("/api/tools/add/check", &text(r#"{"a": "1", "b": 2}"#)).await);
    assert_eq!((&checked["is_accepted"], &checked["coercions"][0]["path"]), (&json!(true), &json!("/a")));
    // The text of the arguments is validated unchanged: a big number, a missing parameter, broken JSON.
    for (wrong, path) in [(r#"{"a": 99999999999999999999, "b": 2}"#, "/a"), (r#"{"a": 1}"#, "/b"), ("{", "")]
    {
        let refused = json_of(&studio.post("/api/tools/add/check", &text(wrong)).await);
        assert_eq!(refused["is_accepted"], false, "{refused}");
        assert_eq!(refused["report"]["issues"][0]["path"], path, "{refused}");
    }
    let called = json_of(&studio.post("/api/tools/add/call", &text(r#"{"a": 40, "b": 2}"#)).await);
    assert_eq!(called["result"]["content"][0]["text"], "42");
    // A tool that changes something needs a confirmation, which shows no secret.
    let body = r#"{"amount": 5, "pin": "hunter2"}"#;
    let asked = studio.post("/api/tools/pay/call", &text(body)).await;
    assert!(has_status(&asked, 409) && !asked.contains("hunter2"), "{asked}");
    assert_eq!(json_of(&asked)["error"]["data"]["arguments"]["amount"], 5);
    let paid = studio.post("/api/tools/pay/call", &json!({"text": body, "confirmed": true})).await;
    assert!(paid.contains("5 paid, 7 digits") && !paid.contains("hunter2"), "{paid}");
    assert!(has_status(&studio.post("/api/tools/none/check", &text("{}")).await, 404));
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_waits_for_a_decision_and_is_seen_by_two_pages() {
    let studio = Client::new().await;
    let begun = json_of(&studio.post("/api/runs", &json!({"text": "Pay."})).await);
    let run = begun["run"].as_str().unwrap().to_owned();
    let decide = json!({"decisions": [{"id": format!("{run}/1/approval/0"), "decision": "allow"}]});
    // The conversation stays busy until the decision, and other browsers can see the run.
    let again = json!({"text": "Pay more.", "session": begun["session"]});
    assert!(has_status(&studio.post("/api/runs", &again).await, 409));
    let open = json_of(&studio.get("/api/sessions").await);
    assert_eq!((&open["open"][0]["run"], &open["open"][0]["is_active"]), (&begun["run"], &json!(true)));
    let events = format!("/api/runs/{run}/events");
    let (one, other) = (studio.get(&events), studio.get(&events));
    let answer = async {
        loop {
            let decided = studio.post(&format!("/api/runs/{run}/decide"), &decide).await;
            if has_status(&decided, 200) {
                break;
            }
            // The run does not wait for the decision yet.
            assert!(has_status(&decided, 409), "{decided}");
            tokio::task::yield_now().await;
        }
    };
    let (one, other, ()) = tokio::join!(one, other, answer);
    for seen in [&one, &other] {
        assert!(
            seen.contains("studio_waiting") && seen.contains("5 paid, 7 digits") && seen.contains("Paid."),
            "{seen}"
        );
        assert!(seen.contains("event: over") && !seen.contains("hunter2"), "{seen}");
    }
    let late = studio.post(&format!("/api/runs/{run}/decide"), &decide).await;
    assert!(has_status(&late, 409), "{late}");
    let late = studio.post(&format!("/api/runs/{run}/steer"), &json!({"text": "Quickly."})).await;
    assert!(has_status(&late, 409) && late.contains("is over"), "{late}");
    let steps = json_of(&studio.get(&format!("/api/runs/{run}/steps")).await);
    assert_eq!(steps.as_array().unwrap().len(), 2);
    assert!(steps[1]["end"].as_u64() >= steps[1]["at"].as_u64() && steps[1]["error"].is_null(), "{steps}");
    let runs = json_of(&studio.get("/api/runs").await);
    assert_eq!((&runs["runs"][0]["id"], &runs["runs"][0]["title"]), (&begun["run"], &json!("Pay.")));
    let window =
        json_of(&studio.get(&format!("/api/sessions/{}/window", begun["session"].as_str().unwrap())).await);
    assert!(window["used"].as_u64() > json_of(&studio.get("/api/window").await)["used"].as_u64(), "{window}");
    let result = json_of(&studio.get(&format!("/api/runs/{run}/calls/call_1")).await);
    assert_eq!(result["content"][0]["text"], "5 paid, 7 digits");
    let request = studio.get(&format!("/api/runs/{run}/steps/2/1")).await;
    assert!(has_status(&request, 200) && !request.contains("hunter2"), "{request}");
}

#[tokio::test(flavor = "current_thread")]
async fn changed_arguments_are_shown_without_secrets() {
    let studio = Client::new().await;
    let begun = json_of(&studio.post("/api/runs", &json!({"text": "Pay."})).await);
    let run = begun["run"].as_str().unwrap();
    let waits = studio.until_it_waits(run, 1).await;
    let changed = json!({"decision": "allow_with", "arguments": {"amount": 6, "pin": "swordfish"}});
    let answered = studio.answer(run, &waits["pending"][0]["id"], changed).await;
    assert!(has_status(&answered, 200), "{answered}");
    studio.get(&format!("/api/runs/{run}/events")).await;
    let result = json_of(&studio.get(&format!("/api/runs/{run}/calls/call_1")).await);
    assert_eq!(result["edited_args"], json!({"amount": 6, "pin": "[secret]"}), "{result}");
}

#[tokio::test(flavor = "current_thread")]
async fn runs_with_the_same_call_ids_have_their_own_results() {
    let call = |args: &str| reply().tool_call_with_id("c", "add", args);
    let model = ScriptedModel::new([
        call(r#"{"a": 1, "b": 2}"#),
        reply().text("3."),
        call(r#"{"a": 3, "b": 4}"#),
        reply().text("7."),
    ]);
    let studio = Client::of(Assistant::builder(model).tools(tools![add]).build().unwrap()).await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let begun = json_of(&studio.post("/api/runs", &json!({"text": "Add.", "session": "ann"})).await);
        runs.push(begun["run"].as_str().unwrap().to_owned());
        studio.get(&format!("/api/runs/{}/events", begun["run"].as_str().unwrap())).await;
    }
    for (run, sum) in runs.iter().zip(["3", "7"]) {
        let result = json_of(&studio.get(&format!("/api/runs/{run}/calls/c")).await);
        assert_eq!(result["content"][0]["text"], sum, "{result}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_is_cancelled_while_it_suspends_does_not_wait() {
    let model = ScriptedModel::new([reply().tool_call("pay", r#"{"amount": 5, "pin": "hunter2"}"#)]);
    let assistant = Assistant::builder(model).tools(tools![pay]).build().unwrap();
    let mut stream = assistant.prompt("Pay.").stream();
    let conversation = super::conversations::StudioConversation { id: "ann".into(), assistant };
    let run = super::run::StudioRun::new(std::sync::Arc::new(conversation), stream.handle());
    while stream.next().await.is_some() {}
    run.cancel("it is late");
    super::run::drive(run.clone(), stream, None).await;
    assert!(run.is_over());
}

#[derive(ToolArgs)]
struct Seat {
    #[arg(range(1..=20))]
    coach: u8,
    #[arg(secret)]
    card: String,
}

/// Books a seat.
#[tool(asks)]
async fn book(cx: &ToolContext) -> Result<String, ToolError> {
    let (seat, is_sure) = tokio::join!(cx.ask::<Seat>("Which seat?"), cx.ask::<bool>("Are you sure?"));
    let seat = seat?;
    Ok(format!("coach {}, {} digits, {}", seat.coach, seat.card.len(), is_sure?))
}

impl Client {
    /// Reads events until the run waits. `get` would not return, because the server keeps the connection open until the run is over.
    async fn until_it_waits(&self, run: &str, times: usize) -> Value {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "GET /api/runs/{run}/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.address, self.token
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut text, mut bytes) = (String::new(), vec![0; 16 << 10]);
        loop {
            let waits =
                text.lines().filter(|line| line.contains(r#""type":"studio_waiting""#)).nth(times - 1);
            if let Some(waits) = waits.and_then(|line| line.strip_prefix("data: ")) {
                return serde_json::from_str(waits).unwrap();
            }
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "{text}");
            text += std::str::from_utf8(&bytes[..read]).unwrap();
        }
    }

    async fn answer(&self, run: &str, id: &Value, answer: Value) -> String {
        let mut answer = answer;
        answer["id"] = id.clone();
        self.post(&format!("/api/runs/{run}/decide"), &json!({"decisions": [answer]})).await
    }
}

#[tokio::test(flavor = "current_thread")]
async fn questions_are_answered_one_by_one_and_the_run_resumes_with_the_last() {
    let expert = ScriptedModel::new([reply().tool_call("book", "{}"), reply().text("Booked.")]);
    let expert = Assistant::builder(expert).tools(tools![book]).build().unwrap();
    let model = ScriptedModel::new([
        reply().tool_call("expert", r#"{"task": "Book."}"#).tool_call("book", "{}"),
        reply().text("All is booked."),
    ]);
    let tools = tools![book].with(expert.as_tool("expert", "Books."));
    let studio = Client::of(Assistant::builder(model).tools(tools).build().unwrap()).await;
    let begun = json_of(&studio.post("/api/runs", &json!({"text": "Book."})).await);
    let run = begun["run"].as_str().unwrap();
    let waits = studio.until_it_waits(run, 1).await;
    let pending = waits["pending"].as_array().unwrap();
    assert_eq!(pending.len(), 4, "{waits}");
    assert!(pending[0].get("path").is_none() && pending[3]["path"][0]["tool"] == "expert", "{waits}");

    let seat = |coach: &str| json!({"decision": "answer", "text": format!(r#"{{"coach": {coach}, "card": "4711"}}"#)});
    let (first, second) = (&pending[0]["id"], &pending[1]["id"]);
    let refused = studio.answer(run, first, seat("99")).await;
    assert!(has_status(&refused, 400) && !refused.contains("4711"), "{refused}");
    let error = &json_of(&refused)["error"];
    assert_eq!(
        (&error["code"], &error["data"]["report"]["issues"][0]["path"]),
        (&json!("input_refused"), &json!("/coach"))
    );
    let text = |text: &str| json!({"decision": "answer", "text": text});
    assert!(has_status(&studio.answer(run, first, text("{")).await, 400));
    assert!(has_status(&studio.answer(run, first, json!({"decision": "allow"})).await, 400));
    assert!(has_status(&studio.answer(run, &json!("other"), seat("9")).await, 404));

    // An answer is kept until all questions are answered.
    assert!(has_status(&studio.answer(run, first, seat("9")).await, 200));
    assert!(has_status(&studio.answer(run, first, seat("8")).await, 409), "twice");
    assert!(has_status(&studio.answer(run, second, text(r#"{"value": "true"}"#)).await, 200));
    assert!(has_status(&studio.answer(run, &pending[2]["id"], json!({"decision": "decline"})).await, 200));
    assert!(has_status(&studio.answer(run, &pending[3]["id"], json!({"decision": "dismiss"})).await, 200));
    let events = studio.get(&format!("/api/runs/{run}/events")).await;
    assert!(events.contains("event: over") && !events.contains("4711"), "{events}");
    assert!(events.contains("coach 9, 4 digits, true") && events.contains("All is booked."), "{events}");
    assert_eq!(events.matches("studio_answered").count(), 3);
    let inner: Vec<Value> = events
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .filter(|event: &Value| event["path"][0]["tool"] == "expert")
        .collect();
    assert!(
        inner.iter().any(|event| event["type"] == "tool_execution_end" && event["code"] == "declined"),
        "{inner:?}"
    );
    assert!(
        inner.iter().any(|event| event["type"] == "message_end" && event["message"]["role"] == "assistant")
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_of_the_store_is_continued_by_another_studio() {
    let store = MemoryStore::new();
    for (messages, said) in [(0, "Hello."), (2, "Hello again.")] {
        let assistant = Assistant::builder(ScriptedModel::new([said])).store(store.clone()).build().unwrap();
        let studio = Client::of(assistant).await;
        let session = json_of(&studio.get("/api/sessions/ann").await);
        assert_eq!(session["total"], messages, "{session}");
        let begun = json_of(&studio.post("/api/runs", &json!({"text": "Hi", "session": "ann"})).await);
        let events = studio.get(&format!("/api/runs/{}/events", begun["run"].as_str().unwrap())).await;
        assert!(events.contains(said) && events.contains("event: over"), "{events}");
        studio.stop.cancel("the test ends");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn sessions_of_the_store_are_listed_in_pages() {
    let store = MemoryStore::new();
    for at in 0..120 {
        // Each ordinary session is followed by the session of a sub-agent.
        for name in [format!("ann/{at:03}"), format!("ann/run_{at}/1/tool/0/2/tool/1")] {
            let entry = SessionEntry::new(EntryKind::message(Message::user(format!("Hi, {at}."))));
            store.append(&name, 0, vec![entry.written_by("w", at)]).await.unwrap();
        }
    }
    let assistant = Assistant::builder(ScriptedModel::new(["Hello."])).store(store).build().unwrap();
    let studio = Client::of(assistant).await;
    for (with_children, count) in [("", 120), ("&children=1", 240)] {
        let (mut listed, mut after) = (Vec::new(), String::new());
        loop {
            let page = json_of(&studio.get(&format!("/api/stored?query=ANN%2f{with_children}{after}")).await);
            let sessions = page["sessions"].as_array().unwrap().clone();
            assert!(sessions.len() <= 50, "{page}");
            listed.extend(sessions);
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={}", next.replace('/', "%2f"));
        }
        let (times, children): (Vec<_>, Vec<_>) =
            listed.iter().map(|one| (one["at"].as_i64().unwrap(), one["is_of_child"] == true)).unzip();
        assert!(times.is_sorted_by(|one, next| one >= next), "the latest first: {times:?}");
        assert_eq!(
            (listed.len(), children.iter().filter(|is_of_child| **is_of_child).count()),
            (count, count - 120)
        );
    }
    let page = json_of(&studio.get("/api/stored?query=ANN%2f").await);
    let seventh =
        json!({"id": "ann/112", "entries": 1, "at": 112, "title": "Hi, 112.", "is_of_child": false});
    assert_eq!(page["sessions"][7], seventh);
    assert!(studio.get("/api/stored?after=nonsense").await.contains("400"));
    let one = json_of(&studio.get("/api/stored?query=ann/11").await);
    assert_eq!(one["sessions"].as_array().unwrap().len(), 10, "{one}");
    let without = Client::new().await;
    assert!(json_of(&without.get("/api/stored").await)["cannot_list"].as_str().unwrap().contains("no store"));
}

#[cfg(feature = "openai")]
#[tokio::test(flavor = "current_thread")]
async fn a_request_has_its_body_without_secrets() {
    use crate::message::{AssistantMessage, ToolCall};
    use crate::model::{ModelRequest, StepCx};
    let model = crate::provider::http::HttpModel::builder("openai/gpt-5")
        .key("sk-123")
        .base_url("http://127.0.0.1:9");
    let assistant = Assistant::builder(model.build().unwrap()).tools(tools![pay]).build().unwrap();
    let call = ToolCall::new("1", "pay", r#"{"amount": 5, "pin": "hunter2"}"#);
    let messages =
        [Message::user("Pay."), AssistantMessage::new([call.into()]).into(), Message::user("Did you?")];
    let shared = super::StudioShared::new(
        &assistant,
        crate::serve::HostPolicy::new(None, &[]).unwrap(),
        String::new(),
    );
    let key = crate::step_key::StepKey::new("run-1", 1, crate::step_key::StepKind::Model, 0);
    let request = ModelRequest::new(messages).with_tools(assistant.registry().definitions());
    drop(shared.template.model_handle().stream(&StepCx::new().with_key(key), &request));
    let shown = shared.requests.of_run("run-1")[0].shown(&shared.secrets);
    let body = shown["body"].as_str().unwrap();
    assert!(body.contains(r#""model":"gpt-5""#) && body.contains("Did you?"), "{body}");
    assert!(!shown.to_string().contains("hunter2") && !shown.to_string().contains("sk-123"), "{shown}");
}

/// Starts a server that fails once, and then sends these Chat Completions chunks, one for each request. Returns its URL.
#[cfg(feature = "openai")]
async fn provider(replies: Vec<String>) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let busy = "HTTP/1.1 503 Busy\r\nretry-after-ms: 1\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
        .to_owned();
    let streams = replies.into_iter().map(|reply| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        format!("{head}data: {reply}\n\ndata: [DONE]\n\n")
    });
    let responses: Vec<String> = std::iter::once(busy).chain(streams).collect();
    tokio::spawn(async move {
        for response in responses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 64 << 10];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    url
}

#[cfg(feature = "openai")]
#[tokio::test(flavor = "current_thread")]
async fn requests_of_sub_agents_have_their_attempts_and_responses() {
    use crate::provider::http::{HttpModel, HttpOptions};
    let delta = |delta: Value, reason: &str| {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}).to_string()
    };
    let call = |name: &str, args: &str| json!({"tool_calls": [{"index": 0, "id": name, "function": {"name": name, "arguments": args}}]});
    let url = provider(vec![
        delta(call("add", r#"{"a": 1, "b": 2}"#), "tool_calls"),
        delta(call("pay", r#"{"amount": "few", "pin": "hunter2"}"#), "tool_calls"),
        delta(json!({"content": "It is done."}), "stop"),
    ])
    .await;
    let model = HttpModel::builder("openai/gpt-5")
        .protocol(crate::provider::openai::OpenAiChat::default())
        .key("sk-0123456789")
        .base_url(url)
        .options(HttpOptions::default().without_proxy());
    let expert = Assistant::builder(model.build().unwrap()).tools(tools![add, pay]).build().unwrap();
    let model = ScriptedModel::new([
        reply().tool_call_with_id("c1", "ask", r#"{"task": "Add."}"#),
        reply().text("Good."),
    ]);
    let assistant = Assistant::builder(model).tools(expert.as_tool("ask", "Adds.")).build().unwrap();
    let studio = Client::of(assistant).await;
    let begun = json_of(&studio.post("/api/runs", &json!({"text": "Hi"})).await);
    let run = begun["run"].as_str().unwrap();
    let events = studio.get(&format!("/api/runs/{run}/events")).await;
    assert!(events.contains("It is done.") && events.contains("event: over"), "{events}");

    let steps = json_of(&studio.get(&format!("/api/runs/{run}/steps")).await);
    let within = format!("{run}/1/tool/0");
    let runs: Vec<_> = steps.as_array().unwrap().iter().map(|step| step["run"].as_str().unwrap()).collect();
    assert_eq!(runs, [run, &within, &within, &within, run]);
    let statuses: Vec<_> =
        steps[1]["exchanges"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, [503, 200], "{steps}");
    assert_eq!(steps[0]["exchanges"], json!([]));

    let mut received = Vec::new();
    for turn in 1..=3 {
        let path = format!("/api/runs/{run}/steps/{turn}/1?run={}", within.replace('/', "%2f"));
        let shown = json_of(&studio.get(&path).await);
        assert!(shown["body"].as_str().unwrap().contains(r#""model":"gpt-5""#), "{shown}");
        for secret in ["hunter2", "sk-0123456789"] {
            assert!(!shown.to_string().contains(secret), "{turn}: {shown}");
        }
        assert!(shown["received"]["length"].as_u64().unwrap() > 50, "{shown}");
        received.push(shown["received"]["body"].clone());
    }
    assert!(received[0].as_str().unwrap().contains("tool_calls"), "{received:?}");
    assert_eq!(received[1], Value::Null, "a call with secret arguments");
    assert!(
        received[2].as_str().unwrap().contains("It is done.")
            && received[2].as_str().unwrap().contains("[DONE]")
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_failed_reply_is_told_with_its_error() {
    let error = ModelError::new(ModelErrorKind::Overloaded, "too much");
    let model = ScriptedModel::new([reply().text("I am").error(error)]);
    let studio = Client::of(Assistant::builder(model).build().unwrap()).await;
    let begun = json_of(&studio.post("/api/runs", &json!({"text": "Hi"})).await);
    let run = begun["run"].as_str().unwrap();
    let events = studio.get(&format!("/api/runs/{run}/events")).await;
    assert!(events.contains("event: over"), "{events}");
    let steps = json_of(&studio.get(&format!("/api/runs/{run}/steps")).await);
    assert!(steps[0]["error"].as_str().unwrap().contains("too much"), "{steps}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_conversation_that_waits_for_a_decision_stays_open() {
    let studio = Client::new().await;
    let begun = json_of(&studio.post("/api/runs", &json!({"text": "Pay."})).await);
    let session = format!("/api/sessions/{}", begun["session"].as_str().unwrap());
    while json_of(&studio.get(&session).await)["total"] != 2 {
        tokio::task::yield_now().await;
    }
    for number in 0..100 {
        studio.get(&format!("/api/sessions/other-{number}")).await;
    }
    let waiting = json_of(&studio.get(&session).await);
    assert_eq!((&waiting["total"], &waiting["is_active"]), (&json!(2), &json!(true)), "{waiting}");
    let open = json_of(&studio.get("/api/sessions").await);
    assert_eq!(open["open"].as_array().unwrap().len(), 64);
}
