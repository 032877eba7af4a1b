//! Encodes the events of a run as chunks.

#[cfg(feature = "ui-ag-ui")]
pub(super) mod ag_ui;
#[cfg(feature = "ui-ai-sdk")]
mod ai_sdk;
mod calls;
mod child_run;
mod children;
mod ends;
mod reply;
mod wire;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use self::calls::{CallProgress, UiCalls};
use self::child_run::ChildRun;
pub(in crate::ui) use self::children::is_shown_of_child;
use self::reply::OpenText;
use self::wire::{WaitingCall, WireFormat};
use super::chunk::ChunkWriter;
use super::view::View;
use super::{UiChunk, UiOptions, UiProtocol, UiRequest};
use crate::loop_core::{Event, EventKind};
use crate::message::{Message, StopReason, ToolArguments, ToolCall, Usage};
use crate::tool::progress::Progress;
use crate::tool::registry::Registry;

/// An encoder of the events of a run as chunks of a protocol.
///
/// The same events always give the same chunks. Each connection needs an encoder of its own. A suspended run can continue with the same
/// encoder, which knows all calls, or with a new one.
///
/// A response ends with [`end`](Self::end). If the run resumes afterwards, the next event begins a new response.
///
/// ```
/// use agent::ui::{UiEncoder, UiOptions, UiProtocol, UiRequest};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let request = UiRequest::new("chat-1");
/// let mut encoder = UiEncoder::new(UiProtocol::AgUi, assistant.registry(), &UiOptions::default(), &request);
/// let (mut run, mut chunks) = (assistant.prompt("Hi").stream(), Vec::new());
/// while let Some(event) = run.next().await {
///     encoder.encode(&event, &mut chunks);
/// }
/// encoder.end(&mut chunks);
/// assert!(chunks.first().unwrap().json.contains("RUN_STARTED"));
/// assert!(chunks.last().unwrap().json.contains("RUN_FINISHED"));
/// # Ok(()) }
/// ```
pub struct UiEncoder {
    view: View,
    protocol: UiProtocol,
    request: UiRequest,
    /// `None` until the id of the run is known.
    format: Option<Box<dyn WireFormat>>,
    run_id: String,
    seq: u64,
    next_chunk: u32,
    next_child_chunk: u32,
    phase: ResponsePhase,
    turn: u32,
    calls: UiCalls,
    /// The positions of the current reply's calls in `calls`, by the index of their part in the reply.
    call_parts: BTreeMap<usize, usize>,
    texts: BTreeMap<usize, OpenText>,
    reply: u32,
    message_id: String,
    /// Whether the current reply had updates. Without updates, the parts of the reply are read from the complete message.
    has_updates: bool,
    last_stop: Option<StopReason>,
    usage: Usage,
    /// The token usage of this response, for each provider and model.
    by_model: Vec<(String, String, Usage)>,
    waiting: Vec<WaitingCall>,
    /// The runs of sub-agents that have not ended. A run comes after the run that contains it.
    children: Vec<ChildRun>,
    error_code: Option<String>,
}

/// The number of the first chunk of sub-agents' events after an event of the main run. The main run's event may have a different number of
/// chunks in each response. The high start gives the chunks of sub-agents the same numbers in all responses.
const CHILD_CHUNKS: u32 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponsePhase {
    New,
    Open,
    /// The run is suspended, and `end` will close the response.
    Suspended,
    /// The response was closed while the run was suspended. The run may resume.
    Closed,
    Over,
}

impl UiEncoder {
    /// Creates an encoder. `registry` contains the tools of the run, whose definitions say which arguments are secret.
    pub fn new(protocol: UiProtocol, registry: &Registry, options: &UiOptions, request: &UiRequest) -> Self {
        Self {
            view: View::new(registry, options),
            protocol,
            request: request.clone(),
            format: None,
            run_id: String::new(),
            seq: 0,
            next_chunk: 0,
            next_child_chunk: CHILD_CHUNKS,
            phase: ResponsePhase::New,
            turn: 0,
            calls: UiCalls::default(),
            call_parts: BTreeMap::new(),
            texts: BTreeMap::new(),
            reply: 0,
            message_id: String::new(),
            has_updates: false,
            last_stop: None,
            usage: Usage::default(),
            by_model: Vec::new(),
            waiting: Vec::new(),
            children: Vec::new(),
            error_code: None,
        }
    }

