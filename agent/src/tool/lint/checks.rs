//! The lint rules for one tool.

use super::groups::{listed, same_parameters};
use super::hints::Hints;
use super::parameters::{Parameter, parameters};
use super::words::{quoted, stems, telling};
use super::{Lint, LintFinding};
use crate::args::did_you_mean;
use crate::schema::is_accepted_everywhere;
#[cfg(feature = "macros")]
use crate::tool::debug_secrets::{EXTENSION, is_shown_by};
use crate::tool::definition::ToolDefinition;
use crate::tool::examples::refused_examples;
use crate::tool::problem::RegistryProblem;
use crate::tool::value::Tool;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum length of a tool's description that every provider accepts (OpenAI's limit), in characters.
const LONGEST_OF_TOOL: usize = 1_024;
/// Maximum length of a parameter's description, in characters. No provider limits it, but longer text belongs in the tool's description.
const LONGEST_OF_PARAMETER: usize = 600;

/// Maximum size of a definition, in estimated tokens. Each request contains the definition.
const MOST_TOKENS: u64 = 1_000;

struct ParameterFindings {
    lint: Lint,
    /// The middle of a finding about several parameters: `3 parameters SUMMARY (PATHS): HINT`.
    summary: &'static str,
    hint: &'static str,
    /// The path and the fault of each parameter.
    found: Vec<(String, String)>,
}

impl ParameterFindings {
    fn new(lint: Lint, summary: &'static str, hint: &'static str) -> Self {
        Self { lint, summary, hint, found: Vec::new() }
    }

    fn add(&mut self, parameter: &Parameter<'_>, fault: impl Into<String>) {
        self.found.push((parameter.path.clone(), fault.into()));
    }

    /// Reports each fault as a finding. For a tool without `#[tool]`, whose schema the reader cannot edit, reports all parameters with a
    /// fault in one finding.
    fn report(self, hints: &Hints, find: &mut impl FnMut(Lint, &str, String)) {
        let Self { lint, summary, hint, mut found } = self;
        if hints.is_foreign {
            found.dedup_by(|(path, _), (before, _)| path == before);
        }
        if !hints.is_foreign || found.len() < 2 {
            for (path, fault) in found {
                find(lint, &path, format!("{fault}: {hint}"));
            }
            return;
        }
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        find(lint, "", format!("{} parameters {summary} ({}): {hint}", paths.len(), listed(&paths)));
    }
}

pub(super) fn check(tool: &Tool, findings: &mut Vec<LintFinding>) {
    let definition = tool.definition();
    let hints = Hints::of(definition);
    let mut find = |lint: Lint, path: &str, message: String| {
        let (tool, path) = (definition.name().to_owned(), path.to_owned());
        findings.push(LintFinding { lint, tool, path, message });
    };
    let parameters = parameters(definition.parameters());
    check_parameters(definition, &parameters, hints, &mut find);
    same_parameters(&parameters, hints, &mut find);

    let said = definition.description().trim();
    if said.is_empty() {
        let message = format!("has no description: {}", hints.undocumented_tool);
        find(Lint::UndocumentedTool, "", message);
    } else if says_only(said, &[definition.name()]) {
        let message = format!("{said:?} says no more than the name: {}", hints.empty_tool);
        find(Lint::EmptyWords, "", message);
    }
    if let Some(fault) = too_long(said, LONGEST_OF_TOOL) {
        find(Lint::LongDescription, "", format!("{fault}: {}", hints.long_tool));
    }
    let tokens = definition.estimated_tokens();
    if tokens > MOST_TOKENS {
        find(
            Lint::CostlyDefinition,
            "",
            format!("costs about {tokens} tokens in each request: {}", hints.costly_tool),
        );
    }
    other_names(definition, &parameters, hints, &mut find);
    examples(tool, hints, &mut find);
    #[cfg(feature = "macros")]
    secrets_in_debug(definition, &mut find);
}

