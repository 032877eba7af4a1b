//! Names of models that nobody knows, and what is to be done about them.

/// A model whose provider nobody knows, or whose provider is not compiled in.
///
/// ```
/// # #[cfg(feature = "http")] {
/// use agent::provider::{Catalogue, http::BuildModelError};
///
/// let error = Catalogue::default().model("acme/large-1").unwrap_err();
/// assert!(matches!(&error, BuildModelError::Unknown(unknown) if unknown.to_string().contains("acme")));
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{}{}", advice(known), hint(suggestion.as_deref()))]
pub struct UnknownModel {
    problem: String,
    known: String,
    suggestion: Option<String>,
}

crate::error_text::debug_is_the_sentence!(UnknownModel);

impl UnknownModel {
    /// There is no such provider among these.
    pub(super) fn no_provider(name: &str, known: &[&str], suggestion: Option<String>) -> Self {
        Self {
            problem: format!("there is no provider `{name}`{}", lacks(name)),
            known: known.join(", "),
            suggestion,
        }
    }

    /// There is the provider, but no model is named.
    #[cfg(feature = "http")]
    pub(super) fn no_model(name: &str, variable: &str, known: &[&str]) -> Self {
        Self {
            problem: format!("`{name}` names no model, and {variable} is not set"),
            known: known.join(", "),
            suggestion: None,
        }
    }
}

fn advice(known: &str) -> String {
    if known.is_empty() {
        return String::new();
    }
    format!("; write `provider/model`, with one of these providers: {known}")
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// What is to be done about a provider that is not compiled in.
fn lacks(name: &str) -> &'static str {
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
