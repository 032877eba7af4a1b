//! Metadata of tools that fail, and what hooks make of a result: nothing is lost on the way to events, records and messages.

use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::{Message, OutcomeKind, Part};
use agent::model::reply;
use agent::store::{InvocationQuery, MemoryStore, SqlStore, Store};
use agent::{
    Assistant, AssistantBuilder, Control, EventKind, Registry, RunStop, ToolContext, ToolError, ToolOutcome,
    ToolOutput, Value,
    hooks::AfterCall,
    json,
    message::ToolCall,
    tool,
    tool::{IntoOutcome, OutcomeCode},
    tools,
};

use serde_json::Map;

use crate::assistant_support::assert_sound;
use crate::store_support::Folder;
use crate::trace_support::{Traces, hear};

/// Ends in a way of its own.
#[tool(inline)]
fn act(how: String) -> ToolOutcome {
    let error = match how.as_str() {
        "completed" => return ToolOutput::text("done").with_metadata("at", 7).into(),
        "retry" => ToolError::retry("again"),
        "denied" => ToolError::denied("no"),
        "stop" => ToolError::new("stop").with_metadata("stop_loop", true),
        _ => ToolError::new("kaput").with_code("broken"),
    };
    error.with_metadata("at", 7).into_outcome()
}

fn model(how: &str) -> ScriptedModel {
    ScriptedModel::new([reply().tool_call("act", json!({"how": how}).to_string()), reply().text("done")])
}

fn at(value: u32) -> Map<String, Value> {
    Map::from_iter([("at".to_owned(), value.into())])
}

/// The metadata of the one call, everywhere: in its event, its message, the conversation and its record; and how it ended.
async fn everywhere(
    builder: AssistantBuilder,
    store: impl Store + Clone + 'static,
) -> (Map<String, Value>, ToolOutcome) {
    let assistant = builder.tools(tools![act]).store(store.clone()).build().unwrap();
    let mut run = assistant.prompt("go").stream();
    let mut ends = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::ToolExecutionEnd { result, .. } = &event.kind {
            ends.push(result.outcome.clone());
            assert!(serde_json::to_string(&*event).unwrap().contains(r#""at":"#), "{event:?}");
        }
    }
    run.output().await.unwrap();
    let messages = assistant.messages();
    let message = messages.iter().find_map(Message::as_tool_result).unwrap();
    let records = store.list(InvocationQuery::new()).await.unwrap();
    assert_eq!((ends.len(), records.len()), (1, 1));
    assert_eq!(ends[0].metadata(), Some(&message.metadata));
    assert_eq!(records[0].metadata(), Some(&message.metadata));
    assert_eq!(records[0].outcome(), Some(&ends[0]));
    assert_eq!(records[0].result_message().unwrap().metadata, message.metadata);
    assert!(!message.text().contains('7'), "no model reads it");
    assert_sound(&assistant);
    (message.metadata.clone(), ends.remove(0))
}

#[tokio::test]
async fn metadata_of_a_call_is_kept_however_it_ends() {
    let folder = Folder::new();
    for (how, kind) in [
        ("completed", OutcomeKind::Completed),
        ("retry", OutcomeKind::Retry),
        ("denied", OutcomeKind::Denied),
        ("failed", OutcomeKind::Failed),
    ] {
        let (metadata, outcome) = everywhere(Assistant::builder(model(how)), MemoryStore::new()).await;
        assert_eq!((metadata, outcome.kind()), (at(7), Some(kind)), "{how}");
        let sql = SqlStore::sqlite(folder.path(&format!("{how}.db"))).await.unwrap();
        assert_eq!(everywhere(Assistant::builder(model(how)), sql).await.0, at(7), "{how}");
        // As data, and back.
        let stored = serde_json::to_value(&outcome).unwrap();
        assert_eq!(serde_json::from_value::<ToolOutcome>(stored).unwrap(), outcome);
    }
    // What was stored before there was any still reads.
    let old: ToolOutcome =
        serde_json::from_value(json!({"outcome": "failed", "code": "x", "message": "y"})).unwrap();
    assert_eq!(old, ToolOutcome::failed(OutcomeCode::new("x"), "y"));
    assert_eq!(
        serde_json::to_value(&old).unwrap(),
        json!({"outcome": "failed", "code": "x", "message": "y"})
    );
}

#[tokio::test]
async fn a_durable_run_and_its_replay_have_it() {
    let assistant = Assistant::builder(model("failed")).tools(tools![act]).build().unwrap();
    let durable = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "go"));
    for _ in 0..2 {
        let outcome = durable.play().await.unwrap();
        let result = outcome.messages.iter().find_map(|message| message.as_tool_result()).unwrap();
        assert_eq!((&result.metadata, result.code.as_deref()), (&at(7), Some("broken")));
    }
}

