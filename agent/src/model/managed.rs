//! Tools that the provider runs itself: how they are asked for, and what they did.

use serde_json::Value;

use crate::message::Media;

/// A tool that the provider runs itself. Its calls and results come as
/// [`ProviderTool`](crate::message::ProviderTool) parts, and what they did as [`ManagedResult`]s.
///
/// | | Anthropic | OpenAI Responses | Gemini | Chat Completions |
/// | --- | --- | --- | --- | --- |
/// | web search | yes | yes | yes | search models of OpenAI, `OpenRouter`, Alibaba |
/// | web fetch | yes | | yes | |
/// | code execution | yes | yes | yes | |
/// | image generation | | yes | models that draw | |
///
/// A provider that does not have the tool refuses the request before it is sent. Where a tool of one's own can do instead, an
/// assistant takes it: [`managed_tool_or`](crate::AssistantBuilder::managed_tool_or).
///
/// ```
/// use agent::model::{ManagedTool, ModelRequest, WebSearch};
///
/// let search = WebSearch { max_uses: Some(3), ..WebSearch::default() };
/// let oracle = ManagedTool::other("acme", agent::json!({"type": "oracle_v2"}));
/// let tools = [ManagedTool::WebSearch(search), ManagedTool::web_fetch(), oracle];
/// let request = ModelRequest::default().with_managed_tools(tools);
/// let names: Vec<&str> = request.managed_tools.iter().map(|tool| tool.name()).collect();
/// assert_eq!(names, ["web search", "web fetch", "oracle_v2"]);
/// assert_eq!(ManagedTool::web_search(), ManagedTool::WebSearch(WebSearch::default()));
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
    /// A search of the web with the provider's own settings.
    pub fn web_search() -> Self {
        Self::WebSearch(WebSearch::default())
    }

    /// Reading of pages of the web with the provider's own settings.
    pub fn web_fetch() -> Self {
        Self::WebFetch(WebFetch::default())
    }

    /// A tool that only one provider knows, in that provider's words: its entry in the list of tools. Another provider refuses
    /// the request.
    pub fn other(provider: impl Into<String>, definition: impl Into<Value>) -> Self {
        Self::Other { provider: provider.into(), definition: definition.into() }
    }

    /// Its name in words, for people: `web search`; of a tool that only one provider knows, the `type` of its definition.
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
///
/// ```
/// use agent::model::{ManagedTool, WebSearch};
///
/// let search = WebSearch { max_uses: Some(3), allowed_domains: vec!["docs.rs".into()], ..WebSearch::default() };
/// assert_eq!(ManagedTool::WebSearch(search).name(), "web search");
/// ```
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
///
/// ```
/// use agent::model::{ManagedTool, WebFetch};
///
/// let fetch = WebFetch { blocked_domains: vec!["intranet.example".into()], ..WebFetch::default() };
/// assert_eq!(ManagedTool::WebFetch(fetch).name(), "web fetch");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebFetch {
    /// At most this many pages a reply.
    pub max_uses: Option<u32>,
    /// Only these domains, if any are named.
    pub allowed_domains: Vec<String>,
    /// Never these domains.
    pub blocked_domains: Vec<String>,
}

/// What a tool that the provider ran came to, in the same words for every provider: read from a reply by
/// [`managed_results`](crate::provider::managed_results).
///
/// ```
/// use agent::model::{ManagedResult, WebSearchResult, WebSource};
///
/// /// The pages that a reply stands on.
/// fn sources(results: &[ManagedResult]) -> Vec<&str> {
///     let searches = results.iter().filter_map(|result| match result {
///         ManagedResult::WebSearch(search) => Some(search),
///         _ => None,
///     });
///     searches.flat_map(|search| &search.sources).map(|source| source.url.as_str()).collect()
/// }
///
/// let mut search = WebSearchResult::default();
/// search.sources.push(WebSource::new("https://docs.rs/serde"));
/// assert_eq!(sources(&[ManagedResult::WebSearch(search)]), ["https://docs.rs/serde"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ManagedResult {
    /// The web was searched.
    WebSearch(WebSearchResult),
    /// A page of the web was read.
    WebFetch(WebFetchResult),
    /// Code was run.
    CodeExecution(CodeExecutionResult),
    /// A picture was drawn.
    ImageGeneration(ImageGenerationResult),
}

/// What a search of the web found.
///
/// ```
/// use agent::model::{WebSearchResult, WebSource};
///
/// let mut found = WebSearchResult::default();
/// found.sources.push(WebSource::new("https://docs.rs/serde").with_title("serde"));
/// assert!(found.error.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebSearchResult {
    /// What was searched for, where the provider tells.
    pub queries: Vec<String>,
    /// The pages that it found, or that the reply cites: providers tell one or the other.
    pub sources: Vec<WebSource>,
    /// Why it failed, in the provider's word.
    pub error: Option<String>,
}

/// A page of the web.
///
/// ```
/// use agent::model::WebSource;
///
/// let page = WebSource::new("https://docs.rs/serde").with_title("serde");
/// assert_eq!(page.title.as_deref(), Some("serde"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebSource {
    /// Where it is. Gemini gives addresses of its own that lead there.
    pub url: String,
    /// What it is called.
    pub title: Option<String>,
}

impl WebSource {
    /// A page at this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), title: None }
    }

    /// Sets what it is called.
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// What reading a page of the web came to.
///
/// ```
/// use agent::model::WebFetchResult;
///
/// let show = |page: &WebFetchResult| match &page.error {
///     Some(error) => format!("not read: {error}"),
///     None => page.title.clone().unwrap_or_default(),
/// };
/// let mut gone = WebFetchResult::default();
/// gone.error = Some("404".into());
/// assert_eq!(show(&gone), "not read: 404");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebFetchResult {
    /// The page.
    pub url: Option<String>,
    /// What it is called.
    pub title: Option<String>,
    /// Its text, where the provider shows it.
    pub text: Option<String>,
    /// Why it failed, in the provider's word.
    pub error: Option<String>,
}

/// What code that the provider ran came to.
///
/// ```
/// use agent::model::CodeExecutionResult;
///
/// let mut run = CodeExecutionResult::default();
/// (run.stdout, run.exit_code) = ("42\n".into(), Some(0));
/// assert_eq!(run.stdout.trim(), "42");
/// assert!(run.files.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CodeExecutionResult {
    /// The code, or the command of a shell.
    pub code: Option<String>,
    /// What it printed. Where a provider does not tell its errors apart they are here, too.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
    /// How it ended, where the provider tells.
    pub exit_code: Option<i64>,
    /// Files that it left, pictures among them: at the provider, or at an address.
    pub files: Vec<Media>,
    /// Why it failed, in the provider's word.
    pub error: Option<String>,
}

/// A picture that the provider drew.
///
/// ```
/// use agent::message::{Media, MediaSource};
/// use agent::model::ImageGenerationResult;
///
/// let mut drawn = ImageGenerationResult::default();
/// drawn.image = Some(Media::data(vec![0x89, 0x50], "image/png"));
/// if let Some(MediaSource::Data(bytes)) = drawn.image.as_ref().map(|image| &image.source) {
///     assert_eq!(bytes.len(), 2);                      // to be written to a file
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ImageGenerationResult {
    /// The picture.
    pub image: Option<Media>,
    /// What was drawn, in the words that the provider made of the request.
    pub prompt: Option<String>,
    /// Why it failed, in the provider's word.
    pub error: Option<String>,
}
