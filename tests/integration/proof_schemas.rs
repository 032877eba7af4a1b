//! Every law of `agent::testing`, on schemas made by chance.

use agent::args::{ArgumentStream, CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use agent::testing::{verify_call, verify_plan};
use agent::{ToolArgs, Value, json};
use proptest::prelude::*;
use serde_json::Map;
use std::fmt::Write as _;

/// `PROPTEST_CASES` wins, for long runs.
fn cases(count: u32) -> ProptestConfig {
    let long = std::env::var_os("PROPTEST_CASES").is_some();
    let config = if long { ProptestConfig::default() } else { ProptestConfig::with_cases(count) };
    ProptestConfig { failure_persistence: None, ..config }
}

const NAMES: [&str; 6] = ["a", "b_c", "camelCase", "v", "a/b~c", ""];

fn leaf() -> impl Strategy<Value = Value> + Clone {
    let bounds = (-3i64..4, 0i64..4, any::<bool>(), any::<bool>());
    let integer = bounds.clone().prop_map(|(least, more, above, below)| {
        let mut schema = json!({"type": "integer"});
        schema[if above { "exclusiveMinimum" } else { "minimum" }] = json!(least);
        schema[if below { "exclusiveMaximum" } else { "maximum" }] = json!(least + more);
        schema
    });
    let number = bounds.prop_map(|(least, more, above, below)| {
        let mut schema = json!({"type": "number"});
        schema[if above { "exclusiveMinimum" } else { "minimum" }] = json!(least);
        schema[if below { "exclusiveMaximum" } else { "maximum" }] =
            json!(f64::from(u8::try_from(more).unwrap()) + 0.5);
        schema
    });
    let text = (0u8..3, 0u8..4)
        .prop_map(|(least, more)| json!({"type": "string", "minLength": least, "maxLength": least + more}));
    let pattern = prop::sample::select(vec!["^[a-z]{2,4}$", r"^\d+-\w*$", "^(on|off)$", "b", r"^\S+$", "^$"]);
    prop_oneof![
        integer,
        number,
        text,
        pattern.prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        prop::sample::select(vec![
            json!({"type": "integer"}),
            json!({"type": "integer", "multipleOf": 3}),
            json!({"type": "number"}),
            json!({"type": "number", "multipleOf": 0.25}),
            json!({"type": "boolean"}),
            json!({"type": "string"}),
            json!({"type": "null"}),
            json!({"type": ["string", "null"]}),
            json!({"type": ["integer", "boolean", "array"]}),
            json!({"type": ["object", "string"]}),
            json!({"type": "string", "format": "date", "description": "a day"}),
            json!({"enum": ["on", "off", "In Between", "in_between"]}),
            json!({"enum": ["low", "High Up", "other"], "default": "low"}),
            json!({"enum": [1, 2.5, "1", null, true]}),
            json!({"enum": [[1], {"a": 1}]}),
            json!({"const": "only"}),
            json!({"const": 3}),
            json!({"const": null}),
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "array"}),
            json!({"type": "object"}),
            json!({}),
            json!(true),
            json!({"$ref": "#/$defs/shared"}),
            json!({"$ref": "#/$defs/tree"}),
        ]),
    ]
}

