//! Validates decisions, inputs and results against the suspended run that waits for them.

use std::sync::Arc;

use super::sign::canonical_args;
use super::{Decision, Decisions, DeliveredOutcome, MadeDecision, Signer};
use crate::loop_core::{AgentLoop, ApprovalRequest, MAX_DEPTH, PendingCall, RunPath};
use crate::message::{Conversation, Message, ToolArguments};
use crate::runtime::config::Config;
use crate::runtime::error::ResumeError;
use crate::tool::outcome::ToolOutcome;
use crate::tool::question::{Question, QuestionInput, RecordedInput};

/// The validated input of a resumed run, with decisions in the order of the requests. Each `u32` is the position of a call (`ord`).
#[derive(Default)]
pub(in crate::runtime) struct Resumption {
    pub(in crate::runtime) decided: Vec<(ApprovalRequest, Decision)>,
    pub(in crate::runtime) arrived: Vec<(u32, ToolOutcome)>,
    /// The inputs to the questions of a call, in order. For an empty list, the application's function answers the questions.
    pub(in crate::runtime) answered: Vec<(u32, Vec<QuestionInput>)>,
    /// The sub-agents that continue. All others keep waiting.
    pub(in crate::runtime) children: Vec<(u32, Resumption)>,
}

/// Checks that the run can be resumed, and that the run waits for each given decision, input and result. Verifies the signatures of a
/// stored run.
pub(in crate::runtime) fn check(
    core: &AgentLoop,
    decisions: Decisions,
    config: &Config,
) -> Result<Resumption, ResumeError> {
    let Decisions { made, arrived, inputs } = decisions;
    let requests = core.approval_requests();
    if core.end().is_some() {
        return Err(ResumeError::Over);
    }
    let missing = core.prompt_tools().filter(|tool| !config.rules.tools.contains_key(*tool));
    let tools: Vec<String> = missing.map(str::to_owned).collect();
    if !tools.is_empty() {
        return Err(ResumeError::MissingTools { tools });
    }
    for one in &made {
        if !requests.iter().any(|request| request.request_id == one.request.request_id) {
            return Err(ResumeError::NotPending { request_id: one.request.request_id.clone() });
        }
    }
    let depth = core.depth();
    if depth > usize::from(MAX_DEPTH) {
        return Err(ResumeError::TooDeep { depth, max: MAX_DEPTH.into() });
    }
    if core.was_stored() {
        verify(core, config.signer.as_deref())?;
    }
    let arrived = addressed(&core.pending(), arrived)?;
    let questions = core.questions();
    check_inputs(&questions, &inputs)?;
    let (can_ask, can_answer) = (config.approver.is_some(), config.answerer.is_some());
    let input = TreeInput { requests, made, arrived, inputs, can_ask, can_answer };
    let resumption = input.of_run(core, &RunPath::default())?;
    // Without new input, a run that waits for sub-agents or for answers to questions would only be suspended again.
    if resumption.is_empty() && (depth > 0 || !questions.is_empty()) {
        let first = input.requests.first().map(|request| &request.request_id);
        if let Some(first) = first.or_else(|| questions.first().map(|question| &question.request_id)) {
            return Err(ResumeError::Undecided { request_id: first.clone() });
        }
    }
    Ok(resumption)
}

fn check_inputs(questions: &[Question], inputs: &[RecordedInput]) -> Result<(), ResumeError> {
    for (at, RecordedInput { question: seen, input }) in inputs.iter().enumerate() {
        let request_id = || seen.request_id.clone();
        let Some(waits) = questions.iter().find(|waits| waits.request_id == seen.request_id) else {
            return Err(ResumeError::NotPending { request_id: request_id() });
        };
        let earlier = inputs.iter().take(at);
        if earlier.into_iter().any(|earlier| earlier.question.request_id == seen.request_id) {
            return Err(ResumeError::AnsweredTwice { id: request_id() });
        }
        let same = [
            (seen.path == waits.path, "path"),
            (seen.call_id == waits.call_id && seen.tool == waits.tool, "call"),
            (seen.asks_like(waits), "question"),
        ];
        if let Some((_, what)) = same.into_iter().find(|(is_same, _)| !is_same) {
            return Err(ResumeError::ApprovalMismatch { request_id: request_id(), what });
        }
        let QuestionInput::Accept(value) = input else { continue };
        if let Err(error) = waits.check(value) {
            return Err(ResumeError::InputRefused { request_id: request_id(), error });
        }
    }
    Ok(())
}

