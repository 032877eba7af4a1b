//! One call with its record, outside of an assistant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent::message::ToolCall;
use agent::model::reply;
use agent::store::{
    InvocationQuery, InvocationRecord, InvocationStatus, MemoryStore, SqlStore, Store, StoreErrorKind,
};
use agent::{
    Assistant, CancelToken, Registry, ScriptedModel, ToolContext, ToolError, ToolOutcome, json,
    run::InvokeError, tool, tool::Source, tools,
};

use crate::store_support::{Fault, Faulty, Folder};

#[derive(Default)]
struct Runs(AtomicU32);

impl Runs {
    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Books.
#[tool(inline)]
fn book(nights: u32, runs: &Runs, cx: &ToolContext) -> Result<String, String> {
    runs.0.fetch_add(1, Ordering::SeqCst);
    if nights == 13 { Err("full".to_owned()) } else { Ok(format!("{nights} at {}", cx.idempotency_key())) }
}

/// Books, but not at once.
#[tool]
async fn book_slowly(runs: &Runs) -> &'static str {
    runs.0.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(60)).await;
    "booked"
}

/// Reads.
#[tool(inline, read_only)]
fn read(runs: &Runs, cx: &ToolContext) -> String {
    runs.0.fetch_add(1, Ordering::SeqCst);
    format!("attempt {}", cx.attempt())
}

/// Pays.
#[tool(inline)]
fn pay(#[arg(secret)] card: String, amount: u32) -> String {
    format!("{amount} paid with {} digits", card.len())
}

/// Panics.
#[tool(inline)]
fn crash() -> u32 {
    panic!("a bug")
}

/// Waits.
#[tool]
async fn wait() {
    std::future::pending::<()>().await;
}

/// Takes its time.
#[tool]
fn later() -> ToolOutcome {
    ToolOutcome::Deferred { handle: "h-1".to_owned() }
}

