//! The attributes of serde on variants: a plan accepts the words that serde reads, and shows the model one word for each variant.

#![expect(dead_code, reason = "what is read is looked at as a whole, by `Debug`")]

use crate::macro_support::{definition, text};
use agent::args::{CoercionPolicy, Plan, PlanOptions};
use agent::testing::assert_agrees;
use agent::{RunTool, ToolArgs, ToolContext, tool, tools};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;

#[derive(ToolArgs, Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(clippy::enum_variant_names, reason = "a name from practice")]
enum Trip {
    OneWay,
    #[serde(alias = "RT", alias = "return")]
    RoundTrip,
    /// Several flights.
    #[arg(alias = "multi")]
    MultiCity,
}

#[derive(ToolArgs, Debug, Clone, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Level {
    Low,
    #[serde(alias = "max")]
    High,
    /// Never shown.
    #[serde(other)]
    Unknown,
}

#[derive(ToolArgs, Debug, PartialEq)]
enum External {
    #[serde(alias = "stop")]
    Halt,
    #[serde(alias = "go")]
    Move { steps: u8 },
    #[serde(alias = "say", alias = "tell")]
    Speak(String),
    #[serde(alias = "at")]
    Place(i8, i8),
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Internal {
    #[serde(alias = "rm")]
    Delete { path: String },
    #[serde(alias = "ls")]
    List,
    #[serde(alias = "mv")]
    Rename(Renaming),
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Renaming {
    from: String,
    to: String,
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    #[serde(alias = "n")]
    Number(i32),
    #[serde(alias = "p")]
    Pair { a: u8 },
    #[serde(alias = "z")]
    Zero,
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum OpenInternal {
    Mail {
        to: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(tag = "t", content = "c")]
enum OpenAdjacent {
    Number(i32),
    #[serde(other)]
    Unknown,
}

#[derive(ToolArgs, Debug, PartialEq)]
enum OpenExternal {
    Move {
        steps: u8,
    },
    Halt,
    #[serde(other)]
    Unknown,
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Renamed {
    #[serde(rename = "first")]
    One {
        a_field: u8,
    },
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    TwoParts {
        b_field: u8,
    },
    ThreeParts {
        c_field: u8,
    },
}

#[derive(ToolArgs, Debug, PartialEq)]
enum Skipping {
    Seen(u8),
    #[serde(skip)]
    Hidden(Internals),
    #[serde(skip_deserializing)]
    Past,
    #[serde(skip_serializing)]
    Sent,
}

/// Neither serde nor schemars knows it.
#[derive(Debug, PartialEq)]
struct Internals;

#[derive(ToolArgs, Debug, PartialEq)]
enum PartlyUntagged {
    #[serde(alias = "n")]
    Named { x: u8 },
    #[serde(alias = "u")]
    Unit,
    #[serde(untagged)]
    Bare(u32),
    #[serde(untagged)]
    Either { y: u8 },
}

#[derive(ToolArgs, Debug, PartialEq)]
enum WithFunctions {
    #[serde(deserialize_with = "hex")]
    #[schemars(with = "String")]
    Hex(u32),
    #[serde(with = "double")]
    #[schemars(with = "u32")]
    Double(u32),
}

fn hex<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = <String as serde::Deserialize>::deserialize(deserializer)?;
    u32::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
}

mod double {
    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        Ok(<u32 as serde::Deserialize>::deserialize(deserializer)? * 2)
    }
}

/// A field of the type, as the arguments of a tool.
#[derive(ToolArgs, Debug, PartialEq)]
struct Holds<T: Debug> {
    v: T,
}

/// Compares the plan with serde: what is accepted is read to the same value.
fn agrees<T: DeserializeOwned + JsonSchema + Debug + PartialEq>(sent: &[Value]) {
    let plan = Plan::for_type::<Holds<T>>("holds", PlanOptions::default().coercion(CoercionPolicy::exact()))
        .unwrap();
    for value in sent {
        let text = json!({"v": value}).to_string();
        let by_serde = serde_json::from_str::<Holds<T>>(&text).map_err(|error| error.to_string());
        match (plan.parse::<Holds<T>>(&text), by_serde) {
            (Ok(parsed), Ok(read)) => {
                assert_eq!(parsed.value, read, "{value}");
                assert!(parsed.coercions().is_empty(), "{value}: {:?}", parsed.coercions());
            }
            (Err(_), Err(_)) => {}
            (plan, serde) => panic!("{value}: the plan says {plan:?}, serde {serde:?}"),
        }
    }
}

#[test]
fn plans_accept_the_words_that_serde_accepts() {
    agrees::<Trip>(&[
        json!("ONE_WAY"),
        json!("ROUND_TRIP"),
        json!("RT"),
        json!("return"),
        json!("MULTI_CITY"),
        json!("multi"),
        json!("rt"),
        json!("RoundTrip"),
        json!(""),
        json!(1),
    ]);
    agrees::<Vec<Trip>>(&[json!(["RT", "ONE_WAY", "multi"]), json!(["RT", "R"])]);
    agrees::<BTreeMap<String, Trip>>(&[json!({"a": "RT", "b": "return"}), json!({"a": "x"})]);
    agrees::<Option<Trip>>(&[json!("RT"), json!("x")]);
    agrees::<Level>(&[
        json!("low"),
        json!("high"),
        json!("max"),
        json!("unknown"),
        json!("Low"),
        json!(""),
        json!(3),
    ]);
    agrees::<Vec<Level>>(&[json!(["low", "x", "unknown"])]);
    agrees::<External>(&[
        json!("Halt"),
        json!("stop"),
        json!({"Move": {"steps": 1}}),
        json!({"go": {"steps": 1}}),
        json!({"go": {"steps": "x"}}),
        json!({"tell": "a"}),
        json!({"say": "a"}),
        json!({"at": [1, 2]}),
        json!({"at": [1]}),
        json!("go"),
        json!({"x": 1}),
    ]);
    agrees::<Internal>(&[
        json!({"kind": "rm", "path": "a"}),
        json!({"path": "a", "kind": "delete"}),
        json!({"kind": "ls"}),
        json!({"kind": "mv", "from": "a", "to": "b"}),
        json!({"kind": "RM", "path": "a"}),
        json!({"kind": "mv", "from": "a"}),
    ]);
    agrees::<Adjacent>(&[
        json!({"t": "n", "c": 4}),
        json!({"c": {"a": 1}, "t": "p"}),
        json!({"t": "z"}),
        json!({"t": "n"}),
        json!({"t": "N", "c": 4}),
    ]);
}

#[test]
fn a_variant_for_other_words_takes_them_all() {
    agrees::<OpenInternal>(&[
        json!({"kind": "mail", "to": "a"}),
        json!({"kind": "mail"}),
        json!({"kind": "fax", "number": 3}),
        json!({"kind": "unknown"}),
        json!({"to": "a"}),
        json!({"kind": 3}),
    ]);
    agrees::<OpenAdjacent>(&[
        json!({"t": "Number", "c": 1}),
        json!({"t": "x"}),
        json!({"t": "Number"}),
        json!({}),
    ]);
    agrees::<OpenExternal>(&[
        json!("Halt"),
        json!("x"),
        json!({"Move": {"steps": 1}}),
        json!("Unknown"),
        json!(4),
    ]);
    assert_eq!(schema_of::<Level>(), json!({"type": "string", "enum": ["low", "high"]}));
    let shown = schema_of::<OpenInternal>().to_string();
    assert!(shown.contains("mail") && !shown.contains("unknown"), "{shown}");
    let shown = schema_of::<OpenExternal>().to_string();
    assert!(shown.contains("Halt") && !shown.contains("Unknown"), "{shown}");
}

#[test]
fn other_attributes_of_variants_mean_what_serde_means() {
    agrees::<Renamed>(&[
        json!({"first": {"aField": 1}}),
        json!({"two-parts": {"B_FIELD": 1}}),
        json!({"three-parts": {"cField": 1}}),
        json!({"one": {"aField": 1}}),
        json!({"two-parts": {"bField": 1}}),
    ]);
    agrees::<Skipping>(&[
        json!({"Seen": 1}),
        json!({"Hidden": null}),
        json!("Hidden"),
        json!("Past"),
        json!("Sent"),
    ]);
    agrees::<PartlyUntagged>(&[
        json!({"Named": {"x": 1}}),
        json!({"n": {"x": 1}}),
        json!("Unit"),
        json!("u"),
        json!(7),
        json!({"y": 2}),
        json!("x"),
    ]);
    agrees::<WithFunctions>(&[
        json!({"Hex": "ff"}),
        json!({"Hex": 3}),
        json!({"Double": 4}),
        json!({"Double": "x"}),
    ]);
}

fn schema_of<T: JsonSchema>() -> Value {
    let plan = Plan::for_type::<HoldsAny<T>>("holds", PlanOptions::default()).unwrap();
    plan.schema()["properties"]["v"].clone()
}

#[derive(JsonSchema)]
struct HoldsAny<T> {
    v: T,
}

#[test]
fn the_model_sees_one_word_for_each_variant() {
    let shown = schema_of::<Trip>();
    assert_eq!(shown["enum"], json!(["ONE_WAY", "ROUND_TRIP", "MULTI_CITY"]));
    for shown in [shown, schema_of::<External>(), schema_of::<Internal>(), schema_of::<Adjacent>()] {
        let text = shown.to_string();
        assert!(
            !["\"RT\"", "stop", "\"rm\"", "\"n\"", "x-"].iter().any(|word| text.contains(word)),
            "{text}"
        );
    }
}

#[test]
fn hooks_and_records_see_the_word_of_the_variant() {
    let canonical = |value: Value| {
        let plan = Plan::for_type::<Canonical>("canonical", PlanOptions::default()).unwrap();
        let parsed = plan.parse::<Value>(&value.to_string()).unwrap();
        assert!(parsed.coercions().is_empty(), "{:?}", parsed.coercions());
        plan.parse::<Canonical>(&value.to_string()).unwrap();
        parsed.value
    };
    let spelled = json!({
        "trip": "RT", "external": {"go": {"steps": 1}}, "unit": "stop", "internal": {"kind": "rm", "path": "a"},
        "adjacent": {"t": "z"}, "level": "max", "other": "extreme", "open": {"kind": "fax", "number": 3},
    });
    let plain = json!({
        "trip": "ROUND_TRIP", "external": {"Move": {"steps": 1}}, "unit": "Halt",
        "internal": {"kind": "delete", "path": "a"}, "adjacent": {"t": "Zero"}, "level": "high", "other": "extreme",
        "open": {"kind": "fax", "number": 3},
    });
    assert_eq!(canonical(spelled), plain);
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(tag = "kind")]
enum Generic<T> {
    #[serde(alias = "one")]
    Single { value: T },
    #[serde(other)]
    Rest,
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(transparent)]
struct Wrapped(Trip);

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(from = "Trip")]
struct Made {
    is_round: bool,
}

impl From<Trip> for Made {
    fn from(trip: Trip) -> Self {
        Self { is_round: trip == Trip::RoundTrip }
    }
}

#[test]
fn words_pass_through_generic_transparent_and_converted_types() {
    agrees::<Generic<u8>>(&[
        json!({"kind": "one", "value": 1}),
        json!({"kind": "Single", "value": 1}),
        json!({"kind": "one", "value": "x"}),
        json!({"kind": "x"}),
    ]);
    agrees::<Wrapped>(&[json!("RT"), json!("ONE_WAY"), json!("x")]);
    agrees::<Made>(&[json!("RT"), json!("ONE_WAY"), json!("x")]);
    agrees::<Vec<Option<Wrapped>>>(&[json!(["RT", null]), json!(["x"])]);
}

#[derive(ToolArgs, Debug)]
struct Canonical {
    trip: Trip,
    external: External,
    unit: External,
    internal: Internal,
    adjacent: Adjacent,
    level: Level,
    other: Level,
    open: OpenInternal,
}

#[test]
fn lenient_rules_fold_aliases_too() {
    let plan =
        Plan::for_type::<Holds<Trip>>("trip", PlanOptions::default().coercion(CoercionPolicy::lenient()))
            .unwrap();
    let parsed = plan.parse::<Holds<Trip>>(r#"{"v": "Return"}"#).unwrap();
    assert_eq!(parsed.value.v, Trip::RoundTrip);
    assert_eq!(parsed.coercions()[0].to, json!("ROUND_TRIP"));
    let open =
        Plan::for_type::<Holds<Level>>("open", PlanOptions::default().coercion(CoercionPolicy::lenient()))
            .unwrap();
    assert_eq!(open.parse::<Holds<Level>>(r#"{"v": "HIGH"}"#).unwrap().value.v, Level::High);
    assert_eq!(open.parse::<Holds<Level>>(r#"{"v": "higher"}"#).unwrap().value.v, Level::Unknown);
}

#[test]
fn types_with_other_words_agree_with_their_schemas() {
    assert_agrees::<Holds<Trip>>();
    assert_agrees::<Holds<External>>();
    assert_agrees::<Holds<Internal>>();
    assert_agrees::<Holds<Adjacent>>();
    assert_agrees::<Internal>();
    assert_agrees::<Holds<Level>>();
    assert_agrees::<Holds<OpenInternal>>();
    assert_agrees::<Holds<OpenExternal>>();
}

/// Works on files.
#[tool]
#[derive(Debug)]
enum Files {
    /// Deletes a file.
    #[serde(alias = "rm")]
    Delete { path: String },
    /// Lists them.
    #[arg(alias = "ls")]
    List,
}

impl RunTool for Files {
    type Output = String;
    async fn run(self, _: &ToolContext) -> String {
        format!("{self:?}")
    }
}

#[tokio::test]
async fn actions_of_an_enum_tool_have_aliases() {
    let deleted = text(tools![Files], "files", r#"{"action": "rm", "path": "a"}"#).await;
    assert_eq!(deleted, "Delete { path: \"a\" }");
    assert_eq!(text(tools![Files], "files", r#"{"action": "ls"}"#).await, "List");
    let shown = definition(tools![Files]).parameters().to_string();
    assert!(!shown.contains("\"rm\"") && !shown.contains("\"ls\""), "{shown}");
}
