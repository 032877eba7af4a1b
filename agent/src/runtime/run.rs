//! The loop between model and tools.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::listener::Events;
use super::{Assistant, EventKind, RunError, RunOutput, RunStop};
use crate::message::{
    AssistantMessage, Message, OutcomeKind, StopReason, ToolCall, ToolResultMessage, Usage,
};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelStream, StepCx};
use crate::{
    CancelToken, Control, FailureCode, StepKey, StepKind, ToolContext, ToolOutcome, ToolReply, ToolResult,
};

/// One run. Whatever it leaves open is closed when it is dropped, so the conversation is sound at any time.
pub(super) struct Run {
    assistant: Assistant,
    events: Events,
    cancel: CancelToken,
    context: ToolContext,
    turn: Turn,
    usage: Usage,
    /// Every message so far.
    added: Vec<Arc<Message>>,
    is_over: bool,
}

/// The turn that is going on.
#[derive(Default)]
struct Turn {
    number: u32,
    is_open: bool,
    /// The reply while it streams, and whether its start was told.
    stream: Option<(ModelStream, bool)>,
    stop_reason: Option<StopReason>,
    usage: Usage,
    batch: Vec<Slot>,
    /// Whether the batch's results are in the conversation.
    is_settled: bool,
}

/// One call of the reply and its result.
struct Slot {
    call: ToolCall,
    is_started: bool,
    result: Option<ToolResultMessage>,
    control: Control,
}

/// How a run ends.
enum End {
    Completed,
    Terminated,
    MaxTurns,
    Aborted(String),
    Failed(ModelError),
}

impl Run {
    pub(super) fn new(
        assistant: Assistant,
        run_id: Arc<str>,
        cancel: CancelToken,
        context: ToolContext,
    ) -> Self {
        let events = Events::new(run_id, assistant.config().listeners.clone());
        let (turn, usage) = (Turn::default(), Usage::default());
        Self { assistant, events, cancel, context, turn, usage, added: Vec::new(), is_over: false }
    }

    pub(super) async fn execute(mut self, prompts: Vec<Message>) -> Result<RunOutput, RunError> {
        let end = self.turns(prompts).await;
        let stop = self.end(&end);
        let (max_turns, turns) = (self.assistant.config().max_turns, self.turn.number);
        match end {
            End::Completed | End::Terminated => Ok(RunOutput {
                run_id: self.events.run_id().clone(),
                messages: std::mem::take(&mut self.added),
                usage: std::mem::take(&mut self.usage),
                turns,
                stop,
            }),
            End::MaxTurns => Err(RunError::MaxTurns { max_turns, turns }),
            End::Aborted(reason) => Err(RunError::Aborted { reason }),
            End::Failed(error) => Err(RunError::Model(error)),
        }
    }

    async fn turns(&mut self, prompts: Vec<Message>) -> End {
        self.tell(|| EventKind::AgentStart);
        let mut prompts = prompts.into_iter();
        loop {
            self.turn = Turn { number: self.turn.number + 1, is_open: true, ..Turn::default() };
            self.tell(|| EventKind::TurnStart);
            for prompt in prompts.by_ref() {
                self.add(Arc::new(prompt));
            }
            if let Some(reason) = self.cancel.reason() {
                return End::Aborted(reason.to_string());
            }
            let control = match self.ask().await {
                Ok(is_truncated) => self.call_tools(is_truncated).await,
                Err(error) if error.is_aborted() => return End::Aborted(error.message().to_owned()),
                Err(error) => return End::Failed(error),
            };
            let goes_on = !self.turn.batch.is_empty() || self.turn.stop_reason == Some(StopReason::Pause);
            self.end_turn();
            if let Some(reason) = self.cancel.reason() {
                return End::Aborted(reason.to_string());
            }
            match control {
                Control::EndIfAll | Control::EndNow => return End::Terminated,
                _ if !goes_on => return End::Completed,
                _ if self.turn.number >= self.assistant.config().max_turns => return End::MaxTurns,
                _ => {}
            }
        }
    }

