//! Lists of prices: the built-in list, and lists of the application, read from a text or a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::facts::Prices;
use crate::parse_error::ParseError;

/// The models of a provider, in the JSON format of models.dev.
#[derive(Deserialize)]
struct ProviderPrices {
    #[serde(default)]
    models: BTreeMap<String, ModelPrices>,
}

#[derive(Deserialize)]
struct ModelPrices {
    cost: Option<BTreeMap<String, Value>>,
}

impl Prices {
    /// Reads the prices of models from a text in the form of [models.dev](https://models.dev/api.json).
    ///
    /// The keys of the text's object are the ids of providers. Each provider has an object `models`, whose keys are the ids of models. Each
    /// model has a `cost` with `input`, `output`, `cache_read` and `cache_write`, in dollars for a million tokens. A missing price of the
    /// cache is the price of `input`. Other fields and models without a cost are ignored. The keys of the result are `provider/model`, for
    /// [`AssistantBuilder::prices`](crate::AssistantBuilder::prices).
    ///
    /// ```
    /// use agent::provider::Prices;
    ///
    /// let list = Prices::from_json(r#"{
    ///     "acme": {"models": {"large-1": {"cost": {"input": 3, "output": 15, "cache_read": 0.3}, "limit": {"context": 200000}}}}
    /// }"#)?;
    /// assert_eq!(list["acme/large-1"], Prices::new(3.0, 15.0).with_cache(0.3, 3.0));
    ///
    /// let error = Prices::from_json(r#"{"acme": {"models": {"large-1": {"cost": {"input": -3, "output": 15}}}}}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "`input` of `acme/large-1` is not a price: -3 is not a number from zero on");
    /// # Ok::<(), agent::args::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// Fails when the text has another form, when a price is negative or not a number, or when a `cost` has no `input` or `output`. An
    /// error about a price names its model.
    pub fn from_json(text: &str) -> Result<BTreeMap<String, Self>, ParseError> {
        let providers: BTreeMap<String, ProviderPrices> = serde_json::from_str(text)
            .map_err(|error| ParseError::new(format!("the text is not a list of prices: {error}")))?;
        let mut list = BTreeMap::new();
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
                    Self::new(input, output).with_cache(read.unwrap_or(input), write.unwrap_or(input));
                list.insert(name, prices);
            }
        }
        Ok(list)
    }

    /// Reads the prices of models from a file. For the form of the file, see [`from_json`](Self::from_json).
    ///
    /// ```
    /// use agent::provider::Prices;
    ///
    /// let error = Prices::from_file("no-such-file.json").unwrap_err();
    /// assert!(error.to_string().starts_with("`no-such-file.json` cannot be read: "));
    /// ```
    ///
    /// # Errors
    /// Fails when the file cannot be read, or is not a list of prices.
    pub fn from_file(path: impl AsRef<Path>) -> Result<BTreeMap<String, Self>, ParseError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ParseError::new(format!("`{}` cannot be read: {error}", path.display())))?;
        Self::from_json(&text).map_err(|error| ParseError::new(format!("`{}`: {error}", path.display())))
    }
}

/// Known prices of models. The application's prices take precedence over the built-in ones.
#[cfg(feature = "runtime")]
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownPrices {
    pub(crate) own: BTreeMap<String, Prices>,
}

#[cfg(feature = "runtime")]
impl KnownPrices {
    pub(crate) fn of(&self, model: &str) -> Option<Prices> {
        self.given(model).or_else(|| super::facts::known_prices(model))
    }

    /// Returns the prices in the application's list. `openai-responses/…` falls back to `openai/…`, because the suffix `-responses` of a
    /// provider only names a protocol.
    pub(crate) fn given(&self, model: &str) -> Option<Prices> {
        let base = || {
            let (provider, model) = model.split_once('/')?;
            self.own.get(&format!("{}/{model}", provider.strip_suffix("-responses")?))
        };
        self.own.get(model).or_else(base).copied()
    }
}

#[cfg(all(test, feature = "runtime"))]
mod tests {
    use super::*;

    #[test]
    fn a_list_replaces_what_is_built_in_and_bad_ones_say_where() {
        let text = r#"{"openai": {"name": "OpenAI", "models": {"gpt-5": {"cost": {"input": 1, "output": 2}}, "free": {}}}, "x": {}}"#;
        let list = KnownPrices { own: Prices::from_json(text).unwrap() };
        assert_eq!(list.of("openai-responses/gpt-5"), Some(Prices::new(1.0, 2.0)));
        assert!(list.of("openai/gpt-5-mini").is_some() && list.of("acme/small-1").is_none());
        assert_eq!((list.of("openai/free"), list.given("openai/gpt-5-mini")), (None, None));
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
            let found = Prices::from_json(bad).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
