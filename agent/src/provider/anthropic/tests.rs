//! Tests that read and write replies and requests with the features of Anthropic's protocol.

use serde_json::{Value, json};

use super::*;
use crate::message::{
    AssistantMessage, CacheMark, Content, Media, Message, OutcomeKind, Part, ProviderData, StopReason,
    ToolResultMessage, Usage,
};
use crate::model::{ManagedTool, ModelErrorKind as K, OutputSchema, Thinking, ToolChoice};
use crate::provider::tests::support::{self, assert_round_trip, body, read, reply};
use crate::tool::definition::ToolDefinition;

fn api() -> AnthropicMessages {
    AnthropicMessages::default()
}

/// Returns the events as a server sends them: with their names, and with pings, comments and unknown events in between.
fn stream(events: &[Value]) -> String {
    let one = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let events: Vec<String> = events.iter().map(one).collect();
    events.join("event: ping\ndata: {\"type\":\"ping\"}\n\n: comment\n\nevent: new\ndata: {\"type\":\"new_event\"}\n\n")
}

fn start(block: &Value) -> Value {
    json!({"type": "content_block_start", "index": block["index"], "content_block": block["block"]})
}

fn blocks() -> Vec<Value> {
    vec![
        json!({"type": "thinking", "thinking": "Hm. ", "signature": "EqQB+/=="}),
        json!({"type": "redacted_thinking", "data": "Em8K"}),
        json!({"type": "text", "text": "I look.", "citations": [{"type": "web_search_result_location", "encrypted_index": "x"}]}),
        json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "rust"}, "caller": {"type": "direct"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result", "encrypted_content": "E+/="}]}),
        json!({"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"b": 2, "a": 1.0}, "caller": {"type": "direct"}}),
        json!({"type": "compaction", "content": "All before."}),
        json!({"type": "hologram", "depth": [3]}),
    ]
}

fn streamed() -> String {
    let delta =
        |index: usize, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude-x", "content": [],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}}}),
    ];
    for (index, block) in blocks().iter().enumerate() {
        let mut begun = block.clone();
        let deltas = match block["type"].as_str().unwrap() {
            "thinking" => {
                (begun["thinking"], begun["signature"]) = (json!(""), json!(""));
                vec![
                    json!({"type": "thinking_delta", "thinking": "Hm"}),
                    json!({"type": "thinking_delta", "thinking": ". "}),
                    json!({"type": "signature_delta", "signature": block["signature"]}),
                ]
            }
            "text" => {
                (begun["text"], begun["citations"]) = (json!(""), json!([]));
                vec![
                    json!({"type": "text_delta", "text": "I "}),
                    json!({"type": "citations_delta", "citation": block["citations"][0]}),
                    json!({"type": "text_delta", "text": "look."}),
                    json!({"type": "new_delta", "x": 1}),
                ]
            }
            "server_tool_use" | "tool_use" => {
                begun["input"] = json!({});
                let text = block["input"].to_string();
                let (head, tail) = text.split_at(4);
                ["", head, tail]
                    .map(|text| json!({"type": "input_json_delta", "partial_json": text}))
                    .to_vec()
            }
            "compaction" => {
                begun["content"] = Value::Null;
                vec![json!({"type": "compaction_delta", "content": "All before."})]
            }
            _ => vec![],
        };
        events.push(start(&json!({"index": index, "block": begun})));
        events.extend(deltas.into_iter().map(|d| delta(index, d)));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "container": {"id": "c_1"}},
        "usage": {"input_tokens": 11, "output_tokens": 40, "output_tokens_details": {"thinking_tokens": 7}}}),
    );
    events.push(json!({"type": "message_stop"}));
    stream(&events)
}

