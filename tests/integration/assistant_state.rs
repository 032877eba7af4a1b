//! What tools are given: checked when the assistant is built, shadowed by the prompt.

use std::sync::Arc;

use agent::model::reply;
use agent::{
    Assistant, RunError, ScriptedModel, ToolContext, run::BuildError, tool, tool::RegistryProblem, tools,
};

struct Database(&'static str);

struct User(&'static str);

trait Clock: Send + Sync {
    fn now(&self) -> u64;
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> u64 {
        12
    }
}

/// Says what it was given.
#[tool]
fn look_up(user: &User, database: &Database) -> String {
    format!("{} in {}", user.0, database.0)
}

/// Says the time.
#[tool]
fn time(clock: &dyn Clock) -> u64 {
    clock.now()
}

/// Says whose run it is.
#[tool]
fn session(cx: &ToolContext) -> String {
    cx.session_id().unwrap_or("none").to_owned()
}

/// Each prompt is answered with one call of this tool, and then with what it said.
fn model(tool: &'static str) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| match request.messages.last().and_then(|m| m.as_tool_result()) {
        Some(result) => reply().text(result.text()),
        None => reply().tool_call(tool, "{}"),
    })
}

#[tokio::test]
async fn everything_that_is_missing_is_found_when_it_is_built() {
    let error = Assistant::builder(model("time"))
        .tools(tools![look_up, time])
        .state(User("ann"))
        .build()
        .unwrap_err();
    let BuildError::Tools(error) = error else { panic!("{error}") };
    let missing: Vec<_> = error
        .problems()
        .iter()
        .map(|problem| match problem {
            RegistryProblem::MissingState { tool, state, .. } => (tool.as_str(), state.name()),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(missing.len(), 2);
    assert!(missing[0].0 == "look_up" && missing[0].1.ends_with("Database"), "{missing:?}");
    assert!(missing[1].0 == "time" && missing[1].1.ends_with("Clock"), "{missing:?}");
}

#[tokio::test]
async fn names_and_states_given_twice_are_found_too() {
    let twice =
        Assistant::builder(model("time")).tools(tools![time]).tools(tools![time]).build().unwrap_err();
    assert!(twice.to_string().contains("two tools are named `time`"), "{twice}");
    let twice = Assistant::builder(model("look_up"))
        .tools(tools![look_up])
        .state(User("ann"))
        .state(User("bo"))
        .build()
        .unwrap_err()
        .to_string();
    assert!(twice.contains("User` is given twice") && twice.contains("Database"), "{twice}");
}

#[tokio::test]
async fn a_prompt_shadows_the_state_of_the_assistant_for_itself() {
    let assistant = Assistant::builder(model("look_up"))
        .tools(tools![look_up, session])
        .state(User("ann"))
        .state(Database("main"))
        .build()
        .unwrap();
    assert_eq!(assistant.prompt("who?").await.unwrap().text(), "ann in main");
    assert_eq!(assistant.prompt("who?").with_state(User("bo")).await.unwrap().text(), "bo in main");
    assert_eq!(assistant.prompt("who?").await.unwrap().text(), "ann in main");
    let error = assistant.prompt("who?").with_state(User("a")).with_state(User("b")).await.unwrap_err();
    assert!(matches!(error, RunError::DuplicateState(_)), "{error}");
    assert!(!assistant.is_busy());
}

#[tokio::test]
async fn state_can_be_promised_for_every_prompt() {
    let assistant = Assistant::builder(model("look_up"))
        .tools(tools![look_up])
        .state(Database("main"))
        .state_per_prompt::<User>()
        .build()
        .unwrap();
    assert_eq!(assistant.prompt("who?").with_state(User("bo")).await.unwrap().text(), "bo in main");
    let error = assistant.prompt("who?").await.unwrap_err();
    assert!(matches!(error, RunError::MissingState(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("the prompt lacks state: tool `look_up` needs state `"), "{text}");
    assert!(text.ends_with("User`: add it to the prompt with `.with_state(…)`"), "{text}");
    assert_eq!(assistant.messages().len(), 4, "nothing began");
}

#[tokio::test]
async fn traits_are_shared_state_and_sessions_have_names() {
    let clock: Arc<dyn Clock> = Arc::new(Noon);
    let assistant =
        Assistant::builder(model("time")).tools(tools![time]).shared_state(clock).build().unwrap();
    assert_eq!(assistant.prompt("when?").await.unwrap().text(), "12");
    let assistant = Assistant::builder(model("session")).tools(tools![session]).build().unwrap();
    assert_eq!(assistant.prompt("which?").session_id("s-1").await.unwrap().text(), "s-1");
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let clock: Arc<dyn Clock> = Arc::new(Noon);
    let error = Assistant::builder(model("time"))
        .tools(tools![look_up, time])
        .tools(tools![time])
        .state(Arc::new(Database("main")))
        .state(1_u8)
        .state(2_u8)
        .build()
        .unwrap_err()
        .to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 5, "{error}");
    assert!(lines[0].contains("two tools are named `time`"), "{error}");
    assert!(lines[1].contains("`u8` is given twice"), "{error}");
    assert!(lines[2].contains("User`: add it with `.state(…)`"), "{error}");
    assert!(
        lines[3].contains("Database`: an `Arc` of it was given as a value; write `.shared_state(arc)`"),
        "{error}"
    );
    assert!(lines[4].contains("Clock`: add it with `.shared_state(arc)`"), "{error}");
    let found = Assistant::builder(model("time")).tools(tools![time]).shared_state(clock).build();
    assert!(found.is_ok(), "{found:?}");
}
