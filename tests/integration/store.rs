//! Stores: one contract, held by each.

use std::sync::Arc;

use agent::message::{Message, UserMessage};
use agent::store::{
    EntryKind, InvocationEnd, InvocationRecord, MemoryStore, SessionEntry, SqlStore, Store, StoreError,
    StoreErrorKind,
};
use agent::testing::assert_store;
use agent::{
    ToolOutcome, ToolOutput, json,
    steps::{StepKey, StepKind},
};

use crate::store_support::{Folder, postgres, unique};

fn key(run: &str, ord: u32) -> StepKey {
    StepKey::new(run, 1, StepKind::Tool, ord)
}

fn entry(text: &str) -> SessionEntry {
    SessionEntry::new(EntryKind::message(Message::user(text)))
}

/// Of many who do the same at once, one does it.
async fn race(store: Arc<dyn Store>, name: &str) {
    const MANY: u32 = 8;
    let run = unique(name);
    let all = async |tasks: Vec<tokio::task::JoinHandle<Result<u64, StoreError>>>| {
        let mut done = Vec::new();
        for task in tasks {
            done.push(task.await.unwrap());
        }
        done
    };
    let begun = (0..MANY).map(|_| {
        let (store, key) = (store.clone(), key(&run, 0));
        tokio::spawn(async move {
            match store.begin(InvocationRecord::new(key, "c", "t", json!({}))).await? {
                None => Ok(1),
                Some(record) if record.end.is_none() => Ok(record.attempt.into()),
                other => panic!("{other:?}"),
            }
        })
    });
    let mut attempts: Vec<u64> = all(begun.collect()).await.into_iter().map(Result::unwrap).collect();
    attempts.sort_unstable();
    assert_eq!(attempts, (1..=u64::from(MANY)).collect::<Vec<_>>(), "each is an attempt of its own");

    let ended = (0..MANY).map(|at| {
        let (store, key) = (store.clone(), key(&run, 0));
        tokio::spawn(async move {
            let outcome = ToolOutcome::Completed(ToolOutput::text(at.to_string()));
            store.finish(&key, InvocationEnd::new(outcome, 1)).await.map(u64::from)
        })
    });
    assert_eq!(all(ended.collect()).await.into_iter().map(Result::unwrap).sum::<u64>(), 1, "one ends it");

    let appended = (0..MANY).map(|at| {
        let (store, run) = (store.clone(), run.clone());
        let entries = vec![entry("one"), entry("two")].into_iter().take(1 + at as usize % 2).collect();
        tokio::spawn(async move { store.append(&run, 0, entries).await })
    });
    let appended = all(appended.collect()).await;
    assert_eq!(appended.iter().filter(|appended| appended.is_ok()).count(), 1, "{appended:?}");
    let late = appended.iter().filter_map(|appended| appended.as_ref().err());
    assert!(late.into_iter().all(StoreError::is_conflict), "{appended:?}");

    for id in 0..MANY {
        let mut message = UserMessage::from("Hi");
        message.id = Some(id.to_string());
        store.push_steering(&run, message).await.unwrap();
    }
    let taken = (0..MANY).map(|at| {
        let (store, run) = (store.clone(), run.clone());
        tokio::spawn(async move {
            let key = StepKey::new(&*run, at, StepKind::Poll, 1);
            store.take_steering(&run, &key, 2).await.map(|taken| taken.len() as u64)
        })
    });
    assert_eq!(
        all(taken.collect()).await.into_iter().map(Result::unwrap).sum::<u64>(),
        u64::from(MANY),
        "each message once"
    );
    store.delete_session(&run).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_memory() {
    let store = MemoryStore::new();
    assert_store(&store, "test").await;
    race(Arc::new(store), "race").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_file_of_sqlite() {
    let folder = Folder::new();
    let path = folder.path("a store, 100% é.db");
    let store = SqlStore::sqlite(&path).await.unwrap();
    assert_store(&store, "test").await;
    race(Arc::new(store.clone()), "race").await;
    // Another one of the same file, at the same time.
    let other = SqlStore::sqlite(&path).await.unwrap();
    assert_store(&other, "again").await;
    assert!(path.exists(), "the path is taken as it is written");
    #[cfg(unix)]
    for beside in ["", "-wal", "-shm"] {
        use std::os::unix::fs::PermissionsExt as _;
        let file = folder.path(&format!("a store, 100% é.db{beside}"));
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
    store.close().await;
    let error = store.load("x", 0, 1).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let nowhere = folder.path("no/such/folder/x.db");
    let error = SqlStore::sqlite(&nowhere).await.err().unwrap();
    assert!(error.message().starts_with(&format!("{}: ", nowhere.display())), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "postgres: needs DATABASE_URL"]
async fn in_postgres() {
    let store = postgres().await;
    assert_store(&store, &unique("test")).await;
    race(Arc::new(store.clone()), "race").await;
    // Many that begin with nothing but the address, at once.
    let url = std::env::var("DATABASE_URL").unwrap();
    let opened: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { SqlStore::connect(&url).await.map(drop) })
        })
        .collect();
    for opened in opened {
        opened.await.unwrap().unwrap();
    }
    store.close().await;
}

#[tokio::test]
async fn what_was_stored_is_there_for_the_next_process() {
    let folder = Folder::new();
    let path = folder.path("kept.db");
    let store = SqlStore::sqlite(&path).await.unwrap();
    store.begin(InvocationRecord::new(key("r", 0), "c", "t", json!({"a": 1})).at(5)).await.unwrap();
    store.append("s", 0, vec![entry("Hi")]).await.unwrap();
    store.close().await;
    let store = SqlStore::sqlite(&path).await.unwrap();
    assert_eq!(store.get(&key("r", 0)).await.unwrap().unwrap().args, json!({"a": 1}));
    assert_eq!(store.load("s", 0, 9).await.unwrap()[0], (1, entry("Hi")));
}

#[tokio::test]
async fn sessions_of_an_earlier_version_are_listed_by_their_time() {
    use sqlx::Connection as _;
    let folder = Folder::new();
    let path = folder.path("earlier.db");
    let store = SqlStore::sqlite(&path).await.unwrap();
    for (name, at) in [("a", 5), ("b", 9), ("c", 7)] {
        let entries = [1, at].map(|at| entry("Hi").written_by("w", at));
        store.append(name, 0, entries.to_vec()).await.unwrap();
    }
    store.close().await;
    // As version 2 had it.
    let mut other = sqlx::AnyConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    for statement in [
        "drop index agent_session_entry_by_time",
        "alter table agent_session_entry drop column written_at",
        "update agent_schema set version = 2",
    ] {
        sqlx::query(statement).execute(&mut other).await.unwrap();
    }
    other.close().await.unwrap();
    let store = SqlStore::sqlite(&path).await.unwrap();
    let listed = store.list_sessions("", None, 9).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|one| (one.session.as_str(), one.entries, one.at)).collect();
    assert_eq!(listed, [("b", 2, 9), ("c", 2, 7), ("a", 2, 5)]);
}

