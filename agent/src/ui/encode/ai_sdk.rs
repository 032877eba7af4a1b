//! Writes the chunks of the AI SDK's UI message stream.

use serde_json::{Value, json};

use super::super::UiData;
use super::super::chunk::ChunkWriter;
use super::super::view::{ShownEnd, file_of, source_part};
use super::calls::{CallEnding, CallProgress, UiCall};
use super::child_run::{ChildEnd, ChildRun, call_facts, run_facts};
use super::wire::{RunEnding, TextKind, UiPart, WaitingCall, WireFormat};
use crate::loop_core::RunStop;
use crate::message::{Part, StopReason};
use crate::tool::progress::Progress;
use crate::tool::question::Question;

pub(super) struct AiSdkFormat {
    run_id: String,
    /// The major version of npm `ai` that reads the stream.
    version: u8,
    has_step: bool,
    /// Whether the latest step has calls that the provider does not run.
    has_calls: bool,
}

impl AiSdkFormat {
    pub(super) fn new(version: u8) -> Self {
        Self { run_id: String::new(), version, has_step: false, has_calls: false }
    }

    pub(super) fn for_run(mut self, run_id: &str) -> Self {
        run_id.clone_into(&mut self.run_id);
        self
    }

    fn is_old(&self) -> bool {
        self.version < 7
    }

    fn end_step(&mut self, w: &mut ChunkWriter<'_>) {
        if std::mem::take(&mut self.has_step) {
            w.push(&json!({"type": "finish-step"}));
        }
    }

    fn finish(w: &mut ChunkWriter<'_>, reason: &str, usage: Option<&Value>) {
        let mut chunk = json!({"type": "finish", "finishReason": reason});
        if let Some(usage) = usage {
            chunk["messageMetadata"] = json!({"usage": usage});
        }
        w.push(&chunk);
    }

    fn data_part(w: &mut ChunkWriter<'_>, name: &str, id: Option<&str>, data: &Value, is_transient: bool) {
        let mut chunk = json!({"type": format!("data-{name}")});
        if let Some(id) = id {
            chunk["id"] = json!(id);
        }
        chunk["data"] = data.clone();
        if is_transient {
            chunk["transient"] = json!(true);
        }
        w.push(&chunk);
    }

    fn by_provider(mut chunk: Value, call: &UiCall) -> Value {
        if call.is_provider {
            chunk["providerExecuted"] = json!(true);
            chunk["dynamic"] = json!(true);
        }
        chunk
    }
}

impl WireFormat for AiSdkFormat {
    fn begin(&mut self, w: &mut ChunkWriter<'_>) {
        w.push(&json!({"type": "start", "messageId": self.run_id}));
    }

