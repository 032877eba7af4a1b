//! Tokens and cost.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json;

/// The tokens of a reply, or the sum of several replies. Counts that a provider does not report are zero.
///
/// The counts nest: `input` includes the tokens read from and written to the provider's cache, and `output` includes reasoning. Adapters
/// of providers that count in another way convert their counts.
///
/// ```
/// use agent::message::Usage;
///
/// let usage = Usage::new(120, 30) + Usage::new(200, 5);
/// assert_eq!((usage.input, usage.output, usage.total), (320, 35, 355));
///
/// let turns = [usage, Usage::new(10, 1), Usage::default()];
/// assert_eq!(turns.iter().sum::<Usage>().total, 366);
/// assert!(turns[2].is_empty());                               // the provider reported nothing
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// The tokens of the request, including cached tokens.
    pub input: u64,
    /// The tokens of the reply, including reasoning.
    pub output: u64,
    /// The part of `input` that was read from the provider's cache.
    pub cache_read: u64,
    /// The part of `input` that was written to the provider's cache.
    pub cache_write: u64,
    /// The part of `output` that was spent on reasoning.
    pub reasoning: u64,
    /// The total that the provider reported, or `input + output`.
    pub total: u64,
    /// The cost, if the provider reports it or prices are known. A sum includes only the replies whose cost is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The input and output tokens of the provider's last model call for the reply, if the provider called the model several times. For
    /// example, the first call may write a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_request: Option<Box<(u64, u64)>>,
    /// The provider's original report. A sum has none.
    #[serde(with = "json::option", skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<Value>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Usage {
    /// Creates a usage with these counts. The total is the sum of both.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output), ..Self::default() }
    }

    /// Returns the input and output tokens of the provider's last model call for the reply. They are the basis to estimate the next
    /// request.
    pub(crate) fn last_request(&self) -> (u64, u64) {
        self.last_request.as_deref().copied().unwrap_or((self.input, self.output))
    }

    #[cfg(feature = "anthropic")]
    pub(crate) fn set_last_request(&mut self, last: &Self) {
        self.last_request = Some(Box::new((last.input, last.output)));
    }

    /// Returns whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign<&Usage> for Usage {
    /// Adds counts and cost. The data of single replies (`raw` and `extra`) cannot be added and is dropped, unless one side is empty.
    fn add_assign(&mut self, other: &Usage) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        for (sum, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.reasoning, other.reasoning),
            (&mut self.total, other.total),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.cost = match (self.cost, other.cost) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        (self.raw, self.last_request) = (None, None);
        self.extra.clear();
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += &other;
        self
    }
}

impl<'a> Sum<&'a Usage> for Usage {
    fn sum<I: Iterator<Item = &'a Usage>>(iter: I) -> Self {
        iter.fold(Self::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}

/// The cost of a [`Usage`], in the currency of the price list. A cost that the provider reported has only a `total`, in US dollars.
///
/// ```
/// use agent::message::Cost;
///
/// let mut first = Cost::default();
/// (first.input, first.total) = (0.25, 0.25);
/// assert_eq!((first + first).total, 0.5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Cost {
    /// The cost of input tokens, except tokens read from or written to the cache.
    pub input: f64,
    /// The cost of output tokens.
    pub output: f64,
    /// The cost of tokens read from the cache.
    pub cache_read: f64,
    /// The cost of tokens written to the cache.
    pub cache_write: f64,
    /// The cost of reasoning tokens, if they have a price of their own.
    pub reasoning: f64,
    /// The total cost.
    pub total: f64,
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            reasoning: self.reasoning + other.reasoning,
            total: self.total + other.total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_adds_counts_and_known_costs() {
        let priced = Usage {
            cost: Some(Cost { total: 0.5, ..Cost::default() }),
            raw: Some(Box::new(Value::from(1))),
            reasoning: 3,
            ..Usage::new(10, 5)
        };
        let unpriced = Usage::new(1, u64::MAX);
        let sum: Usage = [&Usage::default(), &priced, &unpriced, &priced].into_iter().sum();
        assert_eq!((sum.input, sum.output, sum.reasoning), (21, u64::MAX, 6));
        assert_eq!(sum.cost, Some(Cost { total: 1.0, ..Cost::default() }));
        assert_eq!(sum.raw, None);
        let same: Usage = [&Usage::default(), &priced].into_iter().sum();
        assert_eq!(same, priced, "one reply's report is not lost by adding nothing");
    }

    #[test]
    fn absent_fields_are_zero_and_unknown_ones_kept() {
        let json = serde_json::json!({"input": 4, "searches": {"web": 2}});
        let usage: Usage = serde_json::from_value(json).unwrap();
        assert_eq!((usage.input, usage.output), (4, 0));
        let again = serde_json::to_value(&usage).unwrap();
        assert_eq!(again["searches"]["web"], 2);
    }
}
