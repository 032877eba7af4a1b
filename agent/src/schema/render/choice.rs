//! Alternatives below the root.

use super::written::Written;
use super::{ChangeKind, Renderer, Result, strings};
use crate::args::{ExternalSpec, Kind, NodeId};
use crate::schema::abilities::{Null, Optional, RestKeyword};
use serde_json::{Value, json};

impl Renderer<'_> {
    pub(super) fn any_of(&mut self, ids: impl Iterator<Item = NodeId>) -> Result<Written> {
        let mut ids: Vec<NodeId> = ids.collect();
        if !self.can.has("not") {
            let before = ids.len();
            ids.retain(|id| !matches!(self.graph.kind(*id), Kind::Never));
            if ids.len() < before {
                self.change("not", ChangeKind::Dropped);
            }
        }
        let mut out = Written::default();
        if self.can.null == Null::Keyword && ids.iter().any(|id| matches!(self.graph.kind(*id), Kind::Null)) {
            ids.retain(|id| !matches!(self.graph.kind(*id), Kind::Null));
            out.put("nullable", json!(true));
        }
        let branches = self.placed_all("anyOf", ids.into_iter())?;
        out.put("anyOf", branches.into());
        Ok(out)
    }

    pub(super) fn external(&mut self, external: &ExternalSpec) -> Result<Written> {
        let mut alternatives = Vec::new();
        if !external.units.is_empty() {
            let mut units = strings(external.units.names());
            units.note(&external.unit_notes);
            let units = self.at_index("anyOf", 0, |r| r.finished(units));
            alternatives.push(units);
        }
        for variant in &external.variants {
            let alternative = self.at_index("anyOf", alternatives.len(), |r| -> Result<Value> {
                let payload = r.at(&["properties", &variant.name], |r| r.placed(variant.node))?;
                let mut out = Written::typed("object");
                out.put("properties", json!({variant.name.as_str(): payload}));
                out.put("required", json!([variant.name]));
                if r.can.rest == RestKeyword::Absent {
                    r.change("additionalProperties", ChangeKind::Dropped);
                } else {
                    out.put("additionalProperties", json!(false));
                }
                out.note(&variant.notes);
                Ok(r.finished(out))
            })?;
            alternatives.push(alternative);
        }
        let mut out = Written::default();
        out.put("anyOf", alternatives.into());
        Ok(out)
    }

    /// Whether an optional property has to be nullable to be absent.
    pub(super) fn absent_is_null(&self) -> bool {
        self.can.optional == Optional::Null
    }
}