#[tokio::test]
async fn a_session_that_is_opened_again_has_it() {
    let store = MemoryStore::new();
    let builder = || Assistant::builder(model("failed")).tools(tools![act]).store(store.clone());
    builder().session("ann").await.unwrap().prompt("go").await.unwrap();
    let again = builder().session("ann").await.unwrap();
    assert_eq!(again.messages().iter().find_map(Message::as_tool_result).unwrap().metadata, at(7));
}

#[tokio::test]
async fn an_after_hook_keeps_or_replaces_metadata_whatever_else_it_changes() {
    let content = || Some(vec![Part::text("changed")]);
    let changes = [
        (AfterCall { content: content(), ..AfterCall::default() }, 7, None),
        (AfterCall { is_error: Some(true), ..AfterCall::default() }, 7, Some(true)),
        (AfterCall { is_error: Some(false), ..AfterCall::default() }, 7, Some(false)),
        (AfterCall { content: content(), is_error: Some(true), ..AfterCall::default() }, 7, Some(true)),
        (AfterCall { metadata: Some(at(8)), ..AfterCall::default() }, 8, None),
        (AfterCall { metadata: Some(at(8)), is_error: Some(true), ..AfterCall::default() }, 8, Some(true)),
        (
            AfterCall {
                metadata: Some(at(8)),
                is_error: Some(false),
                content: content(),
                ..AfterCall::default()
            },
            8,
            Some(false),
        ),
    ];
    for how in ["completed", "retry", "denied", "failed"] {
        for (change, kept, is_error) in changes.clone() {
            let seen = Arc::new(Mutex::new(None));
            let (hook_saw, own) = (seen.clone(), change.clone());
            let builder = Assistant::builder(model(how)).after_tool_call(move |_, outcome| {
                *hook_saw.lock().unwrap() = outcome.metadata().cloned();
                let change = own.clone();
                async move { Ok(change) }
            });
            let (metadata, outcome) = everywhere(builder, MemoryStore::new()).await;
            assert_eq!(*seen.lock().unwrap(), Some(at(7)), "the hook sees it");
            assert_eq!(metadata, at(kept), "{how} {change:?}");
            assert_eq!(outcome.is_error(), is_error.unwrap_or(how != "completed"), "{how} {change:?}");
            assert_eq!(outcome.text() == "changed", change.content.is_some(), "{how} {change:?}");
        }
    }
}

