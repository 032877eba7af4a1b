//! The known providers, and the configuration of their models.

mod entry;

pub use entry::ProviderEntry;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::build_error::{missing_feature, provider_of};
use super::facts::{self, ModelFacts};
use super::http::{ApiKey, HttpModel, HttpModelBuilder, HttpOptions};
use super::{BuildModelError, Protocol};
use crate::args::did_you_mean;

/// The known providers, and the configuration of their models: one value for a whole program.
///
/// By default, a catalogue contains the providers whose features are enabled. With the feature `openai`, it also contains servers that
/// speak OpenAI's protocol: `openrouter`, `groq`, `cerebras`, `xai`, `deepseek`, `mistral`, `together`, `fireworks`, `azure`, `moonshot`,
/// `zai`, `alibaba`, and on this machine `ollama`, `llamacpp`, `vllm`, `lmstudio`. A few lines add another provider:
///
/// ```
/// # #[cfg(feature = "openai")]
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::model::Model as _;
/// use agent::provider::openai::{Compat, OpenAiChat};
/// use agent::provider::{Catalogue, ProviderEntry};
///
/// let acme = ProviderEntry::new("acme", OpenAiChat::default().with_compat(Compat::plain()))
///     .with_base_url("https://api.acme.example/v1")
///     .with_key_variable("ACME_API_KEY");
/// let catalogue = Catalogue::default().with_provider(acme.with_key("secret"));
/// let model = catalogue.model("acme/large-1")?;
/// assert_eq!(model.info().provider, "acme");
/// # Ok(()) }
/// # #[cfg(feature = "openai")] example().unwrap();
/// ```
///
/// # Names
/// A model is named `provider/model`. The name of a provider alone means its default model, which [`ProviderEntry::with_default_model`] or
/// an environment variable sets. For example, `OPENAI_DEFAULT_MODEL` and `OPENAI_BASE_URL` belong to the provider with the key
/// `OPENAI_API_KEY`. The address in the variable is used unless the model's [settings](Self::configure) or its builder set one.
#[derive(Clone, Debug)]
pub struct Catalogue {
    providers: Vec<ProviderEntry>,
    /// The keys that `with_key` set, by the name of the provider. The provider may be added or replaced later.
    keys: BTreeMap<String, ApiKey>,
    models: Vec<HttpModelBuilder>,
    pub(super) options: HttpOptions,
}

static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(|| Catalogue {
    providers: entry::built_in(),
    keys: BTreeMap::new(),
    models: Vec::new(),
    options: HttpOptions::default(),
});

impl Default for Catalogue {
    fn default() -> Self {
        // `BUILT_IN.options` is not reused, because its connections would outlive the runtime that opened them.
        let (providers, options) = (BUILT_IN.providers.clone(), HttpOptions::default());
        Self { providers, keys: BTreeMap::new(), models: Vec::new(), options }
    }
}

impl Catalogue {
    /// Creates a catalogue without providers, for programs that add all their providers themselves.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::provider::{Catalogue, ProviderEntry, openai::OpenAiChat};
    ///
    /// let local = ProviderEntry::new("local", OpenAiChat::default()).without_key();
    /// let catalogue = Catalogue::empty().with_provider(local);
    /// let names: Vec<&str> = catalogue.providers().map(|provider| provider.name()).collect();
    /// assert_eq!(names, ["local"]);
    /// assert!(catalogue.model("openai/gpt-5").is_err());
    /// # }
    /// ```
    pub fn empty() -> Self {
        Self { providers: Vec::new(), ..Self::default() }
    }

    /// Adds a provider, or replaces the provider with the same name. A provider without a key gets the key that
    /// [`with_key`](Self::with_key) set for its name.
    pub fn with_provider(mut self, mut provider: ProviderEntry) -> Self {
        provider.key = provider.key.or_else(|| self.keys.get(&provider.name).cloned());
        match self.providers.iter_mut().find(|known| known.name == provider.name) {
            Some(known) => *known = provider,
            None => self.providers.push(provider),
        }
        self
    }