    /// One reply of the model, into the conversation. Its calls are the turn's batch; says whether it was cut.
    async fn ask(&mut self) -> Result<bool, ModelError> {
        let request = self.assistant.request();
        let step = StepCx::new().with_key(self.key(StepKind::Model, 0)).with_cancel(self.cancel.clone());
        self.turn.stream = Some((self.assistant.config().model.stream(&step, &request), false));
        let mut failure = None;
        while let Some((stream, is_started)) = &mut self.turn.stream {
            match stream.next().await {
                Some(Ok(update)) if is_update(&update) => {
                    if !std::mem::replace(is_started, true) {
                        let mut message = stream.partial().clone();
                        message.content.clear();
                        let message = Arc::new(Message::Assistant(message));
                        self.tell(|| EventKind::MessageStart { message });
                    }
                    self.tell(|| EventKind::MessageUpdate { update });
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => failure = Some(error),
                None => break,
            }
        }
        let Some(message) = self.end_message(failure.as_ref()) else { return Ok(false) };
        if let Some(error) = failure {
            return Err(error);
        }
        if message.stop_reason.is_failure() {
            let aborted = message.stop_reason == StopReason::Aborted;
            let kind = if aborted { ModelErrorKind::Aborted } else { ModelErrorKind::Other };
            return Err(ModelError::new(
                kind,
                message.error.unwrap_or_else(|| "the model gave no reason".into()),
            ));
        }
        let at_limit = request.max_tokens.is_some_and(|limit| limit == message.usage.output);
        self.turn.batch = message.tool_calls().cloned().map(Slot::new).collect();
        Ok(at_limit || message.stop_reason == StopReason::MaxTokens)
    }

    /// The streamed message, whole or as far as it came, into the conversation.
    fn end_message(&mut self, failure: Option<&ModelError>) -> Option<AssistantMessage> {
        let (stream, is_started) = self.turn.stream.take()?;
        let mut message = if failure.is_some() { stream.into_partial() } else { stream.into_message() };
        if let Some(error) = failure {
            message.stop_reason = if error.is_aborted() { StopReason::Aborted } else { StopReason::Error };
            message.error = Some(error.message().to_owned());
        }
        self.turn.stop_reason = Some(message.stop_reason.clone());
        self.turn.usage = message.usage.clone();
        self.usage += &message.usage;
        let shared = Arc::new(Message::Assistant(message.clone()));
        if !is_started {
            self.tell(|| EventKind::MessageStart { message: shared.clone() });
        }
        self.keep(shared);
        Some(message)
    }

    /// Runs the calls of the batch side by side, and adds their results in call order.
    async fn call_tools(&mut self, is_truncated: bool) -> Control {
        let permits = Semaphore::new(self.assistant.config().max_concurrency);
        let assistant = self.assistant.clone();
        let mut running = FuturesUnordered::new();
        for index in 0..self.turn.batch.len() {
            let Some(call) = self.start_call(index) else { continue };
            if let Some(reply) = self.refusal(&call, is_truncated) {
                self.end_call(index, ToolResult::new(&*call.id, &*call.name, reply), None);
                continue;
            }
            let ord = u32::try_from(index).unwrap_or(u32::MAX);
            let cx = self.context.with_idempotency_key(self.key(StepKind::Tool, ord).to_string());
            let (registry, permits, cancelled) = (assistant.registry(), &permits, self.cancel.cancelled());
            running.push(async move {
                // Who waits for a place when the run is cancelled does not wait any longer; the registry says so.
                let place = match select(pin!(permits.acquire()), cancelled).await {
                    Either::Left((place, _)) => place.ok(),
                    Either::Right(_) => None,
                };
                let begun = Instant::now();
                let result = registry.call(&call, &cx).await;
                (index, result, place.map(|_| begun.elapsed()))
            });
        }
        while let Some((index, result, ran)) = running.next().await {
            self.end_call(index, result, ran);
        }
        self.add_results();
        combine(&self.turn.batch)
    }

    fn start_call(&mut self, index: usize) -> Option<ToolCall> {
        let slot = self.turn.batch.get_mut(index)?;
        slot.is_started = true;
        let call = slot.call.clone();
        self.tell(|| EventKind::ToolExecutionStart { call: call.clone() });
        Some(call)
    }

    /// What a call comes to that does not run.
    fn refusal(&self, call: &ToolCall, is_truncated: bool) -> Option<ToolReply> {
        if let Some(reason) = self.cancel.reason() {
            return Some(ToolReply::new(ToolOutcome::aborted(&reason)));
        }
        if is_truncated {
            let text = "The call was not run: the reply was cut by its token limit, so the arguments may be incomplete.";
            return Some(ToolReply::new(ToolOutcome::failed(FailureCode::TRUNCATED, text)));
        }
        let tool = match self.assistant.registry().fetch(&call.name) {
            Ok(tool) => tool,
            Err(unknown) => {
                let outcome = ToolOutcome::failed(FailureCode::UNKNOWN_TOOL, unknown.to_string());
                return Some(ToolReply::new(outcome));
            }
        };
        // A check that panics is left to the call itself, which turns panics into results.
        let checked = catch_unwind(AssertUnwindSafe(|| tool.validate(call.args.text())));
        Some(ToolReply::from(checked.ok()?.err()?))
    }

    fn end_call(&mut self, index: usize, mut result: ToolResult, ran: Option<Duration>) {
        let Some(slot) = self.turn.batch.get_mut(index) else { return };
        slot.result = Some(message_of(&mut result));
        slot.control = result.outcome.output().map_or(Control::Continue, |output| output.control);
        self.tell(|| EventKind::ToolExecutionEnd {
            result,
            ran: ran.is_some(),
            duration_ms: ran.unwrap_or_default().as_millis().try_into().unwrap_or(u64::MAX),
        });
    }

    /// Every call of the batch has its result in the conversation after this.
    fn add_results(&mut self) {
        for index in 0..self.turn.batch.len() {
            if self.turn.batch.get(index).is_some_and(|call| !call.is_started) {
                self.start_call(index);
            }
            let Some(slot) = self.turn.batch.get(index).filter(|call| call.result.is_none()) else {
                continue;
            };
            let reason = self.cancel.reason();
            let outcome = ToolOutcome::aborted(reason.as_deref().unwrap_or("cancelled"));
            let result = ToolResult::new(&*slot.call.id, &*slot.call.name, ToolReply::new(outcome));
            self.end_call(index, result, None);
        }
        self.turn.is_settled = true;
        for index in 0..self.turn.batch.len() {
            if let Some(result) = self.turn.batch.get_mut(index).and_then(|call| call.result.take()) {
                self.add(Arc::new(Message::ToolResult(result)));
            }
        }
    }

    fn end_turn(&mut self) {
        if !std::mem::take(&mut self.turn.is_open) {
            return;
        }
        let (assistant, usage) = (self.turn.stop_reason.clone(), self.turn.usage.clone());
        let tool_results = self.turn.batch.iter().map(|call| call.call.id.clone()).collect();
        self.tell(|| EventKind::TurnEnd { assistant, tool_results, usage });
    }

    fn end(&mut self, end: &End) -> RunStop {
        let (stop, detail) = match end {
            End::Completed => (RunStop::Completed, None),
            End::Terminated => (RunStop::Terminated, None),
            End::MaxTurns => (RunStop::Limit, Some("turns".to_owned())),
            End::Aborted(reason) => (RunStop::Aborted, Some(reason.clone())),
            End::Failed(error) => (RunStop::Error, Some(error.message().to_owned())),
        };
        self.end_turn();
        let (messages, usage) = (self.added.clone(), self.usage.clone());
        self.tell(|| EventKind::AgentEnd { stop, detail, messages, usage });
        self.is_over = true;
        self.assistant.end_run();
        stop
    }

    /// A message that comes as a whole.
    fn add(&mut self, message: Arc<Message>) {
        self.tell(|| EventKind::MessageStart { message: message.clone() });
        self.keep(message);
    }

    fn keep(&mut self, message: Arc<Message>) {
        self.assistant.push(message.clone());
        self.added.push(message.clone());
        self.tell(|| EventKind::MessageEnd { message });
    }

    fn key(&self, kind: StepKind, ord: u32) -> StepKey {
        StepKey::new(self.events.run_id().clone(), self.turn.number, kind, ord)
    }

    fn tell(&mut self, kind: impl FnOnce() -> EventKind) {
        self.events.tell(self.turn.number, kind);
    }
}

const DROPPED: &str = "the prompt was dropped";

impl Drop for Run {
    /// Dropped before its end: whatever is open is closed as if it had been cancelled.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.cancel.cancel(DROPPED);
        self.end_message(Some(&ModelError::aborted(DROPPED)));
        if !self.turn.is_settled {
            self.add_results();
        }
        self.end(&End::Aborted(DROPPED.to_owned()));
    }
}

