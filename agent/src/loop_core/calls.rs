//! The loop: the calls of a turn, from the start event to the result in the conversation.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::batch::{Slot, SlotState};
use super::guard::RepeatCheck;
use super::inputs::CallCoercions;
#[cfg(feature = "runtime")]
use super::restore::has_run;
use super::{
    AgentLoop, CallDecision, CallEnd, EventKind, Limit, LimitReached, LoopGuard, Ready, RecordError,
    Signature, Step,
};
use crate::message::{Message, OutcomeKind, ToolResultMessage};
use crate::step_key::StepKind;
use crate::tool::outcome::{OutcomeCode, ToolOutcome, ToolResult};
use crate::tool::progress::Progress;

const TRUNCATED: &str =
    "The call was not run: the reply was cut by its token limit, so the arguments may be incomplete.";
pub(super) const NOT_RUN: &str = "The call was not run:";
/// The metadata key of a result that was reused from an earlier call. A restored run does not count such a call as one that ran.
pub(super) const CACHED: &str = "agent:cached";
const STEERED: &str = "The call was not run, or was stopped, because of a new message.";

impl AgentLoop {
    /// Records that the call at this position is being prepared. Optional: without it, the start event is emitted when the result of
    /// preparing the call is recorded.
    ///
    /// # Errors
    /// Returns an error if the call is not the next call to prepare.
    pub fn record_call_start(&mut self, ord: u32) -> Result<(), RecordError> {
        let at = self.next_to_prepare(ord)?;
        self.start_call(at);
        Ok(())
    }

    /// Records the result of preparing the call at this position. Completes [`Step::Prepare`](super::Step::Prepare): record the calls
    /// one by one, in call order.
    ///
    /// # Errors
    /// Returns an error if the call is not the next call to prepare.
    pub fn record_prepared(&mut self, ord: u32, prepared: Result<Ready, CallEnd>) -> Result<(), RecordError> {
        let at = self.next_to_prepare(ord)?;
        self.prepare_call(at, prepared);
        self.settle();
        Ok(())
    }

    /// Records the decision on each call that waits for one, in the order of the requests. Completes
    /// [`Step::Approve`](super::Step::Approve). If one of the decisions is [`Later`](CallDecision::Later), none is recorded and all calls
    /// keep waiting.
    ///
    /// # Errors
    /// Returns an error if the run waits for no decisions, or if the number of decisions differs from the number of requests.
    pub fn record_decisions(&mut self, decided: Vec<CallDecision>) -> Result<(), RecordError> {
        if self.phase != Phase::Approve {
            return Err(self.unexpected());
        }
        let asked = self.batch.positions(|state| matches!(state, SlotState::Undecided(_)));
        if asked.len() != decided.len() {
            return Err(RecordError::WrongCount { wanted: asked.len(), got: decided.len() });
        }
        if decided.contains(&CallDecision::Later) {
            return Ok(());
        }
        for (at, decided) in asked.into_iter().zip(decided) {
            self.decide(at, decided);
        }
        self.settle();
        Ok(())
    }

    /// Records progress that the call at this position reports. The progress is ignored if the call is no longer running.
    ///
    /// # Errors
    /// Returns an error if the run neither runs calls nor waits for them, or if the call is not among these calls.
    pub fn record_call_update(&mut self, ord: u32, partial: Progress) -> Result<(), RecordError> {
        let at = self.running(ord)?;
        if let Some(slot) = self.batch.slots.get(at).filter(|slot| slot.state == SlotState::Ready) {
            let (call_id, tool) = (slot.call.id.clone(), slot.call.name.clone());
            self.emit(|_| EventKind::ToolExecutionUpdate { call_id, tool, partial });
        }
        Ok(())
    }

    /// Records the end of the call at this position, its result from outside, or the questions that it asks. Completes
    /// [`Step::CallTools`](super::Step::CallTools) and [`Step::Await`](super::Step::Await): record each call of the step once, in any
    /// order. A second end of the same call is ignored.
    ///
    /// # Errors
    /// Returns an error if the run neither runs calls nor waits for them, or if the call is not among these calls.
    pub fn record_call_end(&mut self, ord: u32, end: CallEnd) -> Result<(), RecordError> {
        if !end.asked.is_empty() {
            return self.record_questions(ord, end.asked);
        }
        let at = self.running(ord)?;
        self.end_call(at, end);
        self.settle();
        Ok(())
    }

