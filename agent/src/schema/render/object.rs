//! Renders objects: their properties, which properties are required, and the schemas of other keys.

use super::written::SchemaDraft;
use super::{ChangeKind, ReferenceSupport, Renderer, RestKeyword, Result, UnknownKeys};
use crate::args::{AdditionalProperties, NodeId, NodeKind, ObjectSpec, Prop, cut, signature};
use serde_json::{Map, Value, json};

pub(super) struct Field<'g> {
    pub(super) name: &'g str,
    pub(super) required: bool,
    /// Whether null means that the property is absent.
    pub(super) null_absent: bool,
    /// Whether the property is recursive: its value can contain the same object again.
    pub(super) in_cycle: bool,
    pub(super) form: FieldSchema<'g>,
    pub(super) notes: Map<String, Value>,
}

pub(super) enum FieldSchema<'g> {
    PlanNode(NodeId),
    /// The tags of all variants, rendered as an `enum`.
    Words(Vec<&'g str>),
    Choice(Vec<(NodeId, Map<String, Value>)>),
}

pub(super) struct OtherKeys<'g> {
    /// The key patterns. The value of a matching key must fit at least one of the schema nodes.
    pub(super) patterns: Vec<(&'g str, Vec<NodeId>)>,
    pub(super) rest: Vec<NodeId>,
    /// Whether unknown keys are kept: the schema does not decide about them, and the `PlanOptions` keep them.
    pub(super) kept: bool,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl<'g> Renderer<'g> {
    pub(super) fn object(&mut self, id: NodeId, object: &'g ObjectSpec) -> Result<SchemaDraft> {
        let fields = object.props.iter().map(|prop| self.field(id, prop)).collect();
        let others = self.others(object);
        self.object_of(fields, &others)
    }

    fn field(&self, owner: NodeId, prop: &'g Prop) -> Field<'g> {
        Field {
            name: &prop.name,
            required: prop.required,
            null_absent: prop.null_absent,
            in_cycle: self.cycles.share_one(owner, prop.node),
            form: FieldSchema::PlanNode(prop.node),
            notes: prop.notes.clone(),
        }
    }

    pub(super) fn others(&self, object: &'g ObjectSpec) -> OtherKeys<'g> {
        OtherKeys {
            patterns: object.patterns.iter().map(|(p, id)| (p.source.as_str(), vec![*id])).collect(),
            rest: match object.rest {
                AdditionalProperties::Schema(id) => vec![id],
                AdditionalProperties::Denied | AdditionalProperties::Unspecified => Vec::new(),
            },
            kept: object.rest == AdditionalProperties::Unspecified
                && self.graph.options.unknown_keys() == UnknownKeys::Keep,
            min: object.min,
            max: object.max,
        }
    }

    pub(super) fn object_of(
        &mut self,
        fields: Vec<Field<'g>>,
        others: &OtherKeys<'g>,
    ) -> Result<SchemaDraft> {
        let mut out = SchemaDraft::typed("object");
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in fields {
            let name = field.name;
            if let Some((schema, listed)) = self.at(&["properties", name], |r| r.property(field))? {
                properties.insert(name.into(), schema);
                if listed {
                    required.push(name);
                }
            }
        }
        let names: Vec<String> = properties.keys().cloned().collect();
        out.put("properties", properties.into());
        out.put("required", required.into());
        if self.can.ordering && names.len() > 1 {
            out.put("propertyOrdering", names.clone().into());
        }
        let patterned = self.patterns(&mut out, others)?;
        let least = Some(others.min).filter(|min| *min > 0).map(Value::from);
        let most = Some(others.max).filter(|max| *max < u64::MAX).map(Value::from);
        self.ranged(&mut out, [("minProperties", least), ("maxProperties", most)], "key");
        self.rest(&mut out, others, patterned, names.is_empty())?;
        Ok(out)
    }

    /// Returns the schema of a property, and whether `required` lists it. Returns `None` for an optional property for which
    /// every value is forbidden, if the dialect cannot say so.
    fn property(&mut self, field: Field<'g>) -> Result<Option<(Value, bool)>> {
        if let FieldSchema::PlanNode(id) = field.form
            && matches!(self.graph.kind(id), NodeKind::Never)
            && !field.required
            && !self.can.has("not")
        {
            self.record_change("not", ChangeKind::Dropped);
            return Ok(None);
        }
        let unrolled = self.can.references == ReferenceSupport::Optional && field.required && field.in_cycle;
        let nullable = !field.required && self.absent_is_null();
        let before = self.within_optional;
        self.within_optional |= !field.required || unrolled;
        let mut out = self.form(field.form, nullable && field.null_absent)?;
        self.within_optional = before;
        out.add_annotations(&field.notes);
        if nullable {
            let kind = if field.null_absent { ChangeKind::MadeNullable } else { ChangeKind::MadeRequired };
            self.record_change("required", kind);
        }
        if unrolled {
            self.record_change("required", ChangeKind::MadeOptional);
            out.add_sentence("Required.".into());
        }
        let listed = nullable || field.required && !unrolled;
        Ok(Some((self.finish(out), listed)))
    }

    fn form(&mut self, form: FieldSchema<'g>, or_null: bool) -> Result<SchemaDraft> {
        let mut out = match form {
            FieldSchema::PlanNode(id) if or_null => return self.nullable(id),
            FieldSchema::PlanNode(id) => return self.node(id),
            FieldSchema::Words(words) => {
                let words = super::strings(words.into_iter());
                if !or_null {
                    return Ok(words);
                }
                let mut out = SchemaDraft::default();
                out.put("anyOf", json!([words.schema]));
                out
            }
            FieldSchema::Choice(forms) => {
                let mut branches = Vec::new();
                for (i, (id, notes)) in forms.into_iter().enumerate() {
                    let branch = self.at_index("anyOf", i, |r| -> Result<Value> {
                        let mut written = r.node(id)?;
                        written.add_annotations(&notes);
                        Ok(r.finish(written))
                    })?;
                    branches.push(branch);
                }
                let mut out = SchemaDraft::default();
                out.put("anyOf", branches.into());
                out
            }
        };
        if or_null && let Some(Value::Array(branches)) = out.schema.get_mut("anyOf") {
            branches.push(json!({"type": "null"}));
        }
        Ok(out)
    }

    /// Writes the key patterns. Returns whether there are key patterns that the dialect cannot express.
    fn patterns(&mut self, out: &mut SchemaDraft, others: &OtherKeys<'g>) -> Result<bool> {
        if others.patterns.is_empty() || !self.can.has("patternProperties") {
            return Ok(!others.patterns.is_empty());
        }
        let mut patterns = Map::new();
        for (source, ids) in &others.patterns {
            let schema = self.at(&["patternProperties", source], |r| r.any_of_values(ids))?;
            patterns.insert((*source).into(), schema);
        }
        out.put("patternProperties", patterns.into());
        Ok(false)
    }

    /// Returns a schema of the values that fit any of these nodes. Equal schemas are written once.
    fn any_of_values(&mut self, ids: &[NodeId]) -> Result<Value> {
        // Rendered once only: otherwise each level of maps within maps would double the work.
        if let [only] = *ids {
            return self.render_value(only);
        }
        let start = self.changes.len();
        let mut branches = Vec::new();
        for id in ids {
            let before = self.changes.len();
            let branch = self.at_index("anyOf", branches.len(), |r| r.render_value(*id))?;
            if branches.contains(&branch) {
                self.changes.truncate(before);
            } else {
                branches.push(branch);
            }
        }
        match *ids {
            // A single branch is rendered again, so that the paths of its changes lack `anyOf`.
            [first, ..] if branches.len() == 1 => {
                self.changes.truncate(start);
                self.render_value(first)
            }
            _ => Ok(json!({"anyOf": branches})),
        }
    }

    fn rest(
        &mut self,
        out: &mut SchemaDraft,
        others: &OtherKeys<'g>,
        patterned: bool,
        empty: bool,
    ) -> Result<()> {
        const KEYWORD: &str = "additionalProperties";
        let open = !others.rest.is_empty() || patterned;
        if self.can.rest != RestKeyword::Schema {
            match (open, empty) {
                (true, true) => {
                    self.record_inexpressible(KEYWORD, "a map: keys that are not known beforehand");
                }
                (true, false) => self.record_change(KEYWORD, ChangeKind::Closed),
                (false, _) if others.kept => self.record_change(KEYWORD, ChangeKind::Closed),
                (false, _) if self.can.rest == RestKeyword::Absent => {
                    self.record_change(KEYWORD, ChangeKind::Dropped);
                }
                (false, _) => {}
            }
            if self.can.rest == RestKeyword::False {
                out.put(KEYWORD, json!(false));
            }
            return Ok(());
        }
        let mut ids = others.rest.clone();
        if patterned {
            let kind = if others.kept { ChangeKind::Described } else { ChangeKind::Rewritten };
            self.record_change("patternProperties", kind);
            if others.kept || !ids.is_empty() {
                for (source, ids) in &others.patterns {
                    let values: Vec<&str> = ids.iter().map(|id| signature(self.graph, *id)).collect();
                    let values = cut(&values.join(" or "), 200);
                    out.add_sentence(format!("Values of keys that match `{source}`: {values}."));
                }
            } else {
                let keys: Vec<String> = others.patterns.iter().map(|p| format!("`{}`", p.0)).collect();
                out.add_sentence(format!("Keys match {}.", keys.join(" or ")));
            }
            if !others.kept {
                ids.extend(others.patterns.iter().flat_map(|p| &p.1));
            }
        }
        let schema = match ids[..] {
            [] if others.kept => return Ok(()),
            [] => json!(false),
            _ => self.at(&[KEYWORD], |r| r.any_of_values(&ids))?,
        };
        // `{}` and `true` mean the same, but most programs that read schemas support only `true`.
        out.put(KEYWORD, if schema == json!({}) { json!(true) } else { schema });
        Ok(())
    }
}
