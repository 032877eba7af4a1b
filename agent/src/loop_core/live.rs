//! The loop: steps that need no waiting, for drivers that check for news in between.

use super::AgentLoop;
use super::agent_loop::Phase;

impl AgentLoop {
    /// Takes one step that needs no waiting: ends a call that will not run, or announces how the run ended. Returns false if there is none.
    /// Between two steps, a live driver checks whether something more important arrived.
    pub(crate) fn step(&mut self) -> bool {
        match &self.phase {
            Phase::Skip => self.skip_call(),
            Phase::Ending(end) => {
                let end = end.clone();
                self.finish(end);
            }
            _ => return false,
        }
        true
    }

    /// Takes all steps that need no waiting, unless the driver takes them itself.
    pub(super) fn settle(&mut self) {
        while !self.is_live && self.step() {}
    }

    /// Whether the next thing to do is a [step](Self::step).
    #[cfg(feature = "runtime")]
    pub(crate) fn has_step(&self) -> bool {
        matches!(self.phase, Phase::Skip | Phase::Ending(_))
    }

    /// From now on, the driver takes the [steps](Self::step) itself.
    #[cfg(feature = "runtime")]
    pub(crate) fn live(&mut self) {
        self.is_live = true;
    }

    /// Returns a copy that any driver can continue.
    #[cfg(feature = "runtime")]
    pub(crate) fn snapshot(&self) -> Self {
        let mut copy = self.clone();
        copy.is_live = false;
        copy.settle();
        copy
    }

    /// Stops asking for decisions on the waiting calls if a [steering message](Self::steered) takes precedence.
    #[cfg(feature = "runtime")]
    pub(crate) fn ask_no_more(&mut self) {
        if self.phase == Phase::Approve && self.batch.is_steered {
            self.advance();
            self.settle();
        }
    }
}