    /// Returns the position of the call if it is the next one to prepare. Calls are prepared in order, because the end event of a call
    /// that does not run must directly follow its start event.
    fn next_to_prepare(&self, ord: u32) -> Result<usize, RecordError> {
        if self.phase != Phase::Prepare {
            return Err(self.unexpected());
        }
        let at = usize::try_from(ord).unwrap_or(usize::MAX);
        let is_open = |slot: &Slot| matches!(slot.state, SlotState::Planned | SlotState::Started);
        let mut calls = self.batch.segment.clone().zip(self.batch.current());
        let is_next = calls.find(|(_, slot)| is_open(slot)).is_some_and(|(first, _)| at == first);
        if is_next && self.batch.segment.contains(&at) {
            Ok(at)
        } else {
            Err(RecordError::NoSuchCall { ord })
        }
    }

    /// Returns the position of a call that may end now: it runs, or the run waits for its result.
    pub(super) fn running(&self, ord: u32) -> Result<usize, RecordError> {
        let at = usize::try_from(ord).unwrap_or(usize::MAX);
        let is_deferred = || {
            let slot = self.batch.slots.get(at);
            slot.is_some_and(|slot| matches!(slot.state, SlotState::Deferred(_) | SlotState::Child(_)))
        };
        let is_awaited = match self.phase {
            Phase::CallTools => true,
            Phase::Await => is_deferred(),
            _ => return Err(self.unexpected()),
        };
        if is_awaited && self.batch.segment.contains(&at) {
            Ok(at)
        } else {
            Err(RecordError::NoSuchCall { ord })
        }
    }

    pub(super) fn prepare_effect(&self) -> Step {
        // The first calls may already be prepared, by a failed attempt at this step or before the run was stored.
        let is_open = |slot: &&Slot| matches!(slot.state, SlotState::Planned | SlotState::Started);
        let prepared = self.batch.current().iter().take_while(|slot| !is_open(slot)).count();
        let open = self.batch.current().iter().skip(prepared);
        let key = self.key(StepKind::Prepare, self.batch.segment.start + prepared);
        Step::Prepare { key, calls: open.map(|slot| slot.call.clone()).collect() }
    }

    pub(super) fn call_effect(&self) -> Step {
        let slots = self.batch.segment.clone().zip(self.batch.current());
        let ready = slots.filter(|(_, slot)| matches!(slot.state, SlotState::Ready));
        let mut calls = Vec::with_capacity(ready.clone().count());
        calls.extend(ready.map(|(at, slot)| (self.key(StepKind::Tool, at), slot.effective())));
        Step::CallTools { calls }
    }

    pub(super) fn enter_segment(&mut self) {
        let is_skipped = self.batch.is_steered || self.batch.is_cut;
        self.phase = if is_skipped { Phase::Skip } else { Phase::Prepare };
    }

    /// Starts or ends one skipped call, or leaves the segment (a group of concurrent calls) after its last call. Changes one call at a
    /// time: a listener of the start event may send a steering message, and later calls then end for that reason.
    pub(super) fn skip_call(&mut self) {
        let is_unprepared = |slot: &Slot| matches!(slot.state, SlotState::Planned | SlotState::Started);
        let find = |is_next: &dyn Fn(&Slot) -> bool| {
            self.batch.segment.clone().zip(self.batch.current()).find(|(_, slot)| is_next(slot))
        };
        let next = find(&is_unprepared).or_else(|| find(&|slot| slot.state != SlotState::Ended));
        match next.map(|(at, slot)| (at, slot.state == SlotState::Planned)) {
            Some((at, true)) => self.start_call(at),
            Some((at, false)) => {
                let outcome = if self.batch.is_steered {
                    steered()
                } else {
                    ToolOutcome::failed(OutcomeCode::TRUNCATED, TRUNCATED)
                };
                self.end_call(at, CallEnd::new(outcome));
            }
            None if self.leave_segment() => self.enter_segment(),
            None => self.close_turn(),
        }
    }

