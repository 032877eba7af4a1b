//! The rules of each dialect, from the providers' pages alone: shares nothing with the renderer that it judges.

use agent::schema::Dialect;
use serde_json::{Map, Value};
use std::collections::HashSet;

#[expect(clippy::struct_excessive_bools, reason = "a table of rules that hold or do not")]
struct Rules {
    /// None: any.
    keywords: Option<&'static [&'static str]>,
    formats: Option<&'static [&'static str]>,
    closed: bool,
    all_required: bool,
    typed: bool,
    type_lists: bool,
    lone_references: bool,
    members: fn(&Value) -> bool,
}

const OPENAI: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "$ref",
    "$defs",
    "description",
    "title",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];
const ANTHROPIC: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "allOf",
    "enum",
    "const",
    "$ref",
    "$defs",
    "description",
    "title",
    "format",
    "minItems",
];
const GEMINI: &[&str] = &[
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
];
const GEMINI_LEGACY: &[&str] = &[
    "type",
    "description",
    "properties",
    "required",
    "enum",
    "items",
    "format",
    "nullable",
    "anyOf",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "propertyOrdering",
];
const STRICT_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
const ANTHROPIC_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

fn rules(dialect: Dialect) -> Rules {
    let free = Rules {
        keywords: None,
        formats: None,
        closed: false,
        all_required: false,
        typed: false,
        type_lists: true,
        lone_references: false,
        members: |_| true,
    };
    let simple = |m: &Value| !m.is_object() && !m.is_array();
    match dialect {
        Dialect::OpenAiStrict => Rules {
            keywords: Some(OPENAI),
            formats: Some(STRICT_FORMATS),
            closed: true,
            all_required: true,
            typed: true,
            lone_references: true,
            members: simple,
            ..free
        },
        Dialect::AnthropicStrict => Rules {
            keywords: Some(ANTHROPIC),
            formats: Some(ANTHROPIC_FORMATS),
            closed: true,
            typed: true,
            members: simple,
            ..free
        },
        Dialect::GeminiJsonSchema => Rules {
            keywords: Some(GEMINI),
            lone_references: true,
            members: |m| m.is_string() || m.is_number(),
            ..free
        },
        Dialect::GeminiLegacy => Rules {
            keywords: Some(GEMINI_LEGACY),
            formats: Some(&["date-time"]),
            typed: true,
            type_lists: false,
            members: Value::is_string,
            ..free
        },
        _ => free,
    }
}

/// What the provider would refuse, or silently ignore.
pub(super) fn violations(dialect: Dialect, schema: &Value) -> Vec<String> {
    let mut checker = Checker { dialect, rules: rules(dialect), root: schema, broken: Vec::new() };
    checker.root();
    checker.schema(schema, "#");
    checker.counts();
    checker.broken
}

/// Anthropic's pattern for names: `^[a-zA-Z0-9_.-]{1,64}$`.
fn has_other_names(map: &Map<String, Value>) -> bool {
    let names = map.get("properties").and_then(Value::as_object).into_iter().flatten();
    names.map(|(name, _)| name).any(|name| {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        !letters || name.is_empty() || name.len() > 64
    })
}

struct Checker<'s> {
    dialect: Dialect,
    rules: Rules,
    root: &'s Value,
    broken: Vec<String>,
}

impl<'s> Checker<'s> {
    fn no(&mut self, path: &str, what: impl std::fmt::Display) {
        self.broken.push(format!("{path}: {what}"));
    }

    fn root(&mut self) {
        if self.dialect == Dialect::Canonical {
            return;
        }
        if self.root.get("type") != Some(&"object".into()) {
            self.no("#", "the root is no object");
        }
        for keyword in ["anyOf", "oneOf", "allOf", "not", "enum", "$ref"] {
            if self.root.get(keyword).is_some() {
                self.no("#", format!("{keyword} at the root"));
            }
        }
    }

