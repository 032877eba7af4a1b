//! The dialects of JSON Schema.

use crate::parse_error::ParseError;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A dialect of JSON Schema, named after the provider or program that reads it.
///
/// ```
/// use agent::schema::Dialect;
/// assert_eq!("openai-strict".parse(), Ok(Dialect::OpenAiStrict));
/// assert_eq!(Dialect::GeminiLegacy.as_str(), "gemini-legacy");
/// assert!(Dialect::OpenAiStrict.is_strict() && !Dialect::Plain.is_strict());
/// assert!("openapi".parse::<Dialect>().unwrap_err().to_string().contains("llama-cpp"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dialect {
    /// Draft 2020-12 without restrictions: the form of [`Plan::schema`](crate::args::Plan::schema), and of MCP.
    Canonical,
    /// The canonical form with one plain object at the root, for providers that do not enforce the schema. Examples are `OpenAI` and
    /// Anthropic without `strict`, and compatible servers.
    Plain,
    /// `OpenAI` with `strict: true`, for tools and for `json_schema` answers.
    OpenAiStrict,
    /// Anthropic with `strict: true` on the tool, and its `output_config.format`.
    AnthropicStrict,
    /// Gemini's `parametersJsonSchema` and `responseJsonSchema`.
    GeminiJsonSchema,
    /// Gemini's older `parameters` and `responseSchema`, a subset of `OpenAPI` 3.0.
    GeminiLegacy,
    /// The subset that llama.cpp converts to a grammar.
    LlamaCpp,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 7] = [
        Dialect::Canonical,
        Dialect::Plain,
        Dialect::OpenAiStrict,
        Dialect::AnthropicStrict,
        Dialect::GeminiJsonSchema,
        Dialect::GeminiLegacy,
        Dialect::LlamaCpp,
    ];

    /// Returns the name in lower-case words with hyphens, which [`FromStr`] parses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dialect::Canonical => "canonical",
            Dialect::Plain => "plain",
            Dialect::OpenAiStrict => "openai-strict",
            Dialect::AnthropicStrict => "anthropic-strict",
            Dialect::GeminiJsonSchema => "gemini-json-schema",
            Dialect::GeminiLegacy => "gemini-legacy",
            Dialect::LlamaCpp => "llama-cpp",
        }
    }

    /// Returns whether the provider guarantees that replies fit the schema, and refuses schemas for which it cannot
    /// give this guarantee.
    pub const fn is_strict(self) -> bool {
        matches!(self, Dialect::OpenAiStrict | Dialect::AnthropicStrict)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = ParseError;

    /// Parses the name of a dialect; underscores are accepted in place of hyphens.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let hyphens = name.replace('_', "-");
        let found = Dialect::ALL.into_iter().find(|dialect| dialect.as_str() == hyphens);
        found.ok_or_else(|| {
            let names = Dialect::ALL.map(Dialect::as_str).join(", ");
            ParseError::is_not(name, "a dialect", &format!("use {names}"))
        })
    }
}
