//! Compares this adapter with recordings of another Chat Completions client: the files `openai/chat.json` and `openai/sse.json` in the
//! folder `AGENT_VECTORS` (by default `shared/vectors`, next to the repository).

use serde_json::{Value, json};

use super::*;
use crate::message::{AssistantMessage, Message, Part, StopReason};
use crate::model::{ModelEvent, ModelStream, StepCx, Thinking};
use crate::provider::sse::SseParser;
use crate::provider::tests::support::{body, read};
use crate::provider::{HttpRequest, ReplyReader};

fn vectors(file: &str) -> Value {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vectors");
    let root = std::env::var_os("AGENT_VECTORS").unwrap_or_else(|| beside.into());
    let path = std::path::Path::new(&root).join("openai").join(file);
    let text =
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; set AGENT_VECTORS", path.display()));
    serde_json::from_slice(&text).unwrap()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn part(part: &Part) -> Value {
    use crate::message::Content;
    match &part.content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Thinking { text, .. } => json!({"type": "thinking", "thinking": text}),
        Content::ToolCall(call) => {
            let arguments = call.args.value().unwrap_or_else(|| call.args.text().into());
            json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
        }
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn recorded_streams_decode_to_the_recorded_events() {
    let vectors = vectors("chat.json");
    for vector in list(&vectors, "streams") {
        let id = vector["id"].as_str().unwrap();
        if vector.get("cancelled_before_start").is_some() {
            // The tests of `agent::model` cover cancellation.
            continue;
        }
        let status = vector["http_status"].as_u64().map_or(200, |status| u16::try_from(status).unwrap());
        let chunks: String = list(vector, "chunks").iter().filter_map(Value::as_str).collect();
        let text = vector["http_body"].as_str().unwrap_or(&chunks);
        let (message, error) = read(&OpenAiChat::default(), "test", status, text.as_bytes());
        let result = &vector["result"];
        let failed = result["stop_reason"] == "error";
        let empty = json!({"type": "text", "text": ""});
        let expected: Vec<&Value> = list(result, "content").iter().filter(|part| **part != empty).collect();
        let found: Vec<Value> = message.content.iter().map(part).collect();
        // Ids are not compared: a call without an id gets another id than in the recording.
        assert_eq!(found.len(), expected.len(), "{id}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            for key in ["type", "text", "thinking", "name", "arguments"] {
                assert_eq!(found.get(key), expected.get(key), "{id}");
            }
        }
        if failed {
            // A failure in a recording is an error here, or a reply with the stop reason `error`.
            assert!(error.is_some() || message.stop_reason == StopReason::Error, "{id}: {message:?}");
            continue;
        }
        // A stream without an end and an empty stream are errors here, but succeed in the recording.
        let has_end = chunks.contains("[DONE]") || chunks.contains("finish_reason\":\"");
        assert_eq!(error.is_none(), has_end, "{id}: {error:?}");
        if error.is_none() {
            let asks = message.tool_calls().next().is_some();
            let word = if asks && result["stop_reason"] == "stop" {
                "tool_use"
            } else {
                result["stop_reason"].as_str().unwrap()
            };
            assert_eq!(message.stop_reason.as_str(), word, "{id}");
            assert_eq!(message.response_id.as_deref(), result["response_id"].as_str(), "{id}");
            let usage = (message.usage.input, message.usage.output);
            let expected = (result["usage"]["input"].as_u64(), result["usage"]["output"].as_u64());
            assert_eq!((Some(usage.0), Some(usage.1)), expected, "{id}");
        }
        let info = ModelInfo::new("test", OpenAiChat::API, "m");
        let mut reader = ReplyReader::new(&OpenAiChat::default(), &info, status, Vec::new());
        let mut events = Vec::new();
        let pushed = reader.push(text.as_bytes(), &mut events);
        let end = pushed.and_then(|()| reader.finish(&OpenAiChat::default(), &mut events));
        let events: Vec<_> = events.into_iter().map(Ok).chain(end.err().map(Err)).collect();
        let told = told(ModelStream::from_events(&StepCx::new(), &info, events));
        let recorded: Vec<(String, u64)> = list(vector, "events")
            .iter()
            .filter_map(|event| {
                Some((event["type"].as_str()?.to_owned(), event.get("content_index")?.as_u64()?))
            })
            .filter(|(kind, _)| kind.ends_with("_start"))
            .collect();
        assert_eq!(told, recorded, "{id}");
    }
}

fn told(mut stream: ModelStream) -> Vec<(String, u64)> {
    let mut starts = Vec::new();
    while let Some(event) = crate::provider::tests::support::now(stream.next()) {
        let (word, index) = match event {
            Ok(ModelEvent::TextStart { content_index }) => ("text_start", content_index),
            Ok(ModelEvent::ThinkingStart { content_index }) => ("thinking_start", content_index),
            Ok(ModelEvent::ToolCallStart { content_index, .. }) => ("tool_call_start", content_index),
            _ => continue,
        };
        starts.push((word.to_owned(), index as u64));
    }
    starts
}

#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn recorded_requests_are_what_was_recorded() {
    let vectors = vectors("chat.json");
    for vector in list(&vectors, "payloads") {
        let id = vector["id"].as_str().unwrap();
        let given = &vector["model"]["compat"];
        let mut compat = Compat::plain();
        // The adapter that made the recordings does not request usage.
        compat.stream_usage = false;
        if given["max_tokens_field"] == "max_completion_tokens" {
            compat.max_tokens_field = "max_completion_tokens".into();
        }
        if given["system_role"] == "user" {
            compat.system_role = Some("user".into());
        }
        compat.thinking = None;
        let context = &vector["context"];
        let mut request = ModelRequest::new(
            list(context, "messages")
                .iter()
                .map(|message| -> Message { serde_json::from_value(message.clone()).unwrap() }),
        );
        request.system = context["system_prompt"].as_str().map(Into::into);
        let tools = list(context, "tools").iter();
        request.tools =
            tools.map(|tool| crate::provider::tools::read_tool(tool, "parameters").unwrap()).collect();
        if given["supports_parallel_tool_calls"] == false {
            request.parallel_tool_calls = Some(false);
        }
        request.max_tokens = vector["options"]["max_tokens"].as_u64();
        request.thinking =
            vector["options"]["reasoning"].as_str().map(|word| word.parse::<Thinking>().unwrap());
        let mut written = body(&OpenAiChat::default().with_compat(compat), "m", &request);
        // The recorded payloads have no tool choice.
        written.as_object_mut().unwrap().shift_remove("tool_choice");
        assert_eq!(written, vector["payload"], "{id}");
    }
    for vector in list(&vectors, "endpoints") {
        let base = vector["in"].get("endpoint").or(vector["in"].get("base_url")).and_then(Value::as_str);
        if let (Some(base), Some(expected)) = (base, vector["out"].as_str()) {
            assert_eq!(HttpRequest::post("/chat/completions", Value::Null).url(base), expected);
        }
    }
    for vector in list(&vectors, "finish_reasons") {
        let reply = json!({"choices": [{"message": {"content": "x"}, "finish_reason": vector["in"]}]});
        let (message, _): (AssistantMessage, _) =
            read(&OpenAiChat::default(), "test", 200, reply.to_string().as_bytes());
        assert_eq!(message.stop_reason.as_str(), vector["out"], "{}", vector["in"]);
    }
    for vector in list(&vectors, "usage") {
        let reply = json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": vector["in"]});
        let (message, _) = read(&OpenAiChat::default(), "test", 200, reply.to_string().as_bytes());
        for (ours, theirs) in [
            (message.usage.input, "input"),
            (message.usage.output, "output"),
            (message.usage.cache_read, "cache_read"),
            (message.usage.total, "total_tokens"),
        ] {
            assert_eq!(Some(ours), vector["out"][theirs].as_u64(), "{theirs} of {}", vector["in"]);
        }
    }
}

