//! Writes the ends of calls, responses and runs.

use serde_json::{Value, json};

use super::super::chunk::ChunkWriter;
use super::super::view::{ShownEnd, cut};
use super::calls::{CallEnding, CallProgress, UiCall};
use super::child_run::ChildRun;
use super::children::id_of_child_call;
use super::wire::{RunEnding, WaitingCall, Wants, WireFormat};
use super::{ResponsePhase, UiEncoder};
use crate::loop_core::{PendingCall, RunStop};
use crate::message::{ToolArguments, Usage};
use crate::tool::outcome::ToolResult;
use crate::tool::question::Question;

/// Maximum length of the text that asks a person for a decision on a call, in bytes.
const MAX_MESSAGE: usize = 2000;

impl UiEncoder {
    pub(super) fn call_end(
        &mut self,
        result: &ToolResult,
        ran: bool,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        if result.outcome.kind().is_none() {
            return;
        }
        let at = self.known_call(&result.call_id, &result.tool);
        let coercions = self.view.coercions(&result.coercions);
        let Some(call) = self.calls.get_mut(at) else { return };
        if call.tool.is_empty() {
            call.tool.clone_from(&result.tool);
        }
        let shown = self.view.end(result, ran, call.args.as_ref(), call.was_denied);
        let Some(end) = CallEnding::new(shown, result) else { return };
        if let Some(coercions) = coercions {
            format.coercions(w, call, &coercions);
        }
        if call.was_edited {
            call.held_end = Some(Box::new(end));
            call.progress = CallProgress::Ended;
            return;
        }
        let input =
            call.args.as_ref().map_or_else(|| json!({}), |args| self.view.input(call.own_tool(), args));
        format.call_end(w, call, &input, &end);
        call.progress = CallProgress::Ended;
    }

    /// Writes the end of a call that was held back. `edited` are the arguments as a person changed them.
    pub(super) fn release_end(
        &mut self,
        at: usize,
        edited: Option<&ToolArguments>,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let Some(call) = self.calls.get_mut(at) else { return };
        let Some(end) = call.held_end.take() else { return };
        let args = edited.or(call.args.as_ref());
        let input = args.map_or_else(|| json!({}), |args| self.view.input(call.own_tool(), args));
        if edited.is_some() {
            format.input(w, call, &input);
        }
        format.call_end(w, call, &input, &end);
    }

    /// Ends the open calls. Ends calls of the provider's tools only if `all` is `true`, because their output may be in a later reply.
    pub(super) fn end_open_calls(&mut self, all: bool, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        for at in self.calls.held_calls() {
            self.release_end(at, None, w, format);
        }
        for at in self.calls.open_calls() {
            let Some(call) = self.calls.get_mut(at).filter(|call| all || !call.is_provider) else { continue };
            let input =
                call.args.as_ref().map_or_else(|| json!({}), |args| self.view.input(call.own_tool(), args));
            if call.progress < CallProgress::Complete {
                format.call_complete(w, call, &input);
            }
            let (shown, outcome) = if call.is_provider {
                (ShownEnd::Output(json!({"outcome": "completed"})), "completed")
            } else {
                (ShownEnd::Error("The call was stopped.".to_owned()), "interrupted")
            };
            let end = CallEnding { shown, outcome: outcome.to_owned(), code: None };
            format.call_end(w, call, &input, &end);
            call.progress = CallProgress::Ended;
        }
    }

    /// Ends the sub-agents of an ended call, and the calls of these sub-agents. Their results are not written, because only the sub-agents
    /// receive the results.
    pub(super) fn end_calls_within(
        &mut self,
        call_id: &str,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        self.end_children(Some(call_id), w, format);
        self.end_calls_of(None, w, format, |call| call.within.as_deref() == Some(call_id));
    }

    /// Ends the calls for which `is_ended` returns `true`. `child` is the run that made them, if the front end knows this run.
    pub(super) fn end_calls_of(
        &mut self,
        child: Option<&ChildRun>,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
        is_ended: impl Fn(&UiCall) -> bool,
    ) {
        for at in self.calls.open_calls_and_data() {
            let Some(call) = self.calls.get_mut(at).filter(|call| is_ended(call)) else { continue };
            let input =
                call.args.as_ref().map_or_else(|| json!({}), |args| self.view.input(call.own_tool(), args));
            let shown = ShownEnd::Output(json!({"outcome": "ended"}));
            let end = CallEnding { shown, outcome: "ended".to_owned(), code: None };
            match child {
                Some(child) => format.child_call_end(w, child, call, &input, &end),
                None if call.is_part => format.call_end(w, call, &input, &end),
                None => {}
            }
            call.progress = CallProgress::Ended;
        }
    }

