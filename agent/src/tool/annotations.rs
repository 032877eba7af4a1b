//! Hints about the effects of a tool.

use serde::{Deserialize, Serialize};

/// Hints about a tool for clients and people, in MCP's terms. They are only hints: nothing enforces them.
///
/// Source: `ToolAnnotations` of the Model Context Protocol's schema.
///
/// ```
/// use agent::{Registry, tool, tools};
///
/// /// Throws a file away.
/// #[tool(destructive, open_world = false)]
/// fn remove(path: String) {}
///
/// let registry = Registry::new(tools![remove])?;
/// let definitions = registry.definitions();
/// let hints = definitions[0].annotations();
/// assert_eq!((hints.destructive, hints.open_world, hints.read_only), (Some(true), Some(false), None));
/// # Ok::<(), agent::tool::RegistryError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The tool changes nothing.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may delete or overwrite data.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Repeating a call with the same arguments has no further effect.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool interacts with systems outside of the application.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// No hints.
    pub const NONE: Self = Self { read_only: None, destructive: None, idempotent: None, open_world: None };
}
