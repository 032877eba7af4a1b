//! A provider's model over HTTP.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tracing::subscriber::NoSubscriber;

use super::client::{HttpClient, LoggableRequest};
use super::exchange::Exchange;
use super::options::HttpOptions;
use super::restore::NullRestorer;
use super::secret::{ApiKey, Secret};
use crate::address::shown_address;
use crate::message::{Message, MessageList, Part};
use crate::model::{
    Capabilities, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream, StepCx,
};
use crate::provider::{BuildModelError, Catalogue, HttpRequest, ModelFacts, Protocol};
use crate::tool::BoxFuture;
use crate::tool::secrets::SecretArguments;

/// A model of a provider, accessed over HTTP. Clones share the connections and the settings.
///
/// A model needs a tokio runtime with I/O and timers.
///
/// ```
/// # #[cfg(feature = "openai")]
/// # fn example() -> Result<(), agent::provider::BuildModelError> {
/// use agent::provider::http::{HttpModel, HttpOptions};
///
/// let options = HttpOptions::default().with_max_retries(5);
/// let model = HttpModel::builder("openai/gpt-5-mini").key("sk-123").options(options).build()?;
/// assert_eq!(model.facts().unwrap().context_window, Some(400_000));
/// # Ok(()) }
/// # #[cfg(feature = "openai")] example().unwrap();
/// ```
#[derive(Clone)]
pub struct HttpModel {
    pub(super) inner: Arc<ModelEndpoint>,
}

pub(super) struct ModelEndpoint {
    pub(super) info: ModelInfo,
    pub(super) facts: Option<ModelFacts>,
    /// The maximum number of tokens of a reply, if the program set it. A built-in maximum is only in `facts`.
    max_output: Option<u64>,
    pub(super) protocol: Arc<dyn Protocol>,
    pub(super) client: HttpClient,
    pub(super) base_url: String,
    key: ApiKey,
    headers: Vec<(String, String)>,
    secret_headers: Vec<(String, Secret)>,
}

/// A builder of an [`HttpModel`].
///
/// ```
/// # #[cfg(feature = "anthropic")]
/// # fn example() -> Result<(), agent::provider::BuildModelError> {
/// use agent::model::Model as _;
/// use agent::provider::http::HttpModel;
///
/// let model = HttpModel::builder("anthropic/claude-sonnet-5")
///     .key("sk-123")
///     .base_url("https://proxy.example/anthropic")
///     .header("x-team", "search")
///     .build()?;
/// assert_eq!(model.info().model, "claude-sonnet-5");
/// # Ok(()) }
/// # #[cfg(feature = "anthropic")] example().unwrap();
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct HttpModelBuilder {
    pub(in crate::provider) name: String,
    pub(in crate::provider) catalogue: Option<Catalogue>,
    key: Option<ApiKey>,
    protocol: Option<Arc<dyn Protocol>>,
    base_url: Option<String>,
    headers: Vec<(String, String)>,
    options: Option<HttpOptions>,
    capabilities: Option<Capabilities>,
    pub(in crate::provider) facts: Option<ModelFacts>,
}

impl HttpModel {
    /// Returns a builder for a model by provider and name: `anthropic/claude-sonnet-5`. Names are looked up in the built-in
    /// [`Catalogue`]; for a catalogue of your own see [`Catalogue::builder`].
    pub fn builder(name: impl Into<String>) -> HttpModelBuilder {
        HttpModelBuilder {
            name: name.into(),
            catalogue: None,
            key: None,
            protocol: None,
            base_url: None,
            headers: Vec::new(),
            options: None,
            capabilities: None,
            facts: None,
        }
    }
}

impl HttpModel {
    /// Returns the limits and prices of the model, from its builder or its catalogue, or `None` if neither has facts about the model.
    pub fn facts(&self) -> Option<&ModelFacts> {
        self.inner.facts.as_ref()
    }
}

