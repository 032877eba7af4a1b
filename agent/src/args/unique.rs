//! Finds equal items of a set, in one pass.

use crate::args::scalar::EXACT_FLOAT;
use serde_json::Value;
use std::{collections::HashMap, fmt::Write};

/// Returns the indices of two equal items, or `None` if all items differ. Numbers are compared by value, objects
/// without the order of their keys.
pub(crate) fn repeated(items: &[Value]) -> Option<(usize, usize)> {
    let mut seen = HashMap::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let mut key = String::new();
        write_key(item, &mut key);
        if let Some(first) = seen.insert(key, i) {
            return Some((first, i));
        }
    }
    None
}

/// Writes a text that two values share only if they are equal.
fn write_key(value: &Value, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match value {
        Value::Number(n) => match n.as_f64() {
            Some(f) if f.abs() < EXACT_FLOAT => write!(out, "{}", f + 0.0),
            _ => write!(out, "{n}"),
        },
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_key(item, out);
                out.push(',');
            }
            out.push(']');
            Ok(())
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, item) in entries {
                let _ = write!(out, "{key:?}:");
                write_key(item, out);
                out.push(',');
            }
            out.push('}');
            Ok(())
        }
        Value::String(s) => write!(out, "{s:?}"),
        Value::Bool(b) => write!(out, "{b}"),
        Value::Null => write!(out, "null"),
    };
}

#[cfg(test)]
mod tests {
    use super::repeated;
    use serde_json::json;

    fn check(items: &serde_json::Value) -> Option<(usize, usize)> {
        repeated(items.as_array().map_or(&[], Vec::as_slice))
    }

    #[test]
    fn equality_is_json_schemas() {
        assert_eq!(check(&json!([1, 2, 1.0])), Some((0, 2)));
        assert_eq!(check(&json!([0.0, -0.0])), Some((0, 1)));
        assert_eq!(check(&json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}])), Some((0, 1)));
        assert_eq!(check(&json!([[1, 2], [2, 1]])), None);
        assert_eq!(check(&json!(["1", 1, true, "true", null, "null", [], {}])), None);
        assert_eq!(check(&json!(["a,b", "a", "b"])), None);
        assert_eq!(check(&json!([u64::MAX, u64::MAX - 1])), None);
        assert_eq!(check(&json!([])), None);
    }

    #[test]
    fn many_items_take_one_pass() {
        let items: Vec<serde_json::Value> = (0..100_000).map(|i| json!(i)).collect();
        assert_eq!(repeated(&items), None);
    }
}