/// Finds the deferred call of each result. Returns each result with the path of the waiting run and the id of the call.
fn addressed(
    pending: &[PendingCall],
    arrived: Vec<DeliveredOutcome>,
) -> Result<Vec<(RunPath, String, ToolOutcome)>, ResumeError> {
    let mut addressed: Vec<(RunPath, String, ToolOutcome)> = Vec::with_capacity(arrived.len());
    for DeliveredOutcome { call_id: sent, path: named, outcome } in arrived {
        let mut waiting = pending.iter().filter_map(|call| match call {
            PendingCall::Deferred { call_id, path, .. } => {
                let is_named = named.as_ref().is_none_or(|named| named == path);
                (*call_id == sent && is_named).then_some(path)
            }
            PendingCall::Approval { .. } | PendingCall::Question { .. } => None,
        });
        let Some(path) = waiting.next() else { return Err(ResumeError::NoSuchCall { call_id: sent }) };
        if waiting.next().is_some() {
            return Err(ResumeError::Ambiguous { call_id: sent });
        }
        if addressed.iter().any(|(other, call_id, _)| other == path && *call_id == sent) {
            return Err(ResumeError::AnsweredTwice { id: sent });
        }
        if matches!(outcome, ToolOutcome::Deferred { .. }) {
            return Err(ResumeError::StillDeferred { call_id: sent });
        }
        addressed.push((path.clone(), sent, outcome));
    }
    Ok(addressed)
}

struct TreeInput {
    requests: Vec<ApprovalRequest>,
    made: Vec<MadeDecision>,
    arrived: Vec<(RunPath, String, ToolOutcome)>,
    inputs: Vec<RecordedInput>,
    /// Whether a function of the application decides on calls without a decision.
    can_ask: bool,
    can_answer: bool,
}

impl TreeInput {
    fn of_run(&self, run: &AgentLoop, path: &RunPath) -> Result<Resumption, ResumeError> {
        let mut resumption = Resumption::default();
        let requests: Vec<_> = self.requests.iter().filter(|request| request.path == *path).collect();
        let is_decided = |request: &&ApprovalRequest| {
            self.made.iter().any(|one| one.request.request_id == request.request_id)
        };
        // A sub-agent without any decision keeps waiting, so its requests may stay undecided.
        if path.is_root() || requests.iter().any(is_decided) {
            self.decide(&requests, &mut resumption)?;
        }
        for (ord, call_id) in run.deferred_calls() {
            let mut arrived = self.arrived.iter().filter(|(of, id, _)| of == path && *id == call_id);
            resumption.arrived.extend(arrived.next().map(|(_, _, outcome)| (ord, outcome.clone())));
        }
        for (ord, questions) in run.asking_calls() {
            if let Some(inputs) = self.inputs_of(questions)? {
                resumption.answered.push((ord, inputs));
            }
        }
        for (ord, path, child) in run.waiting_children(path) {
            let of_child = self.of_run(child, &path)?;
            let asks = self.can_ask && !child.approval_requests().is_empty();
            // A child without pending calls was working when the run was stored, so the child continues without input.
            if asks || !of_child.is_empty() || child.pending().is_empty() {
                resumption.children.push((ord, of_child));
            }
        }
        Ok(resumption)
    }

    /// Returns the inputs to the questions of a call. The list is empty if a function of the application answers them. Returns `None` if
    /// the call keeps waiting.
    fn inputs_of(&self, questions: &[Question]) -> Result<Option<Vec<QuestionInput>>, ResumeError> {
        let of_question = |question: &Question| {
            let mut inputs = self.inputs.iter().filter(|given| given.input != QuestionInput::Later);
            inputs.find(|given| given.question.request_id == question.request_id)
        };
        let given: Vec<_> = questions.iter().filter_map(of_question).collect();
        if given.is_empty() {
            return Ok(self.can_answer.then(Vec::new));
        }
        match questions.iter().find(|question| of_question(question).is_none()) {
            // The questions of a call were asked at the same time, so the tool needs the inputs to all of them.
            Some(open) => Err(ResumeError::Undecided { request_id: open.request_id.clone() }),
            None => Ok(Some(given.into_iter().map(|given| given.input.clone()).collect())),
        }
    }

