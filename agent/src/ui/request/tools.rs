//! Tools that a page declares.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{BrowserTool, UiRequestError, content, optional};

/// Limits of the tools of a request.
const MAX_TOOLS: usize = 64;
const MAX_TOOL_BYTES: usize = 32 << 10;

/// Reads tools: the key of each in the request, its name, and the rest.
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
