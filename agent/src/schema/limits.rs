//! Limits of the providers on the size of a rendered schema.

use super::change::{Change, ChangeKind};
use super::dialect::Dialect;
use serde_json::{Map, Value};

/// The quantities of a schema that providers limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    properties: usize,
    pub(crate) optional: usize,
    /// The number of schemas with `anyOf` or a list of types.
    pub(crate) unions: usize,
    /// The nesting depth of objects, counted anew in each definition.
    depth: usize,
    members: usize,
    /// The number of characters in the names of properties and definitions, and in the values of each `enum`.
    characters: usize,
    /// The number of characters in the longest `enum` that has more than 250 values.
    largest_set: usize,
}

/// Anthropic's limits on all strict tools of one request: the number of tools, of optional parameters and of unions.
pub(crate) const ANTHROPIC_TOOLS: usize = 20;
pub(crate) const ANTHROPIC_OPTIONAL: usize = 24;
pub(crate) const ANTHROPIC_UNIONS: usize = 16;

const OPENAI_PROPERTIES: usize = 5_000;
const OPENAI_DEPTH: usize = 10;
const OPENAI_MEMBERS: usize = 1_000;
const OPENAI_MANY_MEMBERS: usize = 250;
const OPENAI_SET: usize = 15_000;
const OPENAI_CHARACTERS: usize = 120_000;

impl Size {
    pub(crate) fn of(schema: &Value) -> Size {
        let mut size = Size::default();
        let mut open = vec![(schema, 0)];
        while let Some((schema, depth)) = open.pop() {
            let Value::Object(map) = schema else { continue };
            size.count(map, depth, &mut open);
        }
        size
    }

    fn count<'s>(&mut self, map: &'s Map<String, Value>, depth: usize, open: &mut Vec<(&'s Value, usize)>) {
        let mut depth = depth;
        if let Some(Value::Object(properties)) = map.get("properties") {
            depth += 1;
            self.depth = self.depth.max(depth);
            self.properties += properties.len();
            let required = map.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            self.optional += properties.len().saturating_sub(required);
        }
        self.unions += usize::from(map.contains_key("anyOf") || map.get("type").is_some_and(Value::is_array));
        if let Some(Value::Array(members)) = map.get("enum") {
            let characters: usize = members.iter().map(characters).sum();
            self.members += members.len();
            self.characters += characters;
            if members.len() > OPENAI_MANY_MEMBERS {
                self.largest_set = self.largest_set.max(characters);
            }
        }
        for keyword in ["properties", "$defs"] {
            if let Some(Value::Object(named)) = map.get(keyword) {
                self.characters += named.keys().map(|name| name.chars().count()).sum::<usize>();
                let depth = if keyword == "$defs" { 0 } else { depth };
                open.extend(named.values().map(|schema| (schema, depth)));
            }
        }
        if let Some(Value::Array(branches)) = map.get("anyOf") {
            open.extend(branches.iter().map(|schema| (schema, depth)));
        }
        open.extend(map.get("items").map(|schema| (schema, depth)));
    }
}

fn characters(member: &Value) -> usize {
    member.as_str().map_or_else(|| member.to_string().len(), |text| text.chars().count())
}

pub(super) fn exceeded(dialect: Dialect, schema: &Value) -> Vec<Change> {
    let size = Size::of(schema);
    let limits: &[(&str, usize, usize, &str)] = match dialect {
        Dialect::OpenAiStrict => &[
            ("properties", size.properties, OPENAI_PROPERTIES, "properties"),
            ("properties", size.depth, OPENAI_DEPTH, "objects within each other"),
            ("enum", size.members, OPENAI_MEMBERS, "members of closed sets"),
            ("enum", size.largest_set, OPENAI_SET, "characters in a closed set of more than 250 members"),
            ("properties", size.characters, OPENAI_CHARACTERS, "characters in names and closed sets"),
        ],
        Dialect::AnthropicStrict => &[
            ("required", size.optional, ANTHROPIC_OPTIONAL, "optional properties"),
            ("anyOf", size.unions, ANTHROPIC_UNIONS, "schemas with alternatives or several types"),
        ],
        _ => &[],
    };
    let beyond = limits.iter().filter(|(_, count, limit, _)| count > limit);
    let told = beyond.map(|(keyword, count, limit, what)| Change {
        path: String::new(),
        keyword: (*keyword).into(),
        kind: ChangeKind::NotExpressible { reason: format!("{count} {what}, where {limit} are allowed") },
    });
    told.collect()
}
