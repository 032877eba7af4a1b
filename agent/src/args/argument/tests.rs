//! Tests that reading one parameter gives the same value as the tool receives, for every spelling of the arguments.

use std::collections::BTreeMap;
use std::fmt::Debug;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{ArgumentError, argument_without_plan};
use crate::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
struct Who {
    #[serde(alias = "usr")]
    #[schemars(extend("x-aliases" = ["usr"]))]
    user: String,
    level: Option<u8>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Target {
    File {
        #[serde(alias = "file")]
        #[schemars(extend("x-aliases" = ["file"]))]
        path: String,
        size: Option<u64>,
    },
    Owner {
        who: Who,
    },
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Action {
    Move { to: String },
    Count(u128),
    Stay,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(untagged)]
enum Either {
    Named {
        #[serde(alias = "title")]
        #[schemars(extend("x-aliases" = ["title"]))]
        name: String,
    },
    Counted {
        count: u32,
    },
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", content = "data", rename_all = "lowercase")]
enum Adjacent {
    One(u64),
    Many { list: Vec<u64> },
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
struct Place {
    #[serde(alias = "town")]
    #[schemars(extend("x-aliases" = ["town"]))]
    city: String,
}

fn seven() -> u8 {
    7
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
struct Everything {
    #[serde(alias = "sum", alias = "total")]
    #[schemars(extend("x-aliases" = ["sum", "total"]))]
    amount: u128,
    who: Option<Who>,
    list: Vec<Who>,
    by_number: BTreeMap<i32, Who>,
    target: Target,
    action: Action,
    either: Either,
    adjacent: Adjacent,
    #[serde(default = "seven")]
    count: u8,
    #[serde(default)]
    flag: bool,
    ratio: f64,
    #[serde(flatten)]
    place: Place,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
struct WithFlattened {
    id: u64,
    #[serde(flatten)]
    target: Target,
}

fn plan<T: JsonSchema>(policy: CoercionPolicy) -> Plan {
    Plan::for_type::<T>("t", PlanOptions::default().coercion(policy)).expect("a plan")
}

fn is_field<T: DeserializeOwned + PartialEq + Debug>(plan: &Plan, sent: &str, name: &str, field: &T) {
    assert_eq!(plan.argument::<T>(sent, name).as_ref(), Ok(field), "{name} of {sent}");
    let checked = plan.parse::<Value>(sent).expect("valid").value.to_string();
    assert_eq!(plan.checked_argument::<T>(&checked, name).as_ref(), Ok(field), "{name} of {checked}");
}

/// Returns one of 5,184 spellings of the same arguments. `choice` selects one item from each list.
fn spelled(mut choice: usize) -> String {
    let mut pick = |all: &[&str]| {
        let picked = all.get(choice % all.len()).copied().unwrap_or_default().to_owned();
        choice /= all.len();
        picked
    };
    let action = pick(&[
        r#"{"move": {"to": "y"}}"#,
        r#"{"count": 340282366920938463463374607431768211455}"#,
        r#""stay""#,
    ]);
    let target = pick(&[
        r#"{"kind": "file", "file": "x", "size": 5}"#,
        r#"{"path": "x", "kind": "file", "size": null}"#,
        r#"{"who": {"usr": "ann"}, "kind": "owner"}"#,
    ]);
    let either = pick(&[r#"{"title": "z"}"#, r#"{"count": 3}"#]);
    let adjacent = pick(&[r#"{"data": 4, "kind": "one"}"#, r#"{"kind": "many", "data": {"list": [1, 2]}}"#]);
    let who = pick(&["", r#""who": null,"#, r#""who": {"usr": "bob", "level": 2},"#]);
    let amount = pick(&["amount", "sum", "total"]);
    let number = pick(&["5", "1000000000000000000000000000001"]);
    let rest = pick(&["", r#""count": 9, "flag": true,"#]);
    let (city, key) = (pick(&["city", "town"]), pick(&["7", "07"]));
    format!(
        r#"{{{who} {rest} "{amount}": {number}, "list": [{{"usr": "eve"}}], "by_number": {{"{key}": {{"user": "x"}}}},
            "target": {target}, "action": {action}, "either": {either}, "adjacent": {adjacent}, "ratio": 1e3, "{city}": "Rome"}}"#
    )
}

#[test]
fn a_parameter_is_the_field_of_the_tool_in_every_form() {
    for policy in [CoercionPolicy::strict(), CoercionPolicy::exact(), CoercionPolicy::lenient()] {
        let plan = plan::<Everything>(policy);
        let mut read = 0;
        // Tests every seventh combination. Each item of each list in `spelled` still occurs.
        for choice in (0..5184).step_by(7) {
            let sent = spelled(choice);
            // Not every policy accepts every spelling.
            let Ok(all) = plan.parse::<Everything>(&sent).map(|parsed| parsed.value) else { continue };
            read += 1;
            is_field(&plan, &sent, "amount", &all.amount);
            is_field(&plan, &sent, "sum", &all.amount);
            is_field(&plan, &sent, "who", &all.who);
            is_field(&plan, &sent, "list", &all.list);
            is_field(&plan, &sent, "by_number", &all.by_number);
            is_field(&plan, &sent, "target", &all.target);
            is_field(&plan, &sent, "either", &all.either);
            is_field(&plan, &sent, "adjacent", &all.adjacent);
            is_field(&plan, &sent, "action", &all.action);
            is_field(&plan, &sent, "count", &all.count);
            is_field(&plan, &sent, "flag", &all.flag);
            is_field(&plan, &sent, "ratio", &all.ratio);
            is_field(&plan, &sent, "city", &all.place.city);
        }
        assert!(read > 100, "{read} of these policies: {policy:?}");
    }
}

#[test]
fn roots_of_every_kind_have_parameters() {
    let tagged = plan::<Target>(CoercionPolicy::strict());
    let file = r#"{"file": "x", "kind": "file", "size": "12"}"#;
    is_field(&tagged, file, "path", &"x".to_owned());
    is_field(&tagged, file, "size", &Some(12_u64));
    is_field(&tagged, file, "kind", &"file".to_owned());
    is_field(&tagged, file, "who", &None::<Who>);
    assert!(matches!(tagged.argument::<Who>(file, "who"), Err(ArgumentError::Missing { .. })));
    let owner = r#"{"kind": "owner", "who": {"usr": "ann"}}"#;
    is_field(&tagged, owner, "who", &Who { user: "ann".to_owned(), level: None });

    let untagged = plan::<Either>(CoercionPolicy::strict());
    is_field(&untagged, r#"{"title": "z"}"#, "name", &"z".to_owned());
    is_field(&untagged, r#"{"title": "z"}"#, "count", &None::<u32>);
    is_field(&untagged, r#"{"count": "3"}"#, "count", &3_u32);

    let adjacent = plan::<Adjacent>(CoercionPolicy::strict());
    is_field(&adjacent, r#"{"data": 4, "kind": "one"}"#, "data", &4_u64);

    let flattened = plan::<WithFlattened>(CoercionPolicy::strict());
    let sent = r#"{"size": 3, "file": "x", "id": "9", "kind": "file"}"#;
    is_field(&flattened, sent, "id", &9_u64);
    is_field(&flattened, sent, "path", &"x".to_owned());
    is_field(&flattened, sent, "size", &3_u64);

    // This schema does not come from a Rust type. It has a condition, and it allows keys that it does not list.
    let schema = json!({
        "type": "object",
        "properties": {"kind": {"enum": ["mail", "call"]}, "minutes": {"type": "integer", "default": 10}},
        "required": ["kind"], "additionalProperties": {"type": "integer"},
        "if": {"properties": {"kind": {"const": "call"}}}, "then": {"properties": {"minutes": {"maximum": 60}}},
    });
    let foreign = Plan::compile("t", &schema, PlanOptions::default()).unwrap();
    is_field(&foreign, r#"{"kind": "call", "minutes": "30"}"#, "minutes", &30_u8);
    is_field(&foreign, r#"{"kind": "call"}"#, "minutes", &10_u8);
    is_field(&foreign, r#"{"kind": "call", "other": "5"}"#, "other", &5_u8);
    is_field(&foreign, r#"{"kind": "call"}"#, "other", &None::<u8>);
    let any = Plan::compile("t", &json!({}), PlanOptions::default().unknown(UnknownKeys::Keep)).unwrap();
    is_field(&any, r#"{"a": {"b": 1}}"#, "a", &BTreeMap::from([("b".to_owned(), 1_u8)]));
}

#[test]
fn what_the_policy_mends_is_read_as_it_was_mended() {
    let plan = plan::<Everything>(CoercionPolicy::lenient());
    let sent = spelled(0).replace(r#"[{"usr": "eve"}]"#, r#"{"usr": "eve"}"#);
    let all = plan.parse::<Everything>(&sent).unwrap();
    assert!(!all.coercions().is_empty());
    is_field(&plan, &sent, "list", &all.value.list);
    let text = Value::from(spelled(0)).to_string();
    if let Ok(all) = plan.parse::<Everything>(&text) {
        is_field(&plan, &text, "list", &all.value.list);
    }
}

#[test]
fn what_cannot_be_read_is_an_error_without_the_value() {
    let plan = plan::<Everything>(CoercionPolicy::strict());
    let sent = spelled(0).replace(r#""amount": 5"#, r#""amount": 123456"#);
    let unknown = plan.argument::<Option<u64>>(&sent, "amuont").unwrap_err();
    assert_eq!(unknown.to_string(), "`t` has no parameter `amuont`; did you mean `amount`?");
    let narrow = plan.argument::<u8>(&sent, "amount").unwrap_err();
    assert_eq!(narrow.to_string(), "`amount` of `t` cannot be read as `u8`");
    for error in [plan.argument::<String>(&sent, "amount").unwrap_err(), narrow] {
        assert!(matches!(error, ArgumentError::Type { .. }));
        assert!(!format!("{error} {error:?}").contains("123456"));
    }
    assert!(matches!(plan.argument::<Who>(&sent, "who"), Err(ArgumentError::Missing { .. })));
    assert_eq!(plan.argument::<Option<Who>>(&sent, "who"), Ok(None));
    for broken in ["{}", "[1]", r#"{"who": nul"#, "7", r#"{"sum": 1, "amount": 1}"#] {
        assert!(plan.argument::<u64>(broken, "amount").is_err(), "{broken}");
        assert!(plan.argument::<Option<u64>>(broken, "amount").is_err(), "{broken}");
    }
}

#[test]
fn without_a_plan_only_what_is_there_can_be_read() {
    fn read<T: DeserializeOwned>(args: &str, name: &str) -> Result<T, ArgumentError> {
        argument_without_plan("t", args, name)
    }
    let args = r#"{"amount": "1000000000000000000000000000001", "n": 5, "card": "[secret]", "list": [{"pin": "[secret]"}], "id": "7"}"#;
    assert_eq!(read("{\"n\": 5}", "n"), Ok(5_u8));
    assert_eq!(read(args, "amount"), Ok(1_000_000_000_000_000_000_000_000_000_001_u128));
    assert_eq!(read(args, "amount"), Ok("1000000000000000000000000000001".to_owned()));
    assert!(matches!(read::<u64>(args, "amount"), Err(ArgumentError::Type { .. })));
    assert!(matches!(read::<u64>(args, "id"), Err(ArgumentError::Type { .. })), "a text stays a text");
    let missing = read::<Option<u64>>(args, "m").unwrap_err();
    assert!(matches!(missing, ArgumentError::Missing { .. }));
    assert!(missing.to_string().ends_with("an `Option` is `None` if the parameters of the tool are known"));
    assert!(matches!(read::<String>(args, "card"), Err(ArgumentError::Withheld { .. })));
    assert!(matches!(read::<Value>(args, "list"), Err(ArgumentError::Withheld { .. })));
    assert!(matches!(read::<String>(r#""[secret]""#, "card"), Err(ArgumentError::Withheld { .. })));
    assert!(matches!(read::<u64>("[", "n"), Err(ArgumentError::Unreadable { .. })));
}