    fn schema(&mut self, schema: &'s Value, path: &str) {
        let Value::Object(map) = schema else {
            if !schema.is_boolean() || self.rules.typed {
                self.no(path, "is no schema object");
            }
            return;
        };
        for keyword in map.keys() {
            if self.rules.keywords.is_some_and(|known| !known.contains(&keyword.as_str())) {
                self.no(path, format!("{keyword} is not known"));
            }
            if keyword == "$defs" && path != "#" {
                self.no(path, "definitions below the root");
            }
            if keyword.starts_with("x-") {
                self.no(path, format!("{keyword} is nobody's business"));
            }
        }
        self.types(map, path);
        self.object(map, path);
        if let Some(Value::Array(members)) = map.get("enum")
            && (members.is_empty() || !members.iter().all(self.rules.members))
        {
            self.no(path, "members of enum");
        }
        if let Some(format) = map.get("format").and_then(Value::as_str)
            && self.rules.formats.is_some_and(|known| !known.contains(&format))
        {
            self.no(path, format!("format {format}"));
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap_or("?");
            if self.root.pointer(pointer).is_none() {
                self.no(path, format!("{reference} leads nowhere"));
            }
            if self.rules.lone_references && map.len() > 1 {
                self.no(path, "something beside $ref");
            }
        }
        self.special(map, path);
        self.below(map, path);
    }

    fn types(&mut self, map: &Map<String, Value>, path: &str) {
        let names = ["string", "number", "integer", "boolean", "object", "array", "null"];
        let known = |name: &Value| name.as_str().is_some_and(|name| names.contains(&name));
        match map.get("type") {
            Some(Value::Array(list)) => {
                if !self.rules.type_lists || list.is_empty() || !list.iter().all(known) {
                    self.no(path, "a list of types");
                }
            }
            Some(name) if known(name) => {
                if !self.rules.type_lists && name == "null" {
                    self.no(path, "null as a type");
                }
            }
            Some(_) => self.no(path, "type"),
            None => {
                if self.rules.typed && !map.contains_key("anyOf") && !map.contains_key("$ref") {
                    self.no(path, "no type");
                }
            }
        }
        if self.rules.typed && map.get("type") == Some(&"array".into()) && !map.contains_key("items") {
            self.no(path, "no items");
        }
    }

