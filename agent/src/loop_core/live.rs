//! The loop: what follows without a wait, for drivers that look up in between.

use super::AgentLoop;
use super::agent_loop::Phase;

impl AgentLoop {
    /// Does one thing that waits for nothing: ends a call that will not run, or says how the run ended. False when
    /// there is none. Between two of them a live driver looks whether something came that counts more.
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

    /// Takes all the steps that wait for nothing, unless the driver does.
    pub(super) fn settle(&mut self) {
        while !self.is_live && self.step() {}
    }

    /// Whether the next thing to do is a [step](Self::step).
    #[cfg(feature = "runtime")]
    pub(crate) fn has_step(&self) -> bool {
        matches!(self.phase, Phase::Skip | Phase::Ending(_))
    }

    /// From now on the driver takes the [steps](Self::step) itself.
    #[cfg(feature = "runtime")]
    pub(crate) fn live(&mut self) {
        self.is_live = true;
    }

    /// A copy that anybody can go on with.
    #[cfg(feature = "runtime")]
    pub(crate) fn snapshot(&self) -> Self {
        let mut copy = self.clone();
        copy.is_live = false;
        copy.settle();
        copy
    }

    /// The calls that wait for a decision are not asked for any more when a message came that [counts
    /// more](Self::steered).
    #[cfg(feature = "runtime")]
    pub(crate) fn ask_no_more(&mut self) {
        if self.phase == Phase::Approve && self.batch.is_steered {
            self.advance();
            self.settle();
        }
    }
}