fn schema() -> impl Strategy<Value = Value> + Clone {
    leaf().prop_recursive(3, 20, 4, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (inner.clone(), 0u8..3, 0u8..4, any::<bool>()).prop_map(|(items, least, more, unique)| {
                json!({"type": "array", "items": items, "minItems": least, "maxItems": least + more, "uniqueItems": unique})
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (some.clone(), inner.clone(), any::<bool>()).prop_map(|(prefix, rest, open)| {
                json!({"type": "array", "prefixItems": prefix, "items": if open { rest } else { json!(false) }})
            }),
            object(inner.clone()),
            object(inner.clone()),
            inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values, "maxProperties": 3})),
            (inner.clone(), prop::sample::select(vec!["^x", r"^\d+$", "[A-Z]"])).prop_map(|(values, pattern)| {
                json!({"type": "object", "patternProperties": {pattern: values}, "additionalProperties": false})
            }),
            some.clone().prop_map(|branches| json!({"anyOf": branches})),
            some.clone().prop_map(|branches| json!({"oneOf": branches})),
            inner.clone().prop_map(|schema| json!({"anyOf": [schema, {"type": "null"}]})),
            tagged(inner.clone()),
            (inner.clone(), leaf()).prop_map(|(a, b)| json!({"allOf": [a, b]})),
            some.prop_map(external),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Value> {
    let properties = prop::collection::vec((inner, any::<bool>()), 0..5);
    (properties, prop::sample::select(vec![None, Some(false), Some(true)])).prop_map(|(properties, rest)| {
        let named = || NAMES.iter().zip(&properties);
        let required: Vec<&str> = named().filter(|(_, p)| p.1).map(|(name, _)| *name).collect();
        let properties: Map<String, Value> =
            named().map(|(name, p)| ((*name).to_owned(), p.0.clone())).collect();
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if let Some(rest) = rest {
            schema["additionalProperties"] = json!(rest);
        }
        schema
    })
}

/// `kind` tells which variant it is.
fn tagged(inner: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Value> {
    prop::collection::vec(inner, 1..4).prop_map(|variants| {
        let names = ["circle", "Big Square", "big_line"];
        let variant = |(name, schema): (&str, &Value)| json!({"type": "object",
            "properties": {"kind": {"const": name}, "v": schema}, "required": ["kind", "v"], "additionalProperties": false});
        let variants: Vec<Value> = names.into_iter().zip(&variants).map(variant).collect();
        json!({"oneOf": variants})
    })
}

/// One key says which variant it is; others are words.
fn external(variants: Vec<Value>) -> Value {
    let names = ["walk", "Turn Left", "stop_it"];
    let variant = |(name, schema): (&str, Value)| json!({"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": false});
    let mut branches: Vec<Value> = names.into_iter().zip(variants).map(variant).collect();
    branches.push(json!({"enum": ["wait", "Go On"]}));
    json!({"anyOf": branches})
}

fn root() -> impl Strategy<Value = Value> {
    let root = prop_oneof![4 => object(schema()), 1 => tagged(schema())];
    (root, schema()).prop_map(|(mut root, shared)| {
        root["$defs"] = json!({
            "shared": without_references(shared),
            "tree": {"type": "object", "properties": {"n": {"type": "integer"},
                "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}, "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
                "required": ["n"], "additionalProperties": false}
        });
        root
    })
}

/// What is shared does not refer to itself without end.
fn without_references(schema: Value) -> Value {
    match schema {
        Value::Object(map) if map.contains_key("$ref") => json!({"type": "integer"}),
        Value::Object(map) => {
            map.into_iter().map(|(key, schema)| (key, without_references(schema))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_references).collect(),
        other => other,
    }
}

proptest! {
    #![proptest_config(cases(20))]

    /// The engine and the validator agree, reading and explaining agree, coercion ends, policies widen, reports are
    /// short and point to what was sent, corrections are accepted, streams agree.
    #[test]
    fn every_law_holds_for_any_schema(schema in root(), seed in any::<u64>()) {
        // Combinations that cannot be planned are refused, and that is told apart.
        if let Ok(plan) = Plan::compile("t", &schema, PlanOptions::default()) {
            let found = verify_plan::<Value>(&plan, 3, seed);
            let is_empty = |found: &String| found.contains("some value must fit the schema");
            prop_assert!(found.as_ref().err().is_none_or(is_empty), "{}\n{:?}", schema, found);
        }
    }

}

proptest! {
    #![proptest_config(cases(8))]

    /// Most schemas of this kind can be planned: the property above is not about nothing.
    #[test]
    fn most_schemas_can_be_planned(schemas in prop::collection::vec(root(), 20)) {
        let planned = schemas.iter().filter(|schema| Plan::compile("t", schema, PlanOptions::default()).is_ok()).count();
        prop_assert!(planned >= 10, "{} of {}", planned, schemas.len());
    }
}

/// Text that is nearly JSON.
fn document() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        prop::sample::select(vec![
            "0", "-0", "1.5", "-2e3", "1E+2", "01", "1.", "-", "1e999", "true", "null", "nul", "NaN", ""
        ])
        .prop_map(str::to_owned),
        "\"([a-zé😀 ]|\\\\[\"\\\\/bfnrtux]|\\\\u[0-9a-fD]{4}|\\\\ud83d\\\\ude00|\\\\ud8|[\\x00-\\x1f]){0,6}\"",
        any::<f64>().prop_map(|v| json!(v).to_string()),
    ];
    let value = scalar.prop_recursive(5, 40, 5, |inner| {
        let blank = prop::sample::select(vec!["", " ", "\n\t"]);
        let comma = prop::sample::select(vec![",", ",", ",", ",", ",", " , ", ",,", ""]);
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..5), comma.clone(), blank.clone())
                .prop_map(|(items, comma, blank)| format!("[{blank}{}{blank}]", items.join(comma))),
            (prop::collection::vec(("\"[a-b]{0,2}\"", inner), 0..5), comma, blank).prop_map(
                |(entries, comma, blank)| {
                    let entries: Vec<String> =
                        entries.into_iter().map(|(key, value)| format!("{key}{blank}:{value}")).collect();
                    format!("{{{}}}", entries.join(comma))
                }
            ),
        ]
    });
    (value, prop::sample::select(vec!["", "", "", " ", "x", "]", "{}"])).prop_map(|(value, end)| value + end)
}

