//! Plays one scenario through the real runtime.

use std::collections::HashMap;
use std::error::Error;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use agent::loop_core::Queue;
use agent::message::{AssistantMessage, Conversation, Message, OutcomeKind, Part, ToolResultMessage};
use agent::{
    AfterCall, Assistant, AssistantBuilder, BeforeCall, Decision, Delivery, Event, EventKind, Receipt,
    RunError, RunOutput, RunStop, UsageLimits, json,
};
use serde_json::{Map, Value};

use super::given::{Action, Given, What};
use super::{model, shown, tools};

/// What is noticed while it plays.
#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    /// Ids of queued messages, as they entered the conversation.
    delivered: Vec<String>,
    end: Option<Value>,
    receipts: Vec<(String, Receipt)>,
    second_prompt: Option<String>,
    /// How often each action could have happened.
    counts: Vec<u64>,
    later: Vec<tokio::task::JoinHandle<()>>,
}

/// A table that everybody writes to. Nothing that can panic runs under its lock.
fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) async fn play(given: Given) -> Result<Value, Box<dyn Error>> {
    let model = model::scripted(given.get("model"));
    let given = Arc::new(given);
    let assistant = build(&given, Assistant::builder(model.clone()))?;
    let seen: Arc<Mutex<Seen>> = Arc::default();
    watch(&assistant, &given, &seen)?;
    for (key, queue) in [("steering_queued", Queue::Steering), ("follow_up_queued", Queue::FollowUp)] {
        enqueue(&assistant, &seen, queue, given.texts(key));
    }
    let result = run(&assistant, &given).await;
    assistant.wait_until_idle().await;
    // What was to happen later happens, also when the run is over.
    loop {
        let Some(task) = lock(&seen).later.pop() else { break };
        task.await?;
    }
    let mut line = Map::new();
    let refused = match &result {
        Err(error @ (RunError::NothingToContinue | RunError::LastMessageIsAssistant | RunError::Busy)) => {
            Some(error.code())
        }
        _ => None,
    };
    let mut seen = lock(&seen);
    line.insert("events".to_owned(), std::mem::take(&mut seen.events).into());
    let is_given = |call_id: &str, code: &str| is_given(&given, call_id, code);
    // One that fails before anything is sent is no request.
    let replies = given.get("model");
    let sent = model.requests().into_iter().enumerate().filter(|(n, _)| replies[n]["throws"].is_null());
    let requests = sent.map(|(_, request)| shown::request(&request, &is_given)).collect();
    line.insert("requests".to_owned(), requests);
    let roles = assistant.messages().iter().map(|message| Value::from(message.role())).collect();
    line.insert("transcript_roles".to_owned(), roles);
    if result.as_ref().is_ok_and(|output| output.stop == RunStop::Suspended) {
        seen.end = Some(json!({"stop": "suspended"}));
    }
    if let Some(end) = seen.end.take() {
        line.insert("end".to_owned(), end);
    }
    if let Some(code) = refused {
        line.insert("refused".to_owned(), code.into());
    }
    if let Some(code) = seen.second_prompt.take() {
        line.insert("second_prompt_refused".to_owned(), code.into());
    }
    let delivered = delivered(&seen);
    if !delivered.is_empty() {
        line.insert("delivered".to_owned(), delivered.into());
    }
    let queued =
        |queue| -> Vec<String> { assistant.queued(queue).iter().map(|message| message.text()).collect() };
    let (steering, follow_up) = (queued(Queue::Steering), queued(Queue::FollowUp));
    if !(steering.is_empty() && follow_up.is_empty()) {
        let still = json!({"steering": steering, "follow_up": follow_up});
        line.insert("still_queued".to_owned(), still);
    }
    Ok(Value::Object(line))
}

async fn run(assistant: &Assistant, given: &Given) -> Result<RunOutput, RunError> {
    let mut prompts = given.texts("prompt").into_iter();
    let Some(first) = prompts.next() else { return assistant.continue_run().await };
    let prompt = assistant.prompt(first);
    prompts.fold(prompt, |prompt, text| prompt.with_message(Message::user(text))).await
}

