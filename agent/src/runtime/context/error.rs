//! The error for a conversation that does not fit into the window.

use crate::model::ModelError;
use crate::runtime::error::RunError;

#[derive(Clone)]
pub(crate) struct ContextError {
    pub(crate) pins_are_too_large: bool,
    pub(crate) needed: u64,
    pub(crate) usable: u64,
    pub(crate) generation: u32,
    pub(crate) summary: Option<String>,
    pub(crate) provider: Option<ModelError>,
}

impl From<ContextError> for RunError {
    fn from(error: ContextError) -> Self {
        let ContextError { pins_are_too_large, needed, usable, generation, summary, provider } = error;
        Self::Context { pins_are_too_large, needed, usable, generation, summary, provider }
    }
}

pub(in crate::runtime) fn sentence(
    pins_are_too_large: bool,
    needed: u64,
    usable: u64,
    summary: Option<&str>,
    provider: Option<&ModelError>,
) -> String {
    let mut text =
        format!("the conversation needs about {} of {} tokens, ", grouped(needed), grouped(usable));
    if pins_are_too_large {
        return text + "and the pinned messages alone more than half; unpin some of them";
    }
    match summary {
        Some(failure) => text.extend(["and compaction failed: ", failure]),
        None => text.push_str("and nothing more of it can be replaced"),
    }
    if let Some(provider) = provider {
        text.extend(["; the provider says: ", provider.message()]);
    }
    text + "; start a new conversation, or shorten the last message"
}

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
