//! Sample values for a schema node. The schema accepts each sample, but the Rust type may be stricter.

use super::pattern::matching;
use crate::args::exact::value_fits;
use crate::args::judge::fits;
use crate::args::plan::{
    AdditionalProperties, Graph, IntSpec, NodeId, NodeKind, NumSpec, ObjectSpec, Prop, StrSpec,
};
use crate::args::scalar::{Int, Num};
use crate::args::text::json_of;
use serde_json::Value;
use std::cell::Cell;
use std::ops::ControlFlow::{self, Break, Continue};

/// Maximum depth of nested schema nodes in a sample. One value can count several times, for example as a union and an object.
const MAX_DEPTH: usize = 24;
const MAX_SAMPLES: usize = 48;
#[cfg(feature = "macros")]
const MAX_ALTERNATIVES: usize = 12;
/// Maximum number of items of a list, and of entries of a map, in a sample.
const MAX_MADE: u64 = 64;
/// Maximum work for one sample: each schema node costs [`NODE_WORK`], and each byte of its text costs 1.
const MAX_WORK: usize = 64 * 1024;
const NODE_WORK: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) text: String,
    /// Whether the model may see this text as an example: it is an example of the schema, or one of [`FORMS`].
    pub(super) is_form: bool,
}

/// Texts that many types accept. A type that accepts one of them expects no special form.
const PLAIN: [&str; 10] = ["a", "abc", "A", "ABC", "1", "a1", "A1", "Abc", "", "1.5"];

const FORMS: [&str; 22] = [
    "192.0.2.1:8080",
    "[2001:db8::1]:8080",
    "192.0.2.1",
    "2001:db8::1",
    "192.0.2.0/24",
    "2026-11-21",
    "2026-11-21T10:30:00Z",
    "2026-11-21T10:30:00",
    "10:30:00",
    "10:30",
    "1h 30m",
    "PT1H30M",
    "67e55044-10b1-426f-9247-bb680e5fe0c8",
    "https://example.com",
    "ann@example.com",
    "1.2.3",
    "#ff8800",
    "00:1a:2b:3c:4d:5e",
    "en-US",
    "Europe/Berlin",
    "text/plain",
    "aGVsbG8=",
];

/// Returns at most [`MAX_SAMPLES`] values that the schema accepts, the most likely ones first. `near` are other strings of the call.
pub(super) fn samples(graph: &Graph, node: NodeId, prop: Option<&Prop>, near: &[String]) -> Vec<Sample> {
    at_most(MAX_SAMPLES, graph, node, prop, near)
}

pub(super) fn first_sample(graph: &Graph, node: NodeId, prop: Option<&Prop>) -> Option<Sample> {
    at_most(1, graph, node, prop, &[]).pop()
}

fn at_most(most: usize, graph: &Graph, node: NodeId, prop: Option<&Prop>, near: &[String]) -> Vec<Sample> {
    let mut out: Vec<Sample> = Vec::new();
    let mut add = |text: String, is_form: bool| {
        let known = out.iter().any(|sample: &Sample| sample.text == text);
        if !known && (value_fits(graph, node, &text) || fits(graph, node, &text, false)) {
            out.push(Sample { text, is_form });
        }
        if out.len() < most { Continue(()) } else { Break(()) }
    };
    // The result is ignored, because `Break` only means that there are enough samples.
    let _ = noted(graph, node, prop, &mut add).is_continue()
        && kinds(graph, node, near, 0, &mut add).is_continue();
    out
}

/// Adds the examples and the default from the schema: first those of the parameter `prop`, then those of its schema node.
fn noted(graph: &Graph, node: NodeId, prop: Option<&Prop>, add: Add<'_>) -> ControlFlow<()> {
    for notes in prop.map(|prop| &prop.notes).into_iter().chain([graph.notes(node)]) {
        for example in notes.get("examples").and_then(Value::as_array).into_iter().flatten() {
            add(example.to_string(), true)?;
        }
        if let Some(default) = notes.get("default") {
            add(default.to_string(), false)?;
        }
    }
    Continue(())
}

