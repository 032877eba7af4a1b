//! Schemas and values by chance, the same in every run: whatever a plan takes, a dialect that can express it takes, its
//! rules hold, and an OpenAI reply with all its nulls is read as the arguments that it stands for.

use super::rules::violations;
use super::{claims_less, with_optional_ones};
use agent::args::{CoercionPolicy, Plan, PlanOptions};
use agent::schema::{Dialect, render, restore_nulls};
use serde_json::{Map, Value, json};

struct Chance(u64);

impl Chance {
    /// Below `n`.
    fn below(&mut self, n: u64) -> u64 {
        // The generator of Knuth's MMIX; its low bits are weak.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }

    fn scalar(&mut self) -> Value {
        match self.below(9) {
            0 => json!({"type": "integer"}),
            1 => json!({"type": "integer", "minimum": 2, "maximum": 9}),
            2 => json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}),
            3 => json!({"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-c]+$"}),
            4 => json!({"type": "string", "format": *self.of(&["date", "uri", "color"])}),
            5 => json!({"type": "boolean", "default": true}),
            6 => json!({"enum": ["red", "green", "blue"]}),
            7 => json!({"enum": [1, 2, "three"]}),
            _ => json!({"type": ["string", "null"], "description": "Some text."}),
        }
    }

    fn schema(&mut self, depth: u32) -> Value {
        if depth == 0 {
            return self.scalar();
        }
        match self.below(12) {
            0..=3 => self.scalar(),
            4 => json!({"type": "array", "items": self.schema(depth - 1), "minItems": 1, "maxItems": 3}),
            5 => {
                json!({"type": "array", "prefixItems": [self.scalar(), self.scalar()], "items": false, "minItems": 2})
            }
            6 => json!({"anyOf": [{"type": "integer"}, self.object(depth - 1), {"type": "null"}]}),
            7 => self.tagged(depth - 1),
            8 => json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            9 if self.one_in(4) => json!({"type": "object", "additionalProperties": self.scalar()}),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: u32) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for name in ["a", "title", "format", "b~/c", "$ref"] {
            if self.one_in(2) {
                properties.insert(name.into(), self.schema(depth));
                if self.one_in(2) {
                    required.push(name);
                }
            }
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    fn tagged(&mut self, depth: u32) -> Value {
        let branches: Vec<Value> = ["circle", "rect", "none"]
            .iter()
            .map(|tag| {
                let mut branch = self.object(depth);
                branch["properties"]["kind"] = json!({"const": tag});
                branch["required"].as_array_mut().unwrap().push("kind".into());
                branch
            })
            .collect();
        json!({"oneOf": branches})
    }

    fn root(&mut self) -> Value {
        match self.below(6) {
            0 => self.tagged(2),
            1 => {
                let mut root = self.object(2);
                root["properties"]["x"] = json!({"type": "integer"});
                root["properties"]["y"] = json!({"type": "string"});
                root["anyOf"] = json!([{"required": ["x"]}, {"required": ["y"]}]);
                root
            }
            _ => self.object(3),
        }
    }

    /// A value that a schema of the above takes.
    fn value(&mut self, schema: &Value) -> Value {
        for keyword in ["anyOf", "oneOf"] {
            let only_required = |b: &Value| b.get("type").is_none() && b.get("required").is_some();
            match schema.get(keyword).and_then(Value::as_array) {
                Some(branches) if branches.iter().all(only_required) => {
                    let mut out = self.entries(schema);
                    let name = self.of(branches)["required"][0].as_str().unwrap();
                    out.insert(name.into(), self.value(&schema["properties"][name]));
                    return out.into();
                }
                Some(branches) => {
                    let branch = self.of(branches);
                    return self.value(branch);
                }
                None => {}
            }
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(Value::Array(members)) = schema.get("enum") {
            return self.of(members).clone();
        }
        let name = match &schema["type"] {
            Value::Array(names) => self.of(names),
            name => name,
        };
        match name.as_str().unwrap() {
            "integer" => json!(2 + self.below(8)),
            "number" => json!(self.below(100) / 2 + 1),
            "boolean" => json!(self.one_in(2)),
            "null" => Value::Null,
            "string" => json!(self.of(&["a", "ab", "cab"])),
            "array" => match &schema["items"] {
                Value::Bool(_) => {
                    schema["prefixItems"].as_array().unwrap().iter().map(|item| self.value(item)).collect()
                }
                items if schema.get("uniqueItems").is_some() => json!([self.value(items)]),
                items => (0..=self.below(3)).map(|_| self.value(items)).collect(),
            },
            _ => self.entries(schema).into(),
        }
    }

    fn entries(&mut self, schema: &Value) -> Map<String, Value> {
        let mut out = Map::new();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let required = schema["required"].as_array().unwrap().iter().any(|n| n == name);
            if required || self.one_in(2) {
                out.insert(name.clone(), self.value(property));
            }
        }
        if let Some(map @ Value::Object(_)) = schema.get("additionalProperties") {
            out.insert("key".into(), self.value(map));
        }
        out
    }
}

#[test]
fn what_a_plan_takes_its_dialects_take() {
    let (mut strict, mut values) = (0, 0);
    for seed in 0..120 {
        let mut chance = Chance(seed);
        let schema = chance.root();
        let plan =
            Plan::compile("t", &schema, PlanOptions::default().coercion(CoercionPolicy::exact())).unwrap();
        let values_of_it: Vec<Value> = (0..4).map(|_| chance.value(&schema)).collect();
        for value in &values_of_it {
            assert!(plan.parse::<Value>(&value.to_string()).is_ok(), "{seed}: {schema} {value}");
        }
        for dialect in Dialect::ALL {
            let rendered = render(&plan, dialect);
            if dialect == Dialect::Canonical || !dialect.is_strict() && !rendered.is_expressible() {
                continue;
            }
            let broken = violations(rendered.dialect, &rendered.schema);
            assert!(broken.is_empty(), "{seed} {dialect}: {broken:#?}\n{schema:#}\n{:#}", rendered.schema);
            strict += usize::from(rendered.dialect == dialect && dialect.is_strict());
            if claims_less(&rendered) {
                continue;
            }
            let lowered = with_optional_ones(&rendered);
            let validator = jsonschema::validator_for(&lowered).unwrap();
            for value in &values_of_it {
                values += 1;
                let errors: Vec<String> = validator.iter_errors(value).map(|e| e.to_string()).collect();
                assert!(errors.is_empty(), "{seed} {dialect}: {value} {errors:?}\n{schema:#}\n{lowered:#}");
            }
        }
    }
    assert!(strict > 100 && values > 1_000, "{strict} strict schemas, {values} values");
}

#[test]
fn replies_to_openai_are_read_as_what_they_stand_for() {
    let mut nulls = 0;
    for seed in 0..120 {
        let mut chance = Chance(seed);
        let schema = chance.root();
        let plan =
            Plan::compile("t", &schema, PlanOptions::default().coercion(CoercionPolicy::exact())).unwrap();
        let rendered = render(&plan, Dialect::OpenAiStrict);
        if rendered.dialect != Dialect::OpenAiStrict {
            continue;
        }
        for _ in 0..4 {
            let value = chance.value(&schema);
            let reply = filled(&rendered.schema, &value)
                .unwrap_or_else(|| panic!("{seed}: {value}\n{:#}", rendered.schema));
            nulls += usize::from(reply != value);
            let text = reply.to_string();
            let parsed = plan.parse::<Value>(&restore_nulls(&plan, Dialect::OpenAiStrict, &text));
            let parsed = parsed.unwrap_or_else(|e| panic!("{seed}: {e}\n{text}\n{schema:#}"));
            // Where null is a value of an optional property, the reply could say nothing else.
            assert_eq!(without_nulls(&parsed.value), without_nulls(&value), "{seed}: {text}\n{schema:#}");
            assert!(parsed.coercions().is_empty());
        }
    }
    assert!(nulls > 50, "{nulls}");
}

/// The value with every property that the lowered schema wants, as a strict model would have to write it.
fn filled(schema: &Value, value: &Value) -> Option<Value> {
    if let Some(Value::Array(branches)) = schema.get("anyOf") {
        return branches.iter().find_map(|branch| filled(branch, value));
    }
    let out = match value {
        Value::Object(entries) => {
            let properties = schema.get("properties")?.as_object()?;
            let mut out = Map::new();
            for (name, property) in properties {
                let value = entries.get(name).unwrap_or(&Value::Null);
                out.insert(name.clone(), filled(property, value)?);
            }
            if !entries.keys().all(|name| properties.contains_key(name)) {
                return None;
            }
            Value::Object(out)
        }
        Value::Array(items) => {
            let of = schema.get("items")?;
            items.iter().map(|item| filled(of, item)).collect::<Option<Vec<Value>>>()?.into()
        }
        scalar => scalar.clone(),
    };
    jsonschema::is_valid(schema, &out).then_some(out)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, v)| !v.is_null());
            Value::Object(kept.map(|(k, v)| (k.clone(), without_nulls(v))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
