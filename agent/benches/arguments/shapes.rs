//! What is parsed: types, and texts for them.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A type that is only read.
macro_rules! shapes {
    ($($(#[$meta:meta])* $kind:ident $name:ident { $($body:tt)* })*) => {$(
        #[derive(Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "only read")]
        $(#[$meta])*
        pub(crate) $kind $name { $($body)* }
    )*};
}

shapes! {
    struct Filters { language: String, min_stars: u32, archived: bool }

    #[serde(rename_all = "snake_case")]
    enum Mode { Fast, Thorough }

    struct Small { query: String, limit: u32, filters: Filters, ids: Vec<i64>, mode: Mode }

    struct Pair { a: i64, b: i64 }

    struct Scalars { name: String, city: String, nights: u32, guests: u32, price: f64, paid: bool, late: bool, code: i64 }

    struct Big { path: String, content: String, mode: Mode, create_dirs: bool, lines: u32 }

    struct Many { all: Vec<Filters>, tags: Vec<String> }

    struct Numbers { all: Vec<u64> }

    struct Floats { all: Vec<f64> }

    struct Deep { name: String, below: Vec<Deep> }

    struct Texts { all: BTreeMap<String, String> }

    struct Integers { all: BTreeMap<String, i64> }

    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Tagged { Circle { r: f64, filled: bool }, Rect { w: u32, h: u32, label: String }, Line { length: u32 } }

    struct TaggedOne { shape: Tagged }

    struct TaggedMany { all: Vec<Tagged> }

    #[serde(untagged)]
    enum Untagged { Circle { r: f64, filled: bool }, Rect { w: u32, h: u32, label: String } }

    struct UntaggedOne { shape: Untagged }

    struct UntaggedMany { all: Vec<Untagged> }

    #[serde(rename_all = "snake_case")]
    enum External { Circle { r: f64, filled: bool }, Rect { w: u32, h: u32, label: String }, Line(u32) }

    struct ExternalMany { all: Vec<External> }
}

macro_rules! fifty {
    ($($name:ident)*) => {
        shapes! { struct Fifty { $($name: Option<String>,)* } }
    };
}

fifty! {
    account_id billing_city contact_email delivery_date order_number product_code customer_name invoice_total payment_method shipping_address
    tax_rate unit_price vendor_name warehouse_zone discount_code expiry_date final_status gross_weight handling_fee item_count
    journal_entry key_account lead_time minimum_stock net_weight opening_hours packing_slip quality_grade return_policy sales_region
    tracking_link usage_notes volume_limit waiting_list xray_report yearly_budget zip_code approval_state batch_size currency_code
    default_locale export_format first_contact group_label home_office import_source job_title known_issues last_update main_category
}

pub(crate) const SMALL: &str = r#"{"query":"async runtime","limit":25,"filters":{"language":"rust","min_stars":100,"archived":false},"ids":[1,22,333,4444,55555,666666,7777777,88888888,999999999,10],"mode":"thorough"}"#;
pub(crate) const COERCED: &str = r#"{"query":"async runtime","limit":"25","filters":{"language":"rust","min_stars":"100","archived":"false"},"ids":[1,"22",333,4444,55555,666666,7777777,88888888,999999999,10.0],"mode":"thorough"}"#;
pub(crate) const NESTED_FAULTS: &str = r#"{"qeury":"async runtime","limit":"many","filters":{"language":7,"min_stars":-1,"archived":"maybe"},"ids":[1,22,333],"mode":"throrough"}"#;
pub(crate) const NESTED_FAULT: &str = r#"{"query":"async runtime","limit":25,"filters":{"language":"rust","min_stars":100,"archived":false},"ids":[1,22,333,4444,55555,666666,7777777,88888888,999999999,10],"mode":"throrough"}"#;
pub(crate) const PAIR: &str = r#"{"a":17,"b":4}"#;
pub(crate) const SCALARS: &str = r#"{"name":"Astoria","city":"Lisbon","nights":3,"guests":2,"price":129.5,"paid":true,"late":false,"code":981}"#;
pub(crate) const FAULTS: &str = r#"{"nmae":"Astoria","city":7,"nights":"three","guests":-2,"price":"cheap","paid":"perhaps","late":false,"code":981}"#;
pub(crate) const FAULT: &str = r#"{"name":"Astoria","city":"Lisbon","nigths":3,"guests":2,"price":129.5,"paid":true,"late":false,"code":981}"#;
pub(crate) const TAGGED: &str = r#"{"shape":{"kind":"rect","w":12,"h":30,"label":"door"}}"#;
pub(crate) const UNTAGGED: &str = r#"{"shape":{"w":12,"h":30,"label":"door"}}"#;
pub(crate) const FOUR_OF_FIFTY: &str = r#"{"contact_email":"a@example.com","item_count":"three","sales_region":"north","main_category":"tools"}"#;
pub(crate) const UNKNOWN: &str = r#"{"contact_mail":"a@example.com"}"#;
pub(crate) const UNKNOWNS: &str = r#"{"contact_mail":"a@example.com","itemcounts":"three","sales_regoin":"north","mane_category":"tools","zipkode":"1"}"#;
/// A schema that no type has: with a condition.
pub(crate) const CONDITION: &str = r#"{"type":"object","properties":{"kind":{"enum":["city","place"]},"city":{"type":"string"},"lat":{"type":"number"},"lon":{"type":"number"},"days":{"type":"integer","minimum":1}},"required":["kind"],"if":{"properties":{"kind":{"const":"city"}}},"then":{"required":["city"]},"else":{"required":["lat","lon"]}}"#;
pub(crate) const CONDITIONAL: &str = r#"{"kind":"place","lat":38.72,"lon":-9.14,"days":3}"#;

pub(crate) fn big() -> String {
    let line = "    let value = compute(\\\"input\\\", 42); // some text of a file\\n";
    let content = line.repeat(100_000 / line.len());
    format!(r#"{{"path":"src/main.rs","content":"{content}","mode":"fast","create_dirs":true,"lines":1600}}"#)
}

/// 100 KB again, of small values.
pub(crate) fn many() -> String {
    let one = r#"{"language":"rust","min_stars":100,"archived":false}"#;
    let all = vec![one; 1_500].join(",");
    let tags = vec![r#""async""#; 2_500].join(",");
    format!(r#"{{"all":[{all}],"tags":[{tags}]}}"#)
}

/// 100 KB of one value after the other.
pub(crate) fn list(values: &[&str]) -> String {
    let mut all = String::new();
    for value in values.iter().cycle() {
        if all.len() > 100_000 {
            break;
        }
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(value);
    }
    format!(r#"{{"all":[{all}]}}"#)
}

/// 100 KB of entries with different keys.
pub(crate) fn map(value: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for n in 0..4_000 {
        let comma = if n == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(all, r#"{comma}"key-number-{n}":{}"#, value(n));
    }
    format!(r#"{{"all":{{{all}}}}}"#)
}

/// 100 KB of objects, 40 deep.
pub(crate) fn deep() -> String {
    let mut one = r#"{"name":"leaf","below":[]}"#.to_owned();
    for _ in 0..40 {
        one = format!(r#"{{"name":"inner","below":[{one}]}}"#);
    }
    let all = vec![one; 75].join(",");
    format!(r#"{{"name":"root","below":[{all}]}}"#)
}

pub(crate) const RECTS: [&str; 3] = [
    r#"{"kind":"rect","w":12,"h":30,"label":"door"}"#,
    r#"{"kind":"circle","r":2.5,"filled":true}"#,
    r#"{"kind":"line","length":7}"#,
];
pub(crate) const BARE: [&str; 2] = [r#"{"w":12,"h":30,"label":"door"}"#, r#"{"r":2.5,"filled":true}"#];
pub(crate) const NAMED: [&str; 3] =
    [r#"{"rect":{"w":12,"h":30,"label":"door"}}"#, r#"{"circle":{"r":2.5,"filled":true}}"#, r#"{"line":7}"#];
