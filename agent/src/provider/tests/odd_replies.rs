//! Replies in undocumented forms that servers send.
#![cfg_attr(
    not(feature = "openai"),
    allow(dead_code, unused_imports, reason = "most of it is of its servers")
)]

use serde_json::{Value, json};

use super::support::{body, read, reply};
use crate::message::{Content, Message, OutcomeKind, Part, StopReason, ToolResultMessage};
use crate::model::{ModelErrorKind as K, ModelInfo, ModelRequest};
use crate::provider::Protocol;

fn sse(events: &[Value]) -> String {
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    events.concat()
}

fn calls(api: &dyn Protocol, text: &str) -> Vec<(String, String, String)> {
    let reply = reply(api, text);
    let call =
        |call: &crate::message::ToolCall| (call.id.clone(), call.name.clone(), call.args.text().to_owned());
    reply.tool_calls().map(call).collect()
}

fn call(id: &str, name: &str, args: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), args.to_owned())
}

/// Returns, for each protocol, a reply with the text `Hi`.
fn bodies() -> Vec<(Box<dyn Protocol>, Value)> {
    vec![
        #[cfg(feature = "openai")]
        (
            Box::new(crate::provider::openai::OpenAiChat::default()),
            json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}),
        ),
        #[cfg(feature = "openai")]
        (
            Box::new(crate::provider::openai::OpenAiResponses::default()),
            json!({"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]}),
        ),
        #[cfg(feature = "anthropic")]
        (
            Box::new(crate::provider::anthropic::AnthropicMessages::default()),
            json!({"content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}),
        ),
        #[cfg(feature = "gemini")]
        (
            Box::new(crate::provider::gemini::Gemini::default()),
            json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}),
        ),
    ]
}

#[test]
fn a_byte_order_mark_is_no_event_stream() {
    for (api, body) in bodies() {
        assert_eq!(reply(&*api, &format!("\u{feff} \n{body}")).text(), "Hi", "{}", api.api());
    }
}

#[test]
fn an_error_that_says_nothing_is_none() {
    for (api, body) in bodies() {
        for nothing in [Value::Null, json!({}), json!(""), json!([]), json!(false)] {
            let mut body = body.clone();
            body["error"] = nothing;
            assert_eq!(reply(&*api, &body.to_string()).text(), "Hi", "{}: {body}", api.api());
        }
    }
}

