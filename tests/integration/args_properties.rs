//! What holds for every schema and every text.

use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// Schemas of what the plan models.
pub(super) fn schema() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop_oneof![
        Just(json!({"type": "integer"})),
        Just(json!({"type": "integer", "minimum": -3, "maximum": 3})),
        Just(json!({"type": "integer", "multipleOf": 2})),
        Just(json!({"type": "number"})),
        Just(json!({"type": "number", "exclusiveMinimum": 0})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "minLength": 1, "maxLength": 2})),
        Just(json!({"type": "string", "pattern": "^[a-c]*$"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": "null"})),
        Just(json!({"enum": ["a", "B c", "b_c"]})),
        Just(json!({"enum": [1, 2.5, "a", null]})),
        Just(json!(true)),
        Just(json!({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|s| json!({"type": "array", "items": s})),
            inner
                .clone()
                .prop_map(|s| json!({"type": "array", "items": s, "uniqueItems": true, "maxItems": 3})),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|s| json!({"type": "array", "prefixItems": s, "items": false})),
            object(inner.clone()),
            inner.clone().prop_map(|s| json!({"type": "object", "additionalProperties": s})),
            prop::collection::vec(inner, 1..4).prop_map(|s| json!({"anyOf": s})),
        ]
    })
}

pub(super) fn object(inner: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Value> {
    prop::collection::vec((inner, any::<bool>()), 0..4).prop_map(|properties| {
        let names = ["a", "b_c", "Cd", "v"];
        let pairs = || names.iter().zip(&properties);
        let required: Vec<&str> = pairs().filter(|(_, (_, required))| *required).map(|(n, _)| *n).collect();
        let properties: Map<String, Value> = pairs().map(|(n, (s, _))| ((*n).to_string(), s.clone())).collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    })
}

/// Values that nearly fit.
pub(super) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-4i64..5).prop_map(Value::from),
        Just(json!(u64::MAX)),
        prop::sample::select(vec![0.0, -0.0, 1.0, 2.5, 1e300, -3.0]).prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "B c",
            "bc",
            "b c",
            "1",
            " 2 ",
            "2.5",
            "true",
            "TRUE",
            "null",
            "[1]",
            "[\"a\"]",
            "{\"a\":1}",
            "abcabc",
            "é"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(
                (prop::sample::select(vec!["a", "b_c", "bC", "Cd", "v", "zz"]), inner),
                0..4
            )
            .prop_map(|entries| Value::Object(
                entries.into_iter().map(|(k, v)| (k.to_string(), v)).collect()
            )),
        ]
    })
}

pub(super) fn arguments() -> impl Strategy<Value = Value> {
    prop::collection::vec((prop::sample::select(vec!["a", "b_c", "Cd", "v", "zz"]), value()), 0..4)
        .prop_map(|entries| Value::Object(entries.into_iter().map(|(k, v)| (k.to_string(), v)).collect()))
}

pub(super) fn unknown() -> impl Strategy<Value = UnknownKeys> {
    prop::sample::select(vec![UnknownKeys::Deny, UnknownKeys::Strip, UnknownKeys::Keep])
}

pub(super) fn compile(schema: &Value, policy: CoercionPolicy, unknown: UnknownKeys) -> Plan {
    Plan::compile("t", schema, PlanOptions::default().coercion(policy).unknown(unknown))
        .unwrap_or_else(|e| panic!("{e}\n{schema}"))
}

pub(super) const POLICIES: [CoercionPolicy; 3] =
    [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()];

