//! Checks the top-level entries of arguments one by one, while further entries are still being received. The rules are those of `Walk`,
//! except for the rules about the whole object, such as missing parameters.

use super::outcome::{SUGGESTION_BUDGET, WalkState};
use super::repair::{may_repair, repair_entry};
use super::walk::Walk;
use crate::args::document::Document;
use crate::args::issue::Issue;
use crate::args::object_keys::{KeyRole, KeyTurn, KeyUses, ObjectRules};
use crate::args::plan::{NodeId, NodeKind, Plan};
use std::borrow::Cow;

pub(crate) struct EarlyCheck {
    plan: Plan,
    may_repair: bool,
    keys: Option<KeyUses<'static, Box<str>>>,
    suggestions: usize,
    issues: Vec<Issue>,
    awaited: Awaited,
    secret: bool,
}

/// The schema for the value of the latest key.
#[derive(Clone, Copy)]
enum Awaited {
    Nothing,
    Parameter(usize),
    Entry(NodeId),
}

impl EarlyCheck {
    pub(crate) fn new(plan: &Plan) -> EarlyCheck {
        EarlyCheck {
            may_repair: may_repair(plan.graph()),
            keys: plan.graph().root_object().map(KeyUses::new),
            suggestions: SUGGESTION_BUDGET,
            issues: Vec::new(),
            awaited: Awaited::Nothing,
            secret: plan.graph().has_secrets(),
            plan: plan.clone(),
        }
    }

    pub(crate) fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// Returns whether the value of the latest key may contain a secret. For an unknown key, which may be misspelled, returns whether the
    /// tool has any secret.
    pub(crate) fn is_secret(&self) -> bool {
        self.secret
    }

    /// Checks a key of the arguments. Returns the number of issues before this key.
    pub(crate) fn key(&mut self, key: &str) -> usize {
        let before = self.issues.len();
        self.awaited = Awaited::Nothing;
        let graph = self.plan.graph();
        let (Some(object), Some(keys)) = (graph.root_object(), &mut self.keys) else { return before };
        let rules = ObjectRules::new(graph, object, true);
        let (role, turn) = keys.add(&rules, Cow::Owned(key.to_owned()), key.into());
        let prop = match role {
            KeyRole::Property(index) => object.props.get(index),
            _ => None,
        };
        self.secret = match prop {
            Some(prop) => prop.secret || graph.node(prop.node).holds_secret,
            None => graph.has_secrets(),
        };
        let shared = WalkState::new(graph, key, None, false);
        shared.suggestions.set(self.suggestions);
        let mut walk = Walk::new(&shared, Some(&mut self.issues));
        match (role, turn) {
            (KeyRole::Property(index), KeyTurn::First) => self.awaited = Awaited::Parameter(index),
            (KeyRole::Entry(node), KeyTurn::First) => self.awaited = Awaited::Entry(node),
            (KeyRole::Unknown, KeyTurn::First) => walk.unknown(object, &|index| keys.has(index), &[key]),
            (KeyRole::Unknown, _) | (_, KeyTurn::First | KeyTurn::Later) => {}
            (_, KeyTurn::Second(before)) => walk.twice(key, before),
        }
        self.suggestions = shared.suggestions.get();
        before
    }

    /// Checks the value of the latest key. The caller has checked that `text` is JSON. Returns the number of issues before this value.
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
        // The content of a JSON string may nest too deeply to be parsed. The value is then checked without repairs.
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

/// Returns whether a schema node accepts every string, so that a long string need not be read again.
fn takes_any_text(kind: &NodeKind) -> bool {
    match kind {
        NodeKind::Any => true,
        NodeKind::Str(spec) => spec.is_plain,
        _ => false,
    }
}
