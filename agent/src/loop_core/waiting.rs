//! Calls that wait for a decision, an answer or a result from outside of the loop.

use super::agent_loop::{Origin, Phase};
use super::batch::SlotState;
use super::{AgentLoop, ApprovalRequest, EventKind, PendingCall, RunPath, Step};
#[cfg(feature = "runtime")]
use crate::message::{ToolArguments, ToolCall};
use crate::step_key::{StepKey, StepKind};

impl AgentLoop {
    pub(super) fn approve_effect(&self) -> Step {
        Step::Approve { requests: self.requests() }
    }

    /// Returns the approval requests of this run, without those of its child runs.
    fn requests(&self) -> Vec<(StepKey, ApprovalRequest)> {
        self.requests_at(&self.path)
    }

    fn requests_at(&self, path: &RunPath) -> Vec<(StepKey, ApprovalRequest)> {
        let request = |at: usize| {
            let key = self.key(StepKind::Approval, at);
            let slot = self.batch.slots.get(at)?;
            let SlotState::Undecided(args) = &slot.state else { return None };
            let mut call = (*slot.call).clone();
            call.args = slot.shown.as_ref().unwrap_or(args).clone();
            let fingerprint = self.fingerprint(&call.name);
            let id = self.request_id(at);
            let request = ApprovalRequest::new(id, path.clone(), call, fingerprint, slot.mac.clone());
            let plan = self.secrets.plan(&slot.call.name);
            Some((key, request.with_args(args.clone()).with_plan(plan)))
        };
        self.batch.segment.clone().filter_map(request).collect()
    }

    pub(super) fn request_id(&self, at: usize) -> String {
        let asked_again = self.batch.slots.get(at).map_or(0, |slot| slot.asked_again);
        request_id(&self.key(StepKind::Approval, at), asked_again)
    }

    fn fingerprint(&self, tool: &str) -> u64 {
        self.config.tools.get(tool).map_or(0, |tool| tool.fingerprint)
    }

    /// Returns the approval requests of the run and its child runs, in call order.
    pub fn approval_requests(&self) -> Vec<ApprovalRequest> {
        let mut requests = Vec::new();
        self.visit(&self.path, &mut |run, path| {
            if run.phase == Phase::Approve {
                requests.extend(run.requests_at(path).into_iter().map(|(_, request)| request));
            }
        });
        requests
    }

    /// Calls `visit` for this run and for its child runs: parents first, children in call order. The children of a run are visited only
    /// while the run waits for results.
    pub(super) fn visit<'r>(&'r self, path: &RunPath, visit: &mut dyn FnMut(&'r Self, &RunPath)) {
        visit(self, path);
        if self.phase == Phase::Await {
            for (_, slot, child) in self.children() {
                child.visit(&Self::path_to(path, slot, child), visit);
            }
        }
    }

