//! Deferred tools: a model is shown their definitions only after it has found them with a search tool.

use crate::message::Message;
use crate::tool::builder::ToolBuilder;
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;
use crate::tool::definition_error::DefinitionError;
use crate::tool::output::ToolOutput;
use crate::tool::registry::Registry;
use crate::tool::set::ToolSet;
use crate::tool::value::Tool;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The metadata key of a search result under which the names of the found tools are stored. Models do not see metadata.
const FOUND: &str = "found_tools";

const SEARCH_TOOLS: &str = "search_tools";
/// Default for the maximum number of tools that one search finds.
const USUAL: usize = 5;
const MOST: usize = 20;
/// Maximum number of names that are listed when a search finds nothing.
const LISTED: usize = 50;

impl ToolSet {
    /// Adds a tool `search_tools`, with which models find the [deferred](ToolDefinition::is_deferred) tools of the registry that runs the
    /// search. Adds nothing if no tool of this set is deferred, or if a name in the set already ends with `search_tools`.
    ///
    /// The result of a search contains the names of the tools that were found. [`Registry::shown`] reads the names from the results in the
    /// conversation, and shows these tools after all other tools.
    ///
    /// ```
    /// use agent::{Registry, ToolContext, message::{Conversation, Message, ToolCall}, tool, tools};
    ///
    /// /// Reads a file.
    /// #[tool]
    /// fn read_file(path: String) {}
    ///
    /// /// Converts an amount of money to another currency.
    /// #[tool(defer)]
    /// fn convert_currency(amount: f64, to: String) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::new(tools![read_file, convert_currency].with_tool_search())?;
    /// let shown = |messages: &[Message]| registry.shown(messages).iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>();
    /// assert_eq!(shown(&[]), ["read_file", "search_tools"]);
    ///
    /// let call = ToolCall::new("1", "search_tools", r#"{"query": "currencies"}"#);
    /// let result = registry.call(&call, &ToolContext::new()).await;
    /// let message = Message::from(result.to_message().expect("it is there"));
    /// assert_eq!(shown(&[message]), ["read_file", "search_tools", "convert_currency"]);
    /// # Ok(()) }
    /// ```
    ///
    /// An assistant adds the search automatically to a set that has none.
    pub fn with_tool_search(mut self) -> Self {
        // A prefix may have been added to the name of an earlier search tool, so only the end of each name is compared.
        if self.names().any(|name| name.ends_with(SEARCH_TOOLS)) {
            return self;
        }
        let tools = self.entries().iter().filter_map(|entry| entry.as_ref().ok());
        let deferred = tools.map(|tool| tool.definition().clone()).filter(ToolDefinition::is_deferred);
        let deferred: Vec<ToolDefinition> = deferred.collect();
        if !deferred.is_empty() {
            match search_tool(deferred) {
                Ok(tool) => self.add(tool),
                Err(error) => self.push(Err((SEARCH_TOOLS.to_owned(), error))),
            }
        }
        self
    }
}

impl Registry {
    /// Returns at most `limit` tools that match these words in their names, titles, descriptions or parameters, best first.
    ///
    /// ```
    /// # use agent::{Registry, tool, tools};
    /// # /// Reads a file.
    /// # #[tool] fn read_file(path: String) {}
    /// # /// Sends a message.
    /// # #[tool] fn send_mail(to: String) {}
    /// let registry = Registry::new(tools![read_file, send_mail])?;
    /// let found = registry.search("send messages to people", 5);
    /// assert_eq!(found[0].name(), "send_mail");
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn search(&self, words: &str, limit: usize) -> Vec<ToolDefinition> {
        let definitions = self.definitions();
        ranked(&definitions, words, limit).into_iter().cloned().collect()
    }

    /// Returns the tools that a model sees after these messages. The tools that are not [deferred](ToolDefinition::is_deferred) come
    /// first, then the tools that the model has [found](ToolSet::with_tool_search). A newly found tool is added at the end, so that a list
    /// that a provider has cached stays valid.
    ///
    /// ```
    /// # /// Reads a file.
    /// # #[agent::tool] fn read_file(path: String) {}
    /// # /// Converts an amount of money to another currency.
    /// # #[agent::tool(defer)] fn convert_currency(amount: f64, to: String) {}
    /// use agent::{Registry, tools};
    ///
    /// // `convert_currency` is deferred, and no search has found it.
    /// let registry = Registry::new(tools![read_file, convert_currency].with_tool_search())?;
    /// assert_eq!(registry.shown(&[]).iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["read_file", "search_tools"]);
    /// assert_eq!(registry.definitions().len(), 3);
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn shown<'m>(&self, messages: impl IntoIterator<Item = &'m Message>) -> Arc<[ToolDefinition]> {
        shown_after(&self.definitions(), messages)
    }
}

/// Returns the tools that a model sees after these messages: those that are not deferred, and those that a search in the messages found.
pub(crate) fn shown_after<'m>(
    all: &Arc<[ToolDefinition]>,
    messages: impl IntoIterator<Item = &'m Message>,
) -> Arc<[ToolDefinition]> {
    if !all.iter().any(ToolDefinition::is_deferred) {
        return all.clone();
    }
    let mut told: HashSet<&str> = HashSet::new();
    let mut shown: Vec<ToolDefinition> = all.iter().filter(|tool| !tool.is_deferred()).cloned().collect();
    for message in messages {
        let Message::ToolResult(result) = message else { continue };
        let names = result.metadata.get(FOUND).and_then(Value::as_array).into_iter().flatten();
        for name in names.filter_map(Value::as_str) {
            let found = all.iter().find(|tool| tool.name() == name && tool.is_deferred());
            if let Some(tool) = found.filter(|_| told.insert(name)) {
                shown.push(tool.clone());
            }
        }
    }
    shown.into()
}

