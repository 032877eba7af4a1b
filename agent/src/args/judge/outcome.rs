//! Decides which branch of a union (an alternative of `anyOf` or `oneOf`) a value belongs to.

use super::walk::{Walk, WalkSummary};
use crate::args::document::{Doc, Document};
use crate::args::plan::{Graph, NodeId, NodeKind, PlanNode};
use crate::args::read::{Context, PlanDe, ValueJudge, ValuePosition};
use crate::args::text::offset_in;
use crate::name_hash::NameHash;
use serde::de::Deserialize;
use serde_json::Value;
use std::{cell::Cell, cell::RefCell, cmp::Ordering, collections::HashMap, collections::HashSet};

/// The budget for suggestions about one text. Each comparison costs 8 to 64. When the budget is spent, issues have no suggestions.
pub(super) const SUGGESTION_BUDGET: usize = 200_000;

/// The budget for checks (`NodeCheck`) in all walks over one text. A check costs 1, plus 1 for each 64 bytes of its value.
const CHECK_BUDGET: usize = 300_000;

/// A schema node, and the offset of a value in the text.
type PlaceKey = (NodeId, usize);

/// The state that all [`Walk`]s over one text share. A walk compares a value with the schema. Values are slices of this text, so the
/// offset of a value identifies it.
pub(crate) struct WalkState<'w> {
    pub(super) graph: &'w Graph,
    text: &'w str,
    /// The offset of the arguments in `text`, or `None` if only an inner value is compared.
    root: Option<usize>,
    /// Whether `uniqueItems` is ignored. This is so while the items of a list are compared, so that lists within lists do not multiply the
    /// work.
    pub(super) silent: bool,
    /// The chosen branch of each union for each value. Without this map, a nested union would be tried again for every branch around it.
    choices: RefCell<HashMap<PlaceKey, Choice, NameHash>>,
    pub(super) suggestions: Cell<usize>,
    checks: Cell<usize>,
    pub(super) depth: Cell<usize>,
    /// The values that passed the checks (`NodeCheck`) of a node, each with the node.
    passed: RefCell<HashSet<PlaceKey, NameHash>>,
}

#[derive(Clone, Copy)]
pub(super) enum Choice {
    Fits {
        branch: NodeId,
        coerced: bool,
        non_schema_coercion: bool,
        beyond_strict: bool,
    },
    /// No branch fits. `branch` has the fewest issues. A branch that refuses the type of the value is chosen only if all branches do
    /// (`root_type_mismatch`).
    Closest {
        branch: NodeId,
        count: usize,
        root_type_mismatch: bool,
        /// Whether there is a branch whose only issues are integers that exceed 64 bits or may have been rounded.
        but_for_width: bool,
    },
    /// Several branches of a `oneOf` fit. A branch also counts if its only issues are integers that exceed 64 bits or may have been
    /// rounded.
    Ambiguous,
    /// One branch of an exclusive union fits, but the value contains a key twice, as in `{"a": 1, "a": 2}`. Another branch might fit the
    /// other `a`.
    Doubled,
    Nothing,
}

impl Choice {
    fn branch(&self) -> Option<NodeId> {
        match self {
            Choice::Fits { branch, .. } => Some(*branch),
            _ => None,
        }
    }
}

