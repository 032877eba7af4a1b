//! The parameters of a tool, at any depth.

use serde_json::Value;

/// Limits of the search for the parameters of one tool. A `$ref` counts as four levels.
const MAX_PARAMETERS: usize = 500;
const MAX_DEPTH: usize = 12;

pub(super) struct Parameter<'d> {
    pub(super) path: String,
    pub(super) name: &'d str,
    pub(super) schema: &'d Value,
}

impl Parameter<'_> {
    pub(super) fn description(&self) -> &str {
        self.schema.get("description").and_then(Value::as_str).unwrap_or_default().trim()
    }
}

/// Returns the parameters at any depth, each before the parameters within it.
pub(super) fn parameters(root: &Value) -> Vec<Parameter<'_>> {
    let mut found = Vec::new();
    collect(root, root, "", 0, &mut found);
    found
}

fn collect<'d>(root: &'d Value, schema: &'d Value, path: &str, depth: usize, found: &mut Vec<Parameter<'d>>) {
    if depth > MAX_DEPTH || found.len() >= MAX_PARAMETERS {
        return;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            // The alternatives of an enum may repeat a parameter. The first one is enough for a finding.
            if found.iter().all(|known| known.path != path) {
                found.push(Parameter { path: path.clone(), name, schema: property });
            }
            collect(root, property, &path, depth + 1, found);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(keyword).filter(|inner| inner.is_object()) {
            collect(root, inner, &format!("{path}/*"), depth + 1, found);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            collect(root, branch, path, depth + 1, found);
        }
    }
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|to| to.strip_prefix('#'))
        .filter(|to| !to.is_empty());
    if let Some(target) = target.and_then(|to| root.pointer(to)) {
        collect(root, target, path, depth + 4, found);
    }
}
