//! Recorded traffic of real providers, if there is some: `AGENT_RECORDINGS` names a folder with `anthropic`, `openai-chat`,
//! `compat-openai-chat` and `synthetic` in it, each with bodies (`NAME.sse`, `NAME.json`), and beside them what the official
//! SDK reads (`NAME.expected.json`), the status (`NAME.meta.json`) and the request (`NAME.request.json`).

use std::path::{Path, PathBuf};

use agent::Value;
use agent::message::{AssistantMessage, Content};
use agent::model::{ModelError, ModelInfo, ModelStream, StepCx};
use agent::provider::{Protocol, ReplyReader, protocol};

const FOLDERS: [(&str, &str); 4] = [
    ("anthropic", "anthropic"),
    ("openai-chat", "openai-chat"),
    ("compat-openai-chat", "openai-chat"),
    ("synthetic", ""),
];

/// The files of these folders that end so, and their protocol; none, and a word about it, without recordings.
fn files(end: &str) -> Vec<(PathBuf, String, std::sync::Arc<dyn Protocol>)> {
    let Some(root) = std::env::var_os("AGENT_RECORDINGS") else {
        println!("skipped: AGENT_RECORDINGS names no folder");
        return Vec::new();
    };
    let mut found = Vec::new();
    for (folder, api) in FOLDERS {
        for entry in std::fs::read_dir(Path::new(&root).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let api = match api {
                "" if name.starts_with("anthropic__") => "anthropic",
                "" if name.starts_with("chat__") => "openai-chat",
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
    ]
    .iter()
    .any(|(part, known)| name.contains(part) && *known == field)
}

#[tokio::test]
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
        let read = reading(&whole, error.as_ref());
        for (field, wanted) in expected.as_object().unwrap() {
            let wanted = without_nulls(wanted);
            let Some(found) = read.get(field) else { continue };
            let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
            if *found != wanted && !(is_empty(found) && is_empty(&wanted)) && !is_known(&name, field) {
                wrong.push(format!("{name}: {field} is {found}, expected {wanted}"));
            }
            checked += 1;
        }
        let fails = ["error", "stream_error", "must"]
            .iter()
            .any(|key| expected.get(key).is_some_and(|value| !value.is_null()));
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
            Content::Opaque(opaque) => others.push(opaque.value["type"].clone()),
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
        "usage": without_nulls(message.usage.raw.as_ref().unwrap_or(&Value::Null)),
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
fn recorded_requests_are_written_as_they_were_read() {
    for (folder, name, protocol) in files(".request.json") {
        let given = json(&folder.join(format!("{name}.request.json")));
        let (model, request) = protocol.parse_request("test", &given).unwrap();
        let written = protocol.encode(&ModelInfo::new("test", protocol.api(), model), &request).unwrap();
        assert_eq!(written.body, given, "{name}");
    }
}
