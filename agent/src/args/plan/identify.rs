//! Resolves `$id` and `$anchor`: before a document is compiled, references to named schemas become pointers. A document that refers to a
//! metaschema gets a copy of the metaschema, because a tool may take a schema as an argument.

use super::error::{CompileResult, SchemaError};
use super::uri;
use crate::args::text::push_segment;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Maximum depth of a schema. `serde_json` limits only the depth of text, not of values that code builds.
const MAX_DEPTH: usize = 256;
const MAX_VALUES: usize = 500_000;
/// The address and the text of each built-in metaschema. One text contains all vocabularies of 2020-12.
const METASCHEMAS: [(&str, &str); 2] = [
    ("http://json-schema.org/draft-07/schema", include_str!("metaschemas/draft-07.json")),
    ("https://json-schema.org/draft/2020-12/schema", include_str!("metaschemas/2020-12.json")),
];

/// Returns the document with every reference as a pointer from the root. Adds the metaschemas that the document refers to.
pub(super) fn with_pointers(root: &Value, lone_references: bool) -> CompileResult<Cow<'_, Value>> {
    check_size(root)?;
    let mut places = Places { lone_references, ..Places::default() };
    places.collect(root, &mut String::new(), &SchemaResource::default(), true)?;
    if !places.rewrite {
        return Ok(Cow::Borrowed(root));
    }
    let mut out = root.clone();
    if !places.wanted.is_empty() && with_metaschemas(&mut out, &places) {
        places = Places { lone_references, ..Places::default() };
        places.collect(&out, &mut String::new(), &SchemaResource::default(), true)?;
    }
    places.point(&mut out, &mut String::new(), &SchemaResource::default(), true)?;
    Ok(Cow::Owned(out))
}

/// Adds the metaschemas that the document refers to but does not contain. Returns whether any were added.
fn with_metaschemas(document: &mut Value, places: &Places) -> bool {
    let Some(map) = document.as_object_mut() else { return false };
    let Value::Object(definitions) = map.entry("$defs").or_insert_with(|| Map::new().into()) else {
        return false;
    };
    let mut any = false;
    for (address, text) in METASCHEMAS {
        if places.wanted.contains(address) && !places.resources.contains_key(address) {
            // The texts of both metaschemas are part of the library, and a test parses them, so this does not fail.
            let Ok(metaschema) = serde_json::from_str(text) else { continue };
            definitions.insert(format!("\0{address}"), metaschema);
            any = true;
        }
    }
    any
}

