//! Every type in every dialect: the text of the schemas, the rules of the providers, and that nothing is lost.

#[path = "dialect_budget.rs"]
mod budget;
#[path = "dialect_foreign.rs"]
mod foreign;
#[path = "dialect_random.rs"]
mod random;
#[path = "dialect_replies.rs"]
mod replies;
#[path = "dialect_rules.rs"]
mod rules;
#[path = "dialect_types.rs"]
mod types;

use agent::schema::{Change, Dialect, Rendered, render};
use rules::violations;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The text of one type's schemas: `UPDATE_GOLDEN=1 cargo test -p agent-tests dialects` writes it anew.
#[test]
fn golden_files() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/dialects");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut different = Vec::new();
    for case in types::all() {
        let file = folder.join(format!("{}.json", case.name));
        let text = golden(&case.plan);
        if update {
            std::fs::write(&file, &text).unwrap();
        }
        if std::fs::read_to_string(&file).unwrap_or_default() != text {
            different.push(case.name);
        }
    }
    assert!(different.is_empty(), "not as in the golden files: {different:?}; see UPDATE_GOLDEN");
}

fn golden(plan: &agent::args::Plan) -> String {
    let mut out = Map::new();
    for dialect in Dialect::ALL {
        let rendered = render(plan, dialect);
        let changes: Vec<String> = rendered.changes.iter().map(ToString::to_string).collect();
        // A strict dialect that cannot express it sends the plain schema, which stands above.
        let schema = if rendered.dialect == dialect { rendered.schema } else { json!(rendered.dialect) };
        out.insert(dialect.to_string(), json!({"schema": schema, "changes": changes}));
    }
    let mut text = serde_json::to_string_pretty(&out).unwrap();
    text.push('\n');
    text
}

#[test]
fn no_golden_file_is_left_over() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/dialects");
    let names: Vec<&str> = types::all().iter().map(|case| case.name).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(names.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn every_schema_keeps_the_rules_of_its_dialect() {
    for case in types::all() {
        for dialect in Dialect::ALL {
            let rendered = render(&case.plan, dialect);
            if !dialect.is_strict() && !rendered.is_expressible() {
                continue;
            }
            let broken = violations(rendered.dialect, &rendered.schema);
            assert!(broken.is_empty(), "{} in {dialect}: {broken:#?}\n{:#}", case.name, rendered.schema);
        }
    }
}

#[test]
fn the_checker_knows_the_rules() {
    let plan = |schema: Value| agent::args::Plan::compile("t", &schema, agent::args::PlanOptions::default());
    let open = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}, "b": {"oneOf": [{"type": "integer", "minimum": 5}, {"const": "x"}]}}});
    assert!(plan(open.clone()).is_ok());
    for dialect in Dialect::ALL {
        let count = violations(dialect, &open).len();
        assert_eq!(
            count > 0,
            !matches!(dialect, Dialect::Canonical | Dialect::Plain | Dialect::LlamaCpp),
            "{dialect}"
        );
    }
    for dialect in Dialect::ALL {
        let root = json!({"anyOf": [{"type": "object", "properties": {}, "required": []}]});
        assert_eq!(violations(dialect, &root).is_empty(), dialect == Dialect::Canonical, "{dialect}");
    }
}

#[test]
fn what_the_plan_takes_every_dialect_can_say() {
    for case in types::all() {
        for arguments in &case.accepted {
            let parsed = case.plan.parse::<Value>(&arguments.to_string());
            let value = parsed.unwrap_or_else(|e| panic!("{}: {e}", case.name)).value;
            for dialect in Dialect::ALL {
                let rendered = render(&case.plan, dialect);
                if claims_less(&rendered) {
                    continue;
                }
                let schema = with_optional_ones(&rendered);
                let validator = jsonschema::validator_for(&schema).unwrap();
                let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
                assert!(errors.is_empty(), "{} in {dialect}: {value} {errors:?}\n{schema:#}", case.name);
            }
        }
    }
}

fn claims_less(rendered: &Rendered) -> bool {
    let less = |change: &Change| change.is_not_expressible() || kind_of(change) == "closed";
    rendered.dialect != Dialect::Plain && rendered.changes.iter().any(less)
}

fn kind_of(change: &Change) -> Value {
    serde_json::to_value(change).unwrap()["change"].take()
}

/// As JSON Schema knows it: what the changes call optional is no longer required, `nullable` is a type.
fn with_optional_ones(rendered: &Rendered) -> Value {
    let mut schema = rendered.schema.clone();
    for change in &rendered.changes {
        if kind_of(change) != "made_nullable" && kind_of(change) != "made_required" {
            continue;
        }
        let (object, name) = change.path.rsplit_once("/properties/").unwrap();
        let name = name.replace("~1", "/").replace("~0", "~");
        let required = schema.pointer_mut(object).unwrap()["required"].as_array_mut().unwrap();
        let before = required.len();
        required.retain(|listed| *listed != name.as_str());
        assert_eq!(required.len() + 1, before, "{change}");
    }
    nullable_as_type(&mut schema);
    schema
}

fn nullable_as_type(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(nullable_as_type);
            if map.get("nullable") == Some(&json!(true)) {
                let mut inner = map.clone();
                inner.remove("nullable");
                *schema = json!({"anyOf": [inner, {"type": "null"}]});
            }
        }
        Value::Array(list) => list.iter_mut().for_each(nullable_as_type),
        _ => {}
    }
}

#[test]
fn the_same_plan_gives_the_same_text() {
    for (a, b) in types::all().iter().zip(types::all()) {
        for dialect in Dialect::ALL {
            let (a, b) = (render(&a.plan, dialect), render(&b.plan, dialect));
            assert_eq!(a.schema.to_string(), b.schema.to_string());
            assert_eq!(a.changes, b.changes);
        }
    }
}

#[test]
fn names_and_their_order_are_kept() {
    let case = types::all().into_iter().find(|case| case.name == "keywords").unwrap();
    let names: Vec<&str> = case.plan.parameter_names().collect();
    for dialect in Dialect::ALL {
        let rendered = render(&case.plan, dialect);
        let properties = rendered.schema["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), names, "{dialect}");
    }
}
