//! The tools that a front end declares in a request.

use std::collections::BTreeSet;
use std::future::ready;

use serde_json::{Value, json};

use super::{BrowserTool, UiRequest, UiRequestError, content, optional};
use crate::tool::builder::ToolBuilder;
use crate::tool::outcome::ToolOutcome;
use crate::tool::policy::Effect;
use crate::tool::registry::Registry;
use crate::tool::set::ToolSet;

/// Limits on the declared tools of a request: their number, and their total size in bytes.
const MAX_TOOLS: usize = 64;
const MAX_TOOL_BYTES: usize = 32 << 10;

impl UiRequest {
    /// Returns the tools that the front end declares. Add them to the application's tools for a run. Their calls are deferred until the
    /// front end [delivers](Self::with_browser_tools) the results.
    ///
    /// ```
    /// use agent::Registry;
    /// use agent::ui::{UiProtocol, UiRequest};
    ///
    /// let body = br#"{"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Hi"}],
    ///     "tools": [{"name": "scroll", "description": "Scrolls the page.", "parameters": {"type": "object"}}]}"#;
    /// let tools = UiRequest::decode(UiProtocol::AgUi, body)?.declared_tools(&Registry::default())?;
    /// assert_eq!(tools.len(), 1);
    /// # Ok::<(), agent::ui::UiRequestError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a tool of the application has the same name, or if a schema is not supported.
    pub fn declared_tools(&self, application: &Registry) -> Result<ToolSet, UiRequestError> {
        let mut tools = ToolSet::new();
        for BrowserTool { name, description, parameters } in &self.tools {
            let field = |part: &str| format!("tools/{name}/{part}");
            if application.contains(name) {
                return Err(UiRequestError::invalid(
                    field("name"),
                    "a name that no tool of the application has",
                ));
            }
            // The tool is idempotent: after a restart, its call only waits again for the front end.
            let tool = ToolBuilder::new(&**name)
                .description(&**description)
                .schema(parameters.clone())
                .effect(Effect::Idempotent)
                .build(|_, _| ready(ToolOutcome::Deferred { handle: "browser".to_owned() }));
            let tool = tool.map_err(|error| {
                tracing::debug!(%error, "a tool of a page is rejected");
                UiRequestError::invalid(field("parameters"), "a schema of an object that can be checked")
            })?;
            tools.add(tool);
        }
        Ok(tools)
    }
}

/// Reads the declared tools. Each item has the tool's key in the request, its name, and its whole declaration.
pub(super) fn declared<'v>(
    tools: impl Iterator<Item = (String, Option<&'v Value>, &'v Value)>,
) -> Result<Vec<BrowserTool>, UiRequestError> {
    let (mut names, mut bytes, mut list) = (BTreeSet::new(), 0, Vec::new());
    for (key, name, tool) in tools {
        let field = format!("tools/{key}");
        let name = content::text(name, &format!("{field}/name"))?;
        if !crate::tool::definition_error::is_valid_name(name) || !names.insert(name.to_owned()) {
            return Err(UiRequestError::invalid(format!("{field}/name"), "the name of a tool, once"));
        }
        let read = |key: &str| optional(tool.get(key), &format!("{field}/{key}"), "a text", Value::as_str);
        let description = read("description")?.unwrap_or_default().to_owned();
        let parameters = tool.get("parameters").filter(|given| !given.is_null());
        let parameters = parameters.cloned().unwrap_or_else(|| json!({"type": "object"}));
        bytes += name.len() + description.len() + parameters.to_string().len();
        if list.len() >= MAX_TOOLS || bytes > MAX_TOOL_BYTES {
            return Err(UiRequestError::invalid("tools", "at most 64 tools of 32 KiB together"));
        }
        list.push(BrowserTool { name: name.to_owned(), description, parameters });
    }
    Ok(list)
}
