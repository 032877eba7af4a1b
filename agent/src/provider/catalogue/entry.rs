//! The entries of a catalogue: one for each provider.

use std::fmt;
use std::sync::Arc;

use crate::provider::Protocol;
use crate::provider::http::ApiKey;

/// A provider: its protocol, its address, and the source of its key.
///
/// ```
/// # #[cfg(feature = "openai")] {
/// use agent::provider::{ProviderEntry, openai::{Compat, OpenAiChat}};
///
/// // A server of your own that speaks like OpenAI, on this machine.
/// let local = ProviderEntry::new("local", OpenAiChat::default().with_compat(Compat::plain()))
///     .with_base_url("http://127.0.0.1:8000/v1")
///     .without_key();
/// assert_eq!(local.name(), "local");
/// assert_eq!(local.protocol().api(), "openai-chat");
/// # }
/// ```
#[derive(Clone)]
pub struct ProviderEntry {
    pub(super) name: String,
    pub(in crate::provider) protocol: Arc<dyn Protocol>,
    pub(super) base_url: Option<String>,
    pub(super) key_variables: Vec<String>,
    pub(super) key: Option<ApiKey>,
    needs_key: bool,
    default_model: Option<String>,
    headers: Vec<(String, String)>,
}

impl ProviderEntry {
    /// Creates a provider with this protocol. By default, the key is in the environment variable `NAME_API_KEY`, where `NAME` is the
    /// provider's name in upper case, with `_` in place of characters other than letters and digits.
    pub fn new(name: impl Into<String>, protocol: impl Protocol + 'static) -> Self {
        Self::shared(name, Arc::new(protocol))
    }

    fn shared(name: impl Into<String>, protocol: Arc<dyn Protocol>) -> Self {
        Self {
            name: name.into(),
            protocol,
            base_url: None,
            key_variables: Vec::new(),
            key: None,
            needs_key: true,
            default_model: None,
            headers: Vec::new(),
        }
    }

    /// Sets the base URL, which replaces the default of the protocol. The [environment variable](crate::provider::Catalogue#names) for the
    /// provider's address takes precedence. The URL may end with the version of the API, or be the complete URL of the endpoint.
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Adds an environment variable that may contain the key. The first variable that is set and not blank is used. The default variable,
    /// `NAME_API_KEY`, is then read only if it is added, too.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::provider::{Catalogue, ProviderEntry, openai::OpenAiChat};
    ///
    /// let acme = ProviderEntry::new("acme", OpenAiChat::default())
    ///     .with_key_variable("ACME_PROD_KEY")
    ///     .with_key_variable("ACME_TEST_KEY");
    /// let error = Catalogue::default().with_provider(acme).model("acme/large-1").unwrap_err().to_string();
    /// assert!(error.ends_with("set ACME_PROD_KEY or ACME_TEST_KEY"), "{error}");
    /// # }
    /// ```
    pub fn with_key_variable(mut self, variable: impl Into<String>) -> Self {
        self.key_variables.push(variable.into());
        self
    }

