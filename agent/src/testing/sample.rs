//! Generates values that usually fit a schema. The caller has to validate them.

mod scalar;

use super::choices::Choices;
use super::pattern;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Maximum depth of nested schemas. No value is generated for a deeper schema.
const MAX_DEPTH: usize = 24;
/// Depth from which on values are as short as possible, so that recursive schemas end.
const SHORT_FROM: usize = 5;
/// Maximum number of schemas, including nested ones, that are followed to generate one value.
const MAX_STEPS: usize = 3_000;
/// Highest `maxItems`, `minProperties` or `maxLength` that generated values reach.
const MAX_MADE: u64 = 300;
/// The largest integer up to which floats represent every integer exactly.
const SAFE: i64 = 1 << 53;

/// Returns up to `count + 1` different values for `schema`. The same `seed` gives the same values. The first value has all optional
/// properties, and the first alternative of each choice. Each of the following values makes one choice differently, and the last values
/// make random choices.
pub(super) fn samples(schema: &Value, count: usize, seed: u64) -> Vec<Value> {
    let mut known = HashSet::new();
    let mut values = Vec::new();
    let mut add = |mut choices: Choices| {
        if let Some(value) = sample(schema, &mut choices)
            && known.insert(value.to_string())
        {
            values.push(value);
        }
        (choices, values.len())
    };
    let (first, _) = add(Choices::scripted(Vec::new()));
    let turns = first
        .ways()
        .iter()
        .enumerate()
        .flat_map(|(place, ways)| (1..(*ways).min(12)).map(move |way| (place, way)));
    for (place, way) in turns.take(count * 2 / 3) {
        let mut script = vec![0; place];
        script.push(way);
        add(Choices::scripted(script));
    }
    // The number of tries is limited, because small schemas have fewer values than requested.
    for turn in 0..u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(2) {
        if add(Choices::random(seed.wrapping_mul(1_000_003).wrapping_add(turn))).1 >= count {
            break;
        }
    }
    values.truncate(count);
    values
}

fn sample(schema: &Value, choices: &mut Choices) -> Option<Value> {
    let mut sampler = Sampler { root: schema, choices, steps: MAX_STEPS };
    sampler.value(schema, 0)
}

struct Sampler<'s> {
    root: &'s Value,
    choices: &'s mut Choices,
    steps: usize,
}

