//! The error for a conversation that does not fit into the window.

use crate::model::ModelError;

/// Why a conversation cannot be sent: it does not fit into the window of its model, and nothing more of it can be replaced. The conversation
/// itself is complete.
///
/// ```
/// use agent::model::ContextRules;
/// use agent::{Assistant, RunError, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rules = ContextRules::new().window(1_000);
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).manage_context(rules).build()?;
/// let error = assistant.prompt("word ".repeat(4_000)).await.unwrap_err();
/// let RunError::Context(error) = error else { panic!("{error}") };
/// assert_eq!((error.pins_are_too_large, error.usable), (false, 500));
/// assert!(error.to_string().starts_with("the conversation needs about 5,112 of 500 tokens"), "{error}");
/// # Ok(()) }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
#[error("the conversation needs about {} of {} tokens, {}", grouped(*needed), grouped(*usable), reason(self))]
pub struct ContextError {
    /// Whether the pinned messages alone need more than half of the window.
    pub pins_are_too_large: bool,
    /// The tokens that the request needs, as an estimate.
    pub needed: u64,
    /// The tokens that it may have.
    pub usable: u64,
    /// The number of changes of the view so far.
    pub generation: u32,
    /// Why the last summary failed.
    pub summary: Option<String>,
    /// The error of the provider, if it refused the request as too long.
    #[source]
    pub provider: Option<ModelError>,
}

crate::error_text::debug_is_the_sentence!(ContextError);

fn reason(error: &ContextError) -> String {
    if error.pins_are_too_large {
        return "and the pinned messages alone more than half; unpin some of them".to_owned();
    }
    let mut text = match &error.summary {
        Some(failure) => format!("and compaction failed: {failure}"),
        None => "and nothing more of it can be replaced".to_owned(),
    };
    if let Some(provider) = &error.provider {
        text.extend(["; the provider says: ", provider.message()]);
    }
    text + "; start a new conversation, or shorten the last message"
}

/// Writes a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
