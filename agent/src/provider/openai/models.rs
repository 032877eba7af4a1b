//! The abilities and reasoning settings of OpenAI's models, derived from the names of the models.

use crate::model::{Capabilities, Thinking};

/// Returns whether a model is known not to reason. Returns `false` for unknown names.
pub(super) fn is_non_reasoning(model: &str) -> bool {
    let name = base_name(model);
    ["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|family| name.starts_with(family))
        || name.contains("-chat-latest")
}

/// Returns whether a model is known to reason by default. Such a model accepts sampling settings only while reasoning is turned off, and
/// its system prompt has the role `developer`.
pub(super) fn is_reasoning_model(model: &str) -> bool {
    let name = base_name(model);
    (is_o_series(name) || name.starts_with("gpt-5") || name.starts_with("gpt-6")) && !is_non_reasoning(model)
}

/// Returns whether a model reasons at this level of thinking, or by default if `level` is `None`. A model that cannot turn reasoning off
/// reasons at every level.
pub(super) fn is_reasoning_at(model: &str, level: Option<Thinking>) -> bool {
    match level {
        None => is_reasoning_model(model),
        Some(level) => effort(model, level) != "none",
    }
}

/// Returns whether a model accepts stop sequences. Models that reason refuse them, even while reasoning is turned off.
///
/// Sources: for o3 and o4-mini, `stop` in OpenAI's [reference](https://platform.openai.com/docs/api-reference/chat/create); for gpt-5 and
/// its successors, the API's error when `stop` is sent.
pub(super) fn has_stop_sequences(model: &str) -> bool {
    !is_reasoning_model(model)
}

/// Returns whether a model follows a schema for its reply. Returns `true` for unknown names.
///
/// Source: OpenAI's guide to [structured outputs](https://platform.openai.com/docs/guides/structured-outputs).
pub(super) fn has_structured_output(model: &str) -> bool {
    let name = base_name(model);
    let is_old = name == "gpt-4"
        || ["gpt-3", "gpt-4-", "o1-mini", "o1-preview"].iter().any(|old| name.starts_with(old));
    !is_old
}

pub(super) fn media(model: &str) -> Capabilities {
    let name = base_name(model);
    let is_text = ["gpt-3", "gpt-oss", "o1-mini", "o3-mini"].iter().any(|text| name.starts_with(text))
        || ["gpt-4", "gpt-4-0613"].contains(&name);
    let is_openai = is_openai(name);
    // OpenAI's models that accept audio have `audio` in their names. Models of other providers are assumed to accept audio.
    Capabilities {
        images: !is_text,
        documents: !is_text,
        audio: !is_openai || name.contains("audio"),
        ..Capabilities::default()
    }
}

pub(super) fn has_hosted_tools(model: &str) -> bool {
    let name = base_name(model);
    let is_old = ["gpt-3", "gpt-4-", "gpt-oss", "o1", "o3-mini"].iter().any(|old| name.starts_with(old))
        || name == "gpt-4"
        || name.contains("nano");
    is_openai(name) && !is_old
}

pub(super) fn is_search_model(model: &str) -> bool {
    is_openai(base_name(model)) && model.contains("-search")
}

/// Returns whether a model may search the web in Chat Completions. Returns `true` for unknown names.
pub(super) fn can_search_in_chat(model: &str) -> bool {
    !is_openai(base_name(model)) || is_search_model(model)
}

/// Returns the highest supported effort that is not above a level, or else the lowest supported effort. Only the level `none` gives the
/// effort `none`.
///
/// Source: [OpenAI's guide to reasoning](https://platform.openai.com/docs/guides/reasoning), its model pages and `LiteLLM` 1.106.2. Most
/// models support `low` to `high`. These models support more or less:
///
/// * gpt-5, but not gpt-5-codex: also `minimal`.
/// * gpt-5.1 and later: also `none`.
/// * gpt-5.1-codex-max, and gpt-5.2 and later: also `xhigh`.
/// * gpt-5.6 and later: also `max`.
/// * gpt-6-astra, and gpt-6.1 and later: nothing below `low`.
/// * gpt-5-pro: only `high`. Later Pro models: nothing below `medium`.
///
/// The efforts of other models are unknown; `none` and `low` to `high` are assumed.
pub(super) fn effort(model: &str, thinking: Thinking) -> &'static str {
    const WORDS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let wanted = match thinking {
        Thinking::None => 0,
        Thinking::Minimal => 1,
        Thinking::Low | Thinking::Budget(..=2047) => 2,
        Thinking::Medium | Thinking::Budget(..=12_000) => 3,
        Thinking::High | Thinking::Budget(_) => 4,
        Thinking::XHigh => 5,
        Thinking::Max => 6,
    };
    let known = known_efforts(base_name(model));
    let below = known.iter().rev().find(|at| **at <= wanted);
    let at = below.or(known.first()).copied().unwrap_or(wanted);
    // Only the level `none` turns reasoning off.
    let at = if at == 0 && wanted > 0 { known.get(1).copied().unwrap_or(at) } else { at };
    WORDS.get(at).copied().unwrap_or("medium")
}

