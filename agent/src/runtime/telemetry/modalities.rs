//! Token counts by modality, for providers that report them.

use serde_json::Value;

use crate::message::Usage;

/// The names of the modalities in the conventions.
pub(in crate::runtime) const MODALITIES: [&str; 3] = ["text", "image", "audio"];

/// The token counts of the [`MODALITIES`], in the same order. A count that is not reported is zero.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::runtime) struct ModalityTokens {
    pub(in crate::runtime) input: [u64; 3],
    pub(in crate::runtime) output: [u64; 3],
    pub(in crate::runtime) cache_read: [u64; 3],
}

impl ModalityTokens {
    /// Reads the counts from the raw usage of a provider. `OpenAI` sends objects of counts, and Gemini sends lists.
    pub(in crate::runtime) fn of(usage: &Usage) -> Self {
        let Some(raw) = &usage.raw else { return Self::default() };
        let find = |paths: [&[&str]; 3]| {
            let found =
                paths.into_iter().find_map(|path| path.iter().try_fold(&**raw, |value, key| value.get(key)));
            found.map(counts).unwrap_or_default()
        };
        Self {
            input: find([&["promptTokensDetails"], &["prompt_tokens_details"], &["input_tokens_details"]]),
            output: find([
                &["candidatesTokensDetails"],
                &["completion_tokens_details"],
                &["output_tokens_details"],
            ]),
            cache_read: find([
                &["cacheTokensDetails"],
                &["prompt_tokens_details", "cached_tokens_details"],
                &["input_tokens_details", "cached_tokens_details"],
            ]),
        }
    }
}

fn counts(details: &Value) -> [u64; 3] {
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
    MODALITIES.map(|modality| match details.as_array() {
        Some(list) => {
            let is_meant = |entry: &&Value| {
                entry
                    .get("modality")
                    .and_then(Value::as_str)
                    .is_some_and(|word| word.eq_ignore_ascii_case(modality))
            };
            let counts = list.iter().filter(is_meant).map(|entry| number(entry.get("tokenCount")));
            counts.fold(0, u64::saturating_add)
        }
        None => number(details.get(format!("{modality}_tokens"))),
    })
}

/// Divides a count among modalities, and leaves out zeros. The tokens that are not in `parts` are `unknown`. If the parts exceed the count,
/// all tokens are `unknown`.
#[cfg(feature = "otel")]
pub(in crate::runtime) fn divided(count: u64, parts: [u64; 3]) -> impl Iterator<Item = (&'static str, u64)> {
    let known = parts.into_iter().fold(0, u64::saturating_add);
    let parts = if known > count { [0; 3] } else { parts };
    let known = parts.into_iter().fold(0, u64::saturating_add);
    let unknown = [("unknown", count.saturating_sub(known))];
    MODALITIES.into_iter().zip(parts).chain(unknown).filter(|(_, count)| *count > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_reports_of_providers_are_read() {
        for (raw, input, output, cache_read) in [
            (
                json!({"prompt_tokens_details": {"audio_tokens": 20, "cached_tokens": 9, "cached_tokens_details": {"text_tokens": 9}},
                    "completion_tokens_details": {"audio_tokens": 7, "reasoning_tokens": 3}}),
                [0, 0, 20],
                [0, 0, 7],
                [9, 0, 0],
            ),
            (
                json!({"input_tokens_details": {"text_tokens": 5, "image_tokens": 6}}),
                [5, 6, 0],
                [0; 3],
                [0; 3],
            ),
            (
                json!({"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 8}, {"modality": "IMAGE", "tokenCount": 258},
                        {"modality": "VIDEO", "tokenCount": 99}],
                    "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 4}],
                    "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 2}]}),
                [8, 258, 0],
                [4, 0, 0],
                [0, 0, 2],
            ),
            (
                json!({"promptTokensDetails": [7, {"modality": 3}], "input_tokens_details": "x"}),
                [0; 3],
                [0; 3],
                [0; 3],
            ),
            (
                json!({"input_tokens_details": {"text_tokens": -4, "audio_tokens": "9"}}),
                [0; 3],
                [0; 3],
                [0; 3],
            ),
        ] {
            let mut usage = Usage::new(300, 10);
            usage.raw = Some(Box::new(raw.clone()));
            assert_eq!(ModalityTokens::of(&usage), ModalityTokens { input, output, cache_read }, "{raw}");
        }
        assert_eq!(ModalityTokens::of(&Usage::new(1, 1)), ModalityTokens::default());
    }

    #[cfg(feature = "otel")]
    #[test]
    fn what_is_not_reported_is_unknown() {
        let divided = |count, parts| divided(count, parts).collect::<Vec<_>>();
        assert_eq!(divided(10, [0; 3]), [("unknown", 10)]);
        assert_eq!(divided(10, [4, 0, 6]), [("text", 4), ("audio", 6)]);
        assert_eq!(divided(10, [4, 0, 0]), [("text", 4), ("unknown", 6)]);
        assert_eq!(divided(10, [40, 0, u64::MAX]), [("unknown", 10)]);
        assert_eq!(divided(0, [0; 3]), []);
    }
}
