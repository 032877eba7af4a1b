use super::take_out;
use serde_json::json;

#[test]
fn alternatives_of_alternatives_lose_the_parameter_too() {
    let mut schema = json!({
        "properties": {"a": {}, "b": {}},
        "anyOf": [{"oneOf": [{"properties": {"a": {}}, "required": ["a", "b"]}, true]}],
    });
    assert_eq!(take_out(&mut schema, "a"), Ok(()));
    let expected =
        json!({"properties": {"b": {}}, "anyOf": [{"oneOf": [{"properties": {}, "required": ["b"]}, true]}]});
    assert_eq!(schema, expected);
    let mut conditional =
        json!({"properties": {"a": {}}, "anyOf": [{"oneOf": [{"not": {"required": ["a"]}}]}]});
    assert_eq!(take_out(&mut conditional, "a"), Err("`a` cannot be taken out: `not` speaks of it".into()));
}

#[test]
fn a_schema_that_refers_to_its_root_keeps_its_parameters() {
    let kids = json!({"properties": {"kids": {"items": {"$ref": "#"}}}});
    for mut schema in [
        json!({"properties": {"a": {}}, "definitions": {"kids": kids}}),
        json!({"properties": {"a": {}}, "anyOf": [kids]}),
    ] {
        let expected = "`a` cannot be taken out: the parameters contain themselves";
        assert_eq!(take_out(&mut schema, "a"), Err(expected.into()));
    }
}
