//! This library.

use std::sync::Arc;

use agent::message::Message;
use agent::model::{ScriptedModel, reply};
use agent::{Assistant, tool, tools};
use tokio::sync::Barrier;

/// Adds two numbers.
#[tool(inline)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Adds two numbers, once every other run is here too.
#[tool(name = "add", type = AddTogether)]
async fn add_together(a: i64, b: i64, barrier: &Barrier) -> i64 {
    barrier.wait().await;
    a + b
}

fn script(n: usize) -> ScriptedModel {
    let turns = (0..n).flat_map(|_| [reply().tool_call("add", r#"{"a": 1, "b": 2}"#), reply().text("3")]);
    ScriptedModel::new(turns)
}

pub async fn prompts(n: usize) {
    let assistant = Assistant::builder(script(n)).tools(tools![add]).build().expect("it builds");
    for _ in 0..n {
        let output = assistant.fork().prompt("What is 1 plus 2?").await.expect("it answers");
        assert_eq!(output.text(), "3");
    }
}

pub async fn concurrent(n: usize) {
    // All calls come before all texts: everybody waits in the tool.
    let calls = (0..n).map(|_| reply().tool_call("add", r#"{"a": 1, "b": 2}"#));
    let model = ScriptedModel::new(calls.chain((0..n).map(|_| reply().text("3"))));
    let assistant = Assistant::builder(model)
        .tools(tools![AddTogether])
        .shared_state(Arc::new(Barrier::new(n)))
        .build()
        .expect("it builds");
    let runs = (0..n).map(|_| assistant.fork().prompt("What is 1 plus 2?").into_future());
    for output in futures_util::future::join_all(runs).await {
        assert_eq!(output.expect("it answers").text(), "3");
    }
}

pub async fn turns(n: usize) {
    let model = ScriptedModel::from_fn(move |request| match request.messages.len() {
        asked if asked > 2 * n => reply().text("done"),
        _ => reply().tool_call("add", r#"{"a": 1, "b": 2}"#),
    })
    .without_record();
    let assistant = Assistant::builder(model)
        .tools(tools![add])
        .loop_guard(None)
        .max_turns(u32::try_from(n + 1).expect("not that many"))
        .build()
        .expect("it builds");
    assistant.prompt("Add and add.").await.expect("it answers");
    assert!(matches!(assistant.messages().last(), Some(Message::Assistant(_))));
}
