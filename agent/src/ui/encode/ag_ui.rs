//! Writes the events of AG-UI.

use serde_json::{Value, json};

use super::super::UiData;
use super::super::chunk::ChunkWriter;
use super::super::view::{ShownEnd, content_value};
use super::calls::{CallEnding, UiCall};
use super::child_run::{ChildEnd, ChildRun, call_facts, run_facts};
use super::wire::{RunEnding, TextKind, UiPart, WaitingCall, Wants, WireFormat};
use crate::loop_core::RunStop;
use crate::message::Part;
use crate::tool::progress::Progress;
use crate::tool::question::Question;

pub(in crate::ui) const VERSION: &str = "1.0";

pub(super) struct AgUiFormat {
    thread: String,
    run_id: String,
    /// The run id that the client sent, or else `run_id`. A client sends a new run id with each request, even to resume a run.
    run: String,
    parent_run: Option<String>,
    /// Whether the client declared version 1.0. Older clients fail at unknown fields and events.
    is_current: bool,
    step: Option<String>,
    message: String,
    is_message_open: bool,
    open_calls: Vec<String>,
}

impl AgUiFormat {
    pub(super) fn new(request: &super::super::UiRequest, run_id: &str) -> Self {
        Self {
            thread: request.thread.clone(),
            run_id: run_id.to_owned(),
            run: request.run.clone().unwrap_or_else(|| run_id.to_owned()),
            parent_run: request.parent_run.clone(),
            is_current: request.is_current,
            step: None,
            message: String::new(),
            is_message_open: false,
            open_calls: Vec::new(),
        }
    }

    fn call_id(&self, call: &UiCall) -> String {
        format!("{}/{}", self.run_id, call.unique_id)
    }

    fn close_message(&mut self, w: &mut ChunkWriter<'_>) {
        if std::mem::take(&mut self.is_message_open) {
            w.push(&json!({"type": "TEXT_MESSAGE_END", "messageId": self.message}));
        }
    }

    fn tagged(&self, mut event: Value, child: Option<&str>) -> Value {
        if let Some(child) = child.filter(|_| self.is_current) {
            event["subagentRunId"] = json!(child);
        }
        event
    }

    fn custom(w: &mut ChunkWriter<'_>, name: &str, value: &Value) {
        w.push(&json!({"type": "CUSTOM", "name": name, "value": value}));
    }

    /// Closes the open message, calls and step, as AG-UI requires before the end of a run.
    fn close_all(&mut self, w: &mut ChunkWriter<'_>) {
        self.close_message(w);
        for id in std::mem::take(&mut self.open_calls) {
            w.push(&json!({"type": "TOOL_CALL_END", "toolCallId": id}));
        }
        if let Some(step) = self.step.take() {
            w.push(&json!({"type": "STEP_FINISHED", "stepName": step}));
        }
    }

