//! The transport at its limits: what is waited for, tried again, read, told and shown.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::message::{AssistantMessage, Message};
use agent::model::{ArgumentChange, Model as _, ModelError, ModelEvent, ModelRequest, RateLimits, StepCx};
use agent::provider::http::{ApiKey, HttpModel, HttpModelBuilder, HttpOptions};
use agent::{CancelToken, Registry, tool, tools};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::provider_support::*;
use crate::trace_support::hear;

async fn ask(model: HttpModelBuilder) -> Result<AssistantMessage, ModelError> {
    drain(model.build().unwrap().stream(&StepCx::new(), &hi())).await.1
}

fn once() -> HttpOptions {
    quick().with_max_retries(0)
}

/// An address where connections are asked for and never stand, and what keeps it so.
#[cfg(target_os = "linux")]
async fn nobody_accepts() -> (String, impl Sized) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut taken = Vec::new();
    while taken.len() < 64 {
        match timeout(Duration::from_secs(1), TcpStream::connect(address)).await {
            Ok(connection) => taken.push(connection.unwrap()),
            Err(_) => return (format!("http://{address}"), (listener, taken)),
        }
    }
    panic!("connections are made though nothing accepts them")
}

#[tokio::test]
async fn every_wait_has_a_limit() {
    // Elsewhere the system completes connections beyond the backlog.
    #[cfg(target_os = "linux")]
    {
        let (url, _kept) = nobody_accepts().await;
        let begun = Instant::now();
        let model = HttpModel::builder("anthropic/claude-test").base_url(url).key("k").options(once());
        let error = ask(model).await.unwrap_err();
        assert!(error.is_timeout() && error.message().contains("reached"), "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
    let long = Duration::from_secs(30);
    let silent = vec![Step::Stall];
    let begun = vec![head(None), send(ANTHROPIC_START), Step::Stall];
    for (steps, options, words) in [
        (silent.clone(), once().with_idle_timeout(long), "no response in time"),
        (begun.clone(), once().with_first_byte_timeout(long), "the response stalled"),
        (
            silent,
            once().with_first_byte_timeout(long).with_total_timeout(Duration::from_millis(200)),
            "no response within the total time",
        ),
        (
            begun,
            once().with_idle_timeout(long).with_total_timeout(Duration::from_millis(200)),
            "longer than the total time",
        ),
    ] {
        let server = Server::new([steps]).await;
        let begun = Instant::now();
        let error = ask(server.anthropic().options(options)).await.unwrap_err();
        assert!(error.is_timeout() && error.message().contains(words), "{words}: {error:?}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{words}: {:?}", begun.elapsed());
    }
    // A key that never comes.
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let key = ApiKey::callback(std::future::pending);
    let options = once().with_total_timeout(Duration::from_millis(100));
    let error = ask(server.openai().key(key).options(options)).await.unwrap_err();
    assert!(error.is_timeout() && error.message().contains("the key"), "{error:?}");
}

#[tokio::test]
async fn cancelling_ends_connecting_and_waiting_for_a_key_at_once() {
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let patient = HttpOptions::default();
    let keyless = server.openai().key(ApiKey::callback(std::future::pending)).options(patient.clone());
    let mut models = vec![("the key", keyless)];
    #[cfg(target_os = "linux")]
    let unreachable = nobody_accepts().await;
    #[cfg(target_os = "linux")]
    {
        let model = HttpModel::builder("openai/gpt-4o").base_url(&unreachable.0).key("k").options(patient);
        models.push(("the connection", model));
    }
    for (what, model) in models {
        let token = CancelToken::new();
        let stream = model.build().unwrap().stream(&StepCx::new().with_cancel(token.clone()), &hi());
        let (cancelled, (_, reply)) = tokio::join!(
            async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                token.cancel("enough");
                Instant::now()
            },
            drain(stream)
        );
        assert!(cancelled.elapsed() < Duration::from_secs(5), "{what}: {:?}", cancelled.elapsed());
        assert!(reply.unwrap_err().is_aborted(), "{what}");
    }
}

#[tokio::test]
async fn the_word_of_the_provider_on_retries_counts_before_the_status() {
    for (status, header, requests) in [
        (400, "x-should-retry: true", 2),
        (401, "X-Should-Retry: true", 2),
        (500, "x-should-retry: false", 1),
        (429, "x-should-retry: false", 1),
        (400, "x-should-retry: maybe", 1),
        (500, "x-should-retry: maybe", 2),
    ] {
        let server = Server::new([answer(status, &[header], "{}"), answer(200, &[], CHAT)]).await;
        let reply = ask(server.openai()).await;
        assert_eq!((server.requests().len(), reply.is_ok()), (requests, requests == 2), "{status}, {header}");
    }
}

#[tokio::test]
async fn what_a_response_says_is_left_lowers_the_limits_of_this_program() {
    let requests = ["x-ratelimit-limit-requests: 60", "X-RateLimit-Remaining-Requests: 0"];
    let anthropic =
        ["anthropic-ratelimit-input-tokens-limit: 60000", "anthropic-ratelimit-input-tokens-remaining: 0"];
    for (status, headers) in [(200, requests), (200, anthropic), (400, requests)] {
        let server = Server::new([answer(status, &headers, CHAT)]).await;
        let limits = RateLimits::new().requests_per_minute(10).max_wait(Duration::ZERO);
        let model = server.openai().options(once()).build().unwrap().limited(limits);
        let first = model.call(&StepCx::new(), &hi()).await;
        assert_eq!(first.is_ok(), status == 200, "{first:?}");
        let error = model.call(&StepCx::new(), &hi()).await.unwrap_err();
        assert_eq!((error.code(), server.requests().len()), (Some("local_limit"), 1), "{headers:?}");
        assert!(error.retry_after().unwrap() <= Duration::from_secs(1), "{error}");
    }
    // What is malformed, and what is more than the limits of this program, changes nothing.
    let headers = [
        "x-ratelimit-remaining-requests: -1",
        "x-ratelimit-remaining-tokens: 99999999999999999999999",
        "anthropic-ratelimit-tokens-remaining: \u{e9}",
        "anthropic-ratelimit-requests-remaining: 1000000",
        "anthropic-ratelimit-requests-reset: 2026-99-99T00:00:00Z",
    ];
    let server = Server::new([answer(200, &headers, CHAT)]).await;
    let limits = RateLimits::new().requests_per_minute(2).max_wait(Duration::ZERO);
    let model = server.openai().build().unwrap().limited(limits);
    for is_admitted in [true, true, false] {
        assert_eq!(model.call(&StepCx::new(), &hi()).await.is_ok(), is_admitted);
    }
}

#[tokio::test]
async fn a_pause_before_the_retry_of_a_request_delays_others() {
    let limited = answer(429, &["retry-after: 1"], "{}");
    let server = Server::new([limited, answer(200, &[], CHAT)]).await;
    let is_paused = Arc::new(tokio::sync::Notify::new());
    let notify = is_paused.clone();
    let options = quick().on_retry(move |_| notify.notify_one());
    let limits = RateLimits::new().max_wait(Duration::ZERO);
    let model = server.openai().options(options).build().unwrap().limited(limits);
    let other = async {
        is_paused.notified().await;
        model.call(&StepCx::new(), &hi()).await.unwrap_err()
    };
    let (cx, request) = (StepCx::new(), hi());
    let (reply, refused) = tokio::join!(model.call(&cx, &request), other);
    assert_eq!((reply.unwrap().text().as_str(), refused.code()), ("Hello", Some("local_limit")));
}

#[tokio::test]
async fn of_the_body_of_an_error_little_is_kept() {
    let body = format!("{{\"error\":{{\"message\":\"no\"}},\"x\":\"{}\"}}", "é".repeat(2_000_000));
    let server = Server::new([answer(400, &[], body)]).await;
    let error = ask(server.openai()).await.unwrap_err();
    let kept = error.body().unwrap();
    assert!(kept.len() < 2200 && kept.ends_with("more bytes)"), "{} bytes", kept.len());
    assert_eq!(error.status(), Some(400));
}

#[tokio::test]
async fn who_asks_can_be_said() {
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let mut options = once();
    options.user_agent = "acme-bot/2".to_owned();
    ask(server.openai().options(options)).await.unwrap();
    assert!(server.requests()[0].to_lowercase().contains("user-agent: acme-bot/2\r\n"));
}

#[tokio::test]
async fn what_a_broken_reply_took_is_reported() {
    let said = [head(Some(10_000)), send(ANTHROPIC_START), send(ANTHROPIC_TEXT), Step::Reset];
    let server = Server::new([said.to_vec()]).await;
    let usage = Arc::new(Mutex::new(Vec::new()));
    let seen = usage.clone();
    let options = once().on_usage(move |_, usage| seen.lock().unwrap().push(usage.input));
    let error = ask(server.anthropic().options(options)).await.unwrap_err();
    assert!(error.is_connection(), "{error:?}");
    assert_eq!(*usage.lock().unwrap(), [3]);
}

/// Writes a file.
#[tool]
fn write(path: String, lines: Vec<String>) -> usize {
    path.len() + lines.len()
}

#[tokio::test]
async fn arguments_are_told_while_they_arrive() {
    let args = r#"{"path": "a.txt", "lines": ["one", "two"]}"#;
    let (one, two) = args.split_at(12);
    let sse = |events: &[agent::Value]| {
        events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat()
    };
    let json = |text: &str| serde_json::from_str::<agent::Value>(text).unwrap();
    let call = |args: &str| agent::json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "write", "arguments": args}}]}}]});
    let chat = (
        vec![call(one)],
        vec![call(two), json(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#)],
    );
    let delta = |args: &str| agent::json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": args});
    let item = |args: &str| agent::json!({"type": "function_call", "id": "f", "call_id": "c", "name": "write", "arguments": args});
    let responses = (
        vec![
            agent::json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
            delta(one),
        ],
        vec![
            delta(two),
            agent::json!({"type": "response.output_item.done", "output_index": 0, "item": item(args)}),
            agent::json!({"type": "response.completed", "response": {"status": "completed"}}),
        ],
    );
    let piece = |args: &str| agent::json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": args}});
    let anthropic = (
        vec![
            json(r#"{"type":"message_start","message":{"id":"m"}}"#),
            json(
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"write","input":{}}}"#,
            ),
            piece(one),
        ],
        vec![
            piece(two),
            json(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#),
            json(r#"{"type":"message_stop"}"#),
        ],
    );
    let registry = Registry::new(tools![write]).unwrap();
    for (which, (first, rest)) in [chat, responses, anthropic].into_iter().enumerate() {
        let steps = vec![head(None), send(sse(&first)), Step::Wait(Duration::from_secs(1)), send(sse(&rest))];
        let server = Server::new([steps]).await;
        let (builder, ..) = server.all().into_iter().nth(which).unwrap();
        let request = ModelRequest::new([Message::user("Hi")])
            .with_tools(registry.definitions())
            .with_argument_events();
        let mut stream = builder.build().unwrap().stream(&StepCx::new(), &request);
        let (mut told, mut first_told) = (Vec::new(), None);
        while let Some(event) = stream.next().await {
            if let ModelEvent::ToolCallArgument { path, change, .. } = event.unwrap() {
                first_told.get_or_insert_with(Instant::now);
                if let ArgumentChange::Finished { value: Some(value) } = change {
                    told.push((path, value.to_string()));
                }
            }
        }
        let expected = [("/path", "\"a.txt\""), ("/lines/0", "\"one\""), ("/lines/1", "\"two\"")];
        assert_eq!(told, expected.map(|(path, value)| (path.to_owned(), value.to_owned())), "{which}");
        let early = first_told.unwrap().elapsed();
        assert!(early > Duration::from_millis(100), "{which}: told {early:?} before the end");
    }
}

#[tokio::test]
async fn a_header_replaces_each_other_of_its_name() {
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let step = StepCx::new().with_key("run/1/model/0".parse().unwrap());
    let own =
        ["Anthropic-Version", "Content-Type", "Accept", "Idempotency-Key", "X-Api-Key", "Authorization"];
    for model in [server.anthropic(), server.openai()] {
        let model = own.iter().fold(model, |model, name| model.header(*name, "of-the-program"));
        drain(model.build().unwrap().stream(&step, &hi())).await.1.ok();
    }
    for request in server.requests() {
        let head = request.split_once("\r\n\r\n").unwrap().0.to_lowercase();
        for name in own.map(str::to_lowercase) {
            let sent: Vec<_> = head.lines().filter(|line| line.starts_with(&format!("{name}:"))).collect();
            assert_eq!(sent, [format!("{name}: of-the-program")], "{head}");
        }
    }
}

#[test]
fn a_model_outside_of_a_runtime_says_what_it_needs() {
    let model = HttpModel::builder("openai/gpt-4o").key("k").build().unwrap();
    let mut reply = model.call(&StepCx::new(), &hi());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match reply.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Err(error)) => assert!(error.message().contains("tokio runtime"), "{error}"),
        other => panic!("{other:?}"),
    }
}

