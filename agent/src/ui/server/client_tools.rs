//! Tools that a page declares and runs, as tools of a run.

use crate::tool::builder::ToolBuilder;
use crate::tool::outcome::ToolOutcome;
use crate::tool::policy::Effect;
use crate::tool::registry::Registry;
use crate::tool::set::ToolSet;
use crate::ui::{BrowserTool, UiRequestError};

/// The tools that the page of a run declared.
#[derive(Clone)]
pub(super) struct ClientTools {
    /// The tools of the application, and these.
    pub(super) registry: Registry,
    pub(super) tools: ToolSet,
    pub(super) names: Vec<String>,
}

impl ClientTools {
    /// Returns the tools that a page declares, or `None` if it declares none.
    ///
    /// # Errors
    /// A name is one of the application's, or a schema is not supported.
    pub(super) fn of(
        declared: &[BrowserTool],
        application: &Registry,
    ) -> Result<Option<Self>, UiRequestError> {
        if declared.is_empty() {
            return Ok(None);
        }
        let (mut tools, mut names) = (ToolSet::new(), Vec::new());
        for BrowserTool { name, description, parameters } in declared {
            let field = |part: &str| format!("tools/{name}/{part}");
            if application.contains(name) {
                return Err(UiRequestError::invalid(
                    field("name"),
                    "a name that no tool of the application has",
                ));
            }
            // After a restart it waits again.
            let tool = ToolBuilder::new(&**name)
                .description(&**description)
                .schema(parameters.clone())
                .effect(Effect::Idempotent)
                .build(|_, _| async { ToolOutcome::Deferred { handle: "browser".to_owned() } });
            let tool = tool.map_err(|error| {
                tracing::debug!(%error, "a tool of a page is rejected");
                UiRequestError::invalid(field("parameters"), "a schema of an object that can be checked")
            })?;
            tools.add(tool);
            names.push(name.clone());
        }
        let mut registry = application.clone();
        registry.register(tools.clone()).map_err(|error| {
            tracing::debug!(%error, "the tools of a page are rejected");
            UiRequestError::invalid("tools", "tools that can be used together")
        })?;
        Ok(Some(Self { registry, tools, names }))
    }
}
