//! Tests of a [`ModelStream`]: how it corrects, checks and ends the events of an adapter.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use serde_json::json;

use super::*;
use crate::message::{Content, Part, ProviderData, StopReason, Usage};

struct Given(std::vec::IntoIter<Result<ModelEvent, ModelError>>);

impl Stream for Given {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

fn stream(events: impl IntoIterator<Item = Result<ModelEvent, ModelError>>) -> ModelStream {
    let events: Vec<_> = events.into_iter().collect();
    ModelStream::new(&StepCx::new(), &ModelInfo::new("acme", "acme-chat", "a-1"), Given(events.into_iter()))
}

/// Runs a future that is always ready.
fn now<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Returns each event as a line of its main values, for example `text_delta 1 o`, and the result of the reply.
fn run(events: impl IntoIterator<Item = ModelEvent>) -> (Vec<String>, Result<AssistantMessage, ModelError>) {
    let mut stream = stream(events.into_iter().map(Ok));
    let mut told = Vec::new();
    while let Some(event) = now(stream.next()) {
        told.extend(event.map(|event| {
            let value = serde_json::to_value(&event).unwrap();
            let field = |key: &str| value.get(key).map(|v| v.as_str().map_or(v.to_string(), str::to_owned));
            let fields = ["update", "content_index", "id", "name", "delta", "reason"];
            fields.into_iter().filter_map(field).collect::<Vec<_>>().join(" ")
        }));
    }
    (told, now(stream.reply()))
}

use ModelEvent as E;

fn text(content_index: usize, delta: &str) -> E {
    E::TextDelta { content_index, delta: delta.into() }
}

fn call(content_index: usize, id: &str) -> E {
    E::ToolCallStart { content_index, id: id.into(), name: "f".into() }
}

fn args(content_index: usize, delta: &str) -> E {
    E::ToolCallDelta { content_index, delta: delta.into() }
}

fn stop(reason: StopReason) -> E {
    E::Stop { reason, detail: None, raw: None }
}

#[test]
fn missing_starts_and_ends_are_added() {
    let thinking = E::ThinkingDelta { content_index: 0, delta: "hm".into() };
    let (told, reply) = run([thinking, text(1, ""), text(1, "o"), text(1, "k"), stop(StopReason::Stop)]);
    let expected = [
        "thinking_start 0",
        "thinking_delta 0 hm",
        "text_start 1",
        "text_delta 1 o",
        "text_delta 1 k",
        "thinking_end 0",
        "text_end 1",
        "stop stop",
    ];
    assert_eq!(told, expected);
    let reply = reply.unwrap();
    assert_eq!((reply.thinking().as_str(), reply.text().as_str()), ("hm", "ok"));
    assert_eq!(
        (reply.provider.as_str(), reply.api.as_str(), reply.model.as_str()),
        ("acme", "acme-chat", "a-1")
    );
}

#[test]
fn calls_overlap_and_have_unique_ids() {
    let (told, reply) = run([
        call(0, "x"),
        call(1, "x"),
        call(2, ""),
        args(1, "{\"b\":"),
        args(0, "{}"),
        args(1, "1}"),
        E::ToolCallEnd { content_index: 1 },
        stop(StopReason::Stop),
    ]);
    let expected = [
        "tool_call_start 0 x f",
        "tool_call_start 1 x_2 f",
        "tool_call_start 2 call_3 f",
        "tool_call_delta 1 {\"b\":",
        "tool_call_delta 0 {}",
        "tool_call_delta 1 1}",
        "tool_call_end 1",
        "tool_call_end 0",
        "tool_call_end 2",
        "stop tool_use",
    ];
    assert_eq!(told, expected);
    let reply = reply.unwrap();
    let calls: Vec<_> = reply.tool_calls().map(|call| (call.id.as_str(), call.args.text())).collect();
    assert_eq!(calls, [("x", "{}"), ("x_2", "{\"b\":1}"), ("call_3", "{}")]);
}

#[test]
fn whole_parts_are_emitted_like_streamed_ones_and_final_ones_replace() {
    let signed = Part::text("hi").with_provider_data(ProviderData::new("acme", json!({"sig": "s"})));
    let (told, reply) = run([
        E::Part { content_index: 0, part: Box::new(signed.clone()) },
        E::Part { content_index: 1, part: Box::new(Part::image(b"png", "image/png")) },
        call(2, "c"),
        args(2, "{\"a\":"),
        E::Part { content_index: 2, part: Box::new(Part::tool_call("other", "f", "{\"a\":1}")) },
        E::Part { content_index: 3, part: Box::new(Part::text("")) },
        stop(StopReason::ToolUse),
        E::PartData { content_index: 3, data: ProviderData::new("acme", "late") },
        E::MessageData { data: ProviderData::new("acme", "whole") },
        E::Usage { usage: Box::new(Usage::new(3, 4)) },
    ]);
    let expected = [
        "text_start 0",
        "text_delta 0 hi",
        "text_end 0",
        "part 1",
        "tool_call_start 2 c f",
        "tool_call_delta 2 {\"a\":",
        "tool_call_end 2",
        "text_start 3",
        "text_end 3",
        "stop tool_use",
        "part_data 3",
        "message_data",
        "usage",
    ];
    assert_eq!(told, expected);
    let reply = reply.unwrap();
    assert_eq!(reply.content[0], signed);
    assert!(matches!(reply.content[1].content, Content::Image(_)));
    assert_eq!(reply.content[2], Part::tool_call("c", "f", "{\"a\":1}"));
    assert_eq!(reply.content[3].provider_data_of("acme"), Some(&json!("late")));
    assert_eq!((reply.usage.total, reply.provider_data.unwrap().data), (7, json!("whole")));
}

#[test]
fn a_panic_of_the_events_at_the_end_of_a_reply_is_caught() {
    struct Bomb(Given);
    impl Stream for Bomb {
        type Item = Result<ModelEvent, ModelError>;
        fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Pin::new(&mut self.0).poll_next(cx)
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the events panic");
        }
    }
    let events = vec![Ok(text(0, "Hi")), Ok(stop(StopReason::Stop))];
    let bomb = Bomb(Given(events.into_iter()));
    let reply = now(ModelStream::new(&StepCx::new(), &ModelInfo::default(), bomb).reply());
    assert_eq!(reply.unwrap().text(), "Hi");
}

