//! Recordings with every feature of the protocol, read and written back.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::message::{Content, Media, Message, OutcomeKind, Part, StopReason, ToolResultMessage};
use crate::model::{ManagedTool, ModelErrorKind as K, OutputSchema, Thinking, ToolChoice};
use crate::provider::tests::support::{self, assert_round_trip, body, read, reply};
use crate::tool::definition::ToolDefinition;

fn api() -> Gemini {
    Gemini::default()
}

fn parts() -> Vec<Value> {
    vec![
        json!({"text": "Hm. ", "thought": true}),
        json!({"text": "I look."}),
        json!({"executableCode": {"language": "PYTHON", "code": "1+1", "id": "x1"}, "thoughtSignature": "RQ=="}),
        json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2", "id": "x1"}}),
        json!({"functionCall": {"name": "add", "args": {"b": 2, "a": 1.0}, "id": "g1"}, "thoughtSignature": "QUI="}),
        json!({"functionCall": {"name": "now", "args": {}}}),
        json!({"hologram": {"depth": [3]}}),
        json!({"text": "", "thoughtSignature": "Q0Q="}),
    ]
}

fn usage() -> Value {
    json!({"promptTokenCount": 10, "toolUsePromptTokenCount": 4, "cachedContentTokenCount": 5, "candidatesTokenCount": 20,
        "thoughtsTokenCount": 7, "totalTokenCount": 41})
}

fn chunk(parts: &[Value]) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "responseId": "r1", "modelVersion": "gemini-x-001",
        "usageMetadata": {"promptTokenCount": 1}})
}

fn stream(chunks: &[Value]) -> String {
    let lines: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    lines.concat()
}

fn finished(reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model"}, "finishReason": reason, "index": 0,
        "groundingMetadata": {"webSearchQueries": ["rust"]}}], "usageMetadata": usage()})
}

fn streamed() -> Vec<Value> {
    let mut chunks = vec![
        json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "another candidate"}]}}], "new": 1}),
        chunk(&[json!({"text": "H", "thought": true})]),
        chunk(&[json!({"text": "m. ", "thought": true}), json!({"text": "I "})]),
        chunk(&[json!({"text": ""}), json!({"text": "look."})]),
    ];
    chunks.extend(parts()[2..].iter().map(|part| chunk(std::slice::from_ref(part))));
    chunks.push(finished("STOP"));
    chunks
}

