//! Assistants with a store: what is recorded, and how a session goes on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ScriptedModel;
use agent::SuspendedRun;
use agent::message::{AssistantMessage, Content, Message, Part, ProviderTool};
use agent::model::{ScriptedReply, reply};
use agent::store::{
    EntryKind, InvocationQuery, InvocationRecord, InvocationStatus, MemoryStore, SessionEntry, Store as _,
};
use agent::{
    Assistant, AssistantBuilder, Decision, Decisions, RunError, RunStop, ToolContext, ToolError, ToolOutcome,
    json,
    run::BuildError,
    steps::{StepKey, StepKind},
    tool,
    tool::Source,
    tools,
};

use crate::assistant_support::{assert_sound, outline};

/// How often bodies ran.
#[derive(Default)]
struct Ran(AtomicU32);

impl Ran {
    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Adds two numbers.
#[tool(effect = "pure")]
fn add(a: i64, b: i64, ran: &Ran) -> i64 {
    ran.0.fetch_add(1, Ordering::SeqCst);
    a + b
}

/// Pays.
#[tool(inline, effect = "idempotent")]
fn pay(amount: u64, ran: &Ran, cx: &ToolContext) -> Result<String, ToolError> {
    ran.0.fetch_add(1, Ordering::SeqCst);
    if amount == 0 {
        Err(ToolError::new("nothing to pay"))
    } else {
        Ok(format!("{amount} at {}", cx.attempt()))
    }
}

/// Sends.
#[tool(effect = "once")]
fn send(ran: &Ran) -> &'static str {
    ran.0.fetch_add(1, Ordering::SeqCst);
    "sent"
}

/// Logs in.
#[tool(effect = "idempotent")]
fn login(user: String, #[arg(secret)] password: String, ran: &Ran) -> String {
    ran.0.fetch_add(1, Ordering::SeqCst);
    format!("{user} with {} characters", password.len())
}

fn builder(replies: impl IntoIterator<Item = ScriptedReply>, ran: &Arc<Ran>) -> AssistantBuilder {
    Assistant::builder(ScriptedModel::new(replies))
        .tools(tools![add, pay, send, login])
        .shared_state(ran.clone())
}

async fn records(store: &MemoryStore) -> Vec<InvocationRecord> {
    store.list(InvocationQuery::new()).await.unwrap()
}

async fn kinds(store: &MemoryStore, session: &str) -> Vec<String> {
    let entries = store.load(session, 0, 100).await.unwrap();
    let word = |entry: &SessionEntry| match &entry.kind {
        EntryKind::RunBegin => "begin".to_owned(),
        EntryKind::RunResume => "resume".to_owned(),
        EntryKind::Message { message, .. } => format!("{} {}", entry.turn, message.role()),
        EntryKind::RunEnd { stop, .. } => stop.clone(),
        EntryKind::Reset => "reset".to_owned(),
        _ => "?".to_owned(),
    };
    entries.iter().map(|stored| word(&stored.1)).collect()
}