#[test]
fn streams_and_bodies_decode_to_one_message_and_encode_back() {
    let usage = json!({"input_tokens": 11, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 40,
        "output_tokens_details": {"thinking_tokens": 7}});
    let whole = json!({"type": "message", "id": "msg_1", "model": "claude-x", "content": blocks(), "stop_reason": "tool_use",
        "container": {"id": "c_1"}, "usage": usage});
    let (streamed, whole) = (reply(&api(), &streamed()), reply(&api(), &whole.to_string()));
    assert_eq!(streamed, whole);
    assert_eq!((whole.text().as_str(), whole.thinking().as_str()), ("I look.", "Hm. "));
    assert_eq!(whole.tool_calls().map(|call| call.args.text()).collect::<Vec<_>>(), [r#"{"b":2,"a":1.0}"#]);
    assert_eq!(
        (whole.stop_reason.clone(), whole.provider_stop_reason.as_deref()),
        (StopReason::ToolUse, Some("tool_use"))
    );
    let counts = (whole.usage.input, whole.usage.cache_read, whole.usage.cache_write, whole.usage.output);
    assert_eq!((counts, whole.usage.reasoning), ((19, 5, 3, 40), 7));
    let search = whole.content.iter().filter_map(|part| match &part.content {
        Content::ProviderTool(tool) => Some((tool.id.as_deref(), tool.name.as_str(), tool.input.is_some())),
        _ => None,
    });
    assert_eq!(
        search.collect::<Vec<_>>(),
        [(Some("srv_1"), "web_search", true), (Some("srv_1"), "web_search", false)]
    );

    let request = ModelRequest::new([Message::user("Hi"), whole.into()]);
    assert_eq!(body(&api(), "claude-x", &request)["messages"][1]["content"], Value::Array(blocks()));
    // Provider data is not sent to another provider.
    let foreign = api().encode(&ModelInfo::new("other", "anthropic-messages", "m"), &request).unwrap().json();
    let kinds: Vec<_> =
        foreign["messages"][1]["content"].as_array().unwrap().iter().map(|b| b["type"].clone()).collect();
    assert_eq!(kinds, ["text", "tool_use"]);
    assert_eq!(foreign["messages"][1]["content"][0], json!({"type": "text", "text": "I look."}));
}

#[test]
fn stops_are_read_and_unknown_ones_kept() {
    for (word, reason) in [
        (json!("end_turn"), StopReason::Stop),
        (json!("stop_sequence"), StopReason::Stop),
        (json!("max_tokens"), StopReason::MaxTokens),
        (json!("model_context_window_exceeded"), StopReason::ContextFull),
        (json!("compaction"), StopReason::Pause),
        (json!("pause_turn"), StopReason::Pause),
        (json!("refusal"), StopReason::ContentFilter),
        (json!("sunset"), StopReason::Other("sunset".to_owned())),
        (Value::Null, StopReason::Stop),
    ] {
        let body = json!({"content": [], "stop_reason": word, "stop_details": {"category": "cyber", "explanation": "No."}});
        let reply = reply(&api(), &body.to_string());
        assert_eq!((reply.stop_reason, reply.error.as_deref()), (reason, Some("No.")));
        assert!(reply.usage.is_empty(), "no usage is no error");
    }
}

#[test]
fn arguments_are_kept_as_they_were_written() {
    let body = r#"{"content": [
        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1, "a": 2, "n": 123456789012345678901}},
        {"type": "tool_use", "id": "2", "name": "f", "input": {}},
        {"type": "tool_use", "id": "3", "name": "f"}], "stop_reason": "tool_use"}"#;
    let reply = reply(&api(), body);
    let arguments: Vec<_> = reply.tool_calls().map(|call| call.args.text()).collect();
    assert_eq!(arguments, [r#"{"a": 1, "a": 2, "n": 123456789012345678901}"#, "{}", "{}"]);
}

#[test]
fn errors_are_distinguished() {
    let error = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
    for (status, kind, message, expected, retryable) in [
        (400, "invalid_request_error", "prompt is too long: 9 > 8", K::ContextTooLong, false),
        (400, "invalid_request_error", "bad", K::InvalidRequest, false),
        (401, "authentication_error", "who", K::Auth, false),
        (402, "billing_error", "pay", K::Auth, false),
        (404, "not_found_error", "no model", K::InvalidRequest, false),
        (409, "conflict_error", "again", K::InvalidRequest, true),
        (413, "request_too_large", "big", K::InvalidRequest, false),
        (429, "rate_limit_error", "slow", K::RateLimit, true),
        (500, "api_error", "oops", K::Server, true),
        (504, "timeout_error", "late", K::Timeout, true),
        (529, "overloaded_error", "busy", K::Overloaded, true),
        (418, "new_error", "tea", K::InvalidRequest, false),
    ] {
        let body = error(kind, message).to_string();
        let (_, found) = read(&api(), "test", status, body.as_bytes());
        let found = found.unwrap();
        assert_eq!(
            (found.kind(), found.is_retryable(), found.status()),
            (expected, retryable, Some(status)),
            "{kind}"
        );
        assert_eq!((found.code(), found.message(), found.request_id()), (Some(kind), message, Some("req_1")));
        // If the same error ends a stream, the part of the reply before the error is kept.
        let text = [
            json!({"type": "message_start", "message": {}}),
            start(&json!({"index": 0, "block": {"type": "text", "text": "Hi"}})),
        ];
        let (partial, found) =
            read(&api(), "test", 200, (stream(&text) + &stream(&[error(kind, message)])).as_bytes());
        assert_eq!((partial.text().as_str(), found.unwrap().code()), ("Hi", Some(kind)));
    }
}

#[test]
fn broken_streams_are_errors_and_hand_out_no_call() {
    let open = [
        json!({"type": "message_start", "message": {"id": "m"}}),
        start(&json!({"index": 0, "block": {"type": "tool_use", "id": "1", "name": "f", "input": {}}})),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"a\":1}"}}),
    ];
    let (partial, error) = read(&api(), "test", 200, stream(&open).as_bytes());
    assert_eq!(error.unwrap().message(), "the stream ended before `message_stop`");
    assert_eq!(partial.tool_calls().count(), 0);
    for body in ["", "<html>", "{}", "nonsense", "data: nonsense\n\n", "data: \u{FFFD}\n\n"] {
        assert_eq!(read(&api(), "test", 200, body.as_bytes()).1.unwrap().kind(), K::Protocol, "{body:?}");
    }
    for body in ["data: [1]\n\n", "data: 1\n\n", "data: null\n\n", "data: {\"type\":5}\n\n"] {
        assert_eq!(read(&api(), "test", 200, body.as_bytes()).1.unwrap().kind(), K::Protocol, "{body:?}");
    }
}

