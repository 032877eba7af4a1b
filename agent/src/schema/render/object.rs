//! Objects: properties, which of them are required, and other keys.

use super::written::Written;
use super::{ChangeKind, References, Renderer, RestKeyword, Result, UnknownKeys};
use crate::args::{Kind, NodeId, ObjectSpec, Prop, Rest};
use serde_json::{Map, Value, json};

/// A property to be written.
pub(super) struct Field<'g> {
    pub(super) name: &'g str,
    pub(super) required: bool,
    /// Whether null is not one of its values.
    pub(super) null_absent: bool,
    /// Whether its value can contain the object that it belongs to.
    pub(super) in_cycle: bool,
    pub(super) form: Form<'g>,
    pub(super) notes: Map<String, Value>,
}

/// What a property accepts.
pub(super) enum Form<'g> {
    Node(NodeId),
    /// The tags of all variants.
    Words(Vec<&'g str>),
    /// Different schemas in the variants, each with the variant's annotations.
    Choice(Vec<(NodeId, Map<String, Value>)>),
}

/// What an object accepts beside its properties.
pub(super) struct Others<'g> {
    pub(super) patterns: Vec<(&'g str, NodeId)>,
    pub(super) rest: Vec<NodeId>,
    /// The schema does not say, and unknown keys are kept.
    pub(super) kept: bool,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl<'g> Renderer<'g> {
    pub(super) fn object(&mut self, id: NodeId, object: &'g ObjectSpec) -> Result<Written> {
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
            form: Form::Node(prop.node),
            notes: prop.notes.clone(),
        }
    }

    pub(super) fn others(&self, object: &'g ObjectSpec) -> Others<'g> {
        Others {
            patterns: object.patterns.iter().map(|(p, id)| (p.source.as_str(), *id)).collect(),
            rest: match object.rest {
                Rest::Accepted(id) => vec![id],
                Rest::Denied | Rest::Unsaid => Vec::new(),
            },
            kept: object.rest == Rest::Unsaid && self.graph.options.unknown_keys() == UnknownKeys::Keep,
            min: object.min,
            max: object.max,
        }
    }

    pub(super) fn object_of(&mut self, fields: Vec<Field<'g>>, others: &Others<'g>) -> Result<Written> {
        let mut out = Written::typed("object");
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

    /// Returns `None` for a property that can only be absent.
    fn property(&mut self, field: Field<'g>) -> Result<Option<(Value, bool)>> {
        if let Form::Node(id) = field.form
            && matches!(self.graph.kind(id), Kind::Never)
            && !field.required
            && !self.can.has("not")
        {
            self.change("not", ChangeKind::Dropped);
            return Ok(None);
        }
        let unrolled = self.can.references == References::Optional && field.required && field.in_cycle;
        let nullable = !field.required && self.absent_is_null();
        let before = self.within_optional;
        self.within_optional |= !field.required || unrolled;
        let mut out = self.form(field.form, nullable && field.null_absent)?;
        self.within_optional = before;
        out.note(&field.notes);
        if nullable {
            let kind = if field.null_absent { ChangeKind::MadeNullable } else { ChangeKind::MadeRequired };
            self.change("required", kind);
        }
        if unrolled {
            self.change("required", ChangeKind::MadeOptional);
            out.say("Required.".into());
        }
        let listed = nullable || field.required && !unrolled;
        Ok(Some((self.finished(out), listed)))
    }

    fn form(&mut self, form: Form<'g>, or_null: bool) -> Result<Written> {
        let mut out = match form {
            Form::Node(id) if or_null => return self.nullable(id),
            Form::Node(id) => return self.node(id),
            Form::Words(words) => {
                let words = super::strings(words.into_iter());
                if !or_null {
                    return Ok(words);
                }
                let mut out = Written::default();
                out.put("anyOf", json!([words.schema]));
                out
            }
            Form::Choice(forms) => {
                let mut branches = Vec::new();
                for (i, (id, notes)) in forms.into_iter().enumerate() {
                    let branch = self.at_index("anyOf", i, |r| -> Result<Value> {
                        let mut written = r.node(id)?;
                        written.note(&notes);
                        Ok(r.finished(written))
                    })?;
                    branches.push(branch);
                }
                let mut out = Written::default();
                out.put("anyOf", branches.into());
                out
            }
        };
        if or_null && let Some(Value::Array(branches)) = out.schema.get_mut("anyOf") {
            branches.push(json!({"type": "null"}));
        }
        Ok(out)
    }

    /// Writes key patterns, or any keys in their place. `true` if there are any.
    fn patterns(&mut self, out: &mut Written, others: &Others<'g>) -> Result<bool> {
        if others.patterns.is_empty() || !self.can.has("patternProperties") {
            return Ok(!others.patterns.is_empty());
        }
        let mut patterns = Map::new();
        for (source, id) in &others.patterns {
            let schema = self.at(&["patternProperties", source], |r| r.placed(*id))?;
            patterns.insert((*source).into(), schema);
        }
        out.put("patternProperties", patterns.into());
        Ok(false)
    }

    fn rest(&mut self, out: &mut Written, others: &Others<'g>, patterned: bool, empty: bool) -> Result<()> {
        const KEYWORD: &str = "additionalProperties";
        let open = !others.rest.is_empty() || patterned;
        if self.can.rest != RestKeyword::Schema {
            match (open, empty) {
                (true, true) => self.impossible(KEYWORD, "a map: keys that are not known beforehand"),
                (true, false) => self.change(KEYWORD, ChangeKind::Closed),
                (false, _) if others.kept => self.change(KEYWORD, ChangeKind::Closed),
                (false, _) if self.can.rest == RestKeyword::Absent => {
                    self.change(KEYWORD, ChangeKind::Dropped);
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
            ids.extend(others.patterns.iter().map(|p| p.1));
            let keys: Vec<String> = others.patterns.iter().map(|p| format!("`{}`", p.0)).collect();
            self.change("patternProperties", ChangeKind::Rewritten);
            out.say(format!("Keys match {}.", keys.join(" or ")));
        }
        let schema = match ids[..] {
            [] if others.kept => return Ok(()),
            [] => json!(false),
            [only] => self.at(&[KEYWORD], |r| r.placed(only))?,
            _ => {
                let branches = self.at(&[KEYWORD], |r| r.placed_all("anyOf", ids.into_iter()))?;
                json!({"anyOf": branches})
            }
        };
        // `{}` and `true` mean the same, but most readers support only one of them.
        out.put(KEYWORD, if schema == json!({}) { json!(true) } else { schema });
        Ok(())
    }
}