    /// Sets the facts about a model, `provider/model`: its context window, maximum output and prices. They replace the built-in facts
    /// about this model. [`max_output`](ModelFacts::max_output) is the default and the maximum of `max_tokens` in requests.
    ///
    /// ```
    /// use agent::provider::{Catalogue, ModelFacts, Prices};
    ///
    /// let facts = ModelFacts::default().with_context_window(32_000).with_prices(Prices::new(0.2, 0.8));
    /// let catalogue = Catalogue::default().with_model("acme/large-1", facts.clone());
    /// assert_eq!(catalogue.facts("acme/large-1"), Some(facts));
    /// ```
    pub fn with_model(self, name: impl Into<String>, facts: ModelFacts) -> Self {
        let name = name.into();
        let settings = self.configured(&name).cloned().unwrap_or_else(|| HttpModel::builder(name));
        self.configure(settings.facts(facts))
    }

    /// Configures one model differently from its provider, for example its address, headers, key and facts. The name of `model` must
    /// contain the provider, as in `ollama/large`; the catalogue of `model` is ignored. A later configuration of a model replaces the
    /// earlier one. If the later configuration has no facts, the earlier facts remain. A header replaces the provider's header with the
    /// same name. Settings of the builder that [`builder`](Self::builder) returns take precedence.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::provider::http::{HttpModel, HttpOptions};
    /// use agent::traffic::TrafficKind;
    /// use agent::provider::{Catalogue, ModelFacts};
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    ///
    /// let sent = Arc::new(Mutex::new(Vec::new()));
    /// let seen = sent.clone();
    /// let options = HttpOptions::default()
    ///     .without_proxy()
    ///     .with_max_retries(0)
    ///     .with_first_byte_timeout(Duration::from_secs(1_800))         // a large model on a small machine
    ///     .on_traffic(move |traffic| {
    ///         if let TrafficKind::Request { url, headers, body, .. } = &traffic.kind {
    ///             seen.lock().unwrap().push(format!("{url} {headers:?} {body}"));
    ///         }
    ///     });
    /// let large = HttpModel::builder("ollama/large")
    ///     .base_url("http://127.0.0.1:9/v1")                           // where nobody listens
    ///     .header("x-team", "search")
    ///     .header("x-gateway-token", "s3cret")                         // hidden: its name is that of a secret
    ///     .facts(ModelFacts::default().with_context_window(32_000).with_max_output(4_000))
    ///     .options(options);
    /// let catalogue = Catalogue::default().configure(large);
    /// assert!(!format!("{catalogue:?}").contains("s3cret"));
    ///
    /// let model = catalogue.model("ollama/large")?;
    /// assert_eq!(model.facts().unwrap().context_window, Some(32_000));
    /// assert!(model.call(&StepCx::new(), &ModelRequest::default().with_max_tokens(9_000)).await.is_err());
    /// let sent = sent.lock().unwrap().concat();
    /// assert!(sent.contains("127.0.0.1:9") && sent.contains("search") && sent.contains("4000"), "{sent}");
    /// assert!(!sent.contains("s3cret"));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "openai"))] fn main() {}
    /// ```
    pub fn configure(mut self, mut model: HttpModelBuilder) -> Self {
        model.catalogue = None;
        match self.models.iter_mut().find(|known| known.name == model.name) {
            Some(known) => {
                let facts = known.facts.take();
                *known = model;
                known.facts = known.facts.take().or(facts);
            }
            None => self.models.push(model),
        }
        self
    }

    /// Sets the key of a provider. The provider may also be added later.
    pub fn with_key(mut self, provider: &str, key: impl Into<ApiKey>) -> Self {
        let key = key.into();
        if let Some(entry) = self.providers.iter_mut().find(|known| known.name == provider) {
            entry.key = Some(key.clone());
        }
        self.keys.insert(provider.to_owned(), key);
        self
    }