/// Adds a JSON text as a sample. The `bool` is [`Sample::is_form`]. Returns `Break` when there are enough samples.
type Add<'a> = &'a mut dyn FnMut(String, bool) -> ControlFlow<()>;

fn kinds(graph: &Graph, node: NodeId, near: &[String], depth: usize, add: Add<'_>) -> ControlFlow<()> {
    if depth > 8 {
        return Continue(());
    }
    match graph.kind(node) {
        NodeKind::Str(spec) => texts(spec, near, add),
        NodeKind::Int(spec) => integers(spec).try_for_each(|text| add(text, false)),
        NodeKind::Num(spec) => numbers(spec).try_for_each(|text| add(text, false)),
        NodeKind::Bool => ["false", "true"].into_iter().try_for_each(|text| add(text.into(), false)),
        NodeKind::Enum(words) => words.names().try_for_each(|word| add(json_of(word), false)),
        NodeKind::Const(members) => members.iter().try_for_each(|member| add(member.to_string(), false)),
        NodeKind::Null => add("null".into(), false),
        kind @ (NodeKind::Nullable(_) | NodeKind::Checked(_) | NodeKind::Union { .. }) => {
            kind.alternatives().try_for_each(|node| kinds(graph, node, near, depth + 1, add))?;
            if matches!(kind, NodeKind::Nullable(_)) { add("null".into(), false) } else { Continue(()) }
        }
        NodeKind::Any => {
            ["null", "\"a\"", "1", "{}", "[]"].into_iter().try_for_each(|text| add(text.into(), false))
        }
        _ => [false, true].into_iter().try_for_each(|full| match made(graph, node, full, None) {
            Some(text) => add(text, false),
            None => Continue(()),
        }),
    }
}

fn texts(spec: &StrSpec, near: &[String], add: Add<'_>) -> ControlFlow<()> {
    let mut offer = |text: &str, is_form| {
        if spec.takes(text) { add(json_of(text), is_form) } else { Continue(()) }
    };
    if let Some(format) = spec.format.as_deref() {
        for text in forms_of(format) {
            offer(text, false)?;
        }
    }
    if let Some(pattern) = &spec.pattern {
        for text in [false, true].into_iter().filter_map(|more| matching(pattern, more)) {
            offer(&text, false)?;
        }
    }
    for text in PLAIN {
        offer(text, false)?;
    }
    let (least, most) = (spec.min.unwrap_or(0), spec.max.unwrap_or(u64::MAX));
    for length in [least, least.max(1), least.max(3)] {
        if length <= most.min(MAX_MADE * MAX_MADE) {
            offer(&"a".repeat(usize::try_from(length).unwrap_or(0)), false)?;
        }
    }
    for text in near {
        offer(text, false)?;
    }
    // A format or pattern already tells the model the form, so `FORMS` are tried only for texts with neither.
    if spec.format.is_none() && spec.pattern.is_none() {
        for text in FORMS {
            offer(text, true)?;
        }
    }
    Continue(())
}

fn forms_of(format: &str) -> &'static [&'static str] {
    match format {
        "date" => &["2026-11-21"],
        "date-time" => &["2026-11-21T10:30:00Z"],
        "partial-date-time" => &["2026-11-21T10:30:00"],
        "zoned-date-time" => &["2026-11-21T10:30:00+00:00[UTC]"],
        "time" => &["10:30:00Z", "10:30:00"],
        "partial-time" => &["10:30:00"],
        "duration" => &["PT1H30M", "1h 30m"],
        "uuid" => &["67e55044-10b1-426f-9247-bb680e5fe0c8"],
        "uri" => &["https://example.com"],
        "email" => &["ann@example.com"],
        "hostname" => &["example.com"],
        "ipv4" | "ip" => &["192.0.2.1"],
        "ipv6" => &["2001:db8::1"],
        _ => &[],
    }
}