fn tool(name: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"],
        "additionalProperties": false});
    support::tool(name, &schema)
}

#[test]
fn a_request_has_everything_in_its_place() {
    let result = |id: &str| ToolResultMessage::new(id, "add", OutcomeKind::Completed).with_content("3");
    let failed = ToolResultMessage::new("c:2", "add", OutcomeKind::Failed)
        .with_content([Part::text("no"), Part::image(b"png", "image/png")]);
    let mut request = ModelRequest::new([
        Message::user([
            Part::text("Look").with_cache(CacheMark::Hour),
            Part::image_url("https://a.example/i.png"),
            Part::document(b"%PDF", "application/pdf"),
            Part::document(b"plain", "text/plain"),
            Part::new(Content::Document(Media::file_id("file_1").with_name("Title"))),
        ]),
        Message::assistant([
            Part::thinking("unsigned, of another"),
            Part::text(""),
            Part::tool_call("c:1", "add", r#"{"a":1}"#),
            Part::tool_call("c:2", "add", "{broken"),
        ]),
        result("c:1").into(),
        failed.into(),
        Message::user("And?"),
    ]);
    request.system = Some("Be brief.".into());
    request.tools = [tool("add"), tool("sub")].into();
    request.managed_tools = vec![ManagedTool::web_search().max_uses(2)];
    (request.cached_system, request.cached_tools, request.cached_conversation) =
        (Some(CacheMark::Usual), Some(CacheMark::FiveMinutes), Some(CacheMark::Hour));
    let request = request
        .with_strict_tools(true)
        .with_tool_choice(ToolChoice::Tool("add".into()))
        .with_parallel_tool_calls(false)
        .with_max_tokens(99)
        .with_temperature(0.5)
        .with_stop(["END"])
        .with_metadata("user_id", "u1")
        .with_output(OutputSchema::new(
            "answer",
            json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}),
        ))
        .with_provider_options("test", json!({"service_tier": "auto", "stream": null}));
    let body = body(&api(), "claude-sonnet-4-5", &request);
    let messages = json!([
        {"role": "user", "content": [
            {"type": "text", "text": "Look", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "image", "source": {"type": "url", "url": "https://a.example/i.png"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}, "title": "Title"}]},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "c_1", "name": "add", "input": {"a": 1}},
            {"type": "tool_use", "id": "c_2", "name": "add", "input": {"invalid_json": "{broken"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c_1", "content": "3"},
            {"type": "tool_result", "tool_use_id": "c_2", "content": [{"type": "text", "text": "no"}], "is_error": true},
            {"type": "text", "text": "What `add` (call c_2) shows:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}},
            {"type": "text", "text": "And?"}]},
    ]);
    assert_eq!(body["messages"], messages);
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}])
    );
    let strict = |name: &str| {
        json!({"name": name, "description": "Does it.", "strict": true, "input_schema": {"type": "object",
        "properties": {"a": {"type": "integer", "description": "At least 1."}}, "required": ["a"], "additionalProperties": false}})
    };
    assert_eq!(
        body["tools"],
        json!([strict("add"), strict("sub"), {"type": "web_search_20250305", "name": "web_search",
        "max_uses": 2, "cache_control": {"type": "ephemeral", "ttl": "5m"}}])
    );
    assert_eq!(
        body["tool_choice"],
        json!({"type": "tool", "name": "add", "disable_parallel_tool_use": true})
    );
    assert_eq!(body["output_config"]["format"]["type"], "json_schema");
    assert_eq!(body["output_config"]["format"]["schema"]["additionalProperties"], false);
    for (key, value) in [
        ("max_tokens", json!(99)),
        ("temperature", json!(0.5)),
        ("stop_sequences", json!(["END"])),
        ("metadata", json!({"user_id": "u1"})),
        ("service_tier", json!("auto")),
        ("cache_control", json!({"type": "ephemeral", "ttl": "1h"})),
    ] {
        assert_eq!(body[key], value, "{key}");
    }
    assert!(body.get("stream").is_none() && body.get("thinking").is_none());
}