impl HttpModelBuilder {
    /// Looks up the name of the model in this catalogue instead of the built-in one, and uses the HTTP options of the catalogue.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # fn example() -> Result<(), agent::provider::BuildModelError> {
    /// use agent::model::{Capabilities, Model as _};
    /// use agent::provider::http::HttpModel;
    /// use agent::provider::openai::{OpenAiChat, OpenAiResponses};
    /// use agent::provider::{Catalogue, ProviderEntry};
    ///
    /// let acme = ProviderEntry::new("acme", OpenAiChat::default()).with_base_url("https://api.acme.example/v1").without_key();
    /// let mut text_only = Capabilities::default();
    /// text_only.images = false;
    /// let model = HttpModel::builder("acme/large-1")
    ///     .catalogue(Catalogue::empty().with_provider(acme))
    ///     .protocol(OpenAiResponses::default().with_store())           // instead of the provider's
    ///     .capabilities(text_only)
    ///     .build()?;
    /// assert_eq!((model.info().provider.as_str(), model.info().api.as_str()), ("acme", "openai-responses"));
    /// assert!(!model.info().capabilities.images);
    /// # Ok(()) }
    /// # #[cfg(feature = "openai")] example().unwrap();
    /// ```
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Some(catalogue);
        self
    }

    /// Sets the key or its source. Default: the key of the catalogue, or else that in the provider's environment variable.
    pub fn key(mut self, key: impl Into<ApiKey>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets a protocol that replaces the provider's own, for example the same protocol with another version of the API.
    pub fn protocol(mut self, protocol: impl Protocol + 'static) -> Self {
        self.protocol = Some(Arc::new(protocol));
        self
    }

    /// Sets the base URL, instead of the provider's. The URL may end with the version of the API, or be the complete URL of the endpoint.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Adds a header, for example an organization. The header replaces a header of the same name, also one of the protocol, such as the
    /// header with the key. The value of a header whose name contains `key`, `token`, `auth`, `secret` or `cookie` is never shown.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets timeouts, retries, limits and listeners, instead of those of the catalogue.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::provider::http::{HttpModel, HttpOptions};
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// use std::time::Duration;
    ///
    /// let retries = Arc::new(AtomicU32::new(0));
    /// let counter = retries.clone();
    /// let mut options = HttpOptions::default()
    ///     .without_proxy()
    ///     .with_max_retries(1)
    ///     .on_retry(move |retry| counter.store(retry.number, Ordering::Relaxed));
    /// options.first_delay = Duration::from_millis(1);
    /// let model = HttpModel::builder("ollama/qwen3").base_url("http://127.0.0.1:9/v1").options(options).build()?;
    /// let error = model.call(&StepCx::new(), &ModelRequest::default()).await.unwrap_err();   // nobody listens there
    /// assert!(error.is_connection());
    /// assert_eq!(retries.load(Ordering::Relaxed), 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "openai"))] fn main() {}
    /// ```
    pub fn options(mut self, options: HttpOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Sets the capabilities of the model. By default, they follow from the model's name. With a [`base_url`](Self::base_url), schemas for
    /// replies are off by default.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Sets the limits and prices, instead of those of the catalogue. [`max_output`](ModelFacts::max_output) is sent as the `max_tokens` of
    /// each request that sets a larger `max_tokens` or none.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # fn example() -> Result<(), agent::provider::BuildModelError> {
    /// use agent::provider::{ModelFacts, http::HttpModel};
    ///
    /// let facts = ModelFacts::default().with_context_window(32_000).with_max_output(4_000);
    /// let model = HttpModel::builder("ollama/large").facts(facts.clone()).build()?;
    /// assert_eq!(model.facts(), Some(&facts));
    /// # Ok(()) }
    /// # #[cfg(feature = "openai")] example().unwrap();
    /// ```
    pub fn facts(mut self, facts: ModelFacts) -> Self {
        self.facts = Some(facts);
        self
    }

    /// Adds the settings that the catalogue has for this model. Settings of the builder take precedence.
    fn or(self, settings: Self) -> Self {
        Self {
            name: self.name,
            catalogue: self.catalogue,
            key: self.key.or(settings.key),
            protocol: self.protocol.or(settings.protocol),
            base_url: self.base_url.or(settings.base_url),
            headers: settings.headers.into_iter().chain(self.headers).collect(),
            options: self.options.or(settings.options),
            capabilities: self.capabilities.or(settings.capabilities),
            facts: self.facts.or(settings.facts),
        }
    }

    /// Builds the model.
    ///
    /// # Errors
    /// Fails when the provider is unknown, when the name contains no model and there is no default model, or when the key or the address is
    /// missing. Also fails when the address is invalid, or when the client cannot be set up.
    pub fn build(mut self) -> Result<HttpModel, BuildModelError> {
        let own = self.catalogue.take();
        let catalogue = own.as_ref().unwrap_or_else(|| Catalogue::built_in());
        let (provider, model) = catalogue.find(&self.name)?;
        let name = provider.name().to_owned();
        let full_name = format!("{name}/{model}");
        let settings = match catalogue.configured(&full_name) {
            Some(settings) => self.or(settings.clone()),
            None => self,
        };
        let protocol = settings.protocol.unwrap_or_else(|| provider.protocol.clone());
        let key = match settings.key {
            Some(key) => key,
            None => provider
                .key()
                .map_err(|variable| BuildModelError::NoKey { provider: name.clone(), variable })?,
        };
        let options = settings.options.or_else(|| own.as_ref().map(|catalogue| catalogue.options.clone()));
        let client = HttpClient::new(options.unwrap_or_default()).map_err(BuildModelError::Client)?;
        let is_moved = settings.base_url.is_some();
        let base_url = match settings.base_url {
            Some(url) => url,
            None => provider
                .base_url(&*protocol)
                .map_err(|variable| BuildModelError::NoAddress { provider: name.clone(), variable })?,
        };
        let is_address = reqwest::Url::parse(&base_url)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !is_address {
            return Err(BuildModelError::BadAddress { url: shown_address(&base_url) });
        }
        let by_name = protocol.capabilities(&model);
        let capabilities = settings.capabilities.unwrap_or(Capabilities {
            // Servers that speak a provider's protocol often accept a schema for the reply, but do not follow the schema. The capability is
            // therefore assumed only at the address that the catalogue or the environment has for the provider.
            native_output: by_name.native_output && !is_moved,
            ..by_name
        });
        let max_output = settings.facts.as_ref().and_then(|facts| facts.max_output);
        let facts = settings.facts.or_else(|| catalogue.facts(&full_name));
        let mut headers = provider.headers().to_vec();
        for (name, value) in settings.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            headers.push((name, value));
        }
        let mut info = ModelInfo::new(name, protocol.api(), model).with_capabilities(capabilities);
        if let Some((host, port)) = host_and_port(&base_url) {
            info = info.with_server(host, port);
        }
        // Headers with these words in their names usually contain secrets, so their values are never shown.
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["key", "token", "auth", "secret", "cookie"].iter().any(|word| name.contains(word))
        };
        let (secret, headers): (Vec<_>, Vec<_>) = headers.into_iter().partition(|(name, _)| is_secret(name));
        let secret_headers = secret.into_iter().map(|(name, value)| (name, value.into())).collect();
        let inner = ModelEndpoint {
            info,
            facts,
            max_output,
            protocol,
            client,
            base_url,
            key,
            headers,
            secret_headers,
        };
        Ok(HttpModel { inner: Arc::new(inner) })
    }
}