#[test]
fn streams_and_bodies_decode_to_one_message_and_encode_back() {
    let mut whole = chunk(&parts());
    whole["candidates"][0]["finishReason"] = json!("STOP");
    whole["candidates"][0]["groundingMetadata"] = json!({"webSearchQueries": ["rust"]});
    whole["usageMetadata"] = usage();
    let streamed = streamed();
    let (from_stream, whole) = (reply(&api(), &stream(&streamed)), reply(&api(), &whole.to_string()));
    assert_eq!(from_stream, whole);
    // Without `alt=sse` a stream is a list.
    assert_eq!(reply(&api(), &Value::Array(streamed).to_string()), whole);
    assert_eq!((whole.text().as_str(), whole.thinking().as_str()), ("I look.", "Hm. "));
    let calls: Vec<_> = whole.tool_calls().map(|call| (call.id.as_str(), call.args.text())).collect();
    assert_eq!(calls, [("g1", r#"{"b":2,"a":1.0}"#), ("call_6", "{}")]);
    assert_eq!(
        (whole.stop_reason.as_str(), whole.provider_stop_reason.as_deref()),
        ("tool_use", Some("STOP"))
    );
    assert_eq!((whole.usage.input, whole.usage.cache_read, whole.usage.output), (14, 5, 27));
    assert_eq!((whole.usage.reasoning, whole.usage.total), (7, 41));
    assert_eq!(whole.response_model.as_deref(), Some("gemini-x-001"));
    assert!(whole.provider_data.as_ref().unwrap().data["groundingMetadata"].is_object());

    let results =
        ["g1", "call_6"].map(|id| ToolResultMessage::new(id, "t", OutcomeKind::Completed).with_content("3"));
    let [first, second] = results.map(Message::from);
    let request =
        ModelRequest::new([Message::user("Hi"), whole.into(), first, second, Message::user("And?")]);
    let written = body(&api(), "gemini-3-pro", &request);
    // A thought without a signature is not sent back. All results are in one content, with the ids that Gemini gave.
    assert_eq!(written["contents"][1], json!({"role": "model", "parts": parts()[1..]}));
    assert_eq!(
        written["contents"][2]["parts"],
        json!([{"functionResponse": {"name": "t", "response": {"output": "3"}, "id": "g1"}},
            {"functionResponse": {"name": "t", "response": {"output": "3"}}}])
    );
    assert_eq!(written["contents"][3], json!({"role": "user", "parts": [{"text": "And?"}]}));
    // Provider data is not sent to another provider. If no call has a signature, Gemini 3 gets the placeholder for the first call.
    let foreign = api().encode(&ModelInfo::new("other", "gemini", "gemini-3-pro"), &request).unwrap().json();
    assert_eq!(
        foreign["contents"][1]["parts"],
        json!([{"text": "I look."},
            {"functionCall": {"name": "add", "args": {"b": 2, "a": 1.0}}, "thoughtSignature": "skip_thought_signature_validator"},
            {"functionCall": {"name": "now", "args": {}}}])
    );
    let older = api().encode(&ModelInfo::new("other", "gemini", "gemini-2.5-pro"), &request).unwrap().json();
    assert!(!older.to_string().contains("thoughtSignature"));
}

#[test]
fn texts_with_signatures_are_never_merged() {
    let signed = |text: &str, signature: &str| json!({"text": text, "thoughtSignature": signature});
    let chunks = [
        chunk(&[json!({"text": "a"})]),
        chunk(&[signed("b", "1"), signed("c", "2")]),
        chunk(&[json!({"text": "d"})]),
        chunk(&[json!({"text": "e"}), signed("", "3")]),
        finished("STOP"),
    ];
    let reply = reply(&api(), &stream(&chunks));
    assert_eq!(reply.text(), "abcde");
    let written = body(&api(), "gemini-3-pro", &ModelRequest::new([Message::user("Go."), reply.into()]));
    assert_eq!(
        written["contents"][1]["parts"],
        json!([{"text": "a"}, signed("b", "1"), signed("c", "2"), {"text": "de"}, signed("", "3")])
    );
}

#[test]
fn arguments_are_kept_as_they_were_written_and_put_together_from_pieces() {
    let raw = r#"{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"a": 1, "a": 2, "n": 123456789012345678901}}},
        {"functionCall": {"name": "f"}}]}, "finishReason": "STOP"}]}"#;
    let reply_of = |body: &str| {
        reply(&api(), body).tool_calls().map(|call| call.args.text().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(reply_of(raw), [r#"{"a": 1, "a": 2, "n": 123456789012345678901}"#, "{}"]);
    let raw = raw.replace('\n', "").replace("\"parts\": [", "\"parts\": [null, ");
    for odd in [format!("data: {raw}\n\n"), format!("data: [{raw}]\n\n")] {
        assert_eq!(reply_of(&odd)[0], r#"{"a": 1, "a": 2, "n": 123456789012345678901}"#);
    }
    let piece = |call: Value| chunk(&[json!({"functionCall": call})]);
    let chunks = [
        chunk(&[json!({"functionCall": {"name": "f", "willContinue": true}, "thoughtSignature": "QQ=="})]),
        piece(
            json!({"partialArgs": [{"jsonPath": "$.city", "stringValue": "Bos", "willContinue": true}], "willContinue": true}),
        ),
        piece(json!({"partialArgs": [{"jsonPath": "$.city", "stringValue": "ton"}], "willContinue": true})),
        piece(json!({})),
        piece(json!({"name": "g"})),
        finished("STOP"),
    ];
    let whole = reply(&api(), &stream(&chunks));
    assert_eq!(
        whole.tool_calls().map(|call| (call.name.as_str(), call.args.text())).collect::<Vec<_>>(),
        [("f", r#"{"city":"Boston"}"#), ("g", "{}")]
    );
    assert_eq!(whole.content[0].provider_data.as_ref().unwrap().data["thoughtSignature"], "QQ==");
    // A stream that ends in the middle of the pieces has no call.
    let (partial, error) = read(&api(), "test", 200, stream(&chunks[..2]).as_bytes());
    assert_eq!((partial.tool_calls().count(), error.unwrap().kind()), (0, K::Protocol));
}

#[test]
fn stop_reasons_are_distinguished() {
    for (word, reason) in [
        ("STOP", StopReason::Stop),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", StopReason::ContentFilter),
        ("PROHIBITED_CONTENT", StopReason::ContentFilter),
        ("MALFORMED_FUNCTION_CALL", StopReason::Other("MALFORMED_FUNCTION_CALL".into())),
        ("SUNSET", StopReason::Other("SUNSET".into())),
    ] {
        let reply = reply(&api(), &stream(&[finished(word)]));
        assert_eq!((reply.stop_reason, reply.provider_stop_reason.as_deref()), (reason, Some(word)));
    }
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 5}});
    for body in [blocked.to_string(), stream(&[blocked])] {
        let reply = reply(&api(), &body);
        assert_eq!((reply.stop_reason, reply.usage.input), (StopReason::ContentFilter, 5));
        assert_eq!(reply.error.as_deref(), Some("PROHIBITED_CONTENT"));
    }
    // A proxy that leaves the finish reason out.
    let open = stream(&[chunk(&[json!({"text": "Hi"})])]);
    let (partial, error) = read(&api(), "test", 200, open.as_bytes());
    assert_eq!((partial.text().as_str(), error.unwrap().kind()), ("Hi", K::Protocol));
    assert_eq!(reply(&api().with_lenient_end(), &open).text(), "Hi");
}

#[test]
fn errors_are_distinguished() {
    for (status, word, message, expected, retryable) in [
        (400, "INVALID_ARGUMENT", "bad", K::InvalidRequest, false),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            K::ContextTooLong,
            false,
        ),
        (401, "UNAUTHENTICATED", "who", K::Auth, false),
        (403, "PERMISSION_DENIED", "no", K::Auth, false),
        (404, "NOT_FOUND", "no model", K::InvalidRequest, false),
        (429, "RESOURCE_EXHAUSTED", "slow", K::RateLimit, true),
        (500, "INTERNAL", "oops", K::Server, true),
        (503, "UNAVAILABLE", "busy", K::Overloaded, true),
        (504, "DEADLINE_EXCEEDED", "late", K::Timeout, true),
        (418, "NEW", "tea", K::InvalidRequest, false),
    ] {
        let error = json!({"error": {"code": status, "message": message, "status": word}});
        for body in [error.to_string(), json!([error]).to_string()] {
            let found = read(&api(), "test", status, body.as_bytes()).1.unwrap();
            assert_eq!(
                (found.kind(), found.is_retryable(), found.status()),
                (expected, retryable, Some(status)),
                "{word}"
            );
            assert_eq!((found.code(), found.message()), (Some(word), message));
        }
        let (partial, found) =
            read(&api(), "test", 200, stream(&[chunk(&[json!({"text": "Hi"})]), error]).as_bytes());
        let found = found.unwrap();
        assert_eq!(
            (partial.text().as_str(), found.kind(), found.is_retryable()),
            ("Hi", expected, retryable),
            "{word}"
        );
    }
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}]);
    let error = json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}});
    let found = read(&api(), "test", 429, error.to_string().as_bytes()).1.unwrap();
    assert_eq!(found.retry_after(), Some(Duration::from_millis(34_400)));
    let error = json!({"error": {"code": 400, "message": "key", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}});
    assert_eq!(read(&api(), "test", 400, error.to_string().as_bytes()).1.unwrap().kind(), K::Auth);
    for (code, expected) in [(json!("quota"), Some("quota")), (json!(null), None), (json!(429), Some("429"))]
    {
        let error = json!({"error": {"code": code, "message": "slow"}});
        assert_eq!(read(&api(), "test", 429, error.to_string().as_bytes()).1.unwrap().code(), expected);
    }
    for body in ["", "<html>", "{}", "[]", "data: 1\n\n", "data: nonsense\n\n", r#"{"candidates": []}"#] {
        assert_eq!(read(&api(), "test", 200, body.as_bytes()).1.unwrap().kind(), K::Protocol, "{body:?}");
    }
}

