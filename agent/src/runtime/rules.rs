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

    /// Runs the calls of a reply one after the other.
    pub fn sequential(mut self) -> Self {
        self.rules.sequential = true;
        self
    }

    /// What a steering message does to the calls of the turn it arrives in.
    pub fn steering_policy(mut self, policy: SteeringPolicy) -> Self {
        self.rules.steering = policy;
        self
    }

    /// How many steering messages a turn begins with; one by default.
    pub fn steering_mode(mut self, mode: QueueMode) -> Self {
        self.steering_mode = mode;
        self
    }

    /// How many follow-ups a turn begins with; one by default.
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
