//! Types that are hard to plan: what is taken, refused, shown, and what the oracle says about what is shown.

use super::{W, bad, ok, plan, w};
use agent::ToolArgs;
use agent::args::{CoercionPolicy, Plan, PlanOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::net::{IpAddr, Ipv6Addr};
use std::num::{NonZeroI8, NonZeroI64, NonZeroU64};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Under `exact` the plan and the rendered schema agree about each of these, and at least one is taken and one refused.
#[track_caller]
fn agrees<T: DeserializeOwned + JsonSchema>(values: &[Value]) {
    let options = PlanOptions::default().coercion(CoercionPolicy::exact());
    let plan = Plan::for_type::<W<T>>("t", options).unwrap_or_else(|error| panic!("{error}"));
    let oracle = jsonschema::validator_for(plan.schema()).expect("a schema");
    let mut taken = 0;
    for value in values {
        let sent = json!({"v": value});
        let ours = plan.parse::<W<T>>(&sent.to_string());
        assert_eq!(ours.is_ok(), oracle.is_valid(&sent), "{sent}\n{}\n{:?}", plan.schema(), ours.err());
        taken += usize::from(oracle.is_valid(&sent));
    }
    assert!(taken > 0 && taken < values.len(), "{taken} of {} taken", values.len());
}

#[test]
fn bounds_of_every_width() {
    macro_rules! widths {
        ($($ty:ident),*) => {$(
            for value in [i128::from($ty::MIN), i128::from($ty::MAX)] {
                let sent = |value: i128| format!("{{\"v\":{value}}}");
                ok(&sent(value), w($ty::try_from(value).expect("a bound")));
                ok(&format!("{{\"v\":\"{value}\"}}"), w($ty::try_from(value).expect("a bound")));
            }
            bad::<W<$ty>>(&format!("{{\"v\":{}}}", i128::from($ty::MAX) + 1), &[("/v", "range")]);
            bad::<W<$ty>>(&format!("{{\"v\":\"{}\"}}", i128::from($ty::MIN) - 1), &[("/v", "range")]);
        )*};
    }
    widths!(i8, i16, i32, i64, u8, u16, u32, u64);
    ok(&format!("{{\"v\":{}}}", i128::MIN), w(i128::MIN));
    ok(&format!("{{\"v\":\"{}\"}}", u128::MAX), w(u128::MAX));
    bad::<W<u128>>(&format!("{{\"v\":{}0}}", u128::MAX), &[("/v", "range")]);
    bad::<W<u128>>("{\"v\":-1}", &[("/v", "range")]);
    ok("{\"v\":1}", w(1_isize));
    bad::<W<usize>>("{\"v\":-1}", &[("/v", "range")]);
    agrees::<i8>(&[json!(127), json!(128), json!(-129), json!(1.0), json!(1.5), json!("1")]);
    agrees::<u64>(&[json!(0), json!(-1), json!(1.5)]);
}

#[test]
fn numbers_that_are_not_zero() {
    ok("{\"v\":\"5\"}", w(NonZeroU64::MIN.saturating_add(4)));
    bad::<W<NonZeroU64>>("{\"v\":0}", &[("/v", "range")]);
    agrees::<NonZeroU64>(&[json!(1), json!(0), json!(-1)]);
    ok("{\"v\":\"-5\"}", w(NonZeroI8::new(-5).expect("not zero")));
    ok("{\"v\":[1,-1.0]}", w([1, -1].map(|v| NonZeroI64::new(v).expect("not zero")).to_vec()));
    bad::<W<NonZeroI8>>("{\"v\":0}", &[("/v", "enum")]);
    bad::<W<NonZeroI8>>("{\"v\":\"0\"}", &[("/v", "enum")]);
    bad::<W<NonZeroI8>>("{\"v\":128}", &[("/v", "range")]);
    bad::<W<Option<NonZeroI64>>>("{\"v\":0}", &[("/v", "enum")]);
    agrees::<NonZeroI8>(&[json!(1), json!(-128), json!(0), json!(-129), json!(128)]);
    agrees::<Vec<NonZeroI64>>(&[json!([1, -1]), json!([1, 0]), json!([])]);
}

#[test]
fn small_floats_and_single_letters() {
    ok("{\"v\":3.4e38}", w(3.4e38_f32));
    bad::<W<f32>>("{\"v\":3.5e38}", &[("/v", "range")]);
    bad::<W<f32>>("{\"v\":\"-1e39\"}", &[("/v", "range")]);
    bad::<W<f64>>("{\"v\":\"1e999\"}", &[("/v", "type")]);
    ok("{\"v\":\"é\"}", w('é'));
    bad::<W<char>>("{\"v\":\"\"}", &[("/v", "length")]);
    bad::<W<char>>("{\"v\":\"e\u{301}\"}", &[("/v", "length")]);
    agrees::<char>(&[json!("a"), json!(""), json!("ab"), json!("😀"), json!(1)]);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Unit;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Pair(i32, #[serde(default)] bool);

#[test]
fn tuples_and_arrays() {
    ok(r#"{"v":["1",2,3]}"#, w([1, 2, 3]));
    bad::<W<[i32; 3]>>(r#"{"v":[1,2]}"#, &[("/v", "length")]);
    ok(r#"{"v":[]}"#, w([0_i32; 0]));
    ok(r#"{"v":[1,["a",true]]}"#, w((1, ("a".to_owned(), true))));
    ok(r#"{"v":[1,"true"]}"#, w(Pair(1, true)));
    ok(r#"{"v":null}"#, w(()));
    ok(r#"{"v":null}"#, w(Unit));
    bad::<W<()>>(r#"{"v":0}"#, &[("/v", "type")]);
    agrees::<(u8, String)>(&[
        json!([1, "a"]),
        json!([1]),
        json!([1, "a", 2]),
        json!([]),
        json!({}),
        json!(["1", "a"]),
    ]);
    agrees::<[bool; 2]>(&[json!([true, false]), json!([true]), json!([true, true, true])]);
    agrees::<()>(&[json!(null), json!(0), json!({})]);
}

#[derive(ToolArgs, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
enum Color {
    /// Warm.
    DeepRed,
    /// Cool.
    Blue,
    Green,
}

#[test]
fn keys_of_maps_are_a_closed_set_where_the_type_is() {
    ok(r#"{"v":{"deep_red":"2"}}"#, w(BTreeMap::from([(Color::DeepRed, 2)])));
    // Told by the plan, with all other mistakes, and shown to the model.
    bad::<W<HashMap<Color, i32>>>(
        r#"{"v":{"deep_rde":1,"blue":"x"}}"#,
        &[("/v/deep_rde", "unknown"), ("/v/blue", "type")],
    );
    let schema = plan::<W<BTreeMap<Color, i32>>>(PlanOptions::default()).schema()["properties"]["v"].clone();
    let keys: BTreeSet<&String> = schema["properties"].as_object().expect("properties").keys().collect();
    assert_eq!(keys, BTreeSet::from([&"blue".to_owned(), &"deep_red".into(), &"green".into()]));
    assert_eq!(schema["additionalProperties"], false);
    // As a value it still says what each word means.
    let schema = plan::<W<Color>>(PlanOptions::default()).schema()["properties"]["v"].clone();
    assert_eq!(schema["description"], "- deep_red: Warm.\n- blue: Cool.");
    assert_eq!(schema["enum"].as_array().map(Vec::len), Some(3));
    agrees::<BTreeMap<Color, u8>>(&[
        json!({}),
        json!({"blue": 1}),
        json!({"Blue": 1}),
        json!({"blue": -1}),
        json!([]),
    ]);
    agrees::<BTreeMap<i32, u8>>(&[json!({"-1": 1}), json!({"a": 1}), json!({"1": 1, "2": 300})]);
    agrees::<BTreeMap<u32, u8>>(&[json!({"1": 1}), json!({"-1": 1})]);
    agrees::<HashSet<String>>(&[json!([]), json!(["a", "b"]), json!(["a", "a"]), json!([1])]);
    ok(r#"{"v":{"true":1}}"#, w(BTreeMap::from([(true, 1)])));
    bad::<W<BTreeMap<bool, i32>>>(r#"{"v":{"yes":1}}"#, &[("/v/yes", "value")]);
}

#[test]
fn pointers_are_what_they_point_to() {
    ok(r#"{"v":"x"}"#, w(Box::<str>::from("x")));
    ok(r#"{"v":"x"}"#, w(Cow::<'static, str>::from("x")));
    ok(r#"{"v":["1"]}"#, w(VecDeque::from([1])));
    ok(r#"{"v":["1"]}"#, w(Box::<[i32]>::from([1])));
    ok(r#"{"v":"a/b"}"#, w(PathBuf::from("a/b")));
    ok(r#"{"v":"::1"}"#, w(IpAddr::from(Ipv6Addr::LOCALHOST)));
    bad::<W<IpAddr>>(r#"{"v":"here"}"#, &[("/v", "format")]);
    ok(r#"{"v":{"start":"1","end":5}}"#, w(Range { start: 1, end: 5 }));
    ok(r#"{"v":{"start":1,"end":5}}"#, w(RangeInclusive::new(1, 5)));
    bad::<W<Range<u8>>>(r#"{"v":{"start":1,"stop":300}}"#, &[("/v/stop", "unknown"), ("/v/end", "missing")]);
    ok(r#"{"v":{"secs":"1","nanos":5}}"#, w(Duration::new(1, 5)));
    bad::<W<Duration>>(r#"{"v":{"secs":-1}}"#, &[("/v/secs", "range"), ("/v/nanos", "missing")]);
    agrees::<Duration>(&[json!({"secs": 1, "nanos": 2}), json!({"secs": 1}), json!(90), json!("90s")]);
    agrees::<Range<u8>>(&[json!({"start": 1, "end": 2}), json!([1, 2]), json!({"start": 1, "end": 256})]);
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Shared {
    text: Arc<str>,
    list: Rc<[u8]>,
    inner: Arc<Unit>,
}

#[test]
fn shared_pointers() {
    ok(r#"{"v":"x"}"#, w(Arc::<str>::from("x")));
    let want = Shared { text: "x".into(), list: Rc::from([1, 2]), inner: Arc::new(Unit) };
    ok(r#"{"text":"x","list":["1",2],"inner":null}"#, want);
    bad::<Shared>(
        r#"{"text":1,"list":[300],"inner":0}"#,
        &[("/text", "type"), ("/list/0", "range"), ("/inner", "type")],
    );
}

#[derive(ToolArgs, Debug, PartialEq)]
#[expect(clippy::option_option, reason = "that is what is tested")]
struct Optional {
    a: Option<Option<u8>>,
    b: Option<Box<Option<u8>>>,
    #[serde(default)]
    c: Option<Value>,
}

#[test]
fn options_of_options_collapse() {
    ok("{}", Optional { a: None, b: None, c: None });
    ok(r#"{"a":null,"b":null}"#, Optional { a: None, b: None, c: None });
    ok(
        r#"{"a":"5","b":6,"c":[1]}"#,
        Optional { a: Some(Some(5)), b: Some(Box::new(Some(6))), c: Some(json!([1])) },
    );
    bad::<Optional>(r#"{"a":300}"#, &[("/a", "range")]);
    ok(r#"{"v":[null,"1"]}"#, w(vec![None, Some(1)]));
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Node {
    name: String,
    #[serde(default)]
    children: Vec<Node>,
    by_name: Option<HashMap<String, Node>>,
    next: Option<Box<Self>>,
}

#[test]
fn recursion_through_every_container() {
    let leaf = |name: &str| Node { name: name.into(), children: Vec::new(), by_name: None, next: None };
    ok(
        r#"{"v":{"name":"a","children":[{"name":"b"}],"by_name":{"c":{"name":"c"}},"next":{"name":"d"}}}"#,
        w(Node {
            children: vec![leaf("b")],
            by_name: Some(HashMap::from([("c".to_owned(), leaf("c"))])),
            next: Some(Box::new(leaf("d"))),
            ..leaf("a")
        }),
    );
    bad::<Node>(
        r#"{"name":"a","children":[{"name":1}],"by_name":{"c":{}},"next":{"next":{"name":"x","nam":1}}}"#,
        &[
            ("/children/0/name", "type"),
            ("/by_name/c/name", "missing"),
            ("/next/name", "missing"),
            ("/next/next/nam", "unknown"),
        ],
    );
    agrees::<Node>(&[
        json!({"name": "a", "next": {"name": "b", "children": [{"name": "c"}]}}),
        json!({"name": "a", "next": {"name": "b", "children": [{"nam": "c"}]}}),
        json!({"name": "a", "by_name": {"x": {"name": 1}}}),
    ]);
}

#[derive(ToolArgs, Debug, PartialEq, Serialize)]
#[serde(transparent)]
struct Percent(#[arg(range(0..=100))] u8);

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(try_from = "i64")]
struct Odd(i64);

impl TryFrom<i64> for Odd {
    type Error = String;
    fn try_from(n: i64) -> Result<Self, String> {
        if n % 2 == 0 { Err(format!("{n} is even")) } else { Ok(Odd(n)) }
    }
}

mod hex {
    use serde::{Deserialize, Deserializer, de::Error};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let text = String::deserialize(deserializer)?;
        u32::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
struct Attributes {
    percent_done: Percent,
    odd: Odd,
    #[serde(with = "hex")]
    #[schemars(with = "String")]
    color: u32,
    #[serde(skip)]
    skipped: Option<u8>,
    #[serde(default = "seven", alias = "count")]
    how_many: u8,
}

fn seven() -> u8 {
    7
}

#[test]
fn attributes_of_serde() {
    let want =
        |how_many| Attributes { percent_done: Percent(5), odd: Odd(3), color: 255, skipped: None, how_many };
    ok(r#"{"PERCENT-DONE":"5","ODD":3.0,"COLOR":"ff"}"#, want(7));
    ok(r#"{"PERCENT-DONE":5,"ODD":"3","COLOR":"ff","count":"8"}"#, want(8));
    bad::<Attributes>(
        r#"{"PERCENT-DONE":101,"ODD":"x","COLOR":255,"SKIPPED":1}"#,
        &[("/SKIPPED", "unknown"), ("/PERCENT-DONE", "range"), ("/ODD", "type"), ("/COLOR", "type")],
    );
    bad::<Attributes>(r#"{"PERCENT-DONE":5,"ODD":4,"COLOR":"ff"}"#, &[("/ODD", "value")]);
    bad::<Attributes>(r#"{"PERCENT-DONE":5,"ODD":3,"COLOR":"red"}"#, &[("/COLOR", "value")]);
}

#[derive(ToolArgs, Debug)]
#[expect(dead_code, reason = "only its schema is compiled")]
struct Big {
    n: i128,
}

#[derive(ToolArgs, Debug)]
#[expect(dead_code, reason = "only its schema is compiled")]
struct Flat {
    #[arg(flatten)]
    big: Big,
}

#[derive(ToolArgs, Debug)]
#[expect(dead_code, reason = "only its schema is compiled")]
struct FlatDeep {
    own: i128,
    #[serde(flatten)]
    within: Within,
}

#[derive(ToolArgs, Debug)]
#[expect(dead_code, reason = "only its schema is compiled")]
struct Within {
    list: Vec<Big>,
}

/// The definition is met outside of the alternatives first.
#[derive(ToolArgs, Debug)]
#[expect(dead_code, reason = "only its schema is compiled")]
struct Both {
    big: Big,
    either: Either,
}

#[derive(ToolArgs, Debug)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is compiled")]
enum Either {
    Big { inner: Big },
    Text(String),
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Beside {
    own: i128,
    #[arg(flatten)]
    page: Page,
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Page {
    limit: u64,
}

/// serde keeps the keys of these maps in a buffer before it knows their types.
#[derive(ToolArgs, Debug, PartialEq)]
#[serde(untagged)]
enum Counted {
    All { all: HashMap<u64, i32> },
}

#[test]
fn integer_keys_in_a_buffer_have_their_whole_range() {
    for key in [0, 7, 1 << 53, i64::MAX.unsigned_abs() + 1, u64::MAX] {
        let sent = json!({"v": {"all": {key.to_string(): 1}}}).to_string();
        ok(&sent, W { v: Counted::All { all: HashMap::from([(key, 1)]) } });
    }
    bad::<W<Counted>>(r#"{"v": {"all": {"+5": 1}}}"#, &[("/v/all/+5", "unknown")]);
}

#[test]
fn wide_integers_are_refused_where_serde_cannot_carry_them() {
    let refusal = |error: Result<Plan, agent::args::SchemaError>| match error {
        Ok(plan) => panic!("{}", plan.schema()),
        Err(error) => error.to_string(),
    };
    let options = PlanOptions::default;
    for error in [
        refusal(Plan::for_type::<Flat>("t", options())),
        refusal(Plan::for_type::<W<FlatDeep>>("t", options())),
        refusal(Plan::for_type::<Both>("t", options())),
    ] {
        assert!(error.contains("128 bits"), "{error}");
    }
    // Beside what is flattened they are read directly.
    ok(
        &format!(r#"{{"own":{},"limit":"5"}}"#, i128::MIN),
        Beside { own: i128::MIN, page: Page { limit: 5 } },
    );
}
