//! Checks each `Law` that needs no schema, only a call and its `Plan`.

use super::law::{Law, LawViolation};
use crate::args::proof::{diagnosis, repeated_key};
use crate::args::{ArgumentStream, InvalidArguments, Issue, IssueCode, Parsed, Plan};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The maximum length of a report about refused arguments, in characters.
pub(super) const MAX_TEXT: usize = 6_000;
/// The length of a JSON Pointer, in bytes, above which the report may have cut the pointer. A cut pointer cannot be followed.
const MAX_POINTER: usize = 4_000;
/// The length, in bytes, above which a text is streamed in large pieces, rather than byte by byte.
const BYTE_BY_BYTE: usize = 2_000;

/// Checks that argument validation is consistent for one call, for example that a corrected call is accepted. `text` contains the
/// arguments of the call. `T` is their type, or [`Value`](serde_json::Value).
///
/// The call may be accepted or refused. Use the function for logged calls of real models, or in a fuzzer.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::testing::verify_call;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Move { steps: i32, tags: Vec<String> }
///
/// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
/// for text in [r#"{"steps": "3", "tags": []}"#, r#"{"steps": 3.5, "tag": "a"}"#, r#"{"steps": 3"#] {
///     verify_call::<Move>(&plan, text)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns the first law of consistency that does not hold. The text names the law, the policy and the call.
pub fn verify_call<T: DeserializeOwned>(plan: &Plan, text: &str) -> Result<(), String> {
    check_call::<T>(plan, text).map_err(|violation| violation.to_string())
}

pub(super) fn check_call<T: DeserializeOwned>(plan: &Plan, text: &str) -> Result<(), Box<LawViolation>> {
    let typed = plan.parse::<T>(text);
    let whole = plan.parse::<Value>(text);
    paths_agree(plan, text, typed.as_ref(), &whole)?;
    if let Err(refusal) = &typed {
        refusal_is_sound::<T>(plan, text, refusal)?;
    }
    if let Ok(parsed) = &whole {
        coercion_ends(plan, text, parsed)?;
    }
    stream_agrees(plan, text, typed.as_ref().err())
}

/// Checks that parsing and `diagnosis` both accept the arguments or both refuse them. The type itself may still refuse arguments that both
/// accept.
fn paths_agree<T: DeserializeOwned>(
    plan: &Plan,
    text: &str,
    typed: Result<&Parsed<T>, &InvalidArguments>,
    whole: &Result<Parsed<Value>, InvalidArguments>,
) -> Result<(), Box<LawViolation>> {
    let fail = |verdicts: String| Err(Box::new(LawViolation::new(Law::PathsAgree, plan, text, verdicts)));
    let explained = diagnosis(plan, text);
    match (whole, &explained) {
        (Ok(_), Err(issues)) => return fail(format!("read: accepts\nexplained: {}", lines(issues))),
        (Err(refusal), Ok(())) if !beyond_values(text) => {
            return fail(format!("read: {}\nexplained: accepts", lines(refusal.issues())));
        }
        _ => {}
    }
    match (typed, whole, &explained) {
        (Ok(_), _, Err(issues)) => fail(format!("read as the type: accepts\nexplained: {}", lines(issues))),
        (Err(refusal), Ok(whole), Ok(())) => {
            // Only the type refuses the arguments. This is allowed if all issues can come from the type, and serde without the plan
            // refuses the arguments, too.
            let own = refusal.issues().iter().all(|issue| is_own(issue.code));
            match serde_json::from_str::<T>(&whole.value.to_string()) {
                Err(_) if own => Ok(()),
                result => {
                    let serde = result.map_or_else(|error| error.to_string(), |_| "accepts".to_owned());
                    fail(format!(
                        "read as the type: {}\nexplained: accepts\nserde: {serde}",
                        lines(refusal.issues())
                    ))
                }
            }
        }
        _ => Ok(()),
    }
}

/// Returns whether the Rust type, and not only the schema, can report an issue with this code.
pub(super) fn is_own(code: IssueCode) -> bool {
    matches!(code, IssueCode::Value | IssueCode::Format)
}