#[test]
fn statuses_count_where_words_say_nothing() {
    for (api, _) in bodies() {
        let kind = |status: u16, word: &str| {
            let body = json!({"error": {"message": "m", "type": word, "code": null}}).to_string();
            read(&*api, "test", status, body.as_bytes()).1.unwrap().kind()
        };
        for (status, expected) in [(402, K::Auth), (404, K::InvalidRequest), (500, K::Server)] {
            assert_eq!(kind(status, "api_error"), expected, "{}: {status}", api.api());
        }
        assert_eq!(kind(402, "invalid_request_error"), K::Auth, "{}", api.api());
        assert_eq!(kind(422, "invalid_request_error"), K::InvalidRequest, "{}", api.api());
        let body = br#"{"error": "invalid_grant", "error_description": "Token expired."}"#;
        assert_eq!(read(&*api, "test", 401, body).1.unwrap().message(), "Token expired.");
        assert_eq!(read(&*api, "test", 400, br#"{"Message": "No."}"#).1.unwrap().message(), "No.");
    }
}

#[cfg(feature = "openai")]
fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

#[cfg(feature = "openai")]
#[test]
fn chat_calls_of_one_index_are_told_apart_by_name() {
    let api = crate::provider::openai::OpenAiChat::default();
    let piece = |name: &str, args: &str| {
        chunk(&json!({"tool_calls": [{"index": 0, "function": {"name": name, "arguments": args}}]}), None)
    };
    let end = chunk(&json!({}), Some("tool_calls"));
    let found =
        calls(&api, &sse(&[piece("f", "{\"a\":1}"), piece("g", "{\"b\":"), piece("", "2}"), end.clone()]));
    assert_eq!(found, [call("call_1", "f", "{\"a\":1}"), call("call_2", "g", "{\"b\":2}")]);
    // A name that is repeated, or that comes before the arguments, does not start a new call.
    let found = calls(&api, &sse(&[piece("f", ""), piece("f", "{\"a\""), piece("f", ":1}"), end]));
    assert_eq!(found, [call("call_1", "f", "{\"a\":1}")]);
}

#[cfg(feature = "openai")]
#[test]
fn chat_pictures_beside_the_content_are_parts_and_go_back() {
    let api = crate::provider::openai::OpenAiChat::default();
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQI="}, "index": 0});
    let far = json!({"type": "image_url", "image_url": {"url": "https://a.example/i.png"}, "index": 1});
    let message = json!({"role": "assistant", "content": "Here.", "images": [image, far]});
    let streamed = sse(&[
        chunk(&json!({"content": "Here."}), None),
        chunk(&json!({"content": "", "images": [image]}), None),
        chunk(&json!({"images": [far]}), None),
        chunk(&json!({}), Some("stop")),
    ]);
    let streamed = reply(&api, &streamed);
    let whole = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
    assert_eq!(streamed, reply(&api, &whole.to_string()));
    assert!(
        matches!(&streamed.content[1].content, Content::Image(media) if media.mime_type.as_deref() == Some("image/png"))
    );
    let request = ModelRequest::new([Message::from(streamed)]);
    assert_eq!(body(&api, "m", &request)["messages"][0], message);
    let inline = json!({"role": "assistant", "content": "Here.", "images": [{"b64_json": "AQI="}]});
    let whole = json!({"choices": [{"message": inline, "finish_reason": "stop"}]});
    let again = ModelRequest::new([Message::from(reply(&api, &whole.to_string()))]);
    assert_eq!(body(&api, "m", &again)["messages"][0], inline);
    // For another server, a user message shows the images.
    let other = api.encode(&ModelInfo::new("other", "openai-chat", "m"), &request).unwrap().json();
    assert_eq!(other["messages"][0], json!({"role": "assistant", "content": "Here."}));
    assert_eq!(other["messages"][1]["role"], "user");
    assert_eq!(other["messages"][1]["content"][1]["image_url"]["url"], "data:image/png;base64,AQI=");
    let mut blind = ModelInfo::new("other", "openai-responses", "m");
    let responses = crate::provider::openai::OpenAiResponses::default();
    let seen = responses.encode(&blind, &request).unwrap().json()["input"].clone();
    assert_eq!(seen[1]["content"][1]["image_url"], "data:image/png;base64,AQI=");
    blind.capabilities.images = false;
    let told = responses.encode(&blind, &request).unwrap().json()["input"][1].to_string();
    assert!(told.contains("a picture, which cannot be shown here") && !told.contains("AQI="), "{told}");
}

#[cfg(feature = "openai")]
#[test]
fn chat_ids_that_are_too_long_are_shortened_for_who_did_not_make_them() {
    let api = crate::provider::openai::OpenAiChat::default();
    let ids = ["1", "2"].map(|end| format!("toolu_{}{end}", "x".repeat(60)));
    let mut messages = vec![Message::assistant(ids.clone().map(|id| Part::tool_call(id, "f", "{}")))];
    messages.extend(
        ids.clone().map(|id| ToolResultMessage::new(id.as_str(), "f", OutcomeKind::Completed).into()),
    );
    let messages = body(&api, "gpt-4o", &ModelRequest::new(messages))["messages"].clone();
    let sent = [0, 1].map(|at| messages[0]["tool_calls"][at]["id"].as_str().unwrap().to_owned());
    assert!(
        sent.iter().all(|id| id.len() == 40 && id.starts_with("toolu_x")) && sent[0] != sent[1],
        "{sent:?}"
    );
    let answered = [1, 2].map(|at| messages[at]["tool_call_id"].as_str().unwrap().to_owned());
    assert_eq!(sent, answered);
}

#[cfg(feature = "openai")]
#[test]
fn chat_ids_have_every_length_that_is_asked_for() {
    use crate::provider::openai::{Compat, OpenAiChat};
    for (compat, length) in [
        (Compat::plain().with_max_call_id(8), 8),
        (Compat::plain().with_max_call_id(13), 13),
        (Compat::plain().with_call_id_length(65), 65),
    ] {
        let api = OpenAiChat::default().with_compat(compat);
        let calls = ["call:1-of-many-more", "call:2-of-many-more"].map(|id| Part::tool_call(id, "f", "{}"));
        let messages = body(&api, "m", &ModelRequest::new([Message::assistant(calls)]))["messages"].clone();
        let sent = [0, 1].map(|at| messages[0]["tool_calls"][at]["id"].as_str().unwrap().to_owned());
        assert!(sent.iter().all(|id| id.len() == length) && sent[0] != sent[1], "{sent:?}");
    }
}

#[cfg(feature = "openai")]
#[test]
fn chat_counts_and_signs_of_life_are_read_in_every_form() {
    let api = crate::provider::openai::OpenAiChat::default();
    let usage = json!({"prompt_tokens": 10.0, "completion_tokens": "5", "total_tokens": 15.0,
        "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2});
    let text = chunk(&json!({"content": "Hi"}), None);
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage});
    let only = json!({"choices": [{"index": 1, "message": {"content": "Hi"}, "finish_reason": "stop"}]});
    assert_eq!(reply(&api, &only.to_string()).text(), "Hi");
    let usage = reply(&api, &(sse(&[text]) + "event: ping\ndata: ping\n\n" + &sse(&[end]))).usage;
    assert_eq!(
        [usage.input, usage.output, usage.total, usage.cache_read, usage.cache_write],
        [10, 5, 15, 4, 2]
    );
}

#[test]
fn an_open_call_of_a_withheld_reply_is_none_without_arguments() {
    let mut withheld: Vec<(Box<dyn Protocol>, String)> = Vec::new();
    #[cfg(feature = "openai")]
    {
        let begun =
            json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]});
        let text = sse(&[chunk(&begun, None), chunk(&json!({}), Some("content_filter"))]);
        withheld.push((Box::new(crate::provider::openai::OpenAiChat::default()), text));
        let item = json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "", "status": "incomplete"});
        let response = json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": [item]});
        let text = sse(&[
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.incomplete", "response": response}),
        ]);
        withheld.push((Box::new(crate::provider::openai::OpenAiResponses::default()), text));
        withheld.push((Box::new(crate::provider::openai::OpenAiResponses::default()), response.to_string()));
    }
    #[cfg(feature = "anthropic")]
    withheld.push((
        Box::new(crate::provider::anthropic::AnthropicMessages::default()),
        sse(&[
            json!({"type": "message_start", "message": {"id": "m"}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}}),
            json!({"type": "message_stop"}),
        ]),
    ));
    #[cfg(feature = "gemini")]
    withheld.push((
        Box::new(crate::provider::gemini::Gemini::default()),
        sse(&[
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "willContinue": true}}]}}]}),
            json!({"candidates": [{"finishReason": "SAFETY"}]}),
        ]),
    ));
    for (api, text) in withheld {
        let reply = reply(&*api, &text);
        assert_eq!(reply.stop_reason, StopReason::ContentFilter, "{}", api.api());
        assert!(reply.tool_calls().all(|call| call.args.value().is_none()), "{}: {reply:?}", api.api());
    }
}

