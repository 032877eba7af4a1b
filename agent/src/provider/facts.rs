//! Facts about models: their limits and prices.

/// The limits and prices of a model: facts that its [`Capabilities`](crate::model::Capabilities) do not contain.
///
/// ```
/// use agent::provider::{Catalogue, ModelFacts};
///
/// let facts: ModelFacts = Catalogue::default().facts("openai/gpt-5-mini").unwrap_or_default();
/// let room = facts.context_window.map(|window| window - facts.max_output.unwrap_or(0));
/// println!("{room:?} tokens for the conversation");
/// ```
///
/// For a model of your own, set the facts yourself:
///
/// ```
/// use agent::provider::{ModelFacts, Prices};
///
/// let facts = ModelFacts::default().with_context_window(32_000).with_max_output(4_000).with_prices(Prices::new(0.2, 0.8));
/// assert_eq!((facts.context_window, facts.max_output), (Some(32_000), Some(4_000)));
/// assert_eq!(facts.prices.unwrap().output, 0.8);
/// ```
#[cfg(feature = "http")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelFacts {
    /// Maximum number of tokens of a request and its reply together.
    pub context_window: Option<u64>,
    /// Maximum number of tokens of a reply.
    pub max_output: Option<u64>,
    /// Prices of tokens.
    pub prices: Option<Prices>,
}

#[cfg(feature = "http")]
impl ModelFacts {
    /// Sets the maximum number of tokens of a request and its reply together.
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }

    /// Sets the maximum number of tokens of a reply.
    pub fn with_max_output(mut self, tokens: u64) -> Self {
        self.max_output = Some(tokens);
        self
    }

    /// Sets the prices of tokens.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }
}

/// Prices for a million tokens, in US dollars, at the standard tier: neither batch nor priority.
///
/// ```
/// use agent::message::Usage;
/// use agent::provider::Prices;
///
/// let prices = Prices::new(3.0, 15.0).with_cache(0.3, 3.75);
/// assert_eq!(prices.cost(&Usage::new(1_000_000, 200_000)).total, 6.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Prices {
    /// Price of the request's tokens, except tokens read from or written to the cache.
    pub input: f64,
    /// Price of the reply's tokens, including reasoning.
    pub output: f64,
    /// Price of tokens read from the cache.
    pub cache_read: f64,
    /// Price of tokens written to the cache.
    pub cache_write: f64,
    long: Option<LongRequest>,
}

/// A surcharge for long requests. It applies to all tokens of a long request and of its reply.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LongRequest {
    /// Number of tokens, including cached ones, above which a request is long.
    above: u64,
    input_factor: f64,
    output_factor: f64,
}

