//! Tests with random conversations: a cut at every index, and changes in random order.

use serde_json::json;

use super::*;
use crate::message::{
    AssistantMessage, Content, CustomMessage, OutcomeKind, ProviderTool, ToolResultMessage, UserMessage,
};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Creates a random conversation with all that a cut could split: calls and results, paused replies and their continuations.
fn conversation(random: &mut Random) -> Conversation {
    let mut messages: Vec<Message> = Vec::new();
    for number in 0..8 + random.below(20) {
        match random.below(8) {
            0 => messages.push(UserMessage::from(format!("pinned {number}")).pinned().into()),
            1 | 2 => messages.push(Message::user(format!("user {number}"))),
            3 => messages.push(CustomMessage::new("note", json!(1)).with_for_model("note").into()),
            4 => {
                let mut paused = AssistantMessage::new([Part::new(Content::ProviderTool(Box::new(
                    ProviderTool::new("web"),
                )))]);
                paused.stop_reason = StopReason::Pause;
                messages.extend([paused.into(), Message::assistant("found")]);
            }
            5 => {
                let mut failed = AssistantMessage::new([Part::tool_call("lost", "f", "{}")]);
                failed.stop_reason = StopReason::Error;
                messages.push(failed.into());
            }
            _ => {
                let calls = 1 + random.below(3);
                let parts = (0..calls).map(|call| Part::tool_call(format!("call_{call}"), "search", "{}"));
                messages
                    .push(AssistantMessage::new(std::iter::once(Part::thinking("hm")).chain(parts)).into());
                messages.extend((0..calls).map(|call| {
                    let result =
                        ToolResultMessage::new(format!("call_{call}"), "search", OutcomeKind::Completed);
                    Message::from(result.with_content(format!("result {number} {call}")))
                }));
            }
        }
    }
    if random.below(2) == 0 {
        messages.push(AssistantMessage::new([Part::tool_call("open", "search", "{}")]).into());
    }
    messages.into_iter().collect()
}

/// Asserts that the messages are [sound](Conversation::is_sound) once the calls of the newest reply have results.
fn assert_can_be_sent(view: &ConversationView, case: &str) {
    let sent = view.messages();
    let mut whole: Conversation = sent.iter().cloned().collect();
    let newest = sent.last().and_then(|last| last.as_assistant());
    if let Some(open) = newest.filter(|reply| !reply.stop_reason.is_failure()) {
        for call in open.tool_calls() {
            whole.push(Message::from(ToolResultMessage::new(&call.id, &call.name, OutcomeKind::Completed)));
        }
    }
    assert!(whole.is_sound(), "{case}: {sent:?}");
    if view.summarized() > 0 {
        assert!(matches!(&*sent[0], Message::User(first) if first.is_summary()), "{case}");
        let mut roles = sent.iter().skip(1).map(|message| message.role());
        assert_ne!(roles.next(), Some("tool_result"), "{case}");
    }
}

#[test]
fn every_split_point_is_legal_and_sound_or_refused() {
    let mut random = Random(1);
    let (mut legal, mut refused) = (0, 0);
    for round in 0..150 {
        let conversation = conversation(&mut random);
        let messages = conversation.shared();
        for at in 0..=messages.len() + 1 {
            let mut view = ConversationView::of(&conversation);
            let case = format!("conversation {round} before message {at}");
            let head: Conversation = messages.iter().take(at).cloned().collect();
            let is_start = messages.get(at).is_some_and(|next| matches!(next.role(), "user" | "assistant"));
            let paused = head.last().and_then(Message::as_assistant);
            let is_paused = paused.is_some_and(|reply| reply.stop_reason == StopReason::Pause);
            let is_legal = at > 0 && is_start && head.is_sound() && !is_paused;
            if view.compact(at, "what happened").is_ok() {
                assert!(is_legal, "{case}");
                legal += 1;
                assert_can_be_sent(&view, &case);
                let pins = |list: &[Arc<Message>]| list.iter().filter(|message| is_pinned(message)).count();
                assert_eq!(pins(view.messages()), pins(messages), "{case}: pins stay");
                let newest = messages.iter().rfind(|message| message.role() == "user");
                let is_kept =
                    |user: &Arc<Message>| view.messages().iter().any(|sent| Arc::ptr_eq(sent, user));
                assert!(newest.is_none_or(is_kept), "{case}: the newest message of the user stays");
                let tail = &view.messages()[view.messages().len() - (messages.len() - at)..];
                assert!(tail.iter().zip(&messages[at..]).all(|(sent, own)| Arc::ptr_eq(sent, own)), "{case}");
            } else {
                assert!(!is_legal, "{case}");
                refused += 1;
                assert_eq!(view.messages(), &conversation.list(), "{case}: the view stays");
            }
        }
    }
    assert!(legal > 500 && refused > 500, "{legal} legal, {refused} refused");
}

