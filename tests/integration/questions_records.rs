//! Questions of tools: outside of a run, within other calls, and with records.

use std::sync::Arc;
use std::time::Duration;

use agent::message::ToolCall;
use agent::store::{MemoryStore, Store as _};
use agent::tool::{AskError, QuestionInput};
use agent::{
    Assistant, Decisions, EventKind, Registry, RunError, ScriptedModel, ToolContext, ToolOutcome, json, tool,
    tools,
};

use crate::questions::{Log, assistant, book, look, model, result, stored};

#[tokio::test]
async fn outside_of_a_run_a_question_needs_a_function() {
    let registry = Registry::new(tools![look]).unwrap();
    let call = ToolCall::new("1", "look", "{}");
    let outcome = registry.call(&call, &ToolContext::new()).await.outcome;
    assert_eq!((outcome.code(), &*outcome.text()), (Some("cannot_ask"), "no person can be asked here"));
    let cx = ToolContext::new().on_question(|_| async { QuestionInput::Later });
    assert_eq!(registry.call(&call, &cx).await.outcome.code(), Some("cannot_ask"));
    assert_eq!(ToolContext::new().ask::<bool>("Here?").await, Err(AskError::Unavailable));
    let long = "x".repeat(5_000);
    assert!(matches!(cx.ask::<bool>(long).await, Err(AskError::Invalid { .. })));
}

#[tokio::test]
async fn a_call_within_a_call_asks_for_the_outer_one() {
    /// Calls another tool.
    #[tool(read_only)]
    async fn outer(cx: &ToolContext, tools: &Registry) -> String {
        let result = tools.call(&ToolCall::new("inner", "look", "{}"), cx).await;
        format!("<{}>", result.outcome.text())
    }
    let assistant = Assistant::builder(model(&[("outer", json!({}))]))
        .tools(tools![outer])
        .state(Registry::new(tools![look]).unwrap())
        .build()
        .unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    let questions = suspended.questions();
    let answers = Decisions::new().accept(&questions[0], "a").accept(&questions[1], json!([]));
    assistant.resume(&suspended, answers).await.unwrap();
    assert_eq!(result(&assistant, 2), "<a []>");
}

#[tokio::test]
async fn a_question_in_a_task_of_its_own_suspends_the_call() {
    /// Asks in a task of its own.
    #[tool(read_only)]
    async fn spawned(cx: &ToolContext) -> String {
        let cx = cx.clone();
        let asked = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            cx.ask::<String>("Here?").await
        });
        asked.await.unwrap().unwrap_or_else(|error| error.to_string())
    }
    let assistant =
        Assistant::builder(model(&[("spawned", json!({}))])).tools(tools![spawned]).build().unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    let answer = Decisions::new().accept(&suspended.questions()[0], "yes");
    assistant.resume(&suspended, answer).await.unwrap();
    assert_eq!(result(&assistant, 2), "yes");
}

#[tokio::test]
async fn a_prompt_instead_of_an_answer_ends_the_call() {
    let log = Arc::new(Log::default());
    let assistant = assistant(&log, &[("book", json!({"to": "Rome"}))]).build().unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    assistant.prompt("Forget it.").await.unwrap();
    let answer = Decisions::new().accept(&suspended.questions()[0], json!({"coach": 2, "window": true}));
    let error = assistant.resume(&suspended, answer).await.unwrap_err();
    assert!(matches!(error, RunError::Resume(_)), "{error}");
    assert_eq!(log.lines(), ["begin Rome"]);
}

#[tokio::test]
async fn the_handles_of_the_library_are_reserved() {
    /// Claims to ask.
    #[tool]
    fn claims() -> ToolOutcome {
        ToolOutcome::Deferred { handle: "agent:ask".to_owned() }
    }
    let registry = Registry::new(tools![claims]).unwrap();
    let outcome = registry.call(&ToolCall::new("1", "claims", "{}"), &ToolContext::new()).await.outcome;
    assert_eq!(outcome.code(), Some("tool_error"));
}

