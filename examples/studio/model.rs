//! A model of a few rules. It makes the mistakes that models make, so that the studio has something to show.

use agent::ScriptedModel;
use agent::message::{Cost, Message, Usage};
use agent::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, ScriptedReply,
    StepCx, reply,
};
use futures_util::StreamExt as _;
use std::time::Duration;
use tokio::time::sleep;

const HINTS: &str = "\
I am the demo model: a few rules, no language model. Write one of these:

find a room: calls side by side, one of them refused and corrected
book a room: waits for your decision
order a letter: its result is delivered later, by you
unlock the door: a secret argument, which stays hidden
reserve a table: a tool that asks you in the middle of its work
ask the concierge for a table: a sub-agent does it
tell a story: a long reply
stumble: a reply that fails";

/// The rules, at the pace of a model that is far away.
pub(crate) struct DemoModel(ScriptedModel);

impl DemoModel {
    pub(crate) fn new() -> Self {
        let info = ModelInfo::new("demo", "demo", "demo");
        Self(ScriptedModel::from_fn(answer).with_info(info).with_chunk_size(5).without_record())
    }
}

impl Model for DemoModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let slowly = self.0.stream(cx, request).then(|event| async move {
            let is_delta = event.as_ref().is_ok_and(|event: &ModelEvent| event.delta().is_some());
            sleep(Duration::from_millis(if is_delta { 15 } else { 40 })).await;
            event
        });
        ModelStream::new(cx, self.info(), Box::pin(slowly))
    }

    fn info(&self) -> &ModelInfo {
        self.0.info()
    }

    fn context_window(&self) -> Option<u64> {
        Some(8_000)
    }
}

fn answer(request: &ModelRequest) -> ScriptedReply {
    let sent: usize = request.messages.iter().map(|message| message.text().len()).sum();
    let mut usage = Usage::new(u64::try_from(sent / 4).unwrap_or_default() + 400, 60);
    // As if a million tokens cost a dollar.
    let mut cost = Cost::default();
    cost.total = f64::from(u32::try_from(usage.total).unwrap_or(u32::MAX)) / 1e6;
    usage.cost = Some(cost);
    let said = match request.messages.last().map(|message| &**message) {
        Some(Message::ToolResult(result)) => return after(&result.tool, request).usage(usage),
        Some(message) => message.text().to_lowercase(),
        None => String::new(),
    };
    let has = |word: &str| said.contains(word);
    let reply = if has("find") {
        reply()
            .thinking("Two sizes of rooms, and the weather, which they will ask about next.")
            .text("I look at rooms for two and for four, and at the weather.")
            .tool_call("find_rooms", r#"{"guests": "2", "view": "sea"}"#)
            .tool_call("find_rooms", r#"{"guest": 4, "view": "Sea"}"#)
            .tool_call("forecast", r#"{"days": 3}"#)
    } else if has("book") {
        reply().text("I book room 12.").tool_call(
            "book_room",
            r#"{"room": "12", "guest": {"name": "Ann", "children": [7]}, "payment": {"method": "card", "last_digits": "4242"}}"#,
        )
    } else if has("concierge") && request.tools.iter().any(|tool| tool.name() == "concierge") {
        reply()
            .text("The concierge knows the place.")
            .tool_call("concierge", r#"{"task": "Reserve a table."}"#)
    } else if has("table") {
        reply().text("I ask for a table.").tool_call("reserve_table", r#"{"restaurant": "Sole"}"#)
    } else if has("letter") {
        reply().tool_call("order_letter", r#"{"name": "Ann"}"#)
    } else if has("unlock") {
        reply().tool_call("unlock_door", r#"{"door": "Garage", "code": "4711"}"#)
    } else if has("story") {
        reply().text("The crab walked along the beach, and found a shell. ".repeat(40))
    } else if has("stumble") {
        reply()
            .text("I am about to")
            .error(ModelError::new(ModelErrorKind::Overloaded, "the demo model stumbled"))
    } else {
        reply().text(HINTS)
    };
    reply.usage(usage)
}

/// What follows the results of a turn.
fn after(tool: &str, request: &ModelRequest) -> ScriptedReply {
    let results = request.messages.iter().rev().map_while(|message| message.as_tool_result());
    if results.into_iter().any(|result| result.code.as_deref() == Some("invalid_arguments")) {
        return reply()
            .text("One call was refused; once more.")
            .tool_call("find_rooms", r#"{"guests": 4, "nights": 1}"#);
    }
    reply().text(match tool {
        "book_room" => "Room 12 is booked for Ann.",
        "order_letter" => "The letter is on its way.",
        "unlock_door" => "The garage is open.",
        "reserve_table" => "The table is reserved.",
        "concierge" => "The concierge has seen to it.",
        _ => "Room 12 is free for two, room 31 for four, and it will be sunny.",
    })
}