fn tool(name: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "additionalProperties": false});
    support::tool(name, &schema)
}

#[test]
fn a_request_has_everything_in_its_place() {
    let failed = ToolResultMessage::new("c2", "f", OutcomeKind::Failed)
        .with_content([Part::text("no"), Part::image(b"png", "image/png")]);
    let mut request = ModelRequest::new([
        Message::user([
            Part::text("Look"),
            Part::image(b"png", "image/png"),
            Part::new(Content::Document(
                Media::url("https://a.example/a.pdf").with_mime_type("application/pdf"),
            )),
            Part::audio(b"wav", "audio/wav"),
        ]),
        Message::assistant([
            Part::thinking("of another"),
            Part::tool_call("c1", "f", ""),
            Part::tool_call("c2", "f", "{broken"),
        ]),
        ToolResultMessage::new("c1", "f", OutcomeKind::Completed).with_content("3").into(),
        failed.into(),
    ]);
    request.system = Some("Be brief.".into());
    request.tools = [tool("f"), tool("g")].into();
    request.managed_tools = vec![ManagedTool::web_search(), ManagedTool::CodeExecution];
    let request = request
        .with_tool_choice(ToolChoice::Tool("f".into()))
        .with_max_tokens(99)
        .with_temperature(0.5)
        .with_top_p(0.9)
        .with_stop(["END"])
        .with_thinking(Thinking::High)
        .with_output(OutputSchema::new(
            "answer",
            json!({"type": "object", "properties": {"x": {"type": "string"}}}),
        ))
        .with_provider_options("test", json!({"generationConfig": {"seed": 7, "topP": null}}));
    let http = api().encode(&ModelInfo::new("test", Gemini::API, "gemini-2.5-pro"), &request).unwrap();
    assert_eq!(
        http.url(api().base_url()),
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    let schema = json!({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "required": [], "additionalProperties": false});
    assert_eq!(
        http.json()["tools"][0]["functionDeclarations"][0],
        json!({"name": "f", "description": "Does it.", "parametersJsonSchema": schema})
    );
    assert_eq!(
        (&http.json()["tools"][1], &http.json()["tools"][2]),
        (&json!({"googleSearch": {}}), &json!({"codeExecution": {}}))
    );
    assert_eq!(
        http.json()["toolConfig"],
        json!({
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]},
            "includeServerSideToolInvocations": true,
        })
    );
    let vertex = body(&api().with_version(""), "gemini-3-flash", &request);
    assert_eq!(
        vertex["toolConfig"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["functionCallingConfig"]
    );
    let own = ModelRequest { tools: Vec::new().into(), ..request.clone() };
    assert_eq!(body(&api(), "gemini-3-flash", &own.with_strict_tools(true)).get("toolConfig"), None);
    assert_eq!(http.json()["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    let config = &http.json()["generationConfig"];
    assert_eq!(
        (&config["responseMimeType"], &config["responseJsonSchema"]["type"]),
        (&json!("application/json"), &json!("object"))
    );
    assert_eq!(config["thinkingConfig"], json!({"includeThoughts": true, "thinkingBudget": 24576}));
    assert_eq!(
        (&config["maxOutputTokens"], &config["temperature"], &config["stopSequences"]),
        (&json!(99), &json!(0.5), &json!(["END"]))
    );
    assert_eq!((&config["seed"], config.get("topP")), (&json!(7), None));
    let contents = json!([
        {"role": "user", "parts": [{"text": "Look"}, {"inlineData": {"mimeType": "image/png", "data": "cG5n"}},
            {"fileData": {"fileUri": "https://a.example/a.pdf", "mimeType": "application/pdf"}},
            {"inlineData": {"mimeType": "audio/wav", "data": "d2F2"}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}},
            {"functionCall": {"name": "f", "args": {"invalid_json": "{broken"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "3"}}},
            {"functionResponse": {"name": "f", "response": {"error": "no"}}},
            {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}]},
    ]);
    assert_eq!(http.json()["contents"], contents);
    let third = body(&api(), "gemini-3-flash", &request);
    assert_eq!(
        third["contents"][2]["parts"][1]["functionResponse"]["parts"][0]["inlineData"]["data"],
        "cG5n"
    );
}

#[test]
fn versions_schemas_and_caches_have_their_own_forms() {
    let request = ModelRequest::default().with_tools([tool("f")]).with_output(OutputSchema::new(
        "answer",
        json!({
            "type": "object",
            "properties": {"x": {"type": ["string", "null"]}, "n": {"$ref": "#/$defs/Count"}},
            "$defs": {"Count": {"type": "integer"}},
        }),
    ));
    let older = api().with_open_api_schemas().with_version("v1");
    let http = older.encode(&ModelInfo::new("test", Gemini::API, "tunedModels/mine"), &request).unwrap();
    assert_eq!(http.path, "/v1/tunedModels/mine:streamGenerateContent?alt=sse");
    assert_eq!(
        http.json()["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["a"],
        json!({"type": "integer", "nullable": true})
    );
    assert_eq!(
        http.json()["generationConfig"]["responseSchema"]["properties"],
        json!({"x": {"type": "string", "nullable": true}, "n": {"type": "integer"}})
    );
    let vertex = api().with_version("");
    let http = vertex.encode(&ModelInfo::new("test", Gemini::API, "gemini-3-pro"), &request).unwrap();
    assert_eq!(
        http.url("https://v.example/v1/projects/p/publishers/google"),
        "https://v.example/v1/projects/p/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse"
    );

    let strict = ModelRequest::default().with_tools([tool("f")]).with_strict_tools(true);
    assert_eq!(body(&api(), "m", &strict)["toolConfig"]["functionCallingConfig"]["mode"], "VALIDATED");
    let cached =
        strict.with_system("S").with_provider_options("test", json!({"cachedContent": "cachedContents/1"}));
    let written = body(&api(), "m", &cached);
    assert_eq!(
        (written.get("tools"), written.get("systemInstruction"), written.get("toolConfig")),
        (None, None, None)
    );
}

#[test]
fn unsupported_requests_are_refused_with_a_reason() {
    let info = ModelInfo::new("test", Gemini::API, "m");
    let refused = |request: ModelRequest| api().encode(&info, &request).unwrap_err().message().to_owned();
    assert!(refused(ModelRequest::default().with_stop(["1", "2", "3", "4", "5", "6"])).contains("at most 5"));
    let limited = ManagedTool::web_search().allowed_domains(["x"]);
    for (tool, words) in [
        (ManagedTool::ImageGeneration, "`test` cannot run image generation"),
        (ManagedTool::other("acme", json!({"type": "x"})), "a tool of `acme`"),
        (limited, "by itself"),
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
            "systemInstruction": {"parts": [{"text": "S"}], "role": "user"},
            "generationConfig": {"temperature": 0.0, "responseModalities": ["TEXT"], "thinkingConfig": {"thinkingBudget": 5}},
            "safetySettings": [{"category": "X", "threshold": "Y"}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}},
            "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parameters_json_schema": {"type": "object"}}]}, {"fileSearch": {}}],
            "contents": [
                {"role": "user", "parts": [{"text": "a"}, {"text": "b"}, {"inlineData": {"mimeType": "image/png", "data": "AQI="}},
                    {"inline_data": {"mime_type": "image/png", "data": "AQI="}}]},
                {"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "", "thoughtSignature": "QQ=="},
                    {"functionCall": {"name": "f", "args": {"x": 1}, "id": "1"}, "thoughtSignature": "QQ=="}, {"functionCall": {"name": "g"}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "1", "response": {"output": "ok"}}},
                    {"functionResponse": {"name": "g", "response": {"any": [1]}}}, {"text": "and"}]},
                {"role": "model", "parts": [{"executableCode": {"code": "1", "language": "PYTHON"}}, {"text": "done"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "h", "response": {"error": "no"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "h", "response": {"output": "yes"}}}]},
                {"role": "user", "parts": [{"text": "apart"}]},
            ],
        }),
    );
    let results: Vec<_> = request.messages.iter().filter_map(|message| message.as_tool_result()).collect();
    let calls: Vec<_> = results
        .iter()
        .map(|result| (result.call_id.as_str(), result.tool.as_str(), result.is_error))
        .collect();
    assert_eq!(calls, [("1", "f", false), ("call_1", "g", false), ("", "h", true), ("", "h", false)]);
    for broken in [json!([]), json!({"contents": 5}), json!({"contents": [{"role": "x", "parts": []}]})] {
        assert!(api().parse_request("test", &broken).is_err());
    }
}

