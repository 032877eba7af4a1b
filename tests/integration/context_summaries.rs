//! Summaries of conversations that change meanwhile, that begin unusually, or whose next reply needs more room.

use std::sync::{Arc, OnceLock};

use agent::message::{Conversation, Message, Part, StopReason};
use agent::model::{ModelRequest, ScriptedReply, reply};
use agent::{Assistant, RunError, ScriptedModel};

use crate::context_runs::{builder, chat, is_summary, rules};

fn answer(request: &ModelRequest) -> ScriptedReply {
    let record = r#"{"goal": "Know why", "open": ["Why"]}"#;
    reply().text(if is_summary(request) { record } else { "Because." })
}

#[tokio::test]
async fn a_first_message_of_equal_lines_or_dense_text_does_not_spoil_a_summary() {
    for first in ["the same row\n".repeat(9), "天気".repeat(1_500)] {
        let model = ScriptedModel::from_fn(answer);
        let begin = [Message::user(first), Message::assistant("I see.")].map(Arc::new);
        let conversation: Conversation =
            begin.into_iter().chain(chat(600, 12).shared().iter().cloned()).collect();
        let assistant = builder(model.clone()).conversation(conversation).manage_context(rules());
        assistant.build().unwrap().prompt("And now?").await.unwrap();
        let requests = model.requests();
        assert_eq!(requests.len(), 2, "the first summary is accepted");
        assert!(requests[1].messages[0].text().contains("Goal: Know why"));
    }
}

#[tokio::test]
async fn a_summary_of_a_conversation_that_was_reset_meanwhile_is_an_error() {
    let resets = Arc::new(OnceLock::<Assistant>::new());
    let assistant = resets.clone();
    let model = ScriptedModel::from_async_fn(move |request| {
        let assistant = assistant.clone();
        async move {
            if let Some(assistant) = assistant.get() {
                assistant.reset().await;
            }
            answer(&request)
        }
    });
    let assistant = builder(model).conversation(chat(600, 8)).manage_context(rules()).build().unwrap();
    resets.set(assistant.clone()).unwrap();
    let error = assistant.compact(None).await.unwrap_err();
    assert!(matches!(error, RunError::Context { .. }), "{error}");
    assert!(error.to_string().contains("changed while the summary was written"), "{error}");
    assert!(assistant.messages().view_changes().is_empty());
}

#[tokio::test]
async fn more_room_for_the_reply_leaves_less_for_the_conversation() {
    let model = ScriptedModel::from_fn(|request| {
        if is_summary(request) || request.max_tokens > Some(2_000) {
            return answer(request);
        }
        reply().part(Part::thinking("Hm")).stop_reason(StopReason::MaxTokens)
    });
    let assistant = builder(model.clone()).conversation(chat(600, 8)).manage_context(rules());
    let assistant = assistant.continue_length(1).build().unwrap();
    assert_eq!(assistant.prompt("And now?").await.unwrap().text(), "Because.");
    let requests = model.requests();
    assert_eq!(requests.iter().map(is_summary).collect::<Vec<_>>(), [false, true, false]);
    assert!(requests[2].messages[0].text().contains("Goal: Know why"));
}
