//! Changes values in one place, in the ways in which calls are wrong.

use super::choices::Random;
use serde_json::{Map, Value, json};

/// A step on the path to a place in a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// The path to a place in a value.
pub(super) type Place = Vec<Step>;

/// The maximum number of places in one value.
const MAX_PLACES: usize = 200;

/// Returns every place in a value except the root, outer places before inner ones in each branch.
pub(super) fn places(value: &Value) -> Vec<Place> {
    fn visit(value: &Value, here: &mut Place, out: &mut Vec<Place>) {
        let mut below = |step: Step, value: &Value| {
            if out.len() < MAX_PLACES {
                here.push(step);
                out.push(here.clone());
                visit(value, here, out);
                here.pop();
            }
        };
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| below(Step::Index(i), item));
            }
            Value::Object(map) => map.iter().for_each(|(key, value)| below(Step::Key(key.clone()), value)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    visit(value, &mut Vec::new(), &mut out);
    out
}

/// Returns the value at a place.
pub(super) fn at<'v>(value: &'v Value, place: &[Step]) -> Option<&'v Value> {
    place.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// Returns the value with a replacement at a place. `None` removes it.
pub(super) fn with(value: &Value, place: &[Step], new: Option<Value>) -> Value {
    let mut out = value.clone();
    if let Some((last, above)) = place.split_last() {
        let parent = above.iter().try_fold(&mut out, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        });
        match (parent, last, new) {
            (Some(Value::Object(map)), Step::Key(key), Some(new)) => {
                map.insert(key.clone(), new);
            }
            (Some(Value::Object(map)), Step::Key(key), None) => {
                map.shift_remove(key);
            }
            (Some(Value::Array(items)), Step::Index(index), Some(new)) => {
                if let Some(item) = items.get_mut(*index) {
                    *item = new;
                }
            }
            (Some(Value::Array(items)), Step::Index(index), None) if *index < items.len() => {
                items.remove(*index);
            }
            _ => {}
        }
    } else if let Some(new) = new {
        out = new;
    }
    out
}

/// Returns the value with a key of the object at a place renamed, in the same position.
pub(super) fn renamed(value: &Value, parent: &[Step], key: &str, new: &str) -> Value {
    let Some(Value::Object(map)) = at(value, parent) else { return value.clone() };
    let map = map
        .iter()
        .map(|(name, value)| (if name == key { new.to_owned() } else { name.clone() }, value.clone()))
        .collect();
    with(value, parent, Some(Value::Object(map)))
}

/// Returns the place as a JSON pointer.
pub(super) fn pointer(place: &[Step]) -> String {
    let mut out = String::new();
    for step in place {
        out.push('/');
        match step {
            Step::Key(key) => out.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Step::Index(index) => out.push_str(&index.to_string()),
        }
    }
    out
}

/// Returns the arguments as text, with the key at `place` repeated.
pub(super) fn with_key_twice(value: &Value, place: &[Step]) -> String {
    fn write(value: &Value, place: &[Step], out: &mut String) {
        match (value, place.split_first()) {
            (Value::Object(map), Some((Step::Key(key), rest))) => {
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
            (Value::Array(items), Some((Step::Index(index), rest))) => {
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
    write(value, place, &mut out);
    out
}

/// Returns `count` texts, each of the value with one fault. Some may happen to be valid.
pub(super) fn mutants(value: &Value, count: usize, random: &mut Random) -> Vec<String> {
    let mut all = Vec::new();
    let places = places(value);
    for place in &places {
        let Some(old) = at(value, place) else { continue };
        all.extend(instead(old).into_iter().map(|new| (place, Some(new))));
        all.push((place, None));
    }
    let whole = Vec::new();
    all.extend(instead(value).into_iter().map(|new| (&whole, Some(new))));
    let mut out = Vec::new();
    for _ in 0..count {
        let text = match random.below(all.len() + all.len() / 8 + 1) {
            n if n < all.len() => {
                let (place, new) = &all[n];
                with(value, place, new.clone()).to_string()
            }
            _ => match places.get(random.below(places.len())) {
                Some(place) if random.below(4) > 0 => with_key_twice(value, place),
                _ => torn(&value.to_string(), random),
            },
        };
        out.push(text);
    }
    out
}

/// Returns the text without its end, or with something inserted.
fn torn(text: &str, random: &mut Random) -> String {
    let place = (0..=random.below(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (before, after) = text.split_at(place);
    let insert = ["", ",", "]", "}", "\"", "\\", "0", "null", " ", "{"][random.below(10)];
    if insert.is_empty() { before.to_owned() } else { format!("{before}{insert}{after}") }
}

/// Returns replacements for a value.
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
    fn places_are_found_and_changed() {
        let value = json!({"a": [1, {"b/c": true}], "d": null});
        let places = places(&value);
        let pointers: Vec<String> = places.iter().map(|place| pointer(place)).collect();
        assert_eq!(pointers, ["/a", "/a/0", "/a/1", "/a/1/b~1c", "/d"]);
        assert_eq!(with(&value, &places[3], Some(json!(5))), json!({"a": [1, {"b/c": 5}], "d": null}));
        assert_eq!(with(&value, &places[1], None), json!({"a": [{"b/c": true}], "d": null}));
        assert_eq!(with_key_twice(&value, &places[3]), r#"{"a":[1,{"b/c":true,"b/c":true}],"d":null}"#);
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
