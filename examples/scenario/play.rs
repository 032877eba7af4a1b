//! Plays one scenario through the real runtime.

use std::error::Error;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use agent::message::Message;
use agent::run::{Delivery, Queue, Receipt};
use agent::{Assistant, Event, EventKind, RunError, RunOutput, RunStop};
use serde_json::{Map, Value, json};

use super::given::{Action, Given};
use super::{model, setup, shown};

/// Everything that is observed while a scenario plays.
#[derive(Default)]
pub(crate) struct Seen {
    events: Vec<Value>,
    /// The ids of queued messages, in the order in which they entered the conversation.
    delivered: Vec<String>,
    end: Option<Value>,
    receipts: Vec<(String, Receipt)>,
    second_prompt: Option<String>,
    /// For each action, the number of events so far that match its `when`.
    counts: Vec<u64>,
    later: Vec<tokio::task::JoinHandle<()>>,
}

/// Ignores poison, because nothing that can panic runs under the lock.
fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) async fn play(given: Given) -> Result<Value, Box<dyn Error>> {
    let given = Arc::new(given);
    let model = model::scripted(&given);
    let assistant = setup::assistant(&given, model.clone())?;
    let (seen, result) = to_its_end(&assistant, &given).await?;
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
    // A request that fails before anything is sent is not shown.
    let throws = |n: usize| given.model.get(n).is_some_and(|reply| reply.throws.is_some());
    let sent = model.requests().into_iter().enumerate().filter(|(n, _)| !throws(*n));
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

/// Runs a scenario with its actions, and waits for the delayed ones.
pub(crate) async fn to_its_end(
    assistant: &Assistant,
    given: &Arc<Given>,
) -> Result<(Arc<Mutex<Seen>>, Result<RunOutput, RunError>), tokio::task::JoinError> {
    let seen: Arc<Mutex<Seen>> = Arc::default();
    watch(assistant, given, &seen);
    enqueue(assistant, &seen, Queue::Steering, &given.steering_queued);
    enqueue(assistant, &seen, Queue::FollowUp, &given.follow_up_queued);
    let result = run(assistant, given).await;
    assistant.wait_until_idle().await;
    // Delayed actions are done even if the run is over.
    loop {
        let Some(task) = lock(&seen).later.pop() else { break };
        task.await?;
    }
    Ok((seen, result))
}

async fn run(assistant: &Assistant, given: &Given) -> Result<RunOutput, RunError> {
    let mut prompts = given.prompt.iter().flatten().map(String::as_str);
    let Some(first) = prompts.next() else { return assistant.continue_run().await };
    let prompt = assistant.prompt(first);
    prompts.fold(prompt, |prompt, text| prompt.with_message(Message::user(text))).await
}

/// Returns whether the text of a result with this code comes from the scenario or its tools. The engine words all other texts, and their
/// wording may change.
fn is_given(given: &Given, call_id: &str, code: &str) -> bool {
    match code {
        "tool_error" | "hook_set_error" => true,
        "blocked" => given.hooks.before_tool_call.as_ref().is_some_and(|before| before.reason.is_some()),
        "denied" => given.decisions.get(call_id).is_some_and(|ruling| ruling.message.is_some()),
        _ => false,
    }
}

fn enqueue(assistant: &Assistant, seen: &Mutex<Seen>, queue: Queue, messages: &[String]) {
    for text in messages {
        let receipt = match queue {
            Queue::Steering => assistant.steer(&**text),
            Queue::FollowUp => assistant.follow_up(&**text),
        };
        lock(seen).receipts.push((text.clone(), receipt));
    }
}

/// Records the events, and does the actions that they trigger.
fn watch(assistant: &Assistant, given: &Arc<Given>, seen: &Arc<Mutex<Seen>>) {
    lock(seen).counts = vec![0; given.actions.len()];
    let (table, same, setup) = (seen.clone(), assistant.clone(), given.clone());
    assistant.subscribe(move |event| note(&same, &table, &setup.actions, event)).forever();
    if let Some(told) = given.listener_panics_on {
        let panics = move |event: &Event| {
            let shown = serde_json::to_value(event).unwrap_or_default();
            assert!(shown["type"] != json!(told), "a listener of a scenario panics");
        };
        assistant.subscribe(panics).forever();
    }
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
            let (when, _) = action.when();
            if when.fits(&shown) {
                *count += 1;
                if *count == when.nth {
                    due.push(action);
                }
            }
        }
        // If nothing was streamed, the end follows the start directly. The start then gets the fields of the final message.
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
        let (assistant, table, action) = (assistant.clone(), seen.clone(), action.clone());
        let (_, after_ms) = action.when();
        let after = Duration::from_millis(after_ms);
        if after.is_zero() {
            // `reset` waits for the run, and the run waits for this listener. So `reset` is spawned. Only the cancellation is done now.
            if !matches!(action, Action::Reset { .. }) {
                happen(&assistant, &table, action);
                continue;
            }
            assistant.cancel("reset");
        }
        let later = tokio::spawn(async move {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            match action {
                Action::Reset { .. } => assistant.reset().await,
                action => happen(&assistant, &table, action),
            }
        });
        lock(seen).later.push(later);
    }
}

fn happen(assistant: &Assistant, seen: &Mutex<Seen>, action: Action) {
    match action {
        Action::Abort { reason, .. } => assistant.cancel(reason.as_deref().unwrap_or("cancelled")),
        Action::Steer { messages, .. } => enqueue(assistant, seen, Queue::Steering, &messages),
        Action::FollowUp { messages, .. } => enqueue(assistant, seen, Queue::FollowUp, &messages),
        Action::Prompt { text, .. } => {
            // During a run, the first poll refuses a prompt. If it does not, no run was active and no code is recorded.
            let second = pin!(assistant.prompt(text).into_future());
            let code = match second.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Err(error)) => Some(error.code().to_owned()),
                Poll::Ready(Ok(_)) | Poll::Pending => None,
            };
            lock(seen).second_prompt = code;
        }
        Action::Reset { .. } => {}
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
