//! Methods for a resumed run. Calls that were checked before the run was stored are checked again, under the rules of the assistant that
//! resumes the run.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::batch::{Slot, SlotState};
use super::{AgentLoop, EventKind, LoopConfig};
use crate::message::{ToolArguments, ToolCall};

/// A ready call of a resumed run. The assistant applies its current rules to the call before the call runs.
#[derive(Clone, Debug)]
pub(crate) struct ReadyCall {
    pub(crate) sent: Arc<ToolCall>,
    pub(crate) is_edited: bool,
    /// Whether the call may run with its arguments without another decision.
    pub(crate) is_approved: bool,
}

impl ReadyCall {
    pub(crate) fn call_for_hooks<'c>(&'c self, as_it_would_run: &'c ToolCall) -> &'c ToolCall {
        if self.is_edited { as_it_would_run } else { &self.sent }
    }
}

impl AgentLoop {
    /// Takes over the configuration of the assistant that resumes the run. A call loses its approval if the parameters of its tool have
    /// changed.
    pub(crate) fn set_config(&mut self, config: &Arc<LoopConfig>) {
        let before = std::mem::replace(&mut self.config, config.clone());
        let fingerprint = |config: &LoopConfig, slot: &Slot| {
            config.tools.get(&slot.call.name).map_or(0, |tool| tool.fingerprint)
        };
        for slot in self.batch.slots.iter_mut().filter(|slot| slot.is_approved) {
            slot.is_approved = fingerprint(&before, slot) == fingerprint(config, slot);
        }
    }

    /// Returns whether calls must be checked again before they are decided or run. In the phase `Prepare`, resets the prepared calls and
    /// returns false.
    pub(crate) fn prepare_recheck(&mut self) -> bool {
        match self.phase {
            Phase::Approve | Phase::CallTools => true,
            Phase::Prepare => {
                self.reset_prepared();
                false
            }
            _ => false,
        }
    }

    fn reset_prepared(&mut self) {
        for at in self.batch.positions(|state| matches!(state, SlotState::Undecided(_) | SlotState::Ready)) {
            let Some(slot) = self.batch.slots.get_mut(at) else { continue };
            let call = slot.call.clone();
            if let Some(signature) = std::mem::replace(slot, Slot::new(call)).signature {
                self.repeats.undo(signature);
            }
            slot.state = SlotState::Started;
            self.tool_calls = self.tool_calls.saturating_sub(1);
        }
    }

    pub(crate) fn ready_call(&self, ord: u32) -> Option<ReadyCall> {
        let slot = self.batch.slots.get(usize::try_from(ord).ok()?)?;
        (slot.state == SlotState::Ready).then(|| ReadyCall {
            sent: slot.call.clone(),
            is_edited: slot.is_edited,
            is_approved: slot.is_approved,
        })
    }

    /// Marks a ready call as approved, because it began to run in an earlier process.
    pub(crate) fn approve(&mut self, ord: u32) {
        let slot = usize::try_from(ord).ok().and_then(|at| self.batch.slots.get_mut(at));
        if let Some(slot) = slot.filter(|slot| slot.state == SlotState::Ready) {
            slot.is_approved = true;
        }
    }

    /// Asks for another decision on a call that was ready to run. `checked` is `args` after coercion.
    pub(crate) fn ask_again(&mut self, ord: u32, args: ToolArguments, checked: ToolArguments) {
        let Ok(at) = usize::try_from(ord) else { return };
        let Some(slot) = self.batch.slots.get_mut(at).filter(|slot| slot.state == SlotState::Ready) else {
            return;
        };
        slot.shown = self.secrets.arguments(&slot.call.name, &checked);
        slot.args = Some(args);
        slot.mac = None;
        slot.is_approved = false;
        slot.asked_again = slot.asked_again.saturating_add(1);
        slot.state = SlotState::Undecided(checked.clone());
        self.phase = Phase::Approve;
        let (call_id, tool) = (slot.call.id.clone(), slot.call.name.clone());
        let request_id = self.request_id(at);
        self.emit(|_| EventKind::ApprovalRequired { call_id, tool, args: checked, request_id });
    }

    /// Replaces the arguments of a ready call. The caller has checked that the tool of the call has not begun to run.
    pub(crate) fn replace_args(&mut self, ord: u32, args: ToolArguments) {
        let slot = usize::try_from(ord).ok().and_then(|at| self.batch.slots.get_mut(at));
        if let Some(slot) = slot.filter(|slot| slot.state == SlotState::Ready) {
            slot.args = Some(args);
        }
    }
}