fn check_parameters(
    definition: &ToolDefinition,
    parameters: &[Parameter<'_>],
    hints: &Hints,
    find: &mut impl FnMut(Lint, &str, String),
) {
    // The parameters of a foreign tool are checked together, so that one finding lists all parameters with the same fault.
    let together = if hints.is_foreign { parameters.len().max(1) } else { 1 };
    for parameters in parameters.chunks(together) {
        for findings in parameter_findings(definition, parameters, hints) {
            findings.report(hints, find);
        }
    }
}

fn parameter_findings(
    definition: &ToolDefinition,
    parameters: &[Parameter<'_>],
    hints: &Hints,
) -> [ParameterFindings; 6] {
    use ParameterFindings as Of;
    let (document, explain) = (hints.undocumented_parameter, hints.empty_parameter);
    let mut undocumented = Of::new(Lint::UndocumentedParameter, "have no description", document);
    let mut empty = Of::new(Lint::EmptyWords, "have descriptions that say no more than their names", explain);
    let mut long =
        Of::new(Lint::LongDescription, "have descriptions that are too long", hints.long_parameter);
    let mut refused = Of::new(
        Lint::RefusedName,
        "have names that Anthropic refuses, with the whole request",
        hints.refused_name,
    );
    let mut similar =
        Of::new(Lint::AmbiguousWords, "have values that are nearly the same word", hints.similar_values);
    let mut codes = Of::new(Lint::AmbiguousWords, "have values that say nothing by themselves", hints.codes);
    for parameter in parameters {
        let said = parameter.description();
        if let Some(fault) = too_long(said, LONGEST_OF_PARAMETER) {
            long.add(parameter, fault);
        }
        if !is_accepted_everywhere(parameter.name) {
            refused.add(parameter, "has a name that Anthropic refuses, with the whole request");
        }
        // The schema of a foreign tool cannot be changed, so a parameter counts as explained if the description of the tool names it in
        // backticks.
        if hints.is_foreign && definition.description().contains(&format!("`{}`", parameter.name)) {
            continue;
        }
        if said.is_empty() {
            if !is_constant(parameter.schema) {
                undocumented.add(parameter, "has no description");
            }
        } else if says_only(said, &[parameter.name, definition.name()]) {
            empty.add(parameter, format!("{said:?} says no more than the name"));
        }
        for fault in similar_values(parameter.schema) {
            similar.add(parameter, fault);
        }
        if let Some(fault) = meaningless_values(parameter.schema) {
            codes.add(parameter, fault);
        }
    }
    [undocumented, empty, long, refused, similar, codes]
}

fn examples(tool: &Tool, hints: &Hints, find: &mut impl FnMut(Lint, &str, String)) {
    for problem in refused_examples(tool) {
        let (path, number, issues, effect) = match &problem {
            RegistryProblem::Example { number, report, .. } => {
                ("", number, report.issues(), ", so it is not sent")
            }
            RegistryProblem::ParameterExample { parameter, number, issues, .. } => {
                (&**parameter, number, &**issues, "")
            }
            _ => continue,
        };
        let Some(issue) = issues.first() else { continue };
        let message = format!("example {number} is refused{effect} ({issue}): {}", hints.refused_example);
        find(Lint::RefusedExample, path, message);
    }
}

#[cfg(feature = "macros")]
fn secrets_in_debug(definition: &ToolDefinition, find: &mut impl FnMut(Lint, &str, String)) {
    let mut types = BTreeSet::new();
    definition.plan().source().into_iter().for_each(|schema| debug_types(schema, &mut types));
    for name in types.into_iter().filter(|name| is_shown_by(name)) {
        let short = name.rsplit("::").next().unwrap_or(name);
        let message = format!(
            "`Debug` of `{short}` shows its secret arguments: write it by hand without them, or do without it"
        );
        find(Lint::SecretInDebug, "", message);
    }
}

/// Collects the values of [`EXTENSION`]: the names of types whose `Debug` can be tested.
#[cfg(feature = "macros")]
fn debug_types<'s>(schema: &'s Value, types: &mut BTreeSet<&'s str>) {
    match schema {
        Value::Object(map) => {
            types.extend(map.get(EXTENSION).and_then(Value::as_str));
            map.values().for_each(|value| debug_types(value, types));
        }
        Value::Array(items) => items.iter().for_each(|item| debug_types(item, types)),
        _ => {}
    }
}

/// Returns whether the schema allows only one value. A constant, such as the tag of a variant, needs no description.
fn is_constant(schema: &Value) -> bool {
    schema.get("const").is_some()
        || schema.get("enum").and_then(Value::as_array).is_some_and(|words| words.len() == 1)
        || schema.get("type").and_then(Value::as_str) == Some("null")
}

/// Returns whether a description only repeats the words of names.
fn says_only(said: &str, names: &[&str]) -> bool {
    let known: BTreeSet<String> = names.iter().flat_map(|name| stems(name)).collect();
    telling(said).is_subset(&known)
}

fn too_long(said: &str, longest: usize) -> Option<String> {
    let length = said.chars().count();
    (length > longest).then(|| format!("the description has {length} characters, {longest} are enough"))
}

/// Returns the texts that a schema allows for a parameter or for the items of a list. The flag of a text is `true` if a description
/// explains the text.
fn values(schema: &Value) -> Vec<(&str, bool)> {
    let said = raw_description(schema);
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<(&str, bool)> =
        list("enum").filter_map(Value::as_str).map(|word| (word, mentions(said, word))).collect();
    found.extend(schema.get("const").and_then(Value::as_str).map(|word| (word, !said.is_empty())));
    for inner in list("anyOf").chain(list("oneOf")).chain(schema.get("items")) {
        found.extend(values(inner).into_iter().map(|(word, told)| (word, told || mentions(said, word))));
    }
    let mut seen = BTreeSet::new();
    found.retain(|(word, _)| seen.insert(*word));
    found
}

fn raw_description(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or_default()
}

/// Returns a fault for each pair of values with the same word stems, such as `file` and `files`, unless both are explained.
fn similar_values(schema: &Value) -> Vec<String> {
    let (words, mut found) = (values(schema), Vec::new());
    for (n, (other, other_is_told)) in words.iter().enumerate() {
        for (one, is_told) in &words[..n] {
            if stems(one) == stems(other) && !(*is_told && *other_is_told) {
                found.push(format!("`{one}` and `{other}` are nearly the same word"));
            }
        }
    }
    found
}

fn meaningless_values(schema: &Value) -> Option<String> {
    let words = values(schema);
    let codes = words.iter().filter(|(word, is_told)| is_code(word) && !is_told);
    let codes: Vec<String> = codes.take(5).map(|(word, _)| format!("`{word}`")).collect();
    (words.len() > 1 && !codes.is_empty()).then(|| format!("{} says nothing by itself", codes.join(", ")))
}

/// Returns whether the value is a code: it has at most one letter.
fn is_code(word: &str) -> bool {
    word.chars().filter(|char| char.is_alphabetic()).count() <= 1
}

fn mentions(text: &str, word: &str) -> bool {
    text.split(|char: char| !char.is_alphanumeric() && char != '_' && char != '-').any(|part| part == word)
}

/// Finds names in backticks that are similar to the name of a parameter, but are neither a parameter nor one of the allowed values.
fn other_names(
    definition: &ToolDefinition,
    parameters: &[Parameter<'_>],
    hints: &Hints,
    find: &mut impl FnMut(Lint, &str, String),
) {
    let known: BTreeSet<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    let words: BTreeSet<&str> =
        parameters.iter().flat_map(|parameter| values(parameter.schema)).map(|(word, _)| word).collect();
    let mut look = |path: &str, said: &str, hint: &str| {
        let mut told = BTreeSet::new();
        for name in quoted(said).filter(|name| !known.contains(name) && !words.contains(name)) {
            if let (Some(meant), true) =
                (did_you_mean(name, known.iter().copied()).first(), told.insert(name))
            {
                find(
                    Lint::OtherName,
                    path,
                    format!("the description speaks of `{name}`, and there is `{meant}`{hint}"),
                );
            }
        }
    };
    look("", definition.description(), hints.other_name_of_tool);
    for parameter in parameters {
        look(&parameter.path, parameter.description(), hints.other_name_of_parameter);
    }
}
