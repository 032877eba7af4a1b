//! The cache of results of earlier calls.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::checked::CheckedArguments;
use super::hooks::Hooks;
use crate::canonical::canonical;
use crate::tool::context::ToolContext;
use crate::tool::output::ToolOutput;
use crate::tool::policy::Effect;
use crate::tool::registry::Registry;
use crate::tool::state::StateKey;
use crate::tool::value::Tool;

const MAX_RESULTS: usize = 1024;

/// Completed results of tools, which several assistants can share. Clones share the results.
///
/// An assistant reuses the result of a call with the same tool name, parameters, arguments, session and source, after its own hooks and
/// approvals have allowed the new call. If the tool reads state, both assistants must have the same state, added as one `Arc` with
/// [`shared_state`](super::AssistantBuilder::shared_state). An assistant with [hooks](super::Hooks) shares results only with its
/// [forks](super::Assistant::fork), because a hook may have changed the results. Values that a tool captured and statics that it reads are
/// not compared. Therefore, share a cache only between assistants whose tools of the same name do the same.
///
/// A cache holds up to 1,024 results; the oldest is dropped first.
///
/// ```
/// use agent::model::reply;
/// use agent::{Assistant, ScriptedModel, run::ResultCache, tool, tools};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static RUNS: AtomicU32 = AtomicU32::new(0);
///
/// /// Looks up a price.
/// #[tool(read_only)]
/// fn price(of: String) -> String {
///     RUNS.fetch_add(1, Ordering::Relaxed);
///     format!("{of}: 4.50")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = ResultCache::new();
/// for _ in 0..2 {
///     let model = ScriptedModel::new([reply().tool_call("price", r#"{"of": "tea"}"#), reply().text("4.50")]);
///     let assistant = Assistant::builder(model).tools(tools![price]).cache_results_in(&cache).build()?;
///     assistant.prompt("What does tea cost?").await?;
/// }
/// assert_eq!((RUNS.load(Ordering::Relaxed), cache.len()), (1, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct ResultCache {
    results: Arc<Mutex<CachedResults>>,
}

#[derive(Default)]
struct CachedResults {
    by_call: HashMap<Arc<CallKey>, ToolOutput>,
    order: VecDeque<Arc<CallKey>>,
}

impl ResultCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.lock().order.len()
    }

    /// Returns whether there are no results.
    ///
    /// ```
    /// let cache = agent::run::ResultCache::new();
    /// assert!(cache.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Discards all results. [`Assistant::reset`](super::Assistant::reset) leaves a shared cache unchanged.
    ///
    /// ```
    /// let cache = agent::run::ResultCache::new();
    /// cache.clear();
    /// assert_eq!(cache.len(), 0);
    /// ```
    pub fn clear(&self) {
        let results = std::mem::take(&mut *self.lock());
        drop(results);
    }

    pub(super) fn get(&self, key: &CallKey) -> Option<ToolOutput> {
        self.lock().by_call.get(key).cloned()
    }

    pub(super) fn insert(&self, key: CallKey, output: &ToolOutput) {
        let key = Arc::new(key);
        let mut results = self.lock();
        let known = results.by_call.insert(key.clone(), output.clone());
        let mut dropped = None;
        if known.is_none() {
            results.order.push_back(key.clone());
        }
        if results.order.len() > MAX_RESULTS
            && let Some(oldest) = results.order.pop_front()
        {
            dropped = results.by_call.remove_entry(&oldest).zip(Some(oldest));
        }
        drop(results);
        // Keys and results own values of the application, so they are dropped after the lock is released.
        drop((key, known, dropped));
    }

    /// Locks the results. No code of the application may run while the lock is held: it would deadlock if it used the cache.
    fn lock(&self) -> MutexGuard<'_, CachedResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Omits the results, because they may be private.
impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The key of a cached result. Calls with equal keys have the same result. The order of the members of JSON objects in the arguments
/// usually makes no difference.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    tool: String,
    fingerprint: u64,
    session: Option<String>,
    source: Option<Identity>,
    /// The state that the tool may read, and all hooks, because hooks may change a result.
    world: Vec<Identity>,
    args: String,
}

/// The address of a value of the application. The value is kept alive, so that no other value can have the same address.
struct Identity {
    address: usize,
    _value: Box<dyn Any + Send + Sync>,
}