proptest! {
    /// Any text is answered: a value, or issues that the plan itself has.
    #[test]
    fn any_text_is_answered(schema in object(schema()), text in "\\PC{0,40}", unknown in unknown()) {
        for policy in POLICIES {
            let plan = compile(&schema, policy, unknown);
            if let Err(error) = plan.parse::<Value>(&text) {
                prop_assert!(!error.issues().is_empty() && error.count() > 0);
                prop_assert!(!error.to_text().is_empty());
            }
        }
    }

    /// Torn and mixed-up JSON.
    #[test]
    fn torn_json_is_answered(schema in object(schema()), value in arguments(), at in 0usize..60, insert in "[\\[\\]{}\",:0-9eE.\\\\ntf-]{0,4}") {
        let mut text = value.to_string();
        let at = (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.insert_str(at, &insert);
        for policy in POLICIES {
            let plan = compile(&schema, policy, UnknownKeys::Deny);
            let typed = plan.parse::<Value>(&text);
            prop_assert_eq!(typed.is_ok(), plan.parse::<IgnoredAny>(&text).is_ok(), "{}", text);
        }
    }

    /// The typed pass and the diagnosis agree: a plain `Value` refuses nothing itself, so every refusal is explained.
    #[test]
    fn every_refusal_is_explained(schema in object(schema()), value in arguments(), unknown in unknown()) {
        let text = value.to_string();
        for policy in POLICIES {
            let plan = compile(&schema, policy, unknown);
            if let Err(error) = plan.parse::<Value>(&text) {
                let unexplained = error.issues().iter().find(|i| i.code.as_str() == "value");
                prop_assert!(unexplained.is_none(), "{:?} {} {}\n{:?}", policy, schema, text, unexplained);
            }
        }
    }

    /// What was coerced is taken as it is, with the same result.
    #[test]
    fn coercion_is_idempotent(schema in object(schema()), value in arguments(), unknown in unknown()) {
        let text = value.to_string();
        for policy in POLICIES {
            let plan = compile(&schema, policy, unknown);
            let Ok(first) = plan.parse::<Value>(&text) else { continue };
            let again = plan.parse::<Value>(&first.value.to_string());
            let again = again.map_err(|e| TestCaseError::fail(format!("{policy:?} {schema} {text}\n{e}")))?;
            prop_assert!(again.coercions().is_empty(), "{:?} {} {} {:?}", policy, schema, text, again.coercions());
            prop_assert_eq!(again.value, first.value);
        }
    }

    /// A wider policy takes more, and what was taken without a change stays as it is.
    #[test]
    fn policies_only_widen(schema in object(schema()), value in arguments(), unknown in unknown()) {
        let text = value.to_string();
        let parsed = POLICIES.map(|policy| compile(&schema, policy, unknown).parse::<Value>(&text).ok());
        for pair in parsed.windows(2) {
            if let Some(narrow) = &pair[0] {
                prop_assert!(pair[1].is_some(), "{} {}", schema, text);
                if let (true, Some(wide)) = (narrow.coercions().is_empty(), &pair[1]) {
                    prop_assert_eq!(&wide.value, &narrow.value);
                }
            }
        }
    }

    /// Under the exact policy a schema means what JSON Schema says.
    #[test]
    fn exact_agrees_with_jsonschema(schema in object(schema()), value in arguments()) {
        let plan = compile(&schema, CoercionPolicy::exact(), UnknownKeys::Deny);
        let oracle = jsonschema::validator_for(&schema).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let ours = plan.parse::<Value>(&value.to_string());
        // `u64::MAX` and beyond is an integer to JSON Schema and to us; a float above 2^53 is one only there.
        prop_assume!(!value.to_string().contains("1e300") && !value.to_string().contains("1e+300"));
        prop_assert_eq!(ours.is_ok(), oracle.is_valid(&value), "{} {} {:?}", schema, value, ours.err().map(|e| e.to_text()));
    }

    /// The corrected call is valid, and needs no coercion.
    #[test]
    fn corrected_calls_are_valid(schema in object(schema()), value in arguments()) {
        for policy in POLICIES {
            let plan = compile(&schema, policy, UnknownKeys::Deny);
            if let Err(error) = plan.parse::<Value>(&value.to_string())
                && let Some(call) = error.corrected()
            {
                prop_assert!(plan.parse::<Value>(call).is_ok(), "{} {} {}", schema, value, call);
            }
        }
    }
}
