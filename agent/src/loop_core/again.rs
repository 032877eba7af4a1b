//! The loop: calls that were checked before the run was resumed.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::batch::{Slot, State};
use super::{AgentLoop, EventKind, LoopConfig};
use crate::message::{ToolArguments, ToolCall};

/// A call that may run, as far as its run knows.
#[derive(Clone, Debug)]
pub(crate) struct ReadyCall {
    /// The call, as the model sent it.
    pub(crate) sent: ToolCall,
    /// Whether a person changed its arguments.
    pub(crate) is_edited: bool,
    /// Whether it was allowed to run with its arguments.
    pub(crate) is_approved: bool,
}

impl ReadyCall {
    /// Returns what hooks are asked about: the call of the model, or of the person who changed it.
    pub(crate) fn asked<'c>(&'c self, as_it_would_run: &'c ToolCall) -> &'c ToolCall {
        if self.is_edited { as_it_would_run } else { &self.sent }
    }
}

impl AgentLoop {
    /// Replaces the configuration by that of the driver that resumes the run. An approval counts for the tool that it was given for.
    pub(crate) fn set_config(&mut self, config: &Arc<LoopConfig>) {
        let before = std::mem::replace(&mut self.config, config.clone());
        let fingerprint = |config: &LoopConfig, slot: &Slot| {
            config.tools.get(&slot.call.name).map_or(0, |tool| tool.fingerprint)
        };
        for slot in self.batch.slots.iter_mut().filter(|slot| slot.is_approved) {
            slot.is_approved = fingerprint(&before, slot) == fingerprint(config, slot);
        }
    }

    /// Whether calls wait that were checked before the run is resumed. Those of a segment that is still prepared are prepared again.
    pub(crate) fn checks_again(&mut self) -> bool {
        match self.phase {
            Phase::Approve | Phase::CallTools => true,
            Phase::Prepare => {
                self.prepare_again();
                false
            }
            _ => false,
        }
    }

    fn prepare_again(&mut self) {
        for at in self.batch.positions(|state| matches!(state, State::Undecided(_) | State::Ready)) {
            let Some(slot) = self.batch.slots.get_mut(at) else { continue };
            let call = slot.call.clone();
            if let Some(signature) = std::mem::replace(slot, Slot::new(call)).signature {
                self.repeats.undo(signature);
            }
            slot.state = State::Started;
            self.tool_calls = self.tool_calls.saturating_sub(1);
        }
    }

    /// Returns the call at this position, if it may run.
    pub(crate) fn ready_call(&self, ord: u32) -> Option<ReadyCall> {
        let slot = self.batch.slots.get(usize::try_from(ord).ok()?)?;
        (slot.state == State::Ready).then(|| ReadyCall {
            sent: slot.call.clone(),
            is_edited: slot.is_edited,
            is_approved: slot.is_approved,
        })
    }

    /// Notes that a call which may run was allowed before: it had begun in a process that is gone.
    pub(crate) fn approve(&mut self, ord: u32) {
        let slot = usize::try_from(ord).ok().and_then(|at| self.batch.slots.get_mut(at));
        if let Some(slot) = slot.filter(|slot| slot.state == State::Ready) {
            slot.is_approved = true;
        }
    }

    /// Asks for a decision on a call that may run, because it would run with other arguments than were decided on, or needs a decision by
    /// now. `checked` are the arguments in their canonical form.
    pub(crate) fn ask_again(&mut self, ord: u32, args: ToolArguments, checked: ToolArguments) {
        let Ok(at) = usize::try_from(ord) else { return };
        let Some(slot) = self.batch.slots.get_mut(at).filter(|slot| slot.state == State::Ready) else {
            return;
        };
        slot.shown = self.secrets.arguments(&slot.call.name, &checked);
        slot.args = Some(args);
        slot.mac = None;
        slot.is_approved = false;
        slot.asked_again = slot.asked_again.saturating_add(1);
        slot.state = State::Undecided(checked.clone());
        self.phase = Phase::Approve;
        let (call_id, tool) = (slot.call.id.clone(), slot.call.name.clone());
        let request_id = self.request_id(at);
        self.tell(|_| EventKind::ApprovalRequired { call_id, tool, args: checked, request_id });
    }

    /// Replaces the arguments that a call runs with, if it has not begun.
    pub(crate) fn replace_args(&mut self, ord: u32, args: ToolArguments) {
        let slot = usize::try_from(ord).ok().and_then(|at| self.batch.slots.get_mut(at));
        if let Some(slot) = slot.filter(|slot| slot.state == State::Ready) {
            slot.args = Some(args);
        }
    }
}
