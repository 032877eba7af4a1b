//! Findings about tools and parameters that look alike. Each group is one finding, reported for its last member.

use super::hints::Hints;
use super::parameters::Parameter;
use super::words::{likeness, split, stems, telling};
use super::{Lint, LintFinding};
use crate::args::did_you_mean;
use crate::tool::definition::ToolDefinition;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum share of common words for which two descriptions look alike.
const ALIKE: f64 = 0.8;
const MAX_COMPARED: usize = 400;
/// Maximum number of members of a group that a finding names.
const SHOWN: usize = 5;

pub(super) fn check(definitions: &[ToolDefinition], findings: &mut Vec<LintFinding>) {
    let same = groups(definitions.iter().map(|tool| tool.description().trim()));
    report(
        definitions,
        same,
        Lint::SameDescription,
        "has the description of",
        |hints| hints.same_tool,
        findings,
    );

    let compared = &definitions[..definitions.len().min(MAX_COMPARED)];
    let texts: Vec<BTreeSet<String>> = compared.iter().map(|tool| telling(tool.description())).collect();
    let is_same = |n: usize, m: usize| {
        let [one, other] = [n, m].map(|at| compared[at].description().trim());
        !one.is_empty() && one == other
    };
    let described = alike(compared.len(), |n, m| {
        texts[n].len() >= 3
            && texts[m].len() >= 3
            && !is_same(n, m)
            && likeness(&texts[n], &texts[m]) >= ALIKE
    });
    report(
        compared,
        described,
        Lint::LookAlike,
        "is described nearly as",
        |hints| hints.alike_described,
        findings,
    );

    let names: Vec<BTreeSet<String>> = compared.iter().map(|tool| stems(tool.name())).collect();
    let with_like_names = alike(compared.len(), |n, m| {
        let (one, other) = (compared[n].name(), compared[m].name());
        let is_near = || !did_you_mean(other, [one]).is_empty() && differ_by_little(one, other);
        names[n] == names[m] || is_near()
    });
    report(
        compared,
        with_like_names,
        Lint::LookAlike,
        "is named nearly as",
        |hints| hints.alike_named,
        findings,
    );
}

fn report(
    definitions: &[ToolDefinition],
    groups: Vec<Vec<usize>>,
    lint: Lint,
    what: &str,
    hint: impl Fn(&Hints) -> &'static str,
    findings: &mut Vec<LintFinding>,
) {
    for group in groups {
        let Some((&last, others)) = group.split_last() else { continue };
        // A hint for a tool that `#[tool]` defines is preferred, because the reader can change this tool.
        let editable = group.iter().map(|&at| Hints::of(&definitions[at])).find(|hints| !hints.is_foreign);
        let hints = editable.unwrap_or_else(|| Hints::of(&definitions[last]));
        let names: Vec<String> = others.iter().map(|&at| format!("`{}`", definitions[at].name())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        findings.push(LintFinding {
            lint,
            tool: definitions[last].name().to_owned(),
            path: String::new(),
            message: format!("{what} {}: {}", listed(&names), hint(hints)),
        });
    }
}

/// Finds parameters with the same description. Parameters with the same name and description count once, because variants of an enum may
/// repeat a field.
pub(super) fn same_parameters(
    parameters: &[Parameter<'_>],
    hints: &Hints,
    find: &mut impl FnMut(Lint, &str, String),
) {
    let mut seen = BTreeSet::new();
    let parameters: Vec<&Parameter<'_>> = parameters
        .iter()
        .filter(|parameter| seen.insert((parameter.description(), parameter.path.rsplit('/').next())))
        .collect();
    for group in groups(parameters.iter().map(|parameter| parameter.description())) {
        let Some((&last, others)) = group.split_last() else { continue };
        let others: Vec<&str> = others.iter().map(|&at| parameters[at].path.as_str()).collect();
        let message = format!("has the description of {}: {}", listed(&others), hints.same_parameter);
        find(Lint::SameDescription, &parameters[last].path, message);
    }
}

fn groups<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, text) in texts.enumerate().filter(|(_, text)| !text.is_empty()) {
        groups.entry(text).or_default().push(at);
    }
    in_order(groups.into_values())
}

fn alike(count: usize, is_alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    // `first[n]` is the first member of the group of `n`.
    let mut first: Vec<usize> = (0..count).collect();
    for n in 0..count {
        for m in 0..n {
            if first[n] != first[m] && is_alike(m, n) {
                let (kept, joined) = (first[n].min(first[m]), first[n].max(first[m]));
                first.iter_mut().filter(|at| **at == joined).for_each(|at| *at = kept);
            }
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, first) in first.into_iter().enumerate() {
        groups.entry(first).or_default().push(at);
    }
    in_order(groups.into_values())
}

fn in_order(groups: impl Iterator<Item = Vec<usize>>) -> Vec<Vec<usize>> {
    let mut groups: Vec<_> = groups.filter(|group| group.len() > 1).collect();
    groups.sort_by_key(|group| group.last().copied());
    groups
}

/// Returns a list in words: `a`, `a and b`, `a, b, c, d, e and 7 more`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] if names.len() <= SHOWN => format!("{} and {last}", first.join(", ")),
        names => format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN),
    }
}

/// Returns whether two names differ by little, for example `read_file` and `read_files`. Words of fewer than four letters must be equal,
/// because `get_user` and `set_user` are different enough.
fn differ_by_little(one: &str, other: &str) -> bool {
    let (one, other) = (split(one), split(other));
    one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(a, b)| a == b || (a.len() >= 4 && !did_you_mean(a, [b.as_str()]).is_empty()))
}
