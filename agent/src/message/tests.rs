use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn round_trip(value: Value) -> Value {
    let conversation: Conversation = serde_json::from_value(json!({"version": 1, "messages": [value]})).unwrap();
    serde_json::to_value(conversation).unwrap()["messages"][0].take()
}

#[test]
fn what_is_unknown_is_kept_and_written_back() {
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
        assert_eq!(round_trip(message.clone()), message);
    }
}

#[test]
fn an_unknown_field_of_the_conversation_is_kept() {
    let stored = json!({"version": 1, "messages": [], "title": "Weather"});
    let conversation: Conversation = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(conversation).unwrap(), stored);
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
fn older_forms_load_and_newer_ones_say_so() {
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
fn outcome_and_error_flag_tell_each_other() {
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
    let mut result = ToolResultMessage::new("1", "f", OutcomeKind::Completed, "ok");
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
    let texts: Vec<_> = conversation.for_request().iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["q", "heed this", "a"]);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z$]{1,5}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn media() -> impl Strategy<Value = Media> {
    let source = prop_oneof![
        (prop::collection::vec(any::<u8>(), 0..20)).prop_map(|bytes| Media::data(bytes, "image/png")),
        ".{0,8}".prop_map(Media::url),
        ".{0,8}".prop_map(|id| Media::file_id(id).with_mime_type("audio/wav")),
    ];
    (source, prop::option::of(".{0,8}")).prop_map(|(media, name)| Media { name, ..media })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        ".{0,12}".prop_map(Content::Text),
        (".{0,12}", any::<bool>()).prop_map(|(text, redacted)| Content::Thinking { text, redacted }),
        media().prop_map(Content::Image),
        media().prop_map(Content::Document),
        media().prop_map(Content::Audio),
        (".{0,8}", ".{0,8}").prop_map(|(uri, text)| Content::Resource(Resource::text(uri, text))),
        (prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|bytes| Content::Resource(Resource::data("file:///a", bytes).with_mime_type("a/b"))),
        (".{0,8}", prop::option::of(any::<u64>()))
            .prop_map(|(uri, size)| Content::ResourceLink(ResourceLink { size, ..ResourceLink::new(uri) })),
        ("[a-z]{0,4}", "[a-z_]{0,8}", json_value())
            .prop_map(|(id, name, args)| Content::ToolCall(ToolCall::new(id, name, args))),
        ("[a-z]{0,4}", "[ -~]{0,12}")
            .prop_map(|(id, text)| Content::ToolCall(ToolCall::new(id, "raw", text.trim()))),
        (prop::option::of("[a-z]{0,4}"), prop::option::of(json_value()), any::<bool>()).prop_map(
            |(id, output, is_error)| {
                let tool = ProviderTool { id, output, is_error, ..ProviderTool::new("web_search") };
                Content::ProviderTool(tool)
            }
        ),
        json_value().prop_map(|value| Content::Opaque(Opaque::new("acme", value))),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let data = prop::option::of(json_value().prop_map(|data| ProviderData::new("acme", data)));
    let extra = prop::collection::btree_map("x_[a-z]{1,4}", json_value(), 0..3);
    (content(), data, extra).prop_map(|(content, provider_data, extra)| Part {
        content,
        provider_data,
        extra: extra.into_iter().collect(),
    })
}

fn message() -> impl Strategy<Value = Message> {
    let parts = || prop::collection::vec(part(), 0..4);
    let stop = prop_oneof!["stop", "tool_use", "max_tokens", "pause", "error", "aborted", "[a-z]{3,6}"];
    let outcome = prop_oneof!["completed", "retry", "failed", "denied", "interrupted", "[a-z]{3,6}"];
    prop_oneof![
        parts().prop_map(Message::user),
        (parts(), stop, any::<[u32; 6]>(), prop::option::of(json_value())).prop_map(|(content, stop, n, raw)| {
            let mut message = AssistantMessage::new(content);
            message.stop_reason = StopReason::from(stop.as_str());
            message.provider = "acme".into();
            message.usage = Usage { cache_read: n[2].into(), raw, ..Usage::new(n[0].into(), n[1].into()) };
            message.usage.cost = Some(Cost { total: f64::from(n[3]) / 7.0, ..Cost::default() });
            message.response_id = Some(format!("r{}", n[4]));
            message.into()
        }),
        (parts(), outcome, prop::option::of(json_value()), json_value(), any::<bool>()).prop_map(
            |(content, outcome, structured, meta, is_error)| {
                let mut message = ToolResultMessage::new("1", "f", OutcomeKind::from(outcome.as_str()), content);
                message.structured = structured;
                message.is_error = is_error;
                message.metadata.insert("$json".into(), meta);
                message.into()
            }
        ),
        (json_value(), prop::option::of(parts())).prop_map(|(data, for_model)| {
            Message::Custom(CustomMessage { for_model, ..CustomMessage::new("note", data) })
        }),
        json_value().prop_map(|value| Message::Unknown(json!({"role": "moderator", "value": value}))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_conversation_survives_its_json(messages in prop::collection::vec(message(), 0..6)) {
        let conversation = Conversation::from_iter(messages);
        let text = serde_json::to_string(&conversation).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Conversation>(&text).unwrap(), &conversation);
        let value = serde_json::to_value(&conversation).unwrap();
        prop_assert_eq!(&serde_json::from_value::<Conversation>(value).unwrap(), &conversation);
    }

    #[test]
    fn any_json_object_of_an_unknown_type_is_kept(value in json_value()) {
        let part: Part = serde_json::from_value(json!({"type": "hologram", "value": value})).unwrap();
        prop_assert_eq!(serde_json::to_value(&part).unwrap(), json!({"type": "hologram", "value": value}));
    }

    #[test]
    fn any_content_at_all_can_be_read(value in json_value()) {
        let message: Result<Message, _> = serde_json::from_value(json!({"role": "assistant", "content": value}));
        prop_assert!(message.is_ok());
    }

    #[test]
    fn argument_texts_survive_but_for_space(text in "[\\[\\]{}:,\"0-9a-z\\\\ .eE+-]{0,16}") {
        let args = ToolArguments::from(text.as_str());
        let form = serde_json::to_string(&args).unwrap();
        let again: ToolArguments = serde_json::from_str(&form).unwrap();
        match args.value() {
            Some(value) => prop_assert_eq!(again.value(), Some(value)),
            None => prop_assert_eq!(again.text(), args.text()),
        }
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), form);
    }
}