    /// Moves the results of the segment (a group of concurrent calls) into the conversation. Returns whether there is another segment.
    pub(super) fn leave_segment(&mut self) -> bool {
        for at in self.batch.segment.clone() {
            if let Some(result) = self.batch.slots.get_mut(at).and_then(|slot| slot.result.take()) {
                self.add(Arc::new(Message::ToolResult(result)));
            }
        }
        let config = self.config.clone();
        self.batch.next_segment(&config)
    }

    pub(super) fn advance(&mut self) {
        let undecided = |state: &SlotState| matches!(state, SlotState::Undecided(_));
        if self.batch.is_steered && self.batch.any(undecided) {
            // Undecided and ready calls have not begun, so the steering message takes precedence over the pending decisions.
            for at in
                self.batch.positions(|state| matches!(state, SlotState::Undecided(_) | SlotState::Ready))
            {
                self.end_call(at, CallEnd::new(steered()));
            }
        }
        let waits = |state: &SlotState| {
            matches!(state, SlotState::Deferred(_) | SlotState::Asked(_) | SlotState::Child(_))
        };
        if self.phase == Phase::Prepare && self.batch.any(undecided) {
            self.ask_for_approvals();
        } else if self.batch.any(undecided) {
            self.phase = Phase::Approve;
        } else if self.batch.any(|state| *state == SlotState::Ready) {
            self.phase = Phase::CallTools;
        } else if self.batch.any(waits) {
            self.phase = Phase::Await;
        } else if self.leave_segment() {
            self.enter_segment();
        } else {
            self.close_turn();
        }
    }

    fn ask_for_approvals(&mut self) {
        self.phase = Phase::Approve;
        for at in self.batch.segment.clone() {
            let Some(slot) = self.batch.slots.get(at) else { continue };
            let SlotState::Undecided(args) = &slot.state else { continue };
            let (call_id, tool, args) = (slot.call.id.clone(), slot.call.name.clone(), args.clone());
            let request_id = self.request_id(at);
            self.emit(|_| EventKind::ApprovalRequired { call_id, tool, args, request_id });
        }
    }

    pub(super) fn start_call(&mut self, at: usize) {
        let Some(slot) = self.batch.slots.get_mut(at).filter(|slot| slot.state == SlotState::Planned) else {
            return;
        };
        slot.state = SlotState::Started;
        self.emit(|this| {
            let call = this.batch.slots.get(at).map(|slot| (*slot.call).clone());
            EventKind::ToolExecutionStart {
                call: call.unwrap_or_else(|| crate::message::ToolCall::new("", "", "")),
            }
        });
    }

    pub(super) fn prepare_call(&mut self, at: usize, prepared: Result<Ready, CallEnd>) {
        self.start_call(at);
        if self.batch.slots.get(at).is_none_or(|slot| slot.state != SlotState::Started) {
            return;
        }
        let Ready { args, signature, approval, mac, cached } = match prepared {
            Err(end) => {
                // The metadata of the outcome has the usage of a sub-agent that ended in an earlier process.
                let name = self.batch.slots.get(at).map(|slot| slot.call.name.clone());
                let metadata = end.outcome.metadata();
                if let Some(spent) = metadata.and_then(|metadata| self.spent_of(&name?, metadata)) {
                    self.count_child(spent);
                }
                // The tool ran in an earlier process, and this process has not counted the call yet.
                #[cfg(feature = "runtime")]
                if end.ran && has_run(&end.outcome) {
                    self.tool_calls += 1;
                    if let Some(budget) = &self.budget.0 {
                        // The result is ignored, because the call has already run.
                        let _ = budget.take_call();
                    }
                }
                // The loop guard counts this call, but does not refuse it, because the call has already ended.
                self.check_repetition(at, end.signature);
                return self.end_call(at, end);
            }
            Ok(ready) => ready,
        };
        if let Some(refusal) = self.check_repetition(at, signature) {
            return self.end_call(at, CallEnd::new(refusal));
        }
        if let Some(mut end) = cached {
            end.cached = true;
            return self.end_call(at, *end);
        }
        if let Some(refusal) = self.count_call() {
            return self.end_call(at, CallEnd::new(refusal));
        }
        if let Some(slot) = self.batch.slots.get_mut(at) {
            slot.shown = approval.as_ref().and_then(|args| self.secrets.arguments(&slot.call.name, args));
            slot.args = args;
            slot.mac = mac;
            slot.state = approval.map_or(SlotState::Ready, SlotState::Undecided);
        }
    }

