//! Compiles JSON Schema to nodes. Schemas that apply to the same value are merged before they become nodes.

use super::clash::refuse_clashes;
use super::error::{CompileResult, SchemaError};
use super::finish::{
    Chain, carries_wide, keep_nulls, mark_frequent, mark_nulls, mark_secrets, settle, takes_objects,
};
use super::identify::with_pointers;
use super::keywords::{self, CHECKS, KNOWN, SchemaMap, notes};
use super::merge::merge;
use super::node::{ArraySpec, NodeId, NodeKind, Notes, ObjectSpec, PlanNode};
use super::pattern::Patterns;
use super::prepare::prepare;
use super::{Graph, PlanOptions, Whole};
use crate::args::policy::Rules;
use serde_json::Value;
use std::{cell::Cell, cell::RefCell, collections::BTreeSet, collections::HashMap, sync::OnceLock};

/// Maximum depth of a schema; `serde_json` does not read deeper values either.
const MAX_DEPTH: usize = 128;
const MAX_NODES: usize = 50_000;
/// Maximum total cost of combinations and references: about 20,000 merges of small schemas, which take about a second.
const MAX_WORK: usize = 2_000_000;
/// The cost of merging two schemas, or of visiting an alternative. For comparison, copying one value of a schema costs 1.
pub(super) const MERGE_COST: usize = 100;

/// The reason why a 128-bit integer is refused inside a type that serde buffers.
pub(super) const WIDE: &str =
    "of 128 bits cannot be carried by serde inside a tagged, untagged or flattened type: take it as text";

pub(super) fn derived(schema: &Value, options: PlanOptions) -> CompileResult<Graph> {
    refuse_clashes(schema)?;
    let mut schema = schema.clone();
    prepare(&mut schema);
    let (graph, _) = compile(&schema, options, false)?;
    Ok(graph)
}

/// Compiles a schema that schemars did not make.
pub(super) fn foreign(schema: &Value, options: PlanOptions) -> CompileResult<Graph> {
    let document = with_pointers(schema, has_lone_references(schema))?;
    let (mut graph, dropped) = compile(&document, options, true)?;
    if dropped.is_empty() {
        return Ok(graph);
    }
    let keywords: BTreeSet<&str> = dropped.iter().map(|d| d.keyword).collect();
    graph.whole = Some(Whole::new(schema, &document, &Vec::from_iter(keywords))?);
    // The validator checks the whole value, with the dropped keywords. The nodes lack these keywords, so several alternatives of a
    // `oneOf` may fit, and no union may be exclusive. A check such as `not` that lacks a keyword may refuse too much. If any check lacks
    // a keyword, all checks are dropped.
    let in_checks = dropped.iter().any(|d| d.in_check);
    for node in &mut graph.nodes {
        match &mut node.kind {
            NodeKind::Union { exclusive, .. } => *exclusive = false,
            NodeKind::Checked(checked) if in_checks => checked.checks.clear(),
            _ => {}
        }
    }
    Ok(graph)
}

