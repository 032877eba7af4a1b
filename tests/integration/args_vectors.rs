//! Recorded behaviour of other systems and reference calls, for developers who have them: the folder `arguments` of the
//! recorded vectors.

use super::records;
use crate::recorded::vectors;
use agent::args::{Plan, PlanOptions, UnknownKeys, did_you_mean};
use serde_json::{Value, json};

fn cases(file: &str, list: &str) -> Vec<Value> {
    let text =
        std::fs::read_to_string(vectors("arguments").join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let mut file: Value = serde_json::from_str(&text).expect("JSON");
    match file[list].take() {
        Value::Array(cases) => cases,
        other => panic!("no list: {other}"),
    }
}

pub(super) fn lines(file: &str) -> Vec<Value> {
    let text =
        std::fs::read_to_string(vectors("arguments").join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same(a, b)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, a)| y.get(k).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// What differs, if anything does.
fn run(case: &Value, policy: &str, want: &Value) -> Option<String> {
    let say =
        |what: String| Some(format!("{} {policy}: {what}; arguments {}", case["id"], case["arguments"]));
    let options = PlanOptions::default()
        .coercion(policy.parse().expect("a policy"))
        .unknown(case["unknown"].as_str().and_then(UnknownKeys::from_name).expect("a policy"));
    let plan = match Plan::compile("t", &case["schema"], options) {
        Ok(plan) => plan,
        Err(error) => return say(error.to_string()),
    };
    match (plan.parse::<Value>(case["arguments"].as_str().expect("text")), want["ok"] == true) {
        (Ok(parsed), true) => {
            if !same(&parsed.value, &want["value"]) {
                return say(format!("value {} instead of {}", parsed.value, want["value"]));
            }
            let mut got: Vec<Value> =
                records(parsed.coercions()).into_iter().map(|(p, r)| json!([p, r])).collect();
            got.sort_by_key(Value::to_string);
            let mut want = want["coercions"].as_array().cloned().unwrap_or_default();
            want.sort_by_key(Value::to_string);
            if got == want { None } else { say(format!("coercions {got:?} instead of {want:?}")) }
        }
        (Err(error), false) => {
            let got: Vec<Value> = error.issues().iter().map(|i| json!([i.path, i.code.as_str()])).collect();
            if Value::Array(got.clone()) != want["issues"] {
                return say(format!("issues {got:?} instead of {}", want["issues"]));
            }
            (error.to_text().chars().count() > 6_000).then(|| "text too long".into())
        }
        (Ok(parsed), false) => say(format!("accepted as {}", parsed.value)),
        (Err(error), true) => say(format!("refused: {error}")),
    }
}

pub(super) fn none(checks: usize, wrong: &[String]) {
    println!("{checks} checks, {} disagree", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn coercion() {
    let (mut checks, mut wrong) = (0, vec![]);
    for case in cases("coercion.json", "cases").iter().filter(|c| c["kind"] != "definition") {
        for policy in ["exact", "strict", "lenient"] {
            checks += 1;
            wrong.extend(run(case, policy, &case["expect"][policy]));
        }
    }
    none(checks, &wrong);
}

#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn other_systems() {
    let (mut checks, mut wrong) = (0, vec![]);
    for file in ["dispatch.json", "raif.json"] {
        for case in cases(file, "cases").iter().filter(|c| c["kind"] == "validate") {
            checks += 1;
            wrong.extend(run(case, case["policy"].as_str().expect("a policy"), &case["expect"]));
        }
    }
    none(checks, &wrong);
}

#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn suggestions() {
    let (mut checks, mut wrong) = (0, vec![]);
    for case in cases("didyoumean.json", "cases") {
        let names: Vec<&str> =
            case["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
        let got = did_you_mean(case["input"].as_str().expect("text"), names);
        checks += 1;
        if json!(got) != case["suggestions"] {
            wrong.push(format!("{}: {got:?} instead of {}", case["id"], case["suggestions"]));
        }
    }
    none(checks, &wrong);
}

#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn reference_calls() {
    let (mut checks, mut wrong) = (0, vec![]);
    for case in lines("bfcl/calls.jsonl") {
        let plan = match Plan::compile("t", &case["schema"], PlanOptions::default()) {
            Ok(plan) => plan,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        let text = case["arguments"].as_str().expect("text");
        checks += 1;
        match plan.parse::<Value>(text) {
            Ok(parsed) => {
                let sent: Value = serde_json::from_str(text).expect("JSON");
                let changed = records(parsed.coercions()).iter().any(|(_, rule)| *rule != "float_to_integer");
                if !same(&parsed.value, &sent) || changed {
                    wrong.push(format!("{} changed: {:?}", case["id"], parsed.coercions()));
                }
            }
            Err(error) => wrong.push(format!("{} refused: {error}", case["id"])),
        }
        for fault in case["mutated"].as_array().expect("a list") {
            checks += 1;
            match (
                plan.parse::<Value>(fault["arguments"].as_str().expect("text")),
                fault["expect"] == "accept",
            ) {
                (Ok(_), true) => {}
                (Err(error), false)
                    if error.issues().iter().any(|i| fault["issue_at"] == i.path.as_str()) => {}
                (Ok(parsed), _) => {
                    wrong.push(format!("{} {} accepted: {}", case["id"], fault["kind"], parsed.value));
                }
                (Err(error), _) => {
                    wrong.push(format!("{} {} refused: {error}", case["id"], fault["kind"]));
                }
            }
        }
    }
    none(checks, &wrong);
}
