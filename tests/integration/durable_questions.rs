//! Questions of tools in durable runs: each body starts again with its answers, wherever the process dies.

use std::sync::{Arc, Mutex};

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::model::reply;
use agent::tool::QuestionInput;
use agent::{Assistant, Registry, ScriptedModel, Tool, ToolContext, ToolError, ToolSet, json, tool, tools};

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

/// Books a seat.
#[tool(asks)]
async fn book(to: String, cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    ask_and_note(to, cx, log).await
}

/// Notes a seat; a second note changes nothing.
#[tool(name = "book", idempotent)]
async fn note(to: String, cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    ask_and_note(to, cx, log).await
}

async fn ask_and_note(to: String, cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    let coach: u8 = cx.ask(format!("Which coach to {to}?")).await?;
    let is_sure: bool = cx.ask("Are you sure?").await?;
    log.0.lock().unwrap().push(format!("{to} {coach} {is_sure}"));
    Ok(format!("{to} in coach {coach}"))
}

fn rehearsal(log: &Arc<Log>, book: Tool, towns: &[&str]) -> Rehearsal {
    let wanted: Vec<String> = towns.iter().map(ToString::to_string).collect();
    let model = ScriptedModel::from_fn(move |request| match request.messages.len() {
        1 => wanted.iter().enumerate().fold(reply(), |reply, (at, to)| {
            reply.tool_call_with_id(format!("call_{at}"), "book", json!({"to": to}).to_string())
        }),
        _ => reply().text("Booked."),
    });
    let assistant =
        Assistant::builder(model).tools(tools![{ book }]).shared_state(log.clone()).build().unwrap();
    let rehearsal = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("trip", "Go"));
    for at in 0..towns.len() {
        rehearsal.answer(format!("trip/1/tool/{at}/ask/0"), QuestionInput::Accept(json!(at + 3)));
        rehearsal.answer(format!("trip/1/tool/{at}/ask/1"), QuestionInput::Accept(json!("true")));
    }
    rehearsal
}

fn only(tools: ToolSet) -> Tool {
    Registry::new(tools).unwrap().fetch("book").unwrap().clone()
}

fn book_tool() -> Tool {
    only(tools![book])
}

fn note_tool() -> Tool {
    only(tools![note])
}

#[tokio::test]
async fn a_run_waits_for_answers_and_its_bodies_have_them_wherever_it_dies() {
    for towns in [&["Rome"][..], &["Rome", "Bern"]] {
        for step in 0..30 {
            let log = Arc::new(Log::default());
            let rehearsal = rehearsal(&log, note_tool(), towns);
            let is_over = rehearsal.crash_before_step(step).await.unwrap().is_some();
            let outcome = rehearsal.play().await.unwrap();
            assert_eq!(outcome.text(), "Booked.", "killed before step {step}");
            for (at, to) in towns.iter().enumerate() {
                let result = outcome.messages[2 + at].text();
                assert_eq!(result, format!("{to} in coach {}", at + 3), "killed before step {step}");
            }
            let mut ended = log.0.lock().unwrap().clone();
            ended.sort();
            ended.dedup();
            assert_eq!(ended.len(), towns.len(), "killed before step {step}");
            if is_over {
                break;
            }
            assert!(step < 29, "the run does not end");
        }
    }
}

#[tokio::test]
async fn a_body_whose_process_died_after_its_last_answer_is_not_started_again() {
    let log = Arc::new(Log::default());
    let rehearsal = rehearsal(&log, book_tool(), &["Rome"]);
    assert!(rehearsal.crash_after("trip/1/tool/0/restart/2").await.unwrap().is_none());
    let outcome = rehearsal.play().await.unwrap();
    assert!(outcome.messages[2].text().starts_with("No result of this call was recorded."));
    assert_eq!(log.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_a_missing_one_dismisses() {
    let log = Arc::new(Log::default());
    let rehearsal = rehearsal(&log, book_tool(), &["Rome"]);
    rehearsal.answer("trip/1/tool/0/ask/0", QuestionInput::Accept(json!("the last one")));
    rehearsal.answer("trip/1/tool/0/ask/0/2", QuestionInput::Accept(json!(9)));
    let outcome = rehearsal.play().await.unwrap();
    assert_eq!(outcome.messages[2].text(), "Rome in coach 9");

    let missing = self::rehearsal(&log, book_tool(), &["Rome"]);
    missing.answer("trip/1/tool/0/ask/1", QuestionInput::Later);
    let outcome = missing.play().await.unwrap();
    assert_eq!(outcome.messages[2].text(), "the person dismissed the question");
}