#[tokio::test]
async fn with_a_store_an_answered_call_begins_once_more_and_a_second_answer_changes_nothing() {
    let log = Arc::new(Log::default());
    let store = MemoryStore::new();
    let build = |model: ScriptedModel| {
        let builder = Assistant::builder(model).tools(tools![book]).shared_state(log.clone());
        builder.approval_key([7; 32]).store(store.clone()).build().unwrap()
    };
    let first = build(model(&[("book", json!({"to": "Rome"}))]));
    let output = first.prompt("Go").await.unwrap();
    let record = |run: &str| {
        let (store, key) = (store.clone(), format!("{run}/1/tool/0").parse().unwrap());
        async move { store.get(&key).await.unwrap().unwrap() }
    };
    let waiting = record(&output.run_id).await;
    assert_eq!((waiting.handle.as_deref(), waiting.attempt), (Some("agent:ask"), 1));
    let one = stored(&output.snapshot.unwrap());
    let seat = Decisions::new().accept(&one.questions()[0], json!({"coach": 2, "window": true}));
    let two = build(ScriptedModel::new(["Done."])).resume(&one, seat.clone()).await.unwrap();
    let two = stored(&two.snapshot.unwrap());
    let waiting = record(&output.run_id).await;
    assert_eq!((waiting.handle.as_deref(), waiting.attempt), (Some("agent:ask"), 1), "no attempt is counted");
    let sure = Decisions::new().accept(&two.questions()[0], true);
    build(ScriptedModel::new(["Done."])).resume(&two, sure.clone()).await.unwrap();
    assert_eq!(log.lines().iter().filter(|line| line.starts_with("book")).count(), 1);

    // The same answers again: the recorded end counts.
    let again = build(ScriptedModel::new(["Done."]));
    again.resume(&two, sure).await.unwrap();
    assert_eq!(result(&again, 2), "Rome: coach 2");
    let again = build(ScriptedModel::new(["Done."]));
    again.resume(&one, seat).await.unwrap();
    assert_eq!(result(&again, 2), "Rome: coach 2");
    assert_eq!(log.lines().iter().filter(|line| line.starts_with("book")).count(), 1);
}

#[tokio::test]
async fn a_session_whose_process_died_asks_again_and_earlier_answers_still_fit() {
    let log = Arc::new(Log::default());
    let store = MemoryStore::new();
    let open = async |model: ScriptedModel| {
        let builder = Assistant::builder(model).tools(tools![book]).shared_state(log.clone());
        builder.approval_key([7; 32]).store(store.clone()).session("ann").await.unwrap()
    };
    let first = open(model(&[("book", json!({"to": "Rome"}))])).await;
    let before = stored(&first.prompt("Go").await.unwrap().snapshot.unwrap());
    drop(first);

    let second = open(ScriptedModel::new(["Done."])).await;
    let suspended = second.continue_run().await.unwrap().snapshot.expect("it asks again");
    assert_eq!(suspended.questions()[0].request_id, before.questions()[0].request_id);
    let seat = Decisions::new().accept(&before.questions()[0], json!({"coach": 2, "window": true}));
    let suspended = second.resume(&suspended, seat).await.unwrap().snapshot.unwrap();
    let sure = Decisions::new().accept(&suspended.questions()[0], true);
    assert_eq!(second.resume(&suspended, sure).await.unwrap().text(), "Done.");
    assert_eq!(result(&second, 2), "Rome: coach 2");
}

#[tokio::test]
async fn events_show_no_schema_and_no_input() {
    let log = Arc::new(Log::default());
    let assistant = assistant(&log, &[("look", json!({}))]).build().unwrap();
    let mut run = assistant.prompt("Go").stream();
    let mut asked = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::QuestionAsked { .. } = &event.kind {
            asked.push(serde_json::to_value(&*event).unwrap());
        }
    }
    assert_eq!(asked.len(), 2);
    assert_eq!((&asked[0]["message"], &asked[0]["tool"]), (&json!("First?"), &json!("look")));
    assert!(asked[0].get("schema").is_none());
}