#[test]
fn fields_that_are_null_hide_nothing() {
    let reply = reply(
        &api(),
        &stream(&[
            chunk(&[json!({"text": "Hi", "functionCall": null, "executableCode": null})]),
            chunk(&[
                json!({"functionCall": {"name": "f", "args": {"a": 1}}, "executableCode": null, "text": null}),
            ]),
            chunk(&[json!({"text": null, "inlineData": {"mimeType": "image/png", "data": "AQI="}})]),
            finished("STOP"),
        ]),
    );
    assert_eq!(reply.text(), "Hi");
    assert_eq!(reply.tool_calls().map(|call| call.args.text()).collect::<Vec<_>>(), [r#"{"a":1}"#]);
    assert!(matches!(reply.content[2].content, Content::Image(_)));
}

fn calls(chunks: &[Value]) -> Vec<(String, String)> {
    let reply = reply(&api(), &stream(chunks));
    reply.tool_calls().map(|call| (call.name.clone(), call.args.text().to_owned())).collect()
}

#[test]
fn arguments_beside_marks_of_pieces_are_kept() {
    let own = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    for mark in [
        json!({"willContinue": false}),
        json!({"willContinue": null}),
        json!({"partialArgs": null}),
        json!({"partialArgs": [], "willContinue": false}),
    ] {
        let mut call = json!({"name": "f", "args": {"a": 1.0}});
        call.as_object_mut().unwrap().extend(mark.as_object().unwrap().clone());
        let said = calls(&[chunk(&[json!({"functionCall": call})]), finished("STOP")]);
        assert_eq!(said, [own("f", r#"{"a":1.0}"#)], "{mark}");
    }
    let begun = json!({"functionCall": {"name": "f", "args": {"a": 1}, "willContinue": true}});
    let more = json!({"functionCall": {"partialArgs": [{"jsonPath": "$.b", "numberValue": 2}]}});
    let said = calls(&[chunk(std::slice::from_ref(&begun)), chunk(&[more]), finished("STOP")]);
    assert_eq!(said, [own("f", r#"{"a":1,"b":2}"#)]);
    let end = json!({"functionCall": {}});
    let said = calls(&[chunk(&[begun]), chunk(&[end]), finished("STOP")]);
    assert_eq!(said, [own("f", r#"{"a":1}"#)]);
}

#[test]
fn a_call_that_is_open_at_a_broken_end_has_no_whole_arguments() {
    let begun = chunk(&[json!({"functionCall": {"name": "f", "willContinue": true}})]);
    let piece = |goes_on: bool| {
        let value = json!({"jsonPath": "$.p", "stringValue": "/home", "willContinue": goes_on});
        chunk(&[json!({"functionCall": {"partialArgs": [value], "willContinue": true}})])
    };
    for word in ["SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL", "OTHER", "MAX_TOKENS", "NEW"] {
        for chunks in [vec![], vec![piece(true)], vec![piece(false)]] {
            let chunks = [vec![begun.clone()], chunks, vec![finished(word)]].concat();
            let reply = reply(&api(), &stream(&chunks));
            assert!(reply.tool_calls().all(|call| call.args.value().is_none()), "{word} {chunks:?}");
        }
    }
    assert_eq!(calls(&[begun.clone(), piece(true), finished("STOP")])[0].1, r#"{"p":"/home"#);
    assert_eq!(calls(&[begun, piece(false), finished("STOP")])[0].1, r#"{"p":"/home"}"#);
}

#[test]
fn errors_in_a_stream_are_read_in_every_form() {
    let error = json!({"code": 503, "status": "UNAVAILABLE", "message": "Busy."});
    let begun = stream(&[chunk(&[json!({"text": "Hi"})])]);
    for odd in [
        format!("data: {}\n\n", json!([{"error": error}])),
        format!("event: error\ndata: {error}\n\n"),
        format!("{}\n", json!({"error": error})),
        format!("{:#}\n\n", json!([{"error": error}])),
    ] {
        let (partial, failed) = read(&api(), "test", 200, (begun.clone() + &odd).as_bytes());
        let failed = failed.unwrap();
        assert_eq!((failed.kind(), failed.message()), (K::Overloaded, "Busy."), "{odd}");
        assert_eq!(partial.text(), "Hi");
    }
    let finished = begun + "data:\n\n" + &stream(&[finished("STOP")]) + "data: over\n\n";
    assert_eq!(reply(&api(), &finished).text(), "Hi");
}

#[test]
fn the_name_of_a_model_stays_in_its_part_of_the_path() {
    let encode = |name: &str| {
        let model = ModelInfo::new("gemini", Gemini::API, name);
        Gemini::default().encode(&model, &ModelRequest::new([Message::user("Hi")]))
    };
    for (name, path) in [
        ("gemini-3-flash@001", "models/gemini-3-flash@001"),
        ("tunedModels/x_1.5", "tunedModels/x_1.5"),
        ("publishers/google/models/g", "publishers/google/models/g"),
        ("ü?key=x#y", "models/%C3%BC%3Fkey%3Dx%23y"),
        ("a%2f..%2fb:c", "models/a%252f..%252fb%3Ac"),
    ] {
        assert_eq!(encode(name).unwrap().path, format!("/v1beta/{path}:streamGenerateContent?alt=sse"));
    }
    for name in ["gemini/../../v1/other", "..", "./x", "a//b", "/a", "a/"] {
        let error = encode(name).unwrap_err();
        assert_eq!(error.kind(), crate::model::ModelErrorKind::InvalidRequest, "{name}");
    }
}

#[test]
fn a_paused_reply_is_continued_by_its_token_and_sent_as_one_turn_once_it_is_complete() {
    let piece = |text: &str, token: &str| {
        let end = json!({"candidates": [{"finishReason": "CONTINUATION", "continuationToken": token}]});
        let mut reply = reply(&api(), &stream(&[chunk(&[json!({"text": text})]), end]));
        reply.model = "gemini-x".to_owned();
        Message::from(reply)
    };
    let user = || Message::user("Tell me all.");
    let encoded = |messages: Vec<Message>| body(&api(), "gemini-x", &ModelRequest::new(messages));
    let asked = json!({"role": "user", "parts": [{"text": "Tell me all."}]});
    for hops in 1..=3 {
        let mut messages = vec![user()];
        messages.extend((0..hops).map(|hop| piece("Once ", &format!("T{hop}"))));
        let sent = encoded(messages.clone());
        assert_eq!(
            (&sent["contents"], &sent["continuationToken"]),
            (&json!([asked]), &json!(format!("T{}", hops - 1)))
        );
        messages.push(Message::assistant("upon a time."));
        messages.push(user());
        let sent = encoded(messages);
        assert_eq!(sent.get("continuationToken"), None);
        let contents = sent["contents"].as_array().unwrap();
        assert_eq!(contents.len(), 3, "{sent}");
        assert_eq!(contents[1]["parts"].as_array().unwrap().len(), hops + 1);
        assert_eq!(contents[1]["parts"][hops]["text"], "upon a time.");
    }
    // Another provider cannot use the token, so it gets the text received so far.
    let other = ModelInfo::new("other", "gemini-generate-content", "m");
    let request = ModelRequest::new([user(), piece("Once ", "T")]);
    let sent = api().encode(&other, &request).unwrap().json();
    assert_eq!((sent.get("continuationToken"), sent["contents"].as_array().unwrap().len()), (None, 2));
}
