//! Structs, enums, maps, sets, tuples, recursion, types that serde attributes change.

use super::{W, bad, ok, parse, plan, w};
use agent::args::{CoercionPolicy, PlanOptions, UnknownKeys};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
pub(super) struct Inner {
    pub(super) n: i64,
    #[serde(default)]
    pub(super) tags: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
pub(super) struct Outer {
    id: u32,
    name: String,
    inner: Inner,
    list: Vec<Inner>,
    opt: Option<Inner>,
}

#[test]
fn every_mistake_at_once() {
    bad::<Outer>(
        r#"{"nmae":"x","inner":{"n":"abc","extra":1},"list":[{"n":1},{"tags":[true]}],"opt":{}}"#,
        &[
            ("/nmae", "unknown"),
            ("/id", "missing"),
            ("/name", "missing"),
            ("/inner/extra", "unknown"),
            ("/inner/n", "type"),
            ("/list/1/n", "missing"),
            ("/list/1/tags/0", "type"),
            ("/opt/n", "missing"),
        ],
    );
    // serde takes a struct from an array; the schema does not offer it.
    bad::<Inner>("[1,[]]", &[("", "type")]);
    bad::<W<Inner>>(r#"{"v":[1,[]]}"#, &[("/v", "type")]);
    bad::<Inner>(r#"{"n":1,"n":2}"#, &[("/n", "duplicate")]);
    bad::<Inner>(r#"{"n":1,"zz":2,"zz":3}"#, &[("/zz", "unknown")]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { r: i64 },
    Rect(Rect),
    Nothing,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Rect {
    w: i64,
    h: Option<f64>,
}

#[test]
fn internally_tagged() {
    ok(r#"{"v":{"kind":"circle","r":"3"}}"#, w(Shape::Circle { r: 3 }));
    // The tag stands last; the coercion happens through serde's buffer.
    ok(r#"{"v":{"r":3.0,"kind":"circle"}}"#, w(Shape::Circle { r: 3 }));
    ok(r#"{"v":{"kind":"rect","w":"4","h":"2"}}"#, w(Shape::Rect(Rect { w: 4, h: Some(2.0) })));
    ok(r#"{"v":{"kind":"rect","w":"4","h":null}}"#, w(Shape::Rect(Rect { w: 4, h: None })));
    ok(r#"{"v":{"kind":"nothing"}}"#, w(Shape::Nothing));
    bad::<W<Shape>>(r#"{"v":{"kind":"cirle","r":3}}"#, &[("/v/kind", "enum")]);
    bad::<W<Shape>>(r#"{"v":{"kind":7,"r":3}}"#, &[("/v/kind", "enum")]);
    bad::<W<Shape>>(r#"{"v":{"r":3}}"#, &[("/v/kind", "missing")]);
    bad::<W<Shape>>(r#"{"v":{"kind":"circle","r":3,"kind":"circle"}}"#, &[("/v/kind", "duplicate")]);
    bad::<W<Shape>>(r#"{"v":{"kind":"rect","w":"x","z":1}}"#, &[("/v/z", "unknown"), ("/v/w", "type")]);
    bad::<W<Shape>>(r#"{"v":"circle"}"#, &[("/v", "type")]);
    // As the arguments themselves.
    ok(r#"{"kind":"circle","r":"3"}"#, Shape::Circle { r: 3 });
    bad::<Shape>(r#"{"kind":"circle","r":"x"}"#, &[("/r", "type")]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A(i32),
    B { x: bool },
    C,
}

#[test]
fn adjacently_tagged() {
    ok(r#"{"v":{"t":"A","c":"1"}}"#, w(Adjacent::A(1)));
    ok(r#"{"v":{"c":{"x":"true"},"t":"B"}}"#, w(Adjacent::B { x: true }));
    ok(r#"{"v":{"t":"C"}}"#, w(Adjacent::C));
    bad::<W<Adjacent>>(r#"{"v":{"t":"B","c":{"x":1}}}"#, &[("/v/c/x", "type")]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum External {
    Unit,
    New(i32),
    Tup(i32, bool),
    St { a: u8 },
}

#[test]
fn externally_tagged() {
    ok(r#"{"v":"Unit"}"#, w(External::Unit));
    ok(r#"{"v":{"New":"5"}}"#, w(External::New(5)));
    ok(r#"{"v":{"Tup":["1","true"]}}"#, w(External::Tup(1, true)));
    ok(r#"{"v":{"St":{"a":"9"}}}"#, w(External::St { a: 9 }));
    bad::<W<External>>(r#"{"v":"Unti"}"#, &[("/v", "enum")]);
    bad::<W<External>>(r#"{"v":{"St":{"a":300,"b":1}}}"#, &[("/v/St/b", "unknown"), ("/v/St/a", "range")]);
    bad::<W<External>>(r#"{"v":{"Unit":null}}"#, &[("/v", "enum")]);
    bad::<W<External>>(r#"{"v":{"St":[9]}}"#, &[("/v/St", "type")]);
    bad::<W<External>>(r#"{"v":{"New":1,"New":2}}"#, &[("/v/New", "duplicate")]);
    bad::<W<External>>(r#"{"v":{"New":1,"St":{"a":1}}}"#, &[("/v", "type")]);
    bad::<W<External>>(r#"{"v":{}}"#, &[("/v", "type")]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum OnlyPayload {
    A { x: i32 },
}
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum OnlyUnit {
    /// The only one.
    A,
}
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "t")]
enum OnlyTagged {
    A { x: i32 },
}
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct FlatOnly {
    q: i32,
    #[serde(flatten)]
    only: OnlyTagged,
}

#[test]
fn enums_of_one_variant() {
    ok(r#"{"v":{"A":{"x":"1"}}}"#, w(OnlyPayload::A { x: 1 }));
    ok(r#"{"A":{"x":"1"}}"#, OnlyPayload::A { x: 1 });
    ok(r#"{"v":"A"}"#, w(OnlyUnit::A));
    ok(r#"{"v":{"t":"A","x":"1"}}"#, w(OnlyTagged::A { x: 1 }));
    ok(r#"{"t":"A","x":"1"}"#, OnlyTagged::A { x: 1 });
    ok(r#"{"v":{"t":"A","x":"1"}}"#, w(Some(OnlyTagged::A { x: 1 })));
    ok(r#"{"q":1,"t":"A","x":"1"}"#, FlatOnly { q: 1, only: OnlyTagged::A { x: 1 } });
    bad::<W<OnlyTagged>>(r#"{"v":{"t":"B","x":1}}"#, &[("/v/t", "enum")]);
    let names: Vec<String> =
        plan::<Shape>(PlanOptions::default()).parameter_names().map(String::from).collect();
    assert_eq!(names, ["kind", "r", "w", "h"]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    I(i64),
    S(String),
    L(Vec<i64>),
    O { a: i64 },
}

#[test]
fn untagged() {
    ok(r#"{"v":5}"#, w(Untagged::I(5)));
    // Taken as it is by a later branch: no coercion.
    ok(r#"{"v":"5"}"#, w(Untagged::S("5".into())));
    ok(r#"{"v":["1",2]}"#, w(Untagged::L(vec![1, 2])));
    ok(r#"{"v":{"a":"7"}}"#, w(Untagged::O { a: 7 }));
    ok(r#"{"v":7.0}"#, w(Untagged::I(7)));
    bad::<W<Untagged>>(r#"{"v":{"a":"x"}}"#, &[("/v/a", "type")]);
    bad::<W<Untagged>>(r#"{"v":[1,"x"]}"#, &[("/v/1", "type")]);
    bad::<W<Untagged>>(r#"{"v":true}"#, &[("/v", "type")]);
    let got = parse::<W<Vec<Untagged>>>(CoercionPolicy::strict(), r#"{"v":[["1"],{"a":"2"},"3",4.0]}"#);
    let (_, records) = got.expect("all fit");
    let want = [("/v/0/0", "text_to_integer"), ("/v/1/a", "text_to_integer"), ("/v/3", "float_to_integer")];
    assert_eq!(records, want.map(|(p, r)| (p.to_string(), r)));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Page {
    limit: u32,
    #[serde(default)]
    offset: u32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
pub(super) struct Flat {
    q: String,
    #[serde(flatten)]
    page: Page,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct FlatEnum {
    q: bool,
    #[serde(flatten)]
    s: Shape,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct FlatMap {
    q: bool,
    #[serde(flatten)]
    rest: HashMap<String, i64>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct FlatExternal {
    q: bool,
    #[serde(flatten)]
    e: Payload,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Payload {
    Aa(i64),
    Bb { x: i64 },
}

#[test]
fn flattened() {
    ok(r#"{"q":"a","limit":"10"}"#, Flat { q: "a".into(), page: Page { limit: 10, offset: 0 } });
    ok(r#"{"q":"a","limit":1,"offset":null}"#, Flat { q: "a".into(), page: Page { limit: 1, offset: 0 } });
    bad::<Flat>(r#"{"q":"a","limt":"10"}"#, &[("/limt", "unknown"), ("/limit", "missing")]);
    ok(r#"{"q":"true","kind":"circle","r":"3"}"#, FlatEnum { q: true, s: Shape::Circle { r: 3 } });
    bad::<FlatEnum>(r#"{"q":true,"kind":"circle","rr":1}"#, &[("/rr", "unknown"), ("/r", "missing")]);
    ok(r#"{"q":"true","z":"4"}"#, FlatMap { q: true, rest: [("z".to_string(), 4)].into() });
    bad::<FlatMap>(r#"{"q":true,"z":"k"}"#, &[("/z", "type")]);
    ok(r#"{"q":true,"Bb":{"x":"1"}}"#, FlatExternal { q: true, e: Payload::Bb { x: 1 } });
}

/// Eight variants three times over: 512 combinations.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is compiled")]
#[serde(tag = "a")]
enum A {
    A1 { x: i8 },
    A2 { x: i8 },
    A3 { x: i8 },
    A4 { x: i8 },
    A5 { x: i8 },
    A6 { x: i8 },
    A7 { x: i8 },
    A8 { x: i8 },
}
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is compiled")]
#[serde(tag = "b")]
enum B {
    B1 { y: i8 },
    B2 { y: i8 },
    B3 { y: i8 },
    B4 { y: i8 },
    B5 { y: i8 },
    B6 { y: i8 },
    B7 { y: i8 },
    B8 { y: i8 },
}
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is compiled")]
#[serde(tag = "c")]
enum C {
    C1 { z: i8 },
    C2 { z: i8 },
}
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is compiled")]
struct Multiplied {
    #[serde(flatten)]
    a: A,
    #[serde(flatten)]
    b: B,
    #[serde(flatten)]
    c: C,
}
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is compiled")]
struct TwoFlattened {
    #[serde(flatten)]
    a: A,
    #[serde(flatten)]
    c: C,
}

#[test]
fn flattened_enums_are_multiplied_up_to_a_cap() {
    let error =
        agent::args::Plan::for_type::<Multiplied>("t", PlanOptions::default()).expect_err("128 alternatives");
    assert!(error.to_string().contains("64 alternatives"), "{error}");
    let plan = plan::<TwoFlattened>(PlanOptions::default());
    assert!(plan.parse::<TwoFlattened>(r#"{"a":"A3","x":"1","c":"C2","z":2}"#).is_ok());
    assert!(plan.parse::<TwoFlattened>(r#"{"a":"A3","x":"1","c":"C9","z":2}"#).is_err());
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Attributes {
    some_field: i32,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip)]
    hidden: i32,
    #[serde(alias = "qty")]
    #[schemars(extend("x-aliases" = ["qty"]))]
    quantity: i32,
    maybe: Option<i32>,
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes { some_field: 1, kind: "t".into(), hidden: 2, quantity: 3, maybe: Some(4) }
    }
}

#[test]
fn serde_attributes() {
    ok(
        r#"{"someField":"5","qty":"9"}"#,
        Attributes { some_field: 5, kind: "t".into(), hidden: 2, quantity: 9, maybe: Some(4) },
    );
    // Null means absent, so the default of the whole holds.
    ok(r#"{"maybe":null,"qty":null}"#, Attributes::default());
    bad::<Attributes>(
        r#"{"some_field":1,"hidden":1}"#,
        &[("/some_field", "unknown"), ("/hidden", "unknown")],
    );
    bad::<Attributes>(r#"{"qty":1,"quantity":2}"#, &[("/quantity", "duplicate")]);
    bad::<Attributes>(r#"{"qty":"x"}"#, &[("/qty", "type")]);
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
enum Color {
    /// Warm.
    Red,
    /// Cool.
    Blue,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Newtype(u16);

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
struct Transparent {
    x: f64,
}

#[test]
fn small_types() {
    ok(r#"{"v":"Red"}"#, w(Color::Red));
    bad::<W<Color>>(r#"{"v":"red"}"#, &[("/v", "enum")]);
    bad::<W<Color>>(r#"{"v":{"Red":null}}"#, &[("/v", "enum")]);
    ok(r#"{"v":"7"}"#, w(Newtype(7)));
    ok(r#"{"v":"7.5"}"#, w(Transparent { x: 7.5 }));
    ok(r#"{"v":["1","x"]}"#, w((1i32, "x".to_string())));
    ok(r#"{"v":["1"]}"#, w(("1".to_string(),)));
    bad::<W<(i32, String)>>(r#"{"v":[1]}"#, &[("/v", "length")]);
    bad::<W<(i32, String)>>(r#"{"v":[1,"a",2]}"#, &[("/v", "length")]);
    // A tuple's items are no array of strings.
    bad::<W<(String, String)>>(r#"{"v":["a",1]}"#, &[("/v/1", "type")]);
    ok(r#"{"v":{"any":["thing",1.0,"2"]}}"#, w(serde_json::json!({"any":["thing",1.0,"2"]})));
    ok(r#"{"v":null}"#, w(serde_json::Value::Null));
    ok(r#"{"v":"127.0.0.1"}"#, w(std::net::Ipv4Addr::LOCALHOST));
    bad::<W<std::net::Ipv4Addr>>(r#"{"v":"localhost"}"#, &[("/v", "format")]);
}

#[test]
fn maps_and_sets() {
    ok(r#"{"v":{"1":"2"}}"#, w(BTreeMap::from([(1i32, 2i32)])));
    ok(r#"{"v":{"Red":"2"}}"#, w(BTreeMap::from([(Color::Red, 2i32)])));
    // schemars leaves the keys of this map open; the type refuses, and says where.
    bad::<W<BTreeMap<Color, i32>>>(r#"{"v":{"Rde":1}}"#, &[("/v/Rde", "value")]);
    bad::<W<BTreeMap<i32, i32>>>(r#"{"v":{"a":1}}"#, &[("/v/a", "unknown")]);
    bad::<W<BTreeMap<String, i32>>>(r#"{"v":{"a":1,"b":2,"a":3}}"#, &[("/v/a", "duplicate")]);
    ok(r#"{"v":["a",1]}"#, w(BTreeSet::from(["a".to_string(), "1".to_string()])));
    bad::<W<BTreeSet<String>>>(r#"{"v":["1",1]}"#, &[("/v/1", "unique")]);
    ok(r#"{"v":[["a"],["b",2]]}"#, w(BTreeSet::from([vec!["a".to_string()], vec!["b".into(), "2".into()]])));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Limits {
    #[schemars(range(min = 1, max = 10))]
    n: u32,
    #[schemars(length(min = 2))]
    s: String,
    #[schemars(regex(pattern = "^[a-z]+$"))]
    p: String,
    #[schemars(length(max = 2), inner(range(min = 0)))]
    l: Vec<i32>,
}

#[test]
fn constraints() {
    bad::<Limits>(
        r#"{"n":"11","s":"x","p":"A","l":[1,-1,2]}"#,
        &[("/n", "range"), ("/s", "length"), ("/p", "pattern"), ("/l", "length"), ("/l/1", "range")],
    );
    ok(
        r#"{"n":"10","s":"xx","p":"a","l":["1"]}"#,
        Limits { n: 10, s: "xx".into(), p: "a".into(), l: vec![1] },
    );
    bad::<Limits>(r#"{"n":1,"s":"é","p":"a","l":[]}"#, &[("/s", "length")]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
pub(super) struct Tree {
    pub(super) v: i32,
    #[serde(default)]
    pub(super) kids: Vec<Tree>,
    pub(super) next: Option<Box<Tree>>,
}

#[test]
fn recursion() {
    let leaf = |v| Tree { v, kids: vec![], next: None };
    ok(r#"{"v":{"v":"1","kids":[{"v":"2"}]}}"#, w(Tree { v: 1, kids: vec![leaf(2)], next: None }));
    bad::<W<Tree>>(
        r#"{"v":{"v":1,"kids":[{"v":2,"kids":[{"w":1}]}]}}"#,
        &[("/v/kids/0/kids/0/w", "unknown"), ("/v/kids/0/kids/0/v", "missing")],
    );
    ok(r#"{"v":"1","next":{"v":2,"next":null}}"#, Tree { v: 1, kids: vec![], next: Some(Box::new(leaf(2))) });
}

/// A type of another crate: its own `Deserialize`, a schema declared for it.
#[derive(Debug, PartialEq)]
struct Even(i64);

impl<'de> Deserialize<'de> for Even {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let n = i64::deserialize(d)?;
        if n % 2 == 0 { Ok(Even(n)) } else { Err(serde::de::Error::custom("must be even")) }
    }
}

impl JsonSchema for Even {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Even".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer"})
    }
}

#[test]
fn a_refusal_of_the_type_has_its_path() {
    ok(r#"{"v":"4"}"#, w(Even(4)));
    bad::<W<Even>>(r#"{"v":3}"#, &[("/v", "value")]);
    bad::<W<Vec<Even>>>(r#"{"v":[2,"4",5]}"#, &[("/v/2", "value")]);
    bad::<W<BTreeMap<String, Even>>>(r#"{"v":{"a/b":1}}"#, &[("/v/a~1b", "value")]);
    let error = plan::<W<Even>>(PlanOptions::default()).parse::<W<Even>>(r#"{"v":3}"#).expect_err("odd");
    assert_eq!(error.issues()[0].problem, "must be even");
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "k")]
enum Buffered {
    M { m: BTreeMap<i64, i32> },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is compiled")]
#[serde(tag = "k")]
enum WideInTag {
    W { w: i128 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is compiled")]
#[serde(untagged)]
enum WideUntagged {
    W(u128),
    S(String),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct WideField {
    w: u128,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct FlatWide {
    #[serde(flatten)]
    inner: WideField,
}

#[test]
fn what_serde_cannot_buffer() {
    ok(r#"{"v":{"k":"M","m":{"1":"2"}}}"#, w(Buffered::M { m: BTreeMap::from([(1, 2)]) }));
    // One variant is no alternative, so look at what the message is about and not only at the fact.
    let error =
        agent::args::Plan::for_type::<W<WideUntagged>>("t", PlanOptions::default()).expect_err("128 bits");
    assert_eq!((error.keyword(), error.tool()), ("format", "t"), "{error}");
    // schemars does not show that a struct was flattened: there serde refuses when it is called.
    bad::<FlatWide>(r#"{"w":"17"}"#, &[("", "value")]);
    let one = agent::args::Plan::for_type::<W<WideInTag>>("t", PlanOptions::default());
    assert!(one.is_err(), "{one:?}");
}

#[test]
fn unknown_keys() {
    let with = |unknown| {
        plan::<Flat>(PlanOptions::default().unknown(unknown)).parse::<Flat>(r#"{"q":"a","limit":1,"zz":[1]}"#)
    };
    assert!(with(UnknownKeys::Deny).is_err());
    let stripped = with(UnknownKeys::Strip).expect("dropped");
    assert_eq!(super::records(stripped.coercions()), [("/zz".to_string(), "unknown_dropped")]);
    assert!(with(UnknownKeys::Keep).expect("kept").coercions().is_empty());
    let nested = r#"{"id":1,"name":"n","inner":{"n":1,"zz":1},"list":[]}"#;
    assert!(
        plan::<Outer>(PlanOptions::default().unknown(UnknownKeys::Strip)).parse::<Outer>(nested).is_err()
    );
    assert!(plan::<Outer>(PlanOptions::default().unknown(UnknownKeys::Keep)).parse::<Outer>(nested).is_ok());
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum How {
    Fast,
    Slow { why: String },
}

/// Settings of a field stand beside the alternatives of its type, and restrict nothing.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Settings {
    #[serde(alias = "hw")]
    #[schemars(extend("x-aliases" = ["hw"], "x-coerce" = "strict"))]
    how: Option<How>,
    #[schemars(extend("x-of-somebody" = 1))]
    then: Option<How>,
}

#[test]
fn settings_of_a_field_do_not_change_its_type() {
    let slow = || Some(How::Slow { why: "x".into() });
    ok(r#"{"hw":{"Slow":{"why":"x"}},"then":"Fast"}"#, Settings { how: slow(), then: Some(How::Fast) });
    ok(r#"{"how":"Fast","then":{"Slow":{"why":"x"}}}"#, Settings { how: Some(How::Fast), then: slow() });
    bad::<Settings>(
        r#"{"how":{"Slow":{"wy":1}}}"#,
        &[("/how/Slow/wy", "unknown"), ("/how/Slow/why", "missing")],
    );
}

#[test]
fn keys_of_maps_are_explained() {
    type Map = HashMap<u8, u32>;
    let refused = |text: &str| match plan::<W<Map>>(PlanOptions::default()).parse::<W<Map>>(text) {
        Ok(parsed) => panic!("{parsed:?}"),
        Err(error) => error.to_text(),
    };
    let text = refused(r#"{"v":{"x":1}}"#);
    assert!(text.contains("1. /v/x: the key must be a whole number"), "{text}");
    assert!(text.contains("v: {[whole number]: integer >= 0}"), "{text}");
    let text = refused(r#"{"v":{"300":1}}"#);
    assert!(text.contains("1. /v/300: "), "{text}");
}
