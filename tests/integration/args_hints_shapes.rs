//! The calls that are offered where a value has the right content in another shape.

use agent::ToolArgs;
use agent::args::{InvalidArguments, Plan, PlanOptions};
use chrono::{DateTime, Utc};

#[derive(ToolArgs)]
enum Sort {
    Newest,
    Oldest,
}

#[derive(ToolArgs)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Filter {
    Range { from: i64, to: i64 },
    Any,
}

#[derive(ToolArgs)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Size {
    Small,
    Exact { width: u32 },
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct User {
    login: String,
    id: Option<u64>,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Person {
    name: String,
    nickname: Option<String>,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Search {
    query: String,
    sort: Option<Sort>,
    filters: Option<Vec<Filter>>,
    size: Option<Size>,
    labels: Option<Vec<String>>,
    user: Option<User>,
    person: Option<Person>,
    at: Option<DateTime<Utc>>,
}

#[track_caller]
fn refused(entry: &str) -> InvalidArguments {
    let plan = Plan::for_type::<Search>("search", PlanOptions::default()).expect("a plan");
    plan.parse::<Search>(&format!(r#"{{"query":"q",{entry}}}"#)).map(|_| ()).expect_err("refused")
}

#[track_caller]
fn offers(cases: &[(&str, Option<&str>)]) {
    for (sent, meant) in cases {
        let report = refused(sent);
        let meant = meant.map(|meant| format!(r#"{{"query":"q",{meant}}}"#));
        assert_eq!(report.corrected(), meant.as_deref(), "{report}");
    }
}

#[test]
fn a_word_in_another_shape_is_not_nothing() {
    offers(&[
        (r#""sort":{"Newest":{}}"#, Some(r#""sort":"Newest""#)),
        (r#""sort":{"Newest":null}"#, Some(r#""sort":"Newest""#)),
        (r#""sort":{"Newest":true}"#, Some(r#""sort":"Newest""#)),
        (r#""sort":["Newest"]"#, Some(r#""sort":"Newest""#)),
        (r#""sort":{"value":"Newest"}"#, Some(r#""sort":"Newest""#)),
        (r#""size":{"small":{}}"#, Some(r#""size":"small""#)),
        (r#""size":{"small":null}"#, Some(r#""size":"small""#)),
        (r#""filters":[{"any":{}}]"#, Some(r#""filters":[{"type":"any"}]"#)),
        (r#""filters":["any"]"#, Some(r#""filters":[{"type":"any"}]"#)),
        // Content that the word does not have, and what the variant needs.
        (r#""sort":{"Newest":{"first":1}}"#, None),
        (r#""sort":{"Newest":false}"#, None),
        (r#""sort":["Newest","Oldest"]"#, None),
        (r#""sort":["Latest"]"#, None),
        (r#""filters":["range"]"#, None),
        (r#""size":{"exact":{}}"#, None),
    ]);
    let report = refused(r#""sort":{"Newest":{}}"#);
    assert!(!report.to_text().contains("leave it out"), "{report}");
    let report = refused(r#""filters":[{"range":{}}]"#);
    assert!(!report.to_text().contains("leave it out") && report.corrected().is_none(), "{report}");
}

#[test]
fn objects_without_a_word_are_still_nothing() {
    for sent in [
        r#""sort":{}"#,
        r#""sort":{"value":null}"#,
        r#""filters":[{}]"#,
        r#""user":{"login":null}"#,
        r#""size":{"exact":null,"small":null}"#,
    ] {
        let report = refused(sent);
        assert!(report.to_text().contains("leave it out"), "{sent}: {report}");
    }
}

#[test]
fn numbered_keys_are_a_list() {
    offers(&[
        (r#""labels":{"0":"bug","1":"ui"}"#, Some(r#""labels":["bug","ui"]"#)),
        (r#""labels":{"0":"bug"}"#, Some(r#""labels":["bug"]"#)),
        (r#""filters":{"0":{"type":"any"}}"#, Some(r#""filters":[{"type":"any"}]"#)),
        (r#""labels":{"1":"bug","2":"ui"}"#, None),
        (r#""labels":{"0":"bug","a":"ui"}"#, None),
        (r#""labels":{"0":"bug","1":{}}"#, None),
    ]);
    let report = refused(r#""labels":{"0":"bug","1":"ui"}"#);
    assert!(report.to_text().contains("send a JSON array, not an object with numbered keys"), "{report}");
}

#[test]
fn a_value_for_an_object_is_offered_for_its_only_field() {
    offers(&[
        (r#""user":"octocat""#, Some(r#""user":{"login":"octocat"}"#)),
        // The field that is required is not the one that it fits.
        (r#""user":7"#, None),
        // Two fields take it.
        (r#""person":"Ann""#, None),
        (r#""user":"{login: octocat""#, None),
    ]);
}

#[test]
fn what_a_date_time_lacks_is_named() {
    for (sent, said) in [
        ("2026-12-01", "a date without its time"),
        ("2026-12-01T10:00:00", "a date-time without its time zone"),
    ] {
        let report = refused(&format!(r#""at":"{sent}""#));
        assert!(report.to_text().contains(&format!("/at: {said}")), "{report}");
    }
}

#[test]
fn two_calls_in_one_are_named() {
    let plan = Plan::for_type::<Search>("search", PlanOptions::default()).expect("a plan");
    for sent in [r#"{"query":"a"}{"query":"b"}"#, "{\"query\":\"a\"}\n{\"query\":\"b\"}"] {
        let report = plan.parse::<Search>(sent).map(|_| ()).expect_err("refused");
        assert!(report.to_text().contains("send one object in each call"), "{report}");
        assert_eq!(report.corrected(), None);
    }
    let report = plan.parse::<Search>(r#"{"query":"a"} and so on"#).map(|_| ()).expect_err("refused");
    assert!(!report.to_text().contains("in each call"), "{report}");
}
