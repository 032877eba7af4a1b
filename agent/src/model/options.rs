//! Options of a request beyond messages and tools.

use crate::message::CacheMark;

/// The parts of a request that the provider's prompt cache should keep, beside those that are [marked](crate::message::Part::cache).
///
/// Providers that cache automatically use the `key` and ignore the rest.
///
/// ```
/// use agent::message::CacheMark;
/// use agent::model::{ModelRequest, PromptCache};
///
/// let mut cache = PromptCache::default();
/// (cache.system, cache.tools) = (Some(CacheMark::Hour), Some(CacheMark::Hour));
/// let request = ModelRequest::default().with_cache(cache);
/// # assert!(request.cache.automatic.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptCache {
    /// Caches the system prompt.
    pub system: Option<CacheMark>,
    /// Caches the tools.
    pub tools: Option<CacheMark>,
    /// Caches as much of the conversation as the provider can, also when it grows.
    pub automatic: Option<CacheMark>,
    /// Requests with the same key share a cache, at providers that route by it.
    pub key: Option<String>,
}