    fn turn_start(&mut self, _w: &mut ChunkWriter<'_>, _turn: u32) {}

    fn reply_start(&mut self, w: &mut ChunkWriter<'_>, _message_id: &str) {
        self.end_step(w);
        (self.has_step, self.has_calls) = (true, false);
        w.push(&json!({"type": "start-step"}));
    }

    fn queued_message(&mut self, w: &mut ChunkWriter<'_>, id: &str, content: &[Part]) {
        if self.is_old() {
            return;
        }
        let parts = content.iter().filter_map(|part| match part.as_text() {
            Some(text) => Some(json!({"type": "text", "text": text})),
            None => file_of(&part.content)
                .map(|(url, media_type)| json!({"type": "file", "url": url, "mediaType": media_type})),
        });
        let parts: Vec<Value> = parts.collect();
        w.push(&json!({"type": "steering-message", "id": id, "parts": parts}));
    }

    fn custom_message(&mut self, w: &mut ChunkWriter<'_>, kind: &str, data: &Value) {
        Self::data_part(w, "agent-message", None, &json!({"kind": kind, "data": data}), false);
    }

    fn text_start(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str) {
        let word = if kind == TextKind::Text { "text-start" } else { "reasoning-start" };
        w.push(&json!({"type": word, "id": id}));
    }

    fn text_delta(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str, delta: &str) {
        let word = if kind == TextKind::Text { "text-delta" } else { "reasoning-delta" };
        w.push(&json!({"type": word, "id": id, "delta": delta}));
    }

    fn text_end(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str) {
        let word = if kind == TextKind::Text { "text-end" } else { "reasoning-end" };
        w.push(&json!({"type": word, "id": id}));
    }

    fn part(&mut self, w: &mut ChunkWriter<'_>, id: &str, part: &UiPart<'_>) {
        match part {
            UiPart::Refusal(text) => {
                Self::data_part(w, "agent-refused", Some(id), &json!({"text": text}), false);
            }
            UiPart::File { url, media_type } => {
                w.push(&json!({"type": "file", "url": url, "mediaType": media_type}));
            }
            UiPart::Source { uri, title, media_type } => {
                w.push(&source_part(id, uri, *title, *media_type));
            }
        }
    }

    fn call_start(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall) {
        if !call.is_provider {
            w.push(&json!({"type": "tool-input-start", "toolCallId": call.unique_id, "toolName": call.tool}));
        }
    }

    fn call_delta(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, delta: &str) {
        w.push(&json!({"type": "tool-input-delta", "toolCallId": call.unique_id, "inputTextDelta": delta}));
    }

    fn call_complete(&mut self, _w: &mut ChunkWriter<'_>, _call: &UiCall, _input: &Value) {}

    fn input(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, input: &Value) {
        self.has_calls |= !call.is_provider;
        let chunk = json!({"type": "tool-input-available", "toolCallId": call.unique_id, "toolName": call.tool, "input": input});
        w.push(&Self::by_provider(chunk, call));
    }

    fn coercions(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, coercions: &Value) {
        let data = json!({"toolCallId": call.unique_id, "coercions": coercions});
        Self::data_part(w, "agent-coercions", Some(&call.unique_id), &data, false);
    }

    fn progress(
        &mut self,
        w: &mut ChunkWriter<'_>,
        call: &UiCall,
        progress: &Progress,
        content: Option<&Value>,
    ) {
        let mut data = super::progress_value(progress);
        data["toolCallId"] = json!(call.unique_id);
        Self::data_part(w, "agent-progress", Some(&call.unique_id), &data, true);
        if let Some(content) = content {
            w.push(
                &json!({"type": "tool-output-available", "toolCallId": call.unique_id, "output": content, "preliminary": true}),
            );
        }
    }

    fn approval(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, request_id: &str, is_automatic: bool) {
        // Version 6 has no chunk that answers a request, so an automatic request would stay open.
        if is_automatic && self.is_old() {
            return;
        }
        let mut chunk =
            json!({"type": "tool-approval-request", "approvalId": request_id, "toolCallId": call.unique_id});
        if is_automatic {
            chunk["isAutomatic"] = json!(true);
        }
        w.push(&chunk);
    }

    fn decision(
        &mut self,
        w: &mut ChunkWriter<'_>,
        _call: &UiCall,
        request_id: Option<&str>,
        is_allowed: bool,
    ) {
        if let Some(id) = request_id.filter(|_| !self.is_old()) {
            w.push(&json!({"type": "tool-approval-response", "approvalId": id, "approved": is_allowed}));
        }
    }

    /// Writes one approval request with all questions of the call, because the protocol has only one approval request for each call.
    fn questions(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, questions: &[&Question]) {
        let Some(first) = questions.first() else { return };
        let asked: Vec<Value> = questions.iter().map(|question| shown_question(question)).collect();
        w.push(&json!({
            "type": "tool-approval-request", "approvalId": first.request_id, "toolCallId": call.unique_id,
            "approvalDescriptor": {"type": "questions", "questions": asked},
        }));
    }

    fn question_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        _call: &UiCall,
        id: &str,
        is_first: bool,
        accepted: bool,
    ) {
        if !is_first || self.is_old() {
            return;
        }
        // The chunk approves the call even without an answer, because the call continues. A client rejects results of unapproved calls.
        let mut chunk = json!({"type": "tool-approval-response", "approvalId": id, "approved": true});
        if !accepted {
            chunk["reason"] = json!("not answered");
        }
        w.push(&chunk);
    }

    fn call_end(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, input: &Value, end: &CallEnding) {
        let id = &call.unique_id;
        self.has_calls |= !call.is_provider;
        match &end.shown {
            ShownEnd::Output(output) => {
                let chunk = json!({"type": "tool-output-available", "toolCallId": id, "output": output});
                return w.push(&Self::by_provider(chunk, call));
            }
            ShownEnd::Denied => return w.push(&json!({"type": "tool-output-denied", "toolCallId": id})),
            ShownEnd::Refused { text, issues } => {
                w.push(&json!({"type": "tool-input-error", "toolCallId": id, "toolName": call.tool, "input": input, "errorText": text}));
                if !issues.is_empty() {
                    let data = json!({"toolCallId": id, "issues": issues});
                    Self::data_part(w, "agent-report", Some(id), &data, false);
                }
            }
            // The front end lacks the complete input of a call that did not start, so this chunk contains the input.
            ShownEnd::Error(text) if call.progress < CallProgress::Started => {
                w.push(&json!({"type": "tool-input-error", "toolCallId": id, "toolName": call.tool, "input": input, "errorText": text}));
            }
            ShownEnd::Error(text) => {
                let chunk = json!({"type": "tool-output-error", "toolCallId": id, "errorText": text});
                w.push(&Self::by_provider(chunk, call));
            }
        }
        let mut data = json!({"toolCallId": id, "outcome": end.outcome});
        if let Some(code) = &end.code {
            data["code"] = json!(code);
        }
        Self::data_part(w, "agent-outcome", Some(id), &data, false);
    }

    fn waiting(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, is_browser: bool) {
        if !is_browser {
            let data = json!({"toolCallId": call.unique_id, "tool": call.tool});
            Self::data_part(w, "agent-waiting", Some(&call.unique_id), &data, false);
        }
    }

    fn turn_end(&mut self, w: &mut ChunkWriter<'_>, usage: Option<&Value>) {
        self.end_step(w);
        if let Some(usage) = usage {
            w.push(&json!({"type": "message-metadata", "messageMetadata": {"usage": usage}}));
        }
    }

    fn suspended(
        &mut self,
        w: &mut ChunkWriter<'_>,
        _waiting: &[WaitingCall],
        _unanswered: usize,
        _usage: Option<&Value>,
    ) {
        self.end_step(w);
        Self::finish(w, "tool-calls", None);
    }

    fn run_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        end: &RunEnding<'_>,
        usage: Option<&Value>,
        _by_model: Option<&Value>,
    ) {
        self.end_step(w);
        // A front end that sends results automatically would send the results again if all calls of the last step have results. An empty
        // step at the end prevents this.
        if std::mem::take(&mut self.has_calls) {
            w.push(&json!({"type": "start-step"}));
            w.push(&json!({"type": "finish-step"}));
            // The `Chat` of the AI SDK detects a new step only when the next part or metadata arrives.
            w.push(&json!({"type": "message-metadata", "messageMetadata": {}}));
        }
        let reason = match end.stop {
            RunStop::Completed | RunStop::Terminated => match end.reason {
                None | Some(StopReason::Stop) => "stop",
                Some(StopReason::ToolUse) => "tool-calls",
                Some(StopReason::MaxTokens | StopReason::ContextFull) => "length",
                Some(StopReason::ContentFilter) => "content-filter",
                Some(StopReason::Error) => "error",
                Some(_) => "other",
            },
            RunStop::Error => "error",
            _ => "other",
        };
        if end.stop == RunStop::Limit {
            let mut data = json!({"stop": "limit"});
            if let Some(limit) = end.limit {
                data["limit"] = json!(limit);
            }
            Self::data_part(w, "agent-stop", None, &data, false);
        }
        if end.stop == RunStop::Aborted {
            w.push(&json!({"type": "abort"}));
        }
        if let Some((_, text)) = &end.error {
            w.push(&json!({"type": "error", "errorText": text}));
        }
        Self::finish(w, reason, usage);
    }

