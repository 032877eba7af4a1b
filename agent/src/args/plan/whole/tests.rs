use super::{IssueLimit, Whole};
use serde_json::{Map, Value, json};

fn issues(schema: &Value, value: &Value) -> Vec<String> {
    let validator = Whole::new(schema, schema, &["anyOf"]).expect("a validator");
    let issues = validator.issues(value, IssueLimit::All);
    issues.into_iter().map(|issue| issue.problem).collect()
}

#[test]
fn each_path_to_a_value_is_counted() {
    const LEVELS: usize = 20;
    let rung = |next: &str| {
        let part = json!({"properties": {"c": {"$ref": next}}});
        json!({"anyOf": [part, part]})
    };
    let mut definitions: Map<String, Value> =
        (0..LEVELS).map(|level| (format!("A{level}"), rung(&format!("#/$defs/A{}", level + 1)))).collect();
    definitions.insert(format!("A{LEVELS}"), json!({"type": "integer"}));
    let nested = |end: Value| (0..LEVELS).fold(end, |value, _| json!({"c": value}));
    let too_long = ["takes too long to check: send something simpler"];
    let chain = json!({"$ref": "#/$defs/A0", "$defs": definitions});
    assert_eq!(issues(&chain, &nested(json!("x"))), too_long);
    // Where a schema contains itself, the paths to errors multiply, but a value that fits is tested once.
    let circle = json!({"type": "object", "anyOf": rung("#")["anyOf"]});
    let unknown = ["does not fit the schema, and the reason takes too long to find: send something simpler"];
    assert_eq!(issues(&circle, &nested(json!(1))), unknown);
    assert!(issues(&circle, &nested(json!({}))).is_empty());
}

#[test]
fn keys_are_counted_and_issues_are_limited() {
    let map: Map<String, Value> = (0..1_500).map(|key| (format!("k{key}"), json!(1))).collect();
    let map = Value::Object(map);
    let closed = json!({"properties": {"a": true}, "additionalProperties": false});
    assert_eq!(issues(&closed, &map).len(), 1_000);
    let names = json!({"propertyNames": {"allOf": vec![json!({"maxLength": 1}); 100]}});
    assert_eq!(issues(&names, &map), ["takes too long to check: send something simpler"]);
}