#[test]
fn thinking_is_sent_in_the_words_of_each_model() {
    let ask = |model: &str, thinking: Thinking| {
        body(&api(), model, &ModelRequest::default().with_thinking(thinking))
    };
    let old = ask("claude-sonnet-4-5", Thinking::High);
    assert_eq!(
        (&old["thinking"], &old["max_tokens"]),
        (&json!({"type": "enabled", "budget_tokens": 16000}), &json!(20096))
    );
    let new = ask("claude-opus-4-6", Thinking::XHigh);
    assert_eq!(
        (&new["thinking"], &new["output_config"]),
        (&json!({"type": "adaptive"}), &json!({"effort": "high"}))
    );
    assert_eq!(ask("claude-sonnet-5", Thinking::XHigh)["output_config"]["effort"], "xhigh");
    assert_eq!(ask("claude-sonnet-5", Thinking::None)["thinking"], json!({"type": "disabled"}));
    assert!(ask("claude-fable-5", Thinking::None).get("thinking").is_none());
    assert!(ask("claude-3-5-haiku-latest", Thinking::High).get("thinking").is_none());

    let limited = ModelRequest::default().with_thinking(Thinking::High).with_max_tokens(2000);
    assert_eq!(body(&api(), "claude-sonnet-4-5", &limited)["thinking"]["budget_tokens"], 1999);
    let info = ModelInfo::new("test", "anthropic-messages", "claude-sonnet-4-5");
    for request in
        [limited.clone().with_max_tokens(1024), limited.clone().with_thinking(Thinking::Budget(3000))]
    {
        assert!(api().encode(&info, &request).unwrap_err().is_invalid_request());
    }
    let forced = limited.with_max_tokens(9000).with_tool_choice(ToolChoice::Required).with_temperature(0.1);
    let forced = body(&api(), "claude-sonnet-4-5", &forced);
    assert!(forced.get("thinking").is_none() && forced["temperature"] == 0.1);
    let forced = ModelRequest::default().with_tools([tool("add")]).with_thinking(Thinking::High);
    let forced = forced.with_tool_choice(ToolChoice::Required);
    for (model, thinking, choice) in [
        ("claude-opus-4-6", "disabled", "any"),
        ("claude-opus-5-5", "adaptive", "auto"),
        ("claude-sonnet-5-5", "adaptive", "auto"),
    ] {
        let sent = body(&api(), model, &forced);
        assert_eq!([&sent["thinking"]["type"], &sent["tool_choice"]["type"]], [thinking, choice], "{model}");
    }
    // The default limit leaves room for thinking, also if the model thinks without a request for it.
    assert_eq!(ask("claude-opus-5", Thinking::None)["max_tokens"], 4096);
    assert_eq!(ask("claude-opus-5-5", Thinking::None)["max_tokens"], 5120);
    assert_eq!(body(&api(), "claude-opus-5-5", &ModelRequest::default())["max_tokens"], 20_096);
    let thinks = ModelRequest::default().with_thinking(Thinking::Low).with_temperature(0.1);
    assert!(body(&api(), "claude-sonnet-4-5", &thinks).get("temperature").is_none());
}

