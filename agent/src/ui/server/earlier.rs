//! Creates events from the messages of a run, in place of events that the log does not contain. These are the earlier events of a long
//! run, and the events of a run that another process began.

use std::sync::Arc;

use crate::loop_core::{Event, EventKind, outcome_of};
use crate::message::{AssistantMessage, Message, StopReason, ToolCall, ToolResultMessage, Usage};
use crate::tool::outcome::{OutcomeCode, ToolResult};
use crate::tool::output::Control;

#[derive(Clone)]
pub(super) struct EarlierMessage {
    pub(super) turn: u32,
    pub(super) message: Arc<Message>,
    pub(super) queued_id: Option<String>,
}

/// Returns the messages of a run with the numbers of their turns. The first message is the prompt.
pub(super) fn with_turns(messages: &[Arc<Message>]) -> Vec<EarlierMessage> {
    let mut replies = 0;
    let with_turn = messages.iter().enumerate().map(|(at, message)| {
        let (turn, queued_id) = match &**message {
            Message::Assistant(_) => {
                replies += 1;
                (replies, None)
            }
            Message::ToolResult(_) => (replies, None),
            // After the prompt, a message of the user has an id only if the message came through a queue.
            Message::User(user) => (replies + 1, user.id.clone().filter(|_| at > 0)),
            _ => (replies + 1, None),
        };
        EarlierMessage { turn, message: message.clone(), queued_id }
    });
    with_turn.collect()
}

/// Creates the events of these messages. All have the number 0, which no sent event has.
pub(super) fn events_of(run_id: &Arc<str>, messages: &[EarlierMessage]) -> Vec<Arc<Event>> {
    let (calls, usage, list) = (Vec::new(), Usage::default(), Vec::new());
    let mut events = EarlierEvents { run_id, turn: 0, reply: None, calls, usage, list };
    events.push(EventKind::AgentStart);
    for message in messages {
        events.add(message);
    }
    events.list
}

struct EarlierEvents<'a> {
    run_id: &'a Arc<str>,
    turn: u32,
    /// The stop reason of the turn's reply.
    reply: Option<StopReason>,
    /// The calls of the reply that have no result yet. Some of them may not have started.
    calls: Vec<ToolCall>,
    usage: Usage,
    list: Vec<Arc<Event>>,
}

impl EarlierEvents<'_> {
    fn push(&mut self, kind: EventKind) {
        self.list.push(Arc::new(Event::new(self.run_id.clone(), self.turn, 0, kind)));
    }

    fn add(&mut self, earlier: &EarlierMessage) {
        let EarlierMessage { turn, message, queued_id } = earlier;
        if *turn > self.turn {
            if self.turn > 0 {
                let (assistant, usage) = (self.reply.take(), std::mem::take(&mut self.usage));
                self.push(EventKind::TurnEnd { assistant, tool_results: Vec::new(), usage });
            }
            self.turn = *turn;
            self.push(EventKind::TurnStart);
        }
        let begins = match &**message {
            Message::Assistant(_) => Arc::new(Message::from(AssistantMessage::default())),
            _ => message.clone(),
        };
        if let Message::ToolResult(result) = &**message {
            self.end_call(result);
        }
        self.push(EventKind::MessageStart { message: begins });
        self.push(EventKind::MessageEnd { message: message.clone(), queued_id: queued_id.clone() });
        if let Message::Assistant(reply) = &**message {
            self.reply = Some(reply.stop_reason.clone());
            self.usage += &reply.usage;
            self.calls = reply.tool_calls().cloned().collect();
        }
    }

    fn end_call(&mut self, message: &ToolResultMessage) {
        let (call_id, tool) = (message.call_id.clone(), message.tool.clone());
        if let Some(at) = self.calls.iter().position(|call| call.id == call_id) {
            let call = self.calls.remove(at);
            self.push(EventKind::ToolExecutionStart { call });
        }
        let code = message.code.as_deref().unwrap_or_default();
        let was_denied = code == OutcomeCode::DENIED.as_str();
        if was_denied || message.edited_args.is_some() {
            // The id of the approval request is not stored. A made-up id is enough, because the request is already decided.
            let args = message.edited_args.clone().unwrap_or_default();
            let request_id = format!("decided/{call_id}");
            self.push(EventKind::ApprovalRequired {
                call_id: call_id.clone(),
                tool: tool.clone(),
                args,
                request_id,
            });
            let allowed = !was_denied;
            let edited = message.edited_args.is_some();
            self.push(EventKind::ApprovalResolved { call_id: call_id.clone(), allowed, edited });
        }
        let ran = code != OutcomeCode::INVALID_ARGUMENTS.as_str();
        let result = ToolResult::new(call_id, tool, outcome_of(message));
        let control = Control::Continue;
        self.push(EventKind::ToolExecutionEnd {
            result,
            control,
            ran,
            cached: false,
            attempt: 1,
            duration_ms: 0,
        });
    }
}
