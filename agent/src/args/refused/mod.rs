//! Finds all values that a Rust type refuses, for example in a `Deserialize` or `TryFrom` written by hand. Serde stops at the first
//! refusal, so the text is read repeatedly. Each time, the refused value is replaced by a sample that the type accepts.

mod edit;
mod fit;
mod pattern;
mod sample;
mod words;

use super::coercion::HIDDEN;
use super::document::{Doc, Document, Shape};
use super::formats;
use super::hooks::{self, LocatedFinding, is_within};
use super::issue::{Issue, IssueCode};
use super::judge::{TextJudge, WalkState};
use super::plan::{Child, FormatRule, Graph, NodeId, NodeKind};
use super::read::{Context, Failure, ValuePosition};
use super::report::MAX_ISSUES;
use super::signature::signature;
use super::text::{MAX_VALUE, push_segment, quoted};
use edit::{PlannedValue, leaves, place_at, replaced, value_at, with_key, with_values};
use sample::{Sample, key_samples, samples};
use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(feature = "macros")]
pub(crate) fn secret_samples(plan: &super::Plan) -> Vec<String> {
    sample::with_secrets(plan.graph())
}

/// A function that reads arguments again as their type. It drops the value, because only the error and the findings of
/// `#[arg(validate = …)]` are needed.
pub(super) type Reread<'a> = &'a dyn Fn(&Context<'_>, &str) -> Result<(), serde_json::Error>;

/// The budget for all readings of one refused call: `READS` times the length of the sent text, and [`MORE_BYTES`] bytes more.
const READS: usize = 40;
const MORE_BYTES: usize = 200_000;
/// Maximum number of values in a refused object or list that are tested one by one.
const MAX_LEAVES: usize = 64;
/// Maximum number of other strings in the call, and of earlier items in a list, that are tried in place of a refused value.
const MAX_NEAR: usize = 12;

/// Adds the issues that `Deserialize` impls and `#[arg(validate = …)]` find, in the order of the schema. Returns `None` if every value was
/// checked, or else a path: values after it may be unchecked. The path is empty if it is not known.
#[cold]
pub(super) fn add_refusals(
    graph: &Graph,
    sent: &Doc<'_>,
    again: Reread<'_>,
    issues: &mut Vec<Issue>,
) -> Option<String> {
    // If the arguments are not an object, their only issue says so already.
    if !matches!(sent.shape, Shape::Object(_)) {
        return None;
    }
    let mut search = Search {
        graph,
        again,
        sent,
        text: sent.raw.to_owned(),
        touched: Vec::new(),
        renamed: Vec::new(),
        found: Vec::new(),
        unchecked: None,
        bytes: sent.raw.len().saturating_mul(READS).saturating_add(MORE_BYTES),
        near: Vec::new(),
    };
    let mut placed = search.run(issues);
    if placed.is_empty() && search.found.is_empty() {
        return search.unchecked;
    }
    for placed in &mut placed {
        placed.path = search.as_sent(&placed.path);
    }
    let touched: Vec<String> = search.touched.iter().map(|at| search.as_sent(at)).collect();
    let Search { found, unchecked, .. } = search;
    hooks::report(graph, sent.raw, placed, &touched, found, issues);
    unchecked
}

/// Maximum number of values in a call. In a larger call, no `format` is checked.
const MAX_FORMATS: usize = 1_000;

/// Adds an issue for each string of a refused call that probably does not have its `format`. Used for schemas that do not come from a Rust
/// type. With such a schema, a wrong `format` alone does not refuse a call.
#[cold]
pub(super) fn add_probable(graph: &Graph, root: &Doc<'_>, issues: &mut Vec<Issue>) {
    let shared = WalkState::new(graph, root.raw, Some(root), false);
    let chosen = |node: NodeId, doc: &Doc<'_>| shared.fitting(node, doc);
    for pointer in leaves(root, "", MAX_FORMATS).unwrap_or_default() {
        let Some(place) = place_at(graph, root, &pointer, &chosen) else { continue };
        let kind = graph.kind(graph.non_null(place.node));
        let (NodeKind::Str(spec), Shape::Text(text)) = (kind, &place.doc.shape) else {
            continue;
        };
        let Some(format) = spec.format.as_deref() else { continue };
        if spec.format_rule != FormatRule::Shown
            || formats::is(format, text)
            || issues.iter().any(|issue| issue.path == pointer)
        {
            continue;
        }
        let is_hidden = place.secret || graph.node(place.node).holds_secret;
        let words = match formats::fault(format, text).filter(|_| !is_hidden) {
            Some(words) => format!("probably not a valid {format}: {words}"),
            None => format!("probably not a valid {format}"),
        };
        let mut issue = Issue::new(pointer, IssueCode::Format, words);
        issue.received = Some(if is_hidden { format!("string {HIDDEN}") } else { place.doc.shown() });
        issue.expected = Some(signature(graph, place.node).to_owned());
        issues.push(issue);
    }
}

struct Reading {
    placed: Vec<LocatedFinding>,
    refusal: Option<TypeRefusal>,
}

struct TypeRefusal {
    at: String,
    is_key: bool,
    words: String,
}

struct Search<'s, 't> {
    graph: &'s Graph,
    again: Reread<'s>,
    sent: &'s Doc<'t>,
    /// The arguments, in which the values that were refused so far are replaced.
    text: String,
    touched: Vec<String>,
    /// The new and the sent path of each map entry that was renamed.
    renamed: Vec<(String, String)>,
    found: Vec<Issue>,
    unchecked: Option<String>,
    /// Number of bytes that may still be read.
    bytes: usize,
    /// Strings of the call, to be tried as values of other arguments.
    near: Vec<String>,
}

impl Search<'_, '_> {
    fn run(&mut self, issues: &[Issue]) -> Vec<LocatedFinding> {
        if !issues.is_empty() && !self.fit() {
            // The text cannot be made to fit, so only findings before the first refusal are known.
            return self.read(self.sent.raw).map(|reading| reading.placed).unwrap_or_default();
        }
        loop {
            let text = std::mem::take(&mut self.text);
            let reading = self.read(&text);
            self.text = text;
            let Some(Reading { placed, refusal }) = reading else { return Vec::new() };
            let Some(refusal) = refusal else { return placed };
            let at = self.as_sent(&refusal.at);
            if self.found.len() >= MAX_ISSUES || !self.pass(&refusal, issues) {
                self.unchecked.get_or_insert(at);
                return placed;
            }
        }
    }

    /// Makes `text` fit the schema by replacing the values that the schema refuses. Returns `false` if this is not possible.
    fn fit(&mut self) -> bool {
        let shared = WalkState::new(self.graph, self.sent.raw, Some(self.sent), false);
        let mut fit = fit::TextFitter {
            graph: self.graph,
            shared: &shared,
            path: String::new(),
            touched: Vec::new(),
            stuck: None,
        };
        let text = fit.value(self.graph.root, self.sent, None, 0);
        let fit::TextFitter { touched, stuck, .. } = fit;
        let Some(text) = text.filter(|_| !touched.iter().any(String::is_empty)) else {
            self.unchecked = Some(stuck.unwrap_or_default());
            return false;
        };
        (self.text, self.touched) = (text.into_owned(), touched);
        true
    }

    /// Reads a text. Returns `None` after too many bytes, or if the user's code panics at a replaced value.
    fn read(&mut self, text: &str) -> Option<Reading> {
        let Some(left) = self.bytes.checked_sub(text.len().max(64)) else {
            self.unchecked.get_or_insert_default();
            return None;
        };
        self.bytes = left;
        let graph = self.graph;
        let root = graph.node(graph.root);
        let judge = TextJudge::new(graph, text);
        let cx = Context::collecting(graph, text, &judge);
        let read = || {
            hooks::collect(|| {
                let is_tried = cx.enter(root);
                let end = (self.again)(&cx, text);
                cx.leave(&ValuePosition::root(&cx, root), is_tried, true);
                end
            })
        };
        let end = if text == self.sent.raw {
            read()
        } else {
            // A `Deserialize` impl or a validation function may panic at a value that was not sent. Such a panic ends only the search, not
            // the call.
            let Ok(end) = catch_unwind(AssertUnwindSafe(read)) else {
                self.unchecked.get_or_insert_default();
                return None;
            };
            end
        };
        let (placed, Failure { at, is_key }) = cx.into_placed();
        let refusal = end.err().map(|error| TypeRefusal { at, is_key, words: words::plain(&error) });
        Some(Reading { placed, refusal })
    }

    /// Returns whether the type accepts the key or the value at `at`. A refusal elsewhere in `text` does not count.
    fn passes(&mut self, text: &str, at: &str, is_key: bool) -> bool {
        match self.read(text) {
            None => false,
            Some(Reading { refusal: None, .. }) => true,
            Some(Reading { refusal: Some(refusal), .. }) => refusal.at != at || refusal.is_key != is_key,
        }
    }

    /// Records the issue of a refusal, and replaces the refused value, so that the next reading accepts it. Returns `false` if no
    /// replacement is found.
    fn pass(&mut self, refusal: &TypeRefusal, issues: &[Issue]) -> bool {
        let text = self.text.clone();
        let Ok(document) = Document::parse(&text) else { return false };
        let shared = WalkState::new(self.graph, &text, Some(&document.root), false);
        let chosen = |node: NodeId, doc: &Doc<'_>| shared.fitting(node, doc);
        let graph = self.graph;
        let Some(place) = place_at(graph, &document.root, &refusal.at, &chosen) else {
            // The schema does not describe this path, so the message of the refusal is all that can be reported.
            self.note(refusal, None, None, issues);
            return false;
        };
        if refusal.is_key {
            return self.pass_key(refusal, &document.root, &place, issues);
        }
        match &place.doc.shape {
            Shape::Object(entries) if !entries.is_empty() => {
                self.pass_container(refusal, &document.root, &place, &chosen, issues)
            }
            Shape::Array(items) if !items.is_empty() => {
                self.pass_container(refusal, &document.root, &place, &chosen, issues)
            }
            _ => self.pass_leaf(refusal, &document.root, &place, issues),
        }
    }

    fn pass_leaf(
        &mut self,
        refusal: &TypeRefusal,
        root: &Doc<'_>,
        place: &PlannedValue<'_, '_, '_>,
        issues: &[Issue],
    ) -> bool {
        let replacement = self.replacement(root, place, &refusal.at);
        let example = match &replacement {
            Some((_, Some(sample))) if sample.is_form => Some(sample.text.clone()),
            _ => None,
        };
        self.note(refusal, Some(place), example.as_deref(), issues);
        match replacement {
            Some((text, _)) => {
                self.text = text;
                self.touched.push(refusal.at.clone());
                true
            }
            None => false,
        }
    }

    /// Returns the text in which a sample replaces the value at `at`, and the sample. The type accepts this sample. If the type accepts no
    /// sample and the entry is optional, returns the text without the entry.
    fn replacement(
        &mut self,
        root: &Doc<'_>,
        place: &PlannedValue<'_, '_, '_>,
        at: &str,
    ) -> Option<(String, Option<Sample>)> {
        self.look_around();
        let mut made = samples(self.graph, place.node, place.prop, &self.near);
        // The earlier items of the same list were accepted, so they may be accepted at this index, too.
        if let Some(parent) = &place.parent
            && let Shape::Array(items) = &parent.doc.shape
        {
            let before = items.iter().take_while(|item| !std::ptr::eq(*item, place.doc)).take(MAX_NEAR);
            made.extend(before.map(|item| Sample { text: item.raw.to_owned(), is_form: false }));
        }
        for sample in made.into_iter().filter(|sample| sample.text != place.doc.raw) {
            let text = replaced(root, place.doc, &sample.text)?;
            if self.passes(&text, at, false) {
                return Some((text, Some(sample)));
            }
        }
        let parent = place.parent.as_ref()?;
        let key = edit::keys(at).last()?;
        let is_optional = match self.graph.kind(parent.node) {
            NodeKind::Object(object) => object.child(&key, 0)?.prop(object).is_none_or(|prop| !prop.required),
            _ => false,
        };
        let text = replaced(root, parent.doc, &with_key(parent.doc, &key, None)?).filter(|_| is_optional)?;
        self.passes(&text, at, false).then_some((text, None))
    }

    /// Reports and replaces the wrong values in an object or list that serde refused as a whole. The inner values are tested one by one.
    /// Returns whether the text has changed.
    fn pass_container(
        &mut self,
        refusal: &TypeRefusal,
        root: &Doc<'_>,
        place: &PlannedValue<'_, '_, '_>,
        chosen: &dyn Fn(NodeId, &Doc<'_>) -> Option<NodeId>,
        issues: &[Issue],
    ) -> bool {
        let at = &refusal.at;
        let Some((base, own)) = self.accepted_base(root, place, at, chosen) else {
            return self.pass_leaf(refusal, root, place, issues);
        };
        let mut culprits: Vec<&str> = Vec::new();
        for (pointer, raw) in &own {
            let Some(text) = with_values(&base, [(pointer.as_str(), raw.as_str().into())].into_iter()) else {
                continue;
            };
            let Some(Reading { refusal: Some(alone), .. }) = self.read(&text) else { continue };
            if is_within(&alone.at, at) {
                let alone = TypeRefusal { at: pointer.clone(), is_key: false, words: alone.words };
                let leaf = place_at(self.graph, root, pointer, chosen);
                self.note(&alone, leaf.as_ref(), None, issues);
                culprits.push(pointer);
            }
        }
        let Ok(document) = Document::parse(&base) else { return false };
        let base_of = |pointer: &str| value_at(&document.root, pointer).map(|doc| doc.raw);
        let edits: Vec<(&str, Cow<'_, str>)> = if culprits.is_empty() {
            self.note(refusal, Some(place), None, issues);
            base_of(at).map(|raw| (at.as_str(), raw.into())).into_iter().collect()
        } else {
            culprits.iter().filter_map(|at| Some((*at, base_of(at)?.into()))).collect()
        };
        let touched: Vec<String> = edits.iter().map(|(at, _)| (*at).to_owned()).collect();
        let Some(text) = with_values(root.raw, edits.into_iter()) else { return false };
        let changed = text != self.text;
        self.text = text;
        self.touched.extend(touched);
        changed
    }

    /// Replaces values inside the object or list at `at` until its type accepts it. Returns the changed text, and the path and sent text
    /// of each replaced value.
    fn accepted_base(
        &mut self,
        root: &Doc<'_>,
        place: &PlannedValue<'_, '_, '_>,
        at: &str,
        chosen: &dyn Fn(NodeId, &Doc<'_>) -> Option<NodeId>,
    ) -> Option<(String, Vec<(String, String)>)> {
        self.look_around();
        let mut own: Vec<(String, String, Vec<Sample>)> = Vec::new();
        for pointer in leaves(place.doc, at, MAX_LEAVES)? {
            let leaf = place_at(self.graph, root, &pointer, chosen)?;
            // Values of these kinds are kept, because one of them may be the tag of a variant. Except for `Any`, the schema checks them
            // completely.
            if !matches!(
                self.graph.kind(leaf.node),
                NodeKind::Enum(_) | NodeKind::Const(_) | NodeKind::Bool | NodeKind::Any
            ) {
                let made = samples(self.graph, leaf.node, leaf.prop, &self.near);
                own.push((pointer, leaf.doc.raw.to_owned(), made));
            }
        }
        let most = own.iter().map(|(.., made)| made.len()).max()?;
        for turn in 0..most {
            let mut base: HashMap<&str, &str> = own
                .iter()
                .filter_map(|(at, _, made)| {
                    Some((at.as_str(), made.get(turn).or(made.first())?.text.as_str()))
                })
                .collect();
            for _ in 0..=own.len() {
                let text = with_values(root.raw, base.iter().map(|(at, raw)| (*at, (*raw).into())))?;
                let end = self.read(&text)?;
                match end.refusal {
                    Some(refusal) if refusal.at == at => break,
                    // The type refuses the replacement of an inner value, but has accepted the sent inner value. So the replacement is
                    // removed.
                    Some(refusal) if is_within(&refusal.at, at) => {
                        base.remove(refusal.at.as_str())?;
                    }
                    _ => {
                        let own = own.iter().filter(|(at, ..)| base.contains_key(at.as_str()));
                        let own = own.map(|(at, raw, _)| (at.clone(), raw.clone())).collect();
                        return Some((text, own));
                    }
                }
            }
        }
        None
    }

    /// Renames a refused key of a map, so that the value under the key is checked, too. If no name is accepted, removes the entry
    /// unchecked.
    fn pass_key(
        &mut self,
        refusal: &TypeRefusal,
        root: &Doc<'_>,
        place: &PlannedValue<'_, '_, '_>,
        issues: &[Issue],
    ) -> bool {
        let Some(parent) = &place.parent else { return false };
        let (Shape::Object(entries), NodeKind::Object(object)) =
            (&parent.doc.shape, self.graph.kind(parent.node))
        else {
            return false;
        };
        let Some(key) = edit::keys(&refusal.at).last() else { return false };
        let above = refusal.at.rfind('/').map_or("", |at| &refusal.at[..at]).to_owned();
        let before: Vec<String> =
            entries.iter().map_while(|(own, _)| (*own != *key).then(|| own.to_string())).collect();
        let has = |name: &str| entries.iter().any(|(own, _)| own == name);
        let mut taken: Option<(String, String)> = None;
        for name in key_samples(&has).filter(|name| matches!(object.child(name, 0), Some(Child::Entry(_)))) {
            let Some(text) =
                with_key(parent.doc, &key, Some(name)).and_then(|own| replaced(root, parent.doc, &own))
            else {
                continue;
            };
            let mut at = above.clone();
            push_segment(&mut at, name);
            if self.passes(&text, &at, true) {
                taken = Some((text, name.to_owned()));
                break;
            }
        }
        let example = before.first().cloned().or_else(|| taken.as_ref().map(|(_, name)| name.clone()));
        self.note_key(refusal, &key, place, example.as_deref(), issues);
        if let Some((text, name)) = taken {
            let mut at = above;
            push_segment(&mut at, &name);
            let told = self.as_sent(&refusal.at);
            self.renamed.push((at, told));
            self.text = text;
            return true;
        }
        let Some(text) = with_key(parent.doc, &key, None).and_then(|own| replaced(root, parent.doc, &own))
        else {
            return false;
        };
        let told = self.as_sent(&refusal.at);
        self.unchecked.get_or_insert(told);
        self.touched.push(refusal.at.clone());
        self.text = text;
        true
    }

    /// Adds the issue of a refusal. Does nothing if the value already has an issue, or differs from the sent value.
    fn note(
        &mut self,
        refusal: &TypeRefusal,
        place: Option<&PlannedValue<'_, '_, '_>>,
        example: Option<&str>,
        issues: &[Issue],
    ) {
        let path = self.as_sent(&refusal.at);
        let is_known = issues.iter().chain(&self.found).any(|issue| issue.path == path && !is_of_key(issue));
        let is_sent = |place: &PlannedValue<'_, '_, '_>| {
            value_at(self.sent, &path).is_some_and(|sent| sent.raw == place.doc.raw)
        };
        if is_known || place.is_some_and(|place| !is_sent(place)) {
            return;
        }
        let mut issue = Issue::new(path, IssueCode::Value, refusal.words.clone());
        let secrets = self.graph.has_secrets();
        if secrets {
            issue.problem = "refused by the type".into();
        }
        if let Some(place) = place {
            let node = self.graph.node(place.node);
            let is_hidden = place.secret || node.holds_secret;
            if !is_hidden && let Some(words) = words::of_format(self.graph, place.node, place.doc) {
                issue.problem = words.into();
            }
            issue.received =
                Some(if is_hidden { format!("{} {HIDDEN}", place.doc.kind()) } else { place.doc.shown() });
            let signature = signature(self.graph, place.node);
            issue.expected = Some(match example {
                Some(example) => format!("{signature} (like {example})"),
                None => signature.to_owned(),
            });
        }
        self.found.push(issue);
    }

    fn note_key(
        &mut self,
        refusal: &TypeRefusal,
        key: &str,
        place: &PlannedValue<'_, '_, '_>,
        example: Option<&str>,
        issues: &[Issue],
    ) {
        let path = self.as_sent(&refusal.at);
        if issues.iter().any(|issue| issue.path == path && issue.code != IssueCode::Value) {
            return;
        }
        let is_hidden = place.secret || self.graph.has_secrets();
        let words = if is_hidden { "refused by the type" } else { &refusal.words };
        let mut issue = Issue::new(path, IssueCode::Value, format!("as a key: {words}"));
        issue.received = (!is_hidden).then(|| format!("key {}", quoted(key, MAX_VALUE)));
        let example = example.filter(|_| !is_hidden);
        issue.expected = example.map(|example| format!("a key like {}", quoted(example, MAX_VALUE)));
        self.found.push(issue);
    }

    fn look_around(&mut self) {
        fn walk(doc: &Doc<'_>, out: &mut Vec<String>) {
            if out.len() >= MAX_NEAR {
                return;
            }
            match &doc.shape {
                Shape::Text(text) if text.len() <= 4 * MAX_VALUE && !out.iter().any(|own| own == text) => {
                    out.push(text.to_string());
                }
                Shape::Array(items) => items.iter().for_each(|item| walk(item, out)),
                Shape::Object(entries) => entries.iter().for_each(|(_, value)| walk(value, out)),
                _ => {}
            }
        }
        if self.near.is_empty() {
            walk(self.sent, &mut self.near);
        }
    }

    fn as_sent(&self, at: &str) -> String {
        let mut at = at.to_owned();
        for (new, old) in self.renamed.iter().rev() {
            if let Some(rest) =
                at.strip_prefix(new.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            {
                at = format!("{old}{rest}");
            }
        }
        at
    }
}

fn is_of_key(issue: &Issue) -> bool {
    issue.problem.starts_with("as a key: ")
}
