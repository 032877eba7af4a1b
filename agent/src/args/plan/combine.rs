//! Compiles `allOf`, `anyOf` and `oneOf`: merges the schemas of `allOf`, and combines groups of alternatives to one list.

use super::check::look_at_properties;
use super::compile::{Compiler, MERGE_COST};
use super::error::CompileResult;
use super::keywords::{CHECKS, KNOWN, SchemaMap, push_check, restricts};
use super::merge::push_part;
use super::node::{NodeId, NodeKind};
use super::union::tag_of;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MAX_NESTING: usize = 32;
/// Maximum number of combinations of alternatives: two groups of 10 have 100. At the top level, a single group may have more.
const MAX_PRODUCT: usize = 64;

/// Keywords that are handled separately, instead of being copied into [`Parts::plain`].
const APART: [&str; 6] = ["allOf", "anyOf", "oneOf", CLOSING, "$defs", "definitions"];
const CLOSING: &str = "unevaluatedProperties";

struct Parts {
    plain: SchemaMap,
    /// A value has to fit at least one alternative of each group, and exactly one of an exclusive group.
    groups: Vec<Group>,
}

#[derive(PartialEq)]
struct Group {
    keyword: &'static str,
    options: Vec<Value>,
    /// Whether a value that fits several of the `options` is refused. The `oneOf` that schemars writes for an enum is not exclusive.
    exclusive: bool,
}

struct Product {
    alternatives: Vec<Value>,
    exclusive: bool,
}

