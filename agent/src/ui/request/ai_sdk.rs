//! Requests of the AI SDK's `DefaultChatTransport`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{UiAnswer, UiRequest, UiRequestError, content, edited_args, id, list, optional, tools};
use crate::message::{Part, UserMessage};
use crate::tool::question::QuestionInput;

pub(super) fn decode(mut body: Map<String, Value>) -> Result<UiRequest, UiRequestError> {
    let mut request = UiRequest::new(id(body.get("id"), "id")?);
    let trigger = optional(body.get("trigger"), "trigger", "a text", Value::as_str)?;
    request.regenerates = match trigger {
        None | Some("submit-message") => false,
        Some("regenerate-message") => true,
        Some(_) => return Err(UiRequestError::invalid("trigger", "a trigger of the protocol")),
    };
    let sent = |key: &'static str| optional(body.get(key), key, "an object", Value::as_object);
    let (edits, inputs) = (sent("edits")?, sent("inputs")?);
    let (last, field) = if let Some(message) = body.get("message").filter(|message| !message.is_null()) {
        (Some(message), "message".to_owned())
    } else {
        let messages = body.get("messages").and_then(Value::as_array);
        let messages = messages.ok_or_else(|| UiRequestError::invalid("messages", "a list"))?;
        (messages.last(), format!("messages/{}", messages.len().saturating_sub(1)))
    };
    let message = last.ok_or(UiRequestError::Empty)?;
    let (parts, parts_field) = (message.get("parts"), format!("{field}/parts"));
    match message.get("role").and_then(Value::as_str) {
        Some("user") => request.prompt = Some(prompt(list(parts, &parts_field)?, &field)?),
        Some("assistant") => {
            // The message contains the whole run and may have many parts, so only the number of answers is limited.
            let parts = optional(parts, &parts_field, "a list", Value::as_array)?;
            let parts = parts.map_or(&[][..], Vec::as_slice);
            request.answers = answers(parts, edits, inputs, &field)?;
            request.inputs = question_inputs(&request.answers, inputs)?;
        }
        Some(role @ "system") => return Err(UiRequestError::Role { role: role.to_owned() }),
        _ => {
            return Err(UiRequestError::invalid(format!("{field}/role"), "a role of the protocol"));
        }
    }
    // Tools are not part of the protocol. assistant-ui sends the declared tools as an object whose keys are the names of the tools.
    // Tools in another form belong to the application.
    if let Some(Value::Object(tools)) = body.get("tools") {
        let named: Vec<Value> = tools.keys().map(|name| Value::String(name.clone())).collect();
        let tools = tools.iter().zip(&named);
        request.tools = tools::declared(tools.map(|((key, tool), name)| (key.clone(), Some(name), tool)))?;
        body.shift_remove("tools");
    }
    for known in ["id", "messages", "message", "messageId", "trigger", "edits", "inputs"] {
        body.shift_remove(known);
    }
    request.extra = body;
    Ok(request)
}

fn prompt(parts: &[Value], field: &str) -> Result<UserMessage, UiRequestError> {
    let mut content = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let field = format!("{field}/parts/{at}");
        match part.get("type").and_then(Value::as_str) {
            Some("text") => {
                let text = content::text(part.get("text"), &format!("{field}/text"))?;
                if !text.is_empty() {
                    content.push(Part::text(text));
                }
            }
            Some("file") => {
                let url = content::text(part.get("url"), &format!("{field}/url"))?;
                let read =
                    |key: &str| optional(part.get(key), &format!("{field}/{key}"), "a text", Value::as_str);
                content.push(content::file(
                    url,
                    read("mediaType")?,
                    read("filename")?,
                    &format!("{field}/url"),
                )?);
            }
            // Parts of other types are only for display, so they are ignored.
            Some(_) => {}
            None => return Err(UiRequestError::invalid(format!("{field}/type"), "a text")),
        }
    }
    if content.is_empty() {
        return Err(UiRequestError::Empty);
    }
    Ok(UserMessage::new(content))
}

