//! Readers of both protocols, written from their rules: each refuses what a client would, and builds the message that a page shows.

use std::collections::{BTreeMap, BTreeSet};

use agent::json;
use serde_json::{Map, Value};

fn text<'v>(chunk: &'v Value, key: &str) -> &'v str {
    chunk[key].as_str().unwrap_or_else(|| panic!("`{key}` is a text in {chunk}"))
}

/// The client of the AI SDK.
#[derive(Default)]
pub(crate) struct AiSdkReader {
    pub(crate) message: Vec<Value>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) message_id: Option<String>,
    pub(crate) finish: Option<String>,
    pub(crate) errors: Vec<String>,
    /// The position of each open text, and of each call.
    open: BTreeMap<String, usize>,
    approvals: BTreeMap<String, usize>,
    step_from: usize,
    has_step: bool,
    ended: bool,
}

/// Each type of chunk, with its required and its optional fields.
const CHUNKS: &[(&str, &[&str], &[&str])] = &[
    ("start", &["messageId"], &[]),
    ("start-step", &[], &[]),
    ("finish-step", &[], &[]),
    ("text-start", &["id"], &[]),
    ("text-delta", &["id", "delta"], &[]),
    ("text-end", &["id"], &[]),
    ("reasoning-start", &["id"], &[]),
    ("reasoning-delta", &["id", "delta"], &[]),
    ("reasoning-end", &["id"], &[]),
    ("tool-input-start", &["toolCallId", "toolName"], &[]),
    ("tool-input-delta", &["toolCallId", "inputTextDelta"], &[]),
    ("tool-input-available", &["toolCallId", "toolName", "input"], &["providerExecuted", "dynamic"]),
    ("tool-input-error", &["toolCallId", "toolName", "input", "errorText"], &[]),
    ("tool-approval-request", &["approvalId", "toolCallId"], &["isAutomatic", "approvalDescriptor"]),
    ("tool-approval-response", &["approvalId", "approved"], &["reason"]),
    ("tool-output-available", &["toolCallId", "output"], &["preliminary", "providerExecuted", "dynamic"]),
    ("tool-output-error", &["toolCallId", "errorText"], &["providerExecuted", "dynamic"]),
    ("tool-output-denied", &["toolCallId"], &[]),
    ("source-url", &["sourceId", "url"], &["title"]),
    ("source-document", &["sourceId", "mediaType", "title"], &[]),
    ("file", &["url", "mediaType"], &[]),
    ("steering-message", &["id", "parts"], &[]),
    ("message-metadata", &["messageMetadata"], &[]),
    ("finish", &["finishReason"], &["messageMetadata"]),
    ("abort", &[], &[]),
    ("error", &["errorText"], &[]),
];

const REASONS: [&str; 6] = ["stop", "length", "content-filter", "tool-calls", "error", "other"];

impl AiSdkReader {
    /// Reads the next response about the same message.
    pub(crate) fn next_response(&mut self) {
        (self.ended, self.finish) = (false, None);
        assert!(!self.has_step, "the step was left open");
        assert!(self.open.is_empty(), "open: {:?}", self.open);
    }

    pub(crate) fn read_all(&mut self, chunks: &[Value]) {
        for chunk in chunks {
            self.read(chunk);
        }
    }

