//! Replies that are not the end of an answer, because the provider paused or the token limit cut the reply.

use super::{AgentLoop, Limit, LimitReached};
use crate::message::{AssistantMessage, StopReason};

/// Maximum number of successive continuations of a paused reply.
const MAX_PAUSES: u32 = 10;

impl AgentLoop {
    /// Counts the continuation that this reply needs, or resets the count if it needs none.
    pub(super) fn count_continuation(&mut self, reply: &AssistantMessage) {
        let is_paused = reply.stop_reason == StopReason::Pause;
        // A full context window has no room for a continuation.
        let is_long = self.batch.is_cut && reply.stop_reason != StopReason::ContextFull;
        let has_text = || self.batch.slots.is_empty() && !reply.text().is_empty();
        let continues = is_long && self.config.continue_length > 0 && has_text();
        if !is_paused && !continues {
            self.continued = 0;
            return;
        }
        self.continued = self.continued.saturating_add(1);
        if is_paused && self.continued > MAX_PAUSES {
            let reached = LimitReached::new(Limit::Continuations, MAX_PAUSES.into(), self.continued.into());
            self.reached.get_or_insert(reached);
        }
    }

    /// Returns whether the last reply is a text that was cut and is to be continued.
    pub(super) fn continues_text(&self) -> bool {
        self.batch.is_cut
            && self.batch.slots.is_empty()
            && self.stop_reason != Some(StopReason::Pause)
            && (1..=self.config.continue_length).contains(&self.continued)
    }
}
