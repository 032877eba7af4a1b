//! What OpenAI's models can be told about reasoning.

use crate::model::Thinking;

/// Whether a model is known not to reason. Of names that nobody knows it is not known.
pub(super) fn never_reasons(model: &str) -> bool {
    let name = name(model);
    ["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|family| name.starts_with(family))
        || name.contains("-chat-latest")
}

/// Whether a model is known to reason unless told otherwise: it takes no sampling settings then, and its system
/// prompt has the role `developer`.
pub(super) fn reasons(model: &str) -> bool {
    let name = name(model);
    let is_o = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    (is_o || name.starts_with("gpt-5") || name.starts_with("gpt-6")) && !never_reasons(model)
}

/// The effort that stands for a level: the nearest that the model knows.
///
/// Source: OpenAI's model pages: o-series `low` to `high`; gpt-5 also `minimal`; 5.1 has `none` in its place; `xhigh`
/// from 5.2.
pub(super) fn effort(model: &str, thinking: Thinking) -> &'static str {
    let name = name(model);
    let is_o = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let minor = name.strip_prefix("gpt-5.").and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    let is_gpt5 = name.starts_with("gpt-5") && minor.is_none();
    let has_xhigh = !is_o && !is_gpt5 && minor != Some(1);
    match thinking {
        Thinking::None if is_o => "low",
        Thinking::None if is_gpt5 => "minimal",
        Thinking::None => "none",
        Thinking::Minimal if is_gpt5 || !(is_o || minor.is_some()) => "minimal",
        Thinking::Minimal | Thinking::Low | Thinking::Budget(..=2047) => "low",
        Thinking::Medium | Thinking::Budget(..=12_000) => "medium",
        Thinking::Max if has_xhigh && minor.is_none() => "max",
        Thinking::XHigh | Thinking::Max if has_xhigh => "xhigh",
        Thinking::High | Thinking::XHigh | Thinking::Max | Thinking::Budget(_) => "high",
    }
}

/// Without the vendor that routers put before it.
fn name(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
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
            ("gpt-5.1", ["none", "low", "low", "medium", "high", "high", "high", "medium"]),
            ("openai/gpt-5.2", ["none", "low", "low", "medium", "high", "xhigh", "xhigh", "medium"]),
            ("gpt-6", ["none", "minimal", "low", "medium", "high", "xhigh", "max", "medium"]),
        ] {
            assert_eq!(levels.map(|level| effort(model, level)), expected, "{model}");
        }
        assert!(reasons("o1-mini") && reasons("gpt-5") && !reasons("gpt-4o") && !reasons("openchat"));
        assert!(never_reasons("openai/gpt-4o-mini") && !never_reasons("deepseek-reasoner"));
    }
}
