//! Getters for an assistant's configuration.

use super::assistant::Assistant;
use crate::model::{ManagedTool, ModelInfo, Thinking};

impl Assistant {
    /// Returns the name and the capabilities of the model.
    ///
    /// ```
    /// use agent::model::Thinking;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .request(|request| request.with_thinking(Thinking::High))
    ///     .build()?;
    /// assert_eq!(assistant.model().provider, "scripted");
    /// assert_eq!(assistant.thinking(), Some(Thinking::High));
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn model(&self) -> &ModelInfo {
        self.config().model.info()
    }

    /// Returns the thinking setting of requests, or `None` if the provider decides. [`model`](Self::model) has an example.
    pub fn thinking(&self) -> Option<Thinking> {
        self.config().request.thinking
    }

    /// Returns the tools that the provider runs.
    ///
    /// ```
    /// use agent::model::ManagedTool;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let model = ScriptedModel::new(["Hello!"]);
    /// let assistant = Assistant::builder(model).managed_tool(ManagedTool::web_search()).build()?;
    /// assert_eq!(assistant.managed_tools(), [ManagedTool::web_search()]);
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn managed_tools(&self) -> &[ManagedTool] {
        &self.config().request.managed_tools
    }

    /// Returns the tools whose results [`cache_results`](super::AssistantBuilder::cache_results) does not keep, each with the reason, in
    /// the order of registration. Empty for an assistant without `cache_results`.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    ///
    /// /// Reads a price.
    /// #[tool(read_only)]
    /// fn price(of: String) -> u32 {
    ///     of.len() as u32
    /// }
    ///
    /// /// Sets a price.
    /// #[tool]
    /// fn set_price(of: String, to: u32) {}
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).tools(tools![price, set_price]).cache_results().build()?;
    /// let reason = "the tool is neither `read_only` nor `idempotent`";
    /// assert_eq!(assistant.uncached_tools(), [("set_price".to_owned(), reason)]);
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn uncached_tools(&self) -> &[(String, &'static str)] {
        &self.config().uncached
    }
}
