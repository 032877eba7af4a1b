//! Collects arguments that are streamed value by value, each with its path.

use serde_json::{Map, Value};

use crate::provider::parts::text;

/// The incomplete arguments of a call, from the pieces in `partialArgs` of Vertex AI. Each piece has a `jsonPath` and one value. A text
/// with `willContinue` continues in the next piece, if that piece has the same path.
#[derive(Debug, Default)]
pub(super) struct PartialArguments {
    root: Value,
    /// The path of the last text, if the text is incomplete.
    open: Option<String>,
    /// The JSON text of the arguments, if they arrived as one value.
    original: Option<String>,
    created: usize,
}

const MAX_DEPTH: usize = 64;

/// Maximum number of objects and lists that paths create. Without this limit, two bytes of a path could create an object of several hundred
/// bytes.
const MAX_CREATED: usize = 50_000;

impl PartialArguments {
    /// Adds arguments that arrived as a whole value in `args`, not in pieces. `text` is the JSON text of the value, if it is known.
    pub(super) fn merge(&mut self, value: &Value, text: Option<String>) {
        match (&mut self.root, value) {
            (Value::Object(known), Value::Object(more)) => {
                known.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
                self.original = None;
            }
            (_, Value::Null) => {}
            (root, value) => {
                *root = value.clone();
                self.original = text;
            }
        }
    }

    /// Returns whether the last text is incomplete.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn push(&mut self, piece: &Value) {
        let value = |key: &&str| piece.get(*key).filter(|value| !value.is_null());
        let value = ["stringValue", "numberValue", "boolValue"].iter().find_map(value);
        let value = value.or_else(|| piece.get("nullValue").map(|_| &Value::Null)).cloned();
        let path = match (text(piece, "jsonPath"), &value) {
            (Some(path), _) => path,
            (None, Some(_)) => "$",
            (None, None) => return,
        };
        let is_continued = self.open.as_deref() == Some(path);
        self.open = (piece.get("willContinue") == Some(&Value::Bool(true))).then(|| path.to_owned());
        let Some(value) = value else { return };
        self.original = None;
        let steps = parse_path(path).filter(|steps| self.can_place(steps));
        let steps = steps.unwrap_or_else(|| vec![PathStep::Key(path.to_owned())]);
        let mut node = &mut self.root;
        for step in steps {
            node = match step {
                PathStep::Key(key) => {
                    if !node.is_object() {
                        *node = Value::Object(Map::new());
                    }
                    let Value::Object(map) = node else { return };
                    map.entry(key).or_insert(Value::Null)
                }
                PathStep::Index(index) => {
                    if !node.is_array() {
                        *node = Value::Array(Vec::new());
                    }
                    let Value::Array(list) = node else { return };
                    if list.len() == index {
                        list.push(Value::Null);
                    }
                    let Some(item) = list.get_mut(index) else { return };
                    item
                }
            };
        }
        match (node, value) {
            (Value::String(before), Value::String(more)) if is_continued => before.push_str(&more),
            (node, value) => *node = value,
        }
    }

    /// Counts the objects and lists that are missing at a path. Returns `false` if the value must not be set there. The caller then uses
    /// the whole path as a key.
    fn can_place(&mut self, steps: &[PathStep]) -> bool {
        let Some(missing) = count_missing(&self.root, steps) else { return false };
        let created = self.created + missing.saturating_sub(1);
        if created > MAX_CREATED {
            return false;
        }
        self.created = created;
        true
    }

    /// Returns the arguments as JSON text, or an empty text if no argument arrived.
    pub(super) fn into_text(self) -> String {
        match (self.original, self.root) {
            (Some(text), _) => text,
            (None, Value::Null) => String::new(),
            (None, root) if root.as_object().is_some_and(Map::is_empty) => String::new(),
            (None, root) => root.to_string(),
        }
    }

    /// Returns incomplete arguments as text that is not valid JSON, so that the text is not mistaken for complete arguments.
    pub(super) fn into_cut_text(self) -> String {
        let whole = if self.root.is_object() { self.root.to_string() } else { "{}".to_owned() };
        let text = whole.trim_end_matches(['}', ']']);
        let text = if self.open.is_some() { text.strip_suffix('"').unwrap_or(text) } else { text };
        text.to_owned()
    }
}

enum PathStep {
    Key(String),
    Index(usize),
}

/// Counts the values that have to be created for a path. Returns `None` if an index would leave a gap of items that were not sent.
fn count_missing(root: &Value, steps: &[PathStep]) -> Option<usize> {
    let (mut node, mut missing) = (Some(root), 0);
    for step in steps {
        node = match step {
            PathStep::Key(key) => node.and_then(|node| node.as_object()?.get(key)),
            PathStep::Index(index) => {
                let list = node.and_then(Value::as_array);
                if *index > list.map_or(0, Vec::len) {
                    return None;
                }
                list.and_then(|list| list.get(*index))
            }
        };
        missing += usize::from(node.is_none());
    }
    Some(missing)
}