#[test]
fn changes_in_any_order_lead_to_the_same_view_again() {
    let mut random = Random(2);
    for round in 0..200 {
        let whole = conversation(&mut random);
        let mut conversation = Conversation::new();
        let mut view = ConversationView::of(&conversation);
        let mut open = 0;
        for message in whole.shared() {
            conversation.push(message.clone());
            open = message.as_assistant().filter(|reply| !reply.stop_reason.is_failure()).map_or_else(
                || if message.as_tool_result().is_some() { open - 1 } else { 0 },
                |reply| reply.tool_calls().count(),
            );
            view.update(&conversation);
            if open > 0 || random.below(3) > 0 {
                continue;
            }
            let any = usize::try_from(random.below(conversation.len() as u64)).unwrap();
            let change = match random.below(4) {
                0 => view.clear([ClearedResult::new(any, "cleared")]).ok(),
                1 => view.shorten(any, 4).ok(),
                2 => view.lower_window(random.below(100_000)),
                _ => view.compact(any, "what happened, </summary> and more").ok(),
            };
            let case = format!("conversation {round}, {change:?}");
            assert_can_be_sent(&view, &case);
            let stored = serde_json::to_string(view.changes()).unwrap();
            let changes: Vec<ViewChange> = serde_json::from_str(&stored).unwrap();
            let again = ConversationView::fold(&conversation, changes);
            assert_eq!((again.messages(), again.window()), (view.messages(), view.window()), "{case}");
            assert_eq!(again.changes(), view.changes(), "{case}");
            assert_eq!(
                conversation.shared(),
                &whole.shared()[..conversation.len()],
                "the conversation stays"
            );
        }
    }
}

fn with_result(text: &str) -> Conversation {
    let call = AssistantMessage::new([Part::tool_call("1", "search", "{}")]);
    let result = ToolResultMessage::new("1", "search", OutcomeKind::Completed).with_content(text);
    [Message::user("Hi"), call.into(), result.into(), Message::assistant("Found."), Message::user("Bye")]
        .into_iter()
        .collect()
}

#[test]
fn a_change_of_other_messages_is_ignored() {
    let mut view = ConversationView::of(&with_result("one"));
    let clear = view.clear([ClearedResult::new(2, "gone")]).unwrap();
    let compact = view.compact(3, "done").unwrap();
    assert_eq!(
        view.messages().len(),
        4,
        "the summary, the question of the turn, its answer, the newest message"
    );

    let edited = ConversationView::fold(&with_result("two"), [clear.clone(), compact.clone()]);
    assert!(edited.changes().is_empty() && edited.messages().len() == 5);
    let twice = ConversationView::fold(&with_result("one"), [clear.clone(), clear.clone(), compact.clone()]);
    assert_eq!(twice.changes(), [clear.clone(), compact.clone()]);
    let late = ConversationView::fold(&with_result("one"), [compact, clear]);
    assert_eq!(late.changes().len(), 1, "generations count up");
}

#[test]
fn replaced_results_and_bad_indices_are_refused() {
    let conversation = with_result("a result");
    let mut view = ConversationView::of(&conversation);
    for index in [0, 1, 3, 4, 5, usize::MAX] {
        assert_eq!(view.clear([ClearedResult::new(index, "")]).unwrap_err(), ViewError::NotAResult { index });
        assert_eq!(view.shorten(index, 10).unwrap_err(), ViewError::NotAResult { index });
    }
    view.compact(3, "done").unwrap();
    assert_eq!(view.clear([ClearedResult::new(2, "")]).unwrap_err(), ViewError::NotAResult { index: 2 });
    assert!(view.compact(3, "again").is_err() && view.compact(5, "all").is_err());
    assert_eq!(view.generation(), 1);
}

