//! Replies and requests with every feature of the protocol, decoded and encoded again.

use serde_json::{Value, json};

use super::*;
use crate::message::{Content, Media, Message, OutcomeKind, Part, StopReason, ToolResultMessage, Usage};
use crate::model::{ManagedTool, ModelErrorKind as K, OutputSchema, Thinking, ToolChoice};
use crate::provider::tests::support::{self, assert_round_trip, body, read, reply};
use crate::tool::definition::ToolDefinition;

fn api() -> OpenAiChat {
    OpenAiChat::default()
}

fn stream(chunks: &[Value]) -> String {
    let chunks: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!(": PROCESSING\n\n{}", chunks.join(": PROCESSING\r\n\r\n"))
}

#[expect(clippy::needless_pass_by_value, reason = "written in place")]
fn delta(delta: Value) -> Value {
    json!({"id": "c1", "model": "gpt-x", "choices": [{"index": 0, "delta": delta, "finish_reason": null}], "obfuscation": "x"})
}

fn finish(word: &str) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
}

fn done(chunks: &[Value]) -> String {
    stream(chunks) + "data: [DONE]\n\n"
}

fn calls(body: &str) -> Vec<(String, String, String)> {
    let reply = reply(&api(), body);
    let call =
        |call: &crate::message::ToolCall| (call.id.clone(), call.name.clone(), call.args.text().to_owned());
    reply.tool_calls().map(call).collect()
}

fn call(id: &str, name: &str, args: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), args.to_owned())
}

