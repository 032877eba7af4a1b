//! Renders arrays, tuples and sets.

use super::written::SchemaDraft;
use super::{ChangeKind, Renderer, Result};
use crate::args::{ArraySpec, NodeId, signature};
use serde_json::{Value, json};

impl Renderer<'_> {
    pub(super) fn array(&mut self, array: &ArraySpec) -> Result<SchemaDraft> {
        let mut out = SchemaDraft::typed("array");
        if array.prefix.is_empty() {
            if let Some(items) = array.items {
                let items = self.at(&["items"], |r| r.render_value(items))?;
                out.put("items", items);
            } else {
                self.nothing(&mut out);
            }
        } else if self.can.has("prefixItems") {
            let prefix = self.render_all("prefixItems", array.prefix.iter().copied())?;
            out.put("prefixItems", prefix.into());
            if let Some(items) = array.items {
                let items = self.at(&["items"], |r| r.render_value(items))?;
                out.put("items", items);
            }
        } else {
            self.tuple(&mut out, array)?;
        }
        let most = Some(array.max).filter(|max| *max < u64::MAX);
        let least = Some(array.min).filter(|min| *min > 0);
        self.ranged(
            &mut out,
            [("minItems", least.map(Value::from)), ("maxItems", most.map(Value::from))],
            "item",
        );
        if array.unique {
            self.keyword(&mut out, "uniqueItems", json!(true), || "No two items are equal.".into());
        }
        Ok(out)
    }

    /// Writes `items` for an array that is always empty. `maxItems: 0` would be enough, but providers that require types also require
    /// `items`.
    fn nothing(&mut self, out: &mut SchemaDraft) {
        if !self.can.any {
            out.put("items", json!({"type": "string"}));
        }
    }

    /// Renders a tuple for a dialect without `prefixItems`. If the positions have different types, the description gives their order.
    fn tuple(&mut self, out: &mut SchemaDraft, array: &ArraySpec) -> Result<()> {
        let (mut forms, mut ids) = (Vec::new(), Vec::new());
        for id in array.prefix.iter().copied().chain(array.items) {
            let form = self.render_for_inspection(id)?;
            if !forms.contains(&form) {
                forms.push(form);
                ids.push(id);
            }
        }
        let items = self.at(&["items"], |r| match ids[..] {
            [only] => r.render_value(only),
            _ => Ok(json!({"anyOf": r.render_all("anyOf", ids.iter().copied())?})),
        })?;
        out.put("items", items);
        if ids.len() > 1 {
            self.record_change("prefixItems", ChangeKind::Rewritten);
            let places: Vec<&str> = array.prefix.iter().map(|id| signature(self.graph, *id)).collect();
            let more = array.items.map(|id| format!(", then any number of {}", signature(self.graph, id)));
            out.add_sentence(format!("In this order: {}{}.", places.join(", "), more.unwrap_or_default()));
        }
        Ok(())
    }

    /// Returns the schema of a node, to inspect or compare it. Does not record what the dialect changed.
    pub(super) fn render_for_inspection(&mut self, id: NodeId) -> Result<Value> {
        let before = self.changes.len();
        let schema = self.render_value(id)?;
        self.changes.truncate(before);
        Ok(schema)
    }
}
