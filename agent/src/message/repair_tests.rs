//! Tests of repairs and of hand-offs between providers.

use serde_json::json;

use super::*;

fn call(id: &str) -> Part {
    Part::tool_call(id, format!("t_{id}"), "{}")
}

fn asks<const N: usize>(ids: [&str; N]) -> Message {
    AssistantMessage::new(ids.map(call)).into()
}

fn result(id: &str, text: &str) -> Message {
    ToolResultMessage::new(id, "t", OutcomeKind::Completed).with_content(text).into()
}

/// Repairs a conversation. Returns its messages, each as one word, and the repairs.
fn repaired<const N: usize>(messages: [Message; N]) -> (String, Vec<String>) {
    let mut conversation = Conversation::from_iter(messages);
    let was_sound = conversation.is_sound();
    let repairs: Vec<_> = conversation.repair();
    assert!(conversation.is_sound(), "{conversation:?}");
    assert_eq!(was_sound, repairs.is_empty());
    assert!(conversation.repair().is_empty(), "once is enough");
    let word = |message: &Message| match message {
        Message::Assistant(reply) => {
            format!("[{}]", reply.tool_calls().map(|call| &*call.id).collect::<Vec<_>>().join(" "))
        }
        Message::ToolResult(result) => {
            let text = result.code.clone().unwrap_or_else(|| result.text());
            format!("{}={text}", result.call_id)
        }
        other => other.text(),
    };
    (conversation.iter().map(word).collect::<Vec<_>>().join(" "), repairs)
}

#[test]
fn a_sound_history_is_left_alone() {
    let (words, repairs) = repaired([
        Message::user("u"),
        asks(["a", "b"]),
        result("a", "1"),
        result("b", "2"),
        asks(["a"]),
        result("a", "3"),
        Message::assistant("done"),
    ]);
    assert_eq!(words, "u [a b] a=1 b=2 [a] a=3 []");
    assert_eq!(repairs, [""; 0]);
}

#[test]
fn calls_without_results_get_one() {
    let (words, repairs) =
        repaired([asks(["a", "b", "c"]), result("b", "2"), Message::user("u"), asks(["d"])]);
    assert_eq!(words, "[a b c] a=lost b=2 c=lost u [d] d=lost");
    assert_eq!(repairs.len(), 3);
    assert!(repairs[0].contains("`a` of `t_a`"), "{repairs:?}");
}

#[test]
fn results_without_calls_and_second_results_are_dropped() {
    let (words, repairs) =
        repaired([result("x", "0"), asks(["a"]), result("a", "1"), result("a", "2"), result("y", "3")]);
    assert_eq!(words, "[a] a=1");
    assert_eq!(repairs.len(), 3);
    assert_eq!(repairs.iter().filter(|text| text.contains("a second result for `a`")).count(), 1);
}

#[test]
fn results_out_of_place_are_moved() {
    let (words, repairs) = repaired([
        asks(["a", "b"]),
        result("b", "2"),
        Message::user("u"),
        result("a", "1"),
        result("c", "3"),
        asks(["c"]),
    ]);
    assert_eq!(words, "[a b] a=1 b=2 u [c] c=3");
    let moved = |id: &str| repairs.iter().any(|text| text.contains(&format!("`{id}` was out of place")));
    assert!(moved("a") && moved("c"), "{repairs:?}");
}

#[test]
fn double_ids_are_renamed_with_their_results() {
    let (words, repairs) =
        repaired([asks(["a", "a", "a_2", "a"]), result("a", "1"), result("a", "2"), result("a_2", "3")]);
    assert_eq!(words, "[a a_3 a_2 a_4] a=1 a_3=2 a_2=3 a_4=lost");
    assert_eq!(repairs.len(), 3, "{repairs:?}");
}

#[test]
fn a_result_goes_to_the_nearest_call_before_it() {
    let (words, repairs) =
        repaired([asks(["a"]), Message::user("u"), asks(["a"]), result("a", "2"), result("a", "3")]);
    assert_eq!(words, "[a] a=lost u [a] a=2");
    assert_eq!(repairs.len(), 2);
}

