//! Schemas that came from elsewhere, in every dialect.

use super::rules::violations;
use agent::args::{Plan, PlanOptions, UnknownKeys};
use agent::schema::{Change, Dialect, render};
use serde_json::{Value, json};

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn plan(schema: Value) -> Plan {
    Plan::compile("t", &schema, PlanOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn told(changes: &[Change]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn sent_as_it_came() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "title": "T", "x-mine": 1, "type": "object",
        "properties": {"a": {"type": ["string", "null"], "title": "A"}, "b": {"oneOf": [{"const": 1}, {"const": 2}]}},
        "definitions": {"unused": {"type": "string"}},
    });
    let plan = plan(schema.clone());
    for dialect in [Dialect::Canonical, Dialect::Plain] {
        let rendered = render(&plan, dialect);
        assert_eq!(rendered.schema.to_string(), schema.to_string());
        assert_eq!(rendered.changes, []);
    }
}

#[test]
fn roots_become_one_plain_object() {
    let either = json!({
        "type": "object", "description": "Finds.",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "deep": {"type": "boolean"}},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    });
    let rendered = render(&plan(either), Dialect::Plain);
    assert_eq!(
        rendered.schema,
        json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "deep": {"type": "boolean"}},
            "required": [], "additionalProperties": false,
            "description": "Finds.\nGive one of these sets of parameters.\n- id; optional name\n- name; optional id",
        })
    );
    assert_eq!(told(&rendered.changes), ["(schema): `anyOf` is said by other keywords"]);

    let untyped = json!({"properties": {"a": {"type": "string", "title": "kept"}}, "x": 1});
    let rendered = render(&plan(untyped), Dialect::Plain);
    assert_eq!(
        rendered.schema,
        json!({"type": "object", "properties": {"a": {"type": "string", "title": "kept"}}, "x": 1})
    );
    assert_eq!(told(&rendered.changes), ["(schema): `type` is said by other keywords"]);

    let referred = json!({"$ref": "#/definitions/a", "definitions": {"a": {"type": "object", "properties": {"b": {"type": "integer"}}}}});
    let rendered = render(&plan(referred), Dialect::Plain);
    assert!(violations(Dialect::Plain, &rendered.schema).is_empty());
    assert_eq!(rendered.schema["properties"], json!({"b": {"type": "integer"}}));
}

#[test]
fn a_parameter_of_several_variants_names_each_of_them_once() {
    let variant = |kind: &str, size: Value| json!({"type": "object", "properties": {"kind": {"const": kind}, "size": size}, "required": ["kind", "size"]});
    let number = |text: &str| json!({"type": "integer", "description": text});
    let variants = json!({"oneOf": [
        variant("a", number("Wide.")), variant("b", number("Wide.")), variant("c", number("Narrow.")), variant("d", json!({"type": "string"})),
    ]});
    let rendered = render(&plan(variants), Dialect::Plain);
    assert_eq!(
        rendered.schema["properties"]["size"]["anyOf"][0]["description"],
        "For kind = \"a\" or kind = \"b\": Wide.\nFor kind = \"c\": Narrow."
    );
}

/// As servers in the wild have them.
fn schemas() -> Vec<Value> {
    vec![
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": {"path": {"type": "string"}, "head": {"type": "number"}}, "required": ["path"]}),
        json!({"type": "object", "properties": {"env": {"type": "object", "additionalProperties": {"type": "string"}}}}),
        json!({"type": "object", "properties": {"a": {"allOf": [{"type": "string", "minLength": 1}, {"maxLength": 5, "pattern": "^a"}]}}}),
        json!({"type": "object", "properties": {"a": {"type": ["integer", "string", "null"]}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {}}}),
        json!({"type": "object", "properties": {"a": {"enum": ["x", 1, null, true]}, "b": {"const": 5}, "c": {"enum": [{"a": 1}, [1]]}}}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/n"}}, "required": ["a"],
            "definitions": {"n": {"type": "object", "properties": {"next": {"$ref": "#/definitions/n"}, "all": {"type": "array", "items": {"$ref": "#/definitions/n"}}}, "required": ["next"]}}}),
        json!({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "integer"}}, "required": ["k", "x"]},
            {"type": "object", "properties": {"k": {"const": "b"}, "x": {"type": "string"}}, "required": ["k"]}]}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 2}}}),
        json!({"type": "object", "properties": {"a": false, "b": true}, "additionalProperties": true}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "null"}]}}}}),
        json!({"type": "object", "minProperties": 1, "maxProperties": 2, "properties": {"a": {"type": "null"}, "b": {"type": "boolean", "default": false}}}),
        json!({"type": "object", "properties": {"json": {"$ref": "#/$defs/j"}}, "$defs": {"j": {"anyOf": [{"type": "number"}, {"type": "array", "items": {"$ref": "#/$defs/j"}}]}}}),
    ]
}

