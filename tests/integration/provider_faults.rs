//! What goes wrong between us and a provider, over real connections on loopback.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::CancelToken;
use agent::model::{Model as _, ModelErrorKind as K, StepCx};
use agent::provider::http::{ApiKey, HttpModel};

use crate::provider_support::*;

const OVERLOADED: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;

async fn ask(
    model: &HttpModel,
) -> (String, Result<agent::message::AssistantMessage, agent::model::ModelError>) {
    drain(model.stream(&StepCx::new(), &hi())).await
}

#[tokio::test]
async fn both_providers_answer() {
    let server = Server::new([answer(200, &["content-type: text/event-stream"], anthropic_stream())]).await;
    let model = server.anthropic().build().unwrap();
    let (text, reply) = ask(&model).await;
    let reply = reply.unwrap();
    assert_eq!((text.as_str(), reply.text().as_str()), ("Hello", "Hello"));
    assert_eq!((reply.provider.as_str(), reply.model.as_str()), ("anthropic", "claude-test"));
    assert_eq!(reply.response_model.as_deref(), Some("claude-test-1"));
    assert_eq!((reply.usage.input, reply.usage.output), (3, 5));
    let request = &server.requests()[0];
    for part in [
        "POST /v1/messages HTTP/1.1",
        "x-api-key: sk-secret-key",
        "anthropic-version: 2023-06-01",
        r#""content":"Hi""#,
    ] {
        assert!(request.contains(part), "{part} in {request}");
    }

    let server = Server::new([answer(200, &[], CHAT)]).await;
    let usage = Arc::new(Mutex::new(Vec::new()));
    let seen = usage.clone();
    let options = quick().on_usage(move |model, usage| {
        seen.lock().unwrap().push((model.model.clone(), usage.input, usage.raw.is_some()));
    });
    let model = server.openai().options(options).header("OpenAI-Organization", "org-1").build().unwrap();
    assert_eq!(ask(&model).await.1.unwrap().text(), "Hello");
    assert_eq!(*usage.lock().unwrap(), [("gpt-4o".to_owned(), 7, true)]);
    let request = &server.requests()[0];
    for part in [
        "POST /v1/chat/completions",
        "authorization: Bearer sk-secret-key",
        "openai-organization: org-1",
        "user-agent: agent",
    ] {
        assert!(request.contains(part), "{part} in {request}");
    }
}