#[tokio::test]
async fn a_store_in_memory_can_be_bounded() {
    let store = MemoryStore::with_room_for(2);
    store.append("s", 0, vec![entry("a")]).await.unwrap();
    store.begin(InvocationRecord::new(key("r", 0), "c", "t", json!({}))).await.unwrap();
    let full = |error: StoreError| assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    full(store.append("s", 1, vec![entry("b")]).await.unwrap_err());
    assert!(store.append("s", 0, vec![entry("b")]).await.unwrap_err().is_conflict(), "also where it is full");
    full(store.begin(InvocationRecord::new(key("r", 1), "c", "t", json!({}))).await.unwrap_err());
    // What is there can still end, and makes room.
    assert!(store.finish(&key("r", 0), InvocationEnd::new(ToolOutput::empty().into(), 1)).await.unwrap());
    assert_eq!(store.delete_finished_before(2).await.unwrap(), 1);
    store.append("s", 1, vec![entry("b")]).await.unwrap();
}

#[tokio::test]
async fn an_inbox_needs_room() {
    let store = MemoryStore::with_room_for(2);
    let message = |id: &str| {
        let mut message = UserMessage::from("Hi");
        message.id = Some(id.to_owned());
        message
    };
    let full = |error: StoreError| assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    assert!(store.push_steering("s", message("a")).await.unwrap());
    assert_eq!(store.take_steering("s", &key("r", 0), 9).await.unwrap(), [message("a")]);
    full(store.push_steering("s", message("b")).await.unwrap_err());
    full(store.take_steering("t", &key("r", 1), 9).await.unwrap_err());
    // What is known needs no more room.
    assert!(!store.push_steering("s", message("a")).await.unwrap());
    assert_eq!(store.take_steering("s", &key("r", 0), 9).await.unwrap(), [message("a")]);
    assert_eq!(store.delete_session("s").await.unwrap(), 0);
    assert!(store.push_steering("s", message("b")).await.unwrap());
    assert_eq!(store.take_steering("s", &key("r", 1), 9).await.unwrap(), [message("b")]);
}

#[tokio::test]
async fn an_inbox_is_bounded() {
    let folder = Folder::new();
    let stores: [Arc<dyn Store>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(SqlStore::sqlite(folder.path("inbox.db")).await.unwrap())];
    for store in stores {
        let mut refused = None;
        for id in 0..2000 {
            let mut message = UserMessage::from("Hi");
            message.id = Some(id.to_string());
            if let Err(error) = store.push_steering("s", message).await {
                refused = Some((id, error.kind()));
                break;
            }
        }
        assert_eq!(refused, Some((1024, StoreErrorKind::Full)));
    }
}
