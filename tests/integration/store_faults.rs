//! Stores that fail: typed errors, nothing lost, nothing twice, and the run's outcome is told.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::{Message, UserMessage};
use agent::model::reply;
use agent::store::{
    EntryKind, InvocationEnd, InvocationQuery, InvocationRecord, InvocationStatus, MemoryStore, SessionEntry,
    SqlStore, Store as _, StoreErrorKind,
};
use agent::{
    Assistant, RunError, json,
    steps::{StepKey, StepKind},
    tool, tools,
};

use crate::assistant_support::assert_sound;
use crate::store_support::{Fault, Faulty, Folder, postgres, unique};

/// How often each body ran.
#[derive(Default)]
struct Ran {
    once: AtomicU32,
    again: Mutex<Vec<String>>,
}

/// Must not happen twice.
#[tool(inline, effect = "once")]
fn once(ran: &Ran) -> &'static str {
    ran.once.fetch_add(1, Ordering::SeqCst);
    "once"
}

/// May happen again, with its key.
#[tool(inline, effect = "idempotent")]
fn again(ran: &Ran, cx: &agent::ToolContext) -> &'static str {
    ran.again.lock().unwrap().push(cx.idempotency_key().to_owned());
    "again"
}

/// One run with a fault at each request to the store in turn; then its process is gone, and the next one goes on.
async fn sweep(fault: Fault, times: usize) {
    let (mut at, mut failures) = (0, 0);
    loop {
        let what = format!("{fault:?} at request {at}");
        let (inner, ran) = (MemoryStore::new(), Arc::<Ran>::default());
        let store = Faulty::new(&inner, fault, at, times);
        let replies = || {
            [
                reply().tool_call("once", "{}").tool_call("again", "{}").tool_call("none", "{}"),
                reply().text("Done."),
            ]
        };
        let builder = |replies: Vec<agent::model::ScriptedReply>| {
            Assistant::builder(ScriptedModel::new(replies))
                .tools(tools![once, again])
                .shared_state(ran.clone())
        };
        let opened = builder(replies().into()).store(store.clone()).store_timeout(Duration::from_millis(20));
        let result = match opened.session("s").await {
            Ok(assistant) => {
                let result = assistant.prompt("go").await;
                assert_sound(&assistant);
                result.map(drop)
            }
            Err(error) => {
                assert!(error.to_string().contains("session"), "{what}: {error}");
                failures += 1;
                at += 1;
                continue;
            }
        };
        match &result {
            Ok(()) => {}
            Err(RunError::Store { error, output, .. }) => {
                failures += 1;
                assert!(!output.messages.is_empty(), "{what}: what it came to is told");
                let is_it = match fault {
                    Fault::Fails(kind) => error.kind() == kind,
                    Fault::LosesTheAnswer => error.kind() == StoreErrorKind::Unavailable,
                    Fault::Hangs | Fault::HangsWhenDone | Fault::HangsAndPanics => {
                        error.kind() == StoreErrorKind::Timeout
                    }
                    Fault::Panics => error.kind() == StoreErrorKind::Other,
                    Fault::Slow(_)
                    | Fault::OtherRecord
                    | Fault::StartsAgain
                    | Fault::SameRecords
                    | Fault::SameSessions
                    | Fault::LowNumber
                    | Fault::ManyMessages
                    | Fault::SlowWhenDone(_) => false,
                };
                assert!(is_it, "{what}: {error}");
            }
            Err(error) => panic!("{what}: {error}"),
        }
        if store.asked() <= at {
            break;
        }
        // The store is well again, and the process another one.
        let asked_before = inner.load("s", 0, 99).await.unwrap().iter().any(|stored| {
            matches!(&stored.1.kind, EntryKind::Message { message, .. } if message.as_assistant().is_some())
        });
        let replies: Vec<_> = replies().into_iter().skip(usize::from(asked_before)).collect();
        let next = builder(replies).store(inner.clone()).session("s").await.unwrap();
        let went_on = match next.unfinished_run() {
            Some(_) => next.continue_run().await.map(drop),
            None if next.messages().is_empty() => next.prompt("go").await.map(drop),
            None => Ok(()),
        };
        went_on.unwrap_or_else(|error| panic!("{what}, then: {error}"));
        assert_sound(&next);
        check(&inner, &ran, &next, &what).await;
        at += 1;
    }
    assert!(failures > 0 || times == 1, "{fault:?} was noticed");
}

