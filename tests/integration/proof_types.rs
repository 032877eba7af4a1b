//! The proof of `agent::testing` on types of every shape, and that it notices what is wrong.

use agent::args::{CoercionPolicy, Plan, PlanOptions};
use agent::testing::{assert_agrees, verify_call, verify_plan};
use agent::{ToolArgs, json};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Every law, on values made from the schema. `PROPTEST_CASES` makes it more values, for long runs.
#[track_caller]
fn agrees<T: DeserializeOwned + JsonSchema>() {
    let long = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<usize>().ok());
    let plan = Plan::for_type::<T>(&T::schema_name(), PlanOptions::default()).unwrap();
    verify_plan::<T>(&plan, long.unwrap_or(14), 0).unwrap();
}

macro_rules! agree {
    ($($test:ident: $type:ty),* $(,)?) => { $(#[test] fn $test() { agrees::<$type>(); })* };
}

agree! {
    scalars: Scalars, bounds: Bounds, lists: Lists, maps: Maps, tagged: Tags, root_enum: Command, flattened: Flattened,
    recursive: Tree, aliases_and_defaults: Named, untagged: Untagged, options: Options, own_policies: Own,
    refused_by_the_type: Refusing, nothing: Nothing, wrappers: Wrappers, anything: Anything,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Scalars {
    small: u8,
    signed: i16,
    wide: Option<u64>,
    far: Option<i64>,
    ratio: f32,
    exact: Option<f64>,
    yes: bool,
    text: String,
    letter: Option<char>,
    unit: (),
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Bounds {
    #[arg(range(-5..=50))]
    bounded: i32,
    #[arg(range(0.5..=2.5))]
    share: f64,
    #[arg(length(1..=8))]
    text: String,
    #[arg(length(2..=3))]
    list: Vec<u8>,
    #[arg(pattern = r"^[a-z]{2,5}-\d+$")]
    code: Option<String>,
    #[arg(secret)]
    pin: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Lists {
    items: Vec<i64>,
    names: Option<Vec<String>>,
    set: BTreeSet<u16>,
    words: Option<BTreeSet<Word>>,
    pair: (i8, String),
    three: Option<[bool; 3]>,
    nested: Option<Vec<Vec<f64>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    Low,
    VeryHigh,
    #[serde(rename = "In Between")]
    Between,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Maps {
    by_name: BTreeMap<String, f64>,
    by_number: Option<HashMap<i32, Word>>,
    by_small: Option<BTreeMap<u8, String>>,
    of_lists: Option<BTreeMap<String, Vec<u8>>>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Tags {
    shape: Shape,
    step: Step,
    event: Option<Event>,
    more: Vec<Shape>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Shape {
    Circle { r: f64 },
    Rect { w: u32, h: Option<u32> },
    Unit,
    Named(Place),
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Step {
    Stop,
    Walk(u32),
    Turn { degrees: i16, left: bool },
    Both(u8, String),
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Event {
    Key(char),
    Move { x: i32, y: i32 },
    Quit,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Place {
    city: String,
    floor: Option<i8>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Command {
    Add { a: i64, b: i64 },
    SayText { text: String, times: Option<u8> },
    Nothing,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Flattened {
    id: u32,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    shape: Shape,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Tree {
    v: i32,
    #[serde(default)]
    children: Vec<Tree>,
    next: Option<Box<Tree>>,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Named {
    #[serde(rename = "maxResults", alias = "limit")]
    max_results: u32,
    #[arg(default = 10)]
    per_page: u8,
    #[arg(default)]
    tags: Vec<String>,
    #[serde(skip)]
    hidden: u8,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Untagged {
    value: Either,
    list: Vec<Either>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Either {
    Number(i64),
    Flag(bool),
    Named { name: String, place: Option<Place> },
    Words(Vec<String>),
    Text(String),
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Options {
    one: Option<u8>,
    #[expect(clippy::option_option, reason = "what users write, too")]
    two: Option<Option<String>>,
    word: Option<Word>,
    inner: Option<Place>,
    items: Option<Vec<Option<i32>>>,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Own {
    #[arg(coerce = "lenient")]
    words: Vec<String>,
    #[arg(coerce = "exact")]
    count: u32,
    normal: Option<bool>,
}

/// Its own check says more than its schema.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Refusing {
    even: Even,
    other: Option<u8>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "i64")]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Even(i64);

impl TryFrom<i64> for Even {
    type Error = String;
    fn try_from(v: i64) -> Result<Even, String> {
        if v % 2 == 0 { Ok(Even(v)) } else { Err(format!("{v} is odd")) }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Wrappers {
    boxed: Box<str>,
    shared: Box<Place>,
    only: std::num::NonZeroU8,
    signed: std::num::NonZeroI16,
    id: Id,
    time: Option<std::time::Duration>,
    path: Option<std::path::PathBuf>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Id(u32);

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Anything {
    any: agent::Value,
    #[serde(flatten)]
    rest: BTreeMap<String, agent::Value>,
}

/// The schema says a list, serde wants text.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Lying {
    #[schemars(with = "Vec<String>")]
    tags: String,
}

/// Serde takes nothing that the schema takes.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Never {
    never: Nobody,
}

#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
struct Nobody;

impl TryFrom<u8> for Nobody {
    type Error = &'static str;
    fn try_from(_: u8) -> Result<Nobody, &'static str> {
        Err("never")
    }
}

#[test]
fn what_is_wrong_is_noticed() {
    let nothing = "some value must fit the schema";
    let text = *std::panic::catch_unwind(assert_agrees::<Lying>).unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains(&format!("`Lying`, exact, unknown keys deny: {nothing}")), "{text}");
    assert!(text.contains("sent: {\"tags\":[") && text.contains("serde: invalid type: sequence"), "{text}");
    let never = Plan::for_type::<Never>("t", PlanOptions::default()).unwrap();
    assert!(verify_plan::<Never>(&never, 200, 0).unwrap_err().contains(nothing));
    let empty = json!({"type": "object", "properties": {"v": {"type": "integer", "minimum": 5, "maximum": 4}}, "required": ["v"]});
    let empty = Plan::compile("t", &empty, PlanOptions::default()).unwrap();
    assert!(verify_plan::<agent::Value>(&empty, 200, 0).unwrap_err().contains(nothing));
    // A plan of another type than the one that is read.
    let plan =
        Plan::for_type::<Place>("t", PlanOptions::default().coercion(CoercionPolicy::exact())).unwrap();
    let found = verify_call::<Scalars>(&plan, r#"{"city":"Rome"}"#);
    assert!(found.is_ok(), "serde refuses it as well");
    let found = verify_call::<Nothing>(&plan, r#"{"city":"Rome"}"#);
    assert!(found.is_ok(), "{found:?}");
}
