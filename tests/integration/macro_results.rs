//! What `#[tool]` functions may return.

#![expect(
    clippy::unnecessary_wraps,
    clippy::result_large_err,
    clippy::option_option,
    clippy::unused_async,
    reason = "the types are what is tested"
)]

use crate::macro_support::{failure, outcome, text};
use agent::{Json, RunTool, ToolContext, ToolError, ToolOutcome, ToolOutput, tool, tool::OutcomeCode, tools};
use serde_json::json;
use std::fmt;

macro_rules! returning {
    ($($name:ident: $ty:ty = $value:expr;)*) => {
        $(
            #[tool(description = "Returns something.", inline)]
            fn $name() -> $ty {
                $value
            }
        )*
    };
}

type Aliased<T> = Result<T, NotFound>;
type Boxed = Result<String, Box<dyn std::error::Error>>;

#[derive(Debug)]
struct NotFound;
impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not found")
    }
}

/// A real error with a source.
#[derive(Debug)]
struct Outer(std::num::ParseIntError);
impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outer")
    }
}
impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Serializes through `agent` alone.
#[derive(ToolOutput)]
struct Reading {
    degrees: f64,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    unit: Option<Unit>,
    #[arg(flatten)]
    place: Place<u8>,
}
#[derive(ToolOutput)]
struct Place<T> {
    #[arg(rename = "floor")]
    level: T,
}
#[derive(ToolOutput)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
}

fn reading() -> Reading {
    Reading { degrees: 7.5, unit: Some(Unit::Celsius), place: Place { level: 2 } }
}

returning! {
    nothing: () = ();
    string: String = "a \"text\"".into();
    slice: &'static str = "text";
    number: f32 = 1.5;
    list: Vec<u16> = vec![1, 2];
    option: Option<u8> = Some(1);
    value: serde_json::Value = json!({"a": 1});
    derived: Reading = reading();
    word: Unit = Unit::Celsius;
    output: ToolOutput = ToolOutput::text("out").with_metadata("k", 1);
    wrapped: Json<Vec<u8>> = Json(vec![1]);
    outcome_itself: ToolOutcome = ToolOutcome::failed(OutcomeCode::new("teapot"), "short and stout");
    ok_unit: Result<(), NotFound> = Ok(());
    ok_derived: Aliased<Reading> = Ok(reading());
    ok_output: Result<ToolOutput, ToolError> = Ok(ToolOutput::text("fine"));
    ok_outcome: Result<ToolOutcome, String> = Ok(ToolOutput::text("fine").into());
    err_alias: Aliased<Reading> = Err(NotFound);
    err_text: Result<u8, &'static str> = Err("just text");
    err_boxed: Boxed = Err("boxed".into());
    err_source: Result<u8, Outer> = "x".parse::<u8>().map_err(Outer);
    err_retry: Result<u8, ToolError> = Err(ToolError::retry("use a number"));
    err_denied: Result<u8, ToolError> = Err(ToolError::denied("not you"));
    err_code: Result<u8, ToolError> = Err(ToolError::new("full").with_code("disk_full"));
    err_outcome: Result<u8, ToolOutcome> = Err(ToolOutcome::failed(OutcomeCode::new("teapot"), "short"));
}

