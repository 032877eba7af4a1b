//! Tools that the provider runs: how they are requested, and their results.

use serde_json::Value;

use crate::message::{Media, ResourceLink};

/// A tool that the provider runs. Its calls and results are [`ProviderTool`](crate::message::ProviderTool) parts of the reply.
/// [`ManagedResult`]s describe the results in a neutral form.
///
/// | | Anthropic | OpenAI Responses | Gemini | Chat Completions |
/// | --- | --- | --- | --- | --- |
/// | web search | yes | yes | yes | `OpenRouter`, Alibaba, search models of OpenAI |
/// | web fetch | yes | | yes | |
/// | code execution | yes | yes | yes | |
/// | image generation | | yes | models that draw | |
///
/// A request with a tool that its provider does not have is refused before it is sent. An assistant can use a tool of the application in
/// place of a missing one ([`managed_tool_or`](crate::AssistantBuilder::managed_tool_or)).
///
/// ```
/// use agent::model::{ManagedTool, ModelRequest};
///
/// let search = ManagedTool::web_search().max_uses(3).allowed_domains(["docs.rs"]);
/// let oracle = ManagedTool::other("acme", agent::json!({"type": "oracle_v2"}));
/// let tools = [search, ManagedTool::web_fetch(), oracle];
/// let request = ModelRequest::default().with_managed_tools(tools);
/// let names: Vec<&str> = request.managed_tools.iter().map(|tool| tool.name()).collect();
/// assert_eq!(names, ["web search", "web fetch", "oracle_v2"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ManagedTool {
    /// A web search. If a limit is absent, the default of the provider applies.
    WebSearch {
        /// Maximum number of searches per reply.
        max_uses: Option<u32>,
        /// The domains that are searched, or empty for all domains.
        allowed_domains: Vec<String>,
        /// The domains that are never searched.
        blocked_domains: Vec<String>,
    },
    /// A web fetch, which reads web pages. If a limit is absent, the default of the provider applies.
    WebFetch {
        /// Maximum number of pages that are read per reply.
        max_uses: Option<u32>,
        /// The domains whose pages are read, or empty for all domains.
        allowed_domains: Vec<String>,
        /// The domains whose pages are never read.
        blocked_domains: Vec<String>,
    },
    /// Code execution in a sandbox of the provider.
    CodeExecution,
    /// Image generation.
    ImageGeneration,
    /// A tool that only one provider has, in that provider's format.
    #[non_exhaustive]
    Other {
        /// The provider.
        provider: String,
        /// The entry of the tool in the provider's list of tools.
        definition: Value,
    },
    /// A tool whose results a user interface should not show. Created by [`without_rendering`](Self::without_rendering).
    Unrendered(Box<ManagedTool>),
}

impl ManagedTool {
    /// Creates a web search with the provider's default settings.
    pub fn web_search() -> Self {
        Self::WebSearch { max_uses: None, allowed_domains: Vec::new(), blocked_domains: Vec::new() }
    }

    /// Creates a web fetch, which reads web pages, with the provider's default settings.
    pub fn web_fetch() -> Self {
        Self::WebFetch { max_uses: None, allowed_domains: Vec::new(), blocked_domains: Vec::new() }
    }

    /// Limits the searches of a web search, or the pages that a web fetch reads, per reply. Has no effect on other tools. Only Anthropic
    /// has such a limit; requests to other providers leave it out, with a warning.
    pub fn max_uses(self, uses: u32) -> Self {
        self.limited(|max_uses, _, _| *max_uses = Some(uses))
    }

    /// Limits a web search or a web fetch to these domains. Has no effect on other tools.
    ///
    /// ```
    /// use agent::model::ManagedTool;
    ///
    /// let search = ManagedTool::web_search().allowed_domains(["docs.rs", "doc.rust-lang.org"]);
    /// assert!(matches!(search, ManagedTool::WebSearch { allowed_domains, .. } if allowed_domains.len() == 2));
    /// ```
    pub fn allowed_domains<D: Into<String>>(self, domains: impl IntoIterator<Item = D>) -> Self {
        self.limited(|_, allowed, _| *allowed = domains.into_iter().map(Into::into).collect())
    }