impl Sampler<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.steps = self.steps.checked_sub(1)?;
        if depth > MAX_DEPTH || *schema == Value::Bool(false) {
            return None;
        }
        let Value::Object(schema) = self.plain(schema, depth)? else { return Some(self.anything()) };
        if let Some(Value::Array(branches)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            return self.branch(&schema, branches, depth);
        }
        if let Some(value) = schema.get("const") {
            return Some(value.clone());
        }
        if let Some(Value::Array(members)) = schema.get("enum") {
            return members.get(self.choices.pick(members.len())).cloned();
        }
        if let Some(Value::Array(examples)) = schema.get("examples")
            && !examples.is_empty()
            && self.choices.pick(8) == 1
        {
            return examples.get(self.choices.pick(examples.len())).cloned();
        }
        match self.kind(&schema, depth) {
            "null" => Some(Value::Null),
            "boolean" => Some(Value::Bool(self.choices.pick(2) == 0)),
            "integer" => Some(self.integer(&schema)),
            "number" => Some(self.number(&schema)),
            "string" => Some(Value::String(self.text(&schema))),
            "array" => self.array(&schema, depth),
            "object" => self.object(&schema, depth),
            _ => Some(self.anything()),
        }
    }

    fn plain(&self, schema: &Value, depth: usize) -> Option<Value> {
        let Value::Object(map) = schema else { return Some(schema.clone()) };
        if depth > MAX_DEPTH {
            return None;
        }
        let mut map = map.clone();
        if let Some(Value::String(reference)) = map.remove("$ref") {
            let target = self.root.pointer(reference.strip_prefix('#')?)?;
            map = merged(map, self.plain(target, depth + 1)?)?;
        }
        if let Some(Value::Array(all)) = map.remove("allOf") {
            for part in &all {
                map = merged(map, self.plain(part, depth + 1)?)?;
            }
        }
        Some(Value::Object(map))
    }

    fn branch(&mut self, schema: &Map<String, Value>, branches: &[Value], depth: usize) -> Option<Value> {
        let mut base = schema.clone();
        if base.remove("anyOf").is_none() {
            base.remove("oneOf");
        }
        let first = if depth < SHORT_FROM { self.choices.pick(branches.len()) } else { 0 };
        let in_turn = branches.iter().cycle().skip(first).take(branches.len());
        let mut in_turn: Vec<&Value> = in_turn.collect();
        // In deep values, alternatives without references come first, so that recursion ends.
        if depth >= SHORT_FROM {
            in_turn.sort_by_key(|branch| branch.to_string().contains("$ref"));
        }
        in_turn.into_iter().find_map(|branch| {
            let branch = self.plain(branch, depth + 1)?;
            let whole = merged(base.clone(), branch)?;
            self.value(&Value::Object(whole), depth + 1)
        })
    }

    fn kind<'k>(&mut self, schema: &'k Map<String, Value>, depth: usize) -> &'k str {
        match schema.get("type") {
            Some(Value::String(kind)) => kind,
            Some(Value::Array(kinds)) => {
                let short = kinds.iter().position(|kind| kind == "null").filter(|_| depth >= SHORT_FROM);
                let kind = short.unwrap_or_else(|| self.choices.pick(kinds.len()));
                kinds.get(kind).and_then(Value::as_str).unwrap_or("any")
            }
            _ => {
                let says = |words: &[&str]| words.iter().any(|word| schema.contains_key(*word));
                if says(&[
                    "properties",
                    "additionalProperties",
                    "required",
                    "patternProperties",
                    "minProperties",
                ]) {
                    "object"
                } else if says(&["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]) {
                    "array"
                } else if says(&["pattern", "minLength", "maxLength"]) {
                    "string"
                } else if says(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
                {
                    "number"
                } else {
                    "any"
                }
            }
        }
    }

    fn anything(&mut self) -> Value {
        let values = [
            json!({"any": ["thing", 1, null]}),
            json!("text"),
            json!(null),
            json!(-1),
            json!(0.5),
            json!(true),
            json!([]),
            json!({}),
            json!([[{"deep": {"er": []}}]]),
        ];
        values.get(self.choices.pick(values.len())).cloned().unwrap_or_default()
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let (least, most) = (count("minItems").unwrap_or(0), count("maxItems").unwrap_or(u64::MAX));
        let empty = Vec::new();
        let prefix = match schema.get("prefixItems").or_else(|| schema.get("items")) {
            Some(Value::Array(prefix)) => prefix,
            _ => &empty,
        };
        let rest = match schema.get("items") {
            Some(Value::Array(_)) | None => schema.get("additionalItems").unwrap_or(&Value::Bool(true)),
            Some(items) => items,
        };
        let fixed = u64::try_from(prefix.len()).unwrap_or(u64::MAX);
        let ways = if depth >= SHORT_FROM {
            [least; 4]
        } else {
            [least.max(fixed).max(2), least, least.max(1), most]
        };
        let wanted = ways.get(self.choices.pick(ways.len())).copied().unwrap_or(least);
        let most = if *rest == Value::Bool(false) { most.min(fixed) } else { most };
        let wanted = wanted.min(most).max(least);
        let wanted = if wanted > MAX_MADE { least.max(4) } else { wanted };
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let mut items: Vec<Value> = Vec::new();
        let mut tries = wanted.saturating_mul(3).saturating_add(8);
        while u64::try_from(items.len()).unwrap_or(u64::MAX) < wanted && tries > 0 {
            tries -= 1;
            let made = self.value(prefix.get(items.len()).unwrap_or(rest), depth + 1);
            match made {
                Some(item) if unique && items.contains(&item) => {}
                Some(item) => items.push(item),
                None if u64::try_from(items.len()).unwrap_or(u64::MAX) >= least => break,
                None => return None,
            }
        }
        Some(Value::Array(items))
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let mut out = Map::new();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        for (name, property) in properties {
            let needed = required.contains(&name.as_str());
            if !needed && (depth >= SHORT_FROM || self.choices.pick(2) == 1) {
                continue;
            }
            match self.value(property, depth + 1) {
                Some(value) => {
                    out.insert(name.clone(), value);
                }
                None if needed => return None,
                None => {}
            }
        }
        let rest = schema.get("additionalProperties");
        for name in required {
            if !out.contains_key(name) {
                let value = self.value(rest.unwrap_or(&Value::Bool(true)), depth + 1)?;
                out.insert(name.to_owned(), value);
            }
        }
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = count("minProperties").unwrap_or(0).min(MAX_MADE);
        let more =
            if depth >= SHORT_FROM { 0 } else { [1, 0, 3].get(self.choices.pick(3)).copied().unwrap_or(0) };
        let has = u64::try_from(out.len()).unwrap_or(u64::MAX);
        let most = count("maxProperties").unwrap_or(u64::MAX);
        let wanted = (has + more).max(least).min(most);
        self.entries(schema, &mut out, wanted, depth);
        Some(Value::Object(out))
    }

    fn entries(
        &mut self,
        schema: &Map<String, Value>,
        out: &mut Map<String, Value>,
        wanted: u64,
        depth: usize,
    ) {
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let rest = schema.get("additionalProperties").filter(|rest| rest.is_object());
        let mut tries = wanted.saturating_mul(2).saturating_add(4);
        while u64::try_from(out.len()).unwrap_or(u64::MAX) < wanted && tries > 0 {
            tries -= 1;
            let of_pattern = patterns.and_then(|all| {
                let (pattern, schema) = all.iter().nth(self.choices.pick(all.len()))?;
                Some((pattern::matching(pattern, self.choices)?, schema))
            });
            let number = usize::try_from(tries).unwrap_or(0);
            let names = ["key", "Ünï-code", "", "a/b~c", "7"];
            let free =
                || (names.get(number).map_or_else(|| format!("key{number}"), |n| (*n).to_owned()), rest);
            let (name, schema) = match of_pattern {
                Some((name, schema)) => (name, Some(schema)),
                None => free(),
            };
            let Some(schema) = schema else { return };
            if let Some(value) = self.value(schema, depth + 1)
                && !out.contains_key(&name)
            {
                out.insert(name, value);
            }
        }
    }
}