    pub(crate) fn read(&mut self, chunk: &Value) {
        assert!(!self.ended, "after the end: {chunk}");
        let kind = text(chunk, "type");
        Self::check_fields(kind, chunk);
        match kind {
            "start" => {
                assert!(self.finish.is_none());
                let id = text(chunk, "messageId").to_owned();
                assert!(self.message_id.as_ref().is_none_or(|known| *known == id), "another message");
                self.message_id = Some(id);
            }
            _ if self.message_id.is_none() => panic!("before `start`: {chunk}"),
            "start-step" => {
                assert!(!std::mem::replace(&mut self.has_step, true), "a step in a step");
                self.message.push(json!({"type": "step-start"}));
                self.step_from = self.message.len();
            }
            "finish-step" => {
                assert!(std::mem::take(&mut self.has_step), "no step is open");
                assert!(self.open.is_empty(), "open: {:?}", self.open);
            }
            "text-start" | "reasoning-start" => {
                let kind = kind.trim_end_matches("-start");
                assert!(self.open.insert(key(kind, chunk), self.message.len()).is_none(), "open: {chunk}");
                self.message.push(json!({"type": kind, "text": "", "state": "streaming"}));
            }
            "text-delta" | "reasoning-delta" => {
                let delta = text(chunk, "delta");
                assert!(!delta.is_empty(), "an empty delta");
                let at = self.open[&key(kind.trim_end_matches("-delta"), chunk)];
                let grown = text(&self.message[at], "text").to_owned() + delta;
                self.message[at]["text"] = grown.into();
            }
            "text-end" | "reasoning-end" => {
                let at = self.open.remove(&key(kind.trim_end_matches("-end"), chunk)).expect("it is open");
                self.message[at]["state"] = "done".into();
            }
            "steering-message" => assert!(!self.has_step, "a steering message in a step"),
            "message-metadata" | "finish" => {
                if let Some(Value::Object(more)) = chunk.get("messageMetadata") {
                    self.metadata.extend(more.clone());
                }
                if kind == "finish" {
                    assert!(!self.has_step, "the step is open");
                    self.finish = Some(text(chunk, "finishReason").to_owned());
                    assert!(REASONS.contains(&self.finish.as_deref().unwrap()), "{chunk}");
                    self.ended = true;
                }
            }
            "error" => self.errors.push(text(chunk, "errorText").to_owned()),
            "abort" => {}
            "file" | "source-url" | "source-document" => self.message.push(chunk.clone()),
            _ if kind.starts_with("data-") => self.data(chunk),
            _ => self.tool(kind, chunk),
        }
    }

    fn check_fields(kind: &str, chunk: &Value) {
        let fields = chunk.as_object().unwrap();
        let (required, optional) = if kind.starts_with("data-") {
            (&["data"][..], &["id", "transient"][..])
        } else {
            let known = CHUNKS.iter().find(|(known, ..)| *known == kind);
            known.map(|(_, required, optional)| (*required, *optional)).expect(kind)
        };
        for key in required {
            assert!(fields.contains_key(*key), "`{key}` is missing in {chunk}");
        }
        for (key, value) in fields.iter().filter(|(key, _)| *key != "type") {
            let is_known = required.contains(&key.as_str()) || optional.contains(&key.as_str());
            assert!(is_known, "`{key}` is not a field of {chunk}");
            assert!(
                !value.is_null() || ["output", "input", "data"].contains(&key.as_str()),
                "null in {chunk}"
            );
        }
    }

    fn data(&mut self, chunk: &Value) {
        if chunk["transient"] == true {
            return;
        }
        let same = |part: &&mut Value| {
            chunk.get("id").is_some() && part["type"] == chunk["type"] && part["id"] == chunk["id"]
        };
        match self.message.iter_mut().find(same) {
            Some(part) => part["data"] = chunk["data"].clone(),
            None => self.message.push(chunk.clone()),
        }
    }

    fn call(&mut self, chunk: &Value) -> Option<usize> {
        let id = text(chunk, "toolCallId");
        self.message.iter().rposition(|part| part["toolCallId"] == id)
    }

