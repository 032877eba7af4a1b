//! Requests in rare forms that providers accept. Parsing and encoding must return each of them unchanged.

use serde_json::{Value, json};

use super::support::assert_round_trip;

/// Creates a request in which a function `f` was called with the id `c1`, followed by these messages.
#[cfg(feature = "openai")]
fn chat(answers: &[Value]) -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
    let mut messages = vec![
        json!({"role": "user", "content": "a"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
    ];
    messages.extend_from_slice(answers);
    json!({"model": "gpt-4o", "messages": messages})
}

#[cfg(feature = "openai")]
#[test]
fn chat_completions() {
    let api = crate::provider::openai::OpenAiChat::default();
    let image = json!({"type": "image_url", "image_url": {"url": "https://a.example/i.png"}});
    let said = |messages: Value| json!({"model": "gpt-5", "messages": messages, "stream": true});
    for given in [
        said(
            json!([{"role": "developer", "content": "S", "name": "bob"}, {"role": "user", "content": "a", "name": "ann"},
            {"role": "system", "content": [{"type": "text", "text": "T"}], "name": "carl"}]),
        ),
        said(
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": null}, {"role": "assistant", "content": []},
            {"role": "assistant", "content": ""}, {"role": "assistant"}, {"role": "user", "content": []}]),
        ),
        chat(&[json!({"role": "tool", "tool_call_id": "c1", "content": null})]),
        chat(&[json!({"role": "tool", "tool_call_id": "c1", "content": []})]),
        // Results with images, which some servers accept.
        chat(&[
            json!({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}, image]}),
        ]),
        // The older form of calls and results.
        said(json!([{"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "3"}, {"role": "function", "name": "f", "content": null}])),
        // A long id that the server itself made.
        said(
            json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "chatcmpl-tool-0123456789abcdef0123456789abcdef",
                "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "chatcmpl-tool-0123456789abcdef0123456789abcdef", "content": "3"}]),
        ),
        said(json!([{"role": "assistant", "content": "Here.", "images": [image]}])),
        // Null in fields that the encoder usually writes.
        json!({"model": "m", "messages": [], "stream": null, "stream_options": null, "stop": null, "tools": null, "temperature": null}),
        // Settings that a reasoning model refuses are kept.
        json!({"model": "gpt-5", "messages": [], "stop": ["x"], "temperature": 1, "stream": true}),
    ] {
        assert_round_trip(&api, &given);
    }
    let request = assert_round_trip(&api, &chat(&[json!({"role": "function", "name": "g", "content": "3"})]));
    assert_eq!(request.messages.iter().find_map(|message| message.as_tool_result()).unwrap().tool, "g");
}

#[cfg(feature = "openai")]
#[test]
fn responses() {
    let api = crate::provider::openai::OpenAiResponses::default();
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": []});
    let call = json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"});
    let said = |input: Value| json!({"model": "gpt-5", "input": input, "store": true});
    for given in [
        // A prompt that the provider stores.
        json!({"model": "gpt-5", "previous_response_id": "resp_1"}),
        json!({"model": "gpt-5", "input": null, "prompt": {"id": "pmpt_1", "variables": {"x": "y"}}, "stream": false}),
        json!({"model": "gpt-5", "input": "Hi", "store": null, "stream": null, "include": null, "tools": null}),
        json!({"model": "gpt-5", "input": [reasoning, call], "store": null}),
        json!({"model": "gpt-5", "input": [reasoning, call]}),
        // Empty contents.
        said(
            json!([{"role": "user", "content": []}, {"role": "assistant", "content": ""}, {"role": "user", "content": "b"}, call,
            {"type": "function_call_output", "call_id": "c1", "output": []}]),
        ),
        said(json!([call, {"type": "function_call_output", "call_id": "c1", "output": ""}])),
        // System messages with further fields.
        said(
            json!([{"role": "assistant", "content": "x"}, {"role": "developer", "type": "message", "content": "d", "id": "m"},
            {"role": "system", "content": [{"type": "input_text", "text": "s"}], "status": "completed"}]),
        ),
    ] {
        assert_round_trip(&api, &given);
    }
}

#[cfg(feature = "anthropic")]
#[test]
fn anthropic() {
    let api = crate::provider::anthropic::AnthropicMessages::default();
    let called =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": 1}, "caller": null});
    let result = |id: &str, rest: Value| {
        let mut block = json!({"type": "tool_result", "tool_use_id": id});
        block.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        block
    };
    let said = |messages: Value| json!({"model": "claude-x", "max_tokens": 5, "messages": messages});
    let asked = json!({"role": "assistant", "content": [called("t1"), called("t2")]});
    let both = json!([result("t1", json!({"content": "1"})), result("t2", json!({"content": "2"}))]);
    let [one, two] = [0, 1].map(|at| json!({"role": "user", "content": [both[at]]}));
    for given in [
        // Results and the messages after them, in separate messages.
        said(json!([asked, {"role": "user", "content": both}, {"role": "user", "content": "b"}])),
        said(
            json!([asked, {"role": "user", "content": both}, {"role": "user", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "content": "c"}]),
        ),
        said(json!([asked, one, two])),
        said(json!([asked, one, {"role": "user", "content": [both[1], {"type": "text", "text": "b"}]}])),
        // Empty results.
        said(
            json!([asked, {"role": "user", "content": [result("t1", json!({"content": ""})), result("t2", json!({"content": []}))]}]),
        ),
        said(
            json!([asked, {"role": "user", "content": [result("t1", json!({"content": " \n"})), result("t2", json!({}))]}]),
        ),
        // The result of a provider's tool, without content.
        said(
            json!([{"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "m", "name": "x", "server_name": "s", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": false}]}, {"role": "user", "content": "go on"}]),
        ),
        said(
            json!([{"role": "system", "content": [{"type": "text", "text": "s"}], "new": 1}, {"role": "user", "content": "a", "new": 2}]),
        ),
        json!({"model": "claude-x", "max_tokens": 5, "messages": [], "stream": null, "system": null, "tools": null}),
    ] {
        assert_round_trip(&api, &given);
    }
}

