//! Tools that no call can satisfy are refused when they are registered.

#![expect(
    dead_code,
    unreachable_patterns,
    reason = "no call is made, and none could be: serde reads one of two names"
)]

use agent::args::{Plan, PlanOptions};
use agent::{Registry, ToolArgs, json, tool, tools};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

fn refusal<T: JsonSchema>() -> String {
    match Plan::for_type::<T>("clash", PlanOptions::default()) {
        Ok(plan) => panic!("there is a plan: {}", plan.schema()),
        Err(error) => error.to_string(),
    }
}

#[derive(ToolArgs, Debug)]
struct Page {
    page: u32,
    #[serde(alias = "count")]
    size: Option<u32>,
}

/// Lists.
#[tool]
fn list(#[arg(flatten)] p: Page, page: u32) -> u32 {
    p.page + page
}

/// Lists.
#[tool]
fn list_by_alias(#[arg(flatten)] p: Page, #[arg(alias = "count")] n: u32) -> u32 {
    p.page + n
}

#[test]
fn a_flattened_parameter_has_names_of_its_own() {
    let error = Registry::new(tools![list]).unwrap_err().to_string();
    assert_eq!(
        error,
        "tool `list` cannot be defined: schema of `list` refused at `#`: `properties` has `page` twice, in the flattened `p` and as a parameter beside it: rename one"
    );
    let error = Registry::new(tools![list_by_alias]).unwrap_err().to_string();
    assert!(error.contains("has `count` twice"), "{error}");
}

#[derive(ToolArgs, Debug)]
struct TwoPages {
    #[serde(flatten)]
    first: Page,
    #[arg(flatten)]
    second: Page,
}

#[derive(ToolArgs, Debug)]
struct OptionalPage {
    page: Option<u32>,
    #[serde(flatten)]
    rest: Option<Page>,
}

#[derive(ToolArgs, Debug)]
#[serde(tag = "by")]
enum Search {
    Pages {
        #[serde(rename = "page")]
        at: u8,
        #[serde(flatten)]
        page: Page,
    },
}

#[derive(ToolArgs, Debug)]
#[serde(tag = "kind")]
enum Shape {
    Circle { radius: u8 },
    Square { side: u8 },
}

#[derive(ToolArgs, Debug)]
struct Shaped {
    kind: String,
    #[serde(flatten)]
    shape: Shape,
}

#[derive(ToolArgs, Debug)]
struct Distinct {
    kinds: String,
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    page: Page,
}

#[derive(ToolArgs, Debug)]
enum Document {
    Id(u32),
    #[arg(alias = "title")]
    Name(String),
}

#[derive(ToolArgs, Debug)]
struct Compared {
    #[arg(flatten)]
    old: Document,
    #[arg(flatten)]
    new: Document,
}

#[derive(ToolArgs, Debug)]
struct Titled {
    #[arg(flatten)]
    document: Document,
    #[arg(flatten)]
    title: Title,
}

#[derive(ToolArgs, Debug)]
struct Title {
    title: Option<String>,
}

#[test]
fn flattened_fields_have_names_of_their_own() {
    let error = refusal::<TwoPages>();
    assert!(
        error.contains("has `page` twice, in the flattened `second` and as a field of the flattened `first`"),
        "{error}"
    );
    assert!(refusal::<OptionalPage>().contains("has `page` twice"));
    assert!(refusal::<Search>().contains("has `page` twice"));
    assert!(refusal::<Shaped>().contains("has `kind` twice"));
    // serde takes the key of an externally tagged variant away from what follows.
    assert!(refusal::<Compared>().contains("has `Id` twice, in the flattened `new`"));
    assert!(refusal::<Titled>().contains("has `title` twice, in the flattened `title`"));
    Plan::for_type::<Distinct>("distinct", PlanOptions::default()).unwrap();
}

#[derive(ToolArgs, Debug)]
struct Around<T> {
    page: u32,
    #[serde(flatten)]
    inner: T,
}

#[test]
fn a_flattened_parameter_of_a_type_is_looked_at_in_each_use() {
    assert!(refusal::<Around<Page>>().contains("has `page` twice, in the flattened `inner`"));
    assert!(refusal::<Around<Option<Page>>>().contains("has `page` twice"));
    assert!(refusal::<Around<Around<Shape>>>().contains("has `page` twice"));
    Plan::for_type::<Around<Shape>>("around", PlanOptions::default()).unwrap();
    Plan::for_type::<Around<BTreeMap<String, u8>>>("around", PlanOptions::default()).unwrap();
}

/// Of another crate: nothing of ours sees its attributes.
#[derive(Deserialize, JsonSchema)]
struct Twice {
    #[serde(rename = "a")]
    x: u8,
    a: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Holder {
    twice: Vec<Twice>,
}

#[derive(Deserialize, JsonSchema)]
enum Units {
    #[serde(rename = "b")]
    A,
    /// Another.
    #[serde(rename = "b")]
    B,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "action")]
enum Tagged {
    #[serde(rename = "go")]
    Walk { x: u8 },
    #[serde(rename = "go")]
    Run { y: u8 },
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Inner {
    Square(Kinded),
}

#[derive(Deserialize, JsonSchema)]
struct Kinded {
    kind: String,
}

#[derive(Deserialize, JsonSchema)]
struct OfUnits {
    units: Units,
    again: Option<Units>,
}

#[derive(Deserialize, JsonSchema)]
struct OfInner {
    inner: Inner,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("x-other-thing" = 1))]
struct AliasTwice {
    #[schemars(extend("x-aliases" = ["b"]))]
    a: u8,
    b: u8,
}

#[test]
fn types_of_other_crates_are_looked_at_when_registered() {
    let error = refusal::<Holder>();
    assert_eq!(
        error,
        "schema of `clash` refused at `#/$defs/Twice`: `required` lists `a` twice, as the name of two fields: rename one"
    );
    assert!(refusal::<OfUnits>().contains("`oneOf` has `b` twice, as the name of two variants"));
    assert!(refusal::<Tagged>().contains("`oneOf` has `action: go` twice"));
    assert!(refusal::<OfInner>().contains("`kind`"), "{}", refusal::<OfInner>());
    assert!(refusal::<AliasTwice>().contains("`b` twice"));
}

#[test]
fn a_schema_of_another_program_may_repeat_itself() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "a"]});
    Plan::compile("given", &schema, PlanOptions::default()).unwrap();
}