impl Identity {
    fn new(address: usize, value: impl Any + Send + Sync) -> Self {
        Self { address, _value: Box::new(value) }
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl CallKey {
    pub(super) fn new(
        name: &str,
        fingerprint: u64,
        registry: &Registry,
        hooks: &[Arc<dyn Hooks>],
        checked: &CheckedArguments,
        context: &ToolContext,
    ) -> Self {
        let state = registry.state_read_by(checked.tool());
        let state = state.into_iter().map(|value| Identity::new(value.address, value));
        let hooks = hooks.iter();
        let hooks = hooks.map(|hooks| Identity::new(Arc::as_ptr(hooks).cast::<()>().addr(), hooks.clone()));
        let mut world: Vec<Identity> = state.chain(hooks).collect();
        world.sort_unstable_by_key(|identity| identity.address);
        Self {
            tool: name.to_owned(),
            fingerprint,
            session: context.session_id().map(str::to_owned),
            source: context.source().cloned().map(|source| Identity::new(source.address(), source)),
            world,
            args: exact_text(checked.value(), checked.text()),
        }
    }
}

/// Returns a text that differs if the arguments differ. `args` are the parsed arguments. The original text, `sent`, is appended if parsing
/// may have lost a difference.
fn exact_text(args: &Value, sent: &str) -> String {
    /// Two different decimal numbers with at most this many digits are different floats.
    const DIGITS: usize = 15;
    let mut key = canonical(args);
    let is_negative_exponent = |text: &[u8]| matches!(text, [b'0'..=b'9', b'e' | b'E', b'-']);
    // `args` is null if only the tool itself can parse the arguments. A long number in `args` may be a float that has lost digits, and a
    // number with a negative exponent may be so small that its float is 0.
    if args.is_null()
        || sent.split(|c: char| !c.is_ascii_digit() && c != '.').any(|number| number.len() > DIGITS)
        || sent.as_bytes().windows(3).any(is_negative_exponent)
    {
        key.push_str(sent);
    }
    key
}

pub(super) fn uncached<'t>(
    tools: impl Iterator<Item = &'t Tool>,
    has_hooks: bool,
    per_prompt: &[StateKey],
) -> Vec<(String, &'static str)> {
    let reason = |tool: &Tool| {
        let policy = tool.policy();
        match policy.cache {
            Some(false) => return Some("the tool is declared with `cache = false`"),
            None if policy.effect == Effect::Once => {
                return Some("the tool is neither `read_only` nor `idempotent`");
            }
            _ => {}
        }
        let may_read = tool.reads_context() || tool.requires().iter().any(|state| per_prompt.contains(state));
        match per_prompt {
            [] => None,
            _ if may_read => Some("the tool may read state that each prompt brings"),
            _ => has_hooks.then_some("the hooks may read state that each prompt brings"),
        }
    };
    let uncached: Vec<_> =
        tools.filter_map(|tool| Some((tool.definition().name().to_owned(), reason(tool)?))).collect();
    if !uncached.is_empty() {
        let reasons: Vec<_> = uncached.iter().map(|(tool, reason)| format!("`{tool}`: {reason}")).collect();
        tracing::info!(tools = %reasons.join("; "), "`cache_results` keeps no results of some tools");
    }
    uncached
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::source::Source;

    fn key(args: &str) -> CallKey {
        let args = exact_text(&serde_json::from_str(args).unwrap(), args);
        CallKey { tool: "t".to_owned(), fingerprint: 1, session: None, source: None, world: Vec::new(), args }
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
        assert_ne!(key(r#"{"a": 1e-400}"#), key(r#"{"a": 2e-400}"#));
        let source = Source::new(7_u8);
        let identity = |source: &Source| Identity::new(source.address(), source.clone());
        let of = |source: &Source| CallKey { source: Some(identity(source)), ..key("{}") };
        assert_eq!(of(&source), of(&source.clone()));
        for other in [
            of(&Source::new(7_u8)),
            key("{}"),
            CallKey { session: Some("s".to_owned()), ..of(&source) },
            CallKey { fingerprint: 2, ..of(&source) },
            CallKey { tool: "u".to_owned(), ..of(&source) },
            CallKey { world: vec![identity(&source)], ..of(&source) },
        ] {
            assert_ne!(of(&source), other);
        }
    }

    #[test]
    fn the_oldest_result_is_dropped_first() {
        let cache = ResultCache::new();
        for n in 0..=MAX_RESULTS {
            cache.insert(key(&n.to_string()), &ToolOutput::empty());
        }
        assert_eq!((cache.get(&key("0")), cache.len()), (None, MAX_RESULTS));
        assert!(cache.get(&key("1")).is_some());
    }
}
