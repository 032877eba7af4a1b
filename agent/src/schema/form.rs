//! Renders schemas as forms, with which an MCP server asks a person for values (elicitation).
//!
//! Source: Model Context Protocol, "Elicitation", `requestedSchema`
//! (<https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation>): a flat object. Each property is a scalar, or a choice
//! of one or several texts from a list.

use serde_json::{Map, Value, json};

const TEXT: &[&str] = &["minLength", "maxLength"];
const NUMBER: &[&str] = &["minimum", "maximum"];
const FORMATS: &[&str] = &["email", "uri", "date", "date-time"];
/// The keywords that become a sentence in the description if the form lacks them: each with the words before and after its value.
const DESCRIBED: &[(&str, &str, &str)] = &[
    ("pattern", "It matches the pattern `", "`."),
    ("multipleOf", "It is a multiple of ", "."),
    ("exclusiveMinimum", "It is greater than ", "."),
    ("exclusiveMaximum", "It is less than ", "."),
    ("format", "Its format is `", "`."),
];

/// Renders the canonical schema of an object as a form.
///
/// # Errors
/// Returns the JSON Pointer of the first property that a form cannot contain, such as `/NAME`: the pointer leads into a value of the
/// schema, not into the schema. The pointer is empty if the schema has no `properties`.
pub(crate) fn form(schema: &Value) -> Result<Value, String> {
    let definitions = schema.get("$defs");
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Err(String::new());
    };
    let mut fields = Map::new();
    let mut optional = Vec::new();
    for (name, property) in properties {
        let (field, is_nullable) =
            field(property, definitions).ok_or_else(|| format!("/{}", escape(name)))?;
        if is_nullable {
            optional.push(name.as_str());
        }
        fields.insert(name.clone(), field);
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<&Value> =
        required.filter(|name| !name.as_str().is_some_and(|name| optional.contains(&name))).collect();
    let mut form = json!({"type": "object", "properties": fields});
    if !required.is_empty() {
        form["required"] = json!(required);
    }
    Ok(form)
}

/// Converts the schema of a property to a property of a form, and returns whether its value may be null. Returns `None` if a form cannot
/// contain the property.
fn field(schema: &Value, definitions: Option<&Value>) -> Option<(Value, bool)> {
    let (schema, is_nullable) = without_null(schema, definitions, 0)?;
    let mut field = match schema.get("type").and_then(Value::as_str) {
        _ if schema.contains_key("enum") || schema.contains_key("oneOf") || schema.contains_key("anyOf") => {
            Value::Object(choice(&schema)?)
        }
        Some("string") => scalar(&schema, "string", TEXT),
        Some("integer") => scalar(&schema, "integer", NUMBER),
        Some("number") => scalar(&schema, "number", NUMBER),
        Some("boolean") => scalar(&schema, "boolean", &[]),
        Some("array") => Value::Object(list(&schema, definitions)?),
        _ => return None,
    };
    if schema.get("type").and_then(Value::as_str) == Some("integer") {
        for keyword in ["exclusiveMinimum", "exclusiveMaximum"] {
            if let Some((inclusive, bound)) = schema.get(keyword).and_then(|bound| inclusive(keyword, bound))
                && field.get(inclusive).is_none()
            {
                field[inclusive] = bound;
            }
        }
    }
    let own = field.as_object_mut()?;
    if let Some(title) = schema.get("title") {
        own.insert("title".to_owned(), title.clone());
    }
    let description = description(&schema, own);
    if !description.is_empty() {
        own.insert("description".to_owned(), Value::from(description));
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        own.insert("default".to_owned(), default.clone());
    }
    Some((field, is_nullable))
}