    /// Excludes these domains from a web search or a web fetch. Has no effect on other tools.
    ///
    /// ```
    /// use agent::model::ManagedTool;
    ///
    /// let fetch = ManagedTool::web_fetch().blocked_domains(["example.com"]);
    /// assert!(matches!(fetch, ManagedTool::WebFetch { blocked_domains, .. } if blocked_domains == ["example.com"]));
    /// ```
    pub fn blocked_domains<D: Into<String>>(self, domains: impl IntoIterator<Item = D>) -> Self {
        self.limited(|_, _, blocked| *blocked = domains.into_iter().map(Into::into).collect())
    }

    fn limited(mut self, limit: impl FnOnce(&mut Option<u32>, &mut Vec<String>, &mut Vec<String>)) -> Self {
        let mut tool = &mut self;
        while let Self::Unrendered(inner) = tool {
            tool = inner;
        }
        if let Self::WebSearch { max_uses, allowed_domains, blocked_domains }
        | Self::WebFetch { max_uses, allowed_domains, blocked_domains } = tool
        {
            limit(max_uses, allowed_domains, blocked_domains);
        }
        self
    }

    /// Creates a tool that only one provider has, by its entry in that provider's list of tools. A request to another provider with this
    /// tool is refused.
    pub fn other(provider: impl Into<String>, definition: impl Into<Value>) -> Self {
        Self::Other { provider: provider.into(), definition: definition.into() }
    }

    /// Marks the tool as one whose results a user interface should not show. The interface checks [`is_renderable`](Self::is_renderable).
    /// Providers and models do not see this setting.
    ///
    /// ```
    /// use agent::model::{ManagedResult, ManagedTool};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .managed_tool(ManagedTool::web_search().without_rendering())
    ///     .managed_tool(ManagedTool::CodeExecution)
    ///     .build()?;
    /// let tools = assistant.managed_tools();
    /// assert!(!tools[0].is_renderable() && tools[1].is_renderable());
    ///
    /// // An interface leaves out what should not be shown.
    /// let is_shown = |result: &ManagedResult| {
    ///     tools.iter().all(|tool| tool.name() != result.tool_name() || tool.is_renderable())
    /// };
    /// assert!(!is_shown(&ManagedResult::WebSearch { queries: Vec::new(), sources: Vec::new(), error: None }));
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn without_rendering(self) -> Self {
        if self.is_renderable() { Self::Unrendered(Box::new(self)) } else { self }
    }

    /// Returns whether a user interface should show the results of the tool. Default: yes.
    pub fn is_renderable(&self) -> bool {
        !matches!(self, Self::Unrendered(_))
    }

    /// Returns the tool without settings for user interfaces, as it is requested from a provider. A custom protocol needs this form.
    ///
    /// ```
    /// use agent::model::ManagedTool;
    ///
    /// let search = ManagedTool::web_search();
    /// assert_eq!(search.clone().without_rendering().as_requested(), &search);
    /// ```
    pub fn as_requested(&self) -> &Self {
        match self {
            Self::Unrendered(tool) => tool.as_requested(),
            tool => tool,
        }
    }

    /// Returns a human-readable name, such as `web search`. For a [`ManagedTool::Other`], returns the `type` of the definition, or
    /// `another tool` if there is no `type`.
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch { .. } => "web search",
            Self::WebFetch { .. } => "web fetch",
            Self::CodeExecution => "code execution",
            Self::ImageGeneration => "image generation",
            Self::Other { definition, .. } => {
                definition.get("type").and_then(Value::as_str).unwrap_or("another tool")
            }
            Self::Unrendered(tool) => tool.name(),
        }
    }

    /// Logs a warning that the provider ignores `max_uses`, if `max_uses` is set. The request is not refused, so that a `Fallback` can
    /// contain the provider.
    #[cfg(feature = "http")]
    #[allow(dead_code, reason = "only providers warn")]
    pub(crate) fn warn_about_uses(&self, provider: &str) {
        if let Self::WebSearch { max_uses: Some(_), .. } | Self::WebFetch { max_uses: Some(_), .. } = self {
            tracing::warn!(setting = "max_uses", provider, "the provider has no such limit: left out");
        }
    }

    #[cfg(feature = "http")]
    #[allow(dead_code, reason = "only providers refuse")]
    pub(crate) fn refused_by(&self, provider: &str) -> super::ModelError {
        let name = self.name();
        let whose = match self.as_requested() {
            Self::Other { provider: own, .. } if own != provider => format!("it is a tool of `{own}`"),
            _ => "the protocol it is asked by has no such tool".to_owned(),
        };
        super::ModelError::new(
            super::ModelErrorKind::InvalidRequest,
            format!("`{provider}` cannot run {name}: {whose}"),
        )
    }
}

