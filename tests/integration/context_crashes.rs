//! Managed conversations whose process dies, or whose store fails: the same view, and the same requests.

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::{Conversation, Message};
use agent::model::{ModelError, ModelErrorKind, reply};
use agent::store::{EntryKind, MemoryStore, Store as _, StoreErrorKind};
use agent::testing::EventLog;
use agent::{Event, EventKind, RunStop, ScriptedModel, json};

use crate::context_runs::{assert_fit, builder, is_summary, next_reply, reader, rules, tokens};
use crate::store_support::{Fault, Faulty};

/// What was sent, apart from summaries.
fn sent(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.requests();
    let turns = requests.iter().filter(|request| !is_summary(request));
    turns.map(|request| request.messages.iter().map(|message| message.text()).collect()).collect()
}

#[tokio::test]
async fn a_session_continues_with_the_same_view_wherever_its_process_died() {
    const PAGES: u32 = 45;
    let undisturbed = reader(PAGES);
    let log = EventLog::new();
    let assistant =
        builder(undisturbed.clone()).manage_context(rules()).on_event(log.listener()).build().unwrap();
    assistant.prompt("Read.").await.unwrap();
    let (whole, expected) = (assistant.messages(), sent(&undisturbed));
    let events = log.events();
    let is_start = |event: &Event| matches!(event.kind, EventKind::CompactionStart { .. });
    let starts: Vec<usize> = (0..events.len()).filter(|at| is_start(&events[*at])).collect();
    let mut died_in_compaction = 0;
    for at in (0..events.len()).step_by(19).chain(starts) {
        let store = MemoryStore::new();
        let first = builder(reader(PAGES)).manage_context(rules()).store(store.clone());
        let first = first.session("book").await.unwrap();
        let mut run = first.prompt("Read.").stream();
        let mut is_compacting = false;
        for _ in 0..=at {
            match run.next().await.as_deref().map(|event| event.kind.clone()) {
                Some(EventKind::CompactionStart { .. }) => is_compacting = true,
                Some(EventKind::CompactionEnd { .. }) => is_compacting = false,
                Some(_) => {}
                None => break,
            }
        }
        died_in_compaction += u32::from(is_compacting);
        // The process dies: nothing of the run is told to the store any more.
        std::mem::forget(run);
        let second = reader(PAGES);
        let again = builder(second.clone()).manage_context(rules()).store(store.clone());
        let again = again.session("book").await.unwrap();
        if again.unfinished_run().is_some() {
            again.continue_run().await.unwrap();
        } else if again.messages().is_empty() {
            again.prompt("Read.").await.unwrap();
        }
        let texts = |all: &Conversation| -> Vec<String> { all.iter().map(Message::text).collect() };
        assert_eq!(texts(&again.messages()), texts(&whole), "died after event {at}");
        // What is sent after it is what the undisturbed run sent.
        let rest = sent(&second);
        assert!(expected.ends_with(&rest), "died after event {at}: {} requests", rest.len());
        let entries = store.load("book", 0, 10_000).await.unwrap();
        let views = entries.iter().filter(|entry| matches!(entry.1.kind, EntryKind::View { .. }));
        assert_eq!(views.count(), again.messages().view_changes().len(), "died after event {at}");
        assert_eq!(
            again.messages().view_changes().len(),
            whole.view_changes().len(),
            "died after event {at}"
        );
    }
    assert!(died_in_compaction > 0, "no run died during a compaction");
}

#[tokio::test]
async fn a_store_that_fails_at_any_write_loses_no_view() {
    const PAGES: u32 = 25;
    let (mut at, mut failures) = (0, 0);
    loop {
        let inner = MemoryStore::new();
        let store = Faulty::new(&inner, Fault::Fails(StoreErrorKind::Unavailable), at, 3);
        let open = builder(reader(PAGES)).manage_context(rules()).store(store.clone()).session("book").await;
        let Ok(first) = open else {
            at += 1;
            continue;
        };
        let ended = first.prompt("Read.").await;
        let is_over = store.asked() <= at;
        failures += u32::from(ended.is_err());
        if let Err(error) = &ended {
            assert_eq!(error.code(), "store", "at request {at}: {error}");
        }
        drop(first);
        let second = reader(PAGES);
        let again =
            builder(second.clone()).manage_context(rules()).store(inner).session("book").await.unwrap();
        if again.unfinished_run().is_some() {
            again.continue_run().await.unwrap();
        } else if again.messages().is_empty() {
            again.prompt("Read.").await.unwrap();
        }
        assert_eq!(again.messages().len(), 1 + 2 * PAGES as usize + 1, "at request {at}");
        assert!(!again.messages().view_changes().is_empty());
        assert_fit(&second.requests());
        if is_over {
            break;
        }
        at += 1;
    }
    assert!(failures > 20, "{failures}");
}

