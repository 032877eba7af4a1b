//! Compares a request with the recorded requests.

use super::secrets::WITHHELD;
use serde_json::Value;
use std::fmt::Write as _;

const SHOWN: usize = 12;
/// The number of characters that are shown before the first difference of two texts. Twice as many characters are shown from the
/// difference on.
const AROUND: usize = 40;
/// The maximum number of differences that are counted when requests are compared.
const COUNTED: usize = 400;

struct Difference<'v> {
    path: String,
    recorded: Option<&'v Value>,
    asked: Option<&'v Value>,
}

impl Difference<'_> {
    /// Returns the size of the difference, from 10 to 100. It is small for texts with the same beginning and end.
    fn distance(&self) -> usize {
        let (Some(Value::String(one)), Some(Value::String(other))) = (self.recorded, self.asked) else {
            return 100;
        };
        let longer = one.len().max(other.len()).max(1);
        let begin = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
        let rest = one.len().min(other.len()) - begin;
        let end = one.bytes().rev().zip(other.bytes().rev()).take(rest);
        let end = end.take_while(|(one, other)| one == other).count();
        100 - 90 * (begin + end) / longer
    }
}

pub(super) fn matches(recorded: &Value, asked: &Value) -> bool {
    match (recorded, asked) {
        (Value::String(recorded), Value::String(asked)) => text_matches(recorded, asked),
        (Value::Array(recorded), Value::Array(asked)) => {
            recorded.len() == asked.len()
                && recorded.iter().zip(asked).all(|(one, other)| matches(one, other))
        }
        (Value::Object(recorded), Value::Object(asked)) => {
            recorded.len() == asked.len()
                && recorded.iter().all(|(key, one)| asked.get(key).is_some_and(|other| matches(one, other)))
        }
        (recorded, asked) => recorded == asked,
    }
}

/// Returns whether a text matches the recorded text. `WITHHELD`, which replaces a secret, matches any text.
fn text_matches(recorded: &str, asked: &str) -> bool {
    let Some((begin, others)) = recorded.split_once(WITHHELD) else { return recorded == asked };
    let (middle, end) = others.rsplit_once(WITHHELD).unwrap_or(("", others));
    let inner = asked.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    let Some(mut rest) = inner else { return false };
    middle.split(WITHHELD).all(|part| {
        let found = rest.split_once(part);
        rest = found.map_or(rest, |(_, after)| after);
        found.is_some()
    })
}

/// Returns the recorded request with the smallest differences, and its number, counted from 1.
pub(super) fn nearest<'v>(
    recorded: impl Iterator<Item = &'v Value>,
    asked: &Value,
) -> Option<(usize, &'v Value)> {
    let all = (1..).zip(recorded);
    all.min_by_key(|(_, recorded)| {
        let mut found = Vec::new();
        collect("", recorded, asked, &mut found);
        found.iter().map(Difference::distance).sum::<usize>()
    })
}

pub(super) fn differences(recorded: &Value, asked: &Value) -> String {
    let mut found = Vec::new();
    collect("", recorded, asked, &mut found);
    let mut out = String::new();
    for difference in found.iter().take(SHOWN) {
        let (one, other) = shown(difference.recorded, difference.asked);
        // Writing to a String cannot fail.
        let _ = write!(out, "  {}\n    recorded: {one}\n    asked:    {other}\n", difference.path);
    }
    if found.len() > SHOWN {
        let _ = writeln!(out, "  and {} more places", found.len() - SHOWN);
    }
    out.truncate(out.trim_end().len());
    out
}

fn collect<'v>(path: &str, recorded: &'v Value, asked: &'v Value, found: &mut Vec<Difference<'v>>) {
    if found.len() >= COUNTED {
        return;
    }
    let mut push = |path: String, recorded, asked| found.push(Difference { path, recorded, asked });
    match (recorded, asked) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                let path = format!("{path}/{key}");
                match other.get(key) {
                    Some(asked) => collect(&path, value, asked, found),
                    None => found.push(Difference { path, recorded: Some(value), asked: None }),
                }
            }
            for (key, value) in other.iter().filter(|(key, _)| !one.contains_key(*key)) {
                found.push(Difference { path: format!("{path}/{key}"), recorded: None, asked: Some(value) });
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for at in 0..one.len().max(other.len()) {
                let path = format!("{path}/{at}");
                match (one.get(at), other.get(at)) {
                    (Some(recorded), Some(asked)) => collect(&path, recorded, asked, found),
                    (recorded, asked) => found.push(Difference { path, recorded, asked }),
                }
            }
        }
        (one, other) if matches(one, other) => {}
        (one, other) => push(path.to_owned(), Some(one), Some(other)),
    }
}

/// Returns both values as text. A long text is cut around the first difference.
fn shown(recorded: Option<&Value>, asked: Option<&Value>) -> (String, String) {
    let text = |value: Option<&Value>| match value {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) => Some(value.to_string()),
    };
    let (one, other) = (text(recorded), text(asked));
    let same = match (&one, &other) {
        (Some(one), Some(other)) => one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let part = |text: Option<String>| {
        let Some(text) = text else { return "nothing".to_owned() };
        let from = same.saturating_sub(AROUND);
        let part: String = text.chars().skip(from).take(AROUND * 3).collect();
        let before = if from > 0 { "…" } else { "" };
        let after = if text.chars().count() > from + AROUND * 3 { "…" } else { "" };
        format!("{before}{part:?}{after}")
    };
    (part(one), part(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_marker_of_a_secret_matches_any_text() {
        let cases = [
            ("a [secret] b", "a hunter2 b", true),
            ("a [secret] b", "a b", false),
            ("a [secret] b", "a hunter2 c", false),
            ("[secret] and [secret]!", "one and two!", true),
            ("[secret] and [secret]!", "one or two!", false),
            ("[secret]", "", true),
            ("same", "same", true),
            ("same", "same thing", false),
            // The beginning and the end must not overlap.
            ("ab[secret]ba", "aba", false),
        ];
        for (recorded, asked, is_same) in cases {
            assert_eq!(matches(&json!([recorded]), &json!([asked])), is_same, "{recorded} {asked}");
        }
        assert!(!matches(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert_eq!(differences(&json!({"a": "is [secret]"}), &json!({"a": "is hunter2"})), "");
    }

    #[test]
    fn the_nearest_is_shown_where_it_differs() {
        let recorded = [
            json!({"messages": [{"content": "Hello"}], "max_tokens": 5}),
            json!({"messages": [{"content": format!("{} cats", "long ".repeat(40))}, {"content": "b"}]}),
        ];
        let asked = json!({"messages": [{"content": format!("{} dogs", "long ".repeat(40))}], "stop": ["x"]});
        let (number, near) = nearest(recorded.iter(), &asked).expect("there are some");
        assert_eq!(number, 2);
        let text = differences(near, &asked);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  /messages/0/content");
        assert!(lines[1].starts_with("    recorded: …\"") && lines[1].ends_with("long  cats\""), "{text}");
        assert!(lines[2].ends_with("long  dogs\""), "{text}");
        assert_eq!(
            lines[3..],
            [
                "  /messages/1",
                "    recorded: \"{\\\"content\\\":\\\"b\\\"}\"",
                "    asked:    nothing",
                "  /stop",
                "    recorded: nothing",
                "    asked:    \"[\\\"x\\\"]\""
            ]
        );
        assert_eq!(differences(&asked, &asked), "");
    }
}