impl Prices {
    /// Creates prices for input and output; cached tokens cost as much as input.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_read: input, cache_write: input, long: None }
    }

    /// Sets the prices of reading from and writing to the cache.
    pub const fn with_cache(mut self, read: f64, write: f64) -> Self {
        (self.cache_read, self.cache_write) = (read, write);
        self
    }

    /// Sets the surcharge for requests of more than `above` tokens. The factors multiply the prices of all tokens of the request and of the
    /// reply.
    ///
    /// ```
    /// use agent::message::Usage;
    /// use agent::provider::Prices;
    ///
    /// let prices = Prices::new(2.0, 12.0).above(200_000, 2.0, 1.5);
    /// assert_eq!(prices.cost(&Usage::new(200_000, 10_000)).total, 0.4 + 0.12);
    /// assert_eq!(prices.cost(&Usage::new(300_000, 10_000)).total, 1.2 + 0.18);
    /// ```
    pub const fn above(mut self, above: u64, input_factor: f64, output_factor: f64) -> Self {
        self.long = Some(LongRequest { above, input_factor, output_factor });
        self
    }

    /// Returns the cost of a request and its reply. If the provider reports several requests for one reply, the surcharge depends on the
    /// length of each request. Tokens that Anthropic keeps in its cache for an hour cost at least twice as much as input.
    ///
    /// ```
    /// use agent::message::Usage;
    /// use agent::provider::Prices;
    ///
    /// let cost = Prices::new(2.0, 8.0).cost(&Usage::new(500_000, 250_000));
    /// assert_eq!((cost.input, cost.output, cost.total), (1.0, 2.0, 3.0));
    /// ```
    pub fn cost(&self, usage: &crate::message::Usage) -> crate::message::Cost {
        #[cfg(feature = "anthropic")]
        if let Some(raw) = usage.raw.as_deref() {
            let requests = super::anthropic::requests(raw);
            let sum = requests.iter().sum::<crate::message::Usage>();
            if requests.len() > 1 && (sum.input, sum.output) == (usage.input, usage.output) {
                let costs = requests.iter().map(|request| self.cost_of_request(request));
                return costs.fold(crate::message::Cost::default(), |sum, cost| sum + cost);
            }
        }
        self.cost_of_request(usage)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    fn cost_of_request(&self, usage: &crate::message::Usage) -> crate::message::Cost {
        let price = |tokens: u64, dollars: f64| tokens as f64 * dollars / 1e6;
        let long = self.long.filter(|long| usage.input > long.above);
        let (more, more_out) = long.map_or((1.0, 1.0), |long| (long.input_factor, long.output_factor));
        let plain = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
        let mut cost = crate::message::Cost {
            input: price(plain, self.input * more),
            output: price(usage.output, self.output * more_out),
            cache_read: price(usage.cache_read, self.cache_read * more),
            ..crate::message::Cost::default()
        };
        // The price list has no price for tokens that are cached for an hour. Anthropic's page on prices says: twice the price of input.
        let for_hour =
            usage.raw.as_ref().and_then(|raw| raw.pointer("/cache_creation/ephemeral_1h_input_tokens"));
        let for_hour =
            for_hour.and_then(serde_json::Value::as_u64).unwrap_or_default().min(usage.cache_write);
        cost.cache_write = price(usage.cache_write - for_hour, self.cache_write * more)
            + price(for_hour, self.cache_write.max(self.input * 2.0) * more);
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        cost
    }
}

/// The facts about a model and its snapshots: provider, name, context window, maximum number of tokens of a reply (0 if unknown), and
/// prices.
type Row = (&'static str, &'static str, u64, u64, Prices);

const fn each(input: f64, output: f64, read: f64, write: f64) -> Prices {
    Prices::new(input, output).with_cache(read, write)
}

/// Creates prices without an extra price for cache writes, which then cost as much as input.
const fn reading(input: f64, output: f64, read: f64) -> Prices {
    each(input, output, read, input)
}

const fn openai(prices: Prices) -> Prices {
    prices.above(272_000, 2.0, 1.5)
}

