//! Renders a `Graph`, the content of a `Plan`, as JSON Schema. Arguments are validated against the same graph, so the schema and the
//! validation cannot differ.

mod array;
mod checks;
mod choice;
mod notes;
mod object;
mod root;
mod scalar;
mod written;

use super::abilities::{Abilities, EXTENSIONS, NullForm, ReferenceSupport, RestKeyword, abilities};
use super::change::{Change, ChangeKind};
use super::cycles::Cycles;
use super::dialect::Dialect;
use crate::args::{
    Graph, NodeId, NodeKind, SchemaError, UnknownKeys, cut, push_index, push_segment, signature,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use written::SchemaDraft;

pub(super) use root::variants;

/// Maximum number of schema nodes to render. A definition is rendered at each use, so a small `Plan` can have a large schema.
const MAX_NODES: usize = 20_000;
/// Maximum depth of the schema. Arguments that are nested deeper cannot be parsed either.
const MAX_DEPTH: usize = 128;

type Result<T> = std::result::Result<T, SchemaError>;

pub(super) fn canonical(graph: &Graph) -> Result<Value> {
    let mut renderer = Renderer::new(graph, Dialect::Canonical);
    let root = renderer.render_inline(graph.root)?.into_value();
    renderer.with_definitions(root)
}

pub(super) fn render_lowered(graph: &Graph, dialect: Dialect) -> Result<(Value, Vec<Change>)> {
    let mut renderer = Renderer::new(graph, dialect);
    let root = renderer.root()?;
    let root = renderer.finish(root);
    let schema = renderer.with_definitions(root)?;
    Ok((schema, renderer.changes))
}

struct Renderer<'g> {
    graph: &'g Graph,
    can: &'static Abilities,
    cycles: Cycles,
    /// Recursive definitions. Every cycle contains one of these definitions, or the root.
    recursive: HashSet<NodeId>,
    referenced: BTreeSet<NodeId>,
    names: HashMap<NodeId, String>,
    written: usize,
    depth: usize,
    /// JSON pointer to the current position in the rendered schema.
    path: String,
    /// Recursive definitions that are being written out.
    open: Vec<NodeId>,
    within_optional: bool,
    changes: Vec<Change>,
}

