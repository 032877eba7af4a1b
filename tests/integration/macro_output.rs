//! The schema of what a tool returns.

#![expect(
    clippy::unused_async,
    clippy::unnecessary_wraps,
    clippy::needless_lifetimes,
    reason = "tools as people write them"
)]

use crate::macro_support::{definition, text};
use agent::{RunTool, ToolArgs, ToolContext, ToolOutput, ToolSet, Value, json, tool, tools};
use std::collections::BTreeMap;

/// What was measured.
#[derive(ToolOutput)]
struct Reading {
    /// How warm it is.
    degrees: f64,
    #[serde(rename = "in")]
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    sensors: Vec<Sensor>,
    by_room: BTreeMap<String, Sensor>,
    state: State,
    anything: Unknown,
}

#[derive(ToolOutput)]
struct Sensor {
    id: u32,
    inner: Option<Box<Sensor>>,
}

#[derive(ToolOutput)]
#[serde(rename_all = "lowercase")]
enum State {
    /// All is well.
    Good,
    #[expect(dead_code, reason = "a value that this thermometer never has")]
    Bad,
}

/// Has no schema.
#[derive(serde::Serialize)]
struct Unknown(u8);

type Aliased<T> = Result<T, std::io::Error>;

/// Measures.
#[tool]
fn measure() -> Aliased<Reading> {
    let inner = Sensor { id: 2, inner: None };
    Ok(Reading {
        degrees: 1.5,
        unit: "C",
        note: None,
        sensors: vec![Sensor { id: 1, inner: Some(Box::new(inner)) }],
        by_room: BTreeMap::new(),
        state: State::Good,
        anything: Unknown(7),
    })
}

fn output(set: ToolSet) -> Option<Value> {
    definition(set).output_schema().cloned()
}

#[tokio::test]
async fn the_schema_is_that_of_the_value() {
    let schema = output(tools![measure]).expect("an object");
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["description"], "What was measured.");
    let properties = &schema["properties"];
    assert_eq!(properties["degrees"]["description"], "How warm it is.");
    assert_eq!(properties["in"]["type"], "string");
    assert_eq!(schema["required"], json!(["degrees", "in", "sensors", "by_room", "state", "anything"]));
    let value: Value = serde_json::from_str(&text(tools![measure], "measure", "").await).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(validator.is_valid(&value), "{schema:#} {value:#}");
    let mut wrong = value.clone();
    wrong["sensors"][0]["inner"]["id"] = json!("x");
    assert!(!validator.is_valid(&wrong), "the schema goes all the way down: {schema:#}");
    let mut wrong = value;
    wrong["state"] = json!("Good");
    assert!(!validator.is_valid(&wrong));
}

/// Both.
#[derive(ToolArgs, ToolOutput)]
struct Both {
    n: u8,
}

/// Gives it back.
#[tool]
async fn echo(both: Both) -> Both {
    both
}

/// Lists.
#[tool]
fn list() -> Vec<Sensor> {
    Vec::new()
}

/// A text.
#[tool]
fn words() -> String {
    String::new()
}

/// By hand.
#[tool]
fn by_hand() -> ToolOutput {
    ToolOutput::text("x")
}

/// Hidden.
#[tool]
fn hidden() -> impl serde::Serialize {
    3
}

/// Lent.
#[tool]
fn lent<'a>(word: &'a str) -> Result<&'a str, String> {
    Ok(word)
}

#[derive(ToolOutput)]
struct Page<T> {
    items: Vec<T>,
}

/// Generic.
#[tool]
fn page() -> Page<u8> {
    Page { items: vec![1] }
}

struct Shelf;
#[tool]
impl Shelf {
    /// Of `Self`.
    #[tool]
    fn sensor(&self) -> Option<Sensor> {
        None
    }
    /// A reference.
    #[tool]
    fn reading<'a>(&'a self, both: Both) -> Result<Both, &'static str> {
        Ok(both)
    }
}

/// A struct.
#[tool]
struct Ask {}
impl RunTool for Ask {
    type Output = Result<Sensor, String>;
    async fn run(self, _: &ToolContext) -> Self::Output {
        Ok(Sensor { id: 1, inner: None })
    }
}

#[tokio::test]
async fn objects_and_lists_alone_have_one() {
    assert_eq!(output(tools![echo]).expect("an object")["properties"]["n"]["maximum"], 255);
    assert_eq!(output(tools![Ask]).expect("an object")["properties"]["id"]["type"], "integer");
    let sensors = output(tools![list]).expect("a list");
    assert_eq!((&sensors["type"], &sensors["items"]["type"]), (&"array".into(), &"object".into()));
    for set in [tools![words], tools![by_hand], tools![hidden], tools![lent], tools![page]] {
        assert_eq!(output(set.clone()), None, "{set:?}");
    }
    let registry = agent::Registry::new(tools![{ Shelf }]).expect("sound");
    assert!(registry.get("reading").expect("there").definition().output_schema().is_some());
    assert!(registry.get("sensor").expect("there").definition().output_schema().is_none(), "it may be null");
    assert_eq!(text(tools![page], "page", "").await, r#"{"items":[1]}"#);
}
