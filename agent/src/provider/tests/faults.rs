//! Streams of every protocol that end after any byte, or in which any byte is invalid.

use super::support::{now, read};
use crate::message::AssistantMessage;
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelStream, StepCx};
use crate::provider::{Protocol, ReplyReader};

/// A stream of each protocol: text, a call, and the end. All protocols except Responses report token counts in the first event.
fn streams() -> Vec<(Box<dyn Protocol>, String)> {
    vec![
        #[cfg(feature = "openai")]
        (
            Box::new(crate::provider::openai::OpenAiChat::default()),
            [
                r#"data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hé"}}],"usage":{"prompt_tokens":3}}"#,
                r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\""}}]}}]}"#,
                r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
                r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
                r#"data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
                "data: [DONE]",
                "",
            ]
            .join("\n\n"),
        ),
        #[cfg(feature = "openai")]
        (
            Box::new(crate::provider::openai::OpenAiResponses::default()),
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
            Box::new(crate::provider::anthropic::AnthropicMessages::default()),
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
            Box::new(crate::provider::gemini::Gemini::default()),
            [
                r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hé"}]},"index":0}],"modelVersion":"m","responseId":"r","usageMetadata":{"promptTokenCount":3}}"#,
                r#"data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"t1","name":"f","args":{"a":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}"#,
                "",
            ]
            .join("\r\n\r\n"),
        ),
    ]
}

/// Reads the start of a response. Then the connection breaks for `reason`, or ends regularly if `reason` is `None`.
fn handed_out(
    protocol: &dyn Protocol,
    bytes: &[u8],
    reason: Option<&ModelError>,
) -> (Vec<String>, AssistantMessage, Option<ModelError>) {
    let info = ModelInfo::new("test", protocol.api(), "model");
    let headers = vec![("x-request-id".to_owned(), "req_1".to_owned())];
    let mut reader = ReplyReader::new(protocol, &info, 200, headers);
    let mut events = Vec::new();
    let pushed = reader.push(bytes, &mut events);
    let end = pushed.and_then(|()| match reason {
        Some(reason) => reader.break_off(protocol, reason.clone(), &mut events),
        None => reader.finish(protocol, &mut events),
    });
    let events: Vec<_> = events.into_iter().map(Ok).chain(end.err().map(Err)).collect();
    let mut stream = ModelStream::from_events(&StepCx::new(), &info, events);
    let (mut events, mut error) = (Vec::new(), None);
    while let Some(event) = now(stream.next()) {
        match event {
            // Usage and provider data are emitted at the end, so they are not compared.
            Ok(ModelEvent::Usage { .. } | ModelEvent::PartData { .. } | ModelEvent::MessageData { .. }) => {}
            Ok(event) => events.push(serde_json::to_string(&event).unwrap_or_default()),
            Err(failed) => error = Some(failed),
        }
    }
    (events, stream.into_partial(), error)
}

#[test]
fn a_connection_that_breaks_at_any_byte_takes_nothing_that_came() {
    let reset = ModelError::new(ModelErrorKind::Connection, "reset");
    let stall = ModelError::new(ModelErrorKind::Timeout, "nothing came");
    for (protocol, body) in streams() {
        let api = protocol.api();
        let (told, whole, error) = handed_out(&*protocol, body.as_bytes(), None);
        assert!(error.is_none(), "{api}: {error:?}");
        let first = body.find("\n\n").or(body.find("\r\n\r\n")).unwrap_or_default();
        let (mut failures, mut complete) = (0, 0);
        for (cut, reason) in (0..=body.len()).flat_map(|cut| [(cut, &reset), (cut, &stall)]) {
            let bytes = &body.as_bytes()[..cut];
            let (prefix, partial, error) = handed_out(&*protocol, bytes, Some(reason));
            assert_eq!(prefix, told[..prefix.len()], "{api} cut at {cut}");
            if cut >= first && api != "openai-responses" {
                assert_eq!(partial.usage.input, 3, "{api} cut at {cut}: counts are lost");
            }
            match error {
                None => {
                    complete += 1;
                    assert_eq!(partial.content, whole.content, "{api} cut at {cut}");
                    assert_eq!(partial.stop_reason, whole.stop_reason, "{api} cut at {cut}");
                }
                Some(error) => {
                    failures += 1;
                    assert_eq!(
                        (error.kind(), error.message()),
                        (reason.kind(), reason.message()),
                        "{api} at {cut}"
                    );
                    assert_eq!(error.request_id(), Some("req_1"), "{api} cut at {cut}");
                    let calls = partial.tool_calls().filter(|call| call.args.text() != r#"{"a":1}"#);
                    assert_eq!(calls.count(), 0, "{api} cut at {cut}: half a call");
                }
            }
            if reason.is_connection() {
                // The same events arrive if the body ends here without an error.
                assert_eq!(handed_out(&*protocol, bytes, None).0, prefix, "{api} cut at {cut}");
            }
        }
        assert!(failures > body.len() && complete >= 2, "{api}: {failures} failures, {complete} whole");
    }
}

#[cfg(feature = "gemini")]
#[test]
fn a_broken_connection_is_no_end_where_ends_are_not_told() {
    let lenient = crate::provider::gemini::Gemini::default().with_lenient_end();
    let reset = ModelError::new(ModelErrorKind::Connection, "reset");
    let text = br#"data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#;
    assert!(handed_out(&lenient, text, None).2.is_none());
    let (_, partial, error) = handed_out(&lenient, text, Some(&reset));
    assert_eq!((partial.text().as_str(), error.unwrap().kind()), ("Hi", ModelErrorKind::Connection));
}

#[test]
fn an_answer_with_an_error_status_says_what_it_is_though_it_breaks_off() {
    let reset = ModelError::new(ModelErrorKind::Connection, "reset");
    for (protocol, _) in streams() {
        let info = ModelInfo::new("test", protocol.api(), "model");
        for (status, kind, retryable) in
            [(401, ModelErrorKind::Auth, false), (429, ModelErrorKind::RateLimit, true)]
        {
            let headers = vec![("retry-after".to_owned(), "7".to_owned())];
            let mut reader = ReplyReader::new(&*protocol, &info, status, headers);
            reader.push(br#"{"error": {"mess"#, &mut Vec::new()).unwrap();
            let error = reader.break_off(&*protocol, reset.clone(), &mut Vec::new()).unwrap_err();
            assert_eq!((error.kind(), error.status(), error.is_retryable()), (kind, Some(status), retryable));
            assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), reset.to_string());
        }
    }
}

#[test]
fn a_body_that_came_whole_is_one_though_the_connection_breaks() {
    let reset = ModelError::new(ModelErrorKind::Connection, "reset");
    for (protocol, _) in streams() {
        let body = match protocol.api() {
            "openai-chat" => r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#,
            "openai-responses" => {
                r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}"#
            }
            "anthropic-messages" => r#"{"content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#,
            _ => r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#,
        };
        for cut in 0..=body.len() {
            let (_, partial, error) = handed_out(&*protocol, &body.as_bytes()[..cut], Some(&reset));
            assert_eq!(error.is_none(), cut == body.len(), "{} cut at {cut}", protocol.api());
            assert_eq!(partial.text(), if cut == body.len() { "Hi" } else { "" });
        }
    }
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
                // An invalid byte between events, or in the name of a field, is not an error: the line or the event is ignored.
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
