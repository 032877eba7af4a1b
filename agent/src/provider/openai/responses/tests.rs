//! Replies and requests with every feature of the protocol, decoded and encoded again.

use serde_json::{Value, json};

use super::*;
use crate::message::{
    AssistantMessage, Content, CustomMessage, Media, Message, OutcomeKind, Part, StopReason,
    ToolResultMessage,
};
use crate::model::{ManagedTool, ModelErrorKind as K, OutputSchema, Thinking, ToolChoice};
use crate::provider::tests::support::{self, assert_round_trip, body, read, reply};
use crate::tool::definition::ToolDefinition;

fn api() -> OpenAiResponses {
    OpenAiResponses::default()
}

fn items() -> Vec<Value> {
    vec![
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA+/=", "summary": [
            {"type": "summary_text", "text": "First. "}, {"type": "summary_text", "text": "Then."}]}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary", "content": [
            {"type": "output_text", "text": "I look. ", "annotations": [{"type": "url_citation", "url": "https://a.example"}]},
            {"type": "output_text", "text": "Now.", "annotations": []}]}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rust"}}),
        json!({"type": "reasoning", "id": "rs_2", "encrypted_content": "gBBB", "summary": []}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": "{\"b\":2, \"a\":1.0}",
            "status": "completed"}),
        json!({"type": "hologram", "id": "h_1", "depth": [3]}),
    ]
}

fn usage() -> Value {
    json!({"input_tokens": 19, "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3}, "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 7}, "total_tokens": 59})
}

fn response(status: &str) -> Value {
    json!({"id": "resp_1", "object": "response", "model": "gpt-x-1", "status": status, "output": items(), "usage": usage()})
}

fn stream(events: &[Value]) -> String {
    let one = |event: &Value| format!("event: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap());
    let events: Vec<String> = events.iter().map(one).collect();
    events.join("event: response.new\r\ndata: {\"type\":\"response.new\"}\r\n\r\n")
}

fn streamed() -> Vec<Value> {
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt-x-1", "output": []}}),
    ];
    for (index, item) in items().into_iter().enumerate() {
        let mut begun = item.clone();
        let mut deltas = Vec::new();
        let mut say = |kind: &str, key: &str, number: usize, text: &Value| {
            let text = text.as_str().unwrap();
            for half in [&text[..2], &text[2..]] {
                // Ids may differ between the events of an item.
                deltas.push(json!({"type": kind, "output_index": index, "item_id": "other", key: number, "delta": half}));
            }
        };
        match item["type"].as_str().unwrap() {
            "reasoning" => {
                begun["summary"] = json!([]);
                begun["encrypted_content"] = json!("early");
                for (number, part) in item["summary"].as_array().unwrap().iter().enumerate() {
                    say("response.reasoning_summary_text.delta", "summary_index", number, &part["text"]);
                }
            }
            "message" => {
                begun["content"] = json!([]);
                for (number, part) in item["content"].as_array().unwrap().iter().enumerate() {
                    say("response.output_text.delta", "content_index", number, &part["text"]);
                }
            }
            "function_call" => {
                begun["arguments"] = json!("");
                say("response.function_call_arguments.delta", "x", 0, &item["arguments"]);
            }
            "web_search_call" => begun["status"] = json!("in_progress"),
            _ => {}
        }
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        events.extend(deltas);
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response("completed")}));
    events
}

