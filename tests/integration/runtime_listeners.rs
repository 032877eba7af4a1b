//! Code of the application that a run calls: it cannot fail a run, end the process, hold the run for ever or deadlock it.

use std::fmt;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use agent::ScriptedModel;
use agent::model::reply;
use agent::{
    Approval, Assistant, AssistantBuilder, Decision, Tool, ToolContext, ToolOutput, ToolSet, Value,
    hooks::HookError, json,
};
use tokio::time::{Instant, timeout};

use crate::assistant_support::{assert_sound, assistant, tools};

/// Panics when it is dropped.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a bomb");
    }
}

/// A payload of a panic whose drop panics.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic!("the payload panics");
    }
}

fn calling() -> ScriptedModel {
    ScriptedModel::new([reply().tool_call("fast", "{}"), reply().text("done"), reply().text("and on")])
}

#[tokio::test]
async fn a_listener_that_owns_another_subscription_can_be_removed() {
    let removed = timeout(
        Duration::from_secs(20),
        tokio::task::spawn_blocking(|| {
            let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build().unwrap();
            let inner = assistant.subscribe(|_| {});
            let outer = assistant.subscribe(move |_| {
                let _ = &inner;
            });
            drop(outer);
        }),
    );
    removed.await.expect("it is removed").unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_end_of_the_run_within_it_returns() {
    let waits = |assistant: &Arc<Mutex<Option<Assistant>>>| {
        let assistant = assistant.lock().unwrap().clone().unwrap();
        async move { assistant.wait_until_idle().await }
    };
    let own = Arc::<Mutex<Option<Assistant>>>::default();
    let (turn, hook, body) = (own.clone(), own.clone(), own.clone());
    let wait =
        Tool::new("wait_here", "Waits.", json!({"type": "object"}), move |_: Value, _: ToolContext| {
            let waited = waits(&body);
            async move {
                waited.await;
                ToolOutput::text("waited")
            }
        });
    let model = ScriptedModel::new([
        reply().tool_call("wait_here", "{}"),
        reply().text("done"),
        reply().text("done"),
    ]);
    let assistant = Assistant::builder(model)
        .tools(ToolSet::new().with(wait.unwrap()))
        .before_tool_call(move |_| {
            let waited = waits(&hook);
            async move {
                waited.await;
                Ok(agent::BeforeCall::Continue)
            }
        })
        .on_turn_end(move |_| {
            let waited = waits(&turn);
            async move {
                waited.await;
                Ok(None)
            }
        })
        .build()
        .unwrap();
    *own.lock().unwrap() = Some(assistant.clone());
    let begun = Instant::now();
    assistant.prompt("go").await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // Outside of a run it waits.
    assistant.prompt("again").start().unwrap();
    assistant.wait_until_idle().await;
    assert!(!assistant.is_busy());
    own.lock().unwrap().take();
}

/// An error whose text and drop panic.
#[derive(Debug)]
struct BadError {
    _bomb: Bomb,
}

impl fmt::Display for BadError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no text")
    }
}

impl std::error::Error for BadError {}

fn bad_error() -> HookError {
    Box::new(BadError { _bomb: Bomb })
}

/// A future that is done at once and panics when it is dropped.
struct BadFuture<T> {
    output: Option<T>,
    _bomb: Bomb,
}

impl<T> BadFuture<T> {
    fn new(output: T) -> Self {
        Self { output: Some(output), _bomb: Bomb }
    }
}

impl<T: Unpin> Future for BadFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        self.output.take().map_or(Poll::Pending, Poll::Ready)
    }
}

type Change = fn(AssistantBuilder) -> AssistantBuilder;

/// Each in a task of its own: a panic of the run is an error of the task.
async fn goes_on(name: &str, change: Change, fails: bool) {
    let asks = Tool::new("ask", "Asks.", json!({"type": "object"}), |_: Value, _: ToolContext| async {
        ToolOutput::text("asked")
    });
    let asks = asks.unwrap().configure(|options| options.approval(Approval::ALWAYS)).unwrap();
    let model = ScriptedModel::new([
        reply().tool_call("fast", "{}").tool_call("ask", "{}"),
        reply().text("done"),
        reply().text("done"),
    ]);
    let builder = Assistant::builder(model).tools(tools()).tools(ToolSet::new().with(asks));
    let assistant = change(builder.on_approval(|_| async { Decision::Allow })).build().unwrap();
    let same = assistant.clone();
    let run = tokio::spawn(async move { same.prompt("go").await.map(|output| output.text()) });
    let ended = run.await.unwrap_or_else(|panic| panic!("{name}: the run panicked: {panic}"));
    assert_eq!(ended.is_err(), fails, "{name}: {ended:?}");
    assert_sound(&assistant);
    assert!(!assistant.is_busy(), "{name}");
}

#[tokio::test]
async fn whatever_panics_the_run_does_not() {
    let observers: [(&str, Change); 8] = [
        ("on_event", |builder| builder.on_event(|_| panic_any(Payload))),
        ("on_event with a bomb", |builder| {
            let bomb = Arc::new(Bomb);
            builder.on_event(move |_| {
                let _ = &bomb;
            })
        }),
        ("on_metric", |builder| builder.on_metric(|_| panic_any(Payload))),
        ("before_tool_call", |builder| builder.before_tool_call(|_| async { panic_any(Payload) })),
        ("before_tool_call at once", |builder| {
            builder.before_tool_call(|_| -> std::future::Ready<Result<_, HookError>> { panic_any(Payload) })
        }),
        ("before_tool_call error", |builder| builder.before_tool_call(|_| async { Err(bad_error()) })),
        ("after_tool_call error", |builder| builder.after_tool_call(|_, _| async { Err(bad_error()) })),
        ("approver", |builder| builder.on_approval(|_| async { panic_any(Payload) })),
    ];
    for (name, change) in observers {
        goes_on(name, change, false).await;
    }
    let drops: [(&str, Change); 5] = [
        ("before_tool_call drop", |builder| {
            builder.before_tool_call(|_| BadFuture::new(Ok(agent::BeforeCall::Continue)))
        }),
        ("after_tool_call drop", |builder| {
            builder.after_tool_call(|_, _| BadFuture::new(Ok(agent::hooks::AfterCall::default())))
        }),
        ("approver drop", |builder| builder.on_approval(|_| BadFuture::new(Decision::Allow))),
        ("approver at once", |builder| {
            builder.on_approval(|_| -> std::future::Ready<Decision> { panic_any(Payload) })
        }),
        ("after_tool_call", |builder| builder.after_tool_call(|_, _| async { panic_any(Payload) })),
    ];
    for (name, change) in drops {
        goes_on(name, change, false).await;
    }
    // These decide whether there is a request at all: the run fails, with an error.
    let requests: [(&str, Change); 4] = [
        ("before_request", |builder| builder.before_request(|_, _| async { panic_any(Payload) })),
        ("before_request error", |builder| builder.before_request(|_, _| async { Err(bad_error()) })),
        ("prepare_tools", |builder| builder.prepare_tools(|_| async { panic_any(Payload) })),
        ("on_turn_end error", |builder| builder.on_turn_end(|_| async { Err(bad_error()) })),
    ];
    for (name, change) in requests {
        goes_on(name, change, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn listeners_may_panic_when_they_are_dropped() {
    let assistant = assistant(&calling()).build().unwrap();
    let bomb = Arc::new(Bomb);
    let owns = assistant.subscribe(move |_| {
        let _ = &bomb;
    });
    drop(owns);
    assert_sound(&assistant);
}