/// Returns the answers in the last step of a message of the assistant. Only this step can have calls that wait.
fn answers(
    parts: &[Value],
    edits: Option<&Map<String, Value>>,
    inputs: Option<&Map<String, Value>>,
    field: &str,
) -> Result<Vec<UiAnswer>, UiRequestError> {
    let kind = |part: &Value| part.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let last_step = parts.iter().rposition(|part| kind(part) == "step-start").map_or(0, |at| at + 1);
    let mut answers = Vec::new();
    for (at, part) in parts.iter().enumerate().skip(last_step) {
        let kind = kind(part);
        if !(kind.starts_with("tool-") || kind == "dynamic-tool")
            || part.get("providerExecuted") == Some(&Value::Bool(true))
        {
            continue;
        }
        let field = format!("{field}/parts/{at}");
        let call_id = id(part.get("toolCallId"), &format!("{field}/toolCallId"))?;
        match part.get("state").and_then(Value::as_str) {
            Some("approval-responded") => {
                let approval = part.get("approval").unwrap_or(&Value::Null);
                if approval.get("isAutomatic") != Some(&Value::Bool(true)) {
                    let field = format!("{field}/approval");
                    answers.push(decision(approval, call_id, edits, inputs, &field)?);
                }
            }
            Some("output-available") if part.get("preliminary") != Some(&Value::Bool(true)) => {
                let output = part.get("output").cloned().unwrap_or_default();
                answers.push(UiAnswer::Output { call_id, output });
            }
            Some("output-error") => {
                let message = content::text(part.get("errorText"), &format!("{field}/errorText"))?;
                answers.push(UiAnswer::Failed { call_id, message: message.to_owned() });
            }
            Some(_) => {}
            None => return Err(UiRequestError::invalid(format!("{field}/state"), "a text")),
        }
    }
    if answers.len() > super::MAX_PARTS {
        return Err(UiRequestError::invalid(format!("{field}/parts"), "at most 256 answers"));
    }
    Ok(answers)
}

/// Returns the request's inputs to questions. All questions of a call share one approval request, so a denial declines all of them.
fn question_inputs(
    answers: &[UiAnswer],
    inputs: Option<&Map<String, Value>>,
) -> Result<BTreeMap<String, QuestionInput>, UiRequestError> {
    let given = inputs.into_iter().flatten();
    if inputs.is_some_and(|inputs| inputs.len() > super::MAX_PARTS) {
        return Err(UiRequestError::invalid("inputs", "at most 256 inputs"));
    }
    let given = given.map(|(id, input)| (id.clone(), QuestionInput::Accept(input.clone())));
    let declined = answers.iter().filter(|answer| matches!(answer, UiAnswer::Deny { .. }));
    Ok(given.chain(declined.map(|answer| (answer.id().to_owned(), QuestionInput::Decline))).collect())
}

fn decision(
    approval: &Value,
    call_id: String,
    edits: Option<&Map<String, Value>>,
    inputs: Option<&Map<String, Value>>,
    field: &str,
) -> Result<UiAnswer, UiRequestError> {
    let id = id(approval.get("id"), &format!("{field}/id"))?;
    let call_id = Some(call_id);
    if approval.get("approved") == Some(&Value::Bool(true))
        && let Some(input) = inputs.and_then(|inputs| inputs.get(&id))
    {
        return Ok(UiAnswer::Input { id, call_id, input: input.clone() });
    }
    match approval.get("approved") {
        Some(Value::Bool(true)) => match edits.and_then(|edits| edits.get(&id)) {
            Some(args) => {
                let args = edited_args(args, &format!("edits/{id}"))?;
                Ok(UiAnswer::AllowWith { id, call_id, args })
            }
            None => Ok(UiAnswer::Allow { id, call_id }),
        },
        Some(Value::Bool(false)) => {
            let reason =
                optional(approval.get("reason"), &format!("{field}/reason"), "a text", Value::as_str)?;
            let reason = reason.unwrap_or("denied by the user").to_owned();
            Ok(UiAnswer::Deny { id, call_id, reason })
        }
        _ => Err(UiRequestError::invalid(format!("{field}/approved"), "true or false")),
    }
}
