//! The checks of one tool, and of all tools together.

use super::words::{likeness, quoted, split, stems, telling};
use super::{Lint, LintFinding};
use crate::args::did_you_mean;
use crate::schema::is_accepted_everywhere;
#[cfg(feature = "macros")]
use crate::tool::debug_secrets::{EXTENSION, is_shown_by};
use crate::tool::definition::ToolDefinition;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// Maximum length of a tool's description that every provider accepts (OpenAI's limit), in characters.
const LONGEST_OF_TOOL: usize = 1_024;
/// Maximum length of a parameter's description; no provider limits it, but longer text belongs to the tool.
const LONGEST_OF_PARAMETER: usize = 600;
/// Maximum number of parameters of one tool that are checked, and their maximum depth.
const MAX_PARAMETERS: usize = 500;
const MAX_DEPTH: usize = 12;
/// The share of common words from which two descriptions look alike.
const ALIKE: f64 = 0.8;
/// Maximum number of tools that are compared with each other.
const MAX_COMPARED: usize = 400;

/// A parameter at any depth.
struct Parameter<'d> {
    path: String,
    name: &'d str,
    schema: &'d Value,
}

impl Parameter<'_> {
    fn description(&self) -> &str {
        self.schema.get("description").and_then(Value::as_str).unwrap_or_default().trim()
    }
}

/// Checks one tool.
pub(super) fn tool(definition: &ToolDefinition, findings: &mut Vec<LintFinding>) {
    let mut find = |lint: Lint, path: &str, message: String| {
        let (tool, path) = (definition.name().to_owned(), path.to_owned());
        findings.push(LintFinding { lint, tool, path, message });
    };
    let parameters = parameters(definition.parameters());
    for parameter in &parameters {
        let said = parameter.description();
        if said.is_empty() {
            if !is_constant(parameter.schema) {
                find(
                    Lint::UndocumentedParameter,
                    &parameter.path,
                    "has no description: say what it is, `/// …` above it".into(),
                );
            }
        } else if says_only(said, &[parameter.name, definition.name()]) {
            let message = format!(
                "{said:?} says no more than the name: say what the value means, its unit or its form"
            );
            find(Lint::EmptyWords, &parameter.path, message);
        }
        too_long(said, LONGEST_OF_PARAMETER, |message| find(Lint::LongDescription, &parameter.path, message));
        if !is_accepted_everywhere(parameter.name) {
            let message = "has a name that Anthropic refuses, with the whole request: write 1 to 64 ASCII letters, digits, `_`, `.` or `-`, \
                           for example with `#[arg(rename = \"…\")]`";
            find(Lint::RefusedName, &parameter.path, message.into());
        }
        for message in ambiguous(parameter.schema) {
            find(Lint::AmbiguousWords, &parameter.path, message);
        }
    }
    same_parameters(&parameters, &mut find);

    let said = definition.description().trim();
    if said.is_empty() {
        find(Lint::UndocumentedTool, "", "has no description: models choose tools by it".into());
    } else if says_only(said, &[definition.name()]) {
        let message =
            format!("{said:?} says no more than the name: say when to use it, and what it gives back");
        find(Lint::EmptyWords, "", message);
    }
    too_long(said, LONGEST_OF_TOOL, |message| find(Lint::LongDescription, "", message));
    other_names(definition, &parameters, &mut find);
    #[cfg(feature = "macros")]
    secrets_in_debug(definition, &mut find);
}

/// Finds types of arguments whose `Debug` shows their secrets.
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

/// Collects the names of the types with secrets that implement `Debug`.
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

