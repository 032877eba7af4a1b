//! `#[arg(validate = …)]`: checks of typed values, and where what they find stands in the report.

#![expect(dead_code, reason = "what is read is looked at as a whole, by `Debug`")]
#![expect(clippy::trivially_copy_pass_by_ref, reason = "a check takes a reference")]

use crate::macro_support::{failure, text};
use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions};
use agent::message::ToolCall;
use agent::{Registry, ToolArgs, args::Violations, tool, tools};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;

type Found = Vec<(String, String)>;

/// The path and the words of every issue; all of them must be of the code `value` unless they say otherwise.
#[track_caller]
fn refused<T: DeserializeOwned + JsonSchema + Debug>(text: &str) -> Found {
    let report = report::<T>(text);
    let words = |issue: &agent::args::Issue| match issue.code.as_str() {
        "value" => issue.problem.clone(),
        code => format!("[{code}]"),
    };
    report.issues().iter().map(|issue| (issue.path.clone(), words(issue))).collect()
}

#[track_caller]
fn report<T: DeserializeOwned + JsonSchema + Debug>(text: &str) -> InvalidArguments {
    match plan::<T>().parse::<T>(text) {
        Ok(parsed) => panic!("{text} was taken as {parsed:?}"),
        Err(report) => report,
    }
}

#[track_caller]
fn plan<T: JsonSchema>() -> Plan {
    let options = PlanOptions::default().coercion(CoercionPolicy::strict());
    Plan::for_type::<T>("t", options).unwrap_or_else(|error| panic!("{error}"))
}

fn found(list: &[(&str, &str)]) -> Found {
    list.iter().map(|(path, words)| ((*path).to_owned(), (*words).to_owned())).collect()
}

fn is_even(n: &u32) -> Result<(), String> {
    if n.is_multiple_of(2) { Ok(()) } else { Err(format!("must be even, {n} is not")) }
}

fn is_plain(name: &str) -> Result<(), &'static str> {
    if name.chars().all(char::is_alphabetic) { Ok(()) } else { Err("must be letters only") }
}

fn has_room(list: &[Guest]) -> Result<(), &'static str> {
    if list.len() < 4 { Ok(()) } else { Err("at most 3 guests") }
}

#[derive(ToolArgs, Debug)]
#[arg(validate = in_order)]
#[serde(rename_all = "camelCase")]
struct Booking {
    #[arg(validate = is_plain, alias = "town")]
    city_name: String,
    #[arg(validate = is_even)]
    rooms: Option<u32>,
    first_night: u32,
    last_night: u32,
    #[arg(validate = has_room)]
    guests: Vec<Guest>,
}

#[derive(ToolArgs, Debug)]
struct Guest {
    #[arg(validate = is_plain, rename = "called")]
    name: String,
    #[arg(validate = is_even, default = 2)]
    beds: u32,
}

fn in_order(booking: &Booking) -> Result<(), Violations> {
    let mut found = Violations::new();
    if booking.last_night < booking.first_night {
        found.add("last_night", "must not be before `firstNight`");
    }
    if booking.guests.is_empty() {
        found.add("", "nobody to book for");
    }
    found.into_result()
}

#[test]
fn all_checks_are_told_at_once_and_in_order() {
    let sent = r#"{"guests": [{"called": "Bo1", "beds": 3}, {"called": "Ann"}, {"beds": 1, "called": "C!"}],
        "lastNight": 2, "firstNight": "3", "rooms": 1, "town": "R2"}"#;
    let want = found(&[
        ("/town", "must be letters only"),
        ("/rooms", "must be even, 1 is not"),
        ("/lastNight", "must not be before `firstNight`"),
        ("/guests/0/called", "must be letters only"),
        ("/guests/0/beds", "must be even, 3 is not"),
        ("/guests/2/called", "must be letters only"),
        ("/guests/2/beds", "must be even, 1 is not"),
    ]);
    assert_eq!(refused::<Booking>(sent), want);
    assert_eq!(report::<Booking>(sent).count(), 7);
}

