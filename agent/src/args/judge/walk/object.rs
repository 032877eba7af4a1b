//! Compares an object with its schema. Issues are in this order: unknown keys as they were sent, parameters as declared, map entries as
//! they were sent, and the number of entries.

use super::{Walk, WalkSegment};
use crate::args::document::{Doc, Document, Shape};
use crate::args::issue::IssueCode;
use crate::args::object_keys::{KeyRole, KeyTurn, KeyUse, KeyUses, NullMeaning, ObjectRules, null_meaning};
use crate::args::plan::{Graph, NodeId, NodeKind, ObjectSpec, Prop};
use crate::args::signature::signature;
use crate::args::suggest::{has_close_name, near_names};
use crate::args::text::{MAX_VALUE, cut, push_cut};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Clone, Copy)]
struct GivenEntry<'w, 't> {
    key: &'w str,
    doc: &'w Doc<'t>,
}

type GivenKeys<'w, 't> = KeyUses<'w, GivenEntry<'w, 't>>;

impl<'w> Walk<'w, '_> {
    pub(super) fn object<'t>(
        &mut self,
        object: &'w ObjectSpec,
        raw: &str,
        entries: &'w [(Cow<'t, str>, Doc<'t>)],
    ) {
        let rules = ObjectRules::new(self.graph, object, self.shared.is_root(raw));
        let mut keys: GivenKeys<'w, 't> = KeyUses::new(object);
        let mut rest: Vec<(NodeId, GivenEntry<'w, 't>)> = Vec::new();
        let mut unknown: Vec<&'w str> = Vec::new();
        let mut count = 0;
        for (key, doc) in entries {
            let given = GivenEntry { key, doc };
            match keys.add(&rules, Cow::Borrowed(key), given) {
                (KeyRole::Entry(node), turn) => {
                    if matches!(turn, KeyTurn::First) {
                        count += 1;
                        rest.push((node, given));
                    }
                }
                // A dropped key that was sent twice is reported, because it is uncertain which of its values was meant.
                (KeyRole::Dropped, KeyTurn::Second(before)) => self.twice(key, before.key),
                (KeyRole::Dropped, _) => self.note_coercion(),
                (KeyRole::Unknown, KeyTurn::First) => unknown.push(key),
                (KeyRole::Unknown | KeyRole::Property(_), _) => {}
            }
        }
        let known = self.kept();
        self.unknown(object, &|index| keys.has(index), &unknown);
        self.around(object, entries, &unknown, known);
        let meant = self.perhaps_meant(&rules, &unknown, &keys, known);
        for (index, prop) in object.props.iter().enumerate() {
            match keys.property(index) {
                Some(KeyUse { first, again }) => {
                    count += u64::from(!(first.doc.is_null() && prop.null_absent));
                    match again {
                        Some(again) => self.twice(again.key, first.key),
                        None => self.parameter(prop, first.key, first.doc),
                    }
                }
                None if prop.required => self.missing(prop, meant),
                None => {}
            }
        }
        for (node, given) in rest {
            match keys.other(&rules, given.key) {
                Some(KeyUse { again: Some(again), .. }) => self.twice(again.key, given.key),
                _ => self.entry(node, given.key, given.doc),
            }
        }
        if !object.takes_length(count) {
            let few = count < object.min;
            let problem = if few {
                format!("too few entries ({count})")
            } else {
                format!("too many entries ({count})")
            };
            self.add(IssueCode::Length, |_, issue| issue.problem = problem);
        }
    }

    /// Reports each key that matches no parameter. Parameters that were given are not suggested.
    pub(in crate::args::judge) fn unknown(
        &mut self,
        object: &'w ObjectSpec,
        is_given: &dyn Fn(usize) -> bool,
        unknown: &[&'w str],
    ) {
        for key in unknown {
            self.below(WalkSegment::Key(key), |walk| {
                walk.add(IssueCode::Unknown, |walk, issue| {
                    issue.problem = match &object.patterns[..] {
                        [(pattern, _)] if object.props.is_empty() && pattern.is_integer_key() => {
                            "the key must be a whole number".into()
                        }
                        [(pattern, _)] if object.props.is_empty() => {
                            format!("the key does not match {}", cut(&pattern.source, MAX_VALUE))
                        }
                        _ => "unknown parameter".into(),
                    };
                    if walk.may_suggest() && walk.shared.may_suggest(object.props.len(), key) {
                        let free = object.names(|index| !is_given(index));
                        issue.suggestions = near_names(key, free).into_iter().map(String::from).collect();
                    }
                    if (issue.suggestions.is_empty() || key.contains(['.', '/']))
                        && let Some((home, name)) = walk.graph.home(object, key)
                    {
                        let home = cut(home.unwrap_or(name), MAX_VALUE);
                        issue.problem = if key.contains(name) && home == name {
                            format!("unknown parameter; write `{home}`")
                        } else {
                            format!("unknown parameter; it belongs inside `{home}`")
                        };
                        issue.is_mendable = true;
                    }
                    // At the top level, the report lists all parameters anyway.
                    if issue.suggestions.is_empty() && walk.path.len() > 1 && walk.list_allowed() {
                        issue.allowed = object.props.iter().map(|p| Value::from(p.name.as_str())).collect();
                    }
                });
            });
        }
    }

    /// Advises to send only the inner object of `{"unknown": {…}}`, if the inner object fits the schema. Does nothing at the root. `index`
    /// is the index of the issue about the key.
    fn around(
        &mut self,
        object: &'w ObjectSpec,
        entries: &'w [(Cow<'_, str>, Doc<'_>)],
        unknown: &[&str],
        index: usize,
    ) {
        let ([(_, inner)], [_], false) = (entries, unknown, self.path.is_empty() || self.out.is_none())
        else {
            return;
        };
        let Shape::Object(below) = &inner.shape else { return };
        let mut probe = Walk::new(self.shared, None);
        probe.object(object, inner.raw, below);
        if probe.found.count == 0
            && !below.is_empty()
            && let Some(issue) = self.out.as_mut().and_then(|out| out.get_mut(index))
        {
            issue.problem = "unknown parameter: send what is inside, without anything around it".into();
            issue.is_mendable = true;
        }
    }

    /// Returns the only unknown key, if the key probably means the only missing parameter. The value of the key must fit the parameter,
    /// and the key must not resemble the name of another absent parameter. Sets `is_mendable` of the issue about the key.
    fn perhaps_meant(
        &mut self,
        rules: &ObjectRules<'w>,
        unknown: &[&'w str],
        keys: &GivenKeys<'w, '_>,
        known: usize,
    ) -> Option<&'w str> {
        if self.kept() != known + 1 {
            return None;
        }
        let object = rules.object;
        let mut missing = keys.missing(object);
        let ([key], Some(prop), None) = (unknown, missing.next(), missing.next()) else { return None };
        let KeyUse { first: GivenEntry { doc, .. }, again: None } = keys.other(rules, key)? else {
            return None;
        };
        // If the parameter accepts any value, a fitting value does not show that the key means the parameter.
        let takes_anything = matches!(self.graph.kind(prop.node), NodeKind::Any);
        if takes_anything
            || says_nothing(self.graph, prop.node, doc)
            || Walk::count(self.shared, prop.node, doc).count > 0
        {
            return None;
        }
        let is_free = |index: usize| {
            !keys.has(index) && object.props.get(index).is_some_and(|other| !std::ptr::eq(other, prop))
        };
        if (0..object.props.len()).any(is_free) && has_close_name(key, object.names(is_free)) {
            return None;
        }
        self.out.as_mut()?.last_mut()?.is_mendable = true;
        Some(key)
    }

    fn missing(&mut self, prop: &'w Prop, meant: Option<&'w str>) {
        self.below(WalkSegment::Key(&prop.name), |walk| {
            walk.add(IssueCode::Missing, |walk, issue| {
                let room = meant.map_or(0, |key| key.len().min(MAX_VALUE) + 40);
                issue.problem.reserve_exact(21 + room);
                issue.problem.push_str("required, but missing");
                if let Some(key) = meant {
                    issue.problem.push_str(": perhaps `");
                    push_cut(&mut issue.problem, key, MAX_VALUE);
                    issue.problem.push_str("` is meant for it");
                }
                issue.expected = Some(signature(walk.graph, prop.node).into());
            });
        });
    }

    /// Reports a key that was given before, under this name or another name of the same parameter.
    pub(in crate::args::judge) fn twice(&mut self, key: &'w str, before: &str) {
        let problem =
            if before == key { "given twice".into() } else { format!("given twice (also as {before:?})") };
        self.below(WalkSegment::Key(key), |walk| {
            walk.add(IssueCode::Duplicate, |_, issue| issue.problem = problem);
        });
    }

    pub(in crate::args::judge) fn parameter(&mut self, prop: &'w Prop, key: &'w str, doc: &'w Doc<'_>) {
        // Most parameters of a refused call fit exactly, and `fits_exactly` is faster than a full comparison.
        if self.out.is_some() && doc.fits_exactly(self.graph, prop.node) {
            return;
        }
        let secret = self.secret;
        self.secret |= prop.secret;
        let known = self.kept();
        self.below(WalkSegment::Key(key), |walk| match null_meaning(walk.graph, prop) {
            NullMeaning::Absent if doc.is_null() => walk.note_coercion(),
            NullMeaning::Refused if doc.is_null() => {
                walk.fault(IssueCode::Type, "must not be null; leave it out instead", prop.node, doc);
            }
            _ => walk.check(prop.node, doc),
        });
        let is_told = self.kept() > known;
        let may_show = !self.secret && !self.graph.node(prop.node).holds_secret;
        if is_told && !prop.required && may_show && says_nothing(self.graph, prop.node, doc) {
            let depth = self.path.len();
            for issue in self.out.iter_mut().flat_map(|out| out.iter_mut().skip(known)) {
                issue.is_mendable = true;
                if issue.problem.ends_with(LEAVE_OUT) {
                    continue;
                }
                if issue.path.matches('/').count() > depth + 1 {
                    issue.problem.push_str("; `");
                    issue.problem.push_str(&cut(&prop.name, MAX_VALUE));
                    issue.problem.push_str("` is");
                } else {
                    issue.problem.push(';');
                }
                issue.problem.push_str(LEAVE_OUT);
            }
        }
        self.secret = secret;
    }

    pub(in crate::args::judge) fn entry(&mut self, node: NodeId, key: &'w str, doc: &'w Doc<'_>) {
        self.below(WalkSegment::Key(key), |walk| walk.check(node, doc));
    }
}

