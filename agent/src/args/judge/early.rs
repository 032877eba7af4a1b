//! Checks the entries of the arguments one by one while the others are still being received.
//!
//! The rules are those of the walk, except for those about the whole object (missing parameters, number of entries).

use super::outcome::{SUGGESTION_BUDGET, WalkState};
use super::repair::{may_repair, repair_entry};
use super::walk::Walk;
use crate::args::document::Document;
use crate::args::issue::Issue;
use crate::args::plan::{Child, NodeId, NodeKind, Plan, UnlistedKey};
use std::collections::HashMap;

pub(crate) struct EarlyCheck {
    plan: Plan,
    may_repair: bool,
    /// How each parameter was given.
    given: Vec<Option<SeenParameter>>,
    /// Map entries and unknown keys.
    others: HashMap<Box<str>, SeenParameter>,
    suggestions: usize,
    issues: Vec<Issue>,
    awaited: Awaited,
    hint: usize,
    secret: bool,
}

struct SeenParameter {
    key: Box<str>,
    told: Told,
}

/// Whether it was reported that this key is given twice.
type Told = bool;

/// The definition that the value of the latest key has to fit.
#[derive(Clone, Copy)]
enum Awaited {
    Nothing,
    Parameter(usize),
    Entry(NodeId),
}

impl EarlyCheck {
    pub(crate) fn new(plan: &Plan) -> EarlyCheck {
        let count = plan.graph().root_object().map_or(0, |object| object.props.len());
        EarlyCheck {
            may_repair: may_repair(plan.graph()),
            given: std::iter::repeat_with(|| None).take(count).collect(),
            others: HashMap::new(),
            suggestions: SUGGESTION_BUDGET,
            issues: Vec::new(),
            awaited: Awaited::Nothing,
            hint: 0,
            secret: plan.graph().has_secrets(),
            plan: plan.clone(),
        }
    }

    pub(crate) fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// Whether the value of the latest key, or the whole, may contain a secret. An unknown key may be a misspelled secret.
    pub(crate) fn is_secret(&self) -> bool {
        self.secret
    }

    /// Processes a key of the arguments. Returns the number of issues before it.
    pub(crate) fn key(&mut self, key: &str) -> usize {
        let before = self.issues.len();
        self.awaited = Awaited::Nothing;
        let graph = self.plan.graph();
        let Some(object) = graph.root_object() else { return before };
        self.secret = graph.has_secrets();
        let shared = WalkState::new(graph, key, None, false);
        shared.suggestions.set(self.suggestions);
        let mut walk = Walk::new(&shared, Some(&mut self.issues));
        let unlisted = graph.unlisted(object, true);
        let entry = match object.child(key, self.hint) {
            Some(Child::Prop(index, node)) => {
                self.hint = index + 1;
                self.secret =
                    graph.node(node).holds_secret || object.props.get(index).is_none_or(|p| p.secret);
                match self.given.get_mut(index) {
                    Some(Some(seen)) if seen.told => {}
                    Some(Some(seen)) => {
                        seen.told = true;
                        walk.twice(key, &seen.key);
                    }
                    Some(new) => {
                        *new = Some(SeenParameter { key: key.into(), told: false });
                        self.awaited = Awaited::Parameter(index);
                    }
                    None => {}
                }
                return before;
            }
            Some(Child::Entry(node)) => Some(node),
            None if unlisted == UnlistedKey::Kept => Some(graph.any),
            None => None,
        };
        let strip = unlisted == UnlistedKey::Dropped;
        let identity = graph.identity(object, key);
        match (self.others.get_mut(identity.as_ref()), entry) {
            (None, _) => {
                let seen = SeenParameter { key: key.into(), told: entry.is_none() && !strip };
                self.others.insert(identity.into(), seen);
                if let Some(node) = entry {
                    self.awaited = Awaited::Entry(node);
                } else if !strip {
                    let given = &self.given;
                    walk.unknown(object, &|index| given.get(index).is_some_and(Option::is_some), &[key]);
                }
            }
            (Some(seen), _) if !seen.told => {
                seen.told = true;
                walk.twice(key, &seen.key);
            }
            _ => {}
        }
        self.suggestions = shared.suggestions.get();
        before
    }

    /// Processes the value of the latest key; its text is known to be JSON. Returns the number of issues before it.
    pub(crate) fn value(&mut self, key: &str, text: &str) -> usize {
        let before = self.issues.len();
        let graph = self.plan.graph();
        let awaited = std::mem::replace(&mut self.awaited, Awaited::Nothing);
        let prop = match awaited {
            Awaited::Nothing => return before,
            Awaited::Entry(_) => None,
            Awaited::Parameter(index) => graph.root_object().and_then(|object| object.props.get(index)),
        };
        let node = match (awaited, prop) {
            (Awaited::Entry(node), _) => node,
            (_, Some(prop)) => prop.node,
            _ => return before,
        };
        if text.starts_with('"') && takes_any_text(graph.kind(node)) {
            return before;
        }
        let Some(sent) = Document::read(text) else { return before };
        let mended = if self.may_repair { repair_entry(graph, node, key, &sent.root) } else { None };
        let wrapped = mended.as_ref().map(|(_, wrapped)| wrapped);
        // Decoded text may nest deeper than JSON is read; then nothing was mended.
        let mended = mended.as_ref().and_then(|(text, _)| Document::parse(text).ok());
        let document = mended.as_ref().unwrap_or(&sent);
        let shared = WalkState::new(graph, document.root.raw, None, false);
        shared.suggestions.set(self.suggestions);
        let mut walk = Walk::new(&shared, Some(&mut self.issues));
        match prop {
            Some(prop) => walk.parameter(prop, key, &document.root),
            None => walk.entry(node, key, &document.root),
        }
        self.suggestions = shared.suggestions.get();
        if let Some(wrapped) = wrapped {
            wrapped.move_back(self.issues.get_mut(before..).unwrap_or_default());
        }
        before
    }
}

/// Whether no string can have an issue, so that a long one need not be read again.
fn takes_any_text(kind: &NodeKind) -> bool {
    match kind {
        NodeKind::Any => true,
        NodeKind::Str(spec) => spec.is_plain(),
        _ => false,
    }
}
