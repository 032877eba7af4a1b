//! Tools that a model has in one turn and not in another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::Message;
use agent::model::{ModelRequest, reply};
use agent::testing::EventLog;
use agent::{
    Assistant, AssistantBuilder, Decisions, EventKind, RunError, RunStop, ToolArgs, ToolDefinition,
    hooks::TurnStart, tool, tools,
};

use crate::assistant_support::{assert_sound, outline};

/// Opens the vault.
#[tool]
fn open_vault(#[arg(range(1..=9))] code: u32) -> String {
    format!("open with {code}")
}

/// Closes the vault.
#[tool]
fn close_vault() -> String {
    "closed".into()
}

/// Says where things are.
#[tool(read_only)]
fn look() -> String {
    "a vault".into()
}

fn builder(model: &ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model.clone()).tools(tools![open_vault, close_vault, look])
}

/// Without `open_vault`, until somebody has looked.
fn after_a_look(turn: TurnStart) -> TurnStart {
    let has_looked =
        |message: &Message| matches!(message, Message::ToolResult(result) if result.tool == "look");
    let looked = turn.messages().iter().any(|message| has_looked(message));
    turn.filter(|tool| looked || tool.name() != "open_vault")
}

fn names(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(ToolDefinition::name).collect()
}

#[tokio::test]
async fn a_tool_that_is_hidden_in_a_turn_is_unknown_in_it() {
    let model = ScriptedModel::new([
        reply().tool_call("open_vault", r#"{"code": 1}"#).tool_call("look", "{}"),
        reply().tool_call("open_vault", r#"{"code": "2"}"#),
        reply().tool_call("open_vault", r#"{"code": 10}"#),
        reply().text("done"),
    ]);
    let log = EventLog::new();
    let assistant = builder(&model)
        .prepare_tools(|turn| async { Ok(after_a_look(turn)) })
        .on_event(log.listener())
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    let requests = model.requests();
    assert_eq!(names(&requests[0]), ["close_vault", "look"]);
    assert_eq!(names(&requests[1]), ["open_vault", "close_vault", "look"], "in the order of the set");
    log.assert_sequence(&[
        "end open_vault failed unknown_tool",
        "end open_vault completed \"open with 2\"",
        "end open_vault failed invalid_arguments",
    ]);
    // What is there is named, with what may have been meant; what is hidden is not.
    let told = assistant.messages().get(2).unwrap().text();
    assert_eq!(
        told,
        "There is no tool \"open_vault\"; did you mean \"close_vault\"? Tools: close_vault, look."
    );
}

#[tokio::test]
async fn it_is_chosen_once_a_turn_by_each_in_order_before_the_hooks() {
    let model = ScriptedModel::new([
        reply().tool_call("look", "{}").tool_call("close_vault", "{}").tool_call("nothing", "{}"),
        reply().text("done"),
    ]);
    let (first, second) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (one, two) = (first.clone(), second.clone());
    let assistant = builder(&model)
        .sequential()
        .state(7_u32)
        .prepare_tools(move |turn| {
            assert_eq!(turn.turn(), one.fetch_add(1, Ordering::Relaxed) + 1);
            assert_eq!(turn.context().get::<u32>(), Some(&7));
            async { Ok(turn.filter(|tool| tool.name() != "look")) }
        })
        .prepare_tools(move |turn| {
            assert!(turn.definitions().iter().all(|tool| tool.name() != "look"));
            two.fetch_add(1, Ordering::Relaxed);
            async { Ok(turn) }
        })
        .before_request(|request: ModelRequest, _| async move {
            assert_eq!(names(&request), ["open_vault", "close_vault"]);
            Ok(request)
        })
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!((first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)), (2, 2));
    assert_eq!(
        outline(&assistant)[2..5],
        ["look failed(unknown_tool)", "close_vault closed", "nothing failed(unknown_tool)"]
    );
}

#[tokio::test]
async fn one_that_fails_or_panics_ends_the_run_and_the_next_prompt_works() {
    let model = ScriptedModel::new(["one"]);
    let number = AtomicU32::new(0);
    let assistant = builder(&model)
        .prepare_tools(move |turn| {
            let number = number.fetch_add(1, Ordering::Relaxed);
            async move {
                match number {
                    0 => Err("the directory is down".into()),
                    1 => panic!("a closure of a test panics"),
                    _ => Ok(turn),
                }
            }
        })
        .build()
        .unwrap();
    for said in ["the directory is down", "a closure of a test panics"] {
        let error = assistant.prompt("go").await.unwrap_err();
        assert!(matches!(error, RunError::Request { .. }) && error.to_string().contains(said), "{error}");
        assert_sound(&assistant);
    }
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "one");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_is_left_when_the_run_is_cancelled() {
    let model = ScriptedModel::new(["never"]);
    let assistant = builder(&model).prepare_tools(|_| std::future::pending()).build().unwrap();
    let same = assistant.clone();
    let cancels = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        same.cancel("enough");
    };
    let (ended, ()) = tokio::join!(assistant.prompt("go").into_future(), cancels);
    assert!(matches!(ended, Err(RunError::Aborted { .. })));
    assert!(model.requests().is_empty());
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Verdict {
    stars: u8,
}

#[tokio::test]
async fn the_way_to_an_answer_of_a_type_stays() {
    let model = ScriptedModel::new([reply().tool_call("answer", r#"{"stars": 3}"#)]);
    let asked = Arc::new(AtomicBool::new(false));
    let assistant = builder(&model)
        .prepare_tools(|turn| async move { Ok(turn.filter(|_| false)) })
        .before_request({
            let asked = asked.clone();
            move |mut request: ModelRequest, _| {
                asked.store(request.tools.len() == 1, Ordering::Relaxed);
                // Whatever the tool of the answer is called.
                request.system = Some(request.tools[0].name().to_owned().into());
                async { Ok(request) }
            }
        })
        .build()
        .unwrap();
    let _ = assistant.prompt("how was it?").output::<Verdict>().await;
    assert!(asked.load(Ordering::Relaxed), "the tool that takes the answer is there, and no other");
}

#[tokio::test]
async fn a_run_that_was_stored_behind_its_reply_has_the_tools_that_it_had() {
    let script = || {
        ScriptedModel::new([
            reply().tool_call("open_vault", r#"{"code": 1}"#).tool_call("look", "{}"),
            reply().text("done"),
        ])
    };
    let build = |model: &ScriptedModel| {
        builder(model).prepare_tools(|turn| async { Ok(after_a_look(turn)) }).build().unwrap()
    };
    let assistant = build(&script());
    let mut run = assistant.prompt("go").stream();
    let handle = run.handle();
    let mut stored = None;
    while let Some(event) = run.next().await {
        if matches!(&event.kind, EventKind::MessageEnd { message, .. } if message.role() == "assistant") {
            stored = stored.or_else(|| handle.snapshot());
        }
    }
    let stored = serde_json::to_string(&stored.expect("a snapshot")).unwrap();
    let model = ScriptedModel::new([reply().text("done")]);
    let other = build(&model);
    let output = other.resume(&serde_json::from_str(&stored).unwrap(), Decisions::new()).await.unwrap();
    assert_eq!(output.stop, RunStop::Completed);
    assert_eq!(
        outline(&other)[1..],
        ["tool_use open_vault,look", "open_vault failed(unknown_tool)", "look a vault", "stop done"]
    );
}

/// Found by a search.
#[tool(defer)]
fn rare() -> String {
    "rare".into()
}

#[tokio::test]
async fn a_deferred_tool_is_shown_when_it_is_found_and_not_hidden() {
    let model =
        ScriptedModel::new([reply().tool_call("search_tools", r#"{"query": "rare"}"#), reply().text("no")]);
    let assistant = Assistant::builder(model.clone())
        .tools(tools![look, rare])
        .prepare_tools(|turn| async {
            assert!(turn.definitions().iter().any(|tool| tool.name() == "rare"));
            Ok(turn.filter(|tool| tool.name() != "rare"))
        })
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    for request in model.requests() {
        assert_eq!(names(&request), ["look", "search_tools"]);
    }
}
