//! Replies that end because the window does: the conversation is compacted, and the request is made once more.

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::{Conversation, Message, StopReason, Usage};
use agent::model::{ModelRequest, ScriptedReply, reply};
use agent::store::MemoryStore;
use agent::testing::EventLog;
use agent::{RunError, RunStop, ScriptedModel, json};

use crate::assistant_support::assert_sound;
use crate::context_runs::{builder, is_summary, next_reply, rules, tokens};

/// Begins with a text and a call, and ends where the window does.
fn half(request: &ModelRequest) -> ScriptedReply {
    let call = reply().text("I go on").tool_call_with_id("half", "read_page", json!({"number": 1}));
    call.stop_reason(StopReason::ContextFull).usage(Usage::new(tokens(request), 5))
}

/// Reads pages in a window that is smaller than the rules say.
fn small_window(limit: u64, pages: u32) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| {
        if !is_summary(request) && tokens(request) > limit {
            half(request)
        } else {
            next_reply(request, pages)
        }
    })
}

#[tokio::test]
async fn the_request_is_made_again_with_fewer_messages_and_the_half_reply_counts_for_nothing_but_its_tokens()
{
    let (model, log, store) = (small_window(3_000, 12), EventLog::new(), MemoryStore::new());
    let open = |model: &ScriptedModel| builder(model.clone()).manage_context(rules()).store(store.clone());
    let assistant = open(&model).on_event(log.listener()).session("book").await.unwrap();
    let output = assistant.prompt("Read 12 pages.").await.unwrap();
    assert_eq!((output.text().as_str(), output.stop), ("I read 12 pages.", RunStop::Completed));
    let failed: Vec<_> = assistant
        .messages()
        .iter()
        .filter_map(Message::as_assistant)
        .filter(|reply| reply.stop_reason.is_failure())
        .map(|reply| reply.error.clone().unwrap_or_default())
        .collect();
    assert!(!failed.is_empty());
    let expected = "the reply was cut before it was complete, so the request was made again";
    assert!(failed.iter().all(|error| error == expected), "{failed:?}");
    assert_sound(&assistant);
    let asked = model.requests();
    assert!(
        asked
            .iter()
            .all(|request| request.messages.iter().all(|message| !message.text().ends_with("I go on")))
    );
    // Every message that began has ended, also the half one, and its tokens are counted.
    let kinds = |name: &str| log.events().iter().filter(|event| json!(event)["type"] == name).count();
    assert_eq!(kinds("message_start"), kinds("message_end"));
    let input: u64 = asked.iter().map(tokens).sum();
    assert_eq!(output.usage.input, input);
    assert_eq!(kinds("tool_execution_start"), 12, "the call of the half reply did not run");

    // What is stored is the same conversation, and the next process continues it.
    let next = small_window(3_000, 0);
    let again = open(&next).session("book").await.unwrap();
    assert_eq!(again.messages().len(), assistant.messages().len());
    again.prompt("Thanks.").await.unwrap();
}

#[tokio::test]
async fn a_window_that_is_full_again_is_an_error_of_the_context() {
    let model =
        ScriptedModel::from_fn(
            |request| {
                if is_summary(request) { next_reply(request, 1) } else { half(request) }
            },
        );
    let long: Conversation = (0..10)
        .flat_map(|turn| {
            [Message::user(format!("{turn}: {}", "why ".repeat(300))), Message::assistant("Because.")]
        })
        .collect();
    let assistant = builder(model.clone()).manage_context(rules()).conversation(long).build().unwrap();
    let error = assistant.prompt("And now?").await.unwrap_err();
    let RunError::Context(error) = error else { panic!("{error}") };
    assert!(error.to_string().contains("the context window was full"), "{error}");
    assert_sound(&assistant);
}

#[tokio::test]
async fn without_management_the_reply_is_one_that_was_cut() {
    let model = ScriptedModel::from_fn(|request| match request.messages.last() {
        Some(last) if last.role() == "tool_result" => reply().text("Once more."),
        _ => half(request),
    });
    let assistant = builder(model.clone()).build().unwrap();
    let output = assistant.prompt("Read.").await.unwrap();
    assert_eq!(output.text(), "Once more.");
    let result = assistant.messages().iter().find_map(|message| message.as_tool_result().cloned()).unwrap();
    assert_eq!(result.code.as_deref(), Some("truncated"));
}

#[tokio::test]
async fn a_durable_run_makes_the_request_again_in_a_step_of_its_own() {
    let model = small_window(3_000, 12);
    let assistant = builder(model.clone()).manage_context(rules()).build().unwrap();
    let run = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Read."));
    let outcome = run.play().await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.stop), ("I read 12 pages.", RunStop::Completed));
    assert!(run.steps().iter().any(|step| step.ends_with("/again")), "{:?}", run.steps());
}
