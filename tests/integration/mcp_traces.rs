//! The place of a call in a distributed trace, on its way through `_meta`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use agent::mcp::{ClientConfig, McpClient, McpServer};
use agent::message::ToolCall;
use agent::{Registry, ToolContext, json, tool, tools};

use super::mcp_client::FIXTURE;
use super::mcp_support::{Era, ask, run};

/// Adds two numbers.
#[tool(inline, read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn values(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

type Traces = Arc<Mutex<Vec<HashMap<String, String>>>>;

fn listening() -> (McpServer, Traces) {
    let seen = Traces::default();
    let to = seen.clone();
    let server =
        McpServer::new(tools![add]).on_trace_context(move |trace| to.lock().unwrap().push(trace.clone()));
    (server, seen)
}

#[tokio::test]
async fn a_call_carries_the_trace_of_its_client() {
    let trace = values(&[("traceparent", PARENT), ("tracestate", "vendor=1"), ("baggage", "tenant=7")]);
    for era in [Era::Modern, Era::Legacy] {
        let (server, seen) = listening();
        let server = run(server).await;
        let mut sent = trace.clone();
        sent.insert("x-other".to_owned(), "is not sent".to_owned());
        let config =
            era.of(ClientConfig::http(server.url())).name("calc").trace_context(move || sent.clone());
        let registry = Registry::new(McpClient::connect(config).await.unwrap()).unwrap();
        let call = ToolCall::new("c1", "calc__add", r#"{"a": 1, "b": 2}"#);
        let result = registry.call(&call, &ToolContext::default()).await;
        assert_eq!(result.outcome.text(), "3", "{era:?}");
        assert_eq!(*seen.lock().unwrap(), std::slice::from_ref(&trace), "{era:?}");
    }
}

#[tokio::test]
async fn a_call_over_standard_input_carries_it_too() {
    let trace = values(&[("traceparent", PARENT), ("tracestate", "vendor=1"), ("baggage", "tenant=7")]);
    for era in [Era::Modern, Era::Legacy] {
        let sent = trace.clone();
        let config = era.of(ClientConfig::command(FIXTURE).arg("stdio"));
        let client =
            McpClient::connect(config.name("child").trace_context(move || sent.clone())).await.unwrap();
        let registry = Registry::new(client.clone()).unwrap();
        let call = ToolCall::new("c1", "child__show_trace", "{}");
        let result = registry.call(&call, &ToolContext::default()).await;
        let wanted: std::collections::BTreeMap<_, _> = trace.iter().collect();
        assert_eq!(result.outcome.text(), format!("{wanted:?}"), "{era:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn malformed_values_are_ignored_and_a_panic_holds_no_call() {
    let (server, seen) = listening();
    let server = run(server).await;
    for meta in [
        json!({"traceparent": "nonsense"}),
        json!({"traceparent": 7, "tracestate": "a=1"}),
        json!({"tracestate": "a=1"}),
        json!({"traceparent": PARENT, "tracestate": "x".repeat(1_000), "baggage": 3}),
    ] {
        let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta});
        let reply = ask(server.address, "tools/call", params).await;
        assert!(!reply.json()["result"]["isError"].as_bool().unwrap_or_default(), "{reply:?}");
    }
    assert_eq!(*seen.lock().unwrap(), [values(&[("traceparent", PARENT)])]);

    let server = run(McpServer::new(tools![add]).on_trace_context(|_| panic!("no"))).await;
    let config = ClientConfig::http(server.url()).name("calc");
    let with = config.clone().trace_context(|| values(&[("traceparent", PARENT)]));
    let panicking = config.trace_context(|| panic!("no"));
    for config in [with, panicking] {
        let registry = Registry::new(McpClient::connect(config).await.unwrap()).unwrap();
        let call = ToolCall::new("c1", "calc__add", r#"{"a": 1, "b": 2}"#);
        assert_eq!(registry.call(&call, &ToolContext::default()).await.outcome.text(), "3");
    }
}