#[cfg(feature = "gemini")]
#[test]
fn gemini() {
    let api = crate::provider::gemini::Gemini::default();
    let asked = json!({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}},
        {"functionCall": {"name": "g", "args": {}}}]});
    let answer = |rest: Value| {
        let mut response = json!({"name": "f", "response": {"output": "ok"}});
        response.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({"functionResponse": response})
    };
    let of_user = |parts: Value| json!({"contents": [asked, {"role": "user", "parts": parts}]});
    let text = json!({"text": "x"});
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "AQI="}});
    let named = json!({"inlineData": {"mimeType": "image/png", "data": "AQI=", "displayName": "x.png"}});
    let mut signed = answer(json!({}));
    signed["thoughtSignature"] = json!("U0lH");
    for given in [
        // Fields of a result other than `name` and `response`.
        of_user(json!([answer(json!({"parts": [named, picture]}))])),
        of_user(json!([answer(json!({"parts": []}))])),
        of_user(json!([answer(
            json!({"scheduling": "SILENT", "willContinue": true, "id": null, "new": [1]})
        )])),
        of_user(json!([signed])),
        of_user(
            json!([{"functionResponse": {"name": "f"}}, {"functionResponse": {"name": "g", "response": null}}]),
        ),
        // Texts before, between and after results.
        of_user(json!([text, answer(json!({}))])),
        of_user(json!([answer(json!({})), text, answer(json!({})), text])),
        of_user(json!([text, answer(json!({})), answer(json!({}))])),
        json!({"contents": [asked, {"role": "user", "parts": [answer(json!({})), text]}, {"role": "user", "parts": [answer(json!({}))]},
            {"role": "user", "parts": [answer(json!({}))]}, {"role": "user", "parts": [text]}]}),
        // Unusual roles, and messages without a role.
        json!({"contents": [{"parts": [text]}, {"role": null, "parts": [text]}, asked, {"role": "function", "parts": [answer(json!({}))]},
            {"parts": [answer(json!({}))]}]}),
        // Contents with further fields, and empty contents.
        json!({"contents": [{"role": "user", "parts": [text], "new": 1}, {"role": "model", "parts": [text], "new": 2},
            {"role": "model", "parts": []}, {"role": "user", "parts": []}]}),
        // Cached content together with a system prompt.
        json!({"contents": [], "cachedContent": "cachedContents/1", "systemInstruction": {"parts": [text]}}),
        json!({"contents": [], "cachedContent": null, "generationConfig": {"temperature": null, "topP": 0.5}, "tools": null}),
    ] {
        let request = assert_round_trip(&api, &given);
        for result in request.messages.iter().filter_map(|message| message.as_tool_result()) {
            assert!(["f", "g"].contains(&result.tool.as_str()), "{given}");
        }
    }
}