/// Returns a stream of the Responses API: the start of a reply, these events, and the end with this output.
#[cfg(feature = "openai")]
fn response(events: &[Value], output: &Value) -> String {
    let begun =
        json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}});
    let end = json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": output}});
    sse(&[&[begun], events, &[end]].concat())
}

#[cfg(feature = "openai")]
fn added(item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": 0, "item": item})
}

#[cfg(feature = "openai")]
#[test]
fn responses_without_deltas_are_read_from_last_words() {
    let api = crate::provider::openai::OpenAiResponses::default();
    let message = added(&json!({"type": "message", "id": "m", "role": "assistant", "content": []}));
    let last = |kind: &str, key: &str, text: &str| json!({"type": format!("response.{kind}.done"), "output_index": 0, "item_id": "m", key: text});
    let part = |part: Value| json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": part});
    let delta =
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "H"});
    for said in [
        vec![last("output_text", "text", "Hi")],
        vec![part(json!({"type": "output_text", "text": "Hi"}))],
        vec![delta.clone(), last("output_text", "text", "Hi")],
        vec![delta, last("output_text", "text", "Hi"), part(json!({"type": "output_text", "text": "Hi"}))],
    ] {
        let events = [vec![message.clone()], said].concat();
        let reply = reply(&api, &response(&events, &json!([])));
        assert_eq!((reply.text().as_str(), reply.content.len()), ("Hi", 1), "{events:?}");
    }
    for said in [last("refusal", "refusal", "No."), part(json!({"type": "refusal", "refusal": "No."}))] {
        let delta =
            json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "N"});
        let reply = reply(&api, &response(&[message.clone(), delta, said], &json!([])));
        assert_eq!((reply.refusal().as_deref(), reply.stop_reason), (Some("No."), StopReason::ContentFilter));
    }
    let reasoning = added(&json!({"type": "reasoning", "id": "m", "summary": []}));
    for said in [
        last("reasoning_summary_text", "text", "Hm"),
        last("reasoning_text", "text", "Hm"),
        json!({"type": "response.reasoning_summary_part.done", "output_index": 0, "part": {"type": "summary_text", "text": "Hm"}}),
    ] {
        let reply = reply(&api, &response(&[reasoning.clone(), said], &json!([])));
        assert_eq!((reply.thinking().as_str(), reply.content.len()), ("Hm", 1));
    }
    let item = |args: &str| {
        added(&json!({"type": "function_call", "id": "m", "call_id": "c", "name": "f", "arguments": args}))
    };
    let pieces = ["{\"a\"", ":1}"].map(
        |delta| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": delta}),
    );
    let args = "{\"a\":1}";
    for events in [
        vec![item(""), last("function_call_arguments", "arguments", args)],
        // The arguments come with the start of the call, and then perhaps again in deltas.
        vec![item(args)],
        [vec![item(args)], pieces.to_vec()].concat(),
        [vec![item("")], pieces.to_vec(), vec![last("function_call_arguments", "arguments", args)]].concat(),
    ] {
        assert_eq!(calls(&api, &response(&events, &json!([]))), [call("c", "f", args)], "{events:?}");
    }
}