    /// Counts the call for the loop guard. Returns an outcome if the call was repeated too often to run.
    fn check_repetition(&mut self, at: usize, signature: Option<Signature>) -> Option<ToolOutcome> {
        let guard = self.config.loop_guard?;
        let slot = self.batch.slots.get_mut(at)?;
        if self.config.tools.get(&slot.call.name).is_some_and(|tool| tool.allow_repeat) {
            return None;
        }
        let number = match self.repeats.begin(guard, signature?) {
            RepeatCheck::Allowed => {
                slot.signature = signature;
                return None;
            }
            RepeatCheck::Refuse(number) => number,
            RepeatCheck::End(number) => {
                self.reached.get_or_insert(repetition_limit(guard, number));
                number
            }
        };
        let name = &slot.call.name;
        let text = format!(
            "{NOT_RUN} this is call {number} of `{name}` with the same arguments, and nothing has changed \
             since. Use the result you have, change the arguments, or answer without this tool."
        );
        Some(ToolOutcome::failed(OutcomeCode::new("repeated_call"), text))
    }

    /// Counts a call that will run. Returns the outcome of the call if a limit forbids it.
    #[expect(clippy::cast_precision_loss, reason = "for a text")]
    fn count_call(&mut self) -> Option<ToolOutcome> {
        let own = self.config.limits.tool_calls.filter(|allowed| self.tool_calls >= *allowed);
        let of_tree = || self.budget.0.as_ref().and_then(|budget| budget.take_call().err());
        if let Some(allowed) = own.or_else(of_tree) {
            let reached = LimitReached::new(Limit::ToolCalls, allowed as f64, allowed as f64);
            self.reached.get_or_insert(reached);
            let (calls, taken) = if allowed == 1 { ("call", "it is") } else { ("calls", "all of them are") };
            let text = format!("{NOT_RUN} no more than {allowed} tool {calls} may run, and {taken} taken.");
            return Some(ToolOutcome::failed(OutcomeCode::new("limit"), text));
        }
        self.tool_calls += 1;
        None
    }

    pub(super) fn decide(&mut self, at: usize, decided: CallDecision) {
        let Some(slot) = self.batch.slots.get_mut(at) else { return };
        let call_id = slot.call.id.clone();
        let (allowed, edited, end) = match decided {
            CallDecision::Later => return,
            CallDecision::Allow(edited) => {
                slot.state = SlotState::Ready;
                slot.mac = None;
                slot.is_approved = true;
                let is_edited = edited.is_some();
                // If an earlier decision changed the arguments, the call stays marked as edited.
                slot.is_edited |= is_edited;
                slot.args = edited.or(slot.args.take());
                (true, is_edited, None)
            }
            CallDecision::AllowEnded(end) => (true, end.edited_args.is_some(), Some(end)),
            CallDecision::Deny(message) => {
                let outcome = ToolOutcome::denied(OutcomeCode::DENIED, message);
                (false, false, Some(CallEnd::new(outcome)))
            }
        };
        self.emit(|_| EventKind::ApprovalResolved { call_id, allowed, edited });
        if let Some(end) = end {
            self.end_call(at, end);
        }
    }

