//! Requests of AG-UI: `RunAgentInput`.

use serde_json::{Map, Value};

use super::super::encode::ag_ui::VERSION;
use super::{UiAnswer, UiRequest, UiRequestError, content, id, list, optional, tools};
use crate::message::{Media, Part, UserMessage};
use crate::tool::question::QuestionInput;

/// Maximum length of the `context` text that a front end sends with a prompt, in bytes.
const MAX_CONTEXT: usize = 32 << 10;

pub(super) fn decode(mut body: Map<String, Value>) -> Result<UiRequest, UiRequestError> {
    let mut request = UiRequest::new(id(body.get("threadId"), "threadId")?);
    request.run = Some(id(body.get("runId"), "runId")?);
    request.parent_run = match body.get("parentRunId") {
        None | Some(Value::Null) => None,
        given => Some(id(given, "parentRunId")?),
    };
    request.is_current = body.get("protocolVersion").and_then(Value::as_str) == Some(VERSION);
    let declared = list(body.get("tools"), "tools")?.iter().enumerate();
    let declared = declared.map(|(at, tool)| (at.to_string(), tool.get("name"), tool));
    request.tools = tools::declared(declared)?;
    request.context = context(list(body.get("context"), "context")?)?;
    let resume = list(body.get("resume"), "resume")?;
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| UiRequestError::invalid("messages", "a list"))?;
    if resume.is_empty() {
        last_messages(messages, &mut request)?;
    } else {
        for (at, entry) in resume.iter().enumerate() {
            let answer = resume_entry(entry, &format!("resume/{at}"), &mut request)?;
            request.answers.push(answer);
        }
    }
    for known in
        ["threadId", "runId", "parentRunId", "protocolVersion", "messages", "tools", "context", "resume"]
    {
        body.shift_remove(known);
    }
    request.extra = body;
    Ok(request)
}

fn context(list: &[Value]) -> Result<Option<UserMessage>, UiRequestError> {
    let mut text = String::new();
    for (at, fact) in list.iter().enumerate() {
        let field = |key: &str| format!("context/{at}/{key}");
        let description = content::text(fact.get("description"), &field("description"))?;
        let value = content::text(fact.get("value"), &field("value"))?;
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend([description, ": ", value]);
    }
    if text.len() > MAX_CONTEXT {
        return Err(UiRequestError::invalid("context", "at most 32 KiB"));
    }
    Ok((!text.is_empty()).then(|| UserMessage::from(text)))
}

/// Reads the prompt from the last message. If the last message is a result, reads all results after the last message of the assistant as
/// answers.
fn last_messages(messages: &[Value], request: &mut UiRequest) -> Result<(), UiRequestError> {
    let role = |message: &Value| message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    let last = messages.last().ok_or(UiRequestError::Empty)?;
    let at = messages.len().saturating_sub(1);
    match role(last).as_str() {
        "user" => request.prompt = Some(prompt(last, &format!("messages/{at}"))?),
        "assistant" | "activity" | "reasoning" => {}
        "tool" => {
            let first =
                messages.iter().rposition(|message| role(message) == "assistant").map_or(0, |at| at + 1);
            for (at, message) in messages.iter().enumerate().skip(first) {
                if role(message) == "tool" {
                    request.answers.push(tool_result(message, &format!("messages/{at}"))?);
                }
            }
            if request.answers.len() > super::MAX_PARTS {
                return Err(UiRequestError::invalid("messages", "at most 256 results"));
            }
        }
        role @ ("system" | "developer") => return Err(UiRequestError::Role { role: role.to_owned() }),
        _ => {
            let field = format!("messages/{at}/role");
            return Err(UiRequestError::invalid(field, "a role of the protocol"));
        }
    }
    Ok(())
}

fn prompt(message: &Value, field: &str) -> Result<UserMessage, UiRequestError> {
    let field = format!("{field}/content");
    let mut content: Vec<Part> = match message.get("content") {
        Some(Value::String(text)) => vec![Part::text(&**text)],
        given @ Some(Value::Array(_)) => {
            let parts = list(given, &field)?;
            let part = |(at, part): (usize, &Value)| content_part(part, &format!("{field}/{at}"));
            parts.iter().enumerate().map(part).collect::<Result<_, _>>()?
        }
        _ => return Err(UiRequestError::invalid(field, "a text or a list of parts")),
    };
    content.retain(|part| part.as_text() != Some(""));
    if content.is_empty() {
        return Err(UiRequestError::Empty);
    }
    Ok(UserMessage::new(content))
}

