//! What becomes of doc comments.

#![expect(clippy::unnecessary_wraps, reason = "tools as people write them")]

use crate::macro_support::{definition, property};
use agent::{ToolArgs, tool, tools};

/// Looks up a [`Word`](struct@Word).
///
/// Takes its time.
///
/// # Arguments
/// * `word` - What to look up, a [`Word`].
/// * `limit` - Not this: it has docs of its own.
/// * `_language` - Of the word.
/// * `cx` - Not the model's business.
///
/// # Errors
/// When there is none.
///
/// # Examples
/// ```
/// # Arguments
/// ```
#[tool]
fn look_up(
    word: String,
    /// At most.
    limit: u8,
    _language: String,
    cx: &agent::ToolContext,
) -> Result<String, String> {
    Ok(format!("{word} {limit} {}", cx.call_id()))
}

#[test]
fn sections_are_understood() {
    let set = || tools![look_up];
    assert_eq!(definition(set()).description(), "Looks up a `Word`.\nTakes its time.");
    assert_eq!(property(set(), "word")["description"], "What to look up, a `Word`.");
    assert_eq!(property(set(), "limit")["description"], "At most.");
    assert_eq!(property(set(), "language")["description"], "Of the word.");
}

/// One.
///
/// Two.
/// # Errors
/// Three.
#[tool(doc = "summary")]
fn summary() {}

/// One.
/// # Errors
/// Three.
#[tool(doc = "all")]
fn all() {}

/// For people.
#[tool(doc = false)]
fn nothing() {}

#[test]
fn as_much_as_is_asked_for() {
    assert_eq!(definition(tools![summary]).description(), "One.");
    assert_eq!(definition(tools![all]).description(), "One.\n# Errors\nThree.");
    let nothing = definition(tools![nothing]);
    assert_eq!(nothing.description(), "");
    let json = serde_json::to_value(&nothing).expect("JSON");
    assert_eq!(json.as_object().expect("an object").keys().collect::<Vec<_>>(), ["name", "parameters"]);
    assert!(nothing.describe_for_llm().starts_with("Name: nothing\nArguments Schema:\n"));
}

/// Everything is said.
#[tool(require_docs)]
fn documented(
    /// A word.
    word: String,
    #[arg(description = "A number.")] number: u8,
) -> String {
    format!("{word}{number}")
}

/// The whole.
#[tool(require_docs)]
fn whole(args: Documented) -> u8 {
    args.number
}

#[derive(ToolArgs)]
#[arg(require_docs)]
struct Documented {
    /// A number.
    number: u8,
    #[arg(skip)]
    skipped: u8,
    #[arg(flatten)]
    rest: Rest,
}

#[derive(ToolArgs)]
struct Rest {
    undocumented: Option<u8>,
}

#[test]
fn documented_tools_are_tools() {
    assert_eq!(property(tools![documented], "number")["description"], "A number.");
    assert_eq!(property(tools![whole], "number")["description"], "A number.");
    assert_eq!(property(tools![whole], "undocumented")["type"], "integer");
    assert!(property(tools![whole], "skipped").is_null());
    let rest = Documented { number: 1, skipped: 2, rest: Rest { undocumented: None } };
    assert_eq!((rest.skipped, rest.rest.undocumented), (2, None));
}

/// Sorted.
#[derive(ToolArgs)]
enum Order {
    First,
    /// Described.
    Second,
    Third,
    /// Described, too.
    Fourth,
}

#[derive(ToolArgs)]
enum Mixed {
    Plain,
    /// Described.
    Data {
        n: u8,
    },
    Last,
}

/// Sorts.
#[tool]
fn sort(order: Order, mixed: Mixed) -> u8 {
    let n = match mixed {
        Mixed::Plain => 1,
        Mixed::Data { n } => n,
        Mixed::Last => 2,
    };
    n + order as u8
}

#[tokio::test]
async fn variants_keep_their_order_and_tell_their_docs() {
    let order = property(tools![sort], "order");
    assert_eq!(order["enum"], serde_json::json!(["First", "Second", "Third", "Fourth"]));
    let text = order["description"].as_str().expect("a text");
    assert!(text.contains("Described.") && text.contains("Described, too."), "{text}");
    let mixed = property(tools![sort], "mixed").to_string();
    assert!(mixed.contains(r#"["Plain","Last"]"#), "words stand together: {mixed}");
    assert!(!mixed.contains("x-word"), "{mixed}");
    let sent = r#"{"order": "Third", "mixed": {"Data": {"n": 3}}}"#;
    assert_eq!(crate::macro_support::text(tools![sort], "sort", sent).await, "5");
    let sent = r#"{"order": "First", "mixed": "Last"}"#;
    assert_eq!(crate::macro_support::text(tools![sort], "sort", sent).await, "2");
}
