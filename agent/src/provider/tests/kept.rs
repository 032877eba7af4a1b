//! Tests of two shortcuts: requests that continue the text of the previous request, and frequent turns that are written without JSON
//! values. Both must give the same bytes as the general encoding of the whole conversation.

use std::sync::Arc;

use serde_json::json;

use crate::args::{Plan, PlanOptions};
use crate::message::kept::KeptSlot;
use crate::message::{
    AssistantMessage, CacheMark, CustomMessage, Media, Message, MessageList, OutcomeKind, Part, ProviderData,
    ProviderTool, StopReason, ToolResultMessage, UserMessage,
};
use crate::model::{ModelInfo, ModelRequest};
use crate::provider::Protocol;
use crate::provider::turns::VALUES_ONLY;
use crate::tool::definition::ToolDefinition;

/// A generator of random numbers that are the same in each run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % limit
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn of<'t>(&mut self, words: &[&'t str]) -> &'t str {
        words[self.below(words.len())]
    }

    fn text(&mut self) -> &'static str {
        self.of(&[
            "Hi",
            "",
            " ",
            "a\nb \"quoted\" \\ \u{7}\u{7f}",
            "caf\u{e9} \u{1f980}\u{2028}",
            "ends in space \n",
            "{}",
            "]}",
            "[{\"text\":1}]",
        ])
    }

    fn id(&mut self, at: usize) -> String {
        match self.below(12) {
            0 => "call:1.x".to_owned(),
            1 => "c".repeat(50),
            2 => String::new(),
            _ => format!("call_{at}"),
        }
    }

    fn data(&mut self, data: serde_json::Value) -> ProviderData {
        ProviderData::new(self.of(&["test", "test", "other"]), data)
    }

    fn media(&mut self) -> Part {
        match self.below(3) {
            0 => Part::image(vec![1, 2, 3], "image/png"),
            1 => Part::image_url("https://example.com/a.png"),
            _ => Part::document(b"%PDF".as_slice(), "application/pdf"),
        }
    }

    fn part(&mut self, is_reply: bool) -> Part {
        let mut part = match self.below(if is_reply { 12 } else { 8 }) {
            0 => self.media(),
            1 => Part::opaque(
                self.of(&["test", "other"]),
                json!({"type": "text", "text": "opaque", "cache_control": {"x": 1}}),
            ),
            8 => Part::thinking(self.text()),
            9 => Part::refusal(self.text()),
            10 => Part::new(crate::message::Content::ProviderTool(Box::new(ProviderTool::new("web_search")))),
            _ => Part::text(self.text()),
        };
        if self.one_in(10) {
            let data = [
                json!({"signature": "s"}),
                json!({"field": "reasoning"}),
                json!({}),
                json!({"cache_control": {"type": "x"}}),
            ];
            let data = data[self.below(4)].clone();
            part.provider_data = Some(Box::new(self.data(data)));
        }
        if self.one_in(12) {
            part.cache = Some(CacheMark::Usual);
        }
        part
    }

    fn parts(&mut self, is_reply: bool) -> Vec<Part> {
        match self.below(4) {
            0 => (0..self.below(4)).map(|_| self.part(is_reply)).collect(),
            _ => vec![Part::text(self.text())],
        }
    }

    /// The next messages of a conversation: a prompt, a reply, or a reply with calls and their results.
    fn messages(&mut self, at: usize) -> Vec<Message> {
        let data = |random: &mut Self| {
            let data = [
                json!({"message": {"name": "x"}}),
                json!({"joined": true}),
                json!({"apart": true}),
                json!({"content": {"no_role": true}}),
                json!({"id": "g", "part": {"y": 1}, "block": {"z": 2}}),
            ];
            let data = data[random.below(5)].clone();
            random.one_in(12).then(|| random.data(data))
        };
        match self.below(6) {
            0 | 1 => {
                let mut user = UserMessage::new(self.parts(false));
                user.provider_data = data(self).map(Box::new);
                vec![user.into()]
            }
            2 => {
                let mut reply = AssistantMessage::new(self.parts(true));
                (reply.provider, reply.model) = (self.of(&["test", "other", ""]).to_owned(), "m".to_owned());
                reply.provider_data = data(self).map(Box::new);
                if self.one_in(4) {
                    (reply.stop_reason, reply.provider_stop_reason) =
                        (StopReason::Pause, Some("CONTINUATION".to_owned()));
                    reply.provider_data = Some(Box::new(self.data(json!({"continuationToken": "TOK"}))));
                }
                vec![reply.into()]
            }
            3 if self.one_in(4) => vec![
                CustomMessage::new(self.of(&["system", "note"]), json!({})).with_for_model("Rule.").into(),
            ],
            _ => {
                let ids: Vec<String> = (0..=self.below(3)).map(|number| self.id(10 * at + number)).collect();
                let mut parts = if self.one_in(2) { self.parts(true) } else { Vec::new() };
                for id in &ids {
                    let args = self.of(&[
                        r#"{"a": [1.50, "x"],  "b":null}"#,
                        "",
                        "[1]",
                        "{broken",
                        r#"{"a":1,"a":2}"#,
                    ]);
                    let call = Part::tool_call(id.as_str(), "f", args);
                    let id = json!({"functionCall": {"id": "gemini"}, "thoughtSignature": "s"});
                    parts.push(if self.one_in(8) { call.with_provider_data(self.data(id)) } else { call });
                }
                let mut messages = vec![Message::assistant(parts)];
                for id in ids {
                    let outcome = if self.one_in(4) { OutcomeKind::Failed } else { OutcomeKind::Completed };
                    let mut result = ToolResultMessage::new(id, "f", outcome).with_content(self.parts(false));
                    result.provider_data = data(self).map(Box::new);
                    messages.push(result.into());
                }
                messages
            }
        }
    }
}

