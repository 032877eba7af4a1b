//! Questions over MCP: our server asks its client, and our client asks the application.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::mcp::{ClientConfig, McpClient, McpServer};
use agent::message::ToolCall;
use agent::model::reply;
use agent::tool::{Question, QuestionInput};
use agent::{
    Assistant, Decisions, Registry, RunStop, ScriptedModel, SuspendedRun, ToolArgs, ToolContext, ToolError,
    Value, json, tool, tools,
};

use crate::mcp_client::FIXTURE;
use crate::mcp_mock::{Answer, Mock};
use crate::mcp_support::{Era, Reply, Running, message, post, run};

#[derive(ToolArgs)]
struct Seat {
    /// The number of the coach.
    #[arg(range(1..=20))]
    coach: u8,
    window: bool,
}

static BODIES: AtomicU32 = AtomicU32::new(0);

/// Books a seat.
#[tool(asks)]
async fn book(to: String, cx: &ToolContext) -> Result<String, ToolError> {
    BODIES.fetch_add(1, Ordering::SeqCst);
    let seat: Seat = cx.ask(format!("Which seat to {to}?")).await?;
    let is_sure: bool = cx.ask("Are you sure?").await?;
    Ok(format!("{to}, coach {}, window: {}, sure: {is_sure}", seat.coach, seat.window))
}

static KEYS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Pays once for each key.
#[tool(asks)]
async fn pay_once(cx: &ToolContext) -> Result<String, ToolError> {
    KEYS.lock().unwrap().push(cx.idempotency_key().to_owned());
    cx.ask::<bool>("Sure?").await.map(|sure| sure.to_string()).map_err(ToolError::from)
}

/// Pays, and asks afterwards.
#[tool]
async fn pay(cx: &ToolContext) -> Result<String, ToolError> {
    cx.ask::<bool>("A receipt?").await.map(|receipt| receipt.to_string()).map_err(ToolError::from)
}

#[derive(ToolArgs)]
struct Login {
    #[arg(secret)]
    password: String,
}

/// Logs in.
#[tool(read_only)]
async fn log_in(cx: &ToolContext) -> Result<String, ToolError> {
    let login: Login = cx.ask("Your password?").await?;
    Ok(login.password)
}

/// Asks for what has no form.
#[tool(read_only)]
async fn nested(cx: &ToolContext) -> Result<String, ToolError> {
    let all: Vec<Vec<u8>> = cx.ask("All of it?").await?;
    Ok(all.len().to_string())
}

async fn server() -> Running {
    run(McpServer::new(tools![book, pay, log_in, nested])).await
}

/// A call of the newest version, by a client that can ask.
async fn ask(server: &Running, tool: &str, arguments: Value, more: Value) -> Reply {
    let mut params = json!({"name": tool, "arguments": arguments});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let headers =
        format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
    post(server.address, &headers, &message("tools/call", &params)).await
}

fn accept(number: &str, content: impl Into<Value>, state: &Value) -> Value {
    let content = content.into();
    json!({"inputResponses": {number: {"action": "accept", "content": content}}, "requestState": state})
}

