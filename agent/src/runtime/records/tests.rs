//! Runs that continue from a store. A run never finds the records of another run.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::message::{CustomMessage, Message, ToolResultMessage};
use crate::model::scripted::{ScriptedModel, ScriptedReply, reply};
use crate::runtime::{Assistant, AssistantBuilder, Decisions, RunError};
use crate::store::MemoryStore;
use crate::tool::value::Tool;
use crate::tools;

fn looking(looks: &Arc<AtomicU32>, replies: impl IntoIterator<Item = ScriptedReply>) -> AssistantBuilder {
    let (looks, schema) =
        (looks.clone(), json!({"type": "object", "properties": {"what": {"type": "string"}}}));
    let look = Tool::new("look", "Looks something up.", schema, move |args: Value, _cx| {
        looks.fetch_add(1, Ordering::SeqCst);
        async move { format!("{} found", args["what"].as_str().unwrap_or_default()) }
    });
    Assistant::builder(ScriptedModel::new(replies)).tools(tools![{ look.unwrap() }])
}

fn look(what: &str) -> ScriptedReply {
    reply().tool_call("look", json!({ "what": what }).to_string())
}

#[tokio::test]
async fn a_snapshot_has_the_sub_agents_of_a_run_with_a_store_and_no_session() {
    let (looks, store) = (Arc::<AtomicU32>::default(), MemoryStore::new());
    let build = |of_child: Vec<ScriptedReply>, own: Vec<ScriptedReply>| {
        let child = looking(&looks, of_child).build().unwrap();
        let root = Assistant::builder(ScriptedModel::new(own)).store(store.clone());
        root.tools(child.as_tool("ask", "Knows things.")).build().unwrap()
    };
    let ask = reply().tool_call("ask", r#"{"task": "Where is it?"}"#);
    let root = build(vec![look("tea"), reply().hang()], vec![ask]);
    let mut run = root.prompt("go").stream();
    let handle = run.handle();
    while tokio::time::timeout(Duration::from_millis(100), run.next()).await.is_ok() {}
    let snapshot = handle.snapshot().unwrap();
    // Simulates a killed process: not even the destructors run.
    std::mem::forget((run, root));

    let root = build(vec![reply().text("In Rome.")], vec![reply().text("Done.")]);
    let output = root.resume(&snapshot, Decisions::new()).await.unwrap();
    let results = output.messages.iter().filter_map(|message| message.as_tool_result());
    assert_eq!(results.map(ToolResultMessage::text).collect::<Vec<_>>(), ["In Rome."]);
    assert_eq!(looks.load(Ordering::SeqCst), 1, "the sub-agent continued");
}

/// Leaves a run in the session `s` whose process died after its first turn.
async fn leave_run(looks: &Arc<AtomicU32>, store: &MemoryStore) -> Arc<str> {
    let first = looking(looks, [look("one"), reply().hang()]).store(store.clone()).session("s").await;
    let mut run = first.unwrap().prompt("go").stream();
    while tokio::time::timeout(Duration::from_millis(100), run.next()).await.is_ok() {}
    let id = run.handle().run_id().into();
    std::mem::forget(run);
    id
}

#[tokio::test]
async fn an_interrupted_run_reads_the_message_with_which_it_continues() {
    let (looks, store) = (Arc::<AtomicU32>::default(), MemoryStore::new());
    let id = leave_run(&looks, &store).await;
    let next = looking(&looks, [look("two"), reply().text("Both.")]).store(store.clone());
    let next = next.session("s").await.unwrap();
    let note = CustomMessage::new("note", json!(1)).with_for_model("And the other?");
    let output = next.continue_run().with_message(note).await.unwrap();
    assert_eq!(output.run_id, id);
    let texts: Vec<_> = next.messages().iter().map(Message::text).collect();
    assert_eq!(texts[..3], ["go", "", "one found"]);
    assert_eq!(texts[4..], ["", "two found", "Both."]);
    assert_eq!(looks.load(Ordering::SeqCst), 2);
    let again = looking(&looks, []).store(store).session("s").await.unwrap();
    assert!(again.unfinished_run().is_none() && again.messages().len() == 7);
}

#[tokio::test]
async fn a_run_that_another_prompt_continued_is_not_begun_anew_under_its_id() {
    let (looks, store) = (Arc::<AtomicU32>::default(), MemoryStore::new());
    let id = leave_run(&looks, &store).await;
    let next = looking(&looks, [reply().text("One."), look("two"), reply().text("Two.")]).store(store);
    let next = next.session("s").await.unwrap();
    let ids = Arc::<Mutex<Vec<Arc<str>>>>::default();
    let to = ids.clone();
    let _listening = next.subscribe(move |event| to.lock().unwrap().push(event.run_id.clone()));
    let (first, second) = (next.continue_run(), next.continue_run().with_message(Message::user("And?")));
    assert_eq!(first.await.unwrap().run_id, id);
    ids.lock().unwrap().clear();
    let error = second.await.unwrap_err();
    assert!(matches!(&error, RunError::Request { message } if message.contains("continue_run")), "{error}");
    assert!(ids.lock().unwrap().is_empty(), "nothing ran");
    // After the unfinished run has ended, a new call of `continue_run` begins a run of its own.
    let output = next.continue_run().with_message(Message::user("And?")).await.unwrap();
    assert_ne!(output.run_id, id);
    assert_eq!(output.text(), "Two.");
    assert_eq!(looks.load(Ordering::SeqCst), 2);
}

#[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
#[tokio::test]
async fn a_reset_discards_the_runs_of_the_stored_messages() {
    let (looks, store) = (Arc::<AtomicU32>::default(), MemoryStore::new());
    let first = looking(&looks, [reply().text("One.")]).store(store.clone()).session("s").await.unwrap();
    first.prompt("go").await.unwrap();
    let next = looking(&looks, [reply().text("Two.")]).store(store).session("s").await.unwrap();
    assert_eq!(next.stored_messages().len(), 2);
    next.reset().await;
    next.prompt("go").await.unwrap();
    assert!(next.stored_messages().is_empty());
}
