//! What a request may ask of a provider beyond messages and tools.

use crate::message::CacheMark;

/// What the provider's prompt cache should keep of a request, beside what its parts [mark](crate::message::Part::cache).
///
/// Providers that cache by themselves take the `key` and ignore the rest.
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
    /// The system prompt.
    pub system: Option<CacheMark>,
    /// The tools.
    pub tools: Option<CacheMark>,
    /// As much of the conversation as the provider can, moving on with it.
    pub automatic: Option<CacheMark>,
    /// Requests of one key share a cache, where the provider routes by it.
    pub key: Option<String>,
}
