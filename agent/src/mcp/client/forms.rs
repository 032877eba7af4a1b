//! Converts the questions of a server and their answers between the types of the protocol and of tools.

use crate::tool::forms::FormQuestion;
use crate::tool::question::QuestionInput;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};

/// Returns the question of a request, or `None` if the request does not ask by a form.
pub(super) fn form_question(key: &str, params: ElicitRequestParams) -> Option<FormQuestion> {
    match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => Some(FormQuestion {
            key: key.to_owned(),
            message,
            schema: serde_json::to_value(requested_schema).ok()?,
        }),
        _ => None,
    }
}

/// Converts the input of a person to the result that the protocol sends.
pub(super) fn elicit_result(input: QuestionInput) -> ElicitResult {
    match input {
        QuestionInput::Accept(value) => ElicitResult::new(ElicitationAction::Accept).with_content(value),
        QuestionInput::Decline => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}