#[test]
fn both_versions_and_both_ways_to_send_a_key() {
    let info = ModelInfo::new("test", "anthropic-messages", "claude-opus-5");
    let cited = Part::text("x").with_provider_data(ProviderData::new("test", json!({"citations": [1]})));
    let request = ModelRequest::new([Message::user([cited.clone()]), Message::assistant([cited])])
        .with_temperature(0.3);
    let new = api().with_version("2026-10-21").with_bearer().with_beta("b1").with_beta("b2");
    let http = new.encode(&info, &request).unwrap();
    let header =
        |http: &HttpRequest, name: &str| http.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    assert_eq!(header(&http, "anthropic-version").unwrap(), "2026-10-21");
    assert_eq!(header(&http, "anthropic-beta").unwrap(), "b1,b2");
    assert!(http.json().get("temperature").is_none());
    assert!(http.json()["messages"][0]["content"][0].get("citations").is_none());
    assert!(http.json()["messages"][1]["content"][0].get("citations").is_some());
    let document = ModelRequest::new([Message::assistant([Part::document(b"x", "application/pdf")])]);
    assert!(new.encode(&info, &document).is_err() && api().encode(&info, &document).is_ok());
    // Claude models from 4.7 on refuse sampling settings in both versions of the protocol.
    assert!(api().encode(&info, &request).unwrap().json().get("temperature").is_none());
    let info = ModelInfo::new("test", "anthropic-messages", "claude-opus-4-6");
    let old = api().encode(&info, &request).unwrap();
    assert_eq!(
        (header(&old, "anthropic-version").unwrap().as_str(), &old.json()["temperature"]),
        ("2023-06-01", &json!(0.3))
    );
    assert_eq!(api().auth("k"), ("x-api-key", "k".to_owned()));
    assert_eq!(new.auth("k"), ("authorization", "Bearer k".to_owned()));
}

#[test]
fn requests_are_read_and_written_again() {
    let request = assert_round_trip(
        &api(),
        &json!({
            "model": "claude-sonnet-4-5", "max_tokens": 4096, "stream": false, "temperature": 1, "top_k": 5,
            "system": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two.", "cache_control": {"type": "ephemeral"}}],
            "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"},
            "tool_choice": {"type": "auto"},
            "tools": [{"name": "t", "input_schema": {"type": "object"}, "description": "", "defer_loading": true},
                {"type": "bash_20250124", "name": "bash"}],
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": blocks()},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "tool_reference", "tool_name": "t"}], "is_error": false},
                    {"type": "tool_result", "tool_use_id": "toolu_2"},
                    {"type": "tool_result", "tool_use_id": "toolu_3", "content": "no", "is_error": true, "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                    {"type": "text", "text": "And this"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AQI"}},
                    {"type": "document", "source": {"type": "content", "content": "x"}, "title": "T", "citations": {"enabled": true}},
                    {"type": "search_result", "source": "s", "title": "t", "content": []}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Alone"}]},
                {"role": "system", "content": "New rules."},
                {"role": "user", "content": [{"type": "text", "text": "last"}], "new_field": 1}],
        }),
    );
    assert_eq!(request.system.as_deref(), Some("One.\n\nTwo."));
    let results: Vec<_> = request.messages.iter().filter_map(|message| message.as_tool_result()).collect();
    assert_eq!(
        results.iter().map(|r| (r.tool.as_str(), r.is_error)).collect::<Vec<_>>(),
        [("add", false), ("", false), ("", true)]
    );
    assert_eq!(request.messages[1].as_assistant().map(AssistantMessage::text).as_deref(), Some("I look."));
    for broken in
        [json!([]), json!({"messages": []}), json!({"model": "m"}), json!({"model": "m", "messages": [1]})]
    {
        assert!(api().parse_request("test", &broken).is_err());
    }
}