fn content_part(part: &Value, field: &str) -> Result<Part, UiRequestError> {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "text" => Ok(Part::text(content::text(part.get("text"), &format!("{field}/text"))?)),
        "image" | "audio" | "video" | "document" => {
            let source = part.get("source").unwrap_or(&Value::Null);
            let field = format!("{field}/source/value");
            let value = content::text(source.get("value"), &field)?;
            let media_type = source.get("mimeType").and_then(Value::as_str);
            match source.get("type").and_then(Value::as_str) {
                Some("data") => {
                    let default = match kind {
                        "image" => "image/png",
                        "audio" => "audio/wav",
                        _ => "application/octet-stream",
                    };
                    let media: Media = content::bytes(value, media_type.unwrap_or(default), &field)?;
                    Ok(content::part(media, None))
                }
                Some("url") => {
                    let default = if kind == "image" || kind == "audio" { Some(kind) } else { None };
                    let mut part = content::file(value, media_type, None, &field)?;
                    if media_type.is_none() && default.is_some() {
                        part = typed(part, kind);
                    }
                    Ok(part)
                }
                // File ids are refused, because files at the provider belong to the application.
                _ => Err(UiRequestError::invalid(field, "data or an address")),
            }
        }
        _ => Err(UiRequestError::invalid(format!("{field}/type"), "a kind of part of the protocol")),
    }
}

/// Converts media that were read as a document to the kind that the front end names.
fn typed(part: Part, kind: &str) -> Part {
    use crate::message::Content;
    match part.content {
        Content::Document(media) if kind == "image" => Part::new(Content::Image(media)),
        Content::Document(media) if kind == "audio" => Part::new(Content::Audio(media)),
        content => Part::new(content),
    }
}

fn tool_result(message: &Value, field: &str) -> Result<UiAnswer, UiRequestError> {
    let call_id = id(message.get("toolCallId"), &format!("{field}/toolCallId"))?;
    let error = optional(message.get("error"), &format!("{field}/error"), "a text", Value::as_str)?;
    if let Some(error) = error {
        return Ok(UiAnswer::Failed { call_id, message: error.to_owned() });
    }
    let output = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        given @ Some(Value::Array(_)) => {
            let texts = list(given, &format!("{field}/content"))?;
            texts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => return Err(UiRequestError::invalid(format!("{field}/content"), "a text or a list of parts")),
    };
    Ok(UiAnswer::Output { call_id, output: output.into() })
}

/// Reads an answer to a suspended run. Only the run knows whether the answer is for an approval request or a question, so the answer is
/// also added to `request.inputs`.
fn resume_entry(entry: &Value, field: &str, request: &mut UiRequest) -> Result<UiAnswer, UiRequestError> {
    let id = id(entry.get("interruptId"), &format!("{field}/interruptId"))?;
    let is_cancelled = match entry.get("status").and_then(Value::as_str) {
        Some("resolved") => false,
        Some("cancelled") => true,
        _ => return Err(UiRequestError::invalid(format!("{field}/status"), "`resolved` or `cancelled`")),
    };
    if let Some(call_id) = id.strip_prefix("waiting/") {
        return Ok(UiAnswer::Waiting { call_id: call_id.to_owned(), is_abandoned: is_cancelled });
    }
    if is_cancelled {
        request.inputs.insert(id.clone(), QuestionInput::Cancel);
        return Ok(UiAnswer::Deny { id, call_id: None, reason: "cancelled by the user".to_owned() });
    }
    let payload = entry.get("payload").unwrap_or(&Value::Null);
    request.inputs.insert(id.clone(), QuestionInput::Accept(payload.clone()));
    let decided = decision(payload, &id);
    Ok(decided.unwrap_or_else(|| UiAnswer::Input { id, call_id: None, input: payload.clone() }))
}

/// Returns `None` if the payload is not a decision. The payload is then the input to a question.
fn decision(payload: &Value, id: &str) -> Option<UiAnswer> {
    let (id, call_id) = (id.to_owned(), None);
    let reason = payload.get("reason").filter(|reason| !reason.is_null());
    let edited = payload.get("editedArgs").filter(|args| !args.is_null());
    if reason.is_some_and(|reason| !reason.is_string()) || edited.is_some_and(|args| !args.is_object()) {
        return None;
    }
    match (payload.get("approved")?.as_bool()?, edited) {
        (true, Some(args)) => Some(UiAnswer::AllowWith { id, call_id, args: args.clone() }),
        (true, None) => Some(UiAnswer::Allow { id, call_id }),
        (false, _) => {
            let reason = reason.and_then(Value::as_str).unwrap_or("denied by the user").to_owned();
            Some(UiAnswer::Deny { id, call_id, reason })
        }
    }
}