#[tokio::test]
async fn values_become_text() {
    for (set, name, expected) in [
        (tools![nothing], "nothing", ""),
        (tools![string], "string", "a \"text\""),
        (tools![slice], "slice", "text"),
        (tools![number], "number", "1.5"),
        (tools![list], "list", "[1,2]"),
        (tools![option], "option", "1"),
        (tools![value], "value", r#"{"a":1}"#),
        (tools![derived], "derived", r#"{"degrees":7.5,"in":"celsius","floor":2}"#),
        (tools![word], "word", "celsius"),
        (tools![output], "output", "out"),
        (tools![wrapped], "wrapped", "[1]"),
        (tools![ok_unit], "ok_unit", ""),
        (tools![ok_derived], "ok_derived", r#"{"degrees":7.5,"in":"celsius","floor":2}"#),
        (tools![ok_output], "ok_output", "fine"),
        (tools![ok_outcome], "ok_outcome", "fine"),
    ] {
        assert_eq!(text(set, name, "").await, expected, "{name}");
    }
}

#[tokio::test]
async fn objects_are_structured_and_metadata_is_kept() {
    let reply = outcome(tools![derived], "derived", "", &ToolContext::new()).await;
    assert_eq!(
        reply.output().and_then(|output| output.structured.clone()),
        Some(json!({"degrees": 7.5, "in": "celsius", "floor": 2}))
    );
    let reply = outcome(tools![output], "output", "", &ToolContext::new()).await;
    assert_eq!(reply.output().map(|output| output.metadata.clone()), json!({"k": 1}).as_object().cloned());
}

#[tokio::test]
async fn errors_of_every_kind() {
    for (set, name, code, expected) in [
        (tools![err_alias], "err_alias", "tool_error", "not found"),
        (tools![err_text], "err_text", "tool_error", "just text"),
        (tools![err_boxed], "err_boxed", "tool_error", "boxed"),
        (tools![err_source], "err_source", "tool_error", "outer"),
        (tools![err_retry], "err_retry", "no code", "use a number"),
        (tools![err_denied], "err_denied", "denied", "not you"),
        (tools![err_code], "err_code", "disk_full", "full"),
        (tools![err_outcome], "err_outcome", "teapot", "short"),
        (tools![outcome_itself], "outcome_itself", "teapot", "short and stout"),
    ] {
        assert_eq!(failure(set, name, "").await, (code.into(), expected.into()), "{name}");
    }
    let retry = outcome(tools![err_retry], "err_retry", "", &ToolContext::new()).await;
    assert!(matches!(retry, ToolOutcome::Retry { .. }));
}

#[derive(ToolOutput)]
struct Unserializable {
    map: std::collections::BTreeMap<Vec<u8>, u8>,
}
returning! {
    unserializable: Unserializable = Unserializable { map: [(vec![1], 1)].into() };
}

#[tokio::test]
async fn a_value_that_is_no_json_is_an_error_of_the_tool() {
    let (code, text) = failure(tools![unserializable], "unserializable", "").await;
    assert_eq!(code, "tool_error");
    assert!(text.contains("JSON"), "{text}");
}

#[derive(agent::ToolOutput)]
struct Mean {
    mean: f64,
    least: Option<f64>,
}

returning! {
    not_a_number: f64 = f64::NAN;
    endless: Result<f32, String> = Ok(f32::NEG_INFINITY);
    inside: Mean = Mean { mean: f64::NAN, least: None };
    in_a_list: Vec<f64> = vec![1.0, f64::INFINITY];
    none_inside: Mean = Mean { mean: 1.5, least: None };
}

/// JSON has no word for these: `serde_json` would write `null`.
#[tokio::test]
async fn numbers_that_are_not_finite_are_told() {
    assert_eq!(text(tools![not_a_number], "not_a_number", "{}").await, "NaN");
    assert_eq!(text(tools![endless], "endless", "{}").await, "-inf");
    let (code, words) = failure(tools![inside], "inside", "{}").await;
    assert_eq!(
        (code.as_str(), words.as_str()),
        ("tool_error", "the tool's result cannot be written as JSON: NaN at /mean")
    );
    let (_, words) = failure(tools![in_a_list], "in_a_list", "{}").await;
    assert_eq!(words, "the tool's result cannot be written as JSON: inf at /1");
    assert_eq!(text(tools![none_inside], "none_inside", "{}").await, r#"{"mean":1.5,"least":null}"#);
}

#[derive(ToolOutput)]
struct Customer {
    name: &'static str,
}

type Found<T> = Result<Option<T>, String>;

returning! {
    no_text: Option<String> = None;
    empty_text: Option<&'static str> = Some("");
    no_struct: Option<Customer> = None;
    a_struct: Option<Customer> = Some(Customer { name: "Ann" });
    none_in_result: Found<u8> = Ok(None);
    none_inside_some: Option<Option<u8>> = Some(None);
    no_output: Option<ToolOutput> = None;
    an_output: Option<ToolOutput> = Some(ToolOutput::text("words"));
    a_list: Vec<Option<u8>> = vec![None];
}

#[tokio::test]
async fn none_is_a_text_that_says_so() {
    for (set, name) in [
        (tools![no_text], "no_text"),
        (tools![no_struct], "no_struct"),
        (tools![none_in_result], "none_in_result"),
        (tools![none_inside_some], "none_inside_some"),
        (tools![no_output], "no_output"),
    ] {
        let outcome = outcome(set, name, "{}", &ToolContext::new()).await;
        let ToolOutcome::Completed(output) = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!(output.text_content(), "There is none.", "{name}");
        assert!(output.structured.is_none(), "{name}");
    }
    assert_eq!(text(tools![empty_text], "empty_text", "{}").await, "");
    assert_eq!(text(tools![a_struct], "a_struct", "{}").await, r#"{"name":"Ann"}"#);
    assert_eq!(text(tools![an_output], "an_output", "{}").await, "words");
    assert_eq!(text(tools![a_list], "a_list", "{}").await, "[null]");
}

/// Finds a customer.
#[tool(none = "There is no such customer.")]
fn find_customer(number: u8) -> Found<Customer> {
    Ok((number == 1).then_some(Customer { name: "Ann" }))
}

/// Finds the note of a customer.
#[tool(none = concat!("No ", "note."))]
async fn find_note(number: u8) -> Option<String> {
    (number == 1).then(String::new)
}

#[tokio::test]
async fn a_tool_says_in_its_own_words_that_there_is_none() {
    let set = || tools![find_customer, find_note];
    assert_eq!(text(set(), "find_customer", r#"{"number": 2}"#).await, "There is no such customer.");
    assert_eq!(text(set(), "find_customer", r#"{"number": 1}"#).await, r#"{"name":"Ann"}"#);
    assert_eq!(text(set(), "find_note", r#"{"number": 2}"#).await, "No note.");
    assert_eq!(text(set(), "find_note", r#"{"number": 1}"#).await, "");
}

/// Reads the last note.
#[tool(none = "There are no notes.")]
struct LastNote {}

impl RunTool for LastNote {
    type Output = Option<Customer>;
    async fn run(self, _cx: &ToolContext) -> Option<Customer> {
        None
    }
}

#[tokio::test]
async fn a_struct_tool_says_it_too() {
    assert_eq!(text(tools![LastNote], "last_note", "{}").await, "There are no notes.");
}
