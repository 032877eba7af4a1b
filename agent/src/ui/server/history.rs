//! Converts the conversation of a thread to the messages of a protocol.
#![cfg_attr(
    not(all(feature = "ui-ag-ui", feature = "ui-ai-sdk")),
    allow(unused_imports, reason = "each protocol needs its own part")
)]

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::UiProtocol;
#[cfg(feature = "ui-ai-sdk")]
use super::super::view::source_part;
use super::super::view::{PROVIDER_FAILED, ShownEnd, View, file_of};
use super::UiServer;
use super::thread::{MessageLabel, ThreadState, UiThread};
use crate::loop_core::outcome_of;
use crate::message::{
    Content, Message, Part, ProviderTool, ToolArguments, ToolCall, ToolResultMessage, UserMessage,
};
use crate::tool::outcome::ToolResult;

/// A message with its run and turn, if they are known.
pub(super) type LabelledMessage = (Arc<Message>, Option<MessageLabel>);

/// Returns the messages of the conversation, without messages whose events have not been sent yet.
pub(super) fn labelled(thread: &UiThread, state: &ThreadState) -> Vec<LabelledMessage> {
    let messages = thread.assistant.messages();
    let mut list: Vec<LabelledMessage> =
        messages.shared().iter().map(|message| (message.clone(), state.label(message))).collect();
    // Opening the session of an unfinished run adds results for its open calls. These results have no events, so they are left out.
    if (state.is_active() || thread.assistant.unfinished_run().is_some())
        && let Some(last) = list.iter().rposition(|(_, label)| label.is_some())
    {
        list.truncate(last + 1);
    }
    list
}

impl UiServer {
    pub(super) fn history(&self, protocol: UiProtocol, thread: &UiThread) -> Value {
        let messages = labelled(thread, &thread.lock());
        self.history_of(protocol, thread, &messages)
    }

    pub(super) fn history_of(
        &self,
        protocol: UiProtocol,
        thread: &UiThread,
        messages: &[LabelledMessage],
    ) -> Value {
        let (registry, options) = self.shown_by(thread);
        let view = View::new(&registry, &options);
        let mut runs = Vec::new();
        for (at, (message, label)) in messages.iter().enumerate() {
            add_message(&mut runs, at, message, label.as_ref());
        }
        match protocol {
            #[cfg(feature = "ui-ai-sdk")]
            UiProtocol::AiSdk => {
                let messages = runs.iter().map(|run| run.ui_message(&view));
                messages.filter(|message| message["parts"] != json!([])).collect()
            }
            #[cfg(feature = "ui-ag-ui")]
            UiProtocol::AgUi => runs.iter().flat_map(|run| run.messages(&view)).collect(),
        }
    }
}

/// The messages that one run added, or one message of a user.
struct HistoryRun {
    id: String,
    is_user: bool,
    /// The messages, each with its turn.
    messages: Vec<(u32, Arc<Message>)>,
}

fn add_message(runs: &mut Vec<HistoryRun>, at: usize, message: &Arc<Message>, label: Option<&MessageLabel>) {
    let run_id = label.as_ref().map(|label| label.run_id.to_string());
    let turn = label.map_or_else(|| u32::try_from(at).unwrap_or(u32::MAX), |label| label.turn);
    let is_user = matches!(**message, Message::User(_));
    if matches!(**message, Message::Unknown(_)) {
        return;
    }
    if let Some(run) = runs.last_mut().filter(|run| !run.is_user) {
        // Without a label, the run of the message is unknown. The message is assumed to belong to the last run, unless it is a message of
        // the user, which begins another run.
        let is_same = run_id.as_ref().map_or(!is_user, |id| *id == run.id);
        if is_same {
            return run.messages.push((turn, message.clone()));
        }
    }
    let id = match run_id {
        Some(id) if !is_user => id,
        Some(id) => format!("{id}.prompt.{at}"),
        None => format!("message.{at}"),
    };
    runs.push(HistoryRun { id, is_user, messages: vec![(turn, message.clone())] });
}

struct HistoryCall<'m> {
    call: &'m ToolCall,
    unique_id: String,
    end: Option<(ShownEnd, &'m ToolResultMessage)>,
}

