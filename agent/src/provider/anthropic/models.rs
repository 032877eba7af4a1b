//! The abilities and settings of Anthropic's models, derived from the names of the models.

use crate::model::Thinking;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingStyle {
    None,
    Budget,
    /// An effort; the model decides how long it thinks.
    Adaptive,
}

/// Returns the thinking style of a model. A model whose name has no version is treated as one of the newest models.
///
/// Source: Anthropic's pages on extended and on adaptive thinking: budgets from 3.7 to 4.5, adaptive from 4.6.
pub(super) fn thinking_style(model: &str) -> ThinkingStyle {
    match version(model) {
        Some(version) if version < (3, 7) => ThinkingStyle::None,
        Some(version) if version < (4, 6) => ThinkingStyle::Budget,
        _ => ThinkingStyle::Adaptive,
    }
}

/// Returns whether a model follows a schema for its reply: all models from version 4.5, Opus 4.1, and models whose name has no version.
///
/// Source: Anthropic's page on [structured outputs](https://platform.claude.com/docs/en/build-with-claude/structured-outputs).
pub(super) fn has_structured_output(model: &str) -> bool {
    version(model).is_none_or(|version| version >= (4, 5) || version == (4, 1))
}

/// Returns the `type` of `thinking` with which a model thinks least, or `None` if the model always thinks.
///
/// Source: Anthropic's pages on what is new in [Opus 5.5](https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5)
/// and Sonnet 5.5, and `LiteLLM` 1.106.2: Fable, Mythos and Opus from 5.5 always think. Sonnet from 5.5 thinks at least between tool
/// calls.
pub(super) fn without_thinking(model: &str) -> Option<&'static str> {
    let is_new = version(model).is_some_and(|version| version >= (5, 5));
    match () {
        () if model.contains("fable") || model.contains("mythos") => None,
        () if is_new && model.contains("opus") => None,
        () if is_new && model.contains("sonnet") => Some("between_tools"),
        () => Some("disabled"),
    }
}

/// Returns whether a model accepts a forced choice of tools. The models that think at least between their calls refuse it.
///
/// Source: the pages of [`without_thinking`], and the error `tool_choice forces tool use is not compatible with this model` of Fable 5.
/// According to Anthropic's page on [thinking](https://platform.claude.com/docs/en/build-with-claude/thinking), Opus 5 and older models
/// accept it with adaptive thinking, but Opus 4.6 to 4.8 have been seen to refuse it, or to reply without a call.
pub(super) fn can_be_forced(model: &str) -> bool {
    without_thinking(model) == Some("disabled")
}

/// Returns whether a model is known to think if the request has no setting for thinking.
///
/// Source: Anthropic's pages on what is new in Opus 5 and Sonnet 5.
pub(super) fn thinks_by_default(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (5, 0)) || !can_be_forced(model)
}

pub(super) fn has_server_tools(model: &str) -> bool {
    model.contains("claude") && version(model).is_none_or(|version| version >= (3, 7))
}

/// Returns whether a model is known to refuse `temperature` and `top_p` in every version of the API.
///
/// Source: Anthropic's page on what is new in [Claude 4.7](https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7).
pub(super) fn has_fixed_sampling(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (4, 7))
}

pub(super) fn has_single_sampling_setting(model: &str) -> bool {
    version(model).is_some_and(|version| version == (4, 5) || version == (4, 6))
}

/// Returns the effort for a thinking level.
///
/// Source: Anthropic's page on [effort](https://platform.claude.com/docs/en/build-with-claude/effort): `low` to `high` and `max`
/// from 4.6, `xhigh` from 4.7.
pub(super) fn effort(model: &str, thinking: Thinking) -> &'static str {
    let has_xhigh = version(model).is_none_or(|version| version >= (4, 7));
    match thinking {
        Thinking::None | Thinking::Minimal | Thinking::Low | Thinking::Budget(..=2047) => "low",
        Thinking::Medium | Thinking::Budget(..=12_000) => "medium",
        Thinking::XHigh if has_xhigh => "xhigh",
        Thinking::High | Thinking::XHigh | Thinking::Budget(_) => "high",
        Thinking::Max => "max",
    }
}

pub(super) fn budget(thinking: Thinking) -> u64 {
    match thinking {
        Thinking::None => 0,
        Thinking::Minimal | Thinking::Low => 1024,
        Thinking::Medium => 8000,
        Thinking::High => 16_000,
        Thinking::XHigh => 24_000,
        Thinking::Max => 32_000,
        Thinking::Budget(tokens) => tokens.into(),
    }
}

/// Parses the version in a model's name. The major version is the first number below 100 after `claude`. The minor version is the number
/// below 100 directly after the major version, or 0 if there is none. Examples of names are `claude-opus-4-6`, `claude-3-7-sonnet-20250219`
/// and `anthropic.claude-sonnet-4-5-v1:0`.
fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.split("claude").nth(1)?;
    let mut numbers =
        name.split(['-', '.', '@', ':']).map(|word| word.parse::<u32>().ok().filter(|n| *n < 100));
    let major = numbers.find_map(|number| number)?;
    Some((major, numbers.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_all_spellings() {
        for (model, expected) in [
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-3-7-sonnet-latest", Some((3, 7))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("anthropic/claude-opus-4.6", Some((4, 6))),
            ("claude-fable-5", Some((5, 0))),
            ("eu.anthropic.claude-haiku-4-5-20251001-v1:0", Some((4, 5))),
            ("claude-next", None),
            ("llama-3", None),
        ] {
            assert_eq!(version(model), expected, "{model}");
        }
        assert_eq!(thinking_style("claude-3-5-sonnet-20241022"), ThinkingStyle::None);
        assert_eq!(thinking_style("claude-sonnet-4-5"), ThinkingStyle::Budget);
        assert_eq!(thinking_style("claude-opus-5"), ThinkingStyle::Adaptive);
    }

    #[test]
    fn thinking_is_turned_off_in_the_words_of_the_model() {
        for (model, expected) in [
            ("claude-sonnet-4-5", Some("disabled")),
            ("claude-opus-5", Some("disabled")),
            ("claude-haiku-5-5", Some("disabled")),
            ("anthropic/claude-sonnet-5.5", Some("between_tools")),
            ("claude-opus-5-5", None),
            ("claude-fable-5", None),
        ] {
            assert_eq!(without_thinking(model), expected, "{model}");
        }
        assert!(
            has_structured_output("anthropic/claude-opus-4.1") && !has_structured_output("claude-opus-4")
        );
    }

    #[test]
    fn levels_become_budgets_or_efforts() {
        use Thinking as T;
        let levels =
            [T::Minimal, T::Low, T::Medium, T::High, T::XHigh, T::Max, T::Budget(2000), T::Budget(50_000)];
        assert_eq!(levels.map(budget), [1024, 1024, 8000, 16_000, 24_000, 32_000, 2000, 50_000]);
        for (model, expected) in [
            ("claude-opus-4-6", ["low", "low", "medium", "high", "high", "max", "low", "high"]),
            ("claude-opus-4-7", ["low", "low", "medium", "high", "xhigh", "max", "low", "high"]),
            ("claude-next", ["low", "low", "medium", "high", "xhigh", "max", "low", "high"]),
        ] {
            assert_eq!(levels.map(|level| effort(model, level)), expected, "{model}");
        }
    }
}
