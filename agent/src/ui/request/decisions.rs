//! Answers of a front end as decisions on a suspended run.

use serde_json::Value;

use super::{UiAnswer, UiRequest, UiRequestError};
use crate::loop_core::PendingCall;
use crate::runtime::{Decision, Decisions, SuspendedRun};
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::ToolOutput;

impl UiRequest {
    /// Returns the decisions and results in this request that the suspended run waits for. The arguments of allowed calls are those of the
    /// run, whatever the request has.
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
    /// Returns an error if a call that waits for a decision has none, if one is answered twice, or if nothing in the request is waited for.
    pub fn decisions(&self, suspended: &SuspendedRun) -> Result<Decisions, UiRequestError> {
        let mut decisions = Decisions::new();
        let mut unanswered = Vec::new();
        let mut count = 0;
        for request in suspended.requests() {
            let mut answers = self.answers.iter().filter(|answer| {
                let is_decision = matches!(
                    answer,
                    UiAnswer::Allow { .. } | UiAnswer::AllowWith { .. } | UiAnswer::Deny { .. }
                );
                is_decision && answer.id() == request.request_id
            });
            let Some(answer) = answers.next() else {
                unanswered.push(request.request_id);
                continue;
            };
            if answers.next().is_some() {
                return Err(UiRequestError::AnsweredTwice { id: request.request_id });
            }
            count += 1;
            decisions = decisions.decide(
                &request,
                match answer {
                    UiAnswer::AllowWith { args, .. } => Decision::AllowWith(args.clone()),
                    UiAnswer::Deny { reason, .. } => Decision::Deny(reason.clone()),
                    _ => Decision::Allow,
                },
            );
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
}

/// Whether the id of a front end names this call: alone, numbered, or behind the id of the run.
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

/// Returns the result that an answer delivers.
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
