//! Compiles a list of alternatives as an enum of strings, an internally, adjacently or externally tagged enum, or an untagged union.

use super::compile::Compiler;
use super::error::CompileResult;
use super::frequent::FrequentValues;
use super::keywords::{SchemaMap, notes, restricts};
use super::node::{
    AdditionalProperties, ExternalSpec, NodeId, NodeKind, Notes, ObjectSpec, Prop, StrSpec, Variant,
};
use super::prepare::{aliases_of, is_other, single_entry};
use super::token::NameToken;
use super::words::{VariantNames, Words};
use crate::args::suggest::Spellings;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

impl Compiler<'_> {
    /// Compiles alternatives. `described` is the `description` beside them.
    pub(super) fn union(
        &mut self,
        alternatives: Vec<Value>,
        exclusive: bool,
        keyword: &str,
        described: Option<&Value>,
    ) -> CompileResult<NodeId> {
        let (mut nulls, mut others): (Vec<Value>, Vec<Value>) = alternatives.into_iter().partition(is_null);
        if exclusive && !nulls.is_empty() && (nulls.len() > 1 || self.any_takes_null(&others)?) {
            // A `oneOf` refuses null if two alternatives accept it, so null stays an alternative.
            others.append(&mut nulls);
        }
        let id = match others.len() {
            0 if nulls.is_empty() => self.push(NodeKind::Never),
            0 => return Ok(self.push(NodeKind::Null)),
            // Serde reads an enum with one variant as an enum, so the variant is not compiled alone.
            1 if nulls.is_empty() && keyword != "allOf" && is_enum_of_one(&others[0]) => {
                self.choice(&others, exclusive, keyword, described)?
            }
            1 => self.schema(&others.remove(0))?,
            _ => {
                let before = self.rules;
                self.rules = before.not_item();
                let id = self.choice(&others, exclusive, keyword, described)?;
                self.rules = before;
                id
            }
        };
        Ok(if nulls.is_empty() { id } else { self.push(NodeKind::Nullable(id)) })
    }

    fn choice(
        &mut self,
        alternatives: &[Value],
        exclusive: bool,
        keyword: &str,
        described: Option<&Value>,
    ) -> CompileResult<NodeId> {
        let mut resolved = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            resolved.push(self.resolved(alternative)?.unwrap_or_default());
        }
        if let Some(id) = self.unit_enum(&resolved, exclusive, described) {
            return Ok(id);
        }
        if let Some((tag, names)) = tag_of(&resolved) {
            let nodes = self.branches(alternatives, keyword)?;
            return Ok(self.tagged(tag, &resolved, names, nodes));
        }
        if let Some(id) = self.external(&resolved, exclusive, keyword)? {
            return Ok(id);
        }
        let branches = self.branches(alternatives, keyword)?;
        Ok(self.push(NodeKind::Union { branches, exclusive }))
    }

    fn tagged(
        &mut self,
        tag: String,
        alternatives: &[SchemaMap],
        names: Vec<String>,
        nodes: Vec<NodeId>,
    ) -> NodeId {
        let (mut variants, mut aliases, mut other) = (Vec::with_capacity(nodes.len()), Vec::new(), None);
        for ((alternative, name), node) in alternatives.iter().zip(names).zip(nodes) {
            let spelled = alternative.get("properties").and_then(|p| p.get(&tag)).and_then(Value::as_object);
            if spelled.is_some_and(is_other) && other.is_none() {
                other = Some(node);
                continue;
            }
            aliases.extend(
                spelled.into_iter().flat_map(aliases_of).map(|alias| (name.clone(), alias.to_owned())),
            );
            variants.push((name, node));
        }
        if let (true, Some(only)) = (variants.is_empty(), other) {
            return only;
        }
        let words = Words::new(variants.iter().map(|(name, _)| name.clone()).collect());
        let words = words.with_aliases(aliases.iter().map(|(name, alias)| (name.as_str(), alias.as_str())));
        let names = Box::new(VariantNames::new(words, other));
        self.push(NodeKind::Tagged { tag, variants, names })
    }

    fn any_takes_null(&self, alternatives: &[Value]) -> CompileResult<bool> {
        for alternative in alternatives {
            let Some(schema) = self.resolved(alternative)? else { continue };
            let takes = match (schema.get("type"), schema.get("const"), schema.get("enum")) {
                (Some(Value::String(name)), ..) => name == "null",
                (Some(Value::Array(names)), ..) if !names.contains(&json!("null")) => false,
                (_, Some(constant), _) => constant.is_null(),
                (.., Some(Value::Array(members))) => members.contains(&Value::Null),
                _ => true,
            };
            if takes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn branches(&mut self, alternatives: &[Value], keyword: &str) -> CompileResult<Vec<NodeId>> {
        self.buffered += 1;
        let mut nodes = Vec::with_capacity(alternatives.len());
        for (i, alternative) in alternatives.iter().enumerate() {
            let rules = self.rules;
            nodes.push(self.below(&[keyword, &i.to_string()], rules, alternative)?);
        }
        self.buffered -= 1;
        Ok(nodes)
    }

    /// Compiles alternatives that only list strings. For example, schemars writes a documented unit enum as one `const` for each variant.
    /// Returns `None` for other alternatives.
    fn unit_enum(
        &mut self,
        alternatives: &[SchemaMap],
        exclusive: bool,
        described: Option<&Value>,
    ) -> Option<NodeId> {
        let words: Vec<Vec<String>> = alternatives.iter().map(words).collect::<Option<_>>()?;
        let mut notes = described_words(alternatives, &words);
        let words = spelled(alternatives, together(&words, exclusive));
        let id = self.push(match (words.is_empty(), words.is_open()) {
            (false, _) => NodeKind::Enum(words),
            (true, false) => NodeKind::Never,
            (true, true) => NodeKind::Str(StrSpec::any()),
        });
        if let Some(Value::String(variants)) = notes.get_mut("description") {
            self.variant_docs.insert(id, variants.clone());
            if let Some(Value::String(whole)) = described {
                *variants = format!("{whole}\n{variants}");
            }
        }
        *self.notes_mut(id) = notes;
        Some(id)
    }

    fn external(
        &mut self,
        alternatives: &[SchemaMap],
        exclusive: bool,
        keyword: &str,
    ) -> CompileResult<Option<NodeId>> {
        let mut units: Vec<&SchemaMap> = Vec::new();
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
        // Serde does not buffer the values of an externally tagged enum, so `buffered` is not increased.
        for (i, (name, schema, notes)) in payloads.into_iter().enumerate() {
            let node = self.below(&[keyword, &i.to_string(), "properties", name], rules, schema)?;
            let setting = if self.foreign { None } else { schema.get("x-aliases").and_then(Value::as_array) };
            let aliases = setting.into_iter().flatten().filter_map(Value::as_str).map(String::from).collect();
            variants.push(Variant { name: name.into(), aliases, node, notes });
        }
        let prop = |v: &Variant| Prop {
            token: NameToken::key(&v.name),
            name: v.name.clone(),
            node: v.node,
            frequent: FrequentValues::Nothing,
            required: false,
            aliases: v.aliases.clone(),
            notes: Notes::new(),
            secret: false,
            null_absent: false,
            field: None,
        };
        let object = ObjectSpec {
            spellings: Spellings::default(),
            props: variants.iter().map(prop).collect(),
            index: None,
            patterns: Vec::new(),
            rest: AdditionalProperties::Denied,
            required: 0,
            min: 1,
            max: 1,
            is_complete_with_required: false,
        };
        let object = self.push(NodeKind::Object(object));
        let unit_words: Vec<Vec<String>> = units.iter().filter_map(|u| words(u)).collect();
        let owned: Vec<SchemaMap> = units.into_iter().cloned().collect();
        let unit_notes = described_words(&owned, &unit_words);
        Ok(Some(self.push(NodeKind::External(ExternalSpec {
            units: spelled(&owned, together(&unit_words, exclusive)),
            unit_notes,
            variants,
            object,
        }))))
    }
}

/// Returns whether an alternative is an enum with one variant, and not a struct into which such an enum is flattened.
fn is_enum_of_one(alternative: &Value) -> bool {
    let variant = object(alternative);
    words(variant).is_some()
        || single_entry(variant).is_some()
        || tag_of(std::slice::from_ref(variant)).is_some_and(|(tag, _)| {
            variant.get("properties").and_then(Value::as_object).and_then(|p| p.keys().next()) == Some(&tag)
        })
}

fn object(value: &Value) -> &SchemaMap {
    static EMPTY: std::sync::LazyLock<SchemaMap> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}

/// Returns the strings of `set` with their aliases. The name of the variant `#[serde(other)]` is left out, and the result then accepts any
/// string.
fn spelled(alternatives: &[SchemaMap], set: Vec<String>) -> Words {
    let is_open = alternatives.iter().any(is_other);
    let hidden: HashSet<String> =
        alternatives.iter().filter(|a| is_other(a)).filter_map(words).flatten().collect();
    let set = set.into_iter().filter(|word| !hidden.contains(word)).collect();
    let aliases = alternatives.iter().flat_map(|alternative| {
        let word = alternative.get("const").and_then(Value::as_str).unwrap_or_default();
        aliases_of(alternative).map(move |alias| (word, alias))
    });
    Words::new(set).with_aliases(aliases).opened(is_open)
}

/// Returns the strings that `const` or `enum` lists, if the schema has no other restriction.
fn words(schema: &SchemaMap) -> Option<Vec<String>> {
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

/// Returns each word of the sets once. With `exclusive`, leaves out words that are in several sets.
fn together(sets: &[Vec<String>], exclusive: bool) -> Vec<String> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for set in sets {
        for word in set.iter().collect::<HashSet<_>>() {
            *owners.entry(word).or_default() += 1;
        }
    }
    let mut told = HashSet::new();
    let words = sets.iter().flatten().filter(|word| !exclusive || owners.get(word.as_str()) == Some(&1));
    words.filter(|word| told.insert(word.as_str())).cloned().collect()
}

/// Returns whether the schema accepts only null.
fn is_null(schema: &Value) -> bool {
    let schema = object(schema);
    let constant = schema.get("const");
    schema.keys().all(|k| !restricts(k) || matches!(k.as_str(), "type" | "const"))
        && constant.is_none_or(Value::is_null)
        && schema.get("type").map_or(constant.is_some(), |t| t == "null")
}

/// Returns the docs of unit variants, one line each, as the description of their enum.
fn described_words(alternatives: &[SchemaMap], words: &[Vec<String>]) -> Notes {
    let mut lines = Vec::new();
    for (alternative, words) in
        alternatives.iter().zip(words).filter(|(alternative, _)| !is_other(alternative))
    {
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

/// Returns the name of a required property that has a different constant in each alternative, and its constants.
pub(super) fn tag_of(alternatives: &[SchemaMap]) -> Option<(String, Vec<String>)> {
    if !alternatives.iter().all(|a| a.get("type").is_none_or(|t| t == "object")) {
        return None;
    }
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