    /// Ends a call, or lets it wait if its outcome is deferred. Each call ends once: later ends are ignored.
    pub(super) fn end_call(&mut self, at: usize, mut end: CallEnd) {
        self.start_call(at);
        let counts = match self.batch.slots.get(at).map(|slot| &slot.state) {
            None | Some(SlotState::Ended) => return,
            Some(SlotState::Planned | SlotState::Started) => false,
            Some(SlotState::Undecided(_) | SlotState::Ready) => end.ran,
            Some(SlotState::Deferred(_) | SlotState::Asked(_) | SlotState::Child(_)) => true,
        };
        self.end_child_of(at, &mut end);
        let Some(slot) = self.batch.slots.get_mut(at) else { return };
        if let ToolOutcome::Deferred { handle } = end.outcome {
            slot.state = SlotState::Deferred(handle);
            slot.coercions = end.coercions;
            slot.mac = None;
            return;
        }
        if !counts && matches!(slot.state, SlotState::Undecided(_) | SlotState::Ready) {
            // The call was counted against the limit when it was prepared, but did not run.
            self.tool_calls = self.tool_calls.saturating_sub(1);
            if let Some(budget) = &self.budget.0 {
                budget.return_call();
            }
        }
        let signature = slot.signature.take();
        let name = slot.call.name.clone();
        if slot.is_edited && end.edited_args.is_none() {
            end.edited_args.clone_from(&slot.args);
        }
        if let Some((signature, guard)) = signature.zip(self.config.loop_guard) {
            // Answers of a sub-agent differ in words even if they say the same, so all of them count as equal results.
            let is_child = self.config.tools.get(&name).is_some_and(|tool| tool.of_assistant);
            let compared = |outcome: &ToolOutcome| {
                if is_child {
                    Signature::of_outcome(&ToolOutcome::aborted(""))
                } else {
                    Signature::of_outcome(outcome)
                }
            };
            let result = end.ran.then(|| compared(&end.outcome));
            if let Some(number) = self.repeats.end(guard, signature, result) {
                self.reached.get_or_insert(repetition_limit(guard, number));
            }
        }
        self.count_retries(&name, &mut end.outcome);
        let Some(slot) = self.batch.slots.get_mut(at) else { return };
        let CallEnd {
            outcome,
            mut coercions,
            control,
            ran,
            cached,
            attempt,
            duration_ms,
            handle,
            edited_args,
            ..
        } = end;
        if coercions.is_empty() {
            coercions = std::mem::take(&mut slot.coercions);
        }
        if !coercions.is_empty() {
            let (call_id, tool) = (slot.call.id.clone(), name.clone());
            self.coercions.push(CallCoercions { call_id, tool, coercions: coercions.clone() });
        }
        let result = ToolResult::new(&*slot.call.id, name, outcome).with_coercions(coercions);
        // Only the event needs a copy of the result, and a muted run emits no event.
        let (result, message) = if self.is_muted {
            (None, result.into_message())
        } else {
            (Some(result.clone()), result.into_message())
        };
        let mut message = message
            .unwrap_or_else(|| ToolResultMessage::new(&*slot.call.id, &*slot.call.name, OutcomeKind::Failed));
        message.edited_args = edited_args;
        if cached {
            message.metadata.insert(CACHED.to_owned(), true.into());
        }
        let own = self.config.tools.get(&slot.call.name).and_then(|tool| tool.max_result_bytes);
        super::large::cut(&mut message, own.unwrap_or(self.config.max_result_bytes), handle.as_deref());
        slot.state = SlotState::Ended;
        slot.mac = None;
        slot.control = control;
        slot.result = Some(message);
        let Some(result) = result else { return self.skip_event() };
        self.emit(|_| EventKind::ToolExecutionEnd { result, control, ran, cached, attempt, duration_ms });
    }

    /// Ends the sub-agent for which a call waits. If the call was interrupted, its outcome then tells how many decisions and results were
    /// missing.
    fn end_child_of(&mut self, at: usize, end: &mut CallEnd) {
        let waits = self.batch.slots.get_mut(at).filter(|slot| matches!(slot.state, SlotState::Child(_)));
        let state = waits.map(|slot| std::mem::replace(&mut slot.state, SlotState::Started));
        let Some(SlotState::Child(child)) = state else { return };
        let mut reason = "its call ended".to_owned();
        if let ToolOutcome::Interrupted { reason: own, .. } = &mut end.outcome {
            let number = child.waits_for();
            let decisions = if number == 1 { "decision or result" } else { "decisions or results" };
            let text = format!("The sub-agent was stopped while it waited for {number} {decisions}.");
            reason = std::mem::replace(own, text);
        }
        self.end_child(at, child, &reason);
    }