fn build(given: &Arc<Given>, mut builder: AssistantBuilder) -> Result<Assistant, Box<dyn Error>> {
    builder = builder
        .tools(tools::tools(&given.texts("tools"))?)
        .conversation(history(given.get("history")))
        .steering_mode(given.mode("steering_mode"))
        .follow_up_mode(given.mode("follow_up_mode"))
        .steering_policy(given.steering_policy()?)
        .loop_guard(match given.get("loop_guard") {
            Value::Null | Value::Bool(false) => None,
            Value::Bool(true) => Some(agent::LoopGuard::default()),
            guard => Some(serde_json::from_value(guard.clone()).unwrap_or_default()),
        });
    if given.is("mode", "sequential") {
        builder = builder.sequential();
    }
    if let Some(calls) = given.number("max_concurrency") {
        builder = builder.max_concurrency(calls);
    }
    if let Some(turns) = given.number("max_turns") {
        builder = builder.max_turns(turns);
    }
    if let Some(tries) = given.number("max_retries") {
        builder = builder.max_retries(tries);
    }
    for key in ["limits", "usage_limits"] {
        if given.get(key).is_object() {
            builder = builder.limits(limits(given.get(key)));
        }
    }
    builder = hooks(given, builder);
    let decisions = given.get("decisions").clone();
    builder = builder.on_approval(move |request| {
        let decision = decision(&decisions[&request.call.id]);
        async move { decision }
    });
    Ok(builder.build()?)
}

fn limits(given: &Value) -> UsageLimits {
    let count = |key: &str| given[key].as_u64();
    UsageLimits {
        requests: count("requests"),
        tool_calls: count("tool_calls"),
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        total_tokens: count("total_tokens"),
        wall_time: count("wall_time_ms").map(Duration::from_millis),
        cost: given["cost"].as_f64(),
    }
}

/// The conversation before the run.
fn history(given: &Value) -> Conversation {
    // The names of the calls so far: a result says only which call it belongs to.
    let mut names: HashMap<String, String> = HashMap::new();
    let mut message = |entry: &Value| -> Option<Message> {
        if let Some(text) = entry["user"].as_str() {
            return Some(Message::user(text));
        }
        if !entry["assistant"].is_null() || entry["calls"].is_array() {
            let text = entry["assistant"].as_str().filter(|text| !text.is_empty());
            let mut parts: Vec<Part> = text.map(Part::text).into_iter().collect();
            for call in entry["calls"].as_array().into_iter().flatten() {
                let word = |key: &str| call[key].as_str().unwrap_or_default();
                names.insert(word("id").to_owned(), word("name").to_owned());
                parts.push(Part::tool_call(word("id"), word("name"), call["args"].clone()));
            }
            return Some(AssistantMessage::from(parts).into());
        }
        let id = entry["tool_result"].as_str().or(entry["tool_result"]["call_id"].as_str())?;
        let text = entry["text"].as_str().or(entry["tool_result"]["text"].as_str()).unwrap_or_default();
        let name = names.get(id).cloned().unwrap_or_default();
        Some(ToolResultMessage::new(id, name, OutcomeKind::Completed).with_content(text).into())
    };
    given.as_array().into_iter().flatten().filter_map(&mut message).collect()
}

fn hooks(given: &Arc<Given>, mut builder: AssistantBuilder) -> AssistantBuilder {
    let before = given.get("hooks")["before_tool_call"].clone();
    if before.is_object() {
        builder = builder.before_tool_call(move |call| {
            let concerns = before["tool"].as_str().is_none_or(|tool| tool == call.call().name);
            let said = if !concerns {
                Ok(BeforeCall::Continue)
            } else if let Some(error) = before["error"].as_str() {
                Err(error.into())
            } else if before["block"] == true {
                Ok(BeforeCall::block(before["reason"].as_str().unwrap_or("blocked")))
            } else if before["args"].is_null() {
                Ok(BeforeCall::Continue)
            } else {
                Ok(BeforeCall::Replace(before["args"].clone()))
            };
            async move { said }
        });
    }
    let after = given.get("hooks")["after_tool_call"].clone();
    if after.is_object() {
        builder = builder.after_tool_call(move |call, _| {
            let concerns = after["tool"].as_str().is_none_or(|tool| tool == call.call().name);
            let said = match (concerns, after["error"].as_str()) {
                (false, _) => Ok(AfterCall::default()),
                (true, Some(error)) => Err(error.into()),
                (true, None) => Ok(AfterCall {
                    content: after["text"].as_str().map(|text| vec![Part::text(text)]),
                    metadata: after["metadata"].as_object().cloned(),
                    is_error: after["is_error"].as_bool(),
                    control: serde_json::from_value(after["control"].clone()).ok(),
                }),
            };
            async move { said }
        });
    }
    builder
}

fn decision(given: &Value) -> Decision {
    match (given["decision"].as_str(), &given["args"]) {
        (Some("deny"), _) => Decision::Deny(given["message"].as_str().unwrap_or("It was denied.").to_owned()),
        (Some("later"), _) => Decision::Later,
        (_, Value::Null) => Decision::Allow,
        (_, args) => Decision::AllowWith(args.clone()),
    }
}

