//! How events, requests and messages are shown.

use agent::Event;
use agent::message::Message;
use agent::model::ModelRequest;
use serde_json::{Map, Value, json};

/// Shows an event without run ids, usage and times.
pub(crate) fn event(event: &Event) -> Value {
    let event = serde_json::to_value(event).unwrap_or_default();
    let mut shown = Map::new();
    let mut show = |key: &str, value: &Value| {
        if !value.is_null() {
            shown.insert(key.to_owned(), value.clone());
        }
    };
    for key in ["seq", "turn", "type"] {
        show(key, &event[key]);
    }
    let kind = event["type"].as_str().unwrap_or_default();
    match kind {
        "message_update" => {
            show("role", &json!("assistant"));
            show("update", &event["update"]);
            show("content_index", &event["content_index"]);
        }
        "message_start" | "message_end" => message(kind, &event["message"], &mut show),
        "tool_execution_update" => {
            show("call_id", &event["call_id"]);
            show("tool", &event["tool"]);
            show("text", &text(&event["partial"]["content"]));
        }
        "run_suspended" => {
            let pending = event["pending"].as_array().into_iter().flatten();
            show("pending", &pending.map(|call| call["call_id"].clone()).collect());
        }
        "turn_end" => {
            show("tool_results", &event["tool_results"]);
            shown.insert("assistant".to_owned(), event["assistant"].clone());
        }
        "agent_end" => {
            show("stop", &event["stop"]);
            show("detail", &event["detail"]);
            let messages = event["messages"].as_array().into_iter().flatten();
            show("messages", &messages.map(|message| message["role"].clone()).collect());
        }
        _ => {
            for key in ["call_id", "tool", "args", "outcome", "is_error", "code", "control", "decision"] {
                show(key, &event[key]);
            }
            if kind == "tool_execution_end" {
                show("text", &text(&event["content"]));
            }
        }
    }
    Value::Object(shown)
}

fn message(kind: &str, message: &Value, show: &mut impl FnMut(&str, &Value)) {
    show("role", &message["role"]);
    let parts = message["content"].as_array();
    // A streamed reply is empty at its start, so only its role is shown.
    let is_reply = message["role"] == "assistant";
    let is_first =
        kind == "message_start" && message["stop_reason"] == "stop" && parts.is_none_or(Vec::is_empty);
    if is_reply && is_first {
        return;
    }
    show("text", &text(&message["content"]));
    if is_reply {
        let calls = parts.into_iter().flatten().filter(|part| part["type"] == "tool_call");
        show("calls", &calls.map(|part| part["id"].clone()).collect());
    }
    for key in ["stop_reason", "error", "call_id", "is_error", "outcome", "code"] {
        show(key, &message[key]);
    }
}

/// Joins the texts of parts.
fn text(parts: &Value) -> Value {
    let parts = parts.as_array().into_iter().flatten().filter(|part| part["type"] == "text");
    Value::from(parts.filter_map(|part| part["text"].as_str()).collect::<String>())
}

/// Shows the messages that the model was sent, one line each. If `is_given(call_id, code)` is false for a result with a code, the code is
/// shown instead of the text.
pub(crate) fn request(request: &ModelRequest, is_given: &impl Fn(&str, &str) -> bool) -> Value {
    request.messages.iter().map(|message| Value::from(line(message, is_given))).collect()
}

fn line(message: &Message, is_given: &impl Fn(&str, &str) -> bool) -> String {
    match message {
        Message::Assistant(reply) => {
            let calls: Vec<_> = reply.tool_calls().map(|call| format!("<{}>", call.name)).collect();
            format!("assistant:{}{}", reply.text(), calls.join("+"))
        }
        Message::ToolResult(result) => {
            let worded = match result.code.as_deref() {
                Some(code) if !is_given(&result.call_id, code) => format!("!{code}"),
                _ => result.text(),
            };
            format!("tool_result:{}:{worded}", result.call_id)
        }
        other => format!("{}:{}", other.role(), other.text()),
    }
}
