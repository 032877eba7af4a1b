//! The error for unknown names of models, with advice.

/// The error for a model whose provider is unknown or not compiled in.
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
    /// Creates the error for a provider that is not one of `known`.
    pub(super) fn no_provider(name: &str, known: &[&str], suggestion: Option<String>) -> Self {
        Self {
            problem: format!("there is no provider `{name}`{}", feature_advice(name)),
            known: known.join(", "),
            suggestion,
        }
    }

    /// Creates the error for a name without a model.
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

/// Returns advice for a provider that is not compiled in.
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
