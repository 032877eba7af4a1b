//! Questions that MCP servers ask by forms, during calls of their tools.

use std::collections::BTreeMap;
use std::future::pending;

use serde_json::Value;

use super::asking::{AskStop, MAX_MESSAGE, MAX_REFUSALS};
use super::context::ToolContext;
use super::question::{AskError, Continuation, Question, QuestionInput};
use crate::args::{Plan, PlanOptions};

pub(crate) struct FormQuestion {
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) schema: Value,
}

/// Inputs by the keys of their questions. Accepted inputs are already coerced to the schemas of the questions.
pub(crate) type FormInputs = BTreeMap<String, QuestionInput>;

impl ToolContext {
    /// Returns the inputs to the latest questions of an MCP server, and the state that the server sent with them. Returns `None` if the
    /// server has asked no questions. An input that does not fit its question becomes `Cancel`.
    pub(crate) fn form_inputs(&self) -> Option<(FormInputs, Option<String>)> {
        let inputs = &self.ask_rules()?.inputs;
        let round_of = |question: &Question| question.continuation.as_ref().map(|asked| asked.round);
        let last = inputs.iter().filter_map(|recorded| round_of(&recorded.question)).max()?;
        let count = inputs.iter().map(|recorded| recorded.question.number + 1).max().unwrap_or_default();
        self.running_call().outermost().count_from(count);
        let (mut found, mut state) = (FormInputs::new(), None);
        for recorded in inputs.iter() {
            let Some(asked) = recorded.question.continuation.as_ref().filter(|asked| asked.round == last)
            else {
                continue;
            };
            let input = match &recorded.input {
                QuestionInput::Accept(value) => match recorded.question.accepted(value) {
                    Ok(value) => QuestionInput::Accept(value),
                    Err(_) => QuestionInput::Cancel,
                },
                other => other.clone(),
            };
            state.clone_from(&asked.state);
            found.insert(asked.key.clone(), input);
        }
        Some((found, state))
    }

    /// Asks a person the questions of an MCP server, and returns the inputs.
    ///
    /// The call is suspended if there is no function that answers questions, or if the function leaves a question for later. This method
    /// then never completes; [`form_inputs`](Self::form_inputs) returns the inputs when the call restarts. If the call cannot be
    /// suspended, or `may_suspend` is `false`, each question without an input is declined instead.
    pub(crate) async fn ask_forms(
        &self,
        server: &str,
        forms: Vec<FormQuestion>,
        state: Option<String>,
        may_suspend: bool,
    ) -> FormInputs {
        let rounds = self.ask_rules().map(|rules| rules.inputs.iter());
        let rounds =
            rounds.into_iter().flatten().filter_map(|recorded| recorded.question.continuation.as_ref());
        let round = rounds.map(|asked| asked.round + 1).max().unwrap_or_default();
        let (mut inputs, mut asked, mut is_later) = (FormInputs::new(), Vec::new(), false);
        for FormQuestion { key, message, schema } in forms {
            let question = match self.form_question(message, &schema) {
                Ok(question) => question,
                Err(error) => {
                    tracing::warn!(server, tool = self.tool(), %error, "a question of a server cannot be asked");
                    // If no person can be asked, the question counts as declined. If its form cannot be shown, the question counts as
                    // dismissed.
                    let is_unavailable = error == AskError::Unavailable;
                    let input = if is_unavailable { QuestionInput::Decline } else { QuestionInput::Cancel };
                    inputs.insert(key, input);
                    continue;
                }
            };
            let continuation = Continuation { key: key.clone(), state: state.clone(), round };
            let question =
                Question { server: Some(server.to_owned()), continuation: Some(continuation), ..question };
            let (question, input) = self.form_input(question).await;
            is_later |= input == QuestionInput::Later;
            asked.push(question);
            inputs.insert(key, input);
        }
        if !is_later {
            return inputs;
        }
        if may_suspend && self.ask_rules().is_some_and(|rules| rules.suspends) {
            // The suspended call loses the answers so far, so all its questions are asked again.
            let call = self.running_call().outermost();
            for question in asked {
                call.stop(AskStop::Suspended, Some(question));
            }
            return pending().await;
        }
        tracing::warn!(
            server,
            tool = self.tool(),
            "a question of a server is declined: it has no answer yet, and the call cannot be suspended"
        );
        for input in inputs.values_mut().filter(|input| **input == QuestionInput::Later) {
            *input = QuestionInput::Decline;
        }
        inputs
    }

    fn form_question(&self, mut message: String, schema: &Value) -> Result<Question, AskError> {
        let end = (0..=MAX_MESSAGE.min(message.len())).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(end.unwrap_or_default());
        let plan = Plan::compile("input", schema, PlanOptions::default())
            .map_err(|error| AskError::Invalid { message: error.to_string() })?;
        let question = self.new_question(message, &plan)?;
        question.form()?;
        Ok(question)
    }

    /// Calls the application's function for questions. Returns the question as it was last asked, and the input. The input is
    /// [`QuestionInput::Later`] if there is no function or no answer yet.
    async fn form_input(&self, mut question: Question) -> (Question, QuestionInput) {
        let Some((rules, answerer)) =
            self.ask_rules().and_then(|rules| Some((rules, rules.answerer.as_ref()?)))
        else {
            return (question, QuestionInput::Later);
        };
        loop {
            let value = match self.answer_in_place(rules, answerer, &question).await {
                Ok(QuestionInput::Accept(value)) => value,
                Ok(QuestionInput::Later) => {
                    question.is_announced = rules.notify.is_some();
                    return (question, QuestionInput::Later);
                }
                Ok(other) => return (question, other),
                Err(_) => return (question, QuestionInput::Cancel),
            };
            match question.accepted(&value) {
                Ok(value) => return (question, QuestionInput::Accept(value)),
                Err(error) => {
                    question.refusals += 1;
                    if question.refusals >= MAX_REFUSALS {
                        return (question, QuestionInput::Cancel);
                    }
                    question.request_id = self.question_id(question.number, question.refusals);
                    question.report = Some(match error {
                        AskError::Refused { report } => report,
                        other => other.to_string(),
                    });
                }
            }
        }
    }
}