#[test]
fn streams_and_bodies_decode_to_one_message_and_encode_back() {
    let (streamed, whole) =
        (reply(&api(), &stream(&streamed())), reply(&api(), &response("completed").to_string()));
    assert_eq!(streamed, whole);
    assert_eq!((whole.text().as_str(), whole.thinking().as_str()), ("I look. Now.", "First. Then."));
    assert_eq!(whole.tool_calls().map(|call| call.args.text()).collect::<Vec<_>>(), [r#"{"b":2, "a":1.0}"#]);
    assert_eq!(whole.tool_calls().next().unwrap().id, "call_1");
    assert_eq!(
        (whole.stop_reason.as_str(), whole.provider_stop_reason.as_deref()),
        ("tool_use", Some("completed"))
    );
    assert_eq!((whole.model.as_str(), whole.response_model.as_deref()), ("model", Some("gpt-x-1")));
    let counts = (whole.usage.input, whole.usage.cache_read, whole.usage.cache_write, whole.usage.output);
    assert_eq!((counts, whole.usage.reasoning, whole.usage.total), ((19, 5, 3, 40), 7, 59));
    let search = whole.content.iter().find_map(|part| match &part.content {
        Content::ProviderTool(tool) => {
            Some((tool.name.as_str(), tool.input.clone().unwrap()["query"].clone()))
        }
        _ => None,
    });
    assert_eq!(search, Some(("web_search", json!("rust"))));

    let request = ModelRequest::new([Message::user("Hi"), whole.clone().into()]);
    assert_eq!(body(&api(), "model", &request)["input"].as_array().unwrap()[1..], items());
    // The state of one provider is not sent to another provider.
    let foreign = api().encode(&ModelInfo::new("other", "openai-responses", "m"), &request).unwrap().json();
    assert_eq!(
        foreign["input"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": "I look. Now."}),
            json!({"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{\"b\":2, \"a\":1.0}"})
        ]
    );
}

#[test]
fn reasoning_is_sent_back_only_with_its_next_item() {
    let parts = reply(&api(), &response("completed").to_string()).content;
    let sent = |parts: &[Part], api: &OpenAiResponses| {
        let request = ModelRequest::new([AssistantMessage::new(parts.iter().cloned())].map(Message::from));
        let body = body(api, "gpt-5", &request);
        body["input"].as_array().unwrap().iter().map(|item| item["type"].clone()).collect::<Vec<_>>()
    };
    // The reply was cut after its second reasoning.
    let at = parts.iter().rposition(|part| matches!(part.content, Content::Thinking { .. })).unwrap();
    assert_eq!(sent(&parts[..=at], &api()), ["reasoning", "message", "web_search_call"]);
    // The text after the reasoning was edited, so the reasoning is not sent.
    assert_eq!(sent(&[parts[at].clone(), Part::text("Edited.")], &api()), [Value::Null]);
    // Reasoning that is neither stored nor encrypted is not sent, because the provider could not find it.
    let bare = json!({"type": "reasoning", "id": "rs_3", "summary": [{"type": "summary_text", "text": "x"}]});
    let bare = items::read("test", bare, crate::provider::parts::JsonSource::Reply);
    assert_eq!(sent(&[bare[0].clone(), parts[at + 1].clone()], &api()), ["function_call"]);
    assert_eq!(
        sent(&[bare[0].clone(), parts[at + 1].clone()], &api().with_store()),
        ["reasoning", "function_call"]
    );
    // Open models show the text of their reasoning, so it can be sent back.
    let open =
        json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "x"}], "summary": []});
    let open = items::read("test", open, crate::provider::parts::JsonSource::Reply);
    assert_eq!(open[0], Part { provider_data: open[0].provider_data.clone(), ..Part::thinking("x") });
    assert_eq!(sent(&open, &api()), ["reasoning"]);
}

#[test]
fn the_rest_of_a_message_is_sent_without_its_start() {
    let sent = |parts: [&Part; 2]| {
        let reply = AssistantMessage::new(parts.into_iter().cloned());
        body(&api(), "gpt-5", &ModelRequest::new([Message::from(reply)]))["input"].clone()
    };
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let parts = reply(&api(), &response("completed").to_string()).content;
    let [reasoning, _, _, rest, ..] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!(sent([&Part::text("Edited. "), rest]), json!([said("Edited. Now.")]));
    // The item that followed the reasoning is not sent, so the reasoning is not sent.
    assert_eq!(sent([reasoning, rest]), json!([said("Now.")]));
    let read = |item: &Value| items::read("test", item.clone(), crate::provider::parts::JsonSource::Reply);
    let open = json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "x"}]});
    assert_eq!(sent([&read(&open)[0], rest]), json!([open, said("Now.")]));
    let odd = json!({"type": "output_hologram", "x": 1});
    let parts =
        read(&json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}, odd]}));
    let last = json!({"type": "message", "role": "assistant", "content": [odd]});
    assert_eq!(sent([&Part::text("Edited."), &parts[1]]), json!([said("Edited."), last]));
}

