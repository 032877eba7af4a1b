//! The error for a model that cannot be created from its name, with advice.

use crate::model::ModelError;

/// The error for a model that cannot be created from its name.
///
/// ```
/// # #[cfg(feature = "http")] {
/// use agent::provider::{BuildModelError, Catalogue};
///
/// let error = Catalogue::default().model("acme/large-1").unwrap_err();
/// assert!(matches!(&error, BuildModelError::Unknown { .. }) && error.to_string().contains("acme"));
/// # }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildModelError {
    /// The provider is unknown or not compiled in, or the name contains no model and the provider has no default model.
    #[error("{message}")]
    #[non_exhaustive]
    Unknown {
        /// The text of the error: the fault and advice, for example the known providers or a similar name.
        message: String,
    },
    /// No key was set, and the environment variables that may contain one are empty or unset.
    #[error("`{provider}` needs a key: give one to the builder, or set {variable}")]
    #[non_exhaustive]
    NoKey {
        /// The name of the provider.
        provider: String,
        /// The environment variable, or variables, that were read.
        variable: String,
    },
    /// No address was set, and the environment variable is empty or unset. The provider has no default address, because each account has
    /// its own.
    #[error("`{provider}` needs an address: give a base URL to the builder, or set {variable}")]
    #[non_exhaustive]
    NoAddress {
        /// The name of the provider.
        provider: String,
        /// The environment variable that was read.
        variable: String,
    },
    /// The address is not a valid URL with the scheme `http` or `https` and a host.
    #[error(
        "`{url}` is not the address of a server: write it with its scheme, like `https://api.example.com/v1`"
    )]
    #[non_exhaustive]
    BadAddress {
        /// The address without its user, password and query. Segments of its path that may be secrets are replaced by `…`.
        url: String,
    },
    /// The HTTP client cannot be set up.
    #[error(transparent)]
    Client(ModelError),
}

crate::error_text::debug_is_the_sentence!(BuildModelError);

impl BuildModelError {
    pub(super) fn no_provider(name: &str, known: &[&str], suggestion: Option<&str>) -> Self {
        let provider =
            suggestion.and_then(|full| full.split_once('/')).map_or(name, |(provider, _)| provider);
        let advice = match missing_feature(provider) {
            Some(feature) => format!(": switch on the feature `{feature}` of `agent`"),
            None if cfg!(not(feature = "openai")) => {
                format!(" (most speak OpenAI's protocol: feature `openai` of `agent`){}", advice(known))
            }
            None => advice(known),
        };
        Self::Unknown { message: format!("there is no provider `{name}`{advice}{}", hint(suggestion)) }
    }

    /// Creates the error for a name without a model, such as `openai` or `openai/`, if there is no default model. `variable` is the
    /// environment variable that sets the default model.
    #[cfg(feature = "http")]
    pub(super) fn no_model(name: &str, variable: &str, known: &[&str]) -> Self {
        let problem = format!("`{name}` names no model, and {variable} is not set");
        Self::Unknown { message: format!("{problem}{}", advice(known)) }
    }
}

fn advice(known: &[&str]) -> String {
    if known.is_empty() {
        return String::new();
    }
    format!("; write `provider/model`, with one of these providers: {}", known.join(", "))
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// Returns the feature that adds a provider, if this feature is off.
pub(super) fn missing_feature(provider: &str) -> Option<&'static str> {
    match provider {
        "anthropic" if cfg!(not(feature = "anthropic")) => Some("anthropic"),
        "gemini" if cfg!(not(feature = "gemini")) => Some("gemini"),
        "openai" | "openai-responses" | "xai" | "deepseek" | "mistral" | "moonshot" | "zai"
            if cfg!(not(feature = "openai")) =>
        {
            Some("openai")
        }
        _ => None,
    }
}

/// Returns the provider of a model whose name has none, such as `gpt-5`.
pub(super) fn provider_of(model: &str) -> Option<&'static str> {
    let begins = |words: &[&str]| words.iter().any(|word| model.starts_with(word));
    match () {
        () if ["gemini", "deepseek", "mistral"].contains(&model) => None,
        () if begins(&["claude"]) => Some("anthropic"),
        () if begins(&["gpt-", "o1", "o3", "o4", "chatgpt"]) => Some("openai"),
        () if begins(&["gemini"]) => Some("gemini"),
        () if begins(&["grok"]) => Some("xai"),
        () if begins(&["deepseek"]) => Some("deepseek"),
        () if begins(&["mistral", "magistral", "codestral"]) => Some("mistral"),
        () if begins(&["kimi"]) => Some("moonshot"),
        () if begins(&["glm"]) => Some("zai"),
        () => None,
    }
}