impl<'w> WalkState<'w> {
    pub(crate) fn new(
        graph: &'w Graph,
        text: &'w str,
        root: Option<&Doc<'_>>,
        silent: bool,
    ) -> WalkState<'w> {
        let root = root.and_then(|doc| offset_in(text, doc.raw));
        WalkState {
            graph,
            text,
            root,
            silent,
            choices: RefCell::default(),
            suggestions: Cell::new(SUGGESTION_BUDGET),
            checks: Cell::new(CHECK_BUDGET),
            depth: Cell::new(0),
            passed: RefCell::default(),
        }
    }

    pub(super) fn another<'x>(&'x self, text: &'x str) -> WalkState<'x> {
        let other = WalkState::new(self.graph, text, None, self.silent);
        other.suggestions.set(self.suggestions.get());
        other.checks.set(self.checks.get());
        other.depth.set(self.depth.get());
        other
    }

    pub(super) fn take_back(&self, other: &WalkState<'_>) {
        self.suggestions.set(other.suggestions.get());
        self.checks.set(other.checks.get());
    }

    /// Takes the cost of a check (such as `not`) from the budget. Returns `false` if the budget is too small. Without a budget, nested
    /// checks could multiply the work.
    pub(super) fn may_check(&self, raw: &str) -> bool {
        let left = self.checks.get().checked_sub(1 + raw.len() / 64);
        self.checks.set(left.unwrap_or(0));
        left.is_some()
    }

    pub(super) fn passed(&self, node: NodeId, raw: &str) {
        self.passed.borrow_mut().extend(offset_in(self.text, raw).map(|at| (node, at)));
    }

    fn chosen(&self, union: NodeId, raw: &str) -> Option<NodeId> {
        self.choices.borrow().get(&(union, offset_in(self.text, raw)?))?.branch()
    }

    /// Returns the branch of a union that fits a value, or `None` if the union refuses the value or `node` is not a union.
    pub(crate) fn fitting(&self, node: NodeId, doc: &Doc<'_>) -> Option<NodeId> {
        let NodeKind::Union { branches, exclusive } = self.graph.kind(node) else { return None };
        self.choose(self.graph.node(node), branches, *exclusive, doc).branch()
    }

    /// Returns the branch of a union that fits a value, or else the closest branch. Returns `None` if no single branch can be chosen, or
    /// if `node` is not a union.
    pub(crate) fn closest(&self, node: NodeId, doc: &Doc<'_>) -> Option<NodeId> {
        let NodeKind::Union { branches, exclusive } = self.graph.kind(node) else { return None };
        match self.choose(self.graph.node(node), branches, *exclusive, doc) {
            Choice::Fits { branch, .. } | Choice::Closest { branch, .. } => Some(branch),
            _ => None,
        }
    }

    pub(super) fn is_root(&self, raw: &str) -> bool {
        self.root.is_some() && self.root == offset_in(self.text, raw)
    }

    /// Takes the cost of comparing a text with this many candidates from the budget. Returns whether the budget was sufficient.
    pub(super) fn may_suggest(&self, candidates: usize, sent: &str) -> bool {
        match self.suggestions.get().checked_sub(candidates.saturating_mul(sent.len().clamp(8, 64))) {
            Some(left) => {
                self.suggestions.set(left);
                true
            }
            None => false,
        }
    }

    /// Chooses the branch of a union for a value: the first that accepts the value unchanged, else the first that coerces it, else the
    /// closest. If `exclusive` is set (`oneOf`), several equally good branches are [`Choice::Ambiguous`].
    pub(super) fn choose(
        &self,
        node: &PlanNode,
        branches: &[NodeId],
        exclusive: bool,
        doc: &Doc<'_>,
    ) -> Choice {
        let place = offset_in(self.text, doc.raw).map(|at| (node.id, at));
        if let Some(choice) = place.and_then(|place| self.choices.borrow().get(&place).copied()) {
            return choice;
        }
        let choice = self.find(branches, exclusive, doc);
        self.choices.borrow_mut().extend(place.map(|place| (place, choice)));
        choice
    }

    fn find(&self, branches: &[NodeId], exclusive: bool, doc: &Doc<'_>) -> Choice {
        let mut fitting: Option<(NodeId, WalkSummary)> = None;
        // The distance is greater if a branch needs a wider coercion policy. In an exclusive union (`oneOf`), reading `1.0` as an integer
        // is not a coercion, as in JSON Schema.
        let distance = |found: &WalkSummary| match (exclusive, found) {
            (false, found) => u8::from(found.coerced),
            (true, WalkSummary { non_schema_coercion: false, .. }) => 0,
            (true, found) => 1 + u8::from(found.beyond_strict),
        };
        let mut several = false;
        let mut but_for_width = false;
        let mut closest: Option<(NodeId, WalkSummary)> = None;
        for branch in branches {
            let found = Walk::count(self, *branch, doc);
            if found.count > 0 {
                but_for_width |= found.count == found.unrepresentable;
                if closest.as_ref().is_none_or(|(_, best)| {
                    (found.root_type_mismatch, found.count) < (best.root_type_mismatch, best.count)
                }) {
                    closest = Some((*branch, found));
                }
                continue;
            }
            let far = distance(&found);
            match fitting.as_ref().map(|(_, best)| far.cmp(&distance(best))) {
                Some(Ordering::Greater) => {}
                Some(Ordering::Equal) => several = true,
                _ => {
                    fitting = Some((*branch, found));
                    several = false;
                }
            }
            if far == 0 && !exclusive {
                break;
            }
        }
        match (fitting, closest) {
            (Some(_), _) if exclusive && (several || but_for_width) => Choice::Ambiguous,
            (Some((branch, found)), _)
                if exclusive && found.non_schema_coercion && !self.arrives_at_one(branch, branches, doc) =>
            {
                Choice::Ambiguous
            }
            (Some(_), _) if exclusive && doc.repeated_key().is_some() => Choice::Doubled,
            (Some((branch, WalkSummary { coerced, non_schema_coercion, beyond_strict, .. })), _) => {
                Choice::Fits { branch, coerced, non_schema_coercion, beyond_strict }
            }
            (None, Some((branch, found))) => {
                let WalkSummary { count, root_type_mismatch, .. } = found;
                Choice::Closest { branch, count, root_type_mismatch, but_for_width }
            }
            (None, None) => Choice::Nothing,
        }
    }
}

