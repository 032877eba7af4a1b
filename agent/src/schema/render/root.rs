//! Renders the root as one plain object, even if the arguments have alternatives.

use super::checks::keyword_of;
use super::object::{Field, FieldSchema, OtherKeys};
use super::written::SchemaDraft;
use super::{ChangeKind, Cycles, ReferenceSupport, Renderer, Result};
use crate::args::{ExternalSpec, Graph, NodeCheck, NodeId, NodeKind, ObjectSpec, Prop, SchemaError};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Maximum number of variants at the root; a description of more variants would not help a model.
const MAX_VARIANTS: usize = 1_000;

pub(in crate::schema) struct RootVariant<'g> {
    pub(in crate::schema) id: NodeId,
    pub(in crate::schema) object: &'g ObjectSpec,
    pub(in crate::schema) tags: Vec<(&'g str, &'g str)>,
    /// The externally tagged enum that `object` represents. If this field is set, a call must have exactly one of the properties.
    pub(in crate::schema) external: Option<&'g ExternalSpec>,
    checks: Vec<&'g NodeCheck>,
}

/// The properties of all variants by name, each with the index of its variant.
type PropertyOwners<'g> = HashMap<&'g str, Vec<(usize, &'g Prop)>>;
/// All properties of one name, each with its variant.
type Owners<'v, 'g> = Vec<(&'v RootVariant<'g>, &'g Prop)>;

/// Returns the objects that the root accepts, or `None` if there are more than [`MAX_VARIANTS`].
pub(in crate::schema) fn variants(graph: &Graph) -> Option<Vec<RootVariant<'_>>> {
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![(graph.unchecked(graph.root), Vec::new(), Vec::new())];
    while let Some((id, tags, mut checks)) = open.pop() {
        if out.len() + open.len() > MAX_VARIANTS {
            return None;
        }
        match graph.kind(id) {
            // An untagged alternative that is reached through several unions is counted once.
            _ if tags.is_empty() && !seen.insert(id) => {}
            NodeKind::Object(object) => out.push(RootVariant { id, object, tags, external: None, checks }),
            NodeKind::External(external) => {
                if let NodeKind::Object(object) = graph.kind(external.object) {
                    let external = Some(external);
                    out.push(RootVariant {
                        id: external.map_or(id, |e| e.object),
                        object,
                        tags,
                        external,
                        checks,
                    });
                }
            }
            NodeKind::Tagged { tag, variants, .. } => open.extend(variants.iter().rev().map(|(name, id)| {
                let mut tags = tags.clone();
                tags.push((tag.as_str(), name.as_str()));
                (*id, tags, checks.clone())
            })),
            NodeKind::Union { branches, .. } => {
                open.extend(branches.iter().rev().map(|id| (*id, tags.clone(), checks.clone())));
            }
            NodeKind::Checked(checked) => {
                checks.extend(&checked.checks);
                open.push((checked.base, tags, checks));
            }
            _ => {}
        }
    }
    Some(out)
}

struct JoinedNotes {
    notes: Map<String, Value>,
    /// Whether the description names all variants.
    names_all: bool,
}

impl RootVariant<'_> {
    /// Returns the tags of the variant, such as `kind = "circle"`; `None` for a variant without tags.
    fn label(&self) -> Option<String> {
        let tags: Vec<String> = self.tags.iter().map(|(tag, name)| format!("{tag} = {name:?}")).collect();
        (!tags.is_empty()).then(|| tags.join(", "))
    }
}

impl<'g> Renderer<'g> {
    pub(super) fn root(&mut self) -> Result<SchemaDraft> {
        if self.can.references == ReferenceSupport::Optional
            && Cycles::without_properties(self.graph).has_any()
        {
            self.record_inexpressible("$ref", "a type that contains itself without a property in between");
        }
        self.open.push(self.graph.root);
        let mut out = if self.graph.root_object().is_some() {
            self.render_inline(self.graph.root)?
        } else {
            self.record_change("anyOf", ChangeKind::Rewritten);
            self.merged()?
        };
        self.open.clear();
        // The description of the root is moved to the end, where every schema has its description.
        if let Some(description) = out.schema.shift_remove("description") {
            out.put("description", description);
        }
        Ok(out)
    }