#[test]
fn the_last_cache_marks_are_kept() {
    let marked = |text: &str| Part::text(text).with_cache(CacheMark::Usual);
    let shown =
        ToolResultMessage::new("c", "add", OutcomeKind::Completed).with_content([marked("3"), marked("4")]);
    let mut request = ModelRequest::new([
        Message::user([marked("1"), marked("2")]),
        Message::assistant([Part::tool_call("c", "add", "{}")]),
        shown.into(),
        Message::user([marked("5")]),
    ]);
    let marks = |request: &ModelRequest| {
        let body = body(&api(), "claude-x", request).to_string();
        let places =
            body.match_indices(r#"","cache_control""#).map(|(at, _)| body[..at].chars().last().unwrap());
        (body.matches("cache_control").count(), places.collect::<String>())
    };
    assert_eq!(marks(&request), (4, "2345".to_owned()));
    request.cached_conversation = Some(CacheMark::Usual);
    request.cached_tools = Some(CacheMark::Usual);
    // Without tools, `cached_tools` adds no mark.
    assert_eq!(marks(&request), (4, "345".to_owned()));
    request.tools = [tool("add")].into();
    request.cached_system = Some(CacheMark::Usual);
    request.system = Some("S".into());
    assert_eq!(marks(&request), (4, "5S".to_owned()));
}

#[test]
fn code_execution_continues_in_its_container() {
    let mut reply = AssistantMessage::new([Part::text("Ran.")]);
    reply.provider_data = Some(Box::new(ProviderData::new(
        "test",
        json!({"container": {"id": "container_1", "expires_at": "x"}}),
    )));
    let request = ModelRequest::new([Message::user("Hi"), reply.into(), Message::user("Again")]);
    assert!(body(&api(), "claude-x", &request).get("container").is_none(), "nothing runs code");
    let request = request.with_managed_tools([ManagedTool::CodeExecution]);
    assert_eq!(body(&api(), "claude-x", &request)["container"], "container_1");
    let other = api().encode(&ModelInfo::new("other", "anthropic-messages", "m"), &request).unwrap();
    assert!(other.json().get("container").is_none());
}

fn hi(id: &str) -> String {
    let message = json!({"id": id, "model": "claude-x", "usage": {"input_tokens": 10}});
    let block = json!({"type": "text", "text": "Hi"});
    stream(&[
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_stop", "index": 0}),
    ])
}

fn end() -> String {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    stream(&[delta, json!({"type": "message_stop"})])
}

#[test]
fn what_is_not_of_the_message_is_ignored() {
    let odd =
        ["event: ping\ndata: soon\n\n", "event: keepalive\ndata: \n\n", "data:\n\n", "data: [DONE]\n\n"];
    for odd in odd {
        assert_eq!(reply(&api(), &(odd.to_owned() + &hi("m") + odd + &end())).text(), "Hi", "{odd}");
    }
    let after =
        ["data: [DONE]\n\n", "data: soon\n\n", "event: error\ndata: {}\n\n", "event: error\ndata: x\n\n"];
    for after in after {
        assert_eq!(reply(&api(), &(hi("m") + &end() + after)).text(), "Hi", "{after}");
    }
}

#[test]
fn messages_do_not_mix() {
    let again = stream(&[json!({"type": "message_start", "message": {"id": "m", "model": "claude-x"}})]);
    assert_eq!(reply(&api(), &(hi("m") + &again + &end())).text(), "Hi");
    let call = json!({"type": "tool_use", "id": "t", "name": "f", "input": {}});
    let call = stream(&[json!({"type": "content_block_start", "index": 1, "content_block": call})]);
    let body = hi("m") + &call + &hi("other") + &end();
    let (partial, error) = read(&api(), "test", 200, body.as_bytes());
    assert_eq!((partial.tool_calls().count(), error.unwrap().kind()), (0, K::Protocol));
}

#[test]
fn errors_in_a_stream_are_read_in_every_form() {
    let error = json!({"type": "overloaded_error", "message": "Busy."});
    for odd in [
        format!("data: {}\n\n", json!({"error": error})),
        format!("data: {error}\n\n"),
        format!("event: error\ndata: {error}\n\n"),
        format!("{}\n", json!({"type": "error", "error": error})),
        format!("{:#}\n\n", json!({"type": "error", "error": error})),
    ] {
        let failed = read(&api(), "test", 200, (hi("m") + &odd).as_bytes()).1.unwrap();
        assert_eq!((failed.kind(), failed.message()), (K::Overloaded, "Busy."), "{odd}");
    }
    let plain = hi("m") + "event: error\ndata: upstream is gone\n\n";
    assert_eq!(read(&api(), "test", 200, plain.as_bytes()).1.unwrap().message(), "upstream is gone");
}

#[test]
fn one_sampling_setting_is_sent_where_two_are_refused() {
    let mut request = ModelRequest::new([Message::user("Hi")]);
    (request.temperature, request.top_p) = (Some(0.5), Some(0.9));
    for (model, both) in
        [("claude-sonnet-4-5", false), ("claude-sonnet-4-6", false), ("claude-sonnet-4-0", true)]
    {
        let sent = body(&api(), model, &request);
        assert_eq!((sent["temperature"].as_f64(), sent.get("top_p").is_some()), (Some(0.5), both), "{model}");
    }
}

#[test]
fn a_reply_of_several_requests_counts_all_of_them_and_knows_the_last_one() {
    let one = |kind: &str, input: u64, read: u64, output: u64| json!({"type": kind, "input_tokens": input, "cache_read_input_tokens": read, "output_tokens": output});
    let body = |iterations: Value| {
        let usage = json!({"input_tokens": 600, "cache_read_input_tokens": 82, "output_tokens": 1320, "iterations": iterations});
        json!({"content": [], "stop_reason": "end_turn", "usage": usage}).to_string()
    };
    let compacted = json!([one("compaction", 60_385, 0, 592), one("message", 600, 82, 1320)]);
    let usage = reply(&api(), &body(compacted)).usage;
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.total), (61_067, 1_912, 82, 62_979));
    assert_eq!(usage.last_request(), (682, 1_320));
    let searched =
        json!([one("message", 200, 40, 320), one("advisor_message", 9, 0, 1), one("message", 400, 42, 1000)]);
    assert_eq!(reply(&api(), &body(searched)).usage.last_request(), (442, 1_000));
    let searched = json!([one("message", 200, 40, 320), one("message", 400, 42, 1000)]);
    assert_eq!(reply(&api(), &body(searched)).usage.last_request(), (442, 1_000));
    // The usage of the last request is stored with the reply. A sum of usages has no last request.
    let stored: Usage = serde_json::from_value(json!(usage)).unwrap();
    assert_eq!(stored, usage);
    assert_eq!((stored + Usage::new(1, 1)).last_request(), (61_068, 1_913));
    for odd in [json!([one("message", 600, 82, 1320)]), json!([]), json!(null), json!("x"), json!([1, {}])] {
        let usage = reply(&api(), &body(odd.clone())).usage;
        assert_eq!((usage.input, usage.output, usage.last_request()), (682, 1_320, (682, 1_320)), "{odd}");
    }
}

