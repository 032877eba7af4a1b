//! Summaries that the provider writes within its replies.

use agent::message::{Conversation, Message, Part, Usage, UserMessage};
use agent::model::{ContextRules, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ScriptedReply, reply};
use agent::store::MemoryStore;
use agent::{AssistantBuilder, ScriptedModel, json};

use crate::assistant_support::assert_sound;
use crate::context_runs::{WINDOW, builder, is_summary, next_reply, rules, tokens};

fn claude() -> ModelInfo {
    ModelInfo::new("anthropic", "anthropic-messages", "claude-opus-5")
}

fn gpt() -> ModelInfo {
    ModelInfo::new("openai-responses", "openai-responses", "gpt-5.4")
}

fn block(info: &ModelInfo, text: &str) -> Part {
    let key = if info.provider == "anthropic" { "content" } else { "encrypted_content" };
    Part::opaque(info.provider.as_str(), json!({"type": "compaction", key: text}))
}

/// Reads pages, and compacts like the provider: the reply to a request beyond the trigger begins with a summary.
fn provider(info: &ModelInfo, pages: u32) -> ScriptedModel {
    let own = info.clone();
    let model = ScriptedModel::from_fn(move |request| {
        // It answers the newest message that is not a pinned one.
        let is_pinned = |message: &Message| matches!(message, Message::User(user) if user.is_pinned());
        let (mut read, all) = (request.clone(), &request.messages);
        read.messages = all.iter().filter(|message| !is_pinned(message)).cloned().collect();
        let request = &read;
        let next: ScriptedReply = next_reply(request, pages);
        match request.compact_at {
            Some(at) if tokens(request) >= at => {
                let mut parts = reply().part(block(&own, "All so far."));
                let last = request.messages.last().unwrap().text();
                let page: u32 =
                    last.strip_prefix("page ").and_then(|rest| rest.split_once(':')?.0.parse().ok()).unwrap();
                if page >= pages {
                    return parts.text(format!("I read {pages} pages."));
                }
                parts = parts.tool_call_with_id(
                    format!("call_{}", page + 1),
                    "read_page",
                    json!({"number": page + 1}),
                );
                parts.usage(Usage::new(tokens(request), 20))
            }
            _ => next,
        }
    });
    model.with_info(info.clone())
}

fn managed(model: &ScriptedModel) -> AssistantBuilder {
    // Nothing is cleared, so that the provider's summaries alone make room.
    builder(model.clone()).manage_context(rules().keep_results(1_000).compact_by_provider())
}

fn has_block(request: &ModelRequest) -> bool {
    request.messages.iter().any(|message| {
        message
            .as_assistant()
            .is_some_and(|reply| reply.content.iter().any(|part| json!(part)["type"] == "opaque"))
    })
}

#[tokio::test]
async fn requests_to_the_same_model_begin_with_the_newest_summary() {
    for info in [claude(), gpt()] {
        let (model, store) = (provider(&info, 60), MemoryStore::new());
        let assistant = managed(&model).store(store.clone()).session("book").await.unwrap();
        let output = assistant.prompt("Read 60 pages.").await.unwrap();
        assert_eq!(output.text(), "I read 60 pages.", "{info:?}");
        let asked = model.requests();
        assert!(!asked.iter().any(is_summary), "no model is asked for a summary");
        assert!(asked.iter().all(|request| request.compact_at == Some((WINDOW - 2_000) * 8 / 10)));
        assert!(asked.iter().all(|request| tokens(request) < WINDOW - 2_000));
        assert!(asked.iter().filter(|request| has_block(request)).count() > 20);
        for request in asked.iter().filter(|request| has_block(request)) {
            let first = request.messages[0].as_assistant().expect("the reply with the summary");
            assert_eq!(json!(first.content[0])["type"], "opaque");
        }
        // The conversation is complete, and the next process sends the same of it.
        assert_eq!(assistant.messages().len(), 1 + 2 * 60 + 1);
        assert_sound(&assistant);
        let next = provider(&info, 0);
        let again = managed(&next).store(store).session("book").await.unwrap();
        again.prompt("Thanks.").await.unwrap();
        assert!(has_block(&next.requests()[0]) && next.requests()[0].messages.len() < 60);
        // Another model is not sent the summary, and gets what the rules leave.
        let other = ScriptedModel::new(["Hello!"]);
        let whole = builder(other.clone()).conversation(assistant.messages()).build().unwrap();
        whole.prompt("Who are you?").await.unwrap();
        assert!(!has_block(&other.requests()[0]) && other.requests()[0].messages.len() > 120);
    }
}

