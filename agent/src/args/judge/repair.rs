//! The structural repairs of the lenient policy: JSON that was sent as a string, and a single value where an array is expected. The
//! repairs edit the text, so every digit stays as it was sent.

use super::walk::{fits, inspect};
use crate::args::coercion::{Coercion, CoercionRule, HIDDEN, recorded};
use crate::args::document::{Doc, Document, Shape};
use crate::args::plan::{Graph, NodeId, NodeKind};
use crate::args::policy::Rules;
use crate::args::text::{offset_in, push_index, push_segment};
use crate::args::wrapped::WrappedValues;
use serde_json::Value;

/// Maximum number of union branches that are tried in one repair, because trials of nested unions could multiply.
const MAX_TRIALS: usize = 64;

/// Returns the text of the repaired arguments, or `None` if nothing was repaired.
pub(super) fn repair(graph: &Graph, root: &Doc<'_>, log: &mut Vec<Coercion>) -> Option<String> {
    if !may_repair(graph) {
        return None;
    }
    let mut repair = Repair { graph, path: String::new(), log, trials: MAX_TRIALS };
    repair.value(graph.root, root)
}

pub(super) fn may_repair(graph: &Graph) -> bool {
    graph.nodes.iter().any(|n| n.rules.has(Rules::JSON_TEXT) || n.rules.has(Rules::WRAP_ONE))
}

/// Repairs the text of one top-level entry. Returns the new text and the values that were wrapped in a list, or `None` without a repair.
pub(super) fn repair_entry(
    graph: &Graph,
    node: NodeId,
    key: &str,
    doc: &Doc<'_>,
) -> Option<(String, WrappedValues)> {
    let mut log = Vec::new();
    let mut repair = Repair { graph, path: String::new(), log: &mut log, trials: MAX_TRIALS };
    let text = repair.below(|path| push_segment(path, key), node, doc)?;
    Some((text, WrappedValues::of(&log)))
}

struct Repair<'r> {
    graph: &'r Graph,
    path: String,
    log: &'r mut Vec<Coercion>,
    trials: usize,
}

impl Repair<'_> {
    fn value(&mut self, id: NodeId, doc: &Doc<'_>) -> Option<String> {
        let graph = self.graph;
        let node = graph.node(id);
        if let Some(next) = doc.referred(graph, id) {
            return self.value(next, doc);
        }
        if node.rules.has(Rules::JSON_TEXT)
            && let Shape::Text(text) = &doc.shape
            && let Some(decoded) = self.decoded(id, text)
        {
            return Some(decoded);
        }
        if let NodeKind::Array(array) = &node.kind
            && let Some(item) = array.items.filter(|_| array.is_list() && node.rules.has(Rules::WRAP_ONE))
            && !matches!(doc.shape, Shape::Array(_) | Shape::Null)
            && array.min <= 1
            && array.max >= 1
            && inspect(graph, item, doc, false).count == 0
        {
            let wrapped = format!("[{}]", doc.raw);
            self.note(doc, &wrapped, CoercionRule::OneValueWrapped);
            return Some(wrapped);
        }
        match (&node.kind, &doc.shape) {
            (NodeKind::Array(array), Shape::Array(items)) => {
                let edits = items.iter().enumerate().filter_map(|(i, item)| {
                    let id = array.item(i)?;
                    self.below(|path| push_index(path, i), id, item).map(|edit| (item, edit))
                });
                let edits = edits.collect();
                spliced(doc, edits)
            }
            (NodeKind::Object(object), Shape::Object(entries)) => {
                let edits = entries.iter().filter_map(|(key, item)| {
                    let id = object.child(key, 0)?.node();
                    self.below(|path| push_segment(path, key), id, item).map(|edit| (item, edit))
                });
                let edits = edits.collect();
                spliced(doc, edits)
            }
            (NodeKind::Union { branches, .. }, _) => self.union(id, branches, doc),
            _ => None,
        }
    }

    fn below(&mut self, push: impl FnOnce(&mut String), id: NodeId, doc: &Doc<'_>) -> Option<String> {
        let length = self.path.len();
        push(&mut self.path);
        let edit = self.value(id, doc);
        self.path.truncate(length);
        edit
    }

    /// Returns the array or object that was sent as a JSON string, with further repairs in it. Returns `None` if the string is not JSON of
    /// the expected type.
    fn decoded(&mut self, id: NodeId, text: &str) -> Option<String> {
        let document = Document::parse(text).ok()?;
        match (self.graph.kind(id), &document.root.shape) {
            (NodeKind::Array(_), Shape::Array(_))
            | (NodeKind::Object(_) | NodeKind::Tagged { .. } | NodeKind::External(_), Shape::Object(_)) => {}
            _ => return None,
        }
        let hidden = self.graph.has_secrets();
        let hide = |v: Value| if hidden { HIDDEN.into() } else { recorded(v) };
        self.log.push(Coercion {
            path: self.path.clone(),
            from: hide(text.into()),
            to: hide(document.root.to_value()),
            rule: CoercionRule::JsonTextDecoded,
        });
        Some(self.value(id, &document.root).unwrap_or_else(|| text.to_owned()))
    }

    /// Repairs the value for the first branch that accepts a repair. Returns `None` if no branch does, if the value fits unchanged, or if
    /// all trials are used up.
    fn union(&mut self, id: NodeId, branches: &[NodeId], doc: &Doc<'_>) -> Option<String> {
        if inspect(self.graph, id, doc, self.path.is_empty()).count == 0 {
            return None;
        }
        // If a branch expects objects, an object is probably not meant as the only item of a list, so only branches for
        // objects are tried.
        let is_object = |id: &NodeId| {
            matches!(
                self.graph.kind(self.graph.unchecked(*id)),
                NodeKind::Object(_) | NodeKind::Tagged { .. }
            )
        };
        let objects_only = matches!(doc.shape, Shape::Object(_)) && branches.iter().any(is_object);
        for branch in branches.iter().filter(|id| !objects_only || is_object(id)) {
            self.trials = self.trials.checked_sub(1)?;
            let noted = self.log.len();
            if let Some(edit) = self.value(*branch, doc)
                && fits(self.graph, *branch, &edit, self.path.is_empty())
            {
                return Some(edit);
            }
            self.log.truncate(noted);
        }
        None
    }

    fn note(&mut self, doc: &Doc<'_>, to: &str, rule: CoercionRule) {
        let hidden = self.graph.has_secrets();
        let hide = |v: Value| if hidden { HIDDEN.into() } else { recorded(v) };
        self.log.push(Coercion {
            path: self.path.clone(),
            from: hide(doc.to_value()),
            to: hide(serde_json::from_str(to).unwrap_or_default()),
            rule,
        });
    }
}

/// Returns the text of `doc` in which each value in `edits` has its new text, or `None` if there are no edits.
fn spliced(doc: &Doc<'_>, edits: Vec<(&Doc<'_>, String)>) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(doc.raw.len());
    let mut done = 0;
    for (part, edit) in edits {
        let start = offset_in(doc.raw, part.raw)?;
        out.push_str(doc.raw.get(done..start)?);
        out.push_str(&edit);
        done = start + part.raw.len();
    }
    out.push_str(doc.raw.get(done..)?);
    Some(out)
}
