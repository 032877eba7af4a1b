//! Reads tool definitions back from requests.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use serde_json::Value;

use super::parts::text;
use crate::ToolDefinition;
use crate::args::{Plan, PlanOptions};

/// Reads the definition from an object with `name`, `description` and a schema. `None` if it is not a function tool, or one that
/// this library would not define.
pub(super) fn read_tool(tool: &Value, schema_key: &str) -> Option<ToolDefinition> {
    let schema = tool.get(schema_key)?;
    let plan = Plan::compile(text(tool, "name")?, schema, PlanOptions::default()).ok()?;
    ToolDefinition::new(plan, text(tool, "description")?).ok()
}