fn refusal_is_sound<T: DeserializeOwned>(
    plan: &Plan,
    text: &str,
    refusal: &InvalidArguments,
) -> Result<(), Box<LawViolation>> {
    let fail = |law, verdicts: String| Err(Box::new(LawViolation::new(law, plan, text, verdicts)));
    if refusal.issues().is_empty() || refusal.count() < refusal.issues().len() {
        return fail(Law::RefusalsAreExplained, format!("{} issues", refusal.count()));
    }
    let report = refusal.to_text();
    let length = report.chars().count();
    if length > MAX_TEXT {
        return fail(Law::ReportsAreBounded, format!("{length} characters"));
    }
    if repeated_key(text).is_none() {
        // Both `null` and text that is not JSON count as `{}`.
        let sent = serde_json::from_str(text).ok().filter(|sent: &Value| !sent.is_null());
        let sent = sent.unwrap_or_else(|| serde_json::json!({}));
        // A text with a number too large for a float cannot be parsed, so the path of the issue cannot be looked up.
        let is_beyond =
            |issue: &Issue| issue.code == IssueCode::Range && serde_json::from_str::<Value>(text).is_err();
        let stray = |issue: &&Issue| !leads_into(plan, &sent, issue) && !is_beyond(issue);
        if let Some(issue) = refusal.issues().iter().find(stray) {
            return fail(Law::IssuesPointIntoTheCall, issue.to_string());
        }
    }
    if let Some(call) = refusal.corrected()
        && let Err(again) = plan.parse::<T>(call)
        && !again.issues().iter().all(|issue| issue.code == IssueCode::Value)
    {
        return fail(
            Law::CorrectionsAreAccepted,
            format!("offered: {call}\nthen: {}", lines(again.issues())),
        );
    }
    Ok(())
}

/// Returns whether the path of the issue leads to a sent value, or to a single missing key. The path may lead into a string that contains
/// JSON. A path from a function of `#[arg(validate)]` may also lead into a missing parameter.
fn leads_into(plan: &Plan, sent: &Value, issue: &Issue) -> bool {
    if issue.path.is_empty() || issue.path.len() > MAX_POINTER {
        return true;
    }
    let mut segments =
        issue.path.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).peekable();
    let decoded = |value: &Value| match value {
        Value::String(text) => serde_json::from_str::<Value>(text).unwrap_or_default(),
        value => value.clone(),
    };
    let mut current = sent.clone();
    while let Some(segment) = segments.next() {
        let at = |value: &Value| match value {
            Value::Object(map) => map.get(&segment).cloned(),
            Value::Array(items) => segment.parse().ok().and_then(|index: usize| items.get(index).cloned()),
            _ => None,
        };
        let inside = decoded(&current);
        current = match at(&inside) {
            Some(below) => below,
            // A function of `#[arg(validate)]` may report a path inside a parameter that was sent as `null`, because `null` counts as
            // absent.
            None if !(inside.is_object() || (inside.is_null() && issue.code == IssueCode::Value)) => {
                return false;
            }
            None if issue.code == IssueCode::Value => {
                return std::iter::once(segment)
                    .chain(segments)
                    .all(|name| is_declared(plan.schema(), &name));
            }
            None => return issue.code == IssueCode::Missing && segments.peek().is_none(),
        };
    }
    true
}

fn is_declared(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(map) => {
            let own = map.get("properties").and_then(Value::as_object);
            own.is_some_and(|own| own.contains_key(name))
                || map.values().any(|value| is_declared(value, name))
        }
        Value::Array(items) => items.iter().any(|item| is_declared(item, name)),
        _ => false,
    }
}

