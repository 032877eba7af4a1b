//! Writes the events of sub-agents' runs: the calls and texts, each sent whole, and the ends of the runs.

use serde_json::json;

use super::super::chunk::ChunkWriter;
use super::super::options::ResultView;
use super::UiEncoder;
use super::calls::{CallEnding, CallProgress};
use super::child_run::{ChildEnd, ChildRun};
use super::wire::{TextKind, WaitingCall, WireFormat};
use crate::loop_core::{Event, EventKind, RunStop};
use crate::message::{AssistantMessage, Content, ToolCall};
use crate::run_path::{PathCall, RunPath};
use crate::tool::outcome::ToolResult;

/// Returns whether an encoder reads this event of a sub-agent. Other events of sub-agents need not be kept.
pub(in crate::ui) fn is_shown_of_child(kind: &EventKind) -> bool {
    match kind {
        EventKind::MessageEnd { message, .. } => message.as_assistant().is_some(),
        EventKind::AgentEnd { stop, .. } => *stop != RunStop::Suspended,
        EventKind::TurnStart
        | EventKind::ToolExecutionStart { .. }
        | EventKind::ToolExecutionEnd { .. }
        | EventKind::ApprovalResolved { .. }
        | EventKind::QuestionResolved { .. } => true,
        _ => false,
    }
}

/// Returns the id that a sub-agent's call has in the encoder: the id of the sub-agent's run, a slash, and `call_id`.
pub(super) fn id_of_child_call(path: &RunPath, call_id: &str) -> String {
    path.calls().last().map_or_else(|| call_id.to_owned(), |call| format!("{}/{call_id}", call.run_id))
}

impl UiEncoder {
    /// Writes an event of a sub-agent's run. The ids of the chunks contain the number of the main run's last event.
    pub(super) fn write_child(
        &mut self,
        event: &Event,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let path = event.path.calls();
        for depth in 0..path.len() {
            self.child_start(path.get(..=depth).unwrap_or_default(), w, format);
        }
        let Some(at) = path.last().and_then(|call| self.child_at(&call.run_id)) else { return };
        let id_of = |call_id: &str| id_of_child_call(&event.path, call_id);
        match &event.kind {
            EventKind::MessageEnd { message, .. } => {
                if let Some(reply) = message.as_assistant() {
                    self.child_reply(at, event.turn, reply, w, format);
                }
            }
            EventKind::ToolExecutionStart { call } => {
                let args = event.without_secrets(&call.name, &call.args);
                let call = ToolCall::new(id_of(&call.id), &*call.name, args);
                self.child_call_start(at, &call, w, format);
            }
            EventKind::ToolExecutionEnd { result, ran, .. } => {
                self.child_call_end(at, &id_of(&result.call_id), result, *ran, w, format);
            }
            EventKind::ApprovalResolved { call_id, allowed, .. } => {
                let id = id_of(call_id);
                if self.is_part(&id) {
                    // Edits are not written, because the encoder does not read the result messages of sub-agents, which contain the edited
                    // arguments.
                    self.decided(&id, *allowed, false, w, format);
                }
            }
            EventKind::QuestionResolved { request_id, call_id, accepted } => {
                let id = id_of(call_id);
                if self.is_part(&id) {
                    self.question_end(request_id, &id, *accepted, w, format);
                }
            }
            EventKind::AgentEnd { stop, .. } => {
                let end = match stop {
                    RunStop::Completed | RunStop::Terminated => ChildEnd::Completed,
                    stop => ChildEnd::Stopped(stop.as_str()),
                };
                self.child_end(at, &end, w, format);
            }
            _ => {}
        }
    }

    fn child_at(&self, run_id: &str) -> Option<usize> {
        self.children.iter().position(|child| child.run_id == run_id)
    }

    fn is_part(&self, id: &str) -> bool {
        self.calls.open(id).and_then(|at| self.calls.get(at)).is_some_and(|call| call.is_part)
    }

    /// Announces the run at the end of `path`, unless the run was announced before.
    fn child_start(&mut self, path: &[PathCall], w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        let [above @ .., call] = path else { return };
        if self.child_at(&call.run_id).is_some() {
            return;
        }
        let parent = above.last().map(|above| above.run_id.to_string());
        let id = match &parent {
            Some(parent) => format!("{parent}/{}", call.call_id),
            None => call.call_id.clone(),
        };
        let is_known = self.calls.open(&id).is_some();
        let at = self.known_call(&id, &call.tool);
        let outermost = parent.as_ref().and_then(|parent| self.child_at(parent));
        let outermost = outermost.and_then(|at| self.children.get(at)).map(|run| run.outermost);
        if let (false, Some(parent), Some(call)) = (is_known, &parent, self.calls.get_mut(at)) {
            // The log has dropped the start of this call, so the front end never received the start.
            (call.is_part, call.child) = (false, Some(parent.clone()));
        }
        let call_id = self.calls.get(at).map_or_else(String::new, |call| call.unique_id.clone());
        let (run_id, tool) = (call.run_id.to_string(), call.tool.clone());
        let outermost = outermost.unwrap_or(at);
        let (message_id, is_suspended) = (String::new(), false);
        let child = ChildRun { run_id, tool, call_id, parent, message_id, outermost, is_suspended };
        format.child_start(w, &child);
        self.children.push(child);
    }

