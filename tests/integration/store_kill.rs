//! A process that is killed at any point is followed by one that goes on.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent::json;
use agent::message::Message;
use agent::store::{EntryKind, InvocationQuery, InvocationStatus, SqlStore, Store as _};

use crate::store_support::{Folder, unique};

const FIXTURE: &str = env!("CARGO_BIN_EXE_store-fixture");

/// Of the log of an undisturbed run: four replies, nine calls, each with a beginning and an end.
const LINES: usize = 26;

fn start(database: &Path, log: &Path) -> Child {
    Command::new(FIXTURE).arg(database).arg(log).stderr(Stdio::piped()).spawn().unwrap()
}

fn start_tree(database: &str, log: &Path, session: &str) -> Child {
    let mut command = Command::new(FIXTURE);
    command.arg("tree").arg(database).arg(log).arg(session).stderr(Stdio::piped()).spawn().unwrap()
}

fn start_long(database: &Path, log: &Path) -> Child {
    Command::new(FIXTURE).arg("long").arg(database).arg(log).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a process that takes of a budget with this name.
pub(crate) fn start_spending(database: &str, log: &Path, name: &str) -> Child {
    let mut command = Command::new(FIXTURE);
    command.arg("budget").arg(database).arg(log).arg(name).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn lines(log: &Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Kills it when the log has so many lines, after a moment; false when it ended before.
pub(crate) fn kill_at(child: &mut Child, log: &Path, count: usize, moment: Duration) -> bool {
    let begun = Instant::now();
    while lines(log).len() < count {
        assert!(begun.elapsed() < Duration::from_secs(60), "the process does not go on: {:?}", lines(log));
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(moment);
    // SIGKILL.
    let _ = child.kill();
    !child.wait().unwrap().success()
}

pub(crate) fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What is in the session and in the records after so many kills.
async fn check(database: &Path, log: &Path, kills: usize, at: usize) {
    let log = lines(log);
    let mut started: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.iter().filter(|line| line.starts_with("start") && !line.contains("model")) {
        let words: Vec<_> = line.split(' ').collect();
        *started.entry(words[2]).or_default() += 1;
        assert!(words[1] != "send" || started[words[2]] == 1, "killed at {at}: sent twice\n{log:#?}");
    }
    let again: usize = started.values().map(|count| count - 1).sum();
    assert!(again <= 2 * kills, "killed at {at}: only what was going on begins again\n{log:#?}");

    let store = SqlStore::sqlite(database).await.unwrap();
    let records = store.list(InvocationQuery::new()).await.unwrap();
    assert_eq!(records.len(), 9, "killed at {at}: each call has one record");
    for record in &records {
        let started = started.get(&*record.key.to_string()).copied().unwrap_or_default();
        match record.status {
            // One that was killed between its record and its first line was begun, too.
            InvocationStatus::Completed => {
                assert!((1..=record.attempt as usize).contains(&started), "killed at {at}: {record:?}");
            }
            InvocationStatus::Failed => {
                assert_eq!((&*record.tool, record.error_code()), ("send", Some("lost")), "killed at {at}");
            }
            _ => panic!("killed at {at}: still pending: {record:?}"),
        }
    }
    let lost = records.iter().filter(|record| record.status == InvocationStatus::Failed).count();
    assert!(lost <= kills, "killed at {at}: {lost} calls were given up");

    let entries = store.load("kept", 0, 100).await.unwrap();
    let count =
        |wanted: fn(&EntryKind) -> bool| entries.iter().filter(|stored| wanted(&stored.1.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EntryKind::RunBegin)), 1, "killed at {at}: one run");
    assert_eq!(count(|kind| matches!(kind, EntryKind::RunEnd { .. })), 1, "killed at {at}: one end");
    let messages = entries.iter().filter_map(|stored| match &stored.1.kind {
        EntryKind::Message { message, .. } => Some(message),
        _ => None,
    });
    let said: Vec<String> = messages
        .map(|message| match &**message {
            Message::ToolResult(result) if result.code.as_deref() == Some("lost") => {
                format!("{} lost", result.tool)
            }
            message => message.text(),
        })
        .collect();
    let mut wanted = vec!["go".to_owned()];
    for turn in 1..=3 {
        let sent = said.get(wanted.len() + 3).filter(|text| *text == "send lost").cloned();
        wanted.extend(["Well.".to_owned(), format!("seen {turn}"), format!("put {turn}")]);
        wanted.push(sent.unwrap_or_else(|| format!("sent {turn}")));
    }
    wanted.push("all done".to_owned());
    assert_eq!(said, wanted, "killed at {at}: the conversation of an undisturbed run");
    store.close().await;
}

#[tokio::test]
async fn killed_at_any_point_the_run_goes_on() {
    for at in 0..=LINES {
        let folder = Folder::new();
        let (database, log) = (folder.path("kill.db"), folder.path("log"));
        let mut kills = 0;
        // Now and then the next process is killed, too.
        for more in 0..=usize::from(at % 4 == 1) {
            let mut child = start(&database, &log);
            let moment = Duration::from_millis((at * 7 % 15) as u64);
            let count = if more == 0 { at } else { lines(&log).len() + 3 };
            kills += usize::from(kill_at(&mut child, &log, count, moment));
        }
        finish(start(&database, &log));
        check(&database, &log, kills, at).await;
    }
}

#[tokio::test]
async fn an_undisturbed_run_does_everything_once() {
    let folder = Folder::new();
    let (database, log) = (folder.path("calm.db"), folder.path("log"));
    finish(start(&database, &log));
    assert_eq!(lines(&log).len(), LINES);
    // Another one finds nothing to do.
    finish(start(&database, &log));
    assert_eq!(lines(&log).len(), LINES);
    check(&database, &log, 0, 0).await;
}

/// Runs within runs, killed where the log has so many lines, and again later. Each session has a database of this address.
async fn kill_trees(database: impl Fn(&Folder) -> String) {
    let calm = Folder::new();
    let (address, log, session) = (database(&calm), calm.path("log"), unique("calm"));
    finish(start_tree(&address, &log, &session));
    let all = lines(&log);
    check_tree(&address, &log, &session, 0).await;
    assert_eq!(
        all.iter().filter(|line| line.starts_with("done")).count(),
        10,
        "two leaves with five calls each"
    );
    for at in 0..all.len() {
        let folder = Folder::new();
        let (address, log, session) = (database(&folder), folder.path("log"), unique("kill"));
        for more in 0..=usize::from(at % 4 == 1) {
            let mut child = start_tree(&address, &log, &session);
            let count = if more == 0 { at } else { lines(&log).len() + 3 };
            kill_at(&mut child, &log, count, Duration::from_millis((at * 7 % 15) as u64));
        }
        finish(start_tree(&address, &log, &session));
        check_tree(&address, &log, &session, at).await;
    }
}

#[tokio::test]
async fn runs_within_runs_continue_wherever_their_process_is_killed() {
    kill_trees(|folder| folder.path("kill.db").to_str().unwrap().to_owned()).await;
}

#[tokio::test]
#[ignore = "postgres: needs DATABASE_URL"]
async fn in_postgres_they_continue_too() {
    let address = std::env::var("DATABASE_URL").unwrap();
    kill_trees(|_| address.clone()).await;
}

/// Whether each call began as often as its effect allows, at every depth, and every run ended.
async fn check_tree(database: &str, log: &Path, session: &str, at: usize) {
    let log = lines(log);
    let mut started: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.iter().filter(|line| line.starts_with("start") && !line.contains("model")) {
        let words: Vec<_> = line.split(' ').collect();
        *started.entry(words[2]).or_default() += 1;
        let is_once = ["send", "pay", "confirm"].contains(&words[1]);
        assert!(!is_once || started[words[2]] == 1, "killed at {at}: {} twice\n{log:#?}", words[1]);
    }
    let store = if database.starts_with("postgres") {
        SqlStore::connect(database).await.unwrap()
    } else {
        SqlStore::sqlite(database).await.unwrap()
    };
    // The sessions and records of children have the name of the root's run.
    let root = store.load(session, 0, 1).await.unwrap()[0].1.run.clone();
    let mut sessions = vec![session.to_owned()];
    let children = store.list_sessions(&root, None, 100).await.unwrap();
    sessions.extend(children.into_iter().map(|child| child.session));
    let mut records = Vec::new();
    for session in &sessions {
        records.extend(store.list(InvocationQuery::new().session(session)).await.unwrap());
    }
    assert_eq!(records.len(), 14, "killed at {at}: ten calls of leaves, two of each middle and root");
    for record in &records {
        let is_lost = record.error_code() == Some("lost");
        let may_be_lost = ["send", "pay", "confirm"].contains(&&*record.tool);
        assert!(
            record.status == InvocationStatus::Completed || is_lost && may_be_lost,
            "killed at {at}: {record:?}\n{log:#?}"
        );
    }
    assert_eq!(sessions.len(), 5, "killed at {at}: the root, two of the middle, two leaves");
    for session in &sessions {
        let entries = store.load(session, 0, 100).await.unwrap();
        let count =
            |wanted: fn(&EntryKind) -> bool| entries.iter().filter(|stored| wanted(&stored.1.kind)).count();
        assert_eq!(count(|kind| matches!(kind, EntryKind::RunBegin)), 1, "killed at {at}: {session}");
        assert_eq!(count(|kind| matches!(kind, EntryKind::RunEnd { .. })), 1, "killed at {at}: {session}");
        let mut messages = entries.iter().rev().filter_map(|stored| match &stored.1.kind {
            EntryKind::Message { message, .. } => Some(message),
            _ => None,
        });
        let last = messages.next().unwrap().text();
        assert!(last.ends_with(" done"), "killed at {at}: {session} ends with {last:?}");
        if *session == sessions[0] {
            assert_eq!(last, "root done");
        }
    }
    store.close().await;
}

/// The texts of a session's messages, and the summaries among the recorded changes of its view.
async fn read_long(database: &Path) -> (Vec<String>, usize) {
    let store = SqlStore::sqlite(database).await.unwrap();
    let entries = store.load("kept", 0, 1_000).await.unwrap();
    let texts = entries.iter().filter_map(|stored| match &stored.1.kind {
        EntryKind::Message { message, .. } => Some(message.text()),
        _ => None,
    });
    let is_summary = |kind: &EntryKind| matches!(kind, EntryKind::View { change, .. } if json!(change)["change"] == "summary");
    let summaries = entries.iter().filter(|stored| is_summary(&stored.1.kind)).count();
    let read = (texts.collect(), summaries);
    store.close().await;
    read
}

#[tokio::test]
async fn killed_in_a_compaction_the_run_continues_with_the_whole_conversation_and_one_summary() {
    let calm = Folder::new();
    finish(start_long(&calm.path("kill.db"), &calm.path("log")));
    let (all, whole) = (lines(&calm.path("log")), read_long(&calm.path("kill.db")).await);
    assert!(whole.0.len() > 90 && whole.1 > 0, "{whole:?}");
    let summaries: Vec<usize> = (0..all.len()).filter(|at| all[*at].contains("summary")).collect();
    // Before the request for a summary, while it is written, when it has arrived, and when it is recorded.
    let moments = summaries.iter().flat_map(|at| [(*at, 0), (at + 1, 0), (at + 1, 10), (at + 2, 0)]);
    let mut in_summary = 0;
    for (at, wait) in moments {
        let folder = Folder::new();
        let (database, log) = (folder.path("kill.db"), folder.path("log"));
        let mut child = start_long(&database, &log);
        let was_killed = kill_at(&mut child, &log, at, Duration::from_millis(wait));
        let is_open = lines(&log).last().is_some_and(|line| line == "start summary");
        in_summary += usize::from(was_killed && is_open);
        finish(start_long(&database, &log));
        assert_eq!(read_long(&database).await, whole, "killed at line {at} and {wait} ms");
        let asked = lines(&log).iter().filter(|line| *line == "start summary").count();
        assert!(asked <= whole.1 + 1, "killed at line {at}: {asked} requests for {} summaries", whole.1);
    }
    assert!(in_summary > 0, "no process was killed while a summary was written");
}
