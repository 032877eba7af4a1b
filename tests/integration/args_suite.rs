//! The official JSON-Schema-Test-Suite: with coercion off and unknown keys kept, a plan accepts what JSON Schema accepts.
//!
//! For developers who have the suite: the folder in `JSON_SCHEMA_TEST_SUITE`, with `draft2020-12` and `draft7` in it
//! (the source package of Python's `jsonschema` has it, below `json/tests`). Skipped, and said so, without it. `JSON_SCHEMA_TEST_SUITE_SHOW` lists the
//! refused schemas too.

#![expect(clippy::print_stdout, reason = "it prints what it checked")]

use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    description: String,
    data: Box<RawValue>,
    valid: bool,
}

#[derive(Default)]
struct Tally {
    agree: usize,
    refused: usize,
    disagree: usize,
}

/// Formats and contents describe and are checked by nobody.
const ASSERTIONS: [&str; 2] = ["optional/format-assertion.json", "optional/content.json"];

/// What the documented rules decide otherwise: an integer fits in 64 bits, a float of 2^53 and more is none (it may
/// have been rounded), and a metaschema in `$schema` is not read.
const DECIDED: [&str; 4] = [
    "a bignum is an integer",
    "a negative bignum is an integer",
    "valid if optional overflow handling is implemented",
    "no validation: invalid number, but it still validates",
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for folder in [folder.to_path_buf(), folder.join("optional")] {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        out.extend(entries.map(|e| e.expect("an entry").path()).filter(|p| {
            p.extension().is_some_and(|e| e == "json") && !ASSERTIONS.iter().any(|name| p.ends_with(name))
        }));
    }
    out.sort();
    out
}

/// Every local reference below the property that the schema is put in.
fn moved(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => map
            .iter()
            .map(|(keyword, value)| match value.as_str().and_then(|r| r.strip_prefix('#')) {
                Some(rest)
                    if ["$ref", "$dynamicRef"].contains(&&**keyword)
                        && (rest.is_empty() || rest.starts_with('/')) =>
                {
                    (keyword.clone(), json!(format!("#/properties/v{rest}")))
                }
                _ if keyword == "enum" || keyword == "const" => (keyword.clone(), value.clone()),
                _ => (keyword.clone(), moved(value)),
            })
            .collect(),
        Value::Array(list) => list.iter().map(moved).collect(),
        value => value.clone(),
    }
}

/// Does the schema name places, here or below?
fn names_places(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(keyword, value)| {
            ["$id", "$anchor", "$dynamicAnchor"].contains(&keyword.as_str()) || names_places(value)
        }),
        Value::Array(list) => list.iter().any(names_places),
        _ => false,
    }
}

/// The schema as that of one property. A schema that names places stays a document of its own.
fn wrapped(schema: &Value, dialect: &str) -> Value {
    let mut inner = schema.clone();
    if !names_places(schema) {
        inner = moved(&inner);
    } else if let Value::Object(map) = &mut inner
        && !map.contains_key("$ref")
    {
        map.entry("$id").or_insert_with(|| json!("https://example.com/inner"));
    }
    json!({"$schema": dialect, "type": "object", "properties": {"v": inner}, "required": ["v"]})
}

fn plan(schema: &Value) -> Result<Plan, String> {
    let options = PlanOptions::default().coercion(CoercionPolicy::exact()).unknown(UnknownKeys::Keep);
    Plan::compile("t", schema, options).map_err(|e| e.to_string())
}

#[test]
#[ignore = "suite: needs JSON_SCHEMA_TEST_SUITE"]
fn agrees_with_the_official_suite() {
    let folder =
        std::env::var_os("JSON_SCHEMA_TEST_SUITE").expect("JSON_SCHEMA_TEST_SUITE names the suite's folder");
    let folder = PathBuf::from(folder);
    let show = std::env::var_os("JSON_SCHEMA_TEST_SUITE_SHOW").is_some();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut wrong = Vec::new();
    let drafts = [
        ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
        ("draft7", "http://json-schema.org/draft-07/schema#"),
    ];
    for (draft, dialect) in drafts {
        for file in files(&folder.join(draft)) {
            let text = std::fs::read_to_string(&file).expect("a file");
            let groups: Vec<Group> = serde_json::from_str(&text).expect("a file of the suite");
            let place = file.strip_prefix(&folder).expect("below the folder").display().to_string();
            for group in groups {
                let mut schema = group.schema.clone();
                if let Value::Object(map) = &mut schema {
                    map.entry("$schema").or_insert_with(|| dialect.into());
                }
                let (mut bare, inner) = (plan(&schema), plan(&wrapped(&group.schema, dialect)));
                // A root that is not about objects is refused: arguments are one.
                if bare.as_ref().is_err_and(|e| e.contains("must describe an object")) {
                    bare.clone_from(&inner);
                }
                let tally = tallies.entry(place.clone()).or_default();
                for case in group.tests {
                    let data = case.data.get();
                    let inside = format!("{{\"v\":{data}}}");
                    let mut runs = vec![(&inner, inside.as_str())];
                    if data.starts_with('{') {
                        runs.push((&bare, data));
                    }
                    for (plan, text) in runs {
                        let about = format!("{place}: {}: {}: {text}", group.description, case.description);
                        match plan {
                            Err(why) => {
                                // What only the network has.
                                assert!(why.contains("leads out of the document"), "{about}: {why}");
                                tally.refused += 1;
                                if show {
                                    println!("refused {about}\n    {why}");
                                }
                            }
                            Ok(plan) => match plan.parse::<Value>(text) {
                                got if got.is_ok() == case.valid => tally.agree += 1,
                                _ if DECIDED.contains(&&*case.description) => {}
                                got => {
                                    tally.disagree += 1;
                                    wrong.push(format!(
                                        "{about}\n    valid {}, got {}\n    {}",
                                        case.valid,
                                        got.map_or_else(|e| e.to_string(), |p| p.value.to_string()),
                                        group.schema
                                    ));
                                }
                            },
                        }
                    }
                }
            }
        }
    }
    let mut total = Tally::default();
    for (place, t) in &tallies {
        println!("{place:60} agree {:4} refused {:4} disagree {:4}", t.agree, t.refused, t.disagree);
        total.agree += t.agree;
        total.refused += t.refused;
        total.disagree += t.disagree;
    }
    println!(
        "{:60} agree {:4} refused {:4} disagree {:4}",
        "all", total.agree, total.refused, total.disagree
    );
    assert!(total.agree > 1000, "the folder holds no suite");
    assert!(wrong.is_empty(), "{} disagreements:\n{}", wrong.len(), wrong.join("\n"));
}