#[tokio::test]
async fn every_form_of_delay_is_waited_for_and_observed() {
    // In milliseconds.
    for (header, least) in [
        ("retry-after-ms: 120", 120),
        ("retry-after: 0.12", 120),
        ("Retry-After: 0", 0),
        ("retry-after: Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("x-should-retry: true", 0),
    ] {
        let limited = answer(
            429,
            &[header],
            r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#,
        );
        let server = Server::new([limited, answer(200, &[], CHAT)]).await;
        let retries = Arc::new(Mutex::new(Vec::new()));
        let seen = retries.clone();
        let options = quick().on_retry(move |retry| {
            seen.lock().unwrap().push((retry.number, retry.delay, retry.error.kind()));
        });
        let model = server.openai().options(options).build().unwrap();
        let begun = Instant::now();
        assert_eq!(ask(&model).await.1.unwrap().text(), "Hello", "{header}");
        let took = begun.elapsed().as_millis();
        assert!((least..10_000).contains(&took), "{header}: {took} ms");
        let retries = retries.lock().unwrap();
        assert_eq!(retries.len(), 1);
        assert_eq!((retries[0].0, retries[0].2), (1, K::RateLimit));
    }
}

#[tokio::test]
async fn what_must_not_be_retried_is_not() {
    let cases = [
        (429, "retry-after: 121", r#"{"error":{"message":"later"}}"#, K::RateLimit),
        (429, "x-should-retry: false", r#"{"error":{"message":"no"}}"#, K::RateLimit),
        (429, "x: y", r#"{"error":{"message":"broke","code":"insufficient_quota"}}"#, K::RateLimit),
        (400, "x: y", r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#, K::InvalidRequest),
        (400, "x: y", r#"{"error":{"message":"long","code":"context_length_exceeded"}}"#, K::ContextTooLong),
        (400, "x: y", r#"{"error":{"message":"no","code":"content_filter"}}"#, K::ContentFilter),
        (401, "x: y", r#"{"error":{"message":"who?","code":"invalid_api_key"}}"#, K::Auth),
        (404, "x: y", "<html>not here</html>", K::InvalidRequest),
        (302, "location: http://elsewhere.example", "", K::InvalidRequest),
    ];
    for (status, header, body, kind) in cases {
        let server = Server::new([answer(status, &[header, "x-request-id: req_7"], body)]).await;
        let error = ask(&server.openai().build().unwrap()).await.1.unwrap_err();
        assert_eq!((error.kind(), error.status()), (kind, Some(status)), "{body}: {error}");
        assert_eq!(error.request_id(), Some("req_7"));
        assert!(!error.is_retryable() || header == "retry-after: 121");
        assert_eq!(server.requests().len(), 1, "{body}");
    }
}

#[tokio::test]
async fn failures_of_the_server_are_retried_and_the_last_is_told() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let server = Server::new([answer(status, &[], "<html>bad gateway</html>")]).await;
        let error = ask(&server.anthropic().build().unwrap()).await.1.unwrap_err();
        assert_eq!(error.status(), Some(status));
        assert!(error.is_retryable() && error.message().contains("HTML"), "{error}");
        assert_eq!(server.requests().len(), 3, "{status}");
    }
    // Nobody listens.
    let model =
        HttpModel::builder("openai/gpt-4o").base_url("http://127.0.0.1:9").key("k").options(quick()).build();
    let error = ask(&model.unwrap()).await.1.unwrap_err();
    assert!(error.is_connection(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("http://127.0.0.1:9") && text.contains("could not be reached: "), "{text}");
}

#[test]
fn what_is_no_address_is_refused_at_once() {
    for (url, shown) in [
        ("127.0.0.1:9/v1", "127.0.0.1:9/v1"),
        ("localhost:9", "localhost:9"),
        ("file:///etc", "[no readable URL]"),
        ("https://", "[no readable URL]"),
        ("", "[no readable URL]"),
        // A password may stand anywhere in what cannot be read.
        ("user:tulip@api.example/v1", "[no readable URL]"),
        ("https://user:tu/lip@api.example/v1", "[no readable URL]"),
        ("tulip", "[no readable URL]"),
    ] {
        let built = HttpModel::builder("openai/gpt-4o").base_url(url).key("k").build();
        let text = built.unwrap_err().to_string();
        assert!(text.starts_with(&format!("`{shown}` is not the address of a server: ")), "{text}");
    }
}

#[tokio::test]
async fn before_anything_was_handed_out_a_broken_stream_begins_again() {
    let whole = answer(200, &[], anthropic_stream());
    let broken: [Vec<Step>; 5] = [
        // An error event on a 200.
        vec![head(None), send(ANTHROPIC_START), send(format!("event: error\ndata: {OVERLOADED}\n\n"))],
        // An error object on a 200.
        answer(200, &[], OVERLOADED),
        // The connection breaks before the reply says anything.
        vec![head(Some(10_000)), send(ANTHROPIC_START), Step::Reset],
        // It stalls.
        vec![head(None), send(ANTHROPIC_START), Step::Stall],
        // Nothing comes at all.
        vec![Step::Reset],
    ];
    for steps in broken {
        let server = Server::new([steps.clone(), whole.clone()]).await;
        let (text, reply) = ask(&server.anthropic().build().unwrap()).await;
        assert_eq!(
            (text.as_str(), reply.unwrap().response_id.as_deref()),
            ("Hello", Some("msg_1")),
            "{steps:?}"
        );
        assert_eq!(server.requests().len(), 2, "{steps:?}");
    }
}

#[tokio::test]
async fn after_something_was_handed_out_nothing_is_retried_and_what_came_is_kept() {
    let said = || vec![head(Some(10_000)), send(ANTHROPIC_START), send(ANTHROPIC_TEXT)];
    let with = |steps: Vec<Step>| [said(), steps].concat();
    let cases = [
        (with(vec![send(format!("event: error\ndata: {OVERLOADED}\n\n"))]), K::Overloaded),
        (with(vec![Step::Wait(Duration::from_millis(50)), Step::Reset]), K::Connection),
        (with(vec![Step::Stall]), K::Timeout),
        (with(vec![send(b"data: {\"type\":\"content_block_delta\xFF\"}\n\n")]), K::Protocol),
        (with(vec![send("data: {nope\n\n")]), K::Protocol),
        (vec![head(None), send(ANTHROPIC_START), send(ANTHROPIC_TEXT)], K::Protocol),
    ];
    for (steps, kind) in cases {
        let server = Server::new([steps.clone()]).await;
        let mut stream = server.anthropic().build().unwrap().stream(&StepCx::new(), &hi());
        let mut error = None;
        while let Some(event) = stream.next().await {
            error = event.err();
        }
        assert_eq!(error.as_ref().map(agent::model::ModelError::kind), Some(kind), "{steps:?}: {error:?}");
        assert_eq!(stream.into_partial().text(), "Hello", "{steps:?}");
        assert_eq!(server.requests().len(), 1, "{steps:?}");
    }
}

#[tokio::test]
async fn a_200_that_is_no_reply_is_a_protocol_error() {
    for body in [
        "",
        "<html>login</html>",
        "{}",
        "[]",
        r#"{"choices":[]}"#,
        "null",
        "{\"id\":",
        "OK",
        "data: [1,2]\n\n",
    ] {
        let mut options = quick();
        options.max_retries = 0;
        for model in [
            Server::new([answer(200, &[], body)]).await.anthropic().options(options.clone()).build().unwrap(),
            Server::new([answer(200, &[], body)]).await.openai().options(options.clone()).build().unwrap(),
        ] {
            let error = ask(&model).await.1.unwrap_err();
            assert_eq!(error.kind(), K::Protocol, "{body:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_whole_reply_is_taken_though_the_connection_does_not_end() {
    // The idle time would be an error.
    let server = Server::new([vec![head(None), send(anthropic_stream()), Step::Stall]]).await;
    assert_eq!(ask(&server.anthropic().build().unwrap()).await.1.unwrap().text(), "Hello");
    // A body instead of a stream.
    let body = r#"{"type":"message","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}"#;
    let server = Server::new([answer(200, &["content-type: text/event-stream"], body)]).await;
    assert_eq!(ask(&server.anthropic().build().unwrap()).await.1.unwrap().text(), "Hello");
}

#[tokio::test]
async fn cancelling_ends_every_kind_of_waiting_at_once() {
    let waits: [(&str, Vec<Step>); 4] = [
        ("the first byte", vec![Step::Stall]),
        ("the next byte", vec![head(None), send(ANTHROPIC_START), Step::Stall]),
        ("more text", vec![head(None), send(ANTHROPIC_START), send(ANTHROPIC_TEXT), Step::Stall]),
        ("the pause before a retry", answer(429, &["retry-after: 60"], "{}")),
    ];
    for (what, steps) in waits {
        let server = Server::new([steps]).await;
        let mut options = quick().with_idle_timeout(Duration::from_secs(30));
        options.first_byte_timeout = Duration::from_secs(30);
        let model = server.anthropic().options(options).build().unwrap();
        let token = CancelToken::new();
        let stream = model.stream(&StepCx::new().with_cancel(token.clone()), &hi());
        let (cancelled, (_, reply)) = tokio::join!(
            async {
                tokio::time::sleep(Duration::from_millis(150)).await;
                token.cancel("enough");
                Instant::now()
            },
            drain(stream)
        );
        let took = cancelled.elapsed();
        let error = reply.unwrap_err();
        assert!(error.is_aborted() && error.message() == "enough", "{what}: {error}");
        // Long before any of its limits.
        assert!(took < Duration::from_secs(10), "{what}: {took:?}");
    }
}

#[tokio::test]
async fn time_and_size_have_limits() {
    // A drip that never stalls runs into the total time.
    let drip = (0..1000).flat_map(|_| [send(": ping\n\n"), Step::Wait(Duration::from_millis(20))]);
    let server = Server::new([std::iter::once(head(None)).chain(drip).collect()]).await;
    let options = quick().with_total_timeout(Duration::from_millis(400));
    let begun = Instant::now();
    let error = ask(&server.anthropic().options(options).build().unwrap()).await.1.unwrap_err();
    assert!(error.is_timeout() && begun.elapsed() < Duration::from_secs(10), "{error}");

    let long_event = format!("data: {}\n\n", "x".repeat(2000));
    let long_body = ": ping\n\n".repeat(2000);
    for body in [long_event, long_body] {
        let server = Server::new([answer(200, &[], body)]).await;
        let mut options = quick().with_max_body(10_000);
        options.max_event = 1000;
        let model = server.anthropic().options(options).build().unwrap();
        let error = ask(&model).await.1.unwrap_err();
        assert!(error.kind() == K::Protocol && error.message().contains("longer than"), "{error}");
    }
    // A long body does not hide the error that it belongs to.
    let server = Server::new([answer(503, &["retry-after: 7"], "x".repeat(20_000))]).await;
    let options = quick().with_max_body(10_000).with_max_retries(0);
    let error = ask(&server.anthropic().options(options).build().unwrap()).await.1.unwrap_err();
    assert_eq!((error.status(), error.retry_after()), (Some(503), Some(Duration::from_secs(7))), "{error}");
}

#[tokio::test]
async fn keys_are_shown_nowhere() {
    let echo = r#"{"error":{"message":"bad key sk-secret-key","type":"x","code":"sk-secret-key"}}"#;
    let filler = "x".repeat(2005);
    let cut = format!("{{\"error\":{{\"message\":\"no\"}},\"f\":\"{filler}\",\"key\":\"sk-secret-key\"}}");
    for body in [echo.to_owned(), cut] {
        for status in [401, 200] {
            let server = Server::new([answer(status, &["x-request-id: sk-secret-key"], &body)]).await;
            let model =
                server.openai().base_url(format!("{}/v1?key=sk-secret-key", server.url)).build().unwrap();
            let error = ask(&model).await.1.unwrap_err();
            let shown = format!("{error} {error:?} {model:?} {:?}", error.body());
            assert!(!shown.contains("sk-secret"), "{shown}");
        }
    }
    let dead = HttpModel::builder("openai/x").key("sk-secret-key").options(quick());
    let dead = dead.base_url("http://user:sk-secret-key@127.0.0.1:9/?k=sk-secret-key").build().unwrap();
    let error = ask(&dead).await.1.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("sk-secret"), "{error:?}");
    let builder = HttpModel::builder("openai/x").key("sk-secret-key").header("api-key", "sk-secret-2");
    let builder = builder.base_url("http://127.0.0.1:9/?k=sk-secret-key");
    assert!(!format!("{builder:?}").contains("sk-secret"));
    let server = Server::new([answer(401, &[], "{\"error\": \"not with sk-secret-2\"}")]).await;
    let model = server.openai().header("api-key", "sk-secret-2").build().unwrap();
    let error = ask(&model).await.1.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("sk-secret"), "{error:?}");
    assert!(server.requests()[0].contains("api-key: sk-secret-2"));
    let malformed = HttpModel::builder("openai/x").key("sk-secret\nkey").build().unwrap();
    let error = ask(&malformed).await.1.unwrap_err();
    assert!(error.is_auth() && !format!("{error} {error:?}").contains("sk-secret"), "{error:?}");
}

#[tokio::test]
async fn keys_come_from_values_callbacks_and_the_environment() {
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let count = Arc::new(Mutex::new(0));
    let counted = count.clone();
    let key = ApiKey::callback(move || {
        *counted.lock().unwrap() += 1;
        let key = format!("key-{}", counted.lock().unwrap());
        async move { Ok(key) }
    });
    let model = server.openai().key(key).build().unwrap();
    for _ in 0..2 {
        ask(&model).await.1.unwrap();
    }
    assert!(server.requests()[1].contains("authorization: Bearer key-2"));

    let failing =
        server.openai().key(ApiKey::callback(|| async { Err("vault is closed".into()) })).build().unwrap();
    let error = ask(&failing).await.1.unwrap_err();
    assert!(error.is_auth() && std::error::Error::source(&error).unwrap().to_string() == "vault is closed");

    let keyless = server.openai().key(ApiKey::none()).build().unwrap();
    ask(&keyless).await.1.unwrap();
    assert!(!server.requests().last().unwrap().contains("authorization"));

    // Without a key: the variable is named. (`cargo test` runs without keys; with one there is nothing to refuse.)
    if std::env::var_os("ANTHROPIC_API_KEY").is_none() {
        let error = agent::model("anthropic/claude-x").unwrap_err().to_string();
        assert_eq!(error, "`anthropic` needs a key: give one to the builder, or set ANTHROPIC_API_KEY");
    }
    let error = agent::model("antropic/claude-x").unwrap_err().to_string();
    assert!(error.contains("did you mean `anthropic`?") && error.contains("openai"), "{error}");
}

/// Adds a note.
#[agent::tool(coerce = "exact")]
fn note(text: String, title: Option<String>) -> String {
    format!("{title:?}: {text}")
}

/// A stream of one call, then one of plain text.
fn call_then_text(arguments: &str, finish: &str) -> [Vec<Step>; 2] {
    let delta = agent::json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "note", "arguments": arguments}}]}}]});
    let end = agent::json!({"choices": [{"delta": {}, "finish_reason": finish}]});
    [answer(200, &[], format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n")), answer(200, &[], CHAT)]
}

#[tokio::test]
async fn an_assistant_runs_whole_calls_and_never_cut_ones() {
    for (finish, runs) in [("tool_calls", true), ("stop", true), ("length", false)] {
        let server = Server::new(call_then_text(r#"{"text": "x"}"#, finish)).await;
        let assistant = agent::Assistant::builder(server.openai().build().unwrap())
            .tools(agent::tools![note])
            .build()
            .unwrap();
        assert_eq!(assistant.prompt("Note it.").await.unwrap().text(), "Hello");
        let told = server.requests()[1].contains("None: x");
        assert_eq!(told, runs, "{finish}: {}", server.requests()[1]);
    }
}

#[tokio::test]
async fn null_for_an_absent_parameter_of_a_strict_tool_is_absent() {
    let server = Server::new(call_then_text(r#"{"text": "x", "title": null}"#, "tool_calls")).await;
    let registry = agent::Registry::new(agent::tools![note]).unwrap();
    let request = hi().with_tools(registry.definitions()).with_strict_tools(true);
    let stream = server.openai().build().unwrap().stream(&StepCx::new(), &request);
    let reply = stream.reply().await.unwrap();
    assert!(server.requests()[0].contains(r#""strict":true"#));
    assert_eq!(reply.tool_calls().map(|call| call.args.text()).collect::<Vec<_>>(), [r#"{"text":"x"}"#]);
    assert_eq!(reply.tool_calls().next().unwrap().id, "c1");
}

#[tokio::test]
async fn a_proxy_is_asked_when_there_is_one() {
    let proxy = Server::new([answer(200, &[], CHAT)]).await;
    let options = quick().with_proxy(proxy.url.as_str());
    let model =
        HttpModel::builder("openai/gpt-4o").key("k").base_url("http://provider.invalid/v1").options(options);
    assert_eq!(ask(&model.build().unwrap()).await.1.unwrap().text(), "Hello");
    assert!(proxy.requests()[0].starts_with("POST http://provider.invalid/v1/chat/completions"));
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_gives_the_reply_or_an_error_and_never_half_a_call() {
    let call = r#"event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

"#;
    let body = [ANTHROPIC_START, ANTHROPIC_TEXT, call, ANTHROPIC_END].concat();
    let info = agent::model::ModelInfo::new("anthropic", "anthropic-messages", "m");
    let protocol = agent::provider::protocol("anthropic").unwrap();
    for cut in 0..=body.len() {
        let mut reader = agent::provider::ReplyReader::new(&*protocol, &info, 200, Vec::new());
        let mut events = Vec::new();
        let pushed = reader.push(&body.as_bytes()[..cut], &mut events);
        let end = pushed.and_then(|()| reader.finish(&*protocol, &mut events));
        let events: Vec<_> = events.into_iter().map(Ok).chain(end.err().map(Err)).collect();
        let mut stream = agent::model::ModelStream::from_events(&StepCx::new(), &info, events);
        let mut error = None;
        while let Some(event) = stream.next().await {
            error = event.err();
        }
        // Only the blank lines at the very end may be missing.
        assert_eq!(error.is_none(), cut >= body.len() - 2, "cut at {cut}: {error:?}");
        let partial = stream.into_partial();
        assert!(partial.tool_calls().all(|call| call.args.text() == r#"{"a":1}"#), "cut at {cut}");
    }
}
