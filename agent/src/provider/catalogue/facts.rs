//! What is known of models: how much they take, and what they cost.

/// What is known of a model beyond what it [can do](crate::model::Capabilities).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelFacts {
    /// The most tokens that request and reply may have together.
    pub context_window: Option<u64>,
    /// The most tokens that a reply may have.
    pub max_output: Option<u64>,
    /// What tokens cost.
    pub prices: Option<Prices>,
}

/// What a million tokens cost, in US dollars, at the usual tier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Prices {
    /// Of the request, but for what the next two are for.
    pub input: f64,
    /// Of the reply, reasoning included.
    pub output: f64,
    /// Read from the cache.
    pub cache_read: f64,
    /// Written to the cache.
    pub cache_write: f64,
}

impl Prices {
    /// Of input and output; the cache costs what input does.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_read: input, cache_write: input }
    }

    /// Sets what reading from and writing to the cache cost.
    pub fn with_cache(mut self, read: f64, write: f64) -> Self {
        (self.cache_read, self.cache_write) = (read, write);
        self
    }

    /// What a reply cost.
    ///
    /// ```
    /// use agent::message::Usage;
    /// use agent::provider::Prices;
    ///
    /// let cost = Prices::new(2.0, 8.0).cost(&Usage::new(500_000, 250_000));
    /// assert_eq!((cost.input, cost.output, cost.total), (1.0, 2.0, 3.0));
    /// ```
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    pub fn cost(&self, usage: &crate::message::Usage) -> crate::message::Cost {
        let price = |tokens: u64, dollars: f64| tokens as f64 * dollars / 1e6;
        let plain = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
        let mut cost = crate::message::Cost::default();
        cost.input = price(plain, self.input);
        cost.output = price(usage.output, self.output);
        cost.cache_read = price(usage.cache_read, self.cache_read);
        cost.cache_write = price(usage.cache_write, self.cache_write);
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        cost
    }
}

/// A family of models: provider, how their names begin, window, longest reply, and what input, output, cached input and
/// written cache cost.
type Row = (&'static str, &'static str, u64, u64, [f64; 4]);

/// Source: the providers' pages on models and prices; OpenAI writes to its cache for nothing more than input.
const ROWS: &[Row] = &[
    ("anthropic", "claude-opus-4-5", 200_000, 64_000, [5.0, 25.0, 0.5, 6.25]),
    ("anthropic", "claude-opus-4-1", 200_000, 32_000, [15.0, 75.0, 1.5, 18.75]),
    ("anthropic", "claude-sonnet-4-5", 200_000, 64_000, [3.0, 15.0, 0.3, 3.75]),
    ("anthropic", "claude-haiku-4-5", 200_000, 64_000, [1.0, 5.0, 0.1, 1.25]),
    ("anthropic", "claude-3-7-sonnet", 200_000, 64_000, [3.0, 15.0, 0.3, 3.75]),
    ("anthropic", "claude-3-5-haiku", 200_000, 8192, [0.8, 4.0, 0.08, 1.0]),
    ("openai", "gpt-5-mini", 400_000, 128_000, [0.25, 2.0, 0.025, 0.25]),
    ("openai", "gpt-5-nano", 400_000, 128_000, [0.05, 0.4, 0.005, 0.05]),
    ("openai", "gpt-5.1", 400_000, 128_000, [1.25, 10.0, 0.125, 1.25]),
    ("openai", "gpt-5", 400_000, 128_000, [1.25, 10.0, 0.125, 1.25]),
    ("openai", "gpt-4.1-mini", 1_047_576, 32_768, [0.4, 1.6, 0.1, 0.4]),
    ("openai", "gpt-4.1-nano", 1_047_576, 32_768, [0.1, 0.4, 0.025, 0.1]),
    ("openai", "gpt-4.1", 1_047_576, 32_768, [2.0, 8.0, 0.5, 2.0]),
    ("openai", "gpt-4o-mini", 128_000, 16_384, [0.15, 0.6, 0.075, 0.15]),
    ("openai", "gpt-4o", 128_000, 16_384, [2.5, 10.0, 1.25, 2.5]),
    ("openai", "o4-mini", 200_000, 100_000, [1.1, 4.4, 0.275, 1.1]),
    ("openai", "o3", 200_000, 100_000, [2.0, 8.0, 0.5, 2.0]),
    ("gemini", "gemini-2.5-flash-lite", 1_048_576, 65_536, [0.1, 0.4, 0.01, 0.1]),
    ("gemini", "gemini-2.5-flash", 1_048_576, 65_536, [0.3, 2.5, 0.03, 0.3]),
];

fn row(provider: &str, model: &str) -> Option<&'static Row> {
    // Two protocols of one provider have the same models.
    let provider = provider.strip_suffix("-responses").unwrap_or(provider);
    ROWS.iter().find(|row| row.0 == provider && is_of(model, row.1))
}

/// Whether a model is of a family: its name, and after it nothing, or a version.
fn is_of(model: &str, family: &str) -> bool {
    model.strip_prefix(family).is_some_and(|rest| {
        rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '@')) || rest == "-latest"
    })
}

/// What is known of `provider/model`.
pub(super) fn known(name: &str) -> Option<ModelFacts> {
    let (provider, model) = name.split_once('/')?;
    let (_, _, window, longest, [input, output, read, write]) = row(provider, model)?;
    Some(ModelFacts {
        context_window: Some(*window),
        max_output: Some(*longest),
        prices: Some(Prices::new(*input, *output).with_cache(*read, *write)),
    })
}

/// The provider that a model's name alone tells.
pub(super) fn provider_of(model: &str) -> Option<&'static str> {
    let begins = |words: &[&str]| words.iter().any(|word| model.starts_with(word));
    match () {
        () if begins(&["claude"]) => Some("anthropic"),
        () if begins(&["gpt-", "o1", "o3", "o4", "chatgpt"]) => Some("openai"),
        () if begins(&["gemini"]) => Some("gemini"),
        () if begins(&["grok"]) => Some("xai"),
        () if begins(&["deepseek"]) => Some("deepseek"),
        () if begins(&["mistral", "magistral", "codestral"]) => Some("mistral"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_apart() {
        let input = |name: &str| known(name).and_then(|facts| facts.prices).map(|prices| prices.input);
        for (name, expected) in [
            ("openai/gpt-5", Some(1.25)),
            ("openai/gpt-5-2025-08-07", Some(1.25)),
            ("openai-responses/gpt-5-mini", Some(0.25)),
            ("openai/gpt-5-pro", None),
            ("openai/gpt-5.9", None),
            ("openai/gpt-4o-mini", Some(0.15)),
            ("openai/gpt-4o-audio-preview", None),
            ("anthropic/claude-sonnet-4-5-20250929", Some(3.0)),
            ("gemini/gemini-2.5-flash", Some(0.3)),
            ("groq/gpt-5", None),
            ("gpt-5", None),
        ] {
            assert_eq!(input(name), expected, "{name}");
        }
    }

    #[test]
    fn what_came_from_the_cache_is_not_paid_twice() {
        let usage = crate::message::Usage {
            cache_read: 400_000,
            cache_write: 100_000,
            ..crate::message::Usage::new(1_000_000, 0)
        };
        let cost = Prices::new(2.0, 8.0).with_cache(0.5, 4.0).cost(&usage);
        assert_eq!((cost.input, cost.cache_read, cost.cache_write, cost.total), (1.0, 0.2, 0.4, 1.6));
    }
}