#[test]
fn stop_reasons_are_distinguished() {
    for (response, reason, raw) in [
        (json!({"status": "completed"}), StopReason::Stop, "completed"),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
            StopReason::MaxTokens,
            "max_output_tokens",
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
            StopReason::ContentFilter,
            "content_filter",
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "steered"}}),
            StopReason::Other("steered".into()),
            "steered",
        ),
        (json!({"status": "cancelled"}), StopReason::Other("cancelled".into()), "cancelled"),
    ] {
        let mut whole = response.clone();
        whole["output"] = json!([]);
        let kind = format!("response.{}", response["status"].as_str().unwrap());
        for body in [whole.to_string(), stream(&[json!({"type": kind, "response": whole})])] {
            let reply = reply(&api(), &body);
            assert_eq!((&reply.stop_reason, reply.provider_stop_reason.as_deref()), (&reason, Some(raw)));
            assert!(reply.usage.is_empty(), "no usage is no error");
        }
    }
    let refusal = json!({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}], "status": "completed"});
    let reply = reply(&api(), &refusal.to_string());
    assert_eq!(
        (reply.stop_reason.clone(), reply.refusal().as_deref()),
        (StopReason::ContentFilter, Some("No."))
    );
}

#[test]
fn servers_with_fewer_events_are_understood() {
    // No index, no `function_call_arguments.done`, and a message only in the last event.
    let events = [
        json!({"type": "response.output_item.added", "item": {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": "{\"a\":"}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": "1}"}),
        json!({"type": "response.completed", "response": {"output": [
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": ""},
            {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]}}),
    ];
    let reply = reply(&api(), &stream(&events));
    assert_eq!((reply.tool_calls().next().unwrap().args.text(), reply.text().as_str()), (r#"{"a":1}"#, "Hi"));
    assert_eq!(reply.tool_calls().count(), 1);
}

#[test]
fn failures_keep_what_was_received() {
    let said = &streamed()[..12];
    for (event, kind, code) in [
        (
            json!({"type": "error", "code": "server_error", "message": "boom", "param": null}),
            K::Server,
            "server_error",
        ),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "long"}}),
            K::ContextTooLong,
            "context_length_exceeded",
        ),
        (
            json!({"type": "response.failed", "response": {"status": "failed", "output": [],
            "error": {"code": "rate_limit_exceeded", "message": "slow"}}}),
            K::RateLimit,
            "rate_limit_exceeded",
        ),
    ] {
        let (partial, error) = read(&api(), "test", 200, (stream(said) + &stream(&[event])).as_bytes());
        let error = error.unwrap();
        assert_eq!((error.kind(), error.code()), (kind, Some(code)));
        assert!(partial.text().starts_with("I look."), "{:?}", partial.text());
    }
    for body in ["", "<html>", "{}", "[]", "data: 1\n\n", "data: {\"type\":5}\n\n", r#"{"output": 5}"#] {
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
            Part::document(b"%PDF", "application/pdf"),
            Part::new(Content::Document(Media::url("https://a.example/a.pdf").with_name("a.pdf"))),
        ]),
        Message::Custom(CustomMessage::new("developer", Value::Null).with_for_model("Careful.")),
        Message::assistant([
            Part::thinking("of another"),
            Part::tool_call("c1", "f", ""),
            Part::tool_call("c2", "f", "{broken"),
        ]),
        ToolResultMessage::new("c1", "f", OutcomeKind::Completed).with_content("3").into(),
        failed.into(),
    ]);
    request.system = Some("Be brief.".into());
    request.tools = [tool("f")].into();
    request.managed_tools = vec![
        ManagedTool::web_search().allowed_domains(["a.example"]),
        ManagedTool::CodeExecution,
        ManagedTool::ImageGeneration,
    ];
    let request = request
        .with_tool_choice(ToolChoice::Tool("f".into()))
        .with_parallel_tool_calls(false)
        .with_max_tokens(99)
        .with_temperature(0.5)
        .with_stop(["END"])
        .with_thinking(Thinking::High)
        .with_metadata("user_id", "u1")
        .with_output(OutputSchema::new(
            "answer",
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        ))
        .with_provider_options("test", json!({"truncation": "auto"}));
    let written = body(&api().with_summary("auto"), "gpt-5.2", &request);
    let input = json!([
        {"role": "user", "content": [
            {"type": "input_text", "text": "Look"},
            {"type": "input_image", "image_url": "https://a.example/i.png", "detail": "auto"},
            {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
            {"type": "input_file", "file_url": "https://a.example/a.pdf", "filename": "a.pdf"}]},
        {"role": "developer", "content": "Careful."},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{broken"},
        {"type": "function_call_output", "call_id": "c1", "output": "3"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "Error:"},
            {"type": "input_text", "text": "no"},
            {"type": "input_image", "image_url": "data:image/png;base64,cG5n", "detail": "auto"}]},
    ]);
    assert_eq!(written["input"], input);
    let plain = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    assert_eq!(
        written["tools"],
        json!([
            {"type": "function", "name": "f", "description": "Does it.", "parameters": plain, "strict": false},
            {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "image_generation"}])
    );
    for (key, value) in [
        ("instructions", json!("Be brief.")),
        ("tool_choice", json!({"type": "function", "name": "f"})),
        ("parallel_tool_calls", json!(false)),
        ("max_output_tokens", json!(99)),
        ("reasoning", json!({"effort": "high", "summary": "auto"})),
        (
            "include",
            json!([
                "reasoning.encrypted_content",
                "web_search_call.action.sources",
                "code_interpreter_call.outputs"
            ]),
        ),
        ("store", json!(false)),
        ("stream", json!(true)),
        ("safety_identifier", json!("u1")),
        ("truncation", json!("auto")),
        ("temperature", Value::Null),
        ("stop", Value::Null),
    ] {
        assert_eq!(written[key], value, "{key}");
    }
    assert_eq!(written["text"]["format"]["strict"], true);
    let strict = body(&api(), "gpt-4o", &request.with_strict_tools(true));
    assert_eq!((&strict["tools"][0]["strict"], &strict["temperature"]), (&json!(true), &json!(0.5)));
    assert_eq!(strict["include"], json!(["web_search_call.action.sources", "code_interpreter_call.outputs"]));
    assert!(strict.get("reasoning").is_none());
}

