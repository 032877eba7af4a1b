//! Results of earlier calls.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::ToolOutput;

/// How many results are kept; the oldest goes first.
const MAX_RESULTS: usize = 1024;

/// Completed results by tool and checked arguments.
#[derive(Default)]
pub(super) struct ResultCache {
    results: HashMap<Arc<str>, ToolOutput>,
    order: VecDeque<Arc<str>>,
}

impl ResultCache {
    pub(super) fn get(&self, key: &str) -> Option<ToolOutput> {
        self.results.get(key).cloned()
    }

    pub(super) fn insert(&mut self, key: &str, output: &ToolOutput) {
        let key: Arc<str> = key.into();
        if self.results.insert(key.clone(), output.clone()).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_RESULTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.results.remove(&oldest);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The key of a call: its tool and its arguments, whatever the order of their keys.
pub(super) fn cache_key(tool: &str, args: &Value) -> String {
    let mut key = format!("{tool} ");
    write_canonical(args, &mut key);
    key
}

/// A text that is the same for equal values, whatever the order of keys.
pub(super) fn canonical(value: &Value) -> String {
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
                // Quoted as JSON: where a key ends counts.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_do_not_depend_on_the_order_of_keys() {
        let key = cache_key("t", &json!({"a": [1, {"x": 1, "y": "z"}], "b": null}));
        assert_eq!(key, cache_key("t", &json!({"b": null, "a": [1, {"y": "z", "x": 1}]})));
        for other in [json!({"a": [1, {"x": 1, "y": "z"}]}), json!({"b": null, "a": [{"x": 1, "y": "z"}, 1]})]
        {
            assert_ne!(key, cache_key("t", &other));
        }
    }

    #[test]
    fn the_oldest_result_goes_first() {
        let mut cache = ResultCache::default();
        for n in 0..=MAX_RESULTS {
            cache.insert(&n.to_string(), &ToolOutput::empty());
        }
        assert_eq!((cache.get("0"), cache.results.len()), (None, MAX_RESULTS));
        assert!(cache.get("1").is_some());
    }
}
