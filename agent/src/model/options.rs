//! What a request may ask of a provider beyond messages and tools.

use serde_json::Value;

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

/// A tool that the provider runs itself. Its calls and results come as
/// [`ProviderTool`](crate::message::ProviderTool) parts.
///
/// A provider that does not have the tool refuses the request before it is sent.
///
/// ```
/// use agent::model::{ManagedTool, ModelRequest, WebSearch};
///
/// let search = WebSearch { max_uses: Some(3), ..WebSearch::default() };
/// let request = ModelRequest::default().with_managed_tools([ManagedTool::WebSearch(search)]);
/// # assert_eq!(request.managed_tools.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ManagedTool {
    /// Searches the web.
    WebSearch(WebSearch),
    /// Reads pages of the web.
    WebFetch(WebFetch),
    /// Runs code in a sandbox of the provider.
    CodeExecution,
    /// Draws pictures.
    ImageGeneration,
    /// A tool that only one provider knows, in that provider's words.
    #[non_exhaustive]
    Other {
        /// Whose it is.
        provider: String,
        /// Its entry in the list of tools.
        definition: Value,
    },
}

impl ManagedTool {
    /// A tool that only one provider knows, in that provider's words.
    pub fn other(provider: impl Into<String>, definition: impl Into<Value>) -> Self {
        Self::Other { provider: provider.into(), definition: definition.into() }
    }

    /// Its name in words.
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch(_) => "web search",
            Self::WebFetch(_) => "web fetch",
            Self::CodeExecution => "code execution",
            Self::ImageGeneration => "image generation",
            Self::Other { definition, .. } => {
                definition.get("type").and_then(Value::as_str).unwrap_or("another tool")
            }
        }
    }

    /// The error of a provider that does not have it.
    #[cfg(feature = "http")]
    #[allow(dead_code, reason = "only providers refuse")]
    pub(crate) fn refused_by(&self, provider: &str) -> super::ModelError {
        let name = self.name();
        let whose = match self {
            Self::Other { provider: own, .. } if own != provider => format!("it is a tool of `{own}`"),
            _ => "the protocol it is asked by has no such tool".to_owned(),
        };
        super::ModelError::new(
            super::ModelErrorKind::InvalidRequest,
            format!("`{provider}` cannot run {name}: {whose}"),
        )
    }
}

/// Settings of a search of the web. Absent ones are the provider's to decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebSearch {
    /// At most this many searches a reply.
    pub max_uses: Option<u32>,
    /// Only these domains, if any are named.
    pub allowed_domains: Vec<String>,
    /// Never these domains.
    pub blocked_domains: Vec<String>,
}

/// Settings of reading the web. Absent ones are the provider's to decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebFetch {
    /// At most this many pages a reply.
    pub max_uses: Option<u32>,
    /// Only these domains, if any are named.
    pub allowed_domains: Vec<String>,
    /// Never these domains.
    pub blocked_domains: Vec<String>,
}
