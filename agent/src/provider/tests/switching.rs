//! A conversation moves from each provider to every other one, in the middle of a tool loop.

use serde_json::{Value, json};

use super::support::{read, tool};
use crate::message::{
    AssistantMessage, Content, Conversation, HandOff, Message, OutcomeKind, Part, Recipient, StopReason,
    ToolResultMessage,
};
use crate::model::{ModelInfo, ModelRequest, Thinking};
use crate::provider::Protocol;

/// A marker in provider data. Only the provider that sent the data may receive it again.
const STATE: &str = "STATE";

struct Side {
    name: &'static str,
    protocol: Box<dyn Protocol>,
    /// A reply with thinking, a text, a call, and a search if the provider has one.
    reply: Value,
    searches: bool,
    /// The minimum number of [`STATE`] markers that are sent back to this provider.
    kept: usize,
}

fn sides() -> Vec<Side> {
    vec![
        #[cfg(feature = "openai")]
        Side {
            name: "openai",
            protocol: Box::new(crate::provider::openai::OpenAiChat::default()),
            reply: json!({"choices": [{"message": {"reasoning_content": "thought STATE", "content": "I look.",
                "reasoning_details": [{"type": "reasoning.encrypted", "data": STATE}],
                "tool_calls": [{"id": "call:1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":41}"},
                    "extra_content": {"x": STATE}}]}, "finish_reason": "tool_calls"}]}),
            searches: false,
            kept: 3,
        },
        // A server that is compatible with OpenAI, but differs in thinking and ids.
        #[cfg(feature = "openai")]
        Side {
            name: "mistral",
            protocol: Box::new(crate::provider::openai::OpenAiChat::default().with_compat(
                crate::provider::openai::Compat::plain().with_call_id_length(9).with_tool_result_name(true),
            )),
            reply: json!({"choices": [{"message": {"content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "thought STATE"}]},
                    {"type": "text", "text": "I look."}],
                "tool_calls": [{"id": "call:1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":41}"},
                    "extra_content": {"x": STATE}}]}, "finish_reason": "tool_calls"}]}),
            searches: false,
            kept: 1,
        },
        #[cfg(feature = "openai")]
        Side {
            name: "openai",
            protocol: Box::new(crate::provider::openai::OpenAiResponses::default()),
            reply: json!({"status": "completed", "output": [
                {"type": "reasoning", "id": "rs_STATE", "encrypted_content": STATE, "summary": [{"type": "summary_text", "text": "thought STATE"}]},
                {"type": "web_search_call", "id": "ws_STATE", "status": "completed", "action": {"type": "search", "query": "rust"}},
                {"type": "message", "id": "msg_STATE", "role": "assistant", "phase": "commentary", "content": [
                    {"type": "output_text", "text": "I look.", "annotations": []}]},
                {"type": "function_call", "id": "fc_STATE", "call_id": "call:1", "name": "add", "arguments": "{\"a\":41}"}]}),
            searches: true,
            kept: 3,
        },
        #[cfg(feature = "anthropic")]
        Side {
            name: "anthropic",
            protocol: Box::new(crate::provider::anthropic::AnthropicMessages::default()),
            reply: json!({"type": "message", "stop_reason": "tool_use", "container": {"id": STATE}, "content": [
                {"type": "thinking", "thinking": "thought STATE", "signature": STATE},
                {"type": "redacted_thinking", "data": STATE},
                {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "rust"}, "caller": {"type": STATE}},
                {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result", "encrypted_content": STATE}]},
                {"type": "text", "text": "I look.", "citations": [{"encrypted_index": STATE}]},
                {"type": "tool_use", "id": "call:1", "name": "add", "input": {"a": 41}, "caller": {"type": STATE}}]}),
            searches: true,
            kept: 3,
        },
        #[cfg(feature = "gemini")]
        Side {
            name: "gemini",
            protocol: Box::new(crate::provider::gemini::Gemini::default()),
            reply: json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
                {"text": "thought STATE", "thought": true, "thoughtSignature": STATE},
                {"toolCall": {"toolType": "WEB_SEARCH", "args": {"query": "rust"}, "id": STATE}, "thoughtSignature": STATE},
                {"text": "I look."},
                {"functionCall": {"name": "add", "args": {"a": 41}, "id": "call:1"}, "thoughtSignature": STATE},
                {"text": "", "thoughtSignature": STATE}]}}]}),
            searches: true,
            kept: 3,
        },
    ]
}

fn reply(side: &Side) -> AssistantMessage {
    let (mut message, error) = read(&*side.protocol, side.name, 200, side.reply.to_string().as_bytes());
    assert!(error.is_none(), "{}: {error:?}", side.protocol.api());
    message.model = "model-1".into();
    message
}

fn sent(conversation: &Conversation, to: &Side, model: &str) -> Value {
    let recipient = Recipient::new(to.name, to.protocol.api(), model);
    let sent = HandOff::of(conversation, recipient);
    let request = ModelRequest { messages: sent.messages().clone(), ..ModelRequest::default() }
        .with_system("Be brief.")
        .with_tools([tool("add", &json!({"type": "object", "properties": {"a": {"type": "integer"}}}))])
        .with_thinking(Thinking::High)
        .with_max_tokens(40_000);
    to.protocol.encode(&ModelInfo::new(to.name, to.protocol.api(), model), &request).unwrap().json()
}

