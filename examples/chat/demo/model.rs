//! A fake model: it guesses a tool from keywords, calls it with the typical mistakes of models, and repeats the result. It demonstrates
//! every feature of the chat without a key or a network.

use super::guess;
use agent::message::{AssistantMessage, Message, ToolResultMessage, Usage};
use agent::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, ScriptedReply,
    StepCx, reply,
};
use agent::{ScriptedModel, Value, json};
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

pub(crate) const NAME: &str = "demo";

/// The pause between two pieces of a reply.
const PAUSE: Duration = Duration::from_millis(12);

/// A description for users, because the demo model may answer without being asked for.
pub(crate) const WHAT: &str = "built in; no language model, it goes by words alone";

const HINTS: &str = "\
I am the demo model: no language model, just a few rules that show what this chat does. Try one of these:
  weather in Rome for 3 days     a tool; \"3\" becomes 3, and you see that
  weather for 99 days            a refused call, and its mending
  pay Ann 50, or pay Ann 500     the second one asks you first
  delegate pay Ann 500           a sub-agent does it, and asks you
  reserve a table at Sole        a tool that asks you in the middle of its work
  unlock door Garage, 4711       a secret argument, which stays hidden
  slow work for 8 seconds        type something meanwhile, or press Ctrl-C
  count up to 200                a long result: /show
  think, tell a story, fail      thinking, a long answer, an error
With a real model: --model anthropic/claude-sonnet-5, openai/gpt-5, ollama/…";

#[derive(Debug)]
pub(crate) struct DemoModel {
    rules: ScriptedModel,
}

impl DemoModel {
    pub(crate) fn new() -> Self {
        let info = ModelInfo::new(NAME, NAME, NAME);
        Self { rules: ScriptedModel::from_fn(answer).with_info(info).with_chunk_size(6).without_record() }
    }
}

impl Model for DemoModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let events = Slowly { events: self.rules.stream(cx, request), pause: Box::pin(sleep(PAUSE * 20)) };
        ModelStream::new(cx, self.info(), events)
    }

    fn info(&self) -> &ModelInfo {
        self.rules.info()
    }
}

/// A reply with pauses, so that it arrives as slowly as over a network.
struct Slowly {
    events: ModelStream,
    pause: Pin<Box<Sleep>>,
}

impl Stream for Slowly {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        ready!(self.pause.as_mut().poll(cx));
        let event = ready!(Pin::new(&mut self.events).poll_next(cx));
        if event.as_ref().is_some_and(|event| event.as_ref().is_ok_and(|event| event.delta().is_some())) {
            self.pause = Box::pin(sleep(PAUSE));
        }
        Poll::Ready(event)
    }
}

fn answer(request: &ModelRequest) -> ScriptedReply {
    if request.system.as_deref().is_some_and(|system| system.starts_with("You keep the record")) {
        return reply().text(
            json!({"goal": "Try the chat", "facts": [{"text": "The demo model answered."}]}).to_string(),
        );
    }
    let sent: usize = request.messages.iter().map(|message| message.text().len()).sum();
    let reply = match request.messages.last().map(|message| &**message) {
        Some(Message::ToolResult(result)) => after_tools(request, result),
        Some(message) => to_words(&message.text(), request),
        None => reply().text(HINTS),
    };
    // A rough estimate: four bytes are a token.
    reply.usage(Usage::new(sent as u64 / 4 + 20, 30))
}

fn to_words(said: &str, request: &ModelRequest) -> ScriptedReply {
    let has = |words: &[&str]| {
        let said = said.to_lowercase();
        words.iter().any(|word| said.split(|c: char| !c.is_alphanumeric()).any(|one| one == *word))
    };
    let delegated =
        said.strip_prefix("delegate ").filter(|_| request.tools.iter().any(|tool| tool.name() == "delegate"));
    if let Some(task) = delegated {
        return reply().tool_call("delegate", json!({"task": task}));
    }
    if has(&["fail", "error"]) {
        return reply()
            .text("I am about to")
            .error(ModelError::new(ModelErrorKind::Server, "the demo model was told to fail"));
    }
    if has(&["think", "thinking"]) {
        let thought = "They want to see me think. I have nothing to think with, so I write this down, which is shown dimmed \
                       because it is not the answer.";
        return reply().thinking(thought).text("I thought about it, and the answer is 42.");
    }
    if has(&["story", "long"]) {
        return reply().text(story());
    }
    if has(&["help"]) {
        return reply().text(HINTS);
    }
    match guess::tool(said, &request.tools) {
        Some(tool) => {
            let arguments = guess::arguments(said, tool.parameters());
            let thought = format!("That sounds like the tool {}.", tool.name());
            reply().thinking(thought).text("One moment.").tool_call(tool.name(), arguments)
        }
        None if request.messages.len() > 2 => {
            let said: String = said.chars().take(60).collect();
            reply()
                .text(format!("I heard: {said}\nNo tool goes with that. Say \"help\" for what I react to."))
        }
        None => reply().text(HINTS),
    }
}

/// Replies to a result: repeats a refused call with corrected arguments, else reports the result.
fn after_tools(request: &ModelRequest, result: &ToolResultMessage) -> ScriptedReply {
    let refused = result.code.as_deref() == Some("invalid_arguments");
    let calls = request
        .messages
        .iter()
        .rev()
        .filter_map(|message| message.as_assistant())
        .flat_map(AssistantMessage::tool_calls);
    let call = calls.filter(|call| call.id == result.call_id).last();
    let tool = request.tools.iter().find(|tool| tool.name() == result.tool);
    if let (true, Some(call), Some(tool)) = (refused, call, tool) {
        let sent = call.args.value().filter(Value::is_object).unwrap_or_else(|| json!({}));
        let mended = guess::mended(sent.clone(), tool.parameters());
        if mended != sent {
            return reply().text("I got that wrong; once more.").tool_call(tool.name(), mended);
        }
    }
    let text = result.text();
    let (head, more) = (text.lines().next().unwrap_or("nothing"), text.lines().count().saturating_sub(1));
    let more = if more > 0 { format!(" (and {more} more lines)") } else { String::new() };
    let head: String = head.chars().take(300).collect();
    if result.is_error {
        return reply().text(format!("{} did not work out: {head}{more}", result.tool));
    }
    reply().text(format!("{} says: {head}{more}", result.tool))
}

fn story() -> String {
    let steps = (1..=40).map(|day| {
        format!("Day {day}. The ferris crab walked sideways along the beach, found a shell with the number {day} in it, and \
                 kept it.\n")
    });
    steps.chain(["That is all.".to_owned()]).collect()
}