#[test]
fn a_summary_cannot_leave_its_frame_and_texts_are_cut_at_characters() {
    let mut view = ConversationView::of(&with_result(&"é".repeat(50)));
    view.shorten(2, 13).unwrap();
    let text = view.messages()[2].text();
    assert_eq!(text, "ééé\n[88 of 100 bytes were removed here]\nééé");
    view.compact(3, "a</summary>b").unwrap();
    assert_eq!(view.messages()[0].text().matches("</summary>").count(), 1);
}

#[test]
fn a_cleared_result_is_not_shortened() {
    let conversation = with_result("a long result");
    let mut view = ConversationView::of(&conversation);
    view.shorten(2, 6).unwrap();
    view.clear([ClearedResult::new(2, "gone")]).unwrap();
    assert_eq!(view.shorten(2, 1_000).unwrap_err(), ViewError::NotAResult { index: 2 });
    assert_eq!(view.messages()[2].text(), "gone");
}

#[test]
fn a_failed_reply_does_not_hide_that_the_reply_before_it_is_paused() {
    let reply = |stop_reason: StopReason| {
        let mut reply = AssistantMessage::from("…");
        reply.stop_reason = stop_reason;
        Message::from(reply)
    };
    let (paused, failed) = (reply(StopReason::Pause), reply(StopReason::Error));
    let rest = [failed.clone(), failed, reply(StopReason::Stop), Message::user("Bye")];
    let conversation: Conversation = [Message::user("Hi"), paused].into_iter().chain(rest).collect();
    assert_eq!(conversation.cuts(), [1, 5]);
}

#[test]
fn a_stored_change_with_the_highest_number_ends_the_changes() {
    let conversation = with_result("one");
    let mut clear = ConversationView::of(&conversation).clear([ClearedResult::new(2, "gone")]).unwrap();
    clear.generation = u32::MAX;
    let mut view = ConversationView::fold(&conversation, [clear.clone()]);
    assert!(matches!(view.compact(3, "done"), Err(ViewError::OutOfRange { at: 3, .. })));
    let error = view.clear([ClearedResult::new(2, "")]).unwrap_err();
    let text = "the view cannot be changed before message 3: the last change has the highest number";
    assert_eq!(error.to_string(), text);
    assert_eq!(view.lower_window(1_000), None);
    assert_eq!(view.changes(), [clear]);
}

#[test]
fn the_error_of_an_impossible_cut_holds_for_every_message() {
    let note = || Message::from(CustomMessage::new("note", json!({})));
    let messages = [Message::user("Hi"), note(), Message::assistant("Hello."), Message::user("Bye")];
    let mut conversation = Conversation::from_iter(messages);
    let error = conversation.compact(1, "done").unwrap_err();
    assert_eq!(error, ViewError::Split { at: 1 });
    assert_eq!(
        error.to_string(),
        "the view cannot be cut before message 1: cut before a message of the user or a reply, \
         neither between a call and its result nor within a continued reply"
    );
}

#[test]
fn a_window_holds_for_its_model_and_one_without_a_model_for_all() {
    let mut view = ConversationView::of(&with_result("one"));
    let change = view.lower_window_of("acme/small", 8_000).unwrap();
    assert_eq!((view.window_of("acme/small"), view.window_of("acme/large")), (Some(8_000), None));
    assert_eq!(view.lower_window_of("acme/small", 9_000), None);
    let mut stored = serde_json::to_value(change).unwrap();
    assert_eq!(stored.as_object_mut().unwrap().remove("model"), Some(json!("acme/small")));
    let old = ConversationView::fold(&with_result("one"), [serde_json::from_value(stored).unwrap()]);
    assert_eq!(old.window_of("acme/large"), Some(8_000));
}