    /// Sets the timeouts, retries, limits and listeners of all models without options of their own.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::provider::Catalogue;
    /// use agent::provider::http::HttpOptions;
    /// use agent::traffic::TrafficKind;
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    ///
    /// let sent = Arc::new(AtomicU32::new(0));
    /// let counter = sent.clone();
    /// let options = HttpOptions::default().without_proxy().with_max_retries(0).on_traffic(move |traffic| {
    ///     if matches!(traffic.kind, TrafficKind::Request { .. }) {
    ///         counter.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// let catalogue = Catalogue::default().with_options(options);
    /// for name in ["ollama/qwen3", "vllm/gemma3"] {
    ///     let model = catalogue.builder(name).base_url("http://127.0.0.1:9/v1").build()?;     // where nobody listens
    ///     assert!(model.call(&StepCx::new(), &ModelRequest::default()).await.is_err());
    /// }
    /// assert_eq!(sent.load(Ordering::Relaxed), 2);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "openai"))] fn main() {}
    /// ```
    pub fn with_options(mut self, options: HttpOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns a model by its name, with the key of its provider.
    ///
    /// # Errors
    /// Fails when the provider is unknown, when the name contains no model and there is no default model, or when the key or the address is
    /// missing. Also fails when the address is invalid, or when the client cannot be set up.
    pub fn model(&self, name: &str) -> Result<HttpModel, BuildModelError> {
        self.builder(name).build()
    }

    /// Returns a builder for a model, to change its settings, such as headers or the address. The builder uses the `HttpOptions` of the
    /// catalogue.
    pub fn builder(&self, name: impl Into<String>) -> HttpModelBuilder {
        HttpModel::builder(name).catalogue(self.clone())
    }

    /// Returns the providers, in the order in which they were added. A provider that replaces another one takes its position.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderEntry> {
        self.providers.iter()
    }

    /// Returns the facts about a model, `provider/model`: those that were set, or else the built-in ones, or else `None`.
    ///
    /// ```
    /// use agent::provider::Catalogue;
    ///
    /// let facts = Catalogue::default().facts("openai/gpt-5-mini").unwrap();
    /// assert_eq!(facts.context_window, Some(400_000));
    /// ```
    pub fn facts(&self, name: &str) -> Option<ModelFacts> {
        self.configured(name).and_then(|model| model.facts.clone()).or_else(|| facts::known(name))
    }

    pub(super) fn configured(&self, name: &str) -> Option<&HttpModelBuilder> {
        self.models.iter().find(|known| known.name == name)
    }

    /// Splits a name into the provider and the model. A name without a model stands for the provider's default model.
    pub(super) fn find(&self, name: &str) -> Result<(&ProviderEntry, String), BuildModelError> {
        let (provider_name, model) =
            name.split_once('/').map_or((name, None), |(name, model)| (name, Some(model)));
        let names: Vec<&str> = self.providers.iter().map(|provider| provider.name.as_str()).collect();
        let Some(provider) = self.providers.iter().find(|provider| provider.name == provider_name) else {
            let mut near = did_you_mean(provider_name, names.iter().copied());
            // For a name without a provider, such as `gpt-5`, the suggestion is `openai/gpt-5`.
            let is_usable = |name: &&str| names.contains(name) || missing_feature(name).is_some();
            let by_model = provider_of(provider_name).filter(|name| model.is_none() && is_usable(name));
            let suggestion = by_model
                .map(|provider| format!("{provider}/{provider_name}"))
                .or_else(|| (!near.is_empty()).then(|| near.remove(0).to_owned()));
            return Err(BuildModelError::no_provider(provider_name, &names, suggestion.as_deref()));
        };
        let has_content = |model: &String| !model.trim().is_empty();
        let model = model.map(str::to_owned).filter(has_content);
        let Some(model) = model.or_else(|| provider.default_model()).filter(has_content) else {
            let variable = format!("{}_DEFAULT_MODEL", provider.prefix());
            return Err(BuildModelError::no_model(name, &variable, &names));
        };
        Ok((provider, model))
    }

    pub(super) fn built_in() -> &'static Self {
        &BUILT_IN
    }
}

/// Returns the protocol of the built-in provider with this name, or the built-in protocol with this name, for example `anthropic-messages`
/// or `openai-chat`. Returns `None` if neither exists.
///
/// ```
/// # #[cfg(all(feature = "anthropic", feature = "openai"))] {
/// use agent::provider::protocol;
///
/// assert_eq!(protocol("anthropic").unwrap().api(), "anthropic-messages");
/// assert_eq!(protocol("openai-chat").unwrap().base_url(), "https://api.openai.com/v1");
/// assert!(protocol("telegraph").is_none());
/// # }
/// ```
pub fn protocol(name: &str) -> Option<Arc<dyn Protocol>> {
    let providers = &BUILT_IN.providers;
    let by_name = providers.iter().find(|provider| provider.name == name);
    let found = by_name.or_else(|| providers.iter().find(|provider| provider.protocol.api() == name));
    found.map(|provider| provider.protocol.clone())
}