    fn tool(&mut self, kind: &str, chunk: &Value) {
        if kind == "tool-approval-response" {
            let at = *self.approvals.get(text(chunk, "approvalId")).expect("a known approval");
            self.message[at]["state"] = "approval-responded".into();
            self.message[at]["approval"]["approved"] = chunk["approved"].clone();
            return;
        }
        let known = self.call(chunk);
        match kind {
            "tool-input-start" => {
                assert!(known.is_none(), "the id of a call is used again: {chunk}");
                self.add_call(chunk, "input-streaming");
            }
            "tool-input-delta" => {
                let part = &mut self.message[known.expect("a known call")];
                assert_eq!(part["state"], "input-streaming", "{chunk}");
                let grown =
                    part["raw"].as_str().unwrap_or_default().to_owned() + text(chunk, "inputTextDelta");
                part["raw"] = grown.into();
            }
            "tool-input-available" | "tool-input-error" => {
                let in_step = known.filter(|at| *at >= self.step_from);
                assert!(known == in_step, "a second part for one call: {chunk}");
                let at = in_step.unwrap_or_else(|| self.add_call(chunk, ""));
                let part = &mut self.message[at];
                assert!(!text(part, "state").starts_with("output"), "input after the end: {chunk}");
                part.as_object_mut().unwrap().remove("raw");
                part["input"] = chunk["input"].clone();
                if kind == "tool-input-error" {
                    (part["state"], part["errorText"]) = ("output-error".into(), chunk["errorText"].clone());
                } else if part["approval"].is_null() {
                    part["state"] = "input-available".into();
                }
            }
            "tool-approval-request" => {
                let at = known.expect("a known call");
                assert!(self.approvals.insert(text(chunk, "approvalId").to_owned(), at).is_none());
                self.message[at]["state"] = "approval-requested".into();
                self.message[at]["approval"] =
                    json!({"id": chunk["approvalId"], "isAutomatic": chunk["isAutomatic"] == true});
                if let Some(descriptor) = chunk.get("approvalDescriptor") {
                    self.message[at]["approval"]["descriptor"] = descriptor.clone();
                }
            }
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                let part = &mut self.message[known.expect("a known call")];
                assert!(!part["input"].is_null(), "output before input: {chunk}");
                let is_over = text(part, "state").starts_with("output") && part["preliminary"].is_null();
                assert!(!is_over, "a second end: {chunk}");
                if kind == "tool-output-denied" {
                    assert_eq!(part["approval"]["approved"], false, "denied without a decision: {part}");
                }
                part["state"] = kind.trim_start_matches("tool-").into();
                let part = part.as_object_mut().unwrap();
                part.remove("preliminary");
                for key in ["output", "errorText", "preliminary"] {
                    if let Some(value) = chunk.get(key) {
                        part.insert(key.to_owned(), value.clone());
                    }
                }
            }
            _ => panic!("an unknown chunk: {chunk}"),
        }
    }

    fn add_call(&mut self, chunk: &Value, state: &str) -> usize {
        self.message.push(json!({
            "type": format!("tool-{}", text(chunk, "toolName")), "toolCallId": chunk["toolCallId"],
            "state": state, "input": null, "approval": null,
        }));
        self.message.len() - 1
    }

    /// Returns what must hold at the end of a response.
    pub(crate) fn assert_ended(&self) {
        assert!(self.ended, "no `finish`");
        assert!(!self.has_step);
        assert!(self.open.is_empty(), "open: {:?}", self.open);
        // A part that is still `approval-responded` is sent again without end.
        for part in &self.message {
            let is_open = part["state"] == "approval-responded" && part["approval"]["isAutomatic"] == false;
            assert!(!is_open || self.finish.as_deref() == Some("tool-calls"), "{part}");
            if self.finish.as_deref() != Some("tool-calls") && part["toolCallId"].is_string() {
                assert!(text(part, "state").starts_with("output"), "the call is open: {part}");
            }
        }
    }
}

fn key(kind: &str, chunk: &Value) -> String {
    format!("{kind} {}", text(chunk, "id"))
}

