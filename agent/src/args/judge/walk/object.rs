//! Keys: first unknown ones in the order sent, then the parameters as declared, then map entries in the order sent.

use super::{Walk, WalkSegment};
use crate::args::document::{Doc, Document, Shape};
use crate::args::hash::NameHash;
use crate::args::issue::IssueCode;
use crate::args::plan::{Child, Graph, NodeId, NodeKind, ObjectSpec, Prop, UnlistedKey};
use crate::args::policy::Rules;
use crate::args::signature::signature;
use crate::args::suggest::{has_close_name, near_names};
use crate::args::text::{MAX_VALUE, cut, push_cut};
use serde_json::Value;
use std::{borrow::Cow, collections::HashMap, collections::HashSet};

/// How one parameter was given.
#[derive(Clone, Copy)]
struct ParameterUse<'w, 't> {
    key: &'w str,
    doc: &'w Doc<'t>,
    /// The name or alias under which it was given before.
    before: Option<&'w str>,
}

impl<'w> Walk<'w, '_> {
    pub(super) fn object<'t>(
        &mut self,
        object: &'w ObjectSpec,
        raw: &str,
        entries: &'w [(Cow<'t, str>, Doc<'t>)],
    ) {
        let mut given: Vec<Option<ParameterUse<'w, 't>>> = vec![None; object.props.len()];
        let mut rest: Vec<(&'w str, NodeId, &'w Doc<'t>)> = Vec::new();
        let mut unknown: Vec<&'w str> = Vec::new();
        let mut hint = 0;
        for (key, doc) in entries {
            match object.child(key, hint) {
                Some(Child::Prop(index, _)) => {
                    hint = index + 1;
                    let before = given[index].map(|g| g.key);
                    given[index] = Some(ParameterUse { key, doc, before });
                }
                Some(Child::Entry(node)) => rest.push((key, node, doc)),
                None => unknown.push(key),
            }
        }
        let unlisted = self.graph.unlisted(object, self.shared.is_root(raw));
        let mut count = rest.len();
        let mut meant = None;
        if unlisted == UnlistedKey::Kept {
            count += unknown.len();
            let any = self.graph.any;
            let docs = entries.iter().filter(|(key, _)| object.child(key, 0).is_none());
            rest.extend(docs.map(|(key, doc)| (key.as_ref(), any, doc)));
        } else if unlisted == UnlistedKey::Dropped {
            if !unknown.is_empty() {
                self.note_coercion();
            }
            // Dropped or not: which of the two was meant?
            let mut seen: HashMap<&str, bool> = HashMap::new();
            for key in &unknown {
                match seen.get_mut(key) {
                    None => {
                        seen.insert(key, false);
                    }
                    Some(told) => {
                        if !std::mem::replace(told, true) {
                            self.twice(key, key);
                        }
                    }
                }
            }
        } else {
            let known = self.out.as_ref().map_or(0, |out| out.len());
            self.unknown(object, &|index| given.get(index).is_some_and(Option::is_some), &unknown);
            self.around(object, entries, &unknown);
            meant = self.perhaps_meant(object, entries, &unknown, &given, known);
        }
        for (prop, given) in object.props.iter().zip(&given) {
            count += usize::from(given.is_some_and(|g| !(g.doc.is_null() && prop.null_absent)));
            match given {
                Some(given) => self.given(prop, *given),
                None if prop.required => self.missing(prop, meant),
                None => {}
            }
        }
        self.entries(object, &rest);
        let count = count as u64;
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

    /// Reports keys that match no parameter; parameters that were given are not suggested.
    pub(in crate::args::judge) fn unknown(
        &mut self,
        object: &'w ObjectSpec,
        is_given: &dyn Fn(usize) -> bool,
        unknown: &[&'w str],
    ) {
        let mut known = HashSet::with_hasher(NameHash::default());
        for key in unknown.iter().filter(|key| unknown.len() == 1 || known.insert(**key)) {
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
                    // At the top the list of all parameters follows anyway.
                    if issue.suggestions.is_empty() && walk.path.len() > 1 && walk.list_allowed() {
                        issue.allowed = object.props.iter().map(|p| Value::from(p.name.as_str())).collect();
                    }
                });
            });
        }
    }

    /// If the only key is unknown and holds an object that fits here, something was put around it.
    fn around(&mut self, object: &'w ObjectSpec, entries: &'w [(Cow<'_, str>, Doc<'_>)], unknown: &[&str]) {
        let ([(_, inner)], [_], false) = (entries, unknown, self.path.is_empty() || self.out.is_none())
        else {
            return;
        };
        let Shape::Object(below) = &inner.shape else { return };
        let mut probe = Walk::new(self.shared, None);
        probe.object(object, inner.raw, below);
        if probe.found.count == 0
            && !below.is_empty()
            && let Some(issue) = self.out.as_mut().and_then(|out| out.last_mut())
        {
            issue.problem = "unknown parameter: send what is inside, without anything around it".into();
            issue.is_mendable = true;
        }
    }

    /// If one key is unknown and one required parameter is missing, and the value fits it, they may be the same. Returns the key.
    fn perhaps_meant(
        &mut self,
        object: &'w ObjectSpec,
        entries: &'w [(Cow<'_, str>, Doc<'_>)],
        unknown: &[&'w str],
        given: &[Option<ParameterUse<'w, '_>>],
        known: usize,
    ) -> Option<&'w str> {
        if self.out.as_ref().is_none_or(|out| out.len() != known + 1) {
            return None;
        }
        let mut missing =
            object.props.iter().zip(given).filter(|(prop, given)| prop.required && given.is_none());
        let ([key], Some((prop, _)), None) = (unknown, missing.next(), missing.next()) else { return None };
        let (_, doc) = entries.iter().find(|(own, _)| own == key)?;
        // A parameter that accepts anything fits every key.
        let takes_anything = matches!(self.graph.kind(prop.node), NodeKind::Any);
        if takes_anything
            || says_nothing(self.graph, prop.node, doc)
            || Walk::count(self.shared, prop.node, doc).count > 0
        {
            return None;
        }
        let is_free = |index: usize| {
            given.get(index).is_some_and(Option::is_none)
                && object.props.get(index).is_some_and(|other| !std::ptr::eq(other, prop))
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

    fn given(&mut self, prop: &'w Prop, given: ParameterUse<'w, '_>) {
        match given.before {
            Some(before) => self.twice(given.key, before),
            None => self.parameter(prop, given.key, given.doc),
        }
    }

    /// Reports a key that was given before, under this name or another name of the same parameter.
    pub(in crate::args::judge) fn twice(&mut self, key: &'w str, before: &str) {
        let problem =
            if before == key { "given twice".into() } else { format!("given twice (also as {before:?})") };
        self.below(WalkSegment::Key(key), |walk| {
            walk.add(IssueCode::Duplicate, |_, issue| issue.problem = problem);
        });
    }

    /// Checks a parameter that was given once.
    pub(in crate::args::judge) fn parameter(&mut self, prop: &'w Prop, key: &'w str, doc: &'w Doc<'_>) {
        // Most parameters of a refused call are as they should be.
        if self.out.is_some() && doc.fits_exactly(self.graph, prop.node) {
            return;
        }
        let secret = self.secret;
        self.secret |= prop.secret;
        let known = self.out.as_ref().map_or(0, |out| out.len());
        self.below(WalkSegment::Key(key), |walk| {
            if !(doc.is_null() && prop.null_absent) {
                walk.check(prop.node, doc);
            } else if walk.graph.node(prop.node).rules.has(Rules::NULL_ABSENT) {
                walk.note_coercion();
            } else {
                walk.fault(IssueCode::Type, "must not be null; leave it out instead", prop.node, doc);
            }
        });
        let is_told = self.out.as_ref().is_some_and(|out| out.len() > known);
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

    /// Checks a map entry that was given once.
    pub(in crate::args::judge) fn entry(&mut self, node: NodeId, key: &'w str, doc: &'w Doc<'_>) {
        self.below(WalkSegment::Key(key), |walk| walk.check(node, doc));
    }

    fn entries(&mut self, object: &ObjectSpec, rest: &[(&'w str, NodeId, &'w Doc<'_>)]) {
        if rest.is_empty() {
            return;
        }
        let graph = self.graph;
        let identity = |key: &'w str| graph.identity(object, key);
        let mut first: HashMap<Cow<'_, str>, &str> = HashMap::with_capacity(rest.len());
        let mut again: HashMap<Cow<'_, str>, &str> = HashMap::new();
        for (key, ..) in rest {
            if let Some(before) = first.insert(identity(key), key) {
                first.insert(identity(key), before);
                again.entry(identity(key)).or_insert(key);
            }
        }
        let mut told = HashSet::new();
        for (key, node, doc) in rest {
            let same = identity(key);
            match again.get(&same) {
                None => self.entry(*node, key, doc),
                Some(again) if told.insert(same) => self.twice(again, key),
                Some(_) => {}
            }
        }
    }
}

const LEAVE_OUT: &str = " optional: leave it out if there is none";

/// Whether a value looks like a filler for one that does not exist: a word for nothing, or a container of nothing else whose keys name
/// nothing either.
pub(crate) fn says_nothing(graph: &Graph, id: NodeId, doc: &Doc<'_>) -> bool {
    is_nothing(graph, Some(id), doc)
}

/// `id` is what belongs here, if that is known.
fn is_nothing(graph: &Graph, id: Option<NodeId>, doc: &Doc<'_>) -> bool {
    match &doc.shape {
        Shape::Text(text) => is_filler(text) || is_empty_json(graph, id, text),
        Shape::Object(entries) => {
            let is_word = |key| id.is_some_and(|id| graph.names_word(id, key));
            let below = |key| id.and_then(|id| graph.below(id, key));
            !matches!(entries.as_slice(), [(key, _)] if is_word(key))
                && entries.iter().all(|(key, item)| item.is_null() || is_nothing(graph, below(key), item))
        }
        // The meaning of null in a list is not known.
        Shape::Array(items) => {
            let item = id.and_then(|id| graph.item(id));
            items.iter().all(|doc| is_nothing(graph, item, doc))
        }
        _ => false,
    }
}

/// Whether a text is JSON of a container that says nothing.
fn is_empty_json(graph: &Graph, id: Option<NodeId>, text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && Document::parse(text).is_ok_and(|document| is_nothing(graph, id, &document.root))
}

/// Whether a text is a habitual word for nothing.
fn is_filler(text: &str) -> bool {
    ["", "null", "none", "nil", "undefined", "n/a"].iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}
