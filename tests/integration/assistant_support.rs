//! What the tests of the assistant share.

use std::time::Duration;

use agent::message::Message;
use agent::{
    Assistant, AssistantBuilder, Control, ScriptedModel, Tool, ToolContext, ToolError, ToolOutput, ToolSet,
};
use serde_json::{Value, json};
use tokio::time::sleep;

/// The tools of the worked traces: `double`, `slow` (150 ms, deaf), `fast`, `wait` (until cancelled), `boom`, …
pub(crate) fn tools() -> ToolSet {
    fn tool<F>(name: &str, body: fn(Value, ToolContext) -> F) -> Tool
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let schema = match name {
            "double" => {
                json!({"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]})
            }
            _ => json!({"type": "object"}),
        };
        Tool::new(name, "A tool of a test.", schema, body).expect("the schema is fine")
    }
    ToolSet::new()
        .with(tool("double", |args, _| async move {
            Ok(ToolOutput::text((args["value"].as_i64().unwrap_or_default() * 2).to_string()))
        }))
        .with(tool("fast", |_, _| async { Ok(ToolOutput::text("fast done")) }))
        .with(tool("slow", |_, _| async {
            sleep(Duration::from_millis(150)).await;
            Ok(ToolOutput::text("slow done"))
        }))
        .with(tool("wait", |_, cx| async move {
            cx.cancelled().await;
            Err(ToolError::new("told to stop"))
        }))
        .with(tool("deaf", |_, _| std::future::pending()))
        .with(tool("boom", |_, _| async { Err(ToolError::new("kaput")) }))
        .with(tool("halt", |_, _| async { Ok(ToolOutput::text("halted").with_control(Control::EndNow)) }))
        .with(tool("finish", |_, _| async {
            Ok(ToolOutput::text("finished").with_control(Control::EndIfAll))
        }))
        .with(tool("key", |_, cx| async move { Ok(ToolOutput::text(cx.idempotency_key())) }))
}

pub(crate) fn assistant(model: &ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model.clone()).tools(tools())
}

/// Each message in a word or two: what a conversation must hold.
pub(crate) fn outline(assistant: &Assistant) -> Vec<String> {
    let one = |message: &Message| match message {
        Message::User(message) => format!("user {}", message.text()),
        Message::Assistant(message) => {
            let calls: Vec<_> = message.tool_calls().map(|call| call.name.as_str()).collect();
            format!("{} {}{}", message.stop_reason, message.text(), calls.join(","))
        }
        Message::ToolResult(result) => match &result.code {
            None => format!("{} {}", result.tool, result.text()),
            Some(code) => format!("{} {}({code})", result.tool, result.outcome),
        },
        other => other.role().to_owned(),
    };
    assistant.messages().iter().map(one).collect()
}

/// Every call has exactly one result, in call order, right behind its message.
pub(crate) fn assert_sound(assistant: &Assistant) {
    let mut owed = std::collections::VecDeque::new();
    for message in assistant.messages().iter() {
        match message {
            Message::ToolResult(result) => assert_eq!(owed.pop_front().as_ref(), Some(&result.call_id)),
            _ => assert!(owed.is_empty(), "{owed:?} have no result"),
        }
        if let Some(reply) = message.as_assistant().filter(|reply| !reply.stop_reason.is_failure()) {
            owed.extend(reply.tool_calls().map(|call| call.id.clone()));
        }
    }
    assert!(owed.is_empty(), "{owed:?} have no result");
}