#[test]
fn what_passes_is_taken() {
    let sent = r#"{"cityName": "Rome", "firstNight": 1, "lastNight": "2", "guests": [{"called": "Ann"}]}"#;
    let parsed = plan::<Booking>().parse::<Booking>(sent).expect("passes");
    assert_eq!((parsed.value.rooms, parsed.value.guests[0].beds), (None, 2));
    assert_eq!(parsed.coercions().len(), 1, "recorded once");
    // A check is no part of what the model is shown.
    assert!(!plan::<Booking>().schema().to_string().contains("x-"), "{}", plan::<Booking>().schema());
}

#[test]
fn a_whole_has_an_issue_of_its_own() {
    let sent = r#"{"cityName": "Rome", "firstNight": 3, "lastNight": 1, "guests": []}"#;
    let want = found(&[("/lastNight", "must not be before `firstNight`"), ("", "nobody to book for")]);
    assert_eq!(refused::<Booking>(sent), want);
}

#[test]
fn values_that_fit_are_checked_beside_those_that_do_not() {
    let sent = r#"{"guests": [{"called": "A1"}, {"called": 5}], "cityName": "R2", "firstNight": 3, "lastNight": 1, "x": 1}"#;
    // The booking as a whole has no value, so it is not checked; the first guest has one.
    let want = found(&[
        ("/x", "[unknown]"),
        ("/cityName", "must be letters only"),
        ("/guests/0/called", "must be letters only"),
        ("/guests/1/called", "[type]"),
    ]);
    assert_eq!(refused::<Booking>(sent), want);
}

#[test]
fn the_report_says_what_was_sent() {
    let sent =
        r#"{"cityName": "Rome", "rooms": 3, "firstNight": 1, "lastNight": 2, "guests": [{"called": "Ann"}]}"#;
    let report = report::<Booking>(sent);
    let text = report.to_text();
    assert!(text.contains("1. /rooms: must be even, 3 is not; got number 3\n"), "{text}");
    assert!(text.contains("Invalid arguments for `t`: 1 problem. The tool was not run."), "{text}");
    let json = report.to_json();
    assert_eq!(json["issues"][0]["code"], "value");
    assert_eq!(json["issues"][0]["received"], "number 3");
}

#[test]
fn serde_alone_refuses_too() {
    let sent =
        json!({"cityName": "R1", "rooms": 3, "firstNight": 3, "lastNight": 1, "guests": [{"called": "Ann"}]});
    let error = serde_json::from_value::<Booking>(sent).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "`city_name`: must be letters only; `rooms`: must be even, 3 is not; `last_night`: must not be before `firstNight`"
    );
    let nested = json!({"cityName": "R", "firstNight": 1, "lastNight": 1, "guests": [{"called": "A1"}]});
    let error = serde_json::from_value::<Booking>(nested).expect_err("refused");
    assert_eq!(error.to_string(), "`name`: must be letters only");
}

#[derive(ToolArgs, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Internal {
    Circle {
        #[arg(validate = is_even, rename = "r")]
        radius: u32,
    },
    Nested(Guest),
}

#[derive(ToolArgs, Debug)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    One(#[arg(validate = is_even)] u32),
    Two(u32, #[arg(validate = is_even)] u32),
    Named {
        #[arg(validate = is_even)]
        n: u32,
    },
}