    /// Merges the properties of all variants into one object, whose description says which properties belong together. A property is
    /// required if every variant requires it.
    fn merged(&mut self) -> Result<SchemaDraft> {
        let variants = variants(self.graph).ok_or_else(SchemaError::too_large)?;
        let mut names: Vec<&'g str> = Vec::new();
        let mut given = PropertyOwners::new();
        for (i, variant) in variants.iter().enumerate() {
            for prop in &variant.object.props {
                let owners = given.entry(&prop.name).or_default();
                if owners.is_empty() {
                    names.push(&prop.name);
                }
                owners.push((i, prop));
            }
        }
        let mut fields = Vec::with_capacity(names.len());
        for name in names {
            fields.push(self.merged_field(name, &given[name], &variants)?);
        }
        let mut others = self.merged_others(&variants);
        if matches!(variants[..], [RootVariant { external: Some(_), .. }]) && !self.can.has("minProperties") {
            // The description says that exactly one parameter must be given, so the limits are left out.
            self.record_change("minProperties", ChangeKind::Described);
            self.record_change("maxProperties", ChangeKind::Described);
            (others.min, others.max) = (0, u64::MAX);
        }
        let mut out = self.object_of(fields, &others)?;
        out.add_annotations(self.graph.notes(self.graph.root));
        let sets = self.sets(&variants, &given);
        let description = match out.schema.get("description").and_then(Value::as_str) {
            Some(own) => format!("{own}\n{sets}"),
            None => sets,
        };
        out.put("description", description.into());
        let mut id = self.graph.root;
        while let NodeKind::Checked(checked) = self.graph.kind(id) {
            self.checks(&mut out, &checked.checks);
            id = checked.base;
        }
        // For an application's schema (`whole`), `unrendered_restrictions` reports the keywords.
        if self.graph.whole.is_none() {
            for check in variants.iter().flat_map(|variant| &variant.checks) {
                self.record_change(keyword_of(check), ChangeKind::Dropped);
            }
        }
        Ok(out)
    }