/// Refuses schemas that are too deep or too large, without recursion. All later passes may recurse, because the depth is then limited.
fn check_size(root: &Value) -> CompileResult<()> {
    let (mut open, mut count) = (vec![(root, 0)], 0);
    while let Some((value, depth)) = open.pop() {
        count += 1;
        if depth > MAX_DEPTH {
            return Err(SchemaError::new("$schema", "", "nests too deeply"));
        }
        if count > MAX_VALUES {
            return Err(SchemaError::new("$schema", "", "is too large"));
        }
        match value {
            Value::Object(map) => open.extend(map.values().map(|v| (v, depth + 1))),
            Value::Array(list) => open.extend(list.iter().map(|v| (v, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

/// A schema resource of JSON Schema: the root schema or a schema with an `$id`, together with the schemas inside of it.
#[derive(Clone, Default)]
struct SchemaResource {
    base: String,
    root: String,
}

#[derive(Default)]
struct Places {
    lone_references: bool,
    /// Whether references have to be rewritten, because one of them is not a pointer from the root.
    rewrite: bool,
    /// Pointers to the schemas with an `$id`, by URI.
    resources: HashMap<String, String>,
    /// Pointers to anchors, by the URI of their resource and their name.
    anchors: HashMap<(String, String), String>,
    dynamic: HashMap<String, usize>,
    wanted: HashSet<&'static str>,
}

/// The content of a keyword's value: one schema, a list of schemas, an object of schemas by name, data (as in `const`), or unknown.
enum Holds {
    Schema,
    Schemas,
    Named,
    Data,
    Unknown,
}

fn holds(keyword: &str, value: &Value) -> Holds {
    match (keyword, value) {
        ("const" | "enum" | "default" | "examples" | "example", _) => Holds::Data,
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies",
            Value::Object(_),
        ) => Holds::Named,
        ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(_)) => Holds::Schemas,
        (
            "additionalProperties"
            | "items"
            | "additionalItems"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "contentSchema",
            _,
        ) => Holds::Schema,
        _ => Holds::Unknown,
    }
}

impl Places {
    /// Returns the resource of a schema: a new one for a schema with an `$id`, or else the resource `around` it. Ignores an `$id` such as
    /// `#name`. If `lone_references` (in drafts before 2019-09, a `$ref` hides the keywords next to it), also ignores an `$id` next to a
    /// `$ref`.
    fn place(&self, map: &Map<String, Value>, pointer: &str, around: &SchemaResource) -> SchemaResource {
        let id = map.get("$id").and_then(Value::as_str);
        let beside_reference = self.lone_references && map.contains_key("$ref");
        match id.filter(|id| !id.starts_with('#') && !beside_reference) {
            None => around.clone(),
            Some(id) => SchemaResource {
                base: uri::resolve(&around.base, uri::split(id).0),
                root: pointer.to_owned(),
            },
        }
    }

    fn collect(
        &mut self,
        schema: &Value,
        pointer: &mut String,
        around: &SchemaResource,
        known: bool,
    ) -> CompileResult<()> {
        let Value::Object(map) = schema else { return Ok(()) };
        if let Some(keyword) = map.keys().find(|keyword| keyword.starts_with('\0')) {
            return Err(SchemaError::new(keyword, pointer, "is not the name of a keyword"));
        }
        let place = if known { self.place(map, pointer, around) } else { around.clone() };
        if known {
            if pointer.is_empty() || place.root == *pointer {
                self.rewrite |= !pointer.is_empty();
                self.resources.entry(place.base.clone()).or_insert_with(|| pointer.clone());
            }
            for keyword in ["$anchor", "$dynamicAnchor", "$id"] {
                let Some(name) = map.get(keyword).and_then(Value::as_str) else { continue };
                let name = match keyword {
                    "$id" => name.strip_prefix('#').filter(|name| !name.is_empty()),
                    _ => Some(name),
                };
                if let Some(name) = name {
                    self.anchors
                        .entry((place.base.clone(), name.to_owned()))
                        .or_insert_with(|| pointer.clone());
                }
            }
            if let Some(name) = map.get("$dynamicAnchor").and_then(Value::as_str) {
                *self.dynamic.entry(name.to_owned()).or_default() += 1;
            }
        }
        for keyword in ["$ref", "$dynamicRef"] {
            let reference = map.get(keyword).and_then(Value::as_str);
            self.rewrite |=
                reference.is_some_and(|r| keyword == "$dynamicRef" || r != "#" && !r.starts_with("#/"));
            if let Some(reference) = reference {
                let base = uri::resolve(&place.base, uri::split(reference).0);
                self.wanted.extend(METASCHEMAS.iter().map(|(address, _)| *address).filter(|a| *a == base));
            }
        }
        each_below(map, pointer, known, |value, pointer, known| self.collect(value, pointer, &place, known))
    }

    fn point(
        &self,
        schema: &mut Value,
        pointer: &mut String,
        around: &SchemaResource,
        known: bool,
    ) -> CompileResult<()> {
        let Value::Object(map) = schema else { return Ok(()) };
        let place = if known { self.place(map, pointer, around) } else { around.clone() };
        // An unknown keyword may hold anything, so a reference inside such a keyword may lead nowhere, and then stays unchanged. The
        // compiler refuses the reference if a schema refers to the content of the keyword.
        let target = |reference: &str, keyword: &str| match self.target(reference, &place, keyword, pointer) {
            Err(_) if !known => Ok(None),
            target => target.map(Some),
        };
        if let Some(Value::String(reference)) = map.get("$dynamicRef")
            && !map.contains_key("$ref")
            && self.is_static(reference)
        {
            if let Some(target) = target(reference, "$dynamicRef")? {
                map.shift_remove("$dynamicRef");
                map.insert("$ref".into(), target.into());
            }
        } else if let Some(Value::String(reference)) = map.get_mut("$ref")
            && let Some(target) = target(reference, "$ref")?
        {
            *reference = target;
        }
        let keywords: Vec<String> = map.keys().cloned().collect();
        for keyword in keywords {
            let Some(value) = map.get_mut(&keyword) else { continue };
            let length = pointer.len();
            push_segment(pointer, &keyword);
            match (holds(&keyword, value), &mut *value) {
                (Holds::Data, _) => {}
                (Holds::Named, Value::Object(named)) => {
                    for (name, schema) in named.iter_mut() {
                        let length = pointer.len();
                        push_segment(pointer, name);
                        self.point(schema, pointer, &place, known)?;
                        pointer.truncate(length);
                    }
                }
                (held, Value::Array(list)) => {
                    for (i, schema) in list.iter_mut().enumerate() {
                        let length = pointer.len();
                        push_segment(pointer, &i.to_string());
                        self.point(schema, pointer, &place, known && matches!(held, Holds::Schemas))?;
                        pointer.truncate(length);
                    }
                }
                (held, _) => self.point(value, pointer, &place, known && matches!(held, Holds::Schema))?,
            }
            pointer.truncate(length);
        }
        Ok(())
    }

    /// Returns whether a dynamic reference always has the same target.
    fn is_static(&self, reference: &str) -> bool {
        let name = uri::split(reference).1.unwrap_or_default();
        name.is_empty() || name.starts_with('/') || self.dynamic.get(name).is_none_or(|count| *count == 1)
    }

    fn target(
        &self,
        reference: &str,
        place: &SchemaResource,
        keyword: &str,
        pointer: &str,
    ) -> CompileResult<String> {
        let refused = |why: &str| SchemaError::new(keyword, pointer, format!("to {reference:?} {why}"));
        let (address, fragment) = uri::split(reference);
        let base = uri::resolve(&place.base, address);
        let resource = match self.resources.get(&base) {
            Some(root) => root,
            None if address.is_empty() => &place.root,
            None => return Err(refused("leads out of the document")),
        };
        // A percent sign in the pointer is escaped, because the reference is decoded later.
        let escaped = |pointer: &str| pointer.replace('%', "%25");
        match fragment {
            None | Some("") => Ok(format!("#{}", escaped(resource))),
            Some(fragment) if fragment.starts_with('/') => Ok(format!("#{}{fragment}", escaped(resource))),
            Some(name) => match self.anchors.get(&(base, name.to_owned())) {
                Some(anchor) => Ok(format!("#{}", escaped(anchor))),
                None => Err(refused("leads nowhere")),
            },
        }
    }
}

/// Calls `visit(value, pointer, is_schema)` for each value in `map` that may be a schema. `is_schema` is true if the value is certainly
/// a schema.
fn each_below<'v>(
    map: &'v Map<String, Value>,
    pointer: &mut String,
    known: bool,
    mut visit: impl FnMut(&'v Value, &mut String, bool) -> CompileResult<()>,
) -> CompileResult<()> {
    let mut at = |pointer: &mut String, segments: &[&str], value: &'v Value, known: bool| {
        let length = pointer.len();
        for segment in segments {
            push_segment(pointer, segment);
        }
        let out = visit(value, pointer, known);
        pointer.truncate(length);
        out
    };
    for (keyword, value) in map {
        match (holds(keyword, value), value) {
            (Holds::Data, _) => {}
            (Holds::Named, Value::Object(named)) => {
                for (name, schema) in named {
                    at(pointer, &[keyword, name], schema, known)?;
                }
            }
            (held, Value::Array(list)) => {
                for (i, schema) in list.iter().enumerate() {
                    at(pointer, &[keyword, &i.to_string()], schema, known && matches!(held, Holds::Schemas))?;
                }
            }
            (held, value) => at(pointer, &[keyword], value, known && matches!(held, Holds::Schema))?,
        }
    }
    Ok(())
}
