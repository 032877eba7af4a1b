//! Getters for an assistant's configuration.

use super::assistant::Assistant;
use super::context::{name, usable_in};
use crate::message::ConversationView;
use crate::model::{
    ContextReport, ManagedTool, ModelError, ModelInfo, ModelRequest, StepCx, Thinking, reply_reserve,
};

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

    /// Reports how much of the model's context window the parts of the next request fill: system prompt, definitions of tools, results and
    /// messages. Sizes are [estimates](ContextReport::of), and nothing is sent. Hooks may still change the request.
    ///
    /// ```
    /// use agent::model::ContextSource;
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    ///
    /// /// Finds trains between two cities.
    /// #[tool]
    /// fn find_trains(from: String, to: String) -> String {
    ///     format!("{from} 08:00, {to} 11:00")
    /// }
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .system("Answer briefly, in one sentence.")
    ///     .tools(tools![find_trains])
    ///     .build()?;
    /// let report = assistant.context();
    /// assert!(report.tokens_of(&ContextSource::Tool("find_trains".into())) > report.tokens_of(&ContextSource::System));
    /// println!("{report}");                 // a table
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn context(&self) -> ContextReport {
        let (config, view) = (self.config(), ConversationView::of(&self.messages()));
        let (model, request) = (&config.model, self.next_request());
        let report = ContextReport::of_view(&request, &view, model.info(), &*config.counter);
        if let Some(limits) = &config.context {
            let known = view.window_of(&name(model.info()));
            let window = known.map_or(limits.window, |window| window.min(limits.window));
            return report.with_window(window, window - usable_in(limits, known));
        }
        let Some(window) = model.context_window() else { return report };
        report.with_window(window, reply_reserve(model.max_output(), request.max_tokens))
    }

    /// Asks the provider how many input tokens a request with the system prompt, the tools and the conversation so far would have. Returns
    /// `None` if the provider has no endpoint for that.
    ///
    /// Anthropic, OpenAI's Responses API and Gemini have such an endpoint. A count costs a request, so runs do not use the endpoint.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// assert_eq!(assistant.count_context().await?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the provider refuses the request or cannot be reached.
    pub async fn count_context(&self) -> Result<Option<u64>, ModelError> {
        self.config().model.count_tokens(&StepCx::new(), &self.next_request()).await
    }

    /// Returns the request that a run without a prompt would send, before hooks change it.
    fn next_request(&self) -> ModelRequest {
        let view = ConversationView::of(&self.messages());
        self.config().request_of(view.messages().clone(), self.config().request.tools.clone())
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