#[test]
fn of_two_results_before_their_call_the_first_counts() {
    let (words, repairs) = repaired([result("a", "1"), result("a", "2"), asks(["a"])]);
    assert_eq!(words, "[a] a=1");
    assert_eq!(repairs.len(), 2, "{repairs:?}");
    let (words, _) = repaired([result("a", "1"), result("a", "2"), result("a", "3"), asks(["a", "a"])]);
    assert_eq!(words, "[a a_2] a=1 a_2=2");
    // A result before the call is used only if no result follows the call.
    let (words, _) = repaired([result("a", "0"), asks(["a"]), result("a", "1")]);
    assert_eq!(words, "[a] a=1");
}

#[test]
fn calls_of_failed_replies_need_no_results() {
    let mut failed = AssistantMessage::new([call("a")]);
    failed.stop_reason = StopReason::Error;
    let (words, repairs) = repaired([failed.clone().into(), Message::user("u")]);
    assert_eq!((words.as_str(), repairs.len()), ("[a] u", 0));
    let (words, repairs) = repaired([failed.into(), result("a", "1")]);
    assert_eq!((words.as_str(), repairs.len()), ("[a]", 1));
}

#[test]
fn ten_thousand_calls_of_one_id_are_repaired_in_no_time() {
    let mut messages = vec![Message::from(AssistantMessage::new((0..10_000).map(|_| call("a"))))];
    messages.extend((0..20_000).map(|_| result("a", "1")));
    let begun = std::time::Instant::now();
    let mut conversation = Conversation::from_iter(messages);
    assert_eq!(conversation.repair().len(), 9_999 + 10_000);
    assert!(conversation.is_sound());
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}

fn reply(provider: &str, parts: Vec<Part>) -> AssistantMessage {
    AssistantMessage { provider: provider.into(), api: "chat".into(), model: "m".into(), ..parts.into() }
}

fn sent(messages: impl IntoIterator<Item = Message>, to: Recipient) -> Vec<Message> {
    let conversation = Conversation::from_iter(messages);
    HandOff::of(&conversation, to).messages().iter().map(|message| Message::clone(message)).collect()
}

#[test]
fn thinking_is_sent_back_to_its_model_only() {
    let signed = Part::thinking("hm").with_provider_data(ProviderData::new("acme", json!({"sig": 1})));
    let history = [
        reply("acme", vec![signed.clone(), Part::text("hi")]).into(),
        reply("acme", vec![Part::thinking("only")]).into(),
        Message::user("u"),
    ];
    let own = sent(history.clone(), Recipient::new("acme", "chat", "m"));
    assert_eq!(own, history);
    for other in [Recipient::new("acme", "chat", "m2"), Recipient::new("other", "chat", "m")] {
        let foreign = sent(history.clone(), other);
        assert_eq!(foreign.len(), 2);
        assert_eq!(foreign[0].content(), [Part::text("hi")]);
    }
}

#[test]
fn provider_data_of_calls_is_sent_back_to_the_provider() {
    let data = ProviderData::new("acme", "item-1");
    let history = [
        reply("acme", vec![call("a").with_provider_data(data.clone()), Part::opaque("acme", 1)]).into(),
        result("a", "1"),
    ];
    let same = sent(history.clone(), Recipient::new("acme", "chat", "m2"));
    assert_eq!(same[0].content()[0].provider_data.as_deref(), Some(&data));
    assert_eq!(same[0].content().len(), 2);
    let other = sent(history, Recipient::new("other", "chat", "m"));
    assert_eq!(other[0].content(), [call("a")]);
}