/// Resolves references, removes null from the accepted values, and returns whether null was accepted. Returns `None` for a schema that a
/// form cannot show, such as a value of several types.
fn without_null(
    schema: &Value,
    definitions: Option<&Value>,
    depth: u8,
) -> Option<(Map<String, Value>, bool)> {
    let mut schema = schema.as_object()?.clone();
    if depth > 8 {
        return None;
    }
    if let Some(reference) = schema.remove("$ref") {
        let name = reference.as_str()?.strip_prefix("#/$defs/")?.to_owned();
        let (mut found, is_nullable) = without_null(definitions?.get(name)?, definitions, depth + 1)?;
        // A keyword next to a reference takes precedence over the referenced schema.
        found.extend(schema);
        return Some((found, is_nullable));
    }
    let mut is_nullable = false;
    if let Some(Value::Array(types)) = schema.get("type") {
        let others: Vec<&Value> = types.iter().filter(|kind| *kind != "null").collect();
        is_nullable = others.len() < types.len();
        let [one] = &others[..] else { return None };
        let one = (*one).clone();
        schema.insert("type".to_owned(), one);
    }
    if let Some(Value::Array(members)) = schema.get_mut("enum") {
        let count = members.len();
        members.retain(|member| !member.is_null());
        is_nullable |= members.len() < count;
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = schema.get(keyword) else { continue };
        let is_null = |choice: &Value| choice["type"] == "null" || choice.get("const") == Some(&Value::Null);
        let others: Vec<Value> = choices.iter().filter(|choice| !is_null(choice)).cloned().collect();
        is_nullable |= others.len() < choices.len();
        if let [one] = &others[..] {
            let (mut found, more) = without_null(one, definitions, depth + 1)?;
            schema.remove(keyword);
            found.extend(schema);
            return Some((found, is_nullable | more));
        }
        schema.insert(keyword.to_owned(), Value::Array(others));
        break;
    }
    Some((schema, is_nullable))
}

fn scalar(schema: &Map<String, Value>, kind: &str, keywords: &[&str]) -> Value {
    let mut field = json!({"type": kind});
    for keyword in keywords {
        if let Some(value) = schema.get(*keyword) {
            field[*keyword] = value.clone();
        }
    }
    let format = schema.get("format").and_then(Value::as_str).filter(|format| FORMATS.contains(format));
    if let (Some(format), "string") = (format, kind) {
        field["format"] = Value::from(format);
    }
    field
}

/// Converts a schema that allows only certain texts to a form field for one of them. Returns `None` for any other schema.
fn choice(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let field = match titled(schema)? {
        ClosedSet::Plain(members) => json!({"type": "string", "enum": members}),
        ClosedSet::Titled(choices) => json!({"type": "string", "oneOf": choices}),
    };
    field.as_object().cloned()
}

enum ClosedSet {
    Plain(Vec<String>),
    Titled(Vec<Value>),
}

/// Returns the fixed texts that a schema lists, with titles if any text has a title or a description. Returns `None` for any other schema.
fn titled(schema: &Map<String, Value>) -> Option<ClosedSet> {
    if let Some(members) = schema.get("enum") {
        let texts = members.as_array()?.iter().map(|member| Some(member.as_str()?.to_owned()));
        return Some(ClosedSet::Plain(texts.collect::<Option<_>>()?));
    }
    let choices = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let mut all = Vec::new();
    let mut has_titles = false;
    for choice in choices {
        let members = match (choice.get("const"), choice.get("enum")) {
            (Some(member), _) => vec![member.as_str()?],
            (None, Some(members)) => members.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
            (None, None) => return None,
        };
        let said = choice.get("description").or_else(|| choice.get("title")).and_then(Value::as_str);
        has_titles |= said.is_some();
        all.extend(members.into_iter().map(|member| (member.to_owned(), said.unwrap_or(member).to_owned())));
    }
    Some(if has_titles {
        ClosedSet::Titled(
            all.into_iter().map(|(member, title)| json!({"const": member, "title": title})).collect(),
        )
    } else {
        ClosedSet::Plain(all.into_iter().map(|(member, _)| member).collect())
    })
}

/// Converts an array of `enum` texts to a multiple choice. Returns `None` for any other array.
fn list(schema: &Map<String, Value>, definitions: Option<&Value>) -> Option<Map<String, Value>> {
    let (items, is_nullable) = without_null(schema.get("items")?, definitions, 0)?;
    if is_nullable {
        return None;
    }
    let items = match titled(&items)? {
        ClosedSet::Plain(members) => json!({"type": "string", "enum": members}),
        ClosedSet::Titled(choices) => json!({"anyOf": choices}),
    };
    let mut field = json!({"type": "array", "items": items}).as_object().cloned()?;
    for keyword in ["minItems", "maxItems"] {
        if let Some(bound) = schema.get(keyword) {
            field.insert(keyword.to_owned(), bound.clone());
        }
    }
    Some(field)
}