/// The models whose limits and prices are built in.
///
/// Source: the price and model pages of the providers, as the table in `LiteLLM` 1.106.2 quotes them. The figures were compared with that
/// table on 2026-11-22. Models that were withdrawn by then, and figures for which the table names no source, are left out.
const ROWS: &[Row] = &[
    ("anthropic", "claude-fable-5-1", 1_000_000, 128_000, each(10.0, 50.0, 0.25, 12.5)),
    ("anthropic", "claude-fable-5", 1_000_000, 128_000, each(10.0, 50.0, 1.0, 12.5)),
    ("anthropic", "claude-mythos-5-1", 1_000_000, 128_000, each(10.0, 50.0, 0.25, 12.5)),
    ("anthropic", "claude-mythos-5", 1_000_000, 128_000, each(10.0, 50.0, 1.0, 12.5)),
    ("anthropic", "claude-opus-5-5", 1_000_000, 128_000, each(4.0, 20.0, 0.2, 5.0)),
    ("anthropic", "claude-opus-5", 1_000_000, 128_000, each(5.0, 25.0, 0.5, 6.25)),
    ("anthropic", "claude-opus-4-8", 1_000_000, 128_000, each(5.0, 25.0, 0.5, 6.25)),
    ("anthropic", "claude-opus-4-7", 1_000_000, 128_000, each(5.0, 25.0, 0.5, 6.25)),
    ("anthropic", "claude-opus-4-6", 1_000_000, 128_000, each(5.0, 25.0, 0.5, 6.25)),
    ("anthropic", "claude-opus-4-5", 200_000, 64_000, each(5.0, 25.0, 0.5, 6.25)),
    ("anthropic", "claude-sonnet-5-5", 1_000_000, 128_000, each(2.0, 10.0, 0.1, 2.5)),
    ("anthropic", "claude-sonnet-5", 1_000_000, 128_000, each(2.0, 10.0, 0.2, 2.5)),
    ("anthropic", "claude-sonnet-4-6", 1_000_000, 128_000, each(3.0, 15.0, 0.3, 3.75)),
    ("anthropic", "claude-sonnet-4-5", 200_000, 64_000, each(3.0, 15.0, 0.3, 3.75)),
    (
        "anthropic",
        "claude-haiku-5-5",
        1_000_000,
        128_000,
        each(0.1, 0.5, 0.01, 0.125).above(100_000, 5.0, 5.0),
    ),
    ("anthropic", "claude-haiku-4-5", 200_000, 64_000, each(1.0, 5.0, 0.1, 1.25)),
    ("openai", "gpt-6.1-sol", 1_050_000, 128_000, openai(each(2.0, 10.0, 0.1, 2.5))),
    ("openai", "gpt-6-astra", 1_050_000, 128_000, openai(each(10.0, 50.0, 1.0, 12.5))),
    ("openai", "gpt-6-sol", 1_050_000, 128_000, openai(each(2.0, 10.0, 0.2, 2.5))),
    ("openai", "gpt-6-luna", 1_050_000, 128_000, openai(each(0.1, 0.5, 0.01, 0.125))),
    ("openai", "gpt-5.6-sol", 1_050_000, 128_000, openai(each(4.0, 20.0, 0.4, 5.0))),
    ("openai", "gpt-5.6-terra", 1_050_000, 128_000, openai(each(2.0, 12.0, 0.2, 2.5))),
    ("openai", "gpt-5.6-luna", 1_050_000, 128_000, openai(each(0.2, 1.2, 0.02, 0.25))),
    ("openai", "gpt-5.6", 1_050_000, 128_000, openai(each(4.0, 20.0, 0.4, 5.0))),
    ("openai", "gpt-5.5-pro", 1_050_000, 128_000, openai(Prices::new(30.0, 180.0))),
    ("openai", "gpt-5.5", 1_050_000, 128_000, openai(reading(5.0, 30.0, 0.5))),
    ("openai", "gpt-5.4-pro", 1_050_000, 128_000, openai(Prices::new(30.0, 180.0))),
    ("openai", "gpt-5.4-mini", 400_000, 128_000, reading(0.75, 4.5, 0.075)),
    ("openai", "gpt-5.4-nano", 400_000, 128_000, reading(0.2, 1.25, 0.02)),
    ("openai", "gpt-5.4", 1_050_000, 128_000, openai(reading(2.5, 15.0, 0.25))),
    ("openai", "gpt-5.3-codex", 400_000, 128_000, reading(1.75, 14.0, 0.175)),
    ("openai", "gpt-5.2-pro", 400_000, 128_000, Prices::new(21.0, 168.0)),
    ("openai", "gpt-5.2", 400_000, 128_000, reading(1.75, 14.0, 0.175)),
    ("openai", "gpt-5.1", 400_000, 128_000, reading(1.25, 10.0, 0.125)),
    ("openai", "gpt-5-pro", 400_000, 272_000, Prices::new(15.0, 120.0)),
    ("openai", "gpt-5-mini", 400_000, 128_000, reading(0.25, 2.0, 0.025)),
    ("openai", "gpt-5-nano", 400_000, 128_000, reading(0.05, 0.4, 0.005)),
    ("openai", "gpt-5", 400_000, 128_000, reading(1.25, 10.0, 0.125)),
    ("openai", "gpt-4.1-mini", 1_047_576, 32_768, reading(0.4, 1.6, 0.1)),
    ("openai", "gpt-4.1", 1_047_576, 32_768, reading(2.0, 8.0, 0.5)),
    // The first snapshot of gpt-4o, `-2024-05-13`, cost more and wrote shorter replies.
    ("openai", "gpt-4o-2024-05-13", 128_000, 4096, Prices::new(5.0, 15.0)),
    ("openai", "gpt-4o-mini", 128_000, 16_384, reading(0.15, 0.6, 0.075)),
    ("openai", "gpt-4o", 128_000, 16_384, reading(2.5, 10.0, 1.25)),
    ("openai", "o3-pro", 200_000, 100_000, Prices::new(20.0, 80.0)),
    ("openai", "o3", 200_000, 100_000, reading(2.0, 8.0, 0.5)),
    ("gemini", "gemini-4-argon", 1_048_576, 1_048_576, reading(2.0, 10.0, 0.1)),
    ("gemini", "gemini-3.8-flash", 1_048_576, 65_536, reading(0.75, 3.75, 0.075)),
    ("gemini", "gemini-3.7-flash", 1_048_576, 65_536, reading(0.75, 3.75, 0.075)),
    ("gemini", "gemini-3.6-flash", 1_048_576, 65_536, reading(0.75, 3.75, 0.075)),
    ("gemini", "gemini-3.5-flash-lite", 1_048_576, 65_536, reading(0.3, 2.5, 0.03)),
    ("gemini", "gemini-3.5-flash", 1_048_576, 65_536, reading(1.5, 9.0, 0.15)),
    ("gemini", "gemini-3.1-pro-preview", 1_048_576, 65_536, reading(2.0, 12.0, 0.2).above(200_000, 2.0, 1.5)),
    ("gemini", "gemini-3.1-flash-lite", 1_048_576, 65_536, reading(0.25, 1.5, 0.025)),
    ("gemini", "gemini-3-flash-preview", 1_048_576, 65_536, reading(0.5, 3.0, 0.05)),
    ("gemini", "gemini-2.5-pro", 1_048_576, 65_536, reading(1.25, 10.0, 0.125).above(200_000, 2.0, 1.5)),
    ("gemini", "gemini-2.5-flash-lite", 1_048_576, 65_536, reading(0.1, 0.4, 0.01)),
    ("gemini", "gemini-2.5-flash", 1_048_576, 65_536, reading(0.3, 2.5, 0.03)),
    ("deepseek", "deepseek-v4-flash", 1_000_000, 393_216, reading(0.3, 1.2, 0.006)),
    ("deepseek", "deepseek-v4-pro", 1_000_000, 393_216, reading(1.32, 3.96, 0.044)),
    ("mistral", "mistral-large-2512", 262_144, 0, reading(0.5, 1.5, 0.05)),
    ("mistral", "mistral-medium-2604", 262_144, 0, reading(1.5, 7.5, 0.15)),
    ("mistral", "mistral-small-2603", 262_144, 0, reading(0.15, 0.6, 0.015)),
    ("moonshot", "kimi-k3", 1_048_576, 0, reading(3.0, 15.0, 0.3)),
    ("moonshot", "kimi-k2.6", 262_144, 0, reading(0.95, 4.0, 0.16)),
    ("xai", "grok-4.7", 500_000, 0, reading(2.0, 6.0, 0.5).above(200_000, 2.0, 2.0)),
    ("xai", "grok-4.6", 500_000, 0, reading(2.0, 6.0, 0.5).above(200_000, 2.0, 2.0)),
    ("xai", "grok-4.5", 500_000, 0, reading(2.0, 6.0, 0.3).above(200_000, 2.0, 2.0)),
    ("xai", "grok-4.3", 1_000_000, 0, reading(1.25, 2.5, 0.2).above(200_000, 2.0, 2.0)),
    ("zai", "glm-5.3-flash", 1_048_576, 128_000, reading(0.15, 0.5, 0.03)),
    ("zai", "glm-5.3", 1_000_000, 128_000, reading(1.4, 4.4, 0.26)),
    ("zai", "glm-5.2", 1_000_000, 128_000, reading(1.4, 4.4, 0.26)),
];

