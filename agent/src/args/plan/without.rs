//! A plan without some of its parameters.

use super::reference::target;
use super::{Plan, SchemaError};
use crate::args::policy::{PlanOptions, UnknownKeys};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Root keywords that this module handles. A parameter that another root keyword mentions cannot be removed.
const UNDERSTOOD: [&str; 10] = [
    "$defs",
    "definitions",
    "properties",
    "required",
    "oneOf",
    "anyOf",
    "title",
    "description",
    "examples",
    "default",
];

impl Plan {
    /// Returns a plan without these top-level parameters. Fails if a parameter does not exist, if another keyword mentions it, or if the
    /// schema refers to its own root.
    pub(crate) fn without<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Plan, NotTakenOut> {
        let source = self.graph.source.as_ref();
        let mut schema = source.unwrap_or(&self.graph.schema).clone();
        for name in names {
            take_out(&mut schema, name)
                .map_err(|reason| NotTakenOut::Parameter { name: name.to_owned(), reason })?;
        }
        let plan = if source.is_some() {
            Plan::of_type(&self.name, schema, *self.options())
        } else {
            close_empty(&mut schema, *self.options());
            Plan::compile(&self.name, &schema, *self.options())
        };
        plan.map_err(NotTakenOut::Schema)
    }

    /// Returns the top-level parameter that a key refers to: by its name, or by an alias.
    pub(crate) fn parameter_of(&self, key: &str) -> Option<&str> {
        self.graph.objects(self.graph.root).into_iter().find_map(|object| {
            let mut props = object.props.iter();
            let found = props.find(|prop| prop.name == key || prop.aliases.iter().any(|alias| alias == key));
            found.map(|prop| prop.name.as_str())
        })
    }

    /// Returns whether a top-level parameter is required (by any variant of an enum). Returns `None` if it does not exist.
    pub(crate) fn requires(&self, name: &str) -> Option<bool> {
        let objects = self.graph.objects(self.graph.root);
        let all = objects.into_iter().filter_map(|object| object.props.iter().find(|prop| prop.name == name));
        all.map(|prop| prop.required).reduce(|one, other| one || other)
    }
}

/// The reason why a parameter cannot be removed from a plan.
#[derive(Debug)]
pub(crate) enum NotTakenOut {
    Parameter { name: String, reason: String },
    Schema(SchemaError),
}

fn take_out(schema: &mut Value, name: &str) -> Result<(), String> {
    let whole = schema.clone();
    let Value::Object(root) = schema else { return Err(absent(name)) };
    if refers_to_root(&whole) {
        return Err(format!("`{name}` cannot be taken out: the parameters contain themselves"));
    }
    if take_out_of(root, name, &whole)? { Ok(()) } else { Err(absent(name)) }
}

/// Removes a parameter from an object and its alternatives. Returns whether the parameter was there.
fn take_out_of(object: &mut Map<String, Value>, name: &str, root: &Value) -> Result<bool, String> {
    let condition = object.iter().find(|(keyword, value)| {
        !UNDERSTOOD.contains(&keyword.as_str())
            && (says(value, name) || leads_to(&json!({ keyword.as_str(): value }), name, root))
    });
    if let Some((keyword, _)) = condition {
        return Err(format!("`{name}` cannot be taken out: `{keyword}` speaks of it"));
    }
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    let mut was_there = properties.and_then(|properties| properties.shift_remove(name)).is_some();
    if let Some(Value::Array(required)) = object.get_mut("required") {
        required.retain(|required| required != name);
    }
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(branches)) = object.get_mut(keyword) else { continue };
        for branch in branches {
            match branch {
                Value::Object(branch) => was_there |= take_out_of(branch, name, root)?,
                Value::Bool(_) => {}
                _ => return Err(absent(name)),
            }
        }
    }
    Ok(was_there)
}

/// Forbids all keys if `properties` is empty, unless the schema says otherwise or the options keep unknown keys.
fn close_empty(schema: &mut Value, options: PlanOptions) {
    let Value::Object(root) = schema else { return };
    let lists_none = root.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty);
    if lists_none && options.unknown_keys() != UnknownKeys::Keep {
        root.entry("additionalProperties").or_insert(Value::Bool(false));
    }
}

/// Returns whether a keyword mentions a property: as a key, or as a text.
fn says(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(items) => items.iter().any(|item| says(item, name)),
        Value::Object(map) => map.iter().any(|(key, value)| key == name || says(value, name)),
        _ => false,
    }
}

fn leads_to(value: &Value, name: &str, root: &Value) -> bool {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![value]);
    while let Some(value) = waiting.pop() {
        let mut found = Vec::new();
        references(value, &mut found);
        for reference in found {
            if !seen.insert(reference) {
                continue;
            }
            match reference.strip_prefix('#').and_then(|pointer| target(root, pointer)) {
                Some(target) if !says(target, name) => waiting.push(target),
                _ => return true,
            }
        }
    }
    false
}

fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, found));
        }
        _ => {}
    }
}

fn refers_to_root(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(refers_to_root),
        Value::Object(map) => {
            map.iter().any(|(key, value)| (key == "$ref" && value == "#") || refers_to_root(value))
        }
        _ => false,
    }
}

fn absent(name: &str) -> String {
    format!("there is no parameter `{name}`")
}

#[cfg(test)]
mod tests;