/// Writes down everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::Id {
        span.record(&mut self.clone());
        tracing::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &tracing::Id, _: &tracing::Id) {}
    fn enter(&self, _: &tracing::Id) {}
    fn exit(&self, _: &tracing::Id) {}
}

#[tokio::test]
async fn keys_are_in_no_log() {
    let log = Log::default();
    let _heard = hear(log.clone());
    let limited = answer(429, &["retry-after: 0"], r#"{"error":{"message":"not with sk-secret-key"}}"#);
    let server = Server::new([limited, vec![Step::Reset], answer(200, &[], CHAT)]).await;
    let model = server.openai().base_url(format!("{}/v1?key=sk-secret-key", server.url));
    ask(model.header("x-api-key", "sk-secret-2")).await.unwrap();
    let server = Server::new([answer(401, &[], r#"{"error":{"message":"no sk-secret-key"}}"#)]).await;
    ask(server.anthropic()).await.unwrap_err();
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("the request is sent again") && logged.contains("gpt-4o"), "{logged}");
    assert!(!logged.contains("sk-secret"), "{logged}");
}

/// Signs in.
#[tool]
fn sign_in(user: String, #[arg(secret)] pin: u32) -> String {
    format!("{user} {pin}")
}

#[tokio::test]
async fn secrets_that_a_person_gives_a_call_do_not_reach_the_model() {
    use agent::message::{Conversation, OutcomeKind, Part, ToolResultMessage};
    let stream = answer(200, &["content-type: text/event-stream"], anthropic_stream());
    let chat = answer(200, &["content-type: text/event-stream"], CHAT);
    let server = Server::new([stream, chat]).await;
    let call = Part::tool_call("call_1", "sign_in", r#"{"user": "ann", "pin": 1}"#);
    let mut result = ToolResultMessage::new("call_1", "sign_in", OutcomeKind::Completed).with_content("In.");
    result.edited_args = Some(r#"{"user": "bob", "pin": 4711}"#.into());
    let said = [Message::user("go"), AssistantMessage::new([call]).into(), result.into()];
    for model in [server.anthropic(), server.openai()] {
        let assistant = agent::Assistant::builder(model.build().unwrap())
            .tools(tools![sign_in])
            .conversation(said.iter().cloned().collect::<Conversation>())
            .build()
            .unwrap();
        assistant.prompt("And?").await.unwrap();
    }
    for sent in server.requests() {
        // One text, not a list of two: older servers take nothing else in a result.
        assert!(sent.contains(r#"it ran with {\"user\":\"bob\",\"pin\":\"[secret]\"}]\nIn.""#), "{sent}");
        assert!(!sent.contains("4711"), "{sent}");
    }
}
