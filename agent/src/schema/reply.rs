//! Removes the nulls by which a model marks absent parameters in strict mode.

use super::dialect::Dialect;
use super::render::variants;
use crate::args::{Doc, Document, Graph, NodeId, NodeKind, ObjectSpec, Plan, Shape, fits};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// Removes the parameters that a model sent as null instead of leaving them out. [`Dialect::OpenAiStrict`] makes every parameter required,
/// so a model writes null for an absent one. No coercion is needed, so the policy `exact` accepts the returned text.
///
/// In other dialects the text is returned unchanged. Text that is not JSON, repeated keys, and nulls that are values or mistakes never
/// change.
///
/// ```
/// use agent::args::{CoercionPolicy, Plan, PlanOptions};
/// use agent::schema::{Dialect, restore_nulls};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search { query: String, limit: Option<u32> }
///
/// let plan = Plan::for_type::<Search>("search", PlanOptions::default().coercion(CoercionPolicy::exact()))?;
/// let text = restore_nulls(&plan, Dialect::OpenAiStrict, r#"{"query": "rust", "limit": null}"#);
/// assert_eq!(text, r#"{"query":"rust"}"#);
/// let parsed = plan.parse::<Search>(&text)?;
/// assert!(parsed.coercions().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn restore_nulls<'t>(plan: &Plan, dialect: Dialect, text: &'t str) -> Cow<'t, str> {
    if dialect != Dialect::OpenAiStrict || !text.contains("null") {
        return Cow::Borrowed(text);
    }
    let Ok(document) = Document::parse(text) else { return Cow::Borrowed(text) };
    let mut walk = Restorer { graph: plan.graph(), trials: MAX_TRIALS };
    match walk.root(&document.root) {
        Some(restored) => Cow::Owned(restored),
        None => Cow::Borrowed(text),
    }
}

/// Maximum number of alternatives that are tried in the whole text.
const MAX_TRIALS: usize = 200;

/// Removes the nulls that mean "absent" from a reply. The methods return the new text of a value, or `None` if the text stays unchanged.
/// The parser limits the recursion to 128 levels.
struct Restorer<'g> {
    graph: &'g Graph,
    trials: usize,
}

type ObjectEntries<'t> = [(Cow<'t, str>, Doc<'t>)];