impl Compiler<'_> {
    /// Compiles a schema that has `keyword`: `allOf`, `anyOf` or `oneOf`.
    pub(super) fn combination(&mut self, keyword: &str, map: &SchemaMap) -> CompileResult<NodeId> {
        if let Some(part) = self.only_part(map) {
            return self.below(&["allOf", "0"], self.rules, part);
        }
        let Some(mut parts) = self.parts(map, 0)? else { return Ok(self.push(NodeKind::Never)) };
        if parts.plain.contains_key(CLOSING) && look_at_properties(&parts.plain) {
            parts.plain.shift_remove(CLOSING);
            self.unmodelled(CLOSING, "beside conditions on properties is not modelled")?;
        }
        // The checks (`not`, `if`, …) are compiled once for the whole schema, not for each alternative.
        let checks = if parts.groups.is_empty() { None } else { parts.plain.shift_remove(CHECKS) };
        let Some(checks) = checks else { return self.alternatives(parts, keyword, map) };
        let mut apart = SchemaMap::from_iter([(CHECKS.to_owned(), checks)]);
        apart.extend(parts.plain.shift_remove(KNOWN).map(|names| (KNOWN.to_owned(), names)));
        self.with_checks(&apart, |c, apart| {
            parts.plain.extend(apart.get(KNOWN).map(|names| (KNOWN.to_owned(), names.clone())));
            c.alternatives(parts, keyword, map)
        })
    }

    fn alternatives(&mut self, parts: Parts, keyword: &str, map: &SchemaMap) -> CompileResult<NodeId> {
        let Product { alternatives, exclusive } = self.product(parts, 0)?;
        match &alternatives[..] {
            [only] if keyword == "allOf" => self.schema(only),
            _ => self.union(alternatives, exclusive, keyword, map.get("description")),
        }
    }

    /// Returns the only schema in `allOf`, if no keyword beside `allOf` adds a restriction. The schema then needs no merge, and may refer
    /// to itself.
    pub(super) fn only_part<'m>(&self, map: &'m SchemaMap) -> Option<&'m Value> {
        let Value::Array(parts) = map.get("allOf")? else { return None };
        let [part] = &parts[..] else { return None };
        let mut others = map.iter().filter(|(k, _)| *k != "allOf" && restricts(k)).peekable();
        if others.peek().is_none() {
            return Some(part);
        }
        let target = match part.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.resolve(reference).ok()?,
            None => part,
        };
        others.all(|(k, v)| k == "type" && target.get(k) == Some(v)).then_some(part)
    }

    /// Returns `None` if no value can fit the schema.
    fn parts(&self, map: &SchemaMap, depth: usize) -> CompileResult<Option<Parts>> {
        if depth > MAX_NESTING {
            return Err(self.error("allOf", "nests too deeply"));
        }
        let own = |(k, v): (&String, &Value)| (k.clone(), v.clone());
        let mut plain: SchemaMap =
            map.iter().filter(|(k, _)| !APART.contains(&k.as_str())).map(own).collect();
        let mut groups = Vec::new();
        for keyword in ["oneOf", "anyOf"] {
            if let Some(Value::Array(options)) = map.get(keyword) {
                let exclusive = self.foreign && keyword == "oneOf" && options.len() > 1;
                groups.push(Group { keyword, options: options.clone(), exclusive });
            }
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.charge(MERGE_COST)?;
            let Some(whole) = self.resolved(part)? else { return Ok(None) };
            let Some(mut part) = self.parts(&whole, depth + 1)? else { return Ok(None) };
            if self.foreign && part.plain.shift_remove(CLOSING).is_some() {
                // `unevaluatedProperties` applies only to its own part. A merge would change that, so the part becomes a check: the value
                // must also fit the part.
                push_check(&mut part.plain, whole);
            }
            let Some(merged) = self.merged(&plain, &part.plain)? else { return Ok(None) };
            plain = merged;
            for group in part.groups {
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
        // The schema's own `unevaluatedProperties` applies to all parts, so it is added after the merge.
        if let Some(closing) = map.get(CLOSING) {
            plain.insert(CLOSING.into(), closing.clone());
            if groups.is_empty() {
                plain = self.normal(&plain)?.into_owned();
            }
        }
        Ok(Some(Parts { plain, groups }))
    }

    /// Merges `plain` with each combination of alternatives: `plain and (a or b)` is `(plain and a) or (plain and b)`.
    fn product(&self, parts: Parts, depth: usize) -> CompileResult<Product> {
        let Parts { mut plain, mut groups } = parts;
        if groups.is_empty() {
            return Ok(Product { alternatives: vec![Value::Object(plain)], exclusive: false });
        }
        if groups.len() == 1 && !plain.keys().any(|k| restricts(k)) {
            // The alternatives are not merged, because they may contain recursive references.
            let Group { options, exclusive, .. } = groups.remove(0);
            return Ok(Product { alternatives: options, exclusive });
        }
        let mut closing = plain.remove(CLOSING);
        if self.foreign && plain.contains_key("additionalProperties") {
            closing = None;
        }
        let exclusive = groups.iter().position(|g| g.exclusive);
        let mut out = match exclusive {
            // Exactly one alternative of this group must fit, so its alternatives are not combined with those of the other groups.
            // Instead, each alternative also has to fit the other groups.
            Some(at) => {
                let chosen = groups.remove(at);
                self.each(&plain, &chosen, &groups)?
            }
            None => self.multiplied(plain, &groups, depth)?,
        };
        if let Some(closing) = closing {
            if self.foreign && !look_at_the_same(&out) {
                self.unmodelled(CLOSING, "beside alternatives of different properties is not modelled")?;
            } else {
                for schema in &mut out {
                    schema.insert(CLOSING.into(), closing.clone());
                }
            }
        }
        let alternatives: Vec<Value> = out.into_iter().map(Value::Object).collect();
        Ok(Product { exclusive: exclusive.is_some() && alternatives.len() > 1, alternatives })
    }

    fn each(&self, plain: &SchemaMap, chosen: &Group, others: &[Group]) -> CompileResult<Vec<SchemaMap>> {
        let product = others.iter().fold(chosen.options.len(), |n, g| n.saturating_mul(g.options.len()));
        let apart = !others.is_empty() && product > MAX_PRODUCT;
        let mut out = Vec::with_capacity(chosen.options.len());
        for option in &chosen.options {
            self.charge(MERGE_COST)?;
            let Some(option) = self.opened(option)? else { continue };
            let Some(mut whole) = self.merged(plain, &option)? else { continue };
            for other in others {
                if apart {
                    push_check(&mut whole, other.as_schema());
                } else {
                    push_part(&mut whole, json!({other.keyword: other.options}));
                }
            }
            out.push(whole);
        }
        Ok(out)
    }

    fn multiplied(&self, plain: SchemaMap, groups: &[Group], depth: usize) -> CompileResult<Vec<SchemaMap>> {
        let mut product = vec![plain];
        for group in groups {
            let options = self.options(group, depth)?;
            let size = product.len().saturating_mul(options.len());
            if size > MAX_PRODUCT && (depth > 0 || product.len() > 1 && options.len() > 1) {
                if !self.foreign {
                    let keyword = if groups.len() > 1 { "allOf" } else { group.keyword };
                    return Err(
                        self.error(keyword, format!("multiplies to more than {MAX_PRODUCT} alternatives"))
                    );
                }
                // There are too many combinations to merge. Each schema gets a check instead: a value must also fit the group.
                for schema in &mut product {
                    push_check(schema, group.as_schema());
                }
                continue;
            }
            let mut next = Vec::with_capacity(size);
            for a in &product {
                for b in &options {
                    self.charge(MERGE_COST)?;
                    next.extend(self.merged(a, b)?);
                }
            }
            product = next;
        }
        Ok(product)
    }

    fn opened(&self, option: &Value) -> CompileResult<Option<SchemaMap>> {
        Ok(self.resolved(option)?.map(|option| self.open(option)))
    }

    /// Prepares a schema for a merge. `unevaluatedProperties` must not see the properties of the other schema, so it moves to a check that
    /// contains the original schema.
    pub(super) fn open(&self, mut option: SchemaMap) -> SchemaMap {
        if self.foreign && option.contains_key(CLOSING) {
            let whole = option.clone();
            option.shift_remove(CLOSING);
            push_check(&mut option, whole);
        }
        option
    }

    /// Returns the alternatives of a group. An inner union is replaced by its alternatives, unless it is exclusive.
    fn options(&self, group: &Group, depth: usize) -> CompileResult<Vec<SchemaMap>> {
        let mut out = Vec::with_capacity(group.options.len());
        for option in &group.options {
            self.charge(MERGE_COST)?;
            let Some(option) = self.opened(option)? else { continue };
            if !["allOf", "anyOf", "oneOf"].iter().any(|k| option.contains_key(*k)) {
                out.push(option);
                continue;
            }
            let Some(parts) = self.parts(&option, depth + 1)? else { continue };
            if parts.groups.iter().any(|g| g.exclusive) {
                out.push(option);
                continue;
            }
            for nested in self.product(parts, depth + 1)?.alternatives {
                out.extend(self.resolved(&nested)?);
            }
        }
        Ok(out)
    }
}

impl Group {
    fn as_schema(&self) -> SchemaMap {
        SchemaMap::from_iter([(self.keyword.to_owned(), json!(self.options))])
    }
}

/// Returns whether `unevaluatedProperties` can be copied to each alternative: all alternatives name the same properties, or a tag ensures
/// that only one alternative fits.
fn look_at_the_same(alternatives: &[SchemaMap]) -> bool {
    let names = |schema: &SchemaMap| -> Option<BTreeSet<String>> {
        if ["allOf", "anyOf", "oneOf", "$ref"].iter().any(|k| schema.contains_key(*k)) {
            return None;
        }
        let mut out = BTreeSet::new();
        for keyword in ["properties", "patternProperties"] {
            let names = schema.get(keyword).and_then(Value::as_object);
            out.extend(names.into_iter().flatten().map(|(name, _)| format!("{keyword} {name}")));
        }
        if schema.contains_key("additionalProperties") {
            out.insert("additionalProperties".into());
        }
        Some(out)
    };
    if alternatives.len() < 2 || tag_of(alternatives).is_some() {
        return true;
    }
    let first = alternatives.first().and_then(names);
    first.is_some() && alternatives.iter().all(|a| names(a) == first)
}