impl Slot {
    fn new(call: ToolCall) -> Self {
        Self { call, is_started: false, result: None, control: Control::Continue }
    }
}

/// The message that answers the call. A result that is put off becomes a failure: the model needs one now.
fn message_of(result: &mut ToolResult) -> ToolResultMessage {
    if let Some(message) = result.to_message() {
        return message;
    }
    tracing::error!(tool = %result.tool, "the tool put its result off, and this assistant cannot wait for it");
    let (code, text) = ("deferred", "The tool's result is not available.");
    result.outcome = ToolOutcome::failed(code.into(), text);
    ToolResultMessage::new(&*result.call_id, &*result.tool, OutcomeKind::Failed)
        .with_code(Some(code.to_owned()))
        .with_content(text)
}

/// Whether listeners are told of it: what makes parts grow.
fn is_update(event: &ModelEvent) -> bool {
    event.content_index().is_some() && !matches!(event, ModelEvent::PartData { .. })
}

/// What the results of a turn say together.
fn combine(batch: &[Slot]) -> Control {
    if batch.iter().any(|slot| slot.control == Control::EndNow) {
        Control::EndNow
    } else if !batch.is_empty() && batch.iter().all(|slot| slot.control != Control::Continue) {
        Control::EndIfAll
    } else {
        Control::Continue
    }
}