#[cfg(all(test, feature = "runtime"))]
pub(crate) fn all_prices() -> impl Iterator<Item = (String, Prices)> {
    ROWS.iter().map(|(provider, model, _, _, prices)| (format!("{provider}/{model}"), *prices))
}

fn row(provider: &str, model: &str) -> Option<&'static Row> {
    // `openai-responses` has the models of `openai`: the suffix only names a protocol.
    let provider = provider.strip_suffix("-responses").unwrap_or(provider);
    ROWS.iter().find(|row| row.0 == provider && is_of(model, row.1))
}

/// Returns whether `model` is `family` or one of its snapshots, for example with the suffix `-20250929`, `@20251001` or `-latest`. A
/// suffix of one or two digits is another version, with unknown facts.
fn is_of(model: &str, family: &str) -> bool {
    model.strip_prefix(family).is_some_and(|rest| {
        let snapshot = rest.strip_prefix(['-', '@']).is_some_and(|rest| {
            rest.split('-').next().is_some_and(|first| first.len() >= 3)
                && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        });
        rest.is_empty() || snapshot || rest == "-latest"
    })
}

#[cfg(feature = "runtime")]
pub(super) fn known_prices(name: &str) -> Option<Prices> {
    let (provider, model) = name.split_once('/')?;
    let (.., prices) = row(provider, model)?;
    Some(*prices)
}

