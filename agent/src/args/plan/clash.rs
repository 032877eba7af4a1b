//! Refuses types in which two fields or two variants have the same name: serde reads only one of the two, so no call would fit the type.

use super::error::{CompileResult, SchemaError};
use crate::args::text::push_segment;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

pub(super) fn refuse_clashes(root: &Value) -> CompileResult<()> {
    visit(root, root, &mut String::new())
}

/// Visits every subschema. The recursion is at most as deep as the type.
fn visit(root: &Value, schema: &Value, pointer: &mut String) -> CompileResult<()> {
    let Value::Object(map) = schema else { return Ok(()) };
    of_fields(root, map, pointer)?;
    of_variants(map, pointer)?;
    for (keyword, value) in map {
        if matches!(keyword.as_str(), "const" | "enum" | "default" | "examples") || keyword.starts_with("x-")
        {
            continue;
        }
        let length = pointer.len();
        push_segment(pointer, keyword);
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs", Value::Object(named)) => {
                for (name, schema) in named {
                    let length = pointer.len();
                    push_segment(pointer, name);
                    visit(root, schema, pointer)?;
                    pointer.truncate(length);
                }
            }
            (_, Value::Array(list)) => {
                for (at, schema) in list.iter().enumerate() {
                    let length = pointer.len();
                    push_segment(pointer, &at.to_string());
                    visit(root, schema, pointer)?;
                    pointer.truncate(length);
                }
            }
            (_, value) => visit(root, value, pointer)?,
        }
        pointer.truncate(length);
    }
    Ok(())
}

fn of_fields(root: &Value, map: &Map<String, Value>, pointer: &str) -> CompileResult<()> {
    if let Some(clash) = map.get("x-clash").and_then(Value::as_str) {
        return Err(SchemaError::new("properties", pointer, clash));
    }
    // For two fields with the same name, schemars writes one property, but lists the name twice in `required`.
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if let Some(name) = repeated(&required) {
        return Err(SchemaError::new(
            "required",
            pointer,
            format!("lists {}: rename one", twice(name, "fields")),
        ));
    }
    let Some(properties) = map.get("properties").and_then(Value::as_object) else { return Ok(()) };
    let mut names: Vec<&str> = Vec::new();
    for (name, property) in properties {
        let aliases = property.get("x-aliases").and_then(Value::as_array).into_iter().flatten();
        // An alias may repeat the name of its own field, so the names of a field are counted without repetitions.
        let own: BTreeSet<&str> = aliases.filter_map(Value::as_str).chain([name.as_str()]).collect();
        names.extend(own);
    }
    if let Some(name) = repeated(&names) {
        return Err(SchemaError::new(
            "x-aliases",
            pointer,
            format!("has {}, one of them as an alias: rename one", twice(name, "fields")),
        ));
    }
    // Serde removes the tag before it reads the struct in a variant, so the struct cannot have a field of that name.
    let tag = properties.iter().next().filter(|(_, schema)| schema.get("const").is_some());
    let target = map.get("$ref").and_then(Value::as_str).and_then(|to| root.pointer(to.strip_prefix('#')?));
    if let (Some((tag, _)), Some(target)) = (tag, target)
        && target.get("required").and_then(Value::as_array).is_some_and(|names| names.contains(&json!(tag)))
    {
        let reason =
            format!("names the tag `{tag}`, which is also a field of the variant's type: rename one");
        return Err(SchemaError::new("properties", pointer, reason));
    }
    Ok(())
}

/// Refuses two variants that share a name or an alias. schemars writes the variants of an enum as `oneOf`.
fn of_variants(map: &Map<String, Value>, pointer: &str) -> CompileResult<()> {
    let variants = map.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let mut names = Vec::new();
    let words = |schema: &Value| -> Vec<String> {
        let set = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        set.chain(schema.get("const")).filter_map(Value::as_str).map(String::from).collect()
    };
    let aliases = |schema: &Value| -> Vec<String> {
        let aliases = schema.get("x-aliases").and_then(Value::as_array).into_iter().flatten();
        aliases.filter_map(Value::as_str).map(String::from).collect()
    };
    for variant in variants {
        let first = variant.get("properties").and_then(Value::as_object).and_then(|p| p.iter().next());
        let own = match first {
            None => words(variant),
            Some((tag, schema)) => match &words(schema)[..] {
                [] => vec![tag.clone()],
                [name] => vec![format!("{tag}: {name}")],
                _ => Vec::new(),
            },
        };
        let of_tag = first.filter(|(_, schema)| !words(schema).is_empty()).map(|(tag, _)| tag);
        let aliases = aliases(variant).into_iter().map(|alias| match of_tag {
            Some(tag) => format!("{tag}: {alias}"),
            None => alias,
        });
        // An alias may repeat the name of its own variant, so the names of a variant are counted without repetitions.
        names.extend(own.into_iter().chain(aliases).collect::<BTreeSet<_>>());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match repeated(&names) {
        None => Ok(()),
        Some(name) => {
            Err(SchemaError::new("oneOf", pointer, format!("has {}: rename one", twice(name, "variants"))))
        }
    }
}

fn twice(name: &str, of: &str) -> String {
    format!("`{name}` twice, as the name of two {of}")
}

fn repeated<'n>(names: &[&'n str]) -> Option<&'n str> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(**name)).copied()
}