fn compile(schema: &Value, options: PlanOptions, foreign: bool) -> CompileResult<(Graph, Vec<Dropped>)> {
    let rules = options.policy().rules();
    let mut c = Compiler {
        foreign,
        root: schema,
        nodes: Vec::new(),
        notes: Vec::new(),
        rules,
        references: HashMap::new(),
        definitions: HashMap::new(),
        slots: HashMap::new(),
        variant_docs: HashMap::new(),
        pointer: String::new(),
        depth: 0,
        flattened: Vec::new(),
        buffered: 0,
        work: Cell::new(0),
        patterns: Patterns::default(),
        lone_references: foreign && has_lone_references(schema),
        dropped: RefCell::default(),
    };
    let any = c.push(NodeKind::Any);
    let compiled = c.root()?;
    let Compiler { mut nodes, notes, slots, references, definitions, dropped, flattened, .. } = c;
    let settle = |id: NodeId| settle(id, &slots);
    for node in &mut nodes {
        node.kind.each_child_mut(|id| *id = settle(*id));
    }
    let root = settle(compiled);
    let name = |place: usize| definitions.get(&place).cloned();
    let names =
        references.into_iter().filter_map(|((place, _), id)| Some((settle(id), name(place)?))).collect();
    if !takes_objects(&nodes, root, 0) {
        return Err(SchemaError::new(
            "type",
            "",
            "must describe an object: arguments are always one JSON object",
        ));
    }
    mark_nulls(&mut nodes).map_err(|chain| {
        let reason = match chain {
            Chain::Circle => "refers to itself without anything in between",
            Chain::TooLong => "leads through too many alternatives of alternatives",
        };
        SchemaError::new("$ref", "", reason)
    })?;
    if !foreign && carries_wide(&nodes, flattened.into_iter().map(settle)) {
        return Err(SchemaError::new("format", "", WIDE));
    }
    if foreign {
        keep_nulls(&mut nodes);
    }
    mark_secrets(&mut nodes);
    mark_frequent(&mut nodes);
    let signatures = nodes.iter().map(|_| OnceLock::new()).collect();
    let graph = Graph {
        nodes,
        notes,
        names,
        root,
        any,
        any_object: ObjectSpec::any(any),
        any_array: ArraySpec::any(any),
        options,
        foreign,
        whole: None,
        schema: Value::Null,
        source: None,
        signatures,
        parameters: OnceLock::new(),
        parameter_lines: OnceLock::new(),
    };
    Ok((graph, dropped.into_inner()))
}

/// Returns whether all keywords next to a `$ref` are ignored, as in the drafts before 2019-09 (draft-07, core, 8.3).
fn has_lone_references(schema: &Value) -> bool {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"].iter().any(|d| dialect.contains(d))
}

pub(super) struct Compiler<'s> {
    pub(super) foreign: bool,
    pub(super) root: &'s Value,
    pub(super) nodes: Vec<PlanNode>,
    notes: Vec<Notes>,
    pub(super) rules: Rules,
    /// The nodes of referenced schemas, by the schema's address in memory and the rules.
    pub(super) references: HashMap<(usize, Rules), NodeId>,
    pub(super) definitions: HashMap<usize, String>,
    /// The placeholder nodes, each with the compiled node that replaces it. A recursive `$ref` leads to a placeholder, because its schema
    /// is still being compiled.
    pub(super) slots: HashMap<NodeId, NodeId>,
    /// The descriptions of an enum's variants, one line each, by the node of the enum.
    pub(super) variant_docs: HashMap<NodeId, String>,
    pub(super) pointer: String,
    depth: usize,
    /// Nodes whose fields are flattened into another type. Serde buffers their values.
    pub(super) flattened: Vec<NodeId>,
    /// The number of tagged or untagged enums around the current schema. Serde buffers the values of such enums.
    pub(super) buffered: usize,
    work: Cell<usize>,
    pub(super) patterns: Patterns,
    pub(super) lone_references: bool,
    /// Keywords that the plan does not model. The validator of the whole schema checks these keywords.
    dropped: RefCell<Vec<Dropped>>,
}

struct Dropped {
    keyword: &'static str,
    /// Whether the keyword is inside a check such as `not`. Without the keyword, the check may refuse valid values.
    in_check: bool,
}