fn targets() -> Vec<(Box<dyn Protocol>, ModelInfo)> {
    let mut targets: Vec<(Box<dyn Protocol>, &str)> = Vec::new();
    #[cfg(feature = "openai")]
    {
        use crate::provider::openai::{Compat, OpenAiChat, OpenAiResponses};
        let mut within = Compat::plain().with_echo_within_turn();
        within.tool_result_name = true;
        let mut short = Compat::plain();
        short.call_id_length = Some(9);
        targets.push((Box::new(OpenAiChat::default()), "gpt-5"));
        targets.push((Box::new(OpenAiChat::default().with_compat(within)), "m"));
        targets.push((Box::new(OpenAiChat::default().with_compat(short)), "m"));
        targets.push((Box::new(OpenAiResponses::default()), "gpt-5"));
    }
    #[cfg(feature = "anthropic")]
    {
        use crate::provider::anthropic::AnthropicMessages;
        targets.push((Box::new(AnthropicMessages::default()), "claude-sonnet-5"));
        let new = AnthropicMessages::default().with_version("2026-10-21");
        targets.push((Box::new(new), "claude-opus-5"));
    }
    #[cfg(feature = "gemini")]
    {
        targets.push((Box::new(crate::provider::gemini::Gemini::default()), "gemini-3-pro"));
        targets.push((Box::new(crate::provider::gemini::Gemini::default()), "gemini-2.5-pro"));
    }
    let with_info = |(protocol, model): (Box<dyn Protocol>, &str)| {
        let info = ModelInfo::new("test", protocol.api(), model);
        (protocol, info)
    };
    targets.into_iter().map(with_info).collect()
}

fn encode(protocol: &dyn Protocol, info: &ModelInfo, messages: MessageList) -> Result<String, String> {
    let request = ModelRequest { messages, ..ModelRequest::default() };
    match protocol.encode(info, &request) {
        Ok(http) => Ok(http.text()),
        Err(error) => Err(error.to_string()),
    }
}

fn general(protocol: &dyn Protocol, info: &ModelInfo, messages: &[Arc<Message>]) -> Result<String, String> {
    VALUES_ONLY.set(true);
    let body = encode(protocol, info, messages.iter().cloned().collect());
    VALUES_ONLY.set(false);
    body
}

