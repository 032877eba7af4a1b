use serde_json::{Value, json};

use super::*;

fn round_trip(value: &Value) -> Value {
    let conversation: Conversation =
        serde_json::from_value(json!({"version": 1, "messages": [value]})).unwrap();
    serde_json::to_value(conversation).unwrap()["messages"][0].take()
}

#[test]
fn unknown_words_and_fields_are_kept_and_written_back() {
    for message in [
        json!({"role": "moderator", "verdict": {"ok": true}}),
        json!({"role": "user", "content": [{"type": "hologram", "depth": 3}], "mood": "good"}),
        json!({"role": "user", "content": [{"type": "text", "text": "hi", "lang": "en"}, {"type": 5}, 7]}),
        json!({"role": "user", "content": [{"type": "image", "bucket": "s3://a"}, {"type": "image", "data": "?"}]}),
        json!({"role": "assistant", "content": [{"type": "tool_call", "id": "1", "name": "f", "args": {}, "async": true}],
               "stop_reason": "sunset", "latency": 3}),
        json!({"role": "assistant", "content": [{"type": "tool_call", "id": "1"}], "stop_reason": "stop"}),
        json!({"role": "tool_result", "call_id": "1", "tool": "f", "content": [], "outcome": "postponed",
               "is_error": true, "cache": "hit"}),
        json!({"role": "custom", "kind": "note", "data": [1], "pinned": true}),
    ] {
        assert_eq!(round_trip(&message), message);
    }
}

#[test]
fn a_part_is_readable_without_a_mark_and_data_of_a_later_version() {
    let stored = json!({"type": "text", "text": "hi", "cache": "24h", "provider_data": "new"});
    let mut part: Part = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(part.as_text(), Some("hi"));
    assert_eq!(serde_json::to_value(&part).unwrap(), stored);
    part = part.with_cache(CacheMark::Hour).with_provider_data(ProviderData::new("acme", 1));
    let text = serde_json::to_string(&part).unwrap();
    assert!(
        !text.contains("24h") && !text.contains("new"),
        "a field that is set replaces the unknown one: {text}"
    );
}

#[test]
fn the_fields_that_are_set_on_an_unknown_part_are_stored() {
    let mut part = Part::new(Content::Unknown(json!({"type": "hologram"})));
    part = part.with_cache(CacheMark::Hour).with_provider_data(ProviderData::new("acme", 1));
    part.extra.insert("depth".to_owned(), 3.into());
    let data = json!({"provider": "acme", "data": 1});
    let stored = json!({"type": "hologram", "cache": "1h", "provider_data": data, "depth": 3});
    assert_eq!(serde_json::to_value(&part).unwrap(), stored);
}

#[test]
fn errors_do_not_contain_the_values() {
    let secret = || json!("sk-secret");
    for (stored, words) in [
        (secret(), "a conversation is an object, found a string"),
        (json!([secret()]), "a message is an object with a `role`, found a string"),
        (json!({"version": secret(), "messages": []}), "a string as version"),
        (json!([{"role": "tool_result", "call_id": "1", "metadata": [secret()]}]), "found a list"),
    ] {
        let error = serde_json::from_value::<Conversation>(stored).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("sk-"), "{error}");
    }
}

#[test]
fn an_unknown_field_of_the_conversation_is_kept() {
    let stored = json!({"version": 1, "messages": [], "title": "Weather"});
    let conversation: Conversation = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(conversation).unwrap(), stored);
}

