//! The canonical schema (2020-12), rendered from the plan, so that it cannot differ from what is checked.

use crate::args::{
    ArraySpec, Bound, ExternalSpec, Graph, IntSpec, Kind, NodeId, NumSpec, ObjectSpec, Rest, SchemaError,
    StrSpec, UnknownKeys,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Definitions used in several places are written out in each, which can multiply.
const MAX_NODES: usize = 20_000;
/// Integers are exact in every JSON reader up to here.
const SAFE: u128 = 1 << 53;

/// The schema of the whole, with the definitions that recursion needs.
pub(super) fn canonical(graph: &Graph) -> Result<Value, SchemaError> {
    let recursive =
        graph.names.keys().copied().filter(|id| *id != graph.root && leads_back(graph, *id)).collect();
    let mut renderer = Renderer { graph, recursive, wanted: BTreeSet::new(), written: 0 };
    let mut schema = renderer.written_out(graph.root)?;
    let mut definitions = BTreeMap::new();
    while let Some(id) = renderer.wanted.pop_first() {
        if let std::collections::btree_map::Entry::Vacant(place) = definitions.entry(id) {
            let definition = renderer.written_out(id)?;
            place.insert(definition);
        }
    }
    if !definitions.is_empty() {
        let named = definitions.into_iter().map(|(id, schema)| (renderer.name(id), schema));
        schema["$defs"] = Value::Object(named.collect());
    }
    Ok(schema)
}

/// Can this node be reached from itself?
fn leads_back(graph: &Graph, id: NodeId) -> bool {
    let mut seen = HashSet::new();
    let mut open = graph.children(id);
    while let Some(next) = open.pop() {
        if next == id {
            return true;
        }
        if seen.insert(next) {
            open.extend(graph.children(next));
        }
    }
    false
}

struct Renderer<'g> {
    graph: &'g Graph,
    /// Definitions that contain themselves. Every cycle goes through one, or through the root.
    recursive: HashSet<NodeId>,
    /// Definitions that are referred to.
    wanted: BTreeSet<NodeId>,
    written: usize,
}

impl Renderer<'_> {
    fn name(&self, id: NodeId) -> String {
        self.graph.names.get(&id).cloned().unwrap_or_else(|| format!("node{}", id.index()))
    }

    fn node(&mut self, id: NodeId) -> Result<Value, SchemaError> {
        // The root, or the same compiled for another policy.
        if id == self.graph.root || self.graph.names.get(&id).is_some_and(|name| name == "#") {
            return Ok(json!({"$ref": "#"}));
        }
        if self.recursive.contains(&id) {
            self.wanted.insert(id);
            let name = self.name(id).replace('~', "~0").replace('/', "~1");
            return Ok(json!({"$ref": format!("#/$defs/{name}")}));
        }
        self.written_out(id)
    }

    fn written_out(&mut self, id: NodeId) -> Result<Value, SchemaError> {
        self.written += 1;
        if self.written > MAX_NODES {
            return Err(SchemaError::too_large());
        }
        let mut schema = self.kind(id)?;
        add_notes(&mut schema, self.graph.notes(id));
        Ok(schema)
    }

    fn nodes(&mut self, ids: impl Iterator<Item = NodeId>) -> Result<Vec<Value>, SchemaError> {
        ids.map(|id| self.node(id)).collect()
    }

    fn kind(&mut self, id: NodeId) -> Result<Value, SchemaError> {
        Ok(match self.graph.kind(id) {
            Kind::Any => json!({}),
            Kind::Never => json!({"not": {}}),
            Kind::Null => json!({"type": "null"}),
            Kind::Bool => json!({"type": "boolean"}),
            Kind::Int(spec) => integer(spec),
            Kind::Num(spec) => number(spec),
            Kind::Str(spec) => string(spec),
            Kind::Enum(words) => json!({"type": "string", "enum": words[..]}),
            Kind::Const(members) => json!({"enum": members}),
            Kind::Array(array) => self.array(array)?,
            Kind::Object(object) => self.object(object)?,
            Kind::Nullable(inner) => nullable(self.node(*inner)?),
            Kind::Tagged { variants, .. } => json!({"anyOf": self.nodes(variants.iter().map(|v| v.1))?}),
            Kind::External(external) => self.external(external)?,
            // Only schemas from elsewhere have checks, and those go out as they came.
            Kind::Checked(checked) => self.node(checked.base)?,
            Kind::Union { branches, .. } => json!({"anyOf": self.nodes(branches.iter().copied())?}),
        })
    }

    fn array(&mut self, array: &ArraySpec) -> Result<Value, SchemaError> {
        let mut out = json!({"type": "array"});
        if !array.prefix.is_empty() {
            out["prefixItems"] = self.nodes(array.prefix.iter().copied())?.into();
        }
        if let Some(items) = array.items {
            out["items"] = self.node(items)?;
        }
        if array.min > 0 {
            out["minItems"] = json!(array.min);
        }
        if array.max < u64::MAX {
            out["maxItems"] = json!(array.max);
        }
        if array.unique {
            out["uniqueItems"] = json!(true);
        }
        Ok(out)
    }

    fn object(&mut self, object: &ObjectSpec) -> Result<Value, SchemaError> {
        let mut properties = Map::new();
        for prop in &object.props {
            let mut schema = self.node(prop.node)?;
            add_notes(&mut schema, &prop.notes);
            properties.insert(prop.name.clone(), schema);
        }
        let required: Vec<&str> =
            object.props.iter().filter(|p| p.required).map(|p| p.name.as_str()).collect();
        let mut out = json!({"type": "object", "properties": properties, "required": required});
        if !object.patterns.is_empty() {
            let mut patterns = Map::new();
            for (pattern, id) in &object.patterns {
                patterns.insert(pattern.source.clone(), self.node(*id)?);
            }
            out["patternProperties"] = patterns.into();
        }
        if object.min > 0 {
            out["minProperties"] = json!(object.min);
        }
        if object.max < u64::MAX {
            out["maxProperties"] = json!(object.max);
        }
        match object.rest {
            Rest::Unsaid if self.graph.options.unknown == UnknownKeys::Keep => {}
            Rest::Denied | Rest::Unsaid => out["additionalProperties"] = json!(false),
            Rest::Accepted(id) => {
                let schema = self.node(id)?;
                // `{}` and `true` mean the same; most readers know only one of them.
                out["additionalProperties"] = if schema == json!({}) { json!(true) } else { schema };
            }
        }
        Ok(out)
    }

    fn external(&mut self, external: &ExternalSpec) -> Result<Value, SchemaError> {
        let mut alternatives = Vec::new();
        if !external.units.is_empty() {
            let mut units = json!({"type": "string", "enum": external.units[..]});
            add_notes(&mut units, &external.unit_notes);
            alternatives.push(units);
        }
        for variant in &external.variants {
            let mut schema = json!({
                "type": "object",
                "properties": {variant.name.as_str(): self.node(variant.node)?},
                "required": [variant.name],
                "additionalProperties": false,
            });
            add_notes(&mut schema, &variant.notes);
            alternatives.push(schema);
        }
        Ok(json!({"anyOf": alternatives}))
    }
}

