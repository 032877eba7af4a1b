//! Runs that continue from a store: none meets the records of another one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::model::scripted::{ScriptedModel, ScriptedReply, reply};
use crate::runtime::{Assistant, AssistantBuilder, Decisions};
use crate::store::MemoryStore;
use crate::tool::value::Tool;
use crate::tools;

/// An assistant with the tool `look`, which counts its calls and returns its argument.
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
    // Killed: the process does nothing more, also not what a drop does.
    std::mem::forget((run, root));

    let root = build(vec![reply().text("In Rome.")], vec![reply().text("Done.")]);
    let output = root.resume(&snapshot, Decisions::new()).await.unwrap();
    let results = output.messages.iter().filter_map(|message| message.as_tool_result());
    assert_eq!(results.map(|result| result.text()).collect::<Vec<_>>(), ["In Rome."]);
    assert_eq!(looks.load(Ordering::SeqCst), 1, "the sub-agent continued");
}