    fn data(&mut self, w: &mut ChunkWriter<'_>, data: &UiData) {
        Self::data_part(w, &data.name, data.id.as_deref(), &data.data, data.is_transient);
    }

    fn child_start(&mut self, w: &mut ChunkWriter<'_>, child: &ChildRun) {
        let facts = run_facts(child, &child.call_id, "running");
        Self::data_part(w, "agent-run", Some(&child.run_id), &facts, false);
    }

    fn child_text(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        kind: TextKind,
        id: &str,
        text: &str,
    ) {
        let data = json!({"runId": child.run_id, "kind": kind.as_str(), "text": text});
        Self::data_part(w, "agent-run-text", Some(id), &data, false);
    }

    /// Sends the call as data, and not as a tool call of the message: the front end would have to send a result for a tool call.
    fn child_call_start(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        call: &UiCall,
        input: &Value,
    ) -> bool {
        let facts = call_facts(child, &call.tool, &call.unique_id, input, None);
        Self::data_part(w, "agent-run-call", Some(&call.unique_id), &facts, false);
        false
    }

    fn child_call_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        call: &UiCall,
        input: &Value,
        end: &CallEnding,
    ) {
        let facts = call_facts(child, &call.tool, &call.unique_id, input, Some(end));
        Self::data_part(w, "agent-run-call", Some(&call.unique_id), &facts, false);
        // A call that the front end was asked about is also a tool call of the message, so this tool call has to end, too.
        if call.is_part {
            self.call_end(w, call, input, end);
        }
    }

    fn child_end(&mut self, w: &mut ChunkWriter<'_>, child: &ChildRun, end: &ChildEnd<'_>) {
        let facts = run_facts(child, &child.call_id, end.as_str());
        Self::data_part(w, "agent-run", Some(&child.run_id), &facts, false);
    }
}

fn shown_question(question: &Question) -> Value {
    let mut shown =
        json!({"id": question.request_id, "message": question.message, "schema": question.schema});
    if let Some(report) = &question.report {
        shown["report"] = json!(report);
    }
    shown
}