#[test]
fn changes_of_the_view_that_cannot_be_read_are_kept_until_there_are_others() {
    let messages = [Message::user("Hi"), Message::assistant("Hello!"), Message::user("Bye")];
    let mut stored = serde_json::to_value(Conversation::from_iter(messages)).unwrap();
    stored["view"] = json!([{"change": "of a later version"}]);
    let mut conversation: Conversation = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(&conversation).unwrap(), stored);
    let mut cleared = conversation.clone();
    cleared.clear();
    assert_eq!(cleared, Conversation::new());
    conversation.compact(2, "The user greeted.").unwrap();
    let text = serde_json::to_string(&conversation).unwrap();
    assert_eq!(text.matches(r#""view":"#).count(), 1, "{text}");
    assert_eq!(serde_json::from_str::<Conversation>(&text).unwrap(), conversation);
}

#[test]
fn content_is_read_leniently() {
    let read = |content: Value| {
        let message: Message = serde_json::from_value(json!({"role": "user", "content": content})).unwrap();
        message.content().to_vec()
    };
    assert_eq!(read(json!("hi")), [Part::text("hi")]);
    assert_eq!(read(json!(["a", {"type": "text", "text": "b"}, null])), [Part::text("a"), Part::text("b")]);
    assert_eq!(read(json!({"type": "text", "text": "b"})), [Part::text("b")]);
    assert_eq!(read(Value::Null), []);
    let absent: Message = serde_json::from_value(json!({"role": "assistant"})).unwrap();
    assert_eq!(absent.content(), []);
}

#[test]
fn older_forms_load_and_newer_ones_are_refused() {
    let list = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(serde_json::from_value::<Conversation>(list.clone()).unwrap().len(), 1);
    assert_eq!(serde_json::from_value::<Conversation>(json!({"messages": list})).unwrap().len(), 1);
    for (stored, words) in [
        (json!({"version": 2, "messages": "elsewhere"}), ["version 2", "up to 1"]),
        (json!({"version": "one", "messages": []}), ["a string as version", "up to 1"]),
        (json!({"version": 1}), ["missing field", "messages"]),
        (json!("hi"), ["object", "a string"]),
        (json!([{"role": "tool_result"}]), ["tool_result", "call_id"]),
        (json!([7]), ["role", "a number"]),
    ] {
        let error = serde_json::from_value::<Conversation>(stored).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn outcome_and_error_flag_follow_from_each_other() {
    let read = |extra: Value| {
        let mut stored = json!({"role": "tool_result", "call_id": "1"});
        stored.as_object_mut().unwrap().append(&mut extra.as_object().unwrap().clone());
        let message: Message = serde_json::from_value(stored).unwrap();
        let result = message.as_tool_result().unwrap();
        (result.outcome.clone(), result.is_error)
    };
    assert_eq!(read(json!({})), (OutcomeKind::Completed, false));
    assert_eq!(read(json!({"is_error": true})), (OutcomeKind::Failed, true));
    assert_eq!(read(json!({"outcome": "denied"})), (OutcomeKind::Denied, true));
}

#[test]
fn values_too_deep_for_a_reader_survive() {
    let deep = (0..120).fold(json!("core"), |inner, _| json!([inner]));
    let mut result = ToolResultMessage::new("1", "f", OutcomeKind::Completed);
    result.structured = Some(json!({"result": deep}));
    result.metadata.insert("deep".into(), deep.clone());
    let part = Part::opaque("acme", deep.clone()).with_provider_data(ProviderData::new("acme", deep.clone()));
    let conversation = Conversation::from_iter([
        Message::from(result),
        Message::user([part]),
        Message::assistant(Part::tool_call("1", "f", deep.to_string().as_str())),
        Message::Custom(CustomMessage::new("escape", json!({"$json": "[]"}))),
    ]);
    let stored = serde_json::to_string(&conversation).unwrap();
    assert_eq!(serde_json::from_str::<Conversation>(&stored).unwrap(), conversation);
}

#[test]
fn a_value_of_any_depth_is_read_as_it_was_or_refused() {
    let deep = |levels: usize| {
        let value = (1..levels).fold(json!([1]), |inner, level| {
            if level % 2 == 0 { json!([inner, "\u{e9}\""]) } else { json!({"b": level, "a": inner}) }
        });
        serde_json::to_string(&CustomMessage::new("deep", value.clone())).map(|stored| (value, stored))
    };
    for levels in [64, 127, 128, 129, 200, 256] {
        let (value, stored) = deep(levels).unwrap();
        let message: CustomMessage = serde_json::from_str(&stored).unwrap();
        assert_eq!(message.data, value, "{levels}");
        assert_eq!(serde_json::to_string(&message).unwrap(), stored, "{levels}: also in the same order");
    }
    assert!(deep(257).unwrap_err().to_string().contains("more than 256 levels"));
    for text in ["[1] x", "{", "[[1], \"]"] {
        let message: CustomMessage =
            serde_json::from_value(json!({"kind": "k", "data": {"$json": text}})).unwrap();
        assert_eq!(message.data, json!({"$json": text}), "not written by this library");
    }
}

#[test]
fn failed_replies_and_private_messages_are_not_sent() {
    let mut failed = AssistantMessage::from("half a");
    failed.stop_reason = StopReason::Error;
    let conversation = Conversation::from_iter([
        Message::user("q"),
        failed.into(),
        CustomMessage::new("note", 1).into(),
        CustomMessage::new("note", 1).with_for_model("heed this").into(),
        Message::Unknown(json!({"role": "moderator"})),
        Message::assistant("a"),
    ]);
    let texts: Vec<_> = HandOff::of(&conversation, Recipient::default())
        .messages()
        .iter()
        .map(|message| message.text())
        .collect();
    assert_eq!(texts, ["q", "heed this", "a"]);
}
