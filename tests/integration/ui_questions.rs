//! Questions of tools in both protocols: how a page is asked, what it answers, and what of it is shown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::model::{ScriptedReply, reply};
use agent::store::MemoryStore;
use agent::testing::EventLog;
use agent::tool::QuestionInput;
use agent::ui::{UiEncoder, UiOptions, UiProtocol, UiRequest, UiRequestError, UiServer};
use agent::{
    Assistant, AssistantBuilder, Decisions, Event, ScriptedModel, SuspendedRun, ToolArgs, ToolContext,
    ToolError, json, tool, tools,
};
use serde_json::Value;

use crate::ui_encode::lines;
use crate::ui_readers::{AgUiReader, AiSdkReader};
use crate::ui_server::{ag_messages, ai_message, all, chunks, runs, says};

/// What bodies got.
type Answers = Mutex<Vec<String>>;

/// An even number, which its schema does not say.
#[derive(ToolArgs)]
#[serde(try_from = "u8")]
struct Even(u8);

impl TryFrom<u8> for Even {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if number.is_multiple_of(2) { Ok(Self(number)) } else { Err("it is odd".into()) }
    }
}

#[derive(ToolArgs)]
struct Seat {
    /// The number of the coach.
    coach: Even,
    #[arg(secret)]
    card: String,
}

/// Books a seat.
#[tool(asks)]
async fn book(to: String, cx: &ToolContext, answers: &Answers) -> Result<String, ToolError> {
    let seat: Seat = cx.ask(format!("Which seat to {to}?")).await?;
    answers.lock().unwrap().push(format!("{} {}", seat.coach.0, seat.card));
    Ok(format!("coach {} to {to}", seat.coach.0))
}

/// Looks at two things.
#[tool(read_only)]
async fn look(cx: &ToolContext) -> Result<String, ToolError> {
    let (first, second) = tokio::join!(cx.ask::<bool>("First?"), cx.ask::<Value>("Second?"));
    Ok(format!("{} {}", first?, second?))
}

/// Adds two numbers.
#[tool(inline)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Sends money.
#[tool(approval = "always")]
fn send(amount: u64) -> String {
    format!("{amount} sent")
}

fn builder(answers: &Arc<Answers>, replies: Vec<ScriptedReply>) -> AssistantBuilder {
    let model = ScriptedModel::new(replies);
    Assistant::builder(model).tools(tools![book, look, add, send]).shared_state(answers.clone())
}

