//! A model is made of its name by a function, which can fail.
use agent::Assistant;

fn main() {
    let _ = Assistant::builder("openai/gpt-5");
    let _ = Assistant::builder(agent::model("openai/gpt-5"));
}
