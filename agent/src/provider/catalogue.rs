//! The providers that are compiled in: one row each.

use std::sync::Arc;

use super::Protocol;

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
    let found = PROVIDERS.iter().find(|provider| provider.name == name || (provider.protocol)().api() == name);
    found.map(|provider| (provider.protocol)())
}

/// The names of the protocols that are compiled in.
pub fn protocols() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| (provider.protocol)().api())
}