/// Converts an exclusive bound of an integer to an inclusive bound: `exclusiveMinimum: 2` becomes `minimum: 3`. Returns `None` for any
/// other keyword, and for a bound that is not a whole number.
fn inclusive(keyword: &str, bound: &Value) -> Option<(&'static str, Value)> {
    let (inclusive, step) = match keyword {
        "exclusiveMinimum" => ("minimum", 1),
        "exclusiveMaximum" => ("maximum", -1),
        _ => return None,
    };
    Some((inclusive, bound.as_i64()?.checked_add(step)?.into()))
}

/// Returns the description of a property, including the rules that a form cannot express.
fn description(schema: &Map<String, Value>, field: &Map<String, Value>) -> String {
    let mut text = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_integer = schema.get("type").and_then(Value::as_str) == Some("integer");
    for (keyword, before, after) in DESCRIBED {
        let Some(value) = schema.get(*keyword).filter(|value| field.get(*keyword) != Some(value)) else {
            continue;
        };
        let bound = inclusive(keyword, value).filter(|_| is_integer);
        if bound.is_some_and(|(inclusive, bound)| field.get(inclusive) == Some(&bound)) {
            continue;
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let space = if text.is_empty() { "" } else { " " };
        text.extend([space, before, &value, after]);
    }
    text
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Plan, PlanOptions};

    fn rendered(schema: &Value) -> Result<Value, String> {
        let plan = Plan::compile("input", schema, PlanOptions::default()).unwrap();
        form(plan.schema())
    }

    #[test]
    fn a_form_keeps_what_it_can_express_and_says_the_rest() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$", "description": "Yours."},
                "mail": {"type": "string", "format": "email"},
                "phone": {"type": "string", "format": "hostname"},
                "age": {"type": ["integer", "null"], "exclusiveMinimum": 0, "maximum": 150},
                "rooms": {"type": "integer", "minimum": 0, "exclusiveMinimum": 2, "exclusiveMaximum": 9.5},
                "share": {"type": "number", "exclusiveMaximum": 1.0, "multipleOf": 0.25},
                "sure": {"type": "boolean", "default": false},
                "color": {"enum": ["red", "green"]},
                "size": {"oneOf": [
                    {"const": "s", "description": "Small."},
                    {"const": "l", "description": "Large."},
                ]},
                "days": {"type": "array", "items": {"enum": ["mon", "tue"]}, "minItems": 1},
            },
            "required": ["name", "age", "color"],
        });
        let form = rendered(&schema).unwrap();
        let expected = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "Yours. It matches the pattern `^[a-z]+$`."},
                "mail": {"type": "string", "format": "email"},
                "phone": {"type": "string", "description": "Its format is `hostname`."},
                "age": {"type": "integer", "maximum": 150, "minimum": 1},
                "rooms": {"type": "integer", "minimum": 0, "description": "It is greater than 2. It is less than 9.5."},
                "share": {"type": "number", "description": "It is a multiple of 0.25. It is less than 1.0."},
                "sure": {"type": "boolean", "default": false},
                "color": {"type": "string", "enum": ["red", "green"]},
                "size": {"type": "string", "oneOf": [
                    {"const": "s", "title": "Small."},
                    {"const": "l", "title": "Large."},
                ]},
                "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}, "minItems": 1},
            },
            "required": ["name", "color"],
        });
        assert_eq!(form, expected, "{form:#}");
    }

    #[test]
    fn what_no_form_can_have_is_named() {
        for property in [
            json!({"type": "object", "properties": {"x": {"type": "string"}}}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": ["string", "integer"]}),
            json!({"enum": [1, 2]}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!(true),
        ] {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b/c": property}});
            assert_eq!(rendered(&schema), Err("/b~1c".to_owned()), "{schema}");
        }
        assert_eq!(form(&json!({"type": "string"})), Err(String::new()));
    }
}
