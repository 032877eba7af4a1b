//! Finds equal items of a list, in one pass.

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

/// 2^127. Whole floats of a smaller absolute value fit an `i128`.
const MAX_WHOLE: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

/// Writes a text that is the same for equal values, and for no others.
#[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^127")]
fn write_key(value: &Value, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match value {
        // A float that is a whole number gets the text of the equal integer.
        Value::Number(n) => match (n.as_i128(), n.as_f64()) {
            (Some(whole), _) => write!(out, "{whole}"),
            (None, Some(f)) if f.abs() < EXACT_FLOAT => write!(out, "{}", f + 0.0),
            // A float of at least `EXACT_FLOAT` has no fraction.
            (None, Some(f)) if f.abs() < MAX_WHOLE => write!(out, "{}", f as i128),
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
        for (whole, float) in [
            ("9007199254740992", "9007199254740992.0"),
            ("-9007199254740992", "-9.007199254740992e15"),
            ("18446744073709549568", "18446744073709549568.0"),
            ("9223372036854775808", "9223372036854775808.0"),
        ] {
            let items = |text: String| check(&serde_json::from_str(&text).unwrap());
            assert_eq!(items(format!("[{whole}, {float}]")), Some((0, 1)), "{whole}");
            assert_eq!(items(format!("[{float}, 1, {whole}]")), Some((0, 2)), "{whole}");
        }
        assert_eq!(check(&json!([9_007_199_254_740_993_u64, 9_007_199_254_740_992.0])), None);
        assert_eq!(check(&json!([1e300, 1e300])), Some((0, 1)));
        assert_eq!(check(&json!([1e300, 1e301, 2e300, 1e40, -1e40])), None);
    }

    #[test]
    fn many_items_take_one_pass() {
        let items: Vec<serde_json::Value> = (0..100_000).map(|i| json!(i)).collect();
        assert_eq!(repeated(&items), None);
    }
}