    fn object(&mut self, map: &Map<String, Value>, path: &str) {
        if map.get("type") != Some(&"object".into()) {
            return;
        }
        if self.rules.closed && map.get("additionalProperties") != Some(&Value::Bool(false)) {
            self.no(path, "not closed");
        }
        let names: HashSet<&str> = map
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(k, _)| k.as_str())
            .collect();
        let Some(Value::Array(required)) = map.get("required") else {
            if self.rules.closed || path == "#" && self.rules.keywords.is_some() {
                self.no(path, "no required");
            }
            return;
        };
        let required: HashSet<&str> = required.iter().filter_map(Value::as_str).collect();
        let unknown = self.rules.keywords.is_some() && !required.is_subset(&names);
        if unknown || self.rules.all_required && required != names {
            self.no(path, "required and properties differ");
        }
        if let Some(Value::Array(order)) = map.get("propertyOrdering")
            && order.iter().filter_map(Value::as_str).collect::<HashSet<_>>() != names
        {
            self.no(path, "propertyOrdering and properties differ");
        }
    }

    fn special(&mut self, map: &Map<String, Value>, path: &str) {
        let pattern = map.get("pattern").and_then(Value::as_str).unwrap_or_default();
        let reference = map.get("$ref").and_then(Value::as_str).unwrap_or_default();
        match self.dialect {
            Dialect::OpenAiStrict if pattern.contains("(?=") || pattern.contains("(?!") => {
                self.no(path, "lookaround");
            }
            Dialect::AnthropicStrict if map.get("minItems").and_then(Value::as_u64) > Some(1) => {
                self.no(path, "minItems");
            }
            Dialect::AnthropicStrict if has_other_names(map) => self.no(path, "the name of a property"),
            Dialect::LlamaCpp => {
                let whole = pattern.starts_with('^') && pattern.ends_with('$');
                if !pattern.is_empty() && !whole {
                    self.no(path, "a pattern of a part");
                }
                if pattern.contains(r"\d") || pattern.contains(r"\w") || pattern.contains("(?") {
                    self.no(path, "a pattern that is no grammar");
                }
                if !reference.is_empty() && !reference.starts_with("#/$defs/") {
                    self.no(path, "a reference that is not followed");
                }
                for keyword in ["not", "if", "patternProperties"] {
                    if map.contains_key(keyword) {
                        self.no(path, keyword);
                    }
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, map: &'s Map<String, Value>, path: &str) {
        for keyword in ["properties", "patternProperties", "$defs"] {
            for (name, schema) in map.get(keyword).and_then(Value::as_object).into_iter().flatten() {
                self.schema(schema, &format!("{path}/{keyword}/{name}"));
            }
        }
        // A list of `items` is draft-07, which only comes through where nothing is rendered.
        let lists = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
        for keyword in lists.into_iter().take(if self.rules.keywords.is_none() { 5 } else { 4 }) {
            for (i, schema) in map.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate() {
                self.schema(schema, &format!("{path}/{keyword}/{i}"));
            }
        }
        for keyword in ["items", "additionalProperties"] {
            match map.get(keyword) {
                None | Some(Value::Bool(_)) => {}
                Some(Value::Array(_)) if self.rules.keywords.is_none() => {}
                Some(schema) => self.schema(schema, &format!("{path}/{keyword}")),
            }
        }
    }

    fn counts(&mut self) {
        let mut count = Count::default();
        count.add(self.root, 0);
        match self.dialect {
            Dialect::OpenAiStrict => {
                let Count { properties, depth, members, letters, .. } = count;
                if properties > 5000 || depth > 10 || members > 1000 || letters > 120_000 {
                    self.no("#", "too large");
                }
            }
            Dialect::AnthropicStrict => {
                if count.optional > 24 || count.unions > 16 {
                    self.no("#", "more than one request may have");
                }
                if self.leads_back(self.root, &mut Vec::new(), false) {
                    self.no("#", "recursion");
                }
            }
            Dialect::GeminiJsonSchema if self.leads_back(self.root, &mut Vec::new(), true) => {
                self.no("#", "recursion through what is required");
            }
            _ => {}
        }
    }

    /// Whether references lead in a circle; only through what is required, if so asked.
    fn leads_back(&self, schema: &'s Value, open: &mut Vec<&'s str>, required: bool) -> bool {
        let Value::Object(map) = schema else { return false };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            if open.contains(&reference) {
                return true;
            }
            open.push(reference);
            let target = self.root.pointer(reference.trim_start_matches('#'));
            let back = target.is_some_and(|target| self.leads_back(target, open, required));
            open.pop();
            return back;
        }
        let listed = |name: &str| {
            map.get("required").and_then(Value::as_array).is_some_and(|r| r.iter().any(|n| n == name))
        };
        let properties = map.get("properties").and_then(Value::as_object).into_iter().flatten();
        let followed = properties.filter(|(name, _)| !required || listed(name)).map(|(_, schema)| schema);
        let lists =
            ["anyOf", "allOf", "prefixItems"].iter().filter_map(|k| map.get(*k)?.as_array()).flatten();
        let single = ["items", "additionalProperties"].iter().filter_map(|k| map.get(*k));
        followed.chain(lists).chain(single).any(|below| self.leads_back(below, open, required))
    }
}

#[derive(Default)]
struct Count {
    properties: usize,
    optional: usize,
    unions: usize,
    depth: usize,
    members: usize,
    letters: usize,
}

impl Count {
    fn add(&mut self, schema: &Value, depth: usize) {
        let Value::Object(map) = schema else { return };
        let mut depth = depth;
        if let Some(Value::Object(properties)) = map.get("properties") {
            depth += 1;
            self.properties += properties.len();
            self.letters += properties.keys().map(String::len).sum::<usize>();
            let required = map.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            self.optional += properties.len() - required;
        }
        self.depth = self.depth.max(depth);
        if map.contains_key("anyOf") || map.get("type").is_some_and(Value::is_array) {
            self.unions += 1;
        }
        if let Some(Value::Array(members)) = map.get("enum") {
            self.members += members.len();
            self.letters += members.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
        }
        for keyword in ["properties", "$defs"] {
            for (_, schema) in map.get(keyword).and_then(Value::as_object).into_iter().flatten() {
                self.add(schema, depth);
            }
        }
        map.get("anyOf").and_then(Value::as_array).into_iter().flatten().for_each(|s| self.add(s, depth));
        map.get("items").into_iter().for_each(|s| self.add(s, depth));
    }
}
