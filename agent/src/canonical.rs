//! Texts of JSON values that do not depend on the order of keys.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns a text that is the same for equal values, regardless of the order of their keys.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in entries {
                // Keys are quoted, so that the end of a key is unambiguous.
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}