impl HistoryRun {
    /// Returns the calls of each message. A result belongs to the nearest earlier call with its id that has no result yet.
    fn calls(&self, view: &View) -> Vec<Vec<HistoryCall<'_>>> {
        let mut used: HashMap<&str, usize> = HashMap::new();
        let mut all: Vec<Vec<HistoryCall<'_>>> = Vec::new();
        for (_, message) in &self.messages {
            let mut own = Vec::new();
            match &**message {
                Message::Assistant(reply) => {
                    for call in reply.tool_calls() {
                        let n = used.entry(&call.id).or_default();
                        *n += 1;
                        let unique_id = if *n == 1 { call.id.clone() } else { format!("{}~{n}", call.id) };
                        own.push(HistoryCall { call, unique_id, end: None });
                    }
                }
                Message::ToolResult(result) => {
                    let mut open = all.iter_mut().rev().flatten();
                    let call = open.find(|call| call.call.id == result.call_id && call.end.is_none());
                    if let Some(call) = call {
                        call.end = Some((shown_end(view, result, &call.call.args), result));
                    }
                }
                _ => {}
            }
            all.push(own);
        }
        all
    }

    #[cfg(feature = "ui-ai-sdk")]
    fn ui_message(&self, view: &View) -> Value {
        if self.is_user {
            let parts = self.messages.iter().flat_map(|(_, message)| user_parts(message.content()));
            return json!({"id": self.id, "role": "user", "parts": parts.collect::<Vec<_>>()});
        }
        let mut parts = Vec::new();
        for ((at, (turn, message)), calls) in self.messages.iter().enumerate().zip(self.calls(view)) {
            match &**message {
                Message::Assistant(reply) => {
                    parts.push(json!({"type": "step-start"}));
                    let mut calls = calls.into_iter();
                    for (index, part) in reply.content.iter().enumerate() {
                        let id = format!("{turn}.{index}");
                        match &part.content {
                            Content::ToolCall(_) => {
                                parts.extend(calls.next().map(|call| tool_part(view, &call)));
                            }
                            Content::ProviderTool(tool) => add_provider_tool(view, &mut parts, &id, tool),
                            _ => parts.extend(reply_part(view, &id, part)),
                        }
                    }
                }
                Message::User(_) => {
                    let own = user_parts(message.content());
                    parts.push(
                        json!({"type": "steering-message", "id": format!("{}.{at}", self.id), "parts": own}),
                    );
                }
                Message::Custom(message) if view.options.custom_messages => {
                    let data = json!({"kind": message.kind, "data": message.data});
                    parts.push(json!({"type": "data-agent-message", "data": data}));
                }
                _ => {}
            }
        }
        json!({"id": self.id, "role": "assistant", "parts": parts})
    }

    #[cfg(feature = "ui-ag-ui")]
    fn messages(&self, view: &View) -> Vec<Value> {
        let mut list = Vec::new();
        for ((at, (turn, message)), calls) in self.messages.iter().enumerate().zip(self.calls(view)) {
            match &**message {
                Message::User(message) => {
                    let id = if self.is_user { self.id.clone() } else { format!("{}.user.{at}", self.id) };
                    list.push(json!({"id": id, "role": "user", "content": user_content(message)}));
                }
                Message::Assistant(reply) => {
                    let mut shown = json!({"id": format!("{}.{turn}", self.id), "role": "assistant"});
                    let texts = reply.content.iter().filter_map(|part| match &part.content {
                        Content::Text(text) | Content::Refusal(text) => Some(&**text),
                        _ => None,
                    });
                    let text: String = texts.collect();
                    if !text.is_empty() || calls.is_empty() {
                        shown["content"] = json!(text);
                    }
                    if !calls.is_empty() {
                        shown["toolCalls"] = calls.iter().map(|call| self.ag_ui_call(view, call)).collect();
                    }
                    list.push(shown);
                    for call in &calls {
                        let Some((end, _)) = &call.end else { continue };
                        let id = format!("{}/{}", self.id, call.unique_id);
                        let content = match end {
                            ShownEnd::Output(Value::String(text))
                            | ShownEnd::Error(text)
                            | ShownEnd::Refused { text, .. } => text.clone(),
                            ShownEnd::Output(output) => output.to_string(),
                            ShownEnd::Denied => "denied".to_owned(),
                        };
                        list.push(json!({"id": format!("{id}.result"), "role": "tool", "toolCallId": id, "content": content}));
                    }
                }
                _ => {}
            }
        }
        list
    }

    #[cfg(feature = "ui-ag-ui")]
    fn ag_ui_call(&self, view: &View, call: &HistoryCall<'_>) -> Value {
        let input = view.input(Some(&call.call.name), &call.call.args);
        json!({
            "id": format!("{}/{}", self.id, call.unique_id), "type": "function",
            "function": {"name": call.call.name, "arguments": input.to_string()},
        })
    }
}