impl<'g> Renderer<'g> {
    fn new(graph: &'g Graph, dialect: Dialect) -> Renderer<'g> {
        let can = abilities(dialect);
        let cycles = Cycles::of(graph);
        let root_by_name = can.references == ReferenceSupport::Full;
        let recursive = graph.names.keys().copied();
        let recursive: HashSet<NodeId> =
            recursive.filter(|id| cycles.is_recursive(*id) && !(root_by_name && *id == graph.root)).collect();
        let names = definition_names(graph, &recursive, root_by_name);
        Renderer {
            graph,
            can,
            cycles,
            recursive,
            referenced: BTreeSet::new(),
            names,
            written: 0,
            depth: 0,
            path: String::new(),
            open: Vec::new(),
            within_optional: false,
            changes: Vec::new(),
        }
    }

    fn with_definitions(&mut self, mut schema: Value) -> Result<Value> {
        let mut definitions = BTreeMap::new();
        while let Some(id) = self.referenced.pop_first() {
            let name = self.names.get(&id).cloned().unwrap_or_else(|| format!("node{}", id.index()));
            if definitions.values().any(|(known, _)| *known == name) || definitions.contains_key(&id) {
                continue;
            }
            self.within_optional = false;
            self.open = vec![id];
            let definition = self.at(&["$defs", &name], |r| {
                let written = r.render_inline(id)?;
                Ok(r.finish(written))
            })?;
            definitions.insert(id, (name, definition));
        }
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions.into_values().collect());
        }
        Ok(schema)
    }

    fn at<T>(&mut self, segments: &[&str], f: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        for segment in segments {
            push_segment(&mut self.path, segment);
        }
        let out = f(self);
        self.path.truncate(length);
        out
    }

    fn at_index<T>(&mut self, keyword: &str, index: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        push_segment(&mut self.path, keyword);
        push_index(&mut self.path, index);
        let out = f(self);
        self.path.truncate(length);
        out
    }

    fn record_change(&mut self, keyword: &str, kind: ChangeKind) {
        self.changes.push(Change { path: self.path.clone(), keyword: keyword.into(), kind });
    }

    fn record_inexpressible(&mut self, keyword: &str, reason: impl Into<String>) {
        self.record_change(keyword, ChangeKind::NotExpressible { reason: reason.into() });
    }

    /// Writes a keyword, or the sentence `words` if the dialect lacks the keyword.
    fn keyword(
        &mut self,
        out: &mut SchemaDraft,
        keyword: &str,
        value: Value,
        words: impl FnOnce() -> String,
    ) {
        if self.can.has(keyword) {
            out.put(keyword, value);
        } else {
            self.record_change(keyword, ChangeKind::Described);
            out.add_sentence(words());
        }
    }

    /// Returns the schema of a node, or a reference to it. In a dialect without references, a node that occurs within itself becomes a
    /// plain `object`, whose description is the signature of the node.
    fn node(&mut self, id: NodeId) -> Result<SchemaDraft> {
        let named_root = self.graph.names.get(&id).is_some_and(|name| name == "#");
        if self.can.references == ReferenceSupport::Full && (id == self.graph.root || named_root) {
            return Ok(reference("#"));
        }
        if !self.recursive.contains(&id) {
            return self.render_inline(id);
        }
        let refer = match self.can.references {
            ReferenceSupport::Full | ReferenceSupport::Definitions | ReferenceSupport::Alone => true,
            ReferenceSupport::Optional => self.within_optional || self.open.contains(&id),
            ReferenceSupport::None if self.open.contains(&id) => {
                self.record_inexpressible("$ref", "a type that contains itself");
                let mut out = SchemaDraft::typed("object");
                out.add_sentence(format!("{}.", cut(signature(self.graph, id), 200)));
                return Ok(out);
            }
            ReferenceSupport::None => false,
        };
        if refer {
            self.referenced.insert(id);
            let name = self.names.get(&id).cloned().unwrap_or_else(|| format!("node{}", id.index()));
            let name = name.replace('~', "~0").replace('/', "~1");
            return Ok(reference(&format!("#/$defs/{name}")));
        }
        self.open.push(id);
        let out = self.render_inline(id);
        self.open.pop();
        out
    }

    fn render_inline(&mut self, id: NodeId) -> Result<SchemaDraft> {
        self.written += 1;
        if self.written > MAX_NODES || self.depth >= MAX_DEPTH {
            return Err(SchemaError::too_large());
        }
        self.depth += 1;
        let mut out = self.kind(id)?;
        self.depth -= 1;
        out.add_annotations(self.graph.notes(id));
        Ok(out)
    }

    fn render_value(&mut self, id: NodeId) -> Result<Value> {
        let written = self.node(id)?;
        Ok(self.finish(written))
    }

    fn render_all(&mut self, keyword: &str, ids: impl Iterator<Item = NodeId>) -> Result<Vec<Value>> {
        ids.enumerate().map(|(i, id)| self.at_index(keyword, i, |r| r.render_value(id))).collect()
    }

    fn kind(&mut self, id: NodeId) -> Result<SchemaDraft> {
        Ok(match self.graph.kind(id) {
            NodeKind::Any => self.any(),
            NodeKind::Never => self.never(),
            NodeKind::Null => self.null(),
            NodeKind::Bool => SchemaDraft::typed("boolean"),
            NodeKind::Int(spec) => self.integer(spec),
            NodeKind::Num(spec) => self.number(spec),
            NodeKind::Str(spec) => self.string(spec),
            NodeKind::Enum(words) => strings(words.names()),
            NodeKind::Const(members) => self.members(members),
            NodeKind::Array(array) => self.array(array)?,
            NodeKind::Object(object) => self.object(id, object)?,
            NodeKind::Nullable(inner) => self.nullable(*inner)?,
            NodeKind::Tagged { variants, .. } => self.any_of(variants.iter().map(|v| v.1))?,
            NodeKind::External(external) => self.external(external)?,
            NodeKind::Checked(checked) => {
                let mut out = self.node(checked.base)?;
                self.checks(&mut out, &checked.checks);
                out
            }
            NodeKind::Union { branches, exclusive } => {
                if *exclusive {
                    self.record_change("oneOf", ChangeKind::Rewritten);
                }
                self.any_of(branches.iter().copied())?
            }
        })
    }

    fn any(&mut self) -> SchemaDraft {
        if !self.can.any {
            self.record_inexpressible("type", "a value of any type");
            if self.can.null == NullForm::Keyword {
                return SchemaDraft::typed("string");
            }
        }
        SchemaDraft::default()
    }

    fn never(&mut self) -> SchemaDraft {
        let mut out = SchemaDraft::default();
        if self.can.has("not") {
            out.put("not", json!({}));
        } else {
            self.record_inexpressible("not", "no value is allowed here");
        }
        out
    }

    fn null(&mut self) -> SchemaDraft {
        if self.can.null != NullForm::Keyword {
            return SchemaDraft::typed("null");
        }
        self.record_change("type", ChangeKind::Rewritten);
        let mut out = SchemaDraft::typed("string");
        out.put("nullable", json!(true));
        out.add_sentence("Always null.".into());
        out
    }

    /// Returns a schema that accepts null and the values of a node.
    fn nullable(&mut self, id: NodeId) -> Result<SchemaDraft> {
        let kind = self.graph.kind(self.graph.unchecked(id));
        if matches!(kind, NodeKind::Nullable(_) | NodeKind::Null | NodeKind::Any)
            && !self.recursive.contains(&id)
        {
            return self.node(id);
        }
        if self.can.null == NullForm::Keyword {
            let mut out = self.node(id)?;
            out.put("nullable", json!(true));
            return Ok(out);
        }
        let scalar = matches!(kind, NodeKind::Bool | NodeKind::Int(_) | NodeKind::Num(_) | NodeKind::Str(_));
        let choice = matches!(kind, NodeKind::Tagged { .. } | NodeKind::Union { .. } | NodeKind::External(_));
        let referred = self.recursive.contains(&id);
        if self.can.null == NullForm::Types || scalar && !referred {
            let mut out = self.node(id)?;
            match out.schema.get("type").cloned() {
                Some(Value::String(name)) if !out.schema.contains_key("enum") => {
                    out.put("type", json!([name, "null"]));
                    return Ok(out);
                }
                _ => return Ok(or_null(out.into_value())),
            }
        }
        if choice && !referred {
            let mut out = self.node(id)?;
            if let Some(Value::Array(branches)) = out.schema.get_mut("anyOf") {
                branches.push(json!({"type": "null"}));
                return Ok(out);
            }
            return Ok(or_null(self.finish(out)));
        }
        let inner = self.at_index("anyOf", 0, |r| r.render_value(id))?;
        Ok(or_null(inner))
    }
}

