//! Calls that were made outside of a run.

use serde::{Deserialize, Serialize};

use super::agent_loop::Phase;
use super::batch::Batch;
use super::{AgentLoop, RecordError, CallEnd};
use crate::message::{AssistantMessage, Message, Part, ToolCall};
use crate::{FailureCode, IntoOutcome, ToolOutcome};

/// Calls that were made outside of a run, with their outcomes, such as a background job or a button that a user pressed.
///
/// `Assistant::record` makes them a turn of the conversation.
///
/// ```
/// use agent::RecordedTurn;
/// use agent::message::ToolCall;
///
/// let turn = RecordedTurn::new()
///     .said("The export is done.")
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

    /// Sets the text beside the calls, in the name of the model.
    pub fn said(mut self, text: impl Into<String>) -> Self {
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

    /// Returns the calls with the messages that answer them.
    #[cfg(feature = "runtime")]
    pub(crate) fn results(&self) -> impl Iterator<Item = (&ToolCall, crate::message::ToolResultMessage)> {
        self.calls.iter().filter_map(|(call, outcome)| {
            let result = crate::ToolResult::new(&*call.id, &*call.name, settled(outcome.clone()));
            Some((call, result.to_message()?))
        })
    }
}

impl AgentLoop {
    /// Makes calls that were made elsewhere the first turn of the run, without asking a model or running anything.
    ///
    /// The model is asked next if `asks` is true or messages wait. Otherwise the run is over after this turn. The events are those of any
    /// turn.
    ///
    /// ```
    /// use agent::RecordedTurn;
    /// use agent::loop_core::{AgentLoop, Effect, LoopConfig};
    /// use agent::message::{Conversation, Message, ToolCall};
    ///
    /// let prompt = Message::user("Tell me when the export is done.");
    /// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [prompt]);
    /// run.record(RecordedTurn::new().with_call(ToolCall::new("1", "export", "{}"), "1,200 rows"), true)?;
    /// assert_eq!(run.added().len(), 3);
    /// assert!(matches!(run.next(), Effect::TurnEnd { .. }));
    /// # Ok::<(), agent::loop_core::RecordError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the run has already begun in another way. Nothing has changed then.
    pub fn record(&mut self, turn: RecordedTurn, asks: bool) -> Result<(), RecordError> {
        if self.phase != Phase::PollFirst {
            return Err(RecordError::WrongKind { wanted: self.phase.wanted() });
        }
        let RecordedTurn { text, calls } = turn;
        let said = Some(Part::text(text)).filter(|part| part.as_text().is_some_and(|text| !text.is_empty()));
        let (calls, outcomes): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
        let asked = calls.into_iter().map(|call| Part::tool_call(call.id, call.name, call.args));
        let reply = super::agent_loop::with_unique_ids(Message::from(AssistantMessage::new(
            said.into_iter().chain(asked),
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

/// A result that is still deferred counts as no result.
fn settled(outcome: ToolOutcome) -> ToolOutcome {
    match outcome {
        ToolOutcome::Deferred { .. } => {
            ToolOutcome::failed(FailureCode::new("no_result"), "The call was recorded without a result.")
        }
        outcome => outcome,
    }
}
