//! Prices of models: those that are built in, and those of an application.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::facts::{self, Prices};
use crate::parse_error::ParseError;

/// Prices of models, for budgets of [money](crate::run::Budget::dollars). Those that are not in the list are the built-in ones.
///
/// ```
/// use agent::provider::{PriceList, Prices};
///
/// let list = PriceList::from_json(r#"{
///     "acme": {"models": {"large-1": {"cost": {"input": 3, "output": 15, "cache_read": 0.3}, "limit": {"context": 200000}}}}
/// }"#)?;
/// assert_eq!(list.prices("acme/large-1"), Some(Prices::new(3.0, 15.0).with_cache(0.3, 3.0)));
/// assert_eq!(list.prices("openai/gpt-5").unwrap().output, 10.0);                     // built in
/// assert_eq!(list.prices("acme/small-1"), None);
/// assert!(list.with_prices("acme/small-1", Prices::new(0.1, 0.4)).prices("acme/small-1").is_some());
///
/// let error = PriceList::from_json(r#"{"acme": {"models": {"large-1": {"cost": {"input": -3, "output": 15}}}}}"#).unwrap_err();
/// assert_eq!(error.to_string(), "`input` of `acme/large-1` is not a price: -3 is not a number from zero on");
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceList {
    own: BTreeMap<String, Prices>,
}

/// The form of models.dev: providers by their ids.
#[derive(Deserialize)]
struct ProviderPrices {
    #[serde(default)]
    models: BTreeMap<String, ModelPrices>,
}

#[derive(Deserialize)]
struct ModelPrices {
    cost: Option<BTreeMap<String, Value>>,
}

impl PriceList {
    /// Creates a list with the built-in prices alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads prices in the form of [models.dev](https://models.dev/api.json): providers by their ids, each with `models` by theirs, each with a
    /// `cost` of `input`, `output`, `cache_read` and `cache_write`, in dollars for a million tokens. Other fields are ignored, and so are models
    /// without a cost.
    ///
    /// # Errors
    /// The text has another form, or a price is not a number from zero on. The error names its entry.
    pub fn from_json(text: &str) -> Result<Self, ParseError> {
        let providers: BTreeMap<String, ProviderPrices> = serde_json::from_str(text)
            .map_err(|error| ParseError::new(format!("the text is not a list of prices: {error}")))?;
        let mut list = Self::new();
        for (provider, ProviderPrices { models }) in providers {
            for (model, ModelPrices { cost }) in models {
                let Some(cost) = cost else { continue };
                let name = format!("{provider}/{model}");
                let price = |key: &str| match cost.get(key) {
                    None | Some(Value::Null) => Ok(None),
                    Some(value) => match value.as_f64().filter(|price| price.is_finite() && *price >= 0.0) {
                        Some(price) => Ok(Some(price)),
                        None => Err(ParseError::new(format!(
                            "`{key}` of `{name}` is not a price: {value} is not a number from zero on"
                        ))),
                    },
                };
                let (Some(input), Some(output)) = (price("input")?, price("output")?) else {
                    return Err(ParseError::new(format!("`{name}` has no price of `input` and `output`")));
                };
                let (read, write) = (price("cache_read")?, price("cache_write")?);
                let prices =
                    Prices::new(input, output).with_cache(read.unwrap_or(input), write.unwrap_or(input));
                list.own.insert(name, prices);
            }
        }
        Ok(list)
    }

    /// Reads prices from a file, like [`from_json`](Self::from_json).
    ///
    /// ```
    /// use agent::provider::PriceList;
    ///
    /// let error = PriceList::from_file("no-such-file.json").unwrap_err();
    /// assert!(error.to_string().starts_with("`no-such-file.json` cannot be read: "));
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, or is not a list of prices.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ParseError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ParseError::new(format!("`{}` cannot be read: {error}", path.display())))?;
        Self::from_json(&text).map_err(|error| ParseError::new(format!("`{}`: {error}", path.display())))
    }

    /// Sets the prices of a model, `provider/model`.
    pub fn with_prices(mut self, model: impl Into<String>, prices: Prices) -> Self {
        self.own.insert(model.into(), prices);
        self
    }

    /// Returns the prices of a model, `provider/model`.
    pub fn prices(&self, model: &str) -> Option<Prices> {
        self.own(model).or_else(|| facts::known_prices(model))
    }

    /// Returns the prices that the list itself has. Two protocols of one provider have the same.
    pub(crate) fn own(&self, model: &str) -> Option<Prices> {
        let base = || {
            let (provider, model) = model.split_once('/')?;
            self.own.get(&format!("{}/{model}", provider.strip_suffix("-responses")?))
        };
        self.own.get(model).or_else(base).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_replaces_what_is_built_in_and_bad_ones_say_where() {
        let text = r#"{"openai": {"name": "OpenAI", "models": {"gpt-5": {"cost": {"input": 1, "output": 2}}, "free": {}}}, "x": {}}"#;
        let list = PriceList::from_json(text).unwrap();
        assert_eq!(list.prices("openai-responses/gpt-5"), Some(Prices::new(1.0, 2.0)));
        assert_eq!((list.prices("openai/free"), list.own("openai/gpt-5-mini")), (None, None));
        for (bad, error) in [
            ("[]", "the text is not a list of prices"),
            ("{", "the text is not a list of prices"),
            (
                r#"{"a": {"models": {"b": {"cost": {"input": 1}}}}}"#,
                "`a/b` has no price of `input` and `output`",
            ),
            (
                r#"{"a": {"models": {"b": {"cost": {"input": 1, "output": "2"}}}}}"#,
                "`output` of `a/b` is not a price: \"2\" is not a number from zero on",
            ),
        ] {
            let found = PriceList::from_json(bad).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
