//! Views of a conversation at every possible cut, encoded for each protocol.

use agent::message::{
    AssistantMessage, Content, Conversation, Message, MessageList, OutcomeKind, Part, ProviderData,
    ToolResultMessage, UserMessage, ViewError,
};
use agent::model::{ContextReport, ContextRules, Model as _, ModelInfo, ModelRequest};
use agent::provider::protocol;
use agent::{ScriptedModel, Value};

use crate::recorded::cassettes;

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

/// The folders of recorded requests, with their protocols.
const FOLDERS: [(&str, &str); 6] = [
    ("anthropic", "anthropic"),
    ("openai-chat", "openai-chat"),
    ("compat-openai-chat", "openai-chat"),
    ("openai-responses", "openai-responses"),
    ("compat-openai-responses", "openai-responses"),
    ("gemini", "gemini"),
];

/// The conversations of recorded requests with several messages, each with its name and protocol.
fn recorded() -> Vec<(String, &'static str, Conversation)> {
    let mut found = Vec::new();
    for (folder, name) in FOLDERS {
        let protocol = protocol(name).unwrap();
        for entry in std::fs::read_dir(cassettes(folder)).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_str().unwrap().ends_with(".request.json") {
                continue;
            }
            let body: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let Ok((_, request)) = protocol.parse_request("recorded", &body) else { continue };
            let conversation: Conversation = request.messages.iter().cloned().collect();
            if conversation.len() > 2 && conversation.is_sound() {
                found.push((path.display().to_string(), name, conversation));
            }
        }
    }
    assert!(found.len() > 30, "{} recorded conversations", found.len());
    found
}

/// Asserts that what is sent of a conversation is sound, and that its protocol encodes it.
fn assert_sendable(what: &str, name: &str, conversation: &Conversation) {
    let protocol = protocol(name).unwrap();
    let info = ModelInfo::new("recorded", protocol.api(), "recorded");
    let sent: Conversation = conversation.view().iter().cloned().collect();
    assert!(sent.is_sound(), "{what}");
    let request = ModelRequest::new(info.hand_off(&sent).iter().cloned()).with_max_tokens(100);
    protocol.encode(&info, &request).unwrap_or_else(|error| panic!("{what}: {error}"));
}

#[test]
fn every_cut_of_a_recorded_conversation_is_sendable_or_refused() {
    let mut cut = 0;
    for (file, name, conversation) in recorded() {
        let cuts = conversation.cuts();
        for at in 0..=conversation.len() {
            let mut changed = conversation.clone();
            let made = changed.compact(at, "What happened before.");
            assert_eq!(made.is_ok(), cuts.contains(&at), "{file}, before message {at}");
            if made.is_ok() {
                cut += 1;
                assert_sendable(&format!("{file}, before message {at}"), name, &changed);
            } else {
                assert_eq!(changed, conversation, "{file}, before message {at}");
            }
        }
    }
    assert!(cut > 30, "{cut} cuts");
}

#[test]
fn recorded_conversations_fit_into_windows_of_a_part_of_their_length() {
    let (mut fits, mut compacted) = (0, 0);
    for (file, name, conversation) in recorded() {
        let model = ScriptedModel::new([""; 0]);
        let whole =
            ContextReport::of(&ModelRequest::new(conversation.shared().iter().cloned()), model.info());
        for share in [2, 4, 8] {
            let window = whole.used * 2 / share;
            let what = format!("{file} in 1/{share}");
            let (rules, request) = (ContextRules::new().window(window), ModelRequest::default());
            let mut changed = conversation.clone();
            let fitted = loop {
                // A summary of a few tokens.
                match rules.fit(&mut changed, &request, &model) {
                    Ok(None) => break true,
                    Ok(Some(at)) => {
                        changed.compact(at, "So far.").unwrap_or_else(|error| panic!("{what}: {error}"));
                    }
                    // The newest messages alone are too long: an error, and never a silent cut.
                    Err(ViewError::Full { .. }) => break false,
                    Err(error) => panic!("{what}: {error}"),
                }
            };
            assert_sendable(&what, name, &changed);
            assert_eq!(changed.shared(), conversation.shared(), "{what}");
            if fitted {
                let sent = ModelRequest::new(changed.view().iter().cloned());
                // Half of a window is for the reply.
                assert!(ContextReport::of(&sent, model.info()).used <= window / 2, "{what}");
                fits += 1;
                compacted += usize::from(!changed.view_changes().is_empty());
            }
        }
    }
    assert!(fits > 10 && compacted > 10, "{fits} fit, {compacted} of them compacted");
}

/// Recorded conversations one after the other, until they have 120 replies. The calls of each have ids of their own.
fn joined(recorded: &[Conversation]) -> Conversation {
    let mut long = Conversation::new();
    let mut replies = 0;
    for (number, one) in recorded.iter().cycle().enumerate() {
        for message in one.shared() {
            let mut message = Message::clone(message);
            match &mut message {
                Message::Assistant(reply) => {
                    replies += 1;
                    for part in &mut reply.content {
                        if let Content::ToolCall(call) = &mut part.content {
                            call.id = format!("{number}_{}", call.id);
                        }
                    }
                }
                Message::ToolResult(result) => result.call_id = format!("{number}_{}", result.call_id),
                _ => {}
            }
            long.push(message);
        }
        if replies >= 120 {
            break;
        }
    }
    long
}