impl ModelEndpoint {
    /// Returns the headers whose values must not be shown. These include the header with the key if no other header replaces it.
    ///
    /// # Errors
    /// Fails when there is no key, and outside of a tokio runtime, because the client would panic there.
    pub(super) async fn secrets(&self, deadline: Instant) -> Result<Vec<(String, Secret)>, ModelError> {
        Handle::try_current().map_err(|error| {
            let text = "an HTTP model needs a tokio runtime: poll its replies within one";
            ModelError::new(ModelErrorKind::Other, text).with_source(error)
        })?;
        let late =
            |_| ModelError::new(ModelErrorKind::Timeout, "the callback that gives the key took too long");
        let key = timeout_at(deadline, self.key.get()).await.map_err(late)??;
        let key = key.map(|key| self.protocol.auth(key.expose()));
        let own = || {
            self.headers.iter().map(|(name, _)| name).chain(self.secret_headers.iter().map(|(name, _)| name))
        };
        let key = key.filter(|(name, _)| !own().any(|own| own.eq_ignore_ascii_case(name)));
        let key = key.map(|(name, value)| (name.to_owned(), Secret::from(value)));
        Ok(self.secret_headers.iter().cloned().chain(key).collect())
    }

    fn encode(&self, cx: &StepCx, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        let mut http = self.protocol.encode(&self.info, &self.limited(with_edit_notes(request)))?;
        if let Some(key) = &cx.key {
            http = http.with_header("idempotency-key", key.to_string());
        }
        self.set_headers(&mut http);
        Ok(http)
    }

    /// Encodes the request that counts tokens: see [`Protocol::encode_count`].
    pub(super) fn encode_count(
        &self,
        request: &ModelRequest,
    ) -> Result<Option<(HttpRequest, &'static str)>, ModelError> {
        let counted = self.protocol.encode_count(&self.info, &self.limited(with_edit_notes(request)))?;
        Ok(counted.map(|(mut http, number)| {
            self.set_headers(&mut http);
            (http, number)
        }))
    }

    /// Adds the headers of the application, which replace headers of the same name. The header `anthropic-beta` is a list, so its values
    /// are added to those that the body needs.
    fn set_headers(&self, http: &mut HttpRequest) {
        let is_list = |name: &str| name.eq_ignore_ascii_case("anthropic-beta");
        let is_own = |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        http.headers.retain(|(name, _)| is_list(name) || !is_own(name));
        for (name, value) in &self.headers {
            match http.headers.iter_mut().find(|(known, _)| is_list(known) && is_list(name)) {
                Some((_, known)) => *known = format!("{known},{value}"),
                None => http.headers.push((name.clone(), value.clone())),
            }
        }
    }

