//! Levels of thinking.

use std::fmt;
use std::str::FromStr;

use crate::parse_error::ParseError;

/// The amount of thinking before a model answers.
///
/// The levels have the names that providers use. Providers with fewer levels use the nearest level, and a level is translated to a budget
/// for providers that require a number of tokens.
///
/// ```
/// use agent::model::Thinking;
///
/// assert_eq!("high".parse(), Ok(Thinking::High));
/// assert_eq!("2048".parse(), Ok(Thinking::Budget(2048)));
/// let error = "hard".parse::<Thinking>().unwrap_err();
/// assert!(error.to_string().contains("none, minimal, low, medium, high, xhigh, max"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Thinking {
    /// No thinking.
    None,
    /// As little thinking as possible.
    Minimal,
    /// A little thinking.
    Low,
    /// The usual amount of thinking.
    Medium,
    /// Much thinking.
    High,
    /// Very much thinking.
    XHigh,
    /// As much thinking as possible.
    Max,
    /// Thinking of at most this many tokens.
    Budget(u32),
}

impl Thinking {
    const LEVELS: [(&'static str, Self); 7] = [
        ("none", Self::None),
        ("minimal", Self::Minimal),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("xhigh", Self::XHigh),
        ("max", Self::Max),
    ];
}

impl fmt::Display for Thinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(tokens) => write!(f, "{tokens}"),
            level => {
                let word = Self::LEVELS.iter().find(|(_, known)| known == level).map(|(word, _)| *word);
                f.write_str(word.unwrap_or_default())
            }
        }
    }
}

fn words() -> String {
    Thinking::LEVELS.map(|(word, _)| word).join(", ")
}

impl FromStr for Thinking {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let level = Self::LEVELS.iter().find(|(word, _)| *word == text).map(|(_, level)| *level);
        level.or_else(|| text.parse().ok().map(Self::Budget)).ok_or_else(|| {
            ParseError::is_not(text, "a thinking level", &format!("use {}, or a number of tokens", words()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_read_back() {
        for thinking in Thinking::LEVELS.into_iter().map(|(_, level)| level).chain([Thinking::Budget(7)]) {
            assert_eq!(thinking.to_string().parse(), Ok(thinking));
        }
        for text in ["", "High", "-1", "1e3", "budget"] {
            assert!(text.parse::<Thinking>().unwrap_err().to_string().contains(&format!("`{text}`")));
        }
    }
}