    fn merged_field(
        &mut self,
        name: &'g str,
        given: &[(usize, &'g Prop)],
        variants: &[RootVariant<'g>],
    ) -> Result<Field<'g>> {
        let given: Owners<'_, 'g> = given.iter().map(|(i, prop)| (&variants[*i], *prop)).collect();
        let required = given.len() == variants.len() && given.iter().all(|(_, p)| p.required);
        let in_cycle = given.iter().any(|(v, p)| self.cycles.share_one(v.id, p.node));
        let can_be_null = given.iter().any(|(_, p)| self.graph.node(p.node).takes_null);
        let form = match tags_of(self.graph, &given) {
            Some(words) => FieldSchema::Words(words),
            None => self.merged_form(&given)?,
        };
        // A choice has annotations on each alternative, so the property itself has none.
        let notes =
            if matches!(form, FieldSchema::Choice(_)) { Map::new() } else { self.joined(&given).notes };
        Ok(Field { name, required, null_absent: !required && !can_be_null, in_cycle, form, notes })
    }

    fn merged_form(&mut self, given: &[(&RootVariant<'g>, &'g Prop)]) -> Result<FieldSchema<'g>> {
        let mut forms: Vec<(SchemaDraft, NodeId, Owners<'_, 'g>)> = Vec::new();
        for (variant, prop) in given {
            let form = self.render_without_annotations(prop.node)?;
            match forms.iter_mut().find(|(known, ..)| *known == form) {
                Some((_, _, owners)) => owners.push((variant, prop)),
                None => forms.push((form, prop.node, vec![(variant, prop)])),
            }
        }
        if let [(_, only, _)] = forms[..] {
            return Ok(FieldSchema::PlanNode(only));
        }
        let choice = forms.into_iter().map(|(_, id, owners)| {
            let JoinedNotes { mut notes, names_all } = self.joined(&owners);
            let labels: Vec<String> = owners.iter().filter_map(|(variant, _)| variant.label()).collect();
            if !labels.is_empty() && !names_all {
                let description = notes.get("description").and_then(Value::as_str).unwrap_or_default();
                let mut lines = vec![format!("For {}.", labels.join(" or "))];
                lines.extend((!description.is_empty()).then(|| description.to_owned()));
                notes.insert("description".into(), lines.join("\n").into());
            }
            (id, notes)
        });
        Ok(FieldSchema::Choice(choice.collect()))
    }

    /// Renders a node only to compare its schema, so no changes are recorded.
    fn render_without_annotations(&mut self, id: NodeId) -> Result<SchemaDraft> {
        let before = self.changes.len();
        let mut out = self.node(id)?;
        self.changes.truncate(before);
        for note in self.graph.notes(id).keys() {
            out.schema.shift_remove(note);
        }
        Ok(out)
    }

    /// Joins the annotations that several variants have for one property. Different descriptions become one line each, such as `For A or
    /// B: …`. For any other annotation, the first value is taken.
    fn joined(&self, given: &[(&RootVariant<'g>, &'g Prop)]) -> JoinedNotes {
        let mut notes = Map::new();
        let mut texts: Vec<(String, Vec<String>)> = Vec::new();
        for (variant, prop) in given {
            let mut own = self.graph.notes(prop.node).clone();
            own.extend(annotations_of(variant, prop).clone());
            if let Some(Value::String(text)) = own.shift_remove("description") {
                let label = variant.label();
                match texts.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, labels)) => labels.extend(label),
                    None => texts.push((text, label.into_iter().collect())),
                }
            }
            for (keyword, note) in own {
                notes.entry(keyword).or_insert(note);
            }
        }
        let lines: Vec<String> = match &texts[..] {
            [] => return JoinedNotes { notes, names_all: false },
            [(text, _)] => vec![text.clone()],
            _ => texts
                .iter()
                .map(|(text, labels)| match labels[..] {
                    [] => text.clone(),
                    _ => format!("For {}: {text}", labels.join(" or ")),
                })
                .collect(),
        };
        notes.insert("description".into(), lines.join("\n").into());
        let described: usize = texts.iter().map(|(_, labels)| labels.len()).sum();
        let names_all =
            texts.len() > 1 && described == given.iter().filter(|(v, _)| v.label().is_some()).count();
        JoinedNotes { notes, names_all }
    }

    fn merged_others(&self, variants: &[RootVariant<'g>]) -> OtherKeys<'g> {
        let mut out =
            OtherKeys { patterns: Vec::new(), rest: Vec::new(), kept: false, min: u64::MAX, max: 0 };
        for variant in variants {
            let others = self.others(variant.object);
            for (source, ids) in others.patterns {
                match out.patterns.iter_mut().find(|(known, _)| *known == source) {
                    Some((_, known)) => add_new(known, ids),
                    None => out.patterns.push((source, ids)),
                }
            }
            add_new(&mut out.rest, others.rest);
            out.kept |= others.kept;
            out.min = out.min.min(others.min);
            out.max = out.max.max(others.max);
        }
        if out.kept && !out.rest.is_empty() {
            out.rest = vec![self.graph.any];
        }
        out
    }

    /// Describes the sets of properties that can be given together, usually in one line for each variant.
    fn sets(&self, variants: &[RootVariant<'g>], given: &PropertyOwners<'g>) -> String {
        let nulls = if self.absent_is_null() { " The others are null." } else { "" };
        if let [only] = variants
            && only.external.is_some()
        {
            return format!("Give exactly one of these parameters.{nulls}");
        }
        let common = |prop: &Prop| {
            let owners = given.get(prop.name.as_str()).map_or(&[][..], |owners| &owners[..]);
            owners.len() == variants.len() && owners.iter().all(|(_, p)| p.required == prop.required)
        };
        let mut out = format!("Give one of these sets of parameters.{nulls}");
        for variant in variants {
            let own = |required: bool| {
                let chosen = |p: &&Prop| !common(p) && p.required == required;
                variant
                    .object
                    .props
                    .iter()
                    .filter(chosen)
                    .map(|p| p.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (needed, allowed) = (own(true), own(false));
            let parameters = match (needed.as_str(), allowed.as_str(), variant.tags.is_empty()) {
                ("", "", true) => "none".to_owned(),
                ("", "", false) => "no others".to_owned(),
                (needed, "", _) => needed.to_owned(),
                ("", allowed, _) => format!("optional {allowed}"),
                (needed, allowed, _) => format!("{needed}; optional {allowed}"),
            };
            let label = variant.label().map(|label| format!("{label}: ")).unwrap_or_default();
            let described = |id| self.graph.notes(id).get("description").and_then(Value::as_str);
            let text = described(variant.id).filter(|text| Some(*text) != described(self.graph.root));
            let text = text.map(|text| format!(" ({})", text.replace('\n', " "))).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = write!(out, "\n- {label}{parameters}{text}");
        }
        out
    }
}

fn add_new(known: &mut Vec<NodeId>, ids: Vec<NodeId>) {
    for id in ids {
        if !known.contains(&id) {
            known.push(id);
        }
    }
}

/// Returns the annotations of a property. If the property is the payload of an externally tagged variant, returns the annotations of the
/// variant.
fn annotations_of<'g>(variant: &RootVariant<'g>, prop: &'g Prop) -> &'g Map<String, Value> {
    let external = variant.external.and_then(|external| external.variant(&prop.name));
    external.map_or(&prop.notes, |external| &external.notes)
}

/// Returns all values of a property that is a tag in each of these variants. Returns `None` if the property is not a tag in one of the
/// variants, or if the property of a variant is not an `enum`.
fn tags_of<'g>(graph: &'g Graph, given: &[(&RootVariant<'g>, &'g Prop)]) -> Option<Vec<&'g str>> {
    if !given.iter().all(|(variant, prop)| variant.tags.iter().any(|(tag, _)| *tag == prop.name)) {
        return None;
    }
    let mut out: Vec<&'g str> = Vec::new();
    for (_, prop) in given {
        let NodeKind::Enum(words) = graph.kind(prop.node) else { return None };
        for word in words.iter() {
            if !out.contains(&word.as_str()) {
                out.push(word);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use crate::args::{Plan, PlanOptions};
    use crate::schema::{Dialect, render};
    use serde_json::json;

    fn variant(kind: &str, values: &serde_json::Value) -> serde_json::Value {
        json!({
            "type": "object",
            "properties": {"kind": {"const": kind}},
            "required": ["kind"],
            "patternProperties": values,
            "additionalProperties": false,
        })
    }

    fn rendered(patterns: &[serde_json::Value], dialect: Dialect) -> serde_json::Value {
        let variants: Vec<_> =
            ["a", "b", "c"].into_iter().zip(patterns).map(|(kind, values)| variant(kind, values)).collect();
        let schema = json!({"$defs": {"number": {"type": "integer"}}, "anyOf": variants});
        render(&Plan::compile("t", &schema, PlanOptions::default()).unwrap(), dialect).schema
    }

    #[test]
    fn a_key_pattern_of_several_variants_is_written_once() {
        let number = json!({"^x": {"$ref": "#/$defs/number"}});
        let truth = |key: &str| json!({key: {"type": "boolean"}});
        let schema = rendered(&[number.clone(), truth("^y"), number.clone()], Dialect::GeminiJsonSchema);
        assert_eq!(
            schema["additionalProperties"],
            json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]})
        );
        let description = schema["description"].as_str().unwrap();
        assert!(description.ends_with("\nKeys match `^x` or `^y`."), "{description}");

        // The variants give the key pattern different schemas, so a value may fit either.
        let schema = rendered(&[number.clone(), truth("^x"), number], Dialect::Plain);
        let either = json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]});
        assert_eq!(schema["patternProperties"], json!({"^x": either}));
        let schema = rendered(&[truth("^x"), truth("^x")], Dialect::Plain);
        assert_eq!(schema["patternProperties"], truth("^x"));
    }
}