    /// Appends the chunks of an event.
    pub fn encode(&mut self, event: &Event, chunks: &mut Vec<UiChunk>) {
        if self.phase == ResponsePhase::Over {
            return;
        }
        if !event.is_own() {
            // The stream must begin with an event of the run itself, so earlier events of sub-agents are skipped.
            if self.format.is_some() && is_shown_of_child(&event.kind) {
                let own = std::mem::replace(&mut self.next_chunk, self.next_child_chunk);
                self.with_writer(chunks, |this, w, format| {
                    this.open(w, format);
                    this.write_child(event, w, format);
                });
                self.next_child_chunk = std::mem::replace(&mut self.next_chunk, own);
            }
            return;
        }
        if self.format.is_none() {
            self.run_id = event.run_id.to_string();
        }
        (self.seq, self.next_chunk, self.next_child_chunk) = (event.seq, 0, CHILD_CHUNKS);
        self.turn = event.turn.max(self.turn);
        self.with_writer(chunks, |this, w, format| {
            this.open(w, format);
            this.write(event, w, format);
            this.write_data(event, w, format);
        });
    }

    /// Closes all open parts, and ends the response. A run that is neither over nor suspended ends with an error.
    pub fn end(&mut self, chunks: &mut Vec<UiChunk>) {
        self.with_writer(chunks, |this, w, format| match this.phase {
            ResponsePhase::Open | ResponsePhase::New => {
                this.open(w, format);
                let code = this.error_code.take().unwrap_or_else(|| "incomplete".to_owned());
                this.fail(&code, w, format);
                this.phase = ResponsePhase::Over;
            }
            ResponsePhase::Suspended => {
                this.suspend_children(w, format);
                let unanswered = this.calls.open_calls().len();
                let by_model = this.usage_by_model();
                format.suspended(w, &this.waiting, unanswered, by_model.as_ref());
                this.phase = ResponsePhase::Closed;
            }
            ResponsePhase::Closed | ResponsePhase::Over => {}
        });
    }

    /// Sets the kind of the error that ends the run, because the events of the run do not contain it.
    #[cfg_attr(not(feature = "runtime"), allow(dead_code, reason = "the server sets it"))]
    pub(super) fn set_error_code(&mut self, code: impl Into<String>) {
        self.error_code = Some(code.into());
    }

