//! Code of the application that panics: it ends no process, fails no run, and a listener is not called again.

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent::mcp::ClientConfig;
use agent::mcp::{AuthRefusal, Authenticator, Bearer, Caller};
use agent::mcp::{McpClient, McpServer};
use agent::message::ToolCall;
use agent::model::{ContextRules, Model as _, StepCx};
use agent::provider::http::{ApiKey, HttpOptions};
use agent::traffic::TrafficKind;
use agent::{
    Assistant, BoxFuture, Registry, ScriptedModel, ToolContext, ToolOutcome, json, tool, tool::OutcomeCode,
    tools,
};

use crate::mcp_mock::{Answer, Mock};
use crate::mcp_support::{ask, run};
use crate::provider_support::*;
use crate::trace_support::{Traces, hear};

/// The payload of a panic whose drop panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload panics");
    }
}

/// Crashes with a payload that is not text.
#[tool]
async fn crash_later() -> String {
    tokio::task::yield_now().await;
    panic_any(Bomb)
}

/// Crashes on a thread for bodies that block.
#[tool]
fn crash() -> String {
    panic_any(Bomb)
}

#[tokio::test]
async fn a_panic_whose_payload_panics_is_a_result() {
    let registry = Registry::new(tools![crash, crash_later]).unwrap();
    for tool in ["crash", "crash_later"] {
        let result = registry.call(&ToolCall::new("c", tool, json!({})), &ToolContext::new()).await;
        let ToolOutcome::Failed { code, .. } = &result.outcome else { panic!("{result:?}") };
        assert_eq!(*code, OutcomeCode::PANIC, "{tool}");
    }
    let context = ToolContext::new().on_progress(|_, _| panic_any(Bomb));
    context.progress(agent::Progress::new("half"));
}

fn kind(kind: &TrafficKind<'_>) -> &'static str {
    match kind {
        TrafficKind::Request { .. } => "request",
        TrafficKind::Response { .. } => "answer",
        TrafficKind::Body { .. } => "body",
        TrafficKind::End { .. } => "end",
        _ => "other",
    }
}

#[tokio::test]
async fn a_listener_of_the_transport_that_panics_is_not_called_again() {
    for when in ["request", "answer", "body", "end"] {
        let server = Server::new([answer(200, &[], CHAT)]).await;
        let log = Arc::new(Mutex::new(Vec::new()));
        let seen = log.clone();
        // The usual listener: after its first panic the mutex is poisoned, and every further call would panic, too.
        let options = quick().on_traffic(move |traffic| {
            let mut seen = seen.lock().unwrap();
            seen.push(kind(&traffic.kind));
            assert_ne!(kind(&traffic.kind), when, "it panics");
        });
        let model = server.openai().options(options).build().unwrap();
        for _ in 0..2 {
            let (text, reply) = drain(model.stream(&StepCx::new(), &hi())).await;
            assert_eq!((text.as_str(), reply.unwrap().text().as_str()), ("Hello", "Hello"), "{when}");
        }
        let seen = log.lock().unwrap_err().into_inner().clone();
        assert_eq!(seen.iter().filter(|seen| **seen == when).count(), 1, "{when}: {seen:?}");
        assert_eq!(seen.last(), Some(&when));
    }
}

#[tokio::test]
async fn listeners_to_retries_and_usage_that_panic_fail_nothing() {
    let busy = || answer(503, &[], "busy");
    let server = Server::new([busy(), busy(), answer(200, &[], CHAT)]).await;
    let (retries, usages) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (of_retry, of_usage) = (retries.clone(), usages.clone());
    let options = quick()
        .on_retry(move |_| {
            of_retry.fetch_add(1, Ordering::Relaxed);
            panic_any(Bomb)
        })
        .on_usage(move |_, _| {
            of_usage.fetch_add(1, Ordering::Relaxed);
            panic!("it panics")
        });
    let model = server.openai().options(options).build().unwrap();
    let traces = Traces::default();
    let heard = hear(traces.clone());
    for _ in 0..2 {
        let (_, reply) = drain(model.stream(&StepCx::new(), &hi())).await;
        assert_eq!(reply.unwrap().text(), "Hello");
    }
    drop(heard);
    assert_eq!((retries.load(Ordering::Relaxed), usages.load(Ordering::Relaxed)), (1, 1));
    for option in ["on_retry", "on_usage"] {
        let events = traces.events.lock().unwrap();
        let logged = events
            .iter()
            .filter(|(_, fields)| fields.get("option").is_some_and(|name| name.contains(option)));
        assert_eq!(logged.count(), 1, "{option}");
    }
}

#[tokio::test]
async fn a_key_that_panics_is_an_error_of_the_request() {
    let key = ApiKey::callback(async || panic_any(Bomb));
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let (_, reply) = drain(server.openai().key(key).build().unwrap().stream(&StepCx::new(), &hi())).await;
    let error = reply.unwrap_err();
    assert!(error.message().contains("the callback that gives the key panicked"), "{error}");
    assert!(server.requests().is_empty());
    // A listener to traffic that panics harms no request.
    let options = HttpOptions::default().on_traffic(|_| panic_any(Bomb));
    let model = server.openai().options(options).build().unwrap();
    assert!(drain(model.stream(&StepCx::new(), &hi())).await.1.is_ok());
}

#[tokio::test]
async fn functions_of_an_mcp_client_that_panic_fail_closed() {
    let url = Mock::start(|_, _, count| match count {
        0 => Answer::tools(&["search", "delete"]),
        _ => Answer::Result(
            json!({"tools": [{"name": "search", "inputSchema": {"type": "object", "title": "new"}}]}),
        ),
    })
    .on_call(|_, _| Answer::text("found"))
    .run()
    .await;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let config = ClientConfig::http(&url)
        .name("m")
        .legacy()
        .filter(|tool| if tool.name() == "delete" { panic_any(Bomb) } else { true })
        .accept_changes(|_, _| panic!("it panics"))
        .on_traffic(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            panic_any(Bomb)
        });
    let client = McpClient::connect(config).await.unwrap();
    let report = client.report().await;
    assert_eq!(report.tools.len(), 1);
    assert_eq!(report.left_out[0].1, "the filter panicked");
    let registry = Registry::new(tools![{ client.tools() }]).unwrap();
    let call = ToolCall::new("c", "m__search", json!({}));
    let outcome = registry.call(&call, &ToolContext::new()).await.outcome;
    assert!(
        matches!(&outcome, ToolOutcome::Completed(output) if output.text_content() == "found"),
        "{outcome:?}"
    );
    client.refresh().await.unwrap();
    let ToolOutcome::Failed { code, .. } = registry.call(&call, &ToolContext::new()).await.outcome else {
        panic!("a changed tool ran");
    };
    assert_eq!(code.as_str(), "tool_changed");
    assert_eq!(calls.load(Ordering::Relaxed), 1, "the listener to the traffic");

    let error =
        McpClient::connect(ClientConfig::http(&url).token(async || panic_any(Bomb))).await.unwrap_err();
    assert!(error.to_string().contains("the function for the token panicked"), "{error}");
}

