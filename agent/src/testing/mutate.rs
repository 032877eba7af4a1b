//! Makes faulty variants of a value, as in the calls of models.

use super::choices::Random;
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum PathSegment {
    Key(String),
    Index(usize),
}

pub(super) type ValuePath = Vec<PathSegment>;

const MAX_PATHS: usize = 200;

/// Returns at most [`MAX_PATHS`] paths in a value, without the root. An outer path precedes the paths within it.
pub(super) fn paths(value: &Value) -> Vec<ValuePath> {
    fn visit(value: &Value, here: &mut ValuePath, out: &mut Vec<ValuePath>) {
        let mut below = |step: PathSegment, value: &Value| {
            if out.len() < MAX_PATHS {
                here.push(step);
                out.push(here.clone());
                visit(value, here, out);
                here.pop();
            }
        };
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| below(PathSegment::Index(i), item));
            }
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| below(PathSegment::Key(key.clone()), value));
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    visit(value, &mut Vec::new(), &mut out);
    out
}

pub(super) fn at<'v>(value: &'v Value, path: &[PathSegment]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathSegment::Key(key) => value.get(key),
        PathSegment::Index(index) => value.get(index),
    })
}

/// Returns the value with a replacement at a path. If `new` is `None`, the value at the path is removed.
pub(super) fn with(value: &Value, path: &[PathSegment], new: Option<Value>) -> Value {
    let mut out = value.clone();
    if let Some((last, above)) = path.split_last() {
        let parent = above.iter().try_fold(&mut out, |value, step| match step {
            PathSegment::Key(key) => value.get_mut(key),
            PathSegment::Index(index) => value.get_mut(index),
        });
        match (parent, last, new) {
            (Some(Value::Object(map)), PathSegment::Key(key), Some(new)) => {
                map.insert(key.clone(), new);
            }
            (Some(Value::Object(map)), PathSegment::Key(key), None) => {
                map.shift_remove(key);
            }
            (Some(Value::Array(items)), PathSegment::Index(index), Some(new)) => {
                if let Some(item) = items.get_mut(*index) {
                    *item = new;
                }
            }
            (Some(Value::Array(items)), PathSegment::Index(index), None) if *index < items.len() => {
                items.remove(*index);
            }
            _ => {}
        }
    } else if let Some(new) = new {
        out = new;
    }
    out
}

/// Returns the value with a key of the object at `parent` renamed. The order of the keys stays the same.
pub(super) fn renamed(value: &Value, parent: &[PathSegment], key: &str, new: &str) -> Value {
    let Some(Value::Object(map)) = at(value, parent) else { return value.clone() };
    let map = map
        .iter()
        .map(|(name, value)| (if name == key { new.to_owned() } else { name.clone() }, value.clone()))
        .collect();
    with(value, parent, Some(Value::Object(map)))
}

pub(super) fn pointer(path: &[PathSegment]) -> String {
    let mut out = String::new();
    for step in path {
        out.push('/');
        match step {
            PathSegment::Key(key) => out.push_str(&key.replace('~', "~0").replace('/', "~1")),
            PathSegment::Index(index) => out.push_str(&index.to_string()),
        }
    }
    out
}

pub(super) fn with_key_twice(value: &Value, path: &[PathSegment]) -> String {
    fn write(value: &Value, path: &[PathSegment], out: &mut String) {
        match (value, path.split_first()) {
            (Value::Object(map), Some((PathSegment::Key(key), rest))) => {
                out.push('{');
                for (i, (name, value)) in map.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    out.push_str(comma);
                    out.push_str(&json!(name).to_string());
                    out.push(':');
                    if name == key {
                        write(value, rest, out);
                        if rest.is_empty() {
                            for part in [",", &json!(name).to_string(), ":", &value.to_string()] {
                                out.push_str(part);
                            }
                        }
                    } else {
                        out.push_str(&value.to_string());
                    }
                }
                out.push('}');
            }
            (Value::Array(items), Some((PathSegment::Index(index), rest))) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    write(item, if i == *index { rest } else { &[] }, out);
                }
                out.push(']');
            }
            (value, _) => out.push_str(&value.to_string()),
        }
    }
    let mut out = String::new();
    write(value, path, &mut out);
    out
}

