//! Finds values of a JSON text by their paths, and replaces them.

use crate::args::document::{Doc, Document, Shape};
use crate::args::plan::{Graph, NodeId, NodeKind, Prop};
use crate::args::text::{offset_in, push_index, push_json, push_segment};
use std::borrow::Cow;

pub(super) struct PlannedValue<'g, 'd, 't> {
    pub(super) node: NodeId,
    pub(super) doc: &'d Doc<'t>,
    pub(super) prop: Option<&'g Prop>,
    pub(super) secret: bool,
    /// `None` for the root.
    pub(super) parent: Option<Parent<'d, 't>>,
}

pub(super) struct Parent<'d, 't> {
    pub(super) node: NodeId,
    pub(super) doc: &'d Doc<'t>,
}

pub(super) fn keys(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(|segment| {
        if segment.contains('~') {
            segment.replace("~1", "/").replace("~0", "~").into()
        } else {
            segment.into()
        }
    })
}

pub(super) fn value_at<'d, 't>(root: &'d Doc<'t>, pointer: &str) -> Option<&'d Doc<'t>> {
    keys(pointer).try_fold(root, |doc, key| below(doc, &key))
}

fn below<'d, 't>(doc: &'d Doc<'t>, key: &str) -> Option<&'d Doc<'t>> {
    match &doc.shape {
        Shape::Object(entries) => entries.iter().find(|(own, _)| own == key).map(|(_, value)| value),
        Shape::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Returns the value at a path, with its schema node. `chosen` selects an alternative of a union.
pub(super) fn place_at<'g, 'd, 't>(
    graph: &'g Graph,
    root: &'d Doc<'t>,
    pointer: &str,
    chosen: &dyn Fn(NodeId, &Doc<'_>) -> Option<NodeId>,
) -> Option<PlannedValue<'g, 'd, 't>> {
    let mut place = PlannedValue { node: graph.root, doc: root, prop: None, secret: false, parent: None };
    for key in keys(pointer) {
        let inner = entered(graph, place.node, place.doc, chosen, 0)?;
        let doc = below(place.doc, &key)?;
        let parent = Some(Parent { node: inner, doc: place.doc });
        let (node, prop) = match graph.kind(inner) {
            NodeKind::Object(object) => {
                let child = object.child(&key, 0)?;
                (child.node(), child.prop(object))
            }
            NodeKind::Array(array) => (array.item(key.parse().ok()?)?, None),
            NodeKind::Any => (graph.any, None),
            _ => return None,
        };
        let secret = place.secret || prop.is_some_and(|prop| prop.secret);
        place = PlannedValue { node, doc, prop, secret, parent };
    }
    Some(place)
}

/// Returns the schema node that defines a value's keys or items. `chosen` selects an alternative of a union.
pub(super) fn entered(
    graph: &Graph,
    node: NodeId,
    doc: &Doc<'_>,
    chosen: &dyn Fn(NodeId, &Doc<'_>) -> Option<NodeId>,
    depth: usize,
) -> Option<NodeId> {
    let next = match graph.kind(node) {
        NodeKind::Union { .. } => chosen(node, doc)?,
        _ => match doc.referred(graph, node) {
            Some(next) => next,
            None => return Some(node),
        },
    };
    // No real schema nests references and unions this deeply.
    if depth > 64 { None } else { entered(graph, next, doc, chosen, depth + 1) }
}

/// Returns the paths of the scalars, empty objects and empty lists at or below a value; `None` if there are more than `most`.
pub(super) fn leaves(doc: &Doc<'_>, pointer: &str, most: usize) -> Option<Vec<String>> {
    fn walk(doc: &Doc<'_>, pointer: &mut String, most: usize, out: &mut Vec<String>) -> Option<()> {
        let length = pointer.len();
        match &doc.shape {
            Shape::Object(entries) if !entries.is_empty() => {
                for (key, value) in entries {
                    push_segment(pointer, key);
                    walk(value, pointer, most, out)?;
                    pointer.truncate(length);
                }
            }
            Shape::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    push_index(pointer, index);
                    walk(item, pointer, most, out)?;
                    pointer.truncate(length);
                }
            }
            _ if out.len() < most => out.push(pointer.clone()),
            _ => return None,
        }
        Some(())
    }
    let mut out = Vec::new();
    walk(doc, &mut pointer.to_owned(), most, &mut out)?;
    Some(out)
}

pub(super) fn replaced(root: &Doc<'_>, part: &Doc<'_>, by: &str) -> Option<String> {
    let start = offset_in(root.raw, part.raw)?;
    let (before, rest) = root.raw.split_at_checked(start)?;
    let after = rest.get(part.raw.len()..)?;
    Some([before, by, after].concat())
}

/// Returns `text` with the value at each path replaced. A path without a value is ignored.
pub(super) fn with_values<'v>(
    text: &str,
    values: impl Iterator<Item = (&'v str, Cow<'v, str>)>,
) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let root = &document.root;
    let mut parts: Vec<(usize, usize, Cow<'v, str>)> = values
        .filter_map(|(pointer, by)| {
            let part = value_at(root, pointer)?;
            let start = offset_in(text, part.raw)?;
            Some((start, start + part.raw.len(), by))
        })
        .collect();
    parts.sort_by_key(|part| part.0);
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for (start, end, by) in parts {
        out.push_str(text.get(done..start)?);
        out.push_str(&by);
        done = end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// Returns the text of an object with one key renamed. If `name` is `None`, the entry is left out.
pub(super) fn with_key(object: &Doc<'_>, key: &str, name: Option<&str>) -> Option<String> {
    let Shape::Object(entries) = &object.shape else { return None };
    let mut out = String::with_capacity(object.raw.len() + 8);
    out.push('{');
    for (own, value) in entries {
        let own = if own == key { name } else { Some(own.as_ref()) };
        let Some(own) = own else { continue };
        if out.len() > 1 {
            out.push(',');
        }
        push_entry(&mut out, own, value.raw);
    }
    out.push('}');
    Some(out)
}

pub(super) fn push_entry(out: &mut String, key: &str, value: &str) {
    push_json(out, key);
    out.push(':');
    out.push_str(value);
}