#[test]
fn a_compaction_is_asked_for_and_its_block_goes_back_as_it_came() {
    let request = ModelRequest::new([Message::user("Hi")]).with_compact_at(120_000);
    let http =
        api().encode(&ModelInfo::new("test", "anthropic-messages", "claude-opus-5"), &request).unwrap();
    let edit = json!({"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 120_000}});
    assert_eq!(http.json()["context_management"], json!({"edits": [edit]}));
    assert!(http.headers.contains(&("anthropic-beta".to_owned(), "compact-2026-01-12".to_owned())));
    let small = body(&api(), "claude-opus-5", &request.with_compact_at(1));
    assert_eq!(small["context_management"]["edits"][0]["trigger"]["value"], 50_000);

    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let streamed = stream(&[
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": null}}),
        delta(json!({"type": "compaction_delta", "content": "All ", "encrypted_content": "AB"})),
        delta(json!({"type": "compaction_delta", "content": "before.", "encrypted_content": "CD"})),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "compaction"}}),
        json!({"type": "message_stop"}),
    ]);
    let paused = reply(&api(), &streamed);
    assert_eq!(paused.stop_reason, StopReason::Pause);
    let sent = body(&api(), "claude-opus-5", &ModelRequest::new([Message::user("Hi"), paused.into()]));
    let block = json!({"type": "compaction", "content": "All before.", "encrypted_content": "ABCD"});
    assert_eq!(sent["messages"][1]["content"], json!([block]));
}
