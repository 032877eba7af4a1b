//! Constraints by `#[arg(…)]`, and by the attributes of validators as schemars reads them.

#![expect(dead_code, reason = "what is read is looked at as a whole")]

use agent::ToolArgs;
use agent::args::{Plan, PlanOptions};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[track_caller]
fn plan<T: JsonSchema>() -> Plan {
    Plan::for_type::<T>("t", PlanOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn bad<T: DeserializeOwned + JsonSchema>(sent: &Value, want: &[(&str, &str)]) {
    let Err(report) = plan::<T>().parse::<T>(&sent.to_string()) else { panic!("{sent} was taken") };
    let got: Vec<(&str, &str)> =
        report.issues().iter().map(|issue| (issue.path.as_str(), issue.code.as_str())).collect();
    assert_eq!(got, want, "{report}");
}

#[derive(ToolArgs)]
struct Own {
    #[arg(format = "email", length(..=20))]
    mail: String,
    #[arg(format = "date")]
    day: Option<String>,
    #[arg(multiple_of = 5, range(0..))]
    step: u32,
    #[arg(multiple_of = 0.25)]
    part: Option<f64>,
    #[arg(unique)]
    tags: Vec<String>,
}

#[test]
fn of_our_own() {
    let sent = json!({"mail": "Ann <ann@example.com>", "day": "2026-2-30", "step": 7, "part": 0.3, "tags": ["a", "b", "a"]});
    bad::<Own>(
        &sent,
        &[
            ("/mail", "length"),
            ("/day", "format"),
            ("/step", "range"),
            ("/part", "range"),
            ("/tags/2", "unique"),
        ],
    );
    bad::<Own>(&json!({"mail": "ann@", "step": 0, "tags": []}), &[("/mail", "format")]);
    let sent =
        json!({"mail": "ann@example.com", "day": "2026-02-28", "step": "10", "part": 1.75, "tags": ["a"]});
    assert!(plan::<Own>().parse::<Own>(&sent.to_string()).is_ok());
    let schema = plan::<Own>().schema().clone();
    let of = |name: &str| schema["properties"][name].clone();
    assert_eq!((of("mail")["format"].clone(), of("mail")["maxLength"].clone()), (json!("email"), json!(20)));
    assert_eq!(
        (of("step")["multipleOf"].clone(), of("tags")["uniqueItems"].clone()),
        (json!(5), json!(true))
    );
    assert!(!schema.to_string().contains("x-"), "{schema}");
}

#[test]
fn formats_are_what_json_schema_calls_so() {
    let texts = [
        "",
        "x",
        "2026-11-21",
        "2026-1-2",
        "2024-02-29",
        "2025-02-29",
        "10:30:00Z",
        "10:30Z",
        "10:30:00",
        "23:59:60Z",
        "22:59:60Z",
        "00:29:60+00:30",
        "2026-11-21T10:30:00.5+01:00",
        "2026-11-21 10:30:00Z",
        "2026-11-21t10:30:00z",
        "P1D",
        "PT",
        "P",
        "P1Y2D",
        "P3W",
        "P1W2D",
        "PT1H30M",
        "PT1S",
        "P1DT",
        "a@example.com",
        "a.b+c@x-y.org",
        ".a@x.org",
        "a@-x.org",
        "a@@x.org",
        "example.com",
        "-x.com",
        "x..y",
        "127.0.0.1",
        "127.0.0.01",
        "256.0.0.1",
        "::1",
        "::g",
        "fe80::1%eth0",
        "https://example.com/a?b#c",
        "mailto:x@y.org",
        "//x",
        "a:b#c#d",
        "http://a/[b]",
        "http://[::1]:80/x?y#z",
        "http://[::g]/",
        "http://u:p@a:80",
        "http://a:b",
        "http://a%@41/",
        "http://a@b@c/",
        "https://[::1",
        "http://a b",
        "a:%2",
        "urn:x:%41",
        "1a:b",
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
        "67e5504410b1426f9247bb680e5fe0c8",
        "67E55044-10B1-426F-9247-BB680E5FE0C8",
    ];
    for format in ["date", "time", "date-time", "duration", "email", "ipv4", "ipv6", "uri", "uuid"] {
        let schema = json!({"type": "string", "format": format});
        let oracle = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
        let derived = json!({"type": "object", "properties": {"v": {"type": "string", "format": format, "x-format": true}}});
        let plan = derived_plan(&derived);
        for text in texts {
            let ours = plan.parse::<Value>(&json!({"v": text}).to_string()).is_ok();
            assert_eq!(ours, oracle.is_valid(&json!(text)), "{format}: {text:?}");
        }
    }
}

std::thread_local! {
    static SCHEMA: std::cell::RefCell<Value> = const { std::cell::RefCell::new(Value::Null) };
}

/// A type with whatever schema is wanted.
struct Any;
impl JsonSchema for Any {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Any".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        SCHEMA.with_borrow(|schema| schemars::Schema::try_from(schema.clone()).expect("a schema"))
    }
}

fn derived_plan(schema: &Value) -> Plan {
    SCHEMA.set(schema.clone());
    plan::<Any>()
}

/// Without the derive of the validator.
#[derive(ToolArgs)]
struct Described {
    #[garde(length(min = 2, max = 5))]
    name: String,
    #[validate(range(min = 1, max = 10))]
    count: u32,
    #[garde(email)]
    mail: Option<String>,
    #[schemars(length(max = 2), inner(range(min = 0)))]
    list: Vec<i32>,
    #[schemars(regex(pattern = "^[a-z]+$"))]
    word: String,
    #[schemars(extend("multipleOf" = 3))]
    three: u8,
}

#[test]
fn of_validators_without_their_derives() {
    bad::<Described>(
        &json!({"name": "x", "count": 11, "mail": "x", "list": [1, -1, 2], "word": "A", "three": 4}),
        &[
            ("/name", "length"),
            ("/count", "range"),
            ("/mail", "format"),
            ("/list", "length"),
            ("/list/1", "range"),
            ("/word", "pattern"),
            ("/three", "range"),
        ],
    );
}

/// With it: one set of attributes for both.
#[derive(ToolArgs, garde::Validate)]
#[arg(validate = garde::Validate::validate)]
struct Garde {
    #[garde(length(min = 2), ascii)]
    name: String,
    #[garde(range(min = 1, max = 10))]
    count: u32,
    #[garde(skip)]
    rest: Option<String>,
}

#[derive(ToolArgs, validator::Validate)]
#[arg(validate = validator::Validate::validate)]
struct Validator {
    #[validate(length(min = 2))]
    name: String,
    #[validate(range(min = 1, max = 10), custom(function = "is_odd"))]
    count: u32,
    #[validate(email)]
    mail: Option<String>,
}
fn is_odd(n: u32) -> Result<(), validator::ValidationError> {
    if n % 2 == 1 { Ok(()) } else { Err(validator::ValidationError::new("must be odd")) }
}

#[test]
fn of_validators_with_their_derives() {
    bad::<Garde>(&json!({"name": "x", "count": 0}), &[("/name", "length"), ("/count", "range")]);
    // What the schema cannot say is said by the validator itself, through the hook.
    bad::<Garde>(&json!({"name": "äö", "count": 1}), &[("", "value")]);
    bad::<Validator>(
        &json!({"name": "x", "count": 0, "mail": "y"}),
        &[("/name", "length"), ("/count", "range"), ("/mail", "format")],
    );
    bad::<Validator>(&json!({"name": "xy", "count": 4}), &[("", "value")]);
    assert!(plan::<Validator>().parse::<Validator>(r#"{"name": "xy", "count": "3"}"#).is_ok());
}
