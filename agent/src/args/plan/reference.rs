//! `$ref`: references to any schema of the same document.

use super::compile::Compiler;
use super::error::CompileResult;
use super::keywords::{self, SchemaMap, restricts};
use super::node::{NodeId, NodeKind};
use serde_json::Value;
use std::borrow::Cow;

/// Maximum length of a chain of `$ref`s.
const MAX_HOPS: usize = 64;

impl<'s> Compiler<'s> {
    pub(super) fn reference(&mut self, reference: &str, map: &SchemaMap) -> CompileResult<NodeId> {
        let target = self.resolve(reference)?;
        let own = map.iter().filter(|(k, _)| *k != "$ref" && restricts(k));
        // A `type` next to `$ref` adds no restriction if the target has the same `type`.
        if own.clone().any(|(k, v)| k != "type" || target.get("type") != Some(v)) {
            return self.refined(target, map);
        }
        let before = self.rules;
        if target.get("type").is_some_and(|t| t == "object") {
            // The rules for list items do not affect objects, so all references to an object share one node.
            self.rules = before.not_item();
        }
        let id = self.shared(reference, target);
        self.rules = before;
        id
    }

    /// Merges the target of a `$ref` with the restricting keywords beside the `$ref`, as in an internally tagged newtype variant.
    fn refined(&mut self, target: &Value, map: &SchemaMap) -> CompileResult<NodeId> {
        let mut own = map.clone();
        own.remove("$ref");
        let mut target = match target {
            Value::Object(target) => target.clone(),
            Value::Bool(true) => return self.schema(&Value::Object(own)),
            Value::Bool(false) => return Ok(self.push(NodeKind::Never)),
            _ => return Err(self.error("$ref", "does not lead to a schema")),
        };
        if self.foreign {
            target = self.open(self.normal(&target)?.into_owned());
        } else {
            target.remove("additionalProperties");
        }
        match self.within(&own, &target)? {
            Some(merged) => self.schema(&Value::Object(merged)),
            None => Ok(self.push(NodeKind::Never)),
        }
    }

    /// Returns the node of a definition, compiled once for each set of allowed coercions. A definition is identified by its address in
    /// memory, because several spellings of a JSON Pointer lead to the same definition.
    fn shared(&mut self, reference: &str, target: &'s Value) -> CompileResult<NodeId> {
        let key = (std::ptr::from_ref(target).addr(), self.rules);
        if let Some(id) = self.references.get(&key) {
            return Ok(*id);
        }
        let slot = self.push(NodeKind::Never);
        self.references.insert(key, slot);
        self.definitions.entry(key.0).or_insert_with(|| definition_name(reference));
        let pointer = std::mem::replace(&mut self.pointer, reference.trim_start_matches('#').to_owned());
        let id = self.schema(target)?;
        self.pointer = pointer;
        if id == slot {
            return Err(self.error("$ref", "refers only to itself"));
        }
        self.slots.insert(slot, id);
        // References inside the definition use the placeholder `slot`. Later references use the node itself.
        self.references.insert(key, id);
        Ok(id)
    }

    /// Returns the schema to which a local reference leads, directly or through references without other keywords.
    pub(super) fn resolve(&self, reference: &str) -> CompileResult<&'s Value> {
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

    fn lookup(&self, reference: &str) -> CompileResult<&'s Value> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(self.error("$ref", format!("to {reference:?} leads out of the document")));
        };
        let root: &'s Value = self.root;
        target(root, pointer).ok_or_else(|| self.error("$ref", format!("to {reference:?} leads nowhere")))
    }

    /// Returns a schema with its `$ref` replaced by the target. `true` becomes the empty schema. Returns `None` if no value can fit, as
    /// for `false`.
    pub(super) fn resolved(&self, schema: &Value) -> CompileResult<Option<SchemaMap>> {
        let mut map = match schema {
            Value::Object(map) => {
                self.charge(size(schema))?;
                map.clone()
            }
            Value::Bool(true) => return Ok(Some(SchemaMap::new())),
            Value::Bool(false) => return Ok(None),
            _ => return Err(self.error("$schema", "must be an object or a boolean")),
        };
        for _ in 0..MAX_HOPS {
            if self.lone_references && map.get("$ref").is_some_and(Value::is_string) {
                map.retain(|keyword, _| keyword == "$ref");
            }
            keywords::check(&map, &self.pointer, self.foreign)?;
            if let Cow::Owned(normal) = self.normal(&map)? {
                map = normal;
            }
            let Some(Value::String(reference)) = map.remove("$ref") else { return Ok(Some(map)) };
            let target = self.lookup(&reference)?;
            self.charge(size(target))?;
            match target {
                Value::Object(target) if map.is_empty() => map.clone_from(target),
                Value::Object(target) => {
                    let target = self.normal(target)?;
                    let target =
                        if self.foreign { self.open(target.into_owned()) } else { target.into_owned() };
                    match self.within(&map, &target)? {
                        Some(merged) => map = merged,
                        None => return Ok(None),
                    }
                }
                Value::Bool(false) => return Ok(None),
                Value::Bool(true) => return Ok(Some(map)),
                _ => return Err(self.error("$ref", "does not lead to a schema")),
            }
        }
        Err(self.error("$ref", "refers to itself"))
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        _ => 1,
    }
}

fn definition_name(reference: &str) -> String {
    reference.strip_prefix("#/$defs/").unwrap_or(reference).replace("~1", "/").replace("~0", "~")
}

/// Returns the value at the JSON Pointer of a `$ref`, which is a URI reference, so the pointer may be percent-encoded.
pub(super) fn target<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    root.pointer(pointer).or_else(|| root.pointer(&percent_decoded(pointer)))
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (plain, escaped) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let hex = escaped.get(1..3).filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(b'%'));
        rest = &escaped[if byte.is_some() { 3 } else { 1 }..];
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}