/// Returns `count` texts of the value, each with one fault. Some of them may still be valid.
pub(super) fn mutants(value: &Value, count: usize, random: &mut Random) -> Vec<String> {
    let mut all = Vec::new();
    let paths = paths(value);
    for path in &paths {
        let Some(old) = at(value, path) else { continue };
        all.extend(instead(old).into_iter().map(|new| (path, Some(new))));
        all.push((path, None));
    }
    let whole = Vec::new();
    all.extend(instead(value).into_iter().map(|new| (&whole, Some(new))));
    let mut out = Vec::new();
    for _ in 0..count {
        let text = match random.below(all.len() + all.len() / 8 + 1) {
            n if n < all.len() => {
                let (path, new) = &all[n];
                with(value, path, new.clone()).to_string()
            }
            _ => match paths.get(random.below(paths.len())) {
                Some(path) if random.below(4) > 0 => with_key_twice(value, path),
                _ => torn(&value.to_string(), random),
            },
        };
        out.push(text);
    }
    out
}

/// Returns the text without its end, or with a character or `null` inserted.
fn torn(text: &str, random: &mut Random) -> String {
    let end = (0..=random.below(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (before, after) = text.split_at(end);
    let insert = ["", ",", "]", "}", "\"", "\\", "0", "null", " ", "{"][random.below(10)];
    if insert.is_empty() { before.to_owned() } else { format!("{before}{insert}{after}") }
}

fn instead(old: &Value) -> Vec<Value> {
    let mut out = vec![
        json!(null),
        json!(true),
        json!(7),
        json!(-1),
        json!(1.5),
        json!("word"),
        json!(""),
        json!([]),
        json!({}),
        json!([old]),
        json!({"zz_more": old}),
        json!(old.to_string()),
    ];
    match old {
        Value::Number(number) => {
            if let Some(v) = number.as_i64() {
                out.extend([v.saturating_add(1), v.saturating_sub(1), v.saturating_neg()].map(Value::from));
                out.push(json!(v.saturating_mul(1_000)));
            }
            if let Some(v) = number.as_f64() {
                out.extend([v, v + 0.5, v - 1e-3, v * 1e3, -v].map(|v| json!(v)));
            }
            out.extend([json!(1e300), json!(u64::MAX), json!(i64::MIN), json!(format!(" {number} "))]);
        }
        Value::String(text) => {
            out.extend([
                json!(format!("{text}x")),
                json!(format!(" {text}")),
                json!(text.to_uppercase()),
                json!(text.replace(['_', '-'], " ")),
                json!(text.repeat(40)),
                json!(text.chars().skip(1).collect::<String>()),
                json!(text.chars().rev().collect::<String>()),
            ]);
            if let Ok(inside) = serde_json::from_str::<Value>(text) {
                out.push(inside);
            }
        }
        Value::Bool(b) => out.extend([json!(!b), json!(u8::from(*b)), json!(if *b { "True" } else { "no" })]),
        Value::Array(items) => {
            let mut more = items.clone();
            more.extend(items.last().cloned());
            out.push(more.into());
            let mut more = items.clone();
            more.push(Value::Null);
            out.push(more.into());
            out.extend(items.first().cloned());
            out.push(items.iter().rev().cloned().collect());
        }
        Value::Object(map) => {
            let more = |key: &str, value: Value| {
                let mut more = map.clone();
                more.insert(key.to_owned(), value);
                Value::Object(more)
            };
            out.extend([more("zz_extra", json!(1)), more("zz_extra", json!(null)), more("", json!([]))]);
            out.push(map.values().cloned().collect());
            let first: Map<String, Value> =
                map.iter().take(1).map(|(key, value)| (key.clone(), value.clone())).collect();
            out.push(first.into());
        }
        Value::Null => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_their_values_changed() {
        let value = json!({"a": [1, {"b/c": true}], "d": null});
        let paths = paths(&value);
        let pointers: Vec<String> = paths.iter().map(|path| pointer(path)).collect();
        assert_eq!(pointers, ["/a", "/a/0", "/a/1", "/a/1/b~1c", "/d"]);
        assert_eq!(with(&value, &paths[3], Some(json!(5))), json!({"a": [1, {"b/c": 5}], "d": null}));
        assert_eq!(with(&value, &paths[1], None), json!({"a": [{"b/c": true}], "d": null}));
        assert_eq!(with_key_twice(&value, &paths[3]), r#"{"a":[1,{"b/c":true,"b/c":true}],"d":null}"#);
        assert_eq!(renamed(&value, &[], "a", "A").to_string(), r#"{"A":[1,{"b/c":true}],"d":null}"#);
    }

    #[test]
    fn mutants_are_the_same_each_time() {
        let value = json!({"a": [1, "x"], "d": {"e": -2.5}});
        let whole = value.to_string();
        let made = || mutants(&value, 100, &mut Random(3));
        assert_eq!(made(), made());
        assert!(made().iter().filter(|text| **text != whole).count() > 90);
    }
}
