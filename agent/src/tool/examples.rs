//! Checks whether examples are valid arguments.

use super::problem::{RegistryError, RegistryProblem};
use super::registry::Registry;
use super::value::Tool;
use serde_json::{Map, Value};

/// Maximum number of schemas of one tool whose examples are checked.
const MAX_PLACES: usize = 1_000;
/// Maximum depth of a parameter whose examples are checked.
const MAX_DEPTH: usize = 16;

impl Registry {
    /// Checks that the examples of all tools are accepted as arguments, and that the examples of their parameters are accepted as values.
    /// Use it in a test:
    ///
    /// ```
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Looks up a word.
    /// #[tool(examples({"word": "owl"}, {"wrod": "eagle"}))]
    /// fn look_up(word: String, #[arg(range(1..=5), example = 9)] times: Option<u8>) -> String {
    ///     word
    /// }
    ///
    /// let registry = Registry::new(tools![look_up])?;
    /// let error = registry.check_examples().unwrap_err();
    /// let [of_tool, of_parameter] = error.problems() else { panic!("{error}") };
    /// assert!(of_tool.to_string().starts_with("example 2 of tool `look_up`: Invalid arguments"));
    /// assert!(of_parameter.to_string().starts_with("example 1 of `/times` of tool `look_up`: "));
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    ///
    /// # Errors
    /// Lists every example that would be refused, with the report.
    pub fn check_examples(&self) -> Result<(), RegistryError> {
        RegistryError::none_of(self.tools().flat_map(refused_examples).collect())
    }
}

pub(super) fn refused_examples(tool: &Tool) -> Vec<RegistryProblem> {
    let (definition, mut refused) = (tool.definition(), Vec::new());
    for (number, example) in (1..).zip(definition.examples()) {
        if let Err(report) = tool.validate(&example.to_string()) {
            let tool = definition.name().to_owned();
            refused.push(RegistryProblem::Example { tool, number, report });
        }
    }
    of_parameters(tool, &mut refused);
    refused
}

/// A path in the arguments, with the containers that have to surround a value at this path.
#[derive(Clone, Default)]
struct ExamplePath {
    path: String,
    /// The surrounding containers, from the outside in.
    around: Vec<EnclosingValue>,
}

#[derive(Clone)]
enum EnclosingValue {
    /// A key of an object, with the object's constant properties, such as the tag `"kind": "circle"`.
    Key(String, Map<String, Value>),
    Item(Vec<Value>),
}

impl ExamplePath {
    fn with(&self, value: &Value) -> Value {
        self.around.iter().rev().fold(value.clone(), |value, around| match around {
            EnclosingValue::Key(key, constants) => {
                let mut object = constants.clone();
                object.insert(key.clone(), value);
                Value::Object(object)
            }
            EnclosingValue::Item(before) => Value::Array(before.iter().cloned().chain([value]).collect()),
        })
    }
}

/// Checks the examples of all parameters, each in a call of its own. The call has no other arguments except constants, so issues outside
/// of the example are ignored.
fn of_parameters(tool: &Tool, refused: &mut Vec<RegistryProblem>) {
    let root = tool.definition().parameters();
    let mut left = vec![(root, ExamplePath::default())];
    let mut looked_at = 0;
    while let Some((schema, place)) = left.pop() {
        looked_at += 1;
        if looked_at > MAX_PLACES {
            return;
        }
        let examples = schema.get("examples").and_then(Value::as_array).into_iter().flatten();
        for (number, example) in (1..).zip(examples).filter(|_| !place.around.is_empty()) {
            let Err(report) = tool.validate(&place.with(example).to_string()) else { continue };
            let is_there = |path: &str| {
                path.strip_prefix(&*place.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let issues: Vec<_> =
                report.issues().iter().filter(|issue| is_there(&issue.path)).cloned().collect();
            if !issues.is_empty() {
                let (tool, parameter) = (tool.definition().name().to_owned(), place.path.clone());
                refused.push(RegistryProblem::ParameterExample { tool, parameter, number, issues });
            }
        }
        if place.around.len() < MAX_DEPTH {
            // The schemas are reversed, because the last schema on the stack is checked first.
            let mut inner = below(root, schema, &place);
            inner.reverse();
            left.append(&mut inner);
        }
    }
}

/// Returns the schemas within `schema`, each with its path: those of properties and items, the target of `$ref`, and the branches of
/// `anyOf`, `oneOf` and `allOf`. An additional property gets a made-up name. It is left out if other keywords restrict the names.
fn below<'s>(root: &'s Value, schema: &'s Value, place: &ExamplePath) -> Vec<(&'s Value, ExamplePath)> {
    let mut found = Vec::new();
    if let Some(target) =
        schema.get("$ref").and_then(Value::as_str).and_then(|to| root.pointer(to.strip_prefix('#')?))
    {
        // A reference to a reference is not followed, because two references can refer to each other.
        if target.get("$ref").is_none() {
            found.push((target, place.clone()));
        }
    }
    let within = |key: &str, constants: &Map<String, Value>| {
        let mut inner = place.clone();
        inner.path = format!("{}/{}", place.path, key.replace('~', "~0").replace('/', "~1"));
        inner.around.push(EnclosingValue::Key(key.to_owned(), constants.clone()));
        inner
    };
    let mut constants = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(properties) = properties {
        let constant = |(key, property): (&String, &Value)| Some((key.clone(), constant(property)?));
        constants = properties.iter().filter_map(constant).collect();
        found.extend(properties.iter().map(|(key, property)| (property, within(key, &constants))));
    }
    let is_restricted = ["patternProperties", "propertyNames"].iter().any(|word| schema.get(*word).is_some());
    let others = schema.get("additionalProperties").filter(|others| others.is_object() && !is_restricted);
    if let Some(others) = others {
        let mut key = "key".to_owned();
        while properties.is_some_and(|properties| properties.contains_key(&key)) {
            key.push('_');
        }
        found.push((others, within(&key, &constants)));
    }
    let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let items = schema.get("items").filter(|items| items.is_object());
    let mut before = Vec::new();
    for item in first.iter().chain(items) {
        let mut inner = place.clone();
        inner.path = format!("{}/{}", place.path, before.len());
        inner.around.push(EnclosingValue::Item(before.clone()));
        found.push((item, inner));
        before.push(constant(item).unwrap_or_default());
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            found.push((branch, place.clone()));
        }
    }
    found
}

