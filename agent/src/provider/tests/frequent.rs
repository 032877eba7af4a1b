//! Tests that the fast parser of frequent events gives the same events as the general parser, also for malformed input.

use crate::model::{ModelEvent, ModelInfo};
use crate::provider::frequent::GENERAL_ONLY;
use crate::provider::{Protocol, ReplyReader, protocols};

fn read(protocol: &dyn Protocol, body: &[u8], chunk: usize) -> (Vec<ModelEvent>, Option<String>) {
    let info = ModelInfo::new("test", protocol.api(), "m");
    let (mut reader, mut events) = (ReplyReader::new(protocol, &info, 200, Vec::new()), Vec::new());
    let pushed = body.chunks(chunk.max(1)).try_for_each(|chunk| reader.push(chunk, &mut events));
    let end = pushed.and_then(|()| reader.finish(protocol, &mut events));
    (events, end.err().map(|error| format!("{error} {:?}", error.body())))
}

fn read_generally(protocol: &dyn Protocol, body: &[u8]) -> (Vec<ModelEvent>, Option<String>) {
    GENERAL_ONLY.set(true);
    let read = read(protocol, body, body.len());
    GENERAL_ONLY.set(false);
    read
}

/// Returns for each protocol its name, the first events of a stream, and the frequent events after them.
fn streams() -> [(&'static str, Vec<&'static str>, Vec<&'static str>); 4] {
    [
        (
            "openai-chat",
            vec![
                r#"{"id":"r","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                r#"{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}}]}"#,
            ],
            vec![
                r#"{"id":"r","object":"chat.completion.chunk","created":1741569952,"model":"m","choices":[{"index":0,"delta":{"content":"a \"b\" \u00e9\n"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}"#,
                r#"{"id":"r","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm","refusal":null}}]}"#,
                r#"{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},"stop_reason":null}]}"#,
            ],
        ),
        (
            "openai-responses",
            vec![
                r#"{"type":"response.created","response":{"id":"r","model":"m"}}"#,
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i"}}"#,
                r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"x"}"#,
                r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f","call_id":"c","name":"f"}}"#,
                r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"reasoning","id":"t","summary":[]}}"#,
                r#"{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":0,"delta":"x"}"#,
            ],
            vec![
                r#"{"type":"response.output_text.delta","sequence_number":7,"item_id":"i","output_index":0,"content_index":0,"delta":"a\tb","logprobs":[],"obfuscation":"x"}"#,
                r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":1,"delta":"{\"a\":1}"}"#,
                r#"{"type":"response.reasoning_summary_text.delta","item_id":"t","output_index":2,"summary_index":0,"delta":"hm"}"#,
            ],
        ),
        (
            "anthropic-messages",
            vec![
                r#"{"type":"message_start","message":{"id":"r","model":"m"}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":""}}"#,
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
            ],
            vec![
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a \"b\" \u00e9"}}"#,
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
            ],
        ),
        (
            "gemini-generate-content",
            vec![
                r#"{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"}}],"modelVersion":"m","responseId":"r"}"#,
            ],
            vec![
                r#"{"candidates":[{"content":{"parts":[{"text":"a \"b\" \u00e9"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":9,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4}]},"modelVersion":"m","responseId":"r"}"#,
                r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}"#,
            ],
        ),
    ]
}

fn body(events: &[&str]) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

#[test]
fn frequent_events_are_read_as_others_are() {
    for (api, begin, frequent) in streams() {
        let Some(protocol) = crate::provider::protocol(api) else { continue };
        let all: Vec<&str> = begin.iter().chain(&frequent).chain(&frequent).copied().collect();
        let expected = read_generally(&*protocol, &body(&all));
        assert!(expected.0.len() > 2 * frequent.len(), "{api}: {expected:?}");
        for chunk in [1, 7, 100, 1 << 20] {
            assert_eq!(read(&*protocol, &body(&all), chunk), expected, "{api}");
        }
    }
}

#[test]
fn malformed_frequent_events_fail_as_others_do() {
    let pieces = [
        "", "\"", "[", "{", "]", "}", ",", ":", "null", "1e999", "-1", "0.5", "true", "\\ud800", "\"x\":1,",
        "[\"x\"]", "error", " ",
    ];
    let mut compared = 0;
    for (api, begin, frequent) in streams() {
        let Some(protocol) = crate::provider::protocol(api) else { continue };
        for event in frequent {
            for at in (0..event.len()).step_by(3).filter(|at| event.is_char_boundary(*at)) {
                // A piece is inserted, or replaces one byte or the rest of the token.
                let token = event[at..].find([',', ':', '}', ']', '"']).unwrap_or(0);
                for (piece, length) in
                    pieces.iter().flat_map(|piece| [(piece, 0), (piece, 1), (piece, token)])
                {
                    let rest = event.get(at + length..).unwrap_or_default();
                    let changed = format!("{}{piece}{rest}", &event[..at]);
                    let all: Vec<&str> = begin.iter().copied().chain([&*changed, event]).collect();
                    let body = body(&all);
                    assert_eq!(
                        read(&*protocol, &body, body.len()),
                        read_generally(&*protocol, &body),
                        "{api}: {changed}"
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5_000 || protocols().count() < 4, "{compared}");
}

#[test]
#[ignore = "recorded: needs AGENT_RECORDINGS"]
fn recorded_streams_are_read_as_the_general_reading_does() {
    let beside = || [env!("CARGO_MANIFEST_DIR"), "../../shared/cassettes"].iter().collect();
    let folder = std::env::var_os("AGENT_RECORDINGS").map_or_else(beside, std::path::PathBuf::from);
    let mut streams = 0;
    let folders =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    for path in
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path())
    {
        if path.extension().is_none_or(|end| end != "sse") {
            continue;
        }
        let body = std::fs::read(&path).unwrap();
        for (api, ..) in self::streams() {
            let Some(protocol) = crate::provider::protocol(api) else { continue };
            let expected = read_generally(&*protocol, &body);
            for chunk in [1, 100, body.len()] {
                assert_eq!(read(&*protocol, &body, chunk), expected, "{}", path.display());
            }
        }
        streams += 1;
    }
    assert!(streams > 50, "{streams}");
}