#[test]
fn streams_and_bodies_decode_to_one_message() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 3}});
    let streamed = done(&[
        json!({"id": "", "model": "", "choices": [], "prompt_filter_results": []}),
        delta(json!({"role": "assistant", "content": "", "refusal": null})),
        delta(json!({"reasoning_content": "Hm"})),
        delta(json!({"reasoning_content": ".", "content": ""})),
        delta(json!({"content": "I lo", "new_field": {"x": 1}})),
        delta(json!({"content": "ok."})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "id": "", "function": {"arguments": "{\"x\""}},
            {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"name": null, "arguments": ":1}"}}]})),
        finish("tool_calls"),
        json!({"id": "c1", "choices": [], "usage": usage}),
    ]);
    let whole = json!({"id": "c1", "model": "gpt-x", "object": "chat.completion", "usage": usage, "choices": [{"index": 0,
        "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "refusal": null,
        "annotations": [], "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}}]});
    let (streamed, whole) = (reply(&api(), &streamed), reply(&api(), &whole.to_string()));
    assert_eq!(streamed, whole);
    assert_eq!((whole.text().as_str(), whole.thinking().as_str()), ("I look.", "Hm."));
    assert_eq!(
        (whole.stop_reason.clone(), whole.provider_stop_reason.as_deref()),
        (StopReason::ToolUse, Some("tool_calls"))
    );
    let counts = |usage: &Usage| {
        [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning, usage.total]
    };
    assert_eq!(counts(&whole.usage), [10, 5, 4, 2, 3, 15]);

    // Thinking is sent back only to the provider that it came from, in the field in which it arrived.
    let request = ModelRequest::new([Message::user("Hi"), whole.into()]);
    let own = body(&api(), "gpt-x", &request);
    assert_eq!(
        own["messages"][1],
        json!({"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]})
    );
    let foreign = api().encode(&ModelInfo::new("other", "openai-chat", "m"), &request).unwrap().json();
    assert!(foreign["messages"][1].get("reasoning_content").is_none());
}

#[test]
fn calls_of_compatible_servers_are_understood() {
    // A whole call in one delta, without an index. Ids can be missing, and arguments can be an object.
    let bare = |id: Value, name: &str, args: Value| {
        delta(json!({"tool_calls": [{"id": id, "function": {"name": name, "arguments": args}}]}))
    };
    let body = done(&[bare(json!("x"), "f", json!("{}")), bare(json!("y"), "g", json!("")), finish("stop")]);
    assert_eq!(calls(&body), [call("x", "f", "{}"), call("y", "g", "{}")]);
    let body = done(&[bare(Value::Null, "f", json!({"a": 1})), finish("tool_calls")]);
    assert_eq!(calls(&body), [call("call_1", "f", r#"{"a":1}"#)]);
    // Every call has the index 0.
    let zero = |id: &str, args: &str| {
        delta(json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "f", "arguments": args}}]}))
    };
    assert_eq!(
        calls(&done(&[zero("x", "{}"), zero("y", "[]"), finish("x")])),
        [call("x", "f", "{}"), call("y", "f", "[]")]
    );
    // The name arrives late. Pieces without an index, an id and a name continue the last call.
    let late = done(&[
        delta(json!({"tool_calls": [{"index": 0, "id": "x", "function": {"arguments": "{\"a\""}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"name": "f"}}]})),
        delta(json!({"tool_calls": [{"function": {"arguments": ":1}"}}]})),
        finish("tool_calls"),
    ]);
    assert_eq!(calls(&late), [call("x", "f", r#"{"a":1}"#)]);
    let old = done(&[
        delta(json!({"function_call": {"name": "f", "arguments": "{\"a\""}})),
        delta(json!({"function_call": {"arguments": ":1}"}})),
        finish("function_call"),
    ]);
    assert_eq!(calls(&old), [call("call_1", "f", r#"{"a":1}"#)]);
    // In a whole response, two calls stay separate, whatever their ids and indexes.
    let twice = json!({"id": "x", "index": 0, "function": {"name": "f", "arguments": "{}"}});
    let body =
        json!({"choices": [{"message": {"tool_calls": [twice, twice]}, "finish_reason": ""}]}).to_string();
    assert_eq!(calls(&body), [call("x", "f", "{}"), call("x_2", "f", "{}")]);
    // Arguments that are not JSON stay unchanged: argument validation reports them.
    let body = done(&[bare(json!("x"), "f", json!("{\"x\":")), finish("tool_calls")]);
    assert_eq!(calls(&body), [call("x", "f", "{\"x\":")]);
    // A call whose name never arrives is an error, not a reply without a call.
    let nameless = done(&[bare(json!("x"), "", json!("{}")), finish("tool_calls")]);
    assert_eq!(read(&api(), "test", 200, nameless.as_bytes()).1.unwrap().kind(), K::Protocol);
}

#[test]
fn custom_calls_are_one_part_each_and_go_back_with_their_results() {
    let call = json!({"id": "call_7", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}});
    let piece = |piece: Value| delta(json!({"tool_calls": [piece]}));
    let streamed = done(&[
        piece(json!({"index": 0, "id": "call_7", "type": "custom", "custom": {"name": "sql", "input": ""}})),
        piece(json!({"index": 0, "custom": {"input": "SELECT"}})),
        piece(json!({"index": 0, "type": "custom", "custom": {"input": " 1"}})),
        finish("tool_calls"),
    ]);
    let whole = json!({"id": "c1", "model": "gpt-x",
        "choices": [{"message": {"content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let called = reply(&api(), &streamed);
    assert_eq!(called, reply(&api(), &whole.to_string()));
    let result = ToolResultMessage::new("call_7", "sql", OutcomeKind::Completed).with_content("1");
    let sent = |next: Message| {
        body(&api(), "m", &ModelRequest::new([Message::from(called.clone()), next]))["messages"].clone()
    };
    assert_eq!(sent(result.into())[0], json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    assert_eq!(sent(Message::user("And?")), json!([{"role": "user", "content": "And?"}]));
}

#[test]
fn a_reply_with_only_thinking_is_sent_back_and_one_without_content_is_not() {
    let cut = reply(&api(), &done(&[delta(json!({"reasoning_content": "Hm"})), finish("length")]));
    let heard = reply(&api(), &done(&[delta(json!({"audio": {"id": "a", "data": "UklG"}})), finish("stop")]));
    let request = ModelRequest::new([Message::from(cut), heard.into()]);
    assert_eq!(
        body(&api(), "m", &request)["messages"],
        json!([{"role": "assistant", "content": "", "reasoning_content": "Hm"}])
    );
}

#[test]
fn text_and_thinking_are_found_where_servers_put_them() {
    let listed = done(&[
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]})),
        delta(json!({"content": [{"type": "text", "text": "Yes"}, {"type": "image", "x": 1}]})),
        finish("stop"),
    ]);
    let listed = reply(&api(), &listed);
    assert_eq!((listed.thinking().as_str(), listed.text().as_str()), ("Hm", "Yes"));
    assert!(matches!(&listed.content[2].content, Content::Opaque(part) if part.data["x"] == 1));
    for delta_of_thinking in [
        json!({"reasoning": "Hm"}),
        json!({"reasoning_text": "Hm"}),
        json!({"reasoning_content": "Hm", "reasoning": "Hm"}),
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "Hm", "signature": "s"}]}),
    ] {
        assert_eq!(reply(&api(), &done(&[delta(delta_of_thinking), finish("stop")])).thinking(), "Hm");
    }
    // `reasoning_details` are sent back unchanged, in order.
    let detail = |text: &str| json!({"type": "reasoning.encrypted", "data": text, "index": 0});
    let stated = done(&[
        delta(json!({"reasoning_details": [detail("a")]})),
        delta(json!({"reasoning_details": [detail("b")], "content": "x"})),
        finish("stop"),
    ]);
    let request = ModelRequest::new([Message::from(reply(&api(), &stated)), Message::user("And?")]);
    assert_eq!(
        body(&api(), "m", &request)["messages"][0]["reasoning_details"],
        json!([detail("a"), detail("b")])
    );
    for compat in [Compat::plain().without_echo(), Compat::plain().with_echo_within_turn()] {
        let messages = body(&api().with_compat(compat), "m", &request)["messages"].clone();
        assert_eq!(messages[0], json!({"role": "assistant", "content": "x"}));
    }
}

#[test]
fn endings_are_read() {
    for (word, reason) in [
        ("stop", StopReason::Stop),
        ("length", StopReason::MaxTokens),
        ("max_tokens", StopReason::MaxTokens),
        ("function_call", StopReason::ToolUse),
        ("content_filter", StopReason::ContentFilter),
        ("error", StopReason::Error),
        ("sunset", StopReason::Other("sunset".to_owned())),
    ] {
        let ended = reply(&api(), &done(&[delta(json!({"content": "x"})), finish(word)]));
        assert_eq!((ended.stop_reason, ended.provider_stop_reason.as_deref()), (reason, Some(word)));
    }
    // A reply is complete with a finish reason, or with `[DONE]`.
    assert_eq!(reply(&api(), &stream(&[delta(json!({"content": "x"})), finish("stop")])).text(), "x");
    assert_eq!(reply(&api(), &done(&[delta(json!({"content": "x"}))])).stop_reason, StopReason::Stop);
    let (partial, error) = read(&api(), "test", 200, stream(&[delta(json!({"content": "x"}))]).as_bytes());
    assert_eq!((partial.text().as_str(), error.unwrap().kind()), ("x", K::Protocol));

    let refused = reply(
        &api(),
        &done(&[delta(json!({"refusal": "I ca"})), delta(json!({"refusal": "nnot."})), finish("stop")]),
    );
    assert_eq!(
        (refused.refusal().as_deref(), refused.stop_reason),
        (Some("I cannot."), StopReason::ContentFilter)
    );
    let empty = reply(&api(), &done(&[delta(json!({"content": "x", "refusal": ""})), finish("stop")]));
    assert_eq!((empty.refusal(), empty.stop_reason), (None, StopReason::Stop));
}

#[test]
fn usage_is_found_in_any_field() {
    let read = |chunk: Value| {
        let usage = reply(&api(), &done(&[delta(json!({"content": "x"})), chunk])).usage;
        [usage.input, usage.output, usage.cache_read, usage.reasoning, usage.total]
    };
    let said = json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4});
    assert_eq!(
        read(json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": said}]})),
        [9, 2, 4, 0, 11]
    );
    assert_eq!(read(json!({"choices": [], "x_groq": {"usage": said}})), [9, 2, 4, 0, 11]);
    assert_eq!(
        read(json!({"choices": [], "usage": {"input_tokens": 3, "output_tokens": 4}})),
        [3, 4, 0, 0, 7]
    );
    // The total shows that `completion_tokens` does not include the reasoning tokens.
    let apart = json!({"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 16});
    assert_eq!(read(json!({"choices": [], "usage": apart})), [9, 7, 0, 5, 16]);
    assert_eq!(
        read(json!({"choices": [], "usage": {"prompt_tokens": null, "completion_tokens": -1}})),
        [0; 5]
    );
    assert!(reply(&api(), &done(&[finish("stop")])).usage.is_empty());
}

#[test]
fn errors_are_distinguished_in_all_their_forms() {
    for (body, kind, code) in [
        (
            json!({"error": {"message": "m", "type": "invalid_request_error", "code": null}}),
            K::InvalidRequest,
            Some("invalid_request_error"),
        ),
        (
            json!({"error": {"message": "m", "code": "context_length_exceeded"}}),
            K::ContextTooLong,
            Some("context_length_exceeded"),
        ),
        (
            json!({"error": {"message": "This model's maximum context length is 8", "type": "x"}}),
            K::ContextTooLong,
            Some("x"),
        ),
        (json!({"error": {"message": "m", "code": 429}}), K::InvalidRequest, Some("429")),
        (json!({"error": "m"}), K::InvalidRequest, None),
        (json!({"message": "m", "object": "error"}), K::InvalidRequest, None),
        (json!({"detail": "m"}), K::InvalidRequest, None),
        (json!([{"error": {"message": "m", "code": "invalid_api_key"}}]), K::Auth, Some("invalid_api_key")),
    ] {
        let error = read(&api(), "test", 400, body.to_string().as_bytes()).1.unwrap();
        assert_eq!((error.kind(), error.code(), error.status()), (kind, code, Some(400)), "{body}");
        assert!(error.message().contains('m'), "{error}");
    }
    // Errors in responses with status 200: in an event, and next to a choice. The number in the error replaces the status.
    let said = delta(json!({"content": "x"}));
    let event = format!(
        "event: error\ndata: {}\n\n",
        json!({"error": {"message": "busy", "code": "overloaded", "status_code": 503}})
    );
    let beside = json!({"choices": [{"delta": {"content": ""}, "finish_reason": null}], "error": {"code": 502, "message": "busy"}});
    for (tail, kind, status) in [(event, K::Overloaded, 503), (done(&[beside]), K::Server, 502)] {
        let (partial, error) =
            read(&api(), "test", 200, (stream(std::slice::from_ref(&said)) + &tail).as_bytes());
        let error = error.unwrap();
        assert_eq!(
            (partial.text().as_str(), error.kind(), error.status(), error.message()),
            ("x", kind, Some(status), "busy")
        );
        assert!(error.is_retryable());
    }
    for body in
        ["", "<html>", "{}", "null", r#"{"choices": []}"#, "data: nope\n\n", "data: \n\n", ": nothing\n\n"]
    {
        assert_eq!(read(&api(), "test", 200, body.as_bytes()).1.unwrap().kind(), K::Protocol, "{body:?}");
    }
}

fn tool(name: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    support::tool(name, &schema)
}

#[test]
fn a_request_has_everything_in_its_place() {
    let failed = ToolResultMessage::new("c2", "f", OutcomeKind::Failed)
        .with_content([Part::text("no"), Part::image(b"png", "image/png")]);
    let mut request = ModelRequest::new([
        Message::user([
            Part::text("Look"),
            Part::image_url("https://a.example/i.png"),
            Part::audio(b"wav", "audio/wav"),
            Part::new(Content::Document(Media::data(b"%PDF", "application/pdf").with_name("a.pdf"))),
            Part::new(Content::Document(Media::file_id("file_1"))),
        ]),
        Message::assistant([
            Part::thinking("of another"),
            Part::tool_call("c1", "f", ""),
            Part::tool_call("c2", "f", "{broken"),
        ]),
        ToolResultMessage::new("c1", "f", OutcomeKind::Completed).with_content("3").into(),
        failed.into(),
        Message::user("And?"),
        Message::assistant([Part::thinking("nothing else")]),
    ]);
    request.cache_key = Some("k".into());
    let request = request
        .with_system("Be brief.")
        .with_tools([tool("f")])
        .with_managed_tools([ManagedTool::web_search()])
        .with_strict_tools(true)
        .with_tool_choice(ToolChoice::Tool("f".into()))
        .with_parallel_tool_calls(false)
        .with_max_tokens(99)
        .with_temperature(0.5)
        .with_top_p(0.9)
        .with_stop(["END"])
        .with_metadata("user_id", "u1")
        .with_output(OutputSchema::new(
            "answer",
            json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}),
        ))
        .with_provider_options("test", json!({"seed": 7}));
    let written = body(&api(), "gpt-4o-search-preview", &request);
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "Look"},
            {"type": "image_url", "image_url": {"url": "https://a.example/i.png"}},
            {"type": "input_audio", "input_audio": {"data": "d2F2", "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
            {"type": "file", "file": {"file_id": "file_1"}}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{broken"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no"},
        {"role": "user", "content": [{"type": "text", "text": "What `f` (call c2) shows:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}]},
        {"role": "user", "content": "And?"},
    ]);
    assert_eq!(written["messages"], messages);
    assert_eq!(written["tools"][0]["function"]["strict"], true);
    assert_eq!(written["tools"][0]["function"]["parameters"]["required"], json!(["a", "b"]));
    assert_eq!(written["response_format"]["json_schema"]["strict"], true);
    for (key, value) in [
        ("tool_choice", json!({"type": "function", "function": {"name": "f"}})),
        ("parallel_tool_calls", json!(false)),
        ("max_completion_tokens", json!(99)),
        ("temperature", json!(0.5)),
        ("top_p", json!(0.9)),
        ("stop", json!(["END"])),
        ("user", json!("u1")),
        ("prompt_cache_key", json!("k")),
        ("web_search_options", json!({})),
        ("stream", json!(true)),
        ("seed", json!(7)),
        ("stream_options", json!({"include_usage": true})),
    ] {
        assert_eq!(written[key], value, "{key}");
    }
    let thinking = request.with_managed_tools([]).with_thinking(Thinking::Medium);
    let written = body(&api(), "gpt-5.1", &thinking);
    assert_eq!(
        (&written["reasoning_effort"], &written["messages"][0]["role"]),
        (&json!("medium"), &json!("developer"))
    );
    for refused in ["temperature", "top_p", "stop"] {
        assert!(written.get(refused).is_none(), "{refused}");
    }
    assert!(body(&api(), "gpt-4o", &thinking).get("reasoning_effort").is_none());
    let none = body(&api(), "gpt-5.1", &thinking.with_thinking(Thinking::None));
    assert_eq!((&none["reasoning_effort"], &none["temperature"]), (&json!("none"), &json!(0.5)));
    assert!(none.get("stop").is_none());
}

#[test]
fn servers_get_the_fields_that_they_support() {
    let compat = Compat {
        max_tokens_field: "max_tokens".into(),
        system_role: Some("user".into()),
        stream_usage: false,
        parallel_tool_calls: false,
        strict: false,
        tool_result_name: true,
        ..Compat::default()
    };
    let api = api().with_compat(compat);
    let request =
        ModelRequest::new([Message::from(ToolResultMessage::new("c", "f", OutcomeKind::Completed))])
            .with_system("S")
            .with_max_tokens(3)
            .with_tools([tool("f")])
            .with_strict_tools(true)
            .with_parallel_tool_calls(true);
    let plain = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    assert_eq!(
        body(&api, "m", &request),
        json!({"model": "m", "messages": [{"role": "user", "content": "S"},
        {"role": "tool", "tool_call_id": "c", "name": "f", "content": ""}], "stream": true, "max_tokens": 3, "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "f", "description": "Does it.", "parameters": plain}}]})
    );
}

#[test]
fn unsupported_requests_are_refused_with_a_reason() {
    let info = ModelInfo::new("test", "openai-chat", "m");
    let refused = |request: ModelRequest| api().encode(&info, &request).unwrap_err().message().to_owned();
    let document = Part::new(Content::Document(Media::url("https://a.example/a.pdf")));
    assert!(refused(ModelRequest::new([Message::user([document])])).contains("behind a URL"));
    let sound = Part::new(Content::Audio(Media::file_id("file_1")));
    assert!(refused(ModelRequest::new([Message::user([sound])])).contains("uploaded sound"));
    assert!(
        refused(ModelRequest::default().with_managed_tools([ManagedTool::CodeExecution]))
            .contains("run code")
    );
    let foreign = ManagedTool::other("acme", json!({"type": "x"}));
    assert!(refused(ModelRequest::default().with_managed_tools([foreign])).contains("`acme`"));
}

#[test]
fn requests_are_read_and_written_again() {
    let request = assert_round_trip(
        &api(),
        &json!({
            "model": "gpt-4o", "stream": false, "n": 1, "max_tokens": 5, "temperature": 1.0, "reasoning_effort": "high", "stop": "x",
            "tool_choice": "required", "response_format": {"type": "json_object"},
            "tools": [{"function": {"name": "no_type", "parameters": {"type": "object"}}}, {"type": "other:search", "parameters": {}},
                {"type": "function", "function": {"name": "g", "description": "", "parameters": {"type": "object", "properties": {}}, "strict": true}}],
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "developer", "content": [{"type": "text", "text": "D", "cache_control": {"type": "ephemeral"}}]},
                {"role": "user", "content": [{"type": "text", "text": "alone"}], "name": "ann"},
                {"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQI=", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQI"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "https://a.example/a.pdf"}},
                    {"type": "input_audio", "input_audio": {"data": "AQI=", "format": "mp3"}},
                    {"type": "hologram", "hologram": {"x": 1}}]},
                {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}, "extra_content": {"s": 1}}]},
                {"role": "tool", "tool_call_id": "a", "content": "Error: x", "name": "f"},
                {"role": "assistant", "content": null, "reasoning_content": "", "refusal": "No.", "tool_calls": [
                    {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{ \"a\" : 1.0 }"}}]},
                {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "t"}]},
                {"role": "assistant", "content": "", "reasoning_details": [{"data": "x"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}], "audio": {"id": "x"}}],
        }),
    );
    assert_eq!(request.system.as_deref(), Some("S"));
    let results: Vec<_> = request.messages.iter().filter_map(|message| message.as_tool_result()).collect();
    assert_eq!(results.iter().map(|result| result.tool.as_str()).collect::<Vec<_>>(), ["f", "f"]);
    for broken in [
        json!([]),
        json!({"messages": []}),
        json!({"model": "m"}),
        json!({"model": "m", "messages": [{"role": "x"}]}),
    ] {
        assert!(api().parse_request("test", &broken).is_err());
    }
}

#[test]
fn errors_are_found_wherever_servers_put_them() {
    let error = json!({"message": "It broke.", "code": "server_error"});
    let whole = json!({"object": "error", "message": "It broke.", "code": "server_error"});
    let choice = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": error}]});
    for last in [whole, choice, json!({"x_groq": {"error": error}}), json!([{"error": error}])] {
        for body in [done(&[delta(json!({"content": "x"})), last.clone()]), last.to_string()] {
            let (_, failed) = read(&api(), "test", 200, body.as_bytes());
            let failed = failed.unwrap();
            assert_eq!((failed.message(), failed.code()), ("It broke.", Some("server_error")), "{body}");
        }
    }
    let raw = format!("{}{{\"error\": \"boom\"}}\n", stream(&[delta(json!({"content": "x"}))]));
    for body in [raw.as_str(), "event: error\ndata: boom\n\n"] {
        assert_eq!(read(&api(), "test", 200, body.as_bytes()).1.unwrap().message(), "boom");
    }
    // A stream without a reply is an error, not an empty reply.
    for body in
        ["data: [DONE]\n\n", "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n"]
    {
        assert_eq!(read(&api(), "test", 200, body.as_bytes()).1.unwrap().kind(), K::Protocol, "{body}");
    }
    let quiet = stream(&[delta(json!({"content": "x"}))]) + "data:\n\n" + &done(&[finish("stop")]);
    assert_eq!(reply(&api(), &quiet).text(), "x");
}

#[test]
fn a_field_that_is_too_long_is_not_the_conversation() {
    let error = |body: Value| api().error(400, &[], body.to_string().as_bytes());
    let of_code = |code: &str| error(json!({"error": {"message": "m", "code": code}})).kind();
    assert_eq!(of_code("string_above_max_length"), K::InvalidRequest);
    assert_eq!(of_code("context_length_exceeded"), K::ContextTooLong);
    let long = error(json!({"error": {"message": "Your input exceeds the context window of this model."}}));
    assert_eq!(long.kind(), K::ContextTooLong);
}

#[test]
fn pieces_are_joined_and_sent_back() {
    let detail = |detail: Value| delta(json!({"reasoning_details": [detail]}));
    let chunks = [
        detail(json!({"type": "reasoning.text", "text": "Hm", "index": 0, "signature": null})),
        detail(json!({"type": "reasoning.text", "text": ". ", "index": 0})),
        detail(json!({"type": "reasoning.text", "signature": "S1", "index": 1})),
        detail(json!({"type": "reasoning.text", "text": "So.", "index": 0})),
        detail(json!({"type": "reasoning.encrypted", "data": "A", "id": "r1"})),
        detail(json!({"type": "reasoning.encrypted", "data": "B", "id": "r2"})),
        delta(json!({"audio": {"id": "a", "data": "UklG", "transcript": "Good "}})),
        delta(json!({"audio": {"data": "RgAB", "transcript": "day"}})),
        delta(json!({"audio": {"expires_at": 7}})),
        delta(json!({"content": "x"})),
        finish("stop"),
    ];
    let data = reply(&api(), &done(&chunks)).provider_data.unwrap().data;
    let details = json!([
        {"type": "reasoning.text", "text": "Hm. ", "index": 0, "signature": "S1"},
        {"type": "reasoning.text", "text": "So.", "index": 0},
        {"type": "reasoning.encrypted", "data": "A", "id": "r1"},
        {"type": "reasoning.encrypted", "data": "B", "id": "r2"},
    ]);
    assert_eq!(data["reasoning_details"], details);
    let sound = json!({"id": "a", "data": "UklGRgAB", "transcript": "Good day", "expires_at": 7});
    assert_eq!(data["audio"], sound);
}

#[test]
fn a_cut_within_an_event_keeps_what_a_cut_between_events_keeps() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    let whole = stream(&[delta(json!({"refusal": "No."})), usage]);
    for body in [whole.clone(), whole + "data: {\"choi"] {
        let (partial, error) = read(&api(), "test", 200, body.as_bytes());
        let error = error.unwrap();
        assert!(error.kind() == K::Protocol && error.is_retryable(), "{error:?}");
        assert_eq!((partial.refusal().as_deref(), partial.usage.input), (Some("No."), 3));
    }
}
