//! Every conversation survives its stored form.

use agent::message::{
    AssistantMessage, Content, Conversation, Cost, CustomMessage, Media, Message, OutcomeKind, Part,
    ProviderData, ProviderTool, Resource, ResourceLink, StopReason, ToolArguments, ToolCall,
    ToolResultMessage, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

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
    (source, prop::option::of(".{0,8}")).prop_map(|(mut media, name)| {
        media.name = name;
        media
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        ".{0,12}".prop_map(Content::Text),
        ".{0,12}".prop_map(|text| Part::thinking(text).content),
        Just(Part::redacted_thinking(ProviderData::new("acme", 1)).content),
        media().prop_map(Content::Image),
        media().prop_map(Content::Document),
        media().prop_map(Content::Audio),
        (".{0,8}", ".{0,8}").prop_map(|(uri, text)| Content::Resource(Resource::text(uri, text))),
        (prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|bytes| Content::Resource(Resource::data("file:///a", bytes).with_mime_type("a/b"))),
        (".{0,8}", prop::option::of(any::<u64>())).prop_map(|(uri, size)| {
            let mut link = ResourceLink::new(uri);
            link.size = size;
            Content::ResourceLink(link)
        }),
        ("[a-z]{0,4}", "[a-z_]{0,8}", json_value())
            .prop_map(|(id, name, args)| Content::ToolCall(ToolCall::new(id, name, args))),
        ("[a-z]{0,4}", "[ -~]{0,12}").prop_map(|(id, text)| Content::ToolCall(ToolCall::new(
            id,
            "raw",
            text.trim()
        ))),
        (prop::option::of("[a-z]{0,4}"), prop::option::of(json_value()), any::<bool>()).prop_map(
            |(id, output, is_error)| {
                let mut tool = ProviderTool::new("web_search");
                (tool.id, tool.output, tool.is_error) = (id, output, is_error);
                Content::ProviderTool(Box::new(tool))
            }
        ),
        json_value().prop_map(|value| Content::Opaque(ProviderData::new("acme", value))),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let data = prop::option::of(json_value().prop_map(|data| ProviderData::new("acme", data)));
    let extra = prop::collection::btree_map("x_[a-z]{1,4}", json_value(), 0..3);
    (content(), data, extra).prop_map(|(content, provider_data, extra)| {
        let mut part = Part::new(content);
        (part.provider_data, part.extra) = (provider_data.map(Box::new), extra.into_iter().collect());
        part
    })
}

fn message() -> impl Strategy<Value = Message> {
    let parts = || prop::collection::vec(part(), 0..4);
    let stop = prop_oneof!["stop", "tool_use", "max_tokens", "pause", "error", "aborted", "[a-z]{3,6}"];
    let outcome = prop_oneof!["completed", "retry", "failed", "denied", "interrupted", "[a-z]{3,6}"];
    prop_oneof![
        parts().prop_map(Message::user),
        (parts(), stop, any::<[u32; 6]>(), prop::option::of(json_value())).prop_map(
            |(content, stop, n, raw)| {
                let mut message = AssistantMessage::new(content);
                message.stop_reason = StopReason::from(stop.as_str());
                message.provider = "acme".into();
                message.usage = Usage::new(n[0].into(), n[1].into());
                (message.usage.cache_read, message.usage.raw) = (n[2].into(), raw.map(Box::new));
                let mut cost = Cost::default();
                cost.total = f64::from(n[3]) / 7.0;
                message.usage.cost = Some(cost);
                message.response_id = Some(format!("r{}", n[4]));
                message.into()
            }
        ),
        (parts(), outcome, prop::option::of(json_value()), json_value(), any::<bool>()).prop_map(
            |(content, outcome, structured, meta, is_error)| {
                let mut message = ToolResultMessage::new("1", "f", OutcomeKind::from(outcome.as_str()))
                    .with_content(content)
                    .with_structured(structured);
                message.is_error = is_error;
                message.metadata.insert("$json".into(), meta);
                message.into()
            }
        ),
        (json_value(), prop::option::of(parts())).prop_map(|(data, for_model)| {
            let mut message = CustomMessage::new("note", data);
            message.for_model = for_model;
            message.into()
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
        if args.value().is_some() {
            prop_assert_eq!(again.value(), args.value());
        } else {
            prop_assert_eq!(again.text(), args.text());
        }
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), form);
    }
}