proptest! {
    #![proptest_config(cases(300))]

    /// Whole, byte by byte and torn by chance: what `serde_json` says of the whole.
    #[test]
    fn streams_agree_with_serde_json(text in document(), cuts in prop::collection::vec(1usize..9, 1..20)) {
        let read = |sizes: &mut dyn Iterator<Item = usize>| {
            let mut stream = ArgumentStream::untyped();
            let (mut start, mut told, mut finished) = (0, String::new(), 0);
            while start < text.len() {
                let end = start + sizes.next().unwrap_or(1);
                let end = (end.min(text.len())..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap();
                let pushed = stream.push(&text[start..end], &mut |event| match event {
                    agent::args::ArgumentEvent::Appended { fragment, .. } => told.push_str(fragment),
                    agent::args::ArgumentEvent::Finished { .. } => finished += 1,
                    _ => {}
                });
                if pushed.is_err() {
                    break;
                }
                start = end;
            }
            (stream.finish().map(|_| ()), stream.snapshot(), told, finished)
        };
        let whole = read(&mut std::iter::repeat(text.len().max(1)));
        prop_assert_eq!(&read(&mut std::iter::repeat(1)), &whole);
        prop_assert_eq!(&read(&mut cuts.iter().copied().cycle()), &whole);
        let json = serde_json::from_str::<Value>(&text);
        prop_assert_eq!(whole.0.is_ok(), json.is_ok(), "{:?} {:?}", whole.0, json);
        if let Ok(json) = json {
            prop_assert_eq!(whole.1, Some(json));
        }
    }
}

/// What is hidden, at every depth.
#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Secretive {
    #[arg(secret)]
    card: u64,
    #[arg(secret, coerce = "lenient")]
    words: Vec<String>,
    #[arg(secret)]
    inner: Option<Inner>,
    #[arg(secret)]
    by_name: Option<std::collections::BTreeMap<String, bool>>,
    count: u8,
    #[arg(secret)]
    either: Option<Either>,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Inner {
    pin: u16,
    #[arg(pattern = "^[a-z]+$")]
    word: Option<String>,
}

#[derive(ToolArgs)]
#[serde(untagged)]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Either {
    Number(i32),
    Both { a: bool, b: bool },
}

