//! Replies that are not the end of an answer, because the provider paused or the token limit cut the reply.

use super::{AgentLoop, Limit, LimitReached};
use crate::message::continued::continuation;
use crate::message::{AssistantMessage, Message, StopReason};

/// Maximum number of successive continuations of a paused reply.
const MAX_PAUSES: u32 = 10;

impl AgentLoop {
    /// Counts the continuation that this reply needs, or resets both counts if the reply needs none. A cut reply does not reset the count
    /// of pauses, and a paused reply does not reset the count of cuts. Otherwise, replies that alternate between both might never end.
    pub(super) fn count_continuation(&mut self, reply: &AssistantMessage) {
        let is_paused = reply.stop_reason == StopReason::Pause;
        // A full context window has no room for a continuation.
        let is_long = self.batch.is_cut && reply.stop_reason != StopReason::ContextFull;
        let has_text = || self.batch.slots.is_empty() && !reply.text().is_empty();
        let continues = is_long && self.config.continue_length > 0 && has_text();
        if is_paused {
            self.paused = self.paused.saturating_add(1);
        } else if continues {
            self.continued = self.continued.saturating_add(1);
        } else {
            (self.paused, self.continued) = (0, 0);
        }
        if self.paused > MAX_PAUSES {
            let reached = LimitReached::new(Limit::Continuations, MAX_PAUSES.into(), self.paused.into());
            self.reached.get_or_insert(reached);
        }
    }

    /// Resets the counts before a message that begins another answer.
    pub(super) fn begin_answer(&mut self, message: &Message) {
        if !matches!(message, Message::Custom(_)) || *message != continuation() {
            (self.paused, self.continued) = (0, 0);
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
