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
        (json!({"version": "one", "messages": []}), ["\"one\"", "up to 1"]),
        (json!({"version": 1}), ["missing field", "messages"]),
        (json!("hi"), ["object", "hi"]),
        (json!([{"role": "tool_result"}]), ["tool_result", "call_id"]),
        (json!([7]), ["role", "7"]),
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
