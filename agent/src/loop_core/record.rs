//! Records calls that were made outside of a run.

use serde::{Deserialize, Serialize};

use super::agent_loop::Phase;
use super::batch::Batch;
use super::{AgentLoop, CallEnd, RecordError};
use crate::message::{AssistantMessage, Message, Part, ToolCall};
use crate::tool::outcome::{IntoOutcome, OutcomeCode, ToolOutcome};

/// Calls that were made outside of a run, with their outcomes, for example by a background job or by a button that a user pressed.
///
/// `Assistant::record` adds the calls to the conversation as one turn.
///
/// ```
/// use agent::run::RecordedTurn;
/// use agent::message::ToolCall;
///
/// let turn = RecordedTurn::new()
///     .with_text("The export is done.")
///     .with_call(ToolCall::new("job_7", "export", r#"{"table": "orders"}"#), "1,200 rows");
/// assert_eq!(turn.calls().len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTurn {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    calls: Vec<(ToolCall, ToolOutcome)>,
}

impl RecordedTurn {
    /// Creates a turn without calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the text of the model's message that contains the calls.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Adds a call with its outcome.
    pub fn with_call(mut self, call: ToolCall, outcome: impl IntoOutcome) -> Self {
        self.calls.push((call, outcome.into_outcome()));
        self
    }

    /// Returns the calls in order, with their outcomes.
    pub fn calls(&self) -> &[(ToolCall, ToolOutcome)] {
        &self.calls
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn results(&self) -> impl Iterator<Item = (&ToolCall, crate::message::ToolResultMessage)> {
        self.calls.iter().filter_map(|(call, outcome)| {
            let result =
                crate::tool::outcome::ToolResult::new(&*call.id, &*call.name, settled(outcome.clone()));
            Some((call, result.to_message()?))
        })
    }
}

impl AgentLoop {
    /// Adds calls that were made outside of the run as the first turn of the run. The model is not asked for this turn, and no tool runs.
    ///
    /// The model is asked next if `asks` is true and the turn has calls, or if messages are queued, unless an outcome or a limit ends the
    /// run. Otherwise, the run ends after this turn. The events are the same as for any other turn.
    ///
    /// ```
    /// use agent::run::RecordedTurn;
    /// use agent::loop_core::{AgentLoop, LoopConfig, Step};
    /// use agent::message::{Conversation, Message, ToolCall};
    ///
    /// let prompt = Message::user("Tell me when the export is done.");
    /// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [prompt]);
    /// run.record(RecordedTurn::new().with_call(ToolCall::new("1", "export", "{}"), "1,200 rows"), true)?;
    /// assert_eq!(run.added().len(), 3);
    /// assert!(matches!(run.next(), Step::TurnEnd { .. }));
    /// # Ok::<(), agent::loop_core::RecordError>(())
    /// ```
    ///
    /// # Errors
    /// Fails, and leaves the run unchanged, if the run has already taken its first step.
    pub fn record(&mut self, turn: RecordedTurn, asks: bool) -> Result<(), RecordError> {
        if self.phase != Phase::PollFirst {
            return Err(RecordError::WrongKind { wanted: self.phase.expected() });
        }
        let RecordedTurn { text, calls } = turn;
        let text = Some(Part::text(text)).filter(|part| part.as_text().is_some_and(|text| !text.is_empty()));
        let (calls, outcomes): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
        let calls = calls.into_iter().map(|call| Part::tool_call(call.id, call.name, call.args));
        let reply = super::batch::with_unique_ids(Message::from(AssistantMessage::new(
            text.into_iter().chain(calls),
        )));
        let config = self.config.clone();
        self.batch = reply
            .as_assistant()
            .map_or_else(Batch::default, |reply| Batch::new(reply.tool_calls(), false, &config));
        self.batch.is_settled = !asks;
        self.keep_reply(reply);
        for (at, outcome) in outcomes.into_iter().enumerate() {
            self.end_call(at, CallEnd::ran(settled(outcome), 0));
        }
        while self.leave_segment() {}
        self.close_turn();
        self.settle();
        Ok(())
    }
}

/// Replaces a deferred outcome by a failure, because its result would never arrive.
fn settled(outcome: ToolOutcome) -> ToolOutcome {
    match outcome {
        ToolOutcome::Deferred { .. } => {
            ToolOutcome::failed(OutcomeCode::new("no_result"), "The call was recorded without a result.")
        }
        outcome => outcome,
    }
}