    /// Limits `max_tokens` to the configured maximum. A request without `max_tokens` gets the maximum.
    fn limited<'a>(&self, request: Cow<'a, ModelRequest>) -> Cow<'a, ModelRequest> {
        match self.max_output {
            Some(limit) if request.max_tokens.is_none_or(|tokens| tokens > limit) => {
                let mut request = request.into_owned();
                request.max_tokens = Some(limit);
                Cow::Owned(request)
            }
            _ => request,
        }
    }

    fn loggable_request(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
        http: Option<&HttpRequest>,
    ) -> LoggableRequest {
        let secrets = SecretArguments::new([request.tools.clone()]);
        let quotable = secrets.is_needed().then(|| request.clone());
        let body = HttpClient::logs_bodies().then(|| {
            // If the tool of a call is not in the request, its secret parameters are unknown, so all arguments are hidden.
            let secrets = secrets.hiding_unknown();
            let messages: Vec<_> = request.messages.iter().map(|message| secrets.shown(message)).collect();
            let is_same = messages.iter().zip(&*request.messages).all(|(one, other)| Arc::ptr_eq(one, other));
            if is_same {
                return http.map(HttpRequest::text);
            }
            let mut request = request.clone();
            request.messages = messages.into_iter().collect();
            // The encoder already logged its warnings when it encoded the real request, so they are not logged again.
            let encode = || self.protocol.encode(&self.info, &self.limited(with_edit_notes(&request)));
            let encoded = tracing::subscriber::with_default(NoSubscriber::new(), encode);
            encoded.ok().map(|http| http.text())
        });
        LoggableRequest { body: body.flatten(), quotable, traffic: cx.traffic.clone() }
    }
}

fn with_edit_notes(request: &ModelRequest) -> Cow<'_, ModelRequest> {
    let is_changed =
        |message: &Arc<Message>| message.as_tool_result().is_some_and(|result| result.edited_args.is_some());
    if !request.messages.iter().any(is_changed) {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    // A person who changed arguments may have set secret ones, which the model must not see.
    let secrets = SecretArguments::new([request.tools.clone()]);
    let written = request.messages.iter().map(|message| match &**message {
        Message::ToolResult(result) if result.edited_args.is_some() => {
            let mut result = result.clone();
            let args = result.edited_args.as_ref();
            if let Some(shown) = args.and_then(|args| secrets.arguments(&result.tool, args)) {
                result.edited_args = Some(shown);
            }
            let content = result.content_for_model().into_owned();
            Arc::new(result.with_content(join_texts(content)).into())
        }
        _ => message.clone(),
    });
    request.messages = written.collect::<MessageList>().with_slot(request.messages.slot().clone());
    Cow::Owned(request)
}

/// Joins a list of plain texts by line breaks, because not every server accepts a list in a result. Any other content stays unchanged.
fn join_texts(content: Vec<Part>) -> Vec<Part> {
    let is_plain =
        |part: &Part| part.provider_data.is_none() && part.cache.is_none() && part.extra.is_empty();
    let texts: Option<Vec<&str>> =
        content.iter().map(|part| part.as_text().filter(|_| is_plain(part))).collect();
    match texts {
        Some(texts) => vec![Part::text(texts.join("\n"))],
        None => content,
    }
}

impl Model for HttpModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let restorer = NullRestorer::new(self.inner.protocol.strict_dialect(), request);
        let http = self.inner.encode(cx, request);
        let shown = self.inner.loggable_request(cx, request, http.as_ref().ok());
        let exchange = Exchange::new(self.inner.clone(), http, restorer, shown).with_quota(cx.quota.clone());
        let exchange = if cx.is_retried { exchange.without_retries() } else { exchange };
        ModelStream::new(cx, &self.inner.info, exchange.into_stream()).with_argument_events(request)
    }

    fn info(&self) -> &ModelInfo {
        &self.inner.info
    }

    fn context_window(&self) -> Option<u64> {
        self.inner.facts.as_ref()?.context_window
    }

    fn max_output(&self) -> Option<u64> {
        self.inner.max_output.or(self.inner.facts.as_ref()?.max_output)
    }

    fn request_body(&self, request: &ModelRequest) -> Option<String> {
        let request = self.inner.limited(with_edit_notes(request));
        Some(self.inner.protocol.encode(&self.inner.info, &request).ok()?.text())
    }

    fn count_tokens(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<Option<u64>, ModelError>> {
        Box::pin(self.clone().count(cx.clone(), request.clone()))
    }
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("info", &self.inner.info)
            .field("key", &self.inner.key)
            .finish_non_exhaustive()
    }
}

/// Leaves out the address and the headers, because they may contain keys.
impl fmt::Debug for HttpModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModelBuilder")
            .field("name", &self.name)
            .field("key", &self.key)
            .field("options", &self.options)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// Returns the host and the port of a URL. The host of an IPv6 address has no brackets.
fn host_and_port(base_url: &str) -> Option<(String, u16)> {
    let url = reqwest::Url::parse(base_url).ok()?;
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some((host, url.port_or_known_default()?))
}
