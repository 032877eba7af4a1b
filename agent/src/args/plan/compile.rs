//! JSON Schema to nodes: merge first, close after.

use super::error::SchemaError;
use super::finish::{mark_secrets, redirect, settle, takes_objects, turns_in_place};
use super::keywords::{self, NOTES, restricts};
use super::merge::merge;
use super::node::{Kind, Node, NodeId, Notes, ObjectSpec, Rest};
use super::{Graph, PlanOptions};
use crate::args::policy::Rules;
use serde_json::{Map, Value};
use std::{collections::HashMap, sync::OnceLock};

/// A schema nested deeper than this is refused; `serde_json` reads no deeper values either.
const MAX_DEPTH: usize = 128;
const MAX_NODES: usize = 50_000;
/// `$ref` to `$ref` to …
const MAX_HOPS: usize = 64;
/// Combined alternatives of `allOf` are multiplied out up to this number.
pub(super) const MAX_PRODUCT: usize = 64;

pub(super) type Object = Map<String, Value>;
pub(super) type Result<T> = std::result::Result<T, SchemaError>;

/// The plan of a schema made by schemars: closed after merging, nullable optional properties without null.
pub(super) fn derived(schema: &Value, options: PlanOptions) -> Result<Graph> {
    let mut schema = schema.clone();
    drop_closing(&mut schema);
    compile(&schema, options, false)
}

/// The plan of any other schema.
pub(super) fn foreign(schema: &Value, options: PlanOptions) -> Result<Graph> {
    compile(schema, options, true)
}

/// schemars closes unions with this keyword; the plan closes what it has merged.
fn drop_closing(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove("unevaluatedProperties");
            map.values_mut().for_each(drop_closing);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_closing),
        _ => {}
    }
}

fn compile(schema: &Value, options: PlanOptions, foreign: bool) -> Result<Graph> {
    let rules = options.coercion.rules();
    let mut c = Compiler {
        foreign,
        root: schema,
        nodes: Vec::new(),
        notes: Vec::new(),
        rules,
        references: HashMap::new(),
        slots: HashMap::new(),
        variant_docs: HashMap::new(),
        pointer: String::new(),
        depth: 0,
        buffered: 0,
    };
    let any = c.push(Kind::Any);
    let slot = c.push(Kind::Never);
    c.references.insert(("#".into(), rules), slot);
    let compiled = c.schema(schema)?;
    c.slots.insert(slot, compiled);
    let Compiler { mut nodes, notes, slots, references, .. } = c;
    let settle = |id: NodeId| settle(id, &slots);
    for node in &mut nodes {
        redirect(&mut node.kind, &settle);
    }
    let mut root = settle(compiled);
    let names = references.into_iter().map(|((name, _), id)| (settle(id), name)).collect();
    let mut notes = notes;
    match &nodes[root.0 as usize].kind {
        // A schema that says nothing: any object.
        Kind::Any => {
            nodes.push(Node { kind: Kind::Object(any_object(any)), rules, holds_secret: false });
            notes.push(notes[root.0 as usize].clone());
            root = id_of(nodes.len() - 1)?;
        }
        _ if !takes_objects(&nodes, root, 0) => {
            return Err(SchemaError::new(
                "type",
                "",
                "must describe an object: arguments are always one JSON object",
            ));
        }
        _ => {}
    }
    if turns_in_place(&nodes) {
        return Err(SchemaError::new("$ref", "", "refers to itself without anything in between"));
    }
    mark_secrets(&mut nodes);
    let signatures = nodes.iter().map(|_| OnceLock::new()).collect();
    Ok(Graph {
        nodes,
        notes,
        names,
        root,
        any,
        options,
        foreign,
        schema: Value::Null,
        signatures,
        parameters: OnceLock::new(),
    })
}

fn any_object(any: NodeId) -> ObjectSpec {
    ObjectSpec {
        props: Vec::new(),
        index: None,
        patterns: Vec::new(),
        rest: Rest::Accepted(any),
        required: 0,
        min: 0,
        max: u64::MAX,
    }
}

fn id_of(index: usize) -> Result<NodeId> {
    u32::try_from(index).map(NodeId).map_err(|_| SchemaError::new("$schema", "", "is too large"))
}

pub(super) struct Compiler<'s> {
    pub(super) foreign: bool,
    root: &'s Value,
    pub(super) nodes: Vec<Node>,
    notes: Vec<Notes>,
    /// What may be coerced where we are.
    pub(super) rules: Rules,
    references: HashMap<(String, Rules), NodeId>,
    /// Places kept free for references that were open when they were met.
    slots: HashMap<NodeId, NodeId>,
    /// What the variants of a closed set say about themselves, a line each.
    pub(super) variant_docs: HashMap<NodeId, String>,
    pub(super) pointer: String,
    depth: usize,
    /// Inside something that serde buffers (a tagged or untagged enum).
    pub(super) buffered: usize,
}