    /// Returns the position and id of each call whose result comes from outside.
    #[cfg(feature = "runtime")]
    pub(crate) fn deferred_calls(&self) -> Vec<(u32, String)> {
        let one = |at: usize| {
            let slot = self.batch.slots.get(at)?;
            matches!(slot.state, SlotState::Deferred(_)).then(|| (ord(at), slot.call.id.clone()))
        };
        if self.phase != Phase::Await {
            return Vec::new();
        }
        self.batch.segment.clone().filter_map(one).collect()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn checked_calls(&self) -> impl Iterator<Item = SignedCall> {
        self.batch.slots.iter().enumerate().filter_map(|(at, slot)| {
            let asked = match &slot.state {
                SlotState::Undecided(args) => Some(args.clone()),
                // A call with open questions is included, because it runs again after the answers.
                SlotState::Ready | SlotState::Asked(_) => None,
                _ => return None,
            };
            Some(SignedCall {
                at,
                request_id: self.request_id(at),
                key: self.key(StepKind::Tool, at),
                call: (*slot.effective()).clone(),
                fingerprint: self.fingerprint(&slot.call.name),
                shown: asked.as_ref().map(|asked| slot.shown.as_ref().unwrap_or(asked).clone()),
                asked,
                mac: slot.mac.clone(),
            })
        })
    }

    pub(super) fn await_effect(&self) -> Step {
        let handle = |at: usize| match &self.batch.slots.get(at)?.state {
            SlotState::Deferred(handle) => Some((self.key(StepKind::Await, at), handle.clone())),
            _ => None,
        };
        Step::Await { deferred: self.batch.segment.clone().filter_map(handle).collect() }
    }

    /// Returns the calls of the run and its child runs that wait for a decision, an input or a result from outside.
    pub fn pending(&self) -> Vec<PendingCall> {
        let mut pending = Vec::new();
        self.visit(&self.path, &mut |run, path| pending.extend(run.own_pending(path)));
        pending
    }

    fn own_pending(&self, path: &RunPath) -> impl Iterator<Item = PendingCall> {
        let questions = self.questions_at(path).map(|question| PendingCall::Question {
            call_id: question.call_id.clone(),
            tool: question.tool.clone(),
            path: path.clone(),
            question: Box::new(question),
        });
        let calls = self.batch.segment.clone().filter_map(|at| {
            let slot = self.batch.slots.get(at)?;
            let (call_id, tool, path) = (slot.call.id.clone(), slot.call.name.clone(), path.clone());
            match &slot.state {
                SlotState::Undecided(asked) if self.phase == Phase::Approve => {
                    let request_id = self.request_id(at);
                    let shown = || slot.shown.as_ref().unwrap_or(asked).clone();
                    let args = (!path.is_root()).then(shown);
                    Some(PendingCall::Approval { call_id, tool, request_id, args, path })
                }
                SlotState::Deferred(handle) if self.phase == Phase::Await => {
                    Some(PendingCall::Deferred { call_id, tool, handle: handle.clone(), path })
                }
                _ => None,
            }
        });
        calls.chain(questions)
    }

    /// Suspends the run if calls wait for a decision, an input or a result from outside. Returns the calls that wait.
    ///
    /// ```
    /// use agent::loop_core::{AgentLoop, LoopConfig};
    /// use agent::message::{Conversation, Message};
    ///
    /// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
    /// assert!(run.suspend().is_empty());                   // no call waits
    /// assert!(!run.is_suspended());
    /// ```
    pub fn suspend(&mut self) -> Vec<PendingCall> {
        let pending = self.pending();
        if !pending.is_empty() && !std::mem::replace(&mut self.is_suspended, true) {
            self.emit(|_| EventKind::RunSuspended { pending: pending.clone() });
        }
        pending
    }

    /// Resumes a suspended run.
    pub fn resume(&mut self) {
        if std::mem::take(&mut self.is_suspended) {
            self.emit(|_| EventKind::RunResumed);
        }
    }

    /// Returns whether the loop was read from its stored form, which may have been changed outside of this process.
    pub fn was_stored(&self) -> bool {
        matches!(self.origin, Origin::Stored)
    }

    /// Returns whether the run was [suspended](Self::suspend), and was not [resumed](Self::resume) since.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }
}

#[cfg(feature = "runtime")]
#[derive(Clone, Debug)]
pub(crate) struct SignedCall {
    #[cfg_attr(not(feature = "approvals-signed"), expect(dead_code, reason = "only signatures read it"))]
    pub(crate) at: usize,
    pub(crate) request_id: String,
    #[cfg_attr(not(feature = "approvals-signed"), expect(dead_code, reason = "only signatures read it"))]
    pub(crate) key: StepKey,
    /// The call, with the arguments that its tool receives.
    pub(crate) call: ToolCall,
    #[cfg_attr(not(feature = "approvals-signed"), expect(dead_code, reason = "only signatures read it"))]
    pub(crate) fingerprint: u64,
    /// The validated arguments, if the call waits for a decision.
    pub(crate) asked: Option<ToolArguments>,
    /// The arguments that the approval request shows, if the call waits for a decision.
    #[cfg_attr(not(feature = "approvals-signed"), expect(dead_code, reason = "only signatures read it"))]
    pub(crate) shown: Option<ToolArguments>,
    pub(crate) mac: Option<String>,
}

/// Returns the id of an approval request. `asked_again` is the number of earlier requests for the same call.
fn request_id(key: &StepKey, asked_again: u32) -> String {
    match asked_again {
        0 => key.to_string(),
        again => format!("{key}/{}", again.saturating_add(1)),
    }
}

#[cfg(feature = "runtime")]
fn ord(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
