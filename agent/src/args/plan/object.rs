//! Compiles the schemas of objects and their properties.

use super::check::known;
use super::compile::Compiler;
use super::error::CompileResult;
use super::frequent::FrequentValues;
use super::key_index::KeyIndex;
use super::keywords::{SchemaMap, notes, whole};
use super::node::{AdditionalProperties, NodeId, NodeKind, ObjectSpec, Pattern, Prop};
use super::token::NameToken;
use crate::args::policy::{CoercionPolicy, Rules};
use crate::args::suggest::Spellings;
use serde_json::{Value, json};

impl Compiler<'_> {
    pub(super) fn object(&mut self, map: &SchemaMap) -> CompileResult<ObjectSpec> {
        let below = self.rules.not_item();
        let patterns = self.patterns(map, below)?;
        let required: Vec<&str> = match map.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut props = Vec::new();
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, schema) in properties {
                props.push(self.property(name, schema, required.contains(&name.as_str()), &patterns, map)?);
            }
        }
        let any = !map.contains_key("properties") && self.foreign;
        let closed = map.get("unevaluatedProperties") == Some(&json!(false));
        let rest = match map.get("additionalProperties") {
            Some(Value::Bool(false)) => AdditionalProperties::Denied,
            None if closed => AdditionalProperties::Denied,
            None if !patterns.is_empty() && !self.foreign => AdditionalProperties::Denied,
            // A schema without `properties` accepts any key, unless it was generated for a Rust type: there it is a struct without fields.
            None if any && patterns.is_empty() => AdditionalProperties::Schema(self.push(NodeKind::Any)),
            None if self.rules.is_check() || known(map).is_none() => {
                AdditionalProperties::Schema(self.push(NodeKind::Any))
            }
            None => AdditionalProperties::Unspecified,
            Some(schema) => {
                AdditionalProperties::Schema(self.below(&["additionalProperties"], below, schema)?)
            }
        };
        // A name in a check such as `if` also becomes an optional property, so that the key is known.
        let known = known(map).filter(|_| rest == AdditionalProperties::Unspecified).unwrap_or_default();
        let known = known.into_iter().filter(|name| !required.contains(name)).map(|name| (name, false));
        // A name in `required` that is not a property is still required, so it becomes a property, too.
        let required = required.iter().map(|name| (*name, true));
        for (name, required) in required.chain(known) {
            if !props.iter().any(|p| p.name == name)
                && (required || !patterns.iter().any(|(p, _)| p.is_match(name)))
            {
                let node = match (rest, patterns.iter().find(|(p, _)| p.is_match(name))) {
                    (_, Some((_, id))) => *id,
                    (AdditionalProperties::Schema(id), None) => id,
                    (AdditionalProperties::Denied, None) => self.push(NodeKind::Never),
                    (AdditionalProperties::Unspecified, None) => self.push(NodeKind::Any),
                };
                props.push(Prop {
                    token: NameToken::key(name),
                    name: name.into(),
                    node,
                    frequent: FrequentValues::Nothing,
                    required,
                    aliases: Vec::new(),
                    notes: super::Notes::new(),
                    secret: false,
                    null_absent: false,
                    field: None,
                });
            }
        }
        let count = |keyword: &str| map.get(keyword).and_then(whole);
        let mut mask = 0u64;
        for (i, _) in props.iter().enumerate().take(64).filter(|(_, p)| p.required) {
            mask |= 1 << i;
        }
        let (min, max) = (count("minProperties").unwrap_or(0), count("maxProperties").unwrap_or(u64::MAX));
        Ok(ObjectSpec {
            is_complete_with_required: props.len() <= 64 && min == 0 && max == u64::MAX,
            spellings: Spellings::default(),
            index: (props.len() > ObjectSpec::SCAN).then(|| KeyIndex::new(&props)),
            props,
            patterns,
            rest,
            required: mask,
            min,
            max,
        })
    }

    fn property(
        &mut self,
        name: &str,
        schema: &Value,
        required: bool,
        patterns: &[(Pattern, NodeId)],
        map: &SchemaMap,
    ) -> CompileResult<Prop> {
        // Keywords such as `x-aliases` are settings only if the macros wrote the schema. Otherwise, they are ordinary annotations.
        let setting = |keyword: &str| if self.foreign { None } else { schema.get(keyword) };
        let aliases = match setting("x-aliases") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(String::from).collect(),
            _ => Vec::new(),
        };
        let flattened = setting("x-buffered").is_some();
        let field = setting("x-field").and_then(Value::as_str).map(String::from);
        let secret = setting("x-secret") == Some(&json!(true));
        let policy = match setting("x-coerce") {
            None => None,
            Some(word) => match word.as_str().map(str::parse::<CoercionPolicy>) {
                Some(Ok(policy)) => Some(policy),
                Some(Err(unknown)) => return Err(self.error("x-coerce", unknown.to_string())),
                None => return Err(self.error("x-coerce", "must be a policy in words, such as `strict`")),
            },
        };
        let rules = policy.map_or(self.rules.not_item(), CoercionPolicy::rules);
        let all;
        let overlapping: Vec<&Pattern> =
            patterns.iter().filter(|(p, _)| self.foreign && p.is_match(name)).map(|(p, _)| p).collect();
        let schema = if overlapping.is_empty() {
            schema
        } else {
            // The name of the property also matches patterns, so the schemas of these patterns apply, too.
            let mut parts = vec![schema.clone()];
            parts.extend(overlapping.iter().map(|p| map["patternProperties"][p.source.as_str()].clone()));
            all = json!({"allOf": parts});
            &all
        };
        let mut node = self.below(&["properties", name], rules, schema)?;
        if flattened {
            self.flattened.push(node);
        }
        let nullable = match self.kind(node) {
            NodeKind::Nullable(inner) => Some(*inner),
            _ => None,
        };
        // For a parameter of type `Option<T>`, schemars writes a nullable schema. The parameter may be left out instead, so its node is
        // replaced by that of `T`.
        if let Some(inner) = nullable
            && !self.foreign
            && !required
        {
            let outer = std::mem::take(self.notes_mut(node));
            node = self.described(inner, outer);
        }
        let takes_null = match self.kind(node) {
            NodeKind::Nullable(_) | NodeKind::Any | NodeKind::Null => true,
            NodeKind::Const(members) => members.contains(&Value::Null),
            _ => false,
        };
        let mut notes = notes(schema);
        if !self.foreign && !takes_null && notes.get("default").is_some_and(Value::is_null) {
            notes.remove("default");
        }
        // The descriptions of the variants are added to the parameter's own description, because a model needs both.
        if let (Some(Value::String(own)), Some(variants)) =
            (notes.get_mut("description"), self.variant_docs.get(&node))
            && !own.ends_with(variants.as_str())
        {
            *own = format!("{own}\n{variants}");
        }
        Ok(Prop {
            token: NameToken::key(name),
            name: name.into(),
            node,
            frequent: FrequentValues::Nothing,
            required,
            aliases,
            notes,
            secret,
            null_absent: !required && !takes_null,
            field,
        })
    }

    fn described(&mut self, id: NodeId, outer: super::Notes) -> NodeId {
        let own = self.notes_mut(id);
        for (keyword, note) in outer.into_iter().filter(|(_, note)| !note.is_null()) {
            own.entry(keyword).or_insert(note);
        }
        id
    }

    fn patterns(&mut self, map: &SchemaMap, rules: Rules) -> CompileResult<Vec<(Pattern, NodeId)>> {
        let Some(Value::Object(patterns)) = map.get("patternProperties") else { return Ok(Vec::new()) };
        let mut out = Vec::with_capacity(patterns.len());
        for (source, schema) in patterns {
            let pattern = self.patterns.compile(source, "patternProperties", &self.pointer)?;
            out.push((pattern, self.below(&["patternProperties", source], rules, schema)?));
        }
        Ok(out)
    }
}