impl<'s> Compiler<'s> {
    pub(super) fn push(&mut self, kind: Kind) -> NodeId {
        // `schema` bounds the number of nodes far below u32.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(Node { kind, rules: self.rules, holds_secret: false });
        self.notes.push(Notes::new());
        id
    }

    pub(super) fn error(&self, keyword: &str, reason: impl Into<String>) -> SchemaError {
        SchemaError::new(keyword, &self.pointer, reason)
    }

    pub(super) fn kind(&self, id: NodeId) -> &Kind {
        &self.nodes[id.0 as usize].kind
    }

    pub(super) fn notes_mut(&mut self, id: NodeId) -> &mut Notes {
        &mut self.notes[id.0 as usize]
    }

    /// Compiles what stands under `segment` of the schema we are at.
    pub(super) fn below(&mut self, segments: &[&str], rules: Rules, schema: &Value) -> Result<NodeId> {
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

    pub(super) fn schema(&mut self, schema: &Value) -> Result<NodeId> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("$ref", "nests too deeply, or refers to itself with changes"));
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(self.error("$ref", "makes the schema too large"));
        }
        self.depth += 1;
        let id = self.kind_of(schema)?;
        self.depth -= 1;
        if schema.get("$ref").is_none() {
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

    fn kind_of(&mut self, schema: &Value) -> Result<NodeId> {
        let map = match schema {
            Value::Bool(true) => return Ok(self.push(Kind::Any)),
            Value::Bool(false) => return Ok(self.push(Kind::Never)),
            Value::Object(map) => map,
            _ => return Err(self.error("$schema", "must be an object or a boolean")),
        };
        keywords::check(map, &self.pointer)?;
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, map);
        }
        if let Some(constant) = map.get("const") {
            return self.closed_set(std::slice::from_ref(constant), map);
        }
        if let Some(Value::Array(members)) = map.get("enum") {
            return self.closed_set(members, map);
        }
        if let Some(Value::Array(parts)) = map.get("allOf") {
            return self.all_of(parts, map);
        }
        for keyword in ["oneOf", "anyOf"] {
            if map.contains_key(keyword) {
                let exclusive = self.foreign && keyword == "oneOf";
                let alternatives = self.alternatives(map, 0)?;
                return self.union(alternatives, exclusive, keyword, map.get("description"));
            }
        }
        match map.get("type") {
            Some(Value::String(name)) => self.typed(name, map),
            Some(Value::Array(names)) => self.type_list(names, map),
            _ => self.untyped(map),
        }
    }

    fn type_list(&mut self, names: &[Value], map: &Object) -> Result<NodeId> {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let mut branches = Vec::new();
        for name in names.iter().filter(|n| **n != "null") {
            // Every integer is a number.
            if *name == "integer" && names.contains(&"number") {
                continue;
            }
            branches.push(self.typed(name, map)?);
        }
        let id = match branches[..] {
            [] => return Ok(self.push(Kind::Null)),
            [only] => only,
            _ => self.push(Kind::Union { branches, exclusive: false }),
        };
        Ok(if names.contains(&"null") { self.push(Kind::Nullable(id)) } else { id })
    }

    /// No `type`: the keywords of a type restrict only values of that type.
    fn untyped(&mut self, map: &Object) -> Result<NodeId> {
        const OF_TYPE: [(&str, &[&str]); 4] = [
            (
                "object",
                &[
                    "properties",
                    "required",
                    "additionalProperties",
                    "patternProperties",
                    "minProperties",
                    "maxProperties",
                ],
            ),
            ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
            ("string", &["minLength", "maxLength", "pattern"]),
            ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
        ];
        let present = |keywords: &[&str]| keywords.iter().any(|k| map.contains_key(*k));
        if !OF_TYPE.iter().any(|(_, keywords)| present(keywords)) {
            return Ok(self.push(Kind::Any));
        }
        // What lists properties is meant as an object; and the arguments themselves always are one.
        if map.contains_key("properties") || self.pointer.is_empty() {
            return self.typed("object", map);
        }
        let mut branches = Vec::new();
        for (name, _) in OF_TYPE {
            branches.push(self.typed(name, map)?);
        }
        branches.push(self.push(Kind::Bool));
        let id = self.push(Kind::Union { branches, exclusive: false });
        Ok(self.push(Kind::Nullable(id)))
    }

    fn reference(&mut self, reference: &str, map: &Object) -> Result<NodeId> {
        if map.keys().any(|k| k != "$ref" && restricts(k)) {
            // For example an internally tagged newtype variant: merged, not chained.
            let target = self.resolve(reference)?.clone();
            let mut own = map.clone();
            own.remove("$ref");
            let Value::Object(mut target) = target else {
                return if target == Value::Bool(true) {
                    self.schema(&Value::Object(own))
                } else {
                    Ok(self.push(Kind::Never))
                };
            };
            if !self.foreign {
                target.remove("additionalProperties");
            }
            let merged = self.merged(&own, &target)?;
            return self.schema(&Value::Object(merged));
        }
        let name = definition_name(reference);
        let target = self.resolve(reference)?;
        let before = self.rules;
        if target.get("type").is_some_and(|t| t == "object") {
            // Being an item changes nothing for an object: one node is enough.
            self.rules = before.not_item();
        }
        let id = self.shared(reference, name, target);
        self.rules = before;
        id
    }

    /// The node of a definition, compiled once for each policy.
    fn shared(&mut self, reference: &str, name: String, target: &Value) -> Result<NodeId> {
        if let Some(id) = self.references.get(&(name.clone(), self.rules)) {
            return Ok(*id);
        }
        let slot = self.push(Kind::Never);
        let key = (name, self.rules);
        self.references.insert(key.clone(), slot);
        let pointer = std::mem::replace(&mut self.pointer, reference.trim_start_matches('#').to_owned());
        let id = self.schema(target)?;
        self.pointer = pointer;
        if id == slot {
            return Err(self.error("$ref", "refers only to itself"));
        }
        self.slots.insert(slot, id);
        // From here on the node itself is known; only what was compiled in between has to be redirected.
        self.references.insert(key, id);
        Ok(id)
    }

    pub(super) fn merged(&self, a: &Object, b: &Object) -> Result<Object> {
        merge(a, b, self.foreign).map_err(|conflict| self.error(&conflict.keyword, conflict.reason))
    }

    /// The schema that a local reference means, through references to references.
    fn resolve(&self, reference: &str) -> Result<&'s Value> {
        let mut reference = reference.to_owned();
        for _ in 0..MAX_HOPS {
            let target = self.lookup(&reference)?;
            match target.get("$ref").and_then(Value::as_str) {
                Some(next) if target.as_object().is_some_and(|m| m.len() == 1) => {
                    next.clone_into(&mut reference);
                }
                _ => return Ok(target),
            }
        }
        Err(self.error("$ref", "refers to itself"))
    }

    fn lookup(&self, reference: &str) -> Result<&'s Value> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(self.error("$ref", format!("to {reference:?} leads out of the document")));
        };
        let root: &'s Value = self.root;
        let target = root.pointer(pointer).or_else(|| root.pointer(&percent_decoded(pointer)));
        target.ok_or_else(|| self.error("$ref", format!("to {reference:?} leads nowhere")))
    }

    /// A schema with its own `$ref` replaced by what it means; `true` is the empty schema, `false` none.
    pub(super) fn resolved(&self, schema: &Value) -> Result<Option<Object>> {
        let mut map = match schema {
            Value::Object(map) => map.clone(),
            Value::Bool(true) => return Ok(Some(Object::new())),
            Value::Bool(false) => return Ok(None),
            _ => return Err(self.error("$schema", "must be an object or a boolean")),
        };
        for _ in 0..MAX_HOPS {
            keywords::check(&map, &self.pointer)?;
            let Some(Value::String(reference)) = map.remove("$ref") else { return Ok(Some(map)) };
            match self.lookup(&reference)? {
                Value::Object(target) if map.is_empty() => map.clone_from(target),
                Value::Object(target) => map = self.merged(&map, target)?,
                Value::Bool(false) => return Ok(None),
                _ => return Ok(Some(map)),
            }
        }
        Err(self.error("$ref", "refers to itself"))
    }
}

fn definition_name(reference: &str) -> String {
    reference.strip_prefix("#/$defs/").unwrap_or(reference).replace("~1", "/").replace("~0", "~")
}

/// `$ref` is a URI reference, so a pointer in it may be percent-encoded.
fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (plain, escaped) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let byte = escaped.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(b'%'));
        rest = &escaped[if byte.is_some() { 3 } else { 1 }..];
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// The descriptive keywords of a schema.
pub(super) fn notes(schema: &Value) -> Notes {
    let Some(map) = schema.as_object() else { return Notes::new() };
    map.iter().filter(|(k, _)| NOTES.contains(&k.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
}
