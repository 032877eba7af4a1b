//! A suspended run, and the answers that browsers have sent so far.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::response::Rejection;
use crate::loop_core::PendingCall;
use crate::runtime::{Decision, Decisions, SuspendedRun};
use crate::tool::output::ToolOutput;
use crate::tool::question::{AskError, Question, QuestionInput};

#[derive(Deserialize)]
pub(super) struct PageDecision {
    id: String,
    #[serde(flatten)]
    made: PageAnswer,
}

#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum PageAnswer {
    Allow,
    AllowWith {
        arguments: Value,
    },
    Deny {
        reason: String,
    },
    Deliver {
        text: String,
    },
    /// An input to a question, as JSON text.
    Answer {
        text: String,
    },
    Decline,
    Dismiss,
}

enum CheckedAnswer {
    Decision(Decision),
    Input(QuestionInput),
    Result(String),
}

/// A suspended run. It resumes when all its approval requests and questions are answered.
pub(super) struct WaitingRun {
    suspended: SuspendedRun,
    answers: Vec<(String, CheckedAnswer)>,
}

impl WaitingRun {
    pub(super) fn new(suspended: SuspendedRun) -> Self {
        Self { suspended, answers: Vec::new() }
    }

    pub(super) fn suspended(&self) -> &SuspendedRun {
        &self.suspended
    }

    pub(super) fn into_suspended(self) -> SuspendedRun {
        self.suspended
    }

    pub(super) fn to_event(&self) -> Value {
        let pending = self.suspended.pending().into_iter().map(|one| {
            let mut shown = json!(one);
            shown["id"] = id_of(&one).into();
            shown
        });
        let pending: Vec<Value> = pending.collect();
        json!({"type": "studio_waiting", "requests": self.suspended.requests(), "pending": pending})
    }

    /// Adds answers, and returns their ids. If any answer is invalid, none is added.
    pub(super) fn add(&mut self, made: Vec<PageDecision>) -> Result<Vec<String>, Rejection> {
        let pending = self.suspended.pending();
        let mut checked: Vec<(String, CheckedAnswer)> = Vec::with_capacity(made.len());
        for PageDecision { id, made } in made {
            let one = pending.iter().find(|one| id_of(one) == id);
            let one = one.ok_or_else(|| Rejection::not_found("call that waits"))?;
            if self.answers.iter().chain(&checked).any(|(answered, _)| *answered == id) {
                return Err(Rejection::conflict("answered", "This is answered: another page was faster."));
            }
            checked.push((id, check(one, made)?));
        }
        let ids = checked.iter().map(|(id, _)| id.clone()).collect();
        self.answers.extend(checked);
        Ok(ids)
    }

    /// Returns the answers for the run, or `None` while a request or a question is not answered. Results of deferred calls are optional.
    pub(super) fn decisions(&self) -> Option<Decisions> {
        let answer =
            |id: &str| self.answers.iter().find(|(answered, _)| answered == id).map(|(_, answer)| answer);
        let mut decisions = Decisions::new();
        for request in self.suspended.requests() {
            let CheckedAnswer::Decision(decision) = answer(&request.request_id)? else { return None };
            decisions = decisions.decide(&request, decision.clone());
        }
        for question in self.suspended.questions() {
            let CheckedAnswer::Input(input) = answer(&question.request_id)? else { return None };
            decisions = decisions.input(&question, input.clone());
        }
        for one in self.suspended.pending() {
            if let Some(CheckedAnswer::Result(text)) = answer(&id_of(&one)) {
                decisions = decisions.deliver_to(&one, ToolOutput::text(&**text));
            }
        }
        Some(decisions)
    }
}

/// Returns the id that an answer has to contain. For a deferred call of a sub-agent, the id begins with the id of the sub-agent's run.
fn id_of(pending: &PendingCall) -> String {
    match pending {
        PendingCall::Approval { request_id, .. } => request_id.clone(),
        PendingCall::Question { question, .. } => question.request_id.clone(),
        PendingCall::Deferred { call_id, path, .. } => match path.calls().last() {
            Some(call) => format!("{}/{call_id}", call.run_id),
            None => call_id.clone(),
        },
    }
}

fn check(one: &PendingCall, made: PageAnswer) -> Result<CheckedAnswer, Rejection> {
    Ok(match (one, made) {
        (PendingCall::Approval { .. }, PageAnswer::Allow) => CheckedAnswer::Decision(Decision::Allow),
        (PendingCall::Approval { .. }, PageAnswer::AllowWith { arguments }) => {
            CheckedAnswer::Decision(Decision::AllowWith(arguments))
        }
        (PendingCall::Approval { .. }, PageAnswer::Deny { reason }) => {
            CheckedAnswer::Decision(Decision::Deny(reason))
        }
        (PendingCall::Deferred { .. }, PageAnswer::Deliver { text }) => CheckedAnswer::Result(text),
        (PendingCall::Question { question, .. }, PageAnswer::Answer { text }) => {
            CheckedAnswer::Input(QuestionInput::Accept(input_of(question, &text)?))
        }
        (PendingCall::Question { .. }, PageAnswer::Decline) => CheckedAnswer::Input(QuestionInput::Decline),
        (PendingCall::Question { .. }, PageAnswer::Dismiss) => CheckedAnswer::Input(QuestionInput::Cancel),
        _ => return Err(Rejection::invalid("What waits under this id takes another kind of answer.")),
    })
}

/// Parses the answer to a question. If the answer does not fit the question, the rejection contains the report.
fn input_of(question: &Question, text: &str) -> Result<Value, Rejection> {
    let refused = |message: String| Rejection::new(StatusCode::BAD_REQUEST, "input_refused", message);
    let input: Value =
        serde_json::from_str(text).map_err(|error| refused(format!("The answer is not JSON: {error}.")))?;
    match question.check(&input) {
        Ok(()) => Ok(input),
        Err(AskError::Refused { report }) => {
            let plan = question.plan().ok();
            let issues = plan.and_then(|plan| plan.parse::<Value>(text).err());
            let data = json!({"report": issues.map(|issues| issues.to_json())});
            Err(refused(report).with_data(data))
        }
        Err(error) => Err(refused(error.to_string())),
    }
}