/// Merges two schemas approximately, because the generated values are validated afterwards.
fn merged(mut base: Map<String, Value>, other: Value) -> Option<Map<String, Value>> {
    let other = match other {
        Value::Object(other) => other,
        Value::Bool(false) => return None,
        _ => return Some(base),
    };
    for (key, value) in other {
        let joined = match (base.remove(&key), value) {
            (Some(Value::Object(mut ours)), Value::Object(theirs)) if key == "properties" => {
                for (name, schema) in theirs {
                    let both = match ours.remove(&name) {
                        Some(own) => json!({"allOf": [own, schema]}),
                        None => schema,
                    };
                    ours.insert(name, both);
                }
                Value::Object(ours)
            }
            (Some(Value::Array(mut ours)), Value::Array(theirs)) if key == "required" => {
                ours.extend(theirs);
                Value::Array(ours)
            }
            (Some(ours), theirs) if key.starts_with("min") || key == "exclusiveMinimum" => {
                if ours.as_f64() > theirs.as_f64() { ours } else { theirs }
            }
            (Some(ours), theirs) if key.starts_with("max") || key == "exclusiveMaximum" => {
                if ours.as_f64() < theirs.as_f64() { ours } else { theirs }
            }
            (Some(ours), _) if matches!(key.as_str(), "enum" | "const") => ours,
            (_, theirs) => theirs,
        };
        base.insert(key, joined);
    }
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_values_than_requested() {
        let schema = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!([0, 1, 2, 3, 4, 9].map(|count| samples(&schema, count, 0).len()), [0, 1, 2, 3, 4, 9]);
    }

    #[test]
    fn steps_from_the_smallest_integer_fit() {
        let schema =
            json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MIN + 99, "multipleOf": 7});
        let values = samples(&schema, 20, 0);
        assert!(values.iter().filter_map(Value::as_i64).all(|value| value % 7 == 0), "{values:?}");
        assert!(!values.is_empty());
    }
}