const LEAVE_OUT: &str = " optional: leave it out if there is none";

/// Returns whether a value looks like a filler for an absent value: a text such as `none`, or a container that contains only fillers. An
/// object whose only key is an enum value, such as `{"Newest": {}}`, is not a filler.
pub(crate) fn says_nothing(graph: &Graph, id: NodeId, doc: &Doc<'_>) -> bool {
    is_nothing(graph, Some(id), doc)
}

/// Implements [`says_nothing`]. `id` is `None` if the schema does not describe the value.
fn is_nothing(graph: &Graph, id: Option<NodeId>, doc: &Doc<'_>) -> bool {
    match &doc.shape {
        Shape::Text(text) => is_filler(text) || is_empty_json(graph, id, text),
        Shape::Object(entries) => {
            let is_word = |key| id.is_some_and(|id| graph.names_word(id, key));
            let below = |key| id.and_then(|id| graph.below(id, key));
            !matches!(entries.as_slice(), [(key, _)] if is_word(key))
                && entries.iter().all(|(key, item)| item.is_null() || is_nothing(graph, below(key), item))
        }
        // A null in a list may be a real item, so a list with a null is not a filler.
        Shape::Array(items) => {
            let item = id.and_then(|id| graph.item(id));
            items.iter().all(|doc| is_nothing(graph, item, doc))
        }
        _ => false,
    }
}

fn is_empty_json(graph: &Graph, id: Option<NodeId>, text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && Document::parse(text).is_ok_and(|document| is_nothing(graph, id, &document.root))
}

fn is_filler(text: &str) -> bool {
    ["", "null", "none", "nil", "undefined", "n/a"].iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}