#[tokio::test]
async fn a_durable_run_changes_its_view_the_same_way_wherever_it_dies() {
    const PAGES: u32 = 40;
    let undisturbed = reader(PAGES);
    let assistant = builder(undisturbed.clone()).manage_context(rules()).build().unwrap();
    assistant.prompt("Read.").await.unwrap();
    let whole: Vec<String> = assistant.messages().iter().map(Message::text).collect();
    let expected = sent(&undisturbed);
    let summaries =
        |model: &ScriptedModel| model.requests().iter().filter(|request| is_summary(request)).count();
    let rehearse = |model: &ScriptedModel| {
        let assistant = builder(model.clone()).manage_context(rules()).build().unwrap();
        Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Read."))
    };
    let model = reader(PAGES);
    let run = rehearse(&model);
    let outcome = run.play().await.unwrap();
    let steps = run.steps();
    let texts: Vec<String> = outcome.messages.iter().map(|message| message.text()).collect();
    assert_eq!((texts, sent(&model), outcome.stop), (whole.clone(), expected.clone(), RunStop::Completed));
    let (once, compact): (usize, Vec<_>) =
        (summaries(&model), steps.iter().filter(|step| step.contains("/compact/")).cloned().collect());
    assert!(once >= 1 && compact.len() == once, "{steps:?}");
    let crashes = (0..steps.len()).step_by(5).map(Ok).chain(compact.iter().map(Err));
    for crash in crashes {
        let (model, what) = (reader(PAGES), format!("{crash:?}"));
        let run = rehearse(&model);
        let played = match crash {
            Ok(count) => run.crash_before_step(count).await,
            Err(step) => run.crash_after(step).await,
        };
        let outcome = match played.unwrap() {
            Some(outcome) => outcome,
            None => run.play().await.unwrap(),
        };
        let texts: Vec<String> = outcome.messages.iter().map(|message| message.text()).collect();
        assert_eq!(texts, whole, "{what}");
        // Killed after the work and before it was remembered: it is asked for a second time, and used once.
        assert!((once..=once + 1).contains(&summaries(&model)), "{what}");
        let mut requests = sent(&model);
        requests.dedup();
        assert_eq!(requests, expected, "{what}");
    }
}

#[tokio::test]
async fn a_durable_run_reads_results_and_survives_a_request_that_is_too_long() {
    let model = ScriptedModel::from_fn(|request| {
        if !is_summary(request) && tokens(request) > 3_000 {
            let error = ModelError::new(
                ModelErrorKind::ContextTooLong,
                "prompt is too long: 9 tokens > 4000 maximum",
            );
            return reply().error(error);
        }
        let last = request.messages.last().unwrap().text();
        if last.starts_with("page 12") {
            return reply().tool_call_with_id(
                "again",
                "read_result",
                json!({"handle": "call_2", "length": 6}),
            );
        }
        if last.starts_with("[bytes") { reply().text(last) } else { next_reply(request, 12) }
    });
    let assistant = builder(model.clone()).manage_context(rules()).build().unwrap();
    let run = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Read."));
    let outcome = run.play().await.unwrap();
    assert_eq!(
        (outcome.text().as_str(), outcome.stop),
        ("[bytes 0 to 6 of 2008]\npage 2", RunStop::Completed)
    );
    assert!(run.steps().iter().any(|step| step.ends_with("/again")), "{:?}", run.steps());
}

/// What was sent stays what is sent: other rules decide about what follows alone.
#[tokio::test]
async fn a_session_keeps_its_view_where_the_rules_are_others_now() {
    let store = MemoryStore::new();
    let first = builder(reader(45)).manage_context(rules()).store(store.clone());
    let first = first.session("book").await.unwrap();
    first.prompt("Read.").await.unwrap();
    let (changes, view) = (first.messages().view_changes().to_vec(), first.messages().view());
    assert!(changes.len() > 3, "{changes:?}");
    drop(first);
    for rules in [rules().window(1_000_000), rules().keep_results(30), rules().without_compaction()] {
        let (model, copy) = (reader(0), store.clone());
        let again = builder(model.clone()).manage_context(rules).store(copy).session("book").await.unwrap();
        assert_eq!(again.messages().view_changes(), changes);
        let fork = again.fork();
        fork.prompt("And?").await.unwrap();
        let sent = &model.requests()[0].messages;
        let texts = |messages: &[std::sync::Arc<Message>]| -> Vec<String> {
            messages.iter().map(|message| message.text()).collect()
        };
        assert_eq!(texts(&sent[..view.len()]), texts(&view));
    }
}