fn constant(schema: &Value) -> Option<Value> {
    let only = || match schema.get("enum")?.as_array()?.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    schema.get("const").or_else(only).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(properties: &Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": properties});
        let tool = Tool::new("t", "Does it.", schema, |_args, _cx| async { "done" }).unwrap();
        refused_examples(&tool).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn examples_of_map_values_are_checked() {
        let number = json!({"type": "integer", "maximum": 5, "examples": [3, 9]});
        let found = refused(&json!({"a": {"type": "object", "additionalProperties": number}}));
        assert_eq!(
            found,
            ["example 2 of `/a/key` of tool `t`: /a/key: out of range; got number 9; expected integer <= 5"]
        );
        // The property `key` has its own schema, so the additional property is tried under another name, `key_`.
        let open = json!({"type": "object", "properties": {"key": {"type": "string"}}, "additionalProperties": number});
        let found = refused(&json!({"a": open}));
        assert_eq!(
            found,
            [
                "example 2 of `/a/key_` of tool `t`: /a/key_: out of range; got number 9; expected integer <= 5"
            ]
        );
    }

    #[test]
    fn examples_of_references_and_of_alternatives_are_checked() {
        let number = json!({"type": "integer", "maximum": 5, "examples": [9]});
        let found = refused(&json!({
            "a": {"$ref": "#/properties/b"}, "b": number, "c": {"anyOf": [{"type": "null"}, number]},
        }));
        let paths: Vec<_> = found.iter().map(|text| text.split_once(" of tool ").unwrap().0).collect();
        assert_eq!(paths, ["example 1 of `/a`", "example 1 of `/b`", "example 1 of `/c`"]);
    }

    #[test]
    fn a_tuple_is_found_among_its_alternatives_by_its_constants() {
        let numbers = json!({"type": "array", "items": {"type": ["integer", "null"]}});
        let word = json!({"type": "string", "examples": ["a"]});
        let tuple = json!({"type": "array", "prefixItems": [{"const": "word"}, word]});
        assert_eq!(refused(&json!({"a": {"anyOf": [numbers, tuple]}})), Vec::<String>::new());
    }

    #[test]
    fn examples_of_tuple_items_are_checked_at_their_position() {
        let word = json!({"type": "string", "maxLength": 2, "examples": ["ab", "abc"]});
        let number = json!({"type": "integer", "maximum": 5, "examples": [3, 9]});
        let found = refused(&json!({"a": {
            "type": "array", "prefixItems": [word, number], "items": {"type": "boolean", "examples": [true, 1.5]},
            "minItems": 3,
        }}));
        assert_eq!(
            found,
            [
                "example 2 of `/a/0` of tool `t`: /a/0: too long (3 characters); got string \"abc\"; expected string, <= 2 characters",
                "example 2 of `/a/1` of tool `t`: /a/1: out of range; got number 9; expected integer <= 5",
                "example 2 of `/a/2` of tool `t`: /a/2: wrong type; got number 1.5; expected boolean",
            ]
        );
    }
}
