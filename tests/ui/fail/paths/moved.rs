//! Names that moved out of the root, and methods that went: the compiler names the new form.
#![deny(deprecated)]

use agent::Base64;
use agent::Effect;
use agent::RunHandle;
use agent::StepKey;

async fn ask(assistant: &agent::Assistant) -> Result<u32, agent::RunError> {
    let _events = assistant.run("How many?");
    assistant.start("How many?")?;
    assistant.extract("How many?").await
}

fn main() {}