fn or_null(inner: Value) -> SchemaDraft {
    let mut out = SchemaDraft::default();
    out.put("anyOf", vec![inner, json!({"type": "null"})].into());
    out
}

fn reference(to: &str) -> SchemaDraft {
    let mut out = SchemaDraft::default();
    out.put("$ref", to.into());
    out
}

fn strings<'w>(words: impl Iterator<Item = &'w str>) -> SchemaDraft {
    let mut out = SchemaDraft::typed("string");
    out.put("enum", words.collect::<Vec<_>>().into());
    out
}

/// Returns a name for each definition: its original name if `as_given` is true, or else a name of ASCII letters, digits, `-` and `_`.
fn definition_names(graph: &Graph, of: &HashSet<NodeId>, as_given: bool) -> HashMap<NodeId, String> {
    let mut ids: Vec<NodeId> = of.iter().copied().collect();
    ids.sort_unstable();
    let mut taken: HashMap<String, &str> = HashMap::new();
    let mut known: HashMap<&str, String> = HashMap::new();
    let mut names = HashMap::new();
    for id in ids {
        let Some(given) = graph.names.get(&id) else { continue };
        if as_given {
            names.insert(id, given.clone());
            continue;
        }
        let name = known.entry(given).or_insert_with(|| {
            let last = given.rsplit('/').next().unwrap_or_default();
            let plain: String =
                last.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
            let plain = if given == "#" || plain.is_empty() { "root".to_owned() } else { plain };
            let mut name = plain.clone();
            let mut number = 2;
            while taken.contains_key(&name) {
                name = format!("{plain}_{number}");
                number += 1;
            }
            taken.insert(name.clone(), given);
            name
        });
        names.insert(id, name.clone());
    }
    names
}
