//! Renders keywords that restrict a value as a whole, such as `not`. If the dialect has `not`, the first list of excluded values becomes a
//! `not`. Further lists of excluded values, and excluded or required keys, are described in words. All other restrictions are dropped.

use super::written::{SchemaDraft, quote_list};
use super::{ChangeKind, Renderer};
use crate::args::{NodeCheck, NodeId, NodeKind, cut};
use serde_json::{Value, json};

/// Maximum length of a list of names in a sentence, in characters.
const MAX_NAMES: usize = 200;

impl Renderer<'_> {
    pub(super) fn checks(&mut self, out: &mut SchemaDraft, checks: &[NodeCheck]) {
        // For an application's schema (`whole`), `unrendered_restrictions` reports the keywords instead.
        if self.graph.whole.is_some() {
            return;
        }
        for check in checks {
            if let NodeCheck::Not { node, .. } = check
                && let Some(members) = self.closed_set(*node)
            {
                let words = || format!("Not {}.", quote_list(&members));
                if out.schema.contains_key("not") {
                    self.record_change("not", ChangeKind::Described);
                    out.add_sentence(words());
                } else if let [one] = members.as_slice() {
                    self.keyword(out, "not", json!({"const": one}), words);
                } else {
                    self.keyword(out, "not", json!({"enum": members}), words);
                }
                continue;
            }
            let words = match check {
                NodeCheck::Not { given, .. } => not_given(given),
                NodeCheck::Requires(name, others) => Some(format!("With `{name}`, give {}.", names(others))),
                _ => None,
            };
            let kind = if words.is_some() { ChangeKind::Described } else { ChangeKind::Dropped };
            self.record_change(keyword_of(check), kind);
            out.words.extend(words);
        }
    }

    fn closed_set(&self, id: NodeId) -> Option<Vec<Value>> {
        match self.graph.kind(id) {
            NodeKind::Const(members) => Some(members.clone()),
            NodeKind::Enum(words) => Some(words.names().map(Value::from).collect()),
            _ => None,
        }
    }
}

pub(super) fn keyword_of(check: &NodeCheck) -> &'static str {
    match check {
        NodeCheck::Also(_) => "allOf",
        NodeCheck::Not { .. } => "not",
        NodeCheck::If { .. } => "if",
        NodeCheck::Contains { .. } => "contains",
        NodeCheck::Names(_) => "propertyNames",
        NodeCheck::Requires(..) => "dependentRequired",
        NodeCheck::Depends(..) => "dependentSchemas",
    }
}

fn not_given(given: &[String]) -> Option<String> {
    match given {
        [] => None,
        [one] => Some(format!("Do not give `{one}`.")),
        several => Some(format!("Do not give all of {}.", names(several))),
    }
}

fn names(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|name| format!("`{name}`")).collect();
    cut(&quoted.join(", "), MAX_NAMES)
}