    fn with_writer(
        &mut self,
        chunks: &mut Vec<UiChunk>,
        write: impl FnOnce(&mut Self, &mut ChunkWriter<'_>, &mut dyn WireFormat),
    ) {
        let mut format = self.format.take().unwrap_or_else(|| self.new_format());
        let run_id = std::mem::take(&mut self.run_id);
        let mut next = self.next_chunk;
        let mut writer = ChunkWriter { chunks, run_id: &run_id, seq: self.seq, next: &mut next };
        // The encoder itself needs the run id while it writes, because ids of messages and calls contain the run id.
        self.run_id.clone_from(&run_id);
        write(self, &mut writer, &mut *format);
        self.next_chunk = next;
        self.format = Some(format);
    }

    fn new_format(&self) -> Box<dyn WireFormat> {
        match self.protocol {
            #[cfg(feature = "ui-ai-sdk")]
            UiProtocol::AiSdk => {
                let format = ai_sdk::AiSdkFormat::new(self.view.options.ai_sdk_version);
                Box::new(format.for_run(&self.run_id))
            }
            #[cfg(feature = "ui-ag-ui")]
            UiProtocol::AgUi => Box::new(ag_ui::AgUiFormat::new(&self.request, &self.run_id)),
        }
    }

    fn open(&mut self, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        if matches!(self.phase, ResponsePhase::New | ResponsePhase::Closed) {
            self.phase = ResponsePhase::Open;
            self.by_model.clear();
            self.waiting.clear();
            format.begin(w);
        }
    }

    fn write(&mut self, event: &Event, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        match &event.kind {
            EventKind::TurnStart => {
                self.reply = 0;
                format.turn_start(w, event.turn);
            }
            EventKind::MessageStart { message } => match &**message {
                Message::Assistant(_) => self.reply_start(w, format),
                Message::ToolResult(result) => {
                    if let Some(at) = self.calls.held(&result.call_id) {
                        self.release_end(at, result.edited_args.as_ref(), w, format);
                    }
                }
                _ => {}
            },
            EventKind::MessageUpdate { update } => self.update(update, w, format),
            EventKind::MessageEnd { message, queued_id } => match &**message {
                Message::Assistant(message) => self.reply_end(message, w, format),
                Message::User(message) => {
                    if let Some(id) = queued_id {
                        format.queued_message(w, id, &message.content);
                    }
                }
                Message::Custom(message) if self.view.options.custom_messages => {
                    format.custom_message(w, &message.kind, &message.data);
                }
                _ => {}
            },
            EventKind::ToolExecutionStart { call } => self.call_start(call, w, format),
            EventKind::ToolExecutionUpdate { call_id, tool, partial } => {
                let at = self.known_call(call_id, tool);
                let content = self.view.preliminary(&partial.content);
                if let Some(call) = self.calls.get(at) {
                    format.progress(w, call, partial, content.as_ref());
                }
            }
            EventKind::ApprovalRequired { call_id, tool, args, request_id } => {
                let at = self.known_call(call_id, tool);
                if let Some(call) = self.calls.get_mut(at) {
                    call.wanted_request = Some(request_id.clone());
                    call.args.get_or_insert_with(|| args.clone());
                }
            }
            EventKind::ApprovalResolved { call_id, allowed, edited } => {
                self.decided(call_id, *allowed, *edited, w, format);
            }
            EventKind::QuestionResolved { request_id, call_id, accepted } => {
                self.question_end(request_id, call_id, *accepted, w, format);
            }
            EventKind::ToolExecutionEnd { result, ran, .. } => {
                self.end_calls_within(&result.call_id, w, format);
                self.call_end(result, *ran, w, format);
            }
            EventKind::TurnEnd { assistant, usage, .. } => {
                self.close_texts(w, format);
                self.end_open_calls(false, w, format);
                self.last_stop.clone_from(assistant);
                self.usage += usage;
                let usage = self.view.usage(&self.usage);
                format.turn_end(w, usage.as_ref());
            }
            EventKind::RunSuspended { pending } => self.suspend(pending, w, format),
            EventKind::RunResumed => {
                self.phase = ResponsePhase::Open;
                self.waiting.clear();
                self.resume_children(w, format);
            }
            EventKind::AgentEnd { stop, detail, usage, .. } => {
                self.finish(*stop, detail.as_deref(), usage, w, format);
            }
            // These events have no chunks, unless the application adds data for them.
            EventKind::AgentStart
            | EventKind::QuestionAsked { .. }
            | EventKind::ContextNear { .. }
            | EventKind::ContextCleared { .. }
            | EventKind::CompactionStart { .. }
            | EventKind::CompactionEnd { .. }
            | EventKind::ReplyContinued { .. }
            | EventKind::RequestDelayed { .. }
            | EventKind::BudgetNear { .. }
            | EventKind::ModelSwitched { .. } => {}
        }
    }

    fn write_data(&self, event: &Event, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        // Updates of a reply get no data of the application, because they are not repeated when a client reconnects.
        if self.phase != ResponsePhase::Open || matches!(event.kind, EventKind::MessageUpdate { .. }) {
            return;
        }
        let Some(data) = self.view.options.data.clone() else { return };
        match crate::panics::catch(|| data(event)) {
            Ok(parts) => parts.iter().for_each(|part| format.data(w, part)),
            Err(panic) => tracing::error!(%panic, "the function for parts of a user interface panicked"),
        }
    }

    /// Returns the position of the open call with this id. An unknown call began in an earlier response, so it is added as a started call.
    fn known_call(&mut self, id: &str, tool: &str) -> usize {
        if let Some(at) = self.calls.open(id) {
            return at;
        }
        let at = self.calls.add(id, tool, "");
        if let Some(call) = self.calls.get_mut(at) {
            call.progress = CallProgress::Started;
        }
        at
    }

    /// Sends a waiting call of a sub-agent as a tool call, which the front end can answer. Does not send the call a second time. Returns
    /// the position of the call.
    fn child_call(
        &mut self,
        id: &str,
        tool: &str,
        args: Option<&ToolArguments>,
        outermost: &str,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) -> usize {
        let known = self.calls.open(id);
        let at = known.unwrap_or_else(|| self.calls.add(id, tool, &self.message_id));
        let Some(call) = self.calls.get_mut(at) else { return at };
        if std::mem::replace(&mut call.is_part, true) && known.is_some() {
            return at;
        }
        // `within` must be set first: it marks a sub-agent's call, whose arguments contain no secrets.
        (call.within, call.progress) = (Some(outermost.to_owned()), CallProgress::Streaming);
        let args = args.or(call.args.as_ref()).cloned().unwrap_or_else(|| "{}".into());
        format.call_start(w, call);
        self.call_start(&ToolCall::new(id, tool, args), w, format);
        at
    }

    fn call_start(&mut self, call: &ToolCall, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        let known = self.calls.unstarted(&call.id);
        let at = known.unwrap_or_else(|| self.calls.add(&call.id, &call.name, &self.message_id));
        if let Some(call) = self.calls.get(at).filter(|_| known.is_none()) {
            format.call_start(w, call);
        }
        self.complete_call(at, call, w, format);
        let Some(known) = self.calls.get_mut(at) else { return };
        let input = self.view.input(known.within.is_none().then_some(&*call.name), &call.args);
        known.progress = CallProgress::Started;
        format.input(w, known, &input);
    }

    fn complete_call(
        &mut self,
        at: usize,
        sent: &ToolCall,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let Some(call) = self.calls.get_mut(at) else { return };
        let input = self.view.input(call.within.is_none().then_some(&*sent.name), &sent.args);
        call.args = Some(sent.args.clone());
        if call.progress < CallProgress::Complete {
            call.progress = CallProgress::Complete;
            format.call_complete(w, call, &input);
        }
    }

    fn decided(
        &mut self,
        call_id: &str,
        is_allowed: bool,
        is_edited: bool,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let known = self.calls.open(call_id);
        // The name of the tool is unknown if the call began in an earlier response. The end of the call adds the name.
        let at = known.unwrap_or_else(|| self.known_call(call_id, ""));
        // If the front end was not asked, the run itself decided, so the approval request is written as automatic.
        let automatic = self
            .calls
            .get(at)
            .filter(|call| call.request.is_none())
            .and_then(|call| call.wanted_request.clone());
        if let Some(id) = &automatic {
            self.request_approval(at, id, true, w, format);
        }
        let answered = self.request.answers.iter().find(|answer| answer.call_id() == Some(call_id));
        // Version 6 of npm `ai` receives no automatic decisions, and accepts a denied call only with a decision. So the denial is sent as
        // an error.
        let is_told = automatic.is_none() || self.view.options.ai_sdk_version >= 7 || !self.is_ai_sdk();
        let Some(call) = self.calls.get_mut(at) else { return };
        (call.was_denied, call.was_edited) = (!is_allowed && is_told, is_edited);
        let request_id = call.request.take().or_else(|| answered.map(|answer| answer.id().to_owned()));
        call.wanted_request = None;
        format.decision(w, call, request_id.as_deref(), is_allowed);
    }

    /// Writes that a question was answered. Skips questions that the front end never received, because a function of the application
    /// answered them.
    fn question_end(
        &mut self,
        id: &str,
        call_id: &str,
        accepted: bool,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let known = self.calls.open(call_id).and_then(|at| self.calls.get(at));
        let was_asked = known.is_some_and(|call| call.questions.iter().any(|asked| asked == id));
        let is_first = if was_asked {
            known.is_some_and(|call| call.request.as_deref() == Some(id))
        } else if self.request.answers.iter().any(|answer| answer.id() == id) {
            // An earlier response asked this question, and the front end sent the answer. With the AI SDK, an answer has the id of the
            // call's first question.
            true
        } else {
            return;
        };
        let at = self.known_call(call_id, "");
        let Some(call) = self.calls.get_mut(at) else { return };
        if is_first {
            call.request = None;
        }
        call.questions.retain(|asked| asked != id);
        format.question_end(w, call, id, is_first, accepted);
    }

    fn request_approval(
        &mut self,
        at: usize,
        request_id: &str,
        is_automatic: bool,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let Some(call) = self.calls.get_mut(at) else { return };
        call.request = Some(request_id.to_owned());
        // A person needs the arguments for the decision, so they are sent even if the options hide arguments.
        if let Some(args) = call.args.as_ref().filter(|_| !self.view.options.args) {
            let input = self.view.input_to_decide(call.own_tool(), args);
            format.input(w, call, &input);
        }
        format.approval(w, call, request_id, is_automatic);
    }
}

impl fmt::Debug for UiEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiEncoder")
            .field("protocol", &self.protocol)
            .field("run_id", &self.run_id)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

fn progress_value(progress: &Progress) -> Value {
    let mut shown = json!({"message": progress.message});
    for (key, number) in [("done", progress.done), ("total", progress.total)] {
        if let Some(number) = number {
            shown[key] = json!(number);
        }
    }
    shown
}
