//! Views of a conversation at every possible cut, encoded for each protocol.

use agent::message::{
    AssistantMessage, Conversation, Message, OutcomeKind, Part, ProviderData, ToolResultMessage, UserMessage,
};
use agent::model::{ModelInfo, ModelRequest};
use agent::provider::protocol;

const PROTOCOLS: [(&str, &str); 4] = [
    ("anthropic", "anthropic"),
    ("openai", "openai-chat"),
    ("openai", "openai-responses"),
    ("gemini", "gemini"),
];

fn conversation() -> Conversation {
    let mut conversation =
        Conversation::from_iter([Message::from(UserMessage::from("The contract.").pinned())]);
    for turn in 0..6 {
        conversation.push(Message::user(format!("Question {turn}")));
        let thinking = Part::thinking("hm").with_provider_data(ProviderData::new("anthropic", "signature"));
        let calls =
            (0..=(turn % 3)).map(|call| Part::tool_call(format!("call_{turn}_{call}"), "search", "{}"));
        let mut reply = AssistantMessage::new(std::iter::once(thinking).chain(calls));
        (reply.provider, reply.api, reply.model) =
            ("anthropic".into(), "anthropic-messages".into(), "large".into());
        conversation.push(Message::from(reply));
        for call in 0..=(turn % 3) {
            let id = format!("call_{turn}_{call}");
            let result = ToolResultMessage::new(id, "search", OutcomeKind::Completed).with_content("found");
            conversation.push(Message::from(result));
        }
        conversation.push(Message::assistant(format!("Answer {turn}")));
    }
    conversation.push(Message::user("The last question"));
    conversation
}

#[test]
fn every_view_encodes_for_every_protocol() {
    let conversation = conversation();
    let cuts = conversation.cuts();
    assert!(cuts.len() > 15, "{cuts:?}");
    for at in cuts {
        for clears in [false, true] {
            let mut changed = conversation.clone();
            for index in 0..conversation.len() {
                if clears && conversation.get(index).unwrap().as_tool_result().is_some() {
                    changed.clear_result(index, "[removed]").unwrap();
                }
            }
            changed.compact(at, "What happened before.").unwrap();
            assert_eq!(changed.shared(), conversation.shared(), "the conversation stays");
            for (provider, name) in PROTOCOLS {
                let protocol = protocol(name).unwrap();
                let info = ModelInfo::new(provider, protocol.api(), "large");
                let sent: Conversation = changed.view().iter().cloned().collect();
                assert!(sent.is_sound(), "before message {at}");
                let request = ModelRequest::new(info.hand_off(&sent).iter().cloned()).with_max_tokens(100);
                let body = protocol.encode(&info, &request).unwrap().text();
                assert!(
                    body.contains("What happened before.") && body.contains("The contract."),
                    "{name}: {body}"
                );
                assert!(body.contains("The last question"), "{name}, before message {at}");
                assert!(!clears || !body.contains("found"), "{name}, before message {at}");
            }
        }
    }
}