#[test]
fn options_add_to_what_is_included_and_decide_what_is_stored() {
    let (reasoning, other) = ("reasoning.encrypted_content", "message.output_text.logprobs");
    for (api, options, expected) in [
        (api(), json!({"include": [other]}), json!([other, reasoning])),
        (api(), json!({"include": null}), Value::Null),
        (api(), json!({"store": true}), Value::Null),
        (api().with_store(), json!({"store": false}), json!([reasoning])),
    ] {
        let request = ModelRequest::new([Message::user("Hi")]).with_provider_options("test", options.clone());
        assert_eq!(body(&api, "gpt-5", &request)["include"], expected, "{options}");
    }
}

#[test]
fn unsupported_requests_are_refused_with_a_reason() {
    let info = ModelInfo::new("test", "openai-responses", "m");
    let refused = |request: ModelRequest| api().encode(&info, &request).unwrap_err().message().to_owned();
    assert!(refused(ModelRequest::new([Message::user([Part::audio(b"x", "audio/wav")])])).contains("sound"));
    let blocked = ManagedTool::web_search().blocked_domains(["x"]);
    for (tool, words) in [
        (ManagedTool::web_fetch(), "`test` cannot run web fetch"),
        (ManagedTool::other("acme", json!({"type": "x"})), "a tool of `acme`"),
        (blocked, "blocks none"),
    ] {
        let said = refused(ModelRequest::default().with_managed_tools([tool]));
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn requests_are_read_and_written_again() {
    let request = assert_round_trip(
        &api(),
        &json!({
            "model": "gpt-5", "stream": false, "store": true, "previous_response_id": null, "instructions": "S",
            "reasoning": {"effort": "low", "summary": null}, "include": ["reasoning.encrypted_content"],
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": false}, "verbosity": "low"},
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": null}, {"type": "mcp", "server_label": "x"}],
            "input": [
                {"role": "user", "content": "Hi"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
                    {"type": "input_image", "image_url": "data:image/png;base64,AQI=", "detail": "low"}, {"type": "input_file", "file_id": "f"}]},
                {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": null},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "", "namespace": "n"},
                {"type": "function_call_output", "call_id": "c", "output": "ok", "status": "completed"},
                {"role": "assistant", "content": "one"},
                {"role": "assistant", "content": "two", "phase": "commentary"},
                {"role": "assistant", "content": "three"},
                {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "x"}, {"type": "refusal", "refusal": "y"}]},
                {"type": "item_reference", "id": "z"},
                {"role": "developer", "content": [{"type": "input_text", "text": "d"}], "type": "message"},
            ],
        }),
    );
    assert_eq!(request.messages.iter().find_map(|message| message.as_tool_result()).unwrap().tool, "f");
    assert_round_trip(&api(), &json!({"model": "gpt-4o", "input": "Hi", "stream": true}));
    for broken in [json!([]), json!({"input": "x"}), json!({"model": "m", "input": 5})] {
        assert!(api().parse_request("test", &broken).is_err());
    }
}

