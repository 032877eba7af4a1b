//! Validates decisions against the run that waits for them.

use std::sync::Arc;

use super::sign::canonical_args;
use super::{Decision, Decisions, Signer};
use crate::loop_core::{AgentLoop, ApprovalRequest};
use crate::message::{Conversation, Message, ToolArguments};
use crate::runtime::config::Config;
use crate::runtime::error::ResumeError;
use crate::tool::outcome::ToolOutcome;

/// The validated input of a resumed run: decisions in the order of the requests, results by position.
#[derive(Default)]
pub(in crate::runtime) struct Resumption {
    pub(in crate::runtime) decided: Vec<(ApprovalRequest, Decision)>,
    pub(in crate::runtime) arrived: Vec<(u32, ToolOutcome)>,
}

/// Checks that the run waits for these decisions and results.
pub(in crate::runtime) fn check(
    core: &AgentLoop,
    decisions: Decisions,
    config: &Config,
) -> Result<Resumption, ResumeError> {
    let (requests, deferred) = (core.approval_requests(), core.deferred_calls());
    if core.end().is_some() {
        return Err(ResumeError::Over);
    }
    let missing = core.prompt_tools().filter(|tool| !config.rules.tools.contains_key(*tool));
    let tools: Vec<String> = missing.map(str::to_owned).collect();
    if !tools.is_empty() {
        return Err(ResumeError::MissingTools { tools });
    }
    let Decisions { made, arrived } = decisions;
    let mut resumption = Resumption::default();
    for one in &made {
        if !requests.iter().any(|request| request.request_id == one.request.request_id) {
            return Err(ResumeError::NotPending { request_id: one.request.request_id.clone() });
        }
    }
    if core.was_stored() {
        verify(core, config.signer.as_deref())?;
    }
    for request in requests {
        let mut of_it = made.iter().filter(|one| one.request.request_id == request.request_id);
        let request_id = || request.request_id.clone();
        let Some(one) = of_it.next() else {
            // The approver of this assistant decides instead, after the run was resumed.
            if made.is_empty() && config.approver.is_some() {
                break;
            }
            return Err(ResumeError::Undecided { request_id: request_id() });
        };
        if of_it.next().is_some() {
            return Err(ResumeError::AnsweredTwice { id: request_id() });
        }
        if let Some(what) = difference(&one.request, &request) {
            return Err(ResumeError::ApprovalMismatch { request_id: request_id(), what });
        }
        let decision = one.decision.clone();
        resumption.decided.push((request, decision));
    }
    for one in arrived {
        let Some((ord, _)) = deferred.iter().find(|(_, call_id)| *call_id == one.call_id) else {
            return Err(ResumeError::NoSuchCall { call_id: one.call_id });
        };
        let ord = *ord;
        if resumption.arrived.iter().any(|(other, _)| *other == ord) {
            return Err(ResumeError::AnsweredTwice { id: one.call_id });
        }
        if matches!(one.outcome, ToolOutcome::Deferred { .. }) {
            return Err(ResumeError::StillDeferred { call_id: one.call_id });
        }
        resumption.arrived.push((ord, one.outcome));
    }
    Ok(resumption)
}

/// Returns whether a run can be resumed in this conversation: it is empty, or equal to the conversation of the run.
pub(in crate::runtime) fn can_resume_in(conversation: &Conversation, of_run: &Conversation) -> bool {
    let same = |(one, other): (&Arc<Message>, &Arc<Message>)| {
        // A message that was stored and loaded may differ in form, but its stored form is the same.
        Arc::ptr_eq(one, other)
            || serde_json::to_value(&**one)
                .ok()
                .is_some_and(|one| serde_json::to_value(&**other).is_ok_and(|other| one == other))
    };
    conversation.is_empty()
        || (conversation.len() == of_run.len() && conversation.shared().iter().zip(of_run.shared()).all(same))
}

/// Verifies the signatures of a stored run: those of the calls that run now or after a decision, and that of the state, which determines
/// these calls and the progress of the run.
pub(in crate::runtime) fn verify(core: &AgentLoop, signer: Option<&Signer>) -> Result<(), ResumeError> {
    if !core.state().is_empty() && signer.is_none() {
        return Err(ResumeError::NotSigned);
    }
    for call in core.checked_calls() {
        let signer = signer.ok_or(ResumeError::NotSigned)?;
        if call.mac.as_deref().is_some_and(|mac| signer.verify_call(mac, &call)) {
            continue;
        }
        return Err(match call.asked {
            Some(_) => ResumeError::ApprovalMismatch { request_id: call.request_id, what: "signature" },
            None => ResumeError::Tampered { call_id: call.call.id },
        });
    }
    let is_signed =
        |signer: &Signer| core.mac().is_some_and(|mac| signer.verify_state(mac, &core.signed_state()));
    if signer.is_some_and(|signer| !is_signed(signer)) {
        return Err(ResumeError::Changed);
    }
    Ok(())
}

/// Returns the first part of the request that was decided on that differs from the one that waits.
fn difference(seen: &ApprovalRequest, waits: &ApprovalRequest) -> Option<&'static str> {
    let same = [
        (seen.call.id == waits.call.id, "call"),
        (seen.call.name == waits.call.name, "tool"),
        (is_same_json(&seen.call.args, &waits.call.args), "arguments"),
        (seen.fingerprint == waits.fingerprint, "schema"),
        (seen.mac == waits.mac, "signature"),
    ];
    same.into_iter().find(|(is_same, _)| !is_same).map(|(_, what)| what)
}

/// Returns whether the arguments are equal in any order of keys, because JSON columns of databases do not keep the order.
fn is_same_json(one: &ToolArguments, other: &ToolArguments) -> bool {
    one == other || canonical_args(one) == canonical_args(other)
}
