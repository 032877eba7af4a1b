//! Converts a server's questions, and a person's inputs, between the types of MCP and of this library.

use crate::tool::forms::FormQuestion;
use crate::tool::question::QuestionInput;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};

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

pub(super) fn elicit_result(input: QuestionInput) -> ElicitResult {
    match input {
        QuestionInput::Accept(value) => ElicitResult::new(ElicitationAction::Accept).with_content(value),
        QuestionInput::Decline => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}
