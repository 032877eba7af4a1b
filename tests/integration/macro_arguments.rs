//! `#[derive(ToolArgs)]`: whole objects, nested types, serde's attributes, constraints.

#![expect(clippy::unused_async, reason = "tools are async where that is what is tested")]
#![expect(dead_code, reason = "what is read is looked at as a whole, by `Debug`")]

use crate::macro_support::{definition, failure, property, text};
use agent::{ToolArgs, ToolOutput, ToolSet, tool, tools};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// A temperature unit.
#[derive(ToolArgs, ToolOutput, Clone, Copy, Debug, PartialEq)]
enum Unit {
    /// Degrees C.
    Celsius,
    Fahrenheit,
}

/// Words in another case.
#[derive(ToolArgs, Debug)]
#[serde(rename_all = "kebab-case")]
enum Order {
    FirstUp,
    #[arg(rename = "last")]
    LastDown,
}

/// What to search.
#[derive(ToolArgs, Debug)]
struct SearchArgs {
    /// What to look for,
    /// in words.
    query: String,
    /// At most this many hits.
    #[arg(range(1..=50), default = 10)]
    limit: u32,
    #[arg(length(1..=3))]
    tags: Option<Vec<String>>,
    #[arg(alias = "dir", default = Order::FirstUp)]
    order: Order,
    #[arg(name = "maxAge", range(..=1.5))]
    max_age: Option<f64>,
    #[serde(flatten)]
    page: Page<u8>,
    next: Option<Box<Self>>,
    #[arg(secret, default)]
    token: String,
    #[arg(coerce = "exact", description = "Said here.")]
    /// Not here.
    exact: bool,
    #[arg(pattern = "^[a-z]+$", length(2..))]
    code: Option<String>,
    #[schemars(description = "Said to schemars.")]
    /// Not this.
    #[serde(alias = "al", default = "seven")]
    own: u8,
    #[serde(skip)]
    skipped: Option<std::rc::Rc<u8>>,
}
fn seven() -> u8 {
    7
}

/// Generic, with a default for the whole.
#[derive(ToolArgs, Debug)]
#[serde(default, rename_all = "camelCase")]
struct Page<T> {
    page_number: T,
    page_size: u16,
}
impl<T: Default> Default for Page<T> {
    fn default() -> Self {
        Page { page_number: T::default(), page_size: 25 }
    }
}

// Not `Send` because of the skipped field: a tool's arguments cross threads, so it is taken apart here.
#[derive(ToolArgs, Debug)]
struct Sendable {
    #[arg(flatten)]
    page: Page<u8>,
    unit: Option<Unit>,
}

/// Search.
#[tool]
fn search(args: Sendable) -> String {
    format!("{args:?}")
}

#[tokio::test]
async fn one_struct_is_the_whole_object() {
    let got = text(tools![search], "search", r#"{"pageNumber": 3, "unit": "Celsius"}"#).await;
    assert_eq!(got, "Sendable { page: Page { page_number: 3, page_size: 25 }, unit: Some(Celsius) }");
}

#[test]
fn attributes_reach_serde() {
    let read: SearchArgs = serde_json::from_value(json!({
        "query": "q", "dir": "last", "maxAge": 1.0, "pageSize": 3, "exact": true, "al": 9,
        "next": {"query": "r", "exact": false, "own": 1}
    }))
    .expect("fits");
    assert_eq!(
        format!("{:?} {:?} {} {}", read.order, read.max_age, read.page.page_size, read.own),
        "LastDown Some(1.0) 3 9"
    );
    assert_eq!((read.limit, read.token.as_str(), read.skipped.is_none()), (10, "", true));
    let next = read.next.expect("given");
    assert_eq!((next.query.as_str(), next.own, next.tags, next.code), ("r", 1, None, None));
}

#[test]
fn constraints_and_extensions_reach_the_schema() {
    let schema = schemars::schema_for!(SearchArgs).to_value();
    let of = |name: &str| schema["properties"][name].clone();
    assert_eq!(schema["title"], "SearchArgs");
    assert_eq!(schema["description"], "What to search.");
    assert_eq!(of("query")["description"], "What to look for, in words.");
    assert_eq!((of("limit")["minimum"].clone(), of("limit")["maximum"].clone()), (json!(1), json!(50)));
    assert_eq!(of("limit")["default"], 10);
    assert_eq!((of("tags")["minItems"].clone(), of("tags")["maxItems"].clone()), (json!(1), json!(3)));
    assert_eq!(of("tags").get("minLength"), None);
    assert_eq!(of("order")["default"], "first-up");
    assert_eq!(of("order")["x-aliases"], json!(["dir"]));
    assert_eq!((of("maxAge")["maximum"].clone(), of("maxAge").get("minimum")), (json!(1.5), None));
    assert_eq!(of("pageSize")["default"], 25);
    assert_eq!(of("token")["x-secret"], true);
    assert_eq!(
        (of("exact")["x-coerce"].clone(), of("exact")["description"].clone()),
        (json!("exact"), json!("Said here."))
    );
    assert_eq!(
        (of("code")["pattern"].clone(), of("code")["minLength"].clone()),
        (json!("^[a-z]+$"), json!(2))
    );
    assert_eq!(
        (of("own")["description"].clone(), of("own")["x-aliases"].clone()),
        (json!("Said to schemars."), json!(["al"]))
    );
    assert_eq!(of("skipped"), Value::Null);
    assert_eq!(schema["required"], json!(["query", "exact"]));
    assert!(!schema.to_string().contains("Mirror"));
}

/// A shape.
#[derive(ToolArgs, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    /// Round.
    Circle {
        /// Radius.
        #[arg(range(0..=9))]
        r: u8,
    },
    Rect(Size),
    Nothing,
}
#[derive(ToolArgs, Debug)]
struct Size {
    w: u8,
    #[arg(default = Id(3))]
    id: Id,
}
#[derive(ToolArgs, Debug)]
#[serde(transparent)]
struct Id(u32);
#[derive(ToolArgs, Debug)]
#[serde(untagged)]
enum Either {
    Word(String),
    Number { n: i32 },
}