#[test]
#[ignore = "recorded: needs AGENT_VECTORS"]
fn recorded_event_streams_are_cut_as_was_recorded() {
    let vectors = vectors("sse.json");
    for vector in list(&vectors, "cases") {
        let bytes: Vec<u8> = match vector.get("chunks_hex") {
            Some(_) => {
                list(vector, "chunks_hex").iter().flat_map(|hex| from_hex(hex.as_str().unwrap())).collect()
            }
            None => list(vector, "chunks")
                .iter()
                .flat_map(|text| text.as_str().unwrap().as_bytes().to_vec())
                .collect(),
        };
        for size in [1, 3, bytes.len().max(1)] {
            let (mut parser, mut found) = (SseParser::new(), Vec::new());
            let mut on = |event: crate::provider::sse::SseEvent<'_>| found.push(event.data.to_owned());
            for chunk in bytes.chunks(size) {
                parser.push(chunk, &mut on).unwrap();
            }
            parser.finish(&mut on).unwrap();
            let id = vector["id"].as_str().unwrap();
            if vector.get("error").is_some() {
                let error = read(&OpenAiChat::default(), "test", 200, &bytes).1.unwrap();
                assert_eq!(error.kind(), crate::model::ModelErrorKind::Protocol, "{id}");
                continue;
            }
            let per_chunk =
                list(vector, "events_per_chunk").iter().flat_map(|events| events.as_array().unwrap());
            let expected = per_chunk.chain(list(vector, "events_on_finish"));
            let expected: Vec<&str> = expected.map(|event| event["data"].as_str().unwrap()).collect();
            // By the standard, a lone CR ends a line.
            let expected = if id.starts_with("cr_only") { vec!["{\"a\":1}"] } else { expected };
            assert_eq!(found, expected, "{id}");
        }
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