#[test]
fn contradictions_and_broken_replies_are_protocol_errors() {
    let cases: [(Vec<E>, &str); 8] = [
        (vec![], "broke off"),
        (vec![text(0, "half")], "broke off"),
        (vec![text(1, "x")], "not begun"),
        (vec![E::TextStart { content_index: 2 }], "part 0 is next"),
        (vec![args(0, "{}")], "not begun"),
        (vec![text(0, "x"), args(0, "{}")], "changed its kind"),
        (vec![text(0, "x"), E::TextEnd { content_index: 0 }, text(0, "y")], "after its end"),
        (vec![stop(StopReason::Stop), text(0, "x")], "went on after its end"),
    ];
    for (events, words) in cases {
        let (_, reply) = run(events);
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::Protocol);
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn nothing_follows_an_error() {
    let part = E::Part { content_index: 0, part: Box::new(Part::refusal("no")) };
    let mut stream = stream([Ok(text(0, "Hi")), Ok(part), Ok(stop(StopReason::Stop))]);
    let mut seen = Vec::new();
    while let Some(event) = now(stream.next()) {
        seen.push(event.is_ok());
    }
    assert_eq!(seen, [true, true, false]);
    assert_eq!(stream.into_partial().text(), "Hi");
}

#[test]
fn an_error_keeps_what_was_received_and_ends_the_stream() {
    let lost = ModelError::new(ModelErrorKind::Connection, "lost");
    let mut stream = stream([Ok(text(0, "The answer is")), Err(lost), Ok(text(0, " 42"))]);
    while let Some(Ok(_)) = now(stream.next()) {}
    assert!(now(stream.next()).is_none());
    assert_eq!(stream.partial().text(), "The answer is");
    assert!(now(stream.reply()).unwrap_err().is_connection());
}

#[test]
fn a_cancelled_stream_drops_its_events() {
    struct Held(#[expect(dead_code, reason = "held, not read")] Arc<()>);
    impl Stream for Held {
        type Item = Result<ModelEvent, ModelError>;
        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }
    let (alive, cx) = (Arc::new(()), StepCx::new());
    let mut stream = ModelStream::new(&cx, &ModelInfo::default(), Held(alive.clone()));
    assert!(std::pin::pin!(stream.next()).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    cx.cancel.cancel("user stop");
    let error = now(stream.next()).unwrap().unwrap_err();
    assert!(error.is_aborted());
    assert_eq!(error.message(), "user stop");
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_model_that_does_not_stream_loses_nothing() {
    let mut given = AssistantMessage::new([Part::thinking("hm"), Part::tool_call("c", "f", "{\"a\": 1}")]);
    given.usage = Usage::new(1, 2);
    given.response_id = Some("r".into());
    given.provider_data = Some(Box::new(ProviderData::new("acme", 1)));
    given.extra.insert("latency".into(), json!(3));
    let expected = given.clone();
    let info = ModelInfo::new("acme", "chat", "a-1");
    let reply =
        now(ModelStream::from_reply(&StepCx::new(), &info, async move { Ok(given) }).reply()).unwrap();
    assert_eq!(reply.model, "a-1");
    let names =
        AssistantMessage { provider: "acme".into(), api: "chat".into(), model: "a-1".into(), ..expected };
    assert_eq!(reply, names);
}

#[test]
fn arguments_are_emitted_value_by_value_if_the_request_asks_for_it() {
    let call = [
        E::ToolCallStart { content_index: 0, id: "c".into(), name: "f".into() },
        E::ToolCallDelta { content_index: 0, delta: r#"{"text": "Zo"#.into() },
        E::ToolCallDelta { content_index: 0, delta: r#"e", "n": [7, null]}"#.into() },
        E::Stop { reason: StopReason::ToolUse, detail: None, raw: None },
    ];
    let read = |request: &ModelRequest| {
        let events = call.clone().map(Ok);
        let mut stream = ModelStream::from_events(&StepCx::new(), &ModelInfo::default(), events)
            .with_argument_events(request);
        let mut told = Vec::new();
        while let Some(event) = now(stream.next()) {
            let event = event.unwrap();
            let again: E = serde_json::from_value(serde_json::to_value(&event).unwrap()).unwrap();
            assert_eq!(again, event);
            assert!(!format!("{event:?}").contains("Zo"), "{event:?}");
            if let E::ToolCallArgument { .. } = event {
                told.push(serde_json::to_value(&event).unwrap()["argument"].take());
            }
        }
        (told, now(stream.reply()).unwrap())
    };
    let (none, plain) = read(&ModelRequest::default());
    let (told, reply) = read(&ModelRequest::default().with_argument_events());
    assert!(none.is_empty() && plain == reply);
    let expected = [
        json!({"path": "", "change": "started", "kind": "object"}),
        json!({"path": "/text", "change": "started", "kind": "text"}),
        json!({"path": "/text", "change": "appended", "fragment": "Zo"}),
        json!({"path": "/text", "change": "appended", "fragment": "e"}),
        json!({"path": "/text", "change": "finished", "value": "Zoe"}),
        json!({"path": "/n", "change": "started", "kind": "array"}),
        json!({"path": "/n/0", "change": "started", "kind": "number"}),
        json!({"path": "/n/0", "change": "finished", "value": 7}),
        json!({"path": "/n/1", "change": "started", "kind": "null"}),
        json!({"path": "/n/1", "change": "finished", "value": null}),
        json!({"path": "/n", "change": "finished"}),
        json!({"path": "", "change": "finished"}),
    ];
    assert_eq!(told, expected);
}
