//! Secret arguments in what leaves a run: events as JSON, approval requests, `Debug` texts. They are withheld unless asked for by name, and
//! a request without them still decides on its call.

use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::SuspendedRun;
use agent::durable::{Rehearsal, RunRequest, Service};
use agent::model::reply;
use agent::run::ApprovalRequest;
use agent::store::{InvocationQuery, MemoryStore, Store};
use agent::testing::EventLog;
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Decision, Decisions, EventKind, ToolArgs, Value, json, tool,
    tools,
};

use crate::trace_support::{Traces, hear};

const SECRET: &str = "hunter2-SECRET";
const OTHER: &str = "other-SECRET";

/// Signs in.
#[tool(inline, approval = "always")]
fn log_in(user: String, #[arg(secret)] password: String) -> String {
    format!("{user} signed in with {} characters", password.len())
}

/// An account.
#[derive(ToolArgs)]
struct Account {
    user: String,
    #[arg(secret)]
    password: String,
}

/// Signs in many.
#[tool(inline, approval = "always")]
fn log_in_all(accounts: Vec<Account>) -> String {
    accounts
        .iter()
        .map(|account| format!("{}={}", account.user, account.password.len()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Looks something up.
#[tool(inline)]
fn look(what: String) -> String {
    format!("seen {what}")
}

fn call() -> Value {
    json!({"user": "ann", "password": SECRET})
}

fn model() -> ScriptedModel {
    ScriptedModel::new([
        reply()
            .text("I sign in.")
            .tool_call("look", json!({"what": "a long text"}).to_string())
            .tool_call("log_in", call().to_string())
            .tool_call("log_inn", json!({"password": SECRET}).to_string()),
        reply().text("done"),
    ])
    .with_chunk_size(5)
}

fn built(model: &ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model.clone()).tools(tools![look, log_in, log_in_all]).approval_key([3; 32])
}

fn one_call(tool: &str, args: &Value) -> ScriptedModel {
    ScriptedModel::new([reply().tool_call(tool, args.to_string()), reply().text("done")])
}

fn assert_hidden(text: &str) {
    for secret in [SECRET, OTHER, "hunter2"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test]
async fn events_as_json_have_no_secrets_unless_asked() {
    type Written = Arc<Mutex<Vec<(String, String, String)>>>;
    let written = Written::default();
    let write = written.clone();
    let log = EventLog::new();
    let outcome = built(&model())
        .on_event(move |event| {
            let (shown, all) = (serde_json::to_string(event), serde_json::to_string(&event.with_secrets()));
            write.lock().unwrap().push((shown.unwrap(), all.unwrap(), format!("{event:?}")));
            if let EventKind::ToolExecutionStart { call, .. } = &event.kind
                && call.name == "log_in"
            {
                assert_eq!(call.args.value().unwrap()["password"], SECRET, "in memory everything is there");
            }
        })
        .on_event(log.listener())
        .on_approval(|_| async { Decision::AllowWith(json!({"user": "bob", "password": OTHER})) })
        .build()
        .unwrap()
        .prompt("Sign in")
        .await
        .unwrap();
    assert_eq!(outcome.text(), "done");
    let written = written.lock().unwrap();
    let (mut streamed, mut all_streamed) = (String::new(), String::new());
    for (shown, all, debug) in written.iter() {
        assert_hidden(shown);
        assert_hidden(debug);
        let (shown, all): (Value, Value) =
            (serde_json::from_str(shown).unwrap(), serde_json::from_str(all).unwrap());
        if shown["update"] == "tool_call_delta" {
            streamed += shown["delta"].as_str().unwrap();
            all_streamed += all["delta"].as_str().unwrap();
        }
        assert_eq!(shown["type"], all["type"]);
    }
    assert_eq!(
        streamed,
        json!({"what": "a long text"}).to_string(),
        "what has no secrets is shown as it grows"
    );
    assert!(all_streamed.contains(SECRET));
    let with = |word: &str, secret: &str| {
        written.iter().any(|(_, all, _)| all.contains(word) && all.contains(secret))
    };
    for kind in ["message_end", "tool_execution_start", "approval_required", "agent_end"] {
        assert!(with(kind, SECRET), "{kind} has everything where it is asked for");
    }
    assert!(with("agent_end", OTHER), "edited arguments, too");
    let count = |kind: &str, part: &str| {
        written.iter().filter(|(shown, ..)| shown.contains(kind) && shown.contains(part)).count()
    };
    assert_eq!(count("approval_required", r#""args":{"user":"ann","password":"[secret]"}"#), 1);
    assert_eq!(count("tool_execution_start", r#""args":"\"[secret]\"""#), 1, "an unknown tool");
    assert_hidden(&log.outline());
    assert!(log.outline().contains("call look {\"what\":\"a long text\"}"), "{}", log.outline());
}

/// Signs in by whatever name.
#[tool(inline)]
fn sign_in(
    user: String,
    #[arg(secret, alias = "pw", alias = "pass")] password: String,
    also: Option<Account>,
) -> String {
    format!("{user} {} {}", password.len(), also.map_or(0, |also| also.user.len() + also.password.len()))
}

#[tokio::test]
async fn a_secret_under_another_name_is_withheld_wherever_its_call_ends() {
    let nested = json!({"user": "bob", "password": OTHER});
    let calls = [
        ("sign_in", json!({"user": "runs", "pw": SECRET, "also": nested}).to_string(), "completed"),
        ("sign_in", json!({"user": "blocked", "pass": SECRET}).to_string(), "denied"),
        ("sign_in", json!({"user": "denied", "pw": SECRET, "also": nested}).to_string(), "denied"),
        ("sign_in", json!({"user": "misspelled", "pasword": SECRET}).to_string(), "failed"),
        ("sign_in", json!({"user": "twice", "pw": SECRET, "password": OTHER}).to_string(), "failed"),
        (
            "sign_in",
            json!({"user": "nested", "pw": SECRET, "also": {"user": "x", "pasword": OTHER}}).to_string(),
            "failed",
        ),
        ("sign_in", json!({"user": 5, "pw": {"deep": [SECRET]}}).to_string(), "failed"),
        ("sign_in", format!(r#"{{"user": "cut", "pw": "{SECRET}"#), "failed"),
        ("sign_in", json!(json!({"user": "text", "pw": SECRET}).to_string()).to_string(), "completed"),
        ("signin", json!({"user": "unknown", "pw": SECRET}).to_string(), "failed"),
    ];
    let asks = calls.iter().fold(reply(), |reply, (tool, args, _)| reply.tool_call(*tool, args.as_str()));
    let store = Arc::new(MemoryStore::new());
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    let (seen, debugged) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(String::new())));
    let (write, asked) = (seen.clone(), debugged.clone());
    let assistant = Assistant::builder(ScriptedModel::new([asks, reply().text("done")]).with_chunk_size(7))
        .tools(tools![sign_in])
        .max_retries(9)
        .capture_content()
        .before_tool_call(|call| async move {
            Ok(match call.arg::<String>("user")?.as_str() {
                "blocked" => BeforeCall::block("no"),
                "denied" => BeforeCall::RequireApproval,
                _ => BeforeCall::Continue,
            })
        })
        .on_approval(move |request| {
            let shown = format!("{request:?} {}", serde_json::to_string(&request).unwrap());
            asked.lock().unwrap().push_str(&shown);
            async { Decision::Deny("no".into()) }
        })
        .on_event(move |event| *write.lock().unwrap() += &serde_json::to_string(event).unwrap())
        .store(store.clone())
        .session("s")
        .await
        .unwrap();
    assistant.prompt("go").await.unwrap();
    let messages = assistant.messages();
    let ended = messages.iter().filter_map(|message| message.as_tool_result());
    let ended: Vec<_> = ended.map(|result| result.outcome.to_string()).collect();
    assert_eq!(ended, calls.each_ref().map(|(_, _, ended)| *ended));
    for text in [&seen, &debugged] {
        assert_hidden(&text.lock().unwrap());
    }
    let records = store.list(InvocationQuery::new()).await.unwrap();
    assert_eq!(records.len(), calls.len());
    for record in &records {
        assert_hidden(&serde_json::to_string(&record).unwrap());
        assert_hidden(&record.outcome().unwrap().text());
    }
    let session = store.load("s", 0, 1000).await.unwrap();
    for stored in session {
        assert_hidden(&serde_json::to_string(&stored.1.kind).unwrap());
    }
    let mut captured = 0;
    for span in traces.spans.lock().unwrap().iter() {
        captured += usize::from(span.fields.contains_key("gen_ai.tool.call.arguments"));
        assert_hidden(&format!("{:?}", span.fields));
    }
    traces.events.lock().unwrap().iter().for_each(|event| assert_hidden(&format!("{event:?}")));
    assert!(captured > 0, "arguments are captured");
}

#[tokio::test]
async fn what_a_provider_keeps_with_a_reply_is_shown_without_secrets() {
    use agent::message::{ProviderData, StopReason};
    use agent::model::{ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx};

    /// Keeps each reply as it was received.
    struct Keeping(ModelInfo);

    impl agent::model::Model for Keeping {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
            let raw = json!({"output": [{"arguments": call().to_string()}]});
            let stop = |reason| ModelEvent::Stop { reason, detail: None, raw: None };
            let events = if request.messages.len() == 1 {
                vec![
                    ModelEvent::ToolCallStart { content_index: 0, id: "c".into(), name: "log_in".into() },
                    ModelEvent::ToolCallDelta { content_index: 0, delta: call().to_string() },
                    ModelEvent::MessageData { data: ProviderData::new("acme", raw) },
                    stop(StopReason::ToolUse),
                ]
            } else {
                vec![ModelEvent::TextDelta { content_index: 0, delta: "done".into() }, stop(StopReason::Stop)]
            };
            ModelStream::from_events(cx, &self.0, events.into_iter().map(Ok))
        }
    }

    let seen = Arc::new(Mutex::new(String::new()));
    let write = seen.clone();
    let store = Arc::new(MemoryStore::new());
    let assistant = Assistant::builder(Keeping(ModelInfo::new("acme", "chat", "a-1")))
        .tools(tools![log_in])
        .on_approval(|_| async { Decision::Allow })
        .on_event(move |event| *write.lock().unwrap() += &serde_json::to_string(event).unwrap())
        .store(store.clone())
        .session("s")
        .await
        .unwrap();
    assistant.prompt("go").await.unwrap();
    let kept = assistant.messages();
    let kept = kept.get(1).unwrap().as_assistant().unwrap().provider_data.clone().unwrap();
    assert!(kept.data.to_string().contains("hunter2"), "in memory everything is there");
    assert_hidden(&seen.lock().unwrap());
    let session = store.load("s", 0, 1000).await.unwrap();
    for stored in session {
        assert_hidden(&serde_json::to_string(&stored.1.kind).unwrap());
    }
}

#[tokio::test]
async fn parts_that_arrive_whole_and_argument_events_have_no_secrets() {
    let texts: Arc<Mutex<Vec<String>>> = Arc::default();
    let write = texts.clone();
    let assistant = built(&model())
        .request(agent::model::ModelRequest::with_argument_events)
        .on_event(move |event| write.lock().unwrap().push(serde_json::to_string(event).unwrap()))
        .on_approval(|_| async { Decision::Allow })
        .build()
        .unwrap();
    assistant.prompt("Sign in").await.unwrap();
    let texts = texts.lock().unwrap();
    assert!(texts.iter().any(|text| text.contains("tool_call_argument")));
    for text in texts.iter() {
        assert_hidden(text);
    }
    let appended: String = texts
        .iter()
        .filter_map(|text| {
            serde_json::from_str::<Value>(text).unwrap()["argument"]["fragment"].as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(appended, "a long text");
}

#[tokio::test]
async fn a_request_without_its_secrets_decides_on_its_call() {
    let assistant = built(&one_call("log_in", &call())).build().unwrap();
    let run = assistant.prompt("Sign in").await.unwrap().snapshot.unwrap();
    let stored = serde_json::to_string(&run).unwrap();
    for run in [run.clone(), serde_json::from_str::<SuspendedRun>(&stored).unwrap()] {
        let request = run.requests().remove(0);
        assert_eq!(request.call.args.value(), Some(json!({"user": "ann", "password": "[secret]"})));
        assert_eq!(request.args_with_secrets().unwrap().value(), Some(call()));
        let sent = serde_json::to_string(&request).unwrap();
        assert_hidden(&sent);
        assert_hidden(&format!("{request:?}"));
        let seen: ApprovalRequest = serde_json::from_str(&sent).unwrap();
        assert!(seen.args_with_secrets().is_none() && seen == request);
        let decisions = Decisions::new().allow(&seen);
        assert_hidden(&serde_json::to_string(&decisions).unwrap());
        let next = built(&ScriptedModel::new(["done"])).build().unwrap();
        next.resume(&run, decisions).await.unwrap();
        assert_eq!(next.messages().get(2).unwrap().text(), "ann signed in with 14 characters");
    }
    // What is shown is signed: a stored run does not hide anything from those who decide.
    let mut changed: Value = serde_json::from_str(&stored).unwrap();
    changed["batch"]["slots"][0]["shown"] = json!({"user": "[secret]", "password": "[secret]"});
    let run: SuspendedRun = serde_json::from_value(changed).unwrap();
    let next = built(&ScriptedModel::new(["done"])).build().unwrap();
    let error = next.resume(&run, Decisions::new().allow(&run.requests()[0])).await.unwrap_err();
    assert!(error.to_string().contains("signature"), "{error}");
}

#[tokio::test]
async fn a_handler_sees_what_may_be_shown_and_may_ask_for_all() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let write = seen.clone();
    let assistant = built(&one_call("log_in", &call()))
        .on_approval(move |request| {
            let all = request.args_with_secrets().unwrap().text().to_owned();
            write.lock().unwrap().extend([request.call.args.text().to_owned(), all]);
            async { Decision::Allow }
        })
        .build()
        .unwrap();
    assistant.prompt("Sign in").await.unwrap();
    let seen = seen.lock().unwrap();
    assert_hidden(&seen[0]);
    assert!(seen[1].contains(SECRET));
}

#[tokio::test]
async fn what_a_person_leaves_of_a_secret_is_what_was_sent() {
    let accounts = json!({"accounts": [
        {"user": "ann", "password": SECRET},
        {"user": "bob", "password": OTHER},
    ]});
    let hidden = |user: &str| json!({"user": user, "password": "[secret]"});
    let cases = [
        (
            "log_in",
            call(),
            json!({"user": "bob", "password": "[secret]"}),
            "bob signed in with 14 characters",
        ),
        ("log_in", call(), json!({"user": "bob", "password": "new"}), "bob signed in with 3 characters"),
        (
            "log_in_all",
            accounts.clone(),
            json!({"accounts": [hidden("ann"), hidden("bob")]}),
            "ann=14 bob=12",
        ),
        (
            "log_in_all",
            accounts.clone(),
            json!({"accounts": [hidden("ann"), {"user": "eve", "password": "x"}]}),
            "ann=14 eve=1",
        ),
        // Of an item that was moved, changed or left over, it is not known whose secret it has.
        (
            "log_in_all",
            accounts.clone(),
            json!({"accounts": [hidden("bob"), hidden("ann")]}),
            "no value for the secret at `/accounts/0/password`",
        ),
        (
            "log_in_all",
            accounts.clone(),
            json!({"accounts": [hidden("bob")]}),
            "no value for the secret at `/accounts/0/password`",
        ),
        (
            "log_in_all",
            accounts,
            json!({"accounts": [hidden("ann"), hidden("eve")]}),
            "at `/accounts/1/password`",
        ),
    ];
    for (tool, sent, edited, result) in cases {
        let decision = Decision::AllowWith(edited.clone());
        // Decided at once, later, and on an engine.
        let same = decision.clone();
        let live = built(&one_call(tool, &sent))
            .on_approval(move |_| std::future::ready(same.clone()))
            .build()
            .unwrap();
        live.prompt("go").await.unwrap();
        let later = built(&one_call(tool, &sent)).build().unwrap();
        let run = later.prompt("go").await.unwrap().snapshot.unwrap();
        let run: SuspendedRun = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
        let request = serde_json::to_string(&run.requests()[0]).unwrap();
        let request: ApprovalRequest = serde_json::from_str(&request).unwrap();
        let next = built(&ScriptedModel::new(["done"])).build().unwrap();
        next.resume(&run, Decisions::new().decide(&request, decision.clone())).await.unwrap();
        let service = Service::new(&built(&one_call(tool, &sent)).build().unwrap()).unwrap();
        let durable = Rehearsal::new(service, RunRequest::new("r", "go"));
        durable.decide("r/1/approval/0", decision);
        let outcome = durable.play().await.unwrap();
        let texts = [
            live.messages().get(2).unwrap().text(),
            next.messages().get(2).unwrap().text(),
            outcome.messages[2].text(),
        ];
        assert!(texts.iter().all(|text| text.contains(result)), "{edited}: {texts:?}");
    }
}

#[tokio::test]
async fn debug_texts_show_no_arguments() {
    let assistant = built(&one_call("log_in", &call())).build().unwrap();
    let run = assistant.prompt("Sign in").await.unwrap().snapshot.unwrap();
    let request = &run.requests()[0];
    let edited = Decision::AllowWith(call());
    let texts = [
        format!("{edited:?}"),
        format!("{:?}", Decisions::new().decide(request, edited)),
        format!("{:?}", BeforeCall::Replace(call())),
        format!("{request:?}"),
        format!("{run:?}"),
    ];
    for text in &texts {
        assert_hidden(text);
    }
}
