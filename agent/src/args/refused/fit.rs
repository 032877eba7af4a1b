//! Replaces each value that the schema refuses, so that the Rust types can check the other values.

use super::edit::push_entry;
use super::sample::{Sample, first_sample, samples};
use crate::args::document::{Doc, Document, Shape};
use crate::args::judge::{WalkState, count};
use crate::args::object_keys::{KeyRole, ObjectRules, SeenKeys};
use crate::args::plan::{ArraySpec, Graph, NodeId, NodeKind, ObjectSpec, Prop};
use crate::args::text::{push_index, push_segment};
use crate::name_hash::NameHash;
use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum depth at which values are changed. A deeper value that is refused is replaced as a whole.
const MAX_DEPTH: usize = 64;

pub(super) struct TextFitter<'f> {
    pub(super) graph: &'f Graph,
    pub(super) shared: &'f WalkState<'f>,
    pub(super) path: String,
    pub(super) touched: Vec<String>,
    /// The path of the first value for which no replacement was found.
    pub(super) stuck: Option<String>,
}

impl TextFitter<'_> {
    pub(super) fn value<'d>(
        &mut self,
        node: NodeId,
        doc: &'d Doc<'_>,
        prop: Option<&Prop>,
        depth: usize,
    ) -> Option<Cow<'d, str>> {
        let graph = self.graph;
        // The root is not tested, because the arguments as a whole were refused.
        if depth > 0 && self.is_accepted(node, doc) {
            return Some(doc.raw.into());
        }
        let (known, length) = (self.touched.len(), self.path.len());
        let parts = if depth > MAX_DEPTH { None } else { self.parts(node, doc, depth) };
        self.path.truncate(length);
        if let Some(text) = parts.filter(|text| self.is_its_parts(node) || self.fits(node, text, depth == 0))
        {
            return Some(text.into());
        }
        self.touched.truncate(known);
        self.touched.push(self.path.clone());
        let made = first_sample(graph, node, prop);
        if made.is_none() {
            self.stuck.get_or_insert_with(|| self.path.clone());
        }
        made.map(|Sample { text, .. }| text.into())
    }

    fn is_accepted(&self, node: NodeId, doc: &Doc<'_>) -> bool {
        doc.fits_exactly(self.graph, node)
            || count(self.shared, node, doc).count == 0
            || self.is_for_the_type(node, doc)
    }

    fn is_for_the_type(&self, node: NodeId, doc: &Doc<'_>) -> bool {
        let node = match self.graph.kind(node) {
            NodeKind::Nullable(inner) => *inner,
            _ => node,
        };
        match (self.graph.kind(node), &doc.shape) {
            (NodeKind::Str(spec), Shape::Text(text)) => spec.is_for_the_type(text),
            _ => false,
        }
    }

    /// Returns whether a value fits if each of its entries or items fits. This is not so if the schema node has a rule about the whole
    /// value, such as `uniqueItems`.
    fn is_its_parts(&self, node: NodeId) -> bool {
        match self.graph.kind(node) {
            NodeKind::Object(object) => object.min == 0 && object.max == u64::MAX,
            NodeKind::Array(array) => !array.unique && array.is_list(),
            _ => false,
        }
    }

    /// Returns whether a text fits a schema node. Formats that the Rust type itself checks are ignored here.
    fn fits(&self, node: NodeId, text: &str, root: bool) -> bool {
        let Ok(document) = Document::parse(text) else { return false };
        let shared = WalkState::new(self.graph, text, root.then_some(&document.root), false);
        let found = count(&shared, node, &document.root);
        found.count == found.for_the_type
    }

    fn parts(&mut self, node: NodeId, doc: &Doc<'_>, depth: usize) -> Option<String> {
        let graph = self.graph;
        match (graph.kind(node), &doc.shape) {
            (NodeKind::Object(object), Shape::Object(entries)) => self.object(object, entries, depth),
            (NodeKind::Array(array), Shape::Array(items)) => self.array(array, items, depth),
            (NodeKind::Union { .. }, _) => {
                let branch = self.shared.closest(node, doc)?;
                self.parts(branch, doc, depth)
            }
            _ => self.parts(doc.referred(graph, node)?, doc, depth),
        }
    }

    fn object(
        &mut self,
        object: &ObjectSpec,
        entries: &[(Cow<'_, str>, Doc<'_>)],
        depth: usize,
    ) -> Option<String> {
        let mut out = String::with_capacity(128);
        out.push('{');
        let rules = ObjectRules::new(self.graph, object, false);
        let mut seen = SeenKeys::<()>::default();
        let length = self.path.len();
        let mut hint = 0;
        for (key, doc) in entries {
            push_segment(&mut self.path, key);
            let role = rules.role(key, &mut hint);
            let is_new = match role {
                KeyRole::Property(index) => seen.add(index),
                _ => seen.add_other(rules.identity(Cow::Borrowed(key)), ()),
            };
            let value = match role {
                _ if !is_new => None,
                KeyRole::Property(index) => {
                    let prop = object.props.get(index)?;
                    if doc.is_null() && prop.null_absent {
                        None
                    } else {
                        let value = self.value(prop.node, doc, Some(prop), depth + 1);
                        if value.is_none() && prop.required {
                            return None;
                        }
                        value
                    }
                }
                KeyRole::Entry(node) => self.value(node, doc, None, depth + 1),
                KeyRole::Dropped | KeyRole::Unknown => None,
            };
            match value {
                Some(value) => {
                    if out.len() > 1 {
                        out.push(',');
                    }
                    push_entry(&mut out, key, &value);
                }
                None => self.touched.push(self.path.clone()),
            }
            self.path.truncate(length);
        }
        for prop in seen.missing(object) {
            push_segment(&mut self.path, &prop.name);
            self.touched.push(self.path.clone());
            let Some(made) = first_sample(self.graph, prop.node, Some(prop)) else {
                self.stuck.get_or_insert_with(|| self.path.clone());
                self.path.truncate(length);
                return None;
            };
            self.path.truncate(length);
            if out.len() > 1 {
                out.push(',');
            }
            push_entry(&mut out, &prop.name, &made.text);
        }
        out.push('}');
        Some(out)
    }

    fn array(&mut self, array: &ArraySpec, items: &[Doc<'_>], depth: usize) -> Option<String> {
        let mut out: Vec<Cow<'_, str>> = Vec::with_capacity(items.len());
        let most = usize::try_from(array.max).unwrap_or(usize::MAX);
        let least = usize::try_from(array.min).unwrap_or(usize::MAX);
        let length = self.path.len();
        let mut seen: HashSet<Cow<'_, str>, _> = HashSet::with_hasher(NameHash::default());
        for (index, item) in items.iter().take(most).enumerate() {
            let node = array.item(index)?;
            push_index(&mut self.path, index);
            let mut value = self.value(node, item, None, depth + 1)?;
            if array.unique && seen.contains(&value) {
                self.touched.push(self.path.clone());
                value = samples(self.graph, node, None, &[])
                    .into_iter()
                    .find(|made| !seen.contains(made.text.as_str()))?
                    .text
                    .into();
            }
            if array.unique {
                seen.insert(value.clone());
            }
            out.push(value);
            self.path.truncate(length);
        }
        if items.len() > most {
            push_index(&mut self.path, most);
            self.touched.push(self.path.clone());
            self.path.truncate(length);
        }
        while out.len() < least {
            let made = samples(self.graph, array.item(out.len())?, None, &[]);
            let made = made.into_iter().find(|made| !array.unique || !seen.contains(made.text.as_str()))?;
            push_index(&mut self.path, out.len());
            self.touched.push(self.path.clone());
            self.path.truncate(length);
            if array.unique {
                seen.insert(made.text.clone().into());
            }
            out.push(made.text.into());
            if out.len() > MAX_ADDED && out.len() > items.len() + MAX_ADDED {
                return None;
            }
        }
        Some(format!("[{}]", out.join(",")))
    }
}

const MAX_ADDED: usize = 64;