#[test]
fn every_dialect_keeps_its_rules() {
    let mut expressible = 0;
    for schema in schemas() {
        for unknown in [UnknownKeys::Deny, UnknownKeys::Keep] {
            let plan = Plan::compile("t", &schema, PlanOptions::default().unknown(unknown)).unwrap();
            for dialect in Dialect::ALL {
                let rendered = render(&plan, dialect);
                if dialect == Dialect::Canonical {
                    assert_eq!(rendered.schema, schema);
                    continue;
                }
                if !dialect.is_strict() && !rendered.is_expressible() {
                    continue;
                }
                expressible += usize::from(rendered.dialect == dialect);
                let broken = violations(rendered.dialect, &rendered.schema);
                assert!(broken.is_empty(), "{dialect}: {broken:#?}\n{schema:#}\n{:#}", rendered.schema);
            }
        }
    }
    assert!(expressible > 120, "{expressible}");
}

/// Schemas of recorded tools, for developers who have them.
#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn recorded_tools_keep_the_rules_too() {
    let text = std::fs::read_to_string(crate::recorded::vectors("arguments/bfcl/calls.jsonl")).unwrap();
    let mut checked = std::collections::HashSet::new();
    for line in text.lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        if !checked.insert(call["schema"].to_string()) {
            continue;
        }
        let Ok(plan) = Plan::compile("t", &call["schema"], PlanOptions::default()) else { continue };
        for dialect in Dialect::ALL {
            let rendered = render(&plan, dialect);
            if dialect == Dialect::Canonical || !dialect.is_strict() && !rendered.is_expressible() {
                continue;
            }
            let broken = violations(rendered.dialect, &rendered.schema);
            assert!(broken.is_empty(), "{dialect}: {broken:#?}\n{}\n{}", call["schema"], rendered.schema);
        }
    }
    println!("{} schemas in {} dialects", checked.len(), Dialect::ALL.len());
    assert!(checked.len() > 100);
}

#[test]
fn what_cannot_be_expressed_is_named() {
    let reasons = |schema: Value, dialect| -> Vec<String> {
        render(&plan(schema), dialect).not_expressible().map(ToString::to_string).collect()
    };
    let map = json!({"type": "object", "properties": {"env": {"type": "object", "additionalProperties": {"type": "string"}}}});
    for dialect in [Dialect::OpenAiStrict, Dialect::AnthropicStrict, Dialect::GeminiLegacy] {
        let told = reasons(map.clone(), dialect);
        assert!(told.len() == 1 && told[0].contains("a map"), "{dialect}: {told:?}");
    }
    let any = json!({"type": "object", "properties": {"a": {}}});
    assert_eq!(
        reasons(any.clone(), Dialect::OpenAiStrict),
        ["/properties/a: `type` cannot be expressed: a value of any type"]
    );
    assert!(reasons(any, Dialect::GeminiJsonSchema).is_empty());
    let circle = schemas().pop().unwrap();
    assert_eq!(reasons(circle.clone(), Dialect::OpenAiStrict), [""; 0]);
    assert_eq!(reasons(circle.clone(), Dialect::GeminiJsonSchema).len(), 1);
    assert!(reasons(circle, Dialect::AnthropicStrict)[0].contains("contains itself"));
}