impl Restorer<'_> {
    /// Restores the root. If the root is an enum, the model saw one object with the properties of all variants.
    fn root(&mut self, doc: &Doc<'_>) -> Option<String> {
        let Shape::Object(entries) = &doc.shape else { return None };
        if self.graph.root_object().is_some() {
            return self.node(self.graph.root, doc);
        }
        let variants = variants(self.graph)?;
        let known: HashSet<&str> =
            variants.iter().flat_map(|v| v.object.props.iter().map(|p| p.name.as_str())).collect();
        let mut first = None;
        for variant in &variants {
            let chosen = variant.tags.iter().all(|(tag, name)| {
                matches!(doc.entry(tag).map(|d| &d.shape), Some(Shape::Text(sent)) if sent == name)
            });
            if !chosen {
                continue;
            }
            let restored = match variant.external {
                Some(_) => self.external(variant.object, entries),
                None => self.object(variant.object, entries, Some(&known)),
            };
            if variants.len() == 1
                || self.is_match(self.graph.root, restored.as_deref().unwrap_or(doc.raw), true)?
            {
                return restored;
            }
            first.get_or_insert(restored);
        }
        // If no variant fits, the nulls are removed as for the first variant whose tags match.
        first.flatten()
    }

    /// Returns whether the text fits the node, or `None` when the trials are used up.
    fn is_match(&mut self, id: NodeId, text: &str, root: bool) -> Option<bool> {
        self.trials = self.trials.checked_sub(1)?;
        Some(fits(self.graph, id, text, root))
    }

    fn node(&mut self, id: NodeId, doc: &Doc<'_>) -> Option<String> {
        match (self.graph.kind(id), &doc.shape) {
            (NodeKind::Object(object), Shape::Object(entries)) => self.object(object, entries, None),
            (NodeKind::Array(array), Shape::Array(items)) => {
                let mut changed = false;
                let texts = items.iter().enumerate().map(|(i, item)| {
                    let restored = array.item(i).and_then(|id| self.node(id, item));
                    changed |= restored.is_some();
                    restored.map_or(Cow::Borrowed(item.raw), Cow::Owned)
                });
                let texts: Vec<Cow<'_, str>> = texts.collect();
                changed.then(|| format!("[{}]", texts.join(",")))
            }
            (NodeKind::Union { branches, .. }, Shape::Object(_) | Shape::Array(_)) => {
                for branch in branches {
                    let restored = self.node(*branch, doc);
                    if self.is_match(*branch, restored.as_deref().unwrap_or(doc.raw), false)? {
                        return restored;
                    }
                }
                None
            }
            _ => self.node(doc.referred(self.graph, id)?, doc),
        }
    }

    /// Restores an object. If the object is one of several variants of the arguments, `known` has the property names of all variants.
    fn object(
        &mut self,
        object: &ObjectSpec,
        entries: &ObjectEntries<'_>,
        known: Option<&HashSet<&str>>,
    ) -> Option<String> {
        let prop = |key: &str| object.find(key, 0).map(|i| &object.props[i]);
        let (mut given, mut twice) = (HashSet::new(), HashSet::new());
        for (key, _) in entries {
            let name = prop(key).map_or(key.as_ref(), |p| p.name.as_str());
            if !given.insert(name) {
                twice.insert(name);
            }
        }
        let mut out = Vec::with_capacity(entries.len());
        let mut changed = false;
        for (key, value) in entries {
            let prop = prop(key);
            let name = prop.map_or(key.as_ref(), |p| p.name.as_str());
            let optional = match prop {
                Some(prop) => prop.null_absent,
                // If the key is a parameter of another variant, null means that this parameter is absent.
                None => known.is_some_and(|known| known.contains(name)),
            };
            if value.is_null() && optional && !twice.contains(name) {
                changed = true;
                continue;
            }
            let restored = object.child(key, 0).and_then(|child| self.node(child.node(), value));
            changed |= restored.is_some();
            out.push((key.as_ref(), restored.map_or(Cow::Borrowed(value.raw), Cow::Owned)));
        }
        changed.then(|| object_text(&out))
    }

    /// Restores an externally tagged enum: `{"A": 1, "B": null}` becomes `{"A": 1}`. If all entries are null, variants that accept null
    /// stay.
    fn external(&mut self, object: &ObjectSpec, entries: &ObjectEntries<'_>) -> Option<String> {
        let node = |key: &str| object.find(key, 0).map(|i| object.props[i].node);
        let distinct: HashSet<&str> = entries.iter().map(|(key, _)| key.as_ref()).collect();
        if distinct.len() < entries.len() {
            return None;
        }
        let some = entries.iter().any(|(_, value)| !value.is_null());
        let mut out = Vec::with_capacity(1);
        let mut changed = false;
        for (key, value) in entries {
            let kept = match node(key) {
                _ if !value.is_null() => true,
                Some(id) => !some && self.graph.node(id).takes_null,
                // An unknown variant stays, so that the report names it.
                None => true,
            };
            if kept {
                let restored = node(key).and_then(|id| self.node(id, value));
                changed |= restored.is_some();
                out.push((key.as_ref(), restored.map_or(Cow::Borrowed(value.raw), Cow::Owned)));
            } else {
                changed = true;
            }
        }
        changed.then(|| object_text(&out))
    }
}

fn object_text(entries: &[(&str, Cow<'_, str>)]) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{}:{value}", Value::from(*key))).collect();
    format!("{{{}}}", entries.join(","))
}