fn integers(spec: &IntSpec) -> impl Iterator<Item = String> + '_ {
    let multiple = spec.multiple.filter(|step| *step > 0).unwrap_or(1);
    let (min, max) = (spec.min.unwrap_or(i128::MIN / 4), spec.max.unwrap_or(i128::MAX / 4));
    let up = move |value: i128| value.checked_add((multiple - value.rem_euclid(multiple)) % multiple);
    let common = [1, 0, 2, 10, 100, 3, 1_000, -1].map(|value: i128| value.clamp(min.min(max), max));
    let written = |value: i128| match i64::try_from(value) {
        Ok(value) => spec.takes(Int::Signed(value)).then(|| value.to_string()),
        Err(_) => spec.takes(Int::Wide(value)).then(|| value.to_string()),
    };
    common.into_iter().chain([min, max]).filter_map(up).filter_map(written)
}

fn numbers(spec: &NumSpec) -> impl Iterator<Item = String> + '_ {
    let bounds = [spec.min, spec.max, spec.above, spec.below].into_iter().flatten().map(|bound| bound.float);
    let (low, high) = (spec.min.or(spec.above), spec.max.or(spec.below));
    let between = low.zip(high).map(|(low, high)| f64::midpoint(low.float, high.float));
    let step = spec.multiple.unwrap_or(1.0);
    let beside = bounds.clone().flat_map(move |bound| {
        let near = (bound / step).round() * step;
        [bound, bound + 0.5, bound - 0.5, bound + 1.0, bound - 1.0, near, near + step, near - step]
    });
    let all = [1.0, 0.0, step, 0.5, 10.0, 100.0, -1.0].into_iter().chain(between).chain(beside);
    all.filter(|float| spec.takes(Num::Float(*float))).map(|float| Value::from(float).to_string())
}

/// Returns a sample as JSON text. Fields of recursive types multiply with the depth, so a sample that costs too much is made again with
/// less depth.
fn made(graph: &Graph, node: NodeId, full: bool, secret: Option<usize>) -> Option<String> {
    for most in (0..=MAX_DEPTH).rev().step_by(3) {
        let maker = Maker { graph, full, secret, most, work: Cell::new(Some(MAX_WORK)) };
        let text = maker.value(node, 0);
        if maker.work.get().is_some() {
            return text;
        }
    }
    None
}

struct Maker<'g> {
    graph: &'g Graph,
    /// Whether each list gets an item, and objects at depth 0 and 1 get their optional parameters.
    full: bool,
    secret: Option<usize>,
    /// Maximum depth of this sample.
    most: usize,
    /// The work that is left, or `None` if the sample has cost too much.
    work: Cell<Option<usize>>,
}

/// Returns sample arguments as JSON texts, with all secret parameters. If several alternatives have secrets, each text uses a different
/// alternative.
#[cfg(feature = "macros")]
pub(super) fn with_secrets(graph: &Graph) -> Vec<String> {
    let made = (0..MAX_ALTERNATIVES).filter_map(|at| {
        made(graph, graph.root, true, Some(at)).filter(|text| fits(graph, graph.root, text, false))
    });
    let mut texts: Vec<String> = made.collect();
    texts.dedup();
    texts
}