/// Returns the text, or a list of parts if the message has files.
#[cfg(feature = "ui-ag-ui")]
fn user_content(message: &UserMessage) -> Value {
    let shown = message.content.iter().filter_map(|part| {
        if let Some(text) = part.as_text() {
            return Some(json!({"type": "text", "text": text}));
        }
        let (url, media_type) = file_of(&part.content)?;
        let kind = match &part.content {
            Content::Image(_) => "image",
            Content::Audio(_) => "audio",
            _ if media_type.starts_with("video/") => "video",
            _ => "document",
        };
        let source = match url.strip_prefix(&format!("data:{media_type};base64,")) {
            Some(data) => json!({"type": "data", "value": data, "mimeType": media_type}),
            None => json!({"type": "url", "value": url, "mimeType": media_type}),
        };
        Some(json!({"type": kind, "source": source}))
    });
    let parts: Vec<Value> = shown.collect();
    if parts.iter().all(|part| part["type"] == "text") { json!(message.text()) } else { parts.into() }
}

#[cfg(feature = "ui-ai-sdk")]
fn user_parts(content: &[Part]) -> Vec<Value> {
    let shown = content.iter().filter_map(|part| {
        if let Some(text) = part.as_text() {
            return Some(json!({"type": "text", "text": text}));
        }
        let (url, media_type) = file_of(&part.content)?;
        let mut file = json!({"type": "file", "url": url, "mediaType": media_type});
        if let Content::Image(media) | Content::Audio(media) | Content::Document(media) = &part.content
            && let Some(name) = &media.name
        {
            file["filename"] = json!(name);
        }
        Some(file)
    });
    shown.collect()
}

#[cfg(feature = "ui-ai-sdk")]
fn reply_part(view: &View, id: &str, part: &Part) -> Option<Value> {
    match &part.content {
        Content::Text(text) if !text.is_empty() => {
            Some(json!({"type": "text", "text": text, "state": "done"}))
        }
        Content::Thinking { text, redacted: false } if view.options.reasoning && !text.is_empty() => {
            Some(json!({"type": "reasoning", "text": text, "state": "done"}))
        }
        Content::Refusal(text) => Some(json!({"type": "data-agent-refused", "data": {"text": text}})),
        content => {
            if let Some((uri, title, media_type)) = view.source_of(content) {
                return Some(source_part(id, uri, title, media_type));
            }
            let (url, media_type) = file_of(content)?;
            Some(json!({"type": "file", "url": url, "mediaType": media_type}))
        }
    }
}

/// Adds a call that the provider ran. The input and the output of the call may be in one part or in two parts.
#[cfg(feature = "ui-ai-sdk")]
fn add_provider_tool(view: &View, parts: &mut Vec<Value>, part_id: &str, tool: &ProviderTool) {
    let id = tool.id.clone().unwrap_or_else(|| format!("provider.{part_id}"));
    let known = parts.iter().rposition(|part| part["providerExecuted"] == true && part["toolCallId"] == *id);
    let known = known.and_then(|at| parts.get_mut(at));
    let input = known.as_ref().map_or_else(|| view.provider_input(tool), |part| part["input"].clone());
    let mut part =
        json!({"type": "dynamic-tool", "toolName": tool.name, "toolCallId": id, "providerExecuted": true});
    let (state, key, shown) = match &tool.output {
        Some(_) if tool.is_error => ("output-error", "errorText", json!(PROVIDER_FAILED)),
        Some(output) => ("output-available", "output", view.provider_output(output)),
        None => ("output-available", "output", json!({"outcome": "completed"})),
    };
    (part["state"], part["input"], part[key]) = (json!(state), input, shown);
    match known {
        Some(known) => *known = part,
        None => parts.push(part),
    }
}

#[cfg(feature = "ui-ai-sdk")]
fn tool_part(view: &View, call: &HistoryCall<'_>) -> Value {
    let mut part = json!({"type": format!("tool-{}", call.call.name), "toolCallId": call.unique_id});
    let edited = call.end.as_ref().and_then(|(_, result)| result.edited_args.as_ref());
    part["input"] = view.input(Some(&call.call.name), edited.unwrap_or(&call.call.args));
    let state = match call.end.as_ref().map(|(end, _)| end) {
        None => "input-available",
        Some(ShownEnd::Output(output)) => {
            part["output"] = output.clone();
            "output-available"
        }
        Some(ShownEnd::Denied) => {
            part["approval"] = json!({"id": format!("decided/{}", call.unique_id), "approved": false});
            "output-denied"
        }
        Some(ShownEnd::Refused { text, .. } | ShownEnd::Error(text)) => {
            part["errorText"] = json!(text);
            "output-error"
        }
    };
    part["state"] = json!(state);
    part
}

fn shown_end(view: &View, message: &ToolResultMessage, sent: &ToolArguments) -> ShownEnd {
    let result = ToolResult::new(&*message.call_id, &*message.tool, outcome_of(message));
    view.end(&result, true, Some(sent), true)
}
