//! A prompt is a future: nothing is asked before `.await`.
use agent::{Assistant, RunError, ScriptedModel};

async fn ask(assistant: &Assistant) -> Result<String, RunError> {
    let answer = assistant.prompt("What is 40 plus 2?");
    Ok(answer.text().to_owned())
}

async fn ask_at_once(assistant: &Assistant) -> Result<String, RunError> {
    Ok(assistant.prompt("What is 40 plus 2?")?.text())
}

fn main() {
    let assistant = Assistant::builder(ScriptedModel::new(["42"])).build().expect("no tools");
    let _ = (ask(&assistant), ask_at_once(&assistant));
}
