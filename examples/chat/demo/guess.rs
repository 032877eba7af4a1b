//! Guesses a tool and its arguments from keywords.

use agent::{ToolDefinition, Value, json};
use std::collections::BTreeSet;

/// Words that say nothing about the tool that is meant.
const COMMON: [&str; 28] = [
    "a", "an", "and", "are", "be", "do", "for", "give", "have", "how", "i", "in", "is", "it", "me", "much",
    "of", "on", "please", "some", "the", "then", "to", "what", "will", "with", "you", "your",
];

fn words(text: &str) -> impl Iterator<Item = String> {
    let words =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    words.filter(|word| !COMMON.contains(&word.as_str()))
}

/// Returns the tool that shares the most words with the sentence. Words of its name count more than words of its description.
pub(crate) fn tool<'a>(said: &str, tools: &'a [ToolDefinition]) -> Option<&'a ToolDefinition> {
    let said: BTreeSet<String> = words(said).collect();
    let score = |tool: &&ToolDefinition| {
        let named: BTreeSet<String> = words(&tool.name().replace('_', " ")).collect();
        let described: BTreeSet<String> = words(tool.description()).collect();
        4 * named.intersection(&said).count() + described.intersection(&said).count()
    };
    // Of tools with equal scores, the first wins: `max_by_key` returns the last one, hence `rev`.
    let best = tools.iter().map(|tool| (score(&tool), tool)).rev().max_by_key(|(score, _)| *score);
    best.filter(|(score, _)| *score >= 2).map(|(_, tool)| tool)
}

/// Takes arguments from the sentence, in order: numbers, words of an enum, names and quoted text. Numbers become strings, which is a
/// typical mistake of models. An argument that is not found is left out.
pub(crate) fn arguments(said: &str, parameters: &Value) -> Value {
    let mut found = Found::new(said);
    let properties = parameters["properties"].as_object();
    let given = properties.into_iter().flatten().filter_map(|(name, schema)| {
        let schema = resolved(schema, parameters);
        Some((name.clone(), found.value(said, schema)?))
    });
    Value::Object(given.collect())
}

/// Returns the arguments with their mistakes corrected. A missing required argument gets an invented value. A number out of range becomes
/// the nearest bound.
pub(crate) fn mended(mut arguments: Value, parameters: &Value) -> Value {
    let required = parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if arguments[name].is_null() {
            arguments[name] = sample(resolved(&parameters["properties"][name], parameters));
        }
    }
    let properties = parameters["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten() {
        let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse::<f64>().ok());
        let schema = resolved(schema, parameters);
        let (Some(sent), least, most) = (number(&arguments[name]), &schema["minimum"], &schema["maximum"])
        else {
            continue;
        };
        if most.as_f64().is_some_and(|most| sent > most) {
            arguments[name] = most.clone();
        } else if least.as_f64().is_some_and(|least| sent < least) {
            arguments[name] = least.clone();
        }
    }
    arguments
}

/// Resolves a `$ref`. Of `anyOf`, `oneOf` or `allOf`, takes the first schema that is not null.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = |schema: &'a Value| {
        let path = schema["$ref"].as_str()?.strip_prefix('#')?;
        root.pointer(path)
    };
    let schema = reference(schema).unwrap_or(schema);
    let choices = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema[*key].as_array());
    let chosen = choices.and_then(|choices| choices.iter().find(|choice| choice["type"] != "null"));
    chosen.map_or(schema, |chosen| reference(chosen).unwrap_or(chosen))
}

fn kind(schema: &Value) -> &str {
    let first = schema["type"].as_array().into_iter().flatten().find(|word| *word != "null");
    schema["type"].as_str().or_else(|| first?.as_str()).unwrap_or_default()
}

/// The numbers and texts of a sentence that can become arguments. Both lists are reversed, so that `pop` takes the first one.
struct Found {
    numbers: Vec<String>,
    texts: Vec<String>,
}

impl Found {
    fn new(said: &str) -> Self {
        let numbers = said.split(|c: char| !(c.is_ascii_digit() || "-.".contains(c)));
        let numbers =
            numbers.map(|word| word.trim_end_matches(['.', '-'])).filter(|word| word.parse::<f64>().is_ok());
        let quoted: Vec<&str> = said.split('"').skip(1).step_by(2).filter(|text| !text.is_empty()).collect();
        // A name is a word with a capital that does not begin the sentence.
        let names = said
            .split_whitespace()
            .skip(1)
            .filter(|word| word.chars().next().is_some_and(char::is_uppercase));
        let names =
            names.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).filter(|word| *word != "I");
        let texts = quoted.into_iter().chain(names).map(str::to_owned).collect();
        let mut found = Self { numbers: numbers.map(str::to_owned).collect(), texts };
        found.numbers.reverse();
        found.texts.reverse();
        found
    }

    fn value(&mut self, said: &str, schema: &Value) -> Option<Value> {
        if let Some(words) = schema["enum"].as_array() {
            let said = said.to_lowercase();
            let meant = |word: &&Value| word.as_str().is_some_and(|word| said.contains(&word.to_lowercase()));
            return words.iter().find(meant).cloned();
        }
        match kind(schema) {
            "integer" | "number" => self.numbers.pop().map(Value::from),
            "string" => self.texts.pop().map(Value::from),
            "array" if kind(&schema["items"]) == "string" && !self.texts.is_empty() => {
                Some(self.texts.drain(..).rev().collect())
            }
            _ => None,
        }
    }
}

fn sample(schema: &Value) -> Value {
    if let Some(word) = schema["enum"].get(0) {
        return word.clone();
    }
    match kind(schema) {
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("example"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::Registry;

    fn guess(said: &str) -> Option<(String, Value)> {
        let registry = Registry::new(super::super::tools::tools()).unwrap();
        let definitions = registry.definitions();
        let tool = tool(said, &definitions)?;
        Some((tool.name().to_owned(), arguments(said, tool.parameters())))
    }

    #[test]
    fn a_tool_is_guessed_with_arguments() {
        for (said, tool, arguments) in [
            ("What is the weather in Rome for 3 days?", "weather", json!({"city": "Rome", "days": "3"})),
            (
                "weather in \"New York\" in FAHRENHEIT",
                "weather",
                json!({"city": "New York", "unit": "fahrenheit"}),
            ),
            ("Please pay Ann 500.", "pay", json!({"to": "Ann", "amount": "500"})),
            ("do slow work", "slow_work", json!({})),
            ("count up", "count_up", json!({})),
        ] {
            assert_eq!(guess(said), Some((tool.to_owned(), arguments)), "{said}");
        }
        for said in ["Hello!", "What can you do for me?", ""] {
            assert_eq!(guess(said), None, "{said}");
        }
    }

    #[test]
    fn what_is_missing_or_out_of_bounds_is_mended() {
        let registry = Registry::new(super::super::tools::tools()).unwrap();
        let mended =
            |name: &str, sent: Value| mended(sent, registry.fetch(name).unwrap().definition().parameters());
        assert_eq!(mended("pay", json!({"amount": "50000"})), json!({"amount": 10_000, "to": "example"}));
        assert_eq!(mended("weather", json!({"city": "Rome", "days": 0})), json!({"city": "Rome", "days": 1}));
        assert_eq!(mended("count_up", json!({"to": "7"})), json!({"to": "7"}));
    }
}