#[tokio::test]
async fn a_call_that_asks_is_repeated_with_the_answers() {
    let server = server().await;
    let rome = json!({"to": "Rome"});
    let first = ask(&server, "book", rome.clone(), json!({})).await.json()["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    let request = &first["inputRequests"]["0"];
    assert_eq!(
        (&request["method"], &request["params"]["message"]),
        (&json!("elicitation/create"), &json!("Which seat to Rome?"))
    );
    let schema = &request["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["coach"]["maximum"], 20, "{schema:#}");
    assert_eq!(schema["required"], json!(["coach", "window"]));

    // The first answer does not fit, the second does.
    let wrong = accept("0", json!({"coach": 70, "window": true}), &first["requestState"]);
    let again = ask(&server, "book", rome.clone(), wrong).await.json()["result"].clone();
    let asked = again["inputRequests"]["0"]["params"]["message"].as_str().unwrap();
    assert!(asked.contains("did not fit") && asked.contains("coach"), "{asked}");
    let right = accept("0", json!({"coach": 7, "window": true}), &again["requestState"]);
    let second = ask(&server, "book", rome.clone(), right).await.json()["result"].clone();
    assert_eq!(second["inputRequests"]["1"]["params"]["message"], "Are you sure?");

    // Without an answer, it asks the same again.
    let nothing = json!({"requestState": second["requestState"]});
    let same = ask(&server, "book", rome.clone(), nothing).await.json()["result"].clone();
    assert_eq!(same["inputRequests"], second["inputRequests"]);
    // The same arguments in another order are the same call.
    let sure = accept("1", json!({"value": true}), &same["requestState"]);
    let done = ask(&server, "book", rome.clone(), sure).await;
    assert_eq!(done.text(), "Rome, coach 7, window: true, sure: true");

    // Declined, and dismissed.
    for (action, text) in
        [("decline", "the person declined to answer"), ("cancel", "the person dismissed the question")]
    {
        let answer =
            json!({"inputResponses": {"0": {"action": action}}, "requestState": first["requestState"]});
        assert_eq!(ask(&server, "book", rome.clone(), answer).await.text(), format!("isError: {text}"));
    }
}

#[tokio::test]
async fn the_key_of_a_call_is_not_the_choice_of_a_client_and_stays_with_its_answers() {
    let server = run(McpServer::new(tools![pay_once])).await;
    // All requests have the same id.
    let first = ask(&server, "pay_once", json!({}), json!({})).await.json()["result"].clone();
    let sure = accept("0", json!({"value": true}), &first["requestState"]);
    assert_eq!(ask(&server, "pay_once", json!({}), sure).await.text(), "true");
    ask(&server, "pay_once", json!({}), json!({})).await;
    let keys = KEYS.lock().unwrap().clone();
    assert!(keys.len() == 3 && keys[0] == keys[1] && keys[1] != keys[2], "{keys:?}");
}

#[tokio::test]
async fn a_state_counts_for_one_call_and_unchanged() {
    let server = server().await;
    let rome = json!({"to": "Rome"});
    let first = ask(&server, "book", rome.clone(), json!({})).await.json()["result"].clone();
    let state = first["requestState"].as_str().unwrap();
    let seat = json!({"coach": 7, "window": true});
    let other = ask(&server, "book", json!({"to": "Bern"}), accept("0", seat.clone(), &json!(state))).await;
    assert_eq!(other.code(), -32602, "of other arguments");
    let other = ask(&server, "nested", json!({}), accept("0", seat.clone(), &json!(state))).await;
    assert_eq!(other.code(), -32602, "of another tool");
    for at in (0..state.len()).step_by(7) {
        let mut changed = state.as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        let reply = ask(&server, "book", rome.clone(), accept("0", seat.clone(), &json!(changed))).await;
        // The last character of base64 may have bits that do not count.
        let is_refused = reply.json()["error"]["code"] == -32602;
        assert!(is_refused || at == state.len() - 1, "changed at {at}");
    }
    let elsewhere = self::server().await;
    let reply = ask(&elsewhere, "book", rome.clone(), accept("0", seat.clone(), &json!(state))).await;
    assert_eq!(reply.code(), -32602, "of another process");
    for malformed in [
        json!({"inputResponses": [], "requestState": state}),
        json!({"inputResponses": {}, "requestState": 7}),
        json!({"inputResponses": {"0": {"action": "perhaps"}}, "requestState": state}),
    ] {
        assert_eq!(ask(&server, "book", rome.clone(), malformed).await.code(), -32602);
    }

    // Two processes with one key.
    let shared = || McpServer::new(tools![book]).state_key([7; 32]);
    let (one, two) = (run(shared()).await, run(shared()).await);
    let first = ask(&one, "book", rome.clone(), json!({})).await.json()["result"].clone();
    let second = ask(&two, "book", rome, accept("0", seat, &first["requestState"])).await;
    assert_eq!(second.json()["result"]["inputRequests"]["1"]["params"]["message"], "Are you sure?");
    let error =
        McpServer::new(tools![book]).state_key([7; 31]).bind(([127, 0, 0, 1], 0)).await.err().unwrap();
    assert!(error.to_string().starts_with("there is no key for the state of questions"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_asked_over_mcp_is_refused() {
    let server = server().await;
    let text = ask(&server, "log_in", json!({}), json!({})).await.text();
    assert!(text.contains("asks for a secret"), "{text}");
    let text = ask(&server, "nested", json!({}), json!({})).await.text();
    assert!(text.contains("has no form"), "{text}");
    let text = ask(&server, "pay", json!({}), json!({})).await.text();
    assert!(text.contains("cannot wait for an answer"), "{text}");
    // A client without the capability learns which one is missing.
    let reply = crate::mcp_support::modern(
        server.address,
        "",
        "tools/call",
        json!({"name": "book", "arguments": {"to": "x"}}),
    )
    .await;
    assert_eq!(reply.code(), -32021);
    assert!(reply.json()["error"]["data"].to_string().contains("elicitation"), "{reply:?}");
}

fn assistant(client: &McpClient, tool: &str) -> agent::AssistantBuilder {
    let model = ScriptedModel::new([
        reply().tool_call(format!("trips__{tool}"), r#"{"to": "Rome"}"#),
        reply().text("Done."),
    ]);
    Assistant::builder(model).mcp("trips", client)
}

fn answer(question: &Question) -> Value {
    if question.message.contains("seat") { json!({"coach": "7", "window": true}) } else { json!(true) }
}

#[tokio::test]
async fn our_client_asks_the_function_of_the_assistant() {
    let server = server().await;
    // The person takes longer than a call may, whose time stands still meanwhile.
    let config = ClientConfig::http(server.url()).answer_questions().longest_call(Duration::from_secs(2));
    let client = McpClient::connect(config).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = seen.clone();
    let assistant = assistant(&client, "book")
        .on_question(move |question: Question| {
            let mut asked = asked.lock().unwrap();
            asked.push((question.server.clone(), question.message.clone(), question.report.is_some()));
            let is_first = asked.len() == 1;
            async move {
                if is_first {
                    tokio::time::sleep(Duration::from_millis(2_500)).await;
                }
                QuestionInput::Accept(if is_first { json!({"coach": 99}) } else { answer(&question) })
            }
        })
        .build()
        .unwrap();
    assistant.prompt("Go").await.unwrap();
    assert_eq!(assistant.messages().get(2).unwrap().text(), "Rome, coach 7, window: true, sure: true");
    let seen = seen.lock().unwrap().clone();
    let messages: Vec<_> = seen.iter().map(|(_, message, again)| (message.as_str(), *again)).collect();
    assert_eq!(
        messages,
        [("Which seat to Rome?", false), ("Which seat to Rome?", true), ("Are you sure?", false)]
    );
    assert!(seen.iter().all(|(server, ..)| server.is_some()), "{seen:?}");
    client.close().await;
}

#[tokio::test]
async fn without_a_function_the_run_waits_and_the_same_call_continues() {
    let server = server().await;
    let client = McpClient::connect(ClientConfig::http(server.url()).answer_questions()).await.unwrap();
    let build = || assistant(&client, "book").approval_key([5; 32]).build().unwrap();
    let first = build();
    let mut output = first.prompt("Go").await.unwrap();
    for expected in ["Which seat to Rome?", "Are you sure?"] {
        assert_eq!(output.stop, RunStop::Suspended);
        let stored = serde_json::to_string(&output.snapshot.unwrap()).unwrap();
        let suspended: SuspendedRun = serde_json::from_str(&stored).unwrap();
        let [question] = &suspended.questions()[..] else { panic!("{suspended:?}") };
        assert_eq!(question.message, expected);
        let decisions = Decisions::new().accept(question, answer(question));
        // In another process: its model says only the last reply.
        let model = ScriptedModel::new(["Done."]);
        let other = Assistant::builder(model).mcp("trips", &client).approval_key([5; 32]).build().unwrap();
        output = other.resume(&suspended, decisions).await.unwrap();
        if output.stop != RunStop::Suspended {
            assert_eq!(other.messages().get(2).unwrap().text(), "Rome, coach 7, window: true, sure: true");
        }
    }
    assert_eq!(output.text(), "Done.");
    client.close().await;
}

#[tokio::test]
async fn without_the_setting_or_a_run_nobody_is_asked() {
    let server = server().await;
    let silent = McpClient::connect(ClientConfig::http(server.url())).await.unwrap();
    let registry = Registry::new(&silent).unwrap();
    let name = registry.names().find(|name| name.ends_with("book")).unwrap().to_owned();
    let call = ToolCall::new("1", &*name, r#"{"to": "Rome"}"#);
    let outcome = registry.call(&call, &ToolContext::new()).await.outcome;
    assert!(outcome.text().contains("-32021"), "{}", outcome.text());
    silent.close().await;

    let client = McpClient::connect(ClientConfig::http(server.url()).answer_questions()).await.unwrap();
    let registry = Registry::new(&client).unwrap();
    let outcome = registry.call(&call, &ToolContext::new()).await.outcome;
    assert_eq!(outcome.text(), "the person declined to answer");
    client.close().await;
}

#[tokio::test]
async fn over_standard_input_older_clients_are_asked_while_the_body_waits() {
    for era in [Era::Legacy, Era::Modern] {
        let config = era.of(ClientConfig::command(FIXTURE).arg("stdio").name("trips")).answer_questions();
        let client = McpClient::connect(config).await.unwrap();
        let asking = assistant(&client, "ask_seat");
        let asking =
            asking.on_question(|question: Question| async move { QuestionInput::Accept(answer(&question)) });
        let asking = asking.build().unwrap();
        asking.prompt("Go").await.unwrap();
        assert_eq!(asking.messages().get(2).unwrap().text(), "Rome: true", "{era:?}");
        let alone = assistant(&client, "ask_seat").build().unwrap();
        let output = alone.prompt("Go").await.unwrap();
        if era == Era::Legacy {
            assert_eq!(alone.messages().get(2).unwrap().text(), "the person declined to answer");
        } else {
            assert_eq!(output.stop, RunStop::Suspended);
        }
        client.close().await;
    }
}

#[tokio::test]
async fn the_model_is_told_what_a_server_asks_for_in_vain() {
    let url = Mock::start(|_, _, _| Answer::tools(&["model", "nothing", "endless"]))
        .on_call(|tool, _| {
            let message = json!({"role": "user", "content": {"type": "text", "text": "Hi"}});
            let sampling = json!({"messages": [message], "maxTokens": 1});
            let request = json!({"method": "sampling/createMessage", "params": sampling});
            Answer::Result(match tool {
                "model" => json!({"resultType": "input_required", "inputRequests": {"0": request}}),
                "nothing" => json!({"resultType": "input_required", "inputRequests": {}}),
                _ => json!({"resultType": "input_required", "requestState": "again"}),
            })
        })
        .run()
        .await;
    let client = McpClient::connect(ClientConfig::http(url).name("m").legacy()).await.unwrap();
    let registry = Registry::new(&client).unwrap();
    for (tool, text) in [
        ("model", "The server asks for a model's reply, which is not available here."),
        ("nothing", "The server asks for input, but does not say which."),
        ("endless", "The server was called 10 times, and still asks for input."),
    ] {
        let call = ToolCall::new("1", format!("m__{tool}"), "{}");
        let outcome = registry.call(&call, &ToolContext::new()).await.outcome;
        assert_eq!((outcome.code(), &*outcome.text()), (Some("input_required"), text));
    }
}