fn add_notes(schema: &mut Value, notes: &Map<String, Value>) {
    if let Value::Object(map) = schema {
        map.extend(notes.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
}

fn nullable(mut inner: Value) -> Value {
    match inner.get("type").cloned() {
        Some(Value::String(name)) if inner.get("enum").is_none() => {
            inner["type"] = json!([name, "null"]);
            inner
        }
        _ => json!({"anyOf": [inner, {"type": "null"}]}),
    }
}

fn integer(spec: &IntSpec) -> Value {
    let mut out = json!({"type": "integer"});
    let safe =
        |bound: Option<i128>| bound.filter(|b| b.unsigned_abs() <= SAFE).and_then(|b| i64::try_from(b).ok());
    if let Some(min) = safe(spec.min) {
        out["minimum"] = json!(min);
    }
    if let Some(max) = safe(spec.max) {
        out["maximum"] = json!(max);
    }
    if let Some(multiple) = safe(spec.multiple) {
        out["multipleOf"] = json!(multiple);
    }
    out
}

fn number(spec: &NumSpec) -> Value {
    let mut out = json!({"type": "number"});
    let exact = |bound: Bound| {
        let signed = bound.whole.and_then(|v| i64::try_from(v).ok()).map(|v| json!(v));
        let whole = signed.or_else(|| bound.whole.and_then(|v| u64::try_from(v).ok()).map(|v| json!(v)));
        whole.unwrap_or_else(|| json!(bound.float))
    };
    let bounds = [
        ("minimum", spec.min.map(exact)),
        ("maximum", spec.max.map(exact)),
        ("exclusiveMinimum", spec.above.map(exact)),
        ("exclusiveMaximum", spec.below.map(exact)),
        ("multipleOf", spec.multiple.map(|m| json!(m))),
    ];
    for (keyword, bound) in bounds {
        if let Some(bound) = bound {
            out[keyword] = bound;
        }
    }
    out
}

fn string(spec: &StrSpec) -> Value {
    let mut out = json!({"type": "string"});
    if let Some(min) = spec.min {
        out["minLength"] = json!(min);
    }
    if let Some(max) = spec.max {
        out["maxLength"] = json!(max);
    }
    if let Some(pattern) = &spec.pattern {
        out["pattern"] = json!(pattern.source);
    }
    if let Some(format) = &spec.format {
        out["format"] = json!(format);
    }
    out
}