/// Nested values of all kinds.
#[tool]
async fn nested(
    shape: Shape,
    shapes: Vec<Shape>,
    by_name: HashMap<String, Size>,
    either: Either,
    units: BTreeMap<String, Unit>,
) -> String {
    format!("{shape:?} {shapes:?} {by_name:?} {either:?} {units:?}")
}

#[tokio::test]
async fn nested_types_work() {
    let sent = r#"{"shape": {"kind": "circle", "r": 1}, "shapes": [{"w": 2, "kind": "rect"}, {"kind": "nothing"}],
        "by_name": {"a": {"w": 1, "id": 2}}, "either": {"n": 5}, "units": {"x": "Fahrenheit"}}"#;
    assert_eq!(
        text(tools![nested], "nested", sent).await,
        "Circle { r: 1 } [Rect(Size { w: 2, id: Id(3) }), Nothing] {\"a\": Size { w: 1, id: Id(2) }} \
         Number { n: 5 } {\"x\": Fahrenheit}"
    );
}

/// Under its own name.
#[tool]
fn kept(#[arg(nested)] size: Size) -> u8 {
    size.w
}
/// Into the root.
#[tool]
fn merged(#[arg(flatten)] size: Size, more: u8) -> u32 {
    size.id.0 + u32::from(size.w + more)
}
/// An enum alone keeps its name.
#[tool]
fn draw(shape: Shape) -> String {
    format!("{shape:?}")
}
/// A newtype alone keeps its name.
#[tool]
fn by_id(id: Id) -> u32 {
    id.0
}

#[derive(ToolArgs)]
#[serde(transparent)]
struct Maybe(Option<u32>);
/// May be absent.
#[tool]
fn maybe(id: Maybe, other: Option<Id>) -> bool {
    id.0.is_none() && other.is_none()
}

#[derive(ToolArgs)]
#[serde(try_from = "Size")]
struct Small(u8);
impl TryFrom<Size> for Small {
    type Error = String;
    fn try_from(size: Size) -> Result<Self, String> {
        if size.w > 3 { Err("too wide".into()) } else { Ok(Small(size.w)) }
    }
}
type Alias = Small;
/// Read from another type.
#[tool]
fn small(size: Alias) -> u8 {
    size.0
}

