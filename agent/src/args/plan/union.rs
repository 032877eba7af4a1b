//! `allOf`, `anyOf`, `oneOf`: multiplied out, then seen for what they are (closed set, tagged, external, untagged).

use super::compile::{Compiler, MAX_PRODUCT, Object, Result, notes};
use super::keywords::restricts;
use super::node::{ExternalSpec, Kind, NodeId, Notes, ObjectSpec, Prop, Rest, Variant};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Nested alternatives are followed this deep.
const MAX_NESTING: usize = 32;

impl Compiler<'_> {
    /// `allOf`: flattened enums and `$ref` siblings become one schema for each combination.
    pub(super) fn all_of(&mut self, parts: &[Value], map: &Object) -> Result<NodeId> {
        let mut base = map.clone();
        base.remove("allOf");
        let mut exclusive = false;
        let mut product = self.alternatives(&base, 0)?;
        for part in parts {
            let Some(meaning) = self.resolved(part)? else { return Ok(self.push(Kind::Never)) };
            exclusive |= self.foreign && meaning.contains_key("oneOf");
            let options = self.alternatives(&meaning, 0)?;
            if product.len() > 1 && options.len() > 1 && product.len() * options.len() > MAX_PRODUCT {
                return Err(
                    self.error("allOf", format!("multiplies to more than {MAX_PRODUCT} alternatives"))
                );
            }
            let mut next = Vec::with_capacity(product.len() * options.len());
            for a in &product {
                for b in &options {
                    next.push(Value::Object(self.merged(object(a), object(b))?));
                }
            }
            product = next;
        }
        if let [only] = &product[..] {
            return self.schema(only);
        }
        self.union(product, exclusive, "allOf", map.get("description"))
    }

    /// base and (a or b or c) is (base and a) or (base and b) or (base and c).
    pub(super) fn alternatives(&self, map: &Object, depth: usize) -> Result<Vec<Value>> {
        if depth > MAX_NESTING {
            return Err(self.error("anyOf", "nests too deeply"));
        }
        for keyword in ["oneOf", "anyOf"] {
            let Some(Value::Array(options)) = map.get(keyword) else { continue };
            let mut base = map.clone();
            base.remove(keyword);
            base.remove("$defs");
            base.remove("definitions");
            let unrestricted = !base.keys().any(|k| restricts(k));
            let mut out = Vec::with_capacity(options.len());
            for option in options {
                if unrestricted {
                    // A reference stays one: it may be recursive.
                    out.push(option.clone());
                    continue;
                }
                let Some(option) = self.resolved(option)? else { continue };
                for nested in self.alternatives(&option, depth + 1)? {
                    out.push(Value::Object(
                        self.merged(&base, &self.resolved(&nested)?.unwrap_or_default())?,
                    ));
                }
                if depth > 0 && out.len() > MAX_PRODUCT {
                    return Err(
                        self.error(keyword, format!("multiplies to more than {MAX_PRODUCT} alternatives"))
                    );
                }
            }
            return Ok(out);
        }
        Ok(vec![Value::Object(map.clone())])
    }

    /// `described` is what the schema of the whole says about itself.
    pub(super) fn union(
        &mut self,
        alternatives: Vec<Value>,
        exclusive: bool,
        keyword: &str,
        described: Option<&Value>,
    ) -> Result<NodeId> {
        let is_null =
            |a: &Value| a.get("type") == Some(&json!("null")) || a.get("const") == Some(&Value::Null);
        let (nulls, mut others): (Vec<Value>, Vec<Value>) = alternatives.into_iter().partition(is_null);
        let id = match others.len() {
            0 if nulls.is_empty() => self.push(Kind::Never),
            0 => return Ok(self.push(Kind::Null)),
            // An enum of one variant is still an enum to serde.
            1 if nulls.is_empty() && keyword != "allOf" && is_enum_of_one(&others[0]) => {
                self.choice(&others, exclusive, keyword, described)?
            }
            1 => self.schema(&others.remove(0))?,
            _ => {
                // An item of an array that is one of several types is no plain string.
                let before = self.rules;
                self.rules = before.not_item();
                let id = self.choice(&others, exclusive, keyword, described)?;
                self.rules = before;
                id
            }
        };
        Ok(if nulls.is_empty() { id } else { self.push(Kind::Nullable(id)) })
    }

    fn choice(
        &mut self,
        alternatives: &[Value],
        exclusive: bool,
        keyword: &str,
        described: Option<&Value>,
    ) -> Result<NodeId> {
        let mut resolved = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            resolved.push(self.resolved(alternative)?.unwrap_or_default());
        }
        if let Some(id) = self.unit_enum(&resolved, described) {
            return Ok(id);
        }
        if let Some((tag, names)) = tag_of(&resolved) {
            let nodes = self.branches(alternatives, keyword)?;
            return Ok(self.push(Kind::Tagged { tag, variants: names.into_iter().zip(nodes).collect() }));
        }
        if let Some(id) = self.external(&resolved, keyword)? {
            return Ok(id);
        }
        let branches = self.branches(alternatives, keyword)?;
        Ok(self.push(Kind::Union { branches, exclusive }))
    }

    fn branches(&mut self, alternatives: &[Value], keyword: &str) -> Result<Vec<NodeId>> {
        self.buffered += 1;
        let mut nodes = Vec::with_capacity(alternatives.len());
        for (i, alternative) in alternatives.iter().enumerate() {
            let rules = self.rules;
            nodes.push(self.below(&[keyword, &i.to_string()], rules, alternative)?);
        }
        self.buffered -= 1;
        Ok(nodes)
    }

    /// schemars writes a unit enum whose variants have docs as alternatives of one constant each.
    fn unit_enum(&mut self, alternatives: &[Object], described: Option<&Value>) -> Option<NodeId> {
        let words: Vec<Vec<String>> = alternatives.iter().map(words).collect::<Option<_>>()?;
        let mut notes = described_words(alternatives, &words);
        let id = self.push(Kind::Enum(words.concat()));
        if let Some(Value::String(variants)) = notes.get_mut("description") {
            self.variant_docs.insert(id, variants.clone());
            if let Some(Value::String(whole)) = described {
                *variants = format!("{whole}\n{variants}");
            }
        }
        *self.notes_mut(id) = notes;
        Some(id)
    }

    fn external(&mut self, alternatives: &[Object], keyword: &str) -> Result<Option<NodeId>> {
        let mut units: Vec<&Object> = Vec::new();
        let mut payloads = Vec::new();
        for alternative in alternatives {
            if words(alternative).is_some() {
                units.push(alternative);
            } else if let Some((name, schema)) = single_entry(alternative) {
                payloads.push((name, schema, notes(&Value::Object(alternative.clone()))));
            } else {
                return Ok(None);
            }
        }
        let distinct: HashSet<&str> = payloads.iter().map(|(name, ..)| *name).collect();
        if payloads.is_empty() || distinct.len() < payloads.len() {
            return Ok(None);
        }
        let rules = self.rules;
        let mut variants = Vec::with_capacity(payloads.len());
        // serde reads an external tag without buffering, but an untagged enum around it may buffer.
        for (i, (name, schema, notes)) in payloads.into_iter().enumerate() {
            let node = self.below(&[keyword, &i.to_string(), "properties", name], rules, schema)?;
            variants.push(Variant { name: name.into(), node, notes });
        }
        let prop = |v: &Variant| Prop {
            name: v.name.clone(),
            node: v.node,
            required: false,
            aliases: Vec::new(),
            notes: Notes::new(),
            secret: false,
            null_absent: false,
        };
        let object = ObjectSpec {
            props: variants.iter().map(prop).collect(),
            index: None,
            patterns: Vec::new(),
            rest: Rest::Denied,
            required: 0,
            min: 1,
            max: 1,
        };
        let object = self.push(Kind::Object(object));
        let unit_words: Vec<Vec<String>> = units.iter().filter_map(|u| words(u)).collect();
        let owned: Vec<Object> = units.into_iter().cloned().collect();
        let unit_notes = described_words(&owned, &unit_words);
        Ok(Some(self.push(Kind::External(ExternalSpec {
            units: unit_words.concat(),
            unit_notes,
            variants,
            object,
        }))))
    }
}