    /// Sets the key, or the source of the key. If a key is set, no environment variable is read for it.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::provider::http::ApiKey;
    /// use agent::provider::{Catalogue, ProviderEntry, openai::OpenAiChat};
    ///
    /// // A token that is good for an hour: asked for before each request.
    /// let token = ApiKey::callback(|| async { Ok("token of this hour".into()) });
    /// let acme = ProviderEntry::new("acme", OpenAiChat::default()).with_key(token);
    /// assert!(Catalogue::default().with_provider(acme).model("acme/large-1").is_ok());
    /// # }
    /// ```
    pub fn with_key(mut self, key: impl Into<ApiKey>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Allows requests without a key, for example to servers on this machine.
    pub fn without_key(mut self) -> Self {
        self.needs_key = false;
        self
    }

    /// Sets the default model, which is used for a name that contains only the provider.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # fn example() -> Result<(), agent::provider::BuildModelError> {
    /// use agent::model::Model as _;
    /// use agent::provider::{Catalogue, ProviderEntry, openai::OpenAiChat};
    ///
    /// let local = ProviderEntry::new("local", OpenAiChat::default())
    ///     .with_base_url("http://127.0.0.1:8000/v1")
    ///     .with_default_model("qwen3")
    ///     .without_key();
    /// assert_eq!(Catalogue::default().with_provider(local).model("local")?.info().model, "qwen3");
    /// # Ok(()) }
    /// # #[cfg(feature = "openai")] example().unwrap();
    /// ```
    pub fn with_default_model(mut self, model: impl Into<String>) -> Self {
        self.default_model = Some(model.into());
        self
    }

    /// Adds a header to all requests of this provider. A header of the same name that a model's builder adds replaces this header.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::provider::http::HttpOptions;
    /// use agent::traffic::TrafficKind;
    /// use agent::provider::{Catalogue, ProviderEntry, openai::OpenAiChat};
    /// use std::sync::{Arc, Mutex};
    ///
    /// let sent = Arc::new(Mutex::new(Vec::new()));
    /// let seen = sent.clone();
    /// let options = HttpOptions::default().without_proxy().with_max_retries(0).on_traffic(move |traffic| {
    ///     if let TrafficKind::Request { headers, .. } = &traffic.kind {
    ///         seen.lock().unwrap().extend(headers.iter().cloned());
    ///     }
    /// });
    /// let local = ProviderEntry::new("local", OpenAiChat::default())
    ///     .with_base_url("http://127.0.0.1:9/v1")                  // where nobody listens
    ///     .with_header("x-team", "search")
    ///     .without_key();
    /// let model = Catalogue::empty().with_provider(local).with_options(options).model("local/qwen3")?;
    /// assert!(model.call(&StepCx::new(), &ModelRequest::default()).await.is_err());
    /// assert!(sent.lock().unwrap().contains(&("x-team".to_owned(), "search".to_owned())));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "openai"))] fn main() {}
    /// ```
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(in crate::provider) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Returns the provider's name: the part before the `/` in the names of its models.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the protocol.
    pub fn protocol(&self) -> &dyn Protocol {
        &*self.protocol
    }

    /// Returns the prefix of the provider's environment variables, for example `OPENAI` if the key is in `OPENAI_API_KEY`.
    pub(super) fn prefix(&self) -> String {
        let by_key = self.key_variables.first().and_then(|variable| variable.strip_suffix("_API_KEY"));
        by_key.map_or_else(|| variable(&self.name), str::to_owned)
    }

    pub(super) fn default_model(&self) -> Option<String> {
        self.default_model.clone().or_else(|| from_env(&format!("{}_DEFAULT_MODEL", self.prefix())))
    }

    /// Returns the base URL. The error is the environment variable that should contain the URL.
    pub(in crate::provider) fn base_url(&self, protocol: &dyn Protocol) -> Result<String, String> {
        let variable = format!("{}_BASE_URL", self.prefix());
        let found = from_env(&variable).or_else(|| self.base_url.clone());
        match found.unwrap_or_else(|| protocol.base_url().to_owned()) {
            url if url.is_empty() => Err(variable),
            url => Ok(url),
        }
    }

    /// Returns the key. The error names the environment variables that were read.
    pub(in crate::provider) fn key(&self) -> Result<ApiKey, String> {
        let own = [format!("{}_API_KEY", variable(&self.name))];
        let variables = if self.key_variables.is_empty() { &own[..] } else { &self.key_variables };
        let found =
            self.key.clone().or_else(|| variables.iter().find_map(|variable| ApiKey::from_env(variable)));
        match found {
            Some(key) => Ok(key),
            None if !self.needs_key => Ok(ApiKey::none()),
            None => Err(variables.join(" or ")),
        }
    }
}

/// Leaves out the address and the headers, because they may contain keys.
impl fmt::Debug for ProviderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderEntry")
            .field("name", &self.name)
            .field("protocol", &self.protocol)
            .field("key_variables", &self.key_variables)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

fn from_env(variable: &str) -> Option<String> {
    std::env::var(variable).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Converts a provider's name for use in environment variables: `openai-responses` becomes `OPENAI_RESPONSES`.
fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

pub(super) fn built_in() -> Vec<ProviderEntry> {
    #[cfg_attr(not(feature = "openai"), expect(unused_mut, reason = "servers speak OpenAI's protocol"))]
    let mut providers = vec![
        #[cfg(feature = "anthropic")]
        ProviderEntry::new("anthropic", crate::provider::anthropic::AnthropicMessages::default())
            .with_key_variable("ANTHROPIC_API_KEY"),
        #[cfg(feature = "openai")]
        ProviderEntry::new("openai", crate::provider::openai::OpenAiChat::default())
            .with_key_variable("OPENAI_API_KEY"),
        #[cfg(feature = "openai")]
        ProviderEntry::new("openai-responses", crate::provider::openai::OpenAiResponses::default())
            .with_key_variable("OPENAI_API_KEY"),
        #[cfg(feature = "gemini")]
        ProviderEntry::new("gemini", crate::provider::gemini::Gemini::default())
            .with_key_variable("GEMINI_API_KEY")
            .with_key_variable("GOOGLE_API_KEY"),
    ];
    #[cfg(feature = "openai")]
    for server in crate::provider::openai::SERVERS {
        let mut entry = ProviderEntry::new(
            server.name,
            crate::provider::openai::OpenAiChat::default().with_compat((server.compat)()),
        )
        .with_base_url(server.base_url)
        .with_key_variable(server.key_variable);
        entry.needs_key = !server.is_local;
        providers.push(entry);
    }
    providers
}