fn search_tool(deferred: Vec<ToolDefinition>) -> Result<Tool, DefinitionError> {
    ToolBuilder::new(SEARCH_TOOLS)
        .description(format!(
            "Finds tools that are not in your list: there are {} more. Those that it finds can be called afterwards.",
            deferred.len()
        ))
        .required_string("query", "What the tool should do, in a few words.")
        .with_keyword("minLength", 1)
        .optional_integer("limit", "How many tools at most.")
        .with_keyword("minimum", 1)
        .with_keyword("maximum", MOST)
        .with_keyword("default", USUAL)
        .read_only(true)
        .cache(false)
        .build(move |arguments: Value, cx: ToolContext| {
            let limit = arguments["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(USUAL);
            // The registry may have fewer tools than the set for which the search was made.
            let deferred = match cx.registered() {
                [] => deferred.clone(),
                all => all.iter().filter(|tool| tool.is_deferred()).cloned().collect(),
            };
            let found = ranked(&deferred, arguments["query"].as_str().unwrap_or_default(), limit);
            std::future::ready(answer(&deferred, &found))
        })
}

fn answer(deferred: &[ToolDefinition], found: &[&ToolDefinition]) -> ToolOutput {
    if deferred.is_empty() {
        return ToolOutput::text("There are no more tools.");
    }
    if found.is_empty() {
        let names: Vec<&str> = deferred.iter().map(ToolDefinition::name).take(LISTED).collect();
        let more = deferred.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return ToolOutput::text(format!("No tool was found. There are: {}{more}.", names.join(", ")));
    }
    let lines = found.iter().map(|tool| format!("{}: {}", tool.name(), tool.description()));
    let text = format!("These tools can be called now:\n{}", lines.collect::<Vec<_>>().join("\n"));
    let names: Vec<&str> = found.iter().map(|tool| tool.name()).collect();
    ToolOutput::text(text).with_metadata(FOUND, json!(names))
}

/// Returns at most `limit` tools that share a word with the query, best first. A word counts more in a name than in a description, and more
/// if few tools have it.
fn ranked<'d>(tools: &'d [ToolDefinition], query: &str, limit: usize) -> Vec<&'d ToolDefinition> {
    // The words are sorted, because a sum of floats depends on the order.
    let wanted: BTreeSet<String> = words(query).collect();
    let known: Vec<Vec<(String, f64)>> = tools.iter().map(weighted).collect();
    let has = |tool: &[(String, f64)], word: &str| -> f64 {
        tool.iter().filter(|(own, _)| alike(own, word)).map(|(_, weight)| *weight).fold(0.0, f64::max)
    };
    let mut scores = vec![0.0; tools.len()];
    for word in &wanted {
        let found: Vec<f64> = known.iter().map(|tool| has(tool, word)).collect();
        let count = found.iter().filter(|weight| **weight > 0.0).count();
        let rarity = (1.0 + as_float(tools.len()) / as_float(count.max(1))).ln();
        for (score, weight) in scores.iter_mut().zip(found) {
            *score += weight * rarity;
        }
    }
    let mut order: Vec<(f64, &ToolDefinition)> =
        scores.into_iter().zip(tools).filter(|(score, _)| *score > 0.0).collect();
    // The sort is stable, so tools with equal scores stay in their listed order.
    order.sort_by(|one, other| other.0.total_cmp(&one.0));
    order.into_iter().take(limit).map(|(_, tool)| tool).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a number of tools")]
fn as_float(count: usize) -> f64 {
    count as f64
}

fn weighted(tool: &ToolDefinition) -> Vec<(String, f64)> {
    let named = words(tool.name()).chain(tool.title().into_iter().flat_map(words)).map(|word| (word, 3.0));
    let described = words(tool.description()).map(|word| (word, 1.0));
    let parameters = tool.plan().parameter_names().flat_map(words).map(|word| (word, 0.5));
    named.chain(described).chain(parameters).collect()
}

/// Returns the words of a text in lower case, without filler words.
fn words(text: &str) -> impl Iterator<Item = String> {
    const EMPTY: [&str; 18] = [
        "a", "an", "and", "the", "of", "to", "in", "for", "on", "with", "is", "it", "or", "by", "from",
        "that", "i", "me",
    ];
    let mut separated = String::new();
    let mut was_lower = false;
    for char in text.chars() {
        // A capital letter after a small one begins a word: `readFile` is two words.
        if was_lower && char.is_uppercase() {
            separated.push(' ');
        }
        was_lower = char.is_lowercase();
        separated.extend(char.to_lowercase());
    }
    let words = separated.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.filter(|word| !EMPTY.contains(word)).map(str::to_owned).collect();
    words.into_iter()
}

/// Returns whether two words are equal, or probably forms of one word, such as `currency` and `currencies`.
fn alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let (short, long) = {
        let (a, b) = (one.chars().count(), other.chars().count());
        (a.min(b), a.max(b))
    };
    same >= 4 && short - same <= 1 && long - same <= 4
}