    /// Sends the texts of a sub-agent's reply. These texts are part of the result of a call, so only `ResultView::ForModel` sends them.
    fn child_reply(
        &mut self,
        at: usize,
        turn: u32,
        reply: &AssistantMessage,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        self.add_usage(reply);
        let Some(child) = self.children.get_mut(at) else { return };
        child.message_id = format!("{}.{turn}", child.run_id);
        if !matches!(self.view.options.results, ResultView::ForModel) {
            return;
        }
        for (index, part) in reply.content.iter().enumerate() {
            let (kind, text) = match &part.content {
                Content::Text(text) | Content::Refusal(text) => (TextKind::Text, text),
                Content::Thinking { text, redacted: false } if self.view.options.reasoning => {
                    (TextKind::Reasoning, text)
                }
                _ => continue,
            };
            if !text.is_empty() {
                format.child_text(w, child, kind, &format!("{}.{index}", child.message_id), text);
            }
        }
    }

    fn child_call_start(
        &mut self,
        at: usize,
        call: &ToolCall,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let Some(child) = self.children.get(at) else { return };
        let known = self.calls.add(&call.id, &call.name, &child.message_id);
        let input = self.view.input(None, &call.args);
        let within = self.calls.get(child.outermost).map(|outermost| outermost.id.clone());
        let Some(known) = self.calls.get_mut(known) else { return };
        (known.args, known.within, known.progress) = (Some(call.args.clone()), within, CallProgress::Started);
        known.child = Some(child.run_id.clone());
        known.is_part = format.child_call_start(w, child, known, &input);
    }

    fn child_call_end(
        &mut self,
        at: usize,
        id: &str,
        result: &ToolResult,
        ran: bool,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let (Some(child), Some(call)) = (self.children.get(at), self.calls.open(id)) else { return };
        let Some(call) = self.calls.get_mut(call) else { return };
        // Only the sub-agent has the tool's `Plan`, so the issues of the arguments are not found here.
        let shown = self.view.end(result, ran, None, call.was_denied);
        let Some(end) = CallEnding::new(shown, result) else { return };
        let input = call.args.as_ref().map_or_else(|| json!({}), |args| self.view.input(None, args));
        format.child_call_end(w, child, call, &input, &end);
        call.progress = CallProgress::Ended;
    }

    fn child_end(
        &mut self,
        at: usize,
        end: &ChildEnd<'_>,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let child = self.children.remove(at);
        if !child.is_suspended {
            format.child_end(w, &child, end);
        }
    }

    /// Ends the runs of sub-agents within the call `of`, the innermost first. If `of` is `None`, ends the runs within all calls.
    pub(super) fn end_children(
        &mut self,
        of: Option<&str>,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        for at in (0..self.children.len()).rev() {
            let Some(child) = self.children.get(at) else { continue };
            let outermost = self.calls.get(child.outermost);
            if of.is_none_or(|id| outermost.is_some_and(|call| call.id == id)) {
                let child = child.clone();
                self.end_calls_of(Some(&child), w, format, |call| call.child.as_ref() == Some(&child.run_id));
                self.child_end(at, &ChildEnd::Stopped("interrupted"), w, format);
            }
        }
    }

    /// Writes that the runs of sub-agents are suspended, the innermost first, because the response ends.
    pub(super) fn suspend_children(&mut self, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        for child in self.children.iter_mut().rev().filter(|child| !child.is_suspended) {
            let prefix = format!("{}/", child.run_id);
            let is_own = |one: &&WaitingCall| {
                one.call.id.strip_prefix(&prefix).is_some_and(|call_id| !call_id.contains('/'))
            };
            let ids = self.waiting.iter().filter(is_own).map(WaitingCall::interrupt_id).collect();
            format.child_end(w, child, &ChildEnd::Suspended(ids));
            child.is_suspended = true;
        }
    }

    /// Writes that the suspended runs of sub-agents continue. For a run that this response did not report as suspended, skips one chunk
    /// number instead of writing a chunk. Later chunks thus have the same numbers in all responses.
    pub(super) fn resume_children(&mut self, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        for child in &mut self.children {
            if std::mem::take(&mut child.is_suspended) {
                format.child_start(w, child);
            } else {
                *w.next += 1;
            }
        }
    }
}