fn booking() -> Vec<ScriptedReply> {
    let calls = reply().tool_call("add", r#"{"a": 1, "b": 2}"#).tool_call("book", r#"{"to": "Rome"}"#);
    vec![calls, reply().text("done")]
}

fn values(text: &str) -> Vec<Value> {
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn odd() -> Value {
    json!({"coach": 7, "card": "4711-0815"})
}

fn even() -> Value {
    json!({"coach": "8", "card": "4711-0815"})
}

/// The body of a page of the AI SDK that answers the request of a call.
fn answers_call(id: &Value, approved: bool, inputs: &Value) -> Vec<u8> {
    let part = json!({"type": "tool-book", "toolCallId": "call_2", "state": "approval-responded",
        "approval": {"id": id, "approved": approved}});
    let message = json!({"id": "r", "role": "assistant", "parts": [part]});
    json!({"id": "c", "messages": [message], "inputs": inputs}).to_string().into_bytes()
}

/// The body of a client of AG-UI that answers interrupts.
fn resumes(entries: &Value) -> Vec<u8> {
    json!({"threadId": "c", "runId": "r2", "protocolVersion": "1.0", "messages": [], "resume": entries})
        .to_string()
        .into_bytes()
}

fn decode(protocol: UiProtocol, body: &[u8]) -> UiRequest {
    UiRequest::decode(protocol, body).unwrap()
}

/// Every part of a run that is answered by these inputs, as lines of a protocol: one encoder, and a new one for each part.
async fn encoded(protocol: UiProtocol, inputs: &[QuestionInput]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let answers = Arc::new(Answers::default());
    let assistant = builder(&answers, booking()).build().unwrap();
    let log = EventLog::new();
    assistant.subscribe(log.listener()).forever();
    let options = UiOptions::default().show_results();
    let new = |request: &UiRequest| UiEncoder::new(protocol, assistant.registry(), &options, request);
    let write = |encoder: &mut UiEncoder, events: &[Event]| {
        let mut chunks = Vec::new();
        for event in events {
            encoder.encode(event, &mut chunks);
        }
        encoder.end(&mut chunks);
        lines(&chunks)
    };
    let mut encoder = new(&UiRequest::new("thread"));
    let mut snapshot = assistant.prompt("go").await.unwrap().snapshot;
    let (mut parts, mut fresh) = (vec![write(&mut encoder, &log.events())], Vec::new());
    for input in inputs {
        log.clear();
        let suspended = snapshot.expect("it asks");
        let decisions = Decisions::new().input(&suspended.questions()[0], input.clone());
        snapshot = assistant.resume(&suspended, decisions).await.unwrap().snapshot;
        parts.push(write(&mut encoder, &log.events()));
        fresh.push(write(&mut new(&UiRequest::new("thread")), &log.events()));
    }
    assert!(snapshot.is_none());
    let answers = answers.lock().unwrap().clone();
    (parts, fresh, answers)
}

#[tokio::test]
async fn a_question_as_chunks() {
    let inputs = [QuestionInput::Accept(odd()), QuestionInput::Accept(even())];
    let (ai, fresh, answers) = encoded(UiProtocol::AiSdk, &inputs).await;
    assert_eq!(answers, ["8 4711-0815"]);
    expect_test::expect_file!["../golden/ui/question.ai-sdk.txt"].assert_eq(&ai.join("\n"));
    let mut page = AiSdkReader::default();
    for part in &ai {
        page.next_response();
        page.read_all(&values(part));
        page.assert_ended();
    }
    assert_eq!(page.finish.as_deref(), Some("stop"));
    let (ag, fresh_ag, _) = encoded(UiProtocol::AgUi, &inputs).await;
    expect_test::expect_file!["../golden/ui/question.ag-ui.txt"].assert_eq(&ag.join("\n"));
    let mut page = AgUiReader::default();
    for part in &ag {
        page.read_all(&values(part));
        page.assert_ended();
    }
    assert_eq!(page.outcome["type"], "success");
    // An encoder that did not ask shows the ends alike, and no input leaves.
    for text in [&ai, &ag, &fresh, &fresh_ag].into_iter().flatten() {
        assert!(!text.contains("4711"), "{text}");
    }
    assert!(fresh[1].contains("coach 8 to Rome") && fresh_ag[1].contains("coach 8 to Rome"), "{fresh:?}");

    // A person who declines: the call failed, and nothing stays open.
    let (ai, _, answers) = encoded(UiProtocol::AiSdk, &[QuestionInput::Decline]).await;
    assert!(answers.is_empty() && ai[1].contains(r#""approved":true,"reason":"not answered""#), "{ai:?}");
    assert!(ai[1].contains("tool-output-error") && ai[1].contains("declined"), "{ai:?}");
}

async fn suspended(replies: Vec<ScriptedReply>) -> (Assistant, SuspendedRun, Arc<Answers>) {
    let answers = Arc::new(Answers::default());
    let assistant = builder(&answers, replies).build().unwrap();
    let suspended = assistant.prompt("go").await.unwrap().snapshot.unwrap();
    (assistant, suspended, answers)
}

fn error(request: &UiRequest, suspended: &SuspendedRun) -> (u16, &'static str) {
    let error = request.decisions(suspended).unwrap_err();
    (error.status(), error.code())
}

#[tokio::test]
async fn answers_of_pages_become_inputs() {
    let (assistant, run, answers) = suspended(booking()).await;
    let id = json!(run.questions()[0].request_id);
    let key = run.questions()[0].request_id.clone();
    let ai = |approved, inputs: &Value| decode(UiProtocol::AiSdk, &answers_call(&id, approved, inputs));
    let given = ai(true, &json!({&key: even()}));
    let shown = format!("{given:?}");
    assert!(shown.contains("[Input") && given.extra.is_empty() && !shown.contains("4711"), "{shown}");

    // Without an input, with one for another question, with one that does not fit.
    assert_eq!(error(&ai(true, &json!({})), &run), (400, "unanswered"));
    assert_eq!(error(&ai(true, &json!({"other": 1})), &run), (400, "unanswered"));
    let wrong = ai(true, &json!({&key: {"coach": "many", "card": 4711}})).decisions(&run).unwrap_err();
    let UiRequestError::InputRefused { report, .. } = &wrong else { panic!("{wrong:?}") };
    assert!(report.contains("/coach") && !report.contains("4711"), "{report}");
    assert_eq!((wrong.status(), wrong.to_json()["error"]["id"].clone()), (400, id.clone()));
    assert_eq!(wrong.to_json()["error"]["report"], json!(report));
    let body = json!({"id": "c", "messages": [{"role": "assistant", "parts": []}], "inputs": [1]});
    assert!(UiRequest::decode(UiProtocol::AiSdk, body.to_string().as_bytes()).is_err());

    // AG-UI: whether a payload is a decision or an input is known with the question.
    let ag = |entries: Value| decode(UiProtocol::AgUi, &resumes(&entries));
    let resolved = |payload: &Value| json!({"interruptId": id, "status": "resolved", "payload": payload});
    let wrong = ag(json!([resolved(&json!({"approved": true}))]));
    assert_eq!(error(&wrong, &run), (400, "input_refused"));
    let twice = ag(json!([resolved(&even()), resolved(&even())]));
    assert_eq!(error(&twice, &run), (400, "answered_twice"));
    let dismissed = ag(json!([{"interruptId": id, "status": "cancelled"}]));
    let output = assistant.resume(&run, dismissed.decisions(&run).unwrap()).await.unwrap();
    assert_eq!(output.text(), "done");
    assert_eq!(assistant.messages().get(3).unwrap().text(), "the person dismissed the question");
    assert!(answers.lock().unwrap().is_empty());

    let (assistant, run, answers) = suspended(booking()).await;
    let key = run.questions()[0].request_id.clone();
    let entries = json!([{"interruptId": key, "status": "resolved", "payload": even()}]);
    let decisions = ag(entries).decisions(&run).unwrap();
    assistant.resume(&run, decisions).await.unwrap();
    assert_eq!(*answers.lock().unwrap(), ["8 4711-0815"]);

    let (assistant, run, _) = suspended(booking()).await;
    let id = json!(run.questions()[0].request_id);
    let declined = decode(UiProtocol::AiSdk, &answers_call(&id, false, &json!({})));
    assistant.resume(&run, declined.decisions(&run).unwrap()).await.unwrap();
    assert_eq!(assistant.messages().get(3).unwrap().text(), "the person declined to answer");
}

#[tokio::test]
async fn questions_that_are_asked_together_are_answered_together() {
    let replies = || vec![reply().tool_call("look", "{}"), reply().text("done")];
    let (assistant, run, _) = suspended(replies()).await;
    let ids: Vec<String> = run.questions().into_iter().map(|question| question.request_id).collect();
    // The AI SDK has one request for each call, with the id of the first question.
    let ai =
        |approved, inputs: Value| decode(UiProtocol::AiSdk, &answers_call(&json!(ids[0]), approved, &inputs));
    let half = ai(true, json!({&ids[0]: true})).decisions(&run).unwrap_err();
    assert_eq!(half, ai(true, json!({&ids[0]: true})).decisions(&run).unwrap_err());
    assert!(half.code() == "unanswered" && half.to_string().ends_with(&ids[1]), "{half}");
    let both = ai(true, json!({&ids[0]: true, &ids[1]: {"value": {"approved": false}}}));
    assistant.resume(&run, both.decisions(&run).unwrap()).await.unwrap();
    assert_eq!(assistant.messages().get(2).unwrap().text(), r#"true {"approved":false}"#);

    let (assistant, run, _) = suspended(replies()).await;
    let ids: Vec<String> = run.questions().into_iter().map(|question| question.request_id).collect();
    let entry =
        |at: usize, payload: Value| json!({"interruptId": ids[at], "status": "resolved", "payload": payload});
    let one = decode(UiProtocol::AgUi, &resumes(&json!([entry(0, json!(true))])));
    assert_eq!(error(&one, &run), (400, "unanswered"));
    // An input that looks like a decision is an input.
    let entries = json!([entry(0, json!({"value": true})), entry(1, json!({"approved": false}))]);
    let both = decode(UiProtocol::AgUi, &resumes(&entries));
    assistant.resume(&run, both.decisions(&run).unwrap()).await.unwrap();
    assert_eq!(assistant.messages().get(2).unwrap().text(), r#"true {"approved":false}"#);

    let (assistant, run, _) = suspended(replies()).await;
    let id = json!(run.questions()[0].request_id);
    let declined = decode(UiProtocol::AiSdk, &answers_call(&id, false, &json!({})));
    assistant.resume(&run, declined.decisions(&run).unwrap()).await.unwrap();
    assert_eq!(assistant.messages().get(2).unwrap().text(), "the person declined to answer");
}

#[tokio::test]
async fn an_input_decides_on_no_call() {
    let (_, run, _) = suspended(vec![reply().tool_call("send", r#"{"amount": 5}"#)]).await;
    let id = json!(run.requests()[0].request_id);
    let ag = |payload: Value| {
        decode(
            UiProtocol::AgUi,
            &resumes(&json!([{"interruptId": id, "status": "resolved", "payload": payload}])),
        )
    };
    for payload in [
        json!({}),
        json!(true),
        json!({"approved": "true"}),
        json!({"approved": true, "editedArgs": 5}),
        json!({"approved": true, "reason": 5}),
    ] {
        assert_eq!(error(&ag(payload), &run), (400, "invalid"));
    }
    let ai = answers_call(&id, true, &json!({id.as_str().unwrap(): {"amount": 6}}));
    assert_eq!(error(&decode(UiProtocol::AiSdk, &ai), &run), (400, "invalid"));
    assert!(ag(json!({"approved": true})).decisions(&run).is_ok());
}

fn server(store: &MemoryStore, answers: &Arc<Answers>) -> UiServer {
    let (store, answers) = (store.clone(), answers.clone());
    let model = ScriptedModel::from_fn(|request| {
        let since = request.messages.iter().rev().take_while(|message| message.role() != "user");
        match since.filter(|message| message.role() == "tool_result").count() {
            0 => reply().tool_call("add", r#"{"a": 1, "b": 2}"#).tool_call("book", r#"{"to": "Rome"}"#),
            _ => reply().text("done"),
        }
    });
    let template = Assistant::builder(model.clone()).build().unwrap();
    UiServer::new(template)
        .options(UiOptions::default().show_results())
        .reconnect_time(Duration::from_secs(60))
        .threads(move |scope, thread| {
            let builder = Assistant::builder(model.clone()).tools(tools![book, look, add, send]);
            let builder = builder.shared_state(answers.clone()).store(store.clone());
            async move { Ok(builder.session(format!("{scope}/{thread}")).await?) }
        })
        .continue_runs()
        .single_user()
}

async fn rejected(server: &UiServer, protocol: UiProtocol, body: &[u8]) -> Value {
    let response = server.post(protocol, body).await;
    assert_eq!(response.status(), 400);
    serde_json::from_str(&all(response).await).unwrap()
}

#[tokio::test]
async fn a_page_of_the_ai_sdk_answers_before_and_after_a_restart() {
    for restarts in [false, true] {
        let (store, answers) = (MemoryStore::new(), Arc::new(Answers::default()));
        let mut ui = server(&store, &answers);
        let mut page = ai_message(&all(ui.post(UiProtocol::AiSdk, &says("go")).await).await);
        page.assert_ended();
        if restarts {
            drop(ui);
            ui = server(&store, &answers);
        }
        let part = page.message.iter().find(|part| part["type"] == "tool-book").unwrap();
        let asked = &part["approval"]["descriptor"]["questions"][0];
        let (id, key) = (part["approval"]["id"].clone(), asked["id"].as_str().unwrap().to_owned());
        assert_eq!(asked["message"], "Which seat to Rome?");
        let wrong = answers_call(&id, true, &json!({&key: {"coach": "x", "card": "4711"}}));
        let refused = rejected(&ui, UiProtocol::AiSdk, &wrong).await;
        assert_eq!(refused["error"]["code"], "input_refused");
        assert!(refused["error"]["report"].as_str().unwrap().contains("/coach"), "{refused}");
        // The run waits as before.
        let again = ai_message(&all(ui.attach(UiProtocol::AiSdk, "c", None).await).await);
        assert_eq!(again.message, page.message);

        // The body refuses what the schema allows, and asks again.
        let odd = answers_call(&id, true, &json!({&key: odd()}));
        let second = all(ui.post(UiProtocol::AiSdk, &odd).await).await;
        page.next_response();
        page.read_all(&chunks(&second));
        page.assert_ended();
        let part = page.message.iter().find(|part| part["type"] == "tool-book").unwrap();
        let asked = &part["approval"]["descriptor"]["questions"][0];
        assert!(asked["report"].as_str().unwrap().contains("refused by the type"), "{asked}");
        let (id, key) = (part["approval"]["id"].clone(), asked["id"].as_str().unwrap().to_owned());
        let right = answers_call(&id, true, &json!({&key: even()}));
        let third = all(ui.post(UiProtocol::AiSdk, &right).await).await;
        page.next_response();
        page.read_all(&chunks(&third));
        page.assert_ended();
        assert!(third.contains("coach 8 to Rome") && third.contains("done"), "{third}");
        assert_eq!(*answers.lock().unwrap(), ["8 4711-0815"]);
        let whole = all(ui.attach(UiProtocol::AiSdk, "c", None).await).await;
        assert_eq!(ai_message(&whole).message, page.message);
        assert!(![&second, &third, &whole].iter().any(|text| text.contains("4711")));
    }
}

#[tokio::test]
async fn an_interrupt_with_a_question_is_answered_before_and_after_a_restart() {
    for restarts in [false, true] {
        let (store, answers) = (MemoryStore::new(), Arc::new(Answers::default()));
        let mut ui = server(&store, &answers);
        let first = ag_messages(&all(ui.post(UiProtocol::AgUi, &runs("go", "r1")).await).await);
        first.assert_ended();
        if restarts {
            drop(ui);
            ui = server(&store, &answers);
        }
        let interrupt = &first.outcome["interrupts"][0];
        assert_eq!(interrupt["reason"], "input_required");
        let entry = |payload: &Value| json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}]);
        let refused = rejected(&ui, UiProtocol::AgUi, &resumes(&entry(&json!({"coach": 300})))).await;
        assert_eq!(refused["error"]["code"], "input_refused");
        let second = all(ui.post(UiProtocol::AgUi, &resumes(&entry(&even()))).await).await;
        assert!(second.contains("coach 8 to Rome") && second.contains(r#""type":"success""#), "{second}");
        assert!(!second.contains("4711"), "{second}");
        assert_eq!(ui.post(UiProtocol::AgUi, &resumes(&entry(&even()))).await.status(), 409);
    }
}

#[tokio::test]
async fn a_page_answers_a_question_of_a_sub_agent() {
    for protocol in [UiProtocol::AiSdk, UiProtocol::AgUi] {
        let answers = Arc::new(Answers::default());
        let expert = builder(&answers, booking()).build().unwrap();
        let model = ScriptedModel::new([
            reply().tool_call("expert", r#"{"task": "To Rome."}"#),
            reply().text("You have a seat."),
        ]);
        let assistant =
            Assistant::builder(model).tools(expert.as_tool("expert", "Books trains.")).build().unwrap();
        let ui = UiServer::new(assistant).single_user();
        let begin = if protocol == UiProtocol::AiSdk { says("go") } else { runs("go", "r1") };
        let first = all(ui.post(protocol, &begin).await).await;
        let second = if protocol == UiProtocol::AiSdk {
            let page = ai_message(&first);
            let part = page.message.iter().find(|part| part["type"] == "tool-book").unwrap();
            let id = &part["approval"]["id"];
            let call = part["toolCallId"].as_str().unwrap();
            assert!(
                call.ends_with("/call_2")
                    && id.as_str().unwrap().starts_with(call.trim_end_matches("/call_2"))
            );
            ui.post(protocol, &answers_call(id, true, &json!({id.as_str().unwrap(): even()}))).await
        } else {
            let asked = &ag_messages(&first).outcome["interrupts"][0];
            let entry = json!([{"interruptId": asked["id"], "status": "resolved", "payload": even()}]);
            ui.post(protocol, &resumes(&entry)).await
        };
        let second = all(second).await;
        assert!(second.contains("eat."), "{second}");
        assert!(!second.contains("tool-output-error") && !second.contains("4711"), "{second}");
        assert_eq!(*answers.lock().unwrap(), ["8 4711-0815"]);
    }
}

#[tokio::test]
async fn a_question_that_is_answered_in_place_asks_no_page() {
    let answers = Arc::new(Answers::default());
    let assistant = builder(&answers, booking())
        .on_question(|_| async { QuestionInput::Accept(even()) })
        .build()
        .unwrap();
    let log = EventLog::new();
    assistant.subscribe(log.listener()).forever();
    assistant.prompt("go").await.unwrap();
    for protocol in [UiProtocol::AiSdk, UiProtocol::AgUi] {
        let options = UiOptions::default();
        let mut encoder = UiEncoder::new(protocol, assistant.registry(), &options, &UiRequest::new("thread"));
        let mut chunks = Vec::new();
        log.events().iter().for_each(|event| encoder.encode(event, &mut chunks));
        encoder.end(&mut chunks);
        let text = lines(&chunks);
        assert!(!text.contains("approval") && !text.contains("question") && !text.contains("4711"), "{text}");
    }
}