#[tokio::test]
async fn where_a_parameter_stands() {
    assert_eq!(text(tools![kept], "kept", r#"{"size": {"w": 4}}"#).await, "4");
    assert_eq!(text(tools![merged], "merged", r#"{"w": 4, "more": 1}"#).await, "8");
    assert_eq!(text(tools![draw], "draw", r#"{"shape": {"kind": "nothing"}}"#).await, "Nothing");
    assert_eq!(text(tools![by_id], "by_id", r#"{"id": 4}"#).await, "4");
    assert_eq!(text(tools![small], "small", r#"{"w": 3}"#).await, "3");
    assert!(failure(tools![small], "small", r#"{"w": 9}"#).await.1.contains("too wide"));
}

#[tokio::test]
async fn a_transparent_option_stays_optional() {
    assert_eq!(text(tools![maybe], "maybe", "{}").await, "true");
    let required = definition(tools![maybe]).parameters()["required"].clone();
    assert!(required.is_null() || required == json!([]), "{required}");
}

/// Already serde and schemars.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
struct Foreign {
    a: u8,
}
/// Its own impls, and the whole object all the same.
#[derive(ToolArgs, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[arg(own_serde)]
struct Own {
    #[serde(rename = "b")]
    a: u8,
}
/// Foreign types go under their name.
#[tool]
fn foreign(f: Foreign) -> u8 {
    f.a
}
/// Own types are the object.
#[tool]
fn own(args: Own) -> u8 {
    args.a
}

#[tokio::test]
async fn types_with_their_own_derives() {
    assert_eq!(text(tools![foreign], "foreign", r#"{"f": {"A": 4}}"#).await, "4");
    assert_eq!(text(tools![own], "own", r#"{"b": 4}"#).await, "4");
}

/// Beside serde's own Serialize.
#[derive(ToolArgs, serde::Serialize, Clone)]
struct Both {
    #[arg(default = vec![1, 2], length(..=5))]
    list: Vec<u8>,
    #[arg(default = Unit::Fahrenheit)]
    unit: Unit,
    #[arg(default = Inner { a: 3 })]
    inner: Inner,
}
#[derive(ToolArgs, serde::Serialize, Clone)]
struct Inner {
    a: u8,
}
/// Gives back what it got.
#[tool]
fn both(both: Both) -> Both {
    both
}

#[tokio::test]
async fn a_type_can_go_both_ways() {
    let got = text(tools![both], "both", "{}").await;
    assert_eq!(got, r#"{"list":[1,2],"unit":"Fahrenheit","inner":{"a":3}}"#);
    let set = || -> ToolSet { tools![both] };
    assert_eq!(property(set(), "list")["default"], json!([1, 2]));
    assert_eq!(property(set(), "unit")["default"], "Fahrenheit");
    assert_eq!(property(set(), "inner")["default"], json!({"a": 3}));
}

/// Constraints on parameters, through references and options.
#[tool]
fn constrained(
    #[arg(range(1..=10))] id: Id,
    #[arg(length(2..=4), pattern = "^a")] word: &str,
    #[arg(length(3))] triple: &[u16],
    #[arg(range(-5..))] low: i64,
    #[arg(range(..=9_000_000_000))] big: u64,
    #[arg(secret, coerce = "lenient", alias = "pw", alias = "pass")] password: String,
) -> String {
    format!("{} {word} {triple:?} {low} {big} {password}", id.0)
}

#[test]
fn constraints_on_parameters() {
    let of = |name: &str| property(tools![constrained], name);
    assert_eq!((of("word")["minLength"].clone(), of("word")["pattern"].clone()), (json!(2), json!("^a")));
    assert_eq!((of("triple")["minItems"].clone(), of("triple")["maxItems"].clone()), (json!(3), json!(3)));
    assert_eq!(of("low")["minimum"], -5);
    assert_eq!(of("big")["maximum"], 9_000_000_000_u64);
    assert_eq!((of("id")["minimum"].clone(), of("id")["maximum"].clone()), (json!(1), json!(10)));
}

#[tokio::test]
async fn aliases_coercion_and_secrets_reach_the_engine() {
    let call = |password: &str| {
        format!(
            r#"{{"id": "7", "word": "ab", "triple": [1, "2", 3.0], "low": -5, "big": 1, "pw": {password}}}"#
        )
    };
    assert_eq!(text(tools![constrained], "constrained", &call("12")).await, "7 ab [1, 2, 3] -5 1 12");
    let (code, report) = failure(tools![constrained], "constrained", &call("[\"hush\"]")).await;
    assert_eq!(code, "invalid_arguments");
    assert!(report.contains("/pw") && report.contains("(hidden)") && !report.contains("hush"), "{report}");
}

#[tokio::test]
async fn all_mistakes_are_reported_at_once() {
    let sent = r#"{"id": 11, "word": "b", "triple": [1], "low": -6, "password": "x", "bigg": 1}"#;
    let (code, report) = failure(tools![constrained], "constrained", sent).await;
    assert_eq!(code, "invalid_arguments");
    for path in ["/id", "/word", "/triple", "/low", "/bigg", "/big:"] {
        assert!(report.contains(path), "{path}: {report}");
    }
}

const MOST: u8 = 20;

/// Names without an underscore, ends that are constants, defaults of the type.
#[tool]
fn edges(
    _unused: u8,
    _type: Option<u8>,
    #[arg(range(..=MOST))] below: u8,
    #[arg(range(0x1..=255u8))] hexadecimal: u8,
    #[arg(range(0..=MOST))] loose: f64,
    #[arg(default)] unit: Mode,
) -> String {
    format!("{below} {hexadecimal} {loose} {unit:?}")
}

#[derive(ToolArgs, Debug, Default)]
enum Mode {
    #[default]
    Slow,
    Fast,
}

#[tokio::test]
async fn edges_of_options() {
    let schema = definition(tools![edges]);
    let names: Vec<_> =
        schema.parameters()["properties"].as_object().expect("an object").keys().cloned().collect();
    assert_eq!(names, ["unused", "type", "below", "hexadecimal", "loose", "unit"]);
    assert_eq!(property(tools![edges], "below")["maximum"], 20);
    assert_eq!(property(tools![edges], "hexadecimal")["maximum"], 255);
    assert_eq!(property(tools![edges], "unit")["default"], "Slow");
    let sent = r#"{"unused": 1, "below": 20, "hexadecimal": 255, "loose": 1.5}"#;
    assert_eq!(text(tools![edges], "edges", sent).await, "20 255 1.5 Slow");
}

macro_rules! with_a_type_of_this_crate {
    ($name:ident, $inner:ty) => {
        #[derive(ToolArgs, ToolOutput, Debug)]
        struct $name {
            near: $crate::macro_arguments::Unit,
            far: Vec<$inner>,
            again: Option<Box<$name>>,
        }
    };
}
with_a_type_of_this_crate!(ByMacro, Unit);

#[test]
fn types_written_by_a_macro_are_fields() {
    let sent = json!({"near": "Celsius", "far": ["Fahrenheit"], "again": {"near": "Celsius", "far": [], "again": null}});
    let read: ByMacro = serde_json::from_value(sent.clone()).expect("fits");
    assert_eq!(serde_json::to_value(&read).expect("is JSON"), sent);
    assert_eq!(schemars::schema_for!(ByMacro).to_value()["required"], json!(["near", "far"]));
}

#[test]
fn a_skipped_field_is_what_its_type_or_the_whole_type_says() {
    #[derive(ToolArgs)]
    #[serde(default)]
    struct Filled {
        x: u8,
        #[arg(skip)]
        y: u8,
    }
    impl Default for Filled {
        fn default() -> Self {
            Self { x: 1, y: 7 }
        }
    }
    #[derive(ToolArgs)]
    struct Plain<T> {
        value: T,
        #[arg(skip)]
        list: Vec<u8>,
        #[arg(skip)]
        mark: std::marker::PhantomData<T>,
        #[arg(skip, default = 5)]
        five: u8,
    }
    let plan = |name| {
        agent::args::Plan::for_type::<Filled>(name, agent::args::PlanOptions::default()).expect("a plan")
    };
    let filled = plan("filled").parse::<Filled>("{}").expect("fits").value;
    assert_eq!((filled.x, filled.y), (1, 7));
    let plan = agent::args::Plan::for_type::<Plain<u8>>("plain", agent::args::PlanOptions::default())
        .expect("a plan");
    let read = plan.parse::<Plain<u8>>(r#"{"value": 3}"#).expect("fits").value;
    assert_eq!((read.value, read.list.len(), read.five), (3, 0, 5));
    let _ = read.mark;
    assert!(plan.parse::<Plain<u8>>(r#"{"value": 3, "list": [1]}"#).is_err());
}

/// Text and lists that are shared are data, not state.
#[tool]
fn shared_data(
    #[arg(length(1..=5))] text: std::sync::Arc<str>,
    #[arg(length(..=2))] list: Option<std::sync::Arc<[u8]>>,
) -> String {
    format!("{text} {list:?}")
}

#[tokio::test]
async fn shared_text_and_lists_are_arguments() {
    let set = || tools![shared_data];
    assert_eq!(text(set(), "shared_data", r#"{"text": "a", "list": [1, 2]}"#).await, "a Some([1, 2])");
    assert_eq!(property(set(), "text")["maxLength"], 5);
    let (_, report) = failure(set(), "shared_data", r#"{"text": "", "list": [1, 2, 3]}"#).await;
    assert!(report.contains("2 problems"), "{report}");
}

type Word<'a> = std::borrow::Cow<'a, str>;

/// An alias with a lifetime that owns its data.
#[tool]
fn word(word: Word<'_>) -> String {
    word.into_owned()
}

#[tokio::test]
async fn a_lifetime_alone_is_not_a_reference() {
    assert_eq!(text(tools![word], "word", r#"{"word": "a"}"#).await, "a");
}