#[tokio::test]
async fn pinned_messages_follow_the_summary_of_the_provider() {
    for info in [claude(), gpt()] {
        let model = provider(&info, 60);
        let assistant = managed(&model).build().unwrap();
        let contract = UserMessage::from("The contract.").pinned();
        assistant.prompt("Read 60 pages.").with_message(contract).await.unwrap();
        assistant.prompt("Thanks.").await.unwrap();
        for request in model.requests() {
            let pins = request.messages.iter().filter(|message| message.text() == "The contract.");
            assert_eq!(pins.count(), 1, "{request:?}");
            let sent: Conversation = request.messages.iter().cloned().collect();
            assert!(sent.is_sound(), "{sent:?}");
            if has_block(&request) {
                // Behind the results of the reply with the summary.
                let roles: Vec<_> = sent.iter().take(3).map(Message::role).collect();
                assert_eq!(roles, ["assistant", "tool_result", "user"]);
            }
        }
        // A process that begins anew sends the same.
        let sent = model.requests().pop().unwrap().messages;
        let all = assistant.messages();
        let before: Conversation = all.iter().take(all.len() - 1).cloned().collect();
        assert_eq!(info.hand_off(&before), sent);
    }
}

#[tokio::test]
async fn a_summary_without_content_changes_nothing() {
    for data in [
        json!({"type": "compaction", "content": null}),
        json!({"type": "compaction"}),
        json!({"type": "x", "content": "y"}),
    ] {
        let failed = Part::opaque("anthropic", data);
        let replies = [reply().part(failed).text("One."), reply().text("Two.")];
        let model = ScriptedModel::new(replies).with_info(claude());
        let assistant = managed(&model).build().unwrap();
        assistant.prompt("1").await.unwrap();
        assistant.prompt("2").await.unwrap();
        assert_eq!(model.requests()[1].messages.len(), 3);
    }
}

#[tokio::test]
async fn other_protocols_and_requests_that_are_too_long_get_a_summary_of_the_model() {
    let acme = ScriptedModel::from_fn(|request| next_reply(request, 60));
    let assistant = managed(&acme).build().unwrap();
    assistant.prompt("Read 60 pages.").await.unwrap();
    assert!(acme.requests().iter().all(|request| request.compact_at.is_none()));
    assert!(acme.requests().iter().any(is_summary));

    // The provider writes none although it was asked.
    let silent = ScriptedModel::from_fn(|request| {
        if !is_summary(request) && tokens(request) > 9_500 {
            return reply().error(ModelError::new(ModelErrorKind::ContextTooLong, "too long"));
        }
        next_reply(request, 40)
    });
    let silent = silent.with_info(claude());
    let assistant = managed(&silent).build().unwrap();
    assert_eq!(assistant.prompt("Read 40 pages.").await.unwrap().text(), "I read 40 pages.");
    assert!(silent.requests().iter().any(is_summary));
    assert_sound(&assistant);
}

#[tokio::test]
async fn a_trigger_of_the_application_stays_without_rules() {
    let model = ScriptedModel::new(["Hello!", "Hello!"]).with_info(claude());
    let assistant =
        builder(model.clone()).request(|request| request.with_compact_at(70_000)).build().unwrap();
    assistant.prompt("Hi").await.unwrap();
    let assistant = builder(model.clone())
        .request(|request| request.with_compact_at(70_000))
        .manage_context(ContextRules::new().window(200_000))
        .build()
        .unwrap();
    assistant.prompt("Hi").await.unwrap();
    assert!(model.requests().iter().all(|request| request.compact_at == Some(70_000)));
    assert_eq!(assistant.messages().iter().filter_map(Message::as_assistant).count(), 1);
}
