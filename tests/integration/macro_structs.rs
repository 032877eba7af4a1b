//! `#[tool]` on structs.

use crate::macro_support::{definition, failure, text};
use agent::{RunTool, ToolArgs, ToolContext, ToolSet, tool, tools};

/// Adds two numbers.
#[tool(read_only)]
#[derive(Debug)]
struct AddNumbers {
    /// First term.
    a: i64,
    /// Second term.
    #[arg(default = 1)]
    b: i64,
}
impl RunTool for AddNumbers {
    type Output = i64;
    async fn run(self, _cx: &ToolContext) -> i64 {
        self.a + self.b
    }
}

/// Ends in an error, and derives its arguments itself.
#[tool(name = "fail-now", description = "Fails.")]
#[derive(ToolArgs)]
struct Fail {
    #[serde(rename = "why")]
    reason: String,
}
impl RunTool for Fail {
    type Output = Result<(), String>;
    fn run(self, cx: &ToolContext) -> impl Future<Output = Self::Output> + Send {
        let id = cx.call_id().to_owned();
        async move { Err(format!("{} {id}", self.reason)) }
    }
}

/// Repeats a word, and derives its arguments above.
#[derive(Debug, ToolArgs)]
#[tool(name = "say_again")]
struct Repeat {
    #[arg(length(1..=3))]
    word: String,
}
impl RunTool for Repeat {
    type Output = String;
    async fn run(self, _: &ToolContext) -> String {
        self.word.repeat(2)
    }
}

/// Says pong.
#[tool]
struct HTTPPing {}
impl HTTPPing {
    fn set() -> ToolSet {
        tools![Self]
    }
}
impl RunTool for HTTPPing {
    type Output = &'static str;
    async fn run(self, _: &ToolContext) -> &'static str {
        "pong"
    }
}

#[tokio::test]
async fn structs_run() {
    assert_eq!(text(tools![AddNumbers], "add_numbers", r#"{"a": 41}"#).await, "42");
    assert_eq!(text(HTTPPing::set(), "http_ping", "").await, "pong");
    assert_eq!(text(tools![Repeat], "say_again", r#"{"word": "hm"}"#).await, "hmhm");
    let failed = failure(tools![Fail], "fail-now", r#"{"why": "because"}"#).await;
    assert_eq!(failed, ("tool_error".into(), "because call_1".into()));
}

/// What to read.
#[derive(ToolArgs)]
struct Place {
    page: u8,
}

/// Reads a page.
#[tool]
fn read_page(place: Place) -> u8 {
    place.page
}

#[test]
fn another_description_of_the_object_stays() {
    assert_eq!(definition(tools![read_page]).parameters()["description"], "What to read.");
}

#[test]
fn fields_are_the_parameters() {
    let definition = definition(tools![AddNumbers]);
    assert_eq!(definition.description(), "Adds two numbers.");
    assert_eq!(definition.parameters().get("description"), None, "it is that of the tool");
    let properties = &definition.parameters()["properties"];
    assert_eq!(properties["a"]["description"], "First term.");
    assert_eq!(properties["b"]["default"], 1);
    assert_eq!(definition.read_only(), Some(true));
}

#[test]
fn a_struct_tool_is_a_plain_struct_too() {
    assert_eq!(format!("{:?}", AddNumbers { a: 1, b: 2 }), "AddNumbers { a: 1, b: 2 }");
}
