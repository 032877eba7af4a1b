//! The tools that a front end declares and runs itself.

use crate::tool::registry::Registry;
use crate::tool::set::ToolSet;
use crate::ui::{UiRequest, UiRequestError};

#[derive(Clone)]
pub(super) struct ClientTools {
    pub(super) registry: Registry,
    pub(super) tools: ToolSet,
    pub(super) names: Vec<String>,
}

impl ClientTools {
    pub(super) fn of(request: &UiRequest, application: &Registry) -> Result<Option<Self>, UiRequestError> {
        let tools = request.declared_tools(application)?;
        if tools.is_empty() {
            return Ok(None);
        }
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let mut registry = application.clone();
        registry.register(tools.clone()).map_err(|error| {
            tracing::debug!(%error, "the tools of a page are rejected");
            UiRequestError::invalid("tools", "tools that can be used together")
        })?;
        Ok(Some(Self { registry, tools, names }))
    }
}