    /// Counts an outcome that asks for a better call, and returns whether it was counted. If the tool has used all its retries, the
    /// outcome becomes a failure with the code `retries_exhausted`.
    pub(super) fn count_retries(&mut self, tool: &str, outcome: &mut ToolOutcome) -> bool {
        let exhausted = OutcomeCode::new("retries_exhausted");
        let (asks, was_last) = match outcome {
            ToolOutcome::Retry { .. } => (true, false),
            ToolOutcome::Failed { code, .. } => (*code == OutcomeCode::INVALID_ARGUMENTS, *code == exhausted),
            _ => (false, false),
        };
        if !asks && !was_last {
            return false;
        }
        let own = self.config.tools.get(tool);
        let max = own.and_then(|tool| tool.max_retries).unwrap_or(self.config.max_retries);
        let bytes = own.and_then(|tool| tool.max_result_bytes).unwrap_or(self.config.max_result_bytes);
        let tries = self.tries.entry(tool.to_owned()).or_default();
        // A stored report may be cut in the middle, so only the beginning that a cut leaves is compared.
        let is_progress = tries.register(super::large::beginning(&outcome.text(), bytes));
        if was_last {
            // The run is being restored, and its stored message already has the code `retries_exhausted`.
            return true;
        }
        let (is_spent, all) = (tries.is_exhausted(max), tries.count());
        let used = match self.retries.get_mut(tool) {
            Some(used) => used,
            None => self.retries.entry(tool.to_owned()).or_default(),
        };
        if !is_spent && is_progress {
            return true;
        }
        if !is_spent && *used < max {
            *used += 1;
            return true;
        }
        let which = match max.saturating_add(1).max(all) {
            1 => "only try".to_owned(),
            tries => format!("last of {tries} tries"),
        };
        let text = format!(
            "{}\n\nThis was the {which} of `{tool}` in this run. Do not call it again; go on without it.",
            outcome.text(),
        );
        let metadata = outcome.metadata().cloned().unwrap_or_default();
        *outcome = ToolOutcome::Failed { code: exhausted, message: text, metadata };
        true
    }

    /// Ends the turn and all its calls, so that the conversation has a result for every call.
    pub(super) fn abort_calls(&mut self, reason: &str) {
        loop {
            // Prepared calls end last, as in `skip_call`.
            let checked = |state: &SlotState| matches!(state, SlotState::Undecided(_) | SlotState::Ready);
            let checked = self.batch.positions(checked);
            let others = self.batch.segment.clone().filter(|at| !checked.contains(at)).collect::<Vec<_>>();
            for at in others.into_iter().chain(checked) {
                self.end_call(at, CallEnd::new(ToolOutcome::aborted(reason)));
            }
            if !self.leave_segment() {
                return self.end_turn();
            }
        }
    }

    /// Returns the id and the tool name of each call that has started and not ended, in call order.
    pub fn running_calls(&self) -> impl Iterator<Item = (&str, &str)> {
        let begun = self.batch.current().iter();
        let begun = begun.filter(|slot| !matches!(slot.state, SlotState::Planned | SlotState::Ended));
        begun.map(|slot| (&*slot.call.id, &*slot.call.name))
    }
}

fn repetition_limit(guard: LoopGuard, number: u32) -> LimitReached {
    LimitReached::new(Limit::RepeatedCalls, guard.end_at.into(), number.into())
}

/// Returns the outcome of a call that did not run, or was stopped, because of a steering message.
pub(crate) fn steered() -> ToolOutcome {
    ToolOutcome::Interrupted { code: OutcomeCode::STEERED, reason: STEERED.to_owned() }
}