    fn finish(&self, w: &mut ChunkWriter<'_>, outcome: Option<Value>, usage: Option<&Value>) {
        let mut event = json!({"type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run});
        if let Some(outcome) = outcome {
            event["outcome"] = outcome;
        }
        if let Some(usage) = usage {
            event["usage"] = usage.clone();
        }
        w.push(&event);
    }
}

impl WireFormat for AgUiFormat {
    fn begin(&mut self, w: &mut ChunkWriter<'_>) {
        let mut event = json!({"type": "RUN_STARTED", "threadId": self.thread, "runId": self.run, "protocolVersion": VERSION});
        if let Some(parent) = &self.parent_run {
            event["parentRunId"] = json!(parent);
        }
        w.push(&event);
        if let Some(step) = &self.step {
            w.push(&json!({"type": "STEP_STARTED", "stepName": step}));
        }
    }

    fn turn_start(&mut self, w: &mut ChunkWriter<'_>, turn: u32) {
        self.turn_end(w, None);
        let step = format!("turn {turn}");
        w.push(&json!({"type": "STEP_STARTED", "stepName": step}));
        self.step = Some(step);
    }

    fn reply_start(&mut self, w: &mut ChunkWriter<'_>, message_id: &str) {
        self.close_message(w);
        message_id.clone_into(&mut self.message);
    }

    fn queued_message(&mut self, w: &mut ChunkWriter<'_>, id: &str, content: &[Part]) {
        let id = format!("{}.{id}", self.run_id);
        let Value::String(text) = content_value(
            &content.iter().filter(|part| part.as_text().is_some()).cloned().collect::<Vec<_>>(),
        ) else {
            return;
        };
        w.push(&json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "user"}));
        if !text.is_empty() {
            w.push(&json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}));
        }
        w.push(&json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
    }

    fn custom_message(&mut self, w: &mut ChunkWriter<'_>, kind: &str, data: &Value) {
        Self::custom(w, "agent.message", &json!({"kind": kind, "data": data}));
    }

    fn text_start(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str) {
        if kind == TextKind::Reasoning {
            let id = format!("{}.{id}", self.run_id);
            w.push(&json!({"type": "REASONING_START", "messageId": id}));
            w.push(&json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}));
        }
    }

    fn text_delta(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str, delta: &str) {
        if kind == TextKind::Reasoning {
            let id = format!("{}.{id}", self.run_id);
            w.push(&json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
            return;
        }
        if !std::mem::replace(&mut self.is_message_open, true) {
            w.push(&json!({"type": "TEXT_MESSAGE_START", "messageId": self.message, "role": "assistant"}));
        }
        w.push(&json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": self.message, "delta": delta}));
    }

    fn text_end(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str) {
        if kind == TextKind::Reasoning {
            let id = format!("{}.{id}", self.run_id);
            w.push(&json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
            w.push(&json!({"type": "REASONING_END", "messageId": id}));
        } else {
            self.close_message(w);
        }
    }

    fn part(&mut self, w: &mut ChunkWriter<'_>, id: &str, part: &UiPart<'_>) {
        match part {
            UiPart::Refusal(text) => {
                self.text_delta(w, TextKind::Text, id, text);
                self.close_message(w);
                Self::custom(w, "agent.refused", &json!({"messageId": self.message}));
            }
            UiPart::File { url, media_type } => {
                let value = json!({"messageId": self.message, "url": url, "mediaType": media_type});
                Self::custom(w, "agent.file", &value);
            }
            UiPart::Source { uri, title, media_type } => {
                let mut value = json!({"messageId": self.message, "url": uri});
                for (key, text) in [("title", title), ("mediaType", media_type)] {
                    if let Some(text) = text {
                        value[key] = json!(text);
                    }
                }
                Self::custom(w, "agent.source", &value);
            }
        }
    }

    fn call_start(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall) {
        self.close_message(w);
        let id = self.call_id(call);
        let mut event = json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": call.tool});
        if !call.message_id.is_empty() {
            event["parentMessageId"] = json!(call.message_id);
        }
        w.push(&self.tagged(event, call.child.as_deref()));
        self.open_calls.push(id);
    }

    fn call_delta(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, delta: &str) {
        let id = self.call_id(call);
        if self.open_calls.contains(&id) {
            w.push(&json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta}));
        }
    }

    fn call_complete(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, input: &Value) {
        let id = self.call_id(call);
        let Some(at) = self.open_calls.iter().position(|open| *open == id) else { return };
        self.open_calls.remove(at);
        let child = call.child.as_deref();
        if call.streamed == 0 {
            let event = json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": input.to_string()});
            w.push(&self.tagged(event, child));
        }
        w.push(&self.tagged(json!({"type": "TOOL_CALL_END", "toolCallId": id}), child));
    }

    fn input(&mut self, _w: &mut ChunkWriter<'_>, _call: &UiCall, _input: &Value) {}

    fn coercions(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, coercions: &Value) {
        let value = json!({"toolCallId": self.call_id(call), "coercions": coercions});
        Self::custom(w, "agent.coercions", &value);
    }

    fn progress(
        &mut self,
        w: &mut ChunkWriter<'_>,
        call: &UiCall,
        progress: &Progress,
        content: Option<&Value>,
    ) {
        let id = self.call_id(call);
        let mut shown = super::progress_value(progress);
        shown["toolCallId"] = json!(id);
        if let Some(content) = content {
            shown["content"] = content.clone();
        }
        w.push(&json!({"type": "ACTIVITY_SNAPSHOT", "messageId": format!("{id}.progress"), "activityType": "agent.progress", "content": shown, "replace": true}));
    }

    fn approval(&mut self, _w: &mut ChunkWriter<'_>, _call: &UiCall, _request_id: &str, _is_automatic: bool) {
    }

    fn decision(
        &mut self,
        w: &mut ChunkWriter<'_>,
        call: &UiCall,
        _request_id: Option<&str>,
        is_allowed: bool,
    ) {
        let value =
            json!({"toolCallId": self.call_id(call), "approved": is_allowed, "edited": call.was_edited});
        Self::custom(w, "agent.approval", &value);
    }

    fn questions(&mut self, _w: &mut ChunkWriter<'_>, _call: &UiCall, _questions: &[&Question]) {}

    fn question_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        call: &UiCall,
        id: &str,
        _is_first: bool,
        accepted: bool,
    ) {
        let value = json!({"toolCallId": self.call_id(call), "interruptId": id, "accepted": accepted});
        Self::custom(w, "agent.question", &value);
    }

    fn call_end(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, _input: &Value, end: &CallEnding) {
        let id = self.call_id(call);
        let (content, issues) = match &end.shown {
            ShownEnd::Output(Value::String(text)) | ShownEnd::Error(text) => (text.clone(), None),
            ShownEnd::Output(output) => (output.to_string(), None),
            ShownEnd::Denied => ("denied".to_owned(), None),
            ShownEnd::Refused { text, issues } => (text.clone(), Some(issues)),
        };
        let mut facts = json!({"outcome": end.outcome});
        if let Some(code) = &end.code {
            facts["code"] = json!(code);
        }
        let event = json!({"type": "TOOL_CALL_RESULT", "messageId": format!("{id}.result"), "toolCallId": id, "content": content, "role": "tool"});
        let mut event = self.tagged(event, call.child.as_deref());
        if self.is_current {
            event["metadata"] = facts;
            w.push(&event);
        } else {
            w.push(&event);
            if end.outcome != "completed" {
                facts["toolCallId"] = json!(id);
                Self::custom(w, "agent.outcome", &facts);
            }
        }
        if let Some(issues) = issues.filter(|issues| !issues.is_empty()) {
            Self::custom(w, "agent.report", &json!({"toolCallId": id, "issues": issues}));
        }
    }

    fn waiting(&mut self, _w: &mut ChunkWriter<'_>, _call: &UiCall, _is_browser: bool) {}

    fn turn_end(&mut self, w: &mut ChunkWriter<'_>, _usage: Option<&Value>) {
        self.close_message(w);
        if let Some(step) = self.step.take() {
            w.push(&json!({"type": "STEP_FINISHED", "stepName": step}));
        }
    }

    fn suspended(
        &mut self,
        w: &mut ChunkWriter<'_>,
        waiting: &[WaitingCall],
        unanswered: usize,
        usage: Option<&Value>,
    ) {
        self.close_all(w);
        let in_browser = waiting.iter().filter(|one| matches!(one.wants, Wants::Browser)).count();
        // If the outcome is not `interrupt`, a client runs every call that has no result. So another outcome is sent only if all calls
        // that have no result are for the browser.
        if in_browser == waiting.len() && in_browser == unanswered {
            let ids: Vec<String> = waiting.iter().map(|one| self.call_id(&one.call)).collect();
            let outcome = self.is_current.then(|| json!({"type": "success", "pendingToolCallIds": ids}));
            return self.finish(w, outcome, usage);
        }
        let interrupts = waiting.iter().map(|one| {
            let WaitingCall { call, wants } = one;
            let (id, interrupt) = (self.call_id(call), one.interrupt_id());
            let shown = match wants {
                Wants::Approval { message, schema, .. } => {
                    json!({"id": interrupt, "reason": "tool_call", "message": message, "toolCallId": id, "responseSchema": schema})
                }
                Wants::Question(question) => {
                    let mut asked = json!({"id": interrupt, "reason": "input_required", "message": question.message, "toolCallId": id, "responseSchema": question.schema});
                    if let Some(report) = &question.report {
                        asked["metadata"] = json!({"report": report});
                    }
                    asked
                }
                Wants::Browser | Wants::Result => {
                    json!({"id": interrupt, "reason": "waiting", "message": format!("{} waits for its result", call.tool), "toolCallId": id})
                }
            };
            self.tagged(shown, call.child.as_deref())
        });
        let interrupts: Vec<Value> = interrupts.collect();
        self.finish(w, Some(json!({"type": "interrupt", "interrupts": interrupts})), usage);
    }

    fn run_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        end: &RunEnding<'_>,
        _usage: Option<&Value>,
        by_model: Option<&Value>,
    ) {
        self.close_all(w);
        if let Some((code, text)) = &end.error {
            let mut event = json!({"type": "RUN_ERROR", "message": text, "code": code});
            if let Some(usage) = by_model {
                event["usage"] = usage.clone();
            }
            return w.push(&event);
        }
        let outcome = match end.stop {
            RunStop::Completed | RunStop::Terminated => Some(json!({"type": "success"})),
            _ if self.is_current => Some(json!({"type": "cancelled"})),
            _ => None,
        };
        if !matches!(end.stop, RunStop::Completed | RunStop::Terminated) {
            let mut value = json!({"stop": end.stop.as_str()});
            if let Some(limit) = end.limit {
                value["limit"] = json!(limit);
            }
            Self::custom(w, "agent.stop", &value);
        }
        self.finish(w, outcome, by_model);
    }

    fn data(&mut self, w: &mut ChunkWriter<'_>, data: &UiData) {
        Self::custom(w, &data.name, &data.data);
    }

    fn child_start(&mut self, w: &mut ChunkWriter<'_>, child: &ChildRun) {
        let call_id = format!("{}/{}", self.run_id, child.call_id);
        if !self.is_current {
            return Self::custom(w, "agent.run", &run_facts(child, &call_id, "running"));
        }
        let mut event = json!({"type": "SUBAGENT_STARTED", "subagentRunId": child.run_id, "name": child.tool, "parentToolCallId": call_id});
        if let Some(parent) = &child.parent {
            event["parentSubagentRunId"] = json!(parent);
        }
        w.push(&event);
    }

    fn child_text(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        kind: TextKind,
        id: &str,
        text: &str,
    ) {
        if !self.is_current {
            let value = json!({"runId": child.run_id, "id": id, "kind": kind.as_str(), "text": text});
            return Self::custom(w, "agent.run-text", &value);
        }
        let events = match kind {
            TextKind::Text => {
                let id = &child.message_id;
                vec![
                    json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}),
                    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}),
                    json!({"type": "TEXT_MESSAGE_END", "messageId": id}),
                ]
            }
            TextKind::Reasoning => vec![
                json!({"type": "REASONING_START", "messageId": id}),
                json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}),
                json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": text}),
                json!({"type": "REASONING_MESSAGE_END", "messageId": id}),
                json!({"type": "REASONING_END", "messageId": id}),
            ],
        };
        for event in events {
            w.push(&self.tagged(event, Some(&child.run_id)));
        }
    }

    fn child_call_start(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        call: &UiCall,
        input: &Value,
    ) -> bool {
        if self.is_current {
            self.call_start(w, call);
            self.call_complete(w, call, input);
        } else {
            let facts = call_facts(child, &call.tool, &self.call_id(call), input, None);
            Self::custom(w, "agent.run-call", &facts);
        }
        self.is_current
    }

    fn child_call_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        call: &UiCall,
        input: &Value,
        end: &CallEnding,
    ) {
        if !self.is_current {
            let facts = call_facts(child, &call.tool, &self.call_id(call), input, Some(end));
            Self::custom(w, "agent.run-call", &facts);
        }
        if call.is_part {
            self.call_end(w, call, input, end);
        }
    }

    fn child_end(&mut self, w: &mut ChunkWriter<'_>, child: &ChildRun, end: &ChildEnd<'_>) {
        if !self.is_current {
            let call_id = format!("{}/{}", self.run_id, child.call_id);
            return Self::custom(w, "agent.run", &run_facts(child, &call_id, end.as_str()));
        }
        let id = &child.run_id;
        w.push(&match end {
            ChildEnd::Completed => {
                json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id, "outcome": {"type": "success"}})
            }
            ChildEnd::Stopped(word) => {
                json!({"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "The sub-agent did not finish.", "code": word})
            }
            ChildEnd::Suspended(ids) => {
                let outcome = json!({"type": "suspended", "interruptIds": ids});
                json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id, "outcome": outcome})
            }
        });
    }
}
