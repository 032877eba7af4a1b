//! Results of earlier calls.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::assistant::Config;
use super::prepare::Checked;
use crate::message::ToolCall;
use crate::{Effect, Source, Tool, ToolContext, ToolOutput};

/// How many results are kept; the oldest goes first.
const MAX_RESULTS: usize = 1024;

/// Completed results by their calls.
#[derive(Default)]
pub(super) struct ResultCache {
    results: HashMap<Arc<CallKey>, ToolOutput>,
    order: VecDeque<Arc<CallKey>>,
}

impl ResultCache {
    pub(super) fn get(&self, key: &CallKey) -> Option<ToolOutput> {
        self.results.get(key).cloned()
    }

    pub(super) fn insert(&mut self, key: CallKey, output: &ToolOutput) {
        let key = Arc::new(key);
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

/// What decides the result of a call: its tool, its owner and its arguments, whatever the order of their keys.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    tool: String,
    /// The fingerprint of the tool's parameters.
    fingerprint: u64,
    session: Option<String>,
    source: Option<Owner>,
    args: String,
}

/// A source by its identity. It is kept alive, so that no other source gets its address.
#[derive(Debug)]
struct Owner(Source);

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.0.address() == other.0.address()
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.address().hash(state);
    }
}

impl CallKey {
    /// Returns the key of a call whose arguments were checked.
    pub(super) fn new(
        config: &Config,
        tool: &dyn Tool,
        call: &ToolCall,
        checked: &Checked,
        context: &ToolContext,
    ) -> Self {
        Self {
            tool: call.name.clone(),
            fingerprint: config.fingerprint(&call.name),
            session: context.session_id().map(str::to_owned),
            source: context.source().cloned().map(Owner),
            args: exact(&checked.value(tool, &call.args), checked.text(&call.args)),
        }
    }
}

/// Returns a text that only calls with equal arguments have. A value holds no more digits than a float does where its schema does not say
/// that it is an integer, so a text with longer numbers stands for itself.
fn exact(args: &Value, sent: &str) -> String {
    /// Every decimal number of so many digits is a float of its own.
    const DIGITS: usize = 15;
    let mut key = canonical(args);
    // Arguments that only their tool can read have no value here.
    if args.is_null()
        || sent.split(|c: char| !c.is_ascii_digit() && c != '.').any(|number| number.len() > DIGITS)
    {
        key.push_str(sent);
    }
    key
}

impl Config {
    /// Whether results of the tool are kept in this run. The state of a prompt is not part of the key of a call, so nothing is kept that
    /// may depend on it.
    pub(super) fn caches(&self, tool: &dyn Tool, context: &ToolContext) -> bool {
        let policy = tool.policy();
        // What must not happen twice is kept only when the tool itself says so.
        policy.cache.unwrap_or(self.cache && policy.effect != Effect::Once)
            && (!context.has_own_state()
                || (self.hooks.is_empty()
                    && !tool.reads_context()
                    && !tool.requires().iter().any(|state| context.has_own(state))))
    }
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

    fn key(args: &str) -> CallKey {
        let args = exact(&serde_json::from_str(args).unwrap(), args);
        CallKey { tool: "t".to_owned(), fingerprint: 1, session: None, source: None, args }
    }

    #[test]
    fn keys_do_not_depend_on_the_order_of_keys() {
        let (one, other) = (
            json!({"a": [1, {"x": 1, "y": "z"}], "b": null}),
            json!({"b": null, "a": [1, {"y": "z", "x": 1}]}),
        );
        assert_eq!(canonical(&one), canonical(&other));
        for other in [json!({"a": [1, {"x": 1, "y": "z"}]}), json!({"b": null, "a": [{"x": 1, "y": "z"}, 1]})]
        {
            assert_ne!(canonical(&one), canonical(&other));
        }
    }

    #[test]
    fn every_digit_and_every_owner_counts() {
        assert_eq!(key(r#"{"a": 1.50}"#), key(r#"{"a":1.5}"#));
        let long = ["1000000000000000000000000000001", "1000000000000000000000000000002", "1e30"];
        let long = long.map(|number| key(&format!(r#"{{"a": {number}}}"#)));
        assert!(long[0] != long[1] && long[1] != long[2], "they are the same float");
        let fraction = ["0.1000000000000000055", "0.1"].map(|number| key(&format!(r#"{{"a": {number}}}"#)));
        assert_ne!(fraction[0], fraction[1]);
        let source = Source::new(7_u8);
        let of = |source: &Source| CallKey { source: Some(Owner(source.clone())), ..key("{}") };
        assert_eq!(of(&source), of(&source.clone()));
        for other in [
            of(&Source::new(7_u8)),
            key("{}"),
            CallKey { session: Some("s".to_owned()), ..of(&source) },
            CallKey { fingerprint: 2, ..of(&source) },
            CallKey { tool: "u".to_owned(), ..of(&source) },
        ] {
            assert_ne!(of(&source), other);
        }
    }

    #[test]
    fn the_oldest_result_goes_first() {
        let mut cache = ResultCache::default();
        for n in 0..=MAX_RESULTS {
            cache.insert(key(&n.to_string()), &ToolOutput::empty());
        }
        assert_eq!((cache.get(&key("0")), cache.results.len()), (None, MAX_RESULTS));
        assert!(cache.get(&key("1")).is_some());
    }
}