async fn check(inner: &MemoryStore, ran: &Ran, next: &Assistant, what: &str) {
    let conversation = next.messages();
    assert_eq!(conversation.len(), 6, "{what}: {conversation:?}");
    assert_eq!(conversation.last().map(Message::text).as_deref(), Some("Done."), "{what}");
    assert!(ran.once.load(Ordering::SeqCst) <= 1, "{what}: `once` ran twice");
    let mut keys = ran.again.lock().unwrap().clone();
    assert!((1..=2).contains(&keys.len()), "{what}: {keys:?}");
    keys.dedup();
    let records = inner.list(InvocationQuery::new()).await.unwrap();
    let own: Vec<_> = records.iter().filter(|record| keys.contains(&record.key.to_string())).collect();
    assert_eq!(own.len(), keys.len(), "{what}: each key has one record");
    assert!(records.iter().all(|record| record.status != InvocationStatus::Pending), "{what}: {records:?}");
    assert!(records.len() >= 3, "{what}: {records:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_fails_the_run_and_loses_nothing() {
    for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Full, StoreErrorKind::ReadOnly] {
        sweep(Fault::Fails(kind), 1).await;
        sweep(Fault::Fails(kind), usize::MAX).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_store_is_asked_again() {
    sweep(Fault::Fails(StoreErrorKind::Busy), 1).await;
    sweep(Fault::Fails(StoreErrorKind::Busy), usize::MAX).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_up() {
    sweep(Fault::LosesTheAnswer, 1).await;
    sweep(Fault::LosesTheAnswer, usize::MAX).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_is_not_waited_for() {
    sweep(Fault::Hangs, 1).await;
    sweep(Fault::Hangs, usize::MAX).await;
    sweep(Fault::HangsWhenDone, 1).await;
    sweep(Fault::HangsWhenDone, usize::MAX).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_takes_nothing_with_it() {
    sweep(Fault::Panics, 1).await;
    sweep(Fault::Panics, usize::MAX).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_when_it_is_given_up_takes_nothing_with_it() {
    sweep(Fault::HangsAndPanics, 1).await;
    sweep(Fault::HangsAndPanics, usize::MAX).await;
}

#[tokio::test]
async fn numbers_that_break_the_contract_end_the_run_with_a_typed_error() {
    for (fault, words) in
        [(Fault::LowNumber, "as their last number"), (Fault::ManyMessages, "1 at most were requested")]
    {
        let inner = MemoryStore::new();
        for id in ["1", "2"] {
            let mut message = UserMessage::from("More.");
            message.id = Some(id.to_owned());
            inner.push_steering("s", message).await.unwrap();
        }
        let store = Faulty::new(&inner, fault, usize::MAX, 0);
        let model = ScriptedModel::new(["One.", "Two.", "Three."]);
        let assistant = Assistant::builder(model).store(store).session("s").await.unwrap();
        let error = assistant.prompt("go").await.unwrap_err();
        assert_sound(&assistant);
        assert!(
            matches!(&error, RunError::Store { error, .. } if error.kind() == StoreErrorKind::Corrupt && error.message().contains(words)),
            "{fault:?}: {error:?}"
        );
    }
}

fn call(ord: u32) -> InvocationRecord {
    InvocationRecord::new(StepKey::new("run", 1, StepKind::Tool, ord), "c", "t", json!({}))
}

#[tokio::test]
async fn a_file_that_can_only_be_read_says_so() {
    let folder = Folder::new();
    let path = folder.path("read.db");
    let store = SqlStore::sqlite(&path).await.unwrap();
    store.begin(call(0)).await.unwrap();
    store.close().await;
    let store = SqlStore::connect(&format!("sqlite://{}?mode=ro", path.display())).await.unwrap();
    assert!(store.get(&call(0).key).await.unwrap().is_some());
    let error = store.begin(call(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
    let error = store.append("s", 0, vec![SessionEntry::new(EntryKind::RunBegin); 2]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let folder = Folder::new();
    std::fs::write(
        folder.path("text.db"),
        "no database at all, but a text that is long enough to be looked at".repeat(100),
    )
    .unwrap();
    let error = SqlStore::sqlite(folder.path("text.db")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    let error = SqlStore::sqlite(folder.path("no/such/folder/x.db")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    for url in [
        "sqlite::memory:",
        "mysql://ann:hunter2@localhost/x",
        "hunter2",
        "postgres://ann:hunter2@[/",
        "postgres://ann:hunter2@127.0.0.1:1/x",
    ] {
        let error = SqlStore::connect(url).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_not_waited_for() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ann:hunter2@{}/x", server.local_addr().unwrap());
    let error = SqlStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
}

#[tokio::test]
#[ignore = "postgres: needs DATABASE_URL"]
async fn a_connection_that_was_lost_is_made_again() {
    use sqlx::{Connection as _, Executor as _};
    // Only its own connections are cut: other tests use the same database.
    postgres().await;
    let url = std::env::var("DATABASE_URL").unwrap();
    let sign = if url.contains('?') { '&' } else { '?' };
    let store = SqlStore::connect(&format!("{url}{sign}application_name=agent-lost")).await.unwrap();
    let run = unique("lost");
    let key = |ord| StepKey::new(&*run, 1, StepKind::Tool, ord);
    let begin = async |ord| store.begin(InvocationRecord::new(key(ord), "c", "t", json!({}))).await;
    begin(0).await.unwrap();
    let mut other = sqlx::AnyConnection::connect(&url).await.unwrap();
    for ord in 1..5 {
        let all =
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'agent-lost'";
        other.execute(all).await.unwrap();
        // At once, or after one that says so.
        let answer = match begin(ord).await {
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
                begin(ord).await
            }
            answer => answer,
        };
        assert!(answer.unwrap().is_none_or(|record| record.end.is_none()));
        let end = InvocationEnd::new(agent::ToolOutput::empty().into(), 1);
        assert!(store.finish(&key(ord), end).await.unwrap());
    }
    assert_eq!(store.list(InvocationQuery::new().run(&*run)).await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_locked_file_is_busy_and_then_goes_on() {
    use sqlx::Connection as _;
    let folder = Folder::new();
    let path = folder.path("locked.db");
    let store = SqlStore::sqlite(&path).await.unwrap();
    sqlx::any::install_default_drivers();
    let mut other = sqlx::AnyConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let lock = other.begin_with("begin immediate").await.unwrap();
    let error = store.begin(call(0)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}");
    lock.rollback().await.unwrap();
    assert_eq!(store.begin(call(0)).await.unwrap(), None, "nothing was done before");
}

#[tokio::test]
async fn an_inbox_that_is_lost_to_other_writers_is_busy_and_not_full() {
    use sqlx::Connection as _;
    let folder = Folder::new();
    let path = folder.path("inbox.db");
    let store = SqlStore::sqlite(&path).await.unwrap();
    let mut other = sqlx::AnyConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    // Nothing is inserted, as on Postgres when another writer takes the number of the message each time.
    let trigger = "create trigger lost before insert on agent_steering begin select raise(ignore); end";
    sqlx::query(trigger).execute(&mut other).await.unwrap();
    let mut message = UserMessage::from("Hi");
    message.id = Some("1".to_owned());
    let error = store.push_steering("s", message).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_says_so() {
    let folder = Folder::new();
    let mount = folder.path("disk");
    std::fs::create_dir_all(&mount).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=400k tmpfs '{0}' || exit 77; '{1}' full '{0}/full.db'",
        mount.display(),
        env!("CARGO_BIN_EXE_store-fixture")
    );
    let done = std::process::Command::new("unshare").args(["-rm", "sh", "-c", &script]).output();
    let done = match done {
        Ok(done) if done.status.success() || !done.stdout.is_empty() => done,
        other => return println!("SKIPPED: no disk can be mounted here: {other:?}"),
    };
    assert_eq!(String::from_utf8_lossy(&done.stdout), "full true\n", "{done:?}");
}

#[tokio::test]
async fn clocks_decide_nothing() {
    let folder = Folder::new();
    let store = SqlStore::sqlite(folder.path("clock.db")).await.unwrap();
    let key = call(0).key;
    store.begin(call(0).at(5_000)).await.unwrap();
    let Some(record) = store.begin(call(0).at(-5_000)).await.unwrap() else { panic!("it was begun") };
    assert_eq!((record.attempt, record.created_at), (2, 5_000));
    assert!(store.finish(&key, InvocationEnd::new(agent::ToolOutput::empty().into(), 10)).await.unwrap());
    assert_eq!(
        store.get(&key).await.unwrap().unwrap().completed_at(),
        Some(10),
        "before it began, says the clock"
    );
    let at = |at| SessionEntry::new(EntryKind::RunBegin).written_by("w", at);
    store.append("s", 0, vec![at(9), at(3)]).await.unwrap();
    store.append("s", 2, vec![at(-7)]).await.unwrap();
    let times: Vec<_> = store.load("s", 0, 9).await.unwrap().iter().map(|stored| stored.1.at).collect();
    assert_eq!(times, [9, 3, -7], "in the order of their numbers");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_could_not_be_settled_is_settled_before_the_next_request() {
    // The second to fourth request to the store is the settlement with its retries.
    for (kind, times) in [(StoreErrorKind::Unavailable, 3), (StoreErrorKind::Busy, 3)] {
        let inner = MemoryStore::new();
        let store = Faulty::new(&inner, Fault::Fails(kind), 1, times);
        let usage = || agent::message::Usage::new(60, 40);
        let model = ScriptedModel::from_fn(move |_| reply().text("Hello!").usage(usage()));
        let budget = agent::run::Budget::tokens(100_000).named("team").in_total();
        let assistant = Assistant::builder(model).store(store).budget(budget).build().unwrap();
        let key = "6:tokens/4:team/0:/5:total";

        assert_eq!(assistant.prompt("Hi").await.unwrap().text(), "Hello!");
        let used = inner.budget(key).await.unwrap();
        assert!(used.spent == 0 && used.held > 0, "{used:?}");
        assert_eq!(assistant.fork().prompt("Hi").await.unwrap().text(), "Hello!");
        let used = inner.budget(key).await.unwrap();
        assert_eq!((used.spent, used.held), (200, 0));
    }
}
