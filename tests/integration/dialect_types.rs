//! Thirty-odd types as tools have them, with arguments that fit.

use agent::args::{Plan, PlanOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) plan: Plan,
    /// Arguments that the plan takes.
    pub(super) accepted: Vec<Value>,
}

fn case<T: JsonSchema>(name: &'static str, accepted: impl IntoIterator<Item = Value>) -> Case {
    let plan = Plan::for_type::<T>(name, PlanOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    Case { name, plan, accepted: accepted.into_iter().collect() }
}

macro_rules! types {
    ($($(#[$attribute:meta])* $kind:ident $name:ident $body:tt)*) => {
        $(#[derive(Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "only their schemas are looked at; some have no fields")]
        $(#[$attribute])*
        $kind $name $body)*
    };
}

fn ten() -> u32 {
    10
}

fn pair() -> Vec<String> {
    vec!["a".into(), "b".into()]
}

types! {
    /// Scalars with bounds.
    struct Bounds {
        /// A share.
        #[schemars(range(min = 0.0, max = 1.0))]
        share: f64,
        #[schemars(range(min = 1, max = 50))]
        count: u32,
        small: i8,
        #[schemars(extend("exclusiveMinimum" = 0, "multipleOf" = 0.5))]
        weight: f64,
        single: f32,
        flag: bool,
        letter: char,
    }

    struct Limits {
        signed: i64,
        unsigned: u64,
        short: i32,
        #[schemars(range(min = -5))]
        above: i64,
        wide: u128,
    }

    struct Options {
        query: String,
        limit: Option<u32>,
        exact: Option<bool>,
        tags: Option<Vec<String>>,
        place: Option<Place>,
        level: Option<Level>,
    }

    /// A place.
    struct Place {
        lat: f64,
        lon: f64,
        name: Option<String>,
    }

    struct Nested {
        /// From where.
        from: Place,
        to: Place,
        via: Vec<Place>,
    }

    struct Lists {
        #[schemars(length(min = 1, max = 3))]
        names: Vec<String>,
        #[schemars(length(min = 2))]
        more: Vec<String>,
        matrix: Vec<Vec<f64>>,
        holes: Vec<Option<i32>>,
        fixed: [u8; 3],
    }

    struct Sets {
        ids: BTreeSet<u32>,
        words: Option<BTreeSet<String>>,
    }

    struct Tuples {
        point: (f64, f64),
        mixed: (String, u8, bool),
        pairs: Vec<(String, i64)>,
    }

    struct Maps {
        labels: BTreeMap<String, String>,
        counts: Option<BTreeMap<i32, u64>>,
    }

    /// How loud.
    #[serde(rename_all = "snake_case")]
    enum Level {
        /// Not at all.
        VeryLow,
        /// As usual.
        Normal,
        High,
    }

    struct Words {
        /// The level to set.
        level: Level,
        #[schemars(extend("enum" = [1, 2, 3]))]
        step: u8,
        #[schemars(extend("const" = true))]
        agreed: bool,
    }

    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Shape {
        /// Round.
        Circle { r: f64 },
        Rect { w: f64, h: f64, round: Option<f64> },
        Nothing,
    }

    struct InternallyTagged {
        shape: Shape,
        filled: Option<bool>,
        more: Vec<Shape>,
    }

    #[serde(tag = "t", content = "c")]
    enum Event {
        Open(String),
        Move { x: i32, y: i32 },
        Close,
    }

    struct AdjacentlyTagged {
        event: Event,
        before: Option<Event>,
    }

    enum Command {
        /// Stops.
        Stop,
        /// Goes some steps.
        Go(u32),
        Turn { degrees: f64, slowly: Option<bool> },
    }

    struct ExternallyTagged {
        command: Command,
        next: Option<Command>,
    }

    #[serde(untagged)]
    enum Target {
        Id(u64),
        Name(String),
        Both { id: u64, name: Option<String> },
        Many(Vec<u64>),
    }

    struct Untagged {
        target: Target,
        other: Option<Target>,
    }

    struct Page {
        offset: Option<u32>,
        #[serde(default = "ten")]
        size: u32,
    }

    struct FlattenStruct {
        query: String,
        #[serde(flatten)]
        page: Page,
    }

    struct FlattenEnum {
        title: String,
        #[serde(flatten)]
        shape: Shape,
    }

    struct FlattenMap {
        id: u32,
        #[serde(flatten)]
        others: BTreeMap<String, String>,
    }

    struct Tree {
        value: String,
        children: Vec<Tree>,
    }

    struct Recursive {
        /// The root of the tree.
        tree: Tree,
        /// Another one.
        spare: Option<Tree>,
    }

    struct Linked {
        value: i32,
        next: Option<Box<Linked>>,
    }

    struct Defaults {
        #[serde(default = "ten")]
        limit: u32,
        #[serde(default = "pair")]
        tags: Vec<String>,
        #[serde(default)]
        dry: bool,
        /// How to sort.
        #[serde(default)]
        order: String,
    }

    struct Formats {
        #[schemars(extend("format" = "date-time"))]
        at: String,
        #[schemars(extend("format" = "uri"))]
        link: Option<String>,
        #[schemars(extend("format" = "partial-date-time"))]
        local: String,
        /// Who.
        #[schemars(extend("format" = "uuid"))]
        user: String,
    }

    struct Patterns {
        #[schemars(regex(pattern = r"^[a-z]+$"), length(min = 2, max = 10))]
        slug: String,
        /// Digits somewhere.
        #[schemars(regex(pattern = r"\d{3}"))]
        code: Option<String>,
    }

    struct Aliases {
        #[schemars(extend("x-aliases" = ["max", "n"], "x-coerce" = "lenient"))]
        limit: u32,
        #[schemars(extend("x-secret" = true))]
        card: String,
    }

    #[serde(transparent)]
    struct Meters { value: f64 }

    struct Newtypes {
        height: Meters,
        depth: Option<Meters>,
    }

    struct AnyValue {
        payload: Value,
        extra: Option<Value>,
        list: Vec<Value>,
    }

    /// A tool that is one of several.
    #[serde(tag = "action", rename_all = "snake_case")]
    enum RootTagged {
        /// Makes a note.
        Create {
            /// Its text.
            text: String,
            tags: Option<Vec<String>>,
        },
        /// Finds notes.
        Find {
            /// What to look for.
            text: String,
            limit: Option<u32>,
        },
        Move { id: u64, to: Place },
        Clear,
    }

    #[serde(tag = "op", content = "value")]
    enum RootAdjacent {
        Set(i64),
        Rename(String),
        Reset,
    }

    /// One of these.
    enum RootExternal {
        /// By number.
        Number(i64),
        Place(Place),
        Maybe(Option<String>),
    }

    #[serde(untagged)]
    enum RootUntagged {
        ById { id: u64, deep: Option<bool> },
        ByName { name: String, city: Option<String> },
    }

    #[serde(tag = "node", rename_all = "snake_case")]
    enum RootRecursive {
        Leaf { value: f64 },
        Sum { left: Box<RootRecursive>, right: Box<RootRecursive> },
        Negated { of: Option<Box<RootRecursive>> },
    }

    /// Names that are keywords.
    struct Keywords {
        title: String,
        format: Option<String>,
        #[serde(rename = "type")]
        kind: String,
        properties: Option<Vec<String>>,
        #[serde(rename = "$ref")]
        reference: Option<String>,
        required: bool,
        #[serde(rename = "enum")]
        members: Option<Level>,
        #[serde(rename = "a/b~c")]
        pointer: Option<u8>,
        description: String,
        #[serde(rename = "additionalProperties")]
        additional: Option<u8>,
        default: Option<u8>,
    }

    struct Nothing {}

    struct Documented {
        /// An old one.
        #[schemars(extend("deprecated" = true, "examples" = ["a", "b"]))]
        name: Option<String>,
        /// First paragraph.
        ///
        /// Second paragraph.
        #[schemars(example = 5, range(min = 1))]
        count: u8,
    }
}

type WholeMap = BTreeMap<String, i64>;

#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn all() -> Vec<Case> {
    let place = || json!({"lat": 1.5, "lon": 2, "name": "x"});
    let leaf = || json!({"value": "b", "children": []});
    vec![
        case::<Bounds>(
            "bounds",
            [
                json!({"share": 0.5, "count": "7", "small": -3, "weight": 1.5, "single": 1, "flag": "true", "letter": "ä"}),
            ],
        ),
        case::<Limits>(
            "limits",
            [json!({"signed": i64::MIN, "unsigned": u64::MAX, "short": -1, "above": -5, "wide": 7})],
        ),
        case::<Options>(
            "options",
            [
                json!({"query": "q"}),
                json!({"query": "q", "limit": 5, "exact": true, "tags": ["a", 1], "place": place(), "level": "normal"}),
            ],
        ),
        case::<Nested>("nested", [json!({"from": place(), "to": {"lat": 0, "lon": 0}, "via": [place()]})]),
        case::<Lists>(
            "lists",
            [
                json!({"names": ["a"], "more": ["a", "b"], "matrix": [[1, 2.5], []], "holes": [1, null], "fixed": [1, 2, 3]}),
            ],
        ),
        case::<Sets>("sets", [json!({"ids": [1, 2]}), json!({"ids": [], "words": ["a", "b"]})]),
        case::<Tuples>(
            "tuples",
            [json!({"point": [1, 2.5], "mixed": ["a", 1, true], "pairs": [["a", 1], ["b", "2"]]})],
        ),
        case::<Maps>(
            "maps",
            [json!({"labels": {"a": "b"}, "counts": {"-1": 5, "7": 0}}), json!({"labels": {}})],
        ),
        case::<WholeMap>("whole_map", [json!({"a": 1})]),
        case::<Words>("words", [json!({"level": "very_low", "step": 2, "agreed": true})]),
        case::<InternallyTagged>(
            "internally_tagged",
            [
                json!({"shape": {"kind": "circle", "r": 1}, "more": [{"kind": "nothing"}, {"kind": "rect", "w": 1, "h": 2}]}),
            ],
        ),
        case::<AdjacentlyTagged>(
            "adjacently_tagged",
            [
                json!({"event": {"t": "Open", "c": "x"}, "before": {"t": "Move", "c": {"x": 1, "y": 2}}}),
                json!({"event": {"t": "Close"}}),
            ],
        ),
        case::<ExternallyTagged>(
            "externally_tagged",
            [json!({"command": "Stop", "next": {"Go": 5}}), json!({"command": {"Turn": {"degrees": 5}}})],
        ),
        case::<Untagged>(
            "untagged",
            [json!({"target": 5, "other": "x"}), json!({"target": {"id": 5}, "other": [1, 2]})],
        ),
        case::<FlattenStruct>(
            "flatten_struct",
            [json!({"query": "q", "size": 5}), json!({"query": "q", "offset": 5})],
        ),
        case::<FlattenEnum>(
            "flatten_enum",
            [
                json!({"title": "t", "kind": "circle", "r": 5}),
                json!({"title": "t", "kind": "nothing"}),
                json!({"title": "t", "kind": "rect", "w": 1, "h": 2, "round": 3}),
            ],
        ),
        case::<FlattenMap>("flatten_map", [json!({"id": 5, "other": "x"})]),
        case::<Recursive>(
            "recursive",
            [json!({"tree": {"value": "a", "children": [leaf()]}, "spare": leaf()})],
        ),
        case::<Tree>("recursive_root", [json!({"value": "a", "children": [leaf()]})]),
        case::<Linked>("linked", [json!({"value": 1, "next": {"value": 2, "next": {"value": 3}}})]),
        case::<Defaults>(
            "defaults",
            [json!({}), json!({"limit": 5, "tags": ["x"], "dry": true, "order": "up"})],
        ),
        case::<Formats>(
            "formats",
            [
                json!({"at": "2026-11-21T10:00:00Z", "local": "2026-11-21T10:00:00", "user": "67e55044-10b1-426f-9247-bb680e5fe0c8", "link": "https://a.b"}),
            ],
        ),
        case::<Patterns>("patterns", [json!({"slug": "abc"}), json!({"slug": "abc", "code": "x123"})]),
        case::<Aliases>("aliases", [json!({"limit": 5, "card": "x"})]),
        case::<Newtypes>("newtypes", [json!({"height": 1.5}), json!({"height": 1, "depth": 2})]),
        case::<AnyValue>(
            "any_value",
            [
                json!({"payload": {"a": [null]}, "list": [1, "x"]}),
                json!({"payload": null, "extra": 5, "list": []}),
            ],
        ),
        case::<RootTagged>(
            "root_tagged",
            [
                json!({"action": "create", "text": "t"}),
                json!({"action": "find", "text": "t", "limit": 5}),
                json!({"action": "move", "id": 5, "to": place()}),
                json!({"action": "clear"}),
            ],
        ),
        case::<RootAdjacent>(
            "root_adjacent",
            [json!({"op": "Set", "value": 5}), json!({"op": "Rename", "value": "x"}), json!({"op": "Reset"})],
        ),
        case::<RootExternal>(
            "root_external",
            [json!({"Number": 5}), json!({"Place": place()}), json!({"Maybe": null}), json!({"Maybe": "x"})],
        ),
        case::<RootUntagged>(
            "root_untagged",
            [json!({"id": 5}), json!({"id": 5, "deep": true}), json!({"name": "n", "city": "c"})],
        ),
        case::<RootRecursive>(
            "root_recursive",
            [
                json!({"node": "sum", "left": {"node": "leaf", "value": 1}, "right": {"node": "negated", "of": {"node": "leaf", "value": 1}}}),
            ],
        ),
        case::<Keywords>(
            "keywords",
            [
                json!({"title": "t", "type": "x", "required": true, "description": "d", "format": "f", "a/b~c": 5, "$ref": "r"}),
            ],
        ),
        case::<Nothing>("nothing", [json!({})]),
        case::<Documented>("documented", [json!({"count": 1}), json!({"count": 1, "name": "x"})]),
    ]
}
