//! Any JSON as a schema, and any JSON as arguments: no panic, bounded time, and what the `jsonschema` crate says.
//! The input is two JSON values, one after the other.
#![no_main]

use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use agent::testing::verify_call;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Numbers that are integers to JSON Schema only, or that a `Value` rounds: not compared.
fn comparable(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_none_or(|v| v.abs() < 9_007_199_254_740_992.0),
        Value::Array(items) => items.iter().all(comparable),
        Value::Object(map) => map.values().all(comparable),
        _ => true,
    }
}

/// Annotations of other meaning to the two, or large enough to be slow in the oracle.
fn oracle(schema: &Value) -> Option<jsonschema::Validator> {
    let text = schema.to_string();
    if !comparable(schema) || text.len() > 2_000 || text.contains("$id") || text.contains("nchor") || text.contains("$schema") {
        return None;
    }
    jsonschema::options().should_validate_formats(false).build(schema).ok()
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let Some(Ok(schema)) = values.next() else { return };
    let arguments = text.get(values.byte_offset()..).unwrap_or_default().trim();
    // One parameter of any schema, where the schema is no object's.
    let wrapped = serde_json::json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
    let whole = |schema| {
        let options = PlanOptions::default().coercion(CoercionPolicy::exact()).unknown(UnknownKeys::Keep);
        Plan::compile("t", schema, options)
    };
    let (exact, schema) = match whole(&schema) {
        Ok(plan) => (plan, schema),
        Err(_) => match whole(&wrapped) {
            Ok(plan) => (plan, wrapped),
            Err(_) => return,
        },
    };
    let options = PlanOptions::default().coercion(CoercionPolicy::lenient());
    let lenient = Plan::compile("t", &schema, options).unwrap_or_else(|error| panic!("not under lenient: {error}"));
    for plan in [&exact, &lenient] {
        if let Err(disagreement) = verify_call::<Value>(plan, arguments) {
            panic!("{schema}\n{disagreement}");
        }
    }
    let (Some(oracle), Ok(sent)) = (oracle(&schema), serde_json::from_str::<Value>(arguments)) else { return };
    if !comparable(&sent) || !sent.is_object() {
        return;
    }
    match exact.parse::<Value>(arguments) {
        Ok(_) => assert!(oracle.is_valid(&sent), "only we accept\n{schema}\n{sent}"),
        Err(refusal) if refusal.issues().iter().any(|issue| issue.code.as_str() == "duplicate") => {}
        Err(refusal) => assert!(!oracle.is_valid(&sent), "only we refuse\n{schema}\n{sent}\n{refusal}"),
    }
});