#[test]
fn frequent_turns_are_written_as_values_are() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..300 {
        let mut messages = Vec::new();
        for at in 0..random.below(12) {
            messages.extend(random.messages(at).into_iter().map(Arc::new));
        }
        for (protocol, info) in &targets() {
            let expected = general(&**protocol, info, &messages);
            let written = encode(&**protocol, info, messages.iter().cloned().collect());
            assert_eq!(written, expected, "{}", info.api);
        }
    }
}

#[test]
fn a_kept_text_changes_nothing_whatever_happens_to_the_conversation() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let targets = targets();
    for round in 0..120 {
        let slots = [KeptSlot::new(), KeptSlot::new()];
        let mut messages: Vec<Arc<Message>> = Vec::new();
        let mut target = random.below(targets.len());
        for at in 0..30 {
            messages.extend(random.messages(at).into_iter().map(Arc::new));
            let mut sent = messages.clone();
            match random.below(12) {
                // A hook changes a message of this request.
                0 => {
                    let at = random.below(sent.len());
                    sent[at] = Arc::new(Message::user(random.text()));
                }
                // Context management leaves out the middle.
                1 => {
                    let from = random.below(sent.len());
                    let to = from + random.below(sent.len() - from);
                    sent.drain(from..to);
                }
                2 => sent.push(Arc::new(Message::user("A reminder."))),
                3 => sent.truncate(random.below(sent.len()) + 1),
                // The conversation itself is changed.
                4 => {
                    let at = random.below(messages.len());
                    messages.remove(at);
                    sent.clone_from(&messages);
                }
                5 if round % 3 == 0 => target = random.below(targets.len()),
                _ => {}
            }
            let (protocol, info) = &targets[target];
            // Concurrent requests and forked conversations use different [`KeptSlot`]s.
            let slot = if random.one_in(9) { slots[0].fork() } else { slots[random.below(2)].clone() };
            let list = MessageList::from(sent.clone()).with_slot(slot);
            let expected = general(&**protocol, info, &sent);
            for _ in 0..2 {
                assert_eq!(encode(&**protocol, info, list.clone()), expected, "{}, step {at}", info.api);
            }
        }
    }
}

#[test]
fn lists_that_grow_apart_do_not_get_the_text_of_each_other() {
    let mut random = Random(0x1656_67b1_9e37_79f9);
    let targets = targets();
    for round in 0..200 {
        let (protocol, info) = &targets[round % targets.len()];
        // All lists are clones of this list, so they share its slot.
        let mut lists = vec![MessageList::new().with_slot(KeptSlot::new())];
        for at in 0..30 {
            let list = random.below(lists.len());
            match random.below(8) {
                0 if lists.len() < 4 => lists.push(lists[list].clone()),
                1 => lists[list].clear(),
                _ => lists[list].extend(random.messages(at)),
            }
            let expected = general(&**protocol, info, &lists[list]);
            let body = encode(&**protocol, info, lists[list].clone());
            assert_eq!(body, expected, "{}, step {at}", info.api);
        }
    }
}

#[test]
fn a_changed_tool_is_written_as_it_is_now() {
    let tool = |description: &str| {
        let plan = Plan::compile("f", &json!({"type": "object", "properties": {}}), PlanOptions::default());
        ToolDefinition::new(plan.unwrap(), description).unwrap()
    };
    for (protocol, info) in &targets() {
        let messages = MessageList::new().with_slot(KeptSlot::new());
        let mut request = ModelRequest { messages, ..ModelRequest::default() };
        for description in ["Finds it.", "Finds it.", "Finds it anew.", "Finds it."] {
            request.messages.push(Message::user(description));
            request.tools = [tool(description)].into();
            let body = protocol.encode(info, &request).unwrap().text();
            let is_shown = |text: &str| body.contains(&format!("\"description\":\"{text}\""));
            assert_eq!(
                [is_shown("Finds it."), is_shown("Finds it anew.")],
                ["Finds it.", "Finds it anew."].map(|text| text == description)
            );
        }
    }
}

