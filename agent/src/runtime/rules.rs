//! What a run may do: its limits, and how it hears messages.

use super::{AssistantBuilder, QueueMode};
use crate::loop_core::{LoopGuard, SteeringPolicy, UsageLimits};

impl AssistantBuilder {
    /// How many replies a prompt may take; 50 by default, at least 1.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.rules.max_turns = turns.max(1);
        self
    }

    /// What a run may use: requests, tool calls, tokens, time, money. Nothing is limited by default.
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    /// use agent::{Assistant, UsageLimits};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = UsageLimits { requests: Some(0), ..UsageLimits::default() };
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).limits(limits).build()?;
    /// let error = assistant.prompt("Hi").await.unwrap_err();
    /// assert!(error.to_string().starts_with("the limit of 0 requests is reached"));
    /// # Ok(()) }
    /// ```
    pub fn limits(mut self, limits: UsageLimits) -> Self {
        self.rules.limits = limits;
        self
    }

    /// Stops a model that repeats the same call; `None` switches this off. By default the third equal call with an equal
    /// result is refused, and the fifth ends the run.
    ///
    /// ```
    /// use agent::loop_core::Limit;
    /// use agent::model::{ScriptedModel, reply};
    /// use agent::{Assistant, LoopGuard, tool, tools};
    ///
    /// /// Says whether the build is done.
    /// #[tool(read_only)]
    /// fn is_done() -> bool {
    ///     false
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::from_fn(|_| reply().tool_call("is_done", "{}"));
    /// let guard = LoopGuard { refuse_at: 2, end_at: 3 };
    /// let assistant = Assistant::builder(model).tools(tools![is_done]).loop_guard(Some(guard)).build()?;
    /// let error = assistant.prompt("Is it done?").await.unwrap_err();
    /// assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::RepeatedCalls));
    /// # Ok(()) }
    /// ```
    pub fn loop_guard(mut self, guard: Option<LoopGuard>) -> Self {
        self.rules.loop_guard = guard;
        self
    }

    /// How many further tries the model has after bad arguments for a tool; 2 by default. A tool with `max_retries = …` has
    /// its own number.
    pub fn max_retries(mut self, tries: u32) -> Self {
        self.rules.max_retries = tries;
        self
    }

    /// Runs the calls of a reply one after the other, in their order. By default they run side by side.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
    /// use std::sync::{Arc, Mutex};
    ///
    /// type Log = Mutex<Vec<String>>;
    ///
    /// /// Copies a folder.
    /// #[tool]
    /// async fn copy(folder: String, log: &Log) {
    ///     log.lock().unwrap().push(format!("{folder} begins"));
    ///     tokio::task::yield_now().await;
    ///     log.lock().unwrap().push(format!("{folder} ends"));
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("copy", r#"{"folder": "a"}"#).tool_call("copy", r#"{"folder": "b"}"#),
    ///     reply().text("Done."),
    /// ]);
    /// let log = Arc::new(Log::default());
    /// let assistant = Assistant::builder(model).tools(tools![copy]).shared_state(log.clone()).sequential().build()?;
    /// assistant.prompt("Copy a and b.").await?;
    /// assert_eq!(*log.lock().unwrap(), ["a begins", "a ends", "b begins", "b ends"]);
    /// # Ok(()) }
    /// ```
    pub fn sequential(mut self) -> Self {
        self.rules.sequential = true;
        self
    }

    /// What a steering message does to the calls of the turn it arrives in; by default nothing
    /// ([`SteeringPolicy::AfterBatch`]).
    ///
    /// ```
    /// use agent::{Assistant, EventKind, ScriptedModel, SteeringPolicy, model::reply, tool, tools};
    ///
    /// /// Sends a letter.
    /// #[tool]
    /// fn send(to: String) -> String {
    ///     format!("sent to {to}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann"}"#), reply().text("I did not send it.")]);
    /// let assistant =
    ///     Assistant::builder(model).tools(tools![send]).steering_policy(SteeringPolicy::SkipUnstarted).build()?;
    /// let mut run = assistant.run("Write to Ann.");
    /// while let Some(event) = run.next().await {
    ///     if let EventKind::ToolExecutionStart { .. } = &event.kind {
    ///         assistant.steer("No, don't.");
    ///     }
    /// }
    /// assert!(assistant.messages().get(2).unwrap().text().starts_with("The call was not run"));
    /// # Ok(()) }
    /// ```
    pub fn steering_policy(mut self, policy: SteeringPolicy) -> Self {
        self.rules.steering = policy;
        self
    }

    /// How many of the steering messages that wait a turn begins with; one by default.
    pub fn steering_mode(mut self, mode: QueueMode) -> Self {
        self.steering_mode = mode;
        self
    }

    /// How many of the follow-ups that wait a turn begins with; one by default.
    ///
    /// ```
    /// use agent::{Assistant, QueueMode, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["One.", "Two and three."]);
    /// let assistant = Assistant::builder(model).follow_up_mode(QueueMode::All).build()?;
    /// assistant.follow_up("And two?");
    /// assistant.follow_up("And three?");
    /// let output = assistant.prompt("One?").await?;
    /// assert_eq!((output.turns, output.messages.len()), (2, 5));
    /// # Ok(()) }
    /// ```
    pub fn follow_up_mode(mut self, mode: QueueMode) -> Self {
        self.follow_up_mode = mode;
        self
    }

    /// How many bytes of text a result has in the conversation, where its tool says nothing itself; 64 KiB by default. Of
    /// longer ones the middle is left out, and a line says so.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.rules.max_result_bytes = bytes;
        self
    }
}