/// The result of a tool that the provider ran, in the same form for every provider.
/// [`managed_results`](crate::provider::managed_results) reads it from a reply.
///
/// ```
/// use agent::message::ResourceLink;
/// use agent::model::ManagedResult;
///
/// /// The pages that the web searches found.
/// fn sources(results: &[ManagedResult]) -> Vec<&str> {
///     let searches = results.iter().filter_map(|result| match result {
///         ManagedResult::WebSearch { sources, .. } => Some(sources),
///         _ => None,
///     });
///     searches.flatten().map(|source| source.uri.as_str()).collect()
/// }
///
/// let search = ManagedResult::WebSearch {
///     queries: vec!["serde".into()],
///     sources: vec![ResourceLink::new("https://docs.rs/serde")],
///     error: None,
/// };
/// assert_eq!(sources(&[search]), ["https://docs.rs/serde"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ManagedResult {
    /// A web search.
    WebSearch {
        /// The search queries, if the provider reports them.
        queries: Vec<String>,
        /// The pages that the search found or that the reply cites, depending on the provider. Gemini reports URLs of its own, which
        /// redirect to the pages.
        sources: Vec<ResourceLink>,
        /// The provider's error code, if the search failed.
        error: Option<String>,
    },
    /// The fetch of a web page.
    WebFetch {
        /// The URL of the page, if the provider reports it.
        url: Option<String>,
        /// The title of the page, if the provider reports it.
        title: Option<String>,
        /// The text of the page, if the provider shows it.
        text: Option<String>,
        /// The provider's error code, if reading failed.
        error: Option<String>,
    },
    /// A run of code.
    CodeExecution {
        /// The code or the shell command, if the provider shows it.
        code: Option<String>,
        /// The standard output. Some providers include the error output in the standard output.
        stdout: String,
        /// The error output.
        stderr: String,
        /// The exit code, if the provider reports it.
        exit_code: Option<i64>,
        /// Files that the code created, including images. Each entry contains the provider's file id or a URL.
        files: Vec<Media>,
        /// The provider's error code, if the run failed.
        error: Option<String>,
    },
    /// The generation of an image.
    ImageGeneration {
        /// The image. `None` if drawing failed or the image cannot be read.
        image: Option<Media>,
        /// The prompt that the provider wrote for the image, if the provider reports the prompt.
        prompt: Option<String>,
        /// The provider's error code, if drawing failed.
        error: Option<String>,
    },
}

impl ManagedResult {
    /// Returns the [name](ManagedTool::name) of the tool.
    ///
    /// ```
    /// use agent::model::{ManagedResult, ManagedTool};
    ///
    /// let result = ManagedResult::WebFetch { url: None, title: None, text: None, error: Some("404".into()) };
    /// assert_eq!(result.tool_name(), ManagedTool::web_fetch().name());
    /// ```
    pub fn tool_name(&self) -> &'static str {
        match self {
            Self::WebSearch { .. } => "web search",
            Self::WebFetch { .. } => "web fetch",
            Self::CodeExecution { .. } => "code execution",
            Self::ImageGeneration { .. } => "image generation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_reaches_the_tool_through_any_number_of_wrappers() {
        let wrap = |tool| ManagedTool::Unrendered(Box::new(tool));
        let search = wrap(wrap(ManagedTool::web_search())).blocked_domains(["example.com"]);
        assert_eq!(search.as_requested(), &ManagedTool::web_search().blocked_domains(["example.com"]));
    }
}
