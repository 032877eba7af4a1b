//! Stores that break their contract, and what a message does not say: the next process still continues the run correctly.

use agent::Control;
use agent::message::Message;
use agent::model::{ModelRequest, ScriptedReply, reply};
use agent::store::{EntryKind, MemoryStore, SessionEntry, Store as _, StoreErrorKind};
use agent::{Assistant, RunError, ScriptedModel, ToolOutput, tool, tools};

use crate::store_support::{Fault, Faulty};

/// Ends the conversation.
#[tool(inline, effect = "idempotent")]
fn hang_up() -> ToolOutput {
    ToolOutput::text("Goodbye.").with_control(Control::EndNow)
}

/// Writes a line, and nothing beside it.
#[tool(inline, effect = "idempotent", exclusive)]
fn log_line() -> &'static str {
    "logged"
}

/// Calls both tools; a model that is asked after them says so.
fn asks(request: &ModelRequest) -> ScriptedReply {
    match request.messages.last() {
        Some(message) if matches!(**message, Message::User(_)) => {
            reply().tool_call("hang_up", "{}").tool_call("log_line", "{}")
        }
        _ => reply().text("asked again"),
    }
}

fn builder() -> agent::AssistantBuilder {
    Assistant::builder(ScriptedModel::from_fn(asks)).tools(tools![hang_up, log_line])
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_the_run_ends_it_also_after_a_crash() {
    let mut interrupted = 0;
    for at in 0.. {
        let inner = MemoryStore::new();
        let store = Faulty::new(&inner, Fault::Fails(StoreErrorKind::Unavailable), at, usize::MAX);
        if let Ok(assistant) = builder().store(store.clone()).session("s").await {
            let _ = assistant.prompt("go").await;
        }
        let next = builder().store(inner.clone()).session("s").await.unwrap();
        if next.unfinished_run().is_some() {
            interrupted += 1;
            next.continue_run().await.unwrap();
        } else if next.messages().is_empty() {
            next.prompt("go").await.unwrap();
        }
        let texts: Vec<_> = next.messages().iter().map(Message::text).collect();
        assert_eq!(texts, ["go", "", "Goodbye.", "logged"], "the store was gone at request {at}");
        if store.asked() <= at {
            break;
        }
    }
    assert!(interrupted > 3, "{interrupted} runs were interrupted");
}

#[tokio::test]
async fn the_record_of_another_call_is_not_taken_for_that_of_this_one() {
    let store = Faulty::new(&MemoryStore::new(), Fault::OtherRecord, usize::MAX, 0);
    let assistant = builder().store(store).build().unwrap();
    let error = assistant.prompt("go").await.unwrap_err();
    let RunError::Store { error, .. } = &error else { panic!("{error}") };
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.message().contains("the record of `another/1/tool/0` for "), "{error}");
    let texts: Vec<_> = assistant.messages().iter().map(Message::text).collect();
    assert!(texts.iter().all(|text| !text.contains("another call")), "{texts:?}");
}

#[tokio::test]
async fn a_session_that_does_not_end_is_not_read_for_ever() {
    let inner = MemoryStore::new();
    let entry = |at: u32| SessionEntry::new(EntryKind::message(Message::user(format!("message {at}"))));
    inner.append("s", 0, (0..600).map(entry).collect()).await.unwrap();
    assert_eq!(builder().store(inner.clone()).session("s").await.unwrap().messages().len(), 600);
    let store = Faulty::new(&inner, Fault::StartsAgain, usize::MAX, 0);
    let error = builder().store(store).session("s").await.map(drop).unwrap_err();
    assert!(
        format!("{error:?}").contains("entries of session `s` after number 500 are not in order"),
        "{error:?}"
    );
}

#[tokio::test]
async fn pages_that_do_not_end_are_found_by_the_check_of_stores() {
    for (fault, words) in [
        (Fault::SameRecords, "a page begins after the last record"),
        (Fault::SameSessions, "a page begins after the last session"),
    ] {
        let store = Faulty::new(&MemoryStore::new(), fault, usize::MAX, 0);
        let checked = tokio::spawn(async move { agent::testing::assert_store(&store, "test").await }).await;
        let panic = checked.unwrap_err().into_panic();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains(words), "{text}");
    }
}