#[cfg(feature = "http")]
pub(super) fn known(name: &str) -> Option<ModelFacts> {
    let (provider, model) = name.split_once('/')?;
    let (_, _, window, longest, prices) = row(provider, model)?;
    Some(ModelFacts {
        context_window: Some(*window),
        max_output: Some(*longest).filter(|longest| *longest > 0),
        prices: Some(*prices),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_apart() {
        let input = |name: &str| known_prices(name).map(|prices| prices.input);
        for (name, expected) in [
            ("openai/gpt-5", Some(1.25)),
            ("openai/gpt-5-2025-08-07", Some(1.25)),
            ("openai-responses/gpt-5-mini", Some(0.25)),
            ("openai/gpt-5-pro", Some(15.0)),
            ("openai/gpt-5-large", None),
            ("openai/gpt-5.9", None),
            ("openai/gpt-4o-2024-05-13", Some(5.0)),
            ("openai/gpt-4o-2024-08-06", Some(2.5)),
            ("anthropic/claude-opus-5", Some(5.0)),
            ("anthropic/claude-opus-5-5", Some(4.0)),
            ("anthropic/claude-opus-5-6", None),
            ("anthropic/claude-haiku-4-5@20251001", Some(1.0)),
            ("zai/glm-5.3-flash", Some(0.15)),
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

    #[test]
    fn an_hour_in_the_cache_costs_twice_the_input() {
        let raw = serde_json::json!({"cache_creation": {"ephemeral_1h_input_tokens": 300_000}});
        let usage = crate::message::Usage {
            cache_write: 400_000,
            raw: Some(Box::new(raw)),
            ..crate::message::Usage::new(400_000, 0)
        };
        let cost = Prices::new(2.0, 8.0).with_cache(0.2, 2.5).cost(&usage);
        assert_eq!((cost.input, cost.cache_write), (0.0, 0.25 + 1.2));
    }

    #[cfg(feature = "anthropic")]
    #[test]
    fn each_of_several_requests_has_its_own_surcharge() {
        let one = serde_json::json!({"type": "message", "input_tokens": 300_000, "output_tokens": 0});
        let usage = crate::message::Usage {
            raw: Some(Box::new(serde_json::json!({"iterations": [one, one]}))),
            ..crate::message::Usage::new(600_000, 0)
        };
        let prices = Prices::new(2.0, 8.0).above(399_999, 2.0, 1.5);
        assert_eq!(
            (prices.cost(&usage).total, prices.cost(&crate::message::Usage::new(600_000, 0)).total),
            (1.2, 2.4)
        );
    }

    #[test]
    fn a_long_request_costs_more_as_a_whole() {
        let long = crate::message::Usage {
            cache_read: 100_000,
            cache_write: 100_000,
            ..crate::message::Usage::new(400_000, 1_000_000)
        };
        let prices = Prices::new(2.0, 8.0).with_cache(0.5, 4.0).above(399_999, 2.0, 1.5);
        let cost = prices.cost(&long);
        assert_eq!((cost.input, cost.cache_read, cost.cache_write, cost.output), (0.8, 0.1, 0.8, 12.0));
        let cost = prices.cost(&crate::message::Usage { input: 399_999, ..long });
        assert_eq!((cost.cache_read, cost.cache_write, cost.output), (0.05, 0.4, 8.0));
    }

    /// Finds rows that an earlier row hides, and numbers that cannot be right.
    #[test]
    fn every_row_is_found_and_says_what_can_be() {
        for (provider, family, window, longest, prices) in ROWS {
            let found = row(provider, family).map(|row| row.1);
            assert_eq!(found, Some(*family), "{provider}");
            assert!(*longest <= *window && *window >= 8_000, "{family}");
            assert!(0.0 < prices.input && prices.input < prices.output && prices.output <= 200.0, "{family}");
            assert!(
                prices.cache_read <= prices.input && prices.cache_write <= prices.input * 1.25,
                "{family}"
            );
        }
    }
}
