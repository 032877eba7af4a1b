//! Runs in words.

use super::*;
use crate::screen::Plain;
use agent::model::reply;
use agent::{Assistant, ScriptedModel, ToolOutput, tool, tools};

/// Draws a point.
#[tool(inline)]
fn draw() -> ToolOutput {
    ToolOutput::parts(vec![Part::text("a point"), Part::image(vec![1, 2, 3], "image/png")])
}

/// Signs in.
#[tool(inline)]
fn sign_in(user: String, #[arg(secret)] pin: u32) -> String {
    format!("{user} is in: {}", pin > 0)
}

/// What is written of a run.
async fn told(model: ScriptedModel) -> String {
    let (mut answer, mut notes) = (Vec::new(), Vec::new());
    let mut show = Plain::new(&mut answer, &mut notes, false);
    let look = Look { has_colours: false };
    let mut teller = Teller::new(look, "scripted", 1);
    let assistant = Assistant::builder(model).tools(tools![draw, sign_in]).build().unwrap();
    let mut run = assistant.prompt("Go").stream();
    while let Some(event) = run.next().await {
        teller.tell(&event, assistant.registry(), &mut show);
    }
    String::from_utf8(answer).unwrap() + &String::from_utf8(notes).unwrap()
}

#[tokio::test]
async fn whatever_is_no_text_is_named() {
    let told = told(ScriptedModel::new([reply().tool_call("draw", "{}"), reply().text("Drawn.")])).await;
    assert!(told.contains("    a point\n    [picture, image/png]\n"), "{told}");
}

#[tokio::test]
async fn secrets_are_not_shown() {
    let call = reply().tool_call("sign_in", r#"{"user": "ann", "pin": "4711"}"#);
    let told = told(ScriptedModel::new([call, reply().text("Done.")])).await;
    assert!(told.contains(r#"⚙ sign_in {"user":"ann","pin":"[secret]"}"#), "{told}");
    assert!(told.contains("~ /pin: ") && told.contains("ann is in: true"), "{told}");
    assert!(!told.contains("4711"), "{told}");
}

#[tokio::test]
async fn what_is_not_whole_says_so() {
    let cut = reply().text("Once upon").stop_reason(StopReason::MaxTokens);
    assert!(told(ScriptedModel::new([cut])).await.contains("✂ the reply reached its limit of tokens"));
    let refused = reply().part(Part::refusal("I would rather not.")).stop_reason(StopReason::ContentFilter);
    let told = told(ScriptedModel::new([refused])).await;
    assert!(told.starts_with("I would rather not.\n") && told.contains("✂ the reply was withheld"), "{told}");
}

#[tokio::test]
async fn parts_are_shown_when_they_come() {
    let picture = Part::image(vec![1, 2, 3], "image/png");
    let told = told(ScriptedModel::new([reply().text("Look:").part(picture).text("A point.")])).await;
    assert!(told.contains("Look:\n") && told.contains("[picture, image/png]\n"), "{told}");
}

#[test]
fn time_and_progress_are_short() {
    assert_eq!(seconds(Duration::from_millis(1234)), "1.2 s");
    assert_eq!(seconds(Duration::from_secs(75)), "75 s");
    assert_eq!(seconds(Duration::from_secs(125)), "2 min 5 s");
    assert_eq!((bar(0.0).as_str(), bar(1.0).as_str()), ("░░░░░░░░░░", "▓▓▓▓▓▓▓▓▓▓"));
}