/// Returns the names of the protocols that are compiled in.
///
/// ```
/// # #[cfg(feature = "openai")]
/// assert!(agent::provider::protocols().any(|name| name == "openai-chat"));
/// for name in agent::provider::protocols() {
///     assert!(agent::provider::protocol(name).is_some());
/// }
/// ```
pub fn protocols() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = BUILT_IN.providers.iter().map(|provider| provider.protocol.api()).collect();
    let mut seen = Vec::new();
    names.retain(|name| {
        let is_new = !seen.contains(name);
        seen.push(*name);
        is_new
    });
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_near_ones_suggested() {
        let catalogue = Catalogue::default();
        let said = |name: &str| catalogue.find(name).unwrap_err().to_string();
        #[cfg(feature = "openai")]
        {
            let (provider, model) = catalogue.find("openrouter/anthropic/claude-x").unwrap();
            assert_eq!((provider.name(), model.as_str()), ("openrouter", "anthropic/claude-x"));
            assert!(said("gorq/x").contains("did you mean `groq`?"), "{}", said("gorq/x"));
            assert!(
                said("gpt-5-mini").contains("did you mean `openai/gpt-5-mini`?"),
                "{}",
                said("gpt-5-mini")
            );
            assert!(said("cerebras/").contains("CEREBRAS_DEFAULT_MODEL"), "{}", said("cerebras/"));
        }
        #[cfg(feature = "anthropic")]
        assert!(said("claude-opus-4-5").contains("did you mean `anthropic/claude-opus-4-5`?"));
        #[cfg(not(feature = "anthropic"))]
        assert_eq!(
            said("claude-opus-4-5"),
            "there is no provider `claude-opus-4-5`: switch on the feature `anthropic` of `agent` (did you mean \
             `anthropic/claude-opus-4-5`?)"
        );
        assert!(Catalogue::empty().find("x/y").unwrap_err().to_string().contains("no provider `x`"));
    }

    #[cfg(feature = "openai")]
    #[test]
    fn servers_have_all_that_a_model_needs() {
        for server in crate::provider::openai::SERVERS {
            let builder =
                Catalogue::default().with_key(server.name, "k").builder(format!("{}/m", server.name));
            match builder.build() {
                Ok(model) => assert_eq!(crate::model::Model::info(&model).provider, server.name),
                // Azure has a different address for each account, so a model cannot be built without an address.
                Err(error) => assert_eq!(
                    error.to_string(),
                    "`azure` needs an address: give a base URL to the builder, or set AZURE_OPENAI_BASE_URL"
                ),
            }
            if server.is_local {
                assert!(Catalogue::default().model(&format!("{}/m", server.name)).is_ok(), "{}", server.name);
            }
        }
    }

    #[cfg(feature = "openai")]
    #[test]
    fn what_is_registered_replaces_what_was_known() {
        use crate::model::Model as _;
        use crate::provider::openai::OpenAiResponses;

        let entry = ProviderEntry::new("groq", OpenAiResponses::default())
            .with_base_url("https://g.example")
            .with_default_model("small")
            .without_key();
        let facts = ModelFacts::default().with_context_window(7);
        let catalogue = Catalogue::default().with_provider(entry).with_model("groq/small", facts);
        let model = catalogue.model("groq").unwrap();
        assert_eq!((model.info().api.as_str(), model.info().model.as_str()), ("openai-responses", "small"));
        assert_eq!(catalogue.facts("groq/small").unwrap().context_window, Some(7));
        assert_eq!(catalogue.model("groq/").unwrap().info().model, "small");
        assert_eq!(catalogue.providers().filter(|provider| provider.name() == "groq").count(), 1);
        let late =
            ProviderEntry::new("late", OpenAiResponses::default()).with_key_variable("NO_SUCH_VARIABLE");
        assert!(Catalogue::default().with_key("late", "k").with_provider(late).model("late/m").is_ok());
        let error = Catalogue::default().with_provider(
            ProviderEntry::new("a", OpenAiResponses::default()).with_key_variable("NO_SUCH_VARIABLE"),
        );
        assert_eq!(
            error.model("a/b").unwrap_err().to_string(),
            "`a` needs a key: give one to the builder, or set NO_SUCH_VARIABLE"
        );
    }
}