/// The client of AG-UI 1.0: its verifier and its reducer.
#[derive(Default)]
pub(crate) struct AgUiReader {
    pub(crate) messages: Vec<Value>,
    pub(crate) custom: Vec<(String, Value)>,
    pub(crate) outcome: Value,
    pub(crate) error: Option<String>,
    pub(crate) activities: BTreeMap<String, Value>,
    is_open: bool,
    open: BTreeSet<String>,
    steps: BTreeSet<String>,
    is_failed: bool,
    /// The sub-agents of this response: the one that each is within, its name, and whether it is active.
    pub(crate) subagents: BTreeMap<String, (Option<String>, String, bool)>,
    /// The interrupts of those that wait.
    pub(crate) suspended: Vec<(String, Vec<String>)>,
    /// The sub-agent of each message and call.
    tags: BTreeMap<String, Option<String>>,
}

/// Each type of event, with its required and its optional fields.
const EVENTS: &[(&str, &[&str], &[&str])] = &[
    ("RUN_STARTED", &["threadId", "runId"], &["protocolVersion", "parentRunId"]),
    ("RUN_FINISHED", &["threadId", "runId"], &["outcome", "usage"]),
    ("RUN_ERROR", &["message"], &["code", "usage"]),
    ("STEP_STARTED", &["stepName"], &[]),
    ("STEP_FINISHED", &["stepName"], &[]),
    ("TEXT_MESSAGE_START", &["messageId", "role"], &[]),
    ("TEXT_MESSAGE_CONTENT", &["messageId", "delta"], &[]),
    ("TEXT_MESSAGE_END", &["messageId"], &[]),
    ("TOOL_CALL_START", &["toolCallId", "toolCallName"], &["parentMessageId"]),
    ("TOOL_CALL_ARGS", &["toolCallId", "delta"], &[]),
    ("TOOL_CALL_END", &["toolCallId"], &[]),
    ("TOOL_CALL_RESULT", &["messageId", "toolCallId", "content", "role"], &["metadata"]),
    ("REASONING_START", &["messageId"], &[]),
    ("REASONING_MESSAGE_START", &["messageId", "role"], &[]),
    ("REASONING_MESSAGE_CONTENT", &["messageId", "delta"], &[]),
    ("REASONING_MESSAGE_END", &["messageId"], &[]),
    ("REASONING_END", &["messageId"], &[]),
    ("MESSAGES_SNAPSHOT", &["messages"], &[]),
    ("ACTIVITY_SNAPSHOT", &["messageId", "activityType", "content"], &["replace"]),
    ("CUSTOM", &["name", "value"], &[]),
    ("SUBAGENT_STARTED", &["subagentRunId", "name", "parentToolCallId"], &["parentSubagentRunId"]),
    ("SUBAGENT_FINISHED", &["subagentRunId", "outcome"], &[]),
    ("SUBAGENT_ERROR", &["subagentRunId", "message", "code"], &[]),
];

impl AgUiReader {
    pub(crate) fn read_all(&mut self, events: &[Value]) {
        for event in events {
            self.read(event);
        }
    }