#[derive(ToolArgs, Debug)]
#[serde(rename_all = "lowercase")]
enum External {
    One(#[arg(validate = is_even)] u32),
    Two(u32, #[arg(validate = is_even)] u32),
    Named {
        #[arg(validate = is_even, rename = "m")]
        n: u32,
    },
    Unit,
}

#[derive(ToolArgs, Debug)]
#[serde(untagged)]
enum Untagged {
    Named {
        #[arg(validate = is_even)]
        n: u32,
        m: u32,
    },
    Other {
        n: u32,
        z: bool,
    },
    Word(String),
}

#[derive(ToolArgs, Debug)]
struct Enums {
    internal: Internal,
    adjacent: Vec<Adjacent>,
    external: Vec<External>,
}

#[test]
fn fields_of_every_kind_of_enum() {
    let sent = r#"{"internal": {"r": 1, "kind": "circle"},
        "adjacent": [{"t": "One", "c": 1}, {"t": "Two", "c": [1, 3]}, {"c": {"n": 1}, "t": "Named"}, {"t": "One", "c": 2}],
        "external": [{"one": 1}, {"two": [2, 1]}, {"named": {"m": 5}}, "unit"]}"#;
    let paths: Vec<String> = refused::<Enums>(sent).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "/internal/r",
            "/adjacent/0/c",
            "/adjacent/1/c/1",
            "/adjacent/2/c/n",
            "/external/0/one",
            "/external/1/two/1",
            "/external/2/named/m",
        ]
    );
    // Through serde's buffer, where the fields of another type are handed over.
    let sent = r#"{"internal": {"kind": "nested", "called": "1"}, "adjacent": [], "external": []}"#;
    assert_eq!(refused::<Enums>(sent), found(&[("/internal/called", "must be letters only")]));
}