#[tokio::test]
async fn a_failure_can_end_the_run_and_the_last_of_many_tries_keeps_it() {
    let assistant = Assistant::builder(model("stop")).tools(tools![act]).build().unwrap();
    let output = assistant.prompt("go").await.unwrap();
    assert_eq!((output.stop, output.turns), (RunStop::Terminated, 1));
    // A call that was asked for too often is a failure of the loop, with the metadata of the tool.
    let model = ScriptedModel::from_fn(|request| {
        if request.messages.len() < 12 {
            reply().tool_call("act", r#"{"how": "retry"}"#)
        } else {
            reply().text("done")
        }
    });
    let assistant = Assistant::builder(model).tools(tools![act]).without_loop_guard().build().unwrap();
    assistant.prompt("go").await.unwrap();
    let messages = assistant.messages();
    let results: Vec<_> = messages.iter().filter_map(Message::as_tool_result).collect();
    assert!(results.iter().any(|result| result.code.as_deref() == Some("retries_exhausted")));
    assert!(results.iter().all(|result| result.metadata == at(7)), "{results:?}");
}

#[tokio::test]
async fn metadata_makes_no_new_result_for_the_loop_guard() {
    /// Fails differently for the application alone.
    #[tool(inline, read_only)]
    fn poll(n: &std::sync::atomic::AtomicU32) -> ToolOutcome {
        let count = n.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        ToolError::new("not yet").with_metadata("count", count).into()
    }
    let model = ScriptedModel::from_fn(|_| reply().tool_call("poll", "{}"));
    let state = std::sync::atomic::AtomicU32::new(0);
    let assistant = Assistant::builder(model).tools(tools![poll]).state(state).build().unwrap();
    let error = assistant.prompt("go").await.unwrap_err();
    assert_eq!(error.as_limit().unwrap().limit, agent::run::Limit::RepeatedCalls, "{error}");
}

/// Takes notes.
#[tool(inline, unknown = "strip")]
fn note(text: String, #[arg(secret)] key: Option<String>) -> usize {
    text.len() + key.map_or(0, |key| key.len())
}

#[tokio::test]
async fn dropped_arguments_are_named_once_in_the_log_and_recorded() {
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    let registry = Registry::new(tools![note]).unwrap();
    let told = || {
        let events = traces.events.lock().unwrap();
        events.iter().filter_map(|(_, fields)| fields.get("keys").cloned()).collect::<Vec<_>>()
    };
    let call = |args: &str| ToolCall::new("c", "note", args);
    let result = registry
        .call(&call(r#"{"text": "a", "txt": "VALUE", "a/b\n": {"in": "VALUE"}}"#), &ToolContext::new())
        .await;
    assert!(!result.outcome.is_error());
    assert_eq!(
        result.coercions.iter().map(|coercion| coercion.path.as_str()).collect::<Vec<_>>(),
        ["/txt", "/a~1b\n"]
    );
    assert_eq!(told(), [r#""txt", "a/b\n""#], "one line, names only");
    // In a run as well, and once.
    let many: Vec<String> = (0..30).map(|n| format!(r#", "k{n:02}": "VALUE""#)).collect();
    let model = ScriptedModel::new([
        reply().tool_call("note", format!(r#"{{"text": "a"{}}}"#, many.concat())),
        reply().text("done"),
    ]);
    let assistant = Assistant::builder(model).tools(tools![note]).build().unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!(told().len(), 2);
    assert!(
        told()[1].starts_with(r#""k00", "k01""#) && told()[1].ends_with(r#""k09" and 20 more"#),
        "{:?}",
        told()
    );
    // Nothing dropped, nothing said; what is refused has its report.
    registry.call(&call(r#"{"text": "a"}"#), &ToolContext::new()).await;
    registry.call(&call(r#"{"text": 1, "txt": 2}"#), &ToolContext::new()).await;
    assert_eq!(told().len(), 2);
    assert!(!format!("{:?}", traces.events.lock().unwrap()).contains("VALUE"));
}

#[test]
fn a_later_stop_loop_counts() {
    let stops = ToolOutput::text("x").with_metadata("stop_loop", true);
    assert_eq!(stops.control, Control::EndNow);
    assert_eq!(stops.with_metadata("stop_loop", false).control, Control::Continue);
    let ends = ToolOutput::text("x").with_control(Control::EndNow).with_metadata("stop_loop", false);
    assert_eq!(ends.control, Control::EndNow);
}
