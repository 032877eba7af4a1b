//! Changes to schemars' output, where it loses what the derive knows.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The schema of a type whose fields are flattened into another: serde reads them from a buffer, and what cannot pass through the
/// buffer is refused when the tool is registered.
#[derive(Debug)]
pub struct Flattened<T: ?Sized>(PhantomData<T>);

impl<T: JsonSchema + ?Sized> JsonSchema for Flattened<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("Flattened<{}>", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        buffered(T::json_schema(generator))
    }

    fn _schemars_private_non_optional_json_schema(generator: &mut SchemaGenerator) -> Schema {
        buffered(T::_schemars_private_non_optional_json_schema(generator))
    }

    fn _schemars_private_is_option() -> bool {
        T::_schemars_private_is_option()
    }
}

fn buffered(mut schema: Schema) -> Schema {
    if let Some(map) = schema.as_object_mut() {
        mark(map);
    }
    schema
}

/// Marks the properties of an object, or of alternatives. The recursion is at most as deep as the type.
fn mark(schema: &mut Map<String, Value>) {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(named)) => {
                for property in named.values_mut().filter_map(Value::as_object_mut) {
                    property.insert("x-buffered".into(), json!(true));
                }
            }
            ("additionalProperties", Value::Object(any)) => {
                any.insert("x-buffered".into(), json!(true));
            }
            ("oneOf" | "anyOf" | "allOf", Value::Array(parts)) => {
                parts.iter_mut().filter_map(Value::as_object_mut).for_each(mark);
            }
            _ => {}
        }
    }
}

/// Writes members with descriptions as one closed set, because a map with such keys would lose them. The plan restores the
/// descriptions.
pub fn closed_set(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let word = |variant: &Value| match (variant.get("const"), variant.get("enum")) {
        (Some(word), None) => Some(vec![word.clone()]),
        (None, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    };
    let Some(words) = variants.iter().map(word).collect::<Option<Vec<_>>>() else { return };
    let words: Value = words.concat().into();
    if let Some(variants) = schema.remove("oneOf") {
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), words);
        schema.insert("x-variants".to_owned(), variants);
    }
}
