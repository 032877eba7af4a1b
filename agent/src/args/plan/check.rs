//! Assertions about a value as a whole: `not`, `if`, `contains`, … and schemas that cannot be merged with other schemas.
//!
//! The assertions are moved from a schema to a list of checks. The remaining schema is compiled as usual, and decides how a value is read
//! and coerced. The coerced value must then pass the checks.

use super::compile::Compiler;
use super::error::CompileResult;
use super::keywords::{ALSO, CHECKS, KNOWN, SchemaMap, add_check, whole};
use super::node::{CheckedSpec, NodeCheck, NodeId, NodeKind};
use crate::args::policy::Rules;
use crate::args::text::{MAX_VALUE, cut};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A marker in the list of names under [`KNOWN`]: a check may mention any property name.
const ANY_NAME: &str = "\0any";

/// Keywords that are checked after coercion. Each group is one assertion.
const GROUPS: [&[&str]; 7] = [
    &["not"],
    &["if", "then", "else"],
    &["contains", "minContains", "maxContains"],
    &["propertyNames"],
    &["dependentRequired"],
    &["dependentSchemas"],
    &["dependencies"],
];

/// Keywords whose meaning depends on other keywords or on references.
const LOOKING_ASIDE: [&str; 4] =
    ["unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"];

impl Compiler<'_> {
    /// Moves assertions such as `not` and `if` to the list of checks. In a schema without a Rust type, also replaces the keywords in
    /// [`LOOKING_ASIDE`].
    pub(super) fn normal<'m>(&self, map: &'m SchemaMap) -> CompileResult<Cow<'m, SchemaMap>> {
        let present = |group: &[&str]| map.contains_key(group[0]);
        let lonely = LOOKING_ASIDE.iter().any(|keyword| map.contains_key(*keyword));
        let any = GROUPS.iter().any(|group| present(group));
        if !any && (!self.foreign || !lonely) {
            return Ok(Cow::Borrowed(map));
        }
        let mut out = map.clone();
        for group in GROUPS.iter().filter(|group| present(group)) {
            let mut check = SchemaMap::new();
            for keyword in *group {
                check.extend(out.shift_remove(*keyword).map(|value| ((*keyword).to_owned(), value)));
            }
            if !says_nothing(group[0], &check) {
                add_check(&mut out, Value::Object(check));
            }
        }
        if self.foreign {
            self.without_looking_aside(&mut out)?;
        }
        Ok(Cow::Owned(out))
    }

    /// Adds a check for each entry of `patternProperties`, if there are several. The first pattern that matches a key decides how the
    /// value of the key is parsed and coerced, but the value must fit the schemas of all matching patterns.
    pub(super) fn with_pattern_checks<'m>(&self, map: Cow<'m, SchemaMap>) -> Cow<'m, SchemaMap> {
        let is_merged = ["allOf", "anyOf", "oneOf"].iter().any(|keyword| map.contains_key(*keyword));
        let patterns = map.get("patternProperties").and_then(Value::as_object);
        let several = patterns.filter(|patterns| self.foreign && !is_merged && patterns.len() > 1);
        let Some(several) = several else { return map };
        let restricted =
            several.iter().filter(|(_, schema)| **schema != json!(true) && **schema != json!({}));
        let added: Vec<Value> = restricted
            .map(|(pattern, schema)| json!({ALSO: {"patternProperties": {pattern: schema}}}))
            .collect();
        let mut map = map.into_owned();
        if let Value::Array(checks) = map.entry(CHECKS).or_insert_with(|| json!([])) {
            checks.extend(added);
        }
        Cow::Owned(map)
    }

    /// Replaces `unevaluatedProperties` by `additionalProperties`, and `unevaluatedItems` by `items`, where the replacement has the same
    /// meaning. Beside `allOf`, `anyOf`, `oneOf` or `$ref`, `unevaluatedProperties` stays until the subschemas are merged. Calls
    /// `unmodelled` for other uses, and for `$dynamicRef` and `$recursiveRef`.
    fn without_looking_aside(&self, map: &mut SchemaMap) -> CompileResult<()> {
        const COMBINING: [&str; 4] = ["allOf", "anyOf", "oneOf", "$ref"];
        let mut elsewhere = false;
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if map.shift_remove(keyword).is_some() {
                elsewhere = true;
                self.unmodelled(keyword, "is not modelled")?;
            }
        }
        let combined = COMBINING.iter().any(|k| map.contains_key(*k));
        let (by_checks, by_contains) = (elsewhere || look_at_properties(map), any_check(map, &["contains"]));
        let open = |value: &Value| *value == json!(true) || *value == json!({});
        if let Some(items) = map.get("unevaluatedItems") {
            let listed = map.get("items").is_some_and(Value::is_array);
            let rest = if listed { "additionalItems" } else { "items" };
            let silent = open(items) || map.contains_key(rest);
            if silent || !combined && !by_checks && !by_contains {
                if let Some(items) = map.shift_remove("unevaluatedItems")
                    && !silent
                {
                    map.insert(rest.into(), items);
                }
            } else {
                map.shift_remove("unevaluatedItems");
                self.unmodelled("unevaluatedItems", "beside what looks at items, too, is not modelled")?;
            }
        }
        let Some(closing) = map.get("unevaluatedProperties") else { return Ok(()) };
        if map.contains_key("additionalProperties") || open(closing) {
            let all = open(closing);
            map.shift_remove("unevaluatedProperties");
            if all {
                map.entry("additionalProperties").or_insert(Value::Bool(true));
            }
        } else if by_checks {
            map.shift_remove("unevaluatedProperties");
            self.unmodelled("unevaluatedProperties", "beside conditions on properties is not modelled")?;
        } else if !combined && let Some(closing) = map.shift_remove("unevaluatedProperties") {
            map.insert("additionalProperties".into(), closing);
        }
        Ok(())
    }

    /// Returns a node with the checks of a schema, such as `not`. `compile` compiles the other keywords.
    pub(super) fn with_checks(
        &mut self,
        map: &SchemaMap,
        compile: impl FnOnce(&mut Self, &SchemaMap) -> CompileResult<NodeId>,
    ) -> CompileResult<NodeId> {
        let Some(Value::Array(checks)) = map.get(CHECKS) else { return compile(self, map) };
        let mut rest = map.clone();
        rest.shift_remove(CHECKS);
        if !self.rules.is_check() {
            let mut names = BTreeSet::new();
            if let Some(Value::Array(known)) = rest.get(KNOWN) {
                names.extend(known.iter().filter_map(Value::as_str).map(String::from));
            }
            for check in checks {
                self.names_in(check, &mut names, 0)?;
            }
            if !names.is_empty() {
                rest.insert(KNOWN.into(), names.into_iter().collect());
            }
        }
        let base = compile(self, &rest)?;
        let before = std::mem::replace(&mut self.rules, Rules::check());
        let mut compiled = Vec::with_capacity(checks.len());
        for check in checks {
            self.checks(check, &mut compiled)?;
        }
        self.rules = before;
        if compiled.is_empty() {
            return Ok(base);
        }
        let id = self.push(NodeKind::Never);
        *self.kind_mut(id) = NodeKind::Checked(CheckedSpec { base, checks: compiled });
        Ok(id)
    }

    fn checks(&mut self, check: &Value, out: &mut Vec<NodeCheck>) -> CompileResult<()> {
        let rules = self.rules;
        let words = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from).collect()
        };
        if let Some(schema) = check.get(ALSO) {
            let node = self.schema(schema)?;
            out.push(NodeCheck::Also(node));
        } else if let Some(schema) = check.get("not") {
            let given = only_required(schema);
            out.push(NodeCheck::Not { node: self.below(&["not"], rules, schema)?, given });
        } else if let Some(condition) = check.get("if") {
            if check.get("then").is_none() && check.get("else").is_none() {
                return Ok(());
            }
            let mut part = |keyword: &str| match check.get(keyword) {
                Some(schema) => self.below(&[keyword], rules, schema).map(Some),
                None => Ok(None),
            };
            let (then, otherwise) = (part("then")?, part("else")?);
            let when = in_words(condition);
            out.push(NodeCheck::If {
                condition: self.below(&["if"], rules, condition)?,
                then,
                otherwise,
                when,
            });
        } else if let Some(schema) = check.get("contains") {
            let count = |keyword: &str| check.get(keyword).and_then(whole);
            let (min, max) = (count("minContains").unwrap_or(1), count("maxContains").unwrap_or(u64::MAX));
            out.push(NodeCheck::Contains { node: self.below(&["contains"], rules, schema)?, min, max });
        } else if let Some(schema) = check.get("propertyNames") {
            out.push(NodeCheck::Names(self.below(&["propertyNames"], rules, schema)?));
        } else {
            for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
                for (name, needs) in check.get(keyword).and_then(Value::as_object).into_iter().flatten() {
                    out.push(if needs.is_array() {
                        NodeCheck::Requires(name.clone(), words(needs))
                    } else {
                        NodeCheck::Depends(name.clone(), self.below(&[keyword, name], rules, needs)?)
                    });
                }
            }
        }
        Ok(())
    }

    /// Adds the property names in a check, except those within `not`. Adds [`ANY_NAME`] if the check may concern any property.
    fn names_in(&self, schema: &Value, names: &mut BTreeSet<String>, depth: usize) -> CompileResult<()> {
        const MOST_NAMES: usize = 1000;
        const DEEPEST: usize = 16;
        self.charge(1)?;
        let Value::Object(map) = schema else { return Ok(()) };
        if depth > DEEPEST || names.len() > MOST_NAMES {
            names.insert(ANY_NAME.into());
            return Ok(());
        }
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(inner)) => names.extend(inner.keys().cloned()),
                ("required", Value::Array(list)) => {
                    names.extend(list.iter().filter_map(Value::as_str).map(String::from));
                }
                ("patternProperties", _) => {
                    names.insert(ANY_NAME.into());
                }
                ("additionalProperties" | "unevaluatedProperties", value) if *value != json!(false) => {
                    names.insert(ANY_NAME.into());
                }
                ("dependentRequired" | "dependentSchemas" | "dependencies", Value::Object(inner)) => {
                    for (name, needs) in inner {
                        names.insert(name.clone());
                        names.extend(
                            needs
                                .as_array()
                                .into_iter()
                                .flatten()
                                .filter_map(Value::as_str)
                                .map(String::from),
                        );
                        self.names_in(needs, names, depth + 1)?;
                    }
                }
                ("allOf" | "anyOf" | "oneOf" | CHECKS, Value::Array(list)) => {
                    for part in list {
                        self.names_in(part, names, depth + 1)?;
                    }
                }
                ("if" | "then" | "else" | ALSO, part) => self.names_in(part, names, depth + 1)?,
                ("$ref", Value::String(reference)) => {
                    let target = self.resolve(reference)?;
                    self.names_in(target, names, depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the property names that checks mention ([`KNOWN`]), or `None` if checks may mention any name.
pub(super) fn known(map: &SchemaMap) -> Option<Vec<&str>> {
    let Some(Value::Array(names)) = map.get(KNOWN) else { return Some(Vec::new()) };
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    (!names.contains(&ANY_NAME)).then_some(names)
}

/// Returns whether a check such as `if` can affect `unevaluatedProperties`.
pub(super) fn look_at_properties(map: &SchemaMap) -> bool {
    any_check(map, &["if", "dependentSchemas", "dependencies", ALSO])
}

fn any_check(map: &SchemaMap, keywords: &[&str]) -> bool {
    let checks = map.get(CHECKS).and_then(Value::as_array);
    checks.is_some_and(|checks| checks.iter().any(|check| keywords.iter().any(|k| check.get(*k).is_some())))
}

/// Returns whether a check cannot fail.
fn says_nothing(keyword: &str, check: &SchemaMap) -> bool {
    let open = |value: &Value| *value == json!(true) || *value == json!({});
    match keyword {
        "not" => check["not"] == json!(false),
        "propertyNames" => open(&check["propertyNames"]),
        // These two affect `unevaluated…` keywords even if they accept every value.
        "if" | "contains" => false,
        keyword => check[keyword].as_object().is_none_or(serde_json::Map::is_empty),
    }
}

/// Returns the names in a schema that only requires properties; none for any other schema.
fn only_required(schema: &Value) -> Vec<String> {
    let Some(map) = schema.as_object() else { return Vec::new() };
    let plain = map.iter().all(|(k, v)| k == "required" || k == "type" && v == "object");
    match map.get("required") {
        Some(Value::Array(names)) if plain => {
            names.iter().filter_map(Value::as_str).map(String::from).collect()
        }
        _ => Vec::new(),
    }
}

/// Describes a condition on one to four properties in words: each property with words such as `kind is "a"`. Returns `None` for any other
/// condition.
fn in_words(condition: &Value) -> Option<Vec<(String, String)>> {
    let map = condition.as_object()?;
    let known = |k: &String| {
        ["properties", "required", "type", "title", "description", "$comment"].contains(&k.as_str())
    };
    if !map.keys().all(known) {
        return None;
    }
    let mut parts = Vec::new();
    let properties = map.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let shown = cut(name, MAX_VALUE);
        let value = |v: &Value| cut(&v.to_string(), MAX_VALUE);
        let asks = schema.as_object()?;
        let words = match (asks.get("const"), asks.get("enum").and_then(Value::as_array)) {
            (Some(constant), _) => format!("`{shown}` is {}", value(constant)),
            (None, Some(set)) if (1..=5).contains(&set.len()) => {
                format!("`{shown}` is {}", set.iter().map(value).collect::<Vec<_>>().join(" or "))
            }
            _ => return None,
        };
        parts.push((name.clone(), words));
    }
    for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str()?;
        if properties.is_none_or(|p| !p.contains_key(name)) {
            parts.push((name.to_owned(), format!("`{}` is given", cut(name, MAX_VALUE))));
        }
    }
    (1..=4).contains(&parts.len()).then_some(parts)
}