    pub(crate) fn read(&mut self, event: &Value) {
        let kind = text(event, "type");
        let (_, required, optional) = EVENTS.iter().find(|(known, ..)| *known == kind).expect(kind);
        let fields = event.as_object().unwrap();
        for key in *required {
            assert!(fields.contains_key(*key), "`{key}` is missing in {event}");
        }
        for (key, value) in fields.iter().filter(|(key, _)| *key != "type") {
            let is_known = required.contains(&key.as_str()) || optional.contains(&key.as_str());
            assert!(
                (is_known || key == "subagentRunId") && !(value.is_null() && key != "value"),
                "`{key}` in {event}"
            );
        }
        self.check_tag(kind, event);
        assert!(self.is_open || ["RUN_STARTED", "RUN_ERROR"].contains(&kind), "outside of a run: {event}");
        assert!(!self.is_failed || kind == "RUN_STARTED", "after an error: {event}");
        match kind {
            "RUN_STARTED" => {
                assert!(!std::mem::replace(&mut self.is_open, true), "a run in a run");
                (self.is_failed, self.outcome, self.error) = (false, Value::Null, None);
                self.subagents.clear();
                self.suspended.clear();
            }
            "RUN_FINISHED" => {
                self.assert_closed();
                self.outcome = event.get("outcome").cloned().unwrap_or_default();
                if self.outcome["type"] == "interrupt" {
                    assert!(!self.outcome["interrupts"].as_array().unwrap().is_empty());
                }
                self.is_open = false;
            }
            "SUBAGENT_STARTED" => self.subagent_start(event),
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                let id = text(event, "subagentRunId");
                let (.., is_active) = self.subagents.get_mut(id).expect("it has started");
                assert!(std::mem::take(is_active), "not active: {event}");
                if event["outcome"]["type"] == "suspended" {
                    let ids: Vec<String> = event["outcome"]["interruptIds"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|id| id.as_str().unwrap().to_owned())
                        .collect();
                    self.suspended.push((id.to_owned(), ids));
                }
            }
            "RUN_ERROR" => {
                self.error = Some(text(event, "message").to_owned());
                (self.is_open, self.is_failed) = (false, true);
                self.open.clear();
                self.steps.clear();
            }
            "STEP_STARTED" => {
                assert!(self.steps.insert(text(event, "stepName").to_owned()), "open: {event}");
            }
            "STEP_FINISHED" => assert!(self.steps.remove(text(event, "stepName")), "not open: {event}"),
            "MESSAGES_SNAPSHOT" => self.messages.clone_from(event["messages"].as_array().unwrap()),
            "ACTIVITY_SNAPSHOT" => {
                assert!(event["content"].is_object());
                self.activities.insert(text(event, "messageId").to_owned(), event["content"].clone());
            }
            "CUSTOM" => self.custom.push((text(event, "name").to_owned(), event["value"].clone())),
            _ if kind.starts_with("TOOL_CALL") => self.call(kind, event),
            _ => self.text(kind, event),
        }
    }

    fn subagent_start(&mut self, event: &Value) {
        let id = text(event, "subagentRunId").to_owned();
        let parent = event.get("parentSubagentRunId").map(|parent| parent.as_str().unwrap().to_owned());
        assert!(parent.as_ref().is_none_or(|parent| self.subagents.contains_key(parent)), "{event}");
        assert!(self.find_call(text(event, "parentToolCallId")).is_some(), "of an unknown call: {event}");
        let started = self.subagents.insert(id, (parent, text(event, "name").to_owned(), true));
        assert!(started.is_none(), "an id that is used again: {event}");
    }

    /// An event of a message or call has the tag with which that began, of a sub-agent that is active.
    fn check_tag(&mut self, kind: &str, event: &Value) {
        if kind.starts_with("SUBAGENT") || kind.starts_with("RUN_") {
            return;
        }
        let tag = event.get("subagentRunId").map(|tag| tag.as_str().unwrap().to_owned());
        if let Some(tag) = &tag {
            assert!(self.subagents.get(tag).is_some_and(|(.., is_active)| *is_active), "not active: {event}");
        }
        let id = event.get("toolCallId").or(event.get("messageId")).and_then(Value::as_str);
        if let Some(id) = id.filter(|_| kind != "ACTIVITY_SNAPSHOT") {
            let known = self.tags.entry(id.to_owned()).or_insert_with(|| tag.clone());
            assert_eq!(*known, tag, "another tag: {event}");
        }
        if let Some(parent) = event.get("parentMessageId").and_then(Value::as_str) {
            let known = self.tags.entry(parent.to_owned()).or_insert_with(|| tag.clone());
            assert_eq!(*known, tag, "another tag than that of its message: {event}");
        }
    }

    fn text(&mut self, kind: &str, event: &Value) {
        let id = text(event, "messageId");
        let (family, phase) = kind.rsplit_once('_').unwrap();
        let key = format!("{family} {id}");
        match phase {
            "START" => {
                assert!(self.open.insert(key), "open: {event}");
                if family != "REASONING" {
                    self.message(id, event["role"].as_str().unwrap());
                }
            }
            "CONTENT" => {
                assert!(self.open.contains(&key), "not open: {event}");
                assert!(!text(event, "delta").is_empty());
                let at = self.messages.iter().position(|message| message["id"] == id).unwrap();
                let grown = self.messages[at]["content"].as_str().unwrap_or_default().to_owned();
                self.messages[at]["content"] = (grown + text(event, "delta")).into();
            }
            _ => assert!(self.open.remove(&key), "not open: {event}"),
        }
    }

    fn message(&mut self, id: &str, role: &str) -> usize {
        if let Some(at) = self.messages.iter().position(|message| message["id"] == id) {
            assert_eq!(self.messages[at]["role"], role, "an id of another role");
            return at;
        }
        self.messages.push(json!({"id": id, "role": role, "content": ""}));
        self.messages.len() - 1
    }

    fn call(&mut self, kind: &str, event: &Value) {
        let id = text(event, "toolCallId");
        let key = format!("call {id}");
        match kind {
            "TOOL_CALL_START" => {
                assert!(self.open.insert(key), "open: {event}");
                let text_is_open = self.open.iter().any(|open| open.starts_with("TEXT_MESSAGE"));
                assert!(!text_is_open, "a call in an open message: {event}");
                assert!(self.find_call(id).is_none(), "the id is used again: {event}");
                let parent = event.get("parentMessageId").map_or(id, |parent| parent.as_str().unwrap());
                let at = self.message(parent, "assistant");
                let call = json!({"id": id, "name": event["toolCallName"], "arguments": ""});
                match self.messages[at].get_mut("toolCalls") {
                    Some(Value::Array(calls)) => calls.push(call),
                    _ => self.messages[at]["toolCalls"] = json!([call]),
                }
            }
            "TOOL_CALL_ARGS" => {
                assert!(self.open.contains(&key), "not open: {event}");
                let (at, n) = self.find_call(id).unwrap();
                let call = &mut self.messages[at]["toolCalls"][n];
                let grown = call["arguments"].as_str().unwrap().to_owned() + text(event, "delta");
                call["arguments"] = grown.into();
            }
            "TOOL_CALL_END" => assert!(self.open.remove(&key), "not open: {event}"),
            _ => {
                assert!(!self.open.contains(&key), "a result of a call that is open: {event}");
                let id = text(event, "messageId");
                let result = json!({"id": id, "role": "tool", "toolCallId": event["toolCallId"], "content": event["content"]});
                assert!(self.messages.iter().all(|message| message["id"] != id), "a second result: {event}");
                self.messages.push(result);
            }
        }
    }

    fn find_call(&self, id: &str) -> Option<(usize, usize)> {
        self.messages.iter().enumerate().find_map(|(at, message)| {
            let calls = message["toolCalls"].as_array()?;
            Some((at, calls.iter().position(|call| call["id"] == id)?))
        })
    }

    fn assert_closed(&self) {
        assert!(self.open.is_empty() && self.steps.is_empty(), "{:?} {:?}", self.open, self.steps);
        assert!(self.subagents.values().all(|(.., is_active)| !is_active), "{:?}", self.subagents);
    }

    pub(crate) fn assert_ended(&self) {
        assert!(!self.is_open, "no end");
        self.assert_closed();
        if self.error.is_some() || self.outcome["type"] == "interrupt" {
            return;
        }
        // Exactly the calls without a result wait for the browser.
        let results: BTreeSet<&str> =
            self.messages.iter().filter_map(|message| message["toolCallId"].as_str()).collect();
        let calls = self.messages.iter().filter_map(|message| message["toolCalls"].as_array()).flatten();
        let open: Vec<&Value> =
            calls.map(|call| &call["id"]).filter(|id| !results.contains(id.as_str().unwrap())).collect();
        let pending = self.outcome["pendingToolCallIds"].as_array().cloned().unwrap_or_default();
        assert_eq!(open, pending.iter().collect::<Vec<_>>());
    }
}