/// Whether the setup gave the text of a result that has a code; otherwise its wording is free.
fn is_given(given: &Given, call_id: &str, code: &str) -> bool {
    match code {
        "tool_error" | "hook_set_error" => true,
        "blocked" => given.get("hooks")["before_tool_call"]["reason"].is_string(),
        "denied" => given.get("decisions")[call_id]["message"].is_string(),
        _ => false,
    }
}

fn enqueue(assistant: &Assistant, seen: &Mutex<Seen>, queue: Queue, messages: Vec<String>) {
    for text in messages {
        let receipt = match queue {
            Queue::Steering => assistant.steer(&*text),
            Queue::FollowUp => assistant.follow_up(&*text),
        };
        lock(seen).receipts.push((text, receipt));
    }
}

/// Writes down what happens, and does what is to be done then.
fn watch(assistant: &Assistant, given: &Given, seen: &Arc<Mutex<Seen>>) -> Result<(), Box<dyn Error>> {
    let actions = given.actions()?;
    lock(seen).counts = vec![0; actions.len()];
    let (table, weak) = (seen.clone(), assistant.clone());
    assistant.subscribe(move |event| note(&weak, &table, &actions, event)).forever();
    let panics_on = given.get("listener_panics_on").clone();
    if panics_on.is_string() {
        let panics = move |event: &Event| {
            let kind = serde_json::to_value(event).unwrap_or_default();
            assert!(kind["type"] != panics_on, "a listener of a scenario panics");
        };
        assistant.subscribe(panics).forever();
    }
    Ok(())
}

fn note(assistant: &Assistant, seen: &Arc<Mutex<Seen>>, actions: &[Action], event: &Event) {
    let shown = shown::event(event);
    let mut due = Vec::new();
    {
        let mut seen = lock(seen);
        match &event.kind {
            EventKind::MessageEnd { queued_id: Some(id), .. } => seen.delivered.push(id.clone()),
            EventKind::AgentEnd { stop, detail, .. } => {
                let mut end = json!({"stop": stop});
                if let (Some(detail), Some(end)) = (detail, end.as_object_mut()) {
                    end.insert("detail".to_owned(), detail.as_str().into());
                }
                seen.end = Some(end);
            }
            _ => {}
        }
        for (action, count) in actions.iter().zip(&mut seen.counts) {
            if action.fits(&shown) {
                *count += 1;
                if *count == action.nth {
                    due.push(action);
                }
            }
        }
        // Nothing was streamed: then the start carries the final message.
        if shown["type"] == "message_end"
            && shown["role"] == "assistant"
            && let Some(start) = seen.events.last_mut().and_then(Value::as_object_mut)
            && start["type"] == "message_start"
        {
            let fields = ["text", "calls", "stop_reason", "error"];
            let fields = fields.into_iter().filter_map(|key| Some((key.to_owned(), shown.get(key)?.clone())));
            start.extend(fields);
        }
        seen.events.push(shown);
    }
    for action in due {
        let (assistant, table, what) = (assistant.clone(), seen.clone(), action.what.clone());
        let after = Duration::from_millis(action.after_ms);
        // A reset waits for this listener; what it does first happens now.
        if after.is_zero() && matches!(what, What::Reset) {
            assistant.cancel("reset");
        }
        if after.is_zero() && !matches!(what, What::Reset) {
            happen(&assistant, &table, what);
            continue;
        }
        let later = tokio::spawn(async move {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            match what {
                What::Reset => assistant.reset().await,
                what => happen(&assistant, &table, what),
            }
        });
        lock(seen).later.push(later);
    }
}

fn happen(assistant: &Assistant, seen: &Mutex<Seen>, what: What) {
    match what {
        What::Abort(reason) => assistant.cancel(reason),
        What::Queue(queue, messages) => enqueue(assistant, seen, queue, messages),
        What::Prompt(text) => {
            // It is refused at once, or it is no second one.
            let second = pin!(assistant.prompt(text).into_future());
            let code = match second.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Err(error)) => Some(error.code().to_owned()),
                Poll::Ready(Ok(_)) | Poll::Pending => None,
            };
            lock(seen).second_prompt = code;
        }
        What::Reset => {}
    }
}

/// The receipts of messages that were delivered, in the order of delivery.
fn delivered(seen: &Seen) -> Vec<Value> {
    let one = |id: &String| {
        let (text, receipt) = seen.receipts.iter().find(|(_, receipt)| receipt.id() == id)?;
        match receipt.status() {
            Some(Delivery::Delivered { turn, .. }) => Some(json!({"message": text, "turn": turn})),
            _ => None,
        }
    };
    seen.delivered.iter().filter_map(one).collect()
}