    pub(super) fn suspend(
        &mut self,
        pending: &[PendingCall],
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        self.close_texts(w, format);
        self.waiting.clear();
        let mut waiting_calls = Vec::new();
        let mut asking: Vec<(usize, Vec<&Question>)> = Vec::new();
        for one in pending {
            let (call_id, tool, path, request, args) = match one {
                PendingCall::Approval { call_id, tool, path, request_id, args } => {
                    (call_id, tool, path, Some(request_id), args.as_ref())
                }
                PendingCall::Question { call_id, tool, path, .. }
                | PendingCall::Deferred { call_id, tool, path, .. } => (call_id, tool, path, None, None),
            };
            let at = match path.calls() {
                [] => self.known_call(call_id, tool),
                [outermost, .., _] | [outermost] => {
                    let id = id_of_child_call(path, call_id);
                    self.child_call(&id, tool, args, &outermost.call_id, w, format)
                }
            };
            waiting_calls.push(at);
            if let PendingCall::Question { question, .. } = one {
                match asking.iter_mut().find(|(of, _)| *of == at) {
                    Some((_, questions)) => questions.push(question),
                    None => asking.push((at, vec![&**question])),
                }
                if let Some(call) = self.calls.get(at).cloned() {
                    self.waiting.push(WaitingCall { call, wants: Wants::Question(question.clone()) });
                }
                continue;
            }
            let is_browser = self.view.runs_in_browser(tool);
            match request {
                Some(id) => {
                    if self.calls.get(at).is_some_and(|call| call.request.as_ref() != Some(id)) {
                        self.request_approval(at, id, false, w, format);
                    }
                }
                None => {
                    if let Some(call) = self.calls.get(at) {
                        format.waiting(w, call, is_browser);
                    }
                }
            }
            let Some(call) = self.calls.get(at).cloned() else { continue };
            let wants = match request {
                Some(request_id) => {
                    let (message, schema) = self.question(tool, &call);
                    Wants::Approval { request_id: request_id.clone(), message, schema }
                }
                None if is_browser => Wants::Browser,
                None => Wants::Result,
            };
            self.waiting.push(WaitingCall { call, wants });
        }
        for (at, questions) in asking {
            let Some(call) = self.calls.get_mut(at) else { continue };
            let first = questions.first().map(|question| question.request_id.clone());
            if call.request != first {
                call.request = first;
                call.questions = questions.iter().map(|question| question.request_id.clone()).collect();
                format.questions(w, call, &questions);
            }
        }
        // The chat of the AI SDK sends no answers while a call has neither a result nor a decision. So started calls that wait only for
        // other calls are sent as approved.
        let asks_page = |one: &WaitingCall| matches!(one.wants, Wants::Approval { .. } | Wants::Question(_));
        if self.waiting.iter().any(asks_page) {
            let tells_held = self.is_ai_sdk();
            for at in self.calls.open_calls() {
                let Some(call) = self.calls.get_mut(at) else { continue };
                if waiting_calls.contains(&at)
                    || call.is_provider
                    || call.progress < CallProgress::Started
                    || call.request.is_some()
                {
                    continue;
                }
                let id = format!("held/{}", call.unique_id);
                format.approval(w, call, &id, true);
                // For AG-UI, no decision is written, because the front end would show a decision that no person made.
                if tells_held {
                    format.decision(w, call, Some(&id), true);
                }
                call.request = Some(id);
            }
        }
        self.phase = ResponsePhase::Suspended;
    }

    pub(super) fn is_ai_sdk(&self) -> bool {
        match self.protocol {
            #[cfg(feature = "ui-ai-sdk")]
            super::UiProtocol::AiSdk => true,
            #[cfg(feature = "ui-ag-ui")]
            super::UiProtocol::AgUi => false,
        }
    }

    fn question(&self, tool: &str, call: &UiCall) -> (String, Value) {
        let own = call.within.is_none().then_some(tool);
        let shown = call.args.as_ref().map(|args| self.view.input_to_decide(own, args).to_string());
        let message = cut(&format!("{tool} {}", shown.unwrap_or_default()), MAX_MESSAGE);
        let mut schema = json!({
            "type": "object",
            "properties": {"approved": {"type": "boolean"}},
            "required": ["approved"],
        });
        if let Some(edited) = own.and_then(|tool| self.view.schema(tool)) {
            schema["properties"]["editedArgs"] = edited;
        }
        schema["properties"]["reason"] = json!({"type": "string"});
        (message, schema)
    }

    pub(super) fn finish(
        &mut self,
        stop: RunStop,
        detail: Option<&str>,
        usage: &Usage,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        if stop == RunStop::Error {
            let code = self.error_code.take().unwrap_or_else(|| "error".to_owned());
            self.fail(&code, w, format);
        } else {
            self.close_texts(w, format);
            self.end_children(None, w, format);
            self.end_open_calls(true, w, format);
            let limit = detail.filter(|_| stop == RunStop::Limit);
            let reason = self.last_stop.take();
            let end = RunEnding { stop, reason: reason.as_ref(), limit, error: None };
            let (usage, by_model) = (self.view.usage(usage), self.usage_by_model());
            format.run_end(w, &end, usage.as_ref(), by_model.as_ref());
        }
        self.phase = ResponsePhase::Over;
    }

    /// Ends the run with an error. The details of the error are only in the log of the application.
    pub(super) fn fail(&mut self, code: &str, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        self.close_texts(w, format);
        self.end_children(None, w, format);
        self.end_open_calls(true, w, format);
        let sentence = match code {
            "incomplete" => "The response ended before the run did.",
            "restart" => "The server is restarting.",
            "rate_limit" | "overloaded" => "The model is busy.",
            "context_length" => "The conversation is too long for the model.",
            _ => "The run failed.",
        };
        let text = format!("{sentence} Reference: {}", self.run_id);
        let end = RunEnding { stop: RunStop::Error, reason: None, limit: None, error: Some((code, text)) };
        let by_model = self.usage_by_model();
        format.run_end(w, &end, None, by_model.as_ref());
    }
}