#[test]
fn what_was_sent_is_not_written_again() {
    for (protocol, info) in &targets() {
        let turn = |at: usize| {
            let id = format!("call{at:05}");
            [
                Message::user("Hi"),
                Message::assistant([Part::tool_call(id.as_str(), "f", "{}")]),
                ToolResultMessage::new(id, "f", OutcomeKind::Completed).with_content("1").into(),
                Message::assistant("Done."),
            ]
        };
        let mut list = MessageList::new().with_slot(KeptSlot::new());
        let mut bytes = 0;
        for at in 0..500 {
            list.extend(turn(at));
            bytes = encode(&**protocol, info, list.clone()).unwrap().len();
        }
        let kept = list.slot().take().unwrap();
        assert!(kept.messages.len() >= list.len() - 4, "{}: {}", info.api, kept.messages.len());
        // Each segment is more than twice as long as the next segment.
        assert!(1 << kept.segments.len() <= bytes, "{}: {} segments", info.api, kept.segments.len());
        list.slot().put(kept);
        // A request to another provider does not use the kept text.
        let mut other = info.clone();
        other.provider = "other".to_owned();
        let fresh: MessageList = list.iter().cloned().collect();
        assert_eq!(encode(&**protocol, &other, list.clone()), encode(&**protocol, &other, fresh));
    }
}

#[test]
fn a_media_part_of_a_result_is_written_once() {
    for (protocol, info) in &targets() {
        let mut list = MessageList::new().with_slot(KeptSlot::new());
        for at in 0..4 {
            let id = format!("call{at:05}");
            list.push(Message::user("Draw."));
            list.push(Message::assistant([Part::tool_call(id.as_str(), "f", "{}")]));
            let media =
                Part::new(crate::message::Content::Image(Media::data([1, 2, 3].as_slice(), "image/png")));
            list.push(Message::from(
                ToolResultMessage::new(id, "f", OutcomeKind::Completed).with_content(media),
            ));
            let body = encode(&**protocol, info, list.clone()).unwrap();
            assert_eq!(body.matches("AQID").count(), at + 1, "{}: {body}", info.api);
        }
    }
}

/// Replays each recorded request message by message, as a conversation grows. After each message, also encodes the conversation with one
/// message changed and with one message removed.
#[test]
#[ignore = "recorded: needs AGENT_RECORDINGS"]
fn recorded_requests_continue_to_the_text_of_a_whole_encoding() {
    let beside = || [env!("CARGO_MANIFEST_DIR"), "../../shared/cassettes"].iter().collect();
    let folder = std::env::var_os("AGENT_RECORDINGS").map_or_else(beside, std::path::PathBuf::from);
    let files = |folder: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let (mut requests, mut compared) = (0, 0);
    for folder in files(&folder).into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let api = crate::provider::protocols().find(|api| api.starts_with(name) || name.ends_with(api));
        let Some(protocol) = api.and_then(crate::provider::protocol) else { continue };
        for path in files(&folder).iter().filter(|path| path.to_str().unwrap().ends_with(".request.json")) {
            let recorded = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let Ok((model, request)) = protocol.parse_request("test", &recorded) else { continue };
            let info = ModelInfo::new("test", protocol.api(), model);
            let encode = |messages: MessageList| {
                let request = ModelRequest { messages, ..request.clone() };
                protocol.encode(&info, &request).map(|http| http.text()).map_err(|error| error.to_string())
            };
            let slot = KeptSlot::new();
            for length in 1..=request.messages.len() {
                let whole = request.messages[..length].to_vec();
                let (mut changed, mut shorter) = (whole.clone(), whole.clone());
                changed[length / 2] = Arc::new(Message::user("Changed."));
                shorter.remove(length / 3);
                for sent in [whole.clone(), changed, shorter, whole] {
                    VALUES_ONLY.set(true);
                    let expected = encode(sent.iter().cloned().collect());
                    VALUES_ONLY.set(false);
                    let continued = encode(MessageList::from(sent).with_slot(slot.clone()));
                    assert_eq!(continued, expected, "{}: {length} messages", path.display());
                    compared += 1;
                }
            }
            requests += 1;
        }
    }
    assert!(requests > 100 && compared > 900, "{requests} requests, {compared} comparisons");
}
