//! `#[tool]` on enums: each variant is an action.

use crate::macro_support::{definition, failure, text};
use agent::schema::{Dialect, render};
use agent::{RunTool, ToolArgs, ToolContext, tool, tools};
use serde_json::json;

/// Looks after notes.
#[tool]
#[derive(Debug)]
enum Notes {
    /// Writes a note down.
    Add {
        /// Its text.
        #[arg(length(1..=80))]
        text: String,
        #[arg(default)]
        pinned: bool,
    },
    /// Throws a note away.
    #[arg(name = "remove")]
    Delete(Which),
    /// Counts the notes.
    CountAll,
}

#[derive(ToolArgs, Debug)]
struct Which {
    /// Its number.
    id: u32,
}

impl RunTool for Notes {
    type Output = Result<String, String>;
    async fn run(self, cx: &ToolContext) -> Self::Output {
        match self {
            Notes::Add { text, pinned } => Ok(format!("{text} {pinned} {}", cx.call_id())),
            Notes::Delete(Which { id }) => Err(format!("there is no note {id}")),
            Notes::CountAll => Ok("7".into()),
        }
    }
}

#[tokio::test]
async fn an_action_is_told_by_its_name() {
    assert_eq!(text(tools![Notes], "notes", r#"{"action": "add", "text": "x"}"#).await, "x false call_1");
    assert_eq!(text(tools![Notes], "notes", r#"{"action": "count_all"}"#).await, "7");
    let (code, why) = failure(tools![Notes], "notes", r#"{"action": "remove", "id": "3"}"#).await;
    assert_eq!((code.as_str(), why.as_str()), ("tool_error", "there is no note 3"));
    let (code, why) = failure(tools![Notes], "notes", r#"{"action": "ad", "text": "x"}"#).await;
    assert_eq!(code, "invalid_arguments");
    assert!(why.contains(r#"did you mean "add"?"#), "{why}");
    let (_, why) = failure(tools![Notes], "notes", r#"{"action": "add", "txt": "x", "pinned": 3}"#).await;
    assert!(why.contains("/txt") && why.contains("/pinned"), "{why}");
}

#[test]
fn each_action_is_described() {
    let definition = definition(tools![Notes]);
    assert_eq!((definition.name(), definition.description()), ("notes", "Looks after notes."));
    assert_eq!(definition.parameters().get("description"), None, "it is that of the tool");
    let branches = definition.parameters()["anyOf"].as_array().expect("alternatives").clone();
    let said: Vec<_> = branches.iter().map(|branch| branch["description"].as_str().expect("docs")).collect();
    assert_eq!(said, ["Writes a note down.", "Throws a note away.", "Counts the notes."]);
    assert_eq!(branches[1]["properties"]["id"]["description"], "Its number.");
}

#[test]
fn providers_are_sent_one_plain_object() {
    for dialect in [Dialect::Plain, Dialect::OpenAiStrict, Dialect::GeminiJsonSchema] {
        let rendered = render(definition(tools![Notes]).plan(), dialect);
        assert_eq!(rendered.schema["type"], "object", "{dialect:?}: {}", rendered.schema);
        let action = &rendered.schema["properties"]["action"];
        assert_eq!(action["enum"], json!(["add", "remove", "count_all"]), "{dialect:?}: {}", rendered.schema);
    }
}

/// Tagged by hand.
#[tool(name = "switch", crate = agent)]
#[derive(ToolArgs)]
#[serde(tag = "do", content = "with")]
enum Switch {
    On,
    Dim(u8),
}

impl RunTool for Switch {
    type Output = u8;
    async fn run(self, _: &ToolContext) -> u8 {
        match self {
            Switch::On => 100,
            Switch::Dim(percent) => percent,
        }
    }
}

#[tokio::test]
async fn serde_has_the_last_word() {
    assert_eq!(text(tools![Switch], "switch", r#"{"do": "Dim", "with": 3}"#).await, "3");
    assert_eq!(text(tools![Switch], "switch", r#"{"do": "On"}"#).await, "100");
}