#[test]
fn what_is_checked_as_a_whole_is_told() {
    let told = |schema: Value, dialect| told(&render(&plan(schema), dialect).changes);
    let checked = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer", "not": {"const": 5}}, "b": {"type": "string"}, "c": {"type": "array", "items": {"type": "integer"}, "contains": {"const": 1}},
        },
        "required": ["a", "b", "c"], "additionalProperties": false,
        "dependentRequired": {"a": ["b"]}, "if": {"required": ["a"]}, "then": {"required": ["c"]},
    });
    let rendered = render(&plan(checked.clone()), Dialect::OpenAiStrict);
    assert_eq!(rendered.schema["description"], "With `a`, give `b`.");
    assert_eq!(rendered.schema["properties"]["a"]["description"], "Not 5.");
    let all = told(checked.clone(), Dialect::OpenAiStrict);
    for place in [
        "/properties/a: `not` is said in the description",
        "/properties/c: `contains` is dropped",
        "(schema): `if` is dropped",
        "(schema): `dependentRequired` is said in the description",
    ] {
        assert!(all.iter().any(|line| line == place), "{place}: {all:#?}");
    }
    assert_eq!(render(&plan(checked.clone()), Dialect::Plain).schema, checked);
    let root = json!({"type": "object", "properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}});
    assert_eq!(told(root.clone(), Dialect::Plain), ["(schema): `not` is dropped"]);
    assert_eq!(render(&plan(root), Dialect::LlamaCpp).schema["description"], "Do not give all of `a`, `b`.");
    // The plan does not model `unevaluatedItems` beside `contains`, so the validator of the whole schema reports each restriction.
    let list = json!({
        "type": "array", "prefixItems": [{"type": "integer"}], "contains": {"const": 1}, "unevaluatedItems": false,
    });
    let keys = json!({"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}});
    let mut told = told(
        json!({"anyOf": [
            {"type": "object", "properties": keys, "required": ["c"], "dependentRequired": {"a": ["b"]}},
            {"type": "object", "properties": {"list": list}, "required": ["list"]},
        ]}),
        Dialect::Plain,
    );
    told.retain(|line| line.contains("dependentRequired"));
    assert_eq!(told, ["/anyOf/0: `dependentRequired` of the given schema is not said"]);
}

#[test]
fn a_grammar_gets_patterns_that_are_anchored_as_a_whole() {
    for (pattern, is_written) in
        [("^a|b$", false), ("^(a|b)$", true), ("^[a|b]$", true), (r"^a\|b$", true), ("^(a)|[(]b$", false)]
    {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        let rendered = render(&plan(schema), Dialect::LlamaCpp);
        assert_eq!(rendered.schema["properties"]["a"].get("pattern").is_some(), is_written, "{pattern}");
        assert_eq!(
            rendered.changes.iter().all(|change| change.keyword != "pattern"),
            is_written,
            "{pattern}"
        );
    }
}

#[test]
fn a_strict_dialect_falls_back_to_the_plain_schema() {
    let map = json!({"type": "object", "properties": {"env": {"type": "object", "additionalProperties": {"type": "string"}}}});
    for dialect in [Dialect::OpenAiStrict, Dialect::AnthropicStrict] {
        let rendered = render(&plan(map.clone()), dialect);
        assert_eq!((rendered.dialect, &rendered.schema), (Dialect::Plain, &map));
        assert!(rendered.changes.iter().all(Change::is_not_expressible));
    }
}

#[test]
fn openai_sizes() {
    let wide = |count: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
        json!({"type": "object", "properties": properties})
    };
    let expressible = |schema: Value| render(&plan(schema), Dialect::OpenAiStrict).is_expressible();
    assert!(expressible(wide(5000)));
    assert!(!expressible(wide(5001)));
    let deep = |levels: usize| {
        (1..levels).fold(
            json!({"type": "object", "properties": {"x": {"type": "integer"}}}),
            |inner, _| json!({"type": "object", "properties": {"x": inner}}),
        )
    };
    assert!(expressible(deep(10)));
    assert!(!expressible(deep(11)));
    let words = |count: usize, length: usize| {
        let members: Vec<String> = (0..count).map(|i| format!("{i:0length$}")).collect();
        json!({"type": "object", "properties": {"x": {"enum": members}}})
    };
    assert!(expressible(words(1000, 15)));
    assert!(!expressible(words(1001, 4)));
    assert!(!expressible(words(251, 60)));
    assert!(expressible(words(250, 61)));
    assert!(!expressible(words(240, 501)));
}

#[test]
fn key_patterns_leave_an_object_open_for_other_keys() {
    let schema = json!({
        "type": "object", "properties": {"id": {"type": "boolean"}}, "patternProperties": {"^x-": {"type": "integer"}},
    });
    let mut mixed = schema.clone();
    mixed["additionalProperties"] = json!({"type": "string"});
    let kept = Plan::compile("t", &schema, PlanOptions::default().unknown(UnknownKeys::Keep)).unwrap();
    for dialect in [Dialect::GeminiJsonSchema, Dialect::LlamaCpp] {
        let rendered = render(&kept, dialect);
        assert_eq!(rendered.schema.get("additionalProperties"), None);
        assert_eq!(told(&rendered.changes), ["(schema): `patternProperties` is said in the description"]);
        let words = "Values of keys that match `^x-`: integer.";
        assert_eq!(rendered.schema["description"], words);
        let rendered = render(&plan(mixed.clone()), dialect);
        let either = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
        assert_eq!(rendered.schema["additionalProperties"], either);
        assert_eq!(rendered.schema["description"], words);
    }
}

#[test]
fn maps_within_maps_are_rendered_once() {
    let maps = (0..20).fold(
        json!({"type": "integer"}),
        |inner, _| json!({"type": "object", "additionalProperties": inner}),
    );
    let plan = plan(json!({"type": "object", "properties": {"a": maps}}));
    for dialect in [Dialect::GeminiJsonSchema, Dialect::LlamaCpp] {
        assert!(render(&plan, dialect).is_expressible(), "{dialect}");
    }
}

#[test]
fn alternatives_that_accept_nothing_are_not_expressible() {
    let nothing =
        json!({"type": "object", "properties": {"a": {"anyOf": [false, false]}}, "required": ["a"]});
    let nulls = json!({"oneOf": [{"type": "null"}, {"type": "null", "title": "N"}]});
    let nulls = json!({"type": "object", "properties": {"a": nulls}, "required": ["a"]});
    for dialect in [Dialect::GeminiJsonSchema, Dialect::GeminiLegacy, Dialect::LlamaCpp] {
        let rendered = render(&plan(nothing.clone()), dialect);
        let reasons: Vec<String> = rendered.not_expressible().map(ToString::to_string).collect();
        assert_eq!(reasons, ["/properties/a: `not` cannot be expressed: no value is allowed here"]);
        assert_eq!(rendered.schema["properties"]["a"].get("anyOf"), None);
        let rendered = render(&plan(nulls.clone()), dialect);
        assert_ne!(rendered.schema["properties"]["a"].get("anyOf"), Some(&json!([])), "{dialect}");
    }
}

#[test]
fn large_integers_that_are_left_out_are_told() {
    let large = json!({"type": "integer", "maximum": (1_u64 << 53) + 1, "multipleOf": 1_u64 << 54});
    let limit = json!({"type": "integer", "maximum": u64::MAX});
    let schema = json!({"type": "object", "properties": {"a": large, "b": limit}});
    assert_eq!(
        told(&render(&plan(schema), Dialect::OpenAiStrict).changes[..2]),
        ["/properties/a: `maximum` is dropped", "/properties/a: `multipleOf` is dropped"]
    );
}

#[test]
fn hostile_schemas_are_bounded() {
    let mut definitions = serde_json::Map::new();
    for i in 0..60 {
        let next = format!("#/$defs/d{}", i + 1);
        definitions.insert(
            format!("d{i}"),
            json!({"type": "object", "properties": {"a": {"$ref": next}, "b": {"$ref": next}}}),
        );
    }
    definitions.insert("d60".into(), json!({"type": "string"}));
    let plan =
        plan(json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}));
    let before = std::time::Instant::now();
    for dialect in Dialect::ALL {
        let rendered = render(&plan, dialect);
        assert_eq!(
            rendered.is_expressible(),
            matches!(dialect, Dialect::Canonical | Dialect::Plain),
            "{dialect}"
        );
    }
    assert!(before.elapsed() < std::time::Duration::from_secs(20));
}
