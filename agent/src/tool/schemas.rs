//! Changes to the schemas that schemars generates, with information that only the derive macros have.

use schemars::generate::SchemaSettings;
use schemars::transform::Transform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The schema of a flattened field of type `T`: the schema of `T`, with `x-buffered` at each property. serde buffers flattened fields, and
/// cannot buffer an `i128`, for example. A tool with a buffered `i128` is refused when it is registered.
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

/// Adds `x-buffered` to the schema of each property. The recursion is at most as deep as the type.
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

/// Returns the names and aliases of the fields of a flattened type, and whether serde hides these keys from later flattened fields. serde
/// hides the keys of a struct and the variant names of an externally tagged enum, but not the keys of other kinds of enums.
pub fn names_of<T: JsonSchema + ?Sized>() -> (Vec<String>, bool) {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let schema = T::_schemars_private_non_optional_json_schema(&mut generator).to_value();
    let (mut names, mut takes) = (Vec::new(), true);
    collect(&schema, generator.definitions(), &mut names, &mut takes, 0);
    (names, takes)
}

const MAX_DEPTH: usize = 32;

fn collect(
    schema: &Value,
    definitions: &Map<String, Value>,
    names: &mut Vec<String>,
    takes: &mut bool,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let of_variant = schema.get("x-aliases").filter(|_| is_external(schema));
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let aliases = property.get("x-aliases").into_iter().chain(of_variant);
        let aliases = aliases.filter_map(Value::as_array).flatten();
        let all = aliases.filter_map(Value::as_str).chain([name.as_str()]).map(String::from);
        for name in all {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        let parts = schema.get(keyword).and_then(Value::as_array).map_or(&[][..], |parts| &parts[..]);
        // serde hides no key of a struct into which an enum is flattened. The schema of such a struct has a `type` beside the `oneOf`.
        *takes &= keyword == "oneOf" && schema.get("type").is_none() && parts.iter().all(is_external)
            || parts.is_empty();
        for part in parts {
            collect(part, definitions, names, takes, depth + 1);
        }
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/$defs/"));
    if let Some(target) = target.and_then(|name| definitions.get(name)) {
        collect(target, definitions, names, takes, depth + 1);
    }
}

/// Returns whether a part of a `oneOf` is a variant of an externally tagged enum: a word, or an object whose only key is the name.
fn is_external(variant: &Value) -> bool {
    match variant.get("properties").and_then(Value::as_object) {
        None => variant.get("type").is_some_and(|kind| kind == "string"),
        Some(entry) => {
            variant.get("additionalProperties") == Some(&json!(false))
                && entry.len() == 1
                && entry.values().all(|payload| payload.get("const").is_none())
        }
    }
}

type NamesOf = fn() -> (Vec<String>, bool);

/// A transform that compares the names of flattened fields with the other names of the object. If two fields have the same name, serde
/// gives the value to the first, and the second is missing in every call. So the schema is marked with `x-clash`, and the tool is refused.
#[derive(Debug)]
pub struct CompareNames {
    /// The names and aliases of the fields that are not flattened.
    pub own: &'static [&'static str],
    /// Each flattened field, with a function that returns its field names.
    pub flattened: &'static [(&'static str, NamesOf)],
}

impl Transform for CompareNames {
    fn transform(&mut self, schema: &mut Schema) {
        let mut known: Vec<(String, String)> = Vec::new();
        known.extend(self.own.iter().map(|name| ((*name).to_owned(), "a parameter beside it".to_owned())));
        for (field, names) in self.flattened {
            let (names, takes) = names();
            for name in &names {
                if let Some((_, other)) = known.iter().find(|(known, _)| known == name) {
                    let clash =
                        format!("has `{name}` twice, in the flattened `{field}` and as {other}: rename one");
                    schema.insert("x-clash".to_owned(), clash.into());
                    return;
                }
            }
            if takes {
                known.extend(
                    names.into_iter().map(|name| (name, format!("a field of the flattened `{field}`"))),
                );
            }
        }
    }
}

/// Converts the `oneOf` of constants that schemars writes for an enum to one `enum`. If the enum is the key type of a map, schemars reads
/// the allowed keys from `enum`, but not from `oneOf`. `Plan` restores the `oneOf` from `x-variants`.
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
