//! The estimated sizes of texts and JSON, from their bytes. Integers only, so that a replay gets the same numbers.

use super::TokenCounter;

/// The default counter: estimates tokens from bytes, without a vocabulary.
///
/// ASCII text counts 4 bytes per token, a Chinese, Japanese or Korean character 1.1 tokens, other text 3 bytes, encoded data 2
/// bytes, JSON 5 bytes. On recorded requests, most of which are short, the median error of a whole request is between 24 and 80 % by
/// protocol, because providers add text of their own; where a reply of the same conversation corrects it, it was at most 9 % in six cases.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenEstimator;

/// The length from which a run of characters of base64 is data and not words.
const MIN_RUN: u64 = 64;

impl TokenCounter for TokenEstimator {
    fn count_text(&self, text: &str) -> u64 {
        // In 1/1024 of a token.
        let (mut sum, mut run) = (0_u64, 0_u64);
        let end_run = |run: &mut u64| {
            let run = std::mem::take(run);
            run.saturating_mul(if run >= MIN_RUN { 512 } else { 256 })
        };
        for character in text.chars() {
            if character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=') {
                run += 1;
                continue;
            }
            sum = sum.saturating_add(end_run(&mut run)).saturating_add(match character {
                character if character.is_ascii() => 256,
                character if is_ideographic(character) => 1126,
                character => character.len_utf8() as u64 * 1024 / 3,
            });
        }
        sum.saturating_add(end_run(&mut run)).div_ceil(1024)
    }

    fn count_json(&self, json: &str) -> u64 {
        (json.len() as u64).div_ceil(5)
    }
}

/// Whether the character is a Chinese, Japanese or Korean one.
fn is_ideographic(character: char) -> bool {
    matches!(character,
        '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_has_its_rule() {
        for (text, tokens) in [
            ("", 0),
            ("word", 1),
            ("words", 2),
            (&"x".repeat(63), 16),
            (&"x".repeat(64), 32),
            (&format!("{} {}", "x".repeat(64), "y".repeat(64)), 65),
            ("天気天気天気天気天気", 11),
            ("Привет", 4),
            ("🙂", 2),
        ] {
            assert_eq!(TokenEstimator.count_text(text), tokens, "{text}");
        }
    }
}
