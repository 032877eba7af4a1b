//! The report: the worked examples, character for character, and its bounds.

use super::{W, plan};
use agent::args::{Coercion, InvalidArguments, Plan, PlanOptions};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

/// How urgent it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    Normal,
    High,
}

fn ten() -> u32 {
    10
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Search {
    /// What to look for.
    query: String,
    /// At most this many hits.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    max_results: u32,
    /// Only notes that have all of these tags.
    tags: Option<Vec<String>>,
    priority: Option<Priority>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Guest {
    name: String,
    #[schemars(range(min = 0, max = 150))]
    age: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Book {
    city: String,
    nights: u32,
    guests: Vec<Guest>,
    #[serde(default)]
    #[schemars(extend("x-secret" = true))]
    card: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Shape {
    Circle { r: f64 },
    Rect { w: f64, h: f64 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Draw {
    shape: Shape,
    #[serde(default)]
    filled: bool,
}

#[track_caller]
fn refused<T: DeserializeOwned + JsonSchema>(tool: &str, text: &str) -> InvalidArguments {
    let plan = Plan::for_type::<T>(tool, PlanOptions::default()).expect("a plan");
    plan.parse::<T>(text).map(|_| ()).expect_err("refused")
}

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn check(error: &InvalidArguments, want: Expect) {
    want.assert_eq(&error.to_text());
    assert_eq!(error.to_string(), error.to_text());
}

#[test]
fn example_1_one_mend_each() {
    let text = r#"{"query":"rust","maxResults":"5","tags":"[\"a\",\"b\"]"}"#;
    let want = expect![[r#"
        Invalid arguments for `search_notes`: 2 problems. The tool was not run.
        1. /maxResults: unknown parameter; did you mean "max_results"?
        2. /tags: send a JSON array, not text; got string "[\"a\",\"b\"]"; expected [string]
        Parameters (? = optional):
          query: string — What to look for.
          max_results?: integer 1..50 = 10 — At most this many hits.
          tags?: [string] — Only notes that have all of these tags.
          priority?: "low" | "normal" | "high"
        If this is what you meant, send: {"query":"rust","max_results":5,"tags":["a","b"]}"#]];
    check(&refused::<Search>("search_notes", text), want);
}

#[test]
fn example_2_text_and_json() {
    let error =
        refused::<Search>("search_notes", r#"{"qury":7,"max_results":"lots","priority":"hihg","zz":null}"#);
    let want = expect![[r#"
        Invalid arguments for `search_notes`: 5 problems. The tool was not run.
        1. /qury: unknown parameter; did you mean "query"?
        2. /zz: unknown parameter
        3. /query: required, but missing; expected string
        4. /max_results: wrong type; got string "lots"; expected integer 1..50
        5. /priority: not an allowed value; got string "hihg"; expected "low" | "normal" | "high"; did you mean "high"?
        Parameters (? = optional):
          query: string — What to look for.
          max_results?: integer 1..50 = 10 — At most this many hits.
          tags?: [string] — Only notes that have all of these tags.
          priority?: "low" | "normal" | "high"
        Call `search_notes` again with all of these fixed."#]];
    check(&error, want);
    let want: serde_json::Value = serde_json::from_str(
        r#"{"error": "invalid_arguments", "tool": "search_notes", "count": 5, "issues": [
  {"path": "/qury", "code": "unknown", "message": "/qury: unknown parameter; did you mean \"query\"?", "suggestions": ["query"]},
  {"path": "/zz", "code": "unknown", "message": "/zz: unknown parameter"},
  {"path": "/query", "code": "missing", "message": "/query: required, but missing; expected string", "expected": "string"},
  {"path": "/max_results", "code": "type", "message": "/max_results: wrong type; got string \"lots\"; expected integer 1..50", "received": "string \"lots\"", "expected": "integer 1..50"},
  {"path": "/priority", "code": "enum", "message": "/priority: not an allowed value; got string \"hihg\"; expected \"low\" | \"normal\" | \"high\"; did you mean \"high\"?", "received": "string \"hihg\"", "expected": "\"low\" | \"normal\" | \"high\"", "allowed": ["low", "normal", "high"], "suggestions": ["high"]}
], "parameters": ["query: string — What to look for.", "max_results?: integer 1..50 = 10 — At most this many hits.", "tags?: [string] — Only notes that have all of these tags.", "priority?: \"low\" | \"normal\" | \"high\""]}"#,
    )
    .expect("JSON");
    assert_eq!(error.to_json().to_string(), want.to_string());
}

#[test]
fn example_3_nested_and_secret() {
    let text = r#"{"city":5,"nights":2.5,"guests":[{"name":"Ann","age":31},{"name":"Bo","age":"n/a","kid":true}],"card":4111111111111111}"#;
    let want = expect![[r#"
        Invalid arguments for `book_room`: 5 problems. The tool was not run.
        1. /city: must be text in quotes; got number 5; expected string
        2. /nights: must be a whole number; got number 2.5; expected integer >= 0
        3. /guests/1/kid: unknown parameter; expected "name" | "age"
        4. /guests/1/age: wrong type; got string "n/a"; expected integer 0..150
        5. /card: must be text in quotes; got number (hidden); expected string
        Parameters (? = optional):
          city: string
          nights: integer >= 0
          guests: [{name: string, age: integer 0..150}]
          card?: string = ""
        Call `book_room` again with all of these fixed."#]];
    check(&refused::<Book>("book_room", text), want);
}

#[test]
fn example_4_tagged() {
    let want = expect![[r#"
        Invalid arguments for `draw`: 2 problems. The tool was not run.
        1. /shape/kind: not an allowed value; got string "cirle"; expected "circle" | "rect"; did you mean "circle"?
        2. /filled: wrong type; got number 1; expected boolean
        Parameters (? = optional):
          shape: {kind: "circle", r: number} | {kind: "rect", w: number, h: number}
          filled?: boolean = false
        Call `draw` again with all of these fixed."#]];
    check(&refused::<Draw>("draw", r#"{"shape":{"kind":"cirle","r":3},"filled":1}"#), want);
}

#[test]
fn example_5_not_json() {
    let want = expect![[r#"
        Invalid arguments for `search_notes`: 1 problem. The tool was not run.
        1. (arguments): not valid JSON: EOF while parsing a value at line 1 column 30; expected one complete JSON object
        Parameters (? = optional):
          query: string — What to look for.
          max_results?: integer 1..50 = 10 — At most this many hits.
          tags?: [string] — Only notes that have all of these tags.
          priority?: "low" | "normal" | "high"
        Call `search_notes` again with this fixed."#]];
    check(&refused::<Search>("search_notes", r#"{"query":"rust","max_results":"#), want);
}

#[test]
fn example_6_no_object() {
    let want = expect![[r#"
        Invalid arguments for `search_notes`: 1 problem. The tool was not run.
        1. (arguments): must be one JSON object; got array of 2; expected an object with the parameters below
        Parameters (? = optional):
          query: string — What to look for.
          max_results?: integer 1..50 = 10 — At most this many hits.
          tags?: [string] — Only notes that have all of these tags.
          priority?: "low" | "normal" | "high"
        Call `search_notes` again with this fixed."#]];
    check(&refused::<Search>("search_notes", r#"["rust",5]"#), want);
}

#[test]
fn example_7_accepted_and_recorded() {
    let plan = Plan::for_type::<Search>("search_notes", PlanOptions::default()).expect("a plan");
    let text = r#"{"query":"rust","max_results":" 5 ","tags":["x",7],"priority":null}"#;
    let coercions = plan.parse::<Search>(text).expect("accepted").coercions().to_vec();
    let want = r#"[{"path":"/max_results","from":" 5 ","to":5,"rule":"text_to_integer"},{"path":"/tags/1","from":7,"to":"7","rule":"number_to_text"},{"path":"/priority","from":null,"to":null,"rule":"null_as_absent"}]"#;
    assert_eq!(serde_json::to_string(&coercions).expect("JSON"), want);
    assert_eq!(serde_json::from_str::<Vec<Coercion>>(want).expect("records"), coercions);
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

#[test]
fn a_tool_without_parameters() {
    let want = expect![[r"
        Invalid arguments for `ping`: 1 problem. The tool was not run.
        1. /x: unknown parameter
        Parameters: none, send {}
        Call `ping` again with this fixed."]];
    check(&refused::<Nothing>("ping", r#"{"x":1}"#), want);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its plan is looked at")]
struct Signatures {
    point: Point,
    scores: std::collections::BTreeMap<String, i64>,
    maybe: Vec<Option<i64>>,
    day: Day,
    #[schemars(length(min = 2, max = 10))]
    name: String,
    #[schemars(regex(pattern = "^[a-z]+$"))]
    slug: String,
    #[schemars(length(min = 1, max = 3))]
    list: Vec<String>,
    set: std::collections::BTreeSet<String>,
    pair: (i64, String),
    one_of: Either,
    anything: serde_json::Value,
    tree: super::shapes::Tree,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its plan is looked at")]
struct Point {
    lat: f64,
    lon: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its plan is looked at")]
enum Either {
    Nothing,
    Number(i64),
    Point { x: i64 },
}

#[derive(Debug, Deserialize)]
struct Day(#[expect(dead_code, reason = "only its plan is looked at")] String);

impl JsonSchema for Day {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Day".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date"})
    }
}

#[test]
fn signatures() {
    let error = refused::<Signatures>("t", "[]");
    let lines: Vec<String> = error.to_text().lines().map(String::from).collect();
    let got: Vec<&str> = lines[3..lines.len() - 1].iter().map(|line| line.trim()).collect();
    expect![[r#"
          point: {lat: number, lon?: number}
          scores: {[key]: integer}
          maybe: [integer | null]
          day: string (date, like 2026-11-21)
          name: string, 2..10 characters
          slug: string matching ^[a-z]+$
          list: [string], 1..3 items
          set: [string], all different
          pair: [integer, string]
          one_of: "Nothing" | {Number: integer} | {Point: {x: integer}}
          anything: any JSON value
          tree: {v: integer, kids?: [object], next?: object}"#]]
    .assert_eq(&got.join("\n"));
}

#[test]
fn patterns_that_are_left_out_are_counted() {
    let patterns: serde_json::Map<String, serde_json::Value> =
        (0..41).map(|i| (format!("^k{i}$"), serde_json::json!({}))).collect();
    let schema = serde_json::json!({"type": "object", "patternProperties": patterns});
    let plan = Plan::compile("t", &schema, PlanOptions::default()).expect("a plan");
    let report = plan.parse::<serde_json::Value>(r#"{"x":1}"#).expect_err("unknown").to_json();
    assert_eq!(report["parameters"].as_array().and_then(|lines| lines.last()), Some(&"… 1 more".into()));
}

#[test]
fn corrected_calls() {
    let corrected = |text| refused::<Search>("t", text).corrected().map(String::from);
    // A required parameter that is there under a name like it.
    assert_eq!(corrected(r#"{"Query":"a"}"#).as_deref(), Some(r#"{"query":"a"}"#));
    assert_eq!(corrected(r#"{"query":7}"#).as_deref(), Some(r#"{"query":"7"}"#));
    assert_eq!(
        corrected(r#"{"query":"a","tags":"one"}"#).as_deref(),
        Some(r#"{"query":"a","tags":["one"]}"#)
    );
    assert_eq!(
        corrected(r#"{"query":"a","priority":"hihg"}"#).as_deref(),
        Some(r#"{"query":"a","priority":"high"}"#)
    );
    // A list in text, a missing value, a number out of range, a name that was given as well: not ours to decide.
    assert_eq!(corrected(r#"{"query":"a","tags":"one, two"}"#), None);
    assert_eq!(corrected(r#"{"max_results":1}"#), None);
    assert_eq!(corrected(r#"{"query":"a","max_results":99}"#), None);
    assert_eq!(corrected(r#"{"query":"a","Query":"b"}"#), None);
    assert_eq!(corrected(r#"{"query":1.5}"#), None);
    let long = format!(r#"{{"Query":"{}"}}"#, "a".repeat(600));
    assert_eq!(corrected(&long), None);
    // Never for a plan with secrets.
    assert_eq!(refused::<Book>("t", r#"{"City":"a","nights":1,"guests":[]}"#).corrected(), None);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Filter {
    city: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Filtered {
    filter: Filter,
}

#[test]
fn a_corrected_call_drops_no_value() {
    let corrected = |text| refused::<Filtered>("t", text).corrected().map(String::from);
    let meant = Some(r#"{"filter":{"city":"Paris"}}"#);
    assert_eq!(corrected(r#"{"filter":{},"city":"Paris"}"#).as_deref(), meant);
    assert_eq!(corrected(r#"{"filter":{"city":"Rome"},"city":"Paris"}"#), None);
    // In JSON within a text neither.
    let corrected = |text| refused::<W<i64>>("t", text).corrected().map(String::from);
    assert_eq!(corrected(r#"{"args":"{\"v\":2}"}"#).as_deref(), Some(r#"{"v":2}"#));
    assert_eq!(corrected(r#"{"args":"{\"v\":1,\"v\":2}"}"#), None);
}

#[test]
fn what_to_do_next_is_never_cut() {
    let report = |words: usize| {
        let words: Vec<String> = (0..words).map(|at| format!("{at} is a word of a long list")).collect();
        let names = (0..21).map(|at| format!("parameter_{at}"));
        let properties = names.clone().map(|name| (name, serde_json::json!({"enum": words})));
        let properties: serde_json::Map<_, _> = properties.collect();
        let required: Vec<String> = names.collect();
        let schema = serde_json::json!({"type": "object", "properties": properties, "required": required});
        let plan = Plan::compile("t", &schema, PlanOptions::default()).expect("a plan");
        plan.parse::<serde_json::Value>("{}").expect_err("refused").on_attempt(3, 3).to_text()
    };
    let (short, long) = (report(1), report(20));
    assert!(short.contains("… and 1 more problem.\n"), "{short}");
    for text in [short, long] {
        assert!(text.ends_with("\nThat was the last attempt: do not call `t` again."), "{text}");
        assert!(text.chars().count() <= 6_000);
    }
}

#[test]
fn a_clone_is_the_same_report() {
    let error = plan::<W<i64>>(PlanOptions::default()).parse::<W<i64>>("{}").expect_err("missing");
    assert_eq!(error.clone().to_text(), error.to_text());
    assert_eq!((error.tool(), error.count()), ("t", 1));
    let other = plan::<W<i64>>(PlanOptions::default()).with_name("other");
    assert!(other.parse::<W<i64>>("{}").expect_err("missing").to_text().contains("`other`"));
}

/// A number beyond a bound is told that bound, also where only the type has it.
#[test]
fn every_bound_is_told() {
    fn told<T: DeserializeOwned + JsonSchema + std::fmt::Debug>(text: &str, want: &str) {
        let report = refused::<W<T>>("t", text).to_text();
        assert!(report.contains(want), "{report}");
    }
    told::<u32>(
        r#"{"v":5000000000}"#,
        "/v: out of range; got number 5000000000; expected integer 0..4294967295",
    );
    told::<i32>(r#"{"v":-5000000000}"#, "expected integer >= -2147483648");
    told::<i64>(r#"{"v":"9223372036854775808"}"#, "expected integer <= 9223372036854775807");
    told::<u64>(r#"{"v":"99999999999999999999999"}"#, "expected integer 0..18446744073709551615");
    told::<i64>(r#"{"v":-9223372036854775809}"#, "expected integer >= -9223372036854775808");
    told::<f32>(r#"{"v":1e39}"#, "expected number of at most 3.4e38");
    let schema = serde_json::json!({"properties": {"v": {"type": "integer", "minimum": 3_000_000_000_i64}}});
    let plan = Plan::compile("t", &schema, PlanOptions::default()).expect("a plan");
    let report = plan.parse::<serde_json::Value>(r#"{"v":"5"}"#).expect_err("too small");
    assert_eq!(report.issues()[0].expected.as_deref(), Some("integer >= 3000000000"));
    // In the list of parameters they would only be in the way.
    told::<u32>(r#"{"v":-1}"#, "out of range; got number -1; expected integer >= 0\n");
    told::<u32>(r#"{"v":-1}"#, "  v: integer >= 0\n");
}