/// Values that all say the secret, in one way or another.
fn secret() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("xyzzy")),
        Just(json!(" xyzzy 7747 ")),
        Just(json!(77_477_477)),
        Just(json!("77477477")),
        Just(json!(77_477_477.5)),
        Just(json!("[\"xyzzy\", 77477477]")),
        Just(json!("{\"pin\": 77477477}")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let keys = prop::sample::select(vec!["pin", "word", "a", "b", "other", "Pin"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..3).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(cases(300))]

    /// Not in the report, its JSON, its `Debug`, nor in the records of what was coerced; not from a stream either.
    #[test]
    fn secrets_are_told_nowhere(
        entries in prop::collection::vec((prop::sample::select(vec!["card", "words", "inner", "by_name", "either", "cards", "Inner"]), secret()), 0..6),
        count in prop::sample::select(vec![json!(1), json!("2"), json!("x"), json!(null)]),
        whole_as_text in any::<bool>(),
        unknown in prop::sample::select(vec![UnknownKeys::Deny, UnknownKeys::Strip, UnknownKeys::Keep]),
    ) {
        let mut arguments: Map<String, Value> = entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        arguments.insert("count".to_owned(), count);
        let text = Value::from(arguments).to_string();
        let text = if whole_as_text { json!(text).to_string() } else { text };
        for policy in [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()] {
            let options = PlanOptions::default().coercion(policy).unknown(unknown);
            let plan = Plan::for_type::<Secretive>("t", options).unwrap();
            let told = match plan.parse::<Secretive>(&text) {
                Ok(parsed) => format!("{:?} {}", parsed.coercions(), json!(parsed.coercions())),
                Err(refusal) => format!("{refusal}\n{}\n{refusal:?}\n{:?}", refusal.to_json(), refusal.issues()),
            };
            prop_assert!(!told.contains("xyzzy") && !told.contains("7747"), "{} {}\n{}", policy, text, told);
            let mut stream = ArgumentStream::new(&plan);
            let mut told = String::new();
            let _ = stream.push(&text, &mut |event| {
                let _ = write!(told, "{event:?}");
            });
            let _ = write!(told, "{stream:?} {:?}", stream.issues());
            prop_assert!(!told.contains("xyzzy") && !told.contains("7747"), "{} {}\n{}", policy, text, told);
        }
    }

    /// Any text is answered, and the engine agrees with itself.
    #[test]
    fn any_text_is_answered(schema in root(), text in prop_oneof![document(), "\\PC{0,40}"], inside in any::<bool>()) {
        let text = if inside { format!("{{\"a\":{text},\"v\":{text}}}") } else { text };
        for policy in [CoercionPolicy::exact(), CoercionPolicy::lenient()] {
            if let Ok(plan) = Plan::compile("t", &schema, PlanOptions::default().coercion(policy)) {
                let verified = verify_call::<Value>(&plan, &text);
                prop_assert!(verified.is_ok(), "{}\n{}", schema, verified.unwrap_err());
            }
        }
    }
}

/// Found by the fuzzer: `properties` says something about objects, and nothing about anything else.
#[test]
fn properties_without_a_type() {
    let schema =
        json!({"type": "object", "properties": {"t": {"properties": {"t": {"$ref": "#/properties/t"}}}}});
    let options = PlanOptions::default().coercion(CoercionPolicy::exact()).unknown(UnknownKeys::Keep);
    let plan = Plan::compile("t", &schema, options).unwrap();
    assert!(plan.parse::<Value>(r#"{"t": [1, [2.5, []]]}"#).is_ok());
    assert!(plan.parse::<Value>(r#"{"t": {"t": 1}}"#).is_ok());
    verify_plan::<Value>(&plan, 30, 0).unwrap();
}
