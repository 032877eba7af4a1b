//! Generates the calls with which a tool is tried.

use super::schema::CallKind;
use crate::args::Plan;
use crate::testing::sample::samples;
use crate::testing::slips::SLIPS;
use crate::tool::definition::ToolDefinition;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The maximum number of calls of each kind for one tool.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub(super) valid: usize,
    pub(super) boundary: usize,
    pub(super) slips: usize,
}

/// Maximum length of a text that is generated for `minLength` or `maxLength`.
const MAX_LENGTH: u64 = 10_000;
/// Maximum length of a list that is generated for `minItems` or `maxItems`.
const MAX_ITEMS: u64 = 500;

/// Returns calls for one tool, without duplicates: valid calls, calls at the limits of the schema and just beyond them, and the mistakes of
/// careless models. Returns `None` if no valid call can be generated.
pub(super) fn calls(definition: &ToolDefinition, counts: Counts) -> Option<Vec<(CallKind, String)>> {
    let (plan, schema) = (definition.plan(), definition.parameters());
    let is_right = |value: &Value| {
        plan.parse::<Value>(&value.to_string()).is_ok_and(|parsed| parsed.coercions().is_empty())
    };
    let count = counts.valid.max(1);
    let right: Vec<Value> = samples(schema, count * 4, 0)
        .into_iter()
        .filter(|value| value.is_object() && is_right(value))
        .collect();
    let mut known = HashSet::new();
    let mut calls: Vec<(CallKind, String)> = Vec::new();
    let mut add = |kind: CallKind, text: String| {
        let is_new = known.insert(text.clone());
        if is_new {
            calls.push((kind, text));
        }
        is_new
    };
    // Neighboring values differ little, so values are taken at regular distances.
    let apart = right.len().div_ceil(count).max(1);
    for value in right.iter().step_by(apart).take(counts.valid) {
        add(CallKind::Valid, value.to_string());
    }
    let first = right.first()?;
    let mut left = counts.boundary;
    for (edge, is_any_text) in edges(schema, first) {
        let is_taken = fits(plan, &edge);
        if is_taken && is_any_text {
            continue;
        }
        let kind = if is_taken { CallKind::Boundary } else { CallKind::Beyond };
        if left == 0 {
            break;
        }
        left -= usize::from(add(kind, edge.to_string()));
    }
    // One call with each kind of mistake is added before a second call with the same kind.
    let mut slips: Vec<(&'static str, Vec<String>)> = SLIPS
        .iter()
        .map(|slip| (slip.name, slip.of(first, schema).into_iter().map(|slipped| slipped.text).collect()))
        .collect();
    let mut left = counts.slips;
    while left > 0 && slips.iter().any(|(_, texts)| !texts.is_empty()) {
        for (name, texts) in &mut slips {
            if left > 0 && !texts.is_empty() {
                left -= usize::from(add(CallKind::Slip(name), texts.remove(0)));
            }
        }
    }
    Some(calls)
}

fn fits(plan: &Plan, value: &Value) -> bool {
    plan.parse::<Value>(&value.to_string()).is_ok()
}

/// Returns variants of a valid call, each with one parameter at a limit of the schema or just beyond. The flag is `true` for a text with a
/// `format` or `contentEncoding`, which the `Plan` does not always check.
fn edges(schema: &Value, right: &Value) -> Vec<(Value, bool)> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let Some(right) = right.as_object() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, property) in properties {
        let is_formatted = ["format", "contentEncoding"].iter().any(|key| property.get(key).is_some());
        for edge in parameter_edges(property, right.get(name)) {
            let is_any_text = is_formatted && edge.is_string();
            let mut call: Map<String, Value> = right.clone();
            call.insert(name.clone(), edge);
            found.push((Value::Object(call), is_any_text));
        }
    }
    found
}

fn parameter_edges(schema: &Value, sample: Option<&Value>) -> Vec<Value> {
    let count = |key: &str, most: u64| schema.get(key).and_then(Value::as_u64).filter(|count| *count <= most);
    let mut found = Vec::new();
    for (key, beyond) in [("minimum", -1), ("maximum", 1)] {
        if let Some(end) = schema.get(key).and_then(Value::as_i64) {
            found.extend([json!(end), json!(end.saturating_add(beyond))]);
        } else if let Some(end) = schema.get(key).and_then(Value::as_f64) {
            found.extend([json!(end), json!(end + f64::from(i32::try_from(beyond).unwrap_or(0)))]);
        }
    }
    for (key, beyond) in [("minLength", -1_i64), ("maxLength", 1)] {
        if let Some(end) = count(key, MAX_LENGTH) {
            for length in [Some(end), end.checked_add_signed(beyond)].into_iter().flatten() {
                found.push("x".repeat(usize::try_from(length).unwrap_or(0)).into());
            }
        }
    }
    if let Some(item) = sample.and_then(Value::as_array).and_then(|items| items.first()) {
        for (key, beyond) in [("minItems", -1_i64), ("maxItems", 1)] {
            if let Some(end) = count(key, MAX_ITEMS) {
                for length in [Some(end), end.checked_add_signed(beyond)].into_iter().flatten() {
                    found.push(vec![item.clone(); usize::try_from(length).unwrap_or(0)].into());
                }
            }
        }
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        found.extend(words.iter().cloned());
        found.push(json!("no such word"));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => found.extend([json!(""), json!("\u{1F980} Ünïcödé \"quoted\"\n")]),
        Some("array") => found.push(json!([])),
        Some("integer") => found.extend([json!(0), json!(-1)]),
        Some("number") => found.extend([json!(0), json!(-0.5), json!(1e15)]),
        _ => {}
    }
    found
}
