//! Task: one tool with several actions, each with its own arguments, like the subcommands of a program.
//!
//! ```sh
//! cargo run --example sub_commands     # prints the schema, three valid calls and an invalid one
//! ```
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::{Registry, RunTool, ToolContext, ToolError, message::ToolCall, tool, tools};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;

/// Looks after notes.
#[tool]
enum Notes {
    /// Writes a note down.
    Add {
        /// One word to find it by.
        title: String,
        text: String,
    },
    /// Reads a note.
    Read { title: String },
    /// Throws a note away.
    Remove { title: String },
}

/// What all actions work on.
#[derive(Default)]
struct Notebook(Mutex<BTreeMap<String, String>>);

impl RunTool for Notes {
    type Output = Result<String, ToolError>;

    async fn run(self, cx: &ToolContext) -> Self::Output {
        let notebook = cx.get::<Notebook>().ok_or_else(|| ToolError::new("there is no notebook"))?;
        let mut notes = notebook.0.lock().map_err(|_| ToolError::new("the notebook is not available"))?;
        let missing = |title: &str| ToolError::retry(format!("there is no note `{title}`; add it first"));
        match self {
            Notes::Add { title, text } => {
                notes.insert(title, text);
                Ok(format!("{} notes", notes.len()))
            }
            Notes::Read { title } => notes.get(&title).cloned().ok_or_else(|| missing(&title)),
            Notes::Remove { title } => {
                notes.remove(&title).map(|text| format!("removed: {text}")).ok_or_else(|| missing(&title))
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::new(tools![Notes])?;
    println!("{:#}\n", registry.definitions()[0].parameters());

    let cx = ToolContext::new().with_state(Notebook::default())?;
    for arguments in [
        r#"{"action": "add", "title": "milk", "text": "two litres"}"#,
        r#"{"action": "read", "title": "milk"}"#,
        r#"{"action": "remove", "title": "milk"}"#,
        r#"{"action": "remove", "name": "milk"}"#,
    ] {
        let result = registry.call(&ToolCall::new("call_1", "notes", arguments), &cx).await;
        println!("{arguments}\n=> {}\n", result.outcome.text());
    }
    Ok(())
}