#[test]
fn skipped_fields_of_a_tuple_are_no_items() {
    #[derive(ToolArgs, Debug)]
    struct Named(#[arg(skip)] u8, #[arg(validate = is_plain)] String, String);
    #[derive(ToolArgs, Debug)]
    struct Holds {
        named: Named,
    }
    assert_eq!(refused::<Holds>(r#"{"named": ["1", "2"]}"#), found(&[("/named/0", "must be letters only")]));
}

#[test]
fn a_refused_alternative_is_none() {
    #[derive(ToolArgs, Debug)]
    struct One {
        either: Untagged,
        #[arg(validate = is_even)]
        n: u32,
    }
    // The second alternative fits, though the check of the first one ran before it was given up.
    let sent = r#"{"either": {"n": 3, "z": true}, "n": 2}"#;
    assert!(plan::<One>().parse::<One>(sent).is_ok());
    assert_eq!(
        refused::<One>(r#"{"either": {"n": 3, "z": true}, "n": 3}"#),
        found(&[("/n", "must be even, 3 is not")])
    );
    let paths: Vec<String> =
        refused::<One>(r#"{"n": 3, "either": {"n": 3, "m": 1}}"#).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/either/n", "/n"]);
}

#[derive(ToolArgs, Debug)]
#[serde(untagged)]
enum OneOf {
    Number { number: Wrapped },
    Guest(Guest),
    Word(String),
}

#[test]
fn inside_of_an_untagged_enum_a_refusal_is_that_of_serde() {
    #[derive(ToolArgs, Debug)]
    struct Two {
        one: OneOf,
        #[arg(validate = is_even)]
        n: u32,
    }
    let sent = r#"{"one": {"called": "1x"}, "n": 1}"#;
    let got = refused::<Two>(sent);
    assert_eq!(got, found(&[("/one/called", "fits no alternative"), ("/n", "must be even, 1 is not")]));
    assert!(plan::<Two>().parse::<Two>(r#"{"one": "1x", "n": 2}"#).is_ok());
    assert!(plan::<Two>().parse::<Two>(r#"{"one": {"number": "4"}, "n": 2}"#).is_ok());
}

#[derive(ToolArgs, Debug)]
struct Flat {
    #[arg(validate = is_even)]
    n: u32,
    #[arg(flatten)]
    guest: Guest,
    deep: Deep,
}
#[derive(ToolArgs, Debug)]
struct Deep {
    #[arg(flatten)]
    guest: Guest,
}

#[test]
fn flattened_fields_have_their_places() {
    let sent = r#"{"n": 1, "called": "x1", "beds": 1, "deep": {"called": "y1"}}"#;
    let want = found(&[
        ("/n", "must be even, 1 is not"),
        ("/called", "must be letters only"),
        ("/beds", "must be even, 1 is not"),
        ("/deep/called", "must be letters only"),
    ]);
    assert_eq!(refused::<Flat>(sent), want);
}

#[derive(ToolArgs, Debug)]
#[arg(validate = is_consistent)]
struct Account {
    #[arg(validate = is_plain)]
    user: String,
    #[arg(secret, validate = is_strong)]
    password: String,
    other: Inner,
}
#[derive(ToolArgs, Debug)]
struct Inner {
    #[arg(validate = is_plain)]
    note: String,
}
fn is_strong(password: &str) -> Result<(), String> {
    Err(format!("`{password}` is weak"))
}
fn is_consistent(account: &Account) -> Result<(), Violations> {
    Err(Violations::new().at("user", format!("same as {}", account.password)).at("", &account.password))
}

#[test]
fn secrets_stay_secret() {
    let report = report::<Account>(r#"{"user": "u1", "password": "hush", "other": {"note": "n1"}}"#);
    let text = format!("{} {} {report:?}", report.to_text(), report.to_json());
    assert!(!text.contains("hush"), "{text}");
    let issues: Vec<(&str, &str)> =
        report.issues().iter().map(|issue| (issue.path.as_str(), issue.problem.as_str())).collect();
    let hidden = "refused by the tool's own check";
    assert_eq!(
        issues,
        [
            ("/user", "must be letters only"),
            ("/user", hidden),
            ("/password", hidden),
            ("/other/note", "must be letters only"),
            ("", hidden),
        ]
    );
}

#[derive(ToolArgs, Debug)]
struct Wrapped(#[arg(validate = is_even)] u32);

#[derive(ToolArgs, Debug)]
#[arg(validate = is_full)]
struct Page<T> {
    items: Vec<T>,
    #[arg(validate = is_even)]
    size: u32,
}
fn is_full<T>(page: &Page<T>) -> Result<(), String> {
    if page.items.is_empty() { Err("no items".into()) } else { Ok(()) }
}

#[derive(ToolArgs, Debug)]
struct Containers {
    one: Wrapped,
    maybe: Option<Wrapped>,
    map: std::collections::BTreeMap<String, Wrapped>,
    page: Option<Box<Page<Wrapped>>>,
}

#[test]
fn checks_inside_of_containers() {
    let sent = r#"{"one": 1, "maybe": "3", "map": {"b/c": 5, "a": 2}, "page": {"items": [], "size": 7}}"#;
    let want = found(&[
        ("/one", "must be even, 1 is not"),
        ("/maybe", "must be even, 3 is not"),
        ("/map/b~1c", "must be even, 5 is not"),
        ("/page/size", "must be even, 7 is not"),
        ("/page", "no items"),
    ]);
    assert_eq!(refused::<Containers>(sent), want);
}

/// Counts.
#[tool]
fn count(
    #[arg(validate = is_even, rename = "count")] n: u32,
    #[arg(validate = is_plain)] name: &str,
) -> String {
    format!("{n} {name}")
}

struct Limits;
impl Limits {
    fn is_small(n: &u32) -> Result<(), String> {
        if *n < 10 { Ok(()) } else { Err("too many".into()) }
    }
}
#[tool]
impl Limits {
    /// Adds one.
    #[tool]
    fn add(&self, #[arg(validate = Self::is_small, validate = is_even)] n: u32) -> u32 {
        n + 1
    }
}

#[tokio::test]
async fn parameters_are_checked() {
    assert_eq!(text(tools![count], "count", r#"{"count": "4", "name": "x"}"#).await, "4 x");
    let (code, report) = failure(tools![count], "count", r#"{"count": "3", "name": "1"}"#).await;
    assert_eq!(code, "invalid_arguments");
    assert!(report.contains("1. /count: must be even, 3 is not; got string \"3\"\n2. /name: "), "{report}");
    assert_eq!(text(tools![{ Limits }], "add", r#"{"n": 4}"#).await, "5");
    let (_, report) = failure(tools![{ Limits }], "add", r#"{"n": 11}"#).await;
    assert!(report.contains("1. /n: too many; got number 11\n2. /n: must be even"), "{report}");
}

#[derive(ToolArgs, Debug)]
struct Naming {
    #[arg(validate = of_nobody)]
    list: Vec<Guest>,
}
fn of_nobody(_: &[Guest]) -> Result<(), Violations> {
    Err(Violations::new()
        .at("1/name", "first")
        .at("9/name", "beyond")
        .at("nothing", "unknown")
        .at("", "  many\n lines "))
}

#[test]
fn names_lead_where_they_can() {
    let sent = r#"{"list": [{"called": "a"}, {"called": "b"}]}"#;
    let got = refused::<Naming>(sent);
    // An index beyond the end is a place, a name of nothing is told in words.
    assert_eq!(
        got,
        found(&[
            ("/list/1/called", "first"),
            ("/list/9/called", "beyond"),
            ("/list", "`nothing`: unknown"),
            ("/list", "many lines"),
        ])
    );
}

#[test]
fn reports_are_bounded() {
    #[derive(ToolArgs, Debug)]
    struct Many {
        #[arg(validate = at_length)]
        n: u32,
        list: Vec<Wrapped>,
    }
    fn at_length(_: &u32) -> Result<(), String> {
        Err("x".repeat(1_000_000))
    }
    let list: Vec<u32> = std::iter::repeat_n(1, 30_000).collect();
    let report = report::<Many>(&json!({"n": 1, "list": list}).to_string());
    assert!(report.issues().len() <= 10_000 && report.to_text().len() < 20_000);
    assert!(report.issues()[0].problem.len() < 1_000);
}

#[derive(ToolArgs, Debug)]
#[arg(validate = is_allowed)]
struct Transfer {
    to: String,
    amount: u32,
    #[arg(secret)]
    pin: Option<String>,
}
fn is_allowed(transfer: &Transfer) -> Result<(), Violations> {
    let mut found = Violations::new();
    if transfer.to == "me" {
        found.add("to", "must be somebody else");
    }
    if transfer.to == "leak" {
        found.add("to", format!("does not go with {:?}", transfer.pin));
    }
    if transfer.to == "part" {
        found.add("to", "ends with 567, too");
    }
    if transfer.amount > 100 {
        found.add("", "at most 100 without a manager");
    }
    found.into_result()
}

#[test]
fn a_secret_silences_only_what_may_quote_it() {
    let hidden = "refused by the tool's own check";
    let pin = |to: &str, amount: u32| json!({"to": to, "amount": amount, "pin": "1234567"}).to_string();
    // About another field, and without a part of the secret.
    assert_eq!(refused::<Transfer>(&pin("me", 1)), found(&[("/to", "must be somebody else")]));
    for to in ["leak", "part"] {
        assert_eq!(refused::<Transfer>(&pin(to, 1)), found(&[("/to", hidden)]));
    }
    // About the whole, which has the secret.
    assert_eq!(refused::<Transfer>(&pin("x", 101)), found(&[("", hidden)]));
    // No secret was sent.
    assert_eq!(
        refused::<Transfer>(r#"{"to": "me", "amount": 101, "pin": null}"#),
        found(&[("/to", "must be somebody else"), ("", "at most 100 without a manager")])
    );
    assert_eq!(
        refused::<Transfer>(r#"{"to": "leak", "amount": 1}"#),
        found(&[("/to", "does not go with None")])
    );
}

fn breaks(_: &u32) -> Result<(), String> {
    panic!("a fault of the check")
}

/// Opens a door.
#[tool]
fn open_door(#[arg(validate = breaks)] number: u32) -> u32 {
    number
}

#[tokio::test]
async fn a_check_that_panics_is_told_as_a_call_that_was_not_run() {
    let (code, words) = failure(tools![open_door], "open_door", r#"{"number": 1}"#).await;
    let want = "The check of the tool's arguments crashed. The tool was not run.";
    assert_eq!((code.as_str(), words.as_str()), ("prepare_error", want));
    let call = ToolCall::new("1", "open_door", r#"{"number": 1}"#);
    let error = Registry::new(tools![open_door]).unwrap().validate(&call).unwrap_err();
    assert_eq!(error.to_string(), want);
}