#[tokio::test]
async fn each_call_leaves_a_record() {
    use InvocationStatus::{Completed, Failed};
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let model = [
        reply()
            .text("Let me see.")
            .tool_call("add", r#"{"a": "40", "b": 2}"#)
            .tool_call("pay", r#"{"amount": 0}"#)
            .tool_call("add", r#"{"a": "many"}"#)
            .tool_call("subtract", "{}"),
        reply().text("Done."),
    ];
    let assistant = builder(model, &ran).store(store.clone()).session("s").await.unwrap();
    assistant.prompt("go").source(Source::new(5).with_label("user:7")).await.unwrap();
    let records = records(&store).await;
    let told: Vec<_> = records
        .iter()
        .map(|record| (&*record.tool, record.status, record.error_code(), record.args.to_string()))
        .collect();
    let mut told_in_order = told.clone();
    told_in_order.sort_by_key(|told| (told.1 == Completed, told.0.to_owned(), told.2.map(str::to_owned)));
    assert_eq!(
        told_in_order,
        [
            ("add", Failed, Some("invalid_arguments"), r#"{"a":"many"}"#.to_owned()),
            ("pay", Failed, Some("tool_error"), r#"{"amount":0}"#.to_owned()),
            ("subtract", Failed, Some("unknown_tool"), "{}".to_owned()),
            ("add", Completed, None, r#"{"a":40,"b":2}"#.to_owned()),
        ]
    );
    let first = records.iter().find(|record| record.key.ord == 0).unwrap();
    assert_eq!((first.result().unwrap().text_content(), first.attempt), ("42".into(), 1));
    assert_eq!((first.source.as_deref(), first.session.as_deref()), (Some("user:7"), Some("s")));
    assert!(first.completed_at() >= Some(first.created_at) && first.created_at > 1_600_000_000_000);
    assert!(first.fingerprint != 0);
    // The message of the first call says what the model said; the others do not.
    assert_eq!(first.call_message().text(), "Let me see.");
    assert!(
        records
            .iter()
            .filter(|record| record.key.ord > 0)
            .all(|record| record.call_message().text().is_empty())
    );
    let call =
        assistant.messages().get(1).unwrap().as_assistant().unwrap().tool_calls().next().unwrap().clone();
    assert_eq!(first.call_message().tool_calls().next().unwrap().id, call.id);
    let stored = first.result_message().unwrap();
    assert_eq!(Some(&stored), assistant.messages().get(2).unwrap().as_tool_result());
}

#[tokio::test]
async fn what_the_provider_ran_is_recorded() {
    let store = MemoryStore::new();
    let tool = |input: Option<&str>, output: Option<&str>| {
        let mut tool = ProviderTool::new("web_search");
        tool.id = Some("srv_1".to_owned());
        (tool.input, tool.output) = (input.map(|q| json!({"q": q})), output.map(|text| json!(text)));
        Part::new(Content::ProviderTool(Box::new(tool)))
    };
    let said = reply().part(tool(Some("tea"), None)).part(tool(None, Some("hot"))).text("It is hot.");
    let model = ScriptedModel::new([said]);
    let assistant = Assistant::builder(model).store(store.clone()).session("s").await.unwrap();
    assistant.prompt("go").await.unwrap();
    let records = records(&store).await;
    assert_eq!(records.len(), 1);
    let call = &records[0];
    assert_eq!((&*call.call_id, &*call.tool, &call.args), ("srv_1", "web_search", &json!({"q": "tea"})));
    assert_eq!((records[0].result().unwrap().text_content(), call.key.kind), ("hot".into(), StepKind::Model));
}

#[tokio::test]
async fn records_need_no_session() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let model = [reply().tool_call("send", "{}"), reply().text("Done.")];
    let assistant = builder(model, &ran).store(store.clone()).build().unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!(records(&store).await.len(), 1);
    assert_eq!(records(&store).await[0].session, None);
    let error = builder([], &ran).session("s").await.unwrap_err();
    assert!(matches!(error, BuildError::NoStore), "{error}");
}

#[tokio::test]
async fn a_session_goes_on_from_assistant_to_assistant() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    for round in 0..3_usize {
        let model = [reply().tool_call("add", format!(r#"{{"a": {round}, "b": 1}}"#)), reply().text("Done.")];
        let assistant = builder(model, &ran).store(store.clone()).session("s").await.unwrap();
        assert_eq!(assistant.messages().len(), 4 * round);
        assistant.prompt("go").await.unwrap();
        assert_eq!(assistant.messages().len(), 4 * (round + 1));
        assert_sound(&assistant);
    }
    let one = ["begin", "1 user", "1 assistant", "1 tool_result", "2 assistant", "completed"];
    assert_eq!(kinds(&store, "s").await, [one, one, one].concat());
}

#[tokio::test]
async fn a_reset_is_part_of_the_session() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let assistant = builder([reply().text("One."), reply().text("Two.")], &ran).store(store.clone());
    let assistant = assistant.session("s").await.unwrap();
    assistant.prompt("go").await.unwrap();
    assistant.reset().await;
    assistant.prompt("again").await.unwrap();
    let again = builder([], &ran).store(store.clone()).session("s").await.unwrap();
    assert_eq!(outline(&again), ["user again", "stop Two."]);
}

#[tokio::test]
async fn two_on_one_session_do_not_mix() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let open = async |text: &str| {
        builder([reply().text(text), reply().text(text)], &ran)
            .store(store.clone())
            .session("s")
            .await
            .unwrap()
    };
    let (first, second) = (open("first").await, open("second").await);
    first.prompt("one").await.unwrap();
    let error = second.prompt("two").await.unwrap_err();
    assert!(error.as_store_error().is_some_and(agent::store::StoreError::is_conflict), "{error}");
    assert_eq!(error.code(), "store");
    let then = "; open the session again with `session`, and send the prompt again";
    assert!(error.to_string().ends_with(then), "{error}");
    let error = second.prompt("three").await.unwrap_err();
    assert!(error.as_store_error().is_some(), "it has to be opened again: {error}");
    first.prompt("four").await.unwrap();
    assert_eq!(outline(&open("").await), ["user one", "stop first", "user four", "stop first"]);
}

/// A run that died: what its process stored, up to the calls of the first reply.
async fn left(store: &MemoryStore, calls: &[(&str, &str)]) {
    let parts =
        calls.iter().enumerate().map(|(at, (tool, args))| Part::tool_call(format!("c{at}"), *tool, *args));
    let reply = AssistantMessage::new(parts);
    let entries = [
        EntryKind::RunBegin,
        EntryKind::message(Message::user("go")),
        EntryKind::message(Message::Assistant(reply)),
    ];
    let entries = entries.into_iter().map(|kind| SessionEntry::new(kind).in_run("run-1", 1)).collect();
    store.append("s", 0, entries).await.unwrap();
}

fn key(ord: u32) -> StepKey {
    StepKey::new("run-1", 1, StepKind::Tool, ord)
}

/// As its process recorded the beginning of a call: with the tool's fingerprint as it is.
async fn begun(store: &MemoryStore, ord: u32, tool: &str, args: agent::Value) {
    let probe = MemoryStore::new();
    let ran = Arc::<Ran>::default();
    let model = [reply().tool_call(tool, args.to_string()), reply().text("Done.")];
    let assistant = builder(model, &ran).store(probe.clone()).session("probe").await.unwrap();
    assistant.prompt("go").await.unwrap();
    let mut new: InvocationRecord = records(&probe).await.remove(0);
    (new.key, new.call_id) = (key(ord), format!("c{ord}"));
    store.begin(new).await.unwrap();
}

#[tokio::test]
async fn what_a_call_comes_to_after_a_crash_is_said_by_its_tool() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    left(
        &store,
        &[("send", "{}"), ("pay", r#"{"amount": 5}"#), ("add", r#"{"a": 1, "b": 2}"#), ("send", "{}")],
    )
    .await;
    begun(&store, 0, "send", json!({})).await;
    begun(&store, 1, "pay", json!({"amount": 5})).await;
    begun(&store, 2, "add", json!({"a": 1, "b": 2})).await;
    let done = agent::store::InvocationEnd::new(agent::ToolOutput::text("recorded").into(), 1);
    store.finish(&key(2), done).await.unwrap();
    // The fourth had not begun.
    let assistant = builder([reply().text("Done.")], &ran).store(store.clone()).session("s").await.unwrap();
    assert_eq!(assistant.unfinished_run().as_deref(), Some("run-1"));
    let output = assistant.continue_run().await.unwrap();
    assert_eq!((&*output.run_id, output.turns, output.stop), ("run-1", 2, RunStop::Completed));
    assert_eq!(
        outline(&assistant),
        [
            "user go",
            "tool_use send,pay,add,send",
            "send interrupted(lost)",
            "pay 5 at 2",
            "add recorded",
            "send sent",
            "stop Done."
        ]
    );
    assert_eq!(ran.count(), 2);
    assert_eq!(assistant.unfinished_run(), None);
    let tail = [
        "resume",
        "1 tool_result",
        "1 tool_result",
        "1 tool_result",
        "1 tool_result",
        "2 assistant",
        "completed",
    ];
    assert_eq!(kinds(&store, "s").await[3..], tail);
    assert!(store.pending_before(i64::MAX, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_prompt_leaves_the_run_and_keeps_what_is_recorded() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    left(&store, &[("add", r#"{"a": 1, "b": 2}"#), ("pay", r#"{"amount": 5}"#), ("send", "{}")]).await;
    begun(&store, 0, "add", json!({"a": 1, "b": 2})).await;
    begun(&store, 1, "pay", json!({"amount": 5})).await;
    let done = agent::store::InvocationEnd::new(agent::ToolOutput::text("recorded").into(), 1);
    store.finish(&key(0), done).await.unwrap();
    let assistant = builder([reply().text("Done.")], &ran).store(store.clone()).session("s").await.unwrap();
    assistant.prompt("something else").await.unwrap();
    let wanted = [
        "user go",
        "tool_use add,pay,send",
        "add recorded",
        "pay interrupted(lost)",
        "send interrupted(lost)",
        "user something else",
        "stop Done.",
    ];
    assert_eq!(outline(&assistant), wanted);
    assert_eq!(ran.count(), 0);
    let again = builder([], &ran).store(store.clone()).session("s").await.unwrap();
    assert_eq!(outline(&again), wanted);
    assert!(store.pending_before(i64::MAX, 9).await.unwrap().is_empty(), "nobody will go on with it");
}

#[tokio::test]
async fn other_arguments_or_too_many_attempts_are_not_run_again() {
    for (args, attempts, wanted) in [
        (json!({"amount": 5}), 2, "pay 5 at 3"),
        (json!({"amount": 5}), 3, "lost"),
        (json!({"amount": 6}), 1, "lost"),
    ] {
        let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
        left(&store, &[("pay", r#"{"amount": 5}"#)]).await;
        for _ in 0..attempts {
            begun(&store, 0, "pay", args.clone()).await;
        }
        let assistant =
            builder([reply().text("Done.")], &ran).store(store.clone()).session("s").await.unwrap();
        assistant.continue_run().await.unwrap();
        assert!(outline(&assistant)[2].contains(wanted), "{:?}", outline(&assistant));
    }
}

#[tokio::test]
async fn secrets_are_not_stored_unless_asked() {
    for keeps in [false, true] {
        let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
        let model =
            [reply().tool_call("login", r#"{"user": "ann", "password": "hunter2"}"#), reply().text("In.")];
        let mut assistant = builder(model, &ran);
        if keeps {
            // The order of the options is the application's.
            assistant = assistant.store_secrets();
        }
        let assistant = assistant.store(store.clone()).session("s").await.unwrap();
        assistant.prompt("go").await.unwrap();
        assert_eq!(outline(&assistant)[2], "login ann with 7 characters");
        let record = records(&store).await.remove(0);
        assert_eq!((record.args["user"].as_str(), record.is_withheld), (Some("ann"), !keeps));
        let stored = format!("{} {:?}", record.args, store.load("s", 0, 99).await.unwrap());
        let entries = serde_json::to_string(
            &store.load("s", 0, 99).await.unwrap().into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(),
        );
        assert_eq!((stored + &entries.unwrap()).contains("hunter2"), keeps);
    }
}

#[tokio::test]
async fn secrets_that_a_person_gives_a_call_are_not_stored_either() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let model = [reply().tool_call("login", r#"{"user": "ann", "password": "guess"}"#), reply().text("In.")];
    let assistant = Assistant::builder(ScriptedModel::new(model))
        .tools(tools![login].require_approval(agent::Approval::ALWAYS))
        .on_approval(|_| async { Decision::AllowWith(json!({"user": "ann", "password": "hunter2"})) })
        .shared_state(ran.clone())
        .store(store.clone());
    let assistant = assistant.session("s").await.unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!(outline(&assistant)[2], "login ann with 7 characters");
    let entries: Vec<_> = store.load("s", 0, 99).await.unwrap().into_iter().map(|(_, entry)| entry).collect();
    let stored = serde_json::to_string(&entries).unwrap();
    assert!(stored.contains(r#""edited_args":{"user":"ann","password":"[secret]"}"#), "{stored}");
    assert!(!stored.contains("hunter2") && !stored.contains("guess"), "{stored}");
}

#[tokio::test]
async fn a_call_without_its_secrets_is_not_run() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let call = Part::tool_call("c0", "login", r#"{"user": "ann", "password": "[secret]"}"#);
    let reply_with = Message::Assistant(AssistantMessage::new([call]));
    let entries = [
        EntryKind::RunBegin,
        EntryKind::message(Message::user("go")),
        EntryKind::message_without(reply_with, vec!["c0".to_owned()], false),
    ];
    let entries = entries.into_iter().map(|kind| SessionEntry::new(kind).in_run("run-1", 1)).collect();
    store.append("s", 0, entries).await.unwrap();
    let assistant = builder([reply().text("Again?")], &ran).store(store.clone()).session("s").await.unwrap();
    assistant.continue_run().await.unwrap();
    assert_eq!((outline(&assistant)[2].as_str(), ran.count()), ("login failed(secrets_not_kept)", 0));
}

#[tokio::test]
async fn approvals_are_asked_again_and_a_call_that_was_allowed_is_not() {
    /// Wires money.
    #[tool(effect = "idempotent", approval = "always")]
    fn wire(ran: &Ran) -> &'static str {
        ran.0.fetch_add(1, Ordering::SeqCst);
        "wired"
    }
    let (store, ran, asked) = (MemoryStore::new(), Arc::<Ran>::default(), Arc::new(Mutex::new(0)));
    let open = async |replies: Vec<ScriptedReply>| {
        let asked = asked.clone();
        let builder =
            Assistant::builder(ScriptedModel::new(replies)).tools(tools![wire]).shared_state(ran.clone());
        let builder = builder.on_approval(move |_| {
            *asked.lock().unwrap() += 1;
            async { Decision::Later }
        });
        builder.approval_key([5; 32]).store(store.clone()).session("s").await.unwrap()
    };
    let first = open(vec![reply().tool_call("wire", "{}").tool_call("wire", "{}")]).await;
    let suspended = first.prompt("go").await.unwrap();
    assert_eq!((suspended.stop, *asked.lock().unwrap()), (RunStop::Suspended, 2));
    let run: &str = &suspended.run_id;
    assert!(records(&store).await.is_empty(), "what waits has not begun");
    drop(first);
    // Its process died; the next one allowed both, began the first, and died too.
    let probe = store.clone();
    let second = open(Vec::new()).await;
    assert_eq!(second.unfinished_run().as_deref(), Some(run));
    let again = second.continue_run().await.unwrap();
    assert_eq!((again.stop, *asked.lock().unwrap()), (RunStop::Suspended, 4));
    let key = StepKey::new(run, 1, StepKind::Tool, 0);
    let fingerprint = again.snapshot.as_ref().unwrap().requests()[0].fingerprint;
    let mut new = InvocationRecord::new(key, "c", "wire", json!({}));
    new.fingerprint = fingerprint;
    probe.begin(new).await.unwrap();
    let third = open(vec![reply().text("Done.")]).await;
    let suspended = third.continue_run().await.unwrap().snapshot.unwrap();
    assert_eq!(*asked.lock().unwrap(), 5, "only what had not begun is asked about");
    // It may be stored once more: the call that had begun counts as allowed.
    let suspended: SuspendedRun = serde_json::from_str(&serde_json::to_string(&suspended).unwrap()).unwrap();
    let decisions = Decisions::new().deny(&suspended.requests()[0], "not twice");
    third.resume(&suspended, decisions).await.unwrap();
    assert_eq!(outline(&third)[2..], ["wire wired", "wire denied(denied)", "stop Done."]);
    assert_eq!(ran.count(), 1);
    assert_eq!(records(&store).await.len(), 2);
}

#[tokio::test]
async fn results_that_come_later_are_recorded_when_they_come() {
    /// Orders.
    #[tool]
    fn order() -> ToolOutcome {
        ToolOutcome::Deferred { handle: "order-7".to_owned() }
    }
    let store = MemoryStore::new();
    let open = async |replies: Vec<ScriptedReply>| {
        Assistant::builder(ScriptedModel::new(replies))
            .tools(tools![order])
            .store(store.clone())
            .session("s")
            .await
            .unwrap()
    };
    let first = open(vec![reply().tool_call("order", "{}")]).await;
    assert_eq!(first.prompt("go").await.unwrap().stop, RunStop::Suspended);
    let record = records(&store).await.remove(0);
    assert_eq!((record.status, record.handle.as_deref()), (InvocationStatus::Pending, Some("order-7")));
    assert!(store.pending_before(i64::MAX, 9).await.unwrap().is_empty(), "it is not lost");
    let second = open(vec![reply().text("It came.")]).await;
    let suspended = second.continue_run().await.unwrap();
    assert_eq!(suspended.stop, RunStop::Suspended);
    let snapshot = suspended.snapshot.unwrap();
    let call_id = &record.call_id;
    let arrived = Decisions::new().deliver(call_id, agent::ToolOutput::text("a parcel"));
    assert_eq!(second.resume(&snapshot, arrived).await.unwrap().text(), "It came.");
    assert_eq!(records(&store).await[0].result().unwrap().text_content(), "a parcel");
    assert_eq!(outline(&second)[2], "order a parcel");
}

#[tokio::test]
async fn others_steer_a_session_through_its_inbox() {
    let (store, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let mut message = agent::message::UserMessage::from("and hurry");
    message.id = Some("m1".to_owned());
    store.push_steering("s", message).await.unwrap();
    let model = [reply().text("At once.")];
    let assistant = builder(model, &ran).store(store.clone()).session("s").await.unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!(outline(&assistant), ["user go", "user and hurry", "stop At once."]);
}

#[tokio::test]
async fn a_dropped_prompt_leaves_no_pending_record() {
    /// Never ends.
    #[tool(effect = "pure")]
    async fn wait(cx: &ToolContext) {
        cx.cancelled().await;
        std::future::pending::<()>().await;
    }
    let store = MemoryStore::new();
    let model = ScriptedModel::new([reply().tool_call("wait", "{}"), reply().text("Well.")]);
    let assistant =
        Assistant::builder(model).tools(tools![wait]).store(store.clone()).session("s").await.unwrap();
    let is = async |status| {
        while records(&store).await.first().is_none_or(|record| record.status != status) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = assistant.prompt("go").into_future() => panic!("it never ends"),
        () = is(InvocationStatus::Pending) => {}
    }
    is(InvocationStatus::Failed).await;
    assert_eq!(records(&store).await[0].error_code(), Some("aborted"));
    assistant.prompt("still there?").await.unwrap();
    let again =
        Assistant::builder(ScriptedModel::new(["x"])).store(store.clone()).session("s").await.unwrap();
    assert_eq!(outline(&again), outline(&assistant));
    assert!(matches!(again.continue_run().await, Err(RunError::LastMessageIsAssistant)));
}

#[test]
fn a_prompt_that_is_dropped_outside_of_a_runtime_leaves_no_pending_record() {
    /// Never ends.
    #[tool(effect = "pure")]
    async fn wait() {
        std::future::pending::<()>().await;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = MemoryStore::new();
    let model = ScriptedModel::new([reply().tool_call("wait", "{}"), reply().text("Well.")]);
    let assistant = Assistant::builder(model).tools(tools![wait]).store(store.clone()).build().unwrap();
    let mut prompt = assistant.prompt("go").into_future();
    runtime.block_on(async {
        while records(&store).await.is_empty() {
            let waited = tokio::time::timeout(Duration::from_millis(5), &mut prompt).await;
            assert!(waited.is_err(), "it never ends");
        }
    });
    drop(prompt);
    runtime.block_on(async {
        assistant.prompt("still there?").await.unwrap();
        assert_eq!(records(&store).await[0].error_code(), Some("aborted"));
    });
}