/// Returns the supported efforts: 0 is `none` and 4 is `high`, as in the `WORDS` of [`effort`].
fn known_efforts(name: &str) -> &'static [usize] {
    let version = name.strip_prefix("gpt-").and_then(|rest| {
        let mut numbers = rest.split(['-', '.']).map(|word| word.parse::<u32>().ok());
        let major = numbers.next()??;
        let is_minor = rest.contains(&format!("{major}."));
        Some((major, numbers.next().flatten().filter(|_| is_minor).unwrap_or(0)))
    });
    let is_pro = name.contains("-pro");
    match version {
        Some((5, 0)) if is_pro => &[4],
        Some((5, 0)) if name.contains("codex") => &[2, 3, 4],
        Some((5, 0)) => &[1, 2, 3, 4],
        Some((5, 1)) if name.contains("codex-max") => &[0, 2, 3, 4, 5],
        Some((5, 1)) => &[0, 2, 3, 4],
        Some((5, ..=5)) if is_pro => &[3, 4, 5],
        Some((5, ..=5)) => &[0, 2, 3, 4, 5],
        Some((5.., _)) if is_pro => &[3, 4, 5, 6],
        Some((6, 0)) if name.contains("astra") => &[2, 3, 4, 5, 6],
        Some((6, 1..) | (7.., _)) => &[2, 3, 4, 5, 6],
        Some((5.., _)) => &[0, 2, 3, 4, 5, 6],
        _ if is_o_series(name) || name.starts_with("gpt-oss") => &[2, 3, 4],
        _ => &[0, 2, 3, 4],
    }
}

fn is_openai(name: &str) -> bool {
    name.starts_with("gpt-") || is_o_series(name)
}

fn is_o_series(name: &str) -> bool {
    name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Removes the vendor that routers prepend, for example from `openai/gpt-5` or `openai.gpt-5`.
fn base_name(model: &str) -> &str {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.strip_prefix("openai.").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_efforts_that_the_model_knows() {
        use Thinking as T;
        let levels = [T::None, T::Minimal, T::Low, T::Medium, T::High, T::XHigh, T::Max, T::Budget(8000)];
        for (model, expected) in [
            ("o3", ["low", "low", "low", "medium", "high", "high", "high", "medium"]),
            ("gpt-5-mini", ["minimal", "minimal", "low", "medium", "high", "high", "high", "medium"]),
            ("gpt-5-2025-08-07", ["minimal", "minimal", "low", "medium", "high", "high", "high", "medium"]),
            ("gpt-5-pro", ["high"; 8]),
            ("gpt-5-codex", ["low", "low", "low", "medium", "high", "high", "high", "medium"]),
            ("gpt-5.1", ["none", "low", "low", "medium", "high", "high", "high", "medium"]),
            ("gpt-5.1-codex-max", ["none", "low", "low", "medium", "high", "xhigh", "xhigh", "medium"]),
            ("openai/gpt-5.2", ["none", "low", "low", "medium", "high", "xhigh", "xhigh", "medium"]),
            ("gpt-5.2-pro", ["medium", "medium", "medium", "medium", "high", "xhigh", "xhigh", "medium"]),
            ("openai.gpt-5.6-luna", ["none", "low", "low", "medium", "high", "xhigh", "max", "medium"]),
            ("gpt-6", ["none", "low", "low", "medium", "high", "xhigh", "max", "medium"]),
            ("gpt-6-astra", ["low", "low", "low", "medium", "high", "xhigh", "max", "medium"]),
            ("gpt-6.1-sol", ["low", "low", "low", "medium", "high", "xhigh", "max", "medium"]),
            ("openai/gpt-oss-120b", ["low", "low", "low", "medium", "high", "high", "high", "medium"]),
            ("grok-4", ["none", "low", "low", "medium", "high", "high", "high", "medium"]),
        ] {
            assert_eq!(levels.map(|level| effort(model, level)), expected, "{model}");
        }
        assert!(
            is_reasoning_model("o1-mini")
                && is_reasoning_model("openai.gpt-5.6-sol")
                && is_reasoning_model("gpt-5")
                && !is_reasoning_model("gpt-4o")
                && !is_reasoning_model("openchat")
        );
        assert!(is_non_reasoning("openai/gpt-4o-mini") && !is_non_reasoning("deepseek-reasoner"));
    }
}
