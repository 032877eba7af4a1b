//! Calls that a person changes before they run: the hooks are asked about what will run. And requests and runs that went through
//! somebody else's JSON on the way.

use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::SuspendedRun;
use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::OutcomeKind;
use agent::model::reply;
use agent::run::ApprovalRequest;
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Control, Decision, Decisions, RunStop, Value, json, tool, tools,
};

/// Writes a file.
#[tool(inline, approval = "always")]
fn write(path: String) -> String {
    format!("wrote {path}")
}

type Seen = Arc<Mutex<Vec<Value>>>;

fn model() -> ScriptedModel {
    ScriptedModel::new([reply().tool_call("write", r#"{"path": "notes.txt"}"#), reply().text("done")])
}

/// Only relative paths; whatever else a hook may say is said, too.
fn guarded(says: BeforeCall, seen: &Seen) -> AssistantBuilder {
    guarded_with(model(), says, seen)
}

/// In the process that goes on with the run.
fn going_on(seen: &Seen) -> Assistant {
    guarded_with(ScriptedModel::new(["done"]), BeforeCall::Continue, seen).build().unwrap()
}

fn guarded_with(model: ScriptedModel, says: BeforeCall, seen: &Seen) -> AssistantBuilder {
    let seen = seen.clone();
    Assistant::builder(model)
        .tools(tools![write])
        .before_tool_call(move |call| {
            seen.lock().unwrap().push(call.args()["path"].clone());
            let (says, is_reply) = (says.clone(), call.assistant().is_some());
            async move {
                assert!(is_reply);
                match call.args()["path"].as_str() {
                    Some(path) if path.starts_with('/') => Ok(BeforeCall::block("only relative paths")),
                    Some("broken") => Err("the guard is broken".into()),
                    _ => Ok(says),
                }
            }
        })
        .approval_key([7; 32])
}

const CASES: [(&str, &str, &str); 3] = [
    ("/etc/hosts", "was refused", "only relative paths"),
    ("broken", "was to run", "the guard is broken"),
    ("other.txt", "ran", "wrote other.txt"),
];

fn assert_ended(assistant: &Assistant, ended: &str, text: &str) {
    let messages = assistant.messages();
    let result = messages.get(2).and_then(|message| message.as_tool_result()).unwrap();
    let told: String = result.content_for_model().iter().map(|part| part.as_text().unwrap()).collect();
    assert!(told.contains(&format!("this call; it {ended} with {{")) && told.contains(text), "{told}");
}

#[tokio::test]
async fn hooks_are_asked_about_what_a_person_changed() {
    // A hook that asks for approval, or replaces, does so for the changed call, too: that is decided.
    for says in
        [BeforeCall::Continue, BeforeCall::RequireApproval, BeforeCall::Replace(json!({"path": "notes.txt"}))]
    {
        for (path, ended, text) in CASES {
            let seen = Seen::default();
            let assistant = guarded(says.clone(), &seen)
                .on_approval(move |_| async move { Decision::AllowWith(json!({"path": path})) })
                .build()
                .unwrap();
            assert_eq!(assistant.prompt("Write").await.unwrap().text(), "done");
            assert_ended(&assistant, ended, text);
            assert_eq!(*seen.lock().unwrap(), ["notes.txt", path]);
        }
    }
}

#[tokio::test]
async fn a_stored_run_is_guarded_like_any_other() {
    for (path, ended, text) in CASES {
        let seen = Seen::default();
        let suspended =
            guarded(BeforeCall::Continue, &seen).build().unwrap().prompt("Write").await.unwrap().snapshot;
        let stored = serde_json::to_string(&suspended.unwrap()).unwrap();
        let run: SuspendedRun = serde_json::from_str(&stored).unwrap();
        let assistant = going_on(&seen);
        let decisions = Decisions::new().allow_with(&run.requests()[0], json!({"path": path}));
        assistant.resume(&run, decisions).await.unwrap();
        assert_ended(&assistant, ended, text);
        assert_eq!(*seen.lock().unwrap(), ["notes.txt", path]);
    }
}

#[tokio::test]
async fn a_durable_run_asks_once_and_remembers() {
    for (path, _, text) in CASES {
        for is_asked_here in [true, false] {
            let seen = Seen::default();
            let mut builder = guarded(BeforeCall::RequireApproval, &seen);
            let decision = Decision::AllowWith(json!({"path": path}));
            if is_asked_here {
                let decision = decision.clone();
                builder = builder.on_approval(move |_| std::future::ready(decision.clone()));
            }
            let service = Service::new(&builder.build().unwrap()).unwrap();
            let run = Rehearsal::new(service, RunRequest::new("r", "go"));
            run.decide("r/1/approval/0", decision);
            for _ in 0..2 {
                let outcome = run.play().await.unwrap();
                assert!(outcome.messages[2].text().contains(text), "{}", outcome.messages[2].text());
            }
            assert_eq!(*seen.lock().unwrap(), ["notes.txt", path]);
        }
    }
}

#[tokio::test]
async fn a_block_may_end_the_run() {
    let assistant = Assistant::builder(model())
        .tools(tools![write])
        .before_tool_call(|call| {
            let is_fine = call.args()["path"] == "notes.txt";
            let end = BeforeCall::block_and("never", Control::EndNow);
            async move { Ok(if is_fine { BeforeCall::Continue } else { end }) }
        })
        .on_approval(|_| async { Decision::AllowWith(json!({"path": "/"})) })
        .build()
        .unwrap();
    let output = assistant.prompt("Write").await.unwrap();
    assert_eq!((output.stop, output.turns), (RunStop::Terminated, 1));
}

#[tokio::test]
async fn a_run_is_cancelled_while_a_hook_looks_at_what_was_changed() {
    let assistant = Assistant::builder(model())
        .tools(tools![write])
        .before_tool_call(|call| async move {
            if call.args()["path"] == "/" {
                std::future::pending::<()>().await;
            }
            Ok(BeforeCall::Continue)
        })
        .on_approval(|_| async { Decision::AllowWith(json!({"path": "/"})) })
        .build()
        .unwrap();
    let run = assistant.prompt("Write").start().unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    assistant.cancel("enough");
    assistant.wait_until_idle().await;
    drop(run);
    let messages = assistant.messages();
    assert_eq!(messages.last().unwrap().as_tool_result().unwrap().outcome, OutcomeKind::Interrupted);
}

/// What `JSON.parse` and `JSON.stringify` make of it: 53 bits of every number.
fn through_a_browser(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none_or(|whole| whole.unsigned_abs() > 1 << 53) => {
            *value = json!(number.as_f64().unwrap());
        }
        Value::Array(items) => items.iter_mut().for_each(through_a_browser),
        Value::Object(map) => map.values_mut().for_each(through_a_browser),
        _ => {}
    }
}

#[tokio::test]
async fn what_waits_may_go_through_a_browser() {
    let assistant = guarded(BeforeCall::Continue, &Seen::default()).build().unwrap();
    let run = assistant.prompt("Write").await.unwrap().snapshot.unwrap();
    let mut request = serde_json::to_value(&run.requests()[0]).unwrap();
    let mut stored = serde_json::to_value(&run).unwrap();
    through_a_browser(&mut request);
    through_a_browser(&mut stored);
    // What an older version wrote as a number is read.
    let old = |value: &Value, pointer: &str| {
        let mut value = value.clone();
        let fingerprint = value.pointer_mut(pointer).unwrap();
        *fingerprint = fingerprint.as_str().unwrap().parse::<u64>().unwrap().into();
        value
    };
    let old_request = old(&request, "/fingerprint");
    let old_stored = old(&stored, "/config/tools/write/fingerprint");
    for (request, stored) in [(request, stored), (old_request, old_stored)] {
        let request: ApprovalRequest = serde_json::from_value(request).unwrap();
        let run: SuspendedRun = serde_json::from_value(stored).unwrap();
        let assistant = going_on(&Seen::default());
        assert_eq!(assistant.resume(&run, Decisions::new().allow(&request)).await.unwrap().text(), "done");
    }
}
