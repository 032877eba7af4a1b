//! Converts the answers of a front end to decisions on a suspended run.

use serde_json::Value;

use super::{UiAnswer, UiRequest, UiRequestError};
use crate::loop_core::PendingCall;
use crate::runtime::{Decision, Decisions, SuspendedRun};
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::ToolOutput;
use crate::tool::question::{Question, QuestionInput};

impl UiRequest {
    /// Returns those decisions, inputs and results of this request that the suspended run waits for. An allowed call runs with its stored
    /// arguments, unless the request explicitly changes them.
    ///
    /// Results count only for tools that the front end runs: see [`with_browser_tools`](Self::with_browser_tools).
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::ScriptedModel;
    /// use agent::ui::{UiProtocol, UiRequest};
    /// use agent::{Assistant, tool, tools};
    ///
    /// /// Sends money.
    /// #[tool(approval = "always")]
    /// fn send(amount: u64) -> String {
    ///     format!("{amount} sent")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("send", r#"{"amount": 5}"#), reply().text("Done.")]);
    /// let assistant = Assistant::builder(model).tools(tools![send]).build()?;
    /// let suspended = assistant.prompt("Send 5.").await?.snapshot.expect("it waits");
    ///
    /// let id = &suspended.requests()[0].request_id;
    /// let resume = agent::json!([{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]);
    /// let body = agent::json!({"threadId": "t", "runId": "r2", "messages": [], "resume": resume}).to_string();
    /// let decisions = UiRequest::decode(UiProtocol::AgUi, body.as_bytes())?.decisions(&suspended)?;
    /// assert_eq!(assistant.resume(&suspended, decisions).await?.text(), "Done.");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if a call that waits for a decision or an input has no valid answer, or if a call is answered twice. Also returns
    /// an error if an input does not fit its question ([`InputRefused`](UiRequestError::InputRefused)), or if the request contains no
    /// answer that the run waits for.
    pub fn decisions(&self, suspended: &SuspendedRun) -> Result<Decisions, UiRequestError> {
        let mut decisions = Decisions::new();
        let mut unanswered = Vec::new();
        let mut count = 0;
        for request in suspended.requests() {
            let Some(answer) = self.answer_to(&request.request_id)? else {
                unanswered.push(request.request_id);
                continue;
            };
            count += 1;
            decisions = decisions.decide(
                &request,
                match answer {
                    UiAnswer::AllowWith { args, .. } => Decision::AllowWith(args.clone()),
                    UiAnswer::Deny { reason, .. } => Decision::Deny(reason.clone()),
                    UiAnswer::Input { id, .. } => {
                        let expected = "a decision: `approved` is true or false, `editedArgs` an object and `reason` a text, if they are there";
                        return Err(UiRequestError::invalid(format!("answer to {id}"), expected));
                    }
                    _ => Decision::Allow,
                },
            );
        }
        let questions = suspended.questions();
        for question in &questions {
            let Some(input) = self.input_to(question, &questions)? else {
                unanswered.push(question.request_id.clone());
                continue;
            };
            if let QuestionInput::Accept(value) = input {
                question
                    .check(value)
                    .map_err(|error| UiRequestError::refused_input(&question.request_id, &error))?;
            }
            count += 1;
            decisions = decisions.input(question, input.clone());
        }
        for pending in suspended.pending() {
            let PendingCall::Deferred { call_id, tool, path, .. } = &pending else { continue };
            let run_id = path.calls().last().map_or(suspended.run_id(), |call| &*call.run_id);
            let mut outcomes = self.answers.iter().filter_map(|answer| {
                let is_this = is_call(answer.call_id()?, run_id, call_id);
                is_this.then(|| outcome(answer, self.browser.contains(tool))).flatten()
            });
            let Some(outcome) = outcomes.next() else { continue };
            if outcomes.next().is_some() {
                return Err(UiRequestError::AnsweredTwice { id: call_id.clone() });
            }
            count += 1;
            decisions = decisions.deliver_to(&pending, outcome);
        }
        match (count, unanswered.is_empty()) {
            (0, _) if self.answers.is_empty() => Err(UiRequestError::Empty),
            (0, true) => Err(UiRequestError::NotPending),
            (_, false) => Err(UiRequestError::Unanswered { ids: unanswered }),
            _ => Ok(decisions),
        }
    }

    fn answer_to(&self, request_id: &str) -> Result<Option<&UiAnswer>, UiRequestError> {
        let mut answers = self.answers.iter().filter(|answer| {
            let is_result = matches!(
                answer,
                UiAnswer::Output { .. } | UiAnswer::Failed { .. } | UiAnswer::Waiting { .. }
            );
            !is_result && answer.id() == request_id
        });
        let answer = answers.next();
        match answers.next() {
            Some(_) => Err(UiRequestError::AnsweredTwice { id: request_id.to_owned() }),
            None => Ok(answer),
        }
    }

    /// Returns the input to a question. In the AI SDK, one approval request covers all questions of a call: it has the id of the first
    /// question, and a denial declines all questions. In AG-UI, each question has its own answer.
    fn input_to(
        &self,
        question: &Question,
        all: &[Question],
    ) -> Result<Option<&QuestionInput>, UiRequestError> {
        let same_call = |other: &&Question| other.call_id == question.call_id && other.path == question.path;
        let first = all.iter().find(same_call).map_or(&question.request_id, |first| &first.request_id);
        if self.answer_to(&question.request_id)?.is_none() && self.answer_to(first)?.is_none() {
            return Ok(None);
        }
        let of_call = self.inputs.get(first).filter(|input| matches!(input, QuestionInput::Decline));
        Ok(of_call.or_else(|| self.inputs.get(&question.request_id)))
    }
}

/// Returns whether an id that a front end sent belongs to this call. The id may have the prefix `RUN_ID/` and the suffix `~NUMBER`, which
/// make it unique.
fn is_call(sent: &str, run_id: &str, call_id: &str) -> bool {
    let sent = sent.strip_prefix(run_id).and_then(|rest| rest.strip_prefix('/')).unwrap_or(sent);
    match sent.strip_prefix(call_id) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('~')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())),
        None => false,
    }
}

/// Returns the outcome that an answer delivers. Only tools of the browser accept results, but a call of any tool can be abandoned.
fn outcome(answer: &UiAnswer, is_browser: bool) -> Option<ToolOutcome> {
    match answer {
        UiAnswer::Output { output, .. } if is_browser => Some(match output {
            Value::String(text) => ToolOutput::text(&**text).into(),
            value => ToolOutput::json(value).map_or_else(ToolOutcome::from, ToolOutcome::from),
        }),
        UiAnswer::Failed { message, .. } if is_browser => {
            Some(ToolOutcome::failed(OutcomeCode::TOOL_ERROR, &**message))
        }
        UiAnswer::Waiting { is_abandoned: true, .. } => {
            Some(ToolOutcome::failed(OutcomeCode::TOOL_ERROR, "The user gave up waiting for the result."))
        }
        _ => None,
    }
}