#[test]
fn ids_are_mapped_to_what_every_provider_takes_and_are_unique() {
    let long = "x".repeat(100);
    let history = [
        asks(["a:1", "a.1", ""]),
        result("a:1", "1"),
        result("a.1", "2"),
        result("", "3"),
        asks(["a_1", &long]),
        result("a_1", "4"),
        result(&long, "5"),
    ];
    let sent = sent(history, Recipient::default());
    let mut calls: Vec<String> = Vec::new();
    let mut results = Vec::new();
    for message in &sent {
        calls.extend(message.content().iter().filter_map(|part| Some(part.as_tool_call()?.id.clone())));
        results.extend(message.as_tool_result().map(|result| result.call_id.clone()));
    }
    assert_eq!(calls, results);
    let unique: std::collections::HashSet<_> = calls.iter().collect();
    assert_eq!(unique.len(), 5, "{calls:?}");
    let fits = |id: &String| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    assert!(calls.iter().all(fits), "{calls:?}");
    assert_eq!(calls[0], "a_1", "the first one of a name keeps it");
}

#[test]
fn failed_replies_pictures_and_broken_arguments() {
    let mut failed = reply("acme", vec![Part::text("half")]);
    failed.stop_reason = StopReason::Aborted;
    let history = [
        Message::user(vec![Part::text("look"), Part::image(b"png", "image/png")]),
        failed.into(),
        AssistantMessage::new([Part::tool_call("a", "t", "{\"bro")]).into(),
        result("a", "1"),
    ];
    let with = sent(history.clone(), Recipient::new("acme", "chat", "m"));
    assert_eq!(with.len(), 3);
    assert_eq!(with[0], history[0]);
    assert_eq!(with[1].content()[0].as_tool_call().unwrap().args.text(), "{}");
    let without = sent(history, Recipient::default());
    assert_eq!(without[0].text(), "look[a picture was here (image/png, 3 bytes); this model takes none]");
}

#[test]
fn a_hand_off_continues_where_it_stopped() {
    let mut conversation = Conversation::from_iter([Message::user("1")]);
    let mut hand_off = HandOff::of(&conversation, Recipient::default());
    conversation.push(Message::assistant("2"));
    hand_off.update(conversation.shared());
    assert_eq!(hand_off.messages().len(), 2);
    assert!(std::sync::Arc::ptr_eq(&hand_off.messages()[0], &conversation.shared()[0]), "shared, not copied");
    hand_off.update(conversation.shared());
    assert_eq!(hand_off.messages().len(), 2);
    let other = Conversation::from_iter([Message::user("x"), Message::user("y"), Message::user("z")]);
    hand_off.update(other.shared());
    assert_eq!(hand_off.messages().iter().map(|message| message.text()).collect::<String>(), "xyz");
    hand_off.update(&[]);
    assert!(hand_off.messages().is_empty());
}

#[test]
fn tools_of_a_provider_are_described_to_others() {
    let mut search = ProviderTool::new("web_search");
    search.input = Some(json!({"query": "rust"}));
    search.output = Some(json!([{"title": "Rust", "encrypted_content": "E+/=", "page": "x".repeat(600)}]));
    let mut failed = ProviderTool::new("code_execution");
    (failed.output, failed.is_error) = (Some(json!("no such file ".repeat(400))), true);
    let parts = [search, failed].map(|tool| Part::new(Content::ProviderTool(Box::new(tool))));
    let history = [reply("acme", parts.to_vec()).into(), Message::user("u")];
    let own = sent(history.clone(), Recipient::new("acme", "chat", "m"));
    assert_eq!(own, history);
    let foreign = sent(history, Recipient::new("other", "chat", "m"));
    let [Some(searched), Some(failed)] =
        [0, 1].map(|at| foreign[0].content()[at].as_text().map(str::to_owned))
    else {
        panic!("{foreign:?}")
    };
    assert_eq!(
        searched,
        r#"[`web_search` was run at the provider with {"query":"rust"}; it answered: [{"title":"Rust","page":"(600 characters)"}]]"#
    );
    assert!(
        failed.starts_with("[`code_execution` was run at the provider; it failed: no such file"),
        "{failed}"
    );
    assert!(failed.len() < 4200 && failed.ends_with("…]"));
}
