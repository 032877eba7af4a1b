//! The interface that the formats of both protocols implement.
#![cfg_attr(
    not(all(feature = "ui-ag-ui", feature = "ui-ai-sdk")),
    allow(dead_code, reason = "each format reads its own part")
)]

use serde_json::Value;

use super::super::UiData;
use super::super::chunk::ChunkWriter;
use super::calls::{CallEnding, UiCall};
use super::child_run::{ChildEnd, ChildRun};
use crate::loop_core::RunStop;
use crate::message::{Part, StopReason};
use crate::tool::progress::Progress;
use crate::tool::question::Question;

pub(super) enum UiPart<'a> {
    Refusal(&'a str),
    File { url: &'a str, media_type: &'a str },
    Source { uri: &'a str, title: Option<&'a str>, media_type: Option<&'a str> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Reasoning,
}

impl TextKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

pub(super) struct WaitingCall {
    pub(super) call: UiCall,
    pub(super) wants: Wants,
}

impl WaitingCall {
    pub(super) fn interrupt_id(&self) -> String {
        match &self.wants {
            Wants::Approval { request_id, .. } => request_id.clone(),
            Wants::Question(question) => question.request_id.clone(),
            Wants::Browser | Wants::Result => format!("waiting/{}", self.call.id),
        }
    }
}

pub(super) enum Wants {
    Approval {
        request_id: String,
        message: String,
        schema: Value,
    },
    Question(Box<Question>),
    Browser,
    /// A result that the application delivers.
    Result,
}

pub(super) struct RunEnding<'a> {
    pub(super) stop: RunStop,
    pub(super) reason: Option<&'a StopReason>,
    /// The limit that ended the run.
    pub(super) limit: Option<&'a str>,
    /// The kind of the error and a text without details, if an error ended the run.
    pub(super) error: Option<(&'a str, String)>,
}

/// A writer of the chunks of one protocol. The encoder calls the methods in an order that both protocols allow.
pub(super) trait WireFormat: Send + Sync {
    fn begin(&mut self, w: &mut ChunkWriter<'_>);
    fn turn_start(&mut self, w: &mut ChunkWriter<'_>, turn: u32);
    fn reply_start(&mut self, w: &mut ChunkWriter<'_>, message_id: &str);
    /// Writes a message of the user that was queued during the run.
    fn queued_message(&mut self, w: &mut ChunkWriter<'_>, id: &str, content: &[Part]);
    fn custom_message(&mut self, w: &mut ChunkWriter<'_>, kind: &str, data: &Value);
    fn text_start(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str);
    fn text_delta(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str, delta: &str);
    fn text_end(&mut self, w: &mut ChunkWriter<'_>, kind: TextKind, id: &str);
    fn part(&mut self, w: &mut ChunkWriter<'_>, id: &str, part: &UiPart<'_>);
    fn call_start(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall);
    fn call_delta(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, delta: &str);
    /// Writes that the arguments of a call are complete. `input` contains the arguments that the front end may see.
    fn call_complete(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, input: &Value);
    /// Writes the input of a call when the call starts, when a person has to decide on the call, or when a person changed the arguments.
    fn input(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, input: &Value);
    fn coercions(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, coercions: &Value);
    fn progress(
        &mut self,
        w: &mut ChunkWriter<'_>,
        call: &UiCall,
        progress: &Progress,
        content: Option<&Value>,
    );
    fn approval(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, request_id: &str, is_automatic: bool);
    fn decision(
        &mut self,
        w: &mut ChunkWriter<'_>,
        call: &UiCall,
        request_id: Option<&str>,
        is_allowed: bool,
    );
    fn questions(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, questions: &[&Question]);
    /// Writes that a question was answered or declined. `is_first` says whether the question is the first of its call.
    fn question_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        call: &UiCall,
        id: &str,
        is_first: bool,
        accepted: bool,
    );
    fn call_end(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, input: &Value, end: &CallEnding);
    /// Writes that a call waits for a result, if the format has a chunk for that. The browser delivers the result if `is_browser` is
    /// `true`, or else the application.
    fn waiting(&mut self, w: &mut ChunkWriter<'_>, call: &UiCall, is_browser: bool);
    /// Ends a turn. `usage` contains the token counts of the run so far.
    fn turn_end(&mut self, w: &mut ChunkWriter<'_>, usage: Option<&Value>);
    /// Ends the response of a suspended run. `unanswered` is the number of calls without a result, and `usage` contains the token counts of
    /// this response by model.
    fn suspended(
        &mut self,
        w: &mut ChunkWriter<'_>,
        waiting: &[WaitingCall],
        unanswered: usize,
        usage: Option<&Value>,
    );
    /// Ends the run and the response. `usage` contains the token counts of the run, and `by_model` contains the token counts of this
    /// response by model.
    fn run_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        end: &RunEnding<'_>,
        usage: Option<&Value>,
        by_model: Option<&Value>,
    );
    fn data(&mut self, w: &mut ChunkWriter<'_>, data: &UiData);
    /// Writes that the run of a sub-agent begins, or continues in this response. Must write exactly one chunk.
    fn child_start(&mut self, w: &mut ChunkWriter<'_>, child: &ChildRun);
    fn child_text(&mut self, w: &mut ChunkWriter<'_>, child: &ChildRun, kind: TextKind, id: &str, text: &str);
    /// Writes that a sub-agent makes a call. Returns whether the call is written as a tool call of the protocol, not only as data.
    fn child_call_start(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        call: &UiCall,
        input: &Value,
    ) -> bool;
    fn child_call_end(
        &mut self,
        w: &mut ChunkWriter<'_>,
        child: &ChildRun,
        call: &UiCall,
        input: &Value,
        end: &CallEnding,
    );
    fn child_end(&mut self, w: &mut ChunkWriter<'_>, child: &ChildRun, end: &ChildEnd<'_>);
}
