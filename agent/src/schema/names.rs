//! Finds property names that a provider refuses.

use super::abilities::{NameRule, abilities};
use super::change::{Change, ChangeKind};
use super::dialect::Dialect;
use crate::args::push_segment;
use serde_json::Value;

pub(crate) fn is_accepted_everywhere(name: &str) -> bool {
    is_plain(name)
}

fn is_plain(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

pub(super) fn refused_names(dialect: Dialect, schema: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    if abilities(dialect).names == NameRule::Plain {
        collect_refused(schema, &mut String::new(), &mut found);
    }
    found
}

/// Collects the refused names. The renderer limits the depth of the schema, and thus of this recursion.
fn collect_refused(schema: &Value, path: &mut String, found: &mut Vec<Change>) {
    let Value::Object(map) = schema else { return };
    let length = path.len();
    for keyword in ["properties", "$defs"] {
        for (name, inner) in map.get(keyword).and_then(Value::as_object).into_iter().flatten() {
            push_segment(path, keyword);
            push_segment(path, name);
            if keyword == "properties" && !is_plain(name) {
                found.push(Change { path: path.clone(), keyword: keyword.to_owned(), kind: ChangeKind::NotExpressible {
                    reason: "a name has 1 to 64 ASCII letters, digits, `_`, `.` or `-`, and the provider refuses a request with another"
                        .to_owned(),
                } });
            }
            collect_refused(inner, path, found);
            path.truncate(length);
        }
    }
    if let Some(items) = map.get("items") {
        push_segment(path, "items");
        collect_refused(items, path, found);
        path.truncate(length);
    }
    for (at, branch) in map.get("anyOf").and_then(Value::as_array).into_iter().flatten().enumerate() {
        push_segment(path, "anyOf");
        push_segment(path, &at.to_string());
        collect_refused(branch, path, found);
        path.truncate(length);
    }
}
