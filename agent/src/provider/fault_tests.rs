//! Streams of every protocol, cut at each byte and spoilt at each byte.

use super::Protocol;
use super::test_support::read;
use crate::model::ModelErrorKind;

/// Text, then a call, then the end.
fn streams() -> Vec<(Box<dyn Protocol>, String)> {
    vec![
        #[cfg(feature = "openai")]
        (
            Box::new(super::openai::OpenAiChat::default()),
            [
                r#"data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hé"}}]}"#,
                r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\""}}]}}]}"#,
                r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
                r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
                r#"data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
                "data: [DONE]",
                "",
            ]
            .join("\n\n"),
        ),
        #[cfg(feature = "openai")]
        (
            Box::new(super::openai::OpenAiResponses::default()),
            [
                r#"data: {"type":"response.created","response":{"id":"r","model":"m","status":"in_progress","output":[]}}"#,
                r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}"#,
                r#"data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m1","delta":"Hé"}"#,
                r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hé","annotations":[]}]}}"#,
                r#"data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"t1","name":"f","arguments":""}}"#,
                r#"data: {"type":"response.function_call_arguments.delta","output_index":1,"item_id":"f1","delta":"{\"a\""}"#,
                r#"data: {"type":"response.function_call_arguments.delta","output_index":1,"item_id":"f1","delta":":1}"}"#,
                r#"data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"t1","name":"f","arguments":"{\"a\":1}"}}"#,
                r#"data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}"#,
                "",
            ]
            .join("\n\n"),
        ),
        #[cfg(feature = "anthropic")]
        (
            Box::new(super::anthropic::AnthropicMessages::default()),
            [
                r#"data: {"type":"message_start","message":{"id":"m","model":"m","content":[],"usage":{"input_tokens":3}}}"#,
                r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé"}}"#,
                r#"data: {"type":"content_block_stop","index":0}"#,
                r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}"#,
                r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
                r#"data: {"type":"content_block_stop","index":1}"#,
                r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
                r#"data: {"type":"message_stop"}"#,
                "",
            ]
            .join("\n\n"),
        ),
        #[cfg(feature = "gemini")]
        (
            Box::new(super::gemini::Gemini::default()),
            [
                r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hé"}]},"index":0}],"modelVersion":"m","responseId":"r"}"#,
                r#"data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"t1","name":"f","args":{"a":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}"#,
                "",
            ]
            .join("\r\n\r\n"),
        ),
    ]
}

#[test]
fn a_cut_stream_gives_a_prefix_and_an_error_and_never_half_a_call() {
    for (protocol, body) in streams() {
        let api = protocol.api();
        let whole = read(&*protocol, "test", 200, body.as_bytes());
        assert!(whole.1.is_none(), "{api}: {:?}", whole.1);
        assert_eq!((whole.0.text().as_str(), whole.0.tool_calls().count()), ("Hé", 1), "{api}");
        assert_eq!(whole.0.stop_reason.as_str(), "tool_use", "{api}");
        let mut failures = 0;
        for cut in 0..body.len() {
            let (partial, error) = read(&*protocol, "test", 200, &body.as_bytes()[..cut]);
            assert!("Hé".starts_with(&partial.text()), "{api} cut at {cut}: {:?}", partial.text());
            // A call that was handed out before the end is whole, or the reply says that it broke off.
            let is_whole = partial.tool_calls().all(|call| call.args.text() == r#"{"a":1}"#);
            match error {
                Some(error) => {
                    assert_eq!(error.kind(), ModelErrorKind::Protocol, "{api} cut at {cut}: {error}");
                    assert!(error.is_retryable(), "{api} cut at {cut}: {error}");
                    assert!(is_whole, "{api} cut at {cut}");
                    failures += 1;
                }
                None => assert_eq!(partial.content, whole.0.content, "{api} cut at {cut}"),
            }
        }
        assert!(failures > body.len() / 2, "{api}: only {failures} of {} cuts were seen", body.len());
    }
}

#[test]
fn bytes_that_are_no_text_are_errors_that_keep_what_came() {
    for (protocol, body) in streams() {
        let api = protocol.api();
        let whole = read(&*protocol, "test", 200, body.as_bytes()).0;
        let mut failures = 0;
        for at in 0..body.len() {
            let mut bytes = body.clone().into_bytes();
            bytes[at] = 0xFF;
            let (partial, error) = read(&*protocol, "test", 200, &bytes);
            let Some(error) = error else {
                // Between events, or in the name of a field: an event less, or a line that means nothing.
                assert!("Hé".starts_with(&partial.text()), "{api} at {at}");
                continue;
            };
            failures += 1;
            assert_eq!(error.kind(), ModelErrorKind::Protocol, "{api} at {at}: {error}");
            assert!("Hé".starts_with(&partial.text()), "{api} at {at}: {:?}", partial.text());
            let calls: Vec<_> = partial.tool_calls().collect();
            assert!(calls.is_empty() || calls[0] == whole.tool_calls().next().unwrap(), "{api} at {at}");
        }
        assert!(failures > body.len() / 2, "{api}: only {failures} of {} were seen", body.len());
    }
}
