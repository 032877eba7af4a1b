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
        let problem = format!("there is no provider `{name}`{}", feature_advice(name));
        Self::Unknown { message: format!("{problem}{}{}", advice(known), hint(suggestion)) }
    }

    /// Creates the error for a name without a model. Such a name is `openai/`, or `openai` if the provider has no default model.
    /// `variable` is the environment variable that sets the default model.
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

fn feature_advice(name: &str) -> &'static str {
    match name {
        "anthropic" if cfg!(not(feature = "anthropic")) => ": switch on the feature `anthropic` of `agent`",
        "gemini" if cfg!(not(feature = "gemini")) => ": switch on the feature `gemini` of `agent`",
        "openai" | "openai-responses" if cfg!(not(feature = "openai")) => {
            ": switch on the feature `openai` of `agent`"
        }
        _ if cfg!(not(feature = "openai")) => " (most speak OpenAI's protocol: feature `openai` of `agent`)",
        _ => "",
    }
}