/// Books by another tool.
#[tool]
async fn twice(registry: &Registry, store: &MemoryStore, cx: &ToolContext) -> String {
    let call = ToolCall::new("inner", "book", r#"{"nights": 1}"#);
    registry.invoke(&call, cx, store.clone()).await.unwrap().key.to_string()
}

/// Asks a person.
#[tool(asks)]
async fn ask(cx: &ToolContext) -> Result<String, ToolError> {
    Ok(cx.ask("Which?").await?)
}

/// Asks by another tool.
#[tool]
async fn relay(registry: &Registry, store: &MemoryStore, cx: &ToolContext) -> String {
    let record = registry.invoke(&call("ask", "{}"), cx, store.clone()).await.unwrap();
    format!("{:?}", (record.status, record.error_code()))
}

fn registry(runs: &Arc<Runs>) -> Registry {
    Registry::new(tools![book, book_slowly, read, pay, crash, wait, later])
        .unwrap()
        .with_shared_state(runs.clone())
        .unwrap()
}

fn keyed(key: &str) -> ToolContext {
    ToolContext::new().with_idempotency_key(key)
}

fn call(tool: &str, args: &str) -> ToolCall {
    ToolCall::new("c", tool, args)
}

async fn stored(store: &impl Store) -> Vec<InvocationRecord> {
    store.list(InvocationQuery::new()).await.unwrap()
}

#[tokio::test]
async fn a_call_is_checked_recorded_run_and_completed() {
    let runs = Arc::<Runs>::default();
    let folder = Folder::new();
    let sql = SqlStore::sqlite(folder.path("a.db")).await.unwrap();
    let memory = MemoryStore::new();
    let cx = ToolContext::new()
        .with_idempotency_key("order-7")
        .with_session_id("ann")
        .with_source(Source::new(()).with_label("user:7"));
    let call = call("book", r#"{"nights": "2"}"#);
    let record = registry(&runs).invoke(&call, &cx, memory.clone()).await.unwrap();
    assert_eq!(record.result().unwrap().text_content(), "2 at order-7/1/tool/0");
    assert_eq!((&record.args, record.status), (&json!({"nights": 2}), InvocationStatus::Completed));
    assert_eq!((record.session.as_deref(), record.source.as_deref()), (Some("ann"), Some("user:7")));
    assert!(record.fingerprint != 0 && record.completed_at() >= Some(record.created_at));
    assert_eq!(stored(&memory).await, std::slice::from_ref(&record), "what is returned is what is stored");
    assert_eq!(record.result_message().unwrap().text(), "2 at order-7/1/tool/0");
    // A store in a database gives the same; without a key each call has its own.
    for n in 1..=2 {
        let record = registry(&runs).invoke(&call, &ToolContext::new(), sql.clone()).await.unwrap();
        assert_eq!((record.status, stored(&sql).await.len()), (InvocationStatus::Completed, n));
    }
    assert_eq!(runs.count(), 3);
}

#[tokio::test]
async fn however_a_call_ends_is_data_in_a_failed_record() {
    let runs = Arc::<Runs>::default();
    for (tool, args, code, said) in [
        ("book", r#"{"nights": 13}"#, "tool_error", "full"),
        ("book", r#"{"nights": -1}"#, "invalid_arguments", "/nights"),
        ("bok", "{}", "unknown_tool", "book"),
        ("crash", "{}", "panic", "a bug"),
    ] {
        let store = MemoryStore::new();
        let record =
            registry(&runs).invoke(&call(tool, args), &ToolContext::new(), store.clone()).await.unwrap();
        assert_eq!((record.status, record.error_code()), (InvocationStatus::Failed, Some(code)));
        // The text of a panic is for the log.
        assert_eq!(record.error().unwrap().contains(said), tool != "crash", "{:?}", record.error());
        assert_eq!(stored(&store).await, [record]);
    }
    assert_eq!(runs.count(), 1, "what was refused did not run");
    let store = MemoryStore::new();
    let record =
        registry(&runs).invoke(&call("later", "{}"), &ToolContext::new(), store.clone()).await.unwrap();
    assert_eq!((record.status, record.handle.as_deref()), (InvocationStatus::Pending, Some("h-1")));
    assert_eq!(stored(&store).await, [record]);
}

#[tokio::test]
async fn secrets_are_withheld() {
    let runs = Arc::<Runs>::default();
    for (tool, args) in [
        ("pay", r#"{"card": "4111-SECRET", "amount": 3}"#),
        ("pay", r#"{"card": "4111-SECRET", "amount": "many"}"#),
        ("pya", r#"{"card": "4111-SECRET"}"#),
    ] {
        let store = MemoryStore::new();
        let record =
            registry(&runs).invoke(&call(tool, args), &ToolContext::new(), store.clone()).await.unwrap();
        let shown = format!("{} {:?}", json!(record), record);
        assert!(record.is_withheld && !shown.contains("SECRET"), "{shown}");
        assert!(!format!("{:?}", stored(&store).await).contains("SECRET"));
    }
}

#[tokio::test]
async fn one_key_is_one_call() {
    let (runs, store) = (Arc::<Runs>::default(), MemoryStore::new());
    let registry = registry(&runs);
    let book = |nights: u32| call("book", &format!(r#"{{"nights": {nights}}}"#));
    for nights in [2, 13] {
        let cx = keyed(&format!("order-{nights}"));
        let first = registry.invoke(&book(nights), &cx, store.clone()).await.unwrap();
        assert_eq!(registry.invoke(&book(nights), &cx, store.clone()).await.unwrap(), first);
    }
    assert_eq!(runs.count(), 2);
    for other in [book(3), call("read", "{}")] {
        let error = registry.invoke(&other, &keyed("order-2"), store.clone()).await.unwrap_err();
        assert!(matches!(&error, InvokeError::KeyInUse { key, .. } if key.to_string() == "order-2/1/tool/0"));
        assert!(error.to_string().contains("belongs to another call"), "{error}");
    }
    assert_eq!(runs.count(), 2);
    // A key of a step is that key.
    let record = registry.invoke(&book(1), &keyed("run-1/3/tool/2"), store.clone()).await.unwrap();
    assert_eq!(record.key.to_string(), "run-1/3/tool/2");
}

#[tokio::test]
async fn a_call_that_died_runs_again_only_if_it_may() {
    for (tool, args, ran) in [("read", "{}", 1), ("book", r#"{"nights": 2}"#, 0)] {
        let (runs, store) = (Arc::<Runs>::default(), MemoryStore::new());
        // The record of a process that died: its end was never stored.
        let broken = Faulty::new(&store, Fault::Fails(StoreErrorKind::Other), 2, 9);
        let first = registry(&Arc::default()).invoke(&call(tool, args), &keyed("k"), broken).await;
        assert!(matches!(first, Err(InvokeError::Store { record: Some(_), .. })), "{first:?}");
        assert_eq!(stored(&store).await[0].status, InvocationStatus::Pending);
        // Another call with its key uses none of its attempts.
        let other = registry(&runs).invoke(&call("crash", "{}"), &keyed("k"), store.clone()).await;
        assert!(matches!(other, Err(InvokeError::KeyInUse { .. })), "{other:?}");
        let record = registry(&runs).invoke(&call(tool, args), &keyed("k"), store.clone()).await.unwrap();
        assert_eq!((runs.count(), record.attempt), (ran, 2), "{tool}");
        match ran {
            1 => assert_eq!(record.result().unwrap().text_content(), "attempt 2"),
            _ => assert_eq!(record.error_code(), Some("lost")),
        }
        assert_eq!(stored(&store).await, [record]);
    }
}

#[tokio::test]
async fn what_cannot_be_recorded_does_not_run() {
    for fault in [Fault::Fails(StoreErrorKind::Full), Fault::Panics] {
        let runs = Arc::<Runs>::default();
        let store = Faulty::new(&MemoryStore::new(), fault, 0, 9);
        let error =
            registry(&runs).invoke(&call("read", "{}"), &ToolContext::new(), store).await.unwrap_err();
        assert!(matches!(error, InvokeError::Store { record: None, .. }), "{error}");
        assert_eq!(runs.count(), 0);
    }
    // The end that the store lacks is not lost.
    let runs = Arc::<Runs>::default();
    let store = Faulty::new(&MemoryStore::new(), Fault::Fails(StoreErrorKind::Full), 1, 9);
    let error = registry(&runs).invoke(&call("read", "{}"), &ToolContext::new(), store).await.unwrap_err();
    let InvokeError::Store { error, record: Some(record), .. } = error else { panic!("{error}") };
    assert_eq!(error.kind(), StoreErrorKind::Full);
    assert_eq!(record.result().unwrap().text_content(), "attempt 1");
    // A store whose answers get lost is asked what it has.
    let store = Faulty::new(&MemoryStore::new(), Fault::LosesTheAnswer, 1, 1);
    let record = registry(&runs).invoke(&call("read", "{}"), &ToolContext::new(), store).await.unwrap();
    assert_eq!(record.status, InvocationStatus::Completed);
}

#[tokio::test]
async fn a_call_that_is_stopped_has_an_end() {
    let store = MemoryStore::new();
    let registry = registry(&Arc::default());
    let waits = call("wait", "{}");
    let cx = ToolContext::new();
    let dropped =
        tokio::time::timeout(Duration::from_millis(50), registry.invoke(&waits, &cx, store.clone()));
    assert!(dropped.await.is_err());
    for _ in 0..100 {
        if stored(&store).await[0].status != InvocationStatus::Pending {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(stored(&store).await[0].error_code(), Some("aborted"));
    // Cancelled before it began, a call does not run.
    let token = CancelToken::new();
    token.cancel("too late");
    let cx = ToolContext::new().with_cancel(token);
    let record = registry.invoke(&waits, &cx, MemoryStore::new()).await.unwrap();
    assert_eq!(record.error_code(), Some("aborted"));
    assert!(record.error().unwrap().contains("too late"));
}

#[tokio::test]
async fn a_call_within_a_call_has_a_key_of_its_own() {
    let (runs, store) = (Arc::<Runs>::default(), MemoryStore::new());
    let outer = Registry::new(tools![twice]).unwrap().with_state(registry(&runs)).unwrap();
    let outer = outer.with_state(store.clone()).unwrap();
    let record = outer.invoke(&call("twice", "{}"), &keyed("order-7"), store.clone()).await.unwrap();
    assert_eq!(record.result().unwrap().text_content(), "order-7/1/tool/0/inner/1/tool/0");
    assert_eq!(stored(&store).await.len(), 2);
}

#[tokio::test]
async fn a_call_waits_for_the_running_call_with_its_key() {
    for pause in [0, 20] {
        let (runs, store) = (Arc::<Runs>::default(), MemoryStore::new());
        let (registry, call) = (registry(&runs), call("book_slowly", "{}"));
        let cx = keyed("order-8");
        let later = async {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            registry.invoke(&call, &cx, store.clone()).await.unwrap()
        };
        let (first, second) = tokio::join!(registry.invoke(&call, &cx, store.clone()), later);
        let first = first.unwrap();
        assert_eq!(first.result().unwrap().text_content(), "booked");
        assert_eq!((runs.count(), second), (1, first));
    }
    // A call that is cancelled while it waits does not stop the call that runs.
    let (runs, store, token) = (Arc::<Runs>::default(), MemoryStore::new(), CancelToken::new());
    let (registry, call, cx) = (registry(&runs), call("book_slowly", "{}"), keyed("order-8"));
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        token.cancel("too late");
        let cx = cx.clone().with_cancel(token.clone());
        registry.invoke(&call, &cx, store.clone()).await.unwrap()
    };
    let (first, second) = tokio::join!(registry.invoke(&call, &cx, store.clone()), cancelled);
    assert_eq!((second.status, second.attempt), (InvocationStatus::Pending, 1));
    assert_eq!(first.unwrap().status, InvocationStatus::Completed);
}

#[tokio::test]
async fn a_call_that_is_dropped_while_the_store_works_has_its_own_end() {
    let registry = registry(&Arc::default());
    for (tool, at, handle, code) in [("read", 0, None, Some("aborted")), ("later", 1, Some("h-1"), None)] {
        let store = MemoryStore::new();
        let slow = Faulty::new(&store, Fault::SlowWhenDone(Duration::from_millis(100)), at, 1);
        let (call, cx) = (call(tool, "{}"), ToolContext::new());
        let dropped = tokio::time::timeout(Duration::from_millis(30), registry.invoke(&call, &cx, slow));
        assert!(dropped.await.is_err());
        tokio::time::sleep(Duration::from_millis(300)).await;
        let record = &stored(&store).await[0];
        assert_eq!((record.handle.as_deref(), record.error_code()), (handle, code), "{tool}");
    }
}

#[tokio::test]
async fn a_question_of_a_call_within_a_run_does_not_wait() {
    let model = ScriptedModel::new([reply().tool_call("relay", "{}"), reply().text("Well.")]);
    let assistant = Assistant::builder(model).tools(tools![relay]);
    let assistant = assistant.state(Registry::new(tools![ask]).unwrap()).state(MemoryStore::new());
    let output = assistant.build().unwrap().prompt("Go").await.unwrap();
    assert_eq!(output.messages[2].text(), r#"(Failed, Some("cannot_ask"))"#);
}
