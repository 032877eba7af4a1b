//! Refusals by types of other crates: one report lists them beside everything else.

use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions};
use agent::{ToolArgs, args::Base64};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[track_caller]
fn refused<T: DeserializeOwned + JsonSchema>(text: &str) -> InvalidArguments {
    let plan = Plan::for_type::<T>("schedule", PlanOptions::default()).expect("a plan");
    plan.parse::<T>(text).map(|_| ()).expect_err("refused")
}

/// Returns the lines of the problems, with their numbers.
fn problems(report: &InvalidArguments) -> Vec<String> {
    let text = report.to_text();
    let lines = text.lines().skip(1).take_while(|line| !line.starts_with("Parameters"));
    lines.map(str::to_owned).collect()
}

fn paths(report: &InvalidArguments) -> Vec<&str> {
    report.issues().iter().map(|issue| issue.path.as_str()).collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Schedule {
    at: DateTime<Utc>,
    remind: NaiveTime,
    server: SocketAddr,
    day: NaiveDate,
}

#[test]
fn four_slips_in_one_report_with_what_was_sent_what_is_expected_and_an_example() {
    let report = refused::<Schedule>(
        r#"{"at":"2026-12-01T10:00:00","remind":"9am","server":"10.0.0.1","day":"2026-12-01T00:00:00Z"}"#,
    );
    assert_eq!(
        problems(&report),
        [
            "1. /at: a date-time without its time zone: add `Z` or an offset like `+01:00`; got string \"2026-12-01T10:00:00\"; \
             expected string (date-time, like 2026-11-21T10:30:00Z)",
            "2. /remind: input contains invalid characters; got string \"9am\"; expected string (time, like 10:30:00)",
            "3. /server: invalid socket address syntax; got string \"10.0.0.1\"; expected string (like \"192.0.2.1:8080\")",
            "4. /day: a date-time instead of a date: leave the time out; got string \"2026-12-01T00:00:00Z\"; \
             expected string (date, like 2026-11-21)",
        ]
    );
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
struct Airport(String);

impl TryFrom<String> for Airport {
    type Error = String;

    fn try_from(code: String) -> Result<Self, String> {
        if matches!(code.as_str(), "FCO" | "BER") { Ok(Self(code)) } else { Err("not an airport".into()) }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Trip {
    count: u8,
    a: Airport,
    b: Vec<Airport>,
    #[serde(default)]
    hours: BTreeMap<char, NaiveTime>,
}

#[test]
fn beside_what_the_plan_refuses() {
    let report = refused::<Trip>(
        r#"{"count":300,"a":"Berlin","b":["Rome","FCO","Oslo"],"hours":{"x":"noon","mon":"9am"},"zz":1}"#,
    );
    assert_eq!(
        paths(&report),
        ["/zz", "/count", "/a", "/b/0", "/b/2", "/hours/x", "/hours/mon", "/hours/mon"]
    );
    let text = report.to_text();
    assert!(text.contains("8 problems"), "{text}");
    assert!(text.contains("as a key: ") && text.contains("expected a key like \"x\""), "{text}");
    assert!(!text.contains("not checked"), "{text}");
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Grid {
    at: Airport,
    cells: Vec<serde_json::Value>,
}

#[test]
fn beside_a_text_whose_content_is_too_deep_for_the_call() {
    let options = PlanOptions::default().coercion(CoercionPolicy::lenient());
    let plan = Plan::for_type::<Grid>("grid", options).expect("a plan");
    let text = format!(r#"{{"at":"Rome","cells":"{}{}"}}"#, "[".repeat(127), "]".repeat(127));
    let report = plan.parse::<Grid>(&text).expect_err("refused");
    assert_eq!(paths(&report), ["/at", "/cells"], "{report}");
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
struct Never;

impl TryFrom<String> for Never {
    type Error = String;

    fn try_from(_: String) -> Result<Self, String> {
        Err("no".into())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Closed {
    first: NaiveTime,
    never: Never,
    last: NaiveTime,
}

#[test]
fn without_a_sample_the_report_says_that_later_values_were_not_checked() {
    let report = refused::<Closed>(r#"{"first":"9am","never":"a","last":"9am"}"#);
    assert_eq!(paths(&report), ["/first", "/never"], "{report}");
    assert!(report.to_text().contains("\nValues after /never were not checked.\n"), "{report}");
    assert_eq!(report.to_json()["unchecked_after"], "/never");
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Inner {
    server: SocketAddr,
    time: NaiveTime,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Flat {
    name: String,
    #[serde(flatten)]
    inner: Inner,
}

#[test]
fn what_serde_buffers_is_found_value_by_value() {
    let report = refused::<Flat>(r#"{"name":"n","server":"10.0.0.1","time":"9am"}"#);
    assert_eq!(paths(&report), ["/server", "/time"], "{report}");
    let report = refused::<Flat>(r#"{"name":1,"server":"10.0.0.1","time":"9am"}"#);
    assert_eq!(paths(&report), ["/name", "/server", "/time"], "{report}");
}

/// A span of days.
#[derive(Debug, ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Stay {
    from: NaiveDate,
    #[arg(secret)]
    pin: NaiveTime,
    file: Base64,
    #[arg(validate = even)]
    nights: u32,
    #[arg(pattern = "^[A-Z]{3}$")]
    currency: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a check takes a reference")]
fn even(nights: &u32) -> Result<(), String> {
    if nights.is_multiple_of(2) { Ok(()) } else { Err("must be even".into()) }
}

#[test]
fn beside_checks_own_types_and_secrets() {
    let report = refused::<Stay>(
        r#"{"from":"2026-12-01T00:00:00Z","pin":"9am-secret","file":"%%","nights":3,"currency":"euro"}"#,
    );
    assert_eq!(paths(&report), ["/from", "/pin", "/file", "/nights", "/currency"], "{report}");
    let all = format!("{report} {} {report:?}", report.to_json());
    assert!(!all.contains("9am-secret") && all.contains("(hidden)"), "{all}");
}

#[test]
fn a_foreign_format_alone_never_refuses_but_is_listed_beside_other_faults() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"from": {"type": "string", "minLength": 5}, "date": {"type": "string", "format": "date"}},
        "required": ["from"]
    });
    let plan = Plan::compile("book", &schema, PlanOptions::default()).expect("a plan");
    assert!(plan.parse::<serde_json::Value>(r#"{"from":"berlin","date":"tomorrow"}"#).is_ok());
    let report = plan.parse::<serde_json::Value>(r#"{"from":"ber","date":"tomorrow"}"#).expect_err("refused");
    assert_eq!(paths(&report), ["/from", "/date"], "{report}");
    assert!(
        report.to_text().contains("/date: probably not a valid date; got string \"tomorrow\""),
        "{report}"
    );
    assert_eq!(plan.options().policy(), CoercionPolicy::strict());
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "op")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Expression {
    If { cond: Box<Expression>, then: Box<Expression>, otherwise: Box<Expression> },
    Number { n: i64 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Fare {
    price: Expression,
    from: Airport,
    to: Airport,
}

/// The missing value of a recursive type is replaced by a small one, so that the rest is checked.
#[test]
fn beside_a_missing_value_of_a_recursive_type() {
    let report = refused::<Fare>(r#"{"from":"Rome","to":"FCO"}"#);
    let mut paths = paths(&report);
    paths.sort_unstable();
    assert_eq!(paths, ["/from", "/price"], "{report}");
    assert!(!report.to_text().contains("hecked"), "{report}");
}