/// Parses a path such as `$.a.b[0]['c d']`. Returns `None` if the path is malformed or has more than [`MAX_DEPTH`] steps.
fn parse_path(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == MAX_DEPTH {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (key, tail) = after.split_at(end);
            steps.push(PathStep::Key(key.to_owned()));
            rest = tail;
        } else {
            let after = rest.strip_prefix('[')?;
            let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'));
            if let Some(quote) = quote {
                let (key, tail) = after.get(1..)?.split_once(quote)?;
                steps.push(PathStep::Key(key.to_owned()));
                rest = tail.strip_prefix(']')?;
            } else {
                let (index, tail) = after.split_once(']')?;
                steps.push(PathStep::Index(index.parse().ok()?));
                rest = tail;
            }
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_grow_to_a_value() {
        let mut arguments = PartialArguments::default();
        for piece in [
            json!({"jsonPath": "$.city", "stringValue": "Pa", "willContinue": true}),
            json!({"jsonPath": "$.city", "stringValue": "ris", "willContinue": true}),
            json!({"jsonPath": "$.city", "stringValue": ""}),
            json!({"jsonPath": "$.days[0].n", "numberValue": 1.5}),
            json!({"jsonPath": "$.days[1]['a b']", "boolValue": true}),
            json!({"jsonPath": "$.none", "nullValue": null}),
            json!({"jsonPath": "$.city2", "stringValue": "x"}),
            json!({"jsonPath": "$.city2", "stringValue": "y"}),
            json!({"jsonPath": "$.far[99999999]", "boolValue": true}),
            // Pieces without a value set nothing.
            json!({"jsonPath": "$.city"}),
            json!({"stringValue": null}),
            json!({}),
            json!(null),
        ] {
            arguments.push(&piece);
        }
        let expected = json!({"city": "Paris", "days": [{"n": 1.5}, {"a b": true}], "none": null, "city2": "y",
            "$.far[99999999]": true});
        assert_eq!(arguments.into_text(), expected.to_string());
        let mut cut = PartialArguments::default();
        assert_eq!(PartialArguments::default().into_cut_text(), "{");
        cut.push(&json!({"jsonPath": "$.a[0].b", "stringValue": "x", "willContinue": true}));
        assert_eq!(cut.into_cut_text(), r#"{"a":[{"b":"x"#);
        assert_eq!(PartialArguments::default().into_text(), "");
    }

    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(list) => list.iter().map(count).sum(),
            Value::Object(map) => map.values().map(count).sum(),
            _ => 0,
        }
    }

    #[test]
    fn an_index_creates_no_items_that_were_not_sent() {
        let mut arguments = PartialArguments::default();
        for (path, sent) in [("$.a[0]", "x"), ("$.a[2]", "far"), ("$.a[1]", "y"), ("$.b[0][1]", "deep")] {
            arguments.push(&json!({"jsonPath": path, "stringValue": sent}));
        }
        let expected = json!({"a": ["x", "y"], "$.a[2]": "far", "$.b[0][1]": "deep"});
        assert_eq!(arguments.into_text(), expected.to_string());
        let (mut arguments, mut steps) = (PartialArguments::default(), 0);
        for first in 0..20 {
            let path = format!("$[{first}]{}", "[9999]".repeat(MAX_DEPTH - 1));
            steps += MAX_DEPTH;
            arguments.push(&json!({"jsonPath": path, "boolValue": true}));
        }
        assert!(count(&arguments.root) <= steps, "{} values", count(&arguments.root));
        // Each step of a path creates at most one value, even if no index leaves a gap.
        let mut arguments = PartialArguments::default();
        for first in 0..100 {
            let path = format!("$.list[{first}]{}", "[0]".repeat(MAX_DEPTH - 2));
            arguments.push(&json!({"jsonPath": path, "boolValue": true}));
        }
        assert_eq!(arguments.root["list"].as_array().map(Vec::len), Some(100));
        assert!(count(&arguments.root) <= 100 * MAX_DEPTH);
        // All paths together create a limited number of values.
        let (mut arguments, pieces) = (PartialArguments::default(), 2 * MAX_CREATED / MAX_DEPTH);
        for first in 0..pieces {
            let path = format!("$.k{first}{}", ".a".repeat(MAX_DEPTH - 1));
            arguments.push(&json!({"jsonPath": path, "boolValue": true}));
        }
        let values = count(&arguments.root);
        assert!(values > MAX_CREATED && values <= MAX_CREATED + pieces + 1, "{values} values");
    }
}
