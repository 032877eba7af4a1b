//! Renders unions and enums below the root. `root` merges the alternatives of the root.

use super::written::SchemaDraft;
use super::{ChangeKind, Renderer, Result, strings};
use crate::args::{ExternalSpec, NodeId, NodeKind};
use crate::schema::abilities::{NullForm, OptionalMarking, RestKeyword};
use serde_json::{Value, json};

impl Renderer<'_> {
    pub(super) fn any_of(&mut self, ids: impl Iterator<Item = NodeId>) -> Result<SchemaDraft> {
        let mut ids: Vec<NodeId> = ids.collect();
        if !self.can.has("not") {
            let before = ids.len();
            ids.retain(|id| !matches!(self.graph.kind(*id), NodeKind::Never));
            if ids.is_empty() {
                return Ok(self.never());
            }
            if ids.len() < before {
                self.record_change("not", ChangeKind::Dropped);
            }
        }
        let mut out = SchemaDraft::default();
        if self.can.null == NullForm::Keyword
            && ids.iter().any(|id| matches!(self.graph.kind(*id), NodeKind::Null))
        {
            ids.retain(|id| !matches!(self.graph.kind(*id), NodeKind::Null));
            if ids.is_empty() {
                return Ok(self.null());
            }
            out.put("nullable", json!(true));
        }
        let branches = self.render_all("anyOf", ids.into_iter())?;
        out.put("anyOf", branches.into());
        Ok(out)
    }

    pub(super) fn external(&mut self, external: &ExternalSpec) -> Result<SchemaDraft> {
        let mut alternatives = Vec::new();
        if !external.units.is_empty() {
            let mut units = strings(external.units.names());
            units.add_annotations(&external.unit_notes);
            let units = self.at_index("anyOf", 0, |r| r.finish(units));
            alternatives.push(units);
        }
        for variant in &external.variants {
            let alternative = self.at_index("anyOf", alternatives.len(), |r| -> Result<Value> {
                let payload = r.at(&["properties", &variant.name], |r| r.render_value(variant.node))?;
                let mut out = SchemaDraft::typed("object");
                out.put("properties", json!({variant.name.as_str(): payload}));
                out.put("required", json!([variant.name]));
                if r.can.rest == RestKeyword::Absent {
                    r.record_change("additionalProperties", ChangeKind::Dropped);
                } else {
                    out.put("additionalProperties", json!(false));
                }
                out.add_annotations(&variant.notes);
                Ok(r.finish(out))
            })?;
            alternatives.push(alternative);
        }
        let mut out = SchemaDraft::default();
        out.put("anyOf", alternatives.into());
        Ok(out)
    }

    /// Returns whether this dialect lists optional properties in `required`, so that null stands for an absent property.
    pub(super) fn absent_is_null(&self) -> bool {
        self.can.optional == OptionalMarking::Null
    }
}