/// Not one flattened into a struct: that is the struct.
fn is_enum_of_one(alternative: &Value) -> bool {
    let variant = object(alternative);
    words(variant).is_some()
        || single_entry(variant).is_some()
        || tag_of(std::slice::from_ref(variant)).is_some_and(|(tag, _)| {
            variant.get("properties").and_then(Value::as_object).and_then(|p| p.keys().next()) == Some(&tag)
        })
}

fn object(value: &Value) -> &Object {
    static EMPTY: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}

/// The strings of a closed set, if the schema is nothing else.
fn words(schema: &Object) -> Option<Vec<String>> {
    let plain = |k: &String| !restricts(k) || matches!(k.as_str(), "type" | "const" | "enum");
    if !schema.keys().all(plain) || schema.get("type").is_some_and(|t| t != "string") {
        return None;
    }
    match (schema.get("const"), schema.get("enum")) {
        (Some(word), None) => Some(vec![word.as_str()?.into()]),
        (None, Some(Value::Array(set))) => set.iter().map(|w| w.as_str().map(String::from)).collect(),
        _ => None,
    }
}

/// The docs of unit variants, a line each, as the description of their enum.
fn described_words(alternatives: &[Object], words: &[Vec<String>]) -> Notes {
    let mut lines = Vec::new();
    for (alternative, words) in alternatives.iter().zip(words) {
        if let (Some(text), [word]) = (alternative.get("description").and_then(Value::as_str), &words[..]) {
            lines.push(format!("- {word}: {text}"));
        }
    }
    let mut notes = Notes::new();
    if !lines.is_empty() {
        notes.insert("description".into(), lines.join("\n").into());
    }
    notes
}

/// A required property that is a distinct constant in each alternative.
fn tag_of(alternatives: &[Object]) -> Option<(String, Vec<String>)> {
    let first = alternatives.first()?.get("properties")?.as_object()?;
    first.keys().find_map(|tag| {
        let mut names = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            let required = alternative.get("required")?.as_array()?;
            if !required.iter().any(|r| r == tag.as_str()) {
                return None;
            }
            let constant = alternative.get("properties")?.get(tag)?.get("const")?.as_str()?;
            names.push(String::from(constant));
        }
        let distinct: HashSet<&String> = names.iter().collect();
        (distinct.len() == names.len()).then_some((tag.clone(), names))
    })
}

/// A closed object of exactly one required property: an externally tagged variant with a payload.
fn single_entry(schema: &Object) -> Option<(&str, &Value)> {
    let properties = schema.get("properties")?.as_object()?;
    let required = schema.get("required")?.as_array()?;
    let (name, payload) = properties.iter().next()?;
    let closed = schema.get("additionalProperties") == Some(&json!(false));
    (properties.len() == 1 && required.len() == 1 && required[0] == name.as_str() && closed)
        .then_some((name.as_str(), payload))
}