impl Maker<'_> {
    /// Selects one of the alternatives with a secret. `self.secret` counts only these alternatives.
    fn secret<T>(&self, all: &[T], node: impl Fn(&T) -> NodeId) -> Option<usize> {
        let holds = |at: &usize| all.get(*at).is_some_and(|one| self.graph.node(node(one)).holds_secret);
        let found: Vec<usize> = (0..all.len()).filter(holds).collect();
        found.get(self.secret? % found.len().max(1)).copied()
    }

    fn spend(&self, work: usize) -> Option<()> {
        self.work.set(self.work.get()?.checked_sub(work));
        self.work.get().map(drop)
    }

    fn value(&self, node: NodeId, depth: usize) -> Option<String> {
        if depth > self.most {
            return None;
        }
        self.spend(NODE_WORK)?;
        let text = self.text(node, depth)?;
        self.spend(text.len())?;
        Some(text)
    }

    fn text(&self, node: NodeId, depth: usize) -> Option<String> {
        let graph = self.graph;
        match graph.kind(node) {
            NodeKind::Object(object) => self.object(object, depth),
            NodeKind::Array(array) => {
                let count = array.min.max(array.prefix.len() as u64);
                let count = if self.full { count.max(1).min(array.max) } else { array.min };
                let count = usize::try_from(count).ok().filter(|count| *count as u64 <= MAX_MADE)?;
                let mut items: Vec<String> = Vec::new();
                while items.len() < count {
                    let item = array.item(items.len())?;
                    let made =
                        self.scalars(item, depth).find(|made| !array.unique || !items.contains(made))?;
                    items.push(made);
                }
                Some(format!("[{}]", items.join(",")))
            }
            NodeKind::Tagged { variants, .. } => {
                let secret = self.secret(variants, |(_, node)| *node).and_then(|at| variants.get(at));
                if let Some((_, node)) = secret {
                    return self.value(*node, depth + 1);
                }
                variants.iter().find_map(|(_, node)| self.value(*node, depth + 1))
            }
            NodeKind::External(external) => {
                let variants = &external.variants;
                let secret = self.secret(variants, |variant| variant.node).and_then(|at| variants.get(at));
                match external.units.first() {
                    Some(unit) if secret.is_none() => Some(json_of(unit)),
                    _ => secret.into_iter().chain(&external.variants).find_map(|variant| {
                        let mut out = "{".to_owned();
                        super::edit::push_entry(
                            &mut out,
                            &variant.name,
                            &self.value(variant.node, depth + 1)?,
                        );
                        Some(out + "}")
                    }),
                }
            }
            NodeKind::Union { branches, .. } => {
                let secret = self.secret(branches, |node| *node).and_then(|at| branches.get(at));
                secret.into_iter().chain(branches).find_map(|node| self.value(*node, depth + 1))
            }
            NodeKind::Nullable(_) if self.secret.is_none() => Some("null".into()),
            kind => match kind.alternatives().next() {
                Some(node) => self.value(node, depth + 1),
                None => self.scalars(node, depth).next(),
            },
        }
    }

    fn scalars(&self, node: NodeId, depth: usize) -> std::vec::IntoIter<String> {
        let mut out = Vec::new();
        let kind = self.graph.kind(node);
        if kind.is_scalar() || matches!(kind, NodeKind::Const(_) | NodeKind::Any) {
            let mut add = |text, _| {
                out.push(text);
                Continue(())
            };
            // `add` never returns `Break`.
            let _ = kinds(self.graph, node, &[], 0, &mut add);
        } else {
            out.extend(self.value(node, depth + 1));
        }
        out.into_iter()
    }

    fn object(&self, object: &ObjectSpec, depth: usize) -> Option<String> {
        let mut out = "{".to_owned();
        let mut count = 0;
        let mut push = |key: &str, value: &str| {
            if out.len() > 1 {
                out.push(',');
            }
            super::edit::push_entry(&mut out, key, value);
        };
        for prop in &object.props {
            match self.of_prop(prop, depth) {
                Some(value) => {
                    push(&prop.name, &value);
                    count += 1;
                }
                None if prop.required => return None,
                None => {}
            }
        }
        for at in count..object.min.min(MAX_MADE) {
            let (key, node) = match (&object.patterns[..], object.rest) {
                ([(pattern, node), ..], _) if pattern.is_integer_key() => (at.to_string(), *node),
                (_, AdditionalProperties::Schema(node)) => (format!("key{at}"), node),
                _ => return None,
            };
            push(&key, &self.value(node, depth + 1)?);
        }
        out.push('}');
        Some(out)
    }

    fn of_prop(&self, prop: &Prop, depth: usize) -> Option<String> {
        let is_wanted = prop.required || (self.full && depth <= 1) || (self.secret.is_some() && prop.secret);
        if !is_wanted {
            return None;
        }
        let example = prop.notes.get("examples").and_then(|examples| examples.get(0)).map(Value::to_string);
        let example = example.filter(|text| fits(self.graph, prop.node, text, false));
        example.or_else(|| self.value(prop.node, depth + 1))
    }
}

pub(super) fn key_samples(has: &dyn Fn(&str) -> bool) -> impl Iterator<Item = &'static str> {
    let common = ["a", "b", "c", "d", "e", "f", "true", "false", "1", "2", "3", "0", "A", "B"];
    common.into_iter().chain(FORMS).filter(move |key| !has(key))
}