#[tokio::test]
async fn functions_of_an_mcp_server_that_panic_refuse_the_request() {
    let verify = |_| -> std::future::Ready<Result<Caller, AuthRefusal>> { panic_any(Bomb) };
    let loader = |_| -> std::future::Ready<Result<Registry, Box<dyn std::error::Error + Send + Sync>>> {
        panic_any(Bomb)
    };
    let verifying = McpServer::new(tools![]).authenticator(Bearer::verify(verify));
    let loading = McpServer::with_loader(loader);
    let guarding = McpServer::new(tools![]).authenticator(Guard);
    for (server, header) in
        [(verifying, "authorization: Bearer x\r\n"), (guarding, "x-crash: now\r\n"), (loading, "")]
    {
        let server = run(server).await;
        let message = crate::mcp_support::message("tools/list", &json!({}));
        for _ in 0..3 {
            let reply = crate::mcp_support::post(server.address, header, &message).await;
            assert_eq!((reply.status, reply.code()), (500, -32603), "{reply:?}");
            let error = &reply.json()["error"];
            assert!(
                error["message"].as_str().unwrap().starts_with("The server failed. Reference: "),
                "{error}"
            );
            assert!(!reply.body.contains("hunter2"), "{reply:?}");
        }
        // Others are served.
        let status = ask(server.address, "tools/list", json!({})).await.status;
        assert_eq!(status, if header.is_empty() { 500 } else { 401 });
    }
}

/// Panics after a while where a header says so.
struct Guard;

impl Authenticator for Guard {
    fn authenticate<'a>(
        &'a self,
        head: &'a axum::http::request::Parts,
    ) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            match head.headers.get("x-crash") {
                Some(_) => panic!("the password is hunter2"),
                None => Err(AuthRefusal::no_token()),
            }
        })
    }
}

#[tokio::test]
async fn texts_at_which_a_token_counter_panics_are_estimated() {
    let counted = || {
        Assistant::builder(ScriptedModel::new(["Hello!"]))
            .system("Answer briefly, in one sentence.")
            .token_counter(|text| if text.contains("sentence") { panic_any(Bomb) } else { text.len() as u64 })
    };
    let managed = counted().manage_context(ContextRules::new().window(10_000)).build().unwrap();
    managed.prompt("Hi").await.unwrap();
    let plain = counted().build().unwrap();
    plain.prompt("Hi").await.unwrap();
    // A request, and 32 bytes of the system prompt; each message with its bytes.
    assert_eq!(plain.context().used, 8 + 8 + (4 + 2) + (4 + 6));
}
