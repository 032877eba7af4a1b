//! Writes the examples of tool definitions, and reads tool definitions from recorded requests.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::borrow::Cow;

use serde_json::Value;

use super::parts::text;
use crate::args::{CoercionPolicy, Plan, PlanOptions, withheld};
use crate::model::ModelRequest;
use crate::tool::definition::ToolDefinition;
use crate::tool::options::ToolOptions;

/// Reads the definition of a function tool. Returns `None` for other tools, and for tools that this library does not accept.
pub(super) fn read_tool(tool: &Value, schema_key: &str) -> Option<ToolDefinition> {
    let schema = tool.get(schema_key)?;
    let plan = Plan::compile(text(tool, "name")?, schema, PlanOptions::default()).ok()?;
    let definition = ToolDefinition::new(plan, text(tool, "description")?).ok()?;
    let examples = tool.get("input_examples").and_then(Value::as_array).into_iter().flatten();
    definition.configure(|options| examples.cloned().fold(options, ToolOptions::example)).ok()
}

/// Returns whether the provider is asked to enforce the schema of at least one tool. If the request has no tools, returns its
/// `strict_tools`.
pub(super) fn has_strict_tools(request: &ModelRequest) -> bool {
    let is_asked = request.strict_tools;
    if request.tools.is_empty() {
        return is_asked;
    }
    request.tools.iter().any(|tool| tool.strict().unwrap_or(is_asked))
}

/// Returns the examples without their secrets. Leaves out examples that are then invalid.
pub(super) fn examples(tool: &ToolDefinition) -> Vec<Value> {
    let shown = |example: &Value| {
        let example = without_secrets(tool, example)?;
        let parsed = tool.plan().parse::<Value>(&example.to_string()).is_ok();
        (example.is_object() && parsed).then_some(example)
    };
    tool.examples().iter().filter_map(shown).collect()
}

/// Removes the parameters that contain secrets. Returns `None` if the example as a whole is a secret.
fn without_secrets(tool: &ToolDefinition, example: &Value) -> Option<Value> {
    let Some((shown, true)) = withheld(tool.plan(), example) else { return Some(example.clone()) };
    let (shown, mut kept) = (shown.as_object()?, example.as_object()?.clone());
    // A parameter that `withheld` changed contains a secret.
    kept.retain(|key, value| shown.get(key) == Some(value));
    Some(Value::Object(kept))
}

/// Returns the description of a tool, perhaps with its examples, for protocols without a field for examples.
pub(super) fn description<'t>(tool: &'t ToolDefinition, request: &ModelRequest) -> Cow<'t, str> {
    let description = tool.description();
    if !request.examples_in_descriptions {
        return description.into();
    }
    let examples = examples(tool);
    if examples.is_empty() {
        return description.into();
    }
    let calls: Vec<String> = examples.iter().map(ToString::to_string).collect();
    let heading = if calls.len() == 1 { "Example of arguments" } else { "Examples of arguments" };
    format!("{description}\n\n{heading}:\n{}", calls.join("\n")).into()
}

/// Returns the examples that fit `schema`, the tool's schema in the request. The provider would refuse a request with other examples.
pub(super) fn allowed_examples(tool: &ToolDefinition, schema: &Value) -> Vec<Value> {
    examples(tool).into_iter().filter(|example| is_allowed(schema, example)).collect()
}

fn is_allowed(schema: &Value, example: &Value) -> bool {
    Plan::compile("example", schema, PlanOptions::default().coercion(CoercionPolicy::exact()))
        .is_ok_and(|plan| plan.parse::<Value>(&example.to_string()).is_ok())
}
