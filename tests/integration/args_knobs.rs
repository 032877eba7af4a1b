//! Single rules of a coercion policy: allowed, forbidden, in words.

use agent::args::{CoercionPolicy, CoercionRule, Plan, PlanOptions};
use agent::message::ToolCall;
use agent::{Registry, tool, tools};
use serde_json::{Value, json};

/// What each rule takes, as the parameter's schema and the arguments.
fn cases() -> [(CoercionRule, Value, &'static str); 13] {
    use CoercionRule as R;
    let integer = || json!({"type": "integer"});
    [
        (R::FloatToInteger, integer(), r#"{"v": 1.0}"#),
        (R::TextToInteger, integer(), r#"{"v": "1"}"#),
        (R::TextToNumber, json!({"type": "number"}), r#"{"v": "1.5"}"#),
        (R::TextToBoolean, json!({"type": "boolean"}), r#"{"v": "true"}"#),
        (R::TextToBoolean, json!({"type": "boolean"}), r#"{"v": "True"}"#),
        (R::NumberToText, json!({"type": "string"}), r#"{"v": 7}"#),
        (R::NumberToText, json!({"type": "array", "items": {"type": "string"}}), r#"{"v": [7]}"#),
        (R::FoldEnum, json!({"enum": ["in_progress", "done"]}), r#"{"v": "In Progress"}"#),
        (R::ToClosedNumber, json!({"enum": [1, 2]}), r#"{"v": "2"}"#),
        (R::JsonTextDecoded, json!({"type": "array", "items": integer()}), r#"{"v": "[1]"}"#),
        (R::OneValueWrapped, json!({"type": "array", "items": integer()}), r#"{"v": 1}"#),
        (R::NullAsAbsent, integer(), r#"{"v": null}"#),
        (R::JsonTextDecoded, integer(), r#""{\"v\":1}""#),
    ]
}

fn took(schema: &Value, policy: CoercionPolicy, text: &str) -> Option<Vec<CoercionRule>> {
    let schema = json!({"type": "object", "properties": {"v": schema}});
    let plan = Plan::compile("t", &schema, PlanOptions::default().coercion(policy)).expect("a plan");
    let parsed = plan.parse::<Value>(text).ok()?;
    Some(parsed.coercions().iter().map(|coercion| coercion.rule).collect())
}

/// The rules that a policy allows or forbids.
fn switches() -> Vec<CoercionRule> {
    let always = [CoercionRule::UnknownDropped, CoercionRule::NumberRounded];
    CoercionRule::ALL.into_iter().filter(|rule| !always.contains(rule)).collect()
}

#[test]
fn each_rule_is_a_switch_of_its_own() {
    for rule in switches() {
        let has_case = cases().iter().any(|(own, ..)| *own == rule) || rule == CoercionRule::NullAsEmpty;
        assert!(has_case, "{rule}");
    }
    for (rule, schema, text) in cases() {
        let nothing = CoercionRule::ALL.into_iter().fold(CoercionPolicy::exact(), CoercionPolicy::forbid);
        assert_eq!(took(&schema, nothing, text), None, "{rule}: {text}");
        assert_eq!(took(&schema, nothing.allow(rule), text), Some(vec![rule]), "{rule}: {text}");
        let all_but = CoercionPolicy::lenient().forbid(rule);
        assert_eq!(took(&schema, CoercionPolicy::lenient(), text), Some(vec![rule]), "{rule}: {text}");
        assert!(!took(&schema, all_but, text).is_some_and(|rules| rules.contains(&rule)), "{rule}: {text}");
    }
    let empty = json!({});
    assert_eq!(took(&empty, CoercionPolicy::strict(), "null"), Some(vec![CoercionRule::NullAsEmpty]));
    let without = CoercionPolicy::strict().forbid(CoercionRule::NullAsEmpty);
    assert_eq!(took(&empty, without, "null"), None);
    let decoded = took(&empty, without, r#""{}""#);
    assert_eq!(decoded, Some(vec![CoercionRule::JsonTextDecoded]));
}

#[test]
fn policies_are_said_in_words() {
    let same = |text: &str| text.parse::<CoercionPolicy>().expect("a policy").to_string();
    for text in ["exact", "strict", "lenient", "exact + fold_enum", "strict - text_to_integer + fold_enum"] {
        assert_eq!(same(text), text);
    }
    assert_eq!(same(" strict+fold_enum -fold_enum "), "strict");
    assert_eq!(same("lenient - fold_enum + fold_enum"), "lenient");
    // All of them, from each of the three.
    let switches = switches();
    for base in [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()] {
        for bits in 0..1 << switches.len() {
            let flip = |policy: CoercionPolicy, (i, rule): (usize, CoercionRule)| {
                if bits & 1 << i == 0 { policy.forbid(rule) } else { policy.allow(rule) }
            };
            let policy = switches.iter().copied().enumerate().fold(base, flip);
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
    }
    let stored = serde_json::to_string(&CoercionPolicy::lenient().forbid(CoercionRule::FoldEnum));
    assert_eq!(stored.expect("JSON"), r#""lenient - fold_enum""#);
    for (text, words) in [
        (
            "strikt",
            r#"no coercion policy has "strikt", did you mean "strict"? (known: exact, strict, lenient)"#,
        ),
        ("strict + fold_enums", r#"no coercion policy has "fold_enums", did you mean "fold_enum"? "#),
        ("strict + unknown_dropped", r#"no coercion policy has "unknown_dropped""#),
        ("strict - number_rounded", r#"no coercion policy has "number_rounded""#),
        ("strict +", r#"no coercion policy has """#),
        ("", r#"no coercion policy has "" (known: exact, strict, lenient)"#),
    ] {
        let error = text.parse::<CoercionPolicy>().expect_err(text).to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

/// Takes what models write.
#[tool(coerce = "strict + fold_enum - text_to_integer")]
fn order(size: Size, count: u32, #[arg(coerce = "exact + text_to_integer")] table: u32) -> String {
    format!("{size:?} {count} {table}")
}

#[derive(Debug, agent::ToolArgs)]
enum Size {
    Small,
    Large,
}

/// Every rule that there is, by its word in an attribute.
#[tool(
    coerce = "exact + float_to_integer + text_to_integer + text_to_number + text_to_boolean + number_to_text \
                 + fold_enum + to_closed_number + json_text_decoded + one_value_wrapped + null_as_absent \
                 - null_as_empty"
)]
fn every_rule(v: i64) -> i64 {
    v
}

#[test]
fn attributes_know_every_rule() {
    let registry = Registry::new(tools![every_rule]).expect("a registry");
    let definition = registry.fetch("every_rule").expect("the tool").definition();
    let want = CoercionRule::ALL.into_iter().fold(CoercionPolicy::exact(), CoercionPolicy::allow);
    assert_eq!(definition.plan().options().policy(), want.forbid(CoercionRule::NullAsEmpty));
}

#[test]
fn tools_and_parameters_have_their_own() {
    let registry = Registry::new(tools![order]).expect("a registry");
    let check = |arguments: &str| registry.validate(&ToolCall::new("1", "order", arguments));
    let checked = check(r#"{"size": "small", "count": 2, "table": "7"}"#).expect("fits");
    assert_eq!(*checked.value(), json!({"size": "Small", "count": 2, "table": 7}));
    assert_eq!(checked.coercions().len(), 2);
    let error = check(r#"{"size": "LARGE", "count": "2", "table": "7"}"#).expect_err("text").to_string();
    assert!(error.contains("1 problem.") && error.contains("/count: wrong type"), "{error}");
}
