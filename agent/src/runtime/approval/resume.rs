//! Validates decisions against the run that waits for them.

use std::sync::Arc;

use super::sign::canonical_args;
use super::{Decision, Decisions, Signer};
use crate::loop_core::{AgentLoop, ApprovalRequest, StateError};
use crate::message::{Conversation, Message, ToolArguments};
use crate::runtime::assistant::Config;
use crate::tool::outcome::ToolOutcome;

/// The error for a suspended run that cannot be resumed with these decisions. Nothing has changed, and the run still waits.
///
/// ```
/// # /// Sends money.
/// # #[agent::tool(approval = "always")] async fn send(to: String) {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = agent::ScriptedModel::new([agent::model::reply().tool_call("send", r#"{"to": "Ann"}"#)]);
/// # let assistant = agent::Assistant::builder(model).tools(agent::tools![send]).build()?;
/// use agent::{Decisions, ResumeError};
///
/// let suspended = assistant.prompt("Send it to Ann.").await?.snapshot.expect("it waits");
/// let error = assistant.resume(&suspended, Decisions::new()).await.unwrap_err();
/// assert!(matches!(error.as_resume_error(), Some(ResumeError::Undecided { .. })));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The run has ended, so it cannot be resumed.
    #[error("the run is over")]
    Over,
    /// The assistant has messages that the suspended run does not have.
    #[error(
        "the conversation went on without the suspended run; resume it with an assistant of that conversation, or of none"
    )]
    ConversationMovedOn,
    /// The decision was made before, or belongs to another run.
    #[error(
        "request `{request_id}` is not waiting for a decision: it was decided before, or belongs to another run"
    )]
    #[non_exhaustive]
    NotPending {
        /// The request.
        request_id: String,
    },
    /// The request that was decided on differs from the one that waits, or one of them was tampered with. If `what` is `signature`, the
    /// run may also have been suspended without an approval key or with another one.
    #[error(
        "the decision on `{request_id}` does not count: its {what} is not what waits for approval{}",
        if *what == "signature" { ". The run was suspended without an approval key or with another one, or it was changed since" } else { "" }
    )]
    #[non_exhaustive]
    ApprovalMismatch {
        /// The request.
        request_id: String,
        /// The part that differs.
        what: &'static str,
    },
    /// A decision is missing. Requests of the same reply must be decided together.
    #[error("no decision on `{request_id}`: the calls of a reply that need approval are decided together")]
    #[non_exhaustive]
    Undecided {
        /// The request.
        request_id: String,
    },
    /// The run was stored, and the assistant has no approval key to verify that it was not changed.
    #[error(
        "the suspended run was stored, and a stored run is resumed only where its calls and its state are signed: the assistant has no approval key. Give the same one to the assistant that suspends and to the one that resumes (`AssistantBuilder::approval_key`, feature `approvals-signed`); a run that was suspended without a key is resumed in its own process, or prompted anew"
    )]
    NotSigned,
    /// A call that would run without a decision does not have the assistant's signature.
    #[error(
        "call `{call_id}` of the stored run does not have this assistant's signature: the run was suspended without an approval key or with another one, or it was changed since (which of these cannot be told)"
    )]
    #[non_exhaustive]
    Tampered {
        /// The call.
        call_id: String,
    },
    /// The state of the stored run does not have the assistant's signature.
    #[error(
        "the stored run does not have this assistant's signature: it was suspended without an approval key or with another one, or it was changed since (which of these cannot be told)"
    )]
    Changed,
    /// The stored state of the run is not what the assistant registered.
    #[error("{0}")]
    State(#[source] StateError),
    /// The call does not wait for a result from outside, or already has its result.
    #[error("call `{call_id}` is not waiting for a result")]
    #[non_exhaustive]
    NoSuchCall {
        /// The call.
        call_id: String,
    },
    /// A call has two decisions or two results.
    #[error("`{id}` is answered twice")]
    #[non_exhaustive]
    AnsweredTwice {
        /// The request, or the call.
        id: String,
    },
    /// The delivered outcome is deferred again, so it is not a result.
    #[error("the outcome delivered for call `{call_id}` is not a result: it is deferred itself")]
    #[non_exhaustive]
    StillDeferred {
        /// The call.
        call_id: String,
    },
}

crate::error_text::debug_is_the_sentence!(ResumeError);

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
