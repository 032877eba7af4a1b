//! Recording calls that were made outside of a run.

use super::assistant::{Assistant, Config};
use super::begin::RunStart;
use super::prompt::Prompt;
use crate::loop_core::{AgentLoop, RecordedTurn};
use crate::tool::call_record::CallRecord;

impl Assistant {
    /// Records calls that were made outside of a run, such as a background job or a button that a user pressed. They become a turn of the
    /// conversation like any other, with the same events, and are stored with its session.
    ///
    /// The model is asked at once if the [policy](crate::ToolPolicy::follow_up) of one of the tools requires it, if a tool itself
    /// ([`Tool::triggers_follow_up`](crate::Tool::triggers_follow_up)) does, or if messages are queued. Otherwise it reads the results with
    /// the next prompt. Messages that are [added](Prompt::with_message) come before the calls.
    ///
    /// ```
    /// use agent::message::ToolCall;
    /// use agent::{Assistant, RecordedTurn, ScriptedModel, tool, tools};
    ///
    /// /// Exports a table in the background.
    /// #[tool(follow_up)]
    /// fn export(table: String) -> String {
    ///     format!("the export of {table} has begun")
    /// }
    ///
    /// /// Notes what the user looks at.
    /// #[tool]
    /// fn looked_at(page: String) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Your export is ready."]);
    /// let assistant = Assistant::builder(model.clone()).tools(tools![export, looked_at]).build()?;
    ///
    /// let looked = ToolCall::new("ui_1", "looked_at", r#"{"page": "orders"}"#);
    /// assistant.record(RecordedTurn::new().with_call(looked, "noted")).await?;
    /// assert!(model.requests().is_empty());
    ///
    /// let done = ToolCall::new("job_7", "export", r#"{"table": "orders"}"#);
    /// let output = assistant.record(RecordedTurn::new().with_call(done, "1,200 rows")).await?;
    /// assert_eq!(output.text(), "Your export is ready.");
    /// assert_eq!(assistant.messages().len(), 5);
    /// # Ok(()) }
    /// ```
    pub fn record(&self, turn: RecordedTurn) -> Prompt {
        Prompt::new(self.clone(), RunStart::Recorded { turn, messages: Vec::new() })
    }
}

impl Config {
    /// Returns whether the model is asked at once when these calls are recorded.
    pub(super) fn needs_follow_up(&self, turn: &RecordedTurn) -> bool {
        let asks = |(call, result)| self.registry.triggers_follow_up(&CallRecord::new(call, &result));
        turn.results().any(asks)
    }

    /// Makes the calls the first turn of a run that has not begun yet.
    pub(super) fn record(&self, core: &mut AgentLoop, turn: RecordedTurn) {
        let asks = self.needs_follow_up(&turn);
        if let Err(error) = core.record(turn, asks) {
            core.fail(&error.to_string());
        }
    }
}
