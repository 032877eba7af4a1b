//! Recorded traffic of real providers: the folders below, each
//! with bodies (`NAME.sse`, `NAME.json`), and beside them what the official
//! SDK reads (`NAME.expected.json`), the status (`NAME.meta.json`) and the request (`NAME.request.json`).

use std::path::{Path, PathBuf};

use crate::recorded::cassettes;
use agent::Value;
use agent::message::{AssistantMessage, Content};
use agent::model::{ModelError, ModelInfo, ModelStream, StepCx};
use agent::provider::{Protocol, ReplyReader, protocol};

const FOLDERS: [(&str, &str); 7] = [
    ("anthropic", "anthropic"),
    ("openai-chat", "openai-chat"),
    ("compat-openai-chat", "openai-chat"),
    ("openai-responses", "openai-responses"),
    ("compat-openai-responses", "openai-responses"),
    ("gemini", "gemini"),
    ("synthetic", ""),
];

/// The files of these folders that end so, and their protocol.
fn files(end: &str) -> Vec<(PathBuf, String, std::sync::Arc<dyn Protocol>)> {
    let mut found = Vec::new();
    for (folder, api) in FOLDERS {
        for entry in std::fs::read_dir(cassettes(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let api = match api {
                "" if name.starts_with("anthropic__") => "anthropic",
                "" if name.starts_with("chat__") => "openai-chat",
                "" if name.starts_with("responses__") => "openai-responses",
                "" if name.starts_with("gemini__") => "gemini",
                api => api,
            };
            if let (Some(stem), Some(protocol)) = (name.strip_suffix(end), protocol(api)) {
                found.push((path.with_file_name(""), stem.to_owned(), protocol));
            }
        }
    }
    found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    assert!(!found.is_empty(), "there are no recordings in the folder");
    found
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

async fn read(
    protocol: &dyn Protocol,
    status: u16,
    chunks: impl Iterator<Item = &[u8]>,
) -> (AssistantMessage, Option<ModelError>) {
    let info = ModelInfo::new("test", protocol.api(), "");
    let mut reader = ReplyReader::new(protocol, &info, status, Vec::new());
    let mut events = Vec::new();
    let mut end = Ok(());
    for chunk in chunks {
        end = end.and_then(|()| reader.push(chunk, &mut events));
    }
    let end = end.and_then(|()| reader.finish(protocol, &mut events));
    let events: Vec<_> = events.into_iter().map(Ok).chain(end.err().map(Err)).collect();
    let mut stream = ModelStream::from_events(&StepCx::new(), &info, events);
    let mut error = None;
    while let Some(event) = stream.next().await {
        error = event.err();
    }
    (stream.into_partial(), error)
}

/// Where we read more, or otherwise, than the SDK, and why.
fn is_known(name: &str, field: &str) -> bool {
    [
        // Several answers in one file: the SDK writes later deltas into earlier blocks; here they follow each other.
        ("anthropic-tool-search-", "text"),
        ("anthropic-tool-search-deferred-", "tool_calls"),
        // Thinking in lists and in `reasoning_details` alone; a call without `type`.
        ("test_mistral_model_thinking", "thinking"),
        ("test_snowflake_thinking", "thinking"),
        ("test_tool_choice_matrix_auto-mistral", "tool_calls"),
        // An error after the end of the reply: what was last said of the reply is not told.
        ("test_openrouter_stream_error", "finish"),
        ("test_openrouter_stream_error", "usage"),
        // Pieces of arguments: the SDK does not put them together.
        ("google-stream-no-args-tool-call", "tool_calls"),
        ("google-stream-tool-call-arguments", "tool_calls"),
    ]
    .iter()
    .any(|(part, known)| name.contains(part) && *known == field)
}

#[tokio::test]
#[ignore = "recorded: needs AGENT_RECORDINGS"]
async fn recorded_answers_are_read_as_expected_however_they_are_cut() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (folder, name, protocol) in files(".expected.json") {
        let sibling = |end: &str| folder.join(format!("{name}{end}"));
        let body = std::fs::read(sibling(".sse")).or_else(|_| std::fs::read(sibling(".json"))).unwrap();
        let status =
            sibling(".meta.json").exists().then(|| json(&sibling(".meta.json"))["status"].as_u64()).flatten();
        let status = u16::try_from(status.unwrap_or(200)).unwrap();
        let (whole, error) = read(&*protocol, status, body.chunks(body.len().max(1))).await;
        for (how, (message, failure)) in [
            ("bytes", read(&*protocol, status, body.chunks(1)).await),
            ("lines", read(&*protocol, status, body.split_inclusive(|byte| *byte == b'\n')).await),
        ] {
            assert_eq!(message, whole, "{name} in {how}");
            assert_eq!(
                failure.map(|e| e.to_string()),
                error.as_ref().map(ToString::to_string),
                "{name} in {how}"
            );
        }
        let expected = json(&sibling(".expected.json"));
        let read = match protocol.api() {
            "openai-responses" => responses(&whole, error.as_ref()),
            "gemini-generate-content" => gemini(&whole, error.as_ref()),
            _ => reading(&whole, error.as_ref()),
        };
        for (field, wanted) in expected.as_object().unwrap() {
            let wanted = without_nulls(wanted);
            let Some(found) = read.get(field) else { continue };
            let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
            if *found != wanted && !(is_empty(found) && is_empty(&wanted)) && !is_known(&name, field) {
                wrong.push(format!("{name}: {field} is {found}, expected {wanted}"));
            }
            checked += 1;
        }
        // What must be seen of a blocked prompt is that it was blocked, which is no error.
        let blocked = expected.get("block_reason").is_some_and(|value| !value.is_null());
        assert!(!blocked || whole.stop_reason == agent::message::StopReason::ContentFilter, "{name}");
        let fails = ["error", "stream_error", "must"]
            .iter()
            .any(|key| expected.get(key).is_some_and(|value| !value.is_null()) && !blocked);
        assert_eq!(error.is_some(), fails, "{name}: {error:?}");
    }
    println!("{checked} readings checked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Our reading in the words of the SDK's.
fn reading(message: &AssistantMessage, error: Option<&ModelError>) -> Value {
    let data =
        |part: &agent::message::Part, key: &str| Some(part.provider_data.as_ref()?.data.get(key)?.clone());
    let (mut signatures, mut redacted, mut others) = (Vec::new(), 0, Vec::new());
    for part in &message.content {
        match &part.content {
            Content::Thinking { redacted: true, .. } => redacted += 1,
            Content::Thinking { .. } => signatures.extend(data(part, "signature")),
            Content::ProviderTool(_) => others.extend(data(part, "type")),
            Content::Opaque(opaque) => others.push(opaque.data["type"].clone()),
            _ => {}
        }
    }
    let calls = message.tool_calls().map(|call| {
        let args = call.args.value().filter(Value::is_object);
        let args = args.unwrap_or_else(|| agent::json!({"__unparseable__": call.args.text()}));
        agent::json!({"id": call.id, "name": call.name, "args": args})
    });
    let failed = error.map(|error| agent::json!({"status": error.status()}));
    let mut reading = agent::json!({
        "text": message.text(),
        "thinking": message.thinking(),
        "refusal": message.refusal(),
        "tool_calls": calls.collect::<Vec<_>>(),
        "finish": message.provider_stop_reason,
        "stop_reason": message.provider_stop_reason,
        "usage": without_nulls(message.usage.raw.as_deref().unwrap_or(&Value::Null)),
        "signatures": signatures,
        "redacted": redacted,
        "other_blocks": others,
    });
    if failed.is_some() && message.content.is_empty() {
        // Then the SDK says only this.
        reading = agent::json!({});
    }
    reading
}

fn responses(message: &AssistantMessage, error: Option<&ModelError>) -> Value {
    let mut reading = reading(message, error);
    let item = |part: &agent::message::Part| match &part.content {
        Content::Opaque(opaque) => Some(opaque.data.clone()),
        _ => Some(part.provider_data.as_ref()?.data.clone()),
    };
    let items: Vec<Value> = message.content.iter().filter_map(item).collect();
    let is_encrypted = |item: &&Value| {
        item["type"] == "reasoning" && item["encrypted_content"].as_str().is_some_and(|c| !c.is_empty())
    };
    let others = message
        .content
        .iter()
        .filter(|part| matches!(part.content, Content::Opaque(_) | Content::ProviderTool(_)));
    let others: Vec<Value> = others.filter_map(item).map(|item| item["type"].clone()).collect();
    let ids: Vec<Value> =
        message.content.iter().filter(|part| part.as_tool_call().is_some()).filter_map(item).collect();
    if let Some(reading) = reading.as_object_mut().filter(|reading| !reading.is_empty()) {
        reading.insert("encrypted_reasoning_items".into(), items.iter().filter(is_encrypted).count().into());
        reading.insert("other_items".into(), others.into());
        reading.insert("status".into(), message.provider_stop_reason.clone().unwrap_or_default().into());
        reading.insert("response_id".into(), message.response_id.clone().unwrap_or_default().into());
        for (call, item) in reading["tool_calls"].as_array_mut().unwrap().iter_mut().zip(ids) {
            call["item_id"] = item["id"].clone();
        }
    }
    reading
}

fn gemini(message: &AssistantMessage, error: Option<&ModelError>) -> Value {
    let mut reading = reading(message, error);
    let (mut signatures, mut others) = (Vec::new(), Vec::new());
    for part in &message.content {
        let data = match &part.content {
            Content::Opaque(opaque) => Some(&opaque.data),
            _ => part.provider_data.as_ref().map(|data| &data.data),
        };
        let on = match &part.content {
            Content::ToolCall(_) => "functionCall",
            Content::Thinking { .. } => "thought",
            Content::Text(_) => "text",
            _ => "other",
        };
        if let Some(signature) = data.and_then(|data| data["thoughtSignature"].as_str()) {
            signatures.push(agent::json!({"on": on, "b64": signature}));
        }
        if on == "other" {
            let keys = data.and_then(Value::as_object).into_iter().flatten().map(|(key, _)| snake(key));
            others.extend(keys.filter(|key| key != "thought_signature").map(Value::from));
        }
    }
    if let Some(reading) = reading.as_object_mut().filter(|reading| !reading.is_empty()) {
        reading.insert("signatures".into(), signatures.into());
        reading.insert("other_parts".into(), others.into());
        let mut usage = snake_keys(message.usage.raw.as_deref().unwrap_or(&Value::Null));
        // The SDK does not know it.
        drop(usage.as_object_mut().and_then(|usage| usage.shift_remove("service_tier")));
        reading.insert("usage".into(), usage);
        // Ids are made here where there are none.
        for (part, call) in message
            .content
            .iter()
            .filter(|part| part.as_tool_call().is_some())
            .zip(reading["tool_calls"].as_array_mut().unwrap())
        {
            let id = part.provider_data.as_ref().and_then(|data| data.data.get("functionCall")?.get("id"));
            match id {
                Some(id) => call["id"] = id.clone(),
                None => drop(call.as_object_mut().unwrap().shift_remove("id")),
            }
        }
    }
    reading
}

fn snake_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| (snake(key), snake_keys(value))).collect(),
        Value::Array(list) => list.iter().map(snake_keys).collect(),
        other => other.clone(),
    }
}

fn snake(key: &str) -> String {
    let lower = |c: char| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() };
    key.chars().map(lower).collect()
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect()
        }
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[test]
#[ignore = "recorded: needs AGENT_RECORDINGS"]
fn recorded_requests_are_written_as_they_were_read() {
    for (folder, name, protocol) in files(".request.json") {
        let given = json(&folder.join(format!("{name}.request.json")));
        let meta = folder.join(format!("{name}.meta.json"));
        if json(&meta)["status"] != 200 {
            continue;
        }
        let (model, request) = protocol.parse_request("test", &given).unwrap();
        let written = protocol.encode(&ModelInfo::new("test", protocol.api(), model), &request).unwrap();
        assert_eq!(written.json(), given, "{name}");
    }
}