impl Compiler<'_> {
    /// Compiles the schema of the arguments as a whole. The arguments are always an object, even if the schema does not say
    /// so.
    fn root(&mut self) -> CompileResult<NodeId> {
        let schema = self.root;
        let says_so = schema.get("type").is_some_and(|t| t == "object");
        if !self.foreign || says_so && schema.get("$ref").is_none() {
            let slot = self.push(NodeKind::Never);
            let place = std::ptr::from_ref(schema).addr();
            self.references.insert((place, self.rules), slot);
            self.definitions.insert(place, "#".into());
            let compiled = self.schema(schema)?;
            self.slots.insert(slot, compiled);
            return Ok(compiled);
        }
        let object = SchemaMap::from_iter([("type".to_owned(), Value::from("object"))]);
        let merged = match self.resolved(schema)? {
            Some(own) => self.merged(&own, &object)?,
            None => None,
        };
        match merged {
            Some(merged) => self.schema(&Value::Object(merged)),
            None => Ok(self.push(NodeKind::Never)),
        }
    }

    pub(super) fn push(&mut self, kind: NodeKind) -> NodeId {
        // The method `schema` limits the number of nodes to far below `u32::MAX`.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(PlanNode { id, kind, rules: self.rules, holds_secret: false, takes_null: false });
        self.notes.push(Notes::new());
        id
    }

    pub(super) fn error(&self, keyword: &str, reason: impl Into<String>) -> SchemaError {
        SchemaError::new(keyword, &self.pointer, reason)
    }

    pub(super) fn kind(&self, id: NodeId) -> &NodeKind {
        &self.nodes[id.0 as usize].kind
    }

    pub(super) fn kind_mut(&mut self, id: NodeId) -> &mut NodeKind {
        &mut self.nodes[id.0 as usize].kind
    }

    pub(super) fn notes_mut(&mut self, id: NodeId) -> &mut Notes {
        &mut self.notes[id.0 as usize]
    }

    pub(super) fn below(&mut self, segments: &[&str], rules: Rules, schema: &Value) -> CompileResult<NodeId> {
        let (length, before) = (self.pointer.len(), self.rules);
        for segment in segments {
            crate::args::text::push_segment(&mut self.pointer, segment);
        }
        self.rules = rules;
        let id = self.schema(schema)?;
        self.rules = before;
        self.pointer.truncate(length);
        Ok(id)
    }

    pub(super) fn schema(&mut self, schema: &Value) -> CompileResult<NodeId> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("$ref", "nests too deeply, or refers to itself with changes"));
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(self.error("$ref", "makes the schema too large"));
        }
        self.depth += 1;
        let id = self.kind_of(schema)?;
        self.depth -= 1;
        // A reference, or an `allOf` with a single part, gets no annotations, because other references may share its node.
        if schema.get("$ref").is_none() && schema.as_object().is_none_or(|m| self.only_part(m).is_none()) {
            let notes = notes(schema);
            if !notes.is_empty() {
                let own = self.notes_mut(id);
                for (keyword, note) in notes {
                    own.entry(keyword).or_insert(note);
                }
            }
        }
        Ok(id)
    }

    fn kind_of(&mut self, schema: &Value) -> CompileResult<NodeId> {
        let map = match schema {
            Value::Bool(true) => return Ok(self.push(NodeKind::Any)),
            Value::Bool(false) => return Ok(self.push(NodeKind::Never)),
            Value::Object(map) => map,
            _ => return Err(self.error("$schema", "must be an object or a boolean")),
        };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            if self.lone_references {
                return self.reference(reference, &SchemaMap::new());
            }
            keywords::check(map, &self.pointer, self.foreign)?;
            let (reference, map) = (reference.to_owned(), self.normal(map)?);
            return self.with_checks(&map, |c, map| c.reference(&reference, map));
        }
        keywords::check(map, &self.pointer, self.foreign)?;
        let map = self.with_pattern_checks(self.normal(map)?);
        self.with_checks(&map, Self::unchecked)
    }

    fn unchecked(&mut self, map: &SchemaMap) -> CompileResult<NodeId> {
        if let Some(constant) = map.get("const") {
            return self.closed_set(std::slice::from_ref(constant), map);
        }
        if let Some(Value::Array(members)) = map.get("enum") {
            return self.closed_set(members, map);
        }
        if let Some(keyword) = ["allOf", "oneOf", "anyOf"].into_iter().find(|k| map.contains_key(*k)) {
            return self.combination(keyword, map);
        }
        match map.get("type") {
            Some(Value::String(name)) => self.typed(name, map),
            Some(Value::Array(names)) => self.type_list(names, map),
            _ => self.untyped(map),
        }
    }

    fn type_list(&mut self, names: &[Value], map: &SchemaMap) -> CompileResult<NodeId> {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let mut branches = Vec::new();
        for name in names.iter().filter(|n| **n != "null") {
            // Every integer is a number, so `integer` would add nothing.
            if *name == "integer" && names.contains(&"number") {
                continue;
            }
            branches.push(self.typed(name, map)?);
        }
        let id = match branches[..] {
            [] => return Ok(self.push(NodeKind::Null)),
            [only] => only,
            _ => self.push(NodeKind::Union { branches, exclusive: false }),
        };
        Ok(if names.contains(&"null") { self.push(NodeKind::Nullable(id)) } else { id })
    }

    /// Compiles a schema without `type` as a union of all types. Each keyword restricts only values of its own type.
    fn untyped(&mut self, map: &SchemaMap) -> CompileResult<NodeId> {
        if !map.keys().any(|keyword| keywords::type_of(keyword).is_some() || keyword == KNOWN) {
            return Ok(self.push(NodeKind::Any));
        }
        let mut branches = Vec::new();
        for name in keywords::TYPES {
            let branch = self.typed(name, map)?;
            // Every type is accepted, so a value is never coerced to another type. Values inside it keep their own rules.
            self.nodes[branch.0 as usize].rules = self.rules.without_coercion();
            branches.push(branch);
        }
        branches.push(self.push(NodeKind::Bool));
        let id = self.push(NodeKind::Union { branches, exclusive: false });
        Ok(self.push(NodeKind::Nullable(id)))
    }

    /// Merges two schemas. Returns `None` if no value can fit both.
    pub(super) fn merged(&self, a: &SchemaMap, b: &SchemaMap) -> CompileResult<Option<SchemaMap>> {
        self.charge(shape_of(a) + shape_of(b))?;
        let (a, b) = (self.normal(a)?, self.normal(b)?);
        merge(&a, &b, self.foreign).map_err(|conflict| self.error(&conflict.keyword, conflict.reason))
    }

    /// Merges `part` into the schema `outer` that contains it. `unevaluatedProperties` is added after the merge, because the keyword
    /// depends on the properties of both. Returns `None` if no value can fit both schemas.
    pub(super) fn within(&self, outer: &SchemaMap, part: &SchemaMap) -> CompileResult<Option<SchemaMap>> {
        const CLOSING: &str = "unevaluatedProperties";
        let Some(closing) = outer.get(CLOSING) else { return self.merged(outer, part) };
        let mut open = outer.clone();
        open.remove(CLOSING);
        let Some(mut out) = self.merged(&open, part)? else { return Ok(None) };
        out.insert(CLOSING.into(), closing.clone());
        Ok(Some(out))
    }

    /// Returns an error for a keyword that the plan does not support. With the feature `full-schema`, a keyword of a foreign schema is
    /// left to the JSON Schema validator.
    pub(super) fn unmodelled(&self, keyword: &'static str, reason: &str) -> CompileResult<()> {
        if !cfg!(feature = "full-schema") || !self.foreign {
            return Err(self.error(keyword, format!("{reason} (feature `full-schema` checks it)")));
        }
        self.dropped.borrow_mut().push(Dropped { keyword, in_check: self.rules.is_check() });
        Ok(())
    }

    /// Adds `cost` to the cost of compiling, which nested combinations can multiply. Fails if the total exceeds `MAX_WORK`.
    pub(super) fn charge(&self, cost: usize) -> CompileResult<()> {
        self.work.set(self.work.get().saturating_add(cost));
        if self.work.get() > MAX_WORK {
            return Err(self.error("$ref", "and combinations multiply the schema too much"));
        }
        Ok(())
    }
}

/// Returns the approximate cost of copying a schema.
fn shape_of(schema: &SchemaMap) -> usize {
    schema.len()
        + ["properties", "patternProperties", "enum", "required", CHECKS]
            .iter()
            .map(|k| match schema.get(*k) {
                Some(Value::Object(map)) => map.len(),
                Some(Value::Array(list)) => list.len(),
                _ => 0,
            })
            .sum::<usize>()
}
