//! Tools with checks of their authors, under the proofs and the models for tests.

use agent::testing::{SchemaModel, assert_agrees};
use agent::{Assistant, ToolArgs, ToolSet, args::Violations, tool, tools};

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
