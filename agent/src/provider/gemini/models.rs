//! Properties that the names of Gemini's models reveal: the version, the thinking settings, and whether a model generates images.

use serde_json::{Value, json};

use crate::model::Thinking;

/// Parses the version in names such as `gemini-2.5-pro` and `models/gemini-3-flash-preview`. Returns `None` for other names.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    let rest = model.split("gemini-").nth(1)?;
    let mut numbers = rest.split('-').next()?.split('.').map(|word| word.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next().flatten().unwrap_or(0)))
}

/// Returns whether a model is from Gemini 3 or later. Names such as `gemini-flash-latest` mean models of these versions.
pub(super) fn is_gemini_3(model: &str) -> bool {
    let is_latest = model.contains("gemini-") && model.ends_with("-latest");
    version(model).map_or(is_latest, |version| version >= (3, 0))
}

pub(super) fn is_image_model(model: &str) -> bool {
    model.contains("gemini") && model.contains("-image")
}

/// Returns `thinkingConfig` for a level, or `None` for models that do not think. A name without a version counts as the newest version.
///
/// Source: Google's page on [thinking](https://ai.google.dev/gemini-api/docs/thinking). Gemini 2.5 has budgets in tokens: 128 to 32768 for
/// Pro, 0 to 24576 for Flash, and 0 or 512 to 24576 for Flash-Lite. Gemini 3 and later have levels: `LOW`, `HIGH`, `MEDIUM` (not Pro 3.0),
/// and `MINIMAL` (not Pro, and only before 3.7, according to `LiteLLM` 1.106.2).
pub(super) fn thinking(model: &str, level: Thinking) -> Option<Value> {
    let level = if level == Thinking::Budget(0) { Thinking::None } else { level };
    let thinks = model.contains("gemini") && !model.contains("-image") && !model.contains("-tts");
    let version = version(model).unwrap_or((u32::MAX, 0));
    if !thinks || version < (2, 5) {
        return None;
    }
    let shown = level != Thinking::None;
    if version >= (3, 0) {
        return Some(json!({"includeThoughts": shown, "thinkingLevel": level_word(model, version, level)}));
    }
    Some(json!({"includeThoughts": shown, "thinkingBudget": budget(model, level)}))
}

fn level_word(model: &str, version: (u32, u32), level: Thinking) -> &'static str {
    let is_pro = model.contains("-pro");
    let knows_minimal = !is_pro && version < (3, 7);
    match level {
        Thinking::None | Thinking::Minimal if knows_minimal => "MINIMAL",
        Thinking::None | Thinking::Minimal | Thinking::Low | Thinking::Budget(..=2047) => "LOW",
        Thinking::Medium | Thinking::Budget(..=12_000) if !(is_pro && version == (3, 0)) => "MEDIUM",
        _ => "HIGH",
    }
}

fn budget(model: &str, level: Thinking) -> u32 {
    let (least, most) = match () {
        () if model.contains("-pro") => (128, 32_768),
        () if model.contains("-lite") => (512, 24_576),
        () => (1, 24_576),
    };
    let tokens = match level {
        Thinking::None if least > 500 || least == 1 => return 0,
        Thinking::None => 0,
        Thinking::Minimal => 512,
        Thinking::Low => 1024,
        Thinking::Medium => 8192,
        Thinking::High => 24_576,
        Thinking::XHigh | Thinking::Max => most,
        Thinking::Budget(tokens) => tokens,
    };
    tokens.clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_what_the_model_knows() {
        use Thinking as T;
        let levels =
            [T::None, T::Minimal, T::Low, T::Medium, T::High, T::Max, T::Budget(2000), T::Budget(99_999)];
        for (model, expected) in [
            ("gemini-2.5-pro", [128, 512, 1024, 8192, 24_576, 32_768, 2000, 32_768]),
            ("models/gemini-2.5-flash", [0, 512, 1024, 8192, 24_576, 24_576, 2000, 24_576]),
            ("gemini-2.5-flash-lite", [0, 512, 1024, 8192, 24_576, 24_576, 2000, 24_576]),
        ] {
            let found =
                levels.map(|level| thinking(model, level).unwrap()["thinkingBudget"].as_u64().unwrap());
            assert_eq!(found, expected, "{model}");
        }
        for (model, expected) in [
            ("gemini-3-pro-preview", ["LOW", "LOW", "LOW", "HIGH", "HIGH", "HIGH", "LOW", "HIGH"]),
            ("gemini-3.1-pro-preview", ["LOW", "LOW", "LOW", "MEDIUM", "HIGH", "HIGH", "LOW", "HIGH"]),
            ("gemini-3-flash", ["MINIMAL", "MINIMAL", "LOW", "MEDIUM", "HIGH", "HIGH", "LOW", "HIGH"]),
            ("gemini-3.8-flash", ["LOW", "LOW", "LOW", "MEDIUM", "HIGH", "HIGH", "LOW", "HIGH"]),
            ("gemini-4-argon", ["LOW", "LOW", "LOW", "MEDIUM", "HIGH", "HIGH", "LOW", "HIGH"]),
            ("gemini-flash-latest", ["LOW", "LOW", "LOW", "MEDIUM", "HIGH", "HIGH", "LOW", "HIGH"]),
        ] {
            let found = levels.map(|level| thinking(model, level).unwrap()["thinkingLevel"].clone());
            assert_eq!(found, expected, "{model}");
        }
        for model in ["gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b", "gemini-2.5-flash-image"] {
            assert_eq!(thinking(model, T::High), None, "{model}");
        }
        for model in ["gemini-2.5-pro", "gemini-2.5-flash-lite", "gemini-3-flash"] {
            assert_eq!(thinking(model, T::Budget(0)), thinking(model, T::None), "{model}");
        }
        assert!(
            is_gemini_3("gemini-3.1-pro")
                && !is_gemini_3("gemini-2.5-pro")
                && is_gemini_3("gemini-flash-latest")
                && !is_gemini_3("gemini-1.5-flash-latest")
        );
    }
}