    fn decide(&self, requests: &[&ApprovalRequest], resumption: &mut Resumption) -> Result<(), ResumeError> {
        for request in requests {
            let mut of_it = self.made.iter().filter(|one| one.request.request_id == request.request_id);
            let request_id = || request.request_id.clone();
            let Some(one) = of_it.next() else {
                // If no decisions were given at all, the approver of this assistant decides after the run was resumed.
                if self.made.is_empty() && self.can_ask {
                    break;
                }
                return Err(ResumeError::Undecided { request_id: request_id() });
            };
            if of_it.next().is_some() {
                return Err(ResumeError::AnsweredTwice { id: request_id() });
            }
            if let Some(what) = difference(&one.request, request) {
                return Err(ResumeError::ApprovalMismatch { request_id: request_id(), what });
            }
            resumption.decided.push(((*request).clone(), one.decision.clone()));
        }
        Ok(())
    }
}

impl Resumption {
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.decided.is_empty()
            && self.arrived.is_empty()
            && self.answered.is_empty()
            && self.children.is_empty()
    }
}

/// Returns whether `conversation` is empty, or equal to the conversation of the run.
pub(in crate::runtime) fn can_resume_in(conversation: &Conversation, of_run: &Conversation) -> bool {
    let same = |(one, other): (&Arc<Message>, &Arc<Message>)| {
        // A loaded message may differ in memory from the message that was stored, but both have the same JSON.
        Arc::ptr_eq(one, other)
            || serde_json::to_value(&**one)
                .ok()
                .is_some_and(|one| serde_json::to_value(&**other).is_ok_and(|other| one == other))
    };
    conversation.is_empty()
        || (conversation.len() == of_run.len() && conversation.shared().iter().zip(of_run.shared()).all(same))
}

/// Verifies the signatures of a stored run: one for each call that may still run, and one for the state of the run. Without a signer,
/// fails if the run contains sub-agents, serialized state, or calls that may still run.
pub(in crate::runtime) fn verify(core: &AgentLoop, signer: Option<&Signer>) -> Result<(), ResumeError> {
    // Some older versions signed in another format. If such a version stored the run, the error names the version.
    verify_signatures(core, signer).map_err(|error| match (error, core.version_signed_differently()) {
        (ResumeError::NotSigned, _) => ResumeError::NotSigned,
        (_, Some(version)) => ResumeError::OldVersion { version },
        (error, None) => error,
    })
}

fn verify_signatures(core: &AgentLoop, signer: Option<&Signer>) -> Result<(), ResumeError> {
    if !core.state().is_empty() && signer.is_none() {
        return Err(ResumeError::NotSigned);
    }
    verify_calls(core, signer)?;
    let is_signed =
        |signer: &Signer| core.mac().is_some_and(|mac| signer.verify_state(mac, &core.signed_state()));
    if signer.is_some_and(|signer| !is_signed(signer)) {
        return Err(ResumeError::Changed);
    }
    Ok(())
}

fn verify_calls(core: &AgentLoop, signer: Option<&Signer>) -> Result<(), ResumeError> {
    for call in core.checked_calls() {
        let signer = signer.ok_or(ResumeError::NotSigned)?;
        if call.mac.as_deref().is_some_and(|mac| signer.verify_call(mac, &call)) {
            continue;
        }
        return Err(match call.asked {
            Some(_) => ResumeError::ApprovalMismatch { request_id: call.request_id, what: "signature" },
            None => ResumeError::Tampered { call_id: call.call.id.clone() },
        });
    }
    for (_, _, child) in core.waiting_children(&RunPath::default()) {
        // A child needs a signer even if it has no call that may still run, because the child makes new calls when it continues.
        verify_calls(child, Some(signer.ok_or(ResumeError::NotSigned)?))?;
    }
    Ok(())
}

fn difference(seen: &ApprovalRequest, waits: &ApprovalRequest) -> Option<&'static str> {
    let same = [
        (seen.path == waits.path, "path"),
        (seen.call.id == waits.call.id, "call"),
        (seen.call.name == waits.call.name, "tool"),
        (is_same_json(&seen.call.args, &waits.call.args), "arguments"),
        (seen.fingerprint == waits.fingerprint, "schema"),
        (seen.mac == waits.mac, "signature"),
    ];
    same.into_iter().find(|(is_same, _)| !is_same).map(|(_, what)| what)
}

/// Compares arguments regardless of the order of their keys, which JSON columns of databases do not keep.
fn is_same_json(one: &ToolArguments, other: &ToolArguments) -> bool {
    one == other || canonical_args(one) == canonical_args(other)
}
