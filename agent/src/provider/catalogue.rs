//! The providers that are compiled in: one row each.

use std::sync::Arc;

use super::Protocol;
use crate::args::did_you_mean;

/// What is known of a provider.
#[derive(Clone, Copy)]
pub(super) struct Provider {
    /// Its name, as in `anthropic/claude-sonnet-5`.
    pub(super) name: &'static str,
    /// The variable of its key, when none is given.
    pub(super) key_variable: &'static str,
    pub(super) protocol: fn() -> Arc<dyn Protocol>,
}

/// All of them.
pub(super) const PROVIDERS: &[Provider] = &[
    #[cfg(feature = "anthropic")]
    Provider {
        name: "anthropic",
        key_variable: "ANTHROPIC_API_KEY",
        protocol: || Arc::new(super::anthropic::AnthropicMessages::default()),
    },
    #[cfg(feature = "openai")]
    Provider {
        name: "openai",
        key_variable: "OPENAI_API_KEY",
        protocol: || Arc::new(super::openai::OpenAiChat::default()),
    },
    #[cfg(feature = "openai")]
    Provider {
        name: "openai-responses",
        key_variable: "OPENAI_API_KEY",
        protocol: || Arc::new(super::openai::OpenAiResponses::default()),
    },
    #[cfg(feature = "gemini")]
    Provider {
        name: "gemini",
        key_variable: "GEMINI_API_KEY",
        protocol: || Arc::new(super::gemini::Gemini::default()),
    },
];

/// A protocol by its name (`anthropic-messages`, `openai-chat`) or by the name of the provider that is asked by it.
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
    let found =
        PROVIDERS.iter().find(|provider| provider.name == name || (provider.protocol)().api() == name);
    found.map(|provider| (provider.protocol)())
}

/// The names of the protocols that are compiled in.
pub fn protocols() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| (provider.protocol)().api())
}

/// A model whose provider nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; write `provider/model`, with one of these providers: {known}{}", hint(suggestion.as_deref()))]
pub struct UnknownModel {
    problem: String,
    known: String,
    suggestion: Option<String>,
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// The provider and the model of `provider/model`. A provider alone stands for the model that the variable
/// `PROVIDER_DEFAULT_MODEL` names.
pub(super) fn find(name: &str) -> Result<(&'static Provider, String), UnknownModel> {
    let (provider_name, model) =
        name.split_once('/').map_or((name, None), |(name, model)| (name, Some(model)));
    let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
    let unknown = |problem: String, suggestion: Option<String>| UnknownModel {
        problem,
        known: names.join(", "),
        suggestion,
    };
    let Some(provider) = PROVIDERS.iter().find(|provider| provider.name == provider_name) else {
        let suggestion =
            did_you_mean(provider_name, names.iter().copied()).first().map(|name| (*name).to_owned());
        let problem = format!("there is no provider `{provider_name}` (each is a feature of this crate)");
        return Err(unknown(problem, suggestion));
    };
    let by_default = || std::env::var(format!("{}_DEFAULT_MODEL", provider.name.to_uppercase())).ok();
    match model.map(str::to_owned).or_else(by_default).filter(|model| !model.trim().is_empty()) {
        Some(model) => Ok((provider, model)),
        None => Err(unknown(format!("`{name}` names no model"), None)),
    }
}
