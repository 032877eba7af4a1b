//! What the fuzz targets share: argument types and the plans made from them.

use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Scalars with bounds, text with lengths and patterns, things that may be left out.
#[derive(Deserialize, JsonSchema)]
pub struct Scalars {
    pub small: u8,
    #[schemars(range(min = -5, max = 50))]
    pub bounded: i32,
    pub wide: Option<u64>,
    pub huge: Option<i128>,
    pub ratio: f32,
    pub exact: Option<f64>,
    pub yes: bool,
    #[schemars(length(min = 1, max = 8))]
    pub text: String,
    #[schemars(regex(pattern = r"^[a-z]{2,5}-\d+$"))]
    pub code: Option<String>,
    pub letter: Option<char>,
    pub level: Option<Level>,
    #[schemars(extend("x-secret" = true))]
    pub pin: Option<u32>,
}

/// A closed set.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Low,
    VeryHigh,
    Other,
}

/// Lists, sets, tuples, maps.
#[derive(Deserialize, JsonSchema)]
pub struct Lists {
    pub items: Vec<i64>,
    pub names: Option<Vec<String>>,
    pub set: Option<BTreeSet<u16>>,
    pub pair: Option<(i8, String)>,
    pub three: Option<[bool; 3]>,
    pub by_name: Option<BTreeMap<String, f64>>,
    pub by_number: Option<BTreeMap<i32, Level>>,
    #[serde(default)]
    pub any: serde_json::Value,
}

/// Every way to tag, and recursion.
#[derive(Deserialize, JsonSchema)]
pub struct Choices {
    pub shape: Option<Shape>,
    pub step: Option<Step>,
    pub event: Option<Event>,
    pub either: Option<Either>,
    pub tree: Option<Tree>,
    #[serde(flatten)]
    pub place: Place,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Shape {
    Circle { r: f64 },
    Rect { w: u32, h: u32 },
}

#[derive(Deserialize, JsonSchema)]
pub enum Step {
    Stop,
    Walk(u32),
    Turn { degrees: i16, left: bool },
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
pub enum Event {
    Key(char),
    Move { x: i32, y: i32 },
    Quit,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Either {
    Number(i64),
    Flag(bool),
    List(Vec<Either>),
    Named { name: String },
    Text(String),
}

#[derive(Deserialize, JsonSchema)]
pub struct Tree {
    pub v: i32,
    #[serde(default)]
    pub children: Vec<Tree>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Place {
    pub city: String,
    pub floor: Option<i8>,
}

/// The whole arguments are one of several objects.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Command {
    Add { a: i64, b: i64 },
    Say { text: String, times: Option<u8> },
    Nothing,
}

/// The policies that matter, each with one treatment of unknown keys.
pub fn options() -> [PlanOptions; 5] {
    let options = PlanOptions::default();
    [
        options.clone().coercion(CoercionPolicy::exact()),
        options.clone().coercion(CoercionPolicy::strict()),
        options.clone().coercion(CoercionPolicy::lenient()),
        options.clone().coercion(CoercionPolicy::lenient()).unknown(UnknownKeys::Strip),
        options.coercion(CoercionPolicy::strict()).unknown(UnknownKeys::Keep),
    ]
}

/// One plan of `T` for each of the [`options`].
pub fn plans<T: JsonSchema>(name: &str) -> Vec<Plan> {
    let plan = |options| Plan::for_type::<T>(name, options).unwrap_or_else(|error| panic!("{error}"));
    options().map(plan).into()
}
