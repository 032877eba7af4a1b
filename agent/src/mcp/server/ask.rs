//! Questions of tools to a person, which the client asks (elicitation).
//!
//! Since the version 2026-07-28, a server sends no requests. A call with a question ends with `input_required`. The client repeats the
//! call with the answers and with the state that the server sent, and the tool starts again. In older versions, the server asks over the
//! open connection of standard input, while the tool waits.

use super::built::{AdmittedRequest, BuiltServer, SentAnswers};
use super::request_info::RequestInfo;
use crate::message::ToolCall;
use crate::tool::asking::AskRules;
use crate::tool::question::{Question, QuestionInput, RecordedInput};
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    InputRequest, InputRequiredResult, SealOptions, ServerRequest,
};
use rmcp::{Peer, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The time in which a person must answer. After this time, the state that the client keeps is expired.
const STATE_TTL: Duration = Duration::from_secs(600);
/// Maximum length of a sealed [`AskState`], in bytes.
const MAX_STATE: usize = 64 << 10;

/// The state of a call, which the client keeps between two requests: the earlier answers (`inputs`) and the open questions (`asked`).
#[derive(Default, Serialize, Deserialize)]
pub(super) struct AskState {
    inputs: Vec<RecordedInput>,
    asked: Vec<Question>,
}

/// The rules for further questions of a call, or the open questions that the client has to ask before the tool runs.
pub(super) enum CallQuestions {
    Rules(AskRules),
    /// The client did not answer the questions in `asked`, so they are asked again.
    Open(AskState),
}

/// Returns how a call may ask questions. Returns `None` if the client cannot ask a person: it does not declare elicitation by forms, or it
/// uses an older version without an open connection.
///
/// # Errors
/// Fails if the state that the client sent is too long, has expired or does not belong to this call, or if an answer is malformed.
pub(super) fn questions(
    shared: &BuiltServer,
    bound: impl FnOnce() -> String,
    info: &RequestInfo,
    sent: Option<&SentAnswers>,
    connection: Option<Peer<RoleServer>>,
) -> Result<Option<CallQuestions>, ErrorData> {
    if !info.asks_by_form() {
        return Ok(None);
    }
    if !info.is_modern() {
        let Some(peer) = connection else { return Ok(None) };
        let answerer = Arc::new(move |question| {
            let peer = peer.clone();
            let asked: crate::BoxFuture<'static, QuestionInput> =
                Box::pin(async move { ask(&peer, &question).await });
            asked
        });
        return Ok(Some(CallQuestions::Rules(AskRules { answerer: Some(answerer), ..AskRules::default() })));
    }
    let mut state = match sent.and_then(|sent| sent.state.as_deref()) {
        Some(sealed) => open(shared, &bound(), sealed)?,
        None => AskState::default(),
    };
    let answers = sent.map(|sent| &sent.answers);
    for question in std::mem::take(&mut state.asked) {
        match answers.and_then(|answers| answers.get(&question.number.to_string())) {
            Some(answer) => {
                let input = serde_json::from_value(answer.clone()).map_err(|_| {
                    ErrorData::invalid_params("an input response is not the result of an elicitation", None)
                })?;
                state.inputs.retain(|earlier| earlier.question.number != question.number);
                let input = input_of(&question, input);
                state.inputs.push(RecordedInput { question, input });
            }
            None => state.asked.push(question),
        }
    }
    Ok(Some(if state.asked.is_empty() {
        let inputs = state.inputs.into();
        CallQuestions::Rules(AskRules { suspends: true, inputs, ..AskRules::default() })
    } else {
        CallQuestions::Open(state)
    }))
}

/// Returns the text that binds the state to one call: the caller, the tool with its definition, and the arguments.
pub(super) fn binding(admitted: &AdmittedRequest, call: &ToolCall) -> String {
    let fingerprint = admitted.tools.get(&call.name).map(|tool| tool.definition().fingerprint());
    let arguments = call.args.value().map(|args| crate::canonical::canonical(&args));
    let arguments = arguments.unwrap_or_else(|| call.args.text().to_owned());
    let caller = admitted.caller.is_known().then(|| admitted.caller.id());
    serde_json::json!([1, caller, call.name, fingerprint, arguments]).to_string()
}

fn open(shared: &BuiltServer, bound: &str, sealed: &str) -> Result<AskState, ErrorData> {
    let refused =
        || ErrorData::invalid_params("the request state is not one of this call, or has expired", None);
    if sealed.len() > MAX_STATE {
        return Err(refused());
    }
    let opened = shared.state_codec.open_with(sealed, bound.as_bytes()).map_err(|_| refused())?;
    serde_json::from_slice(&opened).map_err(|_| refused())
}

/// Returns the result that makes the client ask its user.
///
/// # Errors
/// Fails with the text for the client if a question cannot be asked, or if the state is longer than [`MAX_STATE`].
pub(super) fn input_required(
    shared: &BuiltServer,
    bound: &str,
    state: &AskState,
) -> Result<InputRequiredResult, String> {
    let mut requests = BTreeMap::new();
    for question in &state.asked {
        let request = ElicitRequest::new(params(question)?);
        requests.insert(question.number.to_string(), InputRequest::Elicitation(request));
    }
    let payload = serde_json::to_vec(state).map_err(|error| error.to_string())?;
    let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(STATE_TTL);
    let sealed = shared.state_codec.seal_with(&payload, &options);
    if sealed.len() > MAX_STATE {
        return Err("The tool asked for too much.".to_owned());
    }
    Ok(InputRequiredResult::new(Some(requests), Some(sealed)))
}

impl AskState {
    /// Creates the state of a call whose tool asked these questions. Drops earlier answers to questions that the tool asked again.
    pub(super) fn of(rules: &AskRules, asked: Vec<Question>) -> Self {
        let is_open = |input: &&RecordedInput| asked.iter().all(|new| new.number != input.question.number);
        let inputs = rules.inputs.iter().filter(is_open).cloned().collect();
        Self { inputs, asked }
    }
}

/// Returns the parameters of the request for a question.
///
/// # Errors
/// Fails with the text for the client if the question asks for a secret, which the protocol forbids, or cannot be written as a form.
fn params(question: &Question) -> Result<ElicitRequestParams, String> {
    if question.is_secret {
        return Err("The tool asks for a secret, which cannot be asked over MCP.".to_owned());
    }
    let form = question.form().map_err(|error| format!("The tool cannot ask: {error}."))?;
    let requested_schema = serde_json::from_value(form)
        .map_err(|_| "The tool cannot ask: its question has no form.".to_owned())?;
    let mut message = question.message.clone();
    if let Some(report) = &question.report {
        message.extend(["\n\nThe answer before did not fit:\n", report]);
    }
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Asks a question over the open connection of a client. Returns `Cancel` if the person dismisses the question, if the question cannot be
/// asked, or if the client does not answer.
async fn ask(peer: &Peer<RoleServer>, question: &Question) -> QuestionInput {
    let request = match params(question) {
        Ok(params) => ServerRequest::ElicitRequest(ElicitRequest::new(params)),
        Err(reason) => {
            tracing::error!(tool = %question.tool, %reason, "a question was not asked");
            return QuestionInput::Cancel;
        }
    };
    match peer.send_request(request).await {
        Ok(ClientResult::ElicitResult(result)) => input_of(question, result),
        Ok(_) => {
            tracing::warn!(tool = %question.tool, "the client answered a question with something else");
            QuestionInput::Cancel
        }
        Err(error) => {
            tracing::warn!(tool = %question.tool, %error, "the client did not answer a question");
            QuestionInput::Cancel
        }
    }
}

fn input_of(question: &Question, result: ElicitResult) -> QuestionInput {
    match result.action {
        ElicitationAction::Accept => {
            let mut content = result.content.unwrap_or_else(|| Value::Object(Map::new()));
            if let (Value::Object(fields), Ok(form)) = (&mut content, question.form()) {
                let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
                let in_form = required(&form);
                // A form cannot contain null, so it has no value for a required property that is null.
                for name in required(&question.schema).iter().filter(|name| !in_form.contains(name)) {
                    fields.entry(name.as_str().unwrap_or_default()).or_insert(Value::Null);
                }
            }
            QuestionInput::Accept(content)
        }
        ElicitationAction::Decline => QuestionInput::Decline,
        _ => QuestionInput::Cancel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_required_field_that_a_form_leaves_empty_is_null() {
        let nullable = json!({"type": ["integer", "null"]});
        let schema = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": nullable, "floor": nullable},
            "required": ["name", "age"],
        });
        let mut question =
            json!({"request_id": "q", "call_id": "c", "tool": "t", "message": "m", "number": 0});
        question["schema"] = schema;
        let question: Question = serde_json::from_value(question).unwrap();
        let result = ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ann"}));
        let QuestionInput::Accept(input) = input_of(&question, result) else { panic!("it is accepted") };
        assert_eq!(input, json!({"name": "Ann", "age": null}));
        assert!(question.check(&input).is_ok());
        let empty = input_of(&question, ElicitResult::new(ElicitationAction::Accept));
        assert_eq!(empty, QuestionInput::Accept(json!({"age": null})));
    }
}