fn ended_as(item: &Value) -> Vec<Value> {
    let begun = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
    vec![
        json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed",
            "response": {"id": "r", "status": "completed", "output": [item], "usage": usage()}}),
    ]
}

#[test]
fn odd_parts_of_a_message_leave_its_text_and_usage() {
    let hi = json!({"type": "output_text", "text": "Hi", "annotations": []});
    for content in [
        json!([hi, {"type": "output_hologram", "x": 1}]),
        json!([{"type": "output_text", "text": null}]),
        json!([hi, null]),
        json!([hi, {"type": "refusal", "refusal": null}]),
        json!([{"type": "text", "text": "Hi"}]),
        json!([hi, {"type": "refusal", "refusal": "No."}]),
        json!([{"type": "refusal", "refusal": "No."}]),
        json!([null, {"type": "output_hologram"}]),
        json!(7),
        Value::Null,
    ] {
        let mut item = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": content});
        let streamed = reply(&api(), &stream(&ended_as(&item)));
        assert_eq!((streamed.text().as_str(), streamed.usage.output), ("Hi", 40), "{content}");
        let is_refused = content.to_string().contains("No.");
        assert_eq!(streamed.refusal().is_some(), is_refused, "{content}");
        let whole = json!({"id": "r", "status": "completed", "output": [item], "usage": usage()});
        assert_eq!(reply(&api(), &whole.to_string()).usage.output, 40, "{content}");
        if content.to_string().contains('x') && content[1]["x"] == 1 {
            let request = ModelRequest::new([Message::from(streamed)]);
            assert_eq!(body(&api(), "model", &request)["input"], json!([item]));
        }
        item.as_object_mut().unwrap().remove("content");
        assert_eq!(reply(&api(), &stream(&ended_as(&item))).text(), "Hi");
    }
}

