//! Hints about the effects of a tool.

use serde::{Deserialize, Serialize};

/// Hints about a tool for clients and people, in MCP's terms. They are only hints: nothing enforces them.
///
/// Source: `ToolAnnotations` of the Model Context Protocol's schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ToolAnnotations {
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub(crate) read_only: Option<bool>,
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub(crate) destructive: Option<bool>,
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub(crate) idempotent: Option<bool>,
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub(crate) open_world: Option<bool>,
}