impl WalkState<'_> {
    /// Returns the coerced value as JSON text, or `None` if the node refuses the value.
    pub(super) fn arrived(&self, node: NodeId, doc: &Doc<'_>) -> Option<String> {
        let judge = TextJudge { walked: Some(self), ..TextJudge::new(self.graph, self.text) };
        let cx = Context::silent(self.graph, doc.raw, &judge);
        let mut de = serde_json::Deserializer::from_str(doc.raw);
        let node = self.graph.node(node);
        let value = Value::deserialize(PlanDe { de: &mut de, at: &ValuePosition::root(&cx, node) });
        value.ok().map(|value| value.to_string())
    }

    /// Coerces a value to fit `branch`. Returns whether no second branch accepts the result without a further coercion. `1.0` for an
    /// integer needs no coercion, as in JSON Schema.
    fn arrives_at_one(&self, branch: NodeId, branches: &[NodeId], doc: &Doc<'_>) -> bool {
        let Some(text) = self.arrived(branch, doc) else { return true };
        let Ok(document) = Document::parse(&text) else { return true };
        let other = self.another(&text);
        let fits = |branch: &&NodeId| {
            let found = Walk::count(&other, **branch, &document.root);
            found.count == 0 && !found.non_schema_coercion
        };
        let is_one = branches.iter().filter(fits).nth(1).is_none();
        self.take_back(&other);
        is_one
    }
}

/// Decides which alternative of a union (`anyOf`) a value fits, and whether a value passes checks such as `not`. The results for nested
/// values are kept, so that no value is walked twice.
pub(crate) struct TextJudge<'t> {
    graph: &'t Graph,
    text: &'t str,
    /// The state of an earlier comparison of the text with the schema, if there was one.
    walked: Option<&'t WalkState<'t>>,
    known: RefCell<Option<Box<KnownValues>>>,
}

#[derive(Default)]
struct KnownValues {
    /// The chosen branches of unions. The second map is for walks in which [`WalkState::silent`] is set.
    choices: [HashMap<PlaceKey, Choice, NameHash>; 2],
    passed: HashSet<PlaceKey, NameHash>,
}

impl<'t> TextJudge<'t> {
    pub(crate) fn new(graph: &'t Graph, text: &'t str) -> TextJudge<'t> {
        TextJudge { graph, text, walked: None, known: RefCell::default() }
    }

    fn remember(&self, walked: WalkState<'_>) {
        let mut known = self.known.borrow_mut();
        let known = known.get_or_insert_default();
        let choices = &mut known.choices[usize::from(walked.silent)];
        let (new, passed) = (walked.choices.into_inner(), walked.passed.into_inner());
        if known.passed.is_empty() {
            known.passed = passed;
        } else {
            known.passed.extend(passed);
        }
        if choices.is_empty() {
            *choices = new;
        } else {
            choices.extend(new);
        }
    }
}

impl ValueJudge for TextJudge<'_> {
    #[cold]
    fn branch(&self, union: &PlanNode, value: &str, is_root: bool, is_silent: bool) -> Option<NodeId> {
        let NodeKind::Union { branches, exclusive } = &union.kind else { return None };
        let place = (union.id, offset_in(self.text, value)?);
        let known = match self.known.borrow().as_ref() {
            Some(known) => known.choices[usize::from(is_silent)].get(&place).and_then(Choice::branch),
            None => None,
        };
        if let Some(branch) = known.or_else(|| self.walked?.chosen(union.id, value)) {
            return Some(branch);
        }
        let document = Document::parse(value).ok()?;
        let shared = WalkState::new(self.graph, self.text, is_root.then_some(&document.root), is_silent);
        let chosen = shared.choose(union, branches, *exclusive, &document.root).branch();
        self.remember(shared);
        chosen
    }

    #[cold]
    fn passes(&self, checked: &PlanNode, value: &str, is_root: bool) -> bool {
        let Some(at) = offset_in(self.text, value) else { return false };
        if self.known.borrow().as_ref().is_some_and(|known| known.passed.contains(&(checked.id, at))) {
            return true;
        }
        let Ok(document) = Document::parse(value) else { return false };
        let shared = WalkState::new(self.graph, self.text, is_root.then_some(&document.root), false);
        let passes = Walk::count(&shared, checked.id, &document.root).count == 0;
        if passes {
            self.remember(shared);
        }
        passes
    }
}
