//! Questions that MCP servers ask by forms, during calls of their tools.

use std::collections::BTreeMap;
use std::future::pending;

use serde_json::{Map, Value, json};

use super::asking::{AskStop, MAX_MESSAGE, MAX_REFUSALS};
use super::context::ToolContext;
use super::question::{AskError, Continuation, Question, QuestionInput};
use crate::args::{Plan, PlanOptions};

pub(crate) struct FormQuestion {
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) schema: Value,
}

/// The state that a server sent with its questions, and the replies to the server's other requests.
#[derive(Default)]
pub(crate) struct AskedRound {
    /// The server's state of the call, which is sent back unchanged.
    pub(crate) state: Option<String>,
    /// The replies by the keys of their requests.
    pub(crate) replies: Map<String, Value>,
}

/// Inputs by the keys of their questions. Accepted inputs are already coerced to the schemas of the questions.
pub(crate) type FormInputs = BTreeMap<String, QuestionInput>;

impl ToolContext {
    /// Returns the inputs to the latest questions that this MCP server asked during this call, and the state and replies to send with the
    /// inputs. Returns `None` if the server has asked no questions. An input that does not fit its question becomes `Cancel`.
    pub(crate) fn form_inputs(&self, server: &str) -> Option<(FormInputs, AskedRound)> {
        // Calls of one outer call share its inputs, and an input must reach only the server that asked for it.
        let is_own = |question: &Question| question.server.as_deref() == Some(server) && self.asked(question);
        let own = self.ask_rules()?.inputs.iter().filter(|recorded| is_own(&recorded.question));
        let own = own.filter_map(|recorded| Some((recorded, recorded.question.continuation.as_ref()?)));
        let last = own.clone().map(|(_, asked)| asked.round).max()?;
        let (mut found, mut round) = (FormInputs::new(), AskedRound::default());
        for (recorded, asked) in own.filter(|(_, asked)| asked.round == last) {
            let input = match &recorded.input {
                QuestionInput::Accept(value) => match recorded.question.accepted(value) {
                    Ok(value) => QuestionInput::Accept(value),
                    Err(_) => QuestionInput::Cancel,
                },
                other => other.clone(),
            };
            round.state.clone_from(&asked.state);
            round.replies.extend(asked.replies.clone());
            found.insert(asked.key.clone(), input);
        }
        Some((found, round))
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
        asked: Option<AskedRound>,
        may_suspend: bool,
    ) -> FormInputs {
        let (rules, call) = (self.ask_rules(), self.running_call().outermost());
        let may_suspend =
            may_suspend && rules.is_some_and(|rules| rules.suspends) && self.running_call().may_continue();
        let round = call.next_round(rules.map(|rules| &*rules.inputs).unwrap_or_default());
        let AskedRound { state, mut replies } = asked.unwrap_or_default();
        let (mut inputs, mut questions, mut open) = (FormInputs::new(), Vec::new(), Vec::new());
        let (mut secret, mut given) = (Vec::new(), Map::new());
        for FormQuestion { key, message, schema } in forms {
            match self.form_question(message, &schema) {
                Ok(question) => questions.push((key, question)),
                Err(error) => {
                    tracing::warn!(server, tool = self.tool(), %error, "a question of a server cannot be asked");
                    // If no person can be asked, the question counts as declined. If its form cannot be shown, the question counts as
                    // dismissed. `replies` keeps the dismissal if the other questions suspend the call.
                    let is_unavailable = error == AskError::Unavailable;
                    let input = if is_unavailable { QuestionInput::Decline } else { QuestionInput::Cancel };
                    replies.insert(key.clone(), json!({"action": "cancel"}));
                    inputs.insert(key, input);
                }
            }
        }
        for (key, question) in questions {
            let (state, replies) = (state.clone(), replies.clone());
            let continuation = Some(Continuation { key: key.clone(), state, replies, round });
            let question = Question { server: Some(server.to_owned()), continuation, ..question };
            let (question, input) = self.form_input(question).await;
            if input == QuestionInput::Later {
                open.push(question);
            } else if question.is_secret && may_suspend {
                // A secret is not stored with the question that suspends the call, so it is asked again.
                secret.push(question);
            } else {
                given.insert(key.clone(), form_reply(input.clone()));
            }
            inputs.insert(key, input);
        }
        if open.is_empty() {
            return inputs;
        }
        if may_suspend {
            for mut question in open.into_iter().chain(secret) {
                if let Some(continuation) = &mut question.continuation {
                    continuation.replies.extend(given.clone());
                }
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
        let mut question = self.new_question(message, &plan)?;
        question.form()?;
        self.number_question(&mut question)?;
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

fn form_reply(input: QuestionInput) -> Value {
    match input {
        QuestionInput::Accept(content) => json!({"action": "accept", "content": content}),
        QuestionInput::Decline => json!({"action": "decline"}),
        QuestionInput::Cancel | QuestionInput::Later => json!({"action": "cancel"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::asking::AskRules;
    use crate::tool::policy::ToolPolicy;
    use crate::tool::question::RecordedInput;
    use crate::tool::state::StateMap;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn polled<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn outer(inputs: Vec<RecordedInput>) -> ToolContext {
        let rules = AskRules { suspends: true, inputs: inputs.into(), ..AskRules::default() };
        call(&ToolContext::new().with_ask_rules(rules).with_idempotency_key("k"), "1")
    }

    fn call(cx: &ToolContext, id: &str) -> ToolContext {
        cx.for_call(id, &"t".into(), &StateMap::default())
    }

    fn form() -> FormQuestion {
        let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
        FormQuestion { key: "form".to_owned(), message: "Sure?".to_owned(), schema }
    }

    #[test]
    fn inputs_go_only_to_the_call_and_the_server_that_asked() {
        let recorded = |request: &str, server: &str, number: u32| {
            let continuation = json!({"key": "form", "state": request, "round": number});
            let question = json!({
                "request_id": request, "call_id": "1", "tool": "t", "server": server, "message": "Sure?", "schema": {},
                "number": number, "continuation": continuation,
            });
            serde_json::from_value(json!({"question": question, "input": "decline"})).unwrap()
        };
        let outer = outer(vec![recorded("k/a/ask/0", "one", 0), recorded("k/b/ask/1", "two", 1)]);
        let state = |id: &str, server: &str| Some(call(&outer, id).form_inputs(server)?.1.state.unwrap());
        assert_eq!(state("a", "one").as_deref(), Some("k/a/ask/0"));
        assert_eq!(state("b", "two").as_deref(), Some("k/b/ask/1"));
        assert_eq!((state("a", "two"), state("c", "one")), (None, None));
    }

    #[test]
    fn a_form_within_a_call_that_must_not_run_again_is_declined() {
        let outer = outer(Vec::new());
        outer.running_call().begin(&ToolPolicy::default());
        let nested = call(&outer, "n");
        let Poll::Ready(inputs) = polled(nested.ask_forms("s", vec![form()], None, true)) else {
            panic!("a person is waited for")
        };
        assert_eq!(inputs["form"], QuestionInput::Decline);
    }

    #[test]
    fn replies_without_a_person_are_sent_after_the_restart() {
        let cx = outer(Vec::new());
        let replies = Map::from_iter([("roots".to_owned(), json!({"roots": []}))]);
        let asked = AskedRound { state: None, replies: replies.clone() };
        let odd = FormQuestion { key: "odd".to_owned(), schema: json!({"type": "array"}), ..form() };
        let asked = cx.ask_forms("s", vec![form(), odd], Some(asked), true);
        assert!(polled(asked).is_pending(), "a person is asked");
        let recorded = |question| RecordedInput { question, input: QuestionInput::Decline };
        let again = outer(cx.take_questions().into_iter().map(recorded).collect());
        let (inputs, round) = again.form_inputs("s").unwrap();
        assert_eq!(inputs.into_keys().collect::<Vec<_>>(), ["form"]);
        assert_eq!(
            (&round.replies["roots"], &round.replies["odd"]["action"]),
            (&replies["roots"], &json!("cancel"))
        );
    }
}
