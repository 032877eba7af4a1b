//! Tools with checks of their authors, under the proofs and the models for tests.

use agent::args::{Base64, HumanDuration, Violations};
use agent::testing::{SchemaModel, assert_agrees};
use agent::{Assistant, ToolArgs, ToolSet, tool, tools};

/// A flight.
#[derive(ToolArgs)]
#[arg(validate = is_allowed)]
struct Flight {
    #[arg(range(0..=99))]
    age: u8,
    #[arg(default)]
    accompanied: bool,
    guardian: Option<Guardian>,
}

/// Who goes with a child.
#[derive(ToolArgs)]
struct Guardian {
    name: String,
}

fn is_allowed(flight: &Flight) -> Result<(), Violations> {
    let mut found = Violations::new();
    if flight.age < 12 && !flight.accompanied {
        found.add("accompanied", "a child must be accompanied");
    }
    if flight.age < 12 && flight.guardian.as_ref().is_none_or(|guardian| guardian.name.is_empty()) {
        found.add("guardian/name", "a child has a guardian");
    }
    found.into_result()
}

#[test]
fn a_check_may_name_what_was_left_out() {
    assert_agrees::<Flight>();
}

/// Books a flight.
#[tool(inline)]
fn book(flight: Flight) -> String {
    format!("{} {} {}", flight.age, flight.accompanied, flight.guardian.is_some())
}

/// Looks a booking up.
#[tool(inline)]
fn find(#[arg(validate = is_even)] number: u32) -> Result<String, String> {
    Err(format!("there is no booking {number}"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a check takes a reference")]
fn is_even(number: &u32) -> Result<(), &'static str> {
    if number.is_multiple_of(2) { Ok(()) } else { Err("bookings have even numbers") }
}

/// Takes a text that its schema does not describe.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Lies {
    #[schemars(with = "String")]
    #[serde(rename = "text")]
    _text: std::net::IpAddr,
}

async fn tried(tools: ToolSet) -> SchemaModel {
    let model = SchemaModel::new();
    let assistant = Assistant::builder(model.clone()).tools(tools).build().unwrap();
    assistant.prompt("Try it.").await.unwrap();
    model
}

#[tokio::test]
async fn a_refusal_by_a_check_is_no_fault_and_is_reported() {
    let model = tried(tools![book, find]).await;
    model.assert_safe();
    let calls = model.calls();
    let refused: Vec<_> = calls.iter().filter(|call| call.is_refused_by_check()).collect();
    assert!(refused.iter().any(|call| call.tool == "book") && refused.iter().any(|call| call.tool == "find"));
    for call in &refused {
        assert!(["right", "at an edge"].contains(&&*call.kind().to_string()), "{call:?}");
        assert!(call.reasons().count() > 0, "{call:?}");
    }
    let text = model.to_string();
    assert!(
        text.contains("- `book`: refused by a check")
            && text.contains("/guardian/name: a child has a guardian"),
        "{text}"
    );
    assert!(text.contains("- `find`: no call completed"), "{text}");
    assert!(!text.contains("`book`: no call completed"), "{text}");
}

#[tokio::test]
async fn a_type_that_refuses_what_its_schema_takes_is_a_fault_and_the_reason_is_shown() {
    use agent::args::{Plan, PlanOptions};
    use agent::{Tool, ToolOutcome, ToolOutput, Value};
    let plan = Plan::for_type::<Lies>("lies", PlanOptions::default()).unwrap();
    let schema = plan.schema().clone();
    let lies = Tool::new("lies", "Lies.", schema, move |args: Value, _cx| {
        let read = plan.parse::<Lies>(&args.to_string()).map(|_| ToolOutput::text("read"));
        async move { read.map_or_else(ToolOutcome::from, ToolOutcome::from) }
    });
    let lies = lies.unwrap();
    // Without retries, the code of each refusal is `retries_exhausted`.
    for retries in [2, 0] {
        let model = SchemaModel::new();
        let assistant =
            Assistant::builder(model.clone()).max_retries(retries).tools(tools![{ lies.clone() }]);
        assistant.build().unwrap().prompt("Try it.").await.unwrap();
        let text = model.to_string();
        assert!(
            text.contains("arguments that fit the schema were refused") && text.contains("result: /text"),
            "{text}"
        );
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.assert_safe())).is_err());
    }
}

/// Reserves a room.
#[tool(inline, max_retries = 0)]
fn reserve(room: u32) -> Result<String, agent::ToolError> {
    Err(agent::ToolError::retry(format!("room {room} is taken")))
}

#[tokio::test]
async fn a_body_that_asks_for_a_better_call_refuses_no_arguments() {
    let model = tried(tools![reserve]).await;
    model.assert_safe();
    let calls = model.calls();
    let right: Vec<_> = calls.iter().filter(|call| call.kind().to_string() == "right").collect();
    assert!(right.iter().any(|call| call.code.as_deref() == Some("retries_exhausted")), "{right:?}");
    assert!(!right.iter().any(|call| call.is_refused()), "{right:?}");
}

/// A code, which has no spaces.
#[derive(ToolArgs)]
#[arg(validate = has_no_space)]
struct Code(String);

fn has_no_space(code: &Code) -> Result<(), &'static str> {
    if code.0.contains(' ') { Err("a code has no spaces") } else { Ok(()) }
}

/// Opens a door.
#[tool(inline)]
fn open(code: Code) -> usize {
    code.0.len()
}

/// Pings a host.
#[tool(inline)]
fn ping(host: Lies, wait: Option<HumanDuration>, data: Option<Base64>) -> bool {
    let _ = host;
    wait.is_some() || data.is_some()
}

/// Reads a long text.
#[tool(inline)]
fn read(#[arg(length(6000..))] text: String) -> usize {
    text.len()
}

fn panic_of(model: &SchemaModel) -> String {
    let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.assert_safe())).unwrap_err();
    end.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[tokio::test]
async fn only_checks_of_the_application_may_refuse() {
    let model = tried(tools![open]).await;
    model.assert_safe();
    assert!(model.to_string().contains("a code has no spaces"), "{model}");
    let model = tried(tools![ping]).await;
    let text = panic_of(&model);
    assert!(text.contains("`ping`, right: arguments that fit the schema were refused"), "{text}");
}

#[tokio::test]
async fn a_tool_that_could_not_be_tried_is_reported() {
    let words = "- `read`: no call that fits its schema could be generated, so it was not tried";
    for tools in [tools![read], tools![read, open]] {
        let text = panic_of(&tried(tools).await);
        assert!(text.contains(words), "{text}");
    }
}
