//! The proof of `agent::testing` on every format that the engine enforces: those of types and those that authors ask for.

use agent::testing::{SchemaModel, assert_agrees, fuzz_tools};
use agent::{
    Assistant, ToolArgs,
    args::{Base64, HumanDuration},
    tool, tools,
};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use rust_decimal::Decimal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Url;
use uuid::Uuid;

macro_rules! holds {
    ($($test:ident: $(#[$meta:meta])* $type:ty),* $(,)?) => { $(
        #[test]
        fn $test() {
            #[derive(ToolArgs)]
            #[expect(dead_code, reason = "only whether it parses matters")]
            struct One { $(#[$meta])* value: $type }

            #[derive(ToolArgs)]
            #[expect(dead_code, reason = "only whether it parses matters")]
            struct Nested { name: String, $(#[$meta])* maybe: Option<$type>, all: Vec<One> }

            assert_agrees::<One>();
            assert_agrees::<Nested>();
        }
    )* };
}

holds! {
    chrono_date: NaiveDate, chrono_at: DateTime<Utc>, chrono_with_offset: DateTime<FixedOffset>, chrono_local: NaiveDateTime,
    chrono_time: NaiveTime, jiff_date: jiff::civil::Date, jiff_at: jiff::Timestamp, jiff_local: jiff::civil::DateTime,
    jiff_time: jiff::civil::Time, jiff_zoned: jiff::Zoned, jiff_span: jiff::Span, jiff_duration: jiff::SignedDuration,
    uuid: Uuid, url: Url, decimal: Decimal, ip: IpAddr, ipv4: Ipv4Addr, ipv6: Ipv6Addr, human_duration: HumanDuration,
    base64: Base64,
    text_date: #[arg(format = "date")] String, text_time: #[arg(format = "time")] String,
    text_at: #[arg(format = "date-time")] String, text_duration: #[arg(format = "duration")] String,
    text_email: #[arg(format = "email")] String, text_hostname: #[arg(format = "hostname")] String,
    text_ip: #[arg(format = "ip")] String, text_ipv4: #[arg(format = "ipv4")] String,
    text_ipv6: #[arg(format = "ipv6")] String, text_uri: #[arg(format = "uri")] String,
    text_uuid: #[arg(format = "uuid")] String,
}

#[derive(ToolArgs)]
#[serde(untagged)]
#[expect(dead_code, reason = "only whether it parses matters")]
enum When {
    Day(NaiveDate),
    At(DateTime<Utc>),
    In(u32),
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Reminder {
    when: When,
}

#[test]
fn alternatives_with_formats() {
    assert_agrees::<Reminder>();
}

/// Looks something up.
#[tool(read_only)]
fn look_up(
    id: Uuid,
    day: NaiveDate,
    link: Option<Url>,
    address: IpAddr,
    pause: HumanDuration,
    data: Base64,
) -> String {
    format!("{id} {day} {link:?} {address} {pause} {}", data.len())
}

/// Lists the meetings of a day.
#[tool(read_only)]
fn meetings(#[arg(format = "date")] day: String) -> String {
    day
}

#[tokio::test]
async fn tools_with_formats_are_tried() {
    for report in fuzz_tools(tools![look_up, meetings]).unwrap() {
        report.assert_safe();
    }
    let model = SchemaModel::new();
    let assistant = Assistant::builder(model.clone()).tools(tools![look_up, meetings]).build().unwrap();
    assistant.prompt("Try them.").await.unwrap();
    model.assert_safe();
}