#[test]
fn a_call_keeps_the_id_that_its_end_leaves_out() {
    let item = |id: Value| json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "f", "arguments": "{\"a\":1}"});
    let events = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": item(json!("call_9"))}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item(Value::Null)}),
        json!({"type": "response.completed", "response": {"status": "completed", "usage": usage()}}),
    ];
    let told = reply(&api(), &stream(&events));
    let call = told.tool_calls().next().unwrap();
    assert_eq!((call.id.as_str(), call.args.text()), ("call_9", "{\"a\":1}"));
}

#[test]
fn the_last_event_ends_a_response_without_a_status() {
    let error = json!({"code": "server_error", "message": "It broke."});
    for event in [
        json!({"type": "response.failed", "response": {"error": error}}),
        json!({"type": "response.failed", "error": error}),
        json!({"type": "response.failed", "response": {"id": "r"}, "error": error}),
        json!({"type": "response.failed", "code": "server_error", "message": "It broke."}),
    ] {
        let (_, failed) = read(&api(), "test", 200, stream(std::slice::from_ref(&event)).as_bytes());
        let failed = failed.unwrap();
        assert_eq!((failed.code(), failed.message()), (Some("server_error"), "It broke."), "{event}");
    }
    let (_, failed) = read(&api(), "test", 200, stream(&[json!({"type": "response.failed"})]).as_bytes());
    assert!(failed.is_some());
    for (event, reason) in [
        (json!({"type": "response.incomplete"}), StopReason::Other("incomplete".into())),
        (
            json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}),
            StopReason::MaxTokens,
        ),
        (json!({"type": "response.cancelled", "response": {}}), StopReason::Other("cancelled".into())),
    ] {
        assert_eq!(reply(&api(), &stream(&[event])).stop_reason, reason);
    }
}

#[test]
fn a_partial_refusal_is_emitted() {
    let piece = |delta: &str| json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": delta});
    let mut events = vec![piece("I ca"), piece("nnot.")];
    let (partial, error) = read(&api(), "test", 200, stream(&events).as_bytes());
    assert_eq!((partial.refusal().as_deref(), error.unwrap().kind()), (Some("I cannot."), K::Protocol));
    let part = json!({"type": "refusal", "refusal": "I cannot."});
    let item = json!({"type": "message", "id": "m", "role": "assistant", "content": [part]});
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    for with_item in [true, false] {
        let end =
            json!({"type": "response.completed", "response": {"status": "completed", "usage": usage()}});
        let events = [&events[..if with_item { 3 } else { 2 }], &[end]].concat();
        let whole = reply(&api(), &stream(&events));
        assert_eq!(whole.refusal().as_deref(), Some("I cannot."));
        assert_eq!((whole.content.len(), whole.stop_reason), (1, StopReason::ContentFilter));
    }
    // Some servers leave the refusal out of the completed item.
    events[2]["item"]["content"] = json!([]);
    events.push(json!({"type": "response.completed", "response": {"status": "completed"}}));
    let whole = reply(&api(), &stream(&events));
    assert_eq!(
        (whole.refusal().as_deref(), whole.stop_reason),
        (Some("I cannot."), StopReason::ContentFilter)
    );
}

#[test]
fn a_compaction_is_asked_for_and_its_item_goes_back_as_it_came() {
    let request = ModelRequest::new([Message::user("Hi")]).with_compact_at(120_000);
    let sent = body(&api(), "gpt-5.4", &request);
    assert_eq!(sent["context_management"], json!([{"type": "compaction", "compact_threshold": 120_000}]));
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "ABCD"});
    let output = json!([item, {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]}]);
    let body_text =
        json!({"id": "r", "object": "response", "status": "completed", "output": output}).to_string();
    let mut answer = reply(&api(), &body_text);
    answer.model = "gpt-5.4".to_owned();
    let sent = body(
        &api(),
        "gpt-5.4",
        &ModelRequest::new([Message::user("Hi"), answer.into(), Message::user("And?")]),
    );
    assert_eq!(sent["input"][1], item, "{sent}");
}