/// Checks tools against each other.
pub(super) fn together(definitions: &[ToolDefinition], findings: &mut Vec<LintFinding>) {
    let known: Vec<(BTreeSet<String>, BTreeSet<String>)> =
        definitions.iter().map(|tool| (stems(tool.name()), telling(tool.description()))).collect();
    same_descriptions(definitions, findings);
    for (n, other) in definitions.iter().enumerate().take(MAX_COMPARED) {
        for (m, one) in definitions.iter().enumerate().take(n) {
            let (words, said) = (&known[n], &known[m]);
            let same_text = !other.description().trim().is_empty()
                && one.description().trim() == other.description().trim();
            let mut find = |lint: Lint, message: String| {
                findings.push(LintFinding {
                    lint,
                    tool: other.name().to_owned(),
                    path: String::new(),
                    message,
                });
            };
            let are_long = words.1.len() >= 3 && said.1.len() >= 3;
            if !same_text && are_long && likeness(&words.1, &said.1) >= ALIKE {
                find(
                    Lint::LookAlike,
                    format!("is described nearly as `{}` is: say when to use which", one.name()),
                );
            }
            let is_near = !did_you_mean(other.name(), [one.name()]).is_empty()
                && differ_by_little(one.name(), other.name());
            if words.0 == said.0 || is_near {
                find(
                    Lint::LookAlike,
                    format!("is named nearly as `{}` is: models will mix them up", one.name()),
                );
            }
        }
    }
}

/// Whether two names have the same words except for one that is a misspelling, not another word: `read_file` and `read_files`,
/// but not `get_user` and `set_user`.
fn differ_by_little(one: &str, other: &str) -> bool {
    let (one, other) = (split(one), split(other));
    one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(a, b)| a == b || (a.len() >= 4 && !did_you_mean(a, [b.as_str()]).is_empty()))
}

/// Returns every parameter, outer ones first.
fn parameters(root: &Value) -> Vec<Parameter<'_>> {
    let mut found = Vec::new();
    collect(root, root, "", 0, &mut found);
    found
}

fn collect<'d>(root: &'d Value, schema: &'d Value, path: &str, depth: usize, found: &mut Vec<Parameter<'d>>) {
    if depth > MAX_DEPTH || found.len() >= MAX_PARAMETERS {
        return;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            // Each alternative of an enum has its own; one is enough to speak of.
            if found.iter().all(|known| known.path != path) {
                found.push(Parameter { path: path.clone(), name, schema: property });
            }
            collect(root, property, &path, depth + 1, found);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(keyword).filter(|inner| inner.is_object()) {
            collect(root, inner, &format!("{path}/*"), depth + 1, found);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            collect(root, branch, path, depth + 1, found);
        }
    }
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|to| to.strip_prefix('#'))
        .filter(|to| !to.is_empty());
    if let Some(target) = target.and_then(|to| root.pointer(to)) {
        collect(root, target, path, depth + 4, found);
    }
}

/// Whether the schema is the constant of a variant: there is nothing to choose.
fn is_constant(schema: &Value) -> bool {
    schema.get("const").is_some()
        || schema.get("enum").and_then(Value::as_array).is_some_and(|words| words.len() == 1)
        || schema.get("type").and_then(Value::as_str) == Some("null")
}

/// Whether a description only repeats the words of names.
fn says_only(said: &str, names: &[&str]) -> bool {
    let known: BTreeSet<String> = names.iter().flat_map(|name| stems(name)).collect();
    telling(said).is_subset(&known)
}

fn too_long(said: &str, longest: usize, find: impl FnOnce(String)) {
    let length = said.chars().count();
    if length > longest {
        find(format!(
            "the description has {length} characters, {longest} are enough: say the rest elsewhere"
        ));
    }
}

/// Returns the words of a closed set that a model would confuse.
fn ambiguous(schema: &Value) -> Vec<String> {
    let Some(words) = schema.get("enum").and_then(Value::as_array) else { return Vec::new() };
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    let said = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut found = Vec::new();
    for (n, other) in words.iter().enumerate() {
        for one in &words[..n] {
            // Only forms of one word: `asc` and `desc` differ enough.
            if stems(one) == stems(other) && !(mentions(said, one) && mentions(said, other)) {
                found.push(format!(
                    "`{one}` and `{other}` are nearly the same word: say how they differ, or rename one"
                ));
            }
        }
    }
    let codes: Vec<&str> =
        words.iter().copied().filter(|word| is_code(word) && !mentions(said, word)).collect();
    if words.len() > 1 && !codes.is_empty() {
        let codes = codes.iter().take(5).map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ");
        found.push(format!("{codes} says nothing by itself: describe each, `/// …` above the variant"));
    }
    found
}