fn coercion_ends(plan: &Plan, text: &str, first: &Parsed<Value>) -> Result<(), Box<LawViolation>> {
    if beyond_values(text) {
        return Ok(());
    }
    let coerced = first.value.to_string();
    let fail = |verdicts: String| {
        Err(Box::new(LawViolation::new(
            Law::CoercionEnds,
            plan,
            text,
            format!("read: {coerced}\n{verdicts}"),
        )))
    };
    match plan.parse::<Value>(&coerced) {
        Err(again) => fail(format!("again: {}", lines(again.issues()))),
        Ok(again) if !again.coercions().is_empty() => {
            let changes: Vec<String> =
                again.coercions().iter().map(|c| format!("{} at {:?}", c.rule, c.path)).collect();
            fail(format!("again: {}", changes.join(", ")))
        }
        Ok(again) if again.value != first.value => fail(format!("again: {}", again.value)),
        Ok(_) => Ok(()),
    }
}

fn stream_agrees(
    plan: &Plan,
    text: &str,
    refusal: Option<&InvalidArguments>,
) -> Result<(), Box<LawViolation>> {
    let fail = |verdicts: String| Err(Box::new(LawViolation::new(Law::StreamsAgree, plan, text, verdicts)));
    if text.trim_start().is_empty() {
        return Ok(());
    }
    let mut stream = ArgumentStream::new(plan);
    let step = if text.len() > BYTE_BY_BYTE { 997 } else { 1 };
    let mut start = 0;
    while start < text.len() {
        let end = boundary(text, start + step);
        if stream.push(text.get(start..end).unwrap_or_default(), &mut |_| {}).is_err() {
            break;
        }
        start = end;
    }
    let ended = stream.finish().map(|_| ());
    let json = serde_json::from_str::<Value>(text);
    if ended.is_ok() != json.is_ok() && !long_number(text) {
        return fail(format!("stream: {ended:?}\nserde_json: {:?}", json.err()));
    }
    let Some(early) = stream.issues().first() else { return Ok(()) };
    match refusal {
        None => fail(format!("stream: {early}\nwhole: accepts")),
        Some(whole) if ended.is_ok() && json.is_ok_and(|json| json.is_object()) => {
            let listed = whole.issues().len() < whole.count();
            // `whole` has no issues of the values under a repeated key.
            let covers = |early: &Issue, issue: &Issue| {
                issue.path == early.path
                    || issue.code == IssueCode::Duplicate && early.path.starts_with(&issue.path)
            };
            match stream.issues().iter().find(|early| !whole.issues().iter().any(|i| covers(early, i))) {
                Some(early) if !listed => fail(format!("stream: {early}\nwhole: {}", lines(whole.issues()))),
                _ => Ok(()),
            }
        }
        Some(_) => Ok(()),
    }
}

/// Returns whether the text has a number of more than 400 bytes, which `ArgumentStream` refuses.
fn long_number(text: &str) -> bool {
    text.split(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).any(|token| token.len() > 400)
}

/// Returns whether the text has more than 18 digits in a row. A [`Value`] may be unable to hold such an integer, or may round it.
fn beyond_values(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 18)
}

fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

pub(super) fn lines(issues: &[Issue]) -> String {
    let shown: Vec<String> = issues.iter().take(5).map(ToString::to_string).collect();
    let more = issues.len() - shown.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("refuses: {}{more}", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::PlanOptions;
    use serde_json::json;

    #[test]
    fn issues_lead_to_a_value_or_to_a_parameter_that_was_left_out() {
        let inner = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}, "who": inner}});
        let plan = Plan::compile("t", &schema, PlanOptions::default()).unwrap();
        let sent = json!({"age": 3});
        let leads = |path: &str, code| leads_into(&plan, &sent, &Issue::new(path.to_owned(), code, "wrong"));
        for (path, code, expected) in [
            ("/age", IssueCode::Range, true),
            ("/who", IssueCode::Missing, true),
            ("/who/name", IssueCode::Missing, false),
            ("/who", IssueCode::Range, false),
            ("/who", IssueCode::Value, true),
            ("/who/name", IssueCode::Value, true),
            ("/nobody", IssueCode::Value, false),
            ("/who/nobody", IssueCode::Value, false),
            ("/age/who", IssueCode::Value, false),
        ] {
            assert_eq!(leads(path, code), expected, "{path} {code}");
        }
    }
}
