//! A typed answer is read like arguments, but it is none.
use agent::{Assistant, ScriptedModel};

struct City;

fn main() {
    let assistant = Assistant::builder(ScriptedModel::new(["Paris"])).build().unwrap();
    let _ = assistant.prompt("Where?").output::<City>();
}