#[cfg(feature = "openai")]
#[test]
fn responses_without_indexes_and_with_ids_that_change_are_one_item_each() {
    let api = crate::provider::openai::OpenAiResponses::default();
    let item = |id: &str, content: Value| json!({"type": "message", "id": id, "role": "assistant", "content": content});
    let text = |text: &str| json!([{"type": "output_text", "text": text, "annotations": []}]);
    let mut events = Vec::new();
    for (number, said) in ["Hi, ", "you."].iter().enumerate() {
        let id = |event: &str| format!("{event}{number}");
        events.push(json!({"type": "response.output_item.added", "item": item(&id("a"), json!([]))}));
        events.push(json!({"type": "response.output_text.delta", "item_id": id("b"), "content_index": 0, "delta": said}));
        events.push(json!({"type": "response.output_item.done", "item": item(&id("c"), text(said))}));
    }
    let output = json!([item("d0", text("Hi, ")), item("d1", text("you."))]);
    let reply = reply(&api, &response(&events, &output));
    assert_eq!((reply.text().as_str(), reply.content.len()), ("Hi, you.", 2));
}

#[cfg(feature = "openai")]
#[test]
fn responses_tools_of_the_provider_may_fail() {
    let api = crate::provider::openai::OpenAiResponses::default();
    let failed =
        json!({"type": "response.mcp_list_tools.failed", "output_index": 9, "error": {"message": "down"}});
    let message = json!([{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]);
    let text = response(&[failed], &message)
        .replace("data: {\"type\":\"response.mcp", "event: ping\ndata: on\n\ndata: {\"type\":\"response.mcp");
    assert_eq!(reply(&api, &text).text(), "Hi");
}

#[cfg(feature = "anthropic")]
#[test]
fn anthropic_deltas_of_the_future_and_inputs_of_null_are_nothing() {
    let api = crate::provider::anthropic::AnthropicMessages::default();
    let text = sse(&[
        json!({"type": "message_start", "message": {"id": "m"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": null}}),
        json!({"type": "content_block_delta", "index": 9, "delta": {"type": "sparkle_delta", "x": 1}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(calls(&api, &text), [call("c", "f", "{}")]);
    let known = text.replace("sparkle_delta", "text_delta");
    assert_eq!(read(&api, "test", 200, known.as_bytes()).1.unwrap().kind(), K::Protocol);
}

#[cfg(feature = "anthropic")]
#[test]
fn anthropic_gets_no_white_space() {
    let api = crate::provider::anthropic::AnthropicMessages::default();
    // Claude writes white space before a call.
    let text = json!({"content": [{"type": "text", "text": "\n\n"}, {"type": "tool_use", "id": "c:1", "name": "f", "input": {}}],
        "stop_reason": "tool_use"});
    let called = reply(&api, &text.to_string());
    assert_eq!(called.text(), "\n\n", "what was written is kept");
    let result = |text: &str| ToolResultMessage::new("c:1", "f", OutcomeKind::Completed).with_content(text);
    let request = ModelRequest::new([
        Message::user(" "),
        Message::user([Part::text("Hi"), Part::text("\t")]),
        called.into(),
        result(" \n").into(),
        Message::user("  "),
        Message::assistant("So far: "),
    ]);
    let sent = body(&api, "claude-x", &request)["messages"].clone();
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c_1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c_1"}]},
        {"role": "assistant", "content": "So far:"}]);
    assert_eq!(sent, expected);
    let blank = ModelRequest::new([Message::user(" \n"), Message::assistant([Part::text("")])]);
    let error = api.encode(&ModelInfo::new("test", "anthropic-messages", "m"), &blank).unwrap_err();
    assert!(error.is_invalid_request() && error.message().contains("white space"), "{error}");
}

#[cfg(feature = "gemini")]
#[test]
fn gemini_empty_places_are_no_parts_and_a_continuation_is_kept() {
    let api = crate::provider::gemini::Gemini::default();
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}, "index": 0}]});
    let end = json!({"candidates": [{"finishReason": "CONTINUATION", "continuationToken": "TOK"}],
        "usageMetadata": {"promptTokenCount": "10", "candidatesTokenCount": 5.0}});
    let reply = reply(
        &api,
        &sse(&[parts(json!([{}, null, {"text": null}, {"text": "H"}])), parts(json!([{"text": "i"}])), end]),
    );
    assert_eq!((reply.text().as_str(), reply.content.len()), ("Hi", 1));
    assert_eq!((reply.usage.input, reply.usage.output), (10, 5));
    assert_eq!(reply.provider_data.unwrap().data["continuationToken"], "TOK");
    assert_eq!(reply.stop_reason, StopReason::Pause);
    // Without a token, the reply cannot be continued.
    for token in [json!(""), json!(null), json!(7)] {
        let end = json!({"candidates": [{"finishReason": "CONTINUATION", "continuationToken": token}]});
        let reply = super::support::reply(&api, &sse(&[parts(json!([{"text": "i"}])), end]));
        assert_eq!(reply.stop_reason, StopReason::Other("CONTINUATION".to_owned()));
    }
    let cited = |uris: &[&str], finish: Option<&str>| {
        let sources: Vec<Value> = uris.iter().map(|uri| json!({"uri": uri})).collect();
        json!({"candidates": [{"citationMetadata": {"citationSources": sources}, "finishReason": finish}]})
    };
    for last in [&["b", "c"][..], &["a", "b", "c"]] {
        let cited = [cited(&["a"], None), cited(last, Some("STOP"))];
        let data = super::support::reply(&api, &sse(&cited)).provider_data.unwrap().data;
        let uris = data["citationMetadata"]["citationSources"].as_array().unwrap();
        assert_eq!(uris.iter().map(|source| source["uri"].clone()).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