fn conversation(from: &Side) -> Conversation {
    let result = ToolResultMessage::new("call:1", "add", OutcomeKind::Completed)
        .with_content([Part::text("forty-two"), Part::image(b"result", "image/png")]);
    Conversation::from_iter([
        Message::user([Part::text("What is this?"), Part::image(b"question", "image/png")]),
        reply(from).into(),
        result.into(),
    ])
}

#[test]
fn nothing_foreign_is_sent_and_nothing_neutral_is_lost() {
    for from in sides() {
        let conversation = conversation(&from);
        for to in sides() {
            let pair = format!("{} {} to {} {}", from.name, from.protocol.api(), to.name, to.protocol.api());
            let is_same = from.protocol.api() == to.protocol.api() && from.name == to.name;
            for model in ["model-1", "model-2"] {
                let body = sent(&conversation, &to, model).to_string();
                for neutral in
                    ["What is this?", "I look.", "\"add\"", "41", "forty-two", "cXVlc3Rpb24=", "cmVzdWx0"]
                {
                    assert!(body.contains(neutral), "{pair}, {model}: {neutral} is lost in {body}");
                }
                if from.searches {
                    assert!(body.contains("rust"), "{pair}, {model}: what was searched is lost in {body}");
                }
                if is_same && model == "model-1" {
                    assert!(body.matches(STATE).count() >= from.kept, "{pair}: state is lost in {body}");
                } else if !is_same {
                    assert!(!body.contains(STATE), "{pair}, {model}: foreign state in {body}");
                    assert!(!body.contains("call:1"), "{pair}: an id that not everybody takes in {body}");
                } else {
                    assert!(
                        !body.contains("thought STATE"),
                        "{pair}: thinking went to another model in {body}"
                    );
                }
            }
        }
    }
}

/// A program ended within a turn: only one of two calls has a result, and the last reply was cut off. Every model must still get a
/// valid conversation, without the cut reply.
#[test]
fn a_loop_that_was_left_half_finished_goes_on_with_anybody() {
    for from in sides() {
        let mut asked = reply(&from);
        asked.content.push(Part::tool_call("call:2", "add", r#"{"a": 7}"#));
        let answer =
            ToolResultMessage::new("call:1", "add", OutcomeKind::Completed).with_content("forty-two");
        let mut cut = reply(&from);
        cut.stop_reason = StopReason::Aborted;
        for part in &mut cut.content {
            if let Content::Text(text) = &mut part.content {
                *text = "half a word".to_owned();
            }
        }
        for messages in [
            vec![Message::user("Go."), asked.clone().into(), answer.clone().into()],
            vec![Message::user("Go."), asked.into(), answer.into(), cut.into(), Message::user("Go on.")],
        ] {
            let mut conversation = Conversation::from_iter(messages);
            conversation.repair();
            for to in sides() {
                let pair =
                    format!("{} {} to {} {}", from.name, from.protocol.api(), to.name, to.protocol.api());
                let body = sent(&conversation, &to, "model-2");
                let (calls, results) = ids(&body);
                assert_eq!((calls.len(), &calls), (2, &results), "{pair}: {body}");
                let body = body.to_string();
                for said in ["forty-two", "\"add\"", "Be brief."] {
                    assert!(body.contains(said), "{pair}: {said} is lost in {body}");
                }
                assert!(!body.contains("half a word"), "{pair}: a reply that was cut off is in {body}");
            }
        }
    }
}

#[test]
fn calls_and_results_stay_together_through_every_hand() {
    // Each provider replies once with a call, each call gets its result, and then each provider gets the whole conversation.
    let mut messages = vec![Message::user("Go.")];
    for side in sides() {
        messages.push(reply(&side).into());
        messages
            .push(ToolResultMessage::new("call:1", "add", OutcomeKind::Completed).with_content("42").into());
    }
    let conversation = Conversation::from_iter(messages);
    for to in sides() {
        let body = sent(&conversation, &to, "model-1");
        let api = to.protocol.api();
        let (calls, results) = ids(&body);
        assert_eq!(calls.len(), sides().len(), "{api}");
        assert_eq!(calls, results, "{api}: {body}");
        let mut unique = calls.clone();
        unique.sort();
        unique.dedup();
        assert!(
            unique.len() == calls.len() || api.starts_with("gemini"),
            "{api}: ids are taken twice: {calls:?}"
        );
    }
}

/// Returns the ids of the calls and the ids of the results in a request body. If the protocol has no ids, returns names.
fn ids(body: &Value) -> (Vec<String>, Vec<String>) {
    fn walk(value: &Value, calls: &mut Vec<String>, results: &mut Vec<String>) {
        let id = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        match value.get("type").and_then(Value::as_str) {
            Some("function_call") => calls.extend(id("call_id")),
            Some("function_call_output") => results.extend(id("call_id")),
            Some("tool_use" | "function") => calls.extend(id("id")),
            Some("tool_result") => results.extend(id("tool_use_id")),
            _ => {}
        }
        results.extend(id("tool_call_id"));
        let names = [("functionCall", &mut *calls), ("functionResponse", &mut *results)];
        for (key, list) in names {
            list.extend(value.get(key).and_then(|inner| Some(inner.get("name")?.as_str()?.to_owned())));
        }
        match value {
            Value::Array(list) => list.iter().for_each(|value| walk(value, calls, results)),
            Value::Object(map) => map.values().for_each(|value| walk(value, calls, results)),
            _ => {}
        }
    }
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    walk(body, &mut calls, &mut results);
    (calls, results)
}
