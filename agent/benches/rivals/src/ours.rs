//! This library.

use std::sync::Arc;

use agent::message::Message;
use agent::model::reply;
use agent::{Assistant, ScriptedModel, tool, tools};
use tokio::sync::Barrier;

use crate::{Measured, Meter, count};

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

pub async fn prompts(n: usize) -> Measured {
    let turns = (0..n).flat_map(|_| [reply().tool_call("add", r#"{"a": 1, "b": 2}"#), reply().text("3")]);
    let assistant = Assistant::builder(ScriptedModel::new(turns).without_record()).tools(tools![add]).build();
    let assistant = assistant.expect("it builds");
    let meter = Meter::start();
    for _ in 0..n {
        let output = assistant.fork().prompt("What is 1 plus 2?").await.expect("it answers");
        assert_eq!(output.text(), "3");
    }
    meter.stop(n)
}

/// An assistant whose runs all wait in their tools until `n` are there, and its script for so many rounds.
fn together(n: usize, rounds: usize) -> Assistant {
    // All calls come before all texts: everybody waits in the tool.
    let script = (0..rounds).flat_map(|_| {
        let calls = (0..n).map(|_| reply().tool_call("add", r#"{"a": 1, "b": 2}"#));
        calls.chain((0..n).map(|_| reply().text("3")))
    });
    let builder = Assistant::builder(ScriptedModel::new(script).without_record()).tools(tools![AddTogether]);
    builder.shared_state(Arc::new(Barrier::new(n))).build().expect("it builds")
}

/// Each run in a task of its own, as in a server. (In one task for all, tokio lets 128 of the barrier's wake-ups through each
/// time and polls the others for nothing: that would be quadratic whatever runs.)
async fn round(assistant: &Assistant, n: usize) {
    let run = |_| tokio::spawn(assistant.fork().prompt("What is 1 plus 2?").into_future());
    let runs: Vec<_> = (0..n).map(run).collect();
    for output in runs {
        assert_eq!(output.await.expect("no panic").expect("it answers").text(), "3");
    }
}

pub async fn concurrent(n: usize, rounds: usize) -> Measured {
    let assistant = together(n, rounds + 1);
    round(&assistant, n).await;
    let meter = Meter::start();
    for _ in 0..rounds {
        round(&assistant, n).await;
    }
    meter.stop(n * rounds)
}

/// Prints what is allocated while all runs wait.
pub async fn sizes(n: usize) -> Measured {
    // One more than come: they wait until they are dropped.
    let assistant = together(n + 1, 1);
    let before = count::sizes();
    let meter = Meter::start();
    let runs: Vec<_> = (0..n).map(|_| assistant.fork().prompt("What is 1 plus 2?").into_future()).collect();
    let mut all = Box::pin(futures_util::future::join_all(runs));
    assert!(futures_util::poll!(all.as_mut()).is_pending());
    for (size, (before, now)) in before.iter().zip(count::sizes()).enumerate() {
        let each = (now as f64 - *before as f64) / n as f64;
        if each.abs() > 0.01 {
            println!("{each:7.2} of {size} bytes = {:.0}", each * size as f64);
        }
    }
    meter.stop(n)
}

pub async fn turns(n: usize) -> Measured {
    let model = ScriptedModel::from_fn(move |request| match request.messages.len() {
        asked if asked > 2 * n => reply().text("done"),
        _ => reply().tool_call("add", r#"{"a": 1, "b": 2}"#),
    })
    .without_record();
    let assistant = Assistant::builder(model)
        .tools(tools![add])
        .without_loop_guard()
        .max_turns(u32::try_from(n + 1).expect("not that many"))
        .build()
        .expect("it builds");
    let meter = Meter::start();
    assistant.prompt("Add and add.").await.expect("it answers");
    let measured = meter.stop(n);
    assert!(matches!(assistant.messages().last(), Some(Message::Assistant(_))));
    measured
}