/// Whether the word is a letter or a number.
fn is_code(word: &str) -> bool {
    word.chars().filter(|char| char.is_alphabetic()).count() <= 1
}

fn mentions(text: &str, word: &str) -> bool {
    text.split(|char: char| !char.is_alphanumeric() && char != '_' && char != '-').any(|part| part == word)
}

/// Finds tools with the same description: one finding for each group, at its last tool.
fn same_descriptions(definitions: &[ToolDefinition], findings: &mut Vec<LintFinding>) {
    let described =
        definitions.iter().map(|tool| (tool.description().trim(), format!("`{}`", tool.name()), tool.name()));
    for (others, tool) in groups(described) {
        findings.push(LintFinding {
            lint: Lint::SameDescription,
            tool: tool.to_owned(),
            path: String::new(),
            message: format!("has the description of {others}: say how they differ"),
        });
    }
}

/// The same for parameters. The same field of several variants or items is one thing.
fn same_parameters(parameters: &[Parameter<'_>], find: &mut impl FnMut(Lint, &str, String)) {
    let mut seen = BTreeSet::new();
    let described = parameters
        .iter()
        .filter(|parameter| seen.insert((parameter.description(), parameter.path.rsplit('/').next())))
        .map(|parameter| (parameter.description(), parameter.path.clone(), parameter.path.as_str()));
    for (others, path) in groups(described) {
        find(Lint::SameDescription, path, format!("has the description of {others}: say how they differ"));
    }
}

/// The groups with one description, as the last member and the list of the others. What has no description is in none.
fn groups<'a>(described: impl Iterator<Item = (&'a str, String, &'a str)>) -> Vec<(String, &'a str)> {
    const SHOWN: usize = 5;
    let mut groups: Vec<Vec<(String, &str)>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (description, shown, name) in described.filter(|(description, ..)| !description.is_empty()) {
        let at = *known.entry(description).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push((shown, name)),
            None => groups.push(vec![(shown, name)]),
        }
    }
    let list = |group: Vec<(String, &'a str)>| {
        let ((_, last), others) = group.split_last().filter(|(_, others)| !others.is_empty())?;
        let mut shown: Vec<&str> = others.iter().take(SHOWN).map(|(shown, _)| shown.as_str()).collect();
        let more = others.len().saturating_sub(SHOWN);
        let end = match (more, shown.len()) {
            (0, 1) => return Some((shown.concat(), *last)),
            (0, _) => shown.pop()?.to_owned(),
            (more, _) => format!("{more} more"),
        };
        Some((format!("{} and {end}", shown.join(", ")), *last))
    };
    groups.into_iter().filter_map(list).collect()
}

/// Returns names in the descriptions that are similar to those of parameters.
fn other_names(
    definition: &ToolDefinition,
    parameters: &[Parameter<'_>],
    find: &mut impl FnMut(Lint, &str, String),
) {
    let known: BTreeSet<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    let words: BTreeSet<&str> = parameters
        .iter()
        .flat_map(|parameter| parameter.schema.get("enum").and_then(Value::as_array).into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let mut look = |path: &str, said: &str| {
        let mut told = BTreeSet::new();
        for name in quoted(said).filter(|name| !known.contains(name) && !words.contains(name)) {
            if let (Some(meant), true) =
                (did_you_mean(name, known.iter().copied()).first(), told.insert(name))
            {
                find(
                    Lint::OtherName,
                    path,
                    format!("the description speaks of `{name}`, and there is `{meant}`"),
                );
            }
        }
    };
    look("", definition.description());
    for parameter in parameters {
        look(&parameter.path, parameter.description());
    }
}