/// A long conversation of recorded messages, in a window that is a part of it: each request on the way fits, is sound and can be encoded.
#[test]
fn long_conversations_of_recorded_messages_fit_at_every_request_on_the_way() {
    let model = ScriptedModel::new([""; 0]);
    let used =
        |sent: &MessageList| ContextReport::of(&ModelRequest::new(sent.iter().cloned()), model.info()).used;
    let all = recorded();
    for (_, name) in PROTOCOLS {
        let own: Vec<_> = all.iter().filter(|(_, of, _)| *of == name).map(|(.., one)| one.clone()).collect();
        let long = joined(&own);
        assert!(long.is_sound(), "{name}");
        let whole = used(&long.view());
        for share in [2, 4, 8] {
            let window = whole * 2 / share;
            let rules = ContextRules::new().window(window);
            let (mut grown, mut requests) = (Conversation::new(), 0);
            for (at, message) in long.shared().iter().enumerate() {
                if message.as_assistant().is_some() {
                    let what = format!("{name}, 1/{share}, message {at}");
                    while let Some(at) = rules.fit(&mut grown, &ModelRequest::default(), &model).unwrap() {
                        grown.compact(at, "So far.").unwrap_or_else(|error| panic!("{what}: {error}"));
                    }
                    // Half of a window is for the reply.
                    assert!(used(&grown.view()) <= window / 2, "{what}");
                    assert_sendable(&what, name, &grown);
                    requests += 1;
                }
                grown.push(message.clone());
            }
            let changes = grown.view_changes().len();
            assert!(
                requests >= 120 && (1..=requests / 3).contains(&changes),
                "{name}: {changes} of {requests}"
            );
            assert_eq!(grown.shared(), long.shared(), "{name}");
        }
    }
}

/// Returns how many bytes two texts have in common at their beginnings.
fn shared_bytes(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

/// Over 300 turns, a request begins as the one before it, byte for byte, up to the first message that a change of the view replaced.
#[test]
fn requests_share_their_bytes_up_to_the_first_changed_message() {
    const WINDOW: u64 = 32_000;
    let (model, rules) = (ScriptedModel::new([""; 0]), ContextRules::new().window(WINDOW));
    for (provider, name) in PROTOCOLS {
        let protocol = protocol(name).unwrap();
        let info = ModelInfo::new(provider, protocol.api(), "large");
        let encode = |messages: &MessageList| {
            let request = ModelRequest::new(messages.iter().cloned()).with_max_tokens(100);
            protocol.encode(&info, &request).unwrap().text()
        };
        let (mut grown, mut tokens) = (Conversation::new(), 0);
        let mut last: Option<(MessageList, String)> = None;
        let mut broken = 0;
        for turn in 0..300 {
            let id = format!("call_{turn}");
            grown.push(Message::user(format!("Question {turn}")));
            grown.push(Message::assistant([Part::tool_call(&*id, "search", "{}")]));
            let result = ToolResultMessage::new(id, "search", OutcomeKind::Completed);
            grown.push(Message::from(result.with_content(format!("found {turn} ").repeat(180))));
            tokens += 600;
            while let Some(at) = rules.fit(&mut grown, &ModelRequest::default(), &model).unwrap() {
                grown.compact(at, "So far.").unwrap();
            }
            let view: Conversation = grown.view().iter().cloned().collect();
            let sent = info.hand_off(&view);
            let body = encode(&sent);
            if let Some((before, earlier)) = last {
                let same = before.iter().zip(sent.iter()).take_while(|(one, other)| one == other).count();
                broken += usize::from(same < before.len());
                let head: MessageList = sent.iter().take(same).cloned().collect();
                let most = shared_bytes(&encode(&head), &body);
                // What is written of the messages that both have is in both.
                let newest = head.last().map(|message| message.text()).unwrap_or_default();
                let newest = newest.get(..newest.len().min(8)).unwrap_or_default();
                assert!(body[..most].contains(newest), "{name}, turn {turn}: {newest:?}");
                assert!(shared_bytes(&earlier, &body) >= most, "{name}, turn {turn}: {same} messages");
            }
            grown.push(Message::assistant(format!("Answer {turn}")));
            last = Some((sent, body));
        }
        let changes = grown.view_changes().len();
        assert!(broken <= changes && changes > 20, "{name}: {broken} of 300, {changes} changes");
        // Each change reclaims a fifth of what a request may have, at least: half of the window.
        let most = tokens / (WINDOW / 2 / 5) + 1;
        assert!(changes as u64 <= most, "{name}: {changes} changes, at most {most}");
    }
}
