//! Types of other crates, bytes and durations: what is taken, and how what is not is explained.

use super::{W, bad, ok, parse, plan, w};
use agent::args::{Base64, CoercionPolicy, HumanDuration, PlanOptions};
use agent::{ToolArgs, tool};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc, Weekday};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use url::Url;
use uuid::Uuid;

const EVERY: [CoercionPolicy; 3] =
    [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()];

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Formats {
    day: NaiveDate,
    at: DateTime<Utc>,
    local: NaiveDateTime,
    time: NaiveTime,
    weekday: Weekday,
    jiff_day: jiff::civil::Date,
    jiff_at: jiff::Timestamp,
    span: jiff::SignedDuration,
    id: Uuid,
    link: Url,
    price: Decimal,
}

#[test]
fn every_bad_format_at_once() {
    bad::<Formats>(
        r#"{"day":"2026-02-30","at":"yesterday","local":"noon","time":"25:00","weekday":"Friday",
            "jiff_day":"21.11.2026","jiff_at":"now","span":"90","id":"67e55044","link":"example","price":"1,50"}"#,
        &[
            ("/day", "format"),
            ("/at", "format"),
            ("/local", "format"),
            ("/time", "format"),
            ("/weekday", "enum"),
            ("/jiff_day", "format"),
            ("/jiff_at", "format"),
            ("/span", "format"),
            ("/id", "format"),
            ("/link", "format"),
            ("/price", "pattern"),
        ],
    );
    let report = plan::<Formats>(PlanOptions::default()).parse::<Formats>(r#"{"day":"x"}"#).expect_err("bad");
    let text = report.to_text();
    for line in [
        "1. /day: not a valid date; got string \"x\"; expected string (date, like 2026-11-21)",
        "  at: string (date-time, like 2026-11-21T10:30:00Z)",
        "  weekday: \"Mon\" | \"Tue\"",
        "  id: string (UUID, like 67e55044-10b1-426f-9247-bb680e5fe0c8)",
        "  link: string (URL, like https://example.com)",
        "  span: string (duration, like 1h 30m or PT1H30M)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn never_stricter_than_the_type() {
    let day = NaiveDate::from_ymd_opt(2026, 1, 2).expect("a day");
    // chrono's own spellings.
    ok(r#"{"v":"2026-1-2"}"#, w(day));
    ok(
        r#"{"v":"2026-01-02 10:30:00.5 +01:00"}"#,
        w("2026-01-02T09:30:00.5Z".parse::<DateTime<Utc>>().expect("at")),
    );
    ok(r#"{"v":"2026-01-02T10:30:00"}"#, w(day.and_hms_opt(10, 30, 0).expect("a time")));
    ok(r#"{"v":"10:30"}"#, w(NaiveTime::from_hms_opt(10, 30, 0).expect("a time")));
    ok(r#"{"v":"20260102"}"#, w(jiff::civil::date(2026, 1, 2)));
    ok(r#"{"v":"2026-01-02"}"#, w(jiff::civil::date(2026, 1, 2).at(0, 0, 0, 0)));
    ok(r#"{"v":"1999-01-02T10:30"}"#, w(jiff::civil::time(10, 30, 0, 0)));
    ok(r#"{"v":"2 hours 30 minutes"}"#, w(jiff::SignedDuration::from_mins(150)));
    ok(r#"{"v":"PT2H30M"}"#, w(jiff::SignedDuration::from_mins(150)));
    let id: Uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().expect("an id");
    for text in ["67e5504410b1426f9247bb680e5fe0c8", "urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8"] {
        ok(&json!({"v": text}).to_string(), w(id));
    }
    ok(r#"{"v":"mailto:a@example.com"}"#, w(Url::parse("mailto:a@example.com").expect("a URL")));
}

#[test]
fn numbers_are_no_formatted_text() {
    for policy in EVERY {
        for text in [r#"{"v":20260102}"#, r#"{"v":1.5}"#, r#"{"v":null}"#, r#"{"v":true}"#] {
            assert!(parse::<W<NaiveDate>>(policy, text).is_err(), "{policy:?} {text}");
            assert!(parse::<W<Uuid>>(policy, text).is_err(), "{policy:?} {text}");
            assert!(parse::<W<HumanDuration>>(policy, text).is_err(), "{policy:?} {text}");
            assert!(parse::<W<Base64>>(policy, text).is_err(), "{policy:?} {text}");
        }
    }
}

#[test]
fn decimals_are_text_or_numbers() {
    let price = |text: &str| text.parse::<Decimal>().expect("a number");
    for policy in EVERY {
        for (text, want) in [
            (r#"{"v":"1.50"}"#, "1.50"),
            (r#"{"v":1.5}"#, "1.5"),
            (r#"{"v":-3}"#, "-3"),
            (r#"{"v":"12345678901234567890.123456789"}"#, "12345678901234567890.123456789"),
        ] {
            let (got, coerced) =
                parse::<W<Decimal>>(policy, text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!((got.v, coerced.len()), (price(want), 0), "{text}");
        }
    }
    bad::<W<Decimal>>(r#"{"v":"1.5 EUR"}"#, &[("/v", "pattern")]);
    bad::<W<Decimal>>(r#"{"v":true}"#, &[("/v", "type")]);
    bad::<W<Vec<Decimal>>>(r#"{"v":["1", "one", 2, null]}"#, &[("/v/1", "pattern"), ("/v/3", "type")]);
    // Beyond what the type holds, as it says itself.
    bad::<W<Decimal>>(r#"{"v":"99999999999999999999999999999999"}"#, &[("/v", "value")]);
}

#[test]
fn keys_of_maps() {
    let id: Uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().expect("an id");
    ok(r#"{"v":{"67e55044-10b1-426f-9247-bb680e5fe0c8":"2"}}"#, w(BTreeMap::from([(id, 2)])));
    bad::<W<BTreeMap<Uuid, i32>>>(r#"{"v":{"67e5":1}}"#, &[("/v/67e5", "value")]);
    let day = NaiveDate::from_ymd_opt(2026, 1, 2).expect("a day");
    ok(r#"{"v":{"2026-01-02":"2"}}"#, w(BTreeMap::from([(day, 2)])));
    bad::<W<BTreeMap<NaiveDate, i32>>>(r#"{"v":{"tomorrow":1}}"#, &[("/v/tomorrow", "value")]);
    ok(r#"{"v":["67e5504410b1426f9247bb680e5fe0c8"]}"#, w(BTreeSet::from([id])));
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Job {
    data: Base64,
    timeout: HumanDuration,
    #[arg(default = HumanDuration::from(Duration::from_secs(90)))]
    pause: HumanDuration,
    more: Option<Vec<Base64>>,
}

#[test]
fn bytes_and_durations() {
    let job = |timeout: u64| Job {
        data: b"hi".to_vec().into(),
        timeout: Duration::from_secs(timeout).into(),
        pause: Duration::from_secs(90).into(),
        more: None,
    };
    ok(r#"{"data":"aGk=","timeout":"1h 30m"}"#, job(5_400));
    ok(r#"{"data":"aGk=","timeout":"PT90S","more":null}"#, job(90));
    let sent = r#"{"data":"aGk","timeout":"5 parsecs","pause":"90","more":["AA==","A"]}"#;
    bad::<Job>(
        sent,
        &[("/data", "value"), ("/timeout", "value"), ("/pause", "format"), ("/more/1", "value")],
    );
    let sent = r#"{"data":"aGk","timeout":"5 parsecs","pause":"2 years","more":["AA==","A"]}"#;
    bad::<Job>(sent, &[("/data", "value"), ("/timeout", "value"), ("/pause", "value"), ("/more/1", "value")]);
    let report = plan::<Job>(PlanOptions::default()).parse::<Job>(sent).expect_err("bad");
    let text = report.to_text();
    assert!(
        text.contains(
            "1. /data: is not base64: the padding (`=`) at its end is missing or wrong; got string \"aGk\"\n"
        ),
        "{text}"
    );
    assert!(text.contains("  timeout: string (duration, like 1h 30m or PT1H30M)\n"), "{text}");
    assert!(text.contains("  pause?: string (duration, like 1h 30m or PT1H30M) = \"1m 30s\"\n"), "{text}");
    assert!(text.contains("  data: string (base64)\n"), "{text}");
    assert_eq!(schemars::schema_for!(Base64).to_value()["contentEncoding"], "base64");
}

/// Waits.
#[tool]
fn wait(
    until: DateTime<Utc>,
    poll: Option<HumanDuration>,
    id: Uuid,
    amount: Decimal,
    link: Url,
    data: Base64,
) -> String {
    format!("{until} {:?} {id} {amount} {link} {data:?}", poll.map(HumanDuration::get))
}

#[tokio::test]
async fn as_parameters_of_tools() {
    use crate::macro_support::{failure, text};
    let sent = r#"{"until":"2026-11-21T10:30:00+01:00","poll":"250ms","id":"67e55044-10b1-426f-9247-bb680e5fe0c8",
        "amount":1.25,"link":"https://example.com","data":"AAE="}"#;
    assert_eq!(
        text(agent::tools![wait], "wait", sent).await,
        "2026-11-21 09:30:00 UTC Some(250ms) 67e55044-10b1-426f-9247-bb680e5fe0c8 1.25 https://example.com/ Base64(2 bytes)"
    );
    let (code, report) = failure(agent::tools![wait], "wait", &sent.replace("250ms", "-1s")).await;
    assert_eq!(code, "invalid_arguments");
    assert!(report.contains("1. /poll: is not a duration: write it without a sign"), "{report}");
}
